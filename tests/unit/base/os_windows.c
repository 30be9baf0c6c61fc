#include "base/array.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "base/out.h"
#include "base/table.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(os_create_and_replace_never_follow_a_link)
{
	wchar_t *link = wide_path(tmp_path("link"));
	struct os_file *file = NULL;
	DWORD attributes;

	/* 2: without privilege where developer mode is on. Wine says yes and makes nothing. */
	CreateSymbolicLinkW(link, L"target", 2);
	attributes = GetFileAttributesW(link);
	wide_free(link);
	if (attributes == INVALID_FILE_ATTRIBUTES || !(attributes & FILE_ATTRIBUTE_REPARSE_POINT)) {
		print_message("this system makes no symbolic links (Wine 8 has none)\n");
		skip();
	}
	assert_int_equal(os_open(tmp_path("link"), OS_CREATE, &file, NULL), ERR_EXISTS);
	assert_true(os_open(tmp_path("link"), OS_REPLACE, &file, NULL) != 0);
	assert_true(os_lock(tmp_path("link"), &file, NULL) != 0);
	assert_null(file);
	assert_false(os_exists(tmp_path("target")));
}

TEST(rights_of_the_owner_alone_are_understood_by_this_system)
{
	static const enum private_kind kinds[] = {PRIVATE_FILE, PRIVATE_DIRECTORY, PRIVATE_PIPE};
	SECURITY_ATTRIBUTES attributes;
	SECURITY_DESCRIPTOR_CONTROL control;
	DWORD revision;
	ACL *list;
	BOOL present, defaulted;
	size_t i;

	for (i = 0; i < 3; i++) {
		assert_true(private_open(kinds[i], &attributes));
		assert_true(GetSecurityDescriptorDacl(attributes.lpSecurityDescriptor, &present,
						      &list, &defaulted));
		assert_true(present && list);
		assert_int_equal(list->AceCount, 3);
		assert_true(GetSecurityDescriptorControl(attributes.lpSecurityDescriptor, &control,
							 &revision));
		assert_true(control & SE_DACL_PROTECTED);
		private_free(&attributes);
	}
}

TEST(wide_texts_go_there_and_back)
{
	static const char text[] = "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80";
	wchar_t lone[] = {L'a', 0xd800, L'b', 0};
	wchar_t *wide = wide_text(text);
	struct buf back = {0};

	assert_non_null(wide);
	wide_put(&back, wide);
	assert_string_equal(buf_text(&back), text);
	buf_reset(&back);
	wide_put(&back, lone);
	assert_string_equal(buf_text(&back), "a\xef\xbf\xbd" "b");
	assert_null(wide_text("\xff"));
	assert_int_equal(os_error_code(os_error_last()), ERR_USAGE);
	wide_free(wide);
	buf_free(&back);
}

static void assert_wide_path(const char *path, const wchar_t *start)
{
	wchar_t *wide = wide_path(path);

	assert_non_null(wide);
	assert_memory_equal(wide, start, wcslen(start) * sizeof(*start));
	wide_free(wide);
}

TEST(long_paths_get_the_prefix_and_short_ones_stay_as_they_are)
{
	char path[400];

	assert_wide_path("C:/a/../b", L"C:/a/../b");
	assert_wide_path("NUL", L"NUL");
	memset(path, 'x', 300);
	path[300] = '\0';
	memcpy(path, "C:/a/", 5);
	assert_wide_path(path, L"\\\\?\\C:\\a\\xxx");
	memcpy(path, "//srv/share/", 12);
	assert_wide_path(path, L"\\\\?\\UNC\\srv\\share\\xxx");
	memcpy(path, "\\\\?\\C:\\a/xxxx", 12);
	assert_wide_path(path, L"\\\\?\\C:\\a/xxx");
}

TEST(os_dirname_knows_drives_and_both_separators)
{
	static const char *const pairs[][2] = {
		{"C:\\a\\b", "C:\\a"}, {"C:\\a", "C:\\"}, {"C:a", "C:."},
		{"C:/a\\b/c", "C:/a\\b"}, {"\\\\srv\\share\\x", "\\\\srv\\share"}, {"\\a", "\\"},
	};
	struct buf dir = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(pairs); i++) {
		buf_reset(&dir);
		os_dirname(pairs[i][0], &dir);
		assert_string_equal(buf_text(&dir), pairs[i][1]);
	}
	buf_free(&dir);
}

TEST(os_env_is_utf8_and_follows_changes)
{
	const char *value;

	assert_true(SetEnvironmentVariableW(L"RECORDER_TEST", L"gr\u00fc\u00df"));
	value = os_env("RECORDER_TEST");
	assert_string_equal(value, "gr\xc3\xbc\xc3\x9f");
	assert_ptr_equal(os_env("RECORDER_TEST"), value);
	assert_true(SetEnvironmentVariableW(L"RECORDER_TEST", L"new"));
	assert_string_equal(os_env("RECORDER_TEST"), "new");
	assert_true(SetEnvironmentVariableW(L"RECORDER_TEST", NULL));
	assert_null(os_env("RECORDER_TEST"));
}

TEST(out_writes_into_a_device)
{
	struct out *out = NULL;

	assert_int_equal(out_open("NUL", false, &out, NULL), 0);
	out_puts(out, "gone");
	assert_int_equal(out_close(out, NULL), 0);
}

