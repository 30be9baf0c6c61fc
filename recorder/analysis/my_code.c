#include "analysis/my_code.h"

#include "base/text_table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct finding {
	const struct incident *in;
	struct text_table programs;          /* names of processes */
	struct text_table folders;           /* of their executables */
	bool no_memory;
};

static void add(struct finding *f, struct text_table *t, const char *text, size_t n)
{
	f->no_memory |= text_table_add(t, text, n) == TABLE_NONE;
}

/* How much of a module's path is its directory, with the last separator; 0 = it is no file. */
static size_t folder_of(const struct incident_module *m)
{
	size_t n = m->kind == OBJECT_ELF || m->kind == OBJECT_PE ? strlen(m->path) : 0;

	while (n && m->path[n - 1] != '/' && m->path[n - 1] != '\\')
		n--;
	return n;
}

static void find_programs(struct finding *f)
{
	const struct incident *in = f->in;
	bool *seen = calloc((size_t)in->nprocesses + 1, sizeof(*seen));
	uint32_t i, process;

	for (i = 0; seen && i < in->nsamples; i++) {
		process = incident_process_of(in, in->samples[i].thread);
		if (process == UINT32_MAX || seen[process])
			continue;
		seen[process] = true;
		add(f, &f->programs, in->processes[process].name,
		    strlen(in->processes[process].name));
	}
	f->no_memory |= !seen;
	free(seen);
}

static void find_folders(struct finding *f)
{
	uint32_t i;

	for (i = 0; i < f->in->nmodules; i++) {
		const struct incident_module *m = &f->in->modules[i];
		size_t folder = folder_of(m), n = folder ? strlen(m->path + folder) : 0;

		if (n > 4 && strcasecmp(m->path + folder + n - 4, ".exe") == 0)
			n -= 4;
		if (n && text_table_find(&f->programs, m->path + folder, n) != TABLE_NONE)
			add(f, &f->folders, m->path, folder);
	}
}

int my_code_find(const struct incident *in, bool **out)
{
	struct finding f = {.in = in};
	bool *mine = NULL;
	uint32_t i;

	find_programs(&f);
	find_folders(&f);
	if (f.folders.n)
		mine = calloc((size_t)in->nmodules + 1, sizeof(*mine));
	f.no_memory |= f.folders.n && !mine;
	for (i = 0; mine && i < in->nmodules; i++) {
		const struct incident_module *m = &in->modules[i];
		size_t folder = folder_of(m);

		mine[i] = folder && text_table_find(&f.folders, m->path, folder) != TABLE_NONE;
	}
	text_table_free(&f.programs);
	text_table_free(&f.folders);
	if (f.no_memory) {
		free(mine);
		return ERR_MEMORY;
	}
	*out = mine;
	return 0;
}
