#include "tests/support/event_lab.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 16u

struct line {
	char text[1200];                     /* cut into words in place */
	struct event event;
	struct event_field fields[FIELDS_MAX];
	uint32_t pid, tid;
	const char *exe, *args;
};

void event_lab_open(struct event_lab *lab, const char *kind, const char *spec,
		    const struct trigger_env *env)
{
	static const struct trigger_env usual = {.min_sec = 0, .already_true_fires = true};
	const struct trigger_ops *ops = trigger_kind(kind);
	const char *provider = lab->provider;
	struct err err = {0};

	memset(lab, 0, sizeof(*lab));
	lab->provider = provider;
	if (!ops)
		fail_msg("no kind of rule is called %s", kind);
	if (processes_new(&lab->processes, &err) ||
	    trigger_open(ops, spec, env ? env : &usual, &lab->trigger, &err))
		fail_msg("%s", err.text);
}

void event_lab_close(struct event_lab *lab)
{
	trigger_close(lab->trigger);
	processes_free(lab->processes);
	buf_free(&lab->why);
}

/* The next word, cut off; quotes keep blanks together. *quoted = it had some. */
static char *next_word(char **at, bool *quoted)
{
	char *from = *at, *to;
	bool in = false;

	*quoted = false;
	while (*from == ' ')
		from++;
	if (!*from)
		return NULL;
	for (to = *at = from; **at && (in || **at != ' '); ++*at) {
		if (**at == '\'')
			in = !in, *quoted = true;
		else
			*to++ = **at;
	}
	if (**at)
		++*at;
	*to = '\0';
	return from;
}

static void add_field(struct line *l, const char *name, const char *value, bool quoted)
{
	struct event_field *f = &l->fields[l->event.nfields];
	const char *digits = value + (*value == '-');

	assert_true(l->event.nfields < FIELDS_MAX);
	l->event.nfields++;
	f->name = name;
	f->type = FIELD_TEXT;
	f->v.text = value;
	if (quoted || !*digits)
		return;
	if (strspn(digits, "0123456789") == strlen(digits)) {
		f->type = *value == '-' ? FIELD_INT : FIELD_UINT;
		if (*value == '-')
			f->v.i = strtoll(value, NULL, 10);
		else
			f->v.u = strtoull(value, NULL, 10);
	} else if (strspn(digits, "0123456789.") == strlen(digits)) {
		f->type = FIELD_DOUBLE;
		f->v.d = strtod(value, NULL);
	}
}

static void set_key(struct line *l, char *word, bool quoted)
{
	char *equals = strchr(word, '='), *value;

	if (!equals)
		fail_msg("'%s' is not Field=Value", word);
	*equals = '\0';
	value = equals + 1;
	if (strcmp(word, "pid") == 0)
		l->pid = (uint32_t)strtoul(value, NULL, 10);
	else if (strcmp(word, "tid") == 0)
		l->tid = (uint32_t)strtoul(value, NULL, 10);
	else if (strcmp(word, "exe") == 0)
		l->exe = value;
	else if (strcmp(word, "args") == 0)
		l->args = value;
	else if (strcmp(word, "value") == 0)
		l->event.value = strtod(value, NULL), l->event.flags = 0;
	else if (strcmp(word, "EventID") == 0)
		l->event.flags = EVENT_FLAG_ID | (uint32_t)strtoul(value, NULL, 10)
							 << EVENT_ID_SHIFT;
	else if (strcmp(word, "Provider") == 0)
		l->event.provider = value;
	else if (strcmp(word, "Name") == 0 && l->event.kind == EVENT_COUNTER)
		l->event.name = value;
	else
		add_field(l, word, value, quoted);
}

