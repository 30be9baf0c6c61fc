/* Stacks of .NET events: names of code from the runtime's events, and frames made of them. */
#include "source/dotnet/stacks.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/os.h"
#include "source/dotnet/untold.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"

static struct frames *frames;
static struct dotnet_stacks *stacks;
static struct dotnet_program *program;
static struct frame_ref out[DOTNET_FRAMES_MAX + 1];
static uint64_t now_ns = 1000;               /* of what is told, and of stacks */

static int set_up(void **state)
{
	struct err err;

	(void)state;
	now_ns = 1000;
	assert_int_equal(frames_new(&frames, &err), 0);
	assert_int_equal(dotnet_stacks_new(frames, 0, &stacks, &err), 0);
	program = dotnet_program_new(stacks, 7, 1, 0);
	assert_non_null(program);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dotnet_program_free(program, 1);
	dotnet_stacks_free(stacks);
	frames_free(frames);
	return 0;
}

static void put_utf16(struct buf *b, const char *text)
{
	do
		buf_put_le(b, (unsigned char)*text, 2);
	while (*text++);
}

static void learn(const char *provider, uint32_t id, const struct buf *payload)
{
	const struct nettrace_meta meta = {.event_id = id, .provider = provider, .name = ""};
	const struct nettrace_event e = {.meta = &meta, .payload = (const uint8_t *)payload->data,
					 .payload_bytes = (uint32_t)payload->len};

	dotnet_program_learn(program, &e, now_ns);
}

static void learn_flagged(uint32_t id, uint64_t start, uint32_t flags, const char *name)
{
	struct buf b = {0};

	buf_put_le(&b, 1, 8);
	buf_put_le(&b, 55, 8);
	buf_put_le(&b, start, 8);
	buf_put_le(&b, 0x100, 4);
	buf_put_le(&b, 0, 4);
	buf_put_le(&b, flags, 4);
	put_utf16(&b, "App.Thrower");
	put_utf16(&b, name);
	put_utf16(&b, "instance class System.String  (int32,bool)");
	learn(CLR, id, &b);
	buf_free(&b);
}

static void learn_method(uint32_t id, uint64_t start, const char *name)
{
	learn_flagged(id, start, 0, name);
}

static void learn_module(void)
{
	struct buf b = {0};

	buf_put_le(&b, 55, 8);
	buf_put_le(&b, 0, 8);
	buf_put_le(&b, 0, 8);
	put_utf16(&b, "/opt/app/Orders.dll");
	put_utf16(&b, "");
	learn(CLR "Rundown", 154, &b);
	buf_free(&b);
}

/* "Orders!App.Thrower.Throw", or "?" for an address that nobody knows. */
static void is_named(const struct frame_ref *ref, const char *name)
{
	struct frame frame = {.object = ref->object, .offset = ref->offset};
	struct symbol symbol;
	char text[200] = "?";

	if (dotnet_stacks_name(stacks, &frame, &symbol))
		snprintf(text, sizeof(text), "%s!%s", symbol.module ? symbol.module : "",
			 symbol.name);
	assert_string_equal(text, name);
}

/* As PerfView writes them. */
static void has_parameters(const struct frame_ref *ref, const char *detail)
{
	struct frame frame = {.object = ref->object, .offset = ref->offset};
	struct symbol symbol;

	assert_true(dotnet_stacks_name(stacks, &frame, &symbol));
	assert_string_equal(symbol.raw_name, detail);
}

static void keep_frames(void *ctx, const struct event *e)
{
	struct event last = *e;

	if (last.sample_id)
		event_become_sample(&last);
	*(uint32_t *)ctx = last.nstack_frames;
	memcpy(out, last.stack_frames, last.nstack_frames * sizeof(*out));
}

