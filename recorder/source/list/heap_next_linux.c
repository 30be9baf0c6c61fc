#include "source/list/heap_next.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_BYTES 65536
#define PATH_BYTES 512
#define NAME_BYTES 100
#define LOOK_MS 1000
#define LINK_TRIES 10u

struct heap_next {
	char file[PATH_BYTES], folder[PATH_BYTES];
	char own[PATH_BYTES];                /* FOLDER/PID */
	char link_folder[PATH_BYTES], link[PATH_BYTES];
	pid_t recorder, guard;
};

/* ---- the file: nothing below allocates, because the guard runs it after a fork() ------------- */

/* returns  its length; -1 = it cannot be read, or is too long */
static ssize_t read_file(const char *path, char *text, mode_t *mode)
{
	struct stat st;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	*mode = 0644;
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < FILE_BYTES) {
		*mode = st.st_mode & 07777;
		n = read(fd, text, FILE_BYTES);
	}
	close(fd);
	return n;
}

/* An empty file goes. */
static bool write_file(const char *path, const char *text, size_t n, mode_t mode)
{
	char other[PATH_BYTES + 16];
	bool done;
	int fd;

	if (!n)
		return unlink(path) == 0 || errno == ENOENT;
	snprintf(other, sizeof(other), "%s.recorder", path);
	unlink(other);
	fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return false;
	done = fchmod(fd, mode) == 0 && write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
	done = close(fd) == 0 && done && rename(other, path) == 0;
	if (!done)
		unlink(other);
	return done;
}

/* A power cut leaves the line, but nothing in /run. */
static bool is_gone(const char *line, size_t bytes)
{
	char path[PATH_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "%.*s", (int)(bytes < PATH_BYTES ? bytes : PATH_BYTES - 1),
		 line);
	path[strcspn(path, "\n")] = '\0';
	return lstat(path, &st) != 0 && errno == ENOENT;
}

/* Whether a line is of a recorder that has ended, or of this one. */
static bool is_over(const struct heap_next *n, const char *line, size_t bytes)
{
	size_t length = strlen(n->folder), i;
	long pid = 0;

	if (bytes <= length + 1 || memcmp(line, n->folder, length) != 0 || line[length] != '/')
		return false;
	for (i = length + 1; i < bytes && line[i] >= '0' && line[i] <= '9' && pid < 100000000; i++)
		pid = pid * 10 + line[i] - '0';
	return !pid || pid == n->recorder || (kill((pid_t)pid, 0) && errno == ESRCH) ||
	       is_gone(line, bytes);
}

/*
 * Two recorders that rewrite the file at one moment would lose a line: each holds this lock
 * meanwhile. It is a file that only root can open, so nobody else can keep them waiting; it stays.
 * returns  closing it gives the lock back; -1 = no lock
 */
static int lock_file(const struct heap_next *n)
{
	char path[PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%.300s.lock", n->folder);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	while (fd >= 0 && flock(fd, LOCK_EX))
		if (errno != EINTR) {
			close(fd);
			fd = -1;
		}
	return fd;
}

/* Leave out what is over; add a line, or NULL. The lock is held. */
static bool rewrite_locked(const struct heap_next *n, const char *line)
{
	char text[FILE_BYTES + PATH_BYTES + 2], kept[FILE_BYTES + PATH_BYTES + 2];
	mode_t mode;
	ssize_t had = read_file(n->file, text, &mode);
	size_t at = 0, nkept = 0;

	if (had < 0)
		return false;
	while (at < (size_t)had) {
		const char *end = memchr(text + at, '\n', (size_t)had - at);
		size_t length = end ? (size_t)(end - text) - at + 1 : (size_t)had - at;

		if (!is_over(n, text + at, length)) {
			memcpy(kept + nkept, text + at, length);
			nkept += length;
		}
		at += length;
	}
	if (line) {
		if (nkept && kept[nkept - 1] != '\n')
			kept[nkept++] = '\n';
		nkept += (size_t)snprintf(kept + nkept, sizeof(kept) - nkept, "%s\n", line);
	}
	return (nkept == (size_t)had && !memcmp(kept, text, nkept)) ||
	       write_file(n->file, kept, nkept, mode);
}

static bool rewrite(const struct heap_next *n, const char *line)
{
	int lock = lock_file(n);
	bool done = lock >= 0 && rewrite_locked(n, line);

	if (lock >= 0)
		close(lock);
	return done;
}

static void put_back(const struct heap_next *n)
{
	rewrite(n, NULL);
	unlink(n->link);
	rmdir(n->link_folder);
	rmdir(n->own);
	rmdir(n->folder);
}

/* ---- the guard ------------------------------------------------------------------------------- */

static void guard(const struct heap_next *n)
{
	struct pollfd parent = {.fd = (int)syscall(SYS_pidfd_open, n->recorder, 0),
				.events = POLLIN};
	int fd;

	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "recorder-heap");
	for (fd = 0; fd < 1024; fd++)
		if (fd != parent.fd)
			close(fd);
	while (getppid() == n->recorder)
		poll(&parent, 1, LOOK_MS);
	put_back(n);
	_exit(0);
}

