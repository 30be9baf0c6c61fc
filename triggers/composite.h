/*
 * Rules made of rules: --stop-on EXPRESSION over names given by --rule NAME=SPEC.
 *
 *	--rule 'cpu=StopOnPerfCounter:Processor:% Processor Time:_Total>80'
 *	--rule 'gc=StopOnGCOverMsec:100' --rule 'oom=StopOnEventLogMessage:kernel@Out of memory'
 *	--stop-on 'cpu for 10s and not gc within 60s'
 *
 *	A and B, A or B, not A, ( )    'not' binds strongest, then 'then', 'and', 'or'
 *	A for 10s                      A has been true for that long without a break
 *	A within 60s                   A was true, or happened, in the last 60 s
 *	A then B within 5s             B comes, and A came before it, at most 5 s ago
 *	rate(A) > 10/s [over 30s]      how often A happens; /s, /min, /h; over 10 s or the unit
 *	p99(A) > 200ms [over 60s]      a percentile of A's values: durations, readings; over 60 s
 *
 * There are two sorts of things: states, which are true or false at any time (counters beyond their
 * limits, and what for, within, not, rate and p99 make), and moments (events). A state and a moment
 * make a moment; two moments never come at once, and "and" between them is refused with a hint. A
 * moment fires each time; a state fires when it becomes true and again only after it was false. What
 * is not known (a counter without its instance, no value yet) is neither true nor false.
 *
 * Times: 500ms, 5s, 2m, 1h, 1d. Percentiles are within 1.1 % of the value (32 buckets per doubling).
 * Memory: at most COMPOSITE_NODES nodes, 70 KB for each percentile, 64 counts for each rate.
 */
#ifndef TRIGGERS_COMPOSITE_H
#define TRIGGERS_COMPOSITE_H

#include "triggers/trigger.h"

#define COMPOSITE_NODES 48u
#define COMPOSITE_RULES 16u             /* different names in one expression */

extern const struct trigger_ops composite_trigger;

/*
 * Whether "NAME=SPEC" is one: a name of letters, digits and _, then a qualifier's spec, or that of a
 * counter. Gives the kind, and where its spec begins.
 */
int named_rule_parse(const char *text, size_t *name_len, const struct trigger_ops **kind,
		     const char **spec, struct err *err);

/* Whether a rule uses this name: for a warning about names that nobody uses. */
bool composite_uses(const struct trigger *t, const char *name, size_t len);

#endif
