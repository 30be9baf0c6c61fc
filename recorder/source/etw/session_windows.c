#include "source/etw/session_windows.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "base/text.h"
#include "source/etw/guids.h"
#include "source/etw/interval_windows.h"
#include "source/etw/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define NAME_CHARS 128u
#define BUFFER_KB 64u
#define BUFFERS_MIN 64u                      /* 4 MB */
#define BUFFERS_MAX 512u                     /* 32 MB: seconds of a busy machine */
#define FLUSH_MS 100u
#define SESSIONS_MAX 64u                     /* the limit of Windows */
#define PROFILE_SOURCES_BYTES 65536u         /* a source takes some 60 bytes */
/* PERF_PMC_PROFILE, 0x20000400: of group 1. Source: ntwmi.h as published by System Informer. */
#define PMC_PROFILE_MASK 1
#define PMC_PROFILE_FLAG 0x400u
#define PUBLISHERS L"SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WINEVT\\Publishers"

/* Flags of a session of heaps are a list: its place, behind this mark. */
#define EXTENSION 0x80FF0000u
enum { EXTENSION_PIDS = 2, EXTENSION_STACKS = 3 };
#define HEAP_GROUP 0x1000u                   /* + the event's opcode */
enum { HEAP_ALLOC_OPCODE = 33, HEAP_REALLOC_OPCODE = 34 };

/* With room for the two names that ControlTrace writes. */
struct properties {
	EVENT_TRACE_PROPERTIES p;
	wchar_t name[NAME_CHARS], file[NAME_CHARS];
	uint16_t extension[12];
};

struct etw_session {
	wchar_t name[ETW_OWNER_CHARS];
	TRACEHANDLE handle;
	SRWLOCK lock;                        /* guards what follows */
	bool stopped;
	struct etw_losses losses;
	bool samples;                        /* samples CPUs, with our interval */
	bool heaps;                          /* is of heaps: */
	uint32_t heap_pid;
};

static void properties_init(struct properties *q)
{
	memset(q, 0, sizeof(*q));
	q->p.Wnode.BufferSize = sizeof(*q);
	q->p.LoggerNameOffset = offsetof(struct properties, name);
	q->p.LogFileNameOffset = offsetof(struct properties, file);
}

HMODULE etw_library(void)
{
	return LoadLibraryExW(L"tdh.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
}

/* ---- rights ---------------------------------------------------------------------------------- */

static bool enable_privilege(const wchar_t *name)
{
	TOKEN_PRIVILEGES privileges = {.PrivilegeCount = 1};
	HANDLE token;
	bool ok;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token))
		return false;
	privileges.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
	ok = LookupPrivilegeValueW(NULL, name, &privileges.Privileges[0].Luid) &&
	     AdjustTokenPrivileges(token, FALSE, &privileges, 0, NULL, NULL) &&
	     GetLastError() == ERROR_SUCCESS;
	CloseHandle(token);
	return ok;
}

int etw_session_probe(struct etw_wanted *wanted, struct err *err)
{
	if (!os_is_admin())
		return err_set(err, ERR_ACCESS,
			       "no ETW session: this program is not elevated; start it from a "
			       "command prompt that was opened by 'Run as administrator', or "
			       "install it as a service ('recorder service install')");
	if (wanted->kernel_flags && !enable_privilege(L"SeSystemProfilePrivilege"))
		return err_set(err, ERR_ACCESS,
			       "no samples of CPUs: the right 'Profile system performance' "
			       "(SeSystemProfilePrivilege) is missing; an administrator gives it "
			       "in secpol.msc, Local Policies, User Rights Assignment");
	enable_privilege(L"SeDebugPrivilege");       /* optional: others' symbols */
	return 0;
}

/* ---- names of providers ---------------------------------------------------------------------- */

/* A publisher's name is the default value of its key. */
static bool publisher_name(HKEY root, const wchar_t *key_name, char *out, size_t n)
{
	wchar_t name[PROVIDER_NAME_MAX] = {0};
	DWORD bytes = sizeof(name) - sizeof(*name);

	if (RegGetValueW(root, key_name, NULL, RRF_RT_REG_SZ, NULL, name, &bytes))
		return false;
	return WideCharToMultiByte(CP_UTF8, 0, name, -1, out, (int)n, NULL, NULL) > 0 && *out;
}

