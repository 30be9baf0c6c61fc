#include "base/os_file_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int open_flags[] = {
	[OS_READ] = O_RDONLY,
	[OS_CREATE] = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
	[OS_REPLACE] = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
	[OS_APPEND] = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY,
};

#define RACES_MAX 64                         /* openat2() while others rename directories */

static int open_uninterrupted(const char *path, int flags)
{
	int fd;

	do {
		fd = open(path, flags | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* The part of "/proc/PID/root/PATH" behind its "root/"; NULL = another path. */
static const char *below_root(const char *path)
{
	size_t digits;

	if (strncmp(path, "/proc/", 6) != 0)
		return NULL;
	digits = strspn(path + 6, "0123456789");
	path += 6 + digits;
	return digits && strncmp(path, "/root/", 6) == 0 ? path + 6 : NULL;
}

/*
 * A path below the root of a process, as that process would open it: links, also absolute ones,
 * lead to files of its root, not of ours (openat2(2)). ENOSYS: the kernel is older than 5.6; EPERM:
 * a filter of system calls does not know it.
 */
static int open_in_root(const char *path, const char *inside, int flags)
{
	struct open_how how = {.flags = (__u64)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};
	char root[40];
	int races = 0, rootfd, fd;

	snprintf(root, sizeof(root), "%.*s", (int)(inside - path), path);
	rootfd = open_uninterrupted(root, O_PATH | O_DIRECTORY);
	if (rootfd < 0)
		return -1;
	do {
		fd = (int)syscall(__NR_openat2, rootfd, inside, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++races < RACES_MAX)));
	close(rootfd);
	return fd < 0 && (errno == ENOSYS || errno == EPERM) ? open_uninterrupted(path, flags) : fd;
}

static int open_existing(const char *path, int flags)
{
	const char *inside = below_root(path);

	return inside ? open_in_root(path, inside, flags) : open_uninterrupted(path, flags);
}

/* stat(2), or lstat(2) with O_NOFOLLOW. */
static bool look_at(const char *path, int flags, struct stat *out)
{
	int fd;
	bool ok;

	if (!below_root(path))
		return (flags & O_NOFOLLOW ? lstat : stat)(path, out) == 0;
	fd = open_existing(path, O_PATH | flags);
	ok = fd >= 0 && fstat(fd, out) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* First only refer to the file (O_PATH), which never has an effect; then open that very file. */
static int open_plain(const char *path, enum os_open how, intptr_t *fd, struct err *err)
{
	int named = open_existing(path, O_PATH | (how == OS_READ_NO_LINK ? O_NOFOLLOW : 0));
	char by_number[40];
	struct stat st;
	int rc = 0;

	if (named < 0)
		return err_os(err, "cannot open %s", path);
	snprintf(by_number, sizeof(by_number), "/proc/self/fd/%d", named);
	/* O_NONBLOCK: else a lease of the owner (fcntl(2), F_SETLEASE) blocks us for 45 s. */
	if (fstat(named, &st) != 0 || !S_ISREG(st.st_mode))
		rc = err_set(err, ERR_ACCESS, "%s is not a regular file", path);
	else if ((*fd = open_uninterrupted(by_number, O_RDONLY | O_NOCTTY | O_NONBLOCK)) < 0)
		rc = err_os(err, "cannot open %s", path);
	close(named);
	return rc;
}

/* Opening a pipe that nobody reads would wait for ever (O_NONBLOCK: ENXIO); writing may wait. */
static int open_append(const char *path, intptr_t *out, struct err *err)
{
	int fd = open_uninterrupted(path, open_flags[OS_APPEND]);

	if (fd < 0 && errno == ENXIO)
		return err_set(err, ERR_ACCESS, "cannot write %s: it is a pipe that nobody reads; "
			       "start its reader first, or name another file", path);
	if (fd < 0)
		return os_file_cannot(err, "cannot write %s", path);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	*out = fd;
	return 0;
}

int os_file_open(const char *path, enum os_open how, intptr_t *out, struct err *err)
{
	if (how == OS_READ_PLAIN || how == OS_READ_NO_LINK)
		return open_plain(path, how, out, err);
	if (how == OS_APPEND)
		return open_append(path, out, err);
	*out = how == OS_READ ? open_existing(path, open_flags[how])
			      : open_uninterrupted(path, open_flags[how]);
	if (*out >= 0)
		return 0;
	return how == OS_READ ? err_os(err, "cannot open %s", path)
			      : os_file_cannot(err, "cannot write %s", path);
}

void os_file_init(struct os_file *file)
{
	(void)file;
}

void os_file_close(intptr_t handle)
{
	close((int)handle);
}

static void info_of(const struct stat *st, struct os_file_info *out)
{
	out->dev = st->st_dev;
	out->ino = st->st_ino;
	out->size_bytes = (uint64_t)st->st_size;
	out->mtime_ns = (uint64_t)st->st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;
	out->uid = st->st_uid;
	out->mode = st->st_mode & 07777;
	out->regular = S_ISREG(st->st_mode);
	out->directory = S_ISDIR(st->st_mode);
}

int os_file_fd(struct os_file *file)
{
	return (int)file->handle;
}

bool os_handle_info(intptr_t handle, struct os_file_info *out)
{
	struct stat st;

	if (fstat((int)handle, &st) != 0)
		return false;
	info_of(&st, out);
	return true;
}

int os_path_info(const char *path, struct os_file_info *out, struct err *err)
{
	struct stat st;

	if (!look_at(path, 0, &st))
		return err_os(err, "cannot look at %s", path);
	info_of(&st, out);
	return 0;
}

bool os_file_read(struct os_file *file, void *to, size_t n, uint64_t offset, size_t *done)
{
	int fd = (int)file->handle;
	ssize_t part;

	do {
		part = offset == OS_FILE_NEXT ? read(fd, to, n) : pread(fd, to, n, (off_t)offset);
	} while (part < 0 && errno == EINTR);
	*done = part < 0 ? 0 : (size_t)part;
	return part >= 0;
}

bool os_file_write(struct os_file *file, const void *bytes, size_t n, uint64_t offset, size_t *done)
{
	int fd = (int)file->handle;
	ssize_t part;

	do {
		part = offset == OS_FILE_NEXT ? write(fd, bytes, n)
					      : pwrite(fd, bytes, n, (off_t)offset);
	} while (part < 0 && errno == EINTR);
	*done = part < 0 ? 0 : (size_t)part;
	return part >= 0;
}

/* Some file systems have no unnamed files: there the file has a name for a moment. */
static int open_temp(const char *dir)
{
	char path[4096];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (snprintf(path, sizeof(path), "%s/recorder-XXXXXX", dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int os_file_open_temp(intptr_t *out, struct err *err)
{
	const char *dir = os_env("TMPDIR");

	if (!dir || !*dir)
		dir = "/var/tmp";
	*out = open_temp(dir);
	if (*out >= 0)
		return 0;
	return os_file_cannot(err, "cannot create a temporary file in %s (TMPDIR names another "
			      "folder)", dir);
}

/* The value of a number in the environment; false when there is none. */
static bool env_number(const char *name, uint32_t *out)
{
	const char *text = os_env(name);
	char *end;
	unsigned long value;

	if (!text || *text < '0' || *text > '9')
		return false;
	value = strtoul(text, &end, 10);
	*out = (uint32_t)value;
	return !*end && value < UINT32_MAX;
}

void os_file_hand_over(struct os_file *file)
{
	uint32_t uid, gid;

	if (geteuid() == 0 && env_number("SUDO_UID", &uid) && env_number("SUDO_GID", &gid) &&
	    fchown(os_file_fd(file), uid, gid) != 0)
		return;                          /* vfat, NFS with root_squash: it stays root's */
}

void os_file_show(struct os_file *file)
{
	fchmod(os_file_fd(file), 0644);
}

void os_make_room(const char *path, uint64_t bytes)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	while (fallocate(fd, 0, 0, (off_t)bytes) != 0 && errno == EINTR)
		;
	close(fd);
}

int os_sync(struct os_file *file, struct err *err)
{
	if (fsync((int)file->handle) != 0)
		return err_os(err, "cannot write %s to the disk", file->path);
	return 0;
}

void os_sync_soon(struct os_file *file)
{
	sync_file_range((int)file->handle, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/* A name is in its directory. One that cannot be opened or synced is left to the system. */
static int sync_directory(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return 0;
	if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
		rc = err_os(err, "cannot write the directory %s to the disk", path);
	close(fd);
	return rc;
}

int os_rename(const char *from, const char *to, struct err *err)
{
	struct buf dir = {0};
	int rc;

	os_dirname(to, &dir);
	rc = buf_check(&dir, "a directory name", err);
	if (!rc && rename(from, to) != 0)
		rc = err_os(err, "cannot rename %s to %s", from, to);
	if (!rc)
		rc = sync_directory(buf_text(&dir), err);
	buf_free(&dir);
	return rc;
}

int os_remove(const char *path, struct err *err)
{
	if (unlink(path) != 0)
		return err_os(err, "cannot remove %s", path);
	return 0;
}

void os_remove_dir(const char *path)
{
	rmdir(path);
}

static int make_dir(const char *path, struct err *err)
{
	struct stat st;

	if (mkdir(path, 0700) == 0 ||
	    (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	return os_file_cannot(err, "cannot make the directory %s", path);
}

int os_mkdirs(const char *path, struct err *err)
{
	struct buf part = {0};
	int rc = 0;
	size_t i;

	buf_puts(&part, path);
	rc = buf_check(&part, "a directory name", err);
	for (i = 1; !rc && i < part.len; i++) {
		if (part.data[i] != '/')
			continue;
		part.data[i] = '\0';
		rc = make_dir(part.data, err);
		part.data[i] = '/';
	}
	if (!rc)
		rc = make_dir(part.data, err);
	buf_free(&part);
	return rc;
}

bool os_exists(const char *path)
{
	struct stat st;

	return look_at(path, O_NOFOLLOW, &st);
}

int os_list(const char *dir, int (*each)(void *ctx, const char *name), void *ctx, struct err *err)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return err_os(err, "cannot read the directory %s", dir);
	while ((entry = readdir(d)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (each(ctx, entry->d_name))
			break;
	}
	closedir(d);
	return 0;
}

int os_free_bytes(const char *dir, uint64_t *free_bytes, uint64_t *total_bytes, struct err *err)
{
	struct statvfs st;

	if (statvfs(dir, &st) != 0)
		return err_os(err, "cannot look at the disk of %s", dir);
	*free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	*total_bytes = (uint64_t)st.f_blocks * st.f_frsize;
	return 0;
}

void os_full_path(const char *path, struct buf *out)
{
	char *here = *path == '/' ? NULL : getcwd(NULL, 0);

	if (here)
		buf_printf(out, "%s/", here);
	buf_puts(out, path);
	free(here);
}

/* The standard streams are the process's own and constant: no state of ours. */
struct os_file *os_stdout(void)
{
	static struct os_file file = {.handle = 1, .standard = true, .path = "standard output"};

	return &file;
}

struct os_file *os_stdin(void)
{
	static struct os_file file = {.handle = 0, .standard = true, .path = "standard input"};

	return &file;
}

struct os_file *os_stderr(void)
{
	static struct os_file file = {.handle = 2, .standard = true, .path = "standard error"};

	return &file;
}

bool os_is_terminal(struct os_file *file)
{
	return isatty((int)file->handle);
}

unsigned os_terminal_columns(void)
{
	struct winsize size;

	if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return 80;
}

bool os_terminal_styles(void)
{
	return true;
}

intptr_t os_file_open_lock(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bool os_file_lock(struct os_file *file, bool *held)
{
	*held = flock((int)file->handle, LOCK_EX | LOCK_NB) != 0;
	return !*held;
}

void os_file_empty(struct os_file *file)
{
	if (ftruncate((int)file->handle, 0) != 0)
		return;                      /* then the new text stands over the old one */
}
