/*
 * Events one by one, without ring, rules or store: `recorder events` prints them. They come from a
 * trace file, or from this machine as they happen.
 *
 * The sources run on their own threads; each() is called on the caller's, in time order. Memory is
 * the sources' own tables, their queues, and the processes.
 */
#pragma once

#include "source/source.h"

struct trace {
	/* Ending in NULL; a file is read by the first. */
	const struct source_ops *const *sources;
	const char *path;                    /* of the file; NULL = live */
	struct log *log;                     /* NULL = none */
	/*
	 * Called for each event, borrowed for the call; live only for those of providers and logs.
	 * Times are of the recorder clock; origin is the file's, or starts with the call. Non-zero
	 * ends the reading.
	 */
	int (*each)(void *ctx, const struct event *e, const struct source_origin *origin);
	void *ctx;

	/* live */
	const struct needs *needs;
	uint64_t for_ns;                     /* ends after this time, or with Ctrl-C */
	unsigned stack_kb;

	/* out */
	struct source_origin origin;         /* as it is known at the end */
	uint64_t events, lost;
	char note[200];                      /* what a source lacks; "" = nothing */
};

/*
 * returns  0 at the end of the file or when the time is over; the error of a source, with its
 *          sentence; or what each() returned, but live 0 for ERR_STOPPED
 */
int trace_read(struct trace *t, struct err *err);
