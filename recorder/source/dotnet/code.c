#include "source/dotnet/code.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/sort.h"
#include "source/etw/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"
#define EARLY_NS 100000000u                  /* threads run code so long before it is told of */
#define UNSORTED_MAX 256u                    /* methods that are searched one by one */
#define MODULES_MAX 4096u
#define METHOD_ID 143                        /* also of the rundown: MethodDCStartVerbose */
#define METHOD_ID_2 144                      /* the rundown's MethodDCEndVerbose; else unload */
#define FLAG_DYNAMIC 1u
#define MODULE_ID 152                        /* 153, 154: the rundown's */

bool dotnet_tells_code(const struct nettrace_event *event)
{
	uint32_t id = event->meta->event_id;
	const char *provider = event->meta->provider;

	return id >= 141 && id <= 156 && strncmp(provider, CLR, sizeof(CLR) - 1) == 0 &&
	       (!provider[sizeof(CLR) - 1] || strcmp(provider + sizeof(CLR) - 1, "Rundown") == 0);
}

/* The UTF-16 text at *at, which moves behind its NUL; "" at the end. Returns its length. */
static size_t take_text(const uint8_t **at, const uint8_t *end, char *out, size_t size)
{
	const uint8_t *from = *at;
	size_t units = 0, n;

	while (end - *at >= 2 && ((*at)[0] || (*at)[1])) {
		*at += 2;
		units++;
	}
	*at += end - *at >= 2 ? 2 : 0;
	n = etw_utf16(from, units, out, size - 1);
	out[n] = '\0';
	return n;
}

