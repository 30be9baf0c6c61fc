/* Segments: what goes in comes out, references, limits, sealing; see model/segment_bytes.c. */
#include "tests/support/alloc_walk.h"
#include "tests/support/segment_lab.h"
#include "tests/support/segment_sound.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct seglab lab;

static int open_lab(void **state)
{
	(void)state;
	return seglab_open(&lab);
}

static int close_lab(void **state)
{
	(void)state;
	seglab_close(&lab);
	return 0;
}

/* Seals, decodes, and lets go of the segment. */
static void reopen(struct segment_content *c)
{
	struct segment *s = seglab_seal(&lab);
	struct err err = {0};

	assert_non_null(s);
	if (segment_decode(s->bytes, s->nbytes, c, &err))
		fail_msg("%s", err.text);
	assert_true(segment_sound(c));
	assert_int_equal(c->nsamples, s->nsamples);
	assert_int_equal(c->nevents, s->nevents);
	assert_int_equal(c->nthreads, s->nthreads);
	assert_int_equal(c->nframes, s->nframes);
	assert_true(c->t0_ns == s->t0_ns && c->t1_ns == s->t1_ns);
	segment_unref(s);
}

static void add(const struct event *e)
{
	assert_int_equal(segment_add(lab.builder, e), 0);
}

static struct frames_use frames_now(void)
{
	struct frames_use use;

	frames_sweep(lab.frames, UINT64_MAX - 1);
	frames_sweep(lab.frames, UINT64_MAX - 1);
	frames_use(lab.frames, &use);
	return use;
}

/* ---- contents -------------------------------------------------------------------------------- */

TEST(sample_columns_come_back)
{
	struct event e = {.time_ns = 1000, .kind = EVENT_SAMPLE, .thread = lab.threads[0], .cpu = 3,
			  .stream = STREAM_ALLOC, .quality = QUALITY_REMOTE, .value = 4096};
	struct segment_content c = {0};

	e.stack = seglab_stack(&lab, "abc");
	add(&e);
	e = (struct event){.time_ns = 2500, .kind = EVENT_SAMPLE, .cpu = CPU_NONE,
			   .stack = STACK_NONE, .value = 0.9};
	add(&e);
	reopen(&c);
	assert_int_equal(c.samples[0].time_ns, 1000);
	assert_int_equal(c.samples[0].thread, 0);
	assert_int_equal(c.samples[0].stack, 2);
	assert_int_equal(c.samples[0].cpu, 3);
	assert_int_equal(c.samples[0].stream, STREAM_ALLOC);
	assert_int_equal(c.samples[0].quality, QUALITY_REMOTE);
	assert_int_equal(c.samples[0].weight, 4096);
	assert_int_equal(c.samples[1].time_ns, 2500);
	assert_int_equal(c.samples[1].thread, THREAD_NONE);
	assert_int_equal(c.samples[1].stack, STACK_NONE);
	assert_int_equal(c.samples[1].cpu, CPU_NONE);
	assert_int_equal(c.samples[1].weight, 0);
	segment_content_free(&c);
}

/* abc and abd share a and b: four nodes, parents before children, frames in order of appearance. */
TEST(stacks_share_their_callers)
{
	struct segment_content c = {0};

	assert_int_equal(seglab_sample(&lab, 1000, 0, "abc"), 0);
	assert_int_equal(seglab_sample(&lab, 2000, 0, "abd"), 0);
	assert_int_equal(seglab_sample(&lab, 3000, 0, "abc"), 0);
	assert_int_equal(seglab_sample(&lab, 4000, 0, "b"), 0);
	reopen(&c);
	assert_int_equal(c.nnodes, 5);
	assert_int_equal(c.nframes, 4);
	assert_int_equal(c.nodes[0].parent, STACK_NONE);
	assert_int_equal(c.nodes[2].parent, 1);
	assert_int_equal(c.nodes[3].parent, 1);
	assert_int_equal(c.nodes[4].parent, STACK_NONE);
	assert_int_equal(c.nodes[4].frame, c.nodes[1].frame);
	assert_int_equal(c.samples[2].stack, c.samples[0].stack);
	assert_int_equal(c.samples[1].stack, 3);
	segment_content_free(&c);
}

