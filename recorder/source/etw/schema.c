#include "source/etw/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 4                              /* of nested structures */
#define STEPS 20000u                         /* values of one event, with array elements */
#define SHOWN 1000u                          /* elements shown of one array */

uint8_t etw_schema_type(uint32_t in_type, enum etw_shown shown)
{
	static const uint8_t types[] = {
		[1] = ETW_UTF16Z, [2] = ETW_UTF8Z, [3] = ETW_I8, [4] = ETW_U8, [5] = ETW_I16,
		[6] = ETW_U16, [7] = ETW_I32, [8] = ETW_U32, [9] = ETW_I64, [10] = ETW_U64,
		[11] = ETW_F32, [12] = ETW_F64, [13] = ETW_BOOL32, [14] = ETW_BYTES,
		[15] = ETW_GUID, [16] = ETW_POINTER, [17] = ETW_FILETIME, [18] = ETW_SYSTEMTIME,
		[19] = ETW_SID, [20] = ETW_X32, [21] = ETW_X64, [22] = ETW_UTF16_COUNTED,
		[23] = ETW_UTF8_COUNTED, [25] = ETW_BYTES_COUNTED,
	};
	static const struct { uint8_t from, to; } ways[] = {
		[ETW_SHOWN_BOOL] = {ETW_U8, ETW_BOOL8}, [ETW_SHOWN_PORT] = {ETW_U16, ETW_PORT},
		[ETW_SHOWN_IP4] = {ETW_U32, ETW_IP4}, [ETW_SHOWN_SOCKET] = {ETW_BYTES, ETW_SOCKET},
	};
	uint8_t type;

	switch (in_type) {
	case 0: case 24: return ETW_TYPES;
	case 300: return ETW_UTF16_COUNTED;
	case 301: return ETW_UTF8_COUNTED;
	case 306: return ETW_U16;            /* one character */
	case 307: return ETW_U8;
	case 308: return ETW_POINTER;        /* size_t */
	case 310: return ETW_WBEM_SID;
	default: break;
	}
	if (in_type >= sizeof(types))
		return ETW_TYPES;
	type = types[in_type];
	if (shown == ETW_SHOWN_HEX && type <= ETW_U64)       /* ETW_U8 is 0 */
		return (uint8_t)(type + ETW_X8);
	return shown != ETW_SHOWN_HEX && shown && type == ways[shown].from ? ways[shown].to : type;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
	const struct etw_schema *schema;
	struct etw_render *r;
	uint32_t pointer_bytes, steps;
	const uint8_t *at, *end;             /* at NULL: a field did not fit */
	uint64_t numbers[ETW_SCHEMA_MAX_FIELDS];      /* of fields, for counts and lengths */
};

/* The field behind field i and its members. */
static uint32_t skip_field(const struct etw_schema *schema, uint32_t i, int depth)
{
	uint32_t members, next = i + 1;

	if (i >= schema->nfields)
		return schema->nfields;
	members = depth < DEPTH ? schema->fields[i].nmembers : 0;
	for (uint32_t m = 0; m < members && next < schema->nfields; m++)
		next = skip_field(schema, next, depth + 1);
	return next;
}

static uint64_t number_of(const struct reader *in, uint8_t by, uint16_t number, uint32_t index)
{
	if (by == ETW_BY_FIELD)
		return number < index ? in->numbers[number] : 0;
	return number;
}

static bool read_one(struct reader *in, uint32_t index, struct etw_value *value,
		     struct etw_field *field)
{
	const struct etw_schema_field *f = &in->schema->fields[index];
	uint64_t length;

	*field = f->field;
	if (!in->at || !in->steps) {
		in->at = NULL;
		return false;
	}
	in->steps--;
	if (f->length_by) {
		length = number_of(in, f->length_by, f->length, index);
		if (length > UINT16_MAX) {
			in->at = NULL;
			return false;
		}
		field->n = (uint16_t)length;
		if (field->type == ETW_UTF16Z)
			field->type = ETW_UTF16_FIXED;
		else if (field->type == ETW_UTF8Z)
			field->type = ETW_UTF8_FIXED;
		if (!length) {               /* n 0 would mean the rest of the payload */
			*value = (struct etw_value){.bytes = in->at};
			/* A GUID or an address has no bytes here to be shown. */
			if (field->type != ETW_UTF16_FIXED && field->type != ETW_UTF8_FIXED)
				field->type = ETW_BYTES;
			return true;
		}
	}
	in->at = etw_value_read(field, in->pointer_bytes, in->at, in->end, value);
	if (in->at && value->nbytes <= 8)
		in->numbers[index] = value->u;
	return in->at != NULL;
}

