/*
 * What rules on a text share: an expression, whose events count, and where the text came from.
 *
 * Behind the expression may stand ;Process=, at the very end: any other ';' is a part of it. Merge
 * thread, except open and close.
 */
#ifndef TRIGGERS_PATTERN_H
#define TRIGGERS_PATTERN_H

#include "triggers/process_filter.h"
#include "triggers/regex.h"
#include "triggers/trigger.h"

#define PATTERN_TEXT_BYTES 4400u

struct pattern {
	struct trigger base;
	struct process_filter processes;
	struct regex *regex;                 /* NULL = any text */
};

/* text: the expression with what may follow it, spec: whole, for sentences. env may give processes. */
int pattern_open(struct pattern *p, const char *spec, const char *text, bool ignore_case,
		 const struct trigger_env *env, struct err *err);
void pattern_close(struct trigger *t);     /* frees it; for rules that are a pattern and nothing more */
bool pattern_match(struct pattern *p, const char *text);
void pattern_status(const struct trigger *t, struct trigger_status *out);

#endif
