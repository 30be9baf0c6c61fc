/* Counters from a made-up /proc, where everything can be checked by hand, and from the real one. */
#include "base/os.h"
#include "source/counter/proc_reader.h"
#include "source/source.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct source_ops proc_source;

/* ---- a made-up /proc ------------------------------------------------------------------------- */

static char root[TMP_BYTES];

static void put(const char *path, const char *text)
{
	char full[TMP_BYTES + 100], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void drop(const char *path)
{
	char command[TMP_BYTES + 100];

	snprintf(command, sizeof(command), "rm -rf '%s/%s'", root, path);
	assert_int_equal(system(command), 0);
}

/* Write a process: its CPU time in clock ticks, its resident pages, its start. */
static void put_process(unsigned pid, const char *exe, unsigned ticks, unsigned pages,
			unsigned start_ticks)
{
	char path[TMP_BYTES + 100], text[300];

	snprintf(path, sizeof(path), "%u/stat", pid);
	snprintf(text, sizeof(text),
		 "%u (%.15s) S 1 2 3 0 -1 0 10 0 1 0 %u 0 0 0 20 0 3 0 %u 4096 %u 0 0 0\n", pid,
		 strrchr(exe, '/') + 1, ticks, start_ticks, pages);
	put(path, text);
	snprintf(path, sizeof(path), "%s/%u/exe", root, pid);
	unlink(path);
	assert_int_equal(symlink(exe, path), 0);
}

static int make_root(void **state)
{
	static unsigned n;
	char name[20];

	(void)state;
	snprintf(name, sizeof(name), "proc%u", n++);
	snprintf(root, sizeof(root), "%s", tmp_path(name));
	drop("");
	return mkdir(root, 0700);
}

struct fixture {
	struct proc_reader *reader;
	uint64_t time_ns;
};

static void start(struct fixture *f)
{
	assert_int_equal(proc_reader_open(root, false, &f->reader, NULL), 0);
}

/* One counter, one reading of its instance. */
struct reading {
	struct proc_counter counter;
	struct counter_raw raw;
	enum counter_result result;
};

static void take(struct fixture *f, const char *name, struct reading *out)
{
	const struct counter_raw *raw;
	struct proc_instance *i;

	assert_int_equal(proc_counter_find(name, &out->counter, NULL), 0);
	i = proc_reader_instance(f->reader, out->counter.category, out->counter.instance,
				 counter_fields(out->counter.def));
	out->result = proc_instance_read(f->reader, i, &raw);
	out->raw = *raw;
}

static double level(struct fixture *f, const char *name)
{
	struct reading now;
	double v;

	proc_reader_begin(f->reader);
	take(f, name, &now);
	if (now.result != COUNTER_VALUE ||
	    counter_value(now.counter.def, NULL, &now.raw, &v) != COUNTER_VALUE)
		return -1;
	return v;
}

/* As if a second had passed between the two. */
static double rate(struct reading *before, struct reading *now)
{
	double v;

	before->raw.time_ns = 1 * NS_PER_SEC;
	now->raw.time_ns = 2 * NS_PER_SEC;
	if (counter_value(now->counter.def, &before->raw, &now->raw, &v) != COUNTER_VALUE)
		return -1;
	return v;
}

TEST(cpu_and_system_are_read)
{
	struct fixture f;
	struct reading a, b;

	put("stat", "cpu  10 0 0 90 0 0 0 0 0 0\ncpu0 10 0 0 40 0 0 0 0 0 0\ncpu1 0 0 0 50\n"
		    "ctxt 5\nprocesses 3\nprocs_running 5\nprocs_blocked 1\n");
	put("loadavg", "0.76 0.45 0.22 1/95 10963\n");
	put("uptime", "1005.34 1745.90\n");
	start(&f);
	take(&f, "Processor:% Processor Time:0", &a);
	put("stat", "cpu  60 0 0 140\ncpu0 60 0 0 90\n");
	proc_reader_begin(f.reader);
	take(&f, "Processor:% Processor Time:0", &b);
	assert_true(rate(&a, &b) == 50);
	assert_true(level(&f, "Processor:% Processor Time:1") == -1);   /* offline by now */
	put("stat", "cpu  60 0 0 140\ncpu0 1\ncpu1 1\nprocs_running 5\nprocs_blocked 1\n");
	assert_true(level(&f, "System:Processor Queue Length:") == 3);
	assert_true(level(&f, "System:Blocked Threads:") == 1);
	assert_true(level(&f, "System:Threads:") == 95);
	assert_true(level(&f, "System:Load Average 5 min:") == 0.45);
	assert_true(level(&f, "System:System Up Time:_Total") == 1005.34);
	proc_reader_close(f.reader);
}

TEST(total_of_disks_counts_whole_real_disks)
{
	struct fixture f;

	put("diskstats", "8 0 sda 1 0 0 0 0 0 0 0 3 0 0\n8 1 sda1 1 0 0 0 0 0 0 0 9 0 0\n"
			 "8 16 sdb 1 0 0 0 0 0 0 0 4 0 0\n253 0 dm-0 1 0 0 0 0 0 0 0 7 0 0\n");
	start(&f);
	assert_true(level(&f, "PhysicalDisk:Current Disk Queue Length:_Total") == 7);
	assert_true(level(&f, "PhysicalDisk:Current Disk Queue Length:sda1") == 9);
	assert_true(level(&f, "PhysicalDisk:Current Disk Queue Length:DM-0") == 7);
	assert_true(level(&f, "PhysicalDisk:Current Disk Queue Length:sdc") == -1);
	proc_reader_close(f.reader);
}

TEST(total_of_networks_leaves_loopback_out)
{
	struct fixture f;

	put("net/dev",
	    "Inter-| Receive | Transmit\n face |bytes\n"
	    "    lo: 1 1 100 1 0 0 0 0 1 1 1 1 0 0 0 0\n"
	    "  eth0: 1 1 3 1 0 0 0 0 1 1 5 1 0 0 0 0\n  eth1: 1 1 4 1 0 0 0 0 1 1 6 1 0 0 0 0\n");
	put("net/snmp", "Tcp: CurrEstab RetransSegs\nTcp: 12 1\n");
	start(&f);
	assert_true(level(&f, "Network Interface:Packets Received Errors:") == 7);
	assert_true(level(&f, "Network Interface:Packets Outbound Errors:eth1") == 6);
	assert_true(level(&f, "Network Interface:Packets Received Errors:lo") == 100);
	assert_true(level(&f, "TCPv4:Connections Established:") == 12);
	assert_true(level(&f, "TCPv4:Connections Active:") == -1);
	proc_reader_close(f.reader);
}

TEST(control_group_is_found_at_its_mount)
{
	char mounts[2 * TMP_BYTES];
	struct fixture f;

	snprintf(mounts, sizeof(mounts), "cgroup2 %s/cg cgroup2 rw 0 0\n", root);
	put("self/mounts", mounts);
	put("cg/app/cgroup.procs", "");
	put("cg/app/memory.current", "1048576\n");
	put("cg/app/memory.max", "max\n");
	put("cg/app/memory.events", "low 0\nhigh 0\nmax 0\noom 3\noom_kill 2\n");
	start(&f);
	assert_true(level(&f, "Cgroup:memory.current:/app") == 1048576);
	assert_true(level(&f, "Cgroup:memory.events oom_kill:/app") == 2);
	assert_true(level(&f, "Cgroup:% Memory Limit:/app") == -1);
	assert_true(level(&f, "Cgroup:memory.current:/none") == -1);
	assert_true(level(&f, "Cgroup:memory.current:/../cg/app") == -1);
	put("cg/app/memory.max", "4194304\n");
	assert_true(level(&f, "Cgroup:% Memory Limit:/app") == 25);
	drop("cg/app");
	assert_true(level(&f, "Cgroup:memory.current:/app") == -1);
	proc_reader_close(f.reader);
}

static double rate_from(const char *path, const char *before, const char *now, const char *name)
{
	struct reading first, second;
	struct fixture f;

	start(&f);
	put(path, before);
	take(&f, name, &first);
	proc_reader_begin(f.reader);
	put(path, now);
	take(&f, name, &second);
	proc_reader_close(f.reader);
	return rate(&first, &second);
}

TEST(pressure_is_the_growth_of_its_total)
{
	const char *before = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000000\n"
			     "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
	const char *now = "some avg10=9.00 avg60=0.00 avg300=0.00 total=5250000\n"
			  "full avg10=0.00 avg60=0.00 avg300=0.00 total=100000\n";

	assert_true(rate_from("pressure/memory", before, now, "Pressure:% some Time:memory") == 25);
	assert_true(rate_from("pressure/io", before, now, "Pressure:% full Time:io") == 10);
}

TEST(pressure_and_events_of_a_group_are_its_own)
{
	char mounts[2 * TMP_BYTES];

	snprintf(mounts, sizeof(mounts), "cgroup2 %s/cg cgroup2 rw 0 0\n", root);
	put("self/mounts", mounts);
	put("cg/quiet/memory.pressure", "some total=7\nfull total=7\n");
	put("cg/quiet/memory.events", "high 0\nmax 0\n");
	assert_true(rate_from("cg/app/memory.pressure", "some total=0\nfull total=0\n",
			      "some total=400000\nfull total=300000\n",
			      "Cgroup:memory.pressure full:/app") == 30);
	assert_true(rate_from("cg/app/memory.events", "high 3\nmax 1\noom 0\noom_kill 0\n",
			      "high 9\nmax 3\noom 1\noom_kill 1\n",
			      "Cgroup:memory.events high/sec:/app") == 6);
	assert_true(rate_from("cg/app/memory.events", "max 1\n", "max 3\n",
			      "Cgroup:memory.events max/sec:/app") == 2);
	assert_true(rate_from("cg/app/x", "", "", "Cgroup:memory.pressure full:/quiet") == 0);
	assert_true(rate_from("cg/app/x", "", "", "Cgroup:memory.events max/sec:/quiet") == 0);
}

/* ---- processes ------------------------------------------------------------------------------- */

#define PID(instance) "Process:ID Process:" instance

TEST(number_stays_with_its_process)
{
	struct fixture f;

	put_process(300, "/bin/app", 0, 1, 10);         /* the oldest: pids may wrap */
	put_process(100, "/bin/app", 0, 1, 20);
	put_process(200, "/bin/app", 0, 1, 30);
	start(&f);
	assert_true(level(&f, PID("app")) == 300);
	assert_true(level(&f, PID("APP#1")) == 100);
	assert_true(level(&f, PID("app.exe#2")) == 200);
	assert_true(level(&f, PID("app#3")) == -1);
	drop("100");
	assert_true(level(&f, PID("app#1")) == -1);
	assert_true(level(&f, PID("app#2")) == 200);
	put_process(150, "/bin/app", 0, 1, 40);
	assert_true(level(&f, PID("app#1")) == 150);
	assert_true(level(&f, PID("app#2")) == 200);
	/* The name alone continues with another process. */
	drop("300");
	assert_true(level(&f, PID("app")) == 150);
	proc_reader_close(f.reader);
}

TEST(pid_is_bound_to_the_first_process_seen)
{
	struct fixture f;

	start(&f);
	assert_true(level(&f, PID("pid=77")) == -1);
	put_process(77, "/bin/app", 0, 1, 10);
	assert_true(level(&f, PID("pid=77")) == 77);
	put_process(77, "/bin/other", 0, 1, 99);        /* the pid was reused */
	assert_true(level(&f, PID("pid=77")) == -1);
	proc_reader_close(f.reader);
}

TEST(exec_changes_the_name)
{
	struct fixture f;

	put_process(5, "/bin/sh", 0, 1, 10);
	start(&f);
	assert_true(level(&f, PID("sh")) == 5);
	put_process(5, "/usr/bin/gcc-12", 0, 1, 10);
	assert_true(level(&f, PID("sh")) == -1);
	assert_true(level(&f, PID("gcc-12")) == 5);
	proc_reader_close(f.reader);
}

TEST(sum_of_a_name_follows_births_and_deaths)
{
	const char *name = "Process:% Processor Time:app#*";
	double tick_pct = 100.0 / (double)sysconf(_SC_CLK_TCK);
	struct reading a, b;
	struct fixture f;

	put_process(1, "/bin/app", 100, 1, 10);
	put_process(2, "/bin/app", 5000, 2, 20);
	put_process(3, "/bin/other", 7000, 4, 30);
	start(&f);
	take(&f, name, &a);
	/* 1 works for 10 ticks, 2 ends, 4 starts and works for 7; 3 has another name. */
	put_process(1, "/bin/app", 110, 1, 10);
	put_process(3, "/bin/other", 7999, 4, 30);
	put_process(4, "/bin/app", 7, 8, 40);
	drop("2");
	proc_reader_begin(f.reader);
	take(&f, name, &b);
	assert_true(rate(&a, &b) > 16.999 * tick_pct && rate(&a, &b) < 17.001 * tick_pct);
	assert_true(level(&f, "Process:Process Count:app#*") == 2);
	assert_true(level(&f, "Process:Process Count:_Total") == 3);
	assert_true(level(&f, "Process:Working Set:app#*") == 9.0 * (double)sysconf(_SC_PAGESIZE));
	assert_true(level(&f, PID("app#*")) == -1);     /* a sum of pids means nothing */
	assert_true(level(&f, "Process:Thread Count:none#*") == -1);
	proc_reader_close(f.reader);
}

/* A link to a program: its name is the kernel's short one and argv[0]'s, not the file's. */
static void put_link(unsigned pid, const char *link, const char *exe, const char *arguments)
{
	char path[TMP_BYTES + 100];

	put_process(pid, link, 0, 1, pid);
	snprintf(path, sizeof(path), "%s/%u/exe", root, pid);
	unlink(path);
	assert_int_equal(symlink(exe, path), 0);
	snprintf(path, sizeof(path), "%u/cmdline", pid);
	put(path, arguments);
}

struct listed_names {
	char text[2000], others[2000];       /* a blank after each name */
};

static bool list_name(void *ctx, const char *name, bool also)
{
	struct listed_names *l = ctx;
	char *to = also ? l->others : l->text;

	strcat(strcat(to, name), " ");
	return true;
}

/* Arguments are read by other threads: on a busy machine they may come after the first reading. */
static bool comes_to(struct fixture *f, const char *name, double value)
{
	unsigned tries = 1200;

	while (level(f, name) != value && --tries)
		os_sleep_ns(50 * NS_PER_MS);
	return tries > 0;
}

TEST(process_is_found_by_each_of_its_names)
{
	struct listed_names listed = {"", ""};
	struct proc_counter counter;
	unsigned tries = 1000;
	struct fixture f;

	put_link(4, "/bin/sh", "/bin/dash", "sh /srv/run.sh");
	put_link(5, "/bin/sh", "/bin/dash", "/bin/sh -c x");
	put_link(6, "/bin/dash", "/bin/dash", "dash");
	put_link(7, "/usr/bin/python3", "/usr/bin/python3.11",
		 "python3 -u /srv/manage.py runserver");
	put_link(8, "/bin/sleep", "/bin/busybox", "sleep 9");
	/* Processes whose arguments come late have other names, and thereby numbers, until then. */
	for (start(&f); level(&f, "Process:ID Process:dash") != 6 && --tries; start(&f))
		proc_reader_close(f.reader);
	assert_true(tries > 0);                      /* its argv[0] */
	assert_true(comes_to(&f, "Process:ID Process:sh", 4));
	assert_true(comes_to(&f, "Process:ID Process:SH#1", 5));
	assert_true(comes_to(&f, "Process:ID Process:run.sh", 4));
	assert_true(comes_to(&f, "Process:ID Process:python3", 7));
	assert_true(comes_to(&f, "Process:ID Process:python3.11", 7));
	assert_true(comes_to(&f, "Process:ID Process:manage.py", 7));
	assert_true(comes_to(&f, "Process:ID Process:sleep", 8));
	assert_true(comes_to(&f, "Process:ID Process:busybox", 8));
	assert_true(level(&f, "Process:ID Process:python") == -1);
	assert_true(level(&f, "Process:Thread Count:dash#*") == 9);
	assert_true(comes_to(&f, "Process:Thread Count:sh#*", 6));
	assert_int_equal(proc_counter_find("Process:ID Process:x", &counter, NULL), 0);
	proc_reader_list(f.reader, counter.category, list_name, &listed);
	assert_string_equal(listed.text, "_Total sh sh#* sh#1 dash python3 sleep ");
	assert_string_equal(listed.others, "run.sh python3.11 manage.py busybox ");
	proc_reader_close(f.reader);
}

TEST(hostile_process_does_not_hide_others)
{
	struct fixture f;

	put("9/stat", "9 (a) R 1 (b\n) S 1 2 3 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 5 1 1 0\n");
	put("10/stat", "garbage");
	put("notapid/stat", "1 (x) S");
	put_process(11, "/bin/app", 0, 1, 6);
	start(&f);
	assert_true(level(&f, PID("app")) == 11);
	assert_true(level(&f, PID("a) R 1 (b\n")) == 9);
	assert_true(level(&f, "Process:Process Count:") == 2);
	proc_reader_close(f.reader);
}

/*
 * Arguments may lie in a mapped file whose server is gone; a pipe that nobody writes makes a reader
 * wait as well. The others are counted at once, and have the names of their scripts when another
 * thread has taken over.
 */
TEST(process_whose_arguments_do_not_answer_holds_up_no_counter)
{
	char path[TMP_BYTES + 100];
	struct fixture f;
	uint64_t end_ns;
	int writer;

	put_process(11, "/bin/app", 0, 1, 6);
	snprintf(path, sizeof(path), "%s/11/cmdline", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	start(&f);
	assert_true(level(&f, PID("app")) == 11);
	put_link(12, "/usr/bin/python3", "/usr/bin/python3.11", "python3 /srv/manage.py");
	assert_true(level(&f, PID("python3.11")) == 12);
	end_ns = os_now_ns() + 20 * NS_PER_SEC;
	while (level(&f, PID("manage.py")) != 12 && os_now_ns() < end_ns)
		os_sleep_ns(50 * NS_PER_MS);
	assert_true(level(&f, PID("manage.py")) == 12);
	assert_true(level(&f, PID("app")) == 11);
	writer = open(path, O_RDWR | O_CLOEXEC);     /* lets the reader go */
	assert_true(writer >= 0);
	close(writer);
	proc_reader_close(f.reader);
}

/* The kernel makes a reader of io wait while the process executes a program that hangs. */
TEST(process_whose_io_does_not_answer_holds_up_no_counter)
{
	char path[TMP_BYTES + 100], note[200] = "";
	struct fixture f;
	int writer;

	put_process(11, "/bin/app", 0, 1, 6);
	put_process(12, "/bin/other", 0, 1, 6);
	snprintf(path, sizeof(path), "%s/11/io", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	put("12/io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 0\n");
	start(&f);
	level(&f, "Process:IO Read Bytes/sec:app");
	assert_true(level(&f, PID("app")) == 11);
	assert_true(level(&f, PID("other")) == 12);
	while (!proc_reader_note(f.reader, note, sizeof(note))) {
		level(&f, "Process:IO Read Bytes/sec:app");
		os_sleep_ns(50 * NS_PER_MS);
	}
	assert_non_null(strstr(note, "1 of at most 4 threads that read"));
	level(&f, "Process:IO Read Bytes/sec:other");
	proc_reader_begin(f.reader);
	assert_true(level(&f, PID("app")) == 11);
	writer = open(path, O_RDWR | O_CLOEXEC);     /* lets the reader go */
	assert_true(writer >= 0);
	close(writer);
	proc_reader_close(f.reader);
}

/* ---- the real one ---------------------------------------------------------------------------- */

static atomic_bool burning;

static void burn(void *ctx)
{
	volatile unsigned n = 0;

	(void)ctx;
	while (atomic_load(&burning))
		n++;
}

static struct source *live;

static void run(void *ctx)
{
	(void)ctx;
	proc_source.run(live, NULL);
}

struct seen {
	unsigned values, absents, monitored;
	double last, largest, sum;
	uint64_t first_ns;
};

static void look(struct queue *queue, const char *name, struct seen *seen)
{
	const struct event *e = queue_peek(queue);

	if (strcmp(e->name, name) != 0)
		return;
	assert_int_equal(e->kind, EVENT_COUNTER);
	if (!seen->values && !seen->absents)
		seen->first_ns = e->time_ns;
	seen->monitored += (e->flags & EVENT_FLAG_MONITOR) != 0;
	if (e->flags & EVENT_FLAG_ABSENT) {
		seen->absents++;
		return;
	}
	seen->values++;
	seen->last = e->value;
	seen->sum += e->value;
	if (e->value > seen->largest)
		seen->largest = e->value;
}

static void look_at_all(struct queue *queue, struct seen seen[4], const char *const names[4])
{
	uint64_t last_ns = 0;
	unsigned i;

	while (queue_peek(queue)) {
		assert_true(queue_peek(queue)->time_ns >= last_ns);
		last_ns = queue_peek(queue)->time_ns;
		for (i = 0; i < 4; i++)
			look(queue, names[i], &seen[i]);
		queue_pop(queue);
	}
}

TEST(source_delivers_counters_and_watermarks_until_it_is_stopped)
{
	static const char *const fixed[] = {
		"memory:available bytes:", "Process:Thread Count:no such",
		"Processor:% Idle Time:_Total"};
	static struct needs needs;
	char own[64];
	struct seen seen[4] = {{0}}, *cpu = seen, *memory = seen + 1, *absent = seen + 2,
		    *idle = seen + 3;
	struct os_thread *thread = NULL, *burner = NULL;
	struct queue *queue = queue_new(1 << 20);
	struct source_config cfg = { .queue = queue };
	struct source_status status;
	uint64_t start_ns, stop_ns, released_ns, cpu_ns[2], rss;
	unsigned most;                       /* in the time that it took, at 100 ms */
	double used_pct;

	snprintf(own, sizeof(own), "Process:%% Processor Time:pid=%u", os_pid());
	memset(&needs, 0, sizeof(needs));
	assert_int_equal(needs_counter(&needs, own, 200 * NS_PER_MS, false, NULL), 0);
	assert_int_equal(needs_counter(&needs, fixed[0], 100 * NS_PER_MS, true, NULL), 0);
	assert_int_equal(needs_counter(&needs, fixed[1], 100 * NS_PER_MS, false, NULL), 0);
	assert_int_equal(needs_counter(&needs, fixed[2], 100 * NS_PER_MS, false, NULL), 0);
	assert_int_equal(proc_source.open(&cfg, &needs, &live, NULL), 0);
	atomic_store(&burning, true);
	assert_int_equal(os_thread_start("burn", burn, NULL, &burner, NULL), 0);
	start_ns = os_now_ns();
	os_self_usage(&cpu_ns[0], &rss);
	assert_int_equal(os_thread_start("counters", run, NULL, &thread, NULL), 0);
	do {
		os_sleep_ns(100 * NS_PER_MS);
		look_at_all(queue, seen, (const char *[]){own, fixed[0], fixed[1], fixed[2]});
	} while ((cpu->values < 3 || memory->values < 6 || absent->absents < 6) &&
		 os_now_ns() - start_ns < 60 * NS_PER_SEC);
	released_ns = queue_released(queue, os_now_ns());
	stop_ns = os_now_ns();
	assert_in_range(released_ns, stop_ns - 10 * NS_PER_SEC, stop_ns);
	os_self_usage(&cpu_ns[1], &rss);
	used_pct = 100.0 * (double)(cpu_ns[1] - cpu_ns[0]) / (double)(stop_ns - start_ns);
	proc_source.stop(live);
	os_thread_join(thread);
	assert_true(os_now_ns() - stop_ns < 10 * NS_PER_SEC);
	atomic_store(&burning, false);
	os_thread_join(burner);
	proc_source.status(live, &status);

	look_at_all(queue, seen, (const char *[]){own, fixed[0], fixed[1], fixed[2]});
	most = 2 + (unsigned)((os_now_ns() - start_ns) / (100 * NS_PER_MS));
	assert_int_equal(queue_released(queue, os_now_ns()), UINT64_MAX);
	/* Other work may leave it less than one CPU, so compare with the CPU time it got. */
	assert_in_range(cpu->values, 3, most / 2 + 1);
	assert_true(cpu->sum / cpu->values > used_pct * 0.3 &&
		    cpu->sum / cpu->values < used_pct * 2.5);
	assert_true(cpu->first_ns - start_ns >
		    150 * NS_PER_MS); /* the first reading gives no rate */
	assert_in_range(memory->values, 6, most);
	assert_int_equal(memory->monitored, memory->values);
	assert_true(memory->last > 1e6);
	assert_true(absent->values == 0 && absent->absents >= 6 && absent->monitored == 0);
	assert_true(idle->largest <= 100);
	assert_int_equal(status.events,
			 cpu->values + memory->values + absent->absents + idle->values);
	assert_int_equal(status.lost, 0);
	proc_source.close(live);
	queue_free(queue);
}

TEST(check_refuses_what_can_not_be)
{
	static struct needs needs;
	struct err err;

	memset(&needs, 0, sizeof(needs));
	assert_int_equal(needs_counter(&needs, "Processor:% User Time:99", 0, false, NULL), 0);
	assert_int_equal(proc_source.check(&needs, &err), 0);
	assert_int_equal(needs_counter(&needs, "Memory:Free:", 0, false, NULL), 0);
	assert_int_equal(proc_source.check(&needs, &err), ERR_USAGE);
	assert_int_equal(err.code, ERR_USAGE);
	assert_non_null(strstr(err.text, "'Free Bytes'"));
}

TEST(one_counter_can_be_read_at_once)
{
	struct counter_value v;
	struct err err;
	char name[64];

	assert_int_equal(counter_read_once("Memory:Total Bytes:", &v, &err), 0);
	assert_true(!v.absent && v.value > 1e6);
	assert_string_equal(v.unit, "bytes");
	assert_int_equal(counter_read_once("Processor:% Processor Time:_Total", &v, &err), 0);
	assert_true(!v.absent && v.value >= 0 && v.value <= 100);
	snprintf(name, sizeof(name), "Process:ID Process:pid=%u", os_pid());
	assert_int_equal(counter_read_once(name, &v, &err), 0);
	assert_true(!v.absent && v.value == os_pid());
	assert_int_equal(counter_read_once("Process:ID Process:proc_linux", &v, &err),
			 0);
	assert_true(!v.absent);
	assert_int_equal(counter_read_once("Process:Working Set:no such", &v, &err), 0);
	assert_true(v.absent);
	assert_int_equal(counter_read_once("Memory:Nothing:", &v, &err), ERR_NOT_FOUND);
}

/* The list as text; the caller frees it. */
static int list(const char *pattern, bool json, struct buf *text, struct err *err)
{
	struct out *out = NULL;
	int rc;

	assert_int_equal(out_to_buf(text, &out, NULL), 0);
	rc = proc_source.list(pattern, json, out, err);
	assert_int_equal(out_close(out, NULL), 0);
	return rc;
}

TEST(list_prints_values_with_their_units)
{
	static const char idle[] =
		"{\"counter\":\"Processor:% Idle Time:_Total\",\"category\":\"Processor\","
		"\"name\":\"% Idle Time\",\"instance\":\"_Total\",\"value\":";
	struct buf text = {0};
	struct err err = {0};

	assert_int_equal(list("total bytes", false, &text, &err), 0);
	assert_non_null(strstr(buf_text(&text), "Memory:Total Bytes:"));
	assert_non_null(strstr(buf_text(&text), " bytes "));
	buf_reset(&text);
	assert_int_equal(list("Processor:% Idle Time:_Total", true, &text, &err), 0);
	assert_memory_equal(buf_text(&text), idle, strlen(idle));
	assert_null(strstr(buf_text(&text), "null"));
	buf_reset(&text);
	assert_int_equal(list("Procesor", false, &text, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "'Procesor'"));
	/* All of it, without keeping the files of every process open. */
	assert_int_equal(list(NULL, true, &text, &err), 0);
	assert_non_null(strstr(buf_text(&text), "proc_linux"));
	buf_free(&text);
}

static int open_step(void *ctx)
{
	struct source_config cfg = { .queue = ctx };
	static struct needs needs;
	struct source *source = NULL;
	int rc;

	needs.ncounters = 0;
	rc = needs_counter(&needs, "Processor:% Idle Time:0", 0, false, NULL);
	if (!rc)
		rc = needs_counter(&needs, "Process:Working Set:app#*", 0, false, NULL);
	if (!rc)
		rc = proc_source.open(&cfg, &needs, &source, NULL);
	if (!rc)
		proc_source.close(source);
	return rc;
}

TEST(open_reports_lack_of_memory)
{
	assert_in_range(alloc_walk(open_step, NULL), 5, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cpu_and_system_are_read, make_root),
		cmocka_unit_test_setup(total_of_disks_counts_whole_real_disks, make_root),
		cmocka_unit_test_setup(total_of_networks_leaves_loopback_out, make_root),
		cmocka_unit_test_setup(pressure_is_the_growth_of_its_total, make_root),
		cmocka_unit_test_setup(pressure_and_events_of_a_group_are_its_own, make_root),
		cmocka_unit_test_setup(control_group_is_found_at_its_mount, make_root),
		cmocka_unit_test_setup(number_stays_with_its_process, make_root),
		cmocka_unit_test_setup(pid_is_bound_to_the_first_process_seen, make_root),
		cmocka_unit_test_setup(exec_changes_the_name, make_root),
		cmocka_unit_test_setup(sum_of_a_name_follows_births_and_deaths, make_root),
		cmocka_unit_test_setup(process_is_found_by_each_of_its_names, make_root),
		cmocka_unit_test_setup(hostile_process_does_not_hide_others, make_root),
		cmocka_unit_test_setup(process_whose_io_does_not_answer_holds_up_no_counter,
				       make_root),
		cmocka_unit_test_setup(process_whose_arguments_do_not_answer_holds_up_no_counter,
				       make_root),
		cmocka_unit_test(source_delivers_counters_and_watermarks_until_it_is_stopped),
		cmocka_unit_test(check_refuses_what_can_not_be),
		cmocka_unit_test(one_counter_can_be_read_at_once),
		cmocka_unit_test(list_prints_values_with_their_units),
		cmocka_unit_test(open_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
