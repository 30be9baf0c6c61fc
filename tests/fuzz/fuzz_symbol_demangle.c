/* Any bytes as a linker name: the result and the time it takes are bounded. */
#include "symbol/demangle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), out[4001];

	if (!name)
		return 0;
	if (size)
		memcpy(name, data, size);
	name[size] = '\0';
	if (demangle(name, out, sizeof(out)) && strlen(out) >= sizeof(out))
		__builtin_trap();
	free(name);
	return 0;
}
