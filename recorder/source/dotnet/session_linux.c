#include "source/dotnet/session_linux.h"

#include "base/os.h"
#include "source/host/peer_linux.h"
#include "source/host/proc_pid_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_MB 4                          /* kept by the program while we are slow */
#define LARGE_BUFFER_MB 64                   /* 40,000 methods at once are some 10 MB */
#define ANSWER_NS (5 * NS_PER_SEC)
#define STOP_AGAIN_NS (50 * NS_PER_MS)
#define RETRY_NEW_NS (20 * NS_PER_MS)        /* inotify reports a socket before it listens */
#define RETRY_FIRST_NS NS_PER_SEC
#define RETRY_LAST_NS (64 * NS_PER_SEC)
#define RETRY_OVER_NS (4 * NS_PER_SEC)       /* first, after a stream that failed */
#define CHECK_ALIVE_NS NS_PER_SEC
#define CHECK_STREAM_NS (10 * NS_PER_SEC)    /* rarely: the connection's end shows the program's */
#define PORTIONS 4u                          /* in one step */
#define LATE_MAX_NS (10 * NS_PER_SEC)        /* older times in events are not believed */

/*
 * .NET Core 3 dies when its peer is gone before it has begun the stream that was asked for: without
 * its first write it has no serializer, and uses it. So a program is asked who it is before every
 * request, the events only of one that answers, and that connection stays open until bytes of the
 * stream have come (is_owed()).
 */
enum asked {
	ASKED_WHO,
	ASKED_MAP,
	ASKED_EVENTS,
};

enum state {
	IDLE,                                /* until retry_ns */
	SENDING,
	ANSWERING,
	STREAMING,
	GONE,
};

struct dotnet_session {
	struct dotnet_socket socket;
	const struct dotnet_request *request;
	struct dotnet_program *program;
	struct log *log;
	enum state state;
	uint64_t streams_ns;
	int fd, stop_fd;
	enum asked asked;                    /* in states from SENDING on */
	bool answers;                        /* it has said who it is: the request may follow */
	bool is_old;                         /* .NET Core 3 */
	bool flows;                          /* bytes of the stream have come */
	bool map_done, stopping, failure_logged, settling;
	uint64_t retry_ns, backoff_ns, deadline_ns, next_look_ns;
	uint64_t over_backoff_ns;            /* after the last stream that failed */
	struct buf out;
	size_t sent;
	unsigned char answer[DOTNET_ANSWER_MAX_BYTES];
	size_t nanswer;
	struct dotnet_stream *stream;            /* kept after hanging up while events are queued */
	uint64_t session, lost, lost_reported;
	struct dotnet_held held;             /* in the queue */
	struct proc_own own;
	struct dotnet_queue *queue;          /* during a step */
	uint64_t now_ns;
};

struct dotnet_session *dotnet_session_new(const struct dotnet_socket *socket,
					  const struct dotnet_request *request,
					  struct dotnet_program *program, struct log *log)
{
	struct dotnet_session *s = calloc(1, sizeof(*s));

	if (!s) {
		dotnet_program_free(program, os_now_ns());
		if (socket->fd >= 0)
			close(socket->fd);
		return NULL;
	}
	s->socket = *socket;
	s->held.share.uid = socket->uid;
	s->request = request;
	s->own.pool = request->pool;
	s->program = program;
	s->log = log;
	s->fd = s->stop_fd = -1;
	s->backoff_ns = RETRY_NEW_NS;
	return s;
}

static void hang_up(struct dotnet_session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->flows = false;
	buf_free(&s->out);
	s->sent = s->nanswer = 0;
}

void dotnet_session_free(struct dotnet_session *s, struct processes *processes)
{
	if (!s)
		return;
	hang_up(s);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	if (s->socket.fd >= 0)
		close(s->socket.fd);
	proc_pid_drop(processes, &s->own);
	dotnet_stream_free(s->stream);
	dotnet_program_free(s->program, os_now_ns());
	free(s);
}

