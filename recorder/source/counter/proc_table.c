#include "source/counter/proc_table.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define F(field) (1u << (field))

#define CPU_BUSY (F(CPU_USER) | F(CPU_NICE) | CPU_KERNEL)
#define CPU_KERNEL (F(CPU_SYSTEM) | F(CPU_IRQ) | F(CPU_SOFTIRQ))
#define CPU_ALL (CPU_BUSY | F(CPU_IDLE) | F(CPU_IOWAIT) | F(CPU_STEAL))

/* The commonest formulas. */
#define LEVEL(field) HOW_LEVEL, F(field), 0, 1
#define PERCENT_OF(part, whole) HOW_LEVEL_SHARE, F(part), F(whole), 100
#define RATE(field) HOW_RATE, F(field), 0, 1
#define RATE_OF_BOTH(one, other) HOW_RATE, F(one) | F(other), 0, 1

static const struct counter_def processor[] = {
	{"% Processor Time", "%", HOW_SHARE, CPU_BUSY, CPU_ALL, 100,
	 "time that a CPU was busy: not idle, not waiting for disks, not stolen"},
	{"% User Time", "%", HOW_SHARE, F(CPU_USER) | F(CPU_NICE), CPU_ALL, 100,
	 "time in programs"},
	{"% Privileged Time", "%", HOW_SHARE, CPU_KERNEL, CPU_ALL, 100,
	 "time in the kernel, including interrupts"},
	{"% Idle Time", "%", HOW_SHARE, F(CPU_IDLE) | F(CPU_IOWAIT), CPU_ALL, 100,
	 "time without work"},
	{"% IO Wait Time", "%", HOW_SHARE, F(CPU_IOWAIT), CPU_ALL, 100,
	 "the part of idle time in which a thread waited for a disk"},
	{"% Interrupt Time", "%", HOW_SHARE, F(CPU_IRQ), CPU_ALL, 100, "time in interrupts"},
	{"% DPC Time", "%", HOW_SHARE, F(CPU_SOFTIRQ), CPU_ALL, 100,
	 "time in deferred interrupt work (softirq)"},
	{"% Steal Time", "%", HOW_SHARE, F(CPU_STEAL), CPU_ALL, 100,
	 "time that the hypervisor gave to other machines"},
	{0},
};

static const struct counter_def sys[] = {
	{"Processor Queue Length", "threads", LEVEL(SYS_QUEUE),
	 "ready threads in excess of the number of CPUs"},
	{"Running Threads", "threads", LEVEL(SYS_RUNNING), "threads that run or are ready"},
	{"Blocked Threads", "threads", LEVEL(SYS_BLOCKED), "threads that wait for a disk"},
	{"Context Switches/sec", "/s", RATE(SYS_SWITCHES),
	 "changes from one thread to another, all CPUs"},
	{"Forks/sec", "/s", RATE(SYS_FORKS), "processes and threads started"},
	{"Processes", "processes", LEVEL(SYS_PROCESSES), "processes that exist"},
	{"Threads", "threads", LEVEL(SYS_THREADS), "threads that exist"},
	{"System Up Time", "s", LEVEL(SYS_UPTIME), "since the system started"},
	{"Load Average 1 min", "threads", LEVEL(SYS_LOAD1),
	 "threads running, ready or waiting for a disk"},
	{"Load Average 5 min", "threads", LEVEL(SYS_LOAD5), "the same over 5 minutes"},
	{"Load Average 15 min", "threads", LEVEL(SYS_LOAD15), "the same over 15 minutes"},
	{0},
};

