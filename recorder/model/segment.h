/*
 * Segments: the compact form of a stretch of recording, in memory and in the store.
 *
 * The open segment takes samples and events in delivery order until it is sealed: at 8,192 samples,
 * 16,384 events, 60 s, or when an incident needs its end. A sealed segment is immutable and
 * reference-counted. Its stack tree and columns use local indices and are compressed; two lists
 * (thread and frame numbers) tie it to the tables, so the same encoded bytes go to the store, where
 * only the lists are rewritten. Names (providers, events, counters, fields) are strings inside the segment.
 *
 * Encoded bytes, version 3; v = varint (base/varint.h), z = zigzag varint:
 *
 *	u8   version = 3
 *	u8   codec of the columns: 0 as they are, 1 a zlib stream, 2 one in which columns of numbers
 *	     (segment_is_numbers()) are by planes (base/planes.h)
 *	v    base: time of the first delivered content, in ticks of 100 ns of the recorder clock
 *	z    t0 - base, v t1 - t0: the earliest and the latest content, in ticks
 *	v    samples, stack nodes, events, names, threads, frames   (six counts)
 *	v    streams; per stream: v stream, v period_ns
 *	v    byte length of each of the SEGMENT_COLUMNS columns, then the columns in this order:
 *	       sample weight    runs: v length, v weight (ns or the stream's unit)
 *	       sample stream    runs
 *	       sample cpu       runs: v length, v cpu
 *	       sample time      z difference to what was expected (see below)
 *	       sample thread    0 = none; n = the nth of the 64 seen last, the latest is 1st; else 65 +
 *	                        newer(index)
 *	       sample stack     0 = none; 2n = that of the sample n before; 2n + 1 = a node, n = z difference
 *	                        from it to the end of the first chain behind the highest node so far
 *	       sample quality   runs
 *	       node parent      per chain: v first - 1 - parent, at least 1; 0 = root
 *	       node frame       2n = what followed the parent's frame the (n + 1)th last of the 32 that did so
 *	                        last; 2n + 1 = none of them, n less than the highest so far + 1
 *	       event time       z difference to the event before (first: to base)
 *	       event kind       runs
 *	       event flags      runs
 *	       event cpu        runs
 *	       event thread     newest: index + 1
 *	       event stack      newest: node + 1
 *	       event provider   v name index + 1, 0 = none
 *	       event name       v name index + 1
 *	       event value      8 bytes, IEEE 754 little endian
 *	       event fields     v n, then per field: v name index, u8 type, v / z / 8 bytes / v length + bytes
 *	       names            v length + bytes
 *	       node chain       v nodes behind the first one of a chain: each the callee of the one before
 *
 * Expected time of a sample: that of the sample before on the same CPU (first: base), and the weight
 * when the stream is CPU time and the weight under 4 s: the sampling clock ticks per CPU.
 * newest: 0 stays 0; a value n higher than the highest so far is 2n, one n lower or equal 2n + 1.
 * newer: a value n higher than the highest so far + 1 is 2n, one n lower than the highest 2n + 1.
 * Ordered by when they were last seen: what is named, or is new, becomes the latest; a frame among those
 * that followed its parent's frame.
 *
 * Measured on shells, compilers, interpreters and JVMs at 2 x 99 Hz with 150 new processes a second:
 * version 1 took 55.1 bytes a sample (18.6 compressed), version 2 14.4. On the programs of
 * tests/bench/load.sh, with all else that a busy machine did, version 2 takes 9.56 and version 3 7.94; on
 * C++ compilers, javac, node and a browser at once 11.5 and 8.8 (bench_density; the lists apart).
 *
 * Threads: building belongs to the merge thread; sealed segments may be read and released anywhere.
 */
#ifndef MODEL_SEGMENT_H
#define MODEL_SEGMENT_H

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
	uint32_t nthreads, nframes;
	const uint8_t *lists;                /* thread, then frame numbers: segment_threads() */
	uint32_t lists_bytes;
	const uint8_t *bytes;                /* the encoded form */
	size_t nbytes;
	size_t memory_bytes;                 /* all of it, allocator slack estimated */
	struct frames *frame_table;
	struct processes *process_table;
	int64_t store_id;                    /* the writer's own note; 0 = not stored */
};

struct segment_builder;

int segment_builder_new(struct frames *frames, struct processes *processes,
			struct segment_builder **out, struct err *err);
