/*
 * Samples as `perf script` prints them, each with its stack leaf first:
 *
 *	comm SP pid "/" tid SP "[" cpu "]" SP sec "." usec ":" SP period SP event ":"
 *	TAB hexaddr SP symbol "+0x" hex SP "(" path ")"
 *	(empty line)
 *
 * Addresses are those in the module (file offset, RVA): an incident holds no others. Grammar and
 * the readers' traps: exports-and-store.md, section 2.4.
 */
#include "export/export.h"
#include "export/names.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *event_of(enum stream stream)
{
	static const char *const names[STREAMS_MAX] = {
		[STREAM_CPU] = "cpu-clock",
		[STREAM_OFF_CPU] = "off-cpu",
		[STREAM_ALLOC] = "alloc",
		[STREAM_EVENT] = "event",
	};

	return names[stream];
}

/* A name as one word; a line that begins with '#' would be a comment. */
static void put_word(struct buf *text, const char *name)
{
	size_t start = text->len, i;

	name_put(text, name);
	for (i = start; !text->failed && i < text->len; i++) {
		if (text->data[i] == ' ' || (i == start && text->data[i] == '#'))
			text->data[i] = '_';
	}
}

static void put_path(struct buf *text, const struct incident *in, uint32_t frame, uint32_t pid)
{
	const struct incident_module *m = &in->modules[in->frames[frame].module];

	if (m->kind == OBJECT_KERNEL)
		buf_puts(text, "[kernel.kallsyms]");
	else if (m->kind == OBJECT_JIT)
		buf_printf(text, "/tmp/perf-%" PRIu32 ".map", pid);
	else if (m->kind == OBJECT_UNKNOWN)
		buf_puts(text, "[unknown]");
	else
		put_word(text, m->path && *m->path ? m->path : incident_frame_module(in, frame));
}

static void put_frame(struct buf *text, const struct incident *in, uint32_t frame, uint32_t pid)
{
	buf_printf(text, "\t%16" PRIx64 " ", frame_address(in, frame));
	if (frame_is_named(in, frame)) {
		name_put(text, in->frames[frame].function);
		buf_printf(text, "+0x%" PRIx64, frame_offset(in, frame));
	} else {
		buf_puts(text, "[unknown]");
	}
	buf_puts(text, " (");
	put_path(text, in, frame, pid);
	buf_puts(text, ")\n");
}

/* Lines of frames, made once; those of jitted code name a process and are made each time. */
struct lines {
	struct {
		size_t at, n;
	} *of;
	struct buf text;
};

static void put_line(struct lines *lines, const struct incident *in, uint32_t frame, uint32_t pid,
		     struct buf *text)
{
	if (in->modules[in->frames[frame].module].kind == OBJECT_JIT) {
		put_frame(text, in, frame, pid);
		return;
	}
	if (!lines->of[frame].n) {
		lines->of[frame].at = lines->text.len;
		put_frame(&lines->text, in, frame, 0);
		lines->of[frame].n = lines->text.len - lines->of[frame].at;
	}
	if (lines->text.failed)
		text->failed = lines->text.failed;
	else
		buf_put(text, lines->text.data + lines->of[frame].at, lines->of[frame].n);
}

static void put_head(struct buf *text, const struct incident *in, const struct incident_sample *s,
		     const struct who *who)
{
	uint64_t us = (s->time_ns > in->head.t0_ns ? s->time_ns - in->head.t0_ns : 0) / 1000;

	put_word(text, who->thread);
	buf_printf(text, " %" PRIu32 "/%" PRIu32 " [%03u] %" PRIu64 ".%06u: %" PRIu64 " %s:\n",
		   who->pid, who->tid, s->cpu == CPU_NONE ? 0u : s->cpu, us / 1000000,
		   (unsigned)(us % 1000000), s->weight, event_of((enum stream)s->stream));
}

static void put_sample(struct lines *lines, const struct incident *in,
		       const struct incident_sample *s, struct buf *text)
{
	const char *mark = walk_mark((enum stack_quality)s->quality);
	struct who who;
	uint32_t node;

	who_of(in, s->thread, &who);
	put_head(text, in, s, &who);
	for (node = s->stack; node != STACK_NONE; node = in->stacks[node].parent)
		put_line(lines, in, in->stacks[node].frame, who.pid, text);
	if (mark)
		buf_printf(text, "\t%16x %s+0x0 ([unknown])\n", 0u, mark);
	buf_putc(text, '\n');
}

static int perf_script_write(const struct incident *in, const struct export_options *opt,
			     struct out *out, struct err *err)
{
	struct lines lines = {.of = calloc((size_t)in->nframes + 1, sizeof(*lines.of))};
	struct buf text = {0};
	uint32_t i;
	int rc = 0;

	if (!lines.of)
		return err_set(err, ERR_MEMORY, "out of memory while writing samples");
	for (i = 0; i < in->nsamples && !rc && !out_failed(out); i++) {
		if (!export_takes(opt, &in->samples[i]))
			continue;
		buf_reset(&text);
		put_sample(&lines, in, &in->samples[i], &text);
		rc = buf_check(&text, "the text of a sample", err);
		out_put(out, buf_text(&text), text.len);
	}
	buf_free(&text);
	buf_free(&lines.text);
	free(lines.of);
	return rc;
}

const struct exporter perf_script_exporter = {
	.name = "perf-script",
	.suffix = ".perf.data.txt",
	.summary = "every sample, as perf script has them",
	.write = perf_script_write,
};
