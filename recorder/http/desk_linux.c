#include "http/desk_linux.h"

#include "base/array.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/control.h"
#include "export/export.h"
#include "http/metrics.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_NS (250 * NS_PER_MS)
#define BEGIN_NS (20 * NS_PER_SEC)           /* a start takes half a second, a busy one more */
#define BEGIN_STEP_NS (50 * NS_PER_MS)
#define FLUSH_NS (3 * NS_PER_SEC)
#define FLUSH_STEP_NS (50 * NS_PER_MS)

int desk_open(struct desk *d, const struct http_config *cfg, struct err *err)
{
	struct buf path = {0};

	d->cfg = cfg;
	d->begin_until_ns = os_now_ns() + BEGIN_NS;
	d->lock = os_mutex_new();
	d->changed = os_cond_new();
	d->alerts = alert_desk_new();
	buf_printf(&path, "%s%s", cfg->store_path, CONTROL_SUFFIX);
	d->control = path.data;
	if (!d->lock || !d->changed || !d->alerts || path.failed || !path.data)
		return err_memory(err, "for answers over HTTP");
	return 0;
}

void desk_close(struct desk *d)
{
	free(d->control);
	free(d->alerts);
	buf_free(&d->status);
	os_cond_free(d->changed);
	os_mutex_free(d->lock);
}

/* ---- answers --------------------------------------------------------------------------------- */

void answer_free(struct answer *a)
{
	buf_free(&a->body);
	if (a->has_file)
		close(a->file);
}

void answer_text(struct answer *a, unsigned status, const char *format, ...)
{
	va_list args;

	a->status = status;
	a->type = "text/plain; charset=utf-8";
	buf_reset(&a->body);
	va_start(args, format);
	buf_vprintf(&a->body, format, args);
	va_end(args);
	buf_putc(&a->body, '\n');
}

void answer_error(struct answer *a, const struct err *err)
{
	unsigned status = err->code == ERR_USAGE || err->code == ERR_FORMAT ? 400
			  : err->code == ERR_ACCESS		  ? 403
			  : err->code == ERR_NOT_FOUND		  ? 404
			  : err->code == ERR_BUSY		  ? 503
								  : 500;

	answer_text(a, status, "%s", err->text);
	if (status == 503) {
		a->extra = "Retry-After";
		a->extra_value = "5";
	}
}

/* ---- the recorder ---------------------------------------------------------------------------- */

int desk_ask(struct desk *d, const char *line, struct buf *answer, struct err *err)
{
	struct json_value all, error;
	struct buf text = {0};
	int rc;

	answer->max_bytes = OS_IPC_MAX_BYTES + 1;
	rc = os_ipc_ask(d->control, line, DESK_ANSWER_WAIT_NS, answer, err);
	/* A client may be why systemd starts the recorder. */
	while (rc && !d->begun && !d->ending && os_now_ns() < d->begin_until_ns) {
		os_sleep_ns(BEGIN_STEP_NS);
		buf_reset(answer);
		rc = os_ipc_ask(d->control, line, DESK_ANSWER_WAIT_NS, answer, err);
	}
	if (rc)
		return err_set(err, ERR_BUSY, "the recorder does not answer: it starts, ends, or "
			       "has no control socket");
	d->begun = true;
	if (!json_read(buf_text(answer), &all))
		return err_set(err, ERR_IO, "the recorder's answer is not JSON");
	error = json_member(all, "error");
	if (!error.at)
		return 0;
	json_put_text(error, &text);
	rc = err_set(err, ERR_BUSY, "the recorder refused: %.400s", buf_text(&text));
	buf_free(&text);
	return rc;
}

