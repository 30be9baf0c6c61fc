/*
 * Months in minutes: does the recorder's memory stay where it is?
 *
 *	bench_months [--json] [--dir DIR] [--samples N]
 *
 * A made source feeds N samples (1e8; 198 of them are a second of trace time, so that is 5.8 days
 * and 1e9 two months) through the real engine: queue, merge, interner, ring of 64 MB, symbol
 * worker, a counter rule that fires every six hours, writer and store. All the while code and
 * processes churn: 10,000 processes an hour come and go with pids that are used again, every one
 * with a region of jitted code of its own, and every 16th sample has an address that was never seen
 * before.
 *
 * What counts is the resident memory once the ring has been full for a while (from 10 to 25 % of
 * the samples) and at the end (the last 15 %): growth_pct; and that nothing was lost. The ring is
 * full after FILL_SAMPLES: with less than four times as many there is nothing to compare, and
 * growth_pct is "?" (null). One line of text; --json: one object; how far it is to stderr at every
 * 5 %.
 */
#include "base/json.h"
#include "base/os.h"
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_PER_S = 198, SLOTS = 64, PROGRAMS = 16, PIDS = 4096, FIRST_PID = 5000000,
       METHODS = 8, DEPTH_MAX = 24 };

#define FILL_SAMPLES 5000000u                        /* 64 MB of 13.4 bytes */
#define STEP_NS (NS_PER_SEC / SAMPLES_PER_S)
#define LIFE_STEP_NS (3600 * NS_PER_SEC / 10000)     /* a process ends and another one starts */
#define FIRE_EVERY_NS (6 * 3600 * NS_PER_SEC)
#define FIRE_FOR_NS (10 * NS_PER_SEC)
#define COUNTER "Bench:Value:"

struct slot {                                        /* one living process */
	struct process *process;
	struct thread *thread;
	struct object *jit;
	uint32_t program;
	uint64_t next_address;
};

struct months {
	struct source base;
	struct source_config cfg;
	struct object *programs[PROGRAMS], *libc;
	struct slot slots[SLOTS];
	uint64_t time_ns, next_life_ns, next_second_ns, started;
	uint64_t chance;
	_Atomic bool stopping;
};

/* What main() wants to know; the source writes, main() reads after the run. */
static struct outcome {
	uint64_t samples;
	uint64_t early_rss, late_rss;                /* bytes: the most in their stretch */
	uint64_t told;                               /* twentieths of the way */
} outcome;

/* Source: xorshift64*, Vigna 2016. */
static uint32_t chance(struct months *m, uint32_t below)
{
	m->chance ^= m->chance >> 12;
	m->chance ^= m->chance << 25;
	m->chance ^= m->chance >> 27;
	return (uint32_t)((m->chance * 2685821657736338717ULL >> 32) % below);
}

static void put(struct months *m, const struct event *e)
{
	while (!queue_offer(m->cfg.queue, e) && !m->stopping)
		os_sleep_ns(2 * NS_PER_MS);          /* it holds 30 ms of the merge thread's work */
}

static void put_life(struct months *m, const struct slot *s, enum event_kind process,
		     enum event_kind thread)
{
	struct event e = {.time_ns = m->time_ns, .kind = process, .process = s->process,
			  .thread = s->thread, .cpu = CPU_NONE, .stack = STACK_NONE};

	put(m, &e);
	e.kind = thread;
	put(m, &e);
}

static void end_process(struct months *m, struct slot *s)
{
	if (!s->process)
		return;
	put_life(m, s, EVENT_PROCESS_EXIT, EVENT_THREAD_EXIT);
	thread_drop(m->cfg.processes, s->thread, m->time_ns);
	process_drop(m->cfg.processes, s->process, m->time_ns);
	object_drop(s->jit, m->time_ns);
	memset(s, 0, sizeof(*s));
}

/* A ceiling that refuses is part of the test: the slot stays empty until its next turn. */
static void start_process(struct months *m, struct slot *s)
{
	uint32_t pid = FIRST_PID + (uint32_t)(m->started % PIDS);
	struct object_key jit = {.kind = OBJECT_JIT, .pid = pid, .epoch = (uint32_t)m->started,
				 .path = "[jit]"};
	char path[64];

	s->process = process_add(m->cfg.processes, pid, m->time_ns, 0, 1, "churn");
	s->thread = s->process ? thread_add(m->cfg.processes, s->process, pid) : NULL;
	s->jit = s->thread ? objects_get(m->cfg.frames, &jit, pid) : NULL;
	if (!s->jit) {
		memset(s, 0, sizeof(*s));
		return;
	}
	s->program = (uint32_t)(m->started % PROGRAMS);
	s->next_address = 0x7f0000000000 + m->started * 4096;
	snprintf(path, sizeof(path), "/bench/program%u", (unsigned)s->program);
	process_set_exe(s->process, path);
	m->started++;
	put_life(m, s, EVENT_PROCESS_START, EVENT_THREAD_START);
}

