#include "source/probes_linux.h"

#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "source/gc_probes_linux.h"
#include "source/throw_linux.h"
#include "source/tracepoint_linux.h"
#include "source/uprobe_linux.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GC_STACK_BYTES 512u                  /* where arguments may lie */
#define FILTER_MAX_BYTES 3000u               /* the kernel takes less than a page */
#define STACK_DEPTH_MAX 127u

struct probe {
	char provider[PROVIDER_NAME_MAX], name[EVENT_NAME_MAX];
	struct trace_format format;          /* of a tracepoint */
	struct uprobe *uprobe;               /* NULL: a tracepoint */
	bool throws;                         /* a uprobe where C++ throws */
	struct gc_probe gc;                  /* a uprobe where a program collects */
	enum probe_role role;
	uint32_t pid;                        /* which field of its format: of a wake-up */
	uint32_t first_place, nplaces;       /* of probes.nplaces */
	struct buf filter;                   /* the kernel's; empty = all events */
	bool unfiltered;                     /* some rule wants what no filter can express */
	bool stack;
	unsigned limit;                      /* events a second */
	int *fds;                            /* by CPU and place; -1 = closed */
	uint64_t second_ns, hits;            /* in the second that began then */
	uint64_t rests_until_ns;
	_Atomic uint64_t rests, left_out;
	bool told;
};

struct id {
	uint64_t id;
	uint32_t probe, place;
};

struct probes {
	struct log *log;
	unsigned ncpus, stack_kb;
	bool kernel_stacks;
	struct probe *all;
	uint32_t n;
	uint32_t nplaces;                    /* of all */
	uint32_t pmu;                        /* of uprobes */
	struct id *ids;                      /* nplaces * ncpus, by CPU then place; id 0 = none */
	struct table by_id;
	struct perf_format formats[PROBE_RINGS];
	struct trace_values values;          /* of the last event */
	struct event_field fields[STAPSDT_ARGUMENTS_MAX];
	struct event_field gc_fields[GC_PROBE_FIELDS];
	struct throw_text thrown;
};

enum { RING_PLAIN, RING_STACK, RING_REGS, RING_SWITCH = PROBE_RING_OF_SWITCHES, RING_SWITCH_STACK };

static const size_t ring_bytes[PROBE_RINGS] = {
	[RING_PLAIN] = PROBE_PLAIN_RING_BYTES, [RING_STACK] = PROBE_STACK_RING_BYTES,
	[RING_REGS] = PROBE_PLAIN_RING_BYTES, [RING_SWITCH] = PROBE_SWITCH_RING_BYTES,
	[RING_SWITCH_STACK] = PROBE_SWITCH_STACK_RING_BYTES,
};

/* ---- what is asked for ----------------------------------------------------------------------------- */

/* Names of other providers are for other sources to judge. */
static bool is_ours(const struct need_event *e)
{
	return tracepoint_provider(e->provider) || throw_provider(e->provider);
}

static int check_tracepoint(const struct need_event *e, struct trace_format *format, struct err *err)
{
	char event[PROVIDER_NAME_MAX + EVENT_NAME_MAX];
	int rc = tracepoint_load(e->provider, e->name, format, err);

	snprintf(event, sizeof(event), "%s/%s", e->provider, e->name);
	return rc ? rc : trace_format_check(format, event, e->filter, err);
}

static int check_one(const struct need_event *e, struct trace_format *format, struct uprobe *uprobe,
		     struct err *err)
{
	uint32_t pmu;
	int rc;

	if (throw_provider(e->provider))
		return uprobe_pmu(&pmu, err);
	if (!uprobe_provider(e->provider))
		return check_tracepoint(e, format, err);
	rc = uprobe_pmu(&pmu, err);
	return rc ? rc : uprobe_resolve(e->provider, e->name, uprobe, err);
}

int probes_check(const struct needs *needs, struct err *err)
{
	struct trace_format *format = malloc(sizeof(*format));
	struct uprobe *uprobe = malloc(sizeof(*uprobe));
	uint32_t i;
	int rc = format && uprobe ? 0 : err_set(err, ERR_MEMORY, "no memory for the format of an event");

	for (i = 0; !rc && i < needs->nevents; i++)
		if (is_ours(&needs->events[i]))
			rc = check_one(&needs->events[i], format, uprobe, err);
	free(format);
	free(uprobe);
	return rc;
}

