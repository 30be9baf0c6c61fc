/* The inside of a trace file: what opening it finds and a run reads. */
#pragma once

#include "base/ahead.h"
#include "source/etl/file.h"
#include "symbol/bytes.h"

#include <stdatomic.h>

/*
 * The 72 bytes before a buffer's payload; the rest of them is kernel state.
 *
 *   0 u32 bytes in the file, header included    24 i64 order of flush
 *   4 u32 end of the valid bytes, expanded      40 u16 CPU, see BUFFER_CPU_WIDE
 *  52 u16 flags                                 54 u16 type
 */
enum {
	BUFFER_HEAD_BYTES = 72,
	BUFFER_LOST = 2 | 4,                 /* flags: events were lost, a buffer was lost */
	BUFFER_CPU_WIDE = 0x20,              /* 11 bits of CPU instead of 8 */
	BUFFER_COMPRESSED = 0x40,

	MODE_COMPRESSED = 0x04000000,
};

struct etl_buffer {
	uint64_t offset;                     /* in the file */
	int64_t sequence;
	uint32_t number;                     /* in the file */
	uint32_t stored_bytes;               /* in the file, header included */
	uint16_t cpu;
};

struct etl_file {
	char *name;                          /* for messages */
	struct os_file *os;                  /* the file itself, or NULL */
	struct os_file *unpacked;            /* a .zip's entry, without a name, or NULL */
	uint8_t *unpacked_bytes;             /* the same in memory, or NULL */
	struct bytes in;                     /* holds the trace */
	uint64_t base;                       /* offset of the trace in `in` */

	struct etl_facts facts;
	struct etl_buffer *buffers;          /* by CPU, then order of flush */
	size_t nbuffers;
	uint32_t buffers_cap;
	uint32_t payload_max_bytes;
	uint32_t fixed_bytes;                /* the size of every buffer; 0 = they differ */
	size_t open_max_bytes;               /* ETL_OPEN_MAX_BYTES; tests lower it */
	struct etl_counts found;             /* damage in the index; every run starts with it */

	atomic_bool stopped;
};

/* A buffer's payload, expanded. */
struct etl_payload {
	uint8_t *bytes;
	size_t nbytes, cap;
	bool cut;                            /* the file ends inside; so may its last record */
};

/*
 * Read and expand a buffer. Any thread.
 *
 * stored   room for its compressed bytes, which stays for the next buffer
 * why      NULL for a good buffer; else what is damaged, and out is empty
 * returns  0, damaged or not; ERR_IO, ERR_MEMORY
 */
int etl_buffer_load(const struct etl_file *file, const struct etl_buffer *b,
		    struct etl_payload *stored, struct etl_payload *out, const char **why,
		    struct err *err);

void etl_count_damage(struct etl_counts *counts, uint32_t number, const char *why);

/* Exactly n bytes of the trace. */
int etl_read(const struct etl_file *file, uint64_t offset, void *to, size_t n, const char *what,
	     struct err *err);

/*
 * In ahead.c: a thread that expands buffers before a run needs them, in the order of the file. The
 * run never waits for it: it expands a buffer that is not there yet by itself. The thread sleeps
 * while its slots are full, and is woken when half of them are free, because a wake takes time.
 */
enum { ETL_AHEAD_SLOTS = 16 };

struct etl_lane {                            /* of one CPU: buffers not begun to be expanded */
	size_t next, end;
};

struct etl_ahead_slot {
	size_t buffer;                       /* in file->buffers */
	enum { SLOT_FREE, SLOT_BUSY, SLOT_READY, SLOT_UNWANTED } state;
	struct etl_payload payload;
};

struct etl_ahead {                           /* {0} has no thread */
	struct ahead_job job;                /* first: run() gets its address */
	struct ahead ahead;
	const struct etl_file *file;
	struct os_mutex *lock;               /* guards what follows */
	struct etl_lane *lanes;
	size_t nlanes;
	struct etl_ahead_slot slots[ETL_AHEAD_SLOTS];
	unsigned nslots, nfree;
	bool running;                        /* the job is given and has not ended */
	bool ending;
};

/* lanes: borrowed until the end. For a short file, or without memory, there is no thread. */
void etl_ahead_begin(struct etl_ahead *a, const struct etl_file *file, struct etl_lane *lanes,
		     size_t nlanes);
/*
 * Swap *payload for the payload of the lane's buffer; false = the caller has to expand it. Damaged
 * buffers are never there.
 */
bool etl_ahead_take(struct etl_ahead *a, size_t lane, size_t buffer, struct etl_payload *payload);
void etl_ahead_end(struct etl_ahead *a);

/*
 * In zip.c: if the bytes are a .zip, find its .etl and make file->in, base and facts.trace_bytes
 * those of the entry; else do nothing.
 */
int etl_unzip(struct etl_file *file, struct err *err);
