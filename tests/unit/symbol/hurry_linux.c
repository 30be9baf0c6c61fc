/* The symbol worker's priority while somebody waits for it, wherever it stands. */
#include "symbol/symbol.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct symbol_env live;
static atomic_bool stuck, go_on;

/* The worker is as if amid a long request: it does not look at what it is asked. */
static void hold(int number)
{
	(void)number;
	atomic_store(&stuck, true);
	while (!atomic_load(&go_on))
		os_sleep_ns(NS_PER_MS);
}

static bool may_raise(void)
{
	int before = getpriority(PRIO_PROCESS, 0);
	bool may = setpriority(PRIO_PROCESS, 0, before - 1) == 0;

	setpriority(PRIO_PROCESS, 0, before);
	return may;
}

/* The thread of this name, once it is there; and its nice value. */
static int thread_called(const char *name)
{
	for (;;) {
		DIR *tasks = opendir("/proc/self/task");
		struct dirent *entry;
		int found = 0;

		assert_non_null(tasks);
		while (!found && (entry = readdir(tasks)) != NULL) {
			char path[300];
			struct buf comm = {0};

			snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
			if (atoi(entry->d_name) && !os_load(path, 100, &comm, NULL) &&
			    !strncmp(buf_text(&comm), name, strlen(name)))
				found = atoi(entry->d_name);
			buf_free(&comm);
		}
		closedir(tasks);
		if (found)
			return found;
		os_sleep_ns(NS_PER_MS);
	}
}

static int nice_of(int tid)
{
	return getpriority(PRIO_PROCESS, (id_t)tid);
}

/* With nothing to do it holds no lock; what is held in a handler must not hold any. */
static bool sleeps(int tid)
{
	struct buf stat = {0};
	char path[64];
	bool yes;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	assert_int_equal(os_load(path, 4096, &stat, NULL), 0);
	yes = strstr(buf_text(&stat), ") S ") != NULL;
	buf_free(&stat);
	return yes;
}

TEST(worker_is_hurried_amid_a_request_and_slows_down_again)
{
	struct sigaction act = {.sa_handler = hold, .sa_flags = SA_RESTART};
	struct frame_ref ref = {.offset = 1};
	struct object_key key = {.kind = OBJECT_ELF, .path = "[none]"};
	struct processes *processes;
	struct symbols *symbols;
	struct frames *frames;
	struct frame *frame;
	bool fresh;
	int worker;

	if (!may_raise()) {
		print_message("this user may not raise a thread's priority\n");
		skip();
	}
	sigaction(SIGUSR1, &act, NULL);
	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(processes_new(&processes, NULL), 0);
	assert_int_equal(symbols_open(frames, &live, NULL, &symbols, NULL), 0);
	ref.object = objects_get(frames, &key, os_pid());
	frame = frame_get(frames, frames_intern(frames, &ref, &fresh));
	frame_ref(frame);

	worker = thread_called("symbols");
	while (nice_of(worker) != 10 || !sleeps(worker))
		os_sleep_ns(NS_PER_MS);
	syscall(SYS_tgkill, getpid(), worker, SIGUSR1);
	while (!atomic_load(&stuck))
		os_sleep_ns(NS_PER_MS);
	assert_int_equal(nice_of(worker), 10);
	/* 1 ns: it has not been looked at */
	assert_int_equal(symbols_settle(symbols, &frame, 1, 1), 1);
	assert_int_equal(nice_of(worker), -10);

	atomic_store(&go_on, true);
	while (nice_of(worker) != 10)
		os_sleep_ns(NS_PER_MS);
	symbols_close(symbols);
	processes_free(processes);
	frames_free(frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_is_hurried_amid_a_request_and_slows_down_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
