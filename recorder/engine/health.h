/*
 * How well the recorder does its work: a word with its reasons, for `recorder status` and
 * --on-failure.
 *
 *	failing   evidence is lost at this moment, or incidents are not stored
 *	degraded  recording goes on with less than was asked for
 *	ok        neither
 *
 * Control thread; failures.c collects the reasons.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_TEXT_BYTES 600
#define HEALTH_LOSSES_PCT 1                  /* of samples, in the last one to two minutes */
#define HEALTH_FAILING_LOSSES_PCT 10
#define HEALTH_AGAIN_S 600                   /* a failure of the same kind is told again */

enum health_level { HEALTH_OK, HEALTH_DEGRADED, HEALTH_FAILING };

enum health_kind {
	HEALTH_STALL,                        /* a source delivers nothing */
	HEALTH_SOURCE_ENDED,                 /* a source ended with an error */
	HEALTH_LOSSES,
	HEALTH_STORE,                        /* incidents are not stored */
	HEALTH_DISK_FULL,                    /* the same, because of that */
	HEALTH_STORE_REPLACED,               /* it was damaged or removed */
	HEALTH_HISTORY,                      /* it is not written */
	HEALTH_NAMES,                        /* the thread that reads names hangs */
	HEALTH_READERS,                      /* threads of a source hang that read for it */
	HEALTH_KINDS,
};

struct health_losses {                       /* starts as {0} */
	struct { uint64_t ns, samples, lost; } from[2];      /* one to two minutes ago; later */
};

struct health {                              /* starts as {0} */
	enum health_level level;
	struct { enum health_level level; char text[HEALTH_TEXT_BYTES]; } reasons[HEALTH_KINDS];
	struct health_losses losses;
	uint64_t told_ns[HEALTH_KINDS];      /* that it fails; 0 = never */
	bool told;                           /* that something fails, and not yet that it ended */
};

/* "ok", "degraded", "failing"; of a kind: "stall", "source", "losses", "store", "names"... */
const char *health_word(enum health_level level);
const char *health_kind_text(enum health_kind kind);

/* Forget the reasons, but not what was told. */
void health_clear(struct health *h);
/* The level of a kind is the highest that was given; its text is the last one of that level. */
void health_add(struct health *h, enum health_kind kind, enum health_level level,
		const char *text);
/* Add HEALTH_LOSSES, if more were lost than the limits above; now_ns: of events. */
void health_add_losses(struct health *h, uint64_t now_ns, uint64_t samples, uint64_t lost);

/* What to tell: each kind that fails, once in HEALTH_AGAIN_S; false: nothing more. */
bool health_next_failure(struct health *h, uint64_t now_ns, enum health_kind *kind);
/* Whether failures were told, and none lasts; true once. */
bool health_recovered(struct health *h);