void segment_builder_free(struct segment_builder *b);

/*
 * The node of a stack (leaf first), added with what is missing of it. fresh is called for every
 * frame that the frame table had not seen (NULL allowed): the symbol worker's queue.
 * returns  the node, or STACK_NONE when there are no frames or a ceiling was reached
 */
uint32_t segment_stack(struct segment_builder *b, const struct frame_ref *leaf_first, uint32_t n,
		       void (*fresh)(void *ctx, struct frame *frame), void *ctx);

/* The same for an event's stack_frames; the quota is its process's (NULL = none). */
uint32_t segment_stack_of(struct segment_builder *b, const struct event *e,
			  void (*fresh)(void *ctx, struct frame *frame), void *ctx);

/* Of one process in one segment, but for the last two: of all together. 0 = no limit. */
struct segment_quota {
	uint32_t nodes;                      /* new stack nodes */
	uint32_t frames;                     /* frames that nothing else lists yet */
	uint32_t threads;
	uint32_t events, event_bytes;        /* EVENT_GENERIC and EVENT_LOG, of each sort; bytes of fields */
	uint32_t sideband;                   /* starts and ends of processes and threads; as many processes that
						no segment has listed may have other events */
	uint32_t processes;                  /* with samples, that no segment has listed: beyond it these are
						"[more]"'s. 0 = no quotas at all */
	uint32_t processes_s, sideband_s;    /* of these so many a second, whatever the segment; what was not
						taken is kept for QUOTA_SAVED_S; 0 = no matter how fast */
};

/* What one process may take of a segment from now on; at first there is no limit. */
void segment_set_quota(struct segment_builder *b, const struct segment_quota *quota);

/*
 * Append; event->stack is a node of this segment. EVENT_SAMPLE goes to the sample columns.
 * returns  0, ERR_MEMORY, or ERR_LIMIT: an event over the quota of its process
 */
int segment_add(struct segment_builder *b, const struct event *e);
/* The same for an event that is kept whatever its process has had: one that a rule fired at. */
int segment_add_wanted(struct segment_builder *b, const struct event *e);
void segment_set_period(struct segment_builder *b, enum stream stream, uint64_t period_ns);

bool segment_is_full(const struct segment_builder *b, uint64_t now_ns);
bool segment_is_empty(const struct segment_builder *b);
uint64_t segment_first_ns(const struct segment_builder *b);      /* 0 when empty */
uint32_t segment_open_samples(const struct segment_builder *b);
size_t segment_open_bytes(const struct segment_builder *b);

/*
 * Seal what there is; the builder is empty afterwards.
 * out  one reference; NULL when the builder was empty
 */
int segment_seal(struct segment_builder *b, struct segment **out, struct err *err);

/*
 * The numbers of its threads or frames, in order of their local indices:
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

/* ---- reading ---------------------------------------------------------------------------------- */

struct segment_sample {
	uint64_t time_ns;
	uint64_t weight;
	uint32_t thread, stack;              /* local; THREAD_NONE, STACK_NONE */
	uint16_t cpu;
	uint8_t stream, quality;
};

struct segment_node {
	uint32_t parent;                     /* STACK_NONE = root */
	uint32_t frame;                      /* local */
};

struct segment_event {
	uint64_t time_ns;
	double value;
	uint32_t thread, stack;
	uint32_t provider, name;             /* index into names; UINT32_MAX = none */
	uint32_t kind, flags;
	uint16_t cpu;
	uint32_t first_field, nfields;       /* into fields */
};

struct segment_field {
	uint32_t name;
	struct event_field value;            /* name and text point into the content */
};

struct segment_content {
	uint64_t t0_ns, t1_ns;
	uint32_t nsamples, nnodes, nevents, nnames, nthreads, nframes, nfields;
	struct segment_sample *samples;
	struct segment_node *nodes;
	struct segment_event *events;
	struct segment_field *fields;
	char **names;
	uint64_t period_ns[STREAMS_MAX];     /* 0 = stream not there */
	char *text;                          /* owns names and text fields */
};

/* Decode bytes from anywhere; every count, index and length is checked. ERR_FORMAT says which. */
int segment_decode(const uint8_t *bytes, size_t n, struct segment_content *out, struct err *err);
void segment_content_free(struct segment_content *c);

#endif
