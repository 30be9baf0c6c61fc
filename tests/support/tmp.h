/* Names in the empty directory that tests/run.sh gives each test program (TEST_TMP). */
#pragma once

#include "base/os.h"

#include <stdio.h>

#define TMP_BYTES 600

/* "<TEST_TMP>/<name>", in one of four buffers used in turn. One thread. */
static inline const char *tmp_path(const char *name)
{
	static char paths[4][TMP_BYTES];
	static unsigned next;
	char *path = paths[next++ % 4];
	const char *dir = os_env("TEST_TMP");

	snprintf(path, TMP_BYTES, "%s/%s", dir ? dir : "build", name);
	return path;
}
