/*
 * A process that floods, beside one that does what it always does: segments are cut as the engine
 * cuts them, and a ring of 1 MB holds as many seconds of history with the flood as without.
 */
#include "model/own_event.h"
#include "model/ring.h"
#include "tests/support/segment_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__              /* slow: half of it does what the whole does */
#define PART 2u
#else
#define PART 1u
#endif
#define RING_BYTES (((size_t)1 << 20) / PART)
#define STEP_NS 5050505u                 /* 2 x 99 Hz */
#define SAMPLES (400000u / PART)
#define DEPTH 24u

static const struct segment_quota quota = {
	.nodes = 16384, .frames = 8192, .nodes_each = 8, .threads = 1024, .events = 1024,
	.event_bytes = 32 << 10, .sideband = 8192, .processes = 8192,
};

struct lab {
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct ring *ring;
	struct object *object;
	struct process *good, *bad;
	struct thread *good_thread, *bad_thread;
	uint64_t random, now_ns, refused;
	uint32_t number;                     /* of the bad one's samples */
};

enum flood {
	FLOOD_NONE, FLOOD_STACKS, FLOOD_PACED, FLOOD_THREADS, FLOOD_EVENTS, FLOOD_SIDEBAND, FLOOD_GC
};

static uint32_t next(struct lab *l, uint32_t n)
{
	l->random = l->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(l->random >> 33) % n;
}

static void lab_open(struct lab *l)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = "/opt/app"};

	memset(l, 0, sizeof(*l));
	l->random = 1;
	l->now_ns = 1000000000;
	assert_int_equal(frames_new(&l->frames, NULL), 0);
	assert_int_equal(processes_new(&l->processes, NULL), 0);
	assert_int_equal(segment_builder_new(l->frames, l->processes, &l->builder, NULL), 0);
	assert_int_equal(ring_new(RING_BYTES, &l->ring, NULL), 0);
	segment_set_quota(l->builder, &quota);
	l->object = objects_get(l->frames, &key, 1);
	l->good = process_add(l->processes, 100, 1, 0, 1, "good");
	l->bad = process_add(l->processes, 200, 1, 0, 1, "bad");
	l->good_thread = thread_add(l->processes, l->good, 100);
	l->bad_thread = thread_add(l->processes, l->bad, 200);
}

static void lab_close(struct lab *l)
{
	segment_builder_free(l->builder);
	ring_free(l->ring);
	frames_free(l->frames);
	processes_free(l->processes);
}

static void seal_when_full(struct lab *l)
{
	struct segment *s = NULL;

	if (!segment_is_full(l->builder, l->now_ns))
		return;
	assert_int_equal(segment_seal(l->builder, &s, NULL), 0);
	ring_put(l->ring, s);
	frames_sweep_all(l->frames, l->now_ns);
	processes_sweep(l->processes, l->now_ns);
}

/* 64 ways down to 200 leaves: some new nodes, as programs have. */
static uint32_t good_stack(struct lab *l, struct frame_ref *refs)
{
	uint32_t i, path = next(l, 256) & next(l, 256);

	for (i = 0; i < DEPTH; i++)
		refs[i] = (struct frame_ref){l->object, 4000 * (path & 63) + 16 * i, 0};
	refs[0].offset = 1000000 + next(l, 200);
	return DEPTH;
}

/* Code that nobody has seen before, all of it. */
static uint32_t bad_stack(struct lab *l, struct frame_ref *refs)
{
	uint32_t i;

	for (i = 0; i < 200; i++)
		refs[i] =
			(struct frame_ref){l->object, 10000000 + (uint64_t)l->number * 200 + i, 0};
	return 200;
}

/* No more nodes than a large program brings, in each stack. */
static uint32_t paced_stack(struct lab *l, struct frame_ref *refs)
{
	uint32_t i;

	for (i = 0; i < 7; i++)
		refs[i] = (struct frame_ref){l->object, 10000000 + next(l, 8192), 0};
	return 7;
}

