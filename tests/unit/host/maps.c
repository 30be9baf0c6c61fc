/* Mappings of a process: splitting, sharing, and that every object reference is counted right. */
#include "source/host/maps.h"

#include "base/array.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct object objects[26];        /* 'a' to 'z'; no table: maps only count references */

static int reset_objects(void **state)
{
	(void)state;
	memset(objects, 0, sizeof(objects));
	return 0;
}

static unsigned refs(char name)
{
	return atomic_load(&objects[name - 'a'].refs);
}

/* Hands over one reference, as objects_get() would have given. */
static int insert(struct maps **maps, char name, uint64_t start, uint64_t end)
{
	struct mapping m = {.start = start, .end = end, .pgoff = 0x1000,
			    .object = &objects[name - 'a']};

	object_ref(m.object);
	return maps_insert(maps, &m, 77);
}

static struct maps *open_maps(void)
{
	struct maps *maps = maps_new();

	assert_non_null(maps);
	return maps;
}

/* "a.bb": which object holds 0, 0x10, 0x20...; and every entry's file offset must fit its start. */
static const char *picture(const struct maps *maps, uint64_t end)
{
	static char text[64];
	uint64_t at;
	char *to = text;

	for (at = 0; at < end; at += 0x10) {
		const struct mapping *m = maps_find(maps, at);

		*to++ = m ? (char)('a' + (m->object - objects)) : '.';
		assert_true(!m || (m->start <= at && at < m->end));
	}
	*to = '\0';
	return text;
}

TEST(maps_find_what_holds_an_address)
{
	struct maps *maps = open_maps();

	assert_null(maps_find(maps, 0));
	assert_int_equal(insert(&maps, 'b', 0x30, 0x50), 0);
	assert_int_equal(insert(&maps, 'a', 0x10, 0x20), 0);
	assert_string_equal(picture(maps, 0x70), ".a.bb..");
	assert_ptr_equal(maps_find(maps, 0x1f)->object, &objects[0]);
	assert_null(maps_find(maps, 0x20));
	assert_null(maps_find(maps, UINT64_MAX));
	assert_int_equal(maps_count(maps), 2);
	maps_free(maps, 1);
	assert_int_equal(refs('a') + refs('b'), 0);
}

TEST(mapping_inside_another_splits_it)
{
	struct maps *maps = open_maps();

	insert(&maps, 'a', 0x00, 0x60);
	insert(&maps, 'b', 0x20, 0x30);
	assert_string_equal(picture(maps, 0x70), "aabaaa.");
	assert_int_equal(maps_count(maps), 3);
	assert_int_equal(refs('a'), 2);
	assert_int_equal(maps_find(maps, 0x10)->pgoff, 0x1000);
	assert_int_equal(maps_find(maps, 0x30)->start, 0x30);
	assert_int_equal(maps_find(maps, 0x30)->pgoff, 0x1030);
	maps_free(maps, 1);
	assert_int_equal(refs('a') + refs('b'), 0);
}

TEST(mapping_over_an_edge_cuts_it)
{
	struct maps *maps = open_maps();

	insert(&maps, 'a', 0x00, 0x30);
	insert(&maps, 'b', 0x40, 0x70);
	insert(&maps, 'c', 0x20, 0x50);
	assert_string_equal(picture(maps, 0x80), "aacccbb.");
	assert_int_equal(maps_find(maps, 0x50)->start, 0x50);
	assert_int_equal(maps_find(maps, 0x50)->pgoff, 0x1010);
	assert_int_equal(refs('a') + refs('b') + refs('c'), 3);
	maps_free(maps, 1);
	assert_int_equal(refs('a') + refs('b') + refs('c'), 0);
}

TEST(mapping_over_several_replaces_them)
{
	struct maps *maps = open_maps();

	insert(&maps, 'a', 0x00, 0x20);
	insert(&maps, 'b', 0x20, 0x30);
	insert(&maps, 'c', 0x40, 0x50);
	insert(&maps, 'd', 0x60, 0x80);
	insert(&maps, 'e', 0x10, 0x70);
	assert_string_equal(picture(maps, 0x90), "aeeeeeed.");
	assert_int_equal(refs('b') + refs('c'), 0);
	assert_int_equal(objects['b' - 'a'].dropped_ns, 77);
	assert_int_equal(refs('a'), 1);
	assert_int_equal(refs('d'), 1);
	maps_free(maps, 1);
	assert_int_equal(refs('a') + refs('d') + refs('e'), 0);
}