static bool look_up_publisher(HKEY root, struct etw_wanted_provider *p, struct buf *nearest)
{
	struct nearest closest = {.wanted = p->name};
	wchar_t key_name[64];
	char (*names)[PROVIDER_NAME_MAX] = NULL, name[PROVIDER_NAME_MAX], guid[64];
	DWORD i, chars, count = 0;

	RegQueryInfoKeyW(root, NULL, NULL, NULL, &count, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	names = calloc(count + 1, sizeof(*names));
	for (i = 0; names && i < count; i++) {
		chars = COUNT_OF(key_name);
		if (RegEnumKeyExW(root, i, key_name, &chars, NULL, NULL, NULL, NULL) ||
		    !publisher_name(root, key_name, name, sizeof(name)))
			continue;
		WideCharToMultiByte(CP_UTF8, 0, key_name, -1, guid, sizeof(guid), NULL, NULL);
		if (text_same_fold(name, p->name) && etw_guid_read(guid, &p->guid)) {
			p->has_guid = true;
			break;
		}
		memcpy(names[i], name, sizeof(name));
		nearest_offer(&closest, names[i]);
	}
	if (!p->has_guid)
		nearest_put(&closest, "'", "'", nearest);
	free(names);
	return p->has_guid;
}

int etw_session_identify(struct etw_wanted *wanted, struct err *err)
{
	struct buf nearest = {0};
	HKEY root = NULL;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < wanted->nproviders; i++) {
		struct etw_wanted_provider *p = &wanted->providers[i];

		if (p->has_guid)
			continue;
		if (!root && RegOpenKeyExW(HKEY_LOCAL_MACHINE, PUBLISHERS, 0, KEY_READ, &root))
			root = NULL;
		if (!root || !look_up_publisher(root, p, &nearest))
			rc = err_set(err, ERR_NOT_FOUND,
				     "no provider '%s' is registered here%s%s; 'logman query "
				     "providers' lists them, *%s means an EventSource of that "
				     "name, and a GUID does as well", p->name,
				     nearest.len ? "; near is " : "", buf_text(&nearest), p->name);
	}
	if (root)
		RegCloseKey(root);
	buf_free(&nearest);
	return rc;
}

/* ---- configuration --------------------------------------------------------------------------- */

static int set_stacks(struct etw_session *s, const struct etw_wanted *wanted, struct err *err)
{
	CLASSIC_EVENT_ID ids[ETW_WANTED_STACKS_MAX];
	uint32_t i;
	ULONG error;

	memset(ids, 0, sizeof(ids));
	for (i = 0; i < wanted->nstacks; i++) {
		memcpy(&ids[i].EventGuid, wanted->stacks[i].guid.bytes, sizeof(ids[i].EventGuid));
		ids[i].Type = wanted->stacks[i].opcode;
	}
	if (!wanted->nstacks)
		return 0;
	error = TraceSetInformation(s->handle, TraceStackTracingInfo, ids,
				    wanted->nstacks * sizeof(ids[0]));
	return error ? err_os_code(err, (int)error, "cannot ask ETW for stacks of kernel events")
		     : 0;
}

/* ---- counters of the processor --------------------------------------------------------------- */

/* The list of this machine, to free(); NULL = there is none, and *n is 0. */
static uint8_t *profile_sources(uint32_t *n)
{
	uint8_t *list = malloc(PROFILE_SOURCES_BYTES);

	*n = 0;
	etw_library();
	if (list && etw_trace_query(0, TraceProfileSourceListInfo, list, PROFILE_SOURCES_BYTES, n))
		*n = 0;
	if (*n > PROFILE_SOURCES_BYTES)
		*n = PROFILE_SOURCES_BYTES;
	return list;
}

int etw_session_counters(const char *text, struct etw_wanted *wanted, struct err *err)
{
	uint8_t *list;
	uint32_t n;
	int rc;

	wanted->counters.n = 0;
	if (!text)
		return 0;
	list = profile_sources(&n);
	rc = etw_pmcs_read(text, list, n, &wanted->counters, err);
	free(list);
	return rc;
}

