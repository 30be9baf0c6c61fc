#include "symbol/lines.h"

#include "symbol/debug_info_linux.h"
#include "symbol/debuglink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLUSH_BYTES 65536

int lines_check(struct err *err)
{
	return debug_info_check(err);
}

/* ---- the child ------------------------------------------------------------------------------- */

struct job {
	const struct object *object;
	uint32_t pid;
	const char *path;                    /* more directories; NULL */
	const uint64_t *offsets;
	uint32_t n;
	int fd;                              /* where the reply goes */
	struct buf reply;
};

static void flush_reply(struct job *j)
{
	const char *at = j->reply.data;
	size_t left = j->reply.failed ? 0 : j->reply.len;

	while (left) {
		ssize_t n = write(j->fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);            /* the parent has given up */
		at += n;
		left -= (size_t)n;
	}
	buf_reset(&j->reply);
}

static void send_state(struct job *j, enum lines_state state, const char *why)
{
	lines_put_state(&j->reply, state, why);
	flush_reply(j);
}

static void limit_self(void)
{
	const rlim_t seconds = LINES_OBJECT_MAX_NS / NS_PER_SEC;
	const struct rlimit cpu = {seconds, seconds};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	os_limit_memory(LINES_MEMORY_MAX_BYTES);
	setrlimit(RLIMIT_CPU, &cpu);
	/* libdw reports shortages on stderr, where nobody reads them. */
	if (null >= 0)
		dup2(null, STDERR_FILENO);
}

static void send_lines(struct job *j, struct debug_info *d, const struct elf_head *head)
{
	struct incident_line found[LINES_DEPTH_MAX];
	uint64_t vaddr;
	uint32_t i, n;

	lines_put_state(&j->reply, LINES_FOUND, NULL);
	for (i = 0; i < j->n; i++) {
		n = elf_vaddr(head, j->offsets[i], &vaddr) ? debug_info_find(d, vaddr, found) : 0;
		if (n)
			lines_put(&j->reply, i, found, n);
		if (j->reply.len > FLUSH_BYTES)
			flush_reply(j);
	}
	lines_put_end(&j->reply);
	flush_reply(j);
}

/* The debug information may be in the file itself, or in a separate one. */
static void read_debug_info(struct job *j, struct elf_file *own, struct elf_file *debug)
{
	struct debug_info *d = NULL;
	int rc;

	/* The files are open: from here on nothing needs a right. */
	if (!os_confine()) {
		send_state(j, LINES_FAILED, "its reader could not give up its rights");
		return;
	}
	rc = debug_info_open(os_file_fd(own->file), &own->head, &d, NULL);
	if (rc == ERR_NOT_FOUND && debug->file)
		rc = debug_info_open(os_file_fd(debug->file), &own->head, &d, NULL);
	if (!rc)
		send_lines(j, d, &own->head);
	else
		send_state(j, rc == ERR_NOT_FOUND ? LINES_NO_DEBUG_INFO : LINES_FAILED,
		    "it could not be read");
	debug_info_close(d);
}

static void child_main(struct job *j)
{
	struct elf_file own = {0}, debug = {0};
	struct buf linked = {.max_bytes = 8192};
	struct err err = {0};
	int rc;

	limit_self();
	rc = elf_file_open(j->object, j->pid, false, &own, &err);
	if (rc && j->path && elf_file_open_in(j->path, j->object, false, &linked, &own) == 0)
		rc = 0;
	if (rc) {
		bool other = (rc == ERR_FORMAT || rc == ERR_UNSUPPORTED) &&
			     os_exists(j->object->key.path);

		send_state(j, other ? LINES_CHANGED : LINES_NO_FILE, err.text);
		return;
	}
	if (debug_file_open(j->object, j->pid, &own, &linked, &debug, NULL) && j->path)
		elf_file_open_in(j->path, j->object, true, &linked, &debug);
	read_debug_info(j, &own, &debug);
	buf_free(&linked);
	elf_file_close(&debug);
	elf_file_close(&own);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* Read until the child closes the pipe or the time is over. */
static const char *receive_reply(int fd, uint64_t end_ns, struct buf *reply)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now_ns = os_now_ns();
		char *to;
		ssize_t n;

		if (now_ns >= end_ns)
			return "reading it took too long";
		n = poll(&p, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1);
		if (n < 0 && errno != EINTR)
			return "waiting for its reader failed";
		if (n <= 0)
			continue;
		to = buf_reserve(reply, FLUSH_BYTES);
		if (!to)
			return "its reader's reply is too long";
		n = read(fd, to, FLUSH_BYTES);
		if (n == 0)
			return NULL;
		if (n > 0)
			buf_advance(reply, (size_t)n);
	}
}

/* A child stuck in a hanging file system cannot be ended; leave it behind after some seconds. */
static int reap_child(pid_t pid, bool give_up)
{
	unsigned tries;
	int status = 0;

	if (give_up)
		kill(pid, SIGKILL);
	for (tries = 0; tries < 200; tries++) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			return status;
		os_sleep_ns(5 * NS_PER_MS);
	}
	kill(pid, SIGKILL);
	return status;
}

static const char *why_ended(int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		return "the file became shorter while it was read";
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
		return "reading it took too long";
	return "its reader ended early: it is damaged, or too large";
}

/* The result of an object without lines. */
static int set_state(enum lines_state state, const char *why, uint32_t n, struct lines *out,
		     struct err *err)
{
	struct buf reply = {0};

	lines_put_state(&reply, state, why);
	return lines_parse(&reply, n, out, err);
}

static int read_reply(int fd, pid_t pid, uint32_t n, uint64_t end_ns, struct lines *out,
		   struct err *err)
{
	struct buf reply = {.max_bytes = LINES_REPLY_MAX_BYTES};
	const char *why = receive_reply(fd, end_ns, &reply);
	int status = reap_child(pid, why != NULL), rc;

	if (!why && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		why = why_ended(status);
	if (why) {
		buf_free(&reply);
		return set_state(LINES_FAILED, why, n, out, err);
	}
	rc = lines_parse(&reply, n, out, err);
	return rc == ERR_FORMAT ? set_state(LINES_FAILED, why_ended(0), n, out, err) : rc;
}

int lines_read(const struct object *object, uint32_t pid, const char *path,
	       const uint64_t *offsets, uint32_t n, uint64_t end_ns, struct lines *out,
	       struct err *err)
{
	struct job job = {.object = object, .pid = pid, .path = path, .offsets = offsets, .n = n};
	uint64_t most_ns = os_now_ns() + LINES_OBJECT_MAX_NS;
	int fds[2], rc;
	pid_t reader;

	if (!object->key.build_id_bytes)
		return set_state(LINES_NO_BUILD_ID, NULL, n, out, err);
	rc = lines_check(err);               /* loads libdw once, here, for all children */
	if (rc)
		return rc;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return err_os(err, "cannot make a pipe for reading debug information");
	reader = fork();
	if (reader == 0) {
		close(fds[0]);
		job.fd = fds[1];
		child_main(&job);
		_exit(0);
	}
	close(fds[1]);
	if (reader < 0)
		rc = err_os(err, "cannot make a process for reading debug information");
	else
		rc = read_reply(fds[0], reader, n, end_ns < most_ns ? end_ns : most_ns, out, err);
	close(fds[0]);
	return rc;
}
