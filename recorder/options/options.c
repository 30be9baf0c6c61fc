#include "options/options_private.h"

#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

bool option_same_name(const char *name, size_t nname, const char *text, size_t n)
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

bool option_stands_alone(const struct option_info *info)
{
	return info->type == OPTION_BOOL || info->type == OPTION_RULE_FLAG;
}

bool option_is_one_of(const char *names, const char *text, size_t n)
{
	size_t len;

	for (; *names; names += len + (names[len] == ' ')) {
		len = strcspn(names, " ");
		if (option_same_name(names, len, text, n))
			return true;
	}
	return false;
}

static bool has_name(const struct option_info *info, const char *text, size_t n)
{
	return option_same_name(info->name, strlen(info->name), text, n) ||
	       (info->other_names && option_is_one_of(info->other_names, text, n));
}

const struct option_info *option_by_name(const char *name, size_t n)
{
	const struct option_info *info;

	for (info = option_table; info->name; info++) {
		if (has_name(info, name, n))
			return info;
	}
	return NULL;
}

enum command command_by_name(const char *name)
{
	unsigned c;

	for (c = CMD_NONE + 1; c < COMMANDS; c++) {
		const char *command = command_table[c].name;

		if (option_same_name(command, strlen(command), name, strlen(name)))
			return (enum command)c;
	}
	return CMD_NONE;
}

enum option_origin options_origin(const struct options *o, const char *name)
{
	const struct option_info *info = option_by_name(name, strlen(name));

	return info ? (enum option_origin)o->origin[info - option_table] : FROM_DEFAULT;
}

uint32_t options_line(const struct options *o, const char *name)
{
	const struct option_info *info = option_by_name(name, strlen(name));

	return info && o->origin[info - option_table] == FROM_CONF
		       ? o->conf_line[info - option_table] : 0;
}

int options_at_line(const struct options *o, uint32_t line, struct err *err)
{
	return line && o->conf_path ? err_prefix(err, "%s:%" PRIu32, o->conf_path, line)
				    : err->code;
}

int options_at_option(const struct options *o, struct err *err)
{
	char name[64];

	if (strncmp(err->text, "--", 2) != 0)
		return err->code;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(err->text + 2, " :="), err->text + 2);
	return options_at_line(o, options_line(o, name), err);
}

static void did_you_mean(const struct nearest *nearest, const char *before, struct buf *out)
{
	if (!nearest->n)
		return;
	buf_puts(out, "; did you mean ");
	nearest_put(nearest, before, "", out);
	buf_putc(out, '?');
}

/* ---- the command line ------------------------------------------------------------------------ */

struct arguments {
	struct options *o;
	int argc;
	char *const *argv;
	int at;                          /* the next one to read */
	bool only_operands;              /* after "--" */
	const char *operand;             /* of the command, unless numbers of incidents; or NULL */
};

/* How many bytes a dash at the start has: '-', or U+2013 to U+2015; 0 = there is none. */
static size_t dash(const char *text)
{
	if (*text == '-')
		return 1;
	if (memcmp(text, "\xe2\x80", strnlen(text, 2)) == 0 && strnlen(text, 3) == 3 &&
	    (unsigned char)text[2] >= 0x93 && (unsigned char)text[2] <= 0x95)
		return 3;
	return 0;
}

/* The command, which may come after its options. */
static enum command command_ahead(const struct arguments *a)
{
	enum command command = a->o->command;
	int i;

	for (i = a->at; command == CMD_NONE && i < a->argc; i++)
		command = command_by_name(a->argv[i]);
	return command;
}

/* Of rows with this name, or with that of the first one, the command's own. */
static const struct option_info *row_of_command(const struct arguments *a, const char *name,
						size_t n)
{
	const struct option_info *first = option_by_name(name, n), *row;
	enum command command = command_ahead(a);

	for (row = first; row && row->name; row++) {
		if (has_name(row, name, n) && (row->commands >> command) & 1)
			return row;
	}
	for (row = first; row && row->name; row++) {
		if (strcmp(row->name, first->name) == 0 && (row->commands >> command) & 1)
			return row;
	}
	return first;
}

