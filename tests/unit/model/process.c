/* Processes and threads: identity, names, ceilings, and what a sweep may free. */
#include "base/array.h"
#include "base/os.h"
#include "model/process.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct processes *open_table(void)
{
	struct processes *p = NULL;

	assert_int_equal(processes_new(&p, NULL), 0);
	return p;
}

static struct processes_use use_of(struct processes *p)
{
	struct processes_use use;

	processes_use(p, &use);
	return use;
}

TEST(process_is_pid_start_and_exec)
{
	struct processes *p = open_table();
	struct process *sh = process_add(p, 5, 100, 0, 1, "sh");

	assert_ptr_equal(process_add(p, 5, 100, 0, 1, "sh"), sh);
	assert_ptr_not_equal(process_add(p, 5, 100, 1, 1, "gcc"), sh);
	assert_ptr_not_equal(process_add(p, 5, 101, 0, 1, "sh"), sh);
	assert_ptr_not_equal(process_add(p, 6, 100, 0, 1, "sh"), sh);
	assert_int_equal(use_of(p).processes, 4);
	assert_int_equal(sh->pid, 5);
	assert_int_equal(sh->parent_pid, 1);
	assert_int_equal(sh->start_ns, 100);
	processes_free(p);
}

/* 2,048 keys that differ in one part each: none is taken for another, whatever their hashes are. */
TEST(process_is_found_by_contents_not_by_hash)
{
	struct processes *p = open_table();
	struct process *added[2048];
	uint32_t i;

	for (i = 0; i < 2048; i++)
		added[i] = process_add(p, i % 8, i / 32, i / 8 % 4, 0, NULL);
	for (i = 0; i < 2048; i++) {
		assert_ptr_equal(process_add(p, i % 8, i / 32, i / 8 % 4, 0, NULL), added[i]);
		assert_int_equal(added[i]->pid, i % 8);
		assert_int_equal(added[i]->exec, i / 8 % 4);
		assert_int_equal(added[i]->start_ns, i / 32);
	}
	assert_int_equal(use_of(p).processes, 2048);
	processes_free(p);
}

TEST(process_name_is_the_executable_else_comm_else_a_question_mark)
{
	struct processes *p = open_table();
	struct process *nameless = process_add(p, 1, 1, 0, 0, "");
	struct process *process = process_add(p, 2, 1, 0, 0, "Web Content");

	assert_string_equal(process_name(nameless), "?");
	assert_string_equal(process_name(process), "Web Content");
	process_set_exe(process, "/usr/lib/firefox/firefox-bin");
	assert_string_equal(process_name(process), "firefox-bin");
	process_set_exe(nameless, "");
	assert_string_equal(process_name(nameless), "?");
	process_set_comm(nameless, "kworker/0:1");
	process_set_comm(nameless, "kworker/0:2");
	assert_string_equal(process_name(nameless), "kworker/0:1");
	processes_free(p);
}

TEST(process_name_loses_exe_and_no_other_suffix)
{
	static const char *const paths[][2] = {
		{"C:\\Windows\\Explorer.EXE", "Explorer"},
		{"/opt/python3.11", "python3.11"},
		{"a.b.exe", "a.b"},
		{".exe", ".exe"},
		{"/bin/x.exe.bak", "x.exe.bak"},
		{"exe", "exe"},
	};
	struct processes *p = open_table();
	uint32_t i;

	for (i = 0; i < COUNT_OF(paths); i++) {
		struct process *process = process_add(p, i, 1, 0, 0, NULL);

		process_set_exe(process, paths[i][0]);
		assert_string_equal(process_name(process), paths[i][1]);
	}
	processes_free(p);
}

TEST(process_is_recognized_by_its_executable)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "app");

	assert_false(process_exe_is(process, "/opt/app"));
	process_set_exe(process, "/opt/app.exe");
	assert_true(process_exe_is(process, "/opt/app.exe"));
	assert_true(process_exe_is(process, "C:\\other\\app"));
	assert_false(process_exe_is(process, "/opt/app2"));
	assert_false(process_exe_is(process, "/opt/ap"));
	processes_free(p);
}