static const struct counter_def memory[] = {
	{"Available Bytes", "bytes", LEVEL(RAM_AVAILABLE),
	 "memory available without swapping (MemAvailable)"},
	{"Available KBytes", "KiB", HOW_LEVEL, F(RAM_AVAILABLE), 0, 1.0 / 1024, "the same in KiB"},
	{"Available MBytes", "MiB", HOW_LEVEL, F(RAM_AVAILABLE), 0, 1.0 / 1048576,
	 "the same in MiB"},
	{"Committed Bytes", "bytes", LEVEL(RAM_COMMITTED),
	 "memory promised to programs (Committed_AS)"},
	{"Commit Limit", "bytes", LEVEL(RAM_LIMIT), "what can be promised (CommitLimit)"},
	{"% Committed Bytes In Use", "%", PERCENT_OF(RAM_COMMITTED, RAM_LIMIT),
	 "share of the commit limit in use; over 100 where the system overcommits"},
	{"Cache Bytes", "bytes", LEVEL(RAM_CACHE), "file cache and reclaimable kernel memory"},
	{"Total Bytes", "bytes", LEVEL(RAM_TOTAL), "memory of the machine"},
	{"Free Bytes", "bytes", LEVEL(RAM_FREE), "unused memory"},
	{"Modified Bytes", "bytes", LEVEL(RAM_DIRTY), "file pages to be written (Dirty)"},
	{"Swap Used Bytes", "bytes", HOW_LEVEL, F(RAM_SWAP_TOTAL), F(RAM_SWAP_FREE), 1,
	 "swap space in use"},
	{"Page Faults/sec", "/s", RATE(RAM_FAULTS), "all page faults"},
	{"Page Reads/sec", "/s", RATE(RAM_MAJOR_FAULTS),
	 "page faults that read a disk (pgmajfault)"},
	{"Pages/sec", "pages/s", RATE_OF_BOTH(RAM_MAJOR_FAULTS, RAM_SWAP_OUT),
	 "page faults that read a disk, and pages written to swap"},
	{"Pages Input/sec", "pages/s", RATE(RAM_SWAP_IN), "pages read from swap"},
	{"Pages Output/sec", "pages/s", RATE(RAM_SWAP_OUT), "pages written to swap"},
	{0},
};

static const struct counter_def paging_file[] = {
	{"% Usage", "%", PERCENT_OF(0, 1), "swap space in use"},
	{0},
};

static const struct counter_def process[] = {
	{"% Processor Time", "%", HOW_RATE, F(PID_USER) | F(PID_SYSTEM), 0, 100,
	 "CPU time; 100 is one CPU, so values may exceed 100"},
	{"% User Time", "%", HOW_RATE, F(PID_USER), 0, 100, "CPU time in the program"},
	{"% Privileged Time", "%", HOW_RATE, F(PID_SYSTEM), 0, 100, "CPU time in the kernel"},
	{"Working Set", "bytes", LEVEL(PID_RESIDENT),
	 "memory that is resident (RSS); shared pages count in each process"},
	{"Virtual Bytes", "bytes", LEVEL(PID_VIRTUAL), "address space"},
	{"Private Bytes", "bytes", LEVEL(PID_PRIVATE),
	 "anonymous memory, resident and swapped (RssAnon + VmSwap)"},
	{"Thread Count", "threads", LEVEL(PID_THREADS), "threads"},
	{"Handle Count", "handles", LEVEL(PID_HANDLES), "open file descriptors"},
	{"Page Faults/sec", "/s", RATE_OF_BOTH(PID_MINOR_FAULTS, PID_MAJOR_FAULTS), "page faults"},
	{"IO Read Bytes/sec", "bytes/s", RATE(PID_READ_BYTES),
	 "bytes read from disks; another user's process needs root"},
	{"IO Write Bytes/sec", "bytes/s", RATE(PID_WRITE_BYTES),
	 "bytes written, to disks in the end; another user's process needs root"},
	{"IO Data Bytes/sec", "bytes/s", RATE_OF_BOTH(PID_READ_BYTES, PID_WRITE_BYTES), "both"},
	{"ID Process", "pid", LEVEL(PID_NUMBER), "the process id"},
	{"Elapsed Time", "s", LEVEL(PID_ELAPSED), "since the process started"},
	{"Process Count", "processes", LEVEL(PID_COUNT),
	 "processes with this name; for name#* and _Total"},
	{0},
};

