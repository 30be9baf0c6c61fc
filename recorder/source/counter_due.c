#include "source/counter_due.h"

struct need_counter counter_need(const struct need_counter *need)
{
	struct need_counter out = *need;

	if (!out.period_ns)
		out.period_ns = COUNTER_PERIOD_DEFAULT_NS;
	return out;
}

bool counter_due(uint64_t *next_ns, uint64_t period_ns, uint64_t now_ns)
{
	if (now_ns < *next_ns)
		return false;
	*next_ns += ((now_ns - *next_ns) / period_ns + 1) * period_ns;
	return true;
}

struct event counter_event(const struct need_counter *need, uint64_t time_ns)
{
	return (struct event){
		.time_ns = time_ns, .kind = EVENT_COUNTER, .cpu = CPU_NONE,
		.flags = need->monitor ? EVENT_FLAG_MONITOR : 0u,
		.stream = STREAM_EVENT, .stack = STACK_NONE, .name = need->name,
	};
}
