#include "options.h"

#include "base/json.h"
#include "base/os.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One value on its way into struct options. */
struct setting {
	struct options *o;
	const struct option_info *info;
	unsigned row;                /* of the value: that of same_as when there is one */
	const char *as;              /* how it was written: "--freq", "/CircularMB", "freq" */
	const char *value;           /* NULL: a yes/no option without one */
	enum option_origin origin;
	uint32_t line;
};

/* ---- names --------------------------------------------------------------------------------------- */

/* Whether n bytes of text are this name, leaving case and dashes aside. */
static bool same_name(const char *name, size_t nname, const char *text, size_t n)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < nname && name[i] == '-')
			i++;
		while (k < n && text[k] == '-')
			k++;
		if (i == nname || k == n)
			return i == nname && k == n && n > 0;
		if (tolower((unsigned char)name[i++]) != tolower((unsigned char)text[k++]))
			return false;
	}
}

static bool has_name(const struct option_info *info, const char *text, size_t n)
{
	const char *at = info->other_names;
	size_t len;

	if (same_name(info->name, strlen(info->name), text, n))
		return true;
	for (; at && *at; at += len + (at[len] == ' ')) {
		len = strcspn(at, " ");
		if (same_name(at, len, text, n))
			return true;
	}
	return false;
}

const struct option_info *option_by_name(const char *name, size_t n)
{
	const struct option_info *info;

	for (info = options; info->name; info++) {
		if (has_name(info, name, n))
			return info;
	}
	return NULL;
}

enum command command_by_name(const char *name)
{
	unsigned c;

	for (c = CMD_NONE + 1; c < COMMANDS; c++) {
		if (same_name(commands[c].name, strlen(commands[c].name), name, strlen(name)))
			return (enum command)c;
	}
	return CMD_NONE;
}

bool option_given(const struct options *o, const char *name)
{
	const struct option_info *info = option_by_name(name, strlen(name));

	return info && o->origin[info - options] != FROM_DEFAULT;
}

static int unknown_option(const char *as, size_t n, bool in_conf, struct err *err)
{
	const char *names[OPTIONS_MAX + 1];
	struct buf near = {0};
	char name[64];
	unsigned i, used = 0;

	while (n && (*as == '-' || *as == '/'))
		as++, n--;
	snprintf(name, sizeof(name), "%.*s", n > 60 ? 60 : (int)n, as);
	for (i = 0; options[i].name; i++) {
		if (!in_conf || options[i].conf)
			names[used++] = options[i].name;
	}
	names[used] = NULL;
	nearest_names(name, in_conf ? "" : "--", names, &near);
	if (in_conf)
		err_set(err, ERR_USAGE, "unknown key '%s'%s", name, buf_text(&near));
	else
		err_set(err, ERR_USAGE, "unknown option '%s'%s%s", name, buf_text(&near),
			near.len ? "" : "; 'recorder help' lists them");
	buf_free(&near);
	return ERR_USAGE;
}

/* ---- values: memory ------------------------------------------------------------------------------ */

static int no_memory(struct err *err)
{
	return err_set(err, ERR_MEMORY, "out of memory while reading the options");
}

static char *text_copy(const char *text, size_t n)
{
	char *copy = malloc(n + 1);

	if (copy) {
		memcpy(copy, text, n);
		copy[n] = '\0';
	}
	return copy;
}

/* One more item in an array that grows by doubling; the array, or NULL without memory. */
static void *list_room(void *items, uint32_t n, size_t item_bytes)
{
	if (n & (n - 1))
		return items;
	return realloc(items, (n ? (size_t)n * 2 : 1) * item_bytes);
}

static int text_list_add(struct text_list *list, const char *text, size_t n)
{
	char **items = list_room(list->items, list->n, sizeof(*items));

	if (!items)
		return ERR_MEMORY;
	list->items = items;
	items[list->n] = text_copy(text, n);
	return items[list->n] ? (list->n++, 0) : ERR_MEMORY;
}

static int rule_list_add(struct rule_list *list, const char *kind, const char *text, size_t n)
{
	struct rule_spec *items = list_room(list->items, list->n, sizeof(*items));

	if (!items)
		return ERR_MEMORY;
	list->items = items;
	items[list->n].kind = kind;
	items[list->n].spec = text_copy(text, n);
	return items[list->n].spec ? (list->n++, 0) : ERR_MEMORY;
}

