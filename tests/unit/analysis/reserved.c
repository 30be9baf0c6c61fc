/* Memory that was asked of the system, from the events of both hosts. */
#include "analysis/event_samples.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define S 1000000000ULL
#define START_NS (100 * S)
#define MB 1048576u

static int add(struct incident *in, unsigned at_s, const char *provider, const char *name,
	       const char *stack, const struct event_field *fields, uint32_t n)
{
	struct incident_event e = {.time_ns = START_NS + at_s * S, .kind = EVENT_GENERIC,
				   .thread = sample_thread(in, "a", 'a', "a", 1),
				   .stack = STACK_NONE, .provider = provider, .name = name,
				   .nfields = n};

	if (e.thread == THREAD_NONE || (stack && sample_stack(in, stack, &e.stack)))
		return ERR_MEMORY;
	return incident_add_event(in, &e, fields);
}

#define UINT(name_, v_) {.name = name_, .type = FIELD_UINT, .v.u = (v_)}
#define COUNT(fields) (uint32_t)(sizeof(fields) / sizeof((fields)[0]))

/* A call of two arguments or three, and what it returned. */
static int call(struct incident *in, unsigned at_s, const char *what, const char *stack,
		struct event_field *arguments, uint32_t n, uint64_t result)
{
	struct event_field ret = {.name = "ret", .type = FIELD_INT, .v.i = (int64_t)result};
	char name[40];
	int rc;

	snprintf(name, sizeof(name), "sys_enter_%s", what);
	rc = add(in, at_s, "syscalls", name, stack, arguments, n);
	snprintf(name, sizeof(name), "sys_exit_%s", what);
	return rc ? rc : add(in, at_s, "syscalls", name, NULL, &ret, 1);
}

static int map(struct incident *in, unsigned at_s, const char *stack, uint64_t mb, unsigned prot,
	       uint64_t at_mb)
{
	struct event_field f[] = {UINT("len", mb * MB), UINT("prot", prot), UINT("flags", 0x22)};

	return call(in, at_s, "mmap", stack, f, 3, at_mb * MB);
}

static int range(struct incident *in, unsigned at_s, const char *what, const char *first,
		 const char *stack, uint64_t at_mb, uint64_t mb, uint64_t prot)
{
	struct event_field f[] = {UINT(first, at_mb * MB), UINT("len", mb * MB),
				  UINT("prot", prot)};

	return call(in, at_s, what, stack, f, 3, 0);
}

static int move_break(struct incident *in, unsigned at_s, const char *stack, uint64_t to_mb)
{
	struct event_field f[] = {UINT("brk", to_mb * MB)};

	return call(in, at_s, "brk", stack, f, 1, to_mb * MB);
}

/* In MB, of stacks that end in a leaf. */
static uint64_t sum(const struct incident *in, enum stream stream, const char *leaf)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == stream && s->stack != STACK_NONE &&
		    strcmp(in->frames[in->stacks[s->stack].frame].function, leaf) == 0)
			bytes += s->weight;
	}
	return bytes / MB;
}

/* 8 MB by f, of which the middle 2 are unmapped; 16 MB by g come and go. */
static int make_maps(struct incident *in)
{
	int rc = sample_incident(in);

	rc = rc ? rc : map(in, 1, "app!main;app!f", 8, 3, 100);
	rc = rc ? rc : map(in, 2, "app!main;app!g", 16, 3, 200);
	rc = rc ? rc : range(in, 3, "munmap", "addr", "app!main", 103, 2, 0);
	rc = rc ? rc : range(in, 4, "munmap", "addr", "app!main", 200, 16, 0);
	return rc ? rc : event_samples_add(in, NULL);
}

TEST(what_was_unmapped_is_not_kept_but_was_there_at_the_peak)
{
	struct incident in;
	uint32_t n;

	assert_int_equal(make_maps(&in), 0);
	assert_true(sum(&in, STREAM_VM, "f") == 8 && sum(&in, STREAM_VM, "g") == 16);
	assert_true(sum(&in, STREAM_VM_NET, "f") == 6 && sum(&in, STREAM_VM_NET, "g") == 0);
	assert_true(sum(&in, STREAM_VM_PEAK, "f") == 8 && sum(&in, STREAM_VM_PEAK, "g") == 16);
	/* Once. */
	n = in.nsamples;
	assert_int_equal(event_samples_add(&in, NULL), 0);
	assert_int_equal(in.nsamples, n);
	incident_free(&in);
}

/* An arena: 64 MB without rights, of which 4 get them, in two steps that overlap. */
TEST(memory_without_rights_counts_when_it_gets_them)
{
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(map(&in, 1, "app!f", 64, 0, 100), 0);
	assert_int_equal(range(&in, 2, "mprotect", "start", "app!g", 100, 3, 3), 0);
	assert_int_equal(range(&in, 3, "mprotect", "start", "app!h", 101, 3, 3), 0);
	assert_int_equal(event_samples_add(&in, NULL), 0);
	assert_true(sum(&in, STREAM_VM, "f") == 0);
	assert_true(sum(&in, STREAM_VM_NET, "g") == 3);
	assert_true(sum(&in, STREAM_VM_NET, "h") == 1);
	incident_free(&in);
}

TEST(the_break_moves_up_and_down_and_mremap_moves_a_map)
{
	struct event_field f[] = {UINT("addr", 100 * MB), UINT("old_len", 4 * MB),
				  UINT("new_len", 8 * MB)};
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(move_break(&in, 1, "app!f", 10), 0);
	assert_int_equal(move_break(&in, 2, "app!f", 15), 0);
	assert_int_equal(move_break(&in, 3, "app!main", 13), 0);
	assert_int_equal(map(&in, 4, "app!g", 4, 3, 100), 0);
	assert_int_equal(call(&in, 5, "mremap", "app!h", f, 3, (uint64_t)300 * MB), 0);
	assert_int_equal(event_samples_add(&in, NULL), 0);
	assert_true(sum(&in, STREAM_VM, "f") == 5 && sum(&in, STREAM_VM_NET, "f") == 3);
	assert_true(sum(&in, STREAM_VM_NET, "g") == 0 && sum(&in, STREAM_VM_NET, "h") == 8);
	incident_free(&in);
}

