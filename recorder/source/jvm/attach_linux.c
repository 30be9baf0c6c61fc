#include "source/jvm/attach_linux.h"

#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define AGAIN_NS (30 * NS_PER_SEC)           /* code is compiled all the time, */
#define AGAIN_FIRST_NS NS_PER_SEC            /* most of it at the beginning */
#define AGAIN_FIRST 5u
#define CALL_NS (3 * NS_PER_SEC)             /* for its socket to appear */
#define ANSWER_NS (5 * NS_PER_SEC)
#define STATUS_MAX_BYTES 16384u

static void never(struct jvm_attach *a, uint32_t pid, struct log *log, const char *why)
{
	log_line(log, LOG_WARN, "Java program with pid %u writes no map of its code: %s", pid, why);
	jvm_attach_close(a);
	a->state = ATTACH_NEVER;
}

void jvm_attach_close(struct jvm_attach *a)
{
	if (a->state == ATTACH_ASKED)
		close(a->fd);
	a->state = ATTACH_REST;
}

static void trigger_path(uint32_t pid, char *out, size_t n)
{
	snprintf(out, n, "/tmp/.attach_pid%u", pid);
}

static void rest(struct jvm_attach *a, uint64_t now_ns)
{
	jvm_attach_close(a);
	a->next_ns = now_ns + (a->asked++ < AGAIN_FIRST ? AGAIN_FIRST_NS : AGAIN_NS);
}

/* One that ends at SIGQUIT, because it was started with -Xrs, must not get it. */
static bool catches_quit(uint32_t pid)
{
	struct buf text = {0};
	char path[40];
	const char *at;
	bool caught = false;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (os_load(path, STATUS_MAX_BYTES, &text, NULL) == 0) {
		at = strstr(buf_text(&text), "\nSigCgt:");
		caught = at && strtoull(at + 8, NULL, 16) >> (SIGQUIT - 1) & 1;
	}
	buf_free(&text);
	return caught;
}

/* Make it listen. The file's owner must be that of the JVM, or root. */
static void call(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns, struct log *log)
{
	char path[80];
	int fd;

	if (!catches_quit(pid)) {
		never(a, pid, log, "it takes no orders (-Xrs)");
		return;
	}
	trigger_path(pid, path, sizeof(path));
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		never(a, pid, log, "/tmp/.attach_pid* cannot be made");
		return;
	}
	if (fchown(fd, uid, (gid_t)-1) != 0 && geteuid() != uid && geteuid() != 0)
		never(a, pid, log, "it is another user's");
	close(fd);
	if (a->state == ATTACH_NEVER) {
		unlink(path);
		return;
	}
	kill((pid_t)pid, SIGQUIT);
	a->state = ATTACH_CALLED;
	a->deadline_ns = now_ns + CALL_NS;
}

/* Its socket: of its owner, and served by that process. */
static int dial(uint32_t pid, uint32_t uid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	struct ucred peer;
	socklen_t n = sizeof(peer);
	int fd;

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/.java_pid%u", pid);
	if (lstat(address.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != uid)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && (uint32_t)peer.pid == pid &&
	    peer.uid == uid)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool ask(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns)
{
	/* and the literal's own NUL */
	static const char order[] = "1\0jcmd\0Compiler.perfmap\0\0";
	int fd = dial(pid, uid);

	if (fd < 0)
		return false;
	if (send(fd, order, sizeof(order), MSG_NOSIGNAL) != (ssize_t)sizeof(order)) {
		close(fd);
		return false;
	}
	a->fd = fd;
	a->nanswer = 0;
	a->state = ATTACH_ASKED;
	a->deadline_ns = now_ns + ANSWER_NS;
	return true;
}

static void listen_to(struct jvm_attach *a, uint32_t pid, uint64_t now_ns, struct log *log)
{
	ssize_t n = recv(a->fd, a->answer + a->nanswer, sizeof(a->answer) - 1 - a->nanswer, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR) && now_ns < a->deadline_ns)
		return;
	a->nanswer += n > 0 ? (uint32_t)n : 0;
	if (n > 0 && a->nanswer < sizeof(a->answer) - 1)
		return;                      /* it closes after its last byte */
	a->answer[a->nanswer] = '\0';
	if (n < 0)
		never(a, pid, log, "it did not answer within 5 s");
	else if (a->answer[0] != '0' || strstr(a->answer, "Exception"))
		never(a, pid, log, "it does not know that order (it needs a JDK of 17 or later)");
	else
		rest(a, now_ns);
}

void jvm_attach_look(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns,
		     struct log *log)
{
	char path[80];

	switch (a->state) {
	case ATTACH_REST:
		if (now_ns >= a->next_ns && !ask(a, pid, uid, now_ns))
			call(a, pid, uid, now_ns, log);
		break;
	case ATTACH_CALLED:
		if (ask(a, pid, uid, now_ns) || now_ns >= a->deadline_ns) {
			trigger_path(pid, path, sizeof(path));
			unlink(path);
			if (a->state != ATTACH_ASKED)
				never(a, pid, log,
				      "it does not listen (-XX:+DisableAttachMechanism)");
		}
		break;
	case ATTACH_ASKED:
		listen_to(a, pid, now_ns, log);
		break;
	case ATTACH_NEVER:
		break;
	}
}
