/*
 * Write a history of the last hours beside a store, so that what is compared with earlier hours can
 * be tested within seconds: `history_fixture STORE HOURS AGO_S [leak]`.
 *
 * One of two CPUs runs "steady" all the time, at 10 Hz. AGO_S seconds before now, on a whole
 * second, "nightly" begins to keep the other one busy in its function burn, for a minute. That
 * moment is printed, in seconds since 1970. On the days before, it took 2, 3, 1, 2... % of a CPU in
 * that minute.
 *
 * leak: every 10 s "leaky" touches 7 pages in its function seventy and 3 in thirty, which stay, and
 * 20 in churn, which go five minutes later. So churn has 600 pages at any time.
 */
#include "base/os.h"
#include "store/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUND_S = 10, PER_PUT = 60, HZ = 10, BUSY_S = 60, DAY_S = 86400, CHURN_ROUNDS = 30 };
#define PAGE_BYTES 4096u
#define PAGE_STEP_NS 1000u

#define CLOCK_NS (1000 * NS_PER_SEC)         /* of the first sample */
#define PERIOD_NS (NS_PER_SEC / HZ)

struct program {
	const char *name, *function;
	struct process *process;
	struct thread *thread;
	struct object *object;
};

struct world {
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct program steady, nightly, seventy, thirty, churn;
	bool leaks;
};

static int make_program(struct world *w, struct program *p, uint32_t pid)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = p->name, .build_id_bytes = 4,
				 .build_id = {(uint8_t)pid}};

	p->process = process_add(w->processes, pid, 1, 0, 1, p->name);
	p->thread = p->process ? thread_add(w->processes, p->process, pid) : NULL;
	p->object = objects_get(w->frames, &key, pid);
	return p->thread && p->object ? 0 : ERR_MEMORY;
}

struct naming {
	struct world *w;
	const char *function;
};

static void name_frame(void *ctx, struct frame *frame)
{
	const struct naming *n = ctx;

	frame_set_function(n->w->frames, frame, frame->offset, n->function, NULL, NULL);
}

static void add_page(struct world *w, const struct program *p, uint64_t time_ns)
{
	struct frame_ref leaf = {.object = p->object, .offset = 0x1000};
	struct event e = {.time_ns = time_ns, .kind = EVENT_SAMPLE, .process = w->seventy.process,
			  .thread = w->seventy.thread, .cpu = 1, .stream = STREAM_RSS,
			  .quality = QUALITY_COMPLETE, .value = PAGE_BYTES};
	struct naming naming = {w, p->function};

	e.stack = segment_stack(w->builder, &leaf, 1, name_frame, &naming);
	segment_add(w->builder, &e);
}

static uint64_t page_time(uint64_t round_ns, unsigned page)
{
	return round_ns + NS_PER_SEC / 2 + page * PAGE_STEP_NS;
}

/* Pages 0 to 6 of a round by seventy, to 9 by thirty, to 29 by churn. */
static void add_pages(struct world *w, uint64_t round, uint64_t round_ns)
{
	uint64_t then_ns = round_ns - CHURN_ROUNDS * ROUND_S * NS_PER_SEC;
	struct event mark = {.kind = EVENT_SAMPLE, .cpu = 1, .stream = STREAM_RSS_MARK,
			     .stack = STACK_NONE};
	unsigned i;

	for (i = 0; i < 30; i++)
		add_page(w, i < 7 ? &w->seventy : i < 10 ? &w->thirty : &w->churn,
			 page_time(round_ns, i));
	for (i = 10; round >= CHURN_ROUNDS && i < 30; i++) {
		mark.time_ns = page_time(round_ns, 30 + i);
		mark.value = memory_mark_weight(page_time(then_ns, i), mark.time_ns, MARK_GONE);
		segment_add(w->builder, &mark);
	}
}

static void add(struct world *w, const struct program *p, uint64_t time_ns, uint16_t cpu)
{
	struct frame_ref leaf = {.object = p->object, .offset = 0x1000};
	struct event e = {.time_ns = time_ns, .kind = EVENT_SAMPLE, .process = p->process,
			  .thread = p->thread, .cpu = cpu, .stream = STREAM_CPU,
			  .quality = QUALITY_COMPLETE, .value = (double)PERIOD_NS};
	struct naming naming = {w, p->function};

	e.stack = segment_stack(w->builder, &leaf, 1, name_frame, &naming);
	segment_add(w->builder, &e);
}

