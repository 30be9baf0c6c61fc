/*
 * Rules on a text: an expression, and the processes whose events count.
 *
 * ;Process=LIST may follow the expression, as the very last thing; any other ';' is part of the
 * expression. The merge thread, except open and close.
 */
#pragma once

#include "triggers/regex.h"
#include "triggers/trigger.h"

#define PATTERN_TEXT_BYTES 4400u

struct pattern {
	struct trigger base;
	struct regex *regex;                 /* NULL = any text */
};

/*
 * expression   perhaps with ;Process= after it; env's processes count where it has none
 */
int pattern_open(struct pattern *p, const char *expression, bool ignore_case,
		 const struct trigger_env *env, struct err *err);
void pattern_close(struct trigger *t);
bool pattern_match(struct pattern *p, const char *text);
void pattern_status(const struct trigger *t, struct trigger_status *out);
