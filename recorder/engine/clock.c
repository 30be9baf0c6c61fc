#include "engine/clock.h"

#include "engine/engine_private.h"

#include "model/own_event.h"

#include <stdio.h>

bool clock_changed(const struct clock_reading *before, const struct clock_reading *now, char *out,
		   size_t n)
{
	int64_t slept_ns = (int64_t)(now->asleep_ns - before->asleep_ns);
	int64_t step_ns = (int64_t)(now->wall_ns - before->wall_ns) -
			  (int64_t)(now->now_ns - before->now_ns) - slept_ns;
	double step_s = (double)step_ns / 1e9;

	if (!before->wall_ns)
		return false;
	if (slept_ns >= CLOCK_STEP_NS)
		snprintf(out, n, "the machine slept for %.1f s: nothing ran, and nothing was "
			 "recorded", (double)slept_ns / 1e9);
	else if (step_ns >= CLOCK_STEP_NS || step_ns <= -CLOCK_STEP_NS)
		snprintf(out, n, "the wall clock was set %s by %.1f s: times of day before and "
			 "after differ by this; the order and the distances of events do not",
			 step_ns < 0 ? "back" : "forward", step_ns < 0 ? -step_s : step_s);
	else
		return false;
	return true;
}

void clock_look(struct engine *e)
{
	struct clock_reading now = {os_now_ns(), os_wall_ns(), os_asleep_ns()};
	char text[300];

	/* Read while this thread lost its CPU: the next look will do. */
	if (!e->policy->by_clock || os_now_ns() - now.now_ns > CLOCK_STEP_NS / 4)
		return;
	if (clock_changed(&e->merge.clock, &now, text, sizeof(text)))
		own_event_say(e, LOG_WARN, OWN_CLOCK, text);
	e->merge.clock = now;
}
