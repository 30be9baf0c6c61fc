/*
 * The process that reads what .NET programs send over EventPipe: a nettrace stream is bytes of a
 * stranger, so it is parsed where no harm can be done (base/confined_linux.h), for all programs in
 * one process. What it answers are events as records (nettrace_records.h), which are checked. When
 * it dies, or takes over 200 ms of a CPU or 5 s for a portion, all its streams fail, and the next
 * one that begins starts it again. The user whose stream did that is marked, and from then on has
 * his streams read by a second process, for marked users only and with totals of its own: nobody
 * ends the streams of others twice.
 *
 * Linux; on Windows there is none. One thread, but for what is said to be for others.
 */
#pragma once

#include "source/dotnet/nettrace.h"

#define DOTNET_STREAMS_WORD "read-events"    /* the program's argument for dotnet_streams_serve() */
#define DOTNET_STREAMS_MAX 768u              /* at once */
#define DOTNET_PORTION_MAX_BYTES 65536u

struct dotnet_streams;
struct dotnet_stream;

int dotnet_streams_new(uint32_t own_uid, struct dotnet_streams **out, struct err *err);
void dotnet_streams_free(struct dotnet_streams *s);         /* after its streams; NULL allowed */
/* Kinds of events, and blocks, that exceeded shares so far; bytes that kinds hold here. */
void dotnet_streams_refused(const struct dotnet_streams *s, uint64_t *kinds, uint64_t *blocks);
uint64_t dotnet_streams_kind_bytes(const struct dotnet_streams *s);
/* The CPU time of its processes since the last call. */
uint64_t dotnet_streams_spent_ns(struct dotnet_streams *s);
/* Any thread: add the CPU time of its processes so far, and the memory of the present one. */
void dotnet_streams_add_usage(struct dotnet_streams *s, uint64_t *cpu_ns,
			      uint64_t *rss_bytes);

/* A stream of a program of this user; it has a share of the memory (nettrace_use_shares()). */
int dotnet_stream_new(struct dotnet_streams *s, uint32_t uid, struct dotnet_stream **out,
		      struct err *err);
void dotnet_stream_free(struct dotnet_stream *t);           /* NULL allowed */
/*
 * Read n bytes, DOTNET_PORTION_MAX_BYTES at most; as nettrace_feed(), but that each() has no
 * result. Kinds of events live as long as the stream. ERR_FORMAT also when the process died of it,
 * ERR_LIMIT when it took too long. ERR_STOPPED: the process that had begun it is gone.
 */
int dotnet_stream_feed(struct dotnet_stream *t, const void *bytes, size_t n, nettrace_each *each,
		       void *ctx, struct err *err);
const struct nettrace_facts *dotnet_stream_facts(const struct dotnet_stream *t);

/* The process itself: answers on descriptor 0 until that is closed. Returns its exit code. */
int dotnet_streams_serve(void);
