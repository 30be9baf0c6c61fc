/* Judging rules made of rules: every event goes to the rules, then up the nodes. */
#include "triggers/composite_private.h"

#include "base/os.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

static void composite_close(struct trigger *t)
{
	struct composite *c = (struct composite *)t;
	uint16_t i;

	for (i = 0; i < c->nnodes; i++) {
		free(c->nodes[i].rate);
		free(c->nodes[i].values);
	}
	for (i = 0; i < c->nrules; i++) {
		trigger_close(c->rules[i].trigger);
		free(c->rules[i].name);
	}
}

static int composite_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	struct composite *c = (struct composite *)t;
	int rc = composite_parse(c, env, err);
	uint16_t i;

	for (i = 0; i < c->nrules; i++)
		t->kinds |= c->rules[i].trigger->kinds;
	return rc;
}

static int composite_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	const struct composite *c = (const struct composite *)t;
	uint16_t i;
	int rc = 0;

	for (i = 0; !rc && i < c->nrules; i++)
		rc = c->rules[i].trigger->ops->needs(c->rules[i].trigger, out, err);
	return rc;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Move a window on to this time: empty each slot that a new one takes the place of. */
static void advance(void *window, uint64_t *newest, unsigned nslots, uint64_t slot,
		    void (*empty)(void *window, unsigned slot))
{
	if (slot > nslots && *newest < slot - nslots)
		*newest = slot - nslots;
	while (*newest < slot)
		empty(window, (unsigned)(++*newest % nslots));
}

static void empty_rate_slot(void *window, unsigned slot)
{
	((struct rate *)window)->counts[slot] = 0;
}

static void rate_judge(struct node *n, bool happened, uint64_t now_ns)
{
	struct rate *r = n->rate;
	uint64_t total = 0;
	unsigned i;

	if (!r->begun_ns)
		r->begun_ns = now_ns;
	advance(r, &r->slot, RATE_BUCKETS, now_ns / (n->time_ns / RATE_BUCKETS + 1),
		empty_rate_slot);
	if (happened)
		r->counts[r->slot % RATE_BUCKETS]++;
	for (i = 0; i < RATE_BUCKETS; i++)
		total += r->counts[i];
	n->value = (double)total / ((double)n->time_ns / 1e9) * n->unit_sec;
	n->now = threshold_hit(&n->limit, n->value) ? IS_TRUE : IS_FALSE;
	/* A low rate means nothing until a whole window has passed. */
	if (threshold_wants_small(&n->limit) && now_ns - r->begun_ns < n->time_ns)
		n->now = IS_UNKNOWN;
}

#define SMALLEST 1e-3

static unsigned bucket_of(double v)
{
	double b = v > SMALLEST ? 32 * log2(v / SMALLEST) : 0;

	return b < QUANTILE_BUCKETS - 1 ? (unsigned)b : QUANTILE_BUCKETS - 1;
}

/* The middle of a bucket; 0 for the lowest, which also holds zero and negative values. */
static double bucket_value(unsigned b)
{
	return b ? SMALLEST * pow(2, (b + 0.5) / 32) : 0;
}

static void empty_quantile_slot(void *window, unsigned slot)
{
	struct quantile *q = window;
	unsigned b;

	for (b = 0; q->totals[slot] && b < QUANTILE_BUCKETS; b++) {
		q->sums[b] -= q->counts[slot][b];
		q->counts[slot][b] = 0;
	}
	q->total -= q->totals[slot];
	q->totals[slot] = 0;
}

static double quantile_now(const struct node *n)
{
	const struct quantile *q = n->values;
	uint64_t seen = 0, wanted = (uint64_t)ceil(n->quantile * (double)q->total);
	unsigned b;

	for (b = 0; q->total && b < QUANTILE_BUCKETS; b++) {
		seen += q->sums[b];
		if (seen >= wanted)
			return bucket_value(b);
	}
	return NAN;
}

