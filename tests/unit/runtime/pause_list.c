/* Collections of Java, CPython and V8, as rules name them. */
#include "base/array.h"
#include "source/runtime/pause_list.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static struct needs needs;

static int check_filter(const char *provider, const char *event, const char *filter,
			struct err *err)
{
	struct need_event e = {0};

	memset(&needs, 0, sizeof(needs));
	strcpy(e.provider, provider);
	strcpy(e.name, event);
	strcpy(e.filter, filter);
	assert_int_equal(needs_provider(&needs, provider, 1, 4, NULL), 0);
	assert_int_equal(needs_event(&needs, &e, NULL), 0);
	return pause_check(&needs, err);
}

static int check(const char *provider, const char *event, struct err *err)
{
	return check_filter(provider, event, "", err);
}

TEST(a_rule_may_name_what_an_incident_shows)
{
	struct err err;

	assert_int_equal(check("JVM", "GC/Stop", &err), 0);
	assert_true(pause_wanted(&needs, PAUSES_OF_JVM));
	assert_true(pause_wanted(&needs, PAUSE_PROVIDERS));
	assert_false(pause_wanted(&needs, PAUSES_OF_V8));
	assert_int_equal(check("cpython", "GC/SuspendEEStart", &err), 0);
	assert_true(pause_wanted(&needs, PAUSES_OF_CPYTHON));
	/* Another's to judge. */
	assert_int_equal(check("Microsoft-Windows-DotNETRuntime", "GC/Strt", &err), 0);
	assert_false(pause_wanted(&needs, PAUSE_PROVIDERS));
}

/* As event_name_is() has it when the events come. */
TEST(names_are_those_that_would_match)
{
	static const char *const names[] = {"gc/stop", "GCStart", "gcstop", "GC/Stop/Info"};
	struct err err;
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++) {
		assert_int_equal(check("JVM", names[i], &err), 0);
		assert_int_equal(check("CPython", names[i], &err), 0);
	}
	assert_int_equal(check("V8", "GCPauses", &err), ERR_USAGE);
	assert_int_equal(check("V8", "GC/Pauses/Info", &err), ERR_USAGE);
}

TEST(an_event_that_there_is_not_is_told_those_that_there_are)
{
	struct err err;

	assert_int_equal(check("JVM", "GC/Strt", &err), ERR_USAGE);
	assert_string_equal(
		err.text,
		"JVM has no event 'GC/Strt'; it has GC/Start, GC/Stop, GC/SuspendEEStart, "
		"GC/RestartEEStop, GC/Pauses, GC/HeapStats; 'recorder events JVM' lists them");
	assert_int_equal(check("V8", "GC/Pauses", &err), ERR_USAGE);
}

/* Such a rule would never fire; of a tracepoint the sentence is the same. */
TEST(a_field_that_the_event_has_not_is_told_those_that_it_has)
{
	struct err err;

	assert_int_equal(check_filter("JVM", "GC/Stop",
				      "PauseMSec>50;pausemsec<99;ProcessName~x;Collector=G1", &err),
			 0);
	assert_int_equal(check_filter("V8", "gcstop", "Depth=2;Collector=V8;ThreadID=5", &err), 0);
	assert_int_equal(check_filter("JVM", "GC/Stop", "PausMSec>50", &err), ERR_USAGE);
	assert_string_equal(
		err.text,
		"JVM/GC/Stop has no field 'PausMSec'; the nearest are PauseMSec or Pauses; it has "
		"Reason, "
		"Count, Depth, Type, ClrInstanceID, Collector, PauseMSec, Pauses, PauseMinMSec");
	assert_int_equal(check_filter("cpython", "GCStop", "PauseMSec>50", &err), ERR_USAGE);
	assert_string_equal(
		err.text,
		"CPython/GC/Stop has no field 'PauseMSec'; it has Reason, Type, Collector, Depth");
	assert_int_equal(check_filter("JVM", "GC/Start", "PauseMSec>50", &err), ERR_USAGE);
	assert_int_equal(check_filter("V8", "GC/Start", "Depth=full", &err), ERR_USAGE);
	assert_string_equal(err.text,
			    "V8/GC/Start: the field 'Depth' is a number, and never equals 'full'");
}

TEST(the_list_is_of_names_with_their_fields)
{
	struct buf lines = {0};

	pause_list("V8/GC/St", false, &lines);
	assert_string_equal(buf_text(&lines), "V8/GC/Start  Reason Type Collector Depth\n"
					      "V8/GC/Stop  Reason Type Collector Depth\n");
	buf_reset(&lines);
	pause_list("GC/Pauses", true, &lines);
	assert_string_equal(
		buf_text(&lines),
		"{\"provider\":\"JVM\",\"name\":\"GC/Pauses\",\"fields\":[{\"name\":\"Depth\"},"
		"{\"name\":\"ClrInstanceID\"},{\"name\":\"Collector\"},{\"name\":\"Pauses\"},"
		"{\"name\":\"PauseMSec\"},{\"name\":\"PauseMinMSec\"}]}\n");
	buf_free(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_may_name_what_an_incident_shows),
		cmocka_unit_test(names_are_those_that_would_match),
		cmocka_unit_test(an_event_that_there_is_not_is_told_those_that_there_are),
		cmocka_unit_test(a_field_that_the_event_has_not_is_told_those_that_it_has),
		cmocka_unit_test(the_list_is_of_names_with_their_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
