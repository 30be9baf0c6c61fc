/*
 * bench_scale [--json] [--dir DIR] WHAT: what grows with the machine. Text goes to stdout, with
 * --json to stderr and objects to stdout; DIR is for stores.
 *
 * cpus COMMAND...: what the recorder costs on a machine of 2, 16, 128 and 512 CPUs. First the
 * engine records this machine, while the commands (of /bin/sh) run, and samplers of this program's
 * own, at which the source's program runs too, take a pool of their samples. Then the commands are
 * stopped, so that their memory can still be read, and for each number of CPUs the engine runs with
 * the perf source as it is, but for its rings: there are as many as such a machine has, in plain
 * memory and of the size that it would give them. This program is their kernel. It writes samples
 * of the pool at the rate, each with its time and CPU, and a thread that starts and ends on each
 * CPU every second; then it wakes the source by a record of the kernel, in a ring that all CPUs
 * share for epoll. CPU time is of all threads, without the writing, in slices of a second: median
 * and their spread. Latency: from a sample's time until a rule sees it. Memory: all that is
 * resident, and what the kernel's program copies into, without the pool. Python frames are left
 * out: their peekers look at threads that run.
 *
 * large NAME COMMAND: how soon stacks of a large program are complete. The engine records this
 * machine, while COMMAND starts STARTS times, with 2 s between; it is ended a second after its
 * first complete stack. The times are from the first sample of the program NAME until a rule sees
 * the first complete user stack, which may be of that sample. Memory of all unwind tables is the
 * source's own account, and what this process reads during a start is the kernel's (/proc/self/io):
 * tables, names, and /proc.
 */
#include "engine/engine.h"
#include "source/perf/perf_private.h"
#include "tests/support/bench_rows.h"
#include "tests/support/perf_bytes.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef bool see_event(struct trigger *t, const struct event *e, struct buf *why);
typedef bool run_is_over(void *ctx, struct buf *why);

static const char *dir = ".";
static bool json;

/* Of /bin/sh, in a group of its own; it ends with this program. */
static pid_t start_command(const char *command)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(126);
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

/* Record this machine, or what the source takes for it, until is_over(), asked every 10 ms. */
static int record(const struct source_ops *source, unsigned freq_hz, see_event *see,
		  run_is_over *is_over, struct engine_result *result, struct err *err)
{
	const struct trigger_ops ops = {.name = "bench", .feed = see};
	struct trigger rule = {.ops = &ops, .spec = "bench", .kinds = 1u << EVENT_SAMPLE};
	struct trigger *rules[] = {&rule};
	const struct source_ops *sources[] = {source, NULL};
	char path[600];
	struct engine_config cfg = {
		.store_path = path, .sources = sources, .live = true, .triggers = rules,
		.ntriggers = 1, .ring_bytes = (size_t)64 << 20,
		.pinned_bytes = ENGINE_PINNED_BYTES, .over = is_over,
		.capture = {.pre_ns = 120 * NS_PER_SEC, .freq_hz = freq_hz, .stack_kb = 32,
			    .no_python = true}};

	snprintf(path, sizeof(path), "%s/scale.db", dir);
	return engine_run(&cfg, result, err);
}

/* ---- cpus: the pool -------------------------------------------------------------------------- */

enum { LOADS_MAX = 16, POOL_RECORDS = 8192, SLICES = 3, LATENCIES = 1 << 20, SHORT_ID = 7 };

#define POOL_BYTES ((size_t)32 << 20)
#define WARM_NS (3 * NS_PER_SEC)             /* until the ends of stacks are known */
#define TAP_NS (3 * NS_PER_SEC)
#define TAP_HZ 1999u
#define TIME_AT 32                           /* in a sample's record; its CPU follows */

