/*
 * Stacks as the tool LiveStacks prints them, most frequent first, leaf first, with offsets:
 *
 *	"  " count in 10 columns " [" process " " pid "]"
 *	"    " module "!" function "+0x" OFFSET       no function: module!+0xRVA
 *	(empty line)                                  no module: the address in 16 columns
 *
 * Hex is upper case. Stacks are summed by process and exact addresses. A process that is gone is
 * UNKNOWN. The folded variant is that of LiveStacks too: "NAME (PID);module!function+0xOFF 42".
 */
#include "export/livestacks.h"

#include "export/names.h"
#include "export/sums.h"

#include <inttypes.h>
#include <string.h>

/* "module!function+0x1F", "module!+0x1F", or nothing when the module is unknown too. */
static void put_frame(const struct incident *in, uint32_t frame, struct buf *text)
{
	if (!frame_has_module(in, frame) && !frame_is_named(in, frame))
		return;
	if (!frame_is_named(in, frame)) {
		name_put(text, incident_frame_module(in, frame));
		buf_printf(text, "!+0x%" PRIX64, frame_address(in, frame));
		return;
	}
	incident_frame_text(in, frame, false, text);
	buf_printf(text, "+0x%" PRIX64, frame_offset(in, frame));
}

static void put_line(const struct incident *in, uint32_t frame, struct buf *text)
{
	size_t start;

	buf_puts(text, "    ");
	start = text->len;
	put_frame(in, frame, text);
	if (text->len == start)
		buf_printf(text, "%16" PRIX64, frame_address(in, frame));
	buf_putc(text, '\n');
}

/* Address 0 in no module is the end of a walk, not code. */
static bool is_nowhere(const struct incident *in, uint32_t frame)
{
	return !in->frames[frame].offset && !frame_has_module(in, frame) &&
	       !frame_is_named(in, frame);
}

static void put_stack(const struct incident *in, const struct export_options *opt,
		      const struct sum *s, const struct path *path, struct buf *text)
{
	uint32_t i;

	(void)opt;
	buf_printf(text, "  %10" PRIu64 " [", s->weight);
	name_put(text, sum_process_name(in, s, "UNKNOWN"));
	buf_printf(text, " %" PRIu32 "]\n", sum_pid(in, s));
	for (i = 0; i < path->n; i++) {
		if (!is_nowhere(in, path->frames[i]))
			put_line(in, path->frames[i], text);
	}
	if (s->mark)
		buf_printf(text, "    %s\n", s->mark);
	buf_putc(text, '\n');
}

/* ---- folded ---------------------------------------------------------------------------------- */

/* Frames stand root first, each after a semicolon. */
static void put_folded(const struct incident *in, const struct export_options *opt,
		       const struct sum *s, const struct path *path, struct buf *text)
{
	size_t start = text->len;
	uint32_t i;

	(void)opt;
	name_put(text, sum_process_name(in, s, "[unknown]"));
	name_no_semicolons(text, start);
	name_no_comment(text, start);
	buf_printf(text, " (%" PRIu32 ")", sum_pid(in, s));
	if (s->mark)
		buf_printf(text, ";%s", s->mark);
	for (i = path->n; i-- > 0;) {
		buf_putc(text, ';');
		start = text->len;
		put_frame(in, path->frames[i], text);
		if (text->len == start)
			buf_printf(text, "0x%" PRIX64, frame_address(in, path->frames[i]));
		name_no_semicolons(text, start);
	}
	buf_printf(text, " %" PRIu64 "\n", s->weight);
}

/* ---- both ------------------------------------------------------------------------------------ */

int livestacks_write_folded(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	return sums_write(in, opt, true, put_folded, out, err);
}

static int livestacks_write(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	return sums_write(in, opt, true, put_stack, out, err);
}

const struct exporter livestacks_exporter = {
	.name = "livestacks",
	.suffix = ".txt",
	.summary = "the hottest stacks with offsets",
	.write = livestacks_write,
};
