/* The past as a profile, as an incident, and as the incident of an alert. */
#include "http/desk_linux.h"

#include "base/array.h"
#include "base/json.h"
#include "base/moment.h"
#include "http/alert.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROFILE_S 30u
#define PROFILE_MAX_S 3600u
#define REASON_BYTES 400
#define ARGUMENT_BYTES 120
#define WAIT_MAX_NS (60 * NS_PER_SEC)
#define WAIT_STEP_NS (300 * NS_PER_MS)
#define HOUR_NS (3600 * NS_PER_SEC)

/* ---- profiles -------------------------------------------------------------------------------- */

void get_pprof(struct desk *d, const struct request *r, struct answer *out)
{
	(void)d;
	(void)r;
	out->status = 200;
	out->type = "text/html; charset=utf-8";
	buf_puts(&out->body, "<!doctype html><title>recorder: profiles</title>\n"
			     "<p><a href=\"profile?seconds=30\">profile</a>: the CPU time of "
			     "all programs in the last seconds, from the past: at once</p>\n");
}

void get_profile(struct desk *d, const struct request *r, struct answer *out)
{
	const char *text = r->query(r->ctx, "seconds"), *process = r->query(r->ctx, "process");
	char last[40], of[ARGUMENT_BYTES], *end = NULL;
	unsigned long s = text ? strtoul(text, &end, 10) : PROFILE_S;
	const char *args[] = {"export", last, "--format", "pprof", "-o", "-",
			      process ? of : NULL, NULL};
	struct err err = {0};

	if (s < 1 || s > PROFILE_MAX_S || (end && *end)) {
		answer_text(out, 400, "seconds=%.40s: give 1 to %u", text, PROFILE_MAX_S);
		return;
	}
	/* Cut off, it would be the pattern of other programs. */
	if (process && strlen(process) > ARGUMENT_BYTES - sizeof("--process=")) {
		answer_text(out, 400, "process=%.40s...: give %u characters at most", process,
			    (unsigned)(ARGUMENT_BYTES - sizeof("--process=")));
		return;
	}
	snprintf(last, sizeof(last), "--last=%lu", s);
	snprintf(of, sizeof(of), "--process=%s", process ? process : "");
	desk_flush(d);
	if (desk_run(d, args, &out->file, &err)) {
		answer_error(out, &err);
		return;
	}
	out->has_file = true;
	out->status = 200;
	out->type = "application/octet-stream";
	out->extra = "Content-Disposition";
	out->extra_value = "attachment; filename=\"profile.pb.gz\"";
}

/* ---- incidents ------------------------------------------------------------------------------- */

/* What `recorder snapshot` of a window prints: {"incident":7}. */
static int64_t incident_of(int file)
{
	char text[200] = "";
	struct json_value all;
	double id = 0;

	if (pread(file, text, sizeof(text) - 1, 0) > 0 && json_read(text, &all))
		json_number(json_member(all, "incident"), &id);
	close(file);
	return (int64_t)id;
}

/* Make an incident at a moment of a window of the history; times are those of the wall clock. */
static int keep_window(struct desk *d, uint64_t from_ns, uint64_t at_ns, uint64_t to_ns,
		       const char *reason, int64_t *id, struct err *err)
{
	char from_text[ARGUMENT_BYTES], at_text[ARGUMENT_BYTES], to_text[ARGUMENT_BYTES];
	char reason_text[REASON_BYTES + 20];
	const char *args[] = {"snapshot", "--json", from_text, at_text, to_text, reason_text, NULL};
	int file, rc;

	snprintf(from_text, sizeof(from_text), "--from=@%.6f", (double)from_ns / 1e9);
	snprintf(at_text, sizeof(at_text), "--at=@%.6f", (double)at_ns / 1e9);
	snprintf(to_text, sizeof(to_text), "--to=@%.6f", (double)to_ns / 1e9);
	snprintf(reason_text, sizeof(reason_text), "--reason=%s", reason);
	rc = desk_run(d, args, &file, err);
	if (rc)
		return rc;
	*id = incident_of(file);
	if (*id)
		log_line(d->cfg->log, LOG_INFO, "incident %" PRId64 " is stored, out of the "
			 "history: %s", *id, reason);
	return *id ? 0 : err_set(err, ERR_IO, "the incident was made, but its number is unknown");
}

