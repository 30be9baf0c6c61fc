/* One process by its pid, from /proc, now. Any thread. */
#pragma once

#include "model/process_name.h"
#include "source/host/proc_parse.h"

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

/*
 * What it calls itself, in its own namespace of pids (NSpid); 0 = there is none, or /proc hides it.
 */
uint32_t proc_pid_inner(uint32_t pid);