const struct dotnet_socket *dotnet_session_socket(const struct dotnet_session *s)
{
	return &s->socket;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Connect, and check that the peer is the expected process; -1 = failed. */
static int connect_to(const struct dotnet_session *s)
{
	const struct peer to = {s->socket.path, s->socket.fd, s->socket.pid, s->socket.uid};

	return peer_connect(s->request->pool, &to);
}

static void retry_later(struct dotnet_session *s)
{
	hang_up(s);
	s->state = s->stopping || s->request->role == DOTNET_RUNDOWN ? GONE : IDLE;
	s->next_look_ns = s->now_ns;
	s->retry_ns = s->now_ns + s->backoff_ns;
	s->backoff_ns = s->backoff_ns * 2 < RETRY_LAST_NS ? s->backoff_ns * 2 : RETRY_LAST_NS;
}

/* One line a program. */
static void warn(struct dotnet_session *s, const char *what)
{
	if (!s->failure_logged && s->request->role == DOTNET_EVENTS)
		log_line(s->log, LOG_WARN, ".NET program with pid %u: %s", s->socket.pid, what);
	s->failure_logged = true;
}

static void give_up(struct dotnet_session *s, const char *why)
{
	char what[300];

	snprintf(what, sizeof(what), "%.250s; retrying later", why);
	warn(s, what);
	retry_later(s);
}

/* Keeps the number of its losses. */
static void drop_stream(struct dotnet_session *s)
{
	s->lost = dotnet_session_lost(s);
	s->lost_reported = 0;
	dotnet_stream_free(s->stream);
	s->stream = NULL;
}

/* Not while events of the last stream are queued: that stream has their descriptions. */
static bool may_request(const struct dotnet_session *s)
{
	return (s->request->n || (s->request->perf_map && !s->map_done)) &&
	       !(s->stream && s->held.n);
}

static void put_request(struct dotnet_session *s)
{
	if (s->asked == ASKED_WHO)
		dotnet_ask_who(&s->out);
	else if (s->asked == ASKED_MAP)
		dotnet_ask_perf_map(&s->out);
	else
		dotnet_ask_collect(&s->out, s->request->providers, s->request->n,
				   s->request->comes_at_once ? LARGE_BUFFER_MB : BUFFER_MB,
				   s->request->role == DOTNET_RUNDOWN);
}

static void start_request(struct dotnet_session *s)
{
	if (!may_request(s))
		return;
	s->asked = !s->answers ? ASKED_WHO :
		   s->request->perf_map && !s->map_done ? ASKED_MAP : ASKED_EVENTS;
	s->answers = false;
	drop_stream(s);
	/* Its stream is made before it is asked for. */
	s->fd = s->asked == ASKED_EVENTS && dotnet_stream_new(s->request->streams, s->socket.uid,
							      &s->stream, NULL) ? -1
									       : connect_to(s);
	if (s->fd < 0) {
		retry_later(s);
		return;
	}
	if (s->backoff_ns < RETRY_FIRST_NS)
		s->backoff_ns = RETRY_FIRST_NS;
	put_request(s);
	s->state = SENDING;
	s->deadline_ns = s->now_ns + ANSWER_NS;
	if (s->out.failed)
		give_up(s, "the request is too long");
}

static void send_more(struct dotnet_session *s)
{
	ssize_t n = send(s->fd, s->out.data + s->sent, s->out.len - s->sent, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		retry_later(s);
		return;
	}
	s->sent += n > 0 ? (size_t)n : 0;
	if (s->sent == s->out.len)
		s->state = ANSWERING;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static uint64_t to_ns(const struct dotnet_session *s, uint64_t ticks)
{
	uint64_t hz = dotnet_stream_facts(s->stream)->ticks_per_sec, ns = ticks;

	if (hz != NS_PER_SEC)
		ns = ticks / hz * NS_PER_SEC + (uint64_t)((double)(ticks % hz) * 1e9 / (double)hz);
	if (ns > s->now_ns)
		return s->now_ns;
	return s->now_ns - ns > LATE_MAX_NS ? s->now_ns - LATE_MAX_NS : ns;
}

static int queue_event(void *ctx, const struct nettrace_event *event)
{
	struct dotnet_session *s = ctx;

	if (s->program && dotnet_tells_code(event))
		dotnet_program_learn(s->program, event, to_ns(s, event->ticks));
	if (s->request->role != DOTNET_EVENTS)
		return 0;
	if (!dotnet_queue_put(s->queue, to_ns(s, event->ticks), s, &s->held, event))
		s->lost++;
	return 0;
}

static void feed_stream(struct dotnet_session *s, const void *bytes, size_t n)
{
	struct err err;
	int rc = dotnet_stream_feed(s->stream, bytes, n, queue_event, s, &err);

	s->flows = true;
	s->lost += rc != 0;
	if (rc == ERR_STOPPED && s->now_ns - s->streams_ns >= RETRY_FIRST_NS) {
		s->backoff_ns = RETRY_NEW_NS;   /* not its fault: at once, but once a second */
	} else if (rc && rc != ERR_STOPPED) {
		/* Later each time: whoever floods, or ends the process, gets little of our time. */
		s->over_backoff_ns = s->over_backoff_ns ? s->over_backoff_ns * 2 : RETRY_OVER_NS;
		if (s->over_backoff_ns > RETRY_LAST_NS)
			s->over_backoff_ns = RETRY_LAST_NS;
		s->backoff_ns = s->over_backoff_ns;
	}
	if (rc)
		give_up(s, err.text);
	else if (dotnet_stream_facts(s->stream)->ended)
		retry_later(s);
	else if (dotnet_stream_facts(s->stream)->refused_kinds)
		warn(s, "its kinds of events exceed its share of the memory for .NET programs; "
			"some of its events are dropped");
}

/* The request follows at once. .NET Core 3 is not asked for its code: see session_linux.h. */
static void take_who(struct dotnet_session *s, bool refused)
{
	hang_up(s);
	s->answers = true;
	s->is_old = refused;
	s->retry_ns = s->now_ns;
	s->state = s->stopping || (s->is_old && s->request->role != DOTNET_EVENTS) ? GONE : IDLE;
	if (s->is_old && s->request->role == DOTNET_CODE)
		log_line(s->log, LOG_WARN,
			 ".NET program with pid %u is of .NET Core 3, which can hang when it stops "
			 "telling of its code: it is not asked for the names of generated code",
			 s->socket.pid);
}

static void read_answer(struct dotnet_session *s)
{
	struct dotnet_answer answer;
	struct err err;
	char why[100];
	bool is_who = s->asked == ASKED_WHO;
	int length = is_who ? dotnet_answer_head(s->answer, s->nanswer, &answer.refused, &err)
			    : dotnet_answer(s->answer, s->nanswer, &answer, &err);

	if (length < 0)
		give_up(s, err.text);
	if (length <= 0)
		return;
	if (is_who) {
		take_who(s, answer.refused);
		return;
	}
	if (s->asked == ASKED_MAP) {
		s->map_done = true;
		hang_up(s);
		s->state = s->stopping ? GONE : IDLE;
		if (answer.refused)
			log_line(s->log, LOG_WARN,
				 ".NET program with pid %u does not write a map of its code (needs "
				 ".NET 8): error %#llx",
				 s->socket.pid, (unsigned long long)answer.value);
		return;
	}
	if (answer.refused) {
		snprintf(why, sizeof(why), "it refuses to send events, error %#llx",
			 (unsigned long long)answer.value);
		give_up(s, why);
		return;
	}
	s->session = answer.value;
	s->state = STREAMING;
	s->streams_ns = s->now_ns;
	if (s->request->role == DOTNET_CODE && s->program)
		dotnet_program_tells(s->program, s->now_ns);
	s->lost_reported = 0;
	/* The rundown comes when the session is stopped. */
	s->stopping |= s->request->role == DOTNET_RUNDOWN;
	if (s->nanswer > (size_t)length)
		feed_stream(s, s->answer + length, s->nanswer - (size_t)length);
}

/* Whether hanging up now would be dangerous for the program. */
static bool is_owed(const struct dotnet_session *s)
{
	return s->fd >= 0 && s->asked == ASKED_EVENTS && s->sent && !s->flows;
}

static void receive_more(struct dotnet_session *s)
{
	char bytes[DOTNET_PORTION_MAX_BYTES];
	unsigned i;
	ssize_t n;

	for (i = 0; i < PORTIONS && (s->state == ANSWERING || s->state == STREAMING); i++) {
		size_t room =
			s->state == ANSWERING ? sizeof(s->answer) - s->nanswer : sizeof(bytes);

		n = recv(s->fd, s->state == ANSWERING ? (char *)s->answer + s->nanswer : bytes,
			 room, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			retry_later(s);
			return;
		}
		if (s->state == ANSWERING) {
			s->nanswer += (size_t)n;
			read_answer(s);
		} else {
			s->backoff_ns = RETRY_FIRST_NS;
			feed_stream(s, bytes, (size_t)n);
		}
	}
}

/* ---- one step -------------------------------------------------------------------------------- */

void dotnet_session_polled(const struct dotnet_session *s, struct pollfd *out)
{
	*out = (struct pollfd){.fd = s->fd, .events = s->state == SENDING ? POLLOUT : POLLIN};
}

uint64_t dotnet_session_due_ns(const struct dotnet_session *s)
{
	uint64_t due_ns = s->next_look_ns;

	if (s->state == GONE)
		return UINT64_MAX;
	if ((s->state == SENDING || s->state == ANSWERING) && s->deadline_ns < due_ns)
		due_ns = s->deadline_ns;
	if (s->state == IDLE && may_request(s) && s->retry_ns < due_ns)
		due_ns = s->retry_ns;
	return due_ns;
}

/* Again at the next step if it is too busy to connect. */
static void ask_to_stop(struct dotnet_session *s)
{
	struct buf out = {0};

	s->next_look_ns = s->now_ns + STOP_AGAIN_NS;
	s->stop_fd = connect_to(s);
	if (s->stop_fd < 0)
		return;
	dotnet_ask_stop(&out, s->session);
	if (out.failed ||
	    send(s->stop_fd, out.data, out.len, MSG_NOSIGNAL) != (ssize_t)out.len) {
		hang_up(s);
		s->state = GONE;
	}
	buf_free(&out);
}

void dotnet_session_stop(struct dotnet_session *s)
{
	s->stopping = true;
	if (s->state == STREAMING && s->flows) {
		if (s->stop_fd < 0)
			ask_to_stop(s);
	} else if (!is_owed(s)) {
		hang_up(s);
		s->state = GONE;
	}
}

bool dotnet_session_waits(const struct dotnet_session *s)
{
	return is_owed(s) || (s->is_old && s->state == STREAMING);
}

void dotnet_session_step(struct dotnet_session *s, bool ready, uint64_t now_ns,
			 struct dotnet_queue *queue)
{
	s->now_ns = now_ns;
	s->queue = queue;
	if (!s->settling)
		s->retry_ns = now_ns + s->request->settle_ns;
	s->settling = true;
	if (s->state == SENDING && ready)
		send_more(s);
	else if (ready && (s->state == ANSWERING || s->state == STREAMING))
		receive_more(s);
	if ((s->state == SENDING || s->state == ANSWERING) && now_ns > s->deadline_ns) {
		s->deadline_ns = UINT64_MAX;
		if (!is_owed(s))
			give_up(s, "it did not answer within 5 s");
		else
			warn(s, "it has not begun to send events for 5 s; waiting on");
	}
	if (s->state == STREAMING && s->stopping && s->stop_fd < 0 && s->flows)
		ask_to_stop(s);
	/* Not while bytes are ready: all that the program sent before its end is read first. */
	if (!ready && now_ns >= s->next_look_ns && s->state != GONE) {
		s->next_look_ns =
			now_ns + (s->state == STREAMING ? CHECK_STREAM_NS : CHECK_ALIVE_NS);
		if (!dotnet_socket_lives(&s->socket)) {
			hang_up(s);
			s->state = GONE;
		}
	}
	if (s->state == IDLE && s->stream && !s->held.n)
		drop_stream(s);
	if (s->state == IDLE && now_ns >= s->retry_ns)
		start_request(s);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool dotnet_session_is_over(const struct dotnet_session *s)
{
	return s->state == GONE && !s->held.n;
}

bool dotnet_session_is_old(const struct dotnet_session *s)
{
	return s->is_old;
}

uint64_t dotnet_session_lost(struct dotnet_session *s)
{
	uint64_t by_program = s->stream ? dotnet_stream_facts(s->stream)->lost : 0, n = s->lost;

	if (by_program > s->lost_reported)
		n += by_program - s->lost_reported;
	s->lost_reported = by_program;
	s->lost = 0;
	return n;
}

struct dotnet_program *dotnet_session_program(const struct dotnet_session *s)
{
	return s->program;
}

enum dotnet_role dotnet_session_role(const struct dotnet_session *s)
{
	return s->request->role;
}

bool dotnet_session_has_streamed(const struct dotnet_session *s)
{
	return s->streams_ns != 0;
}

uint64_t dotnet_session_streams_ns(const struct dotnet_session *s)
{
	return s->state == STREAMING ? s->streams_ns : 0;
}

uint32_t dotnet_session_pointer_bytes(const struct dotnet_session *s)
{
	return s->stream ? dotnet_stream_facts(s->stream)->pointer_bytes : 8;
}

struct process *dotnet_session_process(struct dotnet_session *s, struct processes *processes)
{
	return proc_pid_process(processes, s->socket.pid, &s->own);
}
