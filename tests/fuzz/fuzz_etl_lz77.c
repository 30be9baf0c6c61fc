/* Any bytes as a compressed buffer; the first two are the size that it should expand to. */
#include "source/etl/lz77.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t nout, got;
	uint8_t *out;
	enum lz77_end end;

	if (size < 2)
		return 0;
	nout = (size_t)data[0] | (size_t)data[1] << 8;
	out = malloc(nout ? nout : 1);       /* exactly that size, so that one byte more is seen */
	if (!out)
		abort();
	end = lz77_expand(data + 2, size - 2, out, nout, &got);
	if (got > nout || (end == LZ77_WHOLE && got != nout))
		__builtin_trap();
	free(out);
	return 0;
}
