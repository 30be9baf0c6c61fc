/*
 * list: the incidents of the store, newest first; delete, pin, unpin: remove them, exempt them from
 * retention, or stop exempting them; by number, also while a recorder runs.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 8 };

struct listing {
	struct sheet sheet;
	int widths[COLUMNS];
	const struct options *o;
	uint64_t since_wall_ns;              /* 0 = ever */
	char *host;                          /* of the first one */
	bool several_hosts;
	bool measures;                       /* the widths are not known yet */
	uint32_t n;
};

static bool is_wanted(const struct listing *l, const struct incident_head *h)
{
	return h->trigger_wall_ns >= l->since_wall_ns &&
	       (!l->o->host || (h->host && text_same_fold(h->host, l->o->host))) &&
	       (!l->o->group_id || incident_is_of_group(h, l->o->group_id));
}

static void look_at_host(struct listing *l, const struct incident_head *h)
{
	const char *host = h->host ? h->host : "";

	if (!l->host)
		l->host = text_dup(host, SIZE_MAX);
	else
		l->several_hosts |= strcmp(l->host, host) != 0;
}

/* The last one, without its time. */
static void put_remark(struct buf *out, const char *remarks)
{
	const char *last = remarks ? strrchr(remarks, '\n') : NULL;
	const char *line = last ? last + 1 : remarks, *text = line ? strchr(line, ' ') : NULL;

	if (text)
		buf_printf(out, " (remark:%s)", text);
}

static int put_incident(void *ctx, const struct incident_head *h)
{
	struct listing *l = ctx;
	char time[OS_TIME_TEXT_BYTES], second[OS_TIME_TEXT_BYTES];
	struct buf what = {0};
	struct sheet_cell cells[COLUMNS] = {
		{.head = "ID", .kind = SHEET_NUMBER, .v = (double)h->id},
		{.head = "TIME (UTC)         ", .text = second},
		{.head = "WINDOW", .kind = SHEET_SECONDS, .v = (double)(h->t1_ns - h->t0_ns) / 1e9},
		{.head = "SAMPLES", .kind = SHEET_COUNT, .n = h->samples},
		{.head = "LOST", .kind = SHEET_COUNT, .n = h->lost, .is_loss = true},
		{.head = "SIZE", .kind = SHEET_BYTES, .n = h->stored_bytes},
		{.head = "HOST", .text = h->host ? h->host : ""},
		{.head = "WHAT FIRED", .kind = SHEET_NAME},
	};
	struct sheet_cell *what_fired = &cells[COLUMNS - 1];
	unsigned i, n = COLUMNS;

	if (!is_wanted(l, h))
		return 0;
	os_time_text(h->trigger_wall_ns, time);
	snprintf(second, sizeof(second), "%.10s %.8s", time, time + 11);
	if (l->measures) {
		look_at_host(l, h);
		sheet_measure(cells, COLUMNS, l->widths);
		return 0;
	}
	if (!l->several_hosts) {
		cells[COLUMNS - 2] = cells[COLUMNS - 1];
		what_fired--;
		n--;
	}
	if (h->state != INCIDENT_COMPLETE)
		buf_printf(&what, "[%s]", incident_state_text(h->state));
	what_fired->mark = what.len;
	buf_printf(&what, "%s%s", what.len ? " " : "", h->pinned ? "[pinned] " : "");
	buf_puts(&what, h->reason && *h->reason ? h->reason : h->rule ? h->rule : "");
	put_remark(&what, h->remarks);
	what_fired->text = buf_text(&what);
	for (i = 0; i < n; i++)
		cells[i].width = l->widths[i < n - 1 ? i : COLUMNS - 1];
	if (!l->n++)
		sheet_heading(&l->sheet, cells, n);
	sheet_row(&l->sheet, cells, n);
	buf_free(&what);
	return 0;
}

static int put_json(void *ctx, const struct incident_head *h)
{
	struct listing *l = ctx;

	if (!is_wanted(l, h))
		return 0;
	sheet_open(&l->sheet);
	json_incident(&l->sheet.j, h, false);
	json_key_str(&l->sheet.j, "host", h->host);
	json_key_str(&l->sheet.j, "remarks", h->remarks);
	sheet_close(&l->sheet);
	l->n++;
	return 0;
}

