/*
 * What a dump of a process holds, whatever its format: threads with their registers, memory, and
 * what was mapped where. core.h and minidump.h read it out of bytes; dump_stacks.h makes stacks.
 *
 * All of it is hostile: each count has a ceiling, and each offset was compared with the file.
 * Portable; nothing here opens a file. Immutable once read: any thread.
 */
#pragma once

#include "symbol/bytes.h"

#define DUMP_THREADS_MAX 65536u
#define DUMP_RANGES_MAX 262144u              /* of memory; a process may have 65,530 mappings */
#define DUMP_MODULES_MAX 65536u
#define DUMP_REGISTERS 17u
#define DUMP_NAMES_MAX_BYTES (16u << 20)     /* paths, all together */

/* RAX RBX RCX RDX RSI RDI RBP RSP RIP R8-R15: a mask, and an order, of perf's registers. */
#define DUMP_REGS_MASK 0xff01ffu
enum { DUMP_SP = 7, DUMP_IP = 8 };

struct dump_thread {
	uint32_t tid;
	uint32_t abi;                        /* as perf's: 1 = 32-bit, 2 = 64-bit */
	uint64_t regs[DUMP_REGISTERS];
	int64_t call;                        /* the system call that it is in; -1 = none */
	char *name;                          /* NULL = none is known */
};

struct dump_range {                          /* of memory */
	uint64_t start, end;                 /* [start, end) */
	uint64_t offset, nbytes;             /* the bytes that the dump has of it */
	bool executable, writable;
};

struct dump_module {                         /* a file that was mapped, or a part of one */
	uint64_t start, end;
	uint64_t offset;                     /* in the file, of start */
	const char *path;
	/* Of minidumps: */
	uint32_t timestamp, checksum;
	uint8_t guid[16];                    /* of the PDB, byte order as stored; all 0 = none */
	uint32_t age;
	uint32_t name_at;                    /* the path, in dump.names */
};

struct dump {
	struct bytes in;                     /* borrowed */
	bool windows, is_32_bit;
	uint32_t pid;
	char program[17];                    /* short name; "" */
	struct dump_thread *threads;         /* the one that ended the process first, then by tid */
	uint32_t nthreads, threads_room;
	struct dump_range *ranges;           /* by address */
	uint32_t nranges, ranges_room;
	struct dump_module *modules;         /* by address */
	uint32_t nmodules, modules_room;
	char *names;                         /* of the modules */
	struct dump_range *regions;          /* of minidumps: executable memory; by address */
	uint32_t nregions, regions_room;
	bool has_regions;                    /* false: where code may be is not known */
	uint64_t entry, vdso;                /* addresses; 0 = unknown */
	uint64_t missing_bytes;              /* the file is shorter than it says */

	/* Why it ended; signal 0: it lived, as those that gdb's gcore dumps. */
	uint32_t signal;                     /* of Windows: the exception's code */
	int32_t signal_code;                 /* si_code */
	uint64_t fault_address;
	bool has_fault_address;
};

/* Sort what was read and check that there is something. ERR_FORMAT: no thread. */
int dump_settle(struct dump *d, struct err *err);
void dump_sort(struct dump *d);              /* all but the threads */
void dump_free(struct dump *d);              /* NULL allowed */

/* The range, module, or region that holds an address; NULL = none. */
const struct dump_range *dump_range_at(const struct dump *d, uint64_t address);
const struct dump_module *dump_module_at(const struct dump *d, uint64_t address);
const struct dump_range *dump_region_at(const struct dump *d, uint64_t address);

/* Read memory that the dump has: how many of n bytes, from the first on. */
size_t dump_memory(const struct dump *d, uint64_t address, void *to, size_t n);

/* "SIGSEGV", "EXCEPTION_ACCESS_VIOLATION", or a number. */
#define DUMP_SIGNAL_BYTES 40u
void dump_signal_text(const struct dump *d, char out[DUMP_SIGNAL_BYTES]);
/* What si_code says, such as "not mapped"; NULL = nothing. */
const char *dump_fault_text(const struct dump *d);
