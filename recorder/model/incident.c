#include "model/incident_build_private.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Texts are interned, so equal texts have one address: comparing two frames needs no strcmp, and a
 * function name shared by thousands of frames is stored once.
 */
#define TEXT_BLOCK_BYTES ((size_t)64 * 1024)

struct text_block {
	struct text_block *next;
	size_t used;
	char bytes[];
};

int incident_init(struct incident *in)
{
	memset(in, 0, sizeof(*in));
	in->build = calloc(1, sizeof(*in->build));
	return in->build ? 0 : ERR_MEMORY;
}

static void build_free(struct incident_build *b)
{
	struct text_block *next;

	if (!b)
		return;
	while (b->blocks) {
		next = b->blocks->next;
		free(b->blocks);
		b->blocks = next;
	}
	free(b->texts);
	table_free(&b->text_table);
	table_free(&b->process_table);
	table_free(&b->thread_table);
	table_free(&b->module_table);
	table_free(&b->frame_table);
	table_free(&b->stack_table);
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
	free(in->events);
	free(in->fields);
	free(in->damage);
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

static bool same_text(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_build *b = ctx;

	return strcmp(b->texts[value], key) == 0;
}

static char *text_room(struct incident_build *b, size_t n)
{
	size_t block_bytes = n > TEXT_BLOCK_BYTES ? n : TEXT_BLOCK_BYTES;
	struct text_block *block = b->blocks;

	if (!block || TEXT_BLOCK_BYTES < block->used + n) {
		block = malloc(sizeof(*block) + block_bytes);
		if (!block)
			return NULL;
		block->used = 0;
		block->next = b->blocks;
		b->blocks = block;
	}
	block->used += n;
	return block->bytes + block->used - n;
}

/* The interned copy of a text, or NULL without memory. */
static const char *text(struct incident_build *b, const char *given)
{
	uint64_t hash;
	uint32_t found;
	size_t n;
	char *copy;

	if (!given || !*given)
		return "";
	n = strlen(given);
	hash = hash_bytes(given, n);
	found = table_find(&b->text_table, hash, same_text, b, given);
	if (found != TABLE_NONE)
		return b->texts[found];
	if (ARRAY_ROOM(b->texts, b->texts_cap, b->ntexts + 1))
		return NULL;
	copy = text_room(b, n + 1);
	if (!copy || table_add(&b->text_table, hash, b->ntexts))
		return NULL;
	memcpy(copy, given, n + 1);
	b->texts[b->ntexts++] = copy;
	return copy;
}

/* For optional texts: NULL stays NULL; false without memory. */
static bool text_or_null(struct incident_build *b, const char **at)
{
	if (!*at)
		return true;
	*at = text(b, *at);
	return *at != NULL;
}

/* An interned text is identified by its address. */
static uint64_t hash_text(const char *interned)
{
	return hash_u64((uint64_t)(uintptr_t)interned);
}

/* ---- things found by their contents ---------------------------------------------------------- */

/* Enter the item that the caller has put at index *n. */
static uint32_t entered(struct table *t, uint64_t hash, uint32_t *n)
{
	if (table_add(t, hash, *n))
		return UINT32_MAX;
	return (*n)++;
}

static bool same_process(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_process *a = &((const struct incident *)ctx)->processes[value];
	const struct incident_process *b = key;

	return a->pid == b->pid && a->start_ns == b->start_ns && a->exec == b->exec &&
	       a->parent_pid == b->parent_pid && a->name == b->name && a->cmdline == b->cmdline;
}

uint32_t incident_add_process(struct incident *in, const struct incident_process *p)
{
	struct incident_build *b = in->build;
	struct incident_process copy = *p;
	uint64_t hash = hash_pair(hash_pair(p->pid, p->exec), p->start_ns);
	uint32_t found;

	copy.name = text(b, p->name);
	copy.cmdline = text(b, p->cmdline);
	if (!copy.name || !copy.cmdline)
		return UINT32_MAX;
	found = table_find(&b->process_table, hash, same_process, in, &copy);
	if (found != TABLE_NONE)
		return found;
	if (ARRAY_ROOM(in->processes, b->processes_cap, in->nprocesses + 1))
		return UINT32_MAX;
	in->processes[in->nprocesses] = copy;
	return entered(&b->process_table, hash, &in->nprocesses);
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
	uint32_t found;

	copy.name = text(b, t->name);
	if (!copy.name || t->process >= in->nprocesses)
		return UINT32_MAX;
	found = table_find(&b->thread_table, hash, same_thread, in, &copy);
	if (found != TABLE_NONE)
		return found;
	if (ARRAY_ROOM(in->threads, b->threads_cap, in->nthreads + 1))
		return UINT32_MAX;
	in->threads[in->nthreads] = copy;
	return entered(&b->thread_table, hash, &in->nthreads);
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
	uint32_t found;

	copy.name = text(b, m->name);
	copy.path = text(b, m->path);
	if (!copy.name || !copy.path || m->build_id_bytes > BUILD_ID_MAX)
		return UINT32_MAX;
	hash = hash_pair(hash_text(copy.path), hash_bytes(m->build_id, m->build_id_bytes));
	found = table_find(&b->module_table, hash, same_module, in, &copy);
	if (found != TABLE_NONE)
		return found;
	if (ARRAY_ROOM(in->modules, b->modules_cap, in->nmodules + 1))
		return UINT32_MAX;
	in->modules[in->nmodules] = copy;
	return entered(&b->module_table, hash, &in->nmodules);
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

uint32_t incident_add_frame(struct incident *in, const struct incident_frame *f)
{
	struct incident_build *b = in->build;
	struct incident_frame copy = *f;
	uint64_t hash = hash_pair(hash_pair(f->module, f->flags), f->offset);
	uint32_t found;

	if (f->module >= in->nmodules || !text_or_null(b, &copy.function) ||
	    !text_or_null(b, &copy.raw_name) || !text_or_null(b, &copy.function_module) ||
	    !text_or_null(b, &copy.file))
		return UINT32_MAX;
	found = table_find(&b->frame_table, hash, same_frame, in, &copy);
	if (found != TABLE_NONE)
		return found;
	if (ARRAY_ROOM(in->frames, b->frames_cap, in->nframes + 1))
		return UINT32_MAX;
	in->frames[in->nframes] = copy;
	return entered(&b->frame_table, hash, &in->nframes);
}

/* ---- samples and events ---------------------------------------------------------------------- */

static bool exists(uint32_t index, uint32_t none, uint32_t n)
{
	return index == none || index < n;
}

int incident_add_sample(struct incident *in, const struct incident_sample *s)
{
	if (!exists(s->thread, THREAD_NONE, in->nthreads) ||
	    !exists(s->stack, STACK_NONE, in->nstacks) || s->stream >= STREAMS_MAX ||
	    s->quality >= QUALITIES)
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
		f->name = text(in->build, f->name);
		if (f->type == FIELD_TEXT)
			f->v.text = text(in->build, f->v.text);
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

	if (!exists(e->thread, THREAD_NONE, in->nthreads) ||
	    !exists(e->stack, STACK_NONE, in->nstacks) || (unsigned)e->kind >= EVENT_KINDS ||
	    e->nfields > EVENT_MAX_FIELDS)
		return ERR_FORMAT;
	copy.provider = text(in->build, e->provider);
	copy.name = text(in->build, e->name);
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
