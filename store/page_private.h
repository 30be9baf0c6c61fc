/*
 * What blobs hold: the lists of a segment, and pages of frames, functions, texts, processes and
 * threads.
 *
 * Only bytes are handled here, not rows. `struct columns *c` arguments are working memory: what
 * they held is lost. A *_pack() replaces what is in its buf. A *_unpack() takes blobs, a *_decode()
 * what was in them; both return ERR_FORMAT for damaged bytes and leave nothing to be freed then.
 */
#pragma once

#include "store/blob_private.h"

/* ---- lists of a segment --------------------------------------------------------------------- */

struct lists {
	int64_t *ids;                        /* threads, then frames; from malloc */
	uint32_t nthreads, nframes;
};

/* The ids are overwritten. */
int lists_pack(struct deflater *d, struct columns *c, uint64_t *ids, uint32_t nthreads,
	       uint32_t nframes, struct buf *out, struct err *err);
int lists_unpack(const struct blob *blob, struct lists *out, struct err *err);
int lists_decode(const void *raw, size_t n, struct lists *out, struct err *err);

/* ---- pages of frames ------------------------------------------------------------------------ */

#define PAGE_FRAMES 2048u                    /* at most, when written */

struct page_frame {
	int64_t id;                          /* first, see ids_find(); ascending in a page */
	int64_t module_id, function_id;      /* function 0 = no name yet */
	uint64_t offset;
	uint32_t flags;
};

/* n >= 1. The functions are a blob of their own, which is written again when names come late. */
int frame_page_pack(struct deflater *d, struct columns *c, const struct page_frame *frames,
		    uint32_t n, struct buf *out, struct err *err);
int frame_page_pack_functions(struct deflater *d, struct columns *c,
			      const struct page_frame *frames, uint32_t n, struct buf *out,
			      struct err *err);
/* *out: *n >= 1 frames, from malloc */
int frame_page_unpack(const struct blob *frames, const struct blob *functions, int64_t first_id,
		      struct page_frame **out, uint32_t *n, struct err *err);
/* functions NULL: none have one */
int frame_page_decode(const struct buf *frames, const struct buf *functions, int64_t first_id,
		      struct page_frame **out, uint32_t *n, struct err *err);

/*
 * The index of an id among n items that begin with an int64_t id and ascend by it. UINT32_MAX: it
 * is not there.
 */
uint32_t ids_find(const void *items, uint32_t n, size_t item_bytes, int64_t id);

static inline uint32_t frame_page_find(const struct page_frame *frames, uint32_t n, int64_t id)
{
	return ids_find(frames, n, sizeof(*frames), id);
}

/* ---- pages of processes and threads: rows of numbers ---------------------------------------- */

#define PAGE_ROWS 2048u                      /* at most, when written */
#define PAGE_COLUMNS_MAX 8u

/* Names, command lines and homes are ids of texts; 0 = none. */
enum { PROCESS_SESSION, PROCESS_PID, PROCESS_START_NS, PROCESS_EXEC, PROCESS_PARENT_PID,
       PROCESS_NAME, PROCESS_CMDLINE, PROCESS_HOME, PROCESS_COLUMNS };
enum { THREAD_PROCESS, THREAD_TID, THREAD_NAME, THREAD_COLUMNS };

/* rows: n >= 1 rows of so many columns, one after the other */
int row_page_pack(struct deflater *d, struct columns *c, const uint64_t *rows, uint32_t n,
		  unsigned columns, struct buf *out, struct err *err);
/* *out: *n >= 1 rows, from malloc */
int row_page_unpack(const struct blob *blob, unsigned columns, uint64_t **out, uint32_t *n,
		    struct err *err);
int row_page_decode(const struct buf *raw, unsigned columns, uint64_t **out, uint32_t *n,
		    struct err *err);

/* ---- pages of texts ------------------------------------------------------------------------- */

#define PAGE_TEXTS_MAX 262144u               /* when read; written ones have 256 KB of texts */

struct text_page {
	char **texts;                        /* in `memory`, NUL-terminated */
	uint32_t n;
	struct buf memory;
};

int text_page_pack(struct deflater *d, struct columns *c, const char *const *texts, uint32_t n,
		   struct buf *out, struct err *err);
/* More than max_texts are taken for damage: an empty text is one byte here and 8 in memory. */
int text_page_unpack(const struct blob *blob, uint32_t max_texts, struct text_page *out,
		     struct err *err);
/* Takes raw on success. */
int text_page_decode(struct buf *raw, uint32_t max_texts, struct text_page *out, struct err *err);
void text_page_free(struct text_page *p);

/* ---- pages of functions --------------------------------------------------------------------- */

struct page_function {
	int64_t id, module_id;               /* id first, ascending, as in struct page_frame */
	uint64_t offset;
	const char *name, *raw_name, *module;        /* the last two may be NULL */
};

struct function_page {
	struct page_function *functions;
	uint32_t n;
	struct text_page texts;              /* holds their texts */
};

/* n >= 1 */
int function_page_pack(struct deflater *d, struct columns *c,
		       const struct page_function *functions, uint32_t n, struct buf *data,
		       struct buf *names, struct err *err);
int function_page_unpack(const struct blob *data, const struct blob *names, int64_t first_id,
			 struct function_page *out, struct err *err);
void function_page_free(struct function_page *p);
/* NULL: it is not there */
const struct page_function *function_page_find(const struct function_page *p, int64_t id);
