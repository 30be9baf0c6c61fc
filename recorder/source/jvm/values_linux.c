#include "source/jvm/values.h"

#include "base/os.h"
#include "base/text.h"
#include "source/counter_due.h"
#include "source/counter_name.h"
#include "source/host/proc_pid_linux.h"

#include <stdlib.h>
#include <string.h>

struct jvm_value {
	struct need_counter need;
	struct counter_name name;
	uint64_t next_ns;
	/* Of the last reading: when, of which JVMs (the sum of their pids), the sum; 0 = none. */
	uint64_t before_ns, before_pids;
	double before;
};

struct jvm_values {
	uint32_t n;
	uint64_t *image;                     /* HSPERF_MAX_BYTES, for the file of one JVM */
	struct jvm_value all[];
};

int jvm_values_new(const struct needs *needs, struct jvm_values **out, struct err *err)
{
	struct jvm_values *v;
	uint32_t i, n = 0;

	*out = NULL;
	for (i = 0; i < needs->ncounters; i++)
		n += jvm_counter_is(needs->counters[i].name);
	if (!n)
		return 0;
	v = calloc(1, sizeof(*v) + n * sizeof(v->all[0]));
	if (v)
		v->image = malloc(HSPERF_MAX_BYTES);
	if (!v || !v->image) {
		jvm_values_free(v);
		return err_memory(err, "for counters of Java programs");
	}
	for (i = 0; i < needs->ncounters; i++) {
		struct jvm_value *value = &v->all[v->n];

		if (!jvm_counter_is(needs->counters[i].name) ||
		    counter_name_split(needs->counters[i].name, &value->name, NULL))
			continue;
		value->need = counter_need(&needs->counters[i]);
		v->n++;
	}
	*out = v;
	return 0;
}

void jvm_values_free(struct jvm_values *v)
{
	if (v)
		free(v->image);
	free(v);
}

/* In seconds where it is a time, so that its increase a second is a share. */
static double as_number(const struct hsperf_number *n)
{
	return n->ticks && n->frequency_hz ? (double)n->value / (double)n->frequency_hz
					   : (double)n->value;
}

static bool read_one(struct jvm_values *v, struct jvm_table *t, struct jvm *j,
		     const struct jvm_value *value, struct hsperf_number *out)
{
	struct process *process = proc_pid_process(t->processes, j->pid, &j->own);
	size_t bytes = j->map.bytes & ~(size_t)7;
	bool meant = process && gc_counter_means(value->name.instance, process);

	if (process)
		process_unref(process);
	return meant && bytes <= HSPERF_MAX_BYTES && mapped_read(&j->map, v->image, 0, bytes) &&
	       hsperf_number(v->image, bytes, value->name.counter, out);
}

/* false = there is nothing to tell now */
static bool value_now(struct jvm_values *v, struct jvm_table *t, struct jvm_value *value,
		      uint64_t now_ns, struct event *e)
{
	struct hsperf_number number = {0}, last = {0};
	double sum = 0, before = value->before;
	uint64_t pids = 0, before_ns = value->before_ns;
	uint32_t i;

	for (i = 0; i < t->n; i++)
		if (t->all[i].ready && read_one(v, t, &t->all[i], value, &number)) {
			sum += as_number(&number);
			pids += t->all[i].pid;
			last = number;
		}
	if (!pids) {
		value->before_ns = 0;
		e->flags |= EVENT_FLAG_ABSENT;
		return true;
	}
	e->value = sum;
	if (!last.grows)
		return true;
	value->before = sum;
	value->before_ns = now_ns;
	if (!before_ns || value->before_pids != pids || sum < before) {
		value->before_pids = pids;
		return false;
	}
	e->value = (sum - before) * (last.ticks ? 100 : 1) * (double)NS_PER_SEC /
		   (double)(now_ns - before_ns);
	return true;
}

uint64_t jvm_values_poll(struct jvm_values *v, struct jvm_table *t, uint64_t now_ns,
			 void (*deliver)(void *ctx, const struct event *e), void *ctx)
{
	uint64_t next_ns = UINT64_MAX;
	uint32_t i;

	for (i = 0; v && i < v->n; i++) {
		struct jvm_value *value = &v->all[i];
		struct event e = counter_event(&value->need, now_ns);

		if (!value->next_ns)
			value->next_ns = now_ns;
		if (counter_due(&value->next_ns, value->need.period_ns, now_ns) &&
		    value_now(v, t, value, now_ns, &e))
			deliver(ctx, &e);
		next_ns = value->next_ns < next_ns ? value->next_ns : next_ns;
	}
	return next_ns;
}
