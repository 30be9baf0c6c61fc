/*
 * Parsing expressions into nodes. A node comes after its operands, in the order of judging.
 *
 *	or      := and { "or" and }
 *	and     := then { "and" then }
 *	then    := factor { "then" factor "within" TIME }
 *	factor  := "not" factor | primary { "for" TIME | "within" TIME }
 *	primary := "(" or ")" | NAME | "rate" "(" NAME ")" OP NUMBER "/" UNIT [ "over" TIME ]
 *	         | "pNN" "(" NAME ")" OP NUMBER [ "us" | "ms" | "s" ] [ "over" TIME ]
 *
 * After "then", a "within" belongs to the sequence, not to the operand; parentheses change that.
 */
#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "triggers/composite_private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NESTING_MAX 24

struct parser {
	struct composite *c;
	const char *text, *at;               /* at: the next word */
	size_t len;                          /* of that word; 0 = the end */
	const struct trigger_env *env;
	struct err *err;
	unsigned nesting;
};

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static void look(struct parser *p)
{
	p->at += strspn(p->at, " \t");
	p->len = 0;
	while (is_word(p->at[p->len]))
		p->len++;
	if (!p->len && *p->at)
		p->len = strchr("<>", *p->at) && p->at[1] == '=' ? 2 : 1;
}

static void next(struct parser *p)
{
	p->at += p->len;
	look(p);
}

static bool word_is(const struct parser *p, const char *word)
{
	return strlen(word) == p->len && strncasecmp(p->at, word, p->len) == 0;
}

static bool take(struct parser *p, const char *word)
{
	if (!word_is(p, word))
		return false;
	next(p);
	return true;
}

/* "'cpu adn gc', column 5: 'adn': expected and, or ...". */
static int wrong(struct parser *p, const char *what)
{
	if (p->len)
		return err_set(p->err, ERR_USAGE, "--stop-on '%.200s', column %zu, at '%.*s': %s",
			       p->text, (size_t)(p->at - p->text) + 1,
			       p->len > 40 ? 40 : (int)p->len, p->at, what);
	return err_set(p->err, ERR_USAGE, "--stop-on '%.200s', column %zu, at its end: %s", p->text,
		       (size_t)(p->at - p->text) + 1, what);
}

static int no_memory(struct parser *p)
{
	return err_memory(p->err, "for the rule '%.200s'", p->text);
}

/* A number at the start of a word; *end = where it ends. */
static bool number_at(const struct parser *p, double *out, size_t *end)
{
	char copy[40] = "", *stop = copy;
	size_t n = 0;

	while (n < p->len && n < sizeof(copy) - 1 &&
	       (isdigit((unsigned char)p->at[n]) || p->at[n] == '.'))
		n++;
	memcpy(copy, p->at, n);
	*out = n ? strtod(copy, &stop) : 0;
	*end = n;
	return n && !*stop && isdigit((unsigned char)p->at[n - 1]);
}

