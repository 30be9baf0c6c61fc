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

#define TEST(name) static void name(void **state __attribute__((unused)))
