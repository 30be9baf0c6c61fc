/*
 * A stand-in for Windows' ETW, for tests under Wine: it takes the place of tdh.dll, which the
 * recorder loads right before it starts a session, and points the program's imports of the control
 * and consumer functions of advapi32 at its own. The program is the one that is shipped, unchanged.
 *
 * ProcessTrace() hands out the records of a file (tests/support/etw_record_file.h) as EVENT_RECORDs
 * at the pace at which they were recorded, their ticks moved to now. Every control call is logged.
 *
 *	STANDIN_LOG         where to write what was called, a line each
 *	STANDIN_RECORDS     the file; none = a session without events
 *	STANDIN_HEAP_RECORDS  the same of the session of heaps
 *	STANDIN_CHILD       this number in the records becomes that of the process that was started
 *	STANDIN_START       error of StartTraceW: "5"; "183 once" = the first time only
 *	STANDIN_LOST        "EVENTS BUFFERS", as the session says from its second query on
 *	STANDIN_COUNTERS    what the processor counts: "6 BranchMispredictions,11 CacheMisses"
 *	STANDIN_SESSIONS    names that QueryAllTracesW lists, ',' between
 *	STANDIN_AFTER_STOP  so many records again after the session was stopped
 *	STANDIN_MACHINE     a folder that several programs share: the sessions that there are, a
 *	                    file each, and the sampling interval, in a file of this name; none =
 *	                    each is alone
 */
#include "tests/support/etw_record_file.h"

#include <windows.h>
#include <evntrace.h>
#include <evntcons.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tlhelp32.h>

#define HANDLE_OF_SESSION 0x5E55             /* + 1: of heaps */
#define HANDLE_OF_CONSUMER 0xC0
#define SESSIONS 2

static struct standin {
	EVENT_TRACE_LOGFILEW file;
	wchar_t name[128];
	volatile LONG stopped, closed;
	uint8_t *records;
	size_t nbytes;
} sessions[SESSIONS];
static volatile LONG started, queries;

static struct standin *of_handle(TRACEHANDLE handle, TRACEHANDLE first)
{
	return &sessions[handle == first + 1];
}

static const char *env(const char *name)
{
	const char *text = getenv(name);

	return text ? text : "";
}

static void say(const char *format, ...)
{
	FILE *log = *env("STANDIN_LOG") ? fopen(env("STANDIN_LOG"), "ab") : NULL;
	va_list args;

	if (!log)
		return;
	va_start(args, format);
	vfprintf(log, format, args);
	va_end(args);
	fputc('\n', log);
	fclose(log);
}

/* ---- what all programs of a machine share ---------------------------------------------------- */

static FILE *machine_file(const char *name, const char *mode)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", env("STANDIN_MACHINE"), name);
	return *env("STANDIN_MACHINE") ? fopen(path, mode) : NULL;
}

static ULONG machine_interval(ULONG set)
{
	static ULONG alone = 10000;
	ULONG v = alone;
	FILE *file;

	alone = set ? set : alone;
	file = machine_file("interval", set ? "wb" : "rb");
	if (file && set)
		fprintf(file, "%lu\n", set);
	else if (file)
		fscanf(file, "%lu", &v);
	if (file)
		fclose(file);
	return set ? set : v;
}

/* false: there is one of this name already. */
static int machine_start(const wchar_t *name)
{
	char text[128];
	FILE *file;

	snprintf(text, sizeof(text), "session %ls", name);
	file = machine_file(text, "r");
	if (file) {
		fclose(file);
		return 0;
	}
	file = machine_file(text, "w");
	if (file)
		fclose(file);
	return 1;
}

/* false: there is none. */
static int machine_stop(const wchar_t *name)
{
	char path[512];

	if (!*env("STANDIN_MACHINE"))
		return 1;
	snprintf(path, sizeof(path), "%s/session %ls", env("STANDIN_MACHINE"), name);
	return remove(path) == 0;
}

static const char *guid_text(const GUID *g)
{
	static char text[4][40];
	static int at;
	char *out = text[at++ & 3];

	sprintf(out, "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", g->Data1, g->Data2,
		g->Data3, g->Data4[0], g->Data4[1], g->Data4[2], g->Data4[3], g->Data4[4],
		g->Data4[5], g->Data4[6], g->Data4[7]);
	return out;
}

