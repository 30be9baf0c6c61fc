/* The perf source on this machine: a thread burns a second of CPU, and its samples must arrive. */
#include "base/os.h"
#include "source/source.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FREQ_HZ 99u
#define BURN_NS NS_PER_SEC               /* of CPU time, however busy the machine is */
#define BURN_PART_NS (NS_PER_SEC / 2)

static struct source_config cfg;
static struct source *source;
static struct os_thread *runner;
static _Atomic uint32_t burner_tid;
static volatile uint64_t sink;

/*
 * A leaf function gets no frame of its own, and then its caller is missed, unless it asks for one.
 */
__attribute__((noinline)) static void burn(uint64_t rounds)
{
	void *volatile frame = __builtin_frame_address(0);

	(void)frame;
	while (rounds--)
		sink = sink * 6364136223846793005u + 1442695040888963407u;
}

__attribute__((noinline)) static void burn_a_second(void *ctx)
{
	struct timespec used = {0};

	(void)ctx;
	atomic_store(&burner_tid, (uint32_t)gettid());
	do {
		burn(1000000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	} while ((uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec < BURN_NS);
	sink++;
}

static void run_source(void *ctx)
{
	struct err err;

	(void)ctx;
	if (perf_source.run(source, &err))
		fprintf(stderr, "%s\n", err.text);
}

/* The file offset of a function of this program, from /proc/self/maps. */
static uint64_t file_offset(uintptr_t address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t start, end, offset, found = 0;
	char line[1000];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) ==
			    3 &&
		    address >= start && address < end)
			found = address - start + offset;
	}
	fclose(maps);
	return found;
}

static int open_source(void **state)
{
	(void)state;
	cfg = (struct source_config){.capture = {.freq_hz = FREQ_HZ}};
	return frames_new(&cfg.frames, NULL) || processes_new(&cfg.processes, NULL) ||
	       !(cfg.queue = queue_new(QUEUE_BYTES));
}

static int close_source(void **state)
{
	(void)state;
	if (source)
		perf_source.close(source);
	source = NULL;
	queue_free(cfg.queue);
	frames_free(cfg.frames);
	processes_free(cfg.processes);
	return 0;
}

static void start_or_skip(void)
{
	struct err err;
	unsigned tries;
	int rc = perf_source.probe(&cfg, &err);

	if (rc == ERR_ACCESS || rc == ERR_UNSUPPORTED) {
		print_message("%s\n", err.text);
		skip();
	}
	assert_int_equal(rc, 0);
	assert_int_equal(perf_source.open(&cfg, NULL, &source, &err), 0);
	assert_int_equal(os_thread_start("perf", run_source, NULL, &runner, NULL), 0);
	/* It samples when it has read /proc, which takes long on a busy machine. */
	for (tries = 0; !queue_released(cfg.queue, 0) && tries < 6000; tries++)
		os_sleep_ns(10 * NS_PER_MS);
	assert_true(queue_released(cfg.queue, 0) > 0);
}

/*
 * Events come in time order. What the source makes itself always does (RATE, EXPECTED). A record of
 * the kernel's may come late, and is delivered then, where a hypervisor takes the CPU away for more
 * than HOLD_BACK_NS between the record's time and its last byte: rarely, and only if time was
 * stolen meanwhile.
 */
struct order {
	uint32_t events, unordered, late;
	enum event_kind kind;                /* of the newest so far */
	uint16_t cpu;
	uint64_t time_ns, stolen;
};

/* Clock ticks that a hypervisor took from all CPUs: the eighth number (proc(5)). */
static uint64_t stolen_so_far(void)
{
	FILE *stat = fopen("/proc/stat", "r");
	uint64_t ticks = 0;

	assert_non_null(stat);
	assert_int_equal(fscanf(stat, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks), 1);
	fclose(stat);
	return ticks;
}

static void look_at_order(const struct event *e, struct order *newest)
{
	bool older = e->time_ns < newest->time_ns,
	     own = e->kind == EVENT_RATE || e->kind == EVENT_EXPECTED;

	newest->events++;
	newest->unordered += older && own;
	newest->late += older && !own;
	if (older && newest->unordered + newest->late <= 10)
		print_message("an event of kind %d, CPU %u is %" PRIu64
			      " ns older than one before it, of kind %d, CPU %u\n",
			      (int)e->kind, e->cpu, newest->time_ns - e->time_ns, (int)newest->kind,
			      newest->cpu);
	if (older)
		return;
	newest->kind = e->kind;
	newest->cpu = e->cpu;
	newest->time_ns = e->time_ns;
}

static void assert_order(const struct order *order)
{
	assert_int_equal(order->unordered, 0);
	assert_in_range(order->late, 0,
			stolen_so_far() > order->stolen ? 1 + order->events / 500 : 0);
}

struct seen {
	uint32_t samples, in_burn, with_caller;
	struct order order;
};

