/*
 * Tables and a symbol worker of their own, for tests of how frames get names. Every function fails
 * the test.
 */
#pragma once

#include "symbol/symbol.h"

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
