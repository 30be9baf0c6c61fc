/*
 * Pauses of a JVM that was there before the recording: this process, by performance data that it
 * writes itself, of a collector 0 and with a beginning by the wall clock, as OpenJDK 25 has.
 */
#include "base/array.h"
#include "base/os.h"
#include "source/jvm/table_linux.h"
#include "source/host/proc_pid_linux.h"
#include "source/source.h"
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENTRY_BYTES 80u
#define NAME_AT 20u
#define DATA_AT 72u
#define DIRECTORY "/tmp/hsperfdata_recorder_test"
#define STRANGERS "/tmp/hsperfdata_recorder_strangers"
#define STRANGER 54321u

static const char *const names[] = {
	"sun.os.hrt.frequency",
	"sun.rt.createVmBeginTime",
	"sun.rt.safepoints",
	"sun.rt.safepointTime",
	"sun.gc.collector.0.invocations",
	"sun.gc.collector.0.time",
	"sun.gc.collector.0.lastEntryTime",
	"sun.gc.collector.0.lastExitTime",
};
enum { FREQUENCY, BEGAN, SAFEPOINTS, SAFEPOINT_TIME, INVOCATIONS, TIME, ENTRY, EXIT, NAMES };

extern const struct source_ops jvm_source;

static struct source_config cfg;
static struct source *source;
static struct os_thread *runner;
static uint64_t zero_ns;                     /* when the clock of this JVM began */
static char path[64];

static void set(unsigned which, uint64_t value)
{
	FILE *f = fopen(path, "r+b");

	assert_non_null(f);
	fseek(f, (long)(32 + which * ENTRY_BYTES + DATA_AT), SEEK_SET);
	assert_int_equal(fwrite(&value, 8, 1, f), 1);
	fclose(f);
}

static int begin(void **state)
{
	unsigned char b[32 + NAMES * ENTRY_BYTES] = {0xca, 0xfe, 0xc0, 0xc0,	  1,
						     2,	   0,	 1,    [24] = 32, [28] = NAMES};
	uint64_t wall_ns;
	FILE *f;
	unsigned i;

	(void)state;
	for (i = 0; i < NAMES; i++) {
		unsigned char *entry = b + 32 + i * ENTRY_BYTES;

		entry[0] = ENTRY_BYTES;
		entry[4] = NAME_AT;
		entry[12] = 'J';
		entry[16] = DATA_AT;
		strcpy((char *)entry + NAME_AT, names[i]);
	}
	snprintf(path, sizeof(path), DIRECTORY "/%d", (int)getpid());
	if ((mkdir(DIRECTORY, 0700) != 0 && errno != EEXIST) || !(f = fopen(path, "wb")))
		return -1;
	fwrite(b, sizeof(b), 1, f);
	fclose(f);
	set(FREQUENCY, NS_PER_SEC);
	do {
		zero_ns = os_now_ns();
		wall_ns = os_wall_ns();
	} while (os_now_ns() - zero_ns > NS_PER_MS / 10);
	set(BEGAN, wall_ns / NS_PER_MS);
	cfg = (struct source_config){.capture = {.freq_hz = 99}};
	return processes_new(&cfg.processes, NULL) || !(cfg.queue = queue_new(1 << 20));
}

static int end(void **state)
{
	(void)state;
	if (runner) {
		source->ops->stop(source);
		os_thread_join(runner);
	}
	runner = NULL;
	if (source)
		source->ops->close(source);
	source = NULL;
	queue_free(cfg.queue);
	processes_free(cfg.processes);
	unlink(path);
	rmdir(DIRECTORY);
	return 0;
}

static void record(void)
{
	struct needs *needs = calloc(1, sizeof(*needs));

	assert_non_null(needs);
	assert_int_equal(needs_provider(needs, "Microsoft-Windows-DotNETRuntime", 1, 4, NULL), 0);
	assert_int_equal(jvm_source.open(&cfg, needs, &source, NULL), 0);
	free(needs);
}

static void run_source(void *ctx)
{
	(void)ctx;
	source->ops->run(source, NULL);
}

static void run(void)
{
	assert_int_equal(os_thread_start("java", run_source, NULL, &runner, NULL), 0);
}