static void look_at(const struct event *e, uint64_t burn_at, uint64_t caller_at, struct seen *seen)
{
	const struct frame_ref *f = e->stack_frames;
	uint32_t n = e->nstack_frames;

	look_at_order(e, &seen->order);
	if (e->kind != EVENT_SAMPLE || !e->thread || e->thread->tid != atomic_load(&burner_tid) ||
	    e->process->pid != os_pid())
		return;
	seen->samples++;
	assert_int_equal(e->value, NS_PER_SEC / FREQ_HZ);
	assert_string_equal(process_name(e->process), "live_linux");
	for (; n && f->flags & FRAME_KERNEL; f++)
		n--;
	if (n < 2 || strcmp(f[0].object->name, "live_linux") != 0)
		return;
	seen->in_burn += f[0].offset - burn_at < 2000;
	seen->with_caller += (f[1].flags & FRAME_RETURN_ADDRESS) && f[1].offset - caller_at < 2000;
}

static void drain_queue(uint64_t burn_at, uint64_t caller_at, struct seen *seen)
{
	const struct event *e;

	while ((e = queue_peek(cfg.queue)) != NULL) {
		look_at(e, burn_at, caller_at, seen);
		queue_pop(cfg.queue);
	}
}

static void watermark_advances_while_idle(void)
{
	uint64_t before = queue_released(cfg.queue, 0), after;

	os_sleep_ns(500 * NS_PER_MS);
	after = queue_released(cfg.queue, 0);
	assert_in_range(after - before, 200 * NS_PER_MS, 5 * NS_PER_SEC);
	assert_true(after < os_now_ns());
}

TEST(samples_of_a_busy_thread_arrive_with_their_stacks)
{
	uint64_t burn_at = file_offset((uintptr_t)burn);
	uint64_t caller_at = file_offset((uintptr_t)burn_a_second);
	struct os_thread *burner;
	struct source_status status;
	struct seen seen = {.order.stolen = stolen_so_far()};

	start_or_skip();
	assert_int_equal(os_thread_start("burner", burn_a_second, NULL, &burner, NULL), 0);
	os_thread_join(burner);
	watermark_advances_while_idle();
	perf_source.stop(source);
	os_thread_join(runner);
	assert_true(queue_released(cfg.queue, 0) == UINT64_MAX);
	drain_queue(burn_at, caller_at, &seen);
	perf_source.status(source, &status);
	print_message("%u samples, %u in burn(), %u with its caller; %" PRIu64
		      " of the machine, lost %" PRIu64 "\n",
		      seen.samples, seen.in_burn, seen.with_caller, status.events, status.lost);
	/* 99 expected in a second of CPU. */
	assert_in_range(seen.samples, 70, 130);
	assert_true(seen.in_burn >= seen.samples * 8 / 10);
	assert_true(seen.with_caller >= seen.samples * 8 / 10);
	assert_order(&seen.order);
	assert_true(status.events >= seen.samples);
}

/* ---- another rate ---------------------------------------------------------------------------- */

static _Atomic uint64_t burnt_ns;            /* when the burner was done; 0 = it is not yet */

