/*
 * Records of a trace as a live session would give them, in a file for the stand-in of Windows' ETW
 * (tests/dll/tdh.c). Written by tests/programs/etw_live_records.c. Little-endian:
 *
 *	struct record_file_head, then of each record: struct record_file_record, its items (struct
 *	record_file_item, then its bytes), its payload
 */
#pragma once

#include <stdint.h>

#define RECORD_FILE_MAGIC 0x4C575445u        /* ETWL */

#pragma pack(push, 1)
struct record_file_head {
	uint32_t magic;
	uint32_t nrecords;
	int64_t t0_ticks;
	uint64_t frequency_hz;
};

struct record_file_record {
	int64_t ticks;
	uint32_t pid, tid;
	uint16_t cpu;
	uint8_t header;                      /* enum etw_header */
	uint8_t pointer_bytes;
	uint8_t guid[16];
	uint16_t id;
	uint8_t version, opcode;
	/* the payload begins with ticks, which move with the header's */
	uint8_t ticks_inside;
	uint8_t nitems;
	uint16_t payload_bytes;
};

struct record_file_item {
	uint16_t type, nbytes;
};
#pragma pack(pop)
