#include "engine/command_line.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
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
		return err_set(err, ERR_USAGE, "over %u arguments", COMMAND_ARGS_MAX);
	copy = text->failed ? NULL : text_dup(buf_text(text), SIZE_MAX);
	if (!copy)
		return err_memory(err, "for a command line");
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

/* ---- text of events must not become code ----------------------------------------------------- */

/*
 * What reads an argument as code. options: the letters of the options that code follows; NULL = any
 * argument is, or becomes, code, whatever it seems to run (ssh joins them for a shell on the other
 * side, also those of ssh host sh notify.sh).
 */
static const struct interpreter {
	const char *name, *options;
} interpreters[] = {
	{"sh", "c"}, {"bash", "c"}, {"rbash", "c"}, {"bash-static", "c"}, {"dash", "c"},
	{"ash", "c"}, {"zsh", "c"}, {"yash", "c"}, {"ksh", "c"}, {"mksh", "c"}, {"lksh", "c"},
	{"fish", "cC"}, {"nu", "c"}, {"elvish", "c"}, {"xonsh", "c"}, {"csh", "c"}, {"tcsh", "c"},
	{"su", "c"}, {"runuser", "c"}, {"sg", "c"}, {"script", "c"}, {"flock", "c"},
	{"expect", "c"}, {"python", "c"}, {"pypy", "c"}, {"perl", "eE"}, {"raku", "e"},
	{"ruby", "e"}, {"node", "ep"}, {"nodejs", "ep"}, {"bun", "ep"}, {"deno", NULL},
	{"php", "rBRE"}, {"lua", "e"}, {"luajit", "e"}, {"r", "e"}, {"rscript", "e"},
	{"julia", "eE"}, {"groovy", "e"}, {"elixir", "e"}, {"guile", "c"}, {"osascript", "e"},
	{"psql", "c"}, {"mysql", "e"}, {"mariadb", "e"}, {"mongosh", NULL}, {"duckdb", NULL},
	{"env", "S"}, {"ssh", NULL}, {"rsh", NULL}, {"autossh", NULL}, {"awk", NULL},
	{"gawk", NULL}, {"mawk", NULL}, {"nawk", NULL}, {"original-awk", NULL}, {"sed", NULL},
	{"xargs", NULL}, {"parallel", NULL}, {"watch", NULL}, {"sqlite", NULL}, {"make", NULL},
	{"gmake", NULL}, {"gdb", NULL}, {"vim", NULL}, {"vi", NULL}, {"ex", NULL}, {"emacs", NULL},
	{"tclsh", NULL}, {"socat", NULL}, {"ncat", NULL},
	{"tmux", NULL}, {"screen", NULL}, {"xterm", NULL}, {"entr", NULL},
	{"cmd", NULL}, {"powershell", NULL}, {"pwsh", NULL}, {"wmic", NULL}, {"mshta", NULL},
	{"forfiles", NULL}, {"wsl", NULL},
};

/* "/usr/bin/python3.11" and "Python.exe" are python. */
static const struct interpreter *find_interpreter(const char *program)
{
	char name[32];
	size_t i, n;

	snprintf(name, sizeof(name), "%s", os_base_name(program));
	n = strlen(name);
	if (text_ends_fold(name, ".exe"))
		n -= strlen(".exe");
	while (n && strchr("0123456789.-", name[n - 1]))
		n--;
	name[n] = '\0';
	for (i = 0; i < COUNT_OF(interpreters); i++)
		if (text_same_fold(name, interpreters[i].name))
			return &interpreters[i];
	return NULL;
}

static bool is_from_event(const char *arg)
{
	return strstr(arg, "%REASON%") || strstr(arg, "%RULE%");
}

static bool is_batch(const char *program)
{
	return text_ends_fold(program, ".bat") || text_ends_fold(program, ".cmd");
}

/* "-c" and "-lc" with the letter; "--eval" and the like of any interpreter. */
static bool precedes_code(const char *option, const char *letters)
{
	static const char *const names[] = {"--eval", "--print", "--command", "--execute",
					    "--run", "--split-string", "--init-command"};
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++)
		if (strcmp(option, names[i]) == 0)
			return true;
	return option[1] != '-' && strpbrk(option + 1, letters);
}

/* "-o errexit" between -c and its code: the option of a shell takes a word of its own. */
static bool takes_word(const char *option)
{
	return option[1] && strchr("oO", option[strlen(option) - 1]);
}

/*
 * Wrappers come first (sudo -u me sh -c ...): every argument may name an interpreter. After the
 * code a shell's arguments are data again: sh -c 'notify "$1"' sh %REASON%. Not so where all is
 * code, and after env -S: its words may be "sh -c".
 */
static int check_code(const struct command_line *c, struct err *err)
{
	const struct interpreter *is = NULL, *found;
	bool all_code = is_batch(c->args[0]), code_follows = false, word_follows = false;
	unsigned i;

	for (i = 0; i < c->nargs; i++) {
		const char *arg = c->args[i];
		bool option = *arg == '-' || *arg == '+';

		if (is_from_event(arg) && (!i || all_code || (is && (option || code_follows))))
			return err_set(err, ERR_USAGE, "%.60s would run the text of "
				       "%%REASON%% or %%RULE%% as code, and that text may come "
				       "from anybody; let the program read the environment "
				       "variables RECORDER_REASON and RECORDER_RULE instead",
				       is ? is->name : i ? "a batch file" : "the line");
		found = all_code || code_follows ? NULL : find_interpreter(arg);
		if (found) {
			is = found;
			all_code = !is->options;
		} else if (is && !all_code) {
			if (option)
				code_follows = code_follows || precedes_code(arg, is->options);
			else if (!word_follows)
				code_follows = false;
			word_follows = option && code_follows && takes_word(arg);
			all_code = code_follows && strcmp(is->name, "env") == 0;
		}
	}
	return 0;
}

/* ---- parsing --------------------------------------------------------------------------------- */

int command_line_parse(const char *text, struct command_line *out, struct err *err)
{
	struct command_line c = {0};
	struct buf word = {0};
	int rc = 0;

	while (!rc && *(text += strspn(text, " \t"))) {
		buf_reset(&word);
		text = next_word(text, &word);
		if (!text) {
			rc = err_set(err, ERR_USAGE, "a quote is not closed");
			break;
		}
		rc = add_argument(&c, &word, err);
	}
	if (!rc && (!c.nargs || !*c.args[0]))
		rc = err_set(err, ERR_USAGE, "no program is named");
	if (!rc)
		rc = check_code(&c, err);
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

int command_line_environment(const struct command_values *v, struct command_line *out,
			     struct err *err)
{
	static const struct command_line names = {
		.args = {"RECORDER_OUTPUTDIR=%OUTPUTDIR%", "RECORDER_OUTPUTFILE=%OUTPUTFILE%",
			 "RECORDER_OUTPUTBASENAME=%OUTPUTBASENAME%",
			 "RECORDER_INCIDENT=%INCIDENT%", "RECORDER_STORE=%STORE%",
			 "RECORDER_RULE=%RULE%", "RECORDER_REASON=%REASON%",
			 "RECORDER_HOST=%HOST%"},
		.nargs = 8,
	};

	return command_line_expand(&names, v, out, err);
}
