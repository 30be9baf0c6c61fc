#include "model/incident_join.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* When all triggers are: no part reaches so far back that a time would be below 0. */
#define TRIGGER_NS (UINT64_C(1) << 60)

/* ---- joining --------------------------------------------------------------------------------- */

/* The indices of an incident's entries in the joint one; UINT32_MAX = not joined yet. */
struct joining {
	const struct incident_join *j;
	uint32_t *threads, *modules, *frames, *stacks;
};

static uint32_t frame_of(struct joining *g, uint32_t frame)
{
	const struct incident *from = g->j->from;
	struct incident_frame f = from->frames[frame];

	if (g->frames[frame] != UINT32_MAX)
		return g->frames[frame];
	if (g->modules[f.module] == UINT32_MAX)
		g->modules[f.module] = incident_add_module(g->j->to, &from->modules[f.module]);
	f.module = g->modules[f.module];
	if (f.module != UINT32_MAX)
		g->frames[frame] = incident_add_frame(g->j->to, &f);
	return g->frames[frame];
}

static bool is_wanted(const struct incident_join *j, const struct incident_sample *s)
{
	return j->streams >> s->stream & 1;
}

/* Join the stacks that wanted samples use; callers come first. */
static int join_stacks(struct joining *g)
{
	const struct incident *from = g->j->from;
	uint32_t i, parent;

	for (i = 0; i < from->nsamples; i++) {
		if (is_wanted(g->j, &from->samples[i]) && from->samples[i].stack != STACK_NONE)
			g->stacks[from->samples[i].stack] = 0;
	}
	for (i = from->nstacks; i-- > 0;) {
		if (g->stacks[i] != UINT32_MAX && from->stacks[i].parent != STACK_NONE)
			g->stacks[from->stacks[i].parent] = 0;
	}
	for (i = 0; i < from->nstacks; i++) {
		if (g->stacks[i] == UINT32_MAX)
			continue;
		parent = from->stacks[i].parent;
		g->stacks[i] = incident_add_stack(
			g->j->to, parent == STACK_NONE ? STACK_NONE : g->stacks[parent],
			frame_of(g, from->stacks[i].frame));
		if (g->stacks[i] == UINT32_MAX)
			return ERR_MEMORY;
	}
	return 0;
}

static int join_samples(struct joining *g)
{
	const struct incident *from = g->j->from;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < from->nsamples && !rc; i++) {
		struct incident_sample s = from->samples[i];
		uint32_t *thread = &g->threads[s.thread == THREAD_NONE ? from->nthreads : s.thread];

		if (!is_wanted(g->j, &s))
			continue;
		if (*thread == INCIDENT_JOIN_FAILED)
			*thread = g->j->thread(g->j, s.thread);
		if (*thread == INCIDENT_JOIN_FAILED)
			return ERR_MEMORY;
		s.thread = *thread;
		if (s.stack != STACK_NONE)
			s.stack = g->stacks[s.stack];
		s.time_ns += (uint64_t)g->j->shift_ns;
		rc = incident_add_sample(g->j->to, &s);
	}
	return rc;
}

int incident_join(const struct incident_join *j)
{
	const struct incident *from = j->from;
	struct joining g = {
		.j = j, .threads = array_of_none(from->nthreads + 1u),
		.modules = array_of_none(from->nmodules), .frames = array_of_none(from->nframes),
		.stacks = array_of_none(from->nstacks),
	};
	int rc = g.threads && g.modules && g.frames && g.stacks ? 0 : ERR_MEMORY;
	uint32_t i;

	for (i = 0; !rc && i <= from->nthreads; i++)
		g.threads[i] = INCIDENT_JOIN_FAILED;         /* not asked yet */
	if (!rc)
		rc = join_stacks(&g);
	if (!rc)
		rc = join_samples(&g);
	free(g.threads);
	free(g.modules);
	free(g.frames);
	free(g.stacks);
	return rc;
}

/* ---- a set ----------------------------------------------------------------------------------- */

