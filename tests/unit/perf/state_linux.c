/* Which process, thread and mapping a sample belongs to: side-band records by hand. */
#include "source/perf/state_linux.h"

#include "tests/support/alloc_walk.h"
#include "tests/support/perf_state_lab_linux.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fork and exec --------------------------------------------------------------------------- */

TEST(forked_process_has_its_parents_name_and_mappings)
{
	feed_fork(SH, INIT, 200);
	assert_string_equal(events(true), "+init 5000001 ");
	assert_string_equal(name_of(SH), "init");
	assert_string_equal(file_at(SH, 0x1500), "init");
	assert_int_equal(locate(SH, 0x1500).offset, 0x900);
	assert_int_equal(perf_state_find(state_of, SH)->start_ns, 200);
	assert_int_equal(perf_state_find(state_of, SH)->process->parent_pid, INIT);
}

/* Of all programs outside the pid namespace the kernel says 0. */
TEST(programs_outside_are_one_process_that_has_nobodys_name_nor_mappings)
{
	feed_fork(0, 0, 200);
	feed_comm(0, 0, "tmux", true, 210);
	feed_mmap(0, "/usr/bin/tmux", 0x8000, 220);
	perf_state_thread(state_of, 0, 0, 230);
	assert_string_not_equal(name_of(0), "tmux"); /* but idle, or outside */
	assert_string_equal(file_at(0, 0x8000), "?");
	feed_fork(SH, 0, 240);
	feed_comm(SH, SH, "sh", true, 250);
	assert_string_equal(name_of(SH), "sh");
}

TEST(mapping_of_a_child_is_not_its_parents)
{
	feed_fork(SH, INIT, 200);
	feed_mmap(SH, "/lib/child.so", 0x8000, 210);
	feed_mmap(INIT, "/lib/parent.so", 0x9000, 220);
	assert_string_equal(file_at(SH, 0x8000), "child.so");
	assert_string_equal(file_at(INIT, 0x8000), "?");
	assert_string_equal(file_at(INIT, 0x9f00), "parent.so");
	assert_string_equal(file_at(SH, 0x9f00), "child.so");
	assert_string_equal(file_at(SH, 0xa000), "?");
	assert_string_equal(name_of(SH), "init");
}

TEST(exec_resets_mappings_and_makes_another_process)
{
	struct process *before;

	feed_fork(SH, INIT, 200);
	before = perf_state_find(state_of, SH)->process;
	events(false);
	feed_comm(SH, SH, "sh", true, 300);
	assert_string_equal(file_at(SH, 0x1500), "?");
	assert_string_equal(file_at(INIT, 0x1500), "init");
	assert_string_equal(name_of(SH), "sh");
	assert_ptr_not_equal(perf_state_find(state_of, SH)->process, before);
	assert_int_equal(perf_state_find(state_of, SH)->process->exec, 1);
	assert_string_equal(process_name(before), "init");
	assert_string_equal(events(false), "+sh 5000001 ");
	assert_string_equal(name_of_thread(SH, SH), "sh");
}

/* comm is cut at 15 bytes; the executable is mapped first, before its interpreter. */
TEST(process_is_named_after_its_first_mapping)
{
	feed_fork(SH, INIT, 200);
	feed_comm(SH, SH, "a-program-with-", true, 300);
	feed_mmap(SH, "/opt/a-program-with-a-long-name", 0x1000, 310);
	feed_mmap(SH, "/lib64/ld-linux.so.2", 0x8000, 320);
	assert_string_equal(name_of(SH), "a-program-with-a-long-name");
	assert_string_equal(file_at(SH, 0x9000), "ld-linux.so.2");
}

/*
 * As container runtimes start: the program is a sealed copy in memory; its loader is none of its
 * name.
 */
TEST(program_in_a_memfd_keeps_its_short_name)
{
	feed_fork(SH, INIT, 200);
	feed_comm(SH, SH, "runc:[2:INIT]", true, 300);
	feed_mmap(SH, "/memfd:runc_cloned:/proc/self/exe (deleted)", 0x1000, 310);
	feed_mmap(SH, "/lib64/ld-linux.so.2", 0x8000, 320);
	assert_string_equal(name_of(SH), "runc:[2:INIT]");
}

