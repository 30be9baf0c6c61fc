/*
 * Shared by event_match.c (judging), event_match_parse.c (making) and event_match_key.c (pairing).
 */
#pragma once

#include "triggers/duration.h"
#include "triggers/event_match.h"
#include "triggers/event_name.h"
#include "triggers/field_filter.h"

/* What a start and its stop share besides their process. */
enum context { CONTEXT_DERIVED, CONTEXT_THREAD, CONTEXT_ACTIVITY, CONTEXT_FIELD };

struct event_match {
	struct duration duration;
	char *provider, *start, *stop;       /* stop NULL: single events */
	char *also;                          /* a second stop; NULL = none */
	char *field;                         /* CONTEXT_FIELD */
	char *texts;                         /* of a probe: what it reads at the start; or NULL */
	char text_names[2][EVENT_FIELD_MAX];
	const char *says[3];                 /* these, for sentences */
	enum context context;
	enum event_kind start_kind, stop_kind;
	int start_id, stop_id;               /* of EventID(n); -1 = by name */
	uint64_t keywords;
	uint8_t level;
	bool stack;
	unsigned nfilters;
	struct field_filter filters[FIELD_FILTERS_MAX];
};

/* Parse the rule's text. *m is zeroed; the caller closes it after a failure. */
int event_match_parse(struct event_match *m, struct spec *s);
/* Whether it is on a probe in a program (Linux): uprobe:, usdt:. */
bool event_match_is_probe(const struct event_match *m);
/* The key that an event shares with the other end of its pair; false = it has no ActivityID. */
bool event_match_key(const struct event_match *m, const struct event *e, struct pair_key *key);
