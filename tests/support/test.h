/*
 * What every unit test includes: cmocka, and the headers that it wants before it.
 *
 *	TEST(ring_overwrites_oldest_when_full)
 *	{
 *		...
 *	}
 *
 * A test's name is a sentence. main() lists them by cmocka_unit_test(). A test that needs what a
 * setup function made is written out, with its void **state.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * Of the steps of a long walk, every nth where each is slow, under the sanitizers and Wine: the
 * Linux program of `make check` takes them all.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(_WIN32)
#define EVERY(n) (n)
#else
#define EVERY(n) 1
#endif

#define TEST(name) static void name(void **state __attribute__((unused)))
