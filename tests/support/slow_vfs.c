#include "slow_vfs.h"

#include "base/os.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A file of ours: the methods, then the real file of the default VFS. */
struct slow_file {
	sqlite3_file base;
	sqlite3_file *real;
};

static sqlite3_vfs slow, *real;
static _Atomic uint64_t rate;
static _Atomic bool is_full;

static sqlite3_file *real_file(sqlite3_file *file)
{
	return ((struct slow_file *)(void *)file)->real;
}

static int slow_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 offset)
{
	uint64_t bytes_per_s = atomic_load(&rate);

	if (atomic_load(&is_full))
		return SQLITE_FULL;
	if (bytes_per_s)
		os_sleep_ns((uint64_t)n * (uint64_t)NS_PER_SEC / bytes_per_s);
	return real_file(file)->pMethods->xWrite(real_file(file), bytes, n, offset);
}

static int slow_close(sqlite3_file *file)
{
	return real_file(file)->pMethods->xClose(real_file(file));
}

static int slow_read(sqlite3_file *file, void *to, int n, sqlite3_int64 offset)
{
	return real_file(file)->pMethods->xRead(real_file(file), to, n, offset);
}

static int slow_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return real_file(file)->pMethods->xTruncate(real_file(file), size);
}

static int slow_sync(sqlite3_file *file, int flags)
{
	return real_file(file)->pMethods->xSync(real_file(file), flags);
}

static int slow_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_file(file)->pMethods->xFileSize(real_file(file), size);
}

static int slow_lock(sqlite3_file *file, int level)
{
	return real_file(file)->pMethods->xLock(real_file(file), level);
}

static int slow_unlock(sqlite3_file *file, int level)
{
	return real_file(file)->pMethods->xUnlock(real_file(file), level);
}

static int slow_reserved(sqlite3_file *file, int *out)
{
	return real_file(file)->pMethods->xCheckReservedLock(real_file(file), out);
}

static int slow_control(sqlite3_file *file, int op, void *arg)
{
	return real_file(file)->pMethods->xFileControl(real_file(file), op, arg);
}

static int slow_sector(sqlite3_file *file)
{
	return real_file(file)->pMethods->xSectorSize(real_file(file));
}

static int slow_device(sqlite3_file *file)
{
	return real_file(file)->pMethods->xDeviceCharacteristics(real_file(file));
}

static int slow_shm_map(sqlite3_file *file, int page, int n, int extend, void volatile **out)
{
	return real_file(file)->pMethods->xShmMap(real_file(file), page, n, extend, out);
}

static int slow_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return real_file(file)->pMethods->xShmLock(real_file(file), offset, n, flags);
}

static void slow_shm_barrier(sqlite3_file *file)
{
	real_file(file)->pMethods->xShmBarrier(real_file(file));
}

static int slow_shm_unmap(sqlite3_file *file, int remove)
{
	return real_file(file)->pMethods->xShmUnmap(real_file(file), remove);
}

static const sqlite3_io_methods slow_methods = {
	.iVersion = 2,
	.xClose = slow_close,
	.xRead = slow_read,
	.xWrite = slow_write,
	.xTruncate = slow_truncate,
	.xSync = slow_sync,
	.xFileSize = slow_size,
	.xLock = slow_lock,
	.xUnlock = slow_unlock,
	.xCheckReservedLock = slow_reserved,
	.xFileControl = slow_control,
	.xSectorSize = slow_sector,
	.xDeviceCharacteristics = slow_device,
	.xShmMap = slow_shm_map,
	.xShmLock = slow_shm_lock,
	.xShmBarrier = slow_shm_barrier,
	.xShmUnmap = slow_shm_unmap,
};

static int slow_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct slow_file *mine = (struct slow_file *)(void *)file;
	int rc;

	(void)vfs;
	mine->real = (sqlite3_file *)(void *)(mine + 1);
	rc = real->xOpen(real, name, mine->real, flags, out);
	mine->base.pMethods = mine->real->pMethods ? &slow_methods : NULL;
	return rc;
}

void slow_vfs_install(uint64_t bytes_per_s)
{
	real = sqlite3_vfs_find(NULL);
	slow = *real;
	slow.zName = "slow";
	slow.szOsFile = (int)sizeof(struct slow_file) + real->szOsFile;
	slow.xOpen = slow_open;
	slow.pNext = NULL;
	slow_vfs_set(bytes_per_s, false);
	sqlite3_vfs_register(&slow, 1);
}

void slow_vfs_set(uint64_t bytes_per_s, bool full)
{
	atomic_store(&rate, bytes_per_s);
	atomic_store(&is_full, full);
}

void slow_vfs_remove(void)
{
	sqlite3_vfs_unregister(&slow);
	sqlite3_vfs_register(real, 1);
}
