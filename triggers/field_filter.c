#include "triggers/field_filter.h"

#include "base/array.h"
#include "base/json.h"
#include "base/text.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

/* Whether the whole text is a whole number (decimal or 0x) or a fraction. */
static bool parse_number(const char *text, struct event_field *out)
{
	const char *digits = text + (*text == '-' || *text == '+');
	bool hex = digits[0] == '0' && (digits[1] | 32) == 'x';
	size_t n = strlen(digits);
	char *end = NULL;

	if (hex && strlen(digits + 2) <= 16) {
		out->type = FIELD_UINT;
		out->v.u = strtoull(digits + 2, &end, 16);
		return digits[2] && !*end && digits == text;
	}
	if (!hex && n && n <= 18 && strspn(digits, "0123456789") == n) {
		out->type = *text == '-' ? FIELD_INT : FIELD_UINT;
		if (*text == '-')
			out->v.i = strtoll(text, NULL, 10);
		else
			out->v.u = strtoull(digits, NULL, 10);
		return true;
	}
	if (!n || strspn(digits, "0123456789.eE+-") != n || !strpbrk(digits, "0123456789"))
		return false;
	out->type = FIELD_DOUBLE;
	out->v.d = strtod(text, &end);
	return !*end && fabs(out->v.d) <= DBL_MAX;
}

static const char *const op_texts[] = {
	[FIELD_EQUAL] = "=", [FIELD_NOT_EQUAL] = "!=", [FIELD_UNDER] = "<", [FIELD_OVER] = ">",
	[FIELD_UNDER_EQUAL] = "<=", [FIELD_OVER_EQUAL] = ">=", [FIELD_MATCHES] = "~",
};

const char *field_op_text(enum field_op op)
{
	return op_texts[op];
}

/* The longest operator at this place; its length, or 0. */
static size_t parse_op(const char *at, enum field_op *op)
{
	size_t i, n, longest = 0;

	for (i = 0; i < COUNT_OF(op_texts); i++) {
		n = strlen(op_texts[i]);
		if (n > longest && strncmp(at, op_texts[i], n) == 0) {
			*op = (enum field_op)i;
			longest = n;
		}
	}
	return longest;
}

int field_filter_open(const struct spec *s, struct field_filter *out)
{
	struct field_filter f = {.field = text_dup(s->value, s->value_len)};
	size_t name = 0, op;
	const char *value;
	int rc = 0;

	if (!f.field)
		return spec_no_memory(s);
	while (isalnum((unsigned char)f.field[name]) || f.field[name] == '_')
		name++;
	op = parse_op(f.field + name, &f.op);
	value = f.field + name + op;
	/* "=>" and "==" would compare with a value that begins with '>' or '='. */
	if (name && op && !*value && f.op != FIELD_EQUAL && f.op != FIELD_NOT_EQUAL)
		rc = spec_wrong(s, "the filter '%.60s' has nothing to compare with", f.field);
	else if (!name || !op || (*value && strchr("<>=", *value)))
		rc = spec_wrong(s, "the filter '%.60s' is not FIELD, then one of < > <= >= = != ~, "
				"then a value, without blanks", f.field);
	else if (!(f.value = text_dup(value, SIZE_MAX)))
		rc = spec_no_memory(s);
	f.field[name] = '\0';
	if (!rc && f.op == FIELD_MATCHES)
		rc = regex_open(s->text, f.value, strlen(f.value), true, &f.regex, s->err);
	else if (!rc)
		f.is_number = parse_number(f.value, &f.number);
	if (rc)
		field_filter_close(&f);
	else
		*out = f;
	return rc;
}

