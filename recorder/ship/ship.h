/*
 * Shipping: incidents of a store, sent to targets (ship/target.h).
 *
 * The store is the spool: an incident waits in it until it is sent or retention deletes it, so a
 * server that is down costs nothing but that, and what was lost so is counted. What was sent is in
 * the store (store_ship_note()), durable before the next one is sent: after a kill one incident at
 * most is sent again, under the same name and uuid. Order is that of the incidents.
 *
 * Tried again are: no answer, or one cut short; 408, 425, 429 and 5xx; after what the server asks
 * for (Retry-After), else after 5 s, doubled each time up to 15 min, less a random part. 401, 403,
 * 404, 407 and redirections are the target's fault, not the incident's: tried again every 15 min.
 * Any other answer but 2xx refuses the incident for good, and the server's sentence is kept.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct ship_config {
	const char *store_path;
	char *const *targets;                /* texts */
	uint32_t ntargets;
	bool due_only;                       /* leave targets alone that wait after a failure */
	bool again;                          /* what was sent already, too */
	const int64_t *ids;                  /* only these; NULL = all that wait */
	uint32_t nids;
	uint64_t since_wall_ns;              /* with `again`: only later ones */
	/* A sentence of what was done or failed. due_only: only of what has changed. */
	void (*tell)(void *ctx, bool bad, const char *text);
	void *ctx;
};

/* Whether these are targets, their secrets can be read, and libcurl is there. ERR_USAGE... */
int ship_check(char *const *targets, uint32_t n, struct err *err);

/* Whether one of these targets is a peer that the rule's ;Peers= names. ERR_USAGE: none is. */
int ship_check_peers(char *const *targets, uint32_t n, const char *rule, struct err *err);

/*
 * One round: each target gets what waits for it, in turns, until all is sent or it fails.
 *
 * status   gets a JSON array: for each target its counts, what it said, and when it is due
 * returns  0; ERR_IO: something is still to be sent, or was refused; errors of the store; ERR_BUSY:
 *          another process sends from this store
 */
int ship_run(const struct ship_config *cfg, struct buf *status, struct err *err);
