/* What composite.c (judging) and composite_parse.c (making) share. */
#pragma once

#include "triggers/composite.h"

#define RATE_BUCKETS 64u
#define QUANTILE_SLOTS 12u
#define QUANTILE_BUCKETS 1280u          /* 32 per doubling, from 0.001 */
#define WHY_BYTES 320u

enum node_type {
	NODE_RULE, NODE_NOT, NODE_AND, NODE_OR, NODE_THEN, NODE_FOR, NODE_WITHIN, NODE_RATE,
	NODE_QUANTILE,
};

enum truth { IS_FALSE, IS_TRUE, IS_UNKNOWN };

/* How many events came in the last window. */
struct rate {
	uint64_t slot;                       /* of the newest bucket: time / width */
	uint32_t counts[RATE_BUCKETS];
	uint64_t begun_ns;                   /* 0 = nothing was judged yet */
};

/* The values of the last window, counted by size. */
struct quantile {
	uint64_t slot;
	uint32_t counts[QUANTILE_SLOTS][QUANTILE_BUCKETS];
	uint32_t totals[QUANTILE_SLOTS];
	uint32_t sums[QUANTILE_BUCKETS];     /* over all slots */
	uint64_t total;
};

struct node {
	uint8_t type;                        /* enum node_type */
	bool is_state;                       /* else a moment */
	uint16_t left, right;                /* nodes before this one, where the type has them */
	uint16_t rule;                       /* NODE_RULE, NODE_RATE, NODE_QUANTILE */
	uint64_t time_ns;                    /* FOR, WITHIN, THEN, window of RATE and QUANTILE */
	double unit_sec, quantile;           /* RATE: 60 for /min; QUANTILE: 0.99 */
	struct threshold limit;              /* RATE, QUANTILE */
	struct rate *rate;
	struct quantile *values;

	/* state of judging */
	enum truth now, before;              /* states */
	bool moment;                         /* moments: it is this very event */
	bool since_set, last_set;
	uint64_t since_ns;                   /* FOR: since when the left one is true */
	uint64_t last_ns;                    /* WITHIN, THEN: when the left one was true last */
	double value;                        /* RATE, QUANTILE */
};

struct rule_part {
	char *name;
	struct trigger *trigger;
	struct sense sense;                  /* of this event */
	enum truth state;                    /* of a rule that is a state */
	double value;                        /* of its last hit; NaN = none */
	char why[WHY_BYTES];                 /* of its last hit */
};

struct composite {
	struct trigger base;
	struct node nodes[COMPOSITE_NODES];
	struct rule_part rules[COMPOSITE_RULES];
	uint16_t nnodes, nrules, root;
	bool was_true;                       /* a root that is a state must be false first */
	bool owed;                           /* it became true in the window of an incident */
};

/* Parse base.text. *c is zeroed; the caller closes it after a failure. */
int composite_parse(struct composite *c, const struct trigger_env *env, struct err *err);
