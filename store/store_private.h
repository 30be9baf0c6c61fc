/*
 * Inside the store: the handle, and what its files call of each other.
 *
 *	store.c           opening, formats, the lock
 *	schema.c          the tables, and why they are so
 *	place.c           whether the file is still at its name; moving a damaged one away
 *	db.c              queries, transactions, SQLite's errors as sentences
 *	space.c           free disk space: the floor, the reserve file, giving pages back
 *	retention.c       delete, pin, note, limits
 *	age.c             the time by which incidents age
 *	rule_state.c      what rules remember
 *	idmap.c           a map from one integer to another
 *
 *	blob.c            blobs: deflate, CRC
 *	page.c            what blobs hold: lists, pages of frames, functions, texts
 *	page_row.c        the rows of pages, the newest of them, the next id
 *	page_cache.c      the pages read while an incident is loaded
 *
 *	write.c           begin, put, finish
 *	rollup.c          what an incident's segments add up to
 *	intern.c          modules, processes, threads -> rows
 *	intern_tasks.c    processes, threads -> pages, in the history
 *	intern_frames.c, intern_functions.c, intern_texts.c    the same -> pages
 *
 *	read.c            ids and heads
 *	read_segments.c   the segments of an incident
 *	load.c            a whole incident
 *	order.c           its samples and events by time
 *
 *	verify.c          looks for damage
 *	salvage.c         what is readable of a damaged store, in a new one
 *
 *	adopt.c           segments of one store, copied into another
 *	copy.c            an incident of one store, copied into another
 *	ship.c            what was sent where
 *
 *	history.c         the row of files beside the store, written
 *	history_file.c    one of them: its name, what it says of itself
 *	history_read.c    windows of the past out of them
 *	redo.c, redo_log.c    the one that is written: each byte about once
 *
 *	sweep.c           deletes what no segment lists any more
 *	sweep_marks.c     what segments list
 */
#pragma once

#include "store/store.h"

#include "store/db_private.h"
#include "store/idmap_private.h"
#include "store/page_private.h"
#include "store/redo_private.h"

#include "base/os.h"
#include "base/table.h"

#define STORE_PARTS 4u                       /* the file, its logs, a log's index */

struct store {
	char *path;
	enum store_mode mode;
	sqlite3 *db;
	struct redo *redo;                   /* under it, if uses_redo */
	struct os_file *lock;                /* STORE_RECORD: held while open */
	struct os_file_info files[STORE_PARTS];      /* STORE_RECORD: what is open */
	bool damaged;                        /* SQLite has found damage */
	bool history;                        /* a file of the history: no reserve, no vacuum */
	bool uses_redo;                      /* ... that is not complete: redo_private.h */
	bool has_homes;                      /* its processes have home_id */
	struct put_sums *put;                /* of segments put last, by id; NULL = none */
	struct rollup *sums;                 /* of the history: of what was put; NULL = not known */
	struct incident_head sums_of;
	bool has_tasks;                      /* of the history, with pages of processes, threads */
	int64_t session_id;                  /* STORE_RECORD: this run's row */
	uint64_t floor_bytes;                /* UINT64_MAX = the default */
	struct kept_statement {
		const char *sql;
		sqlite3_stmt *st;
	} *statements;
	uint32_t nstatements, statements_cap;
	struct deflater *deflater;           /* STORE_RECORD, STORE_EDIT */
	struct interner *interner;           /* STORE_RECORD */
	bool (*call_off)(void *ctx);         /* NULL = retention is never called off */
	void *call_off_ctx;
	_Atomic uint64_t *progress;          /* counts queries; NULL = nobody looks */
	struct age_clock {
		uint64_t wall_ns, clock_ns;  /* 0 = not known yet; the recorder clock then */
	} age;
	uint64_t age_saved_ns;               /* what the file has */
	bool unswept;                        /* incidents were deleted since the last sweep */
	bool unshrunk;                       /* the file may have free pages to give back */
};

/* ---- store.c -------------------------------------------------------------------------------- */

/* The name of a file beside the store. */
int beside(const struct store *s, const char *suffix, struct buf *out, struct err *err);
/* Finalize the statements and close the handle. */
void disconnect(struct store *s);
/* Open the handle; flags of sqlite3_open_v2(). */
int connect_to(struct store *s, const char *name, int flags, struct err *err);
/* The path as "file:" URI, with "?immutable=1" or nothing behind it. */
int file_uri(const char *path, const char *query, struct buf *out, struct err *err);
/* There is a log beside the file, and it is not empty. */
bool has_log(const struct store *s);
/* store_open() with STORE_RECORD, as a file of the history: every transaction is durable. */
int store_open_history(const char *path, struct store **out, struct err *err);
/* store_open(); *damaged: it failed because SQLite has found damage. */
int store_open_saying(const char *path, enum store_mode mode, bool *damaged, struct store **out,
		      struct err *err);

