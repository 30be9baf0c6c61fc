/* What blobs hold comes back as it was, and damaged blobs are refused. */
#include "store/page_private.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <stdlib.h>

struct lab_page {
	struct deflater *d;
	struct columns columns;
	struct buf data, functions;
};

static void open_page(struct lab_page *p)
{
	memset(p, 0, sizeof(*p));
	p->d = deflater_new(false);
	assert_non_null(p->d);
}

static void close_page(struct lab_page *p)
{
	deflater_free(p->d);
	columns_free(&p->columns);
	buf_free(&p->data);
	buf_free(&p->functions);
}

TEST(frames_come_back_as_they_were)
{
	static const struct page_frame frames[] = {
		{.id = 7, .module_id = 3, .function_id = 12, .offset = 0x1000, .flags = 1},
		{.id = 8, .module_id = 3, .function_id = 0, .offset = UINT64_MAX, .flags = 0},
		{.id = 20, .module_id = INT64_MAX, .function_id = 11,
		 .offset = (uint64_t)INT64_MIN},
		{.id = 21, .module_id = 1, .function_id = INT64_MAX, .flags = UINT32_MAX},
		{.id = INT64_MAX, .module_id = INT64_MAX, .function_id = 1, .offset = 5},
	};
	enum { N = COUNT_OF(frames) };
	struct page_frame *out;
	struct lab_page p;
	struct blob data, functions;
	uint32_t n, i;

	open_page(&p);
	assert_int_equal(frame_page_pack(p.d, &p.columns, frames, N, &p.data, NULL), 0);
	assert_int_equal(frame_page_pack_functions(p.d, &p.columns, frames, N, &p.functions, NULL),
			 0);
	data = (struct blob){p.data.data, p.data.len};
	functions = (struct blob){p.functions.data, p.functions.len};
	assert_int_equal(frame_page_unpack(&data, &functions, 7, &out, &n, NULL), 0);
	assert_int_equal(n, N);
	for (i = 0; i < N; i++) {
		assert_true(out[i].id == frames[i].id && out[i].module_id == frames[i].module_id);
		assert_true(out[i].function_id == frames[i].function_id);
		assert_true(out[i].offset == frames[i].offset && out[i].flags == frames[i].flags);
		assert_int_equal(frame_page_find(out, n, frames[i].id), i);
	}
	assert_int_equal(frame_page_find(out, n, 9), UINT32_MAX);
	assert_int_equal(frame_page_find(out, n, 0), UINT32_MAX);
	free(out);
	close_page(&p);
}

/* Cut at each byte; the CRC is not looked at. */
TEST(a_page_of_frames_that_ends_early_is_refused)
{
	static const struct page_frame frames[] = {
		{.id = 7, .module_id = 3, .function_id = 12, .offset = 0x1000, .flags = 1},
		{.id = 8, .module_id = 3, .function_id = 500, .offset = 0x123456, .flags = 300},
	};
	struct buf raw = {0}, names = {0};
	struct page_frame *out;
	struct lab_page p;
	uint32_t n;

	open_page(&p);
	assert_int_equal(frame_page_pack(p.d, &p.columns, frames, 2, &p.data, NULL), 0);
	buf_put(&raw, p.columns.raw.data, p.columns.raw.len);
	assert_int_equal(frame_page_pack_functions(p.d, &p.columns, frames, 2, &p.functions, NULL),
			 0);
	buf_put(&names, p.columns.raw.data, p.columns.raw.len);
	assert_int_equal(frame_page_decode(&raw, &names, 7, &out, &n, NULL), 0);
	free(out);
	names.len--;
	assert_int_equal(frame_page_decode(&raw, &names, 7, &out, &n, NULL), ERR_FORMAT);
	names.len++;
	while (raw.len--)
		assert_int_equal(frame_page_decode(&raw, &names, 7, &out, &n, NULL), ERR_FORMAT);
	buf_free(&raw);
	buf_free(&names);
	close_page(&p);
}

