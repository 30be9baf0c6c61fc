/*
 * Memory of a V8 as the fuzzer wants it, and a stack in it. The first byte chooses the version, the
 * second where the code is; the rest is the memory, read at BASE and at every 64 KiB beyond. A file
 * at BASE is read for what it says of its V8, and walked by that. Where the first byte is 128 or
 * more, the last three are a place in the memory and what stands there from the second walk on.
 */
#include "base/bytes.h"
#include "base/os.h"
#include "managed/node/known.h"
#include "managed/node/v8.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x10000000)
#define REPEATS 0x10000u

struct memory {
	const uint8_t *bytes;
	size_t n, changed_at;                /* no place: nothing changes */
	uint8_t changed;
	struct managed_memory m;
};

static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct memory *m = ctx;
	size_t at = (size_t)(address % REPEATS);

	if (address < BASE || at >= m->n)
		return 0;
	n = n < m->n - at ? n : m->n - at;
	memcpy(to, m->bytes + at, n);
	if (m->changed_at >= at && m->changed_at - at < n)
		((uint8_t *)to)[m->changed_at - at] = m->changed;
	return n;
}

static bool run_now(void *ctx, struct managed_task *task)
{
	task->run(task, &((struct memory *)ctx)->m);
	return true;
}

static bool stack_word(void *ctx, uint64_t address, uint64_t *out)
{
	uint8_t bytes[8];

	if (read_it(ctx, address, bytes, 8) != 8)
		return false;
	*out = le64(bytes);
	return true;
}

static void walk(struct managed *k, const struct managed_host *host, uint64_t pc,
		 uint64_t sample_ns)
{
	struct unwind_frame f = {.interrupted = true, .word = stack_word, .stack = host->ctx};
	unsigned i;

	f.known = REG_BIT(EH_RIP) | REG_BIT(EH_RSP) | REG_BIT(EH_RBP) | REG_BIT(EH_R10);
	f.regs[EH_R10] = BASE + 0x145;
	f.regs[EH_RIP] = pc;
	f.regs[EH_RSP] = BASE;
	f.regs[EH_RBP] = BASE + 64;
	v8_reader.begin(k, host, sample_ns);
	for (i = 0; i < 32; i++) {
		f.generated = i % 2 == (pc & 1);
		f.nfunctions = 0;
		if (v8_reader.step(k, host, &f) != UNWIND_ON)
			break;
	}
}

/* Each name is found again by its text. */
static void check_names(struct managed_names *names)
{
	char text[MANAGED_TEXT_MAX + 1], detail[MANAGED_TEXT_MAX + 1];
	uint32_t i;

	for (i = 1; managed_names_get(names, i, text, sizeof(text), detail); i++)
		if (managed_names_add(names, text, detail) != i)
			__builtin_trap();
	if (managed_names_nearly_full(names) || managed_names_bytes(names) < i)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t versions[][2] = {{10, 2}, {11, 3}, {11, 8}, {12, 4},
					      {12, 9}, {13, 6}, {14, 1}, {14, 6}};
	/* The types of tests/unit/node/heap.h. */
	struct v8_layout l = {.function_first = 200, .function_last = 205, .bytecode = 163,
			      .interpreter_data = 166, .code = 164, .stream = 165,
			      .scope_info = 160, .script = 161, .shared = 162,
			      .not_string_mask = 0xff80};
	struct managed_names *names = managed_names_new();
	const struct managed_image image = {.base = BASE, .file = "node"};
	struct managed_host host = {.run = run_now};
	struct managed *learned = NULL;
	struct v8_knowledge *k = NULL;
	struct memory m;
	struct err err;

	if (n < 2 || n > REPEATS || !names) {
		managed_names_free(names);
		return 0;
	}
	m = (struct memory){.bytes = data + 2, .n = n - 2, .changed_at = SIZE_MAX};
	m.m = (struct managed_memory){.read = read_it, .ctx = &m};
	host.ctx = &m;
	if (!v8_reader.learn(&image, &host, names, &learned, &err)) {
		walk(learned, &host, BASE + data[1] * 64u, 1);
		v8_reader.forget(learned);
	}
	v8_row_get(versions[data[0] % 8][0], versions[data[0] % 8][1], &l.row);
	if (!v8_knowledge_new(&l, names, &k)) {
		walk((struct managed *)k, &host, BASE + data[1] * 64u, 1);
		if (data[0] & 128 && n > 5) {
			m.changed_at = le16(data + n - 3);
			m.changed = data[n - 1];
		}
		walk((struct managed *)k, &host, BASE + data[1] * 64u, os_now_ns());
		walk((struct managed *)k, &host, BASE + data[1] * 64u + 40, UINT64_MAX);
		walk((struct managed *)k, &host, BASE + data[1] * 64u + 41, 2);
		if (!v8_reader.bytes((struct managed *)k))
			__builtin_trap();
	}
	v8_knowledge_free(k);
	check_names(names);
	managed_names_free(names);
	return 0;
}
