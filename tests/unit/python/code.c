/* Lines of code objects, checked by hand; names of functions; texts. */
#include "base/bytes.h"
#include "managed/python/code.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x100000)

struct memory {
	uint8_t bytes[8192];
	struct managed_memory m;
	struct python_layout l;
};

static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	struct memory *m = ctx;

	if (address < BASE || address - BASE >= sizeof(m->bytes))
		return 0;
	if (n > sizeof(m->bytes) - (address - BASE))
		n = sizeof(m->bytes) - (size_t)(address - BASE);
	memcpy(to, m->bytes + (address - BASE), n);
	return n;
}

static void set_up(struct memory *m, unsigned version)
{
	memset(m, 0, sizeof(*m));
	m->m = (struct managed_memory){.read = read_it, .ctx = m};
	assert_true(python_layout_get(version, &m->l));
}

static uint32_t state_of(unsigned kind, bool ascii)
{
	return kind << 2 | 1u << 5 | (uint32_t)ascii << 6;
}

/* A text object at an offset of the memory; its characters are width bytes each. */
static uint64_t put_text(struct memory *m, size_t at, const void *characters, size_t n,
			 unsigned width, bool ascii)
{
	put_le64(m->bytes + at + 16, n);
	put_le32(m->bytes + at + m->l.text_state, state_of(width, ascii));
	memcpy(m->bytes + at + (ascii ? m->l.text_ascii : m->l.text_compact), characters,
	       n * width);
	return BASE + at;
}

TEST(lines_before_3_10_are_sums_of_pairs)
{
	/* 0 to 5: line 10; 6 to 7: line 12; 8 on: line 11. */
	static const uint8_t table[] = {6, 2, 2, 0xff};

	assert_int_equal(python_line(PYTHON_VERSION(3, 8), table, 4, 10, 0), 10);
	assert_int_equal(python_line(PYTHON_VERSION(3, 8), table, 4, 10, 5), 10);
	assert_int_equal(python_line(PYTHON_VERSION(3, 8), table, 4, 10, 6), 12);
	assert_int_equal(python_line(PYTHON_VERSION(3, 8), table, 4, 10, 9), 11);
	/* Python 2 has no lines that go back. */
	assert_int_equal(python_line(PYTHON_VERSION(2, 7), table, 4, 10, 9), 12 + 255);
}

TEST(ranges_of_3_10_may_have_no_line)
{
	/* [0, 4): line 11; [4, 6): none; [6, 10): line 13 */
	static const uint8_t table[] = {4, 1, 2, 0x80, 4, 2};

	assert_int_equal(python_line(PYTHON_VERSION(3, 10), table, 6, 10, 3), 11);
	assert_int_equal(python_line(PYTHON_VERSION(3, 10), table, 6, 10, 4), 10);
	assert_int_equal(python_line(PYTHON_VERSION(3, 10), table, 6, 10, 6), 13);
	assert_int_equal(python_line(PYTHON_VERSION(3, 10), table, 6, 10, 10), 10);
}

TEST(entries_since_3_11_have_several_forms)
{
	static const uint8_t table[] = {
		0x80 | 0 << 3 | 1, 0x12,             /* [0, 4): short form, line 10 */
		0x80 | 11 << 3 | 0, 1, 2,            /* [4, 6): one line form, line 11 */
		0x80 | 13 << 3 | 0, 0x46, 0x03,      /* [6, 8): + (3 << 6 | 6) / 2 = 99: 110 */
		0x80 | 14 << 3 | 0, 0x03, 0, 0, 0,   /* [8, 10): long form, - 1: 109 */
		0x80 | 15 << 3 | 0,                  /* [10, 12): no line */
		0x80 | 10 << 3 | 7, 0, 0,            /* [12, 28): + 0 */
	};
	const struct { int32_t position, line; } wanted[] = {
		{0, 10}, {3, 10}, {4, 11}, {6, 110}, {8, 109}, {10, 10}, {12, 109}, {27, 109},
		{28, 10}, {-1, 10}};
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_int_equal(python_line(PYTHON_VERSION(3, 12), table, sizeof(table), 10,
					     wanted[i].position), wanted[i].line);
}

