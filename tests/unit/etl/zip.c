/* A trace inside a .zip, made here entry by entry. Layouts: APPNOTE.TXT 4.3 and 4.5.3. */
#include "base/array.h"
#include "base/os.h"
#include "source/etl/file.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etl_writer.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

struct zip {
	struct buf out, central;
	unsigned nentries;
	bool zip64;                          /* all sizes and offsets in the 64-bit fields only */
};

static void put(struct buf *b, uint64_t v, unsigned n)
{
	while (n--) {
		buf_putc(b, (char)(v & 255));
		v >>= 8;
	}
}

static void deflate_raw(const struct buf *plain, struct buf *out)
{
	z_stream z = {0};
	uLong bound;

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	bound = deflateBound(&z, (uLong)plain->len);
	z.next_in = (Bytef *)plain->data;
	z.avail_in = (uInt)plain->len;
	z.next_out = (Bytef *)buf_reserve(out, bound);
	z.avail_out = (uInt)bound;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_advance(out, z.total_out);
	deflateEnd(&z);
}

static void add(struct zip *z, const char *name, const struct buf *plain, unsigned method,
		unsigned flags)
{
	uint64_t at = z->out.len;
	struct buf packed = {0};

	if (method == 8)
		deflate_raw(plain, &packed);
	else
		buf_put(&packed, plain->data, plain->len);
	put(&z->out, 0x04034b50, 4);
	put(&z->out, 20, 2);
	put(&z->out, flags, 2);
	put(&z->out, method, 2);
	put(&z->out, 0, 8);                 /* time, crc, sizes: as after a streaming writer */
	put(&z->out, 0, 8);
	put(&z->out, strlen(name), 2);
	put(&z->out, 5, 2);                  /* extra: 5 bytes that nobody asked for */
	buf_puts(&z->out, name);
	buf_put(&z->out, "\1\2\1\0x", 5);
	buf_put(&z->out, packed.data, packed.len);

	put(&z->central, 0x02014b50, 4);
	put(&z->central, 20, 2);
	put(&z->central, 20, 2);
	put(&z->central, flags, 2);
	put(&z->central, method, 2);
	put(&z->central, 0, 4);
	put(&z->central, crc32(0, (Bytef *)plain->data, (uInt)plain->len), 4);
	put(&z->central, z->zip64 ? UINT32_MAX : packed.len, 4);
	put(&z->central, z->zip64 ? UINT32_MAX : plain->len, 4);
	put(&z->central, strlen(name), 2);
	put(&z->central, z->zip64 ? 6 + 28 : 0, 2);
	put(&z->central, 3, 2);              /* comment */
	put(&z->central, 0, 8);
	put(&z->central, z->zip64 ? UINT32_MAX : at, 4);
	buf_puts(&z->central, name);
	if (z->zip64) {
		buf_put(&z->central, "\x55\x55\2\0zz", 6);
		put(&z->central, 1, 2);
		put(&z->central, 24, 2);
		put(&z->central, plain->len, 8);
		put(&z->central, packed.len, 8);
		put(&z->central, at, 8);
	}
	buf_puts(&z->central, "why");
	z->nentries++;
	buf_free(&packed);
}

static void end(struct zip *z)
{
	uint64_t central = z->out.len, end64;

	buf_put(&z->out, z->central.data, z->central.len);
	end64 = z->out.len;
	if (z->zip64) {
		put(&z->out, 0x06064b50, 4);
		put(&z->out, 44, 8);
		put(&z->out, 45, 2);
		put(&z->out, 45, 2);
		put(&z->out, 0, 8);
		put(&z->out, z->nentries, 8);
		put(&z->out, z->nentries, 8);
		put(&z->out, z->central.len, 8);
		put(&z->out, central, 8);
		put(&z->out, 0x07064b50, 4);
		put(&z->out, 0, 4);
		put(&z->out, end64, 8);
		put(&z->out, 1, 4);
	}
	put(&z->out, 0x06054b50, 4);
	put(&z->out, 0, 4);
	put(&z->out, z->zip64 ? 0xFFFF : z->nentries, 2);
	put(&z->out, z->zip64 ? 0xFFFF : z->nentries, 2);
	put(&z->out, z->central.len, 4);
	put(&z->out, z->zip64 ? UINT32_MAX : central, 4);
	put(&z->out, 9, 2);
	buf_puts(&z->out, "a comment");
	assert_int_equal(z->out.failed, 0);
	buf_free(&z->central);
}

