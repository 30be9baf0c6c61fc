#include "base/nearest.h"
#include "source/counter/proc_table.h"

#include "base/os.h"

#include <stdio.h>
#include <string.h>

#define F(field) (1u << (field))

#define CPU_BUSY (F(CPU_USER) | F(CPU_NICE) | CPU_KERNEL)
#define CPU_KERNEL (F(CPU_SYSTEM) | F(CPU_IRQ) | F(CPU_SOFTIRQ))
#define CPU_ALL (CPU_BUSY | F(CPU_IDLE) | F(CPU_IOWAIT) | F(CPU_STEAL))

static const struct counter_def processor[] = {
	{ "% Processor Time", "%", HOW_SHARE, CPU_BUSY, CPU_ALL, 100,
	  "time that a CPU was busy: not idle, not waiting for disks, not stolen" },
	{ "% User Time", "%", HOW_SHARE, F(CPU_USER) | F(CPU_NICE), CPU_ALL, 100,
	  "time in programs" },
	{ "% Privileged Time", "%", HOW_SHARE, CPU_KERNEL, CPU_ALL, 100,
	  "time in the kernel, including interrupts" },
	{ "% Idle Time", "%", HOW_SHARE, F(CPU_IDLE) | F(CPU_IOWAIT), CPU_ALL, 100,
	  "time without work" },
	{ "% IO Wait Time", "%", HOW_SHARE, F(CPU_IOWAIT), CPU_ALL, 100,
	  "the part of idle time in which a thread waited for a disk" },
	{ "% Interrupt Time", "%", HOW_SHARE, F(CPU_IRQ), CPU_ALL, 100, "time in interrupts" },
	{ "% DPC Time", "%", HOW_SHARE, F(CPU_SOFTIRQ), CPU_ALL, 100,
	  "time in deferred interrupt work (softirq)" },
	{ "% Steal Time", "%", HOW_SHARE, F(CPU_STEAL), CPU_ALL, 100,
	  "time that the hypervisor gave to other machines" },
	{ NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL },
};

static const struct counter_def sys[] = {
	{"Processor Queue Length", "threads", HOW_LEVEL, F(SYS_QUEUE), 0, 1,
	 "ready threads in excess of the number of CPUs"},
	{"Running Threads", "threads", HOW_LEVEL, F(SYS_RUNNING), 0, 1,
	 "threads that run or are ready"},
	{"Blocked Threads", "threads", HOW_LEVEL, F(SYS_BLOCKED), 0, 1,
	 "threads that wait for a disk"},
	{"Context Switches/sec", "/s", HOW_RATE, F(SYS_SWITCHES), 0, 1,
	 "changes from one thread to another, all CPUs"},
	{"Forks/sec", "/s", HOW_RATE, F(SYS_FORKS), 0, 1, "processes and threads started"},
	{"Processes", "processes", HOW_LEVEL, F(SYS_PROCESSES), 0, 1, "processes that exist"},
	{"Threads", "threads", HOW_LEVEL, F(SYS_THREADS), 0, 1, "threads that exist"},
	{"System Up Time", "s", HOW_LEVEL, F(SYS_UPTIME), 0, 1, "since the system started"},
	{"Load Average 1 min", "threads", HOW_LEVEL, F(SYS_LOAD1), 0, 1,
	 "threads running, ready or waiting for a disk"},
	{"Load Average 5 min", "threads", HOW_LEVEL, F(SYS_LOAD5), 0, 1, "the same over 5 minutes"},
	{"Load Average 15 min", "threads", HOW_LEVEL, F(SYS_LOAD15), 0, 1,
	 "the same over 15 minutes"},
	{NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL},
};

