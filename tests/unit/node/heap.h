/* A heap of V8 12.4 made by hand: objects with maps, at addresses of their own. One thread. */
#pragma once

#include "base/bytes.h"
#include "managed/node/object.h"

#include <stdlib.h>
#include <string.h>

#define V8_HEAP_BASE UINT64_C(0x20000000)
#define V8_HEAP_BYTES 65536u

enum {                                       /* types, as v8dbg_* would tell them */
	T_FLAT_2 = 0, T_CONS = 1, T_EXTERNAL = 10, T_SLICED = 11, T_THIN = 13, T_FLAT = 8,
	T_ARRAY = 150, T_BYTES = 151, T_SCOPE = 160, T_SCRIPT = 161, T_SHARED = 162,
	T_BYTECODE = 163, T_CODE = 164, T_STREAM = 165, T_DATA = 166, T_CONTEXT = 167,
	T_FUNCTION = 200,
};

struct v8_heap {
	uint8_t bytes[V8_HEAP_BYTES];
	size_t used;
	struct managed_memory m;
	struct v8_layout l;
	uint64_t maps[256];
};

static inline uint64_t v8_small(uint32_t v)
{
	return (uint64_t)v << 32;
}

static inline size_t v8_heap_read(void *ctx, uint64_t address, void *to, size_t n)
{
	struct v8_heap *h = ctx;

	if (address < V8_HEAP_BASE || address - V8_HEAP_BASE >= sizeof(h->bytes))
		return 0;
	if (n > sizeof(h->bytes) - (address - V8_HEAP_BASE))
		n = sizeof(h->bytes) - (size_t)(address - V8_HEAP_BASE);
	memcpy(to, h->bytes + (address - V8_HEAP_BASE), n);
	return n;
}

/* Of that version of V8. */
static inline void v8_heap_init(struct v8_heap *h, unsigned major, unsigned minor)
{
	memset(h, 0, sizeof(*h));
	h->m = (struct managed_memory){.read = v8_heap_read, .ctx = h};
	if (!v8_row_get(major, minor, &h->l.row))
		abort();
	h->l.function_first = T_FUNCTION;
	h->l.function_last = T_FUNCTION + 5;
	h->l.bytecode = T_BYTECODE;
	h->l.interpreter_data = T_DATA;
	h->l.code = T_CODE;
	h->l.stream = T_STREAM;
	h->l.scope_info = T_SCOPE;
	h->l.script = T_SCRIPT;
	h->l.shared = T_SHARED;
	h->l.not_string_mask = 0xff80;
	h->l.builtins = 0x1000;
	h->l.builtins_end = 0x9000;
}

static inline uint8_t *v8_heap_at(struct v8_heap *h, uint64_t address)
{
	return h->bytes + (address - V8_HEAP_BASE);
}

static inline void v8_heap_set(struct v8_heap *h, uint64_t object, unsigned offset, uint64_t word)
{
	put_le64(v8_heap_at(h, object - 1 + offset), word);
}

/* An object of zeros, tagged; its address is a multiple of `align`. */
static inline uint64_t v8_heap_new(struct v8_heap *h, unsigned type, size_t nbytes, size_t align)
{
	uint64_t object;

	if (!h->maps[type]) {
		h->used = (h->used + 15) / 16 * 16;
		h->maps[type] = V8_HEAP_BASE + h->used + 1;
		h->bytes[h->used + V8_MAP_TYPE] = (uint8_t)type;
		h->used += 16;
	}
	h->used = (h->used + align - 1) / align * align;
	object = V8_HEAP_BASE + h->used + 1;
	h->used += (nbytes + 7) / 8 * 8;
	if (h->used > sizeof(h->bytes))
		abort();
	v8_heap_set(h, object, 0, h->maps[type]);
	return object;
}

static inline uint64_t v8_heap_text(struct v8_heap *h, const char *text)
{
	size_t n = strlen(text);
	uint64_t s = v8_heap_new(h, T_FLAT, 16 + n, 8);

	put_le32(v8_heap_at(h, s - 1 + 12), (uint32_t)n);
	memcpy(v8_heap_at(h, s - 1 + 16), text, n);
	return s;
}

static inline uint64_t v8_heap_byte_array(struct v8_heap *h, const void *bytes, size_t n)
{
	uint64_t a = v8_heap_new(h, T_BYTES, V8_ELEMENTS + n, 8);

	v8_heap_set(h, a, V8_LENGTH, v8_small((uint32_t)n));
	memcpy(v8_heap_at(h, a - 1 + V8_ELEMENTS), bytes, n);
	return a;
}

static inline uint64_t v8_heap_script(struct v8_heap *h, const char *path, const char *source,
				      uint32_t id)
{
	uint64_t s = v8_heap_new(h, T_SCRIPT, 120, 8);

	v8_heap_set(h, s, 8, v8_heap_text(h, source));
	v8_heap_set(h, s, 16, v8_heap_text(h, path));
	v8_heap_set(h, s, 64, v8_small(id));
	return s;
}

/*
 * A SharedFunctionInfo with that name, in a script, beginning at a position; its data is NULL. Its
 * ScopeInfo has no locals, a function's name (bits 12 and 13) and positions behind it.
 */
static inline uint64_t v8_heap_function(struct v8_heap *h, const char *name, uint64_t script,
					uint32_t position)
{
	uint64_t shared = v8_heap_new(h, T_SHARED, 64, 8);
	uint64_t scope = v8_heap_new(h, T_SCOPE, 80, 8);

	v8_heap_set(h, scope, 8, v8_small(1u << 12));
	v8_heap_set(h, scope, 32, v8_heap_text(h, name));
	v8_heap_set(h, scope, 48, v8_small(position));
	v8_heap_set(h, shared, h->l.row.shared_name, scope);
	v8_heap_set(h, shared, h->l.row.shared_script, script);
	return shared;
}

/* A closure of it. */
static inline uint64_t v8_heap_closure(struct v8_heap *h, uint64_t shared)
{
	uint64_t f = v8_heap_new(h, T_FUNCTION, 72, 8);

	v8_heap_set(h, f, h->l.row.function_shared, shared);
	return f;
}
