/*
 * The source of process exits on Linux, with exit code and signal, from the kernel's process
 * connector. Its events are Linux/Process/Exit with the fields ExitCode, Signal (0 = none) and
 * CoreDump. It is open only when a rule needs exits. It needs the machine's own user, pid and
 * network namespaces, and before Linux 6.6 CAP_NET_ADMIN.
 *
 * The kernel reports pids; the process is looked up EXIT_HOLD_NS later (exit_queue.h). If it is
 * unknown when the exit arrives, /proc is read at once, while the process waits for its parent. An
 * exit without a name is held for up to a second more; a process that nobody saw keeps its pid and
 * the name "?".
 *
 * The exit of the first thread does not always end the process: other threads may go on, and a
 * thread that calls exec replaces the first one, which is killed. So a process that still runs
 * EXIT_HOLD_NS later has not ended. If threads outlive the first one, the last thread's exit
 * counts; the LEADERLESS_MAX newest such processes are remembered.
 *
 * Of a process only /proc/PID/stat and the link /proc/PID/exe are read. They take no lock that a
 * process can hold while it waits for a file system, so a program that hangs does not stop this
 * thread (tests/cli/hung_probes_linux.sh).
 */
#include "base/array.h"
#include "base/os.h"
#include "source/process/exit_flood.h"
#include "source/process/exit_queue.h"
#include "source/host/proc_pid_linux.h"
#include "source/source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define POLL_NS (40 * NS_PER_MS)
#define ANSWER_MS 500
#define LEADERLESS_MAX 64u
#define SOCKET_BYTES (4 << 20)               /* 5,000 exits */
#define RECORDS_AT_ONCE 1024                 /* then the watermark moves on */
#define RECORDS_A_CALL 32
#define RECORD_BYTES 128                     /* one takes 76 */
#define ROUNDS_A_SECOND 100u                 /* at once; then PACE_NS lie between two */
#define PACE_NS (10 * NS_PER_MS)
#define LOOKUPS_A_SECOND 200u                /* of processes that no other source has seen yet */
#define START_SLACK_NS (20 * NS_PER_MS)      /* /proc counts starts in ticks of 10 ms */

struct exit_source {
	struct source base;
	struct processes *processes;
	struct queue *queue;
	struct log *log;
	int fd;                              /* -1 = no rule needs exits */
	struct exit_queue pending;
	uint32_t leaderless[LEADERLESS_MAX]; /* pids whose other threads outlive the first */
	uint32_t next_leaderless;
	bool wants_threads;                  /* there has been one: exits of all threads are read */
	struct exit_flood flood;
	unsigned ncpus;
	uint64_t second;                     /* the numbers that follow are of it */
	uint32_t rounds, lookups;
	bool flood_logged;
	_Atomic bool stopping;
	atomic_uint_fast64_t events, lost;
};

extern const struct source_ops exit_source;

/* ---- asking the kernel ----------------------------------------------------------------------- */

static int send_request(int fd, enum proc_cn_mcast_op op)
{
	char bytes[NLMSG_LENGTH(sizeof(struct cn_msg) + sizeof(uint32_t))] = {0};
	struct nlmsghdr head = {.nlmsg_len = sizeof(bytes), .nlmsg_type = NLMSG_DONE};
	struct cn_msg message = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof(uint32_t)};
	uint32_t what = op;

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + NLMSG_HDRLEN, &message, sizeof(message));
	memcpy(bytes + NLMSG_HDRLEN + sizeof(message), &what, sizeof(what));
	return send(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) ? 0 : -1;
}

/*
 * Let only exits and answers pass; forks, execs and the rest are not even copied, nor are the exits
 * of threads other than the first unless they are wanted. Best effort.
 */
static void filter_exits(int fd, bool threads)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EXIT_RECORD_WHAT_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EXIT_WHAT_ANSWER, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(EXIT_WHAT_EXIT), 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EXIT_RECORD_TID_AT),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EXIT_RECORD_PID_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, threads ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {.len = COUNT_OF(code), .filter = code};

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/*
 * Receive records from the kernel, not from other processes: what is none of these has no kind.
 * returns  how many; 0 = none now; -1 = errno
 */
