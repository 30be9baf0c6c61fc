#include "source/probe/probes_private.h"

#include "base/array.h"
#include "base/text.h"
#include "source/conditions.h"
#include "source/probe/tracepoint_linux.h"
#include "source/probe/uprobe_text_linux.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNTER_RATE_PER_CPU 1000u           /* records a second */
#define FILTER_MAX_BYTES 3000u               /* the kernel's limit is just below a page */

/* Other providers belong to other sources. */
static bool is_ours(const struct need_event *e)
{
	return tracepoint_provider(e->provider) || throw_provider(e->provider) ||
	       (e->asked && cpu_counter_provider(e->provider));
}

/* Some of *programs, made at first use. */
static int get_programs(struct programs **programs, struct log *log, struct err *err)
{
	return *programs ? 0 : programs_new(log, programs, err);
}

/* Whether a probe has the fields that a rule names. */
static int check_fields(const struct need_event *e, const struct uprobe *uprobe, struct err *err)
{
	struct known_field fields[STAPSDT_ARGUMENTS_MAX];
	char event[PROVIDER_NAME_MAX + EVENT_NAME_MAX];
	uint32_t n = uprobe_field_names(uprobe, fields);
	int rc;

	snprintf(event, sizeof(event), "%s:%s", e->provider, e->name);
	rc = conditions_check(fields, n, true, event, e->filter, err);
	return rc ? rc : conditions_check_field(fields, n, true, event, e->id_field, err);
}

/* A probe in a program; uprobe: room. */
static int check_uprobe(const struct need_event *e, struct programs **programs,
			struct uprobe *uprobe, struct err *err)
{
	uint32_t pmu;
	int rc = uprobe_pmu(&pmu, err);

	if (rc || throw_provider(e->provider))
		return throw_is_java(e->provider) ? 0 : rc;
	rc = get_programs(programs, NULL, err);
	if (!rc)
		rc = programs_resolve(*programs, e->provider, e->name, uprobe, err);
	if (rc)
		return rc;
	programs_close(*programs, uprobe->file);
	rc = uprobe_texts_parse(uprobe, e->texts, e->texts_ms, err);
	return rc ? rc : check_fields(e, uprobe, err);
}

static int check_one(const struct need_event *e, struct trace_format *format, struct err *err)
{
	char event[PROVIDER_NAME_MAX + EVENT_NAME_MAX];
	int rc;

	rc = tracepoint_load(e->provider, e->name, format, err);
	snprintf(event, sizeof(event), "%s/%s", e->provider, e->name);
	return rc ? rc : trace_format_check(format, event, e->filter, e->id_field, err);
}

/* ---- patterns -------------------------------------------------------------------------------- */

static bool is_pattern(const struct need_event *e)
{
	return e->asked && tracepoint_provider(e->provider) && !uprobe_provider(e->provider) &&
	       strchr(e->name, '*');
}

/* The tracepoints that a pattern means, for a while. */
struct matching {
	const struct need_event *e;
	char (*names)[TRACE_NAME_MAX];       /* NULL = they are only counted */
	uint32_t n;
};

static int add_matching(void *ctx, const char *provider, const char *name)
{
	struct matching *m = ctx;

	if (strcmp(provider, m->e->provider) != 0 || fnmatch(m->e->name, name, 0) != 0 ||
	    strlen(name) >= TRACE_NAME_MAX)
		return 0;
	if (m->names && m->n < PROBES_OF_PATTERN_MAX)
		strcpy(m->names[m->n], name);
	m->n++;
	return 0;
}

/* *names: PROBES_OF_PATTERN_MAX of them, or NULL. */
static int match_pattern(struct matching *m, struct err *err)
{
	struct trace_format *format;
	char prefix[PROVIDER_NAME_MAX + 1];
	int rc;

	snprintf(prefix, sizeof(prefix), "%s/", m->e->provider);
	rc = tracepoint_each(prefix, add_matching, m, err);
	if (rc && rc != ERR_NOT_FOUND)
		return rc;
	if (m->n > PROBES_OF_PATTERN_MAX)
		return err_set(err, ERR_USAGE,
			       "%s:%s means %" PRIu32 " tracepoints, and %u is the limit: name "
			       "fewer of them", m->e->provider, m->e->name, m->n,
			       PROBES_OF_PATTERN_MAX);
	if (m->n)
		return 0;
	/* Its error names what is near. */
	format = malloc(sizeof(*format));
	rc = format ? tracepoint_load(m->e->provider, m->e->name, format, err)
		    : err_memory(err, "for the format of an event");
	free(format);
	return rc;
}

