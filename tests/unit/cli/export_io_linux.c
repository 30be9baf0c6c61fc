/*
 * Each system call of an export fails in turn, in each way of io_walk_linux.h: in every format
 * while the file is written, in the first also while the store is read. What is at the name
 * afterwards is the whole export when it succeeded, and what was there before when it did not; or
 * the whole export if only the directory was not synced.
 */
#include "tests/support/export_text.h"
#include "tests/support/io_walk_linux.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include "base/os.h"

#include <stdio.h>
#include <string.h>

#define MOST_CALLS 3000u                     /* an export that never runs through ends here */

static const char before[] = "what was there before";
static char to[TMP_BYTES];

static int export_one(struct store *s, const struct exporter *e, struct err *err)
{
	struct incident in = {0};
	struct out *out = NULL;
	int rc = store_load(s, 1, &in, err);

	if (!rc)
		rc = out_open(to, true, &out, err);
	if (!rc && exporter_packs(e, to))
		rc = out_pack(out, err);
	if (!rc)
		rc = e->write(&in, &export_defaults, out, err);
	if (rc)
		out_abandon(out);
	else
		rc = out_close(out, err);
	incident_free(&in);
	return rc;
}

static int open_and_export(const char *store, const struct exporter *e, struct err *err)
{
	struct store *s = NULL;
	int rc = store_open(store, STORE_READ, &s, err);

	if (!rc)
		rc = export_one(s, e, err);
	store_close(s);
	return rc;
}

static bool holds(const void *bytes, size_t n)
{
	struct buf got = {0};
	bool same;

	assert_int_equal(os_load(to, 64 << 20, &got, NULL), 0);
	same = got.len == n && memcmp(got.data, bytes, n) == 0;
	buf_free(&got);
	return same;
}

/* store: the file that is opened while calls fail; or s, which is open. */
static void walk(const struct exporter *e, const char *store, struct store *s)
{
	unsigned long n, all = 0;
	struct buf whole = {0};
	struct err err = {0};
	int fault, rc;

	assert_int_equal(s ? export_one(s, e, &err) : open_and_export(store, e, &err), 0);
	assert_int_equal(os_load(to, 64 << 20, &whole, NULL), 0);
	for (fault = 0; fault < IO_FAULTS; fault++) {
		for (n = 1; n < MOST_CALLS; n++, all++) {
			struct os_file *file = NULL;
			const char *call;
			bool new, old;

			assert_int_equal(os_open(to, OS_REPLACE, &file, NULL), 0);
			assert_int_equal(os_write(file, before, sizeof(before), NULL), 0);
			os_close(file);
			io_walk_fail_at((enum io_fault)fault, n);
			rc = s ? export_one(s, e, &err) : open_and_export(store, e, &err);
			call = io_walk_end();
			new = holds(whole.data, whole.len);
			old = holds(before, sizeof(before));
			if (rc ? !old && !(new && strcmp(call, "fsync") == 0) : !new)
				fail_msg("%s, %s at call %lu (%s): %s, but the file is not so",
					 e->name, io_fault_text((enum io_fault)fault), n, call,
					 rc ? err.text : "it succeeded");
			if (!call)
				break;
		}
		assert_int_equal(rc, 0);
		assert_in_range(n, 1, MOST_CALLS - 1);
	}
	print_message("%s%s: %lu failures\n", e->name, s ? "" : " out of a store", all);
	buf_free(&whole);
}

/* Enough for some writes of a file: half a megabyte of lines. */
static struct store *make_store(struct lab *lab)
{
	struct store *s = lab_store(lab, STORE_RECORD);
	struct incident_head head = lab_head(MS(4000), MS(4000), MS(1000));
	struct segment *segment;
	unsigned i;

	for (i = 0; i < 5000; i++)
		lab_sample(lab, MS(i), i % 2, i % 3 ? "abc" : "abd");
	segment = lab_seal(lab);
	assert_int_equal(lab_incident(s, &head, &segment, 1), 1);
	segment_unref(segment);
	store_close(s);
	return lab_store(lab, STORE_READ);
}

TEST(an_export_is_whole_or_not_there_whatever_fails)
{
	struct store *s;
	struct lab lab;
	size_t i;

	snprintf(to, sizeof(to), "%s", tmp_path("walk-export.gz"));
	lab_open(&lab, "walk-export.db");
	s = make_store(&lab);
	for (i = 0; exporters[i]; i++)
		walk(exporters[i], NULL, s);
	store_close(s);
	walk(exporters[0], lab.path, NULL);
	lab_close(&lab);
	os_remove(to, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_export_is_whole_or_not_there_whatever_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
