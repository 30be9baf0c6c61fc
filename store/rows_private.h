/*
 * Rows by their ids, while an incident is read: those of a table; and processes and threads, which
 * are rows, or in a file of the history rows of pages (intern_tasks.c). How rows of these two are
 * written is here, too.
 *
 * Segments mostly list rows in the order in which they were stored, so the next one is a few rows
 * on. All calls are made in one transaction, on one thread.
 */
#pragma once

#include "store/page_cache_private.h"

struct row_walk {
	const char *sql;                     /* selects the rows from an id on, the id first */
	struct query query;                  /* at the first row from `from` on, */
	int64_t from, at;                    /* which has this id; 0 = nothing asked, no row */
};

/* 1: w->query is at the row with this id, until the next call; 0: there is none; or an error. */
int row_walk_to(struct store *s, struct row_walk *w, int64_t id, struct err *err);
void row_walk_free(struct row_walk *w);

struct task_rows {
	struct page_cache *pages;
	struct row_walk processes, threads;
};

/* Texts are borrowed until the next call. An id of a text is 0 where there is none. */
struct stored_process {
	int64_t session_id, cmdline_id, home_id;
	uint64_t start_ns;
	uint32_t pid, exec, parent_pid;
	const char *name;                    /* NULL: not given, or not readable */
};

struct stored_thread {
	int64_t process_id;
	uint32_t tid;
	const char *name;
};

void task_rows_init(struct task_rows *t, struct page_cache *pages);
void task_rows_free(struct task_rows *t);
/*
 * returns  1; 0: there is none with this id; or an error
 * lost     gets the sentence when the name cannot be read; what else is damaged is an error
 */
int task_rows_process(struct task_rows *t, int64_t id, struct stored_process *out,
		      struct err *lost, struct err *err);
int task_rows_thread(struct task_rows *t, int64_t id, struct stored_thread *out, struct err *lost,
		     struct err *err);

/* Of a page; the name is still an id of a text: row[PROCESS_NAME], row[THREAD_NAME]. */
void process_of_row(const uint64_t row[PROCESS_COLUMNS], struct stored_process *out);
void thread_of_row(const uint64_t row[THREAD_COLUMNS], struct stored_thread *out);

/* What becomes of a row that has the id already: an error, it goes, or it stays as it is. */
enum row_clash { ROW_IS_NEW, ROW_REPLACES, ROW_YIELDS };
/* Insert a row; *id 0: it gets the next one. */
int process_row_put(struct store *s, enum row_clash clash, const struct stored_process *p,
		    int64_t *id, struct err *err);
int thread_row_put(struct store *s, enum row_clash clash, const struct stored_thread *t,
		   int64_t *id, struct err *err);
