/*
 * Obtaining the numbers behind the counters of Linux: files of /proc and control groups.
 *
 * Time goes in moments: within one, each text is read at most once however many counters look at
 * it, and processes are scanned at most once, and only when a sum or a name without a process needs
 * it. Files stay open and are read at offset 0 (linux-capture.md, section 6). One thread.
 *
 * Processes. A name is bound to a process when it is first seen and stays bound while that process
 * lives under that name. Each name of a process counts (model/process_name.h); it is listed, and
 * numbered, by the one that people typed. Processes of one name are numbered from 0 by age; a
 * number stays with its process, and a later process takes the lowest that is free, so "name#1"
 * does not become another process because "name" has ended. "name" alone goes on with the lowest
 * number that lives, so that it survives a restart that overlaps. "pid=N" stays bound to the first
 * process seen with that pid.
 */
#pragma once

#include "base/err.h"
#include "source/counter/proc_table.h"

struct proc_reader;
struct proc_instance;

/* proc_dir: "/proc", or one made up by a test. keep_open false: files are closed when read. */
int proc_reader_open(const char *proc_dir, bool keep_open, struct proc_reader **out,
		     struct err *err);
void proc_reader_close(struct proc_reader *r);       /* with its instances; NULL allowed */

/* A new moment begins. */
void proc_reader_begin(struct proc_reader *r);

/* Find or add an instance and ask for these fields too; owned by the reader. NULL = no memory. */
struct proc_instance *proc_reader_instance(struct proc_reader *r,
					   const struct counter_category *category,
					   const char *name, uint32_t fields);

/*
 * Its numbers at this moment.
 *
 * returns  COUNTER_VALUE with *out borrowed until the next moment, COUNTER_ABSENT when there is no
 *          such instance now, COUNTER_NOT_YET when it could not be read for another reason
 */
enum counter_result proc_instance_read(struct proc_reader *r, struct proc_instance *instance,
				       const struct counter_raw **out);

/* What a process's name means now: "python3 [python3.11] (47)", "3 processes"; else nothing. */
void proc_instance_put_meant(const struct proc_instance *instance, struct buf *out);

/*
 * Call back with the name of each instance that is there; false from the callback ends it. also: it
 * is another name of a process that is listed anyway.
 */
typedef bool proc_instance_found(void *ctx, const char *name, bool also);
void proc_reader_list(struct proc_reader *r, const struct counter_category *category,
		      proc_instance_found *found, void *ctx);
