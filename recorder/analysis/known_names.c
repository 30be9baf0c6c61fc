#include "analysis/known_names.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/text_table.h"
#include "model/process_filter.h"
#include "triggers/event_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 64u                       /* of one event, over its versions */
#define LISTED_MAX 8u                        /* names in one sentence */

enum known_kind { KNOWN_EVENT, KNOWN_COUNTER, KNOWN_PROCESS };

struct known {
	enum known_kind kind;
	uint32_t provider, name;             /* texts; processes and counters: provider is "" */
	uint32_t id;                         /* event: its number + 1, 0 = none; process: pid */
	uint32_t fields[FIELDS_MAX];         /* texts */
	uint32_t nfields;
	uint64_t last_fields;                /* hash of the latest event's field names */
};

struct known_names {
	struct text_table texts;
	struct table by_contents;
	struct known *all;
	uint32_t n, room;
	bool full;
};

/* ---- collecting ------------------------------------------------------------------------------ */

int known_names_new(struct known_names **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : err_memory(err, "for the names of a trace");
}

void known_names_free(struct known_names *k)
{
	if (!k)
		return;
	text_table_free(&k->texts);
	table_free(&k->by_contents);
	free(k->all);
	free(k);
}

static uint32_t text_number(struct known_names *k, const char *text)
{
	return text_table_add(&k->texts, text, strlen(text));
}

static bool same_known(const void *ctx, uint32_t value, const void *key)
{
	const struct known *a = &((const struct known_names *)ctx)->all[value], *b = key;

	return a->kind == b->kind && a->id == b->id && a->name == b->name &&
	       a->provider == b->provider;
}

/* The entry of a name, added when it is new; NULL without memory, or when the list is full. */
static struct known *entry_of(struct known_names *k, struct known key, bool *no_memory)
{
	uint64_t hash = hash_pair(hash_pair(key.provider, key.name), hash_pair(key.kind, key.id));
	uint32_t at = table_find(&k->by_contents, hash, same_known, k, &key);

	if (at != TABLE_NONE)
		return &k->all[at];
	k->full |= k->n == KNOWN_NAMES_MAX;
	if (k->full)
		return NULL;
	*no_memory = key.provider == TABLE_NONE || key.name == TABLE_NONE ||
		     ARRAY_ROOM(k->all, k->room, k->n + 1) ||
		     table_add(&k->by_contents, hash, k->n);
	if (*no_memory)
		return NULL;
	k->all[k->n] = key;
	return &k->all[k->n++];
}

static bool has_field(const struct known_names *k, const struct known *n, const char *field)
{
	uint32_t i;

	for (i = 0; i < n->nfields; i++)
		if (text_same_fold(text_table_get(&k->texts, n->fields[i]), field))
			return true;
	return false;
}

/* Versions of an event may have different fields. */
static bool add_fields(struct known_names *k, struct known *n, const struct event *e)
{
	uint64_t hash = e->nfields;
	uint32_t i;

	for (i = 0; i < e->nfields; i++)
		hash = hash_pair(hash, hash_bytes(e->fields[i].name, strlen(e->fields[i].name)));
	if (hash == n->last_fields)
		return true;
	n->last_fields = hash;
	for (i = 0; i < e->nfields && n->nfields < FIELDS_MAX; i++) {
		if (has_field(k, n, e->fields[i].name))
			continue;
		n->fields[n->nfields] = text_number(k, e->fields[i].name);
		if (n->fields[n->nfields] == TABLE_NONE)
			return false;
		n->nfields++;
	}
	return true;
}

/* Add each name of a process. */
static void add_process(struct known_names *k, const struct process *process, bool *no_memory)
{
	const struct process_names is = process_names_of(process);
	const char *const names[] = {process_name(process), is.comm, is.called, is.script};
	struct known key = {.kind = KNOWN_PROCESS, .id = process->pid,
			    .provider = text_number(k, "")};
	size_t i;

	for (i = 0; i < COUNT_OF(names) && !*no_memory; i++) {
		if (!names[i] || !*names[i])
			continue;
		key.name = text_number(k, names[i]);
		entry_of(k, key, no_memory);
	}
}

