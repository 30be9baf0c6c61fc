/* CPUs: /sys/devices/system/cpu (Documentation/ABI/testing/sysfs-devices-system-cpu). */
#include "source/perf/cpus_linux.h"

#include "base/os.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MAX 1024u
#define POLLED_PER_CPU (2 + PROBE_RINGS)

struct perf_cpu {
	bool online;
	bool failure_logged;                 /* that it cannot be opened */
	struct perf_ring sampler, sideband;
	struct perf_ring probes[PROBE_RINGS];
};

/* ---- which CPUs ------------------------------------------------------------------------------ */

/* Parse /sys/devices/system/cpu/NAME ("0-3,5") into flags. returns  the highest number + 1 */
static unsigned read_cpus(const char *name, bool online[CPUS_MAX])
{
	struct buf text = {0};
	unsigned count = 0, first, last;
	const char *at;
	char path[64], *end;

	memset(online, 0, CPUS_MAX * sizeof(*online));
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", name);
	if (os_load(path, 4096, &text, NULL) != 0)
		buf_printf(&text, "0-%u", os_cpu_count() - 1);
	for (at = buf_text(&text); *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
		first = last = (unsigned)strtoul(at, &end, 10);
		if (*end == '-')
			last = (unsigned)strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPUS_MAX; first++) {
			online[first] = true;
			count = first + 1 > count ? first + 1 : count;
		}
	}
	buf_free(&text);
	return count;
}

static int open_cpu(struct perf_cpus *c, unsigned number, struct err *err)
{
	struct perf_cpu *cpu = &c->all[number];
	int rc = perf_ring_open(&cpu->sideband, number, true, &c->ask, err);

	if (rc)
		return rc;
	rc = perf_ring_open(&cpu->sampler, number, false, &c->ask, err);
	if (rc) {
		perf_ring_close(&cpu->sideband);
		return rc;
	}
	if (c->probes)
		rc = probes_open_cpu(c->probes, number, cpu->probes, err);
	if (rc) {
		perf_ring_close(&cpu->sampler);
		perf_ring_close(&cpu->sideband);
		return rc;
	}
	cpu->online = true;
	return 0;
}

static void close_cpu(struct perf_cpus *c, unsigned number)
{
	struct perf_cpu *cpu = &c->all[number];

	if (cpu->online && c->probes)
		probes_close_cpu(c->probes, number, cpu->probes);
	if (cpu->online) {
		perf_ring_close(&cpu->sampler);
		perf_ring_close(&cpu->sideband);
	}
	cpu->online = false;
}