/* what: those of the sample of such an event; NULL = those of the event itself */
static uint32_t frames_of(uint64_t leaf, uint64_t caller, const char *what)
{
	struct event e = {.time_ns = now_ns, .name = what};
	struct nettrace_event raw = {.stack_bytes = 16};
	struct gc_objects objects = {.on = false};
	struct buf stack = {0};
	uint32_t n = 0;

	buf_put_le(&stack, leaf, 8);
	buf_put_le(&stack, caller, 8);
	raw.stack = (const uint8_t *)stack.data;
	dotnet_program_deliver(program, what ? &objects : NULL, &raw, 8, &e, keep_frames, &n);
	assert_int_equal(e.nstack_frames, 0);
	buf_free(&stack);
	return n;
}

TEST(addresses_have_the_names_of_the_methods_that_contain_them)
{
	learn_module();
	learn_method(143, 0x1000, "Throw");
	learn_method(143, 0x2000, "Main");
	assert_int_equal(frames_of(0x1010, 0x2100, NULL), 2);
	is_named(&out[0], "Orders!App.Thrower.Throw");
	/* The call is the method's last instruction. */
	is_named(&out[1], "Orders!App.Thrower.Main");
	has_parameters(&out[0], "=(int32,bool)");
	assert_int_equal(frames_of(0x3000, 0x1101, NULL), 2);
	is_named(&out[0], "?");
	is_named(&out[1], "?");
}

/* It is not asked for its module, so it has the same name before that is told and after. */
TEST(a_dynamic_method_has_one_name)
{
	learn_flagged(143, 0x1000, 1, "Throw");
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.Throw");
	learn_module();
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.Throw");
}

/* Nobody told of the one that had its memory, and was dropped before anyone listened. */
TEST(a_dynamic_method_has_no_samples_from_long_before_it)
{
	now_ns = 1000 * NS_PER_MS;
	learn_flagged(143, 0x1000, 1, "Throw");
	now_ns = 950 * NS_PER_MS;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.Throw");
	now_ns = 800 * NS_PER_MS;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "?");
}

/* Its memory may have been another's, which was dropped before the runtime began to tell. */
TEST(a_dynamic_method_has_no_samples_from_before_the_runtime_told_of_code)
{
	dotnet_program_tells(program, 2000);
	now_ns = 3000;
	learn_flagged(143, 0x1000, 1, "Throw");
	now_ns = 2000;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.Throw");
	now_ns = 1999;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "?");
}

TEST(a_dynamic_method_whose_end_alone_is_told_was_there_before)
{
	dotnet_program_tells(program, 2000);
	now_ns = 4000;
	learn_flagged(144, 0x1000, 1, "First");
	now_ns = 6000;
	learn_flagged(143, 0x1000, 1, "Second");
	now_ns = 3000;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.First");
	now_ns = 1999;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "?");
	now_ns = 8000;                               /* Second's end */
	learn_flagged(144, 0x1000, 1, "Second");
	now_ns = 9000;
	learn_flagged(144, 0x1000, 1, "Third");
	now_ns = 7000;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.Second");
	now_ns = 8500;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.Third");
}

/* Of another thread: that the method was made is told after that it went. */
TEST(a_dynamic_method_that_went_before_it_was_told_is_not_there_any_more)
{
	dotnet_program_tells(program, 1000);
	now_ns = 3000;
	learn_flagged(144, 0x1000, 1, "Throw");
	now_ns = 2000;
	learn_flagged(143, 0x1000, 1, "Throw");
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "!App.Thrower.Throw");
	now_ns = 3500;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "?");
	now_ns = 1999;
	frames_of(0x1010, 0x2100, NULL);
	is_named(&out[0], "?");
}

/* A session ended, and another one has begun: it numbers its names anew. */
TEST(names_of_another_session_are_other_frames)
{
	struct object *first;

	learn_flagged(143, 0x1000, 1, "Throw");
	frames_of(0x1010, 0x2100, NULL);
	first = out[0].object;
	dotnet_program_free(program, 1);
	program = dotnet_program_new(stacks, 7, 1, 0);
	assert_non_null(program);
	learn_flagged(143, 0x1000, 1, "Catch");
	frames_of(0x1010, 0x2100, NULL);
	assert_ptr_not_equal(out[0].object, first);
}