TEST(same_mapping_again_changes_nothing)
{
	struct maps *maps = open_maps();
	unsigned i;

	for (i = 0; i < 100; i++)
		assert_int_equal(insert(&maps, 'a', 0x10, 0x30), 0);
	assert_int_equal(maps_count(maps), 1);
	assert_int_equal(refs('a'), 1);
	maps_free(maps, 1);
	assert_int_equal(refs('a'), 0);
}

TEST(empty_or_reversed_mapping_is_refused)
{
	struct maps *maps = open_maps();

	insert(&maps, 'a', 0x10, 0x30);
	assert_int_equal(insert(&maps, 'b', 0x20, 0x20), ERR_FORMAT);
	assert_int_equal(insert(&maps, 'b', 0x20, 0x10), ERR_FORMAT);
	assert_int_equal(insert(&maps, 'b', UINT64_MAX - 5, 3), ERR_FORMAT);
	assert_string_equal(picture(maps, 0x40), ".aa.");
	assert_int_equal(refs('b'), 0);
	maps_free(maps, 1);
}

TEST(forked_list_is_shared_until_one_changes_it)
{
	struct maps *parent = open_maps(), *child;

	insert(&parent, 'a', 0x00, 0x40);
	child = maps_share(parent);
	assert_ptr_equal(child, parent);
	assert_int_equal(refs('a'), 1);
	insert(&child, 'b', 0x10, 0x20);
	assert_ptr_not_equal(child, parent);
	assert_string_equal(picture(parent, 0x50), "aaaa.");
	assert_string_equal(picture(child, 0x50), "abaa.");
	assert_int_equal(refs('a'), 3);              /* the parent's, and the child's two pieces */
	maps_free(parent, 1);
	assert_int_equal(refs('a'), 2);
	maps_free(child, 1);
	assert_int_equal(refs('a') + refs('b'), 0);
}

TEST(list_of_three_goes_with_the_last)
{
	struct maps *maps = open_maps(), *second, *third;

	insert(&maps, 'a', 0x00, 0x40);
	second = maps_share(maps);
	third = maps_share(second);
	maps_free(maps, 1);
	insert(&second, 'b', 0x00, 0x40);            /* own copy, of which a goes at once */
	assert_string_equal(picture(third, 0x50), "aaaa.");
	assert_string_equal(picture(second, 0x50), "bbbb.");
	assert_int_equal(refs('a'), 1);
	maps_free(second, 1);
	maps_free(third, 200);
	assert_int_equal(refs('a') + refs('b'), 0);
	assert_int_equal(objects[0].dropped_ns, 200);
	maps_free(NULL, 1);
}

TEST(mappings_at_their_ceiling_are_refused)
{
	struct maps *maps = open_maps();
	uint64_t i;
	int rc = 0;

	for (i = 0; i < MAPS_MAX + 10 && !rc; i++)
		rc = insert(&maps, 'a', i * 0x20, i * 0x20 + 0x10);
	assert_int_equal(rc, ERR_LIMIT);
	assert_in_range(maps_count(maps), MAPS_MAX - 2, MAPS_MAX);
	assert_int_equal(refs('a'), maps_count(maps));
	maps_free(maps, 1);
	assert_int_equal(refs('a'), 0);
}

/* 20,000 random mappings of 64 pages; a plain array says what must be found, at every page. */
TEST(random_mappings_agree_with_an_array)
{
	char expected[65] = "................................................................";
	struct maps *maps = open_maps();
	uint32_t seed = 1, i, from, to;
	char name;

	for (i = 0; i < 20000; i++) {
		seed = seed * 1664525u + 1013904223u;
		from = (seed >> 8) % 64;
		to = from + 1 + (seed >> 16) % (i % 8 ? 8 : 64);
		to = to > 64 ? 64 : to;
		name = (char)('a' + (seed >> 24) % 26);
		assert_int_equal(insert(&maps, name, from, to), 0);
		memset(expected + from, name, to - from);
		for (from = 0; from < 64; from++) {
			const struct mapping *m = maps_find(maps, from);

			if ((m ? m->object - objects + 'a' : '.') != expected[from])
				fail_msg("round %u, page %u", i, from);
		}
	}
	maps_free(maps, 1);
	for (name = 'a'; name <= 'z'; name++)
		assert_int_equal(refs(name), 0);
}

