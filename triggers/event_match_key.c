#include "triggers/event_match_private.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
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

#define STEP_BYTES 12u                       /* "/4294967295" */
static uint32_t put_step(char *out, uint32_t value)
{
	return (uint32_t)snprintf(out, STEP_BYTES, "/%u", value);
}

bool activity_path(const char *guid, uint32_t pid, char out[ACTIVITY_PATH_BYTES])
{
	uint32_t w[4], at = 0, n = 0, code, more, high, value, i;
	unsigned char bytes[16];

	if (!is_activity_path(guid, pid) || !parse_guid(guid, w))
		return false;
	memcpy(bytes, w, sizeof(bytes));
#define NIBBLE(i) ((uint32_t)bytes[(i) / 2] >> ((i) % 2 ? 0 : 4) & 15u)
	while (at < 24 && n + STEP_BYTES < ACTIVITY_PATH_BYTES && NIBBLE(at)) {
		code = NIBBLE(at);
		at++;
		if (code <= 10) {
			n += put_step(out + n, code);
			continue;
		}
		if (code == 11)
			continue;
		/* The number begins at a byte; before it may be a nibble of highest bits. */
		high = at % 2 ? NIBBLE(at) : 0;
		at += at % 2;
		more = code - 11;
		value = code == 12 ? high << 8 : 0;
		for (i = 0; i < more && at < 24; i++, at += 2)
			value += (uint32_t)bytes[at / 2] << 8 * i;
		n += put_step(out + n, value);
	}
#undef NIBBLE
	out[n] = '\0';
	return n > 0;
}

/* The event's activity, or NULL. */
static const struct event_field *activity_of(const struct event *e)
{
	const struct event_field *f = event_field(e, "ActivityID");

	return f && f->type == FIELD_TEXT && f->v.text && *f->v.text ? f : NULL;
}

static void key_field(struct pair_key *key, const struct event_field *f)
{
	if (f->type == FIELD_TEXT)
		pair_key_bytes(key, f->v.text ? f->v.text : "", f->v.text ? strlen(f->v.text) : 0);
	else
		pair_key_bytes(key, &f->v, sizeof(f->v.u));
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

/* The field that an event and the other end of its pair share by default; NULL = their thread. */
static const struct event_field *derived_field(const struct event *e)
{
	const struct event_field *activity = activity_of(e), *first = first_field(e);
	uint32_t pid = e->process ? e->process->pid : 0;

	return activity && (!first || is_activity_path(activity->v.text, pid)) ? activity : first;
}

bool event_match_key(const struct event_match *m, const struct event *e, struct pair_key *key)
{
	const struct event_field *f = m->context == CONTEXT_DERIVED    ? derived_field(e)
				      : m->context == CONTEXT_ACTIVITY ? activity_of(e)
				      : m->context == CONTEXT_FIELD    ? event_field(e, m->field)
								       : NULL;

	if (!f && m->context == CONTEXT_ACTIVITY)
		return false;
	pair_key_begin(key, e->process);
	if (f)
		key_field(key, f);
	else if (m->context == CONTEXT_DERIVED || m->context == CONTEXT_THREAD)
		pair_key_u64(key, e->thread ? e->thread->tid : 0);
	return true;
}
