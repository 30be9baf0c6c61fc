/*
 * A program to record: spins in burn_alpha 75 % and in burn_beta 25 % of its time.
 *
 *	burn SECONDS [ON_SECONDS OFF_SECONDS]
 *
 * With ON and OFF it works in bursts. Both functions do the same work per turn, alpha three times
 * as many turns, so the shares follow from the counts and need no clock. The turns differ from
 * round to round: rounds of one length would beat with the sampling clock, and a sampler that
 * always meets the same few phases of a round sees other shares than there are (79.8 % of 1,990
 * samples, once). Built with frame pointers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KEPT __attribute__((noinline))

enum { TURNS_MIN = 100000, TURNS_VARY = 1 << 18 };

/* What the work comes to; volatile, so that it is done. */
static volatile uint64_t sink;

static inline uint64_t work(uint64_t seed, unsigned turns)
{
	while (turns--)
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed;
}

KEPT static void burn_alpha(unsigned turns)
{
	sink = work(sink, 3 * turns);
}

KEPT static void burn_beta(unsigned turns)
{
	sink = work(sink, turns);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

KEPT static void burn_until(double end)
{
	while (seconds() < end) {
		/* the high bits of what was worked out are as good as dice */
		unsigned turns = TURNS_MIN + (unsigned)(sink >> 40) % TURNS_VARY;

		burn_alpha(turns);
		burn_beta(turns);
		sink++;                  /* so that neither call is the last thing: no tail call */
	}
}

int main(int argc, char **argv)
{
	double start = seconds();
	double length = argc > 1 ? atof(argv[1]) : 10;
	double on = argc > 2 ? atof(argv[2]) : length;
	double off = argc > 3 ? atof(argv[3]) : 0;

	while (seconds() < start + length) {
		burn_until(seconds() + on < start + length ? seconds() + on : start + length);
		if (off > 0) {
			struct timespec pause = {.tv_sec = (time_t)off,
						 .tv_nsec =
							 (long)((off - (double)(time_t)off) * 1e9)};

			nanosleep(&pause, NULL);
		}
	}
	printf("%llu\n", (unsigned long long)sink);
	return 0;
}
