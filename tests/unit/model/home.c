/*
 * Where a process lives, by the path of its control group. Paths are those that the named programs
 * make: where each format comes from is at the head of model/home.h.
 */
#include "model/home.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define A "4f1e8c1d2b3a49586776f5e4d3c2b1a00918273645546372819a0b1c2d3e4f50"
#define B "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define UID "0f5f3e2a-1b2c-4d5e-8f90-a1b2c3d4e5f6"
#define UID_ "0f5f3e2a_1b2c_4d5e_8f90_a1b2c3d4e5f6"
#define STATIC_UID "8d8b6c5f4e3d2c1b0a99887766554433"
#define KUBE "/kubepods.slice/kubepods-"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *text, *container, *unit, *pod, *service;     /* "" = none */
} homes[] = {
	/* Docker: cgroupfs (version 1, or 2 without systemd), systemd, nested. */
	{"/docker/" A, A, "", "", ""},
	{"/system.slice/docker-" A ".scope", A, "docker-" A ".scope", "", ""},
	{"/docker/" A "/docker/" B, B, "", "", ""},
	{"/system.slice/docker-" A ".scope/init.scope", A, "init.scope", "", ""},
	/* Kubernetes with containerd: systemd, cgroupfs, and both mixed. */
	{KUBE "burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" A ".scope",
	 A, "cri-containerd-" A ".scope", UID, ""},
	{KUBE "besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" A ".scope",
	 A, "cri-containerd-" A ".scope", UID, ""},
	{KUBE "pod" UID_ ".slice/cri-containerd-" A ".scope", A, "cri-containerd-" A ".scope", UID,
	 ""},
	{"/kubepods/burstable/pod" UID "/" A, A, "", UID, ""},
	{"/kubepods/besteffort/pod" STATIC_UID "/" A, A, "", STATIC_UID, ""},
	{"/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" A,
	 A, "containerd.service", UID, ""},
	/* Docker by dockershim, CRI-O, and CRI-O's monitor. */
	{KUBE "burstable.slice/kubepods-burstable-pod" UID_ ".slice/docker-" A ".scope", A,
	 "docker-" A ".scope", UID, ""},
	{KUBE "burstable.slice/kubepods-burstable-pod" UID_ ".slice/crio-" A ".scope", A,
	 "crio-" A ".scope", UID, ""},
	{KUBE "burstable.slice/kubepods-burstable-pod" UID_ ".slice/crio-conmon-" A ".scope", "",
	 "crio-conmon-" A ".scope", UID, ""},
	{"/kubepods/burstable/pod" UID "/crio-" A, A, "", UID, ""},
	/* Podman: root's, cgroupfs, a user's, its monitor, with systemd in the container. */
	{"/machine.slice/libpod-" A ".scope/container", A, "libpod-" A ".scope", "", ""},
	{"/libpod_parent/libpod-" A, A, "", "", ""},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope", A,
	 "libpod-" A ".scope", "", ""},
	{"/machine.slice/libpod-conmon-" A ".scope", "", "libpod-conmon-" A ".scope", "", ""},
	{"/machine.slice/libpod-" A ".scope/system.slice/nginx.service", A, "nginx.service", "",
	 ""},
	{"/system.slice/web.service/libpod-payload-" A, A, "web.service", "", ""},
	/* systemd: services, instances, users, what it escapes. */
	{"/system.slice/nginx.service", "", "nginx.service", "", ""},
	{"/system.slice/system-postgresql.slice/postgresql@15-main.service", "",
	 "postgresql@15-main.service", "", ""},
	{"/user.slice/user-1000.slice/session-2.scope", "", "session-2.scope", "", ""},
	{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-x\\x2dy-7.scope", "",
	 "app-gnome-x\\x2dy-7.scope", "", ""},
	{"/user.slice/user-1000.slice", "", "user-1000.slice", "", ""},
	{"/system.slice/_cgroup.service", "", "cgroup.service", "", ""},
	{"/init.scope", "", "init.scope", "", ""},
	{"/system.slice/web.service/workers/3", "", "web.service", "", ""},
	/* Seen from another control group namespace; with a service; what says nothing. */
	{"/../docker-" A ".scope", A, "docker-" A ".scope", "", ""},
	{"/../..", "", "", "", ""},
	{"/system.slice/shop.service\nshop checkout", "", "shop.service", "", "shop checkout"},
	{"\nshop", "", "", "", "shop"},
	{"/build/" A "0", "", "", "", ""},           /* 65 digits */
	{"/build/x" A, "", "", "", ""},
	{"/podracer/podium", "", "", "", ""},
	{"/.service/.scope", "", "", "", ""},
	{"", "", "", "", ""},
};

