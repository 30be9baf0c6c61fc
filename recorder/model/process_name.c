#include "model/process_name.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COMM_CUT 15u                         /* TASK_COMM_LEN of Linux, without the zero */

struct word {
	const char *at;
	size_t n;
};

/* ---- words ----------------------------------------------------------------------------------- */

/* The next argument; false at the end. */
static bool next_word(const char **rest, struct word *out)
{
	const char *at = *rest + strspn(*rest, " ");
	const char *end = *at == '"' ? "\"" : " ";

	at += *at == '"';
	out->at = at;
	out->n = strcspn(at, end);
	*rest = at + out->n + (at[out->n] == '"');
	return out->n || at[0] == '"';
}

/* Whether the word is in a list with blanks between, in any case if fold; the list may be NULL. */
static bool is_one_of(struct word w, const char *list, bool fold)
{
	struct word one;

	while (list && next_word(&list, &one))
		if (one.n == w.n && (fold ? strncasecmp : strncmp)(one.at, w.at, w.n) == 0)
			return true;
	return false;
}

static struct word base_name(struct word w)
{
	bool unix_path = w.n && *w.at == '/';
	size_t i;

	while (w.n > 1 && w.at[w.n - 1] == '/')
		w.n--;
	for (i = w.n; i; i--)
		if (w.at[i - 1] == '/' || (w.at[i - 1] == '\\' && !unix_path))
			break;
	return (struct word){w.at + i, w.n - i};
}

/* Copy the base name of a path, without ".exe"; "" when it is too long or not printable. */
static void take_name(struct word path, char out[PROCESS_CALLED_BYTES])
{
	struct word name = base_name(path);
	size_t i;

	*out = '\0';
	for (i = 0; i < name.n; i++)
		if ((unsigned char)name.at[i] < 0x20 || name.at[i] == 0x7f)
			return;
	if (name.n >= PROCESS_CALLED_BYTES)
		return;
	memcpy(out, name.at, name.n);
	out[name.n] = '\0';
	out[process_name_length(out)] = '\0';
}

/* ---- interpreters ---------------------------------------------------------------------------- */

/*
 * Options by what follows them: program text (then there is no script), the script, a value, or a
 * value in the same word only. Letters may stand in one word ("-um"); whole words may not.
 *
 * Source: dash(1), bash(1), python(1), perlrun(1), ruby(1), php(1), lua(1), node(1), java(1),
 * "dotnet command", about_Pwsh.
 */
struct interpreter {
	const char *names;
	const char *text, *script, *value, *rest;
	const char *text_words, *script_words, *value_words;
	const char *commands;                /* words that precede the script */
	const char *suffix;                  /* a script must end so; NULL = any name */
	bool any_case;                       /* of option words */
};

static const struct interpreter interpreters[] = {
	{.names = "sh bash dash ash ksh mksh zsh", .text = "cs", .value = "oO",
	 .value_words = "--rcfile --init-file"},
	{.names = "python pythonw pypy", .text = "c", .script = "m", .value = "WXQ",
	 .value_words = "--check-hash-based-pycs"},
	{.names = "perl", .text = "eE", .value = "I", .rest = "CDFMVdimx"},
	{.names = "ruby", .text = "e", .value = "CEIr", .rest = "FKTWXix"},
	{.names = "php php-cgi", .text = "rBREF", .script = "f", .value = "cdtz",
	 .text_words = "-S --server --run", .script_words = "--file",
	 .value_words = "--define --php-ini"},
	{.names = "lua luajit", .value = "elj"},
	{.names = "node nodejs", .commands = "inspect", .text_words = "-e --eval -p --print -pe",
	 .value_words = "-r --require --import --loader --experimental-loader -C --conditions "
			"--env-file --title --input-type --icu-data-dir --openssl-config "
			"--redirect-warnings --watch-path"},
	{.names = "java javaw", .script_words = "-jar -m --module",
	 .value_words = "-cp -classpath --class-path -p --module-path --add-modules --add-opens "
			"--add-exports --add-reads --patch-module --limit-modules --source "
			"--upgrade-module-path --enable-native-access"},
	{.names = "dotnet", .commands = "exec", .suffix = ".dll",
	 .value_words = "--runtimeconfig --depsfile --additionalprobingpath --fx-version "
			"--roll-forward --additional-deps"},
	{.names = "mono", .suffix = ".exe"},
	{.names = "pwsh powershell", .any_case = true, .script_words = "-File -f",
	 .value_words = "-ExecutionPolicy -ep -ex -WorkingDirectory -wd -Version -WindowStyle -w",
	 .text_words = "-Command -c -EncodedCommand -e -ec"},
};

