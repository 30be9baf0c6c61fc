#include "managed/hotspot/exception.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "managed/hotspot/blob.h"
#include "managed/hotspot/method.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ceilings; in brackets the largest seen. */
#define SUPERS_MAX 64u                       /* (8) */
#define FIELDS_MAX 64u                       /* of Throwable and String (7) */
#define FIELD_BYTES_MAX 512u                 /* their description in the target (66) */
#define OFFSET_MAX 4096u
#define CLASS_NAME_MAX 4000u

/* Throwable has five references and an int: 40 bytes at most with narrow ones, 56 with wide. */
#define NARROW_THROWABLE_MAX 47u

/* ---- classes --------------------------------------------------------------------------------- */

static bool is_address(uint64_t v)
{
	return v >= 4096 && v < UINT64_C(1) << 47 && v % 8 == 0;
}

static uint64_t widen(const struct hotspot_layout *l, const struct managed_memory *m,
		      enum hotspot_field_id base_id, enum hotspot_field_id shift_id, uint32_t v)
{
	uint64_t base, shift;

	if (!hotspot_read_static(l, m, base_id, &base) ||
	    !hotspot_read_static(l, m, shift_id, &shift))
		return 0;
	return base + ((uint64_t)v << (shift & 31));
}

/* The class of an object, as it is said in this way. */
static uint64_t class_of(const struct hotspot_layout *l, const struct managed_memory *m,
			 uint64_t object, enum hotspot_class_way way)
{
	uint8_t head[16];

	if (!is_address(object) || !managed_read(m, object, head, sizeof(head)))
		return 0;
	if (way == CLASS_WIDE)
		return le64(head + 8);
	/* markWord::klass_shift is 42 with compact headers (JEP 450). */
	return widen(l, m, F_NARROW_CLASS_BASE, F_NARROW_CLASS_SHIFT,
		     way == CLASS_NARROW ? le32(head + 8) : (uint32_t)(le64(head) >> 42));
}

static bool class_is(const struct hotspot_layout *l, const struct managed_memory *m,
		     uint64_t klass, const char *name)
{
	char *is = hotspot_class_read(l, m, klass);
	bool same = is && strcmp(is, name) == 0;

	free(is);
	return same;
}

