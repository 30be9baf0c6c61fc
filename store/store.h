/*
 * The store: incidents in one SQLite file.
 *
 * One writer, the recorder that holds the store's lock, and many readers, which never block it.
 * Delete, pin and unpin are short transactions beside a running recorder. Segments are stored once
 * however many incidents share them, deflated, with a CRC over the encoded bytes that every read
 * checks. The head of schema.c has the layout and its reasons.
 *
 * To record, a recorder opens the store with STORE_RECORD and calls for each incident:
 *
 *	store_begin(s, &head, err);                    gives the incident its id
 *	store_put_segment(s, head.id, segment, err);   for each of its segments, as they are sealed
 *	store_finish(s, &head, segments, n, err);
 *
 * To read, store_list() shows all heads, and store_load() gives all of one incident.
 *
 * Nothing in the file is trusted: decoders check sizes, counts and indices, and a row that is
 * missing is an error that names it.
 *
 * A handle belongs to one thread at a time. Every function that returns an int returns 0 or a
 * negative enum err_code, unless it says more. Beside ERR_NOT_FOUND for ids that are not there,
 * the usual ones are ERR_BUSY (another program locked the file for 5 s), ERR_FORMAT (damage),
 * ERR_FULL (the disk), ERR_ACCESS, ERR_IO and ERR_MEMORY.
 */
#pragma once

#include "model/incident.h"

#define STORE_VERSION 3                      /* the format: user_version */
#define STORE_MIN_READER 3                   /* the oldest format whose readers can read this one */
#define STORE_APPLICATION_ID 0x52454344      /* "RECD" */
#define STORE_MAX_INCIDENTS_DEFAULT 500u

struct store;

enum store_mode {
	STORE_READ,             /* must exist; read-only media are fine */
	STORE_EDIT,             /* must exist; to delete, pin and note */
	STORE_RECORD,           /* made when missing; locked; open incidents become partial */
};

/*
 * Open a store. *out is closed with store_close().
 *
 * returns  0; ERR_NOT_FOUND no file there; ERR_BUSY another recorder has it (the sentence gives its
 *          pid); ERR_FORMAT not a store, damaged, or of an older or newer format; ERR_ACCESS
 */
int store_open(const char *path, enum store_mode mode, struct store **out, struct err *err);
void store_close(struct store *s);                   /* NULL allowed */
/*
 * The same with STORE_RECORD; a damaged store is moved away first, so that a new one is made.
 *
 * moved    gets the new name, "<path>.damaged-20261122-220501"; empty: it was not moved
 */
int store_open_or_replace(const char *path, struct buf *moved, struct store **out, struct err *err);
/*
 * STORE_RECORD: whether the file is still at its name. ERR_NOT_FOUND: it was removed or replaced
 * meanwhile, and what was stored is gone; close it and open it anew.
 */
int store_in_place(const struct store *s, struct err *err);
/* SQLite has found damage in it since it was opened. */
bool store_damaged(const struct store *s);
const char *store_path(const struct store *s);

/*
 * Set the free disk space below which store_begin() refuses. UINT64_MAX, the default: 500 MB or 5 %
 * of the disk, whichever is less; 0 = none.
 */
void store_set_floor(struct store *s, uint64_t bytes);

/* ---- writing (STORE_RECORD) ----------------------------------------------------------------- */

/*
 * On a full disk each of these first gives up the reserve of 8 MB beside the store
 * ("<store>.reserve", made again later) and tries once more. When that fails, it returns ERR_FULL
 * and nothing is half done: keep the segments and call again.
 */

/* Begin an incident in state open; sets head->id and head->uuid. ERR_FULL also below the floor. */
int store_begin(struct store *s, struct incident_head *head, struct err *err);
/*
 * Add a segment to an incident, in one transaction. It is stored unless it is there already
 * (segment->store_id, which is set). Frames that were named since then get their names.
 */
int store_put_segment(struct store *s, int64_t incident_id, struct segment *segment,
		      struct err *err);
/* The same for several, in one transaction. */
int store_put_segments(struct store *s, int64_t incident_id, struct segment *const *segments,
		       uint32_t n, struct err *err);
/*
 * Complete an incident: the fields of its head, its sums (losses, quality, periods), and names that
 * the frames of its segments got since. Its state becomes partial if head says so, else complete.
 * It is on the disk when this returns. Sets samples, lost, quality, period_ns and stored_bytes of
 * head from what was stored, clipped to [t0_ns, t1_ns].
 */
int store_finish(struct store *s, struct incident_head *head, struct segment *const *segments,
		 uint32_t nsegments, struct err *err);

