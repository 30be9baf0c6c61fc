/* Records of a perf ring, made by hand as perf_event_open(2) draws them. */
#include "source/ring/perf_record.h"
#include "tests/support/perf_bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL ((uint64_t)-128)
#define USER ((uint64_t)-512)
#define GUEST ((uint64_t)-2048)

static const struct perf_format plain, chain = {.callchain = true};
static const struct perf_format whole = {.callchain = true, .nregs = 3, .stack = true};

static bool parse(struct perf_bytes *b, const struct perf_format *format, struct perf_record *out)
{
	perf_bytes_end(b);
	return perf_record_parse(b->bytes, b->n, format, out);
}

/* A sample of pid 5, tid 6 at 700 on CPU 8 with this chain. */
static bool parse_chain(const uint64_t *ips, size_t n, struct perf_bytes *b,
			struct perf_record *out)
{
	perf_bytes_sample(b, 0x1000, 5, 6, 700, 8);
	perf_bytes_u64s(b, ips, n);
	return parse(b, &chain, out);
}

TEST(sample_has_process_time_cpu_and_ip)
{
	struct perf_bytes b;
	struct perf_record r;

	perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
	assert_true(parse(&b, &plain, &r));
	assert_int_equal(r.kind, PERF_KIND_SAMPLE);
	assert_int_equal(r.u.sample.ip, 0x1000);
	assert_int_equal(r.pid, 5);
	assert_int_equal(r.tid, 6);
	assert_int_equal(r.time_ns, 700);
	assert_int_equal(r.cpu, 8);
	assert_int_equal(r.u.sample.nuser + r.u.sample.nkernel, 0);
}

TEST(chain_is_split_at_its_markers)
{
	const uint64_t ips[] = {KERNEL, 0xffff1, 0xffff2, USER, 0x11, 0x12, 0x13};
	struct perf_bytes b;
	struct perf_record r;

	assert_true(parse_chain(ips, 7, &b, &r));
	assert_int_equal(r.u.sample.nkernel, 2);
	assert_int_equal(r.u.sample.kernel[1], 0xffff2);
	assert_int_equal(r.u.sample.nuser, 3);
	assert_int_equal(r.u.sample.user[0], 0x11);
	assert_int_equal(r.u.sample.user[2], 0x13);
}

TEST(chain_without_frames_or_markers_has_none)
{
	const uint64_t ips[] = {USER, 0x11, 0x12};
	struct perf_bytes b;
	struct perf_record r;

	assert_true(parse_chain(ips, 0, &b, &r));
	assert_int_equal(r.u.sample.nuser + r.u.sample.nkernel, 0);
	assert_true(parse_chain(ips + 1, 2, &b, &r));
	assert_int_equal(r.u.sample.nuser + r.u.sample.nkernel, 0);
	assert_true(parse_chain(ips, 1, &b, &r));
	assert_int_equal(r.u.sample.nuser, 0);
}

TEST(guest_frames_are_nobodys)
{
	const uint64_t ips[] = {GUEST, 0x91, USER, 0x11, GUEST, 0x92};
	struct perf_bytes b;
	struct perf_record r;

	assert_true(parse_chain(ips, 6, &b, &r));
	assert_int_equal(r.u.sample.nkernel, 0);
	assert_int_equal(r.u.sample.nuser, 1);
	assert_int_equal(r.u.sample.user[0], 0x11);
}

/*
 * A context that comes twice: only its first part is one piece, and no marker may pass as an
 * address.
 */
TEST(only_the_first_part_of_a_context_is_read)
{
	const uint64_t ips[] = {USER, 0x11, 0x12, KERNEL, 0xffff1, USER, 0x13, KERNEL, 0xffff2};
	struct perf_bytes b;
	struct perf_record r;

	assert_true(parse_chain(ips, 9, &b, &r));
	assert_int_equal(r.u.sample.nuser, 2);
	assert_int_equal(r.u.sample.user[1], 0x12);
	assert_int_equal(r.u.sample.nkernel, 1);
	assert_int_equal(r.u.sample.kernel[0], 0xffff1);
}

TEST(chain_longer_than_its_record_is_refused)
{
	const uint64_t counts[] = {3, 1u << 13, 1ull << 61, UINT64_MAX};
	struct perf_bytes b;
	struct perf_record r;
	unsigned i;

	for (i = 0; i < 4; i++) {
		perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
		perf_bytes_u64(&b, counts[i]);
		perf_bytes_u64(&b, USER);
		perf_bytes_u64(&b, 0x11);
		assert_false(parse(&b, &chain, &r));
	}
}

