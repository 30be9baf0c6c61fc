/*
 * Tests that change what a machine has one of (a key of its registry) run one at a time: call it
 * first.
 */
#pragma once

#include <windows.h>

/* Held until the program ends. */
static inline void alone_on_this_machine(void)
{
	WaitForSingleObject(CreateMutexW(NULL, FALSE, L"Global\\recorder-tests-alone"), 60000);
}