static int check_pattern(const struct need_event *e, struct err *err)
{
	struct matching m = {.e = e};

	return match_pattern(&m, err);
}

int probes_check(const struct needs *needs, struct err *err)
{
	struct trace_format *format = malloc(sizeof(*format));
	struct uprobe *uprobe = malloc(sizeof(*uprobe));
	struct programs *programs = NULL;
	struct cpu_counter counter;
	uint32_t i;
	int rc = format && uprobe ? 0 : err_memory(err, "for the format of an event");

	for (i = 0; !rc && i < needs->nevents; i++) {
		const struct need_event *e = &needs->events[i];

		if (e->asked && cpu_counter_provider(e->provider))
			rc = cpu_counter_find(e->name, &counter, err);
		else if (throw_provider(e->provider) || uprobe_provider(e->provider))
			rc = check_uprobe(e, &programs, uprobe, err);
		else if (is_pattern(e))
			rc = check_pattern(e, err);
		else if (is_ours(e))
			rc = check_one(e, format, err);
	}
	programs_free(programs);
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

static void probe_free(struct probes *p, struct probe *probe)
{
	unsigned i;

	for (i = 0; i < UPROBE_PLACES_MAX; i++)
		if (probe->in_kernel[i] >= 0)
			close(probe->in_kernel[i]);
	for (i = 0; i < BPF_WANTS_MAX; i++)
		free(probe->conditions[i]);
	buf_free(&probe->filter);
	buf_free(&probe->processes);
	if (probe->uprobe)
		programs_close(p->programs, probe->uprobe->file);
	free(probe->uprobe);
}

static int take_place(struct program_library *library, const char *name, struct uprobe *out)
{
	const char *colon = strrchr(name, ':');
	unsigned i;

	for (i = 0; i < PROGRAM_FUNCTIONS_MAX && library->functions[i]; i++) {
		if (library->places[i].file < 0 || strcmp(colon + 1, library->functions[i]) != 0)
			continue;
		*out = library->places[i];
		library->places[i].file = -1;
		return 0;
	}
	return ERR_NOT_FOUND;
}

/* Find where it goes, or its format. */
static int resolve(struct probes *p, struct probe *probe, struct err *err)
{
	int rc;

	if (cpu_counter_provider(probe->provider)) {
		rc = cpu_counter_find(probe->name, &probe->counter, err);
		if (!rc)
			strcpy(probe->name, probe->counter.name);
		probe->period = probe->old_period = probe->counter.period;
		probe->limit = COUNTER_RATE_PER_CPU * p->ncpus;
		probe->unfiltered = true;
		return rc;
	}
	probe->throws = throw_kind_of(probe->provider, probe->name);
	if (!probe->throws && !uprobe_provider(probe->provider))
		return tracepoint_load(probe->provider, probe->name, &probe->format, err);
	probe->heap = heap_probe_of(probe->provider, probe->name);
	probe->limit = probe->heap ? HEAP_RATE : PROBE_RATE_STACK_MAX;
	rc = get_programs(&p->programs, p->log, err);
	probe->uprobe = rc ? NULL : calloc(1, sizeof(*probe->uprobe));
	if (!rc && !probe->uprobe)
		rc = err_memory(err, "for a probe");
	if (rc)
		return rc;
	probe->uprobe->file = -1;
	rc = uprobe_pmu(&p->pmu, err);
	if (!rc && p->library)
		rc = take_place(p->library, probe->name, probe->uprobe);
	else if (!rc)
		rc = programs_resolve(p->programs, probe->throws ? "uprobe" : probe->provider,
				      probe->name, probe->uprobe, err);
	probe->nplaces = rc ? 0 : probe->uprobe->n;
	return rc;
}

static int make_probe(struct probes *p, const char *provider, const char *name, struct probe **out,
		      struct err *err)
{
	struct probe *probe = &p->all[p->n];
	unsigned i;
	int rc;

	if (p->n == p->room)
		return ERR_LIMIT;
	*probe = (struct probe){.limit = PROBE_RATE_MAX, .nplaces = 1, .first_place = p->nused,
				.filter.max_bytes = FILTER_MAX_BYTES};
	for (i = 0; i < UPROBE_PLACES_MAX; i++)
		probe->in_kernel[i] = -1;
	strcpy(probe->provider, provider);
	strcpy(probe->name, name);
	rc = resolve(p, probe, err);
	if (rc) {
		probe_free(p, probe);
		return rc;
	}
	p->n++;
	p->nused += probe->nplaces;
	*out = probe;
	return 0;
}

static void log_no_filters(struct probes *p, const struct err *why)
{
	if (!p->no_filters)
		log_line(p->log, LOG_WARN,
			 "%s; so calls of all processes reach the recorder, and count for the "
			 "limit of %u a second", why->text, PROBE_RATE_STACK_MAX);
	p->no_filters = true;
}

/* Note what a rule wants of a probe in a program; what cannot be told to the kernel is all. */
static int add_want(struct probes *p, struct probe *probe, const struct need_event *e,
		    struct err *err)
{
	unsigned n = probe->nwants;
	struct err why;
	int rc;

	if (!p->filters && !p->no_filters && (e->whose.n || e->filter[0])) {
		rc = bpf_filters_new(&p->filters, &why);
		if (rc == ERR_MEMORY)
			return err_memory(err, "for filters of probes");
		if (rc)
			log_no_filters(p, &why);
	}
	if (n == BPF_WANTS_MAX || !p->filters) {
		probe->unfiltered = true;
		return 0;
	}
	probe->conditions[n] = text_dup(e->filter, SIZE_MAX);
	if (!probe->conditions[n])
		return err_memory(err, "for filters of probes");
	probe->nwants++;
	probe->unfiltered |= !bpf_filters_want(p->filters, &e->whose, probe->conditions[n],
					       &probe->wants[n]);
	return 0;
}

/* Load the kernel's filters of a probe, once all rules have said what they want. */
static void load_filters(struct probes *p, struct probe *probe)
{
	struct err why;
	unsigned i;

	for (i = 0; !probe->unfiltered && probe->nwants && i < probe->nplaces; i++) {
		probe->in_kernel[i] = bpf_filters_load(p->filters, probe->uprobe, i, probe->wants,
						       probe->nwants, &why);
		if (probe->in_kernel[i] < 0 && why.text[0])
			log_no_filters(p, &why);
	}
	for (i = 0; i < probe->nwants; i++)
		probe->by_process |= probe->wants[i].left_out_bit || probe->wants[i].npids;
	probe->by_process &= probe->in_kernel[0] >= 0;
}

/* If several rules use one event, its filter passes what any of them wants. */
static int add_one(struct probes *p, const struct need_event *e, const char *name, struct err *err)
{
	struct probe *probe = find_probe(p, e->provider, name);
	struct buf filter = {0};
	int rc = probe ? 0 : make_probe(p, e->provider, name, &probe, err);

	if (rc)
		return rc;
	probe->asked |= e->asked;
	probe->ruled |= !e->asked;
	if (!e->processes[0])
		probe->unlimited_by_process = true;
	buf_printf(&probe->processes, "%s;", e->processes);
	if (probe->processes.failed)
		return err_memory(err, "for a probe");
	if (e->stack) {
		probe->stack = true;
		probe->limit = probe->period || probe->heap ? probe->limit : PROBE_RATE_STACK_MAX;
	}
	if (probe->uprobe && *e->texts)
		rc = uprobe_texts_parse(probe->uprobe, e->texts, e->texts_ms, err);
	if (probe->uprobe)
		return rc ? rc : add_want(p, probe, e, err);
	if (!probe->period && !trace_filter(&probe->format, e->filter, &filter))
		probe->unfiltered = true;
	if (!probe->unfiltered)
		buf_printf(&probe->filter, "%s(%s)", probe->filter.len ? " || " : "",
			   buf_text(&filter));
	if (probe->unfiltered || probe->filter.failed || filter.failed)
		buf_reset(&probe->filter);
	buf_free(&filter);
	return 0;
}

/* Add the places of a file. returns  as add_one() of the first one, which all versions have */
static int add_throws_of(struct probes *p, const struct need_event *e, const char *path,
			 struct err *err)
{
	char name[EVENT_NAME_MAX];
	const char *function;
	int rc = 0, other;
	unsigned i;

	for (i = 0; (function = throw_function(e->provider, i)) != NULL; i++) {
		snprintf(name, sizeof(name), "%s:%s", path, function);
		other = add_one(p, e, name, i ? NULL : err);
		if (other == ERR_MEMORY)
			return err_memory(err, "for the exceptions of programs");
		rc = i ? rc : other;
	}
	return rc;
}

void probes_add_library(struct probes *p, const struct need_event *need)
{
	struct err err;

	add_throws_of(p, need, p->library->path, &err);
}

void probes_load_filters(struct probes *p, uint32_t from)
{
	for (; from < p->n; from++)
		load_filters(p, &p->all[from]);
}

/*
 * Throws of Java are seen as far as possible: a rule on exceptions of .NET asks for them too, and
 * whoever wrote it may have no right to probes.
 */
static int add_java_throws(struct probes *p, const struct need_event *e, struct err *err)
{
	char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX];
	struct program_files files;
	unsigned n = throw_libraries(p->programs, e->provider, paths, &files), i;
	struct source_part uprobes;
	struct err why;
	int rc = probes_part(PROBES_IN_PROGRAMS, &uprobes, &why);

	if (rc && !n)
		return 0;
	for (i = 0; !rc && i < n; i++)
		rc = add_throws_of(p, e, paths[i], &why);
	if (!rc)
		rc = probes_later_want(p, e, &files, &why);
	if (rc == ERR_MEMORY)
		return err_memory(err, "for the exceptions of programs");
	if (rc)
		log_line(p->log, LOG_WARN, "exceptions of Java are not seen: %s", why.text);
	return 0;
}