/* `sh -c 'exec gcc'`, which calls exec twice: three processes, and samples of each stay its own. */
TEST(each_exec_is_a_process_of_its_own)
{
	struct process *seen[3];
	unsigned i;

	feed_fork(SH, INIT, 200);
	seen[0] = perf_state_find(state_of, SH)->process;
	feed_comm(SH, SH, "sh", true, 300);
	seen[1] = thread_of(SH, SH)->thread->process;
	feed_comm(SH, SH, "gcc", true, 400);
	seen[2] = thread_of(SH, SH)->thread->process;
	for (i = 0; i < 3; i++) {
		assert_int_equal(seen[i]->exec, i);
		assert_int_equal(seen[i]->start_ns, 200);
	}
	assert_string_equal(process_name(seen[1]), "sh");
	assert_string_equal(process_name(seen[2]), "gcc");
	/* Of these two are over: they go, and their objects with them. */
	assert_int_equal(live_processes(401), 2);
}

TEST(executable_that_was_deleted_keeps_its_name)
{
	struct object *object;

	feed_mmap(INIT, "/lib/x.so", 0x8000, 150);
	object = locate(INIT, 0x8000).object;
	feed_fork(SH, INIT, 200);
	feed_comm(SH, SH, "app", true, 300);
	feed_mmap(SH, "/opt/app (deleted)", 0x1000, 310);
	assert_string_equal(name_of(SH), "app");
	assert_string_equal(file_at(SH, 0x1000), "app");
	assert_string_equal(object->name, "x.so");
	assert_int_equal(perf_path_length(" (deleted)"), 10);
	assert_int_equal(perf_path_length("/a (deleted)"), 2);
}

TEST(code_made_at_run_time_is_of_its_process_at_its_address)
{
	struct frame_ref a, b;

	feed_mmap(INIT, "//anon", 0x10000, 150);
	feed_fork(SH, INIT, 200);
	feed_mmap(SH, "/memfd:doublemapper (deleted)", 0x20000, 210);
	a = locate(INIT, 0x10010);
	b = locate(SH, 0x20020);
	assert_int_equal(a.object->key.kind, OBJECT_JIT);
	assert_int_equal(a.offset, 0x10010);
	assert_int_equal(a.flags, FRAME_JIT);
	assert_int_equal(b.offset, 0x20020);
	assert_ptr_not_equal(a.object, b.object);
	assert_int_equal(b.object->key.pid, SH);
	assert_string_equal(name_of(SH), "init");
}

/* Its addresses mean something else in the next program, and in the next process with this pid. */
TEST(code_made_at_run_time_is_not_that_of_the_next_program)
{
	struct object *first, *forked, *after_exec;

	feed_mmap(INIT, "//anon", 0x10000, 150);
	first = locate(INIT, 0x10010).object;
	feed_fork(SH, INIT, 200);
	forked = locate(SH, 0x10010).object;         /* the child runs its parent's code */
	assert_ptr_equal(forked, first);
	feed_mmap(SH, "//anon", 0x20000, 210);
	forked = locate(SH, 0x20010).object;
	feed_comm(SH, SH, "node", true, 300);
	feed_mmap(SH, "//anon", 0x20000, 310);
	after_exec = locate(SH, 0x20010).object;
	assert_ptr_not_equal(after_exec, forked);
	feed_exit(SH, SH, 400);
	feed_fork(SH, INIT, 500);
	feed_mmap(SH, "//anon", 0x20000, 510);
	assert_ptr_not_equal(locate(SH, 0x20010).object, forked);
	assert_ptr_not_equal(locate(SH, 0x20010).object, after_exec);
	assert_int_equal(locate(SH, 0x20010).object->key.pid, SH);
	/* More of it in the same program is the same. */
	feed_mmap(SH, "//anon", 0x30000, 520);
	assert_ptr_equal(locate(SH, 0x30010).object, locate(SH, 0x20010).object);
}

/* ---- threads --------------------------------------------------------------------------------- */

