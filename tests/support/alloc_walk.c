#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MOST_RUNS = 100000 }; /* a step that never runs through ends here */

static atomic_ulong count;
static atomic_ulong fail_at;

/* Names that the linker gives: calls to malloc arrive at __wrap_malloc, __real_malloc is malloc. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool fails(void)
{
	return atomic_fetch_add(&count, 1) + 1 == atomic_load(&fail_at);
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void alloc_walk_fail_at(unsigned long n)
{
	atomic_store(&fail_at, n);
	atomic_store(&count, 0);
}

unsigned long alloc_walk_count(void)
{
	return atomic_load(&count);
}

int alloc_walk(int (*step)(void *ctx), void *ctx)
{
	for (int run = 1; run <= MOST_RUNS; run++) {
		unsigned long n = (unsigned long)run;
		bool met;
		int rc;

		alloc_walk_fail_at(n);
		rc = step(ctx);
		met = alloc_walk_count() >= n;
		alloc_walk_fail_at(0);

		if (!met && rc)
			fail_msg("alloc_walk: returned %d although no allocation failed", rc);
		if (met && !rc)
			fail_msg("alloc_walk: returned 0 although allocation %lu failed", n);
		if (!met)
			return run;
	}
	fail_msg("alloc_walk: still allocating after %d runs", MOST_RUNS);
	return -1;
}
