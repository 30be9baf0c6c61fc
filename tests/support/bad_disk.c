#include "tests/support/bad_disk.h"

#include "base/os.h"

#include <sqlite3.h>

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METHODS_MAX = 8, FILES_MAX = 32, SECTOR = 512 };

static sqlite3_vfs ours, *theirs;
static atomic_long writes_left = -1;
static _Atomic uint64_t rate;
static const char *_Atomic blocker;
static atomic_bool hanging, breaking;

/* SQLite has a set of methods for each way of locking; each gets a twin with some of ours. */
static struct {
	const sqlite3_io_methods *original;
	sqlite3_io_methods twin;
} sets[METHODS_MAX];

static const sqlite3_io_methods *original_of(const sqlite3_file *file)
{
	size_t i = 0;

	while (&sets[i].twin != file->pMethods)
		i++;
	return sets[i].original;
}

/* ---- a power cut ----------------------------------------------------------------------------- */

/* A file by name, as it was at its last sync. */
static struct watched {
	char path[400];
	sqlite3_file *open;
	uint8_t *synced;
	size_t nsynced;
} files[FILES_MAX];

static bool watching, happened;
static long writes_to_cut;                   /* and syncs; 0 = none comes */
static char image_dir[300];
static uint64_t chance_state;

static struct watched *watched_by(const char *path)
{
	size_t i;

	for (i = 0; i < FILES_MAX && files[i].path[0] && strcmp(files[i].path, path) != 0; i++)
		;
	assert(i < FILES_MAX);
	snprintf(files[i].path, sizeof(files[i].path), "%s", path);
	return &files[i];
}

static struct watched *watched_of(const sqlite3_file *file)
{
	size_t i = 0;

	while (watching && i < FILES_MAX && files[i].open != file)
		i++;
	return watching && i < FILES_MAX ? &files[i] : NULL;
}

static uint8_t *load(const char *path, size_t *n)
{
	struct buf bytes = {0};
	uint8_t *copy = NULL;

	*n = 0;
	if (!os_load(path, (size_t)64 << 20, &bytes, NULL)) {
		copy = malloc(bytes.len + 1);
		assert(copy);
		if (bytes.len)
			memcpy(copy, bytes.data, bytes.len);
		*n = bytes.len;
	}
	buf_free(&bytes);
	return copy;
}

static bool lot(void)
{
	chance_state ^= chance_state << 13;
	chance_state ^= chance_state >> 7;
	chance_state ^= chance_state << 17;
	return chance_state >> 40 & 1;
}

/* The file as it is now, but for sectors that fall back to what was synced. */
static void put_image(const struct watched *w)
{
	size_t n, at, part, all;
	uint8_t *now = load(w->path, &n);
	struct os_file *file = NULL;
	char path[800];

	if (!now)
		return;
	all = n > w->nsynced && lot() ? n : w->nsynced < n ? w->nsynced : n;
	for (at = 0; at < all; at += SECTOR) {
		part = all - at < SECTOR ? all - at : SECTOR;
		if (at + part <= w->nsynced && lot())
			memcpy(now + at, w->synced + at, part);
		else if (at >= w->nsynced && lot())
			memset(now + at, 0, part);
	}
	snprintf(path, sizeof(path), "%s/%s", image_dir, os_base_name(w->path));
	if (!os_open(path, OS_REPLACE, &file, NULL) && all)
		os_write(file, now, all, NULL);
	os_close(file);
	free(now);
}

static void look_for_cut(void)
{
	size_t i;

	if (!writes_to_cut || --writes_to_cut)
		return;
	happened = true;
	for (i = 0; i < FILES_MAX && files[i].path[0]; i++)
		put_image(&files[i]);
}

static int sync_file(sqlite3_file *file, int flags)
{
	struct watched *w = watched_of(file);

	if (!w)
		return original_of(file)->xSync(file, flags);
	look_for_cut();
	free(w->synced);                     /* this disk holds what the other one will lose */
	w->synced = load(w->path, &w->nsynced);
	return SQLITE_OK;
}

static int close_file(sqlite3_file *file)
{
	struct watched *w = watched_of(file);

	if (w)
		w->open = NULL;
	return original_of(file)->xClose(file);
}

void bad_disk_watch(void)
{
	watching = true;
}

void bad_disk_cut_after(long writes, const char *dir, uint64_t seed)
{
	snprintf(image_dir, sizeof(image_dir), "%s", dir);
	chance_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	happened = false;
	writes_to_cut = writes + 1;
}

bool bad_disk_cut_happened(void)
{
	return happened;
}

/* ---- a disk that is full, slow, broken or hangs ---------------------------------------------- */

static int write_or_not(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 offset)
{
	uint64_t bytes_per_s = atomic_load(&rate);
	const char *path = atomic_load(&blocker);
	long left = atomic_load(&writes_left);

	if (watching)
		look_for_cut();
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
	return original_of(file)->xWrite(file, bytes, n, offset);
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
		sets[i].twin.xSync = sync_file;
		sets[i].twin.xClose = close_file;
		sets[i].original = original;
	}
	sqlite3_mutex_leave(lock);
	return &sets[i].twin;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *got)
{
	int rc = theirs->xOpen(theirs, name, file, flags, got);

	(void)vfs;
	if (file->pMethods && name && watching)
		watched_by(name)->open = file;
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
	size_t i;

	sqlite3_vfs_unregister(&ours);
	sqlite3_vfs_register(theirs, 1);
	for (i = 0; i < FILES_MAX; i++)
		free(files[i].synced);
	memset(files, 0, sizeof(files));
	watching = false;
	writes_to_cut = 0;
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
