/*
 * Values of options: check them against their row of the table, and put them into struct options.
 */
#include "options/options_private.h"

#include "base/array.h"
#include "base/json.h"
#include "base/moment.h"
#include "base/os.h"
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------ */

int option_no_memory(struct err *err)
{
	return err_memory(err, "while reading the options");
}

static void *field_of(struct options *o, const struct option_info *info)
{
	return (char *)o + info->offset;
}

/* A default that is out of bounds means that there is none. */
static bool in_bounds(const struct option_info *info, double v)
{
	return v >= info->min && v <= info->max;
}

static void set_default(struct options *o, const struct option_info *info)
{
	if (info->same_as)
		return;
	switch (info->type) {
	case OPTION_INT:
		*(uint32_t *)field_of(o, info) = (uint32_t)info->def;
		break;
	case OPTION_FLOAT:
		*(double *)field_of(o, info) = info->def;
		break;
	case OPTION_MOMENT:
		((struct moment_option *)field_of(o, info))->ns = OPTION_NO_TIME;
		break;
	case OPTION_SECONDS:
		*(int64_t *)field_of(o, info) =
			in_bounds(info, info->def) ? (int64_t)(info->def * 1e9) : OPTION_NO_TIME;
		break;
	default:
		break;
	}
}

void options_init(struct options *o)
{
	const struct option_info *info;

	memset(o, 0, sizeof(*o));
	for (info = option_table; info->name; info++)
		set_default(o, info);
}

static void text_list_free(struct text_list *list)
{
	while (list->n)
		free(list->items[--list->n]);
	free(list->items);
	free(list->lines);
	list->items = NULL;
	list->lines = NULL;
}

void options_free(struct options *o)
{
	const struct option_info *info;

	for (info = option_table; info->name; info++) {
		if (info->type == OPTION_TEXT) {
			char **text = field_of(o, info);

			free(*text);
			*text = NULL;
		} else if (info->type == OPTION_MOMENT) {
			struct moment_option *moment = field_of(o, info);

			free(moment->text);
			moment->text = NULL;
		} else if (info->type == OPTION_LIST || info->type == OPTION_TEXTS) {
			text_list_free(field_of(o, info));
		} else if (info->type == OPTION_IDS) {
			struct id_list *ids = field_of(o, info);

			free(ids->items);
			*ids = (struct id_list){0};
		}
	}
	text_list_free(&o->more_stores);
	while (o->rules.n)
		free(o->rules.items[--o->rules.n].spec);
	free(o->rules.items);
	free(o->pattern);
	free(o->conf_path);
	o->rules.items = NULL;
	o->pattern = NULL;
	o->conf_path = NULL;
}

/* ---- parsing ----------------------------------------------------------------------------- */

void option_number_text(double v, char *out, size_t n)
{
	if (v == floor(v) && fabs(v) < 1e15)
		snprintf(out, n, "%.0f", v);
	else
		num_text(v, out, n);
}

static void put_bound(struct buf *out, double v)
{
	char text[40];

	option_number_text(v, text, sizeof(text));
	buf_puts(out, text);
}

/* "--freq: '5x' is not a whole number; allowed: 1 to 10000 Hz (default 99)". */
static int bad_number(const struct setting *s, const char *why, struct err *err)
{
	const struct option_info *info = s->info;
	struct buf allowed = {0};

	put_bound(&allowed, info->min);
	buf_puts(&allowed, " to ");
	put_bound(&allowed, info->max);
	if (info->unit)
		buf_printf(&allowed, " %s", info->unit);
	if (in_bounds(info, info->def)) {
		buf_puts(&allowed, " (default ");
		put_bound(&allowed, info->def);
		buf_putc(&allowed, ')');
	}
	err_set(err, ERR_USAGE, "%s: '%.60s' %s; allowed: %s", s->as, s->value, why,
		buf_text(&allowed));
	buf_free(&allowed);
	return ERR_USAGE;
}

static size_t count_digits(const char *at)
{
	return strspn(at, "0123456789");
}

