/*
 * Reads memory of other processes for a thread that must not hang: a page of a process may lie in
 * a file whose server is gone. A job of a pool reads (base/pool.h); the caller waits for 20 ms at
 * most, and for 60 ms more, a tenth of the time, when the thread that reads is late. It is
 * SCHED_FIFO 1 where that is allowed (root, cap_sys_nice).
 *
 * One thread, the owner, calls these functions.
 */
#pragma once

#include "base/log.h"
#include "base/pool.h"

#include <stddef.h>
#include <stdint.h>

#define PROC_READER_BYTES 16384u             /* at most at once; more is not read */

struct proc_reader;

int proc_reader_new(struct log *log, struct proc_reader **out, struct err *err);
void proc_reader_free(struct proc_reader *r);        /* NULL allowed */
/* For whom nothing waits: it waits so long for an answer, instead of 20 ms. */
void proc_reader_set_answer(struct proc_reader *r, uint64_t answer_ns);

/*
 * As proc_pid_memory(), n up to PROC_READER_BYTES. A process that does not answer in time is left
 * alone as long as it does not, and for 50 ms, up to 2 s when it is late again and again: 0 until
 * then.
 */
size_t proc_reader_memory(struct proc_reader *r, uint32_t pid, uint64_t address, void *to,
			  size_t n);

/*
 * Run a job of the caller's on the thread that reads, and wait for it. It reads the memory of one
 * process only. A process that does not answer is left alone as above.
 *
 * returns  true: it is done. false: it hangs, or was not begun; the caller's use of it has ended
 */
bool proc_reader_run(struct proc_reader *r, uint32_t pid, struct job *job);

/* Call about once a second. */
void proc_reader_look(struct proc_reader *r, uint64_t now_ns);
struct pool *proc_reader_pool(const struct proc_reader *r);
