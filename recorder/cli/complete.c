/*
 * complete: the words that may stand at a shell's cursor, for the scripts of conf/completion/.
 *
 *	recorder complete WORD...     the words after the program's name; the last one is being
 *	                              typed and may be empty
 *
 * It prints one candidate a line: the whole word, a tab, its meaning. ":files" or ":dirs" asks the
 * shell for names of files. The command is hidden: it never asks a question, prints no errors, and
 * always ends with 0.
 */
#include "cli/cmd.h"

#include "base/fit.h"
#include "base/os.h"
#include "export/export.h"
#include "model/process_name.h"
#include "options/config.h"
#include "source/host/running.h"
#include "listing/sheet.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ABOUT_COLUMNS = 60 };

struct completion {
	struct buf out;
	struct options o;                    /* what the words before the cursor say */
	const char *before, *typed;          /* "--format=" of "--format=fo", and "fo" */
	size_t nbefore;
};

static void offer(struct completion *c, const char *name, size_t n, const char *about)
{
	if (strncmp(name, c->typed, strlen(c->typed)) != 0 || n < strlen(c->typed))
		return;
	buf_put(&c->out, c->before, c->nbefore);
	buf_put(&c->out, name, n);
	buf_putc(&c->out, '\t');
	fit_cut(&c->out, about, ABOUT_COLUMNS);
	buf_putc(&c->out, '\n');
}

/* "auto|always|never" */
static void offer_choices(struct completion *c, const char *choices)
{
	for (; *choices; choices += *choices == '|') {
		size_t n = strcspn(choices, "|");

		offer(c, choices, n, "");
		choices += n;
	}
}

static void offer_formats(struct completion *c)
{
	unsigned i;

	for (i = 0; exporters[i]; i++)
		offer(c, exporters[i]->name, strlen(exporters[i]->name), exporters[i]->summary);
}

/* PerfView's names of them begin with a capital letter. */
static void offer_metrics(struct completion *c)
{
	unsigned i;

	for (i = 0; i < STREAMS_MAX; i++) {
		const struct stream_metric *m = &stream_metrics[i];

		if (m->mark)
			continue;
		offer(c, m->name, strlen(m->name), m->what);
		if (isupper((unsigned char)*c->typed) && m->perfview)
			offer_choices(c, m->perfview);
	}
}

/* Each name once. */
static void offer_process(void *ctx, uint32_t pid, const struct process_names *names)
{
	const char *name = process_names_typed(names);
	struct completion *c = ctx;
	char line[PROCESS_LABEL_BYTES], about[40];

	snprintf(line, sizeof(line), "%.255s\t", name);
	if (strstr(buf_text(&c->out), line))
		return;
	snprintf(about, sizeof(about), "process %" PRIu32, pid);
	offer(c, name, strlen(name), about);
}

static int offer_incident(void *ctx, const struct incident_head *h)
{
	char id[24];

	snprintf(id, sizeof(id), "%" PRId64, h->id);
	offer(ctx, id, strlen(id), h->reason ? h->reason : "");
	return 0;
}

static void offer_incidents(struct completion *c)
{
	struct store *store = NULL;

	if (!cmd_store_open(&c->o, STORE_READ, &store, NULL))
		store_list(store, offer_incident, c, NULL);
	store_close(store);
}

static void offer_commands(struct completion *c)
{
	unsigned i;

	for (i = CMD_NONE + 1; i < COMMANDS; i++)
		offer(c, command_table[i].name, strlen(command_table[i].name),
		      command_table[i].summary);
}

static void offer_options(struct completion *c)
{
	const struct option_info *info;
	char name[80];

	for (info = option_table; info->name; info++) {
		bool fits = c->o.command == CMD_NONE ? info->commands == UINT64_MAX
						     : (info->commands >> c->o.command) & 1;

		snprintf(name, sizeof(name), "--%s", info->name);
		if (fits && info->help)
			offer(c, name, strlen(name), info->help);
	}
}