TEST(process_texts_once_set_are_never_replaced)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "first");

	process_add(p, 1, 1, 0, 0, "second");
	assert_string_equal(process_name(process), "first");
	process_set_exe(process, "/bin/one");
	process_set_exe(process, "/bin/two");
	assert_string_equal(process_name(process), "one");
	process_set_cmdline(process, "one -v");
	process_set_cmdline(process, "two -v");
	assert_string_equal(atomic_load(&process->cmdline), "one -v");
	processes_free(p);
}

TEST(a_process_has_the_home_where_it_was_last)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "app");
	struct process *child = process_add(p, 2, 2, 0, 1, "app");
	const char *first;
	char path[40];
	unsigned i;

	assert_string_equal(process_home(process), "");
	process_set_home(process, "/a\nshop", 10);
	first = process_home(process);
	process_set_home(process, "/b\nshop", 20);
	assert_string_equal(process_home(process), "/b\nshop");
	assert_string_equal(first, "/a\nshop");      /* a reader may still have it */
	process_inherit_home(child, process);
	assert_string_equal(process_home(child), "/b");
	process_inherit_home(process, child);        /* it has one */
	assert_string_equal(process_home(process), "/b\nshop");
	for (i = 0; i < 2 * PROCESS_MOVES_MAX; i++) {
		snprintf(path, sizeof(path), "/c/%u", i);
		process_set_home(process, path, 30 + i);
	}
	snprintf(path, sizeof(path), "/c/%u", PROCESS_MOVES_MAX - 2);
	assert_string_equal(process_home(process), path);
	processes_free(p);
}

/* What was recorded before a move is not where it moved to, whenever that is stored. */
TEST(a_process_that_moved_was_where_it_was)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "app");

	process_set_home(process, "/a", 100);
	assert_string_equal(process_home_at(process, 5), "/a");      /* nothing earlier is known */
	process_saw_cgroup(process, 7, 150);
	process_saw_cgroup(process, 7, 160);
	process_saw_cgroup(process, 0, 170);
	assert_int_equal(atomic_load(&process->moved_ns), 150);
	process_set_home(process, "/a\nshop", 180);                  /* it did not move */
	assert_string_equal(process_home_at(process, 120), "/a\nshop");
	process_saw_cgroup(process, 8, 200);
	process_set_home(process, "/b", 290);            /* since its sample */
	assert_string_equal(process_home_at(process, 199), "/a\nshop");
	assert_string_equal(process_home_at(process, 200), "/b");
	process_set_home(process, "/c", 400);                        /* no sample told of it */
	assert_string_equal(process_home_at(process, 399), "/b");
	assert_string_equal(process_home_at(process, 400), "/c");
	processes_free(p);
}

TEST(a_home_is_known_once_it_was_read_since_the_last_move)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "app");

	process_set_home(process, "/a", 100);
	assert_false(process_home_is_known(process));        /* does the kernel tell of moves? */
	process_saw_cgroup(process, 7, 150);
	assert_false(process_home_is_known(process));
	process_set_home(process, "/a", 160);
	assert_true(process_home_is_known(process));
	process_saw_cgroup(process, 8, 200);
	assert_false(process_home_is_known(process));
	process_set_home(process, "", 210);                  /* at the root of groups */
	assert_true(process_home_is_known(process));
	processes_free(p);
}

TEST(a_childs_home_is_known_until_a_sample_is_of_another_group)
{
	struct processes *p = open_table();
	struct process *parent = process_add(p, 1, 1, 0, 0, "app");
	struct process *child = process_add(p, 2, 2, 0, 1, "app");

	process_saw_cgroup(parent, 7, 150);
	process_set_home(parent, "/a", 160);
	process_inherit_home(child, parent);
	process_saw_cgroup(child, 7, 170);
	assert_true(process_home_is_known(child));
	process_saw_cgroup(child, 8, 180);
	assert_false(process_home_is_known(child));
	processes_free(p);
}

