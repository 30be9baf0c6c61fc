/*
 * Walk the failures of an allocator: make one chosen malloc, calloc or realloc return NULL.
 *
 * Every unit test is linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc, so each call of
 * these made by the test, by the layers under it, and by libraries that are linked statically
 * passes through here and is counted. Allocations inside shared libraries (the C library's own
 * strdup, fopen..., SQLite on Linux) do not pass. Counting starts at 1 with alloc_walk_fail_at().
 * Any thread may allocate; the functions below belong to the test's own thread.
 *
 *	static int step(void *ctx)
 *	{
 *		struct table *table = NULL;
 *		int rc = table_new(ctx, &table);
 *
 *		table_free(table);
 *		return rc;
 *	}
 *
 *	static void table_reports_lack_of_memory(void **state)
 *	{
 *		assert_in_range(alloc_walk(step, "a name"), 2, 100);
 *	}
 *
 * A leak on the way out of a failure is found by `make check-asan`.
 */
#pragma once

/*
 * Let the nth allocation from now return NULL, once; those before and after it succeed.
 *
 * n        1 is the next one; 0 = none fails. Either way the count starts again.
 */
void alloc_walk_fail_at(unsigned long n);

/* Allocations since the last alloc_walk_fail_at(), failed ones included. */
unsigned long alloc_walk_count(void);

/*
 * Run a step with its 1st, 2nd, 3rd... allocation failing, until it runs through without meeting
 * the failure. That last run must return 0 and each one before it something else, or the test
 * fails, saying which allocation it was.
 *
 * step     does the whole thing from an empty state, releases what it got, returns 0 or an error
 * ctx      passed to step as it is
 * returns  number of runs, the good one included: 1 = the step allocates nothing
 */
int alloc_walk(int (*step)(void *ctx), void *ctx);
