/*
 * Any bytes as what a rule asks for (";Text=..."), read out of any bytes as a program's memory. A
 * corpus file is a byte (1 = a Go program), that text, a NUL, and the memory, to whose start all
 * registers point.
 */
#include "source/host/proc_reader_linux.h"
#include "source/probe/uprobe_text_linux.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char texts[256] = "", bytes[UPROBE_TEXTS_MAX][UPROBE_TEXT_BYTES];
	struct perf_record r = {.kind = PERF_KIND_SAMPLE, .pid = (uint32_t)getpid()};
	struct event_field fields[STAPSDT_ARGUMENTS_MAX];
	struct proc_reader *reader = NULL;
	struct uprobe probe = {.is_go = n && data[0] & 1};
	uint64_t regs[17], memory[64] = {0};
	const uint8_t *nul = n ? memchr(data + 1, 0, n - 1) : NULL;
	unsigned i, nfields;
	struct err err;
	size_t len;

	if (!nul || (len = (size_t)(nul - data - 1)) >= sizeof(texts))
		return 0;
	memcpy(texts, data + 1, len);
	n -= len + 2;
	memcpy(memory, nul + 1, n < sizeof(memory) ? n : sizeof(memory));
	/* A pointer into itself, as what is random leads nowhere. */
	memory[1] = (uint64_t)(uintptr_t)(memory + 2);
	for (i = 0; i < 17; i++)
		regs[i] = (uint64_t)(uintptr_t)memory;
	r.u.sample.regs_abi = 2;
	r.u.sample.regs = regs;
	if (uprobe_texts_parse(&probe, texts, 0, &err))
		return 0;
	if (proc_reader_new(NULL, &reader, NULL))
		return 0;
	nfields = uprobe_texts_read(&probe, reader, &r, 0, bytes, fields, 0);
	if (nfields > probe.ntexts)
		abort();
	for (i = 0; i < nfields; i++)
		if (memchr(fields[i].v.text, 0, UPROBE_TEXT_BYTES) == NULL ||
		    strlen(fields[i].name) >= sizeof(probe.texts[0].name))
			abort();
	proc_reader_free(reader);
	return 0;
}
