#include "source/counter/system_values_windows.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "base/table.h"
#include "source/counter/pdh_counter_windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <psapi.h>
#include <tlhelp32.h>

/* The values of a process, summed over the processes of the name. */
struct process_sum {
	uint32_t n;
	double working_set, private_bytes, threads, handles, cpu_100ns;
	uint64_t who;                        /* changes when the name means other processes */
};

struct moment {
	uint64_t time_ns;
	uint64_t idle, kernel, user;         /* in 100 ns; kernel time includes idle time */
	struct process_sum processes;
};

enum kind { OF_SYSTEM, OF_PROCESSES };

typedef double value_fn(const struct moment *now, const struct moment *before);

struct value_def {
	const char *category, *counter;
	enum kind kind;
	bool is_rate;
	value_fn *value;
};

struct system_value {
	const struct value_def *def;
	struct pdh_name name;
	struct moment before;
	bool has_before;
};

/* ---- obtaining ------------------------------------------------------------------------------- */

static uint64_t ticks_of(const FILETIME *t)
{
	return (uint64_t)t->dwHighDateTime << 32 | t->dwLowDateTime;
}

static void add_process(struct process_sum *sum, const PROCESSENTRY32W *entry)
{
	HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_VM_READ, FALSE,
				     entry->th32ProcessID);
	PROCESS_MEMORY_COUNTERS_EX memory = {.cb = sizeof(memory)};
	FILETIME created = {0}, ended, kernel, user;
	DWORD handles = 0;

	if (!process)
		process =
			OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, entry->th32ProcessID);
	sum->n++;
	sum->threads += entry->cntThreads;
	if (process &&
	    GetProcessMemoryInfo(process, (PROCESS_MEMORY_COUNTERS *)&memory, sizeof(memory))) {
		sum->working_set += (double)memory.WorkingSetSize;
		sum->private_bytes += (double)memory.PrivateUsage;
	}
	if (process && GetProcessTimes(process, &created, &ended, &kernel, &user))
		sum->cpu_100ns += (double)(ticks_of(&kernel) + ticks_of(&user));
	if (process && GetProcessHandleCount(process, &handles))
		sum->handles += handles;
	sum->who += hash_pair(entry->th32ProcessID, ticks_of(&created));
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

static bool read_processes(const struct pdh_name *name, struct process_sum *out)
{
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W entry = {.dwSize = sizeof(entry)};
	uint32_t seen = 0;
	BOOL more;

	if (list == INVALID_HANDLE_VALUE)
		return false;
	for (more = Process32FirstW(list, &entry); more; more = Process32NextW(list, &entry))
		if (is_meant(name, &entry, &seen))
			add_process(out, &entry);
	CloseHandle(list);
	return true;
}

