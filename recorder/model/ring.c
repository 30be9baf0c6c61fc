#include "model/ring.h"

#include "base/array.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

struct ring {
	struct os_mutex *lock;
	struct segment *oldest, *newest;     /* NULL when empty; see struct segment */
	struct ring_use use;                 /* without oldest_ns and newest_ns */
	void (*evicted)(void *ctx, const struct segment *segment);
	void *evicted_ctx;
};

int ring_new(size_t max_bytes, struct ring **out, struct err *err)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring || !(ring->lock = os_mutex_new())) {
		free(ring);
		return err_memory(err, "for the ring");
	}
	ring->use.max_bytes = max_bytes;
	*out = ring;
	return 0;
}

void ring_free(struct ring *ring)
{
	struct segment *newer;

	if (!ring)
		return;
	for (; ring->oldest; ring->oldest = newer) {
		newer = ring->oldest->newer;
		segment_unref(ring->oldest);
	}
	os_mutex_free(ring->lock);
	free(ring);
}

void ring_on_evict(struct ring *ring, void (*evicted)(void *ctx, const struct segment *segment),
		   void *ctx)
{
	ring->evicted = evicted;
	ring->evicted_ctx = ctx;
}

/* Evict the oldest of more than `least` segments that take more than max_bytes; whether it did. */
static bool evict_above(struct ring *ring, uint32_t least, size_t max_bytes)
{
	struct ring_use *use = &ring->use;
	struct segment *oldest = NULL;

	os_mutex_lock(ring->lock);
	if (use->segments > least && use->bytes > max_bytes) {
		oldest = ring->oldest;
		ring->oldest = oldest->newer;
		use->segments--;
		use->bytes -= oldest->memory_bytes;
		use->samples -= oldest->nsamples;
		use->evicted_segments++;
		use->evicted_samples += oldest->nsamples;
		if (oldest->t1_ns > use->evicted_until_ns)
			use->evicted_until_ns = oldest->t1_ns;
	}
	os_mutex_unlock(ring->lock);
	if (oldest && ring->evicted)
		ring->evicted(ring->evicted_ctx, oldest);
	segment_unref(oldest);
	return oldest != NULL;
}

void ring_put(struct ring *ring, struct segment *segment)
{
	size_t max_bytes = ring->use.max_bytes, bytes = segment->memory_bytes;

	while (evict_above(ring, 0, bytes < max_bytes ? max_bytes - bytes : 0))
		;
	os_mutex_lock(ring->lock);
	if (ring->oldest)
		ring->newest->newer = segment;
	else
		ring->oldest = segment;
	ring->newest = segment;
	ring->use.segments++;
	ring->use.bytes += bytes;
	ring->use.samples += segment->nsamples;
	os_mutex_unlock(ring->lock);
}

bool ring_give_up_oldest(struct ring *ring)
{
	if (!evict_above(ring, 0, 0))
		return false;
	os_mutex_lock(ring->lock);
	ring->use.given_up_until_ns = ring->use.evicted_until_ns;
	os_mutex_unlock(ring->lock);
	return true;
}

void ring_set_max(struct ring *ring, size_t max_bytes)
{
	os_mutex_lock(ring->lock);
	ring->use.max_bytes = max_bytes;
	os_mutex_unlock(ring->lock);
	while (evict_above(ring, 1, max_bytes))
		;
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
	struct segment *s;
	int rc = 0;

	os_mutex_lock(ring->lock);
	for (s = ring->oldest; s && !rc; s = s->newer) {
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
	os_mutex_lock(ring->lock);
	*out = ring->use;
	if (ring->oldest) {
		out->oldest_ns = ring->oldest->t0_ns;
		out->newest_ns = ring->newest->t1_ns;
	}
	os_mutex_unlock(ring->lock);
}
