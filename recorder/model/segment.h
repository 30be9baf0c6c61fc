/*
 * Segments: the compact form of a stretch of recording, in memory and in the store.
 *
 * The open segment takes samples and events in delivery order until it is sealed: at 8,192 samples,
 * 16,384 events, 60 s, or when an incident needs its end. A sealed segment is immutable and
 * reference-counted. Its stack tree and columns use local indices and are compressed. Only two
 * lists (thread and frame numbers) tie it to the tables, so the same encoded bytes go to the store,
 * where only the lists are rewritten. Names (providers, events, counters, fields) are strings
 * inside it.
 *
 * Encoded bytes, version 3; v = varint (base/varint.h), z = zigzag varint:
 *
 *	u8   version = 3
 *	u8   codec of the columns: 0 raw, 1 a zlib stream, 2 a zlib stream whose columns of numbers
 *	     (segment_is_numbers()) are in planes (base/planes.h)
 *	v    base: time of the first delivered content, in ticks of 100 ns of the recorder clock
 *	z    t0 - base, v t1 - t0: the earliest and the latest content, in ticks
 *	v    samples, stack nodes, events, names, threads, frames   (six counts)
 *	v    streams; per stream: v stream, v period_ns
 *	v    byte length of each of the SEGMENT_COLUMNS columns, then the columns in this order:
 *	       sample weight    runs: v length, v weight (ns or the stream's unit)
 *	       sample stream    runs
 *	       sample cpu       runs: v length, v cpu
 *	       sample time      z difference to the expected time (see below)
 *	       sample thread    0 = none; n = the nth most recent of the last 64 threads; else 65 +
 *	                        newer(index)
 *	       sample stack     0 = none; 2n = that of the nth sample before; 2n + 1 = a node: n is
 *	                        the z difference from it to the end of the first chain after the
 *	                        highest node so far
 *	       sample quality   runs
 *	       node parent      per chain: v first - 1 - parent, at least 1; 0 = root
 *	       node frame       2n = of the last 32 frames that followed the parent's frame, the one
 *	                        at rank n by recency; 2n + 1 = the highest so far + 1 - n
 *	       event time       z difference to the previous event (first: to base)
 *	       event kind       runs
 *	       event flags      runs
 *	       event cpu        runs
 *	       event thread     newest(index + 1)
 *	       event stack      newest(node + 1)
 *	       event provider   v name index + 1, 0 = none
 *	       event name       v name index + 1
 *	       event value      8 bytes, IEEE 754 little endian
 *	       event fields     v n, then per field: v name index, u8 type, and v, z, 8 bytes or
 *	                        v length + bytes
 *	       names            v length + bytes
 *	       node chain       v nodes after the first of a chain, each the callee of the previous
 *
 * Expected time of a sample: that of the previous sample on the same CPU (first: base), plus the
 * weight when the stream is CPU time and the weight under 4 s: the sampling clock ticks per CPU.
 * newest: 0 stays 0; a value n above the highest so far is 2n, one n below or equal is 2n + 1.
 * newer: a value n above the highest so far + 1 is 2n, one n below the highest is 2n + 1.
 * Recency: a thread that is referred to, or is new, becomes the most recent; so does a frame, among
 * those that followed its parent's frame.
 *
 * Measured on the programs of tests/bench/load.sh, with everything else that a busy machine did, a
 * sample takes 7.94 bytes; with C++ compilers, javac, node and a browser at once 8.8
 * (bench_density; without the lists).
 *
 * Threads: building belongs to the merge thread; sealed segments may be read and released anywhere.
 */
#pragma once

#include "model/event.h"

#include "base/buf.h"

#define SEGMENT_VERSION 3
#define SEGMENT_TICK_NS 100u
#define SEGMENT_MAX_SAMPLES 8192u
#define SEGMENT_MAX_EVENTS 16384u
#define SEGMENT_MAX_NS (60 * 1000000000ULL)
#define SEGMENT_MAX_BYTES ((size_t)16 << 20)     /* of encoded columns: the decoder refuses more */
#define SEGMENT_MAX_NODES (1u << 20)
#define SEGMENT_COLUMNS 21

