/*
 * How diverse a recording is, and what it takes in the ring: its incident is fed to the open
 * segment as the merge thread does, in segments of at most 8,192 samples.
 *
 *	bench_density [--json] STORE [ID]          the newest incident if no ID is given
 *
 * Diversity is the mean over every 4,000 samples in turn (all when there are fewer): how many
 * different stacks, threads, nodes of the stack tree and frames they have. Of the nodes of
 * segments: new frames are those that the segment had not met; strange ones it had met, but never
 * under this caller. Alone: a thread that its CPU did not run at the sample before.
 */
#include "base/os.h"
#include "store/store.h"
#include "tests/support/bench_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 4000, CPUS = 1024 };

struct lab {
	struct incident in;
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct object **objects;
	struct thread **threads;
	uint64_t encoded_bytes, lists_bytes, memory_bytes, segments, nodes, new_frames,
		strange_frames;
	uint64_t build_ns;
};

/* ---- diversity ------------------------------------------------------------------------------- */

struct diversity {
	uint32_t *stacks, *nodes, *frames, *threads;    /* the last window that saw each */
	uint64_t nstacks, nnodes, nframes, nthreads, samples, windows, steps, alone;
};

static bool fresh(uint32_t *seen, uint32_t at, uint32_t window)
{
	if (seen[at] == window)
		return false;
	seen[at] = window;
	return true;
}

static void note_stack(struct diversity *d, const struct incident *in, uint32_t stack,
		       uint32_t window)
{
	uint32_t at;

	for (at = stack; at != STACK_NONE; at = in->stacks[at].parent)
		d->steps++;
	d->nstacks += fresh(d->stacks, stack, window);
	for (at = stack; at != STACK_NONE && fresh(d->nodes, at, window);
	     at = in->stacks[at].parent) {
		d->nnodes++;
		d->nframes += fresh(d->frames, in->stacks[at].frame, window);
	}
}

static uint32_t *zeros(uint32_t n)
{
	return calloc((size_t)n + 1, sizeof(uint32_t));
}

