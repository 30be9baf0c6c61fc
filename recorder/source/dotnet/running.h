/* The .NET programs that run now, for messages about rules that only they can fire. Any thread. */
#pragma once

#include "model/process_name.h"

/* Programs in containers are left out. */
typedef void dotnet_running_one(void *ctx, uint32_t pid, const struct process_names *names);

/* Call one() for each program, for some twice. false = this system cannot tell. */
bool dotnet_running(dotnet_running_one *one, void *ctx);
