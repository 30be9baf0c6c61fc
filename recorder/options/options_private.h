/*
 * What options.c (names, command line) and value.c (values) share.
 */
#pragma once

#include "options/options.h"

/* One value on its way into struct options. */
struct setting {
	struct options *o;
	const struct option_info *info;
	unsigned row;                /* the row that owns the value; set by option_set() */
	const char *as;              /* as it was written: "--freq", "/CircularMB", "freq" */
	const char *value;           /* NULL: none was given */
	enum option_origin origin;
	uint32_t line;
};

/*
 * Check the value and store it, unless it comes from the conf file and the command line has set the
 * option already. Sets s->row.
 */
int option_set(struct setting *s, struct err *err);

/* Whether the option needs no value, and takes one only after ':' or '='. */
bool option_stands_alone(const struct option_info *info);

/* Whether n bytes of text are this name; case and dashes do not count. */
bool option_same_name(const char *name, size_t nname, const char *text, size_t n);

/* The same for any of several names, separated by blanks. */
bool option_is_one_of(const char *names, const char *text, size_t n);

int option_no_memory(struct err *err);

/* What to use instead of a qualifier or a command of PerfView that is not there; NULL = unknown. */
const char *perfview_qualifier(const char *name, size_t n);
const char *perfview_command(const char *name);
