#include "triggers/duration.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

int duration_head(struct duration *d, const struct spec *s)
{
	const char *title = d->base.ops->title;
	double ms;
	int rc = spec_number(s, title, s->text, s->head_len, &ms);

	if (rc)
		return rc;
	if (ms < 0)
		return err_set(s->err, ERR_USAGE, "%s: '%.60s' is below zero; write milliseconds, "
			       "like 100, or 0 for off", title, s->text);
	threshold_init(&d->threshold, COMPARE_OVER, ms);
	d->off = ms == 0;
	d->in_flight = true;
	return 0;
}

int duration_key(void *duration, struct spec *s)
{
	struct duration *d = duration;

	if (spec_key_is(s, "InFlight"))
		return spec_bool(s, &d->in_flight);
	if (spec_key_is(s, "Process"))
		return process_filter_parse(s->value, s->value_len, &d->base.processes, s->err);
	return threshold_key(&d->threshold, s);
}

int duration_ready(struct duration *d, const struct trigger_env *env, bool has_limit,
		   const struct spec *s)
{
	int rc = 0;

	if (has_limit)
		d->base.limit = &d->threshold;
	if (has_limit && !threshold_moves(&d->threshold))
		d->threshold.decay_hours = env->decay_hours;
	if (!d->base.processes.n && env->process)
		rc = process_filter_parse(env->process, strlen(env->process), &d->base.processes,
					  s->err);
	if (!rc && !d->off)
		rc = threshold_check(&d->threshold, s);
	return !rc && pairs_init(&d->pairs) ? spec_no_memory(s) : rc;
}

void duration_close(struct trigger *t)
{
	pairs_free(&((struct duration *)t)->pairs);
}

/* ---- judging --------------------------------------------------------------------------------- */

void ms_text(double ms, char out[NUMBER_TEXT_BYTES])
{
	size_t n;

	snprintf(out, NUMBER_TEXT_BYTES, "%.4f", ms);
	for (n = strlen(out); n && out[n - 1] == '0'; n--)
		out[n - 1] = '\0';
	if (n && out[n - 1] == '.')
		out[n - 1] = '\0';
}

static void put_process(const char *name, uint32_t pid, struct buf *out)
{
	if (*name)
		buf_printf(out, " of %s", name);
	if (pid)
		buf_printf(out, "%spid %" PRIu32 "%s", *name ? " (" : " of ", pid,
			   *name ? ")" : "");
}

void process_text(const struct process *process, struct buf *out)
{
	char label[PROCESS_LABEL_BYTES];

	if (process)
		put_process(process_label(process, label), process->pid, out);
}

void origin_text(const struct event *e, struct buf *out)
{
	process_text(e->process, out);
	if (e->thread)
		buf_printf(out, ", thread %" PRIu32, e->thread->tid);
}

static void move_clock(struct duration *d, uint64_t time_ns)
{
	if (d->base.limit)
		threshold_clock(d->base.limit, time_ns);
}

bool duration_wants(struct duration *d, const struct event *e)
{
	if (d->off)
		return false;
	move_clock(d, e->time_ns);
	return trigger_wants(&d->base, e->process);
}

static double ms_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / (double)NS_PER_MS : 0;
}

static void say_duration(const struct duration *d, const struct pair *pair, double ms,
			 const char *tense, struct buf *why)
{
	char text[NUMBER_TEXT_BYTES];

	ms_text(ms, text);
	buf_printf(why, "%s%s%s", d->what, *pair->text ? " " : "", pair->text);
	put_process(pair->process, pair->pid, why);
	buf_printf(why, " %s %s ms, over its limit of ", tense, text);
	threshold_text(d->base.limit, why);
	buf_puts(why, " ms");
	if (pair->tid)
		buf_printf(why, ", thread %" PRIu32, pair->tid);
}

/* Whether a value that was measured is a hit. */
static bool judge_duration(struct duration *d, double ms, uint64_t time_ns, struct sense *out)
{
	out->measured = true;
	out->value = ms;
	trigger_value(&d->base, ms, time_ns);
	out->hit = threshold_hit(d->base.limit, ms);
	return out->hit;
}

void duration_stop(struct duration *d, const struct pair_key *key, const struct event *e,
		   const char *extra, struct buf *why, struct sense *out)
{
	struct pair pair;

	if (!pairs_stop(&d->pairs, key, &pair)) {
		d->base.counts.orphans++;
		return;
	}
	d->base.counts.matched++;
	if (!judge_duration(d, ms_between(pair.start_ns, e->time_ns), e->time_ns, out))
		return;
	say_duration(d, &pair, out->value, "took", why);
	if (*extra)
		buf_printf(why, ", %s", extra);
}

