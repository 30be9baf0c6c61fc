#include "export/export_tree.h"

#include "export/names.h"

#include "base/json.h"

#include <inttypes.h>

static void put_process(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	const struct export_options *opt = ctx;
	struct who who;

	who_of(in, thread, &who);
	name_put(out, who.process);
	if (opt->ids)
		buf_printf(out, " (%" PRIu32 ")", who.pid);
}

static void put_thread(const struct incident *in, const void *ctx, uint32_t thread,
			struct buf *out)
{
	const struct export_options *opt = ctx;
	struct who who;

	who_of(in, thread, &who);
	name_put(out, who.thread);
	if (opt->ids && (who.tid || *who.thread != '('))     /* (Activities) has none */
		buf_printf(out, " (%" PRIu32 ")", who.tid);
}

static void put_frame(const struct incident *in, const void *ctx, uint32_t frame,
		      struct buf *out)
{
	const struct export_options *opt = ctx;
	incident_frame_text(in, frame, opt->addresses, out);
}

void export_tree_quote(struct buf *out, const char *text, size_t n)
{
	struct json j = {.out = out};

	(void)n;                             /* it ends in NUL */
	json_str(&j, text);
}

const struct stack_tree_style export_tree_plain = {
	.process = put_process,
	.thread = put_thread,
	.frame = put_frame,
	.marks = true,
};

const struct stack_tree_style export_tree_json = {
	.process = put_process,
	.thread = put_thread,
	.frame = put_frame,
	.marks = true,
	.escape = export_tree_quote,
};

int export_tree_build(struct stack_tree *t, const struct incident *in,
		      const struct export_options *opt, const struct stack_tree_style *style,
		      struct err *err)
{
	return stack_tree_build(t, in, 1u << opt->stream, style, opt, err);
}

uint64_t *export_tree_own(const struct stack_tree *t, const struct incident *in)
{
	return stack_tree_own(t, in, export_weight);
}
