/*
 * From what the recorder holds in memory to rows: modules, processes, threads; and the lists of segments.
 *
 * The memory is right as long as only we change the store; data_version, read inside each transaction,
 * says when another program (delete) has. Objects and functions are remembered by address within
 * one call, in which the segment keeps them alive; the few processes and threads are looked up each
 * time.
 */
#include "store/interner_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLED_MAX 4096u                /* then forgotten and learnt again: 100 KB */

int interner_new(struct interner **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return err_memory(err, "for the store's tables");
	return 0;
}

void interner_forget(struct interner *in)
{
	if (!in)
		return;
	table_clear(&in->table);
	in->nframes = 0;
	in->next_frame = 0;
	functions_forget(in);
	texts_forget(in);
	in->next_text = 0;
	idmap_clear(&in->settled);
}

void interner_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame), const void *ctx)
{
	if (!in)
		return;
	frames_keep(in, listed, ctx);
	functions_forget(in);
	texts_forget(in);
	idmap_clear(&in->settled);
}

void interner_free(struct interner *in)
{
	if (!in)
		return;
	table_free(&in->table);
	free(in->frames);
	idmap_free(&in->objects);
	idmap_free(&in->functions);
	idmap_free(&in->processes);
	idmap_free(&in->settled);
	table_free(&in->function_table);
	free(in->function_items);
	buf_free(&in->function_bytes);
	table_free(&in->text_table);
	free(in->texts);
	buf_free(&in->text_bytes);
	columns_free(&in->columns);
	buf_free(&in->ids);
	buf_free(&in->packed);
	buf_free(&in->packed_functions);
	free(in);
}

static int no_memory(struct err *err)
{
	return err_memory(err, "while storing a segment");
}

/* ---- modules -------------------------------------------------------------------------------- */

static void put_hex(struct buf *out, const uint8_t *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf_printf(out, "%02x", bytes[i]);
}

static bool has_global_identity(const struct object_key *key)
{
	return key->build_id_bytes && (key->kind == OBJECT_ELF || key->kind == OBJECT_PE);
}

/* The text that is equal exactly for equal modules; see schema.c. */
static void module_identity(const struct store *s, const struct object_key *key, struct buf *out)
{
	buf_printf(out, "%s:", object_kind_to_text(key->kind));
	put_hex(out, key->build_id, key->build_id_bytes);
	if (has_global_identity(key)) {
		buf_printf(out, ":%s", key->path);
		return;
	}
	buf_printf(out,
		   ":session %" PRId64 ":%" PRIu32 ".%" PRIu32 ":%" PRIu64 ".%" PRIu64 ".%" PRIu64
		   ":%s",
		   s->session_id, key->pid, key->epoch, key->dev, key->ino, key->ino_generation,
		   key->path);
}

