/*
 * Times of threads from ETW's context switches, of a file and of a live session: the same records
 * by hand.
 */
#include "source/etw/live.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etl_writer.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>

#define HZ 10000000u
#define TICKS(ms) ((int64_t)(ms) * (HZ / 1000))
#define K(n) (0xFFFFF80000000000u + (n))
#define U(n) (0x7F0000000000u + (n))

struct kind {
	unsigned group;                      /* of the kernel's, in a file */
	const char *guid;                    /* the same in a session */
};
static const struct kind process_kind = {3, "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c"};
static const struct kind thread_kind = {5, "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c"};
static const struct kind perf_kind = {15, "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc"};
static const struct kind image_kind = {20, "2cb15d1d-5fc1-11d2-abe1-00a0c911f518"};
static const struct kind stack_kind = {24, "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"};

enum { READY = 1, RUNNING, TERMINATED = 4, WAITING };        /* KTHREAD_STATE */
enum { USER_REQUEST = 6, PAGE_IN = 9, QUANTUM_END = 30 };    /* KWAIT_REASON */

static struct frames *frames;
static struct processes *processes;
static struct queue *queue;
static struct etw_live *live;                /* NULL = records go to a file */
static struct source *source;
static struct etl_writer writer;
static char told[2000];

/* ---- records --------------------------------------------------------------------------------- */

static void put(const struct kind *kind, uint8_t opcode, uint16_t version, int ms, uint16_t cpu,
		const struct etw_bytes *b)
{
	struct etw_record r = etw_classic(kind->guid, opcode, version, b);

	r.ticks = TICKS(ms);
	r.cpu = cpu;
	if (live)
		etw_live_put(live, &r);
	else
		etl_write_perfinfo(&writer, &r, kind->group);
}

static void switched(int ms, uint16_t cpu, uint32_t new, uint32_t old, uint8_t state,
		     uint8_t reason)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, new, 4);
	etw_int(&b, old, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, reason, 1);
	etw_int(&b, 1, 1);
	etw_int(&b, state, 1);
	etw_int(&b, 0, 1);
	etw_int(&b, 0, 8);
	put(&thread_kind, 36, 4, ms, cpu, &b);
}

static void readied(int ms, uint16_t cpu, uint32_t tid, uint8_t flags)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, tid, 4);
	etw_int(&b, 1, 1);
	etw_int(&b, 0, 1);
	etw_int(&b, flags, 2);
	put(&thread_kind, 50, 2, ms, cpu, &b);
}

static void sample(int ms, uint32_t tid)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, U(0x1001), 8);
	etw_int(&b, tid, 4);
	etw_int(&b, 1, 4);
	put(&perf_kind, 46, 2, ms, 0, &b);
}

/* Of the event at that ms: in the kernel, then in the program at its base + n. */
static void stack(int ms, uint16_t cpu, uint32_t tid, uint32_t n)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, (uint64_t)TICKS(ms), 8);
	etw_int(&b, 50, 4);
	etw_int(&b, tid, 4);
	etw_int(&b, K(0x1001), 8);
	put(&stack_kind, 32, 2, ms, cpu, &b);
	b.n = 16;
	etw_int(&b, U(0x1000 + n), 8);
	put(&stack_kind, 32, 2, ms, cpu, &b);
}

static void image(uint32_t pid, uint64_t base, const char *path)
{
	struct etw_bytes b = {.n = 0};
	uint32_t i;

	etw_int(&b, base, 8);
	etw_int(&b, 0x1000, 8);
	etw_int(&b, pid, 4);
	for (i = 0; i < 9; i++)
		etw_int(&b, 0, 4);
	etw_text16(&b, path);
	put(&image_kind, 3, 3, 1, 0, &b);
}

