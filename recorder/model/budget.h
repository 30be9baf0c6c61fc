/*
 * What the recorder may cost. When it takes more CPU time or memory than allowed, it samples less,
 * one step at a time, and takes the steps back once there is room.
 *
 * Readings come about once a second and bring the time; nothing here reads a clock. A reading over
 * a limit adds one to a count, any other subtracts one; at five the recorder takes a step down. So
 * a burst (a start, a large program's names) costs nothing, and a lasting excess is noticed. A
 * minute below half of every limit in force allows a step up. Time above half takes back twice as
 * much, so that a burst every ten seconds does not keep the recorder down for good. When a step up
 * had to be undone within the wait, the next attempt waits twice as long, at most 16 minutes. No
 * memory, no locks: a value.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_LEVELS_MAX 5u

struct budget_level {
	unsigned freq_hz;
	unsigned stack_kb;                   /* 0 = frame pointers */
};

struct budget_limits {
	double max_cpu_pct;                  /* of one CPU; 0 = none */
	uint64_t max_rss_bytes;              /* 0 = none */
};

enum budget_move { BUDGET_STAYS, BUDGET_DOWN, BUDGET_UP };

struct budget {
	struct budget_limits limits;
	struct budget_level levels[BUDGET_LEVELS_MAX];   /* [0] = as asked */
	unsigned nlevels, level;
	double cpu_pct;                      /* at the last reading */
	uint64_t rss_bytes;
	bool over_cpu, over_rss;             /* at the last reading: the reason for a step down */
	uint64_t last_ns, last_cpu_ns;       /* of the last reading; 0 = none */
	unsigned over;
	uint64_t calm_ns;             /* time below half of the limits, less twice the time above */
	uint64_t moved_ns, wait_ns;     /* when the last step up was; how long the next one waits */
	bool reported_exhausted;             /* the caller's: it has said that no step is left */
};

/*
 * The default limit: 1 % or 0.3 % per CPU, whichever is larger; more in proportion for a frequency
 * over 99 Hz, since the user asked for it.
 */
double budget_default_cpu_pct(unsigned cpus, unsigned freq_hz);

/* allow_fp: the last step may replace unwinding by frame pointers. */
void budget_init(struct budget *b, const struct budget_limits *limits, struct budget_level asked,
		 bool allow_fp);

/* cpu_ns: the total used so far. When it returns a move, that move has been made. */
enum budget_move budget_feed(struct budget *b, uint64_t now_ns, uint64_t cpu_ns,
			     uint64_t rss_bytes);

/* Over a limit with no step left; the caller reports it. */
bool budget_exhausted(const struct budget *b);
