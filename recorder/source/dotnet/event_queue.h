/*
 * A queue that sorts events of several streams by time. It holds each event until no older one can
 * come. Bounded: events that do not fit are refused. One thread.
 */
#pragma once

#include "source/dotnet/nettrace.h"

#define DOTNET_QUEUE_MAX 65536u               /* events */
#define DOTNET_QUEUE_MAX_BYTES ((size_t)16 << 20)
#define DOTNET_PAYLOAD_MAX 65535u            /* cut beyond this; the runtime writes none */

struct dotnet_queued {
	uint64_t time_ns, order;
	void *owner;                         /* has the event's meta; must live while *nheld > 0 */
	uint32_t *nheld;                     /* how many of the owner's events are queued */
	struct nettrace_event event;         /* with copies of payload and activities */
};

/* A heap: all[0] is the oldest; children of i are 2i+1 and 2i+2. Starts as {0}. */
struct dotnet_queue {
	struct dotnet_queued *all;
	uint32_t n, room;
	uint64_t order;
	size_t nbytes;
};

void dotnet_queue_free(struct dotnet_queue *queue);       /* before the owners */

/* false when the queue or the memory is full. */
bool dotnet_queue_put(struct dotnet_queue *queue, uint64_t time_ns, void *owner, uint32_t *nheld,
		     const struct nettrace_event *event);
/* Pass all events up to until_ns to each(), oldest first; an event is freed after its call. */
void dotnet_queue_release(struct dotnet_queue *queue, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_queued *held), void *ctx);
