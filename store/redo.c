/* The VFS: which pages are where; commit, checkpoint, and readers. redo_private.h has the idea. */
#include "store/redo_private.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/os.h"
#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PAGE REDO_PAGE_BYTES
#define PIECE_BYTES ((size_t)64 << 10)
#define CHECKPOINT_PAGES 512u
#define PAGES_MAX 16384u                     /* that a log may change: those of 64 MB */
#define CHECKPOINT_LOG ((sqlite3_int64)512 << 10)
#define ROOM_PAGES 128u                      /* taken from the disk at once, for new pages */
#define CLOSE_TRIES 50u                      /* each 20 ms: readers hold the file for moments */

struct redo {
	sqlite3_vfs vfs;
	sqlite3_vfs *real;
	bool write, keep_log;
	char name[32];
};

static const uint8_t zeros[PAGE];

/* A page that is not, or not as it is, in the file. */
struct page {
	uint32_t number;
	uint8_t *now;                        /* as the log has it; NULL = as the file has it */
	uint8_t *next;                       /* of the transaction that is open; or NULL */
};

struct redo_file {
	sqlite3_file sqlite;                 /* first */
	struct redo *r;
	sqlite3_file *db, *log;              /* those of the real VFS, behind this; log or NULL */
	char *log_name;
	const char *db_name;                       /* SQLite's, for the life of the file */
	struct page *pages;
	uint32_t npages_kept, cap;
	struct table table;                  /* of pages, by number */
	uint32_t size, next_size;            /* pages of the file: there; of the transaction */
	uint32_t room;                       /* pages that the disk has given */
	uint64_t generation;
	uint32_t sequence;                   /* of the next record */
	uint32_t crc;                        /* of the last one */
	uint32_t new_crc;                    /* of the open transaction's new pages */
	sqlite3_int64 log_at;                /* where it goes */
	bool logged;                         /* the log has a first block */
	bool unborn;                         /* it has not yet: nothing of the file counts */
	bool changed;                        /* a transaction is open, and wrote */
	bool broken;                         /* a sync failed: nothing is known any more */
	struct deflater *deflater;
	struct columns patches;              /* of the open transaction */
	struct buf record, plain;            /* as in the log; its patches */
};

static struct redo_file *of(sqlite3_file *f)
{
	return (struct redo_file *)(void *)f;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool same_page(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct redo_file *)ctx)->pages[value].number == *(const uint32_t *)key;
}

static struct page *find_page(const struct redo_file *f, uint32_t number)
{
	uint32_t at = table_find(&f->table, hash_u64(number), same_page, f, &number);

	return at == TABLE_NONE ? NULL : &f->pages[at];
}

static struct page *have_page(struct redo_file *f, uint32_t number)
{
	struct page *p = find_page(f, number);

	if (p)
		return p;
	if (f->npages_kept >= PAGES_MAX ||
	    ARRAY_ROOM(f->pages, f->cap, f->npages_kept + 1) ||
	    table_add(&f->table, hash_u64(number), f->npages_kept))
		return NULL;
	p = &f->pages[f->npages_kept++];
	*p = (struct page){.number = number};
	return p;
}

/* Keep only pages of the file that the log has; what is open of others goes. */
static void drop_open(struct redo_file *f, bool all)
{
	uint32_t i, n = 0;

	table_clear(&f->table);
	for (i = 0; i < f->npages_kept; i++) {
		struct page p = f->pages[i];

		free(p.next);
		p.next = NULL;
		if (all || !p.now || p.number >= f->size) {
			free(p.now);
			continue;
		}
		f->pages[n] = p;
		table_add(&f->table, hash_u64(p.number), n++);       /* it has its memory */
	}
	f->npages_kept = n;
	f->next_size = f->size;
	f->changed = false;
}