static int id_list_add(struct id_list *list, int64_t id)
{
	int64_t *items = list_room(list->items, list->n, sizeof(*items));

	if (!items)
		return ERR_MEMORY;
	list->items = items;
	items[list->n++] = id;
	return 0;
}

static void *field(struct options *o, const struct option_info *info)
{
	return (char *)o + info->offset;
}

static void set_default(struct options *o, const struct option_info *info)
{
	if (info->same_as)
		return;
	switch (info->type) {
	case OPTION_INT:
		*(uint32_t *)field(o, info) = (uint32_t)info->def;
		break;
	case OPTION_FLOAT:
		*(double *)field(o, info) = info->def;
		break;
	case OPTION_SECONDS:
		*(int64_t *)field(o, info) = isnan(info->def) ? OPTION_NO_TIME
							      : (int64_t)(info->def * 1e9);
		break;
	default:
		break;
	}
}

void options_init(struct options *o)
{
	const struct option_info *info;

	memset(o, 0, sizeof(*o));
	for (info = options; info->name; info++)
		set_default(o, info);
}

static void text_list_free(struct text_list *list)
{
	while (list->n)
		free(list->items[--list->n]);
	free(list->items);
	list->items = NULL;
}

void options_free(struct options *o)
{
	const struct option_info *info;

	for (info = options; info->name; info++) {
		if (info->type == OPTION_TEXT) {
			char **text = field(o, info);

			free(*text);
			*text = NULL;
		} else if (info->type == OPTION_LIST) {
			text_list_free(field(o, info));
		}
	}
	while (o->rules.n)
		free(o->rules.items[--o->rules.n].spec);
	free(o->rules.items);
	free(o->ids.items);
	free(o->pattern);
	o->rules.items = NULL;
	o->ids.items = NULL;
	o->pattern = NULL;
}

/* ---- values: parsing ----------------------------------------------------------------------------- */

static void put_bound(struct buf *out, double v)
{
	char text[40];

	if (v == floor(v) && fabs(v) < 1e15)
		snprintf(text, sizeof(text), "%.0f", v);
	else
		num_text(v, text, sizeof(text));
	buf_puts(out, text);
}

/* "--freq: '5x' is no whole number; allowed are 1 to 10000 Hz (default 99)". */
static int bad_number(const struct setting *s, const char *why, struct err *err)
{
	const struct option_info *info = s->info;
	struct buf allowed = {0};

	put_bound(&allowed, info->min);
	buf_puts(&allowed, " to ");
	put_bound(&allowed, info->max);
	if (info->unit)
		buf_printf(&allowed, " %s", info->unit);
	if (!isnan(info->def)) {
		buf_puts(&allowed, " (default ");
		put_bound(&allowed, info->def);
		buf_putc(&allowed, ')');
	}
	err_set(err, ERR_USAGE, "%s: '%.60s' %s; allowed are %s", s->as, s->value, why,
		buf_text(&allowed));
	buf_free(&allowed);
	return ERR_USAGE;
}

static size_t digits(const char *at)
{
	return strspn(at, "0123456789");
}

/*
 * A decimal number at the start of text: sign, digits with at most one point, exponent. Checked by
 * hand because strtod() also takes "inf", "nan" and hexadecimal. Returns its length, 0 = none.
 */
static size_t number_length(const char *text)
{
	size_t n = (*text == '-' || *text == '+'), whole, part = 0, exponent;

	whole = digits(text + n);
	n += whole;
	if (text[n] == '.') {
		part = digits(text + n + 1);
		n += 1 + part;
	}
	if (!whole && !part)
		return 0;
	if (text[n] == 'e' || text[n] == 'E') {
		exponent = 1 + (text[n + 1] == '-' || text[n + 1] == '+');
		if (digits(text + n + exponent))
			n += exponent + digits(text + n + exponent);
	}
	return n;
}

static bool in_bounds(const struct option_info *info, double v)
{
	return v >= info->min && v <= info->max;
}

