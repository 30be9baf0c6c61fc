/*
 * A live session's records, put by hand: events wait for their stacks, by the time of the
 * records.
 */
#include "source/etw/live.h"

#include "base/array.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define SAMPLE_GUID "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc"
#define STACK_GUID "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"
#define CLR_GUID "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"
#define MY_GUID "11111111-2222-3333-4444-555555555555"
#define HZ 10000000u
#define MS (HZ / 1000)
#define K(n) (0xFFFFF80000000000u + (n))
#define U(n) (0x7F0000000000u + (n))

static struct frames *frames;
static struct processes *processes;
static struct queue *queue;
static struct etw_live *live;

static int begin(void **state)
{
	struct source_config cfg = {.capture = {.freq_hz = 1000}};

	(void)state;
	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(processes_new(&processes, NULL), 0);
	queue = queue_new(QUEUE_BYTES);
	cfg.frames = frames;
	cfg.processes = processes;
	cfg.queue = queue;
	return etw_live_open(&cfg, HZ, &live, NULL);
}

static int end(void **state)
{
	(void)state;
	etw_live_close(live);
	queue_free(queue);
	processes_free(processes);
	frames_free(frames);
	return 0;
}

static void put(struct etw_record r, int64_t ms, uint32_t pid, uint32_t tid)
{
	r.ticks = ms * MS;
	r.pid = pid;
	r.tid = tid;
	etw_live_put(live, &r);
}

static void sample(int64_t ms, uint32_t tid)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, U(1), 8);
	etw_int(&b, tid, 4);
	etw_int(&b, 1, 4);
	put(etw_classic(SAMPLE_GUID, 46, 2, &b), ms, ETW_ID_UNKNOWN, ETW_ID_UNKNOWN);
}

static void stack(int64_t ms, int64_t of_ms, uint32_t tid, uint64_t address)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, (uint64_t)of_ms * MS, 8);
	etw_int(&b, 8, 4);
	etw_int(&b, tid, 4);
	etw_int(&b, address, 8);
	put(etw_classic(STACK_GUID, 32, 2, &b), ms, 8, tid);
}

/* The next event of this kind, or NULL; others are dropped. */
static const struct event *next(enum event_kind kind)
{
	static struct event kept;
	const struct event *e;

	while ((e = queue_peek(queue)) != NULL) {
		kept = *e;
		queue_pop(queue);
		if (kept.kind == kind)
			return &kept;
	}
	return NULL;
}

TEST(a_sample_waits_for_its_stack)
{
	const struct event *e;

	sample(1000, 7);
	stack(1001, 1000, 7, U(5));
	assert_null(next(EVENT_SAMPLE));
	sample(1499, 0);                     /* of an idle CPU: only its time counts */
	sample(1501, 9);
	e = next(EVENT_SAMPLE);
	assert_non_null(e);
	assert_int_equal(e->time_ns, 1000 * NS_PER_MS);
	assert_int_equal(e->nstack_frames, 1);
	assert_null(next(EVENT_SAMPLE));
}

/* As Windows writes PerfInfo/PMCSample. */
static void counted(int64_t ms, uint32_t tid, uint16_t source)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, U(1), 8);
	etw_int(&b, tid, 4);
	etw_int(&b, source, 2);
	etw_int(&b, 0, 2);
	put(etw_classic(SAMPLE_GUID, 47, 2, &b), ms, ETW_ID_UNKNOWN, ETW_ID_UNKNOWN);
}

