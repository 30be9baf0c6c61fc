/* What rules can name of the .NET runtime and of the collections of others (pause_list.h), as source_ops.list_events has it. Portable. */
#ifndef SOURCE_DOTNET_LIST_H
#define SOURCE_DOTNET_LIST_H

#include "base/err.h"
#include "base/out.h"

#include <stdbool.h>

int dotnet_list_events(const char *pattern, bool json, struct out *out, struct err *err);
/* Whether the runtime has an event of this name, or it is named by number (EventID(39)); near: appends the nearest. */
bool dotnet_list_knows(const char *event, struct buf *near);

#endif
