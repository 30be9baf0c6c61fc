#include "tests/support/full_disk.h"

#include "base/os.h"

#include <sqlite3.h>

#include <assert.h>
#include <stddef.h>

enum { METHODS_MAX = 8 };

static sqlite3_vfs ours, *theirs;
static long writes_left = -1;
static const char *blocker;

/* SQLite has a set of methods for each way of locking; each gets a twin that differs in xWrite. */
static struct {
	const sqlite3_io_methods *original;
	sqlite3_io_methods twin;
} sets[METHODS_MAX];

static int write_or_not(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 offset)
{
	size_t i = 0;

	while (&sets[i].twin != file->pMethods)
		i++;
	if (writes_left == 0 || (blocker && os_exists(blocker)))
		return SQLITE_FULL;
	if (writes_left > 0)
		writes_left--;
	return sets[i].original->xWrite(file, bytes, n, offset);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *got)
{
	int rc = theirs->xOpen(theirs, name, file, flags, got);
	size_t i;

	(void)vfs;
	if (!file->pMethods)
		return rc;
	for (i = 0; sets[i].original && sets[i].original != file->pMethods; i++)
		assert(i + 1 < METHODS_MAX);
	sets[i].original = file->pMethods;
	sets[i].twin = *file->pMethods;
	sets[i].twin.xWrite = write_or_not;
	file->pMethods = &sets[i].twin;
	return rc;
}

void full_disk_install(void)
{
	theirs = sqlite3_vfs_find(NULL);
	ours = *theirs;
	ours.zName = "full-disk";
	ours.xOpen = open_file;
	sqlite3_vfs_register(&ours, 1);
}

void full_disk_after(long writes)
{
	writes_left = writes;
}

void full_disk_while_exists(const char *path)
{
	blocker = path;
}
