#include "http/listen_linux.h"

#include "base/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"
#define FIRST_FD 3                           /* SD_LISTEN_FDS_START */
#define BACKLOG 4096                     /* the kernel cuts it to net.core.somaxconn */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

static bool is_local(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
	if (a->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
	return a->any.sa_family == AF_UNIX;
}

static const char *family_text(const union address *a)
{
	return a->any.sa_family == AF_INET    ? "AF_INET"
	       : a->any.sa_family == AF_INET6 ? "AF_INET6"
					      : "AF_UNIX";
}

/* "PORT" of 1 to 65535; 0 = none. */
static uint16_t parse_port(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && port <= UINT16_MAX ? (uint16_t)port : 0;
}

static bool parse_inet(const char *text, union address *out, socklen_t *n)
{
	const char *colon = strrchr(text, ':');
	bool six = *text == '[';
	char host[64];
	uint16_t port = colon ? parse_port(colon + 1) : 0;
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!port || len >= sizeof(host) || (six && (len < 2 || text[len - 1] != ']')))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)(six ? len - 2 : len), text + six);
	if (six) {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_port = htons(port);
		*n = sizeof(out->in6);
		return inet_pton(AF_INET6, host, &out->in6.sin6_addr) == 1;
	}
	out->in.sin_family = AF_INET;
	out->in.sin_port = htons(port);
	*n = sizeof(out->in);
	return inet_pton(AF_INET, host, &out->in.sin_addr) == 1;
}

static int parse(const char *text, union address *out, socklen_t *n, struct err *err)
{
	const char *path = text + strlen(UNIX_PREFIX);

	memset(out, 0, sizeof(*out));
	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
		if (*path != '/' || strlen(path) >= sizeof(out->un.sun_path))
			return err_set(err, ERR_USAGE, "--http %.200s: a Unix socket needs a path "
				       "from '/' on, of at most %zu bytes", text,
				       sizeof(out->un.sun_path) - 1);
		out->un.sun_family = AF_UNIX;
		strcpy(out->un.sun_path, path);
		*n = sizeof(out->un);
		return 0;
	}
	if (parse_inet(text, out, n))
		return 0;
	return err_set(err, ERR_USAGE, "--http %.200s: give an address and a port in numbers, such "
		       "as 127.0.0.1:9427 or [::1]:9427, or unix:/run/recorder.sock, or fd for a "
		       "socket of the service manager", text);
}

/* How many sockets were passed to this process. Source: sd_listen_fds(3). */
static int passed_sockets(void)
{
	const char *pid = os_env("LISTEN_PID"), *n = os_env("LISTEN_FDS");

	return pid && n && strtoul(pid, NULL, 10) == os_pid() ? atoi(n) : 0;
}

static int use_passed(struct listening *out, struct err *err)
{
	union address a = {0};
	socklen_t n = sizeof(a);
	int listens = 0;
	socklen_t size = sizeof(listens);

	if (passed_sockets() < 1)
		return err_set(err, ERR_USAGE, "--http fd: the service manager passed no socket "
			       "(LISTEN_FDS): it needs a unit recorder.socket");
	if (getsockname(FIRST_FD, &a.any, &n) != 0 ||
	    getsockopt(FIRST_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens)
		return err_set(err, ERR_USAGE, "--http fd: descriptor %d is no socket that "
			       "listens", FIRST_FD);
	fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
	fcntl(FIRST_FD, F_SETFL, fcntl(FIRST_FD, F_GETFL) | O_NONBLOCK);
	out->fd = FIRST_FD;
	out->local = is_local(&a);
	out->is_unix = a.any.sa_family == AF_UNIX;
	return 0;
}

int listening_check(const char *address, bool *local, struct err *err)
{
	union address a;
	socklen_t n;
	int rc;

	*local = true;
	if (strcmp(address, "fd") == 0)
		return 0;
	rc = parse(address, &a, &n, err);
	if (!rc)
		*local = is_local(&a);
	return rc;
}

/* Remove a socket that nobody listens at; others and other files stay, and bind() says so. */
static void remove_stale(const struct sockaddr_un *a)
{
	struct stat st;
	int fd;

	if (lstat(a->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof(*a)) != 0 &&
	    errno == ECONNREFUSED)
		unlink(a->sun_path);
	if (fd >= 0)
		close(fd);
}

int listening_open(const char *address, struct listening *out, struct err *err)
{
	static const int yes = 1;
	union address a;
	socklen_t n;
	mode_t mask;
	int rc, bound;

	*out = (struct listening){.fd = -1};
	if (strcmp(address, "fd") == 0)
		return use_passed(out, err);
	rc = parse(address, &a, &n, err);
	if (rc)
		return rc;
	out->local = is_local(&a);
	out->is_unix = a.any.sa_family == AF_UNIX;
	if (out->is_unix)
		remove_stale(&a.un);
	out->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (out->fd < 0 && errno == EAFNOSUPPORT)
		return err_set(err, ERR_USAGE, "--http %.200s: this process may not open a socket "
			       "of %s. As a service it needs a drop-in with "
			       "RestrictAddressFamilies=%s and IPAddressAllow=, which stands at "
			       "the end of 'recorder help http'", address, family_text(&a),
			       family_text(&a));
	if (out->fd < 0)
		return err_os(err, "--http %.200s: no socket", address);
	if (!out->is_unix)
		setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	mask = umask(0117);
	bound = bind(out->fd, &a.any, n);
	umask(mask);
	if (bound != 0 || listen(out->fd, BACKLOG) != 0) {
		rc = err_os(err, "--http %.200s: cannot listen there", address);
		listening_close(out);
		return rc;
	}
	if (out->is_unix)
		strcpy(out->path, a.un.sun_path);
	return 0;
}

void listening_close(struct listening *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (*l->path)
		unlink(l->path);
	*l = (struct listening){.fd = -1};
}
