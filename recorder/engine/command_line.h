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
 * Other text between % signs stays as it is. One thread.
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
 * returns  0; ERR_USAGE: no program, an open quote, too many arguments, or a batch file with
 *          variables that hold text of events, which its interpreter would run; ERR_MEMORY
 */
int command_line_parse(const char *text, struct command_line *out, struct err *err);
/* The same line with the values in place; free both with command_line_free(). */
int command_line_expand(const struct command_line *c, const struct command_values *v,
			struct command_line *out, struct err *err);
void command_line_free(struct command_line *c);
