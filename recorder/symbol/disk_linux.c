/*
 * Everything is relative to the open directory, so it does not matter what has become of its path.
 * A file's modification time is the time of its last use.
 */
#include "symbol/disk.h"

#include "base/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".sym"
#define UNFINISHED ".new-"               /* followed by the writer's pid */
#define KEEP_PCT 90                      /* eviction also makes some room for later files */

enum { NAME_BYTES = 2 * BUILD_ID_MAX + sizeof(SUFFIX) };

struct symbol_disk {
	int fd;                          /* of the directory */
	uint64_t max_bytes;
	_Atomic uint64_t bytes, found, written, evicted;
	_Atomic bool inside;             /* a thread, for ever when the disk hangs */
	char path[];
};

struct item {
	uint64_t used_ns, bytes;
	char name[NAME_BYTES];
};

struct list {
	struct item *items;
	uint32_t n, room;
	uint64_t bytes;
};

/* ---- names ----------------------------------------------------------------------------------- */

static void name_of(const struct object_key *key, char out[NAME_BYTES])
{
	unsigned i;

	for (i = 0; i < key->build_id_bytes; i++)
		snprintf(out + 2 * i, 3, "%02x", key->build_id[i]);
	snprintf(out + 2 * i, sizeof(SUFFIX), SUFFIX);
}

static bool is_index_name(const char *name)
{
	size_t n = strlen(name);

	return n < NAME_BYTES && n >= sizeof(SUFFIX) &&
	       !strcmp(name + n - (sizeof(SUFFIX) - 1), SUFFIX);
}

static uint64_t mtime_of(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;
}

/* ---- what is there --------------------------------------------------------------------------- */

/* Remove unfinished files of recorders that were killed, once nobody can still be writing them. */
static void list_file(struct symbol_disk *d, const char *name, struct list *list)
{
	struct item *item;
	struct stat st;

	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (!strncmp(name, UNFINISHED, strlen(UNFINISHED))) {
		if (mtime_of(&st) + 60 * NS_PER_SEC < os_wall_ns())
			unlinkat(d->fd, name, 0);
	} else if (is_index_name(name)) {
		if (list->n >= SYMBOL_DISK_FILES_MAX ||
		    ARRAY_ROOM(list->items, list->room, list->n + 1)) {
			unlinkat(d->fd, name, 0);
			return;
		}
		item = &list->items[list->n++];
		item->used_ns = mtime_of(&st);
		item->bytes = (uint64_t)st.st_size;
		snprintf(item->name, sizeof(item->name), "%s", name);
		list->bytes += item->bytes;
	}
}

static void list_files(struct symbol_disk *d, struct list *list)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		list_file(d, entry->d_name, list);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

static int by_use(const void *a, const void *b)
{
	return compare_u64(((const struct item *)a)->used_ns, ((const struct item *)b)->used_ns);
}

