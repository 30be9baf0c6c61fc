/*
 * This process plays the program at a diagnostic socket: one that answers well, one that says
 * nothing, one that talks nonsense, one that hangs up. Tests set the time instead of waiting.
 */
#include "base/os.h"
#include "source/dotnet/session_linux.h"
#include "source/host/proc_parse.h"
#include "tests/unit/dotnet/child_linux.h"
#include "tests/support/nettrace_writer.h"
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct lab {
	struct dotnet_socket socket;
	struct dotnet_request ask;
	struct dotnet_session *session;
	struct dotnet_queue queue;
	struct shares queue_shares;
	struct log *log;
	struct pool *pool;
	int listener, peer;
	uint64_t now_ns;
};

static uint64_t start_of(pid_t pid)
{
	char path[40];
	struct buf text = {0};
	struct proc_stat stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	assert_int_equal(os_load(path, 8192, &text, NULL), 0);
	assert_true(proc_stat_parse(text_of(buf_text(&text), text.len), &stat));
	buf_free(&text);
	return stat.start_ticks;
}

static void open_lab(struct lab *l)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memset(l, 0, sizeof(*l));
	l->socket = (struct dotnet_socket){.pid = (uint32_t)getpid(), .uid = geteuid(), .fd = -1,
					   .key = start_of(getpid())};
	snprintf(l->socket.path, sizeof(l->socket.path), "%s/dn-%u",
		 os_env("TEST_TMP") ? os_env("TEST_TMP") : "/tmp", (unsigned)getpid());
	strcpy(address.sun_path, l->socket.path);
	unlink(address.sun_path);
	l->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(l->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(l->listener, 4), 0);
	strcpy(l->ask.names[0], "A");
	l->ask.providers[0] =
		(struct dotnet_provider){.name = l->ask.names[0], .keywords = 1, .level = 4};
	l->ask.n = 1;
	assert_int_equal(dotnet_streams_new(os_uid(), &l->ask.streams, NULL), 0);
	dotnet_queue_share(&l->queue, &l->queue_shares, os_uid());
	assert_int_equal(pool_new("test", 1, OS_PRIORITY_NORMAL, &l->pool, NULL), 0);
	l->ask.pool = l->pool;
	assert_int_equal(log_open("/dev/null", &l->log, NULL), 0);
	l->session = dotnet_session_new(&l->socket, &l->ask, NULL, l->log);
	assert_non_null(l->session);
	l->now_ns = os_now_ns();
	l->peer = -1;
}

static void step(struct lab *l, bool ready)
{
	dotnet_session_step(l->session, ready, l->now_ns, &l->queue);
}

static int fd_of(struct lab *l)
{
	struct pollfd p;

	dotnet_session_polled(l->session, &p);
	return p.fd;
}

static const char yes[] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x8\7\6\5\4\3\2\1";
static const char newer[] = "DOTNET_IPC_V1\0\x18\0\xff\0\0\0\1\2\3\4";
static const char older[] = "DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80";

/* The session connects; accept, and read its request. returns its bytes */
static ssize_t take_one(struct lab *l, char bytes[200])
{
	unsigned tries;
	ssize_t n;

	step(l, false);
	/* A machine that is too busy to connect in time has it tried again later. */
	for (tries = 0; fd_of(l) < 0 && tries < 8; tries++) {
		os_sleep_ns(50 * NS_PER_MS);
		l->now_ns += 64 * NS_PER_SEC;
		step(l, false);
	}
	assert_true(fd_of(l) >= 0);
	/* Connections of tries that were given up wait before it, at their end. */
	do {
		l->peer = accept(l->listener, NULL, NULL);
		assert_true(l->peer >= 0);
		step(l, true);
		n = read(l->peer, bytes, 200);
	} while (!n && tries-- && !close(l->peer));
	return n;
}

/* It asks who this is. */
static void take_who(struct lab *l)
{
	char bytes[200];

	assert_int_equal(take_one(l, bytes), 20);
	assert_memory_equal(bytes, "DOTNET_IPC_V1\0\x14\0\4\0\0\0", 20);
}

static void answer_who(struct lab *l, const char answer[24])
{
	assert_int_equal(send(l->peer, answer, 24, MSG_NOSIGNAL), 24);
	step(l, true);
	close(l->peer);
	l->peer = -1;
}

static void take_events(struct lab *l)
{
	char bytes[200];

	assert_int_equal(take_one(l, bytes), 57);
	assert_memory_equal(bytes, "DOTNET_IPC_V1\0\x39\0\2\3", 18);
}

static void take_call(struct lab *l)
{
	take_who(l);
	answer_who(l, newer);
	take_events(l);
}

