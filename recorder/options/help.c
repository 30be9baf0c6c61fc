/*
 * Help, from the tables of commands and options, as Markdown: see cli/markdown.h.
 */
#include "options/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A '|' would end the cell. */
void help_put_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_putc(out, '\\');
		buf_putc(out, *text);
	}
}

/* "Default 64 MB." "Also /CircularMB:MB." "Also --start." */
static void put_facts(struct buf *out, const struct option_info *info)
{
	char number[40];

	/* A default of 0 is "off", and the sentence says so. */
	if (info->unit && info->def != 0 && info->def >= info->min && info->def <= info->max) {
		option_number_text(info->def, number, sizeof(number));
		buf_printf(out, " Default %s %s.", number, info->unit);
	}
	if (info->other_names) {
		int n = (int)strcspn(info->other_names, " ");

		/* Qualifiers of PerfView's command line begin with a capital letter. */
		if (islower((unsigned char)info->other_names[0])) {
			buf_printf(out, " Also --%.*s.", n, info->other_names);
			return;
		}
		buf_printf(out, " Also /%.*s:", n, info->other_names);
		help_put_cell(out, info->value);
		buf_putc(out, '.');
	}
}

/* Append a row of a table: the option with `prefix` before its name, and what it does. */
static void put_option(struct buf *out, const struct option_info *info, const char *prefix)
{
	const struct short_option *s = short_options;
	bool in_conf = !*prefix;

	while (s->letter && ((s->value && info->value) || strcmp(s->name, info->name) != 0))
		s++;
	buf_puts(out, "| `");
	if (s->letter && !in_conf)
		buf_printf(out, "-%c, ", s->letter);
	buf_printf(out, "%s%s", prefix, info->name);
	if (info->value) {
		buf_puts(out, in_conf ? " = " : " ");
		help_put_cell(out, info->value);
	} else if (in_conf) {
		buf_puts(out, " = true");
	}
	buf_puts(out, "` | ");
	help_put_cell(out, info->help);
	put_facts(out, info);
	buf_puts(out, " |\n");
}

static void put_table_head(struct buf *out, const char *term)
{
	buf_printf(out, "| %s | meaning |\n|---|---|\n", term);
}

/* Whether help on the command, or (CMD_NONE) on the conf file, lists the option in this group. */
static bool is_listed(const struct option_info *info, enum option_group group, enum command about)
{
	if (about == CMD_NONE)
		return info->conf && info->group == group;
	if ((info->no_effect >> about) & 1)
		return group == GROUP_PERFVIEW;
	return (info->commands >> about) & 1 && info->group == group;
}

/* Append the options of a command, or (CMD_NONE) the keys of the conf file, a table a group. */
static void put_options(struct buf *out, enum command about)
{
	const struct option_info *info;
	unsigned group, n;

	for (group = 0; group < OPTION_GROUPS; group++) {
		for (n = 0, info = option_table; info->name; info++) {
			if (!is_listed(info, (enum option_group)group, about))
				continue;
			if (!n++) {
				buf_printf(out, "\n### %s\n\n", option_groups[group]);
				if (info->help)
					put_table_head(out, about == CMD_NONE ? "key" : "option");
			}
			/* Some options need no explanation. */
			if (info->help)
				put_option(out, info, about == CMD_NONE ? "" : "--");
			else
				buf_printf(out, "--%s\n", info->name);
		}
	}
}

static void put_examples(struct buf *out, const char *lines)
{
	buf_puts(out, "\n## Examples\n\n");
	while (*lines) {
		size_t n = strcspn(lines, "\n");

		buf_printf(out, "    %.*s\n", (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

static void help_all(struct buf *out)
{
	unsigned c;

	buf_puts(out,
		 "\n## Usage\n\n"
		 "    recorder COMMAND [OPTION...]\n"
		 "\n## Description\n\n"
		 "recorder keeps the recent past of this machine's call stacks in memory. When\n"
		 "a rule fires, it keeps the time around that moment as an incident.\n"
		 "\n## Commands\n\n");
	put_table_head(out, "command");
	for (c = CMD_NONE + 1; c < COMMANDS; c++)
		buf_printf(out, "| `%s` | %s |\n", command_table[c].name, command_table[c].summary);
}

void options_help(enum command about, struct buf *out)
{
	const struct command_info *c = &command_table[about];

	if (about == CMD_NONE) {
		help_all(out);
		return;
	}
	buf_printf(out, c->operands == OPERAND_COMMAND
				? "\n## Usage\n\n    recorder %s [OPTION...]%s%s\n"
				: "\n## Usage\n\n    recorder %s%s%s [OPTION...]\n",
		   c->name, *c->operand_text ? " " : "", c->operand_text);
	if (*c->about)
		buf_printf(out, "\n## Description\n\n%s", c->about);
	buf_puts(out, "\n## Options\n");
	put_options(out, about);
	put_examples(out, c->examples);
}

void options_keys(struct buf *out)
{
	put_options(out, CMD_NONE);
}
