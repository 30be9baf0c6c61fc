/*
 * An aggregation as DTrace prints it: three lines of header, then for each stack its frames leaf
 * first, its count and an empty line; the smallest count comes first. A line of digits alone is a
 * count for readers, so every other line has a backquote or "0x".
 */
#include "export/names.h"
#include "export/sums.h"

#include <inttypes.h>
#include <string.h>

/* Readers take "a->b" for b inlined into a: the arrows of names become "- >". */
static void put_clean(struct buf *text, const char *name)
{
	size_t at = text->len;

	name_put(text, name);
	for (; !text->failed && at + 1 < text->len; at++) {
		if (text->data[at] != '-' || text->data[at + 1] != '>')
			continue;
		buf_putc(text, '>');         /* makes room */
		memmove(text->data + at + 2, text->data + at + 1, text->len - at - 2);
		text->data[at + 1] = ' ';
	}
}

/* The function a frame is in, without its module; "?" when it has no name. */
static const char *function_of(const struct incident *in, uint32_t frame)
{
	return frame_is_named(in, frame) ? in->frames[frame].function : "?";
}

/*
 * Of C++, readers leave out what stands behind the last '(' or '<' of the line: not the inlined
 * function at `last`, which is given arguments if only its callers have them.
 */
static void guard_last(struct buf *text, size_t line, size_t last)
{
	const char *at = text->failed ? NULL : strstr(text->data + line, "::");

	if (at && at < text->data + last && strpbrk(at, "(<") &&
	    !strpbrk(text->data + last, "(<"))
		buf_puts(text, "()");
}

/*
 * One line for frames[outer] and the `ninlined` frames before it, which were inlined into it. It
 * always has an offset: readers cut at the last '+', even that of operator+.
 */
static void put_frame(const struct incident *in, const uint32_t *frames, uint32_t outer,
		      uint32_t ninlined, struct buf *text)
{
	size_t line = text->len, last = line;
	uint32_t frame = frames[outer], i;

	buf_puts(text, "              ");
	if (!frame_has_module(in, frame) && !frame_is_named(in, frame) && !ninlined) {
		buf_printf(text, "0x%" PRIx64 "\n", frame_address(in, frame));
		return;
	}
	put_clean(text, incident_frame_module(in, frame));
	buf_putc(text, '`');
	put_clean(text, function_of(in, frame));
	for (i = 1; i <= ninlined; i++) {
		const char *function = function_of(in, frames[outer - i]);

		buf_puts(text, "->");
		last = text->len;
		if (*function == 'L') {      /* they take each L at its beginning for Java's */
			put_clean(text, incident_frame_module(in, frame));
			buf_putc(text, '`');
		}
		put_clean(text, function);
	}
	if (ninlined)
		guard_last(text, line, last);
	buf_printf(text, "+0x%" PRIx64 "\n",
		   frame_is_named(in, frame) ? frame_offset(in, frame) : frame_address(in, frame));
}

/* The process is the root, so that stacks of two processes stay apart. */
static void put_process(const struct incident *in, const struct export_options *opt,
			const struct sum *s, struct buf *text)
{
	buf_puts(text, "              process`");
	put_clean(text, sum_process_name(in, s, "[unknown]"));
	if (opt->ids)
		buf_printf(text, " (%" PRIu32 ")", sum_pid(in, s));
	buf_puts(text, "+0x0\n");
}

static void put_stack(const struct incident *in, const struct export_options *opt,
		      const struct sum *s, const struct path *path, struct buf *text)
{
	uint32_t i, ninlined = 0;

	for (i = 0; i < path->n; i++) {
		if (i + 1 < path->n && (in->frames[path->frames[i]].flags & FRAME_INLINED)) {
			ninlined++;
			continue;
		}
		put_frame(in, path->frames, i, ninlined, text);
		ninlined = 0;
	}
	if (s->mark)
		buf_printf(text, "              walk`%s+0x0\n", s->mark);
	put_process(in, opt, s, text);
	buf_printf(text, "%16" PRIu64 "\n\n", s->weight);
}

static int dtrace_write(const struct incident *in, const struct export_options *opt,
			struct out *out, struct err *err)
{
	/* One reader skips three lines, another skips to the first empty line. */
	out_printf(out, "CPU     ID                    FUNCTION:NAME\n"
			"  0      1                        :incident-%" PRId64 "\n\n", in->head.id);
	return sums_write(in, opt, false, put_stack, out, err);
}

const struct exporter dtrace_exporter = {
	.name = "dtrace",
	.suffix = ".stacks",
	.summary = "as DTrace sums, for stackcollapse.pl",
	.write = dtrace_write,
};
