#include "base/os.h"

#include "base/array.h"
#include "base/os_linux.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CALLER_WAIT_NS NS_PER_SEC       /* a caller has this long to send its line */
/* pause: a caller that cannot be accepted keeps the socket ready */
#define REFUSED_NS (200 * NS_PER_MS)
#define POLL_REFUSED_NS (100 * NS_PER_MS)

struct os_ipc {
	int fd;
	uint64_t refused_until_ns;    /* no caller is accepted before */
	struct stat own;              /* so that only our own socket file is removed */
	struct sockaddr_un address;
};

struct os_ipc_call {
	int fd;
};

static int make_address(const char *path, struct sockaddr_un *out, struct err *err)
{
	size_t n = strlen(path);

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	if (n >= sizeof(out->sun_path))
		return err_set(err, ERR_LIMIT,
			       "the control socket's name %s is longer than %zu bytes; "
			       "use a store with a shorter path", path, sizeof(out->sun_path) - 1);
	memcpy(out->sun_path, path, n + 1);
	return 0;
}

/* Where it fits the whole path, so that it is found in /proc/net/unix from any directory. */
static void make_absolute(struct sockaddr_un *address)
{
	char *dir = *address->sun_path == '/' ? NULL : getcwd(NULL, 0);
	char path[sizeof(address->sun_path)];
	int n = dir ? snprintf(path, sizeof(path), "%s/%s", dir, address->sun_path) : -1;

	if (n > 0 && (size_t)n < sizeof(path))
		memcpy(address->sun_path, path, (size_t)n + 1);
	free(dir);
}