static void set_kind(struct line *l, const char *name, const char *provider)
{
	static const struct {
		const char *name;
		enum event_kind kind;
	} kinds[] = {
		{"tick", EVENT_TICK}, {"start", EVENT_PROCESS_START}, {"exit", EVENT_PROCESS_EXIT},
		{"counter", EVENT_COUNTER}, {"log", EVENT_LOG}, {"sample", EVENT_SAMPLE},
	};
	size_t i;

	l->event.kind = EVENT_GENERIC;
	l->event.name = name;
	l->event.provider = provider;
	for (i = 0; i < COUNT_OF(kinds); i++) {
		if (strcmp(name, kinds[i].name) != 0)
			continue;
		l->event.kind = kinds[i].kind;
		l->event.name = l->event.provider = NULL;
	}
	l->event.flags = l->event.kind == EVENT_COUNTER ? EVENT_FLAG_ABSENT : 0;
	l->event.value = l->event.kind == EVENT_PROCESS_EXIT ? (double)NAN : 0;
}

static void set_process(struct event_lab *lab, struct line *l)
{
	if (!l->pid)
		return;
	l->event.process = process_add(lab->processes, l->pid, 1, 0, 1, l->exe ? l->exe : "app");
	if (l->exe)
		process_set_exe(l->event.process, l->exe);
	if (l->args)
		process_set_cmdline(l->event.process, l->args);
	l->event.thread = thread_add(lab->processes, l->event.process, l->tid ? l->tid : l->pid);
	assert_non_null(l->event.thread);
}

static void parse(struct event_lab *lab, const char *text, struct line *l)
{
	size_t n = strcspn(text, "\n");
	char *at = l->text, *word;
	bool quoted;

	memset(l, 0, sizeof(*l));
	assert_true(n < sizeof(l->text));
	memcpy(l->text, text, n);
	l->event.cpu = CPU_NONE;
	l->event.stack = STACK_NONE;
	l->event.fields = l->fields;
	word = next_word(&at, &quoted);
	assert_non_null(word);
	l->event.time_ns = (uint64_t)(strtod(word, NULL) * 1e6 + 0.5);
	word = next_word(&at, &quoted);
	if (!word)
		fail_msg("no event in '%.*s'", (int)n, text);
	set_kind(l, word, lab->provider);
	while ((word = next_word(&at, &quoted)) != NULL)
		set_key(l, word, quoted);
	set_process(lab, l);
}

bool event_lab_feed(struct event_lab *lab, const char *text)
{
	struct trigger_status status;
	struct buf why = {0};
	struct line line;
	bool fires = false;

	parse(lab, text, &line);
	lab->time_ns = line.event.time_ns;
	if (lab->trigger->kinds >> line.event.kind & 1)
		fires = lab->trigger->ops->feed(lab->trigger, &line.event, &why);
	if (fires) {
		lab->firings++;
		trigger_status(lab->trigger, &status);
		lab->value = status.value;
		lab->limit = status.limit;
		buf_reset(&lab->why);
		buf_puts(&lab->why, buf_text(&why));
		if (!why.len)
			fail_msg("it fired without a sentence at '%s'", line.text);
	}
	buf_free(&why);
	return fires;
}

void event_lab_story(struct event_lab *lab, const char *lines)
{
	bool wanted;
	size_t n;

	for (; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		if (n == 2 && memcmp(lines, "--", 2) == 0) {
			trigger_fired(lab->trigger);
			continue;
		}
		if (strspn(lines, " ") == n)
			continue;
		wanted = *lines == '!';
		if (event_lab_feed(lab, lines + wanted) != wanted)
			fail_msg("at '%.*s': it %s; %s", (int)n, lines,
				 wanted ? "does not fire" : "fires", buf_text(&lab->why));
	}
}

void event_lab_stories(const char *kind, const char *provider, const struct lab_story *stories,
		       size_t n)
{
	struct event_lab lab;
	size_t i;

	for (i = 0; i < n; i++) {
		print_message("  %s\n", stories[i].what);
		lab.provider = provider;
		event_lab_open(&lab, kind, stories[i].spec, NULL);
		event_lab_story(&lab, stories[i].lines);
		event_lab_close(&lab);
	}
}

void event_lab_refused(const char *kind, const char *spec, const char *says)
{
	static const struct trigger_env env = {.already_true_fires = true};
	struct trigger *t = NULL;
	struct err err = {0};

	assert_int_equal(trigger_open(trigger_kind(kind), spec, &env, &t, &err), ERR_USAGE);
	assert_null(t);
	if (!strstr(err.text, says))
		fail_msg("'%s': %s", spec, err.text);
}