static void add_polled(struct perf_cpus *c, int fd)
{
	c->polled[c->npolled++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/*
 * List open rings only: poll() refuses more entries than the descriptor limit, even negative ones.
 */
static void rebuild_polled(struct perf_cpus *c)
{
	unsigned i, j;

	c->npolled = 0;
	add_polled(c, os_wake_fd(c->wake));
	for (i = 0; i < c->n; i++) {
		const struct perf_cpu *cpu = &c->all[i];

		if (!cpu->online)
			continue;
		add_polled(c, cpu->sideband.fd);
		add_polled(c, cpu->sampler.fd);
		for (j = 0; c->probes && j < PROBE_RINGS; j++)
			if (cpu->probes[j].fd >= 0)
				add_polled(c, cpu->probes[j].fd);
	}
}

bool perf_cpus_follow(struct perf_cpus *c, struct log *log)
{
	bool online[CPUS_MAX];
	bool changed = false, came = false;
	struct err err;
	unsigned i;

	read_cpus("online", online);
	for (i = 0; i < c->n; i++) {
		struct perf_cpu *cpu = &c->all[i];

		if (online[i] == cpu->online)
			continue;
		changed = true;
		if (!online[i]) {
			close_cpu(c, i);
			log_line(log, LOG_INFO, "CPU %u went offline", i);
		} else if (open_cpu(c, i, &err) == 0) {
			perf_ring_enable(&cpu->sideband, true);
			perf_ring_enable(&cpu->sampler, true);
			if (c->probes)
				probes_enable(c->probes, i, cpu->probes, true);
			came = true;
			log_line(log, LOG_INFO, "CPU %u came online and is recorded", i);
		} else if (!cpu->failure_logged) {
			cpu->failure_logged = true;
			log_line(log, LOG_WARN, "CPU %u came online and is not recorded: %s", i,
				 err.text);
		}
	}
	if (changed)
		rebuild_polled(c);
	return came;
}

void perf_cpus_enable(struct perf_cpus *c, bool sideband, bool on)
{
	unsigned i;

	for (i = 0; i < c->n; i++) {
		struct perf_cpu *cpu = &c->all[i];

		if (cpu->online)
			perf_ring_enable(sideband ? &cpu->sideband : &cpu->sampler, on);
		if (cpu->online && c->probes && !sideband)
			probes_enable(c->probes, i, cpu->probes, on);
	}
}

/* ---- records --------------------------------------------------------------------------------- */

void perf_cpus_wake(struct perf_cpus *c)
{
	os_wake(c->wake);
}

static bool was_woken(struct perf_cpus *c)
{
	if (!c->polled[0].revents)
		return false;
	os_wake_clear(c->wake);
	return true;
}

bool perf_cpus_wait(struct perf_cpus *c, uint64_t timeout_ns)
{
	return os_poll(c->polled, c->npolled, timeout_ns) && !was_woken(c);
}

void perf_cpus_refresh(struct perf_cpus *c)
{
	unsigned i, j;

	for (i = 0; i < c->n; i++) {
		if (!c->all[i].online)
			continue;
		perf_ring_refresh(&c->all[i].sideband);
		perf_ring_refresh(&c->all[i].sampler);
		for (j = 0; c->probes && j < PROBE_RINGS; j++)
			perf_ring_refresh(&c->all[i].probes[j]);
	}
}

struct perf_ring *perf_cpus_oldest(struct perf_cpus *c)
{
	struct perf_ring *oldest = NULL;
	uint64_t oldest_ns = UINT64_MAX;
	unsigned i;

	for (i = 0; i < c->n; i++) {
		struct perf_ring *rings[2] = {&c->all[i].sideband, &c->all[i].sampler};
		unsigned j;

		for (j = 0; c->probes && c->all[i].online && j < PROBE_RINGS; j++) {
			struct perf_ring *ring = &c->all[i].probes[j];
			const struct perf_record *r =
				perf_ring_peek(ring, probes_format(c->probes, j));

			if (!r || r->time_ns > oldest_ns)
				continue;
			oldest = ring;
			oldest_ns = r->time_ns;
		}
		for (j = 0; c->all[i].online && j < 2; j++) {
			const struct perf_record *r = perf_ring_peek(rings[j], &c->format);

			if (!r || r->time_ns > oldest_ns ||
			    (r->time_ns == oldest_ns && !rings[j]->sideband))
				continue;
			oldest = rings[j];
			oldest_ns = r->time_ns;
		}
	}
	return oldest;
}

uint64_t perf_cpus_damaged(const struct perf_cpus *c)
{
	uint64_t damaged = 0;
	unsigned i, j;

	for (i = 0; i < c->n; i++) {
		damaged += c->all[i].sideband.damaged + c->all[i].sampler.damaged;
		for (j = 0; c->probes && j < PROBE_RINGS; j++)
			damaged += c->all[i].probes[j].damaged;
	}
	return damaged;
}

/* ---- another level --------------------------------------------------------------------------- */

int perf_cpus_set_period(struct perf_cpus *c, uint64_t period_ns)
{
	int first = 0, os_error;
	unsigned i;

	for (i = 0; i < c->n; i++) {
		os_error =
			c->all[i].online ? perf_ring_set_period(&c->all[i].sampler, period_ns) : 0;
		first = first ? first : os_error;
	}
	return first;
}

int perf_cpus_open_samplers(const struct perf_cpus *c, const struct perf_ask *ask,
			    struct perf_ring *fresh, struct err *err)
{
	struct perf_ask asked = *ask;
	unsigned i;
	int rc = 0;

	for (i = 0; i < c->n; i++)
		fresh[i].fd = -1;
	for (i = 0; i < c->n && !rc; i++) {
		if (c->all[i].online)
			rc = perf_ring_open(&fresh[i], i, false, &asked, err);
	}
	while (rc && i--)
		perf_ring_close(&fresh[i]);
	return rc;
}

uint64_t perf_cpus_start_samplers(struct perf_cpus *c, struct perf_ring *fresh)
{
	uint64_t between_ns;
	unsigned i;

	for (i = 0; i < c->n; i++)
		if (c->all[i].online)
			perf_ring_enable(&c->all[i].sampler, false);
	between_ns = os_now_ns();
	for (i = 0; i < c->n; i++)
		if (c->all[i].online)
			perf_ring_enable(&fresh[i], true);
	return between_ns;
}

static void set_format(struct perf_cpus *c, unsigned stack_kb)
{
	c->format.callchain = true;
	c->format.nregs = stack_kb ? PERF_REGS_COUNT : 0;
	c->format.stack = stack_kb != 0;
}

void perf_cpus_take_samplers(struct perf_cpus *c, const struct perf_ask *ask,
			     const struct perf_ring *fresh)
{
	unsigned i;

	for (i = 0; i < c->n; i++) {
		if (!c->all[i].online)
			continue;
		perf_ring_close(&c->all[i].sampler);
		c->all[i].sampler = fresh[i];
	}
	c->ask = *ask;
	set_format(c, ask->stack_kb);
	rebuild_polled(c);
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

int perf_cpus_open(struct perf_cpus *c, const struct perf_ask *ask,
		   const struct probes_config *probes, struct err *err)
{
	struct probes_config asked = *probes;
	bool online[CPUS_MAX];
	int rc = 0;

	*c = (struct perf_cpus){.ask = *ask, .wake = os_wake_new()};
	set_format(c, ask->stack_kb);
	if (!c->wake)
		rc = err_os(err, "cannot open the perf source");
	asked.ncpus = c->n = read_cpus("possible", online);
	read_cpus("online", online);
	c->all = calloc(c->n, sizeof(*c->all));
	c->polled = calloc(1 + POLLED_PER_CPU * (size_t)c->n, sizeof(*c->polled));
	if (!rc && (!c->all || !c->polled))
		rc = err_memory(err, "for perf rings");
	if (!rc)
		rc = probes_new(&asked, &c->probes, err);
	if (!rc)
		rc = open_online(c, online, err);
	if (rc)
		perf_cpus_close(c);
	else
		rebuild_polled(c);
	return rc;
}

void perf_cpus_close(struct perf_cpus *c)
{
	unsigned i;

	for (i = 0; c->all && i < c->n; i++)
		close_cpu(c, i);
	probes_free(c->probes);
	os_wake_free(c->wake);
	free(c->all);
	free(c->polled);
	memset(c, 0, sizeof(*c));
}
