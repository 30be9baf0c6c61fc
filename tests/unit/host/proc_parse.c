/* The texts of /proc, as the kernel writes them and as nobody should. */
#include "source/host/proc_parse.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static struct text of(const char *s)
{
	return text_of(s, strlen(s));
}

TEST(rows_have_a_name_and_numbers)
{
	struct text rest = of("cpu  10 0 7\n\n  eth0:5 6 bad 7\nMemFree:  22 kB\nintr 1\nempty");
	struct proc_row row;

	assert_true(proc_row_next(&rest, &row));
	assert_true(text_is(row.name, "cpu"));
	assert_int_equal(row.n, 3);
	assert_true(row.v[0] == 10 && row.v[2] == 7 && row.v[3] == 0);
	assert_true(proc_row_next(&rest, &row));
	assert_true(text_is(row.name, "eth0"));
	assert_int_equal(row.n, 2);             /* up to the first that is no number */
	assert_true(proc_row_next(&rest, &row));
	assert_true(text_is(row.name, "MemFree"));
	assert_true(row.n == 1 && row.v[0] == 22);
	assert_true(proc_row_next(&rest, &row));
	assert_true(proc_row_next(&rest, &row));
	assert_true(text_is(row.name, "empty") && row.n == 0);
	assert_false(proc_row_next(&rest, &row));
}

TEST(row_with_more_numbers_than_room_is_cut)
{
	struct proc_row row;
	char line[400] = "intr";
	struct text rest;
	int i;

	for (i = 0; i < 60; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " %d", i);
	rest = of(line);
	assert_true(proc_row_next(&rest, &row));
	assert_int_equal(row.n, PROC_ROW_VALUES);
	assert_true(row.v[PROC_ROW_VALUES - 1] == PROC_ROW_VALUES - 1);
}

TEST(value_is_found_by_its_whole_name)
{
	struct text all = of("pgfaultx 1\npgfault 2\npgmajfault 3\n");
	double v = -1;

	assert_true(proc_value(all, "pgfault", &v));
	assert_true(v == 2);
	assert_false(proc_value(all, "fault", &v));
	assert_false(proc_value(of(""), "pgfault", &v));
}

TEST(numbers_may_have_a_fraction_and_nothing_else)
{
	double v = -1;

	assert_true(text_number(of("0"), &v) && v == 0);
	assert_true(text_number(of("15.25"), &v) && v == 15.25);
	assert_false(text_number(of(""), &v));
	assert_false(text_number(of("-1"), &v));
	assert_false(text_number(of("1e5"), &v));
	assert_false(text_number(of("max"), &v));
	assert_false(text_number(of(".5"), &v));
	assert_true(v == 15.25);                /* untouched on failure */
}

TEST(headings_stand_over_their_numbers)
{
	struct text all = of("Ip: Forwarding TTL\nIp: 2 64\n"
			     "Tcp: RtoMin CurrEstab RetransSegs\nTcp: 200 7 13\n");
	double v = -1;

	assert_true(proc_heading_value(all, "Tcp", "RetransSegs", &v));
	assert_true(v == 13);
	assert_false(proc_heading_value(all, "Tcp", "Forwarding", &v));
	assert_false(proc_heading_value(all, "Udp", "InErrors", &v));
	assert_false(proc_heading_value(of("Tcp: A B\n"), "Tcp", "A", &v));
	assert_false(proc_heading_value(of("Tcp: A B\nTcp: 1\n"), "Tcp", "B", &v));
}

TEST(keys_are_summed_over_lines)
{
	struct text pressure =
		of("some avg10=3.77 avg60=3.25 total=100\nfull avg10=0.00 total=7\n");
	struct text io = of("254:0 rbytes=10 wbytes=1\n8:0 rbytes=32 wbytes=2 rios=9\n");
	double v = -1;

	assert_true(proc_key_sum(pressure, "some", "avg10", &v) && v > 3.769 && v < 3.771);
	assert_true(proc_key_sum(pressure, "full", "total", &v) && v == 7);
	assert_true(proc_key_sum(io, NULL, "rbytes", &v) && v == 42);
	assert_false(proc_key_sum(io, NULL, "bytes", &v));
	assert_false(proc_key_sum(pressure, "none", "total", &v));
}

TEST(partition_is_told_from_a_disk)
{
	assert_true(proc_disk_is_part_of(of("sda1"), of("sda")));
	assert_true(proc_disk_is_part_of(of("nvme0n1p2"), of("nvme0n1")));
	assert_true(proc_disk_is_part_of(of("mmcblk0p1"), of("mmcblk0")));
	assert_false(proc_disk_is_part_of(of("loop10"), of("loop1")));
	assert_false(proc_disk_is_part_of(of("sdab"), of("sda")));
	assert_false(proc_disk_is_part_of(of("sda"), of("sda")));
	assert_false(proc_disk_is_part_of(of("nvme0n1p"), of("nvme0n1")));
	assert_false(proc_disk_is_part_of(of("vda"), text_of(NULL, 0)));
}

#define NUMBERS \
	"S 1 2 3 0 -1 4194304 99 8 5 7 11 22 0 0 20 0 4 0 100522 3133440 360 18446744073709551615"

