/*
 * Code blobs: every address in HotSpot's code cache belongs to one, found by its heap's segment
 * map. What is read of a blob is copied once; code and its tables do not change while it lives.
 *
 * A blob is the same one as before when name, size, compile id and method are: compile ids are
 * never used twice in a process.
 *
 * Functions that take a managed_memory may wait for the target: tasks call them.
 */
#pragma once

#include "managed/ahead.h"
#include "managed/hotspot/layout.h"

enum hotspot_kind {
	BLOB_NMETHOD, BLOB_NATIVE, BLOB_INTERPRETER, BLOB_STUBS, BLOB_VTABLE, BLOB_ADAPTER,
	BLOB_MH_ADAPTER, BLOB_SIGNATURE, BLOB_UPCALL, BLOB_EXCEPTION, BLOB_SAFEPOINT,
	BLOB_RUNTIME,                        /* other stubs with a frame size */
	BLOB_OTHER,
};

#define BLOB_NAME_BYTES 64u

struct hotspot_identity {
	uint64_t name, method;
	uint32_t size, compile_id;
};

/* A place that debug information describes. */
struct hotspot_pc {
	int32_t pc;                          /* offset from the code's begin */
	int32_t scope;                       /* offset in the scopes; 0 = nothing is known */
};

struct hotspot_blob {
	uint64_t start;
	struct hotspot_identity identity;
	enum hotspot_kind kind;
	char name[BLOB_NAME_BYTES];
	uint64_t code_begin, code_end;
	uint64_t frame_words;                /* CodeBlob::_frame_size */
	uint64_t frame_complete;             /* offset from the code's begin; 0 = not known */

	/* nmethods: */
	unsigned level;                      /* of compilation: 1-3 = C1, 4 = C2 */
	uint64_t verified_entry, osr_entry, deopt, deopt_mh;
	uint64_t orig_pc;                    /* offset from SP */
	struct hotspot_pc *pcs;
	uint32_t npcs;
	uint8_t *scopes;
	uint32_t nscopes;
	uint64_t *metadata;
	uint32_t nmetadata;
	uint32_t *numbers;                   /* names of metadata; see NUMBER_UNKNOWN */
	uint32_t method_number;

	uint8_t *code;                       /* from code_begin on; NULL = not copied */
	uint32_t ncode;
	size_t bytes;

	bool doubtful;                       /* as in struct hotspot_known, and so is: */
	uint64_t read_ns;
	uint32_t read, checked, used;        /* moments */
};

#define NUMBER_UNKNOWN UINT32_MAX            /* has not been asked for */

/*
 * Read the blob that an address lies in.
 *
 * returns  NULL: there is none (any more), it cannot be read, or it makes no sense
 */
struct hotspot_blob *hotspot_blob_read(const struct hotspot_layout *l,
				       const struct managed_memory *memory, uint64_t pc);
void hotspot_blob_free(struct hotspot_blob *blob);   /* NULL allowed */

/*
 * What is at this place now, read in one go. compiled: it was an nmethod; if it is none any more,
 * its name is another one. A block that was freed has name 0: what it held is still there, but
 * smaller blobs may be in its place.
 */
bool hotspot_identity_read(const struct hotspot_layout *l, const struct managed_memory *memory,
			   uint64_t start, bool compiled, struct hotspot_identity *out);

/* What that will read is read ahead. */
void hotspot_identity_ahead(const struct hotspot_layout *l, struct managed_ahead *ahead,
			    uint64_t start);

static inline bool hotspot_identity_same(const struct hotspot_identity *a,
					 const struct hotspot_identity *b)
{
	return a->name == b->name && a->method == b->method && a->size == b->size &&
	       a->compile_id == b->compile_id;
}

static inline bool blob_is_compiled(const struct hotspot_blob *b)
{
	return b->kind == BLOB_NMETHOD;
}

/* n bytes of code at an address, or NULL when they are not at hand. */
static inline const uint8_t *blob_code(const struct hotspot_blob *b, uint64_t pc, uint64_t n)
{
	uint64_t at = pc - b->code_begin;

	return b->code && pc >= b->code_begin && at <= b->ncode && n <= b->ncode - at
		       ? b->code + at : NULL;
}

/* How the record of an address is chosen: see hotspot_scope_at(). */
const struct hotspot_pc *hotspot_pc_exact(const struct hotspot_blob *b, uint64_t pc);
/* The first record after an address: that of an interrupted instruction. */
const struct hotspot_pc *hotspot_pc_next(const struct hotspot_blob *b, uint64_t pc);

#define HOTSPOT_INLINE_MAX 64u

struct hotspot_scope {
	uint32_t metadata;                   /* index of its method; UINT32_MAX = the nmethod's */
	int32_t bci;                         /* -1 = at its entry, or not known */
};

/*
 * The methods of a record, the innermost first.
 *
 * returns  their number, at most HOTSPOT_INLINE_MAX; at least 1
 */
uint32_t hotspot_scopes(const struct hotspot_layout *l, const struct hotspot_blob *b,
			const struct hotspot_pc *pc,
			struct hotspot_scope out[HOTSPOT_INLINE_MAX]);

/*
 * One UNSIGNED5 number: at most 5 bytes, the low six bits first, each byte counted from min on;
 * a byte below 192, as it stands there, ends it. OpenJDK, share/utilities/unsigned5.hpp.
 */
bool hotspot_unsigned5(const uint8_t *bytes, uint32_t n, unsigned min, uint32_t *at,
		       uint32_t *out);
