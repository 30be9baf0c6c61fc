/*
 * top: where the time goes now, as LiveStacks prints it. The stacks go to standard output; the time
 * of each summary, and what it cost, to standard error, as there.
 */
#include "cli/cmd.h"
#include "cli/live.h"
#include "cli/sheet.h"

#include "base/moment.h"
#include "base/os.h"
#include "base/text.h"
#include "export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define USUAL_NS (5 * NS_PER_SEC)            /* --count without --interval */
#define KEEP_NS (4 * NS_PER_SEC)

struct top {
	const struct options *o;
	struct live *live;
	bool folded;
	uint64_t interval_ns;                /* 0 = one summary, at the end */
	uint64_t events;
	bool stopped;
};

/* ---- a summary ------------------------------------------------------------------------------- */

static void put_time(void)
{
	char text[MOMENT_TEXT_BYTES];
	unsigned hour, minute, second;

	moment_local_text(os_wall_ns(), text);
	if (sscanf(text + 11, "%u:%u:%u", &hour, &minute, &second) == 3)
		fprintf(stderr, "%u:%02u:%02u %s\n", hour % 12 ? hour % 12 : 12, minute, second,
			hour < 12 ? "AM" : "PM");
}

static int put_stacks(const struct top *t, const struct incident *in, enum stream stream,
		      struct err *err)
{
	const struct export_options opt = {
		.stream = stream, .offsets = true, .top = t->folded ? 0 : t->o->top,
		.min_weight = t->o->min_count,
	};
	const struct exporter *e = exporter_by_name(t->folded ? "folded" : "livestacks");
	struct buf text = {0};
	struct out *out = NULL;
	int rc = out_to_buf(&text, &out, err);

	if (!rc)
		rc = e->write(in, &opt, out, err);
	if (out)
		rc = out_close(out, rc ? NULL : err) ? ERR_MEMORY : rc;
	if (!rc && t->o->clear)
		rc = os_write(os_stdout(), "\033[H\033[2J\033[3J", 11, err);
	if (!rc) {
		put_time();
		rc = os_write(os_stdout(), buf_text(&text), text.len, err);
	}
	buf_free(&text);
	return rc;
}

static int summary(struct top *t, struct err *err)
{
	uint64_t start_ns = os_now_ns();
	struct incident in = {0};
	enum stream stream;
	int rc = live_take(t->live, &stream, &in, err);

	if (!rc)
		rc = put_stacks(t, &in, stream, err);
	if (!rc)
		fprintf(stderr, "  Time aggregating/resolving: %" PRIu64 "ms\n",
			(uint64_t)((os_now_ns() - start_ns) / NS_PER_MS));
	t->events += in.nsamples;
	incident_free(&in);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Until the window is to end; without an interval until somebody says stop. */
static void wait_for_end(struct top *t)
{
	uint64_t due_ns = live_from_ns(t->live) + t->interval_ns, now_ns, wait_ns;

	while (!t->stopped) {
		now_ns = os_wall_ns();
		if (t->interval_ns && now_ns >= due_ns)
			return;
		wait_ns = t->interval_ns && due_ns - now_ns < KEEP_NS ? due_ns - now_ns : KEEP_NS;
		if (os_signal_wait(wait_ns) == OS_SIGNAL_STOP)
			t->stopped = true;
		else if (wait_ns == KEEP_NS)
			live_keep(t->live);
	}
	fprintf(stderr, "Ctrl+C pressed, stopping...\n");
}

static int summaries(struct top *t, struct err *err)
{
	uint32_t n = 0;
	int rc = 0;

	while (!rc && !t->stopped && (!t->o->times || n < t->o->times)) {
		wait_for_end(t);
		if (!t->stopped || !t->interval_ns)
			rc = summary(t, err);
		n++;
	}
	if (!rc)
		fprintf(stderr, "\nTotal events seen: %" PRIu64 "\n", t->events);
	return rc;
}

static int check_format(const struct options *o, struct top *t, struct err *err)
{
	t->folded = o->format && text_same_fold(o->format, "folded");
	if (o->format && !t->folded && !text_same_fold(o->format, "livestacks"))
		return err_set(err, ERR_USAGE, "top prints the formats livestacks and folded, not "
			       "'%.60s'; 'recorder run -p PID -o FILE' writes the others",
			       o->format);
	return 0;
}

int cmd_top(const struct options *o, struct err *err)
{
	const double interval_s = o->interval_s > 0 ? o->interval_s : 0;
	struct top t = {.o = o, .interval_ns = (uint64_t)(interval_s * 1e9)};
	int rc = check_format(o, &t, err);

	if (o->times && !t.interval_ns)
		t.interval_ns = USUAL_NS;
	if (!rc)
		rc = os_signals_open(err);
	if (rc)
		return rc;
	rc = live_open(o, &t.live, err);
	if (!rc)
		rc = summaries(&t, err);
	live_close(t.live);
	os_signals_close();
	return rc;
}