static struct probe *find_probe(struct probes *p, const struct need_event *e)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (p->all[i].role == PROBE_EVENT && strcmp(p->all[i].provider, e->provider) == 0 &&
		    strcmp(p->all[i].name, e->name) == 0)
			return &p->all[i];
	return NULL;
}

static int make_probe(struct probes *p, const struct need_event *e, struct probe **out, struct err *err)
{
	struct probe *probe = &p->all[p->n];
	unsigned i;
	int rc;

	strcpy(probe->provider, e->provider);
	strcpy(probe->name, e->name);
	probe->limit = PROBE_RATE_MAX;
	probe->filter.max_bytes = FILTER_MAX_BYTES;
	probe->nplaces = 1;
	p->n++;
	if (uprobe_provider(e->provider) || throw_provider(e->provider)) {
		probe->limit = PROBE_RATE_STACK_MAX;
		probe->throws = throw_provider(e->provider);
		probe->uprobe = calloc(1, sizeof(*probe->uprobe));
		rc = probe->uprobe ? uprobe_pmu(&p->pmu, err) : err_set(err, ERR_MEMORY, "no memory for a probe");
		if (!rc)
			rc = uprobe_resolve(probe->throws ? "uprobe" : e->provider, e->name, probe->uprobe, err);
		if (!rc)
			probe->nplaces = probe->uprobe->n;
	} else {
		rc = tracepoint_load(e->provider, e->name, &probe->format, err);
	}
	if (rc)
		return rc;
	probe->fds = malloc((size_t)p->ncpus * probe->nplaces * sizeof(*probe->fds));
	if (!probe->fds)
		return err_set(err, ERR_MEMORY, "no memory for the events of %s", e->name);
	for (i = 0; i < p->ncpus * probe->nplaces; i++)
		probe->fds[i] = -1;
	probe->first_place = p->nplaces;
	p->nplaces += probe->nplaces;
	*out = probe;
	return 0;
}

/* Several rules on one event: what one of them wants passes. */
static int add_one(struct probes *p, const struct need_event *e, struct err *err)
{
	struct probe *probe = find_probe(p, e);
	struct buf filter = {0};
	int rc = probe ? 0 : make_probe(p, e, &probe, err);

	if (rc)
		return rc;
	if (e->stack) {
		probe->stack = true;
		probe->limit = PROBE_RATE_STACK_MAX;
	}
	/* uprobes have no fields that the kernel knows. */
	if (probe->uprobe || !trace_filter(&probe->format, e->filter, &filter))
		probe->unfiltered = true;
	buf_printf(&probe->filter, "%s(%s)", probe->filter.len ? " || " : "", buf_text(&filter));
	if (probe->unfiltered || probe->filter.failed || filter.failed)
		buf_reset(&probe->filter);
	buf_free(&filter);
	return 0;
}

/* Throws of C++ are seen in each library for them that programs use now, or by default. */
static int add_need(struct probes *p, const struct need_event *e, struct err *err)
{
	char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX];
	unsigned i, n;
	struct need_event *one;
	int rc = 0;

	if (!throw_provider(e->provider))
		return add_one(p, e, err);
	one = malloc(sizeof(*one));
	if (!one)
		return err_set(err, ERR_MEMORY, "no memory for a probe");
	n = throw_libraries(paths);
	if (!n)
		rc = err_set(err, ERR_UNSUPPORTED, "no C++ library is to be found, in whose __cxa_throw exceptions "
			     "would be seen");
	for (i = 0; !rc && i < n; i++) {
		*one = *e;
		snprintf(one->name, sizeof(one->name), "%s:__cxa_throw", paths[i]);
		rc = add_one(p, one, err);
	}
	free(one);
	return rc;
}

