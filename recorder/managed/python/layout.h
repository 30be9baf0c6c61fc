/*
 * Where CPython keeps what names a frame: offsets of one minor version, of x86-64.
 *
 * Sources: offsetof() in the headers of each version, and from 3.13 on the struct _Py_DebugOffsets
 * at the start of _PyRuntime. Final releases of a minor version have equal offsets. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PYTHON_VERSION(major, minor) ((major) << 8 | (minor))
#define PYTHON_DEBUG_WORDS 96u               /* of _Py_DebugOffsets */

struct python_layout {
	uint16_t version;                    /* PYTHON_VERSION() */
	uint16_t interpreters;               /* of _PyRuntime: the first one; 0 = before 3.7 */
	uint16_t interp_next, interp_threads;
	uint16_t tstate_next, tstate_interp, tstate_thread;
	uint16_t tstate_native;              /* the kernel's thread id; 0 = before 3.11 */
	uint16_t tstate_frame;               /* to the innermost frame, or to a cframe: */
	bool has_cframe;                     /* 3.11, 3.12 */
	uint16_t cframe_current, cframe_previous, root_cframe;
	uint16_t frame_back, frame_code, frame_position;
	uint16_t frame_owner;                /* 3.11: is_entry */
	uint16_t code_first_line, code_file, code_name, code_lines;
	uint16_t code_bytes;                 /* 3.11: where its instructions begin */
	uint16_t bytes_size, bytes_data;
	uint16_t text_length, text_state;    /* 0 = before 3.3: bytes */
	uint16_t text_ascii, text_compact;   /* where the characters begin */
	uint16_t object_type;
	uint16_t stamp_at, stamp_bytes;      /* what tells a code object from its successor */
	uint16_t gil;                        /* of _PyRuntime up to 3.11, then of an interpreter:
						a pointer to it; 0 = not known */
	bool free_threaded;
};

/*
 * The global lock (Python/ceval_gil.c): from the state that holds it, at PYTHON_GIL_HOLDER, to the
 * conditions and mutexes of those that wait for it. Equal in 3.7 to 3.15.
 */
#define PYTHON_GIL_BYTES 208u
#define PYTHON_GIL_HOLDER 8u
#define PYTHON_GIL_LOCKED 16u                /* int: 1 = somebody holds it */
#define PYTHON_GIL_SWITCH 120u               /* from here on: of who has just released it */

/* How frames are told to belong to one call of the evaluator. */
static inline bool python_has_shims(const struct python_layout *l)
{
	return l->version >= PYTHON_VERSION(3, 12);
}

static inline bool python_has_anchors(const struct python_layout *l)
{
	return l->version >= PYTHON_VERSION(3, 11);
}

/* By version; false: it is not known. From 3.13 on offsets must come from the program itself. */
bool python_layout_get(unsigned version, struct python_layout *out);

/*
 * From _Py_DebugOffsets, nwords words.
 * returns  false: it is none, or of a version that is not known
 */
bool python_layout_debug(const uint64_t *words, size_t nwords, struct python_layout *out);

/* "python3.11", "libpython3.6m.so.1.0": the version; 0 = it is no Python's name. */
unsigned python_version_of_name(const char *file);