TEST(event_columns_come_back)
{
	struct segment_content c = {0};
	const struct incident_event *e;

	assert_int_equal(seglab_rich(&lab), 0);
	reopen(&c);
	e = &c.events[0];
	assert_int_equal(e->time_ns, 5000);
	assert_int_equal(e->kind, EVENT_GENERIC);
	assert_int_equal(e->thread, 1);
	assert_int_equal(e->stack, 1);
	assert_int_equal(e->cpu, 3);
	assert_string_equal(e->provider, "prov");
	assert_ptr_equal(e->provider, e->name);
	assert_true(e->value == -HUGE_VAL);
	e = &c.events[1];
	assert_int_equal(e->time_ns, 3000);
	assert_int_equal(e->flags, EVENT_FLAG_LATE);
	assert_int_equal(e->cpu, CPU_NONE);
	assert_string_equal(e->provider, "");
	assert_string_equal(e->name, "kernel");
	assert_int_equal(e->nfields, 0);
	assert_int_equal(c.period_ns[STREAM_CPU], 1000000);
	assert_int_equal(c.period_ns[STREAM_ALLOC], 0);
	segment_content_free(&c);
}

TEST(fields_of_every_type_come_back)
{
	struct segment_content c = {0};
	const struct event_field *f;

	assert_int_equal(seglab_rich(&lab), 0);
	reopen(&c);
	f = c.fields + c.events[0].first_field;
	assert_int_equal(c.events[0].nfields, 5);
	assert_string_equal(f[0].name, "Least");
	assert_true(f[0].type == FIELD_INT && f[0].v.i == INT64_MIN);
	assert_true(f[1].type == FIELD_UINT && f[1].v.u == UINT64_MAX);
	assert_true(f[2].type == FIELD_DOUBLE && f[2].v.d != f[2].v.d);
	assert_string_equal(f[3].v.text, "h\xc3\xa9!");
	assert_string_equal(f[4].name, "?");
	assert_string_equal(f[4].v.text, "");
	segment_content_free(&c);
}

TEST(more_than_64_fields_are_cut)
{
	struct event_field fields[70];
	struct event e = {.kind = EVENT_LOG, .stack = STACK_NONE, .fields = fields, .nfields = 70};
	struct segment_content c = {0};
	char names[70][8];
	unsigned i;

	for (i = 0; i < 70; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		fields[i] = (struct event_field){names[i], FIELD_UINT, {.u = i}};
	}
	add(&e);
	reopen(&c);
	assert_int_equal(c.events[0].nfields, 64);
	assert_string_equal(c.fields[63].name, "f63");
	assert_int_equal(c.fields[63].v.u, 63);
	segment_content_free(&c);
}

TEST(times_are_kept_in_ticks_of_100_ns_up_to_the_last)
{
	const uint64_t last = UINT64_MAX / 100 * 100;
	struct event e = {.time_ns = UINT64_MAX, .kind = EVENT_LOG, .stack = STACK_NONE};
	struct segment_content c = {0};

	add(&e);
	assert_int_equal(seglab_sample(&lab, 199, 0, "a"), 0);
	assert_int_equal(seglab_sample(&lab, UINT64_MAX, 0, "a"), 0);
	assert_int_equal(seglab_sample(&lab, 0, 0, "a"), 0);
	reopen(&c);
	assert_true(c.events[0].time_ns == last);
	assert_int_equal(c.samples[0].time_ns, 100);
	assert_true(c.samples[1].time_ns == last);
	assert_int_equal(c.samples[2].time_ns, 0);
	assert_int_equal(c.t0_ns, 0);
	assert_true(c.t1_ns == last);
	segment_content_free(&c);
}

/* Whatever a source computes as a weight must not make its segment unreadable. */
TEST(weights_beyond_all_bounds_are_clipped)
{
	const double weights[] = {NAN, -1, 0, 1.9, 9e18, 1e19, INFINITY};
	const uint64_t kept[] = {0, 0, 0, 1, 9000000000000000000u, INT64_MAX, INT64_MAX};
	struct event e = {.kind = EVENT_SAMPLE, .stack = STACK_NONE};
	struct segment_content c = {0};
	unsigned i;

	for (i = 0; i < 7; i++) {
		e.value = weights[i];
		add(&e);
	}
	reopen(&c);
	for (i = 0; i < 7; i++)
		assert_true(c.samples[i].weight == kept[i]);
	segment_content_free(&c);
}