static struct bench {
	pid_t loads[LOADS_MAX];
	unsigned nloads;
	char *pool;                          /* records, one behind the other */
	size_t pool_bytes, at[POOL_RECORDS];
	unsigned nrecords;
	struct perf_format format;           /* of the pool's records */
	struct perf_source *source;          /* of the engine that runs */
	struct perf_ring taps[2], kicks[2];
	unsigned real_cpus, ncpus, freq_hz;
	struct perf_ring *rings;             /* sampler and side-band of each CPU */
	uint64_t begin_ns, feed_ns, due, tasks;
	unsigned next[1024];                 /* of the pool, by CPU */
	uint64_t nslices, slice_ns, slice_cpu_ns;
	double slices[SLICES];               /* percent of a CPU */
	uint64_t rss, nseen;
	double latencies_ms[LATENCIES];
} b;

static uint64_t busy_ns(void)
{
	uint64_t cpu_ns = 0, rss = 0;

	os_self_usage(&cpu_ns, &rss);
	b.rss = rss > b.rss ? rss : b.rss;
	return cpu_ns - b.feed_ns;
}

static bool is_load(uint32_t pid)
{
	unsigned i;

	for (i = 0; i < b.nloads; i++)
		if ((uint32_t)b.loads[i] == pid)
			return true;
	return false;
}

static void take(struct perf_ring *ring)
{
	const char *data = (const char *)ring->map + ring->page_bytes;
	const struct perf_record *r;
	char *to;
	size_t i;

	for (perf_ring_refresh(ring); (r = perf_ring_peek(ring)) != NULL; perf_ring_next(ring)) {
		if (r->kind != PERF_KIND_SAMPLE || !is_load(r->pid) || b.nrecords == POOL_RECORDS ||
		    b.pool_bytes + ring->record_bytes > POOL_BYTES)
			continue;
		to = b.pool + b.pool_bytes;
		for (i = 0; i < ring->record_bytes; i++)
			to[i] = data[(ring->tail + i) & (ring->data_bytes - 1)];
		put_le64((uint8_t *)to + 8, r->u.sample.id == ring->format.short_id ? SHORT_ID : 1);
		b.at[b.nrecords++] = b.pool_bytes;
		b.pool_bytes += ring->record_bytes;
	}
}

/* The engine asks this every 10 ms. */
static bool tapped(void *ctx, struct buf *why)
{
	struct perf_cpus *cpus = &b.source->cpus;
	uint64_t now_ns = os_now_ns();
	struct perf_ask ask = cpus->ask;
	struct err err;
	unsigned i;

	(void)ctx, (void)why;
	b.begin_ns = b.begin_ns ? b.begin_ns : now_ns;
	if (now_ns < b.begin_ns + WARM_NS)
		return false;
	ask.freq_hz = TAP_HZ;
	for (i = 0; i < 2 && i < cpus->n; i++) {
		if (b.taps[i].map) {
			take(&b.taps[i]);
			continue;
		}
		if (perf_ring_open(&b.taps[i], i, false, &ask, &err))
			continue;
		if (cpus->program) {
			perf_program_attach(cpus->program, &b.taps[i], &ask);
			perf_program_use(cpus->program, &b.taps[i]);
		}
		perf_ring_enable(&b.taps[i], true);
		b.format = b.taps[i].format;
	}
	return now_ns >= b.begin_ns + WARM_NS + TAP_NS;
}

static int tap_open(const struct source_config *cfg, const struct needs *needs,
		    struct source **out, struct err *err)
{
	int rc = perf_source.open(cfg, needs, out, err);

	b.source = rc ? NULL : (struct perf_source *)*out;
	return rc;
}

/* ---- cpus: rings in plain memory ------------------------------------------------------------- */

