/* How much frame readers may know of all processes together; the reader is made up. */
#include "source/perf/managed_linux.h"

#include "source/perf/state_linux.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S NS_PER_SEC
#define MB ((size_t)1 << 20)

static size_t bytes_of_each;
static unsigned nlearned, nforgotten, ntwins;
static struct managed_names *learned_names;
static uint64_t learning_takes_ns;

static bool recognizes(const char *file)
{
	return strcmp(file, "libmade.so") == 0;
}

static int learn(const struct managed_image *image, const struct managed_host *host,
		 struct managed_names *names, struct managed **out, struct err *err)
{
	uint64_t end_ns = os_now_ns() + learning_takes_ns;

	(void)host, (void)err;
	ntwins += image->twin != NULL;
	learned_names = names;
	while (os_now_ns() < end_ns)
		continue;
	*out = (struct managed *)&nlearned;
	nlearned++;
	return 0;
}

static void begin(struct managed *m, const struct managed_host *host, uint64_t sample_ns)
{
	(void)m, (void)host, (void)sample_ns;
}

static bool owns(const struct managed *managed, uint64_t pc, const struct managed_place *place)
{
	(void)managed, (void)pc, (void)place;
	return true;
}

static void forget(struct managed *m)
{
	(void)m;
	nforgotten++;
}

static size_t bytes(const struct managed *m)
{
	(void)m;
	return bytes_of_each;
}

static const struct frame_reader made = {
	.name = "Made", .object = "[made]", .recognizes = recognizes, .learn = learn, .owns = owns,
	.begin = begin, .forget = forget, .bytes = bytes};
static const struct frame_reader *const readers[] = {&made, NULL};

#define PROGRAMS 8u

static struct frames *frames;
static struct perf_managed *m;
static struct perf_process programs[PROGRAMS];
static uint64_t now_ns;

static void map_file(unsigned program, const char *path)
{
	const struct object_key key = {.kind = OBJECT_ELF, .path = path};
	struct object *code = objects_get(frames, &key, 0);

	perf_managed_map(m, &programs[program], code, 4096);
	object_drop(code, now_ns);
}

static void begin_with(size_t each)
{
	unsigned i;

	bytes_of_each = each;
	nlearned = nforgotten = ntwins = 0;
	now_ns = os_now_ns();
	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(perf_managed_new(frames, NULL, NULL, readers, &m, NULL), 0);
	for (i = 0; i < PROGRAMS; i++) {
		programs[i] = (struct perf_process){.pid = (uint32_t)getpid(), .start_ns = i + 1};
		map_file(i, "/lib/libmade.so");
	}
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < PROGRAMS; i++)
		perf_managed_forget(m, &programs[i], now_ns);
	assert_int_equal(nforgotten, nlearned);
	perf_managed_free(m);
	frames_free(frames);
}

/* One has samples, and a second passes. */
static bool sampled(unsigned program)
{
	bool known;

	now_ns += 3 * S;                     /* one that was forgotten is learned again after 2 s */
	known = perf_managed_begin(m, &programs[program], now_ns);
	now_ns += 2 * S;
	perf_managed_look(m, now_ns);
	return known;
}

TEST(a_process_without_samples_is_forgotten_after_a_while)
{
	begin_with(MB);
	assert_true(sampled(0));
	assert_true(sampled(1));
	now_ns += MANAGED_IDLE_NS;
	assert_true(perf_managed_begin(m, &programs[1], now_ns));
	perf_managed_look(m, now_ns);
	assert_int_equal(nforgotten, 1);
	assert_int_equal(perf_managed_forgotten(m), 0);          /* not for lack of room */
	end();
}

TEST(without_room_the_one_that_has_been_idle_for_longest_goes)
{
	unsigned i;

	begin_with(20 * MB);
	for (i = 0; i < 3; i++)
		assert_true(sampled(i));
	assert_int_equal(nforgotten, 0);                         /* 60 MB; one user's are 64 */
	assert_true(sampled(3));
	assert_int_equal(nforgotten, 1);
	assert_int_equal(perf_managed_forgotten(m), 1);
	assert_true(sampled(3));
	assert_int_equal(nforgotten, 1);
	/* The first one is learned again; now the second one has been idle for longest. */
	assert_true(sampled(0) && sampled(2));
	assert_int_equal(nlearned, 5);
	assert_int_equal(nforgotten, 2);
	end();
}

TEST(one_program_that_holds_too_much_is_forgotten_alone)
{
	begin_with(MB);
	assert_true(sampled(0));
	bytes_of_each = MANAGED_PROGRAM_BYTES + 1;
	assert_true(sampled(0));
	assert_int_equal(nforgotten, 1);
	bytes_of_each = MB;
	assert_true(sampled(0));
	end();
}

