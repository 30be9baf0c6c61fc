/* The kernel's names through the worker's readers, where this test is the kernel. */
#include "symbol/kallsyms.h"
#include "symbol/reader.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what kallsyms_linux.c would say --------------------------------------------------------- */

static const char *text_now;
static uint64_t modules_now;
static unsigned reads;

int kallsyms_read(kallsyms_take *take, void *to, uint64_t *modules, struct err *err)
{
	reads++;
	*modules = modules_now;
	if (!text_now)
		return err_set(err, ERR_IO, "cannot read it");
	return take(to, text_now, strlen(text_now));
}

uint64_t kallsyms_modules(void)
{
	return modules_now;
}

int kallsyms_text_base(uint64_t *base, struct err *err)
{
	(void)err;
	*base = 0x1000;
	return 0;
}

#define PROPER "1000 T _text\n1000 T start_kernel\n2000 T do_work\n3000 T _etext\n"

/* "[module]name", by offset from _text. */
static const char *name_at(struct symbol_table *table, uint64_t offset)
{
	static char text[100];
	struct symbol symbol;

	if (!table->reader->find(table, offset, &symbol))
		return "?";
	snprintf(text, sizeof(text), "[%s]%s", symbol.module ? symbol.module : "", symbol.name);
	return text;
}

static void open_kernel(const struct object *kernel, struct symbol_table **out)
{
	assert_true(kallsyms_reader.reads(kernel));
	assert_false(ksymbol_reader.reads(kernel));
	assert_int_equal(kallsyms_reader.open(&(struct symbol_env){0}, kernel, 0, out, NULL), 0);
}

static const struct object the_kernel = {.key = {.kind = OBJECT_KERNEL, .path = "[kernel]"}};

TEST(module_that_is_loaded_later_has_its_own_names)
{
	struct symbol_table *table = NULL;

	text_now = PROPER "9000 t old_read\t[old]\n";
	modules_now = 1;
	reads = 0;
	open_kernel(&the_kernel, &table);
	assert_string_equal(name_at(table, 0x8100), "[old]old_read");
	/* Behind it comes another, whose address would have been taken for the old one's. */
	text_now = PROPER "9000 t old_read\t[old]\na000 t new_write\t[new]\n";
	modules_now = 2;
	assert_string_equal(name_at(table, 0x9100), "[new]new_write");
	assert_int_equal(reads, 2);
	assert_string_equal(name_at(table, 0x8100), "[old]old_read");
	assert_string_equal(name_at(table, 0x1100), "[]do_work");
	assert_int_equal(reads, 2);                  /* nothing has changed: not read again */
	kallsyms_reader.close(table);
}

TEST(what_the_source_has_read_is_not_read_again_until_modules_change)
{
	struct symbol_env env = {.kallsyms = kallsyms_text_new()};
	struct symbol_table *table = NULL;
	struct buf text = {0};

	buf_puts(&text, PROPER "9000 t old_read\t[old]\n");
	kallsyms_text_give(env.kallsyms, &text, 1);
	text_now = PROPER "9000 t old_read\t[old]\na000 t new_write\t[new]\n";
	modules_now = 1;
	reads = 0;
	assert_int_equal(kallsyms_reader.open(&env, &the_kernel, 0, &table, NULL), 0);
	assert_string_equal(name_at(table, 0x8100), "[old]old_read");
	assert_int_equal(reads, 0);
	modules_now = 2;
	assert_string_equal(name_at(table, 0x9100), "[new]new_write");
	assert_int_equal(reads, 1);
	kallsyms_reader.close(table);
	kallsyms_text_free(env.kallsyms);
}

TEST(names_of_the_kernel_proper_do_not_look_at_modules)
{
	struct symbol_table *table = NULL;

	text_now = PROPER;
	modules_now = 1;
	reads = 0;
	open_kernel(&the_kernel, &table);
	modules_now = 2;
	assert_string_equal(name_at(table, 0x1100), "[]do_work");
	assert_int_equal(reads, 1);
	kallsyms_reader.close(table);
}

TEST(what_was_read_stays_when_it_cannot_be_read_again)
{
	struct symbol_table *table = NULL;

	text_now = PROPER "9000 t old_read\t[old]\n";
	modules_now = 1;
	open_kernel(&the_kernel, &table);
	text_now = NULL;
	modules_now = 2;
	assert_string_equal(name_at(table, 0x8100), "[old]old_read");
	kallsyms_reader.close(table);
}

TEST(bpf_program_and_trampolines_bear_their_own_name)
{
	static const char *const names[] = {"bpf_prog_aa_one", "ftrace_trampoline",
					    "kprobe_insn_page"};
	static const char *const shown[] = {"[bpf]bpf_prog_aa_one",
					    "[__builtin__ftrace]ftrace_trampoline",
					    "[__builtin__kprobes]kprobe_insn_page"};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct object object = {.key = {.kind = OBJECT_KERNEL, .path = names[i]}};
		struct symbol_table *table = NULL;

		assert_true(ksymbol_reader.reads(&object));
		assert_false(kallsyms_reader.reads(&object));
		assert_int_equal(
			ksymbol_reader.open(&(struct symbol_env){0}, &object, 0, &table, NULL), 0);
		assert_string_equal(name_at(table, 0x10), shown[i]);
		ksymbol_reader.close(table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(module_that_is_loaded_later_has_its_own_names),
		cmocka_unit_test(what_the_source_has_read_is_not_read_again_until_modules_change),
		cmocka_unit_test(names_of_the_kernel_proper_do_not_look_at_modules),
		cmocka_unit_test(what_was_read_stays_when_it_cannot_be_read_again),
		cmocka_unit_test(bpf_program_and_trampolines_bear_their_own_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
