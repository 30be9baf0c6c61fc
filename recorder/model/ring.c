#include "model/ring.h"

#include "base/array.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

struct ring {
	struct os_mutex *lock;
	struct segment **segments;           /* a circular array, oldest at first */
	uint32_t first, count, room;
	size_t bytes, max_bytes;
	uint64_t samples;
	uint64_t evicted_segments, evicted_samples, evicted_until_ns;
	void (*evicted)(void *ctx, const struct segment *segment);
	void *evicted_ctx;
};

int ring_new(size_t max_bytes, struct ring **out, struct err *err)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (ring) {
		ring->lock = os_mutex_new();
		ring->room = 64;
		ring->segments = calloc(ring->room, sizeof(*ring->segments));
	}
	if (!ring || !ring->lock || !ring->segments) {
		ring_free(ring);
		return err_memory(err, "for the ring");
	}
	ring->max_bytes = max_bytes;
	*out = ring;
	return 0;
}

static struct segment *segment_at(const struct ring *ring, uint32_t i)
{
	return ring->segments[(ring->first + i) % ring->room];
}

void ring_free(struct ring *ring)
{
	uint32_t i;

	if (!ring)
		return;
	for (i = 0; i < ring->count; i++)
		segment_unref(segment_at(ring, i));
	free(ring->segments);
	os_mutex_free(ring->lock);
	free(ring);
}

void ring_on_evict(struct ring *ring, void (*evicted)(void *ctx, const struct segment *segment),
		   void *ctx)
{
	ring->evicted = evicted;
	ring->evicted_ctx = ctx;
}

/* Release what evict() returned, outside the lock; NULL = nothing. */
static void drop_evicted(struct ring *ring, struct segment *segment)
{
	if (segment && ring->evicted)
		ring->evicted(ring->evicted_ctx, segment);
	segment_unref(segment);
}

/* Take out the oldest segment; the caller releases it outside the lock. */
static struct segment *evict(struct ring *ring)
{
	struct segment *oldest = segment_at(ring, 0);

	ring->first = (ring->first + 1) % ring->room;
	ring->count--;
	ring->bytes -= oldest->memory_bytes;
	ring->samples -= oldest->nsamples;
	ring->evicted_segments++;
	ring->evicted_samples += oldest->nsamples;
	if (oldest->t1_ns > ring->evicted_until_ns)
		ring->evicted_until_ns = oldest->t1_ns;
	return oldest;
}

static bool make_room(struct ring *ring)
{
	struct segment **bigger;
	uint32_t i;

	if (ring->count < ring->room)
		return true;
	bigger = calloc((size_t)ring->room * 2, sizeof(*bigger));
	if (!bigger)
		return false;
	for (i = 0; i < ring->count; i++)
		bigger[i] = segment_at(ring, i);
	free(ring->segments);
	ring->segments = bigger;
	ring->first = 0;
	ring->room *= 2;
	return true;
}

void ring_put(struct ring *ring, struct segment *segment)
{
	struct segment *oldest;

	for (;;) {
		oldest = NULL;
		os_mutex_lock(ring->lock);
		if (ring->count && (ring->bytes + segment->memory_bytes > ring->max_bytes ||
				    !make_room(ring)))
			oldest = evict(ring);
		if (!oldest) {
			ring->segments[(ring->first + ring->count++) % ring->room] = segment;
			ring->bytes += segment->memory_bytes;
			ring->samples += segment->nsamples;
		}
		os_mutex_unlock(ring->lock);
		if (!oldest)
			return;
		drop_evicted(ring, oldest);
	}
}

bool ring_evict_oldest(struct ring *ring)
{
	struct segment *oldest = NULL;

	os_mutex_lock(ring->lock);
	if (ring->count)
		oldest = evict(ring);
	os_mutex_unlock(ring->lock);
	drop_evicted(ring, oldest);
	return oldest != NULL;
}

void ring_set_max(struct ring *ring, size_t max_bytes)
{
	struct segment *oldest;

	do {
		oldest = NULL;
		os_mutex_lock(ring->lock);
		ring->max_bytes = max_bytes;
		if (ring->count > 1 && ring->bytes > max_bytes)
			oldest = evict(ring);
		os_mutex_unlock(ring->lock);
		drop_evicted(ring, oldest);
	} while (oldest);
}

int frozen_add(struct frozen *f, struct segment *segment)
{
	if (ARRAY_NEXT(f->segments, f->nsegments))
		return ERR_MEMORY;
	segment_ref(segment);
	f->segments[f->nsegments++] = segment;
	return 0;
}

int ring_freeze(struct ring *ring, uint64_t t0_ns, uint64_t t1_ns, struct frozen *out,
		struct err *err)
{
	struct frozen f = {0};
	int rc = 0;
	uint32_t i;

	os_mutex_lock(ring->lock);
	for (i = 0; i < ring->count && !rc; i++) {
		struct segment *s = segment_at(ring, i);

		if (s->t1_ns >= t0_ns && s->t0_ns <= t1_ns)
			rc = frozen_add(&f, s);
	}
	os_mutex_unlock(ring->lock);
	if (rc) {
		frozen_free(&f);
		return err_memory(err, "while freezing an incident");
	}
	*out = f;
	return 0;
}

void frozen_free(struct frozen *f)
{
	uint32_t i;

	for (i = 0; i < f->nsegments; i++)
		segment_unref(f->segments[i]);
	free(f->segments);
	memset(f, 0, sizeof(*f));
}

void ring_use(struct ring *ring, struct ring_use *out)
{
	memset(out, 0, sizeof(*out));
	os_mutex_lock(ring->lock);
	out->segments = ring->count;
	out->bytes = ring->bytes;
	out->max_bytes = ring->max_bytes;
	out->samples = ring->samples;
	if (ring->count) {
		out->oldest_ns = segment_at(ring, 0)->t0_ns;
		out->newest_ns = segment_at(ring, ring->count - 1)->t1_ns;
	}
	out->evicted_segments = ring->evicted_segments;
	out->evicted_samples = ring->evicted_samples;
	out->evicted_until_ns = ring->evicted_until_ns;
	os_mutex_unlock(ring->lock);
}
