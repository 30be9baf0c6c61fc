#include "triggers/process.h"

#include "base/array.h"
#include "base/text.h"
#include "triggers/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WINDOWS_FAULT 0xC0000000u

enum on { ON_EXIT, ON_START, ON_CRASH, ON_OOM };

enum code_test { CODE_ANY, CODE_IS, CODE_IS_NOT };

struct process_rule {
	struct trigger base;
	struct process_filter processes;
	enum on on;
	enum code_test code_test;
	int64_t code;
	unsigned signal;                     /* 0 = any end */
	bool stack;                          /* fire at the signal with its stack, not at the end */
};

/* How a process ended. */
struct ending {
	bool known;
	int64_t code;                        /* if signal is 0 */
	unsigned signal;
	bool fault;
};

/* Linux, asm-generic/signal.h: the same numbers on x86 and ARM. */
static const struct {
	const char *name;
	unsigned number;
	bool fault;
} signals[] = {
	{"HUP", 1, false}, {"INT", 2, false}, {"QUIT", 3, true}, {"ILL", 4, true},
	{"TRAP", 5, true}, {"ABRT", 6, true}, {"BUS", 7, true}, {"FPE", 8, true},
	{"KILL", 9, false}, {"USR1", 10, false}, {"SEGV", 11, true}, {"USR2", 12, false},
	{"PIPE", 13, false}, {"ALRM", 14, false}, {"TERM", 15, false}, {"XCPU", 24, true},
	{"XFSZ", 25, true}, {"SYS", 31, true},
};

#define SIGNALS COUNT_OF(signals)

/* ---- making ---------------------------------------------------------------------------------- */

static void process_close(struct trigger *t)
{
	if (!t)
		return;
	free(t->spec);
	free(t);
}

static int take_on(struct process_rule *p, const struct spec *s, const struct spec_part *part,
		   struct err *err)
{
	if (spec_value_is(part, "exit"))
		p->on = ON_EXIT;
	else if (spec_value_is(part, "start"))
		p->on = ON_START;
	else if (spec_value_is(part, "crash"))
		p->on = ON_CRASH;
	else if (spec_value_is(part, "oom"))
		p->on = ON_OOM;
	else
		return err_set(err, ERR_USAGE, "'%.200s': On is start, exit, crash or oom",
			       s->text);
	return 0;
}

static int take_code(struct process_rule *p, const struct spec *s, const struct spec_part *part,
		     enum code_test test, struct err *err)
{
	char copy[24] = "", *end = copy;

	if (part->value_len && part->value_len < sizeof(copy)) {
		memcpy(copy, part->value, part->value_len);
		p->code = strtoll(copy, &end, 0);
	}
	if (p->code_test != CODE_ANY)
		return err_set(err, ERR_USAGE, "'%.200s': ExitCode is given twice", s->text);
	if (end == copy || *end)
		return err_set(err, ERR_USAGE,
			       "'%.200s': ExitCode is a whole number, like 1 or 0xC0000005",
			       s->text);
	p->code_test = test;
	return 0;
}

static int take_signal(struct process_rule *p, const struct spec *s, const struct spec_part *part,
		       struct err *err)
{
	struct spec_part name = *part;
	char number[8];
	size_t i;

	if (name.value_len > 3 && (name.value[0] | 32) == 's' && (name.value[1] | 32) == 'i' &&
	    (name.value[2] | 32) == 'g') {
		name.value += 3;
		name.value_len -= 3;
	}
	for (i = 0; i < SIGNALS && !p->signal; i++) {
		snprintf(number, sizeof(number), "%u", signals[i].number);
		if (spec_value_is(&name, signals[i].name) || spec_value_is(&name, number))
			p->signal = signals[i].number;
	}
	if (p->signal)
		return 0;
	return err_set(err, ERR_USAGE, "'%.200s': Signal is a name such as SEGV, KILL or TERM",
		       s->text);
}

