#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct os_file {
	int fd;
	bool borrowed;                /* standard streams: os_close() leaves them open */
	const char *path;             /* stands behind the struct, or is constant */
};

static struct os_file *file_new(int fd, const char *path)
{
	size_t n = strlen(path) + 1;
	struct os_file *file = malloc(sizeof(*file) + n);

	if (!file)
		return NULL;
	file->fd = fd;
	file->borrowed = false;
	file->path = memcpy(file + 1, path, n);
	return file;
}

static int open_flags(enum os_open how)
{
	switch (how) {
	case OS_READ:
	case OS_READ_PLAIN:
	case OS_READ_NO_LINK:
		return O_RDONLY;
	case OS_CREATE:
		return O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
	case OS_REPLACE:
		return O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;
	case OS_APPEND:
		return O_WRONLY | O_CREAT | O_APPEND;
	}
	return O_RDONLY;
}

/* For a write, a missing folder is a failure (ERR_IO), not "the named thing is not there". */
static int cannot_write(struct err *err, const char *format, const char *path)
{
	int os_error = errno;

	err_os_code(err, os_error, format, path);
	if (os_error_code(os_error) != ERR_NOT_FOUND)
		return os_error_code(os_error);
	if (err)
		err->code = ERR_IO;
	return ERR_IO;
}

