#include "ship/target.h"

#include "base/array.h"
#include "base/moment.h"
#include "base/owned_file.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SECRETS_MAX 16384u
#define HISTORY_S_MIN 10u
#define HISTORY_S_MAX 600u

/* ---- HTTP ------------------------------------------------------------------------------------ */

static int send_http(struct target *t, struct net *net, struct parcel *p, struct net_answer *a,
		     struct err *err)
{
	bool is_folder = text_ends_fold(t->url, "/");
	struct net_request r = {.method = is_folder ? "PUT" : "POST", .file = p->file,
			    .nbytes = p->bytes};
	struct buf url = {0};
	int rc;

	buf_puts(&url, t->url);
	if (is_folder)
		url_put_encoded(&url, buf_text(&p->name), true);
	r.url = buf_text(&url);
	target_prepare(t, &r);
	net_header(&r, "Content-Type: application/%s", t->exporter ? "octet-stream"
							       : "vnd.sqlite3");
	net_header(&r, "Idempotency-Key: \"%s\"", p->head->uuid);
	net_header(&r, "X-Recorder-Name: %s", buf_text(&p->name));
	net_header(&r, "X-Content-SHA256: %s", p->sha256);
	rc = buf_check(&url, "a URL", err);
	if (!rc)
		rc = net_ask(net, &r, a, err);
	net_request_free(&r);
	buf_free(&url);
	return rc;
}

static const struct target_kind https = {.scheme = "https://", .send = send_http};
static const struct target_kind http = {.scheme = "http://", .send = send_http};
static const struct target_kind s3 = {.scheme = "s3://", .send = target_send_s3};

/* By https and by http. */
#define PROFILER(name) \
	static const struct target_kind name##_https = {.scheme = #name "+https://", \
		.profiler = &name##_profiler, .send = target_send_profiles}; \
	static const struct target_kind name##_http = {.scheme = #name "+http://", \
		.profiler = &name##_profiler, .send = target_send_profiles}
PROFILER(pyroscope);
PROFILER(otlp);
PROFILER(parca);
PROFILER(datadog);
static const struct target_kind datadog_unix = {.scheme = "datadog+unix://", .socket = true,
	.profiler = &datadog_profiler, .send = target_send_profiles};

#define DATABASE(id, text, which) \
	static const struct target_kind id = {.scheme = text "://", .database = which, \
		.send = target_send_rows}
DATABASE(clickhouse, "clickhouse", DATABASE_CLICKHOUSE);
DATABASE(clickhouse_https, "clickhouse+https", DATABASE_CLICKHOUSE);
DATABASE(clickhouse_http, "clickhouse+http", DATABASE_CLICKHOUSE);
DATABASE(postgresql, "postgresql", DATABASE_POSTGRESQL);
DATABASE(postgres, "postgres", DATABASE_POSTGRESQL);

static const struct target_kind peer_https = {.scheme = "peer+https://", .peer = true,
	.send = target_send_to_peer};
static const struct target_kind peer_http = {.scheme = "peer+http://", .peer = true,
	.send = target_send_to_peer};

const struct target_kind *const target_kinds[] = {
	&s3, &https, &http, &pyroscope_https, &pyroscope_http, &otlp_https, &otlp_http,
	&parca_https, &parca_http, &datadog_https, &datadog_http, &datadog_unix, &clickhouse,
	&clickhouse_https, &clickhouse_http, &postgresql, &postgres, &peer_https,
	&peer_http, NULL,
};

/* ---- its text -------------------------------------------------------------------------------- */

static int set_number(const char *key, const char *value, uint32_t *out, struct err *err)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (!isdigit((unsigned char)*value) || *end || !n || n > 1048576)
		return err_set(err, ERR_USAGE, "%s=%.60s: expected 1 to 1048576", key, value);
	*out = (uint32_t)n;
	return 0;
}

static int set_history(struct target *t, const char *value, struct err *err)
{
	double s;

	if (t->kind->peer)
		return err_set(err, ERR_USAGE, "History: a peer has a history of its own");
	if (!duration_parse(value, &s) || s != (uint32_t)s || s < HISTORY_S_MIN ||
	    s > HISTORY_S_MAX)
		return err_set(err, ERR_USAGE, "History=%.60s: how long is an interval? %us to "
			       "%us, such as 60s", value, HISTORY_S_MIN, HISTORY_S_MAX);
	t->history_s = (uint32_t)s;
	return 0;
}

