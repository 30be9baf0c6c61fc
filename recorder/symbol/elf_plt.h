/*
 * The stubs through which a program calls functions of other files: its procedure linkage table.
 * No symbol names them. x86-64 only; any thread.
 */
#pragma once

#include "symbol/elf_section.h"

/* vaddr, bytes: a stub; name: of the function that it jumps to, in the string table of .dynsym. */
typedef int elf_plt_put(void *ctx, uint64_t vaddr, uint32_t bytes, uint32_t name);

/*
 * Name the stubs of .plt, .plt.sec and .plt.got by the relocations of the words that they jump
 * through. Stubs that are none of "[endbr64] [bnd] jmp *word(%rip)" are left out.
 *
 * sections  of the file, head->nsections
 * returns   0, also without any; what put() returned; ERR_MEMORY
 */
int elf_plt_read(const struct bytes *in, const struct elf_head *head,
		 const struct elf_section *sections, elf_plt_put *put, void *ctx, struct err *err);