static int parse_int(const struct setting *s, uint32_t *out, struct err *err)
{
	const char *text = s->value;
	bool hex = text[0] == '0' && (text[1] | 32) == 'x';
	const char *first = hex ? text + 2 : text;
	uint64_t v = 0;

	if (!*first || first[strspn(first, hex ? "0123456789abcdefABCDEF" : "0123456789")])
		return bad_number(s, "is not a whole number", err);
	/* Twenty digits would overflow; no bound has more than ten. */
	v = strlen(first) > 15 ? UINT64_MAX : strtoull(first, NULL, hex ? 16 : 10);
	if (v > UINT32_MAX || !in_bounds(s->info, (double)v))
		return bad_number(s, "is out of range", err);
	*out = (uint32_t)v;
	return 0;
}

static int parse_float(const struct setting *s, double *out, struct err *err)
{
	size_t n = text_number_length(s->value);
	double v;

	if (!n || s->value[n])
		return bad_number(s, "is not a number", err);
	v = strtod(s->value, NULL);
	if (!in_bounds(s->info, v))
		return bad_number(s, "is out of range", err);
	*out = v;
	return 0;
}

static int parse_seconds(const struct setting *s, int64_t *out, struct err *err)
{
	double seconds;

	if (!duration_parse(s->value, &seconds))
		return bad_number(s, "is not a number of seconds (5, or 5 with ms, s, m, h or d)",
				  err);
	if (!in_bounds(s->info, seconds))
		return bad_number(s, "is out of range", err);
	*out = llround(seconds * 1e9);
	return 0;
}

/*
 * A number alone is seconds, and so is "5s"; anything else is a moment ("-30m" is before now), read
 * by the command, which knows what it is for.
 */
static int parse_moment(const struct setting *s, bool store, struct err *err)
{
	struct moment_option none = {0}, *out = store ? field_of(s->o, s->info) : &none;
	size_t n = text_number_length(s->value);
	struct err why = {0};
	uint64_t wall_ns;

	if (n && !s->value[n + strcspn(s->value + n, ":-")] && (*s->value != '-' || !s->value[n]))
		return parse_seconds(s, &out->ns, err);
	if (moment_parse(s->value, os_wall_ns(), 0, &wall_ns, &why) && os_exists(s->value))
		return err_set(err, ERR_USAGE, "%s: '%.60s' is a file, and this is a moment: make "
			       "an incident of the file first, by 'recorder collect --from FILE'",
			       s->as, s->value);
	if (why.text[0])
		return err_set(err, ERR_USAGE, "%s: %s; or seconds from an incident's trigger",
			       s->as, why.text);
	if (!store)
		return 0;
	free(out->text);
	out->text = text_dup(s->value, SIZE_MAX);
	return out->text ? 0 : option_no_memory(err);
}

static int parse_bool(const struct setting *s, bool *out, struct err *err)
{
	const char *text = s->value;

	if (!text || text_same_fold(text, "true"))
		*out = true;
	else if (!*text || text_same_fold(text, "false"))
		*out = false;
	else
		return err_set(err, ERR_USAGE, "%s: '%.60s' is neither true nor false", s->as,
			       text);
	return 0;
}

/* Whether text ends with a comparison: "...>80", "...<= 1.5G ", "...>80;Floor=9". */
static bool ends_in_limit(const char *text, size_t n)
{
	size_t at = n, number;

	while (at && text[at - 1] != '<' && text[at - 1] != '>')
		at--;
	if (!at)
		return false;
	number = strcspn(text + at, ";");
	if (at + number < n)
		n = at + number;
	at += at < n && text[at] == '=';
	at += strspn(text + at, " ");
	number = text_number_length(text + at);
	at += number;
	at += strspn(text + at, "KMGkmg ");
	return number && at >= n;
}

/* Whether PROVIDER/EVENT stands before the first ';', with no characters but those of names. */
static bool is_event_spec(const char *text, size_t n)
{
	static const char others[] = "-._ /(){}*:";
	size_t head = strcspn(text, ";"), i;
	const char *slash;

	head = head < n ? head : n;
	slash = memchr(text, '/', head);
	if (!slash || slash == text || slash + 1 == text + head || *text == ' ')
		return false;
	for (i = 0; i < head && (isalnum((unsigned char)text[i]) || strchr(others, text[i])); i++)
		;
	return i == head;
}

