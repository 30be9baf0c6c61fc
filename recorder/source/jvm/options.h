/*
 * Whether the JVM of a process keeps frame pointers. Its performance data tells; else its arguments
 * and environment do (symbol/jvm.h). Opens files of /proc, so only for threads that may wait for
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool jvm_options_keep_frame_pointers(uint32_t pid);
