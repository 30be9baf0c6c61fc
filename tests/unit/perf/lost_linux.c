/* Which process a sample belongs to when records were lost, or never came. */
#include "source/perf/state_linux.h"

#include "base/array.h"
#include "base/text.h"
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/cpus_linux.h"
#include "source/perf/memory_linux.h"
#include "tests/support/perf_state_lab_linux.h"
#include "tests/support/tmp.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(child_of_an_unknown_parent_is_kept)
{
	feed_fork(SH, INIT + 77, 200);
	assert_string_equal(name_of(SH), "?");
	feed_comm(SH, SH, "sh", true, 300);
	assert_string_equal(name_of(SH), "sh");
}

TEST(sample_of_an_unknown_process_makes_one)
{
	struct perf_thread *t = thread_of(SH, SH + 1);

	assert_non_null(t);
	assert_int_equal(t->process->pid, SH);
	assert_string_equal(name_of(SH), "?");
	assert_ptr_equal(thread_of(SH, SH + 1), t);
}

/*
 * /proc did not answer, or not in time: its next mapping is not its program, whose own one came
 * before. An exec names it.
 */
TEST(a_mapping_does_not_name_a_process_that_nobody_knows)
{
	thread_of(SH, SH);
	feed_mmap(SH, "/lib/libc.so.6", 0x1000, 200);
	assert_string_equal(name_of(SH), "?");
	assert_string_equal(file_at(SH, 0x1000), "libc.so.6");
	feed_fork(SH + 1, INIT + 77, 300);
	feed_mmap(SH + 1, "/lib/libc.so.6", 0x1000, 400);
	assert_string_equal(name_of(SH + 1), "?");
	feed_comm(SH, SH, "sh", true, 500);
	feed_mmap(SH, "/bin/dash", 0x1000, 600);
	assert_string_equal(name_of(SH), "dash");
}

/*
 * /proc did not answer at the start, and tells now what runs now: the sample is older. Between the
 * two the process may have become another program.
 */
TEST(what_runs_now_names_an_older_sample_once_no_record_says_otherwise)
{
	uint32_t pid = (uint32_t)getpid();
	const struct process *p = thread_of(pid, pid)->process->process;

	assert_string_equal(process_name(p), "?");
	while (strcmp(process_name(p), "?") == 0) {
		thread_of(pid, pid);
		perf_state_look(state_of, os_now_ns());
		os_sleep_ns(NS_PER_MS);
	}
	assert_string_equal(process_name(p), "lost_linux");
	assert_ptr_equal(thread_of(pid, pid)->process->process, p);
}

TEST(what_runs_now_names_no_sample_before_an_exec)
{
	uint32_t pid = (uint32_t)getpid();
	const struct process *p = thread_of(pid, pid)->process->process;

	os_sleep_ns(20 * NS_PER_MS);             /* /proc is read */
	thread_of(pid, pid);
	feed_comm(pid, pid, "next", true, 400);
	assert_string_equal(name_of(pid), "next");
	feed_mmap(pid, "/bin/next", 0x1000, 410);
	perf_state_look(state_of, 420);
	assert_string_equal(name_of(pid), "next");
	assert_string_equal(process_name(p), "?");
}

/* The kernel gives -1 for a task without a number any more, 0 for the idle one. */
TEST(tasks_without_a_number_are_the_kernels)
{
	assert_true(thread_of(UINT32_MAX, UINT32_MAX)->process->kernel);
	assert_string_equal(name_of(UINT32_MAX), "exited");
	assert_true(thread_of(0, 0)->process->kernel);
	assert_string_equal(name_of(0), "idle");
}

/* On a busy machine the answer about a process may come too late for the first scan. */
static void scan_this_process(void)
{
	unsigned tries = 1000;

	do {
		assert_int_equal(perf_state_scan(state_of, 0, NULL), 0);
	} while (strcmp(file_at((uint32_t)getpid(), (uintptr_t)open_state), "lost_linux") &&
		 --tries);
}

