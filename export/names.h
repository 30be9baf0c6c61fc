/*
 * The names that exports print: processes and threads, cleaned and never empty, and what a reader
 * should know about an incident. Any thread.
 */
#ifndef EXPORT_NAMES_H
#define EXPORT_NAMES_H

#include "model/incident.h"

/* Who took a sample. */
struct who {
	const char *process, *thread;        /* as recorded, not cleaned; never NULL or empty */
	uint32_t pid, tid;                   /* 0 when it is not known who */
};

/* thread may be THREAD_NONE. A thread without a name of its own has its process's. */
void who_of(const struct incident *in, uint32_t thread, struct who *out);

/* "cpu samples" and "count", "off-cpu time" and "ns": what a stream counts, and its unit. */
const char *stream_title(enum stream stream);
const char *stream_unit(enum stream stream);

/* The address of a frame that people look up, in its module; and in its function, 0 without one. */
uint64_t frame_address(const struct incident *in, uint32_t frame);
uint64_t frame_offset(const struct incident *in, uint32_t frame);

/* Whether a frame has a name, and whether its module is known. */
bool frame_is_named(const struct incident *in, uint32_t frame);
bool frame_has_module(const struct incident *in, uint32_t frame);

/* Append a name as section 1 of exports-and-store.md wants it. */
void name_put(struct buf *out, const char *name);

/* For folded stacks, from `start` on: frames are parted by semicolons, make colons of those. */
void name_no_semicolons(struct buf *out, size_t start);
/* Readers take a line that begins with "# " for a comment: make it "#_". */
void name_no_comment(struct buf *out, size_t start);

/*
 * Append what a reader of the samples should know, one fact a line, each ending in LF: the trigger,
 * the window that was asked for and got, the number of samples, what was lost. Plain text.
 */
void notes_put(struct buf *out, const struct incident *in);

/* Append ns as milliseconds with 3 decimals ("-0.500"): no floating point, no locale. */
void ms_put(struct buf *out, int64_t ns);

/* Append ns as microseconds with 3 decimals, that is exactly. */
void us_put(struct buf *out, int64_t ns);

#endif
