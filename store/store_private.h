/*
 * Inside the store: what its files share. Nobody else includes this.
 *
 *	store.c         opening, creating, versions, the lock
 *	schema.c        the tables, and why they are so
 *	db.c      statements, transactions, SQLite's errors as sentences
 *	space.c   free disk space: the floor, the reserve file, giving pages back
 *	blob.c   blobs: deflate, CRC
 *	page.c    what is in blobs: lists, pages of frames, pages of texts
 *	page_row.c      the rows of pages, the newest of them, the next id
 *	intern.c  modules, processes, threads -> rows
 *	intern_frames.c  frames -> pages
 *	intern_functions.c  functions -> pages
 *	intern_texts.c   command lines -> pages
 *	write.c   begin, put, finish
 *	rollup.c  what an incident's segments add up to
 *	read.c    ids, heads
 *	read_segments.c  the segments of an incident
 *	load.c    a whole incident
 *	page_cache.c    the pages that were read for it
 *	order.c   its samples and events by time
 *	retention.c     delete, pin, limits
 *	sweep.c         what no segment lists any more
 *	sweep_marks.c   what they list
 *	rule_state.c    what rules remember
 *	idmap.c         a map from one integer to another
 */
#ifndef STORE_STORE_PRIVATE_H
#define STORE_STORE_PRIVATE_H

#include "store/store.h"

#include "base/buf.h"
#include "base/deflate.h"
#include "base/os.h"
#include "base/table.h"

#include <sqlite3.h>
#include <zlib.h>

/* ---- a map from one integer to another (idmap.c) -------------------------------------------- */

struct idmap {
	struct idslot {
		uint64_t key;
		int64_t value;
	} * slots; /* open addressing, at most half full: one cache miss */
	uint32_t nslots, used;
};

bool idmap_get(const struct idmap *m, uint64_t key, int64_t *value);
int idmap_set(struct idmap *m, uint64_t key, int64_t value); /* adds or replaces; 0 or ERR_MEMORY */
void idmap_clear(struct idmap *m);                               /* keeps memory */
void idmap_free(struct idmap *m);

/* ---- blobs (blob.c) ------------------------------------------------------------------ */

enum blob_kind { BLOB_OTHER = 1, BLOB_LISTS = 2 };
#define BLOB_HEADER_BYTES 10
#define LISTS_MAX_BYTES ((size_t)16 << 20)

struct blob {
	const void *bytes;
	size_t n;
};

#define COLUMNS_CUTS 64

/* Bytes to be deflated, and where codes of their own begin. {0} is empty and valid. */
struct columns {
	struct buf raw;                      /* failure is sticky */
	size_t cuts[COLUMNS_CUTS];
	uint32_t ncuts;
	enum deflate_kind kind;
};

/* Both replace what is in out. */
int blob_pack(struct deflater *d, enum blob_kind kind, const struct columns *c, struct buf *out,
	      struct err *err);
int blob_plain(const void *raw, size_t n, struct buf *out, struct err *err);
/* ERR_FORMAT: no blob of this kind, more than max_raw bytes, or a wrong CRC. */
int blob_unpack(const void *blob, size_t n, enum blob_kind kind, size_t max_raw, struct buf *out,
		struct err *err);
uint32_t blob_crc(const void *raw, size_t n);

/* ---- what is in blobs (page.c) -------------------------------------------------------- */

void columns_free(struct columns *c);

struct lists {
	int64_t *ids;                        /* threads, then frames; malloc'ed */
	uint32_t nthreads, nframes;
};

/* ids are used up. c is memory only, as below. */
int lists_pack(struct deflater *d, struct columns *c, uint64_t *ids, uint32_t nthreads, uint32_t nframes,
	       struct buf *out, struct err *err);
int lists_unpack(const void *blob, size_t n, struct lists *out, struct err *err);
/* Without the blob around it. */
int lists_decode(const void *raw, size_t n, struct lists *out, struct err *err);

#define PAGE_FRAMES 2048u                    /* that are packed together, at most */
#define PAGE_FRAMES_MAX 65536u               /* that are read */
#define PAGE_MAX_BYTES ((size_t)16 << 20)

struct page_frame {
	int64_t id;                          /* ascending */
	int64_t module_id, function_id;      /* function 0 = no name yet */
	uint64_t offset;
	uint32_t flags;
};

