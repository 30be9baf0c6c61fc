#include "source/host/peer_linux.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* On a busy machine an answer may come too late. */
static int connect_in_the_end(struct pool *pool, const struct peer *to)
{
	int fd, tries = 1000;

	while ((fd = peer_connect(pool, to)) < 0 && --tries)
		os_sleep_ns(10 * NS_PER_MS);
	return fd;
}

TEST(only_who_is_meant_is_connected_to)
{
	char path[60];
	struct peer to = {path, -1, (uint32_t)getpid(), geteuid()}, other;
	struct pool *pool = NULL;
	int listener, fd;

	snprintf(path, sizeof(path), "/tmp/recorder-peer-%d", (int)getpid());
	listener = listen_at(path);
	assert_int_equal(pool_new("test", 1, OS_PRIORITY_NORMAL, &pool, NULL), 0);
	fd = connect_in_the_end(pool, &to);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);

	other = to;
	other.pid++;
	assert_int_equal(peer_connect(pool, &other), -1);
	other = to;
	other.uid++;
	assert_int_equal(peer_connect(pool, &other), -1);
	other = to;
	other.path = "/nowhere";
	assert_int_equal(peer_connect(pool, &other), -1);

	other.fd = open(path, O_PATH | O_CLOEXEC);
	assert_true(other.fd >= 0);
	fd = connect_in_the_end(pool, &other);
	assert_true(fd >= 0);
	close(fd);
	close(other.fd);
	pool_free(pool);
	close(listener);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_who_is_meant_is_connected_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
