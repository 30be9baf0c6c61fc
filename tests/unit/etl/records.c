/* Every kind of record header, as tests/support/etl_writer.c lays it out byte by byte. */
#include "source/etl/records.h"

#include "base/array.h"
#include "source/etw/class.h"
#include "tests/support/etl_writer.h"
#include "tests/support/test.h"

#include <string.h>

static const struct etw_guid guid = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
static const uint8_t payload[12] = "the payload";

/* A record with everything that any header has room for. */
static struct etw_record full_record(void)
{
	return (struct etw_record){
		.ticks = 0x123456789A, .pid = 1234, .tid = 5678, .guid = guid, .id = 777,
		.version = 3, .opcode = 36, .payload = payload, .payload_bytes = sizeof(payload),
	};
}

/* Write it, and parse the bytes that the writer put into the buffer of CPU 0. */
static struct etw_record through(enum etl_kind kind, unsigned group, const struct etw_record *in,
				 struct etl_writer *w, bool *good)
{
	struct etl_head head;
	struct etw_record out;
	const uint8_t *at;

	etl_writer_begin(w, &(struct etl_session){0});
	etl_write(w, kind, group, in);
	at = (const uint8_t *)w->open[0].data;
	assert_int_equal(etl_record_head(at, w->open[0].len, &head), ETL_STEP_RECORD);
	assert_int_equal(head.kind, kind);
	assert_true(head.has_ticks);
	assert_int_equal(head.ticks, in->ticks);
	assert_int_equal(etl_record_stride(&head), w->open[0].len);
	*good = etl_record_parse(at, &head, 6, &out);
	return out;
}

TEST(every_header_gives_what_it_holds)
{
	static const struct {
		enum etl_kind kind;
		uint8_t pointer_bytes, header;
		uint32_t header_bytes;
		bool ids, group, guid, id;
	} cases[] = {
		{ETL_SYSTEM32, 4, ETW_CLASSIC, 32, true, true, false, false},
		{ETL_SYSTEM64, 8, ETW_CLASSIC, 32, true, true, false, false},
		{ETL_COMPACT32, 4, ETW_CLASSIC, 24, true, true, false, false},
		{ETL_COMPACT64, 8, ETW_CLASSIC, 24, true, true, false, false},
		{ETL_PERFINFO32, 4, ETW_CLASSIC, 16, false, true, false, false},
		{ETL_PERFINFO64, 8, ETW_CLASSIC, 16, false, true, false, false},
		{ETL_FULL32, 4, ETW_CLASSIC, 48, true, false, true, false},
		{ETL_FULL64, 8, ETW_CLASSIC, 48, true, false, true, false},
		{ETL_INSTANCE32, 4, ETW_CLASSIC, 72, true, false, true, false},
		{ETL_INSTANCE64, 8, ETW_CLASSIC, 72, true, false, true, false},
		{ETL_EVENT32, 4, ETW_MANIFEST, 80, true, false, true, true},
		{ETL_EVENT64, 8, ETW_MANIFEST, 80, true, false, true, true},
		{ETL_MESSAGE, 8, ETW_MESSAGE, 44, true, false, true, true},
	};
	/* 3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c */
	static const uint8_t thread_class[16] = "\xd1\xa8\x6f\x3d\x05\xfe\xd0\x11\x9d\xda\x00\xc0"
						"\x4f\xd7\xba\x7c";

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct etw_record in = full_record(), r;
		struct etl_writer w;
		bool good;

		r = through(cases[i].kind, 5, &in, &w, &good);
		assert_true(good);
		assert_int_equal(r.ticks, 0x123456789A);
		assert_int_equal(r.cpu, 6);
		assert_int_equal(r.header, cases[i].header);
		assert_int_equal(r.pointer_bytes, cases[i].pointer_bytes);
		assert_int_equal(r.nbytes, cases[i].header_bytes + 12);
		assert_int_equal(r.payload_bytes, 12);
		assert_memory_equal(r.payload, payload, 12);
		assert_int_equal(r.pid, cases[i].ids ? 1234 : ETW_ID_UNKNOWN);
		assert_int_equal(r.tid, cases[i].ids ? 5678 : ETW_ID_UNKNOWN);
		if (cases[i].guid)
			assert_memory_equal(&r.guid, &guid, 16);
		if (cases[i].group)
			assert_memory_equal(&r.guid, thread_class, 16);
		if (r.header != ETW_MESSAGE) {
			assert_int_equal(r.opcode, 36);
			assert_int_equal(r.version, 3);
		}
		assert_int_equal(r.id, cases[i].id ? 777 : 0);
		assert_int_equal(r.nitems, 0);
		etl_writer_free(&w);
	}
}