/* Wake-ups and the stacks of switches, for the times of threads; the switches are the ring's own. */
static int add_time(struct probes *p, bool wakers, struct err *err)
{
	static const struct {
		const char *name, *pid;
		enum probe_role role;
	} wanted[] = {
		{"sched_switch", "prev_pid", PROBE_SWITCH_STACK},
		{"sched_wakeup", "pid", PROBE_WAKEUP},
		{"sched_wakeup_new", "pid", PROBE_WAKEUP},
		{"sched_waking", "pid", PROBE_WAKER},
	};
	struct need_event *e = calloc(1, sizeof(*e));
	struct probe *probe;
	size_t i;
	int rc = e ? 0 : err_set(err, ERR_MEMORY, "no memory for the events of threads");

	for (i = 0; !rc && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (wanted[i].role == PROBE_WAKER && !wakers)
			continue;
		strcpy(e->provider, "sched");
		strcpy(e->name, wanted[i].name);
		rc = make_probe(p, e, &probe, err);
		if (!rc && !trace_format_find(&probe->format, wanted[i].pid, &probe->pid))
			rc = err_set(err, ERR_UNSUPPORTED, "this kernel's sched/%s has no %s, so the times of threads "
				     "cannot be had", e->name, wanted[i].pid);
		if (rc)
			break;
		probe->role = wanted[i].role;
		probe->stack = probe->role == PROBE_SWITCH_STACK || probe->role == PROBE_WAKER;
		if (probe->role == PROBE_SWITCH_STACK)            /* the idle task has none */
			buf_puts(&probe->filter, "prev_pid != 0");
	}
	free(e);
	return rc;
}

/*
 * Where programs collect, for rules on that, as far as it can be had: without these probes .NET's and Java's
 * collections are seen all the same.
 */
static int add_gc(struct probes *p, struct err *err)
{
	struct need_event *events = calloc(2 * GC_PROGRAMS_MAX, sizeof(*events));
	struct gc_probe gc[2 * GC_PROGRAMS_MAX];
	struct probe *probe;
	unsigned i, n;
	uint32_t before;

	if (!events)
		return err_set(err, ERR_MEMORY, "no memory for the events of collections");
	n = gc_probes_find(events, gc);
	for (i = 0; i < n; i++) {
		before = p->n;
		if (make_probe(p, &events[i], &probe, NULL) == 0) {
			probe->gc = gc[i];
			probe->unfiltered = true;
			if (gc[i].edge == GC_ENDS)
				probe->limit = PROBE_RATE_MAX;   /* it rests after its beginnings: follow_gc() */
			continue;
		}
		/* Stripped, or a kernel without uprobes: nothing to watch. */
		free(p->all[before].uprobe);
		buf_free(&p->all[before].filter);
		memset(&p->all[before], 0, sizeof(p->all[before]));
		p->n = before;
	}
	free(events);
	return 0;
}

static unsigned count_wanted(const struct probes_config *cfg)
{
	unsigned n = (cfg->thread_time ? 4 : 0) + (gc_probes_wanted(cfg->needs) ? 2 * GC_PROGRAMS_MAX : 0);
	uint32_t i;

	for (i = 0; cfg->needs && i < cfg->needs->nevents; i++) {
		const struct need_event *e = &cfg->needs->events[i];

		n += throw_provider(e->provider) ? THROW_LIBRARIES_MAX : is_ours(e);
	}
	return n;
}

static void set_formats(struct probes *p)
{
	p->formats[RING_PLAIN] = (struct perf_format){.raw = true};
	p->formats[RING_REGS] = (struct perf_format){.raw = true, .nregs = PERF_REGS_COUNT};
	p->formats[RING_STACK] = (struct perf_format){.raw = true, .callchain = true, .stack = p->stack_kb != 0,
						      .nregs = PERF_REGS_COUNT};
	p->formats[RING_SWITCH] = p->formats[RING_PLAIN];
	p->formats[RING_SWITCH_STACK] = p->formats[RING_STACK];
}

int probes_new(const struct probes_config *cfg, struct probes **out, struct err *err)
{
	unsigned wanted = count_wanted(cfg);
	struct probes *p;
	uint32_t i;
	int rc = 0;

	*out = NULL;
	if (!wanted)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p) {
		p->log = cfg->log;
		p->ncpus = cfg->ncpus;
		p->stack_kb = cfg->stack_kb;
		p->kernel_stacks = cfg->kernel_stacks;
		p->all = calloc(wanted, sizeof(*p->all));
	}
	if (!p || !p->all)
		rc = err_set(err, ERR_MEMORY, "no memory for the events of rules");
	for (i = 0; !rc && cfg->needs && i < cfg->needs->nevents; i++)
		if (is_ours(&cfg->needs->events[i]))
			rc = add_need(p, &cfg->needs->events[i], err);
	if (!rc && gc_probes_wanted(cfg->needs))
		rc = add_gc(p, err);
	if (!rc && cfg->thread_time)
		rc = add_time(p, cfg->wakers, err);
	if (!rc) {
		p->ids = calloc((size_t)p->nplaces * cfg->ncpus, sizeof(*p->ids));
		rc = p->ids ? 0 : err_set(err, ERR_MEMORY, "no memory for the events of rules");
	}
	if (rc) {
		probes_free(p);
		return rc;
	}
	set_formats(p);
	*out = p;
	return 0;
}