TEST(what_a_counter_counted_is_an_event_of_its_name_that_weighs_its_period)
{
	const struct etw_pmcs counters = {
		.n = 2, .all = {{.id = 6, .interval = 20000, .name = "BranchMispredictions"},
				{.id = 11, .interval = 5000, .name = "CacheMisses"}}};
	const struct event *e;

	etw_live_counters(live, &counters);
	counted(1000, 7, 11);
	stack(1001, 1000, 7, U(5));
	counted(1002, 7, 6);
	counted(1003, 7, 12);                /* another session's */
	sample(1600, 9);
	e = next(EVENT_GENERIC);
	assert_string_equal(e->provider, "cpu-counter");
	assert_string_equal(e->name, "CacheMisses");
	assert_true(e->value == 5000 && e->nstack_frames == 1 && e->stream == STREAM_EVENT);
	e = next(EVENT_GENERIC);
	assert_string_equal(e->name, "BranchMispredictions");
	assert_true(e->value == 20000 && e->nstack_frames == 0);
	e = next(EVENT_GENERIC);
	assert_string_equal(e->name, "PerfInfo/PMCSample");
}

TEST(a_user_part_that_comes_too_late_is_counted)
{
	struct etw_live_counts n;
	const struct event *e;

	sample(1000, 7);
	stack(1000, 1000, 7, K(5));
	sample(1600, 9);
	e = next(EVENT_SAMPLE);
	assert_int_equal(e->quality, QUALITY_BROKEN);
	assert_int_equal(e->nstack_frames, 1);
	stack(1700, 1000, 7, U(5));
	etw_live_counts(live, &n);
	assert_int_equal(n.no_user, 1);
}

TEST(time_passes_without_records)
{
	sample(1000, 7);
	etw_live_time(live, 1400 * MS);
	assert_null(next(EVENT_SAMPLE));
	etw_live_time(live, 1600 * MS);
	assert_non_null(next(EVENT_SAMPLE));
	assert_int_equal(queue_released(queue, 0), 1100 * NS_PER_MS);
}

TEST(the_end_lets_all_go)
{
	sample(1000, 7);
	sample(1001, 7);
	etw_live_end(live);
	assert_non_null(next(EVENT_SAMPLE));
	assert_non_null(next(EVENT_SAMPLE));
}

TEST(losses_are_events_with_their_number)
{
	const struct event *e;

	etw_live_lost(live, 40);
	/* No event has told the time yet: at 0 no incident would have it. */
	assert_null(next(EVENT_LOST));
	sample(1000, 7);
	etw_live_time(live, 1600 * MS);
	etw_live_lost(live, 1);
	e = next(EVENT_LOST);
	assert_true(e && e->value == 41 && e->time_ns == 1000 * NS_PER_MS);
	assert_string_equal(e->name, "kernel");
	etw_live_lost(live, 0);
	assert_null(next(EVENT_LOST));
}

TEST(losses_of_a_session_without_events_are_told_at_its_end)
{
	const struct event *e;

	etw_live_lost(live, 3);
	etw_live_end(live);
	e = next(EVENT_LOST);
	assert_true(e && e->value == 3 && e->time_ns > 0);
}

TEST(another_interval_than_asked_is_told_once)
{
	const struct event *e;

	etw_live_interval(live, 20000);      /* 2 ms; 1 was asked */
	sample(1000, 7);
	sample(2000, 7);
	e = next(EVENT_RATE);
	assert_true(e && e->value == 2e6);
	assert_null(next(EVENT_RATE));
	sample(3000, 7);
	e = next(EVENT_SAMPLE);
	assert_true(e && e->value == 2e6);
}

/*
 * Asked at 1500 ms, between two samples: the first weighs 1 ms, and the mark stands before the
 * second.
 */
TEST(a_step_holds_from_its_moment_on)
{
	const struct event *e;

	etw_live_interval(live, 10000);
	sample(1400, 7);
	etw_live_level(live, 1500 * MS, 1000000 / 49 * 10);
	sample(1600, 7);
	sample(2200, 7);
	e = queue_peek(queue);
	assert_true(e->kind == EVENT_SAMPLE && e->value == 1e6);
	queue_pop(queue);
	e = queue_peek(queue);
	assert_true(e->kind == EVENT_RATE && e->value == 20408000);
	assert_true(!e->name || !*e->name);  /* the engine knows why */
	assert_int_equal(e->time_ns, 1500 * NS_PER_MS);
	e = next(EVENT_SAMPLE);
	assert_true(e && e->time_ns == 1600 * NS_PER_MS && e->value == 20408000);
}