/* Reserved, committed in part, decommitted in part; then a call that failed. */
TEST(windows_commits_and_releases)
{
	static const struct {
		const char *name;
		unsigned at_mb, mb, flags;
		const char *stack;
	} all[] = {
		{"VirtualMem/Alloc", 100, 64, 0x2000, "app!f"},
		{"VirtualMem/Alloc", 100, 4, 0x1000, "app!g"},
		{"VirtualMem/Alloc", 100, 4, 0x1000, "app!h"},
		{"VirtualMem/Free", 101, 1, 0x4000, "app!main"},
		{"VirtualMem/Alloc", 300, 2, 0x3000, "app!k"},
		{"VirtualMem/Free", 300, 2, 0x8000, "app!main"},
	};
	struct event_field failed[] = {UINT("len", MB), UINT("prot", 3), UINT("flags", 0x22)};
	struct incident in;
	unsigned i;

	assert_int_equal(sample_incident(&in), 0);
	for (i = 0; i < 6; i++) {
		const struct event_field f[] = {
			UINT("BaseAddr", (uint64_t)all[i].at_mb * MB),
			UINT("Length", all[i].mb * MB), UINT("Flags", all[i].flags)};

		assert_int_equal(add(&in, i + 1, "Windows Kernel", all[i].name, all[i].stack, f,
				     COUNT(f)), 0);
	}
	assert_int_equal(call(&in, 8, "mmap", "app!k", failed, 3, (uint64_t)-12), 0);
	assert_int_equal(event_samples_add(&in, NULL), 0);
	assert_true(sum(&in, STREAM_VM, "f") == 0 && sum(&in, STREAM_VM, "g") == 4);
	assert_true(sum(&in, STREAM_VM, "h") == 0);
	assert_true(sum(&in, STREAM_VM_NET, "g") == 3);
	assert_true(sum(&in, STREAM_VM, "k") == 2 && sum(&in, STREAM_VM_NET, "k") == 0);
	assert_true(sum(&in, STREAM_VM_PEAK, "g") == 3 && sum(&in, STREAM_VM_PEAK, "k") == 2);
	incident_free(&in);
}

/* 1: f 100, 2: g 50, 3: f's goes, 4: g 60, 5: all of g go. Most: 150, of f 100 and g 50. */
static int make_heap(struct incident *in)
{
	static const struct {
		unsigned at_s, bytes, freed_s;
		const char *leaf;
	} blocks[] = {{1, 100, 3, "app!f"}, {2, 50, 5, "app!g"}, {4, 60, 5, "app!g"}};
	int rc = sample_incident(in);
	uint32_t i;

	for (i = 0; !rc && i < 3; i++) {
		struct incident_sample s = {
			.time_ns = START_NS + blocks[i].at_s * S, .weight = blocks[i].bytes * MB,
			.thread = sample_thread(in, "a", 'a', "a", 1), .stream = STREAM_HEAP};
		uint64_t freed_ns = START_NS + blocks[i].freed_s * S;
		struct incident_sample mark = {
			.time_ns = freed_ns, .thread = THREAD_NONE, .stream = STREAM_HEAP_MARK,
			.stack = STACK_NONE,
			.weight = (uint64_t)memory_mark_weight(s.time_ns, freed_ns, MARK_GONE)};

		rc = s.thread == THREAD_NONE ? ERR_MEMORY
					     : sample_stack(in, blocks[i].leaf, &s.stack);
		rc = rc ? rc : incident_add_sample(in, &s);
		rc = rc ? rc : incident_add_sample(in, &mark);
	}
	rc = rc ? rc : incident_sort(in);
	rc = rc ? rc : incident_memory(in);
	return rc ? rc : event_samples_add(in, NULL);
}

TEST(a_heap_at_its_most_has_the_blocks_of_that_moment)
{
	struct incident in;

	assert_int_equal(make_heap(&in), 0);
	assert_true(sum(&in, STREAM_HEAP, "f") == 100 && sum(&in, STREAM_HEAP, "g") == 110);
	assert_true(sum(&in, STREAM_HEAP_NET, "f") + sum(&in, STREAM_HEAP_NET, "g") == 0);
	assert_true(sum(&in, STREAM_HEAP_PEAK, "f") == 100);
	assert_true(sum(&in, STREAM_HEAP_PEAK, "g") == 50);
	incident_free(&in);
}

static int heap_step(void *ctx)
{
	struct incident in;
	int rc = make_heap(&in);

	(void)ctx;
	incident_free(&in);
	return rc;
}

static int step(void *ctx)
{
	struct incident in;
	int rc = make_maps(&in);

	(void)ctx;
	incident_free(&in);
	return rc;
}

TEST(an_allocation_that_fails_is_an_error)
{
	assert_in_range(alloc_walk(step, NULL), 5, 300);
	assert_in_range(alloc_walk(heap_step, NULL), 5, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_unmapped_is_not_kept_but_was_there_at_the_peak),
		cmocka_unit_test(memory_without_rights_counts_when_it_gets_them),
		cmocka_unit_test(the_break_moves_up_and_down_and_mremap_moves_a_map),
		cmocka_unit_test(windows_commits_and_releases),
		cmocka_unit_test(a_heap_at_its_most_has_the_blocks_of_that_moment),
		cmocka_unit_test(an_allocation_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
