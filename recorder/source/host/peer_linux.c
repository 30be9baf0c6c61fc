#include "source/host/peer_linux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_NS (20 * NS_PER_MS)           /* on a busy machine a thread may begin that late */

struct call {
	struct job job;
	struct sockaddr_un address;
	uint32_t pid, uid;
	int at, fd;                          /* its own: the socket by O_PATH, the connection */
};

static void connect_to(struct job *job)
{
	struct call *c = (struct call *)job;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&c->address, sizeof(c->address)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
	    (uint32_t)peer.pid == c->pid && peer.uid == c->uid)
		c->fd = fd;
	else if (fd >= 0)
		close(fd);
}

static void free_call(struct job *job)
{
	struct call *c = (struct call *)job;

	if (c->at >= 0)
		close(c->at);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

int peer_connect(struct pool *pool, const struct peer *to)
{
	struct call *c = calloc(1, sizeof(*c));
	int fd;

	if (!c)
		return -1;
	c->job = (struct job){.run = connect_to, .free = free_call, .what = "a socket"};
	job_init(&c->job);
	c->address.sun_family = AF_UNIX;
	c->pid = to->pid;
	c->uid = to->uid;
	c->fd = -1;
	c->at = to->fd < 0 ? -1 : fcntl(to->fd, F_DUPFD_CLOEXEC, 0);
	if (to->fd < 0)
		snprintf(c->address.sun_path, sizeof(c->address.sun_path), "%s", to->path);
	else
		snprintf(c->address.sun_path, sizeof(c->address.sun_path), "/proc/self/fd/%d",
			 c->at);
	if (!pool_ask(pool, to->uid, &c->job, ANSWER_NS))
		return -1;
	fd = c->fd;
	c->fd = -1;
	job_drop(&c->job);
	return fd;
}