/* Chain, three registers, and a copy of 24 bytes of stack of which 16 are valid. */
static void put_whole_sample(struct perf_bytes *b, uint64_t abi, uint64_t valid)
{
	const uint64_t ips[] = {USER, 0x11};
	unsigned i;

	perf_bytes_sample(b, 0x1000, 5, 6, 700, 8);
	perf_bytes_u64s(b, ips, 2);
	perf_bytes_u64(b, abi);
	for (i = 0; abi && i < 3; i++)
		perf_bytes_u64(b, 0x71 + i);
	perf_bytes_u64(b, 24);
	perf_bytes_put(b, "the stack, of 24 bytes.", 24);
	perf_bytes_u64(b, valid);
}

TEST(registers_and_stack_follow_the_chain)
{
	struct perf_bytes b;
	struct perf_record r;

	put_whole_sample(&b, 2, 16);
	assert_true(parse(&b, &whole, &r));
	assert_int_equal(r.u.sample.nuser, 1);
	assert_int_equal(r.u.sample.regs_abi, 2);
	assert_int_equal(r.u.sample.regs[2], 0x73);
	assert_int_equal(r.u.sample.stack_bytes, 16);
	assert_memory_equal(r.u.sample.stack, "the stack, of 24", 16);
}

/* The address stands between time and CPU. */
TEST(page_fault_has_its_address)
{
	static const struct perf_format fault = {.address = true};
	struct perf_bytes b;
	struct perf_record r;

	perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
	b.n -= 8;
	assert_false(parse(&b, &fault, &r));
	perf_bytes_u64(&b, 0x7f0000001234);
	perf_bytes_u64(&b, 9);
	assert_true(parse(&b, &fault, &r));
	assert_true(r.u.sample.address == 0x7f0000001234);
	assert_int_equal(r.time_ns, 700);
	assert_int_equal(r.cpu, 9);
}

TEST(the_control_group_follows_the_stack)
{
	const struct perf_format format = {
		.callchain = true, .nregs = 3, .stack = true, .cgroup = true};
	struct perf_bytes b;
	struct perf_record r;

	put_whole_sample(&b, 2, 16);
	perf_bytes_u64(&b, 4711);
	assert_true(parse(&b, &format, &r));
	assert_int_equal(r.u.sample.stack_bytes, 16);
	assert_int_equal(r.u.sample.cgroup, 4711);
	put_whole_sample(&b, 2, 16);
	assert_false(parse(&b, &format, &r));
}

/* A probe's record: 5 and 12 bytes of raw data, then registers. The kernel pads the raw data. */
TEST(raw_data_that_leaves_registers_unaligned_is_refused)
{
	static const struct perf_format probe = {.raw = true, .nregs = 1};
	static const uint32_t sizes[] = {5, 12};
	struct perf_bytes b;
	struct perf_record r;
	unsigned i;

	for (i = 0; i < 2; i++) {
		perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
		perf_bytes_put(&b, &sizes[i], 4);
		perf_bytes_put(&b, "twelve bytes", sizes[i]);
		perf_bytes_u64(&b, 2);
		perf_bytes_u64(&b, 0x71);
		assert_int_equal(parse(&b, &probe, &r), i == 1);
	}
	assert_int_equal(r.u.sample.raw_bytes, 12);
	assert_int_equal(r.u.sample.regs[0], 0x71);
}

/* Another event in the same ring: raw data between the chain and the registers, and no copy. */
TEST(stack_of_a_sample_that_a_program_made_is_its_raw_data)
{
	static const struct perf_format format = {
		.callchain = true, .nregs = 1, .stack = true, .cgroup = true, .short_id = 1};
	static const uint32_t sizes[] = {16, 17, UINT32_MAX};   /* of 16 that are there */
	const uint64_t ips[] = {USER, 0x11};
	const uint32_t raw_bytes = 4 + 16;
	struct perf_bytes b;
	struct perf_record r;
	unsigned i;

	for (i = 0; i < 3; i++) {
		perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
		perf_bytes_u64s(&b, ips, 2);
		perf_bytes_put(&b, &raw_bytes, 4);
		perf_bytes_put(&b, &sizes[i], 4);
		perf_bytes_put(&b, "the stack, of 24", 16);
		perf_bytes_u64(&b, 2);
		perf_bytes_u64(&b, 0x71);
		perf_bytes_u64(&b, 4711);
		assert_int_equal(parse(&b, &format, &r), i == 0);
		if (i)
			continue;
		assert_int_equal(r.u.sample.stack_bytes, 16);
		assert_memory_equal(r.u.sample.stack, "the stack, of 24", 16);
		assert_int_equal(r.u.sample.regs[0], 0x71);
		assert_int_equal(r.u.sample.cgroup, 4711);
	}
}

