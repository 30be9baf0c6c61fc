#include "analysis/group.h"

#include "analysis/my_code.h"
#include "analysis/name_pattern.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/text_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- presets: those of PerfView's menu ------------------------------------------------------- */

static const struct {
	const char *name, *patterns;
} presets[] = {
	/* PerfView's {%}! would stop at the '-' of libLLVM-14.so.1 and at the ']' of [kernel]. */
	{"module", "[group modules] @^([^!]+)!->module $1"},
	{"module-entry", "[group module entries] @^([^!]+)!=>module $1"},
	{"class", "[group classes] @^([^!]+![^(]*)(::|[.])->class $1"},
	{"class-entry", "[group class entries] @^([^!]+![^(]*)(::|[.])=>class $1"},
	/*
	 * Of files outside of the executable's directory only the entries stay (my_code.h); these
	 * patterns are for generated code, and where no executable is known.
	 */
	{"just-my-code", "[just my code] ^[%!=>OTHER;^ld-%!=>OTHER;^lib%.so%!=>OTHER;"
			 "^ntoskrnl%!=>OTHER;^ntdll%!=>OTHER;^kernel%!=>OTHER;^clr%!=>OTHER;"
			 "^coreclr%!=>OTHER;"
			 "^mscor%!=>OTHER;^System.%!=>OTHER"},
};

const char *group_preset(const char *text)
{
	size_t i;

	for (i = 0; text && i < COUNT_OF(presets); i++) {
		size_t len = strlen(presets[i].name);

		/* PerfView shows its presets in brackets; as patterns those would be comments. */
		if (!strcmp(presets[i].name, text) ||
		    (text[0] == '[' && !strncmp(text + 1, presets[i].name, len) &&
		     !strcmp(text + 1 + len, "]")))
			return presets[i].patterns;
	}
	return text;
}

void group_put_presets(const char *text, struct buf *out)
{
	struct nearest nearest = {0};
	char name[40];
	size_t i, n;

	text += *text == '[';
	n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_ ");
	if (!n || n >= sizeof(name) || text[n + (text[n] == ']')])
		return;
	memcpy(name, text, n);
	name[n] = '\0';
	nearest.wanted = name;
	for (i = 0; i < COUNT_OF(presets); i++) {
		if (!strcmp(presets[i].name, name))
			return;
		nearest_offer(&nearest, presets[i].name);
	}
	buf_puts(out, "; presets are module, module-entry, class, class-entry, just-my-code");
	if (nearest.n)
		buf_puts(out, "; near is ");
	nearest_put(&nearest, "'", "'", out);
}

/* ---- pattern lists --------------------------------------------------------------------------- */

enum purpose { GROUP, FOLD, INCLUDE, EXCLUDE, PURPOSES };

static const char *const option_names[PURPOSES] = {"group", "fold", "inc", "exc"};

struct rule {
	struct name_pattern *pattern;
	char *name;                          /* of a group: the template */
	bool entry;
	bool by_path;                        /* it has a separator: of a module's path */
};

struct rules {
	struct rule items[GROUP_PATTERNS_MAX];
	uint32_t n;
};

static void rules_free(struct rules *r)
{
	while (r->n) {
		name_pattern_close(r->items[--r->n].pattern);
		free(r->items[r->n].name);
	}
}

static const char *find_arrow(const char *from, const char *end, const char *what)
{
	const char *at;

	for (at = from; at + 1 < end; at++) {
		if (at[0] == what[0] && at[1] == what[1])
			return at;
	}
	return NULL;
}