static int ask_snapshot(struct desk *d, const char *reason, struct buf *answer, struct err *err)
{
	struct buf line = {0};
	struct json j = {.out = &line};
	int rc;

	json_open(&j, '{');
	json_key_str(&j, "cmd", "snapshot");
	json_key_str(&j, "reason", reason);
	json_close(&j, '}');
	rc = buf_check(&line, "the question", err);
	if (!rc)
		rc = desk_ask(d, line.data, answer, err);
	buf_free(&line);
	return rc;
}

struct search {
	uint64_t since_ns;                   /* not older; 0 = any */
	const char *key;                     /* in its reason */
	int64_t id;
};

static bool was_asked_for(const struct incident_head *h)
{
	return h->state == INCIDENT_COMPLETE && h->rule && strcmp(h->rule, "manual") == 0 &&
	       h->reason;
}

static int look_at(void *ctx, const struct incident_head *h)
{
	struct search *s = ctx;

	if (h->trigger_wall_ns >= s->since_ns && was_asked_for(h) && strstr(h->reason, s->key))
		s->id = h->id;
	return s->id != 0;
}

/* A complete incident that was asked for; 0 = there is none. */
static int64_t find_incident(struct desk *d, uint64_t since_ns, const char *key)
{
	struct search s = {.since_ns = since_ns, .key = key};
	struct store *store = NULL;

	if (!store_open(d->cfg->store_path, STORE_READ, &store, NULL))
		store_list(store, look_at, &s, NULL);
	store_close(store);
	return s.id;
}

static void answer_incident(struct answer *out, unsigned status, int64_t id)
{
	struct json j = {.out = &out->body};

	out->status = status;
	out->type = "application/json";
	json_open(&j, '{');
	json_key_int(&j, "incident", id);
	json_close(&j, '}');
	buf_putc(&out->body, '\n');
}

/* The recorder's answer to a snapshot: {"text":...}. */
static void answer_said(struct answer *out, const struct buf *said)
{
	struct buf text = {0};
	struct json_value all;

	if (json_read(buf_text(said), &all))
		json_put_text(json_member(all, "text"), &text);
	answer_text(out, 202, "%s", buf_text(&text));
	buf_free(&text);
}

/* The snapshot has been taken; its incident is complete after its delay. */
static void wait_for_incident(struct desk *d, uint64_t since_ns, const char *reason,
			      const struct buf *said, struct answer *out)
{
	uint64_t end_ns = os_now_ns() + WAIT_MAX_NS;
	int64_t id = 0;

	while (!id && os_now_ns() < end_ns && !atomic_load(&d->ending)) {
		os_sleep_ns(WAIT_STEP_NS);
		id = find_incident(d, since_ns, reason);
	}
	if (id)
		answer_incident(out, 201, id);
	else
		answer_said(out, said);
}

static void text_of(struct json_value all, const char *key, char *out, size_t n)
{
	struct buf text = {0};
	double v;

	if (json_number(json_member(all, key), &v))
		buf_printf(&text, "@%.6f", v);
	else
		json_put_text(json_member(all, key), &text);
	snprintf(out, n, "%s", buf_text(&text));
	buf_free(&text);
}

static bool is_true(struct json_value all, const char *key)
{
	struct json_value v = json_member(all, key);

	return v.at && v.end - v.at == 4 && strncmp(v.at, "true", 4) == 0;
}

/* A window that was asked for; its moments are those of our wall clock. */
struct wanted {
	uint64_t from_ns, at_ns, to_ns;
	char from[100], at[100], to[100];    /* as they were asked for; "" = not said */
	char group[40], reason[REASON_BYTES];
};

static int keep_group(struct desk *d, struct wanted *w, unsigned *status, int64_t *id,
		      struct err *err);

