/*
 * The layout of a tracepoint's record, as its `format` file in tracefs describes it, and its
 * fields' values by name.
 *
 *	name: sched_process_exit
 *	ID: 369
 *	format:
 *		field:unsigned short common_type;	offset:0;	size:2;	signed:0;
 *		...
 *		field:char comm[16];	offset:8;	size:16;	signed:0;
 *		field:__data_loc char[] cmd;	offset:60;	size:4;	signed:0;
 *
 *	print fmt: ...
 *
 * __data_loc: 4 bytes that say where in the record the value is, length << 16 | offset; __rel_loc:
 * the same, the offset being from the end of these 4 bytes. Source: Documentation/trace/events.rst
 * of the kernel, and linux-capture.md section 7.
 *
 * Portable; neither text nor record is trusted. Any thread.
 */
#pragma once

#include "base/buf.h"
#include "model/event.h"

#define TRACE_FORMAT_MAX_BYTES 65536u
#define TRACE_FIELDS_MAX EVENT_MAX_FIELDS
#define TRACE_NAME_MAX 64
#define TRACE_TEXT_BYTES 2048u               /* of all texts of one event */

enum trace_kind {
	TRACE_NUMBER,
	TRACE_CHARS,                         /* a text in place, up to its NUL or its end */
	TRACE_BYTES,                         /* neither: shown in hex */
	TRACE_LOC_CHARS, TRACE_LOC_BYTES,    /* __data_loc */
	TRACE_REL_CHARS, TRACE_REL_BYTES,    /* __rel_loc */
};

struct trace_field {
	char name[TRACE_NAME_MAX];           /* of an array's elements: args0, args1, ... */
	enum trace_kind kind;
	uint16_t offset, size;
	bool is_signed;
	bool is_pointer;                     /* printed in hex */
	bool is_element;                     /* of an array: the kernel's filters do not know it */
};

struct trace_format {
	uint32_t id;
	uint32_t nfields;                    /* without those that all have, common_... */
	struct trace_field fields[TRACE_FIELDS_MAX];
};

/* What a record says; texts are good as long as it. */
struct trace_values {
	struct event_field fields[TRACE_FIELDS_MAX];
	uint32_t nfields;
	uint64_t hex_fields;                 /* as in struct event */
	char text[TRACE_TEXT_BYTES];
	size_t used;
};

/* ERR_FORMAT: no ID, or a field lies absurdly. Fields over TRACE_FIELDS_MAX are left out. */
int trace_format_parse(const char *text, size_t n, struct trace_format *out, struct err *err);

/* Values of a record; fields that lie outside of it are left out. names are those of the format. */
void trace_format_read(const struct trace_format *format, const void *raw, size_t n,
		       struct trace_values *out);

/* Which field has this name; false = none. */
bool trace_format_find(const struct trace_format *format, const char *name, uint32_t *out);
/* One number of a record, and no more work than that; false when it lies outside, or is none. */
bool trace_format_number(const struct trace_format *format, uint32_t field, const void *raw,
			 size_t n, int64_t *out);

/*
 * The conditions of a need_event (model/needs.h) as a filter of the kernel: what that cannot
 * express is left out, so that what passes here is a part of what passes there. Numbers of whole
 * fields; texts that are to be equal, in any case of letters, as globs.
 *
 * out      gets "pid == 5 && comm ~ \"[nN]ginx\""
 * returns  whether there is one
 */
bool trace_filter(const struct trace_format *format, const char *conditions, struct buf *out);

/*
 * Whether these conditions can hold at all: each names a field of the format, or one that every
 * event has (ProcessID, ThreadID, ProcessName, ProviderName), and none wants a number to equal what
 * is none.
 *
 * event    "sched/sched_switch", for the sentence
 * returns  0, or ERR_USAGE with the nearest fields, and all of them
 */
int trace_format_check(const struct trace_format *format, const char *event, const char *conditions,
		       struct err *err);
