/*
 * The process that reads what strangers wrote: it indexes program files, unpacks their symbols,
 * reads perf maps, and makes names readable.
 *
 * These parsers, and the libraries behind them, are where a crafted file would do harm. So they
 * work in a process of this same program that can do nothing else (os_confine()): it gets an open
 * file, and answers with an index, which is checked like any other bytes from outside. When it
 * dies, or takes longer than SANDBOX_MAX_NS, the object has no names and a sentence says why; the
 * next request starts another one. It starts with the first request and ends with its owner.
 *
 * Linux; on Windows there is none, and the same is done in this process. One thread at a time, but
 * for what is said to be for others.
 */
#pragma once

#include "symbol/elf_file.h"

#define SANDBOX_WORD "read-symbols"            /* the program's argument for sandbox_serve() */
#define SANDBOX_MAX_NS (15 * NS_PER_SEC)       /* for one file; Chromium's takes 1 s */
#define SANDBOX_MEMORY_MAX_BYTES ((uint64_t)1 << 30)   /* without mapped files */
#define SANDBOX_NOTE_BYTES 400u

/* Which functions of a file: all that it names, also what is packed into it, .NET methods. */
enum sandbox_index { SANDBOX_NAMED, SANDBOX_PACKED, SANDBOX_DOTNET };

struct sandbox;

/* NULL = no memory, or not on this host: then everything is done here. */
struct sandbox *sandbox_new(void);
void sandbox_free(struct sandbox *s);          /* NULL allowed */

/*
 * The index of a file's functions: elf_index_new(), with what is packed into the file if asked, or
 * r2r_index_new(). When what is packed cannot be unpacked its exported functions must do, and the
 * note says why.
 *
 * s        NULL = here; also for a file in memory, which is the kernel's
 * note     SANDBOX_NOTE_BYTES; set to a sentence, or ""
 * returns  as elf_index_new(); ERR_LIMIT when it takes too long; ERR_FORMAT when the process died
 */
int sandbox_index(struct sandbox *s, const struct elf_file *file, enum sandbox_index which,
		  struct elf_index **out, char *note, struct err *err);

/*
 * The map of an open perf map (perfmap_parse()), of its first PERFMAP_MAX_BYTES; Linux only.
 *
 * s        NULL = here
 * returns  as sandbox_index()
 */
struct perfmap;
int sandbox_perfmap(struct sandbox *s, struct os_file *file, uint64_t file_bytes,
		    struct perfmap **out, struct err *err);

/*
 * demangle(), demangle.h, of several names at once: a round trip takes more time than a name. If
 * the process dies of one of them, or it takes too long, only that one stays as it is.
 *
 * raw      n names that sandbox_takes(), each with its NUL; at most SANDBOX_NAMES, of
 *          SANDBOX_NAMES_BYTES in all
 * out      empty; set to n texts, each with its NUL; "" = it stays as it is. Less without memory
 */
enum { SANDBOX_NAMES = 64 };
#define SANDBOX_NAMES_BYTES 65536u
void sandbox_demangle(struct sandbox *s, const struct buf *raw, uint32_t n, struct buf *out);
/* Would the process make this name readable? Else demangle() does it here. */
bool sandbox_takes(const struct sandbox *s, const char *raw);

/* Any thread: os_thread_waits() for its process; true without one. */
bool sandbox_waits(const struct sandbox *s, uint64_t *progress);
/* Any thread: os_thread_hurry() for its process. */
void sandbox_hurry(const struct sandbox *s);
/* Any thread: add the CPU time of its processes so far, and the memory of the present one. */
void sandbox_add_usage(struct sandbox *s, uint64_t *cpu_ns, uint64_t *rss_bytes);

/*
 * What the process does, and what is checked of its answer; portable.
 * in, head  of the file; head: not used for .NET
 * sound     false: an access to this index would leave it, or take more memory than a file's may
 */
int sandbox_index_here(const struct bytes *in, const struct elf_head *head,
		       enum sandbox_index which, struct elf_index **out, char *note,
		       struct err *err);
bool sandbox_index_is_sound(const struct elf_index *index);

/* The process itself: answers on descriptor 0 until that is closed. Returns its exit code. */
int sandbox_serve(void);
