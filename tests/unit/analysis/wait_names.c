/* Files and ports below the waits of threads, from the events around them. */
#include "analysis/wait_names.h"
#include "base/array.h"
#include "base/table.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define MS 1000000u
#define TEXT(name, value) {name, FIELD_TEXT, {.text = value}}
#define UINT(name, value) {name, FIELD_UINT, {.u = value}}
#define INT(name, value) {name, FIELD_INT, {.i = value}}

struct made {
	struct incident in;
	uint32_t thread, module;
};

static int make(struct made *m)
{
	const struct incident_module module = {.kind = OBJECT_JIT, .name = "thread",
					       .path = "[thread]"};
	int rc = sample_incident(&m->in);

	if (rc)
		return rc;
	m->thread = sample_thread(&m->in, "web", 10, "main", 10);
	m->module = incident_add_module(&m->in, &module);
	return m->thread == THREAD_NONE || m->module == UINT32_MAX ? ERR_MEMORY : 0;
}

/* A wait that ends at end_ms, with a frame of who ended it where there is one. */
static int put_wait(struct made *m, unsigned end_ms, unsigned ms, const char *stack,
		    const char *leaf, const char *waker)
{
	struct incident_frame frame = {.module = m->module, .flags = FRAME_JIT, .function = leaf,
				       .offset = hash_bytes(leaf, strlen(leaf))};
	struct incident_sample s = {.time_ns = m->in.head.t0_ns + end_ms * (uint64_t)MS,
				    .weight = ms * (uint64_t)MS, .thread = m->thread,
				    .stream = STREAM_OFF_CPU, .cpu = CPU_NONE};
	int rc = sample_stack(&m->in, stack, &s.stack);

	if (rc)
		return rc;
	s.stack = incident_add_stack(&m->in, s.stack, incident_add_frame(&m->in, &frame));
	if (waker) {
		frame.function = waker;
		frame.offset = 7;
		s.stack = incident_add_stack(&m->in, s.stack, incident_add_frame(&m->in, &frame));
	}
	return s.stack == STACK_NONE ? ERR_MEMORY : incident_add_sample(&m->in, &s);
}

static int put_event(struct made *m, unsigned us, const char *name,
		     const struct event_field *fields, uint32_t n)
{
	const struct incident_event e = {
		.time_ns = m->in.head.t0_ns + us * 1000ULL, .kind = EVENT_GENERIC,
		.thread = m->thread, .stack = STACK_NONE, .cpu = CPU_NONE, .provider = "x",
		.name = name, .nfields = n};

	return incident_add_event(&m->in, &e, fields);
}

/* The last two frames of a sample: "DISK_TIME;C:\a". */
static const char *tail(const struct incident *in, uint32_t sample, char out[200])
{
	uint32_t stack = in->samples[sample].stack;

	snprintf(out, 200, "%s;%s", in->frames[in->stacks[in->stacks[stack].parent].frame].function,
		 in->frames[in->stacks[stack].frame].function);
	return out;
}

static void expect(struct made *m, const char *const *tails, uint32_t n)
{
	char text[200];
	uint32_t i;

	assert_int_equal(wait_names_add(&m->in), 0);
	for (i = 0; i < n; i++)
		assert_string_equal(tail(&m->in, i, text), tails[i]);
	incident_free(&m->in);
}

