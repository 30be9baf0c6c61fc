/*
 * One file's DWARF, read by libdw (elfutils). For the child process of lines_linux.c: time and
 * memory are not bounded here, and libdw maps the file.
 *
 * libdw is loaded on demand, not linked, so that the recorder starts and records on machines
 * without it.
 */
#pragma once

#include "symbol/elf.h"
#include "symbol/lines.h"

struct debug_info;

/* 0, or ERR_UNSUPPORTED with what to install. Loads libdw for the life of the process. */
int debug_info_check(struct err *err);

/*
 * fd    the file that has the debug information; stays open as long as the result
 * head  of the object's own file
 * returns  0; ERR_NOT_FOUND when it has none; ERR_MEMORY, ERR_UNSUPPORTED
 */
int debug_info_open(int fd, const struct elf_head *head, struct debug_info **out, struct err *err);
void debug_info_close(struct debug_info *d);         /* NULL allowed */

/*
 * The functions at an address: the function itself, then those inlined into it, outermost first.
 * Ask in ascending order, because tables are kept for the last compilation unit only.
 *
 * out      texts are valid until the next call
 * returns  how many; 0 = nothing is known
 */
uint32_t debug_info_find(struct debug_info *d, uint64_t vaddr,
			 struct incident_line out[LINES_DEPTH_MAX]);
