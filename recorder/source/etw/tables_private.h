/* Macros and types for the tables of class_*.c. */
#pragma once

#include "source/etw/class.h"

#include "base/array.h"

/* 3d6fa8d4-fe05-11d0-9dda-... is GUID(0x3d6fa8d4, 0xfe05, 0x11d0, 0x9d, 0xda, ...). */
#define GUID(a, b, c, d0, d1, d2, d3, d4, d5, d6, d7) \
	{{(a) & 0xff, (a) >> 8 & 0xff, (a) >> 16 & 0xff, (a) >> 24 & 0xff, (b) & 0xff, (b) >> 8, \
	  (c) & 0xff, (c) >> 8, d0, d1, d2, d3, d4, d5, d6, d7}}

/* Classes that share a GUID, sorted by key. */
struct etw_table {
	struct etw_guid guid;
	uint8_t header;                      /* enum etw_header; says what the keys are */
	const char *provider;
	const struct etw_class *classes;
	uint32_t nclasses;
};

/* A table without classes ends each list. */
extern const struct etw_table etw_kernel_tables[], etw_image_tables[], etw_clr_tables[],
	etw_clr_private_tables[], etw_system_tables[];

/* F("Depth", ETW_U32, .from = 1): one field. */
#define F(called, ...) {.name = (called), .type = __VA_ARGS__}
/* CLASS(1, ETW_PROCESS_START, "Windows Kernel", "Process/Start", FIELDS(process)): one class. */
#define CLASS(number, what, from, called, ...) \
	{.key = (number), .id = (what), .provider = (from), .name = called, __VA_ARGS__}
#define FIELDS(array) .nfields = COUNT_OF(array), .fields = (array)
#define TABLE(kind, name, array) .header = (kind), .provider = (name), .classes = (array), \
	.nclasses = COUNT_OF(array)
