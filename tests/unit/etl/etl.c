/* Trace files as a source: hand-made ones event by event; the real ones are etl/totals.c's. */
#include "source/source.h"

#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etl_taking.h"
#include "tests/support/etl_writer.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>

#define START ETL_START
#define K(n) (0xFFFFF80000000000u + (n))
#define U(n) (0x7F0000000000u + (n))

enum { PROCESS = 3, THREAD = 5, PERF_INFO = 15, IMAGE = 20, STACK = 24 };   /* kernel groups */

/* ---- hand-made files ------------------------------------------------------------------------- */

static struct etl_writer writer;

static void begin_file(const struct etl_session *session)
{
	etl_writer_begin(&writer, session ? session : &(struct etl_session){0});
}

static void kernel(unsigned group, uint8_t opcode, uint16_t version, int64_t ticks, uint32_t pid,
		   uint32_t tid, const struct etw_bytes *b)
{
	struct etw_record r = {.ticks = ticks, .pid = pid, .tid = tid, .opcode = opcode,
			       .version = version, .payload = b->at, .payload_bytes = b->n};

	etl_write_kernel(&writer, &r, group);
}

static void perf_info(uint8_t opcode, int64_t ticks, const struct etw_bytes *b)
{
	struct etw_record r = {.ticks = ticks, .opcode = opcode, .version = 2, .payload = b->at,
			       .payload_bytes = b->n};

	etl_write_perfinfo(&writer, &r, PERF_INFO);
}

static void process(uint8_t opcode, int64_t ticks, uint32_t pid, const char *image, uint32_t exit)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 0, 8);
	etw_int(&b, pid, 4);
	etw_int(&b, 1, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, exit, 4);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);
	etw_text8(&b, image);
	etw_text16(&b, strcmp(image, "other.exe") == 0 ? "other" : "test -v");
	kernel(PROCESS, opcode, 4, ticks, 4, 8, &b);
}

static void thread(uint8_t opcode, int64_t ticks, uint32_t pid, uint32_t tid)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, pid, 4);
	etw_int(&b, tid, 4);
	etw_int(&b, 0, 8);
	kernel(THREAD, opcode, 3, ticks, 4, 8, &b);
}

static void sample(int64_t ticks, uint32_t tid, uint16_t count, uint8_t flags)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, U(1), 8);
	etw_int(&b, tid, 4);
	etw_int(&b, count, 2);
	etw_int(&b, flags, 2);
	perf_info(46, ticks, &b);
}

static void interval(uint8_t opcode, int64_t ticks, uint32_t source, uint32_t units)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, source, 4);
	etw_int(&b, units, 4);
	etw_int(&b, units, 4);
	etw_text16(&b, "Timer");
	perf_info(opcode, ticks, &b);
}

static void image(uint8_t opcode, int64_t ticks, uint32_t pid, uint64_t base, const char *path)
{
	struct etw_bytes b = {.n = 0};
	uint32_t i;

	etw_int(&b, base, 8);
	etw_int(&b, 0x1000, 8);
	etw_int(&b, pid, 4);
	for (i = 0; i < 9; i++)
		etw_int(&b, 0, 4);
	etw_text16(&b, path);
	kernel(IMAGE, opcode, 3, ticks, pid, 8, &b);
}

static void stack(int64_t of_ticks, int64_t ticks, uint32_t pid, uint32_t tid,
		  const uint64_t *addresses)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, (uint64_t)of_ticks, 8);
	etw_int(&b, pid, 4);
	etw_int(&b, tid, 4);
	for (; *addresses; addresses++)
		etw_int(&b, *addresses, 8);
	kernel(STACK, 32, 2, ticks, pid, tid, &b);
}

static const char *write_file(void)
{
	const char *path = tmp_path("made.etl");
	struct os_file *file = NULL;

	etl_writer_end(&writer);
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, writer.out.data, writer.out.len, NULL), 0);
	os_close(file);
	etl_writer_free(&writer);
	return path;
}

