/*
 * The source of live ETW events: one session of our own, read by ProcessTrace() on the source's
 * thread.
 *
 * This file is only the transport; etw/live.c interprets the records. A second thread reads the
 * session's losses and the CPUs' busy times once a second, changes the sampling interval on
 * request, and lets time pass while no record comes. stop() stops the session; then
 * ProcessTrace() delivers the rest of its buffers and returns. If it does not, its handle is
 * closed.
 */
#include "source/source.h"

#include "base/os.h"
#include "base/os_windows.h"
#include "base/text.h"
#include "source/host/busy.h"
#include "source/host/running.h"
#include "source/etw/list.h"
#include "source/etw/known.h"
#include "source/etw/live.h"
#include "source/etw/session_windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tdh.h>

#define WATCH_NS (100 * NS_PER_MS)
/* Without records for QUIET_NS, time passes. A reader may starve for a second without losses. */
#define QUIET_NS (2 * NS_PER_SEC)
#define QUIET_BEHIND_NS (3 * NS_PER_SEC / 2)
#define CLOSE_NS (3 * NS_PER_SEC)            /* for ProcessTrace() to end by itself */
#define SCHEMA_MAX_BYTES 65536u
#define BEHIND_NS (2500 * NS_PER_MS)         /* buffers fill, flush, and wait for stacks */

typedef ULONG __stdcall event_information(PEVENT_RECORD, ULONG, PTDH_CONTEXT, PTRACE_EVENT_INFO,
					  ULONG *);

struct etw {
	struct source base;
	struct source_config cfg;
	struct etw_wanted wanted;
	struct etw_live *live;
	struct etw_session *session;
	TRACEHANDLE consumer;
	struct etw_session *heap;            /* of --heap-process, --heap-next; NULL = none */
	TRACEHANDLE heap_consumer;
	struct os_thread *heap_thread;
	HMODULE tdh;
	event_information *information;
	uint8_t *schema;                     /* SCHEMA_MAX_BYTES */
	uint64_t frequency_hz;

	_Atomic uint64_t last_record_ns;     /* when one came, by the recorder's clock */
	_Atomic bool stopping, ended;
	struct os_thread *watch;
	struct etw_losses reported;          /* by the watch thread, and after its end */
	struct busy *busy;                   /* of the watch thread; NULL = unknown */
	int64_t busy_ticks;                  /* when it was read */
	_Atomic unsigned wanted_hz;          /* a requested rate; 0 = none */
	_Atomic uint64_t buffers_lost;
};

static struct etw *etw_of(struct source *s)
{
	return (struct etw *)s;
}

static int64_t ticks_now(void)
{
	LARGE_INTEGER now;

	QueryPerformanceCounter(&now);
	return now.QuadPart;
}

/* ---- before a session ------------------------------------------------------------------------ */

/* Read what would be wanted, and look whether that is possible. */
static int try_wanted(const struct capture *capture, const struct needs *needs,
		int (*is_possible)(struct etw_wanted *wanted, struct err *err), struct err *err)
{
	struct etw_wanted *wanted = malloc(sizeof(*wanted));
	int rc;

	if (!wanted)
		return err_memory(err, "while checking providers");
	rc = etw_wanted_read(capture, needs, wanted, err);
	if (!rc)
		rc = is_possible(wanted, err);
	free(wanted);
	return rc;
}

static int check(const struct needs *needs, struct err *err)
{
	static const struct capture none;
	int rc = try_wanted(&none, needs, etw_session_identify, err);

	return rc ? rc : etw_known_check(needs, err);
}

static int probe(const struct source_config *cfg, struct err *err)
{
	static const struct needs none;

	return try_wanted(&cfg->capture, &none, etw_session_probe, err);
}

/* ---- records --------------------------------------------------------------------------------- */

static void ask_schema(struct etw *s, EVENT_RECORD *event)
{
	ULONG n = SCHEMA_MAX_BYTES;

	if (s->information && !s->information(event, 0, NULL, (TRACE_EVENT_INFO *)s->schema, &n) &&
	    n <= SCHEMA_MAX_BYTES)
		etw_live_schema(s->live, s->schema, n);
}

static void WINAPI on_record(EVENT_RECORD *event)
{
	struct etw *s = event->UserContext;
	struct etw_record record;

	atomic_store_explicit(&s->last_record_ns, os_now_ns(), memory_order_relaxed);
	etw_record_of(event, &record);
	if (etw_live_wants_schema(s->live, &record))
		ask_schema(s, event);
	etw_live_put(s->live, &record);
}

