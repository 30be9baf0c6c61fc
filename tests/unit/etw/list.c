/* The list of events that rules can name on Windows. */
#include "source/etw/list.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static struct buf text;
static struct err err;

static int list(const char *pattern)
{
	struct out *out = NULL;
	int rc;

	buf_reset(&text);
	assert_int_equal(out_to_buf(&text, &out, NULL), 0);
	rc = etw_list_events(pattern, false, out, &err);
	assert_int_equal(out_close(out, NULL), 0);
	return rc;
}

static bool has(const char *what)
{
	return strstr(buf_text(&text), what) != NULL;
}

TEST(an_event_is_listed_with_the_fields_that_are_computed)
{
	assert_int_equal(list("DiskIO/Read"), 0);
	assert_true(has("Windows Kernel/DiskIO/Read"));
	assert_true(has("TransferSize") && has("DiskServiceTimeMSec") && has("FileName"));
}

TEST(events_that_reach_no_rule_are_not_listed)
{
	assert_int_equal(list(NULL), 0);
	assert_true(has("Registry/SetValue") && has("GC/Start"));
	assert_false(has("PerfInfo/Sample") || has("SystemConfig") || has("StackWalk") ||
		     has("Process/DCStart") || has("KCBRundown"));
	assert_int_equal(list("NoSuchEvent"), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "logman query providers"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_listed_with_the_fields_that_are_computed),
		cmocka_unit_test(events_that_reach_no_rule_are_not_listed),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	buf_free(&text);
	return rc;
}
