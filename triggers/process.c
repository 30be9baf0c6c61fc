#include "triggers/process.h"

#include "base/array.h"
#include "base/text.h"
#include "triggers/spec.h"

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
static const struct signal_name {
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

/* What is known about a signal, or NULL. */
static const struct signal_name *find_signal(unsigned number)
{
	size_t i;

	for (i = 0; i < COUNT_OF(signals); i++)
		if (signals[i].number == number)
			return &signals[i];
	return NULL;
}

static bool is_fault(unsigned number)
{
	const struct signal_name *s = find_signal(number);

	return s && s->fault;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int take_on(struct process_rule *p, const struct spec *s)
{
	static const char *const names[] = {
		[ON_EXIT] = "exit", [ON_START] = "start", [ON_CRASH] = "crash", [ON_OOM] = "oom",
	};
	int on = spec_choice(s, names, COUNT_OF(names));

	if (on < 0)
		return spec_wrong(s, "On is start, exit, crash or oom");
	p->on = (enum on)on;
	return 0;
}

static int take_code(struct process_rule *p, const struct spec *s, enum code_test test)
{
	char copy[24] = "", *end = copy;

	if (s->value_len && s->value_len < sizeof(copy)) {
		memcpy(copy, s->value, s->value_len);
		p->code = strtoll(copy, &end, 0);
	}
	if (p->code_test != CODE_ANY)
		return spec_wrong(s, "ExitCode is given twice");
	if (end == copy || *end)
		return spec_wrong(s, "ExitCode is a whole number, like 1 or 0xC0000005");
	p->code_test = test;
	return 0;
}

static int take_signal(struct process_rule *p, const struct spec *s)
{
	struct spec name = *s;
	char number[8];
	size_t i;

	if (name.value_len > 3 && strncasecmp(name.value, "sig", 3) == 0) {
		name.value += 3;
		name.value_len -= 3;
	}
	for (i = 0; i < COUNT_OF(signals) && !p->signal; i++) {
		snprintf(number, sizeof(number), "%u", signals[i].number);
		if (spec_value_is(&name, signals[i].name) || spec_value_is(&name, number))
			p->signal = signals[i].number;
	}
	return p->signal ? 0 : spec_wrong(s, "Signal is a name such as SEGV, KILL or TERM");
}

static int take_key(void *rule, struct spec *s)
{
	struct process_rule *p = rule;

	if (spec_key_is(s, "On"))
		return take_on(p, s);
	if (spec_key_is(s, "ExitCode"))
		return take_code(p, s, CODE_IS);
	if (spec_key_is(s, "ExitCode!"))
		return take_code(p, s, CODE_IS_NOT);
	if (spec_key_is(s, "Signal"))
		return take_signal(p, s);
	return spec_key_is(s, "Stack") ? spec_bool(s, &p->stack) : ERR_NOT_FOUND;
}

static bool wants_ending(const struct process_rule *p)
{
	return p->on == ON_CRASH || p->code_test != CODE_ANY || p->signal;
}

/* Refuse combinations that no end of a process can have. */
static int check_ending(const struct process_rule *p, const struct spec *s)
{
	if (p->stack && (p->on != ON_CRASH || p->code_test != CODE_ANY))
		return spec_wrong(s, "Stack=true needs On=crash and excludes ExitCode");
	if ((p->on == ON_START || p->on == ON_OOM) && (p->code_test != CODE_ANY || p->signal))
		return spec_wrong(s, "a %s has no exit code and no signal",
				  p->on == ON_START ? "start" : "kill for lack of memory");
	if (p->signal && p->code_test == CODE_IS)
		return spec_wrong(s, "a process killed by a signal has no exit code: give "
				  "ExitCode= or Signal=, not both");
	if (p->on == ON_CRASH && p->signal && !is_fault(p->signal))
		return spec_wrong(s, "that signal is not a crash, so this would never fire; leave "
				  "out On=crash");
	if (p->on == ON_CRASH && p->code_test == CODE_IS && (uint64_t)p->code < WINDOWS_FAULT)
		return spec_wrong(s, "a crash ends by a signal, or on Windows with a code of "
				  "0xC0000000 or more, so this would never fire; leave out "
				  "On=crash");
	return 0;
}

static int process_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	struct process_rule *p = (struct process_rule *)t;
	struct spec s;
	int rc = 0;

	(void)env;
	spec_begin(&s, t->text, err);
	if (s.head_len != 1 || s.text[0] != '*')
		rc = process_filter_parse(s.text, s.head_len, &t->processes, err);
	if (rc == ERR_USAGE)
		err_prefix(err, "StopOnProcess:%.100s", s.text);
	if (!rc)
		rc = spec_keys(&s, take_key, p, "On, ExitCode, Signal and Stack");
	if (!rc)
		rc = check_ending(p, &s);
	t->kinds = p->on == ON_START ? 1u << EVENT_PROCESS_START : 1u << EVENT_PROCESS_EXIT;
	if (wants_ending(p) || p->on == ON_OOM)
		t->kinds |= 1u << EVENT_GENERIC;
	return rc;
}

/* Linux: a crash at the unhandled signal, or a kill when the kernel chooses its victim. */
static int needs_tracepoint(struct needs *out, const struct need_event *e, struct err *err)
{
	int rc = needs_provider(out, e->provider, UINT64_MAX, 4, err);

	return rc ? rc : needs_event(out, e, err);
}

static int process_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	static const struct need_event victim = {.provider = "oom", .name = "mark_victim"};
	static const struct need_event crash = {.provider = "signal", .name = "signal_deliver",
						.filter = "sa_handler=0", .stack = true};
	const struct process_rule *p = (const struct process_rule *)t;

	out->memory |= p->on == ON_OOM;
	if (p->on == ON_OOM || p->stack)
		return needs_tracepoint(out, p->stack ? &crash : &victim, err);
	out->endings |= wants_ending(p);
	out->command_lines |= process_filter_has_names(&t->processes);
	return 0;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool get_whole(const struct event *e, const char *field, int64_t *out)
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

	memset(out, 0, sizeof(*out));
	if (get_whole(e, "ExitStatus", &v)) {
		/* A negative i32 is an NTSTATUS, printed as 0xC0000005. */
		out->known = true;
		out->code = v < 0 ? (int64_t)(uint32_t)v : v;
		out->fault = out->code >= WINDOWS_FAULT;
		return;
	}
	out->known = get_whole(e, "ExitCode", &out->code) || get_whole(e, "sig", &v);
	if ((get_whole(e, "Signal", &v) || get_whole(e, "sig", &v)) && v > 0 && v < 128)
		out->signal = (unsigned)v;
	out->fault = is_fault(out->signal);
}

