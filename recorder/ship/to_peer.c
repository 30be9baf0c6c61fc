/*
 * The same window on another machine: its recorder is asked over HTTP (http/server.h) to make an
 * incident of it, of the group that the uuid of ours names. Asking again makes no second one.
 *
 * The window is sent in the peer's time. GET /clock tells that: of CLOCK_ASKS answers the quickest
 * counts, whose time is taken as that of the middle between question and answer; the peer's clock
 * is then known to half of what the answer took (as in NTP; RFC 5905, section 8).
 */
#include "ship/target.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/text.h"
#include "base/utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLOCK_ASKS 5u
#define CLOCK_MS 5000u                       /* a peer that is down holds up the others so long */
#define SNAPSHOT_MS 90000u
#define REASON_MAX 200u
#define WALL_MAX_NS 9.2e18                   /* of 2261: a signed number of 64 bits holds it */
#define ID_MAX 9e15                          /* whole numbers up to here are exact */

struct peer {
	struct target *t;
	struct net *net;
	struct net_answer *a;
	struct buf host;                     /* what it calls itself */
	double ahead_ns, within_ns;          /* its clock is ahead of ours; give or take */
};

/* Case is ignored; '*' is any text. */
static bool matches(const char *pattern, size_t n, const char *text, size_t m)
{
	for (; n && *pattern != '*'; n--, m--, pattern++, text++)
		if (!m || tolower((unsigned char)*pattern) != tolower((unsigned char)*text))
			return false;
	if (!n)
		return !m;
	for (;; text++, m--) {
		if (matches(pattern + 1, n - 1, text, m))
			return true;
		if (!m)
			return false;
	}
}

bool target_is_peer_of(const struct target *t, const char *rule)
{
	const char *at = rule ? strchr(rule, ';') : NULL, *host = strstr(t->url, "://") + 3;
	size_t n, m = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");

	while (at && !text_starts_fold(at, PEERS_KEY))
		at = strchr(at + 1, ';');
	for (at = at ? at + strlen(PEERS_KEY) : ""; *at && *at != ';'; at += n + (at[n] == ',')) {
		n = strcspn(at, ",;");
		if (matches(at, n, host, m))
			return true;
	}
	return false;
}

bool target_next_peer(const char **at, struct buf *out)
{
	size_t n = strcspn(*at, ",;"), i;
	const char *peer = *at;
	bool is_local = text_starts_fold(peer, "http://") ||
			target_host_is_local(peer, ":/?#,;");

	if (!n)
		return false;
	*at += n + (peer[n] == ',');
	for (i = 0; i + 3 < n && strncmp(peer + i, "://", 3) != 0; i++)
		;
	if (i + 3 < n) {
		n -= i + 3;
		peer += i + 3;
	}
	buf_printf(out, "peer+%s://", is_local ? "http" : "https");
	buf_put(out, peer, n);
	buf_puts(out, strchr(peer, ';') ? strchr(peer, ';') : "");
	return true;
}

/* A path below "https://web1", "https://web1:9427/" or "https://[::1]:9427". */
void target_put_peer_url(const struct target *t, const char *path, struct buf *out)
{
	const char *host = strstr(t->url, "://") + 3;
	size_t n = strcspn(host, "/?#"), literal = *host == '[' ? strcspn(host, "]") : 0;

	buf_put(out, t->url, (size_t)(host - t->url) + n);
	if (!memchr(host + literal, ':', n - literal))
		buf_printf(out, ":%u", PEER_PORT);
	buf_puts(out, path);
}

static int ask(struct peer *p, struct net_request *r, const char *path, struct err *err)
{
	struct buf url = {0};
	int rc;

	target_put_peer_url(p->t, path, &url);
	r->url = buf_text(&url);
	target_prepare(p->t, r);
	rc = buf_check(&url, "a URL", err);
	if (!rc)
		rc = net_ask(p->net, r, p->a, err);
	net_request_free(r);
	buf_free(&url);
	return rc;
}

static int read_clock(struct peer *p, uint64_t before_ns, uint64_t took_ns, struct err *err)
{
	struct json_value all;
	double wall_ns, within_ns = (double)took_ns / 2;

	if (!json_read(buf_text(&p->a->body), &all) ||
	    !json_number(json_member(all, "wall_ns"), &wall_ns) || !(wall_ns > 0) ||
	    wall_ns > WALL_MAX_NS)
		return err_set(err, ERR_FORMAT, "%s tells no clock: it is no recorder, or an older "
			       "one", buf_text(&p->t->name));
	if (p->within_ns >= 0 && within_ns >= p->within_ns)
		return 0;
	p->within_ns = within_ns;
	p->ahead_ns = wall_ns - (double)before_ns - within_ns;
	buf_reset(&p->host);
	json_put_text(json_member(all, "host"), &p->host);
	return 0;
}

