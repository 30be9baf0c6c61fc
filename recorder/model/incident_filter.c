#include "model/incident_build_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LISTED_MAX 6                         /* names in a "no such process" sentence */

void incident_count(struct incident *in)
{
	uint32_t i;

	in->head.samples = 0;
	memset(in->head.quality, 0, sizeof(in->head.quality));
	for (i = 0; i < in->nsamples; i++) {
		if (!stream_is_counted(in->samples[i].stream))
			continue;            /* the number of pieces says nothing */
		in->head.samples++;
		in->head.quality[in->samples[i].quality]++;
	}
}

void incident_count_streams(const struct incident *in, uint64_t n[STREAMS_MAX])
{
	uint32_t i;

	memset(n, 0, STREAMS_MAX * sizeof(*n));
	for (i = 0; i < in->nsamples; i++)
		n[in->samples[i].stream]++;
}

unsigned incident_put_metrics(const struct incident *in, struct buf *out)
{
	uint64_t has[STREAMS_MAX];
	unsigned i, n = 0;

	incident_count_streams(in, has);
	for (i = 0; i < STREAMS_MAX; i++)
		if (has[i] && !stream_is_mark(i))
			buf_printf(out, "%s%s", n++ ? ", " : "", stream_text(i));
	return n;
}

/* ---- who ------------------------------------------------------------------------------------- */

/* comm: of its first thread; NULL = unknown */
static void names_of(const struct incident_process *p, const char *comm, struct incident_names *out)
{
	process_names_of_command(p->name, p->cmdline, out->called, out->script);
	out->is = (struct process_names){.file = p->name, .comm = comm, .called = out->called,
					 .script = out->script};
}

static bool is_first_thread(const struct incident *in, uint32_t thread)
{
	return in->threads[thread].tid == in->processes[in->threads[thread].process].pid;
}

void incident_process_names(const struct incident *in, uint32_t process, struct incident_names *out)
{
	const char *comm = NULL;
	uint32_t i;

	for (i = 0; i < in->nthreads && !comm; i++)
		if (in->threads[i].process == process && is_first_thread(in, i))
			comm = in->threads[i].name;
	names_of(&in->processes[process], comm, out);
}

const char *incident_process_label(const struct incident *in, uint32_t process,
				   char out[PROCESS_LABEL_BYTES])
{
	struct incident_names names;

	incident_process_names(in, process, &names);
	return process_names_label(&names.is, out);
}

/* meant[process]: does `who` mean it, by pid or by one of its names? NULL = no memory. */
static bool *find_processes(const struct incident *in, const char *who)
{
	const char **comm = calloc((size_t)in->nprocesses + 1, sizeof(*comm)), *home;
	bool *meant = comm ? malloc((size_t)in->nprocesses + 1) : NULL;
	enum home_key key = home_key_of(who, &home);
	struct incident_names names;
	uint32_t i;

	for (i = 0; meant && i < in->nthreads; i++)
		if (is_first_thread(in, i))
			comm[in->threads[i].process] = in->threads[i].name;
	for (i = 0; meant && i < in->nprocesses; i++) {
		names_of(&in->processes[i], comm[i], &names);
		meant[i] = key
				   ? home_is(in->processes[i].home, key, home)
				   : process_names_mean(&names.is, in->processes[i].pid, who);
	}
	free(comm);
	return meant;
}

/* List the processes or threads with most samples, for a filter that matches none. */
static void put_busiest(const struct incident *in, bool tids, struct buf *out)
{
	uint32_t n = tids ? in->nthreads : in->nprocesses;
	uint64_t *counts = calloc((size_t)n + 1, sizeof(*counts));
	uint32_t i, best, listed, thread;
	char label[PROCESS_LABEL_BYTES];

	for (i = 0; counts && i < in->nsamples; i++) {
		thread = in->samples[i].thread;
		if (thread != THREAD_NONE)
			counts[tids ? thread : in->threads[thread].process]++;
	}
	for (listed = 0; counts && listed < LISTED_MAX; listed++) {
		for (best = 0, i = 1; i < n; i++)
			best = counts[i] > counts[best] ? i : best;
		if (!counts[best])
			break;
		counts[best] = 0;
		buf_puts(out, listed ? ", " : "; the busiest are ");
		if (tids)
			buf_printf(out, "%" PRIu32, in->threads[best].tid);
		else
			buf_printf(out, "%.80s (%" PRIu32 ")",
				   incident_process_label(in, best, label),
				   in->processes[best].pid);
	}
	free(counts);
}