static const struct counter_def memory[] = {
	{"Available Bytes", "bytes", HOW_LEVEL, F(MEM_AVAILABLE), 0, 1,
	 "memory available without swapping (MemAvailable)"},
	{"Available KBytes", "KiB", HOW_LEVEL, F(MEM_AVAILABLE), 0, 1.0 / 1024, "the same in KiB"},
	{"Available MBytes", "MiB", HOW_LEVEL, F(MEM_AVAILABLE), 0, 1.0 / 1048576,
	 "the same in MiB"},
	{"Committed Bytes", "bytes", HOW_LEVEL, F(MEM_COMMITTED), 0, 1,
	 "memory promised to programs (Committed_AS)"},
	{"Commit Limit", "bytes", HOW_LEVEL, F(MEM_LIMIT), 0, 1,
	 "what can be promised (CommitLimit)"},
	{"% Committed Bytes In Use", "%", HOW_LEVEL_SHARE, F(MEM_COMMITTED), F(MEM_LIMIT), 100,
	 "share of the commit limit in use; over 100 where the system overcommits"},
	{"Cache Bytes", "bytes", HOW_LEVEL, F(MEM_CACHE), 0, 1,
	 "file cache and reclaimable kernel memory"},
	{"Total Bytes", "bytes", HOW_LEVEL, F(MEM_TOTAL), 0, 1, "memory of the machine"},
	{"Free Bytes", "bytes", HOW_LEVEL, F(MEM_FREE), 0, 1, "unused memory"},
	{"Modified Bytes", "bytes", HOW_LEVEL, F(MEM_DIRTY), 0, 1,
	 "file pages to be written (Dirty)"},
	{"Swap Used Bytes", "bytes", HOW_LEVEL, F(MEM_SWAP_TOTAL), F(MEM_SWAP_FREE), 1,
	 "swap space in use"},
	{"Page Faults/sec", "/s", HOW_RATE, F(MEM_FAULTS), 0, 1, "all page faults"},
	{"Page Reads/sec", "/s", HOW_RATE, F(MEM_MAJOR_FAULTS), 0, 1,
	 "page faults that read a disk (pgmajfault)"},
	{"Pages/sec", "pages/s", HOW_RATE, F(MEM_MAJOR_FAULTS) | F(MEM_SWAP_OUT), 0, 1,
	 "page faults that read a disk, and pages written to swap"},
	{"Pages Input/sec", "pages/s", HOW_RATE, F(MEM_SWAP_IN), 0, 1, "pages read from swap"},
	{"Pages Output/sec", "pages/s", HOW_RATE, F(MEM_SWAP_OUT), 0, 1, "pages written to swap"},
	{NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL},
};

static const struct counter_def paging_file[] = {
	{ "% Usage", "%", HOW_LEVEL_SHARE, F(0), F(1), 100, "swap space in use" },
	{ NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL },
};

static const struct counter_def process[] = {
	{ "% Processor Time", "%", HOW_RATE, F(PID_USER) | F(PID_SYSTEM), 0, 100,
	  "CPU time; 100 is one CPU, so values may exceed 100" },
	{ "% User Time", "%", HOW_RATE, F(PID_USER), 0, 100, "CPU time in the program" },
	{ "% Privileged Time", "%", HOW_RATE, F(PID_SYSTEM), 0, 100, "CPU time in the kernel" },
	{ "Working Set", "bytes", HOW_LEVEL, F(PID_RESIDENT), 0, 1,
	  "memory that is resident (RSS); shared pages count in each process" },
	{ "Virtual Bytes", "bytes", HOW_LEVEL, F(PID_VIRTUAL), 0, 1, "address space" },
	{ "Private Bytes", "bytes", HOW_LEVEL, F(PID_PRIVATE), 0, 1,
	  "anonymous memory, resident and swapped (RssAnon + VmSwap)" },
	{ "Thread Count", "threads", HOW_LEVEL, F(PID_THREADS), 0, 1, "threads" },
	{ "Handle Count", "handles", HOW_LEVEL, F(PID_HANDLES), 0, 1, "open file descriptors" },
	{ "Page Faults/sec", "/s", HOW_RATE, F(PID_MINOR_FAULTS) | F(PID_MAJOR_FAULTS), 0, 1,
	  "page faults" },
	{ "IO Read Bytes/sec", "bytes/s", HOW_RATE, F(PID_READ_BYTES), 0, 1,
	  "bytes read from disks; another user's process needs root" },
	{ "IO Write Bytes/sec", "bytes/s", HOW_RATE, F(PID_WRITE_BYTES), 0, 1,
	  "bytes written, to disks in the end; another user's process needs root" },
	{ "IO Data Bytes/sec", "bytes/s", HOW_RATE, F(PID_READ_BYTES) | F(PID_WRITE_BYTES), 0, 1,
	  "both" },
	{ "ID Process", "pid", HOW_LEVEL, F(PID_NUMBER), 0, 1, "the process id" },
	{ "Elapsed Time", "s", HOW_LEVEL, F(PID_ELAPSED), 0, 1, "since the process started" },
	{ "Process Count", "processes", HOW_LEVEL, F(PID_COUNT), 0, 1,
	  "processes with this name; for name#* and _Total" },
	{ NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL },
};