/* The page as the file has it; what is behind its end is zero. */
static int load_page(const struct redo_file *f, uint32_t number, uint8_t *to)
{
	int rc = f->db->pMethods->xRead(f->db, to, PAGE, (sqlite3_int64)number * PAGE);

	return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc;
}

/* p->now, loaded where the log has not had the page yet; of a new page: zero. */
static int have_now(const struct redo_file *f, struct page *p)
{
	uint8_t *bytes;
	int rc;

	if (p->now)
		return SQLITE_OK;
	bytes = calloc(1, PAGE);
	rc = !bytes ? SQLITE_IOERR_NOMEM : p->number < f->size ? load_page(f, p->number, bytes) : 0;
	if (rc)
		free(bytes);
	else
		p->now = bytes;
	return rc;
}

/* ---- the log, read --------------------------------------------------------------------------- */

/* SQLite's own methods take less than 128 KB at once. */
static int read_bytes(const struct redo_file *f, uint8_t *to, size_t n, sqlite3_int64 at)
{
	int rc = SQLITE_OK;
	size_t part;

	for (; !rc && n; n -= part, to += part, at += (sqlite3_int64)part) {
		part = n < PIECE_BYTES ? n : PIECE_BYTES;
		rc = f->log->pMethods->xRead(f->log, to, (int)part, at);
	}
	return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_DONE : rc;     /* behind the end */
}

static int write_bytes(struct redo_file *f, const uint8_t *from, size_t n, sqlite3_int64 at)
{
	int rc = SQLITE_OK;
	size_t part;

	for (; !rc && n; n -= part, from += part, at += (sqlite3_int64)part) {
		part = n < PIECE_BYTES ? n : PIECE_BYTES;
		rc = f->log->pMethods->xWrite(f->log, from, (int)part, at);
	}
	return rc;
}

/* The next record, into f->record; SQLITE_DONE: there is none. */
static int read_record(struct redo_file *f, struct redo_record *out)
{
	uint8_t head[REDO_HEAD_BYTES];
	int rc = read_bytes(f, head, sizeof(head), f->log_at);

	if (rc)
		return rc;
	if (!redo_head(head, out) || (f->logged && (out->generation != f->generation ||
						    out->sequence != f->sequence)))
		return SQLITE_DONE;
	buf_reset(&f->record);
	if (!buf_reserve(&f->record, out->npacked_bytes))
		return SQLITE_IOERR_NOMEM;
	rc = read_bytes(f, (uint8_t *)f->record.data, out->npacked_bytes,
			f->log_at + REDO_HEAD_BYTES);
	if (rc)
		return rc;
	rc = redo_sound(f->logged ? f->crc : 0, head, f->record.data, &f->plain, out);
	if (!rc)
		f->crc = le32(head + REDO_CRC_AT);
	return rc == ERR_MEMORY ? SQLITE_IOERR_NOMEM : rc ? SQLITE_DONE : SQLITE_OK;
}

static int apply(struct redo_file *f, const struct redo_record *r)
{
	struct redo_patch patch;
	size_t at = 0;
	int rc = SQLITE_OK;

	while (!rc && redo_patch_next(r, &at, &patch)) {
		struct page *p = have_page(f, patch.page);

		rc = p ? have_now(f, p) : SQLITE_IOERR_NOMEM;
		if (!rc)
			memcpy(p->now + patch.offset, patch.bytes, patch.n);
	}
	return rc;
}

/* A record follows only once this one was synced. */
static bool is_last(const struct redo_file *f, const struct redo_record *r)
{
	uint8_t head[REDO_HEAD_BYTES];
	struct redo_record next;

	return read_bytes(f, head, sizeof(head),
			  f->log_at + (sqlite3_int64)redo_blocks(r->npacked_bytes)) ||
	       !redo_head(head, &next) || next.generation != r->generation ||
	       next.sequence != r->sequence + 1;
}

