/*
 * What rules on durations share: a limit in ms, starts that wait for their stops, whose events count,
 * and things that are overdue while still open.
 *
 * It is the base of such a rule, in front of what is its own. The merge thread only.
 */
#ifndef TRIGGERS_DURATION_H
#define TRIGGERS_DURATION_H

#include "triggers/pairs.h"
#include "triggers/process_filter.h"
#include "triggers/spec.h"
#include "triggers/threshold.h"
#include "triggers/trigger.h"

/*
 * An open start fires once its age is over the limit by this: a stop that is a moment late says the
 * true duration, and is worth waiting for.
 */
#define IN_FLIGHT_GRACE_NS 100000000ULL

/* Things that followed each other too quickly to be told one by one. */
struct duration_group {
	uint64_t n;
	double sum_ms;
	double least_ms;                     /* what the longest of them took at least */
};

struct duration {
	struct trigger base;
	uint64_t ngroups;                    /* that may hold one over the limit, and did not fire */
	struct duration_group group;         /* of these the one with the largest sum */
	struct threshold threshold;          /* ms */
	struct pairs pairs;
	struct process_filter processes;
	bool in_flight;
	bool off;                            /* a limit of 0 */
	const char *what;                    /* "GC", "request": of sentences; not owned */
};

/* Take MS from the head of a spec. */
int duration_head(struct duration *d, const struct spec *s, const char *title, struct err *err);
/* Take a key that all of them have; *taken = it was. DURATION_KEYS names them. */
#define DURATION_KEYS "InFlight, Process, " THRESHOLD_KEYS
int duration_key(struct duration *d, const struct spec *s, const struct spec_part *part, bool *taken,
		 struct err *err);
/* env's decay and process, where the spec has none; then check, and make the table. */
int duration_ready(struct duration *d, const struct trigger_env *env, const struct spec *s,
		   struct err *err);
void duration_free(struct duration *d);

/* Whether an event of the right name counts: counted as seen, and dropped by the process filter. */
bool duration_wants(struct duration *d, const struct event *e);
/* A stop came: judge its duration, and write why. extra: behind the sentence, "" = nothing. */
void duration_stop(struct duration *d, const struct pair_key *key, const struct event *e,
		   const char *extra, struct buf *why, struct sense *out);
/*
 * Several ended. Fires when one of them must have been over the limit; when one may have been, status() says so.
 * things: "pauses", of sentences.
 */
void duration_group(struct duration *d, const struct event *e, const struct duration_group *group,
		    const char *things, const char *extra, struct buf *why, struct sense *out);
/* A tick or an end of a process: clock, expiry, overdue ones. */
void duration_other(struct duration *d, const struct event *e, struct buf *why, struct sense *out);

/* status() of these rules. */
void duration_status(const struct trigger *t, struct trigger_status *out);

/* A duration in ms as text: up to four decimals. */
void ms_text(double ms, char out[NUMBER_TEXT_BYTES]);
/* " of NAME (pid N)"; nothing without a process. */
void process_text(const struct process *process, struct buf *out);

#endif
