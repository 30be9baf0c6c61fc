/*
 * StopCommand: a command line, cut into arguments without a shell, with variables.
 *
 * Blanks separate arguments; '...' and "..." keep them together; nothing else is special, not even
 * a backslash. Variables are replaced after the cutting, so the text of an event can become neither
 * an argument or option of its own nor a command:
 *
 *	%OUTPUTFILE%      the data file of this incident; empty without one
 *	%OUTPUTDIR%       its directory; without a data file the store's
 *	%OUTPUTBASENAME%  its name without the last extension; or "<store's base name>.<incident>"
 *	%INCIDENT%        its number         %STORE%   the store's path
 *	%RULE% %REASON%   what fired, and the sentence about it
 *	%HOST%            this machine's name
 *
 * Other text between % signs stays as it is. The program finds the same values in its environment:
 * RECORDER_REASON and so on, with RECORDER_ in front of the names above.
 *
 * The text of an event comes from whoever writes to a followed log or names a process. An argument
 * that a shell or another interpreter reads as code (sh -c, perl -e, ssh) must not contain it; a
 * script gets it as an argument of its own or from the environment. One thread.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define COMMAND_ARGS_MAX 64u

struct command_line {
	char *args[COMMAND_ARGS_MAX + 1];    /* NULL at the end */
	unsigned nargs;
};

struct command_values {
	const char *store, *rule, *reason, *host;
	const char *data_file;               /* NULL = none */
	int64_t incident;
};

/*
 * returns  0; ERR_USAGE: no program, an open quote, too many arguments, or %REASON% or
 *          %RULE% where an interpreter would run it as code; ERR_MEMORY
 */
int command_line_parse(const char *text, struct command_line *out, struct err *err);
/* The same line with the values in place; free both with command_line_free(). */
int command_line_expand(const struct command_line *c, const struct command_values *v,
			struct command_line *out, struct err *err);
/* The program's environment, as "RECORDER_REASON=...". Free it as a command line. */
int command_line_environment(const struct command_values *v, struct command_line *out,
			     struct err *err);
void command_line_free(struct command_line *c);