/*
 * Whether text is a whole spec, so that a ',' before it separates. A spec has two ':' and, for a
 * rule, ends with a comparison with a number. A rule on events is a name, '/' and a name, then ';'
 * or the end.
 */
static bool piece_is_spec(enum option_type type, const char *text, size_t n)
{
	const char *first = memchr(text, ':', n);
	const char *second = first ? memchr(first + 1, ':', n - (size_t)(first + 1 - text)) : NULL;

	if (type == OPTION_RULE_EVENT)
		return is_event_spec(text, n);
	if (!second || first == text)
		return false;
	return type != OPTION_RULE || ends_in_limit(second, n - (size_t)(second - text));
}

/*
 * Whether a spec begins here. The INSTANCE of a rule may contain a ',', so the limit may come at
 * the end of any piece.
 */
static bool spec_begins(enum option_type type, const char *text)
{
	size_t n = 0;

	do {
		n += strcspn(text + n, ",");
		if (piece_is_spec(type, text, n))
			return true;
	} while (type == OPTION_RULE && text[n++] == ',');
	return false;
}

/* Append n bytes of text to the option's list, or to the rules. */
static int add_spec(const struct setting *s, const char *text, size_t n, struct err *err)
{
	bool is_rule = s->info->type != OPTION_LIST && s->info->type != OPTION_TEXTS;
	struct text_list *texts = field_of(s->o, s->info);
	struct rule_list *rules = &s->o->rules;
	char *copy = text_dup(text, n);

	if (!copy || (is_rule ? ARRAY_NEXT(rules->items, rules->n)
			      : ARRAY_NEXT(texts->items, texts->n) ||
				ARRAY_NEXT(texts->lines, texts->n))) {
		free(copy);
		return option_no_memory(err);
	}
	if (is_rule) {
		rules->items[rules->n++] = (struct rule_spec){s->info->name, copy, s->line};
	} else {
		texts->lines[texts->n] = s->line;
		texts->items[texts->n++] = copy;
	}
	return 0;
}

/* "true" is a rule without a spec, "false" no rule; anything else is the spec. */
static int set_rule_flag(const struct setting *s, struct err *err)
{
	const char *text = s->value ? s->value : "";

	if (text_same_fold(text, "false"))
		return 0;
	return add_spec(s, text_same_fold(text, "true") ? "" : text, SIZE_MAX, err);
}

/* A ',' separates only where one spec has ended and another begins. */
static int set_list(const struct setting *s, struct err *err)
{
	const char *spec = s->value, *comma = spec;
	int rc = 0;

	while (!rc && (comma = strchr(comma, ','))) {
		size_t n = (size_t)(comma - spec);

		comma++;
		if (!piece_is_spec(s->info->type, spec, n) || !spec_begins(s->info->type, comma))
			continue;
		rc = add_spec(s, spec, n, err);
		spec = comma;
	}
	return rc ? rc : add_spec(s, spec, SIZE_MAX, err);
}

/* A number, or the first and last of a range: 5-9. Returns what follows; NULL = it is neither. */
static const char *id_range(const char *at, int64_t *first, int64_t *last)
{
	size_t n = count_digits(at);

	if (!n || n > 18)
		return NULL;
	*first = *last = strtoll(at, NULL, 10);
	at += n;
	if (*at != '-')
		return at;
	n = count_digits(++at);
	if (!n || n > 18)
		return NULL;
	*last = strtoll(at, NULL, 10);
	return *last >= *first ? at + n : NULL;
}

static int set_ids(const struct setting *s, struct err *err)
{
	struct id_list *ids = field_of(s->o, s->info);
	const char *at = s->value;
	int64_t id, last;

	for (;;) {
		at = id_range(at, &id, &last);
		if (!at || (*at && *at != ','))
			return err_set(err, ERR_USAGE, "%s: '%.60s' is not the number of an "
				       "incident, nor a list (3,5-9); 'recorder list' shows them%s",
				       s->as, s->value,
				       s->o->command != CMD_BACKTEST ? "" :
				       "; a rule is an option: '/StopOnPerfCounter:...'");
		if (last - id >= OPTION_IDS_MAX - (int64_t)ids->n)
			return err_set(err, ERR_USAGE, "%s: '%.60s' are more than %d incidents",
				       s->as, s->value, OPTION_IDS_MAX);
		for (; id <= last; id++) {
			if (ARRAY_NEXT(ids->items, ids->n))
				return option_no_memory(err);
			ids->items[ids->n++] = id;
		}
		if (!*at)
			return 0;
		at++;
	}
}