/* Its ancestor below java.lang.Object; 0 = none. */
static uint64_t oldest_ancestor(const struct hotspot_layout *l, const struct managed_memory *m,
				uint64_t klass)
{
	uint64_t below = 0, super;
	unsigned i;

	for (i = 0; i < SUPERS_MAX && is_address(klass); i++) {
		if (!hotspot_read(l, m, F_CLASS_SUPER, klass, &super))
			return 0;
		if (!super)
			return below;
		below = klass;
		klass = super;
	}
	return 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

struct fields {
	const struct hotspot_layout *l;
	const struct managed_memory *m;
	uint64_t pool, npool;
	uint8_t bytes[FIELD_BYTES_MAX];
	uint32_t n;                          /* of them */
};

/* An Array<u1> or Array<u2>: int length, then the elements. */
static bool read_array(struct fields *f, uint64_t array, uint32_t unit)
{
	uint8_t length[4];

	if (!is_address(array) || !managed_read(f->m, array, length, sizeof(length)))
		return false;
	f->n = le32(length) < FIELD_BYTES_MAX / unit ? le32(length) * unit : FIELD_BYTES_MAX;
	return managed_read(f->m, array + 4, f->bytes, f->n);
}

static bool is_named(const struct fields *f, uint32_t index, const char *name)
{
	char *is = hotspot_pool_symbol(f->l, f->m, f->pool, index, f->npool, 64);
	bool same = is && strcmp(is, name) == 0;

	free(is);
	return same;
}

/* To 20: six u2 each: flags, name, signature, value, and the offset above a tag of two bits. */
static uint32_t find_in_array(const struct fields *f, uint32_t nfields, const char *name)
{
	const uint8_t *at = f->bytes;
	uint32_t i;

	for (i = 0; i < nfields && i < f->n / 12; i++, at += 12)
		if (is_named(f, le16(at + 2), name))
			return le32(at + 8) >> 2;
	return 0;
}

/*
 * From 21: numbers: how many fields, how many of the JVM's own; then of each name, signature,
 * offset, access flags, flags, and what bits of these say (0, 2 and 4; in 28 3, 5 and 7): value,
 * signature, group.
 */
static uint32_t find_in_stream(const struct fields *f, const char *name)
{
	uint32_t at = 0, n, v[5], more, i, k;
	unsigned min = f->l->unsigned5_min;

	if (!hotspot_unsigned5(f->bytes, f->n, min, &at, &n) ||
	    !hotspot_unsigned5(f->bytes, f->n, min, &at, &more))
		return 0;
	for (i = 0; i < n && i < FIELDS_MAX; i++) {
		for (k = 0; k < 5; k++)
			if (!hotspot_unsigned5(f->bytes, f->n, min, &at, &v[k]))
				return 0;
		if (is_named(f, v[0], name))
			return v[2];
		for (k = 0; k < HOTSPOT_FIELD_FLAGS; k++)
			if (v[4] >> f->l->field_flags[k] & 1 &&
			    !hotspot_unsigned5(f->bytes, f->n, min, &at, &more))
				return 0;
	}
	return 0;
}

/* The offset of a field in the objects of a class; 0 = it has none of its own. */
static uint32_t field_offset(const struct hotspot_layout *l, const struct managed_memory *m,
			     uint64_t klass, const char *name)
{
	struct fields f = {.l = l, .m = m};
	uint64_t array, nfields = FIELDS_MAX;
	uint32_t offset;

	if (!hotspot_read(l, m, F_CLASS_POOL, klass, &f.pool) ||
	    !hotspot_read(l, m, F_POOL_LENGTH, f.pool, &f.npool))
		return 0;
	f.npool = (uint32_t)f.npool;
	if (hotspot_has(l, F_CLASS_FIELD_STREAM)) {
		if (!hotspot_read(l, m, F_CLASS_FIELD_STREAM, klass, &array) ||
		    !read_array(&f, array, 1))
			return 0;
		offset = find_in_stream(&f, name);
	} else {
		if (!hotspot_read(l, m, F_CLASS_FIELDS, klass, &array) ||
		    !hotspot_read(l, m, F_CLASS_NFIELDS, klass, &nfields) ||
		    !read_array(&f, array, 2))
			return 0;
		offset = find_in_array(&f, (uint32_t)nfields & 0xffff, name);
	}
	return offset <= OFFSET_MAX ? offset : 0;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/*
 * A reference in an object. The generational ZGC keeps colours in its low bits: the address begins
 * behind the one that is set of bits 12 to 15 (zAddress.hpp).
 */
static uint64_t read_reference(const struct hotspot_layout *l, const struct managed_memory *m,
			       const struct hotspot_exceptions *known, uint64_t at)
{
	uint8_t bytes[8];
	uint64_t v;
	unsigned bit;

	if (!managed_read(m, at, bytes, known->wide ? 8 : 4))
		return 0;
	if (!known->wide)
		return le32(bytes) ? widen(l, m, F_NARROW_BASE, F_NARROW_SHIFT, le32(bytes)) : 0;
	v = le64(bytes);
	if (v < UINT64_C(1) << 47)
		return v;
	for (bit = 12; bit < 16; bit++)
		if (v >> bit & 1)
			return v >> (bit + 1);
	return 0;
}

/* Latin-1 or UTF-16 as UTF-8. */
static void put_text(const uint8_t *bytes, size_t nchars, bool utf16, char *out, size_t room)
{
	size_t at = 0, used = 0, n;
	char one[4];

	while (at < nchars) {
		uint32_t c = utf16 ? utf16_next(bytes, nchars, &at) : bytes[at++];

		n = utf8_encode(c ? c : ' ', one);
		if (used + n >= room)
			break;
		memcpy(out + used, one, n);
		used += n;
	}
	out[used] = '\0';
}

/* Where an array has its length, and its first byte. */
static void array_parts(const struct hotspot_layout *l, enum hotspot_class_way way,
			uint64_t *length, uint64_t *data)
{
	*length = way == CLASS_WIDE ? 16 : way == CLASS_NARROW ? 12 : 8;
	/* Before 23 the elements began at a whole word (JDK-8139457). */
	*data = way == CLASS_WIDE && l->major < 23 ? 24 : *length + 4;
}

static void read_string(const struct hotspot_layout *l, const struct managed_memory *m,
			struct hotspot_exceptions *known, uint64_t string, char *out, size_t room)
{
	uint64_t klass = class_of(l, m, string, known->way), array, length_at, data_at;
	uint8_t length[4], coder = 1, bytes[2 * MANAGED_MESSAGE_BYTES];
	size_t n;

	if (!is_address(klass) || !class_is(l, m, klass, "java/lang/String"))
		return;
	if (!known->value) {
		known->value = field_offset(l, m, klass, "value");
		known->coder = field_offset(l, m, klass, "coder");      /* none in 8 */
	}
	array = known->value ? read_reference(l, m, known, string + known->value) : 0;
	array_parts(l, known->way, &length_at, &data_at);
	if (!is_address(array) || !managed_read(m, array + length_at, length, sizeof(length)) ||
	    (known->coder && !managed_read(m, string + known->coder, &coder, 1)))
		return;
	n = le32(length);
	if (!known->coder)
		n = n < sizeof(bytes) ? 2 * n : sizeof(bytes);
	n = n < sizeof(bytes) ? n : sizeof(bytes);
	if (coder <= 1 && managed_read(m, array + data_at, bytes, n))
		put_text(bytes, coder ? n / 2 : n, coder, out, room);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Learn from the first exception; what it says of its class must lead to Throwable. */
static bool learn(const struct hotspot_layout *l, const struct managed_memory *m, uint64_t object,
		  struct hotspot_exceptions *known)
{
	unsigned way;
	uint64_t oldest, size;

	for (way = CLASS_NARROW; way < CLASS_WAYS; way++) {
		oldest = oldest_ancestor(l, m, class_of(l, m, object, way));
		if (!oldest || !class_is(l, m, oldest, "java/lang/Throwable") ||
		    !hotspot_read(l, m, F_CLASS_LAYOUT, oldest, &size))
			continue;
		known->throwable = oldest;
		known->way = way;
		known->wide = (uint32_t)size > NARROW_THROWABLE_MAX;
		known->message = field_offset(l, m, oldest, "detailMessage");
		return true;
	}
	return false;
}

bool hotspot_exception_read(const struct hotspot_layout *l, const struct managed_memory *memory,
			    uint64_t object, struct hotspot_exceptions *known,
			    struct managed_thrown *out)
{
	uint64_t klass;
	char *name;

	memset(out, 0, sizeof(*out));
	if (!known->throwable && !learn(l, memory, object, known))
		return false;
	klass = class_of(l, memory, object, known->way);
	name = oldest_ancestor(l, memory, klass) == known->throwable
		       ? hotspot_class_read(l, memory, klass) : NULL;
	if (!name)
		return false;
	hotspot_class_name(name);
	snprintf(out->type, sizeof(out->type), "%s", name);
	free(name);
	if (known->message)
		read_string(l, memory, known,
			    read_reference(l, memory, known, object + known->message),
			    out->message, sizeof(out->message));
	return true;
}

uint64_t hotspot_collections(const struct hotspot_layout *l, const struct managed_memory *memory,
			     uint64_t *heap)
{
	uint64_t n;

	return hotspot_read_static(l, memory, F_HEAP_OF_OBJECTS, heap) && is_address(*heap) &&
	       hotspot_read(l, memory, F_COLLECTIONS, *heap, &n) ? (uint32_t)n : 0;
}