static int parse_int(const struct setting *s, uint32_t *out, struct err *err)
{
	const char *text = s->value;
	bool hex = text[0] == '0' && (text[1] | 32) == 'x';
	const char *first = hex ? text + 2 : text;
	uint64_t v = 0;

	if (!*first || first[strspn(first, hex ? "0123456789abcdefABCDEF" : "0123456789")])
		return bad_number(s, "is no whole number", err);
	/* Twenty digits would overflow; no bound of ours has over ten. */
	v = strlen(first) > 15 ? UINT64_MAX : strtoull(first, NULL, hex ? 16 : 10);
	if (v > UINT32_MAX || !in_bounds(s->info, (double)v))
		return bad_number(s, "is out of bounds", err);
	*out = (uint32_t)v;
	return 0;
}

static int parse_float(const struct setting *s, double *out, struct err *err)
{
	size_t n = number_length(s->value);

	if (!n || s->value[n])
		return bad_number(s, "is no number", err);
	*out = strtod(s->value, NULL);
	return in_bounds(s->info, *out) ? 0 : bad_number(s, "is out of bounds", err);
}

static int parse_seconds(const struct setting *s, int64_t *out, struct err *err)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	size_t n = number_length(s->value), i;
	double v;

	for (i = 0; n && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(s->value + n, units[i].name) != 0)
			continue;
		v = strtod(s->value, NULL) * units[i].seconds;
		if (!in_bounds(s->info, v))
			return bad_number(s, "is out of bounds", err);
		*out = llround(v * 1e9);
		return 0;
	}
	return bad_number(s, "is no number of seconds (a number, or one with ms, s, m, h or d)", err);
}

static int parse_bool(const struct setting *s, bool *out, struct err *err)
{
	const char *text = s->value;

	if (!text || same_name("true", 4, text, strlen(text)))
		*out = true;
	else if (!*text || same_name("false", 5, text, strlen(text)))
		*out = false;
	else
		return err_set(err, ERR_USAGE, "%s: '%.60s' is neither true nor false", s->as, text);
	return 0;
}

/* Whether the text ends in a comparison with a number: "...>80", "...<= 1.5G". */
static bool ends_in_limit(const char *text, size_t n)
{
	while (n && text[n - 1] != '<' && text[n - 1] != '>')
		n--;
	if (!n)
		return false;
	n += text[n] == '=';
	while (text[n] == ' ')
		n++;
	return number_length(text + n) > 0;
}

bool piece_is_spec(enum option_type type, const char *text, size_t n)
{
	const char *first = memchr(text, ':', n);
	const char *second = first ? memchr(first + 1, ':', n - (size_t)(first + 1 - text)) : NULL;

	if (!second || first == text)
		return false;
	return type != OPTION_RULE || ends_in_limit(second, n - (size_t)(second - text));
}

/* Whether a spec begins here: some of the pieces up to a ',' or the end are one. */
static bool spec_begins(enum option_type type, const char *text)
{
	size_t n = 0;

	do {
		n += strcspn(text + n, ",");
		if (piece_is_spec(type, text, n))
			return true;
	} while (text[n++] == ',');
	return false;
}

static int add_spec(const struct setting *s, const char *spec, size_t n)
{
	if (s->info->type == OPTION_RULE)
		return rule_list_add(&s->o->rules, s->info->name, spec, n);
	return text_list_add(field(s->o, s->info), spec, n);
}

/* A list: a ',' separates only where a spec has ended and another begins. */
static int set_list(const struct setting *s, struct err *err)
{
	const char *spec = s->value, *comma = spec;
	int rc = 0;

	while (!rc && (comma = strchr(comma, ','))) {
		size_t n = (size_t)(comma - spec);

		comma++;
		if (!piece_is_spec(s->info->type, spec, n) || !spec_begins(s->info->type, comma))
			continue;
		rc = add_spec(s, spec, n);
		spec = comma;
	}
	if (!rc)
		rc = add_spec(s, spec, strlen(spec));
	return rc ? no_memory(err) : 0;
}