/* 152 is ModuleLoad of the runtime, but DomainModuleDCEnd of its rundown: another layout. */
TEST(a_module_of_an_application_domain_is_not_taken_for_a_name)
{
	struct buf b = {0};

	learn_module();
	buf_put_le(&b, 55, 8);
	buf_put_le(&b, 0, 8);
	buf_put_le(&b, 0, 8);
	buf_put_le(&b, '(', 4);                  /* flags */
	buf_put_le(&b, 0, 4);
	put_utf16(&b, "/opt/app/Orders.dll");
	put_utf16(&b, "");
	learn(CLR "Rundown", 152, &b);
	buf_free(&b);
	learn_method(143, 0x1000, "Throw");
	frames_of(0x1010, 0x1020, NULL);
	is_named(&out[0], "Orders!App.Thrower.Throw");
}

TEST(the_leaf_of_a_sample_says_what_happened)
{
	learn_method(143, 0x1000, "Throw");
	assert_int_equal(frames_of(0x1010, 0x1020, "Exception/Start App.Error"), 3);
	is_named(&out[0], "event!Exception/Start App.Error");
	is_named(&out[1], "!App.Thrower.Throw");
	frames_of(0x1010, 0x1020, "GC/Triggered");
	is_named(&out[0], "event!GC/Triggered");
	frames_of(0x1010, 0x1020, "Exception/Start App.Error");
	is_named(&out[0], "event!Exception/Start App.Error");
}

TEST(a_stack_that_came_before_its_code_was_told_has_names_afterwards)
{
	frames_of(0x1010, 0x2010, NULL);
	frames_of(0x1010, 0x2010, NULL);
	is_named(&out[0], "?");
	learn_method(143, 0x1000, "Throw");
	frames_of(0x1010, 0x2010, NULL);
	is_named(&out[0], "!App.Thrower.Throw");
	is_named(&out[1], "?");
	learn_module();
	learn_method(143, 0x2000, "Main");
	frames_of(0x1010, 0x2010, NULL);
	is_named(&out[0], "Orders!App.Thrower.Throw");
	is_named(&out[1], "Orders!App.Thrower.Main");
}

TEST(other_code_at_the_same_address_has_its_own_name)
{
	struct frame_ref before;

	learn_method(143, 0x1000, "Throw");
	frames_of(0x1010, 0x1020, NULL);
	before = out[0];
	learn_method(144, 0x1000, "Throw");
	frames_of(0x1010, 0x1020, NULL);
	is_named(&out[0], "?");
	learn_method(143, 0x1000, "Catch");
	frames_of(0x1010, 0x1020, NULL);
	is_named(&out[0], "!App.Thrower.Catch");
	is_named(&before, "!App.Thrower.Throw");
}

/* What happened at an earlier time is told later: 200 ms at most. */
TEST(code_is_that_of_the_time_of_the_sample)
{
	learn_method(143, 0x1000, "First");
	now_ns = 2000;
	learn_method(144, 0x1000, "First");
	now_ns = 3000;
	learn_method(143, 0x1080, "Second");         /* over a part of it */
	now_ns = 1500;
	frames_of(0x1090, 0x1010, NULL);
	is_named(&out[0], "!App.Thrower.First");
	is_named(&out[1], "!App.Thrower.First");
	now_ns = 2500;
	frames_of(0x1090, 0x1010, NULL);
	is_named(&out[0], "?");
	now_ns = 3500;
	frames_of(0x1090, 0x1010, NULL);
	is_named(&out[0], "!App.Thrower.Second");
	is_named(&out[1], "?");
}