/* This very process, under a wrong name and with a mapping it does not have: an exec was lost. */
TEST(scan_corrects_a_process_whose_records_were_lost)
{
	uint32_t pid = (uint32_t)getpid();
	struct perf_process *p;

	p = perf_state_add_process(state_of, pid, 1, 60, "wrong");
	perf_state_add_thread(state_of, p, pid);
	feed_mmap(pid, "/bin/wrong", 0x1000, 200);
	assert_string_equal(name_of(pid), "wrong");
	scan_this_process();
	assert_string_equal(name_of(pid), "lost_linux");
	assert_int_equal(p->exec, 1);
	assert_string_equal(file_at(pid, 0x1000), "?");
	assert_string_equal(file_at(pid, (uintptr_t)open_state), "lost_linux");
	/* Once more: nothing is new. */
	assert_int_equal(perf_state_scan(state_of, 0, NULL), 0);
	assert_int_equal(p->exec, 1);
}

/* The kernel's page for old programs stands in /proc, and no record tells of it. */
TEST(scan_leaves_out_what_is_not_code_of_the_process)
{
	uint32_t pid = (uint32_t)getpid();

	scan_this_process();
	assert_string_equal(file_at(pid, (uintptr_t)open_state), "lost_linux");
	assert_string_equal(file_at(pid, 0xffffffffff600000), "?");
}

/* What /proc says is of a later moment: only once the records have passed that, it is the name. */
TEST(a_sample_after_a_loss_has_a_name_once_the_records_have_passed_what_was_read)
{
	uint32_t pid = (uint32_t)getpid();
	const struct process *before, *after;
	struct perf_process *p;

	p = perf_state_add_process(state_of, pid, 1, 60, "wrong");
	perf_state_add_thread(state_of, p, pid);
	feed_mmap(pid, "/bin/wrong", 0x1000, 200);
	before = p->process;
	perf_state_lose(state_of, 350);
	after = thread_of(pid, pid)->process->process;
	assert_string_equal(process_name(after), "?");
	assert_string_equal(file_at(pid, 0x1000), "?");
	while (strcmp(process_name(after), "?") == 0) {
		thread_of(pid, pid);         /* as another sample */
		perf_state_look(state_of, os_now_ns());
		os_sleep_ns(NS_PER_MS);
	}
	assert_string_equal(process_name(before), "wrong");
	assert_string_equal(process_name(after), "lost_linux");
	assert_ptr_equal(thread_of(pid, pid)->process->process, after);
	assert_ptr_equal(thread_of(pid, pid)->thread->process, after);
	assert_string_equal(file_at(pid, (uintptr_t)open_state), "lost_linux");
}

/* Its process is another one from the loss on; nobody has seen the thread since, nor its exit. */
TEST(a_thread_that_rests_after_a_loss_does_not_end_another_one)
{
	const struct perf_thread *other[2];
	unsigned i;

	feed_fork(SH, INIT, 200);
	feed_thread(SH, SH + 1, 210);
	perf_state_lose(state_of, 350);
	thread_of(SH, SH);
	processes_sweep(processes, 20 * SECOND);
	for (i = 0; i < 2; i++) {
		feed_fork(SH + 2 + i, INIT, 400);    /* in the place of what was swept */
		other[i] = thread_of(SH + 2 + i, SH + 2 + i);
	}
	feed_exit(SH, SH + 1, 500);
	perf_state_expire(state_of, 5 * SECOND);
	for (i = 0; i < 2; i++)
		assert_int_equal(other[i]->thread->dropped_ns, 0);
	processes_sweep(processes, 40 * SECOND);
	for (i = 0; i < 2; i++)
		assert_ptr_equal(other[i]->thread->process, other[i]->process->process);
}

