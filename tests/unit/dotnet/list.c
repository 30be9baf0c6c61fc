/* The names by which rules know events of .NET. */
#include "source/dotnet/list.h"

#include "base/array.h"
#include "tests/support/test.h"

/* The same rules as event_name_is(), which compares the events later. */
TEST(names_are_those_that_would_match)
{
	static const char *const names[] = {"gc/stop", "GCStart", "gcstop", "GC/Stop/Info"};
	struct buf near = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++)
		assert_true(dotnet_list_knows(names[i], &near));
	assert_int_equal(near.len, 0);
	assert_false(dotnet_list_knows("GCStrt", &near));
	buf_free(&near);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_that_would_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
