#include "http/alert.h"

#include "base/array.h"
#include "base/json_read.h"
#include "base/moment.h"
#include "base/os.h"
#include "base/utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINGERPRINT_MAX 60u
#define ZERO_TIME "0001-01-01T00:00:00Z"     /* what Go programs write for none */

bool alert_duration(const char *text, uint64_t *out_ns)
{
	double sum = 0, unit_s;
	char *end;
	size_t n;

	if (!*text)
		return false;
	while (*text) {
		double v = isdigit((unsigned char)*text) ? strtod(text, &end) : -1;

		if (v < 0 || end == text)
			return false;
		text = end;
		n = 0;
		while (isalpha((unsigned char)text[n]))
			n++;
		unit_s = duration_unit_s(text, n);
		if (unit_s == 0)
			return false;
		sum += v * unit_s;
		text += n;
	}
	if (!(sum <= (double)ALERT_FOR_MAX_NS / 1e9))
		return false;
	*out_ns = (uint64_t)(sum * 1e9);
	return true;
}

/* The first of these members that has text, cut between characters. false: none. */
static bool take_text(struct json_value object, const char *const *keys, char *out, size_t n)
{
	struct buf text = {0}, clean = {0};
	bool found = false;

	for (; !found && *keys; keys++) {
		buf_reset(&text);
		json_put_text(json_member(object, *keys), &text);
		found = text.len != 0;
	}
	utf8_put_clean(&clean, buf_text(&text), text.len, n - 4);
	snprintf(out, n, "%s", buf_text(&clean));
	buf_free(&clean);
	buf_free(&text);
	return found && *out;
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/*
 * The first of these members that is there: a moment in text, or seconds since 1970. *out is 0
 * where none is, or one that cannot be meant.
 */
static int moment_of(struct json_value object, const char *const *keys, uint64_t now_ns,
		     uint64_t *out, struct err *err)
{
	const char *key[] = {*keys, NULL};
	struct err why = {0};
	char text[80];
	uint64_t ns;
	double v;

	*out = 0;
	while (key[0] && !take_text(object, key, text, sizeof(text)))
		key[0] = *++keys;
	if (!key[0] || strcmp(text, ZERO_TIME) == 0)
		return 0;
	if (json_number(json_member(object, key[0]), &v))
		ns = v > 0 && v * 1e9 <= (double)now_ns ? (uint64_t)(v * 1e9) : 0;
	else if (moment_parse(text, now_ns, 0, &ns, &why))
		return err_set(err, ERR_FORMAT, "%s of an alert: %s", key[0], why.text);
	*out = ns <= now_ns + 60 * NS_PER_SEC ? ns : 0;
	return 0;
}

static uint64_t fnv1a(const char *bytes, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (n--)
		hash = (hash ^ (unsigned char)*bytes++) * UINT64_C(0x100000001b3);
	return hash;
}

static bool is_plain(const char *text)
{
	while (isalnum((unsigned char)*text) || (*text && strchr("_.:-", *text)))
		text++;
	return !*text;
}

/* Sentences have "alert" before it. */
static void set_name(struct alert *a)
{
	if (a->name[strspn(a->name, " ")] == '\0')
		strcpy(a->name, "without a name");
}

static void set_beginning(struct alert *a, uint64_t starts_ns, uint64_t now_ns)
{
	a->dated = starts_ns != 0;
	a->starts_ns = a->dated ? starts_ns : now_ns;
}

/* posted: the sender's own identity; "" = it gave none, and that of `of` must do. */
static void set_key(struct alert *a, const char *posted, struct json_value of)
{
	char time[OS_TIME_TEXT_BYTES], name[FINGERPRINT_MAX + 1];

	a->named = *posted != '\0';
	os_time_text(a->starts_ns, time);
	if (*posted && is_plain(posted) && strlen(posted) <= FINGERPRINT_MAX)
		snprintf(name, sizeof(name), "%s", posted);
	else if (*posted)
		snprintf(name, sizeof(name), "%016" PRIx64, fnv1a(posted, strlen(posted)));
	else
		snprintf(name, sizeof(name), "%016" PRIx64,
			 of.at ? fnv1a(of.at, (size_t)(of.end - of.at))
			       : fnv1a(a->name, strlen(a->name)));
	snprintf(a->key, sizeof(a->key), "%s" ALERT_SINCE "%s", name, time);
}

static void set_for(struct alert *a, struct json_value object)
{
	char text[40];

	if (a->for_ns == ALERT_NO_FOR && take_text(object, KEYS("for"), text, sizeof(text)) &&
	    !alert_duration(text, &a->for_ns))
		a->for_ns = ALERT_NO_FOR;
}

static void set_labels(struct alert *a, struct json_value labels)
{
	struct buf clean = {0};

	if (!labels.at)
		return;
	utf8_put_clean(&clean, labels.at, (size_t)(labels.end - labels.at), sizeof(a->labels) - 4);
	snprintf(a->labels, sizeof(a->labels), "%s", buf_text(&clean));
	buf_free(&clean);
}

/* One of Alertmanager's or Grafana's, or a plain one: its members may be its labels, too. */
static int parse_alert(struct json_value v, uint64_t now_ns, struct alert *a, struct err *err)
{
	struct json_value labels = json_member(v, "labels");
	struct json_value annotations = json_member(v, "annotations");
	char status[20], posted[400];
	uint64_t starts_ns;
	int rc;

	*a = (struct alert){.for_ns = ALERT_NO_FOR};
	take_text(v, KEYS("status", "state"), status, sizeof(status));
	a->resolved = strcmp(status, "resolved") == 0 || strcmp(status, "ok") == 0;
	if (!take_text(labels, KEYS("alertname"), a->name, sizeof(a->name)))
		take_text(v, KEYS("name", "alertname", "title", "alert", "reason"), a->name,
			  sizeof(a->name));
	if (!take_text(annotations, KEYS("summary", "description", "message"), a->summary,
		       sizeof(a->summary)))
		take_text(v, KEYS("summary", "description", "message"), a->summary,
			  sizeof(a->summary));
	set_name(a);
	rc = moment_of(v, KEYS("startsAt", "starts_at", "time", "at"), now_ns, &starts_ns, err);
	if (rc)
		return rc;
	set_beginning(a, starts_ns, now_ns);
	take_text(v, KEYS("fingerprint", "id", "key"), posted, sizeof(posted));
	set_for(a, labels);
	set_for(a, annotations);
	set_for(a, v);
	set_labels(a, labels);
	set_key(a, posted, labels);
	return 0;
}

/* *n: 0 where it neither starts nor ends an alert. */
static int parse_pagerduty(struct json_value event, uint64_t now_ns, struct alert *a, uint32_t *n,
			   struct err *err)
{
	struct json_value data = json_member(event, "data");
	char type[60], posted[400];
	uint64_t starts_ns;
	int rc;

	*a = (struct alert){.for_ns = ALERT_NO_FOR};
	take_text(event, KEYS("event_type"), type, sizeof(type));
	a->resolved = strcmp(type, "incident.resolved") == 0;
	if (!a->resolved && strcmp(type, "incident.triggered") != 0)
		return 0;
	take_text(data, KEYS("title", "summary"), a->name, sizeof(a->name));
	set_name(a);
	rc = moment_of(data, KEYS("created_at"), now_ns, &starts_ns, err);
	if (!rc && !starts_ns)
		rc = moment_of(event, KEYS("occurred_at"), now_ns, &starts_ns, err);
	if (rc)
		return rc;
	set_beginning(a, starts_ns, now_ns);
	take_text(data, KEYS("id"), posted, sizeof(posted));
	set_key(a, posted, (struct json_value){0});
	*n = 1;
	return 0;
}

int alerts_parse(const struct buf *body, uint64_t now_ns, struct alerts *out, struct err *err)
{
	struct json_value all, event, list, item = {0};
	int rc = 0;

	out->n = out->left_out = 0;
	if (!body->len || strlen(body->data) != body->len || !json_read(body->data, &all) ||
	    *all.at != '{')
		return err_set(err, ERR_FORMAT, "the body is no JSON object");
	event = json_member(all, "event");
	list = json_member(all, "alerts");
	if (event.at && *event.at == '{')
		return parse_pagerduty(event, now_ns, &out->items[0], &out->n, err);
	if (!list.at)
		return parse_alert(all, now_ns, &out->items[out->n++], err);
	while (!rc && (item = json_next(list, item)).at) {
		if (*item.at != '{')
			continue;
		if (out->n == ALERTS_MAX)
			out->left_out++;
		else
			rc = parse_alert(item, now_ns, &out->items[out->n++], err);
	}
	if (!rc && !out->n)
		rc = err_set(err, ERR_FORMAT, "there is no alert in the body: \"alerts\" is no "
			     "list of objects");
	return rc;
}
