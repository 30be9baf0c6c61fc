#include "ship/ship.h"

#include "base/array.h"
#include "base/json.h"
#include "net/postgresql.h"
#include "ship/past.h"
#include "store/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_S 5u
#define RETRY_MAX_S 900u
#define RETRY_AFTER_MAX_S 3600u
#define LOCK_WAIT_NS (20 * NS_PER_SEC)

/* How a target stands in this round. */
struct lane {
	struct target target;
	struct ship_state before;
	struct ship_past past;               /* with ;History= */
	uint32_t past_wait_s;                /* until more of it is ready */
	bool done, failed;
	uint64_t refused;
};

struct round {
	const struct ship_config *cfg;
	struct store *store;
	struct net *net;
	struct lane *lanes;
	struct buf file;                     /* the path of what is being sent */
	struct id_queue {
		int64_t *ids;
		uint32_t n;
	} asked;                             /* of cfg->ids or cfg->again: instead of what waits */
	bool has_asked;
};

/* ---- one incident ---------------------------------------------------------------------------- */

static int export_file(struct round *r, const struct target *t, const struct incident *in,
		       struct err *err)
{
	struct export_options options = {.stream = STREAM_CPU, .annotate = true, .ids = true,
					 .top = 10};
	struct out *out = NULL;
	int rc = out_open(r->file.data, false, &out, err);

	if (rc)
		return rc;
	rc = t->exporter->write(in, &options, out, err);
	if (!rc)
		return out_close(out, err);
	out_abandon(out);
	return rc;
}

/* Its file has no name any more once it is open: a kill leaves nothing behind. */
static int make_parcel(struct round *r, const struct target *t, struct parcel *p, struct err *err)
{
	const struct incident_head *head = p->head;
	struct os_file_info info = {0};
	int rc;

	os_remove(r->file.data, NULL);       /* what a kill has left while it was made */
	target_put_name(t, head, &p->name);
	rc = buf_check(&p->name, "a name", err);
	if (!rc)
		rc = p->in ? export_file(r, t, p->in, err)
				 : store_copy_to_file(r->store, head->id, r->file.data, err);
	if (!rc)
		rc = os_open(r->file.data, OS_READ_PLAIN, &p->file, err);
	os_remove(r->file.data, NULL);
	if (!rc)
		rc = os_file_info(p->file, &info, err);
	p->bytes = info.size_bytes;
	return rc ? rc : sha256_file(p->file, 0, p->bytes, p->sha256, err);
}

/* How far something that goes in parts has come. */
struct progress {
	struct store *store;
	const char *target, *uuid;
	struct ship_past *past;              /* an interval of the history; or NULL */
};

static int keep_progress(void *ctx, uint32_t parts, struct err *err)
{
	const struct progress *at = ctx;

	if (!at->past)
		return store_ship_keep(at->store, at->target, at->uuid, parts, err);
	at->past->parts = parts;
	return store_ship_note_past(at->store, at->target, at->past, NULL, 0, err);
}

static bool is_passing(int status)
{
	return status == 408 || status == 425 || status == 429 || status / 100 == 5;
}

/* The target's fault, not the incident's. */
static bool is_targets(int status)
{
	return status == 401 || status == 403 || status == 404 || status == 407 ||
	       status / 100 == 3;
}

