/* The rings and perf events of a CPU; see probes_linux.h. */
#include "source/probe/probes_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GC_STACK_BYTES 512u                  /* room for arguments in memory */
#define STACK_DEPTH_MAX 127u
#define HEAP_STACK_BYTES (8192 - 8)           /* samples of heaps come in the thousands at once */
#define HEAP_FREE_STACK_BYTES (4096 - 8)      /* who frees is near */

static const size_t ring_bytes[PROBE_RINGS] = {
	[RING_PLAIN] = PROBE_PLAIN_RING_BYTES, [RING_STACK] = PROBE_STACK_RING_BYTES,
	[RING_REGS] = PROBE_PLAIN_RING_BYTES, [RING_SWITCH] = PROBE_SWITCH_RING_BYTES,
	[RING_SWITCH_STACK] = PROBE_SWITCH_STACK_RING_BYTES,
};

static bool same_id(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct probes *)ctx)->events[value].id == *(const uint64_t *)key;
}

struct probe *probes_find(struct probes *p, uint64_t id)
{
	uint32_t at = table_find(&p->by_id, hash_u64(id), same_id, p, &id);
	struct probe *probe;

	if (at == TABLE_NONE)
		return NULL;
	probe = &p->all[p->events[at].probe];
	probe->place = p->events[at].place;
	return probe;
}

static uint8_t ring_of(const struct probe *probe)
{
	if (probe->role != PROBE_EVENT)
		return probe->stack ? RING_SWITCH_STACK : RING_SWITCH;
	return probe->stack || probe->gc.edge ? RING_STACK : probe->uprobe ? RING_REGS : RING_PLAIN;
}

static void attr_of(const struct probes *p, const struct probe *probe, uint32_t place,
		    struct perf_event_attr *attr)
{
	const struct perf_format *format = &p->formats[ring_of(probe)];
	const struct uprobe *u = probe->uprobe;

	perf_attr_common(attr);
	if (u) {
		/* perf_event.h: bit 0 = at the return, bits 32 to 63 = offset of the semaphore. */
		attr->type = p->pmu;
		attr->config = (uint64_t)u->is_return | u->places[place].semaphore << 32;
		attr->probe_offset = u->places[place].offset;
	} else if (probe->period) {
		attr->type = probe->counter.type;
		attr->config = probe->counter.config;
		attr->exclude_hv = 1;
	} else if (probe->in_program) {
		attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	} else {
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = probe->format.id;
	}
	attr->sample_period = probe->period ? probe->period : 1;
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	if (format->nregs) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER;
		attr->sample_regs_user = PERF_REGS_MASK;
	}
	if (!format->callchain)
		return;
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	attr->sample_max_stack = STACK_DEPTH_MAX;
	attr->exclude_callchain_kernel = !p->kernel_stacks;
	if (!p->stack_kb)
		return;
	attr->exclude_callchain_user = 1;
	attr->sample_type |= PERF_SAMPLE_STACK_USER;
	attr->sample_stack_user = probe->gc.edge		? GC_STACK_BYTES
				  : probe->heap == HEAP_FREE	? HEAP_FREE_STACK_BYTES
				  : probe->heap == HEAP_ALLOC	? HEAP_STACK_BYTES
				  : probe->role == PROBE_EVENT	? p->stack_kb * 1024 - 8
								: PROBE_SWITCH_STACK_KB * 1024 - 8;
}

/* Without a filter all events arrive and the rules check them: correct, but slower. */
static void set_filter(struct probes *p, struct probe *probe, int fd)
{
	if (!probe->filter.len ||
	    ioctl(fd, PERF_EVENT_IOC_SET_FILTER, buf_text(&probe->filter)) == 0)
		return;
	log_line(p->log, LOG_WARN,
		 "%s/%s: the kernel rejects the filter '%s' (%s), so the recorder checks all these "
		 "events", probe->provider, probe->name, buf_text(&probe->filter), strerror(errno));
	buf_reset(&probe->filter);
}

/* The same by a program of ours, for a probe in a program. */
static void set_program(struct probes *p, struct probe *probe, uint32_t place, int fd)
{
	int program = probe->uprobe ? probe->in_kernel[place] : -1;

	if (program < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) == 0)
		return;
	log_line(p->log, LOG_WARN,
		 "%s:%s: the kernel takes no filter (%s), so calls of all processes reach the "
		 "recorder", probe->provider, probe->name, strerror(errno));
	probe->by_process = false;
}

static int refused(const struct probe *probe, int os_error, struct err *err)
{
	if (os_error == EACCES || os_error == EPERM)
		return err_set(err, ERR_ACCESS,
			       "this user may not watch %s/%s: run as root, or give the program %s",
			       probe->provider, probe->name,
			       probe->uprobe ? "CAP_SYS_ADMIN" : "CAP_PERFMON");
	if (probe->uprobe && os_error == EINVAL)
		return err_set(err, ERR_USAGE, "the kernel cannot put a probe at %s", probe->name);
	return err_os_code(err, os_error, "cannot watch %s/%s", probe->provider, probe->name);
}

