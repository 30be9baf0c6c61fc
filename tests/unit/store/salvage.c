/* Looking for damage, and saving what is readable. */
#include "base/text.h"
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INCIDENTS 4
#define PAGE 4096

/* A closed store of incidents with 60 samples each. dumps: what is in them, to be freed. */
static void make_store(struct lab *lab, const char *name, char *dumps[INCIDENTS + 1])
{
	struct store *s = lab_record(lab, name);
	const char *dump;
	int i;

	for (i = 1; i <= INCIDENTS; i++)
		assert_int_equal(lab_simple(lab, s, MS(100u * (unsigned)i), 60), i);
	for (i = 1; dumps && i <= INCIDENTS; i++) {
		dump = lab_dump(s, i);
		dumps[i] = text_dup(dump, SIZE_MAX);
		assert_non_null(dumps[i]);
	}
	store_close(s);
}

static void load_bytes(const char *path, struct buf *out)
{
	buf_reset(out);
	assert_int_equal(os_load(path, 64 << 20, out, NULL), 0);
}

static void write_bytes(const char *path, const struct buf *bytes)
{
	struct os_file *file = NULL;

	assert_int_equal(os_open(path, OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, bytes->data, bytes->len, NULL), 0);
	os_close(file);
}

static void keep_finding(void *ctx, const char *what)
{
	buf_printf(ctx, "%s\n", what);
}

static struct store_verified verify(struct lab *lab, struct buf *findings)
{
	struct store *s = lab_store(lab, STORE_READ);
	struct store_verified found;

	assert_int_equal(store_verify(s, keep_finding, findings, &found, NULL), 0);
	store_close(s);
	return found;
}

TEST(a_sound_store_has_no_findings_and_a_salvaged_one_is_the_same)
{
	char *to = text_dup(tmp_path("sound.new"), SIZE_MAX);
	char *dumps[INCIDENTS + 1] = {0};
	struct buf findings = {0};
	struct store_salvaged got;
	struct store_verified found;
	struct store *s = NULL;
	struct lab lab;
	int i;

	make_store(&lab, "sound.db", dumps);
	found = verify(&lab, &findings);
	assert_int_equal(found.findings, 0);
	assert_int_equal(found.incidents, INCIDENTS);
	assert_int_equal(store_salvage(lab.path, to, &got, NULL), 0);
	assert_int_equal(got.incidents, INCIDENTS);
	assert_int_equal(got.partial, 0);
	assert_int_equal(got.unreadable, 0);
	assert_int_equal(store_open(to, STORE_READ, &s, NULL), 0);
	for (i = 1; i <= INCIDENTS; i++) {
		assert_string_equal(lab_dump(s, i), dumps[i]);
		free(dumps[i]);
	}
	store_close(s);
	assert_int_equal(store_salvage(lab.path, to, &got, NULL), ERR_EXISTS);
	buf_free(&findings);
	lab_remove(to);
	free(to);
	lab_close(&lab);
}

TEST(a_damaged_segment_is_found_and_named)
{
	struct buf findings = {0};
	struct store_verified found;
	struct lab lab;

	make_store(&lab, "named.db", NULL);
	lab_sql(lab.path, "UPDATE segment SET data=x'00' WHERE id=2");
	lab_sql(lab.path, "DELETE FROM segment WHERE id=4");
	found = verify(&lab, &findings);
	assert_int_equal(found.incidents, INCIDENTS);
	assert_int_equal(found.damaged, 2);
	assert_non_null(strstr(buf_text(&findings), "segment 2 of incident 2 in "));
	assert_non_null(strstr(buf_text(&findings), "incident 4: 1 of its segments are missing"));
	buf_free(&findings);
	lab_close(&lab);
}

/* What comes out whole must be what was there; the rest must say that it is not. */
static unsigned count_whole(const char *path, char *dumps[INCIDENTS + 1])
{
	struct store *s = NULL;
	unsigned whole = 0;
	int i;

	assert_int_equal(lab_sql(path, "SELECT integrity_check='ok' FROM pragma_integrity_check"),
			 1);
	assert_int_equal(store_open(path, STORE_READ, &s, NULL), 0);
	for (i = 1; i <= INCIDENTS; i++) {
		struct incident in = {0};

		if (store_load(s, i, &in, NULL))
			continue;
		if (in.head.state == INCIDENT_COMPLETE && !in.damage) {
			assert_int_equal(in.nsamples, 60);
			whole += strcmp(lab_dump(s, i), dumps[i]) == 0;
		} else if (!in.damage) {
			assert_non_null(strstr(in.head.gap_reason, "could not be salvaged"));
		}
		incident_free(&in);
	}
	store_close(s);
	return whole;
}

