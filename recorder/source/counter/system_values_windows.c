#include "source/counter/system_values_windows.h"

#include "base/os.h"
#include "base/table.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <psapi.h>
#include <tlhelp32.h>

#define BIT(field) (1u << (field))

/* The fields that the system tells; a counter that needs none of them is not known. */
static const uint32_t known_fields[PROC_CATEGORIES] = {
	[PROC_PROCESSOR] = BIT(CPU_USER) | BIT(CPU_SYSTEM) | BIT(CPU_IDLE),
	[PROC_SYSTEM] = BIT(SYS_PROCESSES) | BIT(SYS_THREADS) | BIT(SYS_UPTIME),
	[PROC_MEMORY] = BIT(RAM_AVAILABLE) | BIT(RAM_COMMITTED) | BIT(RAM_LIMIT),
	[PROC_PROCESS] = BIT(PID_USER) | BIT(PID_SYSTEM) | BIT(PID_RESIDENT) | BIT(PID_PRIVATE) |
			 BIT(PID_THREADS) | BIT(PID_HANDLES),
};

static uint64_t ticks_of(const FILETIME *t)
{
	return (uint64_t)t->dwHighDateTime << 32 | t->dwLowDateTime;
}

/* Add the values of a process. The identity changes when the name means other processes. */
static void add_process(struct counter_raw *sum, const PROCESSENTRY32W *entry)
{
	HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_VM_READ, FALSE,
				     entry->th32ProcessID);
	PROCESS_MEMORY_COUNTERS_EX memory = {.cb = sizeof(memory)};
	FILETIME created = {0}, ended, kernel, user;
	DWORD handles = 0;

	if (!process)
		process =
			OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, entry->th32ProcessID);
	sum->v[PID_COUNT]++;
	sum->v[PID_THREADS] += entry->cntThreads;
	if (process &&
	    GetProcessMemoryInfo(process, (PROCESS_MEMORY_COUNTERS *)&memory, sizeof(memory))) {
		sum->v[PID_RESIDENT] += (double)memory.WorkingSetSize;
		sum->v[PID_PRIVATE] += (double)memory.PrivateUsage;
	}
	if (process && GetProcessTimes(process, &created, &ended, &kernel, &user)) {
		sum->v[PID_SYSTEM] += (double)ticks_of(&kernel) / 1e7;
		sum->v[PID_USER] += (double)ticks_of(&user) / 1e7;
	}
	if (process && GetProcessHandleCount(process, &handles))
		sum->v[PID_HANDLES] += handles;
	sum->identity += hash_pair(entry->th32ProcessID, ticks_of(&created));
	if (process)
		CloseHandle(process);
}

/* An instance is a program without ".exe"; "name" alone is the first, name#N the Nth after it. */
static bool is_meant(const struct pdh_name *name, const PROCESSENTRY32W *entry, uint32_t *seen)
{
	char exe[COUNTER_NAME_MAX], wanted[COUNTER_NAME_MAX];
	const char *number = strrchr(name->name.instance, '#');
	size_t n;

	if (name->want == PDH_PID)
		return entry->th32ProcessID == name->pid;
	if (text_same_fold(name->name.instance, "_Total"))
		return entry->th32ProcessID != 0;
	if (WideCharToMultiByte(CP_UTF8, 0, entry->szExeFile, -1, exe, sizeof(exe), NULL, NULL) <=
	    0)
		return false;
	n = strlen(exe);
	if (n > 4 && text_same_fold(exe + n - 4, ".exe"))
		exe[n - 4] = '\0';
	if (name->want == PDH_SUM)
		return number && !strcmp(number, "#*") ? pdh_name_takes(name, exe)
						       : name_matches(name->name.instance, exe);
	snprintf(wanted, sizeof(wanted), "%.*s",
		 (int)(number ? (size_t)(number - name->name.instance)
			      : strlen(name->name.instance)),
		 name->name.instance);
	return text_same_fold(wanted, exe) &&
	       (*seen)++ == (number ? strtoul(number + 1, NULL, 10) : 0);
}

static enum counter_result read_processes(const struct pdh_name *name, struct counter_raw *out)
{
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W entry = {.dwSize = sizeof(entry)};
	uint32_t seen = 0;
	BOOL more;

	if (list == INVALID_HANDLE_VALUE)
		return COUNTER_NOT_YET;
	for (more = Process32FirstW(list, &entry); more; more = Process32NextW(list, &entry))
		if (is_meant(name, &entry, &seen))
			add_process(out, &entry);
	CloseHandle(list);
	return out->v[PID_COUNT] > 0 ? COUNTER_VALUE : COUNTER_ABSENT;
}

static enum counter_result read_processor(double *v)
{
	FILETIME idle, kernel, user;

	if (!GetSystemTimes(&idle, &kernel, &user))
		return COUNTER_NOT_YET;
	v[CPU_IDLE] = (double)ticks_of(&idle);
	v[CPU_SYSTEM] = (double)(ticks_of(&kernel) - ticks_of(&idle));   /* it includes idle time */
	v[CPU_USER] = (double)ticks_of(&user);
	return COUNTER_VALUE;
}

static enum counter_result read_memory(double *v)
{
	MEMORYSTATUSEX m = {.dwLength = sizeof(m)};

	if (!GlobalMemoryStatusEx(&m))
		return COUNTER_NOT_YET;
	v[RAM_AVAILABLE] = (double)m.ullAvailPhys;
	v[RAM_COMMITTED] = (double)m.ullTotalPageFile - (double)m.ullAvailPageFile;
	v[RAM_LIMIT] = (double)m.ullTotalPageFile;
	return COUNTER_VALUE;
}

static enum counter_result read_system(double *v)
{
	PERFORMANCE_INFORMATION p = {.cb = sizeof(p)};

	if (!GetPerformanceInfo(&p, sizeof(p)))
		return COUNTER_NOT_YET;
	v[SYS_PROCESSES] = p.ProcessCount;
	v[SYS_THREADS] = p.ThreadCount;
	v[SYS_UPTIME] = (double)GetTickCount64() / 1000;
	return COUNTER_VALUE;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool system_value_open(struct system_value *v, const struct pdh_name *name)
{
	const struct counter_category *category;
	const struct counter_def *def = counter_def_find(&name->name, &category);

	if (!def || !(def->a & known_fields[category->id]))
		return false;
	/* Only the sum of all processors is known. */
	if (category->id == PROC_PROCESSOR && !text_same_fold(name->name.instance, "_Total"))
		return false;
	*v = (struct system_value){.name = name, .def = def, .category = category->id};
	return true;
}

enum counter_result system_value_read(struct system_value *v, double *value)
{
	struct counter_raw now = {.time_ns = os_now_ns()};
	enum counter_result result;

	result = v->category == PROC_PROCESS     ? read_processes(v->name, &now)
		 : v->category == PROC_PROCESSOR ? read_processor(now.v)
		 : v->category == PROC_MEMORY    ? read_memory(now.v)
						 : read_system(now.v);
	/* A sum is not taken over by another process, but its rate begins anew. */
	if (v->before.identity != now.identity &&
	    (v->name->want == PDH_SUM || text_same_fold(v->name->name.instance, "_Total")))
		v->before.time_ns = 0;
	return counter_next_value(v->def, &v->before, result, &now, value);
}
