/*
 * help: print help on a command, from the tables of options/, or on a topic, from a file of
 * cli/help/; or write all of it as manual pages.
 */
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/markdown.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"
#include "base/version.h"
#include "export/export.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 79, COLUMNS_MIN = 40, COLUMNS_MAX = 100, MAN_COLUMNS = 78 };
enum { TOPICS_ABOUT = 3 };              /* that 'help WORD' names at most */

/* A file of cli/help/ begins with "# NAME: SUMMARY". */
static const char *const topics[] = {
	topic_triggers, topic_live, topic_export, topic_windows, topic_linux, topic_runtimes,
	topic_thread_time, topic_memory, topic_evidence, topic_history, topic_http, topic_ship,
	topic_fleet,
	topic_privileges, topic_security, topic_store, topic_conf,
	NULL,
};

/* Help on one command or topic. */
struct help {
	char name[40], summary[120];
	struct buf body;                     /* Markdown */
};

static void take_title(const char *topic, struct help *h)
{
	size_t n = strcspn(topic, ":");

	snprintf(h->name, sizeof(h->name), "%.*s", (int)n - 2, topic + 2);
	topic += n + 2;
	snprintf(h->summary, sizeof(h->summary), "%.*s", (int)strcspn(topic, "\n"), topic);
}

bool help_topic(unsigned i, const char **name, const char **summary)
{
	static struct help title;

	if (!topics[i])
		return false;
	take_title(topics[i], &title);
	*name = title.name;
	*summary = title.summary;
	return true;
}

static const char *topic_by_name(const char *name)
{
	struct help title;
	unsigned i;

	for (i = 0; topics[i]; i++) {
		take_title(topics[i], &title);
		if (strcmp(title.name, name) == 0)
			return topics[i];
	}
	return NULL;
}

/* ---- texts, in Markdown ---------------------------------------------------------------------- */

static void put_formats(struct buf *out)
{
	size_t i;

	buf_puts(out, "\n## Formats, and the suffixes of -o that choose them\n\n"
		      "| format | suffix | for |\n|---|---|---|\n");
	for (i = 0; exporters[i]; i++) {
		buf_printf(out, "| `%s` |", exporters[i]->name);
		if (exporters[i]->suffix)
			buf_printf(out, " %s |", exporters[i]->suffix);
		buf_puts(out, " ");
		help_put_cell(out, exporters[i]->summary);
		buf_puts(out, " |\n");
	}
}

static void put_metrics(struct buf *out)
{
	static const char *const units[METRIC_UNITS] = {
		[UNIT_NS] = "ns", [UNIT_BYTES] = "bytes", [UNIT_EVENTS] = "events"};
	unsigned i;

	buf_puts(out, "\n## Metrics, and PerfView's names of them\n\n"
		      "| metric | what |\n|---|---|\n");
	for (i = 0; i < STREAMS_MAX; i++) {
		const struct stream_metric *m = &stream_metrics[i];
		const char *at = m->perfview ? m->perfview : "";

		if (m->mark)
			continue;
		buf_printf(out, "| `%s` | %s%s%s", m->name, units[m->unit], *m->what ? " " : "",
			   m->what);
		for (; *at; at += strcspn(at, "|"), at += *at == '|')
			buf_printf(out, "%s \"%.*s\"", at == m->perfview ? "; PerfView's" : ",",
				   (int)strcspn(at, "|"), at);
		buf_puts(out, " |\n");
	}
	buf_puts(out, "\n`--metric` takes both, of any case: `--metric \"GC Heap Net Mem (Coarse "
		      "Sampling) Stacks\"`.\n");
}

/* The topic's file, then what the tables know about the topic. */
static void put_topic(struct buf *out, const char *topic)
{
	unsigned i;

	buf_puts(out, topic + strcspn(topic, "\n"));
	if (topic == topic_conf) {
		buf_puts(out, "\n## Keys\n");
		options_keys(out);
	}
	if (topic == topic_export)
		put_metrics(out);
	if (topic != topic_triggers)
		return;
	buf_puts(out, "\n## Grammar\n\n| rule | value |\n|---|---|\n");
	for (i = 0; triggers[i]; i++) {
		buf_printf(out, "| `--%s` | ", triggers[i]->name);
		help_put_cell(out, triggers[i]->usage);
		buf_puts(out, " |\n");
	}
}