static const struct counter_def physical_disk[] = {
	{"% Disk Time", "%", HOW_RATE_EACH, F(DISK_BUSY_MS), F(DISK_COUNT), 0.1,
	 "time with a request under way; _Total is the mean of the disks"},
	{"Disk Reads/sec", "/s", HOW_RATE, F(DISK_READS), 0, 1, "read requests finished"},
	{"Disk Writes/sec", "/s", HOW_RATE, F(DISK_WRITES), 0, 1, "write requests finished"},
	{"Disk Transfers/sec", "/s", HOW_RATE, F(DISK_READS) | F(DISK_WRITES), 0, 1, "both"},
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
	{"Current Disk Queue Length", "requests", HOW_LEVEL, F(DISK_IN_FLIGHT), 0, 1,
	 "requests under way now"},
	{NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL},
};

static const struct counter_def logical_disk[] = {
	{ "% Free Space", "%", HOW_LEVEL_SHARE, F(VOLUME_FREE), F(VOLUME_TOTAL), 100,
	  "space left for users without privileges" },
	{ "Free Megabytes", "MiB", HOW_LEVEL, F(VOLUME_FREE), 0, 1.0 / 1048576, "the same in MiB" },
	{ NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL },
};

static const struct counter_def network[] = {
	{"Bytes Received/sec", "bytes/s", HOW_RATE, F(NET_IN_BYTES), 0, 1, "bytes received"},
	{"Bytes Sent/sec", "bytes/s", HOW_RATE, F(NET_OUT_BYTES), 0, 1, "bytes sent"},
	{"Bytes Total/sec", "bytes/s", HOW_RATE, F(NET_IN_BYTES) | F(NET_OUT_BYTES), 0, 1, "both"},
	{"Packets Received/sec", "/s", HOW_RATE, F(NET_IN_PACKETS), 0, 1, "packets received"},
	{"Packets Sent/sec", "/s", HOW_RATE, F(NET_OUT_PACKETS), 0, 1, "packets sent"},
	{"Packets/sec", "/s", HOW_RATE, F(NET_IN_PACKETS) | F(NET_OUT_PACKETS), 0, 1, "both"},
	{"Packets Received Errors", "packets", HOW_LEVEL, F(NET_IN_ERRORS), 0, 1,
	 "received with errors, since the interface came up"},
	{"Packets Outbound Errors", "packets", HOW_LEVEL, F(NET_OUT_ERRORS), 0, 1,
	 "not sent because of errors, since the interface came up"},
	{"Packets Received Discarded", "packets", HOW_LEVEL, F(NET_IN_DROPPED), 0, 1,
	 "received and dropped, since the interface came up"},
	{"Packets Outbound Discarded", "packets", HOW_LEVEL, F(NET_OUT_DROPPED), 0, 1,
	 "dropped before sending, since the interface came up"},
	{"Errors/sec", "/s", HOW_RATE, F(NET_IN_ERRORS) | F(NET_OUT_ERRORS), 0, 1,
	 "packets with errors, both ways"},
	{"Discarded/sec", "/s", HOW_RATE, F(NET_IN_DROPPED) | F(NET_OUT_DROPPED), 0, 1,
	 "packets dropped, both ways"},
	{NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL},
};

static const struct counter_def tcp[] = {
	{ "Segments Retransmitted/sec", "/s", HOW_RATE, F(TCP_RETRANSMITTED), 0, 1,
	  "segments sent again; Linux counts IPv4 and IPv6 together" },
	{ "Segments Sent/sec", "/s", HOW_RATE, F(TCP_OUT), 0, 1, "segments sent" },
	{ "Segments Received/sec", "/s", HOW_RATE, F(TCP_IN), 0, 1, "segments received" },
	{ "Segments/sec", "/s", HOW_RATE, F(TCP_IN) | F(TCP_OUT), 0, 1, "both" },
	{ "Connections Established", "connections", HOW_LEVEL, F(TCP_ESTABLISHED), 0, 1,
	  "connections that are open" },
	{ "Connections Active", "connections", HOW_LEVEL, F(TCP_ACTIVE), 0, 1,
	  "outgoing connections opened since the system started" },
	{ "Connections Passive", "connections", HOW_LEVEL, F(TCP_PASSIVE), 0, 1,
	  "incoming connections accepted since the system started" },
	{ "Connection Failures", "connections", HOW_LEVEL, F(TCP_FAILED), 0, 1,
	  "connections that failed to open since the system started" },
	{ "Connections Reset", "connections", HOW_LEVEL, F(TCP_RESET), 0, 1,
	  "connections that were reset since the system started" },
	{ NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL },
};