static int take_key(struct process_rule *p, const struct spec *s, const struct spec_part *part,
		    struct err *err)
{
	if (spec_key_is(part, "On"))
		return take_on(p, s, part, err);
	if (spec_key_is(part, "ExitCode"))
		return take_code(p, s, part, CODE_IS, err);
	if (spec_key_is(part, "ExitCode!"))
		return take_code(p, s, part, CODE_IS_NOT, err);
	if (spec_key_is(part, "Signal"))
		return take_signal(p, s, part, err);
	if (spec_key_is(part, "Stack"))
		return spec_bool(s, part, &p->stack, err);
	return spec_unknown_key(s, part, "On, ExitCode, Signal and Stack", err);
}

static bool wants_ending(const struct process_rule *p)
{
	return p->on == ON_CRASH || p->code_test != CODE_ANY || p->signal;
}

/* Refuses combinations that no end of a process can have. */
static int check_ending(const struct process_rule *p, const char *text, struct err *err)
{
	bool fault = false;
	size_t i;

	if (p->stack && (p->on != ON_CRASH || p->code_test != CODE_ANY))
		return err_set(err, ERR_USAGE,
			       "'%.200s': Stack=true needs On=crash and excludes ExitCode", text);
	if ((p->on == ON_START || p->on == ON_OOM) && (p->code_test != CODE_ANY || p->signal))
		return err_set(err, ERR_USAGE, "'%.200s': a %s has no exit code and no signal",
			       text, p->on == ON_START ? "start" : "kill for lack of memory");
	if (p->signal && p->code_test == CODE_IS)
		return err_set(err, ERR_USAGE,
			       "'%.200s': a process killed by a signal has no exit code: "
			       "give ExitCode= or Signal=, not both",
			       text);
	for (i = 0; i < SIGNALS; i++)
		fault |= p->signal == signals[i].number && signals[i].fault;
	if (p->on == ON_CRASH && p->signal && !fault)
		return err_set(err, ERR_USAGE,
			       "'%.200s': that signal is not a crash, so this would never "
			       "fire; leave out On=crash",
			       text);
	if (p->on == ON_CRASH && p->code_test == CODE_IS && (uint64_t)p->code < WINDOWS_FAULT)
		return err_set(
			err, ERR_USAGE,
			"'%.200s': a crash ends by a signal, or on Windows with a code "
			"of 0xC0000000 or more, so this would never fire; leave out On=crash",
			text);
	return 0;
}

static int parse(struct process_rule *p, const char *text, struct err *err)
{
	struct spec_part part;
	struct spec s;
	int rc = 0;

	spec_begin(&s, text);
	if (s.head_len != 1 || text[0] != '*')
		rc = process_filter_parse(text, s.head_len, &p->processes, err);
	if (rc == ERR_USAGE)
		err_prefix(err, "StopOnProcess:%.100s", text);
	while (!rc && spec_next(&s, &part, &rc, err))
		rc = take_key(p, &s, &part, err);
	return rc ? rc : check_ending(p, text, err);
}

static int process_open(const char *spec, const struct trigger_env *env, struct trigger **out,
			struct err *err)
{
	struct process_rule *p = calloc(1, sizeof(*p));
	uint32_t kinds;
	int rc;

	(void)env;
	if (!p)
		return err_memory(err, "for the rule '%.200s'", spec);
	rc = parse(p, spec, err);
	kinds = p->on == ON_START ? 1u << EVENT_PROCESS_START : 1u << EVENT_PROCESS_EXIT;
	if (wants_ending(p) || p->on == ON_OOM)
		kinds |= 1u << EVENT_GENERIC;
	if (!rc)
		rc = trigger_init(&p->base, &process_trigger, "StopOnProcess", spec, kinds, err);
	if (rc) {
		process_close(&p->base);
		return rc;
	}
	*out = &p->base;
	return 0;
}