static void sample(struct lab *l, bool bad, enum flood flood)
{
	struct frame_ref refs[STACK_MAX_FRAMES];
	struct event e = {.time_ns = l->now_ns, .kind = EVENT_SAMPLE, .value = 2.0 * STEP_NS,
			  .process = bad ? l->bad : l->good,
			  .thread = bad ? l->bad_thread : l->good_thread,
			  .cpu = (uint16_t)next(l, 2), .quality = QUALITY_COMPLETE};

	e.stack_frames = refs;
	if (bad && flood == FLOOD_STACKS)
		e.nstack_frames = bad_stack(l, refs);
	else if (bad && flood == FLOOD_PACED)
		e.nstack_frames = paced_stack(l, refs);
	else
		e.nstack_frames = good_stack(l, refs);
	if (bad && flood == FLOOD_THREADS) {
		e.thread = thread_add(l->processes, l->bad, 1000 + l->number);
		thread_drop(l->processes, e.thread, l->now_ns);
	}
	l->number += bad;
	e.stack = segment_stack_of(l->builder, &e, NULL, NULL);
	assert_int_not_equal(e.stack, STACK_NONE);
	assert_int_equal(segment_add(l->builder, &e), 0);    /* a sample, never refused */
}

/* Fifty pauses in a second, four events each, as a JVM's. */
static void collections(struct lab *l)
{
	struct event_field fields[] = {
		{.name = "Reason", .type = FIELD_UINT, .v.u = 1},
		{.name = "Count", .type = FIELD_UINT, .v.u = l->number / 4},
		{.name = "Depth", .type = FIELD_UINT},
		{.name = "Type", .type = FIELD_UINT},
		{.name = "ClrInstanceID", .type = FIELD_UINT},
		{.name = "Collector", .type = FIELD_TEXT, .v.text = "G1 young collection pauses"},
	};
	static const char *const names[] = {"GC/SuspendEEStart", "GC/Start", "GC/Stop",
					    "GC/RestartEEStop"};
	struct event e = {.time_ns = l->now_ns + (l->number & 2 ? next(l, STEP_NS) : 0),
			  .kind = EVENT_GENERIC,
			  .stack = STACK_NONE,
			  .process = l->bad,
			  .thread = l->bad_thread,
			  .provider = "JVM",
			  .name = names[l->number++ % 4],
			  .fields = fields,
			  .nfields = 6};

	l->refused += segment_add(l->builder, &e) == ERR_LIMIT;
}

static void events(struct lab *l, enum flood flood)
{
	struct event_field field = {.name = "Id", .type = FIELD_UINT};
	struct event e = {.time_ns = l->now_ns,
			  .kind = EVENT_GENERIC,
			  .cpu = 0,
			  .stack = STACK_NONE,
			  .process = l->bad,
			  .thread = l->bad_thread,
			  .provider = "p",
			  .name = "n",
			  .fields = &field,
			  .nfields = 1};
	unsigned i;

	for (i = 0; i < 5; i++) {            /* a thousand in a second */
		field.v.u = next(l, 1u << 30);
		if (flood == FLOOD_SIDEBAND) {
			e.kind = i & 1 ? EVENT_PROCESS_EXIT : EVENT_PROCESS_START;
			e.nfields = 0;
		}
		l->refused += segment_add(l->builder, &e) == ERR_LIMIT;
	}
}

/* Seconds that the ring holds in the end; every second sample is the bad one's. */
static double held(enum flood flood, uint64_t *refused, uint32_t *samples)
{
	struct ring_use use;
	struct lab l;
	uint32_t i;

	lab_open(&l);
	for (i = 0; i < SAMPLES; i++) {
		l.now_ns += STEP_NS;
		seal_when_full(&l);
		sample(&l, i & 1, flood);
		if (flood == FLOOD_EVENTS || flood == FLOOD_SIDEBAND)
			events(&l, flood);
		if (flood == FLOOD_GC)
			collections(&l);
	}
	ring_use(l.ring, &use);
	assert_true(use.evicted_segments > 0);
	*refused = l.refused;
	*samples = (uint32_t)use.samples;
	lab_close(&l);
	return (double)(use.newest_ns - use.oldest_ns) / 1e9;
}

