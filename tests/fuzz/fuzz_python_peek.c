/*
 * Memory of an interpreter as the fuzzer wants it: the search for a thread, the chain of frames,
 * code objects with their texts and tables of lines. The first byte chooses the version, the second
 * where a chain begins, the rest is the memory, read at BASE and at every 64 KiB beyond.
 */
#include "managed/python/code.h"
#include "managed/python/place.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x10000)
#define REPEATS 0x10000u

struct memory {
	const uint8_t *bytes;
	size_t n;
};

static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct memory *m = ctx;
	size_t at = (size_t)(address % REPEATS);

	if (address < BASE || at >= m->n)
		return 0;
	n = n < m->n - at ? n : m->n - at;
	memcpy(to, m->bytes + at, n);
	return n;
}

static void name_spots(const struct python_target *t, const struct managed_memory *memory,
		       const struct python_peek *peek)
{
	struct python_code code;
	uint32_t i;
	int32_t at;

	for (i = 0; i < peek->n && i < 8; i++) {
		if (!python_code_read(&t->layout, memory, 0, peek->spots[i].code,
				      peek->spots[i].stamp, &code))
			continue;
		for (at = -2; at < 64; at += 2)
			python_line(t->layout.version, code.lines, code.nlines, code.first_line,
				    at);
		free(code.lines);
	}
}

static void place_spots(const struct python_target *t, const struct python_peek *peek)
{
	static const struct python_evaluator evaluator = {.at = BASE, .bytes = 0x8000};
	struct frame_ref refs[PYTHON_FRAMES_MAX] = {{0}};
	struct unwind_pair pairs[16];
	struct unwind_stack *stack = calloc(1, sizeof(*stack));
	uint32_t i;

	if (!stack)
		return;
	for (i = 0; i < 16; i++)
		pairs[i] = (struct unwind_pair){.cfa = BASE + 0x800 * (i + 1),
						.ip = BASE + 0x1000 * i};
	stack->nframes = 17;
	stack->pairs = pairs;
	stack->npairs = 16;
	stack->sp = BASE;
	stack->quality = t->serial & 1 ? QUALITY_COMPLETE : QUALITY_TRUNCATED;
	python_place(&t->layout, &evaluator, peek, refs, stack);
	if (stack->nframes > STACK_MAX_FRAMES)
		abort();
	free(stack);
}

static bool choose(const uint8_t *data, size_t n, struct python_layout *out)
{
	static const uint16_t versions[] = {0x207, 0x306, 0x307, 0x308, 0x309, 0x30a, 0x30b, 0x30c};
	uint64_t words[PYTHON_DEBUG_WORDS];
	size_t i;

	if (data[0] % 9 < 8)
		return python_layout_get(versions[data[0] % 9], out);
	if (n < 2 + sizeof(words))
		return false;
	for (i = 0; i < PYTHON_DEBUG_WORDS; i++)
		memcpy(&words[i], data + 2 + 8 * i, 8);
	return python_layout_debug(words, PYTHON_DEBUG_WORDS, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct python_threads *threads;
	struct python_seen *seen;
	struct python_peek *peek;
	struct python_thread *thread;
	struct python_target t = {.pid = 1};
	struct memory m = {data + 2, n - 2};
	const struct managed_memory memory = {.read = read_it, .ctx = &m};
	char name[24] = "";
	bool searched;

	memcpy(name, data, n < sizeof(name) ? n : sizeof(name) - 1);
	if (python_version_of_name(name) > PYTHON_VERSION(3, 99))
		abort();
	if (n < 2 || !choose(data, n, &t.layout))
		return 0;
	t.serial = data[1] + 1u;
	t.head = t.current = t.gil = BASE + data[1] * 8u;
	threads = calloc(1, sizeof(*threads));
	seen = calloc(1, sizeof(*seen));
	peek = calloc(1, sizeof(*peek));
	if (threads && seen && peek) {
		thread = python_find_thread(&t, &memory, 7, threads, false, &searched);
		python_peek(&t, &memory, thread, threads, peek);
		python_peek(&t, &memory, thread, threads, peek);     /* by what it knows now */
		name_spots(&t, &memory, peek);
		python_name_new(&t, &memory, seen, peek);
		python_gil_holder(&t, &memory);
		place_spots(&t, peek);
	}
	free(threads);
	free(seen);
	free(peek);
	return 0;
}
