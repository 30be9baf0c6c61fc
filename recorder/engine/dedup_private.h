/* --dedup, see dedup.c: what the writer knows of stored incidents. */
#pragma once

#include "model/event.h"

#include <stdatomic.h>

struct engine;
struct pending;

struct dedup {                               /* the writer's */
	struct kept_signature *all;
	uint32_t n;
	_Atomic uint32_t nrepeats;           /* firings that are repeats; any thread reads it */
};

/* Merge thread: note what the signature will be made of. */
void dedup_note(struct engine *e, struct pending *p, const struct event *event);
/*
 * Writer, before anything of the incident is stored.
 * returns  whether it is counted with an earlier incident, and is not stored
 */
bool dedup_repeats(struct engine *e, struct pending *p);
/* Writer: the incident is stored, and has its number. */
void dedup_stored(struct engine *e, const struct pending *p);
void dedup_free(struct dedup *d);