int known_names_add(struct known_names *k, const struct event *e, struct err *err)
{
	struct known key = {0};
	bool no_memory = false;
	struct known *n;

	if (k->full)
		return 0;                    /* nothing is said any more */
	if (e->kind == EVENT_COUNTER || (e->provider && e->name)) {
		key.kind = e->kind == EVENT_COUNTER ? KNOWN_COUNTER : KNOWN_EVENT;
		key.provider = text_number(k, key.kind == KNOWN_EVENT ? e->provider : "");
		key.name = text_number(k, e->name ? e->name : "");
		if (key.kind == KNOWN_EVENT && e->flags & EVENT_FLAG_ID)
			key.id = (e->flags >> EVENT_ID_SHIFT) + 1;
		n = entry_of(k, key, &no_memory);
		if (n && key.kind == KNOWN_EVENT && !add_fields(k, n, e))
			no_memory = true;
	}
	if (e->process && !no_memory)
		add_process(k, e->process, &no_memory);
	return no_memory ? err_memory(err, "for the names of a trace") : 0;
}

/* ---- reporting ------------------------------------------------------------------------------- */

bool known_names_suspects(const struct trigger *t)
{
	struct trigger_wish wish;
	const struct trigger *part;
	unsigned i;
	bool more_than_one = false;

	for (i = 0; t->ops->part && (part = t->ops->part(t, i)) != NULL; i++)
		if (known_names_suspects(part))
			return true;
	if (!t->ops->wish || t->counts.matched || !t->ops->wish(t, 0, &wish))
		return false;
	more_than_one = wish.nfields || t->ops->wish(t, 1, &wish);
	return !t->counts.seen || more_than_one || t->counts.dropped_process == t->counts.seen;
}

struct explanation {
	const struct known_names *k;
	const char *spec, *where;
	struct buf *out;
};

/* A text of an entry. */
static const char *text_at(const struct explanation *t, uint32_t number)
{
	return text_table_get(&t->k->texts, number);
}

static bool is_provider(const struct explanation *t, const struct known *n, const char *provider)
{
	return n->kind == KNOWN_EVENT && provider_is(provider, text_at(t, n->provider));
}

static bool is_event(const struct explanation *t, const struct known *n,
		     const struct trigger_wish *w)
{
	int id = event_id_of(w->event);

	if (!is_provider(t, n, w->provider))
		return false;
	return id >= 0 && n->id ? n->id == (uint32_t)id + 1
				: event_name_is(w->event, text_at(t, n->name));
}

struct choice {
	struct nearest nearest;
	const char *names[LISTED_MAX];
	unsigned n;
	bool more;
};

static void offer_name(struct choice *c, const char *name)
{
	unsigned i;

	nearest_offer(&c->nearest, name);
	for (i = 0; i < c->n; i++)
		if (strcmp(c->names[i], name) == 0)
			return;
	if (c->n < LISTED_MAX)
		c->names[c->n++] = name;
	else
		c->more = true;
}

/* "; did you mean 'X'?", or else the first names: "; there are 'A', 'B', ...". */
static void put_choice(struct buf *out, const struct choice *c)
{
	unsigned i;

	if (c->nearest.n) {
		buf_puts(out, "; did you mean ");
		nearest_put(&c->nearest, "'", "'", out);
		buf_putc(out, '?');
	} else if (c->n) {
		for (i = 0; i < c->n; i++)
			buf_printf(out, "%s'%s'", i ? ", " : "; there are ", c->names[i]);
		buf_puts(out, c->more ? ", ..." : "");
	}
	buf_putc(out, '\n');
}

static void explain_provider(const struct explanation *t, const struct trigger_wish *w)
{
	struct choice c = {.nearest.wanted = w->provider + (*w->provider == '*')};
	uint32_t i;

	for (i = 0; i < t->k->n; i++)
		if (t->k->all[i].kind == KNOWN_EVENT && *text_at(t, t->k->all[i].provider))
			offer_name(&c, text_at(t, t->k->all[i].provider));
	buf_printf(t->out, "%s: %s has no event of provider '%s'", t->spec, t->where, w->provider);
	put_choice(t->out, &c);
}

static void explain_event(const struct explanation *t, const struct trigger_wish *w)
{
	struct choice c = {.nearest.wanted = w->event};
	uint32_t i;

	for (i = 0; i < t->k->n; i++)
		if (is_provider(t, &t->k->all[i], w->provider))
			offer_name(&c, text_at(t, t->k->all[i].name));
	buf_printf(t->out, "%s: provider '%s' has no event '%s' in %s", t->spec, w->provider,
		   w->event, t->where);
	put_choice(t->out, &c);
}

