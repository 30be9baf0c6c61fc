/*
 * ELF cores of x86-64 and i386 Linux: those of the kernel, of gdb's gcore, and of this program.
 * Portable; hostile bytes.
 *
 * Source: core(5); fs/binfmt_elf.c (the order of notes, NT_FILE), include/linux/elfcore.h and
 * arch/x86/include/asm/user_64.h, user_32.h (registers), System V ABI (PT_NOTE, PT_LOAD).
 */
#pragma once

#include "source/dump/dump.h"

/* Does it begin like one? */
bool core_is(const struct bytes *in);

/*
 * in       borrowed by *out, except its bytes
 * returns  0; ERR_FORMAT: no core, or damaged beyond use; ERR_UNSUPPORTED: another machine's;
 *          ERR_LIMIT, ERR_MEMORY, ERR_IO. A core that is cut off is read as far as it goes
 */
int core_read(const struct bytes *in, struct dump **out, struct err *err);
