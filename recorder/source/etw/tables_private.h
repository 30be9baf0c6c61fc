/* Macros and types for the tables of class_*.c. */
#pragma once

#include "source/etw/class.h"
#include "source/etw/guids.h"

#include "base/array.h"

/* Classes that share a GUID, sorted by key. */
struct etw_table {
	struct etw_guid guid;
	uint8_t header;                      /* enum etw_header; says what the keys are */
	const char *provider;
	const struct etw_class *classes;
	uint32_t nclasses;
};

/* A table without classes ends each list. */
extern const struct etw_table etw_kernel_tables[], etw_clr_tables[], etw_system_tables[];

/* F("Depth", ETW_U32, .from = 1): one field. */
#define F(called, ...) {.name = (called), .type = __VA_ARGS__}
/* CLASS(1, ETW_PROCESS_START, "Windows Kernel", "Process/Start", FIELDS(process)): one class. */
#define CLASS(number, what, from, called, ...) \
	{.key = (number), .id = (what), .provider = (from), .name = called, __VA_ARGS__}
#define FIELDS(array) .nfields = COUNT_OF(array), .fields = (array)
/* The payload's offset of the tid of the thread to which the event belongs. */
#define TID_AT(bytes, pointers) .has_tid = true, .tid_bytes = (bytes), .tid_pointers = (pointers)
#define TABLE(kind, name, array) .header = (kind), .provider = (name), .classes = (array), \
	.nclasses = COUNT_OF(array)