/* "503: the first line that the server said" */
static void put_answer(const struct net_answer *a, struct buf *out)
{
	const char *text = buf_text(&a->body);
	size_t n = strcspn(text, "\r\n"), i;

	buf_printf(out, "the server says %d", a->status);
	if (a->status / 100 == 3)
		buf_printf(out, ", go to %s", a->location);
	if (n)
		buf_puts(out, ": ");
	for (i = 0; i < n && i < 200; i++)
		buf_putc(out, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
}

static uint64_t wait_s(const struct target *t, const struct net_answer *a, uint32_t failures)
{
	uint64_t s = t->retry_s ? t->retry_s : RETRY_S, chance = 0;

	if (is_targets(a->status))
		s = t->retry_s ? s : RETRY_MAX_S;
	else
		for (; failures && s < RETRY_MAX_S; failures--)
			s *= 2;
	s = s < RETRY_MAX_S ? s : RETRY_MAX_S;
	os_random(&chance, sizeof(chance), NULL);
	s -= chance % (s / 2 + 1);
	if (a->retry_after_s > s)
		s = a->retry_after_s < RETRY_AFTER_MAX_S ? a->retry_after_s : RETRY_AFTER_MAX_S;
	return s;
}

static void tell(const struct round *r, bool bad, const struct lane *l, const char *what,
		 const char *why)
{
	struct buf text = {0};

	buf_printf(&text, "%s%s%s%s", buf_text(&l->target.name), *what ? ": " : "", what, why);
	r->cfg->tell(r->cfg->ctx, bad, buf_text(&text));
	buf_free(&text);
}

/* With its time, as people's have. One that has no room is in the log all the same. */
static void add_remark(struct round *r, const struct parcel *p, uint64_t now_ns)
{
	char now[OS_TIME_TEXT_BYTES];
	struct buf line = {0};

	os_time_text(now_ns, now);
	buf_printf(&line, "%.19sZ %s", now, buf_text(&p->remark));
	if (!buf_check(&line, "a remark", NULL))
		store_add_remark(r->store, p->head->id, line.data, NULL);
	buf_free(&line);
}

static void put_what(const struct incident_head *head, const struct past_interval *interval,
		     struct buf *out)
{
	char from[OS_TIME_TEXT_BYTES], until[OS_TIME_TEXT_BYTES];

	if (!interval) {
		buf_printf(out, "incident %" PRId64 " ", head->id);
		return;
	}
	os_time_text(interval->from_ns, from);
	os_time_text(interval->until_ns, until);
	buf_printf(out, "the history from %.19sZ to %.19sZ ", from, until);
}

static int note_interval(struct round *r, struct lane *l, const struct past_interval *interval,
			 const struct ship_note *note, uint64_t now_ns, struct err *err)
{
	struct ship_past *past = &l->past;

	past->parts = note->state == SHIP_WAITING ? note->parts : 0;
	past->sent += note->state == SHIP_SENT;
	past->refused += note->state == SHIP_REFUSED;
	if (note->state != SHIP_WAITING) {
		past->file = interval->file;
		past->next_wall_ns = interval->until_ns;
	}
	return store_ship_note_past(r->store, buf_text(&l->target.name), past, note, now_ns, err);
}

/* What came of it, in the store and in the log. rc: of sending. interval: or NULL */
static int conclude(struct round *r, struct lane *l, const struct parcel *p,
		    const struct past_interval *interval, const struct net_answer *a, int rc,
		    const struct err *why, struct err *err)
{
	struct ship_note note = {.uuid = p->head->uuid, .parts = p->parts,
				 .sha256 = *p->sha256 ? p->sha256 : NULL};
	uint64_t now = os_wall_ns(), seconds = 0;
	struct buf said = {0}, what = {0};
	int noted;

	put_what(p->head, interval, &what);
	if (p->left) {
		note.state = SHIP_LEFT;
	} else if (!rc && a->status / 100 == 2) {
		note.state = SHIP_SENT;
	} else {
		if (rc)
			buf_puts(&said, why->text);
		else
			put_answer(a, &said);
		note.answer = buf_text(&said);
		note.state = !rc && !is_passing(a->status) && !is_targets(a->status)
				     ? SHIP_REFUSED : SHIP_WAITING;
		/* What cannot be made a file now cannot later. */
		if (rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_NOT_FOUND)
			note.state = SHIP_REFUSED;
	}
	if (note.state == SHIP_WAITING) {
		seconds = wait_s(&l->target, a, l->before.failures);
		note.due_wall_ns = now + seconds * NS_PER_SEC;
		l->failed = l->done = true;
	}
	noted = interval ? note_interval(r, l, interval, &note, now, err)
			 : store_ship_note(r->store, buf_text(&l->target.name), &note, now, err);
	if (note.state == SHIP_REFUSED) {
		l->refused++;
		buf_puts(&what, "is refused: ");
		tell(r, true, l, buf_text(&what), note.answer);
	} else if (note.state == SHIP_WAITING) {
		if (p->asked)
			buf_puts(&what, "is not sent yet: ");
		else
			buf_printf(&what, "is not sent yet, and tried again in %" PRIu64 " s: ",
				   seconds);
		if (!r->cfg->due_only || !l->before.failures ||
		    strcmp(l->before.answer, note.answer) != 0)
			tell(r, true, l, buf_text(&what), note.answer);
	} else if (!p->left && (!r->cfg->due_only || l->before.failures || p->remark.len)) {
		if (p->remark.len)
			buf_printf(&what, "is kept there, too: %s", buf_text(&p->remark));
		else if (l->target.kind->database)
			buf_printf(&what, "is sent, %" PRIu32 " rows", p->rows);
		else if (l->target.kind->profiler)
			buf_printf(&what, "is sent as %" PRIu32 " profiles", p->parts);
		else
			buf_printf(&what, "is sent, %" PRIu64 " KB", (p->bytes + 1023) / 1024);
		tell(r, false, l, buf_text(&what), "");
	}
	if (note.state != SHIP_WAITING)
		l->before.failures = 0;
	/* Asked again, it says the same, but for the clock. */
	buf_reset(&said);
	buf_put(&said, buf_text(&p->remark), strcspn(buf_text(&p->remark), ";"));
	if (!noted && said.len && !(p->head->remarks &&
				    strstr(p->head->remarks, buf_text(&said))))
		add_remark(r, p, now);
	buf_free(&said);
	buf_free(&what);
	return noted;
}

/* p: it is loaded; p->in is NULL for kinds that need no more than its head. */
static int send_parcel(struct round *r, struct lane *l, struct parcel *p,
		       const struct past_interval *interval, int loaded, struct err *why,
		       struct err *err)
{
	const struct target_kind *kind = l->target.kind;
	struct net_answer a = {.status = 0};
	int rc = loaded;

	if (!rc && !kind->profiler && !kind->database && !kind->peer)
		rc = make_parcel(r, &l->target, p, why);
	if (!rc)
		rc = kind->send(&l->target, r->net, p, &a, why);
	rc = rc == ERR_MEMORY ? err_set(err, ERR_MEMORY, "%s", why->text)
			      : conclude(r, l, p, interval, &a, rc, why, err);
	os_close(p->file);
	buf_free(&p->remark);
	buf_free(&p->name);
	net_answer_free(&a);
	return rc;
}

static int send_one(struct round *r, struct lane *l, int64_t id, struct err *err)
{
	const struct target *t = &l->target;
	struct incident_head head = {0};
	struct progress at = {.store = r->store, .target = buf_text(&t->name)};
	struct parcel p = {.keep = keep_progress, .ctx = &at, .head = &head,
			   .asked = r->has_asked};
	struct incident in = {0};
	struct err why = {0};
	int loaded = 0, rc = store_head(r->store, id, &head, err);

	at.uuid = head.uuid;
	if (!rc)
		rc = store_ship_parts(r->store, at.target, at.uuid, &p.parts, err);
	if (!rc) {
		if (t->kind->profiler || t->kind->database || t->exporter) {
			p.in = &in;
			loaded = store_load(r->store, id, &in, &why);
		}
		rc = send_parcel(r, l, &p, NULL, loaded, &why, err);
	}
	incident_free(&in);
	incident_head_free(&head);
	return rc;
}

/* Nobody can send it any more. */
static void tell_missed(struct round *r, struct lane *l, const struct past_interval *i)
{
	const struct past_interval missed = {.from_ns = i->missed_from_ns, .until_ns = i->from_ns};
	uint64_t lost = (missed.until_ns - missed.from_ns) / NS_PER_SEC / l->target.history_s;
	struct buf what = {0}, why = {0};

	if (*i->unreadable)
		buf_printf(&why, "is not sent: %s cannot be read; 'recorder verify --store' on it "
			   "says why", i->unreadable);
	else
		buf_puts(&why, "is not sent: it was deleted before, or there was none");
	if (i->missed_from_ns)
		put_what(NULL, &missed, &what);
	else
		buf_puts(&what, "a part of the history ");
	l->past.lost += i->missed_from_ns && lost ? lost : 1;
	tell(r, true, l, buf_text(&what), buf_text(&why));
	buf_free(&what);
	buf_free(&why);
	l->past.file = i->file;
	l->past.next_wall_ns = i->from_ns;
	l->past.parts = 0;
}

/* The next interval of the history. ERR_NOT_FOUND, without a sentence: none is ready. */
static int send_interval(struct round *r, struct lane *l, struct err *err)
{
	struct progress at = {.store = r->store, .target = buf_text(&l->target.name),
			      .past = &l->past};
	struct parcel p = {.keep = keep_progress, .ctx = &at};
	struct past_interval interval;
	struct incident in = {0};
	struct err why = {0};
	uint64_t chance[2];
	int loaded, rc = past_next(r->cfg->store_path, &l->past,
				   l->target.history_s * NS_PER_SEC, os_wall_ns(), &interval,
				   &l->past_wait_s, err);

	if (!rc && !*l->past.series) {
		rc = os_random(chance, sizeof(chance), err);
		snprintf(l->past.series, sizeof(l->past.series), "%016" PRIx64 "%016" PRIx64,
			 chance[0], chance[1]);
		/* Kept before anything is sent: after a kill it must be the same. */
		if (!rc)
			rc = store_ship_note_past(r->store, at.target, &l->past, NULL, 0, err);
	}
	if (rc)
		return rc;
	if (interval.missed_from_ns || *interval.unreadable)
		tell_missed(r, l, &interval);
	loaded = past_load(r->cfg->store_path, &l->past, &interval, &in, &why);
	p.in = &in;
	p.head = &in.head;
	p.parts = l->past.parts;
	rc = send_parcel(r, l, &p, &interval, loaded, &why, err);
	incident_free(&in);
	return rc;
}

/* ---- a round --------------------------------------------------------------------------------- */

static int add_asked(void *ctx, const struct incident_head *h)
{
	struct round *r = ctx;
	uint32_t i;

	for (i = 0; i < r->cfg->nids && r->cfg->ids[i] != h->id; i++)
		;
	if ((r->cfg->ids && i == r->cfg->nids) || h->trigger_wall_ns < r->cfg->since_wall_ns ||
	    h->state == INCIDENT_OPEN)
		return 0;
	if (ARRAY_NEXT(r->asked.ids, r->asked.n))
		return 1;
	r->asked.ids[r->asked.n++] = h->id;
	return 0;
}

/* The number of the turn chooses among what was asked for: newest first in the list. */
static int next_of(struct round *r, const struct lane *l, uint32_t turn, int64_t *id,
		   struct err *err)
{
	if (!r->has_asked)
		return store_ship_next(r->store, buf_text(&l->target.name), id, err);
	if (turn >= r->asked.n)
		return ERR_NOT_FOUND;
	*id = r->asked.ids[r->asked.n - 1 - turn];
	return 0;
}

static int prepare_lane(struct round *r, struct lane *l, struct err *err)
{
	const char *name = buf_text(&l->target.name);
	uint64_t now = os_wall_ns();
	struct buf text = {0};
	uint32_t lost = 0;
	int rc = store_ship_look(r->store, name, now, &lost, err);

	if (!rc)
		rc = store_ship_state(r->store, name, &l->before, err);
	if (!rc)
		rc = store_ship_past(r->store, name, &l->past, err);
	if (rc)
		return rc;
	if (lost) {
		buf_printf(&text, lost == 1 ? "%" PRIu32 " incident was deleted before it was sent"
			   : "%" PRIu32 " incidents were deleted before they were sent", lost);
		tell(r, true, l, buf_text(&text), "");
		buf_free(&text);
	}
	/* A clock that was set back must not make it wait for a day. */
	l->done = r->cfg->due_only && l->before.due_wall_ns > now &&
		  l->before.due_wall_ns - now <= RETRY_AFTER_MAX_S * NS_PER_SEC;
	return 0;
}

static void put_lane(const struct lane *l, const struct ship_state *is, struct json *j)
{
	uint64_t now = os_wall_ns(), due_s = 1;

	if (is->due_wall_ns > now)
		due_s = (is->due_wall_ns - now) / NS_PER_SEC + 1;
	else if (!is->n[SHIP_WAITING])
		due_s = l->past_wait_s;
	json_open(j, '{');
	json_key_str(j, "target", buf_text(&l->target.name));
	json_key_uint(j, "queued", is->n[SHIP_WAITING]);
	json_key_uint(j, "sent", is->n[SHIP_SENT]);
	json_key_uint(j, "refused", is->n[SHIP_REFUSED]);
	json_key_uint(j, "lost", is->n[SHIP_LOST]);
	json_key_uint(j, "failures", is->failures);
	if (is->n[SHIP_WAITING] || l->target.history_s)
		json_key_uint(j, "next_s", due_s ? due_s : 1);
	if (l->target.history_s) {
		char until[OS_TIME_TEXT_BYTES];

		os_time_text(l->past.next_wall_ns, until);
		json_key_uint(j, "history_sent", l->past.sent);
		json_key_uint(j, "history_refused", l->past.refused);
		json_key_uint(j, "history_lost", l->past.lost);
		json_key_str(j, "history_until", l->past.file ? until : "");
	}
	json_key_str(j, "said", is->answer);
	json_close(j, '}');
}

static int put_status(struct round *r, struct buf *out, struct err *err)
{
	struct json j = {.out = out};
	struct ship_state is;
	uint32_t i;
	int rc = 0;

	json_open(&j, '[');
	for (i = 0; !rc && i < r->cfg->ntargets; i++) {
		rc = store_ship_state(r->store, buf_text(&r->lanes[i].target.name), &is, err);
		if (!rc)
			put_lane(&r->lanes[i], &is, &j);
	}
	json_close(&j, ']');
	return rc ? rc : buf_check(out, "the state of shipping", err);
}

/* One thing for each target in turns: one that hangs does not hold up the others for long. */
static int take_turns(struct round *r, struct err *err)
{
	uint32_t turn, i, left = 1;
	int rc = 0;

	for (turn = 0; !rc && left; turn++) {
		for (i = left = 0; !rc && i < r->cfg->ntargets; i++) {
			struct lane *l = &r->lanes[i];
			int64_t id;

			if (l->done)
				continue;
			rc = next_of(r, l, turn, &id, err);
			if (!rc)
				rc = send_one(r, l, id, err);
			else if (rc == ERR_NOT_FOUND && !r->has_asked && l->target.history_s)
				l->done = (rc = send_interval(r, l, err)) == ERR_NOT_FOUND ||
					  l->failed;
			else
				l->done |= rc == ERR_NOT_FOUND;
			if (rc == ERR_NOT_FOUND)     /* it was deleted meanwhile */
				rc = 0;
			left += !l->done;
		}
	}
	return rc;
}

/* It goes with the process. */
static int take_lock(const char *store_path, struct os_file **lock, struct err *err)
{
	uint64_t end_ns = os_now_ns() + LOCK_WAIT_NS;
	struct buf path = {0};
	int rc;

	buf_printf(&path, "%s.ship.lock", store_path);
	rc = buf_check(&path, "a name", err);
	while (!rc && (rc = os_lock(path.data, lock, err)) == ERR_BUSY && os_now_ns() < end_ns) {
		os_sleep_ns(NS_PER_SEC / 5);
		rc = 0;
	}
	if (rc == ERR_BUSY)
		rc = err_set(err, ERR_BUSY, "another process still sends from %s; wait",
			     store_path);
	buf_free(&path);
	return rc;
}

static int open_lanes(struct round *r, struct err *err)
{
	bool needs_net = false;
	uint32_t i, k;
	int rc = 0;

	r->lanes = calloc(r->cfg->ntargets + 1u, sizeof(*r->lanes));
	if (!r->lanes)
		return err_memory(err, "for shipping");
	for (i = 0; !rc && i < r->cfg->ntargets; i++) {
		rc = target_parse(r->cfg->targets[i], &r->lanes[i].target, err);
		for (k = 0; !rc && k < i; k++)
			if (strcmp(buf_text(&r->lanes[k].target.name),
				   buf_text(&r->lanes[i].target.name)) == 0)
				rc = err_set(err, ERR_USAGE, "%s is named twice",
					     buf_text(&r->lanes[i].target.name));
		if (!rc)
			rc = target_load_secrets(&r->lanes[i].target, err);
		if (!rc && r->lanes[i].target.kind->database == DATABASE_POSTGRESQL)
			rc = pg_check(err);
		else
			needs_net = true;
	}
	return rc || !needs_net ? rc : net_open(&r->net, err);
}

static void close_round(struct round *r)
{
	uint32_t i;

	for (i = 0; r->lanes && i < r->cfg->ntargets; i++)
		target_free(&r->lanes[i].target);
	free(r->lanes);
	free(r->asked.ids);
	net_close(r->net);
	store_close(r->store);
	buf_free(&r->file);
}

int ship_check(char *const *targets, uint32_t n, struct err *err)
{
	const struct ship_config cfg = {.targets = targets, .ntargets = n};
	struct round r = {.cfg = &cfg};
	int rc = open_lanes(&r, err);

	close_round(&r);
	return rc;
}

int ship_check_peers(char *const *targets, uint32_t n, const char *rule, struct err *err)
{
	struct target t;
	bool found = false;
	uint32_t i;

	for (i = 0; !found && i < n; i++) {
		if (target_parse(targets[i], &t, NULL))
			continue;
		found = t.kind->peer && target_is_peer_of(&t, rule);
		target_free(&t);
	}
	return found ? 0 : err_set(err, ERR_USAGE, "'%.300s': no recorder is known that Peers= "
				   "names; give each with --ship 'peer+https://HOST:%u;Auth=FILE'",
				   rule, PEER_PORT);
}

int ship_run(const struct ship_config *cfg, struct buf *status, struct err *err)
{
	struct round r = {.cfg = cfg, .has_asked = cfg->ids || cfg->again};
	struct os_file *lock = NULL;
	uint32_t i;
	bool failed = false;
	int rc = open_lanes(&r, err);

	buf_printf(&r.file, "%s.shipping", cfg->store_path);
	if (!rc)
		rc = buf_check(&r.file, "a name", err);
	if (!rc)
		rc = store_open(cfg->store_path, STORE_EDIT, &r.store, err);
	if (!rc)
		rc = take_lock(cfg->store_path, &lock, err);
	if (!rc && r.has_asked)
		rc = store_list(r.store, add_asked, &r, err);
	if (!rc && r.has_asked && !r.asked.n)
		rc = err_set(err, ERR_NOT_FOUND, "there is no such incident in %s",
			     cfg->store_path);
	for (i = 0; !rc && i < cfg->ntargets; i++)
		rc = prepare_lane(&r, &r.lanes[i], err);
	if (!rc)
		rc = take_turns(&r, err);
	if (!rc)
		rc = put_status(&r, status, err);
	for (i = 0; !rc && i < cfg->ntargets; i++)
		failed |= r.lanes[i].failed || r.lanes[i].refused;
	if (!rc && failed)
		rc = cfg->due_only ? 0 : err_set(err, ERR_IO, "some failed: see above");
	close_round(&r);
	os_close(lock);
	return rc;
}
