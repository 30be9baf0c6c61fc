/*
 * Rule on a performance counter: CATEGORY:COUNTER:INSTANCE op NUMBER.
 *
 *	Processor:% Processor Time:_Total > 80
 *	Process:Working Set:java#* >= 4G
 *	Memory:Available Bytes: < 512M
 *
 * The first two colons split, so an instance may hold more; an empty instance is the whole machine.
 * The name goes to the sources as it is: which counters exist, "name#*" and "pid=" are for them to
 * know.
 *
 * How it fires. Samples come once in the rule's poll period. It takes MinSec / period, rounded up,
 * and 1 samples in a row: 3 s at 1 s are 4 samples; 0 s is the first hit. Comparison is strict for
 * < and >. No data (the instance is absent) is neither true nor false: it ends the row.
 *
 *	          n true samples: FIRE
 *	ARMED ───────────────────────────▶ DISARMED
 *	  ▲                                   │ n false samples
 *	  └───────────────────────────────────┘
 *
 * It starts armed, so that what is already true fires once it has held; with
 * env.already_true_fires = false it starts disarmed. From a firing until fired() nothing fires, but
 * samples are judged as ever: it may be armed again and holding by then, and what has held for its
 * time fires with the first true sample after fired().
 *
 * Behind the number may stand ;Key=Value for limits that move, see threshold.h; the clock of decay
 * counts from the first event seen, over firings too (issue 6 wins over the rounds of the reference).
 */
#ifndef TRIGGERS_PERF_COUNTER_H
#define TRIGGERS_PERF_COUNTER_H

#include "triggers/trigger.h"

extern const struct trigger_ops perf_counter_trigger;
/*
 * StartOnPerfCounter: the same, but what fires arms the other rules and makes no incident; the engine
 * tells it apart by its ops. Its limit does not decay unless its own spec says so.
 */
extern const struct trigger_ops start_counter_trigger;

#define MONITOR_PERIOD_NS 2000000000ULL      /* of a MonitorPerfCounter without @SEC */
#define COUNTER_PERIOD_MIN_SEC 0.1
#define COUNTER_PERIOD_MAX_SEC 86400.0

/*
 * CATEGORY:COUNTER:INSTANCE[@SEC] of MonitorPerfCounter, added to the needs with monitor set.
 * What follows the last '@' is the period if it is a number, else a part of the instance.
 */
int counter_monitor_parse(const char *spec, struct needs *out, struct err *err);

#endif