static void put_topics(struct buf *out)
{
	struct help title;
	unsigned i;

	buf_puts(out, "\n## Topics\n\n| topic | about |\n|---|---|\n");
	for (i = 0; topics[i]; i++) {
		take_title(topics[i], &title);
		buf_printf(out, "| `%s` | %s |\n", title.name, title.summary);
	}
	buf_puts(out,
		 "\n## Examples\n\n"
		 "    recorder collect /StopOnPerfCounter:'Processor:% Processor Time:_Total>80'\n"
		 "    recorder list\n"
		 "    recorder show\n"
		 "    recorder export -o cpu.html\n"
		 "\n`recorder help COMMAND` lists a command's options, `recorder help TOPIC` says\n"
		 "more about a topic. `--max-collect-sec 60` may also be written as PerfView's\n"
		 "`/MaxCollectSec:60`.\n"
		 "\n## Exit status\n\n"
		 "0 done, 1 failed, 2 wrong usage or configuration, 3 nothing found. status: 4\n"
		 "the recorder is degraded, 5 it is failing. collect: 5 it was failing and ended,\n"
		 "as --on-failure exit asks for.\n");
}

/* about: CMD_NONE = the program. with_topic: add the topic of the same name. */
static void help_of_command(enum command about, bool with_topic, struct help *h)
{
	const struct command_info *c = &command_table[about];
	const char *topic = topic_by_name(c->name);

	snprintf(h->name, sizeof(h->name), "%s", c->name);
	snprintf(h->summary, sizeof(h->summary), "%s", c->summary);
	options_help(about, &h->body);
	if (about == CMD_NONE)
		put_topics(&h->body);
	if (about == CMD_EXPORT && !with_topic)
		put_formats(&h->body);
	if (topic && with_topic)
		put_topic(&h->body, topic);
}

static void help_of_topic(const char *topic, struct help *h)
{
	take_title(topic, h);
	put_topic(&h->body, topic);
}

/* ---- manual pages ---------------------------------------------------------------------------- */

static int write_page(const char *dir, const char *name, int section, const struct help *h,
		      struct err *err)
{
	const char *body = buf_text(&h->body), *at;
	struct buf path = {0}, page = {0};
	struct out *out = NULL;
	int rc;

	buf_printf(&path, "%s/man%d", dir, section);
	rc = os_mkdirs(buf_text(&path), err);
	buf_printf(&path, "/%s.%d", name, section);
	buf_puts(&page, ".\\\" Made by 'recorder help --man'.\n.TH ");
	for (at = name; *at; at++)
		buf_putc(&page, (char)toupper((unsigned char)*at));
	buf_printf(&page, " %d " RECORDER_DATE " \"recorder " RECORDER_VERSION "\"\n", section);
	buf_printf(&page, ".ad l\n.SH NAME\n%s \\- %s\n", name, h->summary);
	if (strncmp(body + strspn(body, "\n"), "## ", 3) != 0)
		buf_puts(&page, ".SH DESCRIPTION\n");
	markdown_put(&page, body, MARKDOWN_MAN, MAN_COLUMNS);
	buf_puts(&page, ".SH SEE ALSO\n.BR recorder (1),\n.BR recorder.conf (5),\n"
			".BR recorder\\-triggers (7)\n");
	if (!rc)
		rc = buf_check(&h->body, "a manual page", err);
	if (!rc)
		rc = buf_check(&page, "a manual page", err);
	if (!rc)
		rc = out_open(buf_text(&path), true, &out, err);
	if (!rc) {
		out_put(out, buf_text(&page), page.len);
		rc = out_close(out, err);
	}
	buf_free(&path);
	buf_free(&page);
	return rc;
}

