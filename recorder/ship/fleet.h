/*
 * Incidents of many machines in a database: its tables, and the questions to them as SQL, which the
 * database answers. All of it works on ClickHouse from 18.16 (without TTL) and PostgreSQL from 11.
 *
 *	recorder_incidents   a row each, the newest attempt last: see ship/to_database.c
 *	recorder_series      number -> host, service, version, metric
 *	recorder_stacks      number -> names of frames, leaf first
 *	recorder_samples     samples and weight of a batch by series, minute and stack
 *	recorder_batches     ClickHouse: the same by series alone; a view fills it
 *	recorder_days        ClickHouse: the same of a day by series and stack: fleet_fold()
 *	recorder_folds       which of these count: of a day whose incidents are still as many
 *
 * Numbers are the first 63 bits of a SHA-256 of what they stand for, so that no machine has to ask
 * for them. day is the UTC day of the trigger: what is removed, is removed by it.
 */
#pragma once

#include "ship/database.h"

#define FLEET_INCIDENTS "recorder_incidents (day, uuid, batch, host, rule, reason, signature, " \
			"recorder_version, trigger_ns, from_ns, until_ns, samples, lost)"
#define FLEET_SERIES "recorder_series (day, series, host, service, version, metric)"
#define FLEET_STACKS "recorder_stacks (day, stack, frames)"
#define FLEET_SAMPLES "recorder_samples (day, batch, series, minute, stack, samples, weight)"

struct fleet_schema {
	bool clickhouse;
	const char *cluster;                 /* of ClickHouse: ON CLUSTER; NULL = one server */
	uint32_t ttl_days;                   /* 0 = for ever */
};
void fleet_put_schema(const struct fleet_schema *s, struct buf *out);

/* What is looked at; NULL and 0 = all. */
struct fleet_filter {
	const char *host, *service, *release;
	const char *rule;                    /* part of a rule or of what it said */
	const char *metric;                  /* "cpu" */
	bool history;                        /* intervals of it, in place of incidents */
	uint64_t from_wall_ns, until_wall_ns;        /* triggers, until_wall_ns left out */
};

#define FLEET_DAY_CHARS 11u                  /* "2026-11-28 " */

/* A question; out is SQL. clickhouse: which. */
struct fleet_query {
	bool clickhouse;
	bool clustered;                      /* ClickHouse: its tables may be of several servers */
	const struct fleet_filter *filter, *base;    /* base: only where a function says so */
	uint32_t rows;
	const char *fold_days, *folds;       /* "2026-11-28 2026-11-29 ", "17, 4"; NULL = none */
	struct buf out;
};

/* uuid, host, rule, reason, signature, trigger_ns, from_ns, until_ns, samples, lost; by time */
void fleet_incidents(struct fleet_query *q);
/* incidents, hosts, ns that their windows last, samples, lost, least from_ns, last until_ns */
void fleet_totals(struct fleet_query *q);
/* rule, signature, incidents, hosts, first trigger_ns, last trigger_ns */
void fleet_signatures(struct fleet_query *q);
/* service, version, hosts, weight, samples */
void fleet_services(struct fleet_query *q);
/*
 * name, own weight, inclusive weight, both of the base, 1: chosen by its own, 0: by the other
 *
 * per, base_per  with a base: first those whose inclusive weight / per changed most, then those
 *                whose own did
 */
void fleet_functions(struct fleet_query *q, double per, double base_per);
/* name, host, own weight, inclusive weight, both of the base, of functions of these names */
void fleet_hosts_of(struct fleet_query *q, const char *const *names, uint32_t n);
/* host, ns that its windows last, weight */
void fleet_hosts(struct fleet_query *q);
/* host, minutes since 1970 / bucket_minutes, weight */
void fleet_lanes(struct fleet_query *q, uint32_t bucket_minutes);

/*
 * Days summed up, of incidents or of the history (filter->history), so that questions to whole days
 * read far fewer rows. ClickHouse only. A fold counts while its day has as many incidents as then:
 * one that comes later makes questions read the day's own rows again, until it is folded anew.
 */
void fleet_ask_engine(struct fleet_query *q);        /* 1: the tables are of one server */
void fleet_ask_folds(struct fleet_query *q);         /* day, fold: those that count */
void fleet_ask_days(struct fleet_query *q);          /* day, incidents: those that are over */
void fleet_fold(struct fleet_query *q, const char *day, int64_t fold);
/* After it: now it counts. */
void fleet_fold_counts(struct fleet_query *q, const char *day, int64_t fold, uint64_t incidents);
