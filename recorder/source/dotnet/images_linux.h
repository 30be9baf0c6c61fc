/* Which files with code a .NET program maps, from /proc/PID/maps. */
#pragma once

#include "base/pool.h"
#include "source/dotnet/stacks.h"

/*
 * Tell a program its mappings (dotnet_program_images()). A process that does not answer is asked
 * again at the next call. The owner of the pool.
 */
void dotnet_images_read(struct pool *pool, uint32_t pid, struct dotnet_program *program);
