/*
 * Profiles of each service of an incident, sent to what stores profiles. A service's processes are
 * one profile for each metric; a large one goes in parts of 16,000 stacks and 4 MiB, which is what
 * Pyroscope takes. Threads and process ids are left out: servers make a series of each.
 *
 *	pyroscope   POST /ingest?name=SERVICE{LABELS}&from=&until=&format=pprof    pprof as it is
 *	otlp        POST /v1development/profiles         ExportProfilesServiceRequest, gzipped
 *	parca       POST /api/profiles/writeraw          JSON, the pprof in base64
 *	datadog     POST /profiling/v1/input, with https /api/v2/profile    event.json and the pprof
 *
 * Sources: pyroscope pkg/ingester/pyroscope/ingest_handler.go and pkg/validation/limits.go;
 * opentelemetry-proto 1.11, profiles_service.proto; parca proto/parca/profilestore/v1alpha1;
 * dd-trace-js packages/dd-trace/src/profiling/exporters/agent.js, ddprof's exporter.
 */
#include "ship/target.h"

#include "base/array.h"
#include "base/json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/varint.h"
#include "export/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define STACKS_MAX 16000u
#define PROFILE_BYTES_MAX ((uint64_t)4 << 20)
#define KEEP_EACH 16u                        /* a kill sends at most so many requests again */
#define BOUNDARY "recorder-part-7d1c5f0e"

/* One of them on its way. */
struct job {
	struct target *t;
	struct parcel *p;
	enum stream stream;
	const char *service, *host;
	struct buf profile;
	uint64_t from_ns, until_ns;          /* wall clock */
};

struct profiler {
	const char *path;
	const struct exporter *exporter;
	bool gzip;                           /* the exporter does not pack itself */
	/* Add its headers, and its body, unless that is the profile itself. */
	void (*prepare)(const struct job *j, struct net_request *r, struct buf *url,
			struct buf *body);
	/* Look at an answer that says it was taken: whether it really was. */
	void (*judge)(struct net_answer *a);
};

/* ---- what each wants ------------------------------------------------------------------------- */

extern const struct exporter pprof_exporter, otlp_exporter;

/* The value of a label in a name, where ',', '=' and '}' mean something. */
static void put_label_value(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_putc(out, isalnum((unsigned char)*text) || strchr("-._/:@", *text) ? *text
										       : '_');
}

static void prepare_pyroscope(const struct job *j, struct net_request *r, struct buf *url,
			      struct buf *body)
{
	struct buf name = {0};

	(void)body;
	put_label_value(&name, j->service);
	buf_puts(&name, "{host=");
	put_label_value(&name, j->host);
	buf_puts(&name, "}");
	buf_puts(url, "?name=");
	url_put_encoded(url, buf_text(&name), false);
	buf_printf(url, "&from=%llu&until=%llu&format=pprof&spyName=recorder",
		   (unsigned long long)(j->from_ns / NS_PER_SEC),
		   (unsigned long long)(j->until_ns / NS_PER_SEC + 1));
	net_header(r, "Content-Type: application/octet-stream");
	buf_free(&name);
}

static void prepare_otlp(const struct job *j, struct net_request *r, struct buf *url,
			 struct buf *body)
{
	(void)j;
	(void)url;
	(void)body;
	net_header(r, "Content-Type: application/x-protobuf");
	net_header(r, "Content-Encoding: gzip");
}

/*
 * ExportProfilesServiceResponse
 * { partial_success = 1 { rejected_profiles = 1; error_message = 2 } }
 * with 200: what was rejected is never tried again.
 */
static void judge_otlp(struct net_answer *a)
{
	const uint8_t *at = (const uint8_t *)buf_text(&a->body), *end = at + a->body.len;
	uint64_t tag, n, rejected = 0;
	char text[300] = "";

	if (!varint_get(&at, end, &tag) || tag != (1 << 3 | 2) || !varint_get(&at, end, &n) ||
	    n > (size_t)(end - at))
		return;
	for (end = at + n; varint_get(&at, end, &tag) && varint_get(&at, end, &n);) {
		if (tag == 1 << 3)
			rejected = n;
		if ((tag & 7) != 2)
			continue;
		if (n > (size_t)(end - at))
			return;
		if (tag == (2 << 3 | 2)) {
			n = n < sizeof(text) - 1 ? n : sizeof(text) - 1;
			memcpy(text, at, n);
			text[n] = '\0';
		}
		at += n;
	}
	if (!rejected)
		return;
	a->status = 400;
	buf_reset(&a->body);
	buf_printf(&a->body, "it rejected the profile: %s", text);
}

static void put_base64(struct buf *out, const struct buf *bytes)
{
	char text[64];
	size_t i, n;

	buf_putc(out, '"');
	for (i = 0; i < bytes->len; i += n) {
		n = bytes->len - i < 48 ? bytes->len - i : 48;
		buf_put(out, text, text_base64(bytes->data + i, n, text));
	}
	buf_putc(out, '"');
}

static void put_pair(struct json *j, const char *name, const char *value)
{
	json_open(j, '{');
	json_key_str(j, "name", name);
	json_key_str(j, "value", value);
	json_close(j, '}');
}

