/* CPUs: /sys/devices/system/cpu (Documentation/ABI/testing/sysfs-devices-system-cpu). */
#include "source/perf/cpus_linux.h"

#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CPUS_MAX 1024u
#define LIST_BYTES 4096u                 /* sysfs shows no more of CPUs */
#define UNWATCHED_NS (10 * NS_PER_MS)    /* between two looks where the kernel cannot wake us */

/* Of a CPU. Records of equal times are read from the last ring to the first; side-band first. */
enum { SAMPLER, SIDEBAND, UNMAPS, FAULTS, PROBES, CPU_RINGS = PROBES + PROBE_RINGS };

struct perf_cpu {
	bool online;
	bool went;                           /* offline; its rings are read to their end */
	bool failure_logged;                 /* that it cannot be opened */
	struct perf_ring rings[CPU_RINGS];
	struct perf_ring next_sampler;       /* open while the size of stack copies changes */
};

/* ---- which CPUs ------------------------------------------------------------------------------ */

/*
 * Parse /sys/devices/system/cpu/NAME ("0-3,5") into flags. returns  the highest number + 1
 *
 * file   stays open; opened where it is NULL
 */
static unsigned read_cpus(const char *name, struct os_file **file, bool online[CPUS_MAX])
{
	unsigned count = 0, first, last;
	const char *at;
	char path[64], text[LIST_BYTES] = "", *end;
	size_t n = 0;

	memset(online, 0, CPUS_MAX * sizeof(*online));
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", name);
	if (!*file)
		os_open(path, OS_READ, file, NULL);
	if (!*file || os_pread(*file, text, sizeof(text) - 1, 0, &n, NULL) || !n)
		snprintf(text, sizeof(text), "0-%u", os_cpu_count() - 1);
	for (at = text; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
		first = last = (unsigned)strtoul(at, &end, 10);
		if (*end == '-')
			last = (unsigned)strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPUS_MAX; first++) {
			online[first] = true;
			count = first + 1 > count ? first + 1 : count;
		}
	}
	return count;
}

static void close_cpu(struct perf_cpus *c, unsigned number)
{
	struct perf_cpu *cpu = &c->all[number];

	if (c->probes)
		probes_close_cpu(c->probes, number, &cpu->rings[PROBES]);
	perf_ring_close(&cpu->rings[SAMPLER]);
	perf_ring_close(&cpu->rings[SIDEBAND]);
	perf_ring_close(&cpu->rings[FAULTS]);
	perf_ring_close(&cpu->rings[UNMAPS]);
	cpu->online = false;
}

/* A sampler, with the program where that runs. */
static int open_sampler(struct perf_cpus *c, unsigned number, struct perf_ask *ask,
			struct perf_ring *ring, struct err *err)
{
	int rc = perf_ring_open(ring, number, false, ask, err);

	if (!rc && c->program)
		perf_program_attach(c->program, ring, ask);
	return rc;
}

static void enable_sampler(const struct perf_cpus *c, struct perf_ring *ring, bool on)
{
	if (on && c->program)
		perf_program_use(c->program, ring);
	perf_ring_enable(ring, on);
}

static int open_cpu(struct perf_cpus *c, unsigned number, struct err *err)
{
	struct perf_cpu *cpu = &c->all[number];
	int rc = perf_ring_open(&cpu->rings[SIDEBAND], number, true, &c->ask, err);

	if (!rc)
		rc = open_sampler(c, number, &c->ask, &cpu->rings[SAMPLER], err);
	if (!rc && c->fault_period &&
	    perf_ring_open_faults(&cpu->rings[FAULTS], number, c->fault_period, &c->ask, err))
		c->fault_period = 0;
	if (!rc && c->fault_period && c->unmap_id &&
	    perf_ring_open_unmaps(&cpu->rings[UNMAPS], number, c->unmap_id, &c->ask, err))
		c->unmap_id = 0;
	if (!rc && c->probes)
		rc = probes_open_cpu(c->probes, number, &cpu->rings[PROBES], err);
	cpu->online = true;
	if (rc)
		close_cpu(c, number);
	return rc;
}

/* ring: NULL = the wake event */
static bool watch(struct perf_cpus *c, int fd, struct perf_ring *ring)
{
	struct epoll_event asked = {.events = EPOLLIN, .data.ptr = ring};

	c->nwatched++;
	return epoll_ctl(c->watch, EPOLL_CTL_ADD, fd, &asked) == 0;
}

static void close_watch(struct perf_cpus *c)
{
	if (c->watch >= 0)
		close(c->watch);
	c->watch = -1;
}

