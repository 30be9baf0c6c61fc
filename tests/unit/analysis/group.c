/* Grouping, folding, filtering and call trees: worked examples on six small stacks. */
#include "analysis/call_tree.h"
#include "analysis/group.h"
#include "analysis/name_pattern.h"
#include "base/array.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct incident in;
static uint32_t threads[2];
static uint64_t clock_ns;

static uint32_t frame(const char *module, const char *function, uint64_t offset)
{
	struct incident_module m = {.kind = OBJECT_ELF, .name = module, .path = module};
	struct incident_frame f = {.offset = offset, .function = function};

	f.module = incident_add_module(&in, &m);
	return incident_add_frame(&in, &f);
}

/* "app!main;lib!read" root first; each call site of a function has an offset of its own. */
static void sample(const char *stack, unsigned thread, unsigned times)
{
	struct incident_sample s = {.weight = 1000000,
				    .thread = threads[thread],
				    .stack = STACK_NONE,
				    .quality = QUALITY_COMPLETE};
	char text[400], *at, *bang, *rest = text;
	uint64_t offset = 100;

	snprintf(text, sizeof(text), "%s", stack);
	for (at = text; at && *at; at = rest) {
		rest = strchr(at, ';');
		if (rest)
			*rest++ = '\0';
		bang = strchr(at, '!');
		*bang = '\0';
		s.stack = incident_add_stack(
			&in, s.stack, frame(at, strcmp(bang + 1, "?") ? bang + 1 : NULL, offset++));
	}
	while (times--) {
		s.time_ns = clock_ns += 1000000;
		assert_int_equal(incident_add_sample(&in, &s), 0);
	}
}

static int open_incident(void **state)
{
	struct incident_process p = {.pid = 10, .name = "shop", .cmdline = ""};
	struct incident_thread t = {.tid = 11, .name = "worker"};

	(void)state;
	clock_ns = 0;
	if (incident_init(&in))
		return -1;
	t.process = incident_add_process(&in, &p);
	threads[0] = incident_add_thread(&in, &t);
	p.pid = 20;
	p.name = "db";
	t.process = incident_add_process(&in, &p);
	t.tid = 21;
	t.name = "";
	threads[1] = incident_add_thread(&in, &t);
	sample("app!main;app!Shop.Cart.add;libc!malloc;libc!brk", 0, 4);
	sample("app!main;app!Shop.Cart.add", 0, 2);
	sample("app!main;libc!read;kernel!sys_read;libc!memcpy", 0, 1);
	sample("app!main;app!Shop.Cart.add;app!Shop.Cart.add", 0, 3);
	sample("db!main;db!?;db!?", 1, 5);
	sample("db!main;libc!read", 1, 5);
	in.head.t1_ns = in.head.trigger_ns = clock_ns;
	incident_count(&in);
	return 0;
}

static int close_incident(void **state)
{
	(void)state;
	incident_free(&in);
	return 0;
}

/* Each distinct stack and its number of samples, by first sample: "a;b 3|c 1". */
static const char *stacks(void)
{
	static char out[4000];
	uint32_t i, j, n = 0, seen[100], times[100];
	struct buf line = {0};

	for (i = 0; i < in.nsamples; i++) {
		for (j = 0; j < n && seen[j] != in.samples[i].stack; j++)
			;
		if (j == n) {
			seen[n] = in.samples[i].stack;
			times[n++] = 0;
		}
		times[j]++;
	}
	out[0] = '\0';
	for (j = 0; j < n; j++) {
		uint32_t path[64], depth = 0, node;

		for (node = seen[j]; node != STACK_NONE; node = in.stacks[node].parent)
			path[depth++] = in.stacks[node].frame;
		buf_reset(&line);
		while (depth--) {
			incident_frame_text(&in, path[depth], false, &line);
			buf_puts(&line, depth ? ";" : "");
		}
		snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%s %u", j ? "|" : "",
			 buf_text(&line), (unsigned)times[j]);
	}
	buf_free(&line);
	return out;
}

static void group(const struct group_options *o)
{
	struct err err = {0};

	if (group_incident(&in, o, &err))
		fail_msg("%s", err.text);
}

