/*
 * The live screen without a terminal: windows and keys go in, pages come out.
 */
#include "base/buf.h"
#include "screen/view.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 80
#define ROWS 24
#define SEC 1000000000ULL

static int add(struct incident *in, uint32_t thread, const char *stack, uint32_t count)
{
	uint32_t node;
	int rc = sample_stack(in, stack, &node);

	return rc ? rc : sample_add(in, thread, node, QUALITY_COMPLETE, count);
}

/* Of ten seconds, 10 ms a sample: "web" 500 (50 % of a CPU), "job" 300 in two threads. */
static int make(struct incident *in)
{
	uint32_t web, job, other;
	int rc = sample_incident(in);

	if (rc)
		return rc;
	web = sample_thread(in, "web", 10, "main", 10);
	job = sample_thread(in, "job", 20, "main", 20);
	other = sample_thread(in, "job", 20, "worker", 21);
	if (web == UINT32_MAX || job == UINT32_MAX || other == UINT32_MAX)
		return ERR_MEMORY;
	rc = add(in, web, "web!main;web!parse", 400);
	if (!rc)
		rc = add(in, web, "web!main;web!parse;libc.so.6!memcpy", 100);
	if (!rc)
		rc = add(in, job, "job!main;job!walk;job!walk", 200);
	if (!rc)
		rc = add(in, other, "job!start;libc.so.6!memcpy", 100);
	return rc;
}

static const struct view_facts facts = {
	.span_ns = 10 * SEC, .ncpus = 2, .clock = "14:39:09", .from = "own recording",
};

static int load(struct view *v, int (*maker)(struct incident *in))
{
	struct incident in = {0};
	int rc = maker(&in);

	if (!rc)
		rc = view_load(v, &in, &facts, NULL);
	incident_free(&in);
	return rc;
}

static struct view *shown(void)
{
	struct view *v = view_new(STREAM_CPU);

	assert_non_null(v);
	assert_int_equal(load(v, make), 0);
	return v;
}

/* The row that has a text, or -1. */
static int row_with(const struct page *p, const char *text)
{
	struct buf line = {0};
	int found = -1;
	unsigned row;

	for (row = 0; row < p->rows && found < 0; row++) {
		buf_reset(&line);
		page_row_text(p, row, &line);
		if (strstr(buf_text(&line), text))
			found = (int)row;
	}
	buf_free(&line);
	return found;
}

/* Draw, and say whether the page has a text. */
static bool shows(struct view *v, const char *text)
{
	struct page p = {0};
	bool is;

	assert_int_equal(view_draw(v, &p, COLUMNS, ROWS), 0);
	is = row_with(&p, text) >= 0;
	page_free(&p);
	return is;
}

static enum view_wish press(struct view *v, const char *keys)
{
	enum view_wish wish = VIEW_WISH_NONE;

	for (; *keys; keys++)
		wish = view_key(v, *keys == '\033' ? VIEW_KEY_ESCAPE : (unsigned char)*keys);
	return wish;
}

TEST(at_once_it_shows_who_runs_what_and_the_heaviest_stack)
{
	struct view *v = shown();

	assert_true(shows(v, "0.80 of 2 CPUs busy, last 10 s"));
	assert_true(shows(v, "    80.0  ||||||||||  all processes"));
	assert_true(shows(v, "    50.0  ||||||      web (10)"));
	assert_true(shows(v, "    30.0  ||||        job (20)"));
	assert_true(shows(v, "   50.0     62.5  |||||       web!parse"));
	assert_true(shows(v, "   25.0     25.0  |||         job!walk"));
	assert_true(shows(v, "STACK 1 of 4, leaf first: 50.0 % of all processes"));
	view_free(v);
}

TEST(a_chosen_process_has_its_own_functions_and_shares)
{
	struct view *v = shown();

	view_key(v, VIEW_KEY_DOWN);
	view_key(v, VIEW_KEY_DOWN);
	assert_true(shows(v, "FUNCTION, by self, of job (20)"));
	assert_true(shows(v, "   66.7     66.7  |||||||     job!walk"));
	assert_false(shows(v, "web!parse"));
	assert_true(shows(v, "STACK 1 of 2, leaf first: 66.7 % of job (20)"));
	view_key(v, VIEW_KEY_ESCAPE);
	assert_true(shows(v, "FUNCTION, by self, of all processes"));
	view_free(v);
}