TEST(numbers_that_no_enum_has_stay_readable)
{
	struct event e = {.kind = EVENT_SAMPLE, .stack = STACK_NONE, .stream = 200, .quality = 200};
	struct segment_content c = {0};

	add(&e);
	e.kind = (enum event_kind)200;
	add(&e);
	reopen(&c);
	assert_int_equal(c.samples[0].stream, STREAM_EVENT);
	assert_int_equal(c.samples[0].quality, QUALITY_NONE);
	assert_int_equal(c.events[0].kind, EVENT_NONE);
	segment_content_free(&c);
}

/* ---- references ------------------------------------------------------------------------------ */

TEST(sealed_segment_keeps_its_frames_and_threads)
{
	struct processes_use use;
	struct segment *s;

	s = seglab_segment(&lab, 1000, 3);
	process_drop(lab.processes, lab.app, 1);
	processes_sweep(lab.processes, 100);
	processes_use(lab.processes, &use);
	assert_int_equal(use.threads, 1);
	assert_int_equal(use.processes, 1);
	assert_int_equal(frames_now().frames, 2);
	assert_int_equal(seglab_frame(&lab, s, 1)->offset, 11);
	assert_int_equal(seglab_thread(&lab, s, 0)->tid, 100);
	segment_unref(s);
	processes_sweep(lab.processes, 100);
	processes_use(lab.processes, &use);
	assert_int_equal(use.threads, 0);
	assert_int_equal(frames_now().frames, 0);
}

/* As Idle of Windows has one: the source goes on with it. */
TEST(a_source_keeps_its_thread_0_when_events_without_one_are_gone)
{
	struct event e = {.time_ns = 1000, .kind = EVENT_GENERIC, .process = lab.app,
			  .cpu = CPU_NONE, .stack = STACK_NONE, .provider = "p", .name = "n"};
	struct thread *zero = thread_add(lab.processes, lab.app, 0);
	struct processes_use before, after;
	struct segment *s = NULL;

	processes_use(lab.processes, &before);
	assert_int_equal(segment_add(lab.builder, &e), 0);
	assert_int_equal(segment_seal(lab.builder, &s, NULL), 0);
	assert_ptr_not_equal(seglab_thread(&lab, s, 0), zero);
	assert_int_equal(seglab_thread(&lab, s, 0)->tid, 0);
	segment_unref(s);
	processes_sweep(lab.processes, 100);
	processes_use(lab.processes, &after);
	assert_int_equal(after.threads, before.threads);
}

TEST(open_segment_keeps_its_frames_until_it_is_freed)
{
	assert_int_equal(seglab_sample(&lab, 1000, 0, "abc"), 0);
	assert_int_equal(frames_now().frames, 3);
	segment_builder_free(lab.builder);
	lab.builder = NULL;
	assert_int_equal(frames_now().frames, 0);
}

TEST(a_segment_is_the_same_when_others_come_before_its_end)
{
	struct segment *at_once = seglab_segment(&lab, 1000, 3), *s = NULL;

	segment_builder_free(lab.builder);
	assert_int_equal(segment_builder_new(lab.frames, lab.processes, &lab.builder, NULL), 0);
	assert_int_equal(segment_seal_end(lab.builder, &s, NULL), 0);
	assert_null(s);
	assert_int_equal(seglab_sample(&lab, 1000, 0, "ab"), 0);
	assert_int_equal(seglab_sample(&lab, 2000, 0, "ab"), 0);
	assert_int_equal(seglab_sample(&lab, 3000, 0, "ab"), 0);
	assert_int_equal(segment_seal_begin(lab.builder, NULL), 0);
	assert_true(segment_is_empty(lab.builder));
	assert_int_equal(seglab_sample(&lab, 4000, 0, "xyz"), 0);
	assert_int_equal(segment_seal_end(lab.builder, &s, NULL), 0);
	assert_int_equal(s->nsamples, 3);
	assert_int_equal(s->nbytes, at_once->nbytes);
	assert_memory_equal(s->bytes, at_once->bytes, s->nbytes);
	segment_unref(at_once);
	segment_unref(s);
	assert_int_equal(frames_now().frames, 3);
}