static int module_insert(struct store *s, const struct object *object, const char *identity,
			 int64_t *id, struct err *err)
{
	const struct object_key *key = &object->key;
	struct args a;
	int rc = db_statement(s,
			      "INSERT INTO module(identity, session_id, kind, name, path, build_id)"
			      " VALUES(?, ?, ?, ?, ?, ?)",
			      &a, err);

	if (rc)
		return rc;
	arg_text(&a, identity);
	if (has_global_identity(key))
		arg_null(&a);
	else
		arg_int(&a, s->session_id);
	arg_text(&a, object_kind_to_text(key->kind));
	arg_text(&a, object->name);
	arg_text(&a, key->path);
	arg_blob(&a, key->build_id, key->build_id_bytes);
	rc = db_run(s, a.st, err);
	*id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

static int module_find(struct store *s, const struct object *object, int64_t *id, struct err *err)
{
	struct buf identity = {0};
	struct args a;
	int rc;

	module_identity(s, &object->key, &identity);
	rc = buf_check(&identity, "a module's identity", err);
	if (!rc)
		rc = db_statement(s, "SELECT id FROM module WHERE identity=?", &a, err);
	if (!rc) {
		arg_text(&a, identity.data);
		rc = db_int(s, a.st, id, err);
		if (rc == ERR_NOT_FOUND)
			rc = module_insert(s, object, identity.data, id, err);
	}
	buf_free(&identity);
	return rc;
}

int module_id(struct store *s, const struct object *object, int64_t *id, struct err *err)
{
	struct interner *in = s->interner;
	int rc = 0;

	if (in->last_object == object) {
		*id = in->last_module;
		return 0;
	}
	if (!idmap_get(&in->objects, (uintptr_t)object, id)) {
		rc = module_find(s, object, id, err);
		if (!rc && idmap_set(&in->objects, (uintptr_t)object, *id))
			rc = no_memory(err);
	}
	if (!rc) {
		in->last_object = object;
		in->last_module = *id;
	}
	return rc;
}

/* ---- processes and threads ------------------------------------------------------------------ */

struct process_row {
	int64_t id;
	bool same;                           /* nothing new is known */
};

static int process_lookup(struct store *s, struct process *p, struct process_row *row,
			  struct err *err)
{
	struct args a;
	int rc =
		db_statement(s,
			     "SELECT id, name=? AND (cmdline_id IS NOT NULL OR ?) FROM process"
			     " WHERE session_id=? AND pid=? AND start_ns=? AND exec=?",
			     &a, err);

	if (rc)
		return rc;
	arg_text(&a, process_name(p));
	arg_int(&a, !atomic_load(&p->cmdline));
	arg_int(&a, s->session_id);
	arg_u64(&a, p->pid);
	arg_u64(&a, p->start_ns);
	arg_u64(&a, p->exec);
	rc = db_step(s, a.st, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return ERR_NOT_FOUND;
	row->id = sqlite3_column_int64(a.st, 0);
	row->same = sqlite3_column_int(a.st, 1) != 0;
	sqlite3_reset(a.st);
	return 0;
}

/* 0 = none */
static int cmdline_id(struct store *s, struct process *p, int64_t *id, struct err *err)
{
	const char *cmdline = atomic_load(&p->cmdline);

	*id = 0;
	return cmdline ? text_id(s, cmdline, id, err) : 0;
}

static int process_insert(struct store *s, struct process *p, int64_t *id, struct err *err)
{
	int64_t cmdline = 0;
	struct args a;
	int rc = cmdline_id(s, p, &cmdline, err);

	if (!rc)
		rc = db_statement(
			s,
			"INSERT INTO process(session_id, pid, start_ns, exec, parent_pid, name,"
			" cmdline_id) VALUES(?, ?, ?, ?, ?, ?, nullif(?, 0))",
			&a, err);
	if (rc)
		return rc;
	arg_int(&a, s->session_id);
	arg_u64(&a, p->pid);
	arg_u64(&a, p->start_ns);
	arg_u64(&a, p->exec);
	arg_u64(&a, p->parent_pid);
	arg_text(&a, process_name(p));
	arg_int(&a, cmdline);
	rc = db_run(s, a.st, err);
	*id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

static int process_update(struct store *s, struct process *p, int64_t id, struct err *err)
{
	int64_t cmdline = 0;
	struct args a;
	int rc = cmdline_id(s, p, &cmdline, err);

	if (!rc)
		rc = db_statement(s,
				  "UPDATE process SET name=?, cmdline_id=coalesce(cmdline_id, nullif(?, 0))"
				  " WHERE id=?",
				  &a, err);
	if (rc)
		return rc;
	arg_text(&a, process_name(p));
	arg_int(&a, cmdline);
	arg_int(&a, id);
	return db_run(s, a.st, err);
}

static int process_id(struct store *s, struct process *p, int64_t *id, struct err *err)
{
	struct process_row row = {0};
	uint64_t key = (uintptr_t)p;
	int rc;

	if (idmap_get(&s->interner->processes, key, id))
		return 0;
	rc = process_lookup(s, p, &row, err);
	*id = row.id;
	if (rc == ERR_NOT_FOUND)
		rc = process_insert(s, p, id, err);
	else if (!rc && !row.same)
		rc = process_update(s, p, row.id, err);
	if (!rc && idmap_set(&s->interner->processes, key, *id))
		rc = no_memory(err);
	return rc;
}

static int thread_find(struct store *s, const struct thread *t, int64_t process, const char *name,
		       int64_t *id, struct err *err)
{
	struct args a;
	int rc = db_statement(s, "SELECT id FROM thread WHERE process_id=? AND tid=? AND name=?", &a, err);

	if (rc)
		return rc;
	arg_int(&a, process);
	arg_u64(&a, t->tid);
	arg_text(&a, name);
	return db_int(s, a.st, id, err);
}

static int thread_insert(struct store *s, const struct thread *t, int64_t process, const char *name,
			 int64_t *id, struct err *err)
{
	struct args a;
	int rc = db_statement(s, "INSERT INTO thread(process_id, tid, name) VALUES(?, ?, ?)", &a, err);

	if (rc)
		return rc;
	arg_int(&a, process);
	arg_u64(&a, t->tid);
	arg_text(&a, name);
	rc = db_run(s, a.st, err);
	*id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

static int thread_set_row_name(struct store *s, int64_t id, const char *name, struct err *err)
{
	struct args a;
	int rc = db_statement(s, "UPDATE thread SET name=? WHERE id=?", &a, err);

	if (rc)
		return rc;
	arg_text(&a, name);
	arg_int(&a, id);
	return db_run(s, a.st, err);
}

/*
 * A row with its name, else one without a name, which gets it, else a new one. Not by UPDATE ... RETURNING: for
 * that SQLite makes a table in memory each time, and lets it go; a minute of shell scripts has 4,000 threads.
 */
static int thread_id(struct store *s, const struct thread *t, int64_t *id, struct err *err)
{
	int64_t process = 0;
	char name[16];
	int rc = process_id(s, t->process, &process, err);

	if (rc)
		return rc;
	thread_name(t, name);
	rc = thread_find(s, t, process, name, id, err);
	if (rc != ERR_NOT_FOUND)
		return rc;
	rc = name[0] ? thread_find(s, t, process, "", id, err) : ERR_NOT_FOUND;
	if (!rc)
		return thread_set_row_name(s, *id, name, err);
	return rc == ERR_NOT_FOUND ? thread_insert(s, t, process, name, id, err) : rc;
}

/* ---- a segment ------------------------------------------------------------------------------ */

/*
 * Objects and functions may be freed, and their addresses used again, once no segment holds them.
 */
static int begin_call(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	int64_t version = 0;
	struct args a;
	int rc = db_statement(s, "PRAGMA data_version", &a, err);

	if (!rc)
		rc = db_int(s, a.st, &version, err);
	if (rc)
		return rc;
	if (version != in->data_version)
		interner_forget(in);
	in->data_version = version;
	in->last_object = NULL;
	idmap_clear(&in->objects);
	idmap_clear(&in->functions);
	idmap_clear(&in->processes);
	return 0;
}

static int put_threads(struct store *s, const struct segment *segment, struct buf *ids, struct err *err)
{
	struct segment_list list = segment_threads(segment);
	int64_t id = 0;
	uint32_t number;
	int rc = 0;

	while (!rc && segment_next(&list, &number)) {
		rc = thread_id(s, thread_get(segment->process_table, number), &id, err);
		buf_put(ids, &id, sizeof(id));
	}
	return rc ? rc : texts_flush(s, err);
}

static uint32_t count_named(const struct segment *segment)
{
	struct segment_list list = segment_frames(segment);
	uint32_t number, n = 0;

	while (segment_next(&list, &number)) {
		const struct frame *f = frame_get(segment->frame_table, number);

		n += atomic_load_explicit(&f->function, memory_order_relaxed) != NULL;
	}
	return n;
}

int intern_segment(struct store *s, const struct segment *segment, struct buf *lists,
		   struct err *err)
{
	struct interner *in = s->interner;
	int rc = begin_call(s, err);

	in->named = count_named(segment);
	buf_reset(&in->ids);
	if (!rc)
		rc = put_threads(s, segment, &in->ids, err);
	if (!rc)
		rc = intern_frames(s, segment, &in->ids, err);
	if (!rc)
		rc = buf_check(&in->ids, "the lists of a segment", err);
	if (!rc)
		rc = lists_pack(s->deflater, &in->columns, (uint64_t *)(void *)in->ids.data,
				segment->nthreads, segment->nframes, lists, err);
	return rc;
}

int intern_stored(struct store *s, int64_t segment_id, struct err *err)
{
	struct interner *in = s->interner;

	if (in->settled.used >= SETTLED_MAX)
		idmap_clear(&in->settled);
	if (idmap_set(&in->settled, (uint64_t)segment_id, in->named))
		return no_memory(err);
	return 0;
}

/* Without ids when its row is gone or damaged, or is not of this segment: then there is nothing to name. */
static int stored_lists(struct store *s, const struct segment *segment, struct lists *out, struct err *err)
{
	struct blob blob;
	struct args a;
	int rc = db_statement(s, "SELECT lists FROM segment WHERE id=? AND t0_ns=? AND samples=?", &a, err);

	if (rc)
		return rc;
	arg_int(&a, segment->store_id);
	arg_u64(&a, segment->t0_ns);
	arg_u64(&a, segment->nsamples);
	rc = db_step(s, a.st, err);
	if (rc <= 0)
		return rc;
	blob = column_blob(a.st, 0);
	rc = lists_unpack(blob.bytes, blob.n, out, err);
	sqlite3_reset(a.st);
	if (!rc && (out->nthreads != segment->nthreads || out->nframes != segment->nframes)) {
		free(out->ids);
		out->ids = NULL;
	}
	return rc == ERR_FORMAT ? 0 : rc;
}

/* Names are only ever added, so the same count as last time means that none is new. */
int intern_names(struct store *s, const struct segment *segment, struct err *err)
{
	struct interner *in = s->interner;
	struct lists lists = {0};
	int64_t settled = 0;
	int rc = begin_call(s, err);

	in->named = count_named(segment);
	if (rc || (idmap_get(&in->settled, (uint64_t)segment->store_id, &settled) &&
		   settled == in->named))
		return rc;
	rc = stored_lists(s, segment, &lists, err);
	if (!rc && lists.ids)
		rc = name_frames(s, segment, lists.ids + lists.nthreads, err);
	free(lists.ids);
	return rc ? rc : intern_stored(s, segment->store_id, err);
}