static const struct counter_def physical_disk[] = {
	{"% Disk Time", "%", HOW_RATE_EACH, F(DISK_BUSY_MS), F(DISK_COUNT), 0.1,
	 "time with a request under way; _Total is the mean of the disks"},
	{"Disk Reads/sec", "/s", RATE(DISK_READS), "read requests finished"},
	{"Disk Writes/sec", "/s", RATE(DISK_WRITES), "write requests finished"},
	{"Disk Transfers/sec", "/s", RATE_OF_BOTH(DISK_READS, DISK_WRITES), "both"},
	{"Disk Read Bytes/sec", "bytes/s", HOW_RATE, F(DISK_READ_SECTORS), 0, 512, "bytes read"},
	{"Disk Write Bytes/sec", "bytes/s", HOW_RATE, F(DISK_WRITE_SECTORS), 0, 512,
	 "bytes written"},
	{"Disk Bytes/sec", "bytes/s", HOW_RATE, F(DISK_READ_SECTORS) | F(DISK_WRITE_SECTORS), 0,
	 512, "both"},
	{"Avg. Disk sec/Read", "s", HOW_AVERAGE, F(DISK_READ_MS), F(DISK_READS), 0.001,
	 "duration of a read; 0 when there was none"},
	{"Avg. Disk sec/Write", "s", HOW_AVERAGE, F(DISK_WRITE_MS), F(DISK_WRITES), 0.001,
	 "duration of a write; 0 when there was none"},
	{"Avg. Disk sec/Transfer", "s", HOW_AVERAGE, F(DISK_READ_MS) | F(DISK_WRITE_MS),
	 F(DISK_READS) | F(DISK_WRITES), 0.001, "duration of a request; 0 when there was none"},
	{"Avg. Disk Queue Length", "requests", HOW_RATE, F(DISK_QUEUE_MS), 0, 0.001,
	 "requests under way, on average"},
	{"Current Disk Queue Length", "requests", LEVEL(DISK_IN_FLIGHT), "requests under way now"},
	{0},
};

static const struct counter_def logical_disk[] = {
	{"% Free Space", "%", PERCENT_OF(VOLUME_FREE, VOLUME_TOTAL),
	 "space left for users without privileges"},
	{"Free Megabytes", "MiB", HOW_LEVEL, F(VOLUME_FREE), 0, 1.0 / 1048576, "the same in MiB"},
	{0},
};

static const struct counter_def network[] = {
	{"Bytes Received/sec", "bytes/s", RATE(NET_IN_BYTES), "bytes received"},
	{"Bytes Sent/sec", "bytes/s", RATE(NET_OUT_BYTES), "bytes sent"},
	{"Bytes Total/sec", "bytes/s", RATE_OF_BOTH(NET_IN_BYTES, NET_OUT_BYTES), "both"},
	{"Packets Received/sec", "/s", RATE(NET_IN_PACKETS), "packets received"},
	{"Packets Sent/sec", "/s", RATE(NET_OUT_PACKETS), "packets sent"},
	{"Packets/sec", "/s", RATE_OF_BOTH(NET_IN_PACKETS, NET_OUT_PACKETS), "both"},
	{"Packets Received Errors", "packets", LEVEL(NET_IN_ERRORS),
	 "received with errors, since the interface came up"},
	{"Packets Outbound Errors", "packets", LEVEL(NET_OUT_ERRORS),
	 "not sent because of errors, since the interface came up"},
	{"Packets Received Discarded", "packets", LEVEL(NET_IN_DROPPED),
	 "received and dropped, since the interface came up"},
	{"Packets Outbound Discarded", "packets", LEVEL(NET_OUT_DROPPED),
	 "dropped before sending, since the interface came up"},
	{"Errors/sec", "/s", RATE_OF_BOTH(NET_IN_ERRORS, NET_OUT_ERRORS),
	 "packets with errors, both ways"},
	{"Discarded/sec", "/s", RATE_OF_BOTH(NET_IN_DROPPED, NET_OUT_DROPPED),
	 "packets dropped, both ways"},
	{0},
};

static const struct counter_def tcp[] = {
	{"Segments Retransmitted/sec", "/s", RATE(TCP_RETRANSMITTED),
	 "segments sent again; Linux counts IPv4 and IPv6 together"},
	{"Segments Sent/sec", "/s", RATE(TCP_OUT), "segments sent"},
	{"Segments Received/sec", "/s", RATE(TCP_IN), "segments received"},
	{"Segments/sec", "/s", RATE_OF_BOTH(TCP_IN, TCP_OUT), "both"},
	{"Connections Established", "connections", LEVEL(TCP_ESTABLISHED),
	 "connections that are open"},
	{"Connections Active", "connections", LEVEL(TCP_ACTIVE),
	 "outgoing connections opened since the system started"},
	{"Connections Passive", "connections", LEVEL(TCP_PASSIVE),
	 "incoming connections accepted since the system started"},
	{"Connection Failures", "connections", LEVEL(TCP_FAILED),
	 "connections that failed to open since the system started"},
	{"Connections Reset", "connections", LEVEL(TCP_RESET),
	 "connections that were reset since the system started"},
	{0},
};

/*
 * From total=, which grows with each read (kernel/sched/psi.c, psi_show() of 5.2 and later); avg10
 * changes every 2 s.
 */
