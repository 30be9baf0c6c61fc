/*
 * The history: the past on disk, in a row of files beside a store.
 *
 *	incidents.db
 *	incidents.db.history/000041-20261121-020311.db        oldest; the time is UTC
 *	incidents.db.history/000042-20261121-051240.db
 *	incidents.db.history/000042-20261121-051240.db-redo   while it is written
 *
 * Each file is an ordinary store, complete in itself: it holds some hours as one incident whose
 * rule is "history", and every command reads it with --store. A file is begun when a recorder
 * starts, when the one before is large enough, and when the wall clock was set, so one pair of
 * clocks is right for all of a file. Files leave whole, the oldest first, by unlink(2): there is
 * nothing to sweep. What has been put is on the disk when history_put() returns.
 *
 * The number in a name only grows; it, and not the clock, says which file is older. A file that is
 * open, and whose lock nobody holds, was left by a recorder that ended without saying so.
 *
 * The directory belongs to the user who records and is closed to others. A handle belongs to one
 * thread at a time; errors are those of store.h.
 */
#pragma once

#include "store/store.h"

#define HISTORY_RULE "history"
#define HISTORY_SUFFIX ".history"
#define HISTORY_FILES_MAX 65536u             /* that are looked at */
/* What ended a file that was full, or that its recorder left for another one. */
#define HISTORY_WENT_ON "recording went on in the next file"

/* ---- writing (the recorder that holds the store's lock) -------------------------------------- */

struct history;

struct history_config {
	const char *store_path;
	uint64_t max_bytes;                  /* of all files together */
	uint64_t max_age_ns;                 /* by the wall clock; 0 = no limit */
	uint64_t file_bytes;     /* ends a file; 0 = a 16th of max_bytes, from 16 to 64 MB */
	uint64_t floor_bytes;    /* least free disk space; UINT64_MAX = twice that of incidents */
	const char *host, *host_text, *version;
	const char *boot_id;                 /* of this start of the machine; "" = not known */
	const char *kills;                   /* OOM kills of its control group so far; "" */
	uint64_t period_ns;                  /* what a CPU sample stands for; 0 = not known */
};

/* Both clocks, read together. */
struct history_now {
	uint64_t clock_ns, wall_ns;
};

/* Make the directory, or check that it is ours. ERR_ACCESS: it is somebody else's, or open. */
int history_open(const struct history_config *cfg, struct history **out, struct err *err);
/* End the file with this sentence about the recorder's end; NULL = it died. h NULL is allowed. */
void history_close(struct history *h, const char *end);

/*
 * Put segments, the oldest first, in one transaction that is on the disk when this returns. Those
 * that are in the file already get the names that their frames got since. Files beyond the limits
 * leave before.
 *
 * returns  0; ERR_FULL also when less than the floor is free; any error: nothing was put, and the
 *          same segments may be put again
 */
int history_put(struct history *h, struct segment *const *segments, uint32_t n,
		const struct history_now *now, struct err *err);
/* Put the names that frames of segments of the open file got since; nothing else. */
void history_put_names(struct history *h, struct segment *const *segments, uint32_t n);
/* Samples stand for another time from now on: end the file with this sentence. */
void history_rate(struct history *h, uint64_t period_ns, const char *end);
/* Remove a history that nobody writes, with its directory: what `recorder top` has read. */
void history_discard(const char *store_path);
/* Other limits from now on; the next segments make files beyond them leave. */
void history_limit(struct history *h, uint64_t max_bytes, uint64_t max_age_ns);
/* Remove the oldest file, for the sake of an incident. false: none is left but the open one. */
bool history_give_up_oldest(struct history *h);
struct history_use {
	uint32_t files;
	uint64_t bytes, max_bytes;
	uint64_t oldest_wall_ns;             /* 0 = nothing is there */
	uint64_t put_bytes;                  /* of segments and lists, by this handle */
};
void history_use(const struct history *h, struct history_use *out);

