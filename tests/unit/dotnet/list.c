/* Events of .NET, as rules name them. */
#include "source/dotnet/list.h"

#include "base/array.h"
#include "tests/support/test.h"

/* As event_name_is() has it when the events come. */
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
