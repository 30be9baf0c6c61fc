/*
 * Stacks of another process's threads, of which the test knows how deep they are
 * (programs/threads_windows.c), beside the system's own StackWalk64().
 */
#include "source/stopped/thread_stacks.h"

#include "base/os.h"
#include "tests/support/tmp.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <dbghelp.h>
#include <tlhelp32.h>

#define PROGRAM "build/windows/programs/threads_windows.exe"

enum { DEPTHS = 12, SEEN_MAX = 256, DEPTH_MAX = 128, START_MS = 30000 };

struct target {
	PROCESS_INFORMATION process;
	struct frames *frames;
	struct thread_stacks *stacks;
};

struct seen {
	uint32_t tid, nframes;
	char name[64];
	enum stack_quality quality;
	uint64_t addresses[DEPTH_MAX];
	struct frame_ref frames[DEPTH_MAX];
};

static struct seen seen[SEEN_MAX];
static uint32_t nseen;

static void keep(void *ctx, const struct thread_stack *stack)
{
	struct seen *s = &seen[nseen];

	(void)ctx;
	assert_true(nseen < SEEN_MAX);
	assert_true(stack->nframes <= DEPTH_MAX);
	nseen++;
	s->tid = stack->tid;
	s->nframes = stack->nframes;
	s->quality = stack->quality;
	snprintf(s->name, sizeof(s->name), "%s", stack->name);
	memcpy(s->addresses, stack->addresses, stack->nframes * sizeof(*s->addresses));
	memcpy(s->frames, stack->frames, stack->nframes * sizeof(*s->frames));
}

static void take(struct target *t)
{
	nseen = 0;
	assert_int_equal(thread_stacks_take(t->stacks, 0, keep, NULL, NULL), 0);
}

static void start(struct target *t, const char *arguments)
{
	STARTUPINFOA info = {.cb = sizeof(info)};
	char command[TMP_BYTES + 200];
	uint32_t waited;

	memset(t, 0, sizeof(*t));
	if (!os_exists(PROGRAM)) {
		print_message("no %s; run 'make VARIANT=windows programs'\n", PROGRAM);
		skip();
	}
	snprintf(command, sizeof(command), "%s %.*s \"%s\"%s", PROGRAM,
		 (int)strcspn(arguments, " "), arguments, tmp_path("ready"),
		 arguments + strcspn(arguments, " "));
	os_remove(tmp_path("ready"), NULL);
	assert_true(CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &info,
				   &t->process));
	for (waited = 0; !os_exists(tmp_path("ready")) && waited < START_MS; waited += 10)
		os_sleep_ns(10 * NS_PER_MS);
	assert_true(waited < START_MS);
	assert_int_equal(frames_new(&t->frames, NULL), 0);
	assert_int_equal(thread_stacks_open(t->process.dwProcessId, t->frames, &t->stacks, NULL),
			 0);
}

static void end(struct target *t)
{
	thread_stacks_close(t->stacks);
	frames_free(t->frames);
	TerminateProcess(t->process.hProcess, 0);
	WaitForSingleObject(t->process.hProcess, 5000);
	CloseHandle(t->process.hProcess);
	CloseHandle(t->process.hThread);
}

/* ---- every thread, every frame --------------------------------------------------------------- */

/*
 * The range of frames of the program itself, and whether what is around them are the system's
 * images.
 */
static uint32_t frames_of_program(const struct seen *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->nframes; i++)
		n += strcmp(s->frames[i].object->name, "threads_windows.exe") == 0;
	return n;
}

static void assert_known_depths(uint32_t nthreads)
{
	uint32_t i, workers = 0;
	int number;

	assert_int_equal(nseen, nthreads + 1);
	for (i = 0; i < nseen; i++) {
		assert_int_equal(seen[i].quality, QUALITY_COMPLETE);
		assert_string_equal(seen[i].frames[seen[i].nframes - 1].object->name, "ntdll.dll");
		if (sscanf(seen[i].name, "worker %d", &number) != 1)
			continue;
		workers++;
		/* descend() as often as is known, wait_here() below, thread_main() above */
		assert_int_equal(frames_of_program(&seen[i]), (uint32_t)number % DEPTHS + 1 + 2);
		assert_string_equal(seen[i].frames[0].object->name, "ntdll.dll");
	}
	assert_int_equal(workers, nthreads);
}

static void assert_nobody_is_suspended(void)
{
	HANDLE thread;
	uint32_t i;

	for (i = 0; i < nseen; i++) {
		thread = OpenThread(THREAD_SUSPEND_RESUME, FALSE, seen[i].tid);
		assert_non_null(thread);
		assert_int_equal(SuspendThread(thread), 0);
		ResumeThread(thread);
		CloseHandle(thread);
	}
}

static void whole_stacks_of(const char *nthreads)
{
	struct thread_stacks_use use;
	struct target t;

	start(&t, nthreads);
	take(&t);
	assert_known_depths((uint32_t)atoi(nthreads));
	assert_nobody_is_suspended();
	thread_stacks_use(t.stacks, &use);
	print_message("%s threads: the longest was stopped for %" PRIu64 " us\n", nthreads,
		      use.longest_ns / 1000);
	assert_int_equal(use.refused, 0);
	assert_int_equal(use.not_resumed, 0);
	end(&t);
}

