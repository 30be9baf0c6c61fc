/*
 * The kernel's events of a live session: which flag brings an event, and which have stacks.
 *
 * A session gets all events of a flag. The known classes (etw/class.h) say the flag of each. Pure
 * functions, any thread.
 */
#pragma once

#include "base/err.h"
#include "source/etw/class.h"

/* A kernel event: CLASSIC_EVENT_ID without its padding. */
struct etw_class_event {
	struct etw_guid guid;
	uint8_t opcode;
};

/* Whether a provider is the kernel: Windows Kernel, Windows Kernel Trace, or its GUID. */
bool etw_is_kernel(const char *provider);

/*
 * Add the flags for an event, as a rule names it ("DiskIO/Read"), and for names of its files.
 *
 * returns  0; ERR_NOT_FOUND with the nearest names; ERR_UNSUPPORTED: a known event that never
 *          reaches a rule
 */
int etw_kernel_event(const char *name, uint32_t *flags, struct err *err);

/* List the events of these flags that should have stacks; returns how many, at most max. */
uint32_t etw_kernel_stacks(uint32_t flags, struct etw_class_event *out, uint32_t max);
