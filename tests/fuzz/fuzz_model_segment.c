/*
 * Any bytes as a segment: refused, or sound in every index. A sound one is merged into an incident
 * twice: every sample keeps its stack, and no stack is added a second time. Its events can be had
 * alone.
 */
#include "model/incident.h"
#include "tests/support/segment_sound.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES = 7, THREADS = 3, LISTED_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		__builtin_trap();
}

static void begin(struct incident *in)
{
	const struct incident_process process = {.pid = 1};
	const struct incident_module module = {0};
	uint32_t i;

	check(!incident_init(in));
	in->head.t1_ns = UINT64_MAX;
	incident_add_process(in, &process);
	incident_add_module(in, &module);
	for (i = 0; i < FRAMES; i++) {
		const struct incident_frame frame = {.offset = i};

		check(incident_add_frame(in, &frame) == i);
	}
	for (i = 0; i < THREADS; i++) {
		const struct incident_thread thread = {.tid = i};

		check(incident_add_thread(in, &thread) == i);
	}
}

static bool same_path(const struct incident *in, uint32_t stack, const struct segment_content *c,
		      uint32_t node)
{
	while (stack != STACK_NONE && node != STACK_NONE) {
		if (in->stacks[stack].frame != c->nodes[node].frame % FRAMES)
			return false;
		stack = in->stacks[stack].parent;
		node = c->nodes[node].parent;
	}
	return stack == node;
}

static bool found_again(struct incident *in)
{
	uint32_t n = in->nstacks, i;

	for (i = 0; i < n; i++) {
		if (incident_add_stack(in, in->stacks[i].parent, in->stacks[i].frame) != i)
			return false;
	}
	return true;
}

static void merge(const struct segment_content *c)
{
	static uint32_t frames[LISTED_MAX], threads[LISTED_MAX];
	struct incident in;
	uint32_t i, nstacks;

	if (c->nframes > LISTED_MAX || c->nthreads > LISTED_MAX)
		return;
	for (i = 0; i < LISTED_MAX; i++) {
		frames[i] = i % FRAMES;
		threads[i] = i % THREADS;
	}
	begin(&in);
	check(!incident_add_segment(&in, c, threads, frames, NULL));
	nstacks = in.nstacks;
	check(!incident_add_segment(&in, c, threads, frames, NULL));
	check(in.nstacks == nstacks && in.nsamples == 2 * c->nsamples && found_again(&in));
	for (i = 0; i < in.nsamples; i++)
		check(same_path(&in, in.samples[i].stack, c, c->samples[i % c->nsamples].stack));
	incident_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct segment_content c = {0}, events = {0}, times = {0}, sums = {0},
			       head = {0};
	struct err err;
	bool has_events = !segment_decode_events(data, size, &events, &err);
	bool has_times = !segment_decode_times(data, size, &times, &err);
	bool has_sums = !segment_decode_sums(data, size, &sums, &err);
	bool has_head = !segment_decode_head(data, size, &head, &err);

	if (has_events)
		check(segment_sound(&events) && !events.nsamples && !events.nnodes);
	if (!segment_decode(data, size, &c, &err)) {
		check(segment_sound(&c));
		check(has_events && events.nevents == c.nevents);
		check(has_times && times.nsamples == c.nsamples);
		check(has_sums && sums.nsamples == c.nsamples);
		check(has_head && head.nthreads == c.nthreads && head.nframes == c.nframes);
		check(!memcmp(head.period_ns, c.period_ns, sizeof(c.period_ns)));
		check(!sums.nevents || sums.nevents == c.nevents);
		merge(&c);
		/* Into memory that is dirty, and in part too small. */
		check(!segment_decode(data, size, &events, &err) && segment_sound(&events));
		check(events.nsamples == c.nsamples && events.nnodes == c.nnodes);
		segment_content_free(&c);
	}
	if (has_times)
		check(segment_sound(&times) && !times.nevents && !times.nnodes);
	segment_content_free(&events);
	segment_content_free(&times);
	segment_content_free(&sums);
	segment_content_free(&head);
	return 0;
}
