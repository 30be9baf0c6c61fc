/* Minidumps, made up: what they say, where stacks lead, and what happens when they are damaged. */
#include "source/dump/minidump.h"
#include "source/dump/pe_stacks.h"
#include "tests/support/test.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

#define STREAMS 9u
#define STACK 0x100000u
#define STACK32 0x80000u
#define TEB 0x200000u
#define JIT 0x500000u
#define PROGRAM 0x140000000u

struct making {
	struct buf body, directory;
	uint32_t base;                       /* where the body begins */
};

static uint32_t here(const struct making *m)
{
	return m->base + (uint32_t)m->body.len;
}

static void begin(struct making *m, uint32_t type)
{
	buf_put_le(&m->directory, type, 4);
	buf_put_le(&m->directory, here(m), 8);       /* the place, moved to its place by end() */
}

static void end(struct making *m)
{
	uint8_t *entry = (uint8_t *)m->directory.data + m->directory.len - 12;
	uint32_t at = le32(entry + 4);

	put_le32(entry + 4, here(m) - at);
	put_le32(entry + 8, at);
}

static uint32_t put_text(struct making *m, const char *text)
{
	uint32_t at = here(m);

	buf_put_le(&m->body, 2 * strlen(text), 4);
	for (; *text; text++)
		buf_put_le(&m->body, (uint8_t)*text, 2);
	buf_put_le(&m->body, 0, 2);
	return at;
}

static void put_at(uint8_t *bytes, size_t at, uint64_t v)
{
	put_le64(bytes + at, v);
}

static uint32_t put_bytes(struct making *m, const void *bytes, size_t n)
{
	uint32_t at = here(m);

	buf_put(&m->body, bytes, n);
	return at;
}

static uint32_t put_context(struct making *m, uint64_t rip, uint64_t rsp, uint64_t rbp, unsigned cs)
{
	uint8_t c[1232] = {0};

	c[0x38] = (uint8_t)cs;
	put_at(c, 0x98, rsp);
	put_at(c, 0xa0, rbp);
	put_at(c, 0xb0, 0x1234);                     /* rdi */
	put_at(c, 0xf8, rip);
	return put_bytes(m, c, sizeof(c));
}

static void put_thread(struct making *m, uint32_t tid, uint32_t stack, uint32_t context)
{
	uint8_t t[48] = {0};

	put_le32(t, tid);
	put_at(t, 16, TEB);
	put_at(t, 24, STACK);
	put_le32(t + 32, 64);
	put_le32(t + 36, stack);
	put_le32(t + 40, 1232);
	put_le32(t + 44, context);
	buf_put(&m->body, t, sizeof(t));
}

static void put_module(struct making *m, uint64_t base, uint32_t path)
{
	uint8_t module[108] = {0};

	put_at(module, 0, base);
	put_le32(module + 8, 0x10000);
	put_le32(module + 16, 0x5eed);
	put_le32(module + 20, path);
	buf_put(&m->body, module, sizeof(module));
}

static void put_piece(struct making *m, uint64_t address, uint32_t n, uint32_t at)
{
	buf_put_le(&m->body, address, 8);
	buf_put_le(&m->body, n, 4);
	buf_put_le(&m->body, at, 4);
}

static void put_region(struct making *m, uint64_t address, uint32_t protection)
{
	uint8_t region[48] = {0};

	put_at(region, 0, address);
	put_at(region, 24, 0x1000);
	put_le32(region + 32, 0x1000);
	put_le32(region + 36, protection);
	buf_put(&m->body, region, sizeof(region));
}

/* CONTEXT of x86, behind 4 bytes; and the slot that leads to it. */
static void make_32_bit(uint8_t area[4 + 0xcc], uint8_t slot[8])
{
	put_le32(area + 4 + 0xb4, STACK32 + 8);      /* ebp */
	put_le32(area + 4 + 0xb8, JIT + 0x20);       /* eip */
	put_le32(area + 4 + 0xc4, STACK32);          /* esp */
	put_at(slot, 0, TEB + 0x3000);
}

/*
 * Thread 7 died reading 0x10, in generated code whose caller is generated, too, and the last; its
 * own context is that of the code that wrote the dump. Thread 5 is in 64-bit code.
 */
static struct buf make_dump(const char *second_module, unsigned processor)
{
	struct making m = {.base = 32 + STREAMS * 12};
	uint8_t stack[64] = {0}, area[4 + 0xcc] = {0}, slot[8], e[168] = {0}, system[56] = {0};
	uint8_t misc[24] = {0};
	uint32_t at[3], paths[2], name, area_at, slot_at, stack_at;
	struct buf out = {0};

