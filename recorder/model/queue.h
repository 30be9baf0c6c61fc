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
/* Before the producer runs: what it puts while over a quarter is full signals this, so that who takes may sleep. */
struct os_cond;
void queue_wakes(struct queue *q, struct os_cond *wake);

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
/*
 * Producer: it waits for something to happen, however long. Until queue_resume() the watermark is the consumer's
 * clock less lag_ns, in place of one every 100 ms for which the producer would have to wake up. What it puts then
 * must not be older than queue_resume() less lag_ns.
 */
void queue_rest(struct queue *q, uint64_t lag_ns);
/* Producer: ends a rest, if there is one; before anything is put. now_ns: its clock, read before the call. */
void queue_resume(struct queue *q, uint64_t now_ns);
/* Producer: no event follows at all; the consumer stops waiting for this source. */
void queue_finish(struct queue *q);
uint64_t queue_lost(const struct queue *q);

/* Consumer: the oldest event, borrowed until queue_pop(); NULL when empty. */
const struct event *queue_peek(struct queue *q);
void queue_pop(struct queue *q);
/*
 * Consumer: the watermark; UINT64_MAX once finished. now_ns: its clock, read before the call; 0 will do where no
 * producer rests. When a rest ends it may move back by the moment between the two clocks.
 */
uint64_t queue_released(const struct queue *q, uint64_t now_ns);
size_t queue_used_bytes(const struct queue *q);

#endif