/* Not poll(2): that looks at each ring of each CPU, before it sleeps and after. */
static void watch_open_rings(struct perf_cpus *c)
{
	bool ok;
	unsigned i;

	close_watch(c);
	c->nwatched = 0;
	c->watch = epoll_create1(EPOLL_CLOEXEC);
	ok = watch(c, os_wake_fd(c->wake), NULL);
	for (i = 0; i < c->nopen; i++) {
		struct perf_ring *r = c->open[i];

		/* perf hands a wake-up to one only, and that is the peeker. */
		if (r->heap || r->unpolled ||
		    (c->ask.peeked && !r->sideband && !r->probes && !r->faults && !r->unmaps))
			continue;
		ok &= watch(c, r->fd, r);
	}
	if (!ok)
		close_watch(c);
}

static void list_open_rings(struct perf_cpus *c)
{
	unsigned i, j;

	c->nopen = c->nturns = 0;
	for (i = 0; i < c->n; i++)
		for (j = CPU_RINGS; j--;)
			if (c->all[i].rings[j].fd >= 0)
				c->open[c->nopen++] = &c->all[i].rings[j];
	if (c->heap.map)
		c->open[c->nopen++] = &c->heap;
	watch_open_rings(c);
}

/* Side-band rings, or else all others. */
static void enable_cpu(struct perf_cpus *c, unsigned number, bool sideband, bool on)
{
	struct perf_cpu *cpu = &c->all[number];

	if (!cpu->online)
		return;
	if (sideband)
		perf_ring_enable(&cpu->rings[SIDEBAND], on);
	else if (!c->ask.no_samples)
		enable_sampler(c, &cpu->rings[SAMPLER], on);
	if (!sideband && cpu->rings[FAULTS].fd >= 0)
		perf_ring_enable(&cpu->rings[FAULTS], on);
	if (!sideband && cpu->rings[UNMAPS].fd >= 0)
		perf_ring_enable(&cpu->rings[UNMAPS], on);
	if (c->probes && !sideband)
		probes_enable(c->probes, number, &cpu->rings[PROBES], on);
}

/* Samples may wait there for their unwind tables. */
static bool has_records(struct perf_cpu *cpu)
{
	unsigned i;

	for (i = 0; i < CPU_RINGS; i++) {
		if (cpu->rings[i].fd < 0)
			continue;
		perf_ring_refresh(&cpu->rings[i]);
		if (perf_ring_peek(&cpu->rings[i]))
			return true;
	}
	return false;
}

bool perf_cpus_follow(struct perf_cpus *c, struct log *log)
{
	bool online[CPUS_MAX];
	bool changed = false, came = false;
	struct err err;
	unsigned i;

	read_cpus("online", &c->online, online);
	for (i = 0; i < c->n; i++) {
		struct perf_cpu *cpu = &c->all[i];

		cpu->went |= cpu->online && !online[i];
		if (cpu->went && has_records(cpu))
			continue;
		if (cpu->went) {
			cpu->went = false;
			changed = true;
			close_cpu(c, i);
			log_line(log, LOG_INFO, "CPU %u went offline", i);
		}
		if (!online[i] || cpu->online)
			continue;
		changed = true;
		if (open_cpu(c, i, &err) == 0) {
			enable_cpu(c, i, true, true);
			enable_cpu(c, i, false, true);
			came = true;
			log_line(log, LOG_INFO, "CPU %u came online and is recorded", i);
		} else if (!cpu->failure_logged) {
			cpu->failure_logged = true;
			log_line(log, LOG_WARN, "CPU %u came online and is not recorded: %s", i,
				 err.text);
		}
	}
	if (changed)
		list_open_rings(c);
	return came;
}

void perf_cpus_enable(struct perf_cpus *c, bool sideband, bool on)
{
	unsigned i;

	for (i = 0; i < c->n; i++)
		enable_cpu(c, i, sideband, on);
}

/* ---- records --------------------------------------------------------------------------------- */

void perf_cpus_wake(struct perf_cpus *c)
{
	os_wake(c->wake);
}

static void open_new_probes(struct perf_cpus *c)
{
	struct err err;
	bool failed = false;
	unsigned i;

	for (i = 0; i < c->n; i++) {
		struct perf_ring *rings = &c->all[i].rings[PROBES];

		if (!c->all[i].online)
			continue;
		if (probes_open_cpu(c->probes, i, rings, &err) == 0)
			probes_enable(c->probes, i, rings, true);
		else
			failed = true;
	}
	list_open_rings(c);
	probes_followed(c->probes, failed ? &err : NULL);
}

