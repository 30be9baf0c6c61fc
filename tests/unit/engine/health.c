/* The word of health, in the time of events. */
#include "tests/support/test.h"

#include "engine/health.h"

#include "base/os.h"

#include <string.h>

#define SECOND (uint64_t)NS_PER_SEC

TEST(the_worst_reason_gives_the_word)
{
	struct health h = {0};

	assert_string_equal(health_word(h.level), "ok");
	health_add(&h, HEALTH_HISTORY, HEALTH_DEGRADED, "its disk is gone");
	assert_string_equal(health_word(h.level), "degraded");
	health_add(&h, HEALTH_STALL, HEALTH_FAILING, "perf stands still");
	health_add(&h, HEALTH_STALL, HEALTH_DEGRADED, "less than that");
	assert_string_equal(health_word(h.level), "failing");
	assert_string_equal(h.reasons[HEALTH_STALL].text, "perf stands still");
	health_clear(&h);
	assert_int_equal(h.level, HEALTH_OK);
	assert_string_equal(h.reasons[HEALTH_STALL].text, "");
}

TEST(every_kind_has_a_name)
{
	int k;

	for (k = 0; k < HEALTH_KINDS; k++)
		assert_non_null(health_kind_text((enum health_kind)k));
}

static enum health_level level_of(struct health *h, uint64_t s, uint64_t samples, uint64_t lost)
{
	health_clear(h);
	health_add_losses(h, 1 + s * SECOND, samples, lost);
	return h->level;
}

TEST(losses_count_by_their_share_of_the_last_minutes)
{
	struct health h = {0};

	assert_int_equal(level_of(&h, 0, 0, 0), HEALTH_OK);
	assert_int_equal(level_of(&h, 1, 400, 500), HEALTH_OK);          /* of too few */
	assert_int_equal(level_of(&h, 10, 10000, 90), HEALTH_OK);
	assert_int_equal(level_of(&h, 20, 10000, 200), HEALTH_DEGRADED);
	assert_int_equal(level_of(&h, 30, 10000, 1200), HEALTH_FAILING);
	assert_non_null(strstr(h.reasons[HEALTH_LOSSES].text, "1200 of 11200"));
	assert_int_equal(level_of(&h, 61, 20000, 1200), HEALTH_DEGRADED);
	assert_int_equal(level_of(&h, 122, 40000, 1200), HEALTH_OK);     /* that was before */
}

TEST(a_failure_is_told_once_in_ten_minutes)
{
	enum health_kind kind = HEALTH_KINDS;
	struct health h = {0};
	uint64_t now_ns = SECOND;

	assert_false(health_next_failure(&h, now_ns, &kind));
	health_add(&h, HEALTH_HISTORY, HEALTH_DEGRADED, "not told");
	health_add(&h, HEALTH_STORE, HEALTH_FAILING, "told");
	assert_true(health_next_failure(&h, now_ns, &kind));
	assert_int_equal(kind, HEALTH_STORE);
	assert_false(health_next_failure(&h, now_ns, &kind));
	assert_false(health_recovered(&h));
	health_clear(&h);
	assert_true(health_recovered(&h));
	assert_false(health_recovered(&h));
	health_add(&h, HEALTH_STORE, HEALTH_FAILING, "again");
	assert_false(health_next_failure(&h, now_ns + (HEALTH_AGAIN_S - 1) * SECOND, &kind));
	assert_true(health_next_failure(&h, now_ns + HEALTH_AGAIN_S * SECOND, &kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_worst_reason_gives_the_word),
		cmocka_unit_test(every_kind_has_a_name),
		cmocka_unit_test(losses_count_by_their_share_of_the_last_minutes),
		cmocka_unit_test(a_failure_is_told_once_in_ten_minutes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