/* Without a version: python3.11, ruby3.1, ksh93. */
static struct word without_version(const char *name)
{
	struct word w = {name, name ? process_name_length(name) : 0};

	while (w.n && strchr("0123456789.", w.at[w.n - 1]))
		w.n--;
	return w;
}

const char *process_unread_language(const char *file)
{
	static const struct {
		const char *names, *language;
	} unread[] = {
		{"ruby irb", "Ruby"}, {"php php-cgi php-fpm phpdbg", "PHP"}, {"perl", "Perl"},
		{"lua luajit luajit-", "Lua"}, {"beam.smp beam", "Erlang"}, {"R", "R"},
		{"tclsh", "Tcl"}, {"guile guile-", "Scheme"}, {"mono mono-sgen", "Mono"},
		{"pypy", "PyPy"},
	};
	struct word w = without_version(file);
	size_t i;

	for (i = 0; w.n && i < COUNT_OF(unread); i++)
		if (is_one_of(w, unread[i].names, false))
			return unread[i].language;
	return NULL;
}

static const struct interpreter *find_interpreter(const char *name)
{
	struct word w = without_version(name);
	size_t i;

	for (i = 0; w.n && i < COUNT_OF(interpreters); i++)
		if (is_one_of(w, interpreters[i].names, true))
			return &interpreters[i];
	return NULL;
}

enum follows { FOLLOWS_OPTION, FOLLOWS_VALUE, FOLLOWS_SCRIPT, FOLLOWS_TEXT };

static bool has_letter(const char *letters, char c)
{
	return letters && strchr(letters, c) != NULL;
}

/* What follows an option. The script may stand in the option itself: then *word is the script. */
static enum follows read_option(const struct interpreter *in, struct word *word)
{
	bool letters = in->text || in->script || in->value;
	size_t i;

	if (is_one_of(*word, in->text_words, in->any_case))
		return FOLLOWS_TEXT;
	if (is_one_of(*word, in->script_words, in->any_case))
		return FOLLOWS_SCRIPT;
	if (is_one_of(*word, in->value_words, in->any_case))
		return FOLLOWS_VALUE;
	for (i = 1; letters && word->at[1] != '-' && i < word->n; i++) {
		bool last = i + 1 == word->n;

		if (has_letter(in->text, word->at[i]))
			return FOLLOWS_TEXT;
		if (has_letter(in->rest, word->at[i]))
			return FOLLOWS_OPTION;
		if (has_letter(in->value, word->at[i]))
			return last ? FOLLOWS_VALUE : FOLLOWS_OPTION;
		if (has_letter(in->script, word->at[i])) {
			if (!last)
				*word = (struct word){word->at + i + 1, word->n - i - 1};
			return FOLLOWS_SCRIPT;
		}
	}
	return FOLLOWS_OPTION;
}

static bool ends_with(struct word w, const char *suffix)
{
	size_t n = suffix ? strlen(suffix) : 0;

	return w.n > n && (!n || strncasecmp(w.at + w.n - n, suffix, n) == 0);
}

static void take_script(const struct interpreter *in, const char *rest,
			char out[PROCESS_CALLED_BYTES])
{
	struct word w, option;
	bool script = false;        /* the next word is the script, whatever it looks like */

	while (next_word(&rest, &w)) {
		if (script || (w.n && !strchr("-+@", *w.at))) {
			if (!script && is_one_of(w, in->commands, in->any_case))
				continue;
			if (script || ends_with(w, in->suffix))
				take_name(w, out);
			return;
		}
		if (w.n < 2 || *w.at == '@')     /* "-" is stdin, "@" a file of arguments */
			return;
		option = w;
		switch (w.n == 2 && w.at[1] == '-' ? FOLLOWS_SCRIPT : read_option(in, &option)) {
		case FOLLOWS_OPTION:
			break;
		case FOLLOWS_VALUE:
			next_word(&rest, &w);
			break;
		case FOLLOWS_SCRIPT:
			if (option.at != w.at)
				take_name(option, out);
			if (option.at != w.at)
				return;
			script = true;
			break;
		case FOLLOWS_TEXT:
			return;
		}
	}
}