int desk_status(struct desk *d, struct buf *out, struct err *err)
{
	uint64_t now_ns = os_now_ns();
	int rc = 0;

	os_mutex_lock(d->lock);
	if (!d->status_ns || now_ns - d->status_ns > STATUS_NS) {
		buf_reset(&d->status);
		rc = desk_ask(d, "{\"cmd\":\"status\"}", &d->status, err);
		d->status_ns = rc ? 0 : os_now_ns();
	}
	if (!rc)
		buf_put(out, d->status.data, d->status.len);
	os_mutex_unlock(d->lock);
	return rc ? rc : buf_check(out, "the status", err);
}

static double number(const struct buf *answer, const char *key)
{
	struct json_value all;
	double v = 0;

	if (json_read(buf_text(answer), &all))
		json_number(json_member(all, key), &v);
	return v;
}

void desk_flush(struct desk *d)
{
	uint64_t end_ns = os_now_ns() + FLUSH_NS;
	struct buf answer = {0};
	double want;

	if (desk_ask(d, "{\"cmd\":\"flush\"}", &answer, NULL)) {
		buf_free(&answer);
		return;
	}
	want = number(&answer, "flush");
	while (want > 0 && !atomic_load(&d->ending) && os_now_ns() < end_ns) {
		os_sleep_ns(FLUSH_STEP_NS);
		buf_reset(&answer);
		if (desk_status(d, &answer, NULL) || number(&answer, "flushed") >= want)
			break;
	}
	buf_free(&answer);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static void put_reasons(struct json_value status, struct buf *out)
{
	struct json_value r = {0};

	while ((r = json_next(json_member(status, "reasons"), r)).at) {
		buf_putc(out, '\n');
		json_put_text(json_member(r, "reason"), out);
		buf_puts(out, ": ");
		json_put_text(json_member(r, "text"), out);
	}
}

static void get_health(struct desk *d, const struct request *r, struct answer *out)
{
	struct buf status = {0}, text = {0};
	struct json_value all;
	struct err err = {0};

	if (desk_status(d, &status, &err) || !json_read(buf_text(&status), &all)) {
		answer_error(out, &err);
		out->status = 503;
	} else {
		json_put_text(json_member(all, "health"), &text);
		out->status = strcmp(buf_text(&text), "failing") == 0 ? 503 : 200;
		if (!r->open_only)
			put_reasons(all, &text);
		answer_text(out, out->status, "%s", buf_text(&text));
	}
	buf_free(&text);
	buf_free(&status);
}

/* Under the lock. */
static void put_own_metrics(struct desk *d, bool open_metrics, struct buf *out)
{
	const struct {
		const char *name, *help;
		uint64_t value;
	} own[] = {
		{"recorder_http_requests_total", "Requests over HTTP.", d->requests},
		{"recorder_http_refused_total", "Requests without the right to it.", d->refused},
		{"recorder_http_slow_clients_total", "Clients that were too slow.", d->slow},
		{"recorder_alert_incidents_total", "Alerts that became incidents.",
		 d->alerts_taken},
		{"recorder_alert_repeats_total", "Alerts that were posted again.",
		 d->alert_repeats},
		{"recorder_alert_held_back_total", "Alerts beyond the limit of an hour.",
		 d->alerts_held_back},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(own); i++)
		metrics_put_one(own[i].name, own[i].help, (double)own[i].value, open_metrics, out);
}

static void get_metrics(struct desk *d, const struct request *r, struct answer *out)
{
	const char *accept = r->header(r->ctx, "Accept");
	bool open_metrics = accept && strstr(accept, "application/openmetrics-text");
	struct buf status = {0};
	struct json_value all;
	struct err err = {0};

	if (desk_status(d, &status, &err) || !json_read(buf_text(&status), &all)) {
		answer_error(out, &err);
		buf_free(&status);
		return;
	}
	out->status = 200;
	out->type = open_metrics ? METRICS_OPEN_TYPE : METRICS_TEXT_TYPE;
	metrics_put(all, open_metrics, &out->body);
	os_mutex_lock(d->lock);
	put_own_metrics(d, open_metrics, &out->body);
	os_mutex_unlock(d->lock);
	metrics_end(open_metrics, &out->body);
	buf_free(&status);
}

static void get_status(struct desk *d, const struct request *r, struct answer *out)
{
	struct err err = {0};

	(void)r;
	out->status = 200;
	out->type = "application/json";
	if (desk_status(d, &out->body, &err))
		answer_error(out, &err);
	else
		buf_putc(&out->body, '\n');
}

static int put_head(void *ctx, const struct incident_head *h)
{
	struct json *j = ctx;

	json_open(j, '{');
	json_incident(j, h, false);
	json_close(j, '}');
	return 0;
}

static void get_incidents(struct desk *d, const struct request *r, struct answer *out)
{
	struct json j = {.out = &out->body};
	struct store *store = NULL;
	struct err err = {0};
	int rc = store_open(d->cfg->store_path, STORE_READ, &store, &err);

	(void)r;
	out->status = 200;
	out->type = "application/json";
	json_open(&j, '[');
	if (!rc)
		rc = store_list(store, put_head, &j, &err);
	json_close(&j, ']');
	buf_putc(&out->body, '\n');
	if (rc)
		answer_error(out, &err);
	store_close(store);
}

static void get_incident(struct desk *d, int64_t id, struct answer *out)
{
	struct json j = {.out = &out->body};
	struct incident_head head = {0};
	struct store *store = NULL;
	struct err err = {0};
	int rc = store_open(d->cfg->store_path, STORE_READ, &store, &err);

	if (!rc)
		rc = store_head(store, id, &head, &err);
	if (rc) {
		answer_error(out, &err);
	} else {
		out->status = 200;
		out->type = "application/json";
		json_open(&j, '{');
		json_incident(&j, &head, true);
		json_key_str(&j, "note", head.note);
		json_key_str(&j, "remarks", head.remarks);
		json_close(&j, '}');
		buf_putc(&out->body, '\n');
	}
	incident_head_free(&head);
	store_close(store);
}

static const char *type_of(const struct exporter *e)
{
	static const struct {
		const char *end, *type;
	} types[] = {
		{".html", "text/html; charset=utf-8"},
		{".svg", "image/svg+xml"},
		{".json", "application/json"},
		{".csv", "text/csv; charset=utf-8"},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(types); i++)
		if (text_ends_fold(e->suffix, types[i].end))
			return types[i].type;
	return e->binary ? "application/octet-stream" : "text/plain; charset=utf-8";
}

/* The suffix is exactly that of a format. */
static const struct exporter *exporter_of(const char *suffix)
{
	size_t i;

	for (i = 0; exporters[i]; i++)
		if (exporters[i]->suffix && strcmp(exporters[i]->suffix, suffix) == 0)
			return exporters[i];
	return NULL;
}

static void get_export(struct desk *d, const struct request *r, int64_t id,
		       const struct exporter *e, struct answer *out)
{
	const char *process = r->query(r->ctx, "process");
	char id_text[40], process_text[300];
	const char *args[] = {"export", id_text, "--format", e->name, "-o", "-",
			      process ? process_text : NULL, NULL};
	struct err err = {0};

	snprintf(id_text, sizeof(id_text), "--id=%" PRId64, id);
	snprintf(process_text, sizeof(process_text), "--process=%s", process ? process : "");
	if (desk_run(d, args, &out->file, &err)) {
		answer_error(out, &err);
		return;
	}
	out->has_file = true;
	out->status = 200;
	out->type = type_of(e);
	out->extra = "Content-Security-Policy";
	out->extra_value = "default-src 'none'; script-src 'unsafe-inline'; "
			   "style-src 'unsafe-inline'; img-src data:";
}

/* An incident as a store of its own, as targets of `ship` get it. */
static void get_store(struct desk *d, int64_t id, struct answer *out)
{
	struct err err = {0};

	if (desk_copy(d, id, &out->file, &err)) {
		answer_error(out, &err);
		return;
	}
	out->has_file = true;
	out->status = 200;
	out->type = "application/vnd.sqlite3";
}

/* "/incidents/7" or "/incidents/7.folded" */
static void get_one(struct desk *d, const struct request *r, struct answer *out)
{
	const char *text = r->path + strlen("/incidents/");
	const struct exporter *e;
	char *end = NULL;
	int64_t id = *text >= '1' && *text <= '9' ? strtoll(text, &end, 10) : 0;
	size_t i;

	if (!id || id == INT64_MAX) {
		answer_text(out, 404, "%.100s: an incident has a number, as in /incidents/7",
			    r->path);
		return;
	}
	if (!*end) {
		get_incident(d, id, out);
		return;
	}
	if (strcmp(end, ".db") == 0) {
		get_store(d, id, out);
		return;
	}
	e = exporter_of(end);
	if (e) {
		get_export(d, r, id, e, out);
		return;
	}
	answer_text(out, 404, "'%.40s' is no format; there are .db, a store, and:", end);
	for (i = 0; exporters[i]; i++)
		if (exporters[i]->suffix)
			buf_printf(&out->body, "  /incidents/%" PRId64 "%-20s %s\n", id,
				   exporters[i]->suffix, exporters[i]->summary);
}

struct route {
	const char *method, *path;
	bool prefix;
	bool open, unless_token;             /* for everybody; while no token is set */
	void (*answer)(struct desk *d, const struct request *r, struct answer *out);
};

static const struct route routes[] = {
	{"GET", "/healthz", .open = true, .answer = get_health},
	{"GET", "/metrics", .unless_token = true, .answer = get_metrics},
	{"GET", "/status", .answer = get_status},
	{"GET", "/incidents", .answer = get_incidents},
	{"GET", "/incidents/", .prefix = true, .answer = get_one},
	{"GET", "/", .answer = get_page},
	{"GET", "/debug/pprof/", .answer = get_pprof},
	{"GET", "/debug/pprof/profile", .answer = get_profile},
	{"GET", "/clock", .answer = get_clock},
	{"POST", "/snapshot", .answer = post_snapshot},
	{"POST", "/alert", .answer = post_alert},
};

static bool matches(const struct route *route, const char *path)
{
	return route->prefix ? strncmp(path, route->path, strlen(route->path)) == 0
			     : strcmp(path, route->path) == 0;
}

static bool is_open(const struct route *route, const struct request *r)
{
	return route->open || (route->unless_token && !r->has_token);
}

static void refuse(struct desk *d, const struct request *r, struct answer *out)
{
	os_mutex_lock(d->lock);
	d->refused++;
	os_mutex_unlock(d->lock);
	answer_text(out, 401, "this needs the token%s", r->has_token
		    ? ": Authorization: Bearer TOKEN, or the token as password"
		    : ", and the recorder has none: start it with --http-token FILE, or ask as "
		      "root or the recorder's own user over a Unix socket");
	out->extra = "WWW-Authenticate";
	out->extra_value = "Basic realm=\"recorder\"";
}

void desk_answer(struct desk *d, const struct request *r, struct answer *out)
{
	const char *method = strcmp(r->method, "HEAD") == 0 ? "GET" : r->method;
	const struct route *route = NULL;
	bool other_method = false;
	size_t i;

	os_mutex_lock(d->lock);
	d->requests++;
	os_mutex_unlock(d->lock);
	for (i = 0; !route && i < COUNT_OF(routes); i++) {
		if (!matches(&routes[i], r->path))
			continue;
		if (strcmp(routes[i].method, method) == 0)
			route = &routes[i];
		else
			other_method = true;
	}
	if (r->open_only && !(route && is_open(route, r)))
		refuse(d, r, out);
	else if (route)
		route->answer(d, r, out);
	else if (other_method)
		answer_text(out, 405, "%.20s is not for %.100s", r->method, r->path);
	else
		answer_text(out, 404, "there is no %.100s; `recorder help http` lists what "
			    "there is", r->path);
	if (out->body.failed)
		answer_text(out, 500, "out of memory for this answer");
}
