/* What an export weighs, read from its text by the grammar of its format; fails the test at a line
 * that the grammar does not have. */
#ifndef TESTS_SUPPORT_EXPORT_TOTALS_H
#define TESTS_SUPPORT_EXPORT_TOTALS_H

#include <stdint.h>

uint64_t livestacks_total(const char *text);
uint64_t dtrace_total(const char *text);
/* Sum of the periods; *samples is how many. */
uint64_t perf_script_total(const char *text, uint64_t *samples);

#endif