static int receive_records(int fd, struct exit_record out[RECORDS_A_CALL])
{
	char bytes[RECORDS_A_CALL][RECORD_BYTES];
	struct sockaddr_nl from[RECORDS_A_CALL];
	struct iovec io[RECORDS_A_CALL];
	struct mmsghdr m[RECORDS_A_CALL] = {0};
	int i, n;

	for (i = 0; i < RECORDS_A_CALL; i++) {
		io[i] = (struct iovec){bytes[i], RECORD_BYTES};
		m[i].msg_hdr = (struct msghdr){.msg_name = &from[i], .msg_iov = &io[i],
					       .msg_namelen = sizeof(from[i]), .msg_iovlen = 1};
	}
	n = recvmmsg(fd, m, RECORDS_A_CALL, MSG_DONTWAIT, NULL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	for (i = 0; i < n; i++)
		if (from[i].nl_pid != 0 || !exit_record_parse(bytes[i], m[i].msg_len, &out[i]))
			out[i] = (struct exit_record){0};
	return n;
}

static int report_refusal(struct err *err)
{
	return err_set(err, ERR_ACCESS,
		       "process exits need CAP_NET_ADMIN before Linux 6.6; run as root or give the "
		       "program that capability");
}

/* The kernel answers whomever it serves: silence means that it does not serve this namespace. */
static int wait_for_answer(int fd, struct err *err)
{
	uint64_t end_ns = os_now_ns() + ANSWER_MS * NS_PER_MS;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct exit_record r[RECORDS_A_CALL];
	int i, n;

	while (os_now_ns() < end_ns) {
		if (poll(&p, 1, 20) <= 0)
			continue;
		n = receive_records(fd, r);
		for (i = 0; i < n; i++)
			if (r[i].kind == EXIT_RECORD_ANSWER)
				return r[i].error ? report_refusal(err) : 0;
	}
	return err_set(err, ERR_UNSUPPORTED,
		       "the kernel does not report process exits in containers; run in the "
		       "machine's own pid and user namespaces");
}

static int subscribe(int *out, struct err *err)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR),
	    size = SOCKET_BYTES, rc;

	if (fd < 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "process exits are unavailable: this kernel has no process "
			       "connector (CONFIG_PROC_EVENTS)");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	filter_exits(fd, false);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		rc = report_refusal(err);
	else if (send_request(fd, PROC_CN_MCAST_LISTEN) != 0)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "the kernel does not report process exits here; run in the machine's "
			     "own network namespace, with CONFIG_PROC_EVENTS");
	else
		rc = wait_for_answer(fd, err);
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

static void unsubscribe(int fd)
{
	if (fd < 0)
		return;
	send_request(fd, PROC_CN_MCAST_IGNORE);
	close(fd);
}

/* ---- exits ----------------------------------------------------------------------------------- */

static bool is_leaderless(const struct exit_source *s, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < LEADERLESS_MAX; i++)
		if (s->leaderless[i] == pid)
			return true;
	return false;
}

/* Whether the process still runs: threads outlive the first one, or one has called exec. */
static bool is_still_running(const struct exit_record *r, bool *leaderless)
{
	struct proc_pid now;

	*leaderless = false;
	if (kill((pid_t)r->pid, 0) != 0 && errno == ESRCH)       /* a tenth of what reading takes */
		return false;
	if (!proc_pid_read(r->pid, &now) || now.start_ns > r->time_ns + START_SLACK_NS)
		return false;
	*leaderless = now.state == 'Z' && now.nthreads > 1;
	return *leaderless || (now.state != 'Z' && now.state != 'X');
}

/* The process that other sources know, else a new one; *own: to be dropped again. */
static struct process *find_process(struct exit_source *s, const struct queued_exit *p, bool *own)
{
	struct process *process = process_find(s->processes, p->record.pid, p->record.time_ns);