TEST(a_module_becomes_one_frame_and_calls_within_it_vanish)
{
	group(&(struct group_options){.group = "{%}!->module $1"});
	assert_string_equal(stacks(), "module app;module libc 4|module app 5|"
				      "module app;module libc;module kernel;module libc 1|"
				      "module db 5|module db;module libc 5");
	assert_int_equal(in.nsamples, 20);
}

/* Of blocks that were freed: who allocated them, and who freed them. */
TEST(what_was_freed_is_grouped_as_samples_are)
{
	in.freed = calloc(2, sizeof(*in.freed));
	assert_non_null(in.freed);
	in.nfreed = 2;
	in.freed[0].stack = in.samples[0].stack;
	in.freed[0].freed_by = STACK_NONE;
	in.freed[1].stack = STACK_NONE;
	in.freed[1].freed_by = in.samples[4].stack;
	group(&(struct group_options){.group = "{%}!->module $1"});
	assert_int_equal(in.freed[0].stack, in.samples[0].stack);
	assert_int_equal(in.freed[0].freed_by, STACK_NONE);
	assert_int_equal(in.freed[1].stack, STACK_NONE);
	assert_int_equal(in.freed[1].freed_by, in.samples[4].stack);
}

TEST(a_group_that_matches_no_frame_is_told)
{
	bool unmatched = false;

	group(&(struct group_options){.group = "nosuch", .unmatched = &unmatched});
	assert_true(unmatched);
	group(&(struct group_options){.group = "[no grouping]", .unmatched = &unmatched});
	assert_false(unmatched);
	group(&(struct group_options){.unmatched = &unmatched});
	assert_false(unmatched);
	group(&(struct group_options){.group = "nosuch;libc!->C", .unmatched = &unmatched});
	assert_false(unmatched);
}

TEST(an_entry_group_keeps_the_name_through_which_it_is_entered)
{
	group(&(struct group_options){.group = "^libc!=>C library"});
	assert_string_equal(
		stacks(),
		"app!main;app!Shop.Cart.add;C library <<libc!malloc>> 4|"
		"app!main;app!Shop.Cart.add 5|"
		"app!main;C library <<libc!read>>;kernel!sys_read;C library <<libc!memcpy>> 1|"
		"db!main;db!? 5|db!main;C library <<libc!read>> 5");
}

TEST(the_first_pattern_that_gives_a_group_is_followed_by_those_behind_it)
{
	/* An empty name keeps frames as they are; the rest is OTHER. */
	group(&(struct group_options){.group = "[mine] app!->;!->OTHER"});
	assert_string_equal(stacks(),
			    "app!main;app!Shop.Cart.add;OTHER 4|app!main;app!Shop.Cart.add 5|"
			    "app!main;OTHER 1|OTHER 10");
	close_incident(NULL);
	open_incident(NULL);
	group(&(struct group_options){.group = "{%}!->module $1;module libc->C"});
	assert_string_equal(stacks(), "module app;C 4|module app 5|module app;C;module kernel;C 1|"
				      "module db 5|module db;C 5");
}

TEST(a_folded_frame_gives_its_cost_to_its_caller)
{
	group(&(struct group_options){.fold = "brk;^libc!mem"});
	assert_string_equal(stacks(), "app!main;app!Shop.Cart.add;libc!malloc 4|"
				      "app!main;app!Shop.Cart.add 5|"
				      "app!main;libc!read;kernel!sys_read 1|db!main;db!? 5|"
				      "db!main;libc!read 5");
	assert_int_equal(in.nsamples, 20);
}

TEST(included_samples_match_at_least_one_pattern)
{
	group(&(struct group_options){.include = "memcpy;nosuch"});
	assert_string_equal(stacks(), "app!main;libc!read;kernel!sys_read;libc!memcpy 1");
	close_incident(NULL);
	open_incident(NULL);
	group(&(struct group_options){.include = "brk|Thread (21)"});
	assert_int_equal(in.nsamples, 14);
}

/* The names of these modules are their paths; see frame(). */
TEST(a_pattern_with_a_separator_is_of_a_modules_path)
{
	uint32_t i;

	for (i = 0; i < in.nmodules; i++)
		if (!strcmp(in.modules[i].name, "app"))
			in.modules[i].path = "C:\\Windows\\system32\\app.dll";
	group(&(struct group_options){.group = "\\system32\\->OS"});
	assert_non_null(strstr(stacks(), "OS "));
	assert_null(strstr(stacks(), "app!"));
}