static const struct counter_def pressure[] = {
	{"% some Time", "%", HOW_RATE, F(PSI_SOME_US), 0, 0.0001,
	 "time in which a thread waited for the resource, since the last reading"},
	{"% full Time", "%", HOW_RATE, F(PSI_FULL_US), 0, 0.0001,
	 "time in which all threads that had work waited for it, since the last reading"},
	{"some avg10", "%", LEVEL(PSI_SOME_10),
	 "time in which a thread waited for the resource, mean of 10 s"},
	{"some avg60", "%", LEVEL(PSI_SOME_60), "the same, mean of 60 s"},
	{"some avg300", "%", LEVEL(PSI_SOME_300), "the same, mean of 300 s"},
	{"full avg10", "%", LEVEL(PSI_FULL_10),
	 "time in which all threads that had work waited for it, mean of 10 s"},
	{"full avg60", "%", LEVEL(PSI_FULL_60), "the same, mean of 60 s"},
	{"full avg300", "%", LEVEL(PSI_FULL_300), "the same, mean of 300 s"},
	{0},
};

static const struct counter_def cgroup[] = {
	{"% Processor Time", "%", HOW_RATE, F(CG_CPU_US), 0, 0.0001,
	 "CPU time of the group; 100 is one CPU"},
	{"% User Time", "%", HOW_RATE, F(CG_USER_US), 0, 0.0001, "CPU time in programs"},
	{"% Privileged Time", "%", HOW_RATE, F(CG_SYSTEM_US), 0, 0.0001, "CPU time in the kernel"},
	{"% Throttled Time", "%", HOW_RATE, F(CG_THROTTLED_US), 0, 0.0001,
	 "time that its CPUs were throttled by the group's quota"},
	{"memory.current", "bytes", LEVEL(CG_MEMORY), "memory in use"},
	{"memory.swap.current", "bytes", LEVEL(CG_SWAP), "swap in use"},
	{"% Memory Limit", "%", PERCENT_OF(CG_MEMORY, CG_MEMORY_MAX),
	 "share of memory.max in use; absent without a limit"},
	{"memory.events oom_kill", "processes", LEVEL(CG_OOM_KILLS),
	 "processes killed for lack of memory"},
	{"memory.events oom_kill/sec", "/s", RATE(CG_OOM_KILLS), "the same, per second"},
	{"memory.events high/sec", "/s", RATE(CG_AT_HIGH), "times it was slowed at memory.high"},
	{"memory.events max/sec", "/s", RATE(CG_AT_MAX), "times it reached memory.max"},
	{"memory.events oom/sec", "/s", RATE(CG_OOM), "times it had no memory left at memory.max"},
	{"cpu.pressure some", "%", HOW_RATE, F(CG_CPU_SOME_US), 0, 0.0001,
	 "time in which one of its threads waited for a CPU"},
	{"memory.pressure some", "%", HOW_RATE, F(CG_MEMORY_SOME_US), 0, 0.0001,
	 "time in which one of its threads waited for memory"},
	{"memory.pressure full", "%", HOW_RATE, F(CG_MEMORY_FULL_US), 0, 0.0001,
	 "time in which all of its threads that had work waited for memory"},
	{"io.pressure some", "%", HOW_RATE, F(CG_IO_SOME_US), 0, 0.0001,
	 "time in which one of its threads waited for a disk"},
	{"io.pressure full", "%", HOW_RATE, F(CG_IO_FULL_US), 0, 0.0001,
	 "time in which all of its threads that had work waited for a disk"},
	{"pids.current", "threads", LEVEL(CG_PIDS), "threads in the group"},
	{"IO Read Bytes/sec", "bytes/s", RATE(CG_READ_BYTES), "bytes read from disks"},
	{"IO Write Bytes/sec", "bytes/s", RATE(CG_WRITE_BYTES), "bytes written to disks"},
	{0},
};

const struct counter_category counter_categories[PROC_CATEGORIES] = {
	{PROC_PROCESSOR, "Processor", "_Total or a CPU's number", processor},
	{PROC_SYSTEM, "System", "none", sys},
	{PROC_MEMORY, "Memory", "none", memory},
	{PROC_PAGING_FILE, "Paging File", "_Total", paging_file},
	{PROC_PROCESS, "Process", "name, name#1, name#* (all), pid=N or _Total", process},
	{PROC_PHYSICAL_DISK, "PhysicalDisk", "_Total or a device, like sda", physical_disk},
	{PROC_LOGICAL_DISK, "LogicalDisk", "_Total or a directory where a local disk is mounted",
	 logical_disk},
	{PROC_NETWORK, "Network Interface", "an interface, like eth0; _Total is all but lo",
	 network},
	{PROC_TCP, "TCPv4", "none", tcp},
	{PROC_PRESSURE, "Pressure", "cpu, memory, io or irq", pressure},
	{PROC_CGROUP, "Cgroup", "path of a version 2 control group, like /system.slice", cgroup},
};