/* Not from total=: the kernel updates that only every 2 s, so its rate would be 0 or double. */
static const struct counter_def pressure[] = {
	{ "some avg10", "%", HOW_LEVEL, F(PSI_SOME_10), 0, 1,
	  "time in which a thread waited for the resource, mean of 10 s" },
	{ "some avg60", "%", HOW_LEVEL, F(PSI_SOME_60), 0, 1, "the same, mean of 60 s" },
	{ "some avg300", "%", HOW_LEVEL, F(PSI_SOME_300), 0, 1, "the same, mean of 300 s" },
	{ "full avg10", "%", HOW_LEVEL, F(PSI_FULL_10), 0, 1,
	  "time in which all threads that had work waited for it, mean of 10 s" },
	{ "full avg60", "%", HOW_LEVEL, F(PSI_FULL_60), 0, 1, "the same, mean of 60 s" },
	{ "full avg300", "%", HOW_LEVEL, F(PSI_FULL_300), 0, 1, "the same, mean of 300 s" },
	{ NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL },
};

static const struct counter_def cgroup[] = {
	{"% Processor Time", "%", HOW_RATE, F(CG_CPU_US), 0, 0.0001,
	 "CPU time of the group; 100 is one CPU"},
	{"% User Time", "%", HOW_RATE, F(CG_USER_US), 0, 0.0001, "CPU time in programs"},
	{"% Privileged Time", "%", HOW_RATE, F(CG_SYSTEM_US), 0, 0.0001, "CPU time in the kernel"},
	{"% Throttled Time", "%", HOW_RATE, F(CG_THROTTLED_US), 0, 0.0001,
	 "time that its CPUs were throttled by the group's quota"},
	{"memory.current", "bytes", HOW_LEVEL, F(CG_MEMORY), 0, 1, "memory in use"},
	{"memory.swap.current", "bytes", HOW_LEVEL, F(CG_SWAP), 0, 1, "swap in use"},
	{"% Memory Limit", "%", HOW_LEVEL_SHARE, F(CG_MEMORY), F(CG_MEMORY_MAX), 100,
	 "share of memory.max in use; absent without a limit"},
	{"memory.events oom_kill", "processes", HOW_LEVEL, F(CG_OOM_KILLS), 0, 1,
	 "processes killed for lack of memory"},
	{"pids.current", "threads", HOW_LEVEL, F(CG_PIDS), 0, 1, "threads in the group"},
	{"IO Read Bytes/sec", "bytes/s", HOW_RATE, F(CG_READ_BYTES), 0, 1, "bytes read from disks"},
	{"IO Write Bytes/sec", "bytes/s", HOW_RATE, F(CG_WRITE_BYTES), 0, 1,
	 "bytes written to disks"},
	{NULL, NULL, HOW_LEVEL, 0, 0, 0, NULL},
};

