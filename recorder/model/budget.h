/*
 * What the recorder may cost: when it takes more CPU time or memory than it should, it samples less,
 * a step at a time, and takes the steps back once there is room.
 *
 * Readings come once a second or so; time is theirs, nothing here reads a clock. A reading over a
 * limit counts one, any other takes one off: at five a step down is taken, so that a burst (a start, a
 * large program's names) costs nothing, and what is over most of the time is noticed. A minute below
 * half of every limit in force is a step up: time above half takes twice as much of it back, for a burst
 * every ten seconds is no reason to stay below for good. When the step had to be taken back within as long,
 * the next attempt waits twice as long, at most 16 minutes. No memory, no locks: a value.
 */
#ifndef MODEL_BUDGET_H
#define MODEL_BUDGET_H

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
	double cpu_pct;                      /* of the last reading */
	uint64_t rss_bytes;
	bool over_cpu, over_rss;             /* the last reading; what a step down was for */
	uint64_t last_ns, last_cpu_ns;       /* the reading before; 0 = none */
	unsigned over;
	uint64_t calm_ns;                    /* below half, less twice what was above */
	uint64_t moved_ns, wait_ns;          /* the last step up; how long the next one waits */
	bool at_bottom_told;                 /* the caller's: that no step is left */
};

/*
 * The larger of 1 % and 0.3 % for each CPU; in proportion more for a frequency over 99 Hz, which
 * somebody has asked for.
 */
double budget_default_cpu_pct(unsigned cpus, unsigned freq_hz);

/* allow_fp: the last step may give up unwinding for frame pointers. */
void budget_init(struct budget *b, const struct budget_limits *limits, struct budget_level asked,
		 bool allow_fp);

/* cpu_ns: used so far, in all. A move has been made when it returns. */
enum budget_move budget_feed(struct budget *b, uint64_t now_ns, uint64_t cpu_ns, uint64_t rss_bytes);

/* Over its limit with no step left: whoever calls says so. */
bool budget_exhausted(const struct budget *b);

#endif