struct segment {
	_Atomic uint32_t refs;
	uint64_t number;                     /* 1, 2, 3... in order of sealing */
	uint64_t t0_ns, t1_ns;               /* times of the first and last content */
	uint32_t nsamples, nevents;
	uint32_t ncpu_samples;               /* those of STREAM_CPU: how busy the machine was */
	uint32_t nthreads, nframes;
	uint32_t quality[QUALITIES];         /* samples of streams that are counted */
	uint32_t nlosses;                    /* events that tell of a loss */
	const uint8_t *lists;                /* thread, then frame numbers: segment_threads() */
	uint32_t lists_bytes;
	const uint8_t *bytes;                /* the encoded form */
	size_t nbytes;
	size_t memory_bytes;                 /* in total, allocator slack estimated */
	struct frames *frame_table;
	struct processes *process_table;
	int64_t store_id;                    /* the writer's own note; 0 = not stored */
	struct segment *newer;               /* in its ring, under the lock; NULL = the newest */
};

struct segment_builder;

int segment_builder_new(struct frames *frames, struct processes *processes,
			struct segment_builder **out, struct err *err);
void segment_builder_free(struct segment_builder *b);

/*
 * Find or add the node of a stack (leaf first). fresh is called for every frame that is new to the
 * frame table (NULL allowed): the symbol worker's queue.
 * returns  the node, or STACK_NONE when there are no frames or a ceiling was reached
 */
uint32_t segment_stack(struct segment_builder *b, const struct frame_ref *leaf_first, uint32_t n,
		       void (*fresh)(void *ctx, struct frame *frame), void *ctx);

/* The same for an event's stack_frames, within the quota of its process (NULL = no quota). */
uint32_t segment_stack_of(struct segment_builder *b, const struct event *e,
			  void (*fresh)(void *ctx, struct frame *frame), void *ctx);
/*
 * The same for an event that another builder got just before, e->stack being its node there: what
 * it found is not searched for again.
 */
uint32_t segment_stack_again(struct segment_builder *b, const struct segment_builder *other,
			     const struct event *e);

/*
 * Limits of one process in one segment; the last four are of all processes together. 0 = no limit.
 */
struct segment_quota {
	uint32_t nodes;                      /* new stack nodes */
	uint32_t frames;                     /* frames that nothing else lists yet */
	/*
	 * A process over its nodes or frames may go on while its stacks have brought fewer nodes
	 * each than this: so a large program does. 0 = it may not.
	 */
	uint32_t nodes_each;
	uint32_t threads;
	uint32_t events, event_bytes;   /* EVENT_GENERIC and EVENT_LOG, per sort; bytes of fields */
	/* Starts and ends; as many processes that no segment has listed may have other events. */
	uint32_t sideband;
	/* Processes with samples, not listed before: further ones are "[more]". 0 = no quotas. */
	uint32_t processes;
	/* The same per second; unused ones are kept for QUOTA_SAVED_S. 0 = any rate. */
	uint32_t processes_s, sideband_s;
};

/* Set what one process may take of a segment from now on; at first there is no limit. */
void segment_set_quota(struct segment_builder *b, const struct segment_quota *quota);

/*
 * Append; event->stack is a node of this segment. EVENT_SAMPLE goes to the sample columns.
 * returns  0, ERR_MEMORY, or ERR_LIMIT for an event over the quota of its process
 */
int segment_add(struct segment_builder *b, const struct event *e);
/* The same for an event that is kept whatever the quota: one that a rule fired at. */
int segment_add_wanted(struct segment_builder *b, const struct event *e);
void segment_set_period(struct segment_builder *b, enum stream stream, uint64_t period_ns);

