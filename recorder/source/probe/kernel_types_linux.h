/*
 * What programs at switches (switches_linux.h) need of this kernel's types: then they run without
 * perf's part of a tracepoint, which costs more than they do, and read its structures in place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kernel_types {
	uint32_t on_switch, on_wakeup;       /* the tracepoints' */
	int16_t pid, tgid;                   /* of a thread, its process: where a task has them */
	uint32_t cast, regs;                 /* bpf_rdonly_cast(), pt_regs; 0 = before Linux 6.2 */
};

/* Reads some MB. false: the kernel does not tell them */
bool kernel_types_load(struct kernel_types *out);
