/*
 * The names of files that the kernel's events give by device and inode: events Linux/File/Name, for
 * views (analysis/wait_names.h).
 *
 * After filemap/mm_filemap_add_to_page_cache a job of a pool looks for the file
 * (host/file_paths_linux.h): soon after its first event, and while there are more, every second at
 * last. The looks take at most 1/25 of a CPU. The source's thread.
 */
#pragma once

#include "model/needs.h"
#include "model/queue.h"
#include "source/perf/state_linux.h"

struct perf_files;

/* *out stays NULL when no such event is wanted. */
int perf_files_new(const struct needs *needs, struct queue *queue, struct perf_files **out,
		   struct err *err);
void perf_files_free(struct perf_files *f);          /* NULL allowed, as in what follows */

/* An event of this process was put; NULL = it is not known. */
void perf_files_event(struct perf_files *f, const struct perf_process *process,
		      const struct event *e);
/* Call it often. now_ns: up to which all events are in the queue; names get this time. */
void perf_files_look(struct perf_files *f, uint64_t now_ns);
struct pool *perf_files_pool(const struct perf_files *f);
