/*
 *	header: u16 magic, u8 version, u8 flags, u32 header_bytes,
 *	        u32 types_offset, types_bytes, strings_offset, strings_bytes (from the header's end)
 *	type:   u32 name (a place in the strings), u32 info, u32 bytes or type, then by its kind
 *	info:   0x0000ffff number of parts, 0x1f000000 kind, 0x80000000 members may be bit fields
 *	member: u32 name, u32 type, u32 offset in bits (with bit fields: 24 bits, 8 of its width)
 *
 * Types have the numbers 1, 2, 3...
 */
#include "source/probe/btf.h"

#include "base/array.h"
#include "base/bytes.h"

#define MAGIC 0xeb9f
#define HEADER_BYTES 24u
#define TYPE_BYTES 12u
#define MEMBER_BYTES 12u

/* What follows a type of each kind: bytes once, and bytes of each part. */
static const struct {
	uint8_t once, each;
} tails[] = {
	[1] = {4, 0},                        /* INT */
	[2] = {0, 0},                        /* PTR */
	[3] = {12, 0},                       /* ARRAY */
	[BTF_STRUCT] = {0, MEMBER_BYTES},
	[5] = {0, MEMBER_BYTES},             /* UNION */
	[6] = {0, 8},                        /* ENUM */
	[13] = {0, 8},                       /* FUNC_PROTO */
	[14] = {4, 0},                       /* VAR */
	[15] = {0, 12},                      /* DATASEC */
	[17] = {4, 0},                       /* DECL_TAG */
	[19] = {0, 12},                      /* ENUM64; FWD to FUNC, FLOAT, TYPE_TAG have none */
};

bool btf_open(const uint8_t *bytes, size_t n, struct btf *out)
{
	uint64_t types, strings;
	uint32_t header;

	if (n < HEADER_BYTES || le16(bytes) != MAGIC)
		return false;
	header = le32(bytes + 4);
	types = (uint64_t)header + le32(bytes + 8);
	strings = (uint64_t)header + le32(bytes + 16);
	*out = (struct btf){.types_bytes = le32(bytes + 12), .strings_bytes = le32(bytes + 20)};
	if (types > n || out->types_bytes > n - types || strings > n ||
	    out->strings_bytes > n - strings || !out->strings_bytes)
		return false;
	out->types = bytes + types;
	out->strings = bytes + strings;
	return !out->strings[out->strings_bytes - 1];
}

static bool is_named(const struct btf *b, const uint8_t *name, const char *wanted)
{
	uint32_t at = le32(name);

	return at < b->strings_bytes && strcmp((const char *)b->strings + at, wanted) == 0;
}

static unsigned kind_of(const uint8_t *type)
{
	return type[7] & 0x1f;
}

void btf_find(const struct btf *b, struct btf_type *wanted, unsigned n)
{
	uint32_t at = 0, id;
	unsigned i;

	for (i = 0; i < n; i++)
		wanted[i].id = 0;
	for (id = 1; b->types_bytes - at >= TYPE_BYTES; id++) {
		const uint8_t *type = b->types + at;
		unsigned kind = kind_of(type);
		uint32_t bytes = TYPE_BYTES;

		if (kind >= COUNT_OF(tails))
			return;              /* it is not known where the next one begins */
		bytes += tails[kind].once + tails[kind].each * (uint32_t)le16(type + 4);
		if (bytes > b->types_bytes - at)
			return;
		for (i = 0; i < n; i++)
			if (kind == wanted[i].kind && !wanted[i].id &&
			    is_named(b, type, wanted[i].name)) {
				wanted[i].id = id;
				wanted[i].at = at;
			}
		at += bytes;
	}
}

bool btf_member(const struct btf *b, const struct btf_type *structure, const char *name,
		uint32_t *offset)
{
	const uint8_t *type = b->types + structure->at, *member = type + TYPE_BYTES;
	bool bit_fields = structure->id && type[7] & 0x80;
	unsigned i, n = structure->id && kind_of(type) == BTF_STRUCT ? le16(type + 4) : 0;

	for (i = 0; i < n; i++, member += MEMBER_BYTES) {
		uint32_t bits = le32(member + 8);

		if (!is_named(b, member, name))
			continue;
		*offset = bits / 8;
		return bits % 8 == 0 && (!bit_fields || bits < 1u << 24);
	}
	return false;
}
