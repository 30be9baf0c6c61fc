/* Classes of ETW events: found by GUID and number, fields at their places, short payloads cut. */
#include "source/etw/class.h"
#include "source/etw/stacks.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

static void text_is(const struct etw_value *value, const char *text, uint32_t width)
{
	assert_non_null(value->bytes);
	assert_int_equal(value->nbytes, strlen(text) * width);
	for (size_t i = 0; i < strlen(text); i++)
		assert_int_equal(value->bytes[i * width], text[i]);
}

static struct etw_bytes process_start(uint16_t version)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 0xfffffa8300cfb380, 8);
	etw_int(&b, 3676, 4);
	etw_int(&b, 3508, 4);
	etw_int(&b, 1, 4);
	etw_int(&b, 259, 4);
	etw_int(&b, 0x558fb000, 8);
	if (version >= 4)
		etw_int(&b, 2, 4);
	etw_int(&b, 0xfffff8a001, 8);        /* two pointers, then a SID with 1 subauthority */
	etw_int(&b, 0, 8);
	etw_put(&b, "\1\1\0\0\0\0\0\5\22\0\0\0", 12);
	etw_text8(&b, "Test.x64.exe");
	etw_text16(&b, "Test.x64.exe -v");
	if (version >= 4) {
		etw_text16(&b, "");
		etw_text16(&b, "app");
	}
	return b;
}

TEST(a_process_has_its_names_behind_a_sid_of_any_length)
{
	struct etw_value v[AT_PROCESS_FIELDS];

	for (uint16_t version = 3; version <= 4; version++) {
		struct etw_bytes b = process_start(version);
		struct etw_record record = etw_classic(ETW_PROCESS_GUID, 1, version, &b);
		const struct etw_class *class = etw_class_find(&record);

		assert_int_equal(class->id, ETW_PROCESS_START);
		assert_string_equal(class->provider, "Windows Kernel");
		assert_string_equal(class->name, "Process/Start");
		assert_int_equal(etw_class_read(class, &record, v, AT_PROCESS_FIELDS),
				 AT_PROCESS_FIELDS);
		assert_int_equal(v[AT_PROCESS_PID].u, 3676);
		assert_int_equal(v[AT_PROCESS_PARENT].u, 3508);
		assert_int_equal(v[AT_PROCESS_SID].nbytes, 12);
		text_is(&v[AT_PROCESS_IMAGE], "Test.x64.exe", 1);
		text_is(&v[AT_PROCESS_COMMAND_LINE], "Test.x64.exe -v", 2);
		assert_int_equal(etw_value_is(&v[AT_PROCESS_FLAGS]), version == 4);
		assert_int_equal(etw_value_is(&v[AT_PROCESS_APPLICATION]), version == 4);
	}
}

TEST(a_payload_cut_anywhere_gives_the_fields_before_the_cut)
{
	struct etw_bytes b = process_start(4);
	struct etw_value v[AT_PROCESS_FIELDS];

	for (uint32_t n = 0; n <= b.n; n++) {
		/* So that a sanitizer sees an over-read. */
		uint8_t *exact = malloc(n ? n : 1);
		struct etw_record record = etw_classic(ETW_PROCESS_GUID, 1, 4, &b);

		memcpy(exact, b.at, n);
		record.payload = exact;
		record.payload_bytes = n;
		etw_class_read(etw_class_find(&record), &record, v, AT_PROCESS_FIELDS);
		assert_int_equal(etw_value_is(&v[AT_PROCESS_KEY]), n >= 8);
		assert_int_equal(etw_value_is(&v[AT_PROCESS_PID]), n >= 12);
		assert_int_equal(etw_value_is(&v[AT_PROCESS_FLAGS]), n >= 36);
		assert_int_equal(etw_value_is(&v[AT_PROCESS_SID]), n >= 64);
		assert_int_equal(etw_value_is(&v[AT_PROCESS_IMAGE]), n >= 65);
		free(exact);
	}
}

TEST(a_utf16_text_ends_at_its_first_nul_or_at_the_end)
{
	const struct etw_field text = {.name = "Text", .type = ETW_UTF16Z};
	struct etw_value v;

	for (uint32_t n = 0; n < 12; n++) {
		uint8_t *exact = malloc(28);

		memset(exact, 1, 28);
		exact[2 * n + 1] = 0;        /* half of a unit is no end */
		exact[2 * n + 2] = exact[2 * n + 3] = 0;
		assert_ptr_equal(etw_value_read(&text, 8, exact, exact + 28, &v),
				 exact + 2 * n + 4);
		assert_int_equal(v.nbytes, 2 * n + 2);
		assert_ptr_equal(etw_value_read(&text, 8, exact, exact + 2 * n + 2, &v),
				 exact + 2 * n + 2);
		assert_int_equal(v.nbytes, 2 * n + 2);
		free(exact);
	}
}