TEST(containers_units_and_pods_are_read_from_paths)
{
	struct home h;
	size_t i;

	for (i = 0; i < COUNT(homes); i++) {
		home_read(homes[i].text, &h);
		if (strcmp(h.of[HOME_CONTAINER], homes[i].container) != 0 ||
		    strcmp(h.of[HOME_UNIT], homes[i].unit) != 0 ||
		    strcmp(h.of[HOME_POD], homes[i].pod) != 0 ||
		    strcmp(h.of[HOME_SERVICE], homes[i].service) != 0)
			fail_msg("'%s': container '%s', unit '%s', pod '%s', service '%s'",
				 homes[i].text, h.of[HOME_CONTAINER], h.of[HOME_UNIT],
				 h.of[HOME_POD], h.of[HOME_SERVICE]);
	}
}

TEST(long_parts_are_cut_or_passed_over)
{
	char text[1200] = "/system.slice/";
	struct home h;

	memset(text + strlen(text), 'a', 300);
	strcat(text, ".service\n");
	memset(text + strlen(text), 'b', 300);
	home_read(text, &h);
	assert_string_equal(h.of[HOME_UNIT], "system.slice");
	assert_int_equal(strlen(h.of[HOME_SERVICE]), HOME_PART_BYTES - 1);
}

TEST(a_unit_has_all_that_lives_below_it)
{
	const char *text = "/user.slice/user-1000.slice/user@1000.service/app.slice/vim.service\nx";

	assert_true(home_is(text, HOME_UNIT, "vim.service"));
	assert_true(home_is(text, HOME_UNIT, "vim"));
	assert_true(home_is(text, HOME_UNIT, "user@1000"));
	assert_true(home_is(text, HOME_UNIT, "user.slice"));
	assert_false(home_is(text, HOME_UNIT, "user"));
	assert_false(home_is(text, HOME_UNIT, "vim.servic"));
	assert_false(home_is(text, HOME_UNIT, ""));
	assert_false(home_is("/a/b", HOME_UNIT, "a"));
}

TEST(a_container_is_found_by_its_first_digits)
{
	assert_true(home_is("/docker/" A, HOME_CONTAINER, A));
	assert_true(home_is("/docker/" A, HOME_CONTAINER, "4f1e"));
	assert_false(home_is("/docker/" A, HOME_CONTAINER, "4f1"));
	assert_false(home_is("/docker/" A, HOME_CONTAINER, "4f1f"));
	assert_false(home_is("/docker/" A, HOME_CONTAINER, A "0"));
	assert_false(home_is("", HOME_CONTAINER, "4f1e"));
	assert_true(home_is("/x\nShop", HOME_SERVICE, "shop"));
	assert_false(home_is("/x\nShop", HOME_SERVICE, "sho"));
	assert_true(home_is("/kubepods/pod" UID "/" A, HOME_POD, UID));
}

TEST(names_may_say_which_key_they_are_of)
{
	const char *wanted;

	assert_int_equal(home_key_of("unit:nginx", &wanted), HOME_UNIT);
	assert_string_equal(wanted, "nginx");
	assert_int_equal(home_key_of("service:a:b", &wanted), HOME_SERVICE);
	assert_string_equal(wanted, "a:b");
	assert_int_equal(home_key_of("units:x", &wanted), HOME_NONE);
	assert_int_equal(home_key_of(":x", &wanted), HOME_NONE);
	assert_string_equal(wanted, ":x");
}

static void check_cgroup(const char *proc_text, const char *path)
{
	struct buf out = {0};

	home_put_cgroup(proc_text, &out);
	assert_string_equal(buf_text(&out), path);
	buf_free(&out);
}

TEST(the_control_group_of_version_2_comes_first)
{
	check_cgroup("0::/system.slice/cron.service\n", "/system.slice/cron.service");
	check_cgroup("3:cpu,cpuacct:/x\n1:name=systemd:/y\n0::/z", "/z");
	check_cgroup("12:cpu,cpuacct:/docker/" A "\n1:name=systemd:/docker/" A "\n0::/\n",
		     "/docker/" A);
	check_cgroup("9:name=systemd:/\n8:pids:/\n4:memory:/jobs/7\n0::/\n", "/jobs/7");
	check_cgroup("0::/user.slice/gone.scope (deleted)\n", "/user.slice/gone.scope");
	check_cgroup("1:a:/b:c\n", "/b:c");
	check_cgroup("9:name=systemd:/\n0::/\n", "");
	check_cgroup("", "");
	check_cgroup("\n:\n0\n0:\n0::\nx::/y\n", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_units_and_pods_are_read_from_paths),
		cmocka_unit_test(long_parts_are_cut_or_passed_over),
		cmocka_unit_test(a_unit_has_all_that_lives_below_it),
		cmocka_unit_test(a_container_is_found_by_its_first_digits),
		cmocka_unit_test(names_may_say_which_key_they_are_of),
		cmocka_unit_test(the_control_group_of_version_2_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
