/*
 * An incident as rows of the tables of ship/fleet.h: one of itself; what it sampled by metric,
 * service, minute and stack; the stacks by name, without addresses, so that they are the same on
 * every machine and in every build.
 *
 * PostgreSQL gets all of it in one transaction, which does nothing when the uuid is there.
 * ClickHouse has no transactions: each attempt numbers its rows anew (batch), the incident's own
 * row comes last, and readers take one batch of each uuid. So what a cut upload has left counts
 * for nobody, on any engine and without deduplication by the server.
 */
#include "ship/database.h"
#include "ship/fleet.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "export/names.h"
#include "export/sums.h"
#include "model/stack_tree.h"
#include "net/sha256.h"
#include "net/tsv.h"

#include <stdio.h>
#include <stdlib.h>

#define RELEASE_DIGITS 16u
#define SIGNATURE_MAX 400u

struct sum_key {
	int64_t series, stack;
	int32_t minute;
	uint32_t unused;                     /* 0: there are no other bytes in it */
};

struct amount {
	uint64_t samples, weight;
};

struct work {
	struct target *target;
	const struct incident *in;
	const char *host;
	char day[12];
	int64_t batch;
	struct text_table releases, series_seen, stacks_seen, sums, tops;
	uint32_t *release_of;                /* of each process, in releases; TABLE_NONE */
	int64_t *series_of;                  /* of each process and one more, by stream; -1 */
	int64_t *stack_of;                   /* by quality, of each stack and STACK_NONE; -1 */
	struct amount *amounts;              /* of each of sums */
	uint64_t *top_ns;                    /* of each of tops: "SERVICE: FUNCTION" */
	struct tsv incident, series, stacks, samples;
	struct path path;
	struct buf text, service, host_text;
};

/* A number for these bytes: 63 bits, as no database likes numbers without a sign. */
static int64_t hash_of(const void *bytes, size_t n)
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 s;
	uint64_t v = 0;
	unsigned i;

	sha256_init(&s);
	sha256_put(&s, bytes, n);
	sha256_end(&s, digest);
	for (i = 0; i < 8; i++)
		v = v << 8 | digest[i];
	return (int64_t)(v >> 1);
}

static int64_t minute_of(const struct incident *in, uint64_t time_ns)
{
	int64_t wall = (int64_t)(in->head.trigger_wall_ns + time_ns - in->head.trigger_ns);

	return wall / (60 * (int64_t)NS_PER_SEC);
}

/* ---- releases -------------------------------------------------------------------------------- */

/* The build id of a process's own program, if any of its stacks is in it. */
static int find_releases(struct work *w)
{
	const struct incident *in = w->in;
	char text[RELEASE_DIGITS + 1] = "";
	uint32_t i, process, stack, k;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_process *p;

		process = incident_process_of(in, in->samples[i].thread);
		if (process == UINT32_MAX || w->release_of[process] != TABLE_NONE)
			continue;
		p = &in->processes[process];
		for (stack = in->samples[i].stack; stack != STACK_NONE;
		     stack = in->stacks[stack].parent) {
			const struct incident_module *m =
				&in->modules[in->frames[in->stacks[stack].frame].module];

			if (!m->build_id_bytes || !m->path ||
			    strcmp(text_base_name(m->path), p->name) != 0)
				continue;
			for (k = 0; k < RELEASE_DIGITS / 2 && k < m->build_id_bytes; k++)
				snprintf(text + 2 * k, 3, "%02x", m->build_id[k]);
			w->release_of[process] = text_table_add(&w->releases, text, 2 * k);
			if (w->release_of[process] == TABLE_NONE)
				return ERR_MEMORY;
			break;
		}
	}
	return 0;
}

/* ---- series ---------------------------------------------------------------------------------- */

static const char *release_text(const struct work *w, uint32_t process)
{
	if (w->target->release)
		return w->target->release;
	return process == UINT32_MAX || w->release_of[process] == TABLE_NONE
		       ? "" : text_table_get(&w->releases, w->release_of[process]);
}