static int report_no_match(const struct incident *in, const struct incident_filter *filter,
			   struct err *err)
{
	struct buf text = {0};
	int rc;

	if (filter->tid)
		buf_printf(&text, "no thread %" PRIu32 "%s", filter->tid,
			   filter->process ? " of" : "");
	if (filter->process)
		buf_printf(&text, "%s process '%.100s'", filter->tid ? "" : "no", filter->process);
	buf_puts(&text, " in this incident");
	put_busiest(in, filter->tid != 0, &text);
	rc = err_set(err, ERR_NOT_FOUND, "%s", buf_text(&text));
	buf_free(&text);
	return rc;
}

/* For a filter that matches none: what there is. */
static int report_no_home(const struct incident *in, enum home_key key, const char *wanted,
			  struct err *err)
{
	const char *what = home_key_text(key);
	struct home homes[LISTED_MAX], home;
	struct buf text = {0};
	uint32_t i, k, n = 0;

	for (i = 0; i < in->nprocesses && n < LISTED_MAX; i++) {
		home_read(in->processes[i].home, &home);
		for (k = 0; k < n && strcmp(homes[k].of[key], home.of[key]) != 0; k++)
			;
		if (*home.of[key] && k == n)
			homes[n++] = home;
	}
	for (k = 0; k < n; k++)
		buf_printf(&text, "%s%.64s", k ? ", " : "; there is ", homes[k].of[key]);
	err_set(err, ERR_NOT_FOUND, "no process of %s '%.100s' in this incident%s", what, wanted,
		n ? buf_text(&text) : ": of none it is known");
	buf_free(&text);
	return ERR_NOT_FOUND;
}

static bool lives_in(const struct incident *in, uint32_t thread, enum home_key key,
		     const char *wanted)
{
	return home_is(in->processes[in->threads[thread].process].home, key, wanted);
}

/* Leave of keep[] only threads whose processes have the wanted homes. */
static int choose_homes(const struct incident *in, const struct incident_filter *filter,
			bool *keep, struct err *err)
{
	unsigned key;
	uint32_t i;

	for (key = 0; key < HOME_KEYS; key++) {
		bool found = false;

		for (i = 0; filter->home[key] && i < in->nthreads; i++) {
			keep[i] = keep[i] && lives_in(in, i, key, filter->home[key]);
			found |= keep[i];
		}
		if (filter->home[key] && !found)
			return report_no_home(in, key, filter->home[key], err);
		keep[in->nthreads] &= !filter->home[key];
	}
	return 0;
}

bool incident_has_idle(const struct incident *in)
{
	uint32_t i;

	for (i = 0; i < in->nprocesses; i++)
		if (in->processes[i].pid)
			return true;
	return false;
}

/* keep[thread], plus one entry for THREAD_NONE. */
static int choose_threads(const struct incident *in, const struct incident_filter *filter,
			  bool *keep, struct err *err)
{
	bool *meant = filter->process ? find_processes(in, filter->process) : NULL;
	bool all = !filter->process && !filter->tid, found = all;
	bool no_idle = filter->no_idle && incident_has_idle(in);
	uint32_t i;

	if (filter->process && !meant)
		return err_memory(err, "while filtering an incident");
	for (i = 0; i < in->nthreads; i++) {
		keep[i] = (!filter->tid || in->threads[i].tid == filter->tid) &&
			  (!meant || meant[in->threads[i].process]);
		found |= keep[i];
		if (no_idle && !in->processes[in->threads[i].process].pid)
			keep[i] = false;
	}
	keep[in->nthreads] = all;
	free(meant);
	return found ? 0 : report_no_match(in, filter, err);
}