static int by_start(const void *a, const void *b)
{
	const struct dotnet_method *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

const char *dotnet_method_detail(const struct dotnet_method *m)
{
	const char *detail = m->text + strlen(m->text) + 1;

	return *detail ? detail : NULL;
}

static size_t text_bytes(const char *text)
{
	size_t n = strlen(text) + 1;

	return n + strlen(text + n) + 1;
}

static void forget_method(struct dotnet_code *c, struct dotnet_method *m)
{
	if (m->text)
		shares_give_back(c->shares, c->share, text_bytes(m->text));
	free(m->text);
	m->text = NULL;
}

/* Sort the last ones in; of methods with one start the newest is kept, and no unloaded ones. */
static void sort_methods(struct dotnet_code *c)
{
	uint32_t i, n = 0;

	qsort(c->methods, c->n, sizeof(*c->methods), by_start);
	for (i = 0; i < c->n; i++)
		if (c->methods[i].text)
			c->methods[n++] = c->methods[i];
	c->n = c->nsorted = n;
}

static bool covers(const struct dotnet_method *m, uint64_t address)
{
	return m->text && address >= m->start && address - m->start < m->bytes;
}

/* Of the sorted ones, the first that starts above an address. */
static uint32_t first_above(const struct dotnet_code *c, uint64_t address)
{
	return sorted_upto(c->methods, c->nsorted, sizeof(*c->methods), sizeof(c->methods->start),
			   address);
}

/* What is there now. */
static struct dotnet_method *find_method(struct dotnet_code *c, uint64_t address)
{
	uint32_t i;

	for (i = c->n; i > c->nsorted; i--)
		if (covers(&c->methods[i - 1], address))
			return &c->methods[i - 1];
	i = first_above(c, address);
	return i && covers(&c->methods[i - 1], address) ? &c->methods[i - 1] : NULL;
}

static uint32_t ngone_kept(const struct dotnet_code *c)
{
	return c->ngone < DOTNET_GONE_MAX ? (uint32_t)c->ngone : DOTNET_GONE_MAX;
}

/* Of the places, the first that starts above an address. */
static uint32_t place_above(const struct dotnet_code *c, uint32_t n, uint64_t address)
{
	return sorted_upto(c->places, n, sizeof(*c->places), sizeof(c->places->start), address);
}

/* The next one that is gone has its slot; before it is in there. */
static void set_place(struct dotnet_code *c, uint32_t at, const struct dotnet_method *m)
{
	uint32_t n = ngone_kept(c), i;

	if (n == DOTNET_GONE_MAX) {
		for (i = place_above(c, n, c->gone[at].start) - 1; c->places[i].at != at; i--)
			;
		n--;
		memmove(&c->places[i], &c->places[i + 1], (n - i) * sizeof(*c->places));
	}
	i = place_above(c, n, m->start);
	memmove(&c->places[i + 1], &c->places[i], (n - i) * sizeof(*c->places));
	c->places[i] = (struct dotnet_gone_place){m->start, at};
	c->gone_max_bytes = m->bytes > c->gone_max_bytes ? m->bytes : c->gone_max_bytes;
}

/* It is gone from a time on; samples before it may still be on their way. */
static void retire(struct dotnet_code *c, struct dotnet_method *m, uint64_t time_ns)
{
	size_t bytes = DOTNET_GONE_MAX * (sizeof(*c->gone) + sizeof(*c->places));
	struct dotnet_method *to;
	uint32_t at;

	if (!c->gone && shares_take(c->shares, c->share, bytes)) {
		c->gone = calloc(1, bytes);
		if (!c->gone)
			shares_give_back(c->shares, c->share, bytes);
		c->places = (void *)(c->gone + (c->gone ? DOTNET_GONE_MAX : 0));
	}
	if (!c->gone) {
		forget_method(c, m);
		return;
	}
	at = (uint32_t)(c->ngone % DOTNET_GONE_MAX);
	set_place(c, at, m);
	c->ngone++;
	to = &c->gone[at];
	forget_method(c, to);
	*to = *m;
	to->until_ns = time_ns;
	m->text = NULL;
}

/* The i-th newest of those that are gone; NULL = there are no more. */
static struct dotnet_method *gone_at(const struct dotnet_code *c, uint32_t i)
{
	return i < c->ngone && i < DOTNET_GONE_MAX
		       ? &c->gone[(c->ngone - 1 - i) % DOTNET_GONE_MAX] : NULL;
}

/* m: without its text. false = there is no room for that */
static bool set_text(struct dotnet_code *c, struct dotnet_method *m, const char *text)
{
	size_t n = text_bytes(text);

	if (!shares_take(c->shares, c->share, n))
		return false;
	m->text = malloc(n);
	if (m->text)
		memcpy(m->text, text, n);
	else
		shares_give_back(c->shares, c->share, n);
	return m->text != NULL;
}

/*
 * A method went at a time. A thread's events may come after newer ones of another thread: what is
 * there now may be newer code, which took the place when it was told of. One that nobody told of
 * was there since the runtime tells, or since another one went.
 */
static void unload(struct dotnet_code *c, const struct dotnet_method *what, const char *text,
		   uint64_t time_ns)
{
	struct dotnet_method *m = find_method(c, what->start), was = *what;
	uint32_t i;

	if (m && m->start == what->start && m->from_ns <= time_ns) {
		retire(c, m, time_ns);
		return;
	}
	was.from_ns = c->since_ns;
	for (i = 0; (m = gone_at(c, i)) != NULL; i++) {
		if (!m->text || m->start >= what->start + what->bytes ||
		    m->start + m->bytes <= what->start)
			continue;
		if (m->start == what->start && m->from_ns <= time_ns && time_ns <= m->until_ns) {
			m->until_ns = time_ns;
			return;
		}
		if (m->until_ns <= time_ns && m->until_ns > was.from_ns)
			was.from_ns = m->until_ns;
	}
	if (was.from_ns < time_ns && set_text(c, &was, text))
		retire(c, &was, time_ns);
}

/*
 * Retire what was where a method is now.
 *
 * until_ns  when something newer came, that stays there; UINT64_MAX = nothing did
 * returns   how many were retired
 */
static uint32_t make_place(struct dotnet_code *c, uint64_t start, uint64_t end, uint64_t time_ns,
			   uint64_t *until_ns)
{
	uint32_t i, n = 0, first = first_above(c, start);

	*until_ns = UINT64_MAX;
	for (i = first ? first - 1 : 0; i < c->n; i++) {
		struct dotnet_method *m = &c->methods[i];

		if (i < c->nsorted && m->start >= end) {
			i = c->nsorted - 1;
			continue;
		}
		if (!m->text || m->start >= end || m->start + m->bytes <= start)
			continue;
		if (m->from_ns > time_ns) {
			*until_ns = m->from_ns < *until_ns ? m->from_ns : *until_ns;
			continue;
		}
		retire(c, m, time_ns);
		n++;
	}
	return n;
}

/* The one of those that are gone that was there at this time; NULL = none, or not known. */
static struct dotnet_method *find_gone(struct dotnet_code *c, uint64_t address, uint64_t time_ns,
				       bool *any)
{
	const uint32_t newest = (uint32_t)(c->ngone - 1);
	struct dotnet_method *found = NULL;
	uint32_t i, age, found_age = DOTNET_GONE_MAX;

	*any = c->ngone > DOTNET_GONE_MAX;   /* those that went before are forgotten */
	for (i = place_above(c, ngone_kept(c), address);
	     i-- > 0 && address - c->places[i].start < c->gone_max_bytes;) {
		struct dotnet_method *m = &c->gone[c->places[i].at];

		if (!covers(m, address))
			continue;
		*any = true;
		age = (newest - c->places[i].at) % DOTNET_GONE_MAX;
		if (m->from_ns <= time_ns && time_ns < m->until_ns && age < found_age) {
			found = m;
			found_age = age;
		}
	}
	return found;
}

/* Of a dynamic method that was there before nothing may have been told: it was dropped before. */
static struct dotnet_method *first_of(const struct dotnet_code *c, struct dotnet_method *m,
				      uint64_t time_ns)
{
	return m && m->dynamic && (time_ns < c->since_ns || m->from_ns > time_ns + EARLY_NS)
		       ? NULL : m;
}

struct dotnet_method *dotnet_code_find_since(struct dotnet_code *c, uint64_t address,
					     uint64_t time_ns, uint64_t *since_ns)
{
	struct dotnet_method *m = find_method(c, address), *gone;
	bool any;

	*since_ns = m ? m->from_ns : 0;
	if (m && m->from_ns <= time_ns)
		return m;
	gone = find_gone(c, address, time_ns, &any);
	*since_ns = any || (m && m->dynamic) ? UINT64_MAX : 0;
	/* Threads may run code a little before the runtime tells of it. */
	return any ? gone : first_of(c, m, time_ns);
}

struct dotnet_method *dotnet_code_find(struct dotnet_code *c, uint64_t address, uint64_t time_ns)
{
	uint64_t since_ns;

	return dotnet_code_find_since(c, address, time_ns, &since_ns);
}

struct dotnet_method *dotnet_code_throughout(struct dotnet_code *c, uint64_t address,
					     uint64_t first_ns, uint64_t last_ns)
{
	struct dotnet_method *m = dotnet_code_find(c, address, first_ns);

	return m && m == dotnet_code_find(c, address, last_ns) ? m : NULL;
}

struct dotnet_method *dotnet_code_find_only(struct dotnet_code *c, uint64_t address)
{
	bool any;

	find_gone(c, address, 0, &any);
	return any ? NULL : first_of(c, find_method(c, address), 0);
}

/* Takes m with its text. returns  false: there is no room for it */
static bool put_method(struct dotnet_code *c, const struct dotnet_method *m)
{
	if (c->n == DOTNET_METHODS_MAX)
		return false;
	if (c->n == c->room) {
		size_t bytes = (c->room ? c->room : 64) * sizeof(*c->methods);

		if (!shares_take(c->shares, c->share, bytes))
			return false;
		if (ARRAY_ROOM(c->methods, c->room, c->n + 1)) {
			shares_give_back(c->shares, c->share, bytes);
			return false;
		}
	}
	c->methods[c->n++] = *m;
	if (c->n - c->nsorted > UNSORTED_MAX && c->n - c->nsorted > c->nsorted / 16)
		sort_methods(c);
	return true;
}

/* Whether it was told before that the method went: then it was there until that. */
static bool went_already(struct dotnet_code *c, const struct dotnet_method *wanted,
			 const char *text)
{
	struct dotnet_method *m;
	uint32_t i;

	for (i = 0; (m = gone_at(c, i)) != NULL; i++)
		if (m->text && m->start == wanted->start && m->bytes == wanted->bytes &&
		    m->from_ns <= wanted->from_ns && wanted->from_ns < m->until_ns &&
		    strcmp(m->text, text) == 0) {
			m->from_ns = wanted->from_ns;
			return true;
		}
	return false;
}

/* wanted: without text; from_ns is when it was told of. text: both, with their NULs */
static void add_method(struct dotnet_code *c, const struct dotnet_method *wanted, bool rundown,
		       const char *text)
{
	struct dotnet_method *there = find_method(c, wanted->start), m = *wanted;
	size_t n = text_bytes(text);
	uint64_t until_ns;

	if (there && there->start == wanted->start && there->bytes == wanted->bytes &&
	    text_bytes(there->text) == n && memcmp(there->text, text, n) == 0)
		return;                      /* the rundown tells what is known already */
	if (m.dynamic && !rundown && went_already(c, &m, text))
		return;
	if (!make_place(c, m.start, m.start + m.bytes, m.from_ns, &until_ns) && rundown)
		m.from_ns = m.dynamic ? c->since_ns : 0;
	if (!set_text(c, &m, text))
		return;
	/* Told of after what came later, by another thread: it was there until then. */
	if (until_ns != UINT64_MAX)
		retire(c, &m, until_ns);
	else if (!put_method(c, &m))
		forget_method(c, &m);
}

/* u64 method, u64 module, u64 start, u32 bytes, u32 token, u32 flags, namespace, name, signature */
static void learn_method(struct dotnet_code *c, const struct nettrace_event *e, uint64_t time_ns,
			 bool rundown)
{
	const uint8_t *at = e->payload, *end = at + e->payload_bytes;
	struct dotnet_method m = {0};
	char text[2 * DOTNET_TEXT_BYTES + 2], signature[DOTNET_TEXT_BYTES];
	const char *parameters;
	size_t n;

	if (e->payload_bytes < 36)
		return;
	m.module = le64(at + 8);
	m.start = le64(at + 16);
	m.bytes = le32(at + 24);
	m.dynamic = le32(at + 32) & FLAG_DYNAMIC;
	if (!m.bytes || m.start > UINT64_MAX - m.bytes)
		return;
	m.from_ns = time_ns;
	at += 36;
	n = take_text(&at, end, text, DOTNET_TEXT_BYTES / 2);
	if (n)
		text[n++] = '.';
	n += take_text(&at, end, text + n, DOTNET_TEXT_BYTES - n);
	/* "class System.String  (int32,bool)": what it returns comes first. */
	take_text(&at, end, signature, sizeof(signature));
	parameters = strchr(signature, '(');
	snprintf(text + n + 1, sizeof(text) - n - 1, "%s%s", parameters ? "=" : "",
		 parameters ? parameters : "");
	if (e->meta->event_id == METHOD_ID_2 && !rundown)
		unload(c, &m, text, time_ns);
	else if (n)
		add_method(c, &m, rundown, text);
}

static void set_module_name(struct dotnet_module *m, const char *path)
{
	const char *base = path + strlen(path);
	size_t n;

	while (base > path && base[-1] != '/' && base[-1] != '\\')
		base--;
	n = strlen(base);
	if (n > 4 && strcmp(base + n - 4, ".dll") == 0)
		n -= 4;
	snprintf(m->name, sizeof(m->name), "%.*s", (int)n, base);
}

static struct dotnet_module *find_module(const struct dotnet_code *c, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < c->nmodules; i++)
		if (c->modules[i].id == id)
			return &c->modules[i];
	return NULL;
}

