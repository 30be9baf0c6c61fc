/*
 * A whole engine on the synthetic source: 100 samples a second in trace time, windows of 10 s
 * before and 2 s after a firing, a store in the test's directory. The weight of a sample is its
 * number.
 */
#pragma once

#include "engine/engine.h"

#include "tests/support/synthetic_source.h"
#include "tests/support/tmp.h"

#define SEC(n) ((uint64_t)((n) * 1e9))
#define START_NS SEC(1000)
#define STEP_NS SEC(0.01)                /* 100 samples a second */

struct rig {
	char path[TMP_BYTES];
	struct trigger *rule;
	struct engine_config cfg;
	struct engine_result result;
	struct synthetic_plan plan;
};

/* Recorded for so many seconds, the rule being that of synthetic_source.h. */
void rig_open(struct rig *r, const char *name, double seconds);
/* The same from a file; its wall clock begins at START_WALL_NS. */
void rig_open_file(struct rig *r, const char *name, double seconds);
#define START_WALL_NS 1595981220623561600ULL     /* 2020-07-29T00:07:00.6235616Z */
void rig_fire_often(struct rig *r);              /* at 10, 20 ... 300 s; windows of 1 s + 1 s */
void rig_run(struct rig *r);                     /* must succeed */
void rig_load(struct rig *r, int64_t id, struct incident *in);
/* assert_numbers() of an incident */
void rig_check(struct rig *r, int64_t id, uint64_t first, uint64_t last);
void remove_store(const char *path);

/* Exactly the samples first..last, each number once and in order. */
void assert_numbers(const struct incident *in, uint64_t first, uint64_t last);
