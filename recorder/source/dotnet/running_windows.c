#include "source/dotnet/running.h"

/* Programs of .NET Framework have no mark that is seen from outside without rights in them. */
bool dotnet_running(dotnet_running_one *one, void *ctx)
{
	(void)one;
	(void)ctx;
	return false;
}
