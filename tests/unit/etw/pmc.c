/* What Windows says that a processor counts, and what people ask of it. */
#include "source/etw/pmc.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"

#include <stdlib.h>

static struct etw_bytes list;

static void add(uint32_t id, uint32_t least, const char *name, bool last)
{
	uint32_t from = list.n, size = 24 + 2 * ((uint32_t)strlen(name) + 1);

	etw_int(&list, last ? 0 : (size + 7) & ~7u, 4);
	etw_int(&list, id, 4);
	etw_int(&list, least, 4);
	etw_int(&list, 1000000, 4);
	etw_int(&list, 0, 8);
	etw_text16(&list, name);
	while (!last && (list.n - from) % 8)
		etw_int(&list, 0, 1);
}

static int begin(void **state)
{
	(void)state;
	list.n = 0;
	add(0, 1221, "Timer", false);
	add(6, 4096, "BranchMispredictions", false);
	add(11, 200000, "CacheMisses", true);
	return 0;
}

static const char *refused(const char *text)
{
	static struct err err;
	struct etw_pmcs p;

	err.text[0] = '\0';
	assert_int_not_equal(etw_pmcs_read(text, list.at, list.n, &p, &err), 0);
	return err.text;
}

TEST(counters_are_found_by_their_names_in_any_case)
{
	struct etw_pmcs p;

	assert_int_equal(etw_pmcs_read("branchmispredictions:5000,CacheMisses", list.at, list.n, &p,
				       NULL), 0);
	assert_int_equal(p.n, 2);
	assert_string_equal(p.all[0].name, "BranchMispredictions");
	assert_true(p.all[0].id == 6 && p.all[0].interval == 5000);
	/* The usual period is below what this one allows. */
	assert_true(p.all[1].id == 11 && p.all[1].interval == 200000);
	assert_ptr_equal(etw_pmcs_find(&p, 11), &p.all[1]);
	assert_null(etw_pmcs_find(&p, 0));
}

TEST(what_is_not_counted_is_refused_with_the_nearest)
{
	char many[9 * sizeof("CacheMisses,")] = "";
	struct etw_pmcs p;
	struct err err = {0};

	assert_non_null(strstr(refused("BranchMispredicts"), "nearest are BranchMispredictions"));
	assert_non_null(strstr(refused("CacheMisses@7"), "from 200000 to 1000000"));
	assert_non_null(strstr(refused("CacheMisses@"), "from 200000 to 1000000"));
	assert_non_null(strstr(refused("CacheMisses@300000x"), "from 200000 to 1000000"));
	assert_non_null(strstr(refused("Timer"), "no counter 'Timer'"));
	assert_non_null(strstr(refused(",CacheMisses"), "write NAME or NAME@PERIOD"));
	for (int i = 0; i < 9; i++)
		strcat(many, i ? ",CacheMisses" : "CacheMisses");
	assert_non_null(strstr(refused(many), "over 8 counters"));
	/* Only the timer, as on most virtual machines; or no list at all. */
	assert_int_equal(etw_pmcs_read("CacheMisses", list.at, 40, &p, &err), ERR_UNSUPPORTED);
	assert_int_equal(etw_pmcs_read("CacheMisses", NULL, 0, &p, &err), ERR_UNSUPPORTED);
}

TEST(a_damaged_list_ends_where_it_is_cut)
{
	struct etw_pmc p;
	uint32_t n, cut;
	size_t at;

	for (cut = 0; cut <= list.n; cut++) {
		uint8_t *exact = malloc(cut + 1);

		memcpy(exact, list.at, cut);
		for (n = 0, at = 0; etw_pmc_next(exact, cut, &at, &p); n++)
			;
		assert_in_range(n, 0, 3);
		free(exact);
	}
	list.at[0] = 1;                      /* an entry inside the first one */
	for (n = 0, at = 0; etw_pmc_next(list.at, list.n, &at, &p); n++)
		;
	assert_in_range(n, 1, list.n);
}

TEST(they_are_listed)
{
	struct buf out = {0};

	etw_pmc_list("cpu-counter", false, list.at, list.n, &out);
	assert_string_equal(buf_text(&out),
			    "cpu-counter/BranchMispredictions  period 4096 to 1000000\n"
			    "cpu-counter/CacheMisses  period 200000 to 1000000\n");
	buf_reset(&out);
	etw_pmc_list(NULL, true, list.at, list.n, &out);
	assert_string_equal(buf_text(&out), "{\"provider\":\"cpu-counter\",\"name\":"
					    "\"BranchMispredictions\",\"period_min\":4096,"
					    "\"period_max\":1000000}\n"
					    "{\"provider\":\"cpu-counter\",\"name\":"
					    "\"CacheMisses\",\"period_min\":200000,"
					    "\"period_max\":1000000}\n");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(counters_are_found_by_their_names_in_any_case, begin),
		cmocka_unit_test_setup(what_is_not_counted_is_refused_with_the_nearest, begin),
		cmocka_unit_test_setup(a_damaged_list_ends_where_it_is_cut, begin),
		cmocka_unit_test_setup(they_are_listed, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