TEST(what_is_not_sealed_to_its_end_is_dropped_with_the_builder)
{
	assert_int_equal(seglab_sample(&lab, 1000, 0, "ab"), 0);
	assert_int_equal(segment_seal_begin(lab.builder, NULL), 0);
	segment_builder_free(lab.builder);
	lab.builder = NULL;
	assert_int_equal(frames_now().frames, 0);
}

/* The frames are not looked at again in a segment, and are in the next one. */
TEST(a_stack_with_an_id_has_the_node_that_it_had)
{
	struct frame_ref frames[2] = {{lab.object, 20, 0}, {lab.object, 10, 0}}, other[2] = {0};
	struct event e = {.time_ns = 1000, .kind = EVENT_SAMPLE, .process = lab.app,
			  .thread = lab.threads[0], .stack_frames = frames, .nstack_frames = 2,
			  .stack_id = 5};
	uint32_t node = segment_stack_of(lab.builder, &e, NULL, NULL);
	struct segment *s;

	assert_int_equal(node, seglab_stack(&lab, "ak"));
	e.stack_frames = other;
	assert_int_equal(segment_stack_of(lab.builder, &e, NULL, NULL), node);
	e.stack = node;
	assert_int_equal(segment_add(lab.builder, &e), 0);
	s = seglab_seal(&lab);
	e.stack_frames = frames;
	assert_int_equal(segment_stack_of(lab.builder, &e, NULL, NULL), node);
	assert_int_equal(seglab_stack(&lab, "ak"), node);
	segment_unref(s);
}

static void put_stack(struct segment_builder *b, struct event e, uint32_t node)
{
	e.stack = node;
	assert_int_not_equal(node, STACK_NONE);
	assert_int_equal(segment_add(b, &e), 0);
}

static void assert_sealed_alike(struct segment_builder *a, struct segment_builder *b)
{
	struct segment *x = NULL, *y = NULL;

	assert_int_equal(segment_seal(a, &x, NULL), 0);
	assert_int_equal(segment_seal(b, &y, NULL), 0);
	assert_int_equal(x->nbytes, y->nbytes);
	assert_memory_equal(x->bytes, y->bytes, x->nbytes);
	segment_unref(x);
	segment_unref(y);
}

/* Sealed at other times than the first builder, and with less room for a process. */
TEST(a_stack_that_another_builder_has_found_is_as_one_searched_for)
{
	const struct segment_quota room[2] = {{.nodes = 150, .processes = 10},
					      {.nodes = 60, .processes = 10}};
	struct segment_builder *searches, *follows;
	struct frame_ref frames[6];
	struct event e = {.kind = EVENT_SAMPLE, .process = lab.app, .thread = lab.threads[0],
			  .stack_frames = frames, .nstack_frames = 6};
	uint32_t i, j, first, random = 1;

	assert_int_equal(segment_builder_new(lab.frames, lab.processes, &searches, NULL), 0);
	assert_int_equal(segment_builder_new(lab.frames, lab.processes, &follows, NULL), 0);
	segment_set_quota(lab.builder, &room[0]);
	segment_set_quota(searches, &room[1]);
	segment_set_quota(follows, &room[1]);
	for (i = 1; i <= 400; i++) {
		e.time_ns = i * 1000;
		for (j = 0; j < 6; j++, random = random * 1103515245 + 12345)
			frames[j] = (struct frame_ref){lab.object, 10 * ((random >> 16) % 3), 0};
		e.stack = first = segment_stack_of(lab.builder, &e, NULL, NULL);
		put_stack(follows, e, segment_stack_again(follows, lab.builder, &e));
		put_stack(searches, e, segment_stack_of(searches, &e, NULL, NULL));
		put_stack(lab.builder, e, first);
		if (i % 37 == 0)
			assert_sealed_alike(searches, follows);
		if (i % 90 == 0)
			segment_unref(seglab_seal(&lab));
	}
	segment_builder_free(searches);
	segment_builder_free(follows);
}

TEST(segment_of_two_owners_goes_with_the_last)
{
	struct segment *s;

	s = seglab_segment(&lab, 1000, 3);
	segment_ref(s);
	segment_unref(s);
	assert_int_equal(frames_now().frames, 2);
	segment_unref(s);
	assert_int_equal(frames_now().frames, 0);
	segment_unref(NULL);
}

static void fresh_frame(void *ctx, struct frame *frame)
{
	*(uint64_t *)ctx += frame->offset;
}

/* A segment of all kinds of things, and all of it. */
static struct segment *seal_rich(struct segment_content *all)
{
	struct segment *s;

