/*
 * Code that comes to the kernel and leaves it while it runs: BPF programs, their trampolines, those of
 * ftrace, the slots of kprobes.
 *
 * Its addresses are used again within seconds, so an address alone says nothing: each such symbol is an
 * object of its own, which has the symbol's name and lies at its addresses from one record to the
 * other. What existed before the records is read from kallsyms, where such symbols stand as members
 * of [bpf], [__builtin__ftrace] and [__builtin__kprobes] (source: kernel/kallsyms.c). Modules are not
 * among them: no record tells of them (kallsyms_reader.c). Portable; the source's thread only.
 */
#ifndef SOURCE_KERNEL_SYMBOLS_H
#define SOURCE_KERNEL_SYMBOLS_H

#include "base/log.h"
#include "model/frame.h"
#include "source/ring/perf_record.h"

#define KERNEL_SYMBOL_GUESS_BYTES 65536u        /* kallsyms tells no sizes: up to the next, at most this */

struct kernel_symbols;

struct kernel_symbols *kernel_symbols_new(struct frames *frames, struct log *log);  /* NULL = no memory */
void kernel_symbols_free(struct kernel_symbols *k, uint64_t now_ns);                /* NULL allowed */

/* A PERF_KIND_KSYMBOL record, in time order. */
void kernel_symbols_feed(struct kernel_symbols *k, const struct perf_record *r);

/* In place of all that was known: those of a text of kallsyms; also after records were lost. */
void kernel_symbols_scan(struct kernel_symbols *k, const char *text, size_t n, uint64_t now_ns);

/* Sets object and offset (from the symbol's start), if such a symbol holds the address. */
bool kernel_symbols_find(const struct kernel_symbols *k, uint64_t address, struct frame_ref *out);

/* Whether a chain of the kernel's (n addresses, leaf first) leads through execve(2). */
bool kernel_symbols_in_exec(const struct kernel_symbols *k, const uint64_t *chain, uint32_t n);
uint32_t kernel_symbols_count(const struct kernel_symbols *k);

#endif
