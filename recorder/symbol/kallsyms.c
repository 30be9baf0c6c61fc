/*
 * /proc/kallsyms, one symbol a line (source: kernel/kallsyms.c, s_show(); proc(5)):
 *
 *   ffffffff81000000 T _text LF
 *   ffffffffc0a03010 t ext4_sync_fs TAB [ext4] LF
 *   address in hex, blank, type (T, t, W, w = code), blank, name; then TAB [module]
 *
 * Not sorted as a whole: modules, BPF programs and trampolines follow the kernel proper.
 */
#include "symbol/kallsyms.h"

#include "base/array.h"
#include "base/os.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/text_table.h"
#include "symbol/reader.h"

#include <stdlib.h>
#include <string.h>

struct entry {
	uint64_t address;
	uint32_t name;                 /* in names */
	uint16_t module;               /* number in modules + 1; 0 = the kernel proper */
	uint8_t rank;                  /* among the names of one address; larger wins */
	bool ends;                     /* an end mark after the last function, not a function */
};

struct kallsyms {
	uint64_t base;
	struct entry *entries;
	uint32_t nentries, capacity;
	struct buf names;              /* NUL-terminated, one after another */
	struct text_table modules;
	uint64_t stext;
	bool hidden;                   /* a function without an address */
	int failed;                    /* an error of kallsyms_add() */
};

enum { MODULES_MAX = 16384, RANK_GLOBAL = 16, RANK_UNDERSCORES = 7 };

/* ---- lines ----------------------------------------------------------------------------------- */

static void parse_line(const char *at, const char *end, struct kallsyms_line *out)
{
	const char *start = at, *tab;
	int digit;

	for (; at < end && at - start < 16 && (digit = hex_digit(*at)) >= 0; at++)
		out->address = out->address << 4 | (unsigned)digit;
	if (at == start || end - at < 4 || at[0] != ' ' || at[2] != ' ')
		return;
	out->name = at + 3;
	tab = memchr(out->name, '\t', (size_t)(end - out->name));
	out->name_bytes = (size_t)((tab ? tab : end) - out->name);
	if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']') {
		out->module = tab + 2;
		out->module_bytes = (size_t)(end - 1 - out->module);
	}
	if (out->name_bytes)
		out->type = at[1];
}

bool kallsyms_next(const char **at, const char *end, struct kallsyms_line *out)
{
	const char *lf;

	memset(out, 0, sizeof(*out));
	if (*at >= end)
		return false;
	lf = memchr(*at, '\n', (size_t)(end - *at));
	parse_line(*at, lf ? lf : end, out);
	*at = lf ? lf + 1 : end;
	return true;
}

int kallsyms_hidden(struct err *err)
{
	return err_set(err, ERR_ACCESS, "the kernel hides its addresses: run as root, or with "
		       "CAP_SYSLOG and sysctl kernel.kptr_restrict at most 1");
}

/* ---- building -------------------------------------------------------------------------------- */

static bool is_named(const struct kallsyms_line *line, const char *name)
{
	return strlen(name) == line->name_bytes && !memcmp(line->name, name, line->name_bytes);
}

static uint8_t rank_of(const struct kallsyms_line *line)
{
	unsigned rank = line->type == 'T' ? RANK_GLOBAL + RANK_UNDERSCORES : RANK_UNDERSCORES;
	size_t i;

	for (i = 0; i < RANK_UNDERSCORES && i < line->name_bytes && line->name[i] == '_'; i++)
		rank--;
	return (uint8_t)rank;
}

static int add_function(struct kallsyms *k, const struct kallsyms_line *line)
{
	struct entry e = {.address = line->address, .rank = rank_of(line)};
	uint32_t module;

	if (k->nentries == KALLSYMS_FUNCTIONS_MAX)
		return ERR_LIMIT;
	if (ARRAY_ROOM(k->entries, k->capacity, k->nentries + 1))
		return ERR_MEMORY;
	if (line->module) {
		module = text_table_add(&k->modules, line->module, line->module_bytes);
		if (module >= MODULES_MAX)
			return module == TABLE_NONE ? ERR_MEMORY : ERR_LIMIT;
		e.module = (uint16_t)(module + 1);
	}
	e.ends = is_named(line, "_etext") || is_named(line, "_einittext");
	e.name = (uint32_t)k->names.len;
	buf_put(&k->names, line->name, line->name_bytes);
	buf_putc(&k->names, '\0');
	k->entries[k->nentries++] = e;
	return k->names.failed;
}