TEST(names_that_are_learned_again_are_other_frames)
{
	struct frame_ref at = {.flags = FRAME_JIT};
	struct object *first, *second;

	begin_with(MB);
	assert_true(sampled(0));
	assert_true(perf_managed_find(m, &programs[0], 1, &at, &first));
	now_ns += 2 * MANAGED_IDLE_NS;
	perf_managed_look(m, now_ns);
	assert_true(sampled(0));
	assert_true(perf_managed_find(m, &programs[0], 1, &at, &second));
	assert_ptr_equal(at.object, second);
	assert_ptr_not_equal(first, second);
	end();
}

TEST(what_was_learned_of_a_file_is_there_for_the_next_process_of_it)
{
	begin_with(MB);
	perf_managed_forget(m, &programs[2], now_ns);
	map_file(2, "/opt/libmade.so");
	assert_true(sampled(0));
	assert_true(sampled(2));
	assert_int_equal(ntwins, 0);
	assert_true(sampled(1));
	assert_int_equal(ntwins, 1);
	perf_managed_forget(m, &programs[0], now_ns);
	perf_managed_forget(m, &programs[1], now_ns);
	assert_true(sampled(3));
	assert_int_equal(ntwins, 1);
	end();
}

/* Records were lost: the process was forgotten, and /proc says that it lives. */
TEST(names_of_a_process_that_is_found_again_are_other_frames)
{
	struct frame_ref at = {.flags = FRAME_JIT};
	struct object *first, *second;

	begin_with(MB);
	assert_true(sampled(0));
	assert_true(perf_managed_find(m, &programs[0], 1, &at, &first));
	perf_managed_forget(m, &programs[0], now_ns);
	map_file(0, "/lib/libmade.so");
	assert_true(sampled(0));
	assert_true(perf_managed_find(m, &programs[0], 1, &at, &second));
	assert_ptr_not_equal(first, second);
	end();
}

/* An address in that object was the number of somebody's name, of low addresses. */
TEST(an_address_of_generated_code_is_no_number_of_a_name)
{
	struct frame_ref at = {.flags = FRAME_JIT, .offset = 0x5286911};
	struct object *object;

	begin_with(MB);
	assert_true(sampled(0));
	assert_true(perf_managed_find(m, &programs[0], at.offset, &at, &object));
	assert_ptr_equal(at.object, object);
	assert_int_equal(managed_number(at.offset), 0);
	end();
}

/* A program that makes names for months: once its table is nearly full it is learned anew. */
TEST(names_never_end)
{
	char name[32];
	unsigned i;

	begin_with(MB);
	assert_true(sampled(0));
	for (i = 0; i < MANAGED_NAMES_MAX / 16 * 15; i++) {
		snprintf(name, sizeof(name), "work%u", i);
		assert_int_not_equal(managed_names_add(learned_names, name, NULL), 0);
	}
	perf_managed_look(m, now_ns);
	assert_int_equal(nforgotten, 0);
	assert_int_not_equal(managed_names_add(learned_names, "one more", NULL), 0);
	perf_managed_look(m, now_ns);
	assert_int_equal(nforgotten, 1);
	assert_true(perf_managed_begin(m, &programs[0], now_ns));
	assert_int_equal(nlearned, 2);
	assert_int_equal(managed_names_add(learned_names, "one more", NULL), 1);
	end();
}

/* 32 JVMs on a machine that is busy: rings must be drained between. 60 + 60 ms, then 60 of 120. */
TEST(learning_many_programs_takes_half_of_the_time_at_most)
{
	uint64_t start_ns = os_now_ns();
	unsigned known = 0, i;

	begin_with(MB);
	learning_takes_ns = 60 * NS_PER_MS;
	while (known < 5)
		for (known = i = 0; i < 5; i++)
			known += perf_managed_begin(m, &programs[i], now_ns);
	learning_takes_ns = 0;
	assert_int_equal(nlearned, 5);
	assert_true(os_now_ns() - start_ns >= (5 * 60 + 20 + 60 + 60) * NS_PER_MS);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_without_samples_is_forgotten_after_a_while),
		cmocka_unit_test(without_room_the_one_that_has_been_idle_for_longest_goes),
		cmocka_unit_test(one_program_that_holds_too_much_is_forgotten_alone),
		cmocka_unit_test(names_that_are_learned_again_are_other_frames),
		cmocka_unit_test(what_was_learned_of_a_file_is_there_for_the_next_process_of_it),
		cmocka_unit_test(names_of_a_process_that_is_found_again_are_other_frames),
		cmocka_unit_test(an_address_of_generated_code_is_no_number_of_a_name),
		cmocka_unit_test(names_never_end),
		cmocka_unit_test(learning_many_programs_takes_half_of_the_time_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
