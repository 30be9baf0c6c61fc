/*
 * Whether this user may use tracepoints and probes in programs: tries one of each. See
 * probes_linux.h.
 */
#include "source/probe/probes_linux.h"

#include "base/array.h"
#include "source/probe/tracepoint_linux.h"
#include "source/probe/uprobe_linux.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open it on CPU 0; if that is offline, opening others reports it. returns  errno; 0 = allowed */
static int try_event(struct perf_event_attr *attr)
{
	int fd = perf_event_fd(attr, 0), os_error = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return os_error == ENODEV ? 0 : os_error;
}

static int may_have_tracepoints(struct err *err)
{
	struct trace_format *format = malloc(sizeof(*format));
	struct perf_event_attr attr;
	int os_error, rc;

	if (!format)
		return err_memory(err, "for the format of an event");
	rc = tracepoint_load("sched", "sched_switch", format, err);
	perf_attr_common(&attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = rc ? 0 : format->id;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	free(format);
	os_error = rc ? 0 : try_event(&attr);
	if (os_error == EACCES || os_error == EPERM)
		return err_set(err, ERR_ACCESS,
			       "this user may not use them: run as root, or give the program "
			       "CAP_PERFMON (before Linux 5.8 CAP_SYS_ADMIN)");
	return rc ? rc : os_error ? err_os_code(err, os_error, "the kernel refuses them") : 0;
}

/*
 * The kernel checks the rights before it looks for the file, so a name that no file has touches no
 * program.
 */
static int may_have_uprobes(struct err *err)
{
	struct perf_event_attr attr;
	uint32_t pmu;
	int os_error, rc = uprobe_pmu(&pmu, err);

	if (rc)
		return rc;
	perf_attr_common(&attr);
	attr.type = pmu;
	attr.uprobe_path = (uint64_t)(uintptr_t)"/proc/self/no_such_file";
	attr.sample_period = 1;
	os_error = try_event(&attr);
	if (os_error == EACCES || os_error == EPERM)
		return err_set(err, ERR_ACCESS,
			       "this user may not place them: run as root, or give the program "
			       "CAP_SYS_ADMIN");
	return os_error && os_error != ENOENT
		       ? err_os_code(err, os_error, "the kernel refuses them")
		       : 0;
}

int probes_part(unsigned i, struct source_part *out, struct err *err)
{
	static const struct source_part parts[] = {
		{"tracepoints", "kernel events, for rules on them and for --thread-time"},
		{"uprobes", "probes in programs, for rules on them, collections of CPython and V8, "
			    "throws of C++"},
	};

	if (i >= COUNT_OF(parts)) {
		out->name = NULL;
		return 0;
	}
	*out = parts[i];
	return i ? may_have_uprobes(err) : may_have_tracepoints(err);
}
