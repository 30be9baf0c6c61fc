#undef _FORTIFY_SOURCE                       /* its inline functions have these names */
#include "tests/support/io_walk_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define CAN(fault) (1u << IO_##fault)
#define READS (CAN(BREAKS) | CAN(BROKEN) | CAN(INTERRUPTED) | CAN(SHORT))
#define WRITES (READS | CAN(FULL))
#define SYNCS (CAN(BREAKS) | CAN(BROKEN) | CAN(INTERRUPTED) | CAN(FULL))
#define NAMES (CAN(BREAKS) | CAN(BROKEN))

static enum io_fault fault;
static unsigned long fail_at, count;
static const char *failed;
static bool (*make)(const char *path, int *fd);

const char *io_fault_text(enum io_fault which)
{
	static const char *const texts[IO_FAULTS] = {
		[IO_BREAKS] = "EIO once", [IO_BROKEN] = "EIO from there on",
		[IO_FULL] = "ENOSPC from there on", [IO_INTERRUPTED] = "EINTR once",
		[IO_SHORT] = "a short count",
	};

	return texts[which];
}

void io_walk_fail_at(enum io_fault which, unsigned long n)
{
	fault = which;
	fail_at = n;
	count = 0;
	failed = NULL;
}

void io_walk_make(bool (*open_made)(const char *path, int *fd))
{
	make = open_made;
}

const char *io_walk_end(void)
{
	fail_at = 0;
	return failed;
}

/* Whether this call fails; *n is what it may do at most. */
static bool fails(const char *call, unsigned can, size_t *n)
{
	static const int codes[IO_FAULTS] = {
		[IO_BREAKS] = EIO, [IO_BROKEN] = EIO, [IO_FULL] = ENOSPC, [IO_INTERRUPTED] = EINTR,
	};
	bool lasts = fault == IO_BROKEN || fault == IO_FULL;

	if (!fail_at || !(can & 1u << fault) || (fault == IO_SHORT && *n < 2))
		return false;
	if (++count < fail_at || (count > fail_at && !lasts))
		return false;
	if (!failed)
		failed = call;
	if (fault == IO_SHORT) {
		*n /= 2;
		return false;
	}
	errno = codes[fault];
	return true;
}

static bool fails_on(int fd, const char *call, unsigned can, size_t *n)
{
	return fd > STDERR_FILENO && fails(call, can, n);
}

static int open_file(const char *path, int flags, mode_t mode)
{
	unsigned can = CAN(BREAKS) | CAN(BROKEN) | CAN(INTERRUPTED);
	int made;

	if (make && make(path, &made))
		return made;
	if (fails("open", flags & O_CREAT ? can | CAN(FULL) : can, NULL))
		return -1;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* A mode is passed with O_CREAT and O_TMPFILE only; what is read without one is not used. */
#define DEFINE_OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list args; \
		mode_t mode; \
\
		va_start(args, flags); \
		mode = va_arg(args, mode_t); \
		va_end(args); \
		return open_file(path, flags, mode); \
	}

DEFINE_OPEN(open)
DEFINE_OPEN(open64)

int mkdir(const char *path, mode_t mode)
{
	return fails("mkdir", NAMES | CAN(FULL), NULL)
		       ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *from, const char *to)
{
	return fails("rename", NAMES | CAN(FULL), NULL)
		       ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
	return fails("unlink", NAMES, NULL) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
	return fails("rmdir", NAMES, NULL)
		       ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

ssize_t read(int fd, void *bytes, size_t n)
{
	return fails_on(fd, "read", READS, &n) ? -1 : syscall(SYS_read, fd, bytes, n);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	return fails_on(fd, "write", WRITES, &n) ? -1 : syscall(SYS_write, fd, bytes, n);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
	return fails_on(fd, "pread", READS, &n) ? -1 : syscall(SYS_pread64, fd, bytes, n, at);
}

ssize_t pread64(int fd, void *bytes, size_t n, off64_t at)
{
	return pread(fd, bytes, n, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return fails_on(fd, "pwrite", WRITES, &n) ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	return pwrite(fd, bytes, n, at);
}

/* Nothing is synced: no power fails here, and thousands of failures are walked. */
int fsync(int fd)
{
	return fails_on(fd, "fsync", SYNCS, NULL) ? -1 : 0;
}

int fdatasync(int fd)
{
	return fails_on(fd, "fdatasync", SYNCS, NULL) ? -1 : 0;
}

int ftruncate(int fd, off_t size)
{
	return fails_on(fd, "ftruncate", SYNCS, NULL) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off64_t size)
{
	return ftruncate(fd, size);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	if (fails_on(fd, "mmap", NAMES, NULL))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int protection, int flags, int fd, off64_t offset)
{
	return mmap(at, n, protection, flags, fd, offset);
}
