/* The content of probes' records, and the limit of their rate; see probes_linux.h. */
#include "source/probe/probes_private.h"
#include "source/probe/uprobe_text_linux.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define COUNTER_STEP 4u                      /* its period becomes so much longer */
#define COUNTER_PERIOD_MAX (1ull << 50)
#define COUNTER_KEEPS_NS (10 * NS_PER_SEC)

/* The name that a rule uses; for collections, which rules do not name, whose they are. */
static void put_probe_name(const struct probe *probe, char *out, size_t n)
{
	static const char *const programs[] = {"CPython", "V8", "HotSpot"};

	if (probe->gc.edge)
		snprintf(out, n, "collections of %s in %.*s", programs[probe->gc.program],
			 (int)strcspn(probe->name, ":"), probe->name);
	else
		snprintf(out, n, "%s%c%s", probe->provider, probe->name[0] == '/' ? ':' : '/',
			 probe->name);
}

static void pause_and_log(struct probes *p, struct probe *probe, unsigned limit,
			  uint64_t now_ns)
{
	char name[PROVIDER_NAME_MAX + EVENT_NAME_MAX];

	put_probe_name(probe, name, sizeof(name));
	atomic_fetch_add(&probe->npauses, 1);
	probe_pause(p, probe, now_ns + PROBE_PAUSE_NS);
	if (!probe->pause_logged)
		log_line(p->log, LOG_WARN,
			 "%s happened more than %u times in a second%s: switched off for %u s, now "
			 "and each time this happens; rules on it miss what happens meanwhile%s",
			 name, limit,
			 limit == probe->limit ? "" : " in processes that no rule means",
			 (unsigned)(PROBE_PAUSE_NS / NS_PER_SEC),
			 probe->in_kernel[0] >= 0
				 ? "" : " (narrow it down with FieldFilter or Process)");
	probe->pause_logged = true;
}

/* One that was asked for: the kernel counts the rest of the second. */
static bool hold_and_log(struct probes *p, struct probe *probe, uint64_t time_ns)
{
	char name[PROVIDER_NAME_MAX + EVENT_NAME_MAX];

	/* The kernel writes one more record, which it counts too. */
	probe->left_out += !probe->held || time_ns < probe->held_ns;
	if (probe->held)
		return false;
	probe->held = true;
	/* First: what the kernel counts is not counted here, too. */
	probe->held_ns = os_now_ns();
	probe->held_from = probe_hold(p, probe, true);
	if (probe->pause_logged)
		return false;
	probe->pause_logged = true;
	put_probe_name(probe, name, sizeof(name));
	log_line(p->log, LOG_WARN,
		 "%s happens more than %u times in a second: what exceeds that is counted as lost, "
		 "now and in each such second", name, probe->limit);
	return false;
}

/* One of so many is recorded from now on; the records before say how many they stood for. */
static void set_period(struct probes *p, struct probe *probe, uint64_t period)
{
	probe->old_period = probe->period;
	probe->period = period;
	probe_set_period(p, probe, period);
	probe->switched_ns = os_now_ns();
	probe->rate = (struct probe_rate){.second_ns = probe->switched_ns};
}

/* A counter that is too fast loses nothing: each of its records stands for more. */
static void count_counter(struct probes *p, struct probe *probe, uint64_t time_ns)
{
	struct probe_rate *rate = &probe->rate;

	if (time_ns < probe->switched_ns)
		return;
	if (time_ns - rate->second_ns >= NS_PER_SEC)
		*rate = (struct probe_rate){.second_ns = time_ns};
	if (++rate->hits <= probe->limit || probe->period > COUNTER_PERIOD_MAX)
		return;
	set_period(p, probe, probe->period * COUNTER_STEP);
	if (!probe->pause_logged)
		log_line(p->log, LOG_INFO,
			 "%s: over %u stacks a second; one of %" PRIu64 " is recorded until there "
			 "are fewer, and counts for so many", probe->name, probe->limit,
			 probe->period);
	probe->pause_logged = true;
}

/* Once a second: back towards what was asked for. */
static void look_at_counter(struct probes *p, struct probe *probe, uint64_t now_ns)
{
	bool slow = now_ns > probe->rate.second_ns + 2 * NS_PER_SEC ||
		    probe->rate.hits < probe->limit / (4 * COUNTER_STEP);

	if (probe->period > probe->counter.period && slow &&
	    now_ns > probe->switched_ns + COUNTER_KEEPS_NS)
		set_period(p, probe, probe->period / COUNTER_STEP);
}