/* A socket file without a listener is left over from a recorder that was killed. */
static void remove_stale(const struct sockaddr_un *address)
{
	struct stat st;

	if (lstat(address->sun_path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(address->sun_path);
}

int os_ipc_listen(const char *path, struct os_ipc **out, struct err *err)
{
	struct os_ipc *ipc = calloc(1, sizeof(*ipc));
	mode_t old;
	int rc, bound;

	if (!ipc)
		return err_memory(err, "while opening %s", path);
	rc = make_address(path, &ipc->address, err);
	if (rc) {
		free(ipc);
		return rc;
	}
	make_absolute(&ipc->address);
	remove_stale(&ipc->address);
	ipc->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	old = umask(0177);
	bound = ipc->fd < 0 ? -1
			    : bind(ipc->fd, (struct sockaddr *)&ipc->address, sizeof(ipc->address));
	umask(old);
	if (bound != 0 || listen(ipc->fd, 64) != 0 || lstat(path, &ipc->own) != 0) {
		rc = err_os(err, "cannot listen on %s", path);
		if (ipc->fd >= 0)
			close(ipc->fd);
		free(ipc);
		return rc;
	}
	*out = ipc;
	return 0;
}

void os_ipc_close(struct os_ipc *ipc)
{
	struct stat st;

	if (!ipc)
		return;
	close(ipc->fd);
	if (lstat(ipc->address.sun_path, &st) == 0 && st.st_ino == ipc->own.st_ino &&
	    st.st_dev == ipc->own.st_dev)
		unlink(ipc->address.sun_path);
	free(ipc);
}

static int left_ms(uint64_t until_ns)
{
	uint64_t now = os_now_ns();
	uint64_t ms = until_ns > now ? (until_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;

	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static bool wait_for(int fd, short events, uint64_t until_ns)
{
	struct pollfd p = {.fd = fd, .events = events};
	int rc;

	do {
		rc = poll(&p, 1, left_ms(until_ns));
	} while (rc < 0 && errno == EINTR);
	return rc > 0;
}

/* Read up to a line feed; false when none came in time or the line is too long. */
static bool read_line(int fd, uint64_t until_ns, struct buf *line)
{
	char part[4096];

	while (line->len <= OS_IPC_MAX_BYTES && wait_for(fd, POLLIN, until_ns)) {
		ssize_t n = recv(fd, part, sizeof(part), MSG_DONTWAIT);
		char *end;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return false;
		end = memchr(part, '\n', (size_t)n);
		buf_put(line, part, end ? (size_t)(end - part) : (size_t)n);
		if (end)
			return line->len <= OS_IPC_MAX_BYTES && !line->failed;
	}
	return false;
}

static bool send_line(int fd, uint64_t until_ns, const char *line)
{
	size_t left = strlen(line) + 1;
	struct buf text = {0};
	const char *at;

	buf_puts(&text, line);
	buf_putc(&text, '\n');
	at = buf_text(&text);
	while (!text.failed && left && wait_for(fd, POLLOUT, until_ns)) {
		ssize_t n = send(fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			break;
		at += n;
		left -= (size_t)n;
	}
	buf_free(&text);
	return left == 0;
}

static int refuse(struct os_ipc *ipc, struct err *err)
{
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return err_set(err, ERR_NOT_FOUND, "the caller has gone");
	ipc->refused_until_ns = os_deadline_ns(REFUSED_NS);
	if (errno == EMFILE || errno == ENFILE)
		return err_os(err,
			      "callers on %s wait until a descriptor is free; raise the limit (%s)",
			      ipc->address.sun_path,
			      errno == EMFILE ? "ulimit -n, LimitNOFILE= of a service"
					      : "sysctl fs.file-max");
	return err_os(err, "cannot answer on %s", ipc->address.sun_path);
}

int os_ipc_next(struct os_ipc *ipc, uint64_t timeout_ns, struct buf *line,
		struct os_ipc_call **call, struct err *err)
{
	int fd;

	buf_reset(line);
	if (!wait_for(ipc->fd, POLLIN, os_deadline_ns(timeout_ns)))
		return err_set(err, ERR_NOT_FOUND, "nobody called");
	fd = accept4(ipc->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return refuse(ipc, err);
	*call = NULL;
	if (read_line(fd, os_deadline_ns(CALLER_WAIT_NS), line))
		*call = malloc(sizeof(**call));
	if (!*call) {
		close(fd);
		return err_set(err, ERR_NOT_FOUND, "a caller sent no line");
	}
	(*call)->fd = fd;
	return 0;
}

void os_ipc_answer(struct os_ipc_call *call, const char *line)
{
	send_line(call->fd, os_deadline_ns(CALLER_WAIT_NS), line);
	close(call->fd);
	free(call);
}

/* A full backlog answers EAGAIN at once because others are calling: try again for a while. */
static int connect_until(int fd, const struct sockaddr_un *address, uint64_t until_ns)
{
	int rc;

	while ((rc = connect(fd, (const struct sockaddr *)address, sizeof(*address))) != 0 &&
	       errno == EAGAIN && os_now_ns() < until_ns)
		os_sleep_ns(10 * NS_PER_MS);
	return rc;
}

/* The line's path, if it is a stream socket with a listener: 00010000 is __SO_ACCEPTCON. */
static const char *listening_path(char *line)
{
	static const int columns = 7;        /* before the path */
	char *at = line;
	int i;

	line[strcspn(line, "\n")] = '\0';
	for (i = 0; i < columns && *at; i++) {
		if (i == 3 && strncmp(at, "00010000 ", 9) != 0)
			return NULL;
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	return *at == '/' ? at : NULL;
}

int os_ipc_each(const char *suffix, void (*one)(void *ctx, const char *path), void *ctx,
		struct err *err)
{
	FILE *file = fopen("/proc/net/unix", "re");
	size_t room = 0, nsuffix = strlen(suffix);
	char *line = NULL;

	if (!file)
		return err_os(err, "/proc/net/unix, which lists recorders, cannot be read");
	while (getline(&line, &room, file) > 0) {
		const char *path = listening_path(line);
		size_t n = path ? strlen(path) : 0;

		if (n > nsuffix && strcmp(path + n - nsuffix, suffix) == 0)
			one(ctx, path);
	}
	free(line);
	fclose(file);
	return 0;
}

int os_ipc_ask(const char *path, const char *line, uint64_t timeout_ns, struct buf *answer,
	       struct err *err)
{
	uint64_t until_ns = os_deadline_ns(timeout_ns);
	struct sockaddr_un address;
	int rc = make_address(path, &address, err);
	int fd;

	if (rc)
		return rc;
	if (strlen(line) > OS_IPC_MAX_BYTES)
		return err_set(err, ERR_LIMIT,
			       "a command has %zu bytes, but at most %d are allowed", strlen(line),
			       OS_IPC_MAX_BYTES);
	/* Not blocking: this function keeps the time limit itself. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_os(err, "cannot make a socket");
	if (connect_until(fd, &address, until_ns) != 0) {
		if (errno == ECONNREFUSED)
			errno = ENOENT;
		rc = err_os(err, "cannot reach a recorder at %s", path);
	} else if (!send_line(fd, until_ns, line) || !read_line(fd, until_ns, answer)) {
		rc = err_set(err, ERR_IO, "the recorder at %s did not answer in time", path);
	}
	close(fd);
	return rc;
}

/* ---- waking a thread that waits -------------------------------------------------------------- */

struct os_wake {
	int fd;                       /* eventfd(2): never full, so os_wake() never waits */
};

struct os_wake *os_wake_new(void)
{
	struct os_wake *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0) {
		free(w);
		return NULL;
	}
	return w;
}

void os_wake_free(struct os_wake *w)
{
	if (!w)
		return;
	close(w->fd);
	free(w);
}

void os_wake(struct os_wake *w)
{
	int before = errno;

	if (w)
		eventfd_write(w->fd, 1);
	errno = before;
}

int os_wake_fd(const struct os_wake *w)
{
	return w->fd;
}

void os_wake_clear(struct os_wake *w)
{
	eventfd_t n;

	eventfd_read(w->fd, &n);
}

unsigned os_poll(struct pollfd *p, unsigned n, uint64_t wait_ns)
{
	struct timespec wait = {.tv_sec = (time_t)(wait_ns / NS_PER_SEC),
				.tv_nsec = (long)(wait_ns % NS_PER_SEC)};
	int ready = ppoll(p, n, &wait, NULL);
	bool refused = ready < 0 && errno != EINTR;

	if (ready >= 0)
		return (unsigned)ready;
	while (n--)
		p[n].revents = 0;
	if (refused)
		os_sleep_ns(wait_ns < POLL_REFUSED_NS ? wait_ns : POLL_REFUSED_NS);
	return 0;
}

void os_wake_wait(struct os_wake *w, struct os_ipc *ipc, bool signals, uint64_t timeout_ns)
{
	uint64_t now_ns = os_now_ns();
	bool refused = ipc && now_ns < ipc->refused_until_ns;
	/* poll() ignores descriptors of -1. */
	struct pollfd p[] = {
		{.fd = w->fd, .events = POLLIN},
		{.fd = ipc && !refused ? ipc->fd : -1, .events = POLLIN},
		{.fd = signals ? os_signals_fd() : -1, .events = POLLIN},
	};

	if (refused && ipc->refused_until_ns - now_ns < timeout_ns)
		timeout_ns = ipc->refused_until_ns - now_ns;
	if (os_poll(p, COUNT_OF(p), timeout_ns) && p[0].revents)
		os_wake_clear(w);
}

void os_notify(const char *state)
{
	const char *path = os_env("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd;

	if (!n || n >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, n);
	if (*path == '@')                    /* an abstract socket */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

/* A value with line feeds has its length, little-endian, in place of '='. */
static void put_field(struct buf *out, const struct os_log_field *f)
{
	uint64_t n = strlen(f->value);
	unsigned i;

	buf_puts(out, f->name);
	if (strchr(f->value, '\n')) {
		buf_putc(out, '\n');
		for (i = 0; i < 8; i++)
			buf_putc(out, (char)(n >> (8 * i)));
	} else {
		buf_putc(out, '=');
	}
	buf_put(out, f->value, n);
	buf_putc(out, '\n');
}

void os_system_log(const struct os_log_field *fields, unsigned n)
{
	static const struct sockaddr_un journal = {AF_UNIX, "/run/systemd/journal/socket"};
	struct buf text = {0};
	unsigned i;
	int fd;

	for (i = 0; i < n; i++)
		put_field(&text, &fields[i]);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !text.failed)
		sendto(fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT,
		       (const struct sockaddr *)&journal, sizeof(journal));
	if (fd >= 0)
		close(fd);
	buf_free(&text);
}