TEST(process_ends_with_its_last_thread)
{
	feed_fork(SH, INIT, 200);
	feed_thread(SH, SH + 1, 210);
	events(false);
	feed_exit(SH, SH, 300);
	assert_string_equal(events(false), "");
	feed_exit(SH, SH + 1, 400);
	assert_string_equal(events(false), "-init 5000001 ");
	feed_exit(SH, SH + 1, 500);
	assert_string_equal(events(false), "");
}

/* The kernel still samples a task on its way out. */
TEST(thread_is_known_for_a_second_after_its_exit)
{
	feed_fork(SH, INIT, 200);
	feed_exit(SH, SH, 300);
	assert_int_equal(thread_of(SH, SH)->exited_ns, 300);
	perf_state_expire(state_of, SECOND + 300);
	assert_non_null(perf_state_find(state_of, SH));
	perf_state_expire(state_of, SECOND + 301);
	assert_null(perf_state_find(state_of, SH));
}

TEST(threads_have_the_names_they_give_themselves)
{
	feed_comm(INIT, INIT, "main", false, 150);
	feed_thread(INIT, INIT + 50, 200);
	assert_string_equal(name_of_thread(INIT, INIT + 50), "main");
	feed_comm(INIT, INIT + 50, "worker", false, 300);
	assert_string_equal(name_of_thread(INIT, INIT + 50), "worker");
	assert_string_equal(name_of_thread(INIT, INIT), "main");
	assert_string_equal(name_of(INIT), "init");
}

TEST(kernel_thread_is_named_by_itself_not_by_its_parent)
{
	perf_state_find(state_of, INIT)->kernel = true;
	feed_fork(SH, INIT, 200);
	feed_comm(SH, SH, "kworker/0:1", false, 210);
	assert_string_equal(name_of(SH), "kworker/0:1");
	assert_true(perf_state_find(state_of, SH)->kernel);
	/* A helper that the kernel starts is an ordinary program. */
	feed_comm(SH, SH, "modprobe", true, 220);
	assert_false(perf_state_find(state_of, SH)->kernel);
	assert_string_equal(name_of(SH), "modprobe");
}

/* sudo: the kernel says EXIT in the middle of its exec, and it goes on. */
TEST(a_program_that_gains_rights_by_exec_has_not_ended)
{
	feed_fork(SH, INIT, 200);
	feed_comm(SH, SH, "sudo", true, 300);
	events(false);
	feed_exit(SH, SH, 301);
	feed_mmap(SH, "/usr/bin/sudo", 0x8000, 302);
	assert_string_equal(events(false), "");
	assert_int_equal(perf_state_find(state_of, SH)->nalive, 1);
	feed_exit(SH, SH, 400);
	assert_string_equal(events(false), "-sudo 5000001 ");
}

/* ---- exec of a process with threads ---------------------------------------------------------- */

TEST(exec_by_the_leader_ends_its_threads)
{
	feed_fork(SH, INIT, 200);
	feed_thread(SH, SH + 1, 210);
	feed_thread(SH, SH + 2, 220);
	feed_exit(SH, SH + 1, 290);
	feed_comm(SH, SH, "new", true, 300);
	assert_int_equal(perf_state_find(state_of, SH)->nthreads, 1);
	assert_int_equal(perf_state_find(state_of, SH)->nalive, 1);
	events(false);
	feed_mmap(SH, "/bin/new", 0x8000, 310);
	feed_exit(SH, SH, 400);
	assert_string_equal(events(false), "-new 5000001 ");
}

/*
 * Thread SH + 1 calls exec: the kernel ends the others, the leader too, and gives the caller the
 * leader's number; its own old number has no exit record.
 */
TEST(exec_by_another_thread_makes_it_the_leader)
{
	struct perf_process *p;

	feed_fork(SH, INIT, 200);
	feed_thread(SH, SH + 1, 210);
	feed_exit(SH, SH, 290);
	feed_comm(SH, SH, "new", true, 300);
	p = perf_state_find(state_of, SH);
	assert_int_equal(p->nthreads, 1);
	assert_int_equal(p->nalive, 1);
	perf_state_expire(state_of, 3 * SECOND);
	assert_string_equal(name_of(SH), "new");
	assert_int_equal(thread_of(SH, SH)->exited_ns, 0);
	events(false);
	feed_mmap(SH, "/bin/new", 0x8000, 310);
	feed_exit(SH, SH, 4 * SECOND);
	assert_string_equal(events(false), "-new 5000001 ");
}

