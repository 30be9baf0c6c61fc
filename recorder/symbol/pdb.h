/*
 * PDB: the names of an image's functions, in the file that its linker wrote beside it.
 *
 * pdb_head_read() says whose PDB it is: GUID and age, as in the image's debug record.
 * pdb_functions() reads two things: the public symbols, which are all functions visible outside
 * their object file, with C++ names as the compiler decorated them; and the procedures of each
 * object file with their lengths, which also names the private (static) ones. A PDB stripped for
 * the public lacks the procedures: then a public name reaches over the private functions after it,
 * unless pe_bounds() of the image are put into the same index.
 *
 * MSF 7 with any block size from 512 to 65,536. Every byte is checked; a chain of blocks is a table
 * with a known length, so nothing loops. No host code; any thread.
 * Source: LLVM's "The PDB File Format" (MsfFile, PdbStream, DbiStream, PublicStream); checked on
 * PDBs of lld against llvm-pdbutil.
 */
#pragma once

#include "symbol/bytes.h"
#include "symbol/rva_index.h"

#define PDB_DIRECTORY_MAX_BYTES (32u << 20)
#define PDB_RECORDS_MAX_BYTES (512u << 20)   /* of the stream with the symbols */
#define PDB_MAX_NS (10 * NS_PER_SEC)

struct pdb_head {
	uint8_t guid[16];                    /* as pe_head.pdb_guid */
	uint32_t age;                        /* of the debug information, as in the image */
	bool stripped;                       /* private procedures were left out */
};

/* returns  0, ERR_FORMAT (no PDB, cut off), ERR_LIMIT, ERR_MEMORY, ERR_IO */
int pdb_head_read(const struct bytes *in, struct pdb_head *out, struct err *err);

/* Add to the index. returns  0, ERR_FORMAT, ERR_LIMIT (incl. time), ERR_MEMORY, ERR_IO */
int pdb_functions(const struct bytes *in, struct rva_index *index, struct err *err);
