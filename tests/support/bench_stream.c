#include "tests/support/bench_stream.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MIN = 10 };

#define START_NS (1000 * NS_PER_SEC)

/* ---- chance, the same on every host ---------------------------------------------------------- */

static uint64_t chance_state;

/* Source: xorshift64*, Vigna 2016. */
static uint32_t chance(uint32_t below)
{
	chance_state ^= chance_state >> 12;
	chance_state ^= chance_state << 25;
	chance_state ^= chance_state >> 27;
	return (uint32_t)((chance_state * 2685821657736338717ULL >> 32) % below);
}

/* Zipf's law over n ranks: sums[i] = 1 + 1/2 + ... + 1/(i+1). */
static double *zipf_new(uint32_t n)
{
	double *sums = calloc(n, sizeof(*sums)), sum = 0;
	uint32_t i;

	for (i = 0; sums && i < n; i++) {
		sum += 1.0 / (i + 1);
		sums[i] = sum;
	}
	return sums;
}

static uint32_t zipf(const double *sums, uint32_t n)
{
	double at = sums[n - 1] * chance(1u << 30) / (double)(1u << 30);
	uint32_t low = 0, high = n - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (sums[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Function number i of an object as a step of a stack. Every fourth function is a leaf, the others
 * are callers, so that frames are as many as functions.
 */
static struct frame_ref step(struct object *object, uint32_t i, bool leaf)
{
	bool kernel = object->key.kind == OBJECT_KERNEL;
	struct frame_ref ref = {.object = object, .flags = kernel ? FRAME_KERNEL : 0};

	i = leaf ? i & ~3u : i | 1;
	ref.offset = 0x10000 + 128ull * i + 40 + i % 64;
	if (!leaf)
		ref.flags |= FRAME_RETURN_ADDRESS;
	return ref;
}

/* Half of a stack's new steps are functions that many stacks share. */
static uint32_t pick(uint32_t n)
{
	return chance(2) ? chance(n) : chance(n / 16 + 1);
}

static uint32_t mixed(uint32_t v)
{
	return (uint32_t)((v + 1) * 0x9e3779b97f4a7c15ULL >> 32);
}

/*
 * What is called at a frame: mostly the same function, at times one of a few others. So a stack
 * that leaves a known one soon meets calls that were made before.
 */
static struct frame_ref called_by(const struct world *w, const struct frame_ref *caller,
				  struct object *program, bool kernel, bool leaf)
{
	uint32_t number = (uint32_t)(caller->offset / 128) * 8 + caller->object->number * 1000003u;
	uint32_t next =
		mixed(number + (chance(100) < BENCH_USUAL_PERCENT ? 0 : 1 + chance(BENCH_OTHERS)));
	struct object *object = kernel ? w->kernel : next % 8 ? program : w->libc;

	return step(object, next / 8 % w->frames_each, leaf);
}

/* Any function, whatever calls it. */
static struct frame_ref called_at_random(const struct world *w, struct object *program, bool kernel,
					 bool leaf)
{
	if (kernel)
		return step(w->kernel, pick(w->frames_each), leaf);
	return step(chance(8) ? program : w->libc, pick(w->frames_each), leaf);
}

/* Like an earlier one from the root on, then along the calls of the program, or at random. */
static void make_stack(const struct world *w, struct object *program, struct bench_stack *first,
		       uint32_t i)
{
	const struct bench_stack *like = i ? &first[chance(i)] : NULL;
	struct bench_stack *s = &first[i];
	uint32_t kernel_steps = chance(10) < 3 ? 3 + chance(5) : 0, shared = 0, at;

	s->n = DEPTH_MIN + chance(BENCH_DEPTH_MAX - DEPTH_MIN + 1);
	if (like)
		shared = 2 + chance((like->n < s->n ? like->n : s->n) - 2);
	for (at = 0; at < s->n; at++) { /* from the root */
		struct frame_ref *ref = &s->leaf_first[s->n - 1 - at];
		bool kernel = at + kernel_steps >= s->n, leaf = at == s->n - 1;

		if (at < 2)
			*ref = step(at ? program : w->libc, 0, false);
		else if (at < shared)
			*ref = like->leaf_first[like->n - 1 - at];
		else if (w->settings->random)
			*ref = called_at_random(w, program, kernel, leaf);
		else
			*ref = called_by(w, ref + 1, program, kernel, leaf);
	}
}

static struct object *make_object(struct world *w, enum object_kind kind, const char *path,
				  uint8_t id)
{
	struct object_key key = {
		.kind = kind, .path = path, .build_id_bytes = 20, .build_id = {id, 0xbe, 0x7c}};

	return objects_get(w->frames, &key, 100);
}

static int make_process(struct world *w, uint32_t number)
{
	char path[64], comm[16];
	struct object *program;
	struct process *process;
	uint32_t i, pid = 1000 + 10 * number;

	snprintf(path, sizeof(path), "/usr/lib/bench/program-%u", number);
	snprintf(comm, sizeof(comm), "program-%u", number % 1000);
	program = make_object(w, OBJECT_ELF, path, (uint8_t)(3 + number));
	process = process_add(w->processes, pid, 1 + number, 0, 1, comm);
	if (!program || !process)
		return ERR_MEMORY;
	for (i = 0; i < BENCH_THREADS_PER_PROCESS; i++) {
		struct thread *t = thread_add(w->processes, process, pid + i);

		if (!t)
			return ERR_MEMORY;
		w->threads[number * BENCH_THREADS_PER_PROCESS + i] = t;
	}
	for (i = 0; i < w->stacks_each; i++)
		make_stack(w, program, &w->stacks[(size_t)number * w->stacks_each], i);
	return 0;
}

/* Which thread and which stack each sample sees. */
static int make_samples(struct world *w)
{
	uint32_t nthreads = w->nprocesses * BENCH_THREADS_PER_PROCESS, i;
	uint32_t stay_percent = w->settings->random ? 50 : BENCH_STAY_PERCENT;
	double *threads = zipf_new(nthreads), *stacks = zipf_new(w->stacks_each);
	int rc = threads && stacks ? 0 : ERR_MEMORY;

	for (i = 0; !rc && i < w->settings->samples; i++) {
		uint32_t rank = i >= BENCH_CPUS && chance(100) < stay_percent
					? w->thread_of[i - BENCH_CPUS]
					: zipf(threads, nthreads);
		uint32_t process = rank / BENCH_THREADS_PER_PROCESS;

		w->thread_of[i] = (uint16_t)rank;
		w->stack_of[i] = process * w->stacks_each + zipf(stacks, w->stacks_each);
	}
	free(threads);
	free(stacks);
	return rc;
}

int world_make(struct world *w, const struct settings *s, struct err *err)
{
	uint32_t i;
	int rc;

	*w = (struct world){.settings = s};
	chance_state = 42 + s->seed * 0x9e3779b97f4a7c15ULL;
	w->nprocesses = (s->threads + BENCH_THREADS_PER_PROCESS - 1) / BENCH_THREADS_PER_PROCESS;
	w->stacks_each = s->stacks / w->nprocesses + 1;
	w->frames_each = s->frames / (w->nprocesses + 2) + 1;
	rc = frames_new(&w->frames, err);
	if (!rc)
		rc = processes_new(&w->processes, err);
	if (!rc)
		rc = segment_builder_new(w->frames, w->processes, &w->builder, err);
	if (rc)
		return rc;
	w->threads =
		calloc((size_t)w->nprocesses * BENCH_THREADS_PER_PROCESS, sizeof(struct thread *));
	w->stacks = calloc((size_t)w->nprocesses * w->stacks_each, sizeof(*w->stacks));
	w->thread_of = calloc(s->samples, sizeof(*w->thread_of));
	w->stack_of = calloc(s->samples, sizeof(*w->stack_of));
	w->segments = calloc(s->samples, sizeof(struct segment *));
	w->kernel = make_object(w, OBJECT_KERNEL, "[kernel]", 1);
	w->libc = make_object(w, OBJECT_ELF, "/usr/lib/x86_64-linux-gnu/libc.so.6", 2);
	if (!w->threads || !w->stacks || !w->thread_of || !w->stack_of || !w->segments ||
	    !w->kernel || !w->libc)
		return err_memory(err, "for this program");
	for (i = 0; !rc && i < w->nprocesses; i++)
		rc = make_process(w, i);
	if (!rc)
		rc = make_samples(w);
	return rc ? err_memory(err, "for this program") : 0;
}

void world_free(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->nsegments; i++)
		segment_unref(w->segments[i]);
	segment_builder_free(w->builder);
	frames_free(w->frames);
	processes_free(w->processes);
	free(w->segments);
	free(w->threads);
	free(w->stacks);
	free(w->thread_of);
	free(w->stack_of);
}

void world_sample(const struct world *w, uint64_t number, struct event *e)
{
	uint32_t i = (uint32_t)(number % w->settings->samples);
	const struct bench_stack *stack = &w->stacks[w->stack_of[i]];
	uint16_t cpu = (uint16_t)(number % BENCH_CPUS);
	uint32_t late_ns = w->settings->random ? i % 31 * 700 : mixed(i) % 256 * 100;

	*e = (struct event){.time_ns = START_NS + number / BENCH_CPUS * BENCH_PERIOD_NS +
				       cpu * 3 * NS_PER_MS + late_ns,
			    .kind = EVENT_SAMPLE,
			    .thread = w->threads[w->thread_of[i]],
			    .cpu = cpu,
			    .stream = STREAM_CPU,
			    .quality = QUALITY_COMPLETE,
			    .value = (double)BENCH_PERIOD_NS,
			    .stack_frames = stack->leaf_first,
			    .nstack_frames = stack->n,
			    .stack = STACK_NONE};
	e->process = e->thread->process;
}

/*
 * What the symbol worker does, at once: every four frames a name of about 45 bytes. Of the
 * recordings in bench_stream.h 3.8 and 4.3 frames had a function in common, whose name and linker's
 * name took 48 and 61.
 */
void world_name_frame(void *ctx, struct frame *frame)
{
	struct world *w = ctx;
	unsigned function = (unsigned)(frame->offset / 512), object = frame->object->number;
	char name[96];

	if (frame->object == w->kernel)
		snprintf(name, sizeof(name), "bench_subsystem_%u_handle", function);
	else
		snprintf(name, sizeof(name), "bench::part_%u::Handler%u::process(char const*, int)",
			 object, function);
	frame_set_function(w->frames, frame, frame->offset & ~511ULL, name, NULL, NULL);
}