/* ---- when ------------------------------------------------------------------------------------ */

/* trigger + offset, limited to the range of the clock. */
static uint64_t at_offset(uint64_t trigger_ns, int64_t offset_ns)
{
	uint64_t distance = offset_ns < 0 ? 0 - (uint64_t)offset_ns : (uint64_t)offset_ns;

	if (offset_ns < 0)
		return distance < trigger_ns ? trigger_ns - distance : 0;
	return distance < UINT64_MAX - trigger_ns ? trigger_ns + distance : UINT64_MAX;
}

static int choose_window(struct incident_head *h, const struct incident_filter *filter,
			 struct err *err)
{
	uint64_t t0 = h->t0_ns, t1 = h->t1_ns;

	if (filter->has_from && filter->has_to && filter->from_ns > filter->to_ns)
		return err_set(err, ERR_USAGE, "from (%.3f s) is after to (%.3f s)",
			       (double)filter->from_ns / 1e9, (double)filter->to_ns / 1e9);
	if (filter->has_from && at_offset(h->trigger_ns, filter->from_ns) > t0)
		t0 = at_offset(h->trigger_ns, filter->from_ns);
	if (filter->has_to && at_offset(h->trigger_ns, filter->to_ns) < t1)
		t1 = at_offset(h->trigger_ns, filter->to_ns);
	if (t0 > t1)
		return err_set(err, ERR_NOT_FOUND,
			       "the incident holds %.3f s to %.3f s around its trigger, and the "
			       "filter leaves nothing of it", incident_seconds(h, h->t0_ns),
			       incident_seconds(h, h->t1_ns));
	h->t0_ns = t0;
	h->t1_ns = t1;
	return 0;
}

/* ---- which events ---------------------------------------------------------------------------- */

/* The name of an event whose samples have this leaf; NULL = it is no event's. */
static const char *event_of(const struct incident *in, uint32_t stack)
{
	uint32_t leaf = in->stacks[stack].frame;
	bool is_event = in->modules[in->frames[leaf].module].kind == OBJECT_JIT &&
			strcmp(incident_frame_module(in, leaf), "event") == 0;

	return is_event ? in->frames[leaf].function : NULL;
}

static int no_event(const struct incident *in, const char *event, struct err *err)
{
	const char *name, *listed[LISTED_MAX];
	struct buf text = {0}, others = {0};
	uint32_t i, k, n = 0;

	for (i = 0; i < in->nsamples && n < LISTED_MAX; i++) {
		if (in->samples[i].stream != STREAM_EVENT || in->samples[i].stack == STACK_NONE)
			continue;
		name = event_of(in, in->samples[i].stack);
		for (k = 0; name && k < n && strcmp(listed[k], name) != 0; k++)
			;
		if (name && k == n)
			listed[n++] = name;
	}
	for (k = 0; k < n; k++)
		buf_printf(&text, "%s%.100s", k ? ", " : "; it has ", listed[k]);
	if (!incident_put_metrics(in, &others))
		buf_puts(&others, "none");
	err_set(err, ERR_NOT_FOUND,
		"--metric %.100s: this incident has no stacks of such an event%s; its metrics: %s",
		event, buf_text(&text), buf_text(&others));
	buf_free(&text);
	buf_free(&others);
	return ERR_NOT_FOUND;
}

/* Whether a sample is of an event; its name may be followed by a type. */
static bool is_of_event(const struct incident *in, const struct incident_sample *s,
			const char *event)
{
	size_t n = strlen(event);
	const char *name;

	if (s->stream != STREAM_EVENT || s->stack == STACK_NONE)
		return false;
	name = event_of(in, s->stack);
	return name && strncasecmp(name, event, n) == 0 && (!name[n] || name[n] == ' ');
}

/* Leave out the samples of all other events. */
static int choose_event(struct incident *in, const char *event, struct err *err)
{
	uint32_t i, n, found = 0;

	for (i = 0; i < in->nsamples && !found; i++)
		found += is_of_event(in, &in->samples[i], event);
	if (!found)
		return no_event(in, event, err);
	for (i = n = 0; i < in->nsamples; i++)
		if (in->samples[i].stream != STREAM_EVENT ||
		    is_of_event(in, &in->samples[i], event))
			in->samples[n++] = in->samples[i];
	in->nsamples = n;
	return 0;
}