/* The thread that drops code is not the one that makes it; each one's events come together. */
TEST(that_code_went_is_told_after_what_took_its_place)
{
	learn_method(143, 0x1000, "First");
	now_ns = 3000;
	learn_method(143, 0x1000, "Second");
	now_ns = 2000;
	learn_method(144, 0x1000, "First");
	now_ns = 3500;
	frames_of(0x1010, 0x1010, NULL);
	is_named(&out[0], "!App.Thrower.Second");
	now_ns = 2500;                               /* it may have been neither of them */
	frames_of(0x1010, 0x1010, NULL);
	is_named(&out[0], "?");
	now_ns = 1500;
	frames_of(0x1010, 0x1010, NULL);
	is_named(&out[0], "!App.Thrower.First");
}

TEST(code_that_is_told_after_newer_code_was_there_until_then)
{
	now_ns = 3000;
	learn_method(143, 0x1080, "Second");
	now_ns = 1000;
	learn_method(143, 0x1000, "First");
	frames_of(0x1010, 0x1090, NULL);
	is_named(&out[0], "!App.Thrower.First");
	is_named(&out[1], "!App.Thrower.First");
	now_ns = 3000;
	frames_of(0x1010, 0x1090, NULL);
	is_named(&out[0], "?");
	is_named(&out[1], "!App.Thrower.Second");
}

/* That it went was not told: a method that covers another takes its place. */
TEST(code_over_other_code_takes_its_place)
{
	learn_method(143, 0x1000, "First");
	learn_method(143, 0x1200, "Second");
	now_ns = 2000;
	learn_method(143, 0x0f80, "Third");
	frames_of(0x1010, 0x1200 + 0x10, NULL);
	is_named(&out[0], "!App.Thrower.Third");
	is_named(&out[1], "!App.Thrower.Second");
	now_ns = 1900;
	frames_of(0x1010, 0x1010, NULL);
	is_named(&out[0], "!App.Thrower.First");
}

/* ---- frames of samples ----------------------------------------------------------------------- */

static struct object *object_of(enum object_kind kind, uint32_t pid, const char *path)
{
	const struct object_key key = {.kind = kind, .pid = pid, .path = path, .ino = 1};
	struct object *object = objects_get(frames, &key, pid);

	assert_non_null(object);
	return object;
}

static void settle(uint32_t pid, struct frame_ref *refs, uint32_t n, struct event *e)
{
	static struct process process;

	process.pid = pid;
	*e = (struct event){.time_ns = now_ns, .process = &process, .stack_frames = refs,
			    .nstack_frames = n};
	dotnet_stacks_settle(stacks, e);
}

TEST(frames_of_samples_in_generated_code_get_their_names)
{
	struct object *jit = object_of(OBJECT_JIT, 7, "[jit]");
	struct frame_ref refs[] = {{.object = jit, .offset = 0x1010, .flags = FRAME_JIT},
				   {.object = jit, .offset = 0x9000, .flags = FRAME_JIT}};
	struct event e;

	learn_method(143, 0x1000, "Throw");
	settle(7, refs, 2, &e);                      /* whose module is not known yet */
	is_named(&e.stack_frames[0], "?");
	learn_module();
	settle(7, refs, 2, &e);
	is_named(&e.stack_frames[0], "Orders!App.Thrower.Throw");
	is_named(&e.stack_frames[1], "?");
	settle(8, refs, 2, &e);                      /* another process */
	assert_ptr_equal(e.stack_frames, refs);
	object_drop(jit, 0);
}

TEST(frames_of_samples_in_precompiled_code_get_their_names)
{
	struct object *dll = object_of(OBJECT_ELF, 0, "/opt/app/Orders.dll");
	struct object *other = object_of(OBJECT_ELF, 0, "/opt/app/Other.dll");
	struct frame_ref refs[] = {{.object = dll, .offset = 0x410},
				   {.object = dll, .offset = 0x3ff},
				   {.object = other, .offset = 0x410}};
	struct dotnet_image *images = calloc(1, sizeof(*images));
	struct event e;

	assert_non_null(images);
	*images = (struct dotnet_image){.path = strdup("/opt/app/Orders.dll"), .start = 0x1000,
					.bytes = 0x1000, .pgoff = 0x400};
	assert_false(dotnet_program_wants_images(program));
	learn_module();
	assert_true(dotnet_program_wants_images(program));
	learn_method(143, 0x1000, "Throw");
	dotnet_program_images(program, images, 1);
	settle(7, refs, 3, &e);
	is_named(&e.stack_frames[0], "Orders!App.Thrower.Throw");
	assert_ptr_equal(e.stack_frames[1].object, dll);
	assert_ptr_equal(e.stack_frames[2].object, other);
	object_drop(dll, 0);
	object_drop(other, 0);
}