/* The third word of its raw data is where it returns to; a tracepoint's record is shorter. */
TEST(frames_of_the_program_that_wrote_a_sample_are_left_out)
{
	static const struct perf_format format = {.callchain = true, .raw = true,
						  .program_bytes = 28};
	const uint64_t ips[] = {KERNEL, 0x51, 0x52, 0x53}, raw[] = {1, 0x53, 0x52};
	const uint32_t sizes[] = {28, 20};
	struct perf_bytes b;
	struct perf_record r;
	unsigned i;

	for (i = 0; i < 2; i++) {
		perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
		perf_bytes_u64s(&b, ips, 4);
		perf_bytes_put(&b, &sizes[i], 4);
		perf_bytes_put(&b, raw, 24);
		perf_bytes_put(&b, "pad", 4);
		assert_true(parse(&b, &format, &r));
		assert_int_equal(r.u.sample.nkernel, i ? 3 : 1);
		assert_int_equal(r.u.sample.kernel[0], i ? 0x51 : 0x53);
	}
}

TEST(thread_without_user_registers_has_none)
{
	struct perf_bytes b;
	struct perf_record r;

	put_whole_sample(&b, 0, 0);
	assert_true(parse(&b, &whole, &r));
	assert_null(r.u.sample.regs);
	assert_int_equal(r.u.sample.stack_bytes, 0);
}

TEST(stack_of_zero_bytes_has_no_valid_size_behind_it)
{
	const uint64_t ips[] = {USER, 0x11};
	struct perf_bytes b;
	struct perf_record r;

	perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
	perf_bytes_u64s(&b, ips, 2);
	perf_bytes_u64(&b, 0);                           /* abi: none */
	perf_bytes_u64(&b, 0);                           /* stack: no bytes */
	assert_true(parse(&b, &whole, &r));
	assert_null(r.u.sample.stack);
	assert_int_equal(r.u.sample.stack_bytes, 0);
}

TEST(registers_and_stack_that_cannot_be_are_refused)
{
	struct perf_bytes b;
	struct perf_record r;

	put_whole_sample(&b, 3, 16);
	assert_false(parse(&b, &whole, &r));
	put_whole_sample(&b, 2, 25);
	assert_false(parse(&b, &whole, &r));
	put_whole_sample(&b, 2, UINT64_MAX);
	assert_false(parse(&b, &whole, &r));
}

/* ---- side-band ------------------------------------------------------------------------------- */

static void put_mmap2(struct perf_bytes *b, uint16_t misc, const void *id, const char *path)
{
	perf_bytes_begin(b, 10, misc);
	perf_bytes_u32(b, 5);
	perf_bytes_u32(b, 6);
	perf_bytes_u64(b, 0x400000);
	perf_bytes_u64(b, 0x2000);
	perf_bytes_u64(b, 0x1000);
	perf_bytes_put(b, id, 24);
	perf_bytes_u32(b, 5);                            /* prot, flags */
	perf_bytes_u32(b, 2);
	perf_bytes_text(b, path);
	perf_bytes_trailer(b, 5, 6, 700, 8);
}

TEST(mapping_has_range_file_and_path)
{
	const struct {
		uint32_t major, minor;
		uint64_t ino, generation;
	} id = {8, 1, 4711, 3};
	struct perf_bytes b;
	struct perf_record r;

	put_mmap2(&b, 2, &id, "/usr/bin/app");
	assert_true(parse(&b, &chain, &r));
	assert_int_equal(r.kind, PERF_KIND_MMAP);
	assert_int_equal(r.pid, 5);
	assert_int_equal(r.time_ns, 700);
	assert_int_equal(r.u.mmap.start, 0x400000);
	assert_int_equal(r.u.mmap.bytes, 0x2000);
	assert_int_equal(r.u.mmap.pgoff, 0x1000);
	assert_int_equal(r.u.mmap.major, 8);
	assert_int_equal(r.u.mmap.minor, 1);
	assert_int_equal(r.u.mmap.ino, 4711);
	assert_int_equal(r.u.mmap.ino_generation, 3);
	assert_int_equal(r.u.mmap.build_id_bytes, 0);
	assert_string_equal(r.u.mmap.path, "/usr/bin/app");
}

