#include "source/perf/python_linux.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS (5 * NS_PER_MS)              /* for a peeker that has not come to a sample */

enum { WITH, NOTHING, LATE, UNPLACED, UNREADABLE, CUT, COUNTS };

struct perf_python {
	struct perf_managed *managed;
	struct perf_peekers *peekers;
	uint64_t seen_ns;                    /* when a Python program lived last; 0 = never */
	bool lives;                          /* one of late */
	struct python_peek peek;
	bool has_gil;                        /* the thread of the last sample that was placed */
	_Atomic uint64_t counts[COUNTS];
};

int perf_python_new(struct perf_managed *managed, const struct perf_cpus *cpus, struct log *log,
		    struct perf_python **out, struct err *err)
{
	struct perf_python *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_memory(err, "for Python frames");
	rc = perf_peekers_new(cpus->program, cpus->wake, log, &p->peekers, err);
	if (rc) {
		free(p);
		return rc;
	}
	p->managed = managed;
	perf_managed_peek_by(managed, p->peekers);
	*out = p;
	return 0;
}

void perf_python_free(struct perf_python *p)
{
	if (!p)
		return;
	perf_managed_peek_by(p->managed, NULL);
	perf_peekers_free(p->peekers);
	free(p);
}

bool perf_python_wants(struct perf_python *p, const struct perf_cpus *cpus, uint64_t now_ns)
{
	bool lived = p->lives;

	if (perf_managed_peeked(p->managed))
		p->seen_ns = now_ns;
	p->lives = p->seen_ns && now_ns < p->seen_ns + PYTHON_IDLE_NS;
	if (!perf_peekers_choose(p->peekers))
		return p->lives;
	if (p->lives != lived)
		perf_python_look(p, cpus, now_ns);
	return false;
}

void perf_python_look(struct perf_python *p, const struct perf_cpus *cpus, uint64_t now_ns)
{
	const struct perf_ring *ring;
	unsigned i;
	bool run;

	perf_peekers_look(p->peekers, now_ns);
	for (i = 0; i < cpus->n; i++) {
		ring = perf_cpus_sampler(cpus, i);
		run = p->lives && (cpus->ask.peeked || perf_peekers_choose(p->peekers));
		perf_peekers_follow(p->peekers, i, run ? ring : NULL);
	}
}

bool perf_python_ready(const struct perf_python *p, const struct perf_process *process,
		       const struct perf_ring *ring, uint64_t now_ns)
{
	return !perf_managed_is_peeked(process) || now_ns > ring->record.time_ns + WAIT_NS ||
	       perf_peekers_passed(p->peekers, ring->cpu, ring->tail);
}

static unsigned take(struct perf_python *p, struct perf_process *process,
		     const struct perf_ring *ring, struct unwind_stack *stack)
{
	if (!perf_peekers_get(p->peekers, ring->cpu, ring->tail, &p->peek))
		return LATE;
	switch (p->peek.status) {
	case PEEKED_WHOLE:
		return perf_managed_place(p->managed, process, &p->peek, stack) ? WITH : UNPLACED;
	case PEEKED_CUT:
		return perf_managed_place(p->managed, process, &p->peek, stack) ? CUT : UNPLACED;
	case PEEKED_NOTHING:
		return NOTHING;
	case PEEKED_UNREADABLE:
	case PEEKED_OTHER:
		return UNREADABLE;
	default:
		return LATE;
	}
}

bool perf_python_place(struct perf_python *p, struct perf_process *process,
		       const struct perf_ring *ring, struct unwind_stack *stack)
{
	unsigned what;

	p->has_gil = false;
	if (!perf_managed_is_peeked(process))
		return true;
	what = take(p, process, ring, stack);
	p->has_gil = what == WITH && p->peek.has_gil;
	atomic_fetch_add_explicit(&p->counts[what], 1, memory_order_relaxed);
	return what == WITH || what == NOTHING;
}

bool perf_python_has_gil(const struct perf_python *p)
{
	return p && p->has_gil;
}

bool perf_python_note(const struct perf_python *p, char *out, size_t n)
{
	struct perf_peeker_counts peekers;
	uint64_t counts[COUNTS], all = 0;
	unsigned i;

	perf_peekers_count(p->peekers, &peekers);
	for (i = 0; i < COUNTS; i++)
		all += counts[i] = atomic_load(&p->counts[i]);
	if (!all)
		return false;
	snprintf(out, n,
		 "Python: %llu samples, %llu with their frames, %llu in no Python function, %llu "
		 "late, %llu not placed, %llu not readable, %llu cut; "
		 "%u peekers%s, %.1f us and %.1f "
		 "reads each",
		 (unsigned long long)all, (unsigned long long)counts[WITH],
		 (unsigned long long)counts[NOTHING], (unsigned long long)counts[LATE],
		 (unsigned long long)counts[UNPLACED], (unsigned long long)counts[UNREADABLE],
		 (unsigned long long)counts[CUT], peekers.running,
		 peekers.fifo ? "" : " without SCHED_FIFO",
		 peekers.peeks ? (double)peekers.ns / 1e3 / (double)peekers.peeks : 0,
		 peekers.peeks ? (double)peekers.calls / (double)peekers.peeks : 0);
	if (peekers.abandoned)
		snprintf(out, n, "%u of at most %u threads that read Python frames hang",
			 peekers.abandoned, PEEKERS_STUCK_MAX);
	return true;
}
