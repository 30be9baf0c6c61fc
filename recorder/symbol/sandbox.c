#include "symbol/sandbox.h"

#include "symbol/demangle.h"
#include "symbol/elf_section.h"
#include "symbol/r2r.h"

#include <stdio.h>
#include <string.h>

int sandbox_index_here(const struct bytes *in, const struct elf_head *head,
		       enum sandbox_index which, struct elf_index **out, char *note,
		       struct err *err)
{
	struct buf text = {.max_bytes = ELF_MINIDEBUG_MAX_BYTES + 1};
	struct err why = {0};
	struct bytes mini;
	int rc = ERR_NOT_FOUND;

	*note = '\0';
	if (which == SANDBOX_DOTNET)
		return r2r_index_new(in, out, err);
	if (which == SANDBOX_PACKED)
		rc = elf_minidebug_read(in, head, &text, &why);
	if (!rc) {
		mini = bytes_of_memory(text.data, text.len);
		rc = elf_index_new(in, head, &mini, out, &why);
	}
	buf_free(&text);
	if (!rc)
		return 0;
	if (rc != ERR_NOT_FOUND)
		snprintf(note, SANDBOX_NOTE_BYTES,
			 "%.300s; only its exported functions have names", why.text);
	return elf_index_new(in, head, NULL, out, err);
}

/* What libiberty would take apart: of Itanium C++ and of Rust. */
bool sandbox_takes(const struct sandbox *s, const char *raw)
{
	return s && raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R' || raw[1] == 'G') &&
	       strnlen(raw, DEMANGLE_MAX_BYTES + 1) <= DEMANGLE_MAX_BYTES;
}

bool sandbox_index_is_sound(const struct elf_index *index)
{
	uint32_t i;

	if (index->base > UINT64_MAX / 2 || index->nentries > ELF_FUNCTIONS_MAX)
		return false;
	for (i = 0; i < ELF_TABLES; i++)
		if (index->strings[i].size > ELF_FILE_MAX_BYTES ||
		    index->strings[i].offset > ELF_FILE_MAX_BYTES)
			return false;
	for (i = 0; i < index->nentries; i++) {
		const struct elf_entry *e = &index->entries[i];

		if (i && e->start <= e[-1].start)
			return false;
		if ((e->name & ~ELF_NAME_BITS) >=
		    index->strings[e->name >= ELF_NAME_IN_DYNSYM].size)
			return false;
	}
	return true;
}
