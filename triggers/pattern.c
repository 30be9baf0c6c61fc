#include "triggers/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PROCESS_KEY ";Process="

int pattern_open(struct pattern *p, const char *expression, bool ignore_case,
		 const struct trigger_env *env, struct err *err)
{
	const char *key = strrchr(expression, ';'), *list = env->process;
	size_t len = strlen(expression);
	int rc = 0;

	if (key && strncasecmp(key, PROCESS_KEY, strlen(PROCESS_KEY)) == 0) {
		list = key + strlen(PROCESS_KEY);
		len = (size_t)(key - expression);
	}
	if (list)
		rc = process_filter_parse(list, strlen(list), &p->base.processes, err);
	if (!rc && len)
		rc = regex_open(p->base.text, expression, len, ignore_case, &p->regex, err);
	return rc;
}

void pattern_close(struct trigger *t)
{
	regex_close(((struct pattern *)t)->regex);
}

bool pattern_match(struct pattern *p, const char *text)
{
	return !p->regex || regex_match(p->regex, text, strlen(text));
}

void pattern_status(const struct trigger *t, struct trigger_status *out)
{
	const struct pattern *p = (const struct pattern *)t;

	if (p->regex && regex_rest_ns(p->regex)) {
		out->phase = TRIGGER_RESTING;
		snprintf(out->text, sizeof(out->text),
			 "rests for %.0f s: its expression took over %u steps %u times; %" PRIu64
			 " texts were not judged", (double)regex_rest_ns(p->regex) / 1e9,
			 REGEX_MATCH_LIMIT, REGEX_GIVE_UP, regex_gave_up(p->regex));
	} else if (p->regex && regex_gave_up(p->regex)) {
		snprintf(out->text, sizeof(out->text),
			 "armed; %" PRIu64 " texts were not judged, as the expression took over %u "
			 "steps on them", regex_gave_up(p->regex), REGEX_MATCH_LIMIT);
	}
}
