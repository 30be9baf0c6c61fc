/*
 * The .NET programs that run now, for sentences about rules that only they can fire. Any thread.
 */
#ifndef SOURCE_DOTNET_RUNNING_H
#define SOURCE_DOTNET_RUNNING_H

#include "model/process_name.h"

/* Those of containers with file systems of their own are left out. */
typedef void dotnet_running_one(void *ctx, uint32_t pid, const struct process_names *names);

/* Each to one(), some may come twice. false = who they are is not known on this system. */
bool dotnet_running(dotnet_running_one *one, void *ctx);

#endif
