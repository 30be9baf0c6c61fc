#include "export/diff.h"

#include "export/names.h"

#include "base/array.h"
#include "base/os.h"
#include "model/incident_join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one incident of two --------------------------------------------------------------------- */

/* The process without its numbers; the thread with # for those in its name. */
static uint32_t thread_of(const struct incident_join *j, uint32_t thread)
{
	const struct incident_thread *t;
	struct incident_process process = {0};
	struct incident_thread mine;
	struct buf name = {0};
	const char *at;
	bool number = false;

	if (thread == THREAD_NONE)
		return THREAD_NONE;
	t = &j->from->threads[thread];
	process.name = j->from->processes[t->process].name;
	mine = (struct incident_thread){.process = incident_add_process(j->to, &process)};
	for (at = t->name; *at; at++) {
		bool digit = *at >= '0' && *at <= '9';

		if (!digit || !number)
			buf_putc(&name, digit ? '#' : *at);
		number = digit;
	}
	mine.name = buf_text(&name);
	thread = name.failed || mine.process == UINT32_MAX ? UINT32_MAX
							   : incident_add_thread(j->to, &mine);
	buf_free(&name);
	return thread == UINT32_MAX ? INCIDENT_JOIN_FAILED : thread;
}

static int join_side(struct diff *d, struct diff_side *side, const struct incident *from)
{
	const struct incident_join j = {
		.from = from, .to = &d->in, .streams = 1u << d->stream, .thread = thread_of,
		.shift_ns = (int64_t)(d->in.head.trigger_ns - from->head.trigger_ns),
	};
	uint32_t i = d->in.nsamples;
	int rc = incident_join(&j);

	side->head = &from->head;
	side->window_ns = from->head.t1_ns - from->head.t0_ns;
	for (; !rc && i < d->in.nsamples; i++) {
		side->samples++;
		side->weight += d->in.samples[i].weight;
	}
	return rc;
}

/* Both triggers at one time, and no sample before 0. */
static void align_windows(struct incident_head *h, const struct incident_head *a,
			  const struct incident_head *b)
{
	int64_t before_a = (int64_t)(a->trigger_ns - a->t0_ns);
	int64_t before_b = (int64_t)(b->trigger_ns - b->t0_ns);
	int64_t after_a = (int64_t)(a->t1_ns - a->trigger_ns);
	int64_t after_b = (int64_t)(b->t1_ns - b->trigger_ns);
	int64_t before = before_a > before_b ? before_a : before_b;
	int64_t after = after_a > after_b ? after_a : after_b;

	/* A filtered window may begin after the trigger, or end before it. */
	h->trigger_ns = before > 0 ? (uint64_t)before : 0;
	h->t1_ns = (uint64_t)((int64_t)h->trigger_ns + (after > 0 ? after : 0));
	h->trigger_wall_ns = b->trigger_wall_ns;
}

static double factor_of(const struct diff *d)
{
	if (d->normalize == DIFF_BY_DURATION && d->base.window_ns && d->test.window_ns)
		return (double)d->test.window_ns / (double)d->base.window_ns;
	if (d->normalize == DIFF_BY_WEIGHT)
		return (double)d->test.weight / (double)d->base.weight;
	return 1;
}

static int check_side(const struct diff *d, const struct diff_side *side, const char *which,
		      struct err *err)
{
	const char *why = side->head->gap_reason;

	if (side->weight)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "the %s, incident %" PRId64 ", has no %s in the "
		       "selected part%s%s; there is nothing to compare", which, side->head->id,
		       stream_title(d->stream), why ? ": " : "", why ? why : "");
}

int diff_make(struct diff *d, const struct incident *base, const struct incident *test,
	      enum stream stream, enum diff_normalize normalize, struct err *err)
{
	struct diff made = {.stream = stream, .normalize = normalize};
	int rc = incident_init(&made.in);

	align_windows(&made.in.head, &base->head, &test->head);
	if (!rc)
		rc = join_side(&made, &made.base, base);
	made.nbase = made.in.nsamples;
	if (!rc)
		rc = join_side(&made, &made.test, test);
	if (rc)
		err_memory(err, "while joining two incidents");
	if (!rc)
		rc = check_side(&made, &made.base, "base", err);
	if (!rc)
		rc = check_side(&made, &made.test, "test", err);
	if (rc) {
		diff_free(&made);
		return rc;
	}
	made.factor = factor_of(&made);
	*d = made;
	return 0;
}

void diff_free(struct diff *d)
{
	incident_free(&d->in);
	memset(d, 0, sizeof(*d));
}

/* ---- words ----------------------------------------------------------------------------------- */

struct diff_unit diff_unit(const struct diff *d)
{
	static const char *const units[METRIC_UNITS] = {"us ", "bytes", "events"};
	const struct stream_metric *m = &stream_metrics[d->stream];
	struct diff_unit unit = {.per = m->unit == UNIT_NS ? 1000 : 1};

	snprintf(unit.text, sizeof(unit.text), "%s%s", units[m->unit],
		 m->unit == UNIT_NS ? m->what : "");
	return unit;
}

/* "12.345 s of CPU time", "4096 bytes". */
static void put_weight(struct buf *out, const struct diff *d, double weight)
{
	struct diff_unit unit = diff_unit(d);

	if (stream_is_time(d->stream))
		buf_printf(out, "%.3f s%s", weight / 1e9, unit.text + 2);
	else
		buf_printf(out, "%.0f %s", weight / unit.per, unit.text);
}

