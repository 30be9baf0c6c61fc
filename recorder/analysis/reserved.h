/*
 * Who asked the system for memory: samples of STREAM_VM, _VM_NET and _VM_PEAK from the events that
 * tell of it; and STREAM_HEAP_PEAK. In bytes that a program may use: reserved ones count once they
 * are committed.
 *
 *	Windows   VirtualMem/Alloc and /Free (VirtualAlloc, VirtualFree)
 *	Linux     syscalls/sys_enter_ and sys_exit_ of mmap, munmap, mremap, brk and mprotect:
 *	          private and shared memory without a file; mprotect commits what mmap gave without
 *	          rights, as arenas of the C library do
 *
 * vm        what each such call gave
 * vm-net    of these what was not given back in the window, part by part
 * vm-peak   the same at the moment when the process had most of it
 *
 * Of heaps there is heap-peak, from the samples of STREAM_HEAP: those of its blocks that were there
 * when the process had most of them.
 *
 * Memory from before the window is not known: giving it back takes nothing away. That of a process
 * that ended, or called exec, has gone with it.
 */
#pragma once

#include "model/incident.h"

/*
 * Add the samples, not in order of time; call it once.
 * returns  0 or ERR_MEMORY
 */
int reserved_samples_add(struct incident *in);
