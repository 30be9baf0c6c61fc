/*
 * How many classes a JVM has loaded and unloaded, by its own count: its performance data, which it
 * keeps in its memory also where no file shows it.
 *
 *	0  CA FE C0 C0, u8 byte order (1 = little), u8 major, u8 minor, u8 accessible
 *	8  i32 used, i32 overflow, i64 time of change, i32 offset of the first entry, i32 entries
 *	   an entry: i32 length, i32 name offset, i32 vector length, u8 type ('J' = i64), u8 flags,
 *	   u8 units, u8 variability, i32 data offset; both offsets count from the entry
 *
 * The count of unloaded ones rises before the memory of a class or of its code is used for anything
 * else, that of loaded ones before code of a class runs. A redefinition loads one, too, and what it
 * replaces is freed without being counted. Source: OpenJDK, runtime/perfMemory.hpp,
 * services/classLoadingService.cpp, classfile/classFileParser.cpp.
 *
 * The functions may wait for the target: tasks call them.
 */
#pragma once

#include "managed/hotspot/layout.h"

#define COUNTER_LOADED "java.cls.loadedClasses"
#define COUNTER_UNLOADED "java.cls.unloadedClasses"

/* Where it stands; 0 = the JVM keeps none, or not yet. */
uint64_t hotspot_counter_find(const struct hotspot_layout *l, const struct managed_memory *memory,
			      const char *name);
/* Its value; false: it cannot be read. */
bool hotspot_counter_read(const struct managed_memory *memory, uint64_t at, uint64_t *out);
