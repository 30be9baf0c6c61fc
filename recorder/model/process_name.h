/*
 * What a process is called: the one place that decides for rules, filters, counters and lists.
 *
 * A process answers to four names, in any case, with or without ".exe":
 *
 *	file     the base name of its executable: dash, python3.11, busybox
 *	comm     the kernel's short name, from the file that was executed: sh, python3, sleep
 *	called   the base name of argv[0], without the '-' of a login shell: sh, gunicorn
 *	script   what an interpreter runs: manage.py, app.jar, or http.server of "python -m"
 *
 * The kernel cuts comm after 15 bytes. The process itself writes its arguments and may change comm,
 * so only the file's name can be trusted: a label never hides it. Pure functions, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_CALLED_BYTES 64u             /* of called and script; longer ones are ignored */
#define PROCESS_LABEL_BYTES 336u

struct process_names {                       /* borrowed; NULL or "" = unknown */
	const char *file, *comm, *called, *script;
};

/*
 * The names in a command line.
 *
 * file      the executable's base name, the best sign of an interpreter; NULL = unknown
 * cmdline   the arguments, joined by blanks; an argument with blanks counts as several unless it is
 *           in double quotes, as on Windows
 * called, script   "" when there is none, or it is too long or has control characters
 *
 * Interpreters: shells, python, perl, ruby, php, lua, node, java, dotnet, mono and PowerShell.
 * Their options that take a value are known; program text (-c, -e) is no script. "busybox sleep" is
 * called sleep.
 */
void process_names_of_command(const char *file, const char *cmdline,
			      char called[PROCESS_CALLED_BYTES], char script[PROCESS_CALLED_BYTES]);

/*
 * The language of an interpreter whose own stacks no frame reader knows, by its file's name: "Ruby"
 * for ruby3.1; NULL for all else. Shells are not among them: they wait for what they started.
 */
const char *process_unread_language(const char *file);

/* Is this one of its names? */
bool process_names_match(const struct process_names *names, const char *wanted);
/* Does `who` mean this process: its pid, one of its names, or a list of such with ',' between? */
bool process_names_mean(const struct process_names *names, uint32_t pid, const char *who);

/*
 * The name people typed: argv[0]'s base name or the script's, if the kernel's short name agrees;
 * else the file's name, else the short name, else "?".
 */
const char *process_names_typed(const struct process_names *names);
/*
 * For lists: the script of an interpreter, else the name people typed, with the file's name in
 * brackets when it differs: "backup.pl [perl]", "sh [dash]", "nginx".
 */
const char *process_names_label(const struct process_names *names, char out[PROCESS_LABEL_BYTES]);

/* The length of a name without ".exe", in any case. */
size_t process_name_length(const char *name);