/* a->status is not 200: it refuses. */
static int measure_clock(struct peer *p, struct err *err)
{
	unsigned i;
	int rc = 0;

	p->within_ns = -1;
	for (i = 0; !rc && i < CLOCK_ASKS; i++) {
		struct net_request r = {.method = "GET", .timeout_ms = CLOCK_MS};
		uint64_t before_ns = os_wall_ns(), start_ns = os_now_ns();

		rc = ask(p, &r, "/clock", err);
		if (!rc && p->a->status != 200)
			return 0;
		if (!rc)
			rc = read_clock(p, before_ns, os_now_ns() - start_ns, err);
	}
	return rc;
}

/* "3.000123 s ahead of" */
static void put_ahead(double ahead_ns, double within_ns, const char *other, struct buf *out)
{
	double apart_ns = ahead_ns < 0 ? -ahead_ns : ahead_ns;

	buf_printf(out, "%.6f s %s %s, to within %.6f s", apart_ns / 1e9,
		   ahead_ns < 0 ? "behind" : "ahead of", other, within_ns / 1e9);
}

static void put_moment(struct json *j, const char *key, const struct peer *p,
		       const struct incident_head *h, uint64_t time_ns)
{
	int64_t wall_ns = (int64_t)(h->trigger_wall_ns + (time_ns - h->trigger_ns));
	char text[40];

	snprintf(text, sizeof(text), "@%.6f", ((double)wall_ns + p->ahead_ns) / 1e9);
	json_key_str(j, key, text);
}

static void put_question(const struct peer *p, const struct incident_head *h, struct buf *out)
{
	struct json j = {.out = out};
	struct buf reason = {0};
	const char *text = h->reason && *h->reason ? h->reason : h->rule ? h->rule : "";

	buf_printf(&reason, "%s: ", h->host ? h->host : "?");
	utf8_put_clean(&reason, text, strlen(text), REASON_MAX);
	buf_puts(&reason, "; that clock is ");
	put_ahead(-p->ahead_ns, p->within_ns, "ours", &reason);
	json_open(&j, '{');
	/* What is recorded may end before the trigger, or begin after it. */
	put_moment(&j, "from", p, h, h->t0_ns < h->trigger_ns ? h->t0_ns : h->trigger_ns);
	put_moment(&j, "at", p, h, h->trigger_ns);
	put_moment(&j, "to", p, h, h->t1_ns > h->trigger_ns ? h->t1_ns : h->trigger_ns);
	json_key_str(&j, "group", h->uuid);
	json_key_str(&j, "reason", buf_text(&reason));
	json_close(&j, '}');
	buf_free(&reason);
}

static int ask_incident(struct peer *p, struct parcel *parcel, struct err *err)
{
	struct net_request r = {.method = "POST", .timeout_ms = SNAPSHOT_MS};
	struct buf question = {0};
	struct json_value all;
	double id = 0;
	int rc;

	put_question(p, parcel->head, &question);
	rc = buf_check(&question, "a question", err);
	if (!rc) {
		r.text = question.data;
		r.nbytes = question.len;
		net_header(&r, "Content-Type: application/json");
		rc = ask(p, &r, "/snapshot", err);
	}
	buf_free(&question);
	if (rc || p->a->status / 100 != 2)
		return rc;
	if (!json_read(buf_text(&p->a->body), &all) ||
	    !json_number(json_member(all, "incident"), &id) || id < 1 || id > ID_MAX)
		return err_set(err, ERR_FORMAT, "%s made no incident: %.200s",
			       buf_text(&p->t->name), buf_text(&p->a->body));
	/* All machines may have the same targets, themselves among them. */
	if (parcel->head->host && strcmp(buf_text(&p->host), parcel->head->host) == 0 &&
	    (int64_t)id == parcel->head->id) {
		parcel->left = true;
		return 0;
	}
	buf_printf(&parcel->remark, "incident %.0f of ", id);
	utf8_put_clean(&parcel->remark, buf_text(&p->host), p->host.len, 100);
	buf_printf(&parcel->remark, " (%s) has the same window; its clock is ",
		   buf_text(&p->t->name));
	put_ahead(p->ahead_ns, p->within_ns, "ours", &parcel->remark);
	return 0;
}

int target_send_to_peer(struct target *t, struct net *net, struct parcel *p, struct net_answer *a,
			struct err *err)
{
	struct peer peer = {.t = t, .net = net, .a = a};
	int rc = 0;

	if (!p->asked && !target_is_peer_of(t, p->head->rule)) {
		p->left = true;
		return 0;
	}
	rc = measure_clock(&peer, err);
	if (!rc && a->status == 200)
		rc = ask_incident(&peer, p, err);
	buf_free(&peer.host);
	return rc;
}
