/*
 * How many classes a JVM has unloaded, by its own count: java.cls.unloadedClasses of its
 * performance data, which it keeps in its memory also where no file shows it.
 *
 *	0  CA FE C0 C0, u8 byte order (1 = little), u8 major, u8 minor, u8 accessible
 *	8  i32 used, i32 overflow, i64 time of change, i32 offset of the first entry, i32 entries
 *	   an entry: i32 length, i32 name offset, i32 vector length, u8 type ('J' = i64), u8 flags,
 *	   u8 units, u8 variability, i32 data offset; both offsets count from the entry
 *
 * The count rises before the memory of a class or of its code is used for anything else. Source:
 * OpenJDK, runtime/perfMemory.hpp, services/classLoadingService.cpp.
 *
 * The functions may wait for the target: tasks call them.
 */
#pragma once

#include "managed/hotspot/layout.h"

/* Where it stands; 0 = the JVM keeps none, or not yet. */
uint64_t hotspot_unloads_find(const struct hotspot_layout *l, const struct managed_memory *memory);
/* Its value; false: it cannot be read. */
bool hotspot_unloads_read(const struct managed_memory *memory, uint64_t at, uint64_t *out);