static bool buf_is_text(const struct buf *b, const char *text)
{
	return strstr(buf_text(b), text) != NULL;
}

/* A trace with n records of 40 bytes; buffers of 4096 bytes, so 100 of them in each. */
static void make_trace(unsigned n, struct buf *out)
{
	static const uint8_t payload[8];
	struct etl_writer w;

	etl_writer_begin(&w, &(struct etl_session){0});
	for (unsigned i = 0; i < n; i++)
		etl_write_kernel(&w, &(struct etw_record){.ticks = i, .tid = i, .pid = 1,
				 .payload = payload, .payload_bytes = 8}, 5);
	etl_writer_end(&w);
	*out = w.out;
	memset(&w.out, 0, sizeof(w.out));
	etl_writer_free(&w);
}

static int count(void *ctx, const struct etw_record *record)
{
	(void)record;
	++*(unsigned *)ctx;
	return 0;
}

static unsigned records_in(const struct buf *zip, struct etl_facts *facts)
{
	struct etl_file *file = NULL;
	struct err err;
	unsigned n = 0;

	if (etl_file_open_memory("t.zip", zip->data, zip->len, &file, &err) ||
	    etl_file_run(file, count, &n, NULL, &err))
		fail_msg("%s", err.text);
	*facts = *etl_file_facts(file);
	etl_file_close(file);
	return n;
}

TEST(the_etl_is_found_stored_or_deflated_with_32_or_64_bit_sizes)
{
	struct buf trace, text = {0};
	struct etl_facts facts;

	make_trace(250, &trace);
	buf_puts(&text, "log");
	for (unsigned variant = 0; variant < 4; variant++) {
		struct zip z = {.zip64 = variant & 1};

		add(&z, "log.txt", &text, 0, 0);
		add(&z, "deep/Data.ETL", &trace, variant & 2 ? 8 : 0, 0);
		end(&z);
		assert_int_equal(records_in(&z.out, &facts), 251);
		assert_string_equal(facts.entry, "deep/Data.ETL");
		assert_int_equal(facts.trace_bytes, trace.len);
		assert_false(facts.truncated);
		assert_false(facts.entry_damaged);
		buf_free(&z.out);
	}
	buf_free(&text);
	buf_free(&trace);
}

TEST(of_several_traces_the_first_is_read_and_the_others_are_counted)
{
	struct buf first, second;
	struct etl_facts facts;
	struct zip z = {0};

	make_trace(10, &first);
	make_trace(20, &second);
	add(&z, "b.etl", &first, 8, 0);
	add(&z, "a.etl", &second, 8, 0);
	end(&z);
	assert_int_equal(records_in(&z.out, &facts), 11);
	assert_string_equal(facts.entry, "b.etl");
	assert_int_equal(facts.nentries, 2);
	buf_free(&z.out);
	buf_free(&first);
	buf_free(&second);
}

TEST(a_large_entry_goes_through_a_temporary_file)
{
	const char *path = tmp_path("large.etl.zip");
	struct etl_file *file = NULL;
	struct etl_counts counts;
	struct zip z = {0};
	struct buf trace;
	struct os_file *out;
	unsigned n = 0;

	make_trace(250000, &trace);
	assert_true(trace.len > ETL_UNZIP_MEMORY_BYTES);
	add(&z, "large.etl", &trace, 8, 0);
	end(&z);
	assert_int_equal(os_open(path, OS_REPLACE, &out, NULL), 0);
	assert_int_equal(os_write(out, z.out.data, z.out.len, NULL), 0);
	os_close(out);
	assert_int_equal(etl_file_open(path, &file, NULL), 0);
	assert_int_equal(etl_file_run(file, count, &n, &counts, NULL), 0);
	assert_int_equal(n, 250001);
	assert_int_equal(counts.ndamaged, 0);
	etl_file_close(file);
	buf_free(&z.out);
	buf_free(&trace);
}