static void put_side(struct buf *out, const struct diff *d, const struct diff_side *side,
		     const char *label)
{
	const struct incident_head *h = side->head;
	char time[OS_TIME_TEXT_BYTES];

	os_time_text(h->trigger_wall_ns, time);
	buf_printf(out, "%s: incident %" PRId64, label, h->id);
	if (side->store) {
		buf_puts(out, " of ");
		name_put(out, side->store);
	}
	buf_printf(out, ", %s, ", time);
	name_put(out, h->host && *h->host ? h->host : "?");
	buf_puts(out, "; ");
	name_put(out, h->reason && *h->reason ? h->reason : "?");
	buf_printf(out, "\n%s window: %.3f s to %.3f s from its trigger, %.3f s; %" PRIu64
		   " samples, ", label, ((double)h->t0_ns - (double)h->trigger_ns) / 1e9,
		   ((double)h->t1_ns - (double)h->trigger_ns) / 1e9, (double)side->window_ns / 1e9,
		   side->samples);
	put_weight(out, d, (double)side->weight);
	buf_printf(out, "; %" PRIu64 " lost\n", h->lost);
	if (h->remarks) {
		buf_printf(out, "%s remarks: ", label);
		name_put(out, h->remarks);
		buf_putc(out, '\n');
	}
}

void diff_notes_put(struct buf *out, const struct diff *d)
{
	double base = (double)d->base.weight * d->factor, test = (double)d->test.weight;
	static const char *const whys[] = {
		[DIFF_BY_DURATION] = "the test's window is that much longer",
		[DIFF_BY_WEIGHT] = "so that both have the same total",
		[DIFF_AS_RECORDED] = "as recorded",
	};

	put_side(out, d, &d->base, "Base");
	put_side(out, d, &d->test, "Test");
	buf_printf(out, "Base multiplied by: %.6g, %s\n", d->factor, whys[d->normalize]);
	buf_puts(out, "Total: ");
	put_weight(out, d, base);
	buf_puts(out, " -> ");
	put_weight(out, d, test);
	buf_printf(out, ", %+.1f %%\nNames: without process and thread numbers; a number in a "
		   "thread's name is #\n", 100 * (test - base) / base);
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Additions are done in one order on every host, so that the bits are the same. */
static void weigh(struct diff_tree *t, const struct diff *d)
{
	uint32_t i, caller;

	for (i = 0; i < d->in.nsamples; i++) {
		double weight = (double)d->in.samples[i].weight;

		if (i < d->nbase)
			t->base[t->tree.of_sample[i]] += weight;
		else
			t->test[t->tree.of_sample[i]] += weight;
	}
	for (i = 0; i < t->tree.nnodes; i++) {
		t->base[i] *= d->factor;
		t->all_base[i] = t->base[i];
		t->all_test[i] = t->test[i];
	}
	for (i = t->tree.nnodes; i-- > 0;) {
		caller = t->tree.nodes[i].caller;
		if (caller == STACK_TREE_NONE) {
			t->base_sum += t->all_base[i];
			t->test_sum += t->all_test[i];
			continue;
		}
		t->all_base[caller] += t->all_base[i];
		t->all_test[caller] += t->all_test[i];
	}
}

int diff_tree_build(struct diff_tree *t, const struct diff *d, const struct export_options *opt,
		    const struct stack_tree_style *style, struct err *err)
{
	int rc = export_tree_build(&t->tree, &d->in, opt, style, err);
	size_t n = (size_t)t->tree.nnodes + 1;

	if (rc)
		return rc;
	t->base = calloc(n, sizeof(*t->base));
	t->test = calloc(n, sizeof(*t->test));
	t->all_base = calloc(n, sizeof(*t->all_base));
	t->all_test = calloc(n, sizeof(*t->all_test));
	if (!t->base || !t->test || !t->all_base || !t->all_test)
		return err_memory(err, "while comparing call trees");
	weigh(t, d);
	return 0;
}

void diff_tree_free(struct diff_tree *t)
{
	stack_tree_free(&t->tree);
	free(t->base);
	free(t->test);
	free(t->all_base);
	free(t->all_test);
	memset(t, 0, sizeof(*t));
}

/* ---- functions ------------------------------------------------------------------------------- */

int diff_functions(const struct diff_tree *t, uint32_t process, struct diff_function **out,
		   uint32_t *n, struct err *err)
{
	struct diff_function *all = calloc((size_t)t->tree.texts.n + 1, sizeof(*all));
	uint32_t *roots = array_of_none(t->tree.nnodes);
	uint32_t i, kept = 0;

	if (!all || !roots) {
		free(all);
		free(roots);
		return err_memory(err, "while comparing functions");
	}
	for (i = 0; i < t->tree.nnodes; i++) {
		const struct stack_tree_node *node = &t->tree.nodes[i];

		roots[i] = node->caller == STACK_TREE_NONE ? i : roots[node->caller];
		if (!stack_tree_is_frame(&t->tree, i) ||
		    (process != STACK_TREE_NONE && roots[i] != process))
			continue;
		all[node->text].own_base += t->base[i];
		all[node->text].own_test += t->test[i];
		if (!stack_tree_is_outermost(&t->tree, i))
			continue;
		all[node->text].base += t->all_base[i];
		all[node->text].test += t->all_test[i];
	}
	for (i = 0; i < t->tree.texts.n; i++) {
		if (!(all[i].base > 0) && !(all[i].test > 0))
			continue;
		all[i].text = i;
		all[kept++] = all[i];
	}
	free(roots);
	*out = all;
	*n = kept;
	return 0;
}
