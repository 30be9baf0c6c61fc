/*
 * Processes and threads -> pages, in a file of the history: those of a segment at once.
 *
 * A process that starts takes 9 bytes of pages with its thread (43,728 of them beside
 * tests/bench/load.sh and compilers), and its command line 4. As two rows it took 58: 25 MB a day
 * for each 5 a second. Pages are not changed: a process or thread that gets another name, or a
 * home, after its page was written gets a row with the same id, which holds instead.
 */
#include "store/interner_private.h"
#include "store/rows_private.h"

#include <string.h>

/* What a key of known rows is of; modules have texts (module_identity()). */
enum { KEY_PROCESS = 1, KEY_THREAD };

static int next_ids(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	int rc = in->next_process ? 0
		 : page_next_id(s, "SELECT max(coalesce((SELECT last_id FROM process_page"
				" ORDER BY first_id DESC LIMIT 1), 0), (SELECT"
				" coalesce(max(id), 0) FROM process))", "processes",
				&in->next_process, err);

	if (rc || in->next_thread)
		return rc;
	return page_next_id(s, "SELECT max(coalesce((SELECT last_id FROM thread_page"
			    " ORDER BY first_id DESC LIMIT 1), 0), (SELECT coalesce(max(id), 0)"
			    " FROM thread))", "threads", &in->next_thread, err);
}

/* ---- processes ------------------------------------------------------------------------------ */

static int process_row(struct store *s, struct process *p, const char *home,
		       uint64_t row[PROCESS_COLUMNS], struct err *err)
{
	const char *const texts[] = {process_name(p), atomic_load(&p->cmdline), home};
	unsigned k;
	int64_t id;
	int rc = 0;

	row[PROCESS_SESSION] = (uint64_t)s->session_id;
	row[PROCESS_PID] = p->pid;
	row[PROCESS_START_NS] = p->start_ns;
	row[PROCESS_EXEC] = p->exec;
	row[PROCESS_PARENT_PID] = p->parent_pid;
	for (k = 0; !rc && k < 3; k++) {
		rc = text_id_or_none(s, texts[k], &id, err);
		row[PROCESS_NAME + k] = (uint64_t)id;
	}
	return rc;
}

static int put_process(struct store *s, struct process *p, const char *home, int64_t *id,
		       struct err *err)
{
	uint64_t row[PROCESS_COLUMNS];
	int rc = process_row(s, p, home, row, err);

	if (rc)
		return rc;
	buf_put(&s->interner->new_processes, row, sizeof(row));
	*id = s->interner->next_process++;
	return 0;
}

/* A row, which holds instead of what the page says. */
static int replace_process(struct store *s, struct process *p, const char *home, int64_t id,
			   struct err *err)
{
	uint64_t row[PROCESS_COLUMNS];
	struct stored_process stored;
	int rc = process_row(s, p, home, row, err);

	if (rc)
		return rc;
	process_of_row(row, &stored);
	stored.name = process_name(p);
	return process_row_put(s, ROW_REPLACES, &stored, &id, err);
}

/* What may come later: its name, and whether it has its command line. */
static uint64_t process_state(struct process *p)
{
	const char *name = process_name(p);

	return hash_pair(hash_bytes(name, strlen(name)), atomic_load(&p->cmdline) != NULL);
}

/* Binary: printing these numbers was a third of the history's CPU time beside compilers. */
static void process_key(const struct process *p, const char *home, struct buf *out)
{
	const uint64_t numbers[] = {KEY_PROCESS, p->pid, p->start_ns, p->exec};

	buf_reset(out);
	buf_put(out, numbers, sizeof(numbers));
	buf_put(out, home, strlen(home));
}

/* One with its home, else one without, which gets it, else a new one. */
static int find_process(struct store *s, struct process *p, const char *home, struct buf *key,
			int64_t *id, struct err *err)
{
	uint64_t state = process_state(p), before = 0;
	struct interner *in = s->interner;
	int rc;

	process_key(p, home, key);
	rc = known_row(in, key, id, &before, err);
	if (!rc && before == state)
		return 0;
	if (rc == ERR_NOT_FOUND && home[0]) {
		process_key(p, "", key);
		rc = known_row(in, key, id, &before, err);
		if (!rc)
			rc = know_row(in, key, 0, 0, err);   /* it is that one's from now on */
		process_key(p, home, key);
	}
	if (!rc)
		rc = replace_process(s, p, home, *id, err);
	else if (rc == ERR_NOT_FOUND)
		rc = put_process(s, p, home, id, err);
	return rc ? rc : know_row(in, key, *id, state, err);
}