int cmd_list(const struct options *o, struct err *err)
{
	struct listing l = {.measures = true, .o = o};
	struct store *store = NULL;
	struct buf path = {0};
	int rc;

	sheet_init(&l.sheet, o);
	if (o->last_ns != OPTION_NO_TIME)
		l.since_wall_ns = os_wall_ns() - (uint64_t)o->last_ns;
	if (!cmd_store_path(o, STORE_READ, &path, NULL))
		cmd_settle_deaths(buf_text(&path));
	buf_free(&path);
	rc = cmd_store_open(o, STORE_READ, &store, err);
	if (!rc && !o->json)
		rc = store_list(store, put_incident, &l, err);
	l.measures = false;
	if (!rc)
		rc = store_list(store, o->json ? put_json : put_incident, &l, err);
	if (!rc && !l.n)
		rc = err_set(err, ERR_NOT_FOUND, l.since_wall_ns || o->host
						  ? "nothing matches in %s"
						  : "no incidents in %s yet", store_path(store));
	if (!rc)
		rc = sheet_print(&l.sheet, err);
	sheet_free(&l.sheet);
	free(l.host);
	store_close(store);
	return rc;
}

int cmd_edit(const struct options *o, struct err *err)
{
	const char *done = o->command == CMD_DELETE ? "deleted"
			   : o->command == CMD_PIN  ? "pinned: retention will not delete it"
						    : "unpinned";
	struct store *store = NULL;
	struct err why;
	uint32_t i;
	int rc, first = 0;

	if (!o->ids.n)
		return err_set(err, ERR_USAGE, "which incident? 'recorder list' shows the numbers, "
			       "and 'recorder %s 3' takes one", command_table[o->command].name);
	rc = cmd_store_open(o, STORE_EDIT, &store, err);
	/* A missing incident does not stop the others from being deleted. */
	for (i = 0; !rc && i < o->ids.n && (!first || o->command == CMD_DELETE); i++) {
		int64_t id = o->ids.items[i];
		int one = o->command == CMD_DELETE
				  ? store_delete(store, id, &why)
				  : store_pin(store, id, o->command == CMD_PIN, &why);

		if (!one)
			cmd_note("incident %" PRId64 " is %s", id, done);
		else if (first)
			cmd_note("%s", why.text);
		else
			first = err_set(err, (enum err_code)why.code, "%s", why.text);
	}
	/* Data that no other incident uses is swept once, after the last. */
	if (!rc && o->command == CMD_DELETE)
		store_clean(store);
	store_close(store);
	return rc ? rc : first;
}

/* "2026-11-27T02:20:11Z the pool was restarted" */
static int add_remark(struct store *store, int64_t id, const char *text, struct err *err)
{
	char now[OS_TIME_TEXT_BYTES];
	struct buf line = {0};
	int rc;

	os_time_text(os_wall_ns(), now);
	buf_printf(&line, "%.19sZ %s", now, text);
	rc = buf_check(&line, "the remark", err);
	if (!rc)
		rc = store_add_remark(store, id, buf_text(&line), err);
	buf_free(&line);
	return rc;
}

int cmd_remark(const struct options *o, struct err *err)
{
	struct store *store = NULL;
	int64_t id = 0;
	uint32_t i;
	int rc;

	if (!o->pattern || !*o->pattern)
		return err_set(err, ERR_USAGE, "note: the remark is missing: recorder note --id 3 "
			       "'the pool was restarted'");
	rc = cmd_store_open(o, STORE_EDIT, &store, err);
	if (!rc && !o->ids.n)
		rc = store_newest(store, &id, err);
	if (!rc && !o->ids.n)
		rc = add_remark(store, id, o->pattern, err);
	if (!rc && !o->ids.n)
		cmd_note("incident %" PRId64 ", the newest, has this remark now", id);
	for (i = 0; !rc && i < o->ids.n; i++)
		rc = add_remark(store, o->ids.items[i], o->pattern, err);
	store_close(store);
	return rc;
}
