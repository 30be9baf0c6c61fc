/*
 * Starts that wait for their stops: requests, collections, anything that has a duration.
 *
 * The bytes of its key identify a start: the process, and a thread, count or activity of it. The
 * table is bounded: at PAIRS_MAX the oldest start makes room, and a start whose stop does not come
 * leaves after PAIRS_EXPIRY_NS; both are counted. Open starts are kept in order of arrival, so that
 * overdue ones are found without a search.
 *
 * The merge thread only. Memory grows with the open starts, to some 19 MB a rule.
 */
#pragma once

#include "base/slots.h"
#include "base/table.h"
#include "model/event.h"

#define PAIRS_MAX 65536u
#define PAIRS_EXPIRY_NS (3600 * 1000000000ULL)
#define PAIR_KEY_BYTES 56
#define PAIR_NAME_BYTES 32
#define PAIR_TEXT_BYTES 128

struct pair_key {
	uint32_t len;
	unsigned char bytes[PAIR_KEY_BYTES];
};

struct pair {
	struct pair_key key;
	uint32_t newer, older;               /* in order of arrival; SLOTS_NONE at the ends */
	uint64_t start_ns;
	uint32_t pid, tid;                   /* 0 = not known */
	char process[PAIR_NAME_BYTES];       /* its label, cut; "" = not known */
	char text[PAIR_TEXT_BYTES];          /* what the caller says of it, such as a URL; or "" */
};

struct pairs {
	struct slots slots;
	struct table table;
	uint32_t oldest, newest;
	uint16_t by_pid[1024];               /* open starts per pid modulo 1024, saturated */
	uint64_t expired, pushed_out, refused;
};

int pairs_init(struct pairs *p);           /* 0 or ERR_MEMORY */
void pairs_free(struct pairs *p);          /* a zeroed one too */

/* Begin a key with an event's process; a reused pid makes another key. */
void pair_key_begin(struct pair_key *key, const struct process *process);
void pair_key_u64(struct pair_key *key, uint64_t v);
/* Append bytes; what is too long for the key is hashed to 128 bits. */
void pair_key_bytes(struct pair_key *key, const void *bytes, size_t n);

/* What to do with a start whose key is already open. */
enum pair_again { PAIR_KEEP_FIRST, PAIR_KEEP_LAST };

/* returns the new start, for its text; NULL = none was made. Valid until the next call */
struct pair *pairs_start(struct pairs *p, const struct pair_key *key, const struct event *e,
			 enum pair_again again);
/* Remove the start of this key; false = there is none. */
bool pairs_stop(struct pairs *p, const struct pair_key *key, struct pair *out);
/* The start that has been open longest, or NULL; valid until the next call. */
const struct pair *pairs_oldest(const struct pairs *p);
void pairs_drop_oldest(struct pairs *p);
/* Whether a start of this time is open. Looks at all of them: not for use per event. */
bool pairs_has_start(const struct pairs *p, uint64_t start_ns);
/* Drop starts that have been open for longer than PAIRS_EXPIRY_NS. */
void pairs_expire(struct pairs *p, uint64_t now_ns);
/* A process has ended: drop its starts, as their stops will not come. */
void pairs_forget_process(struct pairs *p, const struct process *process);
