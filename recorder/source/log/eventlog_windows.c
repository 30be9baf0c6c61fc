/*
 * The source of the Windows event log: subscribes to the channels that rules name. New events
 * become EVENT_LOG with the fields Log (as in the rule), Message, Type, EventId, Source, Pid,
 * Level.
 *
 * Type is the one of the event viewer's classic list: Error, Warning, Information, SuccessAudit,
 * FailureAudit. The message is the provider's text in this machine's language; if the provider is
 * not installed, the event's own strings, separated by blanks. The time of an event is when it was
 * read.
 *
 * Source: docs, "Windows Event Log" (EvtSubscribe, EvtRender, EvtFormatMessage).
 */
#include "source/source.h"

#include "base/array.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <winevt.h>

#define WAIT_NS (100 * NS_PER_MS)
#define BATCH 32u
#define BATCHES_AT_ONCE 64                   /* of one log, then the others' turn */
#define PUBLISHERS 16u                       /* open metadata; the oldest is closed first */
#define VALUES_MAX_BYTES 65536u
#define AUDIT_FAILURE 0x0010000000000000u    /* keywords, winmeta.h */
#define AUDIT_SUCCESS 0x0020000000000000u

struct publisher {
	wchar_t name[256];
	EVT_HANDLE metadata;                 /* NULL = not installed */
	uint64_t used;
};

struct channel {
	const char *name;                    /* as in the rule */
	EVT_HANDLE subscription;
	HANDLE signal;
	uint64_t refused;                    /* failed reads; logged once */
};

struct eventlog {
	struct source base;
	struct queue *queue;
	struct log *log;
	struct need_log logs[NEEDS_MAX_LOGS];
	struct channel channels[NEEDS_MAX_LOGS];
	uint32_t nchannels;
	HANDLE wake;
	EVT_HANDLE system_context, user_context;
	struct publisher publishers[PUBLISHERS];
	uint64_t clock;
	EVT_VARIANT *values;                 /* VALUES_MAX_BYTES */
	atomic_bool stopping;
	atomic_uint_fast64_t events;
};

extern const struct source_ops eventlog_source;

