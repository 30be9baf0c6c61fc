/*
 * Take what a trace file gives as a source, on this thread, while the source runs on its own: by
 * hand-made files (tests/unit/etl/etl.c) and real ones (tests/unit/etl/totals.c). One at a time.
 */
#pragma once

#include "base/os.h"
#include "source/source.h"

#define ETL_START NS_PER_SEC                 /* t0 on the recorder's clock */

enum { KEPT = 64 };

struct etl_taking {
	struct frames *frames;
	struct processes *processes;
	struct queue *queue;
	struct source *source;
	struct os_thread *thread;
	int rc;
	struct err err;
	_Atomic bool ended;
	void (*each)(const struct event *e);

	struct event events[KEPT];           /* without what they borrow */
	struct frame_ref frames_of[KEPT][8];
	char names[KEPT][64];
	uint32_t n;
};

extern struct etl_taking taking;

/*
 * Open the file as a source; as open() returns, with taking.err. more: NULL = with kernel frames.
 */
int begin_taking(const char *path, size_t queue_bytes, const struct source_config *more);
/* Run it to its end; each event goes to taking.each, which keeps it unless it is set to another. */
void take_all(void);
/* The source's thread alone: run, and finish the queue. */
void taking_run(void *ctx);
void end_taking(void);
