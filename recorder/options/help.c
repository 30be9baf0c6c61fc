/*
 * --help, from the tables of options/table.c. Lines end before column 80.
 */
#include "options/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { INDENT = 28, COLUMNS = 79 };

/* Append a word; *column is where the line is, and continues at indent. */
static void put_word(struct buf *out, const char *word, size_t n, unsigned indent,
		     unsigned *column)
{
	if (*column > indent && *column + 1 + n > COLUMNS) {
		buf_printf(out, "\n%*s", (int)indent, "");
		*column = indent;
	} else if (*column > indent) {
		buf_putc(out, ' ');
		++*column;
	}
	buf_put(out, word, n);
	*column += (unsigned)n;
}

static void put_wrapped(struct buf *out, const char *text, unsigned indent, unsigned *column)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		put_word(out, text, n, indent, column);
		text += n;
		text += strspn(text, " ");
	}
}

/* "Default 64 MB." "Also /CircularMB:MB." "Also --start." */
static void put_facts(struct buf *out, const struct option_info *info, unsigned *column)
{
	char text[200], number[40];

	/* A default of 0 is "off", and the sentence has said so. */
	if (info->unit && info->def != 0 && info->def >= info->min && info->def <= info->max) {
		option_number_text(info->def, number, sizeof(number));
		snprintf(text, sizeof(text), "Default %s %s.", number, info->unit);
		put_word(out, text, strlen(text), INDENT, column);
	}
	if (info->other_names) {
		int n = (int)strcspn(info->other_names, " ");

		/* Qualifiers of PerfView's command line begin with a capital letter. */
		if (islower((unsigned char)info->other_names[0]))
			snprintf(text, sizeof(text), "Also --%.*s.", n, info->other_names);
		else
			snprintf(text, sizeof(text), "Also /%.*s:%s.", n, info->other_names, info->value);
		put_word(out, text, strlen(text), INDENT, column);
	}
}

static void put_option(struct buf *out, const struct option_info *info)
{
	const struct short_option *s = short_options;
	char name[80], letter[8] = "";
	unsigned column;

	while (s->letter && (s->value || strcmp(s->name, info->name) != 0))
		s++;
	if (s->letter)
		snprintf(letter, sizeof(letter), "-%c, ", s->letter);
	column = (unsigned)snprintf(name, sizeof(name), "  %s--%s%s%s", letter, info->name,
				    info->value ? " " : "", info->value ? info->value : "");
	buf_puts(out, name);
	if (column + 2 > INDENT) {
		buf_putc(out, '\n');
		column = 0;
	}
	buf_printf(out, "%*s", (int)(INDENT - column), "");
	column = INDENT;
	put_wrapped(out, info->help, INDENT, &column);
	put_facts(out, info, &column);
	buf_putc(out, '\n');
}

/* Whether an option of this command stands under this heading. */
static bool is_in(const struct option_info *info, enum option_group group, enum command about)
{
	bool no_effect = (info->no_effect >> about) & 1;

	return (info->commands >> about) & 1 &&
	       (no_effect ? group == GROUP_PERFVIEW : info->group == group);
}

/* Names only: these options have nothing to explain. */
static void put_names(struct buf *out, enum option_group group, enum command about)
{
	const struct option_info *info;
	unsigned column = 2;
	char name[80];

	buf_puts(out, "  ");
	for (info = option_table; info->name; info++) {
		if (!is_in(info, group, about))
			continue;
		snprintf(name, sizeof(name), "--%s", info->name);
		put_wrapped(out, name, 2, &column);
	}
	buf_putc(out, '\n');
}

static bool has_options(enum option_group group, enum command about)
{
	const struct option_info *info;

	for (info = option_table; info->name; info++) {
		if (is_in(info, group, about))
			return true;
	}
	return false;
}

static void put_group(struct buf *out, enum option_group group, enum command about)
{
	const struct option_info *info;

	if (!has_options(group, about))
		return;
	buf_printf(out, "\n%s:\n", option_groups[group]);
	if (group == GROUP_PERFVIEW || group == GROUP_LATER) {
		put_names(out, group, about);
		return;
	}
	for (info = option_table; info->name; info++) {
		if (is_in(info, group, about))
			put_option(out, info);
	}
}

static void put_examples(struct buf *out, const char *lines)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n");

		buf_printf(out, "  %.*s\n", (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

static void help_all(struct buf *out)
{
	unsigned c;

	buf_puts(out,
		 "recorder keeps the recent past of this machine's call stacks in memory. When a\n"
		 "rule fires, it keeps the time around that moment as an incident.\n"
		 "\n"
		 "usage: recorder COMMAND [OPTION...]\n"
		 "\n"
		 "Commands:\n");
	for (c = CMD_NONE + 1; c < COMMANDS; c++)
		buf_printf(out, "  %-9s %s\n", command_table[c].name, command_table[c].summary);
	buf_puts(out, "\nExamples:\n");
	put_examples(out, "recorder collect "
			  "/StopOnPerfCounter:'Processor:% Processor Time:_Total>80'\n"
			  "recorder list\n"
			  "recorder show\n"
			  "recorder export --id 1 -f > cpu.folded\n");
	buf_puts(out,
		 "\n"
		 "'recorder help COMMAND' lists the options, as --max-collect-sec 60. PerfView's\n"
		 "/MaxCollectSec:60 is the same.\n"
		 "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 nothing found.\n");
}

void options_help(enum command about, struct buf *out)
{
	const struct command_info *c = &command_table[about];
	unsigned group;

	if (about == CMD_NONE) {
		help_all(out);
		return;
	}
	buf_printf(out, "usage: recorder %s%s%s [OPTION...]\n\n%s: %s\n", c->name,
		   *c->operand_text ? " " : "", c->operand_text, c->name, c->summary);
	if (*c->about)
		buf_printf(out, "\n%s", c->about);
	for (group = 0; group < OPTION_GROUPS; group++)
		put_group(out, (enum option_group)group, about);
	buf_puts(out, "\nExamples:\n");
	put_examples(out, c->examples);
}