static void offer_values(struct completion *c, const struct option_info *info)
{
	if (strcmp(info->name, "format") == 0)
		offer_formats(c);
	else if (strcmp(info->name, "metric") == 0)
		offer_metrics(c);
	else if (strcmp(info->value, "ID") == 0)
		offer_incidents(c);
	else if (strcmp(info->value, "NAME|PID") == 0)
		running_each(offer_process, c);
	else if (strcmp(info->value, "FILE") == 0)
		buf_puts(&c->out, ":files\n");
	else if (strcmp(info->value, "DIR") == 0)
		buf_puts(&c->out, ":dirs\n");
	else if (islower((unsigned char)*info->value))
		offer_choices(c, info->value);
}

static void offer_operands(struct completion *c)
{
	const struct command_info *command = &command_table[c->o.command];
	const char *name, *summary;
	unsigned i;

	switch (command->operands) {
	case OPERAND_IDS:
	case OPERAND_PAIR:
		offer_incidents(c);
		break;
	case OPERAND_DATA_FILE:
	case OPERAND_STORE:
		buf_puts(&c->out, ":files\n");
		break;
	case OPERAND_PATTERN:
		if (c->o.command == CMD_HELP) {
			offer_commands(c);
			for (i = 0; help_topic(i, &name, &summary); i++)
				offer(c, name, strlen(name), summary);
		} else if (islower((unsigned char)*command->operand_text)) {
			offer_choices(c, command->operand_text);
		}
		break;
	default:
		break;
	}
}

/* The option of the command that this word is, if it takes a value; or NULL. */
static const struct option_info *valued_option(enum command command, const char *word, size_t n)
{
	const struct short_option *s = short_options;
	const struct option_info *info;
	size_t dashes = 0;

	while (dashes < n && word[dashes] == '-')
		dashes++;
	if (!dashes)
		return NULL;
	while (s->letter && (n != 2 || s->letter != word[1]))
		s++;
	info = s->letter ? option_by_name(s->name, strlen(s->name))
			 : option_by_name(word + dashes, n - dashes);
	if (s->value || !info)
		return NULL;
	/* Two rows may have one name. */
	for (word = info->name; info->name; info++) {
		if (strcmp(info->name, word) == 0 && (info->commands >> command) & 1)
			return info->value ? info : NULL;
	}
	return NULL;
}

/* bash cuts words at '='. */
static const struct option_info *option_at_cursor(struct completion *c, int n, char *const *words)
{
	const char *equals;

	if (n >= 2 && strcmp(words[n - 1], "=") == 0) {
		c->typed = "";
		return valued_option(c->o.command, words[n - 2], strlen(words[n - 2]));
	}
	if (n >= 3 && strcmp(words[n - 2], "=") == 0)
		return valued_option(c->o.command, words[n - 3], strlen(words[n - 3]));
	equals = *c->typed == '-' ? strchr(c->typed, '=') : NULL;
	if (equals) {
		c->before = c->typed;
		c->nbefore = (size_t)(equals + 1 - c->typed);
		c->typed = equals + 1;
		return valued_option(c->o.command, c->before, c->nbefore - 1);
	}
	return n >= 2 ? valued_option(c->o.command, words[n - 2], strlen(words[n - 2])) : NULL;
}

void cmd_complete(int n, char *const *words)
{
	struct completion c = {.typed = n ? words[n - 1] : "", .before = ""};
	const struct option_info *info;
	const char *config;

	options_init(&c.o);
	/* The command itself will refuse wrong words. */
	options_parse(&c.o, n ? n - 1 : 0, words, NULL);
	config = c.o.config ? c.o.config : os_env("RECORDER_CONFIG");
	if (config && *config)
		config_load(config, &c.o, NULL);
	info = option_at_cursor(&c, n, words);
	if (info)
		offer_values(&c, info);
	else if (*c.typed == '-')
		offer_options(&c);
	else if (c.o.command == CMD_NONE)
		offer_commands(&c);
	else
		offer_operands(&c);
	print_text(&c.out, NULL);
	buf_free(&c.out);
	options_free(&c.o);
}
