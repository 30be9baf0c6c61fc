/*
 * Triggers: rules that watch the stream of events and say when something is worth keeping.
 *
 * A trigger has no clock, no thread and no file: it sees the same ordered events that the ring
 * stores, live or from a file, and time is the time of events; EVENT_TICK comes every 100 ms. So a
 * rule can be tried on yesterday's data and fires at the same place. All calls are made by the
 * merge thread, except open() and close().
 */
#ifndef TRIGGERS_TRIGGER_H
#define TRIGGERS_TRIGGER_H

#include "base/buf.h"
#include "model/event.h"
#include "model/needs.h"

struct trigger {                             /* base of every trigger; first member */
	const struct trigger_ops *ops;
	char *spec;                          /* as given */
};

struct trigger_env {
	double min_sec; /* MinSecForTrigger: true for this long before it fires */
	double decay_hours;                  /* DecayToZeroHours; 0 = off */
	double poll_sec;                     /* poll period of counters; 0 = 1 s */
	bool already_true_fires;             /* already true at start may fire once it has held */
};

enum trigger_phase {
	TRIGGER_WAITING_DATA,                /* nothing seen yet, or absent */
	TRIGGER_DISARMED,                    /* must first be false for its time */
	TRIGGER_ARMED,
	TRIGGER_HOLDING,                     /* true, not yet for long enough */
};

struct trigger_status {
	enum trigger_phase phase;
	double value, limit;                 /* last value and limit now; NaN = none */
	double nearest;                      /* the value closest to firing so far; NaN = none */
	char text[200];                      /* one line for people: "42.1 of > 80, armed" */
};

struct trigger_ops {
	const char *name;                    /* the option: "stop-on-perf-counter" */
	const char *usage;                   /* grammar in one line */
	const char *summary;
	/*
	 * Parse a spec. ERR_USAGE says which part, what was found, what is allowed.
	 */
	int (*open)(const char *spec, const struct trigger_env *env, struct trigger **out,
		    struct err *err);
	/* What the rule asks of the sources. */
	int (*needs)(const struct trigger *t, struct needs *out, struct err *err);
	/*
	 * One event. true = fire now; *why gets one sentence with value and limit, and
	 * status() the numbers.
	 */
	bool (*feed)(struct trigger *t, const struct event *e, struct buf *why);
	/*
	 * A firing's incident has ended. From the firing until here feed() keeps its state up to
	 * date but returns false.
	 */
	void (*fired)(struct trigger *t);
	void (*status)(const struct trigger *t, struct trigger_status *out);
	void (*close)(struct trigger *t);    /* NULL allowed */
};

/* Every kind of trigger, ending in NULL. */
extern const struct trigger_ops *const triggers[];

/* The kind whose option has this name, or NULL. */
const struct trigger_ops *trigger_kind(const char *name);

#endif