/* SQLITE_DONE: the power went before the new pages were on the disk. */
static int check_new_pages(const struct redo_file *f, const struct redo_record *r)
{
	uLong crc = crc32(0, NULL, 0);
	struct redo_patch patch = {0};
	uint8_t page[PAGE];
	size_t at = 0;
	uint32_t i;
	int rc = SQLITE_OK;

	if (r->npages > r->first_new && r->npages - r->first_new > PAGES_MAX)
		return SQLITE_DONE;
	for (i = r->first_new; !rc && i < r->npages; i++) {
		while (patch.page < i && redo_patch_next(r, &at, &patch))
			;
		if (patch.page == i && i)
			continue;            /* it is in the log */
		rc = f->db->pMethods->xRead(f->db, page, PAGE, (sqlite3_int64)i * PAGE);
		crc = crc32(crc, page, PAGE);
	}
	if (rc && rc != SQLITE_IOERR_SHORT_READ)
		return rc;
	return (!rc && crc == r->new_crc) || !is_last(f, r) ? SQLITE_OK : SQLITE_DONE;
}

/* Apply what the log has that was not applied yet. */
static int read_log(struct redo_file *f)
{
	uint32_t crc = f->crc, size;
	struct redo_record r;
	int rc = SQLITE_OK;

	while (!rc && !(rc = read_record(f, &r)) && !(rc = check_new_pages(f, &r)) &&
	       !(rc = apply(f, &r))) {
		f->logged = true;
		f->generation = r.generation;
		f->sequence = r.sequence + 1;
		f->log_at += (sqlite3_int64)redo_blocks(r.npacked_bytes);
		crc = f->crc;
		size = f->size;
		f->size = f->next_size = r.npages;
		if (r.npages < size)
			drop_open(f, false);
	}
	f->crc = crc;
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void begin_log(struct redo_file *f)
{
	drop_open(f, true);
	f->logged = false;
	f->sequence = 0;
	f->log_at = 0;
}

/* A reader begins: nobody makes a checkpoint now. Another generation is read from its beginning. */
static int refresh(struct redo_file *f)
{
	uint8_t head[REDO_HEAD_BYTES];
	struct redo_record first;
	sqlite3_int64 bytes = 0;
	int rc = f->logged ? read_bytes(f, head, sizeof(head), 0) : SQLITE_OK;

	if (rc && rc != SQLITE_DONE)
		return rc;
	if (f->logged && (rc || !redo_head(head, &first) || first.generation != f->generation))
		begin_log(f);
	rc = read_log(f);
	if (!rc && !f->logged)
		rc = f->log->pMethods->xFileSize(f->log, &bytes);
	f->unborn = !f->logged && bytes < PAGE;
	return rc;
}

/* ---- the log, written ------------------------------------------------------------------------ */

/* patches: of the open transaction, or none: the first block of a generation. */
static int write_record(struct redo_file *f, uint32_t before, uint32_t sequence)
{
	const struct redo_record r = {
		.generation = f->generation, .sequence = sequence, .npages = f->next_size,
		.first_new = sequence ? f->size : f->next_size,
		.new_crc = sequence ? f->new_crc : 0,
	};

	if (redo_put_record(f->deflater, before, &r, &f->patches, &f->record))
		return SQLITE_IOERR_NOMEM;
	return write_bytes(f, (const uint8_t *)f->record.data, f->record.len,
			   sequence ? f->log_at : 0);
}

static int put_first(struct redo_file *f)
{
	int rc;

	buf_reset(&f->patches.raw);
	rc = write_record(f, 0, 0);
	if (rc)
		return rc;
	f->crc = le32(f->record.data + REDO_CRC_AT);
	f->logged = true;
	f->sequence = 1;
	f->log_at = PAGE;
	return SQLITE_OK;
}

/* check_new_pages() reads the patches of new pages in this order. */
static int by_number(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/*
 * A file that grows with each sync makes the file system write down its new size each time, in some
 * five blocks of its own journal: so it grows by many pages at once.
 */
static void take_room(struct redo_file *f)
{
	if (f->next_size <= f->room)
		return;
	f->room = f->next_size + ROOM_PAGES;
	os_make_room(f->db_name, (uint64_t)f->room * PAGE);
}

/*
 * Pages of trees fill up later, from their end: new ones that are not half full go to the log. They
 * begin with a kind, and at 5 have where their content begins; others begin with a page number, so
 * with 0 (SQLite's file format, 1.6). A file's first pages are written: it is a database then.
 */
static bool goes_to_the_log(const struct redo_file *f, const struct page *p)
{
	const uint8_t *bytes = p->next;

	if (!bytes || p->number < f->size)
		return bytes != NULL;
	return f->size && bytes[0] && (bytes[5] << 8 | bytes[6]) > (int)PAGE / 2;
}

/* A page that SQLite did not write (it is free) is zero: the record's sum has all. */
static int write_new_pages(struct redo_file *f)
{
	uint32_t i, at = f->size;
	uLong crc = crc32(0, NULL, 0);
	int rc = SQLITE_OK;

	take_room(f);
	qsort(f->pages, f->npages_kept, sizeof(*f->pages), by_number);
	table_clear(&f->table);
	for (i = 0; i < f->npages_kept; i++)
		table_add(&f->table, hash_u64(f->pages[i].number), i);       /* it has its memory */
	for (; !rc && at < f->next_size; at++) {
		const struct page *p = find_page(f, at);
		const uint8_t *bytes = p && p->next ? p->next : zeros;

		if (p && goes_to_the_log(f, p))
			continue;
		rc = f->db->pMethods->xWrite(f->db, bytes, PAGE, (sqlite3_int64)at * PAGE);
		crc = crc32(crc, bytes, PAGE);
	}
	f->new_crc = (uint32_t)crc;
	return rc;
}

/* f->record.len 0: nothing changed; a rollback put everything back. */
static int put_record(struct redo_file *f)
{
	struct buf *patches = &f->patches.raw;
	uint32_t i;
	int rc = SQLITE_OK;

	buf_reset(&f->record);
	buf_reset(patches);
	for (i = 0; !rc && i < f->npages_kept; i++) {
		struct page *p = &f->pages[i];

		if (!goes_to_the_log(f, p) || p->number >= f->next_size)
			continue;
		rc = have_now(f, p);
		if (!rc)
			redo_put_patches(patches, p->number, p->now, p->next);
	}
	if (rc || patches->failed || patches->len > REDO_PATCHES_MAX)
		return rc ? rc : SQLITE_IOERR_NOMEM;
	if (!patches->len && f->next_size == f->size)
		return SQLITE_OK;
	return write_record(f, f->crc, f->sequence);
}

/* Both at once: a file system that writes down their times does it once. */
static int sync_record(struct redo_file *f, int flags)
{
	int rc = SQLITE_OK;

	if (!f->record.len)
		return SQLITE_OK;
	if (f->next_size > f->size)
		rc = f->db->pMethods->xSync(f->db, flags);
	if (!rc)
		rc = f->log->pMethods->xSync(f->log, flags);
	if ((f->broken |= rc != 0))
		return rc;
	f->log_at += (sqlite3_int64)f->record.len;
	f->sequence++;
	f->crc = le32(f->record.data + REDO_CRC_AT);
	return SQLITE_OK;
}

/* ---- checkpoint ------------------------------------------------------------------------------ */

static int write_pages(struct redo_file *f)
{
	const sqlite3_io_methods *m = f->db->pMethods;
	uint32_t i;
	int rc = SQLITE_OK;

	for (i = 0; !rc && i < f->npages_kept; i++) {
		if (f->pages[i].now)
			rc = m->xWrite(f->db, f->pages[i].now, PAGE,
				       (sqlite3_int64)f->pages[i].number * PAGE);
	}
	if (!rc)
		rc = m->xSync(f->db, SQLITE_SYNC_NORMAL);
	return rc;
}

/* Between transactions. SQLITE_BUSY: somebody reads; nothing was done. */
static int checkpoint(struct redo_file *f)
{
	const sqlite3_io_methods *m = f->db->pMethods;
	int rc;

	if (f->broken)
		return SQLITE_IOERR;
	rc = m->xLock(f->db, SQLITE_LOCK_SHARED);
	if (!rc)
		rc = m->xLock(f->db, SQLITE_LOCK_RESERVED);
	if (!rc)
		rc = m->xLock(f->db, SQLITE_LOCK_EXCLUSIVE);
	if (!rc)
		rc = write_pages(f);
	if (!rc) {
		drop_open(f, true);
		f->generation++;
		rc = put_first(f);
		/* Records of this generation must not be on the disk before its first block. */
		if (!rc)
			rc = f->log->pMethods->xSync(f->log, SQLITE_SYNC_NORMAL);
		f->broken |= rc != 0;
	}
	m->xUnlock(f->db, SQLITE_LOCK_NONE);
	return rc;
}

/* ---- SQLite's methods ------------------------------------------------------------------------ */

static int redo_close(sqlite3_file *file)
{
	struct redo_file *f = of(file);
	sqlite3_vfs *real = f->r->real;
	unsigned tries = 0;
	bool done = false;

	drop_open(f, false);
	while (f->r->write && f->log && !done && tries++ < CLOSE_TRIES) {
		int rc = checkpoint(f);

		done = rc == SQLITE_OK;
		if ((rc & 0xff) != SQLITE_BUSY)
			break;
		sqlite3_sleep(20);
	}
	if (done)
		f->db->pMethods->xTruncate(f->db, (sqlite3_int64)f->size * PAGE);
	if (f->log)
		f->log->pMethods->xClose(f->log);
	if (done && !f->r->keep_log)
		real->xDelete(real, f->log_name, 1);
	drop_open(f, true);
	table_free(&f->table);
	free(f->pages);
	free(f->log_name);
	buf_free(&f->record);
	buf_free(&f->plain);
	columns_free(&f->patches);
	deflater_free(f->deflater);
	return f->db->pMethods->xClose(f->db);
}

static int redo_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
	struct redo_file *f = of(file);
	const struct page *p = find_page(f, (uint32_t)(at / PAGE));

	if (p && (p->next || p->now) && at % PAGE + n <= PAGE) {
		memcpy(to, (p->next ? p->next : p->now) + at % PAGE, (size_t)n);
		return SQLITE_OK;
	}
	if (f->unborn || (f->logged && at + n > (sqlite3_int64)f->next_size * PAGE)) {
		memset(to, 0, (size_t)n);
		return SQLITE_IOERR_SHORT_READ;
	}
	return f->db->pMethods->xRead(f->db, to, n, at);
}

static int redo_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
	struct redo_file *f = of(file);
	uint32_t number = (uint32_t)(at / PAGE);
	struct page *p;

	if (!f->r->write)
		return SQLITE_READONLY;
	if (f->broken || n != PAGE || at % PAGE)
		return SQLITE_IOERR_WRITE;
	f->changed = true;
	p = have_page(f, number);
	if (!p || (!p->next && !(p->next = malloc(PAGE))))
		return SQLITE_IOERR_NOMEM;
	memcpy(p->next, bytes, PAGE);
	f->next_size = number < f->next_size ? f->next_size : number + 1;
	return SQLITE_OK;
}