static int write_pages(const char *dir, struct err *err)
{
	char name[sizeof(((struct help *)0)->name) + 10];
	unsigned i;
	int rc = 0;

	for (i = CMD_NONE; !rc && i < COMMANDS; i++) {
		struct help h = {0};

		help_of_command((enum command)i, true, &h);
		snprintf(name, sizeof(name), "recorder%s%s", i == CMD_NONE ? "" : "-", h.name);
		rc = write_page(dir, name, 1, &h, err);
		buf_free(&h.body);
	}
	for (i = 0; !rc && topics[i]; i++) {
		bool is_conf = topics[i] == topic_conf;
		struct help h = {0};

		help_of_topic(topics[i], &h);
		snprintf(name, sizeof(name), is_conf ? "recorder.%s" : "recorder-%s", h.name);
		if (command_by_name(h.name) == CMD_NONE)
			rc = write_page(dir, name, is_conf ? 5 : 7, &h, err);
		buf_free(&h.body);
	}
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* How often a text has the word, of any case. */
static unsigned mentions(const char *text, const char *word)
{
	unsigned found = 0;

	for (; *word && *text; text++)
		found += text_starts_fold(text, word);
	return found;
}

/* The topics that tell most about a word, in `near`: "memory, linux". Empty when none has it. */
static void put_topics_about(const char *word, struct buf *near)
{
	unsigned counts[COUNT_OF(topics)], i, shown, best;
	struct help title;

	for (i = 0; topics[i]; i++)
		counts[i] = mentions(topics[i], word);
	for (shown = 0; shown < TOPICS_ABOUT; shown++) {
		for (best = 0, i = 1; topics[i]; i++)
			best = counts[i] > counts[best] ? i : best;
		if (!counts[best])
			break;
		take_title(topics[best], &title);
		buf_printf(near, "%s%s", shown ? ", " : "", title.name);
		counts[best] = 0;
	}
}

static int unknown(const char *name, struct err *err)
{
	struct help titles[COUNT_OF(topics)];
	struct nearest nearest = {.wanted = name};
	struct buf near = {0}, about = {0};
	unsigned i;

	for (i = CMD_NONE + 1; i < COMMANDS; i++)
		nearest_offer(&nearest, command_table[i].name);
	for (i = 0; topics[i]; i++) {
		take_title(topics[i], &titles[i]);
		nearest_offer(&nearest, titles[i].name);
	}
	nearest_put(&nearest, "", "", &near);
	put_topics_about(name, &about);
	if (about.len)
		err_set(err, ERR_USAGE, "no command or topic '%.60s'; the topics that tell most "
			"about it: %s", name, buf_text(&about));
	else if (near.len)
		err_set(err, ERR_USAGE, "unknown command or topic '%.60s'; did you mean %s?", name,
			buf_text(&near));
	else
		err_set(err, ERR_USAGE, "unknown command or topic '%.60s'; "
			"'recorder help' lists them", name);
	buf_free(&near);
	buf_free(&about);
	return ERR_USAGE;
}

static int show(const struct options *o, const struct help *h, bool paged, struct err *err)
{
	enum markdown_form form = sheet_wants_color(o) ? MARKDOWN_STYLED : MARKDOWN_PLAIN;
	size_t columns = fit_columns();
	struct buf text = {0};
	int rc = buf_check(&h->body, "the help", err);

	columns = columns == FIT_ALL ? COLUMNS : columns - 1;
	if (columns < COLUMNS_MIN || columns > COLUMNS_MAX)
		columns = columns < COLUMNS_MIN ? COLUMNS_MIN : COLUMNS_MAX;
	if (*h->name)
		buf_printf(&text, "%s: %s\n", h->name, h->summary);
	markdown_put(&text, buf_text(&h->body), form, columns);
	if (!rc)
		rc = buf_check(&text, "the help", err);
	if (!rc && !(paged && os_is_terminal(os_stdout()) &&
		     os_show_in_pager(buf_text(&text), text.len)))
		rc = print_text(&text, err);
	buf_free(&text);
	return rc;
}

int cmd_help(const struct options *o, struct err *err)
{
	const char *name = o->command == CMD_HELP ? o->pattern : NULL;
	enum command about = o->command == CMD_HELP ? CMD_NONE : o->command;
	const char *topic = name ? topic_by_name(name) : NULL;
	struct help h = {0};
	int rc;

	if (o->command == CMD_HELP && o->all_dir)
		return write_pages(o->all_dir, err);
	if (name)
		about = command_by_name(name);
	if (name && about == CMD_NONE && !topic)
		return unknown(name, err);
	if (topic && about == CMD_NONE)
		help_of_topic(topic, &h);
	else
		help_of_command(about, topic != NULL, &h);
	rc = show(o, &h, topic != NULL, err);
	buf_free(&h.body);
	return rc;
}
