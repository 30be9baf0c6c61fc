/* The interner's memory, shared by intern.c, intern_frames.c, intern_texts.c. Nobody else includes this. */
#ifndef STORE_INTERNER_PRIVATE_H
#define STORE_INTERNER_PRIVATE_H

#include "store/store_private.h"

#define KNOWN_FRAMES_MAX 262144u         /* 11 MB */
#define KNOWN_FUNCTION_BYTES_MAX (4u << 20)  /* of names; then all are forgotten */
#define KNOWN_TEXT_BYTES_MAX (1u << 20)  /* then all are forgotten */
#define TEXT_PAGE_BYTES (256u << 10)     /* about */

struct known_frame {
	int64_t module_id, id;
	uint64_t offset;
	uint32_t flags;
	bool named;
	bool asked;                          /* again, since some were forgotten last */
	bool kept;                           /* while others are forgotten */
};

struct known_function {
	int64_t id, module_id;
	uint64_t offset;
	uint32_t at, raw_at, module_at;      /* in function_bytes, with their NULs; UINT32_MAX = none */
};

struct known_text {
	int64_t id;
	uint32_t at;                         /* in the interner's text_bytes, with its NUL */
};

struct interner {
	struct table table;
	struct known_frame *frames;
	uint32_t nframes, frames_cap;
	int64_t next_frame, next_text;       /* 0 = not read from the store yet */
	int64_t next_function;                       /* the same */
	struct table function_table;
	struct known_function *function_items;
	uint32_t nfunctions, functions_cap, functions_stored;
	struct buf function_bytes;
	struct table text_table;
	struct known_text *texts;
	uint32_t ntexts, texts_cap, texts_stored;    /* those behind are not in a page yet */
	struct buf text_bytes;
	size_t text_bytes_stored;
	struct columns columns;                      /* memory only */
	struct buf ids, packed, packed_functions;    /* the same */
	int64_t data_version;
	struct idmap objects, functions, processes;  /* address -> id, within one call */
	const struct object *last_object;            /* frames of one object come in runs */
	int64_t last_module;
	struct idmap settled; /* segment's row id -> frames with names by then */
	uint32_t named;                              /* of the segment at hand */
};

/* The row of an object; added if it is not there. */
int module_id(struct store *s, const struct object *object, int64_t *id, struct err *err);

/*
 * Find or add a place for each frame that the segment lists, rows for their functions, and give names
 * to frames that had none. One int64_t a frame is appended to ids.
 */
int intern_frames(struct store *s, const struct segment *segment, struct buf *ids, struct err *err);
/*
 * Give the frames of a stored segment the names that they have by now. ids: one a frame, as its row lists
 * them: a frame may have been forgotten since, and have another place for those who ask again.
 */
int name_frames(struct store *s, const struct segment *segment, const int64_t *ids, struct err *err);
/* Forget some frames; the others keep their places. */
void frames_keep(struct interner *in, bool (*listed)(const void *ctx, int64_t frame), const void *ctx);

/* The id of a function; the same as of a text. */
int function_id(struct store *s, const struct function *f, int64_t *id, struct err *err);
int functions_flush(struct store *s, struct err *err);
void functions_forget(struct interner *in);

/*
 * The id of a text; it is in the store after texts_flush(), which is called before the transaction
 * ends.
 */
int text_id(struct store *s, const char *text, int64_t *id, struct err *err);
int texts_flush(struct store *s, struct err *err);
void texts_forget(struct interner *in);

#endif