static void put_sample(struct months *m, uint64_t number)
{
	struct slot *s =
		&m->slots[chance(m, SLOTS / 4) * 4 + chance(m, 1 + (uint32_t)(number / 512 % 4))];
	struct frame_ref leaf_first[DEPTH_MAX];
	struct event e = {.time_ns = m->time_ns,
			  .kind = EVENT_SAMPLE,
			  .cpu = (uint16_t)(number % 2),
			  .process = s->process,
			  .thread = s->thread,
			  .stream = STREAM_CPU,
			  .quality = QUALITY_COMPLETE,
			  .value = (double)(2 * STEP_NS),
			  .stack = STACK_NONE,
			  .stack_frames = leaf_first};
	uint32_t depth = 8 + chance(m, DEPTH_MAX - 8), function = 0, i;

	if (!s->process)
		return;
	for (i = 0; i < depth; i++) {
		struct frame_ref *ref = &leaf_first[depth - 1 - i];

		/* Usually the first callee, as call trees are. */
		function = function * 5 + 1 + (chance(m, 32) ? 0 : chance(m, 4));
		ref->object = i ? m->programs[s->program] : m->libc;
		ref->offset = 0x1000 + function % 4000 * 64;
		ref->flags = i + 1 < depth ? FRAME_RETURN_ADDRESS : 0;
	}
	for (i = 0; i < 2; i++) {                    /* jitted leaf and its caller */
		leaf_first[i].object = s->jit;
		leaf_first[i].offset = 0x7f0000000000 + chance(m, METHODS) * 256;
		leaf_first[i].flags |= FRAME_JIT;
	}
	if (number % 16 == 0)
		leaf_first[0].offset = s->next_address += 64;
	e.nstack_frames = depth;
	put(m, &e);
	outcome.samples++;
}

static void each_second(struct months *m)
{
	struct event e = {.time_ns = m->time_ns, .kind = EVENT_COUNTER, .cpu = CPU_NONE,
			  .stack = STACK_NONE, .name = COUNTER,
			  .value = m->time_ns % FIRE_EVERY_NS < FIRE_FOR_NS ? 100 : 1};

	m->next_second_ns += NS_PER_SEC;
	put(m, &e);
	queue_watermark(m->cfg.queue, m->time_ns);
}

static void note_rss(uint64_t number, uint64_t all)
{
	uint64_t cpu_ns, rss = 0;
	double part = (double)number / (double)all;

	os_self_usage(&cpu_ns, &rss);
	if (part >= 0.10 && number >= FILL_SAMPLES && part < 0.25 && rss > outcome.early_rss)
		outcome.early_rss = rss;
	if (part >= 0.85 && rss > outcome.late_rss)
		outcome.late_rss = rss;
	if (number * 20 / all == outcome.told)
		return;
	outcome.told = number * 20 / all;
	fprintf(stderr, "months: %3.0f %%  %6.1f days  cpu s %.0f  rss kb %llu\n", 100 * part,
		(double)number / SAMPLES_PER_S / 86400, (double)cpu_ns / 1e9,
		(unsigned long long)(rss / 1024));
}

static uint64_t wanted_samples = 100000000;

static int months_run(struct source *source, struct err *err)
{
	struct months *m = (struct months *)source;
	uint64_t number;

	(void)err;
	for (number = 0; number < wanted_samples && !m->stopping; number++) {
		m->time_ns += STEP_NS;
		if (m->time_ns >= m->next_life_ns) {
			struct slot *s = &m->slots[m->started % SLOTS];

			end_process(m, s);
			start_process(m, s);
			m->next_life_ns += LIFE_STEP_NS;
		}
		put_sample(m, number);
		if (m->time_ns >= m->next_second_ns)
			each_second(m);
		if (number % 65536 == 0)
			note_rss(number, wanted_samples);
	}
	return 0;
}

static const struct source_ops months_source;

static int months_open(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	struct object_key key = {.kind = OBJECT_ELF, .build_id_bytes = 4, .path = "/bench/libc.so"};
	struct months *m = calloc(1, sizeof(*m));
	char path[64];
	uint32_t i;

	(void)needs;
	if (!m)
		return err_memory(err, "for this program");
	m->base.ops = &months_source;
	m->cfg = *cfg;
	m->chance = 42;
	m->time_ns = m->next_life_ns = m->next_second_ns = FIRE_EVERY_NS + 60 * NS_PER_SEC;
	m->libc = objects_get(cfg->frames, &key, 1);
	for (i = 0; i < PROGRAMS; i++) {
		snprintf(path, sizeof(path), "/bench/program%u", (unsigned)i);
		key.path = path;
		key.build_id[0] = (uint8_t)(i + 1);
		m->programs[i] = objects_get(cfg->frames, &key, 1);
	}
	for (i = 0; i < SLOTS; i++)
		start_process(m, &m->slots[i]);
	*out = &m->base;
	return 0;
}

static void months_stop(struct source *source)
{
	((struct months *)source)->stopping = true;
}

