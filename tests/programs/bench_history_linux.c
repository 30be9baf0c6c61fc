/*
 * The history on disk: what it writes, and how soon a window of it is there.
 *
 *	bench_history_linux [--json] [--dir DIR] [--days N] [--rate HZ]
 *			[--pace SECONDS] [--plain BYTES [--in-place]] [RECORDER]
 *
 * The stream of bench_stream.h, 198 samples a second (--rate: a part of it), is sealed every ten
 * seconds, as the engine does it. In it 10,000 processes an hour come and go, with pids that are
 * used again, each with code of its own that was compiled at run time; every 16th sample is theirs.
 *
 * First three hours of it, each segment put and synced on its own: bytes a day, what was written
 * for each byte of segments that stays (/proc/self/io; and what the disk was given by all of the
 * machine, with the file system's journal, /sys/dev/block/MAJ:MIN/stat), CPU time of one CPU.
 *
 * Then N days (30) and a tenth more, in rounds of ten minutes, within what 95 % of them take: the
 * bytes in the directory after each put, logs included, and which files leave; resident memory,
 * which grows with the file that is written (what is in it is known by heart) and falls with the
 * next one: the least and the most of it, and its most and its mean in the last third against
 * those in the first; a window of 60 s and one of an hour in the middle of what is left, loaded
 * here and reported by RECORDER. The first twelve hours do not count for memory: until then the
 * heap grows to its size (--days 30: 9.6 to 21.9 MB, and 22.0 to 22.5 MB in the 33 days after).
 *
 * With --pace: only PACED rounds, one each so many seconds, and what the disk was given for them.
 * ext4 writes its journal after some seconds, too (-o commit=5), so only this shows what it costs:
 * at --pace 10, or in a fifth of the time at --pace 2 with commit=1. DIR is then on a disk of its
 * own (losetup, mke2fs, mount). With --plain so many bytes a round are appended to a file that is
 * synced each time, and nothing else: the least that a file system takes for them. With --in-place
 * whole blocks of a file that was written before are overwritten: nothing of it changes but bytes
 * and its time.
 */
#include "base/os.h"
#include "store/history.h"
#include "tests/support/bench_rows.h"
#include "tests/support/bench_run_linux.h"
#include "tests/support/bench_stream.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { ROUND_S = 10, PER_PUT = 60, DAY_S = 86400, FIRST_S = 3 * 3600, WARM = 200,
       WARM_S = DAY_S / 2 };                 /* until the heap has its size */
enum { PACED = 127 };                        /* from a checkpoint of the log to the next one */
enum { BLOCK = 4096 };                       /* of the file system */
enum { DIFFERENT = 800000,                   /* samples, before they start over */
       BORN = 28, SLOTS = 2 * BORN,          /* processes a round; and how many live */
       FIRST_PID = 5000000, PIDS = 4096, METHODS = 8 };

#define WALL_NS 1795219200000000000ULL       /* of the recorder clock's 0 */
#define LIMIT_BYTES ((uint64_t)64 << 30)

struct slot {                                /* a living process */
	struct process *process;
	struct thread *thread;
	struct object *jit;
};

struct bench {
	struct settings settings;
	struct world world;
	struct slot slots[SLOTS];
	uint32_t started;
	struct history *history;
	uint64_t put_bytes, samples, cpu_ns;
	uint64_t most_put_ns;                /* CPU time of the longest one, which ends a file */
	uint32_t days, pace_s;
	uint32_t round_samples;
	uint64_t day_bytes;                  /* what a day took in the first hours */
	uint32_t plain_bytes;                /* 0 = the history is written */
	bool in_place;
	off_t plain_at;                      /* where the next round goes */
	char *recorder;                      /* NULL = its commands are not run */
	char path[400];
};

static void die(const struct err *err)
{
	fprintf(stderr, "bench_history: %s\n", err->text);
	exit(1);
}

/* ---- what comes and goes --------------------------------------------------------------------- */

static void end_slot(struct bench *b, struct slot *s, uint64_t now_ns)
{
	if (!s->process)
		return;
	thread_drop(b->world.processes, s->thread, now_ns);
	process_drop(b->world.processes, s->process, now_ns);
	object_drop(s->jit, now_ns);
}

