/*
 * Stacks as the tool LiveStacks prints them, most frequent first, leaf first, with offsets:
 *
 *	"  " count in 10 columns " [" process " " pid "]"
 *	"    " module "!" function "+0x" OFFSET       no function: module!+0xRVA
 *	(empty line)                                  no module: the address in 16 columns
 *
 * Hex is upper case. Source: exports-and-store.md, section 2.2.
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

static void put_stack(const struct incident *in, const struct sum *s, const struct path *path,
		      struct buf *text)
{
	uint32_t i;

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

static void put_folded_name(struct buf *text, const struct incident *in, uint32_t frame)
{
	size_t start = text->len;

	put_frame(in, frame, text);
	if (text->len == start)
		buf_printf(text, "0x%" PRIX64, frame_address(in, frame));
}

/* The frames root first, each after a semicolon. */
static void put_folded_frames(const struct incident *in, const struct path *path, struct buf *text)
{
	uint32_t i;
	size_t start;

	for (i = path->n; i-- > 0;) {
		buf_putc(text, ';');
		start = text->len;
		put_folded_name(text, in, path->frames[i]);
		name_no_semicolons(text, start);
	}
}

static void put_folded(const struct incident *in, const struct sum *s, const struct path *path,
		       struct buf *text)
{
	name_put(text, sum_process_name(in, s, "[unknown]"));
	name_no_semicolons(text, 0);
	name_no_comment(text, 0);
	buf_printf(text, " (%" PRIu32 ")", sum_pid(in, s));
	if (s->mark)
		buf_printf(text, ";%s", s->mark);
	put_folded_frames(in, path, text);
	buf_printf(text, " %" PRIu64 "\n", s->weight);
}

/* ---- both ------------------------------------------------------------------------------------ */

typedef void put_sum(const struct incident *in, const struct sum *s, const struct path *path,
		     struct buf *text);

static int write_sums(const struct incident *in, const struct export_options *opt, put_sum *put,
		      struct out *out, struct err *err)
{
	struct sums sums = {0};
	struct path path = {0};
	struct buf text = {0};
	uint32_t i;
	int rc;

	rc = sums_make(&sums, in, opt, SUMS_BY_PROCESS, err);
	if (!rc)
		rc = sums_sort(&sums, in, err);
	for (i = 0; i < sums.n && !rc && !out_failed(out); i++) {
		if ((opt->top && i >= opt->top) || sums.items[i].weight < opt->min_weight)
			break;
		if (!sums.items[i].weight)
			continue;
		buf_reset(&text);
		text.failed = path_make(&path, in, sums.items[i].stack);
		put(in, &sums.items[i], &path, &text);
		rc = buf_check(&text, "the text of a stack", err);
		out_put(out, buf_text(&text), text.len);
	}
	buf_free(&text);
	path_free(&path);
	sums_free(&sums);
	return rc;
}

int livestacks_write_folded(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	return write_sums(in, opt, put_folded, out, err);
}

static int livestacks_write(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err)
{
	return write_sums(in, opt, put_stack, out, err);
}

const struct exporter livestacks_exporter = {
	.name = "livestacks",
	.suffix = ".txt",
	.summary = "the hottest stacks with offsets",
	.write = livestacks_write,
};
