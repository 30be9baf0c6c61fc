/*
 * Disk space. On a full disk SQLite in WAL mode can do nothing at all, not even delete. So 8 MB lie
 * beside the store in a file of their own, to be given up when that happens. Long before, below a
 * floor of free space, no incident is begun: a neighbour who fills the disk must not make us erase
 * evidence.
 */
#include "store/store_private.h"

#include "base/array.h"

#define RESERVE_BYTES ((size_t)8 << 20)
#define FLOOR_BYTES ((uint64_t)500 << 20)

static bool free_space(const struct store *s, uint64_t *free_bytes, uint64_t *floor_bytes)
{
	struct buf dir = {0};
	uint64_t total = 0;
	bool known;

	os_dirname(s->path, &dir);
	known = !dir.failed && !os_free_bytes(dir.data, free_bytes, &total, NULL);
	*floor_bytes = s->floor_bytes;
	if (*floor_bytes == UINT64_MAX)
		*floor_bytes = total / 20 < FLOOR_BYTES ? total / 20 : FLOOR_BYTES;
	buf_free(&dir);
	return known;
}

int space_check_floor(struct store *s, struct err *err)
{
	uint64_t free_bytes, floor_bytes;

	/* Where the free space is unknown, writing shows whether there is any. */
	if (!free_space(s, &free_bytes, &floor_bytes) || free_bytes >= floor_bytes)
		return 0;
	return err_set(
		err, ERR_FULL,
		"only %.1f MB are free on the disk of %s, less than the %.1f MB kept free for "
		"others: free some space; until then nothing new is stored, and nothing deleted",
		(double)free_bytes / 1048576, s->path, (double)floor_bytes / 1048576);
}

/* Words without a pattern: a file system that compresses would store zeros in no space. */
static int fill_reserve(struct os_file *file, struct err *err)
{
	uint64_t words[8192], word = 1;
	size_t done, i;
	int rc = 0;

	for (done = 0; !rc && done < RESERVE_BYTES; done += sizeof(words)) {
		for (i = 0; i < COUNT_OF(words); i++)
			words[i] = word *= 0x9e3779b97f4a7c15u;
		rc = os_write(file, words, sizeof(words), err);
	}
	return rc;
}

void space_make_reserve(struct store *s)
{
	uint64_t free_bytes, floor_bytes;
	struct os_file *file = NULL;
	struct buf path = {0};

	if (!s->history && !beside(s, ".reserve", &path, NULL) && !os_exists(path.data) &&
	    free_space(s, &free_bytes, &floor_bytes) &&
	    free_bytes >= floor_bytes + 2 * RESERVE_BYTES &&
	    !os_open(path.data, OS_CREATE, &file, NULL)) {
		if (fill_reserve(file, NULL)) {
			os_close(file);
			file = NULL;
			os_remove(path.data, NULL);
		}
	}
	os_close(file);
	buf_free(&path);
}

bool space_drop_reserve(struct store *s)
{
	struct buf path = {0};
	bool dropped = !beside(s, ".reserve", &path, NULL) && os_exists(path.data) &&
		       !os_remove(path.data, NULL);

	buf_free(&path);
	return dropped;
}

void space_checkpoint(struct store *s)
{
	sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/*
 * In slices of 1 MB, so that a recorder beside us waits for milliseconds only. The statement frees
 * a page with each step; sqlite3_exec() steps to the end.
 */
void space_give_back(struct store *s)
{
	int64_t left = 1, before = 0;

	while (left && left != before) {
		before = left;
		if (sqlite3_exec(s->db, "PRAGMA incremental_vacuum(256)", NULL, NULL, NULL))
			break;
		if (db_int(s, "PRAGMA freelist_count", NO_ARGS, &left, NULL))
			break;
	}
	s->unshrunk = false;
	space_checkpoint(s);
}

uint64_t store_bytes(struct store *s)
{
	static const char sql[] =
		"SELECT (p.page_count - f.freelist_count) * z.page_size FROM "
		"pragma_page_count p, pragma_freelist_count f, pragma_page_size z";
	struct os_file_info log = {0};
	struct buf path = {0};
	int64_t bytes = 0;

	if (db_int(s, sql, NO_ARGS, &bytes, NULL))
		bytes = 0;
	if (beside(s, s->uses_redo ? REDO_SUFFIX : "-wal", &path, NULL) ||
	    os_path_info(path.data, &log, NULL))
		log.size_bytes = 0;
	buf_free(&path);
	return (uint64_t)bytes + log.size_bytes;
}
