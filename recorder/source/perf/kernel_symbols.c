#include "source/perf/kernel_symbols.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/os.h"
#include "base/sort.h"
#include "base/text.h"
#include "source/host/maps.h"
#include "symbol/kallsyms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 9u                  /* eight of KERNEL_EXEC and one of KERNEL_IO */
#define PLACE_MAX_BYTES 4096u
#define GAP_NS (10 * NS_PER_SEC)       /* between readings of kallsyms */
#define SINCE_MAX 4096u                /* records during one */

struct range {
	uint64_t start, end;
	enum kernel_place place;
};

/* What kallsyms says; read by a job. */
struct reading {
	struct job job;
	kernel_symbols_read *read;
	bool keeps;                    /* the text, for who needs it soon */
	struct buf text;
	uint64_t modules;
	bool fixed;
	int failed;                    /* the places and symbols are not known */
	struct buf lines;              /* of symbols that come and go */
	struct sort_item *items;       /* address, where its line begins in lines */
	uint32_t nitems, room;
	struct range places[PLACES_MAX];
	uint32_t nplaces;
	bool unended;                  /* the last of them */
};

struct kernel_symbols {
	struct frames *frames;
	kernel_symbols_read *read;
	struct kallsyms_text *given;   /* NULL = nobody needs it, or no more */
	struct log *log;
	struct maps *maps;
	struct range places[PLACES_MAX];
	uint32_t nplaces;
	bool full;                     /* and that is logged */
	bool fixed;                    /* only places are read */
	bool stale;                    /* kallsyms is to be read, from due_ns on */
	uint64_t due_ns;
	struct reading *reading;       /* NULL = none */
	struct perf_record *since;     /* records since it began; names owned */
	uint32_t nsince, since_room;
};

static void forget_reading(struct kernel_symbols *k)
{
	if (k->reading)
		job_drop(&k->reading->job);
	k->reading = NULL;
	while (k->nsince)
		free((char *)(uintptr_t)k->since[--k->nsince].u.ksymbol.name);
}

struct kernel_symbols *kernel_symbols_new(struct frames *frames, kernel_symbols_read *read,
					  struct kallsyms_text *given, struct log *log)
{
	struct kernel_symbols *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	*k = (struct kernel_symbols){
		.frames = frames, .read = read, .given = given, .log = log, .maps = maps_new()};
	if (k->maps)
		return k;
	free(k);
	return NULL;
}

