/* Perf maps as files: this process's own one, written while the worker names frames by it. */
#include "symbol/symbol.h"
#include "tests/support/tmp.h"

#include "base/os.h"
#include "symbol/perfmap.h"
#include "symbol/symbol_open.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct symbol_env live;

struct world {
	struct frames *frames;
	struct processes *processes;
	struct symbols *symbols;
	struct object *object;
	struct log *log;               /* NULL = none */
	char path[64];
};

static void open_world(struct world *w, uint32_t pid)
{
	struct object_key key = {.kind = OBJECT_JIT, .pid = pid, .path = "[jit]"};

	snprintf(w->path, sizeof(w->path), "/tmp/perf-%" PRIu32 ".map", pid);
	unlink(w->path);
	assert_int_equal(frames_new(&w->frames, NULL), 0);
	assert_int_equal(processes_new(&w->processes, NULL), 0);
	assert_int_equal(symbols_open(w->frames, &live, w->log, &w->symbols, NULL),
			 0);
	w->object = objects_get(w->frames, &key, pid);
	assert_non_null(w->object);
}

static void close_world(struct world *w)
{
	unlink(w->path);
	symbols_close(w->symbols);
	processes_free(w->processes);
	frames_free(w->frames);
}

static void append(const char *path, const char *text)
{
	struct os_file *file = NULL;

	assert_int_equal(os_open(path, OS_APPEND, &file, NULL), 0);
	assert_int_equal(os_write(file, text, strlen(text), NULL), 0);
	os_close(file);
}

#define NAMED_MS 60000                   /* a busy machine may take that long */

/* Settle until it has a name, at most wait_ms; "" = it has none then. */
static const char *name_within(struct world *w, uint64_t address, unsigned wait_ms)
{
	struct frame_ref ref = {w->object, address, FRAME_JIT};
	bool fresh;
	struct frame *frame = frame_get(w->frames, frames_intern(w->frames, &ref, &fresh));
	uint64_t end_ns = os_now_ns() + wait_ms * NS_PER_MS;
	const struct function *function;

	frame_ref(frame);
	while (symbols_settle(w->symbols, &frame, 1, 5 * NS_PER_SEC) && os_now_ns() < end_ns)
		os_sleep_ns(5 * NS_PER_MS);
	function = atomic_load(&frame->function);
	return function ? function->name : "";
}

TEST(worker_names_jitted_frames_by_a_map_that_appears_and_grows)
{
	struct symbols_use use;
	struct world w = {0};

	open_world(&w, os_pid());
	assert_string_equal(name_within(&w, 0x1000, 0), "");
	append(w.path, "1000 100 hot /srv/app.js:1\n");
	assert_string_equal(name_within(&w, 0x1010, NAMED_MS), "hot /srv/app.js:1");
	assert_string_equal(name_within(&w, 0x1000, NAMED_MS), "hot /srv/app.js:1");
	append(w.path, "2000 100 late\n");
	assert_string_equal(name_within(&w, 0x2010, NAMED_MS), "late");
	/* Another file in its place. */
	unlink(w.path);
	append(w.path, "3000 100 again\n");
	assert_string_equal(name_within(&w, 0x3010, NAMED_MS), "again");
	symbols_use(w.symbols, &use);
	assert_int_equal(use.objects_failed, 0);
	assert_int_equal(use.files_open, 1);
	close_world(&w);
}

TEST(worker_reads_what_a_process_wrote_just_before_it_ended)
{
	struct world w = {0};
	int to_child[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(to_child), 0);
	pid = fork();
	if (pid == 0) {
		close(to_child[1]);
		_exit(read(to_child[0], &byte, 1) < 0);
	}
	open_world(&w, (uint32_t)pid);
	append(w.path, "1000 100 early\n");
	assert_string_equal(name_within(&w, 0x1010, NAMED_MS), "early");
	append(w.path, "2000 100 at the end\n");
	close(to_child[0]);
	close(to_child[1]);
	waitpid(pid, NULL, 0);
	unlink(w.path);
	assert_string_equal(name_within(&w, 0x2010, NAMED_MS), "at the end");
	close_world(&w);
}

/* sh runs as the process in which another program ran before: its map is not the old one's. */
TEST(map_of_another_program_in_the_process_names_nothing_of_the_first)
{
	struct world w = {0};
	int to_child[2];
	char byte = 0;
	uint64_t before;
	unsigned i;
	pid_t pid;

	assert_int_equal(pipe(to_child), 0);
	pid = fork();
	if (pid == 0) {
		close(to_child[1]);
		if (read(to_child[0], &byte, 1) == 1)
			execl("/bin/sh", "sh", "-c", "read wait", (char *)NULL);
		_exit(1);
	}
	before = symbol_process_identity((uint32_t)pid);
	open_world(&w, (uint32_t)pid);
	append(w.path, "1000 100 first\n");
	assert_string_equal(name_within(&w, 0x1010, NAMED_MS), "first");
	assert_int_equal(write(to_child[1], "x", 1), 1);
	for (i = 0; i < 1000 && symbol_process_identity((uint32_t)pid) == before; i++)
		os_sleep_ns(5 * NS_PER_MS);
	assert_true(i < 1000);
	unlink(w.path);
	append(w.path, "2000 100 second\n");
	assert_string_equal(name_within(&w, 0x2010, 1500), "");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(symbol_process_identity((uint32_t)pid), 0);
	close(to_child[0]);
	close(to_child[1]);
	close_world(&w);
}