/* ---- names ----------------------------------------------------------------------------------- */

/* What programs tell here of what Windows counts for them; NULL = no idea. */
static const char *instead_of(const char *category)
{
	static const struct {
		const char *begins, *instead;
	} windows[] = {
		{".NET CLR Exceptions", "System.Runtime:exception-count:PROGRAM"},
		{".NET CLR LocksAndThreads",
		 "System.Runtime:monitor-lock-contention-count:PROGRAM"},
		{".NET CLR Jit", "System.Runtime:methods-jitted-count:PROGRAM"},
		{".NET CLR Loading", "System.Runtime:assembly-count:PROGRAM"},
		{".NET CLR",
		 "the counters of System.Runtime, like System.Runtime:alloc-rate:PROGRAM"},
		{"ASP.NET", "Microsoft.AspNetCore.Hosting:requests-per-second:PROGRAM"},
		{"W3SVC_W3WP", "Microsoft.AspNetCore.Hosting:requests-per-second:PROGRAM, or "
			       "Prometheus:METRIC:URL for another server"},
		{"Web Service", "Prometheus:METRIC:URL of the server"},
		{"HTTP Service", "Prometheus:METRIC:URL of the server"},
		{"SQLServer", "Prometheus:METRIC:URL of its exporter"},
		{"MSSQL", "Prometheus:METRIC:URL of its exporter"},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(windows); i++)
		if (strncasecmp(category, windows[i].begins, strlen(windows[i].begins)) == 0)
			return windows[i].instead;
	return NULL;
}