/* As it was at a moment of the recorder clock. */
static int process_id(struct store *s, struct process *p, uint64_t at_ns, int64_t *id,
		      struct err *err)
{
	struct interner *in = s->interner;
	struct buf key = {0};
	int rc;

	if (idmap_get(&in->processes, (uintptr_t)p, id))
		return 0;
	rc = find_process(s, p, process_home_at(p, at_ns), &key, id, err);
	buf_free(&key);
	if (!rc && idmap_set(&in->processes, (uintptr_t)p, *id))
		rc = err_memory(err, "while storing a segment");
	return rc;
}

/* ---- threads -------------------------------------------------------------------------------- */

static int put_thread(struct store *s, const struct thread *t, int64_t process, const char *name,
		      int64_t *id, struct err *err)
{
	uint64_t row[THREAD_COLUMNS] = {(uint64_t)process, t->tid};
	int64_t text;
	int rc = text_id_or_none(s, name, &text, err);

	if (rc)
		return rc;
	row[THREAD_NAME] = (uint64_t)text;
	buf_put(&s->interner->new_threads, row, sizeof(row));
	*id = s->interner->next_thread++;
	return 0;
}

static void thread_key(const struct thread *t, int64_t process, const char *name, struct buf *out)
{
	const uint64_t numbers[] = {KEY_THREAD, (uint64_t)process, t->tid};

	buf_reset(out);
	buf_put(out, numbers, sizeof(numbers));
	buf_put(out, name, strlen(name));
}

/* One with its name, else one without, which gets it, else a new one. */
static int find_thread(struct store *s, const struct thread *t, int64_t process, struct buf *key,
		       int64_t *id, struct err *err)
{
	struct interner *in = s->interner;
	uint64_t state;
	char name[16];
	int rc;

	thread_name(t, name);
	thread_key(t, process, name, key);
	rc = known_row(in, key, id, &state, err);
	if (rc != ERR_NOT_FOUND)
		return rc;
	if (name[0]) {
		thread_key(t, process, "", key);
		rc = known_row(in, key, id, &state, err);
		if (!rc)
			rc = know_row(in, key, 0, 0, err);
		thread_key(t, process, name, key);
	}
	if (!rc)
		rc = thread_row_put(s, ROW_REPLACES, &(struct stored_thread){process, t->tid, name},
				    id, err);
	else if (rc == ERR_NOT_FOUND)
		rc = put_thread(s, t, process, name, id, err);
	return rc ? rc : know_row(in, key, *id, 0, err);
}

int task_id(struct store *s, const struct thread *t, uint64_t at_ns, int64_t *id, struct err *err)
{
	struct buf key = {0};
	int64_t process = 0;
	int rc = next_ids(s, err);

	if (!rc)
		rc = process_id(s, t->process, at_ns, &process, err);
	if (!rc)
		rc = find_thread(s, t, process, &key, id, err);
	buf_free(&key);
	return rc;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Put what is new into pages; next: the first id that is not used yet. */
static int put_pages(struct store *s, const char *sql, struct buf *rows, unsigned columns,
		     int64_t next, struct err *err)
{
	const uint64_t *row = (const uint64_t *)(const void *)rows->data;
	struct interner *in = s->interner;
	uint32_t left, n;
	int rc = buf_check(rows, "processes and threads", err);

	left = rc ? 0 : (uint32_t)(rows->len / (columns * sizeof(*row)));
	for (; !rc && left; left -= n, row += (size_t)n * columns) {
		n = left < PAGE_ROWS ? left : PAGE_ROWS;
		rc = row_page_pack(s->deflater, &in->columns, row, n, columns, &in->packed, err);
		if (!rc)
			rc = db_run(s, sql, ARGS(arg_int(next - left), arg_int(next - left + n - 1),
						 arg_buf(&in->packed)), err);
	}
	buf_reset(rows);
	return rc;
}

int tasks_flush(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	int rc = put_pages(s, "INSERT INTO process_page(first_id, last_id, data) VALUES(?, ?, ?)",
			   &in->new_processes, PROCESS_COLUMNS, in->next_process, err);

	return rc ? rc : put_pages(s, "INSERT INTO thread_page(first_id, last_id, data)"
				   " VALUES(?, ?, ?)", &in->new_threads, THREAD_COLUMNS,
				   in->next_thread, err);
}
