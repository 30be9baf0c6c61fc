/* Building incidents by contents, and the texts of their frames. */
#include "base/array.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(equal_contents_have_one_index)
{
	char first[] = "burn", second[] = "burn";
	struct incident_module m = {.kind = OBJECT_ELF, .name = "app", .path = "/bin/app"};
	struct incident_frame f = {.offset = 16, .function = first};
	struct incident in;

	assert_int_equal(incident_init(&in), 0);
	assert_int_equal(incident_add_module(&in, &m), 0);
	assert_int_equal(incident_add_module(&in, &m), 0);
	assert_int_equal(incident_add_frame(&in, &f), 0);
	f.function = second;
	assert_int_equal(incident_add_frame(&in, &f), 0);
	f.offset = 17;
	assert_int_equal(incident_add_frame(&in, &f), 1);
	assert_int_equal(incident_add_stack(&in, STACK_NONE, 0), 0);
	assert_int_equal(incident_add_stack(&in, 0, 1), 1);
	assert_int_equal(incident_add_stack(&in, 0, 1), 1);
	assert_int_equal(incident_add_stack(&in, STACK_NONE, 1), 2);
	first[0] = 'x';
	assert_string_equal(in.frames[0].function, "burn");
	assert_ptr_equal(in.frames[0].function, in.frames[1].function);
	incident_free(&in);
}

TEST(processes_of_one_pid_stay_apart)
{
	struct incident_process sh = {.pid = 5, .start_ns = 9, .name = "sh", .cmdline = NULL};
	struct incident_process gcc = {.pid = 5, .start_ns = 9, .exec = 1, .name = "gcc"};
	struct incident_thread t = {.process = 1, .tid = 5};
	struct incident in;

	assert_int_equal(incident_init(&in), 0);
	assert_int_equal(incident_add_process(&in, &sh), 0);
	assert_int_equal(incident_add_process(&in, &gcc), 1);
	assert_int_equal(incident_add_process(&in, &sh), 0);
	assert_int_equal(incident_add_thread(&in, &t), 0);
	t.process = 0;
	assert_int_equal(incident_add_thread(&in, &t), 1);
	assert_string_equal(in.processes[0].cmdline, "");
	assert_string_equal(in.threads[0].name, "");
	incident_free(&in);
}

TEST(indices_that_point_nowhere_are_refused)
{
	struct incident_thread t = {.process = 0, .tid = 1};
	struct incident_frame f = {.module = 0};
	struct incident_sample s = {.thread = THREAD_NONE, .stack = STACK_NONE};
	struct incident_event e = {.thread = 3, .stack = STACK_NONE};
	struct incident in;

	assert_int_equal(incident_init(&in), 0);
	assert_int_equal(incident_add_thread(&in, &t), UINT32_MAX);
	assert_int_equal(incident_add_frame(&in, &f), UINT32_MAX);
	assert_int_equal(incident_add_stack(&in, STACK_NONE, 0), UINT32_MAX);
	assert_int_equal(incident_add_sample(&in, &s), 0);
	s.stack = 0;
	assert_int_equal(incident_add_sample(&in, &s), ERR_FORMAT);
	s.stack = STACK_NONE;
	s.quality = QUALITIES;
	assert_int_equal(incident_add_sample(&in, &s), ERR_FORMAT);
	assert_int_equal(incident_add_event(&in, &e, NULL), ERR_FORMAT);
	assert_int_equal(in.nsamples, 1);
	incident_free(&in);
}

TEST(events_keep_their_fields)
{
	struct event_field fields[] = {
		{.name = "Message", .type = FIELD_TEXT, .v.text = "two\nlines"},
		{.name = "Id", .type = FIELD_INT, .v.i = -4},
	};
	struct incident_event e = {.kind = EVENT_LOG, .thread = THREAD_NONE, .stack = STACK_NONE,
				   .name = "log", .nfields = 2};
	struct incident in;

	assert_int_equal(incident_init(&in), 0);
	assert_int_equal(incident_add_event(&in, &e, fields), 0);
	fields[0].v.text = "gone";
	assert_int_equal(incident_add_event(&in, &e, fields), 0);
	assert_string_equal(in.events[0].provider, "");
	assert_int_equal(in.events[1].first_field, 2);
	assert_string_equal(in.fields[0].v.text, "two\nlines");
	assert_int_equal(in.fields[3].v.i, -4);
	incident_free(&in);
}

