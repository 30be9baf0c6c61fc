#include "source/probe/probes_private.h"

#include "base/array.h"
#include "source/probe/tracepoint_linux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILTER_MAX_BYTES 3000u               /* the kernel's limit is just below a page */

/* Other providers belong to other sources. */
static bool is_ours(const struct need_event *e)
{
	return tracepoint_provider(e->provider) || throw_provider(e->provider);
}

static int check_one(const struct need_event *e, struct trace_format *format, struct uprobe *uprobe,
		     struct err *err)
{
	char event[PROVIDER_NAME_MAX + EVENT_NAME_MAX];
	bool throws = throw_provider(e->provider);
	uint32_t pmu;
	int rc;

	if (throws || uprobe_provider(e->provider)) {
		rc = uprobe_pmu(&pmu, err);
		return rc || throws ? rc : uprobe_resolve(e->provider, e->name, uprobe, err);
	}
	rc = tracepoint_load(e->provider, e->name, format, err);
	snprintf(event, sizeof(event), "%s/%s", e->provider, e->name);
	return rc ? rc : trace_format_check(format, event, e->filter, err);
}

int probes_check(const struct needs *needs, struct err *err)
{
	struct trace_format *format = malloc(sizeof(*format));
	struct uprobe *uprobe = malloc(sizeof(*uprobe));
	uint32_t i;
	int rc = format && uprobe ? 0 : err_memory(err, "for the format of an event");

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

static int make_probe(struct probes *p, const struct need_event *e, struct probe **out,
		      struct err *err)
{
	struct probe *probe = &p->all[p->n];
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
		rc = probe->uprobe ? uprobe_pmu(&p->pmu, err) : err_memory(err, "for a probe");
		if (!rc)
			rc = uprobe_resolve(probe->throws ? "uprobe" : e->provider, e->name,
					    probe->uprobe, err);
		if (!rc)
			probe->nplaces = probe->uprobe->n;
	} else {
		rc = tracepoint_load(e->provider, e->name, &probe->format, err);
	}
	if (rc)
		return rc;
	probe->first_place = p->nplaces;
	p->nplaces += probe->nplaces;
	*out = probe;
	return 0;
}

/* If several rules use one event, its filter passes what any of them wants. */
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
	/* The kernel knows no fields of uprobes. */
	if (probe->uprobe || !trace_filter(&probe->format, e->filter, &filter))
		probe->unfiltered = true;
	if (!probe->unfiltered)
		buf_printf(&probe->filter, "%s(%s)", probe->filter.len ? " || " : "",
			   buf_text(&filter));
	if (probe->unfiltered || probe->filter.failed || filter.failed)
		buf_reset(&probe->filter);
	buf_free(&filter);
	return 0;
}

/* Undo a probe that could not be created. */
static void take_back(struct probes *p, uint32_t n)
{
	for (; p->n > n; p->n--) {
		struct probe *probe = &p->all[p->n - 1];

		free(probe->uprobe);
		buf_free(&probe->filter);
		memset(probe, 0, sizeof(*probe));
	}
}

/*
 * Throws of C++ are seen in each C++ library that programs use now or by default, and in the
 * programs that the rule names if they run now and contain the library themselves, not stripped.
 */
static int add_throws(struct probes *p, const struct need_event *e, struct err *err)
{
	char paths[THROW_LIBRARIES_MAX + THROW_PROGRAMS_MAX][UPROBE_PATH_MAX];
	unsigned i, libraries = throw_libraries(paths), n = libraries;
	struct need_event *one = malloc(sizeof(*one));
	int rc = one ? 0 : err_memory(err, "for a probe");
	uint32_t before;

	n += throw_programs(e->filter, paths + n);
	if (!rc && !n)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "no C++ library was found whose __cxa_throw would show the "
			     "exceptions");
	for (i = 0; !rc && i < n; i++) {
		before = p->n;
		*one = *e;
		one->filter[0] = '\0';
		snprintf(one->name, sizeof(one->name), "%s:__cxa_throw", paths[i]);
		rc = add_one(p, one, err);
		if (rc && rc != ERR_MEMORY && i >= libraries) {
			/* it uses a shared library, or never throws */
			take_back(p, before);
			rc = 0;
		}
	}
	free(one);
	return rc;
}

static int add_need(struct probes *p, const struct need_event *e, struct err *err)
{
	return throw_provider(e->provider) ? add_throws(p, e, err) : add_one(p, e, err);
}

