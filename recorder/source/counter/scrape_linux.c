/*
 * The source of counters that services tell by HTTP (prometheus.h). An address that does not
 * answer is tried again after RETRY_NS; until then its counters have no value.
 */
#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"
#include "source/counter/http_linux.h"
#include "source/counter/poll.h"
#include "source/counter/prometheus.h"
#include "source/counter/scrape.h"
#include "source/counter_name.h"

#include <stdio.h>
#include <stdlib.h>

#define RETRY_NS (5 * NS_PER_SEC)
#define REST_NS (100 * NS_PER_MS)
#define ADDRESSES_MAX 32u
#define HELP_BYTES 120
#define NAME_COLUMN 80

struct address {
	const char *url;                     /* of the first metric with it */
	struct http *http;
	const struct buf *text;              /* of this round; NULL = no answer */
	uint64_t round, retry_ns;
	bool told;                           /* that it does not answer */
};

struct metric {
	char full[COUNTER_NAME_MAX];         /* the name points into it */
	struct prometheus_name name;
	struct address *address;
	double before;
	uint64_t before_ns;                  /* 0 = no reading to compare with */
};

struct scrape_source {
	struct counter_poll poll;
	struct log *log;
	struct metric *metrics;              /* by index of the poll */
	struct address addresses[ADDRESSES_MAX];
	uint32_t naddresses;
	uint64_t round;
};

/* ---- one value ------------------------------------------------------------------------------- */

/* The sum of what the name takes; false = nothing. */
static bool sum_of(const struct buf *text, const struct prometheus_name *name, double *sum,
		   bool *grows)
{
	struct prometheus_text t = {.text = text->data, .end = text->data + text->len};
	struct prometheus_series s;
	bool found = false;

	*sum = 0;
	*grows = false;
	while (text->len && prometheus_next(&t, &s)) {
		if (!prometheus_takes(name, &s))
			continue;
		found = true;
		*sum += s.value;
		*grows = s.grows;
	}
	return found;
}

static enum counter_result value_at(struct metric *m, const struct buf *text, uint64_t now_ns,
				    double *value)
{
	double sum, before = m->before;
	uint64_t before_ns = m->before_ns;
	bool grows;

	m->before_ns = 0;
	if (!text || !sum_of(text, &m->name, &sum, &grows))
		return COUNTER_ABSENT;
	*value = sum;
	if (!grows)
		return COUNTER_VALUE;
	m->before = sum;
	m->before_ns = now_ns;
	/* Less than before: the service was started again. */
	if (!before_ns || now_ns <= before_ns || sum < before)
		return COUNTER_NOT_YET;
	*value = (sum - before) * (double)NS_PER_SEC / (double)(now_ns - before_ns);
	return COUNTER_VALUE;
}

/* ---- the source ------------------------------------------------------------------------------ */

static void begin_round(struct counter_poll *p)
{
	((struct scrape_source *)p)->round++;
}

/* Fetched once a round. The queue rests meanwhile, as a service may be slow to answer. */
static void fetch(struct scrape_source *s, struct address *a)
{
	struct err err = {0};

	if (a->round == s->round)
		return;
	a->round = s->round;
	a->text = NULL;
	if (os_now_ns() < a->retry_ns)
		return;
	queue_rest(s->poll.queue, REST_NS);
	if (http_get(a->http, &a->text, &err)) {
		a->text = NULL;
		a->retry_ns = os_now_ns() + RETRY_NS;
		if (!a->told)
			log_line(s->log, LOG_WARN, "%s; its counters have no value until it "
				 "answers", err.text);
		a->told = true;
	} else {
		if (a->told)
			log_line(s->log, LOG_INFO, "%s answers again", a->url);
		a->told = false;
		a->retry_ns = 0;
	}
	queue_resume(s->poll.queue, os_now_ns());
}

static enum counter_result read_metric(struct counter_poll *p, uint32_t i, double *value)
{
	struct scrape_source *s = (struct scrape_source *)p;
	struct metric *m = &s->metrics[i];

	fetch(s, m->address);
	return value_at(m, m->address->text, os_now_ns(), value);
}

