#include "symbol/cache.h"

#include "base/os.h"
#include "base/table.h"
#include "base/text_table.h"
#include "symbol/symbol_open.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_NS (10 * NS_PER_MS)
#define RETRY_LAST_NS (10 * NS_PER_SEC)
#define REST_AFTER_NS (10 * NS_PER_SEC)

enum { FAILURES_LOGGED = 20 };

struct entry {
	struct object *object;         /* referenced; NULL = a free entry */
	uint64_t file_system;          /* see symbol_file_system() */
	struct symbol_table *table;    /* NULL = could not be opened */
	uint32_t pid;                  /* the last one tried */
	uint32_t failures;
	uint64_t retry_ns, used_ns;
	uint64_t use;                  /* the higher, the later it was used */
	size_t bytes;
	bool has_idle_work;            /* and idle_work counts it */
};

/*
 * A table may hold its file open to read names from it (elf.h). An open file keeps its mount busy
 * and, once deleted, its disk space, and a recorder must not do that for long: at most
 * SYMBOL_FILES_MAX files, and none unused for REST_AFTER_NS.
 *
 * The least recently used entry is searched for, 0.1 ms at most, when something must go: beside
 * opening and closing of files that is little.
 */
struct cache {
	const struct symbol_env *env;
	const struct cache_gate *gate;
	struct log *log;
	struct table by_object;        /* object number -> entry */
	uint32_t nentries;             /* the first that were ever used; later ones are free */
	uint64_t uses;
	struct symbols_use use;        /* as far as it is about objects */
	uint32_t idle_work;            /* tables that have some */
	size_t max_bytes;
	unsigned logged;               /* failures reported */
	struct text_table told;        /* whose: build ids and paths */
	struct entry entries[SYMBOL_OBJECTS_MAX];
};

struct cache *cache_new(const struct symbol_env *env, const struct cache_gate *gate,
			struct log *log)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->env = env;
	c->gate = gate;
	c->log = log;
	c->max_bytes = SYMBOL_CACHE_BYTES;
	return c;
}

/* ---- entries --------------------------------------------------------------------------------- */

static uint64_t object_hash(const struct object *object)
{
	return hash_u64(object->number);
}

static bool same_object(const void *ctx, uint32_t value, const void *key)
{
	const struct cache *c = ctx;

	return c->entries[value].object == key;
}

static bool enter(struct cache *c, const struct entry *e)
{
	return c->gate->enter(c->gate->ctx, e->object, e->file_system);
}

static void close_file(struct cache *c, struct entry *e)
{
	if (!e->table || !e->table->holds_file)
		return;
	enter(c, e);                         /* what is open must be closed */
	e->table->reader->rest(e->table);
	c->use.files_open--;
}

static void close_table(struct cache *c, struct entry *e)
{
	if (!e->table) {
		c->use.objects_failed--;
		return;
	}
	close_file(c, e);
	c->idle_work -= e->has_idle_work;
	e->has_idle_work = false;
	enter(c, e);
	e->table->reader->close(e->table);
	e->table = NULL;
	c->use.cache_bytes -= e->bytes;
	e->bytes = 0;
	c->use.objects_open--;
}

static void evict(struct cache *c, struct entry *e)
{
	close_table(c, e);
	table_remove(&c->by_object, object_hash(e->object), (uint32_t)(e - c->entries));
	object_drop(e->object, 0);
	memset(e, 0, sizeof(*e));
}

/* Which entries may go. */
static bool is_used(const struct entry *e)
{
	return e->object != NULL;
}

static bool is_open(const struct entry *e)
{
	return e->table != NULL;
}

static bool holds_file(const struct entry *e)
{
	return e->table && e->table->holds_file;
}

/* The least recently used of those that may go, never the newest entry; NULL = there is none. */
static struct entry *find_oldest(struct cache *c, bool (*may_go)(const struct entry *e))
{
	struct entry *e, *oldest = NULL;

