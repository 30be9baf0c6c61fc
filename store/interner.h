/* The interner's memory, shared by store_intern.c and store_frames.c. Nobody else includes this. */
#ifndef STORE_INTERNER_H
#define STORE_INTERNER_H

#include "store/store_impl.h"

#define KNOWN_FRAMES_MAX 131072u         /* then forgotten and learnt again: 5 MB */

struct known_frame {
	int64_t module_id, id;               /* id FRAME_NEW or FRAME_QUEUED: within one call only */
	uint64_t offset;
	uint32_t flags;
	bool named;
};

/* What is known of a module's row within one call. */
enum module_news {
	MODULE_MET,                          /* the row was there before */
	MODULE_ADDED,                        /* the row is new: nothing refers to it yet */
	MODULE_SHARED,                       /* two objects of this call are this module */
};

struct interner {
	struct table table;
	struct known_frame *frames;
	uint32_t nframes, frames_cap;
	int64_t data_version;
	struct idmap objects, functions, processes;  /* address -> row id, within one call */
	struct idmap modules;                        /* row id -> enum module_news, within one call */
	const struct object *last_object;            /* frames of one object come in runs */
	int64_t last_module;
	struct idmap whole; /* modules whose row we added: all their frames are in `frames` */
	struct idmap settled; /* segment's row id -> frames with names by then */
	uint32_t named;                              /* of the segment at hand */
};

/* The row of an object; added if it is not there. */
int module_id(struct store *s, const struct object *object, int64_t *id, struct err *err);

/*
 * Find or add rows for the frames that the segment lists and for their functions, and give names to
 * rows that had none; named_only: frames without a name are left out. lists: NULL, or the ids are
 * appended.
 */
int intern_frames(struct store *s, const struct segment *segment, bool named_only, struct buf *lists,
		  struct err *err);

/* Append the difference to the id before. */
void put_id(struct buf *out, int64_t id, int64_t *before);

#endif