/* n >= 1 */
int frame_page_pack(struct deflater *d, struct columns *c, const struct page_frame *frames, uint32_t n,
		struct buf *out, struct err *err);
int frame_page_pack_functions(struct deflater *d, struct columns *c, const struct page_frame *frames, uint32_t n,
		   struct buf *out, struct err *err);
/* out: malloc'ed, n >= 1; functions NULL = none */
int frame_page_unpack(const struct blob *frames, const struct blob *functions, int64_t first_id,
		  struct page_frame **out, uint32_t *n, struct err *err);
int frame_page_decode(const struct buf *frames, const struct buf *functions, int64_t first_id,
		  struct page_frame **out, uint32_t *n, struct err *err);
/* Its index; UINT32_MAX = not there. */
uint32_t frame_page_find(const struct page_frame *frames, uint32_t n, int64_t id);

#define PAGE_TEXTS_MAX 262144u               /* that are read; a writer's have 256 KB of different texts */

struct text_page {
	char **texts;
	uint32_t *lengths;
	uint32_t n;
	struct buf memory;
};

int text_page_pack(struct deflater *d, struct columns *c, const char *const *texts, uint32_t n, struct buf *out,
	       struct err *err);
/* max_texts: of more it is damaged; a byte of a text that is nothing takes 12 of memory. */
int text_page_unpack(const struct blob *blob, uint32_t max_texts, struct text_page *out, struct err *err);
/* Takes raw on success. */
int text_page_decode(struct buf *raw, uint32_t max_texts, struct text_page *out, struct err *err);
void text_page_free(struct text_page *p);

#define FUNCTION_RAW_NAME 1u                 /* flags of a page of functions */
#define FUNCTION_MODULE 2u

struct page_function {
	int64_t id, module_id;               /* ids ascend */
	uint64_t offset;
	const char *name, *raw_name, *module;        /* the last two may be NULL */
};

struct function_page {
	struct page_function *functions;
	uint32_t n;
	struct text_page texts;
};

/* n >= 1 */
int function_page_pack(struct deflater *d, struct columns *c, const struct page_function *functions,
		       uint32_t n, struct buf *data, struct buf *names, struct err *err);
int function_page_unpack(const struct blob *data, const struct blob *names, int64_t first_id,
			 struct function_page *out, struct err *err);
void function_page_free(struct function_page *p);
/* NULL = not there */
const struct page_function *function_page_find(const struct function_page *p, int64_t id);

/* ---- the handle ----------------------------------------------------------------------------- */

struct interner;

struct store {
	char *path;
	enum store_mode mode;
	sqlite3 *db;
	struct os_file *lock;                /* STORE_RECORD: held while open */
	int64_t session_id;                  /* STORE_RECORD: this run's row */
	uint64_t floor_bytes;                /* UINT64_MAX = the default */
	struct kept_statement {
		const char *sql;
		sqlite3_stmt *st;
	} *statements;
	uint32_t nstatements, statements_cap;
	struct deflater *deflater;           /* STORE_RECORD, STORE_EDIT */
	struct interner *interner;           /* STORE_RECORD */
	bool (*call_off)(void *ctx);         /* NULL = retention does all that there is to do */
	void *call_off_ctx;
	bool unswept;                        /* incidents were deleted since */
	bool unshrunk;                       /* the file may have free pages to give back */
};

/* ---- SQLite (db.c) -------------------------------------------------------------------- */

/* A statement and the number of its arguments that are bound. */
struct args {
	sqlite3_stmt *st;
	int n;
};

/*
 * A statement, prepared once and kept; reset, without bindings. It is found again by the address of
 * sql, which is therefore a literal at one place.
 */
int db_statement(struct store *s, const char *sql, struct args *out, struct err *err);

/*
 * Bindings in order of the question marks. Texts and blobs are borrowed until the statement is
 * reset; so nothing is allocated and a binding cannot fail.
 */
void arg_int(struct args *a, int64_t v);
void arg_u64(struct args *a, uint64_t v);                /* stored as the int64 of the same bits */
void arg_num(struct args *a, double v);                  /* NaN = NULL */
void arg_text(struct args *a, const char *text);         /* NULL = NULL */
void arg_blob(struct args *a, const void *bytes, size_t n);   /* n 0 = NULL */
void arg_null(struct args *a);

/* Borrowed until the statement moves. */
struct blob column_blob(sqlite3_stmt *st, int column);