/* The frame of a sample at 0x1010. */
static struct frame_ref sampled(struct object *jit, uint64_t time_ns)
{
	struct frame_ref ref = {.object = jit, .offset = 0x1010, .flags = FRAME_JIT};
	struct event e;

	now_ns = time_ns;
	settle(7, &ref, 1, &e);
	return *e.stack_frames;
}

TEST(what_was_sampled_before_it_was_told_gets_its_name_later)
{
	struct object *jit = object_of(OBJECT_JIT, 7, "[jit]");
	struct frame_ref ref = sampled(jit, 1000);
	struct symbol symbol;

	learn_method(143, 0x1000, "Throw");
	dotnet_stacks_look(stacks, NS_PER_SEC);
	is_named(&ref, "?");                         /* it would be "[.net]!App.Thrower.Throw" */
	learn_module();
	dotnet_stacks_look(stacks, 2 * NS_PER_SEC);
	is_named(&ref, "Orders!App.Thrower.Throw");
	assert_true(dotnet_stacks_late(stacks, ref.object, ref.offset, &symbol));
	assert_string_equal(symbol.name, "App.Thrower.Throw");
	/* Its name stays when the program has ended. */
	dotnet_program_free(program, 3 * NS_PER_SEC);
	program = NULL;
	dotnet_stacks_look(stacks, 30 * NS_PER_SEC);
	is_named(&ref, "Orders!App.Thrower.Throw");
	object_drop(jit, 0);
}

/* 0x1010 is First until 2 s, Second from 3 s on; all of it is told at 4 s. */
TEST(what_was_sampled_before_it_was_told_has_the_name_of_its_time)
{
	struct object *jit = object_of(OBJECT_JIT, 7, "[jit]");
	struct frame_ref of[6];

	dotnet_program_tells(program, 1000);
	of[0] = sampled(jit, 900);                   /* it may be another one */
	of[1] = sampled(jit, 1500 * NS_PER_MS);
	of[2] = sampled(jit, 1999 * NS_PER_MS);
	assert_int_equal(sampled(jit, 2001 * NS_PER_MS).offset, of[2].offset);
	of[3] = sampled(jit, 2500 * NS_PER_MS);
	of[4] = sampled(jit, 3500 * NS_PER_MS);
	now_ns = 1000;
	learn_flagged(143, 0x1000, 1, "First");
	now_ns = 2 * NS_PER_SEC;
	learn_flagged(144, 0x1000, 1, "First");
	now_ns = 3 * NS_PER_SEC;
	learn_flagged(143, 0x1000, 1, "Second");
	dotnet_stacks_look(stacks, 3999 * NS_PER_MS);
	is_named(&of[4], "?");                       /* events may be on their way */
	dotnet_stacks_look(stacks, 5 * NS_PER_SEC);
	is_named(&of[0], "?");
	is_named(&of[1], "!App.Thrower.First");
	is_named(&of[2], "?");                       /* of one place, and from both sides */
	is_named(&of[3], "?");
	is_named(&of[4], "!App.Thrower.Second");
	of[5] = sampled(jit, 6 * NS_PER_SEC);
	is_named(&of[5], "!App.Thrower.Second");
	object_drop(jit, 0);
}

