/* Processes from /proc, now (proc(5)). Any thread that may wait for files. */
#pragma once

#include "base/pool.h"
#include "model/process.h"
#include "model/process_name.h"
#include "source/host/proc_parse.h"

#include <sys/uio.h>

/*
 * Call one() for each number that names an entry of "/proc" or "/proc/PID/task" until it returns
 * false. returns  false when the directory cannot be opened; errno says why
 */
bool proc_each(const char *dir, bool (*one)(void *ctx, uint32_t number), void *ctx);

/* Has this process the machine's pid namespace, in which everything that runs has a pid? */
bool proc_sees_machine(void);

/* Read its memory up to the first bad page (process_vm_readv(2)). returns  how many bytes */
size_t proc_pid_memory(uint32_t pid, uint64_t address, void *to, size_t n);
/* The same of n pieces (at most IOV_MAX), up to the first bad page. */
size_t proc_pid_pieces(uint32_t pid, const struct iovec *here, const struct iovec *there,
		       unsigned n);

/* Load /proc/PID/NAME, at most max_bytes. returns  whether it could be read */
bool proc_pid_load(uint32_t pid, const char *name, size_t max_bytes, struct buf *out);
/*
 * A file that the kernel makes at the first read(), as stat and cgroup, with a NUL after it.
 * returns  its bytes; 0 = it cannot be read, or `room` is too small
 */
size_t proc_pid_whole(uint32_t pid, const char *name, char *to, size_t room);
/*
 * Call one() for each executable mapping, in the order of addresses, until it returns false; a path
 * is only there for the call, and as /proc/PID/maps has it, or "//toolong" as in the kernel's
 * records. From Linux 6.11 on only these are asked for: half of what the text takes, and its lines
 * need not be read. max_bytes: of such lines. returns  false when they are not known, or not all
 */
struct maps_line;
bool proc_pid_code(uint32_t pid, size_t max_bytes,
		   bool (*one)(void *ctx, const struct maps_line *l), void *ctx);
/* The target of /proc/PID/exe. returns  its length; 0 = not known, and out is "" */
size_t proc_pid_exe(uint32_t pid, char *out, size_t n);
/*
 * How to open a file that it maps: below its own root directory (/proc/PID/root). path: as its
 * mappings have it, which is from our root where the process was put into a directory (chroot(2)).
 * false: longer than out
 */
bool proc_pid_file(uint32_t pid, const char *path, size_t length, char *out, size_t n);
/* Its user. false: no such process. */
bool proc_pid_user(uint32_t pid, uint32_t *uid);
/* /proc/PID/stat. start_ns: on the recorder clock, exact to 10 ms. false: no such process. */
bool proc_pid_stat(uint32_t pid, struct proc_stat *out, uint64_t *start_ns);

struct proc_pid {
	uint64_t start_ns;                   /* recorder clock; exact to 10 ms */
	uint32_t nthreads;
	char state;                          /* R, S, D, Z (dead, not waited for) and so on */
	char comm[PROC_COMM_BYTES];
	char name[256];                      /* display name: of its executable, else comm */
	bool from_exe;                       /* false: of comm, which the kernel may have cut */
};

/* false when there is none, or /proc hides it. */
bool proc_pid_read(uint32_t pid, struct proc_pid *out);

/* The same with all names of the process; is points into the rest. */
struct proc_names {
	struct process_names is;
	struct proc_pid process;
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES];
};
bool proc_names_read(uint32_t pid, struct proc_names *out);
void proc_names_point(struct proc_names *p);         /* after a copy: at its own texts */

/* A process that no other source keeps. Starts empty but for the pool. */
struct proc_own {
	struct pool *pool;                   /* reads its arguments; NULL = nobody does */
	struct process *process;             /* NULL = none was added */
	uint64_t asked_ns;
};

/*
 * The process that some source keeps; else the own one, which is added at the first call. Its
 * arguments are read then, for 20 ms at most, and while they are not known once a second.
 * returns  with a reference; NULL = there is no such process
 */
struct process *proc_pid_process(struct processes *processes, uint32_t pid, struct proc_own *own);
void proc_pid_drop(struct processes *processes, struct proc_own *own);

/* Its pid in its own namespace (NSpid); 0 = there is no such process, or /proc hides it. */
uint32_t proc_pid_inner(uint32_t pid);
