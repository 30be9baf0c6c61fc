/*
 * The layout of a tracepoint's record, as its `format` file in tracefs describes it, and the values
 * of its fields by name.
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
 * A __data_loc is 4 bytes that say where in the record the value is: length << 16 | offset. In a
 * __rel_loc the offset counts from the end of these 4 bytes. Source: Documentation/trace/events.rst
 * of the kernel.
 *
 * Portable; neither text nor record is trusted. Any thread.
 */
#pragma once

#include "base/buf.h"
#include "model/event.h"

#define TRACE_FORMAT_MAX_BYTES 65536u
#define TRACE_FIELDS_MAX EVENT_MAX_FIELDS
#define TRACE_NAME_MAX 64
#define TRACE_TEXT_BYTES 2048u               /* for all texts of one event */

enum trace_kind {
	TRACE_NUMBER,
	TRACE_CHARS,                         /* a text in place, up to its NUL or the field's end */
	TRACE_BYTES,                         /* anything else, shown in hex */
	TRACE_LOC_CHARS, TRACE_LOC_BYTES,    /* __data_loc */
	TRACE_REL_CHARS, TRACE_REL_BYTES,    /* __rel_loc */
};

struct trace_field {
	char name[TRACE_NAME_MAX];           /* array elements are named args0, args1, ... */
	enum trace_kind kind;
	uint16_t offset, size;
	bool is_signed;
	bool is_pointer;                     /* printed in hex */
	bool is_element;              /* an array element, which the kernel's filters do not know */
};

struct trace_format {
	uint32_t id;
	uint32_t nfields;                    /* without the common_... fields */
	struct trace_field fields[TRACE_FIELDS_MAX];
};

/* The values of a record; texts are valid as long as this struct. */
struct trace_values {
	struct event_field fields[TRACE_FIELDS_MAX];
	uint32_t nfields;
	uint64_t hex_fields;                 /* as in struct event */
	char text[TRACE_TEXT_BYTES];
	size_t used;
};

/*
 * returns  0; ERR_FORMAT when the ID is missing or a field's place is impossible. Fields beyond
 *          TRACE_FIELDS_MAX are left out.
 */
int trace_format_parse(const char *text, size_t n, struct trace_format *out, struct err *err);

/*
 * Read the values of a record. Fields that lie outside of it are left out. Names are borrowed from
 * the format.
 */
void trace_format_read(const struct trace_format *format, const void *raw, size_t n,
		       struct trace_values *out);

/* The index of the field with this name; false = none. */
bool trace_format_find(const struct trace_format *format, const char *name, uint32_t *out);
/* Read one number of a record, as fast as possible; false when it is outside or not a number. */
bool trace_format_number(const struct trace_format *format, uint32_t field, const void *raw,
			 size_t n, int64_t *out);

/* One condition of a need_event: "pid>=5"; the value is borrowed and not terminated. */
struct trace_condition {
	char field[TRACE_NAME_MAX], op[3];
	const char *value;
	size_t value_len;
};
/* Read it from n bytes; false when it is invalid, or an expression, which no kernel judges. */
bool trace_condition_read(const char *text, size_t n, struct trace_condition *out);

/*
 * The conditions of a need_event (model/needs.h) as a filter of the kernel. What the kernel cannot
 * express is left out, so its filter passes all events that the conditions accept, and maybe more.
 * Whole-number fields are compared as numbers; texts that must be equal, in any case, become globs.
 *
 * out      gets "pid == 5 && comm ~ \"[nN]ginx\""
 * returns  whether the filter has a condition
 */
bool trace_filter(const struct trace_format *format, const char *conditions, struct buf *out);

/*
 * Whether these conditions can hold at all: each must name a field of the format or one that every
 * event has (ProcessID, ThreadID, ProcessName, ProviderName), and none may compare a number with
 * what is not a number.
 *
 * event    "sched/sched_switch", for the error
 * returns  0, or ERR_USAGE with the nearest fields, and all of them
 */
int trace_format_check(const struct trace_format *format, const char *event, const char *conditions,
		       const char *id_field, struct err *err);