/* The leader ended long before another thread called exec: nobody knows its number any more. */
TEST(exec_after_the_leader_was_forgotten_counts_too)
{
	feed_fork(SH, INIT, 200);
	feed_thread(SH, SH + 1, 210);
	feed_exit(SH, SH, 290);
	perf_state_expire(state_of, 3 * SECOND);
	feed_comm(SH, SH, "new", true, 3 * SECOND);
	assert_string_equal(name_of(SH), "new");
	assert_string_equal(file_at(SH, 0x1500), "?");
	assert_int_equal(perf_state_find(state_of, SH)->nthreads, 1);
	assert_int_equal(thread_of(SH, SH)->process->pid, SH);
}

/* ---- numbers that come again ----------------------------------------------------------------- */

TEST(pid_that_comes_again_is_another_process)
{
	struct process *first;

	feed_fork(SH, INIT, 200);
	feed_comm(SH, SH, "first", true, 210);
	first = perf_state_find(state_of, SH)->process;
	feed_exit(SH, SH, 300);
	feed_fork(SH, INIT, 400);
	assert_string_equal(name_of(SH), "init");
	assert_ptr_not_equal(perf_state_find(state_of, SH)->process, first);
	assert_int_equal(perf_state_find(state_of, SH)->start_ns, 400);
	assert_int_equal(perf_state_find(state_of, SH)->exec, 0);
	/* What is remembered of the first must not end the second. */
	perf_state_expire(state_of, 5 * SECOND);
	assert_string_equal(name_of(SH), "init");
}

TEST(pid_that_comes_again_without_an_exit_is_another_process)
{
	feed_fork(SH, INIT, 200);
	feed_thread(SH, SH + 1, 210);
	feed_comm(SH, SH, "first", true, 220);
	feed_fork(SH, INIT, 400);
	assert_string_equal(name_of(SH), "init");
	assert_int_equal(perf_state_find(state_of, SH)->nthreads, 1);
	assert_int_equal(perf_state_find(state_of, SH)->nalive, 1);
	assert_int_equal(live_processes(UINT64_MAX), 2);
}

TEST(tid_that_comes_again_is_alive)
{
	feed_thread(INIT, INIT + 50, 200);
	feed_exit(INIT, INIT + 50, 300);
	feed_thread(INIT, INIT + 50, 400);
	assert_int_equal(perf_state_find(state_of, INIT)->nthreads, 2);
	assert_int_equal(perf_state_find(state_of, INIT)->nalive, 2);
	perf_state_expire(state_of, 5 * SECOND);
	assert_int_equal(perf_state_find(state_of, INIT)->nthreads, 2);
	assert_int_equal(thread_of(INIT, INIT + 50)->exited_ns, 0);
}

/* A process of one thread ends, and an old process starts a thread with that number. */
TEST(number_of_a_process_that_ended_may_become_a_thread)
{
	struct thread *ended;

	feed_fork(SH, INIT, 1000);
	ended = thread_of(SH, SH)->thread;
	feed_exit(SH, SH, 2000);
	feed_thread(INIT, SH, 3000);
	assert_null(perf_state_find(state_of, SH));
	assert_int_equal(thread_of(INIT, SH)->process->pid, INIT);
	/* Its last samples may wait in the queue: dropped at 3,000, not when INIT began. */
	assert_int_equal(ended->dropped_ns, 3000);
	assert_int_equal(ended->process->dropped_ns, 3000);
}

/* ---- limits and memory ----------------------------------------------------------------------- */

TEST(only_the_wanted_process_is_recorded)
{
	close_state(NULL);
	assert_int_equal(open_with("GCC", NULL), 0);
	assert_true(perf_state_find(state_of, INIT)->skipped);
	feed_fork(SH, INIT, 200);
	assert_true(perf_state_find(state_of, SH)->skipped);
	feed_comm(SH, SH, "cc", true, 300);
	feed_mmap(SH, "/usr/bin/gcc", 0x1000, 310);
	assert_false(perf_state_find(state_of, SH)->skipped);
	feed_fork(SH + 1, SH, 400);
	assert_false(perf_state_find(state_of, SH + 1)->skipped);
	feed_comm(SH + 1, SH + 1, "as", true, 410);
	assert_true(perf_state_find(state_of, SH + 1)->skipped);
}

