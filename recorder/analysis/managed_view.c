#include "analysis/managed_view.h"

#include "managed/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS_MAX 255u                  /* of a method, by the class file's format */

/* ---- details --------------------------------------------------------------------------------- */

/* The base name of one type of a signature; returns what follows it, NULL when malformed. */
static const char *put_type(const char *at, struct buf *out)
{
	static const char letters[] = "BCDFIJSZ";
	static const char *const names[] = {"byte", "char", "double", "float",
					    "int", "long", "short", "boolean"};
	const char *end, *name, *slash;
	unsigned arrays = 0;

	for (; *at == '['; at++)
		arrays++;
	if (arrays > 255)
		return NULL;
	if (*at == 'L') {
		end = strchr(at, ';');
		if (!end)
			return NULL;
		for (name = slash = at + 1; slash < end; slash++)
			name = *slash == '/' ? slash + 1 : name;
		buf_printf(out, "%.*s", (int)(end - name), name);
	} else {
		name = *at ? strchr(letters, *at) : NULL;
		if (!name)
			return NULL;
		buf_puts(out, names[name - letters]);
		end = at;
	}
	while (arrays--)
		buf_puts(out, "[]");
	return end + 1;
}

void managed_parameters(const char *signature, struct buf *out)
{
	const char *at = signature + 1;
	struct buf text = {0};
	unsigned n = 0;

	while (*signature == '(' && at && *at != ')' && n < PARAMETERS_MAX) {
		buf_puts(&text, n++ ? ", " : "");
		at = put_type(at, &text);
	}
	if (*signature == '(' && at && *at == ')')
		buf_printf(out, "(%s)", buf_text(&text));
	out->failed |= text.failed;
	buf_free(&text);
}

/* Take " BCI:LINE". false: there is none, or it is malformed */
static bool take_line(const char **at, unsigned long *bci, unsigned long *line)
{
	const char *digits = "0123456789";
	char *end;

	if (**at != ' ' || !strspn(*at + 1, digits))
		return false;
	*bci = strtoul(*at + 1, &end, 10);
	if (*end != ':' || !strspn(end + 1, digits))
		return false;
	*line = strtoul(end + 1, &end, 10);
	*at = end;
	return true;
}

bool managed_line(const char *detail, int32_t bci, const char **file, size_t *nfile,
		  uint32_t *line)
{
	unsigned long from, begins, best = 0;
	bool found = false;
	const char *at = strchr(detail, ' ');

	if (!at || bci < 0)
		return false;
	*file = at + 1;
	*nfile = strcspn(at + 1, " ");
	at = *file + *nfile;
	while (take_line(&at, &from, &begins)) {
		if (from > (unsigned long)bci || (found && from < best))
			continue;
		best = from;
		*line = (uint32_t)begins;
		found = true;
	}
	return found && *nfile;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool is_managed(const struct incident *in, const struct incident_frame *f)
{
	if (!f->function || !f->raw_name)
		return false;
	/* Those of .NET may be in a file. */
	return strncmp(f->raw_name, "=(", 2) == 0 ||
	       (in->modules[f->module].kind == OBJECT_JIT &&
		(f->raw_name[0] == '(' || f->raw_name[0] == '@'));
}

static const char *kind_of(uint64_t offset)
{
	static const char *const kinds[] = {
		[MANAGED_INTERPRETED] = " [interpreted]", [MANAGED_C1] = " [C1]",
		[MANAGED_C2] = " [C2]", [MANAGED_NATIVE] = " [native]",
	};
	unsigned how = (unsigned)(offset >> MANAGED_HOW_SHIFT) & 7;

	return how < sizeof(kinds) / sizeof(kinds[0]) && kinds[how] ? kinds[how] : "";
}

static int rename_frame(struct incident *in, struct incident_frame *f,
			const struct managed_view *view)
{
	struct buf text = {0};

	buf_puts(&text, f->function);
	if (view->parameters && f->raw_name[0] == '=')
		buf_puts(&text, f->raw_name + 1);
	else if (view->parameters)
		managed_parameters(f->raw_name, &text);
	if (view->kinds && f->raw_name[0] != '=')
		buf_puts(&text, kind_of(f->offset));
	f->function = text.failed ? NULL : incident_text(in, buf_text(&text));
	buf_free(&text);
	return f->function ? 0 : ERR_MEMORY;
}

static int find_line(struct incident *in, struct incident_frame *f)
{
	int32_t bci = (int32_t)(f->offset & ((1u << MANAGED_HOW_SHIFT) - 1)) - 1;
	const char *file;
	char name[256];
	size_t nfile;
	uint32_t line;

	if (f->file || f->raw_name[0] == '=')
		return 0;
	if (f->raw_name[0] == '@') {         /* Python: the line itself */
		f->file = incident_text(in, f->raw_name + 1);
		f->line = bci > 0 ? (uint32_t)bci : 0;
		return f->file ? 0 : ERR_MEMORY;
	}
	if (!managed_line(f->raw_name, bci, &file, &nfile, &line))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)nfile, file);
	f->file = incident_text(in, name);
	f->line = line;
	return f->file ? 0 : ERR_MEMORY;
}

int managed_view_apply(struct incident *in, const struct managed_view *view, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < in->nframes; i++) {
		struct incident_frame *f = &in->frames[i];

		if (!is_managed(in, f))
			continue;
		if (view->lines)
			rc = find_line(in, f);
		if (!rc && (view->parameters || view->kinds))
			rc = rename_frame(in, f, view);
	}
	return rc ? err_memory(err, "for names of managed frames") : 0;
}
