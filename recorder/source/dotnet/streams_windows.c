/* There is none here: see streams.h. */
#include "source/dotnet/streams.h"

int dotnet_streams_serve(void)
{
	return 1;
}