/* A further --store of the command line; check_command() knows who takes it. */
static int add_store(struct setting *s, struct err *err)
{
	struct text_list *list = &s->o->more_stores;

	if (!s->value || !*s->value)
		return err_set(err, ERR_USAGE, "%s needs a value: FILE", s->as);
	if (ARRAY_NEXT(list->items, list->n))
		return option_no_memory(err);
	list->items[list->n] = text_dup(s->value, SIZE_MAX);
	return list->items[list->n] && ++list->n ? 0 : option_no_memory(err);
}

static int set_text(const struct setting *s, bool store, struct err *err)
{
	char **to = field_of(s->o, s->info);

	if (!*s->value)
		return err_set(err, ERR_USAGE, "%s: the value is empty; expected %s", s->as,
			       s->info->value);
	if (!store)
		return 0;
	free(*to);
	*to = text_dup(s->value, SIZE_MAX);
	return *to ? 0 : option_no_memory(err);
}

/* Check the value and, if store is set, put it where it belongs. */
static int set_value(const struct setting *s, bool store, struct err *err)
{
	union {
		bool yes;
		uint32_t whole;
		double number;
		int64_t ns;
	} checked;
	void *to = store ? field_of(s->o, s->info) : &checked;
	int rc;

	switch (s->info->type) {
	case OPTION_BOOL:
		return parse_bool(s, to, err);
	case OPTION_INT:
		return parse_int(s, to, err);
	case OPTION_FLOAT:
		return parse_float(s, to, err);
	case OPTION_SECONDS:
		return parse_seconds(s, to, err);
	case OPTION_MOMENT:
		return parse_moment(s, store, err);
	case OPTION_PERIOD_MS:
		rc = parse_float(s, &checked.number, err);
		if (!rc && store)
			*(uint32_t *)to = (uint32_t)lround(1000 / checked.number);
		return rc;
	case OPTION_TEXT:
		return set_text(s, store, err);
	case OPTION_LIST:
	case OPTION_RULE:
	case OPTION_RULE_EVENT:
		return store ? set_list(s, err) : 0;
	case OPTION_TEXTS:
	case OPTION_RULE_TEXT:               /* an empty spec means any, or the rule refuses it */
		return store ? add_spec(s, s->value, SIZE_MAX, err) : 0;
	case OPTION_RULE_FLAG:
		return store ? set_rule_flag(s, err) : 0;
	case OPTION_IDS:
		return set_ids(s, err);
	}
	return 0;
}

int option_set(struct setting *s, struct err *err)
{
	struct options *o = s->o;
	const char *owner = s->info->same_as ? s->info->same_as : s->info->name;
	bool store;
	int rc;

	/* Not by name: two rows may have the same one. */
	s->row = (unsigned)((s->info->same_as ? option_by_name(owner, strlen(owner)) : s->info) -
			    option_table);
	if (s->info->type < OPTION_LIST && o->origin[s->row] == s->origin) {
		if (s->origin == FROM_ARGS && strcmp(owner, "store") == 0)
			return add_store(s, err);
		if (s->origin == FROM_CONF)
			return err_set(err, ERR_USAGE, "%s is already set on line %" PRIu32, s->as,
				       o->conf_line[s->row]);
		return err_set(err, ERR_USAGE, "%s: --%s was already given", s->as, owner);
	}
	store = s->origin >= (enum option_origin)o->origin[s->row];
	if (!s->value && !option_stands_alone(s->info))
		return err_set(err, ERR_USAGE, "%s needs a value: %s", s->as, s->info->value);
	if (s->value && strlen(s->value) > OPTION_VALUE_MAX)
		return err_set(err, ERR_USAGE, "%s: the value is longer than %d bytes", s->as,
			       OPTION_VALUE_MAX);
	rc = set_value(s, store, err);
	if (!rc && store) {
		o->origin[s->row] = (uint8_t)s->origin;
		o->conf_line[s->row] = s->line;
	}
	return rc;
}