void field_filter_close(struct field_filter *f)
{
	free(f->field);
	free(f->value);
	regex_close(f->regex);
	memset(f, 0, sizeof(*f));
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* A field, or one of the event's own, built in *own; NULL = there is none. */
static const struct event_field *field_or_own(const struct event *e, const char *name,
					      struct event_field *own)
{
	const struct event_field *f = event_field(e, name);

	if (f)
		return f;
	own->type = FIELD_UINT;
	if (text_same_fold(name, "ProcessID") && e->process) {
		own->v.u = e->process->pid;
		return own;
	}
	if (text_same_fold(name, "ThreadID") && e->thread) {
		own->v.u = e->thread->tid;
		return own;
	}
	own->type = FIELD_TEXT;
	own->v.text = NULL;
	if (text_same_fold(name, "ProcessName") && e->process)
		own->v.text = process_name(e->process);
	else if (text_same_fold(name, "ProviderName"))
		own->v.text = e->provider;
	return own->v.text ? own : NULL;
}

const char *field_text(const struct event_field *f, char out[FIELD_TEXT_BYTES])
{
	switch (f->type) {
	case FIELD_INT:
		snprintf(out, FIELD_TEXT_BYTES, "%" PRId64, f->v.i);
		return out;
	case FIELD_UINT:
		snprintf(out, FIELD_TEXT_BYTES, "%" PRIu64, f->v.u);
		return out;
	case FIELD_DOUBLE:
		num_text(f->v.d, out, FIELD_TEXT_BYTES);
		return out;
	case FIELD_TEXT:
		break;
	}
	return f->v.text ? f->v.text : "";
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double as_double(const struct event_field *f)
{
	if (f->type == FIELD_DOUBLE)
		return f->v.d;
	return f->type == FIELD_INT ? (double)f->v.i : (double)f->v.u;
}

/* -1, 0 or 1. Whole numbers compare exactly, also a negative one with one over 2^63. */
static int order_numbers(const struct event_field *a, const struct event_field *b)
{
	bool a_negative = a->type == FIELD_INT && a->v.i < 0;
	bool b_negative = b->type == FIELD_INT && b->v.i < 0;

	if (a->type == FIELD_DOUBLE || b->type == FIELD_DOUBLE)
		return (as_double(a) > as_double(b)) - (as_double(a) < as_double(b));
	if (a_negative != b_negative)
		return a_negative ? -1 : 1;
	/* The bits of two negative numbers have the order of the numbers. */
	return compare_u64(a->v.u, b->v.u);
}

/* The orders of a value and the filter's that pass: bit 0 = below, bit 1 = equal, bit 2 = above. */
static const unsigned char orders[] = {
	[FIELD_EQUAL] = 2, [FIELD_NOT_EQUAL] = 5, [FIELD_UNDER] = 1, [FIELD_OVER] = 4,
	[FIELD_UNDER_EQUAL] = 3, [FIELD_OVER_EQUAL] = 6, [FIELD_MATCHES] = 0,
};

static bool decide(enum field_op op, int order)
{
	return orders[op] & (order < 0 ? 1 : order > 0 ? 4 : 2);
}

/* '=' ignores the case of letters; the order of texts does not. */
static bool has_letters(const char *text)
{
	for (; *text; text++)
		if (isalpha((unsigned char)*text))
			return true;
	return false;
}

static bool same_value(const struct field_filter *a, const struct field_filter *b)
{
	if (a->is_number != b->is_number)
		return false;                /* a text that is not a number equals no number */
	return a->is_number ? order_numbers(&a->number, &b->number) == 0
			    : text_same_fold(a->value, b->value);
}

/* Whether no value equals a's and passes b. */
static bool value_fails(const struct field_filter *a, const struct field_filter *b)
{
	if (b->op == FIELD_EQUAL || b->op == FIELD_NOT_EQUAL)
		return same_value(a, b) != (b->op == FIELD_EQUAL);
	if (b->op == FIELD_MATCHES)
		return false;
	if (a->is_number && b->is_number)
		return !decide(b->op, order_numbers(&a->number, &b->number));
	return !a->is_number && !has_letters(a->value) &&
	       !decide(b->op, strcmp(a->value, b->value));
}

bool field_filters_exclude(const struct field_filter *a, const struct field_filter *b)
{
	const struct field_filter *low = orders[a->op] & 4 ? a : b, *high = low == a ? b : a;
	int order;

	/* A process has several names. */
	if (!text_same_fold(a->field, b->field) || text_same_fold(a->field, "ProcessName"))
		return false;
	if (a->op == FIELD_EQUAL)
		return value_fails(a, b);
	if (b->op == FIELD_EQUAL)
		return value_fails(b, a);
	/* What is left are bounds: one from below, one from above. */
	if ((orders[low->op] & 5) != 4 || (orders[high->op] & 5) != 1 ||
	    low->is_number != high->is_number)
		return false;
	order = low->is_number ? order_numbers(&low->number, &high->number)
			       : strcmp(low->value, high->value);
	return order > 0 || (order == 0 && !(orders[low->op] & orders[high->op] & 2));
}

/* Whether it means the event's own process, which has several names, and not a field. */
static bool is_process_name(const char *field, const struct event *e)
{
	return text_same_fold(field, "ProcessName") && e->process && !event_field(e, field);
}

bool field_filter_pass(const struct field_filter *f, const struct event *e)
{
	struct event_field own, parsed;
	const struct event_field *field = field_or_own(e, f->field, &own);
	char printed[FIELD_TEXT_BYTES];
	const char *text;

	if (!field)
		return false;
	if ((f->op == FIELD_EQUAL || f->op == FIELD_NOT_EQUAL) && is_process_name(f->field, e))
		return process_is_called(e->process, f->value) == (f->op == FIELD_EQUAL);
	if (f->is_number && field->type != FIELD_TEXT) {
		/* NaN has no order. */
		if (field->type == FIELD_DOUBLE && field->v.d != field->v.d)
			return f->op == FIELD_NOT_EQUAL;
		return decide(f->op, order_numbers(field, &f->number));
	}
	text = field_text(field, printed);
	if (f->op == FIELD_MATCHES)
		return regex_match(f->regex, text, strnlen(text, EVENT_MAX_TEXT));
	if (f->is_number && parse_number(text, &parsed))
		return decide(f->op, order_numbers(&parsed, &f->number));
	if (f->op == FIELD_EQUAL || f->op == FIELD_NOT_EQUAL)
		return text_same_fold(text, f->value) == (f->op == FIELD_EQUAL);
	return decide(f->op, strcmp(text, f->value));
}