static int parse_time(struct parser *p, uint64_t *out)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {
		{"ms", 1e-3}, {"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600},
		{"d", 86400},
	};
	double v;
	size_t n, i;

	if (!number_at(p, &v, &n))
		return wrong(p, "a time is expected, like 500ms, 5s, 2m or 1h");
	p->at += n;
	p->len -= n;
	if (!p->len)
		look(p);
	for (i = 0; i < COUNT_OF(units); i++) {
		if (!word_is(p, units[i].name))
			continue;
		v *= units[i].seconds;
		if (v < 1e-3 || v > 7 * 86400)
			return wrong(p, "a time must be between 1 ms and 7 days");
		*out = (uint64_t)(v * 1e9);
		next(p);
		return 0;
	}
	return wrong(p, "a unit of time is expected: ms, s, m, h or d");
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int add(struct parser *p, enum node_type type, bool is_state, uint16_t left, uint16_t right,
	       uint16_t *out)
{
	struct node *n = &p->c->nodes[p->c->nnodes];

	if (p->c->nnodes == COMPOSITE_NODES)
		return wrong(p, "the expression is too long");
	n->type = (uint8_t)type;
	n->is_state = is_state;
	n->left = left;
	n->right = right;
	n->now = n->before = IS_UNKNOWN;
	n->value = NAN;
	*out = p->c->nnodes++;
	return 0;
}

static const struct node *node(const struct parser *p, uint16_t number)
{
	return &p->c->nodes[number];
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Whether a qualifier (StopOnGCOverMsec, stop-on-gc-over-msec) is this kind's option. */
static bool is_qualifier(const char *option, const char *text, size_t n)
{
	size_t i = 0;

	for (;; option++, i++) {
		while (*option == '-')
			option++;
		while (i < n && text[i] == '-')
			i++;
		if (!*option || i == n)
			return !*option && i == n;
		if (tolower((unsigned char)*option) != tolower((unsigned char)text[i]))
			return false;
	}
}

static const struct trigger_ops *kind_of(const char *text, size_t n)
{
	size_t i;

	for (i = 0; triggers[i]; i++)
		if (triggers[i]->sense && is_qualifier(triggers[i]->name, text, n))
			return triggers[i];
	return is_qualifier("stop-on-event", text, n) ? trigger_kind("stop-on-etw-event") : NULL;
}

int named_rule_parse(const char *text, size_t *name_len, const struct trigger_ops **kind,
		     const char **spec, struct err *err)
{
	size_t n = 0, q;

	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	if (!n || text[n] != '=' || isdigit((unsigned char)text[0]))
		return err_set(err, ERR_USAGE, "--rule '%.200s' is not NAME=SPEC, like "
			       "'gc=StopOnGCOverMsec:100'; a name has letters, digits and _", text);
	*name_len = n;
	*spec = text + n + 1;
	q = strcspn(*spec, ":=");
	*kind = kind_of(*spec, q);
	if (*kind)
		*spec += q + ((*spec)[q] != '\0');
	else if (strncasecmp(*spec, "StopOn", 6) == 0 || strncasecmp(*spec, "stop-on", 7) == 0)
		return err_set(err, ERR_USAGE, "--rule '%.200s': no rule is called '%.*s'", text,
			       q > 60 ? 60 : (int)q, *spec);
	else
		*kind = trigger_kind("stop-on-perf-counter");
	return 0;
}

static int open_rule(struct parser *p, const char *text, size_t name_len,
		     const struct trigger_ops *kind, const char *spec, uint16_t *out)
{
	struct rule_part *part = &p->c->rules[p->c->nrules];
	struct trigger_env env = *p->env;
	char *name = text_dup(text, name_len);
	int rc;

	if (!name)
		return no_memory(p);
	env.min_sec = 0;                     /* "for 3s" does that here */
	rc = kind->open(spec, &env, &part->trigger, p->err);
	if (rc) {
		free(name);
		return rc == ERR_USAGE ? err_prefix(p->err, "--rule %.*s", (int)name_len, text)
				       : rc;
	}
	part->name = name;
	part->state = IS_UNKNOWN;
	part->value = NAN;
	*out = p->c->nrules++;
	return 0;
}

/* Whether a later --rule has the same name, which is the first len bytes. */
static bool is_named_again(const struct parser *p, uint32_t rule, size_t len)
{
	const char *name = p->env->rules[rule], *other;
	uint32_t i;

	for (i = rule + 1; i < p->env->nrules; i++) {
		other = p->env->rules[i];
		if (strncasecmp(other, name, len) == 0 && strcspn(other, "=") == strcspn(name, "="))
			return true;
	}
	return false;
}

/* The rule that the next word names; opened at its first use. */
static int parse_name(struct parser *p, uint16_t *out)
{
	const struct trigger_ops *kind;
	const char *spec;
	size_t len;
	uint32_t i;
	int rc;

	for (i = 0; i < p->c->nrules; i++) {
		if (!word_is(p, p->c->rules[i].name))
			continue;
		*out = (uint16_t)i;
		next(p);
		return 0;
	}
	for (i = 0; i < p->env->nrules; i++) {
		rc = named_rule_parse(p->env->rules[i], &len, &kind, &spec, p->err);
		if (rc)
			return rc;
		if (len != p->len || strncasecmp(p->env->rules[i], p->at, len) != 0)
			continue;
		if (is_named_again(p, i, len))
			return err_set(p->err, ERR_USAGE,
				       "--rule %.*s is given twice; a name stands for one rule",
				       len > 60 ? 60 : (int)len, p->env->rules[i]);
		if (p->c->nrules == COMPOSITE_RULES)
			return wrong(p, "too many different rules in one expression");
		rc = open_rule(p, p->env->rules[i], len, kind, spec, out);
		if (!rc)
			next(p);
		return rc;
	}
	return wrong(p, "no rule has this name; define it with --rule NAME=SPEC");
}

/* ---- rate() and p99() ------------------------------------------------------------------------ */

static int parse_compare(struct parser *p, struct threshold *t)
{
	static const struct {
		const char *text;
		enum compare compare;
	} all[] = {
		{">=", COMPARE_OVER_EQUAL}, {">", COMPARE_OVER}, {"<=", COMPARE_UNDER_EQUAL},
		{"<", COMPARE_UNDER},
	};
	double limit;
	size_t n, i;

	for (i = 0; i < 4 && !word_is(p, all[i].text); i++)
		;
	if (i == 4)
		return wrong(p, "a comparison is expected: > >= < or <=");
	next(p);
	if (!number_at(p, &limit, &n))
		return wrong(p, "a number is expected");
	threshold_init(t, all[i].compare, limit);
	p->at += n;
	p->len -= n;
	if (!p->len)
		look(p);
	return 0;
}

static int parse_argument(struct parser *p, uint16_t *rule)
{
	int rc;

	next(p);
	if (!take(p, "("))
		return wrong(p, "'(' and the name of a rule are expected");
	rc = parse_name(p, rule);
	if (!rc && !take(p, ")"))
		rc = wrong(p, "')' is expected");
	return rc;
}

static int parse_over(struct parser *p, uint64_t *window_ns)
{
	return take(p, "over") ? parse_time(p, window_ns) : 0;
}

static int parse_unit(struct parser *p, double *seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"hour", 3600}};
	size_t i;

	if (!take(p, "/"))
		return wrong(p, "a rate needs a unit: /s, /min or /h, as in > 10/s");
	for (i = 0; i < COUNT_OF(units); i++) {
		if (!take(p, units[i].name))
			continue;
		*seconds = units[i].seconds;
		return 0;
	}
	return wrong(p, "a rate needs a unit: /s, /min or /h, as in > 10/s");
}

