/*
 * Lists of processes or threads in ascending order of their numbers, for sources of Windows. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The place of id in n items of item_bytes that begin with their number, or where it would be. */
uint32_t by_id_find(const void *items, size_t item_bytes, uint32_t n, uint32_t id);

/* Whether the process or thread of a HANDLE (right SYNCHRONIZE) has ended; false for NULL. */
bool by_id_has_ended(void *handle);
