/*
 * The file and its name. While a recorder writes, somebody may remove the file or put another one
 * in its place; SQLite goes on in a file that nobody can open any more. And a file may be damaged:
 * it is moved away, so that recording goes on with a new one.
 */
#include "store/store_private.h"

#include <stdio.h>
#include <string.h>

/* SQLite finds the log and its index by these names, also beside a file that was moved. */
static const char *const parts[STORE_PARTS] = {"", "-wal", "-shm", REDO_SUFFIX};

static void look(const struct store *s, size_t part, struct os_file_info *out)
{
	struct buf path = {0};

	if (beside(s, parts[part], &path, NULL) || os_path_info(path.data, out, NULL))
		memset(out, 0, sizeof(*out));
	buf_free(&path);
}

static bool same_file(const struct os_file_info *a, const struct os_file_info *b)
{
	return a->ino == b->ino && a->dev == b->dev;
}

void place_note(struct store *s)
{
	size_t i;

	for (i = 0; i < STORE_PARTS; i++)
		look(s, i, &s->files[i]);
}

int store_in_place(const struct store *s, struct err *err)
{
	struct os_file_info info;
	int rc = os_path_info(s->path, &info, err);

	if (rc == ERR_NOT_FOUND)
		return err_set(err, rc, "the store %s was removed", s->path);
	if (!rc && !same_file(&info, &s->files[0]))
		rc = err_set(err, ERR_NOT_FOUND, "the store %s was replaced by another file",
			     s->path);
	return rc;
}

/*
 * SQLite's last step would delete the log by its name, which may be that of another store by now.
 * The log and its index stay only if somebody else has made them.
 */
void place_disconnect(struct store *s)
{
	bool gone = s->mode == STORE_RECORD && s->db && s->files[0].ino &&
		    store_in_place(s, NULL) == ERR_NOT_FOUND;
	struct os_file_info info;
	struct buf path = {0};
	size_t i;

	if (gone)
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (gone && s->redo)
		redo_keep_log(s->redo);
	disconnect(s);
	for (i = 1; gone && i < STORE_PARTS; i++) {
		look(s, i, &info);
		buf_reset(&path);
		if (info.ino && same_file(&info, &s->files[i]) &&
		    !beside(s, parts[i], &path, NULL))
			os_remove(path.data, NULL);
	}
	buf_free(&path);
}

bool store_damaged(const struct store *s)
{
	return s->damaged;
}

/* ---- moving it away ------------------------------------------------------------------------- */

/* "<path>.damaged-20261122-220501", and a number where that is taken. */
static int free_name(const char *path, struct buf *out, struct err *err)
{
	char time[OS_TIME_TEXT_BYTES];
	unsigned n;
	int rc = 0;

	os_time_text(os_wall_ns(), time);
	for (n = 1; !rc && (n == 1 || os_exists(out->data)); n++) {
		buf_reset(out);
		buf_printf(out, "%s.damaged-%.4s%.2s%.2s-%.2s%.2s%.2s", path, time, time + 5,
			   time + 8, time + 11, time + 14, time + 17);
		if (n > 1)
			buf_printf(out, "-%u", n);
		rc = buf_check(out, "a file name", err);
	}
	return rc;
}

/* The file comes last: without it the others mean nothing. */
static int move_parts(const char *path, const char *to, struct err *err)
{
	struct buf old = {0}, new = {0};
	size_t i = STORE_PARTS;
	int rc = 0;

	while (!rc && i--) {
		buf_reset(&old);
		buf_reset(&new);
		buf_printf(&old, "%s%s", path, parts[i]);
		buf_printf(&new, "%s%s", to, parts[i]);
		rc = buf_check(&old, "a file name", err);
		if (!rc)
			rc = buf_check(&new, "a file name", err);
		if (!rc && os_exists(old.data))
			rc = os_rename(old.data, new.data, err);
	}
	buf_free(&old);
	buf_free(&new);
	return rc;
}

/* A recorder makes the lock file once it knows that the file is a store: without it, keep off. */
static int move_away(const char *path, struct buf *moved, struct err *err)
{
	struct os_file *lock = NULL;
	struct buf lock_path = {0};
	int rc;

	buf_printf(&lock_path, "%s.lock", path);
	rc = buf_check(&lock_path, "a file name", err);
	if (!rc && !os_exists(lock_path.data))
		rc = ERR_NOT_FOUND;
	if (!rc)
		rc = os_lock(lock_path.data, &lock, err);
	if (!rc)
		rc = free_name(path, moved, err);
	if (!rc)
		rc = move_parts(path, moved->data, err);
	os_close(lock);
	buf_free(&lock_path);
	return rc;
}

int store_open_or_replace(const char *path, struct buf *moved, struct store **out, struct err *err)
{
	struct err why = {0};
	bool damaged = false;
	int rc = store_open_saying(path, STORE_RECORD, &damaged, out, err);

	if (!rc || !damaged)
		return rc;
	if (move_away(path, moved, &why)) {
		buf_reset(moved);
		return rc;                   /* the damage is what there is to say */
	}
	return store_open(path, STORE_RECORD, out, err);
}
