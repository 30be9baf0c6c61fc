/* Fields that PerfView computes: names behind keys, times in ms, how long a disk worked. */
#include "source/etw/computed.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define HZ 10000000u
#define MS (HZ / 1000)
#define DISK "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c"
#define FILE_IO "90cbdc39-4a3e-11d1-84f4-0000f80464e3"
#define MEMORY "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c"
#define REGISTRY "ae53722e-c863-11d2-8659-00c04fa321a1"

static struct etw_state *known;
static struct etw_decode *decode;
static struct etw_computed computed;
static struct etw_decoded out;

static int begin(void **unused)
{
	(void)unused;
	memset(&computed, 0, sizeof(computed));
	etw_state_new(&known, NULL);
	etw_state_add_volume(known, "\\Device\\HarddiskVolume2\\", "C:\\");
	return etw_decode_new(&decode, NULL);
}

static int end(void **unused)
{
	(void)unused;
	etw_state_free(known);
	etw_decode_free(decode);
	return 0;
}

/* Learn a record at this time, then decode it. */
static void take(struct etw_record r, double ms)
{
	r.ticks = (int64_t)(ms * MS);
	etw_state_learn(known, &r, etw_class_find(&r));
	etw_decode_event(decode, &r, &out);
	etw_computed_add(&computed, known, HZ, &r, &out);
}

static const struct event_field *field(const char *name)
{
	struct event e = {.fields = out.fields, .nfields = out.nfields};

	return event_field(&e, name);
}

static double ms_of(const char *name)
{
	const struct event_field *f = field(name);

	return f && f->type == FIELD_DOUBLE ? f->v.d : -1;
}

static void text_is(const char *name, const char *text)
{
	const struct event_field *f = field(name);

	if (!f || f->type != FIELD_TEXT || strcmp(f->v.text, text) != 0)
		fail_msg("%s is not %s: %s", name, text, f ? f->v.text : "absent");
}

static void disk(uint8_t opcode, uint32_t number, double ms, double took_ms, uint64_t file)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, number, 4);
	etw_int(&b, 0x60043, 4);
	if (opcode != 14) {
		etw_int(&b, 4096, 4);
		etw_int(&b, 0, 4);
		etw_int(&b, 1 << 20, 8);
		etw_int(&b, file, 8);
		etw_int(&b, 1, 8);
	}
	etw_int(&b, (uint64_t)(took_ms * MS), 8);
	if (opcode == 14)
		etw_int(&b, 1, 8);
	etw_int(&b, 7, 4);
	take(etw_classic(DISK, opcode, 3, &b), ms);
}

static void file_name(uint8_t opcode, double ms, uint64_t key, const char *path)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, key, 8);
	etw_text16(&b, path);
	take(etw_classic(FILE_IO, opcode, 2, &b), ms);
}

/* Three requests at once: each waits for the one before. */
TEST(a_disk_works_on_a_request_since_it_ended_the_one_before)
{
	disk(10, 0, 100, 30, 5);
	assert_true(ms_of("ElapsedTimeMSec") == 30 && ms_of("DiskServiceTimeMSec") == 30);
	disk(11, 0, 110, 40, 5);
	assert_true(ms_of("ElapsedTimeMSec") == 40 && ms_of("DiskServiceTimeMSec") == 10);
	disk(10, 1, 115, 45, 5);             /* another disk */
	assert_true(ms_of("DiskServiceTimeMSec") == 45);
	disk(14, 0, 120, 20, 0);             /* a flush */
	assert_true(ms_of("ElapsedTimeMSec") == 20 && !field("DiskServiceTimeMSec"));
	disk(10, 0, 124, 50, 5);
	assert_true(ms_of("DiskServiceTimeMSec") == 4);
	disk(10, 0, 200, 3, 5);              /* it was idle */
	assert_true(ms_of("DiskServiceTimeMSec") == 3);
	disk(10, 100000, 201, 3, 5);         /* no such disk: as if it were the first */
	disk(10, 100000, 202, 3, 5);
	assert_true(ms_of("DiskServiceTimeMSec") == 3);
}

TEST(a_file_key_leads_to_the_path_of_its_time)
{
	file_name(32, 1, 5, "\\Device\\HarddiskVolume2\\old.txt");
	disk(10, 0, 2, 1, 5);
	text_is("FileName", "C:\\old.txt");
	file_name(35, 3, 5, "\\Device\\HarddiskVolume2\\old.txt");
	file_name(32, 4, 5, "\\Device\\HarddiskVolume2\\new.txt");
	disk(10, 0, 5, 1, 5);
	text_is("FileName", "C:\\new.txt");
	disk(10, 0, 6, 1, 6);
	assert_null(field("FileName"));
}

