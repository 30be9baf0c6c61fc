/* What the files of a system say about an end; here they lie in a folder of the test's own. */
#include "source/host/death.h"

#include "base/bytes.h"
#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PID 4711u
#define GROUP "/system.slice/recorder.service"

static char root[TMP_BYTES];

static void put_bytes(const char *path, const void *bytes, size_t n)
{
	char name[TMP_BYTES + 100], *slash;
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	slash = strrchr(name, '/');
	*slash = '\0';
	assert_int_equal(os_mkdirs(name, NULL), 0);
	*slash = '/';
	f = fopen(name, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void drop(const char *path)
{
	char name[TMP_BYTES + 100];

	snprintf(name, sizeof(name), "%s%s", root, path);
	os_remove(name, NULL);
}

static int begin(void **state)
{
	static const char *const all[] = {
		"/dev/kmsg", "/s.db.exit", "/var/log/kern.log", "/var/log/wtmp",
		"/sys/fs/pstore/dmesg-efi-1", "/var/lib/systemd/pstore/1795230600/dmesg.txt",
	};
	size_t i;

	(void)state;
	snprintf(root, sizeof(root), "%s", tmp_path("death-root"));
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		drop(all[i]);
	put("/proc/sys/kernel/random/boot_id", "boot-2\n");
	put("/sys/fs/cgroup" GROUP "/memory.events", "oom 1\noom_kill 2\n");
	put("/dev/kmsg", "6,1,77,-;Linux version 6\n");
	return 0;
}

/* What is said of a recorder whose last data is a moment old. */
static void expect(const char *boot_id, const char *kills, const char *words)
{
	struct death d = {
		.root = root, .store = "/s.db", .pid = PID, .boot_id = boot_id, .kills = kills,
		.clock_ns = 100 * NS_PER_SEC, .wall_ns = os_wall_ns() - NS_PER_SEC,
	};
	struct buf out = {0};

	death_put_cause(&d, &out);
	if (!strstr(buf_text(&out), words))
		fail_msg("it says \"%s\", not \"%s\"", buf_text(&out), words);
	buf_free(&out);
}

static void without_a_trace_it_is_unknown(void **state)
{
	(void)state;
	expect("boot-2", GROUP " 2", "why is unknown: the machine went on, and the kernel's log "
				     "names no OOM kill");
	drop("/dev/kmsg");
	expect("boot-2", "", "the kernel's log cannot be read");
	expect("", "", "why is unknown");
}

static void the_kernels_log_is_believed_first(void **state)
{
	(void)state;
	put("/s.db.exit", "signal killed KILL\n");
	put("/dev/kmsg", "3,9,101000000,-;Out of memory: Killed process 4711 (recorder)\n");
	expect("boot-2", GROUP " 1", "it was killed because memory ran out (the kernel's log");
	put("/dev/kmsg", "3,9,101000000,-;recorder[4711]: segfault at 0 ip 0\n");
	expect("boot-2", "", "it crashed (the kernel's log says so)");
	/* That of an earlier process with this pid. */
	put("/dev/kmsg", "3,9,1000000,-;Out of memory: Killed process 4711 (recorder)\n");
	expect("boot-2", "", "somebody killed it with SIGKILL (systemd says so)");
}

static void systemd_tells_what_it_saw(void **state)
{
	(void)state;
	put("/s.db.exit", "oom-kill killed KILL\n");
	expect("boot-2", "", "killed because memory ran out (systemd says so)");
	put("/s.db.exit", "watchdog killed ABRT\n");
	expect("boot-2", "", "systemd killed it, as it had not answered");
	put("/s.db.exit", "core-dump dumped SEGV\n");
	expect("boot-2", "", "it crashed with SIGSEGV (systemd");
	put("/s.db.exit", "exit-code exited 1\n");
	expect("boot-2", "", "it exited with status 1 (systemd");
	put("/s.db.exit", "success exited 0\n");
	expect("boot-2", "", "why is unknown");
	put("/s.db.exit", "$SERVICE_RESULT\n");
	expect("boot-2", "", "why is unknown");
}

static void its_group_counts_oom_kills(void **state)
{
	(void)state;
	expect("boot-2", GROUP " 1", "its control group has had an OOM kill since it began");
}

static void put_wtmp(bool shut_down)
{
	uint8_t all[2 * 384] = {0};
	uint32_t now_s = (uint32_t)(os_wall_ns() / NS_PER_SEC);

	all[0] = shut_down ? 1 : 7;
	snprintf((char *)all + 44, 32, "%s", shut_down ? "shutdown" : "alice");
	put_le32(all + 340, now_s + 1);
	all[384] = 2;
	snprintf((char *)all + 384 + 44, 32, "reboot");
	put_le32(all + 384 + 340, now_s + 20);
	put_bytes("/var/log/wtmp", all, sizeof(all));
}

static void a_reboot_in_order_is_in_wtmp(void **state)
{
	(void)state;
	expect("boot-1", "", "started anew: why is unknown, as wtmp does not have it");
	put_wtmp(true);
	expect("boot-1", "", "started anew: it was shut down or rebooted in order");
	put_wtmp(false);
	expect("boot-1", "", "started anew: no shutdown is noted in wtmp before: a power cut");
}

static void a_panic_leaves_its_words(void **state)
{
	(void)state;
	put_wtmp(false);
	put("/sys/fs/pstore/dmesg-efi-1", "Oops#1 Part1\n<4>[ 7.1] Oops: 0000 [#1]\n");
	expect("boot-1", "", "no shutdown is noted");
	put("/sys/fs/pstore/dmesg-efi-1",
	    "Panic#2 Part1\n<0>[ 7.2] Kernel panic - not syncing: Fatal exception\n<4>[ 7.3] x\n");
	expect("boot-1", "", "the kernel panicked: Fatal exception (its last words are in "
			     "/sys/fs/pstore)");
	drop("/sys/fs/pstore/dmesg-efi-1");
	put("/var/lib/systemd/pstore/1795230600/dmesg.txt", "Panic#1 Part2\n<4>[ 7.0] y\n");
	expect("boot-1", "", "the kernel panicked (its last words are in /var/lib/systemd/pstore)");
}

static void a_kill_before_the_reboot_is_in_the_kept_log(void **state)
{
	time_t now = time(NULL), old = now - 3600;
	char line[200], when[40];

	(void)state;
	put_wtmp(true);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&old));
	snprintf(line, sizeof(line), "%s host kernel: Out of memory: Killed process 4711 (rec)\n",
		 when);
	put("/var/log/kern.log", line);
	expect("boot-1", "", "rebooted in order");
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	snprintf(line, sizeof(line), "%s host kernel: Out of memory: Killed process 4711 (rec)\n",
		 when);
	put("/var/log/kern.log", line);
	expect("boot-1", "", "killed because memory ran out (/var/log/kern.log says so); the "
			     "machine was started anew since");
	drop("/dev/kmsg");
	expect("boot-2", "", "memory ran out (/var/log/kern.log says so)");
	snprintf(line, sizeof(line), "%s host kernel: Kernel panic - not syncing: hung\n", when);
	put("/var/log/kern.log", line);
	expect("boot-1", "", "started anew: the kernel panicked (/var/log/kern.log says so)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_a_trace_it_is_unknown, begin),
		cmocka_unit_test_setup(the_kernels_log_is_believed_first, begin),
		cmocka_unit_test_setup(systemd_tells_what_it_saw, begin),
		cmocka_unit_test_setup(its_group_counts_oom_kills, begin),
		cmocka_unit_test_setup(a_reboot_in_order_is_in_wtmp, begin),
		cmocka_unit_test_setup(a_panic_leaves_its_words, begin),
		cmocka_unit_test_setup(a_kill_before_the_reboot_is_in_the_kept_log, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