static bool read_moment(const struct system_value *v, struct moment *out)
{
	FILETIME idle, kernel, user;

	memset(out, 0, sizeof(*out));
	out->time_ns = os_now_ns();
	if (v->def->kind == OF_PROCESSES)
		return read_processes(&v->name, &out->processes);
	if (!GetSystemTimes(&idle, &kernel, &user))
		return false;
	out->idle = ticks_of(&idle);
	out->kernel = ticks_of(&kernel);
	out->user = ticks_of(&user);
	return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static double share(uint64_t part, uint64_t before, const struct moment *now,
		    const struct moment *then)
{
	double all = (double)(now->kernel + now->user) - (double)(then->kernel + then->user);

	return all > 0 ? 100 * ((double)part - (double)before) / all : 0;
}

static double busy_pct(const struct moment *a, const struct moment *b)
{
	return 100 - share(a->idle, b->idle, a, b);
}

static double idle_pct(const struct moment *a, const struct moment *b)
{
	return share(a->idle, b->idle, a, b);
}

static double user_pct(const struct moment *a, const struct moment *b)
{
	return share(a->user, b->user, a, b);
}

static double kernel_pct(const struct moment *a, const struct moment *b)
{
	return share(a->kernel - a->idle, b->kernel - b->idle, a, b);
}

static MEMORYSTATUSEX memory_status(void)
{
	MEMORYSTATUSEX m = {.dwLength = sizeof(m)};

	GlobalMemoryStatusEx(&m);
	return m;
}

static double available_bytes(const struct moment *a, const struct moment *b)
{
	(void)a;
	(void)b;
	return (double)memory_status().ullAvailPhys;
}

static double available_kb(const struct moment *a, const struct moment *b)
{
	return available_bytes(a, b) / 1024;
}

static double available_mb(const struct moment *a, const struct moment *b)
{
	return available_bytes(a, b) / 1048576;
}

static double committed_bytes(const struct moment *a, const struct moment *b)
{
	MEMORYSTATUSEX m = memory_status();

	(void)a;
	(void)b;
	return (double)m.ullTotalPageFile - (double)m.ullAvailPageFile;
}

static double commit_limit(const struct moment *a, const struct moment *b)
{
	(void)a;
	(void)b;
	return (double)memory_status().ullTotalPageFile;
}

static double committed_pct(const struct moment *a, const struct moment *b)
{
	double limit = commit_limit(a, b);

	return limit > 0 ? 100 * committed_bytes(a, b) / limit : 0;
}

static PERFORMANCE_INFORMATION performance(void)
{
	PERFORMANCE_INFORMATION p = {.cb = sizeof(p)};

	GetPerformanceInfo(&p, sizeof(p));
	return p;
}

static double processes(const struct moment *a, const struct moment *b)
{
	(void)a;
	(void)b;
	return performance().ProcessCount;
}

static double threads(const struct moment *a, const struct moment *b)
{
	(void)a;
	(void)b;
	return performance().ThreadCount;
}

static double up_seconds(const struct moment *a, const struct moment *b)
{
	(void)a;
	(void)b;
	return (double)GetTickCount64() / 1000;
}

static double process_cpu_pct(const struct moment *a, const struct moment *b)
{
	double ns = (double)a->time_ns - (double)b->time_ns;

	return ns > 0 ? 100 * 100 * (a->processes.cpu_100ns - b->processes.cpu_100ns) / ns : 0;
}

#define OF_PROCESS(name, field) \
	static double name(const struct moment *a, const struct moment *b) \
	{ \
		(void)b; \
		return a->processes.field; \
	}

OF_PROCESS(working_set, working_set)
OF_PROCESS(private_bytes, private_bytes)
OF_PROCESS(thread_count, threads)
OF_PROCESS(handle_count, handles)

static const struct value_def defs[] = {
	{"Processor", "% Processor Time", OF_SYSTEM, true, busy_pct},
	{"Processor", "% Idle Time", OF_SYSTEM, true, idle_pct},
	{"Processor", "% User Time", OF_SYSTEM, true, user_pct},
	{"Processor", "% Privileged Time", OF_SYSTEM, true, kernel_pct},
	{"Memory", "Available Bytes", OF_SYSTEM, false, available_bytes},
	{"Memory", "Available KBytes", OF_SYSTEM, false, available_kb},
	{"Memory", "Available MBytes", OF_SYSTEM, false, available_mb},
	{"Memory", "Committed Bytes", OF_SYSTEM, false, committed_bytes},
	{"Memory", "Commit Limit", OF_SYSTEM, false, commit_limit},
	{"Memory", "% Committed Bytes In Use", OF_SYSTEM, false, committed_pct},
	{"System", "Processes", OF_SYSTEM, false, processes},
	{"System", "Threads", OF_SYSTEM, false, threads},
	{"System", "System Up Time", OF_SYSTEM, false, up_seconds},
	{"Process", "% Processor Time", OF_PROCESSES, true, process_cpu_pct},
	{"Process", "Working Set", OF_PROCESSES, false, working_set},
	{"Process", "Private Bytes", OF_PROCESSES, false, private_bytes},
	{"Process", "Thread Count", OF_PROCESSES, false, thread_count},
	{"Process", "Handle Count", OF_PROCESSES, false, handle_count},
};

int system_value_open(const struct pdh_name *name, struct system_value **out, struct err *err)
{
	struct system_value *v;
	size_t i;

	for (i = 0; i < COUNT_OF(defs); i++)
		if (text_same_fold(defs[i].category, name->name.category) &&
		    text_same_fold(defs[i].counter, name->name.counter))
			break;
	if (i == COUNT_OF(defs))
		return ERR_NOT_FOUND;
	/* Only the sum of all processors is known. */
	if (text_same_fold(name->name.category, "Processor") &&
	    !text_same_fold(name->name.instance, "_Total"))
		return ERR_NOT_FOUND;
	v = calloc(1, sizeof(*v));
	if (!v)
		return err_memory(err, "for a counter");
	v->def = &defs[i];
	v->name = *name;
	*out = v;
	return 0;
}

int system_value_read(struct system_value *v, double *value)
{
	struct moment now, before = v->before;
	bool had_before = v->has_before;

	if (!read_moment(v, &now))
		return COUNTER_NOT_YET;
	v->has_before = v->def->kind != OF_PROCESSES || now.processes.n;
	v->before = now;
	if (!v->has_before)
		return COUNTER_ABSENT;
	if (had_before && before.processes.who != now.processes.who && v->name.want != PDH_SUM &&
	    !text_same_fold(v->name.name.instance, "_Total"))
		return COUNTER_ABSENT;      /* another process has taken over the name */
	if (v->def->is_rate && (!had_before || before.processes.who != now.processes.who))
		return COUNTER_NOT_YET;
	*value = v->def->value(&now, &before);
	return COUNTER_VALUE;
}

void system_value_close(struct system_value *v)
{
	free(v);
}