void etw_session_list_counters(const char *pattern, bool json, struct buf *out)
{
	uint32_t n;
	uint8_t *list = profile_sources(&n);

	etw_pmc_list(pattern, json, list, n, out);
	free(list);
}

/*
 * Periods and the set of counters are settings of the whole machine, which count only while a
 * session has the flag; they are left as they are. The flag is none of EnableFlags.
 */
static int set_counters(struct etw_session *s, const struct etw_wanted *wanted, struct err *err)
{
	ULONG masks[8] = {wanted->kernel_flags}, ids[ETW_PMC_MAX], error = 0;
	uint32_t i, n;

	for (i = 0; !error && i < wanted->counters.n; i++) {
		const struct etw_pmc *c = &wanted->counters.all[i];
		TRACE_PROFILE_INTERVAL interval = {c->id, c->interval};

		ids[i] = c->id;
		error = TraceSetInformation(0, TraceSampledProfileIntervalInfo, &interval,
					    sizeof(interval));
	}
	if (!error && i)
		error = TraceSetInformation(0, TraceProfileSourceConfigInfo, ids,
					    i * sizeof(ids[0]));
	if (!error && i) {
		etw_trace_query(s->handle, TraceSystemTraceEnableFlagsInfo, masks, sizeof(masks),
				&n);
		masks[PMC_PROFILE_MASK] |= PMC_PROFILE_FLAG;
		error = TraceSetInformation(s->handle, TraceSystemTraceEnableFlagsInfo, masks,
					    sizeof(masks));
	}
	return error ? err_os_code(err, (int)error,
				   "--cpu-counters: Windows does not count these (another program "
				   "may use the processor's counters, which are few)")
		     : 0;
}

/* ---- providers ------------------------------------------------------------------------------- */

/* The descriptors have pointers into this struct, so it must outlive EnableTraceEx2(). */
struct filters {
	EVENT_FILTER_DESCRIPTOR all[4];
	struct etw_filter_ids events, with_stacks;
	wchar_t programs[ETW_FILTER_NAMES_BYTES];
	ULONG n;
};

static void add_filter(struct filters *f, ULONG type, const void *data, size_t n)
{
	f->all[f->n++] = (EVENT_FILTER_DESCRIPTOR){
		.Ptr = (ULONGLONG)(uintptr_t)data, .Size = (ULONG)n, .Type = type};
}

static void add_ids(struct filters *f, ULONG type, const struct etw_ids *from,
		    struct etw_filter_ids *to)
{
	if (!from->n)
		return;
	to->only_these = !from->are_left_out;
	to->count = (USHORT)from->n;
	for (uint32_t i = 0; i < from->n; i++)
		to->ids[i] = (USHORT)from->ids[i];
	add_filter(f, type, to,
		   offsetof(struct etw_filter_ids, ids) + from->n * sizeof(to->ids[0]));
}

static void filters_of(const struct etw_wanted_provider *p, struct filters *f)
{
	int chars;

	memset(f, 0, sizeof(*f));
	if (p->npids)
		add_filter(f, ETW_FILTER_PIDS, p->pids, p->npids * sizeof(p->pids[0]));
	chars = p->programs[0] ? MultiByteToWideChar(CP_UTF8, 0, p->programs, -1, f->programs,
						     ETW_FILTER_NAMES_BYTES) : 0;
	if (chars > 0)                       /* with the NUL */
		add_filter(f, ETW_FILTER_PROGRAMS, f->programs, (size_t)chars * sizeof(wchar_t));
	add_ids(f, ETW_FILTER_IDS, &p->events, &f->events);
	add_ids(f, ETW_FILTER_STACKS, &p->with_stacks, &f->with_stacks);
}

static ULONG enable_provider(struct etw_session *s, const struct etw_wanted_provider *p)
{
	ENABLE_TRACE_PARAMETERS parameters = {.Version = 2};
	struct filters filters;
	GUID guid;

	filters_of(p, &filters);
	memcpy(&guid, p->guid.bytes, sizeof(guid));
	parameters.EnableProperty = p->stacks ? EVENT_ENABLE_PROPERTY_STACK_TRACE : 0;
	parameters.EnableFilterDesc = filters.n ? filters.all : NULL;
	parameters.FilterDescCount = filters.n;
	return EnableTraceEx2(s->handle, &guid, EVENT_CONTROL_CODE_ENABLE_PROVIDER, p->level,
			      p->keywords ? p->keywords : UINT64_MAX, 0, 0, &parameters);
}