TEST(the_chosen_process_stays_chosen_when_another_one_passes_it)
{
	struct view *v = shown();

	view_key(v, VIEW_KEY_DOWN);
	assert_true(shows(v, "FUNCTION, by self, of web (10)"));
	assert_int_equal(load(v, sample_small), 0);          /* without it */
	assert_true(shows(v, "     0.0              web (10)"));
	assert_true(shows(v, "FUNCTION, by self, of web (10)"));
	assert_int_equal(load(v, make), 0);
	assert_true(shows(v, "    50.0  ||||||      web (10)"));
	view_free(v);
}

TEST(a_chosen_function_has_its_stacks_as_leaf_or_anywhere)
{
	struct view *v = shown();

	press(v, "\n");
	assert_true(shows(v, "STACK 1 of 1, leaf first: 50.0 % of all processes, in web!parse"));
	press(v, "o");
	assert_true(shows(v, "by inclusive"));
	assert_true(shows(v, "STACK 1 of 2, leaf first: 50.0 % of all processes, through"));
	view_key(v, VIEW_KEY_RIGHT);
	assert_true(shows(v, "STACK 2 of 2, leaf first: 12.5 % of all processes, through"));
	assert_true(shows(v, "  libc.so.6!memcpy"));
	view_key(v, VIEW_KEY_RIGHT);
	assert_true(shows(v, "STACK 2 of 2"));
	view_free(v);
}

/* Recursion: a sample counts once for the function that calls itself. */
TEST(inclusive_shares_count_a_sample_once)
{
	struct view *v = shown();

	press(v, "o");
	assert_true(shows(v, "   25.0     25.0  |||         job!walk"));
	assert_true(shows(v, "   25.0     25.0  |||         libc.so.6!memcpy"));
	view_free(v);
}

TEST(a_filter_works_while_it_is_typed_and_escape_ends_it)
{
	struct view *v = shown();

	press(v, "/JO");
	assert_false(shows(v, "web (10)"));
	assert_true(shows(v, "job (20)"));
	assert_true(shows(v, "Only rows with: JO_"));
	press(v, "\n");
	assert_true(shows(v, "with 'JO'"));
	press(v, "\033");
	assert_true(shows(v, "web (10)"));
	view_free(v);
}

TEST(a_pause_is_seen_and_other_times_are_asked_for)
{
	struct view *v = shown();

	assert_int_equal(view_span_ns(v), 10 * SEC);
	assert_int_equal(press(v, "+"), VIEW_WISH_LOAD);
	assert_int_equal(view_span_ns(v), 30 * SEC);
	assert_int_equal(press(v, "--------"), VIEW_WISH_LOAD);
	assert_int_equal(view_span_ns(v), SEC);
	assert_false(view_kernel(v));
	assert_int_equal(press(v, "k"), VIEW_WISH_LOAD);
	assert_true(view_kernel(v));
	press(v, " ");
	assert_true(view_paused(v));
	assert_true(shows(v, "PAUSED"));
	assert_int_equal(press(v, "q"), VIEW_WISH_QUIT);
	view_free(v);
}

TEST(an_incident_is_kept_with_a_reason_or_not_at_all)
{
	struct view *v = shown();

	assert_int_equal(press(v, "sslow\x08\x08ower q"), VIEW_WISH_NONE);
	assert_true(shows(v, "reason: slower q_"));
	assert_int_equal(press(v, "\n"), VIEW_WISH_KEEP);
	assert_string_equal(view_reason(v), "slower q");
	view_say(v, false, "incident 3 is stored");
	assert_true(shows(v, "incident 3 is stored"));
	assert_int_equal(press(v, "sno\033"), VIEW_WISH_NONE);
	assert_true(shows(v, "? help"));
	view_free(v);
}

TEST(other_streams_have_their_units_or_say_that_there_is_nothing)
{
	struct view *v = view_new(STREAM_CPU);

	assert_non_null(v);
	assert_int_equal(load(v, sample_streams), 0);
	press(v, "m");
	assert_true(shows(v, "WAIT %"));
	press(v, "m");
	assert_true(shows(v, "BYTES/s"));
	assert_true(shows(v, "   10.0M"));                   /* 100,004,096 in 10 s */
	press(v, "m");
	assert_true(shows(v, "no events are recorded"));
	view_free(v);
}

