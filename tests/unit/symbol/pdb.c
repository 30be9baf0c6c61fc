/* The PDB that lld wrote for tests/data/pdb/functions.c; numbers as llvm-pdbutil gives them. */
#include "symbol/pdb.h"

#include "base/array.h"
#include "symbol/pe.h"
#include "tests/support/rva_lab.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/* image: whose bounds are put in too; NULL = none. */
static struct rva_index *index_of(const struct buf *pdb, const struct buf *image)
{
	struct rva_index *index = rva_index_new();
	struct bytes in = bytes_of(pdb), image_in;
	struct pe_head head;

	assert_int_equal(pdb_functions(&in, index, NULL), 0);
	if (image) {
		image_in = bytes_of(image);
		assert_int_equal(pe_head_read(&image_in, &head, NULL), 0);
		assert_int_equal(pe_bounds(&image_in, &head, index, NULL), 0);
	}
	assert_int_equal(rva_index_finish(index, NULL), 0);
	return index;
}

TEST(a_pdb_has_the_guid_and_age_of_its_image)
{
	struct buf image = {0}, pdb = {0};
	struct bytes image_in, pdb_in;
	struct pdb_head whose;
	struct pe_head head;

	rva_lab_load("functions.exe", &image);
	rva_lab_load("functions.pdb", &pdb);
	image_in = bytes_of(&image);
	pdb_in = bytes_of(&pdb);
	assert_int_equal(pe_head_read(&image_in, &head, NULL), 0);
	assert_int_equal(pdb_head_read(&pdb_in, &whose, NULL), 0);
	assert_memory_equal(whose.guid, head.pdb_guid, 16);
	assert_int_equal(whose.age, head.pdb_age);
	assert_false(whose.stripped);
	buf_free(&image);
	buf_free(&pdb);
}

TEST(public_and_private_functions_have_names_up_to_their_ends)
{
	struct buf pdb = {0};
	struct rva_index *index;

	rva_lab_load("functions.pdb", &pdb);
	index = index_of(&pdb, NULL);
	assert_int_equal(rva_index_count(index), 4);
	assert_string_equal(name_at(index, 0xFFF), "");
	assert_string_equal(name_at(index, 0x1000), "alpha");
	assert_string_equal(name_at(index, 0x1006), "alpha");
	assert_string_equal(name_at(index, 0x1007), "");
	assert_string_equal(name_at(index, 0x1010), "beta");
	assert_string_equal(name_at(index, 0x1038), "beta");
	assert_string_equal(name_at(index, 0x1039), "");
	assert_string_equal(name_at(index, 0x1040), "hidden");
	assert_string_equal(name_at(index, 0x105C), "hidden");
	assert_string_equal(name_at(index, 0x1060), "start");
	assert_string_equal(name_at(index, 0x1073), "start");
	assert_string_equal(name_at(index, 0x1074), "");
	assert_string_equal(name_at(index, 0x3000), "");
	rva_index_free(index);
	buf_free(&pdb);
}

/* As in a PDB for the public: the kinds of procedures become one that nobody knows. */
static void strip(struct buf *pdb)
{
	static const char *const names[] = {"alpha", "beta", "hidden", "start"};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		for (size_t at = 39; at + 8 < pdb->len; at++)
			if (memcmp(pdb->data + at, names[i], strlen(names[i]) + 1) == 0 &&
			    pdb->data[at - 36] == 0x11)
				pdb->data[at - 36] = 0x7F;
}

TEST(in_a_stripped_pdb_the_image_s_bounds_end_a_public_name)
{
	struct buf image = {0}, pdb = {0};
	struct rva_index *alone, *bounded;

	rva_lab_load("functions.exe", &image);
	rva_lab_load("functions.pdb", &pdb);
	strip(&pdb);
	alone = index_of(&pdb, NULL);
	bounded = index_of(&pdb, &image);
	assert_int_equal(rva_index_count(alone), 3);
	assert_string_equal(name_at(alone, 0x1010), "beta");
	assert_string_equal(name_at(alone, 0x1040), "beta");         /* wrong: it is hidden's */
	assert_string_equal(name_at(bounded, 0x1038), "beta");
	assert_string_equal(name_at(bounded, 0x1040), "");
	assert_string_equal(name_at(bounded, 0x1060), "start");
	rva_index_free(alone);
	rva_index_free(bounded);
	buf_free(&image);
	buf_free(&pdb);
}

TEST(what_is_no_pdb_is_refused)
{
	struct buf image = {0};
	struct pdb_head head;
	struct bytes in;
	struct err err;

	rva_lab_load("functions.exe", &image);
	in = bytes_of(&image);
	assert_int_equal(pdb_head_read(&in, &head, &err), ERR_FORMAT);
	assert_non_null(strstr(err.text, "not a PDB"));
	in = bytes_of_memory("", 0);
	assert_int_equal(pdb_head_read(&in, &head, &err), ERR_FORMAT);
	buf_free(&image);
}

static int read_pdb(const struct bytes *in, struct rva_index *index)
{
	struct pdb_head head;
	int rc = pdb_head_read(in, &head, NULL);

	return rc == ERR_MEMORY ? rc : pdb_functions(in, index, NULL);
}

TEST(a_pdb_cut_or_changed_is_survived)
{
	struct buf pdb = {0};

	rva_lab_load("functions.pdb", &pdb);
	rva_lab_damage(&pdb, 97, 4, false, read_pdb);
	buf_free(&pdb);
}

TEST(lack_of_memory_is_an_error_at_every_place)
{
	struct buf pdb = {0};

	rva_lab_load("functions.pdb", &pdb);
	assert_in_range(rva_lab_walk(&pdb, read_pdb), 5, 30);
	buf_free(&pdb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pdb_has_the_guid_and_age_of_its_image),
		cmocka_unit_test(public_and_private_functions_have_names_up_to_their_ends),
		cmocka_unit_test(in_a_stripped_pdb_the_image_s_bounds_end_a_public_name),
		cmocka_unit_test(what_is_no_pdb_is_refused),
		cmocka_unit_test(a_pdb_cut_or_changed_is_survived),
		cmocka_unit_test(lack_of_memory_is_an_error_at_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