TEST(mapping_may_have_a_build_id_instead_of_a_file)
{
	uint8_t id[24] = {20, 0, 0, 0, 0xab, 0xcd};
	struct perf_bytes b;
	struct perf_record r;

	put_mmap2(&b, 0x4002, id, "/usr/bin/app");
	assert_true(parse(&b, &chain, &r));
	assert_int_equal(r.u.mmap.build_id_bytes, 20);
	assert_int_equal(r.u.mmap.build_id[1], 0xcd);
	assert_int_equal(r.u.mmap.ino, 0);
	id[0] = 21;
	put_mmap2(&b, 0x4002, id, "/usr/bin/app");
	assert_false(parse(&b, &chain, &r));
}

/* The last byte before the trailer is no NUL: the path must not run on into the trailer. */
TEST(path_without_an_end_is_refused)
{
	const uint8_t id[24] = {0};
	struct perf_bytes b;
	struct perf_record r;

	put_mmap2(&b, 2, id, "/sevens");
	((char *)b.bytes)[b.n - 33] = 'x';
	assert_false(parse(&b, &chain, &r));
}

TEST(comm_may_come_from_exec)
{
	struct perf_bytes b;
	struct perf_record r;
	uint16_t misc;

	for (misc = 0; misc <= 0x2000; misc = (uint16_t)(misc + 0x2000)) {
		perf_bytes_begin(&b, 3, misc);
		perf_bytes_u32(&b, 5);
		perf_bytes_u32(&b, 6);
		perf_bytes_text(&b, "gcc");
		perf_bytes_trailer(&b, 5, 6, 700, 8);
		assert_true(parse(&b, &chain, &r));
		assert_int_equal(r.kind, PERF_KIND_COMM);
		assert_string_equal(r.u.comm.name, "gcc");
		assert_int_equal(r.u.comm.exec, misc != 0);
	}
}

/* pid and tid are the child's, also where the trailer has the forking thread's. */
TEST(fork_and_exit_are_the_childs)
{
	struct perf_bytes b;
	struct perf_record r;
	uint32_t type;

	for (type = 4; type <= 7; type += 3) {
		perf_bytes_begin(&b, type, 0);
		perf_bytes_u32(&b, 50);
		perf_bytes_u32(&b, 5);
		perf_bytes_u32(&b, 51);
		perf_bytes_u32(&b, 6);
		perf_bytes_u64(&b, 700);
		perf_bytes_trailer(&b, 5, 6, 701, 8);
		assert_true(parse(&b, &chain, &r));
		assert_int_equal(r.kind, type == 7 ? PERF_KIND_FORK : PERF_KIND_EXIT);
		assert_int_equal(r.pid, 50);
		assert_int_equal(r.tid, 51);
		assert_int_equal(r.u.task.parent_pid, 5);
		assert_int_equal(r.u.task.parent_tid, 6);
		assert_int_equal(r.time_ns, 700);
	}
}

TEST(kernel_symbol_has_its_range_and_says_when_it_goes)
{
	struct perf_bytes b;
	struct perf_record r;
	uint16_t type_and_flags[2] = {1, 0};         /* PERF_RECORD_KSYMBOL_TYPE_BPF */

	for (; type_and_flags[1] < 2; type_and_flags[1]++) {
		perf_bytes_begin(&b, 17, 0);
		perf_bytes_u64(&b, 0xffffffffc0202000);
		perf_bytes_u32(&b, 0x150);
		perf_bytes_put(&b, type_and_flags, 4);
		perf_bytes_text(&b, "bpf_prog_6deef7357e7b4530_filter");
		perf_bytes_trailer(&b, 5, 6, 700, 8);
		assert_true(parse(&b, &chain, &r));
		assert_int_equal(r.kind, PERF_KIND_KSYMBOL);
		assert_true(r.u.ksymbol.start == 0xffffffffc0202000);
		assert_int_equal(r.u.ksymbol.bytes, 0x150);
		assert_int_equal(r.u.ksymbol.gone, type_and_flags[1]);
		assert_string_equal(r.u.ksymbol.name, "bpf_prog_6deef7357e7b4530_filter");
		assert_int_equal(r.time_ns, 700);
	}
}

