#include "base/os.h"
#include "base/out.h"
#include "base/text.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static void assert_file(const char *path, const char *expected)
{
	struct buf text = {0};

	assert_int_equal(os_load(path, 1 << 20, &text, NULL), 0);
	assert_string_equal(buf_text(&text), expected);
	buf_free(&text);
}

static void write_file(const char *path, const char *text)
{
	struct os_file *file = NULL;

	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, text, strlen(text), NULL), 0);
	os_close(file);
}

TEST(out_file_appears_when_it_is_closed_and_not_before)
{
	const char *path = tmp_path("whole"), *tmp = tmp_path("whole.tmp");
	struct out *out = NULL;

	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "one ");
	out_printf(out, "%d", 2);
	assert_int_equal(out_bytes(out), 5);
	assert_false(os_exists(path));
	assert_int_equal(out_close(out, NULL), 0);
	assert_false(os_exists(tmp));
	assert_file(path, "one 2");
}

TEST(out_abandoned_leaves_nothing)
{
	const char *path = tmp_path("none"), *tmp = tmp_path("none.tmp");
	struct out *out = NULL;

	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "half");
	out_abandon(out);
	assert_false(os_exists(path));
	assert_false(os_exists(tmp));
	out_abandon(NULL);
}

TEST(out_replaces_a_file_only_when_forced)
{
	const char *path = tmp_path("there");
	struct out *out = NULL;
	struct err err = {0};

	write_file(path, "old");
	assert_int_equal(out_open(path, false, &out, &err), ERR_EXISTS);
	assert_non_null(strstr(err.text, "--force"));
	assert_null(out);
	assert_file(path, "old");

	assert_int_equal(out_open(path, true, &out, NULL), 0);
	out_puts(out, "new");
	assert_file(path, "old");
	assert_int_equal(out_close(out, NULL), 0);
	assert_file(path, "new");
}

TEST(out_takes_over_a_tmp_file_that_a_killed_program_left)
{
	const char *path = tmp_path("stale"), *tmp = tmp_path("stale.tmp");
	struct out *out = NULL;

	write_file(tmp, "left over, and longer than what comes");
	assert_int_equal(out_open(path, false, &out, NULL), 0);
	out_puts(out, "fresh");
	assert_int_equal(out_close(out, NULL), 0);
	assert_file(path, "fresh");
	assert_false(os_exists(tmp));
}

TEST(out_into_a_missing_or_wrong_place_says_where)
{
	struct out *out = NULL;
	struct err err = {0};

	assert_int_equal(out_open(tmp_path("no/such/dir"), false, &out, &err), ERR_IO);
	assert_non_null(strstr(err.text, "there is no directory "));
	assert_non_null(strstr(err.text, "no/such/; make it first"));
	assert_int_equal(os_mkdirs(tmp_path("dir"), NULL), 0);
	assert_true(out_open(tmp_path("dir"), true, &out, &err) != 0);
	assert_non_null(strstr(err.text, "dir"));
	assert_null(out);
	assert_false(os_exists(tmp_path("dir.tmp")));
}

/* One megabyte in pieces of 1000 passes the internal buffer of 256 kB four times. */
TEST(out_keeps_the_order_of_many_pieces)
{
	const char *path = tmp_path("large");
	struct buf text = {0};
	struct out *out = NULL;
	char piece[1001];
	int i;

	assert_int_equal(out_open(path, false, &out, NULL), 0);
	for (i = 0; i < 1000; i++) {
		memset(piece, 'a' + i % 26, 1000);
		out_put(out, piece, 1000);
	}
	assert_int_equal(out_bytes(out), 1000000);
	assert_int_equal(out_close(out, NULL), 0);
	assert_int_equal(os_load(path, 1 << 20, &text, NULL), 0);
	assert_int_equal(text.len, 1000000);
	for (i = 0; i < 1000000; i++)
		assert_int_equal(text.data[i], 'a' + i / 1000 % 26);
	buf_free(&text);
}

TEST(out_to_memory_reports_the_ceiling_at_the_end)
{
	struct buf text = {.max_bytes = 6};
	struct out *out = NULL;
	struct err err = {0};

	assert_int_equal(out_to_buf(&text, &out, NULL), 0);
	out_puts(out, "123");
	out_printf(out, "%s", "456");
	assert_false(out_failed(out));
	out_puts(out, "7");
	assert_true(out_failed(out));
	assert_int_equal(out_close(out, &err), ERR_LIMIT);
	assert_string_equal(buf_text(&text), "123456");
	buf_free(&text);
}

/* What gzip itself would give back. */
static void assert_unpacks(const struct buf *packed, const char *wanted, size_t n)
{
	z_stream z = {.next_in = (Bytef *)packed->data, .avail_in = (uInt)packed->len};
	char *text = malloc(n + 1);

	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	z.next_out = (Bytef *)text;
	z.avail_out = (uInt)n + 1;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, n);
	assert_memory_equal(text, wanted, n);
	assert_int_equal(z.avail_in, 0);
	inflateEnd(&z);
	free(text);
}

static void count_call(void *ctx)
{
	++*(unsigned *)ctx;
}

