/*
 * Modules, processes, threads -> rows; and the lists of a segment.
 *
 * A row is found by its contents through an index. A file of the history has no indices, which
 * would be written again and again: what this writer has added is known by its contents. Processes
 * and threads are in pages there (intern_tasks.c).
 *
 * What the interner remembers is right as long as only we change the store; data_version, read in
 * each transaction, says when another program (`delete`) has. Objects and processes are remembered
 * by address within one call, in which the segment keeps them alive.
 */
#include "store/interner_private.h"
#include "store/rows_private.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLED_MAX 4096u                /* segments; 100 KB, then all are forgotten */

int interner_new(uint32_t known_max, struct interner **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return err_memory(err, "for the store's tables");
	(*out)->known_max = known_max;
	return 0;
}

static void rows_free(struct known_rows *r)
{
	text_table_free(&r->keys);
	free(r->rows);
	memset(r, 0, sizeof(*r));
}

void interner_forget(struct interner *in)
{
	if (!in)
		return;
	rows_free(&in->rows);
	rows_free(&in->older_rows);
	table_clear(&in->table);
	in->nframes = 0;
	in->next_frame = 0;
	functions_forget(in);
	in->next_function = 0;
	texts_forget(in);
	in->next_text = 0;
	in->next_process = in->next_thread = 0;
	idmap_clear(&in->settled);
}

void interner_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame),
		   const void *ctx)
{
	if (!in)
		return;
	frames_keep(in, listed, ctx);
	functions_forget(in);
	in->next_function = 0;               /* learn from the pages that are left */
	texts_forget(in);
	idmap_clear(&in->settled);
}

void interner_free(struct interner *in)
{
	if (!in)
		return;
	table_free(&in->table);
	free(in->frames);
	table_free(&in->function_table);
	free(in->functions);
	text_table_free(&in->function_names);
	text_table_free(&in->texts);
	rows_free(&in->rows);
	rows_free(&in->older_rows);
	idmap_free(&in->objects);
	idmap_free(&in->processes);
	idmap_free(&in->settled);
	columns_free(&in->columns);
	buf_free(&in->new_processes);
	buf_free(&in->new_threads);
	buf_free(&in->ids);
	buf_free(&in->packed);
	buf_free(&in->packed_functions);
	free(in);
}

/* Remember the id of what is at an address, until the end of the call. */
static int remember_id(struct idmap *map, const void *address, int64_t id, struct err *err)
{
	return idmap_set(map, (uintptr_t)address, id)
		       ? err_memory(err, "while storing a segment") : 0;
}

/* ---- rows of the history -------------------------------------------------------------------- */

int know_row(struct interner *in, const struct buf *key, int64_t id, uint64_t state,
	     struct err *err)
{
	struct known_rows *r = &in->rows;
	uint32_t at = TABLE_NONE;

	if (r->keys.bytes > KNOWN_ROW_BYTES_MAX) {
		rows_free(&in->older_rows);
		in->older_rows = *r;
		memset(r, 0, sizeof(*r));
	}
	if (!key->failed && !ARRAY_ROOM(r->rows, r->cap, r->keys.n + 1))
		at = text_table_add(&r->keys, key->data, key->len);
	if (at == TABLE_NONE)
		return err_memory(err, "while storing a segment");
	r->rows[at] = (struct known_row){id, state};
	return 0;
}

int known_row(struct interner *in, const struct buf *key, int64_t *id, uint64_t *state,
	      struct err *err)
{
	const struct known_rows *r = &in->rows;
	uint32_t at = key->failed ? TABLE_NONE : text_table_find(&r->keys, key->data, key->len);
	bool older = at == TABLE_NONE && !key->failed;

	if (older) {
		r = &in->older_rows;
		at = text_table_find(&r->keys, key->data, key->len);
	}
	*id = at == TABLE_NONE ? 0 : r->rows[at].id;
	*state = *id ? r->rows[at].state : 0;
	if (!*id)
		return ERR_NOT_FOUND;
	return older ? know_row(in, key, *id, *state, err) : 0;
}

/* ---- modules -------------------------------------------------------------------------------- */

static bool has_global_identity(const struct object_key *key)
{
	return key->build_id_bytes && (key->kind == OBJECT_ELF || key->kind == OBJECT_PE);
}

