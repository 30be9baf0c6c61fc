#include "managed/node/task_private.h"

#include "base/array.h"
#include "base/os.h"
#include "base/slots.h"
#include "base/sort.h"
#include "base/table.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MAX 65536u
#define CODES_MAX 16384u
#define SCRIPTS_MAX 4096u
#define BYTES_MAX ((size_t)12 << 20)         /* tables of code and of lines; then all begins anew */
#define FAILED_PAGES 256u                    /* places without code of ours, for a second */
#define BUILTINS_MAX 4096u
#define RETURNS_CACHED 512u
#define LATELY_NS (200 * NS_PER_MS)
#define TOGETHER_MAX 24u                     /* functions and code that are looked at together */

struct script {
	uint64_t address, id, seen_ns, since_ns;
	struct v8_script is;
};

/* What a sample was served with. */
struct served {
	uint64_t key[TOGETHER_MAX];          /* a function's bytecode, or where code begins */
	bool is_code[TOGETHER_MAX];
	unsigned n;
};

struct v8_knowledge {
	struct v8_layout layout;
	struct managed_names *names;
	uint64_t sample_ns;
	uint32_t tasks_left;
	bool answered;                       /* the last task has run */
	struct served served, before;        /* this sample, and the one before */
	struct slots functions;              /* struct v8_known */
	struct table by_key;
	struct v8_known_code **codes;        /* by address */
	uint32_t ncodes, codes_room;
	struct script *scripts;              /* number - 1 */
	uint32_t nscripts, scripts_room;
	struct v8_known_builtin *builtins;   /* by address */
	uint32_t nbuiltins, builtins_room;
	struct v8_return returns[RETURNS_CACHED];
	struct { uint64_t page, until_ns; } failed[FAILED_PAGES];
	size_t bytes;
};

/* ---- tasks ----------------------------------------------------------------------------------- */

static struct v8_task *new_task(struct v8_knowledge *k, const struct v8_task *what)
{
	struct v8_task *t = k->tasks_left ? v8_task_new(&k->layout, what) : NULL;

	k->tasks_left -= t != NULL;
	return t;
}

/* false: it is gone */
static bool run_it(struct v8_knowledge *k, const struct managed_host *host, struct v8_task *t)
{
	k->answered = host->run(host->ctx, &t->base);
	return k->answered;
}

/* A task that has run, to be freed; NULL: it cannot run now, or has found nothing. */
static struct v8_task *run(struct v8_knowledge *k, const struct managed_host *host,
			   const struct v8_task *what)
{
	struct v8_task *t = new_task(k, what);

	if (!t || !run_it(k, host, t))
		return NULL;
	if (t->found)
		return t;
	v8_task_free(t);
	return NULL;
}

/* ---- scripts --------------------------------------------------------------------------------- */

/*
 * Since when a new script is known to have been there, if it is one of many that are alike: it has
 * no name (eval, new Function), or that of one before. Else 0. V8 counts scripts: where one was
 * seen, those with lower numbers were there, too.
 */
static uint64_t script_since(const struct v8_knowledge *k, const struct script *of)
{
	uint64_t since_ns = of->seen_ns;
	bool alike = !of->is.name[0];
	uint32_t i;

	for (i = 0; i < k->nscripts; i++) {
		const struct script *s = &k->scripts[i];

		alike |= strcmp(s->is.name, of->is.name) == 0;
		if (v8_is_count(of->id) && v8_is_count(s->id) && s->id > of->id &&
		    s->seen_ns < since_ns)
			since_ns = s->seen_ns;
	}
	return alike ? since_ns : 0;
}