/*
 * Throws of C++ are seen in each C++ library that programs use now or by default, and in the
 * programs that the rule names if they run now and contain the library themselves, not stripped.
 */
static int add_throws(struct probes *p, const struct need_event *e, struct err *err)
{
	char paths[THROW_LIBRARIES_MAX + THROW_PROGRAMS_MAX][UPROBE_PATH_MAX];
	struct program_files files;
	unsigned i, libraries, n;
	int rc = get_programs(&p->programs, p->log, err);

	if (rc)
		return rc;
	if (throw_is_java(e->provider))
		return add_java_throws(p, e, err);
	n = libraries = throw_libraries(p->programs, e->provider, paths, &files);
	n += throw_programs(p->programs, e->filter, paths + n);
	if (!n)
		return err_set(err, ERR_UNSUPPORTED,
			       "no C++ library was found whose __cxa_throw would show the "
			       "exceptions");
	for (i = 0; !rc && i < n; i++) {
		rc = add_throws_of(p, e, paths[i], err);
		/* A program may use a shared library, or never throw. */
		if (rc != ERR_MEMORY && i >= libraries)
			rc = 0;
	}
	return rc;
}

static int add_pattern(struct probes *p, const struct need_event *e, struct err *err)
{
	struct matching m = {.e = e, .names = malloc(PROBES_OF_PATTERN_MAX * TRACE_NAME_MAX)};
	uint32_t i;
	int rc = m.names ? match_pattern(&m, err) : err_memory(err, "for the events of a pattern");

	for (i = 0; !rc && i < m.n; i++)
		rc = add_one(p, e, m.names[i], err);
	free(m.names);
	return rc;
}