/* ---- control --------------------------------------------------------------------------------- */

static ULONG WINAPI start_trace(PTRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p)
{
	static const GUID none;
	int heap = (p->EnableFlags & 0xFFFF0000) == 0x80FF0000;
	const uint16_t *list = (const uint16_t *)((const uint8_t *)p + (p->EnableFlags & 0xFFFF));
	ULONG error = (ULONG)strtoul(env("STANDIN_START"), NULL, 10);

	if (error && strstr(env("STANDIN_START"), "once") && started++)
		error = 0;
	say("start name=%ls mode=0x%08lx flags=0x%08lx clock=%lu own_guid=%d traced=%d timer=%lu "
	    "error=%lu",
	    name, p->LogFileMode, p->EnableFlags, p->Wnode.ClientContext,
	    memcmp(&p->Wnode.Guid, &none, sizeof(none)) != 0,
	    (p->Wnode.Flags & WNODE_FLAG_TRACED_GUID) != 0, p->FlushTimer, error);
	if (heap)
		say("heap session guid=%s list=%u %u: %u %u pid %u: %u %u 0x%x 0x%x",
		    guid_text(&p->Wnode.Guid), list[0], list[1], list[2], list[3],
		    list[4] | (unsigned)list[5] << 16, list[6], list[7],
		    list[8] | (unsigned)list[9] << 16, list[10] | (unsigned)list[11] << 16);
	if (error)
		return error;
	if (!machine_start(name))
		return ERROR_ALREADY_EXISTS;
	wcsncpy(sessions[heap].name, name, 127);
	*handle = HANDLE_OF_SESSION + (TRACEHANDLE)heap;
	return 0;
}

static ULONG WINAPI control_trace(TRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p,
				  ULONG code)
{
	unsigned long events = 0, buffers = 0;

	if (code == EVENT_TRACE_CONTROL_STOP) {
		say("stop handle=0x%llx name=%ls", (unsigned long long)handle, name ? name : L"");
		if (!machine_stop(handle ? of_handle(handle, HANDLE_OF_SESSION)->name : name))
			return ERROR_WMI_INSTANCE_NOT_FOUND;
		if (handle)
			of_handle(handle, HANDLE_OF_SESSION)->stopped = 1;
	}
	if (handle == HANDLE_OF_SESSION && InterlockedIncrement(&queries) > 1)
		sscanf(env("STANDIN_LOST"), "%lu %lu", &events, &buffers);
	p->EventsLost = events;
	p->RealTimeBuffersLost = buffers;
	return 0;
}

static ULONG WINAPI enable_trace(TRACEHANDLE handle, LPCGUID guid, ULONG code, UCHAR level,
				 ULONGLONG any, ULONGLONG every, ULONG timeout,
				 PENABLE_TRACE_PARAMETERS p)
{
	ULONG i, k;

	(void)every;
	(void)timeout;
	say("enable handle=0x%llx guid=%s code=%lu level=%u keywords=0x%llx property=%lu "
	    "filters=%lu",
	    (unsigned long long)handle, guid_text(guid), code, level, any,
	    p ? p->EnableProperty : 0, p ? p->FilterDescCount : 0);
	for (i = 0; p && i < p->FilterDescCount; i++) {
		const EVENT_FILTER_DESCRIPTOR *f = &p->EnableFilterDesc[i];
		char bytes[256] = "";

		for (k = 0; k < f->Size && k < 64; k++)
			sprintf(bytes + 2 * k, "%02x", ((const uint8_t *)(uintptr_t)f->Ptr)[k]);
		say("filter type=0x%lx bytes=%s", f->Type, bytes);
	}
	return 0;
}