static void start_slot(struct bench *b, struct slot *s, uint64_t now_ns)
{
	uint32_t pid = FIRST_PID + b->started % PIDS;
	struct object_key key = {.kind = OBJECT_JIT, .pid = pid, .epoch = b->started++,
				 .path = "[jit]"};
	char comm[16];

	snprintf(comm, sizeof(comm), "job-%u", b->started % 1000);
	s->process = process_add(b->world.processes, pid, now_ns, 0, 1, comm);
	s->thread = s->process ? thread_add(b->world.processes, s->process, pid) : NULL;
	s->jit = s->thread ? objects_get(b->world.frames, &key, pid) : NULL;
	if (!s->jit) {
		fprintf(stderr, "bench_history: no room for process %u\n", b->started);
		exit(1);
	}
}

/* Every 16th sample is of a process of the last 20 s, in code that was compiled there. */
static void churn(struct bench *b, struct event *e, uint32_t n)
{
	static struct frame_ref stack[BENCH_DEPTH_MAX];
	const struct slot *s = &b->slots[n / 16 % SLOTS];
	uint32_t i;

	e->thread = s->thread;
	e->process = s->process;
	memcpy(stack, e->stack_frames, e->nstack_frames * sizeof(*stack));
	for (i = 0; i < 2; i++) {
		stack[i].object = s->jit;
		stack[i].offset = 0x10000 + 512 * (uint64_t)((n + i) % METHODS);
		stack[i].flags = FRAME_JIT | (i ? FRAME_RETURN_ADDRESS : 0);
	}
	e->stack_frames = stack;
}

/* The next ten seconds, as a sealed segment. */
static struct segment *make_round(struct bench *b)
{
	uint64_t stride = ROUND_S * BENCH_CPUS * BENCH_FREQ_HZ / b->round_samples;
	struct segment *out = NULL;
	struct err err = {0};
	uint32_t n;

	for (n = 0; n < b->round_samples; n++) {
		struct event e;

		world_sample(&b->world, b->world.next, &e);
		b->world.next += stride;
		if (n % (b->round_samples / BORN) == 0) {
			struct slot *s = &b->slots[b->started % SLOTS];

			end_slot(b, s, e.time_ns);
			start_slot(b, s, e.time_ns);
		}
		if (n % 16 == 0)
			churn(b, &e, n);
		e.stack = segment_stack(b->world.builder, e.stack_frames, e.nstack_frames,
					world_name_frame, &b->world);
		segment_add(b->world.builder, &e);
	}
	if (segment_seal(b->world.builder, &out, &err))
		die(&err);
	return out;
}

/* Put the next n rounds. Making them is not the history's time. */
static void put(struct bench *b, uint32_t n)
{
	struct segment *all[PER_PUT];
	struct history_now now;
	struct err err = {0};
	uint64_t before, after, rss;
	uint32_t i;

	for (i = 0; i < n; i++) {
		all[i] = make_round(b);
		b->put_bytes += all[i]->nbytes;
		b->samples += all[i]->nsamples;
	}
	now.clock_ns = all[n - 1]->t1_ns;
	now.wall_ns = WALL_NS + now.clock_ns;
	os_self_usage(&before, &rss);
	if (history_put(b->history, all, n, &now, &err))
		die(&err);
	os_self_usage(&after, &rss);
	b->cpu_ns += after - before;
	if (after - before > b->most_put_ns)
		b->most_put_ns = after - before;
	for (i = 0; i < n; i++)
		segment_unref(all[i]);
	frames_sweep(b->world.frames, now.clock_ns);
	processes_sweep(b->world.processes, now.clock_ns);
}

static void make_world(struct bench *b)
{
	struct err err = {0};
	uint32_t i;

	if (world_make(&b->world, &b->settings, &err))
		die(&err);
	for (i = 0; i < SLOTS; i++)
		start_slot(b, &b->slots[i], 0);
}

static uint64_t written_bytes(void)
{
	struct buf text = {0};
	const char *at;
	uint64_t n = 0;

	if (!os_load("/proc/self/io", 4096, &text, NULL) &&
	    (at = strstr(buf_text(&text), "write_bytes: ")) != NULL)
		n = strtoull(at + strlen("write_bytes: "), NULL, 10);
	buf_free(&text);
	return n;
}