/* Whenever /proc was read, a newer record is there already: it says nothing of what was lost. */
TEST(a_process_that_changes_all_the_time_after_a_loss_is_not_known)
{
	uint32_t pid = (uint32_t)getpid();
	struct perf_process *p;
	unsigned i;

	p = perf_state_add_process(state_of, pid, 1, 60, "wrong");
	perf_state_add_thread(state_of, p, pid);
	feed_mmap(pid, "/bin/wrong", 0x1000, 200);
	perf_state_lose(state_of, 350);
	perf_state_rescan(state_of, 400);
	for (i = 0; i < 100; i++) {
		feed_mmap(pid, "/lib/next", 0x5000, os_now_ns() + NS_PER_SEC);
		perf_state_look(state_of, os_now_ns() + NS_PER_SEC);
		os_sleep_ns(NS_PER_MS);
	}
	assert_string_equal(process_name(thread_of(pid, pid)->process->process), "?");
}

TEST(a_sample_between_a_loss_and_an_exec_stays_without_a_name)
{
	uint32_t pid = (uint32_t)getpid();
	const struct process *between;
	struct perf_process *p;

	p = perf_state_add_process(state_of, pid, 1, 60, "wrong");
	perf_state_add_thread(state_of, p, pid);
	perf_state_lose(state_of, 350);
	between = thread_of(pid, pid)->process->process;
	os_sleep_ns(20 * NS_PER_MS);             /* /proc is read, but the records are not there */
	perf_state_look(state_of, 300);
	assert_string_equal(process_name(between), "?");
	feed_comm(pid, pid, "next", true, 400);
	assert_string_equal(name_of(pid), "next");
	perf_state_look(state_of, os_now_ns());
	assert_string_equal(process_name(between), "?");
	assert_int_equal(thread_of(pid, pid)->process->pid, pid);
}

/* The ring of one CPU was full for longer than another's. */
TEST(an_exec_record_while_others_are_missing_names_no_later_sample)
{
	uint32_t pid = (uint32_t)getpid();

	perf_state_add_thread(state_of, perf_state_add_process(state_of, pid, 1, 60, "first"), pid);
	perf_state_lose(state_of, 5000);
	feed_comm(pid, pid, "second", true, 400);
	assert_string_equal(name_of(pid), "second");
	assert_string_equal(process_name(thread_of(pid, pid)->process->process), "?");
	/* A mapping of what it runs by then is not its name. */
	feed_mmap(pid, "/lib/libc.so.6", 0x1000, 600);
	assert_string_equal(name_of(pid), "?");
	feed_comm(pid, pid, "third", true, 6000);
	assert_string_equal(process_name(thread_of(pid, pid)->process->process), "third");
}

TEST(a_child_of_a_doubted_process_has_no_name_either)
{
	char thread[16];

	feed_fork(SH, INIT, 200);
	feed_comm(SH, SH, "sh", true, 300);
	perf_state_lose(state_of, 350);
	feed_fork(SH + 1, SH, 400);
	assert_string_equal(name_of(SH + 1), "?");
	thread_name(perf_state_find_thread(state_of, SH + 1)->thread, thread);
	assert_string_equal(thread, "");
	feed_comm(SH + 1, SH + 1, "cc", true, 500);
	assert_string_equal(name_of(SH + 1), "cc");
}

TEST(scan_forgets_processes_that_are_gone)
{
	feed_fork(SH, INIT, 200);
	thread_of(0, 0);
	thread_of(UINT32_MAX, UINT32_MAX);
	events(false);
	assert_int_equal(perf_state_scan(state_of, 0, NULL), 0);
	assert_non_null(strstr(events(false), "-init 5000001"));
	perf_state_expire(state_of, 5 * SECOND);
	assert_null(perf_state_find(state_of, SH));
	assert_null(perf_state_find(state_of, INIT));
	assert_non_null(perf_state_find(state_of, 0));
	assert_non_null(perf_state_find(state_of, UINT32_MAX));
	assert_non_null(perf_state_find(state_of, (uint32_t)getpid()));
}