/* Count per second by the events' own times. */
static bool within_rate(struct probes *p, struct probe *probe, uint64_t time_ns)
{
	struct probe_rate *rate = &probe->rate;

	if (probe->period) {
		count_counter(p, probe, time_ns);
		return true;
	}
	if (time_ns - rate->second_ns >= NS_PER_SEC && !probe->held)
		*rate = (struct probe_rate){.second_ns = time_ns};
	if (probe->asked)
		return (!probe->held && ++rate->hits <= probe->limit) ||
		       hold_and_log(p, probe, time_ns);
	if (!probe->paused_until_ns && ++rate->hits <= probe->limit)
		return true;
	if (!probe->paused_until_ns)
		pause_and_log(p, probe, probe->limit, time_ns);
	atomic_fetch_add_explicit(&probe->nleft_out, 1, memory_order_relaxed);
	return false;
}

/* ---- processes that no rule means ------------------------------------------------------------ */

void probes_look_at(struct probes *p, const struct process *process, uint64_t time_ns)
{
	if (p->filters)
		bpf_filters_look(p->filters, process, time_ns);
}

uint64_t probes_missed(struct probes *p)
{
	return (p->filters ? bpf_filters_missed(p->filters) : 0) +
	       (p->switches ? switches_missed(p->switches) : 0);
}

/* What was seen of it before may be from before it executed its program. */
static void look_once(struct probes *p, const struct process *process, uint64_t time_ns)
{
	uint32_t *seen = &p->seen[process->number % PROBES_SEEN];

	if (*seen != process->number + 1 && bpf_filters_look(p->filters, process, time_ns))
		*seen = process->number + 1;
}

/*
 * Whether a hit is of a process that some rule means. One that is not came before the kernel knew;
 * it does not count for the rule's limit.
 */
static bool is_wanted(struct probes *p, struct probe *probe, const struct process *process,
		      uint64_t time_ns)
{
	unsigned i;

	if (!probe->by_process || !process)
		return true;
	for (i = 0; i < probe->nwants; i++)
		if (bpf_filters_pass(p->filters, &probe->wants[i], process)) {
			look_once(p, process, time_ns);
			return true;
		}
	bpf_filters_look(p->filters, process, time_ns);
	if (time_ns - probe->unwanted.second_ns >= NS_PER_SEC)
		probe->unwanted = (struct probe_rate){.second_ns = time_ns};
	if (!probe->paused_until_ns && ++probe->unwanted.hits > PROBE_RATE_MAX)
		pause_and_log(p, probe, PROBE_RATE_MAX, time_ns);
	return false;
}

bool probe_leaves_out(struct probes *p, struct probe *probe, uint64_t time_ns)
{
	if (!probe->asked || probe->ruled)
		return false;
	if (time_ns - probe->unwanted.second_ns >= NS_PER_SEC)
		probe->unwanted = (struct probe_rate){.second_ns = time_ns};
	if (!probe->held && ++probe->unwanted.hits > PROBE_RATE_MAX)
		hold_and_log(p, probe, time_ns);
	return true;
}

enum probe_role probe_role(const struct probe *probe)
{
	return probe->role;
}

bool probe_pid(const struct probe *probe, const struct perf_record *r, uint32_t *pid)
{
	int64_t number;

	if (!trace_format_number(&probe->format, probe->pid, r->u.sample.raw, r->u.sample.raw_bytes,
				 &number))
		return false;
	*pid = (uint32_t)number;
	return number > 0;
}

void probes_want(struct probes *p, enum probe_role role, bool on)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (p->all[i].role == role)
			probe_pause(p, &p->all[i], on ? 0 : UINT64_MAX);
}

const struct switches *probes_switches(const struct probes *p)
{
	return p ? p->switches : NULL;
}

void probes_every(struct probes *p, enum probe_role role, uint64_t n)
{
	uint32_t at;

	if (p->switches && role == PROBE_SWITCH_STACK) {
		switches_every(p->switches, n);
		return;
	}
	for (at = 0; at < p->ncpus * p->nplaces; at++)
		if (p->events[at].fd >= 0 && p->all[p->events[at].probe].role == role)
			ioctl(p->events[at].fd, PERF_EVENT_IOC_PERIOD, &n);
}

bool probes_take(struct probes *p, struct probe *probe, const struct perf_record *r,
		 struct event *out)
{
	uint64_t start_ns = out->process ? out->process->start_ns : 0;