	put_at(stack, 0x10, STACK + 0x20);
	put_at(stack, 0x18, JIT + 0x80);             /* the caller */
	make_32_bit(area, slot);
	stack_at = put_bytes(&m, stack, sizeof(stack));
	area_at = put_bytes(&m, area, sizeof(area));
	slot_at = put_bytes(&m, slot, sizeof(slot));
	at[0] = put_context(&m, PROGRAM + 0x100, STACK, 0, 0x33);
	at[1] = put_context(&m, PROGRAM + 0x200, STACK, 0, 0x33);
	at[2] = put_context(&m, JIT + 0x10, STACK, STACK + 0x10, 0x33);
	paths[0] = put_text(&m, "C:\\a program.exe");
	paths[1] = put_text(&m, second_module);
	name = put_text(&m, "the name");
	begin(&m, 3);
	buf_put_le(&m.body, 2, 4);
	put_thread(&m, 5, stack_at, at[0]);
	put_thread(&m, 7, stack_at, at[1]);
	end(&m);
	begin(&m, 4);
	buf_put_le(&m.body, 2, 4);
	put_module(&m, PROGRAM, paths[0]);
	put_module(&m, 0x77000000, paths[1]);
	end(&m);
	begin(&m, 5);
	buf_put_le(&m.body, 3, 4);
	put_piece(&m, STACK + 8, 56, stack_at + 8);  /* overlaps the threads' */
	put_piece(&m, TEB + 0x1488, sizeof(slot), slot_at);
	put_piece(&m, TEB + 0x3000, sizeof(area), area_at);
	end(&m);
	begin(&m, 6);
	put_le32(e, 7);
	put_le32(e + 8, 0xc0000005);
	put_le32(e + 32, 2);
	put_at(e, 48, 0x10);
	put_le32(e + 160, 1232);
	put_le32(e + 164, at[2]);
	put_bytes(&m, e, sizeof(e));
	end(&m);
	begin(&m, 7);
	system[0] = (uint8_t)processor;
	put_le32(system + 20, 2);
	put_bytes(&m, system, sizeof(system));
	end(&m);
	begin(&m, 15);
	put_le32(misc, sizeof(misc));
	put_le32(misc + 4, 1);
	put_le32(misc + 8, 4711);
	put_bytes(&m, misc, sizeof(misc));
	end(&m);
	begin(&m, 16);
	buf_put_le(&m.body, 16, 4);
	buf_put_le(&m.body, 48, 4);
	buf_put_le(&m.body, 2, 8);
	put_region(&m, JIT, 0x20);
	put_region(&m, JIT + 0x1000, 0x04);
	end(&m);
	begin(&m, 24);
	buf_put_le(&m.body, 1, 4);
	buf_put_le(&m.body, 7, 4);
	buf_put_le(&m.body, name, 8);
	end(&m);
	begin(&m, 0);
	end(&m);
	buf_put(&out, "MDMP\x93\xa7\0\0", 8);
	buf_put_le(&out, STREAMS, 4);
	buf_put_le(&out, 32, 4);
	buf_put_le(&out, 0, 8);
	buf_put_le(&out, 0, 8);
	buf_put(&out, m.directory.data, m.directory.len);
	buf_put(&out, m.body.data, m.body.len);
	buf_free(&m.body);
	buf_free(&m.directory);
	return out;
}

static struct dump *read_dump(const struct buf *bytes, size_t n, int want)
{
	const struct bytes in = bytes_of_memory(bytes->data, n);
	struct dump *d = NULL;
	struct err err;

	assert_int_equal(minidump_read(&in, &d, &err), want);
	if (want)
		assert_true(err.text[0]);
	return d;
}

TEST(the_thread_that_died_is_the_first_as_it_was_then)
{
	struct buf bytes = make_dump("C:\\other.dll", 9);
	struct dump *d = read_dump(&bytes, bytes.len, 0);
	char text[DUMP_SIGNAL_BYTES];

	assert_int_equal(d->nthreads, 2);
	assert_int_equal(d->threads[0].tid, 7);
	assert_string_equal(d->threads[0].name, "the name");
	assert_int_equal(d->threads[0].regs[DUMP_IP], JIT + 0x10);
	assert_int_equal(d->threads[1].regs[DUMP_IP], PROGRAM + 0x100);
	assert_int_equal(d->threads[1].regs[5], 0x1234);
	assert_int_equal(d->pid, 4711);
	assert_string_equal(d->program, "a program.exe");
	dump_signal_text(d, text);
	assert_string_equal(text, "access violation");
	assert_string_equal(dump_fault_text(d), "reading");
	assert_int_equal(d->fault_address, 0x10);
	assert_string_equal(dump_module_at(d, 0x77000010)->path, "C:\\other.dll");
	dump_free(d);
	buf_free(&bytes);
}

TEST(pieces_of_memory_that_overlap_are_one)
{
	struct buf bytes = make_dump("C:\\other.dll", 9);
	struct dump *d = read_dump(&bytes, bytes.len, 0);
	uint8_t memory[80];

	assert_int_equal(dump_memory(d, STACK, memory, sizeof(memory)), 64);
	assert_int_equal(le64(memory + 0x18), JIT + 0x80);
	assert_int_equal(dump_memory(d, STACK + 64, memory, sizeof(memory)), 0);
	dump_free(d);
	buf_free(&bytes);
}

