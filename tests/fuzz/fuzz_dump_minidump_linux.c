/*
 * Any bytes as a minidump: everything that it says is asked for once, and its stacks are walked. If
 * the last two bytes are "PE", the program's file comes before them: its bytes, and how many (u16).
 */
#include "source/dump/minidump.h"
#include "source/dump/pe_stacks.h"

#include "base/bytes.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Cut the program off the end of the input; its descriptor, or -1 = there is none. */
static int program_of(const uint8_t *data, size_t *size)
{
	size_t n = *size;
	int file;

	if (n < 4 || data[n - 2] != 'P' || data[n - 1] != 'E' || le16(data + n - 4) > n - 4)
		return -1;
	*size = n - 4 - le16(data + n - 4);
	file = memfd_create("program", MFD_CLOEXEC);
	if (file >= 0 && write(file, data + *size, n - 4 - *size) < 0)
		__builtin_trap();
	return file;
}

static void note(void *ctx, const char *text)
{
	if (!*text)
		__builtin_trap();
	++*(uint32_t *)ctx;
}

static void walk(const struct dump *d, const char *program)
{
	static struct frames *frames;
	const struct symbol_env env = {0};
	struct pe_stacks *s;
	uint32_t i, doubts = 0;

	if (!frames && frames_new(&frames, NULL))
		__builtin_trap();
	if (pe_stacks_open(d, program, &env, frames, &s, NULL))
		return;
	for (i = 0; i < d->nthreads && i < 8; i++)
		if (pe_stacks_walk(s, &d->threads[i])->nframes > STACK_MAX_FRAMES)
			__builtin_trap();
	pe_stacks_doubts(s, note, &doubts);
	pe_stacks_close(s);
	frames_sweep_all(frames, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_dump(const uint8_t *data, size_t size, const char *program)
{
	const struct bytes in = bytes_of_memory(data, size);
	char text[DUMP_SIGNAL_BYTES];
	struct dump *d = NULL;
	uint8_t memory[256];
	struct err err;
	uint32_t i;

	if (minidump_read(&in, &d, &err)) {
		if (!err.text[0])
			__builtin_trap();
		return;
	}
	if (!d->nthreads)
		__builtin_trap();
	dump_signal_text(d, text);
	dump_fault_text(d);
	for (i = 1; i < d->nranges; i++)
		if (d->ranges[i].start < d->ranges[i - 1].end)
			__builtin_trap();
	for (i = 0; i < d->nranges; i++)
		if (dump_memory(d, d->ranges[i].end - 16, memory, sizeof(memory)) > size)
			__builtin_trap();
	for (i = 0; i < d->nmodules; i++)
		if (dump_module_at(d, d->modules[i].start) == NULL)
			__builtin_trap();
	walk(d, program);
	dump_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int file = program_of(data, &size);
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	read_dump(data, size, file < 0 ? NULL : path);
	if (file >= 0)
		close(file);
	return 0;
}