/*
 * Enabled with StartRundown, the rundown provider reports the methods and modules of all running
 * runtimes. The runtime itself repeats its own start event.
 */
static ULONG enable_rundown(struct etw_session *s)
{
	enum { LOADER = 8, JIT = 0x10, NGEN = 0x20, START_RUNDOWN = 0x40 };
	struct etw_wanted_provider p = {.guid = etw_clr_rundown_guid, .level = 5,
					.keywords = LOADER | JIT | NGEN | START_RUNDOWN};
	ULONG error = enable_provider(s, &p);
	GUID clr;

	memcpy(&clr, etw_clr_guid.bytes, sizeof(clr));
	return error ? error
		     : EnableTraceEx2(s->handle, &clr, EVENT_CONTROL_CODE_CAPTURE_STATE, 5,
				      UINT64_MAX, 0, 0, NULL);
}

static int enable_all(struct etw_session *s, const struct etw_wanted *wanted, struct log *log,
		      struct err *err)
{
	uint32_t i;
	ULONG error = 0;

	for (i = 0; i < wanted->nproviders; i++) {
		error = enable_provider(s, &wanted->providers[i]);
		if (error)
			return err_os_code(err, (int)error, "cannot enable the provider %s",
					   wanted->providers[i].name);
	}
	if (wanted->clr)
		error = enable_rundown(s);
	if (error)
		log_line(log, LOG_WARN,
			 "running .NET programs stay without names: the CLR's rundown is refused "
			 "(error %lu)", error);
	return 0;
}

static void set_interval(struct etw_session *s, uint32_t *interval_100ns, struct log *log)
{
	ULONG error = etw_interval_want(s->name, interval_100ns);

	s->samples = !error;
	if (!error)
		return;
	log_line(log, LOG_WARN,
		 "the sampling rate stays as it is, at most 1000 Hz: Windows refuses to change it "
		 "(error %lu)", error);
	*interval_100ns = 0;
}

/* ---- start ----------------------------------------------------------------------------------- */

static int start_error(ULONG error, const wchar_t *name, struct err *err)
{
	switch (error) {
	case ERROR_ACCESS_DENIED:
		return err_set(err, ERR_ACCESS,
			       "cannot start an ETW session: access is denied; run the recorder as "
			       "administrator");
	case ERROR_NO_SYSTEM_RESOURCES:
		return err_set(err, ERR_LIMIT,
			       "cannot start an ETW session: Windows has no room for another (8 "
			       "with kernel events, 64 in all); 'logman query -ets' lists them, "
			       "'logman stop NAME -ets' ends one");
	case ERROR_ALREADY_EXISTS:
		return err_set(err, ERR_BUSY,
			       "cannot start an ETW session: one named %ls is there and cannot be "
			       "stopped; 'logman stop %ls -ets' ends it", name, name);
	default:
		return err_os_code(err, (int)error, "cannot start an ETW session");
	}
}

static ULONG stop_named(const wchar_t *name)
{
	struct properties q;

	properties_init(&q);
	return ControlTraceW(0, name, &q.p, EVENT_TRACE_CONTROL_STOP);
}

/* In units of 4 bytes: the list's length and how many, of each its length and kind, its numbers. */
static void ask_for_heaps(const struct etw_session *s, struct properties *q)
{
	static const struct etw_guid heap = HEAP_GUID;
	const uint16_t list[COUNT_OF(q->extension)] = {
		6, 2,
		2, EXTENSION_PIDS, (uint16_t)s->heap_pid, (uint16_t)(s->heap_pid >> 16),
		3, EXTENSION_STACKS, HEAP_GROUP | HEAP_ALLOC_OPCODE, 0,
		HEAP_GROUP | HEAP_REALLOC_OPCODE, 0};

	memcpy(q->extension, list, sizeof(list));
	memcpy(&q->p.Wnode.Guid, heap.bytes, sizeof(heap.bytes));
	q->p.EnableFlags = EXTENSION | (uint32_t)offsetof(struct properties, extension);
}