const struct counter_category counter_categories[PROC_CATEGORIES] = {
	[PROC_PROCESSOR] = {PROC_PROCESSOR, "Processor", "_Total or a CPU's number", CPU_FIELDS,
			    CPU_ALL, processor},
	[PROC_SYSTEM] = {PROC_SYSTEM, "System", "none", SYS_FIELDS, F(SYS_SWITCHES) | F(SYS_FORKS),
			 sys},
	[PROC_MEMORY] = {PROC_MEMORY, "Memory", "none", MEM_FIELDS,
			 F(MEM_FAULTS) | F(MEM_MAJOR_FAULTS) | F(MEM_SWAP_IN) | F(MEM_SWAP_OUT),
			 memory},
	[PROC_PAGING_FILE] = {PROC_PAGING_FILE, "Paging File", "_Total", 2, 0, paging_file},
	[PROC_PROCESS] = {PROC_PROCESS, "Process", "name, name#1, name#* (all), pid=N or _Total",
			  PID_FIELDS,
			  F(PID_USER) | F(PID_SYSTEM) | F(PID_MINOR_FAULTS) | F(PID_MAJOR_FAULTS) |
				  F(PID_READ_BYTES) | F(PID_WRITE_BYTES),
			  process},
	[PROC_PHYSICAL_DISK] = {PROC_PHYSICAL_DISK, "PhysicalDisk", "_Total or a device, like sda",
				DISK_FIELDS,
				(F(DISK_FIELDS) - 1) & ~(F(DISK_IN_FLIGHT) | F(DISK_COUNT)),
				physical_disk},
	[PROC_LOGICAL_DISK] = {PROC_LOGICAL_DISK, "LogicalDisk",
			       "_Total or a directory where a local disk is mounted", VOLUME_FIELDS,
			       0, logical_disk},
	[PROC_NETWORK] = {PROC_NETWORK, "Network Interface",
			  "an interface, like eth0; _Total is all but lo", NET_FIELDS,
			  F(NET_FIELDS) - 1, network},
	[PROC_TCP] = {PROC_TCP, "TCPv4", "none", TCP_FIELDS,
		      (F(TCP_FIELDS) - 1) & ~F(TCP_ESTABLISHED), tcp},
	[PROC_PRESSURE] = {PROC_PRESSURE, "Pressure", "cpu, memory, io or irq", PSI_FIELDS, 0,
			   pressure},
	[PROC_CGROUP] = {PROC_CGROUP, "Cgroup",
			 "path of a version 2 control group, like /system.slice", CG_FIELDS,
			 F(CG_CPU_US) | F(CG_USER_US) | F(CG_SYSTEM_US) | F(CG_THROTTLED_US) |
				 F(CG_READ_BYTES) | F(CG_WRITE_BYTES),
			 cgroup},
};

/* ---- names ----------------------------------------------------------------------------------- */

static int unknown_category(const char *name, const struct counter_name *parts, struct err *err)
{
	struct nearest near = {.wanted = parts->category};
	struct buf text = {0};
	size_t i;

	for (i = 0; i < PROC_CATEGORIES; i++)
		nearest_offer(&near, counter_categories[i].name);
	nearest_put(&near, "'", "'", &text);
	for (i = 0; !near.n && i < PROC_CATEGORIES; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", counter_categories[i].name);
	err_set(err, ERR_NOT_FOUND,
		"the counter '%s': there is no category '%s'; %s %s%s ('recorder counters' lists "
		"all)",
		name, parts->category, near.n ? "did you mean" : "there are", buf_text(&text),
		near.n ? "?" : "");
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
	bool total = !*instance || name_equal(instance, "_Total");
	bool good = true;
	char start[5];

	snprintf(start, sizeof(start), "%.4s", instance);
	if (strcmp(category->instances, "none") == 0)
		good = total;
	else if (category->id == PROC_PROCESSOR)
		good = total || is_number(instance);
	else if (category->id == PROC_PROCESS && name_equal(start, "pid="))
		good = is_number(instance + 4);
	if (good)
		return 0;
	return err_set(err, ERR_USAGE,
		       "the counter '%s': '%s' cannot be an instance of %s; allowed: %s", name,
		       instance, category->name, category->instances);
}

int proc_counter_find(const char *name, struct proc_counter *out, struct err *err)
{
	const struct counter_category *category = NULL;
	const struct counter_def *def;
	struct counter_name parts;
	size_t i;
	int rc;

	rc = counter_name_split(name, &parts, err);
	if (rc)
		return rc;
	for (i = 0; i < PROC_CATEGORIES && !category; i++)
		if (name_equal(parts.category, counter_categories[i].name))
			category = &counter_categories[i];
	if (!category)
		return unknown_category(name, &parts, err);
	for (def = category->counters; def->name; def++)
		if (name_equal(parts.counter, def->name))
			break;
	if (!def->name)
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

static double sum(const struct counter_raw *raw, uint32_t fields)
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

static enum counter_result level(const struct counter_def *def, const struct counter_raw *now,
				 double *out)
{
	double a = sum(now, def->a), b = sum(now, def->b);

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
		return level(def, now, out);
	if (is_unknown(sum(now, counter_fields(def))))
		return COUNTER_ABSENT;
	if (!before || before->identity != now->identity || now->time_ns <= before->time_ns)
		return COUNTER_NOT_YET;
	a = sum(now, def->a) - sum(before, def->a);
	if (def->how == HOW_SHARE || def->how == HOW_AVERAGE) {
		b = sum(now, def->b) - sum(before, def->b);
	} else {
		b = (double)(now->time_ns - before->time_ns) / (double)NS_PER_SEC;
		if (def->how == HOW_RATE_EACH)
			b *= sum(now, def->b);
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
