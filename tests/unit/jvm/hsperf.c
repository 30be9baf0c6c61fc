/* Pauses from two readings of a JVM's counters; a small file of them, from the fuzz corpus. */
#include "base/os.h"
#include "source/jvm/hsperf.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/* invocations, time, entry, exit */
static uint32_t step(struct hsperf_track *t, uint64_t n, uint64_t time, uint64_t entry,
		     uint64_t exit, struct hsperf_edge *edges, struct hsperf_missed *together)
{
	const uint64_t now[HSPERF_VALUES] = {n, time, entry, exit};

	return hsperf_step(t, now, edges, together);
}

TEST(a_pause_is_its_entry_and_its_exit)
{
	struct hsperf_edge e[HSPERF_EDGES];
	struct hsperf_track t = {0};
	struct hsperf_missed together = {0};

	assert_int_equal(step(&t, 5, 50, 100, 110, e, &together), 0);  /* before we looked */
	assert_int_equal(step(&t, 6, 70, 200, 220, e, &together), 2);
	assert_true(e[0].start && !e[1].start);
	assert_int_equal(e[0].ticks, 200);
	assert_int_equal(e[1].ticks, 220);
	assert_int_equal(step(&t, 7, 70, 300, 220, e, &together), 1);  /* begins, is open */
	assert_int_equal(step(&t, 7, 70, 300, 220, e, &together), 0);
	assert_int_equal(step(&t, 7, 170, 300, 400, e, &together), 1);
	assert_int_equal(e[0].ticks, 400);
	assert_int_equal(together.pauses, 0);
	step(&t, 10, 200, 500, 510, e, &together);        /* 8 and 9 came and went, in 30 - 10 */
	assert_int_equal(together.pauses, 2);
	assert_int_equal(together.ticks, 20);
}

TEST(an_open_pause_that_another_one_hides_ends_by_the_sum_of_times)
{
	struct hsperf_edge e[HSPERF_EDGES];
	struct hsperf_track t = {0};
	struct hsperf_missed together = {0};

	assert_int_equal(step(&t, 1, 0, 100, 0, e, &together), 1);
	/* 40 in all, the last had 10 */
	assert_int_equal(step(&t, 2, 40, 200, 210, e, &together), 3);
	assert_false(e[0].start);
	assert_int_equal(e[0].ticks, 130);
	assert_int_equal(e[1].ticks, 200);
	assert_int_equal(e[2].ticks, 210);
	assert_int_equal(e[0].pauses, 1);
	/* The one that is open now and one more have ended: so long in all. */
	assert_int_equal(step(&t, 3, 40, 300, 210, e, &together), 1);
	assert_int_equal(step(&t, 5, 40 + 25 + 10, 400, 410, e, &together), 3);
	assert_int_equal(e[0].ticks, 325);
	assert_int_equal(e[0].pauses, 2);
	assert_int_equal(together.pauses, 0);
}

