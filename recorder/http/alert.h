/*
 * Alerts as monitoring systems post them.
 *
 *	Alertmanager, version 4, and Grafana   {"alerts":[{"status","labels","annotations",
 *	                                       "startsAt","fingerprint"}]}
 *	PagerDuty, version 3                   {"event":{"event_type":"incident.triggered",
 *	                                       "occurred_at","data":{"id","title","created_at"}}}
 *	anything else                          {"name","status","startsAt","fingerprint","for",
 *	                                       "summary"}; all may be missing
 *
 * Sources: prometheus.io "Alertmanager: webhook_config"; grafana.com "Webhook notifier";
 * developer.pagerduty.com "V3 webhooks". An alert starts when its rule has been true for the rule's
 * "for": this is not posted, so a label or annotation "for" tells it, or the query ?for=5m. No
 * state, any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define ALERTS_MAX 64u                       /* of one body; further ones are counted */
#define ALERT_KEY_BYTES 100
#define ALERT_SINCE " since "                /* in each key, once */
#define ALERT_FOR_MAX_NS (7 * 86400 * UINT64_C(1000000000))

struct alert {
	char name[120], summary[240];        /* UTF-8; "without a name"; "" */
	char key[ALERT_KEY_BYTES];   /* of the alert and its beginning: "a1b2c3 since 2026-...Z" */
	char labels[400];                    /* as they were posted, cut; "" */
	uint64_t starts_ns, for_ns;          /* of the wall clock; for_ns: ALERT_NO_FOR = unknown */
	bool dated, named;                   /* its sender told when it began; its fingerprint */
	bool resolved;
};
#define ALERT_NO_FOR UINT64_MAX

struct alerts {
	struct alert items[ALERTS_MAX];
	uint32_t n, left_out;                /* left_out: more than fit */
};

/*
 * now_ns   of the wall clock: for alerts that do not say when they began
 * returns  0, also for an event of PagerDuty that neither starts nor ends an alert; ERR_FORMAT: no
 *          JSON object, no alert in it, or a beginning that cannot be read; out is of no use then
 */
int alerts_parse(const struct buf *body, uint64_t now_ns, struct alerts *out, struct err *err);

/* "5m", "1h30m", "90s", "300": a duration of Prometheus, or seconds. false: it is none. */
bool alert_duration(const char *text, uint64_t *out_ns);
