#include "plan.h"

#include "base/os.h"

#include <math.h>
#include <string.h>

#define SOURCES_MAX 8u
#define LOOK_NS (50 * NS_PER_MS)
#define EXPONENT_MAX 0.4                     /* denser than that no segment gets by its size */

struct plan_source {
	const struct source_ops *ops;
	struct source *source;
	struct queue *queue;
	struct os_thread *thread;
	struct err err;
};

struct piece {
	double samples, bytes;
};

struct planner {
	const struct plan_config *cfg;
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder, *first_half;
	struct plan_source sources[SOURCES_MAX];
	uint32_t nsources;
	struct piece half, whole;            /* of a segment as it grew, if none got full */
	struct piece first_full, full;       /* the first, which lists what ran at the start; the others' sum */
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

double plan_segments_held(double ring_bytes, double segment_bytes)
{
	double n = ring_bytes / segment_bytes;

	return n > 1.5 ? n : 1.5;            /* the newest sealed one always stays */
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

static struct piece seal(struct segment_builder *b)
{
	struct segment *s = NULL;
	struct piece piece = {0};

	if (segment_seal(b, &s, NULL) != 0 || !s)
		return piece;
	piece.samples = s->nsamples;
	piece.bytes = (double)s->memory_bytes;
	segment_unref(s);
	return piece;
}

static void seal_full(struct planner *p)
{
	struct piece piece = seal(p->builder);

	if (!(p->first_full.samples > 0)) {
		p->first_full = piece;
		return;
	}
	p->full.samples += piece.samples;
	p->full.bytes += piece.bytes;
}

static int put(struct segment_builder *b, struct event *e)
{
	e->stack = STACK_NONE;
	if (e->nstack_frames)
		e->stack = segment_stack(b, e->stack_frames, e->nstack_frames, NULL, NULL);
	return segment_add(b, e);
}

static void take(struct planner *p, const struct event *from)
{
	struct event e = *from;

	if (e.kind == EVENT_IMAGE || e.kind == EVENT_TICK)
		return;
	if (segment_is_full(p->builder, e.time_ns))
		seal_full(p);
	if (!(p->half.samples > 0) && !segment_is_full(p->first_half, e.time_ns))
		put(p->first_half, &e);
	if (put(p->builder, &e) == 0 && e.kind == EVENT_SAMPLE)
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
		if (!cut && now_ns - start_ns >= p->cfg->measure_ns / 2) {
			cut = true;
			p->half = seal(p->first_half);
		}
	}
	return (double)(now_ns - start_ns) / 1e9;
}

static void conclude(struct planner *p, struct plan *out)
{
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
	if (p->full.samples > 0)
		bytes = n * p->full.bytes / p->full.samples;
	else if (p->first_full.samples > 0)
		bytes = n * p->first_full.bytes / p->first_full.samples;
	else
		bytes = plan_segment_bytes(p->half.samples, p->half.bytes, p->whole.samples,
					   p->whole.bytes, n);
	if (!(bytes > 0))
		return;
	out->bytes_per_sample = bytes / n;
	segments = plan_segments_held(ring, bytes);
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
	segment_builder_free(p->first_half);
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
	if (!rc)
		rc = segment_builder_new(p.frames, p.processes, &p.first_half, err);
	for (i = 0; !rc && cfg->sources[i] && i < SOURCES_MAX; i++)
		rc = open_source(&p, cfg->sources[i], err);
	if (!rc) {
		out->measured_s = measure(&p);
		p.whole = seal(p.builder);
		conclude(&p, out);
	}
	close_all(&p);
	return rc;
}