/* The number of a script; 0 = it cannot be read. */
static uint32_t script_number(struct v8_knowledge *k, const struct managed_host *host,
			      const struct v8_function *f)
{
	struct v8_task *t;
	struct script *s;
	uint32_t i;

	if (!f->script)
		return 0;
	for (i = k->nscripts; i-- > 0;)
		if (k->scripts[i].address == f->script && k->scripts[i].id == f->mark.script_id)
			return i + 1;
	if (k->nscripts >= SCRIPTS_MAX ||
	    ARRAY_ROOM(k->scripts, k->scripts_room, k->nscripts + 1))
		return 0;
	t = run(k, host, &(struct v8_task){.kind = TASK_SCRIPT, .at = f->script});
	if (!t)
		return 0;
	s = &k->scripts[k->nscripts];
	*s = (struct script){.address = f->script, .id = f->mark.script_id,
			     .seen_ns = os_now_ns(), .is = t->script};
	s->since_ns = script_since(k, s);
	k->nscripts++;
	k->bytes += t->script.nends * sizeof(*t->script.ends);
	t->script.ends = NULL;
	v8_task_free(t);
	return k->nscripts;
}

uint32_t v8_known_line(const struct v8_knowledge *k, const struct v8_known *f, int32_t position)
{
	return f->script && f->script <= k->nscripts
		       ? v8_line(&k->scripts[f->script - 1].is, position)
		       : 0;
}

int32_t v8_known_position(const struct v8_knowledge *k, const struct v8_known *f, uint32_t offset)
{
	uint64_t position;

	return f->positions &&
	       v8_position_at(&k->layout, f->positions, f->npositions, offset, &position)
		       ? v8_position_offset(position) : -1;
}

/* ---- functions ------------------------------------------------------------------------------- */

/*
 * "total orders.js:17", the line of the definition: many functions have no name of their own. The
 * name's detail is the path, as a Python function's.
 */
static void name(struct v8_knowledge *k, const struct managed_host *host,
		 const struct v8_function *f, struct v8_known *out)
{
	char text[V8_NAME_BYTES + V8_SCRIPT_BYTES + 32], detail[V8_SCRIPT_BYTES + 2];
	const char *called = f->name[0] ? f->name : "(anonymous)";
	const struct v8_script *s;
	uint32_t line;

	out->number = 0;
	out->mark = f->mark;
	out->script = script_number(k, host, f);
	if (f->script && !out->script)
		return;                      /* it would have two names */
	s = out->script ? &k->scripts[out->script - 1].is : NULL;
	line = s ? v8_line(s, f->position) : 0;
	if (!s || !s->name[0])
		snprintf(text, sizeof(text), "%s", called);
	else if (!line)
		snprintf(text, sizeof(text), "%s %s", called, text_base_name(s->name));
	else
		snprintf(text, sizeof(text), "%s %s:%u", called, text_base_name(s->name), line);
	snprintf(detail, sizeof(detail), "@%s", s ? s->name : "");
	out->number = managed_names_add(k->names, text, s && s->name[0] ? detail : NULL);
	out->script_ns = s ? k->scripts[out->script - 1].since_ns : 0;
}

static bool same_key(const void *ctx, uint32_t value, const void *key)
{
	const struct v8_knowledge *k = ctx;

	return ((const struct v8_known *)slots_get(&k->functions, value))->key ==
	       *(const uint64_t *)key;
}

static struct v8_known *find_function(const struct v8_knowledge *k, uint64_t key)
{
	uint32_t n = table_find(&k->by_key, hash_u64(key), same_key, k, &key);

	return n == TABLE_NONE ? NULL : slots_get(&k->functions, n);
}

static struct v8_known *add_function(struct v8_knowledge *k, uint64_t key)
{
	uint32_t n = table_add_slot(&k->by_key, hash_u64(key), &k->functions, SLOTS_NONE);
	struct v8_known *f = n == SLOTS_NONE ? NULL : slots_get(&k->functions, n);

	if (f)
		*f = (struct v8_known){.key = key};
	return f;
}