void probes_free(struct probes *p)
{
	uint32_t i;

	if (!p)
		return;
	for (i = 0; i < p->n; i++) {
		buf_free(&p->all[i].filter);
		free(p->all[i].fds);
		free(p->all[i].uprobe);
	}
	free(p->all);
	free(p->ids);
	table_free(&p->by_id);
	free(p);
}

const struct perf_format *probes_format(const struct probes *p, unsigned i)
{
	return &p->formats[i];
}

/* ---- what there is --------------------------------------------------------------------------------- */

struct listing {
	bool json;
	const char *path;                    /* of a program */
	struct out *out;
	struct buf line;
	struct trace_format format;
};

static void put_fields(struct listing *l)
{
	static const char *const types[] = {
		[TRACE_NUMBER] = "unsigned", [TRACE_CHARS] = "text", [TRACE_BYTES] = "bytes",
		[TRACE_LOC_CHARS] = "text", [TRACE_LOC_BYTES] = "bytes", [TRACE_REL_CHARS] = "text",
		[TRACE_REL_BYTES] = "bytes",
	};
	struct json j = {.out = &l->line, .comma = true};
	uint32_t i;

	if (l->json) {
		json_key(&j, "fields");
		json_open(&j, '[');
	}
	for (i = 0; i < l->format.nfields; i++) {
		const struct trace_field *f = &l->format.fields[i];

		if (!l->json) {
			buf_printf(&l->line, "%s%s", i ? " " : "  ", f->name);
			continue;
		}
		json_open(&j, '{');
		json_key_str(&j, "name", f->name);
		json_key_str(&j, "type", f->kind == TRACE_NUMBER && f->is_signed ? "signed" : types[f->kind]);
		json_close(&j, '}');
	}
	if (l->json)
		json_close(&j, ']');
}

static int list_one(void *ctx, const char *provider, const char *name)
{
	struct listing *l = ctx;

	l->format.nfields = 0;
	if (tracepoint_load(provider, name, &l->format, NULL) == ERR_MEMORY)
		return ERR_MEMORY;
	buf_reset(&l->line);
	if (l->json) {
		struct json j = {.out = &l->line};

		json_open(&j, '{');
		json_key_str(&j, "provider", provider);
		json_key_str(&j, "name", name);
	} else {
		buf_printf(&l->line, "%s/%s", provider, name);
	}
	put_fields(l);
	buf_puts(&l->line, l->json ? "}\n" : "\n");
	out_put(l->out, buf_text(&l->line), l->line.len);
	return 0;
}

static int list_usdt(void *ctx, const struct stapsdt *probe)
{
	struct stapsdt_argument arguments[STAPSDT_ARGUMENTS_MAX];
	unsigned i, n = stapsdt_arguments(probe->arguments, arguments);
	struct listing *l = ctx;
	char name[UPROBE_PATH_MAX + 2 * STAPSDT_NAME_MAX];

	snprintf(name, sizeof(name), "%s:%s:%s", l->path, probe->provider, probe->name);
	buf_reset(&l->line);
	if (l->json) {
		struct json j = {.out = &l->line};

		json_open(&j, '{');
		json_key_str(&j, "provider", "usdt");
		json_key_str(&j, "name", name);
		json_key_str(&j, "arguments", probe->arguments);
		json_close(&j, '}');
	} else {
		buf_printf(&l->line, "usdt:%s ", name);
		for (i = 1; i <= n; i++)
			buf_printf(&l->line, " Arg%u", i);
	}
	buf_putc(&l->line, '\n');
	out_put(l->out, buf_text(&l->line), l->line.len);
	return 0;
}