/* ---- place.c -------------------------------------------------------------------------------- */

void place_note(struct store *s);            /* STORE_RECORD: once all files are there */
void place_disconnect(struct store *s);      /* disconnect(), without touching other files */

/* ---- schema.c ------------------------------------------------------------------------------- */

/* Whether processes have homes here, into s->has_homes; and make it so (STORE_RECORD). */
int schema_look(struct store *s, struct err *err);
int schema_extend(struct store *s, struct err *err);
/* Make all tables in a new, empty file. */
int schema_create(struct store *s, struct err *err);
/* Make the table of segments anew, as a file of the history has it. */
int schema_history_segments(struct store *s, struct err *err);
/* Make the tables of a file of the history that hold its processes and threads. */
int schema_task_pages(struct store *s, struct err *err);

/* Names of enums in the file: they belong to the format, not to the program. */
const char *state_to_text(enum incident_state state);
enum incident_state state_from_text(const char *text);         /* unknown = partial */
/* A new note before the remarks, which people add: each is a line after the note's own. */
#define STORE_SQL_NOTE \
	"nullif(coalesce(?, '') || CASE WHEN instr(note, char(10)) > 0" \
	" THEN substr(note, instr(note, char(10))) ELSE '' END, '')"

const char *object_kind_to_text(enum object_kind kind);
enum object_kind object_kind_from_text(const char *text);      /* unknown = unknown */

/* ---- space.c -------------------------------------------------------------------------------- */

/* Write the reserve file if it is missing and the disk has room above the floor; best effort. */
void space_make_reserve(struct store *s);
/* true: there was a reserve file, and it is gone now. */
bool space_drop_reserve(struct store *s);
/* 0, or ERR_FULL with a sentence when less than the floor is free. */
int space_check_floor(struct store *s, struct err *err);
/* Shrink the log; or the file, by its free pages. Best effort: other users come first. */
void space_checkpoint(struct store *s);
void space_give_back(struct store *s);

/* ---- page_row.c ----------------------------------------------------------------------------- */

struct interner;

/* The row of a page; blobs are borrowed until query_reset(&row.query). */
struct page_row {
	struct query query;
	int64_t first, last;                 /* ids in the page, as its row says */
	struct blob data, more;              /* more: functions of frames, names of functions */
};

/*
 * sql      selects first_id, last_id, data, and the second blob or NULL, of one page; its argument
 *          is the id
 * returns  1, 0 when there is no such row, or an error
 */
int page_row(struct store *s, const char *sql, int64_t id, struct page_row *out, struct err *err);

/*
 * The first unused id of a kind.
 *
 * sql      selects the last id used, 0 = none
 * what     the kind's name, as "frames"
 * returns  0; ERR_FORMAT when hardly any ids are left: no recorder uses up so many, so something
 *          else changed the store
 */
int page_next_id(struct store *s, const char *sql, const char *what, int64_t *id, struct err *err);

struct page_learner {
	const char *what, *last_id;          /* for page_next_id() */
	const char *newest;                  /* for page_row(): the last page up to an id */
	/* Learn what the page holds. A page with ERR_FORMAT, damaged, is passed over. */
	int (*learn)(struct interner *in, const struct page_row *row, struct err *err);
	bool (*knows_enough)(const struct interner *in);
};

/* Learn from the newest pages back to older ones until it is enough. *next: the first unused id. */
int page_learn(struct store *s, const struct page_learner *l, int64_t *next, struct err *err);

/* ---- read.c --------------------------------------------------------------------------------- */

struct ids {
	int64_t *ids;                        /* freed by the caller */
	uint32_t n, cap;
};

/* Append the first column of every row. */
int ids_collect(struct query *q, struct ids *out);
/* ERR_NOT_FOUND with a sentence that lists the ids that are there. */
int not_found(struct store *s, int64_t id, struct err *err);

/* ---- read_segments.c ------------------------------------------------------------------------ */

struct put_sums;

struct stored_segment {
	int64_t id;
	const struct put_sums *sums;         /* and of its content only the head; NULL = all */
	struct segment_content content;
	int64_t *threads, *frames;           /* local index -> id; content.nthreads, nframes */
};

typedef int segment_decoder(const uint8_t *bytes, size_t n, struct segment_content *out,
			    struct err *err);      /* segment_decode(), or one of a part */
typedef int segment_reader(void *ctx, const struct stored_segment *segment, struct err *err);

struct damaged_segment {
	int64_t id;
	uint64_t t0_ns, t1_ns, samples;      /* what it held, according to its row */
	const char *why;
};