static int open_place(struct probes *p, struct probe *probe, uint32_t place, unsigned cpu,
		      const struct perf_ring *ring, struct err *err)
{
	struct place_event *e = probe_events(p, probe, cpu) + place;
	struct perf_event_attr attr;
	int os_error, fd;

	if (e->fd >= 0)
		return 0;
	attr_of(p, probe, place, &attr);
	fd = probe->uprobe ? programs_event_fd(p->programs, probe->uprobe, &attr, cpu)
			   : perf_event_fd(&attr, cpu);
	/* A program that hangs is logged. See also add_gc(). */
	if (fd < 0 && (probe->gc.edge || errno == ETIMEDOUT ||
		       (probe->throws && errno != EACCES && errno != EPERM)))
		return 0;
	os_error = fd < 0 ? errno : perf_ring_redirect(ring, fd);
	if (!os_error && ioctl(fd, PERF_EVENT_IOC_ID, &e->id) != 0)
		os_error = errno;
	if (os_error && fd >= 0)
		close(fd);
	if (os_error)
		return refused(probe, os_error, err);
	set_filter(p, probe, fd);
	set_program(p, probe, place, fd);
	e->fd = fd;
	e->probe = (uint32_t)(probe - p->all);
	e->place = place;
	if (table_add(&p->by_id, hash_u64(e->id), (uint32_t)(e - p->events)))
		return err_memory(err, "for the events of rules");
	return 0;
}

int probes_open_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS],
		    struct err *err)
{
	const struct place_event *stacks = NULL;
	uint32_t i, place;
	int rc = 0;

	for (i = 0; !rc && i < p->n; i++) {
		uint8_t number = ring_of(&p->all[i]);
		struct perf_ring *ring = &rings[number];

		if (ring->fd < 0)
			rc = perf_ring_open_probes(ring, cpu, number, &p->formats[number],
						   ring_bytes[number],
						   number == RING_SWITCH && !p->switches, err);
		for (place = 0; !rc && place < p->all[i].nplaces; place++)
			rc = open_place(p, &p->all[i], place, cpu, ring, err);
		if (!rc && p->all[i].in_program && rings[RING_SWITCHES].fd < 0)
			stacks = probe_events(p, &p->all[i], cpu);
	}
	if (rc || !stacks)
		return rc;
	rc = switches_open_cpu(p->switches, cpu, stacks->fd, &rings[RING_SWITCH],
			       &rings[RING_SWITCHES], err);
	rings[RING_SWITCHES].probes_at = RING_SWITCHES;
	return rc;
}

void probes_close_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS])
{
	uint32_t i, at;

	for (at = cpu * p->nplaces; at < (cpu + 1) * p->nplaces; at++) {
		struct place_event *e = &p->events[at];

		if (e->fd < 0)
			continue;
		table_remove(&p->by_id, hash_u64(e->id), at);
		if (p->all[e->probe].uprobe)
			programs_close(p->programs, e->fd);
		else
			close(e->fd);
		e->fd = -1;
	}
	for (i = 0; i < PROBE_RINGS; i++)
		perf_ring_close(&rings[i]);
}

void probe_switch(const struct probes *p, const struct probe *probe, unsigned cpu, bool on)
{
	const struct place_event *e = probe_events(p, probe, cpu);
	uint32_t i;

	for (i = 0; i < probe->nplaces; i++)
		if (e[i].fd >= 0)
			ioctl(e[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void probe_set_period(const struct probes *p, const struct probe *probe, uint64_t n)
{
	const struct place_event *e;
	unsigned cpu;

	for (cpu = 0; cpu < p->ncpus; cpu++) {
		e = probe_events(p, probe, cpu);
		if (e->fd >= 0)
			ioctl(e->fd, PERF_EVENT_IOC_PERIOD, &n);
	}
}

uint64_t probe_hold(const struct probes *p, const struct probe *probe, bool on)
{
	uint64_t period = on ? 1ull << 62 : 1, value[4], n = 0;
	const struct place_event *e;
	unsigned cpu;
	uint32_t i;

	for (cpu = 0; cpu < p->ncpus; cpu++) {
		e = probe_events(p, probe, cpu);
		for (i = 0; i < probe->nplaces; i++) {
			if (e[i].fd < 0)
				continue;
			if (on)
				ioctl(e[i].fd, PERF_EVENT_IOC_PERIOD, &period);
			/*
			 * The count comes first, whatever else the kernel adds. What happens
			 * between the two calls is missing from it.
			 */
			if (read(e[i].fd, value, sizeof(value)) >= (ssize_t)sizeof(value[0]))
				n += value[0];
			if (!on)
				ioctl(e[i].fd, PERF_EVENT_IOC_PERIOD, &period);
		}
	}
	return n;
}

void probe_pause(const struct probes *p, struct probe *probe, uint64_t until_ns)
{
	unsigned cpu;

	probe->paused_until_ns = until_ns;
	for (cpu = 0; cpu < p->ncpus; cpu++)
		probe_switch(p, probe, cpu, !until_ns);
}

void probes_enable(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS], bool on)
{
	uint32_t i;

	if (rings[RING_SWITCH].fd >= 0)
		perf_ring_enable(&rings[RING_SWITCH], on);
	if (rings[RING_SWITCHES].fd >= 0)
		switches_enable(&rings[RING_SWITCHES], on);
	for (i = 0; i < p->n; i++)
		if (!p->all[i].paused_until_ns)
			probe_switch(p, &p->all[i], cpu, on);
}
