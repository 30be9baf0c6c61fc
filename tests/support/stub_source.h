/*
 * A source for tests that say themselves what it does while it runs: a copy of stub_source with a
 * run() of theirs, which puts into queue until it is stopping.
 */
#pragma once

#include "source/source.h"

struct stub_source {
	struct source base;
	struct queue *queue;
	_Atomic bool stopping;
	_Atomic uint64_t asked_ns;           /* when catch_up() was called last; 0 = never */
};

extern const struct source_ops stub_source;

/* Now: what synthetic_trigger() fires at. Returns its time. */
uint64_t stub_source_fire(struct stub_source *s);
