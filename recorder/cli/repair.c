/*
 * verify, salvage, symbolize: what is damaged in a store, what can be read of it, and names that
 * its frames got later.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/table.h"
#include "store/history.h"
#include "symbol/debuginfod.h"
#include "symbol/symbol.h"
#include "symbol/symbol_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_finding(void *ctx, const char *what)
{
	const struct sheet_cell cell = {.key = "finding", .width = 1, .kind = SHEET_NAME,
					.text = what};

	sheet_row(ctx, &cell, 1);
}

/* With --json, the last line. */
static void put_verified(struct sheet *p, const char *path, const struct store_verified *found)
{
	const struct sheet_cell cells[] = {
		{.key = "store", .text = path},
		{.key = "sound", .kind = SHEET_BOOL, .n = !found->findings},
		{.key = "findings", .kind = SHEET_COUNT, .n = found->findings},
		{.key = "incidents", .kind = SHEET_COUNT, .n = found->incidents},
		{.key = "damaged_incidents", .kind = SHEET_COUNT, .n = found->damaged},
	};

	if (p->json)
		sheet_row(p, cells, COUNT_OF(cells));
	else if (!found->findings)
		buf_printf(&p->out, "%s is sound: %" PRIu32 " incident%s\n", path,
			   found->incidents, found->incidents == 1 ? "" : "s");
}

static int print_salvaged(const struct options *o, const char *path,
			  const struct store_salvaged *got, struct err *err)
{
	const struct sheet_cell cells[] = {
		{.key = "store", .text = path},
		{.key = "new_store", .text = o->output},
		{.key = "incidents", .kind = SHEET_COUNT, .n = got->incidents},
		{.key = "partial_incidents", .kind = SHEET_COUNT, .n = got->partial},
		{.key = "unreadable_parts", .kind = SHEET_COUNT, .n = got->unreadable},
	};
	struct sheet sheet;
	int rc;

	if (!o->json) {
		cmd_note("%s has %" PRIu32 " incident%s now, %" PRIu32 " of them with parts missing"
			 "; %" PRIu64 " rows or pages of %s could not be read", o->output,
			 got->incidents, got->incidents == 1 ? "" : "s", got->partial,
			 got->unreadable, path);
		return 0;
	}
	sheet_init(&sheet, o);
	sheet_row(&sheet, cells, COUNT_OF(cells));
	rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	return rc;
}

/* The operand names the store, too. */
static int find_store(const struct options *o, struct buf *path, struct err *err)
{
	if (!o->pattern)
		return cmd_store_path(o, STORE_READ, path, err);
	if (options_origin(o, "store") == FROM_ARGS)
		return err_set(err, ERR_USAGE, "two stores: '%.200s' and --store '%.200s'",
			       o->pattern, o->store);
	buf_puts(path, o->pattern);
	return buf_check(path, "the store's name", err);
}

/* So damaged that it cannot be opened, or no store at all. */
static void put_unopened(struct sheet *p, const char *path, const struct err *err)
{
	const struct store_verified found = {.findings = 1};

	if (!p->json)
		return;
	put_finding(p, err->text);
	put_verified(p, path, &found);
	sheet_print(p, NULL);
}

int cmd_verify(const struct options *o, struct err *err)
{
	struct store_verified found;
	struct store *store = NULL;
	struct buf path = {0};
	struct sheet sheet;
	int rc = find_store(o, &path, err);

	sheet_init(&sheet, o);
	sheet.columns = FIT_ALL;
	if (!rc)
		rc = cmd_store_open_at(o, buf_text(&path), STORE_READ, &store, err);
	if (rc == ERR_FORMAT)
		put_unopened(&sheet, buf_text(&path), err);
	if (!rc)
		rc = store_verify(store, put_finding, &sheet, &found, err);
	if (!rc)
		put_verified(&sheet, store_path(store), &found);
	if (!rc)
		rc = sheet_print(&sheet, err);
	if (!rc && found.findings)
		rc = err_set(err, ERR_FORMAT, "%s is damaged; of %" PRIu32 " incident%s %" PRIu32
			     " cannot be read in full: `recorder salvage %s -o NEW` puts what is "
			     "readable into a new store", store_path(store), found.incidents,
			     found.incidents == 1 ? "" : "s", found.damaged, store_path(store));
	sheet_free(&sheet);
	buf_free(&path);
	store_close(store);
	return rc;
}

