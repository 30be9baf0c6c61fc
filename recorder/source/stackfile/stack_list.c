#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/text.h"
#include "model/stack_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_LISTED_MAX THREADS_MAX

struct parts {
	const char *module, *function;
	size_t nmodule, nfunction;
	uint32_t flags;
};

static bool is_text(const char *have, const char *text, size_t n)
{
	return strlen(have) == n && memcmp(have, text, n) == 0;
}

static uint64_t hash_parts(const struct parts *p)
{
	return hash_pair(hash_pair(hash_bytes(p->module, p->nmodule),
				   hash_bytes(p->function, p->nfunction)), p->flags);
}

static bool same_frame(const void *ctx, uint32_t value, const void *key)
{
	const struct stack_list_frame *f = &((const struct stack_list *)ctx)->frames[value];
	const struct parts *p = key;

	return f->flags == p->flags && is_text(f->module, p->module, p->nmodule) &&
	       is_text(f->function ? f->function : "", p->function, p->nfunction);
}

/* A copy; texts end at a NUL in them. */
static char *copy(const char *text, size_t n)
{
	char *out = malloc(n + 1);

	if (out) {
		memcpy(out, text, n);
		out[n] = '\0';
	}
	return out;
}

static size_t cut(const char *text, size_t n)
{
	size_t length = n ? strnlen(text, n) : 0;

	return length < FUNCTION_NAME_MAX ? length : FUNCTION_NAME_MAX - 1;
}

static uint32_t fail(struct stack_list *l, bool full)
{
	if (full)
		l->full = true;
	else
		l->no_memory = true;
	return STACK_LIST_NONE;
}

uint32_t stack_list_frame(struct stack_list *l, const char *module, size_t nmodule,
			  const char *function, size_t nfunction, uint32_t flags)
{
	struct parts p = {module, function, cut(module, nmodule), cut(function, nfunction), flags};
	struct stack_list_frame f = {.flags = flags};
	uint64_t hash;
	uint32_t at;

	if ((p.nfunction == 1 && *function == '?') ||
	    (p.nfunction == 9 && memcmp(function, "[unknown]", 9) == 0))
		p.nfunction = 0;
	hash = hash_parts(&p);
	at = table_find(&l->by_text, hash, same_frame, l, &p);
	if (at != TABLE_NONE)
		return at;
	if (l->nframes >= STACK_LIST_FRAMES_MAX)
		return fail(l, true);
	f.module = copy(p.module, p.nmodule);
	f.function = p.nfunction ? copy(p.function, p.nfunction) : NULL;
	if (!f.module || (p.nfunction && !f.function) ||
	    ARRAY_ROOM(l->frames, l->frames_room, l->nframes + 1) ||
	    table_add(&l->by_text, hash, l->nframes)) {
		free(f.module);
		free(f.function);
		return fail(l, false);
	}
	l->frames[l->nframes] = f;
	return l->nframes++;
}

uint32_t stack_list_address(struct stack_list *l, const char *path, size_t npath,
			    const struct stack_list_place *place, uint32_t flags)
{
	char text[60];
	int n = snprintf(text, sizeof(text), "%" PRIx64 " %" PRIx64 " %" PRIx64, place->offset,
			 place->dev, place->ino);
	uint32_t at = stack_list_frame(l, path, npath, text, (size_t)n, flags);

	if (at == STACK_LIST_NONE)
		return at;
	l->frames[at].is_address = true;
	l->frames[at].place = *place;
	return at;
}

static bool take_end(const char *text, size_t *n, const char *end)
{
	size_t length = strlen(end);

	if (*n <= length || memcmp(text + *n - length, end, length) != 0)
		return false;
	*n -= length;
	return true;
}

uint32_t stack_list_text(struct stack_list *l, const char *text, size_t n)
{
	uint32_t flags = take_end(text, &n, "_[k]") ? FRAME_KERNEL
			 : take_end(text, &n, "_[j]") ? FRAME_JIT
			 : take_end(text, &n, "_[i]") ? FRAME_INLINED : 0;
	const char *mark = n ? memchr(text, '!', n) : NULL;
	size_t nmodule = mark ? (size_t)(mark - text) : 0, skip = mark ? nmodule + 1 : 0;

	if (nmodule == 8 && memcmp(text, "[kernel]", 8) == 0)
		flags |= FRAME_KERNEL;
	if (!mark)
		flags |= FRAME_TEXT;
	return stack_list_frame(l, text, nmodule, text + skip, n - skip, flags);
}

static bool same_node(const void *ctx, uint32_t value, const void *key)
{
	const struct stack_list_node *a = &((const struct stack_list *)ctx)->nodes[value], *b = key;

	return a->caller == b->caller && a->frame == b->frame;
}

