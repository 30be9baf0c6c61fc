/* Formats of tracepoints: texts as the kernel has them (6.18, Debian 12), records by hand. */
#include "base/array.h"
#include "base/buf.h"
#include "source/probe/trace_format.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static const char text[] =
	"name: mine\n"
	"ID: 369\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:bool group_dead;\toffset:28;\tsize:1;\tsigned:0;\n"
	"\tfield:const char * filename;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long args[2];\toffset:40;\tsize:16;\tsigned:0;\n"
	"\tfield:__data_loc char[] cmd;\toffset:56;\tsize:4;\tsigned:0;\n"
	"\tfield:__rel_loc char[] where;\toffset:60;\tsize:4;\tsigned:0;\n"
	"\tfield:u8 saddr[28];\toffset:64;\tsize:28;\tsigned:0;\n"
	"\n"
	"print fmt: \"field:int liar; offset:0; size:4;\", REC->comm\n";

static void parse(struct trace_format *f)
{
	struct err err;

	assert_int_equal(trace_format_parse(text, sizeof(text) - 1, f, &err), 0);
}

TEST(a_format_gives_the_fields_and_not_what_all_have)
{
	static const char *const names[] = {"comm",  "pid", "group_dead", "filename", "args0",
					    "args1", "cmd", "where",	  "saddr"};
	struct trace_format f;
	uint32_t i;

	parse(&f);
	assert_int_equal(f.id, 369);
	assert_int_equal(f.nfields, 9);
	for (i = 0; i < 9; i++)
		assert_string_equal(f.fields[i].name, names[i]);
}

static void make_record(uint8_t raw[100])
{
	const int32_t pid = -5;
	const uint64_t v[] = {0x7ffe12345678, 10, 11};
	const uint32_t cmd = 3u << 16 | 92, where = 2u << 16 | 31;   /* 64 + 31 = 95 */

	memset(raw, 0, 100);
	strcpy((char *)raw + 8, "nginx");
	memcpy(raw + 24, &pid, 4);
	raw[28] = 1;
	memcpy(raw + 32, v, sizeof(v));
	memcpy(raw + 56, &cmd, 4);
	memcpy(raw + 60, &where, 4);
	raw[64] = 0xab;
	memcpy(raw + 92, "ls\0a", 5);
}

TEST(a_record_gives_typed_values)
{
	struct trace_format f;
	struct trace_values v;
	uint8_t raw[100];

	parse(&f);
	make_record(raw);
	trace_format_read(&f, raw, sizeof(raw), &v);
	assert_int_equal(v.nfields, 9);
	assert_string_equal(v.fields[0].v.text, "nginx");
	assert_int_equal(v.fields[1].type, FIELD_INT);
	assert_int_equal(v.fields[1].v.i, -5);
	assert_int_equal(v.fields[2].v.u, 1);
	assert_int_equal(v.fields[3].v.u, 0x7ffe12345678);
	assert_int_equal(v.hex_fields, 1 << 3);
	assert_int_equal(v.fields[5].v.u, 11);
	assert_string_equal(v.fields[6].v.text, "ls");
	assert_string_equal(v.fields[7].v.text, "a");
	assert_true(strncmp(v.fields[8].v.text, "ab00", 4) == 0);
}

TEST(what_lies_outside_of_a_record_is_left_out)
{
	struct trace_format f;
	struct trace_values v;
	uint8_t raw[100];
	size_t n;

	parse(&f);
	make_record(raw);
	for (n = 0; n <= sizeof(raw); n++)
		trace_format_read(&f, raw, n, &v);
	trace_format_read(&f, raw, 94, &v);  /* the text at 95 and the 3 bytes at 92 are cut off */
	assert_int_equal(v.nfields, 7);
	trace_format_read(&f, raw, 26, &v);
	assert_int_equal(v.nfields, 1);
}

