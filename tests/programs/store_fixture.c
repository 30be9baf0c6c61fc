/*
 * Write a store with incidents made by hand, so that the commands that read stores can be tested on
 * both hosts without a recording: `store_fixture FILE [N]`. Everything in it but uuids is constant;
 * one of N samples of "server" is in burn_beta, of 4 unless N says otherwise.
 *
 *	1   a rule on a counter; "server" (75 % burn_alpha, 25 % burn_beta, some of it in the
 *	    kernel) and "batch" (a frame without a name, jitted code); 7 samples lost; a window cut
 *	    at its start
 *	2   manual, pinned; shares a segment with 1
 *	3   no samples
 *	4   left open by a recorder that ended: partial
 */
#include "store/store.h"

#include "base/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEC 1000000000ULL
#define WALL_NS (1767323030 * SEC)           /* of the recorder clock's 0: 2026-01-02T03:03:50Z */
#define PERIOD_NS 10000000ULL

enum { SAMPLES = 1000 };

struct world {
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct object *kernel, *server, *libc, *jit;
	struct process *server_process, *batch_process;
	struct thread *server_threads[2], *batch_thread;
	unsigned beta_of;
};

static struct object *object(struct world *w, enum object_kind kind, const char *path, uint8_t id)
{
	struct object_key key = {
		.kind = kind,
		.path = path,
		.build_id_bytes = id ? 20 : 0,
		.build_id = {id, 1, 2, 3},
		.pid = kind == OBJECT_JIT ? 200 : 0,
	};

	return objects_get(w->frames, &key, 100);
}

static int make_world(struct world *w, struct err *err)
{
	int rc = frames_new(&w->frames, err);

	if (!rc)
		rc = processes_new(&w->processes, err);
	if (!rc)
		rc = segment_builder_new(w->frames, w->processes, &w->builder, err);
	if (rc)
		return rc;
	w->kernel = object(w, OBJECT_KERNEL, "[kernel]", 1);
	w->server = object(w, OBJECT_ELF, "/usr/sbin/server", 2);
	w->libc = object(w, OBJECT_ELF, "/usr/lib/libc.so.6", 3);
	w->jit = object(w, OBJECT_JIT, "[jit]", 0);
	w->server_process = process_add(w->processes, 100, SEC, 0, 1, "server");
	w->batch_process = process_add(w->processes, 200, 2 * SEC, 1, 1, "batch");
	if (!w->kernel || !w->server || !w->libc || !w->jit || !w->server_process ||
	    !w->batch_process)
		return err_memory(err, "for this program");
	process_set_cmdline(w->server_process, "/usr/sbin/server --port 80");
	w->server_threads[0] = thread_add(w->processes, w->server_process, 100);
	w->server_threads[1] = thread_add(w->processes, w->server_process, 101);
	w->batch_thread = thread_add(w->processes, w->batch_process, 200);
	if (!w->server_threads[0] || !w->server_threads[1] || !w->batch_thread)
		return err_memory(err, "for this program");
	thread_set_name(w->server_threads[1], "worker");
	return 0;
}

