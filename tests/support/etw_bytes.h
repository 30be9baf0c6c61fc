/* Payload bytes and records for ETW tests, written field by field. */
#pragma once

#include "source/etw/class.h"

#include <assert.h>
#include <string.h>

struct etw_bytes {
	uint8_t at[4096];
	uint32_t n;
};

static inline void etw_put(struct etw_bytes *b, const void *bytes, uint32_t n)
{
	assert(b->n + n <= sizeof(b->at));
	memcpy(b->at + b->n, bytes, n);
	b->n += n;
}

/* An integer of n bytes, little-endian. */
static inline void etw_int(struct etw_bytes *b, uint64_t v, uint32_t n)
{
	uint8_t bytes[8];

	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	etw_put(b, bytes, n);
}

/* ASCII as UTF-16 with its NUL. */
static inline void etw_text16(struct etw_bytes *b, const char *text)
{
	do
		etw_int(b, (uint8_t)*text, 2);
	while (*text++);
}

static inline void etw_text8(struct etw_bytes *b, const char *text)
{
	etw_put(b, text, (uint32_t)strlen(text) + 1);
}

/* "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c" */
static inline struct etw_guid etw_guid_of(const char *text)
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	struct etw_guid guid = {{0}};
	uint32_t i = 0;

	for (const char *p = text; *p && i < 32; p++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, *p);

		if (!digit)
			continue;
		guid.bytes[order[i / 2]] =
			(uint8_t)(guid.bytes[order[i / 2]] << 4 | (digit - digits));
		i++;
	}
	return guid;
}

static inline struct etw_record etw_classic(const char *guid, uint8_t opcode, uint16_t version,
					    const struct etw_bytes *payload)
{
	return (struct etw_record){.header = ETW_CLASSIC,
				   .guid = etw_guid_of(guid),
				   .opcode = opcode,
				   .version = version,
				   .pointer_bytes = 8,
				   .payload = payload->at,
				   .payload_bytes = payload->n,
				   .pid = ETW_ID_UNKNOWN,
				   .tid = ETW_ID_UNKNOWN};
}

static inline struct etw_record etw_manifest(const char *guid, uint16_t id, uint16_t version,
					     const struct etw_bytes *payload)
{
	struct etw_record record = etw_classic(guid, 0, version, payload);

	record.header = ETW_MANIFEST;
	record.id = id;
	return record;
}

#define ETW_PROCESS_GUID "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c"
#define ETW_PERF_INFO_GUID "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc"
#define ETW_IMAGE_GUID "2cb15d1d-5fc1-11d2-abe1-00a0c911f518"
#define ETW_RUNTIME_GUID "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"
#define ETW_RUNDOWN_GUID "a669021c-c450-4609-a035-5af59af4df18"

/*
 * Make it a record of a class by what stays the same when other classes come: its key, and the
 * first byte of its provider's GUID. false: there is no such class
 */
static inline bool etw_pick(uint8_t provider, uint8_t key, struct etw_record *record)
{
	const struct etw_class *classes;
	uint32_t t, i, n;

	for (t = 0; (classes = etw_class_table(t, &n, &record->guid)); t++) {
		for (i = 0; i < n && record->guid.bytes[0] == provider; i++) {
			if ((uint8_t)classes[i].key != key)
				continue;
			record->opcode = key;
			record->id = classes[i].key;
			return true;
		}
	}
	return false;
}
