#include "triggers/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The length without a ";Process=LIST" at the end. */
static size_t expression_len(const char *text)
{
	static const char key[] = ";Process=";
	const char *last = strrchr(text, ';');

	if (last && strncasecmp(last, key, sizeof(key) - 1) == 0)
		return (size_t)(last - text);
	return strlen(text);
}

int pattern_open(struct pattern *p, const char *spec, const char *text, bool ignore_case,
		 const struct trigger_env *env, struct err *err)
{
	size_t len = expression_len(text);
	const char *list = text[len] ? text + len + strlen(";Process=") : env->process;
	int rc = 0;

	if (list)
		rc = process_filter_parse(list, strlen(list), &p->processes, err);
	if (!rc && len)
		rc = regex_open(spec, text, len, ignore_case, &p->regex, err);
	return rc;
}

void pattern_close(struct trigger *t)
{
	struct pattern *p = (struct pattern *)t;

	if (!p)
		return;
	regex_close(p->regex);
	free(p->base.spec);
	free(p);
}

bool pattern_match(struct pattern *p, const char *text)
{
	return !p->regex || regex_match(p->regex, text, strlen(text));
}

void pattern_status(const struct trigger *t, struct trigger_status *out)
{
	const struct pattern *p = (const struct pattern *)t;
	uint64_t gave_up;

	trigger_status_base(t, out);
	snprintf(out->text, sizeof(out->text), "%s%s",
		 t->counts.seen ? "armed" : "no such event yet",
		 trigger_window_text(t));
	gave_up = p->regex ? regex_gave_up(p->regex) : 0;
	if (gave_up)
		snprintf(out->text, sizeof(out->text),
			 "armed; %" PRIu64 " texts were not judged, as the "
			 "expression took over %u steps on them",
			 gave_up, REGEX_MATCH_LIMIT);
	if (p->regex && regex_is_dead(p->regex)) {
		out->phase = TRIGGER_DEAD;
		snprintf(out->text, sizeof(out->text),
			 "dead: its expression took over %u steps %u times "
			 "and was switched off",
			 REGEX_MATCH_LIMIT, REGEX_GIVE_UP);
	}
}