/* app.exe, 50, with its threads 7 and 8. */
static void program(void)
{
	struct etw_bytes b = {.n = 0};
	uint32_t tid;

	etw_int(&b, 0, 8);
	etw_int(&b, 50, 4);
	etw_int(&b, 1, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 259, 4);
	etw_int(&b, 0, 8);
	etw_int(&b, 0, 8);
	etw_text8(&b, "app.exe");
	etw_text16(&b, "app");
	put(&process_kind, 3, 4, 1, 0, &b);
	for (tid = 7; tid <= 8; tid++) {
		b.n = 0;
		etw_int(&b, 50, 4);
		etw_int(&b, tid, 4);
		etw_int(&b, 0, 8);
		put(&thread_kind, 3, 3, 1, 0, &b);
	}
	image(0, K(0x1000), "\\SystemRoot\\nt.exe");
	image(50, U(0x1000), "\\app.exe");
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void tables(struct source_config *cfg)
{
	live = NULL;
	source = NULL;
	told[0] = '\0';
	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(processes_new(&processes, NULL), 0);
	queue = queue_new(QUEUE_BYTES);
	cfg->capture.thread_time = true;
	cfg->frames = frames;
	cfg->processes = processes;
	cfg->queue = queue;
}

static void begin_live(struct source_config cfg)
{
	tables(&cfg);
	assert_int_equal(etw_live_open(&cfg, HZ, &live, NULL), 0);
}

static void name_of(const struct frame_ref *f, char *out, size_t n)
{
	struct symbol symbol;
	bool fresh;
	const struct frame *frame = frame_get(frames, frames_intern(frames, f, &fresh));

	if (live ? etw_live_name(live, frame, &symbol)
		 : source->ops->name_frame(source, frame, &symbol))
		snprintf(out, n, " %s", symbol.name);
	else
		snprintf(out, n, " %s+%x", f->object->name, (unsigned)f->offset);
}

/* "tid ms leaf ... root", a line each, of the times. */
static void read_queue(void)
{
	const struct event *e;
	size_t n = strlen(told);
	uint32_t i;

	for (; (e = queue_peek(queue)) != NULL; queue_pop(queue)) {
		if (e->stream != STREAM_OFF_CPU)
			continue;
		n += (size_t)snprintf(told + n, sizeof(told) - n, "%u %g",
				      e->thread ? e->thread->tid : 0, e->value / 1e6);
		for (i = 0; i < e->nstack_frames; i++) {
			name_of(&e->stack_frames[i], told + n, sizeof(told) - n);
			n += strlen(told + n);
		}
		n += (size_t)snprintf(told + n, sizeof(told) - n, "\n");
	}
}

static void end(void)
{
	if (live) {
		etw_live_end(live);
		read_queue();
		etw_live_close(live);
	} else {
		source->ops->close(source);
	}
	queue_free(queue);
	processes_free(processes);
	frames_free(frames);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/*
 * Runs 10 ms, waits 300 for thread 8, which runs elsewhere, then 20 for a CPU; runs 10, and ends.
 */
static void a_wait(void)
{
	program();
	switched(100, 0, 7, 0, RUNNING, 0);
	switched(110, 0, 0, 7, WAITING, USER_REQUEST);
	switched(400, 1, 8, 0, RUNNING, 0);
	readied(410, 1, 7, 0);
	stack(410, 1, 8, 0x20);
	switched(430, 0, 7, 0, RUNNING, 0);
	stack(430, 0, 7, 0x10);
	switched(440, 0, 0, 7, TERMINATED, 0);
}

static void read_made(struct source_config cfg)
{
	static const struct needs none;
	const char *path = tmp_path("switches.etl");
	struct os_file *file = NULL;

	etl_writer_end(&writer);
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, writer.out.data, writer.out.len, NULL), 0);
	os_close(file);
	etl_writer_free(&writer);
	cfg.capture.file = path;
	assert_int_equal(etl_source.open(&cfg, &none, &source, NULL), 0);
	assert_int_equal(etl_source.run(source, NULL), 0);
	read_queue();
}

TEST(a_wait_in_a_file_has_its_stack_and_its_waker)
{
	struct source_config cfg = {.capture = {.wakers = true}};

	tables(&cfg);
	etl_writer_begin(&writer, &(struct etl_session){.ncpus = 2});
	a_wait();
	read_made(cfg);
	end();
	assert_string_equal(
		told, /* 10 + 300 + 20 + 10 = 440 - 100 */
		"7 10 CPU_TIME nt.exe+1 app.exe+10\n"
		"7 300 nt.exe+1 app.exe+20 app (50) thread 8 READIED_BY BLOCKED_TIME "
		"nt.exe+1 app.exe+10\n"
		"7 20 READIED_TIME nt.exe+1 app.exe+10\n"
		"7 10 CPU_TIME\n");
}

TEST(a_live_session_tells_the_same)
{
	begin_live((struct source_config){0});
	a_wait();
	end();
	assert_string_equal(told,
			    "7 10 CPU_TIME nt.exe+1 app.exe+10\n"
			    "7 300 BLOCKED_TIME nt.exe+1 app.exe+10\n"
			    "7 20 READIED_TIME nt.exe+1 app.exe+10\n"
			    "7 10 CPU_TIME\n");
}

TEST(who_readies_in_a_dpc_is_not_the_interrupted_program)
{
	begin_live((struct source_config){.capture = {.wakers = true}});
	program();
	switched(100, 0, 7, 8, WAITING, USER_REQUEST);
	switched(110, 0, 8, 7, WAITING, USER_REQUEST);
	readied(210, 0, 7, 1);
	stack(210, 0, 8, 0x20);
	switched(210, 1, 7, 0, RUNNING, 0);
	end();
	assert_non_null(strstr(told, "7 100 nt.exe+1 READIED_BY BLOCKED_TIME\n"));
}

