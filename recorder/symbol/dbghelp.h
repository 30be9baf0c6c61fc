/*
 * Windows' own symbol handler, dbghelp.dll, for what our readers cannot: fetch a file from a symbol
 * server, and name code whose debug information they do not read.
 *
 * Our readers come first (pe_reader.c). They check whose file it is and where each function ends;
 * dbghelp lends a name to whatever follows it, gives private functions the name of an export before
 * them, and leaves out namespaces of DWARF. It is asked for PDBs and images that are in no directory,
 * if the path names a server, which our reader then reads; and for names of what the image's symbol
 * table and exports leave without, if it has no PDB, where .pdata agrees that a function begins there.
 * "module+offset" is what remains.
 *
 * dbghelp is not made for several threads, and a server may take minutes: one thread of its own calls
 * it, and the symbol worker waits at most DBGHELP_MAX_NS. While it is stuck everybody goes without.
 * It is loaded at the first use, from System32 alone, like symsrv.dll, which asks servers; a path
 * without servers downloads nothing. Where a file lies in the current folder, or where an image says
 * that its PDB is, does not count. Host: dbghelp_windows.c; on Linux there is none. The worker's only.
 * Source: Microsoft's "Debug Help Library", SymFindFileInPathW, SymLoadModuleExW, SymFromAddrW.
 */
#ifndef SYMBOL_DBGHELP_H
#define SYMBOL_DBGHELP_H

#include "base/buf.h"
#include "base/os.h"

#define DBGHELP_MAX_NS (5 * NS_PER_SEC)      /* for one answer */
#define DBGHELP_NAME_MAX 2000u

struct dbghelp;

/* path: as _NT_SYMBOL_PATH, borrowed; NULL = no servers. NULL: no memory, or not on this system. */
struct dbghelp *dbghelp_new(const char *path);
/* What is stuck in a server is left behind. NULL allowed. */
void dbghelp_free(struct dbghelp *d);

/* Whose file it is: a PDB by GUID and age, an image by timestamp and size. */
struct dbghelp_file {
	const char *name;                    /* without directories */
	const uint8_t *guid;                 /* 16 bytes; NULL = an image */
	uint32_t age, timestamp, image_bytes;
};

enum dbghelp_answer {
	DBGHELP_DONE,
	DBGHELP_NONE,                        /* there is no such file, module or name */
	DBGHELP_NO_SERVERS,                  /* the path names none, or dbghelp.dll is not there */
	DBGHELP_NO_SYMSRV,                   /* it does, but there is no symsrv.dll; answered once, then NONE */
	DBGHELP_LATE,                        /* it takes too long, or did so a moment ago; the same */
};

/* Have a server's file fetched; its path is put into out, emptied first. Whether it is the right one: see to it. */
enum dbghelp_answer dbghelp_fetch(struct dbghelp *d, const struct dbghelp_file *file, struct buf *out);

/* Read the debug information of an image; what it holds is for dbghelp_name(). 0 = there is none. */
uint64_t dbghelp_load(struct dbghelp *d, const char *path);
void dbghelp_unload(struct dbghelp *d, uint64_t module);     /* 0 allowed */

struct dbghelp_function {
	uint32_t rva, nbytes;                /* nbytes 0 = not known */
	char name[DBGHELP_NAME_MAX];
};
bool dbghelp_name(struct dbghelp *d, uint64_t module, uint32_t rva, struct dbghelp_function *out);

#endif