int cmd_salvage(const struct options *o, struct err *err)
{
	struct store_salvaged got;
	struct buf path = {0};
	int rc = find_store(o, &path, err);

	if (!rc && !o->output)
		rc = err_set(err, ERR_USAGE, "where to? recorder salvage STORE -o NEW");
	if (!rc)
		rc = store_salvage(buf_text(&path), o->output, &got, err);
	if (!rc)
		rc = print_salvaged(o, buf_text(&path), &got, err);
	if (!rc && !got.incidents)
		rc = err_set(err, ERR_NOT_FOUND, "no incident of %s could be read",
			     buf_text(&path));
	buf_free(&path);
	return rc;
}

/* ---- symbolize ------------------------------------------------------------------------------- */

#define NAMES_NS (300 * NS_PER_SEC)

struct needed_module {
	int64_t id;
	struct object *object;               /* NULL = nothing identifies it */
	uint64_t left;                       /* frames without a name */
};

struct symbolizing {
	const struct options *o;
	struct store *store;
	struct store_unnamed unnamed;
	struct frame **frames;               /* as unnamed.frames; NULL = not to be named */
	struct frame **asked;                /* of these, those that are there */
	uint32_t *module_of, nasked;
	struct needed_module *modules;
	uint32_t nmodules;
	struct table by_id;
	struct frames *table;
	struct log *log;
	struct buf path, servers;            /* of directories; of debuginfod */
	struct symbol_env env;
	bool hangs;                          /* a worker does, and has all of this for good */
};

static bool same_module(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct symbolizing *)ctx)->modules[value].id == *(const int64_t *)key;
}

/* A file with a build id, or a PDB's; anything else was itself in one run of a recorder only. */
static int add_module(struct symbolizing *s, int64_t id, uint32_t *index, struct err *err)
{
	struct object_key key;
	struct buf path = {0};
	struct object *object = NULL;
	int rc = store_module(s->store, id, &key, &path, err);

	if (!rc && key.build_id_bytes && (key.kind == OBJECT_ELF || key.kind == OBJECT_PE))
		object = objects_get(s->table, &key, 0);
	buf_free(&path);
	if (rc && rc != ERR_NOT_FOUND)
		return rc;
	if (ARRAY_NEXT(s->modules, s->nmodules) ||
	    table_add(&s->by_id, hash_u64((uint64_t)id), s->nmodules))
		return err_memory(err, "for modules");
	*index = s->nmodules;
	s->modules[s->nmodules++] = (struct needed_module){.id = id, .object = object};
	return 0;
}

static int add_frame(struct symbolizing *s, uint32_t i, struct err *err)
{
	const struct store_unnamed_frame *f = &s->unnamed.frames[i];
	struct frame_ref ref = {.offset = f->offset, .flags = f->flags};
	uint32_t at, number;
	bool fresh;
	int rc = 0;

	at = table_find(&s->by_id, hash_u64((uint64_t)f->module_id), same_module, s,
			&f->module_id);
	if (at == TABLE_NONE)
		rc = add_module(s, f->module_id, &at, err);
	if (rc)
		return rc;
	s->module_of[i] = at;
	ref.object = s->modules[at].object;
	number = ref.object ? frames_intern(s->table, &ref, &fresh) : FRAME_NONE;
	if (number == FRAME_NONE)
		return 0;
	s->frames[i] = frame_get(s->table, number);
	frame_ref(s->frames[i]);
	s->asked[s->nasked++] = s->frames[i];
	return 0;
}