TEST(damaged_tables_give_the_first_line)
{
	static const uint8_t no_bit[] = {0x01, 0x02}, cut[] = {0x80 | 14 << 3, 0x43};

	assert_int_equal(python_line(PYTHON_VERSION(3, 12), no_bit, 2, 7, 0), 7);
	assert_int_equal(python_line(PYTHON_VERSION(3, 12), cut, 2, 7, 0), 7);
	assert_int_equal(python_line(PYTHON_VERSION(3, 12), NULL, 0, 7, 4), 7);
}

TEST(a_function_is_named_after_its_module)
{
	static const char *const wanted[][3] = {
		{"/srv/app.py", "Shop.buy", "app.Shop.buy"},
		{"/usr/lib/python3.11/json/decoder.py", "f", "json.decoder.f"},
		{"/usr/lib/python3.11/asyncio/__init__.py", "run", "asyncio.run"},
		{"/v/lib/python3.9/site-packages/django/db/models/query.py", "QuerySet.get",
		 "django.db.models.query.QuerySet.get"},
		{"/usr/lib/python3/dist-packages/yaml/__init__.py", "load", "yaml.load"},
		{"<frozen importlib._bootstrap>", "_find_spec", "importlib._bootstrap._find_spec"},
		{"<string>", "<module>", "<string>.<module>"},
		{"", "f", "f"},
	};
	char name[MANAGED_TEXT_MAX + 1];
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		python_function_name(wanted[i][0], wanted[i][1], name);
		assert_string_equal(name, wanted[i][2]);
	}
}

TEST(texts_of_every_width_become_utf8)
{
	static const uint8_t latin[] = {'n', 0xe9};
	static const uint16_t wide[] = {0x4e2d, 'x', 0xdc80};
	static const uint32_t widest[] = {0x1f40d};
	char out[PYTHON_TEXT_BYTES];
	struct memory m;

	set_up(&m, PYTHON_VERSION(3, 12));
	assert_true(python_text_read(&m.l, &m.m, put_text(&m, 0, "main", 4, 1, true), out));
	assert_string_equal(out, "main");
	assert_true(python_text_read(&m.l, &m.m, put_text(&m, 256, latin, 2, 1, false), out));
	assert_string_equal(out, "n\u00e9");
	assert_true(python_text_read(&m.l, &m.m, put_text(&m, 512, wide, 3, 2, false), out));
	assert_string_equal(out, "\u4e2dx?");
	assert_true(python_text_read(&m.l, &m.m, put_text(&m, 768, widest, 1, 4, false), out));
	assert_string_equal(out, "\U0001f40d");
}

TEST(hostile_texts_are_refused_or_cut)
{
	char out[PYTHON_TEXT_BYTES];
	struct memory m;
	uint64_t text;

	set_up(&m, PYTHON_VERSION(3, 11));
	text = put_text(&m, 0, "x", 1, 1, true);
	put_le32(m.bytes + 32, state_of(3, true));
	assert_false(python_text_read(&m.l, &m.m, text, out));      /* no such width */
	put_le32(m.bytes + 32, state_of(4, false));
	put_le64(m.bytes + 16, UINT64_MAX);
	assert_true(python_text_read(&m.l, &m.m, text, out));       /* cut, and all NULs */
	assert_int_equal(strlen(out), PYTHON_TEXT_MAX);
	assert_false(python_text_read(&m.l, &m.m, text + 4, out));  /* not aligned */
	assert_false(python_text_read(&m.l, &m.m, 0, out));
}

/* A code object at 4096 with its texts and its table. */
static uint64_t put_code(struct memory *m)
{
	uint64_t file = put_text(m, 0, "/srv/app.py", 11, 1, true);
	uint64_t name = put_text(m, 256, "run", 3, 1, true);
	uint8_t *code = m->bytes + 4096;

	put_le64(m->bytes + 512 + m->l.bytes_size, 2);
	memcpy(m->bytes + 512 + m->l.bytes_data, "\x81\x12", 2);
	put_le64(code, 1);                   /* references */
	put_le64(code + m->l.object_type, BASE + 7000);
	put_le64(code + m->l.code_file, file);
	put_le64(code + m->l.code_name, name);
	put_le64(code + m->l.code_lines, BASE + 512);
	put_le32(code + m->l.code_first_line, 42);
	return BASE + 4096;
}

