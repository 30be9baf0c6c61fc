#include "managed/node/layout.h"

#include "base/array.h"
#include "base/bytes.h"
#include "managed/elf.h"
#include "managed/exports.h"

#include <string.h>

#define TABLE_ENTRIES_MAX 4000000u           /* of .eh_frame_hdr: 8 bytes each */
#define TABLE_PIECE 8192u                    /* entries read at once */
#define BUILTINS_MIN_BYTES (512u << 10)
#define BUILTINS_MAX_BYTES (8u << 20)

static const struct v8_row rows[] = {
	{.major = 10, .minor = 2, .bytecode_positions = 32, .bytecode_data = 56,
	 .function_shared = 24, .shared_data = {8, 0}, .shared_name = 16,
	 .shared_script = 32, .code_header = 128, .code_deopt = 16, .code_positions = 24,
	 .code_flags = 48, .code_size = 40, .kind_sparkplug = 11, .kind_maglev = 12,
	 .kind_turbofan = 13, .deopt_count = 1, .deopt_literals = 2, .deopt_shared = 6,
	 .deopt_inlining = 7, .scope_first = 3, .kind_regexp = 3},
	{.major = 11, .minor = 3, .bytecode_positions = 32, .bytecode_data = 54,
	 .function_shared = 24, .shared_data = {8, 0}, .shared_name = 16,
	 .shared_script = 32, .code_header = 16, .code_deopt = 16, .code_positions = 24,
	 .code_flags = 48, .code_size = 56, .code_stream = 32, .code_start = 40,
	 .kind_sparkplug = 11, .kind_maglev = 12, .kind_turbofan = 13, .deopt_count = 1,
	 .deopt_literals = 2, .deopt_shared = 6, .deopt_inlining = 7, .scope_first = 3,
	 .kind_regexp = 3},
	{.major = 11, .minor = 8, .bytecode_positions = 32, .bytecode_data = 52,
	 .function_shared = 32, .shared_data = {8, 0}, .shared_name = 16,
	 .shared_script = 32, .code_header = 32, .code_deopt = 8, .code_positions = 16,
	 .code_flags = 40, .code_size = 44, .code_stream = 24, .code_start = 32,
	 .kind_sparkplug = 11, .kind_maglev = 12, .kind_turbofan = 13, .deopt_count = 1,
	 .deopt_literals = 2, .deopt_shared = 6, .deopt_inlining = 7, .scope_first = 3},
	{.major = 12, .minor = 4, .bytecode_positions = 24, .bytecode_data = 64,
	 .function_shared = 32, .shared_data = {8, 0}, .shared_name = 16,
	 .shared_script = 32, .code_header = 32, .code_deopt = 8, .code_positions = 16,
	 .code_flags = 48, .code_size = 52, .code_stream = 32, .code_start = 40,
	 .kind_sparkplug = 10, .kind_maglev = 11, .kind_turbofan = 12, .deopt_count = 1,
	 .deopt_literals = 2, .deopt_shared = 6, .deopt_inlining = 7, .scope_first = 3,
	 .kind_regexp = 3},
	{.major = 12, .minor = 9, .bytecode_positions = 24, .bytecode_data = 64,
	 .function_shared = 32, .shared_data = {8, 16}, .shared_name = 24,
	 .shared_script = 40, .code_header = 32, .code_deopt = 8, .code_positions = 16,
	 .code_flags = 48, .code_size = 52, .code_stream = 32, .code_start = 40,
	 .kind_sparkplug = 10, .kind_maglev = 11, .kind_turbofan = 12, .deopt_count = 1,
	 .deopt_literals = 2, .deopt_shared = 6, .deopt_wrapped = true, .deopt_inlining = 7,
	 .scope_first = 5},
	{.major = 13, .minor = 6, .bytecode_positions = 24, .bytecode_data = 64,
	 .function_shared = 32, .shared_data = {8, 16}, .shared_name = 24,
	 .shared_script = 40, .code_header = 32, .code_deopt = 8, .code_positions = 16,
	 .code_flags = 52, .code_size = 56, .code_stream = 32, .code_start = 40,
	 .kind_sparkplug = 10, .kind_maglev = 11, .kind_turbofan = 12, .deopt_count = 1,
	 .deopt_literals = 3, .deopt_shared = 7, .deopt_wrapped = true, .deopt_inlining = 8,
	 .scope_first = 5, .kind_regexp = 3},
	{.major = 14, .minor = 1, .bytecode_positions = 24, .bytecode_data = 64,
	 .function_shared = 32, .shared_data = {8, 16}, .shared_name = 24,
	 .shared_script = 40, .code_header = 32, .code_deopt = 8, .code_positions = 16,
	 .code_flags = 52, .code_size = 56, .code_stream = 32, .code_start = 40,
	 .kind_sparkplug = 10, .kind_maglev = 11, .kind_turbofan = 12, .deopt_count = 1,
	 .deopt_literals = 3, .deopt_shared = 7, .deopt_wrapped = true, .deopt_inlining = 8,
	 .scope_first = 5, .positions_unsigned = true},
	{.major = 14, .minor = 6, .bytecode_positions = 24, .bytecode_data = 64,
	 .function_shared = 32, .shared_data = {8, 16}, .shared_name = 24,
	 .shared_script = 40, .code_header = 32, .code_deopt = 8, .code_positions = 16,
	 .code_flags = 52, .code_size = 56, .code_stream = 32, .code_start = 40,
	 .kind_sparkplug = 11, .kind_maglev = 12, .kind_turbofan = 13, .deopt_count = 1,
	 .deopt_literals = 3, .deopt_shared = 7, .deopt_wrapped = true, .deopt_inlining = 8,
	 .scope_first = 5, .kind_regexp = 4, .positions_unsigned = true},
};