/* Whatever the id is, nothing outside of the page is read: sanitizers watch this, too. */
TEST(a_frame_is_sought_only_in_its_page)
{
	static const struct page_frame frames[] = {
		{.id = INT64_MIN + 1}, {.id = 5}, {.id = INT64_MAX - 1}};
	static const int64_t absent[] = {
		INT64_MIN, INT64_MIN + 2, -1, 0, 4, 6, INT64_MAX - 2, INT64_MAX};
	unsigned i;

	for (i = 0; i < 3; i++)
		assert_int_equal(frame_page_find(frames, 3, frames[i].id), i);
	for (i = 0; i < COUNT_OF(absent); i++)
		assert_int_equal(frame_page_find(frames, 3, absent[i]), UINT32_MAX);
	assert_int_equal(frame_page_find(NULL, 0, 1), UINT32_MAX);
}

/* Ids begin at 1. */
TEST(a_page_with_an_id_below_1_is_refused)
{
	static const struct page_frame frames[] = {
		{.id = 1, .module_id = 3}, {.id = 3, .module_id = 3}};
	static const int64_t wild[] = {0, -1, INT64_MIN, INT64_MAX};
	struct page_frame *out;
	struct buf raw = {0};
	struct lab_page p;
	unsigned i;
	uint32_t n;

	open_page(&p);
	assert_int_equal(frame_page_pack(p.d, &p.columns, frames, 2, &p.data, NULL), 0);
	buf_put(&raw, p.columns.raw.data, p.columns.raw.len);
	for (i = 0; i < 4; i++)
		assert_int_equal(frame_page_decode(&raw, NULL, wild[i], &out, &n, NULL),
				 ERR_FORMAT);
	assert_int_equal(frame_page_decode(&raw, NULL, INT64_MAX - 2, &out, &n, NULL), 0);
	free(out);
	buf_free(&raw);
	close_page(&p);
}

TEST(lists_come_back_as_they_were)
{
	static const uint64_t ids[] = {5, 3, 900, 70000, 70001, 70002, 1, INT64_MAX};
	uint64_t copy[8];
	struct lists lists;
	struct lab_page p;
	uint32_t i;

	memcpy(copy, ids, sizeof(ids));
	open_page(&p);
	assert_int_equal(lists_pack(p.d, &p.columns, copy, 3, 5, &p.data, NULL), 0);
	assert_int_equal(lists_unpack(&(struct blob){p.data.data, p.data.len}, &lists, NULL), 0);
	assert_int_equal(lists.nthreads, 3);
	assert_int_equal(lists.nframes, 5);
	for (i = 0; i < 8; i++)
		assert_true(lists.ids[i] == (int64_t)ids[i]);
	free(lists.ids);
	close_page(&p);
}

TEST(texts_come_back_as_they_were)
{
	static const char *const texts[] = {"cc1 -quiet a.c", "", "cc1 -quiet b.c", "\xc3\xa4"};
	struct text_page out;
	struct lab_page p;
	struct blob blob;
	uint32_t i;

	open_page(&p);
	assert_int_equal(text_page_pack(p.d, &p.columns, texts, 4, &p.data, NULL), 0);
	blob = (struct blob){p.data.data, p.data.len};
	assert_int_equal(text_page_unpack(&blob, 4, &out, NULL), 0);
	assert_int_equal(out.n, 4);
	for (i = 0; i < 4; i++)
		assert_string_equal(out.texts[i], texts[i]);
	text_page_free(&out);
	assert_int_equal(text_page_unpack(&blob, 3, &out, NULL), ERR_FORMAT);
	close_page(&p);
}