static void prepare_parca(const struct job *j, struct net_request *r, struct buf *url,
			  struct buf *body)
{
	struct json json = {.out = body};
	struct buf name = {0};

	(void)url;
	buf_printf(&name, "recorder_%s", stream_metrics[j->stream].pprof);
	json_open(&json, '{');
	json_key_open(&json, "series", '[');
	json_open(&json, '{');
	json_key_open(&json, "labels", '{');
	json_key_open(&json, "labels", '[');
	put_pair(&json, "__name__", buf_text(&name));
	put_pair(&json, "service_name", j->service);
	put_pair(&json, "node", j->host);
	json_close(&json, ']');
	json_close(&json, '}');
	json_key_open(&json, "samples", '[');
	json_open(&json, '{');
	json_key(&json, "rawProfile");
	put_base64(json_value(&json), &j->profile);
	json_close(&json, '}');
	json_close(&json, ']');
	json_close(&json, '}');
	json_close(&json, ']');
	json_key_bool(&json, "normalized", true);
	json_close(&json, '}');
	net_header(r, "Content-Type: application/json");
	buf_free(&name);
}

static void put_part_head(struct buf *body, const char *name, const char *file, const char *type)
{
	buf_printf(body, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"; "
		   "filename=\"%s\"\r\nContent-Type: %s\r\n\r\n", name, file, type);
}

static void prepare_datadog(const struct job *j, struct net_request *r, struct buf *url,
			    struct buf *body)
{
	struct json json = {.out = body};
	char start[OS_TIME_TEXT_BYTES], end[OS_TIME_TEXT_BYTES];
	struct buf tags = {0};

	(void)url;
	os_time_text(j->from_ns, start);
	os_time_text(j->until_ns, end);
	buf_puts(&tags, "service:");
	put_label_value(&tags, j->service);
	buf_puts(&tags, ",host:");
	put_label_value(&tags, j->host);
	buf_printf(&tags, ",runtime-id:%s", j->p->head->uuid);
	put_part_head(body, "event", "event.json", "application/json");
	json_open(&json, '{');
	json_key_open(&json, "attachments", '[');
	json_str(&json, "profile.pprof");
	json_close(&json, ']');
	json_key_str(&json, "tags_profiler", buf_text(&tags));
	json_key_str(&json, "start", start);
	json_key_str(&json, "end", end);
	json_key_str(&json, "family", "native");
	json_key_str(&json, "version", "4");
	json_close(&json, '}');
	buf_puts(body, "\r\n");
	put_part_head(body, "profile.pprof", "profile.pprof", "application/octet-stream");
	buf_put(body, j->profile.data, j->profile.len);
	buf_puts(body, "\r\n--" BOUNDARY "--\r\n");
	net_header(r, "Content-Type: multipart/form-data; boundary=" BOUNDARY);
	net_header(r, "DD-EVP-ORIGIN: recorder");
	net_header(r, "DD-EVP-ORIGIN-VERSION: 1");
	buf_free(&tags);
}

const struct profiler pyroscope_profiler = {
	.path = "/ingest", .exporter = &pprof_exporter, .prepare = prepare_pyroscope,
};
const struct profiler otlp_profiler = {
	.path = "/v1development/profiles", .exporter = &otlp_exporter, .gzip = true,
	.prepare = prepare_otlp, .judge = judge_otlp,
};
const struct profiler parca_profiler = {
	.path = "/api/profiles/writeraw", .exporter = &pprof_exporter, .prepare = prepare_parca,
};
const struct profiler datadog_profiler = {
	.path = "/profiling/v1/input", .exporter = &pprof_exporter, .prepare = prepare_datadog,
};

/* ---- one request ----------------------------------------------------------------------------- */

static int make_profile(struct job *j, struct export_part *part, uint64_t *bytes, struct err *err)
{
	const struct profiler *to = j->t->kind->profiler;
	struct export_options options = {
		.stream = j->stream, .part = part,
		.before_otlp_10 = j->t->otlp && strcmp(j->t->otlp, "1.9") == 0,
	};
	struct out *out;
	int rc;

	buf_reset(&j->profile);
	rc = out_to_buf(&j->profile, &out, err);
	if (!rc && to->gzip)
		rc = out_pack(out, err);
	if (!rc)
		rc = to->exporter->write(j->p->in, &options, out, err);
	if (rc) {
		out_abandon(out);
		return rc;
	}
	*bytes = out_bytes(out);
	return out_close(out, err);
}

