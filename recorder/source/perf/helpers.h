/* The threads of a source that read what belongs to other programs, and may hang. */
#pragma once

#include "base/log.h"
#include "base/pool.h"

#define HELPERS_MAX 8u

struct helpers {                             /* starts as {0} */
	struct {
		const char *reads;           /* "mapped files", for people */
		struct pool *pool;
		bool hang_logged;
	} all[HELPERS_MAX];
	unsigned n;
};

void helpers_add(struct helpers *h, const char *reads, struct pool *pool);   /* NULL: none */
/* The source's thread: log once when so many hang that nothing more is read. */
void helpers_check(struct helpers *h, struct log *log);
/* Any thread: say so for status. returns  whether one hangs */
bool helpers_note(const struct helpers *h, char *out, size_t n);