TEST(events_of_windows_name_the_file_or_port)
{
	static const struct event_field dll[] = {TEXT("FileName", "C:\\a.dll")};
	static const struct event_field log[] = {TEXT("FileName", "C:\\b.log")};
	static const struct event_field port[] = {TEXT("daddr", "10.0.0.7"), UINT("PID", 10),
						  UINT("dport", 445), UINT("sport", 60001)};
	static const char *const tails[] = {
		"HARD_FAULT;C:\\a.dll", "DISK_TIME;C:\\b.log",
		"NETWORK_TIME;10.0.0.7 ports 445 and 60001", "work;BLOCKED_TIME"};
	struct made m = {.thread = 0};

	assert_int_equal(make(&m), 0);
	assert_int_equal(put_wait(&m, 20, 10, "app!main;app!work", "BLOCKED_TIME", NULL), 0);
	assert_int_equal(put_wait(&m, 40, 10, "app!main;app!work", "BLOCKED_TIME", NULL), 0);
	assert_int_equal(put_wait(&m, 60, 10, "app!main;afd.sys!recv", "BLOCKED_TIME", NULL), 0);
	assert_int_equal(put_wait(&m, 80, 10, "app!main;app!work", "BLOCKED_TIME", NULL), 0);
	/* A fault is told once the thread runs again; it has read from the disk. */
	assert_int_equal(put_event(&m, 19900, "DiskIO/Read", dll, 1), 0);
	assert_int_equal(put_event(&m, 20100, "Memory/HardFault", dll, 1), 0);
	assert_int_equal(put_event(&m, 39900, "DiskIO/Read", log, 1), 0);
	assert_int_equal(put_event(&m, 59900, "TcpIp/Recv", port, 4), 0);
	/* This thread does not wait for a socket. */
	assert_int_equal(put_event(&m, 79900, "TcpIp/Recv", port, 4), 0);
	expect(&m, tails, 4);
}

TEST(events_of_linux_name_the_file_or_port)
{
	static const struct event_field page[] = {UINT("i_ino", 12), UINT("s_dev", 254 << 20)};
	static const struct event_field other[] = {UINT("i_ino", 13), UINT("s_dev", 254 << 20)};
	static const struct event_field asks[] = {
		UINT("skaddr", 99), INT("oldstate", 7), INT("newstate", 2), UINT("family", 2),
		UINT("dport", 443), UINT("daddr0", 10), UINT("daddr1", 0), UINT("daddr2", 0),
		UINT("daddr3", 7)};
	static const struct event_field asked[] = {UINT("skaddr", 98), INT("oldstate", 3),
						   INT("newstate", 1), UINT("sport", 8080)};
	static const struct event_field of_99[] = {UINT("sk", 99)}, of_98[] = {UINT("sk", 98)};
	static const char *const tails[] = {
		"HARD_FAULT;inode 12 of device 254:0", "DISK_TIME;2 files or ports",
		"NETWORK_TIME;to 10.0.0.7 port 443", "on port 8080;shop (7) thread 8",
		"work;NETWORK_TIME"};
	struct made m = {.thread = 0};

	assert_int_equal(make(&m), 0);
	assert_int_equal(put_wait(&m, 20, 10, "app!work", "HARD_FAULT", NULL), 0);
	assert_int_equal(put_wait(&m, 40, 10, "app!work", "DISK_TIME", NULL), 0);
	assert_int_equal(put_wait(&m, 60, 10, "app!work", "NETWORK_TIME", NULL), 0);
	assert_int_equal(put_wait(&m, 80, 10, "app!work", "NETWORK_TIME", "shop (7) thread 8"), 0);
	assert_int_equal(put_wait(&m, 99, 10, "app!work", "NETWORK_TIME", NULL), 0);
	assert_int_equal(put_event(&m, 1000, "inet_sock_set_state", asks, 9), 0);
	assert_int_equal(put_event(&m, 1001, "inet_sock_set_state", asked, 4), 0);
	assert_int_equal(put_event(&m, 9990, "mm_filemap_add_to_page_cache", page, 2), 0);
	assert_int_equal(put_event(&m, 29990, "mm_filemap_add_to_page_cache", page, 2), 0);
	assert_int_equal(put_event(&m, 33000, "mm_filemap_add_to_page_cache", other, 2), 0);
	assert_int_equal(put_event(&m, 60050, "sock_recv_length", of_99, 1), 0);
	assert_int_equal(put_event(&m, 80050, "sock_recv_length", of_98, 1), 0);
	expect(&m, tails, 5);
}