static int set_argument(struct arguments *a, const struct option_info *info, const char *as,
			const char *value, struct err *err)
{
	struct setting s = {
		.o = a->o, .info = info, .as = as, .value = value,
		.origin = FROM_ARGS,
	};

	return option_set(&s, err);
}

/* An operand is the value of the option with this name. */
static int set_operand(struct arguments *a, const char *name, const char *as, const char *value,
		       struct err *err)
{
	return set_argument(a, row_of_command(a, name, strlen(name)), as, value, err);
}

/*
 * An argument or, where a is NULL, a key of the conf file names no option. Suggests the nearest
 * options of the command, or the nearest keys.
 */
static int unknown_option(const struct arguments *a, const char *as, struct err *err)
{
	enum command command = a ? command_ahead(a) : CMD_NONE;
	size_t n = a ? strcspn(as, ":=") : strlen(as);
	struct nearest nearest = {0};
	const struct option_info *info;
	const char *instead;
	struct buf near = {0};
	char name[64];

	while (n && (*as == '-' || *as == '/'))
		as++, n--;
	instead = perfview_qualifier(as, n);
	if (instead)
		return err_set(err, ERR_USAGE, "/%.*s: %s", (int)n, as, instead);
	snprintf(name, sizeof(name), "%.*s", n > 60 ? 60 : (int)n, as);
	nearest.wanted = name;
	for (info = option_table; info->name; info++) {
		if (a ? command == CMD_NONE || (info->commands >> command) & 1 : info->conf)
			nearest_offer(&nearest, info->name);
	}
	did_you_mean(&nearest, a ? "--" : "", &near);
	if (a && !near.len)
		buf_printf(&near, "; 'recorder help%s%s' lists them",
			   command == CMD_NONE ? "" : " ", command_table[command].name);
	err_set(err, ERR_USAGE, "unknown %s '%s'%s", a ? "option" : "key", name, buf_text(&near));
	buf_free(&near);
	return ERR_USAGE;
}

int options_set_conf(struct options *o, const char *key, const char *value, uint32_t line,
		     struct err *err)
{
	struct setting s = {
		.o = o, .info = option_by_name(key, strlen(key)), .as = key, .value = value,
		.origin = FROM_CONF, .line = line,
	};

	if (!s.info)
		return unknown_option(NULL, key, err);
	if (!s.info->conf)
		return err_set(err, ERR_USAGE, "'%s' belongs on the command line, not in a "
			       "configuration file", s.info->name);
	return option_set(&s, err);
}

/*
 * The value of an option without an attached one: the next argument, whatever it begins with,
 * unless it names an option of the command: then the value was forgotten.
 */
static const char *next_value(struct arguments *a, const struct option_info *info)
{
	const char *next = a->at < a->argc ? a->argv[a->at] : "";
	const struct option_info *other = NULL;

	if (strncmp(next, "--", 2) == 0 && next[2])
		other = row_of_command(a, next + 2, strlen(next + 2));
	if (option_stands_alone(info) || a->at >= a->argc ||
	    (other && (other->commands >> command_ahead(a)) & 1))
		return NULL;
	return a->argv[a->at++];
}

/*
 * "--name value", "--name=value", "/Name:value" or "-Name:value"; nprefix bytes stand before the
 * name. In PerfView's forms only a yes/no option may lack the attached value.
 */
static int named_option(struct arguments *a, const char *arg, size_t nprefix, bool perfview,
			struct err *err)
{
	const char *name = arg + nprefix;
	size_t n = strcspn(name, ":=");
	const struct option_info *info = row_of_command(a, name, n);
	char as[80];

	if (!info)
		return unknown_option(a, arg, err);
	snprintf(as, sizeof(as), "%.*s", n > 60 ? 60 : (int)(nprefix + n), arg);
	if (perfview && !name[n] && !option_stands_alone(info))
		return err_set(err, ERR_USAGE, "%s needs a value after a colon: %s:%s", as, as,
			       info->value);
	return set_argument(a, info, as, name[n] ? name + n + 1 : next_value(a, info), err);
}

/* "-bufer-mb:64" is more likely a misspelled name than -b with a value. */
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
	info = s->letter ? row_of_command(a, s->name, strlen(s->name)) : NULL;
	if (!info || (*rest && (s->value || option_stands_alone(info) || looks_like_name(letter))))
		return unknown_option(a, arg, err);
	value = s->value ? s->value : *rest ? rest : next_value(a, info);
	return set_argument(a, info, as, value, err);
}

