/*
 * What a process is called: the one place that decides for rules, filters, counters and lists.
 *
 * A process answers to four names, in any case, with or without ".exe":
 *
 *	file     the base name of its executable: dash, python3.11, busybox
 *	comm     the kernel's short name, which is that of the file executed: sh, python3, sleep
 *	called   the base name of argv[0], without the '-' of a login shell: sh, gunicorn
 *	script   what an interpreter runs: manage.py, app.jar, or http.server of "python -m"
 *
 * The kernel cuts comm after 15 bytes. The process itself writes its arguments and may change comm,
 * so only the file's name can be trusted: a label never hides it. Pure functions, any thread.
 */
#ifndef MODEL_PROCESS_NAME_H
#define MODEL_PROCESS_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_CALLED_BYTES 64u             /* of called and script; longer ones are not known */
#define PROCESS_LABEL_BYTES 336u

struct process_names {                       /* borrowed; NULL or "" = not known */
	const char *file, *comm, *called, *script;
};

/*
 * The names that a command line gives.
 *
 * file      the executable's base name, which tells an interpreter best; NULL = not known
 * cmdline   the arguments, joined by blanks; one with blanks counts as several unless it stands in
 *           double quotes, as on Windows
 * called, script   "" when there is none, or it is too long or has control characters
 *
 * Interpreters: shells, python, perl, ruby, php, lua, node, java, dotnet, mono and PowerShell. Of
 * their options those that take a value are known; program text (-c, -e) is no script. "busybox
 * sleep" is called sleep.
 */
void process_names_of_command(const char *file, const char *cmdline,
			      char called[PROCESS_CALLED_BYTES], char script[PROCESS_CALLED_BYTES]);

/* Whether one of its names is this one. */
bool process_names_match(const struct process_names *names, const char *wanted);
/* Whether people mean it by this: its pid, or one of its names. */
bool process_names_mean(const struct process_names *names, uint32_t pid, const char *who);

/*
 * What people typed: argv[0]'s base name or the script's, if the kernel's short name says the same;
 * else the file's name, else the short name, else "?".
 */
const char *process_names_typed(const struct process_names *names);
/* For lists, with the file's name in brackets when it is another one: "sh [dash]", "nginx". */
const char *process_names_label(const struct process_names *names, char out[PROCESS_LABEL_BYTES]);

/* How long a name is without ".exe", in any case. */
size_t process_name_length(const char *name);

#endif
