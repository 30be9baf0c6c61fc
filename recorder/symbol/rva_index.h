/*
 * Functions of one image by their RVA (offset from where it is loaded), with their names in memory.
 *
 * Exports and public symbols say where functions begin, not how long they are: each reaches to the
 * next one, or to the end of its section, and would lend its name to the private functions after
 * it. So bounds are added too, from any source that knows where functions begin and end but not
 * their names. Filled once by any number of readers, finished, then only asked. One thread at a
 * time.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVA_FUNCTIONS_MAX (2u << 20)
#define RVA_NAMES_MAX_BYTES ((size_t)96 << 20)
#define RVA_RANK_MAX 3u

struct rva_index;

struct rva_function {
	uint32_t rva, end;                   /* [rva, end) */
	const char *name;                    /* the linker's; as long as the index */
};

struct rva_index *rva_index_new(void);       /* NULL = no memory */
void rva_index_free(struct rva_index *index); /* NULL allowed */

/*
 * Add a name.
 * end      of the function, or of its section if unknown
 * rank     of several names for one RVA the one of the highest rank stays, and the first of equals
 * name     n bytes, any of them; cut at 4,000. An empty one is ignored
 * returns  0, ERR_LIMIT, ERR_MEMORY
 */
int rva_index_add(struct rva_index *index, uint32_t rva, uint32_t end, unsigned rank,
		  const char *name, size_t n, struct err *err);

/*
 * Some function is [rva, end): a name at rva ends there, and without one it stays nameless, instead
 * of belonging to an earlier function.
 */
int rva_index_bound(struct rva_index *index, uint32_t rva, uint32_t end, struct err *err);

/* Call once, after the last of these. */
int rva_index_finish(struct rva_index *index, struct err *err);

/* Find the function that holds rva; its name may be NULL. False: no function is known there. */
bool rva_index_range(const struct rva_index *index, uint32_t rva, struct rva_function *out);
uint32_t rva_index_count(const struct rva_index *index);   /* functions with names */
size_t rva_index_bytes(const struct rva_index *index);
