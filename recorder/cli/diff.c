/*
 * diff: what changed from one incident to another; as a report in the terminal, or in another
 * program's format.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"
#include "analysis/overweight.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "export/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Narrower terminals lose the change, then the shares. */
enum { CHANGE_MIN_COLUMNS = 106, SHARES_MIN_COLUMNS = 74 };

/* ---- the report ------------------------------------------------------------------------------ */

struct view {
	struct sheet *sheet;
	const struct options *o;
	const struct diff *d;
	const struct diff_tree *t;
	bool has_managed;
	double per;                          /* a printed unit, in the weight's */
	char base_head[12], test_head[12];   /* "BASE MS" */
	const char *key;                     /* "ms" */
	char base_key[12], test_key[12];     /* "base_ms" */
};

static bool is_time(const struct diff *d)
{
	return stream_is_time(d->stream);
}

static const char *name_of(const struct view *v, uint32_t text)
{
	return stack_tree_text(&v->t->tree, text);
}

/* A table's rows: their kind, and whether they have an interest. */
struct diff_table {
	const char *kind, *title;
	bool has_interest;
	bool is_code;                        /* functions, not processes */
	const char *process;                 /* NULL = all */
	double base_sum, test_sum;
};

/* r: NULL = the heading. */
static void put_row(const struct view *v, const struct diff_table *t,
		    const struct overweight_row *r)
{
	static const struct overweight_row none;
	const struct overweight_row *row = r ? r : &none;
	double base = row->base / v->per, test = row->test / v->per;
	int change = v->sheet->columns >= CHANGE_MIN_COLUMNS;
	int shares = v->sheet->columns >= SHARES_MIN_COLUMNS, leads = t->has_interest;
	const struct sheet_cell cells[] = {
		{"row", .text = t->kind},
		{t->process ? "process" : NULL, .text = t->process},
		{"name", t->title, .kind = SHEET_NAME, .text = row->name},
		{NULL, "INTEREST", leads * 8, SHEET_NUMBER, .v = row->interest},
		{NULL, "OVERWEIGHT", leads * 12, SHEET_PERCENT, .v = row->overweight_pct},
		{NULL, "RESP.", leads * 10, SHEET_PERCENT, .v = row->responsibility_pct,
		 .digits = 1},
		{v->base_key, v->base_head, 12, SHEET_NUMBER, .v = base, .digits = 1},
		{v->test_key, v->test_head, 12, SHEET_NUMBER, .v = test, .digits = 1},
		{t->is_code ? "code" : NULL, "CODE", v->has_managed && t->is_code ? -11 : 0,
		 .text = row->code},
		{NULL, "CHANGE", change * 12, SHEET_CHANGE,
		 .v = (row->test - row->base) / v->per, .of = fmax(base, test)},
		{"base_pct", "BASE %", shares * 9, SHEET_SHARE,
		 .v = t->base_sum > 0 ? 100 * row->base / t->base_sum : 0},
		{"test_pct", "TEST %", shares * 8, SHEET_SHARE,
		 .v = t->test_sum > 0 ? 100 * row->test / t->test_sum : 0},
		{"overweight_pct", .kind = SHEET_NUMBER, .v = row->overweight_pct},
		{"responsibility_pct", .kind = SHEET_NUMBER, .v = row->responsibility_pct},
		{"interest", .kind = SHEET_COUNT, .n = row->interest},
	};

	(r ? sheet_row : sheet_heading)(v->sheet, cells, COUNT_OF(cells));
}

static void put_left(const struct view *v, uint32_t n)
{
	if (n && !v->sheet->json)
		buf_printf(&v->sheet->out, "  and %" PRIu32 " more; --rows shows more\n", n);
}

enum { IN_BOTH, ONLY_TEST, ONLY_BASE, PLACES };

static int place_of(const struct overweight_row *r)
{
	return r->base <= 0 ? ONLY_TEST : r->test <= 0 ? ONLY_BASE : IN_BOTH;
}

/* Put the rows of one place together. */
static void put_place(const struct view *v, struct diff_table t,
		      const struct overweight_row *rows, uint32_t n, int place)
{
	static const char *const titles[] = {
		"FUNCTION, INCLUSIVE", "FUNCTION, ONLY IN THE TEST", "FUNCTION, ONLY IN THE BASE",
	};
	static const char *const kinds[] = {"function", "only_test", "only_base"};
	uint32_t i, put = 0, left = 0;

	t.kind = kinds[place];
	t.title = titles[place];
	t.is_code = true;
	t.has_interest = place == IN_BOTH;
	for (i = 0; i < n; i++) {
		if (place_of(&rows[i]) != place || rows[i].minor)
			continue;
		if (put >= v->o->rows) {
			left++;
			continue;
		}
		if (!put++)
			put_row(v, &t, NULL);
		put_row(v, &t, &rows[i]);
	}
	put_left(v, left);
}

