#include "model/event.h"

#include "base/array.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const char *const loss_texts[LOSS_KINDS] = {
	[LOSS_KERNEL] = "kernel",
	[LOSS_THROTTLED] = "throttled",
	[LOSS_QUEUE] = "queue",
	[LOSS_SIDEBAND] = "sideband",
	[LOSS_TABLE] = "table",
	[LOSS_LATE] = "late",
	[LOSS_FLOOD] = "flood",
	[LOSS_EVENTS] = "events",
	[LOSS_PYTHON] = "python",
};

const char *loss_kind_text(unsigned kind)
{
	return kind < LOSS_KINDS ? loss_texts[kind] : "?";
}

enum loss_kind loss_kind_from_text(const char *text)
{
	unsigned kind;

	for (kind = 0; kind < LOSS_KINDS; kind++) {
		if (strcmp(loss_texts[kind], text) == 0)
			break;
	}
	return (enum loss_kind)kind;
}

const char *stack_quality_text(unsigned quality)
{
	static const char *const texts[QUALITIES] = {
		[QUALITY_NONE] = "none",
		[QUALITY_COMPLETE] = "complete",
		[QUALITY_FP] = "fp",
		[QUALITY_STITCHED] = "stitched",
		[QUALITY_REMOTE] = "remote",
		[QUALITY_TRUNCATED] = "truncated",
		[QUALITY_BROKEN] = "broken",
	};

	return quality < QUALITIES ? texts[quality] : "?";
}

const char *event_kind_text(unsigned kind)
{
	static const char *const texts[EVENT_KINDS] = {
		[EVENT_NONE] = "none",
		[EVENT_TICK] = "tick",
		[EVENT_SAMPLE] = "sample",
		[EVENT_COUNTER] = "counter",
		[EVENT_LOST] = "lost",
		[EVENT_PROCESS_START] = "process-start",
		[EVENT_PROCESS_EXIT] = "process-exit",
		[EVENT_THREAD_START] = "thread-start",
		[EVENT_THREAD_EXIT] = "thread-exit",
		[EVENT_IMAGE] = "image",
		[EVENT_RATE] = "rate",
		[EVENT_GENERIC] = "event",
		[EVENT_LOG] = "log",
		[EVENT_EXPECTED] = "expected",
	};

	return kind < EVENT_KINDS ? texts[kind] : "?";
}

const struct stream_metric stream_metrics[STREAMS_MAX] = {
	[STREAM_CPU] = {"cpu", UNIT_NS, "of CPU time", "cpu", "cpu-clock", "CPU", .counted = true},
	[STREAM_OFF_CPU] = {"off-cpu", UNIT_NS, "off CPU", "off-cpu", "off-cpu",
			    .counted = false},
	[STREAM_ALLOC] = {"alloc", UNIT_BYTES, "allocated", "alloc_space", "alloc",
			  "GC Heap Alloc Ignore Free|GC Heap Alloc", .counted = true},
	[STREAM_EVENT] = {"event", UNIT_EVENTS, "", "event", "event", "Any", .counted = true},
	[STREAM_RSS] = {"rss", UNIT_BYTES, "touched", "touched_space", "page-faults",
			.counted = false},
	[STREAM_RSS_NET] = {"rss-net", UNIT_BYTES, "touched and still there", "inuse_space",
			    "rss-net", .counted = false},
	[STREAM_RSS_MARK] = {"rss-mark", UNIT_EVENTS, "", "", "", .mark = true},
	[STREAM_HEAP] = {"heap", UNIT_BYTES, "allocated", "alloc_space", "heap",
			 .counted = false},
	[STREAM_HEAP_NET] = {"heap-net", UNIT_BYTES, "allocated and not freed", "inuse_space",
			     "heap-net", "GC Heap Net Mem|Net OS Heap Alloc|OS Heap Alloc",
			     .counted = false},
	[STREAM_HEAP_MARK] = {"heap-mark", UNIT_EVENTS, "", "", "", .mark = true},
	[STREAM_VM] = {"vm", UNIT_BYTES, "asked of the system", "vm_alloc", "vm", .view = true},
	[STREAM_VM_NET] = {"vm-net", UNIT_BYTES, "asked of the system and kept", "vm_inuse",
			   "vm-net", "Net Virtual Alloc|VirtualAlloc", .view = true},
	[STREAM_VM_PEAK] = {"vm-peak", UNIT_BYTES, "at the moment with most", "vm_peak",
			    "vm-peak", .view = true},
	[STREAM_HEAP_PEAK] = {"heap-peak", UNIT_BYTES, "at the moment with most", "peak_space",
			      "heap-peak", .view = true},
	[STREAM_IO_BYTES] = {"io-bytes", UNIT_BYTES, "read from and written to disks", "io",
			     "io-bytes", .view = true},
	[STREAM_IO_TIME] = {"io-time", UNIT_NS, "of disk time", "disk", "io-time", "Disk I/O",
			    .view = true},
	[STREAM_FILE_BYTES] = {"file-bytes", UNIT_BYTES, "read and written by calls", "file",
			       "file-bytes", "File I/O", .view = true},
	[STREAM_FILE_TIME] = {"file-time", UNIT_NS, "of read and write calls", "file_io",
			      "file-time", .view = true},
};

