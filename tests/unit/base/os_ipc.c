#include "base/os.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct question {
	const char *path, *line;
	uint64_t timeout_ns;
	struct buf answer;
	int rc;
	uint64_t took_ns;
};

static void ask(void *ctx)
{
	struct question *q = ctx;
	uint64_t before = os_now_ns();

	q->rc = os_ipc_ask(q->path, q->line, q->timeout_ns, &q->answer, NULL);
	q->took_ns = os_now_ns() - before;
}

static struct os_thread *ask_on_a_thread(struct question *q)
{
	struct os_thread *thread = NULL;

	assert_int_equal(os_thread_start("asker", ask, q, &thread, NULL), 0);
	return thread;
}

/* Control paths are short: a Unix socket's may have 107 bytes, less than TEST_TMP may need. */
static const char *control_path(const char *name)
{
	static char path[80];

	snprintf(path, sizeof(path), "build/t%u-%s", os_pid(), name);
	return path;
}

static struct os_ipc *listen_on(const char *path)
{
	struct os_ipc *ipc = NULL;
	struct err err = {0};

	if (os_ipc_listen(path, &ipc, &err) != 0)
		fail_msg("%s", err.text);
	return ipc;
}

TEST(os_ipc_carries_a_line_each_way)
{
	struct question q = {.path = control_path("a"), .line = "{\"cmd\":\"status\"}",
			     .timeout_ns = 10 * NS_PER_SEC};
	struct os_ipc *ipc = listen_on(q.path);
	struct os_thread *thread = ask_on_a_thread(&q);
	struct os_ipc_call *call = NULL;
	struct buf line = {0};

	assert_int_equal(os_ipc_next(ipc, 10 * NS_PER_SEC, &line, &call, NULL), 0);
	assert_string_equal(buf_text(&line), "{\"cmd\":\"status\"}");
	os_ipc_answer(call, "{\"ok\":true}");
	os_thread_join(thread);
	assert_int_equal(q.rc, 0);
	assert_string_equal(buf_text(&q.answer), "{\"ok\":true}");
	os_ipc_close(ipc);
	buf_free(&line);
	buf_free(&q.answer);
}

/* Four ask at once; each gets the answer to its own line, in whatever order they come. */
TEST(os_ipc_answers_callers_one_after_the_other)
{
	static const char *const lines[] = {"one", "two", "three", "four"};
	const char *path = control_path("b");
	struct os_ipc *ipc = listen_on(path);
	struct question q[4];
	struct os_thread *threads[4];
	struct os_ipc_call *call;
	struct buf line = {0};
	int i;

	memset(q, 0, sizeof(q));
	for (i = 0; i < 4; i++) {
		q[i].path = path;
		q[i].line = lines[i];
		q[i].timeout_ns = 10 * NS_PER_SEC;
		threads[i] = ask_on_a_thread(&q[i]);
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(os_ipc_next(ipc, 10 * NS_PER_SEC, &line, &call, NULL), 0);
		os_ipc_answer(call, buf_text(&line));
	}
	for (i = 0; i < 4; i++) {
		os_thread_join(threads[i]);
		assert_int_equal(q[i].rc, 0);
		assert_string_equal(buf_text(&q[i].answer), lines[i]);
		buf_free(&q[i].answer);
	}
	os_ipc_close(ipc);
	buf_free(&line);
}

TEST(os_ipc_ask_where_nobody_listens_is_not_found)
{
	const char *path = control_path("c");
	struct buf answer = {0};
	struct err err = {0};

	assert_int_equal(os_ipc_ask(path, "x", NS_PER_SEC, &answer, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, path));
	os_ipc_close(listen_on(path));
	assert_int_equal(os_ipc_ask(path, "x", NS_PER_SEC, &answer, NULL), ERR_NOT_FOUND);
	buf_free(&answer);
}

TEST(os_ipc_both_sides_end_when_their_time_has_passed)
{
	const char *path = control_path("d");
	struct os_ipc *ipc = listen_on(path);
	struct question q = {.path = path, .line = "x", .timeout_ns = 100 * NS_PER_MS};
	struct os_ipc_call *call = NULL;
	struct buf line = {0};
	uint64_t before = os_now_ns();

	assert_int_equal(os_ipc_next(ipc, 0, &line, &call, NULL), ERR_NOT_FOUND);
	assert_int_equal(os_ipc_next(ipc, 50 * NS_PER_MS, &line, &call, NULL), ERR_NOT_FOUND);
	assert_true(os_now_ns() - before >= 49 * NS_PER_MS);
	ask(&q);
	assert_int_equal(q.rc, ERR_IO);
	assert_true(q.took_ns >= 90 * NS_PER_MS && q.took_ns < 5 * NS_PER_SEC);
	os_ipc_close(ipc);
	buf_free(&line);
	buf_free(&q.answer);
}