/* 1 MB in pieces, by way of a file and by way of memory: the same gzip bytes, and less of them. */
TEST(out_packs_a_file_and_memory_alike)
{
	const char *path = tmp_path("packed.gz");
	struct buf plain = {0}, in_memory = {0}, in_file = {0};
	struct out *file = NULL, *memory = NULL;
	unsigned calls = 0, i;

	assert_int_equal(out_open(path, false, &file, NULL), 0);
	assert_int_equal(out_to_buf(&in_memory, &memory, NULL), 0);
	assert_int_equal(out_pack(file, NULL), 0);
	assert_int_equal(out_pack(memory, NULL), 0);
	out_watch(file, count_call, &calls);
	for (i = 0; i < 100000; i++) {
		buf_printf(&plain, "line %u\n", i);
		out_printf(file, "line %u\n", i);
		out_printf(memory, "line %u\n", i);
	}
	assert_int_equal(out_bytes(file), plain.len);
	assert_int_equal(out_close(file, NULL), 0);
	assert_int_equal(out_close(memory, NULL), 0);
	assert_in_range(calls, 2, 10);       /* each 256 KB, and at the end */
	assert_int_equal(os_load(path, 1 << 20, &in_file, NULL), 0);
	assert_true(in_file.len < plain.len / 2);
	assert_int_equal(in_file.len, in_memory.len);
	assert_memory_equal(in_file.data, in_memory.data, in_file.len);
	assert_unpacks(&in_file, plain.data, plain.len);
	buf_free(&plain);
	buf_free(&in_memory);
	buf_free(&in_file);
}

TEST(out_packs_one_large_put_whole)
{
	struct buf plain = {0}, packed = {0};
	struct out *out = NULL;
	unsigned i;

	for (i = 0; i < 100000; i++)
		buf_printf(&plain, "line %u\n", i);
	assert_int_equal(out_to_buf(&packed, &out, NULL), 0);
	assert_int_equal(out_pack(out, NULL), 0);
	out_put(out, plain.data, plain.len);
	assert_int_equal(out_bytes(out), plain.len);
	assert_int_equal(out_close(out, NULL), 0);
	assert_unpacks(&packed, plain.data, plain.len);
	buf_free(&plain);
	buf_free(&packed);
}

TEST(out_packs_nothing_into_a_valid_file)
{
	struct buf packed = {0};
	struct out *out = NULL;

	assert_int_equal(out_to_buf(&packed, &out, NULL), 0);
	assert_int_equal(out_pack(out, NULL), 0);
	assert_int_equal(out_close(out, NULL), 0);
	assert_unpacks(&packed, "", 0);
	assert_int_equal((unsigned char)packed.data[9], 255);   /* no system is named */
	buf_free(&packed);
}

static int pack_out(void *ctx)
{
	struct out *out = NULL;
	int rc = out_open(ctx, true, &out, NULL);

	if (rc)
		return rc;
	rc = out_pack(out, NULL);
	if (rc) {
		out_abandon(out);
		return rc;
	}
	out_puts(out, "new");
	return out_close(out, NULL);
}

TEST(out_packing_without_memory_fails_and_leaves_the_old_file)
{
	char *path = text_dup(tmp_path("packing"), SIZE_MAX);

	write_file(path, "old");
	assert_in_range(alloc_walk(pack_out, path), 3, 60);
	assert_false(os_exists(tmp_path("packing.tmp")));
	free(path);
}

static int write_out(void *ctx)
{
	const char *path = ctx;
	struct out *out = NULL;
	int rc = out_open(path, true, &out, NULL);

	if (rc)
		return rc;
	out_puts(out, "text");
	out_printf(out, " and %d", 1);
	return out_close(out, NULL);
}

TEST(out_without_memory_fails_and_leaves_the_old_file)
{
	const char *path = tmp_path("walk");

	write_file(path, "old");
	alloc_walk_fail_at(1);
	assert_int_equal(write_out((void *)(uintptr_t)path), ERR_MEMORY);
	alloc_walk_fail_at(0);
	assert_file(path, "old");
	assert_in_range(alloc_walk(write_out, (void *)(uintptr_t)path), 4, 20);
	assert_file(path, "text and 1");
	assert_false(os_exists(tmp_path("walk.tmp")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(out_file_appears_when_it_is_closed_and_not_before),
		cmocka_unit_test(out_abandoned_leaves_nothing),
		cmocka_unit_test(out_replaces_a_file_only_when_forced),
		cmocka_unit_test(out_takes_over_a_tmp_file_that_a_killed_program_left),
		cmocka_unit_test(out_into_a_missing_or_wrong_place_says_where),
		cmocka_unit_test(out_keeps_the_order_of_many_pieces),
		cmocka_unit_test(out_to_memory_reports_the_ceiling_at_the_end),
		cmocka_unit_test(out_without_memory_fails_and_leaves_the_old_file),
		cmocka_unit_test(out_packs_a_file_and_memory_alike),
		cmocka_unit_test(out_packs_one_large_put_whole),
		cmocka_unit_test(out_packs_nothing_into_a_valid_file),
		cmocka_unit_test(out_packing_without_memory_fails_and_leaves_the_old_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