TEST(excluded_samples_match_any_pattern)
{
	group(&(struct group_options){.exclude = "malloc;Process db"});
	assert_string_equal(stacks(), "app!main;app!Shop.Cart.add 5|"
				      "app!main;libc!read;kernel!sys_read;libc!memcpy 1");
	assert_int_equal(in.head.samples, 6);
}

/* Include and exclude see the groups' names. */
TEST(filters_look_at_names_after_grouping)
{
	group(&(struct group_options){.group = "{%}!->module $1", .exclude = "module libc"});
	assert_string_equal(stacks(), "module app 5|module db 5");
}

TEST(a_name_near_a_preset_is_told_them)
{
	static const char *const silent[] = {"",     "[]",	 "module", "[class]",
					     "a->b", "[x] a->b", "^main$", "a1"};
	struct buf out = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(silent); i++)
		group_put_presets(silent[i], &out);
	assert_string_equal(buf_text(&out), "");
	group_put_presets("[Modul]", &out);
	assert_string_equal(buf_text(&out),
			    "; presets are module, module-entry, class, class-entry, just-my-code"
			    "; near is 'module' or 'module-entry'");
	buf_reset(&out);
	group_put_presets("nosuch", &out);
	assert_string_equal(buf_text(&out),
			    "; presets are module, module-entry, class, class-entry, just-my-code");
	buf_free(&out);
}

TEST(presets_have_names)
{
	group(&(struct group_options){.group = "module-entry"});
	assert_non_null(strstr(stacks(), "module libc <<libc!malloc>> 4"));
	close_incident(NULL);
	open_incident(NULL);
	group(&(struct group_options){.group = "class"});
	assert_non_null(strstr(stacks(), "app!main;class app!Shop.Cart 5"));
	assert_string_equal(group_preset("[class]"), group_preset("class"));
	assert_string_equal(group_preset("[class] a->b"), "[class] a->b");
	assert_string_equal(group_preset("[no grouping]"), "[no grouping]");
}

/* The module at a path, called as the file. */
static void move_to(const char *module, const char *path)
{
	uint32_t i;

	for (i = 0; i < in.nmodules; i++)
		if (strcmp(in.modules[i].name, module) == 0)
			in.modules[i].path = path;
}

/* The executable of db is unknown here; that of shop is app. */
TEST(just_my_code_is_that_in_the_directory_of_an_executable)
{
	in.processes[0].name = "app";
	in.processes[1].name = "?";
	move_to("app", "/opt/shop/app");
	move_to("libc", "/usr/lib/libc");
	move_to("db", "/opt/shop/db");
	move_to("kernel", "/opt/shop/plugins/kernel");
	group(&(struct group_options){.group = "just-my-code"});
	assert_non_null(strstr(stacks(), "app!main;app!Shop.Cart.add;OTHER <<libc!malloc>> 4"));
	assert_non_null(strstr(stacks(), "app!main;OTHER <<libc!read>> 1"));
	assert_non_null(strstr(stacks(), "db!main;OTHER <<libc!read>> 5"));
}

TEST(of_windows_an_executable_is_called_without_exe)
{
	in.processes[0].name = "shop";
	move_to("app", "C:\\Shop\\shop.EXE");
	move_to("libc", "C:\\Windows\\libc");
	group(&(struct group_options){.group = "just-my-code"});
	assert_non_null(strstr(stacks(), "app!main;OTHER <<libc!read>> 1"));
}

TEST(a_pattern_that_does_not_parse_is_refused_with_its_column)
{
	struct err err;

	assert_int_equal(group_incident(&in, &(struct group_options){.fold = "brk; a{b"}, &err),
			 ERR_USAGE);
	assert_non_null(strstr(err.text, "--fold: the pattern 'a{b' at column 6 is wrong"));
	assert_int_equal(in.nsamples, 20);
}

