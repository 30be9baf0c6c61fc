#include "triggers/event_match_private.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool parse_guid(const char *text, uint32_t out[4])
{
	unsigned char bytes[16];
	/* Where each byte stands in the text: the first three groups are little-endian. */
	static const uint8_t at[16] = {6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34};
	char two[3] = "";
	unsigned i;
	size_t len;

	text = guid_without_braces(text, &len);
	if (len != 36)
		return false;
	for (i = 0; i < 16; i++) {
		memcpy(two, text + at[i], 2);
		if (!isxdigit((unsigned char)two[0]) || !isxdigit((unsigned char)two[1]))
			return false;
		bytes[i] = (unsigned char)strtoul(two, NULL, 16);
	}
	memcpy(out, bytes, sizeof(bytes));
	return true;
}

/*
 * Activity ids of EventSource are paths with a check sum: the last 32 bits are the sum of the
 * others and 0x599D99AD, xor the pid; on old runtimes the last four bits are free. Source: .NET
 * runtime, ActivityTracker.cs, CreateActivityPathGuid (MIT).
 */
static bool is_activity_path(const char *text, uint32_t pid)
{
	uint32_t w[4], sum;

	if (!parse_guid(text, w))
		return false;
	sum = w[0] + w[1] + w[2] + 0x599D99AD;
	return (sum ^ pid) == w[3] || (sum & 0xFFFFFFF0) == (w[3] & 0xFFFFFFF0);
}

static const char *activity_of(const struct event *e)
{
	const struct event_field *f = event_field(e, "ActivityID");

	return f && f->type == FIELD_TEXT && f->v.text && *f->v.text ? f->v.text : NULL;
}

static void key_field(struct pair_key *key, const struct event_field *f)
{
	switch (f->type) {
	case FIELD_INT:
		pair_key_u64(key, (uint64_t)f->v.i);
		break;
	case FIELD_UINT:
		pair_key_u64(key, f->v.u);
		break;
	case FIELD_DOUBLE:
		pair_key_bytes(key, &f->v.d, sizeof(f->v.d));
		break;
	case FIELD_TEXT:
		pair_key_bytes(key, f->v.text ? f->v.text : "", f->v.text ? strlen(f->v.text) : 0);
		break;
	}
}

/* The first field of the payload; the event's header carries activity ids too. */
static const struct event_field *first_field(const struct event *e)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++)
		if (!text_same_fold(e->fields[i].name, "ActivityID") &&
		    !text_same_fold(e->fields[i].name, "RelatedActivityID"))
			return &e->fields[i];
	return NULL;
}

static void key_thread(struct pair_key *key, const struct event *e)
{
	pair_key_u64(key, e->thread ? e->thread->tid : 0);
}

static void key_derived(struct pair_key *key, const struct event *e)
{
	const char *activity = activity_of(e);
	const struct event_field *first = first_field(e);

	if (activity && (!first || is_activity_path(activity, e->process ? e->process->pid : 0)))
		pair_key_bytes(key, activity, strlen(activity));
	else if (first)
		key_field(key, first);
	else
		key_thread(key, e);
}

void event_match_key(struct event_match *m, const struct event *e, struct pair_key *key)
{
	const struct event_field *f;
	const char *activity;

	pair_key_begin(key, e->process);
	switch (m->context) {
	case CONTEXT_DERIVED:
		key_derived(key, e);
		break;
	case CONTEXT_THREAD:
		key_thread(key, e);
		break;
	case CONTEXT_ACTIVITY:
		activity = activity_of(e);
		if (activity)
			pair_key_bytes(key, activity, strlen(activity));
		else
			m->without_field++;
		break;
	case CONTEXT_FIELD:
		f = event_field(e, m->field);
		if (f)
			key_field(key, f);
		else
			m->without_field++;
		break;
	}
}