/* As kernels write it to the third of three programs that ask for symbols. */
TEST(kernel_symbol_that_is_longer_than_it_should_be_has_its_own_time)
{
	struct perf_bytes b;
	struct perf_record r;
	uint64_t n;

	for (n = 0; n < 3; n++) {
		perf_bytes_begin(&b, 17, 0);
		perf_bytes_u64(&b, 0xffffffffc0202000);
		perf_bytes_u64(&b, 0x150);
		perf_bytes_text(&b, "bpf_prog_6deef7357e7b4530_filter");
		perf_bytes_trailer(&b, 5, 6, 700, 8);
		if (n > 0)
			perf_bytes_trailer(&b, 0, 0, 15797783067885571, 0);
		if (n > 1)
			perf_bytes_trailer(&b, 0x6c2f, 0x656d, 0, 7);
		assert_true(parse(&b, &chain, &r));
		assert_int_equal(r.kind, PERF_KIND_KSYMBOL);
		assert_int_equal(r.time_ns, 700);
		assert_int_equal(r.cpu, 8);
	}
}

TEST(switch_has_who_leaves_and_who_comes)
{
	static const struct {
		uint16_t misc;
		bool out, preempted;
	} cases[] = {{0, false, false}, {0x2000, true, false}, {0x6000, true, true}};
	struct perf_bytes b;
	struct perf_record r;
	size_t i;

	for (i = 0; i < 3; i++) {
		perf_bytes_begin(&b, 15, cases[i].misc); /* SWITCH_CPU_WIDE: the other's pid, tid */
		perf_bytes_u32(&b, 50);
		perf_bytes_u32(&b, 51);
		perf_bytes_trailer(&b, 5, 6, 700, 8);
		assert_true(parse(&b, &plain, &r));
		assert_int_equal(r.kind, PERF_KIND_SWITCH);
		assert_int_equal(r.tid, 6);
		assert_int_equal(r.cpu, 8);
		assert_int_equal(r.u.change.other_tid, 51);
		assert_int_equal(r.u.change.out, cases[i].out);
		assert_int_equal(r.u.change.preempted, cases[i].preempted);
	}
	perf_bytes_begin(&b, 15, 0);
	perf_bytes_trailer(&b, 5, 6, 700, 8);            /* nobody: too short */
	assert_false(parse(&b, &plain, &r));
}

TEST(records_of_the_program_have_a_stack_that_repeats_and_who_is_woken)
{
	struct perf_bytes b;
	struct perf_record r;

	perf_bytes_begin(&b, 15, 0x6008);                /* out, preempted, the stack repeats */
	perf_bytes_u32(&b, 50);
	perf_bytes_u32(&b, 51);
	perf_bytes_u64(&b, 0);
	perf_bytes_u64(&b, 0);
	perf_bytes_trailer(&b, 5, 6, 700, 8);
	assert_true(parse(&b, &plain, &r));
	assert_true(r.u.change.out && r.u.change.preempted);
	assert_int_equal(r.u.change.repeats, 50);
	assert_int_equal(r.u.change.other_tid, 51);
	perf_bytes_begin(&b, 63, 0);
	perf_bytes_u32(&b, 0);
	perf_bytes_u32(&b, 51);
	perf_bytes_trailer(&b, 5, 6, 700, 8);
	assert_true(parse(&b, &plain, &r));
	assert_int_equal(r.kind, PERF_KIND_WAKE);
	assert_int_equal(r.u.change.other_tid, 51);
}

TEST(losses_are_counted_in_either_record)
{
	struct perf_bytes b;
	struct perf_record r;

	perf_bytes_begin(&b, 2, 0);                      /* LOST: id, lost */
	perf_bytes_u64(&b, 1);
	perf_bytes_u64(&b, 99);
	perf_bytes_trailer(&b, 5, 6, 700, 8);
	assert_true(parse(&b, &chain, &r));
	assert_int_equal(r.kind, PERF_KIND_LOST);
	assert_int_equal(r.u.lost, 99);
	perf_bytes_begin(&b, 13, 0);                     /* LOST_SAMPLES: lost */
	perf_bytes_u64(&b, 98);
	perf_bytes_trailer(&b, 5, 6, 700, 8);
	assert_true(parse(&b, &chain, &r));
	assert_int_equal(r.kind, PERF_KIND_LOST);
	assert_int_equal(r.u.lost, 98);
}