TEST(a_hard_fault_says_how_long_it_took_and_of_which_file)
{
	struct etw_bytes b = {.n = 0};

	file_name(32, 1, 5, "\\Device\\Mup\\share\\a.dll");
	etw_int(&b, 90 * MS, 8);
	etw_int(&b, 4096, 8);
	etw_int(&b, 0x7f9c7a891f0, 8);
	etw_int(&b, 5, 8);
	etw_int(&b, 7, 4);
	etw_int(&b, 8704, 4);
	take(etw_classic(MEMORY, 32, 2, &b), 93.5);
	assert_true(ms_of("ElapsedTimeMSec") == 3.5);
	text_is("FileName", "\\Device\\Mup\\share\\a.dll");
	take(etw_classic(MEMORY, 32, 2, &b), 80);    /* begun later than it ended */
	assert_true(ms_of("ElapsedTimeMSec") == 0);
}

/* The file is opened in the session, so its object leads to the path until it is closed. */
static void open_file(uint16_t version, double ms, const char *path)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 1, 8);
	if (version == 2)
		etw_int(&b, 7, 8);
	etw_int(&b, 0xABC0, 8);
	if (version == 3)
		etw_int(&b, 7, 4);
	etw_int(&b, 0x03000060, 4);
	etw_int(&b, 0x80, 4);
	etw_int(&b, 5, 4);
	etw_text16(&b, path);
	take(etw_classic(FILE_IO, 64, version, &b), ms);
}

static void close_file(double ms)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 1, 8);
	etw_int(&b, 0xABC0, 8);
	etw_int(&b, 0xFEED, 8);
	etw_int(&b, 7, 4);
	take(etw_classic(FILE_IO, 66, 3, &b), ms);
}

static void write_file(uint16_t version, double ms, uint64_t object, uint64_t key)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, 4096, 8);
	etw_int(&b, 1, 8);
	if (version == 2)
		etw_int(&b, 7, 8);
	etw_int(&b, object, 8);
	etw_int(&b, key, 8);
	if (version == 3)
		etw_int(&b, 7, 4);
	etw_int(&b, 512, 4);
	etw_int(&b, 0, 4);
	take(etw_classic(FILE_IO, 68, version, &b), ms);
}

TEST(an_operation_on_a_file_has_the_path_by_which_it_was_opened)
{
	for (uint16_t version = 2; version <= 3; version++) {
		double ms = 100 * version;

		open_file(version, ms, "\\Device\\HarddiskVolume2\\a.log");
		assert_string_equal(out.name, "FileIO/Create");
		text_is("FileName", "C:\\a.log");
		assert_int_equal(field("CreateOptions")->v.u, 0x60);
		assert_int_equal(field("CreateDispostion")->v.u, 3);
		assert_int_equal(field("ShareAccess")->v.u, 5);
		write_file(version, ms + 1, 0xABC0, 0xFEED);
		text_is("FileName", "C:\\a.log");
		assert_int_equal(field("IoSize")->v.u, 512);
		assert_int_equal(field("Offset")->v.u, 4096);
		close_file(ms + 2);
		text_is("FileName", "C:\\a.log");
	}
	file_name(0, 400, 0xFEED, "\\Device\\HarddiskVolume2\\b.log");
	write_file(3, 401, 0xABC0, 0xFEED);  /* the key says more than an object of before */
	text_is("FileName", "C:\\b.log");
}

static void registry(uint8_t opcode, double ms, double took_ms, uint64_t handle, const char *name)
{
	struct etw_bytes b = {.n = 0};

	etw_int(&b, (uint64_t)((ms - took_ms) * MS), 8);
	etw_int(&b, 0, 4);
	etw_int(&b, 0, 4);
	etw_int(&b, handle, 8);
	etw_text16(&b, name);
	take(etw_classic(REGISTRY, opcode, 2, &b), ms);
}

TEST(a_registry_value_has_the_name_of_its_key)
{
	registry(22, 10, 0, 0xE1, "\\REGISTRY\\MACHINE\\SOFTWARE\\Ours");
	registry(14, 11, 0.5, 0xE1, "Limit");
	assert_string_equal(out.name, "Registry/SetValue");
	text_is("ValueName", "Limit");
	text_is("KeyName", "\\REGISTRY\\MACHINE\\SOFTWARE\\Ours");
	assert_true(ms_of("ElapsedTimeMSec") == 0.5);
	registry(11, 12, 1, 0xE1, "Sub");    /* a name from the handle's key on */
	text_is("KeyName", "Sub");
	registry(21, 13, 1, 0xE1, "");
	text_is("KeyName", "\\REGISTRY\\MACHINE\\SOFTWARE\\Ours");
	registry(14, 14, 1, 0xE2, "Other");
	assert_null(field("KeyName"));
}

int main(void)
{
#define WITH_STATE(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		WITH_STATE(a_disk_works_on_a_request_since_it_ended_the_one_before),
		WITH_STATE(a_file_key_leads_to_the_path_of_its_time),
		WITH_STATE(a_hard_fault_says_how_long_it_took_and_of_which_file),
		WITH_STATE(an_operation_on_a_file_has_the_path_by_which_it_was_opened),
		WITH_STATE(a_registry_value_has_the_name_of_its_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