/* Generated code is what the regions call executable: JIT is, the page behind it is not. */
TEST(generated_code_is_followed_by_frame_pointers)
{
	struct buf bytes = make_dump("C:\\other.dll", 9);
	struct dump *d = read_dump(&bytes, bytes.len, 0);
	const struct symbol_env env = {0};
	const struct pe_walked *walked;
	struct frames *frames;
	struct pe_stacks *s;

	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(pe_stacks_open(d, NULL, &env, frames, &s, NULL), 0);
	walked = pe_stacks_walk(s, &d->threads[0]);
	assert_int_equal(walked->nframes, 2);
	assert_int_equal(walked->addresses[0], JIT + 0x10);
	assert_int_equal(walked->addresses[1], JIT + 0x80);
	assert_true(walked->frames[1].flags & FRAME_JIT);
	walked = pe_stacks_walk(s, &d->threads[1]);  /* the program's file is not here */
	assert_int_equal(walked->quality, QUALITY_BROKEN);
	assert_string_equal(walked->frames[0].object->name, "a program.exe");
	assert_int_equal(walked->frames[0].offset, 0x100);
	pe_stacks_close(s);
	frames_free(frames);
	dump_free(d);
	buf_free(&bytes);
}

static void keep_text(void *ctx, const char *text)
{
	snprintf(ctx, 800, "%s", text);
}

TEST(images_that_were_not_found_are_named_as_far_as_there_is_room_and_counted)
{
	char name[396] = "", text[800] = "";
	const struct symbol_env env = {0};
	struct frames *frames;
	struct pe_stacks *s;
	struct buf bytes;
	struct dump *d;
	unsigned i;

	memset(name, 'x', sizeof(name) - 1);
	bytes = make_dump(name, 9);
	d = read_dump(&bytes, bytes.len, 0);
	assert_int_equal(frames_new(&frames, NULL), 0);
	assert_int_equal(pe_stacks_open(d, NULL, &env, frames, &s, NULL), 0);
	pe_stacks_doubts(s, keep_text, text);
	assert_string_equal(text, "");       /* nobody has asked for any */
	for (i = 0; i < 2; i++) {
		d->threads[1].regs[DUMP_IP] = d->modules[i].start + 0x100;
		pe_stacks_walk(s, &d->threads[1]);
	}
	pe_stacks_doubts(s, keep_text, text);
	assert_non_null(strstr(text, "xx and 1 more; their functions "));
	pe_stacks_close(s);
	frames_free(frames);
	dump_free(d);
	buf_free(&bytes);
}

TEST(a_thread_of_a_32_bit_program_has_the_registers_that_wow64_keeps)
{
	struct buf bytes = make_dump("C:\\Windows\\System32\\wow64cpu.dll", 9);
	struct dump *d = read_dump(&bytes, bytes.len, 0);

	assert_true(d->is_32_bit);
	assert_int_equal(d->threads[0].abi, 1);
	assert_int_equal(d->threads[0].regs[DUMP_IP], JIT + 0x20);
	assert_int_equal(d->threads[0].regs[DUMP_SP], STACK32);
	dump_free(d);
	buf_free(&bytes);
}

TEST(another_machine_or_system_is_refused)
{
	struct buf bytes = make_dump("C:\\other.dll", 12);

	read_dump(&bytes, bytes.len, ERR_UNSUPPORTED);
	buf_free(&bytes);
}

/* Whole, it has both threads; each shorter one has a sentence or is read as far as it goes. */
TEST(a_damaged_one_is_a_sentence_or_less)
{
	struct buf bytes = make_dump("C:\\other.dll", 9);
	size_t n, i;

	for (n = 0; n < bytes.len; n++) {
		const struct bytes in = bytes_of_memory(bytes.data, n);
		struct dump *d = NULL;
		struct err err = {0};

		assert_true(minidump_read(&in, &d, &err) == 0 || err.text[0]);
		dump_free(d);
	}
	for (i = 0; i < bytes.len; i++) {
		const struct bytes in = bytes_of_memory(bytes.data, bytes.len);
		struct dump *d = NULL;
		struct err err = {0};

		bytes.data[i] = (char)~bytes.data[i];
		assert_true(minidump_read(&in, &d, &err) == 0 || err.text[0]);
		dump_free(d);
		bytes.data[i] = (char)~bytes.data[i];
	}
	buf_free(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_thread_that_died_is_the_first_as_it_was_then),
		cmocka_unit_test(pieces_of_memory_that_overlap_are_one),
		cmocka_unit_test(generated_code_is_followed_by_frame_pointers),
		cmocka_unit_test(
			images_that_were_not_found_are_named_as_far_as_there_is_room_and_counted),
		cmocka_unit_test(a_thread_of_a_32_bit_program_has_the_registers_that_wow64_keeps),
		cmocka_unit_test(another_machine_or_system_is_refused),
		cmocka_unit_test(a_damaged_one_is_a_sentence_or_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
