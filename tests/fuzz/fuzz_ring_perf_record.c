/* Any bytes as a record of a perf ring; the first byte chooses how the sampler was opened. */
#include "source/ring/perf_record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum;                     /* so that the compiler keeps every read */

static void read_sample(const struct perf_record *r, unsigned nregs)
{
	uint32_t i;

	for (i = 0; i < r->u.sample.nkernel; i++)
		sum += r->u.sample.kernel[i];
	for (i = 0; i < r->u.sample.nuser; i++) {
		if (r->u.sample.user[i] >= (uint64_t)-4095)
			__builtin_trap();            /* a marker was passed as an address */
	}
	for (i = 0; r->u.sample.regs && i < nregs; i++)
		sum += r->u.sample.regs[i];
	for (i = 0; i < r->u.sample.raw_bytes; i++)
		sum += r->u.sample.raw[i];
	for (i = 0; i < r->u.sample.stack_bytes; i++)
		sum += r->u.sample.stack[i];
}

static void read_record(const struct perf_record *r, const struct perf_format *format)
{
	if (r->kind == PERF_KIND_SAMPLE)
		read_sample(r, format->nregs);
	else if (r->kind == PERF_KIND_MMAP)
		sum += strlen(r->u.mmap.path);
	else if (r->kind == PERF_KIND_COMM)
		sum += strlen(r->u.comm.name);
	else if (r->kind == PERF_KIND_SWITCH || r->kind == PERF_KIND_WAKE)
		sum += r->u.change.other_tid + r->u.change.out;
	else if (r->kind == PERF_KIND_KSYMBOL)
		sum += strlen(r->u.ksymbol.name) + r->u.ksymbol.bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_format format = {0};
	struct perf_record r;
	uint16_t record_size;
	uint64_t *record;

	if (size < 9 || size > PERF_RECORD_MAX_BYTES)
		return 0;
	format.callchain = data[0] & 1;
	format.nregs = data[0] & 2 ? 17 : 0;
	format.stack = (data[0] & 4) != 0;
	format.raw = (data[0] & 8) != 0;
	format.cgroup = (data[0] & 16) != 0;
	format.address = (data[0] & 32) != 0;
	format.short_id = data[0] >> 6 & 1;
	format.program_bytes = data[0] & 128 ? 24 : 0;
	size--;
	record = malloc(size);           /* aligned as in the ring, with no byte to spare */
	if (!record)
		return 0;
	memcpy(record, data + 1, size);
	record_size = (uint16_t)size;    /* its own size, which is not worth guessing */
	memcpy((char *)record + 6, &record_size, 2);
	if (perf_record_parse(record, size, &format, &r))
		read_record(&r, &format);
	free(record);
	return 0;
}
