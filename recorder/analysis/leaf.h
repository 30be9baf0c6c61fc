/*
 * Frames that are no code: what a view puts below a stack, such as the name of an event or a file.
 */
#pragma once

#include "model/incident.h"

/* Add the module that these frames are in; UINT32_MAX = no memory. */
uint32_t leaf_module(struct incident *in);
/* The node of such a frame below a stack (STACK_NONE = alone); STACK_NONE = no memory. */
uint32_t leaf_add(struct incident *in, uint32_t module, uint32_t stack, const char *what);