static ULONG WINAPI set_information(TRACEHANDLE handle, TRACE_INFO_CLASS class, PVOID info, ULONG n)
{
	const CLASSIC_EVENT_ID *ids = info;
	ULONG i;

	say("set handle=0x%llx class=%d bytes=%lu", (unsigned long long)handle, class, n);
	for (i = 0; class == TraceStackTracingInfo && i < n / sizeof(*ids); i++)
		say("stack %s %u", guid_text(&ids[i].EventGuid), ids[i].Type);
	if (class == TraceSampledProfileIntervalInfo && !*(const ULONG *)info) {
		say("interval %lu", ((const ULONG *)info)[1]);
		machine_interval(((const ULONG *)info)[1]);
	} else if (class == TraceSampledProfileIntervalInfo) {
		say("interval %lu of source %lu", ((const ULONG *)info)[1],
		    *(const ULONG *)info);
	}
	for (i = 0; class == TraceProfileSourceConfigInfo && i < n / sizeof(ULONG); i++)
		say("source %lu", ((const ULONG *)info)[i]);
	if (class == TraceSystemTraceEnableFlagsInfo)
		say("masks 0x%08lx 0x%08lx", *(const ULONG *)info, ((const ULONG *)info)[1]);
	return 0;
}

/* What a processor counts, of STANDIN_COUNTERS: "6 BranchMispredictions,11 CacheMisses". */
static ULONG list_counters(char *to, ULONG n, PULONG out)
{
	const char *text = env("STANDIN_COUNTERS");
	ULONG id, used = 0, size;
	char name[64];
	int chars, i;

	for (*out = 0; sscanf(text, "%lu %63[^,]%n", &id, name, &chars) == 2; text += chars) {
		ULONG entry[6] = {0, id, 4096, 1000000};

		text += text[chars] == ',';
		size = (ULONG)(24 + 2 * (strlen(name) + 1) + 7) & ~7u;
		if (used + size > n)
			return ERROR_MORE_DATA;
		entry[0] = text[chars] ? size : 0;
		memset(to + used, 0, size);
		memcpy(to + used, entry, sizeof(entry));
		for (i = 0; name[i]; i++)
			to[used + 24 + 2 * (ULONG)i] = name[i];
		*out = used += size;
	}
	return 0;
}

static ULONG WINAPI query_information(TRACEHANDLE handle, TRACE_INFO_CLASS class, PVOID info,
				      ULONG n, PULONG out)
{
	(void)handle;
	if (class == TraceProfileSourceListInfo)
		return list_counters(info, n, out);
	if (class != TraceSampledProfileIntervalInfo || n < 8)
		return ERROR_NOT_SUPPORTED;
	((ULONG *)info)[1] = machine_interval(0);
	*out = 8;
	return 0;
}

/* What the program looks up itself, for older systems lack it. */
static FARPROC WINAPI get_proc_address(HMODULE module, LPCSTR name)
{
	__typeof__(&query_information) own_query = query_information;
	FARPROC found;

	if ((uintptr_t)name <= 0xFFFF || strcmp(name, "TraceQueryInformation"))
		return GetProcAddress(module, name);
	memcpy(&found, &own_query, sizeof(found));
	return found;
}

static void add_session(PEVENT_TRACE_PROPERTIES *all, ULONG max, PULONG n, const char *name)
{
	if (*n < max)
		swprintf((wchar_t *)((char *)all[*n] + all[*n]->LoggerNameOffset), 100, L"%hs",
			 name);
	*n += *n < max;
}

static ULONG WINAPI query_all(PEVENT_TRACE_PROPERTIES *all, ULONG max, PULONG n)
{
	char names[512], *name, *end, path[512];
	WIN32_FIND_DATAA found;
	HANDLE find;

	snprintf(names, sizeof(names), "%s", env("STANDIN_SESSIONS"));
	for (*n = 0, name = names; *name && *n < max; name = end) {
		end = name + strcspn(name, ",");
		if (*end)
			*end++ = '\0';
		add_session(all, max, n, name);
	}
	snprintf(path, sizeof(path), "%s/session *", env("STANDIN_MACHINE"));
	find = *env("STANDIN_MACHINE") ? FindFirstFileA(path, &found) : INVALID_HANDLE_VALUE;
	if (find != INVALID_HANDLE_VALUE) {
		do
			add_session(all, max, n, found.cFileName + strlen("session "));
		while (FindNextFileA(find, &found));
		FindClose(find);
	}
	say("query_all %lu", *n);
	return 0;
}

/* ---- consuming ------------------------------------------------------------------------------- */

