#pragma once

#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The child process that was started last; 0 = there is none. proc(5), children. */
static inline pid_t last_child(void)
{
	char path[60], *at, *end;
	struct buf text = {0};
	long pid = 0, one;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	assert_int_equal(os_load(path, 100, &text, NULL), 0);
	for (at = (char *)(uintptr_t)buf_text(&text); (one = strtol(at, &end, 10)) != 0; at = end)
		pid = one;
	buf_free(&text);
	return (pid_t)pid;
}