static int open_uninterrupted(const char *path, int flags)
{
	int fd;

	do {
		fd = open(path, flags | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* First only refer to the file (O_PATH), which never has an effect; then open that very file. */
static int open_plain(const char *path, enum os_open how, int *fd, struct err *err)
{
	int named = open_uninterrupted(path, O_PATH | (how == OS_READ_NO_LINK ? O_NOFOLLOW : 0)),
	    rc = 0;
	char by_number[40];
	struct stat st;

	if (named < 0)
		return err_os(err, "cannot open %s", path);
	if (fstat(named, &st) != 0 || !S_ISREG(st.st_mode))
		rc = err_set(err, ERR_ACCESS, "%s is not a regular file", path);
	snprintf(by_number, sizeof(by_number), "/proc/self/fd/%d", named);
	/*
	 * O_NONBLOCK: else a lease of the file's owner (fcntl(2), F_SETLEASE) blocks us for 45 s.
	 */
	if (!rc && (*fd = open_uninterrupted(by_number, O_RDONLY | O_NOCTTY | O_NONBLOCK)) < 0)
		rc = err_os(err, "cannot open %s", path);
	close(named);
	return rc;
}

static int open_any(const char *path, enum os_open how, int *fd, struct err *err)
{
	*fd = open_uninterrupted(path, open_flags(how));
	if (*fd >= 0)
		return 0;
	return how == OS_READ ? err_os(err, "cannot open %s", path)
			      : cannot_write(err, "cannot write %s", path);
}

int os_open(const char *path, enum os_open how, struct os_file **out, struct err *err)
{
	bool plain = how == OS_READ_PLAIN || how == OS_READ_NO_LINK;
	struct os_file *file;
	int fd, rc = (plain ? open_plain : open_any)(path, how, &fd, err);

	if (rc)
		return rc;
	file = file_new(fd, path);
	if (!file) {
		close(fd);
		return err_memory(err, "while opening %s", path);
	}
	*out = file;
	return 0;
}

void os_close(struct os_file *file)
{
	if (!file || file->borrowed)
		return;
	close(file->fd);
	free(file);
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
	return file->fd;
}

int os_file_info(struct os_file *file, struct os_file_info *out, struct err *err)
{
	struct stat st;

	if (fstat(file->fd, &st) != 0)
		return err_os(err, "cannot look at %s", file->path);
	info_of(&st, out);
	return 0;
}

int os_path_info(const char *path, struct os_file_info *out, struct err *err)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return err_os(err, "cannot look at %s", path);
	info_of(&st, out);
	return 0;
}

int os_pread(struct os_file *file, void *to, size_t n, uint64_t offset, size_t *got,
	     struct err *err)
{
	size_t done = 0;

	while (done < n) {
		ssize_t part = pread(file->fd, (char *)to + done, n - done, (off_t)(offset + done));

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return err_os(err, "cannot read %s", file->path);
		if (part == 0)
			break;
		done += (size_t)part;
	}
	*got = done;
	return 0;
}

int os_pwrite(struct os_file *file, const void *bytes, size_t n, uint64_t offset, struct err *err)
{
	size_t done = 0;

	while (done < n) {
		ssize_t part = pwrite(file->fd, (const char *)bytes + done, n - done,
				      (off_t)(offset + done));

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return err_os(err, "cannot write %s", file->path);
		done += (size_t)part;
	}
	return 0;
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

int os_temp(struct os_file **out, struct err *err)
{
	const char *dir = os_env("TMPDIR");
	struct os_file *file;
	int fd;

	if (!dir || !*dir)
		dir = "/var/tmp";
	fd = open_temp(dir);
	if (fd < 0)
		return cannot_write(err, "cannot create a temporary file in %s (TMPDIR names "
				    "another folder)", dir);
	file = file_new(fd, "a temporary file");
	if (!file) {
		close(fd);
		return err_memory(err, "while creating a temporary file");
	}
	*out = file;
	return 0;
}

int os_read_all(struct os_file *file, size_t max_bytes, struct buf *out, struct err *err)
{
	size_t total = 0;

	for (;;) {
		char *to = buf_reserve(out, 16384);
		ssize_t part;

		if (!to)
			return buf_check(out, file->path, err);
		part = read(file->fd, to, 16384);
		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return err_os(err, "cannot read %s", file->path);
		if (part == 0)
			return 0;
		total += (size_t)part;
		if (total > max_bytes)
			return err_set(err, ERR_LIMIT, "%s is larger than its limit of %zu bytes",
				       file->path, max_bytes);
		buf_advance(out, (size_t)part);
	}
}

int os_write(struct os_file *file, const void *bytes, size_t n, struct err *err)
{
	const char *at = bytes;

	while (n) {
		ssize_t part = write(file->fd, at, n);

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return err_os(err, "cannot write %s", file->path);
		at += part;
		n -= (size_t)part;
	}
	return 0;
}

int os_sync(struct os_file *file, struct err *err)
{
	if (fsync(file->fd) != 0)
		return err_os(err, "cannot write %s to the disk", file->path);
	return 0;
}

int os_load(const char *path, size_t max_bytes, struct buf *out, struct err *err)
{
	struct os_file *file = NULL;
	int rc = os_open(path, OS_READ, &file, err);

	if (!rc)
		rc = os_read_all(file, max_bytes, out, err);
	os_close(file);
	return rc;
}

int os_rename(const char *from, const char *to, struct err *err)
{
	if (rename(from, to) != 0)
		return err_os(err, "cannot rename %s to %s", from, to);
	return 0;
}

int os_remove(const char *path, struct err *err)
{
	if (unlink(path) != 0)
		return err_os(err, "cannot remove %s", path);
	return 0;
}

static int make_dir(const char *path, struct err *err)
{
	struct stat st;

	if (mkdir(path, 0700) == 0 ||
	    (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	return cannot_write(err, "cannot make the directory %s", path);
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

	return lstat(path, &st) == 0;
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

/* The standard streams are the process's own and constant: no state of ours. */
struct os_file *os_stdout(void)
{
	static struct os_file file = {.fd = 1, .borrowed = true, .path = "standard output"};

	return &file;
}

struct os_file *os_stderr(void)
{
	static struct os_file file = {.fd = 2, .borrowed = true, .path = "standard error"};

	return &file;
}

bool os_is_terminal(struct os_file *file)
{
	return isatty(file->fd);
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

/* The lock file holds the owner's pid as decimal text, for the error that others get. */
int os_lock(const char *path, struct os_file **out, struct err *err)
{
	char text[24] = "";
	struct os_file *file;
	ssize_t n;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return cannot_write(err, "cannot write the lock file %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		n = pread(fd, text, sizeof(text) - 1, 0);
		close(fd);
		if (n > 0)
			text[strspn(text, "0123456789")] = '\0';
		return err_set(err, ERR_BUSY, "%s is held by process %s", path, n > 0 ? text : "?");
	}
	file = file_new(fd, path);
	if (!file) {
		close(fd);
		return err_memory(err, "while locking %s", path);
	}
	snprintf(text, sizeof(text), "%u\n", os_pid());
	if (ftruncate(fd, 0) == 0)
		os_write(file, text, strlen(text), NULL);
	*out = file;
	return 0;
}

void os_unlock(struct os_file *lock)
{
	os_close(lock);
}
