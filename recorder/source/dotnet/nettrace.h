/*
 * A parser of nettrace (version 4), the stream that .NET programs send over EventPipe and that
 * dotnet-trace writes to files:
 *
 *	"Nettrace", i32 20, "!FastSerialization.1", objects, 1 (no object: the end)
 *	an object: 5 5 1, i32 version, i32 oldest reader, i32 n, its type's name, 6, body, 6
 *	Trace: 8 u16 of a SYSTEMTIME, i64 ticks then, i64 ticks a second, i32 pointer bytes, pid,
 *	    CPUs, rate
 *	EventBlock, MetadataBlock, StackBlock, SPBlock: i32 n, zeroes until the offset in the stream
 *	    is a multiple of 4, n bytes
 *	an event block: u16 its header's length, u16 flags (1: short event headers), i64 t0, i64 t1,
 *	    events
 *	a short event header; parts that are missing are those of the event before it in the block:
 *	    u8 flags, [1: metadata number], [2: increase of the sequence number, capturing thread,
 *	    CPU], [4: thread], [8: stack], ticks since the last event, [16: activity GUID], [32:
 *	    related GUID], [128: payload bytes], payload; numbers as in base/varint.h
 *	a metadata event (number 0): i32 number, UTF-16 provider, i32 event id, UTF-16 name, i64
 *	    keywords, i32 version, i32 level, i32 n fields {i32 type, UTF-16 name},
 *	    tags {i32 n, u8 kind, n bytes}
 *	StackBlock: i32 number of its first stack, i32 n, n times {i32 bytes, addresses of managed
 *	    frames, leaf first}; numbers begin again after an SPBlock
 *	SPBlock: i64 ticks, i32 n threads {i64 thread, i32 its last sequence number}
 *
 * Bytes are fed as they come, in portions of any size; at most one object is kept. The peer is not
 * trusted: all counts have ceilings, and exceeding one ends the stream. Streams of live programs
 * have ceilings together too (nettrace_use_shares). One thread at a time.
 *
 * Sources: github.com/microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat_v5.md (it
 * describes this version); checked on streams of .NET 8 programs.
 */
#pragma once

#include "base/err.h"
#include "base/shares.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETTRACE_OBJECT_MAX_BYTES ((size_t)4 << 20)   /* blocks of the runtime are under 1 MB */
#define NETTRACE_METAS_MAX 65536u
#define NETTRACE_METAS_MAX_BYTES ((size_t)16 << 20)
#define NETTRACE_ALL_KINDS_MAX_BYTES ((size_t)32 << 20)     /* of all streams with shares */
#define NETTRACE_ALL_PENDING_MAX_BYTES ((size_t)16 << 20)
#define NETTRACE_REFUSED_MAX 512u            /* kinds that exceed the share; more end the stream */
#define NETTRACE_FIELDS_MAX 64u
#define NETTRACE_STACKS_MAX 16384u           /* between two SPBlocks; events of more have none */
#define NETTRACE_STACKS_MAX_BYTES ((size_t)2 << 20)
#define NETTRACE_STACK_MAX_BYTES 1024u       /* the rest is cut; the runtime writes 100 frames */
#define NETTRACE_THREADS_MAX 16384u          /* with a count of lost events */

enum nettrace_type {                         /* .NET's TypeCode; 17 is EventPipe's own */
	NETTRACE_BOOLEAN = 3, NETTRACE_CHAR, NETTRACE_I8, NETTRACE_U8, NETTRACE_I16, NETTRACE_U16,
	NETTRACE_I32, NETTRACE_U32, NETTRACE_I64, NETTRACE_U64, NETTRACE_F32, NETTRACE_F64,
	NETTRACE_DECIMAL, NETTRACE_DATETIME, NETTRACE_GUID, NETTRACE_STRING,
};

struct nettrace_field {
	const char *name;
	uint8_t type;                        /* enum nettrace_type */
};

/* A kind of event; lives as long as the stream's parser. Texts are UTF-8. */
struct nettrace_meta {
	uint32_t number, event_id, version, level;
	uint64_t keywords;
	uint8_t opcode;
	bool dull;                           /* each() wants no more of its events */
	const char *provider, *name;         /* name: "" for events of the runtime itself */
	const char *event_name;              /* "Request/Start"; without a name "EventID(7)" */
	const struct nettrace_field *fields; /* up to the first of an unknown type */
	uint32_t nfields;
};

/* Borrowed for the call. */
struct nettrace_event {
	const struct nettrace_meta *meta;
	uint64_t ticks, tid;
	uint32_t cpu;                        /* UINT32_MAX = unknown */
	const uint8_t *activity, *related;   /* 16 bytes, or NULL */
	const uint8_t *payload;
	uint32_t payload_bytes;
	const uint8_t *stack;                /* addresses of pointer_bytes each; NULL = none */
	uint32_t stack_bytes;
	uint32_t stack_hash;                 /* nettrace_stack_hash(): once for many events */
};

uint32_t nettrace_stack_hash(const uint8_t *stack, uint32_t nbytes);

struct nettrace_facts {
	bool known;                          /* the Trace object was read: utc to pointer_bytes */
	bool ended;                          /* the end mark was read */
	/* events: gaps in the sequence numbers, and those whose kind exceeded the share */
	uint64_t lost;
	uint32_t refused_kinds;              /* kinds of events that exceeded the share */
	uint16_t utc[8];                     /* year, month, weekday, day, hour, minute, s, ms */
	uint64_t ticks, ticks_per_sec;       /* the clock at that time; ticks_per_sec is not 0 */
	uint32_t pid, ncpus, pointer_bytes;
};

/*
 * Any result but 0 ends nettrace_feed(), which returns it. After NETTRACE_DULL it goes on, and does
 * not tell any more of events of this kind.
 */
#define NETTRACE_DULL 1
typedef int nettrace_each(void *ctx, const struct nettrace_event *event);

struct nettrace;

int nettrace_new(struct nettrace **out, struct err *err);
void nettrace_free(struct nettrace *t);      /* NULL allowed */

/* What the streams of all programs hold together: descriptions of events, and unread bytes. */
struct nettrace_shares {
	struct shares kinds, pending;
};

/*
 * Before the first bytes: this stream, of a program of user `uid`, has a share. A kind of event
 * that exceeds it is dropped with its events, which are counted; a block that exceeds it ends the
 * stream (ERR_LIMIT). shares must outlive the stream.
 */
void nettrace_use_shares(struct nettrace *t, struct nettrace_shares *shares, uint32_t uid);

/* 0; ERR_FORMAT or ERR_LIMIT, on every later call too; ERR_MEMORY; or the result of `each`. */
int nettrace_feed(struct nettrace *t, const void *bytes, size_t n, nettrace_each *each, void *ctx,
		  struct err *err);

/* Before the first bytes: its events come without their stacks. */
void nettrace_skip_stacks(struct nettrace *t);
/*
 * The same without a copy, where the stream has no shares: read up to NETTRACE_PORTION_BYTES into
 * the room, and say how many. NULL = no memory.
 */
#define NETTRACE_PORTION_BYTES 65536u
char *nettrace_room(struct nettrace *t);
int nettrace_read(struct nettrace *t, size_t n, nettrace_each *each, void *ctx, struct err *err);

const struct nettrace_facts *nettrace_facts(const struct nettrace *t);
