/*
 * The bounded queue from one source thread to the merge thread.
 *
 * One producer, one consumer, no locks: records are copied into and out of a ring of bytes, and a
 * watermark says "nothing older than this follows". When the ring is full queue_put() refuses and
 * counts, and a live source carries on.
 */
#pragma once

#include "model/event.h"

#define QUEUE_BYTES ((size_t)8 << 20)

struct queue;

struct queue *queue_new(size_t bytes);               /* NULL = no memory */
void queue_free(struct queue *q);
/*
 * Call before the producer runs. A put that leaves the queue over a quarter full signals this, and
 * so does the first watermark, so that the consumer may sleep.
 */
struct os_cond;
void queue_wakes(struct queue *q, struct os_cond *wake);

/*
 * Producer. Copies the event, frames, up to EVENT_MAX_FIELDS fields, and texts but names that stay.
 * Without name or text a field gets "". False when full: the event is counted as lost. A record of
 * up to half the ring always fits into an empty ring. The sample that follows from an event
 * (event.sample_id) is put with it, and counts as a second one.
 */
bool queue_put(struct queue *q, const struct event *e);
/* The same for a source that waits until it fits: being full is no loss. */
bool queue_offer(struct queue *q, const struct event *e);
/* Producer: nothing older than time_ns follows. Never moves back. */
void queue_watermark(struct queue *q, uint64_t time_ns);
/*
 * Producer: it is about to wait, however long. Until queue_resume() the watermark is the consumer's
 * clock less lag_ns; otherwise the producer would have to wake every 100 ms to move it. Events put
 * afterwards must not be older than queue_resume()'s now_ns less lag_ns.
 */
void queue_rest(struct queue *q, uint64_t lag_ns);
/*
 * Producer: end a rest, if there is one, before putting anything. now_ns: its clock, read before.
 */
void queue_resume(struct queue *q, uint64_t now_ns);
/* Producer: no further events; the consumer stops waiting for this source. */
void queue_finish(struct queue *q);
uint64_t queue_lost(const struct queue *q);

/*
 * Consumer: the oldest event, borrowed until queue_pop(); NULL when empty. Behind an event comes
 * the sample that follows from it.
 */
const struct event *queue_peek(struct queue *q);
void queue_pop(struct queue *q);
/*
 * Consumer: the watermark; UINT64_MAX once finished. now_ns: its clock, read before the call; 0
 * will do if no producer rests. At the end of a rest it may move back by the difference between the
 * two clock readings.
 */
uint64_t queue_released(const struct queue *q, uint64_t now_ns);
/* Consumer: no event that it has not popped yet is older, whether it is in the ring or not. */
uint64_t queue_consumed(struct queue *q, uint64_t now_ns);
size_t queue_used_bytes(const struct queue *q);