TEST(signs_of_regular_expressions_stand_for_themselves)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} cases[] = {
		{"operator+", "lib!operator+", true},
		{"operator+", "lib!operatorrr", false},
		{"a.b", "axb", false},
		{"std::vector<int>", "x!std::vector<int>", true},
		{"f(int)", "m!f(int)", true},
		{"^lib", "mylib!f", false},
		{"^lib", "LIB!f", true},
		{"a*z", "xx a...z", true},
		{"{%}!", "ab.so_1!f", true},
		{"x|y", "zzy", true},
		{"@^a[0-9]+$", "a12", true},
		{"@^a[0-9]+$", "a12b", false},
		{"\\Temp\\", "C:\\Temp\\a!f", true},
	};
	struct name_pattern *p;
	size_t i;

	for (i = 0; i < COUNT_OF(cases); i++) {
		assert_int_equal(name_pattern_open(cases[i].pattern, strlen(cases[i].pattern),
						   "group", 1, &p, NULL),
				 0);
		if (name_pattern_match(p, cases[i].name, strlen(cases[i].name)) != cases[i].matches)
			fail_msg("%s on %s", cases[i].pattern, cases[i].name);
		name_pattern_close(p);
	}
}

/* (a*)*b on many a's: bounded, and no match. */
TEST(a_pathological_pattern_ends)
{
	char name[200];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	sample("app!main", 0, 1);
	in.frames[in.stacks[in.samples[20].stack].frame].function = name;
	group(&(struct group_options){.fold = "@(a*)*b$"});
	assert_int_equal(in.nsamples, 21);
}

/* ---- call trees ------------------------------------------------------------------------------ */

static uint32_t find_child(const struct call_tree *t, uint32_t node, const char *name)
{
	uint32_t at;

	for (at = t->nodes[node].first_child; at != CALL_NONE; at = t->nodes[at].next) {
		if (!strcmp(t->nodes[at].name, name))
			return at;
	}
	fail_msg("no child %s", name);
	return CALL_NONE;
}

static struct call_tree tree(const struct call_options *o)
{
	struct call_tree t;
	struct err err = {0};

