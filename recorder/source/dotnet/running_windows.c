#include "source/dotnet/running.h"

/* Without rights in a process, nothing shows from outside that it runs .NET Framework. */
bool dotnet_running(dotnet_running_one *one, void *ctx)
{
	(void)one;
	(void)ctx;
	return false;
}
