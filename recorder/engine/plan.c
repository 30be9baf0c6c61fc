#include "engine/plan.h"

#include "base/array.h"
#include "base/os.h"
#include "engine/engine.h"
#include "engine/feed.h"

#include <math.h>
#include <string.h>

#define LOOK_NS (50 * NS_PER_MS)
#define LOOK_EVENTS 256u                     /* between two looks at the clock */
#define LEAD_NS NS_PER_SEC                   /* lists what runs already, which happens once */
#define DENSER_MAX 8u                        /* times the requested frequency */
#define FREQ_MAX 1999u
#define EXPONENT_MAX 0.4                     /* segments do not get denser faster than this */

struct piece {
	double samples, bytes;
};

struct planner {
	const struct plan_config *cfg;
	struct segment_builder *builder, *halves[2], *events;
	unsigned at_half;                    /* which one takes what comes */
	struct feed feed;
	uint64_t until_ns;                   /* of the time that is measured now */
	uint32_t taken;
	struct piece half, whole;            /* of both halves; used if none got full */
	struct piece full;                   /* the segments that got full, summed up */
	double event_bytes;                  /* of everything except samples */
	uint64_t samples;
	uint32_t processes_before;           /* known when the measuring began */
	double samples_as_asked;             /* what the requested frequency would have given */
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

double plan_ring_bytes(const struct segment *s)
{
	double later = 2 * ((double)s->nframes + s->nthreads);

	return (double)s->memory_bytes + (later > s->lists_bytes ? later - s->lists_bytes : 0);
}

static struct piece seal_piece(struct segment_builder *b)
{
	struct segment *s = NULL;
	struct piece piece = {0};