bool v8_row_get(unsigned major, unsigned minor, struct v8_row *out)
{
	size_t i;

	for (i = 0; i < COUNT_OF(rows); i++) {
		if (rows[i].major == major && rows[i].minor == minor) {
			*out = rows[i];
			return true;
		}
	}
	return false;
}

/* ---- builtins -------------------------------------------------------------------------------- */

/*
 * The builtins are the largest piece of code without unwind tables: the largest gap between the
 * functions in .eh_frame_hdr. It begins with the last function before it, which does no harm.
 */
static bool find_builtins(const struct managed_memory *m, uint64_t base, struct v8_layout *out)
{
	static const uint8_t form[4] = {1, 0x1b, 3, 0x3b};   /* as all linkers write it */
	uint8_t head[12], entries[TABLE_PIECE * 8];
	uint64_t table, last = 0, gap = 0, from = 0;
	uint32_t n, i, k, piece;
	struct managed_elf elf;

	if (!managed_elf_read(m, base, &elf))
		return false;
	table = managed_elf_segment(&elf, MANAGED_PT_EH_FRAME_HDR);
	if (!table || !managed_read(m, table, head, sizeof(head)) ||
	    memcmp(head, form, sizeof(form)) != 0)
		return false;
	n = le32(head + 8);
	if (n > TABLE_ENTRIES_MAX)
		return false;
	for (i = 0; i < n; i += piece) {
		piece = n - i < TABLE_PIECE ? n - i : TABLE_PIECE;
		if (!managed_read(m, table + sizeof(head) + (uint64_t)i * 8, entries,
				  (size_t)piece * 8))
			return false;
		for (k = 0; k < piece; k++) {
			uint64_t at = table - elf.bias +
				      (uint64_t)(int64_t)(int32_t)le32(entries + (size_t)k * 8);

			if (last && at > last && at - last > gap) {
				gap = at - last;
				from = last;
			}
			last = at;
		}
	}
	if (gap < BUILTINS_MIN_BYTES || gap > BUILTINS_MAX_BYTES ||
	    !managed_elf_offset(&elf, from, &out->builtins))
		return false;
	out->builtins_end = out->builtins + gap;
	return true;
}

/* ---- constants ------------------------------------------------------------------------------- */

enum {
	X_MAJOR, X_MINOR, X_SMI_SHIFT, X_FP_CONTEXT, X_FP_FUNCTION, X_FIRST_FUNCTION,
	X_LAST_FUNCTION, X_FUNCTION, X_BYTECODE, X_INTERPRETER_DATA, X_CODE, X_STREAM, X_SCOPE_INFO,
	X_SCRIPT, X_SHARED, X_NOT_STRING, X_WASM, EXPORTS
};

