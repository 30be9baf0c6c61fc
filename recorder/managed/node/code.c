#include "managed/node/code.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64u
#define SEARCH_BYTES (1536u << 10)
#define SEARCH_PIECE (16u << 10)
#define CODE_MAX_BYTES (8u << 20)
#define TABLE_MAX_BYTES (1u << 20)
#define LITERALS_MAX 64u                     /* inlined functions that get names */
#define HEADERS_MAX 512u                     /* looked at until code is found */

/* ---- the code of an address ------------------------------------------------------------------ */

static bool element(const struct managed_memory *m, uint64_t array, unsigned i, uint64_t *out)
{
	return v8_word(m, array, V8_ELEMENTS + 8 * i, out);
}

static bool is_optimized(const struct v8_layout *l, const struct v8_code_mark *mark)
{
	unsigned kind = mark->flags & 15;

	return kind == l->row.kind_maglev || kind == l->row.kind_turbofan;
}

/* 0: not known */
static uint64_t read_shared(const struct v8_layout *l, const struct managed_memory *m,
			    uint64_t deopt)
{
	uint64_t shared = 0;

	if (!v8_is_object(deopt) || !element(m, deopt, l->row.deopt_shared, &shared) ||
	    (l->row.deopt_wrapped && !v8_word(m, shared, 8, &shared)))
		return 0;
	return v8_is_object(shared) ? shared : 0;
}

static bool read_mark(const struct v8_layout *l, const struct managed_memory *m, uint64_t code,
		      struct v8_code_mark *out)
{
	uint8_t bytes[V8_CODE_BYTES];

	if (!v8_is_object(code) || !managed_read(m, code - 1, bytes, sizeof(bytes)))
		return false;
	*out = (struct v8_code_mark){
		.code = code,
		.deopt = le64(bytes + l->row.code_deopt),
		.positions = le64(bytes + l->row.code_positions),
		.flags = le32(bytes + l->row.code_flags),
		.bytes = le32(bytes + l->row.code_size),
	};
	if (is_optimized(l, out))
		out->shared = read_shared(l, m, out->deopt);
	return true;
}

/* The object before the instructions at begin, checked against what it says of them. */
static bool read_header(const struct v8_layout *l, const struct managed_memory *m, uint64_t begin,
			struct v8_code_mark *out)
{
	uint64_t header = begin - l->row.code_header + 1, code = header, start;

	if (v8_type(m, header) != l->stream)
		return false;
	if (l->row.code_stream &&
	    (!v8_word(m, header, 8, &code) || v8_type(m, code) != l->code ||
	     !v8_word(m, code, l->row.code_start, &start) || start != begin))
		return false;
	return read_mark(l, m, code, out) && out->bytes && out->bytes <= CODE_MAX_BYTES;
}

/* Backwards in steps of 64 to the first header of code; most places have no tagged word. */
static bool find_header(const struct v8_layout *l, const struct managed_memory *m, uint64_t pc,
			struct v8_code *out)
{
	uint64_t at = pc & ~(uint64_t)(ALIGN - 1), low = at, lowest = at - SEARCH_BYTES;
	uint8_t bytes[SEARCH_PIECE + ALIGN * 4];
	unsigned tried = 0;
	size_t have = 0;

	if (at < SEARCH_BYTES * 2)
		return false;
	for (; at > lowest; at -= ALIGN) {
		uint64_t header = at - l->row.code_header;

		if (header < low || !have) {
			/* Pages below may not be there: read less and less. */
			low = header & ~(uint64_t)4095;
			low = have ? low - (SEARCH_PIECE - 4096) : low;
			have = at + ALIGN - low;
			if (have > sizeof(bytes) || !managed_read(m, low, bytes, have)) {
				low = header & ~(uint64_t)4095;
				have = at + ALIGN - low;
				if (have > sizeof(bytes) || !managed_read(m, low, bytes, have))
					return false;
			}
		}
		if (!v8_is_object(le64(bytes + (header - low))))
			continue;
		if (++tried > HEADERS_MAX)
			return false;
		if (!read_header(l, m, at, &out->mark))
			continue;
		out->begin = at;
		out->end = at + out->mark.bytes;
		return pc < out->end;
	}
	return false;
}

/* ---- whose functions ------------------------------------------------------------------------- */

/* The bytes of an array of bytes; NULL = there are none. */
uint8_t *v8_positions_read(const struct managed_memory *m, uint64_t array, uint32_t *n)
{
	uint64_t length;
	uint8_t *bytes;

	*n = 0;
	if (!v8_word(m, array, V8_LENGTH, &length) || !v8_is_count(length) ||
	    length >> 32 > TABLE_MAX_BYTES || !(length >> 32))
		return NULL;
	bytes = malloc((size_t)(length >> 32));
	if (bytes && !managed_read(m, array - 1 + V8_ELEMENTS, bytes, (size_t)(length >> 32))) {
		free(bytes);
		return NULL;
	}
	*n = bytes ? (uint32_t)(length >> 32) : 0;
	return bytes;
}

static void read_literals(const struct v8_layout *l, const struct managed_memory *m,
			  struct v8_code *out)
{
	uint64_t count, array, length;
	uint32_t i, n;

