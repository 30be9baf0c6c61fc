/*
 * The process that finds the entries of a JVM's performance data: a stranger's offsets are followed
 * where no harm can be done (base/confined_linux.h). It gets the open file, and answers with
 * entries of a fixed size (hsperf.h), which are checked. From then on numbers are read at known
 * places. It keeps nothing: when it dies, or takes over 5 s, that concerns one file.
 *
 * Linux; on Windows there is none. One thread, but for what is said to be for others.
 */
#pragma once

#include "base/err.h"
#include "source/jvm/hsperf.h"

#define JVM_READER_WORD "read-java"          /* the program's argument for jvm_reader_serve() */

struct jvm_reader;
struct mapped;

int jvm_reader_new(struct jvm_reader **out, struct err *err);
void jvm_reader_free(struct jvm_reader *r);                 /* NULL allowed */

/* Ask it for the entries of a file of nbytes. Nobody waits for an answer. */
int jvm_reader_ask(struct jvm_reader *r, int fd, size_t nbytes, struct err *err);
/*
 * Take the answer, and a copy of the file's bytes.
 *
 * wait_ns  how long to wait for it
 * out      until the next question
 * cpu_ns   what the process used
 * returns  1 when it has not come yet; ERR_NOT_FOUND when the file is no such file, or not complete
 *          yet; else the process failed
 */
int jvm_reader_take(struct jvm_reader *r, const struct mapped *map, uint64_t wait_ns,
		    struct hsperf_file *out, uint64_t *cpu_ns, struct err *err);
/* Nobody wants the answer any more: end the process. */
void jvm_reader_cancel(struct jvm_reader *r);
/* Any thread: add the CPU time of its processes so far, and the memory of the present one. */
void jvm_reader_add_usage(struct jvm_reader *r, uint64_t *cpu_ns, uint64_t *rss_bytes);

/* The process itself: answers on descriptor 0 until that is closed. Returns its exit code. */
int jvm_reader_serve(void);