	*own = !process;
	if (process)
		return process;
	process = process_add(s->processes, p->record.pid,
			      p->start_ns ? p->start_ns : p->record.time_ns, p->exec, 0, p->name);
	if (process)
		process_ref(process);
	return process;
}

static void put_exit(struct exit_source *s, const struct queued_exit *p)
{
	const struct exit_record *r = &p->record;
	struct event_field fields[3] = {
		{.name = "ExitCode", .type = FIELD_UINT, .v.u = r->signal ? 0 : r->code},
		{.name = "Signal", .type = FIELD_UINT, .v.u = r->signal},
		{.name = "CoreDump", .type = FIELD_UINT, .v.u = r->core},
	};
	struct event e = {
		.time_ns = r->time_ns, .kind = EVENT_GENERIC, .cpu = CPU_NONE,
		.stream = STREAM_EVENT, .stack = STACK_NONE, .provider = "Linux",
		.name = "Process/Exit", .fields = fields, .nfields = 3,
	};
	bool own = false;

	e.process = find_process(s, p, &own);
	if (e.process)
		e.thread = thread_add(s->processes, e.process, r->pid);
	if (queue_put(s->queue, &e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
	if (e.process && own)
		process_drop(s->processes, e.process, os_now_ns());
	if (e.process)
		process_unref(e.process);
}

static void release_exit(struct exit_source *s, const struct queued_exit *p)
{
	const struct exit_record *r = &p->record;
	bool leaderless;
	uint32_t i;

	if (is_still_running(r, &leaderless)) {
		if (!leaderless || is_leaderless(s, r->pid))
			return;
		s->leaderless[s->next_leaderless++ % LEADERLESS_MAX] = r->pid;
		if (s->wants_threads)
			return;
		s->wants_threads = true;
		filter_exits(s->fd, true);
		if (is_still_running(r, &leaderless))        /* not ended before the filter */
			return;
	}
	for (i = 0; i < LEADERLESS_MAX; i++)
		if (s->leaderless[i] == r->pid)
			s->leaderless[i] = 0;
	put_exit(s, p);
}

/* ---- running --------------------------------------------------------------------------------- */

static void enqueue_exit(struct exit_source *s, const struct exit_record *r)
{
	struct process *known = process_find(s->processes, r->pid, r->time_ns);
	struct queued_exit p = {.record = *r}, oldest;
	struct proc_pid now;

	if (known) {
		process_unref(known);
	} else if (s->lookups++ < LOOKUPS_A_SECOND && proc_pid_read(r->pid, &now) &&
		   now.start_ns <= r->time_ns + START_SLACK_NS) {
		p.start_ns = now.start_ns;
		snprintf(p.name, sizeof(p.name), "%s", now.name);
	}
	if (s->pending.count == EXIT_QUEUE_MAX && exit_queue_take(&s->pending, UINT64_MAX, &oldest))
		release_exit(s, &oldest);
	exit_queue_put(&s->pending, &p);
}

static void log_flood(struct exit_source *s, uint32_t parent)
{
	atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed);
	if (!s->flood_logged)
		log_line(s->log, LOG_WARN, "processes end faster than they are looked at (children "
			 "of process %" PRIu32 "): rules on exit codes or signals miss some; "
			 "`recorder status` counts them", parent);
	s->flood_logged = true;
}

static void take_exit(struct exit_source *s, const struct exit_record *r)
{
	const bool leaderless = r->pid != r->tid && is_leaderless(s, r->pid);

	if (r->kind != EXIT_RECORD_EXIT || (r->pid != r->tid && !leaderless))
		return;
	if (exit_flood_takes(&s->flood, s->ncpus, r->parent, r->time_ns))
		enqueue_exit(s, r);
	else
		log_flood(s, r->parent);
}

static void receive_all(struct exit_source *s)
{
	struct exit_record r[RECORDS_A_CALL];
	int i, k, got = 1;

	for (i = 0; i < RECORDS_AT_ONCE && (got = receive_records(s->fd, r)) > 0; i += got)
		for (k = 0; k < got; k++)
			take_exit(s, &r[k]);
	/* ENOBUFS: the socket was full. The number of lost records is unknown. */
	if (got < 0 && !atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed))
		log_line(s->log, LOG_WARN,
			 "too many processes ended at once: rules on exit codes or signals may "
			 "have missed some");
}

