/*
 * Names of counters, CATEGORY:COUNTER:INSTANCE: finding those that were meant, and listing them.
 *
 * The first two colons split, so an instance may hold more. Names compare without regard to case
 * (ASCII). Portable: the sources of both hosts use it. No state, any thread.
 */
#pragma once

#include "base/buf.h"
#include "model/needs.h"

struct counter_name {
	char category[COUNTER_NAME_MAX], counter[COUNTER_NAME_MAX], instance[COUNTER_NAME_MAX];
};

/* ERR_USAGE when there are no two colons, or category or counter is empty. */
int counter_name_split(const char *name, struct counter_name *out, struct err *err);

/* Values that programs tell of themselves. */

/* JVM:NAME:INSTANCE; NAME as in `jcmd PID PerfCounter.print`. Its values: jvm/values.h. */
bool jvm_counter_is(const char *name);
/*
 * EVENTSOURCE:NAME:INSTANCE, such as System.Runtime:cpu-usage:shop: an EventCounter of .NET, which
 * EventSources have whose names hold a '.' or '-', or follow a '*'. Its values: dotnet/counters.h.
 */
bool event_counter_is(const char *name);
/* Prometheus:METRIC:URL; see counter/prometheus.h. */
bool prometheus_counter_is(const char *name);

/* Whether text contains the pattern, or as a whole matches it with * and ?. NULL matches all. */
bool name_matches(const char *pattern, const char *text);

/* A counter in a list. */
struct counter_row {
	const char *counter;                 /* the full name */
	const char *category, *name, *instance;
	double value;                        /* NaN = none now */
	const char *unit, *meaning;
	const char *means;                   /* the process that is meant; NULL, "" = unknown */
};

/* Append the row as a line of JSON. */
void counter_put_json(const struct counter_row *row, struct buf *out);
/* A value for people; "-" = none. */
void counter_value_text(double v, char *out, size_t n);