/* PerfInfo SetInterval: source, new, old. */
static void interval_record(int64_t ms, uint32_t interval)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 0, 4);
	etw_int(&b, interval, 4);
	etw_int(&b, 10000, 4);
	put(etw_classic(SAMPLE_GUID, 72, 3, &b), ms, 0, 0);
}

TEST(a_step_that_windows_says_as_well_is_marked_once_and_as_ours)
{
	const struct event *e;

	etw_live_interval(live, 10000);
	interval_record(1499, 200000);
	etw_live_level(live, 1500 * MS, 200000);
	sample(1600, 7);
	sample(2200, 7);
	e = next(EVENT_RATE);
	assert_true(e && e->time_ns == 1499 * NS_PER_MS && e->value == 2e7);
	assert_true(!e->name || !*e->name);
	assert_null(next(EVENT_RATE));
}

/*
 * 250 ms of a second at 1000 Hz; at the moment of which it is said, not when the samples come
 * out.
 */
TEST(busy_time_is_expected_at_the_rate_of_its_moment)
{
	const struct event *e;

	etw_live_interval(live, 10000);
	sample(1400, 7);
	etw_live_busy(live, 1500 * MS, 3, 250 * NS_PER_MS);
	etw_live_level(live, 1500 * MS, 100000);
	etw_live_busy(live, 2500 * MS, 3, 250 * NS_PER_MS);
	assert_null(queue_peek(queue));
	etw_live_time(live, 3100 * MS);
	e = next(EVENT_EXPECTED);
	assert_true(e && e->time_ns == 1500 * NS_PER_MS && e->cpu == 3 && e->value == 250);
	e = next(EVENT_EXPECTED);
	assert_true(e && e->time_ns == 2500 * NS_PER_MS && e->value == 25);
}

/*
 * 250 ms at 1000 Hz are 250 samples, also where the next record to come says that it is 50 Hz
 * from then on.
 */
TEST(busy_time_before_a_step_that_windows_says_is_expected_at_the_rate_before)
{
	const struct event *e;

	etw_live_interval(live, 10000);
	sample(1400, 7);
	etw_live_busy(live, 1498 * MS, 3, 250 * NS_PER_MS);
	interval_record(1499, 200000);
	etw_live_level(live, 1500 * MS, 200000);
	sample(1600, 7);
	sample(2200, 7);
	e = next(EVENT_EXPECTED);
	assert_true(e && e->time_ns == 1498 * NS_PER_MS && e->value == 250);
}

/*
 * More than it has room for, with records that do not come: said at the last moment that has
 * come.
 */
TEST(busy_times_do_not_pile_up)
{
	uint64_t last_ns = 0;
	const struct event *e;
	unsigned i;

	for (i = 0; i < 20000; i++)
		etw_live_busy(live, (1000 + i) * (int64_t)MS, 0, NS_PER_MS);
	etw_live_end(live);
	for (i = 0; (e = next(EVENT_EXPECTED)) != NULL; i++) {
		assert_true(e->time_ns >= last_ns);
		last_ns = e->time_ns;
	}
	assert_int_equal(i, 20000);
}

TEST(idle_cpus_let_time_pass)
{
	int64_t ms;

	sample(1000, 7);
	for (ms = 1001; ms < 1700; ms++)
		sample(ms, 0);
	assert_non_null(next(EVENT_SAMPLE));
	assert_in_range(queue_released(queue, 0), 1150 * NS_PER_MS, 1200 * NS_PER_MS);
}

/* A layout is asked for once for each kind of event that nothing describes. */
TEST(a_layout_is_asked_for_once)
{
	struct etw_record r = {.header = ETW_MANIFEST, .guid = etw_guid_of(MY_GUID), .id = 3,
			       .pointer_bytes = 8};

	assert_true(etw_live_wants_schema(live, &r));
	assert_false(etw_live_wants_schema(live, &r));
	r.version = 1;
	assert_true(etw_live_wants_schema(live, &r));
	r.id = 4;
	r.nitems = 1;
	r.items[0].type = 11;                /* TraceLogging: it has its own */
	assert_false(etw_live_wants_schema(live, &r));
}