/* Evict the least recently used files until n more bytes fit. */
static void make_room(struct symbol_disk *d, uint64_t n)
{
	struct list list = {0};
	uint64_t keep = d->max_bytes / 100 * KEEP_PCT;
	uint32_t i;

	list_files(d, &list);
	if (list.n)
		qsort(list.items, list.n, sizeof(*list.items), by_use);
	for (i = 0; i < list.n && list.bytes + n > keep; i++) {
		if (unlinkat(d->fd, list.items[i].name, 0))
			continue;
		list.bytes -= list.items[i].bytes;
		atomic_fetch_add(&d->evicted, 1);
	}
	atomic_store(&d->bytes, list.bytes);
	free(list.items);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int check_dir(struct symbol_disk *d, struct err *err)
{
	struct stat st;

	if (fstat(d->fd, &st))
		return err_os(err, "cannot look at the symbol cache %s", d->path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_ACCESS, "the symbol cache %s belongs to user %u: choose "
			       "another directory with --symbol-cache", d->path,
			       (unsigned)st.st_uid);
	if ((st.st_mode & 077) && fchmod(d->fd, 0700))
		return err_os(err, "cannot make the symbol cache %s private", d->path);
	return 0;
}

int symbol_disk_open(const char *dir, uint64_t max_bytes, struct symbol_disk **out, struct err *err)
{
	struct symbol_disk *d = calloc(1, sizeof(*d) + strlen(dir) + 1);
	int rc;

	if (!d)
		return err_memory(err, "for the symbol cache");
	d->fd = -1;
	d->max_bytes = max_bytes;
	memcpy(d->path, dir, strlen(dir) + 1);
	rc = os_mkdirs(dir, err);
	if (!rc) {
		d->fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = d->fd < 0 ? err_os(err, "cannot open the symbol cache %s", dir)
			       : check_dir(d, err);
	}
	if (rc) {
		symbol_disk_close(d);
		return rc;
	}
	make_room(d, 0);
	*out = d;
	return 0;
}

void symbol_disk_close(struct symbol_disk *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

void symbol_disk_use(const struct symbol_disk *d, struct symbol_disk_use *out)
{
	*out = (struct symbol_disk_use){
		.bytes = atomic_load(&d->bytes),
		.max_bytes = d->max_bytes,
		.found = atomic_load(&d->found),
		.written = atomic_load(&d->written),
		.evicted = atomic_load(&d->evicted),
	};
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_checked(const struct symbol_disk *d, const char *name, struct os_file **out,
			struct err *err)
{
	struct os_file *file = NULL;
	struct os_file_info info;
	char path[128];
	int rc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", d->fd, name);
	rc = os_open(path, OS_READ_NO_LINK, &file, err);
	if (rc == ERR_NOT_FOUND)
		return err_set(err, rc, "the symbol cache has no %s", name);
	if (!rc)
		rc = os_file_info(file, &info, err);
	if (rc == ERR_ACCESS || (!rc && info.uid != geteuid()))
		rc = err_set(err, ERR_ACCESS, "%s/%s is not a file of this user", d->path, name);
	if (rc)
		os_close(file);
	else
		*out = file;
	return rc;
}

/* One thread at a time; nobody waits for it, since it may hang. */
static int enter(struct symbol_disk *d, struct err *err)
{
	return atomic_exchange(&d->inside, true)
		       ? err_set(err, ERR_NOT_FOUND,
				 "the symbol cache %s is in use by another thread, which may hang",
				 d->path)
		       : 0;
}

static void leave(struct symbol_disk *d)
{
	atomic_store(&d->inside, false);
}

int symbol_disk_get(struct symbol_disk *d, const struct object_key *key, struct os_file **out,
		    struct err *err)
{
	char name[NAME_BYTES];
	int rc = enter(d, err);

	if (rc)
		return rc;
	name_of(key, name);
	rc = open_checked(d, name, out, err);
	if (!rc) {
		utimensat(d->fd, name, NULL, AT_SYMLINK_NOFOLLOW);
		atomic_fetch_add(&d->found, 1);
	}
	leave(d);
	return rc;
}

static void remove_file(struct symbol_disk *d, const char *name)
{
	struct stat st;

	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) || unlinkat(d->fd, name, 0))
		return;
	if (atomic_load(&d->bytes) >= (uint64_t)st.st_size)
		atomic_fetch_sub(&d->bytes, (uint64_t)st.st_size);
}

void symbol_disk_drop(struct symbol_disk *d, const struct object_key *key)
{
	char name[NAME_BYTES];

	if (enter(d, NULL))
		return;
	name_of(key, name);
	remove_file(d, name);
	leave(d);
}

/* No sync: after a crash of the machine, the checksum in the file reveals the damage. */
static int write_file(const struct symbol_disk *d, const char *name, const void *bytes, size_t n,
		      struct err *err)
{
	char fresh[64], path[128];
	struct os_file *file = NULL;
	int rc;

	snprintf(fresh, sizeof(fresh), UNFINISHED "%u", os_pid());
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", d->fd, fresh);
	unlinkat(d->fd, fresh, 0);
	rc = os_open(path, OS_CREATE, &file, err);
	if (!rc)
		rc = os_write(file, bytes, n, err);
	os_close(file);
	if (!rc && renameat(d->fd, fresh, d->fd, name))
		rc = err_os(err, "cannot write %s/%s", d->path, name);
	if (rc)
		unlinkat(d->fd, fresh, 0);
	return rc;
}

static int put_file(struct symbol_disk *d, const char *name, const void *bytes, size_t n,
		    struct err *err)
{
	int rc;

	remove_file(d, name);
	if (n > d->max_bytes / 2)
		return err_set(err, ERR_LIMIT, "%zu bytes take over half of the symbol cache", n);
	if (atomic_load(&d->bytes) + n > d->max_bytes)
		make_room(d, n);
	rc = write_file(d, name, bytes, n, err);
	if (!rc) {
		atomic_fetch_add(&d->bytes, n);
		atomic_fetch_add(&d->written, 1);
	}
	return rc;
}

int symbol_disk_put(struct symbol_disk *d, const struct object_key *key, const void *bytes,
		    size_t n, struct err *err)
{
	char name[NAME_BYTES];
	int rc = enter(d, err);

	if (rc)
		return rc;
	name_of(key, name);
	rc = put_file(d, name, bytes, n, err);
	leave(d);
	return rc;
}