static int name_command(struct options *o, const char *text, struct err *err)
{
	struct nearest nearest = {.wanted = text};
	struct buf near = {0};
	unsigned c;

	o->command = command_by_name(text);
	if (o->command != CMD_NONE)
		return 0;
	if (perfview_command(text))
		return err_set(err, ERR_USAGE, "'%s' is a command of PerfView: %s", text,
			       perfview_command(text));
	for (c = CMD_NONE + 1; c < COMMANDS; c++)
		nearest_offer(&nearest, command_table[c].name);
	did_you_mean(&nearest, "", &near);
	err_set(err, ERR_USAGE, "unknown command '%.60s'%s%s", text, buf_text(&near),
		near.len ? "" : "; 'recorder help' lists them");
	buf_free(&near);
	return ERR_USAGE;
}

static int read_operand(struct arguments *a, const char *text, struct err *err)
{
	const struct command_info *command = &command_table[a->o->command];

	if (a->o->command == CMD_NONE)
		return name_command(a->o, text, err);
	/* Where other programs take a command to run, it must not become the name of a file. */
	if (a->only_operands && a->o->command == CMD_START)
		return err_set(err, ERR_USAGE, "'-- %.80s': %s takes no command; 'recorder run -- "
			       "%.80s' runs and records one", text, command->name, text);
	if (command->operands == OPERAND_COMMAND ||
	    (a->only_operands && command->operands == OPERAND_DATA_FILE)) {
		a->o->program = a->argv + a->at - 1;
		a->o->nprogram = a->argc - a->at + 1;
		a->at = a->argc;
		return 0;
	}
	if (command->operands == OPERAND_IDS)
		return set_operand(a, "id", "the incident", text, err);
	if (command->operands == OPERAND_PAIR && !a->o->base_ids.n)
		return set_operand(a, "base", "the base", text, err);
	if (command->operands == OPERAND_PAIR && !a->o->test_ids.n)
		return set_operand(a, "test", "the test", text, err);
	if (command->operands == OPERAND_NONE || command->operands == OPERAND_PAIR || a->operand)
		return err_set(err, ERR_USAGE, "unexpected argument '%.80s'; 'recorder help %s' "
			       "shows what %s takes", text, command->name, command->name);
	if (*text == ';')
		return err_set(err, ERR_USAGE, "unexpected argument '%.80s'; write it after the "
			       "option and '=', such as --stop-on-gen2-gc=';Process=NAME'", text);
	a->operand = text;
	return 0;
}

static int read_argument(struct arguments *a, const char *arg, struct err *err)
{
	size_t one = dash(arg), two = one ? dash(arg + one) : 0;
	const char *name = arg + (one ? one : 1);

	if (a->only_operands || (!one && *arg != '/') || (one && !*name))
		return read_operand(a, arg, err);
	if (two) {
		if (arg[one + two])
			return named_option(a, arg, one + two, false, err);
		a->only_operands = true;
		return 0;
	}
	if (strcspn(name, ":=") > 1 && option_by_name(name, strcspn(name, ":=")))
		return named_option(a, arg, one ? one : 1, true, err);
	if (one)
		return short_option(a, arg, one, err);
	if (os_exists(arg))
		return read_operand(a, arg, err);
	/* Something with several '/' is meant as a path. */
	if (strchr(name, '/') && !strpbrk(arg, ":="))
		return err_set(err, ERR_USAGE, "unknown option '%.200s', and there is no file of "
			       "that name", arg);
	return unknown_option(a, arg, err);
}

/* Put the command's pattern or data file where it belongs. */
static int use_operand(struct arguments *a, struct err *err)
{
	a->o->bare_data_file = command_table[a->o->command].operands == OPERAND_DATA_FILE;
	if (a->o->bare_data_file)
		return set_operand(a, "data-file", "the data file", a->operand, err);
	a->o->pattern = text_dup(a->operand, SIZE_MAX);
	return a->o->pattern ? 0 : option_no_memory(err);
}