static int by_change(const void *left, const void *right)
{
	const struct overweight_row *a = left, *b = right;
	double x = fabs(a->test - a->base), y = fabs(b->test - b->base);

	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Useful even where the whole has hardly changed and overweight says little. */
static void put_own(const struct view *v, struct diff_table t, struct overweight_row *rows,
		    uint32_t n)
{
	uint32_t i, changed = 0;

	t.kind = "own";
	t.is_code = true;
	t.title = "FUNCTION, BY CHANGE OF SELF TIME";
	if (n)
		qsort(rows, n, sizeof(*rows), by_change);
	while (changed < n && fabs(rows[changed].test - rows[changed].base) >= t.test_sum * 1e-3)
		changed++;
	for (i = 0; i < changed && i < v->o->rows; i++) {
		if (!i)
			put_row(v, &t, NULL);
		put_row(v, &t, &rows[i]);
	}
	put_left(v, changed - i);
}

/* For all processes, or for one: its node, and its table's process and sums. */
static int put_functions(const struct view *v, uint32_t process, const struct diff_table *t,
			 struct err *err)
{
	struct diff_function *functions = NULL;
	struct overweight_row *rows, *own;
	uint32_t n = 0, i;
	int rc = diff_functions(v->t, process, &functions, &n, err), place;

	if (rc)
		return rc;
	rows = calloc(2 * (size_t)n + 1, sizeof(*rows));
	own = rows + n;
	for (i = 0; rows && i < n; i++) {
		const struct diff_function *f = &functions[i];
		const char *name = name_of(v, f->text);
		const char *code = code_kind_text(stack_tree_code(&v->t->tree, f->text));

		rows[i] = (struct overweight_row){.name = name, .code = code, .base = f->base,
						  .test = f->test};
		own[i] = (struct overweight_row){.name = name, .code = code, .base = f->own_base,
						 .test = f->own_test};
	}
	free(functions);
	if (!rows)
		return err_memory(err, "while comparing functions");
	overweight(rows, n, t->base_sum, t->test_sum);
	for (place = 0; place < PLACES; place++)
		put_place(v, *t, rows, n, place);
	overweight(own, n, t->base_sum, t->test_sum);
	put_own(v, *t, own, n);
	free(rows);
	return 0;
}

struct process_row {
	struct overweight_row row;
	uint32_t node;
};

static int by_weight(const void *left, const void *right)
{
	const struct overweight_row *a = left, *b = right;
	double x = a->base + a->test, y = b->base + b->test;

	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* The heaviest first; with --per-process each with its functions. */
static int put_processes(const struct view *v, struct err *err)
{
	const struct diff_table t = {"process", "PROCESS", .base_sum = v->t->base_sum,
				.test_sum = v->t->test_sum};
	const struct stack_tree *tree = &v->t->tree;
	struct process_row *rows = calloc((size_t)tree->nnodes + 1, sizeof(*rows));
	uint32_t i, n = 0;
	int rc = rows ? 0 : err_memory(err, "while comparing processes");

	for (i = 0; rows && i < tree->nnodes; i++) {
		if (tree->nodes[i].caller != STACK_TREE_NONE)
			continue;
		rows[n].node = i;
		rows[n].row.name = name_of(v, tree->nodes[i].text);
		rows[n].row.base = v->t->all_base[i];
		rows[n].row.test = v->t->all_test[i];
		/* Set both percentages as for any part of the whole. */
		overweight(&rows[n++].row, 1, t.base_sum, t.test_sum);
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_weight);
	for (i = 0; i < n && i < v->o->rows && !rc; i++) {
		const struct overweight_row *r = &rows[i].row;
		const struct diff_table part = {.process = r->name, .base_sum = r->base,
						.test_sum = r->test};

		if (!i || v->o->per_process)
			put_row(v, &t, NULL);
		put_row(v, &t, r);
		if (v->o->per_process)
			rc = put_functions(v, rows[i].node, &part, err);
	}
	if (!rc)
		put_left(v, n - i);
	free(rows);
	return rc;
}

static void json_side(const struct view *v, const char *which, const struct diff_side *s)
{
	struct json *j = &v->sheet->j;

	json_key_open(j, which, '{');
	json_key_int(j, "id", s->head->id);
	json_key_num(j, "window_s", (double)s->window_ns / 1e9);
	json_key_uint(j, "samples", s->samples);
	json_key_num(j, v->key, (double)s->weight / v->per);
	json_key_uint(j, "lost", s->head->lost);
	json_close(j, '}');
}

static void put_head(const struct view *v)
{
	struct json *j = &v->sheet->j;

	if (!v->sheet->json) {
		diff_notes_put(&v->sheet->out, v->d);
		return;
	}
	sheet_open(v->sheet);
	json_key_str(j, "row", "diff");
	json_key_str(j, "metric", stream_text(v->d->stream));
	json_side(v, "base", &v->d->base);
	json_side(v, "test", &v->d->test);
	json_key_num(j, "base_factor", v->d->factor);
	sheet_close(v->sheet);
}

static int print_report(const struct options *o, const struct diff *d,
			const struct export_options *opt, struct err *err)
{
	struct diff_tree tree = {0};
	struct diff_table all = {0};
	struct sheet sheet;
	struct view v = {
		.sheet = &sheet, .o = o, .d = d, .t = &tree,
		.per = is_time(d) ? 1e6 : 1,
		.key = is_time(d) ? "ms" : stream_is_bytes(d->stream) ? "bytes" : "count",
	};
	int rc = diff_tree_build(&tree, d, opt, &export_tree_plain, err);

	snprintf(v.base_head, sizeof(v.base_head), "BASE %-2s", is_time(d) ? "MS" : "");
	snprintf(v.test_head, sizeof(v.test_head), "TEST %-2s", is_time(d) ? "MS" : "");
	snprintf(v.base_key, sizeof(v.base_key), "base_%s", v.key);
	snprintf(v.test_key, sizeof(v.test_key), "test_%s", v.key);
	sheet_init(&sheet, o);
	if (!rc) {
		v.has_managed = stack_tree_has_managed(&tree.tree);
		put_head(&v);
		rc = put_processes(&v, err);
	}
	all.base_sum = tree.base_sum;
	all.test_sum = tree.test_sum;
	if (!rc && !o->per_process)
		rc = put_functions(&v, STACK_TREE_NONE, &all, err);
	if (!rc)
		rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	diff_tree_free(&tree);
	return rc;
}

/* ---- formats --------------------------------------------------------------------------------- */

struct job {
	const struct exporter *format;
	const struct diff *d;
	const struct export_options *opt;
};

static int write_job(void *ctx, struct out *out, struct err *err)
{
	const struct job *j = ctx;

	return j->format->write_diff(j->d, j->opt, out, err);
}

static int write_format(const struct options *o, const struct exporter *format,
			const struct diff *d, const struct export_options *opt, struct err *err)
{
	struct job job = {format, d, opt};

	return cmd_write_output(o, o->output ? o->output : "-", format, write_job, &job, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int choose_scale(const struct options *o, enum diff_normalize *out, struct err *err)
{
	static const char *const names[] = {
		[DIFF_BY_DURATION] = "duration",
		[DIFF_BY_WEIGHT] = "samples",
		[DIFF_AS_RECORDED] = "none",
	};
	unsigned i;

	*out = DIFF_BY_DURATION;
	for (i = 0; o->normalize && i < 3; i++) {
		if (text_same_fold(o->normalize, names[i])) {
			*out = (enum diff_normalize)i;
			return 0;
		}
	}
	return o->normalize ? err_set(err, ERR_USAGE,
				      "unknown --normalize %.100s; it is one of: duration, "
				      "samples, none",
				      o->normalize)
			    : 0;
}

static int check_request(const struct options *o, const struct exporter **format,
			 enum stream *stream, enum diff_normalize *scale, struct err *err)
{
	const char *path = o->output ? o->output : "-";
	int rc;

	if (!o->base_ids.n || !o->test_ids.n)
		return err_set(err, ERR_USAGE, "which two incidents? use recorder diff BASE TEST; "
			       "'recorder list' shows their numbers");
	if (o->base_ids.n == 1 && o->test_ids.n == 1 &&
	    o->base_ids.items[0] == o->test_ids.items[0] && !o->base_store)
		return err_set(err, ERR_USAGE,
			       "--base and --test are both incident %" PRId64
			       "; give two different ones, or --base-store",
			       o->base_ids.items[0]);
	if ((o->per_process || o->json) && (o->format || o->output))
		return err_set(err, ERR_USAGE, "--per-process and --json apply to the report only: "
			       "omit --format and -o");
	rc = cmd_check_patterns(o, err);
	*stream = cmd_stream(o);
	if (!rc)
		rc = choose_scale(o, scale, err);
	if (!rc && (o->format || o->output)) {
		rc = cmd_choose_format(o, path, true, format, err);
		rc = rc ? rc : cmd_check_output(o, path, *format, err);
	}
	return rc;
}

/*
 * Load and filter one side; an error says which. Formats get stacks as export writes them; the
 * report gets them as report does, where consecutive unnamed frames of a module are one.
 */
static int load_side(const struct options *o, struct store *store, int64_t id, const char *which,
		     struct incident *in, struct err *err)
{
	struct err why = {0};
	int rc = store_load(store, id, in, &why);

	if (!rc)
		rc = incident_whole(in, &why);
	if (!rc && (o->format || o->output) && !(o->group || o->fold || o->include || o->exclude))
		rc = cmd_filter(o, in, &why);
	else if (!rc)
		rc = cmd_filter_and_group(o, in, &why);
	return rc ? err_set(err, (enum err_code)rc, "%s, incident %" PRId64 ": %s", which, id,
			    why.text)
		  : 0;
}

/* Load both sides. */
static int load(const struct options *o, struct incident *base, struct incident *test,
		struct err *err)
{
	struct store *store = NULL, *other = NULL;
	int rc = cmd_store_open(o, STORE_READ, &store, err);

	if (!rc && o->base_store)
		rc = cmd_store_open_at(o, o->base_store, STORE_READ, &other, err);
	if (!rc)
		rc = load_side(o, o->base_store ? other : store, o->base_ids.items[0], "base", base,
			       err);
	if (!rc)
		rc = load_side(o, store, o->test_ids.items[0], "test", test, err);
	store_close(other);
	store_close(store);
	return rc;
}

static void remark(const struct diff_side *side, const char *which)
{
	if (side->head->state != INCIDENT_COMPLETE)
		cmd_note("the %s, incident %" PRId64
			 ", is %s: the part that was stored is compared",
			 which, side->head->id, incident_state_text(side->head->state));
}

/*
 * diff --metric rss-net --from -24h: what was kept since then is growth, so the window is all that
 * is needed.
 */
static bool is_growth(const struct options *o)
{
	return !o->base_ids.n && !o->test_ids.n && !o->against && o->metric &&
	       text_ends_fold(o->metric, "-net") && cmd_window_asked(o);
}

static int show_growth(const struct options *o, struct err *err)
{
	struct options part = *o;            /* borrows all of it */

	part.by_name = true;
	return o->format || o->output ? cmd_export(o, err) : cmd_report(&part, err);
}

int cmd_diff(const struct options *o, struct err *err)
{
	struct export_options opt = {.annotate = !o->no_annotate, .addresses = o->addresses};
	const struct exporter *format = NULL;
	struct incident base = {0}, test = {0};
	struct diff d = {0};
	enum diff_normalize scale = DIFF_BY_DURATION;
	int rc;

	if (o->against && o->metric && cmd_stream(o) != STREAM_CPU)
		return err_set(err, ERR_USAGE, "--against compares CPU time only; growth of %.40s "
			       "in a window is 'recorder diff --metric %.40s --last 24h', for "
			       "the metrics that end in -net", o->metric, o->metric);
	if (o->against)
		return cmd_against(o, err);
	if (is_growth(o))
		return show_growth(o, err);
	rc = check_request(o, &format, &opt.stream, &scale, err);
	if (!rc && (o->base_ids.n > 1 || o->test_ids.n > 1))
		return cmd_diff_sets(o, err);
	if (!rc)
		rc = load(o, &base, &test, err);
	if (!rc)
		rc = diff_make(&d, &base, &test, opt.stream, scale, err);
	if (!rc) {
		d.base.store = o->base_store ? os_base_name(o->base_store) : NULL;
		remark(&d.base, "base");
		remark(&d.test, "test");
		rc = format ? write_format(o, format, &d, &opt, err)
			    : print_report(o, &d, &opt, err);
	}
	diff_free(&d);
	incident_free(&base);
	incident_free(&test);
	return rc;
}