/* Called for a segment that cannot be read; 0 = go on with the others. */
typedef int damage_reader(void *ctx, const struct damaged_segment *segment, struct err *err);

/*
 * Each segment of an incident in order of time: checked, inflated, decoded, borrowed for the call.
 *
 * summed   NULL, or a head: where sums_find() has a segment's sums, nothing of it is inflated
 * damaged  NULL: the first damaged segment is an error
 */
int read_segments(struct store *s, int64_t incident_id, const struct incident_head *summed,
		  segment_decoder *decode, segment_reader *each, damage_reader *damaged, void *ctx,
		  struct err *err);

/* The same for these segments, which need not be all of the incident's. */
int read_listed_segments(struct store *s, int64_t incident_id, const struct ids *ids,
			 const struct incident_head *summed, segment_decoder *decode,
			 segment_reader *each, damage_reader *damaged, void *ctx, struct err *err);

/* ---- load.c --------------------------------------------------------------------------------- */

/*
 * Add a part of what a file of the history holds to an incident whose head has its window. The
 * caller sorts and counts when all parts are there.
 *
 * events_only  and not its samples, and no frames
 * shift_ns     from the file's recorder clock to the incident's
 */
int load_part(struct store *s, int64_t incident_id, const struct ids *segments, bool events_only,
	      int64_t shift_ns, struct incident *in, struct err *err);
/* Sort its samples and events by time, and join the parts of long waits. */
int settle_content(struct incident *in, struct err *err);

/* ---- rollup.c ------------------------------------------------------------------------------- */

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
	struct idmap loss_index;             /* (cpu, second, kind) -> row */
};

#define LOSSES_MAX 65536u                    /* rows that are kept while a file is written */

/* What a segment's samples add up to, as it was put; known while the store stays open. */
struct put_sums {
	int64_t id;                          /* 0 = none */
	uint64_t t0_ns, t1_ns;
	uint32_t quality[QUALITIES];
};

/* Remember those of a segment that was put, if nothing was lost in it. */
void sums_put(struct store *s, const struct segment *segment);
/*
 * The sums of a segment that lies in the window of the head, and in which nothing was lost, or
 * NULL: then it has to be decoded. Those of the last PUT_SUMS segments are known.
 */
const struct put_sums *sums_find(const struct store *s, int64_t id,
				 const struct incident_head *head);

/* Add what a segment holds in the window of a head; sums: those of its samples, or NULL. */
int rollup_add(struct rollup *r, const struct incident_head *head,
	       const struct segment_content *content, const struct put_sums *sums, struct err *err);

/* Count what the stored segments of an incident hold in the window of its head. */
int rollup_count(struct store *s, const struct incident_head *head, struct rollup *out,
		 struct err *err);
/* Inside a transaction: delete, or replace, the incident's rows of loss, quality and stream. */
int rollup_delete(struct store *s, int64_t incident_id, struct err *err);
int rollup_store(struct store *s, int64_t incident_id, const struct rollup *r, struct err *err);
/* Set the fields of a head. */
void rollup_head(const struct rollup *r, struct incident_head *head);
void rollup_free(struct rollup *r);

/* ---- write.c -------------------------------------------------------------------------------- */

/* Forget what is put into a file of the history adds up to. */
void sums_end(struct store *s);
/* Make incidents partial that a recorder left open; the lock is held. */
int partial_convert(struct store *s, struct err *err);
/* The window of an incident that has none yet: what was asked for, as far as its segments go. */
int window_of_segments(struct store *s, struct incident_head *head, struct err *err);

/* ---- adopt.c -------------------------------------------------------------------------------- */

/*
 * Copy segments of another store into this one (STORE_EDIT or STORE_RECORD), as parts of an open
 * incident, in one transaction. Those that cannot be read are left out.
 */
int store_adopt(struct store *to, int64_t incident_id, struct store *from,
		const struct ids *segments, struct err *err);
/* The same inside a transaction. */
int adopt_segments(struct store *to, int64_t incident_id, struct store *from,
		   const struct ids *segments, struct err *err);

/* ---- sweep.c -------------------------------------------------------------------------------- */

/* Delete the segments that no incident has; best effort. ERR_STOPPED: it was called off. */
int store_sweep_segments(struct store *s);
/* The same, and what no segment lists; best effort. s->unswept: it was called off. */
void store_sweep(struct store *s);
/* Inside a transaction: note in the file that it must be swept, until a sweep comes to its end. */
int sweep_note(struct store *s, struct err *err);
/* For a recorder that starts: set s->unswept and s->unshrunk as the last one left the file. */
void sweep_look(struct store *s);