/* A pause that began `ago` and has ended. */
static uint64_t pause_of(uint64_t count, uint64_t ago_ns, uint64_t length_ns)
{
	uint64_t entry = os_now_ns() - zero_ns - ago_ns;

	/* In a JVM's own order: a look may come in between. */
	set(INVOCATIONS, count);
	set(ENTRY, entry);
	set(EXIT, entry + length_ns);
	set(TIME, count * length_ns);
	return zero_ns + entry;
}

/* The next event of this process's collector by that name. */
static void next(const char *name, uint64_t *time_ns, uint64_t *count, double *pause_ms)
{
	uint64_t end_ns = os_now_ns() + 30 * NS_PER_SEC;
	const struct event *e;
	bool found = false;

	while (!found && os_now_ns() < end_ns) {
		e = queue_peek(cfg.queue);
		if (!e) {
			os_sleep_ns(NS_PER_MS);
			continue;
		}
		found = e->kind == EVENT_GENERIC && e->process && e->process->pid == os_pid() &&
			strcmp(e->name, name) == 0;
		if (found) {
			*time_ns = e->time_ns;
			*count = event_field(e, "Count")->v.u;
			*pause_ms = event_field(e, "PauseMSec")
					    ? event_field(e, "PauseMSec")->v.d : -1;
		}
		queue_pop(cfg.queue);
	}
	assert_true(found);
}

TEST(a_pause_that_ended_between_the_recording_s_start_and_the_first_look_is_told)
{
	uint64_t entry_ns, start_ns, stop_ns, count;
	double ms;

	record();
	os_sleep_ns(30 * NS_PER_MS);
	entry_ns = pause_of(7, 20 * NS_PER_MS, 10 * NS_PER_MS);
	run();
	next("GC/Start", &start_ns, &count, &ms);
	assert_int_equal(count, 7);
	assert_true(ms < 0);
	assert_in_range(start_ns, entry_ns - 2 * NS_PER_MS, entry_ns + 2 * NS_PER_MS);
	next("GC/Stop", &stop_ns, &count, &ms);
	assert_int_equal(stop_ns - start_ns, 10 * NS_PER_MS);
	assert_true(ms > 9.999 && ms < 10.001);
}

TEST(a_pause_that_ended_before_the_recording_is_not_told)
{
	uint64_t start_ns, count;
	double ms;

	os_sleep_ns(30 * NS_PER_MS);
	pause_of(1, 20 * NS_PER_MS, 10 * NS_PER_MS);
	os_sleep_ns(10 * NS_PER_MS);
	record();
	run();
	/* too short for the first look: then the one before is not told either */
	os_sleep_ns(50 * NS_PER_MS);
	pause_of(2, 2 * NS_PER_MS, NS_PER_MS);
	next("GC/Start", &start_ns, &count, &ms);
	assert_int_equal(count, 2);
}

TEST(a_pause_that_is_open_at_the_first_look_has_its_own_beginning)
{
	uint64_t start_ns, stop_ns, count, entry;
	double ms;

	os_sleep_ns(10 * NS_PER_MS);
	entry = os_now_ns() - zero_ns;
	set(INVOCATIONS, 3);
	set(ENTRY, entry);
	os_sleep_ns(20 * NS_PER_MS);
	record();
	run();
	next("GC/Start", &start_ns, &count, &ms);
	assert_in_range(start_ns, zero_ns + entry - 2 * NS_PER_MS, zero_ns + entry + 2 * NS_PER_MS);
	set(EXIT, entry + 40 * NS_PER_MS);
	set(TIME, 40 * NS_PER_MS);
	next("GC/RestartEEStop", &stop_ns, &count, &ms);
	assert_int_equal(count, 3);
	assert_int_equal(stop_ns - start_ns, 40 * NS_PER_MS);
	assert_true(ms > 39.999 && ms < 40.001);
}

/* What writes the file may have any clock. */
TEST(a_pause_is_not_older_than_the_look_that_did_not_see_it)
{
	uint64_t before_ns, start_ns, stop_ns, count;
	double ms;

	zero_ns -= 3600 * NS_PER_SEC;
	set(BEGAN, zero_ns / NS_PER_MS + (os_wall_ns() - os_now_ns()) / NS_PER_MS);
	record();
	run();
	os_sleep_ns(50 * NS_PER_MS);
	pause_of(1, 2 * NS_PER_MS, NS_PER_MS);
	next("GC/Stop", &stop_ns, &count, &ms);
	os_sleep_ns(400 * NS_PER_MS);
	before_ns = os_now_ns();
	pause_of(2, 60 * NS_PER_SEC, NS_PER_MS);
	next("GC/Start", &start_ns, &count, &ms);
	assert_int_equal(count, 2);
	assert_in_range(start_ns, before_ns - 2 * NS_PER_SEC, os_now_ns());
}

