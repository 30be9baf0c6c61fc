/*
 * Names and numbers as exports print them, and notes on an incident for its readers. Any thread.
 */
#pragma once

#include "model/incident.h"

/* The process and thread of a sample. */
struct who {
	const char *process, *thread;        /* as recorded, not cleaned; never NULL or empty */
	uint32_t pid, tid;                   /* 0 = unknown */
	const char *home;                    /* model/home.h; "" = unknown */
};

/* thread may be THREAD_NONE. A thread without a name has that of its process. */
void who_of(const struct incident *in, uint32_t thread, struct who *out);

/*
 * Append what a process is called among services: its service.name, its unit without ".service",
 * else its own name. UINT32_MAX: "unknown".
 */
void service_put(struct buf *out, const struct incident *in, uint32_t process);

/* What a stream counts: "CPU samples", "off-CPU time". */
const char *stream_title(enum stream stream);

/* A frame's address in its function; 0 = no function. */
uint64_t frame_offset(const struct incident *in, uint32_t frame);

/* Whether a frame's module is known. */
bool frame_has_module(const struct incident *in, uint32_t frame);

/*
 * Append a name: control characters become blanks, invalid UTF-8 becomes U+FFFD, and it is cut at
 * INCIDENT_TEXT_MAX bytes with an ellipsis.
 */
void name_put(struct buf *out, const char *name);

/* For folded stacks, which separate frames by semicolons: make colons of those from `start` on. */
void name_no_semicolons(struct buf *out, size_t start);
/* Readers take a line that begins with "# " for a comment: make it "#_". */
void name_no_comment(struct buf *out, size_t start);

/*
 * Append notes on an incident as plain text, a fact a line, each ending in LF: the trigger, the
 * requested and the actual window, how many samples there are, and what was lost.
 */
void notes_put(struct buf *out, const struct incident *in);

/* Append ns as milliseconds with 3 decimals ("-0.500"): no floating point, no locale. */
void ms_put(struct buf *out, int64_t ns);
/* Write the same to memory with room for MS_MAX_BYTES, without a NUL; returns where it ends. */
#define MS_MAX_BYTES 25                      /* a sign, UINT_MAX_BYTES, a point and 3 decimals */
char *ms_write(char *to, int64_t ns);

/* Append ns as microseconds with 3 decimals: exact. */
void us_put(struct buf *out, int64_t ns);