static struct eventlog *eventlog_of(struct source *s)
{
	return (struct eventlog *)s;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int check(const struct needs *needs, struct err *err)
{
	uint32_t i;

	for (i = 0; i < needs->nlogs; i++) {
		const char *name = needs->logs[i].name;

		if (text_same_fold(name, "kernel") || text_same_fold(name, "journal") ||
		    strpbrk(name, ":\\") || name[0] == '/')
			return err_set(err, ERR_USAGE,
				       "the log '%s': on Windows a log is a channel of the event "
				       "log, like Application or System; 'wevtutil el' lists them",
				       name);
	}
	return 0;
}

static int subscribe(struct channel *c, struct err *err)
{
	wchar_t *name = wide_text(c->name);
	DWORD error;

	c->signal = CreateEventW(NULL, FALSE, FALSE, NULL);
	if (name && c->signal)
		c->subscription = EvtSubscribe(NULL, c->signal, name, L"*", NULL, NULL, NULL,
					       EvtSubscribeToFutureEvents);
	wide_free(name);
	if (c->subscription)
		return 0;
	error = GetLastError();
	if (error == ERROR_EVT_CHANNEL_NOT_FOUND)
		return err_set(err, ERR_USAGE, "unknown log '%s'; 'wevtutil el' lists all",
			       c->name);
	if (error == ERROR_ACCESS_DENIED)
		return err_set(err, ERR_ACCESS,
			       "this user may not read the log '%s'; run the recorder as "
			       "administrator", c->name);
	return err_os_code(err, (int)error, "cannot read the log '%s'", c->name);
}

static void close_source(struct source *source)
{
	struct eventlog *s = eventlog_of(source);
	uint32_t i;

	if (!s)
		return;
	for (i = 0; i < s->nchannels; i++) {
		if (s->channels[i].subscription)
			EvtClose(s->channels[i].subscription);
		if (s->channels[i].signal)
			CloseHandle(s->channels[i].signal);
	}
	for (i = 0; i < PUBLISHERS; i++)
		if (s->publishers[i].metadata)
			EvtClose(s->publishers[i].metadata);
	if (s->system_context)
		EvtClose(s->system_context);
	if (s->user_context)
		EvtClose(s->user_context);
	if (s->wake)
		CloseHandle(s->wake);
	free(s->values);
	free(s);
}

/* Without rules on logs, no function of the event log is called. */
static int open_logs(struct eventlog *s, const struct needs *needs, struct err *err)
{
	uint32_t i;
	int rc = 0;

	s->system_context = EvtCreateRenderContext(0, NULL, EvtRenderContextSystem);
	s->user_context = EvtCreateRenderContext(0, NULL, EvtRenderContextUser);
	if (!s->system_context || !s->user_context)
		return err_os(err, "cannot read the event log");
	for (i = 0; !rc && i < needs->nlogs; i++) {
		s->logs[i] = needs->logs[i];
		s->channels[i].name = s->logs[i].name;
		s->nchannels++;
		rc = subscribe(&s->channels[i], err);
	}
	return rc;
}

static int open_source(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	struct eventlog *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (s) {
		s->base.ops = &eventlog_source;
		s->queue = cfg->queue;
		s->log = cfg->log;
		s->wake = CreateEventW(NULL, TRUE, FALSE, NULL);
		s->values = malloc(VALUES_MAX_BYTES);
	}
	if (!s || !s->wake || !s->values)
		rc = err_memory(err, "for the source of log events");
	if (!rc && needs->nlogs)
		rc = open_logs(s, needs, err);
	if (rc) {
		close_source(s ? &s->base : NULL);
		return rc;
	}
	*out = &s->base;
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

static EVT_HANDLE metadata_of(struct eventlog *s, const wchar_t *name)
{
	struct publisher *p, *oldest = &s->publishers[0];

	for (p = s->publishers; p < s->publishers + PUBLISHERS; p++) {
		if (p->used && !wcscmp(p->name, name)) {
			p->used = ++s->clock;
			return p->metadata;
		}
		if (p->used < oldest->used)
			oldest = p;
	}
	if (wcslen(name) >= COUNT_OF(p->name))
		return NULL;
	if (oldest->metadata)
		EvtClose(oldest->metadata);
	wcscpy(oldest->name, name);
	oldest->used = ++s->clock;
	oldest->metadata = EvtOpenPublisherMetadata(NULL, name, NULL, 0, 0);
	return oldest->metadata;
}

static const EVT_VARIANT *render(struct eventlog *s, EVT_HANDLE context, EVT_HANDLE event, DWORD *n)
{
	DWORD used = 0;

	*n = 0;
	if (!EvtRender(context, event, EvtRenderEventValues, VALUES_MAX_BYTES, s->values, &used, n))
		return NULL;
	return s->values;
}

static void put_formatted(struct eventlog *s, const wchar_t *provider, EVT_HANDLE event,
			  struct buf *out)
{
	EVT_HANDLE metadata = metadata_of(s, provider);
	wchar_t text[EVENT_MAX_TEXT];
	DWORD used = 0;

	text[0] = L'\0';
	/* A text that is too long is cut, and reported by this error. */
	if (metadata && (EvtFormatMessage(metadata, event, 0, 0, NULL, EvtFormatMessageEvent,
					  EVENT_MAX_TEXT, text, &used) ||
			 GetLastError() == ERROR_INSUFFICIENT_BUFFER)) {
		text[EVENT_MAX_TEXT - 1] = L'\0';
		wide_put(out, text);
	}
}

static void put_strings(struct eventlog *s, EVT_HANDLE event, struct buf *out)
{
	const EVT_VARIANT *values;
	DWORD i, n;

	values = render(s, s->user_context, event, &n);
	for (i = 0; values && i < n; i++) {
		if (values[i].Type != EvtVarTypeString || !values[i].StringVal)
			continue;
		if (out->len)
			buf_putc(out, ' ');
		wide_put(out, values[i].StringVal);
	}
}

static const char *type_of(uint64_t level, uint64_t keywords)
{
	if (keywords & AUDIT_FAILURE)
		return "FailureAudit";
	if (keywords & AUDIT_SUCCESS)
		return "SuccessAudit";
	return level == 1 || level == 2 ? "Error" : level == 3 ? "Warning" : "Information";
}

static uint64_t number_of(const EVT_VARIANT *v)
{
	switch (v->Type) {
	case EvtVarTypeByte:
		return v->ByteVal;
	case EvtVarTypeUInt16:
		return v->UInt16Val;
	case EvtVarTypeUInt32:
	case EvtVarTypeHexInt32:
		return v->UInt32Val;
	case EvtVarTypeUInt64:
	case EvtVarTypeHexInt64:
		return v->UInt64Val;
	default:
		return 0;
	}
}

static void put_event(struct eventlog *s, struct channel *c, EVT_HANDLE handle)
{
	DWORD n;
	const EVT_VARIANT *v = render(s, s->system_context, handle, &n);
	struct buf message = {0}, provider = {0};
	uint64_t level, id, pid, keywords;
	wchar_t name[256] = L"";

	if (!v || n < EvtSystemPropertyIdEND) {
		c->refused++;
		return;
	}
	level = number_of(&v[EvtSystemLevel]);
	id = number_of(&v[EvtSystemEventID]);
	pid = number_of(&v[EvtSystemProcessID]);
	keywords = number_of(&v[EvtSystemKeywords]);
	if (v[EvtSystemProviderName].Type == EvtVarTypeString && v[EvtSystemProviderName].StringVal)
		wcsncpy(name, v[EvtSystemProviderName].StringVal, 255);
	wide_put(&provider, name);
	put_formatted(s, name, handle, &message);    /* overwrites v */
	if (!message.len)
		put_strings(s, handle, &message);
	struct event_field fields[] = {
		{.name = "Log", .type = FIELD_TEXT, .v.text = c->name},
		{.name = "Message", .type = FIELD_TEXT, .v.text = buf_text(&message)},
		{.name = "Type", .type = FIELD_TEXT, .v.text = type_of(level, keywords)},
		{.name = "EventId", .type = FIELD_UINT, .v.u = id},
		{.name = "Source", .type = FIELD_TEXT, .v.text = buf_text(&provider)},
		{.name = "Pid", .type = FIELD_UINT, .v.u = pid},
		{.name = "Level", .type = FIELD_UINT, .v.u = level},
	};
	struct event e = {
		.time_ns = os_now_ns(), .kind = EVENT_LOG, .cpu = CPU_NONE, .stream = STREAM_EVENT,
		.stack = STACK_NONE, .name = c->name, .fields = fields, .nfields = COUNT_OF(fields),
	};
	if (queue_put(s->queue, &e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
	buf_free(&message);
	buf_free(&provider);
}

/* ---- running --------------------------------------------------------------------------------- */

static void read_channel(struct eventlog *s, struct channel *c)
{
	uint64_t refused = c->refused;
	EVT_HANDLE events[BATCH];
	DWORD i, n = 0;
	int batches;

	for (batches = 0; EvtNext(c->subscription, BATCH, events, 0, 0, &n); batches++) {
		for (i = 0; i < n; i++) {
			put_event(s, c, events[i]);
			EvtClose(events[i]);
		}
		if (batches == BATCHES_AT_ONCE || atomic_load(&s->stopping)) {
			SetEvent(c->signal);         /* there may be more: come again */
			break;
		}
	}
	if (c->refused && !refused)
		log_line(s->log, LOG_WARN,
			 "an event of the log '%s' could not be read; further ones are only "
			 "counted",
			 c->name);
}

static int run(struct source *source, struct err *err)
{
	struct eventlog *s = eventlog_of(source);
	HANDLE waited[NEEDS_MAX_LOGS + 1] = {s->wake};
	uint32_t i;
	DWORD which;

	(void)err;
	for (i = 0; i < s->nchannels; i++)
		waited[i + 1] = s->channels[i].signal;
	while (!atomic_load(&s->stopping)) {
		which = WaitForMultipleObjects(s->nchannels + 1, waited, FALSE, wait_ms(WAIT_NS));
		/* The first signalled one would starve those after it: read all. */
		for (i = 0; which > WAIT_OBJECT_0 && which <= WAIT_OBJECT_0 + s->nchannels &&
			    i < s->nchannels; i++)
			read_channel(s, &s->channels[i]);
		queue_watermark(s->queue, os_now_ns());
	}
	return 0;
}

static void stop(struct source *source)
{
	struct eventlog *s = eventlog_of(source);

	atomic_store(&s->stopping, true);
	SetEvent(s->wake);
}

static void status(struct source *source, struct source_status *out)
{
	struct eventlog *s = eventlog_of(source);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
	out->lost = queue_lost(s->queue);
}

const struct source_ops eventlog_source = {
	.name = "eventlog",
	.summary = "new events of the Windows event log",
	.logs = true,
	.check = check,
	.open = open_source,
	.run = run,
	.stop = stop,
	.status = status,
	.close = close_source,
};
