/*
 * Requests to a .NET program and its answers, byte by byte, and the queue that sorts events by
 * time.
 */
#include "base/array.h"
#include "source/dotnet/ipc.h"
#include "source/dotnet/event_queue.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(what_is_asked_for_is_as_the_protocol_has_it)
{
	static const char wanted[] = "DOTNET_IPC_V1\0\x39\0\2\3\0\0"
				     "\4\0\0\0\1\0\0\0\0\1\0\0\0"
				     "\1\x80\0\0\0\0\0\0\4\0\0\0"
				     "\2\0\0\0A\0\0\0\0\0\0\0";
	const struct dotnet_provider provider = {.name = "A", .keywords = 0x8001, .level = 4};
	struct buf out = {0};

	dotnet_ask_collect(&out, &provider, 1, 4, false);
	assert_int_equal(out.len, 57);
	assert_memory_equal(out.data, wanted, 57);
	buf_reset(&out);
	dotnet_ask_who(&out);
	assert_int_equal(out.len, 20);
	assert_memory_equal(out.data, "DOTNET_IPC_V1\0\x14\0\4\0\0\0", 20);
	buf_reset(&out);
	dotnet_ask_stop(&out, 0x0102030405060708u);
	assert_int_equal(out.len, 28);
	assert_memory_equal(out.data, "DOTNET_IPC_V1\0\x1c\0\2\1\0\0\x8\7\6\5\4\3\2\1", 28);
	buf_free(&out);
}

TEST(an_answer_is_whole_refused_or_nonsense)
{
	static const char yes[] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x8\7\6\5\4\3\2\1Nettrace";
	static const char no[] = "DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80";
	struct dotnet_answer answer;
	struct err err;
	size_t n;

	for (n = 0; n < 28; n++)
		assert_int_equal(dotnet_answer(yes, n, &answer, &err), 0);
	/* The stream follows. */
	assert_int_equal(dotnet_answer(yes, sizeof(yes) - 1, &answer, &err), 28);
	assert_false(answer.refused);
	assert_true(answer.value == 0x0102030405060708u);
	assert_int_equal(dotnet_answer(no, sizeof(no) - 1, &answer, &err), 24);
	assert_true(answer.refused && answer.value == 0x80131385u);
	assert_int_equal(dotnet_answer("HTTP", 4, &answer, &err), ERR_FORMAT);
	assert_int_equal(dotnet_answer("DOTNET_IPC_V1\0\x02\0\xff\0\0\0", 20, &answer, &err),
			 ERR_FORMAT);
	assert_int_equal(dotnet_answer("DOTNET_IPC_V1\0\xff\xff\xff\0\0\0", 20, &answer, &err),
			 ERR_FORMAT);
}

TEST(a_socket_is_known_by_its_name)
{
	uint32_t pid;
	uint64_t key;

	assert_true(dotnet_socket_name("dotnet-diagnostic-26363-2474910-socket", &pid, &key));
	assert_int_equal(pid, 26363);
	assert_int_equal(key, 2474910);
	assert_false(dotnet_socket_name("dotnet-diagnostic-26363-2474910-socket2", &pid, &key));
	assert_false(dotnet_socket_name("dotnet-diagnostic--1-5-socket", &pid, &key));
	assert_false(dotnet_socket_name("dotnet-diagnostic-99999999999-5-socket", &pid, &key));
	assert_false(dotnet_socket_name("clr-debug-pipe-5-6-in", &pid, &key));
}

static void note(void *ctx, const struct dotnet_queued *held)
{
	char *text = ctx;

	strncat(text, (const char *)held->event.payload, held->event.payload_bytes);
}

TEST(events_leave_the_queue_in_time_order)
{
	static const struct {
		uint64_t time_ns;
		const char *text;
	} events[] = {{50, "e"}, {10, "a"}, {30, "c"}, {30, "d"}, {20, "b"}, {60, "f"}};
	struct dotnet_queue queue = {0};
	struct dotnet_held held = {0};
	char text[20] = "";
	size_t i;

	for (i = 0; i < COUNT_OF(events); i++) {
		struct nettrace_event e = {.payload = (const uint8_t *)events[i].text,
					   .payload_bytes = 1};

		assert_true(dotnet_queue_put(&queue, events[i].time_ns, NULL, &held, &e));
	}
	assert_int_equal(held.n, 6);
	dotnet_queue_release(&queue, 40, note, text);
	assert_string_equal(text, "abcd");
	assert_int_equal(held.n, 2);
	dotnet_queue_release(&queue, UINT64_MAX, note, text);
	assert_string_equal(text, "abcdef");
	assert_int_equal(held.n, 0);
	dotnet_queue_free(&queue);
}

