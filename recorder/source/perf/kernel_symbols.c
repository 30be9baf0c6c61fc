#include "source/perf/kernel_symbols.h"

#include "base/array.h"
#include "base/sort.h"
#include "source/host/maps.h"
#include "symbol/kallsyms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXECS_MAX 8u                   /* __x64_sys_execve, ...execveat, those of 32-bit programs */
#define EXEC_MAX_BYTES 4096u

struct range {
	uint64_t start, end;
};

struct kernel_symbols {
	struct frames *frames;
	struct log *log;
	struct maps *maps;
	struct range execs[EXECS_MAX];
	uint32_t nexecs;
	bool full;                     /* and that is logged */
};

struct kernel_symbols *kernel_symbols_new(struct frames *frames, struct log *log)
{
	struct kernel_symbols *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	*k = (struct kernel_symbols){.frames = frames, .log = log, .maps = maps_new()};
	if (k->maps)
		return k;
	free(k);
	return NULL;
}

void kernel_symbols_free(struct kernel_symbols *k, uint64_t now_ns)
{
	if (!k)
		return;
	maps_free(k->maps, now_ns);
	free(k);
}

static void add_symbol(struct kernel_symbols *k, uint64_t start, uint64_t bytes, const char *name,
		       uint64_t now_ns)
{
	const struct object_key key = {.kind = OBJECT_KERNEL, .path = name};
	struct mapping m = {.start = start, .end = start + bytes};

	if (!name[0] || name[0] == '[' || m.end < start)
		return;                        /* "[kernel]" is the kernel itself */
	m.object = objects_get(k->frames, &key, 0);
	if (!m.object || maps_insert(&k->maps, &m, now_ns) != ERR_LIMIT || k->full)
		return;
	k->full = true;
	log_line(k->log, LOG_WARN,
		 "more than %u BPF programs and trampolines: the others have no name", MAPS_MAX);
}

void kernel_symbols_feed(struct kernel_symbols *k, const struct perf_record *r)
{
	uint64_t start = r->u.ksymbol.start, bytes = r->u.ksymbol.bytes;

	if (r->u.ksymbol.gone)
		maps_remove(&k->maps, start, start + bytes, r->time_ns);
	else
		add_symbol(k, start, bytes, r->u.ksymbol.name, r->time_ns);
}

/* ---- kallsyms -------------------------------------------------------------------------------- */

static bool ends_in(const char *text, size_t n, const char *end)
{
	size_t nend = strlen(end);

	return n >= nend && memcmp(text + n - nend, end, nend) == 0;
}

/* Whether it is code that comes and goes while the kernel runs. */
static bool is_temporary(const struct kallsyms_line *line)
{
	static const char *const modules[] = {"bpf", "__builtin__ftrace", "__builtin__kprobes"};
	size_t i;

	for (i = 0; line->module && line->address && i < COUNT_OF(modules); i++)
		if (line->module_bytes == strlen(modules[i]) &&
		    ends_in(line->module, line->module_bytes, modules[i]))
			return true;
	return false;
}

/* "__x64_sys_execve", "__ia32_compat_sys_execveat", "sys_execve" of old kernels. */
static bool is_exec(const struct kallsyms_line *line)
{
	return !line->module && line->address && (line->type == 'T' || line->type == 't') &&
	       !(line->name_bytes > 6 && memcmp(line->name, "__pfx_", 6) == 0) &&
	       (ends_in(line->name, line->name_bytes, "sys_execve") ||
		ends_in(line->name, line->name_bytes, "sys_execveat"));
}

/* An exec function ends at the next symbol, which is in one of the following lines. */
static void note_exec(struct kernel_symbols *k, const struct kallsyms_line *line)
{
	struct range *last = k->nexecs ? &k->execs[k->nexecs - 1] : NULL;

	if (last && line->address > last->start && line->address < last->end)
		last->end = line->address;
	if (is_exec(line) && k->nexecs < EXECS_MAX)
		k->execs[k->nexecs++] =
			(struct range){line->address, line->address + EXEC_MAX_BYTES};
}

/* Collect the addresses of these symbols and where their lines begin in the text. */
static uint32_t collect(struct kernel_symbols *k, const char *text, size_t n, struct sort_item *out,
			uint32_t max)
{
	const char *at = text, *line_at = at;
	struct kallsyms_line line;
	uint32_t count = 0;

	k->nexecs = 0;
	for (; count < max && kallsyms_next(&at, text + n, &line); line_at = at) {
		note_exec(k, &line);
		if (is_temporary(&line))
			out[count++] = (struct sort_item){line.address,
							  {(uint32_t)(line_at - text), 0}};
	}
	return count;
}

static void add_line(struct kernel_symbols *k, const char *at, const char *end, uint64_t next,
		     uint64_t now_ns)
{
	struct kallsyms_line line;
	uint64_t bytes;
	char name[512];

	if (!kallsyms_next(&at, end, &line) || line.address >= next)
		return;
	bytes = next - line.address;
	if (bytes > KERNEL_SYMBOL_GUESS_BYTES)
		bytes = KERNEL_SYMBOL_GUESS_BYTES;
	snprintf(name, sizeof(name), "%.*s", (int)line.name_bytes, line.name);
	add_symbol(k, line.address, bytes, name, now_ns);
}

void kernel_symbols_scan(struct kernel_symbols *k, const char *text, size_t n, uint64_t now_ns)
{
	struct sort_item *items = malloc(2 * MAPS_MAX * sizeof(*items));
	struct maps *fresh = maps_new();
	uint32_t i, count;

	if (items && fresh && n < UINT32_MAX) {
		maps_free(k->maps, now_ns);
		k->maps = fresh;
		fresh = NULL;
		count = collect(k, text, n, items, MAPS_MAX);
		sort_items(items, items + MAPS_MAX, count);
		for (i = 0; i < count; i++)
			add_line(k, text + items[i].value[0], text + n,
				 i + 1 < count ? items[i + 1].key : UINT64_MAX, now_ns);
	}
	maps_free(fresh, now_ns);
	free(items);
}

/* ---- asking ---------------------------------------------------------------------------------- */

bool kernel_symbols_find(const struct kernel_symbols *k, uint64_t address, struct frame_ref *out)
{
	const struct mapping *m = maps_find(k->maps, address);

	if (!m)
		return false;
	out->object = m->object;
	out->offset = address - m->start + m->pgoff;
	return true;
}

bool kernel_symbols_in_exec(const struct kernel_symbols *k, const uint64_t *chain, uint32_t n)
{
	uint32_t i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < k->nexecs; j++)
			if (chain[i] > k->execs[j].start && chain[i] < k->execs[j].end)
				return true;
	return false;
}