static bool is_code(char type)
{
	return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

/* A third of the lines is data, which is seen behind an address of 16 digits. */
static bool next_function(const char **at, const char *end, struct kallsyms_line *out)
{
	while (*at < end) {
		const char *line = *at, *lf = memchr(line, '\n', (size_t)(end - line));

		if (lf && lf - line > 17 && line[16] == ' ' && !is_code(line[17]) &&
		    !memchr(line, ' ', 16)) {
			*at = lf + 1;
		} else {
			kallsyms_next(at, end, out);
			if (is_code(out->type))
				return true;
		}
	}
	return false;
}

struct kallsyms *kallsyms_new(void)
{
	struct kallsyms *k = calloc(1, sizeof(*k));

	if (k)
		k->names.max_bytes = KALLSYMS_MAX_BYTES;
	return k;
}

int kallsyms_add(void *to, const char *text, size_t n)
{
	struct kallsyms *k = to;
	const char *at = text, *end = text + n;
	struct kallsyms_line line;

	while (!k->failed && next_function(&at, end, &line)) {
		if (!line.address) {
			k->hidden = true;
			continue;
		}
		if (!line.module && is_named(&line, "_text"))
			k->base = line.address;
		if (!line.module && is_named(&line, "_stext"))
			k->stext = line.address;
		k->failed = add_function(k, &line);
	}
	return k->failed;
}

/* Keep the best name for each address. */
static void drop_aliases(struct kallsyms *k)
{
	struct entry *last = NULL;
	uint32_t i, used = 0;

	for (i = 0; i < k->nentries; i++) {
		const struct entry *e = &k->entries[i];

		if (!last || last->address != e->address)
			*(last = &k->entries[used++]) = *e;
		else if (e->rank > last->rank)
			*last = *e;
	}
	k->nentries = used;
}

/* The kernel proper is sorted already: what follows it is sorted and merged from the end. */
static int sort_entries(struct kallsyms *k)
{
	uint32_t n = k->nentries, sorted = 1, rest, i;
	struct sort_item *items;
	struct entry *tail;
	bool has_room;

	while (sorted < n && k->entries[sorted - 1].address <= k->entries[sorted].address)
		sorted++;
	rest = n - sorted;
	items = malloc((2 * (size_t)rest + 1) * sizeof(*items));
	tail = malloc(((size_t)rest + 1) * sizeof(*tail));
	has_room = items && tail;
	if (has_room) {
		for (i = 0; i < rest; i++)
			items[i] = (struct sort_item){k->entries[sorted + i].address, {i, 0}};
		sort_items(items, items + rest, rest);
		for (i = 0; i < rest; i++)
			tail[i] = k->entries[sorted + items[i].value[0]];
		while (rest)
			k->entries[--n] = sorted && k->entries[sorted - 1].address >
							    tail[rest - 1].address
						  ? k->entries[--sorted]
						  : tail[--rest];
		drop_aliases(k);
	}
	free(items);
	free(tail);
	return has_room ? 0 : ERR_MEMORY;
}

static int finish(struct kallsyms *k, struct err *err)
{
	int rc = k->failed;

	if (!k->base)
		k->base = k->stext;
	if (!rc && !k->nentries)
		return k->hidden ? kallsyms_hidden(err)
				 : err_set(err, ERR_FORMAT,
					   "the kernel's symbol list has no function");
	if (!rc && !k->base)
		return err_set(err, ERR_FORMAT, "the kernel's symbol list lacks _text and _stext");
	if (!rc)
		rc = sort_entries(k);
	if (rc == ERR_MEMORY)
		return err_memory(err, "for the kernel's symbols");
	if (rc)
		return err_set(err, rc, "the kernel lists more functions or modules than %u and %d",
			       KALLSYMS_FUNCTIONS_MAX, MODULES_MAX);
	return 0;
}

int kallsyms_finish(struct kallsyms *k, int rc, struct err *err)
{
	if (k->failed || !rc)
		rc = finish(k, err);
	if (rc)
		kallsyms_free(k);
	return rc;
}

int kallsyms_parse(const char *text, size_t n, struct kallsyms **out, struct err *err)
{
	struct kallsyms *k = kallsyms_new();
	int rc;

	if (!k)
		return err_memory(err, "for the kernel's symbols");
	rc = kallsyms_finish(k, kallsyms_add(k, text, n), err);
	if (!rc)
		*out = k;
	return rc;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->entries);
	buf_free(&k->names);
	text_table_free(&k->modules);
	free(k);
}

/* ---- asking ---------------------------------------------------------------------------------- */

uint64_t kallsyms_base(const struct kallsyms *k)
{
	return k->base;
}

uint32_t kallsyms_count(const struct kallsyms *k)
{
	return k->nentries;
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	return sizeof(*k) + k->capacity * sizeof(*k->entries) + k->names.cap + k->modules.bytes;
}

bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct kernel_function *out)
{
	uint32_t n = sorted_upto(k->entries, k->nentries, sizeof(*k->entries), 8, address);
	const struct entry *e = n ? &k->entries[n - 1] : NULL;

	if (!e || e->ends || address - e->address >= KALLSYMS_FUNCTION_MAX_BYTES)
		return false;
	out->address = e->address;
	out->name = k->names.data + e->name;
	out->module = e->module ? text_table_get(&k->modules, e->module - 1u) : NULL;
	return true;
}

/* ---- from one user to another ---------------------------------------------------------------- */

#define GIVEN_WITHIN_NS NS_PER_SEC

struct kallsyms_text {
	struct os_mutex *lock;         /* guards what follows */
	struct os_cond *changed;
	struct buf text;
	uint64_t modules;
	bool promised, given, over;    /* over: taken or dropped, or it could not be read */
};

struct kallsyms_text *kallsyms_text_new(void)
{
	struct kallsyms_text *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->lock = os_mutex_new();
	t->changed = os_cond_new();
	if (t->lock && t->changed)
		return t;
	kallsyms_text_free(t);
	return NULL;
}

void kallsyms_text_free(struct kallsyms_text *t)
{
	if (!t)
		return;
	buf_free(&t->text);
	os_cond_free(t->changed);
	os_mutex_free(t->lock);
	free(t);
}

void kallsyms_text_promise(struct kallsyms_text *t)
{
	if (!t)
		return;
	os_mutex_lock(t->lock);
	t->promised = true;
	os_mutex_unlock(t->lock);
}

void kallsyms_text_give(struct kallsyms_text *t, struct buf *text, uint64_t modules)
{
	if (t) {
		os_mutex_lock(t->lock);
		if (!t->given && !t->over && text->len) {
			t->text = *text;
			t->modules = modules;
			t->given = true;
			memset(text, 0, sizeof(*text));
		}
		t->over |= !t->given;
		os_cond_broadcast(t->changed);
		os_mutex_unlock(t->lock);
	}
	buf_free(text);
}

bool kallsyms_text_take(struct kallsyms_text *t, struct buf *out, uint64_t *modules)
{
	uint64_t end_ns = os_now_ns() + GIVEN_WITHIN_NS, now_ns;
	bool taken;

	if (!t)
		return false;
	os_mutex_lock(t->lock);
	while (t->promised && !t->given && !t->over && (now_ns = os_now_ns()) < end_ns)
		os_cond_wait(t->changed, t->lock, end_ns - now_ns);
	taken = t->given && !t->over;
	t->over = true;
	if (taken) {
		*out = t->text;
		*modules = t->modules;
		memset(&t->text, 0, sizeof(t->text));
	}
	os_mutex_unlock(t->lock);
	return taken;
}

void kallsyms_text_drop(struct kallsyms_text *t)
{
	if (!t)
		return;
	os_mutex_lock(t->lock);
	t->over = true;
	buf_free(&t->text);
	os_cond_broadcast(t->changed);
	os_mutex_unlock(t->lock);
}

/* ---- what has its name in its object --------------------------------------------------------- */

/*
 * BPF programs, trampolines and the like: their record gave the name, and the object carries it
 * (source/perf/kernel_symbols.h). Modules are named as in kallsyms.
 */
struct ksymbol_table {
	struct symbol_table base;
	const struct object *object;
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_KERNEL && object->key.path[0] != '[';
}

static int open_ksymbol(const struct symbol_env *env, const struct object *object, uint32_t pid,
			struct symbol_table **out, struct err *err)
{
	struct ksymbol_table *t = calloc(1, sizeof(*t));

	(void)env;
	(void)pid;
	if (!t)
		return err_memory(err, "for a kernel symbol");
	t->base.reader = &ksymbol_reader;
	t->base.bytes = sizeof(*t);
	t->object = object;
	*out = &t->base;
	return 0;
}

static const char *module_of(const char *name)
{
	if (!strncmp(name, "ftrace", 6))
		return "__builtin__ftrace";
	return strncmp(name, "kprobe", 6) ? "bpf" : "__builtin__kprobes";
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	const struct ksymbol_table *t = (struct ksymbol_table *)table;
	const char *name = t->object->key.path;

	(void)offset;
	*out = (struct symbol){.name = name, .module = module_of(name)};
	return true;
}

static void close_ksymbol(struct symbol_table *table)
{
	free(table);
}

const struct symbol_reader ksymbol_reader = {
	.reads = reads,
	.open = open_ksymbol,
	.find = find,
	.close = close_ksymbol,
};
