/*
 * Whether the JVM of a process keeps frame pointers, by what it says of itself in its performance
 * data, else by its arguments and environment (symbol/jvm.h). Opens files of /proc: for threads
 * that may wait for them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool jvm_options_keep_frame_pointers(uint32_t pid);
