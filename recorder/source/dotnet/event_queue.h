/*
 * A queue that sorts events of several streams by time. It holds each event until no older one can
 * come. Bounded: events that do not fit are refused, and those that exceed their program's share of
 * the queue, if it has shares. One thread.
 */
#pragma once

#include "source/dotnet/nettrace.h"

#define DOTNET_QUEUE_MAX 65536u               /* events */
#define DOTNET_QUEUE_MAX_BYTES ((size_t)16 << 20)
#define DOTNET_SPARES 32u                    /* sizes of 64 bytes and its multiples */
#define DOTNET_SPARES_MAX_BYTES ((size_t)4 << 20)
#define DOTNET_PAYLOAD_MAX 65535u            /* cut beyond this; the runtime writes none */

/* What the queue holds of one program; {0}, with the user where the queue has shares. */
struct dotnet_held {
	uint32_t n;                          /* events */
	struct share share;                  /* of the bytes */
};

struct dotnet_queued {
	uint64_t time_ns;
	void *owner;                         /* has the event's meta; must live while held->n > 0 */
	struct dotnet_queued *next;          /* of those to be used again */
	struct dotnet_held *held;            /* the owner's */
	struct nettrace_event event;         /* with copies of payload and activities */
};

/*
 * Events that are not older than the one before them stand in a row; the others are in a heap:
 * all[0] is its oldest, children of i are 2i+1 and 2i+2. Starts as {0}; its shares must outlive it.
 */
struct dotnet_queue {
	struct dotnet_place {
		uint64_t time_ns, order;     /* the event's */
		struct dotnet_queued *queued;
	} *all, *row;                        /* row: from `first` on */
	uint32_t n, room, first, nrow, row_room;
	uint64_t order;
	size_t nbytes;
	struct dotnet_queued *spare[DOTNET_SPARES];  /* to be used again, by size */
	size_t spare_bytes;
	struct shares *shares;               /* NULL = none */
};

static inline uint32_t dotnet_queue_count(const struct dotnet_queue *queue)
{
	return queue->n + (queue->nrow - queue->first);
}

/* What an event takes of the shares, apart from its payload: a full queue is 16 MB of them. */
#define DOTNET_QUEUED_BYTES (DOTNET_QUEUE_MAX_BYTES / DOTNET_QUEUE_MAX)
/* A quarter for one program: events leave after 200 ms, so this is 80,000 a second. */
void dotnet_queue_share(struct dotnet_queue *queue, struct shares *shares, uint32_t own_uid);

void dotnet_queue_free(struct dotnet_queue *queue);       /* before the owners */

/* false when the queue, the share or the memory is full. */
bool dotnet_queue_put(struct dotnet_queue *queue, uint64_t time_ns, void *owner,
		      struct dotnet_held *held, const struct nettrace_event *event);
/* Pass all events up to until_ns to each(), oldest first; an event is freed after its call. */
void dotnet_queue_release(struct dotnet_queue *queue, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_queued *held), void *ctx);