TEST(stat_of_a_process_has_its_fields)
{
	struct proc_stat s;

	assert_true(proc_stat_parse(of("10917 (cat) " NUMBERS " 4198400 2 3\n"), &s));
	assert_int_equal(s.pid, 10917);
	assert_string_equal(s.comm, "cat");
	assert_true(s.minor_faults == 99 && s.major_faults == 5);
	assert_true(s.utime == 11 && s.stime == 22 && s.threads == 4);
	assert_int_equal(s.start_ticks, 100522);
	assert_true(s.virtual_bytes == 3133440 && s.resident_pages == 360);
	assert_int_equal(s.code, 4198400);
}

TEST(hostile_name_of_a_process_stays_a_name)
{
	static const char *const names[] = {"a) R 1 (b", "",	      ")",    "(((",
					    "x\ny",	 "1 (2) S 3", ") S 0"};
	struct proc_stat s;
	char text[300];
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++) {
		snprintf(text, sizeof(text), "7 (%s) " NUMBERS "\n", names[i]);
		assert_true(proc_stat_parse(of(text), &s));
		assert_string_equal(s.comm, names[i]);
		assert_true(s.utime == 11);
		assert_int_equal(s.start_ticks, 100522);
	}
}

TEST(cut_stat_is_refused)
{
	const char *text = "10917 (cat) " NUMBERS "\n";
	struct proc_stat s;
	size_t n;

	for (n = 0; n < strlen(text) - 25; n++)
		assert_false(proc_stat_parse(text_of(text, n), &s));
	assert_false(proc_stat_parse(of("x (cat) " NUMBERS), &s));
	assert_false(proc_stat_parse(of("99999999999 (cat) " NUMBERS), &s));
}

TEST(mounts_have_their_escapes_resolved)
{
	struct text rest =
		of("/dev/vda / ext4 rw 0 0\nbad\n/dev/sdb /mnt/my\\040disk\\134 xfs rw 0 0\n");
	struct proc_mount m;

	assert_true(proc_mount_next(&rest, &m));
	assert_string_equal(m.dir, "/");
	assert_true(text_is(m.device, "/dev/vda") && text_is(m.type, "ext4"));
	assert_true(proc_mount_next(&rest, &m));
	assert_string_equal(m.dir, "/mnt/my disk\\");
	assert_false(proc_mount_next(&rest, &m));
}

TEST(mounts_have_a_number_a_device_and_an_overlays_layer)
{
	struct text rest = of(
		"21 1 254:0 / /data rw - ext4 /dev/vda rw,discard\n"
		"22 1 0:x / /bad rw - ext4 /dev/vdb rw\n"
		"23 21 0:50 / /merged\\0401 rw shared:1 - overlay overlay "
		"rw,lowerdir=/l1:/l2,upperdir=/up\\0401,workdir=/w\n"
		"24 21 0:51 / /cd rw - overlay overlay ro,lowerdir=/l1:/l2\n"
		"25 21 0:52 / /cut rw - overlay\n"
		"26 21 0:53 / /cut rw");
	struct proc_mounted m;

	assert_true(proc_mounted_next(&rest, &m));
	assert_int_equal(m.id, 21);
	assert_true(m.major == 254 && m.minor == 0 && text_is(m.type, "ext4"));
	assert_string_equal(m.dir, "/data");
	assert_string_equal(m.layer, "");
	assert_true(proc_mounted_next(&rest, &m));
	assert_int_equal(m.id, 23);
	assert_string_equal(m.dir, "/merged 1");
	assert_string_equal(m.layer, "/up 1");
	assert_true(proc_mounted_next(&rest, &m));
	assert_string_equal(m.layer, "/l1");
	assert_false(proc_mounted_next(&rest, &m));
}

TEST(process_is_shown_by_its_executable_or_its_comm)
{
	static const struct { const char *exe, *comm, *name; } table[] = {
		{ "/usr/bin/python3.11", "python3", "python3.11" },
		{ "/opt/app/server (deleted)", "server", "server" },
		{ "C:/app/Server.EXE", "x", "Server" },
		{ "", "kworker/0:1-events", "kworker/0:1-events" },
		{ "/", "comm", "comm" },
		{ "", "", "" },
		{ "/x/.exe", "", ".exe" },
	};
	char name[64], small[4];
	size_t i;

	for (i = 0; i < COUNT_OF(table); i++) {
		proc_display_name(table[i].exe, table[i].comm, name, sizeof(name));
		assert_string_equal(name, table[i].name);
	}
	proc_display_name("/usr/bin/java", "", small, sizeof(small));
	assert_string_equal(small, "jav");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_have_a_name_and_numbers),
		cmocka_unit_test(row_with_more_numbers_than_room_is_cut),
		cmocka_unit_test(value_is_found_by_its_whole_name),
		cmocka_unit_test(numbers_may_have_a_fraction_and_nothing_else),
		cmocka_unit_test(headings_stand_over_their_numbers),
		cmocka_unit_test(keys_are_summed_over_lines),
		cmocka_unit_test(partition_is_told_from_a_disk),
		cmocka_unit_test(stat_of_a_process_has_its_fields),
		cmocka_unit_test(hostile_name_of_a_process_stays_a_name),
		cmocka_unit_test(cut_stat_is_refused),
		cmocka_unit_test(mounts_have_their_escapes_resolved),
		cmocka_unit_test(mounts_have_a_number_a_device_and_an_overlays_layer),
		cmocka_unit_test(process_is_shown_by_its_executable_or_its_comm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
