/* Rules in the engine, see rules.c. The merge thread's, except where it says otherwise. */
#pragma once

#include "base/err.h"
#include "model/event.h"

#include <stdatomic.h>

struct engine;

struct rule_state {
	bool in_window;                      /* its own incident is in its post-window */
	uint64_t *hour_ns;                   /* the last firings, a circle of rules.per_hour */
	uint32_t fired;                      /* firings so far, less subtracted ones */
	uint64_t last_ns;                    /* the last one */
	uint64_t day_start_ns;
	uint32_t day_fired;
	uint64_t held_back;                  /* firings */
	bool limit_logged;
	uint64_t held_back_until_ns;
	bool silence_logged;                 /* that it is dead, or has no data */
	_Atomic uint32_t repeats;            /* firings without an incident; the writer adds */
	uint32_t repeats_subtracted;         /* from `fired`, so far */
};

struct rules {
	struct rule_state *all;              /* by rule */
	bool armed;                          /* there is no StartOnPerfCounter, or one has fired */
	uint32_t per_hour, per_day;          /* incidents of one rule */
	bool hour_unlimited, day_unlimited;  /* these limits do not hold */
	uint32_t firings;                    /* that made an incident, repeats too */
	uint64_t next_save_ns;
};

/* Control thread, before the others run and after they have ended. */
int rules_open(struct engine *e, struct err *err);
void rules_close(struct engine *e);

/* How many firings end the run; those that repeat an incident do not count. */
uint32_t rules_wanted_firings(const struct engine *e);
/* Show an event or a tick to the rules. returns whether one fired at it */
bool rules_feed(struct engine *e, const struct event *event);
/* Copy what status prints. Under the lock. */
void rules_publish(struct engine *e);
/* Copy the rules' states for the writer: every minute, or now. */
void rules_save(struct engine *e, bool now);
