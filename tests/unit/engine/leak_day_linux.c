/*
 * A program that leaks for 24 hours: the recorder's own memory stays where it is, who leaked is
 * right at the end, and the history has the whole of it though the ring does not.
 */
#include "store/history.h"
#include "tests/support/engine_rig.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum { DAY_S = 86400, PER_S = 4, RING_BYTES = 512 << 10 };

#ifdef __SANITIZE_ADDRESS__
enum { FREED_STAYS = 1 };                    /* resident, for a while */
#else
enum { FREED_STAYS };
#endif

static double resident_mb(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long all, resident = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
	fclose(f);
	return (double)resident * 4096 / (1 << 20);
}

/* At most, with the queue that is more or less full. */
struct course {
	double by_noon, after_noon;
};

/* The ring is full from hour 4 on. */
static void look(void *ctx, uint64_t number)
{
	struct course *c = ctx;
	double *most = number > DAY_S / 2 * PER_S ? &c->after_noon : &c->by_noon, now;

	if (number % (600 * PER_S) != 0)
		return;
	now = resident_mb();
	*most = now > *most ? now : *most;
}

static double net_mb(const struct incident *in, const char *leaf)
{
	double bytes = 0;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_RSS_NET &&
		    strcmp(in->frames[in->stacks[s->stack].frame].function, leaf) == 0)
			bytes += (double)s->weight;
	}
	return bytes / (1 << 20);
}

/* What diff --metric rss-net --from -24h reads: blocks of long before the ring's window, too. */
static void check_history(const struct rig *r)
{
	const double truth_mb = 0.7 * DAY_S * PER_S * SYNTHETIC_LEAK_BYTES / (1 << 20);
	struct history_files files = {0};
	struct incident in = {0};
	struct err err = {0};
	double seventy, thirty;
	uint32_t i;

	assert_int_equal(history_list(r->path, &files, NULL), 0);
	assert_true(files.n > 0);
	for (i = 0; i < files.n; i++)
		history_look(&files.all[i], false);
	if (history_load(r->path, files.all[0].wall_ns, UINT64_MAX / 2, UINT64_MAX / 2, &in, &err))
		fail_msg("%s", err.text);
	assert_int_equal(incident_whole(&in, NULL), 0);
	seventy = net_mb(&in, "leaf_0");
	thirty = net_mb(&in, "leaf_1");
	print_message("the history has %.0f of %.0f MB of seventy, and %.0f of thirty\n", seventy,
		      truth_mb, thirty);
	assert_true(seventy > truth_mb * 0.95 && seventy < truth_mb * 1.05);
	assert_true(thirty > truth_mb * 0.95 * 3 / 7 && thirty < truth_mb * 1.05 * 3 / 7);
	assert_true(net_mb(&in, "leaf_2") == 0);
	incident_free(&in);
	for (i = 0; i < files.n; i++)
		os_remove(files.all[i].path, NULL);
	history_files_free(&files);
}

/* Whether its memory stayed where it was. */
static bool record_a_day(void)
{
	struct course c = {0};
	struct incident in;
	double seventy, thirty;
	struct rig r;

	malloc_trim(0);                      /* room of the day before could hide a leak */
	rig_open(&r, "leak.db", 0);
	r.cfg.ring_bytes = RING_BYTES;
	r.cfg.live = true;
	r.cfg.history_bytes = 256 << 20;
	r.cfg.capture.pre_ns = SEC(DAY_S);
	r.plan.step_ns = NS_PER_SEC / PER_S;
	r.plan.nsamples = DAY_S * PER_S;
	r.plan.leak = r.plan.names = true;
	r.plan.at = look;
	r.plan.ctx = &c;
	r.plan.fire_s[0] = DAY_S - 10;
	rig_run(&r);
	rig_load(&r, 1, &in);
	assert_int_equal(incident_whole(&in, NULL), 0);
	seventy = net_mb(&in, "leaf_0");
	thirty = net_mb(&in, "leaf_1");
	print_message("resident %.1f MB by noon, %.1f after it; the ring reaches back %.1f h, "
		      "%.0f MB\n", c.by_noon, c.after_noon,
		      (double)(in.head.t1_ns - in.head.t0_ns) / 3.6e12, seventy + thirty);
	assert_true(seventy > 100);
	assert_true(seventy / (seventy + thirty) > 0.69 && seventy / (seventy + thirty) < 0.71);
	assert_true(net_mb(&in, "leaf_2") == 0);
	assert_int_equal(in.head.lost, 0);
	assert_true(in.head.t1_ns - in.head.t0_ns < SEC(DAY_S / 4));
	if (FREED_STAYS)
		print_message("in part: the address sanitizer keeps what is freed, so the resident "
			      "memory is not judged\n");
	incident_free(&in);
	check_history(&r);
	remove_store(r.path);
	return FREED_STAYS || c.after_noon < c.by_noon + 4;
}

/* What waits for the disk on a busy machine is memory, too, but not on each of four days. */
TEST(a_day_of_a_leak_costs_no_memory_and_names_who_leaked)
{
	unsigned days = 1;

	while (!record_a_day())
		assert_true(++days <= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_of_a_leak_costs_no_memory_and_names_who_leaked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