static TRACEHANDLE WINAPI open_trace(PEVENT_TRACE_LOGFILEW file)
{
	int heap = wcscmp(file->LoggerName, sessions[1].name) == 0;

	sessions[heap].file = *file;
	say("open name=%ls mode=0x%08lx own_name=%d", file->LoggerName, file->ProcessTraceMode,
	    wcscmp(file->LoggerName, sessions[heap].name) == 0);
	return HANDLE_OF_CONSUMER + (TRACEHANDLE)heap;
}

static ULONG WINAPI close_trace(TRACEHANDLE handle)
{
	say("close handle=0x%llx", (unsigned long long)handle);
	of_handle(handle, HANDLE_OF_CONSUMER)->closed = 1;
	return 0;
}

static LONGLONG qpc(void)
{
	LARGE_INTEGER v;

	QueryPerformanceCounter(&v);
	return v.QuadPart;
}

/* The record at `at` as the callback gets it; its length in the file. */
static size_t give(const struct standin *s, const uint8_t *at, LONGLONG shift)
{
	struct record_file_record r;
	EVENT_HEADER_EXTENDED_DATA_ITEM items[8];
	uint8_t payload[65536];
	EVENT_RECORD e = {0};
	const uint8_t *from = at;
	LONGLONG ticks;
	int i;

	memcpy(&r, from, sizeof(r));
	from += sizeof(r);
	memset(items, 0, sizeof(items));
	for (i = 0; i < r.nitems && i < 8; i++) {
		struct record_file_item item;

		memcpy(&item, from, sizeof(item));
		items[i].ExtType = item.type;
		items[i].DataSize = item.nbytes;
		items[i].DataPtr = (ULONGLONG)(uintptr_t)(from + sizeof(item));
		from += sizeof(item) + item.nbytes;
	}
	memcpy(payload, from, r.payload_bytes);
	if (r.ticks_inside) {
		memcpy(&ticks, payload, sizeof(ticks));
		ticks += shift;
		memcpy(payload, &ticks, sizeof(ticks));
	}
	e.EventHeader.Size = sizeof(e.EventHeader);
	e.EventHeader.Flags = (USHORT)((r.pointer_bytes == 4 ? EVENT_HEADER_FLAG_32_BIT_HEADER
							     : EVENT_HEADER_FLAG_64_BIT_HEADER) |
				       (r.header == 0 ? EVENT_HEADER_FLAG_CLASSIC_HEADER : 0) |
				       (r.nitems ? EVENT_HEADER_FLAG_EXTENDED_INFO : 0) |
				       EVENT_HEADER_FLAG_PROCESSOR_INDEX);
	e.EventHeader.ThreadId = r.tid;
	e.EventHeader.ProcessId = r.pid;
	e.EventHeader.TimeStamp.QuadPart = r.ticks + shift;
	memcpy(&e.EventHeader.ProviderId, r.guid, 16);
	e.EventHeader.EventDescriptor =
		(EVENT_DESCRIPTOR){.Id = r.id, .Version = r.version, .Opcode = r.opcode};
	e.BufferContext.ProcessorIndex = r.cpu;
	e.ExtendedDataCount = r.nitems;
	e.ExtendedData = items;
	e.UserData = payload;
	e.UserDataLength = r.payload_bytes;
	e.UserContext = s->file.Context;
	s->file.EventRecordCallback(&e);
	return (size_t)(from - at) + r.payload_bytes;
}

/* What the recorder has started waits until the session records. 0: nothing. */
static uint32_t started_process(void)
{
	PROCESSENTRY32 p = {.dwSize = sizeof(p)};
	HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	uint32_t pid = 0;
	BOOL more;

	for (more = Process32First(all, &p); more && !pid; more = Process32Next(all, &p))
		if (p.th32ParentProcessID == GetCurrentProcessId())
			pid = p.th32ProcessID;
	CloseHandle(all);
	return pid;
}

static void put_started_process(struct standin *s)
{
	uint32_t number = (uint32_t)strtoul(env("STANDIN_CHILD"), NULL, 10);
	uint32_t pid = number ? started_process() : 0;
	size_t i;

	for (i = 0; pid && i + sizeof(pid) <= s->nbytes; i++)
		if (!memcmp(s->records + i, &number, sizeof(number)))
			memcpy(s->records + i, &pid, sizeof(pid));
}

