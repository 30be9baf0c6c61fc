/*
 * A trace file event by event, without ring, rules or store: `recorder events` prints them.
 *
 * The source runs on its own thread; each() is called on the caller's, in time order. Memory is the
 * source's own tables, its queue, and the processes in the file.
 */
#pragma once

#include "source/source.h"

struct trace {
	const struct source_ops *ops;
	const char *path;
	struct log *log;                     /* NULL = none */
	/*
	 * Called for each event, borrowed for the call; its time is of the recorder clock. origin
	 * is the file's. Non-zero ends the reading and is returned.
	 */
	int (*each)(void *ctx, const struct event *e, const struct source_origin *origin);
	void *ctx;
	struct source_origin origin;         /* out: as it is known at the end */
	uint64_t events;                     /* out */
};

/* returns  0 at the end of the file; the source's error, with its sentence; or what each() said */
int trace_read(struct trace *t, struct err *err);