/* The runtime's own helpers; a map of the program's code may name them. */
TEST(what_is_never_told_stays_as_it_was_after_10_seconds)
{
	struct object *jit = object_of(OBJECT_JIT, 7, "[jit]");
	struct frame_ref ref;
	uint64_t i;

	for (i = 0; i < 200; i++) {
		ref = sampled(jit, NS_PER_SEC + i * 50 * NS_PER_MS);
		assert_ptr_not_equal(ref.object, jit);
	}
	ref = sampled(jit, 11 * NS_PER_SEC);
	assert_ptr_equal(ref.object, jit);
	assert_int_equal(ref.offset, 0x1010);
	object_drop(jit, 0);
}

TEST(a_rundown_that_does_not_come_is_asked_for_again)
{
	unsigned n = 0;

	while (dotnet_program_needs_rundown(program)) {
		assert_false(dotnet_program_needs_rundown(program));
		dotnet_program_no_rundown(program);
		n++;
	}
	assert_int_equal(n, 5);
}

TEST(the_oldest_places_are_given_up_for_new_ones)
{
	struct object *jit = object_of(OBJECT_JIT, 7, "[jit]");
	struct frame_ref first = sampled(jit, 1000), last = first;
	struct event e;
	uint64_t i;

	for (i = 1; i <= DOTNET_UNTOLD_MAX; i++) {
		last = (struct frame_ref){.object = jit, .offset = 0x10000 + i, .flags = FRAME_JIT};
		settle(7, &last, 1, &e);
		last = *e.stack_frames;
	}
	learn_module();
	learn_method(143, 0x1000, "First");
	learn_method(143, 0x10000 + DOTNET_UNTOLD_MAX, "Last");
	for (i = 2; i < 40; i++)                     /* 512 places at once */
		dotnet_stacks_look(stacks, i * NS_PER_SEC / 4);
	is_named(&last, "Orders!App.Thrower.Last");
	is_named(&first, "?");
	object_drop(jit, 0);
}

/* Its last samples come after its end. */
TEST(code_of_a_program_that_has_ended_is_known_for_a_while)
{
	struct object *jit = object_of(OBJECT_JIT, 7, "[jit]");
	struct frame_ref ref = {.object = jit, .offset = 0x1010, .flags = FRAME_JIT};
	struct event e;

	learn_module();
	learn_method(143, 0x1000, "Throw");
	dotnet_program_free(program, 1000);
	program = NULL;
	dotnet_stacks_look(stacks, 1000 + NS_PER_SEC);
	settle(7, &ref, 1, &e);
	is_named(&e.stack_frames[0], "Orders!App.Thrower.Throw");
	dotnet_stacks_look(stacks, 1000 + 6 * NS_PER_SEC);
	settle(7, &ref, 1, &e);
	assert_ptr_equal(e.stack_frames, &ref);
	object_drop(jit, 0);
}

TEST(a_thousand_methods_in_any_order_are_found)
{
	uint64_t i;
	char name[20];

	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "M%u", (unsigned)(i * 7 % 1000));
		learn_method(143, 0x1000 + i * 7 % 1000 * 0x100, name);
	}
	frames_of(0x1000 + 123 * 0x100 + 5, 0x1000 + 999 * 0x100 + 1, NULL);
	is_named(&out[0], "!App.Thrower.M123");
	is_named(&out[1], "!App.Thrower.M999");
}

static uint64_t start_of(unsigned i)
{
	return 0x1000 + i * 7 % 16 * 0x80;           /* half of one lies over half of the next */
}