/* The same process and thread, in this part; unknown ones are in it, too. */
static uint32_t thread_of_part(const struct incident_join *j, uint32_t thread)
{
	static const struct incident_thread unknown = {.name = ""};
	const struct incident_thread *t =
		thread == THREAD_NONE ? &unknown : &j->from->threads[thread];
	struct incident_process p = {.name = "", .cmdline = "", .home = ""};
	struct incident_thread mine = *t;

	if (thread != THREAD_NONE)
		p = j->from->processes[t->process];
	p.part = *(const uint32_t *)j->ctx;
	mine.process = incident_add_process(j->to, &p);
	thread = mine.process == UINT32_MAX ? UINT32_MAX : incident_add_thread(j->to, &mine);
	return thread == UINT32_MAX ? INCIDENT_JOIN_FAILED : thread;
}

/* Merge the samples from `at` on, which are in order, into those before, which are, too. */
static int merge_samples(struct incident *to, uint32_t at)
{
	uint32_t n = to->nsamples - at, left = at, put = to->nsamples;
	struct incident_sample *added = malloc(((size_t)n + 1) * sizeof(*added));

	if (!added)
		return ERR_MEMORY;
	if (n)
		memcpy(added, to->samples + at, n * sizeof(*added));
	while (n) {
		bool older = !left || to->samples[left - 1].time_ns <= added[n - 1].time_ns;

		to->samples[--put] = older ? added[--n] : to->samples[--left];
	}
	free(added);
	return 0;
}

/* The first part gives the head its words; the set has no number. */
static int take_head(struct incident_head *to, const struct incident_head *from)
{
	int rc = incident_head_copy(from, to);

	free(to->gap_reason);
	free(to->note);
	free(to->remarks);
	to->gap_reason = to->note = to->remarks = NULL;
	to->id = 0;
	to->samples = to->lost = 0;
	memset(to->quality, 0, sizeof(to->quality));
	memset(to->lost_by_kind, 0, sizeof(to->lost_by_kind));
	to->t0_ns = to->t1_ns = to->trigger_ns = TRIGGER_NS;
	return rc;
}

static void add_head(struct incident_head *to, const struct incident_head *from, int64_t shift_ns)
{
	uint64_t t0 = from->t0_ns + (uint64_t)shift_ns, t1 = from->t1_ns + (uint64_t)shift_ns;
	unsigned i;

	to->t0_ns = t0 < to->t0_ns ? t0 : to->t0_ns;
	to->t1_ns = t1 > to->t1_ns ? t1 : to->t1_ns;
	to->lost += from->lost;
	for (i = 0; i < LOSS_KINDS; i++)
		to->lost_by_kind[i] += from->lost_by_kind[i];
	for (i = 0; i < STREAMS_MAX; i++)
		if (!to->period_ns[i])
			to->period_ns[i] = from->period_ns[i];
	if (from->state == INCIDENT_PARTIAL || from->state == INCIDENT_OPEN)
		to->state = INCIDENT_PARTIAL;
}

int incident_add_part(struct incident *to, const struct incident *from, const char *name,
		      struct err *err)
{
	uint32_t part = to->nparts, before = to->nsamples;
	struct incident_join j = {.to = to, .from = from, .streams = UINT32_MAX,
				  .thread = thread_of_part, .ctx = &part};
	const char *called = incident_text(to, name);
	int rc = called ? 0 : ERR_MEMORY;

	if (part == INCIDENT_PARTS_MAX)
		return err_set(err, ERR_LIMIT, "%u incidents are the most that are shown as one",
			       INCIDENT_PARTS_MAX);
	if (!rc && !part)
		rc = take_head(&to->head, &from->head);
	if (!rc && ARRAY_NEXT(to->parts, to->nparts))
		rc = ERR_MEMORY;
	if (!rc) {
		to->parts[to->nparts++] = called;
		j.shift_ns = (int64_t)(to->head.trigger_ns - from->head.trigger_ns);
		add_head(&to->head, &from->head, j.shift_ns);
		to->several_periods |= from->several_periods ||
				       (part && from->cpu_period_ns &&
					from->cpu_period_ns != to->cpu_period_ns);
		if (!to->cpu_period_ns)
			to->cpu_period_ns = from->cpu_period_ns;
		rc = incident_join(&j);
	}
	if (!rc)
		rc = merge_samples(to, before);
	if (rc)
		return err_memory(err, "while joining incidents");
	incident_count(to);
	return 0;
}
