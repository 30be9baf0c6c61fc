/*
 * Methods: from a Method* to its name.
 *
 * A Method* that a stack or an nmethod holds may belong to a class that was unloaded since, so
 * everything on the way is checked: pointers, indices, and that both symbols are there.
 *
 * The functions that take a managed_memory may wait for the target: tasks call them.
 */
#pragma once

#include "managed/ahead.h"
#include "managed/hotspot/layout.h"

struct hotspot_method {
	uint64_t address, const_method, pool;
	uint64_t class_hash;                 /* of its class's name */
	uint64_t symbols_hash;               /* of where the symbols of name and signature are */
	uint16_t name_index, signature_index;
	uint64_t bytecodes;                  /* where they begin */
	uint32_t nbytecodes;
	char *function;                      /* "java.util.HashMap.getNode"; owned */
	char *signature;                     /* "(ILjava/lang/Object;)V"; owned */
	char *lines;                         /* as in managed_names_add(); NULL = none; owned */
};

/* returns  whether there is a method; then out is filled */
bool hotspot_method_read(const struct hotspot_layout *l, const struct managed_memory *memory,
			 uint64_t address, struct hotspot_method *out);
void hotspot_method_clear(struct hotspot_method *method);

/*
 * " HashMap.java 0:570 9:572" from a compressed line table of n bytes: the file, then the line at
 * which each index of bytecodes begins. A table that is damaged or too long ends early.
 * returns  owned; NULL without memory
 */
char *hotspot_lines_text(const struct hotspot_layout *l, const char *file, const uint8_t *table,
			 uint32_t n);

/*
 * Is it still the one that was read? A class that is loaded where another was unloaded may have all
 * its parts at the same addresses, so names are compared too: the class's, and where those of the
 * method are. classes: read at this moment, {0} at first; NULL: no class was loaded or unloaded
 * since names were compared last.
 */
#define HOTSPOT_CLASSES 256u
struct hotspot_classes {
	struct { uint64_t pool, hash; } of[HOTSPOT_CLASSES];
};
bool hotspot_method_same(const struct hotspot_layout *l, const struct managed_memory *memory,
			 const struct hotspot_method *method, struct hotspot_classes *classes);
/* What that will read of a method that is still the same is read ahead; names: they, too. */
void hotspot_method_ahead(const struct hotspot_layout *l, struct managed_ahead *ahead,
			  const struct hotspot_method *method, bool names);

/* The name of a class as it has it: "java/util/Map"; owned; NULL: it cannot be read. */
char *hotspot_class_read(const struct hotspot_layout *l, const struct managed_memory *m,
			 uint64_t klass);
/* The symbol in a slot of a pool that has npool, as a text; owned; NULL: there is none. */
char *hotspot_pool_symbol(const struct hotspot_layout *l, const struct managed_memory *m,
			  uint64_t pool, uint64_t index, uint64_t npool, uint32_t max);

/*
 * A class name as people read it: dots for slashes; without the address that a hidden class has in
 * its name, and without the number of a lambda's class: both are others in each run. In place.
 */
void hotspot_class_name(char *name);