static int unknown_category(const char *name, const struct counter_name *parts, struct err *err)
{
	const char *instead = instead_of(parts->category);
	struct nearest near = {.wanted = parts->category};
	struct buf text = {0};
	size_t i;

	if (instead)
		return err_set(err, ERR_NOT_FOUND,
			       "the counter '%s' is one of Windows; here use %s", name, instead);
	for (i = 0; i < PROC_CATEGORIES; i++)
		nearest_offer(&near, counter_categories[i].name);
	nearest_put(&near, "'", "'", &text);
	for (i = 0; !near.n && i < PROC_CATEGORIES; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", counter_categories[i].name);
	err_set(err, ERR_NOT_FOUND,
		"the counter '%s': there is no category '%s'; %s %s%s ('recorder counters' lists "
		"all)", name, parts->category, near.n ? "did you mean" : "there are",
		buf_text(&text), near.n ? "?" : "");
	buf_free(&text);
	return ERR_NOT_FOUND;
}

static int unknown_counter(const char *name, const struct counter_name *parts,
			   const struct counter_category *category, struct err *err)
{
	struct nearest near = {.wanted = parts->counter};
	const struct counter_def *def;
	struct buf text = {0};

	for (def = category->counters; def->name; def++)
		nearest_offer(&near, def->name);
	/* Nothing is near: name one counter, so that the error shows a working example. */
	if (!near.n)
		near.names[near.n++] = category->counters[0].name;
	nearest_put(&near, "'", "'", &text);
	err_set(err, ERR_NOT_FOUND,
		"the counter '%s': the category '%s' has no counter '%s'; the nearest is %s "
		"('recorder counters %s:' lists all)", name, category->name, parts->counter,
		buf_text(&text), category->name);
	buf_free(&text);
	return ERR_NOT_FOUND;
}

/* Up to the largest possible pid (proc(5), pid_max: 4,194,304); CPUs are far fewer. */
static bool is_number(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 7 && !text[n];
}

/* An instance need not exist now, but it must be possible: else the rule would wait for ever. */
static int check_instance(const char *name, const struct counter_category *category,
			  const char *instance, struct err *err)
{
	bool total = !*instance || text_same_fold(instance, "_Total");
	bool good = true;
	char start[5];

	snprintf(start, sizeof(start), "%.4s", instance);
	if (strcmp(category->instances, "none") == 0)
		good = total;
	else if (category->id == PROC_PROCESSOR)
		good = total || is_number(instance);
	else if (category->id == PROC_PRESSURE)
		good = text_same_fold(instance, "cpu") || text_same_fold(instance, "memory") ||
		       text_same_fold(instance, "io") || text_same_fold(instance, "irq");
	else if (category->id == PROC_PROCESS && text_same_fold(start, "pid="))
		good = is_number(instance + 4);
	if (good)
		return 0;
	return err_set(err, ERR_USAGE,
		       "the counter '%s': '%s' cannot be an instance of %s; allowed: %s", name,
		       instance, category->name, category->instances);
}

const struct counter_def *counter_def_find(const struct counter_name *name,
					   const struct counter_category **category)
{
	const struct counter_category *c = counter_categories, *end = c + PROC_CATEGORIES;
	const struct counter_def *def;

	while (c < end && !text_same_fold(name->category, c->name))
		c++;
	*category = c < end ? c : NULL;
	if (c == end)
		return NULL;
	for (def = c->counters; def->name && !text_same_fold(name->counter, def->name); def++)
		;
	return def->name ? def : NULL;
}

int proc_counter_find(const char *name, struct proc_counter *out, struct err *err)
{
	const struct counter_category *category;
	const struct counter_def *def;
	struct counter_name parts;
	int rc;

	rc = counter_name_split(name, &parts, err);
	if (rc)
		return rc;
	def = counter_def_find(&parts, &category);
	if (!category)
		return unknown_category(name, &parts, err);
	if (!def)
		return unknown_counter(name, &parts, category, err);
	rc = check_instance(name, category, parts.instance, err);
	if (rc)
		return rc;
	out->category = category;
	out->def = def;
	snprintf(out->instance, sizeof(out->instance), "%s", parts.instance);
	return 0;
}

/* ---- calculation ----------------------------------------------------------------------------- */

bool counter_needs_two(const struct counter_def *def)
{
	return def->how != HOW_LEVEL && def->how != HOW_LEVEL_SHARE;
}

uint32_t counter_fields(const struct counter_def *def)
{
	return def->a | def->b;
}

static double sum_fields(const struct counter_raw *raw, uint32_t fields)
{
	double v = 0;
	uint32_t i;

	for (i = 0; i < PROC_FIELDS_MAX; i++)
		if (fields & F(i))
			v += raw->v[i];
	return v;
}

static bool is_unknown(double v)
{
	return v != v;                       /* NaN; isnan() gives a warning with mingw */
}

static enum counter_result current_value(const struct counter_def *def,
					 const struct counter_raw *now, double *out)
{
	double a = sum_fields(now, def->a), b = sum_fields(now, def->b);

	if (is_unknown(a + b) || (def->how == HOW_LEVEL_SHARE && b == 0))
		return COUNTER_ABSENT;
	*out = def->scale * (def->how == HOW_LEVEL ? a - b : a / b);
	return COUNTER_VALUE;
}

enum counter_result counter_value(const struct counter_def *def, const struct counter_raw *before,
				  const struct counter_raw *now, double *out)
{
	double a, b = 1;

	if (!counter_needs_two(def))
		return current_value(def, now, out);
	if (is_unknown(sum_fields(now, counter_fields(def))))
		return COUNTER_ABSENT;
	if (!before || before->identity != now->identity || now->time_ns <= before->time_ns)
		return COUNTER_NOT_YET;
	a = sum_fields(now, def->a) - sum_fields(before, def->a);
	if (def->how == HOW_SHARE || def->how == HOW_AVERAGE) {
		b = sum_fields(now, def->b) - sum_fields(before, def->b);
	} else {
		b = (double)(now->time_ns - before->time_ns) / (double)NS_PER_SEC;
		if (def->how == HOW_RATE_EACH)
			b *= sum_fields(now, def->b);
	}
	if (def->how == HOW_AVERAGE && a == 0 && b == 0) {
		*out = 0;
		return COUNTER_VALUE;
	}
	/* False for NaN too: a field that has just become readable. */
	if (!(a >= 0 && b > 0))
		return COUNTER_NOT_YET;
	*out = def->scale * a / b;
	return COUNTER_VALUE;
}

enum counter_result counter_next_value(const struct counter_def *def, struct counter_raw *before,
				       enum counter_result result, const struct counter_raw *now,
				       double *out)
{
	bool has_before = before->time_ns != 0, replaced;

	if (result == COUNTER_ABSENT)
		before->time_ns = 0;
	if (result != COUNTER_VALUE)
		return result;
	replaced = has_before && before->identity != now->identity;
	result = counter_value(def, has_before ? before : NULL, now, out);
	*before = *now;
	return replaced ? COUNTER_ABSENT : result;
}
