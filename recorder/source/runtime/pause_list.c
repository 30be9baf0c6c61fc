#include "source/runtime/pause_list.h"

#include "base/array.h"
#include "base/json.h"
#include "base/text.h"
#include "model/event.h"
#include "source/conditions.h"
#include "source/counter_name.h"

#include <stdio.h>
#include <string.h>

static const char *const providers[PAUSE_PROVIDERS] = {
	[PAUSES_OF_JVM] = "JVM", [PAUSES_OF_CPYTHON] = "CPython", [PAUSES_OF_V8] = "V8",
};

#define FIELDS_MAX 9
#define START_FIELDS "Reason", "Count", "Depth", "Type", "ClrInstanceID", "Collector"

static const char *const probe_fields[] = {"Reason", "Type", "Collector", "Depth", NULL};
static const char *const jvm_start_fields[] = {START_FIELDS, "Pauses", NULL};
static const char *const jvm_stop_fields[] = {START_FIELDS, "PauseMSec", "Pauses", "PauseMinMSec",
					      NULL};
static const char *const jvm_sum_fields[] = {"Depth",  "ClrInstanceID", "Collector",
					     "Pauses", "PauseMSec",	"PauseMinMSec", NULL};

static const char *const jvm_heap_fields[] = {"Count", "Depth", "ClrInstanceID", "Collector",
					      "GenerationSize0", "GenerationSize2", NULL};

/* A JVM seen by probes has the fields of the others. fields NULL: only JVMs have the event. */
static const struct {
	const char *name;
	const char *const *fields, *const *jvm_fields;
} events[] = {
	{"GC/SuspendEEStart", probe_fields, jvm_start_fields},
	{"GC/Start", probe_fields, jvm_start_fields},
	{"GC/Stop", probe_fields, jvm_stop_fields},
	{"GC/RestartEEStop", probe_fields, jvm_stop_fields},
	{"GC/Pauses", NULL, jvm_sum_fields},
	{"GC/HeapStats", NULL, jvm_heap_fields},
};
#define EVENTS COUNT_OF(events)

enum pause_provider pause_provider(const char *name)
{
	unsigned i;

	for (i = 0; i < PAUSE_PROVIDERS && !text_same_fold(name, providers[i]); i++)
		;
	return (enum pause_provider)i;
}

bool pause_wanted(const struct needs *needs, enum pause_provider which)
{
	enum pause_provider one;
	uint32_t i;

	for (i = 0; needs && i < needs->nproviders; i++) {
		one = pause_provider(needs->providers[i].name);
		if (one < PAUSE_PROVIDERS && (which == PAUSE_PROVIDERS || one == which))
			return true;
	}
	return false;
}

/* NULL = it has no such event */
static const char *const *fields_of(enum pause_provider provider, unsigned event)
{
	return provider == PAUSES_OF_JVM ? events[event].jvm_fields : events[event].fields;
}

/* returns  EVENTS when it has no such event */
static unsigned event_of(enum pause_provider provider, const char *name)
{
	unsigned i;

	for (i = 0; i < EVENTS && !event_name_is(name, events[i].name); i++)
		;
	return i < EVENTS && fields_of(provider, i) ? i : EVENTS;
}

static int check_fields(enum pause_provider provider, unsigned event, const struct need_event *e,
			struct err *err)
{
	const char *const *names = fields_of(provider, event);
	struct known_field fields[FIELDS_MAX];
	char name[64];
	uint32_t n;
	int rc;

	for (n = 0; names[n]; n++)
		fields[n] = (struct known_field){names[n], strcmp(names[n], "Collector") != 0};
	snprintf(name, sizeof(name), "%s/%s", providers[provider], events[event].name);
	rc = conditions_check(fields, n, true, name, e->filter, err);
	return rc ? rc : conditions_check_field(fields, n, true, name, e->id_field, err);
}

int pause_check(const struct needs *needs, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->nevents; i++) {
		const struct need_event *e = &needs->events[i];
		enum pause_provider provider = pause_provider(e->provider);
		unsigned event;

		if (provider == PAUSE_PROVIDERS)
			continue;
		event = event_of(provider, e->name);
		if (event == EVENTS)
			return err_set(err, ERR_USAGE,
				       "%s has no event '%.100s'; it has GC/Start, GC/Stop, "
				       "GC/SuspendEEStart, GC/RestartEEStop%s; 'recorder "
				       "events %s' lists them", providers[provider], e->name,
				       provider == PAUSES_OF_JVM ? ", GC/Pauses, GC/HeapStats" : "",
				       providers[provider]);
		rc = check_fields(provider, event, e, err);
	}
	return rc;
}

void event_list_put(const char *provider, const char *name, const char *const *fields, bool json,
		    struct buf *lines)
{
	struct json j = {.out = lines};

	if (!json) {
		buf_printf(lines, "%s/%s ", provider, name);
		for (; *fields; fields++)
			buf_printf(lines, " %s", *fields);
		buf_putc(lines, '\n');
		return;
	}
	json_open(&j, '{');
	json_key_str(&j, "provider", provider);
	json_key_str(&j, "name", name);
	json_key_open(&j, "fields", '[');
	for (; *fields; fields++) {
		json_open(&j, '{');
		json_key_str(&j, "name", *fields);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	buf_putc(lines, '\n');
}

void pause_list(const char *pattern, bool json, struct buf *lines)
{
	unsigned provider, i;
	char name[64];

	for (provider = 0; provider < PAUSE_PROVIDERS; provider++)
		for (i = 0; i < EVENTS; i++) {
			const char *const *fields = fields_of(provider, i);

			snprintf(name, sizeof(name), "%s/%s", providers[provider], events[i].name);
			if (fields && name_matches(pattern, name))
				event_list_put(providers[provider], events[i].name, fields, json,
					       lines);
		}
}
