/*
 * PerfView's sets of scenarios: XML that lists patterns of files and what each is called.
 *
 *	<ScenarioSet>                        or <ScenarioConfig>
 *	  <Scenarios files="*.etl" namePattern="Store [$1]" process="shop" />
 *	</ScenarioSet>
 *
 * name is the same as namePattern. Source: PerfView's guide, "Multi-Scenario Analysis". One thread.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define SCENARIOS_MAX 1000u

struct scenario {
	char *files;                         /* a pattern: * and ? of a name, or of a path with / */
	char *name;                          /* $1: what the first * stands for; NULL = none */
	char *process;                       /* NULL = all */
};

struct scenario_list {
	struct scenario *items;
	uint32_t n;
};

/* Whether a text of n bytes is such a set, by its first tag. */
bool scenario_is_set(const char *text, size_t n);
/* ERR_FORMAT says what is wrong. list: starts as {0}; free it in any case. */
int scenario_parse(const char *text, size_t n, struct scenario_list *list, struct err *err);
void scenario_list_free(struct scenario_list *list);

/* A pattern of files as a regular expression, with parentheses for each * and ?. */
void scenario_regex(const char *files, struct buf *out);