TEST(a_head_is_copied_with_its_texts)
{
	struct incident_head copy;
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	assert_int_equal(incident_head_copy(&in.head, &copy), 0);
	assert_ptr_not_equal(copy.rule, in.head.rule);
	incident_free(&in);
	assert_string_equal(copy.gap_reason, "the recorder had started 5 s before");
	assert_null(copy.note);
	assert_int_equal(copy.lost_by_kind[LOSS_KERNEL], 2);
	incident_head_free(&copy);
	assert_null(copy.host);
}

TEST(state_names_are_those_of_the_commands)
{
	assert_string_equal(incident_state_text(INCIDENT_OPEN), "open");
	assert_string_equal(incident_state_text(INCIDENT_COMPLETE), "complete");
	assert_string_equal(incident_state_text(INCIDENT_PARTIAL), "partial");
}

/* ---- frame texts ----------------------------------------------------------------------------- */

static void check_text(const char *module, const char *function, uint32_t flags, bool addresses,
		       const char *expected)
{
	struct frame_spec spec = {module, function, 0x12aB, flags};
	struct buf text = {0};
	struct incident in;
	uint32_t stack;

	assert_int_equal(incident_init(&in), 0);
	assert_int_equal(sample_frames(&in, &spec, 1, &stack), 0);
	incident_frame_text(&in, 0, addresses, &text);
	assert_string_equal(buf_text(&text), expected);
	buf_free(&text);
	incident_free(&in);
}

TEST(frames_are_named_by_module_and_function)
{
	check_text("libc.so.6", "read", 0, false, "libc.so.6!read");
	check_text("[kernel]", "do_idle", 0, true, "[kernel]!do_idle");
	check_text("app", NULL, 0, false, "app!?");
	check_text("app", "", 0, false, "app!?");
	check_text("app", NULL, 0, true, "app!+0x12AB");
	check_text("app", NULL, FRAME_RETURN_ADDRESS, true, "app!+0x12AC");
	check_text("", NULL, 0, false, "?!?");
	check_text("", NULL, FRAME_RETURN_ADDRESS, true, "0x12AC");
	check_text("", "known", 0, false, "?!known");
}

TEST(frames_of_one_function_are_twins_whatever_their_address)
{
	const struct frame_spec specs[] = {
		{"app", "run", 0x10, 0},
		{"app", "run", 0x20, FRAME_RETURN_ADDRESS},
		{"app", "run", 0x30, FRAME_INLINED},
		{"lib", "run", 0x10, 0},
		{"app", NULL, 0x40, 0},
		{"app", NULL, 0x50, 0},
	};
	const uint32_t expected[] = {0, 0, 2, 3, 4, 5};
	struct incident in;
	uint32_t stack, *twins, i;

	assert_int_equal(incident_init(&in), 0);
	for (i = 0; i < COUNT_OF(specs); i++)
		assert_int_equal(sample_frames(&in, &specs[i], 1, &stack), 0);
	assert_int_equal(in.nframes, COUNT_OF(specs));
	twins = incident_frame_twins(&in);
	for (i = 0; i < in.nframes; i++)
		assert_int_equal(twins[i], expected[i]);
	free(twins);
	incident_free(&in);
}

TEST(names_are_cleaned)
{
	check_text("a\tpp", "f\nx\x7f", 0, false, "a pp!f x ");
	check_text("app", "a\xff" "b\xc3", 0, false, "app!a\xef\xbf\xbd" "b\xef\xbf\xbd");
	check_text("app", "caf\xc3\xa9", 0, false, "app!caf\xc3\xa9");
	check_text("app", "a;b <c> & d", 0, false, "app!a;b <c> & d");
}

TEST(long_names_end_in_an_ellipsis_at_4000_bytes)
{
	char name[10001], expected[4004];

	memset(name, 'n', 10000);
	name[10000] = '\0';
	memset(expected, 'n', 4000);
	memcpy(expected, "app!", 4);
	strcpy(expected + 4000, "\xe2\x80\xa6");
	check_text("app", name, 0, false, expected);
}