/*
 * To wake up for each exit costs more than all else, so many exits are read together. Few are read
 * at once: a process can be looked up until its parent has waited for it.
 */
static void wait_for_exits(struct exit_source *s, uint64_t now_ns)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	if (now_ns / NS_PER_SEC != s->second) {
		s->second = now_ns / NS_PER_SEC;
		s->rounds = s->lookups = 0;
	}
	if (++s->rounds > ROUNDS_A_SECOND)
		os_sleep_ns(PACE_NS);
	else
		os_poll(&p, 1, POLL_NS);
}

static int exit_run(struct source *source, struct err *err)
{
	struct exit_source *s = (struct exit_source *)source;
	const struct queued_exit *first;
	struct queued_exit due;
	uint64_t now_ns, until_ns;

	(void)err;
	if (s->fd >= 0)
		os_thread_priority(OS_PRIORITY_HIGH);  /* late lookups find nothing */
	while (s->fd >= 0 && !atomic_load(&s->stopping)) {
		now_ns = os_now_ns();
		until_ns = now_ns - EXIT_HOLD_NS;
		receive_all(s);
		exit_queue_look(&s->pending, now_ns);
		while (exit_queue_take(&s->pending, now_ns, &due))
			release_exit(s, &due);
		first = exit_queue_first(&s->pending);
		if (first && first->record.time_ns < until_ns)
			until_ns = first->record.time_ns;
		queue_watermark(s->queue, until_ns);
		wait_for_exits(s, now_ns);
	}
	queue_finish(s->queue);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int exit_probe(const struct source_config *cfg, struct err *err)
{
	int fd, rc = subscribe(&fd, err);

	(void)cfg;
	if (!rc)
		unsubscribe(fd);
	return rc;
}

static int exit_check(const struct needs *needs, struct err *err)
{
	int rc = needs->endings ? exit_probe(NULL, err) : 0;

	if (rc)
		err_prefix(err, "a rule on exit codes, signals or crashes could never fire");
	return rc;
}

static void exit_close(struct source *source)
{
	struct exit_source *s = (struct exit_source *)source;

	if (!s)
		return;
	unsubscribe(s->fd);
	exit_queue_free(&s->pending);
	free(s);
}

static int exit_open(const struct source_config *cfg, const struct needs *needs,
		     struct source **out, struct err *err)
{
	struct exit_source *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return err_memory(err, "for the source of endings");
	s->base.ops = &exit_source;
	s->processes = cfg->processes;
	s->queue = cfg->queue;
	s->log = cfg->log;
	s->fd = -1;
	s->ncpus = os_cpu_count();
	if (needs->endings) {
		rc = exit_queue_init(&s->pending, s->processes, err);
		if (!rc)
			rc = subscribe(&s->fd, err);
	}
	if (rc) {
		exit_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static void exit_stop(struct source *source)
{
	atomic_store(&((struct exit_source *)source)->stopping, true);
}

static void exit_status(struct source *source, struct source_status *out)
{
	struct exit_source *s = (struct exit_source *)source;

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
	out->lost = queue_lost(s->queue) + atomic_load_explicit(&s->lost, memory_order_relaxed);
}

const struct source_ops exit_source = {
	.name = "endings",
	.summary = "how processes ended, for rules on exit codes, signals and crashes",
	.endings = true,
	.optional = true,
	.check = exit_check,
	.probe = exit_probe,
	.looks_at_others = true,
	.open = exit_open,
	.run = exit_run,
	.stop = exit_stop,
	.status = exit_status,
	.close = exit_close,
};