TEST(perfinfo_counters_stand_before_the_payload)
{
	struct etw_record in = full_record(), r;
	struct etl_writer w;
	bool good;

	in.version = 0x8302;                 /* PEBS and three counters; version 2 */
	r = through(ETL_PERFINFO64, 15, &in, &w, &good);
	assert_true(good);
	assert_int_equal(r.version, 2);
	assert_int_equal(r.nbytes, 16 + 4 * 8 + 12);
	assert_memory_equal(r.payload, payload, 12);
	/* A size that holds the header but not its counters is none. */
	w.open[0].data[4] = 40;
	assert_int_equal(etl_record_head((uint8_t *)w.open[0].data, w.open[0].len,
					 &(struct etl_head){0}), ETL_STEP_BAD);
	etl_writer_free(&w);
}

TEST(classes_come_from_groups_and_image_load_from_that_of_processes)
{
	struct etw_guid process, image_load, image, unknown;

	etl_kernel_class(3, 1, &process);
	etl_kernel_class(3, 10, &image_load);
	etl_kernel_class(20, 2, &image);
	etl_kernel_class(0x77, 10, &unknown);
	assert_memory_equal(&image, &image_load, 16);
	assert_memory_not_equal(&image, &process, 16);
	assert_memory_equal(&unknown, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x77", 16);
}

TEST(extended_items_stand_between_header_and_payload)
{
	struct etw_record in = full_record(), r;
	struct etl_writer w;
	bool good;

	for (uint32_t n = 1; n <= ETW_ITEMS_MAX; n++) {
		in.nitems = n;
		in.items[n - 1] = (struct etw_item){(uint16_t)(10 + n), (uint16_t)n, payload};
		r = through(ETL_EVENT64, 0, &in, &w, &good);
		assert_true(good);
		assert_int_equal(r.nitems, n);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(r.items[i].type, 11 + i);
			assert_int_equal(r.items[i].nbytes, i + 1);
			assert_memory_equal(r.items[i].bytes, payload, i + 1);
		}
		assert_int_equal(r.payload_bytes, 12);
		assert_memory_equal(r.payload, payload, 12);
		etl_writer_free(&w);
	}
}

TEST(items_beyond_the_eighth_are_stepped_over)
{
	struct etw_record in = full_record(), r;
	uint8_t more[16 + sizeof(payload)] = {16, 0, 9, 0, 0, 0, 8, 0};
	struct etl_head head;
	struct etl_writer w;
	bool good;

	memcpy(more + 16, payload, sizeof(payload));
	for (in.nitems = 0; in.nitems < ETW_ITEMS_MAX; in.nitems++)
		in.items[in.nitems] = (struct etw_item){5, 8, payload};
	/* The ninth is the beginning of the payload, until the eighth says that another follows. */
	in.payload = more;
	in.payload_bytes = sizeof(more);
	through(ETL_EVENT64, 0, &in, &w, &good);
	w.open[0].data[80 + 7 * 16 + 4] = 1;
	etl_record_head((uint8_t *)w.open[0].data, w.open[0].len, &head);
	assert_true(etl_record_parse((uint8_t *)w.open[0].data, &head, 0, &r));
	assert_int_equal(r.nitems, ETW_ITEMS_MAX);
	assert_int_equal(r.payload_bytes, 12);
	assert_memory_equal(r.payload, payload, 12);
	etl_writer_free(&w);
}

TEST(items_that_do_not_fit_cost_the_payload_only)
{
	struct etw_record in = full_record(), r;
	struct etl_head head;
	struct etl_writer w;
	bool good;

	in.nitems = 2;
	in.items[0] = in.items[1] = (struct etw_item){11, 8, payload};
	through(ETL_EVENT64, 0, &in, &w, &good);
	w.open[0].data[80 + 16 + 7] = 0x7F;  /* the second says to have 32,520 bytes */
	etl_record_head((uint8_t *)w.open[0].data, w.open[0].len, &head);
	assert_false(etl_record_parse((uint8_t *)w.open[0].data, &head, 0, &r));
	assert_int_equal(r.nitems, 1);
	assert_int_equal(r.payload_bytes, 0);
	assert_int_equal(r.id, 777);
	etl_writer_free(&w);
}