TEST(preempted_is_ready_and_a_page_is_waited_for_as_for_a_device)
{
	begin_live((struct source_config){0});
	program();
	switched(100, 0, 7, 0, RUNNING, 0);
	sample(104, 7);                              /* 4 ms are of the sample's stack */
	switched(110, 0, 8, 7, READY, QUANTUM_END);
	switched(140, 0, 7, 8, WAITING, PAGE_IN);
	switched(150, 0, 8, 7, TERMINATED, 0);
	stack(150, 0, 8, 0x30);
	end();
	assert_string_equal(
		told, "7 4 CPU_TIME\n"
		      "7 6 CPU_TIME\n7 30 READIED_TIME\n7 10 CPU_TIME\n"
		      "8 30 CPU_TIME nt.exe+1 app.exe+30\n8 10 DISK_TIME nt.exe+1 app.exe+30\n");
}

static void a_long_wait(void)
{
	program();
	switched(100, 0, 7, 0, RUNNING, 0);
	switched(110, 0, 0, 7, WAITING, USER_REQUEST);
	sample(9900, 8);
	sample(20300, 8);
	switched(25000, 0, 7, 0, RUNNING, 0);
	stack(25000, 0, 7, 0x10);
}

TEST(a_session_tells_of_a_long_wait_before_its_stack_is_known)
{
	begin_live((struct source_config){0});
	a_long_wait();
	end();
	assert_non_null(strstr(told, "7 10 CPU_TIME\n7 20190 BLOCKED_TIME\n"));
	assert_non_null(strstr(told, "7 4700 BLOCKED_TIME nt.exe+1 app.exe+10\n"));
}

TEST(a_file_tells_of_all_of_it_at_its_end)
{
	struct source_config cfg = {0};

	tables(&cfg);
	etl_writer_begin(&writer, &(struct etl_session){0});
	a_long_wait();
	read_made(cfg);
	end();
	assert_non_null(strstr(
		told,
		"7 10 CPU_TIME nt.exe+1 app.exe+10\n7 24890 BLOCKED_TIME nt.exe+1 app.exe+10\n"));
}

TEST(without_switches_samples_tell_no_times)
{
	begin_live((struct source_config){0});
	program();
	sample(100, 7);
	sample(5100, 7);
	end();
	assert_string_equal(told, "");
}

TEST(behind_a_loss_time_is_unknown)
{
	begin_live((struct source_config){0});
	program();
	switched(100, 0, 7, 0, RUNNING, 0);
	switched(110, 0, 0, 7, WAITING, USER_REQUEST);
	etw_live_lost(live, 5);
	switched(400, 0, 7, 0, RUNNING, 0);
	switched(410, 0, 0, 7, TERMINATED, 0);
	end();
	assert_string_equal(told, "7 10 CPU_TIME\n7 290 UNKNOWN_TIME\n7 10 CPU_TIME\n");
}

TEST(of_another_process_nothing_is_told)
{
	begin_live((struct source_config){.capture = {.only_process = "other"}});
	a_wait();
	end();
	assert_string_equal(told, "");
}

/* Thread time takes the switches, but a rule on them must see them too. */
TEST(a_rule_on_switches_sees_what_thread_time_takes)
{
	static struct needs needs;
	struct need_event rule = {.provider = "Windows Kernel Trace", .name = "thread/cswitch"};
	const struct event *e;
	unsigned switches = 0;

	assert_int_equal(needs_event(&needs, &rule, NULL), 0);
	begin_live((struct source_config){0});
	etw_live_needs(live, &needs);
	a_wait();
	etw_live_time(live, TICKS(2000));
	for (; (e = queue_peek(queue)) != NULL; queue_pop(queue))
		if (e->kind == EVENT_GENERIC && strcmp(e->name, "Thread/CSwitch") == 0)
			switches++;
	assert_int_equal(switches, 5);
	end();
}

static int open_live(void *ctx)
{
	int rc = etw_live_open(ctx, HZ, &live, NULL);

	if (!rc)
		etw_live_close(live);
	live = NULL;
	return rc;
}

TEST(lack_of_memory_is_an_error_at_opening)
{
	struct source_config cfg = {0};

	tables(&cfg);
	assert_in_range(alloc_walk(open_live, &cfg), 10, 200);
	queue_free(queue);
	processes_free(processes);
	frames_free(frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_in_a_file_has_its_stack_and_its_waker),
		cmocka_unit_test(a_live_session_tells_the_same),
		cmocka_unit_test(who_readies_in_a_dpc_is_not_the_interrupted_program),
		cmocka_unit_test(preempted_is_ready_and_a_page_is_waited_for_as_for_a_device),
		cmocka_unit_test(a_session_tells_of_a_long_wait_before_its_stack_is_known),
		cmocka_unit_test(a_file_tells_of_all_of_it_at_its_end),
		cmocka_unit_test(without_switches_samples_tell_no_times),
		cmocka_unit_test(behind_a_loss_time_is_unknown),
		cmocka_unit_test(of_another_process_nothing_is_told),
		cmocka_unit_test(a_rule_on_switches_sees_what_thread_time_takes),
		cmocka_unit_test(lack_of_memory_is_an_error_at_opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
