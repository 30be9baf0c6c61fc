/* Bytes of a file and of memory, read or taken as they are. */
#include "symbol/bytes.h"
#include "tests/support/test.h"

#include <string.h>

static const char text[] = "0123456789";

static void check_takes(const struct bytes *in)
{
	struct bytes_part part;

	assert_int_equal(bytes_take(in, 3, 4, "it", &part, NULL), 0);
	assert_memory_equal(part.at, "3456", 4);
	assert_true(!part.owned == !!in->memory);
	bytes_drop(&part);
	assert_null(part.at);
	assert_int_equal(bytes_take(in, 10, 0, "it", &part, NULL), 0);
	bytes_drop(&part);
	assert_int_equal(bytes_take(in, 7, 4, "it", &part, NULL), ERR_FORMAT);
	assert_null(part.at);
	assert_int_equal(bytes_take(in, UINT64_MAX, 2, "it", &part, NULL), ERR_FORMAT);
}

TEST(what_is_in_memory_is_taken_without_a_copy)
{
	const struct bytes in = bytes_of_memory(text, 10);
	struct bytes_part part;

	check_takes(&in);
	assert_int_equal(bytes_take(&in, 2, 1, "it", &part, NULL), 0);
	assert_ptr_equal(part.at, text + 2);
}

TEST(a_file_that_became_shorter_is_an_error)
{
	struct os_file *file;
	struct bytes_part part;
	struct bytes in;

	assert_int_equal(os_temp(&file, NULL), 0);
	assert_int_equal(os_pwrite(file, text, 10, 0, NULL), 0);
	in = bytes_of_file(file, 10);
	check_takes(&in);
	in.size = 20;
	assert_int_equal(bytes_take(&in, 8, 4, "it", &part, NULL), ERR_FORMAT);
	assert_null(part.at);
	os_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_memory_is_taken_without_a_copy),
		cmocka_unit_test(a_file_that_became_shorter_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
