#include "source/jvm/attach_linux.h"

#include "base/os.h"
#include "source/host/peer_linux.h"
#include "source/host/proc_pid_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUEST_EVERY_NS (30 * NS_PER_SEC)   /* programs compile code all the time, */
#define FIRST_REQUESTS_EVERY_NS NS_PER_SEC   /* but most of it soon after their start */
#define FIRST_REQUESTS 5u
#define SOCKET_WAIT_NS (3 * NS_PER_SEC)      /* how long its socket may take to appear */
#define ANSWER_WAIT_NS (5 * NS_PER_SEC)
#define STATUS_MAX_BYTES 16384u
#define CMDLINE_MAX_BYTES (1u << 20)
#define ORDER_BYTES 1024u
#define COMMAND_LOOK_NS (10 * NS_PER_MS)
#define ANSWER_NS (20 * NS_PER_MS)           /* of the file system; see peer_linux.c */

static void give_up(struct jvm_attach *a, uint32_t pid, struct log *log, const char *why)
{
	if (!a->command)
		log_line(log, LOG_WARN, "Java program with pid %u does not write a map of its "
			 "code: %s", pid, why);
	jvm_attach_close(a);
	a->state = ATTACH_REFUSED;
	a->refused = why;
}

void jvm_attach_close(struct jvm_attach *a)
{
	if (a->state == ATTACH_WAITING)
		close(a->fd);
	a->state = ATTACH_IDLE;
}

static void trigger_path(uint32_t pid, char *out, size_t n)
{
	snprintf(out, n, "/tmp/.attach_pid%u", pid);
}

static void end_request(struct jvm_attach *a, uint64_t now_ns)
{
	jvm_attach_close(a);
	a->next_ns = now_ns +
		     (a->nrequests++ < FIRST_REQUESTS ? FIRST_REQUESTS_EVERY_NS : REQUEST_EVERY_NS);
}

/* One that does not listen would print the stacks of its threads at SIGQUIT. */
static bool never_listens(uint32_t pid)
{
	static const char word[] = "-XX:+DisableAttachMechanism";
	struct buf words = {0};
	bool is;

	proc_pid_load(pid, "cmdline", CMDLINE_MAX_BYTES, &words);
	is = words.len && memmem(words.data, words.len, word, sizeof(word) - 1);
	buf_free(&words);
	return is;
}

/* A JVM started with -Xrs would end at SIGQUIT, so it must not get it. */
static bool catches_quit(uint32_t pid)
{
	struct buf text = {0};
	const char *at;
	bool caught;

	proc_pid_load(pid, "status", STATUS_MAX_BYTES, &text);
	at = strstr(buf_text(&text), "\nSigCgt:");
	caught = at && strtoull(at + 8, NULL, 16) >> (SIGQUIT - 1) & 1;
	buf_free(&text);
	return caught;
}

/* ---- its trigger file: jobs, because /tmp may hang ------------------------------------------- */

struct trigger_job {
	struct job job;
	uint32_t pid, uid;
	int process;                         /* a pidfd: no signal to another process; -errno */
	const char *failed;                  /* why the JVM was not signalled; NULL = it was */
};

/* Make the JVM listen. The owner of the file must be the owner of the JVM, or root. */
static void make_trigger(struct job *job)
{
	struct trigger_job *t = (struct trigger_job *)job;
	char path[80];
	int fd;

	if (never_listens(t->pid)) {
		t->failed = "it was started with -XX:+DisableAttachMechanism";
		return;
	}
	if (!catches_quit(t->pid)) {
		t->failed = "it does not accept attach requests (-Xrs)";
		return;
	}
	trigger_path(t->pid, path, sizeof(path));
	unlink(path);                        /* of a request before, which was late */
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		t->failed = "cannot create /tmp/.attach_pid*";
		return;
	}
	if (fchown(fd, t->uid, (gid_t)-1) != 0 && geteuid() != t->uid && geteuid() != 0) {
		t->failed = "it belongs to another user";
		unlink(path);
	} else if (t->process >= 0) {
		syscall(SYS_pidfd_send_signal, t->process, SIGQUIT, NULL, 0);
	} else if (t->process == -ENOSYS) {  /* before Linux 5.3; else it has ended */
		kill((pid_t)t->pid, SIGQUIT);
	}
	close(fd);
}

static void remove_trigger(struct job *job)
{
	char path[80];

	trigger_path(((struct trigger_job *)job)->pid, path, sizeof(path));
	unlink(path);
}

static void free_trigger(struct job *job)
{
	struct trigger_job *t = (struct trigger_job *)job;

	if (t->process >= 0)
		close(t->process);
	free(t);
}