static int set_ids(const struct setting *s, struct err *err)
{
	const char *at = s->value;

	for (;;) {
		size_t n = digits(at);

		if (!n || n > 18 || (at[n] && at[n] != ','))
			return err_set(err, ERR_USAGE, "%s: '%.60s' is no incident number; 'recorder "
				       "list' shows them", s->as, s->value);
		if (id_list_add(&s->o->ids, strtoll(at, NULL, 10)))
			return no_memory(err);
		if (!at[n])
			return 0;
		at += n + 1;
	}
}

static int set_text(const struct setting *s, bool store, struct err *err)
{
	char **to = field(s->o, s->info);

	if (!*s->value)
		return err_set(err, ERR_USAGE, "%s: the value is empty; %s is wanted", s->as,
			       s->info->value);
	if (!store)
		return 0;
	free(*to);
	*to = text_copy(s->value, strlen(s->value));
	return *to ? 0 : no_memory(err);
}

/* Check the value and, when store is set, put it where it belongs. */
static int set_value(const struct setting *s, bool store, struct err *err)
{
	void *to = field(s->o, s->info);
	union {
		bool yes;
		uint32_t whole;
		double number;
		int64_t ns;
	} v;
	size_t size = 0;
	int rc = 0;

	switch (s->info->type) {
	case OPTION_BOOL:
		rc = parse_bool(s, &v.yes, err);
		size = sizeof(v.yes);
		break;
	case OPTION_INT:
		rc = parse_int(s, &v.whole, err);
		size = sizeof(v.whole);
		break;
	case OPTION_FLOAT:
		rc = parse_float(s, &v.number, err);
		size = sizeof(v.number);
		break;
	case OPTION_SECONDS:
		rc = parse_seconds(s, &v.ns, err);
		size = sizeof(v.ns);
		break;
	case OPTION_PERIOD_MS:
		rc = parse_float(s, &v.number, err);
		if (!rc)
			v.whole = (uint32_t)lround(1000 / v.number);
		size = sizeof(v.whole);
		break;
	case OPTION_TEXT:
		return set_text(s, store, err);
	case OPTION_LIST:
	case OPTION_RULE:
		return store ? set_list(s, err) : 0;
	case OPTION_IDS:
		return set_ids(s, err);
	case OPTION_LATER:
		return err_set(err, ERR_USAGE, "%s is not in this version: %s", s->as,
			       s->info->later);
	}
	if (!rc && store)
		memcpy(to, &v, size);
	return rc;
}

static bool is_scalar(const struct option_info *info)
{
	return info->type != OPTION_LIST && info->type != OPTION_RULE && info->type != OPTION_IDS;
}

static int set(struct setting *s, struct err *err)
{
	struct options *o = s->o;
	const char *owner = s->info->same_as ? s->info->same_as : s->info->name;
	bool store;

	s->row = (unsigned)(option_by_name(owner, strlen(owner)) - options);
	if (is_scalar(s->info) && s->info->type != OPTION_LATER && o->origin[s->row] == s->origin) {
		if (s->origin == FROM_CONF)
			return err_set(err, ERR_USAGE, "%s was set already on line %" PRIu32, s->as,
				       o->conf_line[s->row]);
		return err_set(err, ERR_USAGE, "%s: --%s was given already", s->as, owner);
	}
	store = s->origin >= (enum option_origin)o->origin[s->row];
	if (!s->value && s->info->type != OPTION_BOOL)
		return err_set(err, ERR_USAGE, "%s needs a value: %s", s->as, s->info->value);
	if (set_value(s, store, err))
		return err ? err->code : ERR_USAGE;
	if (store) {
		o->origin[s->row] = (uint8_t)s->origin;
		o->conf_line[s->row] = s->line;
	}
	return 0;
}

int options_set_conf(struct options *o, const char *key, const char *value, uint32_t line,
		     struct err *err)
{
	struct setting s = {
		.o = o, .info = option_by_name(key, strlen(key)), .as = key, .value = value,
		.origin = FROM_CONF, .line = line,
	};

	if (!s.info)
		return unknown_option(key, strlen(key), true, err);
	if (!s.info->conf && s.info->type != OPTION_LATER)
		return err_set(err, ERR_USAGE, "'%s' belongs on the command line, not into a "
			       "configuration", s.info->name);
	return set(&s, err);
}

/* ---- the command line ---------------------------------------------------------------------------- */