static int list_frames(struct symbolizing *s, struct err *err)
{
	size_t n = s->unnamed.n;
	uint32_t i;
	int rc = 0;

	s->frames = calloc(n + 1, sizeof(struct frame *));
	s->asked = calloc(n + 1, sizeof(struct frame *));
	s->module_of = calloc(n + 1, sizeof(*s->module_of));
	if (!s->frames || !s->asked || !s->module_of)
		return err_memory(err, "for frames without a name");
	for (i = 0; !rc && i < n; i++)
		rc = add_frame(s, i, err);
	return rc;
}

/* A worker of its own each time, because it remembers what it did not find. */
static int ask_readers(struct symbolizing *s, struct err *err)
{
	struct symbols *symbols = NULL;
	uint32_t i;
	int rc;

	s->env = (struct symbol_env){.path = buf_text(&s->path), .foreign = true,
				     .sandboxed = true};
	rc = symbols_open(s->table, &s->env, s->log, &symbols, err);
	if (rc)
		return rc;
	symbols_settle(symbols, s->asked, s->nasked, NAMES_NS);
	s->hangs = !symbols_close(symbols);
	if (s->hangs)
		return err_set(err, ERR_IO, "a file system of %s does not answer",
			       buf_text(&s->path));
	for (i = 0; i < s->nmodules; i++)
		s->modules[i].left = 0;
	for (i = 0; i < s->unnamed.n; i++) {
		s->unnamed.frames[i].function =
			s->frames[i] ? atomic_load(&s->frames[i]->function) : NULL;
		s->modules[s->module_of[i]].left += !s->unnamed.frames[i].function;
	}
	return 0;
}

static int ask_servers(struct symbolizing *s, struct err *err)
{
	struct debuginfod *d = NULL;
	bool got = false;
	uint32_t i;
	int rc = debuginfod_open(buf_text(&s->servers), &d, err);

	if (rc)
		return rc;
	for (i = 0; i < s->nmodules; i++) {
		const struct needed_module *m = &s->modules[i];
		const struct object_key *key = m->object ? &m->object->key : NULL;
		int why;

		if (!m->left || !key || key->kind != OBJECT_ELF)
			continue;
		why = debuginfod_fetch(d, key->build_id, key->build_id_bytes, &s->path, err);
		got |= !why;
		if (why && why != ERR_NOT_FOUND)
			cmd_note("%s was not fetched: %s", key->path, err->text);
	}
	debuginfod_close(d);
	return got ? ask_readers(s, err) : 0;
}

