/*
 * Any bytes as a trace file, or a .zip with one: opened, run twice and summed. The second run has
 * all buffers wait on disk.
 */
#include "source/etl/etl_private.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint64_t nrecords, sum;
	int64_t last_ticks;
};

/* Touch the first and last byte of everything that a record points to. */
static int look(void *ctx, const struct etw_record *r)
{
	struct seen *seen = ctx;

	seen->nrecords++;
	seen->last_ticks = r->ticks;
	if (r->payload_bytes)
		seen->sum += (uint64_t)r->payload[0] + r->payload[r->payload_bytes - 1];
	for (uint32_t i = 0; i < r->nitems; i++)
		if (r->items[i].nbytes)
			seen->sum += (uint64_t)r->items[i].bytes[0] +
				     r->items[i].bytes[r->items[i].nbytes - 1];
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen first = {0}, second = {0};
	struct etl_file *file = NULL;
	struct etl_counts counts;
	struct err err;

	if (etl_file_open_memory("fuzz", data, size, &file, &err))
		return 0;
	if (etl_file_run(file, look, &first, &counts, &err))
		__builtin_trap();
	file->open_max_bytes = 0;
	if (etl_file_run(file, look, &second, &counts, &err))
		__builtin_trap();
	if (first.nrecords != second.nrecords || first.sum != second.sum ||
	    counts.nrecords != first.nrecords)
		__builtin_trap();
	etw_clock_ns(&etl_file_facts(file)->clock, second.last_ticks);
	etl_file_close(file);
	return 0;
}