TEST(damage_inside_the_entry_is_seen_and_what_precedes_it_kept)
{
	struct etl_facts facts;
	struct zip z = {0};
	struct buf trace;

	make_trace(20000, &trace);
	add(&z, "t.etl", &trace, 8, 0);
	/* zlib finds it in a code that does not exist, or the checksum does. */
	memset(z.out.data + z.out.len / 2, 0xFF, z.out.len / 4);
	end(&z);
	assert_in_range(records_in(&z.out, &facts), 1000, 20001);
	assert_true(facts.entry_damaged);
	buf_free(&z.out);
	buf_free(&trace);
}

TEST(what_cannot_be_read_is_refused_in_one_sentence)
{
	static const struct {
		const char *name;
		unsigned method, flags;
		int code;
		const char *says;
	} cases[] = {
		{"notes.txt", 0, 0, ERR_FORMAT, "without an .etl"},
		{"t.etl", 8, 1, ERR_UNSUPPORTED, "encrypted"},
		{"t.etl", 12, 0, ERR_UNSUPPORTED, "other than deflate"},
	};
	struct etl_file *file = NULL;
	struct buf trace;
	struct err err;

	make_trace(5, &trace);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct zip z = {0};

		add(&z, cases[i].name, &trace, cases[i].method, cases[i].flags);
		end(&z);
		assert_int_equal(etl_file_open_memory("t.zip", z.out.data, z.out.len, &file, &err),
				 cases[i].code);
		assert_non_null(strstr(err.text, cases[i].says));
		assert_non_null(strstr(err.text, "t.zip"));
		buf_free(&z.out);
	}
	buf_free(&trace);
}

TEST(a_zip_cut_anywhere_is_refused_and_not_trusted)
{
	struct zip z = {.zip64 = true};
	struct etl_file *file = NULL;
	struct buf trace, said = {0};
	struct err err;

	make_trace(5, &trace);
	add(&z, "t.etl", &trace, 8, 0);
	end(&z);
	for (size_t cut = 0; cut + 9 < z.out.len; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1);

		assert_non_null(exact);
		memcpy(exact, z.out.data, cut);
		assert_int_equal(etl_file_open_memory("t.zip", exact, cut, &file, &err),
				 ERR_FORMAT);
		buf_puts(&said, err.text);
		free(exact);
	}
	assert_true(buf_is_text(&said, "it may be cut off"));
	buf_free(&said);
	buf_free(&z.out);
	buf_free(&trace);
}

static int open_it(void *ctx)
{
	struct buf *zip = ctx;
	struct etl_file *file = NULL;
	int rc = etl_file_open_memory("t.zip", zip->data, zip->len, &file, NULL);

	etl_file_close(file);
	return rc;
}

TEST(lack_of_memory_is_an_error_at_every_place)
{
	struct zip z = {0};
	struct buf trace;

	make_trace(5, &trace);
	add(&z, "t.etl", &trace, 8, 0);
	end(&z);
	assert_in_range(alloc_walk(open_it, &z.out), 6, 50);
	buf_free(&z.out);
	buf_free(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_etl_is_found_stored_or_deflated_with_32_or_64_bit_sizes),
		cmocka_unit_test(of_several_traces_the_first_is_read_and_the_others_are_counted),
		cmocka_unit_test(a_large_entry_goes_through_a_temporary_file),
		cmocka_unit_test(damage_inside_the_entry_is_seen_and_what_precedes_it_kept),
		cmocka_unit_test(what_cannot_be_read_is_refused_in_one_sentence),
		cmocka_unit_test(a_zip_cut_anywhere_is_refused_and_not_trusted),
		cmocka_unit_test(lack_of_memory_is_an_error_at_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