static void child(uint8_t opcode, int64_t ms, uint32_t pid, uint32_t parent, const char *image)
{
	const uint32_t ids[] = {pid, parent, 2, 3};  /* session, exit code */
	struct etw_bytes b = {.n = 0};
	char command_line[1900];
	uint32_t i;

	snprintf(command_line, sizeof(command_line), "%u %01800u", pid, pid);
	etw_int(&b, 0, 8);
	for (i = 0; i < COUNT_OF(ids); i++)
		etw_int(&b, ids[i], 4);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);                   /* flags, no SID */
	etw_text8(&b, image);
	etw_text16(&b, command_line);
	put(etw_classic(ETW_PROCESS_GUID, opcode, 4, &b), ms, 4, 4);
}

static void process(uint8_t opcode, int64_t ms, uint32_t pid, const char *image)
{
	child(opcode, ms, pid, 1, image);
}

static void thread_start(int64_t ms, uint32_t pid, uint32_t tid)
{
	struct etw_bytes b = {.n = 0};
	uint32_t i;

	etw_int(&b, pid, 4);
	etw_int(&b, tid, 4);
	for (i = 0; i < 8; i++)
		etw_int(&b, 0, 8);
	etw_text16(&b, "");
	put(etw_classic("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c", 1, 3, &b), ms, pid, tid);
}

/* A process of one thread, whose id is the next number, and a sample of it 1 ms later. */
static void samples_of(int64_t ms, uint32_t pid, uint32_t parent, const char *image)
{
	child(1, ms, pid, parent, image);
	thread_start(ms, pid, pid + 1);
	sample(ms + 1, pid + 1);
}

/* run on Windows: 100 was started by it, and waits until the session records. */
TEST(a_program_and_all_that_it_starts_are_recorded_and_nothing_else)
{
	struct source_config cfg = {
		.capture = {.freq_hz = 1000, .root_pid = 100},
		.frames = frames, .processes = processes, .queue = queue};
	const char *const names[] = {"sh", "cc1", "as", "ld", ""};
	const struct event *e;
	uint32_t i;

	etw_live_close(live);
	assert_int_equal(etw_live_open(&cfg, HZ, &live, NULL), 0);
	child(3, 900, 50, 100, "stale.exe"); /* its parent had the number of 100, long ago */
	child(3, 900, 100, 8, "sh.exe");
	thread_start(900, 100, 101);
	thread_start(900, 50, 51);
	sample(1000, 101);
	sample(1001, 51);
	samples_of(1010, 200, 100, "cc1.exe");
	samples_of(1020, 300, 200, "as.exe");
	child(2, 1030, 200, 100, "cc1.exe"); /* ends; others get its number, and it is not theirs */
	samples_of(1040, 200, 50, "foreign.exe");
	samples_of(1050, 400, 200, "foreign.exe");
	samples_of(1060, 500, 300, "ld.exe");
	etw_live_time(live, 3000 * MS);
	for (i = 0; (e = queue_peek(queue)) != NULL; queue_pop(queue)) {
		if (e->process) {
			assert_string_not_equal(process_name(e->process), "stale");
			assert_string_not_equal(process_name(e->process), "foreign");
		}
		if (e->kind == EVENT_SAMPLE)
			assert_string_equal(process_name(e->process), names[i++]);
	}
	assert_int_equal(i, COUNT_OF(names) - 1);
}