bool perf_cpus_wait(struct perf_cpus *c, uint64_t timeout_ns)
{
	int n, i;

	if (c->probes && probes_follow(c->probes))
		open_new_probes(c);
	n = epoll_wait(c->watch, c->ready, (int)c->nwatched,
		       (int)((timeout_ns + NS_PER_MS - 1) / NS_PER_MS));
	if (n < 0 && errno != EINTR)
		os_sleep_ns(timeout_ns < UNWATCHED_NS ? timeout_ns : UNWATCHED_NS);
	for (i = 0; i < n && c->ready[i].data.ptr; i++)
		;
	if (i >= n)
		return n > 0;
	os_wake_clear(c->wake);
	return false;
}

static bool is_before(const struct perf_turn *a, const struct perf_turn *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->rank < b->rank;
}

/* Put the turn at `at` below those that come before it. */
static void sink(struct perf_cpus *c, unsigned at)
{
	struct perf_turn moved = c->turns[at];
	unsigned next;

	for (; (next = 2 * at + 1) < c->nturns; at = next) {
		if (next + 1 < c->nturns && is_before(&c->turns[next + 1], &c->turns[next]))
			next++;
		if (!is_before(&c->turns[next], &moved))
			break;
		c->turns[at] = c->turns[next];
	}
	c->turns[at] = moved;
}

bool perf_cpus_refresh(struct perf_cpus *c)
{
	const struct perf_record *r;
	bool filling = false;
	unsigned i;

	c->nturns = 0;
	for (i = 0; i < c->nopen; i++) {
		struct perf_ring *ring = c->open[i];

		filling |= perf_ring_refresh(ring);
		r = perf_ring_peek(ring);
		if (r)
			c->turns[c->nturns++] = (struct perf_turn){
				r->time_ns, ring->sideband ? 0 : 1 + i, ring};
	}
	for (i = c->nturns / 2; i-- > 0;)
		sink(c, i);
	return filling;
}

struct perf_ring *perf_cpus_oldest(struct perf_cpus *c)
{
	const struct perf_record *r;

	/* Only the first one's record can have been read since. */
	while (c->nturns) {
		r = perf_ring_peek(c->turns[0].ring);
		if (r && r->time_ns == c->turns[0].time_ns)
			return c->turns[0].ring;
		if (r)
			c->turns[0].time_ns = r->time_ns;
		else
			c->turns[0] = c->turns[--c->nturns];
		if (c->nturns)
			sink(c, 0);
	}
	return NULL;
}

const struct perf_ring *perf_cpus_sampler(const struct perf_cpus *c, unsigned cpu)
{
	return cpu < c->n && c->all[cpu].online ? &c->all[cpu].rings[SAMPLER] : NULL;
}

uint64_t perf_cpus_damaged(const struct perf_cpus *c)
{
	uint64_t damaged = 0;
	unsigned i;

	for (i = 0; i < c->nopen; i++)
		damaged += c->open[i]->damaged;
	return damaged;
}

/* ---- another level --------------------------------------------------------------------------- */

static int set_period(struct perf_cpus *c, unsigned which, uint64_t period)
{
	int first = 0, os_error;
	unsigned i;

	for (i = 0; i < c->n; i++) {
		struct perf_ring *ring = &c->all[i].rings[which];

		os_error = ring->fd >= 0 ? perf_ring_set_period(ring, period) : 0;
		first = first ? first : os_error;
	}
	return first;
}

int perf_cpus_set_period(struct perf_cpus *c, uint64_t period_ns)
{
	return set_period(c, SAMPLER, period_ns);
}

void perf_cpus_enable_unmaps(struct perf_cpus *c, bool on)
{
	unsigned i;

	for (i = 0; i < c->n; i++)
		if (c->all[i].rings[UNMAPS].fd >= 0)
			perf_ring_enable(&c->all[i].rings[UNMAPS], on);
}

int perf_cpus_set_fault_period(struct perf_cpus *c, uint32_t period)
{
	int os_error = set_period(c, FAULTS, period);

	c->fault_period = os_error ? c->fault_period : period;   /* for CPUs that come */
	return os_error;
}

int perf_cpus_open_samplers(struct perf_cpus *c, const struct perf_ask *ask, struct err *err)
{
	struct perf_ask asked = *ask;
	unsigned i;
	int rc = 0;

	for (i = 0; i < c->n && !rc; i++)
		if (c->all[i].online)
			rc = open_sampler(c, i, &asked, &c->all[i].next_sampler, err);
	while (rc && i--)
		perf_ring_close(&c->all[i].next_sampler);
	return rc;
}

uint64_t perf_cpus_start_samplers(struct perf_cpus *c)
{
	uint64_t between_ns;
	unsigned i;

	for (i = 0; i < c->n; i++)
		if (c->all[i].online)
			perf_ring_enable(&c->all[i].rings[SAMPLER], false);
	between_ns = os_now_ns();
	for (i = 0; i < c->n; i++)
		if (c->all[i].online && !c->ask.no_samples)
			enable_sampler(c, &c->all[i].next_sampler, true);
	return between_ns;
}