/* Append "collect and check": the commands that take an option of this name. */
static void put_commands(const char *name, struct buf *out)
{
	uint64_t commands = 0;
	unsigned c;

	for (c = 0; option_table[c].name; c++)
		if (strcmp(option_table[c].name, name) == 0)
			commands |= option_table[c].commands;
	for (c = CMD_NONE + 1; c < COMMANDS; c++) {
		uint64_t later = commands >> c >> 1;

		if ((commands >> c) & 1)
			buf_printf(out, "%s%s", command_table[c].name,
				   later & (later - 1) ? ", " : later ? " and " : "");
	}
}

/* Whether every option that was given belongs to the command. */
static int check_command(const struct options *o, struct err *err)
{
	struct buf where = {0};
	unsigned row;

	if (o->more_stores.n && o->command != CMD_REPORT && o->command != CMD_EXPORT &&
	    !(o->command == CMD_SHOW && o->group_id))
		return err_set(err, ERR_USAGE, "--store: --store was already given; only report, "
			       "export and show --group-id take several");
	for (row = 0; option_table[row].name; row++) {
		if (o->origin[row] != FROM_ARGS || (option_table[row].commands >> o->command) & 1)
			continue;
		put_commands(option_table[row].name, &where);
		err_set(err, ERR_USAGE, "--%s is an option of %s, not of %s",
			option_table[row].name, buf_text(&where), command_table[o->command].name);
		buf_free(&where);
		return ERR_USAGE;
	}
	return 0;
}

int options_parse(struct options *o, int argc, char *const *argv, struct err *err)
{
	struct arguments a = {.o = o, .argc = argc, .argv = argv};
	int rc = 0;

	o->argc = argc;
	o->argv = argv;
	while (!rc && a.at < argc)
		rc = read_argument(&a, argv[a.at++], err);
	if (!rc && a.operand)
		rc = use_operand(&a, err);
	if (!rc && !o->help && o->command != CMD_NONE)
		rc = check_command(o, err);
	return rc;
}

void options_no_effect(const struct options *o, struct buf *out)
{
	unsigned row, n = 0;

	for (row = 0; option_table[row].name; row++) {
		if (o->origin[row] != FROM_ARGS ||
		    !((option_table[row].no_effect >> o->command) & 1))
			continue;
		buf_printf(out, "%s--%s", n++ ? ", " : "", option_table[row].name);
	}
	if (n)
		buf_printf(out, ": accepted, without effect here");
}

static bool same_texts(const struct text_list *a, const struct text_list *b)
{
	uint32_t i;

	for (i = 0; i < a->n && i < b->n && strcmp(a->items[i], b->items[i]) == 0; i++)
		;
	return i == a->n && i == b->n;
}

/* The value of a conf key; rules are of no interest here. */
static bool same_value(const struct option_info *info, const struct options *a,
		       const struct options *b)
{
	const char *pa = (const char *)a + info->offset, *pb = (const char *)b + info->offset;
	const char *ta, *tb;

	switch (info->type) {
	case OPTION_BOOL:
		return *(const bool *)pa == *(const bool *)pb;
	case OPTION_INT:
	case OPTION_PERIOD_MS:
		return *(const uint32_t *)pa == *(const uint32_t *)pb;
	case OPTION_FLOAT:
	case OPTION_SECONDS:
		return memcmp(pa, pb, sizeof(int64_t)) == 0;
	case OPTION_TEXT:
		ta = *(char *const *)pa;
		tb = *(char *const *)pb;
		return ta && tb ? strcmp(ta, tb) == 0 : ta == tb;
	case OPTION_LIST:
	case OPTION_TEXTS:
		return same_texts((const struct text_list *)pa, (const struct text_list *)pb);
	default:
		return true;
	}
}

void options_needing_restart(const struct options *now, const struct options *next,
			     struct buf *out)
{
	unsigned row;

	for (row = 0; option_table[row].name; row++) {
		const struct option_info *info = &option_table[row];

		/* What neither the arguments nor the file set may have been filled in since. */
		if (!info->conf || info->live || info->same_as || same_value(info, now, next) ||
		    (!now->origin[row] && !next->origin[row]))
			continue;
		buf_printf(out, "%s%s", out->len ? ", " : "", info->name);
	}
}
