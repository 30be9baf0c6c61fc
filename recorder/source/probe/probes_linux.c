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

static struct probe *find_probe(struct probes *p, const char *provider, const char *name)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (p->all[i].role == PROBE_EVENT && strcmp(p->all[i].provider, provider) == 0 &&
		    strcmp(p->all[i].name, name) == 0)
			return &p->all[i];
	return NULL;
}

static void probe_free(struct probe *probe)
{
	buf_free(&probe->filter);
	free(probe->uprobe);
}

/* Find where it goes, or its format. */
static int resolve(struct probes *p, struct probe *probe, struct err *err)
{
	int rc;

	probe->throws = throw_provider(probe->provider);
	if (!probe->throws && !uprobe_provider(probe->provider))
		return tracepoint_load(probe->provider, probe->name, &probe->format, err);
	probe->limit = PROBE_RATE_STACK_MAX;
	probe->uprobe = calloc(1, sizeof(*probe->uprobe));
	rc = probe->uprobe ? uprobe_pmu(&p->pmu, err) : err_memory(err, "for a probe");
	if (!rc)
		rc = uprobe_resolve(probe->throws ? "uprobe" : probe->provider, probe->name,
				    probe->uprobe, err);
	probe->nplaces = rc ? 0 : probe->uprobe->n;
	return rc;
}

static int make_probe(struct probes *p, const char *provider, const char *name, struct probe **out,
		      struct err *err)
{
	struct probe *probe = &p->all[p->n];
	int rc;

	*probe = (struct probe){.limit = PROBE_RATE_MAX, .nplaces = 1, .first_place = p->nplaces,
				.filter.max_bytes = FILTER_MAX_BYTES};
	strcpy(probe->provider, provider);
	strcpy(probe->name, name);
	rc = resolve(p, probe, err);
	if (rc) {
		probe_free(probe);
		return rc;
	}
	p->n++;
	p->nplaces += probe->nplaces;
	*out = probe;
	return 0;
}

/* If several rules use one event, its filter passes what any of them wants. */
static int add_one(struct probes *p, const struct need_event *e, const char *name, struct err *err)
{
	struct probe *probe = find_probe(p, e->provider, name);
	struct buf filter = {0};
	int rc = probe ? 0 : make_probe(p, e->provider, name, &probe, err);

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

/*
 * Throws of C++ are seen in each C++ library that programs use now or by default, and in the
 * programs that the rule names if they run now and contain the library themselves, not stripped.
 */
static int add_throws(struct probes *p, const struct need_event *e, struct err *err)
{
	char paths[THROW_LIBRARIES_MAX + THROW_PROGRAMS_MAX][UPROBE_PATH_MAX];
	unsigned i, libraries = throw_libraries(paths), n = libraries;
	char name[EVENT_NAME_MAX];
	int rc = 0;

	n += throw_programs(e->filter, paths + n);
	if (!n)
		return err_set(err, ERR_UNSUPPORTED,
			       "no C++ library was found whose __cxa_throw would show the "
			       "exceptions");
	for (i = 0; !rc && i < n; i++) {
		snprintf(name, sizeof(name), "%s:__cxa_throw", paths[i]);
		rc = add_one(p, e, name, err);
		/* A program may use a shared library, or never throw. */
		if (rc != ERR_MEMORY && i >= libraries)
			rc = 0;
	}
	return rc;
}

static int add_event(struct probes *p, const struct need_event *e, struct err *err)
{
	return throw_provider(e->provider) ? add_throws(p, e, err) : add_one(p, e, e->name, err);
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
	struct probe *probe;
	size_t i;
	int rc;

	for (i = 0; i < COUNT_OF(wanted); i++) {
		if (wanted[i].role == PROBE_WAKER && !wakers)
			continue;
		rc = make_probe(p, "sched", wanted[i].name, &probe, err);
		if (rc)
			return rc;
		if (!trace_format_find(&probe->format, wanted[i].pid, &probe->pid))
			return err_set(err, ERR_UNSUPPORTED,
				       "this kernel's sched/%s has no %s, so thread times are not "
				       "available", probe->name, wanted[i].pid);
		probe->role = wanted[i].role;
		probe->stack = probe->role == PROBE_SWITCH_STACK || probe->role == PROBE_WAKER;
		if (probe->role == PROBE_SWITCH_STACK)            /* the idle task has no stack */
			buf_puts(&probe->filter, "prev_pid != 0");
	}
	return 0;
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

	if (!events)
		return err_memory(err, "for the events of collections");
	n = gc_probes_find(events, gc);
	for (i = 0; i < n; i++) {
		/* A program may be stripped, or the kernel have no uprobes. */
		if (make_probe(p, events[i].provider, events[i].name, &probe, NULL))
			continue;
		probe->gc = gc[i];
		probe->unfiltered = true;
		if (gc[i].edge == GC_ENDS)           /* switched off by pause_gc_end() */
			probe->limit = PROBE_RATE_MAX;
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
		p->reader = cfg->reader;
		p->ncpus = cfg->ncpus;
		p->stack_kb = cfg->capture->stack_kb;
		p->kernel_stacks = !cfg->capture->no_kernel_stacks;
		p->all = calloc(wanted, sizeof(*p->all));
	}
	if (!p || !p->all)
		rc = err_memory(err, "for the events of rules");
	for (i = 0; !rc && cfg->needs && i < cfg->needs->nevents; i++)
		if (is_ours(&cfg->needs->events[i]))
			rc = add_event(p, &cfg->needs->events[i], err);
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
	for (i = 0; i < p->n; i++)
		probe_free(&p->all[i]);
	free(p->all);
	free(p->events);
	table_free(&p->by_id);
	free(p);
}