void kernel_symbols_free(struct kernel_symbols *k, uint64_t now_ns)
{
	if (!k)
		return;
	forget_reading(k);
	kallsyms_text_drop(k->given);
	free(k->since);
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

static void apply(struct kernel_symbols *k, const struct perf_record *r)
{
	uint64_t start = r->u.ksymbol.start, bytes = r->u.ksymbol.bytes;

	if (r->u.ksymbol.gone)
		maps_remove(&k->maps, start, start + bytes, r->time_ns);
	else
		add_symbol(k, start, bytes, r->u.ksymbol.name, r->time_ns);
}

/* The text that is being read may be older than the record. Without room it is read once more. */
static void remember(struct kernel_symbols *k, const struct perf_record *r)
{
	char *name = NULL;

	if (k->nsince < SINCE_MAX && !ARRAY_ROOM(k->since, k->since_room, k->nsince + 1))
		name = text_dup(r->u.ksymbol.name, SIZE_MAX);
	if (!name) {
		k->stale = true;
		return;
	}
	k->since[k->nsince] = *r;
	k->since[k->nsince++].u.ksymbol.name = name;
}

void kernel_symbols_feed(struct kernel_symbols *k, const struct perf_record *r)
{
	apply(k, r);
	if (k->reading)
		remember(k, r);
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
static bool is_place(const struct kallsyms_line *line, enum kernel_place *out)
{
	if (line->module || !line->address || (line->type != 'T' && line->type != 't') ||
	    (line->name_bytes > 6 && memcmp(line->name, "__pfx_", 6) == 0))
		return false;
	*out = line->name_bytes == 11 && ends_in(line->name, 11, "io_schedule") ? KERNEL_IO
									       : KERNEL_EXEC;
	return *out == KERNEL_IO || ends_in(line->name, line->name_bytes, "sys_execve") ||
	       ends_in(line->name, line->name_bytes, "sys_execveat");
}

/* A function ends at the next symbol, which is in one of the following lines. */
static void note_place(struct reading *r, const struct kallsyms_line *line)
{
	struct range *last = r->nplaces ? &r->places[r->nplaces - 1] : NULL;
	enum kernel_place place;

	if (last && line->address > last->start && line->address < last->end) {
		last->end = line->address;
		r->unended = false;
	}
	if (is_place(line, &place) && r->nplaces < PLACES_MAX) {
		r->places[r->nplaces++] = (struct range){
			line->address, line->address + PLACE_MAX_BYTES, place};
		r->unended = true;
	}
}

/* Most of 122,000 lines end like neither "[bpf]", "execve", "execveat" nor "io_schedule". */
static bool may_matter(const struct reading *r, const char *line, const char *end)
{
	return r->unended || (end > line && (end[-1] == ']' || end[-1] == 'e' || end[-1] == 't'));
}

static int note_temporary(struct reading *r, uint64_t address, const char *at, const char *end)
{
	/* The other half is for sorting. */
	if (ARRAY_ROOM(r->items, r->room, 2 * (r->nitems + 1)))
		return ERR_MEMORY;
	r->items[r->nitems++] = (struct sort_item){address, {(uint32_t)r->lines.len, 0}};
	buf_put(&r->lines, at, (size_t)(end - at));
	return r->lines.failed;
}

/* A kallsyms_take: keep the lines of these symbols. */
static int take_lines(void *to, const char *text, size_t n)
{
	const char *at = text, *line_at, *end = text + n, *lf;
	struct reading *r = to;
	struct kallsyms_line line;

	if (r->keeps)
		buf_put(&r->text, text, n);
	while (!r->failed && r->nitems < MAPS_MAX && at < end) {
		line_at = at;
		lf = memchr(at, '\n', (size_t)(end - at));
		if (!may_matter(r, at, lf ? lf : end)) {
			at = lf ? lf + 1 : end;
			continue;
		}
		kallsyms_next(&at, end, &line);
		note_place(r, &line);
		if (!r->fixed && is_temporary(&line))
			r->failed = note_temporary(r, line.address, line_at, at);
	}
	return r->failed;
}

static void sort_lines(struct reading *r)
{
	if (r->nitems)
		sort_items(r->items, r->items + r->nitems, r->nitems);
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

static void adopt(struct kernel_symbols *k, const struct reading *r, uint64_t now_ns)
{
	const char *lines = buf_text(&r->lines);
	struct maps *fresh = r->failed ? NULL : maps_new();
	uint32_t i;

	if (!fresh)
		return;
	maps_free(k->maps, now_ns);
	k->maps = fresh;
	memcpy(k->places, r->places, sizeof(k->places));
	k->nplaces = r->nplaces;
	for (i = 0; i < r->nitems; i++)
		add_line(k, lines + r->items[i].value[0], lines + r->lines.len,
			 i + 1 < r->nitems ? r->items[i + 1].key : UINT64_MAX, now_ns);
}

void kernel_symbols_scan(struct kernel_symbols *k, const char *text, size_t n, uint64_t now_ns)
{
	struct reading r = {0};

	take_lines(&r, text, n);
	sort_lines(&r);
	adopt(k, &r, now_ns);
	buf_free(&r.lines);
	free(r.items);
}

static void run_reading(struct job *job)
{
	struct reading *r = (struct reading *)job;

	r->failed = r->read(take_lines, r, &r->modules, NULL);
	if (!r->failed)
		sort_lines(r);
	if (r->failed || r->text.failed)
		buf_free(&r->text);
}

static void free_reading(struct job *job)
{
	struct reading *r = (struct reading *)job;

	buf_free(&r->text);
	buf_free(&r->lines);
	free(r->items);
	free(r);
}

void kernel_symbols_rescan(struct kernel_symbols *k, bool fixed)
{
	k->fixed = fixed;
	k->stale = true;
}

static void begin(struct kernel_symbols *k, struct pool *pool, uint64_t now_ns)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->job = (struct job){.run = run_reading, .free = free_reading, .what = "/proc/kallsyms"};
	r->read = k->read;
	r->fixed = k->fixed;
	r->keeps = k->given != NULL && !k->due_ns;       /* the first one */
	job_init(&r->job);
	k->reading = r;
	k->stale = false;
	k->due_ns = now_ns + GAP_NS;
	if (r->keeps)
		kallsyms_text_promise(k->given);
	pool_put(pool, &r->job);
}

static void finish(struct kernel_symbols *k, uint64_t now_ns)
{
	struct reading *r = k->reading;
	uint32_t i;

	adopt(k, r, now_ns);
	for (i = 0; i < k->nsince; i++)
		apply(k, &k->since[i]);
	kallsyms_text_give(k->given, &r->text, r->modules);
	forget_reading(k);
}

void kernel_symbols_look(struct kernel_symbols *k, struct pool *pool, uint64_t now_ns,
			 uint64_t wait_ns)
{
	if (!k->reading && k->stale && now_ns >= k->due_ns)
		begin(k, pool, now_ns);
	if (k->reading && (wait_ns ? pool_wait(pool, &k->reading->job, wait_ns)
				   : job_done(&k->reading->job)))
		finish(k, now_ns);
	if (k->given && k->due_ns && now_ns >= k->due_ns) {
		kallsyms_text_drop(k->given);
		k->given = NULL;
	}
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

bool kernel_symbols_in(const struct kernel_symbols *k, enum kernel_place place,
		       const uint64_t *chain, uint32_t n)
{
	uint32_t i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < k->nplaces; j++)
			if (k->places[j].place == place && chain[i] > k->places[j].start &&
			    chain[i] < k->places[j].end)
				return true;
	return false;
}

/* ELF notes, one of them "GNU" type 3. */
void kernel_build_id(struct object_key *key)
{
	struct buf notes = {0};
	struct cursor c;
	uint32_t head[3];                    /* bytes of name and body, type */

	os_load("/sys/kernel/notes", 65536, &notes, NULL);
	for (c = cursor_over(notes.data, notes.len); cursor_get(&c, head, sizeof(head));) {
		const uint8_t *name = cursor_take(&c, (head[0] + UINT64_C(3)) & ~UINT64_C(3));
		const uint8_t *body = cursor_take(&c, (head[1] + UINT64_C(3)) & ~UINT64_C(3));

		if (!name || !body)
			break;
		if (head[2] == 3 && head[0] == 4 && memcmp(name, "GNU", 4) == 0 &&
		    head[1] <= BUILD_ID_MAX) {
			key->build_id_bytes = (uint8_t)head[1];
			memcpy(key->build_id, body, head[1]);
		}
	}
	buf_free(&notes);
}
