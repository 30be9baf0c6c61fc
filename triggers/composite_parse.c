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

/* After its first error a parser takes nothing more: every word is the end. */
struct parser {
	struct composite *c;
	const char *text, *at;               /* at: the next word */
	size_t len;                          /* of that word; 0 = the end */
	const struct trigger_env *env;
	struct err *err;
	int rc;
	unsigned nesting;
};

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Find the word at p->at. */
static void find_word(struct parser *p)
{
	p->at += strspn(p->at, " \t");
	p->len = 0;
	while (is_word(p->at[p->len]))
		p->len++;
	if (!p->len && *p->at)
		p->len = strchr("<>", *p->at) && p->at[1] == '=' ? 2 : 1;
}

/* Move past the first n bytes of the word. */
static void skip_bytes(struct parser *p, size_t n)
{
	p->at += n;
	p->len -= n;
	if (!p->len)
		find_word(p);
}

static bool word_is(const struct parser *p, const char *word)
{
	return !p->rc && strlen(word) == p->len && strncasecmp(p->at, word, p->len) == 0;
}

static bool take_word(struct parser *p, const char *word)
{
	bool taken = word_is(p, word);

	if (taken)
		skip_bytes(p, p->len);
	return taken;
}

/* "--stop-on 'cpu adn gc', column 5, at 'adn': and, or, ... or the end is expected". */
static void fail(struct parser *p, const char *what)
{
	size_t column = (size_t)(p->at - p->text) + 1;

	if (p->rc)
		return;
	if (p->len)
		p->rc = err_set(p->err, ERR_USAGE, "--stop-on '%.200s', column %zu, at '%.*s': %s",
				p->text, column, p->len > 40 ? 40 : (int)p->len, p->at, what);
	else
		p->rc = err_set(p->err, ERR_USAGE, "--stop-on '%.200s', column %zu, at its end: %s",
				p->text, column, what);
}

static void fail_memory(struct parser *p)
{
	if (!p->rc)
		p->rc = err_memory(p->err, "for the rule '%.200s'", p->text);
}

static void expect(struct parser *p, const char *word, const char *otherwise)
{
	if (!take_word(p, word))
		fail(p, otherwise);
}

/* A number without sign and exponent, at the start of a word. */
static double parse_number(struct parser *p, const char *otherwise)
{
	double v = 0;
	size_t n = p->rc ? 0 : number_prefix(p->at, p->len, "0123456789.", &v);

	if (!n || p->at[n - 1] == '.') {
		fail(p, otherwise);
		return 0;
	}
	skip_bytes(p, n);
	return v;
}

/* The factor of the unit at hand, in a table that ends with NULL; 0 = it is none of these. */
struct unit {
	const char *name;
	double factor;
};

static double find_unit(const struct parser *p, const struct unit *units)
{
	while (units->name && !word_is(p, units->name))
		units++;
	return units->factor;
}

