/*
 * FieldFilter: fieldOPvalue, one condition on one field of an event.
 *
 *	FileName~\.config$    ExitCode!=0    Size>=1048576    Flags=0x10    ProcessName=nginx
 *
 * The field has word characters, OP is one of < > <= >= = != ~, and the value is all that follows.
 * A field that the event does not have never matches. Numbers, decimal or 0x.., are compared
 * exactly; anything else is compared as text: = and != ignore case, ~ is a regular expression that
 * ignores case and may match anywhere. ProcessID, ThreadID, ProcessName and ProviderName are the
 * event's own where it has no field of that name. With = and != each name of a process counts:
 * process_name.h.
 *
 * The merge thread, except open and close.
 */
#pragma once

#include "model/event.h"
#include "triggers/regex.h"
#include "triggers/spec.h"

#define FIELD_FILTERS_MAX 16u
#define FIELD_TEXT_BYTES 64u

enum field_op {
	FIELD_EQUAL, FIELD_NOT_EQUAL, FIELD_UNDER, FIELD_OVER, FIELD_UNDER_EQUAL, FIELD_OVER_EQUAL,
	FIELD_MATCHES,
};

struct field_filter {
	char *field, *value;
	enum field_op op;
	struct event_field number;           /* the value, if is_number */
	bool is_number;
	struct regex *regex;                 /* FIELD_MATCHES */
};

/* From the value at hand of a rule's spec. ERR_USAGE, ERR_MEMORY. */
int field_filter_open(const struct spec *s, struct field_filter *out);
void field_filter_close(struct field_filter *f);    /* a zeroed one too */
/*
 * Whether it is certain that no event can pass both: A>5 and A<3, A=x and A=y, A=x and A!=x, A=1
 * and A>5. Numeric bounds are taken as bounds of numbers.
 */
bool field_filters_exclude(const struct field_filter *a, const struct field_filter *b);
bool field_filter_pass(const struct field_filter *f, const struct event *e);

/* "<", "!=" and so on. */
const char *field_op_text(enum field_op op);
/* A field as text: its own, or printed into out. */
const char *field_text(const struct event_field *f, char out[FIELD_TEXT_BYTES]);
