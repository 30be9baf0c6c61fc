/*
 * What is known of one JVM: its layout, the blobs and methods that were met, checked once for each
 * moment of samples. All reads of the target go through tasks, several of them in one where
 * possible, because each task is a switch to another thread and back.
 *
 * The owner's thread only. Pointers to blobs are valid until the next hotspot_cache_begin().
 */
#pragma once

#include "managed/hotspot/blob.h"
#include "managed/hotspot/exception.h"
#include "managed/hotspot/method.h"

#include "base/table.h"

#define HOTSPOT_BYTES_MAX ((size_t)16 << 20) /* of copied blobs, in one process */
#define HOTSPOT_BLOBS_MAX 16384u
#define HOTSPOT_METHODS_MAX 65536u
#define HOTSPOT_NEW_MAX 500u                 /* blobs and methods that are read for one moment */
#define HOTSPOT_WORDS_MAX 65536u             /* of a stack */
#define HOTSPOT_MISSES 64u
#define HOTSPOT_UNLOADS 8u

/* A method that was met, or an address where there is none. */
struct hotspot_known {
	uint64_t address, const_method, pool, class_hash, symbols_hash, bytecodes;
	uint32_t nbytecodes;
	uint16_t name_index, signature_index;
	uint32_t number;                     /* of its name; 0 = none */
	bool valid;
	bool doubtful;                       /* for samples before read_ns; see unloads below */
	uint64_t read_ns;                    /* when it was read first */
	uint64_t changes;                    /* see struct hotspot_check_method */
	uint32_t read, checked, used;        /* moments */
};

struct hotspot_cache {
	struct hotspot_layout *layout;
	struct managed_names *names;         /* borrowed */
	uint32_t moment;
	uint64_t checked_ns;                 /* samples up to this time belong to the moment */
	uint32_t nnew;                       /* read in this moment */
	size_t new_bytes;                    /* of blobs among them */
	bool hangs;                          /* nothing more is read for this sample */
	bool missed;                         /* something was not read that may be there */
	uint32_t nwords;                     /* of the stack that were read for this sample */
	/*
	 * Between the last moment and this one, a method or blob that was known gave way to
	 * something else: classes are unloaded, code is reused. What is read first now may then be
	 * something else than what the sample met at the same address, because memory is read later
	 * than samples are taken.
	 */
	bool methods_changed, blobs_changed;
	/*
	 * So may it be where the JVM has unloaded classes, or loaded others in place of redefined
	 * ones (task.c), between the sample and the reading. Each moment begins with how many: a
	 * count is that of a sample if it was known by then. Each count is kept once, with when it
	 * was known first.
	 */
	uint64_t sample_ns;                  /* of the sample that is walked */
	bool counted;                        /* it was asked for: */
	uint64_t unloads_at, loads_at, heap; /* where the JVM counts; 0 = not known */
	struct { uint64_t known_ns, n; } unloads[HOTSPOT_UNLOADS];   /* newest first; 0 = none */
	uint64_t changes, changed_ns;        /* of classes; when that was noticed, 0 = never read */

	struct hotspot_blob **blobs;         /* by address */
	uint32_t nblobs, blobs_room;
	struct hotspot_blob **dead;          /* freed by hotspot_cache_begin() */
	uint32_t ndead, dead_room;
	size_t bytes;

	struct hotspot_known *methods;
	uint32_t nmethods, methods_room;
	struct table by_address;

	struct { uint64_t pc; uint32_t moment; } misses[HOTSPOT_MISSES];
	char detail[MANAGED_TEXT_MAX];       /* of the method that is being named */

	struct hotspot_exceptions exceptions;
	uint64_t collections, collections_ns;        /* how many there were; when that was read */
	uint64_t moved_ns;                   /* when a collection was last noticed; 0 = never */
};

/* takes layout; names is borrowed */
struct hotspot_cache *hotspot_cache_new(struct hotspot_layout *layout,
					struct managed_names *names);
void hotspot_cache_free(struct hotspot_cache *c);    /* NULL allowed */

/* A sample of that time is walked next. */
void hotspot_cache_begin(struct hotspot_cache *c, const struct managed_host *host,
			 uint64_t sample_ns);

/* The blob of an address; NULL = there is none, or it is not read now: then missed is set. */
struct hotspot_blob *hotspot_cache_blob(struct hotspot_cache *c, const struct managed_host *host,
					uint64_t pc);
/*
 * Whether there is a method at an address. out: a copy, because methods move when one is added;
 * NULL = it is not wanted.
 */
bool hotspot_cache_method(struct hotspot_cache *c, const struct managed_host *host,
			  uint64_t address, struct hotspot_known *out);
/* The number of its name; 0 = it may be that of another method than the sample met. */
uint32_t hotspot_cache_number(const struct hotspot_cache *c, const struct hotspot_known *k);
/* What the exception says that was at this address at that time. false: there is none */
bool hotspot_cache_thrown(struct hotspot_cache *c, const struct managed_host *host,
			  uint64_t object, uint64_t time_ns, struct managed_thrown *out);
/* Names of methods of a blob: numbers of metadata (UINT32_MAX = its own method); 0 = unknown. */
void hotspot_cache_numbers(struct hotspot_cache *c, const struct managed_host *host,
			   struct hotspot_blob *b, const struct hotspot_scope *scopes, uint32_t n,
			   uint32_t *numbers);