static uint64_t parse_time(struct parser *p)
{
	static const struct unit units[] = {
		{"ms", 1e-3}, {"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600},
		{"d", 86400}, {NULL, 0},
	};
	double v = parse_number(p, "a time is expected, like 500ms, 5s, 2m or 1h");
	double unit = find_unit(p, units);

	if (unit == 0)
		fail(p, "a unit of time is expected: ms, s, m, h or d");
	else if (v * unit < 1e-3 || v * unit > 7 * 86400)
		fail(p, "a time must be between 1 ms and 7 days");
	if (p->rc)
		return 0;
	skip_bytes(p, p->len);
	return (uint64_t)(v * unit * 1e9);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Returns its number; 0 after an error. */
static uint16_t add_node(struct parser *p, struct node n)
{
	if (p->c->nnodes == COMPOSITE_NODES)
		fail(p, "the expression is too long");
	if (p->rc)
		return 0;
	n.now = n.before = IS_UNKNOWN;
	n.value = NAN;
	if (n.type == NODE_RATE)
		n.rate = calloc(1, sizeof(*n.rate));
	if (n.type == NODE_QUANTILE)
		n.values = calloc(1, sizeof(*n.values));
	if ((n.type == NODE_RATE && !n.rate) || (n.type == NODE_QUANTILE && !n.values))
		fail_memory(p);
	p->c->nodes[p->c->nnodes] = n;
	return p->c->nnodes++;
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

/*
 * Parse NAME=SPEC: a name of letters, digits and _, then the spec of a qualifier or of a counter.
 *
 * kind, spec   the kind of the rule, and where its own spec begins
 * returns      0 or ERR_USAGE
 */
static int parse_named_rule(const char *text, size_t *name_len, const struct trigger_ops **kind,
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

static uint16_t open_rule(struct parser *p, const char *text, size_t name_len,
			  const struct trigger_ops *kind, const char *spec)
{
	struct rule_part *part = &p->c->rules[p->c->nrules];
	struct trigger_env env = *p->env;

	env.min_sec = 0;                     /* "for 3s" does that here */
	p->rc = trigger_open(kind, spec, &env, &part->trigger, p->err);
	if (p->rc == ERR_USAGE)
		err_prefix(p->err, "--rule %.*s", (int)name_len, text);
	if (p->rc)
		return 0;
	part->name = text_dup(text, name_len);
	part->state = IS_UNKNOWN;
	part->value = NAN;
	if (!part->name)
		fail_memory(p);
	skip_bytes(p, p->len);
	return p->c->nrules++;
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
static uint16_t parse_name(struct parser *p)
{
	const struct trigger_ops *kind = NULL;
	const char *spec = "";
	size_t len = 0;
	uint32_t i;

	for (i = 0; i < p->c->nrules; i++)
		if (take_word(p, p->c->rules[i].name))
			return (uint16_t)i;
	for (i = 0; !p->rc && i < p->env->nrules; i++) {
		p->rc = parse_named_rule(p->env->rules[i], &len, &kind, &spec, p->err);
		if (p->rc || len != p->len || strncasecmp(p->env->rules[i], p->at, len) != 0)
			continue;
		if (is_named_again(p, i, len)) {
			p->rc = err_set(p->err, ERR_USAGE,
					"--rule %.*s is given twice; a name stands for one rule",
					quoted_len(len), p->env->rules[i]);
			return 0;
		}
		if (p->c->nrules == COMPOSITE_RULES)
			fail(p, "too many different rules in one expression");
		return p->rc ? 0 : open_rule(p, p->env->rules[i], len, kind, spec);
	}
	fail(p, "no rule has this name; define it with --rule NAME=SPEC");
	return 0;
}

static bool rule_is_state(const struct parser *p, uint16_t rule)
{
	return p->c->nrules && p->c->rules[rule].trigger->ops->is_state;
}

/* ---- rate() and p99() ------------------------------------------------------------------------ */

static uint16_t parse_argument(struct parser *p)
{
	uint16_t rule;

	skip_bytes(p, p->len);
	expect(p, "(", "'(' and the name of a rule are expected");
	rule = parse_name(p);
	expect(p, ")", "')' is expected");
	return rule;
}

static void parse_limit(struct parser *p, struct threshold *out)
{
	static const enum compare all[] = {COMPARE_OVER_EQUAL, COMPARE_OVER, COMPARE_UNDER_EQUAL,
					   COMPARE_UNDER};
	size_t i;

	for (i = 0; i < COUNT_OF(all) && !take_word(p, compare_text(all[i])); i++)
		;
	if (i == COUNT_OF(all))
		fail(p, "a comparison is expected: > >= < or <=");
	else
		threshold_init(out, all[i], parse_number(p, "a number is expected"));
}

static uint64_t parse_over(struct parser *p, uint64_t otherwise_ns)
{
	return take_word(p, "over") ? parse_time(p) : otherwise_ns;
}

static uint16_t parse_rate(struct parser *p)
{
	static const struct unit units[] = {
		{"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"hour", 3600},
		{NULL, 0},
	};
	struct node n = {.type = NODE_RATE, .is_state = true, .rule = parse_argument(p)};

	if (rule_is_state(p, n.rule))
		fail(p, "rate() counts events, but this rule is on a counter; compare its value "
			"with p50() or in the rule itself");
	parse_limit(p, &n.limit);
	n.unit_sec = take_word(p, "/") ? find_unit(p, units) : 0;
	if (n.unit_sec == 0)
		fail(p, "a rate needs a unit: /s, /min or /h, as in > 10/s");
	if (p->rc)
		return 0;
	skip_bytes(p, p->len);
	n.time_ns = parse_over(p, (uint64_t)(n.unit_sec < 10 ? 10e9 : n.unit_sec * 1e9));
	return add_node(p, n);
}

/* Whether '(' follows the word. */
static bool is_call(const struct parser *p)
{
	return !p->rc && p->at[p->len + strspn(p->at + p->len, " ")] == '(';
}

/* "p99", "p99.9": a percentile over 0 and under 100. */
static bool is_quantile(const struct parser *p, double *q)
{
	size_t digits = p->len ? p->len - 1 : 0;

	if (!is_call(p) || !digits || (p->at[0] | 32) != 'p' || p->at[1] == '.' ||
	    number_prefix(p->at + 1, digits, "0123456789.", q) != digits)
		return false;
	*q /= 100;
	return *q > 0 && *q < 1;
}

static uint16_t parse_quantile(struct parser *p, double q)
{
	/* Durations are in ms. */
	static const struct unit units[] = {{"s", 1000}, {"ms", 1}, {"us", 1e-3}, {NULL, 0}};
	struct node n = {.type = NODE_QUANTILE, .is_state = true, .quantile = q};
	double unit;

	n.rule = parse_argument(p);
	parse_limit(p, &n.limit);
	unit = find_unit(p, units);
	if (unit != 0) {
		n.limit.limit *= unit;
		skip_bytes(p, p->len);
	}
	n.time_ns = parse_over(p, 60 * NS_PER_SEC);
	return add_node(p, n);
}

/* ---- the grammar ----------------------------------------------------------------------------- */

static uint16_t parse_or(struct parser *p);

static uint16_t parse_rule(struct parser *p)
{
	uint16_t rule;

	if (!p->len || !is_word(*p->at))
		fail(p, "the name of a rule, not, rate(), p99() or '(' is expected");
	rule = parse_name(p);
	return add_node(p, (struct node){.type = NODE_RULE, .rule = rule,
					 .is_state = rule_is_state(p, rule)});
}

static uint16_t parse_primary(struct parser *p)
{
	uint16_t inner;
	double q;

	if (take_word(p, "(")) {
		inner = parse_or(p);
		expect(p, ")", "')', and, or, then, for or within is expected");
		return inner;
	}
	if (word_is(p, "rate") && is_call(p))
		return parse_rate(p);
	return is_quantile(p, &q) ? parse_quantile(p, q) : parse_rule(p);
}

static uint16_t parse_factor(struct parser *p, bool may_be_within)
{
	struct node n = {.is_state = true};

	if (++p->nesting > NESTING_MAX)
		fail(p, "the expression is too deep");
	if (take_word(p, "not")) {
		n.type = NODE_NOT;
		n.left = parse_factor(p, may_be_within);
		if (!node(p, n.left)->is_state)
			fail(p, "'not' needs a state, and an event is a moment; write 'not A "
				"within 10s'");
		n.left = add_node(p, n);
	} else {
		n.left = parse_primary(p);
		while (word_is(p, "for") || (may_be_within && word_is(p, "within"))) {
			n.type = word_is(p, "for") ? NODE_FOR : NODE_WITHIN;
			if (n.type == NODE_FOR && !node(p, n.left)->is_state)
				fail(p, "an event is a moment and has no length; write 'within' "
					"for 'for'");
			skip_bytes(p, p->len);
			n.time_ns = parse_time(p);
			n.left = add_node(p, n);
		}
	}
	p->nesting--;
	return n.left;
}

static uint16_t parse_then(struct parser *p)
{
	struct node n = {.type = NODE_THEN, .left = parse_factor(p, true)};

	while (take_word(p, "then")) {
		n.right = parse_factor(p, false);
		expect(p, "within", "'within' and a time are expected: A then B within 5s");
		n.time_ns = parse_time(p);
		n.left = add_node(p, n);
	}
	return n.left;
}

/* Whether `rule`, or `not rule`, must be true for this node to be true. */
static bool demands(const struct parser *p, uint16_t at, uint16_t rule, bool negated)
{
	const struct node *n = node(p, at);

	if (n->type == NODE_AND)
		return demands(p, n->left, rule, negated) || demands(p, n->right, rule, negated);
	if (n->type == NODE_NOT && negated)
		return node(p, n->left)->type == NODE_RULE && node(p, n->left)->rule == rule;
	return !negated && n->type == NODE_RULE && n->rule == rule;
}

/* "a and not a" is never true. Whether different rules exclude each other is not known. */
static bool excludes(const struct parser *p, uint16_t left, uint16_t right)
{
	uint16_t rule;

	for (rule = 0; rule < p->c->nrules; rule++)
		if ((demands(p, left, rule, false) && demands(p, right, rule, true)) ||
		    (demands(p, left, rule, true) && demands(p, right, rule, false)))
			return true;
	return false;
}

static uint16_t parse_and(struct parser *p)
{
	struct node n = {.type = NODE_AND, .left = parse_then(p)};

	while (take_word(p, "and")) {
		n.right = parse_then(p);
		if (!node(p, n.left)->is_state && !node(p, n.right)->is_state)
			fail(p, "two events never come at the same moment; write 'A within 5s and "
				"B' or 'A then B within 5s'");
		if (excludes(p, n.left, n.right))
			fail(p, "the part before this is never true: a rule and its 'not' exclude "
				"each other");
		n.is_state = node(p, n.left)->is_state && node(p, n.right)->is_state;
		n.left = add_node(p, n);
	}
	return n.left;
}

static uint16_t parse_or(struct parser *p)
{
	struct node n = {.type = NODE_OR};

	if (++p->nesting > NESTING_MAX)
		fail(p, "the expression is too deep");
	n.left = parse_and(p);
	while (take_word(p, "or")) {
		n.right = parse_and(p);
		/* Or with a moment is a moment: a state counts when it becomes true. */
		n.is_state = node(p, n.left)->is_state && node(p, n.right)->is_state;
		n.left = add_node(p, n);
	}
	p->nesting--;
	return n.left;
}

int composite_parse(struct composite *c, const struct trigger_env *env, struct err *err)
{
	const char *text = c->base.text;
	struct parser p = {.c = c, .text = text, .at = text, .env = env, .err = err};

	if (strlen(text) > 1000)
		return err_set(err, ERR_USAGE,
			       "--stop-on '%.100s...': an expression has at most 1000 characters",
			       text);
	find_word(&p);
	c->root = parse_or(&p);
	if (p.len)
		fail(&p, "and, or, then, for, within or the end is expected");
	return p.rc;
}
