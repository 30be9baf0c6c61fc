/* The store is removed or damaged while recording lasts: the incident is kept all the same. */
#include "tests/support/engine_rig.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include "base/os.h"

#include <stdio.h>
#include <string.h>

#define FIRED 2000u                      /* the sample at which the rule fires, at 20 s */

/* Until the writer has begun it. */
static void await_incident(const char *path)
{
	static const char tables[] = "SELECT count(*) FROM sqlite_master WHERE name = 'incident'";
	unsigned tries = 6000;

	while (!(os_exists(path) && lab_sql(path, tables) == 1 &&
		 lab_sql(path, "SELECT count(*) FROM incident") > 0) && --tries)
		os_sleep_ns(10 * NS_PER_MS);
	assert_true(tries > 0);
}

static void remove_at(void *ctx, uint64_t number)
{
	if (number != FIRED + 100)
		return;
	await_incident(ctx);
	remove_store(ctx);
}

TEST(an_incident_whose_store_is_removed_is_stored_in_a_new_one)
{
	struct rig r;

	rig_open(&r, "gone.db", 30);
	r.plan.fire_s[0] = 20;
	r.plan.at = remove_at;
	r.plan.ctx = r.path;
	rig_run(&r);
	assert_true(os_exists(r.path));
	rig_check(&r, 1, 1000, 2200);
	remove_store(r.path);
}

/* The second page of the file and those behind it become noise, as on a bad disk. */
static void damage_at(void *ctx, uint64_t number)
{
	char noise[4096];
	FILE *f;

	if (number != FIRED + 100)
		return;
	await_incident(ctx);
	lab_sql(ctx, "PRAGMA wal_checkpoint(TRUNCATE)");
	f = fopen(ctx, "r+b");
	assert_non_null(f);
	memset(noise, 0xa5, sizeof(noise));
	assert_int_equal(fseek(f, 4096, SEEK_SET), 0);
	for (number = 0; number < 60; number++)
		assert_int_equal(fwrite(noise, 1, sizeof(noise), f), sizeof(noise));
	assert_int_equal(fclose(f), 0);
}

TEST(an_incident_whose_store_is_damaged_is_stored_in_a_new_one)
{
	struct rig r;

	rig_open(&r, "noise.db", 30);
	r.plan.fire_s[0] = 20;
	r.plan.at = damage_at;
	r.plan.ctx = r.path;
	rig_run(&r);
	rig_check(&r, 1, 1000, 2200);
	lab_check_integrity(r.path);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incident_whose_store_is_removed_is_stored_in_a_new_one),
		cmocka_unit_test(an_incident_whose_store_is_damaged_is_stored_in_a_new_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
