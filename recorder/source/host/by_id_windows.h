/*
 * Lists of processes and of threads by number, ascending: what the lists of Windows' sources share. Any thread.
 */
#ifndef SOURCE_BY_ID_WINDOWS_H
#define SOURCE_BY_ID_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where id stands, or would, in n items of item_bytes each that begin with their number. */
uint32_t by_id_find(const void *items, size_t item_bytes, uint32_t n, uint32_t id);

/* Whether the process or thread of a HANDLE with the right SYNCHRONIZE has ended; of NULL nobody knows: false. */
bool by_id_has_ended(void *handle);

#endif
