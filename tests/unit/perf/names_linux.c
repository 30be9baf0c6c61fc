/* Processes that are called otherwise than their file: a live one, whose records come by hand. */
#include "source/perf/state_linux.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct perf_state_config cfg = {.only_process = "night-watch", .command_lines = true};
static struct perf_state *state_of;

static int open_state(void **state)
{
	(void)state;
	cfg.queue = queue_new(1 << 20);
	if (!cfg.queue || frames_new(&cfg.frames, NULL) || processes_new(&cfg.processes, NULL))
		return -1;
	return perf_state_new(&cfg, &state_of, NULL);
}

static int close_state(void **state)
{
	(void)state;
	perf_state_free(state_of);
	queue_free(cfg.queue);
	frames_free(cfg.frames);
	processes_free(cfg.processes);
	return 0;
}

static void feed_exec(uint32_t pid, uint64_t time_ns)
{
	struct perf_record r = {.kind = PERF_KIND_COMM, .time_ns = time_ns, .pid = pid, .tid = pid,
				.u.comm = {"sleep", true}};
	struct perf_process *p = perf_state_find(state_of, pid);

	if (!p)
		p = perf_state_add_process(state_of, pid, 1, time_ns - 1, "sh");
	assert_non_null(perf_state_add_thread(state_of, p, pid));
	perf_state_feed(state_of, &r);
}

/* A sleep that is called otherwise, and sleeps already. */
static pid_t start_called(const char *name)
{
	struct buf text = {0};
	pid_t pid = fork();
	unsigned i;

	if (pid == 0) {
		execl("/bin/sleep", name, "100", (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	for (i = 0; i < 5000 && strncmp(buf_text(&text), name, strlen(name)) != 0; i++) {
		os_sleep_ns(NS_PER_MS);
		buf_reset(&text);
		os_process_arguments((uint32_t)pid, &text, NULL);
	}
	buf_free(&text);
	return pid;
}

TEST(a_process_is_wanted_once_its_command_line_says_so)
{
	uint32_t pid = (uint32_t)start_called("night-watch");
	const struct perf_process *p;
	unsigned i;

	feed_exec(pid, 300);
	p = perf_state_find(state_of, pid);
	assert_true(p->skipped);
	for (i = 0; i < 5000 && perf_state_reading(state_of, pid, pid, 310); i++)
		os_sleep_ns(NS_PER_MS);
	assert_false(p->skipped);
	assert_string_equal(atomic_load(&p->process->cmdline), "night-watch 100");
	/* It is waited for at one look only. */
	feed_exec(pid, 400);
	assert_true(p->skipped);
	perf_state_look(state_of, 410);
	assert_false(perf_state_reading(state_of, pid, pid, 420));
	for (i = 0; i < 5000 && p->skipped; i++)
		perf_state_look(state_of, 430);
	assert_false(p->skipped);
	feed_exec(pid, 500);     /* and it ends while it is read */
	kill((pid_t)pid, SIGKILL);
	waitpid((pid_t)pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_process_is_wanted_once_its_command_line_says_so, open_state, close_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
