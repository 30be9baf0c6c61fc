/*
 * Programs that pretend to be .NET and flood whoever listens to them:
 *
 *	dotnet_flood_linux N SECONDS [events]
 *
 * N processes with a diagnostic socket each in /tmp. Every connection gets a stream: of every
 * second process kinds of events without end, of the others a block of 3.9 MB that is never
 * finished. With "events", events of one kind as fast as they are read.
 */
#include "tests/support/nettrace_writer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_MAX = 512, KINDS = 20, BLOCK = 3900000, BURST = 400 };

static char path[108];
static bool events;

static void leave(int number)
{
	(void)number;
	unlink(path);
	_exit(0);
}

/* Field 22 of its stat: when the process started. */
static unsigned long long start_ticks(void)
{
	char text[1000] = {0}, *at;
	FILE *f = fopen("/proc/self/stat", "r");
	unsigned i;

	if (!f || !fgets(text, sizeof(text), f))
		_exit(1);
	fclose(f);
	at = strrchr(text, ')');
	for (i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static int listen_in_tmp(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(path, sizeof(path), "/tmp/dotnet-diagnostic-%d-%llu-socket", (int)getpid(),
		 start_ticks());
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, 8))
		_exit(1);
	return fd;
}

static bool send_all(int fd, const char *bytes, size_t n)
{
	ssize_t done;

	for (; n; n -= (size_t)done, bytes += done) {
		done = send(fd, bytes, n, MSG_NOSIGNAL);
		if (done <= 0)
			return false;
	}
	return true;
}

/* One block a write, until the other side hangs up. */
static void send_events(int fd, struct nettrace_writer *w)
{
	unsigned i;
	bool ok;

	nettrace_write_kinds(w, 1);
	do {
		for (i = 0; i < BURST; i++)
			nettrace_write_event(w, 1);
		ok = send_all(fd, w->bytes.data, w->bytes.len);
		nettrace_writer_sent(w);
	} while (ok);
}

static void serve(int fd, bool kinds)
{
	struct nettrace_writer w = {0};
	char request[4096];
	bool ok = recv(fd, request, sizeof(request), 0) > 0 &&
		  send_all(fd, NETTRACE_YES, NETTRACE_YES_BYTES);
	unsigned i;

	nettrace_write_head(&w);
	if (ok && events) {
		send_events(fd, &w);
		ok = false;
	}
	if (!kinds)
		nettrace_write_part(&w, BLOCK, BLOCK - 1);
	for (i = 0; ok; i++) {
		if (kinds)
			nettrace_write_kinds(&w, KINDS);
		ok = send_all(fd, w.bytes.data, w.bytes.len);
		nettrace_writer_sent(&w);
		if (!kinds || i == BURST)
			break;
	}
	/* Keep what was sent where it is, until the other side hangs up. */
	while (ok && recv(fd, request, sizeof(request), 0) > 0)
		;
	buf_free(&w.bytes);
	close(fd);
}

static void play(bool kinds)
{
	int listener, fd;

	signal(SIGTERM, leave);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	listener = listen_in_tmp();
	while ((fd = accept(listener, NULL, NULL)) >= 0)
		serve(fd, kinds);
	_exit(0);
}

int main(int argc, char **argv)
{
	static pid_t children[N_MAX];
	unsigned n = argc >= 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0, i;

	if (!n || n > N_MAX)
		return 2;
	events = argc > 3;
	for (i = 0; i < n; i++) {
		children[i] = fork();
		if (children[i] == 0)
			play(i % 2);
	}
	sleep((unsigned)strtoul(argv[2], NULL, 10));
	for (i = 0; i < n; i++) {
		kill(children[i], SIGTERM);
		waitpid(children[i], NULL, 0);
	}
	return 0;
}
