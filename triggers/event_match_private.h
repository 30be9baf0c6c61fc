/* What event_match.c (judging), event_match_parse.c (making) and event_match_key.c (pairing) share. */
#ifndef TRIGGERS_EVENT_MATCH_PRIVATE_H
#define TRIGGERS_EVENT_MATCH_PRIVATE_H

#include "triggers/duration.h"
#include "triggers/event_match.h"
#include "triggers/event_name.h"
#include "triggers/field_filter.h"

/* What a start and its stop have in common, besides their process. */
enum context { CONTEXT_DERIVED, CONTEXT_THREAD, CONTEXT_ACTIVITY, CONTEXT_FIELD };

struct event_match {
	struct duration duration;
	char *spec;                          /* as it works: of a preset, what that stands for */
	char *provider, *start, *stop;       /* stop NULL: single events */
	char *field;                         /* CONTEXT_FIELD */
	enum context context;
	enum event_kind start_kind, stop_kind;
	int start_id, stop_id;               /* of EventID(n); -1 = by name */
	uint64_t keywords;
	uint8_t level;
	bool stack;
	unsigned nfilters;
	struct field_filter filters[FIELD_FILTERS_MAX];
	uint64_t without_field;              /* starts and stops that lack the field of StartStopID */
};

/* All of the rule's text but what duration.h has; *m is zeroed, and event_match_close()d after a failure. */
int event_match_parse(struct event_match *m, struct spec *s, struct err *err);
/* Of a program's own probes on Linux: uprobe:, usdt:. */
bool event_match_is_probe(const struct event_match *m);
/* What an event has in common with the other end of its pair. */
void event_match_key(struct event_match *m, const struct event *e, struct pair_key *key);

#endif
