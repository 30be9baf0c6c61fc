/*
 * The store: incidents in one SQLite file.
 *
 * One writer (the recorder that holds the store's lock), many readers, which never block it;
 * delete, pin and unpin are short transactions beside a running recorder. Segments are stored once
 * however many incidents share them, deflated, with a CRC over the encoded bytes that every read
 * checks. Layout and reasons: the head of schema.c. A handle belongs to one thread at a time.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "model/incident.h"

#define STORE_VERSION 3                      /* user_version */
#define STORE_MIN_READER 3                   /* the oldest version that can read what this one writes */
#define STORE_APPLICATION_ID 0x52454344      /* "RECD" */
#define STORE_MAX_MB_DEFAULT 1024u
#define STORE_MAX_DAYS_DEFAULT 30u
#define STORE_MAX_INCIDENTS_DEFAULT 500u

struct store;

enum store_mode {
	STORE_READ,             /* must exist; read-only media are fine */
	STORE_EDIT,             /* must exist; delete and pin */
	STORE_RECORD,           /* made when missing; takes the lock; open incidents -> partial */
};

/*
 * returns  0; ERR_NOT_FOUND no file there; ERR_BUSY another recorder has it (the sentence gives its
 *          pid); ERR_FORMAT no store, damaged, or written by a newer version; ERR_ACCESS
 */
int store_open(const char *path, enum store_mode mode, struct store **out, struct err *err);
void store_close(struct store *s);                   /* NULL allowed */
const char *store_path(const struct store *s);

/*
 * Free space of the disk under which store_begin() refuses. UINT64_MAX, the default: 500 MB or 5 %
 * of the disk, whichever is less; 0 = none.
 */
void store_set_floor(struct store *s, uint64_t bytes);

/* ---- writing (STORE_RECORD) ----------------------------------------------------------------- */

/*
 * Any of these returns ERR_FULL when the disk is full, after having given up the reserve of 8 MB
 * beside the store ("<store>.reserve", made again later). Nothing is half done then: keep the
 * segments and call again.
 */

/* Begin an incident: state open; gives head->id and head->uuid. ERR_FULL also below the floor. */
int store_begin(struct store *s, struct incident_head *head, struct err *err);
/*
 * Add a segment to an incident; stored if it is not yet (segment->store_id), one transaction.
 * Frames named meanwhile get their names.
 */
int store_put_segment(struct store *s, int64_t incident_id, struct segment *segment,
		      struct err *err);
/*
 * Complete it: head's fields, rollups (losses, quality, per process), late names of its segments'
 * frames, state = complete, or partial if head says that; durable when it returns. samples, lost, quality and stored_bytes of
 * head are filled in from what was stored, clipped to [t0_ns, t1_ns].
 */
int store_finish(struct store *s, struct incident_head *head, struct segment *const *segments,
		 uint32_t nsegments, struct err *err);

/* 0 = no limit */
struct store_limits {
	uint64_t max_bytes;                  /* of store_bytes(); pinned incidents count */
	uint64_t max_age_ns;                 /* since it was stored (head.kept_wall_ns, else the trigger) */
	uint32_t max_incidents;              /* pinned ones do not count */
};
/*
 * Retention: delete the oldest unpinned incidents beyond the limits, free their space.
 * *deleted = how many. Pinned and open ones stay, and the newest whatever its size; only age can
 * remove that. Others may write meanwhile: it is many short transactions.
 * returns  0; 1 when it was called off, and is to be called again
 */
int store_retain(struct store *s, const struct store_limits *limits, uint64_t wall_now_ns,
		 uint32_t *deleted, struct err *err);
/* Asked by store_retain() between two of them: true = somebody waits for this thread, go on another time. */
void store_set_call_off(struct store *s, bool (*call_off)(void *ctx), void *ctx);

/* ---- what rules remember: decay, steering (STORE_RECORD) ---------------------------------------- */

#define STORE_RULE_STATE_BYTES 256u

/* Replace what is kept under key, the rule's text; n <= STORE_RULE_STATE_BYTES, 0 = forget it. */
int store_put_rule(struct store *s, const char *key, const void *state, size_t n,
		   uint64_t wall_now_ns, struct err *err);
/* Append it to out, emptied first; *saved_wall_ns: when it was put. ERR_NOT_FOUND there is none. */
int store_get_rule(struct store *s, const char *key, struct buf *out, uint64_t *saved_wall_ns,
		   struct err *err);

/* ---- reading -------------------------------------------------------------------------------- */

/* Each incident, newest first; the head is borrowed for the call; non-zero from each() ends it. */
int store_list(struct store *s, int (*each)(void *ctx, const struct incident_head *head), void *ctx,
	       struct err *err);
/* One head; free with incident_head_free(). ERR_NOT_FOUND lists the ids that are there. */
int store_head(struct store *s, int64_t id, struct incident_head *out, struct err *err);
/*
 * All of it, samples and events by time; free with incident_free(). Damaged segments are left out, and
 * out->damage says which part of the window that is; ERR_FORMAT when none can be read. Command lines and names
 * of functions that cannot be read are left out, and it says so too. An incident that is still open gives
 * what has been stored so far.
 */
int store_load(struct store *s, int64_t id, struct incident *out, struct err *err);
/* The id of the newest incident; ERR_NOT_FOUND when there is none. */
int store_newest(struct store *s, int64_t *id, struct err *err);

/* ---- editing -------------------------------------------------------------------------------- */

/* Replace an incident's note. ERR_NOT_FOUND */
int store_set_note(struct store *s, int64_t id, const char *note, struct err *err);
/* ERR_BUSY when a recorder is writing it. Segments that other incidents share stay. */
int store_delete(struct store *s, int64_t id, struct err *err);
/* One of several: the same, and once behind the last of them all that nobody has any more, and the space. */
int store_delete_only(struct store *s, int64_t id, struct err *err);
void store_clean(struct store *s);
int store_pin(struct store *s, int64_t id, bool pinned, struct err *err);

uint64_t store_bytes(struct store *s);               /* size in use, log included */

#endif