	assert_int_equal(seglab_rich(&lab), 0);
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode(s->bytes, s->nbytes, all, NULL), 0);
	return s;
}

TEST(events_are_read_without_samples)
{
	struct segment_content all = {0}, c = {0};
	struct segment *s;
	uint32_t i;

	s = seal_rich(&all);
	assert_int_equal(segment_decode_events(s->bytes, s->nbytes, &c, NULL), 0);
	assert_true(segment_sound(&c));
	assert_true(all.nsamples > 0 && all.nnodes > 0 && all.nfields > 0);
	assert_int_equal(c.nsamples, 0);
	assert_int_equal(c.nnodes, 0);
	assert_int_equal(c.nevents, all.nevents);
	assert_int_equal(c.nfields, all.nfields);
	for (i = 0; i < c.nevents; i++) {
		assert_true(c.events[i].time_ns == all.events[i].time_ns);
		assert_int_equal(c.events[i].kind, all.events[i].kind);
		assert_int_equal(c.events[i].thread, all.events[i].thread);
		assert_string_equal(c.events[i].name, all.events[i].name);
		assert_int_equal(c.events[i].stack, STACK_NONE);
		assert_memory_equal(&c.events[i].value, &all.events[i].value, sizeof(double));
	}
	for (i = 0; i < c.nfields; i++)
		assert_string_equal(c.fields[i].name, all.fields[i].name);
	segment_content_free(&all);
	segment_content_free(&c);
	segment_unref(s);
}

TEST(times_of_samples_are_read_without_the_rest)
{
	struct segment_content all = {0}, c = {0};
	struct segment *s;
	uint32_t i;

	s = seal_rich(&all);
	assert_int_equal(segment_decode_times(s->bytes, s->nbytes, &c, NULL), 0);
	assert_true(segment_sound(&c));
	assert_true(all.nnodes > 0 && all.nevents > 0);
	assert_int_equal(c.nnodes + c.nevents + c.nfields, 0);
	assert_int_equal(c.nsamples, all.nsamples);
	for (i = 0; i < c.nsamples; i++) {
		assert_true(c.samples[i].time_ns == all.samples[i].time_ns);
		assert_true(c.samples[i].weight == all.samples[i].weight);
		assert_int_equal(c.samples[i].stream, all.samples[i].stream);
		assert_int_equal(c.samples[i].cpu, all.samples[i].cpu);
	}
	segment_content_free(&all);
	segment_content_free(&c);
	segment_unref(s);
}

/* The smaller segment is read into what the larger one left, then the larger one again. */
TEST(memory_of_an_earlier_content_is_used_again)
{
	struct event e = {.time_ns = 5000000, .kind = EVENT_SAMPLE, .stack = STACK_NONE};
	struct segment_content all = {0}, c = {0};
	struct segment *rich = seal_rich(&all), *small;
	void *samples;
	uint32_t i;

	assert_int_equal(segment_add(lab.builder, &e), 0);
	small = seglab_seal(&lab);
	assert_int_equal(segment_decode(rich->bytes, rich->nbytes, &c, NULL), 0);
	samples = c.samples;
	assert_int_equal(segment_decode(small->bytes, small->nbytes, &c, NULL), 0);
	assert_true(segment_sound(&c));
	assert_ptr_equal(c.samples, samples);
	assert_int_equal(c.nsamples, 1);
	assert_int_equal(c.nnodes + c.nevents + c.nfields, 0);
	assert_int_equal(segment_decode(rich->bytes, rich->nbytes, &c, NULL), 0);
	assert_true(segment_sound(&c));
	assert_int_equal(c.nnodes, all.nnodes);
	assert_memory_equal(c.samples, all.samples, c.nsamples * sizeof(*c.samples));
	assert_memory_equal(c.nodes, all.nodes, c.nnodes * sizeof(*c.nodes));
	for (i = 0; i < c.nfields; i++)
		assert_string_equal(c.fields[i].name, all.fields[i].name);
	/* Nothing is left of it after an error. */
	assert_int_equal(segment_decode(rich->bytes, 1, &c, NULL), ERR_FORMAT);
	assert_null(c.samples);
	segment_content_free(&all);
	segment_unref(rich);
	segment_unref(small);
}