static int read_window(struct wanted *w, uint64_t now_ns, struct err *err)
{
	int rc = moment_parse(*w->from ? w->from : "-120s", now_ns, 0, &w->from_ns, err);

	if (!rc)
		rc = moment_parse(*w->to ? w->to : "now", now_ns, w->from_ns, &w->to_ns, err);
	w->at_ns = w->to_ns;
	if (!rc && *w->at)
		rc = moment_parse(w->at, now_ns, w->from_ns, &w->at_ns, err);
	if (!rc && (w->at_ns < w->from_ns || w->at_ns > w->to_ns))
		rc = err_set(err, ERR_USAGE, "\"at\" is not between \"from\" and \"to\"");
	return rc;
}

static void take_window(struct desk *d, struct wanted *w, struct answer *out)
{
	unsigned status = 201;
	struct err err = {0};
	int64_t id = 0;
	int rc = read_window(w, os_wall_ns(), &err);

	if (!rc && *w->group)
		rc = keep_group(d, w, &status, &id, &err);
	else if (!rc)
		rc = keep_window(d, w->from_ns, w->at_ns, w->to_ns, w->reason, &id, &err);
	if (!rc)
		answer_incident(out, status, id);
	else if (rc == ERR_NOT_FOUND && *w->group)
		answer_text(out, 410, "%s", err.text);       /* asking again does not help */
	else
		answer_error(out, &err);
}

void get_clock(struct desk *d, const struct request *r, struct answer *out)
{
	struct json j = {.out = &out->body};
	char host[100] = "";

	(void)d;
	(void)r;
	os_host_name(host, sizeof(host));
	out->status = 200;
	out->type = "application/json";
	json_open(&j, '{');
	json_key_str(&j, "host", host);
	json_key_uint(&j, "wall_ns", os_wall_ns());
	json_close(&j, '}');
	buf_putc(&out->body, '\n');
}

void post_snapshot(struct desk *d, const struct request *r, struct answer *out)
{
	struct json_value all = {0};
	struct wanted w = {.from_ns = 0};
	uint64_t now_ns = os_wall_ns();
	struct buf said = {0};
	struct err err = {0};
	int rc;

	if (r->body->len && (strlen(r->body->data) != r->body->len ||
			     !json_read(r->body->data, &all) || *all.at != '{')) {
		answer_text(out, 400, "the body is no JSON object such as {\"reason\":\"users "
			    "complain\",\"from\":\"-5m\",\"to\":\"now\",\"wait\":true}");
		return;
	}
	text_of(all, "reason", w.reason, sizeof(w.reason));
	text_of(all, "group", w.group, sizeof(w.group));
	text_of(all, "from", w.from, sizeof(w.from));
	text_of(all, "at", w.at, sizeof(w.at));
	text_of(all, "to", w.to, sizeof(w.to));
	if (!*w.reason)
		strcpy(w.reason, "requested over HTTP");
	if (*w.group && !uuid_is(w.group)) {
		answer_text(out, 400, "\"group\" is the uuid of an incident");
		return;
	}
	if (*w.from || *w.to || *w.group) {
		take_window(d, &w, out);
		return;
	}
	rc = ask_snapshot(d, w.reason, &said, &err);
	if (!rc && is_true(all, "wait"))
		wait_for_incident(d, now_ns, w.reason, &said, out);
	else if (!rc)
		answer_said(out, &said);
	else
		answer_error(out, &err);
	buf_free(&said);
}

/* ---- alerts ---------------------------------------------------------------------------------- */

/* What became of an alert: the last ones, so that a flood of repeats costs no search. */
struct known_alert {
	char key[ALERT_KEY_BYTES];
	bool resolved;
	int64_t incident;                    /* 0 = a snapshot, which is not stored yet */
};

struct alert_desk {
	struct known_alert known[256];
	uint32_t nknown;                     /* ever */
	uint64_t made_ns[ALERT_INCIDENTS_AN_HOUR];   /* when, a circle */
	uint32_t nmade;
};

struct alert_desk *alert_desk_new(void)
{
	return calloc(1, sizeof(struct alert_desk));
}

static struct known_alert *find_known(struct alert_desk *a, const char *key)
{
	uint32_t n = COUNT_OF(a->known), i;

	for (i = 0; i < n && i < a->nknown; i++)
		if (strcmp(a->known[i].key, key) == 0)
			return &a->known[i];
	return NULL;
}

