/*
 * Parses TRACE_EVENT_INFO, which merging adds to a trace (opcode 32 of GUID bbccf6c1):
 *
 *	  0 GUID   provider            16 GUID  event class
 *	 32 u16    id, u8 version, channel, level
 *	 37 u8     opcode              38 u16   task              40 u64 keyword
 *	 48 u32    source: 0 manifest, 1 class of WMI, 2 WPP, 3 TraceLogging
 *	 52 u32    offset of the provider's name               68 task's name      72 opcode's name
 *	100 u32    properties         104 u32   top-level properties
 *	112        properties, 24 bytes each:
 *	     u32 flags: 1 structure, 2 length by field, 4 count by field, 0x20 count fixed
 *	     u32 offset of the name
 *	     u16 in type, u16 out type, u32 map; or u16 first member, u16 members, u32
 *	     u16 count, or index of the field    u16 length, or index of the field    u32
 *
 * Offsets count from the start; texts are UTF-16 with a NUL. Source: tdh.h; checked on a trace.
 */
#include "source/etw/manifest.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 112u
#define PROPERTY_BYTES 24u
#define NAME_BYTES 512u                      /* of UTF-16, of one name */
#define DEPTH 4

struct info {
	const uint8_t *at;
	size_t n;
	uint32_t nproperties;
	struct etw_texts *texts;
	struct buf text;                     /* of one name */
	struct etw_manifest *m;
	int rc;                              /* ERR_FORMAT: a text has no end or lies outside */
	uint16_t index_of[ETW_SCHEMA_MAX_FIELDS];    /* field of property i, plus 1; 0 = none yet */
};

/* Append a text as UTF-8, made safe to print; nothing for offset 0. A long one is cut. */
static void put_text(struct info *in, uint32_t offset, struct buf *out)
{
	char text[NAME_BYTES];
	size_t n = 0;

	if (!offset)
		return;
	while (offset < in->n && n + 1 < in->n - offset && n < NAME_BYTES &&
	       le16(in->at + offset + n))
		n += 2;
	if (offset >= in->n || n + 1 >= in->n - offset) {
		in->rc = ERR_FORMAT;
		return;
	}
	n = etw_utf16(in->at + offset, n / 2, text, sizeof(text));
	utf8_put_clean(out, text, n, sizeof(text));
}

/* enum _TDH_OUT_TYPE */
static enum etw_shown shown_as(uint32_t out_type)
{
	static const uint8_t shown[26] = {
		[13] = ETW_SHOWN_BOOL, [16] = ETW_SHOWN_HEX, [17] = ETW_SHOWN_HEX,
		[18] = ETW_SHOWN_HEX, [19] = ETW_SHOWN_HEX, [22] = ETW_SHOWN_PORT,
		[23] = ETW_SHOWN_IP4, [25] = ETW_SHOWN_SOCKET,
	};

	return out_type < sizeof(shown) ? (enum etw_shown)shown[out_type] : ETW_SHOWN_PLAIN;
}

/* The field of a property; UINT16_MAX, which reads as 0, if it comes later. */
static uint16_t field_of(const struct info *in, uint16_t property)
{
	return property < in->nproperties && in->index_of[property] ? in->index_of[property] - 1
								    : UINT16_MAX;
}

static bool has_length(uint8_t type)
{
	return type == ETW_UTF16Z || type == ETW_UTF8Z || type == ETW_BYTES || type == ETW_SOCKET;
}

/* The property at `at`, without its name and members. */
static struct etw_schema_field read_property(const struct info *in, size_t at)
{
	uint32_t flags = le32(in->at + at);
	struct etw_schema_field f = {.count = le16(in->at + at + 16),
				     .length = le16(in->at + at + 18)};