/* A ring of the kernel stands for each in epoll, which feed() writes to. */
static int make_ring(struct perf_ring *ring, unsigned cpu, bool sideband, size_t data_bytes, int fd)
{
	*ring = (struct perf_ring){.cpu = cpu, .sideband = sideband, .fd = dup(fd)};
	ring->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	ring->data_bytes = data_bytes;
	ring->map = mmap(NULL, ring->page_bytes + data_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ring->scratch = malloc(PERF_RECORD_MAX_BYTES);
	if (!sideband)
		ring->format = b.format;
	ring->format.short_id = !sideband && b.format.short_id ? SHORT_ID : 0;
	return ring->fd < 0 || ring->map == MAP_FAILED || !ring->scratch ? -1 : 0;
}

static int many_open(const struct source_config *cfg, const struct needs *needs,
		     struct source **out, struct err *err)
{
	int rc = tap_open(cfg, needs, out, err);
	struct epoll_event ready;
	struct perf_cpus *c;
	struct perf_ask ask;
	unsigned i, n = 2 * b.ncpus;

	if (rc)
		return rc;
	c = &b.source->cpus;
	ask = perf_cpus_ask(&cfg->capture, b.ncpus);
	if (c->program)
		ask.stack_ring_bytes = perf_short_ring_bytes(b.freq_hz, ask.stack_kb, b.ncpus);
	b.real_cpus = c->n;
	b.rings = calloc(n, sizeof(*b.rings));
	c->open = realloc(c->open, n * sizeof(*c->open));
	c->turns = realloc(c->turns, n * sizeof(*c->turns));
	c->ready = realloc(c->ready, (n + 1) * sizeof(*c->ready));
	if (!b.rings || !c->open || !c->turns || !c->ready)
		return err_memory(err, "for this program");
	for (i = 0; i < n; i++) {
		bool sideband = i % 2 == 0;

		if (make_ring(&b.rings[i], i / 2, sideband, perf_ring_bytes(&ask, sideband ?
			      PERF_SIDEBAND : PERF_SAMPLES), b.kicks[i / 2 % 2].fd))
			return err_os(err, "cannot make the rings of %u CPUs", b.ncpus);
		c->open[i] = &b.rings[i];
		ready = (struct epoll_event){.events = EPOLLIN, .data.ptr = &b.rings[i]};
		epoll_ctl(c->watch, EPOLL_CTL_ADD, b.rings[i].fd, &ready);
	}
	c->nopen = n;
	c->nwatched = n + 1;
	c->n = 0;                            /* none of them comes, goes, or is enabled */
	return 0;
}

static void many_close(struct source *source)
{
	unsigned i;

	for (i = 0; b.rings && i < 2 * b.ncpus; i++)
		perf_ring_close(&b.rings[i]);
	free(b.rings);
	b.rings = NULL;
	if (source)
		((struct perf_source *)source)->cpus.n = b.real_cpus;
	perf_source.close(source);
}

static void write_record(struct perf_ring *ring, const void *bytes, size_t n)
{
	struct perf_event_mmap_page *page = ring->map;
	char *data = (char *)ring->map + ring->page_bytes;
	size_t at = page->data_head & (ring->data_bytes - 1), first = ring->data_bytes - at;

	if (page->data_head + n - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE) >
	    ring->data_bytes)
		return;                      /* full: it is lost */
	first = first < n ? first : n;
	memcpy(data + at, bytes, first);
	memcpy(data, (const char *)bytes + first, n - first);
	__atomic_store_n(&page->data_head, page->data_head + n, __ATOMIC_RELEASE);
}

static void write_sample(unsigned cpu)
{
	unsigned i = (b.next[cpu]++ + cpu * 61) % b.nrecords;
	size_t end = i + 1 < b.nrecords ? b.at[i + 1] : b.pool_bytes;
	uint8_t *record = (uint8_t *)b.pool + b.at[i];

	put_le64(record + TIME_AT, os_now_ns());
	put_le32(record + TIME_AT + 8, cpu);
	write_record(&b.rings[2 * cpu + 1], record, end - b.at[i]);
}

/* PERF_RECORD_FORK, PERF_RECORD_EXIT */
static void write_task(unsigned cpu, uint32_t type)
{
	uint32_t pid = (uint32_t)b.loads[cpu % b.nloads], tid = 5000000 + cpu;
	struct perf_bytes r;

	perf_bytes_begin(&r, type, 0);
	perf_bytes_u32(&r, pid);
	perf_bytes_u32(&r, pid);
	perf_bytes_u32(&r, tid);
	perf_bytes_u32(&r, pid);
	perf_bytes_u64(&r, os_now_ns());
	perf_bytes_trailer(&r, pid, tid, os_now_ns(), cpu);
	perf_bytes_end(&r);
	write_record(&b.rings[2 * cpu], r.bytes, r.n);
}