/* Linux: a crash at the unhandled signal, or a kill when the kernel chooses its victim. */
static int needs_tracepoint(struct needs *out, const char *provider, const char *name,
			    const char *filter, bool stack, struct err *err)
{
	struct need_event *e = calloc(1, sizeof(*e));
	int rc = e ? needs_provider(out, provider, UINT64_MAX, 4, err)
		   : err_memory(err, "for a rule on processes");

	if (!rc) {
		strcpy(e->provider, provider);
		strcpy(e->name, name);
		strcpy(e->filter, filter);
		e->stack = stack;
		rc = needs_event(out, e, err);
	}
	free(e);
	return rc;
}

static int process_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct process_rule *p = (const struct process_rule *)t;

	if (p->on == ON_OOM)
		return needs_tracepoint(out, "oom", "mark_victim", "", false, err);
	if (p->stack)
		return needs_tracepoint(out, "signal", "signal_deliver", "sa_handler=0", true, err);
	out->endings |= wants_ending(p);
	out->command_lines |= process_filter_has_names(&p->processes);
	return 0;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool whole(const struct event *e, const char *field, int64_t *out)
{
	const struct event_field *f = event_field(e, field);

	if (!f || (f->type != FIELD_INT && f->type != FIELD_UINT))
		return false;
	*out = f->type == FIELD_INT ? f->v.i : (int64_t)f->v.u;
	return true;
}

static void ending_of(const struct event *e, struct ending *out)
{
	int64_t v = 0;
	size_t i;

	memset(out, 0, sizeof(*out));
	if (whole(e, "ExitStatus", &v)) {
		/* A negative i32 is an NTSTATUS, printed as 0xC0000005. */
		out->known = true;
		out->code = v < 0 ? (int64_t)(uint32_t)v : v;
		out->fault = out->code >= WINDOWS_FAULT;
		return;
	}
	out->known = whole(e, "ExitCode", &out->code) || whole(e, "sig", &v);
	if ((whole(e, "Signal", &v) || whole(e, "sig", &v)) && v > 0 && v < 128)
		out->signal = (unsigned)v;
	for (i = 0; i < SIGNALS; i++)
		out->fault |= out->signal == signals[i].number && signals[i].fault;
}

static void ending_text(const struct ending *end, struct buf *out)
{
	size_t i;

	if (!end->known) {
		buf_puts(out, " ended");
	} else if (end->signal) {
		for (i = 0; i < SIGNALS && signals[i].number != end->signal; i++)
			;
		buf_printf(out, " was killed by signal %u", end->signal);
		if (i < SIGNALS)
			buf_printf(out, " (SIG%s)", signals[i].name);
	} else if (end->code >= 0x10000) {
		buf_printf(out, " ended with code 0x%" PRIX64, (uint64_t)end->code);
	} else {
		buf_printf(out, " ended with code %" PRId64, end->code);
	}
}

static bool ending_counts(const struct process_rule *p, const struct ending *end)
{
	if (!wants_ending(p))
		return true;
	if (!end->known || (p->on == ON_CRASH && !end->fault) ||
	    (p->signal && p->signal != end->signal))
		return false;
	switch (p->code_test) {
	case CODE_ANY:
		return true;
	case CODE_IS:
		return !end->signal && end->code == p->code;
	case CODE_IS_NOT:
		return end->signal || end->code != p->code;
	}
	return false;
}

static bool is_named(const struct event *e, const char *provider, const char *name)
{
	return e->name && strcmp(e->name, name) == 0 && e->provider &&
	       strcmp(e->provider, provider) == 0;
}

/* A kill for lack of memory: the event is the asking process's, its fields say which one dies. */
static bool is_victim(const struct process_rule *p, const char *comm, int64_t pid)
{
	return process_filter_pass_named(&p->processes, (uint32_t)pid,
					 &(struct process_names){.comm = comm});
}