static ULONG start_trace(struct etw_session *s, const struct etw_wanted *wanted, bool fine_timer)
{
	struct properties q;
	unsigned ncpus = os_cpu_count();

	properties_init(&q);
	q.p.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
	q.p.Wnode.ClientContext = 1;         /* ticks of QueryPerformanceCounter() */
	if (os_random(&q.p.Wnode.Guid, sizeof(q.p.Wnode.Guid), NULL))
		return ERROR_GEN_FAILURE;
	q.p.BufferSize = BUFFER_KB;
	q.p.MinimumBuffers = BUFFERS_MIN > 2 * ncpus ? BUFFERS_MIN : 2 * ncpus;
	q.p.MaximumBuffers = BUFFERS_MAX > 8 * ncpus ? BUFFERS_MAX : 8 * ncpus;
	q.p.LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
	if (wanted->kernel_flags)
		q.p.LogFileMode |= EVENT_TRACE_SYSTEM_LOGGER_MODE;
	q.p.EnableFlags = wanted->kernel_flags;
	if (s->heaps)
		ask_for_heaps(s, &q);
	q.p.FlushTimer = fine_timer ? FLUSH_MS : 1;
	if (fine_timer)
		q.p.LogFileMode |= ETW_MODE_MS_FLUSH_TIMER;
	return StartTraceW(&s->handle, s->name, &q.p);
}

/* A session with our own name is a leftover, and is replaced. */
static int start_session(struct etw_session *s, const struct etw_wanted *wanted, struct err *err)
{
	bool fine_timer = true;
	ULONG error = start_trace(s, wanted, fine_timer);

	if (error == ERROR_INVALID_PARAMETER) {
		fine_timer = false;
		error = start_trace(s, wanted, fine_timer);
	}
	if (error == ERROR_ALREADY_EXISTS && !stop_named(s->name))
		error = start_trace(s, wanted, fine_timer);
	return error ? start_error(error, s->name, err) : 0;
}

/* Named by its owner, and what of it this session is for. NULL: no memory */
static struct etw_session *new_session(const wchar_t *what)
{
	struct etw_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	InitializeSRWLock(&s->lock);
	etw_owner_name(s->name);
	wcscat(s->name, what);
	return s;
}

int etw_session_start(const struct etw_wanted *wanted, struct log *log, uint32_t *interval_100ns,
		      struct etw_session **out, struct err *err)
{
	struct etw_session *s = new_session(L"");
	int rc;

	if (!s)
		return err_memory(err, "for an ETW session");
	if (wanted->kernel_flags & ETW_FLAG_PROFILE)
		set_interval(s, interval_100ns, log);
	rc = start_session(s, wanted, err);
	if (rc) {
		etw_interval_leave(s->name);
		free(s);
		return rc;
	}
	rc = set_stacks(s, wanted, err);
	if (!rc)
		rc = set_counters(s, wanted, err);
	if (!rc)
		rc = enable_all(s, wanted, log, err);
	if (rc)
		etw_session_free(s);
	else
		*out = s;
	return rc;
}

int etw_session_start_heap(uint32_t pid, struct etw_session **out, struct err *err)
{
	static const struct etw_wanted none;
	struct etw_session *s = new_session(L"-heap");
	int rc;

	if (!s)
		return err_memory(err, "for an ETW session");
	s->heaps = true;
	s->heap_pid = pid;
	rc = start_session(s, &none, err);
	if (rc)
		free(s);
	else
		*out = s;
	return rc;
}

const wchar_t *etw_session_name(const struct etw_session *s)
{
	return s->name;
}

/* ---- control --------------------------------------------------------------------------------- */

static bool control_trace(struct etw_session *s, ULONG code)
{
	struct properties q;
	ULONG error;

	properties_init(&q);
	error = ControlTraceW(s->handle, NULL, &q.p, code);
	if (error && error != ERROR_MORE_DATA)
		return false;
	s->losses.events = q.p.EventsLost;
	s->losses.buffers = (uint64_t)q.p.LogBuffersLost + q.p.RealTimeBuffersLost;
	return true;
}