static int redo_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
	struct redo_file *f = of(file);

	if (!f->r->write)
		return SQLITE_READONLY;
	f->next_size = (uint32_t)(bytes / PAGE);
	f->changed = true;
	return SQLITE_OK;
}

/* SQLite syncs the file when all of a transaction was written. */
static int redo_sync(sqlite3_file *file, int flags)
{
	struct redo_file *f = of(file);
	uint32_t i;
	int rc;

	if (f->broken)
		return SQLITE_IOERR_FSYNC;
	rc = write_new_pages(f);
	if (!rc)
		rc = put_record(f);
	if (!rc)
		rc = sync_record(f, flags);
	if (rc)
		return rc;
	for (i = 0; i < f->npages_kept; i++) {
		struct page *p = &f->pages[i];

		if (!goes_to_the_log(f, p))
			continue;
		free(p->now);
		p->now = p->next;
		p->next = NULL;
	}
	f->size = f->next_size;
	drop_open(f, false);
	if (f->npages_kept > CHECKPOINT_PAGES || f->log_at > CHECKPOINT_LOG)
		checkpoint(f);
	return SQLITE_OK;
}

static int redo_size(sqlite3_file *file, sqlite3_int64 *bytes)
{
	struct redo_file *f = of(file);

	if (!f->logged && !f->unborn)
		return f->db->pMethods->xFileSize(f->db, bytes);
	*bytes = (sqlite3_int64)f->next_size * PAGE;
	return SQLITE_OK;
}