static int parse_rate(struct parser *p, uint16_t *out)
{
	struct threshold limit = {0};
	double unit_sec = 1;
	uint64_t window_ns;
	uint16_t rule = 0;
	int rc = parse_argument(p, &rule);

	if (!rc && p->c->rules[rule].trigger->ops->is_state)
		rc = wrong(p, "rate() counts events, but this rule is on a counter; compare its "
			   "value with p50() or in the rule itself");
	if (!rc)
		rc = parse_compare(p, &limit);
	if (!rc)
		rc = parse_unit(p, &unit_sec);
	window_ns = (uint64_t)(unit_sec < 10 ? 10e9 : unit_sec * 1e9);
	if (!rc)
		rc = parse_over(p, &window_ns);
	if (!rc)
		rc = add(p, NODE_RATE, true, NODE_NONE, NODE_NONE, out);
	if (rc)
		return rc;
	p->c->nodes[*out].rule = rule;
	p->c->nodes[*out].limit = limit;
	p->c->nodes[*out].unit_sec = unit_sec;
	p->c->nodes[*out].time_ns = window_ns;
	p->c->nodes[*out].rate = calloc(1, sizeof(struct rate));
	return p->c->nodes[*out].rate ? 0 : no_memory(p);
}

/* "p99", "p99.9": a percentile over 0 and under 100. */
static bool is_quantile(const struct parser *p, double *q)
{
	char copy[10] = "", *end = copy;

	if (p->len < 2 || p->len >= sizeof(copy) || (p->at[0] | 32) != 'p' ||
	    !isdigit((unsigned char)p->at[1]) || p->at[p->len + strspn(p->at + p->len, " ")] != '(')
		return false;
	memcpy(copy, p->at + 1, p->len - 1);
	*q = strtod(copy, &end) / 100;
	return !*end && *q > 0 && *q < 1;
}

