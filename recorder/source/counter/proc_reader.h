/*
 * Reads the numbers behind the counters of Linux from files of /proc and control groups.
 *
 * Time advances in moments. Within a moment each text is read at most once, however many counters
 * use it, and processes are scanned at most once, only when a sum or a name without a process needs
 * it. Files stay open and are read again from offset 0. One thread.
 *
 * Processes: a name is bound to a process when it is first seen, and stays bound while that process
 * lives under that name. Any name of a process counts (model/process_name.h); it is listed and
 * numbered by the name that people typed. Processes of one name are numbered from 0 by age. A
 * process keeps its number, and a later process takes the lowest free one, so "name#1" does not
 * become another process when "name" ends. "name" alone continues with the lowest number that
 * lives, so it survives an overlapping restart. "pid=N" stays bound to the first process seen with
 * that pid.
 */
#pragma once

#include "base/err.h"
#include "source/counter/proc_table.h"

struct proc_reader;
struct proc_instance;

/* proc_dir: "/proc", or a test's directory. keep_open false: close files after each reading. */
/* As pool_note(), of what does not answer. Any thread. */
bool proc_reader_note(const struct proc_reader *r, char *out, size_t n);
int proc_reader_open(const char *proc_dir, bool keep_open, struct proc_reader **out,
		     struct err *err);
void proc_reader_close(struct proc_reader *r);       /* frees its instances too; NULL allowed */

/* Begin a new moment. */
void proc_reader_begin(struct proc_reader *r);

/* Find or add an instance and ask for these fields too; owned by the reader. NULL = no memory. */
struct proc_instance *proc_reader_instance(struct proc_reader *r,
					   const struct counter_category *category,
					   const char *name, uint32_t fields);

/*
 * Read its numbers at this moment.
 *
 * returns  COUNTER_VALUE with *out borrowed until the next moment; COUNTER_ABSENT when there is no
 *          such instance now; COUNTER_NOT_YET when the reading failed for another reason
 */
enum counter_result proc_instance_read(struct proc_reader *r, struct proc_instance *instance,
				       const struct counter_raw **out);

/* One counter that is read again and again. */
struct proc_reading {
	const struct counter_def *def;
	struct proc_instance *instance;
	struct counter_raw before;           /* of counter_next_value() */
};

/* Start to read a counter: 0 or ERR_MEMORY. */
int proc_reading_start(struct proc_reader *r, const struct proc_counter *counter,
		       struct proc_reading *out, struct err *err);
/* Its value at this moment. */
enum counter_result proc_reading_next(struct proc_reader *r, struct proc_reading *reading,
				      double *value);

/*
 * Append what a process name means now, fit for a terminal: "python3 [python3.11] (47)",
 * "3 processes"; else nothing.
 */
void proc_instance_put_meant(const struct proc_instance *instance, struct buf *out);

/*
 * Call found() for each instance that exists; when it returns false, the walk ends. also: the name
 * is another name of a process that is listed anyway.
 */
typedef bool proc_instance_found(void *ctx, const char *name, bool also);
void proc_reader_list(struct proc_reader *r, const struct counter_category *category,
		      proc_instance_found *found, void *ctx);
