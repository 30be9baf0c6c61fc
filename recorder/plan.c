#include "plan.h"

#include "base/os.h"

#include <math.h>
#include <string.h>

#define SOURCES_MAX 8u
#define LOOK_NS (50 * NS_PER_MS)
#define EXPONENT_MAX 0.3                     /* denser than that no segment gets by its size */

struct plan_source {
	const struct source_ops *ops;
	struct source *source;
	struct queue *queue;
	struct os_thread *thread;
	struct err err;
};

struct pieces {                              /* of segments */
	uint32_t n;
	double samples[2], bytes[2];         /* of the last two */
	double full_samples, full_bytes;     /* of all that were full, but the first */
	uint32_t full;
};

struct planner {
	const struct plan_config *cfg;
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct plan_source sources[SOURCES_MAX];
	uint32_t nsources;
	struct pieces pieces;
	uint64_t samples;
};

double plan_segment_bytes(double n1, double bytes1, double n2, double bytes2, double n)
{
	double exponent = 0;

	if (n1 > 0 && n2 > n1 && bytes1 > 0 && bytes2 > 0)
		exponent = log((bytes1 / n1) / (bytes2 / n2)) / log(n2 / n1);
	if (!(exponent > 0))
		exponent = 0;
	if (exponent > EXPONENT_MAX)
		exponent = EXPONENT_MAX;
	return n2 > 0 ? n * bytes2 / n2 * pow(n / n2, -exponent) : 0;
}

static void source_main(void *ctx)
{
	struct plan_source *s = ctx;

	s->ops->run(s->source, &s->err);
	queue_finish(s->queue);
}

static int open_source(struct planner *p, const struct source_ops *ops, struct err *err)
{
	struct plan_source *s = &p->sources[p->nsources];
	struct source_config cfg = p->cfg->source;
	int rc;

	s->ops = ops;
	s->queue = queue_new(QUEUE_BYTES);
	if (!s->queue)
		return err_set(err, ERR_MEMORY, "out of memory for the queue of the %s source", ops->name);
	cfg.queue = s->queue;
	cfg.frames = p->frames;
	cfg.processes = p->processes;
	rc = ops->open(&cfg, p->cfg->needs, &s->source, err);
	if (rc) {
		queue_free(s->queue);
		return rc;
	}
	p->nsources++;
	return os_thread_start(ops->name, source_main, s, &s->thread, err);
}

static void seal(struct planner *p, bool full)
{
	struct pieces *to = &p->pieces;
	struct segment *s = NULL;

	if (segment_seal(p->builder, &s, NULL) != 0 || !s)
		return;
	to->samples[0] = to->samples[1];
	to->bytes[0] = to->bytes[1];
	to->samples[1] = s->nsamples;
	to->bytes[1] = (double)s->memory_bytes;
	if (full && to->full++) {
		to->full_samples += s->nsamples;
		to->full_bytes += (double)s->memory_bytes;
	}
	to->n++;
	segment_unref(s);
}

static void take(struct planner *p, const struct event *from)
{
	struct event e = *from;

	if (e.kind == EVENT_IMAGE || e.kind == EVENT_TICK)
		return;
	if (segment_is_full(p->builder, e.time_ns))
		seal(p, true);
	e.stack = STACK_NONE;
	if (e.nstack_frames)
		e.stack = segment_stack(p->builder, e.stack_frames, e.nstack_frames, NULL, NULL);
	if (segment_add(p->builder, &e) == 0 && e.kind == EVENT_SAMPLE)
		p->samples++;
}

static void take_all(struct planner *p)
{
	const struct event *e;
	uint32_t i;

	for (i = 0; i < p->nsources; i++) {
		while ((e = queue_peek(p->sources[i].queue)) != NULL) {
			take(p, e);
			queue_pop(p->sources[i].queue);
		}
	}
}

static double measure(struct planner *p)
{
	uint64_t start_ns = os_now_ns(), now_ns = start_ns;
	bool cut = false;

	while (now_ns - start_ns < p->cfg->measure_ns) {
		os_sleep_ns(LOOK_NS);
		take_all(p);
		now_ns = os_now_ns();
		if (!cut && now_ns - start_ns >= p->cfg->measure_ns / 3) {
			cut = true;
			if (!p->pieces.n)
				seal(p, false);
		}
	}
	return (double)(now_ns - start_ns) / 1e9;
}

static void conclude(struct planner *p, struct plan *out)
{
	const struct pieces *s = &p->pieces;
	double n, bytes, segments, ring = (double)p->cfg->ring_bytes;
	uint64_t cpu_ns, rss_bytes;

	out->samples = p->samples;
	out->samples_per_s = (double)p->samples / out->measured_s;
	os_self_usage(&cpu_ns, &rss_bytes);
	out->memory_bytes = rss_bytes + p->cfg->ring_bytes;
	if (!p->samples)
		return;
	n = out->samples_per_s * (double)SEGMENT_MAX_NS / 1e9;
	n = n < SEGMENT_MAX_SAMPLES ? n : SEGMENT_MAX_SAMPLES;
	bytes = s->full > 1 ? n * s->full_bytes / s->full_samples
			    : plan_segment_bytes(s->samples[0], s->bytes[0], s->samples[1], s->bytes[1], n);
	if (!(bytes > 0))
		return;
	out->bytes_per_sample = bytes / n;
	/* Sealed segments leave whole, and the open one is half full on average. */
	segments = floor(ring / bytes) > 1 ? floor(ring / bytes) + 0.5 : 1.5;
	out->held_samples = (uint64_t)(segments * n);
	out->history_s = segments * n / out->samples_per_s;
}

static void close_all(struct planner *p)
{
	uint32_t i;

	for (i = 0; i < p->nsources; i++) {
		p->sources[i].ops->stop(p->sources[i].source);
		os_thread_join(p->sources[i].thread);
	}
	for (i = 0; i < p->nsources; i++) {
		p->sources[i].ops->close(p->sources[i].source);
		queue_free(p->sources[i].queue);
	}
	segment_builder_free(p->builder);
	processes_free(p->processes);
	frames_free(p->frames);
}

int plan_measure(const struct plan_config *cfg, struct plan *out, struct err *err)
{
	struct planner p = {.cfg = cfg};
	uint32_t i;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = frames_new(&p.frames, err);
	if (!rc)
		rc = processes_new(&p.processes, err);
	if (!rc)
		rc = segment_builder_new(p.frames, p.processes, &p.builder, err);
	for (i = 0; !rc && cfg->sources[i] && i < SOURCES_MAX; i++)
		rc = open_source(&p, cfg->sources[i], err);
	if (!rc) {
		out->measured_s = measure(&p);
		seal(&p, false);
		conclude(&p, out);
	}
	close_all(&p);
	return rc;
}
