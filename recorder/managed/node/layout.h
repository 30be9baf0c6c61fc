/*
 * Where V8 keeps what names a JavaScript frame: offsets and types of one version, of x86-64 without
 * pointer compression.
 *
 * Tagged words: a small integer is value << 32; a pointer is an object's address + 1. The first
 * word of an object is its map, whose u16 at 12 is the object's type. All offsets here are from the
 * object's address.
 *
 * Sources: the constants v8dbg_* that Node.js exports for debuggers, V8's sources at the versions
 * of the table, and comparison with the inspector's stacks of stopped programs.
 */
#pragma once

#include "managed/reader.h"

#define V8_MAP_TYPE 12u
#define V8_LENGTH 8u                         /* of arrays: a small integer */
#define V8_ELEMENTS 16u
#define V8_SHARED_BYTES 48u                  /* what is read of a SharedFunctionInfo */
#define V8_CODE_BYTES 128u                   /* and of a Code */
#define V8_SCRIPT_ID 64u

struct v8_row {
	uint16_t major, minor;
	uint8_t function_shared;
	uint8_t shared_data[2];              /* 0 = there is no second one */
	uint8_t shared_name, shared_script;
	uint8_t code_header;                 /* of generated code: before its first instruction */
	uint8_t code_deopt, code_positions, code_flags, code_size;
	uint8_t code_stream, code_start;     /* 0 = the header is the Code object itself */
	uint8_t kind_sparkplug, kind_maglev, kind_turbofan;
	uint8_t kind_regexp;                 /* 0 = not known */
	uint8_t deopt_count, deopt_literals, deopt_shared, deopt_inlining;   /* elements */
	bool deopt_wrapped;                  /* the SharedFunctionInfo is in a wrapper */
	uint8_t bytecode_positions, bytecode_data;
	uint8_t scope_first;                 /* word of the first variable part, less one */
	bool positions_unsigned;             /* how the table of positions counts code */
};

struct v8_layout {
	struct v8_row row;
	/* Builtins, as offsets in the file: [begin, end). */
	uint64_t builtins, builtins_end;
	uint16_t function_first, function_last, bytecode, interpreter_data, code, stream;
	uint16_t scope_info, script, shared, not_string_mask;
	uint16_t wasm;                       /* the type of WebAssembly's frames; 0 = not known */
};

/*
 * image    where the first byte of the file with V8 is mapped
 * returns  0; ERR_UNSUPPORTED: it is no V8 that is known; ERR_IO
 */
int v8_layout_read(const struct managed_memory *m, uint64_t image, struct v8_layout *out,
		   struct err *err);

/* By version; false: it is not known. */
bool v8_row_get(unsigned major, unsigned minor, struct v8_row *out);
