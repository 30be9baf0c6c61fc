/* Any bytes as the answer of an S3 server, and as a Retry-After. */
#include "net/s3.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *xml = malloc(size + 1), text[40];
	struct s3_object o;
	const char *at;

	if (!xml)
		return 0;
	memcpy(xml, data, size);
	xml[size] = '\0';
	for (at = xml; s3_next_object(&at, &o);)
		if (strlen(o.key) > S3_KEY_MAX || at > xml + size)
			abort();
	s3_member(xml, xml + strlen(xml), "NextContinuationToken", text, sizeof(text));
	s3_error_text(xml, text, sizeof(text));
	retry_after(xml, 784111770ULL * NS_PER_SEC);
	free(xml);
	return 0;
}
