/* Threads that wait for each other. One thread. */
#pragma once

#include "listing/sheet.h"

#include <stdint.h>

struct waiting {
	uint32_t tid, for_tid;               /* for_tid: 0 = nobody that is known */
};

/* Print "deadlock: thread 12 waits for 13, 13 waits for 12" for each circle among n threads. */
void deadlocks_put(const struct waiting *threads, uint32_t n, struct sheet *p);
