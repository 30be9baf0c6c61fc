/*
 * Where a command's data goes: a file that appears whole or not at all, standard output, or memory.
 *
 * Writes are buffered, and what is large is written by another thread; errors are sticky and
 * reported by out_close(), so exporters just write.
 * A file is readable by its owner only: who typed the command, also under sudo. It is written as
 * "<path>.tmp", always a new file that is never reached through a link, and renamed at the end;
 * out_abandon() leaves nothing behind. What a killed program left at that name is removed; when
 * something else stands there, the name gets a random number.
 */
#pragma once

#include "base/buf.h"

struct out;

/* path "-" = standard output. ERR_EXISTS when the file is there and force is false. */
int out_open(const char *path, bool force, struct out **out, struct err *err);
/* Write into memory; the buf must outlive it. */
int out_to_buf(struct buf *to, struct out **out, struct err *err);
/*
 * Call before the first byte: the output becomes one gzip file; another thread packs what is large,
 * while more is put. 0 or ERR_MEMORY.
 */
int out_pack(struct out *out, struct err *err);
/* Call tell() now and then while bytes are put. */
void out_watch(struct out *out, void (*tell)(void *ctx), void *ctx);
/* Flush, rename into place, free. Every earlier failure is reported here. */
int out_close(struct out *out, struct err *err);
void out_abandon(struct out *out);                 /* NULL allowed */

void out_put(struct out *out, const void *bytes, size_t n);
void out_puts(struct out *out, const char *text);
/*
 * For writers that build text in a buf of their own: write it and empty the buf once it is
 * large, or always. A failed buf is left as it is.
 */
void out_drain(struct out *out, struct buf *text, bool always);
void out_printf(struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);
uint64_t out_bytes(const struct out *out);         /* put so far, counted before packing */
bool out_failed(const struct out *out);            /* a long writer may stop early */