TEST(worker_reads_the_first_part_of_a_huge_map_and_says_so_once)
{
	const char *log_path = tmp_path("log");
	struct world w = {0};
	struct buf log = {0};
	const char *said;

	assert_int_equal(log_open(log_path, &w.log, NULL), 0);
	open_world(&w, os_pid());
	append(w.path, "1000 100 first\n");
	assert_int_equal(truncate(w.path, (off_t)2 << 30), 0);   /* takes no disk space */
	append(w.path, "\n2000 100 beyond\n");
	assert_string_equal(name_within(&w, 0x1010, NAMED_MS), "first");
	append(w.path, "3000 100 beyond\n");
	assert_string_equal(name_within(&w, 0x2010, 1500), "");
	close_world(&w);
	log_close(w.log);
	assert_int_equal(os_load(log_path, 65536, &log, NULL), 0);
	said = strstr(buf_text(&log), "larger than 64 MB");
	assert_non_null(said);
	assert_null(strstr(said + 1, "larger than 64 MB"));
	buf_free(&log);
}

TEST(perf_map_is_refused_when_it_is_no_file_of_the_process)
{
	struct os_file *file = NULL;
	char path[64], target[80];
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", os_pid());
	snprintf(target, sizeof(target), "%s.target", path);
	unlink(path);
	assert_int_equal(symbol_perf_map(os_pid(), &file, NULL), ERR_NOT_FOUND);
	assert_int_equal(symbol_perf_map(0, &file, NULL), ERR_NOT_FOUND);
	append(target, "1000 100 f\n");
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(symbol_perf_map(os_pid(), &file, NULL), ERR_ACCESS);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(symbol_perf_map(os_pid(), &file, NULL), ERR_ACCESS);
	unlink(path);
	assert_int_equal(rename(target, path), 0);
	assert_int_equal(symbol_perf_map(os_pid(), &file, NULL), 0);
	os_close(file);
	/* Left behind by an earlier process with this pid. */
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(symbol_perf_map(os_pid(), &file, NULL), ERR_NOT_FOUND);
	unlink(path);
}

TEST(perf_map_of_another_user_is_refused)
{
	struct os_file *file = NULL;
	struct err err = {0};
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", os_pid());
	unlink(path);
	append(path, "1000 100 f\n");
	if (chown(path, 12345, (gid_t)-1) != 0) {
		unlink(path);
		print_message("giving a file to another user needs root\n");
		skip();
	}
	assert_int_equal(symbol_perf_map(os_pid(), &file, &err), ERR_ACCESS);
	assert_non_null(strstr(err.text, "12345"));
	unlink(path);
}

/* The first process of a pid namespace calls itself 1, and its map perf-1.map. */
TEST(perf_map_has_the_pid_by_which_the_process_knows_itself)
{
	static const char path[] = "/tmp/perf-1.map";
	struct os_file *file = NULL;
	int status = 0, rc;
	pid_t maker, pid;
	bool made;

	maker = fork();
	if (maker == 0) {
		if (unshare(CLONE_NEWPID) != 0)
			_exit(1);
		pid = fork();
		if (pid == 0) {
			os_sleep_ns(20 * NS_PER_SEC);
			_exit(0);
		}
		made = !os_exists(path);
		if (made)
			append(path, "1000 100 f\n");
		rc = symbol_perf_map((uint32_t)pid, &file, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (made)
			unlink(path);
		_exit(rc ? 2 : 0);
	}
	waitpid(maker, &status, 0);
	if (WEXITSTATUS(status) == 1) {
		print_message("a pid namespace needs root\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_names_jitted_frames_by_a_map_that_appears_and_grows),
		cmocka_unit_test(worker_reads_what_a_process_wrote_just_before_it_ended),
		cmocka_unit_test(map_of_another_program_in_the_process_names_nothing_of_the_first),
		cmocka_unit_test(worker_reads_the_first_part_of_a_huge_map_and_says_so_once),
		cmocka_unit_test(perf_map_is_refused_when_it_is_no_file_of_the_process),
		cmocka_unit_test(perf_map_of_another_user_is_refused),
		cmocka_unit_test(perf_map_has_the_pid_by_which_the_process_knows_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