/* ---- reading --------------------------------------------------------------------------------- */

#define HISTORY_SLOT_NS (600 * NS_PER_SEC)
#define HISTORY_SLOTS_MAX 9000u              /* of one file: two months */

/* What a file says of itself. */
struct history_file {
	char *path;
	uint32_t number;
	uint64_t name_wall_ns;               /* of its name */
	/* from here on set by history_look() */
	bool readable;                       /* false: damaged, or gone; the rest is empty */
	bool blank;                          /* nothing has been put; then it is not readable */
	bool open;                           /* not completed: being written, or left */
	bool locked;                         /* being written */
	uint64_t clock_ns, wall_ns;          /* the same moment */
	uint64_t t0_ns, t1_ns;               /* by its recorder clock; equal: nothing is in it */
	uint64_t samples, lost, bytes;
	uint32_t pid;
	uint64_t period_ns;                  /* what a sample stands for; 0 = not known */
	/* Samples of CPU time of each ten minutes of the wall clock. */
	uint64_t first_slot;                 /* times HISTORY_SLOT_NS since 1970 */
	uint32_t nslots, *slots;
	char boot_id[40];
	char kills[160];
	char end[160];                       /* how the recorder ended; "" = not said */
};

struct history_files {
	struct history_file *all;            /* the oldest first */
	uint32_t n;
};

/* The files, by their names alone. No directory: none. Free with history_files_free(). */
int history_list(const char *store_path, struct history_files *out, struct err *err);
void history_files_free(struct history_files *f);
/* Open a file and read what it says of itself; with slots: also these. */
void history_look(struct history_file *file, bool slots);
/* Remove a blank file whose recorder died before it had put anything. */
void history_drop_blank(const struct history_file *file);
/* It has not been completed; history_look() tells whether it is being written. */
bool history_is_left(const char *path);
/* Complete a file whose recorder died, with this sentence about the end: all of it is read. */
int history_settle(const char *path, const char *end, struct err *err);
/* The wall clock at a moment of the file's recorder clock. */
uint64_t history_wall_ns(const struct history_file *file, uint64_t clock_ns);

/* Why an incident is made of a window. */
struct history_keep {
	uint64_t from_ns, to_ns, trigger_ns;         /* of the wall clock */
	const char *rule, *reason;
	bool tell_system;                            /* incident_tell_system(), once it is stored */
	const char *into;            /* a store, made when missing; NULL = what it lies beside */
};
/*
 * Make an incident of a window in the store that the history lies beside, whether a recorder runs
 * or not. Of several clocks (the machine was started anew in between) it has the part with the
 * last one, and head.gap_reason says so.
 *
 * *id      of the incident
 * returns  as history_load(); ERR_FULL
 */
int history_keep(const char *store_path, const struct history_keep *keep, int64_t *id,
		 struct err *err);

/*
 * Load [from_ns, to_ns] of the wall clock as an incident whose trigger is at trigger_ns. Parts that
 * are missing are named in head.gap_reason. Its recorder clock is the wall clock.
 *
 * returns  0; ERR_NOT_FOUND: nothing of it is there, and the sentence says what is; ERR_LIMIT: it
 *          holds more than HISTORY_SAMPLES_MAX samples
 */
#define HISTORY_SAMPLES_MAX 40000000u
int history_load(const char *store_path, uint64_t from_ns, uint64_t to_ns, uint64_t trigger_ns,
		 struct incident *out, struct err *err);
/* The same of one file, whose clocks alone say what the time was; the trigger is at from_ns. */
int history_load_of_file(const char *store_path, uint32_t number, uint64_t from_ns, uint64_t to_ns,
			 struct incident *out, struct err *err);
/* Its events only, without their stacks, from as many samples as there are. */
int history_load_events(const char *store_path, uint64_t from_ns, uint64_t to_ns,
			struct incident *out, struct err *err);
