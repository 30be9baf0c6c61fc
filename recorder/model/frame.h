/*
 * Code objects, frames and functions: where an address is and what it is called.
 *
 * A code object is a file (build id, or PDB GUID + age, else device and inode; and the path), the
 * kernel, or a region of jitted code. A frame is (code object, offset, flags), interned: equal
 * contents have one number. A function names frames; it is filled in by the symbol worker while
 * the process still lives, once, and never replaced.
 *
 * Threads: objects_* and frame_set_function() lock inside; frames_intern() and frames_sweep()
 * belong to the merge thread; frame_get() and the fields of a frame may be read by any thread that
 * holds a reference (a segment that lists the frame, or a queued symbol request).
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_MAX (1u << 20)
#define OBJECTS_MAX 65536u
#define FRAME_NONE UINT32_MAX
#define BUILD_ID_MAX 24                 /* 20 for a GNU build id; 16 + 4 for PDB GUID and age */
#define FUNCTION_NAME_MAX 4000          /* bytes; longer names are cut */

enum object_kind {
	OBJECT_UNKNOWN,                 /* an address outside every mapping; prints as ?!? */
	OBJECT_ELF,
	OBJECT_PE,
	OBJECT_KERNEL,                  /* the kernel proper, or one of its modules */
	OBJECT_JIT,                     /* code generated at run time, of one process */
};

/* What identifies an object; the strings are borrowed by objects_get(). */
struct object_key {
	enum object_kind kind;
	uint8_t build_id_bytes;         /* 0 = none known */
	uint8_t build_id[BUILD_ID_MAX];
	uint64_t dev, ino, ino_generation;   /* used when there is no build id */
	uint32_t pid, epoch;            /* OBJECT_JIT */
	const char *path;               /* as the process sees it; "[kernel]", "[vdso]", "[jit]" */
};

struct object {
	uint32_t number;
	struct object_key key;          /* path owned */
	const char *name;               /* base name of the path */
	uint32_t pid;                   /* a process that maps it: /proc/PID/root/<path> opens it */
	_Atomic uint32_t refs;          /* mappings and frames */
	_Atomic uint64_t dropped_ns;
	bool shared;                    /* it counts in the share of: */
	uint32_t uid;
};

/* Offsets: ELF file offset; PE rva; kernel: address - _text; JIT and unknown: the address. */
enum frame_flags {
	FRAME_RETURN_ADDRESS = 1,       /* a caller: offset is the return address - 1 */
	FRAME_KERNEL = 2,
	FRAME_JIT = 4,
	FRAME_INLINED = 8,
	FRAME_TEXT = 16,                /* the function is the whole text, without a module */
};

struct function {
	uint32_t number;
	uint32_t refs;                  /* frames that use it; under the table's lock */
	struct object *object;
	uint64_t offset;                /* of its first byte, counted as in frames */
	char *name;                     /* demangled; UTF-8 not guaranteed */
	char *raw_name;                 /* as in the symbol table; NULL when equal to name */
	char *module;                   /* overrides the object's name (kernel modules); or NULL */
	uint64_t hash;
};

struct frame {
	uint32_t number;
	uint32_t flags;
	struct object *object;
	uint64_t offset;
	_Atomic(struct function *) function;  /* NULL = no name (yet) */
	_Atomic uint32_t refs;
	_Atomic bool asked;             /* the symbol worker has been asked */
};

/* One step of a stack as a source delivers it, before interning. */
struct frame_ref {
	struct object *object;
	uint64_t offset;
	uint64_t flags;                 /* enum frame_flags; as wide, so that all bytes compare */
};

struct frames;

int frames_new(struct frames **out, struct err *err);
void frames_free(struct frames *f);

/*
 * Find or add an object and take a reference. pid is that of the first finder.
 * returns  the object, or NULL at the ceiling or without memory
 */
struct object *objects_get(struct frames *f, const struct object_key *key, uint32_t pid);
/*
 * The same for an object that a process of some user brings: those of one user fill half of the
 * table at most (base/shares.h). user_of is called only for a new object, and must not wait. false:
 * the process has gone, and its objects are those of nobody.
 */
struct object *objects_get_for(struct frames *f, const struct object_key *key, uint32_t pid,
				   bool (*user_of)(uint32_t pid, uint32_t *uid));
void object_ref(struct object *object);
/*
 * Drop a reference; frames_sweep() frees the object once all released events are newer than now_ns.
 */
void object_drop(struct object *object, uint64_t now_ns);
/* A number for a stack's frames that no other stack gets; any thread. See event.stack_id. */
uint64_t frames_stack_id(struct frames *f);
/* The object for addresses outside every mapping; always there, no reference needed. */
struct object *objects_unknown(struct frames *f);

/*
 * Find or add a frame and return its number; *fresh = true when it was added. Takes no reference:
 * the open segment takes one when it lists the frame.
 * returns  the number, or FRAME_NONE at the ceiling or without memory (counted in frames_use)
 */
uint32_t frames_intern(struct frames *f, const struct frame_ref *ref, bool *fresh);
/* The same without adding: FRAME_NONE when there is no such frame. */
uint32_t frames_find(const struct frames *f, const struct frame_ref *ref);
struct frame *frame_get(const struct frames *f, uint32_t number);
void frame_ref(struct frame *frame);
void frame_unref(struct frame *frame);

/*
 * Name a frame. name is what people read, raw_name the linker's (NULL when equal), module NULL or
 * the kernel module's name, offset the function's start. A name once set stays.
 * returns  0, or ERR_MEMORY (the frame stays without a name)
 */
int frame_set_function(struct frames *f, struct frame *frame, uint64_t offset, const char *name,
		       const char *raw_name, const char *module);
/* Give a frame in a file the name of the function there, if that has one. false: it has not. */
bool frame_take_function(struct frames *f, struct frame *frame, uint64_t offset);

/* Free unreferenced frames (one slice per call) and objects dropped before released_ns. */
void frames_sweep(struct frames *f, uint64_t released_ns);
/* The next slice of a sweep that has not come to the last one; nothing before the next begins. */
void frames_sweep_more(struct frames *f, uint64_t released_ns);
/* Sweep all frames, slice by slice, letting other threads in: 10 ms with a million frames. */
void frames_sweep_all(struct frames *f, uint64_t released_ns);

struct frames_use {
	uint32_t frames, objects, functions, named;
	size_t bytes;
	uint64_t refused;
	uint64_t over_share;            /* of refused: objects of a user who has too many */
	uint32_t over_share_uid;        /* the last one */
};
void frames_use(struct frames *f, struct frames_use *out);