	if (flags & 4) {
		f.count_by = ETW_BY_FIELD;
		f.count = field_of(in, f.count);
	} else if (flags & 0x20 || f.count > 1) {
		f.count_by = ETW_BY_NUMBER;
	}
	f.nmembers = flags & 1 ? le16(in->at + at + 10) : 0;
	f.field.type = flags & 1 ? ETW_TYPES
				 : etw_schema_type(le16(in->at + at + 8),
						   shown_as(le16(in->at + at + 10)));
	if (flags & 2) {
		f.length_by = ETW_BY_FIELD;
		f.length = field_of(in, f.length);
	} else if (f.length && has_length(f.field.type)) {
		f.length_by = ETW_BY_NUMBER;
	}
	return f;
}

static int add_property(struct info *in, uint32_t index, int depth)
{
	size_t at = HEAD_BYTES + (size_t)index * PROPERTY_BYTES;
	struct etw_schema_field f;

	if (index >= in->nproperties || in->index_of[index] || depth > DEPTH)
		return ERR_FORMAT;
	f = read_property(in, at);
	put_text(in, le32(in->at + at + 4), &in->text);
	f.field.name = etw_manifest_text(in->texts, &in->text, &in->rc);
	in->m->fields[in->m->nfields++] = f;
	in->index_of[index] = (uint16_t)in->m->nfields;
	for (uint32_t m = 0; m < f.nmembers; m++)
		if (add_property(in, le16(in->at + at + 8) + m, depth + 1))
			return ERR_FORMAT;
	return 0;
}

static void read_event(struct info *in, struct etw_manifest_event *e)
{
	struct buf task = {0}, opcode = {0};
	uint32_t top = le32(in->at + 104);

	put_text(in, le32(in->at + 52), &in->text);
	in->m->provider = etw_manifest_text(in->texts, &in->text, &in->rc);
	put_text(in, le32(in->at + 68), &task);
	put_text(in, le32(in->at + 72), &opcode);
	etw_manifest_event_name(&in->text, buf_text(&task), buf_text(&opcode), le16(in->at + 32));
	if (task.failed || opcode.failed)
		in->rc = ERR_MEMORY;
	e->name = etw_manifest_text(in->texts, &in->text, &in->rc);
	e->version = in->at[34];
	for (uint32_t i = 0; i < top && i < in->nproperties; i++)
		if (add_property(in, i, 0))
			break;
	e->schema = (struct etw_schema){in->m->fields, in->m->nfields};
	in->m->nevents = 1;
	buf_free(&task);
	buf_free(&opcode);
}

int etw_manifest_of_info(const uint8_t *bytes, size_t n, struct etw_texts *texts,
			 struct etw_guid *guid, uint8_t *header, struct etw_manifest **out)
{
	struct info in = {.at = bytes, .n = n, .texts = texts};
	bool classic;

	if (n < HEAD_BYTES || le32(bytes + 48) > 1)
		return ERR_FORMAT;
	in.nproperties = le32(bytes + 100);
	if (in.nproperties > ETW_SCHEMA_MAX_FIELDS ||
	    n < HEAD_BYTES + in.nproperties * PROPERTY_BYTES)
		return ERR_FORMAT;
	in.m = calloc(1, sizeof(*in.m));
	if (!in.m)
		return ERR_MEMORY;
	in.m->events = calloc(1, sizeof(*in.m->events));
	in.m->fields = calloc(in.nproperties + 1, sizeof(*in.m->fields));
	if (!in.m->events || !in.m->fields) {
		etw_manifest_free(in.m);
		return ERR_MEMORY;
	}
	classic = le32(bytes + 48) == 1;
	memcpy(guid->bytes, bytes + (classic ? 16 : 0), sizeof(guid->bytes));
	*header = classic ? ETW_CLASSIC : ETW_MANIFEST;
	in.m->events[0].id = classic ? bytes[37] : le16(bytes + 32);
	read_event(&in, &in.m->events[0]);
	buf_free(&in.text);
	if (in.rc)
		etw_manifest_free(in.m);
	else
		*out = in.m;
	return in.rc;
}
