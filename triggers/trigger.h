/*
 * Triggers: rules that watch the stream of events and say when something is worth keeping.
 *
 * A trigger has no clock, no thread and no file. It sees the same ordered events that the ring
 * stores, live or from a file, and its time is the time of events; EVENT_TICK comes every 100 ms.
 * So a rule can be tried on yesterday's data and fires at the same place. The merge thread makes
 * all calls except open() and close().
 */
#pragma once

#include "base/buf.h"
#include "model/event.h"
#include "model/needs.h"
#include "model/process_filter.h"
#include "triggers/threshold.h"

/* What a rule has seen, and why events did not fire it. */
struct trigger_counts {
	uint64_t seen;                       /* events of the kind that it listens to */
	uint64_t matched;                    /* events that passed all filters */
	uint64_t dropped_process;            /* by /Process or ;Process= */
	uint64_t dropped_filter;             /* by ;FieldFilter=, a pattern or a reason */
	uint64_t orphans;                    /* stops without their starts */
	uint64_t lost;                       /* starts pushed out of a full table, or expired */
	uint64_t covered;                    /* hits inside the window of an incident */
};

/* The values since somebody took them. */
struct trigger_interval {
	uint64_t n;
	double sum, max;
};

struct trigger {                             /* base of every trigger; first member */
	const struct trigger_ops *ops;
	const char *spec;                    /* for people: TITLE:SPEC, or SPEC without a title */
	const char *text;                    /* SPEC as it was given */
	uint32_t kinds;                      /* 1 << enum event_kind: feed() wants these; 0 = all */
	struct threshold *limit;             /* NULL = none */
	bool in_window;                      /* it fired, and its incident has not ended yet */
	double value, nearest;               /* last, and closest to firing; NaN = none */
	uint64_t nearest_ns;
	struct trigger_interval interval;
	struct trigger_counts counts;
	struct process_filter processes;     /* whose events count */
	/* ;Stacks=: whose threads are looked at when it fires. "" = of the process that fired. */
	const char *stacks;                  /* NULL = of none */
	const char *peers;       /* ;Peers=: which recorders keep the same window; NULL = none */
};

struct trigger_env {
	double min_sec;                      /* MinSecForTrigger: true for so long, then it fires */
	double decay_hours;                  /* DecayToZeroHours; 0 = off */
	double poll_sec;                     /* poll period of counters; 0 = 1 s */
	bool already_true_fires;             /* what is true at the start fires once it has held */
	const char *process;                 /* /Process: whose events may fire; NULL = all */
	char *const *rules;                  /* NAME=SPEC of --rule, for rules made of rules */
	uint32_t nrules;
};

enum trigger_phase {
	TRIGGER_WAITING_DATA,                /* nothing seen yet, or absent */
	TRIGGER_DISARMED,                    /* must first be false for its time */
	TRIGGER_ARMED,
	TRIGGER_HOLDING,                     /* true, not yet for long enough */
	TRIGGER_RESTING,                     /* cannot fire for a while; text says why */
};

struct trigger_status {
	enum trigger_phase phase;
	double value, limit;                 /* last value and limit now; NaN = none */
	double nearest;                      /* the value closest to firing so far; NaN = none */
	uint64_t nearest_ns;                 /* when that was; 0 = never */
	const char *absent;                  /* the counter whose instance does not exist now */
	const char *unit;                    /* "ms"; NULL = the counter's, or none */
	struct trigger_counts counts;
	char text[200];                      /* one line for people: "42.1 of > 80, armed" */
};

/* What one event means to a rule, whether or not the rule may fire now. */
struct sense {
	bool measured;                       /* the event brought a value */
	bool hit;                            /* beyond the limit, or matched; *why was written */
	bool absent;                         /* there is nothing to judge now */
	double value;
};

/* A thing that a rule waits for, under the names in its spec; borrowed from the rule. */
#define TRIGGER_WISH_FIELDS 20u

struct trigger_wish {
	const char *provider, *event;        /* provider NULL = none; event NULL = any of it */
	const char *counter;                 /* NULL = none */
	const char *fields[TRIGGER_WISH_FIELDS];   /* that the event must have */
	unsigned nfields;
	const struct process_filter *processes;    /* whose events; NULL = anybody's */
};

