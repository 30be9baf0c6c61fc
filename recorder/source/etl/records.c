#include "source/etl/records.h"

#include "base/array.h"
#include "base/bytes.h"
#include "source/etw/guids.h"
#include "symbol/bytes.h"

#include <stddef.h>
#include <string.h>

enum {
	MARK_TYPED = 0xC0, MARK_MESSAGE = 0x90,
	END_MARK_BYTES = 4,

	EVENT_HAS_ITEMS = 1,                 /* flags of an EVENT header */
	ITEM_HEAD_BYTES = 8,

	MESSAGE_SEQUENCE = 1, MESSAGE_GUID = 2, MESSAGE_COMPONENT = 4, MESSAGE_TICKS = 8,
	MESSAGE_IDS = 0x20,
	MESSAGE_HEAD_BYTES = 8,

	PERFINFO_PEBS = 0x8000,
	GROUP_PROCESS = 3, GROUP_IMAGE = 20, OPCODE_IMAGE_LOAD = 10,
};

/* By the type in byte 2 of a typed header; bytes 0 = no such type. */
static const struct layout {
	uint8_t bytes, size_at, ticks_at, kind;
} layouts[] = {
	[1] = {32, 4, 16, ETL_SYSTEM32}, [2] = {32, 4, 16, ETL_SYSTEM64},
	[3] = {24, 4, 16, ETL_COMPACT32}, [4] = {24, 4, 16, ETL_COMPACT64},
	[10] = {48, 0, 16, ETL_FULL32}, [20] = {48, 0, 16, ETL_FULL64},
	[11] = {72, 0, 16, ETL_INSTANCE32}, [21] = {72, 0, 16, ETL_INSTANCE64},
	[16] = {16, 4, 8, ETL_PERFINFO32}, [17] = {16, 4, 8, ETL_PERFINFO64},
	[18] = {80, 0, 16, ETL_EVENT32}, [19] = {80, 0, 16, ETL_EVENT64},
};

/* ---- a record's end and time ----------------------------------------------------------------- */

/* The offset of each part of a message's header; 0 = absent. */
struct message {
	size_t guid, component, ticks, ids, payload;
};

static void message_parts(unsigned options, struct message *m)
{
	size_t at = MESSAGE_HEAD_BYTES;

	memset(m, 0, sizeof(*m));
	if (options & MESSAGE_SEQUENCE)
		at += 4;
	if (options & MESSAGE_GUID) {
		m->guid = at;
		at += 16;
	} else if (options & MESSAGE_COMPONENT) {
		m->component = at;
		at += 4;
	}
	if (options & MESSAGE_TICKS) {
		m->ticks = at;
		at += 8;
	}
	if (options & MESSAGE_IDS) {
		m->ids = at;
		at += 8;
	}
	m->payload = at;
}

static enum etl_step message_head(const uint8_t *at, size_t n, struct etl_head *out)
{
	struct message m;

	if (n < MESSAGE_HEAD_BYTES)
		return ETL_STEP_CUT;
	message_parts(le16(at + 6), &m);
	out->kind = ETL_MESSAGE;
	out->nbytes = le16(at);
	if (out->nbytes < m.payload)
		return ETL_STEP_BAD;
	if (out->nbytes > n)
		return ETL_STEP_CUT;
	out->has_ticks = m.ticks != 0;
	out->ticks = m.ticks ? (int64_t)le64(at + m.ticks) : 0;
	return ETL_STEP_RECORD;
}

static size_t header_bytes(const uint8_t *at, const struct layout *l)
{
	unsigned version;

	if (l->kind != ETL_PERFINFO32 && l->kind != ETL_PERFINFO64)
		return l->bytes;
	version = le16(at);
	return l->bytes + 8u * ((version >> 8 & 7) + (version & PERFINFO_PEBS ? 1 : 0));
}

enum etl_step etl_record_head(const uint8_t *at, size_t n, struct etl_head *out)
{
	const struct layout *l;
	uint32_t first;

	if (n < END_MARK_BYTES)
		return n ? ETL_STEP_CUT : ETL_STEP_END;
	first = le32(at);
	if (first == 0 || first == UINT32_MAX)
		return ETL_STEP_END;
	if (at[3] == MARK_MESSAGE)
		return message_head(at, n, out);
	if (at[3] != MARK_TYPED || at[2] >= COUNT_OF(layouts))
		return ETL_STEP_BAD;
	l = &layouts[at[2]];
	if (!l->bytes)
		return ETL_STEP_BAD;
	if (n < (size_t)l->size_at + 2)
		return ETL_STEP_CUT;
	out->kind = l->kind;
	out->nbytes = le16(at + l->size_at);
	if (out->nbytes < header_bytes(at, l))
		return ETL_STEP_BAD;
	if (out->nbytes > n)
		return ETL_STEP_CUT;
	out->has_ticks = true;
	out->ticks = (int64_t)le64(at + l->ticks_at);
	return ETL_STEP_RECORD;
}

/* ---- the whole record ------------------------------------------------------------------------ */

