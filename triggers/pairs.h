/*
 * Starts that wait for their stops: requests, collections, anything that has a duration.
 *
 * A start is found again by the bytes of its key: process, and what tells it from others of that
 * process (a thread, a count, an activity). The table is bounded: at PAIRS_MAX the oldest makes room;
 * one whose stop does not come leaves after its expiry; both are counted. Open starts are kept in
 * the order of their coming, so that the ones that are overdue are found without a search.
 *
 * The merge thread only. Memory grows with the starts that are open, to some 11 MB a rule.
 */
#ifndef TRIGGERS_PAIRS_H
#define TRIGGERS_PAIRS_H

#include "base/slots.h"
#include "base/table.h"
#include "model/event.h"

#define PAIRS_MAX 65536u
#define PAIRS_EXPIRY_NS (3600 * 1000000000ULL)
#define PAIR_KEY_BYTES 56
#define PAIR_NAME_BYTES 32

struct pair_key {
	uint32_t len;
	unsigned char bytes[PAIR_KEY_BYTES];
};

struct pair {
	struct pair_key key;
	uint32_t newer, older;               /* by their coming; SLOTS_NONE at the ends */
	uint64_t start_ns;
	uint32_t pid, tid;                   /* 0 = not known */
	char process[PAIR_NAME_BYTES];       /* its name, cut; "" = not known */
};

struct pairs {
	struct slots slots;
	struct table table;
	uint32_t oldest, newest;
	uint32_t max;
	uint64_t expiry_ns;
	uint16_t by_pid[1024];               /* open ones per pid modulo 1024; stays at its maximum */
	uint64_t orphans, overwritten, expired, pushed_out, refused;
};

/* 0 or ERR_MEMORY. max: 0 = PAIRS_MAX. */
int pairs_init(struct pairs *p, uint32_t max);
void pairs_free(struct pairs *p);          /* a zeroed one too */

/* The key of an event's process; more is added behind it. pid reuse makes another key. */
void pair_key_begin(struct pair_key *key, const struct process *process);
void pair_key_u64(struct pair_key *key, uint64_t v);
/* A text of any length; what is too long for the key is hashed to 128 bits. */
void pair_key_bytes(struct pair_key *key, const void *bytes, size_t n);

/* What to do with a start whose key is open already. */
enum pair_again { PAIR_KEEP_FIRST, PAIR_KEEP_LAST };

void pairs_start(struct pairs *p, const struct pair_key *key, const struct event *e,
		 enum pair_again again);
/* Take the start of this key out; false = there is none (an orphan, counted). */
bool pairs_stop(struct pairs *p, const struct pair_key *key, struct pair *out);
/* The one that has been open for longest, or NULL; good until the next call. */
const struct pair *pairs_oldest(const struct pairs *p);
void pairs_drop_oldest(struct pairs *p);
/* Whether one that started at this time is open. Looks at all: not for each event. */
bool pairs_has_start(const struct pairs *p, uint64_t start_ns);
/* Those that have been open for over their expiry leave. */
void pairs_expire(struct pairs *p, uint64_t now_ns);
/* A process has ended: its stops will not come. */
void pairs_forget_process(struct pairs *p, const struct process *process);

#endif
