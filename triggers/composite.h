/*
 * Rules made of rules: --stop-on EXPRESSION over names given by --rule NAME=SPEC.
 *
 *	--rule 'cpu=StopOnPerfCounter:Processor:% Processor Time:_Total>80'
 *	--rule 'gc=StopOnGCOverMsec:100' --rule 'oom=StopOnEventLogMessage:kernel@Out of memory'
 *	--stop-on 'cpu for 10s and not gc within 60s'
 *
 *	A and B, A or B, not A, ( )    strongest first: for and within, not, then, and, or
 *	A for 10s                      A has been true for 10 s without a break
 *	A within 60s                   A was true, or happened, in the last 60 s
 *	A then B within 5s             B happens at most 5 s after A
 *	rate(A) > 10/s [over 30s]      how often A happens per s, min or h; over 10 s, or the unit
 *	p99(A) > 200ms [over 60s]      a percentile of A's values, durations or readings; over 60 s
 *
 * Each part is a state or a moment. States are true or false at any time: counters beyond their
 * limits, and the results of for, within, not, rate and p99. Moments are events. A state with a
 * moment makes a moment; two moments never come at once, so "and" between them is refused with a
 * hint. A moment fires each time. A state fires when it becomes true, and again only after it was
 * false. A state that is not known (a counter without its instance, no value yet) is neither.
 *
 * Times: 500ms, 5s, 2m, 1h, 1d. Percentiles are within 1.1 % of the value (32 buckets per
 * doubling). Memory: at most COMPOSITE_NODES nodes, 70 KB for each percentile, 64 counts for each
 * rate.
 */
#pragma once

#include "triggers/trigger.h"

#define COMPOSITE_NODES 48u
#define COMPOSITE_RULES 16u             /* different names in one expression */

extern const struct trigger_ops composite_trigger;