const struct dotnet_module *dotnet_code_module(const struct dotnet_code *c, uint64_t id)
{
	return find_module(c, id);
}

/* u64 module, u64 assembly, u32 flags, u32 reserved, path, native path */
static void learn_module(struct dotnet_code *c, const struct nettrace_event *e)
{
	const uint8_t *at = e->payload, *end = at + e->payload_bytes;
	struct dotnet_module *m;
	char path[DOTNET_TEXT_BYTES * 2];

	if (e->payload_bytes < 24)
		return;
	m = find_module(c, le64(at));
	if (!m && (c->nmodules == MODULES_MAX ||
		   !shares_take(c->shares, c->share, sizeof(*m)) ||
		   ARRAY_ROOM(c->modules, c->modules_room, c->nmodules + 1)))
		return;
	if (!m) {
		m = &c->modules[c->nmodules++];
		*m = (struct dotnet_module){.id = le64(at)};
	}
	at += 24;
	take_text(&at, end, path, sizeof(path));
	set_module_name(m, path);
}

bool dotnet_code_learn(struct dotnet_code *c, const struct nettrace_event *e, uint64_t time_ns)
{
	bool rundown = e->meta->provider[sizeof(CLR) - 1] != '\0';
	uint32_t id = e->meta->event_id;

	c->nlearned++;
	if (id == METHOD_ID || id == METHOD_ID_2)
		learn_method(c, e, time_ns, rundown);
	else if (rundown ? id == MODULE_ID + 1 || id == MODULE_ID + 2 : id == MODULE_ID)
		learn_module(c, e);
	else
		return false;
	return id >= MODULE_ID;
}

void dotnet_code_free(struct dotnet_code *c)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		free(c->methods[i].text);
	for (i = 0; c->gone && i < DOTNET_GONE_MAX; i++)
		free(c->gone[i].text);
	free(c->methods);
	free(c->gone);
	free(c->modules);
}
