/*
 * A bit for each id that segments list; a sweep (sweep.c) deletes what is not marked.
 *
 * Ids that were added since the ranges were looked at are above them, and count as marked. Used by
 * the thread that sweeps, inside and outside of transactions.
 */
#pragma once

#include "store/store_private.h"

enum { MARK_THREADS, MARK_FRAMES, MARK_FUNCTIONS, MARK_MODULES, MARK_TEXTS, MARKS };

struct marks {
	struct store *s;
	uint8_t *bits[MARKS];                /* of the ids from min to max */
	int64_t min[MARKS], max[MARKS];
	int64_t last_segment;                /* the last segment that was marked */
	bool unread[MARKS];                  /* some stay unread: what they name is not marked */
	int64_t note;                        /* sweep_note() when the sweep began; 0 = none */
	int64_t data_version;                /* changes when another program writes to the store */
};

/* Set the ranges of ids that are there, with nothing marked. m->s is set. */
int marks_init(struct marks *m);
void marks_free(struct marks *m);
/*
 * Mark what the segments behind the last marked one list. A list that cannot be read is an error
 * and ends the sweep. ERR_STOPPED: sweep_called_off(), which is asked outside of transactions only.
 */
int mark_segments(struct marks *m);
/* Mark what the segments of one incident list. *nsegments: how many it has. */
int mark_incident(struct marks *m, int64_t incident_id, uint32_t *nsegments);

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

/* Ids outside of the range count as marked. */
static inline bool is_marked(const struct marks *m, int kind, int64_t id)
{
	uint64_t at = (uint64_t)id - (uint64_t)m->min[kind];

	return !in_range(m, kind, id) || (m->bits[kind][at / 8] >> (at % 8) & 1);
}

/* Whether any of the ids from `id` to `last` is. */
bool any_marked(const struct marks *m, int kind, int64_t id, int64_t last);

/* Give SQL thread_listed(id), module_listed(id), any_text(first, last); m NULL removes them. */
int marks_in_sql(struct store *s, struct marks *m);

/* Somebody waits for this thread: see store_set_call_off(). */
bool sweep_called_off(const struct store *s);