/* A record of this thread's own name wakes the source, as nothing in plain memory can. */
static void kick(void)
{
	struct perf_event_mmap_page *page;
	unsigned i;

	prctl(PR_SET_NAME, "bench_cpus");
	for (i = 0; i < 2 && (page = b.kicks[i].map) != NULL; i++)
		__atomic_store_n(&page->data_tail, page->data_head, __ATOMIC_RELEASE);
}

static void end_slice(uint64_t now_ns)
{
	uint64_t cpu_ns = busy_ns();

	if (b.slice_ns && b.nslices < SLICES)
		b.slices[b.nslices++] = 100 * (double)(cpu_ns - b.slice_cpu_ns) /
					(double)(now_ns - b.slice_ns);
	b.slice_ns = now_ns;
	b.slice_cpu_ns = cpu_ns;
}

/* The engine asks this every 10 ms: what is due by now. */
static bool fed(void *ctx, struct buf *why)
{
	uint64_t now_ns = os_now_ns(), start_ns = os_thread_cpu_ns(), due, tasks;
	bool starts = false;

	(void)ctx, (void)why;
	b.begin_ns = b.begin_ns ? b.begin_ns : now_ns;
	due = (now_ns - b.begin_ns) * b.freq_hz * b.ncpus / NS_PER_SEC;
	tasks = (now_ns - b.begin_ns) * b.ncpus / NS_PER_SEC;
	for (; b.due < due; b.due++)
		write_sample((unsigned)(b.due % b.ncpus));
	for (; b.tasks < tasks; b.tasks++) {
		write_task((unsigned)(b.tasks % b.ncpus), PERF_RECORD_FORK);
		write_task((unsigned)(b.tasks % b.ncpus), PERF_RECORD_EXIT);
		starts = true;
	}
	if (starts)
		kick();
	b.feed_ns += os_thread_cpu_ns() - start_ns;
	/* The first second is for the tables. */
	if (now_ns >= (b.slice_ns ? b.slice_ns : b.begin_ns) + NS_PER_SEC)
		end_slice(now_ns);
	return b.nslices == SLICES;
}

/* ---- cpus: rows ------------------------------------------------------------------------------ */

static bool see_sample(struct trigger *t, const struct event *e, struct buf *why)
{
	(void)t, (void)why;
	if (e->kind == EVENT_SAMPLE && b.nseen < LATENCIES)
		b.latencies_ms[b.nseen++] = (double)(os_now_ns() - e->time_ns) / 1e6;
	return false;
}

static int run_cpus(const struct source_ops *source, run_is_over *is_over,
		    struct engine_result *result, struct err *err)
{
	b.begin_ns = b.feed_ns = b.due = b.tasks = b.nslices = b.slice_ns = b.rss = b.nseen = 0;
	return record(source, b.freq_hz, see_sample, is_over, result, err);
}

static int measure(unsigned ncpus, unsigned freq_hz, double goal_pct, double *base_us,
		   struct err *err)
{
	struct source_ops many = perf_source;
	struct engine_result result = {0};
	double pct, us, beyond_mb, latency_ms;
	char name[40];
	struct row r;
	int rc;

	many.open = many_open;
	many.close = many_close;
	b.ncpus = ncpus;
	b.freq_hz = freq_hz;
	rc = run_cpus(&many, fed, &result, err);
	if (rc)
		return rc;
	pct = row_median(b.slices, b.nslices);
	latency_ms = row_median(b.latencies_ms, b.nseen);
	us = pct / 100 * 1e6 / ncpus / freq_hz;
	*base_us = *base_us > 0 ? *base_us : us;
	beyond_mb = (double)(b.rss - b.pool_bytes) / 1e6;
	if (b.format.short_id)
		beyond_mb += PERF_SHORT_MAX_BYTES / 1e6 * ncpus;
	snprintf(name, sizeof(name), "cpus %u at %u Hz", ncpus, freq_hz);
	row_open(&r, json, name);
	if (goal_pct > 0)
		row_most(&r, "cpu_percent_of_one_core", pct, goal_pct);
	else
		row_num(&r, "cpu_percent_of_one_core", pct);
	row_num(&r, "spread_percent", b.slices[b.nslices - 1] - b.slices[0]);
	row_num(&r, "us_per_sample", us);
	row_most(&r, "of_the_cost_with_2_cpus", us / *base_us, 1.2);
	row_num(&r, "samples_per_s_of_a_core", 1e6 / us);
	row_most(&r, "mb_beyond_ring", beyond_mb, 64 + 0.25 * ncpus);
	row_num(&r, "latency_median_ms", latency_ms);
	row_num(&r, "latency_p99_ms", b.latencies_ms[b.nseen * 99 / 100]);
	row_num(&r, "samples", (double)b.due);
	row_most(&r, "lost", (double)(b.due - result.samples), 0);
	row_close(&r);
	return 0;
}

