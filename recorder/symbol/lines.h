/*
 * Source lines and inlined functions at addresses of an ELF object, from its debug information.
 *
 * For exports of stored incidents, never while recording: reading DWARF takes milliseconds for each
 * object and up to some hundred MB. The object's file must have the recorded build id: a replaced
 * file gives nothing.
 *
 * DWARF of other people's programs is large and may be damaged or hostile, and libdw reads it
 * without limits on time or memory. So each object is read by a child process of its own, with
 * limits, and without privileges once the files are open. Its results come back through a pipe and
 * are checked like any file (drawn in lines.c). A child that crashes, hangs or takes too much costs
 * only the lines of its object. Reading is host code (lines_linux.c); on Windows there is none. One
 * thread, and no other may run, because of fork().
 */
#pragma once

#include "model/incident.h"

#define LINES_DEPTH_MAX 128u                     /* functions inlined into each other */
#define LINES_OBJECT_MAX_NS (60 * NS_PER_SEC)    /* for one object; libc takes 0.1 s */
#define LINES_MEMORY_MAX_BYTES ((uint64_t)2 << 30)   /* of the child, without mapped files */
#define LINES_REPLY_MAX_BYTES ((size_t)256 << 20)

enum lines_state {
	LINES_FOUND,
	LINES_NO_FILE,                /* nothing at its path, or we may not read it */
	LINES_CHANGED,                /* a different file is there now */
	LINES_NO_BUILD_ID,            /* so nobody can tell if it is the same file */
	LINES_NO_DEBUG_INFO,
	LINES_FAILED,
	LINES_STATES,
};

/* What was found, in the form that incident_expand() takes; starts as {0}. */
struct lines {
	enum lines_state state;
	const char *why;              /* LINES_NO_FILE, _CHANGED, _FAILED: a sentence; else "" */
	struct incident_expansion *of_offset;    /* one for each offset; n 0 = unknown */
	struct incident_line *lines;
	uint32_t noffsets, nlines;
	struct buf reply;             /* owns the texts */
};

/* Can this host do it at all? 0, or ERR_UNSUPPORTED with what to install. */
int lines_check(struct err *err);

/*
 * Look up offsets (as frames count them: file offsets) of an object, in ascending order.
 *
 * object     OBJECT_ELF; only path and build id are used
 * pid        of a process that may still map it in a file system of its own; 0 = none
 * path       directories where its file and debug file may be, too: elf_file_open_in(); NULL = none
 * end_ns     recorder clock: what is not found by then is LINES_FAILED
 * returns    0, whatever the state; ERR_MEMORY, ERR_UNSUPPORTED, ERR_IO (no child could be started)
 */
int lines_read(const struct object *object, uint32_t pid, const char *path,
	       const uint64_t *offsets, uint32_t n, uint64_t end_ns, struct lines *out,
	       struct err *err);
void lines_free(struct lines *l);

/* ---- the reply of the child; for lines_linux.c and tests ------------------------------------- */

void lines_put_state(struct buf *out, enum lines_state state, const char *why);
void lines_put(struct buf *out, uint32_t index, const struct incident_line *lines, uint32_t n);
void lines_put_end(struct buf *out);

/* Takes reply, also on failure. returns 0, ERR_FORMAT (cut off, impossible) or ERR_MEMORY */
int lines_parse(struct buf *reply, uint32_t noffsets, struct lines *out, struct err *err);