	if (!element(m, out->mark.deopt, l->row.deopt_count, &count) || !v8_is_count(count) ||
	    !element(m, out->mark.deopt, l->row.deopt_literals, &array) ||
	    !v8_word(m, array, V8_LENGTH, &length) || !v8_is_count(length))
		return;
	n = (uint32_t)(count >> 32);
	if (!n || n > length >> 32)
		return;
	n = n < LITERALS_MAX ? n : LITERALS_MAX;
	out->literals = calloc(n, sizeof(*out->literals));
	for (i = 0; out->literals && i < n; i++) {
		uint64_t word;

		if (element(m, array, i, &word) && (word & 3) != 0)
			out->literals[i] = word & ~(uint64_t)2;      /* it may be weak */
	}
	out->nliterals = out->literals ? n : 0;
}

static void read_optimized(const struct v8_layout *l, const struct managed_memory *m,
			   struct v8_code *out)
{
	uint64_t inlining = 0;

	if (!v8_is_object(out->mark.deopt))
		return;
	read_literals(l, m, out);
	out->positions = v8_positions_read(m, out->mark.positions, &out->npositions);
	if (element(m, out->mark.deopt, l->row.deopt_inlining, &inlining))
		out->inlining = v8_positions_read(m, inlining, &out->ninlining);
	out->ninlining /= 16;
}

bool v8_code_find(const struct v8_layout *l, const struct managed_memory *m, uint64_t pc,
		  struct v8_code *out)
{
	memset(out, 0, sizeof(*out));
	if (!find_header(l, m, pc, out))
		return false;
	out->baseline = (out->mark.flags & 15) == l->row.kind_sparkplug;
	out->regexp = l->row.kind_regexp && (out->mark.flags & 15) == l->row.kind_regexp;
	out->optimized = is_optimized(l, &out->mark);
	if (out->optimized)
		read_optimized(l, m, out);
	return true;
}

bool v8_code_is(const struct v8_layout *l, const struct managed_memory *m, uint64_t begin,
		const struct v8_code_mark *mark)
{
	struct v8_code_mark now;

	return read_header(l, m, begin, &now) && now.code == mark->code &&
	       now.deopt == mark->deopt && now.positions == mark->positions &&
	       now.flags == mark->flags && now.bytes == mark->bytes && now.shared == mark->shared;
}

void v8_code_free(struct v8_code *c)
{
	free(c->positions);
	free(c->inlining);
	free(c->literals);
	c->positions = c->inlining = NULL;
	c->literals = NULL;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* A number of 7 bits a byte, the low ones first. */
static bool take_number(const uint8_t *bytes, uint32_t n, uint32_t *at, uint64_t *out)
{
	unsigned shift;

	for (*out = 0, shift = 0; *at < n && shift < 63; shift += 7) {
		uint8_t b = bytes[(*at)++];

		*out |= (uint64_t)(b & 127) << shift;
		if (!(b & 128))
			return true;
	}
	return false;
}

static int64_t signed_of(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

bool v8_position_at(const struct v8_layout *l, const uint8_t *table, uint32_t n, uint32_t offset,
		    uint64_t *out)
{
	int64_t code = -1, position = 0;
	bool found = false;
	uint32_t at = 0;

	while (at < n) {
		uint64_t code_value, position_value;
		int64_t by;

		if (!take_number(table, n, &at, &code_value) ||
		    !take_number(table, n, &at, &position_value))
			return found;
		by = l->row.positions_unsigned ? (int64_t)(code_value >> 2)
					       : signed_of(code_value);
		code += by >= 0 ? by : -(by + 1);
		position = (int64_t)((uint64_t)position + (uint64_t)signed_of(position_value));
		if (code > (int64_t)offset || code > (int64_t)CODE_MAX_BYTES)
			return found;
		*out = (uint64_t)position;
		found = true;
	}
	return found;
}

/* Of a SourcePosition: bit 0 external, 1 to 30 the script's offset + 1, 31 to 46 inlining. */
int32_t v8_position_offset(uint64_t position)
{
	return position & 1 ? -1 : (int32_t)(position >> 1 & 0x3fffffff) - 1;
}

unsigned v8_inlined_at(const struct v8_layout *l, const struct v8_code *c, uint32_t offset,
		       struct v8_inlined *out, unsigned max)
{
	uint32_t id, last = UINT32_MAX;
	uint64_t position;
	unsigned n = 0;

	if (!c->npositions ||
	    !v8_position_at(l, c->positions, c->npositions, offset, &position))
		return 0;
	for (; n + 1 < max; last = id) {
		const uint8_t *entry;

		id = (uint32_t)(position >> 31 & 0xffff);
		if (!id)
			break;
		if (id > c->ninlining || id >= last)
			return 0;
		entry = c->inlining + (size_t)(id - 1) * 16;
		out[n++] = (struct v8_inlined){.function = (int32_t)le32(entry + 8),
					       .position = v8_position_offset(position)};
		position = le64(entry);
	}
	out[n++] = (struct v8_inlined){-1, v8_position_offset(position)};
	return n;
}
