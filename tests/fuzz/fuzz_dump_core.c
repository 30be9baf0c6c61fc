/* Any bytes as an ELF core: everything that it says is asked for once. */
#include "source/dump/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bytes in = bytes_of_memory(data, size);
	char text[DUMP_SIGNAL_BYTES];
	struct dump *d = NULL;
	uint8_t memory[256];
	struct err err;
	uint32_t i;

	if (core_read(&in, &d, &err)) {
		if (!err.text[0])
			__builtin_trap();
		return 0;
	}
	if (!d->nthreads)
		__builtin_trap();
	dump_signal_text(d, text);
	dump_fault_text(d);
	for (i = 0; i < d->nthreads; i++)
		dump_memory(d, d->threads[i].regs[DUMP_SP], memory, sizeof(memory));
	for (i = 0; i < d->nranges; i++)
		if (dump_memory(d, d->ranges[i].end - 16, memory, sizeof(memory)) > size)
			__builtin_trap();
	for (i = 0; i < d->nmodules; i++)
		if (dump_module_at(d, d->modules[i].start) == NULL)
			__builtin_trap();
	dump_free(d);
	return 0;
}
