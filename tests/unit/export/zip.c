/* The zip archive, taken apart byte by byte and inflated. */
#include "tests/support/export_text.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

struct archive {
	char name[300];
	uint32_t time, date, crc, packed_bytes, plain_bytes;
	const uint8_t *packed;
};

static uint32_t u16(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const uint8_t *at)
{
	return u16(at) | u16(at + 2) << 16;
}

/* From the end, as readers do: end record, central header, local header. */
static void take_apart(const struct buf *zip, struct archive *a)
{
	const uint8_t *bytes = (const uint8_t *)zip->data, *end, *central;
	uint32_t name_bytes;

	assert_true(zip->len > 22 + 46 + 30);
	end = bytes + zip->len - 22;
	assert_int_equal(u32(end), 0x06054b50);
	assert_int_equal(u16(end + 8), 1);
	assert_int_equal(u16(end + 10), 1);
	assert_int_equal(u32(end + 16) + u32(end + 12), zip->len - 22);
	central = bytes + u32(end + 16);
	assert_int_equal(u32(central), 0x02014b50);
	assert_int_equal(u32(central + 42), 0);
	name_bytes = u16(central + 28);
	assert_int_equal(u32(end + 12), 46 + name_bytes);
	assert_int_equal(u32(bytes), 0x04034b50);
	/* Version, flags, method, time, date, crc, sizes, name length: the same in both. */
	assert_memory_equal(bytes + 4, central + 6, 26);
	assert_memory_equal(bytes + 30, central + 46, name_bytes);
	assert_int_equal(u16(bytes + 8), 8);
	a->time = u16(bytes + 10);
	a->date = u16(bytes + 12);
	a->crc = u32(bytes + 14);
	a->packed_bytes = u32(bytes + 18);
	a->plain_bytes = u32(bytes + 22);
	a->packed = bytes + 30 + name_bytes;
	assert_ptr_equal(a->packed + a->packed_bytes, central);
	memcpy(a->name, bytes + 30, name_bytes);
	a->name[name_bytes] = '\0';
}

static char *unpack(const struct archive *a)
{
	char *plain = malloc(a->plain_bytes + 1);
	z_stream stream = {0};

	assert_non_null(plain);
	stream.next_in = (Bytef *)(uintptr_t)a->packed;
	stream.avail_in = a->packed_bytes;
	stream.next_out = (Bytef *)plain;
	stream.avail_out = a->plain_bytes;
	assert_int_equal(inflateInit2(&stream, -MAX_WBITS), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	assert_int_equal(stream.avail_out, 0);
	inflateEnd(&stream);
	assert_int_equal(crc32(0, (const Bytef *)plain, a->plain_bytes), a->crc);
	plain[a->plain_bytes] = '\0';
	return plain;
}

static void check_content(int (*make)(struct incident *in))
{
	struct buf zip = {0}, xml = {0};
	struct archive archive;
	struct incident in;
	char *plain;

	assert_int_equal(make(&in), 0);
	assert_int_equal(export_text(&in, "perfview-xml-zip", NULL, &zip), 0);
	assert_int_equal(export_text(&in, "perfview-xml", NULL, &xml), 0);
	take_apart(&zip, &archive);
	plain = unpack(&archive);
	assert_string_equal(plain, xml.data);
	free(plain);
	buf_free(&zip);
	buf_free(&xml);
	incident_free(&in);
}

static int medium(struct incident *in)
{
	return sample_large(in, 20000, 300, 20, 7);
}

TEST(it_holds_the_compact_xml)
{
	check_content(sample_incident);
	check_content(sample_hostile);
	check_content(medium);
}

static void check_name(const char *file_name, const char *expected)
{
	struct export_options opt = export_defaults;
	struct archive archive;
	struct buf zip = {0};
	struct incident in;

	opt.file_name = file_name;
	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(export_text(&in, "perfview-xml-zip", &opt, &zip), 0);
	take_apart(&zip, &archive);
	assert_string_equal(archive.name, expected);
	assert_int_equal(archive.time, 0);
	assert_int_equal(archive.date, 1 << 5 | 1);
	buf_free(&zip);
	incident_free(&in);
}

TEST(its_entry_is_named_like_the_file_without_zip)
{
	check_name("cpu.perfView.xml.zip", "cpu.perfView.xml");
	check_name("caf\xc3\xa9.perfView.xml.ZIP", "caf\xc3\xa9.perfView.xml");
	check_name("/tmp/../etc/x.perfView.xml.zip", "x.perfView.xml");
	check_name("C:\\dir\\x.perfView.xml.zip", "x.perfView.xml");
	check_name(NULL, "incident.perfView.xml");
	check_name("-", "incident.perfView.xml");
	check_name(".zip", "incident.perfView.xml");
	check_name("bad\xff.zip", "incident.perfView.xml");
	check_name("line\n.zip", "incident.perfView.xml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds_the_compact_xml),
		cmocka_unit_test(its_entry_is_named_like_the_file_without_zip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
