#include "triggers/trigger.h"

#include "triggers/composite.h"
#include "triggers/event_match.h"
#include "triggers/exception.h"
#include "triggers/gc_duration.h"
#include "triggers/log_message.h"
#include "triggers/perf_counter.h"
#include "triggers/process.h"
#include "triggers/request.h"

#include <string.h>

const struct trigger_ops *const triggers[] = {
	&perf_counter_trigger,
	&start_counter_trigger,
	&gc_over_trigger,
	&gc_suspend_over_trigger,
	&bgc_final_pause_over_trigger,
	&gen2_gc_trigger,
	&event_match_trigger,
	&exception_trigger,
	&request_trigger,
	&app_fabric_trigger,
	&log_message_trigger,
	&process_trigger,
	&composite_trigger,
	NULL,
};

const struct trigger_ops *trigger_kind(const char *name)
{
	size_t i;

	for (i = 0; triggers[i]; i++)
		if (strcmp(triggers[i]->name, name) == 0)
			return triggers[i];
	return NULL;
}
