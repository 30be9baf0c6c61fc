/* Frames without a name are listed, and named later; a name that is there stays. */
#include "store/store.h"

#include "tests/support/alloc_walk.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static struct function late[26];
static char late_names[26][8];

/* Main calls a, which calls b and c; only a has a name. Returns the incident's id. */
static int64_t record(struct lab *lab, const char *path)
{
	struct store *s = lab_record(lab, path);
	struct incident_head head = lab_head(MS(50), MS(50), MS(50));
	struct segment *segment;
	int64_t id;

	lab_name(lab, 'a');
	lab_sample(lab, MS(10), 0, "ab");
	lab_sample(lab, MS(20), 0, "ac");
	segment = lab_seal(lab);
	id = lab_incident(s, &head, &segment, 1);
	segment_unref(segment);
	store_close(s);
	return id;
}

/* Each gets the name of its letter, as lab_dump() wants it; b this one. */
static void find_names(struct store_unnamed *u, const char *name_of_b)
{
	uint32_t i;

	for (i = 0; i < u->n; i++) {
		unsigned letter = (unsigned)(u->frames[i].offset >> 12) - 10;

		assert_in_range(letter, 0, 25);
		snprintf(late_names[letter], sizeof(late_names[0]), "fn_%c", (char)('a' + letter));
		if (letter == 1)
			snprintf(late_names[letter], sizeof(late_names[0]), "%s", name_of_b);
		late[letter] = (struct function){.offset = u->frames[i].offset,
						 .name = late_names[letter]};
		u->frames[i].function = &late[letter];
	}
}

TEST(frames_without_a_name_get_it_later)
{
	struct lab lab;
	int64_t id = record(&lab, "late.db");
	struct store *s = lab_store(&lab, STORE_EDIT);
	struct store_unnamed first, second;
	struct object_key key;
	struct buf path = {0};
	uint32_t named;

	assert_int_equal(store_unnamed(s, NULL, 0, &first, NULL), 0);
	assert_int_equal(first.n, 2);
	assert_int_equal(first.frames_seen, 3);
	assert_int_equal(store_module(s, first.frames[0].module_id, &key, &path, NULL), 0);
	assert_int_equal(key.kind, OBJECT_ELF);
	assert_string_equal(key.path, lab.object->key.path);
	assert_memory_equal(key.build_id, lab.object->key.build_id, sizeof(key.build_id));
	assert_int_equal(store_module(s, 99, &key, &path, NULL), ERR_NOT_FOUND);
	buf_free(&path);

	assert_int_equal(store_unnamed(s, NULL, 0, &second, NULL), 0);
	assert_non_null(strstr(lab_dump(s, id), "a?"));
	find_names(&first, "fn_b");
	first.frames[first.frames[0].function == &late[1]].function = NULL;      /* of c */
	assert_int_equal(store_name(s, &first, &named, NULL), 0);
	assert_int_equal(named, 1);
	assert_non_null(strstr(lab_dump(s, id), "10.0 main ab"));
	assert_non_null(strstr(lab_dump(s, id), "20.0 main a?"));

	/* Somebody else was faster with b. */
	find_names(&second, "slow_b");
	assert_int_equal(store_name(s, &second, &named, NULL), 0);
	assert_int_equal(named, 1);
	assert_non_null(strstr(lab_dump(s, id), "10.0 main ab"));
	assert_non_null(strstr(lab_dump(s, id), "20.0 main ac"));
	store_unnamed_free(&first);
	store_unnamed_free(&second);
	assert_int_equal(store_unnamed(s, NULL, 0, &first, NULL), 0);
	assert_int_equal(first.n, 0);
	store_unnamed_free(&first);
	lab_end_sound(&lab, s);
}

TEST(frames_of_one_incident_are_listed_without_those_of_others)
{
	struct lab lab;
	int64_t id = record(&lab, "one.db");
	struct store *s = lab_store(&lab, STORE_RECORD);
	struct incident_head head = lab_head(MS(50), MS(50), MS(50));
	struct store_unnamed u;
	struct segment *segment;
	int64_t other;

	lab_sample(&lab, MS(30), 0, "ad");
	segment = lab_seal(&lab);
	other = lab_incident(s, &head, &segment, 1);
	segment_unref(segment);
	assert_int_equal(store_unnamed(s, NULL, 0, &u, NULL), 0);
	assert_int_equal(u.n, 3);                /* b, c, d */
	store_unnamed_free(&u);
	assert_int_equal(store_unnamed(s, &other, 1, &u, NULL), 0);
	assert_int_equal(u.n, 1);
	assert_int_equal(u.frames_seen, 2);      /* a has its name */
	assert_int_equal(u.frames[0].offset >> 12, 13);
	store_unnamed_free(&u);
	assert_int_equal(store_unnamed(s, &id, 1, &u, NULL), 0);
	assert_int_equal(u.n, 2);
	store_unnamed_free(&u);
	id = 99;
	assert_int_equal(store_unnamed(s, &id, 1, &u, NULL), ERR_NOT_FOUND);
	lab_end_sound(&lab, s);
}

static int name_all(void *ctx)
{
	struct store_unnamed u;
	uint32_t named;
	int rc = store_unnamed(ctx, NULL, 0, &u, NULL);

	if (rc)
		return rc;
	find_names(&u, "fn_b");
	rc = store_name(ctx, &u, &named, NULL);
	store_unnamed_free(&u);
	return rc;
}

TEST(lack_of_memory_names_nothing_and_breaks_nothing)
{
	struct lab lab;
	int64_t id = record(&lab, "late_memory.db");
	struct store *s = lab_store(&lab, STORE_EDIT);

	assert_in_range(alloc_walk(name_all, s), 5, 1000);
	assert_non_null(strstr(lab_dump(s, id), "10.0 main ab"));
	assert_non_null(strstr(lab_dump(s, id), "20.0 main ac"));
	lab_end_sound(&lab, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_without_a_name_get_it_later),
		cmocka_unit_test(frames_of_one_incident_are_listed_without_those_of_others),
		cmocka_unit_test(lack_of_memory_names_nothing_and_breaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
