#include "source/etw/tracelogging.h"

#include "base/bytes.h"

#include <string.h>

#define ITEM_METADATA 11
#define ITEM_TRAITS 12

static bool skip_tags(struct cursor *in)
{
	uint64_t tag;

	do {
		if (!cursor_number(in, 1, &tag))
			return false;
	} while (tag & 0x80);
	return true;
}

/* An item's bytes behind its u16 size, which may be smaller than the item. */
static bool open_item(const struct etw_record *record, uint16_t type, struct cursor *out)
{
	for (uint32_t i = 0; i < record->nitems && i < ETW_ITEMS_MAX; i++) {
		const struct etw_item *item = &record->items[i];
		uint64_t size;

		if (item->type != type)
			continue;
		*out = cursor_over(item->bytes, item->nbytes);
		if (!cursor_number(out, 2, &size) || size < 2)
			return false;
		if (size < item->nbytes)
			out->end = item->bytes + size;
		return true;
	}
	return false;
}

static enum etw_shown shown_as(uint64_t out)
{
	static const uint8_t shown[11] = {
		[3] = ETW_SHOWN_BOOL, [4] = ETW_SHOWN_HEX, [7] = ETW_SHOWN_PORT,
		[8] = ETW_SHOWN_IP4, [10] = ETW_SHOWN_SOCKET,
	};

	return out < sizeof(shown) ? (enum etw_shown)shown[out] : ETW_SHOWN_PLAIN;
}

/* How a field's values are counted; false = malformed. */
static bool read_count(struct cursor *in, uint64_t kind, struct etw_schema_field *f)
{
	uint64_t n;

	switch (kind) {
	case 0x20:
		if (!cursor_number(in, 2, &n))
			return false;
		f->count_by = ETW_BY_NUMBER;
		f->count = (uint16_t)n;
		return true;
	case 0x40:
		f->count_by = ETW_BY_PREFIX;
		return true;
	case 0x60:                           /* a private encoding */
		f->field.type = ETW_TYPES;
		return cursor_number(in, 2, &n) && cursor_skip(in, n);
	default:
		return true;
	}
}

static bool read_field(struct cursor *in, struct etw_schema_field *f)
{
	uint64_t type, out = 0;

	*f = (struct etw_schema_field){.nmembers = 0};
	f->field.name = cursor_text(in);
	if (!f->field.name || !cursor_number(in, 1, &type))
		return false;
	if (type & 0x80) {
		if (!cursor_number(in, 1, &out))
			return false;
		if (out & 0x80 && !skip_tags(in))
			return false;
	}
	f->field.type = etw_schema_type(type & 0x1f, shown_as(out & 0x7f));
	if (f->field.type == ETW_BYTES)      /* TraceLogging puts the size before it */
		f->field.type = ETW_BYTES_COUNTED;
	if (f->field.type == ETW_SOCKET)
		f->field.type = ETW_SOCKET_COUNTED;
	if ((type & 0x1f) == 24)
		f->nmembers = (uint16_t)(out & 0x7f);
	return read_count(in, type & 0x60, f);
}

bool etw_tracelogging_read(const struct etw_record *record, struct etw_tracelogging *out)
{
	struct cursor in;

	out->nfields = 0;
	out->cut = false;
	out->provider = open_item(record, ITEM_TRAITS, &in) ? cursor_text(&in) : NULL;
	if (!out->provider)
		out->provider = "";
	if (record->header != ETW_MANIFEST || !open_item(record, ITEM_METADATA, &in) ||
	    !skip_tags(&in))
		return false;
	out->name = cursor_text(&in);
	if (!out->name)
		return false;
	while (in.at < in.end) {
		if (out->nfields == ETW_SCHEMA_MAX_FIELDS ||
		    !read_field(&in, &out->fields[out->nfields])) {
			out->cut = true;
			break;
		}
		out->nfields++;
	}
	return true;
}