/* Whether "nightly" has the other CPU. */
static bool is_busy(uint64_t at_ns, uint64_t busy_ns)
{
	uint64_t day_ns = DAY_S * NS_PER_SEC, day, into;

	if (at_ns >= busy_ns)
		return at_ns < busy_ns + BUSY_S * NS_PER_SEC;
	day = (busy_ns - at_ns + day_ns - 1) / day_ns;
	into = at_ns + day * day_ns - busy_ns;
	return into < BUSY_S * NS_PER_SEC && into / PERIOD_NS % 100 < day % 3 + 1;
}

static int write_all(struct world *w, struct history *h, uint64_t rounds, uint64_t busy_ns,
		     uint64_t wall_ns, struct err *err)
{
	struct segment *all[PER_PUT];
	struct history_now now;
	uint64_t round, at;
	uint32_t n = 0, i;
	int rc = 0;

	for (round = 0; !rc && round < rounds; round++) {
		at = CLOCK_NS + round * ROUND_S * NS_PER_SEC;
		if (w->leaks)
			add_pages(w, round, at);
		for (i = 0; i < ROUND_S * HZ; i++, at += PERIOD_NS) {
			add(w, &w->steady, at, 0);
			if (is_busy(at, busy_ns))
				add(w, &w->nightly, at + 1000, 1);
		}
		rc = segment_seal(w->builder, &all[n++], err);
		if (!rc && (n == PER_PUT || round + 1 == rounds)) {
			now = (struct history_now){all[n - 1]->t1_ns,
						   wall_ns + all[n - 1]->t1_ns - CLOCK_NS};
			rc = history_put(h, all, n, &now, err);
			while (n)
				segment_unref(all[--n]);
		}
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct world w = {.steady = {.name = "steady", .function = "idle_along"},
			  .nightly = {.name = "nightly", .function = "burn"},
			  .seventy = {.name = "leaky", .function = "seventy"},
			  .thirty = {.name = "libthirty.so", .function = "thirty"},
			  .churn = {.name = "libchurn.so", .function = "churn"}};
	struct history_config cfg = {.max_bytes = (uint64_t)512 << 20, .host = "fixture",
				     .host_text = "", .version = "", .boot_id = "fixture",
				     .kills = "", .period_ns = PERIOD_NS};
	uint64_t hours_s, ago_s, now_s = os_wall_ns() / NS_PER_SEC, begin_s;
	struct history *h = NULL;
	struct err err = {0};
	int rc;

	if (argc != 4 && argc != 5)
		return 2;
	w.leaks = argc == 5;
	cfg.store_path = argv[1];
	hours_s = strtoull(argv[2], NULL, 10) * 3600;
	ago_s = strtoull(argv[3], NULL, 10);
	begin_s = now_s - hours_s;
	rc = frames_new(&w.frames, &err);
	if (!rc)
		rc = processes_new(&w.processes, &err);
	if (!rc)
		rc = segment_builder_new(w.frames, w.processes, &w.builder, &err);
	if (!rc && (make_program(&w, &w.steady, 41) || make_program(&w, &w.nightly, 42) ||
		    make_program(&w, &w.seventy, 43) || make_program(&w, &w.thirty, 44) ||
		    make_program(&w, &w.churn, 45)))
		rc = err_memory(&err, "for this program");
	if (!rc) {
		segment_set_period(w.builder, STREAM_CPU, PERIOD_NS);
		rc = history_open(&cfg, &h, &err);
	}
	if (!rc)
		rc = write_all(&w, h, hours_s / ROUND_S,
			       CLOCK_NS + (hours_s - ago_s) * NS_PER_SEC, begin_s * NS_PER_SEC,
			       &err);
	history_close(h, "recording was stopped");
	if (rc)
		fprintf(stderr, "history_fixture: %s\n", err.text);
	else
		printf("%" PRIu64 "\n", now_s - ago_s);
	return rc != 0;
}
