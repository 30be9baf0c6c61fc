#include "base/array.h"
#include "symbol/kallsyms.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
	"0000000000000000 A fixed_percpu_data\n"
	"ffffffff81000000 T _stext\n"
	"ffffffff81000000 T _text\n"
	"ffffffff81000100 t do_work\n"
	"ffffffff81000200 t __do_alias\n"
	"ffffffff81000200 T do_alias\n"
	"ffffffff81000200 W weak_alias\n"
	"ffffffff81000300 T _etext\n"
	"ffffffff82000000 D some_data\n"
	"ffffffffc0a03010 t ext4_sync_fs\t[ext4]\n"
	"ffffffffc0a03000 t ext4_open\t[ext4]\n"
	"ffffffffc0b00000 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

static struct kallsyms *parse(const char *from)
{
	struct kallsyms *k = NULL;

	assert_int_equal(kallsyms_parse(from, strlen(from), &k, NULL), 0);
	return k;
}

static const char *name_at(const struct kallsyms *k, uint64_t address)
{
	static char name[200];
	struct kernel_function f;

	if (!kallsyms_find(k, address, &f))
		return "";
	snprintf(name, sizeof(name), "%s%s%s", f.module ? f.module : "", f.module ? ":" : "",
		 f.name);
	return name;
}

TEST(kallsyms_names_kernel_and_module_functions)
{
	struct kallsyms *k = parse(text);

	assert_true(kallsyms_base(k) == 0xffffffff81000000u);
	assert_int_equal(kallsyms_count(k), 7);
	assert_string_equal(name_at(k, 0xffffffff81000123u), "do_work");
	assert_string_equal(name_at(k, 0xffffffff81000200u), "do_alias");
	assert_string_equal(name_at(k, 0xffffffffc0a03008u), "ext4:ext4_open");
	assert_string_equal(name_at(k, 0xffffffffc0a03010u), "ext4:ext4_sync_fs");
	assert_string_equal(name_at(k, 0xffffffffc0b00010u), "bpf:bpf_prog_6deef7357e7b4530");
	kallsyms_free(k);
}

TEST(kallsyms_names_nothing_outside_the_code)
{
	struct kallsyms *k = parse(text);

	assert_string_equal(name_at(k, 0xffffffff80ffffffu), "");
	assert_string_equal(name_at(k, 0xffffffff81000300u), "");      /* behind _etext */
	assert_string_equal(name_at(k, 0xffffffff82000000u), "");
	assert_string_equal(name_at(k, 0xffffffffffffffffu), "");      /* far behind the last */
	kallsyms_free(k);
}

TEST(kallsyms_with_hidden_addresses_says_what_to_do)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t do_work\n";
	struct kallsyms *k = NULL;
	struct err err = {0};

	assert_int_equal(kallsyms_parse(hidden, strlen(hidden), &k, &err), ERR_ACCESS);
	assert_non_null(strstr(err.text, "CAP_SYSLOG"));
	assert_null(k);
}

TEST(kallsyms_refuses_other_texts)
{
	static const char *const others[] = {
		"", "\n\n\n", "hello\n",
		"ffffffff81000000", "ffffffff81000000 T", "ffffffff81000000 T \n",
		"ffffffff81000000 T no_base_here\n", "12345678901234567 T _text\n",
		"ffffffff81000000\tT\t_text\n",
	};
	unsigned i;

	for (i = 0; i < COUNT_OF(others); i++) {
		struct kallsyms *k = NULL;
		struct err err = {0};

		assert_int_equal(kallsyms_parse(others[i], strlen(others[i]), &k, &err),
				 ERR_FORMAT);
		assert_true(err.text[0]);
	}
}

TEST(kallsyms_falls_back_to_stext_and_reads_an_unended_line)
{
	struct kallsyms *k = parse("ffff000008080000 T _stext\nffff000008081000 t last");

	assert_true(kallsyms_base(k) == 0xffff000008080000u);
	assert_string_equal(name_at(k, 0xffff000008081004u), "last");
	kallsyms_free(k);
}

TEST(kallsyms_is_the_same_by_lines)
{
	struct kallsyms *k = kallsyms_new();
	const char *at, *lf;
	int rc = 0;

	for (at = text; (lf = strchr(at, '\n')) != NULL; at = lf + 1)
		rc |= kallsyms_add(k, at, (size_t)(lf + 1 - at));
	assert_int_equal(kallsyms_finish(k, rc, NULL), 0);
	assert_int_equal(kallsyms_count(k), 7);
	assert_string_equal(name_at(k, 0xffffffff81000200u), "do_alias");
	assert_string_equal(name_at(k, 0xffffffffc0a03008u), "ext4:ext4_open");
	kallsyms_free(k);
	/* What reading says in its middle is said: this list would be one without its end. */
	k = kallsyms_new();
	assert_int_equal(kallsyms_add(k, text, sizeof(text) - 1), 0);
	assert_int_equal(kallsyms_finish(k, ERR_IO, NULL), ERR_IO);
}

static int parse_step(void *ctx)
{
	struct kallsyms *k = NULL;
	int rc = kallsyms_parse(ctx, strlen(ctx), &k, NULL);

	kallsyms_free(k);
	return rc;
}

TEST(kallsyms_reports_lack_of_memory)
{
	assert_in_range(alloc_walk(parse_step, (void *)text), 5, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kallsyms_names_kernel_and_module_functions),
		cmocka_unit_test(kallsyms_names_nothing_outside_the_code),
		cmocka_unit_test(kallsyms_with_hidden_addresses_says_what_to_do),
		cmocka_unit_test(kallsyms_refuses_other_texts),
		cmocka_unit_test(kallsyms_falls_back_to_stext_and_reads_an_unended_line),
		cmocka_unit_test(kallsyms_is_the_same_by_lines),
		cmocka_unit_test(kallsyms_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