TEST(os_ipc_carries_the_longest_line_and_refuses_a_longer_one)
{
	const char *path = control_path("e");
	struct os_ipc *ipc = listen_on(path);
	char *text = calloc(1, OS_IPC_MAX_BYTES + 2);
	struct question q = {.path = path, .line = text, .timeout_ns = 10 * NS_PER_SEC};
	struct os_ipc_call *call = NULL;
	struct buf line = {0};
	struct os_thread *thread;

	assert_non_null(text);
	memset(text, 'x', OS_IPC_MAX_BYTES);
	thread = ask_on_a_thread(&q);
	assert_int_equal(os_ipc_next(ipc, 10 * NS_PER_SEC, &line, &call, NULL), 0);
	assert_int_equal(line.len, OS_IPC_MAX_BYTES);
	os_ipc_answer(call, text);
	os_thread_join(thread);
	assert_int_equal(q.rc, 0);
	assert_int_equal(q.answer.len, OS_IPC_MAX_BYTES);

	text[OS_IPC_MAX_BYTES] = 'x';
	buf_reset(&q.answer);
	thread = ask_on_a_thread(&q);
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), ERR_NOT_FOUND);
	os_thread_join(thread);
	assert_true(q.rc != 0);
	os_ipc_close(ipc);
	buf_free(&line);
	buf_free(&q.answer);
	free(text);
}

TEST(os_ipc_call_may_be_answered_after_its_caller_left)
{
	const char *path = control_path("f");
	struct os_ipc *ipc = listen_on(path);
	struct question q = {.path = path, .line = "x", .timeout_ns = 50 * NS_PER_MS};
	struct os_thread *thread = ask_on_a_thread(&q);
	struct os_ipc_call *call = NULL;
	struct buf line = {0};

	assert_int_equal(os_ipc_next(ipc, 10 * NS_PER_SEC, &line, &call, NULL), 0);
	os_thread_join(thread);
	os_ipc_answer(call, "too late");
	assert_int_equal(q.rc, ERR_IO);
	os_ipc_close(ipc);
	buf_free(&line);
	buf_free(&q.answer);
}

static int listen_once(void *ctx)
{
	struct os_ipc *ipc = NULL;
	int rc = os_ipc_listen(ctx, &ipc, NULL);

	os_ipc_close(ipc);
	return rc;
}

/* A minute: only what ends the waits lets this test pass in time. */
#define LONG_NS (60 * NS_PER_SEC)

static void wake_soon(void *ctx)
{
	os_sleep_ns(20 * NS_PER_MS);
	os_wake(ctx);
}

TEST(os_wake_ends_the_wait_that_is_under_way_or_comes_next)
{
	struct os_wake *wake = os_wake_new();
	struct os_thread *thread = NULL;
	uint64_t before = os_now_ns();

	assert_non_null(wake);
	os_wake(wake);
	os_wake(wake);
	os_wake_wait(wake, NULL, false, LONG_NS);
	os_wake_wait(wake, NULL, false, 20 * NS_PER_MS);     /* both were one */
	assert_true(os_now_ns() - before >= 19 * NS_PER_MS);
	assert_int_equal(os_thread_start("waker", wake_soon, wake, &thread, NULL), 0);
	os_wake_wait(wake, NULL, true, LONG_NS);
	os_thread_join(thread);
	assert_true(os_now_ns() - before < LONG_NS / 2);
	os_wake(NULL);
	os_wake_free(wake);
	os_wake_free(NULL);
}

TEST(os_wake_wait_ends_when_somebody_calls)
{
	struct question q = {.path = control_path("w"), .line = "x", .timeout_ns = 10 * NS_PER_SEC};
	struct os_ipc *ipc = listen_on(q.path);
	struct os_wake *wake = os_wake_new();
	struct os_thread *thread = ask_on_a_thread(&q);
	struct os_ipc_call *call = NULL;
	struct buf line = {0};
	uint64_t before = os_now_ns();

	os_wake_wait(wake, ipc, false, LONG_NS);
	assert_int_equal(os_ipc_next(ipc, 0, &line, &call, NULL), 0);
	os_ipc_answer(call, "y");
	os_thread_join(thread);
	assert_string_equal(buf_text(&q.answer), "y");
	assert_true(os_now_ns() - before < LONG_NS / 2);
	os_wake_free(wake);
	os_ipc_close(ipc);
	buf_free(&line);
	buf_free(&q.answer);
}

TEST(os_ipc_listen_reports_lack_of_memory)
{
	assert_in_range(alloc_walk(listen_once, (void *)(uintptr_t)control_path("g")), 2, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_ipc_carries_a_line_each_way),
		cmocka_unit_test(os_ipc_answers_callers_one_after_the_other),
		cmocka_unit_test(os_ipc_ask_where_nobody_listens_is_not_found),
		cmocka_unit_test(os_ipc_both_sides_end_when_their_time_has_passed),
		cmocka_unit_test(os_ipc_carries_the_longest_line_and_refuses_a_longer_one),
		cmocka_unit_test(os_ipc_call_may_be_answered_after_its_caller_left),
		cmocka_unit_test(os_ipc_listen_reports_lack_of_memory),
		cmocka_unit_test(os_wake_ends_the_wait_that_is_under_way_or_comes_next),
		cmocka_unit_test(os_wake_wait_ends_when_somebody_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