	if ((probe->gc.edge && !gc_probe_is_of(&probe->gc, r->pid, start_ns)) ||
	    !is_wanted(p, probe, out->process, r->time_ns) ||
	    !within_rate(p, probe, r->time_ns))
		return false;
	out->kind = EVENT_GENERIC;
	out->stream = STREAM_EVENT;
	out->provider = probe->provider;
	out->name = probe->name;
	if (probe->period)
		return true;
	if (probe->throws) {
		out->name = THROW_EVENT;
		if (probe->throws == THROW_JAVA)
			return true;
		throw_read(probe->throws, p->reader, r, &p->thrown);
		if (throw_is_of_runtime(&p->thrown))
			return false;
		out->fields = p->fields;
		out->nfields = throw_fields(p->thrown.type, p->thrown.message, p->fields);
	} else if (probe->uprobe) {
		out->fields = p->fields;
		out->nfields = uprobe_fields(probe->uprobe, probe->place, r, p->fields);
		if (probe->uprobe->ntexts)
			out->nfields = uprobe_texts_read(probe->uprobe, p->reader, r, os_now_ns(),
							 p->texts, p->fields, out->nfields);
		if (probe->gc.edge) {
			gc_probe_event(&probe->gc, p->fields, out->nfields, r->tid, &p->generations,
				       p->gc_fields, out);
			return true;
		}
		if (probe->heap)
			return heap_blocks_take(&p->heap, probe->heap, out);
		out->hex_fields =
			probe->uprobe->is_usdt || probe->uprobe->is_return ? 0 : UINT64_MAX;
	} else {
		trace_format_read(&probe->format, r->u.sample.raw, r->u.sample.raw_bytes,
				  &p->values);
		out->fields = p->values.fields;
		out->nfields = p->values.nfields;
		out->hex_fields = p->values.hex_fields;
	}
	out->payload_bytes = r->u.sample.raw_bytes;
	return true;
}

/* Its registers are the arguments of the library's probes: asm/perf_regs.h. */
bool probes_take_block(struct probes *p, const struct perf_record *r, struct event *out)
{
	enum { DX = 3, SI = 4, DI = 5, ARGUMENTS = 3 };
	static const struct { const char *name; unsigned reg; } arguments[ARGUMENTS] = {
		{"Arg1", DI}, {"Arg2", SI}, {"Arg3", DX}};
	enum heap_probe what = r->u.sample.id == HEAP_ALLOC ? HEAP_ALLOC
			       : r->u.sample.id == HEAP_FREE ? HEAP_FREE : HEAP_NONE;
	unsigned i;

	if (!what || !r->u.sample.regs)
		return false;
	if (r->time_ns - p->blocks.second_ns >= NS_PER_SEC)
		p->blocks = (struct probe_rate){.second_ns = r->time_ns};
	if (++p->blocks.hits > HEAP_RATE) {
		p->blocks_left_out++;
		return false;
	}
	for (i = 0; i < ARGUMENTS; i++)
		p->fields[i] = (struct event_field){.name = arguments[i].name, .type = FIELD_UINT,
						    .v.u = r->u.sample.regs[arguments[i].reg]};
	out->fields = p->fields;
	out->nfields = what == HEAP_ALLOC ? ARGUMENTS : 1;
	return heap_blocks_take(&p->heap, what, out);
}

bool probe_java_object(const struct probe *probe, const struct perf_record *r, uint64_t *object)
{
	return probe->throws == THROW_JAVA && throw_java_object(r, object);
}

bool probes_again(const struct probe *probe, struct event *e)
{
	const char *name = probe->gc.edge ? gc_probe_second_name(&probe->gc) : NULL;

	if (!name || e->name == name)
		return false;
	e->name = name;
	return true;
}

bool probe_is_sampled(const struct probe *probe)
{
	return probe->period || probe->heap;
}

bool probe_has_stack(const struct probe *probe)
{
	return probe->stack;
}

uint64_t probe_period(const struct probe *probe, uint64_t time_ns)
{
	return time_ns < probe->switched_ns ? probe->old_period : probe->period;
}

uint32_t probes_number(const struct probes *p, const struct probe *probe)
{
	return (uint32_t)(probe - p->all);
}

bool probes_name(const struct probes *p, uint64_t number, char *out, size_t n)
{
	if (number >= p->n)
		return false;
	if (p->all[number].period)
		snprintf(out, n, "%s", p->all[number].name);
	else if (p->all[number].throws)
		snprintf(out, n, THROW_EVENT);
	else
		put_probe_name(&p->all[number], out, n);
	return true;
}