int probes_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct listing *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return err_set(err, ERR_MEMORY, "no memory for the list of events");
	l->json = json;
	l->out = out;
	l->path = pattern;
	rc = pattern && pattern[0] == '/' ? uprobe_list(pattern, list_usdt, l, err)
					  : tracepoint_each(pattern, list_one, l, err);
	buf_free(&l->line);
	free(l);
	return rc;
}

/* ---- a CPU's events -------------------------------------------------------------------------------- */

static bool same_id(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct probes *)ctx)->ids[value].id == *(const uint64_t *)key;
}

struct probe *probes_find(struct probes *p, uint64_t id)
{
	uint32_t at = table_find(&p->by_id, hash_u64(id), same_id, p, &id);

	return at == TABLE_NONE ? NULL : &p->all[p->ids[at].probe];
}

static unsigned ring_of(const struct probe *probe)
{
	if (probe->role != PROBE_EVENT)
		return probe->stack ? RING_SWITCH_STACK : RING_SWITCH;
	return probe->stack || probe->gc.edge ? RING_STACK : probe->uprobe ? RING_REGS : RING_PLAIN;
}

/* perf_event.h: config bit 0 = at the return, bits 32 to 63 = the semaphore's place in the file. */
static void attr_uprobe(const struct probes *p, const struct uprobe *u, uint32_t place,
			struct perf_event_attr *attr)
{
	attr->type = p->pmu;
	attr->config = (uint64_t)u->is_return | u->places[place].semaphore << 32;
	attr->uprobe_path = (uint64_t)(uintptr_t)u->path;
	attr->probe_offset = u->places[place].offset;
}

static void attr_of(const struct probes *p, const struct probe *probe, uint32_t place,
		    struct perf_event_attr *attr)
{
	const struct perf_format *format = &p->formats[ring_of(probe)];

	perf_attr_common(attr);
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = probe->format.id;
	if (probe->uprobe)
		attr_uprobe(p, probe->uprobe, place, attr);
	attr->sample_period = 1;
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			    PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
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
	attr->sample_stack_user = probe->gc.edge ? GC_STACK_BYTES : (probe->role == PROBE_EVENT ? p->stack_kb : PROBE_SWITCH_STACK_KB) * 1024 - 8;
}

/* Without it all events come, and rules judge them: right, and dearer. */
static void set_filter(struct probes *p, struct probe *probe, int fd)
{
	if (!probe->filter.len || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, buf_text(&probe->filter)) == 0)
		return;
	log_line(p->log, LOG_WARN, "%s/%s: the kernel does not take the filter '%s' (%s), so all these events "
		 "are looked at", probe->provider, probe->name, buf_text(&probe->filter), strerror(errno));
	buf_reset(&probe->filter);
}

static int refused(const struct probe *probe, int os_error, struct err *err)
{
	if (os_error == EACCES || os_error == EPERM)
		return err_set(err, ERR_ACCESS, "this user may not watch %s/%s: run as root, or give the program %s",
			       probe->provider, probe->name, probe->uprobe ? "CAP_SYS_ADMIN" : "CAP_PERFMON");
	if (probe->uprobe && os_error == EINVAL)
		return err_set(err, ERR_USAGE, "the kernel cannot put a probe at %s", probe->name);
	return err_os_code(err, os_error, "cannot watch %s/%s", probe->provider, probe->name);
}

static int open_place(struct probes *p, struct probe *probe, uint32_t place, unsigned cpu,
		      const struct perf_ring *ring, struct err *err)
{
	uint32_t at = cpu * p->nplaces + probe->first_place + place;
	struct perf_event_attr attr;
	int os_error, fd;

	attr_of(p, probe, place, &attr);
	fd = perf_event_fd(&attr, cpu);
	if (fd < 0 && (probe->gc.edge || (probe->throws && errno != EACCES && errno != EPERM)))
		return 0;                    /* the process by which its file was found is gone; see also add_gc() */
	os_error = fd < 0 ? errno : perf_ring_redirect(ring, fd);
	if (!os_error && ioctl(fd, PERF_EVENT_IOC_ID, &p->ids[at].id) != 0)
		os_error = errno;
	if (os_error && fd >= 0)
		close(fd);
	if (os_error)
		return refused(probe, os_error, err);
	set_filter(p, probe, fd);
	probe->fds[cpu * probe->nplaces + place] = fd;
	p->ids[at].probe = (uint32_t)(probe - p->all);
	p->ids[at].place = place;
	if (table_add(&p->by_id, hash_u64(p->ids[at].id), at))
		return err_set(err, ERR_MEMORY, "no memory for the events of rules");
	return 0;
}