uint32_t stack_list_node(struct stack_list *l, uint32_t caller, uint32_t frame)
{
	struct stack_list_node node = {caller, frame};
	uint64_t hash = hash_pair(caller, frame);
	uint32_t at = table_find(&l->by_node, hash, same_node, l, &node);

	if (frame == STACK_LIST_NONE)
		return caller;
	if (at != TABLE_NONE)
		return at;
	if (l->nnodes >= STACK_LIST_NODES_MAX)
		return fail(l, true);
	if (ARRAY_ROOM(l->nodes, l->nodes_room, l->nnodes + 1) ||
	    table_add(&l->by_node, hash, l->nnodes))
		return fail(l, false);
	l->nodes[l->nnodes] = node;
	return l->nnodes++;
}

struct named_thread {
	const char *process, *name;
	size_t nprocess, nname;
	uint32_t pid, tid;
};

static bool same_thread(const void *ctx, uint32_t value, const void *key)
{
	const struct stack_list_thread *t = &((const struct stack_list *)ctx)->threads[value];
	const struct named_thread *k = key;

	return t->pid == k->pid && t->tid == k->tid &&
	       is_text(t->process, k->process, k->nprocess) && is_text(t->name, k->name, k->nname);
}

uint32_t stack_list_thread(struct stack_list *l, const char *process, size_t nprocess, uint32_t pid,
			   const char *name, size_t nname, uint32_t tid)
{
	const struct named_thread k = {process, name, cut(process, nprocess), cut(name, nname),
				       pid, tid};
	struct stack_list_thread t = {.pid = pid, .tid = tid};
	uint64_t hash = hash_pair(hash_pair(pid, tid),
				  hash_pair(hash_bytes(process, k.nprocess),
					    hash_bytes(name, k.nname)));
	uint32_t at = table_find(&l->by_thread, hash, same_thread, l, &k);

	if (at != TABLE_NONE)
		return at;
	if (l->nthreads >= THREADS_LISTED_MAX)
		return fail(l, true);
	t.process = copy(process, k.nprocess);
	t.name = copy(name, k.nname);
	if (!t.process || !t.name || ARRAY_ROOM(l->threads, l->threads_room, l->nthreads + 1) ||
	    table_add(&l->by_thread, hash, l->nthreads)) {
		free(t.process);
		free(t.name);
		return fail(l, false);
	}
	l->threads[l->nthreads] = t;
	return l->nthreads++;
}

void stack_list_sample(struct stack_list *l, const struct stack_list_sample *sample)
{
	if (sample->thread == STACK_LIST_NONE || l->full || l->no_memory)
		return;
	if (l->nsamples >= STACK_LIST_SAMPLES_MAX) {
		fail(l, true);
		return;
	}
	if (ARRAY_ROOM(l->samples, l->samples_room, l->nsamples + 1)) {
		fail(l, false);
		return;
	}
	l->total += sample->count ? sample->count : 1;
	l->samples[l->nsamples++] = *sample;
}

void stack_list_limit(struct stack_list *l)
{
	uint32_t i;

	if (l->total <= STACK_LIST_SAMPLES_MAX)
		return;
	for (i = 0; i < l->nsamples; i++) {
		struct stack_list_sample *s = &l->samples[i];

		s->weight *= s->count ? s->count : 1;
		s->count = 1;
	}
	l->total = l->nsamples;
	l->merged = true;
}

/* ---- thread time ----------------------------------------------------------------------------- */

/* Ours; or as PerfView's Thread Time names it, which is in no module. */
static bool is_thread_time(const struct stack_list_frame *f)
{
	static const char *const names[] = {"CPU_TIME", "BLOCKED_TIME", "DISK_TIME", "HARD_FAULT",
					    "NETWORK_TIME", "READIED_TIME", "UNKNOWN_ASYNC"};
	size_t i;

	if (!f->function || *f->module)
		return f->function && strcmp(f->module, "[thread]") == 0;
	for (i = 0; i < COUNT_OF(names); i++)
		if (strcmp(f->function, names[i]) == 0)
			return true;
	return false;
}

