/*
 * Stories for rules on events: one event a line, fed by hand.
 *
 *	TIME_MS NAME [pid=N] [tid=N] [exe=NAME] [args=TEXT] [value=X] [Field=Value]...
 *
 *	"  3228.778 GC/Start pid=3676 tid=3680 Count=1 Type=0\n"
 *	"! 3230.112 GC/Stop pid=3676 tid=3680 Count=1\n"        '!': here it fires, and only there
 *	"--\n"                                                  the incident ends: fired()
 *	"  4000 tick\n"
 *
 * Names with a meaning: tick; start and exit (of a process; value = its exit code); counter (its
 * name in Name=, absent when there is no value); log; sample. Any other is a generic event of the
 * lab's provider, or of Provider=. A value of digits is a whole number, with a point a fraction,
 * else a text; 'in quotes' it may have blanks and is a text always.
 */
#pragma once

#include "triggers/trigger.h"

struct event_lab {
	const char *provider;                /* of generic events */
	struct processes *processes;
	struct trigger *trigger;
	struct buf why;                      /* of the last firing */
	double value, limit;                 /* status() at the last firing */
	uint64_t time_ns;                    /* of the last event */
	unsigned firings;
};

/* Open a rule of this kind; fails the test when the spec is refused. env NULL = the usual one. */
void event_lab_open(struct event_lab *lab, const char *kind, const char *spec,
		    const struct trigger_env *env);
void event_lab_close(struct event_lab *lab);

/* Feed one line (to '\n' or the end); true = it fired. */
bool event_lab_feed(struct event_lab *lab, const char *line);
/* Feed all lines; fails the test where a firing is missing or too many. */
void event_lab_story(struct event_lab *lab, const char *lines);

struct lab_story {
	const char *what, *spec, *lines;
};
/* Each story with a rule of its own. */
void event_lab_stories(const char *kind, const char *provider, const struct lab_story *stories,
		       size_t n);

/* The sentence of a spec that must be refused with ERR_USAGE must hold this text. */
void event_lab_refused(const char *kind, const char *spec, const char *says);
