#include "http/listen_linux.h"

#include "tests/support/test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* For good, as RestrictAddressFamilies=AF_UNIX of a unit does. Source: systemd.exec(5). */
static bool allow_unix_sockets_only(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void a_unit_that_forbids_the_address_is_a_wrong_configuration(void **state)
{
	struct listening l;
	struct err err = {0};

	(void)state;
	if (!allow_unix_sockets_only())
		skip();
	assert_int_equal(listening_open("127.0.0.1:9427", &l, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "RestrictAddressFamilies=AF_INET "));
	assert_non_null(strstr(err.text, "recorder help http"));
	assert_int_equal(listening_open("[::1]:9427", &l, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "RestrictAddressFamilies=AF_INET6 "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_that_forbids_the_address_is_a_wrong_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
