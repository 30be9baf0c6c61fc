/*
 * Specs of every kind of rule, and what an opened rule does with events made of the same bytes: u8
 * kind, the spec up to a NUL, then events: kind, how far time moves on, name and fields.
 */
#include "base/os.h"
#include "triggers/event_match.h"
#include "triggers/perf_counter.h"
#include "triggers/trigger.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
	"GC/Start", "GC/Stop", "GC/SuspendEEStart", "GC/RestartEEStop", "Exception/Start",
	"R/Start", "R/Stop", "EventID(1)", "EventID(2)", "A:B:C", "Process/Exit", "",
	"signal_deliver", "mark_victim", "EventLog", "GC/GarbageCollection", "GC/Pauses",
};
static const char *const providers[] = {
	"Microsoft-Windows-DotNETRuntime", "P", "Linux", "{DE4649C9-15E8-4FEA-9D85-1CDDA520C334}",
	"signal", "oom", "JVM", "V8",
};
static const char *const field_names[] = {
	"Count", "Message", "Log", "x", "Type", "Reason", "Depth", "ExitStatus", "ExitCode",
	"Signal", "sig", "sa_handler", "pid", "comm", "anon_rss", "EventId", "ActivityID",
	"RelatedActivityID", "ExceptionType", "PauseMs",
	"Pauses", "PauseMSec", "PauseMinMSec",
};
static const char *const texts[] = {
	"Application", "kernel", "BackgroundGC", "SuspendForGC", "SuspendForGCPrep", "12.5", "-3",
	"took 7 s", "d145c312-20e0-0201-030a-0000a587e42c", "0x10", "sh",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
};
#define ONE_OF(list, n) ((list)[(n) % (sizeof(list) / sizeof((list)[0]))])

enum { FIELDS = 3, EVENT_BYTES = 8 + 3 * FIELDS };

/* Of 3 bytes: name; type, and which text; value. */
static void make_field(const uint8_t data[3], char text[2], struct event_field *out)
{
	out->name = ONE_OF(field_names, data[0]);
	out->type = (enum field_type)(data[1] % 4);
	text[0] = (char)data[2];
	if (out->type == FIELD_TEXT)
		out->v.text = data[1] & 128 ? text : ONE_OF(texts, data[1] / 4);
	else if (out->type == FIELD_DOUBLE)
		out->v.d = (double)data[2] / 2.0;
	else
		out->v.i = (int8_t)data[2];
}

static void feed(struct trigger *t, const uint8_t *data, size_t n)
{
	static struct process process = {.pid = 7, .start_ns = 1};
	static struct thread thread = {.tid = 8, .process = &process};
	char own[FIELDS][2] = {""};
	struct event_field fields[FIELDS];
	struct event e = {.process = &process, .thread = &thread, .fields = fields,
			  .nfields = FIELDS};
	struct trigger_status status;
	struct buf why = {0};
	unsigned i;

	for (; n >= EVENT_BYTES; data += EVENT_BYTES, n -= EVENT_BYTES) {
		e.kind = (enum event_kind)(data[0] % EVENT_KINDS);
		e.time_ns += (uint64_t)data[1] * data[2] * NS_PER_MS;
		e.name = ONE_OF(names, data[3]);
		e.provider = ONE_OF(providers, data[4]);
		e.value = data[5];
		e.flags = data[6] & (EVENT_FLAG_ABSENT | EVENT_FLAG_ID);
		if (e.flags & EVENT_FLAG_ID)
			e.flags |= (uint32_t)data[7] << EVENT_ID_SHIFT;
		for (i = 0; i < FIELDS; i++)
			make_field(data + 8 + 3 * i, own[i], &fields[i]);
		buf_reset(&why);
		if (t->ops->feed(t, &e, &why) && !why.len)
			abort();             /* fired without a reason */
		if (data[7] & 16)
			trigger_fired(t);
		if (t->ops->lasts)
			t->ops->lasts(t, e.time_ns);
		trigger_status(t, &status);
	}
	buf_free(&why);
}

/* Names that a rule waits for, and names of its parts. */
static void look(const struct trigger *t)
{
	const struct trigger *part;
	struct trigger_wish wish;
	unsigned i;

	for (i = 0; t->ops->part && (part = t->ops->part(t, i)) != NULL; i++)
		look(part);
	for (i = 0; t->ops->wish && t->ops->wish(t, i, &wish); i++)
		if (i > 100 || wish.nfields > TRIGGER_WISH_FIELDS || (wish.event && !wish.provider))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char *const rules[] = {
		"a=StopOnEtwEvent:P/R/Start;TriggerMSec=5;InFlight=true", "b=A:B:C>5",
		"c=StopOnGen2GC",
	};
	struct trigger_env env = {.already_true_fires = true, .rules = rules, .nrules = 3};
	static struct needs needs;
	struct trigger *t = NULL;
	struct buf state = {0};
	size_t kinds = 0, len;
	char path[ACTIVITY_PATH_BYTES], *spec;
	struct err err = {0};

	while (triggers[kinds])
		kinds++;
	if (n < 2)
		return 0;
	env.decay_hours = data[0] & 0x80 ? 1 : 0;
	len = strnlen((const char *)data + 1, n - 1);
	spec = malloc(len + 1);
	if (!spec)
		abort();
	memcpy(spec, data + 1, len);
	spec[len] = '\0';
	activity_path(spec, 7, path);
	memset(&needs, 0, sizeof(needs));
	if (counter_monitor_parse(spec, &needs, &err) ? !*err.text : needs.ncounters != 1)
		abort();
	if (trigger_open(triggers[data[0] % kinds], spec, &env, &t, &err) == 0) {
		memset(&needs, 0, sizeof(needs));
		t->ops->needs(t, &needs, &err);
		look(t);
		if (len + 2 < n)
			feed(t, data + len + 2, n - len - 2);
		if (trigger_save(t, &state) || state.len > TRIGGER_STATE_MAX)
			abort();
		trigger_load(t, data, n, 0, &err);
		buf_free(&state);
		trigger_close(t);
	} else if (!*err.text) {
		abort();
	}
	free(spec);
	return 0;
}