int stack_list_thread_time(struct stack_list *l)
{
	bool *is_one = calloc((size_t)l->nnodes + 1, sizeof(*is_one));
	uint32_t i;

	if (!is_one)
		return ERR_MEMORY;
	for (i = 0; i < l->nnodes; i++) {            /* callers stand before what they call */
		const struct stack_list_node *n = &l->nodes[i];

		is_one[i] = (n->caller != STACK_LIST_NONE && is_one[n->caller]) ||
			    is_thread_time(&l->frames[n->frame]);
	}
	for (i = 0; i < l->nsamples; i++) {
		struct stack_list_sample *s = &l->samples[i];

		if (s->stream != STREAM_CPU || s->node == STACK_LIST_NONE || !is_one[s->node])
			continue;
		s->stream = STREAM_OFF_CPU;
		if (l->times_begin && s->weight > 0 && s->weight < 1e18)
			s->time_ns += (uint64_t)s->weight;
		if (l->has_times)
			continue;
		l->total -= s->count ? s->count - 1 : 0;
		s->weight *= s->count ? s->count : 1;
		s->weight /= l->only_counts ? (double)STACK_LIST_PERIOD_NS : 1;
		s->count = 1;
	}
	free(is_one);
	return 0;
}

/* ---- who ------------------------------------------------------------------------------------- */

/* Digits at the end, behind `open` and before `close` (NUL = nothing); the rest is its name. */
static bool number_at_end(const char *text, size_t *n, const char *open, char close, uint32_t *out)
{
	size_t end = *n, at, nopen = strlen(open);
	uint64_t v = 0, scale = 1;

	if (close && (!end || text[--end] != close))
		return false;
	for (at = end; at && end - at < 10 && text[at - 1] >= '0' && text[at - 1] <= '9'; at--) {
		v += (uint64_t)(text[at - 1] - '0') * scale;
		scale *= 10;
	}
	if (at == end || v > UINT32_MAX || at < nopen ||
	    memcmp(text + at - nopen, open, nopen) != 0)
		return false;
	*n = at - nopen;
	*out = (uint32_t)v;
	return true;
}

/* "Thread (12) sh": the number comes first. */
static bool thread_first(const char **text, size_t *n, uint32_t *tid)
{
	static const char before[] = "Thread (";
	size_t used = sizeof(before) - 1;
	uint64_t v = 0;

	if (*n <= used || memcmp(*text, before, used) != 0)
		return false;
	while (used < *n && (*text)[used] >= '0' && (*text)[used] <= '9' && v < UINT32_MAX)
		v = v * 10 + (uint64_t)((*text)[used++] - '0');
	if (used >= *n || (*text)[used] != ')' || v > UINT32_MAX)
		return false;
	used++;
	used += used < *n && (*text)[used] == ' ';
	*tid = (uint32_t)v;
	*text += used;
	*n -= used;
	return true;
}

/* How long the word before a process's name is; 0 = there is none. */
static size_t process_word(const char *text, size_t n)
{
	static const char *const words[] = {"Process ", "Process64 ", "Process32 "};
	unsigned i;

	for (i = 0; i < COUNT_OF(words); i++) {
		size_t length = strlen(words[i]);

		if (n > length && memcmp(text, words[i], length) == 0)
			return length;
	}
	return 0;
}

bool stack_list_is_process(const char *text, size_t n)
{
	return process_word(text, n) != 0;
}

uint32_t stack_list_who(struct stack_list *l, const char *process, size_t nprocess,
			const char *thread, size_t nthread, unsigned *used)
{
	size_t word = process_word(process, nprocess);
	uint32_t pid = 0, tid = 0;
	bool is_thread;

	process += word;
	nprocess -= word;
	number_at_end(process, &nprocess, " (", ')', &pid);
	is_thread = thread && !memchr(thread, '!', nthread) &&
		    (thread_first(&thread, &nthread, &tid) ||
		     number_at_end(thread, &nthread, " (", ')', &tid) ||
		     number_at_end(thread, &nthread, "-", '\0', &tid));
	*used = is_thread ? 2 : 1;
	return stack_list_thread(l, process, nprocess, pid, is_thread ? thread : process,
				 is_thread ? nthread : nprocess, is_thread ? tid : pid);
}

bool stack_list_mark(const char *text, size_t n, uint8_t *quality)
{
	unsigned q;

	for (q = 0; q < QUALITIES; q++) {
		const char *mark = stack_tree_mark((enum stack_quality)q);

		if (mark && is_text(mark, text, n)) {
			*quality = (uint8_t)q;
			return true;
		}
	}
	return false;
}

void stack_list_free(struct stack_list *l)
{
	uint32_t i;

	for (i = 0; i < l->nframes; i++) {
		free(l->frames[i].function);
		free(l->frames[i].module);
	}
	for (i = 0; i < l->nthreads; i++) {
		free(l->threads[i].process);
		free(l->threads[i].name);
	}
	free(l->frames);
	free(l->nodes);
	free(l->threads);
	free(l->samples);
	table_free(&l->by_text);
	table_free(&l->by_node);
	table_free(&l->by_thread);
	*l = (struct stack_list){0};
}