int probes_open_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS], struct err *err)
{
	uint32_t i, place;
	int rc = 0;

	for (i = 0; i < PROBE_RINGS; i++) {
		memset(&rings[i], 0, sizeof(rings[i]));
		rings[i].fd = -1;
	}
	for (i = 0; !rc && i < p->n; i++) {
		uint8_t number = (uint8_t)ring_of(&p->all[i]);
		struct perf_ring *ring = &rings[number];

		if (ring->fd < 0)
			rc = perf_ring_open_probes(ring, cpu, number, ring_bytes[number], number == RING_SWITCH, err);
		for (place = 0; !rc && place < p->all[i].nplaces; place++)
			rc = open_place(p, &p->all[i], place, cpu, ring, err);
	}
	if (rc)
		probes_close_cpu(p, cpu, rings);
	return rc;
}

void probes_close_cpu(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS])
{
	uint32_t i, place, at;

	for (i = 0; i < p->n; i++) {
		struct probe *probe = &p->all[i];

		for (place = 0; place < probe->nplaces; place++) {
			int *fd = &probe->fds[cpu * probe->nplaces + place];

			at = cpu * p->nplaces + probe->first_place + place;
			if (p->ids[at].id)
				table_remove(&p->by_id, hash_u64(p->ids[at].id), at);
			p->ids[at].id = 0;
			if (*fd >= 0)
				close(*fd);
			*fd = -1;
		}
	}
	for (i = 0; i < PROBE_RINGS; i++)
		perf_ring_close(&rings[i]);
}