static void read_file(const struct source_config *more)
{
	const char *path = write_file();

	if (begin_taking(path, QUEUE_BYTES, more))
		fail_msg("%s", taking.err.text);
	take_all();
	assert_int_equal(taking.rc, 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

TEST(processes_and_threads_begin_and_end)
{
	const struct event *e = taking.events;

	begin_file(NULL);
	process(3, 10, 40, "old.exe", 259);
	process(1, 1000, 50, "Test.x64.exe", 259);
	thread(1, 2000, 50, 7);
	thread(2, 3000, 50, 7);
	process(2, 4000, 50, "Test.x64.exe", 3);
	read_file(NULL);
	assert_int_equal(taking.n, 4);               /* the snapshot is none */
	assert_int_equal(e[0].kind, EVENT_PROCESS_START);
	assert_int_equal(e[0].time_ns, START + 100000);      /* 1000 ticks of 100 ns */
	assert_int_equal(e[0].process->pid, 50);
	assert_int_equal(e[0].process->parent_pid, 1);
	assert_int_equal(e[0].process->start_ns, START + 100000);
	assert_string_equal(process_name(e[0].process), "Test.x64");
	assert_string_equal(atomic_load(&e[0].process->cmdline), "test -v");
	assert_null(e[0].thread);                    /* not the thread of who started it */
	assert_string_equal(taking.names[0], "Process/Start");
	assert_int_equal(e[1].kind, EVENT_THREAD_START);
	assert_int_equal(e[1].thread->tid, 7);
	assert_ptr_equal(e[1].process, e[0].process);
	assert_int_equal(e[2].kind, EVENT_THREAD_EXIT);
	assert_int_equal(e[3].kind, EVENT_PROCESS_EXIT);
	assert_true(e[3].value == 3);
	assert_true(e[3].process->dropped_ns > 0);   /* may go once no segment lists it */
	end_taking();
}

TEST(sample_weighs_its_interval)
{
	const struct event *e = taking.events;
	struct source_origin origin;

	begin_file(NULL);
	thread(3, 1, 50, 7);
	sample(1000, 7, 1, 0);
	interval(72, 1500, 0, 2500);
	interval(72, 1600, 5, 77);                   /* of another counter than the clock */
	sample(2000, 7, 3, 0);
	read_file(NULL);
	etl_source.origin(taking.source, &origin);
	end_taking();
	assert_int_equal(taking.n, 4);
	assert_int_equal(e[0].kind, EVENT_SAMPLE);
	assert_int_equal(e[0].stream, STREAM_CPU);
	assert_true(e[0].value == 250000);           /* the first that the trace tells of */
	assert_true(e[3].value == 750000);
	assert_int_equal(origin.period_ns, 250000);
}

TEST(samples_without_an_interval_are_one_millisecond)
{
	begin_file(NULL);
	sample(1000, 7, 1, 0);
	read_file(NULL);
	end_taking();
	assert_true(taking.events[0].value == 1e6);
	assert_null(taking.events[0].process);       /* nobody told whose thread 7 is */
	assert_int_equal(taking.events[0].quality, QUALITY_BROKEN);
}

TEST(idle_samples_are_left_out_but_interrupts_are_not)
{
	struct source_config every = {.every_event = true, .capture = {.no_kernel_stacks = true}};

	begin_file(NULL);
	thread(3, 1, 0, 0);
	sample(1000, 0, 1, 0);
	sample(1001, 0, 1, 1);                       /* in a deferred procedure */
	sample(1002, 0, 1, 2);                       /* in an interrupt */
	read_file(NULL);
	end_taking();
	assert_int_equal(taking.n, 2);
	assert_int_equal(taking.events[0].time_ns, START + 100100);

	begin_file(NULL);
	sample(1000, 0, 1, 0);
	read_file(&every);
	end_taking();
	assert_int_equal(taking.n, 2);               /* the header is one of them */
	assert_string_equal(taking.names[1], "PerfInfo/Sample");
}

TEST(frames_are_offsets_in_images)
{
	const struct frame_ref *f = taking.frames_of[0];

	begin_file(NULL);
	image(3, 1, 0, K(0x1000), "\\SystemRoot\\nt.exe");
	image(3, 2, 50, U(0x1000), "\\Windows\\a.dll");
	image(3, 3, 50, U(0x3000), "\\Windows\\ntdll.dll");
	thread(3, 4, 50, 7);
	sample(1000, 7, 1, 0);
	stack(1000, 1001, 50, 7, (uint64_t[]){K(0x1010), K(0x1020), 0});
	stack(1000, 1002, 50, 7, (uint64_t[]){U(0x1030), U(0x1040), U(0x2040), U(0x3050), 0});
	read_file(NULL);
	assert_int_equal(taking.events[0].nstack_frames, 6);
	assert_int_equal(taking.events[0].quality, QUALITY_COMPLETE);
	assert_int_equal(f[0].offset, 0x10);                 /* where it was */
	assert_int_equal(f[0].flags, FRAME_KERNEL);
	assert_string_equal(f[0].object->name, "nt.exe");
	assert_int_equal(f[1].offset, 0x1f);                 /* before where the call returns to */
	assert_int_equal(f[1].flags, FRAME_KERNEL | FRAME_RETURN_ADDRESS);
	assert_int_equal(f[2].offset, 0x30);                 /* interrupted */
	assert_int_equal(f[2].flags, 0);
	assert_string_equal(f[2].object->key.path, "\\Windows\\a.dll");
	assert_int_equal(f[3].offset, 0x3f);
	assert_int_equal(f[4].object->key.kind, OBJECT_UNKNOWN);
	assert_int_equal(f[4].offset, U(0x203f));
	assert_string_equal(f[5].object->name, "ntdll.dll");
	end_taking();
}

TEST(kernel_frames_can_be_left_out)
{
	struct source_config no_kernel = {.capture = {.no_kernel_stacks = true}};

	begin_file(NULL);
	thread(3, 4, 50, 7);
	sample(1000, 7, 1, 0);
	stack(1000, 1001, 50, 7, (uint64_t[]){K(1), U(1), 0});
	read_file(&no_kernel);
	assert_int_equal(taking.events[0].nstack_frames, 1);
	assert_int_equal(taking.frames_of[0][0].offset, U(1));
	/* Threads begin in ntdll.dll. */
	assert_int_equal(taking.events[0].quality, QUALITY_BROKEN);
	end_taking();
}

TEST(only_the_wanted_process_is_sampled)
{
	struct source_config only = {.capture = {.only_process = "TEST"}};

	begin_file(NULL);
	process(3, 1, 50, "Test.exe", 259);
	process(3, 2, 60, "other.exe", 259);
	thread(3, 3, 50, 7);
	thread(3, 4, 60, 8);
	sample(1000, 8, 1, 0);
	sample(2000, 7, 1, 0);
	read_file(&only);
	assert_int_equal(taking.n, 1);
	assert_int_equal(taking.events[0].process->pid, 50);
	end_taking();
}

TEST(stack_without_its_user_part_is_broken)
{
	begin_file(NULL);
	thread(3, 4, 50, 7);
	sample(1000, 7, 1, 0);
	stack(1000, 1001, 50, 7, (uint64_t[]){K(1), 0});
	read_file(NULL);
	end_taking();
	assert_int_equal(taking.events[0].nstack_frames, 1);
	assert_int_equal(taking.events[0].quality, QUALITY_BROKEN);
}

/* ---- heaps ----------------------------------------------------------------------------------- */

enum { HEAP = 16, HEAP_ALLOC_OPCODE = 33, HEAP_REALLOC_OPCODE, HEAP_DESTROY_OPCODE,
       HEAP_FREE_OPCODE };

/* An event of heap 0xA: pointers and sizes, then the source of the block. */
static void heap(uint8_t opcode, int64_t ticks, const uint64_t *words)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 0xA, 8);
	for (; *words; words++)
		etw_int(&b, *words, 8);
	if (opcode != HEAP_DESTROY_OPCODE)
		etw_int(&b, 2, 4);
	kernel(HEAP, opcode, 2, ticks, 50, 7, &b);
}

