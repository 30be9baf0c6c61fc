/*
 * What options.c (names, the command line) and options/value.c (values) share.
 */
#ifndef OPTIONS_IMPL_H
#define OPTIONS_IMPL_H

#include "options/options.h"

/* One value on its way into struct options. */
struct setting {
	struct options *o;
	const struct option_info *info;
	unsigned row;                /* of the value: that of same_as when there is one */
	const char *as;              /* how it was written: "--freq", "/CircularMB", "freq" */
	const char *value;           /* NULL: a yes/no option without one */
	enum option_origin origin;
	uint32_t line;
};

/*
 * Check the value and put it where it belongs: unless the command line was there first, and a
 * conf file sets it now. Gives s->row.
 */
int option_set(struct setting *s, struct err *err);

/* Whether the option may stand without a value, and takes one only by ':' or '='. */
bool option_stands_alone(const struct option_info *info);

/* Whether n bytes of text are this name, leaving case and dashes aside. */
bool option_same_name(const char *name, size_t nname, const char *text, size_t n);

/* A copy to free(), or NULL without memory. */
char *option_text_copy(const char *text, size_t n);
int option_no_memory(struct err *err);

#endif