static void quantile_judge(struct node *n, const struct sense *sense, uint64_t now_ns)
{
	struct quantile *q = n->values;
	unsigned slot, b;

	advance(q, &q->slot, QUANTILE_SLOTS, now_ns / (n->time_ns / QUANTILE_SLOTS + 1),
		empty_quantile_slot);
	if (sense->measured && sense->value == sense->value) {
		slot = (unsigned)(q->slot % QUANTILE_SLOTS);
		b = bucket_of(sense->value);
		q->counts[slot][b]++;
		q->sums[b]++;
		q->totals[slot]++;
		q->total++;
	}
	n->value = quantile_now(n);
	if (n->value != n->value)
		n->now = IS_UNKNOWN;
	else
		n->now = threshold_hit(&n->limit, n->value) ? IS_TRUE : IS_FALSE;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum truth both(enum truth a, enum truth b)
{
	if (a == IS_FALSE || b == IS_FALSE)
		return IS_FALSE;
	return a == IS_TRUE && b == IS_TRUE ? IS_TRUE : IS_UNKNOWN;
}

static enum truth either(enum truth a, enum truth b)
{
	if (a == IS_TRUE || b == IS_TRUE)
		return IS_TRUE;
	return a == IS_FALSE && b == IS_FALSE ? IS_FALSE : IS_UNKNOWN;
}

static enum truth opposite(enum truth a)
{
	return a == IS_UNKNOWN ? a : a == IS_TRUE ? IS_FALSE : IS_TRUE;
}

/* Whether this event is the moment, or makes the state true. */
static bool node_comes(const struct node *n)
{
	return n->is_state ? n->now == IS_TRUE && n->before != IS_TRUE : n->moment;
}

static bool node_holds(const struct node *n)
{
	return n->is_state ? n->now == IS_TRUE : n->moment;
}

static void judge_and(struct node *n, const struct node *a, const struct node *b)
{
	if (n->is_state)
		n->now = both(a->now, b->now);
	else
		n->moment = node_holds(a) && node_holds(b);
}

static void judge_or(struct node *n, const struct node *a, const struct node *b)
{
	if (n->is_state)
		n->now = either(a->now, b->now);
	else
		n->moment = node_comes(a) || node_comes(b);
}

/* The left one must have come with an earlier event. Each left one counts once. */
static void judge_then(struct node *n, const struct node *a, const struct node *b, uint64_t now_ns)
{
	n->moment = node_comes(b) && n->last_set && now_ns >= n->last_ns &&
		    now_ns - n->last_ns <= n->time_ns;
	if (n->moment)
		n->last_set = false;
	if (node_comes(a)) {
		n->last_set = true;
		n->last_ns = now_ns;
	}
}

static void judge_for(struct node *n, const struct node *a, uint64_t now_ns)
{
	if (a->now != IS_TRUE) {
		n->since_set = false;
		n->now = a->now;
		return;
	}
	if (!n->since_set || now_ns < n->since_ns) {
		n->since_set = true;
		n->since_ns = now_ns;
	}
	n->now = now_ns - n->since_ns >= n->time_ns ? IS_TRUE : IS_FALSE;
}

static void judge_within(struct node *n, const struct node *a, uint64_t now_ns)
{
	if (node_holds(a)) {
		n->last_set = true;
		n->last_ns = now_ns;
	}
	n->now = n->last_set && now_ns - n->last_ns <= n->time_ns ? IS_TRUE : IS_FALSE;
}

static void judge_node(struct composite *c, struct node *n, uint64_t now_ns)
{
	const struct node *a = &c->nodes[n->left], *b = &c->nodes[n->right];
	const struct rule_part *rule = &c->rules[n->rule];

	n->before = n->now;
	switch ((enum node_type)n->type) {
	case NODE_RULE:
		n->now = rule->state;
		n->moment = !n->is_state && rule->sense.hit;
		break;
	case NODE_NOT:
		n->now = opposite(a->now);
		break;
	case NODE_AND:
		judge_and(n, a, b);
		break;
	case NODE_OR:
		judge_or(n, a, b);
		break;
	case NODE_THEN:
		judge_then(n, a, b, now_ns);
		break;
	case NODE_FOR:
		judge_for(n, a, now_ns);
		break;
	case NODE_WITHIN:
		judge_within(n, a, now_ns);
		break;
	case NODE_RATE:
		rate_judge(n, rule->sense.hit, now_ns);
		break;
	case NODE_QUANTILE:
		quantile_judge(n, &rule->sense, now_ns);
		break;
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Ask each rule what the event means to it; true = it means something to one of them. */
static bool sense_rules(struct composite *c, const struct event *e)
{
	struct buf why = {0};
	bool any = false;
	uint16_t i;

	for (i = 0; i < c->nrules; i++) {
		struct rule_part *part = &c->rules[i];
		struct trigger *t = part->trigger;

		part->sense = (struct sense){.value = NAN};
		if (!(t->kinds >> e->kind & 1))
			continue;
		buf_reset(&why);
		t->ops->sense(t, e, &why, &part->sense);
		if (!part->sense.measured && !part->sense.hit && !part->sense.absent)
			continue;
		any = true;
		part->state = part->sense.hit ? IS_TRUE : IS_FALSE;
		if (part->sense.absent)
			part->state = IS_UNKNOWN;
		if (!part->sense.hit)
			continue;
		part->value = part->sense.value;
		snprintf(part->why, sizeof(part->why), "%s", buf_text(&why));
	}
	buf_free(&why);
	return any;
}

static void say_limit(const struct composite *c, const struct node *n, struct buf *why)
{
	char value[NUMBER_TEXT_BYTES], limit[NUMBER_TEXT_BYTES];
	const char *name = c->rules[n->rule].name;

	number_text(n->value, value);
	number_text(n->limit.limit, limit);
	if (n->type == NODE_RATE)
		buf_printf(why, "; rate(%s) was %s a%s, limit %s %s", name, value,
			   n->unit_sec > 60 ? "n hour" : n->unit_sec > 1 ? " minute" : " second",
			   compare_text(n->limit.compare), limit);
	else
		buf_printf(why, "; p%g(%s) was %s, limit %s %s", n->quantile * 100, name, value,
			   compare_text(n->limit.compare), limit);
}

static void say_why(struct composite *c, struct buf *why)
{
	uint16_t i;

	buf_puts(why, c->base.spec);
	for (i = 0; i < c->nrules; i++)
		if (*c->rules[i].why)
			buf_printf(why, "; %s: %s", c->rules[i].name, c->rules[i].why);
	for (i = 0; i < c->nnodes; i++)
		if (c->nodes[i].rate || c->nodes[i].values)
			say_limit(c, &c->nodes[i], why);
}

/* Whether it fires now, apart from the windows of incidents. */
static bool root_fires(struct composite *c)
{
	const struct node *root = &c->nodes[c->root];
	bool rises;

	if (!root->is_state)
		return root->moment;
	rises = root->now == IS_TRUE && !c->was_true;
	c->was_true = root->now == IS_TRUE;
	/* A state that became true in the window, and still is, fires after it. */
	if (c->owed && !c->base.in_window) {
		c->owed = false;
		return c->was_true;
	}
	return rises;
}

static bool composite_feed(struct trigger *t, const struct event *e, struct buf *why)
{
	struct composite *c = (struct composite *)t;
	bool touched = sense_rules(c, e);
	uint16_t i;

	if (!touched && e->kind != EVENT_TICK)
		return false;
	t->counts.seen += touched;
	for (i = 0; i < c->nnodes; i++)
		judge_node(c, &c->nodes[i], e->time_ns);
	if (!root_fires(c))
		return false;
	t->counts.matched++;
	if (t->in_window) {
		t->counts.covered++;
		c->owed = c->nodes[c->root].is_state;
		return false;
	}
	t->in_window = true;
	say_why(c, why);
	for (i = 0; i < c->nrules; i++)
		if (c->rules[i].sense.hit)
			t->value = c->rules[i].value;
	return true;
}

/* ---- status ---------------------------------------------------------------------------------- */

static void composite_status(const struct trigger *t, struct trigger_status *out)
{
	const struct composite *c = (const struct composite *)t;
	static const char *const truths[] = {
		[IS_FALSE] = "false", [IS_TRUE] = "true", [IS_UNKNOWN] = "?",
	};
	struct trigger_status part;
	struct buf line = {0};
	uint16_t i;

	for (i = 0; i < c->nrules; i++) {
		trigger_status(c->rules[i].trigger, &part);
		buf_printf(&line, "%s%s: %.60s", i ? "; " : "", c->rules[i].name,
			   c->rules[i].trigger->ops->is_state ? truths[c->rules[i].state]
							      : part.text);
		if (part.phase == TRIGGER_RESTING)
			out->phase = TRIGGER_RESTING;
	}
	buf_puts(&line, trigger_window_text(t));
	snprintf(out->text, sizeof(out->text), "%s", buf_text(&line));
	buf_free(&line);
}

static const struct trigger *composite_part(const struct trigger *t, unsigned i)
{
	const struct composite *c = (const struct composite *)t;

	return i < c->nrules ? c->rules[i].trigger : NULL;
}

const struct trigger_ops composite_trigger = {
	.name = "stop-on",
	.usage = "EXPRESSION over names of --rule: and, or, not, then, within, for, rate(), p99()",
	.summary = "keep an incident when rules come together",
	.bytes = sizeof(struct composite),
	.kinds = 1u << EVENT_TICK,
	.open = composite_open,
	.needs = composite_needs,
	.feed = composite_feed,
	.status = composite_status,
	.close = composite_close,
	.part = composite_part,
};
