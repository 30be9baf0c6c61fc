/* Out of memory: the store says so, loses nothing, and works again afterwards. */
#include "tests/support/alloc_walk.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * SQLite gets an allocator of its own, so that our allocations fail apart from its. It carries on
 * when some of its own fail (caches), which alloc_walk() does not accept. A block begins with its
 * size.
 */
void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);

static long sqlite_count, sqlite_fail_at;

static bool sqlite_fails(void)
{
	return ++sqlite_count == sqlite_fail_at;
}

static void *sqlite_malloc(int n)
{
	size_t *block = sqlite_fails() ? NULL : __real_malloc((size_t)n + 16);

	if (!block)
		return NULL;
	*block = (size_t)n;
	return (char *)block + 16;
}

static void sqlite_free(void *p)
{
	free((char *)p - 16);
}

static void *sqlite_realloc(void *p, int n)
{
	size_t *block = sqlite_fails() ? NULL : __real_realloc((char *)p - 16, (size_t)n + 16);

	if (!block)
		return NULL;
	*block = (size_t)n;
	return (char *)block + 16;
}

static int sqlite_size(void *p)
{
	size_t n;

	memcpy(&n, (char *)p - 16, sizeof(n));
	return (int)n;
}

static int sqlite_roundup(int n)
{
	return (n + 7) & ~7;
}

static int sqlite_init(void *ctx)
{
	(void)ctx;
	return SQLITE_OK;
}

static void sqlite_shutdown(void *ctx)
{
	(void)ctx;
}

static int install(void **state)
{
	static const sqlite3_mem_methods methods = {sqlite_malloc,  sqlite_free,  sqlite_realloc,
						    sqlite_size,    sqlite_roundup, sqlite_init,
						    sqlite_shutdown, NULL};

	(void)state;
	return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

/* ---- what is walked ------------------------------------------------------------------------- */

struct walk {
	struct lab lab;
	struct segment *segment;
	char *first;                         /* dump of incident 1, which must not change */
};

static void open_walk(struct walk *w, const char *name)
{
	struct store *s;

	lab_open(&w->lab, name);
	s = lab_store(&w->lab, STORE_RECORD);
	lab_name(&w->lab, 'a');
	lab_simple(&w->lab, s, MS(10), 5);
	w->first = strdup(lab_dump(s, 1));
	store_close(s);
	lab_name(&w->lab, 'f');
	lab_sample(&w->lab, MS(100), 0, "efgh");
	lab_lost(&w->lab, MS(100), 0, LOSS_KERNEL, 1);
	w->segment = lab_seal(&w->lab);
}

static void close_walk(struct walk *w)
{
	segment_unref(w->segment);
	free(w->first);
	lab_check_integrity(w->lab.path);
	lab_close(&w->lab);
}

/* A whole run of a recorder with one incident. */
static int record(struct walk *w)
{
	struct incident_head head = lab_head(MS(100), MS(10), MS(10));
	struct store *s = NULL;
	struct err err = {0};
	int rc = store_open(w->lab.path, STORE_RECORD, &s, &err);

	w->segment->store_id = 0;
	if (!rc) {
		store_set_floor(s, 0);
		rc = store_begin(s, &head, &err);
	}
	if (!rc)
		rc = store_put_segment(s, head.id, w->segment, &err);
	if (!rc)
		rc = store_finish(s, &head, &w->segment, 1, &err);
	if (rc && rc != ERR_MEMORY)
		fail_msg("without memory: %d, %s", rc, err.text);
	store_close(s);
	return rc;
}

static void still_good(struct walk *w)
{
	struct store *s = lab_store(&w->lab, STORE_READ);

	assert_string_equal(lab_dump(s, 1), w->first);
	store_close(s);
}

TEST(recording_survives_every_failed_allocation_of_ours)
{
	unsigned long n;
	bool met = true;
	struct walk w;

	open_walk(&w, "ours.db");
	for (n = 1; met; n++) {
		int rc;

		alloc_walk_fail_at(n);
		rc = record(&w);
		met = alloc_walk_count() >= n;
		alloc_walk_fail_at(0);
		/*
		 * The reserve file is done without: the only allocations that may fail unnoticed.
		 */
		assert_true(met || rc == 0);
		still_good(&w);
	}
	assert_in_range(n, 20, 2000);
	close_walk(&w);
}

TEST(recording_survives_failed_allocations_of_sqlite)
{
	struct walk w;
	bool met = true;
	long n;

	open_walk(&w, "sqlites.db");
	/* There are thousands; every 7th fails, so that it takes seconds only. */
	for (n = 1; met; n += 7) {
		int rc;

		sqlite_count = 0;
		sqlite_fail_at = n;
		rc = record(&w);
		met = sqlite_count >= n;
		sqlite_fail_at = 0;
		assert_true(met || rc == 0);
		if (n % 20 == 1)
			still_good(&w);
	}
	still_good(&w);
	close_walk(&w);
}

static int load(void *ctx)
{
	struct store *s = ctx;
	struct incident in = {0};
	int rc = store_load(s, 1, &in, NULL);

	incident_free(&in);
	return rc;
}

TEST(loading_reports_lack_of_memory)
{
	struct store *s;
	struct walk w;

	open_walk(&w, "load.db");
	s = lab_store(&w.lab, STORE_READ);
	assert_in_range(alloc_walk(load, s), 10, 500);
	assert_string_equal(lab_dump(s, 1), w.first);
	store_close(s);
	close_walk(&w);
}

static int count_heads(void *ctx, const struct incident_head *head)
{
	*(int *)ctx += head->id != 0;
	return 0;
}

static int list(void *ctx)
{
	int n = 0;

	return store_list(ctx, count_heads, &n, NULL);
}

TEST(listing_reports_lack_of_memory)
{
	struct store *s;
	struct walk w;

	open_walk(&w, "list.db");
	s = lab_store(&w.lab, STORE_READ);
	assert_in_range(alloc_walk(list, s), 3, 100);
	store_close(s);
	close_walk(&w);
}

TEST(what_could_not_be_swept_is_swept_later)
{
	struct store *s;
	unsigned long n;
	bool met = true;
	struct walk w;

	open_walk(&w, "sweep.db");
	for (n = 1; met; n++) {
		int rc;

		assert_int_equal(record(&w), 0);
		s = lab_store(&w.lab, STORE_EDIT);
		alloc_walk_fail_at(n);
		rc = lab_delete(s, lab_sql(w.lab.path, "SELECT max(id) FROM incident"), NULL);
		met = alloc_walk_count() >= n;
		alloc_walk_fail_at(0);
		store_close(s);
		assert_true(rc == 0 || rc == ERR_MEMORY);
		still_good(&w);
	}
	assert_int_equal(lab_sql(w.lab.path, "SELECT sum(frames) FROM frame_page"), 4);
	close_walk(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recording_survives_every_failed_allocation_of_ours),
		cmocka_unit_test(recording_survives_failed_allocations_of_sqlite),
		cmocka_unit_test(loading_reports_lack_of_memory),
		cmocka_unit_test(listing_reports_lack_of_memory),
		cmocka_unit_test(what_could_not_be_swept_is_swept_later),
	};

	return cmocka_run_group_tests(tests, install, NULL);
}
