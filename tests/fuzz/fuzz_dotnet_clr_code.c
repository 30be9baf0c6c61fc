/*
 * Memory of a .NET program as the fuzzer wants it, read at BASE and at every 64 KiB beyond: names
 * of addresses in it.
 */
#include "base/bytes.h"
#include "source/dotnet/clr_code.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x10000000)
#define REPEATS 0x10000u

struct input {
	const uint8_t *bytes;
	size_t n;
};

static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct input *in = ctx;
	size_t at = (size_t)(address % REPEATS);

	if (address < BASE || at >= in->n)
		return 0;
	n = n < in->n - at ? n : in->n - at;
	memcpy(to, in->bytes + at, n);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = {bytes, n};
	const struct managed_memory memory = {.read = read_it, .ctx = &in};
	struct clr_code code = {0};
	struct clr_method method;
	uint32_t at;

	if (!clr_code_open(&code, &memory, BASE))
		code.ranges = BASE;
	for (at = 0x1000; at < 0x1100; at += 0x33)
		if (clr_code_find(&code, &memory, BASE + at, &method) &&
		    (!memchr(method.name, 0, sizeof(method.name)) ||
		     !memchr(method.module, 0, sizeof(method.module)) ||
		     method.start > BASE + at))
			abort();
	clr_code_free(&code);
	return 0;
}
