#include "export/names.h"

#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

#define UNKNOWN_NAME "[unknown]"
#define PARTS_NAMED_MAX 10u

static const char *or_name(const char *name, const char *instead)
{
	return name && *name ? name : instead;
}

void who_of(const struct incident *in, uint32_t thread, struct who *out)
{
	const struct incident_thread *t;
	const struct incident_process *p;

	memset(out, 0, sizeof(*out));
	out->process = out->thread = UNKNOWN_NAME;
	out->home = "";
	if (thread == THREAD_NONE)
		return;
	t = &in->threads[thread];
	p = &in->processes[t->process];
	out->process = or_name(p->name, UNKNOWN_NAME);
	out->thread = or_name(t->name, out->process);
	out->home = p->home ? p->home : "";
	out->pid = p->pid;
	out->tid = t->tid;
}

void name_put(struct buf *out, const char *name)
{
	utf8_put_clean(out, name, strlen(name), INCIDENT_TEXT_MAX);
}

void name_no_semicolons(struct buf *out, size_t start)
{
	for (; !out->failed && start < out->len; start++) {
		if (out->data[start] == ';')
			out->data[start] = ':';
	}
}

void name_no_comment(struct buf *out, size_t start)
{
	if (!out->failed && strncmp(out->data + start, "# ", 2) == 0)
		out->data[start + 1] = '_';
}

void service_put(struct buf *out, const struct incident *in, uint32_t process)
{
	const struct incident_process *p = process == UINT32_MAX ? NULL : &in->processes[process];
	struct home home;
	size_t n;

	home_read(p ? p->home : "", &home);
	n = strlen(home.of[HOME_UNIT]);
	if (*home.of[HOME_SERVICE])
		name_put(out, home.of[HOME_SERVICE]);
	else if (text_ends_fold(home.of[HOME_UNIT], ".service"))
		buf_put(out, home.of[HOME_UNIT], n - strlen(".service"));
	else
		name_put(out, p && *p->name ? p->name : "unknown");
}

const char *stream_title(enum stream stream)
{
	static const char *const titles[STREAMS_MAX] = {
		[STREAM_CPU] = "CPU samples",
		[STREAM_OFF_CPU] = "off-CPU time",
		[STREAM_ALLOC] = "allocated memory",
		[STREAM_EVENT] = "events",
		[STREAM_RSS] = "touched memory",
		[STREAM_RSS_NET] = "memory growth",
		[STREAM_HEAP] = "heap allocations",
		[STREAM_HEAP_NET] = "heap in use",
		[STREAM_VM] = "virtual memory",
		[STREAM_VM_NET] = "virtual memory kept",
		[STREAM_VM_PEAK] = "virtual memory at most",
		[STREAM_HEAP_PEAK] = "heap at most",
		[STREAM_IO_BYTES] = "disk I/O",
		[STREAM_IO_TIME] = "disk time",
	};

	return titles[stream];
}

uint64_t frame_offset(const struct incident *in, uint32_t frame)
{
	uint64_t at = frame_address(in, frame), start = in->frames[frame].function_offset;

	return frame_is_named(in, frame) && at > start ? at - start : 0;
}

bool frame_has_module(const struct incident *in, uint32_t frame)
{
	return strcmp(incident_frame_module(in, frame), "?") != 0;
}

/* v thousandths, as "12.345". */
static char *thousandths_write(char *to, uint64_t v)
{
	to = uint_write(to, v / 1000);
	*to++ = '.';
	*to++ = (char)('0' + v / 100 % 10);
	*to++ = (char)('0' + v / 10 % 10);
	*to++ = (char)('0' + v % 10);
	return to;
}

static void put_thousandths(struct buf *out, uint64_t v)
{
	char text[MS_MAX_BYTES];

	buf_put(out, text, (size_t)(thousandths_write(text, v) - text));
}

char *ms_write(char *to, int64_t ns)
{
	uint64_t us = (ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns) / 1000;

	if (ns < 0 && us)
		*to++ = '-';
	return thousandths_write(to, us);
}

void ms_put(struct buf *out, int64_t ns)
{
	char text[MS_MAX_BYTES];

	buf_put(out, text, (size_t)(ms_write(text, ns) - text));
}