/* 0 = no limit */
struct store_limits {
	uint64_t max_bytes;                  /* of store_bytes(), pinned incidents included */
	uint64_t max_age_ns;       /* by store_time(), since head.kept_wall_ns, else the trigger */
	uint32_t max_incidents;              /* without pinned ones */
};
/*
 * The time by which incidents age: the wall clock, as far as the recorder clock agrees. It never
 * goes back, and what happens to the wall clock while a recorder runs does not move it (age.c).
 *
 * wall_ns, clock_ns  os_wall_ns() and os_now_ns()
 */
uint64_t store_time(struct store *s, uint64_t wall_ns, uint64_t clock_ns);
/*
 * Retention: delete the oldest incidents beyond the limits and free their space, in many short
 * transactions, between which others may write. Pinned and open incidents stay, and so does the
 * newest one, whatever its size and age.
 *
 * now_ns   store_time()
 * deleted  how many were deleted
 * returns  0; 1 when it was called off before its end: call again; or an error
 */
int store_retain(struct store *s, const struct store_limits *limits, uint64_t now_ns,
		 uint32_t *deleted, struct err *err);
/*
 * store_retain() asks call_off() between transactions, on the same thread. true: somebody waits for
 * this thread, so stop and go on another time.
 */
void store_set_call_off(struct store *s, bool (*call_off)(void *ctx), void *ctx);

/* Count every query from now on: another thread sees that the store answers. NULL = do not. */
void store_set_progress(struct store *s, _Atomic uint64_t *count);

/* ---- what rules remember: decay, steering (STORE_RECORD) ------------------------------------ */

#define STORE_RULE_STATE_BYTES 256u

/* Replace what is kept under key, the rule's text; n <= STORE_RULE_STATE_BYTES, 0 = forget it. */
int store_put_rule(struct store *s, const char *key, const void *state, size_t n,
		   uint64_t wall_now_ns, struct err *err);
/* Replace what is in out; *saved_wall_ns: when it was put. ERR_NOT_FOUND: nothing is kept. */
int store_get_rule(struct store *s, const char *key, struct buf *out, uint64_t *saved_wall_ns,
		   struct err *err);

/* ---- reading -------------------------------------------------------------------------------- */

/* Each head, newest first, borrowed for the call. Non-zero from each() ends the list early. */
int store_list(struct store *s, int (*each)(void *ctx, const struct incident_head *head), void *ctx,
	       struct err *err);
/* One head; free with incident_head_free(). ERR_NOT_FOUND lists the ids that are there. */
int store_head(struct store *s, int64_t id, struct incident_head *out, struct err *err);
/*
 * All of an incident, samples and events by time; free with incident_free(). Of an open incident:
 * what has been stored so far.
 *
 * Damaged segments are left out, and so are command lines and function names that cannot be read;
 * out->damage says what is missing, and from which part of the window. ERR_FORMAT when no segment
 * can be read.
 */
int store_load(struct store *s, int64_t id, struct incident *out, struct err *err);
/* The id of the newest incident; ERR_NOT_FOUND when there is none. */
int store_newest(struct store *s, int64_t *id, struct err *err);

/* ---- editing (STORE_EDIT, STORE_RECORD) ----------------------------------------------------- */

/* Replace an incident's note; remarks stay. */
int store_set_note(struct store *s, int64_t id, const char *note, struct err *err);
/* Add a remark, which becomes one line, of STORE_REMARK_MAX bytes at most. ERR_LIMIT, too. */
#define STORE_REMARK_MAX 4000u
int store_add_remark(struct store *s, int64_t id, const char *text, struct err *err);
/* A pinned incident is exempt from store_retain(). */
int store_pin(struct store *s, int64_t id, bool pinned, struct err *err);
/*
 * Delete an incident. Segments that others share stay; what only it had is freed by store_clean(),
 * once after the last of several. ERR_BUSY when a recorder is writing it.
 */
int store_delete(struct store *s, int64_t id, struct err *err);
void store_clean(struct store *s);

/*
 * Frames that have no name yet, in the order of their ids: of these incidents, or with n = 0 of the
 * whole store. The caller sets functions: of its own module each, valid until store_name() has
 * returned. ERR_NOT_FOUND: there is no such incident.
 */
struct store_unnamed_frame {
	int64_t id, module_id;
	uint64_t offset;
	uint32_t flags;                      /* enum frame_flags */
	const struct function *function;     /* NULL = no name was found */
};
struct store_unnamed {
	struct store_unnamed_frame *frames;
	uint32_t n;
	uint64_t frames_seen;                /* with those that have a name */
};
int store_unnamed(struct store *s, const int64_t *incidents, uint32_t n, struct store_unnamed *out,
		  struct err *err);
void store_unnamed_free(struct store_unnamed *u);
/* What identifies a module; path holds what key->path points to. */
int store_module(struct store *s, int64_t id, struct object_key *key, struct buf *path,
		 struct err *err);