TEST(functions_come_back_as_they_were)
{
	static const struct page_function functions[] = {
		{1, 3, 0x1000, "main", NULL, NULL},
		{2, 3, 0x2000, "a::b(int)", "_ZN1a1bEi", NULL},
		{9, 1, UINT64_MAX, "nf_hook", NULL, "nf_tables"},
		{10, 1, 0, "", "x", "y"},
	};
	struct blob data, names, short_names;
	const struct page_function *f;
	struct function_page out;
	struct lab_page p;
	uint32_t i;

	open_page(&p);
	assert_int_equal(function_page_pack(p.d, &p.columns, functions, 4, &p.data, &p.functions,
					    NULL), 0);
	data = (struct blob){p.data.data, p.data.len};
	names = (struct blob){p.functions.data, p.functions.len};
	assert_int_equal(function_page_unpack(&data, &names, 1, &out, NULL), 0);
	assert_int_equal(out.n, 4);
	for (i = 0; i < 4; i++) {
		f = function_page_find(&out, functions[i].id);
		assert_true(f && f->module_id == functions[i].module_id &&
			    f->offset == functions[i].offset);
		assert_string_equal(f->name, functions[i].name);
		assert_string_equal(f->raw_name ? f->raw_name : "none",
				    functions[i].raw_name ? functions[i].raw_name : "none");
		assert_string_equal(f->module ? f->module : "none",
				    functions[i].module ? functions[i].module : "none");
	}
	assert_null(function_page_find(&out, 3));
	function_page_free(&out);
	/* A page of too few texts. */
	{
		static const char *const one[] = {"main"};
		struct buf few = {0};

		assert_int_equal(text_page_pack(p.d, &p.columns, one, 1, &few, NULL), 0);
		short_names = (struct blob){few.data, few.len};
		assert_int_equal(function_page_unpack(&data, &short_names, 1, &out, NULL),
				 ERR_FORMAT);
		buf_free(&few);
	}
	/* Four functions have 12 texts at most: a page of 13 is refused. */
	{
		static const char *const names_of_one[13] = {"", "", "", "", "", "", "",
							     "", "", "", "", "", ""};
		struct buf many = {0};

		for (i = 12; i <= 13; i++) {
			assert_int_equal(text_page_pack(p.d, &p.columns, names_of_one, i, &many,
							NULL), 0);
			short_names = (struct blob){many.data, many.len};
			assert_int_equal(function_page_unpack(&data, &short_names, 1, &out, NULL),
					 i == 12 ? 0 : ERR_FORMAT);
			function_page_free(&out);
		}
		buf_free(&many);
	}
	close_page(&p);
}

TEST(rows_of_processes_and_threads_come_back_as_they_were)
{
	static const uint64_t rows[] = {
		1, 4711, 17000000, 0, 1, 3, 0, 0,
		1, 4712, 17400000, 1, 4711, 4, 9, 12,
		UINT64_MAX, UINT32_MAX, UINT64_MAX, UINT32_MAX, 0, INT64_MAX, 1, 0,
	};
	static const struct {
		const char *raw;
		size_t n;
	} damaged[] = {{"", 0}, {"\0", 1}, {"\1\2", 2}, {"\1\2\2\2\2", 5},
		       {"\377\377\377\377\17", 5}, {"\1\200\200\200", 4}};
	struct lab_page p;
	struct buf raw = {0};
	struct blob blob;
	uint64_t *out;
	uint32_t n, i;

	open_page(&p);
	assert_int_equal(row_page_pack(p.d, &p.columns, rows, 3, PROCESS_COLUMNS, &p.data, NULL),
			 0);
	blob = (struct blob){p.data.data, p.data.len};
	assert_int_equal(row_page_unpack(&blob, PROCESS_COLUMNS, &out, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(out, rows, sizeof(rows));
	free(out);
	assert_int_equal(row_page_unpack(&blob, THREAD_COLUMNS, &out, &n, NULL), ERR_FORMAT);
	for (i = 0; i < COUNT_OF(damaged); i++) {
		buf_reset(&raw);
		buf_put(&raw, damaged[i].raw, damaged[i].n);
		assert_int_equal(row_page_decode(&raw, THREAD_COLUMNS, &out, &n, NULL),
				 ERR_FORMAT);
	}
	buf_free(&raw);
	close_page(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_processes_and_threads_come_back_as_they_were),
		cmocka_unit_test(frames_come_back_as_they_were),
		cmocka_unit_test(a_page_of_frames_that_ends_early_is_refused),
		cmocka_unit_test(a_frame_is_sought_only_in_its_page),
		cmocka_unit_test(a_page_with_an_id_below_1_is_refused),
		cmocka_unit_test(lists_come_back_as_they_were),
		cmocka_unit_test(texts_come_back_as_they_were),
		cmocka_unit_test(functions_come_back_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