/* The first that ends behind pc. */
static uint32_t code_index(const struct v8_knowledge *k, uint64_t pc)
{
	uint32_t low = 0, high = k->ncodes;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (k->codes[middle]->is.end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- unchanged, or not ----------------------------------------------------------------------- */

static void note_served(struct v8_knowledge *k, bool is_code, uint64_t key)
{
	struct served *s = &k->served;
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (s->key[i] == key && s->is_code[i] == is_code)
			return;
	if (s->n == TOGETHER_MAX)
		return;
	s->key[s->n] = key;
	s->is_code[s->n++] = is_code;
}

static struct v8_known_code *code_that_begins(const struct v8_knowledge *k, uint64_t begin)
{
	uint32_t i = code_index(k, begin);

	return i < k->ncodes && k->codes[i]->is.begin == begin ? k->codes[i] : NULL;
}

/* false: it is not known, or known to be unchanged */
static bool ask_same(const struct v8_knowledge *k, bool is_code, uint64_t key, uint64_t function,
		     struct v8_same *out)
{
	const struct v8_known_code *c = is_code ? code_that_begins(k, key) : NULL;
	const struct v8_known *f = is_code ? NULL : find_function(k, key);

	*out = (struct v8_same){.is_code = is_code, .key = key};
	if (c) {
		out->mark = c->outer.mark;
		out->code_mark = c->is.mark;
		return c->checked_ns < k->sample_ns;
	}
	if (!f)
		return false;
	out->mark = f->mark;
	out->function = function ? function : f->function;
	out->lately = f->function == out->function && f->checked_ns + LATELY_NS > k->sample_ns;
	return f->function != out->function || f->checked_ns < k->sample_ns;
}

static void take_same(struct v8_knowledge *k, const struct v8_same *same, uint64_t asked_ns)
{
	struct v8_known_code *c = same->is_code ? code_that_begins(k, same->key) : NULL;
	struct v8_known *f = same->is_code ? NULL : find_function(k, same->key);

	if (c) {
		c->outer.mark = same->mark;
		c->checked_ns = asked_ns;
	} else if (f) {
		f->mark = same->mark;
		f->function = same->function;
		f->checked_ns = asked_ns;
	}
}

/*
 * Whether what is known is so still; function: the JSFunction of the frame, 0 of code. All that the
 * sample before was served with is looked at in the same task, because the next frames have it.
 */
static bool is_same(struct v8_knowledge *k, const struct managed_host *host, bool is_code,
		    uint64_t key, uint64_t function)
{
	struct v8_same *same = calloc(1 + TOGETHER_MAX, sizeof(*same));
	uint64_t asked_ns = os_now_ns();
	struct v8_task *t = same ? new_task(k, &(struct v8_task){.kind = TASK_SAME}) : NULL;
	unsigned n = 1, i;
	bool found;

	if (!t) {
		free(same);
		return false;
	}
	ask_same(k, is_code, key, function, &same[0]);
	for (i = 0; i < k->before.n; i++)
		n += k->before.key[i] != key &&
		     ask_same(k, k->before.is_code[i], k->before.key[i], 0, &same[n]);
	t->same = same;
	t->nsame = n;
	if (!run_it(k, host, t))
		return false;
	for (i = 0; i < n; i++)
		if (same[i].found)
			take_same(k, &same[i], asked_ns);
	found = t->found;
	v8_task_free(t);
	return found;
}

bool v8_known_serves(const struct v8_knowledge *k, const struct v8_known *f)
{
	return k->sample_ns >= f->since_ns;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* before: what was known at its place; NULL = nothing */
static uint64_t since(const struct v8_known *before, const struct v8_known *now, uint64_t read_ns)
{
	uint64_t soon_ns = less(read_ns, V8_SOON_NS), late_ns = less(read_ns, V8_LATE_NS);

	if (before)
		return before->number == now->number ? before->since_ns : read_ns;
	if (now->script_ns > soon_ns)
		return soon_ns;
	return now->script_ns > late_ns ? now->script_ns : late_ns;
}

const struct v8_known *v8_known_function(struct v8_knowledge *k, const struct managed_host *host,
					 uint64_t function, uint64_t bytecode)
{
	struct v8_known *f = find_function(k, bytecode);
	struct v8_known named = {.key = bytecode, .function = function};
	struct v8_task *t;

	if (f)
		note_served(k, false, bytecode);
	if (f && ((f->function == function && f->checked_ns >= k->sample_ns) ||
		  is_same(k, host, false, bytecode, function)))
		return f;
	named.checked_ns = os_now_ns();
	t = run(k, host, &(struct v8_task){.kind = TASK_FUNCTION, .function = function,
					   .bytecode = bytecode});
	if (!t)
		return NULL;
	name(k, host, &t->of, &named);
	if (named.number)
		f = f ? f : add_function(k, bytecode);
	if (!named.number || !f) {
		v8_task_free(t);
		return NULL;
	}
	named.since_ns = since(f->number ? f : NULL, &named, named.checked_ns);
	named.positions = t->positions;
	named.npositions = t->npositions;
	t->positions = NULL;
	v8_task_free(t);
	k->bytes += named.npositions;
	k->bytes -= f->npositions;
	free(f->positions);
	*f = named;
	return f;
}

/* ---- code ------------------------------------------------------------------------------------ */

static size_t code_bytes(const struct v8_known_code *c)
{
	return sizeof(*c) + c->nbytes + c->is.npositions + 16u * (size_t)c->is.ninlining +
	       c->is.nliterals * sizeof(*c->inlined);
}

static void free_code(struct v8_knowledge *k, struct v8_known_code *c)
{
	k->bytes -= code_bytes(c);
	v8_code_free(&c->is);
	free(c->inlined);
	free(c->bytes);
	free(c);
}

static void drop_code(struct v8_knowledge *k, uint32_t i)
{
	free_code(k, k->codes[i]);
	k->ncodes--;
	memmove(&k->codes[i], &k->codes[i + 1], (k->ncodes - i) * sizeof(*k->codes));
}

/* Takes what the task has read. */
static struct v8_known_code *make_code(struct v8_knowledge *k, const struct managed_host *host,
				       struct v8_task *t, uint64_t checked_ns)
{
	struct v8_known_code *c = calloc(1, sizeof(*c));
	uint32_t i;

	if (!c)
		return NULL;
	c->is = t->code;
	memset(&t->code, 0, sizeof(t->code));
	c->bytes = t->bytes;
	c->nbytes = t->nbytes;
	t->bytes = NULL;
	c->checked_ns = checked_ns;
	c->inlined = c->is.nliterals ? calloc(c->is.nliterals, sizeof(*c->inlined)) : NULL;
	if (!c->inlined)
		c->is.nliterals = 0;
	if (t->of.mark.shared)
		name(k, host, &t->of, &c->outer);
	for (i = 0; t->inlined && i < c->is.nliterals; i++)
		if (t->inlined[i].mark.shared)
			name(k, host, &t->inlined[i], &c->inlined[i]);
	free(c->is.literals);
	c->is.literals = NULL;
	k->bytes += code_bytes(c);
	return c;
}

static void keep_code(struct v8_knowledge *k, struct v8_known_code *c)
{
	uint32_t i = code_index(k, c->is.begin);

	/* What was there is gone. */
	while (i < k->ncodes && k->codes[i]->is.begin < c->is.end) {
		if (k->codes[i]->outer.number != c->outer.number) {
			c->outer.since_ns = c->checked_ns;
			c->former = k->codes[i]->outer.function;
		}
		drop_code(k, i);
	}
	if (k->ncodes >= CODES_MAX || ARRAY_ROOM(k->codes, k->codes_room, k->ncodes + 1)) {
		free_code(k, c);
		return;
	}
	memmove(&k->codes[i + 1], &k->codes[i], (k->ncodes - i) * sizeof(*k->codes));
	k->codes[i] = c;
	k->ncodes++;
}

const struct v8_known_code *v8_known_code(struct v8_knowledge *k, const struct managed_host *host,
					  uint64_t pc)
{
	uint32_t i = code_index(k, pc), page = (uint32_t)(pc >> 6) % FAILED_PAGES;
	struct v8_known before = {.number = 0};
	struct v8_known_code *c = NULL;
	bool replaced = false;
	uint64_t now_ns = os_now_ns();
	struct v8_task *t;

	if (i < k->ncodes && k->codes[i]->is.begin <= pc) {
		c = k->codes[i];
		note_served(k, true, c->is.begin);
		if (c->checked_ns >= k->sample_ns || is_same(k, host, true, c->is.begin, 0))
			return c;
		before = c->outer;
		replaced = true;
		drop_code(k, i);
	}
	if (!k->tasks_left ||
	    (k->failed[page].page == pc >> 6 && k->failed[page].until_ns > k->sample_ns))
		return NULL;
	t = run(k, host, &(struct v8_task){.kind = TASK_CODE, .at = pc});
	if (!t && !k->answered)
		return NULL;                 /* it says nothing of the place */
	if (!t) {
		k->failed[page].page = pc >> 6;
		/* Where code just was, other code comes soon. */
		k->failed[page].until_ns = replaced ? now_ns : now_ns + NS_PER_SEC;
		return NULL;
	}
	c = make_code(k, host, t, now_ns);
	v8_task_free(t);
	if (!c)
		return NULL;
	if (before.number == c->outer.number)
		c->outer.function = before.function;
	else
		c->former = before.function;
	c->outer.since_ns = since(replaced ? &before : NULL, &c->outer, now_ns);
	keep_code(k, c);
	i = code_index(k, pc);
	if (i >= k->ncodes || k->codes[i]->is.begin > pc)
		return NULL;
	c = k->codes[i];
	for (i = 0; i < c->is.nliterals; i++)
		c->inlined[i].since_ns = c->outer.since_ns;
	return c;
}

bool v8_known_runs(struct v8_knowledge *k, const struct managed_host *host, uint64_t pc,
		   uint64_t function)
{
	uint32_t i = code_index(k, pc);
	struct v8_known_code *c = i < k->ncodes ? k->codes[i] : NULL;
	uint64_t now_ns = os_now_ns();
	struct v8_task *t;

	if (!c || c->is.begin > pc || !c->outer.number || function == c->former ||
	    now_ns - k->sample_ns > V8_LATE_NS ||
	    (k->sample_ns < c->outer.script_ns && now_ns - k->sample_ns > V8_SOON_NS))
		return false;
	if (c->outer.function == function && c->outer.checked_ns >= k->sample_ns)
		return true;
	t = run(k, host, &(struct v8_task){.kind = TASK_RUNS, .function = function,
					   .mark = c->outer.mark});
	if (!t)
		return false;
	v8_task_free(t);
	c->outer.function = function;
	c->outer.checked_ns = now_ns;
	return true;
}

uint32_t v8_known_text(struct v8_knowledge *k, const char *name)
{
	return managed_names_add(k->names, name, NULL);
}

/* ---- builtins -------------------------------------------------------------------------------- */

/* The first that begins above pc. */
static uint32_t builtin_index(const struct v8_knowledge *k, uint64_t pc)
{
	return sorted_upto(k->builtins, k->nbuiltins, sizeof(*k->builtins), 8, pc);
}

static bool is_in(const struct v8_known_builtin *b, uint64_t pc)
{
	return pc >= b->begin && pc - b->begin < b->nbytes;
}

const struct v8_known_builtin *v8_known_builtin(struct v8_knowledge *k,
						const struct managed_host *host, uint64_t pc)
{
	uint32_t i = builtin_index(k, pc);
	struct v8_known_builtin *b;
	struct v8_task *t;
	uint8_t *fewer;

	if (i && is_in(&k->builtins[i - 1], pc))
		return &k->builtins[i - 1];
	if (k->nbuiltins >= BUILTINS_MAX ||
	    ARRAY_ROOM(k->builtins, k->builtins_room, k->nbuiltins + 1))
		return NULL;
	t = run(k, host, &(struct v8_task){.kind = TASK_BUILTIN, .at = pc});
	if (!t)
		return NULL;
	i = builtin_index(k, t->at);
	b = &k->builtins[i];
	memmove(b + 1, b, (k->nbuiltins++ - i) * sizeof(*b));
	*b = (struct v8_known_builtin){.begin = t->at, .nbytes = t->nbytes, .bytes = t->bytes};
	t->bytes = NULL;
	v8_task_free(t);
	fewer = realloc(b->bytes, b->nbytes);
	b->bytes = fewer ? fewer : b->bytes;
	v8_builtin_shape(b->bytes, b->nbytes, &b->shape);
	k->bytes += b->nbytes;
	return is_in(b, pc) ? b : NULL;
}

static struct v8_return *cached_return(struct v8_knowledge *k, uint64_t at)
{
	return &k->returns[hash_u64(at) % RETURNS_CACHED];
}

bool v8_known_returns(struct v8_knowledge *k, const struct managed_host *host,
		      struct v8_return *words, unsigned n)
{
	struct v8_task ask = {.kind = TASK_RETURNS}, *t;
	unsigned i;

	for (i = 0; i < n; i++)
		if (cached_return(k, words[i].at)->at != words[i].at)
			ask.returns[ask.nreturns++].at = words[i].at;
	t = ask.nreturns ? run(k, host, &ask) : NULL;
	if (ask.nreturns && !t)
		return false;
	for (i = 0; t && i < t->nreturns; i++)
		*cached_return(k, t->returns[i].at) = t->returns[i];
	if (t)
		v8_task_free(t);
	for (i = 0; i < n; i++) {
		const struct v8_return *r = cached_return(k, words[i].at);

		/* Two of these words may have one place. */
		words[i].called = r->at == words[i].at && r->called;
		words[i].target = words[i].called ? r->target : 0;
	}
	return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void clear(struct v8_knowledge *k)
{
	uint32_t n, at = 0;

	while ((n = table_next(&k->by_key, &at)) != TABLE_NONE)
		free(((struct v8_known *)slots_get(&k->functions, n))->positions);
	while (k->ncodes)
		free_code(k, k->codes[--k->ncodes]);
	while (k->nscripts)
		free(k->scripts[--k->nscripts].is.ends);
	while (k->nbuiltins)
		free(k->builtins[--k->nbuiltins].bytes);
	table_free(&k->by_key);
	slots_free(&k->functions);
	k->bytes = 0;
}

int v8_knowledge_new(const struct v8_layout *layout, struct managed_names *names,
		     struct v8_knowledge **out)
{
	struct v8_knowledge *k = calloc(1, sizeof(*k));

	if (!k || slots_init(&k->functions, sizeof(struct v8_known), FUNCTIONS_MAX)) {
		free(k);
		return ERR_MEMORY;
	}
	k->layout = *layout;
	k->names = names;
	*out = k;
	return 0;
}

void v8_knowledge_free(struct v8_knowledge *k)
{
	if (!k)
		return;
	clear(k);
	free(k->codes);
	free(k->scripts);
	free(k->builtins);
	free(k);
}

size_t v8_knowledge_bytes(const struct v8_knowledge *k)
{
	return sizeof(*k) + k->bytes + slots_bytes(&k->functions) + table_bytes(&k->by_key) +
	       k->scripts_room * sizeof(*k->scripts) +
	       k->builtins_room * sizeof(*k->builtins) + k->codes_room * sizeof(*k->codes);
}

const struct v8_layout *v8_knowledge_layout(const struct v8_knowledge *k)
{
	return &k->layout;
}

void v8_knowledge_begin(struct v8_knowledge *k, uint64_t sample_ns)
{
	k->sample_ns = sample_ns;
	if (k->served.n)
		k->before = k->served;
	k->served.n = 0;
	k->tasks_left = V8_TASKS_OF_A_SAMPLE;
	if (k->bytes > BYTES_MAX || k->by_key.used >= FUNCTIONS_MAX - 1 ||
	    k->nscripts >= SCRIPTS_MAX || k->ncodes >= CODES_MAX) {
		clear(k);
		if (slots_init(&k->functions, sizeof(struct v8_known), FUNCTIONS_MAX))
			k->tasks_left = 0;
	}
}