/*
 * The ends of collections are switched off a second after their starts: else a collection that had
 * begun would seem to continue.
 */
static void pause_gc_end(struct probes *p, struct probe *end, uint64_t now_ns)
{
	const struct probe *begin = end - 1;

	if (begin->paused_until_ns && !end->paused_until_ns &&
	    begin->paused_until_ns + NS_PER_SEC < now_ns + PROBE_PAUSE_NS)
		probe_pause(p, end, begin->paused_until_ns);
}

bool probe_wants(const struct probe *probe, const struct process *process)
{
	struct process_names names;
	char who[PROCESS_LABEL_BYTES];
	const char *at = buf_text(&probe->processes);
	size_t n;

	if (probe->unlimited_by_process || probe->role != PROBE_EVENT || probe->gc.edge)
		return true;
	if (!process)
		return false;
	names = process_names_of(process);
	for (; *at; at += n + (at[n] == ';')) {
		n = strcspn(at, ";");
		snprintf(who, sizeof(who), "%.*s", (int)n, at);
		if (n && process_names_mean(&names, process->pid, who))
			return true;
	}
	return false;
}

/* The second is over: records again, and the kernel's count of those that had none. */
static void end_hold(struct probes *p, struct probe *probe, uint64_t now_ns)
{
	uint64_t n = probe_hold(p, probe, false);

	if (n > probe->held_from)
		probe->left_out += n - probe->held_from;
	probe->held = false;
	probe->rate = (struct probe_rate){.second_ns = now_ns};
}

uint64_t probes_left_out(struct probes *p)
{
	uint64_t n = p->blocks_left_out;
	uint32_t i;

	p->blocks_left_out = 0;
	for (i = 0; i < p->n; i++) {
		n += p->all[i].left_out;
		atomic_fetch_add_explicit(&p->all[i].nleft_out, p->all[i].left_out,
					  memory_order_relaxed);
		p->all[i].left_out = 0;
	}
	return n;
}

void probes_look(struct probes *p, uint64_t now_ns)
{
	uint32_t i;

	if (p->programs)
		programs_look(p->programs, now_ns);
	for (i = 0; i < p->n; i++) {
		struct probe *probe = &p->all[i];

		if (probe->held)
			end_hold(p, probe, now_ns);
		if (probe->period)
			look_at_counter(p, probe, now_ns);
		if (i && probe->gc.edge == GC_ENDS)
			pause_gc_end(p, probe, now_ns);
		if (!probe->paused_until_ns || now_ns < probe->paused_until_ns)
			continue;
		probe->rate = probe->unwanted = (struct probe_rate){0};
		probe_pause(p, probe, 0);
	}
}

/* Name the first probe and the number of the others. */
void probes_note(const struct probes *p, char *out, size_t n)
{
	char name[PROVIDER_NAME_MAX + EVENT_NAME_MAX];
	unsigned others = 0;
	uint32_t i;
	size_t used;

	out[0] = '\0';
	for (i = 0; i < p->n; i++) {
		uint64_t npauses = atomic_load(&p->all[i].npauses);

		others += npauses && out[0];
		if (!npauses || out[0])
			continue;
		put_probe_name(&p->all[i], name, sizeof(name));
		snprintf(out, n, "%.120s happened too often: switched off %" PRIu64
			 " time%s, for %u s each", name, npauses, npauses == 1 ? "" : "s",
			 (unsigned)(PROBE_PAUSE_NS / NS_PER_SEC));
	}
	for (i = 0; i < p->n && !out[0]; i++) {
		uint64_t left_out = atomic_load(&p->all[i].nleft_out);

		if (!p->all[i].asked || !left_out)
			continue;
		put_probe_name(&p->all[i], name, sizeof(name));
		snprintf(out, n, "%.120s: %" PRIu64 " over the limit of %u a second are left out",
			 name, left_out, p->all[i].limit);
	}
	if (!out[0] && atomic_load(&p->heap.forgotten))
		snprintf(out, n, "%" PRIu64 " sampled blocks of heaps are no longer followed, as "
			 "there are more than %u: they count as in use",
			 atomic_load(&p->heap.forgotten), HEAP_BLOCKS_MAX);
	used = strlen(out);
	if (others)
		snprintf(out + used, n - used, "; so %s %u other%s", others == 1 ? "was" : "were",
			 others, others == 1 ? "" : "s");
}
