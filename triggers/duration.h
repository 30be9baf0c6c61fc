/*
 * Rules on durations: a limit in ms, starts that wait for their stops, the processes whose events
 * count, and things that are overdue while still open.
 *
 * struct duration is the first member of such a rule. The merge thread only.
 */
#pragma once

#include "triggers/pairs.h"
#include "triggers/trigger.h"

/*
 * An open start fires once its age exceeds the limit by this much: a stop that comes a moment late
 * gives the true duration, which is worth the wait.
 */
#define IN_FLIGHT_GRACE_NS 100000000ULL

/* Things that followed each other too quickly to be reported one by one. */
struct duration_group {
	uint64_t n;
	double sum_ms;
	double least_ms;                     /* the longest of them took at least this */
};

struct duration {
	struct trigger base;
	uint64_t ngroups;                    /* did not fire, but may hold one over the limit */
	struct duration_group group;         /* the one of these with the largest sum */
	struct threshold threshold;          /* ms; base.limit may be another rule's */
	struct pairs pairs;
	bool in_flight;
	bool off;                            /* a limit of 0 */
	const char *what;                    /* "GC", "request", for sentences; not owned */
	const char *const *says;             /* the start's fields that follow it; NULL = none */
};

/* Take MS from the head of a spec. */
int duration_head(struct duration *d, const struct spec *s);
/* The spec_take of keys that all these rules have, into a struct duration. */
#define DURATION_KEYS "InFlight, Process, " THRESHOLD_KEYS
int duration_key(void *duration, struct spec *s);
/* Take decay and processes from env where the spec has none, check all, and make the table. */
int duration_ready(struct duration *d, const struct trigger_env *env, bool has_limit,
		   const struct spec *s);
void duration_close(struct trigger *t);

/* Count an event of the right name as seen; false = the process filter dropped it. */
bool duration_wants(struct duration *d, const struct event *e);
/* A stop came: judge its duration and write why. extra: text after the sentence, or "". */
void duration_stop(struct duration *d, const struct pair_key *key, const struct event *e,
		   const char *extra, struct buf *why, struct sense *out);
/*
 * Several pauses ended. The rule fires when one of them must have been over the limit; when one may
 * have been, status() says so.
 */
void duration_group(struct duration *d, const struct event *e, const struct duration_group *group,
		    const char *extra, struct buf *why, struct sense *out);
/* A tick or the end of a process: move the clock, drop expired starts, fire overdue ones. */
void duration_other(struct duration *d, const struct event *e, struct buf *why, struct sense *out);

/* status() of these rules. */
void duration_status(const struct trigger *t, struct trigger_status *out);

/* A duration in ms as text: up to four decimals. */
void ms_text(double ms, char out[NUMBER_TEXT_BYTES]);
/* " of NAME (pid N)"; nothing without a process. */
void process_text(const struct process *process, struct buf *out);
/* The same, and ", thread T". */
void origin_text(const struct event *e, struct buf *out);