/* ---- what ------------------------------------------------------------------------------------ */

/* user[stack]: the stack itself, or its first ancestor outside the kernel. */
static uint32_t *user_stacks(const struct incident *in)
{
	uint32_t *user = malloc(((size_t)in->nstacks + 1) * sizeof(*user));
	uint32_t i, parent;

	for (i = 0; user && i < in->nstacks; i++) {
		parent = in->stacks[i].parent;
		if (!(in->frames[in->stacks[i].frame].flags & FRAME_KERNEL))
			user[i] = i;
		else
			user[i] = parent == STACK_NONE ? STACK_NONE : user[parent];
	}
	return user;
}

/* What managed_only keeps of a stack that has managed code: events, waits and texts, too. */
static bool is_lean(const struct incident *in, uint32_t frame)
{
	const struct incident_frame *f = &in->frames[frame];

	return f->flags & FRAME_TEXT || in->modules[f->module].kind == OBJECT_JIT ||
	       incident_frame_code(in, frame) >= CODE_JAVA;
}

/* to[stack]: its frames of managed code; the stack itself where it has none. */
static int fold_native(struct incident *in, uint32_t *to, uint32_t *lean, bool *managed)
{
	uint32_t n = in->nstacks, i;

	for (i = 0; i < n; i++) {
		const struct incident_stack s = in->stacks[i];
		bool root = s.parent == STACK_NONE;

		lean[i] = root ? STACK_NONE : lean[s.parent];
		managed[i] = (!root && managed[s.parent]) ||
			     incident_frame_code(in, s.frame) >= CODE_JAVA;
		if (is_lean(in, s.frame)) {
			lean[i] = incident_add_stack(in, lean[i], s.frame);
			if (lean[i] == UINT32_MAX)
				return ERR_MEMORY;
		}
		to[i] = managed[i] ? lean[i] : i;
	}
	return 0;
}

static int keep_managed(struct incident *in)
{
	size_t n = (size_t)in->nstacks + 1;
	uint32_t *to = malloc(n * sizeof(*to)), *lean = malloc(n * sizeof(*lean));
	bool *managed = malloc(n * sizeof(*managed));
	int rc = to && lean && managed ? fold_native(in, to, lean, managed) : ERR_MEMORY;

	if (!rc)
		incident_restack(in, to);
	free(to);
	free(lean);
	free(managed);
	return rc;
}

static void keep_chosen(struct incident *in, const bool *keep)
{
	uint32_t i, n;

	for (i = n = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];
		uint32_t who = s->thread == THREAD_NONE ? in->nthreads : s->thread;

		if (keep[who] && incident_reaches(&in->head, s->time_ns))
			in->samples[n++] = *s;
	}
	in->nsamples = n;
	for (i = n = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if ((e->thread == THREAD_NONE || keep[e->thread]) &&
		    incident_reaches(&in->head, e->time_ns))
			in->events[n++] = *e;
	}
	in->nevents = n;
}

int incident_filter(struct incident *in, const struct incident_filter *filter, struct err *err)
{
	bool *keep = malloc((size_t)in->nthreads + 1);
	uint32_t *user = filter->no_kernel ? user_stacks(in) : NULL;
	int rc = 0;

	if (!keep || (filter->no_kernel && !user))
		rc = err_memory(err, "while filtering an incident");
	if (!rc)
		rc = choose_threads(in, filter, keep, err);
	if (!rc)
		rc = choose_homes(in, filter, keep, err);
	if (!rc)
		rc = choose_window(&in->head, filter, err);
	if (!rc && filter->event)
		rc = choose_event(in, filter->event, err);
	if (!rc) {
		keep_chosen(in, keep);
		if (user)
			incident_restack(in, user);
		if (filter->managed_only && keep_managed(in))
			rc = err_memory(err, "while filtering an incident");
		incident_count(in);
	}
	free(user);
	free(keep);
	return rc;
}