TEST(throttling_is_told_and_unknown_records_are_passed_over)
{
	struct perf_bytes b;
	struct perf_record r;

	perf_bytes_begin(&b, 5, 0);
	perf_bytes_u64(&b, 700);
	perf_bytes_u64(&b, 1);
	perf_bytes_u64(&b, 1);
	perf_bytes_trailer(&b, 5, 6, 701, 8);
	assert_true(parse(&b, &chain, &r));
	assert_int_equal(r.kind, PERF_KIND_THROTTLE);
	assert_int_equal(r.time_ns, 701);
	perf_bytes_begin(&b, 4242, 0);
	perf_bytes_trailer(&b, 5, 6, 702, 8);
	assert_true(parse(&b, &chain, &r));
	assert_int_equal(r.kind, PERF_KIND_OTHER);
	assert_int_equal(r.time_ns, 702);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* A copy of exactly n bytes whose header says n: a sanitizer sees a byte too far. */
static bool parses(const struct perf_bytes *b, size_t n)
{
	uint64_t *copy = malloc(n ? n : 1);
	uint16_t size = (uint16_t)n;
	struct perf_record r;
	bool good;

	assert_non_null(copy);
	memcpy(copy, b->bytes, n);
	if (n >= 8)
		memcpy((char *)copy + 6, &size, 2);
	good = perf_record_parse(copy, n, &whole, &r);
	free(copy);
	return good;
}

TEST(shortened_records_are_refused)
{
	const uint8_t id[24] = {0};
	struct perf_bytes sample, mmap2;
	size_t n;

	put_whole_sample(&sample, 2, 16);
	put_mmap2(&mmap2, 2, id, "/usr/bin/app");
	assert_true(parses(&sample, sample.n));
	assert_true(parses(&mmap2, mmap2.n));
	for (n = 0; n < sample.n; n++)
		assert_false(parses(&sample, n));
	/* Less its trailer a mapping of 104 bytes has no place for a path. */
	for (n = 0; n <= 104; n++)
		assert_false(parses(&mmap2, n));
}

TEST(size_that_is_not_the_records_is_refused)
{
	struct perf_bytes b;
	struct perf_record r;

	perf_bytes_sample(&b, 0x1000, 5, 6, 700, 8);
	perf_bytes_end(&b);
	assert_true(perf_record_parse(b.bytes, b.n, &plain, &r));
	assert_false(perf_record_parse(b.bytes, b.n + 8, &plain, &r));
	assert_false(perf_record_parse(b.bytes, b.n - 8, &plain, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_has_process_time_cpu_and_ip),
		cmocka_unit_test(chain_is_split_at_its_markers),
		cmocka_unit_test(chain_without_frames_or_markers_has_none),
		cmocka_unit_test(guest_frames_are_nobodys),
		cmocka_unit_test(only_the_first_part_of_a_context_is_read),
		cmocka_unit_test(chain_longer_than_its_record_is_refused),
		cmocka_unit_test(registers_and_stack_follow_the_chain),
		cmocka_unit_test(page_fault_has_its_address),
		cmocka_unit_test(raw_data_that_leaves_registers_unaligned_is_refused),
		cmocka_unit_test(the_control_group_follows_the_stack),
		cmocka_unit_test(stack_of_a_sample_that_a_program_made_is_its_raw_data),
		cmocka_unit_test(frames_of_the_program_that_wrote_a_sample_are_left_out),
		cmocka_unit_test(thread_without_user_registers_has_none),
		cmocka_unit_test(stack_of_zero_bytes_has_no_valid_size_behind_it),
		cmocka_unit_test(registers_and_stack_that_cannot_be_are_refused),
		cmocka_unit_test(mapping_has_range_file_and_path),
		cmocka_unit_test(mapping_may_have_a_build_id_instead_of_a_file),
		cmocka_unit_test(path_without_an_end_is_refused),
		cmocka_unit_test(comm_may_come_from_exec),
		cmocka_unit_test(fork_and_exit_are_the_childs),
		cmocka_unit_test(kernel_symbol_has_its_range_and_says_when_it_goes),
		cmocka_unit_test(kernel_symbol_that_is_longer_than_it_should_be_has_its_own_time),
		cmocka_unit_test(switch_has_who_leaves_and_who_comes),
		cmocka_unit_test(records_of_the_program_have_a_stack_that_repeats_and_who_is_woken),
		cmocka_unit_test(losses_are_counted_in_either_record),
		cmocka_unit_test(throttling_is_told_and_unknown_records_are_passed_over),
		cmocka_unit_test(shortened_records_are_refused),
		cmocka_unit_test(size_that_is_not_the_records_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
