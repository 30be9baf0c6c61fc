#include "model/needs.h"

#include "base/text.h"

#include <string.h>

int needs_counter(struct needs *n, const char *name, uint64_t period_ns, bool monitor,
		  struct err *err)
{
	struct need_counter *c;
	uint32_t i;

	if (strlen(name) >= COUNTER_NAME_MAX)
		return err_set(err, ERR_LIMIT,
			       "the counter name '%.60s...' is longer than %d bytes", name,
			       COUNTER_NAME_MAX - 1);
	for (i = 0; i < n->ncounters; i++) {
		c = &n->counters[i];
		if (strcmp(c->name, name) != 0)
			continue;
		if (period_ns < c->period_ns)
			c->period_ns = period_ns;
		c->monitor |= monitor;
		return 0;
	}
	if (n->ncounters == NEEDS_MAX_COUNTERS)
		return err_set(err, ERR_LIMIT, "more than %u different counters are requested",
			       NEEDS_MAX_COUNTERS);
	c = &n->counters[n->ncounters++];
	strcpy(c->name, name);
	c->period_ns = period_ns;
	c->monitor = monitor;
	return 0;
}

int needs_provider(struct needs *n, const char *name, uint64_t keywords, uint8_t level,
		   struct err *err)
{
	int rc = needs_filtered_provider(n, name, keywords, level, err);
	uint32_t i;

	for (i = 0; !rc && !text_same_fold(n->providers[i].name, name); i++)
		;
	if (!rc)
		n->providers[i].unfiltered = true;
	return rc;
}

int needs_filtered_provider(struct needs *n, const char *name, uint64_t keywords, uint8_t level,
			    struct err *err)
{
	struct need_provider *p;
	uint32_t i;

	if (strlen(name) >= PROVIDER_NAME_MAX)
		return err_set(err, ERR_LIMIT,
			       "the provider name '%.60s...' is longer than %d bytes", name,
			       PROVIDER_NAME_MAX - 1);
	for (i = 0; i < n->nproviders; i++) {
		p = &n->providers[i];
		if (!text_same_fold(p->name, name))
			continue;
		p->keywords |= keywords;
		if (level > p->level)
			p->level = level;
		return 0;
	}
	if (n->nproviders == NEEDS_MAX_PROVIDERS)
		return err_set(err, ERR_LIMIT,
			       "more than %u different event providers are requested",
			       NEEDS_MAX_PROVIDERS);
	p = &n->providers[n->nproviders++];
	*p = (struct need_provider){.keywords = keywords, .level = level};
	strcpy(p->name, name);
	return 0;
}

int needs_log(struct needs *n, const char *name, struct err *err)
{
	uint32_t i;

	if (strlen(name) >= LOG_NAME_MAX)
		return err_set(err, ERR_LIMIT, "the log name '%.60s...' is longer than %d bytes",
			       name, LOG_NAME_MAX - 1);
	for (i = 0; i < n->nlogs; i++) {
		if (strcmp(n->logs[i].name, name) == 0)
			return 0;
	}
	if (n->nlogs == NEEDS_MAX_LOGS)
		return err_set(err, ERR_LIMIT, "more than %u different logs are requested",
			       NEEDS_MAX_LOGS);
	strcpy(n->logs[n->nlogs++].name, name);
	return 0;
}

int needs_event(struct needs *n, const struct need_event *event, struct err *err)
{
	uint32_t i;

	for (i = 0; i < n->nevents; i++) {
		struct need_event *e = &n->events[i];

		if (!text_same_fold(e->provider, event->provider) ||
		    strcmp(e->name, event->name) != 0 || strcmp(e->filter, event->filter) != 0 ||
		    e->asked != event->asked || strcmp(e->processes, event->processes) != 0 ||
		    memcmp(&e->whose, &event->whose, sizeof(e->whose)) != 0 ||
		    (*e->texts && *event->texts && strcmp(e->texts, event->texts) != 0))
			continue;
		if (!*e->texts)
			e->texts_ms = event->texts_ms;
		else if (*event->texts && event->texts_ms < e->texts_ms)
			e->texts_ms = event->texts_ms;
		if (!*e->texts)
			strcpy(e->texts, event->texts);
		e->stack |= event->stack;
		return 0;
	}
	if (n->nevents == NEEDS_MAX_EVENTS)
		return err_set(err, ERR_LIMIT, "more than %u different events are requested",
			       NEEDS_MAX_EVENTS);
	n->events[n->nevents++] = *event;
	return 0;
}