/* Two threads in two groups: not a move at each sample for ever. */
TEST(moves_to_and_fro_are_bounded)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "app");
	uint64_t i;

	for (i = 1; i < 1000; i++)
		process_saw_cgroup(process, 7 + i % 2, i);
	assert_in_range(atomic_load(&process->moved_ns), PROCESS_MOVES_MAX, PROCESS_MOVES_MAX + 2);
	processes_free(p);
}

TEST(process_texts_are_cut_at_their_ceilings)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, NULL);
	char text[6000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	process_set_exe(process, text);
	process_set_cmdline(process, text);
	assert_int_equal(strlen(process_name(process)), PROCESS_NAME_MAX);
	assert_int_equal(strlen(atomic_load(&process->cmdline)), PROCESS_CMDLINE_MAX);
	processes_free(p);
}

TEST(thread_is_its_process_and_tid)
{
	struct processes *p = open_table();
	struct process *a = process_add(p, 1, 1, 0, 0, "a"), *b = process_add(p, 1, 1, 1, 0, "b");
	struct thread *t = thread_add(p, a, 7);
	char name[16];

	assert_ptr_equal(thread_add(p, a, 7), t);
	assert_ptr_not_equal(thread_add(p, b, 7), t);
	assert_ptr_not_equal(thread_add(p, a, 8), t);
	assert_ptr_equal(thread_get(p, t->number), t);
	thread_name(t, name);
	assert_string_equal(name, "");
	thread_set_name(t, "a name of over 15 bytes");
	thread_name(t, name);
	assert_string_equal(name, "a name of over ");
	assert_int_equal(use_of(p).threads, 3);
	processes_free(p);
}

TEST(a_number_that_is_given_again_is_another_thread)
{
	struct processes *p = open_table();
	struct process *a = process_add(p, 1, 1, 0, 0, "a");
	struct thread *first = thread_add_started(p, a, 7, 100), *second;
	char name[16];

	thread_set_name(first, "reader");
	thread_drop(p, first, 200);
	second = thread_add_started(p, a, 7, 200);
	thread_set_name(second, "writer");
	assert_ptr_equal(thread_add_started(p, a, 7, 100), first);
	thread_name(first, name);
	assert_string_equal(name, "reader");
	thread_drop(p, first, 200);
	processes_sweep(p, 300);
	assert_int_equal(use_of(p).threads, 1);
	assert_ptr_equal(thread_add_started(p, a, 7, 200), second);
	processes_free(p);
}

TEST(sweep_frees_only_what_was_dropped_before)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "a");
	struct thread *t = thread_add(p, process, 1);

	processes_sweep(p, UINT64_MAX);
	assert_int_equal(use_of(p).threads, 1);
	thread_drop(p, t, 50);
	processes_sweep(p, 50);
	assert_int_equal(use_of(p).threads, 1);
	processes_sweep(p, 51);
	assert_int_equal(use_of(p).threads, 0);
	assert_int_equal(use_of(p).processes, 1);
	process_drop(p, process, 60);
	processes_sweep(p, 60);
	assert_int_equal(use_of(p).processes, 1);
	processes_sweep(p, 61);
	assert_int_equal(use_of(p).processes, 0);
	processes_free(p);
}

TEST(sweep_spares_a_listed_thread_and_its_process)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "a");
	struct thread *listed = thread_add(p, process, 1);

	thread_add(p, process, 2);
	thread_ref(listed);
	process_drop(p, process, 5);
	processes_sweep(p, 10);
	assert_int_equal(use_of(p).threads, 1);
	assert_int_equal(use_of(p).processes, 1);
	assert_string_equal(process_name(listed->process), "a");
	thread_unref(listed);
	processes_sweep(p, 10);
	assert_int_equal(use_of(p).threads, 0);
	assert_int_equal(use_of(p).processes, 0);
	processes_free(p);
}

/* The symbol worker's request counts on the process itself. */
TEST(sweep_spares_a_process_that_a_request_holds)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "a");

	atomic_fetch_add(&process->refs, 1);
	process_drop(p, process, 5);
	processes_sweep(p, 10);
	assert_int_equal(use_of(p).processes, 1);
	atomic_fetch_sub(&process->refs, 1);
	processes_sweep(p, 10);
	assert_int_equal(use_of(p).processes, 0);
	processes_free(p);
}