TEST(a_sample_says_whether_it_was_in_a_dpc)
{
	struct etw_bytes b = {.n = 0};
	struct etw_record record;
	struct etw_value v[ETW_CLASS_MAX_FIELDS];

	etw_int(&b, 0xffffffffffd03003, 8);
	etw_int(&b, 584, 4);
	etw_int(&b, 1, 2);
	etw_int(&b, 14 << 3 | 1, 1);
	etw_int(&b, 0, 1);
	record = etw_classic(ETW_PERF_INFO_GUID, 46, 2, &b);
	assert_int_equal(etw_class_find(&record)->id, ETW_SAMPLE);
	assert_int_equal(etw_class_read(etw_class_find(&record), &record, v, ETW_CLASS_MAX_FIELDS),
			 8);
	assert_true(v[AT_SAMPLE_IP].u == 0xffffffffffd03003);
	assert_int_equal(v[AT_SAMPLE_TID].u, 584);
	assert_int_equal(v[5].u, 1);
	assert_int_equal(v[6].u, 0);
	assert_int_equal(v[7].u, 14);
	record.version = 1;
	etw_class_read(etw_class_find(&record), &record, v, AT_SAMPLE_FIELDS);
	assert_false(etw_value_is(&v[AT_SAMPLE_IP]));
}

TEST(an_image_of_a_32_bit_record_has_32_bit_addresses)
{
	struct etw_bytes b = {.n = 0};
	struct etw_record record;
	struct etw_value v[AT_IMAGE_FIELDS];

	for (int i = 0; i < 5; i++)
		/* Base, size, pid, checksum, timestamp. */
		etw_int(&b, 0x400000u + (uint32_t)i, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, 0x10000000, 4);
	etw_put(&b, (uint8_t[16]){0}, 16);
	etw_text16(&b, "\\Windows\\a.dll");
	record = etw_classic(ETW_IMAGE_GUID, 10, 2, &b);
	record.pointer_bytes = 4;
	for (uint16_t version = 2; version <= 3; version++) {
		record.version = version;
		etw_class_read(etw_class_find(&record), &record, v, AT_IMAGE_FIELDS);
		assert_int_equal(v[AT_IMAGE_BASE].u, 0x400000);
		assert_int_equal(v[AT_IMAGE_PID].u, 0x400002);
		assert_int_equal(v[AT_IMAGE_DEFAULT_BASE].u, 0x10000000);
		text_is(&v[AT_IMAGE_PATH], "\\Windows\\a.dll", 2);
		assert_int_equal(etw_value_is(&v[AT_IMAGE_SIGNATURE_LEVEL]), version == 3);
	}
}

TEST(a_clr_stack_ends_where_its_count_or_its_payload_ends)
{
	struct etw_bytes b = {.n = 0};
	struct etw_record record;
	struct etw_value v[AT_CLR_STACK_FIELDS];

	etw_int(&b, 9, 4);
	etw_int(&b, 2, 4);
	for (uint64_t i = 1; i <= 3; i++)
		etw_int(&b, i << 32, 8);
	record = etw_manifest(ETW_RUNTIME_GUID, 82, 0, &b);
	etw_class_read(etw_class_find(&record), &record, v, AT_CLR_STACK_FIELDS);
	assert_int_equal(v[AT_CLR_STACK_FRAMES].u, 2);
	assert_true(etw_value_address(&v[AT_CLR_STACK_FRAMES], 8, 1) == (uint64_t)2 << 32);
	record.payload_bytes = 8 + 15;
	etw_class_read(etw_class_find(&record), &record, v, AT_CLR_STACK_FIELDS);
	assert_int_equal(v[AT_CLR_STACK_FRAMES].u, 1);
	assert_int_equal(v[AT_CLR_STACK_FRAMES].nbytes, 8);
}

TEST(the_same_number_means_something_else_in_another_provider)
{
	struct etw_bytes none = {.n = 0};
	struct etw_record runtime = etw_manifest(ETW_RUNTIME_GUID, 143, 1, &none);
	struct etw_record rundown = etw_manifest(ETW_RUNDOWN_GUID, 143, 1, &none);
	struct etw_record classic = etw_classic(ETW_RUNTIME_GUID, 143, 1, &none);

	assert_string_equal(etw_class_find(&runtime)->name, "Method/LoadVerbose");
	assert_string_equal(etw_class_find(&rundown)->name, "Method/DCStartVerbose");
	assert_null(etw_class_find(&classic));
	runtime.id = 60000;
	assert_null(etw_class_find(&runtime));
	assert_string_equal(etw_class_provider(&runtime.guid), "Microsoft-Windows-DotNETRuntime");
}