/* 1 a row, 0 no (more) row and the statement is reset, < 0 an error (reset, sentence in err). */
int db_step(struct store *s, sqlite3_stmt *st, struct err *err);
/* Step to the end: 0 or an error. */
int db_run(struct store *s, sqlite3_stmt *st, struct err *err);
/* SQL without arguments, not kept. Several statements are allowed; rows are stepped through. */
int db_exec(struct store *s, const char *sql, struct err *err);
/* One integer of a statement: 0, or ERR_NOT_FOUND without a sentence when there is no row. */
int db_int(struct store *s, sqlite3_stmt *st, int64_t *out, struct err *err);

/* The sentence for SQLite's last error on this handle; returns the code. */
int db_fail(struct store *s, struct err *err);
/* The same for an error code, and a handle that may be NULL. */
int db_error(const char *path, sqlite3 *db, int sqlite_rc, struct err *err);

enum tx { TX_NORMAL, TX_DURABLE };           /* durable: on the disk when it returns */

/*
 * One write transaction: work() runs inside it, and is undone when it returns an error. When the
 * disk is full the reserve is given up and work() runs a second time: it must start from its
 * arguments.
 */
typedef int store_work(struct store *s, void *arg, struct err *err);
int db_transact(struct store *s, enum tx durable, store_work *work, void *arg, struct err *err);
/*
 * One of many; and a rest of that length. Who waits for the lock tries again from time to time only, and in
 * the moment between two of them would not find it free.
 */
int db_transact_and_rest(struct store *s, store_work *work, void *arg, struct err *err);

/* ---- rows of pages (page_row.c) -------------------------------------------------------------- */

/* The blobs are those of st, until it is reset. */
struct page_row {
	sqlite3_stmt *st;
	int64_t first, last;                 /* ids in it, as its row says */
	struct blob data, more;              /* the second blob: functions of frames, names of functions */
};

/*
 * sql      columns first_id, last_id, data and the second blob, or NULL, of the page that an id asks for
 * returns  1, 0 there is none, or an error
 */
int page_row(struct store *s, const char *sql, int64_t id, struct page_row *out, struct err *err);

/*
 * The id for the next one of a kind. sql: the last that there is, 0 = none; what: their name, as "frames".
 * ERR_FORMAT when there are hardly any left: a recorder does not come that far, so the store was changed by others.
 */
int page_next_id(struct store *s, const char *sql, const char *what, int64_t *id, struct err *err);

struct page_learner {
	const char *what, *last_id;          /* as of page_next_id() */
	const char *newest;                  /* as of page_row(): the last page that begins at an id or before */
	/* What is in the page is known from now on. ERR_FORMAT: it is damaged, and not known. */
	int (*learn)(struct interner *in, const struct page_row *row, struct err *err);
	bool (*enough)(const struct interner *in);
};

/* Learn from the newest pages until it is enough, and the next id. Inside a transaction. */
int page_learn(struct store *s, const struct page_learner *l, int64_t *next, struct err *err);

/* ---- tables (schema.c) ---------------------------------------------------------------------- */

/* In a new, empty file: everything. Ends in WAL mode. */
int schema_create(struct store *s, struct err *err);

/* Names of enums in the file: they belong to the format, not to the program. */
const char *state_to_text(enum incident_state state);
enum incident_state state_from_text(const char *text);         /* unknown = partial */
const char *object_kind_to_text(enum object_kind kind);
enum object_kind object_kind_from_text(const char *text);      /* unknown = unknown */

/* ---- disk space (space.c) ------------------------------------------------------------- */

#define RESERVE_BYTES ((size_t)8 << 20)
#define FLOOR_BYTES ((uint64_t)500 << 20)

/* Write the reserve file if it is missing and there is room above the floor; best effort. */
void space_make_reserve(struct store *s);
/* true: there was one, and it is gone now. */
bool space_drop_reserve(struct store *s);
/* 0, or ERR_FULL with a sentence when less than the floor is free. */
int space_check_floor(struct store *s, struct err *err);
/*
 * Shrink the log (and the file, when deletes left free pages); best effort, other users come first.
 */
void space_checkpoint(struct store *s);
void space_give_back(struct store *s);

/* ---- rows for what segments list (intern.c) ------------------------------------------- */

int interner_new(struct interner **out, struct err *err);
void interner_free(struct interner *in);
/* Forget every id: after a rollback, or when another program has deleted rows. */
void interner_forget(struct interner *in);

