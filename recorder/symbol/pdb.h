/*
 * PDB: the public names of an image's functions, in the file that its linker wrote beside it.
 *
 * pdb_head_read() says whose PDB it is: GUID and age, as the image's debug record has them.
 * pdb_functions() reads the public symbols: every function that the linker saw from outside of its
 * object file, C++ names as the compiler decorated them; and of each object file the procedures, with
 * their lengths, which names the private (static) ones too. A PDB for the public is stripped of these:
 * then a public name reaches over the private functions behind it, unless pe_bounds() of the image
 * are put into the same index.
 *
 * MSF 7 with any block size from 512 to 65,536. Every byte is checked; a chain of blocks is a table
 * with a known length, so nothing loops. No host code; any thread.
 * Source: LLVM's "The PDB File Format" (MsfFile, PdbStream, DbiStream, PublicStream); checked on PDBs
 * of lld, read beside llvm-pdbutil.
 */
#ifndef SYMBOL_PDB_H
#define SYMBOL_PDB_H

#include "symbol/bytes.h"
#include "symbol/rva_index.h"

#define PDB_DIRECTORY_MAX_BYTES (32u << 20)
#define PDB_RECORDS_MAX_BYTES (512u << 20)   /* of the stream that the symbols are in */
#define PDB_MAX_NS (10 * NS_PER_SEC)

struct pdb_head {
	uint8_t guid[16];                    /* as pe_head.pdb_guid */
	uint32_t age;                        /* of the debug information, which is the image's */
	bool stripped;                       /* private procedures were left out */
};

/* returns  0, ERR_FORMAT (no PDB, cut off), ERR_LIMIT, ERR_MEMORY, ERR_IO */
int pdb_head_read(const struct bytes *in, struct pdb_head *out, struct err *err);

/* Adds to the index. returns  0, ERR_FORMAT, ERR_LIMIT (a ceiling, the time included), ERR_MEMORY, ERR_IO */
int pdb_functions(const struct bytes *in, struct rva_index *index, struct err *err);

#endif