/* Its owner may do that, to whoever reads it. */
TEST(a_file_that_is_cut_off_and_comes_back_hurts_nobody)
{
	uint64_t start_ns, count;
	unsigned char all[4096];
	double ms;
	FILE *f = fopen(path, "r+b");
	size_t n;

	assert_non_null(f);
	n = fread(all, 1, sizeof(all), f);
	record();
	run();
	os_sleep_ns(50 * NS_PER_MS);
	pause_of(2, 2 * NS_PER_MS, NS_PER_MS);
	next("GC/Start", &start_ns, &count, &ms);
	assert_int_equal(ftruncate(fileno(f), 0), 0);
	os_sleep_ns(120 * NS_PER_MS);            /* at least two looks */
	rewind(f);
	fwrite(all, 1, n, f);
	fclose(f);
	os_sleep_ns(120 * NS_PER_MS);
	pause_of(9, 2 * NS_PER_MS, NS_PER_MS);
	do
		next("GC/Start", &start_ns, &count, &ms);
	while (count != 9);
}

#define MS(n) ((n) * NS_PER_MS)

TEST(a_lone_pause_is_looked_at_more_closely_for_a_moment)
{
	struct jvm_pace pace = {0};
	const uint64_t now = 1000 * NS_PER_SEC;

	jvm_pace_note(&pace, 1, now + 50);   /* seen by the look that began at `now` */
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now), MS(20));
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(100)), MS(20));
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(101)), MS(50));
	/* it goes on */
	assert_int_equal(jvm_pace_look_every_ns(&pace, true, now + MS(101)), MS(10));
	jvm_pace_note(&pace, 1, now + MS(200));      /* its end: none has begun since */
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(301)), MS(50));
	jvm_pace_note(&pace, 2, now + MS(1001));     /* over a second after it */
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(1101)), MS(50));
}

TEST(pauses_close_to_each_other_are_looked_at_closely_until_it_is_calm)
{
	const uint64_t now = 1000 * NS_PER_SEC;
	struct jvm_pace pace = {0};
	struct jvm_pace two = {.collections = 7, .collected_ns = now - MS(60000)};

	jvm_pace_note(&pace, 1, now);
	jvm_pace_note(&pace, 2, now + MS(999));
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(1198)), MS(10));
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(1200)), MS(20));
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(2998)), MS(20));
	assert_int_equal(jvm_pace_look_every_ns(&pace, false, now + MS(2999)), MS(50));
	jvm_pace_note(&two, 9, now);                 /* two since the last look */
	assert_int_equal(jvm_pace_look_every_ns(&two, false, now), MS(10));
}

/* A search that is not done at once is done later. */
static void look_until_searched(struct jvm_table *table, uint64_t now_ns)
{
	jvm_table_look(table, now_ns);
	while (table->scan.now) {
		os_sleep_ns(NS_PER_MS);
		jvm_table_look(table, now_ns);
	}
}

TEST(a_directory_that_could_not_be_watched_once_is_watched_when_it_can_be)
{
	struct os_wake *wake = os_wake_new();
	struct jvm_table table;
	uint64_t now_ns = os_now_ns();

	assert_non_null(wake);
	assert_int_equal(jvm_table_open(&table, cfg.processes, NULL, wake, NULL, NULL), 0);
	assert_true(table.watch >= 0);
	table.unwatched = true;        /* /tmp was not there: until the next scan, a second later */
	look_until_searched(&table, now_ns);
	assert_false(table.unwatched);
	assert_int_equal(table.next_scan_ns, now_ns + 10 * NS_PER_SEC);
	jvm_table_close(&table);
	os_wake_free(wake);
}

/* A process of another user with an empty file of performance data. */
static pid_t pretend(void)
{
	char file[64];
	pid_t pid = fork();
	FILE *f;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0 ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)   /* also when the test fails */
			_exit(1);
		for (;;)
			pause();
	}
	snprintf(file, sizeof(file), STRANGERS "/%d", (int)pid);
	f = fopen(file, "wb");
	assert_non_null(f);
	assert_int_equal(fchown(fileno(f), STRANGER, STRANGER), 0);
	fclose(f);
	return pid;
}