static int add_event(struct probes *p, const struct need_event *e, struct err *err)
{
	if (is_pattern(e))
		return add_pattern(p, e, err);
	return throw_provider(e->provider) ? add_throws(p, e, err) : add_one(p, e, e->name, err);
}

/* Let a program write switches and wake-ups, where the kernel takes one. */
static int add_switches(struct probes *p, struct probe *change, struct probe *wakeup,
			struct err *err)
{
	struct err why;
	int rc = switches_new(&change->format, &wakeup->format, p->ncpus, !p->untyped,
			      &p->switches, &why);

	if (rc == ERR_MEMORY)
		return err_memory(err, "for a program at switches");
	if (rc) {
		log_line(p->log, LOG_INFO, "each context switch costs more than it must: %s",
			 why.text);
		buf_puts(&change->filter, "prev_pid != 0");       /* the idle task has no stack */
		return 0;
	}
	if (!switches_stack_bytes(p->switches))
		log_line(p->log, LOG_INFO, "each context switch costs a third more than it must: "
			 "the kernel does not tell its types, or not as this recorder knows them "
			 "(/sys/kernel/btf/vmlinux)");
	change->in_program = true;
	wakeup->nplaces = 0;
	return 0;
}

/*
 * Add wake-ups and the stacks of switches for --thread-time. The ring itself records the switches,
 * or a program does.
 */
