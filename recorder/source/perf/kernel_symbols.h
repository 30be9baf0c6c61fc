/*
 * Kernel code that is added and removed while the kernel runs: BPF programs and their trampolines,
 * ftrace trampolines, kprobe slots.
 *
 * The kernel reuses such addresses within seconds, so an address alone identifies nothing. Each
 * symbol is an object of its own, with the symbol's name, mapped from one record to the other.
 * Symbols that are older than the records are read from kallsyms, where they are members of [bpf],
 * [__builtin__ftrace] and [__builtin__kprobes] (source: kernel/kallsyms.c). Modules are not among
 * them, since no record reports them (kallsyms_reader.c). Portable; the source's thread only.
 */
#pragma once

#include "base/log.h"
#include "base/pool.h"
#include "model/frame.h"
#include "source/ring/perf_record.h"

/* kallsyms has no sizes: to the next symbol, at most this */
#define KERNEL_SYMBOL_GUESS_BYTES 65536u

struct kernel_symbols;
struct kallsyms_text;

enum kernel_place {
	KERNEL_EXEC,                   /* __x64_sys_execve, ...execveat, those of 32-bit programs */
	KERNEL_IO,                     /* io_schedule: waits for a device */
};

/* kallsyms_read() (symbol/kallsyms.h). Called by a job. */
typedef int kernel_symbols_read(int (*take)(void *to, const char *text, size_t n), void *to,
				uint64_t *modules, struct err *err);

/*
 * given    gets the first text, for the symbol worker; dropped after 10 s. NULL = nobody needs it
 * returns  NULL without memory
 */
struct kernel_symbols *kernel_symbols_new(struct frames *frames, kernel_symbols_read *read,
					  struct kallsyms_text *given, struct log *log);
void kernel_symbols_free(struct kernel_symbols *k, uint64_t now_ns);       /* NULL allowed */

/* A PERF_KIND_KSYMBOL record, in time order. */
void kernel_symbols_feed(struct kernel_symbols *k, const struct perf_record *r);

/* Replace all known symbols with those of a kallsyms text. */
void kernel_symbols_scan(struct kernel_symbols *k, const char *text, size_t n, uint64_t now_ns);

/*
 * Have the symbols read by kernel_symbols_look(): at the start, and after records were lost. fixed:
 * only places of the kernel proper, as no record tells when other code goes.
 */
void kernel_symbols_rescan(struct kernel_symbols *k, bool fixed);
/*
 * Do so by a job, since that takes 30 ms, every 10 s at most: in a flood records are lost each
 * second. A later call replaces all known symbols, and feeds the records of the time between again.
 *
 * wait_ns  for a job that runs
 */
void kernel_symbols_look(struct kernel_symbols *k, struct pool *pool, uint64_t now_ns,
			 uint64_t wait_ns);

/* Set object and offset (from the symbol's start). returns  false when no symbol has the address */
bool kernel_symbols_find(const struct kernel_symbols *k, uint64_t address, struct frame_ref *out);

/* Whether a kernel chain (n addresses, leaf first) leads through one of these functions. */
bool kernel_symbols_in(const struct kernel_symbols *k, enum kernel_place place,
		       const uint64_t *chain, uint32_t n);

/* The running kernel's build id, from /sys/kernel/notes; key is untouched when that has none. */
void kernel_build_id(struct object_key *key);