	for (e = c->entries; e < c->entries + c->nentries; e++)
		if (may_go(e) && e->use != c->uses && (!oldest || e->use < oldest->use))
			oldest = e;
	return oldest;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	while (c->nentries--)
		if (c->entries[c->nentries].object)
			evict(c, &c->entries[c->nentries]);
	table_free(&c->by_object);
	text_table_free(&c->told);
	free(c);
}

static struct entry *find_entry(struct cache *c, const struct object *object)
{
	uint32_t at = table_find(&c->by_object, object_hash(object), same_object, c, object);

	return at == TABLE_NONE ? NULL : &c->entries[at];
}

/* Add an entry without a table; it counts as failed until it has one. */
static struct entry *add_entry(struct cache *c, struct object *object, uint32_t pid)
{
	struct entry *e = c->entries;

	while (e < c->entries + c->nentries && e->object)
		e++;
	if (e == c->entries + SYMBOL_OBJECTS_MAX) {
		e = find_oldest(c, is_used);
		evict(c, e);
	}
	if (table_add(&c->by_object, object_hash(object), (uint32_t)(e - c->entries)))
		return NULL;
	if (e == c->entries + c->nentries)
		c->nentries++;
	e->object = object;
	object_ref(object);
	c->use.objects_failed++;
	enter(c, e);
	e->file_system = symbol_file_system(object, pid);
	return e;
}

/* ---- opening --------------------------------------------------------------------------------- */

static const struct symbol_reader *reader_of(const struct cache *c, const struct object *object)
{
	const struct symbol_reader *const *at = c->env->readers;

	for (at = at ? at : symbol_readers; *at; at++) {
		if (!((*at)->live && c->env->foreign) && (*at)->reads(object))
			return *at;
	}
	return NULL;
}

/*
 * Every container and every sandbox maps a copy of the same library, each an object of its own: say
 * once what is wrong with it. At most FAILURES_LOGGED are told.
 */
static bool is_told(struct cache *c, const struct object_key *key)
{
	const char *id = (const char *)key->build_id;
	size_t nid = key->build_id_bytes, npath = strlen(key->path);

	if (text_table_find(&c->told, key->path, npath) != TABLE_NONE ||
	    (nid && text_table_find(&c->told, id, nid) != TABLE_NONE))
		return true;
	text_table_add(&c->told, key->path, npath);
	if (nid)
		text_table_add(&c->told, id, nid);
	return false;
}

static void note_failure(struct cache *c, struct entry *e, uint64_t now_ns, const struct err *err)
{
	unsigned doublings = e->failures < 10 ? e->failures : 10;
	uint64_t wait_ns = RETRY_FIRST_NS << doublings;

	e->retry_ns = now_ns + (wait_ns < RETRY_LAST_NS ? wait_ns : RETRY_LAST_NS);
	e->failures++;
	c->use.failed++;
	/* Nobody could fix these: not ELF (Wine maps PE files), or a file of another machine,
	   where its path may well hold another build. */
	if (e->failures > 1 || err->code == ERR_UNSUPPORTED || c->logged == FAILURES_LOGGED ||
	    (c->env->foreign && (err->code == ERR_NOT_FOUND || err->code == ERR_FORMAT)) ||
	    is_told(c, &e->object->key))
		return;
	log_line(c->log, LOG_WARN, "no function names for %s: %s", e->object->key.path, err->text);
	if (++c->logged == FAILURES_LOGGED)
		log_line(c->log, LOG_INFO, "further objects without names are only counted");
}

/* Make room for the newest entry, which always stays. */
static void trim(struct cache *c)
{
	struct entry *e;

	while (c->use.cache_bytes > c->max_bytes && (e = find_oldest(c, is_open)) != NULL)
		evict(c, e);
	while (c->use.files_open > SYMBOL_FILES_MAX && (e = find_oldest(c, holds_file)) != NULL)
		close_file(c, e);
}

