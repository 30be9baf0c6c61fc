/* Names as most formats have them: "app (100)", "worker (101)", "libc.so.6!read". */
#include "export/names.h"
#include "export/tree.h"

#include "base/json.h"

#include <inttypes.h>

static void put_process(const struct incident *in, const struct export_options *opt,
			uint32_t thread, struct buf *out)
{
	struct who who;

	who_of(in, thread, &who);
	name_put(out, who.process);
	if (opt->ids)
		buf_printf(out, " (%" PRIu32 ")", who.pid);
}

static void put_thread(const struct incident *in, const struct export_options *opt,
		       uint32_t thread, struct buf *out)
{
	struct who who;

	who_of(in, thread, &who);
	name_put(out, who.thread);
	if (opt->ids)
		buf_printf(out, " (%" PRIu32 ")", who.tid);
}

static void put_frame(const struct incident *in, const struct export_options *opt, uint32_t frame,
		      struct buf *out)
{
	incident_frame_text(in, frame, opt->addresses, out);
}

void tree_quote(struct buf *out, const char *text, size_t n)
{
	struct json j = {.out = out};

	(void)n;                             /* it ends in NUL */
	json_str(&j, text);
}

const struct tree_style tree_plain_style = {
	.process = put_process,
	.thread = put_thread,
	.frame = put_frame,
};

const struct tree_style tree_json_style = {
	.process = put_process,
	.thread = put_thread,
	.frame = put_frame,
	.escape = tree_quote,
};