void process_names_of_command(const char *file, const char *cmdline,
			      char called[PROCESS_CALLED_BYTES], char script[PROCESS_CALLED_BYTES])
{
	const struct interpreter *in;
	struct word w;

	*called = *script = '\0';
	if (!next_word(&cmdline, &w) || !w.n)
		return;
	if (*w.at == '-' && w.n > 1)             /* a login shell */
		w = (struct word){w.at + 1, w.n - 1};
	if (w.at[w.n - 1] == ':') {              /* a title: "gunicorn: master [shop]" */
		w.n--;
		cmdline = "";
	}
	take_name(w, called);
	if (is_one_of((struct word){called, strlen(called)}, "busybox toybox", true) &&
	    next_word(&cmdline, &w))
		take_name(w, called);
	in = find_interpreter(file);
	if (!in)
		in = find_interpreter(called);
	if (in)
		take_script(in, cmdline, script);
}

/* ---- matching and showing -------------------------------------------------------------------- */

size_t process_name_length(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && strcasecmp(name + n - 4, ".exe") == 0 ? n - 4 : n;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_end(const char *rest)
{
	return !*rest || (*rest == '.' && strcasecmp(rest, ".exe") == 0);
}

/* Most names differ in their first letter, and this is asked for every event. */
static bool same_name(const char *a, const char *b)
{
	if (!a || !*a || !*b)
		return false;
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return is_end(a) && is_end(b);
}

/* Is comm the name, which the kernel may have cut? */
static bool is_cut_of(const char *comm, const char *name)
{
	size_t n = strlen(comm);

	return name && (strcasecmp(comm, name) == 0 ||
			(n == COMM_CUT && strncasecmp(comm, name, n) == 0));
}

bool process_names_match(const struct process_names *names, const char *wanted)
{
	const char *comm = names->comm ? names->comm : "";

	if (same_name(names->file, wanted) || same_name(comm, wanted) ||
	    same_name(names->called, wanted) || same_name(names->script, wanted))
		return true;
	/* Where nothing tells the rest of a cut name, it may be the one that is wanted. */
	return strlen(comm) == COMM_CUT && is_cut_of(comm, wanted) &&
	       !is_cut_of(comm, names->file) && !is_cut_of(comm, names->called) &&
	       !is_cut_of(comm, names->script);
}

static bool means(const struct process_names *names, const char *pid, const char *who)
{
	return strcmp(pid, who) == 0 || process_names_match(names, who);
}

bool process_names_mean(const struct process_names *names, uint32_t pid, const char *who)
{
	char number[16], one[PROCESS_LABEL_BYTES];
	bool meant;
	size_t n;

	snprintf(number, sizeof(number), "%" PRIu32, pid);
	meant = means(names, number, who);
	while (!meant && *who) {
		n = strcspn(who, ",");
		snprintf(one, sizeof(one), "%.*s", n < sizeof(one) ? (int)n : 0, who);
		meant = *one && means(names, number, one);
		who += n + (who[n] == ',');
	}
	return meant;
}

const char *process_names_typed(const struct process_names *names)
{
	const char *comm = names->comm ? names->comm : "";

	if (*comm && is_cut_of(comm, names->called))
		return names->called;
	if (*comm && is_cut_of(comm, names->script))
		return names->script;
	if (names->file && *names->file)
		return names->file;
	return *comm ? comm : "?";
}

const char *process_names_label(const struct process_names *names, char out[PROCESS_LABEL_BYTES])
{
	const char *typed = process_names_typed(names), *file = names->file;

	/* Twelve lines "perl" tell nobody which script is busy. */
	if (file && *file && names->script && *names->script && same_name(typed, names->called))
		typed = names->script;
	if (file && *file && !same_name(file, typed))
		snprintf(out, PROCESS_LABEL_BYTES, "%s [%.255s]", typed, file);
	else
		snprintf(out, PROCESS_LABEL_BYTES, "%.255s", file && *file ? file : typed);
	return out;
}