TEST(too_many_mappings_are_told_once)
{
	const char *path = tmp_path("maps.log");
	struct log *log = NULL;
	struct buf text = {0};
	uint64_t i;

	close_state(NULL);
	assert_int_equal(log_open(path, &log, NULL), 0);
	assert_int_equal(open_with(NULL, log), 0);
	for (i = 0; i < MAPS_MAX + 10; i++) {
		feed_mmap(INIT, "/lib/x.so", 0x10000 + i * 0x4000, 200);
		events(false);               /* so that the queue does not fill */
	}
	log_close(log);
	assert_int_equal(os_load(path, 100000, &text, NULL), 0);
	assert_non_null(
		strstr(buf_text(&text), "init (5000000) has more than 16384 executable mappings"));
	assert_null(strstr(strstr(buf_text(&text), "more than") + 1, "more than"));
	buf_free(&text);
	os_remove(path, NULL);
}

/*
 * No thread is free for the new process: it goes on under its old name, without the old mappings.
 */
TEST(exec_at_the_ceiling_of_threads_keeps_the_old_name)
{
	struct process *filler = process_add(processes, 1, 1, 0, 0, "filler");
	struct processes_use use;
	uint32_t i;

	feed_fork(SH, INIT, 200);
	processes_use(processes, &use);
	for (i = use.threads; i < THREADS_MAX; i++)
		assert_non_null(thread_add(processes, filler, i));
	feed_comm(SH, SH, "sh", true, 300);
	assert_string_equal(name_of(SH), "init");
	assert_string_equal(file_at(SH, 0x1500), "?");
	assert_non_null(thread_of(SH, SH)->thread);
	feed_comm(SH, SH, "renamed", false, 310);
	feed_exit(SH, SH, 400);
	feed_fork(SH + 1, INIT, 500);
	assert_null(perf_state_find(state_of, SH + 1));
	perf_state_expire(state_of, 5 * SECOND);
	assert_null(perf_state_find(state_of, SH));
}

/* 20,000 processes fork, call exec, map, and end: nothing of them stays. */
TEST(churn_leaves_nothing_behind)
{
	uint64_t i, t;

	for (i = 0; i < 20000; i++) {
		uint32_t pid = SH + (uint32_t)(i % 3000);

		t = 1000 + i * 1000000;
		feed_fork(pid, INIT, t);
		feed_thread(pid, pid + 100000, t + 1);
		feed_comm(pid, pid, "gcc", true, t + 2);
		feed_mmap(pid, i % 2 ? "/bin/gcc" : "/bin/sh", 0x1000, t + 3);
		feed_mmap(pid, "//anon", 0x8000, t + 4);
		feed_exit(pid, pid, t + 5);
		perf_state_expire(state_of, t + 6);
		events(false);
		if (i % 1000 == 0)
			live_processes(t > SECOND ? t - SECOND : 1);
	}
	perf_state_expire(state_of, 1000 * SECOND);
	assert_int_equal(live_processes(UINT64_MAX), 1);
	assert_int_equal(live_objects(), 3);                 /* unknown, kernel, /sbin/init */
}

TEST(closing_drops_all_that_it_kept)
{
	feed_fork(SH, INIT, 200);
	feed_mmap(SH, "//anon", 0x8000, 210);
	perf_state_free(state_of);
	state_of = NULL;
	assert_int_equal(live_processes(UINT64_MAX), 0);
	assert_int_equal(live_objects(), 1);
}

/* Whatever fails, the records do no harm, and a process that is found has a thread. */
TEST(records_without_memory_leave_the_state_whole)
{
	unsigned n;
	struct perf_process *p;

	for (n = 1; n < 60; n++) {
		close_state(NULL);
		assert_int_equal(open_with(NULL, NULL), 0);
		alloc_walk_fail_at(n);
		feed_fork(SH, INIT, 200);
		feed_thread(SH, SH + 1, 210);
		feed_comm(SH, SH, "sh", true, 300);
		feed_mmap(SH, "/bin/sh", 0x1000, 310);
		feed_mmap(SH, "//anon", 0x1800, 320);
		feed_exit(SH, SH, 400);
		alloc_walk_fail_at(0);
		p = perf_state_find(state_of, SH);
		assert_true(!p || (p->nthreads > 0 && p->maps && p->process));
		perf_state_expire(state_of, UINT64_MAX);
		feed_fork(SH, INIT, 2 * SECOND);
		assert_string_equal(name_of(SH), "init");
		assert_string_equal(file_at(SH, 0x1500), "init");
	}
}

