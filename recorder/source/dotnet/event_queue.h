/*
 * Events of several streams, held until no older one can come, and given out in the order of time.
 * Bounded: what does not fit is refused. One thread.
 */
#ifndef SOURCE_DOTNET_EVENT_QUEUE_H
#define SOURCE_DOTNET_EVENT_QUEUE_H

#include "source/dotnet/nettrace.h"

#define DOTNET_QUEUE_MAX 65536u               /* events */
#define DOTNET_QUEUE_MAX_BYTES ((size_t)16 << 20)
#define DOTNET_PAYLOAD_MAX 65535u            /* longer ones are cut; the runtime makes none */

struct dotnet_queued {
	uint64_t time_ns, order;
	void *owner;                         /* of whose kinds of events this is, with how many of it */
	uint32_t *nheld;                     /* are held: it must stay until that is 0 */
	struct nettrace_event event;         /* payload and activities: copies */
};

struct dotnet_queue;

int dotnet_queue_new(struct dotnet_queue **out, struct err *err);
void dotnet_queue_free(struct dotnet_queue *queue);       /* NULL allowed; before the owners */

/* false when it is full, or memory is. */
bool dotnet_queue_put(struct dotnet_queue *queue, uint64_t time_ns, void *owner, uint32_t *nheld,
		     const struct nettrace_event *event);
bool dotnet_queue_is_empty(const struct dotnet_queue *queue);
/* Those up to then; each is gone after the call. */
void dotnet_queue_release(struct dotnet_queue *queue, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_queued *held), void *ctx);

#endif
