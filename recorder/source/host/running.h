/* The programs that run now, by name, for sentences about rules whose processes are none of them. Any thread. */
#ifndef SOURCE_RUNNING_H
#define SOURCE_RUNNING_H

#include "model/process_name.h"

typedef void running_one(void *ctx, uint32_t pid, const struct process_names *names);

/* Each to one(). false = who they are is not known on this system. */
bool running_each(running_one *one, void *ctx);

#endif
