/* ELF cores, made up: what they say, and what happens when they are damaged. */
#include "source/dump/core.h"
#include "tests/support/test.h"

#include "base/bytes.h"

#include <string.h>

#define HEADERS 3u                           /* one of notes, two of memory */
#define NOTES_AT (64u + HEADERS * 56u)
#define STACK 0x7ffe1000u
#define CODE 0x400000u

static void put_note(struct buf *out, uint32_t type, const void *bytes, uint32_t n)
{
	static const uint8_t padding[4];

	buf_put_le(out, 5, 4);
	buf_put_le(out, n, 4);
	buf_put_le(out, type, 4);
	buf_put(out, "CORE\0\0\0", 8);
	buf_put(out, bytes, n);
	buf_put(out, padding, -n & 3);
}

static void put_status(struct buf *out, uint32_t tid, unsigned signal, uint64_t call)
{
	uint8_t status[336] = {0};

	status[12] = (uint8_t)signal;
	put_le32(status + 32, tid);
	put_le64(status + 112 + 8 * 10, (uint64_t)-512);     /* rax: -ERESTARTSYS */
	put_le64(status + 112 + 8 * 14, 0x1234);             /* rdi */
	put_le64(status + 112 + 8 * 15, call);
	put_le64(status + 112 + 8 * 16, CODE + 0x10);        /* rip */
	put_le64(status + 112 + 8 * 19, STACK + 0x20);       /* rsp */
	put_note(out, 1, status, sizeof(status));
}

/* Two threads: 12 died of SIGSEGV at 0x10; 11 waits in system call 202. */
static void put_notes(struct buf *out)
{
	uint8_t info[136] = {0}, signal[128] = {0}, auxv[32] = {0}, file[56] = {0};

	put_status(out, 12, 11, (uint64_t)-1);
	put_le32(info + 24, 10);
	memcpy(info + 40, "a program", 9);
	put_note(out, 3, info, sizeof(info));
	put_le32(signal, 11);
	put_le32(signal + 8, 1);
	put_le64(signal + 16, 0x10);
	put_note(out, 0x53494749, signal, sizeof(signal));
	put_le64(auxv, 9);
	put_le64(auxv + 8, CODE + 8);
	put_note(out, 6, auxv, sizeof(auxv));
	put_le64(file, 1);
	put_le64(file + 8, 4096);
	put_le64(file + 16, CODE);
	put_le64(file + 24, CODE + 0x1000);
	put_le64(file + 32, 2);
	memcpy(file + 40, "/bin/a program", 15);
	put_note(out, 0x46494c45, file, sizeof(file));
	put_status(out, 11, 11, 202);
}

static void put_program(struct buf *out, uint32_t type, uint32_t flags, uint64_t offset,
			uint64_t vaddr, uint64_t file_bytes, uint64_t memory_bytes)
{
	buf_put_le(out, type, 4);
	buf_put_le(out, flags, 4);
	buf_put_le(out, offset, 8);
	buf_put_le(out, vaddr, 8);
	buf_put_le(out, 0, 8);
	buf_put_le(out, file_bytes, 8);
	buf_put_le(out, memory_bytes, 8);
	buf_put_le(out, 1, 8);
}

