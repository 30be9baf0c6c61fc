#include "source/dotnet/counters.h"

#include "base/os.h"
#include "base/text.h"
#include "source/counter_due.h"
#include "source/counter_name.h"
#include "source/runtime/gc_counters.h"

#include <stdlib.h>
#include <string.h>

#define FRESH_NS (3 * NS_PER_SEC)
#define PROGRAMS_MAX 64u                     /* of one counter */

struct wanted {
	struct need_counter need;
	struct counter_name name;
	uint64_t next_ns;
	struct {
		uint32_t pid;
		uint64_t time_ns;
		double value;
	} of[PROGRAMS_MAX];
	uint32_t n;
};

struct dotnet_counters {
	uint32_t n;
	struct wanted all[];
};

int dotnet_counters_new(const struct needs *needs, struct dotnet_counters **out, struct err *err)
{
	struct dotnet_counters *c;
	uint32_t i, n = 0;

	*out = NULL;
	for (i = 0; i < needs->ncounters; i++)
		n += event_counter_is(needs->counters[i].name);
	if (!n)
		return 0;
	c = calloc(1, sizeof(*c) + n * sizeof(c->all[0]));
	if (!c)
		return err_memory(err, "for counters of .NET programs");
	for (i = 0; i < needs->ncounters; i++) {
		struct wanted *w = &c->all[c->n];

		if (!event_counter_is(needs->counters[i].name) ||
		    counter_name_split(needs->counters[i].name, &w->name, NULL))
			continue;
		w->need = counter_need(&needs->counters[i]);
		c->n++;
	}
	*out = c;
	return 0;
}

void dotnet_counters_free(struct dotnet_counters *c)
{
	free(c);
}

static const char *source_of(const struct wanted *w)
{
	return w->name.category + (*w->name.category == '*');
}

const char *dotnet_counters_source(const struct dotnet_counters *c, uint32_t i)
{
	return c && i < c->n ? source_of(&c->all[i]) : NULL;
}

static bool number_of(const struct event *e, const char *field, double *out)
{
	const struct event_field *f = event_field(e, field);

	if (!f || f->type != FIELD_DOUBLE || f->v.d != f->v.d)
		return false;
	*out = f->v.d;
	return true;
}

static void note(struct wanted *w, uint32_t pid, uint64_t time_ns, double value)
{
	uint32_t i;

	for (i = 0; i < w->n && w->of[i].pid != pid; i++)
		;
	if (i == PROGRAMS_MAX)
		return;
	w->of[i].pid = pid;
	w->of[i].time_ns = time_ns;
	w->of[i].value = value;
	w->n += i == w->n;
}

void dotnet_counters_event(struct dotnet_counters *c, const struct event *e)
{
	const struct event_field *name;
	double value, seconds;
	uint32_t i;

	if (!c || !e->process || !e->name || !e->provider || strcmp(e->name, "EventCounters") != 0)
		return;
	name = event_field(e, "Name");
	if (!name || name->type != FIELD_TEXT)
		return;
	if (number_of(e, "Increment", &value) && number_of(e, "IntervalSec", &seconds) &&
	    seconds > 0)
		value /= seconds;
	else if (!number_of(e, "Mean", &value))
		return;
	for (i = 0; i < c->n; i++) {
		struct wanted *w = &c->all[i];

		if (text_same_fold(source_of(w), e->provider) &&
		    text_same_fold(w->name.counter, name->v.text) &&
		    gc_counter_means(w->name.instance, e->process))
			note(w, e->process->pid, e->time_ns, value);
	}
}

/* Programs that have sent nothing for a while are forgotten. returns  how many are left */
static uint32_t sum_of(struct wanted *w, uint64_t now_ns, double *sum)
{
	uint32_t i;

	*sum = 0;
	for (i = 0; i < w->n;) {
		if (now_ns > w->of[i].time_ns && now_ns - w->of[i].time_ns > FRESH_NS) {
			w->of[i] = w->of[--w->n];
			continue;
		}
		*sum += w->of[i++].value;
	}
	return w->n;
}

uint64_t dotnet_counters_poll(struct dotnet_counters *c, uint64_t now_ns,
			      void (*deliver)(void *ctx, const struct event *e), void *ctx)
{
	uint64_t next_ns = UINT64_MAX;
	uint32_t i;

	for (i = 0; c && i < c->n; i++) {
		struct wanted *w = &c->all[i];
		struct event e = counter_event(&w->need, now_ns);

		if (!w->next_ns)
			w->next_ns = now_ns + w->need.period_ns;
		if (counter_due(&w->next_ns, w->need.period_ns, now_ns)) {
			if (!sum_of(w, now_ns, &e.value))
				e.flags |= EVENT_FLAG_ABSENT;
			deliver(ctx, &e);
		}
		next_ns = w->next_ns < next_ns ? w->next_ns : next_ns;
	}
	return next_ns;
}
