/*
 * diff: what changed from one incident to another; as a report in the terminal, or in another
 * program's format.
 */
#include "cli/cmd.h"
#include "analysis/overweight.h"

#include "base/fit.h"
#include "base/json.h"
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
	const struct options *o;
	const struct diff *d;
	const struct diff_tree *t;
	struct buf *out;
	double per;                          /* a printed unit, in the weight's */
	const char *unit;                    /* of columns: "MS"; of keys: "ms" */
	const char *key;
	size_t columns;                      /* of the terminal */
};

static bool is_time(const struct diff *d)
{
	return d->stream == STREAM_CPU || d->stream == STREAM_OFF_CPU;
}

static const char *name_of(const struct view *v, uint32_t text)
{
	return stack_tree_text(&v->t->tree, text);
}

/* "+12.3 %", "n/a", 9 columns. */
static void put_pct(struct buf *out, double pct, unsigned digits)
{
	if (pct == pct)
		buf_printf(out, "%+7.*f %%", (int)digits, pct);
	else
		buf_printf(out, "%9s", "n/a");
}

static void put_json_row(const struct view *v, const char *kind, const char *process,
			 const struct overweight_row *r, double base_sum, double test_sum)
{
	struct json j = {.out = v->out};
	char key[32];

	json_open(&j, '{');
	json_key_str(&j, "row", kind);
	if (process)
		json_key_str(&j, "process", process);
	json_key_str(&j, "name", r->name);
	snprintf(key, sizeof(key), "base_%s", v->key);
	json_key_num(&j, key, r->base / v->per);
	snprintf(key, sizeof(key), "test_%s", v->key);
	json_key_num(&j, key, r->test / v->per);
	json_key_num(&j, "base_pct", base_sum > 0 ? 100 * r->base / base_sum : 0);
	json_key_num(&j, "test_pct", test_sum > 0 ? 100 * r->test / test_sum : 0);
	json_key_num(&j, "overweight_pct", r->overweight_pct);
	json_key_num(&j, "responsibility_pct", r->responsibility_pct);
	json_key_uint(&j, "interest", r->interest);
	json_close(&j, '}');
	buf_putc(v->out, '\n');
}

static void put_amounts(const struct view *v, const struct overweight_row *r, double base_sum,
			double test_sum)
{
	buf_printf(v->out, " %11.1f %11.1f ", r->base / v->per, r->test / v->per);
	if (v->columns >= CHANGE_MIN_COLUMNS)
		buf_printf(v->out, "%+11.1f", (r->test - r->base) / v->per);
	if (v->columns >= SHARES_MIN_COLUMNS)
		buf_printf(v->out, "  %5.1f %% %5.1f %%",
			   base_sum > 0 ? 100 * r->base / base_sum : 0,
			   test_sum > 0 ? 100 * r->test / test_sum : 0);
	buf_puts(v->out, "  ");
	fit_last(v->out, r->name, 0, v->columns);
	buf_putc(v->out, '\n');
}

static void put_heading(const struct view *v, bool overweight, const char *title)
{
	buf_putc(v->out, '\n');
	if (overweight)
		buf_printf(v->out, "%8s %11s %9s", "INTEREST", "OVERWEIGHT", "RESP.");
	buf_printf(v->out, " %8s %-2s %8s %-2s ", "BASE", v->unit, "TEST", v->unit);
	if (v->columns >= CHANGE_MIN_COLUMNS)
		buf_printf(v->out, "%11s", "CHANGE");
	if (v->columns >= SHARES_MIN_COLUMNS)
		buf_printf(v->out, "  %7s %7s", "BASE %", "TEST %");
	buf_puts(v->out, "  ");
	fit_last(v->out, title, 0, v->columns);
	buf_putc(v->out, '\n');
}

static int place_of(const struct overweight_row *r)
{
	if (r->base > 0)
		return r->test > 0 ? 0 : 2;
	return 1;
}