void cache_set_max(struct cache *c, size_t bytes)
{
	if (bytes == c->max_bytes)
		return;
	c->max_bytes = bytes;
	trim(c);
}

/* Take over what the reader changed: its file, its memory, its idle work, and its note. */
static void account(struct cache *c, struct entry *e, bool had_file)
{
	c->use.files_open += e->table->holds_file && !had_file;
	c->use.cache_bytes += e->table->bytes - e->bytes;
	e->bytes = e->table->bytes;
	c->idle_work += e->table->has_idle_work;
	c->idle_work -= e->has_idle_work;
	e->has_idle_work = e->table->has_idle_work;
	if (e->table->note && c->logged < FAILURES_LOGGED) {
		c->logged++;
		log_line(c->log, LOG_WARN, "%s", e->table->note);
	}
	e->table->note = NULL;
}

static void open_entry(struct cache *c, struct entry *e, const struct symbol_reader *reader,
		       uint32_t pid, uint64_t now_ns)
{
	struct err err = {0};

	e->pid = pid;
	if (reader->open(c->env, e->object, pid, &e->table, &err)) {
		note_failure(c, e, now_ns, &err);
		return;
	}
	c->use.objects_open++;
	c->use.objects_failed--;
	account(c, e, false);
	trim(c);
}

static struct entry *open_object(struct cache *c, struct object *object, uint32_t pid)
{
	const struct symbol_reader *reader = reader_of(c, object);
	uint64_t now_ns = os_now_ns();
	struct entry *e;

	if (!reader)
		return NULL;
	if (c->env->foreign)
		pid = 0;
	e = find_entry(c, object);
	if (!e)
		e = add_entry(c, object, pid);
	if (!e || !enter(c, e))
		return NULL;
	e->used_ns = now_ns;
	e->use = ++c->uses;
	/* Another process may be able to show what the first one could not. */
	if (!e->table && (!e->failures || (e->pid != pid && now_ns >= e->retry_ns)))
		open_entry(c, e, reader, pid, now_ns);
	return e->table ? e : NULL;
}

void cache_open(struct cache *c, struct object *object, uint32_t pid)
{
	open_object(c, object, pid);
}

static bool ask_witness(const struct cache *c, const struct object *object, uint64_t offset,
			struct symbol *out)
{
	const struct symbol_witness *w = c->env->witness;

	return w && w->find(w->ctx, object, offset, out);
}

bool cache_find(struct cache *c, struct object *object, uint64_t offset, struct symbol *out)
{
	struct entry *e = find_entry(c, object);
	bool had_file, found;

	/* An existing entry is asked with its own pid: a frame is no new chance. */
	e = open_object(c, object, e ? e->pid : object->pid);
	if (!e || !enter(c, e))              /* opening it may have closed another */
		return ask_witness(c, object, offset, out);
	had_file = e->table->holds_file;
	found = e->table->reader->find(e->table, offset, out);
	account(c, e, had_file);
	trim(c);
	return found || ask_witness(c, object, offset, out);
}

bool cache_has_idle_work(const struct cache *c)
{
	return c->idle_work != 0;
}

void cache_idle(struct cache *c)
{
	struct entry *e = c->entries;
	bool had_file;

	if (!c->idle_work)
		return;
	while (!e->has_idle_work)
		e++;
	had_file = e->table->holds_file;
	enter(c, e);
	e->table->reader->idle(e->table);
	account(c, e, had_file);
}

void cache_rest(struct cache *c, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < c->nentries && c->use.files_open; i++)
		if (now_ns - c->entries[i].used_ns >= REST_AFTER_NS)
			close_file(c, &c->entries[i]);
}

void cache_use(const struct cache *c, struct symbols_use *out)
{
	out->objects_open = c->use.objects_open;
	out->objects_failed = c->use.objects_failed;
	out->files_open = c->use.files_open;
	out->cache_bytes = c->use.cache_bytes;
	out->failed = c->use.failed;
}