TEST(sums_are_read_with_events_only_where_something_was_lost)
{
	struct event e = {.time_ns = 5000000, .kind = EVENT_GENERIC, .stack = STACK_NONE,
			  .name = "Something"};
	struct segment_content all = {0}, c = {0};
	struct segment *s = seal_rich(&all);         /* something was lost in it */

	assert_int_equal(segment_decode_sums(s->bytes, s->nbytes, &c, NULL), 0);
	assert_int_equal(c.nsamples, all.nsamples);
	assert_int_equal(c.nevents, all.nevents);
	segment_content_free(&all);
	segment_content_free(&c);
	segment_unref(s);
	assert_int_equal(segment_add(lab.builder, &e), 0);
	e.kind = EVENT_SAMPLE;
	e.quality = QUALITY_BROKEN;
	assert_int_equal(segment_add(lab.builder, &e), 0);
	s = seglab_seal(&lab);
	assert_int_equal(segment_decode_sums(s->bytes, s->nbytes, &c, NULL), 0);
	assert_int_equal(c.nevents, 0);
	assert_int_equal(c.nsamples, 1);
	assert_true(c.samples[0].time_ns == 5000000);
	assert_int_equal(c.samples[0].quality, QUALITY_BROKEN);
	segment_content_free(&c);
	segment_unref(s);
}

TEST(only_frames_that_are_new_are_told)
{
	struct frame_ref stack[2] = {{lab.object, 20, 0}, {lab.object, 300, 0}};
	uint64_t offsets = 0;

	segment_stack(lab.builder, stack, 2, fresh_frame, &offsets);
	assert_int_equal(offsets, 320);
	stack[0].offset = 4000;
	segment_stack(lab.builder, stack, 2, fresh_frame, &offsets);
	assert_int_equal(offsets, 4320);
}

/* Leaf first: the roots are at the end. A stack is a node however the one before it began. */
TEST(stacks_that_begin_alike_share_their_nodes)
{
	struct frame_ref a[3] = {{lab.object, 3, 0}, {lab.object, 2, 0}, {lab.object, 1, 0}};
	struct frame_ref b[3] = {{lab.object, 4, 0}, {lab.object, 2, 0}, {lab.object, 1, 0}};
	struct frame_ref c[2] = {{lab.object, 2, 0}, {lab.object, 1, FRAME_KERNEL}};
	uint32_t deep, other;

	deep = segment_stack(lab.builder, a, 3, NULL, NULL);
	other = segment_stack(lab.builder, b, 3, NULL, NULL);
	assert_int_not_equal(deep, other);
	assert_int_equal(segment_stack(lab.builder, a + 1, 2, NULL, NULL),
			 segment_stack(lab.builder, b + 1, 2, NULL, NULL));
	assert_int_equal(segment_stack(lab.builder, a, 3, NULL, NULL), deep);
	assert_int_not_equal(segment_stack(lab.builder, c, 2, NULL, NULL),
			     segment_stack(lab.builder, a + 1, 2, NULL, NULL));
	assert_int_equal(segment_stack(lab.builder, b, 3, NULL, NULL), other);
	assert_int_equal(segment_stack(lab.builder, a, 3, NULL, NULL), deep);
	assert_int_equal(segment_stack(lab.builder, NULL, 0, NULL, NULL), STACK_NONE);
}

/* ---- sealing and limits ---------------------------------------------------------------------- */

TEST(sealing_nothing_gives_nothing)
{
	struct segment *s = (struct segment *)1;

	assert_int_equal(segment_seal(lab.builder, &s, NULL), 0);
	assert_null(s);
	assert_true(segment_is_empty(lab.builder));
	assert_int_equal(segment_first_ns(lab.builder), 0);
	assert_false(segment_is_full(lab.builder, UINT64_MAX));
}

/* Runs, deltas, lists and names start anew: the same content twice is the same bytes twice. */
TEST(builder_starts_anew_after_sealing)
{
	struct segment *first, *second;

	assert_int_equal(seglab_rich(&lab), 0);
	first = seglab_seal(&lab);
	assert_int_equal(seglab_rich(&lab), 0);
	second = seglab_seal(&lab);
	assert_int_equal(first->number + 1, second->number);
	assert_int_equal(first->nbytes, second->nbytes);
	assert_memory_equal(first->bytes, second->bytes, first->nbytes);
	segment_unref(first);
	segment_unref(second);
}

