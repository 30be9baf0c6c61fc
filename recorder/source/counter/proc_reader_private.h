/*
 * What the files of the reader share.
 *
 * proc_reader_linux.c   kept files, the machine's own categories, moments
 * proc_tasks_linux.c    processes
 * proc_volumes_linux.c  mounted disks and control groups
 */
#pragma once

#include "base/buf.h"
#include "base/text.h"
#include "model/process_name.h"
#include "source/host/answers_linux.h"
#include "source/host/proc_parse.h"
#include "source/counter/proc_reader.h"

#include <dirent.h>
#include <string.h>

#define BIT(field) (1u << (field))
#define PROC_TEXT_MAX ((size_t)4 << 20)
#define PROC_KEPT_FDS 10
#define TASK_NAME_BYTES 128

enum proc_file {
	FILE_STAT, FILE_LOADAVG, FILE_UPTIME, FILE_MEMINFO, FILE_VMSTAT, FILE_DISKSTATS,
	FILE_NET_DEV, FILE_SNMP, FILE_MOUNTS, FILE_PSI_CPU, FILE_PSI_MEMORY, FILE_PSI_IO,
	FILE_PSI_IRQ, PROC_FILES,
};

struct kept_file {
	int fd;
	bool exists;
	uint64_t moment, time_ns;            /* when it was last read */
	struct buf text;
};

enum task_binding { TASK_NAME, TASK_PID, TASK_SUM };

struct proc_instance {
	struct proc_instance *next;
	const struct counter_category *category;
	char name[COUNTER_NAME_MAX];
	uint32_t fields;
	uint64_t moment;
	enum counter_result result;
	struct counter_raw raw;

	int dir_fd, fds[PROC_KEPT_FDS];      /* for a process or a control group; -1 = closed */

	enum task_binding binding;           /* processes only, from here on */
	char wanted[TASK_NAME_BYTES];        /* "" = all */
	uint32_t number, pid;
	uint64_t start_ticks;                /* the process bound now, or the last one */
	bool was_bound;                      /* to a pid */
	char comm[PROC_COMM_BYTES];
	char label[PROCESS_LABEL_BYTES];     /* the last process bound */
	double grown[PROC_FIELDS_MAX];       /* for a sum: growth since the first scan */
	double sum[PROC_FIELDS_MAX];         /* for a sum: the values at the last scan */
};

struct task {
	uint32_t pid, number;                /* number: among processes of its name */
	uint64_t start_ticks, key;           /* key: hash of the name without case */
	char name[TASK_NAME_BYTES];          /* what people typed: process_names_typed() */
	char comm[PROC_COMM_BYTES], file[TASK_NAME_BYTES];   /* file: "" = not known */
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES];
	double v[PROC_FIELDS_MAX];
};

struct proc_reader {
	int proc_fd;
	bool keep_open;
	uint64_t moment;
	struct kept_file files[PROC_FILES];
	struct proc_instance *instances;
	struct buf scratch;

	struct answers *answers;
	struct task *tasks;                  /* by pid */
	uint32_t ntasks;
	uint64_t scan_moment, scan_time_ns;  /* 0 = no scan yet */
	uint32_t sum_fields;                 /* the fields that sums need of every process */

	char cgroup_dir[256];                /* where version 2 is mounted; "" = not searched yet */
};

static inline bool is_total(const char *instance)
{
	return !*instance || text_same_fold(instance, "_Total");
}

static inline bool text_begins(struct text t, const char *start)
{
	size_t n = strlen(start);

	return (size_t)(t.end - t.at) >= n && memcmp(t.at, start, n) == 0;
}

/* Read the whole text of an open file from its start; false when it cannot be read. */
bool proc_read_fd(int fd, struct buf *out);
/* The text of a file of /proc at this moment; false when there is no such file. */
bool proc_file_text(struct proc_reader *r, enum proc_file file, struct text *out);

/* Open a directory in another one, for closedir(); NULL = failed. */
DIR *proc_open_dir(int dir_fd, const char *name);
/* Read all of `name` in dir_fd, through *kept if that is open; keep_open leaves *kept open. */
bool proc_read_at(struct proc_reader *r, int dir_fd, const char *name, int *kept, struct text *out);
void proc_instance_unbind(struct proc_instance *i);

void task_instance_init(struct proc_reader *r, struct proc_instance *i);
enum counter_result task_instance_read(struct proc_reader *r, struct proc_instance *i);
void task_list(struct proc_reader *r, proc_instance_found *found, void *ctx);
/* The number of processes that exist now. */
double task_count(struct proc_reader *r);

enum counter_result volume_read(struct proc_reader *r, struct proc_instance *i);
void volume_list(struct proc_reader *r, proc_instance_found *found, void *ctx);
enum counter_result cgroup_read(struct proc_reader *r, struct proc_instance *i);
void cgroup_list(struct proc_reader *r, proc_instance_found *found, void *ctx);
