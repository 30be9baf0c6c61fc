/* Finds a record's class and reads its fields. The tables are in class_*.c. */
#include "base/bytes.h"
#include "source/etw/class.h"
#include "source/etw/tables_private.h"

#include <string.h>

/* The most frequent classes come first. */
static const struct etw_table *const lists[] = {
	etw_kernel_tables, etw_clr_tables, etw_system_tables,
};

/* The table of a GUID with this kind of header; header < 0: any kind. */
static const struct etw_table *table_of(const struct etw_guid *guid, int header)
{
	for (size_t l = 0; l < COUNT_OF(lists); l++)
		for (const struct etw_table *t = lists[l]; t->nclasses; t++)
			if (guid_same(&t->guid, guid) && (header < 0 || t->header == header))
				return t;
	return NULL;
}

static uint32_t key_of(const struct etw_record *record)
{
	return record->header == ETW_CLASSIC ? record->opcode : record->id;
}

const struct etw_class *etw_class_find(const struct etw_record *record)
{
	const struct etw_table *t = table_of(&record->guid, record->header);
	uint32_t key = key_of(record), low = 0, high;

	if (!t)
		return NULL;
	for (high = t->nclasses; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (t->classes[middle].key == key)
			return &t->classes[middle];
		if (t->classes[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct etw_class *etw_class_recall(struct etw_class_memo *memo,
					 const struct etw_record *record)
{
	uint32_t kind = ((uint32_t)record->header + 1) << 16 | key_of(record);
	uint64_t mixed = (le64(record->guid.bytes) ^ kind) * 0x9e3779b97f4a7c15u;
	struct etw_class_known *known = &memo->known[mixed >> 58];

	if (known->kind != kind || !guid_same(&known->guid, &record->guid))
		*known = (struct etw_class_known){record->guid, kind, etw_class_find(record)};
	return known->class;
}

const char *etw_class_provider(const struct etw_guid *guid)
{
	const struct etw_table *t = table_of(guid, -1);

	return t ? t->provider : NULL;
}

const struct etw_class *etw_class_table(uint32_t index, uint32_t *nclasses, struct etw_guid *guid)
{
	for (size_t l = 0; l < COUNT_OF(lists); l++)
		for (const struct etw_table *t = lists[l]; t->nclasses; t++)
			if (index-- == 0) {
				*nclasses = t->nclasses;
				*guid = t->guid;
				return t->classes;
			}
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t sign_extended(uint64_t v, uint32_t nbytes)
{
	uint64_t sign = (uint64_t)1 << (8 * nbytes - 1);

	return (v ^ sign) - sign;
}

/* The size of a fixed-size type; 0 for the others. */
static uint32_t fixed_size(const struct etw_field *field, uint32_t pointer_bytes)
{
	switch (field->type) {
	case ETW_U8: case ETW_I8: case ETW_X8: case ETW_BOOL8:
		return 1;
	case ETW_U16: case ETW_I16: case ETW_X16: case ETW_PORT:
		return 2;
	case ETW_U32: case ETW_I32: case ETW_X32: case ETW_F32: case ETW_BOOL32: case ETW_TIME_T:
	case ETW_IP4:
		return 4;
	case ETW_U64: case ETW_I64: case ETW_X64: case ETW_F64: case ETW_FILETIME:
	case ETW_SINCE: case ETW_TICKS:
		return 8;
	case ETW_POINTER: case ETW_NAME_KEY: case ETW_SIZE:
		return pointer_bytes;
	case ETW_WORDS:
		return field->n * pointer_bytes;
	case ETW_GUID: case ETW_SYSTEMTIME: case ETW_IP6:
		return 16;
	case ETW_UTF16_FIXED:
		return 2u * field->n;
	case ETW_UTF8_FIXED:
		return field->n;
	default:
		return 0;
	}
}

/* The bits of a float as a double. */
static uint64_t float_bits(const uint8_t *at)
{
	uint32_t bits = le32(at);
	uint64_t wide;
	double d;
	float f;

	memcpy(&f, &bits, sizeof(f));
	d = (double)f;
	memcpy(&wide, &d, sizeof(wide));
	return wide;
}

double etw_value_double(const struct etw_value *value)
{
	double d;

	memcpy(&d, &value->u, sizeof(d));
	return d;
}

uint64_t etw_value_address(const struct etw_value *value, uint32_t pointer_bytes, uint64_t i)
{
	return le_sized(value->bytes + i * pointer_bytes, pointer_bytes);
}

static void fixed_value(const struct etw_field *field, const uint8_t *at, uint32_t n,
			struct etw_value *out)
{
	out->bytes = at;
	out->nbytes = n;
	switch (field->type) {
	case ETW_GUID: case ETW_SYSTEMTIME: case ETW_IP6: case ETW_IP4: case ETW_WORDS:
		break;
	case ETW_UTF16_FIXED:
		for (out->nbytes = 0; out->nbytes < n && le16(at + out->nbytes);)
			out->nbytes += 2;
		break;
	case ETW_UTF8_FIXED:
		for (out->nbytes = 0; out->nbytes < n && at[out->nbytes];)
			out->nbytes++;
		break;
	case ETW_I8: case ETW_I16: case ETW_I32:
		out->u = sign_extended(le_sized(at, n), n);
		break;
	case ETW_F32:
		out->u = float_bits(at);
		break;
	case ETW_PORT:
		out->u = (uint64_t)at[0] << 8 | at[1];
		break;
	default:
		out->u = le_sized(at, n);
		break;
	}
}

/* Whether one of the four 16-bit units is 0. */
static bool has_zero_unit(uint64_t v)
{
	return (v - 0x0001000100010001u) & ~v & 0x8000800080008000u;
}

/* The length of the text at `at`, without its NUL. after: behind the NUL, or the end. */
static uint32_t text_length(const uint8_t *at, const uint8_t *end, uint32_t width,
			    const uint8_t **after)
{
	const uint8_t *p = at;

	if (width == 1) {
		p = memchr(at, 0, (size_t)(end - at));
		p = p ? p : end;
	} else {
		while (end - p >= 8 && !has_zero_unit(le64(p)))
			p += 8;
		while (end - p >= 2 && (p[0] | p[1]))
			p += 2;
	}
	*after = (size_t)(end - p) >= width ? p + width : end;
	return (uint32_t)(p - at);
}

/* The size of a bare SID; 0 = it does not fit. */
static uint32_t sid_size(const uint8_t *at, const uint8_t *end)
{
	uint32_t n;

	if (end - at < 8)
		return 0;
	n = 8 + 4u * at[1];
	return n <= (size_t)(end - at) ? n : 0;
}

static const uint8_t *read_wbem_sid(const uint8_t *at, const uint8_t *end, uint32_t pointer_bytes,
			       struct etw_value *out)
{
	uint32_t n;

	if (end - at < 4)
		return NULL;
	if (le32(at) == 0) {
		out->bytes = at;
		return at + 4;
	}
	if ((size_t)(end - at) < 2 * pointer_bytes)
		return NULL;
	at += 2 * pointer_bytes;
	n = sid_size(at, end);
	if (!n)
		return NULL;
	out->bytes = at;
	out->nbytes = n;
	return at + n;
}

static const uint8_t *take_bytes(const uint8_t *at, size_t n, const uint8_t *end,
				 struct etw_value *out)
{
	if (n > (size_t)(end - at))
		return NULL;
	out->bytes = at;
	out->nbytes = (uint32_t)n;
	return at + n;
}

const uint8_t *etw_value_read(const struct etw_field *field, uint32_t pointer_bytes,
			      const uint8_t *at, const uint8_t *end, struct etw_value *out)
{
	uint32_t n = fixed_size(field, pointer_bytes);
	const uint8_t *after;

	*out = (struct etw_value){0};
	if (n) {
		if (n > (size_t)(end - at))
			return NULL;
		fixed_value(field, at, n, out);
		return at + n;
	}
	switch (field->type) {
	case ETW_UTF16Z: case ETW_UTF8Z:
		if (at == end)
			return NULL;
		out->bytes = at;
		out->nbytes = text_length(at, end, field->type == ETW_UTF16Z ? 2 : 1, &after);
		return after;
	case ETW_UTF16_COUNTED: case ETW_UTF8_COUNTED: case ETW_BYTES_COUNTED:
	case ETW_SOCKET_COUNTED:
		return end - at < 2 ? NULL : take_bytes(at + 2, le16(at), end, out);
	case ETW_SID:
		n = sid_size(at, end);
		return n ? take_bytes(at, n, end, out) : NULL;
	case ETW_WBEM_SID:
		return read_wbem_sid(at, end, pointer_bytes, out);
	case ETW_BYTES: case ETW_SOCKET:
		return take_bytes(at, field->n ? field->n : (size_t)(end - at), end, out);
	case ETW_ADDRESSES:
		out->u = (uint64_t)(end - at) / pointer_bytes;
		return take_bytes(at, (size_t)out->u * pointer_bytes, end, out);
	default:
		return NULL;
	}
}

uint32_t etw_class_read(const struct etw_class *class, const struct etw_record *record,
			struct etw_value *values, uint32_t max)
{
	uint32_t n = class->nfields < max ? class->nfields : max;
	const uint8_t *at = record->version < class->min_version ? NULL : record->payload;
	const uint8_t *end = at ? at + record->payload_bytes : NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct etw_field *field = &class->fields[i];
		const struct etw_value *of = field->n < i ? &values[field->n] : NULL;

		values[i] = (struct etw_value){0};
		if (field->type == ETW_BITS || field->type == ETW_BIT) {
			if (!of)
				continue;
			values[i] = *of;
			values[i].u = of->u >> field->shift & (((uint64_t)1 << field->width) - 1);
			continue;
		}
		if (!at || record->version < field->from ||
		    (field->to && record->version > field->to))
			continue;
		at = etw_value_read(field, record->pointer_bytes, at, end, &values[i]);
		if (field->type == ETW_ADDRESSES && field->n && of && values[i].u > of->u) {
			values[i].u = of->u;
			values[i].nbytes = (uint32_t)of->u * record->pointer_bytes;
		}
	}
	return n;
}
