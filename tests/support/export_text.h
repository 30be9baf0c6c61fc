/* An export in memory, for the tests of the exporters; and what they read it with. */
#pragma once

#include "export/export.h"

/* What `recorder export` uses when no option is given. */
extern const struct export_options export_defaults;

/* The bytes of an export appended to text; opt NULL = the defaults. 0 or an error. */
int export_text(const struct incident *in, const char *format, const struct export_options *opt,
		struct buf *text);

/* Fail the test unless the export of sample_small() is tests/data/export/FILE, byte for byte. */
void assert_export_is(const char *format, const struct export_options *opt, const char *file);

/* Fail the test unless the export of sample_streams() has this text somewhere. */
void assert_export_has(const char *format, bool excel, const char *expected);

/* The sum of the last columns of folded text; fails the test at a line that is none. */
uint64_t folded_total(const char *text);