static void oom_sense(struct process_rule *p, const struct event *e, struct buf *why,
		      struct sense *out)
{
	const struct event_field *comm = event_field(e, "comm");
	const char *name = comm && comm->type == FIELD_TEXT && comm->v.text ? comm->v.text : "?";
	char label[PROCESS_LABEL_BYTES];
	int64_t pid = 0, kb;

	if (e->kind != EVENT_GENERIC || !is_named(e, "oom", "mark_victim"))
		return;
	p->base.counts.seen++;
	whole(e, "pid", &pid);
	if (!is_victim(p, name, pid)) {
		p->base.counts.dropped_process++;
		return;
	}
	p->base.counts.matched++;
	out->hit = true;
	buf_printf(why,
		   "process %s (pid %" PRId64 ") is being killed, as the kernel is out of memory",
		   name, pid);
	if (whole(e, "anon_rss", &kb))
		buf_printf(why, "; it holds %" PRId64 " MB", kb / 1024);
	if (e->process && e->process->pid != pid)
		buf_printf(why, "; %s (pid %" PRIu32 ") asked for memory",
			   process_label(e->process, label), e->process->pid);
}

static bool is_event_of(const struct process_rule *p, const struct event *e)
{
	int64_t handler;

	if (p->stack)
		return e->kind == EVENT_GENERIC && is_named(e, "signal", "signal_deliver") &&
		       whole(e, "sa_handler", &handler) && !handler;
	if (e->kind == EVENT_GENERIC)
		return is_named(e, LINUX_PROVIDER, LINUX_PROCESS_EXIT);
	/* An end without its cause comes too; rules about causes wait for the one that has it. */
	return !wants_ending(p) || event_field(e, "ExitStatus") != NULL;
}

static void process_sense(struct trigger *t, const struct event *e, struct buf *why,
			  struct sense *out)
{
	struct process_rule *p = (struct process_rule *)t;
	char label[PROCESS_LABEL_BYTES];
	struct ending ending;

	if (p->on == ON_OOM) {
		oom_sense(p, e, why, out);
		return;
	}
	if (!is_event_of(p, e))
		return;
	t->counts.seen++;
	if (!process_filter_pass(&p->processes, e->process)) {
		t->counts.dropped_process++;
		return;
	}
	ending_of(e, &ending);
	if (p->on != ON_START && !ending_counts(p, &ending)) {
		t->counts.dropped_filter++;
		return;
	}
	t->counts.matched++;
	out->hit = true;
	buf_printf(why, "process %s (pid %" PRIu32 ")",
		   e->process ? process_label(e->process, label) : "?",
		   e->process ? e->process->pid : 0);
	if (p->on == ON_START)
		buf_puts(why, " started");
	else
		ending_text(&ending, why);
}

static bool process_wish(const struct trigger *t, unsigned i, struct trigger_wish *out)
{
	*out = (struct trigger_wish){.processes = &((const struct process_rule *)t)->processes};
	return i == 0;
}

static void process_status(const struct trigger *t, struct trigger_status *out)
{
	trigger_status_base(t, out);
	out->phase = TRIGGER_ARMED;
	snprintf(out->text, sizeof(out->text), "%" PRIu64 " of %" PRIu64 " processes matched%s",
		 t->counts.matched, t->counts.seen,
		 trigger_window_text(t));
}

const struct trigger_ops process_trigger = {
	.name = "stop-on-process",
	.usage =
		"NAME|PID|*[,...][;On=start|exit|crash|oom][;Stack=true][;ExitCode=N][;ExitCode!=N]"
		"[;Signal=SEGV]",
	.summary = "keep an incident when a process starts, ends or crashes",
	.open = process_open,
	.needs = process_needs,
	.feed = trigger_feed,
	.fired = trigger_fired,
	.status = process_status,
	.close = process_close,
	.sense = process_sense,
	.wish = process_wish,
};