static int most_left_first(const void *a, const void *b)
{
	const struct needed_module *x = a, *y = b;

	if (x->left != y->left)
		return x->left < y->left ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

static void put_module(struct sheet *p, const struct needed_module *m)
{
	char id[2 * BUILD_ID_MAX + 1];
	const struct sheet_cell cells[] = {
		{.key = "frames", .head = "FRAMES", .width = 8, .kind = SHEET_COUNT,
		 .n = m->left},
		{.key = "build_id", .head = "BUILD ID", .width = -40, .text = id},
		{.key = "module", .head = "MODULE", .kind = SHEET_NAME,
		 .text = m->object->key.path},
	};
	unsigned i;

	for (i = 0; i < m->object->key.build_id_bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", m->object->key.build_id[i]);
	if (!p->json && p->out.len == 0)
		sheet_heading(p, cells, COUNT_OF(cells));
	sheet_row(p, cells, COUNT_OF(cells));
}

/* What is left: which files would name it, largest first; what no file can name. */
static int print_left(struct symbolizing *s, uint32_t named, struct err *err)
{
	char one[NUMBER_BYTES], all[NUMBER_BYTES];
	uint64_t left = 0, unknown = 0;
	struct sheet sheet;
	uint32_t i;
	int rc;

	sheet_init(&sheet, s->o);
	if (s->nmodules)
		qsort(s->modules, s->nmodules, sizeof(*s->modules), most_left_first);
	for (i = 0; i < s->nmodules; i++) {
		*(s->modules[i].object ? &left : &unknown) += s->modules[i].left;
		if (s->modules[i].left && s->modules[i].object)
			put_module(&sheet, &s->modules[i]);
	}
	rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	if (s->unnamed.n)
		cmd_note("%s of %s frames got names", text_count(named, one),
			 text_count(s->unnamed.n, all));
	else
		cmd_note("every frame of %s has a name", store_path(s->store));
	if (unknown)
		cmd_note("%s frames cannot be named later: their code was generated, or its file "
			 "has no build id", text_count(unknown, one));
	if (!rc && !named && left)
		rc = err_set(err, ERR_NOT_FOUND, "no name was found: name directories or servers "
			     "that have the files above by --symbol-path 'DIR;https://...'");
	return rc;
}

static void symbolizing_free(struct symbolizing *s)
{
	uint32_t i;

	for (i = 0; i < s->nasked; i++)
		frame_unref(s->asked[i]);
	free(s->frames);
	free(s->asked);
	free(s->module_of);
	free(s->modules);
	table_free(&s->by_id);
	store_unnamed_free(&s->unnamed);
	frames_free(s->table);
	log_close(s->log);
	buf_free(&s->path);
	buf_free(&s->servers);
	store_close(s->store);
	free(s);
}

static int symbolize(struct symbolizing *s, struct err *err)
{
	const struct id_list *ids = &s->o->ids;
	uint32_t named = 0;
	int rc = frames_new(&s->table, err);

	if (!rc)
		rc = log_open(NULL, &s->log, err);
	if (!rc)
		rc = store_unnamed(s->store, ids->items, ids->n, &s->unnamed, err);
	if (!rc)
		rc = list_frames(s, err);
	symbol_path_split(s->o->capture.symbol_path, &s->path, &s->servers);
	if (!rc)
		rc = ask_readers(s, err);
	if (!rc && s->servers.len)
		rc = ask_servers(s, err);
	if (!rc)
		rc = store_name(s->store, &s->unnamed, &named, err);
	return rc ? rc : print_left(s, named, err);
}

static int symbolize_file(const struct options *o, const char *path, struct err *err)
{
	struct symbolizing *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_memory(err, "for names");
	s->o = o;
	rc = cmd_store_open_at(o, path, STORE_EDIT, &s->store, err);
	if (!rc)
		rc = symbolize(s, err);
	if (!s->hangs)
		symbolizing_free(s);
	return rc;
}

/* The files of the history, too. *all: ERR_NOT_FOUND where no file got a name. */
static int symbolize_history(const struct options *o, const char *path, int *all, struct err *err)
{
	struct history_files files = {0};
	uint32_t i;
	int rc = history_list(path, &files, err);

	for (i = 0; !rc && i < files.n; i++) {
		history_look(&files.all[i], false);
		if (files.all[i].readable && files.all[i].open)
			cmd_note("%s is not complete yet: name its frames later",
				 files.all[i].path);
		if (!files.all[i].readable || files.all[i].open)
			continue;
		cmd_note("in %s:", files.all[i].path);
		rc = symbolize_file(o, files.all[i].path, err);
		if (!rc)
			*all = 0;
		else if (rc == ERR_NOT_FOUND)
			rc = 0;
	}
	history_files_free(&files);
	return rc;
}

int cmd_symbolize(const struct options *o, struct err *err)
{
	struct buf path = {0};
	struct err why;
	int rc = find_store(o, &path, err), first;

	if (!rc) {
		first = symbolize_file(o, buf_text(&path), err);
		rc = first == ERR_NOT_FOUND && !o->ids.n ? 0 : first;
		if (!rc && !o->ids.n)
			rc = symbolize_history(o, buf_text(&path), &first, &why);
		if (rc && rc != first)
			*err = why;
		rc = rc ? rc : first;
	}
	buf_free(&path);
	return rc;
}