static void method(int64_t ms, uint32_t pid, uint64_t start, const char *name)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 1, 8);
	etw_int(&b, 2, 8);
	etw_int(&b, start, 8);
	etw_int(&b, 0x1000, 4);
	etw_int(&b, 0, 8);
	etw_text16(&b, "My.Type");
	etw_text16(&b, name);
	etw_text16(&b, "");
	etw_int(&b, 0, 2);
	put((struct etw_record){.header = ETW_MANIFEST, .guid = etw_guid_of(CLR_GUID), .id = 143,
				.version = 1, .pointer_bytes = 8, .payload = b.at,
				.payload_bytes = b.n},
	    ms, pid, 7);
}

/* The name of the leaf of the next sample, as the merge thread asks for it. */
static const char *leaf_name(void)
{
	const struct event *e = next(EVENT_SAMPLE);
	struct frame frame = {0};
	struct symbol symbol = {0};

	if (!e || !e->nstack_frames)
		return "no stack";
	frame.object = e->stack_frames[0].object;
	frame.offset = e->stack_frames[0].offset;
	return etw_live_name(live, &frame, &symbol) ? symbol.name : "no name";
}

/*
 * 17,000 processes with command lines of 1,800 characters take 32 MB: what a day makes of a build
 * server.
 */
TEST(what_has_ended_is_forgotten_and_the_rest_is_not)
{
	struct etw_live_counts before, after;
	int64_t ms = 1000;
	uint32_t pid;

	process(1, ms, 8, "keeper.exe");
	method(ms, 8, U(0), "Old");
	for (pid = 1000; pid < 18000; pid++, ms += 100) {
		process(1, ms, pid, "short.exe");
		process(2, ms + 5, pid, "short.exe");
		while (queue_peek(queue))
			queue_pop(queue);
	}
	etw_live_counts(live, &before);
	sample(ms, 7);
	stack(ms, ms, 7, U(0x10));
	etw_live_trim(live);
	etw_live_counts(live, &after);
	assert_true(before.bytes > 2 * ETW_LIVE_TRIM_BYTES);
	assert_in_range(after.bytes, 1, before.bytes / 2);
	etw_live_time(live, (ms + 1000) * MS);
	assert_string_equal(leaf_name(), "My.Type.Old");
	/* Other code at its place, in the code that was made anew, has another name. */
	method(ms + 2000, 8, U(0), "New");
	sample(ms + 2001, 7);
	stack(ms + 2001, ms + 2001, 7, U(0x10));
	etw_live_time(live, (ms + 4000) * MS);
	assert_string_equal(leaf_name(), "My.Type.New");
}

static int step(void *ctx)
{
	struct source_config cfg = {.frames = frames, .processes = processes, .queue = queue};
	struct etw_live *l = NULL;
	int rc = etw_live_open(&cfg, HZ, &l, ctx);

	etw_live_close(l);
	return rc;
}

TEST(lack_of_memory_is_reported)
{
	assert_in_range(alloc_walk(step, NULL), 3, 60);
}

int main(void)
{
#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		IN_LAB(a_sample_waits_for_its_stack),
		IN_LAB(what_a_counter_counted_is_an_event_of_its_name_that_weighs_its_period),
		IN_LAB(a_user_part_that_comes_too_late_is_counted),
		IN_LAB(time_passes_without_records),
		IN_LAB(the_end_lets_all_go),
		IN_LAB(losses_are_events_with_their_number),
		IN_LAB(losses_of_a_session_without_events_are_told_at_its_end),
		IN_LAB(another_interval_than_asked_is_told_once),
		IN_LAB(a_step_holds_from_its_moment_on),
		IN_LAB(a_step_that_windows_says_as_well_is_marked_once_and_as_ours),
		IN_LAB(busy_time_is_expected_at_the_rate_of_its_moment),
		IN_LAB(busy_time_before_a_step_that_windows_says_is_expected_at_the_rate_before),
		IN_LAB(busy_times_do_not_pile_up),
		IN_LAB(idle_cpus_let_time_pass),
		IN_LAB(a_layout_is_asked_for_once),
		IN_LAB(a_program_and_all_that_it_starts_are_recorded_and_nothing_else),
		IN_LAB(what_has_ended_is_forgotten_and_the_rest_is_not),
		IN_LAB(lack_of_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