static const struct managed_export wanted[EXPORTS] = {
	[X_MAJOR] = {.name = "_ZN2v88internal7Version6major_E"},
	[X_MINOR] = {.name = "_ZN2v88internal7Version6minor_E"},
	[X_SMI_SHIFT] = {.name = "v8dbg_SmiShiftSize"},
	[X_FP_CONTEXT] = {.name = "v8dbg_off_fp_context"},
	[X_FP_FUNCTION] = {.name = "v8dbg_off_fp_function"},
	[X_FIRST_FUNCTION] = {.name = "v8dbg_FirstJSFunctionType"},
	[X_LAST_FUNCTION] = {.name = "v8dbg_LastJSFunctionType"},
	[X_FUNCTION] = {.name = "v8dbg_type_JSFunction__JS_FUNCTION_TYPE"},
	[X_BYTECODE] = {.name = "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE"},
	[X_INTERPRETER_DATA] = {.name = "v8dbg_type_InterpreterData__INTERPRETER_DATA_TYPE"},
	[X_CODE] = {.name = "v8dbg_type_Code__CODE_TYPE"},
	[X_STREAM] = {.name = "v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE"},
	[X_SCOPE_INFO] = {.name = "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE"},
	[X_SCRIPT] = {.name = "v8dbg_type_Script__SCRIPT_TYPE"},
	[X_SHARED] = {.name = "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"},
	[X_NOT_STRING] = {.name = "v8dbg_IsNotStringMask"},
	[X_WASM] = {.name = "v8dbg_frametype_WasmFrame"},
};

/* A word that the file keeps for debuggers; 0 where there is none. */
static int32_t constant(const struct managed_memory *m, const struct managed_export *x)
{
	uint8_t bytes[4];

	return x->at && managed_read(m, x->at, bytes, sizeof(bytes)) ? (int32_t)le32(bytes) : 0;
}

static uint16_t type_of(const struct managed_memory *m, const struct managed_export *x)
{
	int32_t v = constant(m, x);

	return v > 0 && v < 65536 ? (uint16_t)v : 0;
}

static void read_types(const struct managed_memory *m, const struct managed_export *x,
		       struct v8_layout *out)
{
	out->function_first = type_of(m, &x[X_FIRST_FUNCTION]);
	out->function_last = type_of(m, &x[X_LAST_FUNCTION]);
	if (!out->function_first) {          /* before V8 12 */
		out->function_first = type_of(m, &x[X_FUNCTION]);
		out->function_last = (uint16_t)(out->function_first + 15);
	}
	out->bytecode = type_of(m, &x[X_BYTECODE]);
	out->interpreter_data = type_of(m, &x[X_INTERPRETER_DATA]);
	out->code = type_of(m, &x[X_CODE]);
	out->stream = out->row.code_stream ? type_of(m, &x[X_STREAM]) : out->code;
	out->scope_info = type_of(m, &x[X_SCOPE_INFO]);
	out->script = type_of(m, &x[X_SCRIPT]);
	out->shared = type_of(m, &x[X_SHARED]);
	out->not_string_mask = (uint16_t)constant(m, &x[X_NOT_STRING]);
	out->wasm = type_of(m, &x[X_WASM]);
}

int v8_layout_read(const struct managed_memory *m, uint64_t base, struct v8_layout *out,
		   struct err *err)
{
	struct managed_export x[EXPORTS];
	int32_t major, minor;
	int rc;

	memcpy(x, wanted, sizeof(x));
	rc = managed_exports_read(m, base, x, EXPORTS, err);
	if (rc)
		return rc;
	major = constant(m, &x[X_MAJOR]);
	minor = constant(m, &x[X_MINOR]);
	if (!x[X_MAJOR].at || !x[X_FUNCTION].at)
		return err_set(err, ERR_UNSUPPORTED, "its file exports no V8");
	if (constant(m, &x[X_SMI_SHIFT]) != 31 || constant(m, &x[X_FP_CONTEXT]) != -8 ||
	    constant(m, &x[X_FP_FUNCTION]) != -16)
		return err_set(err, ERR_UNSUPPORTED, "its V8 was built with other words and frames "
			       "than those of Node.js");
	if (major < 0 || minor < 0 || !v8_row_get((unsigned)major, (unsigned)minor, &out->row))
		return err_set(err, ERR_UNSUPPORTED, "V8 %d.%d is not known", major, minor);
	read_types(m, x, out);
	if (!out->function_first || !out->bytecode || !out->code || !out->stream ||
	    !out->scope_info || !out->shared || !out->not_string_mask)
		return err_set(err, ERR_UNSUPPORTED, "its file does not tell V8's types");
	if (!find_builtins(m, base, out))
		return err_set(err, ERR_UNSUPPORTED, "V8's builtins were not found in its file");
	return 0;
}
