/*
 * Rules on a text: an expression, and the processes whose events count.
 *
 * ;Process=LIST may follow the expression, as the very last thing; any other ';' is part of the
 * expression. The merge thread, except open and close.
 */
#pragma once

#include "triggers/process_filter.h"
#include "triggers/regex.h"
#include "triggers/trigger.h"

#define PATTERN_TEXT_BYTES 4400u

struct pattern {
	struct trigger base;
	struct process_filter processes;
	struct regex *regex;                 /* NULL = any text */
};

/*
 * text   the expression, perhaps with ;Process= after it
 * spec   the whole rule, for error messages
 * env    its processes count where text has none
 */
int pattern_open(struct pattern *p, const char *spec, const char *text, bool ignore_case,
		 const struct trigger_env *env, struct err *err);
void pattern_close(struct trigger *t);       /* frees the rule, whose first member is the pattern */
bool pattern_match(struct pattern *p, const char *text);
void pattern_status(const struct trigger *t, struct trigger_status *out);
