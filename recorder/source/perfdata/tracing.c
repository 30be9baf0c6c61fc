#include "source/perfdata/tracing.h"

#include "base/array.h"
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x17\x08\x44tracing"
#define MAGIC_BYTES 10u
#define TRACEPOINTS_MAX 4096u

struct tracepoints {
	struct tracepoint **all;
	uint32_t n, room;
};

static bool skip_part(struct cursor *c, const char *name)
{
	const char *text = name ? cursor_text(c) : "";
	uint64_t n;

	return text && (!name || strcmp(text, name) == 0) && cursor_get(c, &n, 8) &&
	       cursor_skip(c, n);
}

static bool skip_head(struct cursor *c)
{
	const uint8_t *magic = cursor_take(c, MAGIC_BYTES);
	uint32_t n;

	if (!magic || memcmp(magic, MAGIC, MAGIC_BYTES) != 0 || !cursor_text(c) ||
	    !cursor_skip(c, 6) || !skip_part(c, "header_page") || !skip_part(c, "header_event") ||
	    !cursor_get(c, &n, 4))
		return false;
	while (n && skip_part(c, NULL))
		n--;
	return n == 0;
}

/* "name: sched_switch" is a format's first line. */
static void name_of(const char *system, const char *text, size_t n, struct tracepoint *out)
{
	static const char key[] = "name: ";
	size_t length = 0;

	if (n > sizeof(key) && memcmp(text, key, sizeof(key) - 1) == 0) {
		text += sizeof(key) - 1;
		while (length < n - (sizeof(key) - 1) && text[length] != '\n')
			length++;
	}
	snprintf(out->name, sizeof(out->name), "%.60s:%.*s", system,
		 (int)(length < TRACE_NAME_MAX ? length : TRACE_NAME_MAX - 1), text);
}

static int read_event(struct tracepoints *t, const char *system, struct cursor *c,
		      bool (*wanted)(const void *ctx, uint32_t id), const void *ctx)
{
	struct tracepoint *p;
	const uint8_t *text;
	uint64_t n;

	if (!cursor_get(c, &n, 8) || !(text = cursor_take(c, n)))
		return ERR_FORMAT;
	if (t->n >= TRACEPOINTS_MAX || n > TRACE_FORMAT_MAX_BYTES)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p || ARRAY_ROOM(t->all, t->room, t->n + 1)) {
		free(p);
		return ERR_MEMORY;
	}
	if (trace_format_parse((const char *)text, (size_t)n, &p->format, NULL) ||
	    !wanted(ctx, p->format.id)) {
		free(p);
		return 0;
	}
	name_of(system, (const char *)text, (size_t)n, p);
	t->all[t->n++] = p;
	return 0;
}

static int read_systems(struct tracepoints *t, struct cursor *c,
			bool (*wanted)(const void *ctx, uint32_t id), const void *ctx)
{
	uint32_t nsystems, nevents;
	int rc = 0;

	if (!cursor_get(c, &nsystems, 4))
		return ERR_FORMAT;
	while (!rc && nsystems--) {
		const char *system = cursor_text(c);

		if (!system || !cursor_get(c, &nevents, 4))
			return ERR_FORMAT;
		while (!rc && nevents--)
			rc = read_event(t, system, c, wanted, ctx);
	}
	return rc;
}

int tracepoints_read(const void *bytes, size_t n, bool (*wanted)(const void *ctx, uint32_t id),
		     const void *ctx, struct tracepoints **out, struct err *err)
{
	struct tracepoints *t = calloc(1, sizeof(*t));
	struct cursor c = cursor_over(bytes, n);

	if (!t || (skip_head(&c) && read_systems(t, &c, wanted, ctx) == ERR_MEMORY)) {
		tracepoints_free(t);
		return err_memory(err, "for the tracepoints of a perf file");
	}
	*out = t;
	return 0;
}

void tracepoints_free(struct tracepoints *t)
{
	if (!t)
		return;
	while (t->n)
		free(t->all[--t->n]);
	free(t->all);
	free(t);
}

const struct tracepoint *tracepoints_find(const struct tracepoints *t, uint64_t id)
{
	uint32_t i;

	for (i = 0; t && i < t->n; i++)
		if (t->all[i]->format.id == id)
			return t->all[i];
	return NULL;
}
