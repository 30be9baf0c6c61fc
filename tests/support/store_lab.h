/*
 * A small recorder's memory to test the store with: one program "app" (pid 100) with two threads
 * (100 "main", 101 "worker"), and frames that are letters: 'a' is offset 0xa000 of /opt/app, and so
 * on.
 *
 *	lab_sample(&lab, MS(10), 0, "abc");     at 10 ms, thread 0, a called b called c
 *	lab_name(&lab, 'c');                    from now on c is called "fn_c"
 *	segment = lab_seal(&lab);
 *
 * Every function fails the test instead of returning an error, unless it says so.
 */
#pragma once

#include "store/store.h"

#include "base/os.h"

#define MS(n) ((uint64_t)(n) * NS_PER_MS)
#define LAB_WALL_NS 1700000000000000000ULL     /* of the recorder clock's 0 */

struct lab {
	const char *path;                    /* of the store; nothing is there at first */
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct object *object;
	struct process *app;
	struct thread *threads[2];
};

void lab_open(struct lab *lab, const char *name);
/* Removes the store's files. */
void lab_close(struct lab *lab);
/* The store and all that lies beside it. */
void lab_remove(const char *path);

struct store *lab_store(struct lab *lab, enum store_mode mode);
/*
 * lab_record(): lab_open(), and a store for a recorder. lab_end(): close both. lab_end_sound(): the
 * same, with lab_check_integrity() in between.
 */
struct store *lab_record(struct lab *lab, const char *name);
void lab_end(struct lab *lab, struct store *s);
void lab_end_sound(struct lab *lab, struct store *s);
/* Opening must fail with this code. Returns the sentence, which must name the file. */
const char *lab_refused(const char *path, enum store_mode mode, int code);

void lab_sample(struct lab *lab, uint64_t time_ns, unsigned thread, const char *root_first);
void lab_lost(struct lab *lab, uint64_t time_ns, uint16_t cpu, enum loss_kind kind, unsigned n);
void lab_name(struct lab *lab, char letter);
struct segment *lab_seal(struct lab *lab);

/* A head that asked for [trigger - pre, trigger + post] and got just that. Texts are constants. */
struct incident_head lab_head(uint64_t trigger_ns, uint64_t pre_ns, uint64_t post_ns);

/* Seal, begin, put: an incident that is open. */
struct segment *lab_begin(struct lab *lab, struct store *s, struct incident_head *head);
/* Begin, put, finish; returns the id. */
int64_t lab_incident(struct store *s, struct incident_head *head, struct segment *const *segments,
		     uint32_t n);
/* One segment of `samples` samples from `start` on, 1 ms apart, in an incident around it. */
int64_t lab_simple(struct lab *lab, struct store *s, uint64_t start_ns, unsigned samples);

/*
 * An incident as text, one sample a line: "10.0 main abc" with "?" for frames without a name. What
 * is lost on the way into the store and back makes a difference. Valid until the next call.
 */
const char *lab_dump(struct store *s, int64_t id);
/* Only its samples. */
const char *lab_samples(struct store *s, int64_t id);

/* store_delete(), then store_clean(). Returns the code. */
int lab_delete(struct store *s, int64_t id, struct err *err);

/* SQL on the store's file, beside the store's own handle; the first column of the first row. */
int64_t lab_sql(const char *path, const char *sql);
/* SQLite's integrity check, and that of foreign keys, must say "ok". */
void lab_check_integrity(const char *path);