extern const struct source_ops scrape_source;

static void scrape_close(struct source *source)
{
	struct scrape_source *s = (struct scrape_source *)source;
	uint32_t i;

	for (i = 0; i < s->naddresses; i++)
		http_close(s->addresses[i].http);
	counter_poll_close(&s->poll);
	free(s->metrics);
	free(s);
}

static int address_of(struct scrape_source *s, const char *url, struct address **out,
		      struct err *err)
{
	struct address *a = s->addresses;
	int rc;

	for (; a < s->addresses + s->naddresses; a++)
		if (strcmp(a->url, url) == 0)
			goto found;
	if (s->naddresses == ADDRESSES_MAX)
		return err_set(err, ERR_LIMIT, "rules name metrics of more than %u addresses",
			       ADDRESSES_MAX);
	rc = http_open(url, &a->http, err);
	if (rc)
		return rc;
	a->url = url;
	s->naddresses++;
found:
	*out = a;
	return 0;
}

static int scrape_open(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	static const struct counter_poll_ops ops = {begin_round, read_metric, NS_PER_SEC};
	struct scrape_source *s = calloc(1, sizeof(*s));
	struct metric *m;
	uint32_t i;
	int rc;

	if (!s)
		return err_memory(err, "for the source of metrics");
	s->poll.base.ops = &scrape_source;
	s->log = cfg->log;
	s->metrics = calloc(needs->ncounters + 1, sizeof(*s->metrics));
	rc = counter_poll_open(&s->poll, &ops, cfg->queue, needs->ncounters, err);
	if (!s->metrics)
		rc = err_memory(err, "for the source of metrics");
	for (i = 0; !rc && i < needs->ncounters; i++) {
		if (!prometheus_counter_is(needs->counters[i].name))
			continue;
		m = &s->metrics[s->poll.npolled];
		memcpy(m->full, needs->counters[i].name, sizeof(m->full));
		rc = prometheus_parse(m->full, &m->name, err);
		if (!rc)
			rc = address_of(s, m->name.url, &m->address, err);
		if (!rc)
			counter_poll_add(&s->poll, &needs->counters[i]);
	}
	if (rc) {
		scrape_close(&s->poll.base);
		return rc;
	}
	*out = &s->poll.base;
	return 0;
}

/* ---- before a recording ---------------------------------------------------------------------- */

/* A service that answers must know the metric's name; its labels may come later. */
static int check_metric(const char *full, bool assume_exists, struct err *err)
{
	char seen[NEAREST_MAX][80] = {""}, plain[80];
	struct nearest nearest = {.wanted = plain};
	struct prometheus_series s;
	struct prometheus_name name;
	struct prometheus_text t;
	const struct buf *text;
	struct http *http = NULL;
	struct buf names = {0};
	unsigned nseen = 0;
	int rc = prometheus_parse(full, &name, err);

	if (!rc)
		rc = http_open(name.url, &http, err);
	/* It may be started later. */
	if (rc || assume_exists || http_get(http, &text, NULL)) {
		http_close(http);
		return rc;
	}
	snprintf(plain, sizeof(plain), "%.*s", (int)name.metric_len, name.metric);
	t = (struct prometheus_text){.text = text->data, .end = text->data + text->len};
	while (text->len && prometheus_next(&t, &s)) {
		char one[80];

		if (s.name_len == name.metric_len && memcmp(s.name, name.metric, s.name_len) == 0)
			goto known;
		snprintf(one, sizeof(one), "%.*s", (int)s.name_len, s.name);
		if (nseen < NEAREST_MAX && nearest_distance(plain, one) < 4 &&
		    (!nseen || strcmp(seen[nseen - 1], one) != 0))
			strcpy(seen[nseen++], one);
	}
	while (nseen)
		nearest_offer(&nearest, seen[--nseen]);
	nearest_put(&nearest, "'", "'", &names);
	rc = err_set(err, ERR_USAGE, "'%.200s': %.150s has no metric '%s' now; %s%s%s"
		     "--assume-exists takes one that comes later", full, name.url, plain,
		     nearest.n ? "did you mean " : "", buf_text(&names), nearest.n ? "? " : "");
known:
	buf_free(&names);
	http_close(http);
	return rc;
}

