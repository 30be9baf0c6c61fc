/*
 * Writes nettrace streams as a hostile program would: kinds of events without end, blocks that are
 * never finished. The layout is that of source/dotnet/nettrace.h. One thread.
 */
#pragma once

#include "base/buf.h"

/* What a program says before its stream: that it begins session 1. */
#define NETTRACE_YES "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\1\0\0\0\0\0\0\0"
#define NETTRACE_YES_BYTES 28u

struct nettrace_writer {
	struct buf bytes;
	uint64_t sent;                       /* bytes of the stream that left the buffer */
	uint32_t number;                     /* of the last kind of event */
};

void nettrace_write_head(struct nettrace_writer *w);
/* A block that describes `kinds` new kinds of events, each with a name of 1000 units. */
void nettrace_write_kinds(struct nettrace_writer *w, unsigned kinds);
/* The begin of a block of `bytes` of which only `present` come. */
void nettrace_write_part(struct nettrace_writer *w, uint32_t bytes, uint32_t present);
/* One event of this kind, in a block of its own. */
void nettrace_write_event(struct nettrace_writer *w, uint32_t number);
/* Empty the buffer: its bytes were sent. */
void nettrace_writer_sent(struct nettrace_writer *w);