/* A text that two modules share only if they are the same one; see schema.c. */
static void module_identity(const struct store *s, const struct object_key *key, struct buf *out)
{
	size_t i;

	buf_printf(out, "%s:", object_kind_to_text(key->kind));
	for (i = 0; i < key->build_id_bytes; i++)
		buf_printf(out, "%02x", key->build_id[i]);
	if (!has_global_identity(key))
		buf_printf(out,
			   ":session %" PRId64 ":%" PRIu32 ".%" PRIu32 ":%" PRIu64 ".%" PRIu64
			   ".%" PRIu64,
			   s->session_id, key->pid, key->epoch, key->dev, key->ino,
			   key->ino_generation);
	buf_printf(out, ":%s", key->path);
}

static int module_insert(struct store *s, const struct object *object, const char *identity,
			 int64_t *id, struct err *err)
{
	const struct object_key *key = &object->key;
	bool global = has_global_identity(key);
	bool short_row = s->history && strcmp(object->name, key->path) == 0;
	struct argument session = global ? arg_text(NULL) : arg_int(s->session_id);

	return db_insert(s,
			 "INSERT INTO module(identity, session_id, kind, name, path, build_id)"
			 " VALUES(?, ?, ?, ?, ?, ?)",
			 ARGS(arg_text(global || !s->history ? identity : ""), session,
			      arg_text(object_kind_to_text(key->kind)),
			      arg_text(object->name), arg_text(short_row ? "" : key->path),
			      arg_blob(key->build_id, key->build_id_bytes)), id, err);
}

static int module_find(struct store *s, const struct object *object, int64_t *id, struct err *err)
{
	struct buf identity = {0};
	uint64_t state;
	int rc;

	module_identity(s, &object->key, &identity);
	rc = buf_check(&identity, "a module's identity", err);
	if (!rc)
		rc = s->history ? known_row(s->interner, &identity, id, &state, err)
				: db_int(s, "SELECT id FROM module WHERE identity=?",
					 ARGS(arg_text(identity.data)), id, err);
	if (rc == ERR_NOT_FOUND) {
		rc = module_insert(s, object, identity.data, id, err);
		if (!rc && s->history)
			rc = know_row(s->interner, &identity, *id, 0, err);
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
		if (!rc)
			rc = remember_id(&in->objects, object, *id, err);
	}
	if (!rc) {
		in->last_object = object;
		in->last_module = *id;
	}
	return rc;
}

/* ---- processes and threads ------------------------------------------------------------------ */

/*
 * The row with its home, else one without, which gets it. *current: it has the name, the command
 * line and the home.
 */
static int process_lookup(struct store *s, struct process *p, int64_t home, int64_t *id,
			  bool *current, struct err *err)
{
	struct query q = db_query(s,
				  "SELECT id, name=? AND (cmdline_id IS NOT NULL OR ?) AND"
				  " ?3 IN (0, home_id) FROM process WHERE session_id=? AND pid=?"
				  " AND start_ns=? AND exec=? AND (home_id IS NULL OR"
				  " ?3 IN (0, home_id)) ORDER BY id DESC LIMIT 1",
				  ARGS(arg_text(process_name(p)),
				       arg_int(!atomic_load(&p->cmdline)), arg_int(home),
				       arg_int(s->session_id), arg_u64(p->pid),
				       arg_u64(p->start_ns), arg_u64(p->exec)), err);
	int rc = query_step(&q);

	if (rc <= 0)
		return rc ? rc : ERR_NOT_FOUND;
	*id = column_int(&q, 0);
	*current = column_int(&q, 1) != 0;
	query_reset(&q);
	return 0;
}

static int process_insert(struct store *s, struct process *p, int64_t home, int64_t *id,
			  struct err *err)
{
	struct stored_process row = {
		.session_id = s->session_id, .pid = p->pid, .start_ns = p->start_ns,
		.exec = p->exec, .parent_pid = p->parent_pid, .name = process_name(p),
		.home_id = home,
	};
	int rc = text_id_or_none(s, atomic_load(&p->cmdline), &row.cmdline_id, err);

	*id = 0;
	return rc ? rc : process_row_put(s, ROW_IS_NEW, &row, id, err);
}

static int process_update(struct store *s, struct process *p, int64_t home, int64_t id,
			  struct err *err)
{
	int64_t cmdline;
	int rc = text_id_or_none(s, atomic_load(&p->cmdline), &cmdline, err);

	if (rc)
		return rc;
	return db_run(s,
		      "UPDATE process SET name=?, cmdline_id=coalesce(cmdline_id, nullif(?, 0)),"
		      " home_id=coalesce(home_id, nullif(?, 0)) WHERE id=?",
		      ARGS(arg_text(process_name(p)), arg_int(cmdline), arg_int(home), arg_int(id)),
		      err);
}

