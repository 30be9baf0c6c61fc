#include "source/jvm/pauses_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"

#define MISSED_PAUSE_MAX_NS (5 * NS_PER_MS)  /* longer pauses are never missed */

void jvm_pauses_deliver(void *ctx, const struct event *e)
{
	struct jvm_pauses *s = ctx;

	if (queue_put(s->queue, e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
}

static const char *collector_name(const struct jvm *j, uint32_t collector)
{
	return collector == JVM_SAFEPOINTS ? "Shenandoah (safepoints)"
				       : j->data.collectors[collector].name;
}

static struct event event_of(struct jvm_pauses *s, const struct jvm *j, struct process *process,
			     uint64_t time_ns)
{
	struct event e = {
		.time_ns = time_ns, .kind = EVENT_GENERIC, .cpu = CPU_NONE, .stream = STREAM_EVENT,
		.stack = STACK_NONE, .process = process, .provider = "JVM",
	};

	e.thread = process ? thread_add(s->processes, process, j->pid) : NULL;
	return e;
}

static double ms_of(uint64_t ns)
{
	return (double)ns / 1e6;
}

/*
 * The least duration of the longest of n pauses. The first was open at the last look and the others
 * have come since; the longest is at least the mean.
 */
static double least_ms(const struct jvm_pauses *s, uint64_t sum_ns, uint32_t pauses)
{
	uint64_t first_ns = sum_ns > s->gap_ns ? sum_ns - s->gap_ns : 0, mean_ns = sum_ns / pauses;

	return ms_of(first_ns > mean_ns ? first_ns : mean_ns);
}

static uint64_t time_at(const struct jvm_pauses *s, const struct jvm *j, uint64_t zero_ns,
			uint64_t ticks)
{
	uint64_t time_ns = zero_ns + jvm_ticks_to_ns(j, ticks);

	return time_ns > s->least_ns ? time_ns : s->least_ns;
}

static void put(struct jvm_pauses *s, const struct jvm *j, uint32_t collector,
		const struct hsperf_edge *edge, uint64_t zero_ns, struct process *process)
{
	static const char *const names[2][2] = {{"GC/Stop", "GC/RestartEEStop"},
						{"GC/SuspendEEStart", "GC/Start"}};
	struct event_field fields[] = {
		{.name = "Reason", .type = FIELD_UINT, .v.u = 1},
		{.name = "Count", .type = FIELD_UINT, .v.u = edge->count},
		{.name = "Depth", .type = FIELD_UINT, .v.u = collector == 1 ? 2 : 0},
		{.name = "Type", .type = FIELD_UINT, .v.u = 0},
		{.name = "ClrInstanceID", .type = FIELD_UINT, .v.u = collector},
		{.name = "Collector", .type = FIELD_TEXT, .v.text = collector_name(j, collector)},
		{.name = "PauseMSec", .type = FIELD_DOUBLE},
		{.name = "Pauses", .type = FIELD_UINT, .v.u = edge->pauses},
		{.name = "PauseMinMSec", .type = FIELD_DOUBLE},
	};
	const unsigned ncommon = 6;
	struct event e = event_of(s, j, process, time_at(s, j, zero_ns, edge->ticks));
	uint64_t length = edge->length;
	unsigned i;

	/* A start has no length yet, and for a single pause no number is needed. */
	if (edge->start)
		fields[ncommon] = fields[ncommon + 1];
	e.fields = fields;
	e.nfields = ncommon + (edge->start ? edge->pauses != 1 : edge->pauses != 1 ? 3 : 1);
	for (i = 0; i < 2; i++) {
		e.name = names[edge->start][i];
		if (i == 1 && edge->restart) {
			e.time_ns = time_at(s, j, zero_ns, edge->restart);
			length += edge->restart - edge->ticks;
		}
		if (!edge->start) {
			fields[ncommon].v.d = ms_of(jvm_ticks_to_ns(j, length));
			fields[ncommon + 2].v.d =
				least_ms(s, jvm_ticks_to_ns(j, length), edge->pauses);
		}
		jvm_pauses_deliver(s, &e);
		gc_counters_event(s->counters, j->pid, &e);
	}
}

struct process *jvm_pauses_process(struct jvm_pauses *s, struct jvm *j)
{
	struct process *process = proc_pid_process(s->processes, j->pid, &j->own);

	if (process)
		gc_counters_program(s->counters, process);
	return process;
}

void jvm_pauses_put(struct jvm_pauses *s, struct jvm *j, uint32_t collector,
		    const struct hsperf_edge *edges, uint32_t n, uint64_t zero_ns)
{
	struct process *process = n ? jvm_pauses_process(s, j) : NULL;
	uint32_t i;

	for (i = 0; i < n; i++)
		put(s, j, collector, &edges[i], zero_ns, process);
	if (process)
		process_unref(process);
}

/* Report missed pauses by what is known of them. */
void jvm_pauses_missed(struct jvm_pauses *s, struct jvm *j, uint32_t collector,
		       const struct hsperf_missed *missed)
{
	uint64_t ns = jvm_ticks_to_ns(j, missed->ticks);
	const struct event_field fields[] = {
		{.name = "Depth", .type = FIELD_UINT, .v.u = collector == 1 ? 2 : 0},
		{.name = "ClrInstanceID", .type = FIELD_UINT, .v.u = collector},
		{.name = "Collector", .type = FIELD_TEXT, .v.text = collector_name(j, collector)},
		{.name = "Pauses", .type = FIELD_UINT, .v.u = missed->pauses},
		{.name = "PauseMSec", .type = FIELD_DOUBLE, .v.d = ms_of(ns)},
		{.name = "PauseMinMSec", .type = FIELD_DOUBLE,
		 .v.d = missed->pauses ? ms_of(ns / missed->pauses) : 0},
	};
	struct process *process;
	struct event e;

	if (!missed->pauses)
		return;
	process = jvm_pauses_process(s, j);
	e = event_of(s, j, process, os_now_ns());
	e.name = "GC/Pauses";
	e.fields = fields;
	e.nfields = COUNT_OF(fields);
	jvm_pauses_deliver(s, &e);
	gc_counters_event(s->counters, j->pid, &e);
	if (process)
		process_unref(process);
	if (ns > MISSED_PAUSE_MAX_NS)
		s->missed_much = true;
	atomic_fetch_add_explicit(&s->missed, missed->pauses, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->missed_ns, ns, memory_order_relaxed);
}

void jvm_pauses_heap(struct jvm_pauses *s, struct jvm *j, uint32_t collector, uint64_t count,
		     const struct jvm_heap *heap)
{
	const struct event_field fields[] = {
		{.name = "Count", .type = FIELD_UINT, .v.u = count},
		{.name = "Depth", .type = FIELD_UINT, .v.u = collector == 1 ? 2 : 0},
		{.name = "ClrInstanceID", .type = FIELD_UINT, .v.u = collector},
		{.name = "Collector", .type = FIELD_TEXT, .v.text = collector_name(j, collector)},
		{.name = "GenerationSize0", .type = FIELD_UINT,
		 .v.u = heap->eden + heap->survivors},
		{.name = "GenerationSize2", .type = FIELD_UINT, .v.u = heap->old},
	};
	struct process *process = jvm_pauses_process(s, j);
	struct event e = event_of(s, j, process, os_now_ns());

	e.name = "GC/HeapStats";
	e.fields = fields;
	e.nfields = COUNT_OF(fields);
	jvm_pauses_deliver(s, &e);
	if (process)
		process_unref(process);
}