TEST(whichever_page_is_damaged_nothing_wrong_comes_out)
{
	char *to = text_dup(tmp_path("pages.new"), SIZE_MAX);
	char *dumps[INCIDENTS + 1] = {0}, noise[PAGE];
	struct buf sound = {0}, bad = {0};
	unsigned saved = 0, wholly = 0;
	struct store_salvaged got;
	struct lab lab;
	size_t page, npages;

	memset(noise, 0xa5, sizeof(noise));
	make_store(&lab, "pages.db", dumps);
	load_bytes(lab.path, &sound);
	npages = sound.len / PAGE;
	for (page = 1; page < npages; page++) {
		buf_reset(&bad);
		buf_put(&bad, sound.data, sound.len);
		memcpy(bad.data + page * PAGE, noise, PAGE);
		write_bytes(lab.path, &bad);
		if (store_salvage(lab.path, to, &got, NULL) == 0) {
			unsigned whole = count_whole(to, dumps);

			saved += whole > 0;
			wholly += whole == INCIDENTS;
		}
		/* The damaged file is evidence, and stays as it is. */
		load_bytes(lab.path, &bad);
		assert_memory_equal(bad.data + page * PAGE, noise, PAGE);
		assert_int_equal(bad.len, sound.len);
		lab_remove(to);
	}
	print_message("%u of %u: something was saved; %u: all of it\n", saved,
		      (unsigned)npages - 1, wholly);
	assert_true(saved * 2 > npages);
	for (page = 1; page <= INCIDENTS; page++)
		free(dumps[page]);
	buf_free(&sound);
	buf_free(&bad);
	free(to);
	lab_close(&lab);
}

TEST(whose_segments_they_are_is_read_from_the_index_when_the_table_is_damaged)
{
	char *to = text_dup(tmp_path("links.new"), SIZE_MAX);
	char *dumps[INCIDENTS + 1] = {0};
	struct store_salvaged got;
	struct buf bytes = {0};
	struct lab lab;
	int64_t page;
	int i;

	make_store(&lab, "links.db", dumps);
	page = lab_sql(lab.path, "SELECT rootpage FROM sqlite_master"
				 " WHERE name='incident_segment'");
	load_bytes(lab.path, &bytes);
	memset(bytes.data + (page - 1) * PAGE, 0xa5, PAGE);
	write_bytes(lab.path, &bytes);
	assert_int_equal(store_salvage(lab.path, to, &got, NULL), 0);
	assert_true(got.unreadable > 0);
	assert_int_equal(got.partial, 0);
	assert_int_equal(count_whole(to, dumps), INCIDENTS);
	for (i = 1; i <= INCIDENTS; i++)
		free(dumps[i]);
	buf_free(&bytes);
	lab_remove(to);
	free(to);
	lab_close(&lab);
}

TEST(what_is_no_store_is_not_salvaged)
{
	const char *path = tmp_path("text.db"), *to = tmp_path("text.new");
	struct buf text = {0};
	struct store_salvaged got;

	buf_puts(&text, "Dear diary, it was slow again.");
	write_bytes(path, &text);
	assert_int_equal(store_salvage(path, to, &got, NULL), ERR_FORMAT);
	assert_false(os_exists(to));
	assert_int_equal(store_salvage(tmp_path("no.db"), to, &got, NULL), ERR_NOT_FOUND);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_store_has_no_findings_and_a_salvaged_one_is_the_same),
		cmocka_unit_test(a_damaged_segment_is_found_and_named),
		cmocka_unit_test(whichever_page_is_damaged_nothing_wrong_comes_out),
		cmocka_unit_test(
			whose_segments_they_are_is_read_from_the_index_when_the_table_is_damaged),
		cmocka_unit_test(what_is_no_store_is_not_salvaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
