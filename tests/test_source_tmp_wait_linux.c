/* What ends the wait of a source of programs that leave files in /tmp; an eventfd stands for inotify. */
#include "source/tmp_wait_linux.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_NS (3600 * NS_PER_SEC)

static bool can_be_read(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void a_wake_or_what_is_due_ends_it(void **state)
{
	struct tmp_wait w = {.wake = os_wake_new()};
	uint64_t due_ns = os_now_ns() + NS_PER_MS;
	struct pollfd p[2];

	(void)state;
	assert_non_null(w.wake);
	tmp_wait(&w, due_ns, -1, p, 0);
	assert_true(os_now_ns() >= due_ns);
	tmp_wait(&w, 0, -1, p, 0);
	os_wake(w.wake);
	tmp_wait(&w, os_now_ns() + HOUR_NS, -1, p, 0);
	assert_false(can_be_read(os_wake_fd(w.wake)));
	assert_int_equal(w.noisy_until_ns, 0);
	os_wake_free(w.wake);
}

static void a_descriptor_of_its_own_ends_it_and_is_said(void **state)
{
	struct tmp_wait w = {.wake = os_wake_new(), .gather_ns = NS_PER_MS};
	int quiet = eventfd(0, 0), ready = eventfd(1, 0);
	struct pollfd p[4] = {{.fd = quiet, .events = POLLIN}, {.fd = ready, .events = POLLIN}};

	(void)state;
	assert_non_null(w.wake);
	tmp_wait(&w, os_now_ns() + HOUR_NS, -1, p, 2);
	assert_int_equal(p[0].revents, 0);
	assert_int_equal(p[1].revents, POLLIN);
	close(quiet);
	close(ready);
	os_wake_free(w.wake);
}

/* It is not read here: so it would end every wait at once. */
static void a_directory_is_not_listened_to_for_a_while_after_a_notice(void **state)
{
	struct tmp_wait w = {.wake = os_wake_new()};
	int watch = eventfd(1, 0);
	uint64_t noisy_until_ns;
	struct pollfd p[2];

	(void)state;
	assert_non_null(w.wake);
	tmp_wait(&w, os_now_ns() + HOUR_NS, watch, p, 0);
	noisy_until_ns = w.noisy_until_ns;
	assert_true(noisy_until_ns > 0);
	tmp_wait(&w, os_now_ns() + HOUR_NS, watch, p, 0);
	assert_true(os_now_ns() >= noisy_until_ns);
	tmp_wait(&w, os_now_ns() + HOUR_NS, watch, p, 0);
	assert_true(w.noisy_until_ns > noisy_until_ns);
	close(watch);
	os_wake_free(w.wake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wake_or_what_is_due_ends_it),
		cmocka_unit_test(a_descriptor_of_its_own_ends_it_and_is_said),
		cmocka_unit_test(a_directory_is_not_listened_to_for_a_while_after_a_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
