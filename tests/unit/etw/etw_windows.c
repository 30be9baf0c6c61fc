/*
 * The live source of Windows, whole, with a session of this file's own making: the linker takes
 * its control functions for those of the system. A CPU gives a sample every 10 ms until it is
 * stopped.
 */
#include "source/source.h"
#include "tests/support/alone_windows.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include <windows.h>
#include <evntrace.h>
#include <evntcons.h>

static struct {
	EVENT_TRACE_LOGFILEW file;
	volatile LONG stopped, refuses, refused;
	volatile ULONG interval, lost;
} machine;

static ULONG WINAPI start(PTRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p)
{
	(void)name;
	(void)p;
	*handle = 1;
	return 0;
}

static ULONG WINAPI control(TRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p, ULONG code)
{
	(void)handle;
	(void)name;
	p->EventsLost = machine.lost;
	if (code == EVENT_TRACE_CONTROL_STOP)
		machine.stopped = 1;
	return 0;
}

static ULONG WINAPI enable(TRACEHANDLE h, LPCGUID g, ULONG c, UCHAR l, ULONGLONG a, ULONGLONG b,
			   ULONG t, PENABLE_TRACE_PARAMETERS p)
{
	(void)h;
	(void)g;
	(void)c;
	(void)l;
	(void)a;
	(void)b;
	(void)t;
	(void)p;
	return 0;
}

static ULONG WINAPI set(TRACEHANDLE h, TRACE_INFO_CLASS class, PVOID info, ULONG n)
{
	(void)h;
	(void)n;
	if (class == TraceSampledProfileIntervalInfo && machine.refuses) {
		machine.refused++;
		return ERROR_ACCESS_DENIED;
	}
	if (class == TraceSampledProfileIntervalInfo)
		machine.interval = ((const ULONG *)info)[1];
	return 0;
}

static ULONG WINAPI query_all(PEVENT_TRACE_PROPERTIES *all, ULONG max, PULONG n)
{
	(void)all;
	(void)max;
	*n = 0;
	return 0;
}

static TRACEHANDLE WINAPI open_trace(PEVENT_TRACE_LOGFILEW file)
{
	machine.file = *file;
	return 2;
}

static ULONG WINAPI close_trace(TRACEHANDLE handle)
{
	(void)handle;
	return 0;
}

static void give_sample(void)
{
	static const GUID perf = {
		0xce1dbfb4, 0x137e, 0x4da6, {0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc}};
	struct { uint64_t ip; uint32_t tid, count; } payload = {0x7F0000000000, 7, 1};
	EVENT_RECORD e = {.UserData = &payload, .UserDataLength = sizeof(payload),
			  .UserContext = machine.file.Context};

	e.EventHeader.Flags = EVENT_HEADER_FLAG_CLASSIC_HEADER | EVENT_HEADER_FLAG_64_BIT_HEADER;
	e.EventHeader.ProviderId = perf;
	e.EventHeader.EventDescriptor.Opcode = 46;
	e.EventHeader.EventDescriptor.Version = 2;
	e.EventHeader.ProcessId = e.EventHeader.ThreadId = 0xFFFFFFFF;
	QueryPerformanceCounter(&e.EventHeader.TimeStamp);
	machine.file.EventRecordCallback(&e);
}

static ULONG WINAPI process(PTRACEHANDLE handles, ULONG n, LPFILETIME from, LPFILETIME until)
{
	(void)handles;
	(void)n;
	(void)from;
	(void)until;
	while (!machine.stopped) {
		give_sample();
		Sleep(10);
	}
	return 0;
}

#define TAKE(f, name) extern __typeof__(&f) __imp_##name; __typeof__(&f) __imp_##name = f
TAKE(start, StartTraceW);
TAKE(control, ControlTraceW);
TAKE(enable, EnableTraceEx2);
TAKE(set, TraceSetInformation);
TAKE(query_all, QueryAllTracesW);
TAKE(open_trace, OpenTraceW);
TAKE(close_trace, CloseTrace);
TAKE(process, ProcessTrace);

static struct source_config cfg = {.capture = {.freq_hz = 99}};
static struct source *source;
static struct os_thread *thread;

static void run(void *ctx)
{
	*(int *)ctx = source->ops->run(source, NULL);
}

static int rc;

static int begin(void **state)
{
	static const struct needs none;

	(void)state;
	memset(&machine, 0, sizeof(machine));
	assert_int_equal(frames_new(&cfg.frames, NULL), 0);
	assert_int_equal(processes_new(&cfg.processes, NULL), 0);
	cfg.queue = queue_new(QUEUE_BYTES);
	assert_int_equal(log_open("NUL", &cfg.log, NULL), 0);
	assert_int_equal(etw_source.open(&cfg, &none, &source, NULL), 0);
	rc = -1;
	return os_thread_start("etw", run, &rc, &thread, NULL);
}

static int end(void **state)
{
	(void)state;
	source->ops->stop(source);
	os_thread_join(thread);
	source->ops->close(source);
	assert_int_equal(rc, 0);
	/* Wine does not say what it was: the default. */
	assert_int_equal(machine.interval, 10000);
	log_close(cfg.log);
	queue_free(cfg.queue);
	processes_free(cfg.processes);
	frames_free(cfg.frames);
	return 0;
}

/* Wait for the next event of this kind; others are dropped. */
static const struct event *next(enum event_kind kind)
{
	uint64_t until_ns = os_now_ns() + 30 * NS_PER_SEC;
	static struct event kept;
	const struct event *e;

	while (os_now_ns() < until_ns) {
		while ((e = queue_peek(cfg.queue)) != NULL) {
			kept = *e;
			queue_pop(cfg.queue);
			if (kept.kind == kind)
				return &kept;
		}
		os_sleep_ns(10 * NS_PER_MS);
	}
	return NULL;
}

TEST(a_level_changes_the_interval_and_the_weight)
{
	const struct source_level down = {.freq_hz = 19}, up = {.freq_hz = 99};
	const struct event *e = next(EVENT_SAMPLE);

	assert_true(e && e->value == 101010 * 100);
	source->ops->set_level(source, &down);
	e = next(EVENT_RATE);
	assert_true(e && e->value == 526315 * 100);
	assert_int_equal(machine.interval, 526315);
	e = next(EVENT_SAMPLE);
	assert_true(e && e->value == 526315 * 100);
	source->ops->set_level(source, &up);
	e = next(EVENT_RATE);
	assert_true(e && e->value == 101010 * 100);
}

TEST(a_refused_level_changes_nothing)
{
	const struct source_level down = {.freq_hz = 19}, downer = {.freq_hz = 10};
	struct source_status status;
	const struct event *e;

	machine.refuses = 1;
	source->ops->set_level(source, &down);
	while (!machine.refused)
		os_sleep_ns(10 * NS_PER_MS);
	machine.refuses = 0;
	source->ops->set_level(source, &downer);
	e = next(EVENT_RATE);
	assert_true(e && e->value == 1e8);   /* the first that comes is not the refused one */
	source->ops->status(source, &status);
	assert_true(status.rate_hz == 10);
}

TEST(busy_cpus_and_losses_are_told)
{
	const struct event *e;

	machine.lost = 41;
	e = next(EVENT_LOST);
	assert_true(e && e->value == 41);
	e = next(EVENT_EXPECTED);
	assert_true(e && e->cpu < os_cpu_count() && e->value > 0);
}

int main(void)
{
#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		IN_LAB(a_level_changes_the_interval_and_the_weight),
		IN_LAB(a_refused_level_changes_nothing),
		IN_LAB(busy_cpus_and_losses_are_told),
	};

	alone_on_this_machine();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
