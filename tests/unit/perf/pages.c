/* Which pages an unmapping takes away. */
#include "source/perf/pages.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

struct heard {
	unsigned n;
	uint64_t sum;
};

static void hear(void *ctx, const struct page *page, uint64_t time_ns)
{
	struct heard *h = ctx;

	assert_true(page->time_ns <= time_ns);
	h->n++;
	h->sum += page->number;
}

static struct page_list list(uint32_t owner)
{
	return (struct page_list){.owner = owner, .first = SLOTS_NONE};
}

static void add(struct pages *p, struct page_list *l, uint64_t number, uint64_t time_ns)
{
	const struct page page = {.number = number, .time_ns = time_ns};

	assert_true(pages_add(p, l, &page));
}

TEST(range_takes_its_pages_of_one_process_only)
{
	struct page_list a = list(1), b = list(2);
	struct heard heard = {0};
	struct pages p = {0};
	uint64_t i;

	assert_int_equal(pages_init(&p, 4096), 0);
	for (i = 0; i < 1000; i++) {
		add(&p, &a, 10000 + i * 7, 1);
		add(&p, &b, 10000 + i * 7, 1);
	}
	pages_unmap(&p, &a, 10007, 10021, 5, hear, &heard);        /* one chunk */
	assert_int_equal(heard.n, 3);
	assert_int_equal(heard.sum, 10007 + 10014 + 10021);
	pages_unmap(&p, &a, 10000, 12000, 5, hear, &heard);        /* some */
	assert_int_equal(heard.n, 286);
	pages_unmap(&p, &a, 0, UINT64_MAX, 5, hear, &heard);       /* more than there are pages */
	assert_int_equal(heard.n, 1000);
	assert_int_equal(a.n, 0);
	assert_int_equal(a.first, SLOTS_NONE);
	assert_int_equal(b.n, 1000);
	assert_int_equal(p.all.used, 1000);
	pages_free(&p);
}

TEST(what_was_touched_later_stays)
{
	struct page_list l = list(1);
	struct heard heard = {0};
	struct pages p = {0};

	assert_int_equal(pages_init(&p, 16), 0);
	add(&p, &l, 5, 10);
	add(&p, &l, 6, 30);
	pages_unmap(&p, &l, 0, 100, 20, hear, &heard);
	assert_int_equal(heard.n, 1);
	assert_int_equal(pages_get(&p, l.first)->number, 6);
	pages_free(&p);
}

/* Against a plain array, with pages in few chunks so that their lists are long. */
TEST(random_operations_agree_with_an_array)
{
	enum { NUMBERS = 3000, STEPS = 20000 };
	static bool there[2][NUMBERS];
	struct page_list lists[2] = {list(0), list(1)};
	struct pages p = {0};
	unsigned step, i, left[2] = {0};

	memset(there, 0, sizeof(there));
	assert_int_equal(pages_init(&p, 8192), 0);
	srand(7);
	for (step = 0; step < STEPS; step++) {
		unsigned who = (unsigned)rand() % 2, from = (unsigned)rand() % NUMBERS;
		unsigned to = from + (unsigned)rand() % 40, expected = 0;
		struct heard heard = {0};

		if (step % 16) {
			if (!there[who][from])
				add(&p, &lists[who], from, step);
			there[who][from] = true;
			continue;
		}
		for (i = from; i <= to && i < NUMBERS; i++) {
			expected += there[who][i];
			there[who][i] = false;
		}
		pages_unmap(&p, &lists[who], from, to, step, hear, &heard);
		assert_int_equal(heard.n, expected);
	}
	for (i = 0; i < NUMBERS; i++) {
		left[0] += there[0][i];
		left[1] += there[1][i];
	}
	assert_int_equal(lists[0].n, left[0]);
	assert_int_equal(p.all.used, left[0] + left[1]);
	pages_free(&p);
}

TEST(full_table_refuses)
{
	struct page_list l = list(1);
	const struct page page = {.number = 1, .time_ns = 1};
	struct pages p = {0};
	uint32_t n = 0;

	assert_int_equal(pages_init(&p, 1), 0);
	while (pages_add(&p, &l, &page))
		n++;
	assert_int_equal(n, l.n);
	pages_remove(&p, &l, l.first);
	assert_true(pages_add(&p, &l, &page));
	pages_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(range_takes_its_pages_of_one_process_only),
		cmocka_unit_test(what_was_touched_later_stays),
		cmocka_unit_test(random_operations_agree_with_an_array),
		cmocka_unit_test(full_table_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