/* A disk that answers within 0.2 ms: neither wait is for the other one's file. */
TEST(a_page_is_of_the_first_wait_for_a_disk_that_ends_after_it)
{
	static const struct event_field page[] = {UINT("i_ino", 12), UINT("s_dev", 254 << 20)};
	static const struct event_field other[] = {UINT("i_ino", 13), UINT("s_dev", 254 << 20)};
	static const char *const tails[] = {"DISK_TIME;inode 12 of device 254:0",
					    "work;BLOCKED_TIME",
					    "HARD_FAULT;inode 13 of device 254:0"};
	struct made m = {.thread = 0};

	assert_int_equal(make(&m), 0);
	assert_int_equal(put_wait(&m, 20, 5, "app!work", "DISK_TIME", NULL), 0);
	assert_int_equal(put_wait(&m, 20, 1, "app!work", "BLOCKED_TIME", NULL), 0);
	assert_int_equal(put_wait(&m, 21, 1, "app!work", "HARD_FAULT", NULL), 0);
	assert_int_equal(put_event(&m, 19800, "mm_filemap_add_to_page_cache", page, 2), 0);
	assert_int_equal(put_event(&m, 20800, "mm_filemap_add_to_page_cache", other, 2), 0);
	expect(&m, tails, 3);
}

static void put_file_name(struct made *m, unsigned us, uint64_t ino, const char *path,
			  unsigned from_us, unsigned to_us)
{
	const struct event_field name[] = {
		UINT("s_dev", 254 << 20), UINT("i_ino", ino), TEXT("FileName", path),
		UINT("from_us_ago", from_us), UINT("to_us_ago", to_us)};

	assert_int_equal(put_event(m, us, "File/Name", name, 5), 0);
}

TEST(a_file_has_its_name_for_as_long_as_its_number_was_its_own)
{
	static const struct event_field page[] = {UINT("i_ino", 12), UINT("s_dev", 254 << 20)};
	static const struct event_field other[] = {UINT("i_ino", 13), UINT("s_dev", 254 << 20)};
	static const char *const tails[] = {
		"DISK_TIME;/data/old", "DISK_TIME;inode 12 of device 254:0",
		"DISK_TIME;/data/new", "DISK_TIME;inode 12 of device 254:0",
		"HARD_FAULT;inode 13 of device 254:0"};
	struct made m = {.thread = 0};
	unsigned i;

	assert_int_equal(make(&m), 0);
	for (i = 1; i <= 5; i++)
		assert_int_equal(put_wait(&m, i * 20, 10, "app!work",
					  i < 5 ? "DISK_TIME" : "HARD_FAULT", NULL), 0);
	for (i = 1; i <= 5; i++)
		assert_int_equal(put_event(&m, i * 20000 - 5000, "mm_filemap_add_to_page_cache",
					   i < 5 ? page : other, 2), 0);
	/* Pages were read at 15, 35, 55 and 75 ms. */
	put_file_name(&m, 30000, 12, "/data/old", 900000, 2000);
	put_file_name(&m, 80000, 12, "/data/new", 35000, 15000);
	put_file_name(&m, 99000, 14, "/data/13", 900000, 0);
	expect(&m, tails, 5);
}

static int make_and_name(void *ctx)
{
	static const struct event_field file[] = {TEXT("FileName", "C:\\a.dll")};
	struct made m = {.thread = 0};
	int rc = make(&m);

	(void)ctx;
	if (!rc)
		rc = put_wait(&m, 20, 10, "app!work", "BLOCKED_TIME", NULL);
	if (!rc)
		rc = put_event(&m, 19900, "DiskIO/Read", file, 1);
	if (!rc)
		rc = wait_names_add(&m.in);
	incident_free(&m.in);
	return rc;
}

TEST(lack_of_memory_is_an_error)
{
	assert_in_range(alloc_walk(make_and_name, NULL), 5, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_windows_name_the_file_or_port),
		cmocka_unit_test(events_of_linux_name_the_file_or_port),
		cmocka_unit_test(a_page_is_of_the_first_wait_for_a_disk_that_ends_after_it),
		cmocka_unit_test(a_file_has_its_name_for_as_long_as_its_number_was_its_own),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
