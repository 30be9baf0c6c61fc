/* The source of counters on Linux, from /proc and control groups. See poll.h. */

#include "base/os.h"
#include "source/counter/poll.h"
#include "source/counter/proc_reader.h"
#include "source/counter_name.h"
#include "source/runtime/gc_counters.h"

#include <stdlib.h>

struct proc_source {
	struct counter_poll poll;
	struct proc_reader *reader;
	struct proc_reading *readings;       /* by index of the poll */
};

extern const struct source_ops proc_source;
int proc_list(const char *pattern, bool json, struct out *out, struct err *err);

/* ---- opening --------------------------------------------------------------------------------- */

/* A rule on an unknown counter is an error in the rule. */
static int find_counter(const char *name, struct proc_counter *out, struct err *err)
{
	int rc = proc_counter_find(name, out, err);

	if (rc == ERR_NOT_FOUND) {
		rc = ERR_USAGE;
		if (err)
			err->code = rc;
	}
	return rc;
}

static int proc_check(const struct needs *needs, struct err *err)
{
	struct proc_counter counter;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->ncounters; i++)
		if (gc_counter_is(needs->counters[i].name))
			rc = gc_counter_check(needs->counters[i].name, err);
		else if (!prometheus_counter_is(needs->counters[i].name))
			rc = find_counter(needs->counters[i].name, &counter, err);
	return rc;
}

static void proc_close(struct source *source)
{
	struct proc_source *s = (struct proc_source *)source;

	proc_reader_close(s->reader);
	counter_poll_close(&s->poll);
	free(s->readings);
	free(s);
}

static int add_counter(struct proc_source *s, const struct need_counter *need, struct err *err)
{
	struct proc_counter counter;
	int rc = find_counter(need->name, &counter, err);

	if (!rc)
		rc = proc_reading_start(s->reader, &counter, &s->readings[s->poll.npolled], err);
	if (!rc)
		counter_poll_add(&s->poll, need);
	return rc;
}

static void begin_moment(struct counter_poll *p)
{
	proc_reader_begin(((struct proc_source *)p)->reader);
}

static enum counter_result read_counter(struct counter_poll *p, uint32_t i, double *value)
{
	struct proc_source *s = (struct proc_source *)p;

	return proc_reading_next(s->reader, &s->readings[i], value);
}

static int proc_open(const struct source_config *cfg, const struct needs *needs,
		     struct source **out, struct err *err)
{
	static const struct counter_poll_ops ops = {begin_moment, read_counter, 10 * NS_PER_MS};
	struct proc_source *s = calloc(1, sizeof(*s));
	uint32_t i;
	int rc;

	if (!s)
		return err_memory(err, "for the source of counters");
	s->poll.base.ops = &proc_source;
	s->readings = calloc(needs->ncounters + 1, sizeof(*s->readings));
	rc = counter_poll_open(&s->poll, &ops, cfg->queue, needs->ncounters, err);
	if (!s->readings)
		rc = err_memory(err, "for the source of counters");
	if (!rc)
		rc = proc_reader_open("/proc", true, &s->reader, err);
	/* Counters of collections come from the sources that see collections. */
	for (i = 0; !rc && i < needs->ncounters; i++)
		if (!gc_counter_is(needs->counters[i].name) &&
		    !prometheus_counter_is(needs->counters[i].name))
			rc = add_counter(s, &needs->counters[i], err);
	if (rc) {
		proc_close(&s->poll.base);
		return rc;
	}
	*out = &s->poll.base;
	return 0;
}

static void proc_status(struct source *source, struct source_status *out)
{
	const struct proc_source *s = (struct proc_source *)source;

	counter_poll_status(source, out);
	out->degraded = proc_reader_note(s->reader, out->note, sizeof(out->note));
}

const struct source_ops proc_source = {
	.name = "counters",
	.summary = "performance counters from /proc, under their Windows names",
	.check = proc_check,
	.list = proc_list,
	.looks_at_others = true,
	.open = proc_open,
	.run = counter_poll_run,
	.stop = counter_poll_stop,
	.status = proc_status,
	.close = proc_close,
};