static int add_time(struct probes *p, const struct capture *capture, struct err *err)
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
	struct probe *probe, *first = &p->all[p->n];
	size_t i;
	int rc;

	for (i = 0; i < COUNT_OF(wanted); i++) {
		/* Who wakes a Python thread may have the lock that it waited for. */
		if (wanted[i].role == PROBE_WAKER && !capture->wakers && capture->no_python)
			continue;
		rc = make_probe(p, "sched", wanted[i].name, &probe, err);
		if (rc)
			return rc;
		if (!trace_format_find(&probe->format, wanted[i].pid, &probe->pid))
			return err_set(err, ERR_UNSUPPORTED,
				       "this kernel's sched/%s has no %s, so thread times are not "
				       "available", probe->name, wanted[i].pid);
		probe->role = wanted[i].role;
		probe->stack = probe->role == PROBE_SWITCH_STACK ||
			       (probe->role == PROBE_WAKER && capture->wakers);
		if (!probe->stack && probe->role == PROBE_WAKER)
			probe->paused_until_ns = UINT64_MAX;      /* probes_want() */
	}
	return add_switches(p, first, first + 1, err);
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
	int rc = events ? get_programs(&p->programs, p->log, err)
			: err_memory(err, "for the events of collections");

	n = rc ? 0 : gc_probes_find(p->programs, events, gc);
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
	return rc;
}

static unsigned count_wanted(const struct probes_config *cfg)
{
	unsigned n = (capture_switches(cfg->capture) ? 4 : 0) +
		     (gc_probes_wanted(cfg->needs) ? 2 * GC_PROGRAMS_MAX : 0);
	uint32_t i;

	for (i = 0; cfg->needs && i < cfg->needs->nevents; i++) {
		const struct need_event *e = &cfg->needs->events[i];

		n += throw_provider(e->provider) ? 2 * THROW_LIBRARIES_MAX * THROW_PLACES_MAX
		     : is_pattern(e)		 ? PROBES_OF_PATTERN_MAX
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
	p->formats[RING_SWITCH_STACK].program_bytes = switches_stack_bytes(p->switches);
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
		p->untyped = cfg->untyped;
		p->stack_kb = cfg->capture->stack_kb;
		p->kernel_stacks = !cfg->capture->no_kernel_stacks;
		p->room = wanted;
		p->all = calloc(wanted, sizeof(*p->all));
	}
	if (!p || !p->all || heap_blocks_init(&p->heap, HEAP_BLOCKS_MAX))
		rc = err_memory(err, "for the events of rules");
	for (i = 0; !rc && cfg->needs && i < cfg->needs->nevents; i++)
		if (is_ours(&cfg->needs->events[i]))
			rc = add_event(p, &cfg->needs->events[i], err);
	if (!rc && gc_probes_wanted(cfg->needs))
		rc = add_gc(p, err);
	if (!rc && capture_switches(cfg->capture))
		rc = add_time(p, cfg->capture, err);
	if (!rc) {
		probes_load_filters(p, 0);
		p->nplaces = p->nused + (p->later ? p->room - p->n : 0);
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
		probe_free(p, &p->all[i]);
	probes_later_free(p);
	programs_free(p->programs);
	bpf_filters_free(p->filters);
	switches_free(p->switches);
	heap_blocks_free(&p->heap);
	free(p->all);
	free(p->events);
	table_free(&p->by_id);
	free(p);
}
