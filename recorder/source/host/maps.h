/*
 * The executable mappings of one process, by address. Finding, inserting and removing one takes
 * O(log n): a process may replace thousands of mappings again and again.
 *
 * After fork the child shares the list by reference; the first change makes a copy. A new mapping
 * splits the mappings that it overlaps. Portable; the source's thread only.
 */
#pragma once

#include "model/frame.h"

#define MAPS_MAX 16384u                 /* executable mappings kept for one process */

struct mapping {
	uint64_t start, end;            /* [start, end) */
	uint64_t pgoff;               /* file offset of start; the address itself for JIT regions */
	struct object *object;
	uint32_t flags;                 /* FRAME_JIT: its frames are JIT code */
};

struct maps;

struct maps *maps_new(void);                                 /* NULL = no memory */
struct maps *maps_share(struct maps *maps);                  /* one more reference */
void maps_free(struct maps *maps, uint64_t now_ns);          /* drops objects; NULL allowed */

/*
 * Insert a mapping. Takes its object reference, also on failure; may replace *maps by a copy.
 *
 * returns  0, ERR_MEMORY, or ERR_LIMIT when the process has MAPS_MAX mappings already
 */
int maps_insert(struct maps **maps, const struct mapping *mapping, uint64_t now_ns);

/* Remove [start, end); ERR_MEMORY leaves the list unchanged. */
int maps_remove(struct maps **maps, uint64_t start, uint64_t end, uint64_t now_ns);

/* The mapping that holds an address, or NULL. */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);
uint32_t maps_count(const struct maps *maps);

/*
 * Turn \012 back into the newline for which /proc/PID/maps writes it, as the kernel's records have
 * it (fs/seq_file.c, mangle_path()); in place. A path that really contains these four characters
 * cannot be distinguished, and its file is not found.
 */
void maps_unescape(char *path);

/* A line of /proc/PID/maps: START-END rwxp PGOFF MAJOR:MINOR INODE PATH, numbers hex but INODE. */
struct maps_line {
	uint64_t start, end, pgoff, ino;
	unsigned major, minor;
	bool executable;
	char *path;                          /* into the line; "" = none */
};
/* line: without its LF; its path is unescaped in place. returns  false when it is another text */
bool maps_line_read(char *line, struct maps_line *out);
/*
 * Call one() for each executable mapping of a whole /proc/PID/maps, which is cut into lines, until
 * it returns false; a path is only there for the call. returns  false when a line is another text
 */
bool maps_each_code(char *text, bool (*one)(void *ctx, const struct maps_line *l), void *ctx);

/* Is what is mapped by this path no file, but memory that a program fills with code? */
bool maps_path_is_run_time(const char *path);
