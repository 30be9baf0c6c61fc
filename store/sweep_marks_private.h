/*
 * What segments list, a bit for each id: for sweeping (sweep.c), which deletes what is not marked.
 *
 * What came since the range was looked at is above it, and counts as marked. Of the store's writer, in and outside of
 * transactions.
 */
#ifndef STORE_SWEEP_MARKS_PRIVATE_H
#define STORE_SWEEP_MARKS_PRIVATE_H

#include "store/store_private.h"

enum { MARK_THREADS, MARK_FRAMES, MARK_FUNCTIONS, MARK_MODULES, MARK_TEXTS, MARKS };

struct marks {
	struct store *s;
	uint8_t *bits[MARKS];                /* of the ids from min to max */
	int64_t min[MARKS], max[MARKS];      /* ids above max were added since, and stay */
	int64_t last_segment;                /* marked up to and with this one */
	bool unread[MARKS];                  /* some stay though they cannot be read: what these name is not marked */
	int64_t note;                        /* of what is to be swept, when it began; 0 = none (sweep_note()) */
	int64_t others;                      /* changes when somebody else has written */
};

/* The ranges of ids that there are, nothing marked. m->s is set. */
int marks_init(struct marks *m);
void marks_free(struct marks *m);
/*
 * Every segment after the last one marked. A list that cannot be read ends the sweep; so does, with ERR_STOPPED
 * and outside of a transaction, sweep_called_off().
 */
int mark_segments(struct marks *m);

static inline bool in_range(const struct marks *m, int kind, int64_t id)
{
	return id >= m->min[kind] && id <= m->max[kind];
}

static inline void mark(struct marks *m, int kind, int64_t id)
{
	uint64_t at = (uint64_t)id - (uint64_t)m->min[kind];

	if (in_range(m, kind, id))
		m->bits[kind][at / 8] |= (uint8_t)(1u << (at % 8));
}

/* What is outside of the range stays. */
static inline bool is_marked(const struct marks *m, int kind, int64_t id)
{
	uint64_t at = (uint64_t)id - (uint64_t)m->min[kind];

	return !in_range(m, kind, id) || (m->bits[kind][at / 8] >> (at % 8) & 1);
}

/* One of the ids from `id` to `last`. */
bool any_marked(const struct marks *m, int kind, int64_t id, int64_t last);

/* For statements: listed(kind, id), and any_text(first, last) of texts. m NULL takes them away. */
int marks_in_sql(struct store *s, struct marks *m);

/* Somebody has asked for an end. */
bool sweep_called_off(const struct store *s);

#endif