TEST(a_reading_in_the_middle_of_a_pause_s_writing_is_not_taken)
{
	struct hsperf_missed together = {0};
	struct hsperf_edge e[HSPERF_EDGES];
	struct hsperf_track t = {0};
	unsigned i;

	step(&t, 5, 50, 100, 110, e, &together);
	/* counted, its entry not noted yet */
	assert_int_equal(step(&t, 6, 50, 100, 110, e, &together), 0);
	/* its exit is noted, its time not added */
	assert_int_equal(step(&t, 6, 50, 200, 220, e, &together), 0);
	assert_int_equal(step(&t, 6, 70, 200, 220, e, &together), 2);
	assert_int_equal(e[0].ticks, 200);
	assert_int_equal(e[1].ticks, 220);
	assert_int_equal(step(&t, 8, 100, 300, 320, e, &together), 4); /* one of 10, and the last */
	assert_int_equal(e[0].ticks, 290);
	assert_int_equal(together.pauses, 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(step(&t, 9, 100, 400, 410, e, &together), 0);
	assert_int_equal(step(&t, 9, 100, 400, 410, e, &together), 2); /* it never comes */
}

TEST(of_two_pauses_between_two_looks_both_are_told_with_their_lengths)
{
	struct hsperf_edge e[HSPERF_EDGES];
	struct hsperf_track t = {0};
	struct hsperf_missed together = {0};

	step(&t, 5, 50, 100, 110, e, &together);
	assert_int_equal(step(&t, 7, 50 + 30 + 20, 300, 320, e, &together), 4);
	assert_int_equal(e[0].ticks, 270);        /* 30 long, before the last one */
	assert_int_equal(e[1].ticks, 300);
	assert_int_equal(e[1].count, 6);
	assert_int_equal(e[2].ticks, 300);
	assert_int_equal(e[3].ticks, 320);
	/* One has ended, at 400, the next is open. */
	assert_int_equal(step(&t, 9, 100 + 40, 410, 400, e, &together), 3);
	assert_int_equal(e[0].ticks, 360);
	assert_int_equal(e[1].ticks, 400);
	assert_true(e[2].start && e[2].ticks == 410);
	/* That one ends, the next is open: each end is there to be read. */
	assert_int_equal(step(&t, 10, 140 + 20, 450, 430, e, &together), 2);
	assert_int_equal(e[0].ticks, 430);
	assert_int_equal(e[1].ticks, 450);
	assert_int_equal(together.pauses, 0);
}

TEST(a_pause_over_at_the_first_look_is_kept_with_its_safepoint)
{
	const uint64_t over[HSPERF_VALUES] = {5, 50, 100, 110},
		       open[HSPERF_VALUES] = {5, 50, 120, 110};
	const uint64_t none[HSPERF_VALUES] = {0, 0, 0, 0};
	struct hsperf_first f = {0};

	hsperf_first_note(&f, none, 7, 1000);
	assert_false(f.pending);
	hsperf_first_note(&f, open, 7, 1000);            /* hsperf_step() has its beginning */
	assert_false(f.pending);
	hsperf_first_note(&f, over, 7, 1000);
	assert_true(f.pending);
	assert_int_equal(f.entry, 100);
	assert_int_equal(f.exit, 110);
	assert_int_equal(f.count, 5);
	hsperf_first_step(&f, 7, 1000);
	assert_int_equal(f.end, 110);
	hsperf_first_step(&f, 7, 1025);                  /* the safepoint was open: it lasted 25 */
	assert_int_equal(f.end, 125);
	hsperf_first_step(&f, 8, 1500);                  /* another one */
	assert_int_equal(f.end, 125);
	hsperf_first_note(&f, over, 7, 1000);
	hsperf_first_step(&f, 7, 1004);       /* shorter than the pause: one before it, told late */
	assert_int_equal(f.end, 110);
	hsperf_first_step(&f, 7, 900);
	assert_int_equal(f.end, 110);
}

TEST(a_safepoint_is_told_when_its_time_is_there)
{
	struct hsperf_edge e[HSPERF_EDGES];
	struct hsperf_track t = {0};
	struct hsperf_missed together = {0};

	/* before we looked */
	assert_int_equal(hsperf_safepoint_step(&t, 3, 100, 1000, e, &together), 0);
	assert_int_equal(hsperf_safepoint_step(&t, 4, 100, 1010, e, &together), 0); /* it is open */
	assert_int_equal(hsperf_safepoint_step(&t, 4, 125, 1040, e, &together), 2);
	assert_int_equal(e[0].ticks, 1015);
	assert_int_equal(e[1].ticks, 1040);
	/* three: which how long? */
	assert_int_equal(hsperf_safepoint_step(&t, 7, 150, 1060, e, &together), 0);
	assert_int_equal(together.pauses, 3);
	assert_int_equal(together.ticks, 25);
	/* one is open */
	assert_int_equal(hsperf_safepoint_step(&t, 8, 150, 1070, e, &together), 0);
	/* it has ended, a next began */
	assert_int_equal(hsperf_safepoint_step(&t, 9, 180, 1080, e, &together), 2);
	assert_int_equal(e[0].ticks, 1050);
	assert_int_equal(e[0].count, 8);
	assert_int_equal(e[0].pauses, 2);
	assert_int_equal(together.pauses, 3);
}

static struct hsperf_entry entries[HSPERF_ENTRIES_MAX];

static struct hsperf_file file_of(const void *bytes, size_t n)
{
	struct hsperf_file f = {bytes, n, entries, hsperf_entries(bytes, n, entries)};

	assert_true(hsperf_is_sound(&f));
	return f;
}

static int parse(const void *bytes, size_t n, struct hsperf *h)
{
	struct hsperf_file f = file_of(bytes, n);

	return hsperf_parse(&f, h, NULL);
}

static bool number(const void *bytes, size_t n, const char *name, struct hsperf_number *out)
{
	struct hsperf_file f = file_of(bytes, n);

	return hsperf_number(&f, name, out);
}

TEST(a_file_has_its_counters_or_is_refused_however_it_is_cut)
{
	struct buf file = {0};
	struct hsperf h;
	size_t n;

	assert_int_equal(os_load("tests/fuzz/corpus/fuzz_jvm_hsperf/young", 4096, &file, NULL), 0);
	assert_int_equal(parse(file.data, file.len, &h), 0);
	assert_int_equal(h.frequency_hz, 1000000000u);
	assert_int_not_equal(h.ticks_at, 0);
	assert_int_equal(h.collectors[1].at[0], 0);
	for (n = 0; n < file.len; n++) {
		void *copy = malloc(n ? n : 1);  /* so that a sanitizer sees its end */

		assert_non_null(copy);
		memcpy(copy, file.data, n);
		assert_int_not_equal(parse(copy, n, &h), 0);
		free(copy);
	}
	buf_free(&file);
}

TEST(entries_that_leave_the_file_are_not_believed)
{
	static const uint32_t places[][2] = {{0, 0}, {120, 0}, {127, 1}, {100, 28}}; /* sound */
	static const uint32_t wrong[][2] = {{124, 0}, {128, 0}, {4, 0}, {UINT32_MAX - 7, 0},
					    {127, 2}, {0, 129}, {129, 1}, {100, UINT32_MAX}};
	struct hsperf_entry e = {.name = "sun.rt.safepoints"};
	static unsigned char bytes[128];
	const struct hsperf_file file = {bytes, sizeof(bytes), &e, 1};
	unsigned i;

	for (i = 0; i < 4 + 8; i++) {
		e.at = i < 4 ? places[i][0] : wrong[i - 4][0];
		e.text_bytes = i < 4 ? places[i][1] : wrong[i - 4][1];
		assert_int_equal(hsperf_is_sound(&file), i < 4);
	}
	e = (struct hsperf_entry){.at = 8};
	memset(e.name, 'x', sizeof(e.name));
	assert_false(hsperf_is_sound(&file));
}

/* An entry of 64 bytes: name at 20, an i64 at 56. */
static void put_long(unsigned char *b, uint32_t i, const char *name, uint64_t v)
{
	static const unsigned char entry[20] = {64, [4] = 20, [12] = 'J', [16] = 56};

	memcpy(b + 32 + i * 64, entry, 20);
	strcpy((char *)b + 32 + i * 64 + 20, name);
	memcpy(b + 32 + i * 64 + 56, &v, 8);
}

TEST(what_the_heap_holds_is_the_sum_of_its_spaces)
{
	static const unsigned char head[32] = {0xca, 0xfe, 0xc0, 0xc0,	    1,
					       2,    0,	   1,	 [24] = 32, [28] = 9};
	static const char *const names[9] = {
		"sun.os.hrt.frequency", "sun.gc.collector.0.invocations", "sun.gc.collector.0.time",
		"sun.gc.collector.0.lastEntryTime", "sun.gc.collector.0.lastExitTime",
		"sun.gc.generation.0.space.2.used", "sun.gc.generation.1.space.0.used",
		"sun.gc.generation.1.space.0.capacity", "sun.gc.generation.1.spaces",
	};
	static _Alignas(8) unsigned char b[32 + 9 * 64];
	struct hsperf h;
	uint32_t i;

	memcpy(b, head, 32);
	for (i = 0; i < 9; i++)
		put_long(b, i, names[i], 1000 + i);
	assert_int_equal(parse(b, sizeof(b), &h), 0);
	assert_int_equal(h.nspaces, 2);
	assert_int_equal(h.spaces[0].at, 32 + 5 * 64 + 56);
	assert_int_equal(h.spaces[1].at, 32 + 6 * 64 + 56);
	assert_true(!h.spaces[0].old && !h.spaces[0].eden && h.spaces[1].old);
	for (i = 5; i < 9; i++)
		put_long(b, i, "sun.gc.generation.0.space.0.used", i);
	assert_int_equal(parse(b, sizeof(b), &h), 0);
	assert_int_equal(h.nspaces, 4);
	assert_true(h.spaces[0].eden);
}

static void add_name(void *ctx, const char *name, const struct hsperf_number *number)
{
	buf_printf(ctx, "%s=%u%s%s ", name, (unsigned)number->value, number->grows ? "+" : "",
		   number->ticks ? "t" : "");
}

TEST(a_number_is_found_with_what_it_counts)
{
	static const unsigned char head[32] = {0xca, 0xfe, 0xc0, 0xc0,	    1,
					       2,    0,	   1,	 [24] = 32, [28] = 3};
	static _Alignas(8) unsigned char b[32 + 3 * 64];
	struct hsperf_number n;
	struct hsperf_file f;
	struct buf names = {0};
	size_t cut;

	memcpy(b, head, 32);
	put_long(b, 0, "java.threads.live", 12);
	put_long(b, 1, "sun.os.hrt.frequency", 1000);
	put_long(b, 2, "sun.rt.safepointTime", 77);
	b[32 + 14] = 1;                          /* of no unit, */
	b[32 + 15] = 3;                          /* goes up and down */
	b[32 + 2 * 64 + 14] = 3;                 /* ticks, */
	b[32 + 2 * 64 + 15] = 2;                 /* only goes up */
	assert_true(number(b, sizeof(b), "java.threads.live", &n));
	assert_true(n.value == 12 && !n.grows && !n.ticks);
	assert_true(number(b, sizeof(b), "sun.rt.safepointTime", &n));
	assert_true(n.value == 77 && n.grows && n.ticks && n.frequency_hz == 1000);
	assert_int_equal(n.at, 32 + 2 * 64 + 56);
	assert_false(number(b, sizeof(b), "sun.rt.safepoint", &n));
	f = file_of(b, sizeof(b));
	hsperf_numbers(&f, add_name, &names);
	assert_string_equal(buf_text(&names), "java.threads.live=12 sun.os.hrt.frequency=1000 "
					      "sun.rt.safepointTime=77+t ");
	buf_free(&names);
	for (cut = 0; cut < sizeof(b); cut++)
		assert_false(number(b, cut, "sun.rt.safepointTime", &n));
}

/* Head of 32 bytes, two entries of 48: vmFlags "+A", vmArgs "-Xint12"; names at 20, then texts. */
TEST(texts_are_found_behind_their_names_and_cut_at_the_end)
{
	static const unsigned char head[32] = {0xca, 0xfe, 0xc0, 0xc0,	    1,
					       2,    0,	   1,	 [24] = 32, [28] = 2};
	static const unsigned char entry[20] = {48, [4] = 20, [8] = 8, [12] = 'B', [16] = 36};
	unsigned char b[128];
	const char *text = NULL;
	size_t n = 0, cut;

	memset(b, 0, sizeof(b));
	memcpy(b, head, 32);
	memcpy(b + 32, entry, 20);
	memcpy(b + 80, entry, 20);
	strcpy((char *)b + 52, "java.rt.vmFlags");
	strcpy((char *)b + 68, "+A");
	strcpy((char *)b + 100, "java.rt.vmArgs");
	memcpy(b + 115, "-Xint12", 8);
	assert_true(hsperf_text(b, sizeof(b), "java.rt.vmFlags", &text, &n));
	assert_int_equal(n, 2);
	assert_true(hsperf_text(b, sizeof(b), "java.rt.vmArgs", &text, &n));
	assert_int_equal(n, 7);
	assert_memory_equal(text, "-Xint12", 7);
	assert_false(hsperf_text(b, sizeof(b), "java.rt.vm", &text, &n));
	for (cut = 0; cut < 116; cut++)
		assert_false(hsperf_text(b, cut, "java.rt.vmArgs", &text, &n));
	assert_true(hsperf_text(b, 117, "java.rt.vmArgs", &text, &n));
	assert_int_equal(n, 2);
	b[7] = 0;                                /* not complete */
	assert_false(hsperf_text(b, sizeof(b), "java.rt.vmArgs", &text, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_is_its_entry_and_its_exit),
		cmocka_unit_test(an_open_pause_that_another_one_hides_ends_by_the_sum_of_times),
		cmocka_unit_test(a_reading_in_the_middle_of_a_pause_s_writing_is_not_taken),
		cmocka_unit_test(of_two_pauses_between_two_looks_both_are_told_with_their_lengths),
		cmocka_unit_test(a_pause_over_at_the_first_look_is_kept_with_its_safepoint),
		cmocka_unit_test(a_safepoint_is_told_when_its_time_is_there),
		cmocka_unit_test(what_the_heap_holds_is_the_sum_of_its_spaces),
		cmocka_unit_test(a_number_is_found_with_what_it_counts),
		cmocka_unit_test(entries_that_leave_the_file_are_not_believed),
		cmocka_unit_test(texts_are_found_behind_their_names_and_cut_at_the_end),
		cmocka_unit_test(a_file_has_its_counters_or_is_refused_however_it_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