/* The writer's lock is that of the recorder; readers do not mind what it does but checkpoints. */
static int redo_lock(sqlite3_file *file, int level)
{
	struct redo_file *f = of(file);
	int rc;

	if (f->r->write)
		return SQLITE_OK;
	rc = f->db->pMethods->xLock(f->db, level);
	if (!rc && f->log && level == SQLITE_LOCK_SHARED)
		rc = refresh(f);
	else
		return rc;
	if (rc)
		f->db->pMethods->xUnlock(f->db, SQLITE_LOCK_NONE);
	return rc;
}

static int redo_unlock(sqlite3_file *file, int level)
{
	struct redo_file *f = of(file);

	if (!f->r->write)
		return f->db->pMethods->xUnlock(f->db, level);
	if (f->changed)
		drop_open(f, false);         /* it was rolled back */
	return SQLITE_OK;
}

static int redo_reserved(sqlite3_file *file, int *held)
{
	struct redo_file *f = of(file);

	*held = 0;
	return f->r->write ? SQLITE_OK : f->db->pMethods->xCheckReservedLock(f->db, held);
}

static int redo_control(sqlite3_file *file, int what, void *arg)
{
	struct redo_file *f = of(file);

	/* Anything that would change the size of the real file is the checkpoint's to do. */
	if (what != SQLITE_FCNTL_HAS_MOVED && what != SQLITE_FCNTL_LAST_ERRNO)
		return SQLITE_NOTFOUND;
	return f->db->pMethods->xFileControl(f->db, what, arg);
}