/*
 * Keep what is known of frames for which listed() is true, forget the rest: some rows and pages were
 * deleted by ourselves.
 */
void interner_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame), const void *ctx);

/*
 * Inside a transaction: find or add a row for each thread that the segment lists and a place for each
 * frame.
 * lists    the two lists in ids of the store, as a blob
 */
int intern_segment(struct store *s, const struct segment *segment, struct buf *lists,
		   struct err *err);
/*
 * The segment just interned got this row id: its names need no look until there are more of them.
 */
int intern_stored(struct store *s, int64_t segment_id, struct err *err);
/* Inside a transaction: give the frames of a stored segment the names that they got since. */
int intern_names(struct store *s, const struct segment *segment, struct err *err);

/* Inside a transaction: a page of n >= 1 frames; c, data and functions are memory only. */
int frame_page_insert(struct store *s, const struct page_frame *frames, uint32_t n, struct columns *c,
		      struct buf *data, struct buf *functions, struct err *err);

int function_page_insert(struct store *s, const struct page_function *functions, uint32_t n,
			 struct columns *c, struct buf *data, struct buf *names, struct err *err);

/* ---- reading ids (read.c) and segments (read_segments.c) ------------------------------- */

struct ids {
	int64_t *ids;                        /* freed by the caller */
	uint32_t n, cap;
};

/* Appends the first column of every row. */
int ids_collect(struct store *s, sqlite3_stmt *st, struct ids *out, struct err *err);

struct stored_segment {
	int64_t id;
	struct segment_content content;
	int64_t *threads, *frames;           /* local index -> id; content.nthreads, nframes */
};

typedef int segment_reader(void *ctx, const struct stored_segment *segment, struct err *err);

struct damaged_segment {
	int64_t id;
	uint64_t t0_ns, t1_ns, samples;      /* what it would have held, as its row says */
	const char *why;
};

/* Told of one that cannot be read; 0 = go on with the others. */
typedef int damage_reader(void *ctx, const struct damaged_segment *segment, struct err *err);

/*
 * Each segment of an incident in order of time: checked, inflated, decoded, borrowed for the call.
 * damaged: NULL = the first damaged one is an error.
 */
int read_segments(struct store *s, int64_t incident_id, segment_reader *each, damage_reader *damaged,
		  void *ctx, struct err *err);
int not_found(struct store *s, int64_t id, struct err *err);

/* ---- order (order.c) ------------------------------------------------------------------ */

/* Samples or events of an incident by time, those of equal times in the order that they have; 0 or ERR_MEMORY. */
int sort_by_time(void *items, uint32_t n, size_t item_bytes);

/* ---- sums (rollup.c) ------------------------------------------------------------------ */

struct loss_row {
	uint64_t n;
	int32_t second;                      /* since the trigger, rounded down */
	int32_t cpu;                         /* -1 = none */
	enum loss_kind kind;
};

struct rollup {
	uint64_t samples;
	uint64_t period_ns[STREAMS_MAX];
	struct loss_row *losses;
	uint64_t quality[QUALITIES];
	uint32_t nlosses, losses_cap;
};

/* Count what the stored segments of an incident hold in the window of its head. */
int rollup_count(struct store *s, const struct incident_head *head, struct rollup *out,
		 struct err *err);
/* Inside a transaction: replace the incident's rows of loss, quality and stream. */
int rollup_store(struct store *s, int64_t incident_id, const struct rollup *r, struct err *err);
/* Into the fields of a head. */
void rollup_head(const struct rollup *r, struct incident_head *head);
void rollup_free(struct rollup *r);

/* ---- sweeping (sweep.c) --------------------------------------------------------------------- */

/* All are best effort. */
int store_sweep_segments(struct store *s);               /* delete those that no incident has; ERR_STOPPED: called off */
void store_sweep(struct store *s);                       /* and what no segment lists; s->unswept: it was called off */
/* Inside a transaction: whoever opens the store knows of it until a sweep has come to its end. */
int sweep_note(struct store *s, struct err *err);
/* For a recorder that begins: s->unswept and s->unshrunk, as the one before left the file. */
void sweep_look(struct store *s);

/* ---- writing (write.c) ---------------------------------------------------------------- */

/* Incidents that a recorder left open become partial; the lock is held. */
int partial_convert(struct store *s, struct err *err);
/* The window of an incident without one: what was asked for, cut to what its segments cover. */
int window_of_segments(struct store *s, struct incident_head *head, struct err *err);

#endif
