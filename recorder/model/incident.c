#include "model/incident_build_private.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- heads ----------------------------------------------------------------------------------- */

/* Every text of a head, so that copying and freeing cannot forget one. */
static const size_t head_texts[] = {
	offsetof(struct incident_head, rule),
	offsetof(struct incident_head, reason),
	offsetof(struct incident_head, gap_reason),
	offsetof(struct incident_head, host),
	offsetof(struct incident_head, host_text),
	offsetof(struct incident_head, recorder_version),
	offsetof(struct incident_head, note),
	offsetof(struct incident_head, remarks),
};

static char **head_text(struct incident_head *h, size_t i)
{
	return (char **)((char *)h + head_texts[i]);
}

bool uuid_is(const char *text)
{
	return strlen(text) == UUID_BYTES && strspn(text, "0123456789abcdef-") == UUID_BYTES;
}

bool incident_is_of_group(const struct incident_head *h, const char *id)
{
	const char *at = h->reason ? strrchr(h->reason, '[') : NULL;
	size_t n = strlen(id);

	if (n < GROUP_DIGITS_MIN)
		return false;
	if (strncmp(h->uuid, id, n) == 0)
		return true;
	/* A reason that quotes a line of a log may end in anything. */
	return at && h->rule && strcmp(h->rule, "manual") == 0 &&
	       strncmp(at + 1, INCIDENT_GROUP, strlen(INCIDENT_GROUP)) == 0 &&
	       strncmp(at + 1 + strlen(INCIDENT_GROUP), id, n) == 0;
}

void incident_head_free(struct incident_head *h)
{
	size_t i;

	for (i = 0; i < COUNT_OF(head_texts); i++)
		free(*head_text(h, i));
	memset(h, 0, sizeof(*h));
}

int incident_head_copy(const struct incident_head *from, struct incident_head *to)
{
	struct incident_head copy = *from;
	size_t i;
	int rc = 0;

	for (i = 0; i < COUNT_OF(head_texts); i++) {
		char **text = head_text(&copy, i);

		if (*text && !(*text = text_dup(*text, SIZE_MAX)))
			rc = ERR_MEMORY;
	}
	if (rc)
		incident_head_free(&copy);
	else
		*to = copy;
	return rc;
}

const char *incident_state_text(enum incident_state state)
{
	switch (state) {
	case INCIDENT_OPEN:
		return "open";
	case INCIDENT_COMPLETE:
		return "complete";
	case INCIDENT_PARTIAL:
		return "partial";
	}
	return "?";
}

int32_t incident_second(const struct incident_head *h, uint64_t time_ns)
{
	int64_t ns = (int64_t)(time_ns - h->trigger_ns);
	int64_t second = ns / (int64_t)NS_PER_SEC - (ns % (int64_t)NS_PER_SEC < 0);

	return second < INT32_MIN ? INT32_MIN : second > INT32_MAX ? INT32_MAX : (int32_t)second;
}

const struct event_field *incident_field(const struct incident *in, const struct incident_event *e,
					 const char *name)
{
	const struct event fields = {.fields = in->fields + e->first_field, .nfields = e->nfields};

	return event_field(&fields, name);
}

