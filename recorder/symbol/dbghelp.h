/*
 * Windows' own symbol handler, dbghelp.dll, for what our readers cannot do: fetch a file from a
 * symbol server, and name code whose debug information they do not read.
 *
 * Our readers come first (pe_reader.c): they check whose file it is and where each function ends.
 * dbghelp lends a name to whatever follows it, gives private functions the name of the export
 * before them, and drops DWARF namespaces. It is asked for two things. If the symbol path names a
 * server, it fetches PDBs and images that are in no directory, which our reader then reads. If an
 * image has no PDB, it gives the names that the image's symbol table and exports lack, where .pdata
 * agrees that a function begins there. "module+offset" is the last resort.
 *
 * dbghelp is not thread-safe, and a server may take minutes: one thread of its own calls it, and
 * the symbol worker waits at most DBGHELP_MAX_NS. While it is stuck, everybody goes without. It is
 * loaded at the first use, from System32 only, like symsrv.dll, which asks servers; a path without
 * servers downloads nothing. Files in the current folder, or where an image says that its PDB is,
 * are not used. Host: dbghelp_windows.c; on Linux there is none. The worker's thread only.
 * Source: Microsoft's "Debug Help Library", SymFindFileInPathW, SymLoadModuleExW, SymFromAddrW.
 */
#pragma once

#include "base/buf.h"
#include "base/os.h"

#define DBGHELP_MAX_NS (5 * NS_PER_SEC)      /* for one answer */
#define DBGHELP_NAME_MAX 2000u

struct dbghelp;

/* path: as _NT_SYMBOL_PATH, borrowed; NULL = no servers. NULL: no memory, or not on this system. */
struct dbghelp *dbghelp_new(const char *path);
/* A call stuck in a server is left behind. NULL allowed. */
void dbghelp_free(struct dbghelp *d);

/* The identity of a file: a PDB by GUID and age, an image by timestamp and size. */
struct dbghelp_file {
	const char *name;                    /* without directories */
	const uint8_t *guid;                 /* 16 bytes; NULL = an image */
	uint32_t age, timestamp, image_bytes;
};

enum dbghelp_answer {
	DBGHELP_DONE,
	DBGHELP_NONE,                        /* there is no such file, module or name */
	DBGHELP_NO_SERVERS,                  /* the path names none, or dbghelp.dll is missing */
	DBGHELP_NO_SYMSRV,        /* it does, but symsrv.dll is missing; answered once, then NONE */
	DBGHELP_LATE,               /* it takes too long, or did a moment ago; also answered once */
};

/* Fetch a file from a server, its path into out (emptied first). The caller checks its identity. */
enum dbghelp_answer dbghelp_fetch(struct dbghelp *d, const struct dbghelp_file *file,
				  struct buf *out);

/* Read an image's debug information, for dbghelp_name(). 0 = there is none. */
uint64_t dbghelp_load(struct dbghelp *d, const char *path);
void dbghelp_unload(struct dbghelp *d, uint64_t module);     /* 0 allowed */

struct dbghelp_function {
	uint32_t rva, nbytes;                /* nbytes 0 = unknown */
	char name[DBGHELP_NAME_MAX];
};
bool dbghelp_name(struct dbghelp *d, uint64_t module, uint32_t rva, struct dbghelp_function *out);