TEST(a_text_that_is_no_format_is_refused)
{
	struct trace_format f;
	struct err err;

	assert_int_equal(trace_format_parse("", 0, &f, &err), ERR_FORMAT);
	assert_int_equal(trace_format_parse("hello\n", 6, &f, &err), ERR_FORMAT);
}

TEST(filters_become_the_kernels_where_it_can_express_them)
{
	static const struct { const char *from, *to;
	} rows[] = {
		{"pid=5", "pid == 5"},
		{"PID!=-1", "pid != -1"},
		{"pid>=0x10", "pid >= 16"},
		{"pid<7;group_dead=1", "pid < 7 && group_dead == 1"},
		{"comm=sh", "comm ~ \"[sS][hH]\""},
		{"cmd=a-1", "cmd ~ \"[aA]-1\""},
		{"pid=5;comm~^x", "pid == 5"},
		/* Not to be expressed, or not the same there: */
		{"comm!=sh", ""},
		{"comm<b", ""},
		{"comm=a*", ""},
		{"comm=a\"b", ""},
		{"comm=12", ""},
		{"pid=4.5", ""},
		{"pid=x", ""},
		{"pid=2147483648", ""},
		{"group_dead=256", ""},
		{"group_dead=-1", ""},
		{"args0=5", ""},
		{"filename=5", ""},
		{"ProcessName=x", ""},
		{"pid=", ""},
		{"", ""},
		{";;", ""},
		{"=5", ""},
	};
	struct trace_format f;
	struct buf out = {0};
	size_t i;

	parse(&f);
	for (i = 0; i < COUNT_OF(rows); i++) {
		buf_reset(&out);
		assert_int_equal(trace_filter(&f, rows[i].from, &out), *rows[i].to != 0);
		assert_string_equal(buf_text(&out), rows[i].to);
	}
	buf_free(&out);
}

TEST(conditions_that_can_never_hold_are_refused)
{
	static const struct { const char *conditions, *sentence;
	} rows[] = {
		{"comm=sh;PID>5;ProcessName~x;processid=1;args0=0x5;pid=-1;group_dead!=x;pid~7;"
		 "cmd=5;comm>x;pid>=0x10;pid<=-1",
		 ""},
		{"pid=4.5;pid=+5", ""},
		{"", ""},
		{";;", ""},
		{"pid=5;nofield=3",
		 "my/mine has no field 'nofield'; it has comm, pid, group_dead, filename, "
		 "args0, args1, cmd, where, saddr"},
		{"comn~x",
		 "my/mine has no field 'comn'; the nearest are comm or cmd; it has comm, pid, "
		 "group_dead, filename, args0, args1, cmd, where, saddr"},
		{"PID=abc", "my/mine: the field 'pid' is a number, and never equals 'abc'"},
		{"pid>1M", "my/mine: the field 'pid' is a number, and '1M' is none"},
		{"pid<=", "my/mine: the field 'pid' is a number, and '' is none"},
		{"pid=;comm=sh", "my/mine: the field 'pid' is a number, and never equals ''"},
	};
	struct trace_format f;
	struct err err;
	size_t i;

	parse(&f);
	for (i = 0; i < COUNT_OF(rows); i++) {
		err.text[0] = '\0';
		assert_int_equal(trace_format_check(&f, "my/mine", rows[i].conditions, "", &err),
				 *rows[i].sentence ? ERR_USAGE : 0);
		assert_string_equal(err.text, rows[i].sentence);
	}
	f.nfields = TRACE_FIELDS_MAX;
	assert_int_equal(trace_format_check(&f, "my/mine", "nofield=3", "", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_format_gives_the_fields_and_not_what_all_have),
		cmocka_unit_test(a_record_gives_typed_values),
		cmocka_unit_test(what_lies_outside_of_a_record_is_left_out),
		cmocka_unit_test(a_text_that_is_no_format_is_refused),
		cmocka_unit_test(filters_become_the_kernels_where_it_can_express_them),
		cmocka_unit_test(conditions_that_can_never_hold_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
