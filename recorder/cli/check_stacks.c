#include "cli/check_stacks.h"

#include "base/json.h"
#include "base/os.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "source/list/survey.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_LISTED = 6 };

/* A heading ("3 processes: java, node (2)") and a sentence; cause "" = about all. */
struct remark {
	const char *verdict, *cause, *text;
	struct buf name;
	uint32_t count;
};

static int most_first(const void *left, const void *right)
{
	const struct survey_group *a = left, *b = right;

	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* ---- one remark ------------------------------------------------------------------------------ */

static void put_json(struct buf *out, const struct remark *r, const struct survey *s)
{
	struct json j = {.out = out};
	uint32_t i;

	json_open(&j, '{');
	json_key_str(&j, "check", "stacks");
	json_key_str(&j, "name", buf_text(&r->name));
	json_key_str(&j, "verdict", r->verdict);
	json_key_str(&j, "text", r->text);
	if (*r->cause) {
		json_key_str(&j, "cause", r->cause);
		json_key_uint(&j, "processes", r->count);
		json_key(&j, "programs");
		json_open(&j, '[');
		for (i = 0; i < s->ngroups; i++) {
			const struct survey_group *g = &s->groups[i];

			if (strcmp(survey_cause_name(g->cause), r->cause) != 0)
				continue;
			json_open(&j, '{');
			json_key_str(&j, "name", g->name);
			json_key_uint(&j, "processes", g->n);
			json_key_uint(&j, "pid", g->pid);
			json_close(&j, '}');
		}
		json_close(&j, ']');
	}
	json_close(&j, '}');
	buf_putc(out, '\n');
}

static void put(const struct options *o, struct buf *out, struct remark *r, const struct survey *s)
{
	if (o->json) {
		put_json(out, r, s);
	} else {
		buf_printf(out, "%-8s %-8s ", "stacks", r->verdict);
		utf8_put_clean(out, buf_text(&r->name), r->name.len, SIZE_MAX);
		buf_putc(out, '\n');
		if (*r->text)
			buf_printf(out, "%18s%s\n", "", r->text);
	}
	buf_free(&r->name);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void put_cause(const struct options *o, struct buf *out, const struct survey *s,
		      enum survey_cause cause)
{
	struct remark r = {
		.verdict = "note",
		.cause = survey_cause_name(cause),
		.text = survey_cause_text(cause, os_is_admin()),
	};
	struct buf names = {0};
	uint32_t i, listed = 0;

	for (i = 0; i < s->ngroups; i++) {
		const struct survey_group *g = &s->groups[i];

		if (g->cause != cause)
			continue;
		r.count += g->n;
		if (listed++ >= NAMES_LISTED)
			continue;
		buf_printf(&names, "%s%s", listed > 1 ? ", " : "", g->name);
		if (g->n > 1)
			buf_printf(&names, " (%" PRIu32 ")", g->n);
	}
	if (listed > NAMES_LISTED)
		buf_printf(&names, " and %" PRIu32 " more", listed - NAMES_LISTED);
	buf_printf(&r.name, "%" PRIu32 " process%s: %s", r.count, r.count == 1 ? "" : "es",
		   buf_text(&names));
	if (r.count)
		put(o, out, &r, s);
	buf_free(&names);
	buf_free(&r.name);
}

static void put_all(const struct options *o, struct buf *out, const struct survey *s)
{
	struct remark r = {.cause = "", .text = ""};
	struct buf text = {0};
	unsigned i;

	r.verdict = s->affected ? "note" : "ok";
	if (s->affected)
		buf_printf(&r.name, "%" PRIu32 " of %" PRIu32 " processes will have gaps",
			   s->affected, s->looked_at);
	else
		buf_printf(&r.name,
			   "nothing prevents complete stacks in %" PRIu32 " processes",
			   s->looked_at);
	put(o, out, &r, s);
	for (i = 0; i < SURVEY_CAUSES; i++)
		put_cause(o, out, s, (enum survey_cause)i);
	if (s->looked_at < s->processes) {
		r.verdict = "note";
		buf_printf(&r.name, "%" PRIu32 " processes were not examined",
			   s->processes - s->looked_at);
		if (*s->stuck_at)
			buf_printf(&text, "reading %s takes too long: does its file system hang?",
				   s->stuck_at);
		r.text = buf_text(&text);
		put(o, out, &r, s);
	}
	buf_free(&text);
}

void check_stacks(const struct options *o, struct buf *out)
{
	struct survey *s = malloc(sizeof(*s));
	struct err err = {0};
	struct remark r = {.verdict = "note", .cause = "", .text = ""};
	int rc = s ? survey_run(SURVEY_MAX_NS, s, &err) : ERR_MEMORY;

	if (!rc) {
		qsort(s->groups, s->ngroups, sizeof(s->groups[0]), most_first);
		put_all(o, out, s);
		if (!o->capture.stack_kb) {
			buf_puts(&r.name, "--stack-kb 0");
			r.text = "stacks are followed by frame pointers only; most programs have "
				 "none, so their stacks will be short";
			put(o, out, &r, s);
		}
	} else if (rc != ERR_UNSUPPORTED) {
		buf_puts(&r.name, "the running processes could not be examined");
		r.text = err.text;
		put(o, out, &r, s);
	}
	free(s);
}
