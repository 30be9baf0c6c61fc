/*
 * The counters of Linux: one table that drives reading, listing, units and the errors about names.
 *
 * The fields of a category are the raw numbers of one instance of it (a CPU, a process, a disk). A
 * counter is a formula over fields of one or two readings. So a reader only fills in fields, and a
 * new counter over known fields is one line here. Portable, no state.
 */
#pragma once

#include "base/err.h"
#include "source/counter_name.h"
#include "source/counter/poll.h"

#include <stdbool.h>
#include <stdint.h>

enum proc_category_id {
	PROC_PROCESSOR,
	PROC_SYSTEM,
	PROC_MEMORY,
	PROC_PAGING_FILE,
	PROC_PROCESS,
	PROC_PHYSICAL_DISK,
	PROC_LOGICAL_DISK,
	PROC_NETWORK,
	PROC_TCP,
	PROC_PRESSURE,
	PROC_CGROUP,
	PROC_CATEGORIES,
};

#define PROC_FIELDS_MAX 20

/* The fields of each category, in the order of the kernel's texts where that helps. */
enum { CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL,
       CPU_FIELDS };
enum { SYS_SWITCHES, SYS_FORKS, SYS_RUNNING, SYS_BLOCKED, SYS_QUEUE, SYS_LOAD1, SYS_LOAD5,
       SYS_LOAD15, SYS_THREADS, SYS_UPTIME, SYS_PROCESSES, SYS_FIELDS };
enum { RAM_TOTAL, RAM_FREE, RAM_AVAILABLE, RAM_CACHE, RAM_COMMITTED, RAM_LIMIT, RAM_SWAP_TOTAL,
       RAM_SWAP_FREE, RAM_DIRTY, RAM_FAULTS, RAM_MAJOR_FAULTS, RAM_SWAP_IN, RAM_SWAP_OUT,
       RAM_FIELDS };
enum { PID_USER, PID_SYSTEM, PID_MINOR_FAULTS, PID_MAJOR_FAULTS, PID_THREADS, PID_VIRTUAL,
       PID_RESIDENT, PID_PRIVATE, PID_HANDLES, PID_READ_BYTES, PID_WRITE_BYTES, PID_NUMBER,
       PID_ELAPSED, PID_COUNT, PID_FIELDS };
enum { DISK_READS, DISK_READS_MERGED, DISK_READ_SECTORS, DISK_READ_MS, DISK_WRITES,
       DISK_WRITES_MERGED, DISK_WRITE_SECTORS, DISK_WRITE_MS, DISK_IN_FLIGHT, DISK_BUSY_MS,
       DISK_QUEUE_MS, DISK_COUNT, DISK_FIELDS };
enum { VOLUME_TOTAL, VOLUME_FREE, VOLUME_FIELDS };
enum { NET_IN_BYTES, NET_IN_PACKETS, NET_IN_ERRORS, NET_IN_DROPPED, NET_OUT_BYTES = 8,
       NET_OUT_PACKETS, NET_OUT_ERRORS, NET_OUT_DROPPED, NET_FIELDS };
enum { TCP_ACTIVE, TCP_PASSIVE, TCP_FAILED, TCP_RESET, TCP_ESTABLISHED, TCP_IN, TCP_OUT,
       TCP_RETRANSMITTED, TCP_FIELDS };
enum { PSI_SOME_10, PSI_SOME_60, PSI_SOME_300, PSI_SOME_US, PSI_FULL_10, PSI_FULL_60,
       PSI_FULL_300, PSI_FULL_US, PSI_FIELDS };
enum { CG_MEMORY, CG_SWAP, CG_MEMORY_MAX, CG_OOM_KILLS, CG_PIDS, CG_CPU_US, CG_USER_US,
       CG_SYSTEM_US, CG_THROTTLED_US, CG_READ_BYTES, CG_WRITE_BYTES, CG_AT_HIGH, CG_AT_MAX,
       CG_OOM, CG_CPU_SOME_US, CG_MEMORY_SOME_US, CG_MEMORY_FULL_US, CG_IO_SOME_US,
       CG_IO_FULL_US, CG_FIELDS };

/* One reading of one instance. */
struct counter_raw {
	uint64_t time_ns;                    /* when, by the recorder's clock */
	uint64_t identity;                /* differs when another process has taken over the name */
	double v[PROC_FIELDS_MAX];           /* NaN = not available */
};

enum counter_how {
	HOW_LEVEL,                           /* scale * (a - b), now */
	HOW_LEVEL_SHARE,                     /* scale * a / b, now */
	HOW_RATE,                            /* scale * growth of a, per second */
	HOW_RATE_EACH,                       /* the same divided by b now: mean of the instances */
	HOW_SHARE,                           /* scale * growth of a / growth of b */
	HOW_AVERAGE,                         /* the same, and 0 when b did not grow */
};

struct counter_def {
	const char *name, *unit;
	enum counter_how how;
	uint32_t a, b;                       /* bits of the fields to sum up */
	double scale;
	const char *meaning;
};

struct counter_category {
	enum proc_category_id id;
	const char *name;
	const char *instances;               /* what an instance is, in a few words */
	const struct counter_def *counters;  /* ends with name NULL */
};

extern const struct counter_category counter_categories[PROC_CATEGORIES];

struct proc_counter {
	const struct counter_category *category;
	const struct counter_def *def;
	char instance[COUNTER_NAME_MAX];
};

/* The counter with these names, or NULL; and its category, NULL if there is no such category. */
const struct counter_def *counter_def_find(const struct counter_name *name,
					   const struct counter_category **category);

/*
 * Look up a full name. The instance need not exist now.
 *
 * returns  0; ERR_USAGE when it does not have three parts; ERR_NOT_FOUND with the nearest names
 */
int proc_counter_find(const char *name, struct proc_counter *out, struct err *err);

/* Whether the counter needs two readings. */
bool counter_needs_two(const struct counter_def *def);
/* The bits of all fields that the counter uses. */
uint32_t counter_fields(const struct counter_def *def);

/* before: NULL = none. A field that decreased (a reset) gives COUNTER_NOT_YET. */
enum counter_result counter_value(const struct counter_def *def, const struct counter_raw *before,
				  const struct counter_raw *now, double *out);
/*
 * The same where a counter is read again and again. Another process that has taken over the name is
 * reported as absent once, so that the two processes are not mixed up.
 *
 * before   the last reading, time_ns 0 = none; updated
 * result   of this reading; now is valid for COUNTER_VALUE
 */
enum counter_result counter_next_value(const struct counter_def *def, struct counter_raw *before,
				       enum counter_result result, const struct counter_raw *now,
				       double *out);
