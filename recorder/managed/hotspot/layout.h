/*
 * HotSpot's own tables: where the fields of its structures are.
 *
 * libjvm exports tables for debuggers (gHotSpotVMStructs and others): each field of a structure by
 * name, with its type as text and its offset, sizes of types, and constants. Everything that this
 * reader knows of a JVM's structures comes from there, so one reader serves JDK 8 to 28. The
 * symbols are found in memory, by the ELF header at the image's base: this works for files that
 * were replaced or deleted, and in any mount namespace.
 *
 * Source: OpenJDK, src/hotspot/share/runtime/vmStructs.cpp. A layout is never changed once it is
 * read: any thread may use it. It is counted: tasks hold references.
 */
#pragma once

#include "managed/reader.h"

#include <stdatomic.h>

/* Fields; a field that has other owners in other versions has one name here. */
enum hotspot_field_id {
	F_HEAP_SINGLE,                       /* CodeCache::_heap, static: 8 */
	F_HEAPS,                             /* CodeCache::_heaps, static */
	F_ARRAY_LENGTH, F_ARRAY_DATA,
	F_HEAP_MEMORY, F_HEAP_SEGMAP, F_HEAP_LOG2,
	F_SPACE_LOW, F_SPACE_HIGH, F_SPACE_HIGH_BOUNDARY,
	F_BLOCK_HEADER, F_BLOCK_USED,
	F_CALL_STUB_RETURN,                  /* static */
	F_MAJOR, F_RELEASE,                  /* static */

	F_BLOB_NAME, F_BLOB_SIZE, F_BLOB_FRAME_SIZE, F_BLOB_FRAME_COMPLETE,
	F_BLOB_CODE_BEGIN, F_BLOB_CODE_END,  /* pointers: 9-22 */
	F_BLOB_CODE_OFFSET, F_BLOB_DATA_OFFSET,
	F_BLOB_MUTABLE_DATA, F_BLOB_MUTABLE_BYTES, F_BLOB_RELOCATION_BYTES,  /* 25 */

	F_COMPILE_ID, F_COMP_LEVEL, F_METHOD, F_ORIG_PC,
	F_OSR_ENTRY,
	F_VERIFIED_ENTRY, F_VERIFIED_ENTRY_OFFSET,
	F_DEOPT_BEGIN, F_DEOPT_MH_BEGIN,     /* pointers: 9-22 */
	F_DEOPT_OFFSET, F_DEOPT_MH_OFFSET,
	F_SCOPES_BEGIN,                      /* pointer: 9-22 */
	F_SCOPES_OFFSET, F_PCS_OFFSET, F_DEPENDENCIES_OFFSET, F_METADATA_OFFSET,
	F_IMMUTABLE_DATA, F_IMMUTABLE_BYTES, F_IMMUTABLE_REFS,               /* 23 */

	F_CONST_METHOD, F_CONSTANTS, F_CODE_BYTES, F_NAME_INDEX, F_SIGNATURE_INDEX, F_CM_FLAGS,
	F_POOL_HOLDER, F_POOL_LENGTH, F_KLASS_NAME,
	F_SOURCE_OF_CLASS, F_SOURCE_OF_POOL, /* 8-12; 13 */
	F_SYMBOL_LENGTH, F_SYMBOL_LENGTH_AND_REFS, F_SYMBOL_BODY,

	/* Of objects, for exceptions only: without one of these they are not read. */
	F_NARROW_BASE, F_NARROW_SHIFT,       /* static: of references */
	F_NARROW_CLASS_BASE, F_NARROW_CLASS_SHIFT,           /* static */
	F_CLASS_SUPER, F_CLASS_LAYOUT, F_CLASS_POOL,
	F_CLASS_FIELDS, F_CLASS_NFIELDS,     /* to 20 */
	F_CLASS_FIELD_STREAM,                /* from 21 */
	F_HEAP_OF_OBJECTS, F_COLLECTIONS,    /* static; in it */
	F_PERF_DATA, F_MAY_REDEFINE,                         /* static; unloads.h */
	HOTSPOT_FIELDS
};

enum hotspot_type_id {
	T_HEAP_BLOCK, T_CONST_METHOD, T_CONSTANT_POOL, T_NMETHOD, T_BLOB,
	HOTSPOT_TYPES
};

#define HOTSPOT_FIELD_FLAGS 3u

struct hotspot_field {
	bool found;
	uint8_t bytes;                       /* of the field: 1, 2, 4, 8 */
	uint64_t at;                         /* offset; the address of a static one */
};

#define HOTSPOT_HEAPS_MAX 16u

struct hotspot_heap {
	uint64_t address;                    /* of the CodeHeap */
	uint64_t low, high_boundary;         /* of its memory: they never change */
	uint64_t segmap;
	unsigned log2_segment;
};

struct hotspot_layout {
	_Atomic uint32_t refs;
	unsigned major;                      /* 8, 11, 17, ... */
	unsigned unsigned5_min;              /* the least byte of a number: 0, from 20 on 1 */
	unsigned field_flags[HOTSPOT_FIELD_FLAGS];   /* bits, from 21 on: exception.c */
	char release[64];                    /* "17.0.15+6-Debian-1deb12u1" */
	struct hotspot_field fields[HOTSPOT_FIELDS];
	uint64_t sizes[HOTSPOT_TYPES];
	uint32_t nheaps;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	uint64_t call_stub_return;
};

/*
 * Read the tables of the JVM whose libjvm is mapped at base.
 *
 * returns  0; ERR_BUSY: the JVM is still starting; ERR_UNSUPPORTED: it has no such tables, or not
 *          what is needed; ERR_IO: its memory cannot be read
 */
int hotspot_layout_read(const struct managed_memory *memory, uint64_t base,
			struct hotspot_layout **out, struct err *err);
struct hotspot_layout *hotspot_layout_ref(struct hotspot_layout *l);
void hotspot_layout_drop(struct hotspot_layout *l);          /* NULL allowed */

/* The heap that an address lies in, or NULL. */
const struct hotspot_heap *hotspot_heap_of(const struct hotspot_layout *l, uint64_t pc);

static inline bool hotspot_has(const struct hotspot_layout *l, enum hotspot_field_id id)
{
	return l->fields[id].found;
}

/* The field of a structure, of which n bytes are at hand; 0 when it is not among them. */
uint64_t hotspot_get(const struct hotspot_layout *l, enum hotspot_field_id id,
		     const uint8_t *bytes, size_t n);
/* The same of a structure in the target. */
bool hotspot_read(const struct hotspot_layout *l, const struct managed_memory *memory,
		  enum hotspot_field_id id, uint64_t address, uint64_t *out);
/* A static field. */
bool hotspot_read_static(const struct hotspot_layout *l, const struct managed_memory *memory,
			 enum hotspot_field_id id, uint64_t *out);

static inline int32_t hotspot_int(uint64_t v)
{
	return (int32_t)(uint32_t)v;
}