/* By group; all 0 = no such group. */
static const struct etw_guid kernel_classes[] = {
	[0] = EVENT_TRACE_GUID, [1] = DISK_GUID, [2] = MEMORY_GUID, [3] = PROCESS_GUID,
	[4] = FILE_GUID, [5] = THREAD_GUID, [6] = TCP_GUID, [8] = UDP_GUID,
	[11] = SYSTEM_CONFIG_GUID, [15] = PERF_GUID, [16] = HEAP_GUID, [20] = IMAGE_GUID,
	[24] = STACK_GUID,
};

void etl_kernel_class(uint8_t group, uint8_t opcode, struct etw_guid *out)
{
	if (group == GROUP_PROCESS && opcode == OPCODE_IMAGE_LOAD)
		group = GROUP_IMAGE;
	memset(out, 0, sizeof(*out));
	if (group < COUNT_OF(kernel_classes))
		*out = kernel_classes[group];
	if (!le32(out->bytes))
		out->bytes[15] = group;
}

static void parse_kernel(const uint8_t *at, struct etw_record *out)
{
	out->header = ETW_CLASSIC;
	out->opcode = at[6];
	etl_kernel_class(at[7], at[6], &out->guid);
}

static void parse_classic(const uint8_t *at, struct etw_record *out)
{
	out->header = ETW_CLASSIC;
	out->opcode = at[4];
	out->version = le16(at + 6);
	memcpy(&out->guid, at + 24, sizeof(out->guid));
}

static void parse_ids(const uint8_t *at, struct etw_record *out)
{
	out->tid = le32(at + 8);
	out->pid = le32(at + 12);
}

/* The offset behind the last item; 0 = an item does not fit. */
static size_t parse_items(const uint8_t *at, size_t n, struct etw_record *out)
{
	size_t item = 80, nbytes;
	bool another;

	do {
		if (n < item || n - item < ITEM_HEAD_BYTES)
			return 0;
		another = at[item + 4] & 1;
		nbytes = le16(at + item + 6);
		if (nbytes > n - item - ITEM_HEAD_BYTES)
			return 0;
		if (out->nitems < ETW_ITEMS_MAX)
			out->items[out->nitems++] = (struct etw_item){
				.type = le16(at + item + 2), .nbytes = (uint16_t)nbytes,
				.bytes = at + item + ITEM_HEAD_BYTES,
			};
		item += (ITEM_HEAD_BYTES + nbytes + 7) & ~(size_t)7;
	} while (another);
	/* The last item's padding may be missing when nothing follows it. */
	return item < n ? item : n;
}

static size_t parse_event(const uint8_t *at, const struct etl_head *head, struct etw_record *out)
{
	out->header = ETW_MANIFEST;
	memcpy(&out->guid, at + 24, sizeof(out->guid));
	out->id = le16(at + 40);
	out->version = at[42];
	out->opcode = at[45];
	memcpy(&out->activity, at + 64, sizeof(out->activity));
	return le16(at + 4) & EVENT_HAS_ITEMS ? parse_items(at, head->nbytes, out) : 80;
}

static size_t parse_message(const uint8_t *at, struct etw_record *out)
{
	struct message m;

	message_parts(le16(at + 6), &m);
	out->header = ETW_MESSAGE;
	out->id = le16(at + 4);
	if (m.guid)
		memcpy(&out->guid, at + m.guid, sizeof(out->guid));
	else if (m.component)
		memcpy(&out->guid, at + m.component, 4);
	if (m.ids) {
		out->tid = le32(at + m.ids);
		out->pid = le32(at + m.ids + 4);
	}
	return m.payload;
}

bool etl_record_parse(const uint8_t *at, const struct etl_head *head, uint16_t cpu,
		      struct etw_record *out)
{
	size_t payload = layouts[at[2] < COUNT_OF(layouts) ? at[2] : 0].bytes;

	memset(out, 0, offsetof(struct etw_record, items));
	out->ticks = head->ticks;
	out->pid = out->tid = ETW_ID_UNKNOWN;
	out->cpu = cpu;
	out->pointer_bytes = head->kind & 1 || head->kind == ETL_MESSAGE ? 8 : 4;
	out->nbytes = head->nbytes;
	switch (head->kind & ~1u) {          /* without the size of pointers */
	case ETL_SYSTEM32:
	case ETL_COMPACT32:
		parse_kernel(at, out);
		out->version = le16(at);
		parse_ids(at, out);
		break;
	case ETL_PERFINFO32:
		parse_kernel(at, out);
		out->version = at[0];
		payload = header_bytes(at, &layouts[at[2]]);
		break;
	case ETL_FULL32:
	case ETL_INSTANCE32:
		parse_classic(at, out);
		parse_ids(at, out);
		break;
	case ETL_EVENT32:
		parse_ids(at, out);
		payload = parse_event(at, head, out);
		break;
	case ETL_MESSAGE:
		payload = parse_message(at, out);
		break;
	}
	if (!payload)
		return false;
	out->payload = at + payload;
	out->payload_bytes = head->nbytes - (uint32_t)payload;
	return true;
}