struct arguments {
	struct options *o;
	int argc;
	char *const *argv;
	int at;                          /* the next one to read */
	bool only_operands;              /* "--" was seen */
	const char *operands[2];         /* command, and the first operand behind it */
	unsigned noperands;
};

/* Bytes of a dash at the start: '-', or U+2013 to U+2015, which word processors make of it. */
static size_t dash(const char *text)
{
	if (*text == '-')
		return 1;
	if (memcmp(text, "\xe2\x80", strnlen(text, 2)) == 0 && strnlen(text, 3) == 3 &&
	    (unsigned char)text[2] >= 0x93 && (unsigned char)text[2] <= 0x95)
		return 3;
	return 0;
}

static int set_argument(struct arguments *a, const struct option_info *info, const char *as,
			const char *value, struct err *err)
{
	struct setting s = {
		.o = a->o, .info = info, .as = as, .value = value, .origin = FROM_ARGS,
	};

	return set(&s, err);
}

/* The value behind a name without one: the next argument, which may begin with a dash. */
static const char *next_value(struct arguments *a, const struct option_info *info)
{
	if (info->type == OPTION_BOOL || info->type == OPTION_LATER || a->at >= a->argc)
		return NULL;
	return a->argv[a->at++];
}

static int long_option(struct arguments *a, const char *arg, size_t ndashes, struct err *err)
{
	const char *name = arg + ndashes;
	size_t n = strcspn(name, ":=");
	const struct option_info *info = option_by_name(name, n);
	char as[80];

	snprintf(as, sizeof(as), "%.*s", n > 60 ? 60 : (int)(ndashes + n), arg);
	if (!info)
		return unknown_option(arg, ndashes + n, false, err);
	return set_argument(a, info, as, name[n] ? name + n + 1 : next_value(a, info), err);
}

/* "/Name:value" and "-Name:value": the value is attached, or the option is a yes/no one. */
static int perfview_option(struct arguments *a, const char *arg, size_t nprefix, struct err *err)
{
	const char *name = arg + nprefix;
	size_t n = strcspn(name, ":=");
	const struct option_info *info = option_by_name(name, n);
	char as[80];

	snprintf(as, sizeof(as), "%.*s", n > 60 ? 60 : (int)(nprefix + n), arg);
	if (!name[n] && info->type != OPTION_BOOL && info->type != OPTION_LATER)
		return err_set(err, ERR_USAGE, "%s needs its value behind a colon: %s:%s", as, as,
			       info->value);
	return set_argument(a, info, as, name[n] ? name + n + 1 : NULL, err);
}

/* "-buffer-mb:64x" is a misspelled name more likely than -b with a value. */
static bool looks_like_name(const char *text)
{
	size_t n = strcspn(text, ":=");

	return n > 1 && text[n] && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					     "abcdefghijklmnopqrstuvwxyz-")] == text[n];
}

static int short_option(struct arguments *a, const char *arg, size_t ndash, struct err *err)
{
	const char *letter = arg + ndash, *rest = letter + 1, *value;
	const struct short_option *s = short_options;
	const struct option_info *info;
	char as[3] = {'-', *letter, '\0'};

	while (s->letter && s->letter != *letter)
		s++;
	info = s->letter ? option_by_name(s->name, strlen(s->name)) : NULL;
	if (!info || (*rest && (s->value || info->type == OPTION_BOOL || looks_like_name(letter))))
		return unknown_option(arg, strcspn(arg, ":="), false, err);
	value = s->value ? s->value : *rest ? rest : next_value(a, info);
	return set_argument(a, info, as, value, err);
}

static int operand_ids(struct arguments *a, const char *text, struct err *err)
{
	return set_argument(a, option_by_name("id", 2), "the incident", text, err);
}

