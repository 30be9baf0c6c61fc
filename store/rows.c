#include "store/rows_private.h"

#include <inttypes.h>

enum { WALK_STEPS = 16 };

/* ---- a table -------------------------------------------------------------------------------- */

static int next_row(struct row_walk *w, struct err *err)
{
	int rc;

	w->query.err = err;
	rc = query_step(&w->query);
	w->at = rc > 0 ? column_int(&w->query, 0) : 0;
	return rc < 0 ? rc : 0;
}

int row_walk_to(struct store *s, struct row_walk *w, int64_t id, struct err *err)
{
	bool asked = w->from && w->from <= id;
	int rc = 0;

	while (!rc && asked && w->at && w->at < id &&
	       (uint64_t)id - (uint64_t)w->at <= WALK_STEPS)
		rc = next_row(w, err);
	if (!rc && (!asked || (w->at && w->at < id))) {
		w->query = db_query(s, w->sql, ARGS(arg_int(id)), err);
		rc = next_row(w, err);
		asked = true;
	}
	/* Behind the last row a statement is at its end, and would begin again. */
	w->from = rc || !asked ? 0 : id;
	return rc ? rc : w->at == id && id;
}

void row_walk_free(struct row_walk *w)
{
	query_reset(&w->query);
}

/* ---- processes and threads ------------------------------------------------------------------ */

void task_rows_init(struct task_rows *t, struct page_cache *pages)
{
	*t = (struct task_rows){
		.pages = pages,
		.processes.sql = pages->s->has_homes
			? "SELECT id, session_id, pid, start_ns, exec, parent_pid, name,"
			  " cmdline_id, home_id FROM process WHERE id>=? ORDER BY id"
			: "SELECT id, session_id, pid, start_ns, exec, parent_pid, name,"
			  " cmdline_id, 0 FROM process WHERE id>=? ORDER BY id",
		.threads.sql = "SELECT id, process_id, tid, name FROM thread"
			       " WHERE id>=? ORDER BY id",
	};
}

void task_rows_free(struct task_rows *t)
{
	row_walk_free(&t->processes);
	row_walk_free(&t->threads);
}

/* A text that cannot be read is left out, and `lost` says why, if nothing said so before. */
static int text_of(struct task_rows *t, uint64_t id, const char **out, struct err *lost,
		   struct err *err)
{
	struct err why = {0};
	int rc = id ? page_cache_text(t->pages, (int64_t)id, out, &why) : 0;

	if (!rc && id && !*out)
		rc = err_set(&why, ERR_FORMAT, "%s is damaged: its text %" PRIu64 " is missing",
			     t->pages->s->path, id);
	if (rc && rc != ERR_FORMAT) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc && !lost->code)
		*lost = why;
	return 0;
}

void process_of_row(const uint64_t row[PROCESS_COLUMNS], struct stored_process *out)
{
	*out = (struct stored_process){
		.session_id = (int64_t)row[PROCESS_SESSION], .pid = (uint32_t)row[PROCESS_PID],
		.start_ns = row[PROCESS_START_NS], .exec = (uint32_t)row[PROCESS_EXEC],
		.parent_pid = (uint32_t)row[PROCESS_PARENT_PID],
		.cmdline_id = (int64_t)row[PROCESS_CMDLINE],
		.home_id = (int64_t)row[PROCESS_HOME],
	};
}

void thread_of_row(const uint64_t row[THREAD_COLUMNS], struct stored_thread *out)
{
	*out = (struct stored_thread){.process_id = (int64_t)row[THREAD_PROCESS],
				      .tid = (uint32_t)row[THREAD_TID]};
}

static int process_of_page(struct task_rows *t, int64_t id, struct stored_process *out,
			   struct err *lost, struct err *err)
{
	const uint64_t *row;
	int rc = page_cache_task(t->pages, TASK_PROCESS, id, &row, err);

	if (rc || !row)
		return rc;
	process_of_row(row, out);
	rc = text_of(t, row[PROCESS_NAME], &out->name, lost, err);
	return rc ? rc : 1;
}

int task_rows_process(struct task_rows *t, int64_t id, struct stored_process *out,
		      struct err *lost, struct err *err)
{
	const struct query *q = &t->processes.query;
	int rc = row_walk_to(t->pages->s, &t->processes, id, err);

	if (!rc && t->pages->s->has_tasks)
		return process_of_page(t, id, out, lost, err);
	if (rc <= 0)
		return rc;
	*out = (struct stored_process){
		.session_id = column_int(q, 1), .pid = (uint32_t)column_int(q, 2),
		.start_ns = column_u64(q, 3), .exec = (uint32_t)column_int(q, 4),
		.parent_pid = (uint32_t)column_int(q, 5), .name = column_text(q, 6),
		.cmdline_id = column_int(q, 7), .home_id = column_int(q, 8),
	};
	return 1;
}

static int thread_of_page(struct task_rows *t, int64_t id, struct stored_thread *out,
			  struct err *lost, struct err *err)
{
	const uint64_t *row;
	int rc = page_cache_task(t->pages, TASK_THREAD, id, &row, err);

	if (rc || !row)
		return rc;
	thread_of_row(row, out);
	rc = text_of(t, row[THREAD_NAME], &out->name, lost, err);
	return rc ? rc : 1;
}

int task_rows_thread(struct task_rows *t, int64_t id, struct stored_thread *out, struct err *lost,
		     struct err *err)
{
	const struct query *q = &t->threads.query;
	int rc = row_walk_to(t->pages->s, &t->threads, id, err);

	if (!rc && t->pages->s->has_tasks)
		return thread_of_page(t, id, out, lost, err);
	if (rc <= 0)
		return rc;
	*out = (struct stored_thread){.process_id = column_int(q, 1),
				      .tid = (uint32_t)column_int(q, 2),
				      .name = column_text(q, 3)};
	return 1;
}

/* ---- written -------------------------------------------------------------------------------- */

#define PROCESS_ROW(clash) \
	"INSERT OR " clash " INTO main.process(id, session_id, pid, start_ns, exec, parent_pid," \
	" name, cmdline_id, home_id)" \
	" VALUES(nullif(?, 0), ?, ?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0))"
#define THREAD_ROW(clash) \
	"INSERT OR " clash " INTO main.thread(id, process_id, tid, name)" \
	" VALUES(nullif(?, 0), ?, ?, ?)"

/* By enum row_clash. */
static const char *const process_sql[] = {PROCESS_ROW("ABORT"), PROCESS_ROW("REPLACE"),
					  PROCESS_ROW("IGNORE")};
static const char *const thread_sql[] = {THREAD_ROW("ABORT"), THREAD_ROW("REPLACE"),
					 THREAD_ROW("IGNORE")};

int process_row_put(struct store *s, enum row_clash clash, const struct stored_process *p,
		    int64_t *id, struct err *err)
{
	return db_insert(s, process_sql[clash],
			 ARGS(arg_int(*id), arg_int(p->session_id), arg_u64(p->pid),
			      arg_u64(p->start_ns), arg_u64(p->exec), arg_u64(p->parent_pid),
			      arg_text(p->name ? p->name : ""), arg_int(p->cmdline_id),
			      arg_int(p->home_id)), id, err);
}

int thread_row_put(struct store *s, enum row_clash clash, const struct stored_thread *t,
		   int64_t *id, struct err *err)
{
	return db_insert(s, thread_sql[clash],
			 ARGS(arg_int(*id), arg_int(t->process_id), arg_u64(t->tid),
			      arg_text(t->name ? t->name : "")), id, err);
}