static void remember(struct alert_desk *a, const char *key, int64_t incident)
{
	struct known_alert *k = find_known(a, key);

	if (!k) {
		k = &a->known[a->nknown++ % COUNT_OF(a->known)];
		k->resolved = false;
	}
	snprintf(k->key, sizeof(k->key), "%s", key);
	k->incident = incident;
}

#define RESOLVED "resolved, as the alert's sender said at "

static bool is_resolved(const struct incident_head *h)
{
	return h->remarks && strstr(h->remarks, RESOLVED);
}

/* Whether an incident is still there, and not resolved. */
static bool is_open_incident(struct desk *d, int64_t id)
{
	struct incident_head head = {0};
	struct store *store = NULL;
	bool open;
	int rc = store_open(d->cfg->store_path, STORE_READ, &store, NULL);

	if (!rc)
		rc = store_head(store, id, &head, NULL);
	open = rc != ERR_NOT_FOUND && !is_resolved(&head);
	incident_head_free(&head);
	store_close(store);
	return open;
}

struct open_search {
	char begin[ALERT_KEY_BYTES + 1];     /* "[a1b2c3 since " */
	char *key;                           /* is put here */
};

static int look_for_open(void *ctx, const struct incident_head *h)
{
	struct open_search *s = ctx;
	const char *at = was_asked_for(h) && !is_resolved(h) ? strrchr(h->reason, '[') : NULL;

	if (!at || strncmp(at, s->begin, strlen(s->begin)) != 0)
		return 0;
	snprintf(s->key, ALERT_KEY_BYTES, "%.*s", (int)strcspn(at + 1, "]"), at + 1);
	return 1;
}

/*
 * An alert without a beginning belongs to the newest open incident with its identity, if there is
 * one: it gets that one's key.
 */
static void take_open_key(struct desk *d, struct alert *a)
{
	const struct alert_desk *all = d->alerts;
	const uint32_t n = COUNT_OF(all->known);
	struct open_search s = {.key = a->key};
	struct store *store = NULL;
	uint32_t i;

	snprintf(s.begin, sizeof(s.begin), "[%.*s",
		 (int)(strstr(a->key, ALERT_SINCE) + strlen(ALERT_SINCE) - a->key), a->key);
	for (i = all->nknown; i > 0 && i + n > all->nknown; i--) {
		const struct known_alert *k = &all->known[(i - 1) % n];

		if (k->resolved || strncmp(k->key, s.begin + 1, strlen(s.begin + 1)) != 0 ||
		    (k->incident && !is_open_incident(d, k->incident)))
			continue;
		strcpy(a->key, k->key);
		return;
	}
	if (!store_open(d->cfg->store_path, STORE_READ, &store, NULL))
		store_list(store, look_for_open, &s, NULL);
	store_close(store);
}

/* The incident of an earlier post; 0 = none that is stored. *known: there was one. */
static int64_t earlier(struct desk *d, const char *key, bool *known)
{
	struct known_alert *k = find_known(d->alerts, key);
	char in_reason[120];
	int64_t id = k ? k->incident : 0;

	*known = k != NULL;
	if (id)
		return id;
	snprintf(in_reason, sizeof(in_reason), "[%s]", key);
	id = find_incident(d, 0, in_reason);
	if (id)
		remember(d->alerts, key, id);
	*known |= id != 0;
	return id;
}

static void extend_note(struct desk *d, int64_t id, const char *text)
{
	struct incident_head head = {0};
	struct store *store = NULL;
	struct err err = {0};
	int rc = store_open(d->cfg->store_path, STORE_EDIT, &store, &err);

	if (!rc)
		rc = store_head(store, id, &head, &err);
	if (!rc && !(head.remarks && strstr(head.remarks, text)))
		rc = store_add_remark(store, id, text, &err);
	if (rc && rc != ERR_LIMIT)
		log_line(d->cfg->log, LOG_WARN, "the note of incident %" PRId64 " stays as it "
			 "was: %s", id, err.text);
	incident_head_free(&head);
	store_close(store);
}