/* The mark that the block of these ticks was freed at those. */
static void expect_mark(uint32_t event, int64_t ticks, int64_t of_ticks)
{
	const struct event *e = &taking.events[event];

	assert_int_equal(e->stream, STREAM_HEAP_MARK);
	assert_int_equal(e->time_ns, START + (uint64_t)ticks * 100);
	assert_true(e->value == memory_mark_weight(START + (uint64_t)of_ticks * 100, e->time_ns,
						   MARK_GONE));
}

TEST(blocks_of_a_heap_are_samples_that_get_a_mark_when_they_are_freed)
{
	const struct event *e = taking.events;

	begin_file(NULL);
	thread(3, 1, 50, 7);
	heap(HEAP_ALLOC_OPCODE, 1000, (uint64_t[]){100, 0x5000, 0});
	stack(1000, 1001, 50, 7, (uint64_t[]){U(1), U(2), 0});
	heap(HEAP_REALLOC_OPCODE, 1100, (uint64_t[]){0x6000, 0x5000, 300, 100, 0});
	heap(HEAP_FREE_OPCODE, 1200, (uint64_t[]){0x6000, 0});
	heap(HEAP_FREE_OPCODE, 1300, (uint64_t[]){0x7000, 0});      /* from before */
	heap(HEAP_ALLOC_OPCODE, 1400, (uint64_t[]){50, 0x8000, 0});
	heap(HEAP_ALLOC_OPCODE, 1500, (uint64_t[]){60, 0x9000, 0});
	heap(HEAP_DESTROY_OPCODE, 1600, (uint64_t[]){0});
	read_file(NULL);
	assert_int_equal(e[0].process->pid, 50);
	end_taking();
	assert_int_equal(taking.n, 8);
	assert_int_equal(e[0].kind, EVENT_SAMPLE);
	assert_int_equal(e[0].stream, STREAM_HEAP);
	assert_true(e[0].value == 100);
	assert_int_equal(e[0].nstack_frames, 2);
	expect_mark(1, 1100, 1000);
	assert_int_equal(e[2].stream, STREAM_HEAP);
	assert_true(e[2].value == 300);
	expect_mark(3, 1200, 1100);
	assert_true(e[4].value == 50 && e[5].value == 60);
	expect_mark(6, 1600, 1400);
	expect_mark(7, 1600, 1500);
}