TEST(kernel_and_jit_modules_without_a_name_get_one)
{
	struct incident_module m = {.kind = OBJECT_KERNEL};
	struct incident_frame f = {.flags = FRAME_KERNEL};
	struct incident in;

	assert_int_equal(incident_init(&in), 0);
	assert_int_equal(incident_add_module(&in, &m), 0);
	assert_int_equal(incident_add_frame(&in, &f), 0);
	m.kind = OBJECT_JIT;
	f.module = incident_add_module(&in, &m);
	assert_int_equal(incident_add_frame(&in, &f), 1);
	f.function_module = "ext4";
	assert_int_equal(incident_add_frame(&in, &f), 2);
	assert_string_equal(incident_frame_module(&in, 0), "[kernel]");
	assert_string_equal(incident_frame_module(&in, 1), "[jit]");
	assert_string_equal(incident_frame_module(&in, 2), "ext4");
	incident_free(&in);
}

static void check_code(enum object_kind kind, const char *module, const char *of_function,
		       uint32_t flags, const char *expected)
{
	struct incident_module m = {.kind = kind, .name = module, .path = module};
	struct incident_frame f = {.function = "f", .function_module = of_function, .flags = flags};
	struct incident in;

	assert_int_equal(incident_init(&in), 0);
	f.module = incident_add_module(&in, &m);
	assert_int_equal(incident_add_frame(&in, &f), 0);
	assert_string_equal(code_kind_text(incident_frame_code(&in, 0)), expected);
	incident_free(&in);
}

TEST(the_kind_of_code_is_told_by_module_and_runtime)
{
	check_code(OBJECT_KERNEL, "[kernel]", "ext4", FRAME_KERNEL, "kernel");
	check_code(OBJECT_PE, "ntoskrnl.exe", NULL, FRAME_KERNEL, "kernel");
	check_code(OBJECT_ELF, "libc.so.6", NULL, 0, "native");
	check_code(OBJECT_PE, "ntdll.dll", NULL, 0, "native");
	check_code(OBJECT_JIT, "[java]", NULL, FRAME_JIT, "Java");
	check_code(OBJECT_JIT, "[python]", NULL, FRAME_JIT, "Python");
	check_code(OBJECT_JIT, "[javascript]", NULL, FRAME_JIT, "JavaScript");
	check_code(OBJECT_JIT, "[.net]", NULL, FRAME_JIT, ".NET");
	check_code(OBJECT_JIT, "[jit]", "App.dll", FRAME_JIT, ".NET");
	check_code(OBJECT_ELF, "System.Private.CoreLib.dll", NULL, 0, ".NET");
	check_code(OBJECT_PE, "mscorlib.ni.dll", NULL, 0, ".NET");
	check_code(OBJECT_JIT, "[jit]", NULL, FRAME_JIT, "generated");
	check_code(OBJECT_JIT, "event", NULL, FRAME_JIT, "");
	check_code(OBJECT_UNKNOWN, "", NULL, 0, "");
	check_code(OBJECT_ELF, "libc.so.6", NULL, FRAME_TEXT, "");
}

/* ---- failure --------------------------------------------------------------------------------- */

static int build_step(void *ctx)
{
	struct incident_event e = {.kind = EVENT_LOG, .thread = THREAD_NONE, .stack = STACK_NONE,
				   .provider = "p", .name = "n", .nfields = 1};
	struct event_field field = {.name = "f", .type = FIELD_TEXT, .v.text = "text"};
	struct incident_head copy = {0};
	struct incident in;
	int rc = sample_small(&in);

	(void)ctx;
	if (!rc)
		rc = incident_add_event(&in, &e, &field);
	if (!rc)
		rc = incident_head_copy(&in.head, &copy);
	incident_head_free(&copy);
	incident_free(&in);
	return rc;
}

TEST(building_reports_lack_of_memory)
{
	assert_in_range(alloc_walk(build_step, NULL), 20, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_contents_have_one_index),
		cmocka_unit_test(processes_of_one_pid_stay_apart),
		cmocka_unit_test(indices_that_point_nowhere_are_refused),
		cmocka_unit_test(events_keep_their_fields),
		cmocka_unit_test(a_head_is_copied_with_its_texts),
		cmocka_unit_test(state_names_are_those_of_the_commands),
		cmocka_unit_test(frames_are_named_by_module_and_function),
		cmocka_unit_test(frames_of_one_function_are_twins_whatever_their_address),
		cmocka_unit_test(names_are_cleaned),
		cmocka_unit_test(long_names_end_in_an_ellipsis_at_4000_bytes),
		cmocka_unit_test(kernel_and_jit_modules_without_a_name_get_one),
		cmocka_unit_test(the_kind_of_code_is_told_by_module_and_runtime),
		cmocka_unit_test(building_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
