/* CPU time by unit, container, pod and service: sums, and their bounds. */
#include "engine/homes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(struct homes *h, struct buf *out)
{
	struct json j = {.out = out};

	buf_reset(out);
	json_open(&j, '[');
	homes_put(h, &j);
	json_close(&j, ']');
	return buf_text(out);
}

static struct process *process_in(struct processes *all, uint32_t pid, const char *home)
{
	struct process *p = process_add(all, pid, 1, 0, 1, "p");

	process_set_home(p, home, 0);
	return p;
}

TEST(time_is_summed_up_by_unit_and_service)
{
	struct processes *all = NULL;
	struct homes h = {0};
	struct buf out = {0};
	struct process *shop, *moves;

	assert_int_equal(processes_new(&all, NULL), 0);
	assert_int_equal(homes_init(&h, NULL), 0);
	shop = process_in(all, 5, "/system.slice/shop.service/a\nto\"day");
	moves = process_in(all, 6, "/system.slice/shop.service/b\nto\"day");
	homes_add(&h, shop, 1e9, 10);
	homes_add(&h, moves, 5e8, 20);
	homes_add(&h, NULL, 2e9, 30);
	assert_string_equal(text_of(&h, &out),
			    "[{\"unit\":\"shop.service\",\"service\":\"to\\\"day\",\"cpu_s\":1.5},"
			    "{\"cpu_s\":2}]");
	process_set_home(moves, "/user.slice/x.scope", 40);
	homes_add(&h, moves, 25e7, 50);
	homes_add(&h, moves, 25e7, 50);
	assert_non_null(strstr(text_of(&h, &out), ",{\"unit\":\"x.scope\",\"cpu_s\":0.5}]"));
	buf_free(&out);
	homes_free(&h);
	processes_free(all);
}

/* Anybody may make control groups, and choose their names. */
TEST(rows_are_bounded_and_idle_ones_are_replaced)
{
	char home[400];
	struct processes *all = NULL;
	struct homes h = {0};
	struct buf out = {0};
	uint32_t i;

	assert_int_equal(processes_new(&all, NULL), 0);
	assert_int_equal(homes_init(&h, NULL), 0);
	for (i = 0; i < 1000; i++) {
		snprintf(home, sizeof(home), "/system.slice/%04u-%0100u.service", i, i);
		homes_add(&h, process_in(all, i + 10, home), 1e9, i);
	}
	assert_in_range(h.n, 100, HOMES_MAX);
	assert_in_range(h.bytes, HOMES_MAX_BYTES - 200, HOMES_MAX_BYTES);
	snprintf(home, sizeof(home), ",{\"unit\":\"(other)\",\"cpu_s\":%u}]", 1000 - h.n);
	assert_non_null(strstr(text_of(&h, &out), home));
	assert_in_range(out.len, 1000, 2 * HOMES_MAX_BYTES);

	snprintf(home, sizeof(home), "/late-%0100u.service", 1);
	homes_add(&h, process_in(all, 5000, home), 1e9, HOMES_IDLE_NS - 1);
	assert_null(strstr(text_of(&h, &out), "late-"));
	homes_add(&h, process_in(all, 5001, home), 1e9, HOMES_IDLE_NS + 1);
	assert_non_null(strstr(text_of(&h, &out), "1.service\",\"cpu_s\":1},{\"unit\":\"0002-"));
	assert_null(strstr(text_of(&h, &out), "\"0000-"));
	/* A process whose row has gone is not counted in the one that took its place. */
	homes_add(&h, process_find(all, 10, 1), 1e9, HOMES_IDLE_NS + 2);
	assert_non_null(strstr(text_of(&h, &out), "1.service\",\"cpu_s\":1},{\"unit\":\"0"));
	buf_free(&out);
	homes_free(&h);
	processes_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_summed_up_by_unit_and_service),
		cmocka_unit_test(rows_are_bounded_and_idle_ones_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