/*
 * Add wake-ups and the stacks of switches for --thread-time. The ring itself records the switches.
 */
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
	int rc = e ? 0 : err_memory(err, "for the events of threads");

	for (i = 0; !rc && i < COUNT_OF(wanted); i++) {
		if (wanted[i].role == PROBE_WAKER && !wakers)
			continue;
		strcpy(e->provider, "sched");
		strcpy(e->name, wanted[i].name);
		rc = make_probe(p, e, &probe, err);
		if (!rc && !trace_format_find(&probe->format, wanted[i].pid, &probe->pid))
			rc = err_set(err, ERR_UNSUPPORTED,
				     "this kernel's sched/%s has no %s, so thread times are not "
				     "available",
				     e->name, wanted[i].pid);
		if (rc)
			break;
		probe->role = wanted[i].role;
		probe->stack = probe->role == PROBE_SWITCH_STACK || probe->role == PROBE_WAKER;
		if (probe->role == PROBE_SWITCH_STACK)            /* the idle task has no stack */
			buf_puts(&probe->filter, "prev_pid != 0");
	}
	free(e);
	return rc;
}

/*
 * Add probes where programs collect garbage, for rules on that, as far as possible. Without them
 * the collections of .NET and Java are still seen.
 */
static int add_gc(struct probes *p, struct err *err)
{
	struct need_event *events = calloc(2 * GC_PROGRAMS_MAX, sizeof(*events));
	struct gc_probe gc[2 * GC_PROGRAMS_MAX];
	struct probe *probe;
	unsigned i, n;
	uint32_t before;

	if (!events)
		return err_memory(err, "for the events of collections");
	n = gc_probes_find(events, gc);
	for (i = 0; i < n; i++) {
		before = p->n;
		if (make_probe(p, &events[i], &probe, NULL) == 0) {
			probe->gc = gc[i];
			probe->unfiltered = true;
			if (gc[i].edge == GC_ENDS)
				/* switched off after its start: pause_gc_end() */
				probe->limit = PROBE_RATE_MAX;
			continue;
		}
		/* stripped, or the kernel has no uprobes: nothing to watch */
		take_back(p, before);
	}
	free(events);
	return 0;
}

static unsigned count_wanted(const struct probes_config *cfg)
{
	unsigned n = (capture_switches(cfg->capture) ? 4 : 0) +
		     (gc_probes_wanted(cfg->needs) ? 2 * GC_PROGRAMS_MAX : 0);
	uint32_t i;

	for (i = 0; cfg->needs && i < cfg->needs->nevents; i++) {
		const struct need_event *e = &cfg->needs->events[i];

		n += throw_provider(e->provider) ? THROW_LIBRARIES_MAX + THROW_PROGRAMS_MAX
						 : is_ours(e);
	}
	return n;
}

static void set_formats(struct probes *p)
{
	p->formats[RING_PLAIN] = (struct perf_format){.raw = true};
	p->formats[RING_REGS] = (struct perf_format){.raw = true, .nregs = PERF_REGS_COUNT};
	p->formats[RING_STACK] = (struct perf_format){.raw = true, .callchain = true,
						      .stack = p->stack_kb != 0,
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
		p->stack_kb = cfg->capture->stack_kb;
		p->kernel_stacks = !cfg->capture->no_kernel_stacks;
		p->all = calloc(wanted, sizeof(*p->all));
	}
	if (!p || !p->all)
		rc = err_memory(err, "for the events of rules");
	for (i = 0; !rc && cfg->needs && i < cfg->needs->nevents; i++)
		if (is_ours(&cfg->needs->events[i]))
			rc = add_need(p, &cfg->needs->events[i], err);
	if (!rc && gc_probes_wanted(cfg->needs))
		rc = add_gc(p, err);
	if (!rc && capture_switches(cfg->capture))
		rc = add_time(p, cfg->capture->wakers, err);
	if (!rc) {
		p->events = calloc((size_t)p->nplaces * cfg->ncpus, sizeof(*p->events));
		rc = p->events ? 0 : err_memory(err, "for the events of rules");
	}
	for (i = 0; !rc && i < p->nplaces * cfg->ncpus; i++)
		p->events[i].fd = -1;
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
		free(p->all[i].uprobe);
	}
	free(p->all);
	free(p->events);
	table_free(&p->by_id);
	free(p);
}