static int redo_sector(sqlite3_file *file)
{
	(void)file;
	return PAGE;
}

static int redo_traits(sqlite3_file *file)
{
	return of(file)->db->pMethods->xDeviceCharacteristics(of(file)->db) &
	       ~SQLITE_IOCAP_BATCH_ATOMIC;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1, .xClose = redo_close, .xRead = redo_read, .xWrite = redo_write,
	.xTruncate = redo_truncate, .xSync = redo_sync, .xFileSize = redo_size,
	.xLock = redo_lock, .xUnlock = redo_unlock, .xCheckReservedLock = redo_reserved,
	.xFileControl = redo_control, .xSectorSize = redo_sector,
	.xDeviceCharacteristics = redo_traits,
};

/* ---- opening --------------------------------------------------------------------------------- */

/* How many pages count, when the log does not say: as the file's first page does. */
static int size_by_file(struct redo_file *f)
{
	uint8_t n[4] = {0};
	int rc = f->db->pMethods->xRead(f->db, n, 4, 28);

	f->size = f->next_size = (uint32_t)n[0] << 24 | (uint32_t)(n[1] << 16 | n[2] << 8 | n[3]);
	return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc;
}

/* All of it is written once, so that a record later changes nothing but its own block. */
static int make_log(struct redo_file *f)
{
	sqlite3_int64 at;
	int rc = SQLITE_OK;

	for (at = PAGE; !rc && at < CHECKPOINT_LOG; at += PAGE)
		rc = write_bytes(f, zeros, PAGE, at);
	return rc ? rc : put_first(f);
}