/* Put the rows of one place together. */
static void put_place(const struct view *v, const char *process, const struct overweight_row *rows,
		      uint32_t n, int place, double base_sum, double test_sum)
{
	static const char *const titles[] = {
		"FUNCTION, INCLUSIVE", "FUNCTION, ONLY IN THE TEST", "FUNCTION, ONLY IN THE BASE",
	};
	static const char *const kinds[] = {"function", "only_test", "only_base"};
	uint32_t i, put = 0, left = 0;

	for (i = 0; i < n; i++) {
		if (place_of(&rows[i]) != place || rows[i].minor)
			continue;
		if (put == v->o->rows) {
			left++;
			continue;
		}
		if (!put++ && !v->o->json)
			put_heading(v, place == 0, titles[place]);
		if (v->o->json) {
			put_json_row(v, kinds[place], process, &rows[i], base_sum, test_sum);
			continue;
		}
		if (place == 0) {
			buf_printf(v->out, "%8u   ", rows[i].interest);
			put_pct(v->out, rows[i].overweight_pct, 0);
			buf_putc(v->out, ' ');
			put_pct(v->out, rows[i].responsibility_pct, 1);
		}
		put_amounts(v, &rows[i], base_sum, test_sum);
	}
	if (left && !v->o->json)
		buf_printf(v->out, "  and %" PRIu32 " more; --rows shows more\n", left);
}