TEST(a_listing_has_the_heaps_events_with_perfviews_names)
{
	struct source_config every = {.every_event = true};

	begin_file(NULL);
	heap(HEAP_ALLOC_OPCODE, 1000, (uint64_t[]){100, 0x5000, 0});
	heap(HEAP_FREE_OPCODE, 1200, (uint64_t[]){0x5000, 0});
	read_file(&every);
	end_taking();
	assert_string_equal(taking.names[1], "HeapTrace/Alloc");
	assert_string_equal(taking.names[2], "HeapTrace/Free");
}

/* ---- names of frames ------------------------------------------------------------------------- */

TEST(managed_frame_is_named_by_the_source)
{
	struct etw_bytes b = {.n = 0};
	struct etw_record r;
	struct symbol symbol;
	struct frame *frame;
	uint32_t number;
	bool fresh;

	begin_file(NULL);
	thread(3, 4, 50, 7);
	sample(1000, 7, 1, 0);
	stack(1000, 1001, 50, 7, (uint64_t[]){U(0x510), 0});
	etw_int(&b, 1, 8);
	etw_int(&b, 77, 8);
	etw_int(&b, U(0x500), 8);
	etw_int(&b, 0x100, 4);
	etw_int(&b, 0, 8);
	etw_text16(&b, "Test.Program");
	etw_text16(&b, "Main");
	etw_text16(&b, "void ()");
	etw_int(&b, 9, 2);
	r = etw_manifest(ETW_RUNDOWN_GUID, 144, 1, &b);
	r.ticks = 9000;
	r.pid = 50;
	r.tid = 9;
	etl_write_event(&writer, &r);
	read_file(NULL);
	assert_int_equal(taking.n, 1);               /* the rundown is no event */
	number = frames_intern(taking.frames, &taking.frames_of[0][0], &fresh);
	frame = frame_get(taking.frames, number);
	assert_true(etl_source.name_frame(taking.source, frame, &symbol));
	assert_string_equal(symbol.name, "Test.Program.Main");
	assert_null(symbol.module);
	assert_int_equal(symbol.offset, U(0x500));
	end_taking();
}