/*
 * The writer's: take up what the log has. A log without a first block is that of a file that a
 * power cut found being made: nothing counts.
 */
static int take_log(struct redo_file *f)
{
	sqlite3_int64 bytes = 0;
	int rc = f->log->pMethods->xFileSize(f->log, &bytes);

	if (!rc)
		rc = read_log(f);
	if (rc || f->logged)
		return rc;
	if (bytes >= PAGE)
		rc = size_by_file(f);
	sqlite3_randomness(sizeof(f->generation), &f->generation);
	if (!rc)
		rc = make_log(f);
	return rc ? rc : f->log->pMethods->xSync(f->log, SQLITE_SYNC_NORMAL);
}

static int open_log(struct redo_file *f)
{
	sqlite3_vfs *real = f->r->real;
	int flags = SQLITE_OPEN_WAL, there = 0, rc;

	flags |= f->r->write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
	rc = real->xAccess(real, f->log_name, SQLITE_ACCESS_EXISTS, &there);
	if (rc || (!there && !f->r->write))
		return rc;                   /* completed meanwhile */
	f->log = (sqlite3_file *)(void *)((char *)f->db + real->szOsFile);
	rc = real->xOpen(real, f->log_name, f->log, flags, NULL);
	if (rc) {
		if (f->log->pMethods)
			f->log->pMethods->xClose(f->log);
		f->log = NULL;
		return rc;
	}
	return f->r->write ? take_log(f) : SQLITE_OK;
}

static int redo_vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			 int *got)
{
	struct redo *r = vfs->pAppData;
	struct redo_file *f = of(file);
	size_t n;
	int rc;

	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return r->real->xOpen(r->real, name, file, flags, got);
	memset(f, 0, (size_t)vfs->szOsFile);
	f->r = r;
	f->db = (sqlite3_file *)(void *)(f + 1);
	rc = r->real->xOpen(r->real, name, f->db, flags, got);
	if (rc) {
		if (f->db->pMethods)
			f->db->pMethods->xClose(f->db);
		return rc;
	}
	f->db_name = name;
	f->sqlite.pMethods = &methods;       /* from here on SQLite closes it */
	n = strlen(name) + sizeof(REDO_SUFFIX);
	f->log_name = calloc(1, n + 2);      /* names of a VFS end with two zeros */
	f->deflater = r->write ? deflater_new(false) : NULL;
	if (!f->log_name || (r->write && !f->deflater))
		return SQLITE_IOERR_NOMEM;
	snprintf(f->log_name, n, "%s" REDO_SUFFIX, name);
	rc = open_log(f);
	f->broken = rc != SQLITE_OK;
	return rc;
}

int redo_open(const char *name, int flags, bool write, struct redo **out, sqlite3 **db)
{
	struct redo *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return SQLITE_NOMEM;
	*out = r;
	r->write = write;
	r->real = sqlite3_vfs_find(NULL);
	r->vfs = *r->real;
	r->vfs.pNext = NULL;
	r->vfs.pAppData = r;
	r->vfs.xOpen = redo_vfs_open;
	r->vfs.szOsFile = (int)sizeof(struct redo_file) + 2 * r->real->szOsFile;
	snprintf(r->name, sizeof(r->name), "redo-%p", (void *)r);
	r->vfs.zName = r->name;
	rc = sqlite3_vfs_register(&r->vfs, 0);
	if (rc)
		return rc;
	rc = sqlite3_open_v2(name, db, flags, r->name);
	sqlite3_vfs_unregister(&r->vfs);     /* the connection keeps it */
	return rc;
}

void redo_keep_log(struct redo *r)
{
	r->keep_log = true;
}

void redo_free(struct redo *r)
{
	free(r);
}