/* Each of them says its own time, in texts of all lengths. */
static void is_in_order(void *ctx, const struct dotnet_queued *held)
{
	uint64_t *last_ns = ctx;

	assert_true(held->time_ns >= *last_ns);
	assert_int_equal(held->event.payload_bytes, 20 + held->time_ns % 3000);
	assert_int_equal(strtoull((const char *)held->event.payload, NULL, 10), held->time_ns);
	*last_ns = held->time_ns;
}

TEST(blocks_of_several_threads_leave_in_time_order)
{
	struct dotnet_queue queue = {0};
	struct dotnet_held held = {0};
	uint64_t last_ns = 0, block, i;
	char text[20 + 3000] = "";

	for (block = 1; block < 100; block++) {
		for (i = 0; i < 50; i++) {
			uint64_t time_ns = block / 2 * 100 + i * (1 + block % 2);
			struct nettrace_event e = {
				.payload = (const uint8_t *)text,
				.payload_bytes = (uint32_t)(20 + time_ns % 3000)};

			snprintf(text, sizeof(text), "%llu", (unsigned long long)time_ns);
			assert_true(dotnet_queue_put(&queue, time_ns, NULL, &held, &e));
		}
		dotnet_queue_release(&queue, block / 2 * 100 - 1, is_in_order, &last_ns);
		assert_int_equal(dotnet_queue_count(&queue), held.n);
		assert_true(queue.spare_bytes <= DOTNET_SPARES_MAX_BYTES + sizeof(text));
	}
	dotnet_queue_release(&queue, UINT64_MAX, is_in_order, &last_ns);
	assert_int_equal(held.n + queue.spare_bytes, 0);
	dotnet_queue_free(&queue);
}

TEST(a_full_queue_refuses_events)
{
	struct nettrace_event e = {.payload = (const uint8_t *)"x", .payload_bytes = 1};
	struct dotnet_queue queue = {0};
	struct dotnet_held held = {0};
	uint32_t i;

	for (i = 0; i < DOTNET_QUEUE_MAX; i++)
		assert_true(dotnet_queue_put(&queue, i * 7919u % 1000, NULL, &held, &e));
	assert_false(dotnet_queue_put(&queue, 1, NULL, &held, &e));
	assert_int_equal(held.n, DOTNET_QUEUE_MAX);
	dotnet_queue_free(&queue);
	assert_int_equal(held.n, 0);
}

/* Of 65,536 small events a program may hold a quarter, a user half; root still has room. */
TEST(a_program_that_floods_the_queue_has_a_quarter_of_it)
{
	struct nettrace_event e = {.payload_bytes = 0};
	struct dotnet_held held[3] = {{.share.uid = 7}, {.share.uid = 7}, {.share.uid = 7}};
	struct dotnet_held root = {0};
	struct dotnet_queue queue = {0};
	struct shares shares;
	uint32_t i, p;

	dotnet_queue_share(&queue, &shares, 1000);
	for (p = 0; p < 3; p++)
		for (i = 0; i < DOTNET_QUEUE_MAX / 3; i++)
			dotnet_queue_put(&queue, i, NULL, &held[p], &e);
	assert_int_equal(held[0].n, 16384);
	assert_int_equal(held[1].n, 16384);
	assert_int_equal(held[2].n, 0);
	assert_true(dotnet_queue_put(&queue, 1, NULL, &root, &e));
	dotnet_queue_release(&queue, 10, note, (char[20]){0});
	assert_true(dotnet_queue_put(&queue, 1, NULL, &held[2], &e));
	dotnet_queue_free(&queue);
	assert_int_equal(shares.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_is_as_the_protocol_has_it),
		cmocka_unit_test(an_answer_is_whole_refused_or_nonsense),
		cmocka_unit_test(a_socket_is_known_by_its_name),
		cmocka_unit_test(events_leave_the_queue_in_time_order),
		cmocka_unit_test(blocks_of_several_threads_leave_in_time_order),
		cmocka_unit_test(a_full_queue_refuses_events),
		cmocka_unit_test(a_program_that_floods_the_queue_has_a_quarter_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