static void trim(const char **from, const char **end)
{
	while (*from < *end && (**from == ' ' || **from == '\t'))
		(*from)++;
	while (*end > *from && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
		(*end)--;
}

/* Add the pattern from `from` to `end`, between two ';' of `whole`. */
static int add_rule(struct rules *r, const char *from, const char *end, enum purpose purpose,
		    const char *whole, struct err *err)
{
	const char *arrow = NULL, *name = "$&", *name_end = name + 2;
	struct rule *rule = &r->items[r->n];

	memset(rule, 0, sizeof(*rule));
	if (purpose == GROUP) {
		arrow = find_arrow(from, end, "=>");
		rule->entry = arrow != NULL;
		if (!arrow)
			arrow = find_arrow(from, end, "->");
	}
	if (arrow) {
		name = arrow + 2;
		name_end = end;
		end = arrow;
		trim(&name, &name_end);
	}
	/* The '\\' of a regular expression is no path's. */
	rule->by_path = memchr(from, '/', (size_t)(end - from)) ||
			(*from != '@' && memchr(from, '\\', (size_t)(end - from)));
	if (r->n == GROUP_PATTERNS_MAX)
		return err_set(err, ERR_USAGE, "--%s takes at most %u patterns",
			       option_names[purpose], GROUP_PATTERNS_MAX);
	rule->name = text_dup(name, (size_t)(name_end - name));
	r->n++;
	if (!rule->name)
		return err_memory(err, "for patterns");
	return name_pattern_open(from, (size_t)(end - from), option_names[purpose],
				 (size_t)(from - whole) + 1, &rule->pattern, err);
}

static int rules_open(struct rules *r, const char *text, enum purpose purpose, struct err *err)
{
	const char *at = text ? text : "", *end, *piece_end;
	int rc = 0;

	while (*at == ' ')
		at++;
	if (purpose == GROUP && *at == '[' && strchr(at, ']'))
		at = strchr(at, ']') + 1;
	for (; !rc && *at; at = *end ? end + 1 : end) {
		end = strchr(at, ';');
		if (!end)
			end = at + strlen(at);
		piece_end = end;
		trim(&at, &piece_end);
		if (at < piece_end)
			rc = add_rule(r, at, piece_end, purpose, text, err);
	}
	return rc;
}

/* A bit for each pattern that matches. */
static uint64_t match_bits(const struct rules *r, const char *name, size_t n)
{
	uint64_t bits = 0;
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		if (name_pattern_match(r->items[i].pattern, name, n))
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

/* ---- frames ---------------------------------------------------------------------------------- */

#define NO_GROUP UINT32_MAX

struct look {                                /* what becomes of a frame in any stack */
	uint32_t frame;                      /* shown in its place */
	uint32_t group;                      /* number of its group's name; NO_GROUP */
	bool entry, fold, discard;
	uint64_t included;                   /* bit for each include pattern that matches */
};

struct grouping {
	struct incident *in;
	struct rules rules[PURPOSES];
	struct look *looks;                  /* by frame; valid where looked[frame] */
	bool *looked;
	struct text_table names;
	uint32_t *name_frame;                /* name number -> frame that is shown for it */
	uint32_t name_frames_room;
	uint32_t no_module;                  /* the module of groups; it has no name */
	bool *mine;                          /* of each module, for just-my-code; or NULL */
	bool no_memory;
	bool matched;                        /* a group's pattern matched some frame */
};

/* The number of a name. A new one is shown as `frame`. NO_GROUP without memory. */
static uint32_t name_number(struct grouping *g, const char *text, uint32_t frame)
{
	uint32_t n = g->names.n, number;

	if (ARRAY_ROOM(g->name_frame, g->name_frames_room, n + 1))
		return NO_GROUP;
	number = text_table_add(&g->names, text, strlen(text));
	if (number == n)
		g->name_frame[n] = frame;
	return number;
}

/* A frame with this text and nothing else. */
static uint32_t text_frame(struct grouping *g, const char *text)
{
	struct incident_frame f = {.module = g->no_module, .flags = FRAME_TEXT, .function = text};
	uint32_t found = text_table_find(&g->names, text, strlen(text));

	if (found != TABLE_NONE)
		return g->name_frame[found];
	return incident_add_frame(g->in, &f);
}

/* "/usr/lib/libc.so.6!read" */
static void put_path(const struct grouping *g, uint32_t frame, struct buf *out)
{
	const struct incident_frame *f = &g->in->frames[frame];
	const char *path = f->module < g->in->nmodules ? g->in->modules[f->module].path : NULL;

	buf_printf(out, "%s!%s", path ? path : "", f->function ? f->function : "?");
}

/* Apply each pattern in turn to *name, or to the path; true when it ends as a group's name. */
static bool group_of(struct grouping *g, uint32_t frame, struct buf *name, bool *entry)
{
	struct buf next = {0}, path = {0};
	bool grouped = false;
	uint32_t i;

	*entry = false;
	if (g->mine && g->in->modules[g->in->frames[frame].module].kind != OBJECT_JIT) {
		*entry = !g->mine[g->in->frames[frame].module];
		g->matched = true;
		buf_reset(name);
		buf_puts(name, "OTHER");
		return *entry;
	}
	for (i = 0; i < g->rules[GROUP].n && !*entry; i++) {
		const struct rule *rule = &g->rules[GROUP].items[i];

		const struct buf *of = name;

		if (!name_pattern_match(rule->pattern, buf_text(name), name->len)) {
			if (!rule->by_path || grouped)
				continue;
			if (!path.len)
				put_path(g, frame, &path);
			of = &path;
			if (!name_pattern_match(rule->pattern, buf_text(of), of->len))
				continue;
		}
		g->matched = true;
		buf_reset(&next);
		name_pattern_expand(rule->pattern, buf_text(of), rule->name, &next);
		g->no_memory |= next.failed || path.failed;
		if (!next.len) {
			grouped = false;
			break;
		}
		buf_reset(name);
		buf_put(name, next.data, next.len);
		grouped = true;
		*entry = rule->entry;
	}
	buf_free(&next);
	buf_free(&path);
	return grouped;
}

static int decide_frame(struct grouping *g, uint32_t frame)
{
	struct look look = {.frame = frame, .group = NO_GROUP};
	struct buf own = {0}, name = {0};
	uint32_t number;
	bool unnamed, grouped;
	int rc = 0;

	incident_frame_text(g->in, frame, false, &own);
	unnamed = !g->in->frames[frame].function;
	buf_put(&name, own.data, own.len);
	g->no_memory |= own.failed || name.failed;   /* before buf_reset() forgets it */
	grouped = group_of(g, frame, &name, &look.entry) || unnamed;
	if (!grouped) {                              /* the group's name is empty */
		buf_reset(&name);
		buf_put(&name, own.data, own.len);
	}
	if (grouped) {
		uint32_t shown = look.entry || strcmp(buf_text(&name), buf_text(&own))
					 ? text_frame(g, buf_text(&name)) : frame;

		look.group = shown == UINT32_MAX ? NO_GROUP
						 : name_number(g, buf_text(&name), shown);
		if (look.group == NO_GROUP)
			rc = ERR_MEMORY;
		else
			look.frame = g->name_frame[look.group];
	}
	if (!rc && look.entry) {
		buf_printf(&name, " <<%s>>", buf_text(&own));
		look.frame = text_frame(g, buf_text(&name));
	}
	/* One text is one frame, wherever in the function the address is. */
	number = rc ? NO_GROUP : name_number(g, buf_text(&name), look.frame);
	if (number == NO_GROUP || look.frame == UINT32_MAX || own.failed || name.failed ||
	    g->no_memory)
		rc = ERR_MEMORY;
	else if (!grouped || look.entry)
		look.frame = g->name_frame[number];
	look.discard = match_bits(&g->rules[EXCLUDE], buf_text(&name), name.len) != 0;
	look.fold = match_bits(&g->rules[FOLD], buf_text(&name), name.len) != 0;
	look.included = match_bits(&g->rules[INCLUDE], buf_text(&name), name.len);
	buf_free(&own);
	buf_free(&name);
	g->looks[frame] = look;
	g->looked[frame] = true;
	return rc;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

struct place {                               /* what became of one old stack node */
	uint32_t stack;                      /* new node; STACK_NONE: folded up to the root */
	uint32_t frame, group;               /* shown at its leaf; UINT32_MAX, NO_GROUP */
	uint64_t included;
	bool discard;
};

static int place_node(struct grouping *g, struct place *places, uint32_t node)
{
	uint32_t parent = g->in->stacks[node].parent, frame = g->in->stacks[node].frame;
	struct place nowhere = {STACK_NONE, UINT32_MAX, NO_GROUP, 0, false};
	const struct place *from = parent == STACK_NONE ? &nowhere : &places[parent];
	struct place *to = &places[node];
	const struct look *look;

	*to = *from;
	if (!g->looked[frame] && decide_frame(g, frame))
		return ERR_MEMORY;
	look = &g->looks[frame];
	to->discard |= look->discard;
	if (look->fold || look->frame == from->frame ||
	    (look->entry && look->group != NO_GROUP && look->group == from->group))
		return 0;
	to->included |= look->included;
	to->frame = look->frame;
	to->group = look->group;
	to->stack = incident_add_stack(g->in, from->stack, look->frame);
	return to->stack == UINT32_MAX ? ERR_MEMORY : 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The include patterns that a name matches; *discard is set when it matches an exclude pattern. */
static uint64_t name_bits(struct grouping *g, const struct buf *name, bool *discard)
{
	g->no_memory |= name->failed != 0;
	*discard |= match_bits(&g->rules[EXCLUDE], buf_text(name), name->len) != 0;
	return match_bits(&g->rules[INCLUDE], buf_text(name), name->len);
}

/* The same of a thread and its process. */
static uint64_t thread_bits(struct grouping *g, uint32_t thread, bool *discard)
{
	const struct incident_thread *t = &g->in->threads[thread];
	const struct incident_process *process = &g->in->processes[t->process];
	struct buf text = {0};
	uint64_t bits;

	if (!g->rules[INCLUDE].n && !g->rules[EXCLUDE].n)
		return 0;
	buf_printf(&text, "Process %s (%" PRIu32 ")", process->name, process->pid);
	bits = name_bits(g, &text, discard);
	buf_reset(&text);
	buf_printf(&text, "Thread (%" PRIu32 ") %s", t->tid, t->name);
	bits |= name_bits(g, &text, discard);
	buf_free(&text);
	return bits;
}

static int move_samples(struct grouping *g, const struct place *places)
{
	uint64_t *bits = calloc((size_t)g->in->nthreads + 1, sizeof(*bits));
	bool *discard = calloc((size_t)g->in->nthreads + 1, sizeof(*discard));
	uint32_t i, n = 0;

	for (i = 0; bits && discard && i < g->in->nthreads; i++)
		bits[i] = thread_bits(g, i, &discard[i]);
	for (i = 0; bits && discard && i < g->in->nsamples; i++) {
		struct incident_sample s = g->in->samples[i];
		uint32_t thread = s.thread == THREAD_NONE ? g->in->nthreads : s.thread;
		uint64_t matched = bits[thread];

		if (discard[thread] || (s.stack != STACK_NONE && places[s.stack].discard))
			continue;
		if (s.stack != STACK_NONE) {
			matched |= places[s.stack].included;
			s.stack = places[s.stack].stack;
		}
		if (matched || !g->rules[INCLUDE].n)
			g->in->samples[n++] = s;
	}
	free(bits);
	free(discard);
	if (!bits || !discard || g->no_memory)
		return ERR_MEMORY;
	g->in->nsamples = n;
	return 0;
}

static bool some_match_failed(const struct grouping *g)
{
	uint32_t purpose, i;

	for (purpose = 0; purpose < PURPOSES; purpose++)
		for (i = 0; i < g->rules[purpose].n; i++)
			if (name_pattern_no_memory(g->rules[purpose].items[i].pattern))
				return true;
	return false;
}

static int apply_rules(struct grouping *g)
{
	struct incident *in = g->in;
	uint32_t i, nstacks = in->nstacks;
	struct place *places = calloc((size_t)nstacks + 1, sizeof(*places));
	int rc = places ? 0 : ERR_MEMORY;

	for (i = 0; !rc && i < nstacks; i++)
		rc = place_node(g, places, i);
	if (!rc)
		rc = move_samples(g, places);
	for (i = 0; !rc && i < in->nevents; i++) {
		if (in->events[i].stack != STACK_NONE)
			in->events[i].stack = places[in->events[i].stack].stack;
	}
	for (i = 0; !rc && i < in->nfreed; i++) {
		struct incident_freed *f = &in->freed[i];

		f->stack = f->stack == STACK_NONE ? STACK_NONE : places[f->stack].stack;
		f->freed_by = f->freed_by == STACK_NONE ? STACK_NONE : places[f->freed_by].stack;
	}
	free(places);
	if (!rc && some_match_failed(g))
		rc = ERR_MEMORY;
	if (!rc)
		incident_count(in);
	return rc;
}

int group_incident(struct incident *in, const struct group_options *o, struct err *err)
{
	struct incident_module module = {.kind = OBJECT_UNKNOWN, .name = "", .path = ""};
	const char *const patterns[PURPOSES] = {group_preset(o->group), o->fold, o->include,
						o->exclude};
	struct grouping *g = calloc(1, sizeof(*g));
	uint32_t purpose;
	int rc = 0;

	if (!g)
		return err_memory(err, "for grouping");
	g->in = in;
	for (purpose = 0; purpose < PURPOSES && !rc; purpose++)
		rc = rules_open(&g->rules[purpose], patterns[purpose], purpose, err);
	if (!rc && patterns[GROUP] == group_preset("just-my-code") && my_code_find(in, &g->mine))
		rc = err_memory(err, "for grouping");
	if (!rc) {
		g->looks = calloc((size_t)in->nframes + 1, sizeof(*g->looks));
		g->looked = calloc((size_t)in->nframes + 1, sizeof(*g->looked));
		g->no_module = incident_add_module(in, &module);
		rc = ERR_MEMORY;
		if (g->looks && g->looked && g->no_module != UINT32_MAX)
			rc = apply_rules(g);
		if (rc)
			err_memory(err, "for grouping");
	}
	if (o->unmatched)
		*o->unmatched = o->group && *o->group && !g->matched &&
				!text_same_fold(o->group, "[no grouping]");
	while (purpose--)
		rules_free(&g->rules[purpose]);
	free(g->looks);
	free(g->looked);
	free(g->mine);
	text_table_free(&g->names);
	free(g->name_frame);
	free(g);
	return rc;
}
