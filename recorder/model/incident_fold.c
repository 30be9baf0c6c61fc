#include "model/incident_build_private.h"

#include <stdlib.h>
#include <string.h>

/* A file with CPython's evaluator: "python3.11", "libpython3.11.so.1.0". */
static bool is_interpreter(const struct incident_module *m)
{
	const char *name = m->name;

	if (m->kind != OBJECT_ELF)
		return false;
	if (strncmp(name, "lib", 3) == 0)
		name += 3;
	return strncmp(name, "python", 6) == 0 && (name[6] == '2' || name[6] == '3') &&
	       name[7] == '.';
}

struct folding {
	struct incident *in;
	uint32_t *shown;                     /* of each stack: what to show in its place */
	uint32_t *lean;                      /* and its frames without the interpreter's */
	bool *interpreter;                   /* of each module */
	/* Of each frame: it is the interpreter's, or a function of Python. */
	struct frame_kind {
		bool folded, python;
	} *kinds;
};

/* The stack of a stack's innermost frame on another parent. */
static uint32_t on(struct incident *in, uint32_t stack, uint32_t parent)
{
	const struct incident_stack s = in->stacks[stack];

	return parent == s.parent ? stack : incident_add_stack(in, parent, s.frame);
}

static void find_kinds(struct folding *f)
{
	uint32_t i;

	for (i = 0; i < f->in->nframes; i++) {
		f->kinds[i].folded = f->interpreter[f->in->frames[i].module];
		f->kinds[i].python = incident_frame_code(f->in, i) == CODE_PYTHON;
	}
}

/* Up to the last Python function a stack is lean, and whole behind it. */
static int fold_all(struct folding *f)
{
	uint32_t n = f->in->nstacks, i;

	find_kinds(f);
	for (i = 0; i < n; i++) {
		const struct incident_stack s = f->in->stacks[i];
		bool root = s.parent == STACK_NONE;
		bool folded = f->kinds[s.frame].folded;

		f->lean[i] = root ? STACK_NONE : f->lean[s.parent];
		if (!folded)
			f->lean[i] = on(f->in, i, f->lean[i]);
		f->shown[i] = f->lean[i];
		if (!f->kinds[s.frame].python)
			f->shown[i] = on(f->in, i, root ? STACK_NONE : f->shown[s.parent]);
		if (f->shown[i] == UINT32_MAX || (!folded && f->lean[i] == UINT32_MAX))
			return ERR_MEMORY;
	}
	return 0;
}

int incident_fold_interpreters(struct incident *in, struct err *err)
{
	struct folding f = {.in = in};
	size_t n = (size_t)in->nstacks + 1;
	bool any = false, python = false;
	uint32_t i;
	int rc;

	f.interpreter = calloc((size_t)in->nmodules + 1, 1);
	if (!f.interpreter)
		return err_memory(err, "while folding stacks");
	for (i = 0; i < in->nmodules; i++) {
		any |= f.interpreter[i] = is_interpreter(&in->modules[i]);
		python |= strcmp(in->modules[i].name, "[python]") == 0;
	}
	if (!any || !python) {
		free(f.interpreter);
		return 0;
	}
	f.shown = malloc(n * sizeof(*f.shown));
	f.lean = malloc(n * sizeof(*f.lean));
	f.kinds = malloc(((size_t)in->nframes + 1) * sizeof(*f.kinds));
	rc = f.shown && f.lean && f.kinds ? fold_all(&f) : ERR_MEMORY;
	if (!rc)
		incident_restack(in, f.shown);
	free(f.shown);
	free(f.lean);
	free(f.kinds);
	free(f.interpreter);
	return rc ? err_memory(err, "while folding stacks") : 0;
}
