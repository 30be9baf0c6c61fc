#include "source/host/death.h"

#include "base/bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define LAST_S 1795230600u

static void the_count_of_oom_kills_is_read(void **state)
{
	uint64_t n = 0;

	(void)state;
	assert_true(death_parse_events("low 0\nhigh 3\nmax 9\noom 1\noom_kill 2\n", &n));
	assert_int_equal(n, 2);
	assert_false(death_parse_events("oom_kill_x 2\n", &n));
	assert_false(death_parse_events("oom_kill many\n", &n));
}

static void a_noted_group_has_a_path_and_a_number(void **state)
{
	char path[DEATH_KILLS_BYTES];
	uint64_t n = 0;

	(void)state;
	assert_true(death_parse_kills("/system.slice/re corder.service 7", path, &n));
	assert_string_equal(path, "/system.slice/re corder.service");
	assert_int_equal(n, 7);
	assert_false(death_parse_kills("", path, &n));
	assert_false(death_parse_kills("/a", path, &n));
	assert_false(death_parse_kills("/a b", path, &n));
	assert_false(death_parse_kills("/a/../../etc 1", path, &n));
}

static enum death_word word_of(const char *record, uint32_t pid, uint64_t *time_ns)
{
	return death_parse_kmsg(record, strlen(record), pid, time_ns);
}

static void the_kernel_names_what_it_killed(void **state)
{
	static const char oom[] = "3,977,5140900,-;Out of memory: Killed process 4711 (recorder) "
				  "total-vm:92684kB";
	static const char crash[] = "6,978,77,-;recorder[4711]: segfault at 0 ip 0000 sp 0000";
	uint64_t time_ns;

	(void)state;
	assert_int_equal(word_of(oom, 4711, &time_ns), DEATH_OOM);
	assert_int_equal(time_ns, 5140900000);
	assert_int_equal(word_of(oom, 471, &time_ns), DEATH_NO_WORD);
	assert_int_equal(word_of(crash, 4711, &time_ns), DEATH_CRASH);
	assert_int_equal(word_of(crash, 11, &time_ns), DEATH_NO_WORD);
	assert_int_equal(word_of("", 11, &time_ns), DEATH_NO_WORD);
}

static void put(uint8_t *record, unsigned type, const char *user, uint32_t time_s)
{
	memset(record, 0, 384);
	record[0] = (uint8_t)type;
	snprintf((char *)record + 44, 32, "%s", user);
	put_le32(record + 340, time_s);
}

static void a_shutdown_before_a_boot_was_in_order(void **state)
{
	uint8_t all[4 * 384];
	struct death_boots b;

	(void)state;
	put(all, 2, "reboot", LAST_S - 9000);
	put(all + 384, 7, "alice", LAST_S - 100);
	put(all + 768, 1, "shutdown", LAST_S + 5);
	put(all + 1152, 2, "reboot", LAST_S + 40);
	death_parse_wtmp(all, sizeof(all), LAST_S, &b);
	assert_true(b.booted && b.shut_down);
	assert_int_equal(b.boot_s, LAST_S + 40);
}

static void a_boot_alone_was_not(void **state)
{
	uint8_t all[2 * 384];
	struct death_boots b;

	(void)state;
	put(all, 2, "reboot", LAST_S + 40);
	put(all + 384, 1, "shutdown", LAST_S + 90);          /* a later one */
	death_parse_wtmp(all, sizeof(all), LAST_S, &b);
	assert_true(b.booted);
	assert_false(b.shut_down);
	death_parse_wtmp(all, 383, LAST_S, &b);
	assert_false(b.booted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_count_of_oom_kills_is_read),
		cmocka_unit_test(a_noted_group_has_a_path_and_a_number),
		cmocka_unit_test(the_kernel_names_what_it_killed),
		cmocka_unit_test(a_shutdown_before_a_boot_was_in_order),
		cmocka_unit_test(a_boot_alone_was_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
