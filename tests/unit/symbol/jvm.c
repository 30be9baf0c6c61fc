/* Whether a JVM keeps frame pointers, from its arguments and environment. */
#include "symbol/jvm.h"
#include "tests/support/test.h"


/* String literals with NULs inside, as /proc has them. */
#define KEEPS(arguments, environment)                                                              \
	jvm_keeps_frame_pointers(arguments, sizeof(arguments), environment, sizeof(environment))

TEST(nothing_said_is_no)
{
	assert_false(KEEPS("java\0-cp\0.\0Load", "HOME=/root"));
	assert_false(jvm_keeps_frame_pointers("", 0, "", 0));
}

TEST(the_option_is_found_among_the_arguments)
{
	assert_true(KEEPS("java\0-XX:+PreserveFramePointer\0Load", ""));
	assert_true(KEEPS("javac\0-J-XX:+PreserveFramePointer", ""));
	assert_false(KEEPS("java\0-XX:+PreserveFramePointers\0Load", ""));
	assert_false(KEEPS("java\0-XX:PreserveFramePointer", ""));
	assert_false(KEEPS("java\0-XX:+PreserveFramePointe", ""));
	assert_false(jvm_keeps_frame_pointers("-XX:+PreserveFramePointer", 24, "", 0));
	assert_true(jvm_keeps_frame_pointers("-XX:+PreserveFramePointer", 25, "", 0));
}

TEST(variables_count_that_a_jvm_reads)
{
	assert_true(KEEPS("java", "A=b\0JAVA_TOOL_OPTIONS=-Xmx1g -XX:+PreserveFramePointer -ea"));
	assert_true(KEEPS("java", "JDK_JAVA_OPTIONS='-XX:+PreserveFramePointer'\0A=b"));
	assert_true(KEEPS("java", "_JAVA_OPTIONS=-XX:+PreserveFramePointer"));
	assert_false(KEEPS("java", "MY_JAVA_OPTIONS=-XX:+PreserveFramePointer"));
}

TEST(the_later_of_two_wins)
{
	assert_false(KEEPS("java\0-XX:+PreserveFramePointer\0-XX:-PreserveFramePointer", ""));
	assert_false(KEEPS("java\0-XX:-PreserveFramePointer",
			   "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer"));
	assert_true(KEEPS("java\0-XX:-PreserveFramePointer",
			  "_JAVA_OPTIONS=-XX:+PreserveFramePointer"));
}

/* Of a file of flags "+Name" alone; the arguments come after it. */
TEST(what_it_says_of_itself_counts)
{
	static const char flags[] = "+UseSerialGC +PreserveFramePointer",
			  args[] = "-Xmx1g -XX:+PreserveFramePointer";
	static const char not[] = "-XX:-PreserveFramePointer";

	assert_true(jvm_said_frame_pointers(flags, sizeof(flags) - 1, "", 0));
	assert_true(jvm_said_frame_pointers("", 0, args, sizeof(args) - 1));
	assert_false(jvm_said_frame_pointers(flags, sizeof(flags) - 1, not, sizeof(not) - 1));
	assert_false(jvm_said_frame_pointers("-PreserveFramePointer", 21, "", 0));
	assert_false(jvm_said_frame_pointers("", 0, "", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_said_is_no),
		cmocka_unit_test(the_option_is_found_among_the_arguments),
		cmocka_unit_test(variables_count_that_a_jvm_reads),
		cmocka_unit_test(the_later_of_two_wins),
		cmocka_unit_test(what_it_says_of_itself_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