TEST(a_message_may_lack_everything)
{
	/* size 12, marker, number 5, options: none, then 4: a component. */
	static const uint8_t bare[] = {12, 0, 0, 0x90, 5, 0, 0, 0, 'a', 'b', 'c', 'd'};
	static const uint8_t component[] = {12, 0, 0, 0x90, 5, 0, 4, 0, 9, 8, 0, 0};
	struct etl_head head;
	struct etw_record r;

	assert_int_equal(etl_record_head(bare, sizeof(bare), &head), ETL_STEP_RECORD);
	assert_false(head.has_ticks);
	head.ticks = 42;
	assert_true(etl_record_parse(bare, &head, 0, &r));
	assert_int_equal(r.ticks, 42);
	assert_int_equal(r.tid, ETW_ID_UNKNOWN);
	assert_int_equal(r.id, 5);
	assert_int_equal(r.payload_bytes, 4);
	assert_int_equal(etl_record_head(component, sizeof(component), &head), ETL_STEP_RECORD);
	assert_true(etl_record_parse(component, &head, 0, &r));
	assert_int_equal(r.guid.bytes[0], 9);
	assert_int_equal(r.guid.bytes[1], 8);
	assert_int_equal(r.payload_bytes, 0);
}

TEST(what_is_no_record_is_told_apart)
{
	static const struct {
		uint8_t bytes[16];
		size_t n;
		enum etl_step step;
	} cases[] = {
		{{0}, 0, ETL_STEP_END},
		{{0}, 16, ETL_STEP_END},
		{{0xFF, 0xFF, 0xFF, 0xFF}, 16, ETL_STEP_END},
		{{1, 0, 2}, 3, ETL_STEP_CUT},
		{{1, 0, 2, 0xC0}, 4, ETL_STEP_CUT},
		{{1, 0, 2, 0xC0, 64}, 16, ETL_STEP_CUT},
		{{1, 0, 2, 0xC0, 31}, 16, ETL_STEP_BAD},     /* shorter than its header */
		{{1, 0, 2, 0xC1, 64}, 16, ETL_STEP_BAD},
		{{1, 0, 0, 0xC0, 64}, 16, ETL_STEP_BAD},     /* types that nothing has */
		{{1, 0, 5, 0xC0, 64}, 16, ETL_STEP_BAD},
		{{1, 0, 22, 0xC0, 64}, 16, ETL_STEP_BAD},
		{{1, 0, 255, 0xC0, 64}, 16, ETL_STEP_BAD},
		{{7, 0, 0, 0x90}, 16, ETL_STEP_BAD},
		{{9, 0, 0, 0x90}, 7, ETL_STEP_CUT},
	};
	struct etl_head head;

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(etl_record_head(cases[i].bytes, cases[i].n, &head), cases[i].step);
}

TEST(kernel_group_and_class_table_mean_the_same)
{
	static const struct { uint8_t group, opcode; uint16_t id; } same[] = {
		{0, 0, ETW_HEADER}, {1, 10, ETW_DISK_READ}, {2, 32, ETW_HARD_FAULT},
		{3, 1, ETW_PROCESS_START}, {3, 10, ETW_IMAGE_LOAD}, {4, 36, ETW_FILE_RUNDOWN},
		{5, 1, ETW_THREAD_START}, {15, 46, ETW_SAMPLE}, {20, 2, ETW_IMAGE_UNLOAD},
		{24, 32, ETW_STACK},
	};
	uint32_t i;

	for (i = 0; i < COUNT_OF(same); i++) {
		struct etw_record r = {.header = ETW_CLASSIC, .opcode = same[i].opcode};

		etl_kernel_class(same[i].group, r.opcode, &r.guid);
		assert_non_null(etw_class_find(&r));
		assert_int_equal(etw_class_find(&r)->id, same[i].id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_header_gives_what_it_holds),
		cmocka_unit_test(perfinfo_counters_stand_before_the_payload),
		cmocka_unit_test(classes_come_from_groups_and_image_load_from_that_of_processes),
		cmocka_unit_test(kernel_group_and_class_table_mean_the_same),
		cmocka_unit_test(extended_items_stand_between_header_and_payload),
		cmocka_unit_test(items_beyond_the_eighth_are_stepped_over),
		cmocka_unit_test(items_that_do_not_fit_cost_the_payload_only),
		cmocka_unit_test(a_message_may_lack_everything),
		cmocka_unit_test(what_is_no_record_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
