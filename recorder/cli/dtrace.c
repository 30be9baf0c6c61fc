/*
 * The arguments of dtrace(1), as programs that draw flame graphs pass them, become those of run:
 *
 *	recorder-dtrace -x ustackframes=100 \
 *	    -n 'profile-997 /pid == $target/ { @[ustack(100)] = count(); }' -o FILE -c COMMAND
 *
 * Source: dtrace(1); cargo-flamegraph's src/lib.rs, which puts a backslash before each space of an
 * argument of COMMAND, and gives one -p for each process.
 */
#include "base/text.h"
#include "cli/cmd.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FIXED_WORDS 11                       /* those below that are no part of COMMAND */

struct dtrace {
	const char *script, *output, *command, *pid;
	struct buf *pids;                    /* each -p, with ',' between */
};

bool cmd_is_dtrace(const char *program)
{
	const char *name = text_base_name(program);

	return strcmp(name, "recorder-dtrace") == 0 ||
	       text_same_fold(name, "recorder-dtrace.exe");
}

static int read_arguments(int n, char *const *arguments, struct dtrace *d, struct err *err)
{
	int i;

	for (i = 0; i < n; i++) {
		const char *as = arguments[i], *value;
		const char **to = strncmp(as, "-n", 2) == 0   ? &d->script
				  : strncmp(as, "-o", 2) == 0 ? &d->output
				  : strncmp(as, "-c", 2) == 0 ? &d->command
				  : strncmp(as, "-p", 2) == 0 ? &d->pid
							      : NULL;

		if (strcmp(as, "-q") == 0 || strcmp(as, "-w") == 0 || strcmp(as, "-Z") == 0)
			continue;
		if (!to && strncmp(as, "-x", 2) != 0)
			return err_set(err, ERR_USAGE, "recorder-dtrace: '%.60s' is not known "
				       "here; it takes -x -n -o -c -p as cargo-flamegraph passes "
				       "them", as);
		value = as[2] ? as + 2 : i + 1 < n ? arguments[++i] : NULL;
		if (!value)
			return err_set(err, ERR_USAGE, "recorder-dtrace: %.60s needs a value", as);
		if (to == &d->pid)
			buf_printf(d->pids, "%s%s", d->pid ? "," : "", value);
		else if (to && *to)
			return err_set(err, ERR_USAGE, "recorder-dtrace: %.2s is given twice", as);
		if (to)                      /* of -x nothing is needed: stacks are whole */
			*to = value;
	}
	return 0;
}

/* "profile-997 /pid == $target/ { @[ustack(100)] = count(); }" -> "997" */
static int read_script(const char *script, char hz[8], struct err *err)
{
	const char *at = script ? script + strspn(script, " \t\n") : "";
	size_t n = strncmp(at, "profile-", 8) == 0 ? strspn(at + 8, "0123456789") : 0;

	if (!n || n > 6 || !strstr(at, "$target") || !strstr(at, "ustack("))
		return err_set(err, ERR_USAGE, "recorder-dtrace runs one kind of script only: "
			       "-n 'profile-HZ /pid == $target/ { @[ustack(N)] = count(); }'");
	memcpy(hz, at + 8, n);
	hz[n] = '\0';
	return 0;
}

/* The next word of *from, whose bytes go to *to; NULL = none. */
static char *next_word(const char **from, char **to)
{
	const char *p = *from + strspn(*from, " \t\n");
	char *word = *to, *out = *to;

	if (!*p)
		return NULL;
	for (; *p && !isspace((unsigned char)*p); p++) {
		if (*p == '\\' && p[1])
			p++;
		*out++ = *p;
	}
	*out++ = '\0';
	*from = p;
	*to = out;
	return word;
}

int cmd_dtrace_words(int n, char *const *arguments, struct cmd_words *out, struct err *err)
{
	struct dtrace d = {.pids = &out->pids};
	size_t len;
	char *to, *word;
	int rc;

	*out = (struct cmd_words){0};
	rc = read_arguments(n, arguments, &d, err);
	if (!rc)
		rc = read_script(d.script, out->hz, err);
	if (!rc && !d.command == !d.pid)
		rc = err_set(err, ERR_USAGE, "recorder-dtrace: give a command to record by -c, or "
			     "a running process by -p");
	if (!rc)
		rc = buf_check(&out->pids, "the list of processes", err);
	if (rc)
		return rc;
	len = d.command ? strlen(d.command) : 0;
	/* A word has a byte at least, and one after it. */
	out->words = calloc(FIXED_WORDS + len / 2 + 2, sizeof(*out->words));
	out->text = malloc(len + 2);
	if (!out->words || !out->text)
		return err_memory(err, "for the words of a command");
	to = out->text;
#define ADD(what) (out->words[out->n++] = (char *)(what))
	ADD("run");
	ADD("--freq");
	ADD(out->hz);
	ADD("--format");
	ADD("dtrace");
	ADD("-o");
	ADD(d.output ? d.output : "-");
	ADD("--force");
	ADD("--no-kernel-stacks");   /* ustack(): of a sample in the kernel, who called it */
	ADD(d.pid ? "--process" : "--");
	if (d.pid)
		ADD(buf_text(&out->pids));
	while (d.command && (word = next_word(&d.command, &to)))
		ADD(word);
#undef ADD
	return 0;
}

void cmd_words_free(struct cmd_words *w)
{
	free(w->words);
	free(w->text);
	buf_free(&w->pids);
}