TEST(second_version_of_a_gc_start_is_no_event)
{
	uint16_t version;

	begin_file(NULL);
	for (version = 1; version <= 2; version++) {
		struct etw_bytes b = {.n = 0};
		struct etw_record r;
		uint32_t i;

		for (i = 0; i < 4; i++)
			etw_int(&b, i == 0, 4);
		etw_int(&b, 9, 2);
		etw_int(&b, 0, version == 2 ? 8 : 0);
		r = etw_manifest(ETW_RUNTIME_GUID, 1, version, &b);
		r.ticks = 1000 + version;
		r.pid = 50;
		r.tid = 7;
		etl_write_event(&writer, &r);
	}
	read_file(NULL);
	end_taking();
	assert_int_equal(taking.n, 1);
	assert_string_equal(taking.names[0], "GC/Start");
}

/* ---- losses, ends, errors -------------------------------------------------------------------- */

TEST(losses_of_the_session_are_an_event_and_a_note)
{
	struct etl_session lossy = {.events_lost = 12, .buffers_lost = 2};
	struct source_origin origin;
	struct source_status status;

	begin_file(&lossy);
	sample(1000, 7, 1, 0);
	read_file(NULL);
	etl_source.origin(taking.source, &origin);
	etl_source.status(taking.source, &status);
	end_taking();
	assert_int_equal(taking.n, 2);
	assert_int_equal(taking.events[1].kind, EVENT_LOST);
	assert_string_equal(taking.names[1], "kernel");
	assert_true(taking.events[1].value == 12);
	assert_string_equal(origin.note, "12 events were lost while it was recorded; "
			    "2 buffers were lost while it was recorded");
	assert_int_equal(status.events, 2);
	assert_int_equal(status.lost, 12);
}

TEST(trace_that_is_cut_says_so)
{
	struct source_origin origin;
	const char *path;

	begin_file(NULL);
	sample(1000, 7, 1, 0);
	etl_writer_flush(&writer, 0);
	sample(2000, 7, 1, 0);
	etl_writer_end(&writer);
	writer.out.len -= 100;
	path = tmp_path("cut.etl");
	{
		struct os_file *file = NULL;

		assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
		assert_int_equal(os_write(file, writer.out.data, writer.out.len, NULL), 0);
		os_close(file);
	}
	etl_writer_free(&writer);
	assert_int_equal(begin_taking(path, QUEUE_BYTES, NULL), 0);
	take_all();
	etl_source.origin(taking.source, &origin);
	end_taking();
	assert_int_equal(taking.rc, 0);
	assert_true(taking.n >= 1);
	assert_non_null(strstr(origin.note, "it ends inside a buffer"));
}

TEST(full_queue_is_waited_for)
{
	enum { N = 2000 };
	const struct event *e;
	const char *path;
	uint32_t i, n = 0;
	uint64_t last = 0;

	begin_file(NULL);
	thread(3, 1, 50, 7);
	for (i = 0; i < N; i++)
		sample(1000 + i, 7, 1, 0);
	path = write_file();
	assert_int_equal(begin_taking(path, 4096, NULL), 0);
	assert_int_equal(os_thread_start("source", taking_run, NULL, &taking.thread, NULL), 0);
	while (n < N) {
		e = queue_peek(taking.queue);
		if (!e)
			continue;
		assert_true(e->time_ns > last);
		last = e->time_ns;
		n++;
		queue_pop(taking.queue);
	}
	os_thread_join(taking.thread);
	assert_null(queue_peek(taking.queue));
	assert_int_equal(queue_lost(taking.queue), 0);
	assert_int_equal(queue_released(taking.queue, 0), UINT64_MAX);
	end_taking();
}

TEST(stop_ends_a_source_that_waits)
{
	const char *path;
	uint32_t i;

	begin_file(NULL);
	for (i = 0; i < 2000; i++)
		sample(1000 + i, 7, 1, 0);
	path = write_file();
	assert_int_equal(begin_taking(path, 4096, NULL), 0);
	assert_int_equal(os_thread_start("source", taking_run, NULL, &taking.thread, NULL), 0);
	while (!queue_peek(taking.queue))
		os_sleep_ns(NS_PER_MS / 4);
	etl_source.stop(taking.source);
	os_thread_join(taking.thread);
	assert_int_equal(taking.rc, 0);
	end_taking();
}