void duration_group(struct duration *d, const struct event *e, const struct duration_group *group,
		    const char *extra, struct buf *why, struct sense *out)
{
	char sum[NUMBER_TEXT_BYTES], least[NUMBER_TEXT_BYTES];

	d->base.counts.matched += group->n;
	if (!judge_duration(d, group->least_ms, e->time_ns, out)) {
		if (threshold_hit(d->base.limit, group->sum_ms)) {
			d->ngroups++;
			if (group->sum_ms > d->group.sum_ms)
				d->group = *group;
		}
		return;
	}
	ms_text(group->sum_ms, sum);
	ms_text(group->least_ms, least);
	buf_puts(why, d->what);
	process_text(e->process, why);
	buf_printf(why,
		   ": %" PRIu64 " pauses, reported together, took %s ms in all, the longest at "
		   "least %s ms, over its limit of ", group->n, sum, least);
	threshold_text(d->base.limit, why);
	buf_puts(why, " ms");
	if (*extra)
		buf_printf(why, ", %s", extra);
}

static bool is_overdue(const struct duration *d, const struct pair *pair, uint64_t now_ns)
{
	return now_ns > pair->start_ns + IN_FLIGHT_GRACE_NS &&
	       threshold_hit(d->base.limit,
			     ms_between(pair->start_ns + IN_FLIGHT_GRACE_NS, now_ns));
}

/* All overdue starts together are one firing: what hangs seldom hangs alone. */
static void fire_overdue(struct duration *d, uint64_t now_ns, struct buf *why, struct sense *out)
{
	const struct pair *oldest;
	uint32_t others = 0;

	while ((oldest = pairs_oldest(&d->pairs)) != NULL && is_overdue(d, oldest, now_ns)) {
		if (!out->hit) {
			out->hit = out->measured = true;
			out->value = ms_between(oldest->start_ns, now_ns);
			trigger_value(&d->base, out->value, now_ns);
			say_duration(d, oldest, out->value, "is still open after", why);
		} else {
			others++;
		}
		pairs_drop_oldest(&d->pairs);
	}
	if (others)
		buf_printf(why, ", and %" PRIu32 " more have been open for longer than that limit",
			   others);
}

void duration_other(struct duration *d, const struct event *e, struct buf *why, struct sense *out)
{
	struct pairs *pairs = &d->pairs;

	if (e->kind == EVENT_PROCESS_EXIT)
		pairs_forget_process(pairs, e->process);
	if (e->kind != EVENT_TICK || d->off)
		return;
	move_clock(d, e->time_ns);
	pairs_expire(pairs, e->time_ns);
	if (d->in_flight)
		fire_overdue(d, e->time_ns, why, out);
	d->base.counts.lost = pairs->pushed_out + pairs->expired + pairs->refused;
}

/* ---- status ---------------------------------------------------------------------------------- */

static const char *none_text(const struct trigger_counts *counts)
{
	if (!counts->seen)
		return "no such event yet";
	return counts->dropped_process == counts->seen ? "no such event of the chosen processes yet"
						       : "none has ended yet";
}

void duration_status(const struct trigger *t, struct trigger_status *out)
{
	const struct duration *d = (const struct duration *)t;
	char text[NUMBER_TEXT_BYTES];
	struct buf line = {0};

	out->unit = "ms";
	if (d->off) {
		snprintf(out->text, sizeof(out->text), "off: its limit is 0");
		return;
	}
	if (t->value != t->value) {
		buf_puts(&line, none_text(&t->counts));
	} else {
		ms_text(t->value, text);
		buf_printf(&line, "%s ms", text);
	}
	buf_puts(&line, ", limit > ");
	threshold_text(d->base.limit, &line);
	buf_puts(&line, " ms");
	if (d->pairs.slots.used)
		buf_printf(&line, ", %" PRIu32 " open", d->pairs.slots.used);
	if (d->ngroups) {
		ms_text(d->group.sum_ms, text);
		buf_printf(&line, "; %" PRIu64
			   " reports of several may hide one over it (the longest: %" PRIu64
			   " in %s ms)", d->ngroups, d->group.n, text);
	}
	buf_puts(&line, trigger_window_text(t));
	snprintf(out->text, sizeof(out->text), "%s", buf_text(&line));
	buf_free(&line);
}
