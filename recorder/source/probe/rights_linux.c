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

/*
 * Open it on CPU 0; if that is offline, opening others reports it. refused: the error when this
 * user lacks the right. That a uprobe's file is missing is none.
 */
static int try_event(struct perf_event_attr *attr, const char *refused, struct err *err)
{
	int fd = perf_event_fd(attr, 0), os_error = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	if (os_error == EACCES || os_error == EPERM)
		return err_set(err, ERR_ACCESS, "%s", refused);
	if (!os_error || os_error == ENODEV || (os_error == ENOENT && attr->uprobe_path))
		return 0;
	return err_os_code(err, os_error, "the kernel refuses them");
}

static int may_have_tracepoints(struct err *err)
{
	struct trace_format *format = malloc(sizeof(*format));
	struct perf_event_attr attr;
	int rc;

	if (!format)
		return err_memory(err, "for the format of an event");
	rc = tracepoint_load("sched", "sched_switch", format, err);
	perf_attr_common(&attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = rc ? 0 : format->id;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	free(format);
	return rc ? rc
		  : try_event(&attr,
			      "this user may not use them: run as root, or give the program "
			      "CAP_PERFMON (before Linux 5.8 CAP_SYS_ADMIN)", err);
}

/*
 * The kernel checks the rights before it looks for the file, so a name that no file has touches no
 * program.
 */
static int may_have_uprobes(struct err *err)
{
	struct perf_event_attr attr;
	uint32_t pmu;
	int rc = uprobe_pmu(&pmu, err);

	if (rc)
		return rc;
	perf_attr_common(&attr);
	attr.type = pmu;
	attr.uprobe_path = (uint64_t)(uintptr_t)"/proc/self/no_such_file";
	attr.sample_period = 1;
	return try_event(&attr,
			 "this user may not place them: run as root, or give the program "
			 "CAP_SYS_ADMIN", err);
}

int probes_part(unsigned i, struct source_part *out, struct err *err)
{
	static const struct source_part parts[] = {
		{"tracepoints", "kernel events, for rules on them and for --thread-time"},
		{"uprobes", "probes in programs, for rules on them, collections of CPython and V8, "
			    "throws of C++ and Java"},
	};

	if (i >= COUNT_OF(parts)) {
		out->name = NULL;
		return 0;
	}
	*out = parts[i];
	return i ? may_have_uprobes(err) : may_have_tracepoints(err);
}