TEST(a_flood_takes_no_more_than_a_fifth_of_the_history)
{
	static const char *const names[] = {"none", "stacks", "paced stacks", "threads",
					    "events", "side-band", "collections"};
	/* Collections are what somebody asked for; paced stacks are like a large program's. */
	static const double least[] = {1, 0.8, 0.35, 0.8, 0.8, 0.8, 0.6};
	uint64_t refused;
	uint32_t samples;
	double calm = held(FLOOD_NONE, &refused, &samples), seconds;
	unsigned flood;

	if (PART > 1)
		printf("in part: a ring and a flood of half the size, as it is slow under a "
		       "sanitizer\n");
	print_message("%s: %.0f s, %u samples\n", names[0], calm, samples);
	assert_int_equal(refused, 0);
	for (flood = FLOOD_STACKS; flood <= FLOOD_GC; flood++) {
		seconds = held((enum flood)flood, &refused, &samples);
		print_message("%s: %.0f s, %u samples, %u events refused\n", names[flood], seconds,
			      samples, (unsigned)refused);
		assert_true(seconds >= least[flood] * calm);
	}
}

/* ---- what it looks like ---------------------------------------------------------------------- */

static struct seglab lab;

static uint32_t put(const char *root_first, struct process *process, struct thread *thread)
{
	struct event e = {.time_ns = 1000,
			  .kind = EVENT_SAMPLE,
			  .process = process,
			  .thread = thread,
			  .quality = QUALITY_COMPLETE,
			  .value = 7};
	struct frame_ref refs[16];
	uint32_t n = (uint32_t)strlen(root_first), i;

	for (i = 0; i < n; i++)
		refs[i] = (struct frame_ref){lab.object, (uint64_t)root_first[n - 1 - i], 0};
	e.stack_frames = refs;
	e.nstack_frames = n;
	e.stack = segment_stack_of(lab.builder, &e, NULL, NULL);
	assert_int_equal(segment_add(lab.builder, &e), 0);
	return e.stack;
}

TEST(over_its_quota_a_stack_ends_in_more_and_keeps_its_weight)
{
	const struct segment_quota few = {.nodes = 3, .processes = 10};
	struct segment_content c = {0};
	struct segment *s;
	const char *leaf;

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &few);
	put("abc", lab.app, lab.threads[0]);
	put("abc", lab.app, lab.threads[0]);
	put("abx", lab.app, lab.threads[0]);         /* a, b, [more] */
	put("aby", lab.app, lab.threads[0]);
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, &c, NULL), 0);
	assert_int_equal(c.nsamples, 4);
	assert_int_equal(c.nnodes, 4);
	assert_int_equal(c.samples[1].stack, 2);
	assert_int_equal(c.samples[2].stack, 3);
	assert_int_equal(c.samples[3].stack, 3);
	assert_int_equal(c.samples[3].weight, 7);
	assert_int_equal(c.nodes[3].parent, 1);
	leaf = atomic_load(&seglab_frame(&lab, s, c.nodes[3].frame)->function)->name;
	assert_string_equal(leaf, "[more]");
	segment_content_free(&c);
	segment_unref(s);
	seglab_close(&lab);
}

/* 2 nodes for its first stack, 1 for each other one: never 2 for each, as a flood would bring. */
TEST(many_stacks_with_few_new_nodes_each_are_no_flood)
{
	const struct segment_quota few = {.nodes = 3, .nodes_each = 2, .processes = 10};
	char stack[3] = "a?";
	uint32_t i;

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &few);
	for (i = 0; i < 20; i++) {
		stack[1] = (char)('b' + i);
		assert_int_equal(put(stack, lab.app, lab.threads[0]), i + 1);
	}
	put("1234567890", lab.app, lab.threads[0]);
	put("abcdefghij", lab.app, lab.threads[0]);  /* 39 nodes */
	i = put("qrstuvwxyz", lab.app, lab.threads[0]);
	assert_int_equal(put("az0", lab.app, lab.threads[0]), i + 1);        /* [more] */
	assert_int_equal(put("az1", lab.app, lab.threads[0]), i + 1);
	seglab_close(&lab);
}