uint64_t incident_field_uint(const struct incident *in, const struct incident_event *e,
			     const char *name)
{
	const struct event_field *f = incident_field(in, e, name);

	if (f && f->type == FIELD_INT && f->v.i > 0)
		return (uint64_t)f->v.i;
	return f && f->type == FIELD_UINT ? f->v.u : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

int incident_init(struct incident *in)
{
	memset(in, 0, sizeof(*in));
	in->build = calloc(1, sizeof(*in->build));
	return in->build ? 0 : ERR_MEMORY;
}

static void build_free(struct incident_build *b)
{
	if (!b)
		return;
	text_table_free(&b->texts);
	table_free(&b->processes.table);
	table_free(&b->threads.table);
	table_free(&b->modules.table);
	table_free(&b->frames.table);
	table_free(&b->stacks.table);
	free(b->stack_hashes);
	free(b);
}

void incident_free(struct incident *in)
{
	incident_head_free(&in->head);
	free(in->processes);
	free(in->threads);
	free(in->modules);
	free(in->frames);
	free(in->stacks);
	free(in->samples);
	free(in->memory_factors);
	free(in->freed);
	free(in->events);
	free(in->fields);
	free(in->damage);
	free(in->parts);
	build_free(in->build);
	memset(in, 0, sizeof(*in));
}

int incident_whole(const struct incident *in, struct err *err)
{
	return in->damage ? err_set(err, ERR_FORMAT, "incident %" PRId64 " is damaged: %s",
				    in->head.id, in->damage)
			  : 0;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/*
 * The interned copy of a text, or NULL without memory. Equal texts have one address: comparing two
 * frames needs no strcmp, and a function name shared by thousands of frames is stored once.
 */
static const char *intern(struct incident_build *b, const char *text)
{
	uint32_t number;

	if (!text || !*text)
		return "";
	number = text_table_add(&b->texts, text, strlen(text));
	return number == TABLE_NONE ? NULL : text_table_get(&b->texts, number);
}

const char *incident_text(struct incident *in, const char *text)
{
	return intern(in->build, text);
}

/* For optional texts: NULL stays NULL; false without memory. */
static bool intern_or_null(struct incident_build *b, const char **at)
{
	if (!*at)
		return true;
	*at = intern(b, *at);
	return *at != NULL;
}

/* ---- things found by their contents ---------------------------------------------------------- */

/* The index of an item in its array of n, found or added. items_at: the address of the array. */
static uint32_t find_or_add(struct incident *in, struct incident_index *index, table_same *same,
			    uint64_t hash, const void *item, size_t item_bytes, void *items_at,
			    uint32_t *n)
{
	uint32_t found = table_find(&index->table, hash, same, in, item);
	char *items;

	if (found != TABLE_NONE)
		return found;
	if ((*n == index->capacity && array_grow(items_at, &index->capacity, *n + 1, item_bytes)) ||
	    table_add(&index->table, hash, *n))
		return UINT32_MAX;
	memcpy(&items, items_at, sizeof(items));
	memcpy(items + *n * item_bytes, item, item_bytes);
	return (*n)++;
}

static bool same_process(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_process *a = &((const struct incident *)ctx)->processes[value];
	const struct incident_process *b = key;

	return a->pid == b->pid && a->start_ns == b->start_ns && a->exec == b->exec &&
	       a->parent_pid == b->parent_pid && a->name == b->name && a->cmdline == b->cmdline &&
	       a->home == b->home && a->part == b->part;
}

uint32_t incident_add_process(struct incident *in, const struct incident_process *p)
{
	struct incident_build *b = in->build;
	struct incident_process copy = *p;
	uint64_t hash = hash_pair(hash_pair(p->pid, p->exec), p->start_ns + p->part);

	copy.name = intern(b, p->name);
	copy.cmdline = intern(b, p->cmdline);
	copy.home = intern(b, p->home);
	if (!copy.name || !copy.cmdline || !copy.home)
		return UINT32_MAX;
	return find_or_add(in, &b->processes, same_process, hash, &copy, sizeof(copy),
			   &in->processes, &in->nprocesses);
}

static bool same_thread(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_thread *a = &((const struct incident *)ctx)->threads[value];
	const struct incident_thread *b = key;

	return a->process == b->process && a->tid == b->tid && a->name == b->name;
}

uint32_t incident_add_thread(struct incident *in, const struct incident_thread *t)
{
	struct incident_build *b = in->build;
	struct incident_thread copy = *t;
	uint64_t hash = hash_pair(t->process, t->tid);

	copy.name = intern(b, t->name);
	if (!copy.name || t->process >= in->nprocesses)
		return UINT32_MAX;
	return find_or_add(in, &b->threads, same_thread, hash, &copy, sizeof(copy), &in->threads,
			   &in->nthreads);
}

static bool same_module(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_module *a = &((const struct incident *)ctx)->modules[value];
	const struct incident_module *b = key;

	return a->kind == b->kind && a->name == b->name && a->path == b->path &&
	       a->build_id_bytes == b->build_id_bytes &&
	       memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}

uint32_t incident_add_module(struct incident *in, const struct incident_module *m)
{
	struct incident_build *b = in->build;
	struct incident_module copy = *m;
	uint64_t hash;

	copy.name = intern(b, m->name);
	copy.path = intern(b, m->path);
	if (!copy.name || !copy.path || m->build_id_bytes > BUILD_ID_MAX)
		return UINT32_MAX;
	hash = hash_pair((uintptr_t)copy.path, hash_bytes(m->build_id, m->build_id_bytes));
	return find_or_add(in, &b->modules, same_module, hash, &copy, sizeof(copy), &in->modules,
			   &in->nmodules);
}

static bool same_frame(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_frame *a = &((const struct incident *)ctx)->frames[value];
	const struct incident_frame *b = key;

	return a->offset == b->offset && a->module == b->module && a->flags == b->flags &&
	       a->function_offset == b->function_offset && a->function == b->function &&
	       a->raw_name == b->raw_name && a->function_module == b->function_module &&
	       a->file == b->file && a->line == b->line;
}

uint32_t incident_add_known_frame(struct incident *in, const struct incident_frame *f)
{
	uint64_t hash = hash_pair(hash_pair(f->module, f->flags), f->offset);

	if (f->module >= in->nmodules)
		return UINT32_MAX;
	return find_or_add(in, &in->build->frames, same_frame, hash, f, sizeof(*f), &in->frames,
			   &in->nframes);
}

uint32_t incident_add_frame(struct incident *in, const struct incident_frame *f)
{
	struct incident_build *b = in->build;
	struct incident_frame copy = *f;

	if (!intern_or_null(b, &copy.function) || !intern_or_null(b, &copy.raw_name) ||
	    !intern_or_null(b, &copy.function_module) || !intern_or_null(b, &copy.file))
		return UINT32_MAX;
	return incident_add_known_frame(in, &copy);
}

/* ---- samples and events ---------------------------------------------------------------------- */

int incident_add_sample(struct incident *in, const struct incident_sample *s)
{
	if (!sample_is_sound(s, in->nthreads, in->nstacks))
		return ERR_FORMAT;
	if (ARRAY_ROOM(in->samples, in->build->samples_cap, in->nsamples + 1))
		return ERR_MEMORY;
	in->samples[in->nsamples++] = *s;
	return 0;
}

/* Add the fields of one event; in->nfields grows only when all of them fit. */
static int add_fields(struct incident *in, const struct event_field *fields, uint32_t n)
{
	uint32_t i;

	if (ARRAY_ROOM(in->fields, in->build->fields_cap, in->nfields + n))
		return ERR_MEMORY;
	for (i = 0; i < n; i++) {
		struct event_field *f = &in->fields[in->nfields + i];

		*f = fields[i];
		f->name = intern(in->build, f->name);
		if (f->type == FIELD_TEXT)
			f->v.text = intern(in->build, f->v.text);
		if (!f->name || (f->type == FIELD_TEXT && !f->v.text))
			return ERR_MEMORY;
	}
	in->nfields += n;
	return 0;
}

int incident_add_event(struct incident *in, const struct incident_event *e,
		       const struct event_field *fields)
{
	struct incident_event copy = *e;

	if (!event_is_sound(e, in->nthreads, in->nstacks))
		return ERR_FORMAT;
	copy.provider = intern(in->build, e->provider);
	copy.name = intern(in->build, e->name);
	if (!copy.provider || !copy.name)
		return ERR_MEMORY;
	if (ARRAY_ROOM(in->events, in->build->events_cap, in->nevents + 1))
		return ERR_MEMORY;
	copy.first_field = in->nfields;
	if (e->nfields && add_fields(in, fields, e->nfields))
		return ERR_MEMORY;
	in->events[in->nevents++] = copy;
	return 0;
}
