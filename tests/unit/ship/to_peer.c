/* Which recorders a rule's ;Peers= names, and what snapshot --peers makes of a list. */
#include "ship/target.h"
#include "tests/support/test.h"

static bool is_peer(const char *url, const char *rule)
{
	struct target t;
	bool is;

	assert_int_equal(target_parse(url, &t, NULL), 0);
	is = target_is_peer_of(&t, rule);
	target_free(&t);
	return is;
}

TEST(a_rule_names_peers_by_their_hosts)
{
	assert_true(is_peer("peer+https://web1:9427", "R:>5;Peers=web1"));
	assert_true(is_peer("peer+https://WEB1", "R:>5;peers=db*,web*"));
	assert_true(is_peer("peer+https://web1.example/", "R:>5;Peers=*.example;Stacks"));
	assert_true(is_peer("peer+https://web1;CA=f", "R:>5;Stacks;Peers=w*1"));
	assert_true(is_peer("peer+http://[::1]:9427", "R:>5;Peers=[::1]"));
	assert_false(is_peer("peer+https://web10", "R:>5;Peers=web1"));
	assert_false(is_peer("peer+https://web1", "R:>5;Peers=web10"));
	assert_false(is_peer("peer+https://web1:9427", "R:>5;Peers=*9427"));
	assert_false(is_peer("peer+https://web1", "R:>5;Peers=db*;Stacks=web1"));
	assert_false(is_peer("peer+https://web1", "R:>5"));
	assert_false(is_peer("peer+https://web1", NULL));
}

static void lists(const char *list, const char *const *want)
{
	struct buf target = {0};

	while (target_next_peer(&list, &target)) {
		assert_string_equal(buf_text(&target), *want++);
		buf_reset(&target);
	}
	assert_null(*want);
	assert_true(!*list || *list == ';' || *list == ',');
	buf_free(&target);
}

TEST(each_of_a_list_has_the_keys_at_its_end)
{
	lists("web1,web2:9500;Auth=f;CA=g",
	      (const char *const[]){"peer+https://web1;Auth=f;CA=g",
				    "peer+https://web2:9500;Auth=f;CA=g", NULL});
	lists("127.0.0.1:9500,[::1],http://a,https://b",
	      (const char *const[]){"peer+http://127.0.0.1:9500", "peer+http://[::1]",
				    "peer+http://a", "peer+https://b", NULL});
	lists("localhost:9500,localhost.example.com,127.0.0.10",
	      (const char *const[]){"peer+http://localhost:9500",
				    "peer+https://localhost.example.com",
				    "peer+https://127.0.0.10", NULL});
	lists(",web1", (const char *const[]){NULL});
	lists("", (const char *const[]){NULL});
}

TEST(the_secret_goes_to_this_machine_or_by_https)
{
	struct target t;

	assert_int_equal(target_parse("peer+http://web1:9427;Auth=f", &t, NULL), ERR_USAGE);
	assert_int_equal(target_parse("peer+https://web1;Format=pprof", &t, NULL), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_names_peers_by_their_hosts),
		cmocka_unit_test(each_of_a_list_has_the_keys_at_its_end),
		cmocka_unit_test(the_secret_goes_to_this_machine_or_by_https),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
