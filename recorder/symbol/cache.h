/*
 * The worker's open objects: tables by object, bounded in number, bytes and open files.
 *
 * An object that cannot be read is remembered too, so that its thousand frames do not each try
 * again. Another process that maps it is another chance, at growing intervals. A reference keeps a
 * cached object alive. Its worker's thread only.
 */
#pragma once

#include "base/log.h"
#include "symbol/symbol.h"

struct cache;

/*
 * Told before each use of an object's files, which may hang; file_system: symbol_file_system().
 * enter() returns false when they are to be left alone for now, which is not remembered.
 */
struct cache_gate {
	bool (*enter)(void *ctx, struct object *object, uint64_t file_system);
	void *ctx;
};

/* NULL = no memory. Logs once why an object is unreadable. env and gate outlive the cache. */
struct cache *cache_new(const struct symbol_env *env, const struct cache_gate *gate,
			struct log *log);
void cache_free(struct cache *c);                    /* NULL allowed */

/* Change the ceiling from SYMBOL_CACHE_BYTES, from now on. */
void cache_set_max(struct cache *c, size_t bytes);

/* Open the object now if it is not open; pid maps it. */
void cache_open(struct cache *c, struct object *object, uint32_t pid);

/* Find the function at an offset of the object, opening the object when needed. */
bool cache_find(struct cache *c, struct object *object, uint64_t offset, struct symbol *out);

/* Close the files that were not needed for a while. */
void cache_rest(struct cache *c, uint64_t now_ns);

/* Do a piece of work that no frame waits for, if there is some. */
void cache_idle(struct cache *c);
bool cache_has_idle_work(const struct cache *c);

/* Sets the fields about objects and their failures, files and bytes. */
void cache_use(const struct cache *c, struct symbols_use *out);