/* ---- what others call ------------------------------------------------------------------------ */

static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			  "0123456789._+-");

	return n && n < NAME_BYTES && !name[n];
}

static void set_places(struct heap_next *n, const char *file, const char *folder)
{
	snprintf(n->file, sizeof(n->file), "%.400s", file ? file : "/etc/ld.so.preload");
	snprintf(n->folder, sizeof(n->folder), "%.300s", folder ? folder : "/run/recorder-heap");
}

static bool try_link(const struct heap_next *n, const char *library)
{
	const char *folders[] = {n->folder, n->own, n->link_folder};
	unsigned i;

	for (i = 0; i < 3; i++)
		if (mkdir(folders[i], 0755) && errno != EEXIST)
			return false;
	unlink(n->link);
	return symlink(library, n->link) == 0;
}

/* Another recorder that ends removes the folder while it is empty. */
static bool make_link(const struct heap_next *n, const char *library)
{
	unsigned tries;

	for (tries = 0; tries < LINK_TRIES; tries++)
		if (try_link(n, library))
			return true;
		else if (errno != ENOENT)
			break;
	return false;
}

int heap_next_begin_at(const char *file, const char *folder, const char *library, const char *name,
		       uint64_t mean_bytes, struct heap_next **out, struct err *err)
{
	struct heap_next *n;

	if (!is_name(name))
		return err_set(err, ERR_USAGE, "--heap-next '%.100s' is not the name of a "
			       "program's file: letters, digits and . _ + - only", name);
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_memory(err, "for --heap-next");
	n->recorder = getpid();
	set_places(n, file, folder);
	snprintf(n->own, sizeof(n->own), "%.300s/%d", n->folder, (int)n->recorder);
	snprintf(n->link_folder, sizeof(n->link_folder), "%.320s/%.100s@%" PRIu64, n->own, name,
		 mean_bytes);
	snprintf(n->link, sizeof(n->link), "%.460s/librecorder-heap.so", n->link_folder);
	/* First who takes the line out, then the line. */
	n->guard = make_link(n, library) ? fork() : -1;
	if (n->guard == 0)
		guard(n);
	if (n->guard < 0 || !rewrite(n, n->link)) {
		int rc = err_os(err, "writing %s for --heap-next, which needs root", n->file);

		heap_next_end(n);
		return rc;
	}
	*out = n;
	return 0;
}

void heap_next_end(struct heap_next *n)
{
	if (!n)
		return;
	if (n->guard > 0) {
		kill(n->guard, SIGKILL);
		waitpid(n->guard, NULL, 0);
	}
	put_back(n);
	free(n);
}

void heap_next_tidy(const char *file, const char *folder)
{
	struct heap_next n = {.recorder = 0};

	set_places(&n, file, folder);
	if (!access(n.file, F_OK))
		rewrite(&n, NULL);
}