int etw_session_interval(struct etw_session *s, uint32_t *interval_100ns, struct err *err)
{
	ULONG error = ERROR_NOT_SUPPORTED;

	AcquireSRWLockExclusive(&s->lock);
	if (s->samples && !s->stopped)
		error = etw_interval_want(s->name, interval_100ns);
	ReleaseSRWLockExclusive(&s->lock);
	return error ? err_os_code(err, (int)error, "Windows keeps its sampling rate") : 0;
}

bool etw_session_losses(struct etw_session *s, struct etw_losses *out)
{
	bool there;

	AcquireSRWLockExclusive(&s->lock);
	there = s->stopped || control_trace(s, EVENT_TRACE_CONTROL_QUERY);
	*out = s->losses;
	ReleaseSRWLockExclusive(&s->lock);
	return there;
}

void etw_session_stop(struct etw_session *s)
{
	if (!s)
		return;
	AcquireSRWLockExclusive(&s->lock);
	if (!s->stopped)
		control_trace(s, EVENT_TRACE_CONTROL_STOP);
	if (!s->stopped && s->samples)
		etw_interval_leave(s->name);
	s->stopped = true;
	ReleaseSRWLockExclusive(&s->lock);
}

void etw_session_free(struct etw_session *s)
{
	if (!s)
		return;
	etw_session_stop(s);
	free(s);
}

/* ---- leftover sessions ----------------------------------------------------------------------- */

int etw_sessions_clear(uint32_t *n, struct err *err)
{
	struct properties *all = calloc(SESSIONS_MAX, sizeof(*all));
	EVENT_TRACE_PROPERTIES *pointers[SESSIONS_MAX];
	ULONG i, count = 0, error;

	*n = 0;
	if (!all)
		return err_memory(err, "for the list of ETW sessions");
	for (i = 0; i < SESSIONS_MAX; i++) {
		properties_init(&all[i]);
		pointers[i] = &all[i].p;
	}
	error = QueryAllTracesW(pointers, SESSIONS_MAX, &count);
	for (i = 0; (!error || error == ERROR_MORE_DATA) && i < count && i < SESSIONS_MAX; i++) {
		all[i].name[NAME_CHARS - 1] = L'\0';
		if (etw_owner_is_gone(all[i].name) && !stop_named(all[i].name))
			(*n)++;
	}
	etw_interval_leave(NULL);
	free(all);
	return error && error != ERROR_MORE_DATA
		       ? err_os_code(err, (int)error, "cannot list ETW sessions") : 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_items(const EVENT_RECORD *event, struct etw_record *out)
{
	uint32_t i;

	for (i = 0; i < event->ExtendedDataCount && out->nitems < ETW_ITEMS_MAX; i++) {
		const EVENT_HEADER_EXTENDED_DATA_ITEM *item = &event->ExtendedData[i];

		out->items[out->nitems++] = (struct etw_item){
			item->ExtType, item->DataSize, (const uint8_t *)(uintptr_t)item->DataPtr};
	}
}

void etw_record_of(const EVENT_RECORD *event, struct etw_record *out)
{
	const EVENT_HEADER *h = &event->EventHeader;
	const EVENT_DESCRIPTOR *d = &h->EventDescriptor;

	memset(out, 0, offsetof(struct etw_record, items));
	out->ticks = h->TimeStamp.QuadPart;
	out->pid = h->ProcessId;
	out->tid = h->ThreadId;
	out->cpu = h->Flags & EVENT_HEADER_FLAG_PROCESSOR_INDEX
			   ? event->BufferContext.ProcessorIndex
			   : event->BufferContext.ProcessorNumber;
	out->header = h->Flags & EVENT_HEADER_FLAG_CLASSIC_HEADER  ? ETW_CLASSIC
		      : h->Flags & EVENT_HEADER_FLAG_TRACE_MESSAGE ? ETW_MESSAGE
								   : ETW_MANIFEST;
	out->pointer_bytes = h->Flags & EVENT_HEADER_FLAG_32_BIT_HEADER ? 4 : 8;
	memcpy(out->guid.bytes, &h->ProviderId, sizeof(out->guid.bytes));
	out->id = d->Id;
	out->version = d->Version;
	out->opcode = d->Opcode;
	memcpy(out->activity.bytes, &h->ActivityId, sizeof(out->activity.bytes));
	out->nbytes = h->Size;
	out->payload = event->UserData;
	out->payload_bytes = event->UserDataLength;
	put_items(event, out);
}