static int parse_quantile(struct parser *p, double q, uint16_t *out)
{
	struct threshold limit = {0};
	uint64_t window_ns = 60 * NS_PER_SEC;
	uint16_t rule = 0;
	int rc = parse_argument(p, &rule);

	if (!rc)
		rc = parse_compare(p, &limit);
	/* Durations are in ms. */
	if (!rc && take(p, "s"))
		limit.limit *= 1000;
	else if (!rc && take(p, "us"))
		limit.limit /= 1000;
	else if (!rc)
		take(p, "ms");
	if (!rc)
		rc = parse_over(p, &window_ns);
	if (!rc)
		rc = add(p, NODE_QUANTILE, true, NODE_NONE, NODE_NONE, out);
	if (rc)
		return rc;
	p->c->nodes[*out].rule = rule;
	p->c->nodes[*out].limit = limit;
	p->c->nodes[*out].quantile = q;
	p->c->nodes[*out].time_ns = window_ns;
	p->c->nodes[*out].values = calloc(1, sizeof(struct quantile));
	return p->c->nodes[*out].values ? 0 : no_memory(p);
}

/* ---- the grammar ----------------------------------------------------------------------------- */

static int parse_or(struct parser *p, uint16_t *out);

static int parse_rule(struct parser *p, uint16_t *out)
{
	uint16_t rule = 0;
	int rc;

	if (!p->len || !is_word(*p->at))
		return wrong(p, "the name of a rule, not, rate(), p99() or '(' is expected");
	rc = parse_name(p, &rule);
	if (!rc)
		rc = add(p, NODE_RULE, p->c->rules[rule].trigger->ops->is_state, NODE_NONE,
			 NODE_NONE, out);
	if (!rc)
		p->c->nodes[*out].rule = rule;
	return rc;
}

static int parse_primary(struct parser *p, uint16_t *out)
{
	double q;
	int rc;

	if (take(p, "(")) {
		rc = parse_or(p, out);
		if (!rc && !take(p, ")"))
			rc = wrong(p, "')', and, or, then, for or within is expected");
		return rc;
	}
	if (word_is(p, "rate") && p->at[p->len + strspn(p->at + p->len, " ")] == '(')
		return parse_rate(p, out);
	if (is_quantile(p, &q))
		return parse_quantile(p, q, out);
	return parse_rule(p, out);
}

static int parse_for(struct parser *p, uint16_t *out)
{
	uint16_t left = *out;
	uint64_t time_ns = 0;
	int rc;

	if (!node(p, left)->is_state)
		return wrong(p, "an event is a moment and has no length; write 'within' for 'for'");
	next(p);
	rc = parse_time(p, &time_ns);
	if (!rc)
		rc = add(p, NODE_FOR, true, left, NODE_NONE, out);
	if (!rc)
		p->c->nodes[*out].time_ns = time_ns;
	return rc;
}

static int parse_within(struct parser *p, uint16_t *out)
{
	uint16_t left = *out;
	uint64_t time_ns = 0;
	int rc;

	next(p);
	rc = parse_time(p, &time_ns);
	if (!rc)
		rc = add(p, NODE_WITHIN, true, left, NODE_NONE, out);
	if (!rc)
		p->c->nodes[*out].time_ns = time_ns;
	return rc;
}