static int print_diversity(const struct incident *in, bool json)
{
	static uint32_t running[CPUS];
	struct diversity d = {.stacks = zeros(in->nstacks), .nodes = zeros(in->nstacks),
			      .frames = zeros(in->nframes), .threads = zeros(in->nthreads)};
	uint32_t length = in->nsamples < WINDOW ? in->nsamples : WINDOW, i;
	struct row row;
	double n;

	if (!d.stacks || !d.nodes || !d.frames || !d.threads || !length)
		return ERR_MEMORY;
	d.samples = in->nsamples / length * length;
	d.windows = d.samples / length;
	for (i = 0; i < d.samples; i++) {
		const struct incident_sample *s = &in->samples[i];
		uint32_t window = 1 + i / length;

		if (s->thread != THREAD_NONE)
			d.nthreads += fresh(d.threads, s->thread, window);
		d.alone += running[s->cpu % CPUS] != s->thread;
		running[s->cpu % CPUS] = s->thread;
		if (s->stack != STACK_NONE)
			note_stack(&d, in, s->stack, window);
	}
	n = (double)d.windows;
	row_open(&row, json, "diversity");
	row_num(&row, "samples", in->nsamples);
	row_num(&row, "window_samples", length);
	row_num(&row, "stacks", (double)d.nstacks / n);
	row_num(&row, "threads", (double)d.nthreads / n);
	row_num(&row, "nodes", (double)d.nnodes / n);
	row_num(&row, "frames", (double)d.nframes / n);
	row_num(&row, "frames_per_stack", (double)d.steps / (double)d.samples);
	row_num(&row, "alone_percent", 100 * (double)d.alone / (double)d.samples);
	row_close(&row);
	free(d.stacks);
	free(d.nodes);
	free(d.frames);
	free(d.threads);
	return 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

static int make_tables(struct lab *l)
{
	const struct incident *in = &l->in;
	uint32_t i;

	l->objects = calloc((size_t)in->nmodules + 1, sizeof(*l->objects));
	l->threads = calloc((size_t)in->nthreads + 1, sizeof(*l->threads));
	if (!l->objects || !l->threads)
		return ERR_MEMORY;
	for (i = 0; i < in->nmodules; i++) {
		const struct incident_module *m = &in->modules[i];
		struct object_key key = {.kind = m->kind, .path = m->path, .ino = i + 1,
					 .build_id_bytes = m->build_id_bytes};

		memcpy(key.build_id, m->build_id, m->build_id_bytes);
		l->objects[i] = objects_get(l->frames, &key, 0);
		if (!l->objects[i])
			return ERR_MEMORY;
	}
	for (i = 0; i < in->nthreads; i++) {
		const struct incident_process *p = &in->processes[in->threads[i].process];
		struct process *process = process_add(l->processes, p->pid, p->start_ns, p->exec,
						      p->parent_pid, p->name);

		l->threads[i] =
			process ? thread_add(l->processes, process, in->threads[i].tid) : NULL;
		if (!l->threads[i])
			return ERR_MEMORY;
	}
	return 0;
}

static int by_pair(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Frames that are new, and pairs of caller and callee that are: strange is the rest of these. */
static int count_nodes(struct lab *l, const struct segment *s, struct err *err)
{
	struct segment_content c = {0};
	uint64_t *pairs, npairs = 0;
	uint32_t i;
	int rc = segment_decode(s->bytes, s->nbytes, &c, err);

	if (rc)
		return rc;
	pairs = malloc(((size_t)c.nnodes + 1) * sizeof(*pairs));
	for (i = 0; pairs && i < c.nnodes; i++) {
		uint32_t parent = c.nodes[i].parent;

		pairs[i] = (uint64_t)(parent == STACK_NONE ? c.nframes : c.nodes[parent].frame)
				   << 32 |
			   c.nodes[i].frame;
	}
	if (pairs)
		qsort(pairs, c.nnodes, sizeof(*pairs), by_pair);
	for (i = 0; pairs && i < c.nnodes; i++)
		npairs += !i || pairs[i] != pairs[i - 1];
	l->nodes += c.nnodes;
	l->new_frames += c.nframes;
	l->strange_frames += npairs - c.nframes;
	free(pairs);
	segment_content_free(&c);
	return pairs ? 0 : ERR_MEMORY;
}

static int seal(struct lab *l, struct err *err)
{
	uint64_t start_ns = os_now_ns();
	struct segment *s = NULL;
	int rc = segment_seal(l->builder, &s, err);

	l->build_ns += os_now_ns() - start_ns;
	if (rc || !s)
		return rc;
	l->segments++;
	l->encoded_bytes += s->nbytes;
	l->lists_bytes += s->lists_bytes;
	l->memory_bytes += s->memory_bytes;
	rc = count_nodes(l, s, err);
	segment_unref(s);
	return rc;
}

/* Leaf first; out has room for STACK_MAX_FRAMES. */
static uint32_t steps_of(const struct lab *l, uint32_t stack, struct frame_ref *out)
{
	uint32_t n = 0;

	for (; stack != STACK_NONE && n < STACK_MAX_FRAMES; stack = l->in.stacks[stack].parent) {
		const struct incident_frame *f = &l->in.frames[l->in.stacks[stack].frame];

		out[n++] = (struct frame_ref){l->objects[f->module], f->offset, f->flags};
	}
	return n;
}

static int add(struct lab *l, struct event *e, uint32_t thread, uint32_t stack, struct err *err)
{
	struct frame_ref steps[STACK_MAX_FRAMES];
	uint32_t n = steps_of(l, stack, steps);
	uint64_t start_ns;
	int rc = 0;

	if (segment_is_full(l->builder, e->time_ns))
		rc = seal(l, err);
	start_ns = os_now_ns();
	e->thread = thread == THREAD_NONE ? NULL : l->threads[thread];
	e->process = e->thread ? e->thread->process : NULL;
	e->stack = segment_stack(l->builder, steps, n, NULL, NULL);
	if (!rc)
		rc = segment_add(l->builder, e);
	l->build_ns += os_now_ns() - start_ns;
	return rc;
}

static int add_sample(struct lab *l, const struct incident_sample *s, struct err *err)
{
	struct event e = {.time_ns = s->time_ns,
			  .kind = EVENT_SAMPLE,
			  .cpu = s->cpu,
			  .stream = s->stream,
			  .quality = s->quality,
			  .value = (double)s->weight};

	return add(l, &e, s->thread, s->stack, err);
}

static int add_event(struct lab *l, const struct incident_event *v, struct err *err)
{
	struct event e = {.time_ns = v->time_ns, .kind = v->kind, .cpu = v->cpu, .flags = v->flags,
			  .value = v->value, .provider = v->provider, .name = v->name,
			  .fields = l->in.fields + v->first_field, .nfields = v->nfields};

	return add(l, &e, v->thread, v->stack, err);
}

static int print_density(struct lab *l, bool json, struct err *err)
{
	const struct incident *in = &l->in;
	uint32_t i, j;
	struct row row;
	double n = in->nsamples;
	int rc = make_tables(l);

	if (rc)
		return err_memory(err, "for this program");
	for (i = j = 0; !rc && (i < in->nsamples || j < in->nevents);) {
		bool sample = i < in->nsamples &&
			      (j >= in->nevents || in->samples[i].time_ns <= in->events[j].time_ns);

		rc = sample ? add_sample(l, &in->samples[i++], err)
			    : add_event(l, &in->events[j++], err);
	}
	if (!rc)
		rc = seal(l, err);
	if (rc)
		return rc;
	row_open(&row, json, "nodes");
	row_num(&row, "per_sample", (double)l->nodes / n);
	row_num(&row, "new_frames_percent", 100 * (double)l->new_frames / (double)l->nodes);
	row_num(&row, "strange_frames_percent", 100 * (double)l->strange_frames / (double)l->nodes);
	row_close(&row);
	row_open(&row, json, "density");
	row_num(&row, "events_per_sample", in->nevents / n);
	row_num(&row, "encoded_bytes_per_sample", (double)l->encoded_bytes / n);
	row_num(&row, "lists_bytes_per_sample", (double)l->lists_bytes / n);
	row_num(&row, "ring_bytes_per_sample", (double)l->memory_bytes / n);
	row_num(&row, "samples_per_segment", n / (double)l->segments);
	row_num(&row, "us_per_sample", (double)l->build_ns / 1e3 / n);
	row_close(&row);
	return 0;
}

static int measure(struct lab *l, const char *path, int64_t id, bool json, struct err *err)
{
	struct store *store = NULL;
	int rc = store_open(path, STORE_READ, &store, err);

	if (!rc && !id)
		rc = store_newest(store, &id, err);
	if (!rc)
		rc = store_load(store, id, &l->in, err);
	store_close(store);
	if (!rc && print_diversity(&l->in, json))
		rc = err_set(err, ERR_NOT_FOUND, "no memory, or no samples in %s", path);
	if (!rc)
		rc = frames_new(&l->frames, err);
	if (!rc)
		rc = processes_new(&l->processes, err);
	if (!rc)
		rc = segment_builder_new(l->frames, l->processes, &l->builder, err);
	return rc ? rc : print_density(l, json, err);
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	struct lab l = {0};
	struct err err = {0};
	int rc;

	argc -= json;
	argv += json;
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: bench_density [--json] STORE [ID]\n");
		return 2;
	}
	rc = measure(&l, argv[1], argc > 2 ? atoll(argv[2]) : 0, json, &err);
	if (rc)
		fprintf(stderr, "bench_density: %s\n", err.text);
	segment_builder_free(l.builder);
	frames_free(l.frames);
	processes_free(l.processes);
	incident_free(&l.in);
	free(l.objects);
	free(l.threads);
	return rc ? 1 : 0;
}