static bool over_the_hour(const struct alert_desk *a, uint64_t now_ns)
{
	uint64_t oldest_ns = a->made_ns[a->nmade % ALERT_INCIDENTS_AN_HOUR];

	return oldest_ns && now_ns - oldest_ns < HOUR_NS;
}

/* Where the history has nothing of the window, the buffer's recent past must do. */
static int keep_alert(struct desk *d, const struct alert *a, uint64_t now_ns, int64_t *id,
		      struct err *err)
{
	uint64_t before_ns = d->cfg->pre_ns + (a->for_ns == ALERT_NO_FOR ? 0 : a->for_ns);
	uint64_t to_ns = a->starts_ns + d->cfg->post_ns;
	char reason[REASON_BYTES];
	struct buf said = {0};
	int rc;

	if (to_ns > now_ns)
		to_ns = now_ns;
	before_ns = before_ns < a->starts_ns ? before_ns : a->starts_ns;
	snprintf(reason, sizeof(reason), "alert %.119s%s%.150s [%s]", a->name,
		 *a->summary ? ": " : "", a->summary, a->key);
	rc = keep_window(d, a->starts_ns - before_ns,
			 a->starts_ns < to_ns ? a->starts_ns : to_ns, to_ns, reason, id, err);
	if (rc != ERR_NOT_FOUND)
		return rc;
	log_line(d->cfg->log, LOG_INFO, "the history does not hold the window of the alert %s: a "
		 "snapshot of the buffer is taken", a->name);
	*id = 0;
	rc = ask_snapshot(d, reason, &said, err);
	buf_free(&said);
	return rc;
}

static void count(struct desk *d, uint64_t *what)
{
	os_mutex_lock(d->lock);
	++*what;
	os_mutex_unlock(d->lock);
}

/* returns what became of it, for the answer; NULL: an error. *id: 0 = none */
static const char *take_alert(struct desk *d, const struct alert *a, int64_t *id, struct err *err)
{
	uint64_t now_ns = os_wall_ns();
	struct known_alert *k;
	char text[500];
	bool known;
	int rc;

	*id = earlier(d, a->key, &known);
	if (a->resolved) {
		char time[OS_TIME_TEXT_BYTES];

		os_time_text(now_ns, time);
		snprintf(text, sizeof(text), RESOLVED "%s", time);
		k = find_known(d->alerts, a->key);
		if (k)
			k->resolved = true;
		if (*id)
			extend_note(d, *id, text);
		return *id ? "resolved" : known ? "not stored yet" : "unknown";
	}
	if (known) {
		count(d, &d->alert_repeats);
		return "repeated";
	}
	if (over_the_hour(d->alerts, now_ns)) {
		log_line(d->cfg->log, LOG_WARN, "the alert %s became no incident: %u of this hour "
			 "did", a->name, ALERT_INCIDENTS_AN_HOUR);
		count(d, &d->alerts_held_back);
		return "held back";
	}
	rc = keep_alert(d, a, now_ns, id, err);
	if (rc)
		return NULL;
	d->alerts->made_ns[d->alerts->nmade++ % ALERT_INCIDENTS_AN_HOUR] = now_ns;
	count(d, &d->alerts_taken);
	remember(d->alerts, a->key, *id);
	snprintf(text, sizeof(text), "posted as an alert%s%s", *a->labels ? ", labels " : "",
		 a->labels);
	if (*id)
		extend_note(d, *id, text);
	return "new";
}

/* One body after the other: two of the same alert make one incident. */
static bool begin_alerts(struct desk *d)
{
	uint64_t end_ns = os_now_ns() + 20 * NS_PER_SEC;
	bool mine;

	os_mutex_lock(d->lock);
	while (d->takes_alerts && os_now_ns() < end_ns && !atomic_load(&d->ending))
		os_cond_wait(d->changed, d->lock, NS_PER_SEC);
	mine = !d->takes_alerts;
	d->takes_alerts = true;
	os_mutex_unlock(d->lock);
	return mine;
}

static void end_alerts(struct desk *d)
{
	os_mutex_lock(d->lock);
	d->takes_alerts = false;
	os_cond_broadcast(d->changed);
	os_mutex_unlock(d->lock);
}

