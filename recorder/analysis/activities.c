#include "analysis/activities.h"

#include "analysis/replay.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/table.h"
#include "base/text.h"
#include "triggers/event_match.h"
#include "triggers/event_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX 64u                        /* bits of a mask */
#define TEXT_BYTES 128
#define SPEC_BYTES 1024

/* A kind of event, and which rules it may be a start or stop of. */
struct kind {
	const char *provider, *name;
	uint64_t rules;
};

/* What an id stands for while an activity is open: a key, a path, a task. */
enum id_kind { ID_KEY, ID_PATH, ID_TASK };
struct id {
	struct pair_key key;                 /* begins with the process */
	uint8_t kind, rule;
	uint32_t activity;
};

struct finding {
	struct incident *in;
	struct activities *out;
	struct trigger *rules[RULES_MAX];
	uint32_t nrules;
	struct kind *kinds;
	uint32_t nkinds;
	struct table by_name;
	struct id *ids;
	uint32_t nids, ids_room;
	struct table by_id;
	uint32_t *open_span;                 /* of each thread; ACTIVITY_NONE */
	uint32_t *task_before;               /* of each thread: what it was in before its task */
	uint32_t *inside;                    /* of each activity: how many threads are in it */
	uint8_t *rule_of;                    /* of each activity */
	uint32_t inside_room, rule_room, spans_room, items_room;
	uint32_t event;                      /* the next */
	bool tasks_have_ids;                 /* one of their events had an ActivityID */
};

/* ---- rules ----------------------------------------------------------------------------------- */

static bool same_kind(const void *ctx, uint32_t value, const void *wanted)
{
	const struct kind *k = &((const struct finding *)ctx)->kinds[value], *w = wanted;

	return strcmp(k->provider, w->provider) == 0 && strcmp(k->name, w->name) == 0;
}

static uint64_t kind_hash(const struct kind *k)
{
	return hash_pair(hash_bytes(k->provider, strlen(k->provider)),
			 hash_bytes(k->name, strlen(k->name)));
}

static uint32_t find_kind(const struct finding *f, const char *provider, const char *name)
{
	const struct kind wanted = {.provider = provider, .name = name};

	return table_find(&f->by_name, kind_hash(&wanted), same_kind, f, &wanted);
}

static int list_kinds(struct finding *f)
{
	const struct incident *in = f->in;
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		struct kind k = {.provider = e->provider, .name = e->name};

		if (e->kind != EVENT_GENERIC ||
		    find_kind(f, e->provider, e->name) != TABLE_NONE)
			continue;
		if (ARRAY_NEXT(f->kinds, f->nkinds) ||
		    table_add(&f->by_name, kind_hash(&k), f->nkinds))
			return ERR_MEMORY;
		f->kinds[f->nkinds++] = k;
	}
	return 0;
}

/* The kinds of events that a rule names. */
static bool mark_kinds(struct finding *f, const struct trigger *rule, unsigned which)
{
	struct trigger_wish wish;
	bool found = false;
	uint32_t i;

	if (!rule->ops->wish(rule, which, &wish))
		return false;
	for (i = 0; i < f->nkinds; i++) {
		if (!provider_is(wish.provider, f->kinds[i].provider) ||
		    !(event_id_of(wish.event) >= 0 || event_name_is(wish.event, f->kinds[i].name)))
			continue;
		f->kinds[i].rules |= 1ull << f->nrules;
		found = true;
	}
	return found;
}

/* Keep a rule whose start and stop are both there. Else, and without a stop: false. */
static bool keep_rule(struct finding *f, struct trigger *rule)
{
	bool start, stop;
	uint32_t i;

	start = mark_kinds(f, rule, 0);
	stop = mark_kinds(f, rule, 1);
	stop |= mark_kinds(f, rule, 2);
	if (start && stop) {
		f->rules[f->nrules++] = rule;
		return true;
	}
	for (i = 0; i < f->nkinds; i++)
		f->kinds[i].rules &= ~(1ull << f->nrules);
	trigger_close(rule);
	return false;
}

