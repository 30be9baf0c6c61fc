/*
 * The interner: finds or adds what segments list, by content.
 *
 * Modules, processes and threads become rows (intern.c), in the history processes and threads
 * become pages (intern_tasks.c), as frames, functions and texts always do (intern_frames.c,
 * intern_functions.c, intern_texts.c). It remembers the newest ids of each kind. Forgetting is
 * always safe: what comes again is stored again, and readers merge the two. All calls are made
 * inside a transaction of a store opened with STORE_RECORD.
 */
#pragma once

#include "store/store_private.h"

#include "base/text_table.h"

/* ---- for the rest of the store -------------------------------------------------------------- */

/* known_max: frames, and functions, that are remembered at first; KNOWN_FRAMES_... */
int interner_new(uint32_t known_max, struct interner **out, struct err *err);
void interner_free(struct interner *in);             /* NULL allowed, here and below */
/* Forget every id: after a rollback, or when another program has deleted rows. */
void interner_forget(struct interner *in);
/* After a sweep of our own: keep what is known of the frames for which listed() is true. */
void interner_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame),
		   const void *ctx);

/* Find or add all that a segment lists. lists: the two lists in ids of the store, as a blob. */
int intern_segment(struct store *s, const struct segment *segment, struct buf *lists,
		   struct err *err);
/* The segment just interned got this row id. Its names are settled until it has more of them. */
int intern_stored(struct store *s, int64_t segment_id, struct err *err);
/* Give the frames of a stored segment the names that were found since. */
int intern_names(struct store *s, const struct segment *segment, struct err *err);

/* Insert a page of n >= 1 items. c and the bufs are working memory. */
int frame_page_insert(struct store *s, const struct page_frame *frames, uint32_t n,
		      struct columns *c, struct buf *data, struct buf *functions, struct err *err);
int function_page_insert(struct store *s, const struct page_function *functions, uint32_t n,
			 struct columns *c, struct buf *data, struct buf *names, struct err *err);

/* ---- between the interner's files ----------------------------------------------------------- */

#define KNOWN_FRAMES_MAX 262144u         /* 16 MB, their functions as much */
/* In the history, where code that came and went is nearly all; */
#define KNOWN_FRAMES_HISTORY 65536u
#define KNOWN_SEGMENTS 30u               /* twice as many where they are not enough for these */
#define KNOWN_FUNCTION_BYTES_MAX (4u << 20)  /* of different names; then all are forgotten */
#define KNOWN_TEXT_BYTES_MAX (1u << 20)      /* then all are forgotten */
#define KNOWN_ROW_BYTES_MAX (512u << 10)     /* then those are forgotten that were not used */
#define TEXT_PAGE_BYTES (256u << 10)         /* about */

struct known_frame {
	int64_t module_id, id;
	uint64_t offset;
	uint32_t flags;
	bool named;
	bool used;                           /* since frames were forgotten last */
	bool kept;                           /* while others are forgotten */
};

struct interner {
	struct table table;                  /* of frames */
	struct known_frame *frames;
	uint32_t nframes, frames_cap;
	uint32_t known_max;                  /* of frames; beyond it those not used are forgotten */
	uint32_t segments_known;             /* since then */
	int64_t next_frame;                  /* next_...: 0 = not read from the store yet */

	struct table function_table;
	struct page_function *functions;     /* their texts are in function_names */
	uint32_t nfunctions, functions_cap;
	uint32_t functions_stored;           /* the ones behind are in no page yet */
	struct text_table function_names;
	int64_t next_function;

	struct text_table texts;             /* with ids that follow each other */
	uint32_t texts_stored;               /* the ones behind are in no page yet */
	size_t text_bytes_stored;
	int64_t next_text;

	struct known_rows {                  /* of a file of the history: intern_tasks.c */
		struct text_table keys;      /* what they are about */
		struct known_row {
			int64_t id;          /* 0 = none any more */
			uint64_t state;
		} *rows;                     /* of each key */
		uint32_t cap;
	} rows, older_rows;
	struct buf new_processes, new_threads;       /* of the segment at hand: rows of pages */
	int64_t next_process, next_thread;

	int64_t data_version;                /* changes when another program writes to the store */
	struct idmap objects, processes;     /* address -> id, within one call */
	const struct object *last_object;    /* frames of one object come in runs */
	int64_t last_module;
	struct idmap settled;                /* segment's row id -> how many frames had names */
	uint32_t named;                      /* how many of the segment at hand have */
	struct columns columns;              /* working memory, from here on */
	struct buf ids, packed, packed_functions;
};

/*
 * In a file of the history: remember a row, module, process or thread, by its contents. state: of
 * the caller. id 0: there is none any more.
 */
int know_row(struct interner *in, const struct buf *key, int64_t id, uint64_t state,
	     struct err *err);
/* ERR_NOT_FOUND, without a sentence: none is known. */
int known_row(struct interner *in, const struct buf *key, int64_t *id, uint64_t *state,
	      struct err *err);

/* The id of a thread, added with its process. It is in the file after tasks_flush(). */
int task_id(struct store *s, const struct thread *t, uint64_t at_ns, int64_t *id, struct err *err);
int tasks_flush(struct store *s, struct err *err);

/* The row of an object; added if it is not there. */
int module_id(struct store *s, const struct object *object, int64_t *id, struct err *err);

/*
 * Find or add each frame that the segment lists and its function, and name frames that had no name.
 * Appends the id of each frame to ids, as int64_t.
 */
int intern_frames(struct store *s, const struct segment *segment, struct buf *ids,
		  struct err *err);
/*
 * Give the frames of a stored segment the names that they have by now. ids: one for each frame,
 * from the segment's row. The same frame may have another id by now, if it was forgotten since.
 */
int name_frames(struct store *s, const struct segment *segment, const int64_t *ids,
		struct err *err);
/* Forget some frames; the others keep their ids. */
void frames_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame),
		 const void *ctx);

/* The id of a function. It is in the store after functions_flush(). */
int function_id(struct store *s, const struct function *f, int64_t *id, struct err *err);
int functions_flush(struct store *s, struct err *err);
void functions_forget(struct interner *in);

/* The id of a text. It is in the store after texts_flush(). */
int text_id(struct store *s, const char *text, int64_t *id, struct err *err);
/* The same; 0 for NULL and "", which are not stored. */
int text_id_or_none(struct store *s, const char *text, int64_t *id, struct err *err);
int texts_flush(struct store *s, struct err *err);
void texts_forget(struct interner *in);