static void months_close(struct source *source)
{
	struct months *m = (struct months *)source;
	uint32_t i;

	for (i = 0; i < SLOTS; i++) {
		if (!m->slots[i].process)
			continue;
		process_drop(m->cfg.processes, m->slots[i].process, m->time_ns);
		object_drop(m->slots[i].jit, m->time_ns);
	}
	for (i = 0; i < PROGRAMS; i++)
		object_drop(m->programs[i], m->time_ns);
	object_drop(m->libc, m->time_ns);
	free(m);
}

static const struct source_ops months_source = {
	.name = "months",
	.summary = "a made stream in which everything churns",
	.open = months_open,
	.run = months_run,
	.stop = months_stop,
	.close = months_close,
};

/* ---- the run --------------------------------------------------------------------------------- */

static int run(const char *dir, struct engine_result *result, struct err *err)
{
	const struct source_ops *sources[] = {&months_source, NULL};
	const struct trigger_ops *kind = trigger_kind("stop-on-perf-counter");
	struct trigger_env env = {.min_sec = 3};
	struct trigger *rule = NULL;
	char path[600];
	struct engine_config cfg = {
		.store_path = path,
		.sources = sources,
		.triggers = &rule,
		.ntriggers = 1,
		.ring_bytes = (size_t)64 << 20,
		.pinned_bytes = ENGINE_PINNED_BYTES,
		.capture = {.pre_ns = 120 * NS_PER_SEC,
			    .post_ns = 5 * NS_PER_SEC,
			    .incidents = 1000000,
			    .freq_hz = SAMPLES_PER_S / 2},
	};
	int rc = trigger_open(kind, COUNTER ">50", &env, &rule, err);

	snprintf(path, sizeof(path), "%s/months.db", dir);
	if (!rc)
		rc = engine_run(&cfg, result, err);
	if (rule)
		kind->close(rule);
	return rc;
}

static void print(bool json, const struct engine_result *result, double seconds)
{
	bool compared = outcome.early_rss != 0;
	double growth_pct =
		compared ? 100 * ((double)outcome.late_rss / (double)outcome.early_rss - 1)
			 : (double)NAN;
	double ns = seconds * 1e9 / (double)outcome.samples;
	double days = (double)outcome.samples / SAMPLES_PER_S / 86400, cpu_ns_per_sample;
	/* What the engine counts as lost, and what it was given and has not counted as recorded. */
	uint64_t lost = result->lost + outcome.samples - result->samples, cpu_ns = 0, rss;
	struct buf object = {0};
	struct json j = {.out = &object};
	char early[24] = "?", growth[24] = "?";

	if (compared) {
		snprintf(early, sizeof(early), "%llu",
			 (unsigned long long)(outcome.early_rss / 1024));
		snprintf(growth, sizeof(growth), "%.2f", growth_pct);
	}
	os_self_usage(&cpu_ns, &rss);
	cpu_ns_per_sample = (double)cpu_ns / (double)outcome.samples;
	fprintf(json ? stderr : stdout,
		"months                  samples %llu  lost %llu  days %.1f  incidents %u  ns per "
		"sample %.0f  "
		"cpu ns per sample %.0f  rss early kb %s  rss late kb %llu  growth pct %s\n",
		(unsigned long long)outcome.samples, (unsigned long long)lost, days,
		(unsigned)result->stored, ns, cpu_ns_per_sample, early,
		(unsigned long long)(outcome.late_rss / 1024), growth);
	if (!json)
		return;
	json_open(&j, '{');
	json_key_str(&j, "row", "months");
	json_key_uint(&j, "samples", outcome.samples);
	json_key_uint(&j, "lost", lost);
	json_key_num(&j, "days", days);
	json_key_uint(&j, "incidents", result->stored);
	json_key_num(&j, "ns_per_sample", ns);
	json_key_num(&j, "cpu_ns_per_sample", cpu_ns_per_sample);
	json_key_num(&j, "rss_early_kb",
		     compared ? (double)(outcome.early_rss / 1024) : (double)NAN);
	json_key_uint(&j, "rss_late_kb", outcome.late_rss / 1024);
	json_key_num(&j, "growth_pct", growth_pct);
	json_close(&j, '}');
	printf("%s\n", buf_text(&object));
	buf_free(&object);
}

int main(int argc, char **argv)
{
	struct engine_result result = {0};
	const char *dir = ".";
	bool json = false;
	uint64_t start_ns = os_now_ns();
	struct err err = {0};
	int i, rc;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--dir") && i + 1 < argc) {
			dir = argv[++i];
		} else if (!strcmp(argv[i], "--samples") && i + 1 < argc) {
			wanted_samples = (uint64_t)strtod(argv[++i], NULL);
		} else {
			fprintf(stderr, "usage: bench_months [--json] [--dir DIR] [--samples N]\n");
			return 2;
		}
	}
	rc = run(dir, &result, &err);
	if (rc) {
		fprintf(stderr, "bench_months: %s\n", err.text);
		return 1;
	}
	print(json, &result, (double)(os_now_ns() - start_ns) / 1e9);
	return 0;
}