static void start_loads(char **commands, int n)
{
	for (; n-- > 0 && b.nloads < LOADS_MAX; commands++)
		b.loads[b.nloads++] = start_command(*commands);
}

static void end_loads(void)
{
	unsigned i;

	for (i = 0; i < b.nloads; i++) {
		kill(b.loads[i], SIGKILL);
		waitpid(b.loads[i], NULL, 0);
	}
}

static int bench_cpus(struct err *err)
{
	const struct rlimit files = {65536, 65536};
	struct perf_ask ask = {.pid = os_pid()};
	struct source_ops tap = perf_source;
	struct engine_result result = {0};
	double base_us = 0;
	unsigned i;
	int rc;

	setrlimit(RLIMIT_NOFILE, &files);
	b.pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 2; i++)
		if (perf_ring_open(&b.kicks[i], i % os_cpu_count(), true, &ask, err) ||
		    perf_ring_enable(&b.kicks[i], true))
			return ERR_UNSUPPORTED;
	tap.open = tap_open;
	b.freq_hz = 99;
	rc = run_cpus(&tap, tapped, &result, err);
	for (i = 0; i < b.nloads; i++)
		kill(b.loads[i], SIGSTOP);
	for (i = 0; i < 2; i++)
		perf_ring_close(&b.taps[i]);
	if (!rc && !b.nrecords)
		rc = err_set(err, ERR_NOT_FOUND, "the commands had no samples");
	fprintf(stderr, "cpus: a pool of %u samples, %.1f MB\n", b.nrecords,
		(double)b.pool_bytes / 1e6);
	if (!rc)
		rc = measure(2, 99, 0, &base_us, err);
	if (!rc)
		rc = measure(16, 99, 0, &base_us, err);
	if (!rc)
		rc = measure(128, 99, 15, &base_us, err);
	return rc ? rc : measure(512, 49, 30, &base_us, err);
}

/* ---- large ----------------------------------------------------------------------------------- */

enum { STARTS = 3 };

#define BETWEEN_NS (2 * NS_PER_SEC)
#define GOES_ON_NS NS_PER_SEC
#define PATIENCE_NS (20 * NS_PER_SEC)

static struct large {
	const char *name, *command;
	size_t table_bytes;                  /* the most */
	pid_t pid;                           /* 0 = none runs */
	uint64_t next_ns, started_ns;
	unsigned starts;
	double before_mb, read_mb[STARTS], first_ms[STARTS];
	_Atomic uint64_t first_ns, complete_ns, samples, complete;   /* of this start */
} l;

static double mb_read(void)
{
	struct buf text = {0};
	double mb;

	os_load("/proc/self/io", 4096, &text, NULL);
	mb = atof(buf_text(&text) + strlen("rchar: ")) / 1e6;
	buf_free(&text);
	return mb;
}

/* Of the program or a library, not of the kernel: two at least, so that tables were used. */
static bool has_user_frames(const struct event *e)
{
	uint32_t i, n = 0;

	for (i = 0; i < e->nstack_frames; i++)
		n += e->stack_frames[i].object && e->stack_frames[i].object->key.kind == OBJECT_ELF;
	return n >= 2;
}