/* The number of what a process has of a metric; its row, if it is new. */
static int series(struct work *w, uint32_t process, enum stream stream, int64_t *out)
{
	const struct incident *in = w->in;
	size_t at = (process == UINT32_MAX ? in->nprocesses : process) * (size_t)STREAMS_MAX;
	const char *release = release_text(w, process), *metric = stream_metrics[stream].name;
	uint32_t known = w->series_seen.n;
	struct buf *service = &w->service;

	*out = w->series_of[at + stream];
	if (*out >= 0)
		return 0;
	buf_reset(service);
	service_put(service, in, process);
	buf_reset(&w->text);
	buf_printf(&w->text, "%s\n%s\n%s\n%s", w->host, buf_text(service), release, metric);
	if (service->failed || w->text.failed)
		return ERR_MEMORY;
	*out = w->series_of[at + stream] = hash_of(w->text.data, w->text.len);
	if (text_table_add(&w->series_seen, w->text.data, w->text.len) != known)
		return 0;
	tsv_put_text(&w->series, w->day, strlen(w->day));
	tsv_put_int(&w->series, *out);
	tsv_put_text(&w->series, w->host, strlen(w->host));
	tsv_put_text(&w->series, buf_text(service), service->len);
	tsv_put_text(&w->series, release, strlen(release));
	tsv_put_text(&w->series, metric, strlen(metric));
	tsv_end_row(&w->series);
	return 0;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Names of w->path, leaf first, each with a NUL, in w->text. */
static int put_names(struct work *w, uint32_t stack, const char *mark)
{
	uint32_t i;

	if (path_make(&w->path, w->in, stack))
		return ERR_MEMORY;
	buf_reset(&w->text);
	for (i = 0; i < w->path.n; i++) {
		incident_frame_text(w->in, w->path.frames[i], false, &w->text);
		buf_putc(&w->text, '\0');
	}
	if (mark || !w->path.n) {
		buf_puts(&w->text, mark ? mark : "[no stack]");
		buf_putc(&w->text, '\0');
	}
	return w->text.failed;
}

static int stack(struct work *w, const struct incident_sample *s, int64_t *out)
{
	const struct incident *in = w->in;
	const char *mark = stack_tree_mark((enum stack_quality)s->quality), **names, *at;
	int64_t *known = &w->stack_of[s->quality * ((size_t)in->nstacks + 1) +
				      (s->stack == STACK_NONE ? in->nstacks : s->stack)];
	uint32_t before = w->stacks_seen.n, n = 0;
	int rc = 0;

	if (*known < 0) {
		rc = put_names(w, s->stack, mark);
		if (rc)
			return rc;
		*known = hash_of(w->text.data, w->text.len);
		if (text_table_add(&w->stacks_seen, (char *)known, sizeof(*known)) == before) {
			names = calloc((size_t)w->path.n + 1, sizeof(*names));
			for (at = w->text.data; names && at < w->text.data + w->text.len;
			     at += strlen(at) + 1)
				names[n++] = at;
			tsv_put_text(&w->stacks, w->day, strlen(w->day));
			tsv_put_int(&w->stacks, *known);
			tsv_put_texts(&w->stacks, names, n);
			tsv_end_row(&w->stacks);
			rc = names ? 0 : ERR_MEMORY;
			free(names);
		}
	}
	*out = *known;
	return rc;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int add_top(struct work *w, const struct incident_sample *s, uint32_t process)
{
	uint32_t number, known = w->tops.n;

	if (s->stream != STREAM_CPU || s->stack == STACK_NONE)
		return 0;
	buf_reset(&w->text);
	service_put(&w->text, w->in, process);
	buf_puts(&w->text, ": ");
	incident_frame_text(w->in, w->in->stacks[s->stack].frame, false, &w->text);
	number = text_table_add(&w->tops, buf_text(&w->text), w->text.len);
	if (w->text.failed || number == TABLE_NONE ||
	    (number == known && ARRAY_NEXT(w->top_ns, known)))
		return ERR_MEMORY;
	w->top_ns[number] = (number == known ? 0 : w->top_ns[number]) + s->weight;
	return 0;
}

static int add_sample(struct work *w, const struct incident_sample *s)
{
	struct sum_key key = {.minute = (int32_t)minute_of(w->in, s->time_ns)};
	uint32_t process = incident_process_of(w->in, s->thread), number, known = w->sums.n;
	int rc = series(w, process, (enum stream)s->stream, &key.series);

	if (!rc)
		rc = stack(w, s, &key.stack);
	if (!rc)
		rc = add_top(w, s, process);
	if (rc)
		return rc;
	number = text_table_add(&w->sums, (const char *)&key, sizeof(key));
	if (number == TABLE_NONE || (number == known && ARRAY_NEXT(w->amounts, known)))
		return ERR_MEMORY;
	if (number == known)
		w->amounts[number] = (struct amount){0};
	w->amounts[number].samples++;
	w->amounts[number].weight += s->weight;
	return 0;
}

static void put_samples(struct work *w)
{
	struct sum_key key;
	uint32_t i;

	for (i = 0; i < w->sums.n; i++) {
		memcpy(&key, text_table_get(&w->sums, i), sizeof(key));
		tsv_put_text(&w->samples, w->day, strlen(w->day));
		tsv_put_int(&w->samples, w->batch);
		tsv_put_int(&w->samples, key.series);
		tsv_put_int(&w->samples, key.minute);
		tsv_put_int(&w->samples, key.stack);
		tsv_put_int(&w->samples, (int64_t)w->amounts[i].samples);
		tsv_put_int(&w->samples, (int64_t)w->amounts[i].weight);
		tsv_end_row(&w->samples);
	}
}

/* Where it burnt most: the service and function with most CPU time of their own. */
static void put_signature(struct work *w)
{
	uint32_t i, top = 0;

	for (i = 1; i < w->tops.n; i++)
		if (w->top_ns[i] > w->top_ns[top])
			top = i;
	buf_reset(&w->text);
	if (w->tops.n)
		utf8_put_clean(&w->text, text_table_get(&w->tops, top), w->tops.items[top].len,
			       SIGNATURE_MAX);
	tsv_put_text(&w->incident, buf_text(&w->text), w->text.len);
}

static void put_clean(struct work *w, const char *text)
{
	buf_reset(&w->text);
	name_put(&w->text, text ? text : "");
	tsv_put_text(&w->incident, buf_text(&w->text), w->text.len);
	w->incident.text.failed |= w->text.failed;
}

static void put_incident(struct work *w)
{
	const struct incident_head *h = &w->in->head;
	uint64_t from_ns = h->trigger_wall_ns - (h->trigger_ns - h->t0_ns);
	struct tsv *t = &w->incident;

	tsv_put_text(t, w->day, strlen(w->day));
	tsv_put_text(t, h->uuid, strlen(h->uuid));
	tsv_put_int(t, w->batch);
	tsv_put_text(t, w->host, strlen(w->host));
	put_clean(w, h->rule);
	put_clean(w, h->reason);
	put_signature(w);
	put_clean(w, h->recorder_version);
	tsv_put_int(t, (int64_t)h->trigger_wall_ns);
	tsv_put_int(t, (int64_t)from_ns);
	tsv_put_int(t, (int64_t)(from_ns + (h->t1_ns - h->t0_ns)));
	tsv_put_int(t, (int64_t)h->samples);
	tsv_put_int(t, (int64_t)h->lost);
	tsv_end_row(t);
}

static int make_rows(struct work *w, struct err *err)
{
	const struct incident *in = w->in;
	size_t nseries = ((size_t)in->nprocesses + 1) * STREAMS_MAX;
	size_t nstacks = ((size_t)in->nstacks + 1) * QUALITIES;
	uint32_t i;
	int rc;

	w->release_of = array_of_none(in->nprocesses + 1u);
	w->series_of = malloc(nseries * sizeof(*w->series_of));
	w->stack_of = malloc(nstacks * sizeof(*w->stack_of));
	if (!w->release_of || !w->series_of || !w->stack_of)
		return err_memory(err, "for rows");
	memset(w->series_of, 0xff, nseries * sizeof(*w->series_of));
	memset(w->stack_of, 0xff, nstacks * sizeof(*w->stack_of));
	rc = find_releases(w);
	for (i = 0; !rc && i < in->nsamples; i++)
		if (target_takes_stream(in->samples[i].stream))
			rc = add_sample(w, &in->samples[i]);
	if (rc)
		return err_memory(err, "for rows");
	put_samples(w);
	put_incident(w);
	rc = buf_check(&w->samples.text, "rows", err);
	rc = rc ? rc : buf_check(&w->stacks.text, "rows", err);
	rc = rc ? rc : buf_check(&w->series.text, "rows", err);
	return rc ? rc : buf_check(&w->incident.text, "rows", err);
}

static void work_free(struct work *w)
{
	struct text_table *tables[] = {&w->releases, &w->series_seen, &w->stacks_seen, &w->sums,
				       &w->tops};
	unsigned i;

	for (i = 0; i < COUNT_OF(tables); i++)
		text_table_free(tables[i]);
	free(w->release_of);
	free(w->series_of);
	free(w->stack_of);
	free(w->amounts);
	free(w->top_ns);
	buf_free(&w->incident.text);
	buf_free(&w->series.text);
	buf_free(&w->stacks.text);
	buf_free(&w->samples.text);
	buf_free(&w->text);
	buf_free(&w->service);
	buf_free(&w->host_text);
	path_free(&w->path);
}

/* ---- sending --------------------------------------------------------------------------------- */

static int take_count(void *ctx, const char *const *fields, unsigned n, struct err *err)
{
	(void)err;
	*(uint64_t *)ctx = n ? strtoull(fields[0], NULL, 10) : 0;
	return 0;
}

/* Whether the incident is there. */
static int look(struct database *d, const struct work *w, bool *there, struct net_answer *a,
		struct err *err)
{
	struct buf sql = {0};
	uint64_t n = 0;
	int rc;

	buf_printf(&sql, "SELECT count(*) FROM recorder_incidents WHERE day = '%s' AND uuid = '%s'",
		   w->day, w->in->head.uuid);
	rc = database_ask(d, buf_text(&sql), take_count, &n, a, err);
	*there = !rc && a->status == 200 && n;
	buf_free(&sql);
	return rc;
}

static int put_all(struct database *d, const struct work *w, struct net_answer *a, struct err *err)
{
	const struct {
		const char *into;
		const struct tsv *rows;
	} tables[] = {
		{d->clickhouse ? FLEET_SERIES : "recorder_new_series", &w->series},
		{d->clickhouse ? FLEET_STACKS : "recorder_new_stacks", &w->stacks},
		{FLEET_SAMPLES, &w->samples},
		{FLEET_INCIDENTS, &w->incident},     /* last: now they count */
	};
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && a->status == 200 && i < COUNT_OF(tables); i++)
		if (tables[i].rows->text.len)
			rc = database_put(d, tables[i].into, &tables[i].rows->text, a, err);
	return rc;
}

/* Statements one after the other, until one is refused. */
static int ask_all(struct database *d, const char *const *sql, struct net_answer *a,
		   struct err *err)
{
	int rc = 0;

	for (; !rc && a->status == 200 && *sql; sql++)
		rc = database_ask(d, *sql, NULL, NULL, a, err);
	return rc;
}

static int put_postgresql(struct database *d, const struct work *w, struct net_answer *a,
			  struct err *err)
{
	static const char *const begin[] = {
		"BEGIN",
		"CREATE TEMPORARY TABLE recorder_new_series (LIKE recorder_series) ON COMMIT DROP",
		"CREATE TEMPORARY TABLE recorder_new_stacks (LIKE recorder_stacks) ON COMMIT DROP",
		NULL,
	};
	/* In order of their keys, so that two machines never wait for each other in a circle. */
	static const char *const merge[] = {
		"INSERT INTO recorder_series AS t SELECT * FROM recorder_new_series ORDER BY series"
		" ON CONFLICT (series) DO UPDATE SET day = excluded.day WHERE t.day < excluded.day",
		"INSERT INTO recorder_stacks AS t SELECT * FROM recorder_new_stacks ORDER BY stack"
		" ON CONFLICT (stack) DO UPDATE SET day = excluded.day WHERE t.day < excluded.day",
		NULL,
	};
	struct buf day = {0}, notify = {0};
	const char *first[] = {NULL, NULL}, *last[] = {NULL, "COMMIT", NULL};
	struct net_answer ignored = {0};
	int rc;

	buf_printf(&day, "SELECT recorder_day('%s')", w->day);
	buf_printf(&notify, "NOTIFY recorder_incident, '%s'", w->in->head.uuid);
	first[0] = buf_text(&day);
	last[0] = buf_text(&notify);
	rc = ask_all(d, first, a, err);
	rc = rc ? rc : ask_all(d, begin, a, err);
	rc = rc ? rc : a->status == 200 ? put_all(d, w, a, err) : 0;
	rc = rc ? rc : ask_all(d, merge, a, err);
	rc = rc ? rc : ask_all(d, last, a, err);
	if (!rc && a->status != 200)
		database_ask(d, "ROLLBACK", NULL, NULL, &ignored, NULL);
	net_answer_free(&ignored);
	buf_free(&day);
	buf_free(&notify);
	return rc;
}

int target_send_rows(struct target *t, struct net *net, struct parcel *p, struct net_answer *a,
		     struct err *err)
{
	struct work w = {.target = t, .in = p->in};
	struct database d = {0};
	char time[OS_TIME_TEXT_BYTES];
	bool there = false;
	int rc;

	name_put(&w.host_text, p->head->host ? p->head->host : "unknown");
	w.host = buf_text(&w.host_text);
	os_time_text(p->head->trigger_wall_ns, time);
	snprintf(w.day, sizeof(w.day), "%.10s", time);
	rc = os_random(&w.batch, sizeof(w.batch), err);
	w.batch &= INT64_MAX;
	w.stacks.clickhouse = t->kind->database == DATABASE_CLICKHOUSE;
	if (!rc)
		rc = make_rows(&w, err);
	if (!rc)
		rc = database_open(&d, t, net, err);
	if (!rc)
		rc = look(&d, &w, &there, a, err);
	if (!rc && !there && a->status == 200)
		rc = d.clickhouse ? put_all(&d, &w, a, err) : put_postgresql(&d, &w, a, err);
	p->rows = w.sums.n;
	database_close(&d);
	work_free(&w);
	return rc;
}