TEST(only_the_root_and_what_it_starts_is_recorded)
{
	assert_int_equal(open_config((struct perf_state_config){.root_pid = SH}), 0);
	assert_true(perf_state_find(state_of, INIT)->skipped);
	feed_fork(SH, INIT, 200);
	feed_fork(SH + 1, SH, 210);
	feed_fork(SH + 2, SH + 1, 220);
	feed_fork(SH + 3, INIT, 230);
	assert_false(perf_state_find(state_of, SH)->skipped);
	assert_false(perf_state_find(state_of, SH + 1)->skipped);
	feed_comm(SH + 2, SH + 2, "cc1", true, 240);
	assert_false(perf_state_find(state_of, SH + 2)->skipped);
	assert_true(perf_state_find(state_of, SH + 3)->skipped);
	close_state(NULL);
}

/* A program that maps thousands of files must not cost `run` its names, nor be warned of. */
TEST(mappings_of_programs_outside_are_not_even_looked_at)
{
	uint32_t before;

	assert_int_equal(open_config((struct perf_state_config){.root_pid = SH}), 0);
	feed_fork(SH, INIT, 200);
	feed_fork(SH + 1, INIT, 210);
	events(true);
	before = live_objects();
	feed_mmap(SH + 1, "/tmp/wine/tmpmap-1", 0x5000, 220);
	assert_string_equal(events(true), "");
	assert_int_equal(live_objects(), before);
	feed_mmap(SH, "/lib/libc.so", 0x5000, 230);
	assert_non_null(strstr(events(true), "libc.so"));
	assert_string_equal(file_at(SH, 0x5500), "libc.so");
	close_state(NULL);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, open_state, close_state)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(forked_process_has_its_parents_name_and_mappings),
		FRESH(programs_outside_are_one_process_that_has_nobodys_name_nor_mappings),
		FRESH(mapping_of_a_child_is_not_its_parents),
		FRESH(exec_resets_mappings_and_makes_another_process),
		FRESH(process_is_named_after_its_first_mapping),
		FRESH(program_in_a_memfd_keeps_its_short_name),
		FRESH(each_exec_is_a_process_of_its_own),
		FRESH(executable_that_was_deleted_keeps_its_name),
		FRESH(code_made_at_run_time_is_of_its_process_at_its_address),
		FRESH(code_made_at_run_time_is_not_that_of_the_next_program),
		FRESH(process_ends_with_its_last_thread),
		FRESH(thread_is_known_for_a_second_after_its_exit),
		FRESH(threads_have_the_names_they_give_themselves),
		FRESH(kernel_thread_is_named_by_itself_not_by_its_parent),
		FRESH(a_program_that_gains_rights_by_exec_has_not_ended),
		FRESH(exec_by_the_leader_ends_its_threads),
		FRESH(exec_by_another_thread_makes_it_the_leader),
		FRESH(exec_after_the_leader_was_forgotten_counts_too),
		FRESH(pid_that_comes_again_is_another_process),
		FRESH(pid_that_comes_again_without_an_exit_is_another_process),
		FRESH(tid_that_comes_again_is_alive),
		FRESH(number_of_a_process_that_ended_may_become_a_thread),
		FRESH(only_the_wanted_process_is_recorded),
		FRESH(too_many_mappings_are_told_once),
		FRESH(exec_at_the_ceiling_of_threads_keeps_the_old_name),
		FRESH(churn_leaves_nothing_behind),
		FRESH(closing_drops_all_that_it_kept),
		FRESH(records_without_memory_leave_the_state_whole),
		cmocka_unit_test(only_the_root_and_what_it_starts_is_recorded),
		cmocka_unit_test(mappings_of_programs_outside_are_not_even_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