TEST(samples_of_threads_and_processes_over_the_quota_belong_to_more)
{
	const struct segment_quota few = {.threads = 1, .processes = 1};
	struct segment_content c = {0};
	struct process *other;
	struct segment *s;
	struct thread *more;
	char name[16];

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &few);
	other = process_add(lab.processes, 300, 1, 0, 1, "other");
	put("ab", lab.app, lab.threads[0]);
	put("ab", lab.app, lab.threads[1]);
	put("ab", other, thread_add(lab.processes, other, 300));
	put("ac", other, thread_add(lab.processes, other, 301));
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, &c, NULL), 0);
	assert_int_equal(c.nthreads, 3);
	more = seglab_thread(&lab, s, c.samples[1].thread);
	thread_name(more, name);
	assert_string_equal(name, "[more]");
	assert_ptr_equal(more->process, lab.app);
	assert_int_equal(c.samples[2].thread, c.samples[3].thread);
	more = seglab_thread(&lab, s, c.samples[2].thread);
	assert_string_equal(process_name(more->process), "[more]");
	assert_int_equal(c.samples[2].stack, 1);     /* what is known of it */
	assert_int_equal(c.nnodes, 3);               /* a, b, and [more] below a */
	segment_content_free(&c);
	segment_unref(s);
	seglab_close(&lab);
}

/* What runs for long keeps its name among those that do not, however late in a segment it comes. */
TEST(a_process_that_a_segment_lists_is_none_of_the_new_ones)
{
	const struct segment_quota few = {.processes = 2};
	struct segment_content c = {0};
	struct segment *older, *s;
	struct process *other;
	struct thread *pooled;
	uint32_t i;

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &few);
	put("ab", lab.app, lab.threads[0]);
	older = seglab_seal(&lab);
	for (i = 0; i < 4; i++) {
		other = process_add(lab.processes, 300 + i, 1, 0, 1, "other");
		put("ab", other, thread_add(lab.processes, other, 300 + i));
	}
	put("ab", lab.app, lab.threads[0]);
	pooled = thread_add(lab.processes, lab.app, 999);
	put("ab", lab.app, pooled);
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, &c, NULL), 0);
	assert_int_equal(c.nthreads, 5);
	assert_int_equal(seglab_thread(&lab, s, c.samples[1].thread)->process->pid, 301);
	assert_int_equal(c.samples[2].thread, c.samples[3].thread);
	assert_string_equal(process_name(seglab_thread(&lab, s, c.samples[3].thread)->process),
			    "[more]");
	assert_ptr_equal(seglab_thread(&lab, s, c.samples[4].thread), lab.threads[0]);
	assert_int_equal(c.samples[4].stack, c.samples[0].stack);
	assert_ptr_equal(seglab_thread(&lab, s, c.samples[5].thread), pooled);
	segment_content_free(&c);
	segment_unref(s);
	segment_unref(older);
	seglab_close(&lab);
}

/* As many as the rate gives, however short the segments are; a minute's may come at once. */
TEST(new_processes_come_at_a_rate_that_segments_do_not_change)
{
	const struct segment_quota slow = {.processes = 8192, .processes_s = 2};
	uint32_t i, named = 0;

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &slow);
	for (i = 0; i < 400; i++) {                  /* four a second, for 100 s */
		struct process *p = process_add(lab.processes, 300 + i, 1, 0, 1, "other");
		struct event e = {.time_ns = (1000 + i / 4) * 1000000000ULL,
				  .kind = EVENT_SAMPLE,
				  .process = p,
				  .thread = thread_add(lab.processes, p, 300 + i),
				  .stack = STACK_NONE,
				  .value = 1};

		assert_int_equal(segment_add(lab.builder, &e), 0);
		named += p->was_listed;
		if (i % 10 == 9)
			segment_unref(seglab_seal(&lab));
	}
	assert_int_equal(named, 120 + 2 * 99);
	seglab_close(&lab);
}

/*
 * One event each of processes 300 to 304, of which three may have one; it is left as the last
 * one's.
 */
static void put_of_five_others(struct event *e)
{
	uint32_t i;

	for (i = 0; i < 5; i++) {
		e->process = process_add(lab.processes, 300 + i, 1, 0, 1, "other");
		e->thread = thread_add(lab.processes, e->process, 300 + i);
		assert_int_equal(segment_add(lab.builder, e), i < 3 ? 0 : ERR_LIMIT);
	}
}

