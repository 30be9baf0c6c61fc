/*
 * Tables and a symbol worker of their own, for tests of how frames get names. Every function fails
 * the test.
 */
#pragma once

#include "symbol/symbol.h"

#include <string.h>

struct symbol_world {
	struct frames *frames;
	struct processes *processes;
	struct symbols *symbols;
};

/* env NULL: as of a live recording, without a cache. log: NULL = none. */
void symbol_world_open(struct symbol_world *w, const struct symbol_env *env, struct log *log);
void symbol_world_close(struct symbol_world *w);

/*
 * The name that a frame of this process gets within 20 s, in a world of its own; out: n bytes, "" =
 * none.
 */
void symbol_world_name(const struct symbol_env *env, struct log *log, const struct object_key *key,
		       uint64_t offset, char *out, size_t n);

/*
 * Metadata of a .NET module "M", made by hand: type 2 is N.Outer, with the methods 1 First and 2
 * Second; type 3 is its Inner, with 3 Third.
 */
#define CLR_METADATA_BYTES 0x130u
#define CLR_STRINGS_AT 0xd0u                 /* "\0M.dll\0Outer..." */

static inline void put_bytes(uint8_t *to, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
}

static inline void put_u32(uint8_t *to, uint32_t v)
{
	put_bytes(to, (uint8_t[]){(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
				  (uint8_t)(v >> 24)}, 4);
}

void put_clr_metadata(uint8_t root[CLR_METADATA_BYTES]);