bool segment_is_full(const struct segment_builder *b, uint64_t now_ns);
bool segment_is_empty(const struct segment_builder *b);
uint64_t segment_first_ns(const struct segment_builder *b);      /* 0 when empty */
uint32_t segment_open_samples(const struct segment_builder *b);
size_t segment_open_bytes(const struct segment_builder *b);

/*
 * Seal the content; the builder is empty afterwards.
 * out  one reference; NULL when the builder was empty
 */
int segment_seal(struct segment_builder *b, struct segment **out, struct err *err);
/*
 * The same in two steps, of which the second one compresses: it takes most of the time, and may be
 * done by another thread while the builder takes what comes next. Each begin that returned 0 needs
 * an end before the next one.
 */
int segment_seal_begin(struct segment_builder *b, struct err *err);
int segment_seal_end(struct segment_builder *b, struct segment **out, struct err *err);

/*
 * Iterate over the numbers of its threads or frames, in order of their local indices:
 *
 *	for (list = segment_threads(s); segment_next(&list, &number);)
 */
struct segment_list {
	const uint8_t *at, *end;
	uint32_t left, number;
};

struct segment_list segment_threads(const struct segment *s);
struct segment_list segment_frames(const struct segment *s);
bool segment_next(struct segment_list *list, uint32_t *number);

void segment_ref(struct segment *s);
void segment_unref(struct segment *s);               /* NULL allowed; any thread */

/* ---- reading --------------------------------------------------------------------------------- */

/* Decoded segments and incidents consist of these; indices are local, or the incident's. */

struct incident_stack {                      /* a node of the tree */
	uint32_t parent;                     /* index, < own index; STACK_NONE = root */
	uint32_t frame;
};

/* Packed: there are millions, and 8 bytes of alignment would make 32 of 28. */
struct __attribute__((packed, aligned(4))) incident_sample {
	uint64_t time_ns;
	uint64_t weight;                     /* ns for CPU streams */
	uint32_t thread, stack;              /* THREAD_NONE, STACK_NONE */
	uint16_t cpu;
	uint8_t stream, quality;
};

struct incident_event {
	uint64_t time_ns;
	enum event_kind kind;
	uint32_t flags;
	uint32_t thread, stack;
	uint16_t cpu;
	const char *provider, *name;         /* never NULL */
	double value;
	uint32_t first_field, nfields;       /* into fields */
};

enum { SEGMENT_PIECES = 10 };                /* of memory, see segment_read.c */

struct segment_memory {
	void *at;
	size_t bytes;
};

struct segment_content {
	uint64_t t0_ns, t1_ns;
	uint32_t nsamples, nnodes, nevents, nthreads, nframes, nfields;
	struct incident_sample *samples;
	struct incident_stack *nodes;
	struct incident_event *events;
	struct event_field *fields;
	uint64_t period_ns[STREAMS_MAX];     /* 0 = stream absent */
	struct segment_memory memory[SEGMENT_PIECES];        /* owns all that */
};

/*
 * Decode bytes from anywhere; checks every count, index and length. ERR_FORMAT says which is bad.
 *
 * bytes  compressed ones must have been compared with a checksum: theirs is not looked at
 * out    {0}, or an earlier content, whose memory is used again; {0} after an error
 */
int segment_decode(const uint8_t *bytes, size_t n, struct segment_content *out, struct err *err);
/* Its events, and no samples and nodes: their stacks are STACK_NONE. In a fraction of the time. */
int segment_decode_events(const uint8_t *bytes, size_t n, struct segment_content *out,
			  struct err *err);
/* Its samples without threads and stacks, and no nodes and events. */
int segment_decode_times(const uint8_t *bytes, size_t n, struct segment_content *out,
			 struct err *err);
/* The same if nothing was lost in it, else all of it: what the sums of an incident are made of. */
int segment_decode_sums(const uint8_t *bytes, size_t n, struct segment_content *out,
			struct err *err);
/* Its counts of threads and frames and its streams; nothing is unpacked. */
int segment_decode_head(const uint8_t *bytes, size_t n, struct segment_content *out,
			struct err *err);
void segment_content_free(struct segment_content *c);