/* failed: as the job says. returns  false: it is not done yet */
static bool ask_trigger(struct pool *pool, void (*run)(struct job *job), uint32_t pid, uint32_t uid,
			const char **failed)
{
	struct trigger_job *t = calloc(1, sizeof(*t));

	if (!t)
		return false;
	t->job = (struct job){.run = run, .free = free_trigger, .what = "a file in /tmp"};
	job_init(&t->job);
	t->pid = pid;
	t->uid = uid;
	t->process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (t->process < 0)
		t->process = -errno;
	if (!pool_ask(pool, uid, &t->job, ANSWER_NS))
		return false;
	*failed = t->failed;
	job_drop(&t->job);
	return true;
}

static void make_it_listen(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns,
			   struct pool *pool, struct log *log)
{
	const char *failed = NULL;

	/* One that is late may have the socket ready by the next request. */
	if (!ask_trigger(pool, make_trigger, pid, uid, &failed)) {
		end_request(a, now_ns);
	} else if (failed) {
		give_up(a, pid, log, failed);
	} else {
		a->state = ATTACH_SIGNALLED;
		a->deadline_ns = now_ns + SOCKET_WAIT_NS;
	}
}

static bool send_request(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns,
			 struct pool *pool)
{
	char path[80], order[ORDER_BYTES] = "1\0jcmd\0";
	const struct peer to = {path, -1, pid, uid};
	size_t n = sizeof("1\0jcmd\0") - 1;
	int fd;

	n += (size_t)snprintf(order + n, sizeof(order) - n, "%s",
			      a->command ? a->command : "Compiler.perfmap") + 3;
	snprintf(path, sizeof(path), "/tmp/.java_pid%u", pid);
	fd = n > sizeof(order) ? -1 : peer_connect(pool, &to);
	if (fd < 0)
		return false;
	if (send(fd, order, n, MSG_NOSIGNAL) != (ssize_t)n) {
		close(fd);
		return false;
	}
	a->fd = fd;
	a->nanswer = 0;
	a->state = ATTACH_WAITING;
	a->deadline_ns = now_ns + ANSWER_WAIT_NS;
	return true;
}

static void read_answer(struct jvm_attach *a, uint32_t pid, uint64_t now_ns, struct log *log)
{
	ssize_t n = recv(a->fd, a->answer + a->nanswer, sizeof(a->answer) - 1 - a->nanswer, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR) && now_ns < a->deadline_ns)
		return;
	a->nanswer += n > 0 ? (uint32_t)n : 0;
	if (n > 0 && a->nanswer < sizeof(a->answer) - 1)
		return;                      /* the JVM closes the socket after its last byte */
	a->answer[a->nanswer] = '\0';
	if (n < 0)
		give_up(a, pid, log, "it did not answer within 5 s");
	else if (a->answer[0] != '0' || strstr(a->answer, "Exception"))
		give_up(a, pid, log, "it does not know the command (JDK 17 or later is needed)");
	else
		end_request(a, now_ns);
}

void jvm_attach_look(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns,
		     struct pool *pool, struct log *log)
{
	const char *unused;

	switch (a->state) {
	case ATTACH_IDLE:
		if (now_ns >= a->next_ns && !send_request(a, pid, uid, now_ns, pool))
			make_it_listen(a, pid, uid, now_ns, pool, log);
		break;
	case ATTACH_SIGNALLED:
		if (send_request(a, pid, uid, now_ns, pool) || now_ns >= a->deadline_ns) {
			ask_trigger(pool, remove_trigger, pid, uid, &unused);
			if (a->state != ATTACH_WAITING)
				give_up(a, pid, log, "it does not listen");
		}
		break;
	case ATTACH_WAITING:
		read_answer(a, pid, now_ns, log);
		break;
	case ATTACH_REFUSED:
		break;
	}
}

int jvm_command(uint32_t pid, const char *command, struct buf *answer, struct err *err)
{
	struct jvm_attach a = {.command = command};
	struct pool *pool = NULL;
	uint32_t uid = 0;
	int rc;

	if (!proc_pid_user(pid, &uid))
		return err_set(err, ERR_NOT_FOUND, "there is no process %u", pid);
	rc = pool_new("attach", 1, OS_PRIORITY_NORMAL, &pool, err);
	/* A request that was too late for the pool has no answer, and is made again. */
	while (!rc && a.state != ATTACH_REFUSED && (a.state != ATTACH_IDLE || !a.nanswer)) {
		if (a.nrequests == FIRST_REQUESTS)
			give_up(&a, pid, NULL, "/tmp does not answer");
		else
			jvm_attach_look(&a, pid, uid, os_now_ns(), pool, NULL);
		os_sleep_ns(COMMAND_LOOK_NS);
	}
	if (!rc && a.state == ATTACH_REFUSED)
		rc = err_set(err, ERR_UNSUPPORTED, "the JVM with pid %u does not take commands: %s",
			     pid, a.refused);
	else if (!rc)
		buf_puts(answer, a.answer + strspn(a.answer, "0\n"));
	jvm_attach_close(&a);
	pool_free(pool);
	return rc;
}
