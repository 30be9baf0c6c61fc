#include "cli/check_stacks.h"

#include "base/os.h"
#include "cli/cmd.h"
#include "source/list/survey.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_LISTED = 6 };

static int most_first(const void *left, const void *right)
{
	const struct survey_group *a = left, *b = right;

	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Put a heading ("3 processes: java, node (2)"), emptied then, and a sentence. */
static void put_remark(struct sheet *p, const char *verdict, struct buf *heading, const char *text)
{
	sheet_finding(p, "stacks", verdict, buf_text(heading), NULL, text);
	buf_reset(heading);
}

static void json_cause(struct json *j, const struct survey *s, enum survey_cause cause,
		       uint32_t count)
{
	uint32_t i;

	json_key_str(j, "cause", survey_cause_name(cause));
	json_key_uint(j, "processes", count);
	json_key_open(j, "programs", '[');
	for (i = 0; i < s->ngroups; i++) {
		const struct survey_group *g = &s->groups[i];

		if (g->cause != cause)
			continue;
		json_open(j, '{');
		json_key_str(j, "name", g->name);
		json_key_uint(j, "processes", g->n);
		json_key_uint(j, "pid", g->pid);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_cause(struct sheet *p, const struct survey *s, enum survey_cause cause,
		      struct buf *heading)
{
	struct buf names = {0};
	uint32_t i, listed = 0, count = 0;

	for (i = 0; i < s->ngroups; i++) {
		const struct survey_group *g = &s->groups[i];

		if (g->cause != cause)
			continue;
		count += g->n;
		if (listed++ >= NAMES_LISTED)
			continue;
		buf_printf(&names, "%s%s", listed > 1 ? ", " : "", g->name);
		if (g->n > 1)
			buf_printf(&names, " (%" PRIu32 ")", g->n);
	}
	if (listed > NAMES_LISTED)
		buf_printf(&names, " and %" PRIu32 " more", listed - NAMES_LISTED);
	if (count) {
		buf_printf(heading, "%" PRIu32 " process%s: %s", count, count == 1 ? "" : "es",
			   buf_text(&names));
		put_remark(p, "note", heading, survey_cause_text(cause, os_is_admin()));
		if (p->json)
			json_cause(&p->j, s, cause, count);
		sheet_close(p);
	}
	buf_free(&names);
}

static void put_all(struct sheet *p, const struct survey *s, struct buf *heading)
{
	struct buf text = {0};
	unsigned i;

	if (s->affected)
		buf_printf(heading, "%" PRIu32 " of %" PRIu32 " processes will have gaps",
			   s->affected, s->looked_at);
	else
		buf_printf(heading, "nothing prevents complete stacks in %" PRIu32 " processes",
			   s->looked_at);
	put_remark(p, s->affected ? "note" : "ok", heading, "");
	sheet_close(p);
	for (i = 0; i < SURVEY_CAUSES; i++)
		put_cause(p, s, (enum survey_cause)i, heading);
	if (s->looked_at < s->processes) {
		buf_printf(heading, "%" PRIu32 " %s not examined", s->processes - s->looked_at,
			   s->processes - s->looked_at == 1 ? "process was" : "processes were");
		if (*s->stuck_at)
			buf_printf(&text, "reading %s takes too long: does its file system hang?",
				   s->stuck_at);
		put_remark(p, "note", heading, buf_text(&text));
		sheet_close(p);
	}
	buf_free(&text);
}

void check_stacks(const struct options *o, struct sheet *p)
{
	struct survey *s = malloc(sizeof(*s));
	struct buf heading = {0};
	struct err err = {0};
	int rc = s ? survey_run(SURVEY_MAX_NS, s, &err) : ERR_MEMORY;

	if (!rc) {
		qsort(s->groups, s->ngroups, sizeof(s->groups[0]), most_first);
		put_all(p, s, &heading);
		if (!o->capture.stack_kb) {
			sheet_finding(p, "stacks", "note", "--stack-kb 0", NULL,
				     "stacks are followed by frame pointers only; most programs "
				     "have none, so their stacks will be short");
			sheet_close(p);
		}
	} else if (rc != ERR_UNSUPPORTED) {
		sheet_finding(p, "stacks", "note", "the running processes could not be examined",
			     NULL, err.text);
		sheet_close(p);
	}
	buf_free(&heading);
	free(s);
}