TEST(processes_of_one_name_can_be_one_row)
{
	struct view *v = shown();

	press(v, "g");
	assert_true(shows(v, "    50.0  ||||||      web"));
	assert_false(shows(v, "web (10)"));
	view_free(v);
}

/* Every size, with every pane alone, and the help. */
TEST(no_size_of_the_window_is_too_small_or_too_large)
{
	static const char *const keys[] = {"", "z", "\t", "\t", "z", "?"};
	struct view *v = shown();
	struct page p = {0};
	unsigned columns, rows, i;

	for (i = 0; i < 6; i++) {
		press(v, keys[i]);
		for (columns = 0; columns < 260; columns += columns < 30 ? 1 : 23)
			for (rows = 0; rows < 90; rows += rows < 30 ? 1 : 13) {
				assert_int_equal(view_draw(v, &p, columns, rows), 0);
				view_key(v, 0);
			}
	}
	page_free(&p);
	view_free(v);
}

TEST(a_wide_window_has_the_stack_beside_the_lists)
{
	struct view *v = shown();
	struct page p = {0};

	assert_int_equal(view_draw(v, &p, 200, 60), 0);
	assert_int_equal(row_with(&p, "PROCESS"), row_with(&p, "STACK 1 of"));
	page_free(&p);
	view_free(v);
}

/* A name with what would clear the screen, colour it or turn it around is only text. */
TEST(hostile_names_are_text)
{
	struct view *v = view_new(STREAM_CPU);
	struct page p = {0};
	size_t i;

	assert_non_null(v);
	assert_int_equal(load(v, sample_hostile), 0);
	press(v, "\n");
	assert_int_equal(view_draw(v, &p, 200, 60), 0);
	for (i = 0; i < (size_t)p.columns * p.rows; i++) {
		uint32_t c = p.cells[i].c;

		assert_true(!c || (c >= 0x20 && (c < 0x7f || c > 0x9f)));
		assert_false(c >= 0x202a && c <= 0x202e);
	}
	page_free(&p);
	view_free(v);
}

TEST(keys_before_the_first_window_do_no_harm)
{
	struct view *v = view_new(STREAM_CPU);
	uint32_t key;

	assert_non_null(v);
	for (key = 1; key < 128; key++)
		view_key(v, key);
	for (key = VIEW_KEY_UP; key <= VIEW_KEY_HELP; key++)
		view_key(v, key);
	assert_true(shows(v, "starting"));
	view_free(v);
}

static int step(void *ctx)
{
	struct view *v = view_new(STREAM_CPU);
	struct page p = {0};
	int rc = v ? load(v, make) : ERR_MEMORY;

	(void)ctx;
	if (!rc)
		rc = view_draw(v, &p, COLUMNS, ROWS);
	page_free(&p);
	view_free(v);
	return rc;
}

TEST(a_lack_of_memory_is_an_error)
{
	assert_in_range(alloc_walk(step, NULL), 10, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_once_it_shows_who_runs_what_and_the_heaviest_stack),
		cmocka_unit_test(a_chosen_process_has_its_own_functions_and_shares),
		cmocka_unit_test(the_chosen_process_stays_chosen_when_another_one_passes_it),
		cmocka_unit_test(a_chosen_function_has_its_stacks_as_leaf_or_anywhere),
		cmocka_unit_test(inclusive_shares_count_a_sample_once),
		cmocka_unit_test(a_filter_works_while_it_is_typed_and_escape_ends_it),
		cmocka_unit_test(a_pause_is_seen_and_other_times_are_asked_for),
		cmocka_unit_test(an_incident_is_kept_with_a_reason_or_not_at_all),
		cmocka_unit_test(other_streams_have_their_units_or_say_that_there_is_nothing),
		cmocka_unit_test(processes_of_one_name_can_be_one_row),
		cmocka_unit_test(no_size_of_the_window_is_too_small_or_too_large),
		cmocka_unit_test(a_wide_window_has_the_stack_beside_the_lists),
		cmocka_unit_test(hostile_names_are_text),
		cmocka_unit_test(keys_before_the_first_window_do_no_harm),
		cmocka_unit_test(a_lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
