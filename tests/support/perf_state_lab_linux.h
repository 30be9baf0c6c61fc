/*
 * A perf_state that side-band records are fed by hand, and what came of them. One test at a time:
 * the lab is the process's own.
 *
 * Pids from 5,000,000 on are beyond any that a kernel gives, so /proc knows nothing of them. Every
 * test begins with process INIT (one thread), mapped from /sbin/init at [0x1000, 0x3000).
 */
#pragma once

#include "source/perf/state_linux.h"

#include "base/log.h"
#include "base/os.h"
#include "tests/support/test.h"

#define INIT 5000000u
#define SH (INIT + 1)
#define SECOND 1000000000ull

extern struct frames *frames;
extern struct processes *processes;
extern struct queue *queue;
extern struct perf_state *state_of;

/* Records. */
void feed_task(enum perf_record_kind kind, uint32_t pid, uint32_t tid, uint32_t parent_pid,
	       uint64_t time_ns);
void feed_fork(uint32_t pid, uint32_t parent_pid, uint64_t time_ns);
void feed_thread(uint32_t pid, uint32_t tid, uint64_t time_ns);
void feed_exit(uint32_t pid, uint32_t tid, uint64_t time_ns);
void feed_comm(uint32_t pid, uint32_t tid, const char *name, bool exec, uint64_t time_ns);
/* 0x2000 bytes; the file's inode is the length of its path. */
void feed_mmap(uint32_t pid, const char *path, uint64_t start, uint64_t time_ns);

/* What came of them; texts are valid until the next call. */
const char *name_of(uint32_t pid);
struct perf_thread *thread_of(uint32_t pid, uint32_t tid);      /* as a sample at SECOND */
const char *name_of_thread(uint32_t pid, uint32_t tid);
struct frame_ref locate(uint32_t pid, uint64_t address);
const char *file_at(uint32_t pid, uint64_t address);
/* Empties the queue: "+sh 5000001" starts, "-sh 5000001" ends; images only on demand. */
const char *events(bool images);
uint32_t live_processes(uint64_t released_ns);
uint32_t live_objects(void);

int open_config(struct perf_state_config cfg);
int open_with(const char *only, struct log *log);
int open_state(void **state);                /* for cmocka, as the next one */
int close_state(void **state);