TEST(a_memo_gives_what_a_search_would_for_thousands_of_kinds)
{
	static const char *const guids[] = {
		ETW_RUNTIME_GUID, ETW_RUNDOWN_GUID, "90cbdc39-4a3e-11d1-84f4-0000f80464e3"};
	struct etw_class_memo memo = {0};
	struct etw_bytes none = {.n = 0};

	for (uint16_t i = 0; i < 9000; i++) {
		uint8_t key = (uint8_t)(i / 6);
		const char *guid = guids[i % 3];
		struct etw_record r = i % 2 ? etw_manifest(guid, key, 1, &none)
					    : etw_classic(guid, key, 1, &none);

		assert_ptr_equal(etw_class_recall(&memo, &r), etw_class_find(&r));
		assert_ptr_equal(etw_class_recall(&memo, &r), etw_class_find(&r));
	}
}

/* Behind the IRP and the keys; in version 2 it stood elsewhere, and the record's header knows. */
TEST(an_operation_on_a_file_has_its_thread_from_version_3_on)
{
	struct etw_bytes b = {.n = 0};
	struct etw_record record;

	for (uint64_t i = 1; i <= 3; i++)    /* IRP, object, key */
		etw_int(&b, i << 32, 8);
	etw_int(&b, 584, 4);
	record = etw_classic("90cbdc39-4a3e-11d1-84f4-0000f80464e3", 65, 3, &b);
	record.tid = 9;
	assert_string_equal(etw_class_find(&record)->name, "FileIO/Cleanup");
	assert_int_equal(etw_effective_tid(&record, etw_class_find(&record)), 584);
	record.version = 2;
	assert_int_equal(etw_effective_tid(&record, etw_class_find(&record)), 9);
}

TEST(a_flag_brings_only_events_of_the_kernel)
{
	const struct etw_class *classes;
	struct etw_guid guid;
	uint32_t n, brought = 0;

	for (uint32_t t = 0; (classes = etw_class_table(t, &n, &guid)); t++)
		for (uint32_t i = 0; i < n; i++) {
			/* Heaps have a session of their own, what the processor counts a mask. */
			bool own = strcmp(classes[i].provider, "HeapTraceProvider") == 0 ||
				   strcmp(classes[i].name, "PerfInfo/PMCSample") == 0;

			if (strcmp(classes[i].provider, "Windows Kernel") != 0)
				assert_false(classes[i].flag || (classes[i].has_stack && !own));
			assert_true(classes[i].flag || !classes[i].has_stack || own);
			brought += classes[i].flag != 0;
		}
	assert_in_range(brought, 100, 200);
}

TEST(every_table_is_sorted_and_every_layout_fits)
{
	const struct etw_class *classes;
	struct etw_guid guid;
	uint32_t n;

	for (uint32_t t = 0; (classes = etw_class_table(t, &n, &guid)); t++)
		for (uint32_t i = 0; i < n; i++) {
			assert_true(i == 0 || classes[i].key > classes[i - 1].key);
			assert_non_null(classes[i].name);
			assert_true(classes[i].nfields <= ETW_CLASS_MAX_FIELDS);
			for (uint32_t f = 0; f < classes[i].nfields; f++)
				assert_true(classes[i].fields[f].type < ETW_TYPES);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_has_its_names_behind_a_sid_of_any_length),
		cmocka_unit_test(a_payload_cut_anywhere_gives_the_fields_before_the_cut),
		cmocka_unit_test(a_utf16_text_ends_at_its_first_nul_or_at_the_end),
		cmocka_unit_test(a_sample_says_whether_it_was_in_a_dpc),
		cmocka_unit_test(an_image_of_a_32_bit_record_has_32_bit_addresses),
		cmocka_unit_test(a_clr_stack_ends_where_its_count_or_its_payload_ends),
		cmocka_unit_test(the_same_number_means_something_else_in_another_provider),
		cmocka_unit_test(a_memo_gives_what_a_search_would_for_thousands_of_kinds),
		cmocka_unit_test(an_operation_on_a_file_has_its_thread_from_version_3_on),
		cmocka_unit_test(a_flag_brings_only_events_of_the_kernel),
		cmocka_unit_test(every_table_is_sorted_and_every_layout_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
