/*
 * Host: where to get the bytes of a code object and the facts of a process.
 *
 * symbol_open_linux.c and symbol_open_windows.c. They only name paths and our own memory;
 * elf_file.c decides whether a file is the right one. Any thread.
 */
#pragma once

#include "model/frame.h"
#include "symbol/bytes.h"

#define SYMBOL_PROGRAM 2u                    /* the candidate that is the program of the process */
#define SYMBOL_MACHINE 3u                    /* the candidate in the machine's root, not ours */
#define SYMBOL_CANDIDATES 4u

/*
 * Write the which-th path (0..SYMBOL_CANDIDATES-1) where an object mapped by pid may be found, best
 * first, to path (emptied first).
 *
 * debug      of the file with its debug information, by build id
 * same_root  set to whether the path is looked up as the process itself would: then inode numbers
 *            can be compared even where the device number differs
 * returns    false when this object has no such candidate
 */
bool symbol_path(const struct object *object, uint32_t pid, bool debug, unsigned which,
		 struct buf *path, bool *same_root);

/*
 * The which-th path (0..SYMBOL_LINKS-1) of a debug file that the object names by a link: beside it,
 * in .debug/ there, under /usr/lib/debug/; in the process's root, then in ours. Otherwise as above.
 */
#define SYMBOL_LINKS 6u
bool symbol_link_path(const struct object *object, uint32_t pid, const char *name, unsigned which,
		      struct buf *path);

/*
 * A number that objects in one file system share; 0 = not known. Opens nothing in it: it may hang.
 * On Windows, file systems of other machines only.
 */
uint64_t symbol_file_system(const struct object *object, uint32_t pid);

/*
 * Linux only: open the perf map that a process writes: /tmp/perf-<its own pid>.map in its own root.
 * Anybody may write there. So it must be a regular file, no link, owned by the process's user or
 * root, and not older than the process, because the pid may have been somebody else's before.
 *
 * returns  0; ERR_NOT_FOUND when there is none, or no such process; ERR_ACCESS when it cannot be
 *          trusted or read; ERR_IO
 */
int symbol_perf_map(uint32_t pid, struct os_file **out, struct err *err);

/*
 * Linux only: identifies the program that a process runs: differs after exec and pid reuse; 0 = no
 * process.
 */
uint64_t symbol_process_identity(uint32_t pid);

/* Linux only: a process as it is now. */
struct symbol_process {
	uint64_t identity;                   /* symbol_process_identity() */
	uint64_t start_ns;                   /* by the recorder clock, to some 10 ms; 0 = unknown */
	char comm[16];                       /* its short name */
};

/* returns  false when there is no such process */
bool symbol_process_now(uint32_t pid, struct symbol_process *out);

/* The vDSO of this process, the same for every 64-bit process; ERR_UNSUPPORTED if there is none. */
int symbol_vdso(struct bytes *out, struct err *err);

/*
 * The vDSO that the kernel gives to 32-bit processes, asked for in a child that ends at once: a
 * 64-bit process may have it instead of its own.
 *
 * returns  0; ERR_UNSUPPORTED when the kernel does not give it (it needs CONFIG_IA32_EMULATION and
 *          CONFIG_CHECKPOINT_RESTORE); ERR_MEMORY
 */
int symbol_vdso32(struct buf *out, struct err *err);

/*
 * The text that the process was started with, at most max bytes of each, as in /proc: strings with
 * a NUL after each. What cannot be read (another user's environment) stays empty.
 */
void symbol_start_text(uint32_t pid, size_t max, struct buf *arguments, struct buf *environment);

/*
 * The performance data of a HotSpot JVM (source/jvm/hsperf.h), at most max bytes: its mapping of
 * /tmp/hsperfdata_USER/PID, read from its memory, so that no file is opened in a directory that
 * anybody can write to. Stays empty when there is none, or this user may not look.
 */
void symbol_jvm_data(uint32_t pid, size_t max, struct buf *out);

/* Linux only: append the path of its control group, in our namespace: home_put_cgroup(). */
void symbol_cgroup(uint32_t pid, struct buf *out);

/*
 * Linux only: append the context that the process publishes, at most max bytes, as it was at one
 * moment: see otel.h. Nothing when there is none, or this user may not look.
 */
void symbol_otel_context(uint32_t pid, size_t max, struct buf *out);

/* Its short name now; false when it has ended. */
bool symbol_comm(uint32_t pid, char out[16]);