/* As it was at a moment of the recorder clock. */
static int process_id(struct store *s, struct process *p, uint64_t at_ns, int64_t *id,
		      struct err *err)
{
	bool current = false;
	int64_t home;
	int rc;

	if (idmap_get(&s->interner->processes, (uintptr_t)p, id))
		return 0;
	rc = text_id_or_none(s, process_home_at(p, at_ns), &home, err);
	if (!rc)
		rc = process_lookup(s, p, home, id, &current, err);
	if (rc == ERR_NOT_FOUND)
		rc = process_insert(s, p, home, id, err);
	else if (!rc && !current)
		rc = process_update(s, p, home, *id, err);
	return rc ? rc : remember_id(&s->interner->processes, p, *id, err);
}

static int thread_find(struct store *s, const struct thread *t, int64_t process, const char *name,
		       int64_t *id, struct err *err)
{
	return db_int(s, "SELECT id FROM thread WHERE process_id=? AND tid=? AND name=?",
		      ARGS(arg_int(process), arg_u64(t->tid), arg_text(name)), id, err);
}

/*
 * The row with the thread's name, else one without a name, which gets it, else a new one. UPDATE
 * ... RETURNING would be shorter, but SQLite makes and drops a table in memory for each; a minute
 * of shell scripts has 4,000 threads.
 */
static int thread_id(struct store *s, const struct thread *t, uint64_t at_ns, int64_t *id,
		     struct err *err)
{
	struct stored_thread row;
	int64_t process = 0;
	char name[16];
	int rc = process_id(s, t->process, at_ns, &process, err);

	if (rc)
		return rc;
	thread_name(t, name);
	rc = thread_find(s, t, process, name, id, err);
	if (rc != ERR_NOT_FOUND)
		return rc;
	rc = name[0] ? thread_find(s, t, process, "", id, err) : ERR_NOT_FOUND;
	if (!rc)
		return db_run(s, "UPDATE thread SET name=? WHERE id=?",
			      ARGS(arg_text(name), arg_int(*id)), err);
	if (rc != ERR_NOT_FOUND)
		return rc;
	row = (struct stored_thread){.process_id = process, .tid = t->tid, .name = name};
	*id = 0;
	return thread_row_put(s, ROW_IS_NEW, &row, id, err);
}

/* ---- a segment ------------------------------------------------------------------------------ */

/* Objects may be freed, and their addresses used again, once no segment holds them. */
static int begin_call(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	int64_t version = 0;
	int rc = db_int(s, "PRAGMA data_version", NO_ARGS, &version, err);

	if (rc)
		return rc;
	if (version != in->data_version)
		interner_forget(in);
	in->data_version = version;
	in->last_object = NULL;
	buf_reset(&in->new_processes);
	buf_reset(&in->new_threads);
	idmap_clear(&in->objects);
	idmap_clear(&in->processes);
	return 0;
}

static int put_threads(struct store *s, const struct segment *segment, struct buf *ids,
		       struct err *err)
{
	struct segment_list list = segment_threads(segment);
	int64_t id = 0;
	uint32_t number;
	int rc = 0;

	while (!rc && segment_next(&list, &number)) {
		const struct thread *thread = thread_get(segment->process_table, number);

		rc = (s->history ? task_id : thread_id)(s, thread, segment->t1_ns, &id, err);
		buf_put(ids, &id, sizeof(id));
	}
	if (!rc)
		rc = texts_flush(s, err);
	return rc || !s->history ? rc : tasks_flush(s, err);
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
	return idmap_set(&in->settled, (uint64_t)segment_id, in->named)
		       ? err_memory(err, "while storing a segment") : 0;
}

/*
 * out has no ids when the row is gone, damaged, or of another segment: then there is nothing to
 * name.
 */
static int stored_lists(struct store *s, const struct segment *segment, struct lists *out,
			struct err *err)
{
	struct query q = db_query(s,
				  "SELECT lists FROM segment WHERE id=? AND t0_ns=? AND samples=?",
				  ARGS(arg_int(segment->store_id), arg_u64(segment->t0_ns),
				       arg_u64(segment->nsamples)), err);
	struct blob blob;
	int rc = query_step(&q);

	if (rc <= 0)
		return rc;
	blob = column_blob(&q, 0);
	rc = lists_unpack(&blob, out, err);
	query_reset(&q);
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
