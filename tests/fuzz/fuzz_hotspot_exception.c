/*
 * Any bytes as the memory of a JVM that throws.
 *
 *   0    u8   bit 0: fields are a stream, as from 21 on
 *   1    the memory, from address 4096 on, where the exception is; offsets of fields are small
 */
#include "managed/hotspot/exception.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define BASE 4096u

struct memory {
	const uint8_t *bytes;
	size_t n;
};

static size_t read_bytes(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct memory *m = ctx;

	if (address < BASE || address - BASE >= m->n)
		return 0;
	n = n < m->n - (address - BASE) ? n : m->n - (size_t)(address - BASE);
	memcpy(to, m->bytes + (address - BASE), n);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct { enum hotspot_field_id id; uint64_t at; uint8_t bytes; } fields[] = {
		{F_KLASS_NAME, 8, 8}, {F_CLASS_SUPER, 16, 8}, {F_CLASS_LAYOUT, 24, 4},
		{F_CLASS_POOL, 32, 8}, {F_POOL_LENGTH, 8, 4}, {F_SYMBOL_LENGTH, 0, 2},
		{F_SYMBOL_BODY, 4, 8}, {F_NARROW_BASE, BASE, 8}, {F_NARROW_SHIFT, BASE + 8, 4},
		{F_NARROW_CLASS_BASE, BASE, 8}, {F_NARROW_CLASS_SHIFT, BASE + 8, 4},
		{F_HEAP_OF_OBJECTS, BASE + 16, 8}, {F_COLLECTIONS, 24, 4}, {F_CLASS_FIELDS, 40, 8},
		{F_CLASS_NFIELDS, 48, 2}, {F_CLASS_FIELD_STREAM, 40, 8}};
	struct hotspot_layout l = {.major = 17, .sizes[T_CONSTANT_POOL] = 16};
	struct memory in = {.bytes = data + 1, .n = n - 1};
	struct managed_memory m = {.read = read_bytes, .ctx = &in};
	struct hotspot_exceptions known = {0};
	struct managed_thrown out;
	uint64_t heap;
	size_t i;

	if (!n)
		return 0;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		l.fields[fields[i].id] = (struct hotspot_field){
			.found = true, .bytes = fields[i].bytes, .at = fields[i].at};
	l.fields[F_CLASS_FIELD_STREAM].found = data[0] & 1;
	l.unsigned5_min = data[0] & 1;
	hotspot_exception_read(&l, &m, BASE + 256, &known, &out);
	hotspot_exception_read(&l, &m, BASE + 256, &known, &out);
	hotspot_collections(&l, &m, &heap);
	return 0;
}