TEST(adding_again_takes_a_drop_back)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, "a");
	struct thread *t = thread_add(p, process, 1);

	process_drop(p, process, 5);
	thread_drop(p, t, 5);
	assert_ptr_equal(process_add(p, 1, 1, 0, 0, "a"), process);
	assert_ptr_equal(thread_add(p, process, 1), t);
	processes_sweep(p, 10);
	assert_int_equal(use_of(p).threads, 1);
	assert_int_equal(use_of(p).processes, 1);
	processes_free(p);
}

TEST(a_process_that_was_dropped_is_followed_by_its_next_exec)
{
	struct processes *p = open_table();
	struct process *first = process_add(p, 1, 1, 0, 0, "a"), *next;

	assert_ptr_equal(process_add_next(p, 1, 1, 0, 0, "b"), first);
	process_drop(p, first, 5);
	next = process_add_next(p, 1, 1, 0, 0, "b");
	assert_ptr_not_equal(next, first);
	assert_int_equal(next->exec, 1);
	assert_string_equal(process_name(next), "b");
	assert_ptr_equal(process_add_next(p, 1, 1, 0, 0, "c"), next);
	processes_free(p);
}

/* 1,000 processes of 3 threads, every other one dropped: 500 go, whatever the table's order. */
TEST(a_pid_finds_its_newest_process_that_had_started_by_then)
{
	struct processes *p = open_table();
	struct process *sh = process_add(p, 5, 100, 0, 1, "sh"), *gcc, *found;

	assert_null(process_find(p, 6, 500));
	assert_null(process_find(p, 5, 99));
	found = process_find(p, 5, 100);
	assert_ptr_equal(found, sh);
	gcc = process_add(p, 5, 100, 1, 1, "gcc");
	assert_ptr_equal(process_find(p, 5, 500), gcc);
	process_unref(gcc);
	/* Found ones stay while they are held; those that a source let go are not found. */
	process_drop(p, sh, 200);
	process_drop(p, gcc, 200);
	assert_null(process_find(p, 5, 500));
	processes_sweep(p, 300);
	assert_int_equal(use_of(p).processes, 1);
	process_unref(found);
	processes_sweep(p, 300);
	assert_int_equal(use_of(p).processes, 0);
	assert_null(process_find(p, 5, 500));
	processes_free(p);
}

TEST(sweep_of_half_leaves_the_other_half_findable)
{
	struct processes *p = open_table();
	struct process *process[1000];
	uint32_t i, j;

	for (i = 0; i < 1000; i++) {
		process[i] = process_add(p, i, 1, 0, 0, "a");
		for (j = 0; j < 3; j++)
			thread_add(p, process[i], i * 3 + j);
	}
	for (i = 0; i < 1000; i += 2)
		process_drop(p, process[i], 5);
	processes_sweep(p, 10);
	assert_int_equal(use_of(p).processes, 500);
	assert_int_equal(use_of(p).threads, 1500);
	for (i = 1; i < 1000; i += 2) {
		assert_ptr_equal(process_add(p, i, 1, 0, 0, "a"), process[i]);
		for (j = 0; j < 3; j++)
			assert_ptr_equal(thread_add(p, process[i], i * 3 + j)->process, process[i]);
	}
	assert_int_equal(use_of(p).threads, 1500);
	processes_free(p);
}

TEST(processes_at_their_ceiling_are_refused_and_counted)
{
	struct processes *p = open_table();
	struct process *first = process_add(p, 0, 1, 0, 0, NULL);
	uint32_t i;

	for (i = 1; i < PROCESSES_MAX; i++)
		assert_non_null(process_add(p, i, 1, 0, 0, NULL));
	assert_null(process_add(p, i, 1, 0, 0, NULL));
	assert_ptr_equal(process_add(p, 0, 1, 0, 0, NULL), first);
	assert_int_equal(use_of(p).refused, 1);
	process_drop(p, first, 1);
	processes_sweep(p, 2);
	assert_non_null(process_add(p, i, 1, 0, 0, NULL));
	processes_free(p);
}