static void burn_a_part(void *ctx)
{
	struct timespec used = {0};

	(void)ctx;
	atomic_store(&burner_tid, (uint32_t)gettid());
	do {
		burn(1000000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	} while ((uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec < BURN_PART_NS);
	sink++;
	atomic_store(&burnt_ns, os_now_ns());
}

struct part {
	unsigned rates, lost, samples, other_weight;
	double weight_ns, period_ns;
	struct order order;
};

/* What has come so far: its own samples all weigh what the last EVENT_RATE said. */
static void drain_part(struct part *p)
{
	const struct event *e;

	while ((e = queue_peek(cfg.queue)) != NULL) {
		look_at_order(e, &p->order);
		/*
		 * A busy machine holds samplers back, and its Python programs may be unread; that
		 * has nothing to do with the rates.
		 */
		p->lost += e->kind == EVENT_LOST &&
			   loss_kind_from_text(e->name) != LOSS_THROTTLED &&
			   loss_counts(loss_kind_from_text(e->name));
		if (e->kind == EVENT_RATE) {
			p->rates++;
			p->period_ns = e->value;
		} else if (e->kind == EVENT_SAMPLE) {
			p->other_weight += e->value != p->period_ns;
		}
		if (e->kind == EVENT_SAMPLE && e->thread && e->process->pid == os_pid() &&
		    e->thread->tid == atomic_load(&burner_tid)) {
			p->samples++;
			p->weight_ns += e->value;
		}
		queue_pop(cfg.queue);
	}
}

/* Ask for it, and until the source says that it is so. */
static void change_to(unsigned freq_hz, unsigned stack_kb, struct part *p)
{
	const struct source_level level = {freq_hz, stack_kb};
	unsigned rates = p->rates, tries;

	perf_source.set_level(source, &level);
	for (tries = 0; p->rates == rates && tries < 1000; tries++) {
		os_sleep_ns(20 * NS_PER_MS);
		drain_part(p);
	}
	assert_int_equal(p->rates, rates + 1);
	assert_int_equal(p->period_ns, NS_PER_SEC / freq_hz);
}

/* Samples of half a second of CPU time. */
static unsigned burn_part(struct part *p)
{
	unsigned before = p->samples;
	struct os_thread *burner;

	atomic_store(&burnt_ns, 0);
	assert_int_equal(os_thread_start("burner", burn_a_part, NULL, &burner, NULL), 0);
	/*
	 * Half a second of CPU time may be ten on the clock, and the queue holds a few of the whole
	 * machine.
	 */
	while (!atomic_load(&burnt_ns) || queue_released(cfg.queue, 0) < atomic_load(&burnt_ns)) {
		os_sleep_ns(10 * NS_PER_MS);
		drain_part(p);
	}
	os_thread_join(burner);
	drain_part(p);
	return p->samples - before;
}

/* How many losses it saw: a busy machine may lose samples of its own at any time. */
static unsigned change_rate_and_stack(void)
{
	struct part p = {.period_ns = (double)(NS_PER_SEC / 499), .order.stolen = stolen_so_far()};
	static const unsigned rates[][2] = {{499, 8}, {199, 8}, {199, 4}, {199, 0}};
	unsigned n[4], i;                    /* 0 KB: frame pointers */

	cfg.capture.freq_hz = 499;
	cfg.capture.stack_kb = 8;
	start_or_skip();
	for (i = 0; i < 4 && !p.lost; i++) {
		if (i)
			change_to(rates[i][0], rates[i][1], &p);
		n[i] = burn_part(&p);
	}
	perf_source.stop(source);
	os_thread_join(runner);
	drain_part(&p);
	if (p.lost || queue_lost(cfg.queue)) {
		print_message("%u losses in %u of 4 parts\n", p.lost, i);
		return p.lost + (unsigned)queue_lost(cfg.queue);
	}
	print_message("%u, %u, %u, %u samples; %.3f s of 2\n", n[0], n[1], n[2], n[3],
		      p.weight_ns / 1e9);
	assert_in_range(n[0], 190, 310);     /* 249.5 */
	for (i = 1; i < 4; i++)
		assert_in_range(n[i], 70, 135);      /* 99.5 */
	assert_in_range(p.weight_ns / 1e6, 1700, 2400);
	assert_int_equal(p.other_weight, 0);
	assert_order(&p.order);
	return 0;
}

TEST(another_rate_and_stack_take_effect_and_lose_nothing)
{
	unsigned tries = 1;

	while (change_rate_and_stack() && tries < 6) {
		tries++;
		close_source(state);
		assert_int_equal(open_source(state), 0);
	}
	assert_true(tries < 6);
}

static atomic_bool burning;

static void burn_on(void *ctx)
{
	(void)ctx;
	atomic_store(&burner_tid, (uint32_t)gettid());
	while (atomic_load(&burning))
		burn(100000);
}

/*
 * Each look finds another level asked for, also the one of each second that puts events of its own:
 * none of them may be older than what the change has delivered.
 */
TEST(levels_that_change_all_the_time_keep_the_order)
{
	struct part p = {.period_ns = (double)(NS_PER_SEC / 997), .order.stolen = stolen_so_far()};
	struct source_level level = {997, 16};
	struct os_thread *burner;
	uint64_t end_ns;

	cfg.capture.freq_hz = 997;
	cfg.capture.stack_kb = 16;
	start_or_skip();
	atomic_store(&burning, true);
	assert_int_equal(os_thread_start("burner", burn_on, NULL, &burner, NULL), 0);
	end_ns = os_now_ns() + 2500 * NS_PER_MS;
	while (os_now_ns() < end_ns || p.rates < 20) {
		level.stack_kb = level.stack_kb == 16 ? 8 : 16;
		perf_source.set_level(source, &level);
		perf_source.catch_up(source);
		os_sleep_ns(NS_PER_MS);
		drain_part(&p);
	}
	atomic_store(&burning, false);
	os_thread_join(burner);
	perf_source.stop(source);
	os_thread_join(runner);
	drain_part(&p);
	print_message("%u changes, %u samples\n", p.rates, p.samples);
	assert_true(p.samples > 0);
	assert_order(&p.order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(levels_that_change_all_the_time_keep_the_order,
						open_source, close_source),
		cmocka_unit_test_setup_teardown(another_rate_and_stack_take_effect_and_lose_nothing,
						open_source, close_source),
		cmocka_unit_test_setup_teardown(samples_of_a_busy_thread_arrive_with_their_stacks,
						open_source, close_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