void us_put(struct buf *out, int64_t ns)
{
	if (ns < 0)
		buf_putc(out, '-');
	put_thousandths(out, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
}

static void put_seconds(struct buf *out, uint64_t from_ns, uint64_t to_ns)
{
	bool negative = to_ns < from_ns;
	uint64_t ms = (negative ? from_ns - to_ns : to_ns - from_ns) / NS_PER_MS;

	if (negative && ms)
		buf_putc(out, '-');
	put_thousandths(out, ms);
	buf_puts(out, " s");
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void put_text(struct buf *out, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	buf_puts(out, label);
	name_put(out, text);
	buf_putc(out, '\n');
}

/* "Incident 1, Incident 5 and 3 more": of several as one. */
static void put_parts(struct buf *out, const struct incident *in)
{
	uint32_t i;

	buf_puts(out, "Incidents: ");
	for (i = 0; i < in->nparts && i < PARTS_NAMED_MAX; i++) {
		buf_puts(out, i ? ", " : "");
		name_put(out, in->parts[i]);
	}
	if (i < in->nparts)
		buf_printf(out, " and %" PRIu32 " more", in->nparts - i);
	buf_putc(out, '\n');
}

static void put_origin(struct buf *out, const struct incident *in)
{
	const struct incident_head *h = &in->head;
	char time[OS_TIME_TEXT_BYTES];

	if (in->nparts)
		put_parts(out, in);
	else
		buf_printf(out, "Incident: %" PRId64 " (%s)\n", h->id,
			   incident_state_text(h->state));
	put_text(out, "Host: ", h->host);
	put_text(out, "System: ", h->host_text);
	put_text(out, "Recorder: ", h->recorder_version);
	put_text(out, "Rule: ", h->rule);
	put_text(out, "Reason: ", h->reason);
	os_time_text(h->trigger_wall_ns, time);
	buf_printf(out, "Trigger: %s, ", time);
	put_seconds(out, h->t0_ns, h->trigger_ns);
	buf_puts(out, " after the window's start\n");
}

static void put_window(struct buf *out, const struct incident_head *h)
{
	buf_puts(out, "Window asked for: ");
	put_seconds(out, 0, h->asked_pre_ns);
	buf_puts(out, " before the trigger, ");
	put_seconds(out, 0, h->asked_post_ns);
	buf_puts(out, " after it\nWindow here: ");
	put_seconds(out, h->t0_ns, h->trigger_ns);
	buf_puts(out, " before, ");
	put_seconds(out, h->trigger_ns, h->t1_ns);
	buf_puts(out, " after\n");
	put_text(out, "Why they differ: ", h->gap_reason);
}

static void put_samples(struct buf *out, const struct incident *in)
{
	const struct incident_head *h = &in->head;
	bool first = true;
	unsigned i;

	buf_printf(out, "Samples: %" PRIu64, h->samples);
	if (in->several_periods) {
		buf_puts(out, ", of unequal weight: the CPU time that each stands for");
	} else if (h->period_ns[STREAM_CPU]) {
		buf_puts(out, ", one per ");
		ms_put(out, (int64_t)h->period_ns[STREAM_CPU]);
		buf_puts(out, " ms of CPU time");
	}
	buf_puts(out, "\nStacks:");
	for (i = 0; i < QUALITIES; i++) {
		if (!h->quality[i])
			continue;
		buf_printf(out, "%s %" PRIu64 " %s", first ? "" : ",", h->quality[i],
			   stack_quality_text(i));
		first = false;
	}
	buf_puts(out, first ? " none\n" : "\n");
}

/* Samples whose innermost frame has no name: how much of the picture is blank. */
static void put_unnamed(struct buf *out, const struct incident *in)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		uint32_t stack = in->samples[i].stack;

		n += stack != STACK_NONE && !frame_is_named(in, in->stacks[stack].frame);
	}
	buf_printf(out, "Samples in code without a name: %" PRIu64 "\n", n);
}

static void put_lost(struct buf *out, const struct incident_head *h)
{
	bool first = true;
	unsigned i;

	buf_printf(out, "Lost: %" PRIu64, h->lost);
	for (i = 0; i < LOSS_KINDS; i++) {
		if (!h->lost_by_kind[i] || !loss_counts(i))
			continue;
		buf_printf(out, "%s%s %" PRIu64, first ? " (" : ", ",
			   loss_kind_text(i), h->lost_by_kind[i]);
		first = false;
	}
	buf_puts(out, first ? "\n" : ")\n");
	if (h->lost_by_kind[LOSS_FLOOD])
		buf_printf(out, "Left out: %" PRIu64 " events of floods\n",
			   h->lost_by_kind[LOSS_FLOOD]);
	if (h->lost_by_kind[LOSS_TABLE])
		buf_printf(out, "Without room in a table: %" PRIu64 " files, processes or frames\n",
			   h->lost_by_kind[LOSS_TABLE]);
	if (h->lost_by_kind[LOSS_PYTHON])
		buf_printf(out, "Without Python frames: %" PRIu64 " samples\n",
			   h->lost_by_kind[LOSS_PYTHON]);
}

void notes_put(struct buf *out, const struct incident *in)
{
	put_origin(out, in);
	put_window(out, &in->head);
	put_samples(out, in);
	put_unnamed(out, in);
	put_lost(out, &in->head);
	put_text(out, "Note: ", in->head.note);
	put_text(out, "Remarks: ", in->head.remarks);
}
