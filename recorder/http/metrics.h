/*
 * The recorder's status as metrics for Prometheus.
 *
 * Sources: prometheus.io "Exposition formats", text format 0.0.4, which promtool and the textfile
 * collector of node_exporter read; github.com/prometheus/OpenMetrics, specification 1.0: counters
 * are declared without "_total", and "# EOF" ends it. No state, any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/json_read.h"

#include <stdbool.h>

#define METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_OPEN_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* status: the answer to {"cmd":"status"}. A value that it lacks is left out. */
void metrics_put(struct json_value status, bool open_metrics, struct buf *out);
/* One more metric, with one value, before the end. name: a counter's ends in "_total". */
void metrics_put_one(const char *name, const char *help, double value, bool open_metrics,
		     struct buf *out);
/* Call last. */
void metrics_end(bool open_metrics, struct buf *out);
