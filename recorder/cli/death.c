/*
 * Recorders that ended without saying so: their last file of the history is still open, and nobody
 * holds its lock. The next command that may write there completes the file, and makes an incident
 * of the last two minutes, whose reason says what the system tells about the end.
 */
#include "cli/cmd.h"

#include "base/os.h"
#include "source/host/death.h"
#include "store/history.h"

#include <inttypes.h>
#include <string.h>

#define WINDOW_NS (120 * NS_PER_SEC)
#define PAUSE_NS (15 * NS_PER_SEC)           /* between two files where none was lost */
#define INCIDENTS_MAX 3u                     /* at once: a recorder may die in a loop */
#define DEATH_RULE "recorder-ended"

/*
 * How the same recorder went on in another file: a disk failed, and came back; or it was killed
 * before the file was complete. NULL: it did not.
 */
static const char *went_on(const struct history_files *files, uint32_t i)
{
	const struct history_file *f = &files->all[i];
	struct history_file next;

	if (i + 1 == files->n)
		return NULL;
	next = files->all[i + 1];
	history_look(&next, false);
	if (!next.readable || next.pid != f->pid || strcmp(next.boot_id, f->boot_id) != 0)
		return NULL;
	if (next.t0_ns <= f->t1_ns + PAUSE_NS)
		return HISTORY_WENT_ON;
	return "it could not be written; " HISTORY_WENT_ON;
}

static void put_end(const char *store, const struct history_file *f, struct buf *out)
{
	const struct death d = {
		.root = "", .store = store, .pid = f->pid, .boot_id = f->boot_id,
		.kills = f->kills, .clock_ns = f->t1_ns, .wall_ns = history_wall_ns(f, f->t1_ns),
	};

	buf_puts(out, "the recorder ended without saying so: ");
	death_put_cause(&d, out);
}

static int make_incident(const char *store, const struct history_file *f, const char *end,
			 int64_t *id, struct err *err)
{
	uint64_t to_ns = history_wall_ns(f, f->t1_ns);
	struct history_keep keep = {.from_ns = to_ns - WINDOW_NS, .to_ns = to_ns,
				    .trigger_ns = to_ns, .rule = DEATH_RULE, .reason = end,
				    .tell_system = true};

	/* Its own file, not that of the recorder before. */
	if (keep.from_ns < history_wall_ns(f, f->t0_ns))
		keep.from_ns = history_wall_ns(f, f->t0_ns);
	return history_keep(store, &keep, id, err);
}

/* Returns whether an incident was made. */
static bool settle(const char *store, const struct history_files *files, uint32_t i,
		   bool with_incident)
{
	const struct history_file *f = &files->all[i];
	char time[OS_TIME_TEXT_BYTES];
	struct buf end = {0};
	struct err err = {0};
	const char *went = went_on(files, i);
	int64_t id = 0;
	int rc = 0;

	if (went)
		buf_puts(&end, went);
	else
		put_end(store, f, &end);
	os_time_text(history_wall_ns(f, f->t1_ns), time);
	with_incident &= !went && f->t1_ns > f->t0_ns;     /* events count, too */
	if (with_incident && !end.failed)
		rc = make_incident(store, f, end.data, &id, &err);
	if (!rc && !end.failed)
		rc = history_settle(f->path, end.data, &err);
	if (rc)
		cmd_note("the history in %s cannot be completed: %s", f->path, err.text);
	else if (id)
		cmd_note("incident %" PRId64 ": %s; its last data is from %s", id, end.data, time);
	buf_free(&end);
	return id != 0;
}

static void settle_all(const char *store)
{
	struct history_files files = {0};
	uint32_t i, made = 0;

	if (history_list(store, &files, NULL))
		return;
	for (i = files.n; i--;) {
		struct history_file *f = &files.all[i];

		if (!history_is_left(f->path))
			continue;
		history_look(f, false);
		history_drop_blank(f);
		if (f->readable && !f->locked)
			made += settle(store, &files, i, made < INCIDENTS_MAX);
	}
	history_files_free(&files);
}

void cmd_settle_deaths(const char *store)
{
	struct os_file *lock = NULL;
	struct buf path = {0};
	struct os_file_info info;

	/* One at a time; and only where the files are ours. */
	buf_printf(&path, "%s%s", store, HISTORY_SUFFIX);
	if (!path.failed && !os_path_info(path.data, &info, NULL) && info.uid == os_uid()) {
		buf_puts(&path, "/settle.lock");
		if (!path.failed && !os_lock(path.data, &lock, NULL))
			settle_all(store);
	}
	os_close(lock);
	buf_free(&path);
}