void perf_cpus_take_samplers(struct perf_cpus *c, const struct perf_ask *ask)
{
	unsigned i;

	for (i = 0; i < c->n; i++) {
		if (!c->all[i].online)
			continue;
		perf_ring_close(&c->all[i].rings[SAMPLER]);
		c->all[i].rings[SAMPLER] = c->all[i].next_sampler;
		c->all[i].next_sampler.fd = -1;
	}
	c->ask = *ask;
	list_open_rings(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_online(struct perf_cpus *c, const bool *online, struct err *err)
{
	unsigned i, opened = 0;
	int rc;

	for (i = 0; i < c->n; i++) {
		if (!online[i])
			continue;
		rc = open_cpu(c, i, err);
		if (rc && rc != ERR_NOT_FOUND)
			return rc;
		opened += rc == 0;
	}
	return opened ? 0 : err_set(err, ERR_UNSUPPORTED, "no CPU could be opened for sampling");
}

struct perf_ask perf_cpus_ask(const struct capture *c, unsigned ncpus)
{
	return (struct perf_ask){
		.freq_hz = c->freq_hz,
		.kernel_stacks = !c->no_kernel_stacks,
		.no_samples = c->only_providers != NULL,
		.stack_kb = c->stack_kb,
		.stack_ring_bytes = perf_stack_ring_bytes(c->freq_hz, c->stack_kb, ncpus),
		.ncpus = ncpus,
		.build_ids = true,
		.ksymbols = !c->no_kernel_stacks,
		.cgroups = true,
	};
}

int perf_cpus_open(struct perf_cpus *c, const struct perf_ask *ask,
		   const struct probes_config *probes, uint32_t faults, uint32_t unmaps,
		   struct err *err)
{
	struct probes_config asked = *probes;
	struct os_file *possible = NULL;
	bool online[CPUS_MAX];
	struct err why;
	unsigned i;
	int rc = 0;

	*c = (struct perf_cpus){.ask = *ask, .fault_period = faults, .unmap_id = unmaps,
				.watch = -1, .wake = os_wake_new()};
	if (!c->wake)
		rc = err_os(err, "cannot open the perf source");
	if (perf_program_new(probes->capture->root_pid && !ask->pid, &c->program, &why))
		log_line(asked.log, LOG_INFO, "samples copy stacks of a fixed size, and each one "
			 "wakes a reader of Python frames: %s", why.text);
	c->ask.has_program = c->program != NULL;
	if (c->program)
		c->ask.stack_ring_bytes =
			perf_short_ring_bytes(ask->freq_hz, ask->stack_kb, ask->ncpus);
	asked.ncpus = c->n = read_cpus("possible", &possible, online);
	os_close(possible);
	read_cpus("online", &c->online, online);
	c->all = calloc(c->n, sizeof(*c->all));
	c->open = calloc(1 + (size_t)c->n * CPU_RINGS, sizeof(*c->open));
	c->ready = calloc(1 + (size_t)c->n * CPU_RINGS, sizeof(*c->ready));
	c->turns = calloc(1 + (size_t)c->n * CPU_RINGS, sizeof(*c->turns));
	if (!rc && (!c->all || !c->open || !c->ready || !c->turns))
		rc = err_memory(err, "for perf rings");
	for (i = 0; c->all && i < c->n; i++)
		c->all[i].next_sampler.fd = -1;
	for (i = 0; c->all && i < c->n * CPU_RINGS; i++)
		c->all[i / CPU_RINGS].rings[i % CPU_RINGS].fd = -1;
	if (!rc)
		rc = probes_new(&asked, &c->probes, err);
	if (!rc && c->probes && asked.capture->heap_ring)
		rc = perf_ring_open_heap(&c->heap, asked.capture->heap_ring, err);
	if (!rc)
		rc = open_online(c, online, err);
	if (rc)
		perf_cpus_close(c);
	else
		list_open_rings(c);
	return rc;
}

void perf_cpus_close(struct perf_cpus *c)
{
	unsigned i;

	for (i = 0; c->all && i < c->n; i++)
		close_cpu(c, i);
	if (c->heap.map)
		perf_ring_close(&c->heap);
	if (c->wake)
		close_watch(c);
	probes_free(c->probes);
	perf_program_free(c->program);
	os_wake_free(c->wake);
	os_close(c->online);
	free(c->all);
	free(c->open);
	free(c->turns);
	free(c->ready);
	*c = (struct perf_cpus){0};
}