static bool see_large(struct trigger *t, const struct event *e, struct buf *why)
{
	(void)t, (void)why;
	if (e->kind != EVENT_SAMPLE || !e->process || strcmp(process_name(e->process), l.name) != 0)
		return false;
	if (!atomic_load(&l.first_ns))
		atomic_store(&l.first_ns, e->time_ns);
	atomic_fetch_add(&l.samples, 1);
	if (e->quality != QUALITY_COMPLETE || !has_user_frames(e))
		return false;
	atomic_fetch_add(&l.complete, 1);
	if (!atomic_load(&l.complete_ns))
		atomic_store(&l.complete_ns, os_now_ns());
	return false;
}

static void start_large(uint64_t now_ns)
{
	atomic_store(&l.first_ns, 0);
	atomic_store(&l.complete_ns, 0);
	l.before_mb = mb_read();
	l.started_ns = now_ns;
	l.pid = start_command(l.command);
}

static void end_large(uint64_t now_ns)
{
	uint64_t complete_ns = atomic_load(&l.complete_ns);

	kill(-l.pid, SIGKILL);
	waitpid(l.pid, NULL, 0);
	l.pid = 0;
	l.first_ms[l.starts] = (double)(complete_ns - atomic_load(&l.first_ns)) / 1e6;
	if (!complete_ns)
		l.first_ms[l.starts] = (double)PATIENCE_NS / 1e6;
	l.read_mb[l.starts++] = mb_read() - l.before_mb;
	l.next_ns = now_ns + BETWEEN_NS;
}

/* The engine asks this every 10 ms. */
static bool large_is_over(void *ctx, struct buf *why)
{
	uint64_t now_ns = os_now_ns(), complete_ns = atomic_load(&l.complete_ns);
	struct source_status status;

	(void)ctx, (void)why;
	perf_source.status(&b.source->base, &status);
	l.table_bytes = status.table_bytes > l.table_bytes ? status.table_bytes : l.table_bytes;
	l.next_ns = l.next_ns ? l.next_ns : now_ns + BETWEEN_NS;
	if (l.pid > 0 && ((complete_ns && now_ns > complete_ns + GOES_ON_NS) ||
			  now_ns > l.started_ns + PATIENCE_NS))
		end_large(now_ns);
	else if (l.pid == 0 && l.starts < STARTS && now_ns > l.next_ns)
		start_large(now_ns);
	return l.starts == STARTS || l.pid < 0;
}

static double most(const double *values, unsigned from, unsigned end)
{
	double v = values[from];

	for (; from < end; from++)
		v = values[from] > v ? values[from] : v;
	return v;
}

static int bench_large(struct err *err)
{
	struct source_ops tap = perf_source;
	struct engine_result result;
	char name[100];
	struct row r;
	int rc;

	tap.open = tap_open;
	rc = record(&tap, 99, see_large, large_is_over, &result, err);
	if (rc)
		return rc;
	snprintf(name, sizeof(name), "large %s", l.name);
	row_open(&r, json, name);
	row_most(&r, "first_complete_ms", l.first_ms[0], 1000);
	row_most(&r, "later_first_complete_ms", most(l.first_ms, 1, STARTS), 1000);
	row_most(&r, "tables_mb", (double)l.table_bytes / 1e6, 64);
	row_num(&r, "read_mb", l.read_mb[0]);
	row_num(&r, "later_read_mb", most(l.read_mb, 2, STARTS));
	row_num(&r, "samples", (double)l.samples);
	row_num(&r, "complete_percent",
		l.samples ? 100 * (double)l.complete / (double)l.samples : 0);
	row_close(&r);
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = {0};
	int rc = 2;

	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		json |= !strcmp(argv[1], "--json");
		if (!strcmp(argv[1], "--dir") && argc > 2) {
			dir = argv[2];
			argc--, argv++;
		}
	}
	if (argc > 2 && !strcmp(argv[1], "cpus")) {
		start_loads(argv + 2, argc - 2);
		rc = bench_cpus(&err);
		end_loads();
	} else if (argc == 4 && !strcmp(argv[1], "large")) {
		l.name = argv[2];
		l.command = argv[3];
		rc = bench_large(&err);
	} else {
		fprintf(stderr, "usage: bench_scale [--json] [--dir DIR] cpus COMMAND... | "
			"large NAME COMMAND\n");
		return rc;
	}
	if (rc)
		fprintf(stderr, "bench_scale: %s\n", err.text);
	return rc != 0;
}
