/* The history, as the engine writes it: nothing that waits in memory waits for names. */
#include "engine/engine.h"
#include "store/history.h"
#include "symbol/reader.h"
#include "tests/support/engine_rig.h"
#include "tests/support/test.h"

#include "base/os.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a reader that knows a name only when it is asked again ---------------------------------- */

#define OFFSETS 1048576u

static char recorded[TMP_BYTES];
static bool asked[OFFSETS];                  /* the worker's */
static atomic_int asked_again, without_file;

static bool reads(const struct object *object)
{
	(void)object;
	return true;
}

static int open_late(const struct symbol_env *env, const struct object *object, uint32_t pid,
		     struct symbol_table **out, struct err *err)
{
	extern const struct symbol_reader late_reader;
	struct symbol_table *t = calloc(1, sizeof(*t));

	(void)env;
	(void)object;
	(void)pid;
	if (!t)
		return err_memory(err, "for a test");
	t->reader = &late_reader;
	*out = t;
	return 0;
}

static bool history_has_samples(void)
{
	struct history_files files = {0};
	bool has = false;

	if (history_list(recorded, &files, NULL))
		return false;
	if (files.n) {
		history_look(&files.all[0], false);
		has = files.all[0].readable && files.all[0].samples;
	}
	history_files_free(&files);
	return has;
}

/* Asked again by whoever waits for names. */
static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	(void)table;
	if (!asked[offset % OFFSETS]) {
		asked[offset % OFFSETS] = true;
		return false;
	}
	if (!atomic_fetch_add(&asked_again, 1) && !history_has_samples())
		atomic_fetch_add(&without_file, 1);
	*out = (struct symbol){.offset = offset, .name = "late"};
	return true;
}

static void close_late(struct symbol_table *table)
{
	free(table);
}

const struct symbol_reader late_reader = {
	.reads = reads, .open = open_late, .find = find, .close = close_late};
static const struct symbol_reader *const late_readers[] = {&late_reader, NULL};

static int remove_one(void *ctx, const char *name)
{
	char path[TMP_BYTES * 2];

	snprintf(path, sizeof(path), "%s/%s", (const char *)ctx, name);
	os_remove(path, NULL);
	return 0;
}

static void remove_history(void)
{
	char dir[TMP_BYTES + 16];

	snprintf(dir, sizeof(dir), "%s%s", recorded, HISTORY_SUFFIX);
	if (os_exists(dir))
		os_list(dir, remove_one, dir, NULL);
	os_remove_dir(dir);
}

TEST(what_waits_for_names_is_on_the_disk_already)
{
	struct history_files files = {0};
	struct incident in = {0};
	uint32_t named = 0, i;
	struct err err = {0};
	struct rig r;

	rig_open(&r, "past.db", 30);
	snprintf(recorded, sizeof(recorded), "%s", r.path);
	remove_history();
	r.cfg.live = true;
	r.cfg.history_bytes = 64 << 20;
	r.cfg.history_sync_ns = 10 * NS_PER_SEC;
	r.cfg.symbol_readers = late_readers;
	rig_run(&r);
	assert_true(atomic_load(&asked_again) > 0);
	assert_int_equal(atomic_load(&without_file), 0);

	/* And the names are there in the end. */
	assert_int_equal(history_list(recorded, &files, NULL), 0);
	assert_int_equal(files.n, 1);
	history_look(&files.all[0], false);
	assert_int_equal(files.all[0].samples, 3000);
	if (history_load(recorded, files.all[0].wall_ns,
			 history_wall_ns(&files.all[0], files.all[0].t1_ns),
			 files.all[0].wall_ns, &in, &err))
		fail_msg("%s", err.text);
	for (i = 0; i < in.nframes; i++)
		named += frame_is_named(&in, i);
	assert_true(in.nframes > 0);
	assert_int_equal(named, in.nframes);
	incident_free(&in);
	history_files_free(&files);
	remove_history();
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_for_names_is_on_the_disk_already),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