	if (call_tree_new(&in, o, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

TEST(costs_of_a_tree_add_up)
{
	struct call_tree t = tree(&(struct call_options){.processes = true});
	uint32_t node;

	assert_int_equal(t.nodes[0].cost.inclusive, 20000000);
	assert_string_equal(t.nodes[t.nodes[0].first_child].name, "Process db (20)");
	node = find_child(&t, find_child(&t, 0, "Process shop (10)"), "Thread (11) worker");
	node = find_child(&t, node, "app!main");
	assert_int_equal(t.nodes[node].cost.inclusive, 10000000);
	node = find_child(&t, node, "app!Shop.Cart.add");
	assert_int_equal(t.nodes[node].cost.inclusive, 9000000);
	assert_int_equal(t.nodes[node].cost.exclusive, 2000000);
	call_tree_free(&t);
}

TEST(small_nodes_are_folded_and_the_total_stays)
{
	struct call_tree t = tree(&(struct call_options){.fold_pct = 10});
	uint32_t main = find_child(&t, 0, "app!main"), at, children = 0;

	assert_int_equal(t.nodes[0].cost.inclusive, 20000000);
	assert_int_equal(t.nodes[main].cost.exclusive, 1000000);  /* read and what it called: 5 % */
	assert_int_equal(t.nodes[main].cost.folded, 3);
	for (at = t.nodes[main].first_child; at != CALL_NONE; at = t.nodes[at].next)
		children++;
	assert_int_equal(children, 1);
	call_tree_free(&t);
}

TEST(callers_and_callees_of_a_function_have_its_inclusive_cost)
{
	struct call_tree t = tree(&(struct call_options){.focus = "libc!read"});
	uint32_t read = find_child(&t, 0, "libc!read");

	assert_int_equal(t.nodes[read].cost.inclusive, 6000000);
	assert_int_equal(t.nodes[find_child(&t, read, "kernel!sys_read")].cost.inclusive, 1000000);
	call_tree_free(&t);
	t = tree(&(struct call_options){.focus = "libc!read", .callers = true});
	read = find_child(&t, 0, "libc!read");
	assert_int_equal(t.nodes[read].cost.inclusive, 6000000);
	assert_int_equal(t.nodes[find_child(&t, read, "db!main")].cost.inclusive, 5000000);
	assert_int_equal(t.nodes[find_child(&t, read, "app!main")].cost.inclusive, 1000000);
	call_tree_free(&t);
}

static double cost_of(const struct call_function *rows, uint32_t n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n && strcmp(rows[i].name, name); i++)
		;
	return i < n ? rows[i].cost.inclusive : 0;
}

/* A second incident: A>B>C>B>D of 6 and A>B of 2. */
TEST(each_call_of_a_function_in_a_stack_has_an_equal_part)
{
	struct incident one = {0};
	struct call_around a;
	struct call_tree t;
	uint32_t thread, node;

	assert_int_equal(sample_incident(&one), 0);
	thread = sample_thread(&one, "p", 1, "t", 1);
	assert_int_equal(sample_stack(&one, "x!A;x!B;x!C;x!B;x!D", &node), 0);
	assert_int_equal(sample_add(&one, thread, node, QUALITY_COMPLETE, 6), 0);
	assert_int_equal(sample_stack(&one, "x!A;x!B", &node), 0);
	assert_int_equal(sample_add(&one, thread, node, QUALITY_COMPLETE, 2), 0);
	assert_int_equal(call_tree_new(&one, &(struct call_options){0}, &t, NULL), 0);
	assert_int_equal(call_around(&t, &one, "x!B", &a, NULL), 0);
	assert_true(a.focus.cost.inclusive == 8 * 10e6);
	assert_true(a.focus.cost.exclusive == 2 * 10e6);
	assert_int_equal(a.ncallers, 2);
	assert_true(cost_of(a.callers, a.ncallers, "x!A") == 5 * 10e6);
	assert_true(cost_of(a.callers, a.ncallers, "x!C") == 3 * 10e6);
	assert_int_equal(a.ncallees, 2);
	assert_true(cost_of(a.callees, a.ncallees, "x!C") == 3 * 10e6);
	assert_true(cost_of(a.callees, a.ncallees, "x!D") == 3 * 10e6);
	call_around_free(&a);
	call_tree_free(&t);
	incident_free(&one);
}

/* A>B>C of 1 and A>B>D of 99: C is under 5 %, so its cost is B's own. */
TEST(what_is_folded_is_no_callee_but_its_caller_s_own_cost)
{
	const struct call_options folded = {.fold_pct = 5};
	struct incident one = {0};
	struct call_around a;
	struct call_tree t;
	struct err err;
	uint32_t thread, node;

	assert_int_equal(sample_incident(&one), 0);
	thread = sample_thread(&one, "p", 1, "t", 1);
	assert_int_equal(sample_stack(&one, "x!A;x!B;x!C", &node), 0);
	assert_int_equal(sample_add(&one, thread, node, QUALITY_COMPLETE, 1), 0);
	assert_int_equal(sample_stack(&one, "x!A;x!B;x!D", &node), 0);
	assert_int_equal(sample_add(&one, thread, node, QUALITY_COMPLETE, 99), 0);
	assert_int_equal(call_tree_new(&one, &folded, &t, NULL), 0);
	assert_int_equal(call_around(&t, &one, "x!B", &a, NULL), 0);
	assert_true(a.focus.cost.inclusive == 100 * 10e6);
	assert_true(a.focus.cost.exclusive == 1 * 10e6);
	assert_int_equal(a.focus.cost.folded, 1);
	assert_int_equal(a.ncallees, 1);
	assert_true(cost_of(a.callees, a.ncallees, "x!D") == 99 * 10e6);
	call_around_free(&a);
	assert_int_equal(call_around(&t, &one, "x!C", &a, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "lower --fold-percent"));
	call_tree_free(&t);
	incident_free(&one);
}

TEST(a_part_of_a_name_is_enough_if_it_is_the_only_one)
{
	struct call_tree t = tree(&(struct call_options){.focus = "sys_read"});
	struct err err;

	assert_int_equal(t.nodes[0].cost.inclusive, 1000000);
	call_tree_free(&t);
	assert_int_equal(call_tree_new(&in, &(struct call_options){.focus = "rea"}, &t, &err),
			 ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "several names contain 'rea'"));
	assert_int_equal(call_tree_new(&in, &(struct call_options){.focus = "nosuch"}, &t, &err),
			 ERR_NOT_FOUND);
}

TEST(a_name_without_its_module_is_better_than_a_part_of_one)
{
	assert_int_equal(call_name_fit("shop!main", "shop!main"), 3);
	assert_int_equal(call_name_fit("shop!main", "main"), 2);
	assert_int_equal(call_name_fit("shop!Cart::total(int)", "Cart::total"), 2);
	assert_int_equal(call_name_fit("libc.so.6!__libc_start_main", "main"), 1);
	assert_int_equal(call_name_fit("shop!serve", "main"), 0);
}

TEST(a_function_that_calls_itself_counts_a_stack_once)
{
	struct call_tree t = tree(&(struct call_options){0});
	struct call_function *f = NULL;
	uint32_t n, i;

	assert_int_equal(call_functions(&t, &in, true, &f, &n, NULL), 0);
	for (i = 0; i < n && strcmp(f[i].name, "app!Shop.Cart.add"); i++)
		;
	assert_true(i < n);
	assert_int_equal(f[i].cost.inclusive, 9000000);
	assert_int_equal(f[i].cost.exclusive, 5000000);
	free(f);
	call_tree_free(&t);
}

TEST(when_shows_where_in_the_window_a_function_ran)
{
	struct call_tree t = tree(&(struct call_options){0});
	char text[CALL_WHEN + 1];
	uint32_t main = find_child(&t, 0, "db!main");

	call_when_text(&t, t.nodes[main].cost.columns, text);        /* the last 10 of 20 ms */
	assert_memory_equal(text, "________________", 16);
	assert_null(strchr(text + 31, '_'));
	call_tree_free(&t);
}

TEST(when_of_counts_is_relative_to_the_largest_part)
{
	const struct call_tree counts = {.t1_ns = 32000000000};
	const float when[CALL_WHEN] = {40, 36, 2, 0.1f, 0};
	char text[CALL_WHEN + 1];

	call_when_text(&counts, when, text);
	assert_string_equal(text, "A90o____________________________");
}

/* ---- lack of memory -------------------------------------------------------------------------- */

static int group_and_tree(void *ctx)
{
	/* the same each time */
	struct group_options o = {"kernel!->OS", "nosuch", "main", "nosuch", NULL};
	struct call_tree t = {0};
	struct err err;
	int rc;

	(void)ctx;
	rc = group_incident(&in, &o, &err);
	if (!rc)
		rc = call_tree_new(&in, &(struct call_options){.processes = true}, &t, &err);
	call_tree_free(&t);
	return rc;
}

TEST(lack_of_memory_is_an_error_and_leaks_nothing)
{
	assert_true(alloc_walk(group_and_tree, NULL) > 10);
}

#define IN_LAB(f) cmocka_unit_test_setup_teardown(f, open_incident, close_incident)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(a_module_becomes_one_frame_and_calls_within_it_vanish),
		IN_LAB(what_was_freed_is_grouped_as_samples_are),
		IN_LAB(a_group_that_matches_no_frame_is_told),
		IN_LAB(an_entry_group_keeps_the_name_through_which_it_is_entered),
		IN_LAB(the_first_pattern_that_gives_a_group_is_followed_by_those_behind_it),
		IN_LAB(a_folded_frame_gives_its_cost_to_its_caller),
		IN_LAB(included_samples_match_at_least_one_pattern),
		IN_LAB(a_pattern_with_a_separator_is_of_a_modules_path),
		IN_LAB(excluded_samples_match_any_pattern),
		IN_LAB(filters_look_at_names_after_grouping),
		IN_LAB(presets_have_names),
		IN_LAB(just_my_code_is_that_in_the_directory_of_an_executable),
		IN_LAB(of_windows_an_executable_is_called_without_exe),
		IN_LAB(a_name_near_a_preset_is_told_them),
		IN_LAB(a_pattern_that_does_not_parse_is_refused_with_its_column),
		IN_LAB(signs_of_regular_expressions_stand_for_themselves),
		IN_LAB(a_pathological_pattern_ends),
		IN_LAB(costs_of_a_tree_add_up),
		IN_LAB(small_nodes_are_folded_and_the_total_stays),
		IN_LAB(callers_and_callees_of_a_function_have_its_inclusive_cost),
		cmocka_unit_test(each_call_of_a_function_in_a_stack_has_an_equal_part),
		cmocka_unit_test(what_is_folded_is_no_callee_but_its_caller_s_own_cost),
		cmocka_unit_test(a_name_without_its_module_is_better_than_a_part_of_one),
		IN_LAB(a_part_of_a_name_is_enough_if_it_is_the_only_one),
		IN_LAB(a_function_that_calls_itself_counts_a_stack_once),
		IN_LAB(when_shows_where_in_the_window_a_function_ran),
		IN_LAB(when_of_counts_is_relative_to_the_largest_part),
		IN_LAB(lack_of_memory_is_an_error_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