static int parse_factor(struct parser *p, bool may_be_within, uint16_t *out)
{
	uint16_t left;
	int rc;

	if (++p->nesting > NESTING_MAX)
		return wrong(p, "the expression is too deep");
	if (take(p, "not")) {
		rc = parse_factor(p, may_be_within, out);
		left = *out;
		if (!rc && !node(p, left)->is_state)
			rc = wrong(p, "'not' needs a state, and an event is a moment; write "
				      "'not A within 10s'");
		if (!rc)
			rc = add(p, NODE_NOT, true, left, NODE_NONE, out);
	} else {
		rc = parse_primary(p, out);
		while (!rc && (word_is(p, "for") || (may_be_within && word_is(p, "within"))))
			rc = word_is(p, "for") ? parse_for(p, out) : parse_within(p, out);
	}
	p->nesting--;
	return rc;
}

static int parse_then(struct parser *p, uint16_t *out)
{
	uint16_t left, right = 0;
	uint64_t time_ns = 0;
	int rc = parse_factor(p, true, out);

	while (!rc && take(p, "then")) {
		left = *out;
		rc = parse_factor(p, false, &right);
		if (!rc && !take(p, "within"))
			rc = wrong(p, "'within' and a time are expected: A then B within 5s");
		if (!rc)
			rc = parse_time(p, &time_ns);
		if (!rc)
			rc = add(p, NODE_THEN, false, left, right, out);
		if (!rc)
			p->c->nodes[*out].time_ns = time_ns;
	}
	return rc;
}

/* Whether `rule`, or `not rule`, must be true for this node to be true. */
static bool demands(struct parser *p, uint16_t at, uint16_t rule, bool negated)
{
	const struct node *n = node(p, at);

	if (n->type == NODE_AND)
		return demands(p, n->left, rule, negated) || demands(p, n->right, rule, negated);
	if (n->type == NODE_NOT && negated)
		return node(p, n->left)->type == NODE_RULE && node(p, n->left)->rule == rule;
	return !negated && n->type == NODE_RULE && n->rule == rule;
}

/* "a and not a" is never true. Whether different rules exclude each other is not known. */
static bool excludes(struct parser *p, uint16_t left, uint16_t right)
{
	uint16_t rule;

	for (rule = 0; rule < p->c->nrules; rule++)
		if ((demands(p, left, rule, false) && demands(p, right, rule, true)) ||
		    (demands(p, left, rule, true) && demands(p, right, rule, false)))
			return true;
	return false;
}

static int parse_and(struct parser *p, uint16_t *out)
{
	uint16_t left, right = 0;
	bool state;
	int rc = parse_then(p, out);

	while (!rc && word_is(p, "and")) {
		left = *out;
		next(p);
		rc = parse_then(p, &right);
		if (!rc && !node(p, left)->is_state && !node(p, right)->is_state)
			rc = wrong(p, "two events never come at the same moment; write "
				   "'A within 5s and B' or 'A then B within 5s'");
		if (!rc && excludes(p, left, right))
			rc = wrong(p, "the part before this is never true: a rule and its 'not' "
				   "exclude each other");
		state = !rc && node(p, left)->is_state && node(p, right)->is_state;
		if (!rc)
			rc = add(p, NODE_AND, state, left, right, out);
	}
	return rc;
}

static int parse_or(struct parser *p, uint16_t *out)
{
	uint16_t left, right = 0;
	bool state;
	int rc;

	if (++p->nesting > NESTING_MAX)
		return wrong(p, "the expression is too deep");
	rc = parse_and(p, out);
	while (!rc && take(p, "or")) {
		left = *out;
		rc = parse_and(p, &right);
		/* Or with a moment is a moment: a state counts when it becomes true. */
		state = !rc && node(p, left)->is_state && node(p, right)->is_state;
		if (!rc)
			rc = add(p, NODE_OR, state, left, right, out);
	}
	p->nesting--;
	return rc;
}

int composite_parse(struct composite *c, const char *text, const struct trigger_env *env,
		    struct err *err)
{
	struct parser p = {.c = c, .text = text, .at = text, .env = env, .err = err};
	int rc;

	if (strlen(text) > 1000)
		return err_set(err, ERR_USAGE,
			       "--stop-on '%.100s...': an expression has at most 1000 characters",
			       text);
	look(&p);
	rc = parse_or(&p, &c->root);
	if (!rc && p.len)
		rc = wrong(&p, "and, or, then, for, within or the end is expected");
	return rc;
}
