/*
 * Files of tests/data/pdb and the functions that a reader finds in them: for tests of symbol/pe.h
 * and pdb.h.
 */
#pragma once

#include "base/buf.h"
#include "symbol/bytes.h"
#include "symbol/rva_index.h"

void rva_lab_load(const char *name, struct buf *out);    /* must be there */
struct bytes bytes_of(const struct buf *b);
/* "" = none; one that is found must hold the address. */
const char *name_at(const struct rva_index *index, uint32_t rva);

/* A reader of outside bytes: into an empty index. 0, or what is wrong with them. */
typedef int rva_reader(const struct bytes *in, struct rva_index *index);
/*
 * The file cut at each cut_step-th byte, and with each change_step-th byte inverted, `zeros` too:
 * survived.
 */
void rva_lab_damage(const struct buf *file, size_t cut_step, size_t change_step, bool zeros,
		    rva_reader *read);
/* How many allocations of a reading were made to fail: alloc_walk(). */
int rva_lab_walk(const struct buf *file, rva_reader *read);