/* The list as it was before the tree, an array in order of address: the reference. */
struct row {
	struct mapping entries[2048];
	uint32_t count;
};

static void row_remove(struct row *row, uint64_t start, uint64_t end)
{
	static struct row fresh;
	uint32_t i;

	fresh.count = 0;
	for (i = 0; i < row->count; i++) {
		struct mapping before = row->entries[i], after = before;

		before.end = before.end < start ? before.end : start;
		if (before.start < before.end)
			fresh.entries[fresh.count++] = before;
		after.start = after.start > end ? after.start : end;
		after.pgoff += after.start - row->entries[i].start;
		if (after.start < after.end)
			fresh.entries[fresh.count++] = after;
	}
	*row = fresh;
}

static void row_insert(struct row *row, const struct mapping *mapping)
{
	uint32_t i;

	row_remove(row, mapping->start, mapping->end);
	for (i = row->count++; i && row->entries[i - 1].start > mapping->start; i--)
		row->entries[i] = row->entries[i - 1];
	row->entries[i] = *mapping;
}

static void assert_same(const struct maps *maps, const struct row *row)
{
	unsigned total = 0, name;
	uint32_t i;

	assert_int_equal(maps_count(maps), row->count);
	for (i = 0; i < row->count; i++) {
		const struct mapping *want = &row->entries[i];
		const struct mapping *last = maps_find(maps, want->end - 1);

		assert_ptr_equal(maps_find(maps, want->start), last);
		assert_non_null(last);
		assert_memory_equal(last, want, sizeof(*want));
		if (i + 1 == row->count || row->entries[i + 1].start > want->end)
			assert_null(maps_find(maps, want->end));
	}
	for (name = 'a'; name <= 'z'; name++)
		total += refs((char)name);
	assert_int_equal(total, row->count);
}

/* 40,000 random mappings and removals of few and many pages among a thousand. */
TEST(random_changes_agree_with_an_array_in_order)
{
	static struct row row;
	struct maps *maps = open_maps();
	uint64_t seed = 1, from, to;
	uint32_t i;

	row.count = 0;
	for (i = 0; i < 40000; i++) {
		struct mapping m = {.pgoff = i, .flags = i % 3};

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		m.start = from = (seed >> 20) % 1000;
		m.end = to = from + 1 + (seed >> 32) % (i % 500 ? 4 : 1000);
		m.object = &objects[(seed >> 48) % 26];
		if (seed >> 63) {
			assert_int_equal(maps_remove(&maps, from, to, 5), 0);
			row_remove(&row, from, to);
		} else {
			object_ref(m.object);
			assert_int_equal(maps_insert(&maps, &m, 5), 0);
			row_insert(&row, &m);
		}
		if (i % 16 == 0)
			assert_same(maps, &row);
	}
	assert_same(maps, &row);
	assert_int_equal(maps_remove(&maps, 0, 2000, 5), 0);
	row.count = 0;
	assert_same(maps, &row);
	maps_free(maps, 5);
}

/*
 * 16,000 mappings, replaced two million times, in order and at random: a list that moves thousands
 * of entries for each takes a minute.
 */
TEST(thousands_of_mappings_are_replaced_at_once)
{
	struct maps *maps = open_maps();
	uint64_t seed = 1, at;
	uint32_t i;

	for (i = 0; i < 2000000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = (i & 1 ? i : (uint32_t)(seed >> 32)) % 16000 * 2;
		assert_int_equal(insert(&maps, 'a', at, at + 1), 0);
	}
	assert_in_range(maps_count(maps), 15900, 16000);
	assert_int_equal(maps_remove(&maps, 0, UINT64_MAX, 9), 0);
	assert_int_equal(maps_count(maps), 0);
	assert_int_equal(refs('a'), 0);
	maps_free(maps, 9);
}

TEST(removing_from_a_shared_list_what_is_not_there_makes_no_copy)
{
	struct maps *parent = open_maps(), *child;

	insert(&parent, 'a', 0x10, 0x20);
	child = maps_share(parent);
	assert_int_equal(maps_remove(&child, 0x20, 0x40, 1), 0);
	assert_int_equal(maps_remove(&child, 0x20, 0x10, 1), 0);
	assert_ptr_equal(child, parent);
	assert_int_equal(maps_remove(&child, 0x18, 0x40, 1), 0);
	assert_ptr_not_equal(child, parent);
	assert_string_equal(picture(child, 0x30), ".a.");
	assert_int_equal(maps_find(child, 0x10)->end, 0x18);
	assert_int_equal(maps_find(parent, 0x10)->end, 0x20);
	maps_free(parent, 1);
	maps_free(child, 1);
	assert_int_equal(refs('a'), 0);
}