struct trigger_ops {
	const char *name;                    /* the option: "stop-on-gen2-gc" */
	const char *title;                   /* "StopOnGen2GC", before a spec for people; or NULL */
	const char *usage;                   /* grammar in one line */
	const char *summary;
	size_t bytes;                        /* of the rule, whose first member is the base */
	uint32_t kinds;                      /* of base.kinds; open() may change that */
	bool is_state;                       /* a judgement lasts until the next value: counters */
	bool saves_limit;                    /* a limit that moves survives a restart */
	/*
	 * Parse base.text into a zeroed rule with its base filled in. ERR_USAGE says which part is
	 * wrong, what was found and what is allowed; then close() follows.
	 */
	int (*open)(struct trigger *t, const struct trigger_env *env, struct err *err);
	/* What the rule asks of the sources: counters, providers, logs. */
	int (*needs)(const struct trigger *t, struct needs *out, struct err *err);
	/* One event. true = fire now; *why gets one sentence, status() the value and the limit. */
	bool (*feed)(struct trigger *t, const struct event *e, struct buf *why);
	/* Add a text, a unit or a phase of its own; NULL = nothing. Call trigger_status(). */
	void (*status)(const struct trigger *t, struct trigger_status *out);
	/* Free what open() allocated; NULL = nothing. Call trigger_close(). */
	void (*close)(struct trigger *t);
	/* The same judgement without windows, for rules made of rules; NULL = cannot be a part. */
	void (*sense)(struct trigger *t, const struct event *e, struct buf *why, struct sense *out);
	/*
	 * Whether the thing that fired at this time still goes on. The window of its incident then
	 * goes on too, for TRIGGER_LASTS_NS at most. NULL = it is over once it fires.
	 */
	bool (*lasts)(const struct trigger *t, uint64_t fired_ns);
	/*
	 * The i-th thing that it waits for; false = there are no more. Finds misspelled names after
	 * a run; not called per event. NULL = it waits for nothing that has a name.
	 */
	bool (*wish)(const struct trigger *t, unsigned i, struct trigger_wish *out);
	/* The i-th rule that it is made of; returns NULL after the last. NULL = made of none. */
	const struct trigger *(*part)(const struct trigger *t, unsigned i);
};

#define TRIGGER_STATE_MAX 256u
#define TRIGGER_LASTS_NS 60000000000ULL

/* Every kind of trigger, ending in NULL. */
extern const struct trigger_ops *const triggers[];

/* The kind whose option has this name, or NULL. */
const struct trigger_ops *trigger_kind(const char *name);

/*
 * Every kind may end in ;Stacks=PROCESS or ;Stacks. PROCESS: a name or pid; without it the process
 * of the event that fires. And in ;Peers=NAME*,...: names of hosts, see ship/to_peer.c.
 */
int trigger_open(const struct trigger_ops *ops, const char *spec, const struct trigger_env *env,
		 struct trigger **out, struct err *err);
void trigger_close(struct trigger *t);       /* NULL allowed */

/*
 * The incident of a firing has ended. Between the firing and this call feed() keeps the rule's
 * state up to date but returns false.
 */
void trigger_fired(struct trigger *t);

void trigger_status(const struct trigger *t, struct trigger_status *out);

/* Judge by another limit, for backtests; only rules that have one, before their first event. */
void trigger_set_limit(struct trigger *t, double limit);

/*
 * Save what must survive a restart, the state of a limit that moves, in at most TRIGGER_STATE_MAX
 * bytes; none when there is nothing to save. Its twin takes them, and for how long no recorder ran;
 * bytes that it cannot read are ERR_FORMAT, and the rule starts afresh.
 */
int trigger_save(const struct trigger *t, struct buf *out);
int trigger_load(struct trigger *t, const void *bytes, size_t n, uint64_t away_ns, struct err *err);

/* ---- for the kinds --------------------------------------------------------------------------- */

/* feed() of rules that fire at every hit outside their windows. */
bool trigger_feed(struct trigger *t, const struct event *e, struct buf *why);

/* Count an event of this process as seen; false = the process filter dropped it. */
bool trigger_wants(struct trigger *t, const struct process *process);

/* Count a match or a drop; returns `passes`. */
bool trigger_matches(struct trigger *t, bool passes, struct sense *out);

/* Remember a value, and whether it came nearest to the limit so far. */
void trigger_value(struct trigger *t, double value, uint64_t time_ns);

/* ", in its incident's window", or "". */
const char *trigger_window_text(const struct trigger *t);
