/*
 * The executable mappings of one process, sorted by address.
 *
 * fork copies the list by counting a reference; the first change afterwards makes an own copy. A new
 * mapping splits what it overlaps. Portable; the source's thread only.
 */
#ifndef SOURCE_MAPS_H
#define SOURCE_MAPS_H

#include "model/frame.h"

#define MAPS_MAX 16384u                 /* executable mappings of one process that are kept */

struct mapping {
	uint64_t start, end;            /* [start, end) */
	uint64_t pgoff;                 /* file offset of start; the address itself for JIT regions */
	struct object *object;
	uint32_t flags;                 /* FRAME_JIT for frames in it */
};

struct maps;

struct maps *maps_new(void);                                 /* NULL = no memory */
struct maps *maps_share(struct maps *maps);                  /* one more reference */
void maps_free(struct maps *maps, uint64_t now_ns);          /* drops objects; NULL allowed */

/*
 * Insert a mapping; takes its object reference, also on failure. *maps may be replaced by a copy.
 * returns  0, ERR_MEMORY, or ERR_LIMIT when the process has MAPS_MAX mappings already
 */
int maps_insert(struct maps **maps, const struct mapping *mapping, uint64_t now_ns);

/* Cut [start, end) out; ERR_MEMORY leaves all as it was. */
int maps_remove(struct maps **maps, uint64_t start, uint64_t end, uint64_t now_ns);

/* The mapping of an address, or NULL. */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);
uint32_t maps_count(const struct maps *maps);

/*
 * In place: \012, which /proc/PID/maps writes for a newline in a path, becomes one again, as in the kernel's
 * records (fs/seq_file.c, mangle_path()). A path that has these four characters of its own cannot be told
 * apart; its file is then not found.
 */
void maps_unescape(char *path);

#endif