TEST(late_samples_widen_the_segment_to_the_front)
{
	struct segment_content c = {0};

	assert_int_equal(seglab_sample(&lab, 500000, 0, "a"), 0);
	assert_int_equal(seglab_sample(&lab, 100000, 0, "a"), 0);
	assert_int_equal(seglab_sample(&lab, 600000, 0, "a"), 0);
	assert_int_equal(segment_first_ns(lab.builder), 100000);
	reopen(&c);
	assert_int_equal(c.t0_ns, 100000);
	assert_int_equal(c.t1_ns, 600000);
	assert_int_equal(c.samples[1].time_ns, 100000);
	segment_content_free(&c);
}

TEST(segment_is_full_at_8192_samples)
{
	uint32_t i;

	for (i = 0; i < 8192; i++) {
		assert_false(segment_is_full(lab.builder, 1000));
		assert_int_equal(seglab_sample(&lab, 1000, i % 2, "ab"), 0);
	}
	assert_true(segment_is_full(lab.builder, 1000));
	assert_int_equal(segment_open_samples(lab.builder), 8192);
}

TEST(segment_is_full_at_16384_events)
{
	struct event e = {.kind = EVENT_COUNTER, .name = "c", .stack = STACK_NONE};
	uint32_t i;

	for (i = 0; i < 16384; i++) {
		assert_false(segment_is_full(lab.builder, 1000));
		add(&e);
	}
	assert_true(segment_is_full(lab.builder, 1000));
}

TEST(segment_is_full_after_60_s)
{
	assert_int_equal(seglab_sample(&lab, 1000000, 0, "ab"), 0);
	assert_false(segment_is_full(lab.builder, 60000999999));
	assert_true(segment_is_full(lab.builder, 60001000000));
	assert_false(segment_is_full(lab.builder, 0));
}

/* As of a source that came back after a stall, or a program whose clock is false. */
TEST(late_event_does_not_end_a_segment)
{
	assert_int_equal(seglab_sample(&lab, 100000000000, 0, "ab"), 0);
	assert_int_equal(seglab_sample(&lab, 10000000000, 0, "ab"), 0);
	assert_false(segment_is_full(lab.builder, 101000000000));
	assert_true(segment_is_full(lab.builder, 160000000000));
}

/* Names are encoded at the end only: they must count before, or the decoder will refuse it all. */
TEST(segment_is_full_before_its_names_outgrow_the_decoder)
{
	static char name[EVENT_MAX_TEXT + 1];
	struct event e = {.kind = EVENT_LOG, .name = name, .stack = STACK_NONE};
	struct segment_content c = {0};
	uint32_t i;

	memset(name, 'n', EVENT_MAX_TEXT);
	for (i = 0; !segment_is_full(lab.builder, 0); i++) {
		snprintf(name, sizeof(name), "%u", i);
		name[strlen(name)] = 'n';
		add(&e);
	}
	assert_in_range(i, 1000, 1100);                      /* 4 MB of names of 4 KB */
	reopen(&c);
	assert_int_equal(c.nevents, i);
	segment_content_free(&c);
}

