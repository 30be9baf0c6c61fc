/* LiveStacks text and folded text. */
#include "tests/support/export_text.h"
#include "tests/support/export_totals.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct export_options offsets = {.annotate = true, .ids = true, .offsets = true};

TEST(the_small_incident_is_as_in_the_files)
{
	assert_export_is("livestacks", NULL, "small.txt");
	assert_export_is("folded", &offsets, "small-offsets.folded");
}

TEST(hostile_names_keep_to_the_grammar)
{
	struct buf text = {0}, folded = {0};
	struct incident in;

	assert_int_equal(sample_hostile(&in), 0);
	assert_int_equal(export_text(&in, "livestacks", NULL, &text), 0);
	assert_int_equal(livestacks_total(buf_text(&text)), in.nsamples);
	assert_int_equal(export_text(&in, "folded", &offsets, &folded), 0);
	assert_int_equal(folded_total(buf_text(&folded)), in.nsamples);
	assert_non_null(strstr(folded.data, "a:b:c (11);app!main+0x0;a:b:c!a:b:c+0x0 1\n"));
	assert_non_null(strstr(folded.data, "#_comment (28);"));
	buf_free(&text);
	buf_free(&folded);
	incident_free(&in);
}

TEST(only_the_top_is_written_when_asked)
{
	struct export_options opt = export_defaults;
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_small(&in), 0);
	opt.top = 1;
	assert_int_equal(export_text(&in, "livestacks", &opt, &text), 0);
	assert_string_equal(text.data, "           3 [app 100]\n    app!burn_alpha+0x1000\n"
				       "    app!main+0x1000\n\n");
	buf_reset(&text);
	opt.top = 0;
	opt.min_weight = 2;
	assert_int_equal(export_text(&in, "livestacks", &opt, &text), 0);
	assert_int_equal(livestacks_total(buf_text(&text)), 5);
	buf_free(&text);
	incident_free(&in);
}

TEST(a_caller_shows_its_return_address_from_its_functions_start)
{
	struct incident_frame f = {.flags = FRAME_RETURN_ADDRESS, .offset = 0x10ff,
				   .function_offset = 0x1000, .function = "f"};
	struct incident_module m = {.kind = OBJECT_ELF, .name = "m", .path = "/m"};
	struct buf text = {0};
	struct incident in;

	assert_int_equal(sample_incident(&in), 0);
	f.module = incident_add_module(&in, &m);
	assert_int_equal(
		sample_add(&in, THREAD_NONE,
			   incident_add_stack(&in, STACK_NONE, incident_add_frame(&in, &f)),
			   QUALITY_FP, 1),
		0);
	assert_int_equal(export_text(&in, "livestacks", NULL, &text), 0);
	assert_string_equal(text.data, "           1 [UNKNOWN 0]\n    m!f+0x100\n\n");
	buf_free(&text);
	incident_free(&in);
}

/* ---- transcripts of LiveStacks' page --------------------------------------------------------- */