TEST(a_code_object_is_named_only_while_its_stamp_holds)
{
	static const unsigned versions[] = {PYTHON_VERSION(3, 6), PYTHON_VERSION(3, 9),
					    PYTHON_VERSION(3, 11), PYTHON_VERSION(3, 12)};
	struct python_code read;
	uint64_t code, stamp;
	struct memory m;
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		set_up(&m, versions[i]);
		code = put_code(&m);
		python_stamps(&m.l, &m.m, &code, 1, &stamp);
		assert_true(python_code_read(&m.l, &m.m, BASE + 7000, code, stamp, &read));
		assert_string_equal(read.function, "app.run");
		assert_string_equal(read.file, "/srv/app.py");
		assert_int_equal(read.first_line, 42);
		assert_int_equal(read.nlines, 2);
		free(read.lines);
		/* Of another type, or another one by now. */
		assert_false(python_code_read(&m.l, &m.m, BASE + 7008, code, stamp, &read));
		put_le64(m.bytes + 4096, UINT64_C(0x7f1234567890)); /* freed: a pointer */
		assert_false(python_code_read(&m.l, &m.m, BASE + 7000, code, stamp, &read));
		put_le64(m.bytes + 4096, 1);
		put_le32(m.bytes + 4096 + m.l.code_first_line, 43);
		assert_false(python_code_read(&m.l, &m.m, BASE + 7000, code, stamp, &read));
	}
}

TEST(a_code_object_is_named_at_its_first_sample_only)
{
	static struct python_seen seen;
	static struct python_peek peek;
	struct python_target t = {.serial = 1};
	struct memory m;

	set_up(&m, PYTHON_VERSION(3, 12));
	t.layout = m.l;
	peek.n = 2;
	peek.spots[1].code = put_code(&m);
	python_stamps(&m.l, &m.m, &peek.spots[1].code, 1, &peek.spots[1].stamp);
	python_name_new(&t, &m.m, &seen, &peek);                 /* the first one is unreadable */
	assert_int_equal(peek.nnamed, 1);
	assert_int_equal(peek.named[0].spot, 1);
	assert_int_equal(peek.named[0].first_line, 42);
	assert_memory_equal(peek.named[0].text, "app.run\0/srv/app.py", 20);
	peek.nnamed = 0;
	python_name_new(&t, &m.m, &seen, &peek);
	assert_int_equal(peek.nnamed, 0);
	t.serial = 2;                        /* another program */
	put_le32(m.bytes + 4096 + m.l.code_first_line, 43);      /* it is gone */
	python_name_new(&t, &m.m, &seen, &peek);
	assert_int_equal(peek.nnamed, 0);
}

TEST(before_3_12_another_name_at_the_same_address_is_another_code_object)
{
	uint64_t code, before, after;
	struct memory m;

	set_up(&m, PYTHON_VERSION(3, 11));
	code = put_code(&m);
	python_stamps(&m.l, &m.m, &code, 1, &before);
	put_text(&m, 256, "ran", 3, 1, true);
	python_stamps(&m.l, &m.m, &code, 1, &after);
	assert_int_not_equal(before, after);
	/* What lies behind a text belongs to others. */
	m.bytes[256 + 48 + 3] = 'x';
	python_stamps(&m.l, &m.m, &code, 1, &before);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_before_3_10_are_sums_of_pairs),
		cmocka_unit_test(ranges_of_3_10_may_have_no_line),
		cmocka_unit_test(entries_since_3_11_have_several_forms),
		cmocka_unit_test(damaged_tables_give_the_first_line),
		cmocka_unit_test(a_function_is_named_after_its_module),
		cmocka_unit_test(texts_of_every_width_become_utf8),
		cmocka_unit_test(hostile_texts_are_refused_or_cut),
		cmocka_unit_test(a_code_object_is_named_only_while_its_stamp_holds),
		cmocka_unit_test(a_code_object_is_named_at_its_first_sample_only),
		cmocka_unit_test(
			before_3_12_another_name_at_the_same_address_is_another_code_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