static void WINAPI on_heap_record(EVENT_RECORD *event)
{
	struct etw *s = event->UserContext;
	struct etw_record record;

	atomic_store_explicit(&s->last_record_ns, os_now_ns(), memory_order_relaxed);
	etw_record_of(event, &record);
	etw_live_put_heap(s->live, &record);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void report_losses(struct etw *s)
{
	struct etw_losses now, heap;
	uint64_t buffers;

	if (!etw_session_losses(s->session, &now))
		return;
	if (s->heap && etw_session_losses(s->heap, &heap)) {
		now.events += heap.events;
		now.buffers += heap.buffers;
	}
	buffers = now.buffers - s->reported.buffers;
	if (buffers)
		log_line(s->cfg.log, LOG_WARN, "ETW lost %" PRIu64
			 " buffers with an unknown number of events; each counts as one lost event",
			 buffers);
	etw_live_lost(s->live, now.events - s->reported.events + buffers);
	s->reported = now;
	atomic_store(&s->buffers_lost, now.buffers);
}

/* ---- expected samples, sampling rate --------------------------------------------------------- */

static void put_busy(void *ctx, unsigned cpu, uint64_t busy_ns)
{
	const struct etw *s = ctx;

	etw_live_busy(s->live, s->busy_ticks, cpu, busy_ns);
}

static void report_busy(struct etw *s)
{
	s->busy_ticks = ticks_now();
	if (s->busy)
		busy_read(s->busy, put_busy, s);
}

/* Up to now, samples are expected at the old rate: report busy times first. */
static void change_level(struct etw *s)
{
	unsigned hz = atomic_exchange(&s->wanted_hz, 0);
	uint32_t interval_100ns, asked;
	struct err err;

	if (!hz)
		return;
	asked = interval_100ns = 10000000u / hz;
	report_busy(s);
	if (etw_session_interval(s->session, &interval_100ns, &err)) {
		log_line(s->cfg.log, LOG_WARN, "the sampling rate stays as it is: %s", err.text);
		return;
	}
	etw_live_level(s->live, ticks_now(), interval_100ns);
	if (interval_100ns < asked - asked / 10)
		log_line(s->cfg.log, LOG_INFO,
			 "samples are taken at %.0f Hz: another recorder needs that rate, and "
			 "Windows has one rate for all", 1e7 / interval_100ns);
}

static void set_level(struct source *source, const struct source_level *level)
{
	atomic_store(&etw_of(source)->wanted_hz, level->freq_hz);
}

static void watch_main(void *ctx)
{
	struct etw *s = ctx;
	uint64_t stop_ns = 0, now, next_ns = 0;
	bool closed = false;

	while (!atomic_load(&s->ended)) {
		os_sleep_ns(WATCH_NS);
		now = os_now_ns();
		if (now >= next_ns) {
			report_losses(s);
			report_busy(s);
			etw_live_trim(s->live);
			next_ns = now + NS_PER_SEC;
		}
		change_level(s);
		if (now - atomic_load_explicit(&s->last_record_ns, memory_order_relaxed) > QUIET_NS)
			etw_live_time(s->live,
				      ticks_now() - (int64_t)(s->frequency_hz * QUIET_BEHIND_NS /
							      NS_PER_SEC));
		if (atomic_load(&s->stopping) && !stop_ns)
			stop_ns = now;
		if (stop_ns && !closed && now - stop_ns > CLOSE_NS) {
			closed = true;
			CloseTrace(s->consumer);
			if (s->heap)
				CloseTrace(s->heap_consumer);
		}
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Append a path and its last separator; 0, or the failure of the buffer. */
static int put_folder(struct buf *out, const wchar_t *path)
{
	wide_put(out, path);
	buf_putc(out, '\\');
	return out->failed;
}

static void add_volumes(struct etw *s)
{
	wchar_t drive[3] = L"A:", device[MAX_PATH], windows[MAX_PATH];
	struct buf nt = {0}, dos = {0};

	for (; drive[0] <= L'Z'; drive[0]++) {
		if (!QueryDosDeviceW(drive, device, MAX_PATH))
			continue;
		buf_reset(&nt);
		buf_reset(&dos);
		if (!put_folder(&nt, device) && !put_folder(&dos, drive))
			etw_live_volume(s->live, buf_text(&nt), buf_text(&dos));
	}
	buf_reset(&dos);
	if (GetWindowsDirectoryW(windows, MAX_PATH) && !put_folder(&dos, windows))
		etw_live_volume(s->live, "\\SystemRoot\\", buf_text(&dos));
	buf_free(&nt);
	buf_free(&dos);
}

static void close_source(struct source *source)
{
	struct etw *s = etw_of(source);

	if (!s)
		return;
	etw_session_free(s->session);
	etw_session_free(s->heap);
	etw_live_close(s->live);
	busy_close(s->busy);
	free(s->schema);
	if (s->tdh)
		FreeLibrary(s->tdh);
	free(s);
}

static void load_tdh(struct etw *s)
{
	FARPROC information;

	s->tdh = etw_library();
	information = s->tdh ? GetProcAddress(s->tdh, "TdhGetEventInformation") : NULL;
	memcpy(&s->information, &information, sizeof(s->information));
}

/* ---- heaps ----------------------------------------------------------------------------------- */

struct namesake {
	const char *name;
	uint32_t pid, n;
};

static void note_namesake(void *ctx, uint32_t pid, const struct process_names *names)
{
	struct namesake *found = ctx;

	if (strlen(names->file) != process_name_length(found->name) ||
	    !text_starts_fold(found->name, names->file))
		return;
	found->pid = pid;
	found->n++;
}

/* The process of --heap-process; 0 = none is given. */
static int find_heap_process(const char *name, uint32_t *pid, struct err *err)
{
	struct namesake found = {.name = name};
	char *end = NULL;

	*pid = name ? (uint32_t)strtoul(name, &end, 10) : 0;
	if (!name || (*pid && !*end))
		return 0;
	running_each(note_namesake, &found);
	*pid = found.pid;
	if (found.n == 1)
		return 0;
	return err_set(err, found.n ? ERR_USAGE : ERR_NOT_FOUND, found.n
		       ? "--heap-process: %" PRIu32 " processes are named %s; give the number of "
			 "one" : "--heap-process: none of %" PRIu32 " processes is named %s; "
			 "--heap-next waits for one that starts", found.n, name);
}

static int start_heap(struct etw *s, struct err *err)
{
	const struct capture *c = &s->cfg.capture;
	uint32_t pid;
	int rc = find_heap_process(c->heap_process, &pid, err);

	if (rc || (!c->heap_process && !c->heap_next))
		return rc;
	rc = etw_live_heap(s->live, err);
	return rc ? rc : etw_session_start_heap(pid, &s->heap, err);
}

static void heap_main(void *ctx)
{
	struct etw *s = ctx;

	os_thread_priority(OS_PRIORITY_HIGH);
	ProcessTrace(&s->heap_consumer, 1, NULL, NULL);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void clear_leftovers(struct log *log)
{
	uint32_t n = 0;

	if (!etw_sessions_clear(&n, NULL) && n)
		log_line(log, LOG_INFO,
			 "stopped %" PRIu32 " ETW sessions left by a killed recorder", n);
}

static int open_source(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	uint32_t interval_100ns = 10000000u / (cfg->capture.freq_hz ? cfg->capture.freq_hz : 1);
	struct etw *s = calloc(1, sizeof(*s));
	LARGE_INTEGER frequency;
	int rc = 0;

	QueryPerformanceFrequency(&frequency);
	if (s)
		s->schema = malloc(SCHEMA_MAX_BYTES);
	if (!s || !s->schema)
		rc = err_memory(err, "for the ETW session");
	if (!rc) {
		s->base.ops = &etw_source;
		s->cfg = *cfg;
		s->frequency_hz = (uint64_t)frequency.QuadPart;
		rc = etw_wanted_read(&cfg->capture, needs, &s->wanted, err);
	}
	if (!rc)
		rc = etw_session_probe(&s->wanted, err);
	if (!rc)
		rc = etw_session_identify(&s->wanted, err);
	if (!rc)
		rc = etw_session_counters(cfg->capture.cpu_counters, &s->wanted, err);
	if (!rc)
		rc = etw_live_open(cfg, s->frequency_hz, &s->live, err);
	if (!rc && s->wanted.kernel_flags & ETW_FLAG_PROFILE && !cfg->capture.only_process)
		s->busy = busy_open();       /* unknown for a single process */
	if (!rc) {
		etw_live_needs(s->live, needs);
		etw_live_counters(s->live, &s->wanted.counters);
		if (etw_wanted_objects(&s->wanted))
			etw_live_objects(s->live);
		add_volumes(s);
		load_tdh(s);
		clear_leftovers(cfg->log);
		rc = etw_session_start(&s->wanted, cfg->log, &interval_100ns, &s->session, err);
	}
	if (!rc)
		rc = start_heap(s, err);
	if (rc) {
		close_source(s ? &s->base : NULL);
		return rc;
	}
	etw_live_interval(s->live, interval_100ns);
	*out = &s->base;
	return 0;
}

static int open_consumer(struct etw *s, const struct etw_session *session, TRACEHANDLE *out,
			 struct err *err)
{
	EVENT_TRACE_LOGFILEW file = {0};

	file.LoggerName = (wchar_t *)etw_session_name(session);
	file.ProcessTraceMode = PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD |
				PROCESS_TRACE_MODE_RAW_TIMESTAMP;
	file.EventRecordCallback = session == s->heap ? on_heap_record : on_record;
	file.Context = s;
	*out = OpenTraceW(&file);
	return *out == INVALID_PROCESSTRACE_HANDLE ? err_os(err, "cannot read the ETW session") : 0;
}

static int process(struct etw *s, struct err *err)
{
	ULONG error;
	int rc = open_consumer(s, s->session, &s->consumer, err);

	if (!rc && s->heap)
		rc = open_consumer(s, s->heap, &s->heap_consumer, err);
	if (!rc && s->heap)
		rc = os_thread_start("etw-heap", heap_main, s, &s->heap_thread, err);
	if (rc)
		return rc;
	atomic_store(&s->last_record_ns, os_now_ns());
	atomic_store(&s->ended, false);
	if (os_thread_start("etw-watch", watch_main, s, &s->watch, err)) {
		CloseTrace(s->consumer);
		return ERR_MEMORY;
	}
	error = ProcessTrace(&s->consumer, 1, NULL, NULL);
	etw_session_stop(s->heap);
	if (s->heap_thread)
		os_thread_join(s->heap_thread);
	atomic_store(&s->ended, true);
	os_thread_join(s->watch);
	CloseTrace(s->consumer);
	if (s->heap)
		CloseTrace(s->heap_consumer);
	if (error && error != ERROR_CANCELLED && !atomic_load(&s->stopping))
		return err_os_code(err, (int)error, "reading the ETW session ended");
	if (!atomic_load(&s->stopping))
		return err_set(err, ERR_IO, "another program stopped the ETW session %ls",
			       etw_session_name(s->session));
	return 0;
}

static int run(struct source *source, struct err *err)
{
	struct etw *s = etw_of(source);
	int rc;

	os_thread_priority(OS_PRIORITY_HIGH);
	rc = process(s, err);
	etw_session_stop(s->session);
	report_losses(s);
	etw_live_end(s->live);
	return rc;
}

static void stop(struct source *source)
{
	struct etw *s = etw_of(source);

	atomic_store(&s->stopping, true);
	etw_session_stop(s->session);
	etw_session_stop(s->heap);
}

static void status(struct source *source, struct source_status *out)
{
	struct etw *s = etw_of(source);
	struct etw_live_counts n;
	uint64_t buffers = atomic_load(&s->buffers_lost);

	memset(out, 0, sizeof(*out));
	etw_live_counts(s->live, &n);
	out->events = n.delivered;
	out->lost = n.lost;
	out->rate_hz = n.interval_100ns ? 1e7 / n.interval_100ns : 0;
	if (buffers)
		snprintf(out->note, sizeof(out->note), "%" PRIu64
			 " buffers were lost, with an unknown number of events", buffers);
	else if (n.no_user)
		snprintf(out->note, sizeof(out->note), "%" PRIu64
			 " stacks lack their user part: it did not come within %u ms", n.no_user,
			 ETW_STACKS_WAIT_MS);
}

static bool name_frame(struct source *source, const struct frame *frame, struct symbol *out)
{
	return etw_live_name(etw_of(source)->live, frame, out);
}

static int list_events(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct etw_pmcs none;
	struct buf counters = {0};
	int rc;

	etw_session_list_counters(pattern, json, &counters);
	rc = buf_check(&counters, "the list of counters", err);
	if (!rc)
		out_put(out, counters.data, counters.len);
	if (!rc && etw_list_events(pattern, json, out, err) && !counters.len)
		rc = pattern && strstr(pattern, CPU_COUNTER_PROVIDER)
			     ? etw_pmcs_read("", NULL, 0, &none, err) : ERR_NOT_FOUND;
	buf_free(&counters);
	return rc;
}

const struct source_ops etw_source = {
	.name = "etw",
	.summary = "CPU samples, processes, .NET and other providers' events, by ETW",
	.events = true,
	.endings = true,
	.stacks = true,
	.behind_ns = BEHIND_NS,
	.check = check,
	.list_events = list_events,
	.probe = probe,
	.open = open_source,
	.clear = etw_sessions_clear,
	.run = run,
	.stop = stop,
	.set_level = set_level,
	.status = status,
	.name_frame = name_frame,
	.close = close_source,
};