TEST(system_errors_have_the_codes_of_their_kind)
{
	static const struct {
		int error;
		enum err_code code;
	} pairs[] = {
		{ERROR_PATH_NOT_FOUND, ERR_NOT_FOUND}, {ERROR_FILE_EXISTS, ERR_EXISTS},
		{ERROR_ACCESS_DENIED, ERR_ACCESS}, {ERROR_DISK_FULL, ERR_FULL},
		{ERROR_SHARING_VIOLATION, ERR_BUSY}, {ERROR_NOT_ENOUGH_MEMORY, ERR_MEMORY},
		{ERROR_INVALID_NAME, ERR_USAGE}, {ERROR_BROKEN_PIPE, ERR_STOPPED},
	};
	char text[100];
	size_t i;

	for (i = 0; i < COUNT_OF(pairs); i++)
		assert_int_equal(os_error_code(pairs[i].error), pairs[i].code);
	os_error_text((int)0xC0000BB9, text, sizeof(text));
	assert_string_equal(text, "error 0xC0000BB9");
}

/* The pipe's name by the rule at the head of os_ipc_windows.c. */
static HANDLE call_pipe(const char *path, const char *bytes)
{
	wchar_t full[300], name[300];
	wchar_t *wide = wide_text(path);
	const wchar_t *tail;
	HANDLE pipe;
	DWORD n;

	GetFullPathNameW(wide, 300, full, NULL);
	wide_free(wide);
	LCMapStringEx(LOCALE_NAME_INVARIANT, LCMAP_LOWERCASE, full, -1, full, 300, NULL, NULL, 0);
	tail = wcsrchr(full, L'\\') + 1;
	_snwprintf(name, 300, L"\\\\.\\pipe\\recorder-%016I64x-%ls",
		   hash_bytes(full, wcslen(full) * sizeof(*full)), tail);
	pipe = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
	assert_true(pipe != INVALID_HANDLE_VALUE);
	if (bytes)
		assert_true(WriteFile(pipe, bytes, (DWORD)strlen(bytes), &n, NULL));
	return pipe;
}

TEST(os_ipc_ignores_callers_that_send_no_line)
{
	static const char path[] = "build/Garbage.Ctl";
	struct os_ipc_call *call = NULL;
	struct os_ipc *ipc = NULL;
	struct buf line = {0};
	HANDLE pipe;

	assert_int_equal(os_ipc_listen(path, &ipc, NULL), 0);
	CloseHandle(call_pipe(path, NULL));
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), ERR_NOT_FOUND);
	pipe = call_pipe(path, "no line feed");
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), ERR_NOT_FOUND);
	CloseHandle(pipe);
	pipe = call_pipe(path, NULL);
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), ERR_NOT_FOUND);
	CloseHandle(pipe);
	assert_null(call);
	pipe = call_pipe(path, "well\n");
	assert_int_equal(os_ipc_next(ipc, NS_PER_SEC, &line, &call, NULL), 0);
	assert_string_equal(buf_text(&line), "well");
	os_ipc_answer(call, "done");
	CloseHandle(pipe);
	os_ipc_close(ipc);
	buf_free(&line);
}

TEST(console_events_arrive_by_waiting)
{
	assert_int_equal(os_signals_open(NULL), 0);
	if (!GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, 0)) {
		os_signals_close();
		print_message("no console to send Ctrl-Break to\n");
		skip();
	}
	assert_int_equal(os_signal_wait(5 * NS_PER_SEC), OS_SIGNAL_SNAPSHOT);
	assert_int_equal(os_signal_wait(0), OS_SIGNAL_NONE);
	os_signals_close();
}

TEST(os_wake_wait_ends_by_a_signal_which_stays_to_be_taken)
{
	struct os_wake *wake = os_wake_new();
	uint64_t before = os_now_ns();

	assert_int_equal(os_signals_open(NULL), 0);
	os_signal_raise(OS_SIGNAL_SNAPSHOT);
	os_wake_wait(wake, NULL, true, 60 * NS_PER_SEC);
	assert_true(os_now_ns() - before < 30 * NS_PER_SEC);
	assert_int_equal(os_signal_wait(0), OS_SIGNAL_SNAPSHOT);
	before = os_now_ns();
	os_wake_wait(wake, NULL, true, 40 * NS_PER_MS);      /* it has been taken */
	assert_true(os_now_ns() - before >= 20 * NS_PER_MS);
	os_signals_close();
	os_wake_free(wake);
}

TEST(base_name_follows_the_hosts_last_separator)
{
	static const char *const pairs[][2] = {
		{"C:\\a\\b", "b"}, {"/a\\b", "b"}, {"a/b", "b"}, {"b", "b"}, {"", ""}};
	size_t i;

	for (i = 0; i < COUNT_OF(pairs); i++)
		assert_string_equal(os_base_name(pairs[i][0]), pairs[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base_name_follows_the_hosts_last_separator),
		cmocka_unit_test(os_create_and_replace_never_follow_a_link),
		cmocka_unit_test(rights_of_the_owner_alone_are_understood_by_this_system),
		cmocka_unit_test(wide_texts_go_there_and_back),
		cmocka_unit_test(long_paths_get_the_prefix_and_short_ones_stay_as_they_are),
		cmocka_unit_test(os_dirname_knows_drives_and_both_separators),
		cmocka_unit_test(os_env_is_utf8_and_follows_changes),
		cmocka_unit_test(out_writes_into_a_device),
		cmocka_unit_test(system_errors_have_the_codes_of_their_kind),
		cmocka_unit_test(os_ipc_ignores_callers_that_send_no_line),
		cmocka_unit_test(console_events_arrive_by_waiting),
		cmocka_unit_test(os_wake_wait_ends_by_a_signal_which_stays_to_be_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