/* Share, split a copy, free both: whichever allocation fails, no reference is lost or kept. */
static int walk_step(void *ctx)
{
	struct maps *parent = maps_new(), *child = NULL;
	int rc = parent ? 0 : ERR_MEMORY;

	(void)ctx;
	if (!rc)
		rc = insert(&parent, 'a', 0x00, 0x40);
	if (!rc) {
		child = maps_share(parent);
		rc = insert(&child, 'b', 0x10, 0x20);
	}
	maps_free(child, 1);
	maps_free(parent, 1);
	assert_int_equal(refs('a') + refs('b'), 0);
	return rc;
}

TEST(maps_without_memory_lose_no_reference)
{
	assert_int_equal(alloc_walk(walk_step, NULL), 5);
}

#define FRESH(test) cmocka_unit_test_setup(test, reset_objects)

TEST(newline_in_a_path_is_read_as_the_kernels_records_have_it)
{
	char plain[] = "/bin/a\\01", one[] = "/bin/new\\012line", two[] = "\\012\\012";

	maps_unescape(plain);
	assert_string_equal(plain, "/bin/a\\01");
	maps_unescape(one);
	assert_string_equal(one, "/bin/new\nline");
	maps_unescape(two);
	assert_string_equal(two, "\n\n");
}

TEST(line_of_maps_is_read_and_others_are_refused)
{
	char file[] = "7f00aa000000-7f00aa021000 r-xp 00028000 fe:0a 123456                     "
		      "/lib/a b\\012c (deleted)";
	char plain[] = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0";
	char blank[] = "55d0-55d1 rw-p 0 00:00 0 ";
	char *const others[] = {
		(char[]){""}, (char[]){"7f00-"}, (char[]){"7f00-8000"}, (char[]){"7f00-8000 r-x"},
		(char[]){"7f00-8000 r-xp "}, (char[]){"7f00-8000 r-xp 10 fe 12 /a"},
		(char[]){"7f00-8000 r-xp 10 fe:0a "}, (char[]){"7f00-8000 r-xp 10 fe:0a 12x /a"},
		(char[]){"x-8000 r-xp 10 fe:0a 12 /a"}};
	struct maps_line l;
	size_t i;

	assert_true(maps_line_read(file, &l));
	assert_int_equal(l.start, 0x7f00aa000000);
	assert_int_equal(l.end, 0x7f00aa021000);
	assert_int_equal(l.pgoff, 0x28000);
	assert_int_equal(l.major, 0xfe);
	assert_int_equal(l.minor, 10);
	assert_int_equal(l.ino, 123456);
	assert_true(l.executable);
	assert_string_equal(l.path, "/lib/a b\nc (deleted)");
	assert_true(maps_line_read(plain, &l));
	assert_int_equal(l.start, 0xffffffffff600000);
	assert_string_equal(l.path, "");
	assert_true(maps_line_read(blank, &l));
	assert_false(l.executable);
	assert_string_equal(l.path, "");
	for (i = 0; i < COUNT_OF(others); i++)
		assert_false(maps_line_read(others[i], &l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(line_of_maps_is_read_and_others_are_refused),
		FRESH(newline_in_a_path_is_read_as_the_kernels_records_have_it),
		FRESH(maps_find_what_holds_an_address),
		FRESH(mapping_inside_another_splits_it),
		FRESH(mapping_over_an_edge_cuts_it),
		FRESH(mapping_over_several_replaces_them),
		FRESH(same_mapping_again_changes_nothing),
		FRESH(empty_or_reversed_mapping_is_refused),
		FRESH(forked_list_is_shared_until_one_changes_it),
		FRESH(list_of_three_goes_with_the_last),
		FRESH(mappings_at_their_ceiling_are_refused),
		FRESH(random_mappings_agree_with_an_array),
		FRESH(random_changes_agree_with_an_array_in_order),
		FRESH(thousands_of_mappings_are_replaced_at_once),
		FRESH(removing_from_a_shared_list_what_is_not_there_makes_no_copy),
		FRESH(maps_without_memory_lose_no_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
