/* Any bytes as a message of the process connector. */
#include "source/process/exit_record.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct exit_record r;

	if (exit_record_parse(data, n, &r) && r.kind == EXIT_RECORD_EXIT &&
	    (r.signal > 127 || n < 68))
		abort();
	return 0;
}