static int operand(struct arguments *a, const char *text, struct err *err)
{
	enum command command = a->o->command;
	struct buf near = {0};
	const char *names[COMMANDS];
	unsigned c;

	if (command != CMD_NONE) {
		if (commands[command].operands == OPERAND_IDS)
			return operand_ids(a, text, err);
		if (commands[command].operands == OPERAND_NONE || a->noperands++)
			return err_set(err, ERR_USAGE, "unexpected argument '%.80s'; "
				       "'recorder help %s' shows what %s takes", text,
				       commands[command].name, commands[command].name);
		a->operands[0] = text;
		return 0;
	}
	a->o->command = command_by_name(text);
	if (a->o->command != CMD_NONE)
		return 0;
	for (c = CMD_NONE + 1; c < COMMANDS; c++)
		names[c - 1] = commands[c].name;
	names[COMMANDS - 1] = NULL;
	nearest_names(text, "", names, &near);
	err_set(err, ERR_USAGE, "unknown command '%.60s'%s%s", text, buf_text(&near),
		near.len ? "" : "; 'recorder help' lists them");
	buf_free(&near);
	return ERR_USAGE;
}

static int argument(struct arguments *a, const char *arg, struct err *err)
{
	size_t one = dash(arg), two = one ? dash(arg + one) : 0;
	const char *name = arg + (one ? one : 1);

	if (a->only_operands || (!one && *arg != '/') || (one && !*name))
		return operand(a, arg, err);
	if (two) {
		if (arg[one + two])
			return long_option(a, arg, one + two, err);
		a->only_operands = true;
		return 0;
	}
	if (strcspn(name, ":=") > 1 && option_by_name(name, strcspn(name, ":=")))
		return perfview_option(a, arg, one ? one : 1, err);
	if (one)
		return short_option(a, arg, one, err);
	if (os_exists(arg))
		return operand(a, arg, err);
	return unknown_option(arg, strcspn(arg, ":="), false, err);
}

/* What the command's operand stands for. */
static int use_operand(struct arguments *a, struct err *err)
{
	struct options *o = a->o;
	const char *text = a->operands[0];

	switch (commands[o->command].operands) {
	case OPERAND_PATTERN:
		o->pattern = text_copy(text, strlen(text));
		return o->pattern ? 0 : no_memory(err);
	case OPERAND_DATA_FILE:
		return set_argument(a, option_by_name("data-file", 9), "the data file", text, err);
	case OPERAND_COMMAND:
		o->help_about = command_by_name(text);
		if (o->help_about == CMD_NONE)
			return err_set(err, ERR_USAGE, "unknown command '%.60s'; 'recorder help' "
				       "lists them", text);
		return 0;
	default:
		return 0;
	}
}

/* "collect or check": the commands that take an option. */
static void put_commands(const struct option_info *info, struct buf *out)
{
	unsigned c, left = 0;

	for (c = CMD_NONE + 1; c < COMMANDS; c++)
		left += (info->commands >> c) & 1;
	for (c = CMD_NONE + 1; c < COMMANDS; c++) {
		if (!((info->commands >> c) & 1))
			continue;
		buf_puts(out, commands[c].name);
		left--;
		buf_puts(out, left > 1 ? ", " : left ? " and " : "");
	}
}

/* Was every option of the command line one of this command? */
static int check_command(const struct options *o, struct err *err)
{
	struct buf where = {0};
	unsigned row;

	for (row = 0; options[row].name; row++) {
		if (o->origin[row] != FROM_ARGS || (options[row].commands >> o->command) & 1)
			continue;
		put_commands(&options[row], &where);
		err_set(err, ERR_USAGE, "--%s is an option of %s, not of %s", options[row].name,
			where.len ? buf_text(&where) : "the program alone",
			commands[o->command].name);
		buf_free(&where);
		return ERR_USAGE;
	}
	return 0;
}

int options_parse(struct options *o, int argc, char *const *argv, struct err *err)
{
	struct arguments a = {.o = o, .argc = argc, .argv = argv};
	int rc = 0;

	while (!rc && a.at < argc)
		rc = argument(&a, argv[a.at++], err);
	if (!rc && a.noperands)
		rc = use_operand(&a, err);
	if (!rc && !o->help && o->command != CMD_NONE)
		rc = check_command(o, err);
	return rc;
}

void options_no_effect(const struct options *o, struct buf *out)
{
	unsigned row, n = 0;

	for (row = 0; options[row].name; row++) {
		if (o->origin[row] != FROM_ARGS || !((options[row].no_effect >> o->command) & 1))
			continue;
		buf_printf(out, "%s--%s", n++ ? ", " : "", options[row].name);
	}
	if (n)
		buf_printf(out, ": accepted, without effect here");
}
