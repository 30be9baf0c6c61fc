/*
 * The text that a service gives of its own metrics (Prometheus, OpenMetrics), and counters of rules
 * that name them:
 *
 *	Prometheus:http_requests_total{code="500"}:http://127.0.0.1:9100/metrics
 *
 * A name without labels, or with some of them, is the sum of all series that have these. What only
 * grows (a counter; the sum, count and buckets of a histogram or summary) is told as its increase a
 * second, anything else as it is. No state, no I/O, nothing is allocated; any thread.
 *
 * Source: Prometheus documentation, "Exposition formats", text format 0.0.4; OpenMetrics 1.0.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#define PROMETHEUS_NAME_BYTES 400

struct prometheus_name {
	char metric[PROMETHEUS_NAME_BYTES];  /* with its labels, as it was typed */
	size_t metric_len;                   /* without them */
	const char *url;                     /* within the name that was given */
};

/* name: one of prometheus_counter_is(). ERR_USAGE, with what is wrong. */
int prometheus_parse(const char *name, struct prometheus_name *out, struct err *err);

struct prometheus_series {
	const char *name, *labels, *help;    /* labels without the braces */
	size_t name_len, labels_len, help_len;
	double value;
	bool grows;
};

/* Where in a text. Set text and end; the text ends in a NUL behind `end`. */
struct prometheus_text {
	const char *text, *end;
	const char *family, *help;           /* of the lines that follow */
	size_t family_len, help_len;
	char type;                           /* its first letter; 0 = none was given */
};

/* The next series with a number; lines that are none are passed over. false = the end. */
bool prometheus_next(struct prometheus_text *t, struct prometheus_series *out);
/* Whether the series has this name and these labels. */
bool prometheus_takes(const struct prometheus_name *name, const struct prometheus_series *s);