static int load(struct standin *s, struct record_file_head *head)
{
	const char *path = env(s == &sessions[1] ? "STANDIN_HEAP_RECORDS" : "STANDIN_RECORDS");
	FILE *file = *path ? fopen(path, "rb") : NULL;

	if (!file)
		return 0;
	fseek(file, 0, SEEK_END);
	s->nbytes = (size_t)ftell(file);
	rewind(file);
	s->records = malloc(s->nbytes);
	if (!s->records || fread(s->records, 1, s->nbytes, file) != s->nbytes)
		s->nbytes = 0;
	fclose(file);
	if (s->nbytes < sizeof(*head))
		return 0;
	memcpy(head, s->records, sizeof(*head));
	put_started_process(s);
	return head->magic == RECORD_FILE_MAGIC;
}

static ULONG WINAPI process_trace(PTRACEHANDLE handles, ULONG n, LPFILETIME from, LPFILETIME until)
{
	struct standin *s = of_handle(*handles, HANDLE_OF_CONSUMER);
	struct record_file_head head = {0};
	size_t at = sizeof(head);
	unsigned long given = 0, after = strtoul(env("STANDIN_AFTER_STOP"), NULL, 10);
	LONGLONG shift, ticks;

	(void)n;
	(void)from;
	(void)until;
	if (!load(s, &head))
		head.nrecords = 0;
	shift = qpc() - head.t0_ticks;
	while (given < head.nrecords && !s->stopped && !s->closed) {
		memcpy(&ticks, s->records + at, sizeof(ticks));
		if (ticks + shift > qpc()) {
			Sleep(50);
			continue;
		}
		at += give(s, s->records + at, shift);
		given++;
	}
	if (given == head.nrecords)
		say("replayed %lu", given);
	while (!s->stopped && !s->closed)
		Sleep(10);
	for (at = sizeof(head); after && given < head.nrecords && !s->closed; after--)
		at += give(s, s->records + at, shift);
	say("processed %lu", given);
	return 0;
}

/* ---- taking the place of advapi32 ------------------------------------------------------------ */

static const struct {
	const char *name;
	void *function;
} own[] = {
	{"StartTraceW", start_trace},	      {"ControlTraceW", control_trace},
	{"EnableTraceEx2", enable_trace},     {"TraceSetInformation", set_information},
	{"QueryAllTracesW", query_all},	      {"OpenTraceW", open_trace},
	{"ProcessTrace", process_trace},      {"CloseTrace", close_trace},
	{"GetProcAddress", get_proc_address},
};

static void replace(void **slot, const char *name)
{
	DWORD before;
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (strcmp(own[i].name, name))
			continue;
		VirtualProtect(slot, sizeof(*slot), PAGE_READWRITE, &before);
		*slot = own[i].function;
		VirtualProtect(slot, sizeof(*slot), before, &before);
	}
}

static void replace_imports(void)
{
	uint8_t *base = (uint8_t *)GetModuleHandleW(NULL);
	IMAGE_NT_HEADERS *nt = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
	IMAGE_DATA_DIRECTORY *at = &nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
	IMAGE_IMPORT_DESCRIPTOR *d = (IMAGE_IMPORT_DESCRIPTOR *)(base + at->VirtualAddress);

	for (; d->Name; d++) {
		IMAGE_THUNK_DATA *names = (IMAGE_THUNK_DATA *)(base + d->OriginalFirstThunk);
		void **slots = (void **)(base + d->FirstThunk);

		for (; names->u1.AddressOfData; names++, slots++)
			if (!IMAGE_SNAP_BY_ORDINAL(names->u1.Ordinal))
				replace(slots,
					(const char *)((IMAGE_IMPORT_BY_NAME
								*)(base + names->u1.AddressOfData))
						->Name);
	}
}

__declspec(dllexport) ULONG WINAPI
	TdhGetEventInformation(PEVENT_RECORD, ULONG, void *, void *, ULONG *);
__declspec(dllexport) ULONG WINAPI
	TdhGetEventInformation(PEVENT_RECORD event, ULONG n, void *context, void *out, ULONG *bytes)
{
	(void)event;
	(void)n;
	(void)context;
	(void)out;
	*bytes = 0;
	return ERROR_NOT_FOUND;
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self;
	(void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		replace_imports();
	return TRUE;
}