/* The stack holds 64 bytes, 0 to 63; the code is not dumped. */
static struct buf make_core(void)
{
	static const uint8_t ident[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	struct buf core = {0}, notes = {0};
	unsigned i;

	put_notes(&notes);
	buf_put(&core, ident, sizeof(ident));
	buf_put_le(&core, 4, 2);
	buf_put_le(&core, 62, 2);
	buf_put_le(&core, 1, 4);
	buf_put_le(&core, 0, 8);
	buf_put_le(&core, 64, 8);                    /* program headers */
	buf_put_le(&core, 0, 8);
	buf_put_le(&core, 0, 4);
	buf_put_le(&core, 64, 2);
	buf_put_le(&core, 56, 2);
	buf_put_le(&core, HEADERS, 2);
	buf_put_le(&core, 0, 6);
	put_program(&core, 4, 0, NOTES_AT, 0, notes.len, 0);
	put_program(&core, 1, 6, NOTES_AT + notes.len, STACK, 64, 0x1000);
	put_program(&core, 1, 5, NOTES_AT + notes.len + 64, CODE, 0, 0x1000);
	buf_put(&core, notes.data, notes.len);
	for (i = 0; i < 64; i++)
		buf_putc(&core, (char)i);
	buf_free(&notes);
	return core;
}

static int read_core(const struct buf *core, size_t n, struct dump **out, struct err *err)
{
	const struct bytes in = bytes_of_memory(core->data, n);

	return core_read(&in, out, err);
}

TEST(the_thread_that_died_is_the_first)
{
	struct buf core = make_core();
	struct dump *d = NULL;
	char text[DUMP_SIGNAL_BYTES];

	assert_int_equal(read_core(&core, core.len, &d, NULL), 0);
	assert_int_equal(d->nthreads, 2);
	assert_int_equal(d->threads[0].tid, 12);
	assert_int_equal(d->threads[1].tid, 11);
	dump_signal_text(d, text);
	assert_string_equal(text, "SIGSEGV");
	assert_string_equal(dump_fault_text(d), "not mapped");
	assert_true(d->has_fault_address);
	assert_int_equal(d->fault_address, 0x10);
	assert_int_equal(d->pid, 10);
	assert_string_equal(d->program, "a program");
	dump_free(d);
	buf_free(&core);
}

TEST(registers_have_perfs_order_and_calls_are_known_by_their_result)
{
	struct buf core = make_core();
	struct dump *d = NULL;

	assert_int_equal(read_core(&core, core.len, &d, NULL), 0);
	assert_int_equal(d->threads[1].regs[5], 0x1234);
	assert_int_equal(d->threads[1].regs[DUMP_SP], STACK + 0x20);
	assert_int_equal(d->threads[1].regs[DUMP_IP], CODE + 0x10);
	assert_int_equal(d->threads[0].call, -1);
	assert_int_equal(d->threads[1].call, 202);
	dump_free(d);
	buf_free(&core);
}

TEST(memory_is_what_the_core_has_and_no_more)
{
	struct buf core = make_core();
	struct dump *d = NULL;
	uint8_t bytes[64];

	assert_int_equal(read_core(&core, core.len, &d, NULL), 0);
	assert_int_equal(dump_memory(d, STACK + 60, bytes, 64), 4);
	assert_int_equal(bytes[3], 63);
	assert_int_equal(dump_memory(d, STACK + 64, bytes, 1), 0);
	assert_int_equal(dump_memory(d, STACK - 1, bytes, 1), 0);
	assert_int_equal(dump_memory(d, CODE, bytes, 1), 0);
	assert_true(dump_range_at(d, CODE)->executable);
	assert_int_equal(d->missing_bytes, 0);
	dump_free(d);
	buf_free(&core);
}

TEST(a_mapped_file_has_its_path_and_offset)
{
	struct buf core = make_core();
	struct dump *d = NULL;

	assert_int_equal(read_core(&core, core.len, &d, NULL), 0);
	assert_string_equal(dump_module_at(d, CODE + 0xfff)->path, "/bin/a program");
	assert_int_equal(dump_module_at(d, CODE)->offset, 0x2000);
	assert_null(dump_module_at(d, CODE + 0x1000));
	assert_int_equal(d->entry, CODE + 8);
	dump_free(d);
	buf_free(&core);
}

TEST(a_core_that_is_cut_off_says_what_is_missing)
{
	struct buf core = make_core();
	struct dump *d = NULL;
	uint8_t byte;

	assert_int_equal(read_core(&core, core.len - 60, &d, NULL), 0);
	assert_int_equal(d->missing_bytes, 60);
	assert_int_equal(dump_memory(d, STACK + 3, &byte, 1), 1);
	assert_int_equal(dump_memory(d, STACK + 4, &byte, 1), 0);
	dump_free(d);
	buf_free(&core);
}

TEST(every_shorter_core_is_read_or_refused_with_a_sentence)
{
	struct buf core = make_core();
	struct dump *d;
	struct err err;
	size_t n;

	for (n = 0; n < core.len; n++) {
		d = NULL;
		err.text[0] = '\0';
		if (read_core(&core, n, &d, &err))
			assert_true(err.text[0]);
		else
			assert_true(d->nthreads > 0);
		dump_free(d);
	}
	buf_free(&core);
}

TEST(another_processors_core_is_refused)
{
	struct buf core = make_core();
	struct dump *d = NULL;
	struct err err;

	core.data[18] = (char)183;
	assert_int_equal(read_core(&core, core.len, &d, &err), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "183"));
	buf_free(&core);
}

TEST(a_list_of_files_that_says_more_than_it_has_is_refused)
{
	struct buf core = make_core();
	struct dump *d = NULL;
	struct err err;
	size_t i;

	for (i = 0; i + 4 < core.len && le32(core.data + i) != 0x46494c45; i++)
		;
	put_le64(core.data + i + 12, 1000);          /* behind the type and the name */
	assert_int_equal(read_core(&core, core.len, &d, &err), ERR_FORMAT);
	assert_non_null(strstr(err.text, "list of mapped files"));
	buf_free(&core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_thread_that_died_is_the_first),
		cmocka_unit_test(registers_have_perfs_order_and_calls_are_known_by_their_result),
		cmocka_unit_test(memory_is_what_the_core_has_and_no_more),
		cmocka_unit_test(a_mapped_file_has_its_path_and_offset),
		cmocka_unit_test(a_core_that_is_cut_off_says_what_is_missing),
		cmocka_unit_test(every_shorter_core_is_read_or_refused_with_a_sentence),
		cmocka_unit_test(another_processors_core_is_refused),
		cmocka_unit_test(a_list_of_files_that_says_more_than_it_has_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
