/* Which interval of the history comes next. Its files hold segments of ten seconds. */
#include "ship/past.h"
#include "tests/unit/store/history_lab.h"

#define BEGIN (LAB_WALL_NS + S(1000))        /* the wall clock at the first sample */
#define LATER (BEGIN + S(100000))

static int next(struct lab *lab, const struct ship_past *past, struct past_interval *out)
{
	uint32_t wait_s = 0;

	*out = (struct past_interval){0};
	return past_next(lab->path, past, S(60), LATER, out, &wait_s, NULL);
}

/* As ship does it: what was sent lies behind. */
static void sent(struct ship_past *past, const struct past_interval *i)
{
	past->file = i->file;
	past->next_wall_ns = i->until_ns;
}

/* Two files of 100 s each, from second 1000 and 2000 on. */
static void two_files(struct lab *lab)
{
	struct history *h;
	unsigned file, i;

	for (file = 1; file <= 2; file++) {
		h = open_history(lab, 64 << 20, 16 << 20);
		for (i = 0; i < 10; i++)
			put(lab, h, file * 1000 + i * 10);
		history_close(h, "the end");
	}
}

static int spoil_one(void *ctx, const char *name)
{
	struct os_file *file = NULL;
	char path[500];

	if (strncmp(name, "000001-", 7) != 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", (const char *)ctx, name);
	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, "no database at all", 18, NULL), 0);
	os_close(file);
	return 0;
}

static void spoil_the_first_file(const struct lab *lab)
{
	char dir[500];

	snprintf(dir, sizeof(dir), "%s%s", lab->path, HISTORY_SUFFIX);
	assert_int_equal(os_list(dir, spoil_one, dir, NULL), 0);
}

TEST(intervals_follow_each_other_through_all_files)
{
	struct ship_past past = {0};
	struct past_interval i;
	struct lab lab;
	unsigned n = 0, of_second = 0;
	uint64_t until = 0;

	begin(&lab, "past.db");
	two_files(&lab);
	for (; next(&lab, &past, &i) == 0; n++) {
		assert_true(i.until_ns > i.from_ns && i.until_ns - i.from_ns <= S(60));
		assert_true(i.from_ns == until || i.file != past.file);
		assert_int_equal(i.missed_from_ns, 0);
		assert_string_equal(i.unreadable, "");
		of_second += i.file == 2;
		until = i.until_ns;
		sent(&past, &i);
	}
	/* Of 100 s: two or three, as whole minutes divide them. */
	assert_in_range(of_second, 2, 3);
	assert_in_range(n - of_second, 2, 3);
	end(&lab);
}

TEST(an_interval_ends_at_a_whole_minute)
{
	struct past_interval i;
	struct lab lab;

	begin(&lab, "past.db");
	two_files(&lab);
	assert_int_equal(next(&lab, &(struct ship_past){0}, &i), 0);
	assert_int_equal(i.until_ns % S(60), 0);
	assert_int_equal(i.from_ns, BEGIN);
	end(&lab);
}

TEST(what_is_being_written_waits_until_it_is_whole)
{
	struct ship_past past = {0};
	struct past_interval i = {0};
	struct history *h;
	uint32_t wait_s = 0;
	struct lab lab;

	begin(&lab, "past.db");
	h = open_history(&lab, 64 << 20, 16 << 20);
	put(&lab, h, 1000);
	assert_int_equal(past_next(lab.path, &past, S(60), BEGIN + S(10), &i, &wait_s, NULL),
			 ERR_NOT_FOUND);
	assert_in_range(wait_s, 10, 90);
	history_close(h, "the end");
	assert_int_equal(next(&lab, &past, &i), 0);
	end(&lab);
}

TEST(a_file_that_cannot_be_read_is_named_and_its_time_is_missed)
{
	struct ship_past past = {0};
	struct past_interval i;
	struct lab lab;

	begin(&lab, "past.db");
	two_files(&lab);
	assert_int_equal(next(&lab, &past, &i), 0);
	sent(&past, &i);
	spoil_the_first_file(&lab);
	assert_int_equal(next(&lab, &past, &i), 0);
	assert_int_equal(i.file, 2);
	assert_memory_equal(i.unreadable, "000001-", 7);
	assert_int_equal(i.missed_from_ns, past.next_wall_ns);
	sent(&past, &i);
	assert_int_equal(next(&lab, &past, &i), 0);
	assert_string_equal(i.unreadable, "");       /* once */
	end(&lab);
}

TEST(without_a_history_there_is_none)
{
	struct past_interval i;
	struct lab lab;

	begin(&lab, "past.db");
	assert_int_equal(next(&lab, &(struct ship_past){0}, &i), ERR_NOT_FOUND);
	end(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_follow_each_other_through_all_files),
		cmocka_unit_test(an_interval_ends_at_a_whole_minute),
		cmocka_unit_test(what_is_being_written_waits_until_it_is_whole),
		cmocka_unit_test(a_file_that_cannot_be_read_is_named_and_its_time_is_missed),
		cmocka_unit_test(without_a_history_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