static int set_key(struct target *t, const char *key, const char *value, struct err *err)
{
	const struct {
		const char *name, **text;
		uint32_t *number;
	} keys[] = {
		{"Auth", &t->auth_file, NULL}, {"CA", &t->ca_file, NULL},
		{"Endpoint", &t->endpoint, NULL}, {"Region", &t->region, NULL},
		{"KBps", NULL, &t->kb_per_s}, {"StallSec", NULL, &t->stall_s},
		{"RetrySec", NULL, &t->retry_s}, {"PartKB", NULL, &t->part_kb},
		{"Otlp", &t->otlp, NULL}, {"Version", &t->release, NULL},
	};
	size_t i;

	if (text_same_fold(key, "Format")) {
		if (t->kind->profiler || t->kind->database || t->kind->peer)
			return err_set(err, ERR_USAGE, "Format: %s has one of its own",
				       t->kind->scheme);
		t->exporter = exporter_by_name(value);
		return t->exporter || text_same_fold(value, "store") ? 0
			: err_set(err, ERR_USAGE, "Format=%.60s: neither store nor a format of "
				  "`recorder help export`", value);
	}
	if (text_same_fold(key, "History"))
		return set_history(t, value, err);
	for (i = 0; i < COUNT_OF(keys); i++) {
		if (!text_same_fold(key, keys[i].name))
			continue;
		if (keys[i].number)
			return set_number(key, value, keys[i].number, err);
		*keys[i].text = value;
		return 0;
	}
	return err_set(err, ERR_USAGE, "unknown key '%.60s'; there are Format, Auth, CA, Endpoint, "
		       "Region, KBps, StallSec, RetrySec, PartKB, Otlp, Version, "
		       "History", key);
}

/* The host of a URL, after "user@" of a database. */
static const char *host_of(const struct target *t)
{
	const char *host = strstr(t->url, "://") + 3;
	const char *user = t->kind->database == DATABASE_POSTGRESQL
				   ? memchr(host, '@', strcspn(host, "/?#")) : NULL;

	return user ? user + 1 : host;
}

bool target_host_is_local(const char *host, const char *ends)
{
	static const char *const local[] = {"127.0.0.1", "localhost", "[::1]"};
	size_t i;

	for (i = 0; i < COUNT_OF(local); i++)
		if (text_starts_fold(host, local[i]) && strchr(ends, host[strlen(local[i])]))
			return true;
	return false;
}

/* A URL of PostgreSQL without a host means a Unix socket, unless its query names one. */
bool target_is_local(const struct target *t)
{
	const char *host = host_of(t), *named = strstr(host, "host=");

	if (t->kind->database == DATABASE_POSTGRESQL && (named || !strcspn(host, "/?#:")))
		return !named || named[5] == '/' || text_starts_fold(named + 5, "%2F");
	return target_host_is_local(host, ":/?#");
}

static int check(const struct target *t, struct err *err)
{
	const char *host = host_of(t), *start = strstr(t->url, "://") + 3;
	bool is_pg = t->kind->database == DATABASE_POSTGRESQL;

	if (t->otlp && strcmp(t->otlp, "1.9") != 0 && strcmp(t->otlp, "1.10") != 0)
		return err_set(err, ERR_USAGE, "Otlp=%.20s: there are the layouts 1.9 and 1.10",
			       t->otlp);
	if (t->kind->socket ? *host != '/' : !is_pg && (!*host || *host == '/'))
		return err_set(err, ERR_USAGE, "%.200s names no host", buf_text(&t->name));
	if (memchr(host, '@', strcspn(host, "/?#")) ||
	    (host > start && memchr(start, ':', (size_t)(host - start))) ||
	    (is_pg && strstr(host, "password=")))
		return err_set(err, ERR_USAGE, "a URL must hold no password, which everybody sees "
			       "in lists of processes: ;Auth=FILE names a file of mode 0600");
	if (t->history_s && !t->kind->profiler && !t->kind->database && !t->exporter)
		return err_set(err, ERR_USAGE, "%.200s: History= needs ;Format=, such as folded or "
			       "pprof", buf_text(&t->name));
	if (t->auth_file && text_starts_fold(t->url, "http://") && !target_is_local(t))
		return err_set(err, ERR_USAGE, "%.200s: ;Auth= would be readable on the way: use "
			       "https://", buf_text(&t->name));
	return 0;
}

static int parse(struct target *t, struct err *err)
{
	char *at = t->text, *key, *value;
	bool more;
	unsigned i;
	int rc = 0;

	for (i = 0; target_kinds[i] && !text_starts_fold(t->text, target_kinds[i]->scheme); i++)
		;
	t->kind = target_kinds[i];
	if (!t->kind) {
		struct buf schemes = {0};

		for (i = 0; target_kinds[i]; i++)
			buf_printf(&schemes, "%s%s", i ? ", " : "", target_kinds[i]->scheme);
		rc = err_set(err, ERR_USAGE, "'%.60s' is no target; it begins with one of %s",
			     t->text, buf_text(&schemes));
		buf_free(&schemes);
		return rc;
	}
	t->url = at;
	at += strcspn(at, ";");
	if (*at)
		*at++ = '\0';
	while (!rc && *at) {
		key = at;
		at += strcspn(at, ";");
		value = memchr(key, '=', (size_t)(at - key));
		if (!value)
			return err_set(err, ERR_USAGE, "'%.60s': expected Key=Value", key);
		*value++ = '\0';
		more = *at != '\0';
		*at = '\0';
		rc = set_key(t, key, value, err);
		at += more;
	}
	buf_put(&t->name, t->url, strcspn(t->url, "?#"));
	/* "pyroscope+https://": how it is asked for is what follows the '+'. */
	if (t->kind->profiler || memchr(t->kind->scheme, '+', strlen(t->kind->scheme)))
		t->url += strcspn(t->url, "+") + 1;
	if (!rc)
		rc = buf_check(&t->name, "a target", err);
	return rc ? rc : check(t, err);
}