/* Of a whole disk, by everybody: its sectors of 512 bytes (Documentation/block/stat.rst). */
static uint64_t device_bytes(const struct bench *b)
{
	unsigned long long sectors = 0;
	struct buf text = {0};
	char path[100];
	struct stat st;

	if (stat(b->settings.dir, &st))
		return 0;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(st.st_dev),
		 minor(st.st_dev));
	if (!os_load(path, 4096, &text, NULL))
		sscanf(text.data, "%*u %*u %*u %*u %*u %*u %llu", &sectors);
	buf_free(&text);
	return sectors * 512;
}

static void open_history(struct bench *b, const char *name, uint64_t max_bytes)
{
	struct history_config cfg = {.max_bytes = max_bytes, .host = "bench", .host_text = "",
				     .version = "", .boot_id = "bench", .kills = "",
				     .period_ns = BENCH_PERIOD_NS};
	struct err err = {0};

	snprintf(b->path, sizeof(b->path), "%s/%s", b->settings.dir, name);
	cfg.store_path = b->path;
	b->put_bytes = b->samples = b->cpu_ns = 0;
	if (history_open(&cfg, &b->history, &err))
		die(&err);
}

/* What stays: bytes of the files, and of the segments in them, lists included. */
static uint64_t file_bytes(const struct bench *b, uint64_t *segments, uint32_t *first)
{
	struct history_files files;
	struct err err = {0};
	uint64_t bytes = 0;
	sqlite3_stmt *st;
	sqlite3 *db;
	uint32_t i;

	if (history_list(b->path, &files, &err))
		die(&err);
	*first = files.n ? files.all[0].number : 0;
	for (i = 0; i < files.n; i++) {
		struct os_file_info info = {0};
		char log[500];

		os_path_info(files.all[i].path, &info, NULL);
		bytes += info.size_bytes;
		snprintf(log, sizeof(log), "%s-redo", files.all[i].path);
		info.size_bytes = 0;
		os_path_info(log, &info, NULL);
		bytes += info.size_bytes;
		if (!segments || sqlite3_open(files.all[i].path, &db))
			continue;
		if (!sqlite3_prepare_v2(db, "SELECT sum(bytes) FROM segment", -1, &st, NULL) &&
		    sqlite3_step(st) == SQLITE_ROW)
			*segments += (uint64_t)sqlite3_column_int64(st, 0);
		sqlite3_finalize(st);
		sqlite3_close(db);
	}
	history_files_free(&files);
	return bytes;
}

static void first_hours(struct bench *b)
{
	const uint64_t rounds = FIRST_S / ROUND_S;
	uint64_t io = written_bytes(), device = device_bytes(b), round;
	uint64_t segments = 0, stored;
	struct row row;
	uint32_t first;

	open_history(b, "hours.db", LIMIT_BYTES);
	for (round = 0; round < rounds; round++)
		put(b, 1);
	history_close(b->history, "the end");
	io = written_bytes() - io;
	device = device_bytes(b) - device;
	stored = file_bytes(b, &segments, &first);
	b->day_bytes = stored * (DAY_S / FIRST_S);
	row_open(&row, b->settings.json, "history hours");
	row_most(&row, "stored_mb_a_day", (double)stored * DAY_S / FIRST_S / 1e6, 300);
	row_num(&row, "columns_bytes_a_sample", (double)b->put_bytes / (double)b->samples);
	row_most(&row, "written_for_each_byte_of_segments", (double)io / (double)segments, 1.5);
	row_num(&row, "disk_written_by_all_for_each", (double)device / (double)segments);
	row_num(&row, "written_mb_a_day", (double)io * DAY_S / FIRST_S / 1e6);
	row_most(&row, "cpu_percent", (double)b->cpu_ns / (FIRST_S * 1e9) * 100, 0.1);
	row_close(&row);
}

