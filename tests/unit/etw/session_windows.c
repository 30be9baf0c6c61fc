/*
 * Sessions that a killed recorder has left: found by their names, and stopped; no other is touched.
 * The control functions are this file's own: the linker takes them for those of advapi32.
 */
#include "source/etw/session_windows.h"
#include "tests/support/alone_windows.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static wchar_t names[4][100], stopped[4][100];
static ULONG nnames, nstopped;

static ULONG WINAPI query_all(PEVENT_TRACE_PROPERTIES *all, ULONG max, PULONG n)
{
	for (*n = 0; *n < nnames && *n < max; (*n)++)
		wcscpy((wchar_t *)((char *)all[*n] + all[*n]->LoggerNameOffset), names[*n]);
	return ERROR_SUCCESS;
}

static ULONG WINAPI control(TRACEHANDLE handle, LPCWSTR name, PEVENT_TRACE_PROPERTIES p, ULONG code)
{
	(void)p;
	assert_true(handle == 0 && code == EVENT_TRACE_CONTROL_STOP);
	wcscpy(stopped[nstopped++], name);
	return ERROR_SUCCESS;
}

extern __typeof__(&query_all) __imp_QueryAllTracesW;
extern __typeof__(&control) __imp_ControlTraceW;
__typeof__(&query_all) __imp_QueryAllTracesW = query_all;
__typeof__(&control) __imp_ControlTraceW = control;

static uint64_t own_start(void)
{
	FILETIME created, other;

	GetProcessTimes(GetCurrentProcess(), &created, &other, &other, &other);
	return (uint64_t)created.dwHighDateTime << 32 | created.dwLowDateTime;
}

TEST(only_sessions_of_recorders_that_are_gone_are_stopped)
{
	uint32_t n = 0;

	nnames = 4;
	swprintf(names[0], 100, L"NT Kernel Logger");
	swprintf(names[1], 100, L"recorder-session-%lu-%I64x", GetCurrentProcessId(), own_start());
	swprintf(names[2], 100, L"recorder-session-%lu-%I64x", GetCurrentProcessId(),
		 own_start() - 1);
	swprintf(names[3], 100, L"recorder-session-of somebody else's");
	assert_int_equal(etw_sessions_clear(&n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(nstopped, 1);
	assert_int_equal(wcscmp(stopped[0], names[2]), 0);   /* the number was given again */
}

TEST(event_record_becomes_a_record)
{
	EVENT_HEADER_EXTENDED_DATA_ITEM items[10] = {
		{.ExtType = 6, .DataSize = 16, .DataPtr = 0x1000}};
	EVENT_RECORD e = {.ExtendedData = items, .ExtendedDataCount = 10, .UserDataLength = 5,
			  .UserData = items};
	struct etw_record r;

	e.EventHeader.TimeStamp.QuadPart = 77;
	e.EventHeader.ProcessId = e.EventHeader.ThreadId = 0xFFFFFFFF;
	e.EventHeader.Flags = EVENT_HEADER_FLAG_CLASSIC_HEADER | EVENT_HEADER_FLAG_64_BIT_HEADER;
	e.EventHeader.EventDescriptor.Opcode = 46;
	e.BufferContext.ProcessorIndex = 0x103;
	etw_record_of(&e, &r);
	assert_true(r.ticks == 77 && r.pid == ETW_ID_UNKNOWN && r.tid == ETW_ID_UNKNOWN);
	assert_true(r.header == ETW_CLASSIC && r.opcode == 46 && r.pointer_bytes == 8);
	assert_int_equal(r.cpu, 3);          /* the number of 8 bits */
	assert_int_equal(r.payload_bytes, 5);
	assert_int_equal(r.nitems, ETW_ITEMS_MAX);
	assert_true(r.items[0].type == 6 && r.items[0].nbytes == 16 &&
		    (uintptr_t)r.items[0].bytes == 0x1000);
	e.EventHeader.Flags = EVENT_HEADER_FLAG_32_BIT_HEADER | EVENT_HEADER_FLAG_PROCESSOR_INDEX;
	etw_record_of(&e, &r);
	assert_true(r.header == ETW_MANIFEST && r.pointer_bytes == 4);
	assert_int_equal(r.cpu, 0x103);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_sessions_of_recorders_that_are_gone_are_stopped),
		cmocka_unit_test(event_record_becomes_a_record),
	};

	alone_on_this_machine();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
