/* Any bytes as a segment: refused, or sound in every index. */
#include "tests/support/segment_sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct segment_content c;
	struct err err;

	if (segment_decode(data, size, &c, &err))
		return 0;
	if (!segment_sound(&c))
		__builtin_trap();
	segment_content_free(&c);
	return 0;
}