TEST(what_is_no_trace_is_refused_at_opening)
{
	struct needs needs = {.ncounters = 1};
	struct err err;

	assert_int_equal(begin_taking("Makefile", QUEUE_BYTES, NULL), ERR_FORMAT);
	assert_non_null(strstr(taking.err.text, "Makefile"));
	end_taking();
	snprintf(needs.counters[0].name, sizeof(needs.counters[0].name), "a:b:c");
	assert_int_equal(etl_source.check(&needs, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "a:b:c"));
}

static int open_step(void *ctx)
{
	int rc = begin_taking(ctx, 4096, NULL);

	end_taking();
	return rc;
}

static int open_alone(void *ctx)
{
	static const struct needs none;
	struct source_config cfg = *(const struct source_config *)ctx;
	struct source *source = NULL;
	int rc = etl_source.open(&cfg, &none, &source, NULL);

	if (source)
		etl_source.close(source);
	return rc;
}

TEST(lack_of_memory_is_an_error_at_opening)
{
	struct source_config cfg;

	begin_file(NULL);
	cfg = (struct source_config){.capture = {.file = write_file()}};
	assert_int_equal(open_step((void *)cfg.capture.file), 0);
	assert_int_equal(frames_new(&taking.frames, NULL), 0);
	cfg.frames = taking.frames;
	assert_in_range(alloc_walk(open_alone, &cfg), 20, 200);
	frames_free(taking.frames);
}

/* A source that cannot have more memory goes on with what it has, and says what it refused. */
TEST(lack_of_memory_later_ends_nothing)
{
	const char *path;
	unsigned long n;

	begin_file(NULL);
	process(1, 1000, 50, "Test.exe", 259);
	thread(1, 2000, 50, 7);
	image(3, 2100, 50, U(0x1000), "\\Windows\\a.dll");
	sample(3000, 7, 1, 0);
	stack(3000, 3001, 50, 7, (uint64_t[]){U(0x1001), 0});
	path = write_file();
	for (n = 1; n < 60; n++) {
		if (begin_taking(path, QUEUE_BYTES, NULL))
			fail_msg("%s", taking.err.text);
		alloc_walk_fail_at(n);
		taking_run(NULL);
		alloc_walk_fail_at(0);
		while (queue_peek(taking.queue)) {
			taking.n++;
			queue_pop(taking.queue);
		}
		assert_true(taking.rc == ERR_MEMORY || taking.n >= 3);
		end_taking();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_and_threads_begin_and_end),
		cmocka_unit_test(
			blocks_of_a_heap_are_samples_that_get_a_mark_when_they_are_freed),
		cmocka_unit_test(a_listing_has_the_heaps_events_with_perfviews_names),
		cmocka_unit_test(sample_weighs_its_interval),
		cmocka_unit_test(samples_without_an_interval_are_one_millisecond),
		cmocka_unit_test(idle_samples_are_left_out_but_interrupts_are_not),
		cmocka_unit_test(frames_are_offsets_in_images),
		cmocka_unit_test(kernel_frames_can_be_left_out),
		cmocka_unit_test(only_the_wanted_process_is_sampled),
		cmocka_unit_test(stack_without_its_user_part_is_broken),
		cmocka_unit_test(managed_frame_is_named_by_the_source),
		cmocka_unit_test(second_version_of_a_gc_start_is_no_event),
		cmocka_unit_test(losses_of_the_session_are_an_event_and_a_note),
		cmocka_unit_test(trace_that_is_cut_says_so),
		cmocka_unit_test(full_queue_is_waited_for),
		cmocka_unit_test(stop_ends_a_source_that_waits),
		cmocka_unit_test(what_is_no_trace_is_refused_at_opening),
		cmocka_unit_test(lack_of_memory_is_an_error_at_opening),
		cmocka_unit_test(lack_of_memory_later_ends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
