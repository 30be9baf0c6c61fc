/*
 * Events of this machine as they come, without ring, rules or store: `recorder events --live`
 * prints them. The sources of events run on their own threads; each() is called on the caller's.
 */
#pragma once

#include "source/source.h"

struct live {
	const struct source_ops *const *sources;
	const struct needs *needs;
	struct log *log;
	uint64_t for_ns;                     /* ends after this time, or with Ctrl-C */
	unsigned stack_kb;
	/*
	 * Called for events of providers and logs; not for samples, images and the sources' own.
	 * Time is of the recorder clock; origin's start is that of the call. Non-zero ends it.
	 */
	int (*each)(void *ctx, const struct event *e, const struct source_origin *origin);
	void *ctx;
	char note[200];                      /* out: what a source lacks; "" = nothing */
	uint64_t lost;                       /* out */
};

/* returns  0 when the time is over; what each() returned; or the error of a source that failed */
int live_read(struct live *l, struct err *err);