	if (segment_seal(b, &s, NULL) != 0 || !s)
		return piece;
	piece.samples = s->nsamples;
	piece.bytes = plan_ring_bytes(s);
	segment_unref(s);
	return piece;
}

static void add_piece(struct piece *sum, struct piece piece)
{
	sum->samples += piece.samples;
	sum->bytes += piece.bytes;
}

static int put_event(struct segment_builder *b, struct event *e)
{
	e->stack = STACK_NONE;
	if (e->nstack_frames)
		e->stack = segment_stack(b, e->stack_frames, e->nstack_frames, NULL, NULL);
	return segment_add(b, e);
}

static void measure_event(struct planner *p, const struct event *from)
{
	struct event e = *from;

	if (e.kind == EVENT_IMAGE || e.kind == EVENT_TICK)
		return;
	if (segment_is_full(p->builder, e.time_ns))
		add_piece(&p->full, seal_piece(p->builder));
	if (!segment_is_full(p->halves[p->at_half], e.time_ns))
		put_event(p->halves[p->at_half], &e);
	if (e.kind != EVENT_SAMPLE)
		put_event(p->events, &e);
	if (put_event(p->builder, &e) != 0 || e.kind != EVENT_SAMPLE)
		return;
	p->samples++;
	p->samples_as_asked += e.stream == STREAM_CPU && e.value > 0
				       ? e.value * p->cfg->source.capture.freq_hz / 1e9 : 1;
}

/* Ends at until_ns: on a busy machine the queues never are empty. */
static int take_in_time(void *ctx, const struct event *e)
{
	struct planner *p = ctx;

	measure_event(p, e);
	return ++p->taken % LOOK_EVENTS == 0 && os_now_ns() >= p->until_ns;
}

static uint64_t take_for(struct planner *p, uint64_t ns)
{
	uint64_t start_ns = os_now_ns(), now_ns = start_ns;

	p->until_ns = start_ns + ns;
	while (now_ns - start_ns < ns) {
		os_sleep_ns(LOOK_NS);
		feed_take(&p->feed, take_in_time, p);
		now_ns = os_now_ns();
	}
	return now_ns - start_ns;
}

static double full_samples(double samples_per_s)
{
	double n = samples_per_s * (double)SEGMENT_MAX_NS / 1e9;

	return n < SEGMENT_MAX_SAMPLES ? n : SEGMENT_MAX_SAMPLES;
}

/* Sample more often, where possible, so that a segment gets full in the time that is measured. */
static void sample_denser(struct planner *p, double samples_per_s)
{
	double here = samples_per_s * (double)p->cfg->measure_ns / 1e9;
	double times = here > 0 ? ceil(full_samples(samples_per_s) / here) : 1;
	const struct capture *asked = &p->cfg->source.capture;
	struct source_level to = {asked->freq_hz, asked->stack_kb};

	to.freq_hz *= times < DENSER_MAX ? (unsigned)times : DENSER_MAX;
	to.freq_hz = to.freq_hz < FREQ_MAX ? to.freq_hz : FREQ_MAX;
	if (to.freq_hz <= asked->freq_hz || capture_switches(asked))
		return;
	feed_set_level(&p->feed, &to);
}

static uint32_t count_processes(const struct planner *p)
{
	struct processes_use use;

	processes_use(p->feed.processes, &use);
	return use.processes;
}

static double measure(struct planner *p)
{
	double lead_s = (double)take_for(p, LEAD_NS) / 1e9;
	uint64_t passed_ns;

	p->processes_before = count_processes(p);
	sample_denser(p, (double)p->samples / lead_s);
	seal_piece(p->builder);
	seal_piece(p->halves[0]);
	seal_piece(p->events);
	p->full = (struct piece){0};
	p->samples = 0;
	p->samples_as_asked = 0;
	passed_ns = take_for(p, p->cfg->measure_ns / 2);
	p->at_half = 1;
	passed_ns += take_for(p, p->cfg->measure_ns / 2);    /* it may take longer */
	return (double)passed_ns / 1e9;
}

/* The bytes of a full segment of n samples at the requested frequency. */
static double full_bytes(const struct planner *p, double n, double samples_per_s, double measured_s)
{
	/* It spans more time than n samples did here, and has the events of all that time. */
	double more_s = n / samples_per_s - n * measured_s / (double)p->samples;
	double events = more_s > 0 ? p->event_bytes / measured_s * more_s : 0;

	if (p->full.samples > 0)
		return events + n * p->full.bytes / p->full.samples;
	return events + plan_segment_bytes(p->half.samples / 2, p->half.bytes / 2, p->whole.samples,
					   p->whole.bytes, n);
}

static void extrapolate(struct planner *p, struct plan *out)
{
	double n, bytes, segments, reach_s, ring = (double)p->cfg->ring_bytes;
	uint64_t cpu_ns, rss_bytes;

	out->samples = p->samples;
	out->samples_per_s = p->samples_as_asked / out->measured_s;
	/* No process has been forgotten meanwhile. */
	out->new_processes_s = (count_processes(p) - p->processes_before) / out->measured_s;
	os_self_usage(&cpu_ns, &rss_bytes);
	out->memory_bytes = rss_bytes + p->cfg->ring_bytes;
	if (!p->samples)
		return;
	n = full_samples(out->samples_per_s);
	bytes = full_bytes(p, n, out->samples_per_s, out->measured_s);
	if (!(bytes > 0))
		return;
	out->bytes_per_sample = bytes / n;
	segments = plan_segments_held(ring, bytes);
	out->ring_s = segments * n / out->samples_per_s;
	reach_s = engine_processes_reach_s(out->new_processes_s, p->cfg->keeps_ns);
	out->by_processes = reach_s < out->ring_s;
	out->history_s = out->by_processes ? reach_s : out->ring_s;
	out->held_samples = (uint64_t)(out->history_s * out->samples_per_s);
}

int plan_measure(const struct plan_config *cfg, struct plan *out, struct err *err)
{
	struct planner p = {.cfg = cfg};
	struct segment_builder **const builders[] = {&p.builder, &p.halves[0], &p.halves[1],
						     &p.events};
	unsigned i;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = feed_open_tables(&p.feed, err);
	for (i = 0; !rc && i < COUNT_OF(builders); i++)
		rc = segment_builder_new(p.feed.frames, p.feed.processes, builders[i], err);
	if (!rc)
		rc = feed_open_all(&p.feed, cfg->sources, &cfg->source, cfg->needs, err);
	if (!rc)
		rc = feed_start(&p.feed, err);
	if (!rc) {
		out->measured_s = measure(&p);
		p.whole = seal_piece(p.builder);
		p.half = seal_piece(p.halves[0]);
		add_piece(&p.half, seal_piece(p.halves[1]));
		p.event_bytes = seal_piece(p.events).bytes;
		extrapolate(&p, out);
	}
	feed_stop(&p.feed);
	feed_join(&p.feed);
	for (i = 0; i < COUNT_OF(builders); i++)
		segment_builder_free(*builders[i]);
	feed_close(&p.feed);
	return rc;
}
