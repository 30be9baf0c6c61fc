/*
 * Any text as /proc/kallsyms: every listed function is found at its own address. Its beginning is
 * also the name of code that the kernel made after its start. Who takes the text from another user
 * has the same one.
 */
#include "symbol/kallsyms.h"
#include "symbol/reader.h"

#include <stddef.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void name_late_code(const uint8_t *data, size_t size)
{
	char name[20] = "";
	struct object object = {.key = {.kind = OBJECT_KERNEL, .path = name}};
	struct symbol_table *table = NULL;
	struct symbol s;

	memcpy(name, data, size < sizeof(name) - 1 ? size : sizeof(name) - 1);
	if (!ksymbol_reader.reads(&object) || ksymbol_reader.open(NULL, &object, 0, &table, NULL))
		return;
	if (!ksymbol_reader.find(table, 0, &s) || s.name != name || !s.module)
		__builtin_trap();
	ksymbol_reader.close(table);
}

static void hand_over(const uint8_t *data, size_t size)
{
	struct kallsyms_text *t = kallsyms_text_new();
	struct buf text = {0}, taken = {0};
	uint64_t modules = 0;

	buf_put(&text, data, size);
	kallsyms_text_promise(t);
	kallsyms_text_give(t, &text, size);
	if (kallsyms_text_take(t, &taken, &modules) != (size > 0) || modules != size ||
	    taken.len != size || (size && memcmp(taken.data, data, size) != 0) || text.len)
		__builtin_trap();
	kallsyms_text_drop(t);
	kallsyms_text_free(t);
	buf_free(&taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct kallsyms_line line;
	struct kernel_function f;
	struct kallsyms *k = NULL;
	struct err err;

	name_late_code(data, size);
	hand_over(data, size);
	if (kallsyms_parse(at, size, &k, &err)) {
		if (!err.text[0])
			__builtin_trap();
		return 0;
	}
	if (!kallsyms_base(k) || kallsyms_bytes(k) < kallsyms_count(k))
		__builtin_trap();
	while (size && kallsyms_next(&at, end, &line)) {
		if (kallsyms_find(k, line.address, &f) && f.address > line.address)
			__builtin_trap();
		kallsyms_find(k, line.address + 1, &f);
	}
	kallsyms_free(k);
	return 0;
}