static int add_given(struct finding *f, const char *pair, struct err *err)
{
	const struct trigger_env env = {0};
	struct trigger *rule;
	struct buf spec = {0};
	int rc;

	buf_printf(&spec, "%s%s", pair, text_has_fold(pair, ";TriggerMSec=") ? "" :
		   ";TriggerMSec=0.001");
	rc = buf_check(&spec, "the pair", err);
	if (!rc)
		rc = trigger_open(&event_match_trigger, buf_text(&spec), &env, &rule, err);
	buf_free(&spec);
	if (rc)
		return rc;
	if (f->nrules == RULES_MAX || !keep_rule(f, rule))
		return err_set(err, ERR_NOT_FOUND, "--activity %.200s: this incident has no such "
			       "start and stop; 'recorder events' lists what it has", pair);
	return 0;
}

/* Whether a provider tells of itself, not of what a program does for its users. */
static bool is_own(const char *provider)
{
	static const char *const own[] = {
		"Microsoft-Windows-DotNETRuntime", "Microsoft-DotNETCore-SampleProfiler",
		"System.Threading.Tasks.TplEventSource", "System.Diagnostics.Eventing.Framework",
		"Microsoft-Windows-Kernel-", KERNEL_PROVIDER, "Recorder", "V8", "CPython",
		"HotSpot", "PerfView",
	};
	size_t i;

	for (i = 0; i < COUNT_OF(own); i++)
		if (strncmp(provider, own[i], strlen(own[i])) == 0)
			return true;
	return !*provider;
}