static const char eat_cpu[] =
	"    EatCPU.exe!DoWork+0x27\n"
	"    EatCPU.exe!main+0x47\n"
	"    EatCPU.exe!invoke_main+0x1E\n"
	"    EatCPU.exe!__scrt_common_main_seh+0x15A\n"
	"    EatCPU.exe!__scrt_common_main+0xD\n"
	"    EatCPU.exe!mainCRTStartup+0x8\n"
	"    KERNEL32.DLL!@BaseThreadInitThunk@12+0x24\n"
	"    ntdll.dll!__RtlUserThreadStart+0x2F\n"
	"    ntdll.dll!__RtlUserThreadStart@8+0x1B\n",
	eat_cpu_earlier[] =
	"    EatCPU.exe!DoWork+0x1E\n"
	"    EatCPU.exe!main+0x47\n"
	"    EatCPU.exe!invoke_main+0x1E\n"
	"    EatCPU.exe!__scrt_common_main_seh+0x15A\n"
	"    EatCPU.exe!__scrt_common_main+0xD\n"
	"    EatCPU.exe!mainCRTStartup+0x8\n"
	"    KERNEL32.DLL!@BaseThreadInitThunk@12+0x24\n"
	"    ntdll.dll!__RtlUserThreadStart+0x2F\n"
	"    ntdll.dll!__RtlUserThreadStart@8+0x1B\n",
	wow64[] =
	"    wow64win.dll!NtUserCallOneParam+0x14\n"
	"    wow64win.dll!whNtUserCallOneParam+0x46\n"
	"    wow64.dll!Wow64SystemServiceEx+0x153\n"
	"    wow64cpu.dll!ServiceNoTurbo+0xB\n"
	"    wow64.dll!Wow64KiUserCallbackDispatcher+0x3930\n"
	"    wow64.dll!Wow64LdrpInitialize+0x120\n"
	"    ntdll.dll!LdrpInitializeProcess+0xFC1\n"
	"    ntdll.dll!_LdrpInitialize+0x506BC\n"
	"    ntdll.dll!LdrpInitialize+0x3B\n"
	"    ntdll.dll!LdrInitializeThunk+0xE\n"
	"    win32u.dll!NtUserCallOneParam+0xC\n"
	"    USER32.dll!GetQueueStatus+0x68\n"
	"    msenv.dll!CMsoCMHandler::FContinueIdle+0x1B\n"
	"    msenv.dll!SCM::FContinueIdle+0x25\n"
	"    msenv.dll!SCM::FDoIdle+0xD2\n"
	"    msenv.dll!SCM_MsoStdCompMgr::FDoIdle+0x11\n"
	"    msenv.dll!MainMessageLoop::DoIdle+0x1A\n"
	"    msenv.dll!CMsoCMHandler::EnvironmentMsgLoop+0x125\n"
	"    msenv.dll!CMsoCMHandler::FPushMessageLoop+0x105\n"
	"    msenv.dll!SCM::FPushMessageLoop+0xB9\n"
	"    msenv.dll!SCM_MsoCompMgr::FPushMessageLoop+0x2A\n"
	"    msenv.dll!CMsoComponent::PushMsgLoop+0x2E\n"
	"    msenv.dll!VStudioMainLogged+0x5BD\n"
	"    msenv.dll!VStudioMain+0x7C\n"
	"    devenv.exe!util_CallVsMain+0xDE\n"
	"    devenv.exe!CDevEnvAppId::Run+0xB99\n"
	"    devenv.exe!WinMain+0xB8\n"
	"    devenv.exe!__scrt_common_main_seh+0xFD\n"
	"    KERNEL32.DLL!BaseThreadInitThunk+0x24\n"
	"    ntdll.dll!+0x6587D\n"
	"    ntdll.dll!+0x6584D\n";

/* "module!function+0xOFFSET", the leaf first. Frames without a function lie in no function. */
static uint32_t add_frames(struct incident *in, const char *text)
{
	const char *end = strchr(text, '\n'), *bang = strchr(text, '!'), *plus = end;
	struct incident_module m = {.kind = OBJECT_PE};
	struct incident_frame f = {0};
	char module[64], function[64];
	uint32_t caller;

	if (!*text)
		return STACK_NONE;
	caller = add_frames(in, end + 1);
	while (*plus != '+')
		plus--;
	snprintf(module, sizeof(module), "%.*s", (int)(bang - text) - 4, text + 4);
	snprintf(function, sizeof(function), "%.*s", (int)(plus - bang) - 1, bang + 1);
	m.name = m.path = module;
	f.function = *function ? function : NULL;
	f.function_offset = *function ? 0x1000 : 0;
	f.offset = f.function_offset + strtoull(plus + 1, NULL, 16);
	f.module = incident_add_module(in, &m);
	return incident_add_stack(in, caller, incident_add_frame(in, &f));
}

static void add_samples(struct incident *in, uint32_t thread, const char *text, unsigned n)
{
	assert_int_equal(sample_add(in, thread, add_frames(in, text), QUALITY_COMPLETE, n), 0);
}

TEST(transcripts_of_livestacks_page_are_written_as_they_stand_there)
{
	struct buf text = {0}, expected = {0};
	struct incident in;
	uint32_t thread;

	assert_int_equal(sample_incident(&in), 0);
	thread = sample_thread(&in, "devenv", 11200, "", 1);
	add_samples(&in, thread, wow64, 17275);
	thread = sample_thread(&in, "EatCPU", 7408, "", 2);
	add_samples(&in, thread, eat_cpu, 811);
	add_samples(&in, thread, eat_cpu_earlier, 400);
	assert_int_equal(export_text(&in, "livestacks", &offsets, &text), 0);
	buf_printf(&expected, "       17275 [devenv 11200]\n%s\n         811 [EatCPU 7408]\n%s\n"
		   "         400 [EatCPU 7408]\n%s\n", wow64, eat_cpu, eat_cpu_earlier);
	assert_string_equal(buf_text(&text), buf_text(&expected));
	buf_free(&text);
	buf_free(&expected);
	incident_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_small_incident_is_as_in_the_files),
		cmocka_unit_test(hostile_names_keep_to_the_grammar),
		cmocka_unit_test(only_the_top_is_written_when_asked),
		cmocka_unit_test(a_caller_shows_its_return_address_from_its_functions_start),
		cmocka_unit_test(transcripts_of_livestacks_page_are_written_as_they_stand_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
