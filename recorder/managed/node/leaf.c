#include "managed/node/leaf.h"

#include "unwind/prologue.h"

#include <string.h>

#define PROLOGUE_BYTES 160u                  /* of generated code: in which it makes its frame */
#define EPILOGUE_BYTES 22u                   /* from leaving the frame to the return */
#define LEAVES_BYTES 400u
#define NEAR_BYTES 32u                       /* a frame that is made later is made on few paths */
#define ALIGN 64u
#define PADDING 4u
#define INT3 0xcc

static bool is_at(const uint8_t *code, size_t n, size_t at, const char *bytes, size_t nbytes)
{
	return at <= n && nbytes <= n - at && memcmp(code + at, bytes, nbytes) == 0;
}
#define IS_AT(code, n, at, text) is_at(code, n, at, text, sizeof(text) - 1)

/* push rbp; mov rbp, rsp */
static bool enters(const uint8_t *code, size_t n, size_t at)
{
	return IS_AT(code, n, at, "\x55\x48\x89\xe5") || IS_AT(code, n, at, "\x55\x48\x8b\xec");
}

/* Returning, jumps to others that replace this call, and what is outside. */
static bool by_instruction(const uint8_t *code, size_t n, size_t at, int *out)
{
	*out = at < n ? 0 : V8_LEAF_FRAMED;
	if (at >= n || code[at] == 0xc3 || code[at] == 0xc2)
		return true;
	if (IS_AT(code, n, at, "\x41\x5a\x48\x8d\x24"))      /* pop r10; lea rsp, ... */
		return true;
	if (at + 7 <= n && (code[at] == 0x48 || code[at] == 0x4a) &&
	    IS_AT(code, n, at + 1, "\x8d\x24") && IS_AT(code, n, at + 4, "\x41\x52\xc3")) {
		*out = V8_LEAF_R10;          /* lea rsp, ...; push r10; ret */
		return true;
	}
	if (IS_AT(code, n, at, "\x41\x52\xc3")) {
		*out = V8_LEAF_R10;
		return true;
	}
	/* mov rbp, [rbp]; add rsp, N; jmp */
	if (at >= 4 && IS_AT(code, n, at - 4, "\x48\x8b\x6d\x00\x48\x83\xc4") && at + 4 < n &&
	    code[at + 4] == 0xe9 && code[at + 3] < 128) {
		*out = code[at + 3] / 8;
		return true;
	}
	return false;
}

/* Between leaving the frame (mov rsp, rbp; pop rbp) and the end of the call. */
static bool has_left(const uint8_t *code, size_t n, size_t at)
{
	size_t back, i;

	for (back = 4; back <= EPILOGUE_BYTES + 3 && back <= at; back++) {
		if (!IS_AT(code, n, at - back, "\x48\x8b\xe5\x5d"))
			continue;
		for (i = at - back + 4; i < at; i++)
			if (code[i] == 0xc3 || code[i] == 0xc2 || code[i] == 0xe9 ||
			    code[i] == 0xeb || IS_AT(code, n, i, "\x55\x48\x89"))
				return false;
		return true;
	}
	return false;
}

int v8_leaf_generated(const uint8_t *code, size_t n, size_t at, bool baseline)
{
	size_t i;
	int rule;

	if (by_instruction(code, n, at, &rule))
		return rule;
	for (i = 0; i < PROLOGUE_BYTES && !IS_AT(code, n, i, "\x55\x48\x89\xe5"); i++)
		;
	if (i < PROLOGUE_BYTES && at < i + 4)
		return at <= i ? 0 : 1;
	/* Sparkplug's of V8 11 and before calls a builtin that makes the frame. */
	if (i == PROLOGUE_BYTES && baseline) {
		for (i = 0; i < n && code[i] != 0xe8; i++)
			;
		if (at <= i)
			return 0;
	}
	return has_left(code, n, at) ? 0 : V8_LEAF_FRAMED;
}

void v8_builtin_shape(const uint8_t *code, size_t n, struct v8_builtin_shape *out)
{
	size_t i;
	int m;

	*out = (struct v8_builtin_shape){.first = UINT32_MAX, .marker = -1};
	for (i = 0; i + 4 <= n; i++) {
		if (!out->leaves && i < LEAVES_BYTES &&
		    (code[i] == 0xc9 || IS_AT(code, n, i, "\x48\x8b\xe5\x5d")))
			out->leaves = (uint32_t)i;
		if (!enters(code, n, i))
			continue;
		m = i + 5 < n && code[i + 4] == 0x6a && code[i + 5] < 128 ? code[i + 5] : -1;
		if (out->first == UINT32_MAX) {
			out->first = (uint32_t)i;
			out->marker = m;
		} else if (m != out->marker) {
			out->marker = -1;
		}
		out->last = (uint32_t)i;
	}
}

int v8_leaf_builtin(const uint8_t *code, size_t n, size_t at, const struct v8_builtin_shape *shape,
		    uint64_t marker)
{
	size_t i;
	int rule;

	if (by_instruction(code, n, at, &rule))
		return rule;
	if (has_left(code, n, at))
		return 0;
	for (i = 0; i < 4 && i <= at; i++)
		if (enters(code, n, at - i))
			return i ? 1 : 0;
	if (shape->first == UINT32_MAX && shape->leaves && at <= shape->leaves)
		return V8_LEAF_FRAMED;
	if (shape->first == UINT32_MAX || at < shape->first)
		return V8_LEAF_SEARCH;
	if (shape->marker >= 0 && at >= shape->last + 6u && marker != (uint64_t)shape->marker)
		return V8_LEAF_SEARCH;
	return shape->first > NEAR_BYTES ? V8_LEAF_CALLED_BY_V8 : V8_LEAF_CALLED;
}

bool v8_is_call(const uint8_t before[8], int32_t *target)
{
	bool direct;

	return prologue_is_call(before + 8 - PROLOGUE_CALL_BYTES, &direct, target);
}

static bool begins(const uint8_t *bytes, size_t at)
{
	static const uint8_t padding[PADDING] = {INT3, INT3, INT3, INT3};

	return bytes[at] != INT3 && memcmp(bytes + at - PADDING, padding, PADDING) == 0;
}

size_t v8_builtin_begin(const uint8_t *bytes, size_t n, uint64_t address)
{
	size_t first = (size_t)(-address & (ALIGN - 1)), at;

	if (n <= first)
		return SIZE_MAX;
	for (at = first + (n - 1 - first) / ALIGN * ALIGN; at >= PADDING; at -= ALIGN) {
		if (begins(bytes, at))
			return at;
		if (at < ALIGN)
			break;
	}
	return SIZE_MAX;
}

size_t v8_builtin_end(const uint8_t *bytes, size_t from, size_t n, uint64_t address)
{
	size_t at = from + (size_t)(-(address + from) & (ALIGN - 1));

	for (; at < n; at += ALIGN)
		if (at >= PADDING && begins(bytes, at))
			return at;
	return SIZE_MAX;
}
