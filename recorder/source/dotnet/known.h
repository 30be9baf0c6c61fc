/*
 * Which providers of .NET events there are: those of .NET itself and of its common libraries by a
 * list, and the EventSources of programs by what their files contain.
 *
 * Programs do not tell which EventSources they have. But a provider's name stands in the file that
 * has its class: as UTF-8 with its length before it (the attribute Name), as UTF-8 between other
 * names (the name of the class), or as UTF-16 (a constant). Source: ECMA-335, II.23.3, II.24.2.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* A name of the list as .NET spells it, which is how programs compare it; NULL = not there. */
const char *dotnet_known(const char *name);
/* Append the nearest names of the list, or nothing. */
void dotnet_known_near(const char *name, struct buf *out);
/*
 * Whether an EventCounter of a provider is on the list; of providers without a list, no. Appends
 * the nearest of its list.
 */
bool dotnet_known_counter(const char *provider, const char *counter, struct buf *near);
/* What to use on Linux instead of a provider of Windows, as part of a sentence; NULL = no idea. */
const char *dotnet_instead(const char *name);
/* Whether bytes of a file contain the name of an EventSource. Pure. */
bool dotnet_bytes_name(const void *bytes, size_t n, const char *name);

enum dotnet_found {
	DOTNET_NO_PROGRAM,                   /* no .NET program runs */
	DOTNET_FOUND,
	DOTNET_NOT_FOUND,
	DOTNET_NOT_SURE,                     /* some files could not be read, or not in time */
};

/*
 * Look for the name in the files of the .NET programs that run, for a second at most. Never waits
 * longer for a file system that hangs.
 */
enum dotnet_found dotnet_find_provider(const char *name);
