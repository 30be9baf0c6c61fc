/* start: collect in the background. list-sessions: the recorders of this machine. */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/array.h"
#include "base/json_read.h"
#include "base/os.h"
#include "base/text.h"
#include "engine/control.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ASK_WAIT_NS (2 * NS_PER_SEC)

static void begun(void *ctx)
{
	os_background_ready(ctx);
}

int cmd_start(const struct options *given, struct err *err)
{
	struct os_background background = {0};
	const struct cmd_recorded of = {.logs = true, .begun = begun, .ctx = &background};
	struct options o = *given;           /* borrows all of it */
	struct buf log = {0};
	int rc = 0;

	if (o.capture.file)
		rc = err_set(err, ERR_USAGE, "start: use 'recorder collect --from'");
	if (!rc)
		rc = cmd_own_log(&o, &log, err);
	if (!rc)
		rc = os_background(&background, err);
	if (!rc && background.is_new)
		rc = cmd_record(&o, &of, err);
	else if (!rc && background.ready)
		cmd_note("recording in the background, process %u; 'recorder stop' ends it; its "
			 "log is %s", (unsigned)background.pid, o.log_file);
	else if (!rc)
		rc = CMD_EXITS + background.code;
	buf_free(&log);
	return rc;
}

/* ---- list-sessions --------------------------------------------------------------------------- */

enum { COLUMNS = 6 };

struct session {
	char *store, *health;
	double pid, elapsed_s;               /* NaN = it did not say */
	double incidents;
};

struct sessions {
	struct session *all;
	uint32_t n;
	bool failed;                         /* out of memory */
};

static double number(struct json_value status, const char *key)
{
	double v = NAN;

	json_number(json_member(status, key), &v);
	return v;
}

static char *text_of(struct json_value status, const char *key)
{
	struct buf text = {0};
	char *copy;

	json_put_text(json_member(status, key), &text);
	copy = text_dup(buf_text(&text), SIZE_MAX);
	buf_free(&text);
	return copy;
}

/* Something else may listen at such a name: who does not answer like a recorder is none. */
static void add_session(void *ctx, const char *path)
{
	struct session s = {.pid = NAN, .elapsed_s = NAN, .incidents = NAN};
	struct sessions *all = ctx;
	struct json_value status;
	struct buf answer = {0};
	int rc = os_ipc_ask(path, "{\"cmd\":\"status\"}", ASK_WAIT_NS, &answer, NULL);
	size_t n = strlen(path) - strlen(CONTROL_SUFFIX);

	if (rc == ERR_NOT_FOUND)
		goto out;
	s.store = text_dup(path, *path == '/' ? n : SIZE_MAX);
	if (!rc && json_read(buf_text(&answer), &status) && json_member(status, "health").at) {
		s.health = text_of(status, "health");
		s.pid = number(status, "pid");
		s.elapsed_s = number(status, "elapsed_s");
		s.incidents = number(status, "incidents");
		if (*path != '/') {
			free(s.store);
			s.store = text_of(status, "store");
		}
	} else {
		s.health = text_dup(rc == ERR_ACCESS ? "not ours" : "no answer", SIZE_MAX);
	}
	all->failed |= !s.store || !s.health || ARRAY_NEXT(all->all, all->n);
	if (!all->failed)
		all->all[all->n++] = s;
	if (all->failed) {
		free(s.store);
		free(s.health);
	}
out:
	buf_free(&answer);
}

static void put_session(struct sheet *p, const struct session *s, int *widths, bool measures)
{
	struct sheet_cell cells[COLUMNS] = {
		{.key = "pid", .head = "PID", .kind = SHEET_NUMBER, .v = s->pid},
		{.key = "health", .head = "HEALTH", .text = s->health, .width = -9},
		{.key = "elapsed_s", .head = "FOR", .kind = SHEET_SECONDS, .v = s->elapsed_s},
		{.key = "incidents", .head = "INCIDENTS", .kind = SHEET_NUMBER,
		 .v = s->incidents},
		{.key = "store", .head = "STORE", .kind = SHEET_NAME, .text = s->store},
	};
	const unsigned n = COLUMNS - 1;
	unsigned i;

	if (measures) {
		sheet_measure(cells, n, widths);
		return;
	}
	for (i = 0; i < n; i++)
		cells[i].width = widths[i];
	if (p->json || widths[COLUMNS - 1]++)
		sheet_row(p, cells, n);
	else {
		sheet_heading(p, cells, n);
		sheet_row(p, cells, n);
	}
}

int cmd_list_sessions(const struct options *o, struct err *err)
{
	struct sessions all = {0};
	int widths[COLUMNS] = {0};
	struct sheet sheet;
	uint32_t i;
	int rc = os_ipc_each(CONTROL_SUFFIX, add_session, &all, err);

	sheet_init(&sheet, o);
	if (!rc && all.failed)
		rc = err_memory(err, "while listing recorders");
	for (i = 0; !rc && i < all.n; i++)
		put_session(&sheet, &all.all[i], widths, true);
	for (i = 0; !rc && i < all.n; i++)
		put_session(&sheet, &all.all[i], widths, false);
	if (!rc && !all.n)
		rc = err_set(err, ERR_NOT_FOUND, "no recorder is running on this machine; "
			     "'recorder collect' or 'recorder start' starts one");
	if (!rc)
		rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	for (i = 0; i < all.n; i++) {
		free(all.all[i].store);
		free(all.all[i].health);
	}
	free(all.all);
	return rc;
}
