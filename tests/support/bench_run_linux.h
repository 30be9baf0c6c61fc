/* What a program costs from its start to its end: the kernel's account of it (wait4(2)). */
#pragma once

#include "base/err.h"

struct bench_cost {
	double wall_ms, cpu_ms, rss_mb;      /* rss_mb: the most that was resident */
};

/* args[0] is the program's path; what it prints is dropped. ERR_IO: it did not end with 0. */
int bench_run(char *const *args, struct bench_cost *out, struct err *err);
