/*
 * An aggregation as DTrace prints it: three lines of header, then for each stack its frames leaf
 * first, its count and an empty line; the smallest count comes first. Grammar and pitfalls of the
 * readers: exports-and-store.md, section 2.3.
 */
#include "export/names.h"
#include "export/sums.h"

#include <inttypes.h>
#include <string.h>

/* Readers take "a->b" for b inlined into a: make the arrows of names "- >". */
static void part_arrows(struct buf *text, size_t start, struct buf *scratch)
{
	const char *at, *end;

	if (text->failed)
		return;
	buf_reset(scratch);
	buf_put(scratch, text->data + start, text->len - start);
	if (scratch->failed) {
		text->failed = scratch->failed;
		return;
	}
	text->len = start;
	for (at = scratch->data, end = at + scratch->len; at < end; at++) {
		buf_putc(text, *at);
		if (*at == '-' && at + 1 < end && at[1] == '>')
			buf_putc(text, ' ');
	}
}

static void put_clean(struct buf *text, const char *name, struct buf *scratch)
{
	size_t start = text->len;

	name_put(text, name);
	part_arrows(text, start, scratch);
}

/* The function a frame is in, without its module; "?" when it has no name. */
static const char *function_of(const struct incident *in, uint32_t frame)
{
	return frame_is_named(in, frame) ? in->frames[frame].function : "?";
}

/*
 * One line for frames[outer] and the `ninlined` frames before it, which were inlined into it. It
 * always has an offset: readers cut at the last '+', even that of operator+.
 */
static void put_frame(const struct incident *in, const uint32_t *frames, uint32_t outer,
		      uint32_t ninlined, struct buf *text, struct buf *scratch)
{
	uint32_t frame = frames[outer], i;

	buf_puts(text, "              ");
	if (!frame_has_module(in, frame) && !frame_is_named(in, frame) && !ninlined) {
		buf_printf(text, "0x%" PRIx64 "\n", frame_address(in, frame));
		return;
	}
	put_clean(text, incident_frame_module(in, frame), scratch);
	buf_putc(text, '`');
	put_clean(text, function_of(in, frame), scratch);
	for (i = 1; i <= ninlined; i++) {
		buf_puts(text, "->");
		put_clean(text, function_of(in, frames[outer - i]), scratch);
	}
	buf_printf(text, "+0x%" PRIx64 "\n",
		   frame_is_named(in, frame) ? frame_offset(in, frame) : frame_address(in, frame));
}

/* The process is the root, so that stacks of two processes stay apart. */
static void put_process(const struct incident *in, const struct export_options *opt,
			const struct sum *s, struct buf *text, struct buf *scratch)
{
	buf_puts(text, "              process`");
	put_clean(text, sum_process_name(in, s, "[unknown]"), scratch);
	if (opt->ids)
		buf_printf(text, " (%" PRIu32 ")", sum_pid(in, s));
	buf_puts(text, "+0x0\n");
}

static void put_stack(const struct incident *in, const struct export_options *opt,
		      const struct sum *s, const struct path *path, struct buf *text,
		      struct buf *scratch)
{
	uint32_t i, ninlined = 0;

	for (i = 0; i < path->n; i++) {
		if (i + 1 < path->n && (in->frames[path->frames[i]].flags & FRAME_INLINED)) {
			ninlined++;
			continue;
		}
		put_frame(in, path->frames, i, ninlined, text, scratch);
		ninlined = 0;
	}
	if (s->mark)
		buf_printf(text, "              walk`%s+0x0\n", s->mark);
	put_process(in, opt, s, text, scratch);
	buf_printf(text, "%16" PRIu64 "\n\n", s->weight);
}

static int dtrace_write(const struct incident *in, const struct export_options *opt,
			struct out *out, struct err *err)
{
	struct buf text = {0}, scratch = {0};
	struct sums sums = {0};
	struct path path = {0};
	uint32_t i;
	int rc;

	rc = sums_make(&sums, in, opt, SUMS_BY_PROCESS, err);
	if (!rc)
		rc = sums_sort(&sums, in, err);
	/* One reader skips three lines, another skips to the first empty line. */
	out_printf(out, "CPU     ID                    FUNCTION:NAME\n"
			"  0      1                        :incident-%" PRId64 "\n\n", in->head.id);
	for (i = sums.n; i-- > 0 && !rc && !out_failed(out);) {
		if (!sums.items[i].weight)
			continue;
		buf_reset(&text);
		text.failed = path_make(&path, in, sums.items[i].stack);
		put_stack(in, opt, &sums.items[i], &path, &text, &scratch);
		rc = buf_check(&text, "the text of a stack", err);
		out_put(out, buf_text(&text), text.len);
	}
	buf_free(&text);
	buf_free(&scratch);
	path_free(&path);
	sums_free(&sums);
	return rc;
}

const struct exporter dtrace_exporter = {
	.name = "dtrace",
	.suffix = ".stacks",
	.summary = "as DTrace sums, for stackcollapse.pl",
	.write = dtrace_write,
};
