/* Threads that wait for each other. One thread. */
#pragma once

#include "listing/sheet.h"

#include <stdbool.h>
#include <stdint.h>

struct waiting {
	uint32_t tid, for_tid;               /* for_tid: 0 = nobody that is known */
};

/* Whether threads[i] is part of such a circle, and has the lowest number of it. */
bool deadlocks_lead(const struct waiting *threads, uint32_t n, uint32_t i);
/* The index of whom a thread of a circle waits for. */
uint32_t deadlocks_owner(const struct waiting *threads, uint32_t n, uint32_t i);
/* Print "deadlock: thread 12 waits for 13, 13 waits for 12" for each circle among n threads. */
void deadlocks_put(const struct waiting *threads, uint32_t n, struct sheet *p);