static uint32_t whole_blocks(uint32_t bytes)
{
	return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static void must(bool holds)
{
	if (holds)
		return;
	perror("bench_history: a plain file");
	exit(1);
}

/* One that is overwritten has all of its blocks from the beginning. */
static int open_plain(struct bench *b)
{
	uint32_t n = b->in_place ? (WARM + PACED) * whole_blocks(b->plain_bytes) : 0;
	static const uint8_t zeros[BLOCK];
	int fd;

	snprintf(b->path, sizeof(b->path), "%s/plain", b->settings.dir);
	fd = open(b->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (; n; n -= BLOCK)
		must(write(fd, zeros, BLOCK) == BLOCK);
	must(!fsync(fd));
	return fd;
}

static void put_plain(struct bench *b, int fd, const uint8_t *bytes)
{
	must(pwrite(fd, bytes, b->plain_bytes, b->plain_at) == (ssize_t)b->plain_bytes);
	must(!fdatasync(fd));
	b->plain_at += b->in_place ? whole_blocks(b->plain_bytes) : b->plain_bytes;
}

/* n rounds, one each pace_s; 0 = as fast as they come. */
static void put_paced(struct bench *b, int fd, uint8_t *bytes, uint64_t n, uint32_t pace_s)
{
	uint64_t start = os_now_ns();

	while (n--) {
		if (bytes)
			put_plain(b, fd, bytes);
		else
			put(b, 1);
		start += pace_s * NS_PER_SEC;
		if (pace_s && start > os_now_ns())
			os_sleep_ns(start - os_now_ns());
	}
}

static void paced(struct bench *b)
{
	uint8_t *bytes = b->plain_bytes ? calloc(b->plain_bytes, 1) : NULL;
	uint64_t io, device, segments = 0;
	struct row row;
	uint32_t first;
	int fd = -1;

	if (bytes) {
		fd = open_plain(b);
		segments = (uint64_t)b->plain_bytes * (WARM + PACED);
	} else {
		open_history(b, "paced.db", LIMIT_BYTES);
	}
	put_paced(b, fd, bytes, WARM, 0);
	sync();
	os_sleep_ns(2 * b->pace_s * NS_PER_SEC);
	io = written_bytes();
	device = device_bytes(b);
	put_paced(b, fd, bytes, PACED, b->pace_s);
	sync();
	io = written_bytes() - io;
	device = device_bytes(b) - device;
	if (!bytes) {
		history_close(b->history, "the end");
		file_bytes(b, &segments, &first);
	}
	segments = segments * PACED / (WARM + PACED);
	row_open(&row, b->settings.json, b->in_place ? "plain file, in place"
					 : bytes ? "plain file, appended" : "history, paced");
	row_num(&row, "seconds_a_round", b->pace_s);
	row_num(&row, "bytes_a_round", (double)segments / PACED);
	row_num(&row, "written_for_each_byte_of_segments", (double)io / (double)segments);
	row_num(&row, "disk_written_for_each", (double)device / (double)segments);
	row_close(&row);
	free(bytes);
}

/* A command about a window, or without one: its time and memory. */
static void command(struct bench *b, const char *name, const char *verb, uint64_t seconds,
		    double most_ms, double most_mb)
{
	uint64_t from_s = WALL_NS / NS_PER_SEC + (uint64_t)b->days * DAY_S / 2;
	char from[32], to[32];
	char *args[] = {b->recorder, (char *)(uintptr_t)verb, "--store", b->path,
			seconds ? "--from" : NULL, from, "--to", to, NULL};
	struct bench_cost cost;
	struct err err = {0};
	struct row row;

	if (!b->recorder)
		return;
	snprintf(from, sizeof(from), "@%" PRIu64, from_s);
	snprintf(to, sizeof(to), "@%" PRIu64, from_s + seconds);
	if (bench_run(args, &cost, &err))
		die(&err);
	row_open(&row, b->settings.json, name);
	row_most(&row, "wall_ms", cost.wall_ms, most_ms);
	if (most_mb > 0)
		row_most(&row, "max_rss_mb", cost.rss_mb, most_mb);
	else
		row_num(&row, "max_rss_mb", cost.rss_mb);
	row_close(&row);
}

static void window(struct bench *b, const char *name, uint64_t seconds, double most_ms)
{
	uint64_t from = WALL_NS + (uint64_t)b->days * DAY_S / 2 * NS_PER_SEC, start = os_now_ns();
	uint64_t before, cpu, rss;
	struct incident in = {0};
	struct err err = {0};
	struct row row;

	os_self_usage(&before, &rss);
	if (history_load(b->path, from, from + seconds * NS_PER_SEC, from, &in, &err))
		die(&err);
	os_self_usage(&cpu, &rss);
	row_open(&row, b->settings.json, name);
	row_most(&row, "load_ms", (double)(os_now_ns() - start) / 1e6, most_ms);
	row_num(&row, "cpu_ms", (double)(cpu - before) / 1e6);
	row_num(&row, "samples", in.nsamples);
	row_close(&row);
	incident_free(&in);
}

struct third {
	double sum, n, most;
};

static void third_add(struct third *t, uint64_t value)
{
	t->sum += (double)value;
	t->n++;
	t->most = (double)value > t->most ? (double)value : t->most;
}

/* The limit holds after each put, logs included, and files leave in the order of their numbers. */
static void many_days(struct bench *b)
{
	uint64_t rounds = (uint64_t)b->days * DAY_S / ROUND_S * 11 / 10, round, cpu;
	uint64_t third = rounds > WARM_S / ROUND_S ? (rounds - WARM_S / ROUND_S) / 3 : 0;
	uint64_t limit = b->days * b->day_bytes / 100 * 95, most = 0, bytes, rss;
	struct third early = {0}, late = {0};
	uint64_t least_rss = UINT64_MAX, most_rss = 0;
	uint32_t first, before = 1;
	struct history_use use;
	struct row row;

	open_history(b, "days.db", limit);
	for (round = 0; round + PER_PUT <= rounds; round += PER_PUT) {
		put(b, PER_PUT);
		os_self_usage(&cpu, &rss);
		if (round >= WARM_S / ROUND_S && round < rounds - 2 * third)
			third_add(&early, rss);
		if (round >= rounds - third)
			third_add(&late, rss);
		if (round >= WARM_S / ROUND_S && rss < least_rss)
			least_rss = rss;
		most_rss = rss > most_rss ? rss : most_rss;
		bytes = file_bytes(b, NULL, &first);
		most = bytes > most ? bytes : most;
		if (first < before) {
			fprintf(stderr, "bench_history: a file came back\n");
			exit(1);
		}
		before = first;
	}
	history_use(b->history, &use);
	history_close(b->history, "the end");
	row_open(&row, b->settings.json, "history days");
	row_num(&row, "days", b->days);
	row_num(&row, "files", use.files);
	row_num(&row, "files_left", before - 1);
	row_most(&row, "most_mb", (double)most / 1e6, (double)limit / 1e6);
	row_num(&row, "most_cpu_ms_a_put", (double)b->most_put_ns / 1e6);
	row_num(&row, "least_rss_mb", (double)least_rss / 1e6);
	row_num(&row, "most_rss_mb", (double)most_rss / 1e6);
	row_most(&row, "rss_growth_percent",
		 (late.sum / late.n / (early.sum / early.n) - 1) * 100, 2);
	row_most(&row, "most_rss_growth_percent", (late.most / early.most - 1) * 100, 2);
	row_close(&row);
	window(b, "history 60 s", 60, 1000);
	window(b, "history 1 h", 3600, 5000);
	command(b, "recorder report, 60 s", "report", 60, 1000, 200);
	command(b, "recorder report, 1 h", "report", 3600, 5000, 200);
	command(b, "recorder history", "history", 0, 500, 0);
}

int main(int argc, char **argv)
{
	struct bench b = {.settings = {.dir = ".", .samples = DIFFERENT,
				       .stacks = 20000, .frames = 20000, .threads = 1000},
			  .days = 30,
			  .round_samples = ROUND_S * BENCH_CPUS * BENCH_FREQ_HZ};
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			b.settings.json = true;
		else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
			b.settings.dir = argv[++i];
		else if (strcmp(argv[i], "--days") == 0 && i + 1 < argc)
			b.days = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--pace") == 0 && i + 1 < argc)
			b.pace_s = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--rate") == 0 && i + 1 < argc)
			b.round_samples = ROUND_S * (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--plain") == 0 && i + 1 < argc)
			b.plain_bytes = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--in-place") == 0)
			b.in_place = true;
		else if (argv[i][0] != '-')
			b.recorder = argv[i];
		else
			return 2;
	}
	os_keep_memory_tight();              /* as the recorder does */
	if (b.round_samples < BORN)
		return 2;
	make_world(&b);
	if (b.pace_s)
		paced(&b);
	else
		first_hours(&b);
	if (b.days && !b.pace_s)
		many_days(&b);
	world_free(&b.world);
	return 0;
}