/* Each is there for 500 ns, 1,000 ns after the one before. */
TEST(of_five_thousand_methods_that_went_the_last_4096_are_known)
{
	static const unsigned asked[] = {904, 905, 2000, 4998, 4999};
	char name[32];
	unsigned i;

	for (i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "M%u", i);
		now_ns = 1000 + i * 1000u;
		learn_method(143, start_of(i), name);
		now_ns += 500;
		learn_method(144, start_of(i), name);
	}
	for (i = 0; i < 5; i++) {
		now_ns = 1000 + asked[i] * 1000u + 499;
		frames_of(start_of(asked[i]) + 0x10, start_of(asked[i]) + 0xff, NULL);
		snprintf(name, sizeof(name), "!App.Thrower.M%u", asked[i]);
		is_named(&out[0], name);
		is_named(&out[1], name);
		now_ns += 1;
		frames_of(start_of(asked[i]) + 0x10, start_of(asked[i]) + 0xff, NULL);
		is_named(&out[0], "?");
	}
	now_ns = 1000 + 903 * 1000 + 100;
	frames_of(start_of(903) + 0x10, start_of(903) + 0x10, NULL);
	is_named(&out[0], "?");
}

static int count_stacks(void *ctx, const struct nettrace_event *event)
{
	*(unsigned *)ctx += event->meta->event_id == 80 && event->stack_bytes >= 16 &&
			    event->stack_bytes % 8 == 0;
	return 0;
}

TEST(exceptions_that_a_runtime_wrote_have_stacks)
{
	struct buf file = {0};
	struct nettrace *t;
	unsigned n = 0;
	struct err err;

	assert_int_equal(os_load("tests/data/nettrace/exceptions.nettrace", 1 << 20, &file, NULL),
			 0);
	assert_int_equal(nettrace_new(&t, &err), 0);
	assert_int_equal(nettrace_feed(t, file.data, file.len, count_stacks, &n, &err), 0);
	print_message("%u exceptions with stacks\n", n);
	assert_true(n > 0);
	nettrace_free(t);
	buf_free(&file);
}

#define WITH_PROGRAM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PROGRAM(addresses_have_the_names_of_the_methods_that_contain_them),
		WITH_PROGRAM(a_dynamic_method_has_one_name),
		WITH_PROGRAM(names_of_another_session_are_other_frames),
		WITH_PROGRAM(a_dynamic_method_has_no_samples_from_long_before_it),
		WITH_PROGRAM(a_dynamic_method_has_no_samples_from_before_the_runtime_told_of_code),
		WITH_PROGRAM(a_dynamic_method_whose_end_alone_is_told_was_there_before),
		WITH_PROGRAM(a_dynamic_method_that_went_before_it_was_told_is_not_there_any_more),
		WITH_PROGRAM(a_module_of_an_application_domain_is_not_taken_for_a_name),
		WITH_PROGRAM(a_stack_that_came_before_its_code_was_told_has_names_afterwards),
		WITH_PROGRAM(the_leaf_of_a_sample_says_what_happened),
		WITH_PROGRAM(other_code_at_the_same_address_has_its_own_name),
		WITH_PROGRAM(code_is_that_of_the_time_of_the_sample),
		WITH_PROGRAM(code_over_other_code_takes_its_place),
		WITH_PROGRAM(that_code_went_is_told_after_what_took_its_place),
		WITH_PROGRAM(code_that_is_told_after_newer_code_was_there_until_then),
		WITH_PROGRAM(frames_of_samples_in_generated_code_get_their_names),
		WITH_PROGRAM(frames_of_samples_in_precompiled_code_get_their_names),
		WITH_PROGRAM(what_was_sampled_before_it_was_told_gets_its_name_later),
		WITH_PROGRAM(what_was_sampled_before_it_was_told_has_the_name_of_its_time),
		WITH_PROGRAM(what_is_never_told_stays_as_it_was_after_10_seconds),
		WITH_PROGRAM(the_oldest_places_are_given_up_for_new_ones),
		WITH_PROGRAM(a_rundown_that_does_not_come_is_asked_for_again),
		WITH_PROGRAM(code_of_a_program_that_has_ended_is_known_for_a_while),
		WITH_PROGRAM(a_thousand_methods_in_any_order_are_found),
		WITH_PROGRAM(of_five_thousand_methods_that_went_the_last_4096_are_known),
		cmocka_unit_test(exceptions_that_a_runtime_wrote_have_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
