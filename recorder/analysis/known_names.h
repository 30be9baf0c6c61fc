/*
 * What was in a trace or an incident, by name, and what of a rule's names was not: a misspelled
 * provider, event, field, process or counter never fires, and must not look like a quiet night.
 *
 * Feed it every event of what was read, then ask about each rule that did not fire. One thread.
 */
#ifndef KNOWN_NAMES_H
#define KNOWN_NAMES_H

#include "triggers/trigger.h"

#define KNOWN_NAMES_MAX 65536u           /* events of different names; more are not known, and it says so */

struct known_names;

int known_names_new(struct known_names **out, struct err *err);   /* 0 or ERR_MEMORY */
void known_names_free(struct known_names *k);                     /* NULL allowed */
int known_names_add(struct known_names *k, const struct event *e, struct err *err);   /* 0 or ERR_MEMORY */

/*
 * Whether asking is worth reading everything once more: some part of the rule saw nothing, or none of
 * what it saw passed.
 */
bool known_names_doubted(const struct trigger *t);

/*
 * Append a line for each name of the rule, or of those that it is made of, that was not there:
 * "provider 'X' has no event 'GC/Strt' in slow.etl; did you mean 'GC/Start'?\n". Nothing when all were.
 *
 * where    "slow.etl", "incident 3"
 */
void known_names_tell(const struct known_names *k, const struct trigger *t, const char *where,
		      struct buf *out);

#endif
