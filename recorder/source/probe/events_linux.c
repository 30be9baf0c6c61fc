/* The content of probes' records, and the limit of their rate; see probes_linux.h. */
#include "source/probe/probes_private.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* The name that a rule uses; for collections, which rules do not name, whose they are. */
static void put_probe_name(const struct probe *probe, char *out, size_t n)
{
	static const char *const programs[] = {"CPython", "V8", "HotSpot"};

	if (probe->gc.edge)
		snprintf(out, n, "collections of %s in %.*s", programs[probe->gc.program],
			 (int)strcspn(probe->name, ":"), probe->name);
	else
		snprintf(out, n, "%s%c%s", probe->provider, probe->name[0] == '/' ? ':' : '/',
			 probe->name);
}

static void pause_and_log(struct probes *p, struct probe *probe, uint64_t now_ns)
{
	char name[PROVIDER_NAME_MAX + EVENT_NAME_MAX];

	put_probe_name(probe, name, sizeof(name));
	atomic_fetch_add(&probe->npauses, 1);
	probe_pause(p, probe, now_ns + PROBE_PAUSE_NS);
	if (!probe->pause_logged)
		log_line(p->log, LOG_WARN,
			 "%s happened more than %u times in a second: switched off for %u s, now "
			 "and each time this happens; rules on it miss what happens meanwhile%s",
			 name, probe->limit, (unsigned)(PROBE_PAUSE_NS / NS_PER_SEC),
			 probe->uprobe ? "" : " (narrow it down with FieldFilter)");
	probe->pause_logged = true;
}

/* Count per second by the events' own times. */
static bool within_rate(struct probes *p, struct probe *probe, uint64_t time_ns)
{
	if (time_ns - probe->second_ns >= NS_PER_SEC) {
		probe->second_ns = time_ns;
		probe->hits = 0;
	}
	if (!probe->paused_until_ns && ++probe->hits <= probe->limit)
		return true;
	if (!probe->paused_until_ns)
		pause_and_log(p, probe, time_ns);
	atomic_fetch_add_explicit(&probe->nleft_out, 1, memory_order_relaxed);
	return false;
}

enum probe_role probe_role(const struct probe *probe)
{
	return probe->role;
}

bool probe_pid(const struct probe *probe, const struct perf_record *r, uint32_t *pid)
{
	int64_t number;

	if (!trace_format_number(&probe->format, probe->pid, r->u.sample.raw, r->u.sample.raw_bytes,
				 &number))
		return false;
	*pid = (uint32_t)number;
	return number > 0;
}

void probes_every(struct probes *p, enum probe_role role, uint64_t n)
{
	uint32_t at;

	for (at = 0; at < p->ncpus * p->nplaces; at++)
		if (p->events[at].fd >= 0 && p->all[p->events[at].probe].role == role)
			ioctl(p->events[at].fd, PERF_EVENT_IOC_PERIOD, &n);
}

bool probes_take(struct probes *p, struct probe *probe, const struct perf_record *r,
		 struct event *out)
{
	uint64_t start_ns = out->process ? out->process->start_ns : 0;

	if ((probe->gc.edge && !gc_probe_is_of(&probe->gc, r->pid, start_ns)) ||
	    !within_rate(p, probe, r->time_ns))
		return false;
	out->kind = EVENT_GENERIC;
	out->stream = STREAM_EVENT;
	out->provider = probe->provider;
	out->name = probe->name;
	if (probe->throws) {
		out->name = THROW_EVENT;
		throw_read(p->reader, r, &p->thrown);
		if (throw_is_of_runtime(&p->thrown))
			return false;
		p->fields[0] = (struct event_field){.name = "ExceptionType", .type = FIELD_TEXT,
						    .v.text = p->thrown.type};
		out->fields = p->fields;
		out->nfields = 1;
	} else if (probe->uprobe) {
		out->fields = p->fields;
		out->nfields = uprobe_fields(probe->uprobe, probe->place, r, p->fields);
		if (probe->gc.edge) {
			gc_probe_event(&probe->gc, p->fields, out->nfields, r->tid, &p->generations,
				       p->gc_fields, out);
			return true;
		}
		out->hex_fields =
			probe->uprobe->is_usdt || probe->uprobe->is_return ? 0 : UINT64_MAX;
	} else {
		trace_format_read(&probe->format, r->u.sample.raw, r->u.sample.raw_bytes,
				  &p->values);
		out->fields = p->values.fields;
		out->nfields = p->values.nfields;
		out->hex_fields = p->values.hex_fields;
	}
	out->payload_bytes = r->u.sample.raw_bytes;
	return true;
}

bool probes_again(const struct probe *probe, struct event *e)
{
	const char *name = probe->gc.edge ? gc_probe_second_name(&probe->gc) : NULL;

	if (!name || e->name == name)
		return false;
	e->name = name;
	return true;
}

bool probe_has_stack(const struct probe *probe)
{
	return probe->stack;
}

/*
 * The ends of collections are switched off a second after their starts: else a collection that had
 * begun would seem to continue.
 */
static void pause_gc_end(struct probes *p, struct probe *end, uint64_t now_ns)
{
	const struct probe *begin = end - 1;

	if (begin->paused_until_ns && !end->paused_until_ns &&
	    begin->paused_until_ns + NS_PER_SEC < now_ns + PROBE_PAUSE_NS)
		probe_pause(p, end, begin->paused_until_ns);
}

void probes_look(struct probes *p, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		struct probe *probe = &p->all[i];

		if (i && probe->gc.edge == GC_ENDS)
			pause_gc_end(p, probe, now_ns);
		if (!probe->paused_until_ns || now_ns < probe->paused_until_ns)
			continue;
		probe->second_ns = probe->hits = 0;
		probe_pause(p, probe, 0);
	}
}

/* Name the first probe and the number of the others. */
void probes_note(const struct probes *p, char *out, size_t n)
{
	char name[PROVIDER_NAME_MAX + EVENT_NAME_MAX];
	unsigned others = 0;
	uint32_t i;
	size_t used;

	out[0] = '\0';
	for (i = 0; i < p->n; i++) {
		uint64_t npauses = atomic_load(&p->all[i].npauses);

		others += npauses && out[0];
		if (!npauses || out[0])
			continue;
		put_probe_name(&p->all[i], name, sizeof(name));
		snprintf(out, n, "%.120s happened too often: switched off %" PRIu64
			 " time%s, for %u s each", name, npauses, npauses == 1 ? "" : "s",
			 (unsigned)(PROBE_PAUSE_NS / NS_PER_SEC));
	}
	used = strlen(out);
	if (others)
		snprintf(out + used, n - used, "; so %s %u other%s", others == 1 ? "was" : "were",
			 others, others == 1 ? "" : "s");
}