static void put_places(const struct view *v, const char *process, const struct overweight_row *rows,
		       uint32_t n, double base_sum, double test_sum)
{
	int place;

	for (place = 0; place < 3; place++)
		put_place(v, process, rows, n, place, base_sum, test_sum);
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
static void put_own(const struct view *v, const char *process,
		    const struct diff_function *functions, uint32_t n, struct overweight_row *rows,
		    double base_sum, double test_sum)
{
	uint32_t i, put = 0, changed = 0;

	for (i = 0; i < n; i++) {
		rows[i] = (struct overweight_row){.name = name_of(v, functions[i].text),
						  .base = functions[i].own_base,
						  .test = functions[i].own_test};
	}
	overweight(rows, n, base_sum, test_sum);
	if (n)
		qsort(rows, n, sizeof(*rows), by_change);
	while (changed < n && fabs(rows[changed].test - rows[changed].base) >= test_sum * 1e-3)
		changed++;
	for (i = 0; i < changed && put < v->o->rows; i++, put++) {
		if (!i && !v->o->json)
			put_heading(v, false, "FUNCTION, BY CHANGE OF SELF TIME");
		if (v->o->json)
			put_json_row(v, "own", process, &rows[i], base_sum, test_sum);
		else
			put_amounts(v, &rows[i], base_sum, test_sum);
	}
	if (put < changed && !v->o->json)
		buf_printf(v->out, "  and %" PRIu32 " more; --rows shows more\n", changed - put);
}

/* For all processes, or for one: its node, and its name for the rows. */
static int put_functions(const struct view *v, uint32_t process, const char *name, double base_sum,
			 double test_sum, struct err *err)
{
	struct diff_function *functions = NULL;
	struct overweight_row *rows;
	uint32_t n = 0, i;
	int rc = diff_functions(v->t, process, &functions, &n, err);

	if (rc)
		return rc;
	rows = calloc((size_t)n + 1, sizeof(*rows));
	for (i = 0; rows && i < n; i++)
		rows[i] = (struct overweight_row){
			.name = name_of(v, functions[i].text), .base = functions[i].base,
			.test = functions[i].test,
		};
	if (rows) {
		overweight(rows, n, base_sum, test_sum);
		put_places(v, name, rows, n, base_sum, test_sum);
		put_own(v, name, functions, n, rows, base_sum, test_sum);
	}
	free(functions);
	rc = rows ? 0 : err_memory(err, "while comparing functions");
	free(rows);
	return rc;
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

static void put_process(const struct view *v, const struct process_row *p)
{
	if (v->o->json)
		put_json_row(v, "process", NULL, &p->row, v->t->base_sum, v->t->test_sum);
	else
		put_amounts(v, &p->row, v->t->base_sum, v->t->test_sum);
}

/* The heaviest first; with --per-process each with its functions. */
static int put_processes(const struct view *v, struct err *err)
{
	const struct stack_tree *t = &v->t->tree;
	struct process_row *rows = calloc((size_t)t->nnodes + 1, sizeof(*rows));
	uint32_t i, n = 0;
	int rc = rows ? 0 : err_memory(err, "while comparing processes");

	for (i = 0; rows && i < t->nnodes; i++) {
		if (t->nodes[i].caller != STACK_TREE_NONE)
			continue;
		rows[n].node = i;
		rows[n].row.name = name_of(v, t->nodes[i].text);
		rows[n].row.base = v->t->all_base[i];
		rows[n].row.test = v->t->all_test[i];
		/* Set both percentages as for any part of the whole. */
		overweight(&rows[n++].row, 1, v->t->base_sum, v->t->test_sum);
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_weight);
	if (!v->o->json && n && !v->o->per_process)
		put_heading(v, false, "PROCESS");
	for (i = 0; i < n && i < v->o->rows && !rc; i++) {
		if (v->o->per_process && !v->o->json)
			put_heading(v, false, "PROCESS");
		put_process(v, &rows[i]);
		if (v->o->per_process)
			rc = put_functions(v, rows[i].node, rows[i].row.name, rows[i].row.base,
					   rows[i].row.test, err);
	}
	if (i < n && !v->o->json)
		buf_printf(v->out, "  and %" PRIu32 " more; --rows shows more\n", n - i);
	free(rows);
	return rc;
}

static void put_json_side(struct json *j, const char *which, const struct diff_side *s,
			  const struct view *v)
{
	json_key(j, which);
	json_open(j, '{');
	json_key_int(j, "id", s->head->id);
	json_key_num(j, "window_s", (double)s->window_ns / 1e9);
	json_key_uint(j, "samples", s->samples);
	json_key_num(j, v->key, (double)s->weight / v->per);
	json_key_uint(j, "lost", s->head->lost);
	json_close(j, '}');
}

static void put_head(const struct view *v)
{
	struct json j = {.out = v->out};

	if (!v->o->json) {
		diff_notes_put(v->out, v->d);
		return;
	}
	json_open(&j, '{');
	json_key_str(&j, "row", "diff");
	json_key_str(&j, "metric", stream_text(v->d->stream));
	put_json_side(&j, "base", &v->d->base, v);
	put_json_side(&j, "test", &v->d->test, v);
	json_key_num(&j, "base_factor", v->d->factor);
	json_close(&j, '}');
	buf_putc(v->out, '\n');
}

static int print_report(const struct options *o, const struct diff *d,
			const struct diff_options *opt, struct err *err)
{
	struct diff_tree tree = {0};
	struct buf out = {0};
	struct view v = {
		.o = o,
		.d = d,
		.t = &tree,
		.out = &out,
		.columns = fit_columns(),
		.per = is_time(d) ? 1e6 : 1,
		.unit = is_time(d) ? "MS" : "",
		.key = is_time(d)		   ? "ms"
		       : d->stream == STREAM_ALLOC ? "bytes"
						   : "count",
	};
	int rc = diff_tree_build(&tree, d, opt, &export_tree_plain, err);

	if (!rc) {
		put_head(&v);
		rc = put_processes(&v, err);
	}
	if (!rc && !o->per_process)
		rc = put_functions(&v, STACK_TREE_NONE, NULL, tree.base_sum, tree.test_sum, err);
	if (!rc)
		rc = cmd_print_fitted(o, &out, err);
	buf_free(&out);
	diff_tree_free(&tree);
	return rc;
}

/* ---- formats --------------------------------------------------------------------------------- */

static int no_format(const char *why, const char *what, struct err *err)
{
	struct buf list = {0};
	unsigned i;

	for (i = 0; diff_formats[i]; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", diff_formats[i]->name);
	err_set(err, ERR_USAGE, "%s%s; --format of diff is one of: %s", why, what,
		buf_text(&list));
	buf_free(&list);
	return ERR_USAGE;
}

static int choose_format(const struct options *o, const struct diff_format **out, struct err *err)
{
	const char *path = o->output ? o->output : "-";
	const struct exporter *e;

	if (o->format)
		e = exporter_by_name(o->format);
	else if (strcmp(path, "-") == 0)
		return no_format("no format was given", "", err);
	else
		e = exporter_by_path(path);
	*out = e ? diff_format_of(e) : NULL;
	if (!*out)
		return no_format(o->format ? "diff has no format "
					   : "no format of diff has the suffix of ",
				 o->format ? o->format : path, err);
	return cmd_check_output(o, path, e, err);
}

struct job {
	const struct diff_format *format;
	const struct diff *d;
	const struct diff_options *opt;
};

static int write_job(void *ctx, struct out *out, struct err *err)
{
	const struct job *j = ctx;

	return j->format->write(j->d, j->opt, out, err);
}

static int write_format(const struct options *o, const struct diff_format *format,
			const struct diff *d, const struct diff_options *opt, struct err *err)
{
	struct job job = {format, d, opt};

	return cmd_write_output(o, o->output ? o->output : "-", exporter_by_name(format->name),
				write_job, &job, err);
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

static int check_request(const struct options *o, const struct diff_format **format,
			 enum stream *stream, enum diff_normalize *scale, struct err *err)
{
	int rc;

	if (!o->base_id || !o->test_id)
		return err_set(err, ERR_USAGE,
			       "which two incidents? use recorder diff BASE TEST; 'recorder list' "
			       "shows their numbers");
	if (o->base_id == o->test_id && !o->base_store)
		return err_set(err, ERR_USAGE,
			       "--base and --test are both incident %" PRIu32
			       "; give two different ones, or --base-store",
			       o->base_id);
	if ((o->per_process || o->json) && (o->format || o->output))
		return err_set(err, ERR_USAGE,
			       "--per-process and --json apply to the report only: omit --format "
			       "and -o");
	rc = cmd_check_patterns(o, err);
	if (!rc)
		rc = cmd_stream(o, stream, err);
	if (!rc)
		rc = choose_scale(o, scale, err);
	if (!rc && (o->format || o->output))
		rc = choose_format(o, format, err);
	return rc;
}

/*
 * Load and filter one side; an error says which. Formats get stacks as export writes them; the
 * report gets them as report does, where consecutive unnamed frames of a module are one.
 */
static int load_side(const struct options *o, struct store *store, uint32_t id, const char *which,
		     struct incident *in, struct err *err)
{
	struct err why = {0};
	int rc = store_load(store, id, in, &why);

	if (!rc)
		rc = incident_whole(in, &why);
	if (!rc && (o->format || o->output) && !(o->group || o->fold || o->include || o->exclude))
		rc = cmd_filter(o, in, &why);
	else if (!rc)
		rc = cmd_narrow(o, in, &why);
	return rc ? err_set(err, (enum err_code)rc, "%s, incident %" PRIu32 ": %s", which, id,
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
		rc = load_side(o, o->base_store ? other : store, o->base_id, "base", base, err);
	if (!rc)
		rc = load_side(o, store, o->test_id, "test", test, err);
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

int cmd_diff(const struct options *o, struct err *err)
{
	struct diff_options opt = {.annotate = !o->no_annotate, .addresses = o->addresses};
	const struct diff_format *format = NULL;
	struct incident base = {0}, test = {0};
	struct diff d = {0};
	enum diff_normalize scale = DIFF_BY_DURATION;
	enum stream stream = STREAM_CPU;
	int rc = check_request(o, &format, &stream, &scale, err);

	if (!rc)
		rc = load(o, &base, &test, err);
	if (!rc)
		rc = diff_make(&d, &base, &test, stream, scale, err);
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
