#include "managed/python/layout.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define COOKIE UINT64_C(0x7970677562656478)  /* "xdebugpy" */

/* Texts of 3.3 and later; no free threading. */
#define OBJECTS .object_type = 8, .bytes_size = 16, .bytes_data = 32, .text_length = 16, \
	.text_state = 32

/* Stamps end before co_zombieframe, which comes and goes. */
static const struct python_layout layouts[] = {
	{.version = PYTHON_VERSION(2, 7), .interp_next = 0, .interp_threads = 8, .tstate_next = 0,
	 .tstate_interp = 8, .tstate_thread = 144, .tstate_frame = 16, .frame_back = 24,
	 .frame_code = 32, .frame_position = 120, .code_first_line = 96, .code_file = 80,
	 .code_name = 88, .code_lines = 104, .object_type = 8, .bytes_size = 16, .bytes_data = 36,
	 .stamp_at = 32, .stamp_bytes = 80},
	{.version = PYTHON_VERSION(3, 6), .interp_next = 0, .interp_threads = 8, .tstate_next = 8,
	 .tstate_interp = 16, .tstate_thread = 152, .tstate_frame = 24, .frame_back = 24,
	 .frame_code = 32, .frame_position = 120, .code_first_line = 36, .code_file = 96,
	 .code_name = 104, .code_lines = 112, OBJECTS, .text_ascii = 48, .text_compact = 72,
	 .stamp_at = 32, .stamp_bytes = 88},
	{.version = PYTHON_VERSION(3, 7), .interpreters = 24, .interp_next = 0, .interp_threads = 8,
	 .tstate_next = 8, .tstate_interp = 16, .tstate_thread = 176, .tstate_frame = 24,
	 .frame_back = 24, .frame_code = 32, .frame_position = 104, .code_first_line = 36,
	 .code_file = 96, .code_name = 104, .code_lines = 112, OBJECTS, .text_ascii = 48,
	 .text_compact = 72, .stamp_at = 32, .stamp_bytes = 88, .gil = 1264},
	{.version = PYTHON_VERSION(3, 8), .interpreters = 32, .interp_next = 0, .interp_threads = 8,
	 .tstate_next = 8, .tstate_interp = 16, .tstate_thread = 176, .tstate_frame = 24,
	 .frame_back = 24, .frame_code = 32, .frame_position = 104, .code_first_line = 40,
	 .code_file = 104, .code_name = 112, .code_lines = 120, OBJECTS, .text_ascii = 48,
	 .text_compact = 72, .stamp_at = 32, .stamp_bytes = 96, .gil = 1152},
	{.version = PYTHON_VERSION(3, 10), .interpreters = 32, .interp_next = 0,
	 .interp_threads = 8, .tstate_next = 8, .tstate_interp = 16, .tstate_thread = 176,
	 .tstate_frame = 24, .frame_back = 24, .frame_code = 32, .frame_position = 96,
	 .code_first_line = 40, .code_file = 104, .code_name = 112, .code_lines = 120, OBJECTS,
	 .text_ascii = 48, .text_compact = 72, .stamp_at = 32, .stamp_bytes = 96, .gil = 352},
	{.version = PYTHON_VERSION(3, 11), .interpreters = 40, .interp_next = 0,
	 .interp_threads = 16, .tstate_next = 8, .tstate_interp = 16, .tstate_thread = 152,
	 .tstate_native = 160, .tstate_frame = 56, .has_cframe = true, .cframe_current = 8,
	 .cframe_previous = 16, .root_cframe = 336, .frame_back = 48, .frame_code = 32,
	 .frame_position = 56, .frame_owner = 68, .code_first_line = 72, .code_file = 112,
	 .code_name = 128, .code_lines = 136, .code_bytes = 184, OBJECTS, .text_ascii = 48,
	 .text_compact = 72, .stamp_at = 64, .stamp_bytes = 80, .gil = 360},
	{.version = PYTHON_VERSION(3, 12), .interpreters = 40, .interp_next = 0,
	 .interp_threads = 72, .tstate_next = 8, .tstate_interp = 16, .tstate_thread = 136,
	 .tstate_native = 144, .tstate_frame = 56, .has_cframe = true, .cframe_current = 0,
	 .cframe_previous = 8, .root_cframe = 272, .frame_back = 8, .frame_code = 0,
	 .frame_position = 56, .frame_owner = 70, .code_first_line = 68, .code_file = 112,
	 .code_name = 128, .code_lines = 136, .code_bytes = 192, OBJECTS, .text_ascii = 40,
	 .text_compact = 56, .stamp_at = 64, .stamp_bytes = 80, .gil = 384},
};

