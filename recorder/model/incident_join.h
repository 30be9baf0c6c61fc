/*
 * Several incidents as one, so that they have one call tree: a base and a test, or a set of which
 * each keeps its share.
 *
 * Of a set, each process belongs to a part (incident_process.part), and parts[] says what it is
 * called; a call tree with processes has a node for each part above them. One thread.
 */
#pragma once

#include "model/incident.h"

#define INCIDENT_PARTS_MAX 4096u

struct incident_join {
	struct incident *to;                 /* from incident_init(); or joined before */
	const struct incident *from;
	uint32_t streams;                    /* a bit for each stream whose samples are taken */
	int64_t shift_ns;                    /* is added to the samples' times */
	/*
	 * The thread in `to` for one in `from`, which may be THREAD_NONE; asked once for each.
	 * returns an index; THREAD_NONE = unknown; INCIDENT_JOIN_FAILED without memory
	 */
	uint32_t (*thread)(const struct incident_join *j, uint32_t thread);
	void *ctx;                           /* of thread() */
};

#define INCIDENT_JOIN_FAILED (UINT32_MAX - 1)

/* Append the samples with their stacks, without events. 0 or ERR_MEMORY. */
int incident_join(const struct incident_join *j);

/*
 * Add an incident to a set as its next part, with its samples of all streams in order of time. All
 * triggers are at one moment; the window grows to that of the longest. to->head.rule, host and so
 * on become those of the first part.
 *
 * name     "Incident 3"
 * returns  0, ERR_MEMORY, or ERR_LIMIT for one too many
 */
int incident_add_part(struct incident *to, const struct incident *from, const char *name,
		      struct err *err);