static void switch_one(const struct probe *probe, unsigned cpu, bool on)
{
	uint32_t i;

	for (i = 0; i < probe->nplaces; i++) {
		int fd = probe->fds[cpu * probe->nplaces + i];

		if (fd >= 0)
			ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

void probes_enable(struct probes *p, unsigned cpu, struct perf_ring rings[PROBE_RINGS], bool on)
{
	uint32_t i;

	if (rings[RING_SWITCH].fd >= 0)
		perf_ring_enable(&rings[RING_SWITCH], on);
	for (i = 0; i < p->n; i++)
		if (!p->all[i].rests_until_ns)
			switch_one(&p->all[i], cpu, on);
}

/* ---- events ---------------------------------------------------------------------------------------- */

static void rest(struct probes *p, struct probe *probe, uint64_t now_ns)
{
	unsigned cpu;

	probe->rests_until_ns = now_ns + PROBE_REST_NS;
	atomic_fetch_add(&probe->rests, 1);
	for (cpu = 0; cpu < p->ncpus; cpu++)
		switch_one(probe, cpu, false);
	if (!probe->told)
		log_line(p->log, LOG_WARN, "%s/%s happened over %u times within a second: it is not watched for "
			 "%u s, and each time that this happens; rules on it miss what happens then%s",
			 probe->provider, probe->name, probe->limit, (unsigned)(PROBE_REST_NS / NS_PER_SEC),
			 probe->uprobe ? "" : " (narrow it down with FieldFilter)");
	probe->told = true;
}

/* Counted in seconds of the events' own time. */
static bool within_rate(struct probes *p, struct probe *probe, uint64_t time_ns)
{
	if (time_ns - probe->second_ns >= NS_PER_SEC) {
		probe->second_ns = time_ns;
		probe->hits = 0;
	}
	if (!probe->rests_until_ns && ++probe->hits <= probe->limit)
		return true;
	if (!probe->rests_until_ns)
		rest(p, probe, time_ns);
	atomic_fetch_add_explicit(&probe->left_out, 1, memory_order_relaxed);
	return false;
}

static uint32_t place_of(struct probes *p, uint64_t id)
{
	uint32_t at = table_find(&p->by_id, hash_u64(id), same_id, p, &id);

	return at == TABLE_NONE ? 0 : p->ids[at].place;
}

enum probe_role probe_role(const struct probe *probe)
{
	return probe->role;
}

bool probe_pid(const struct probe *probe, const struct perf_record *r, uint32_t *pid)
{
	int64_t number;

	if (!trace_format_number(&probe->format, probe->pid, r->u.sample.raw, r->u.sample.raw_bytes, &number))
		return false;
	*pid = (uint32_t)number;
	return number > 0;
}

void probes_every(struct probes *p, enum probe_role role, uint64_t n)
{
	uint32_t i, at;

	for (i = 0; i < p->n; i++)
		for (at = 0; p->all[i].role == role && at < p->ncpus * p->all[i].nplaces; at++)
			if (p->all[i].fds[at] >= 0)
				ioctl(p->all[i].fds[at], PERF_EVENT_IOC_PERIOD, &n);
}

bool probes_take(struct probes *p, struct probe *probe, const struct perf_record *r, struct event *out)
{
	if (!within_rate(p, probe, r->time_ns))
		return false;
	out->kind = EVENT_GENERIC;
	out->stream = STREAM_EVENT;
	out->provider = probe->provider;
	out->name = probe->name;
	if (probe->throws) {
		out->name = THROW_EVENT;
		throw_read(r, &p->thrown);
		p->fields[0] = (struct event_field){.name = "ExceptionType", .type = FIELD_TEXT,
						    .v.text = p->thrown.type};
		out->fields = p->fields;
		out->nfields = 1;
	} else if (probe->uprobe) {
		out->fields = p->fields;
		out->nfields = uprobe_fields(probe->uprobe, place_of(p, r->u.sample.id), r, p->fields);
		if (probe->gc.edge) {
			gc_probe_event(&probe->gc, p->fields, out->nfields, p->gc_fields, out);
			return true;
		}
		out->hex_fields = probe->uprobe->is_usdt || probe->uprobe->is_return ? 0 : UINT64_MAX;
	} else {
		trace_format_read(&probe->format, r->u.sample.raw, r->u.sample.raw_bytes, &p->values);
		out->fields = p->values.fields;
		out->nfields = p->values.nfields;
		out->hex_fields = p->values.hex_fields;
	}
	out->payload_bytes = r->u.sample.raw_bytes;
	return true;
}

bool probes_again(const struct probe *probe, struct event *e)
{
	const char *name = probe->gc.edge ? gc_probe_second_name(&probe->gc) : NULL;

	if (!name || e->name == name)
		return false;
	e->name = name;
	return true;
}

bool probe_has_stack(const struct probe *probe)
{
	return probe->stack;
}

/* Ends of collections stay on for a second more than their beginnings, or these would seem to go on. */
static void follow_gc(struct probes *p, uint32_t end)
{
	const struct probe *begin = end ? &p->all[end - 1] : NULL;
	unsigned cpu;

	if (p->all[end].gc.edge != GC_ENDS || !begin || !begin->rests_until_ns || p->all[end].rests_until_ns)
		return;
	p->all[end].rests_until_ns = begin->rests_until_ns;
	for (cpu = 0; cpu < p->ncpus; cpu++)
		switch_one(&p->all[end], cpu, false);
}

void probes_look(struct probes *p, uint64_t now_ns)
{
	uint32_t i;
	unsigned cpu;

	for (i = 0; i < p->n; i++) {
		struct probe *probe = &p->all[i];

		if (probe->gc.edge == GC_ENDS && p->all[i - 1].rests_until_ns + NS_PER_SEC <
		    now_ns + PROBE_REST_NS)
			follow_gc(p, i);
		if (!probe->rests_until_ns || now_ns < probe->rests_until_ns)
			continue;
		probe->rests_until_ns = 0;
		probe->second_ns = probe->hits = 0;
		for (cpu = 0; cpu < p->ncpus; cpu++)
			switch_one(probe, cpu, true);
	}
}

void probes_note(const struct probes *p, char *out, size_t n)
{
	uint32_t i;

	out[0] = '\0';
	for (i = 0; i < p->n && !out[0]; i++) {
		uint64_t rests = atomic_load(&p->all[i].rests);

		if (rests)
			snprintf(out, n, "%.80s/%.80s happened too often: switched off %" PRIu64 " times, for %u s each",
				 p->all[i].provider, p->all[i].name, rests, (unsigned)(PROBE_REST_NS / NS_PER_SEC));
	}
}
