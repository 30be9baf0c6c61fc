/*
 * Samples as `perf script` prints them, each with its stack leaf first:
 *
 *	comm SP pid "/" tid SP "[" cpu "]" SP sec "." usec ":" SP period SP event ":"
 *	TAB hexaddr SP symbol "+0x" hex SP "(" path ")"
 *	(empty line)
 *
 * Addresses are relative to the module (file offset, RVA); an incident has no others. Frame lines
 * begin with a TAB, or a reader ends the stack there. All samples are of one event, because readers
 * keep only the first, and there are no comments.
 */
#include "export/export.h"
#include "export/names.h"

#include "model/stack_tree.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A name as one word that does not begin with '#', which would make the line a comment. */
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

/* Texts that many samples have, made once. */
struct kept {
	size_t at, n;
};

/* The lines of frames, except jitted ones, which name a process; and threads, "comm pid/tid ". */
struct lines {
	struct kept *frames, *threads;
	struct buf text;
};

static void put_kept(const struct lines *lines, const struct kept *kept, struct buf *text)
{
	if (lines->text.failed)
		text->failed = lines->text.failed;
	else
		buf_put(text, lines->text.data + kept->at, kept->n);
}

static void put_line(struct lines *lines, const struct incident *in, uint32_t frame, uint32_t pid,
		     struct buf *text)
{
	struct kept *kept = &lines->frames[frame];

	if (in->modules[in->frames[frame].module].kind == OBJECT_JIT) {
		put_frame(text, in, frame, pid);
		return;
	}
	if (!kept->n) {
		kept->at = lines->text.len;
		put_frame(&lines->text, in, frame, 0);
		kept->n = lines->text.len - kept->at;
	}
	put_kept(lines, kept, text);
}

static void put_who(struct lines *lines, const struct incident *in, uint32_t thread,
		    const struct who *who, struct buf *text)
{
	struct kept *kept = &lines->threads[thread == THREAD_NONE ? in->nthreads : thread];

	if (!kept->n) {
		kept->at = lines->text.len;
		put_word(&lines->text, who->thread);
		buf_printf(&lines->text, " %" PRIu32 "/%" PRIu32 " ", who->pid, who->tid);
		kept->n = lines->text.len - kept->at;
	}
	put_kept(lines, kept, text);
}

/* v with leading zeros, to that many digits. */
static void put_padded(struct buf *text, uint32_t v, uint32_t digits)
{
	uint32_t least = 1;

	while (--digits)
		least *= 10;
	for (; least > 1 && v < least; least /= 10)
		buf_putc(text, '0');
	buf_put_uint(text, v);
}

/* "[001] 12.345678: 10101010 cpu-clock:" */
static void put_head(struct buf *text, const struct incident *in, const struct incident_sample *s)
{
	uint64_t us = (s->time_ns > in->head.t0_ns ? s->time_ns - in->head.t0_ns : 0) / 1000;

	buf_putc(text, '[');
	put_padded(text, s->cpu == CPU_NONE ? 0u : s->cpu, 3);
	buf_puts(text, "] ");
	buf_put_uint(text, us / 1000000);
	buf_putc(text, '.');
	put_padded(text, (uint32_t)(us % 1000000), 6);
	buf_puts(text, ": ");
	buf_put_uint(text, s->weight);
	buf_putc(text, ' ');
	buf_puts(text, stream_metrics[s->stream].perf);
	buf_puts(text, ":\n");
}

static void put_sample(struct lines *lines, const struct incident *in,
		       const struct incident_sample *s, struct buf *text)
{
	const char *mark = stack_tree_mark((enum stack_quality)s->quality);
	struct who who;
	uint32_t node;

	who_of(in, s->thread, &who);
	put_who(lines, in, s->thread, &who, text);
	put_head(text, in, s);
	for (node = s->stack; node != STACK_NONE; node = in->stacks[node].parent)
		put_line(lines, in, in->stacks[node].frame, who.pid, text);
	if (mark)
		buf_printf(text, "\t%16x %s+0x0 ([unknown])\n", 0u, mark);
	buf_putc(text, '\n');
}

static int perf_script_write(const struct incident *in, const struct export_options *opt,
			     struct out *out, struct err *err)
{
	struct lines lines = {
		.frames = calloc((size_t)in->nframes + 1, sizeof(*lines.frames)),
		.threads = calloc((size_t)in->nthreads + 1, sizeof(*lines.threads)),
	};
	struct buf text = {0};
	uint32_t i;
	int rc = 0;

	if (!lines.frames || !lines.threads)
		rc = err_memory(err, "while writing samples");
	for (i = 0; i < in->nsamples && !rc && !out_failed(out); i++) {
		if (!export_takes(opt, &in->samples[i]))
			continue;
		put_sample(&lines, in, &in->samples[i], &text);
		rc = buf_check(&text, "the text of a sample", err);
		out_drain(out, &text, false);
	}
	out_drain(out, &text, true);
	buf_free(&text);
	buf_free(&lines.text);
	free(lines.frames);
	free(lines.threads);
	return rc;
}

const struct exporter perf_script_exporter = {
	.name = "perf-script",
	.suffix = ".perf.data.txt",
	.summary = "every sample, as perf script has them",
	.write = perf_script_write,
};