static void say(struct lab *l, const void *bytes, size_t n)
{
	assert_int_equal(send(l->peer, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
	step(l, true);
}

static void close_lab(struct lab *l)
{
	dotnet_queue_free(&l->queue);
	dotnet_session_free(l->session, NULL);
	assert_int_equal(dotnet_streams_kind_bytes(l->ask.streams), 0);
	dotnet_streams_free(l->ask.streams);
	assert_int_equal(l->queue_shares.used, 0);
	log_close(l->log);
	pool_free(l->pool);
	close(l->listener);
	if (l->peer >= 0)
		close(l->peer);
	unlink(l->socket.path);
}

static void count(void *ctx, const struct dotnet_queued *held)
{
	(void)held;
	++*(unsigned *)ctx;
}

TEST(a_program_that_answers_gives_its_events)
{
	struct buf file = {0};
	unsigned events = 0;
	struct lab l;
	size_t at, n;

	open_lab(&l);
	take_call(&l);
	/* In two parts, the second with the stream's first bytes. */
	say(&l, yes, 10);
	assert_int_equal(os_load("tests/data/nettrace/gc.nettrace", 1 << 20, &file, NULL), 0);
	assert_int_equal(send(l.peer, yes + 10, 18, MSG_NOSIGNAL), 18);
	for (at = 0; at < file.len; at += n) {
		n = file.len - at < 1000 ? file.len - at : 1000;
		say(&l, file.data + at, n);
	}
	dotnet_queue_release(&l.queue, UINT64_MAX, count, &events);
	assert_int_equal(events, 208);
	assert_int_equal(dotnet_session_lost(l.session), 0);
	/* The stream has ended, so the session asks again later. */
	assert_int_equal(fd_of(&l), -1);
	l.now_ns += 2 * NS_PER_SEC;
	close(l.peer);
	take_call(&l);
	buf_free(&file);
	close_lab(&l);
}

TEST(one_that_says_nothing_is_given_up_and_asked_again_later)
{
	struct lab l;

	open_lab(&l);
	take_who(&l);
	l.now_ns += 4 * NS_PER_SEC;
	step(&l, false);
	assert_true(fd_of(&l) >= 0);
	l.now_ns += 2 * NS_PER_SEC;
	step(&l, false);
	assert_int_equal(fd_of(&l), -1);
	l.now_ns += 2 * NS_PER_SEC;
	close(l.peer);
	take_call(&l);
	assert_false(dotnet_session_is_over(l.session));
	close_lab(&l);
}

/* .NET Core 3 would die of it. */
TEST(one_that_owes_a_stream_is_not_hung_up_on)
{
	char bytes[200];
	struct lab l;

	open_lab(&l);
	take_call(&l);
	assert_true(dotnet_session_waits(l.session));
	l.now_ns += 60 * NS_PER_SEC;
	step(&l, false);
	dotnet_session_stop(l.session);
	step(&l, false);
	say(&l, yes, 28);
	assert_true(fd_of(&l) >= 0);
	assert_true(dotnet_session_waits(l.session));
	/* Its first bytes are there, so it is asked to stop. */
	say(&l, "Nettrace", 8);
	assert_false(dotnet_session_waits(l.session));
	close(l.peer);
	l.peer = accept(l.listener, NULL, NULL);
	assert_int_equal(read(l.peer, bytes, sizeof(bytes)), 28);
	assert_memory_equal(bytes, "DOTNET_IPC_V1\0\x1c\0\2\1\0\0\x8\7\6\5\4\3\2\1", 28);
	step(&l, true);
	assert_true(dotnet_session_is_over(l.session));
	close_lab(&l);
}

TEST(core_3_is_asked_for_events_only)
{
	struct lab l;

	open_lab(&l);
	take_who(&l);
	answer_who(&l, older);
	take_events(&l);
	dotnet_session_free(l.session, NULL);
	close(l.peer);
	l.ask.role = DOTNET_CODE;
	l.session = dotnet_session_new(&l.socket, &l.ask, NULL, l.log);
	take_who(&l);
	answer_who(&l, older);
	assert_true(dotnet_session_is_over(l.session));
	close_lab(&l);
}

TEST(one_that_talks_nonsense_is_given_up)
{
	static const char *const talks[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
	struct lab l;
	unsigned i;

	for (i = 0; i < 2; i++) {
		open_lab(&l);
		take_who(&l);
		if (i) {
			answer_who(&l, newer);
			take_events(&l);
			say(&l, yes, 28);
		}
		say(&l, talks[i], 16);
		assert_int_equal(fd_of(&l), -1);
		l.now_ns += (i ? 4 : 1) * NS_PER_SEC - NS_PER_MS;
		step(&l, false);
		assert_int_equal(fd_of(&l), -1);
		close_lab(&l);
	}
}

TEST(one_whose_stream_was_ended_by_another_is_asked_again_at_once)
{
	struct buf file = {0};
	unsigned events = 0;
	struct lab l;

	open_lab(&l);
	assert_int_equal(os_load("tests/data/nettrace/gc.nettrace", 1 << 20, &file, NULL), 0);
	take_call(&l);
	say(&l, yes, 28);
	say(&l, file.data, 500);
	l.now_ns += NS_PER_SEC;
	assert_int_equal(kill(last_child(), SIGKILL), 0);
	say(&l, file.data + 500, 500);
	assert_int_equal(fd_of(&l), -1);
	assert_int_equal(dotnet_session_lost(l.session), 1);
	dotnet_queue_release(&l.queue, UINT64_MAX, count, &events);
	l.now_ns += 20 * NS_PER_MS;
	close(l.peer);
	take_call(&l);
	buf_free(&file);
	close_lab(&l);
}

TEST(one_that_hangs_up_is_called_later_and_later)
{
	struct lab l;

	open_lab(&l);
	take_call(&l);
	close(l.peer);
	step(&l, true);
	assert_int_equal(fd_of(&l), -1);
	l.now_ns += 1100 * NS_PER_MS;
	take_call(&l);
	close(l.peer);
	step(&l, true);
	l.now_ns += 1100 * NS_PER_MS;                /* the delay has doubled to 2 s */
	step(&l, false);
	assert_int_equal(fd_of(&l), -1);
	l.now_ns += NS_PER_SEC;
	take_call(&l);
	close_lab(&l);
}

/* Of 32 MB for descriptions a program may hold 4: it is ended, and all that it held is free. */
TEST(one_that_describes_without_end_is_left_and_asked_later_and_later)
{
	struct nettrace_writer w;
	struct lab l;
	unsigned turn;

	open_lab(&l);
	for (turn = 0; turn < 3; turn++) {
		w = (struct nettrace_writer){0};
		take_call(&l);
		say(&l, yes, 28);
		nettrace_write_head(&w);
		while (fd_of(&l) >= 0) {
			nettrace_write_kinds(&w, 20);
			say(&l, w.bytes.data, w.bytes.len);
			nettrace_writer_sent(&w);
			assert_true(dotnet_streams_kind_bytes(l.ask.streams) <= 4 << 20);
		}
		buf_free(&w.bytes);
		assert_true(dotnet_session_lost(l.session) > 0);
		step(&l, false);
		assert_int_equal(dotnet_streams_kind_bytes(l.ask.streams), 0);
		/* After 4 s, 8 s, 16 s. */
		l.now_ns += ((uint64_t)4 << turn) * NS_PER_SEC - NS_PER_MS;
		step(&l, false);
		assert_int_equal(fd_of(&l), -1);
		l.now_ns += NS_PER_MS;
		close(l.peer);
	}
	l.peer = -1;
	close_lab(&l);
}

TEST(one_that_was_just_found_is_left_alone_for_a_moment)
{
	struct lab l;

	open_lab(&l);
	l.ask.settle_ns = 500 * NS_PER_MS;
	assert_true(dotnet_session_due_ns(l.session) <= l.now_ns);
	step(&l, false);
	assert_int_equal(fd_of(&l), -1);
	assert_int_equal(dotnet_session_due_ns(l.session), l.now_ns + 500 * NS_PER_MS);
	l.now_ns += 499 * NS_PER_MS;
	step(&l, false);
	assert_int_equal(fd_of(&l), -1);
	l.now_ns += NS_PER_MS;
	take_call(&l);
	close_lab(&l);
}

TEST(a_socket_of_another_process_is_not_believed)
{
	struct lab l;

	open_lab(&l);
	dotnet_session_free(l.session, NULL);
	l.socket.pid = (uint32_t)getppid();          /* the peer is another process */
	l.socket.key = start_of(getppid());
	l.session = dotnet_session_new(&l.socket, &l.ask, NULL, l.log);
	step(&l, false);
	assert_int_equal(fd_of(&l), -1);
	assert_false(dotnet_session_is_over(l.session));
	dotnet_session_free(l.session, NULL);
	l.socket.key++;                              /* the process started at another time */
	l.session = dotnet_session_new(&l.socket, &l.ask, NULL, l.log);
	step(&l, false);
	assert_true(dotnet_session_is_over(l.session));
	close_lab(&l);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_answers_gives_its_events),
		cmocka_unit_test(one_that_says_nothing_is_given_up_and_asked_again_later),
		cmocka_unit_test(one_that_talks_nonsense_is_given_up),
		cmocka_unit_test(one_whose_stream_was_ended_by_another_is_asked_again_at_once),
		cmocka_unit_test(one_that_owes_a_stream_is_not_hung_up_on),
		cmocka_unit_test(core_3_is_asked_for_events_only),
		cmocka_unit_test(
			one_that_describes_without_end_is_left_and_asked_later_and_later),
		cmocka_unit_test(one_that_was_just_found_is_left_alone_for_a_moment),
		cmocka_unit_test(one_that_hangs_up_is_called_later_and_later),
		cmocka_unit_test(a_socket_of_another_process_is_not_believed),
	};

	if (argc == 2 && !strcmp(argv[1], DOTNET_STREAMS_WORD))
		return dotnet_streams_serve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