/* Starts whose stops follow from their names. */
static int add_derived(struct finding *f)
{
	const struct trigger_env env = {0};
	char spec[SPEC_BYTES];
	struct trigger *rule;
	struct err why;
	uint32_t i;
	int rc = 0;

	for (i = 0; rc != ERR_MEMORY && i < f->nkinds && f->nrules < RULES_MAX; i++) {
		const struct kind *k = &f->kinds[i];
		bool probe = !strcmp(k->provider, "uprobe") || !strcmp(k->provider, "usdt");

		/* A given rule knows better what the event is. */
		if (k->rules || is_own(k->provider) || strchr(k->name, ';') ||
		    (size_t)snprintf(spec, sizeof(spec), "%s%c%s;TriggerMSec=0.001", k->provider,
				     probe ? ':' : '/', k->name) >= sizeof(spec))
			continue;
		rc = trigger_open(&event_match_trigger, spec, &env, &rule, &why);
		if (!rc)
			keep_rule(f, rule);
	}
	return rc == ERR_MEMORY ? rc : 0;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static bool same_id(const void *ctx, uint32_t value, const void *wanted)
{
	const struct id *id = &((const struct finding *)ctx)->ids[value], *w = wanted;

	return id->kind == w->kind && id->rule == w->rule && id->key.len == w->key.len &&
	       memcmp(id->key.bytes, w->key.bytes, w->key.len) == 0;
}

static uint64_t id_hash(const struct id *id)
{
	return hash_pair(hash_bytes(id->key.bytes, id->key.len),
			 (uint64_t)id->rule << 8 | id->kind);
}

static uint32_t find_id(const struct finding *f, const struct id *id)
{
	uint32_t found = table_find(&f->by_id, id_hash(id), same_id, f, id);

	return found == TABLE_NONE ? ACTIVITY_NONE : f->ids[found].activity;
}

/* What has the id already gives it up. */
static int set_id(struct finding *f, const struct id *id)
{
	uint32_t found = table_find(&f->by_id, id_hash(id), same_id, f, id);

	if (found != TABLE_NONE) {
		f->ids[found].activity = id->activity;
		return 0;
	}
	if (ARRAY_ROOM(f->ids, f->ids_room, f->nids + 1) ||
	    table_add(&f->by_id, id_hash(id), f->nids))
		return ERR_MEMORY;
	f->ids[f->nids++] = *id;
	return 0;
}

static struct id path_id(const struct event *e, const char *path, size_t n)
{
	struct id id = {.kind = ID_PATH};

	pair_key_begin(&id.key, e->process);
	pair_key_bytes(&id.key, path, n);
	return id;
}

/* The path of an event's activity, or its id where it is none; "" without. */
static void path_of(const struct event *e, char out[ACTIVITY_PATH_BYTES])
{
	const struct event_field *f = event_field(e, "ActivityID");

	out[0] = '\0';
	if (f && f->type == FIELD_TEXT && f->v.text &&
	    !activity_path(f->v.text, e->process ? e->process->pid : 0, out))
		snprintf(out, ACTIVITY_PATH_BYTES, "%s", f->v.text);
}

/* The open activity of a path, or of the longest one that it goes on from. */
static uint32_t by_path(const struct finding *f, const struct event *e, const char *path)
{
	size_t n = strlen(path);

	while (n) {
		struct id id = path_id(e, path, n);
		uint32_t found = find_id(f, &id);

		if (found != ACTIVITY_NONE && !f->out->items[found].ended)
			return found;
		while (n && path[--n] != '/')
			;
	}
	return ACTIVITY_NONE;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static struct activity_span *open_span(const struct finding *f, uint32_t thread)
{
	uint32_t span = f->open_span[thread];

	return span == ACTIVITY_NONE ? NULL : &f->out->spans[span];
}

static uint32_t activity_on(const struct finding *f, uint32_t thread)
{
	const struct activity_span *span = open_span(f, thread);

	return span ? span->activity : ACTIVITY_NONE;
}

/* One thread more or less in an activity and those that it is nested in. */
static void count_inside(struct finding *f, uint32_t activity, uint32_t by)
{
	for (; activity != ACTIVITY_NONE; activity = f->out->items[activity].parent)
		f->inside[activity] += by;
}

/* From now on the thread is in this activity; ACTIVITY_NONE = in none. */
static int enter(struct finding *f, uint32_t thread, uint32_t activity, uint64_t now_ns)
{
	struct activity_span *span = open_span(f, thread);

	if (activity_on(f, thread) == activity)
		return 0;
	count_inside(f, activity_on(f, thread), UINT32_MAX);
	if (span && now_ns > span->t0_ns)
		span->t1_ns = now_ns;
	f->open_span[thread] = ACTIVITY_NONE;
	if (activity == ACTIVITY_NONE)
		return 0;
	if (ARRAY_ROOM(f->out->spans, f->spans_room, f->out->nspans + 1))
		return ERR_MEMORY;
	f->out->spans[f->out->nspans] = (struct activity_span){
		.t0_ns = now_ns, .t1_ns = now_ns, .thread = thread, .activity = activity};
	f->open_span[thread] = f->out->nspans++;
	count_inside(f, activity, 1);
	return 0;
}

static bool is_in(const struct finding *f, uint32_t activity, uint32_t outer)
{
	while (activity != ACTIVITY_NONE && activity != outer)
		activity = f->out->items[activity].parent;
	return activity != ACTIVITY_NONE;
}

/* A thread leaves an activity that has ended: the one that ends it goes back to what it was in. */
static int leave(struct finding *f, uint32_t activity, uint32_t thread, bool ends, uint64_t now_ns)
{
	const struct activity *a = &f->out->items[activity];
	struct activity_span *span = open_span(f, thread);
	uint32_t back = ends ? a->parent : ACTIVITY_NONE;

	if (!span || !is_in(f, span->activity, activity))
		return 0;
	span->to_first_wait = !ends && thread == a->thread;
	while (back != ACTIVITY_NONE && f->out->items[back].ended)
		back = f->out->items[back].parent;
	return enter(f, thread, back, now_ns);
}

/* thread: where it ends */
static int leave_all(struct finding *f, uint32_t activity, uint32_t thread, uint64_t now_ns)
{
	int rc = leave(f, activity, thread, true, now_ns);
	uint32_t i;

	if (!rc && f->out->items[activity].thread != thread)
		rc = leave(f, activity, f->out->items[activity].thread, false, now_ns);
	for (i = 0; !rc && f->inside[activity] && i < f->out->nthreads; i++)
		rc = leave(f, activity, i, false, now_ns);
	return rc;
}

/* ---- activities ------------------------------------------------------------------------------ */

/* "Request" of "Request/Start", "serve" of "/usr/bin/server:serve". */
static const char *name_of(struct finding *f, const char *event)
{
	const char *colon = strrchr(event, ':');
	size_t n;
	char name[TEXT_BYTES];

	if (colon && *event == '/')
		event = colon + 1;
	n = strlen(event);
	if (text_ends_fold(event, "/Start"))
		n -= 6;
	else if (text_ends_fold(event, "Start") && n > 5)
		n -= 5;
	snprintf(name, sizeof(name), "%.*s", (int)(n < TEXT_BYTES ? n : TEXT_BYTES - 1), event);
	return incident_text(f->in, name);
}

/* What a start says of it: its texts. */
static const char *text_of(struct finding *f, const struct event *e)
{
	char text[TEXT_BYTES] = "";
	size_t used = 0;
	uint32_t i;

	for (i = 0; i < e->nfields && used < sizeof(text); i++) {
		const struct event_field *field = &e->fields[i];

		if (field->type != FIELD_TEXT || !field->v.text || !*field->v.text ||
		    text_ends_fold(field->name, "ActivityID"))
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
					 field->v.text);
	}
	if (used >= sizeof(text))
		memcpy(text + sizeof(text) - 4, "...", 4);
	return incident_text(f->in, text);
}

/* What an activity begins in: by its path, else by its thread. */
static uint32_t parent_of(const struct finding *f, const struct event *e, const char *path,
			  uint32_t thread, uint8_t rule)
{
	uint32_t parent = *path ? by_path(f, e, path) : ACTIVITY_NONE, outer;

	if (parent != ACTIVITY_NONE || thread == THREAD_NONE)
		return parent;
	parent = outer = activity_on(f, thread);
	/* Of the same kind: the thread has gone on to the next one. */
	for (; outer != ACTIVITY_NONE; outer = f->out->items[outer].parent)
		if (f->rule_of[outer] == rule)
			parent = f->out->items[outer].parent;
	return parent;
}

static int begin(struct finding *f, uint8_t rule, const struct pair_key *key,
		 const struct event *e, uint32_t thread)
{
	struct id id = {.key = *key, .kind = ID_KEY, .rule = rule};
	struct activities *out = f->out;
	char path[ACTIVITY_PATH_BYTES];
	struct activity a = {.t0_ns = e->time_ns, .t1_ns = e->time_ns, .thread = thread,
			     .process = incident_process_of(f->in, thread)};
	uint32_t old = find_id(f, &id), now = out->n;
	int rc = 0;

	/* Its stop was not seen. */
	if (old != ACTIVITY_NONE && !out->items[old].ended)
		rc = leave_all(f, old, thread, e->time_ns);
	if (out->n == ACTIVITIES_MAX || a.process == UINT32_MAX) {
		out->left_out++;
		return rc;
	}
	path_of(e, path);
	a.parent = parent_of(f, e, path, thread, rule);
	a.depth = a.parent == ACTIVITY_NONE ? 0 : out->items[a.parent].depth + 1;
	a.name = name_of(f, e->name);
	a.text = text_of(f, e);
	if (rc || !a.name || !a.text || ARRAY_ROOM(out->items, f->items_room, now + 1) ||
	    ARRAY_ROOM(f->inside, f->inside_room, now + 1) ||
	    ARRAY_ROOM(f->rule_of, f->rule_room, now + 1))
		return ERR_MEMORY;
	out->items[now] = a;
	f->inside[now] = 0;
	f->rule_of[now] = rule;
	out->n++;
	id.activity = now;
	rc = set_id(f, &id);
	if (!rc && *path) {
		id = path_id(e, path, strlen(path));
		id.activity = now;
		rc = set_id(f, &id);
	}
	return rc ? rc : enter(f, thread, now, e->time_ns);
}

static int end(struct finding *f, uint8_t rule, const struct pair_key *key, const struct event *e,
	       uint32_t thread)
{
	const struct id id = {.key = *key, .kind = ID_KEY, .rule = rule};
	uint32_t activity = find_id(f, &id);
	struct activity *a;

	if (activity == ACTIVITY_NONE || f->out->items[activity].ended)
		return 0;
	a = &f->out->items[activity];
	a->ended = true;
	a->t1_ns = e->time_ns > a->t0_ns ? e->time_ns : a->t0_ns;
	return leave_all(f, activity, thread, e->time_ns);
}

/* ---- tasks of .NET --------------------------------------------------------------------------- */

#define TASK_PROVIDER "System.Threading.Tasks.TplEventSource"

/* Their events, with the field that says which task; -1 schedules, 0 ends, 1 begins. */
static const struct task_event {
	const char *name, *field;
	int what;
} task_events[] = {
	{"TaskScheduled/Send", "TaskID", -1}, {"TaskScheduled", "TaskID", -1},
	{"AwaitTaskContinuationScheduled/Send", "ContinueWithTaskId", -1},
	{"AwaitTaskContinuationScheduled", "ContinueWithTaskId", -1},
	{"TraceOperationBegin", "TaskID", -1},
	{"TaskExecute/Start", "TaskID", 1}, {"TaskStarted", "TaskID", 1},
	{"TaskWaitContinuationStarted", "TaskID", 1}, {"TraceSynchronousWorkBegin", "TaskID", 1},
	{"TaskExecute/Stop", "TaskID", 0}, {"TaskCompleted", "TaskID", 0},
	{"TaskWaitContinuationComplete", "TaskID", 0},
	{"ThreadPoolEnqueueWork", "WorkID", -1}, {"ThreadPoolDequeueWork", "WorkID", 1},
	{"ThreadPoolWorkerThread/Wait", NULL, 0},
};

static const struct task_event *task_event_of(const struct event *e)
{
	enum { EXECUTES = 2 };               /* System.Threading.Tasks.CausalitySynchronousWork */
	const struct event_field *work = event_field(e, "Work");
	size_t i;

	if (work && work->type != FIELD_TEXT && work->v.u != EXECUTES)
		return NULL;
	for (i = 0; i < COUNT_OF(task_events); i++)
		if (strcmp(e->name, task_events[i].name) == 0)
			return &task_events[i];
	return NULL;
}

/* now: what the thread is in, by its ActivityID */
static int take_task(struct finding *f, const struct event *e, const struct task_event *task,
		     uint32_t thread, uint32_t now)
{
	const struct event_field *number;
	struct id id = {.kind = ID_TASK};
	uint32_t back;

	if (task->what == 0) {
		back = f->task_before[thread];
		f->task_before[thread] = ACTIVITY_NONE;
		if (now == ACTIVITY_NONE && back != ACTIVITY_NONE && !f->out->items[back].ended)
			now = back;
		return enter(f, thread, now, e->time_ns);
	}
	number = event_field(e, task->field);
	if (!number || number->type == FIELD_TEXT || number->type == FIELD_DOUBLE)
		return 0;
	pair_key_begin(&id.key, e->process);
	pair_key_u64(&id.key, number->v.u);
	id.rule = *task->field == 'W';
	if (task->what < 0) {
		id.activity = activity_on(f, thread);
		return set_id(f, &id);
	}
	f->task_before[thread] = activity_on(f, thread);
	if (now == ACTIVITY_NONE)
		now = find_id(f, &id);
	if (now != ACTIVITY_NONE && f->out->items[now].ended)
		now = ACTIVITY_NONE;
	return enter(f, thread, now, e->time_ns);
}

/* ---- all events ------------------------------------------------------------------------------ */

/*
 * Any other event: by its activity's id, or its task. Once events of tasks have such ids, one of
 * them without says that its thread is in no activity: a thread of a pool has gone back to it.
 */
static int take_other(struct finding *f, const struct event *e, uint32_t thread)
{
	const struct task_event *task = task_event_of(e);
	char path[ACTIVITY_PATH_BYTES];
	uint32_t now = ACTIVITY_NONE;
	bool told;
	int rc = 0;

	path_of(e, path);
	told = strcmp(e->provider, TASK_PROVIDER) == 0;
	f->tasks_have_ids |= told && *path;
	told &= f->tasks_have_ids && !*path;
	if (*path)
		now = by_path(f, e, path);
	if (told)
		f->task_before[thread] = ACTIVITY_NONE;
	if (now != ACTIVITY_NONE || told)
		rc = enter(f, thread, now, e->time_ns);
	return rc || !task ? rc : take_task(f, e, task, thread, now);
}

static int take_event(void *ctx, const struct event *e, struct err *err)
{
	struct finding *f = ctx;
	uint32_t thread = f->in->events[f->event++].thread, kind, i;
	bool paired = false;
	struct pair_key key;
	int rc = 0;

	if (e->kind != EVENT_GENERIC || thread == THREAD_NONE)
		return 0;
	kind = find_kind(f, e->provider, e->name);
	for (i = 0; !rc && kind != TABLE_NONE && i < f->nrules; i++) {
		enum pair_end what = f->kinds[kind].rules >> i & 1 ?
					     event_match_end(f->rules[i], e, &key) : PAIR_NEITHER;

		if (what == PAIR_START)
			rc = begin(f, (uint8_t)i, &key, e, thread);
		else if (what == PAIR_STOP)
			rc = end(f, (uint8_t)i, &key, e, thread);
		paired |= what != PAIR_NEITHER;
	}
	if (!rc && !paired)
		rc = take_other(f, e, thread);
	return rc ? err_memory(err, "for activities") : 0;
}

/* What goes on at the window's end. */
static void end_open(struct finding *f)
{
	struct activities *out = f->out;
	uint64_t end_ns = f->in->head.t1_ns;
	uint32_t i;

	for (i = 0; i < out->nthreads; i++) {
		struct activity_span *span = open_span(f, i);

		if (span && end_ns > span->t0_ns)
			span->t1_ns = end_ns;
	}
	for (i = 0; i < out->nspans; i++) {
		struct activity *a = &out->items[out->spans[i].activity];

		if (!a->ended && out->spans[i].t1_ns > a->t1_ns)
			a->t1_ns = out->spans[i].t1_ns;
	}
	/* Nested ones end later, and say that theirs goes on. */
	for (i = out->n; i-- > 0;) {
		struct activity *a = &out->items[i];

		if (a->parent != ACTIVITY_NONE && !out->items[a->parent].ended &&
		    out->items[a->parent].t1_ns < a->t1_ns)
			out->items[a->parent].t1_ns = a->t1_ns;
	}
}

/* The spans by thread; those of a thread have been opened in the order of time. */
static int sort_spans(struct activities *out)
{
	struct sort_item *items = malloc(((size_t)out->nspans * 2 + 1) * sizeof(*items));
	struct activity_span *sorted = malloc(((size_t)out->nspans + 1) * sizeof(*sorted));
	uint32_t i, thread;

	out->first = calloc((size_t)out->nthreads + 1, sizeof(*out->first));
	if (items && sorted && out->first) {
		for (i = 0; i < out->nspans; i++)
			items[i] = (struct sort_item){.key = out->spans[i].thread, .value = {i}};
		sort_items(items, items + out->nspans, out->nspans);
		for (i = 0; i < out->nspans; i++)
			sorted[i] = out->spans[items[i].value[0]];
		for (i = thread = 0; thread <= out->nthreads; thread++) {
			while (i < out->nspans && sorted[i].thread < thread)
				i++;
			out->first[thread] = i;
		}
		free(out->spans);
		out->spans = sorted;
		sorted = NULL;
	}
	free(items);
	free(sorted);
	return out->first && !sorted ? 0 : ERR_MEMORY;
}

static int find_all(struct finding *f, struct err *err)
{
	struct processes *all = NULL;
	int rc = processes_new(&all, err);

	f->out->nthreads = f->in->nthreads;
	f->open_span = array_of_none((size_t)f->in->nthreads + 1);
	f->task_before = array_of_none((size_t)f->in->nthreads + 1);
	if (!rc && (!f->open_span || !f->task_before))
		rc = err_memory(err, "for activities");
	if (!rc && f->nrules)
		rc = replay_incident(f->in, all, take_event, f, err);
	if (!rc) {
		end_open(f);
		if (sort_spans(f->out))
			rc = err_memory(err, "for activities");
	}
	processes_free(all);
	return rc;
}

int activities_find(struct incident *in, char *const *pairs, uint32_t npairs,
		    struct activities *out, struct err *err)
{
	struct finding f = {.in = in, .out = out};
	uint32_t i;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = list_kinds(&f) ? err_memory(err, "for kinds of events") : 0;
	for (i = 0; !rc && i < npairs; i++)
		rc = add_given(&f, pairs[i], err);
	if (!rc && add_derived(&f))
		rc = err_memory(err, "for pairs of events");
	if (!rc)
		rc = find_all(&f, err);
	while (f.nrules)
		trigger_close(f.rules[--f.nrules]);
	table_free(&f.by_name);
	table_free(&f.by_id);
	free(f.kinds);
	free(f.ids);
	free(f.open_span);
	free(f.task_before);
	free(f.inside);
	free(f.rule_of);
	if (rc)
		activities_free(out);
	return rc;
}

void activities_free(struct activities *a)
{
	free(a->items);
	free(a->spans);
	free(a->gaps);
	free(a->first);
	memset(a, 0, sizeof(*a));
}