static int send_profile(struct job *j, struct net *net, struct net_answer *a, struct err *err)
{
	const struct profiler *to = j->t->kind->profiler;
	struct net_request r = {.method = "POST"};
	struct buf url = {0}, body = {0};
	int rc;

	target_prepare(j->t, &r);
	if (j->t->kind->socket) {
		r.socket_path = j->t->url + strlen("unix://");
		buf_puts(&url, "http://localhost");
	} else {
		buf_put(&url, j->t->url, strlen(j->t->url) - text_ends_fold(j->t->url, "/"));
	}
	buf_puts(&url, to == &datadog_profiler && text_starts_fold(j->t->url, "https://")
			       ? "/api/v2/profile" : to->path);
	to->prepare(j, &r, &url, &body);
	r.url = buf_text(&url);
	r.text = body.len ? body.data : j->profile.data;
	r.nbytes = body.len ? body.len : j->profile.len;
	rc = buf_check(&url, "a URL", err);
	if (!rc)
		rc = buf_check(&body, "a request", err);
	if (!rc)
		rc = net_ask(net, &r, a, err);
	if (!rc && a->status / 100 == 2 && to->judge)
		to->judge(a);
	net_request_free(&r);
	buf_free(&url);
	buf_free(&body);
	return rc;
}

/* ---- all of an incident ---------------------------------------------------------------------- */

/* The profile of a service and a metric, in parts; those that were sent before are skipped. */
static int send_parts(struct job *j, struct net *net, struct export_part *part, uint32_t *number,
		      struct net_answer *a, struct err *err)
{
	uint64_t bytes = 0;
	int rc;

	part->from = 0;
	part->max = STACKS_MAX;
	do {
		rc = make_profile(j, part, &bytes, err);
		if (!rc && bytes > PROFILE_BYTES_MAX && part->max > 1) {
			part->max /= 2;
			part->more = true;
			continue;
		}
		if (!rc && (*number)++ >= j->p->parts) {
			rc = send_profile(j, net, a, err);
			if (rc || a->status / 100 != 2)
				return rc;
			j->p->parts = *number;
			if (*number % KEEP_EACH == 0)
				rc = j->p->keep(j->p->ctx, *number, err);
		}
		part->from += part->max;
	} while (!rc && part->more);
	return rc;
}

/* The service of each process, as a number of `names`. */
static int find_services(const struct incident *in, uint32_t *service_of, struct text_table *names,
			 struct err *err)
{
	struct buf name = {0};
	uint32_t i;

	for (i = 0; i < in->nprocesses; i++) {
		buf_reset(&name);
		service_put(&name, in, i);
		service_of[i] = text_table_add(names, buf_text(&name), name.len);
		if (name.failed || service_of[i] == TABLE_NONE)
			break;
	}
	buf_free(&name);
	return i < in->nprocesses ? err_memory(err, "for services") : 0;
}

/* has[service of nservices] and has[nservices] for unknown processes: there are such samples. */
static bool find_samples(const struct incident *in, enum stream stream, const uint32_t *service_of,
			 uint32_t nservices, bool *has)
{
	uint32_t i;
	bool any = false;

	memset(has, 0, nservices + 1);
	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream != stream)
			continue;
		any = true;
		has[s->thread == THREAD_NONE ? nservices
					     : service_of[in->threads[s->thread].process]] = true;
	}
	return any;
}

static int send_stream(struct job *j, struct net *net, const uint32_t *service_of,
		       const struct text_table *names, bool *has, uint32_t *number,
		       struct net_answer *a, struct err *err)
{
	struct export_part part = {.group_of = service_of};
	struct buf name = {0};
	uint32_t i;
	int rc = 0;

	if (!find_samples(j->p->in, j->stream, service_of, names->n, has))
		return 0;
	for (i = 0; i <= names->n && !rc && a->status / 100 == 2; i++) {
		if (!has[i])
			continue;
		buf_reset(&name);
		if (i < names->n)
			buf_put(&name, text_table_get(names, i), names->items[i].len);
		else
			buf_puts(&name, "unknown");
		part.group = i < names->n ? i : UINT32_MAX;
		j->service = buf_text(&name);
		rc = buf_check(&name, "a service", err);
		if (!rc)
			rc = send_parts(j, net, &part, number, a, err);
	}
	buf_free(&name);
	return rc;
}

int target_send_profiles(struct target *t, struct net *net, struct parcel *p,
			 struct net_answer *a, struct err *err)
{
	const struct incident *in = p->in;
	uint64_t before_ns = in->head.trigger_ns - in->head.t0_ns;
	struct job j = {.t = t, .p = p, .from_ns = in->head.trigger_wall_ns - before_ns,
			.host = p->head->host ? p->head->host : "unknown"};
	uint32_t *service_of = calloc((size_t)in->nprocesses + 1, sizeof(*service_of)), number = 0;
	struct text_table names = {0};
	bool *has = NULL;
	unsigned stream;
	int rc = service_of ? find_services(in, service_of, &names, err)
			    : err_memory(err, "for services");

	j.until_ns = j.from_ns + (in->head.t1_ns - in->head.t0_ns);
	if (!rc && !(has = calloc((size_t)names.n + 1, sizeof(*has))))
		rc = err_memory(err, "for services");
	a->status = 200;                     /* without samples there is nothing to send */
	for (stream = 0; stream < STREAMS_MAX && !rc && a->status / 100 == 2; stream++) {
		j.stream = (enum stream)stream;
		if (target_takes_stream(stream))
			rc = send_stream(&j, net, service_of, &names, has, &number, a, err);
	}
	free(service_of);
	free(has);
	text_table_free(&names);
	buf_free(&j.profile);
	return rc;
}