/* Our own incident, if it began the group; else the one that we made of it. 0 = none. */
static int64_t incident_of_group(struct desk *d, const char *group, const char *key, bool *known)
{
	struct store *store = NULL;
	int64_t id = 0;

	*known = false;
	if (!store_open(d->cfg->store_path, STORE_READ, &store, NULL) &&
	    store_find(store, group, &id, NULL))
		id = 0;
	store_close(store);
	return id ? id : earlier(d, key, known);
}

/*
 * A window of a group that another recorder has begun becomes one incident, however often it is
 * asked for. Where only the buffer has it, the answer is 503 until that snapshot is stored.
 */
static int keep_group(struct desk *d, struct wanted *w, unsigned *status, int64_t *id,
		      struct err *err)
{
	struct buf said = {0}, reason = {0};
	char key[ALERT_KEY_BYTES];
	bool known;
	int rc = 0;

	snprintf(key, sizeof(key), INCIDENT_GROUP "%s", w->group);
	buf_printf(&reason, "%.*s [%s]", (int)(sizeof(w->reason) - strlen(key) - 8), w->reason,
		   key);
	rc = buf_check(&reason, "a reason", err);
	if (!rc && !begin_alerts(d))
		rc = err_set(err, ERR_BUSY, "another incident is being made; try again");
	if (rc) {
		buf_free(&reason);
		return rc;
	}
	*status = 200;
	*id = incident_of_group(d, w->group, key, &known);
	if (!*id && known) {
		rc = err_set(err, ERR_BUSY, "the snapshot of this group is not stored yet");
	} else if (!*id) {
		*status = 201;
		rc = keep_window(d, w->from_ns, w->at_ns, w->to_ns, reason.data, id, err);
		if (rc == ERR_NOT_FOUND && w->at_ns + d->cfg->pre_ns > os_wall_ns() &&
		    !ask_snapshot(d, reason.data, &said, NULL)) {
			*id = 0;
			rc = err_set(err, ERR_BUSY, "the history does not hold this window: a "
				     "snapshot of the buffer is taken");
		}
		if (!rc || rc == ERR_BUSY)
			remember(d->alerts, key, *id);
	}
	end_alerts(d);
	buf_free(&said);
	buf_free(&reason);
	return rc;
}

static int take_alerts(struct desk *d, struct alerts *all, const char *usual_for,
		       struct answer *out, struct err *err)
{
	struct json j = {.out = &out->body};
	const char *became = "";
	int64_t id;
	uint32_t i;

	json_open(&j, '{');
	json_key_open(&j, "alerts", '[');
	for (i = 0; i < all->n && became; i++) {
		struct alert *a = &all->items[i];

		if (a->for_ns == ALERT_NO_FOR && usual_for)
			alert_duration(usual_for, &a->for_ns);
		if (!a->dated && (a->named || a->resolved))
			take_open_key(d, a);
		became = take_alert(d, a, &id, err);
		if (!became)
			return err->code;
		json_open(&j, '{');
		json_key_str(&j, "alert", a->key);
		json_key_str(&j, "state", became);
		if (id)
			json_key_int(&j, "incident", id);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_key_uint(&j, "left_out", all->left_out);
	json_close(&j, '}');
	buf_putc(&out->body, '\n');
	return 0;
}

void post_alert(struct desk *d, const struct request *r, struct answer *out)
{
	struct alerts *all = malloc(sizeof(*all));
	struct err err = {0};
	uint64_t ns;
	const char *usual_for = r->query(r->ctx, "for");
	int rc = all ? alerts_parse(r->body, os_wall_ns(), all, &err)
		     : err_memory(&err, "for alerts");

	if (!rc && usual_for && !alert_duration(usual_for, &ns))
		rc = err_set(&err, ERR_USAGE, "for=%.40s: give a duration such as 5m", usual_for);
	if (!rc && !begin_alerts(d)) {
		rc = err_set(&err, ERR_BUSY, "other alerts are being taken; try again");
	} else if (!rc) {
		out->status = 200;
		out->type = "application/json";
		rc = take_alerts(d, all, usual_for, out, &err);
		end_alerts(d);
	}
	if (rc)
		answer_error(out, &err);
	free(all);
}
