/* .gnu_debugdata, on files that the compiler, objcopy and xz of this machine make. */
#include "symbol/elf_file.h"
#include "symbol/elf_section.h"
#include "symbol/xz.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path_of(const char *name)
{
	static char path[TMP_BYTES];

	snprintf(path, sizeof(path), "%s", tmp_path(name));
	return path;
}

/*
 * app: stripped but for its dynamic symbols (shown), the others packed into it as Fedora's
 * find-debuginfo does (hidden); addresses of both in the file "addresses".
 */
static void make_files(void)
{
	char command[1200];

	snprintf(command, sizeof(command),
		 "cd %s && echo 'static __attribute__((noinline)) int hidden(int x) { return x * "
		 "3; }"
		 " int shown(int n) { return hidden(n) + 1; }"
		 " int main(int n, char **v) { (void)v; return shown(n); }' > app.c && "
		 "gcc -O1 -rdynamic -o app app.c && "
		 "nm app | sed -n 's/^\\([0-9a-f]*\\) [tT] \\(hidden\\|shown\\)$/\\2 \\1/p' | sort "
		 "> addresses && "
		 "objcopy --only-keep-debug app app.dbg && "
		 "objcopy -S --keep-symbol=hidden app.dbg app.mini && rm -f app.mini.xz && xz "
		 "app.mini && "
		 "strip app && objcopy --add-section .gnu_debugdata=app.mini.xz app",
		 path_of("."));
	if (system(command)) {
		print_message("gcc, objcopy and xz do not make a packed symbol table here\n");
		skip();
	}
}

struct app {
	struct os_file *file;
	struct bytes bytes;
	struct elf_head head;
	uint64_t hidden, shown;
};

static void open_app(struct app *app)
{
	struct os_file_info info;
	struct buf text = {0};
	const char *at;

	make_files();
	memset(app, 0, sizeof(*app));
	assert_int_equal(os_load(path_of("addresses"), 1000, &text, NULL), 0);
	at = buf_text(&text);
	assert_memory_equal(at, "hidden ", 7);
	app->hidden = strtoull(at + 7, NULL, 16);
	at = strstr(at, "\nshown ");
	assert_non_null(at);
	app->shown = strtoull(at + 7, NULL, 16);
	buf_free(&text);
	assert_int_equal(os_open(path_of("app"), OS_READ, &app->file, NULL), 0);
	assert_int_equal(os_file_info(app->file, &info, NULL), 0);
	app->bytes = bytes_of_file(app->file, info.size_bytes);
	assert_int_equal(elf_head_read(&app->bytes, &app->head, NULL), 0);
}

static const char *name_at(const struct app *app, const struct elf_index *index, uint64_t vaddr)
{
	static char name[100];
	struct elf_function f;

	name[0] = '\0';
	if (elf_find(index, vaddr, &f))
		assert_int_equal(
			elf_function_name(index, &app->bytes, &f, name, sizeof(name), NULL), 0);
	return name;
}

TEST(minidebug_names_static_functions_beside_the_dynamic_ones)
{
	struct elf_index *plain, *whole;
	struct buf text = {0};
	struct bytes mini;
	struct app app;

	open_app(&app);
	assert_int_equal(elf_minidebug_read(&app.bytes, &app.head, &text, NULL), 0);
	mini = bytes_of_memory(text.data, text.len);
	assert_int_equal(elf_index_new(&app.bytes, &app.head, NULL, &plain, NULL), 0);
	assert_int_equal(elf_index_new(&app.bytes, &app.head, &mini, &whole, NULL), 0);
	buf_free(&text);                             /* the index keeps what it needs */
	assert_string_equal(name_at(&app, plain, app.shown), "shown");
	assert_string_not_equal(name_at(&app, plain, app.hidden), "hidden");
	assert_string_equal(name_at(&app, whole, app.shown), "shown");
	assert_string_equal(name_at(&app, whole, app.hidden), "hidden");
	assert_true(elf_index_has_names(whole));
	assert_true(elf_index_bytes(whole) > elf_index_bytes(plain));
	elf_index_free(plain);
	elf_index_free(whole);
	os_close(app.file);
}

/* Cut, or with a byte changed, here and there: an error, for liblzma checks a sum of all. */
TEST(minidebug_survives_damaged_packed_bytes)
{
	struct buf packed = {0};
	size_t i;

	make_files();
	assert_int_equal(os_load(path_of("app.mini.xz"), 65536, &packed, NULL), 0);
	for (i = 0; i < packed.len; i += 23) {
		struct buf out = {0};
		struct err err = {0};

		assert_int_not_equal(xz_unpack(packed.data, i, 1 << 16, &out, &err), 0);
		assert_true(err.text[0]);
		packed.data[i] = (char)~packed.data[i];
		assert_int_not_equal(xz_unpack(packed.data, packed.len, 1 << 16, &out, NULL), 0);
		packed.data[i] = (char)~packed.data[i];
		assert_int_equal(out.len, 0);
		buf_free(&out);
	}
	buf_free(&packed);
}

TEST(xz_stops_at_the_ceiling)
{
	struct buf packed = {0}, out = {0};
	char command[600];

	snprintf(command, sizeof(command), "head -c 20000000 /dev/zero | xz -1 > %s",
		 path_of("bomb"));
	if (system(command)) {
		print_message("there is no xz here\n");
		skip();
	}
	assert_int_equal(os_load(path_of("bomb"), 1 << 20, &packed, NULL), 0);
	assert_int_equal(xz_unpack(packed.data, packed.len, 10000000, &out, NULL),
			 ERR_LIMIT);
	assert_int_equal(out.len, 0);
	buf_free(&out);
	assert_int_equal(xz_unpack(packed.data, packed.len, 20000000, &out, NULL), 0);
	assert_int_equal(out.len, 20000000);
	buf_free(&out);
	buf_free(&packed);
}

TEST(xz_refuses_a_stream_that_needs_too_much_memory)
{
	struct buf packed = {0}, out = {0};
	char command[600];

	snprintf(command, sizeof(command), "echo x | xz --lzma2=dict=200MiB > %s", path_of("dict"));
	if (system(command)) {
		print_message("there is no xz here\n");
		skip();
	}
	assert_int_equal(os_load(path_of("dict"), 1 << 20, &packed, NULL), 0);
	assert_int_equal(xz_unpack(packed.data, packed.len, 1 << 20, &out, NULL), ERR_LIMIT);
	buf_free(&out);
	buf_free(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(minidebug_names_static_functions_beside_the_dynamic_ones),
		cmocka_unit_test(minidebug_survives_damaged_packed_bytes),
		cmocka_unit_test(xz_stops_at_the_ceiling),
		cmocka_unit_test(xz_refuses_a_stream_that_needs_too_much_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