TEST(threads_at_their_ceiling_are_refused_and_counted)
{
	struct processes *p = open_table();
	struct process *process = process_add(p, 1, 1, 0, 0, NULL);
	uint32_t i;

	for (i = 0; i < THREADS_MAX; i++)
		assert_non_null(thread_add(p, process, i));
	assert_null(thread_add(p, process, i));
	assert_non_null(thread_add(p, process, 0));
	assert_int_equal(use_of(p).refused, 1);
	assert_int_equal(use_of(p).threads, THREADS_MAX);
	processes_free(p);
}

/* 40,000 processes come and go, 40 at a time: the table is as large as after the first 40. */
TEST(churn_does_not_grow_memory)
{
	struct processes *p = open_table();
	uint32_t i, j;
	size_t bytes = 0;

	for (i = 0; i < 1000; i++) {
		for (j = 0; j < 40; j++) {
			struct process *process = process_add(p, j, i + 1, 0, 0, "churn");

			thread_add(p, process, j);
			process_drop(p, process, i + 1);
		}
		processes_sweep(p, i + 2);
		if (!i)
			bytes = use_of(p).bytes;
	}
	assert_int_equal(use_of(p).processes, 0);
	assert_int_equal(use_of(p).bytes, bytes);
	processes_free(p);
}

static int build_step(void *ctx)
{
	struct processes *p = NULL;
	struct process *process;
	int rc = processes_new(&p, NULL);

	(void)ctx;
	if (rc)
		return rc;
	process = process_add(p, 1, 1, 0, 0, "comm");
	if (!process || !thread_add(p, process, 1))
		rc = ERR_MEMORY;
	if (process) {
		process_set_exe(process, "/bin/exe");
		process_set_cmdline(process, "exe -v");
		/* Without memory a text stays missing. */
		if (!atomic_load(&process->comm) || !atomic_load(&process->exe_name) ||
		    !atomic_load(&process->cmdline))
			rc = ERR_MEMORY;
	}
	processes_free(p);
	return rc;
}

TEST(processes_without_memory_are_refused_and_leak_nothing)
{
	assert_in_range(alloc_walk(build_step, NULL), 8, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_is_pid_start_and_exec),
		cmocka_unit_test(process_is_found_by_contents_not_by_hash),
		cmocka_unit_test(process_name_is_the_executable_else_comm_else_a_question_mark),
		cmocka_unit_test(process_name_loses_exe_and_no_other_suffix),
		cmocka_unit_test(process_is_recognized_by_its_executable),
		cmocka_unit_test(process_texts_once_set_are_never_replaced),
		cmocka_unit_test(a_process_has_the_home_where_it_was_last),
		cmocka_unit_test(a_process_that_moved_was_where_it_was),
		cmocka_unit_test(a_home_is_known_once_it_was_read_since_the_last_move),
		cmocka_unit_test(a_childs_home_is_known_until_a_sample_is_of_another_group),
		cmocka_unit_test(moves_to_and_fro_are_bounded),
		cmocka_unit_test(process_texts_are_cut_at_their_ceilings),
		cmocka_unit_test(thread_is_its_process_and_tid),
		cmocka_unit_test(a_number_that_is_given_again_is_another_thread),
		cmocka_unit_test(sweep_frees_only_what_was_dropped_before),
		cmocka_unit_test(sweep_spares_a_listed_thread_and_its_process),
		cmocka_unit_test(sweep_spares_a_process_that_a_request_holds),
		cmocka_unit_test(adding_again_takes_a_drop_back),
		cmocka_unit_test(a_process_that_was_dropped_is_followed_by_its_next_exec),
		cmocka_unit_test(a_pid_finds_its_newest_process_that_had_started_by_then),
		cmocka_unit_test(sweep_of_half_leaves_the_other_half_findable),
		cmocka_unit_test(processes_at_their_ceiling_are_refused_and_counted),
		cmocka_unit_test(threads_at_their_ceiling_are_refused_and_counted),
		cmocka_unit_test(churn_does_not_grow_memory),
		cmocka_unit_test(processes_without_memory_are_refused_and_leak_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