TEST(four_threads_have_whole_stacks)
{
	whole_stacks_of("4");
}

TEST(two_hundred_threads_have_whole_stacks)
{
	whole_stacks_of("200");
}

/* ---- beside StackWalk64 ---------------------------------------------------------------------- */

/* As debuggers do: the thread is stopped while it is walked. Returns the number of frames. */
static uint32_t system_walk(HANDLE process, uint32_t tid, uint64_t *addresses)
{
	HANDLE thread = OpenThread(THREAD_ALL_ACCESS, FALSE, tid);
	CONTEXT context __attribute__((aligned(16))) = {.ContextFlags = CONTEXT_FULL};
	STACKFRAME64 frame = {0};
	uint32_t n = 0;

	assert_non_null(thread);
	SuspendThread(thread);
	assert_true(GetThreadContext(thread, &context));
	frame.AddrPC.Offset = context.Rip;
	frame.AddrStack.Offset = context.Rsp;
	frame.AddrFrame.Offset = context.Rbp;
	frame.AddrPC.Mode = frame.AddrStack.Mode = frame.AddrFrame.Mode = AddrModeFlat;
	while (n < DEPTH_MAX &&
	       StackWalk64(IMAGE_FILE_MACHINE_AMD64, process, thread, &frame, &context, NULL,
			   SymFunctionTableAccess64, SymGetModuleBase64, NULL) &&
	       frame.AddrPC.Offset)
		addresses[n++] = frame.AddrPC.Offset;
	ResumeThread(thread);
	CloseHandle(thread);
	return n;
}

static uint64_t system_walks(struct target *t, uint32_t nthreads)
{
	uint64_t addresses[DEPTH_MAX], start_ns = os_now_ns();
	uint32_t i, k, n;

	for (i = 0; i < nthreads; i++) {
		n = system_walk(t->process.hProcess, seen[i].tid, addresses);
		assert_int_equal(n, seen[i].nframes);
		for (k = 0; k < n; k++)
			assert_int_equal(addresses[k], seen[i].addresses[k]);
	}
	return os_now_ns() - start_ns;
}

TEST(frames_are_those_of_the_systems_walk)
{
	uint64_t ours_ns, systems_ns, start_ns;
	struct target t;

	start(&t, "50");
	take(&t);
	assert_known_depths(50);
	SymSetOptions(SYMOPT_DEFERRED_LOADS);
	assert_true(SymInitialize(t.process.hProcess, NULL, TRUE));
	/* Both have read what they keep, when it counts. */
	system_walks(&t, 3);
	systems_ns = system_walks(&t, nseen);
	start_ns = os_now_ns();
	take(&t);
	ours_ns = os_now_ns() - start_ns;
	print_message("50 threads: copies walked later %" PRIu64
		      " us, StackWalk64 while stopped %" PRIu64 " us: %.1f times\n",
		      ours_ns / 1000, systems_ns / 1000, (double)systems_ns / (double)ours_ns);
	assert_true(ours_ns < systems_ns);
	SymCleanup(t.process.hProcess);
	end(&t);
}

/* ---- interrupted anywhere -------------------------------------------------------------------- */

TEST(threads_at_work_have_whole_stacks_wherever_they_are)
{
	uint32_t round, i, whole = 0, depth;
	struct target t;
	int number;

	start(&t, "2 busy");
	for (round = 0; round < 40; round++) {
		take(&t);
		for (i = 0; i < nseen; i++) {
			if (sscanf(seen[i].name, "worker %d", &number) != 1)
				continue;
			depth = frames_of_program(&seen[i]);
			if (seen[i].quality != QUALITY_COMPLETE || depth < 1 ||
			    depth > (uint32_t)number + 3)
				print_message("worker %d: %u frames, %s\n", number, seen[i].nframes,
					      stack_quality_text(seen[i].quality));
			else
				whole++;
		}
	}
	assert_int_equal(whole, 80);
	end(&t);
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(this_process_is_refused)
{
	struct frames *frames = NULL;
	struct thread_stacks *s = NULL;
	struct err err = {0};

	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(thread_stacks_open(os_pid(), frames, &s, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "the recorder itself"));
	assert_int_equal(thread_stacks_open(999996, frames, &s, &err), ERR_NOT_FOUND);
	assert_null(s);
	frames_free(frames);
}

TEST(a_process_that_has_ended_is_said_to_have)
{
	struct target t;
	struct err err = {0};

	start(&t, "4");
	TerminateProcess(t.process.hProcess, 0);
	WaitForSingleObject(t.process.hProcess, 5000);
	nseen = 0;
	assert_int_equal(thread_stacks_take(t.stacks, 0, keep, NULL, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "has ended"));
	assert_int_equal(nseen, 0);
	assert_int_equal(thread_stacks_refresh(t.stacks, &err), ERR_NOT_FOUND);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_threads_have_whole_stacks),
		cmocka_unit_test(two_hundred_threads_have_whole_stacks),
		cmocka_unit_test(frames_are_those_of_the_systems_walk),
		cmocka_unit_test(threads_at_work_have_whole_stacks_wherever_they_are),
		cmocka_unit_test(this_process_is_refused),
		cmocka_unit_test(a_process_that_has_ended_is_said_to_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