/* How many elements a field has; false when the payload ends before the count. */
static bool count_of(struct reader *in, const struct etw_schema_field *f, uint32_t index,
		     uint64_t *out)
{
	if (f->count_by == ETW_BY_PREFIX) {
		if (!in->at || in->end - in->at < 2) {
			in->at = NULL;
			return false;
		}
		*out = le16(in->at);
		in->at += 2;
		return true;
	}
	*out = f->count_by ? number_of(in, f->count_by, f->count, index) : 1;
	return true;
}

static void read_array(struct reader *in, uint32_t index, uint64_t count, const char *name)
{
	struct etw_value value;
	struct etw_field field;

	etw_render_begin(in->r);
	etw_render_puts(in->r, "[");
	for (uint64_t i = 0; i < count && read_one(in, index, &value, &field); i++) {
		if (i > SHOWN)
			continue;
		if (i)
			etw_render_puts(in->r, i == SHOWN ? ",..." : ",");
		if (i < SHOWN)
			etw_render_value(in->r, &field, &value, in->pointer_bytes);
	}
	etw_render_puts(in->r, "]");
	etw_render_composed(in->r, name, etw_render_end(in->r));
}

static const char *join_name(struct reader *in, const char *prefix, const char *name,
			     uint64_t element, bool array)
{
	char number[24];

	etw_render_begin(in->r);
	etw_render_puts(in->r, prefix);
	etw_render_utf8(in->r, (const uint8_t *)name, strlen(name));
	if (array) {
		snprintf(number, sizeof(number), "[%" PRIu64 "]", element);
		etw_render_puts(in->r, number);
	}
	return etw_render_end(in->r);
}

static void read_fields(struct reader *in, uint32_t first, uint32_t n, const char *prefix,
			int depth);

static void read_structure(struct reader *in, uint32_t index, uint64_t count, const char *prefix,
			   int depth)
{
	const struct etw_schema_field *f = &in->schema->fields[index];

	for (uint64_t i = 0; i < count && in->at; i++) {
		if (!in->steps--) {
			in->steps = 0;
			in->at = NULL;
			return;
		}
		if (in->r->nfields == EVENT_MAX_FIELDS)
			in->r->cut = true;
		read_fields(in, index + 1, f->nmembers,
			    join_name(in, prefix, f->field.name, i, f->count_by != ETW_BY_NONE),
			    depth + 1);
	}
}

static void read_field(struct reader *in, uint32_t index, const char *prefix, int depth)
{
	const struct etw_schema_field *f = &in->schema->fields[index];
	const char *name = f->field.name;
	struct etw_value value;
	struct etw_field field;
	uint64_t count;

	if (!count_of(in, f, index, &count))
		return;
	if (f->nmembers) {
		if (depth < DEPTH)
			read_structure(in, index, count, prefix, depth);
		else
			in->at = NULL;
		return;
	}
	if (*prefix) {
		etw_render_begin(in->r);
		etw_render_puts(in->r, prefix);
		etw_render_puts(in->r, ".");
		etw_render_utf8(in->r, (const uint8_t *)name, strlen(name));
		name = etw_render_end(in->r);
	}
	if (f->count_by)
		read_array(in, index, count, name);
	else if (read_one(in, index, &value, &field))
		etw_render_field(in->r, name, &field, &value, in->pointer_bytes);
}

static void read_fields(struct reader *in, uint32_t first, uint32_t n, const char *prefix,
			int depth)
{
	for (uint32_t i = first, k = 0; k < n && i < in->schema->nfields && in->at; k++) {
		read_field(in, i, prefix, depth);
		i = skip_field(in->schema, i, depth);
	}
}

void etw_schema_read(const struct etw_schema *schema, const struct etw_record *record,
		     struct etw_render *r)
{
	struct reader in = {
		.schema = schema, .r = r, .pointer_bytes = record->pointer_bytes, .steps = STEPS};

	if (!record->payload || !schema->nfields)
		return;
	in.at = record->payload;
	in.end = record->payload + record->payload_bytes;
	read_fields(&in, 0, schema->nfields, "", 0);
	if (!in.at)
		r->cut = true;
}