static void world_free(struct world *w)
{
	segment_builder_free(w->builder);
	frames_free(w->frames);
	processes_free(w->processes);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static int name(struct world *w, const struct frame_ref *ref, const char *text)
{
	bool fresh;
	uint32_t number = frames_intern(w->frames, ref, &fresh);

	if (number == FRAME_NONE)
		return ERR_MEMORY;
	return text ? frame_set_function(w->frames, frame_get(w->frames, number),
					 ref->offset & ~15ULL, text, NULL, NULL)
		    : 0;
}

struct named_ref {
	struct frame_ref ref;
	const char *name;
};

static int add_sample(struct world *w, uint64_t time_ns, struct thread *thread,
		      const struct named_ref *leaf_first, uint32_t n, enum stack_quality quality)
{
	struct frame_ref refs[8];
	struct event e = {
		.time_ns = time_ns, .kind = EVENT_SAMPLE, .process = thread->process,
		.thread = thread, .cpu = (uint16_t)(time_ns / PERIOD_NS % 2), .stream = STREAM_CPU,
		.quality = (uint8_t)quality, .value = (double)PERIOD_NS,
	};
	uint32_t i;

	for (i = 0; i < n; i++)
		refs[i] = leaf_first[i].ref;
	e.stack = segment_stack(w->builder, refs, n, NULL, NULL);
	for (i = 0; i < n; i++) {
		if (name(w, &refs[i], leaf_first[i].name))
			return ERR_MEMORY;
	}
	return segment_add(w->builder, &e);
}

/*
 * Of four samples three are in burn_alpha; every tenth is in the kernel below it; every fifth
 * batch.
 */
static int add_samples(struct world *w, unsigned from, unsigned to)
{
	const struct named_ref batch[] = {
		{{w->libc, 0x21004, 0}, NULL},
		{{w->jit, 0x7f0000001010, FRAME_JIT | FRAME_RETURN_ADDRESS},
		 "Batch::Run(int; long)"},
	};
	unsigned i;
	int rc = 0;

	for (i = from; !rc && i < to; i++) {
		const struct named_ref server[] = {
			{{w->kernel, 0x1008, FRAME_KERNEL}, "do_page_fault"},
			{{w->server, i % w->beta_of ? 0x2004 : 0x3004, 0},
			 i % w->beta_of ? "burn_alpha" : "burn_beta"},
			{{w->server, 0x4007, FRAME_RETURN_ADDRESS}, "serve(request&)"},
			{{w->server, 0x5007, FRAME_RETURN_ADDRESS}, "main"},
		};
		uint64_t t = 3 * SEC + i * 17 * SEC / SAMPLES;
		unsigned skip = i % 10 != 3;

		if (i % 5 == 4)
			rc = add_sample(w, t, w->batch_thread, batch, 2,
					i % 50 == 4 ? QUALITY_BROKEN : QUALITY_FP);
		else
			rc = add_sample(w, t, w->server_threads[i % 2], server + skip, 4 - skip,
					QUALITY_COMPLETE);
	}
	return rc;
}

static int add_loss(struct world *w, uint64_t time_ns, enum loss_kind kind, unsigned n)
{
	struct event e = {
		.time_ns = time_ns, .kind = EVENT_LOST, .cpu = 0, .value = n,
		.name = loss_kind_text(kind), .stack = STACK_NONE,
	};

	return segment_add(w->builder, &e);
}

static int make_segments(struct world *w, struct segment *segments[2], struct err *err)
{
	int rc;

	segment_set_period(w->builder, STREAM_CPU, PERIOD_NS);
	rc = add_samples(w, 0, SAMPLES / 2);
	if (!rc)
		rc = add_loss(w, 11 * SEC, LOSS_KERNEL, 7);
	if (!rc)
		rc = segment_seal(w->builder, &segments[0], err);
	segment_set_period(w->builder, STREAM_CPU, PERIOD_NS);
	if (!rc)
		rc = add_samples(w, SAMPLES / 2, SAMPLES);
	if (!rc)
		rc = segment_seal(w->builder, &segments[1], err);
	return rc ? err_memory(err, "for this program") : 0;
}

/* ---- incidents ------------------------------------------------------------------------------- */

static char host[] = "web-1", host_text[] = "Linux 6.1.0 x86_64", version[] = "0.1.0";

struct plan {
	char *rule, *reason, *gap;
	double value, limit;
	unsigned trigger_s, from_s, to_s;
	unsigned first, n;                   /* segments */
	bool pinned, leave_open;
};

static char cpu_rule[] = "Processor:% Processor Time:_Total>80";
static char cpu_reason[] =
	"Processor:% Processor Time:_Total was 93.5, over its limit of 80, for 4 s";
static char cpu_gap[] = "the recorder had started 12 s before the trigger";
static char manual[] = "manual", manual_reason[] = "checkout is slow \xe2\x80\x94 again";
static char end[] = "max-collect-sec", end_reason[] = "MaxCollectSec: 60 s have passed";
static char end_gap[] = "no sample was taken: the machine was idle";
static char memory_rule[] = "Memory:Available MBytes:<500";
static char memory_reason[] = "Memory:Available MBytes: was 312, under its limit of 500, for 4 s";

static const struct plan plans[] = {
	{cpu_rule, cpu_reason, cpu_gap, 93.5, 80, 15, 3, 20, 0, 2, false, false},
	{manual, manual_reason, NULL, NAN, NAN, 17, 12, 20, 1, 1, true, false},
	{end, end_reason, end_gap, NAN, NAN, 60, 55, 60, 0, 0, false, false},
	{memory_rule, memory_reason, NULL, 312, 500, 10, 3, 12, 0, 1, false, true},
};

static int put_incident(struct store *s, const struct plan *p, struct segment **segments,
			struct err *err)
{
	struct incident_head h = {
		.rule = p->rule,
		.reason = p->reason,
		.gap_reason = p->gap,
		.host = host,
		.host_text = host_text,
		.recorder_version = version,
		.value = p->value,
		.limit = p->limit,
		.trigger_ns = p->trigger_s * SEC,
		.trigger_wall_ns = WALL_NS + p->trigger_s * SEC + 678000000,
		.asked_pre_ns = (p->gap ? 120 : p->trigger_s - p->from_s) * SEC,
		.asked_post_ns = (p->to_s - p->trigger_s) * SEC,
		.t0_ns = p->from_s * SEC,
		.t1_ns = p->to_s * SEC,
		.recorder_cpu_ns = 310000000,
		.recorder_rss_bytes = 42000000,
	};
	unsigned i;
	int rc = store_begin(s, &h, err);

	for (i = 0; !rc && i < p->n; i++)
		rc = store_put_segment(s, h.id, segments[p->first + i], err);
	if (!rc && !p->leave_open)
		rc = store_finish(s, &h, segments + p->first, p->n, err);
	if (!rc && p->pinned)
		rc = store_pin(s, h.id, true, err);
	return rc;
}

static int write_store(const char *path, struct segment **segments, struct err *err)
{
	struct store *s = NULL;
	size_t i;
	int rc = store_open(path, STORE_RECORD, &s, err);

	if (!rc)
		store_set_floor(s, 0);
	for (i = 0; !rc && i < COUNT_OF(plans); i++)
		rc = put_incident(s, &plans[i], segments, err);
	store_close(s);
	s = NULL;
	/* Whoever opens it for recording next declares what is open partial. */
	if (!rc)
		rc = store_open(path, STORE_RECORD, &s, err);
	store_close(s);
	return rc;
}

int main(int argc, char **argv)
{
	struct segment *segments[2] = {NULL, NULL};
	struct world w = {.beta_of = 4};
	struct err err = {0};
	int rc;

	if (argc == 3)
		w.beta_of = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc < 2 || argc > 3 || !w.beta_of) {
		fprintf(stderr, "usage: store_fixture FILE [N]\n");
		return 2;
	}
	rc = make_world(&w, &err);
	if (!rc)
		rc = make_segments(&w, segments, &err);
	if (!rc)
		rc = write_store(argv[1], segments, &err);
	if (rc)
		fprintf(stderr, "store_fixture: %s\n", err.text);
	segment_unref(segments[0]);
	segment_unref(segments[1]);
	world_free(&w);
	return rc ? 1 : 0;
}