static int scrape_check(const struct needs *needs, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->ncounters; i++)
		if (prometheus_counter_is(needs->counters[i].name))
			rc = check_metric(needs->counters[i].name, needs->assume_exists, err);
	return rc;
}

static void put_row(const char *url, const struct prometheus_series *s, bool json, struct buf *line)
{
	struct buf name = {0}, metric = {0}, help = {0};
	struct counter_row row;
	char value[40];

	buf_put(&metric, s->name, s->name_len);
	if (s->labels_len) {
		buf_putc(&metric, '{');
		utf8_put_clean(&metric, s->labels, s->labels_len, COUNTER_NAME_MAX);
		buf_putc(&metric, '}');
	}
	buf_printf(&name, "Prometheus:%s:%s", buf_text(&metric), url);
	if (s->help)
		utf8_put_clean(&help, s->help, s->help_len, HELP_BYTES);
	row = (struct counter_row){
		.counter = buf_text(&name), .category = "Prometheus", .name = buf_text(&metric),
		.instance = url, .value = s->value, .unit = s->grows ? "total" : "",
		.meaning = buf_text(&help),
	};
	if (json) {
		counter_put_json(&row, line);
	} else {
		counter_value_text(row.value, value, sizeof(value));
		buf_printf(line, "%-*s %16s %-5s  %s\n", NAME_COLUMN, row.counter, value, row.unit,
			   row.meaning);
	}
	if (name.failed || metric.failed || help.failed)
		line->failed = ERR_MEMORY;
	buf_free(&name);
	buf_free(&metric);
	buf_free(&help);
}

/* recorder counters URL: all that the service tells now. */
static int scrape_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct prometheus_series s;
	struct prometheus_text t;
	const struct buf *text;
	struct http *http = NULL;
	struct buf line = {0};
	int rc;

	if (!pattern || (strncmp(pattern, "http://", 7) != 0 &&
			 strncmp(pattern, "https://", 8) != 0))
		return err_set(err, ERR_NOT_FOUND, "not the address of a service");
	rc = http_open(pattern, &http, err);
	if (!rc)
		rc = http_get(http, &text, err);
	if (!rc) {
		t = (struct prometheus_text){.text = text->data, .end = text->data + text->len};
		while (text->len && prometheus_next(&t, &s))
			put_row(pattern, &s, json, &line);
		rc = line.len ? buf_check(&line, "the list of metrics", err)
			      : err_set(err, ERR_FORMAT, "%s answers, but not with metrics in the "
					"text format of Prometheus", pattern);
	}
	if (!rc)
		out_put(out, line.data, line.len);
	buf_free(&line);
	http_close(http);
	return rc;
}

int scrape_read_once(const char *name, struct counter_value *out, struct err *err)
{
	enum counter_result result = COUNTER_NOT_YET;
	struct metric m = {.before_ns = 0};
	struct http *http = NULL;
	const struct buf *text;
	int rc = prometheus_parse(name, &m.name, err), i;

	*out = (struct counter_value){.absent = true};
	if (!rc)
		rc = http_open(m.name.url, &http, err);
	for (i = 0; !rc && i < 2 && result == COUNTER_NOT_YET; i++) {
		if (i) {
			os_sleep_ns(NS_PER_SEC);
			strcpy(out->unit, "/sec");
		}
		if (http_get(http, &text, NULL))
			text = NULL;
		result = value_at(&m, text, os_now_ns(), &out->value);
	}
	out->absent = result != COUNTER_VALUE;
	http_close(http);
	return rc;
}

const struct source_ops scrape_source = {
	.name = "metrics",
	.summary = "metrics that services tell by HTTP, in the text format of Prometheus",
	.check = scrape_check,
	.list = scrape_list,
	.optional = true,
	.open = scrape_open,
	.run = counter_poll_run,
	.stop = counter_poll_stop,
	.status = counter_poll_status,
	.close = scrape_close,
};