#define GIL_3_9 352u                         /* all else is as in 3.8 */

bool python_layout_get(unsigned version, struct python_layout *out)
{
	unsigned row = version == PYTHON_VERSION(3, 9) ? PYTHON_VERSION(3, 8) : version;
	size_t i;

	for (i = 0; i < COUNT_OF(layouts); i++) {
		if (layouts[i].version != row)
			continue;
		*out = layouts[i];
		if (row != version)
			out->gil = GIL_3_9;
		return true;
	}
	return false;
}

/* Indices of words of _Py_DebugOffsets. */
struct debug_words {
	uint8_t minor, interpreters, interp_next, interp_threads, tstate_next, tstate_frame,
		tstate_thread, tstate_native, frame_back, frame_code, frame_position, frame_owner,
		code_file, code_name, code_lines, code_first_line, code_bytes, object_type,
		bytes_size, bytes_data, text_state, text_length, text_ascii, gil;
};

static const struct debug_words debug_words[] = {
	{13, 5, 8, 9, 21, 23, 24, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70,
	 14},
	{14, 5, 8, 9, 24, 26, 27, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80,
	 15},
	{15, 5, 8, 9, 24, 26, 30, 31, 40, 41, 42, 44, 48, 50, 51, 52, 56, 59, 87, 88, 90, 91, 92,
	 15},
};

bool python_layout_debug(const uint64_t *words, size_t nwords, struct python_layout *out)
{
	const struct debug_words *w = NULL;
	size_t i;

	if (nwords < PYTHON_DEBUG_WORDS || words[0] != COOKIE)
		return false;
	for (i = 0; i < COUNT_OF(debug_words); i++)
		if (words[1] >> 16 == ((uint64_t)3 << 8 | debug_words[i].minor))
			w = &debug_words[i];
	if (!w)
		return false;
	*out = (struct python_layout){.version = (uint16_t)(words[1] >> 16),
				      .free_threaded = words[2] != 0, .tstate_interp = 16};
#define TAKE(field) do { \
		if (words[w->field] > UINT16_MAX) \
			return false; \
		out->field = (uint16_t)words[w->field]; \
	} while (0)
	TAKE(interpreters); TAKE(interp_next); TAKE(interp_threads); TAKE(tstate_next);
	TAKE(tstate_frame); TAKE(tstate_thread); TAKE(tstate_native); TAKE(frame_back);
	TAKE(frame_code); TAKE(frame_position); TAKE(frame_owner); TAKE(code_file);
	TAKE(code_name); TAKE(code_lines); TAKE(code_first_line); TAKE(code_bytes);
	TAKE(object_type); TAKE(bytes_size); TAKE(bytes_data); TAKE(text_state);
	TAKE(text_length); TAKE(text_ascii); TAKE(gil);
#undef TAKE
	out->text_compact = (uint16_t)(out->text_ascii + 16);
	out->stamp_at = (uint16_t)(out->code_first_line - 4);
	out->stamp_bytes = 80;
	return true;
}

unsigned python_version_of_name(const char *file)
{
	unsigned long major, minor;
	char *end;

	if (strncmp(file, "lib", 3) == 0)
		file += 3;
	if (strncmp(file, "python", 6) != 0 || (file[6] != '2' && file[6] != '3') || file[7] != '.')
		return 0;
	major = (unsigned long)(file[6] - '0');
	if (file[8] < '0' || file[8] > '9')
		return 0;
	minor = strtoul(file + 8, &end, 10);
	/* "python3.6m", "python3.13t", ".so.1.0"; not "python3.11-config" */
	return minor > 99 || *end == '-' ? 0 : PYTHON_VERSION((unsigned)major, (unsigned)minor);
}
