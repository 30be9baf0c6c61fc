/*
 * Rule on a performance counter: CATEGORY:COUNTER:INSTANCE op NUMBER.
 *
 *	Processor:% Processor Time:_Total > 80
 *	Process:Working Set:java#* >= 4G
 *	Memory:Available Bytes: < 512M
 *
 *	Process:Private Bytes:java >+20% in 5m
 *
 * The first two colons split, so an instance may contain more; an empty instance is the whole
 * machine. Sources get the name as it is: they know which counters exist, and what "name#*" and
 * "pid=" mean.
 *
 * How it fires. A sample comes once per poll period. The rule fires after MinSec / period, rounded
 * up, plus 1 hits in a row: 3 s at 1 s are 4 samples; 0 s is the first hit. Comparison is strict
 * for < and >. No data (the instance is absent) is neither true nor false: it ends the row.
 *
 *	          n true samples: FIRE
 *	ARMED ───────────────────────────▶ DISARMED
 *	  ▲                                   │ n false samples
 *	  └───────────────────────────────────┘
 *
 * It starts armed, so that a condition that is already true fires once it has held; with
 * env.already_true_fires = false it starts disarmed. Between a firing and fired() nothing fires,
 * but samples are judged as ever: the rule may be armed again and holding by then, and a condition
 * that has held for its time fires with the first true sample after fired().
 *
 * ;Key=Value for a limit that moves may follow the number, see threshold.h. The clock of decay
 * counts from the first event, through firings too.
 */
#pragma once

#include "triggers/trigger.h"

extern const struct trigger_ops perf_counter_trigger;
/*
 * StartOnPerfCounter: the same, but its firing arms the other rules and makes no incident, which
 * the engine knows by its ops. Its limit does not decay unless its own spec says so.
 */
extern const struct trigger_ops start_counter_trigger;

#define MONITOR_PERIOD_NS 2000000000ULL      /* of MonitorPerfCounter without @SEC */
#define COUNTER_PERIOD_MIN_SEC 0.1
#define COUNTER_PERIOD_MAX_SEC 86400.0

/*
 * Add CATEGORY:COUNTER:INSTANCE[@SEC] of MonitorPerfCounter to the needs, with monitor set.
 * The text after the last '@' is the period if it is a number, else part of the instance.
 */
int counter_monitor_parse(const char *spec, struct needs *out, struct err *err);
