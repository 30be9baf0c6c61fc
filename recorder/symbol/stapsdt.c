#include "symbol/stapsdt.h"

#include "base/array.h"
#include "symbol/elf_format.h"
#include "symbol/elf_section.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { OWNER_BYTES = 8, TYPE_PROBE = 3 };

/* ---- notes ----------------------------------------------------------------------------------- */

static bool get_text(struct cursor *c, char *out, size_t room)
{
	const char *text = cursor_text(c);

	if (!text || strlen(text) >= room)
		return false;
	strcpy(out, text);
	return true;
}

static bool read_probe(struct cursor c, const struct elf_head *head, uint64_t base_now,
		       struct stapsdt *out)
{
	uint64_t address, base, semaphore;

	if (!cursor_number(&c, 8, &address) || !cursor_number(&c, 8, &base) ||
	    !cursor_number(&c, 8, &semaphore) ||
	    !get_text(&c, out->provider, sizeof(out->provider)) ||
	    !get_text(&c, out->name, sizeof(out->name)) ||
	    !get_text(&c, out->arguments, sizeof(out->arguments)))
		return false;
	if (base_now && base)
		address += base_now - base;
	if (base_now && base && semaphore)
		semaphore += base_now - base;
	out->semaphore = 0;
	return elf_offset(head, address, &out->offset) &&
	       (!semaphore || elf_offset(head, semaphore, &out->semaphore));
}

static int each_note(struct cursor notes, const struct elf_head *head, uint64_t base_now,
		     stapsdt_one *one, void *ctx)
{
	struct stapsdt probe;
	struct elf_note note;
	unsigned n = 0;
	int rc = 0;

	while (!rc && n++ < STAPSDT_PROBES_MAX && elf_note_next(&notes, 4, &note)) {
		if (note.name_bytes == OWNER_BYTES && note.type == TYPE_PROBE &&
		    memcmp(note.name, "stapsdt", OWNER_BYTES) == 0 &&
		    read_probe(cursor_over(note.desc, note.desc_bytes), head, base_now, &probe))
			rc = one(ctx, &probe);
	}
	return rc;
}

int stapsdt_each(const struct bytes *in, const struct elf_head *head, stapsdt_one *one, void *ctx,
		 struct err *err)
{
	struct elf_section notes, base;
	uint64_t base_now = 0;
	uint8_t *bytes;
	int rc;

	if (!head->is64)
		return err_set(err, ERR_UNSUPPORTED, "probes of 32-bit programs are not read");
	rc = elf_section_find(in, head, ".note.stapsdt", &notes, err);
	if (rc)
		return rc;
	if (notes.size > STAPSDT_SECTION_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "its probe notes take more than %llu MB",
			       (unsigned long long)(STAPSDT_SECTION_MAX_BYTES >> 20));
	if (elf_section_find(in, head, ".stapsdt.base", &base, NULL) == 0)
		elf_vaddr(head, base.offset, &base_now);
	bytes = malloc(notes.size + 1);
	if (!bytes)
		return err_memory(err, "for its probe notes");
	rc = bytes_read(in, notes.offset, bytes, notes.size, "its probe notes", err);
	if (!rc)
		rc = each_note(cursor_over(bytes, notes.size), head, base_now, one, ctx);
	free(bytes);
	return rc;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* In perf's order; each with its names for 8, 4, 2 bytes and 1. */
static const struct {
	const char *names[4];
	uint8_t reg;
} registers[] = {
	{{"rax", "eax", "ax", "al"}, 0},  {{"rbx", "ebx", "bx", "bl"}, 1},
	{{"rcx", "ecx", "cx", "cl"}, 2},  {{"rdx", "edx", "dx", "dl"}, 3},
	{{"rsi", "esi", "si", "sil"}, 4}, {{"rdi", "edi", "di", "dil"}, 5},
	{{"rbp", "ebp", "bp", "bpl"}, 6}, {{"rsp", "esp", "sp", "spl"}, 7},
	{{"rip", "eip", "ip", "ip"}, 8},
};

static bool find_register(const char *at, size_t n, uint8_t *out)
{
	size_t i, j;

	for (i = 0; i < COUNT_OF(registers); i++) {
		for (j = 0; j < 4; j++) {
			if (strlen(registers[i].names[j]) != n ||
			    memcmp(registers[i].names[j], at, n) != 0)
				continue;
			*out = registers[i].reg;
			return true;
		}
	}
	/* r8 to r15, also r8d, r8w, r8b */
	if (n < 2 || at[0] != 'r' || !isdigit((unsigned char)at[1]))
		return false;
	i = (size_t)(at[1] - '0');
	j = 2;
	if (n > 2 && isdigit((unsigned char)at[2]))
		i = i * 10 + (size_t)(at[j++] - '0');
	if (i < 8 || i > 15 || n > j + 1 || (n == j + 1 && !strchr("dwb", at[j])))
		return false;
	*out = (uint8_t)(16 + i - 8);
	return true;
}

static void read_operand(const char *at, size_t n, struct stapsdt_argument *out)
{
	const char *end = at + n;
	char *number;

	if (n > 1 && at[0] == '$') {
		out->value = strtoll(at + 1, &number, 0);
		out->place = number == end ? STAPSDT_CONSTANT : STAPSDT_UNKNOWN;
		return;
	}
	if (n > 1 && at[0] == '%') {
		if (find_register(at + 1, n - 1, &out->reg))
			out->place = STAPSDT_REGISTER;
		return;
	}
	if (isdigit((unsigned char)at[0]) || at[0] == '-') {
		out->value = strtoll(at, &number, 0);
		n -= (size_t)(number - at);
		at = number;
	}
	/* (%rsp): with an index or a name in it, it is not understood. */
	if (n > 3 && at[0] == '(' && at[1] == '%' && end[-1] == ')' &&
	    find_register(at + 2, n - 3, &out->reg) && out->reg != 8)
		out->place = STAPSDT_MEMORY;
}

unsigned stapsdt_arguments(const char *text, struct stapsdt_argument out[STAPSDT_ARGUMENTS_MAX])
{
	unsigned n = 0;

	while (*text && n < STAPSDT_ARGUMENTS_MAX) {
		struct stapsdt_argument *a = &out[n];
		size_t len;
		char *at;
		long bytes;

		text += strspn(text, " ");
		len = strcspn(text, " ");
		if (!len)
			break;
		memset(a, 0, sizeof(*a));
		bytes = strtol(text, &at, 10);
		a->is_signed = bytes < 0;
		bytes = bytes < 0 ? -bytes : bytes;
		a->bytes = bytes == 1 || bytes == 2 || bytes == 4 ? (uint8_t)bytes : 8;
		if (at > text && *at == '@' && at + 1 < text + len)
			read_operand(at + 1, len - (size_t)(at + 1 - text), a);
		text += len;
		n++;
	}
	return n;
}
