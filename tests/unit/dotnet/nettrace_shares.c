/*
 * What hostile programs make their streams hold: kinds of events without end, blocks that never
 * end. A kind here takes a name of 1000 characters of three bytes: 3.1 KB.
 */
#include "source/dotnet/nettrace.h"
#include "tests/support/nettrace_writer.h"
#include "tests/support/test.h"

#define MB ((size_t)1 << 20)
#define PROGRAMS 20u

static struct nettrace_shares shares;

static int count(void *ctx, const struct nettrace_event *event)
{
	(void)event;
	++*(unsigned *)ctx;
	return 0;
}

static void open_shares(size_t kinds, size_t pending)
{
	shares_init(&shares.kinds, kinds, 1000);
	shares_init(&shares.pending, pending, 1000);
}

static struct nettrace *open_stream(uint32_t uid)
{
	struct nettrace *t;
	struct err err;

	assert_int_equal(nettrace_new(&t, &err), 0);
	nettrace_use_shares(t, &shares, uid);
	return t;
}

static int send_all(struct nettrace *t, struct nettrace_writer *w, unsigned *events)
{
	struct err err;
	int rc = nettrace_feed(t, w->bytes.data, w->bytes.len, count, events, &err);

	nettrace_writer_sent(w);
	return rc;
}

static void close_stream(struct nettrace *t, struct nettrace_writer *w)
{
	nettrace_free(t);
	buf_free(&w->bytes);
}

/* Of 1 MB a program may hold 128 KB: 42 kinds of 3.1 KB. */
TEST(events_of_a_kind_beyond_the_share_are_counted_and_the_others_come)
{
	struct nettrace_writer w = {0};
	unsigned events = 0;
	struct nettrace *t;

	open_shares(MB, MB);
	t = open_stream(7);
	nettrace_write_head(&w);
	nettrace_write_kinds(&w, 20);
	assert_int_equal(send_all(t, &w, &events), 0);
	nettrace_write_kinds(&w, 20);
	assert_int_equal(send_all(t, &w, &events), 0);
	assert_int_equal(nettrace_facts(t)->refused_kinds, 0);
	nettrace_write_kinds(&w, 20);
	assert_int_equal(send_all(t, &w, &events), 0);
	assert_in_range(nettrace_facts(t)->refused_kinds, 17, 20);
	nettrace_write_event(&w, 1);
	nettrace_write_event(&w, 60);
	nettrace_write_event(&w, 40);
	assert_int_equal(send_all(t, &w, &events), 0);
	assert_int_equal(events, 2);
	assert_int_equal(nettrace_facts(t)->lost, 1);
	assert_int_equal(shares.kinds.programs_refused, 1);
	close_stream(t, &w);
	assert_int_equal(shares.kinds.used, 0);
	assert_int_equal(shares.pending.used, 0);
}

TEST(a_program_that_never_stops_describing_is_ended)
{
	struct nettrace_writer w = {0};
	unsigned events = 0, i;
	struct nettrace *t;
	int rc;

	open_shares(MB, MB);
	t = open_stream(7);
	nettrace_write_head(&w);
	rc = send_all(t, &w, &events);
	for (i = 0; !rc; i++) {
		assert_true(i < 1000);
		nettrace_write_kinds(&w, 20);
		rc = send_all(t, &w, &events);
		assert_true(shares.kinds.used <= MB / 8);
		assert_true(shares.pending.used <= MB / 8);
	}
	assert_int_equal(rc, ERR_LIMIT);
	assert_int_equal(nettrace_facts(t)->refused_kinds, NETTRACE_REFUSED_MAX);
	close_stream(t, &w);
}

/* Of 16 MB each of 20 programs wants 3 MB: the user gets at most 8, and root still has room. */
TEST(blocks_without_end_of_one_user_leave_room_for_others)
{
	struct nettrace_writer w[PROGRAMS] = {0}, mine = {0};
	struct nettrace *t[PROGRAMS], *root;
	unsigned events = 0, ended = 0, i;

	open_shares(16 * MB, 16 * MB);
	for (i = 0; i < PROGRAMS; i++) {
		t[i] = open_stream(7);
		nettrace_write_head(&w[i]);
		nettrace_write_part(&w[i], 3 * MB, 1 * MB);
		ended += send_all(t[i], &w[i], &events) == ERR_LIMIT;
		assert_true(shares.pending.used <= 8 * MB);
	}
	assert_in_range(ended, PROGRAMS - 8, PROGRAMS - 4);
	root = open_stream(0);
	nettrace_write_head(&mine);
	nettrace_write_kinds(&mine, 100);
	nettrace_write_event(&mine, 100);
	assert_int_equal(send_all(root, &mine, &events), 0);
	assert_int_equal(events, 1);
	close_stream(root, &mine);
	for (i = 0; i < PROGRAMS; i++)
		close_stream(t[i], &w[i]);
	assert_int_equal(shares.pending.used, 0);
}

TEST(a_block_longer_than_the_share_ends_the_stream_and_frees_its_bytes)
{
	struct nettrace_writer w = {0};
	unsigned events = 0;
	struct nettrace *t;

	open_shares(16 * MB, 16 * MB);
	t = open_stream(7);
	nettrace_write_head(&w);
	nettrace_write_part(&w, 3 * MB, 2 * MB);
	assert_int_equal(send_all(t, &w, &events), ERR_LIMIT);
	assert_int_equal(shares.pending.used, 0);
	close_stream(t, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			events_of_a_kind_beyond_the_share_are_counted_and_the_others_come),
		cmocka_unit_test(a_program_that_never_stops_describing_is_ended),
		cmocka_unit_test(blocks_without_end_of_one_user_leave_room_for_others),
		cmocka_unit_test(
			a_block_longer_than_the_share_ends_the_stream_and_frees_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
