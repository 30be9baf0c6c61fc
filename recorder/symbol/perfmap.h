/*
 * Perf maps: the names of jitted functions, as node, .NET, Java and others write them for perf.
 *
 * The text of /tmp/perf-PID.map becomes a sorted index in which every address has one name: that of
 * the last line that covers it, because runtimes reuse memory. Portable, and bounded for any text;
 * obtaining it is host code (symbol_open.h), reading it again perfmap_reader_linux.c.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PERFMAP_MAX_BYTES ((size_t)64 << 20)     /* of the text; the rest is not read */
#define PERFMAP_LINES_MAX (1u << 20)             /* kept; the rest is not */
#define PERFMAP_FUNCTION_MAX_BYTES (1u << 30)    /* a line that claims more is ignored */

/* Open, because the process that parses it (sandbox.h) answers with its parts. */
struct perfmap {
	struct buf text;              /* of the names; a NUL ends each */
	struct perfmap_entry {
		uint64_t start;
		uint32_t bytes;
		uint32_t name;        /* in text */
	} *entries;                   /* in the file's order: those with a range */
	/* Ascending, without overlaps, at most two per line: what one line names. */
	struct perfmap_range {
		uint64_t start;
		uint32_t bytes;
		uint32_t entry;
	} *ranges;
	uint32_t nentries, capacity, nranges;
	bool full;
};

/*
 * text     taken on success, and empty then: it keeps the names
 * returns  0, also for a text without one good line; ERR_MEMORY; ERR_LIMIT over 4 GB
 */
int perfmap_parse(struct buf *text, struct perfmap **out, struct err *err);
/* Of parts that somebody else made: false when perfmap_find() would leave them, or not end. */
bool perfmap_is_sound(const struct perfmap *map);
void perfmap_free(struct perfmap *map);              /* NULL allowed */

uint32_t perfmap_count(const struct perfmap *map);   /* of functions that can be found */
bool perfmap_full(const struct perfmap *map);        /* it had more than PERFMAP_LINES_MAX lines */
size_t perfmap_bytes(const struct perfmap *map);

struct perfmap_function {
	uint64_t start;
	uint32_t bytes;
	const char *name;             /* borrowed from the map; at most FUNCTION_NAME_MAX bytes */
};

bool perfmap_find(const struct perfmap *map, uint64_t address, struct perfmap_function *out);