static void end_pretence(pid_t pid)
{
	char file[64];

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	snprintf(file, sizeof(file), STRANGERS "/%d", (int)pid);
	unlink(file);
}

/* The table has 256 places. */
TEST(files_of_one_user_fill_half_of_the_table_at_most)
{
	static pid_t pids[JVMS_MAX + 1];
	struct os_wake *wake = os_wake_new();
	uint32_t i, strangers = 0, ours = 0;
	struct jvm_table table;

	if (geteuid() != 0)
		skip();
	assert_non_null(wake);
	assert_true(mkdir(STRANGERS, 0755) == 0 || errno == EEXIST);
	assert_int_equal(chown(STRANGERS, STRANGER, STRANGER), 0);
	for (i = 0; i < COUNT_OF(pids); i++)
		pids[i] = pretend();
	os_sleep_ns(100 * NS_PER_MS);                /* until all are that user's */
	assert_int_equal(jvm_table_open(&table, cfg.processes, NULL, wake, NULL, NULL), 0);
	look_until_searched(&table, os_now_ns());
	for (i = 0; i < table.n; i++) {
		strangers += table.all[i].uid == STRANGER;
		ours += table.all[i].pid == os_pid();
	}
	assert_int_equal(strangers, 128);
	assert_int_equal(ours, 1);
	assert_true(table.crowded);
	/* Those that have ended leave their places. */
	for (i = 0; i < COUNT_OF(pids); i++)
		end_pretence(pids[i]);
	look_until_searched(&table, os_now_ns() + 20 * NS_PER_SEC);
	for (i = 0, strangers = 0; i < table.n; i++)
		strangers += table.all[i].uid == STRANGER;
	assert_int_equal(strangers, 0);
	assert_int_equal(table.places.used, table.n);
	jvm_table_close(&table);
	assert_int_equal(table.places.used, 0);
	rmdir(STRANGERS);
	os_wake_free(wake);
}

TEST(what_a_jvm_says_of_its_beginning_is_believed_within_bounds)
{
	const uint64_t s = NS_PER_SEC;
	struct jvm j = {.zero_low_ns = 100 * s, .zero_high_ns = 200 * s};

	assert_int_equal(jvm_clock_zero(&j), 150 * s);
	jvm_clock_note_wall(&j, 0, 5000 * s, 210 * s);               /* it is not up yet */
	assert_int_equal(jvm_clock_zero(&j), 150 * s);
	jvm_clock_note_wall(&j, 4900 * 1000, 5000 * s, 210 * s);     /* 100 s ago */
	assert_int_equal(jvm_clock_zero(&j), 110 * s + NS_PER_MS / 2);
	jvm_clock_note_wall(&j, 4999 * 1000, 5000 * s, 210 * s);   /* the clock was set meanwhile */
	assert_int_equal(jvm_clock_zero(&j), 150 * s);
	jvm_clock_note_wall(&j, UINT64_MAX / 2, 5000 * s, 210 * s);
	assert_int_equal(jvm_clock_zero(&j), 150 * s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_pause_that_ended_between_the_recording_s_start_and_the_first_look_is_told,
			begin, end),
		cmocka_unit_test_setup_teardown(a_pause_that_ended_before_the_recording_is_not_told,
						begin, end),
		cmocka_unit_test_setup_teardown(
			a_pause_that_is_open_at_the_first_look_has_its_own_beginning, begin, end),
		cmocka_unit_test_setup_teardown(
			a_pause_is_not_older_than_the_look_that_did_not_see_it, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_is_cut_off_and_comes_back_hurts_nobody,
						begin, end),
		cmocka_unit_test(a_lone_pause_is_looked_at_more_closely_for_a_moment),
		cmocka_unit_test(pauses_close_to_each_other_are_looked_at_closely_until_it_is_calm),
		cmocka_unit_test_setup_teardown(files_of_one_user_fill_half_of_the_table_at_most,
						begin, end),
		cmocka_unit_test_setup_teardown(
			a_directory_that_could_not_be_watched_once_is_watched_when_it_can_be, begin,
			end),
		cmocka_unit_test(what_a_jvm_says_of_its_beginning_is_believed_within_bounds),
	};

	if (argc == 2 && !strcmp(argv[1], JVM_READER_WORD))
		return jvm_reader_serve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