int target_parse(const char *text, struct target *out, struct err *err)
{
	const char *endpoint = os_env("AWS_ENDPOINT_URL"), *region = os_env("AWS_REGION");
	char hex[SHA256_HEX];
	int rc;

	*out = (struct target){.text = text_dup(text, SIZE_MAX)};
	rc = out->text ? parse(out, err) : err_memory(err, "for a target");
	/* Two that differ in what is not shown are two. */
	if (!rc && strchr(out->url, '?')) {
		sha256_text(out->url, strlen(out->url), hex);
		buf_printf(&out->name, "?%.8s", hex);
	}
	if (!rc && out->kind == &s3)
		rc = s3_place(out->url, out->endpoint ? out->endpoint : endpoint,
			      out->region ? out->region : region ? region
								 : os_env("AWS_DEFAULT_REGION"),
			      &out->s3, err);
	if (rc)
		target_free(out);
	return rc;
}

void target_free(struct target *t)
{
	buf_free(&t->name);
	buf_free(&t->auth);
	s3_free(&t->s3);
	free(t->text);
	*t = (struct target){0};
}

/* ---- secrets --------------------------------------------------------------------------------- */

/* "aws_access_key_id = AKIA..." of a file of credentials; the first one counts. */
static void take_key(const char *text, const char *name, struct buf *out)
{
	size_t n = strlen(name);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		const char *at = text + strspn(text, " \t");

		if (strncmp(at, name, n) != 0)
			continue;
		at += n + strspn(at + n, " \t");
		if (*at++ != '=')
			continue;
		at += strspn(at, " \t");
		buf_put(out, at, strcspn(at, " \t\r\n"));
		return;
	}
}

static void take_env(const char *name, struct buf *out)
{
	const char *value = os_env(name);

	if (value)
		buf_puts(out, value);
}

int target_load_secrets(struct target *t, struct err *err)
{
	int rc = 0;

	if (t->kind->database == DATABASE_POSTGRESQL)
		return 0;                    /* libpq reads its own file, or PGPASSWORD */
	if (t->auth_file)
		rc = owned_file_load(t->auth_file, true, SECRETS_MAX, &t->auth, err);
	else if (t->kind != &s3)
		take_env("RECORDER_SHIP_AUTH", &t->auth);
	if (rc || t->kind != &s3)
		return rc;
	if (t->auth_file) {
		take_key(buf_text(&t->auth), "aws_access_key_id", &t->s3.key_id);
		take_key(buf_text(&t->auth), "aws_secret_access_key", &t->s3.secret);
		take_key(buf_text(&t->auth), "aws_session_token", &t->s3.token);
		buf_reset(&t->auth);
	} else {
		take_env("AWS_ACCESS_KEY_ID", &t->s3.key_id);
		take_env("AWS_SECRET_ACCESS_KEY", &t->s3.secret);
		take_env("AWS_SESSION_TOKEN", &t->s3.token);
	}
	if (!t->s3.key_id.len || !t->s3.secret.len)
		return err_set(err, ERR_USAGE, "%s: no keys: set AWS_ACCESS_KEY_ID and "
			       "AWS_SECRET_ACCESS_KEY, or name a file of mode 0600 with lines "
			       "aws_access_key_id = and aws_secret_access_key = (;Auth=FILE)",
			       buf_text(&t->name));
	return 0;
}

void target_prepare(const struct target *t, struct net_request *r)
{
	const char *at = buf_text(&t->auth);
	size_t n;

	r->ca_file = t->ca_file;
	r->stall_s = t->stall_s;
	r->bytes_per_s = (uint64_t)t->kb_per_s << 10;
	for (; *at; at += n + (at[n] == '\n')) {
		int line;

		n = strcspn(at, "\n");
		line = (int)(n - (n && at[n - 1] == '\r'));
		/* For a peer it may be its file of --http-token: one word. */
		if (t->kind->peer && line && !memchr(at, ' ', n))
			net_header(r, "Authorization: Bearer %.*s", line, at);
		else if (memchr(at, ':', n))
			net_header(r, "%.*s", line, at);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

void target_put_host(const char *host, struct buf *out)
{
	for (host = host && *host && *host != '.' ? host : "unknown"; *host; host++)
		buf_putc(out, isalnum((unsigned char)*host) || strchr("-._", *host) ? *host : '_');
	buf_putc(out, '/');
}

void target_put_name(const struct target *t, const struct incident_head *h, struct buf *out)
{
	char time[OS_TIME_TEXT_BYTES];

	os_time_text(h->trigger_wall_ns, time);
	target_put_host(h->host, out);
	buf_printf(out, "%.4s/%.2s/%.2s/%s%s", time, time + 5, time + 8, h->uuid,
		   t->exporter ? t->exporter->suffix : ".db");
}
