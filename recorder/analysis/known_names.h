/*
 * Finds names of rules that a trace or an incident does not have: a rule with a misspelled
 * provider, event, field, process or counter never fires, and that must not look like a quiet
 * night.
 *
 * Feed it every event that was read, then ask about each rule that did not fire. One thread.
 */
#pragma once

#include "triggers/trigger.h"

#define KNOWN_NAMES_MAX 65536u           /* names; when there are more, nothing is said */

struct known_names;

/* new and add return 0 or ERR_MEMORY; free allows NULL. */
int known_names_new(struct known_names **out, struct err *err);
void known_names_free(struct known_names *k);
int known_names_add(struct known_names *k, const struct event *e, struct err *err);

/*
 * Whether a rule may have a misspelled name, so that reading everything again is worth it: some
 * part of the rule saw no event, or rejected all that it saw.
 */
bool known_names_suspects(const struct trigger *t);

/*
 * Append a line for each name in the rule or its parts that was not found: "provider 'X' has no
 * event 'GC/Strt' in slow.etl; did you mean 'GC/Start'?\n". Append nothing when all were found.
 *
 * where    "slow.etl", "incident 3"
 */
void known_names_explain(const struct known_names *k, const struct trigger *t, const char *where,
		      struct buf *out);
