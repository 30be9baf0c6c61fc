/*
 * Parses the texts of /proc and of control groups: pure functions on buffers.
 *
 * Nothing here opens a file, so it is built and tested on both hosts, and fuzzed. The texts are not
 * NUL-terminated and are never trusted: a process may call itself ") R 1 (" or put a line feed into
 * its name. Numbers are doubles, exact up to 2^53, which is 9 PB in bytes.
 *
 * Source of the layouts: proc(5), Documentation/admin-guide/iostats.rst, accounting/psi.rst and
 * admin-guide/cgroup-v2.rst of the Linux kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_ROW_VALUES 20u
#define PROC_COMM_BYTES 64      /* the kernel gives at most 15; kworkers up to 63 */

/* A piece of text, borrowed. */
struct text {
	const char *at, *end;
};

struct text text_of(const char *bytes, size_t n);

/* Take the next line without its LF, or the next word between blanks; false at the end. */
bool text_line(struct text *rest, struct text *line);
bool text_word(struct text *rest, struct text *word);

/* A number: the whole text must be digits with an optional fraction, else false. */
bool text_number(struct text t, double *out);
bool text_is(struct text t, const char *s);

/* Copy as much as fits, NUL-terminated. */
void text_copy(struct text t, char *out, size_t n);

/*
 * One row: a name and the numbers after it, up to the first word that is not a number.
 *
 *	cpu0 6843 0 2509 ...             /proc/stat, vmstat, cpu.stat, memory.events
 *	MemTotal:  24684092 kB           /proc/meminfo, /proc/PID/status and io
 *	  eth0: 233953884 4649 ...       /proc/net/dev
 *	 254  0 vda 38328 9521 ...       /proc/diskstats
 */
struct proc_row {
	struct text name;                    /* without its colon */
	uint32_t n;
	double v[PROC_ROW_VALUES];           /* 0 from index n on */
};

/* Take the next row that has a name; n = 0 if it has no number. false at the end. */
bool proc_row_next(struct text *rest, struct proc_row *row);
bool proc_disk_next(struct text *rest, struct proc_row *row);

/* The first value of the row with this name; false when there is no such row. */
bool proc_value(struct text all, const char *name, double *out);

/* The number under a heading in net/snmp: "Tcp: RtoAlgorithm RtoMin ..." above "Tcp: 1 200 ...". */
bool proc_heading_value(struct text all, const char *row, const char *heading, double *out);

/*
 * The sum of key=NUMBER over the lines that begin with the word `first` (NULL = all lines): "some
 * avg10=0.00 ... total=15220311" of pressure files, "254:0 rbytes=1 wbytes=2" of io.stat.
 */
bool proc_key_sum(struct text all, const char *first, const char *key, double *out);

/* A partition has its disk's name and a number: sda1, nvme0n1p2; loop10 is not part of loop1. */
bool proc_disk_is_part_of(struct text name, struct text disk);

/* /proc/PID/stat; times in clock ticks. */
struct proc_stat {
	uint32_t pid, parent_pid, flags;     /* flags: PF_... of the kernel */
	char comm[PROC_COMM_BYTES];
	char state;                          /* R, S, D, Z (ended, not yet reaped) and so on */
	double utime, stime, minor_faults, major_faults, threads, virtual_bytes, resident_pages;
	uint64_t start_ticks;                /* since boot */
	uint64_t code;                       /* where the program's code begins; 0, 1 = not told */
};
bool proc_stat_parse(struct text all, struct proc_stat *out);

/* One line of /proc/self/mounts; dir has its octal escapes resolved. */
struct proc_mount {
	struct text device, type;
	char dir[256];
};
bool proc_mount_next(struct text *rest, struct proc_mount *out);

/* One line of /proc/PID/mountinfo. */
struct proc_mounted {
	uint32_t id, major, minor;           /* major:minor: the device of its files */
	struct text type;
	char dir[256];
	char layer[256];   /* of an overlay: its upper directory, else its first lower one; or "" */
};
bool proc_mounted_next(struct text *rest, struct proc_mounted *out);

/*
 * The display name of a process: the base name of the target of /proc/PID/exe, without " (deleted)"
 * and ".exe"; comm if exe is empty.
 */
void proc_display_name(const char *exe, const char *comm, char *out, size_t n);
