#include "engine/command_line.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void command_line_free(struct command_line *c)
{
	while (c->nargs)
		free(c->args[--c->nargs]);
	memset(c, 0, sizeof(*c));
}

static int add_argument(struct command_line *c, const struct buf *text, struct err *err)
{
	char *copy;

	if (c->nargs == COMMAND_ARGS_MAX)
		return err_set(err, ERR_USAGE, "StopCommand: over %u arguments", COMMAND_ARGS_MAX);
	copy = text->failed ? NULL : text_dup(buf_text(text), SIZE_MAX);
	if (!copy)
		return err_memory(err, "for StopCommand");
	c->args[c->nargs++] = copy;
	c->args[c->nargs] = NULL;
	return 0;
}

/* The next argument into word; where it ends, or NULL for a quote that stays open. */
static const char *next_word(const char *at, struct buf *word)
{
	char quote = 0;

	for (; *at && (quote || (*at != ' ' && *at != '\t')); at++) {
		if (quote ? *at == quote : *at == '"' || *at == '\'')
			quote = quote ? 0 : *at;
		else
			buf_putc(word, *at);
	}
	return quote ? NULL : at;
}

/* cmd.exe reads the arguments of a batch file once more, as commands. */
static int check_batch(const struct command_line *c, struct err *err)
{
	unsigned i;

	if (!text_ends_fold(c->args[0], ".bat") && !text_ends_fold(c->args[0], ".cmd"))
		return 0;
	for (i = 1; i < c->nargs; i++)
		if (strstr(c->args[i], "%REASON%") || strstr(c->args[i], "%RULE%"))
			return err_set(
				err, ERR_USAGE,
				"StopCommand: a batch file would run the text of %%REASON%% or "
				"%%RULE%% as commands; give it %%INCIDENT%%, or use another kind "
				"of program");
	return 0;
}

int command_line_parse(const char *text, struct command_line *out, struct err *err)
{
	struct command_line c = {0};
	struct buf word = {0};
	int rc = 0;

	while (!rc && *(text += strspn(text, " \t"))) {
		buf_reset(&word);
		text = next_word(text, &word);
		if (!text) {
			rc = err_set(err, ERR_USAGE, "StopCommand: a quote is not closed");
			break;
		}
		rc = add_argument(&c, &word, err);
	}
	if (!rc && (!c.nargs || !*c.args[0]))
		rc = err_set(err, ERR_USAGE, "StopCommand: no program is named");
	if (!rc)
		rc = check_batch(&c, err);
	buf_free(&word);
	if (rc)
		command_line_free(&c);
	else
		*out = c;
	return rc;
}

static void put_base_name(const struct command_values *v, struct buf *out)
{
	const char *name = os_base_name(v->data_file ? v->data_file : v->store);
	const char *dot = strrchr(name, '.');

	buf_put(out, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
	if (!v->data_file)
		buf_printf(out, ".%" PRId64, v->incident);
}

static bool starts_with(const char *text, const char *name, size_t *n)
{
	*n = strlen(name);
	return strncmp(text, name, *n) == 0;
}

/* The value of the variable at the start of text; its length there, or 0. */
static size_t put_variable(const char *text, const struct command_values *v, struct buf *out)
{
	size_t n;

	if (starts_with(text, "%OUTPUTDIR%", &n))
		os_dirname(v->data_file ? v->data_file : v->store, out);
	else if (starts_with(text, "%OUTPUTBASENAME%", &n))
		put_base_name(v, out);
	else if (starts_with(text, "%OUTPUTFILE%", &n))
		buf_puts(out, v->data_file ? v->data_file : "");
	else if (starts_with(text, "%INCIDENT%", &n))
		buf_printf(out, "%" PRId64, v->incident);
	else if (starts_with(text, "%STORE%", &n))
		buf_puts(out, v->store);
	else if (starts_with(text, "%RULE%", &n))
		buf_puts(out, v->rule);
	else if (starts_with(text, "%REASON%", &n))
		buf_puts(out, v->reason);
	else if (starts_with(text, "%HOST%", &n))
		buf_puts(out, v->host);
	else
		return 0;
	return n;
}

int command_line_expand(const struct command_line *c, const struct command_values *v,
			struct command_line *out, struct err *err)
{
	struct command_line result = {0};
	struct buf text = {0};
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && i < c->nargs; i++) {
		const char *at = c->args[i];
		size_t n;

		buf_reset(&text);
		while (*at) {
			n = *at == '%' ? put_variable(at, v, &text) : 0;
			if (!n)
				buf_putc(&text, *at);
			at += n ? n : 1;
		}
		rc = add_argument(&result, &text, err);
	}
	buf_free(&text);
	if (rc)
		command_line_free(&result);
	else
		*out = result;
	return rc;
}