/* STORE_EDIT: give names to frames that have none; a name that is there stays. */
int store_name(struct store *s, const struct store_unnamed *names, uint32_t *named,
	       struct err *err);

/* ---- damage --------------------------------------------------------------------------------- */

struct store_verified {
	uint32_t incidents, damaged;         /* damaged: cannot be read in full */
	uint32_t findings;                   /* what each() was told; 0 = the store is sound */
};
typedef void store_finding(void *ctx, const char *what);
/* Look for damage: at every page, and at everything that each incident needs. */
int store_verify(struct store *s, store_finding *each, void *ctx, struct store_verified *out,
		 struct err *err);

struct store_salvaged {
	uint32_t incidents, partial;         /* partial: parts of them are missing */
	uint64_t unreadable;                 /* rows or pages that were passed over */
};
/*
 * Put what is readable of a store, damaged or not, into a new one. The incidents keep their ids.
 *
 * returns  0; ERR_EXISTS; ERR_FORMAT not a store, or nothing is readable: nothing was made
 */
int store_salvage(const char *path, const char *to, struct store_salvaged *out, struct err *err);

uint64_t store_bytes(struct store *s);               /* size in use, log included */

/* ---- copies, and what was sent elsewhere ----------------------------------------------------- */

/* The incident with this uuid. ERR_NOT_FOUND, without a sentence. */
int store_find(struct store *s, const char *uuid, int64_t *id, struct err *err);
/*
 * Copy an incident into another store (STORE_EDIT, STORE_RECORD), with its uuid, in one
 * transaction; or into a new file, a store of its own. *copy: its number there, or NULL.
 * returns  0; ERR_EXISTS: it is there already; ERR_BUSY: it is open
 */
int store_copy(struct store *to, struct store *from, int64_t id, int64_t *copy, struct err *err);
int store_copy_to_file(struct store *from, int64_t id, const char *path, struct err *err);

/*
 * What `recorder ship` remembers, by a target's name (STORE_EDIT). Incidents that are complete wait
 * for each target until they are sent, or refused for good; lost are those that retention deleted
 * before; left are those that are not for this target.
 */
enum ship_result {SHIP_WAITING, SHIP_SENT, SHIP_REFUSED, SHIP_LOST, SHIP_LEFT, SHIP_STATES};

struct ship_note {
	const char *uuid;
	enum ship_result state;              /* WAITING: it failed, and is tried again */
	const char *sha256, *answer;         /* of what was sent, or NULL; the server's, or NULL */
	uint64_t due_wall_ns;                /* WAITING: when the target is tried again */
	uint32_t parts;                      /* WAITING: so many of its parts were sent */
};
struct ship_state {
	uint64_t n[SHIP_STATES];             /* incidents */
	uint32_t failures;                   /* of the target, in a row */
	uint64_t due_wall_ns;                /* 0 = now */
	char answer[400];                    /* the last that was no success; or "" */
};
/* Note what has come, and what has left unsent: *lost more. */
int store_ship_look(struct store *s, const char *target, uint64_t wall_ns, uint32_t *lost,
		    struct err *err);
/*
 * The oldest incident that waits; those that failed often come last. ERR_NOT_FOUND, without a
 * sentence: none does.
 */
int store_ship_next(struct store *s, const char *target, int64_t *id, struct err *err);
/* How many of its parts were sent before; and note it while it is being sent. */
int store_ship_parts(struct store *s, const char *target, const char *uuid, uint32_t *parts,
		     struct err *err);
int store_ship_keep(struct store *s, const char *target, const char *uuid, uint32_t parts,
		    struct err *err);
/* It is on the disk when this returns. */
int store_ship_note(struct store *s, const char *target, const struct ship_note *n,
		    uint64_t wall_ns, struct err *err);
/* After store_ship_look(). */
int store_ship_state(struct store *s, const char *target, struct ship_state *out, struct err *err);

/* How far the history has been sent to a target: in order, so one moment says it. */
struct ship_past {
	uint32_t file;                       /* number of the history's; 0 = nothing yet */
	uint64_t next_wall_ns;               /* by its clock: all before is done */
	char series[33];                     /* chance: of it are the uuids of its intervals */
	uint32_t parts;                      /* of the next interval, how many were sent */
	uint64_t sent, refused, lost;        /* intervals */
};
/* All 0: nothing was noted. */
int store_ship_past(struct store *s, const char *target, struct ship_past *out, struct err *err);
/* n: what came of it, for the target's own row; or NULL. It is on the disk when this returns. */
int store_ship_note_past(struct store *s, const char *target, const struct ship_past *past,
			 const struct ship_note *n, uint64_t wall_ns, struct err *err);
