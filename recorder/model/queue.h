/*
 * The bounded queue from one source thread to the merge thread.
 *
 * One producer, one consumer, no locks: a ring of bytes with records copied in and out, and a
 * watermark "nothing older than this follows". When it is full queue_put() refuses and counts, and a
 * live source goes on.
 */
#ifndef MODEL_QUEUE_H
#define MODEL_QUEUE_H

#include "model/event.h"

#define QUEUE_BYTES ((size_t)8 << 20)

struct queue;

struct queue *queue_new(size_t bytes);               /* NULL = no memory */
void queue_free(struct queue *q);

/* Producer: whether the event fits now. A source that must lose nothing (a file) waits until it does. */
bool queue_fits(const struct queue *q, const struct event *e);
/*
 * Producer. Copies the event, its frames, fields and texts; a field without a name or text gets "".
 * false when full: counted as lost. What takes up to half of the ring always fits into an empty one.
 */
bool queue_put(struct queue *q, const struct event *e);
/* The same for a source that waits until it fits: full is no loss. */
bool queue_offer(struct queue *q, const struct event *e);
/* Producer: nothing older than time_ns follows. Never moves back. */
void queue_watermark(struct queue *q, uint64_t time_ns);
/* Producer: no event follows at all; the consumer stops waiting for this source. */
void queue_finish(struct queue *q);
uint64_t queue_lost(const struct queue *q);

/* Consumer: the oldest event, borrowed until queue_pop(); NULL when empty. */
const struct event *queue_peek(struct queue *q);
void queue_pop(struct queue *q);
/* Consumer: UINT64_MAX once finished. */
uint64_t queue_released(const struct queue *q);
size_t queue_used_bytes(const struct queue *q);

#endif
