#include "real_trace.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>

const char *real_trace(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), TRACES "%s", name);
	if (!os_exists(path)) {
		printf("%s is not there\n", path);
		skip();
	}
	return path;
}

struct etl_file *real_trace_open(const char *name)
{
	struct etl_file *file = NULL;
	struct err err;

	if (etl_file_open(real_trace(name), &file, &err))
		fail_msg("%s", err.text);
	return file;
}
