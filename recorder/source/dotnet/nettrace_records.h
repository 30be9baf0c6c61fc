/*
 * A nettrace stream as records: the process that reads the streams of .NET programs (streams.h)
 * writes them, and the recorder takes what it needs from them.
 *
 *	a record: u32 what it is, u32 n bytes that follow
 *	KIND: struct told_kind, the texts of provider, name and fields, each with its NUL; before
 *	    the first event of that kind
 *	FACTS: struct nettrace_facts, once these are known
 *	EVENT: struct told_event, payload (as much as the queue of events keeps), stack
 *	END: struct told_end, after each portion of the stream
 *
 * Both sides are one program, so structs go as they are. But whoever writes them read bytes of a
 * stranger, so nothing is believed: sizes, texts, numbers and their order are checked. Portable;
 * one thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "source/dotnet/nettrace_private.h"

#define NETTRACE_RECORD_MAX_BYTES ((size_t)512 << 10)   /* a kind with the longest names: 270 KB */

/* ---- the writer ------------------------------------------------------------------------------ */

struct nettrace_writing {
	struct nettrace *stream;
	bool (*send)(const void *bytes, size_t n);      /* false = the reader has gone */
	struct buf *out;                     /* is sent when it has some 64 KB, and at an END */
	struct nettrace_shares *shares;
	uint32_t nkinds;                     /* told so far; 0 at first */
	bool facts_told;
	size_t portion_bytes;                /* of records of this portion */
	uint64_t lost;                       /* events whose records would be too many */
};

/* Read a portion of the stream. false = no memory, or the reader has gone. */
bool nettrace_records_write(struct nettrace_writing *w, const void *bytes, size_t n);

/* An END alone: a portion of a stream whose beginning this process has not read. */
bool nettrace_records_refuse(struct buf *out, bool (*send)(const void *bytes, size_t n));

/* ---- the reader ------------------------------------------------------------------------------ */

struct nettrace_reading {                    /* {0} at first, but for the shares of metas */
	struct nettrace_facts facts;
	struct nettrace_metas metas;
	uint64_t dropped;                    /* events of kinds that exceeded the share here */
};

struct nettrace_end {
	int code;                            /* of nettrace_feed(), with its sentence */
	uint64_t refused_kinds, refused_blocks;         /* of all streams, so far */
	char why[sizeof(((struct err *)0)->text)];
};

/*
 * Take the records that are complete.
 *
 * ended    set by an END, which is the last; anything after it is an error
 * each     its result is not looked at
 * returns  0; ERR_FORMAT: they cannot be; ERR_LIMIT, ERR_MEMORY: kinds have no room
 */
int nettrace_records_take(struct nettrace_reading *r, const uint8_t *bytes, size_t n, size_t *taken,
			  struct nettrace_end *end, bool *ended, nettrace_each *each, void *ctx,
			  struct err *err);