static void explain_field(const struct explanation *t, const struct trigger_wish *w,
			  const char *field)
{
	struct choice c = {.nearest.wanted = field};
	uint32_t i, k;

	for (i = 0; i < t->k->n; i++) {
		if (!is_event(t, &t->k->all[i], w))
			continue;
		if (has_field(t->k, &t->k->all[i], field) || t->k->all[i].nfields == FIELDS_MAX)
			return;
		for (k = 0; k < t->k->all[i].nfields; k++)
			offer_name(&c, text_at(t, t->k->all[i].fields[k]));
	}
	buf_printf(t->out, "%s: '%s' has no field '%s' in %s", t->spec, w->event, field, t->where);
	put_choice(t->out, &c);
}

/* Whether the provider itself is missing. */
static bool explain_names(const struct explanation *t, const struct trigger_wish *w)
{
	bool has_provider = false, has_event = false;
	uint32_t i;

	for (i = 0; i < t->k->n; i++) {
		has_provider |= is_provider(t, &t->k->all[i], w->provider);
		has_event |= w->event ? is_event(t, &t->k->all[i], w) : has_provider;
	}
	if (!has_provider)
		explain_provider(t, w);
	else if (!has_event)
		explain_event(t, w);
	for (i = 0; has_event && i < w->nfields; i++)
		if (!event_has_own_field(w->fields[i]))
			explain_field(t, w, w->fields[i]);
	return !has_provider;
}

static void explain_counter(const struct explanation *t, const char *counter)
{
	struct choice c = {.nearest.wanted = counter};
	uint32_t i;

	for (i = 0; i < t->k->n; i++) {
		if (t->k->all[i].kind != KNOWN_COUNTER)
			continue;
		if (strcmp(text_at(t, t->k->all[i].name), counter) == 0)
			return;
		offer_name(&c, text_at(t, t->k->all[i].name));
	}
	buf_printf(t->out, "%s: %s has no value of counter '%s'%s", t->spec, t->where, counter,
		   c.n ? "" : ", nor of any other; a recording keeps those that rules or "
			      "--monitor-perf-counter name");
	put_choice(t->out, &c);
}

/* Processes of the filter that were not seen. */
static void explain_processes(const struct explanation *t, const struct process_filter *f)
{
	unsigned item;
	uint32_t i;

	for (item = 0; item < f->n; item++) {
		const char *wanted = f->items[item].name;
		uint32_t pid = f->items[item].pid;
		struct choice c = {.nearest.wanted = wanted};
		bool found = f->items[item].key;     /* not looked for */

		for (i = 0; i < t->k->n && !found; i++) {
			const struct known *n = &t->k->all[i];
			const struct process_names names = {.comm = text_at(t, n->name)};

			if (n->kind != KNOWN_PROCESS)
				continue;
			found = pid ? n->id == pid : process_names_match(&names, wanted);
			if (!pid)
				offer_name(&c, names.comm);
		}
		if (found)
			continue;
		buf_printf(t->out, "%s: %s has no process '", t->spec, t->where);
		if (pid)
			buf_printf(t->out, "%" PRIu32 "'", pid);
		else
			buf_printf(t->out, "%s'", wanted);
		put_choice(t->out, &c);
	}
}

void known_names_explain(const struct known_names *k, const struct trigger *t, const char *where,
		      struct buf *out)
{
	struct explanation explanation = {k, t->spec, where, out};
	const struct process_filter *processes = NULL;
	const char *explained = "";          /* the missing provider, explained once */
	const struct trigger *part;
	struct trigger_wish wish;
	unsigned i;

	for (i = 0; t->ops->part && (part = t->ops->part(t, i)) != NULL; i++)
		known_names_explain(k, part, where, out);
	/* A full list says nothing about the names that are not in it. */
	if (!t->ops->wish || k->full || !known_names_suspects(t))
		return;
	for (i = 0; t->ops->wish(t, i, &wish); i++) {
		if (wish.provider && strcmp(explained, wish.provider) != 0 &&
		    explain_names(&explanation, &wish))
			explained = wish.provider;
		if (wish.counter)
			explain_counter(&explanation, wish.counter);
		processes = wish.processes;
	}
	if (processes)
		explain_processes(&explanation, processes);
}
