/*
 * Which events `recorder events` shows, and which of their fields: --provider, --name, --process,
 * --start, --end, --text, --columns.
 *
 * --columns is a list of fields, each with a condition or without: "Size>=1024,FileName". An event
 * must meet all conditions. '*' are the fields that are not listed.
 *
 * One thread.
 */
#pragma once

#include "options/options.h"

#include "source/source.h"
#include "triggers/field_filter.h"
#include "triggers/trigger.h"

#define EVENT_COLUMNS_MAX 16u

struct event_column {
	char *field;                         /* "*" = the others; owned */
	bool has_condition;
	struct field_filter condition;
	bool field_seen;                     /* an event that all else takes has the field */
};

struct event_select {
	const struct options *o;
	struct trigger *rule;                /* of --live, borrowed; NULL = none */
	struct regex *name, *text;           /* NULL = all */
	struct regex *process;               /* NULL = --process is no regular expression */
	bool process_seen;                   /* an event's was the one that --process wants */
	bool not_text;                       /* those whose text does not match */
	struct event_column columns[EVENT_COLUMNS_MAX];
	uint32_t ncolumns;
	/* A condition whose value is no number, though an event's field is one; NULL = none. */
	const struct event_column *no_number;
};

/* o: borrowed. ERR_USAGE with what is wrong, ERR_MEMORY. On failure nothing is held. */
int event_select_open(struct event_select *s, const struct options *o, struct err *err);
void event_select_close(struct event_select *s);

/* All but --text. ms: since the trace's start. */
bool event_select_takes(struct event_select *s, const struct event *e, double ms);
/* The line that is shown, without its time. */
bool event_select_takes_text(struct event_select *s, const char *text, size_t n);

/* Those fields that are no column of their own: of '*', or all when no columns are listed. */
bool event_select_is_rest(const struct event_select *s, const char *field);
bool event_select_has_rest(const struct event_select *s);

/* The event's names, never NULL: one without a name has that of its kind. */
const char *event_provider(const struct event *e);
const char *event_name(const struct event *e);