TEST(starts_and_ends_leave_room_for_the_processes_with_samples)
{
	const struct segment_quota few = {.processes = 1, .sideband = 3};
	struct event e = {.time_ns = 1000, .kind = EVENT_PROCESS_START, .stack = STACK_NONE};
	struct segment_content c = {0};
	struct process *other;
	struct segment *s;

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &few);
	put_of_five_others(&e);
	put("ab", e.process, e.thread);              /* the one that is new */
	put("ab", lab.app, lab.threads[0]);
	other = process_find(lab.processes, 301, 2000);
	put("ab", other, thread_add(lab.processes, other, 301));     /* its start is there */
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, &c, NULL), 0);
	assert_int_equal(c.nevents, 3);
	assert_ptr_equal(seglab_thread(&lab, s, c.samples[0].thread), e.thread);
	assert_string_equal(process_name(seglab_thread(&lab, s, c.samples[1].thread)->process),
			    "[more]");
	assert_ptr_equal(seglab_thread(&lab, s, c.samples[2].thread)->process, other);
	assert_int_equal(c.samples[2].stack, c.samples[0].stack);
	process_unref(other);
	segment_content_free(&c);
	segment_unref(s);
	seglab_close(&lab);
}

TEST(a_process_with_events_alone_is_none_of_those_with_samples)
{
	const struct segment_quota few = {.processes = 1, .sideband = 3};
	struct event e = {.time_ns = 1000,
			  .kind = EVENT_GENERIC,
			  .stack = STACK_NONE,
			  .provider = "Process",
			  .name = "Exit"};
	struct segment_content c = {0};
	struct segment *s;

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &few);
	put_of_five_others(&e);
	put("ab", lab.app, lab.threads[0]);
	assert_int_equal(segment_add_wanted(lab.builder, &e), 0);    /* a rule fired at it */
	/*
	 * Of one that is listed, by whatever thread; of none; and what the recorder says of itself.
	 */
	e.process = lab.app;
	e.thread = lab.threads[1];
	assert_int_equal(segment_add(lab.builder, &e), 0);
	e.process = NULL;
	e.thread = NULL;
	assert_int_equal(segment_add(lab.builder, &e), 0);
	e.provider = OWN_PROVIDER;
	assert_int_equal(segment_add(lab.builder, &e), 0);
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, &c, NULL), 0);
	assert_int_equal(c.nevents, 7);
	assert_int_equal(seglab_thread(&lab, s, c.events[3].thread)->process->pid, 304);
	assert_ptr_equal(seglab_thread(&lab, s, c.samples[0].thread), lab.threads[0]);
	segment_content_free(&c);
	segment_unref(s);
	seglab_close(&lab);
}

static int generic(const char *name)
{
	struct event e = {.time_ns = 1000,
			  .kind = EVENT_GENERIC,
			  .process = lab.app,
			  .stack = STACK_NONE,
			  .provider = "Microsoft-Windows-DotNETRuntime",
			  .name = name};

	return segment_add(lab.builder, &e);
}

/* A busy .NET program: a thousand ticks of its allocations for each collection. */
TEST(allocations_leave_room_for_collections_and_these_for_others)
{
	const struct segment_quota few = {.events = 10, .processes = 10};
	unsigned i, took = 0;

	assert_int_equal(seglab_open(&lab), 0);
	segment_set_quota(lab.builder, &few);
	for (i = 0; i < 1000; i++)
		took += generic("GC/AllocationTick") == 0;
	assert_int_equal(took, 10);
	for (i = 0; i < 1000; i++)
		took += generic(i & 1 ? "GC/Stop" : "GC/Start") == 0;
	assert_int_equal(took, 10 + 60);
	assert_int_equal(generic("Exception/Start"), 0);
	segment_unref(seglab_seal(&lab));
	assert_int_equal(generic("GC/AllocationTick"), 0);   /* a new segment */
	seglab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_its_quota_a_stack_ends_in_more_and_keeps_its_weight),
		cmocka_unit_test(many_stacks_with_few_new_nodes_each_are_no_flood),
		cmocka_unit_test(samples_of_threads_and_processes_over_the_quota_belong_to_more),
		cmocka_unit_test(a_process_that_a_segment_lists_is_none_of_the_new_ones),
		cmocka_unit_test(a_process_with_events_alone_is_none_of_those_with_samples),
		cmocka_unit_test(new_processes_come_at_a_rate_that_segments_do_not_change),
		cmocka_unit_test(starts_and_ends_leave_room_for_the_processes_with_samples),
		cmocka_unit_test(allocations_leave_room_for_collections_and_these_for_others),
		cmocka_unit_test(a_flood_takes_no_more_than_a_fifth_of_the_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
