/*
 * A VFS of SQLite that writes each byte about once: for the file of the history that is being
 * written. A write-ahead log writes every page twice, a rollback journal each changed page twice;
 * both write whole pages for what are a few bytes.
 *
 *	000042-20261121-051240.db          pages, as SQLite has them
 *	000042-20261121-051240.db-redo     what changed in pages that were there already
 *
 * A transaction's new pages, behind the end of the file, go to their place at once, but for those
 * that later ones will fill up. One record of the log says which bytes of the others changed (of
 * new pages: are not zero), how many pages there are, and the CRC of the new ones in the file. Then
 * both are synced, and the transaction is there: a last record whose new pages are not as it says
 * has not been. What the log has stays in memory. From time to time, and when the file is closed,
 * it is written to its place (a checkpoint), and the log begins again.
 *
 * So the file itself is always a whole database, as of the last checkpoint, for programs that know
 * nothing of the log: its first page says how many pages count. Readers who come this way read the
 * log over it. A log that is left by a kill or a power cut is read the same way by whoever opens
 * the file next.
 *
 * Measured (bench_history_linux: 19 KB of segments every 10 s, 28 processes born in them; blocks
 * written for each byte of segments, by /proc/self/io): 1.43, of which 1.07 are segments, 0.09 what
 * they list, 0.27 the log. On ext4 the disk is given 2.1 (--pace 2, commit=1), the
 * file system's journal included. No file does better than 1.73 there: one to which the same bytes
 * are appended (--plain 19075), or one of fixed size that is overwritten (--in-place), preallocated
 * or written before, with lazytime, too. Each sync has three blocks of ext4's journal with it (a
 * descriptor, the block of the inode, whose time changed, a commit; see debugfs logdump) for five
 * blocks of data. 35 KB at once cost 1.38. Pages of half or twice the size are no better: three
 * hours have 1.29 and 1.51 blocks by /proc/self/io where these have 1.25.
 *
 * The log, in blocks of 4,096 bytes; a record begins on a block. Numbers are little-endian.
 *
 *	 0  "recredo4"
 *	 8  generation, 8 bytes   another one after each checkpoint
 *	16  sequence, 4           0 = the first block of a generation, which changes nothing
 *	20  pages, 4              of the file, once this record is there
 *	24  bytes of packed patches, 4
 *	28  first new page, 4     they go to the end of the file
 *	32  CRC-32 of those of them that have no patch, 4
 *	36  CRC-32 of bytes 0 to 35 and of the blob, 4; it goes on from that of the record before
 *	40  a blob (blob.c), none without patches: page (from 0) 4, offset 2, length 2, bytes
 *
 * One thread at a time; the recorder that holds the file's lock writes. A checkpoint waits until
 * nobody reads: readers hold SQLite's shared lock, for moments.
 */
#pragma once

#include "store/blob_private.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDO_SUFFIX "-redo"
#define REDO_PAGE_BYTES 4096u

struct redo;

/* As sqlite3_open_v2(). *out belongs to the connection: redo_free() it after sqlite3_close(). */
int redo_open(const char *name, int flags, bool write, struct redo **out, sqlite3 **db);
void redo_free(struct redo *r);              /* NULL allowed */
/* Leave the log where it is when the file is closed: the name is another file's by now. */
void redo_keep_log(struct redo *r);

struct redo_record {
	uint64_t generation;
	uint32_t sequence, npages;
	uint32_t first_new, new_crc;
	size_t npacked_bytes;                /* in the log */
	const uint8_t *patches;              /* borrowed from the buffer that redo_sound() filled */
	size_t npatch_bytes;
};

#define REDO_CRC_AT 36u
#define REDO_HEAD_BYTES 40u
#define REDO_PATCHES_MAX ((size_t)16 << 20)

/* Bytes of the log that a record with so many packed bytes takes. */
size_t redo_blocks(size_t npacked_bytes);
/* before: the CRC of the record before, 0 for a first block. So nothing counts after a torn one. */
uint32_t redo_crc(uint32_t before, const uint8_t head[REDO_HEAD_BYTES], const void *packed,
		  size_t n);
/* Replace what is in out by a record in whole blocks: r without its patches, and these. */
int redo_put_record(struct deflater *d, uint32_t before, const struct redo_record *r,
		    const struct columns *patches, struct buf *out);
/* From the first 40 bytes: how many follow; false: this is no record. */
bool redo_head(const uint8_t head[REDO_HEAD_BYTES], struct redo_record *out);
/*
 * Unpack r's patches into plain. 0; ERR_FORMAT: the CRC is wrong, or a patch does not lie within a
 * page of the file; ERR_MEMORY.
 */
int redo_sound(uint32_t before, const uint8_t head[REDO_HEAD_BYTES], const void *packed,
	       struct buf *plain, struct redo_record *r);

struct redo_patch {
	uint32_t page, offset, n;
	const uint8_t *bytes;
};

/* The patch at *at of a sound record; false at the end. */
bool redo_patch_next(const struct redo_record *r, size_t *at, struct redo_patch *out);
/* The patches that make a page of an older one. */
void redo_put_patches(struct buf *out, uint32_t page, const uint8_t *old, const uint8_t *new);