const char *stream_text(unsigned stream)
{
	return stream < STREAMS_MAX ? stream_metrics[stream].name : "?";
}

/* Of PerfView's name what says which view it is. */
static size_t view_length(const char *name)
{
	size_t n = strcspn(name, "(");

	while (n && name[n - 1] == ' ')
		n--;
	if (n > strlen(" Stacks") && !strncasecmp(name + n - strlen(" Stacks"), " Stacks",
						  strlen(" Stacks")))
		n -= strlen(" Stacks");
	return n;
}

static bool is_view(const char *names, const char *name, size_t n)
{
	while (strcspn(names, "|") != n || strncasecmp(names, name, n) != 0) {
		names += strcspn(names, "|");
		if (!*names++)
			return false;
	}
	return true;
}

enum stream stream_from_text(const char *name)
{
	size_t n = view_length(name);
	unsigned i;

	for (i = 0; i < STREAMS_MAX && !text_same_fold(name, stream_metrics[i].name); i++)
		if (stream_metrics[i].perfview && is_view(stream_metrics[i].perfview, name, n))
			break;
	return (enum stream)i;
}

const struct event_field *event_field(const struct event *e, const char *name)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		/* Mostly the first letters differ; one of them may be upper case. */
		if (!((e->fields[i].name[0] ^ name[0]) & ~0x20) &&
		    text_same_fold(e->fields[i].name, name))
			return &e->fields[i];
	}
	return NULL;
}

bool event_has_own_field(const char *name)
{
	static const char *const own[] = {"ProcessID", "ThreadID", "ProcessName", "ProviderName"};
	size_t i;

	for (i = 0; i < COUNT_OF(own) && !text_same_fold(name, own[i]); i++)
		;
	return i < COUNT_OF(own);
}

bool event_name_is(const char *wanted, const char *name)
{
	size_t n = strlen(wanted), m = strlen(name), task = strcspn(name, "/");

	if (text_same_fold(wanted, name))
		return true;
	if (m == n + 1 && task < n && strncasecmp(wanted, name, task) == 0 &&
	    (text_same_fold(name + task, "/Start") || text_same_fold(name + task, "/Stop")))
		return text_same_fold(wanted + task, name + task + 1);
	if (m == n + 5)
		return strncasecmp(wanted, name, n) == 0 && text_same_fold(name + n, "/Info");
	return n == m + 5 && strncasecmp(wanted, name, m) == 0 &&
	       text_same_fold(wanted + m, "/Info");
}
