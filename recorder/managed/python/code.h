/*
 * What a code object says: its function, file, and which line an instruction belongs to.
 *
 * Pure but for memory->read(); any thread. All bytes are hostile.
 */
#pragma once

#include "managed/python/peek.h"

#define PYTHON_LINES_MAX 65536u              /* bytes of a table of lines */
#define PYTHON_TEXT_MAX 1000u                /* characters; longer texts are cut */
#define PYTHON_TEXT_BYTES (4 * PYTHON_TEXT_MAX + 1)

struct python_code {
	char function[MANAGED_TEXT_MAX + 1]; /* "json.decoder.JSONDecoder.decode" */
	char file[MANAGED_TEXT_MAX + 1];     /* as it was compiled: "/usr/lib/.../decoder.py" */
	int32_t first_line;
	uint8_t *lines;                      /* owned; NULL = there is no table, or no memory */
	uint32_t nlines;
};

/*
 * type     address of PyCode_Type; 0 = not known
 * stamp    that it had when it was sampled
 * returns  false: it is none, or not the one that was sampled
 */
bool python_code_read(const struct python_layout *l, const struct managed_memory *memory,
		      uint64_t type, uint64_t code, uint64_t stamp, struct python_code *out);

/*
 * Name the code objects of a peek that are seen for the first time, up to PYTHON_NAMED_MAX, in
 * peek->named. One whose names are too long is left to python_code_read().
 *
 * seen  {0} at first
 */
#define PYTHON_SEEN 4096u
struct python_seen {
	uint64_t hashes[PYTHON_SEEN];
};
void python_name_new(const struct python_target *t, const struct managed_memory *memory,
		     struct python_seen *seen, struct python_peek *peek);

/*
 * A text as UTF-8, cut after PYTHON_TEXT_MAX characters.
 *
 * out      of PYTHON_TEXT_BYTES
 * returns  false: it is none
 */
bool python_text_read(const struct python_layout *l, const struct managed_memory *memory,
		      uint64_t text, char *out);

/*
 * The line of a byte offset in the instructions, by a table as the version has it.
 * returns  the line; first_line where none is known, or the table is damaged
 */
int32_t python_line(unsigned version, const uint8_t *table, size_t n, int32_t first_line,
		    int32_t position);

/* "module.qualname" from file and function, cut to MANAGED_TEXT_MAX bytes. */
void python_function_name(const char *file, const char *qualname, char *out);
