/* Any bytes as the memory of an image: what its headers point to lies in the image. */
#include "unwind/pe_loaded.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint32_t rva = 0, nbytes = 0, age, image_bytes = n > 4 ? (uint32_t)n : 4;
	struct pe_loaded head;
	uint8_t *bytes = malloc(n ? n : 1), guid[16];

	if (!bytes)
		return 0;
	memcpy(bytes, data, n);
	if (pe_loaded_head(bytes, n, &head)) {
		image_bytes = head.image_bytes;
		if ((uint64_t)head.pdata_rva + head.pdata_bytes > image_bytes ||
		    (uint64_t)head.debug_rva + head.debug_bytes > image_bytes ||
		    (uint64_t)head.eh_rva + head.eh_bytes > image_bytes)
			abort();
	}
	rva = pe_loaded_rsds_at(bytes, n, image_bytes);
	if (rva && (uint64_t)rva + PE_LOADED_RSDS_BYTES > image_bytes)
		abort();
	if (n >= PE_LOADED_RSDS_BYTES)
		pe_loaded_rsds(bytes, guid, &age);
	if (pe_loaded_info_span(bytes, n, image_bytes, &rva, &nbytes) &&
	    (uint64_t)rva + nbytes > image_bytes)
		abort();
	free(bytes);
	return 0;
}