/* Its exit record is past: nothing would ever end it. */
TEST(scan_passes_over_a_zombie)
{
	pid_t pid = fork();
	siginfo_t ended;

	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(perf_state_scan(state_of, 0, NULL), 0);
	assert_null(perf_state_find(state_of, (uint32_t)pid));
	waitpid(pid, NULL, 0);
}

/* A process of one thread that waits after it has done that. */
static pid_t child_that(void (*does)(const char *), const char *with)
{
	int fds[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		does(with);
		while (write(fds[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void end_children(const pid_t *pids, unsigned n)
{
	while (n--) {
		kill(pids[n], SIGKILL);
		waitpid(pids[n], NULL, 0);
	}
}

/* stat has it with a backslash before what is special. */
static void call_itself(const char *name)
{
	prctl(PR_SET_NAME, name);
}

TEST(scan_names_a_thread_as_it_calls_itself)
{
	static const char *const names[] = {"alone", "back\\slash", "(a) R 1 ("};
	char name[16];
	pid_t pids[COUNT_OF(names)];
	unsigned i;

	for (i = 0; i < COUNT_OF(names); i++)
		pids[i] = child_that(call_itself, names[i]);
	assert_int_equal(perf_state_scan(state_of, 0, NULL), 0);
	for (i = 0; i < COUNT_OF(names); i++) {
		thread_name(perf_state_find_thread(state_of, (uint32_t)pids[i])->thread, name);
		assert_string_equal(name, names[i]);
	}
	end_children(pids, COUNT_OF(names));
}

static bool map_code(void *file, const struct maps_line *l)
{
	const uint64_t here = (uintptr_t)map_code;

	if (here < l->start || here >= l->end)
		return true;
	mmap((void *)(uintptr_t)l->start, l->end - l->start, PROT_READ | PROT_EXEC,
	     MAP_PRIVATE | MAP_FIXED, *(int *)file, (off_t)l->pgoff);
	return false;
}

/* As libhugetlbfs does, to have its code in large pages. */
static void run_from(const char *copy)
{
	int fd = open(copy, O_RDONLY);

	proc_pid_code((uint32_t)getpid(), SIZE_MAX, map_code, &fd);
}

TEST(scan_names_a_program_by_its_link_and_not_by_a_copy_of_its_code)
{
	const char *copy = tmp_path("hugetlbfs.tmp");
	char target[4096], command[sizeof(target) + TMP_BYTES];
	pid_t pids[3];
	unsigned i;

	assert_true(proc_pid_exe((uint32_t)getpid(), target, sizeof(target)) != 0);
	snprintf(command, sizeof(command), "cp '%s' '%s'", target, copy);
	assert_int_equal(system(command), 0);
	pids[0] = child_that(call_itself, text_base_name(target));
	pids[1] = child_that(call_itself, "hugetlbfs");
	pids[2] = child_that(run_from, copy);
	assert_int_equal(perf_state_scan(state_of, 0, NULL), 0);
	for (i = 0; i < 3; i++)
		assert_string_equal(name_of((uint32_t)pids[i]), text_base_name(target));
	assert_string_equal(file_at((uint32_t)pids[2], (uintptr_t)map_code), "hugetlbfs.tmp");
	end_children(pids, 3);
}

/* A thousand processes map libc.so.6, which the symbol worker opens once. */
TEST(scan_tells_a_few_times_of_what_many_processes_map)
{
	const struct object *object;
	const struct event *e;
	unsigned i, images = 0;
	pid_t pids[10];

	for (i = 0; i < COUNT_OF(pids); i++)
		pids[i] = child_that(call_itself, "one of many");
	assert_int_equal(perf_state_scan(state_of, 0, NULL), 0);
	object = locate((uint32_t)pids[9], (uintptr_t)call_itself).object;
	for (; (e = queue_peek(queue)) != NULL; queue_pop(queue))
		images += e->kind == EVENT_IMAGE && e->stack_frames[0].object == object;
	assert_true(images >= 1 && images <= 4);
	end_children(pids, COUNT_OF(pids));
}

/* Events of a scan stand in the queue between records: their times must too. */
static void assert_images_at(uint64_t time_ns)
{
	const struct event *e;
	unsigned images = 0;

	while ((e = queue_peek(queue)) != NULL) {
		assert_int_equal(e->time_ns, time_ns);
		images += e->kind == EVENT_IMAGE;
		queue_pop(queue);
	}
	assert_true(images > 0);
}

TEST(scan_puts_its_events_behind_all_that_is_in_the_queue)
{
	feed_fork(SH, INIT, 200);
	assert_int_equal(perf_state_scan(state_of, 199, NULL), 0);
	assert_images_at(200);                       /* the newest record */
	assert_int_equal(perf_state_scan(state_of, 300, NULL), 0);
	assert_images_at(300);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, open_state, close_state)

/* A page fault of SH, and how many pages are said to be gone by then. */
static unsigned gone_after_fault(struct perf_memory *m, uint64_t address, uint64_t time_ns)
{
	struct perf_record r = {.kind = PERF_KIND_SAMPLE, .time_ns = time_ns};
	const struct event *e;
	unsigned gone = 0;

	r.u.sample.address = address;
	perf_memory_fault(m, &r, thread_of(SH, SH)->process->process);
	while ((e = queue_peek(queue)) != NULL) {
		gone += e->stream == STREAM_RSS_MARK;
		queue_pop(queue);
	}
	return gone;
}

/* Its pages go with an exec, and not because it might have called one. */
TEST(a_process_in_doubt_after_a_loss_keeps_its_pages)
{
	static const struct perf_unmaps none;
	struct perf_cpus cpus = {.fault_period = 61};
	struct perf_memory *m;

	feed_fork(SH, INIT, 200);
	assert_int_equal(perf_memory_new(state_of, queue, &cpus, &none, &m, NULL), 0);
	assert_int_equal(gone_after_fault(m, 0x10000, 300), 0);
	perf_state_lose(state_of, 350);
	assert_int_equal(gone_after_fault(m, 0x20000, 400), 0);
	assert_string_equal(name_of(SH), "?");
	feed_comm(SH, SH, "sh", true, 500);
	assert_int_equal(gone_after_fault(m, 0x30000, 600), 2);
	perf_memory_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(child_of_an_unknown_parent_is_kept),
		FRESH(sample_of_an_unknown_process_makes_one),
		FRESH(a_mapping_does_not_name_a_process_that_nobody_knows),
		FRESH(what_runs_now_names_an_older_sample_once_no_record_says_otherwise),
		FRESH(what_runs_now_names_no_sample_before_an_exec),
		FRESH(tasks_without_a_number_are_the_kernels),
		FRESH(scan_corrects_a_process_whose_records_were_lost),
		FRESH(scan_leaves_out_what_is_not_code_of_the_process),
		FRESH(a_sample_after_a_loss_has_a_name_once_the_records_have_passed_what_was_read),
		FRESH(a_thread_that_rests_after_a_loss_does_not_end_another_one),
		FRESH(a_process_that_changes_all_the_time_after_a_loss_is_not_known),
		FRESH(a_sample_between_a_loss_and_an_exec_stays_without_a_name),
		FRESH(an_exec_record_while_others_are_missing_names_no_later_sample),
		FRESH(a_process_in_doubt_after_a_loss_keeps_its_pages),
		FRESH(a_child_of_a_doubted_process_has_no_name_either),
		FRESH(scan_forgets_processes_that_are_gone),
		FRESH(scan_passes_over_a_zombie),
		FRESH(scan_names_a_thread_as_it_calls_itself),
		FRESH(scan_names_a_program_by_its_link_and_not_by_a_copy_of_its_code),
		FRESH(scan_tells_a_few_times_of_what_many_processes_map),
		FRESH(scan_puts_its_events_behind_all_that_is_in_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