static void ending_text(const struct ending *end, struct buf *out)
{
	const struct signal_name *signal = find_signal(end->signal);

	if (!end->known) {
		buf_puts(out, " ended");
	} else if (end->signal) {
		buf_printf(out, " was killed by signal %u", end->signal);
		if (signal)
			buf_printf(out, " (SIG%s)", signal->name);
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
	return p->code_test == CODE_ANY ||
	       (!end->signal && end->code == p->code) == (p->code_test == CODE_IS);
}

static bool is_named(const struct event *e, const char *provider, const char *name)
{
	return e->name && strcmp(e->name, name) == 0 && e->provider &&
	       strcmp(e->provider, provider) == 0;
}

/* A kill for lack of memory: the event is the asking process's, its fields say which one dies. */
static void oom_sense(struct trigger *t, const struct event *e, struct buf *why, struct sense *out)
{
	const struct event_field *comm = event_field(e, "comm");
	const char *name = comm && comm->type == FIELD_TEXT && comm->v.text ? comm->v.text : "?";
	struct process_names names = {.comm = name};
	char label[PROCESS_LABEL_BYTES];
	int64_t pid = 0, kb;

	if (e->kind != EVENT_GENERIC || !is_named(e, "oom", "mark_victim"))
		return;
	t->counts.seen++;
	get_whole(e, "pid", &pid);
	if (!process_filter_pass_named(&t->processes, (uint32_t)pid, &names)) {
		t->counts.dropped_process++;
		return;
	}
	trigger_matches(t, true, out);
	buf_printf(why, "process %s (pid %" PRId64
		   ") is being killed, as the kernel is out of memory", name, pid);
	if (get_whole(e, "anon_rss", &kb))
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
		       get_whole(e, "sa_handler", &handler) && !handler;
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
		oom_sense(t, e, why, out);
		return;
	}
	if (!is_event_of(p, e) || !trigger_wants(t, e->process))
		return;
	ending_of(e, &ending);
	if (!trigger_matches(t, p->on == ON_START || ending_counts(p, &ending), out))
		return;
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
	*out = (struct trigger_wish){.processes = &t->processes};
	return i == 0;
}

static void process_status(const struct trigger *t, struct trigger_status *out)
{
	out->phase = TRIGGER_ARMED;
	snprintf(out->text, sizeof(out->text), "%" PRIu64 " of %" PRIu64 " processes matched%s",
		 t->counts.matched, t->counts.seen, trigger_window_text(t));
}

const struct trigger_ops process_trigger = {
	.name = "stop-on-process",
	.title = "StopOnProcess",
	.usage = "NAME|PID|*[,...][;On=start|exit|crash|oom][;Stack=true][;ExitCode=N]"
		 "[;ExitCode!=N][;Signal=SEGV]",
	.summary = "keep an incident when a process starts, ends or crashes",
	.bytes = sizeof(struct process_rule),
	.open = process_open,
	.needs = process_needs,
	.feed = trigger_feed,
	.status = process_status,
	.sense = process_sense,
	.wish = process_wish,
};
