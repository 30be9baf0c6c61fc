#include "tests/support/bad_disk.h"

#include "base/os.h"

#include <sqlite3.h>

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

enum { METHODS_MAX = 8 };

static sqlite3_vfs ours, *theirs;
static atomic_long writes_left = -1;
static _Atomic uint64_t rate;
static const char *_Atomic blocker;
static atomic_bool hanging, breaking;

/* SQLite has a set of methods for each way of locking; each gets a twin that differs in xWrite. */
static struct {
	const sqlite3_io_methods *original;
	sqlite3_io_methods twin;
} sets[METHODS_MAX];

static int write_or_not(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 offset)
{
	uint64_t bytes_per_s = atomic_load(&rate);
	const char *path = atomic_load(&blocker);
	long left = atomic_load(&writes_left);
	size_t i = 0;

	while (&sets[i].twin != file->pMethods)
		i++;
	while (atomic_load(&hanging))
		os_sleep_ns(NS_PER_MS);
	if (atomic_load(&breaking))
		return SQLITE_IOERR_WRITE;
	if (left == 0 || (path && os_exists(path)))
		return SQLITE_FULL;
	if (left > 0)
		atomic_store(&writes_left, left - 1);
	if (bytes_per_s)
		os_sleep_ns((uint64_t)n * (uint64_t)NS_PER_SEC / bytes_per_s);
	return sets[i].original->xWrite(file, bytes, n, offset);
}

static const sqlite3_io_methods *twin_of(const sqlite3_io_methods *original)
{
	sqlite3_mutex *lock = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
	size_t i;

	sqlite3_mutex_enter(lock);
	for (i = 0; sets[i].original && sets[i].original != original; i++)
		assert(i + 1 < METHODS_MAX);
	if (!sets[i].original) {
		sets[i].twin = *original;
		sets[i].twin.xWrite = write_or_not;
		sets[i].original = original;
	}
	sqlite3_mutex_leave(lock);
	return &sets[i].twin;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *got)
{
	int rc = theirs->xOpen(theirs, name, file, flags, got);

	(void)vfs;
	if (file->pMethods)
		file->pMethods = twin_of(file->pMethods);
	return rc;
}

void bad_disk_install(void)
{
	theirs = sqlite3_vfs_find(NULL);
	ours = *theirs;
	ours.zName = "bad-disk";
	ours.xOpen = open_file;
	ours.pNext = NULL;
	bad_disk_slow(0);
	bad_disk_full_after(-1);
	bad_disk_full_while_exists(NULL);
	sqlite3_vfs_register(&ours, 1);
}

void bad_disk_remove(void)
{
	sqlite3_vfs_unregister(&ours);
	sqlite3_vfs_register(theirs, 1);
}

void bad_disk_slow(uint64_t bytes_per_s)
{
	atomic_store(&rate, bytes_per_s);
}

void bad_disk_full_after(long writes)
{
	atomic_store(&writes_left, writes);
}

void bad_disk_breaks(bool broken)
{
	atomic_store(&breaking, broken);
}

void bad_disk_hang(bool hangs)
{
	atomic_store(&hanging, hangs);
}

void bad_disk_full_while_exists(const char *path)
{
	atomic_store(&blocker, path);
}