TEST(stack_that_finds_no_frame_free_is_none)
{
	struct frame_ref ref = {lab.object, 0, 0};
	struct frames_use use;

	for (ref.offset = 1000; ref.offset < 1000 + FRAMES_MAX; ref.offset++) {
		bool fresh;

		if (frames_intern(lab.frames, &ref, &fresh) == FRAME_NONE)
			fail_msg("refused early");
	}
	assert_int_equal(seglab_stack(&lab, "a"), STACK_NONE);
	frames_use(lab.frames, &use);
	assert_int_equal(use.refused, 1);
	ref.offset--;
	assert_int_not_equal(segment_stack(lab.builder, &ref, 1, NULL, NULL), STACK_NONE);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The tables' own allocations are walked elsewhere: here they are there before. */
static int build_step(void *ctx)
{
	struct segment_content c = {0};
	struct segment *s;
	int rc = seglab_open(&lab);

	(void)ctx;
	if (!rc)
		rc = seglab_rich(&lab);
	s = rc ? NULL : seglab_seal(&lab);
	if (!rc && !s)
		rc = ERR_MEMORY;
	if (!rc)
		rc = segment_decode(s->bytes, s->nbytes, &c, NULL);
	if (!rc)
		segment_content_free(&c);
	segment_unref(s);
	/* Nothing may still refer to a frame. */
	if (s)
		assert_int_equal(frames_now().frames, 0);
	seglab_close(&lab);
	return rc;
}

TEST(segment_without_memory_is_refused_and_leaks_nothing)
{
	assert_in_range(alloc_walk(build_step, NULL), 40, 200);
}

/* One event fails for want of memory: what was there before is sealed as if it had never come. */
TEST(event_that_fails_half_way_leaves_the_segment_whole)
{
	char longer_than_the_room_kept[2000];        /* for fields */
	struct event_field field = {"New", FIELD_TEXT, {.text = longer_than_the_room_kept}};
	struct event e = {.time_ns = 9000000, .kind = EVENT_LOG, .name = "other", .fields = &field,
			  .nfields = 1, .stack = STACK_NONE};
	struct segment_content c = {0};
	unsigned n, failed = 0;

	memset(longer_than_the_room_kept, 'n', sizeof(longer_than_the_room_kept) - 1);
	longer_than_the_room_kept[sizeof(longer_than_the_room_kept) - 1] = '\0';
	for (n = 1; n < 40; n++) {
		assert_int_equal(seglab_open(&lab), 0);
		assert_int_equal(seglab_sample(&lab, 1000, 0, "abc"), 0);
		e.thread = lab.threads[1];
		alloc_walk_fail_at(n);
		if (segment_add(lab.builder, &e) != 0) {
			alloc_walk_fail_at(0);
			failed++;
			reopen(&c);
			assert_int_equal(c.nevents, 0);
			assert_int_equal(c.nsamples, 1);
			assert_int_equal(c.t1_ns, 1000);
			segment_content_free(&c);
		}
		alloc_walk_fail_at(0);
		seglab_close(&lab);
	}
	assert_in_range(failed, 4, 30);
}

#define WITH_LAB(test) cmocka_unit_test_setup_teardown(test, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LAB(sample_columns_come_back),
		WITH_LAB(stacks_share_their_callers),
		WITH_LAB(event_columns_come_back),
		WITH_LAB(fields_of_every_type_come_back),
		WITH_LAB(more_than_64_fields_are_cut),
		WITH_LAB(times_are_kept_in_ticks_of_100_ns_up_to_the_last),
		WITH_LAB(weights_beyond_all_bounds_are_clipped),
		WITH_LAB(numbers_that_no_enum_has_stay_readable),
		WITH_LAB(sealed_segment_keeps_its_frames_and_threads),
		WITH_LAB(a_source_keeps_its_thread_0_when_events_without_one_are_gone),
		WITH_LAB(open_segment_keeps_its_frames_until_it_is_freed),
		WITH_LAB(a_segment_is_the_same_when_others_come_before_its_end),
		WITH_LAB(what_is_not_sealed_to_its_end_is_dropped_with_the_builder),
		WITH_LAB(a_stack_with_an_id_has_the_node_that_it_had),
		WITH_LAB(a_stack_that_another_builder_has_found_is_as_one_searched_for),
		WITH_LAB(segment_of_two_owners_goes_with_the_last),
		WITH_LAB(events_are_read_without_samples),
		WITH_LAB(times_of_samples_are_read_without_the_rest),
		WITH_LAB(memory_of_an_earlier_content_is_used_again),
		WITH_LAB(sums_are_read_with_events_only_where_something_was_lost),
		WITH_LAB(only_frames_that_are_new_are_told),
		WITH_LAB(stacks_that_begin_alike_share_their_nodes),
		WITH_LAB(sealing_nothing_gives_nothing),
		WITH_LAB(builder_starts_anew_after_sealing),
		WITH_LAB(late_samples_widen_the_segment_to_the_front),
		WITH_LAB(segment_is_full_at_8192_samples),
		WITH_LAB(segment_is_full_at_16384_events),
		WITH_LAB(segment_is_full_after_60_s),
		WITH_LAB(late_event_does_not_end_a_segment),
		WITH_LAB(segment_is_full_before_its_names_outgrow_the_decoder),
		WITH_LAB(stack_that_finds_no_frame_free_is_none),
		cmocka_unit_test(segment_without_memory_is_refused_and_leaks_nothing),
		cmocka_unit_test(event_that_fails_half_way_leaves_the_segment_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
