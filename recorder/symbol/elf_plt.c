/*
 * A stub and its word (System V ABI, AMD64 supplement, "Procedure Linkage Table"):
 *
 *	.plt.sec   f3 0f 1e fa        endbr64, with IBT
 *	           f2                 bnd, of older linkers
 *	           ff 25 XX XX XX XX  jmp *XX(%rip)      -> a word of .got
 *	.rela.plt  24 bytes: where the word is, type and number in .dynsym, addend
 */
#include "symbol/elf_plt.h"

#include "base/array.h"
#include "base/sort.h"
#include "symbol/elf_format.h"

#include <stdlib.h>
#include <string.h>

enum {
	MACHINE_X86_64 = 62, SHT_RELA = 4, RELA_BYTES = 24, SYMBOL_BYTES = 24, STUB_BYTES = 16,
	R_GLOB_DAT = 6, R_JUMP_SLOT = 7,
};
#define SECTION_MAX_BYTES ((uint64_t)32 << 20)

struct words {
	struct sort_item *items;             /* key: where; value: number in .dynsym */
	uint32_t n, room;
};

/* A section's bytes; empty = it has none, too many, or no memory (*rc). */
static struct bytes_part take(const struct bytes *in, const struct elf_section *s, int *rc)
{
	struct bytes_part part = {0};
	struct err ignored;

	if (s->size && s->size <= SECTION_MAX_BYTES &&
	    bytes_take(in, s->offset, (size_t)s->size, "its stubs", &part, &ignored) == ERR_MEMORY)
		*rc = ERR_MEMORY;
	return part;
}

static int add_words(struct words *w, const struct bytes *in, const struct elf_section *s)
{
	int rc = 0;
	struct bytes_part part = take(in, s, &rc);
	const uint8_t *data = part.at;
	uint64_t at;

	for (at = 0; data && !rc && at + RELA_BYTES <= s->size; at += RELA_BYTES) {
		uint32_t type = le32(data + at + 8);

		if (type != R_GLOB_DAT && type != R_JUMP_SLOT)
			continue;
		rc = ARRAY_ROOM(w->items, w->room, w->n + 1) ? ERR_MEMORY : 0;
		if (!rc)
			w->items[w->n++] = (struct sort_item){
				.key = le64(data + at), .value = {le32(data + at + 12)}};
	}
	bytes_drop(&part);
	return rc;
}

static int sort_words(struct words *w)
{
	struct sort_item *scratch = malloc(((size_t)w->n + 1) * sizeof(*scratch));

	if (scratch)
		sort_items(w->items, scratch, w->n);
	free(scratch);
	return scratch ? 0 : ERR_MEMORY;
}

/* The address of the word that a stub jumps through; 0 = it is no such stub. */
static uint64_t word_of(const uint8_t *stub, size_t n, uint64_t vaddr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = n >= 4 && memcmp(stub, endbr64, 4) == 0 ? 4 : 0;

	at += at < n && stub[at] == 0xf2;
	if (at + 6 > n || stub[at] != 0xff || stub[at + 1] != 0x25)
		return 0;
	return vaddr + at + 6 + (uint64_t)(int64_t)(int32_t)le32(stub + at + 2);
}

static int name_stubs(const struct bytes *in, const struct elf_section *s, const struct words *w,
		      const uint8_t *symbols, uint64_t nsymbols, elf_plt_put *put, void *ctx)
{
	uint32_t each = s->entsize == 8 ? 8 : STUB_BYTES;
	int rc = 0;
	struct bytes_part part = take(in, s, &rc);
	const uint8_t *data = part.at;
	uint64_t at;

	for (at = 0; data && !rc && at + each <= s->size; at += each) {
		uint64_t word = word_of(data + at, each, s->addr + at);
		uint32_t n = word ? sorted_upto(w->items, w->n, sizeof(*w->items), 8, word) : 0;
		const struct sort_item *found = n ? &w->items[n - 1] : NULL;

		if (found && found->key == word && found->value[0] < nsymbols)
			rc = put(ctx, s->addr + at, each,
				 le32(symbols + (size_t)found->value[0] * SYMBOL_BYTES));
	}
	bytes_drop(&part);
	return rc;
}

int elf_plt_read(const struct bytes *in, const struct elf_head *head,
		 const struct elf_section *sections, elf_plt_put *put, void *ctx, struct err *err)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got"};
	const struct elf_section *dynsym = elf_section_of_type(sections, head->nsections,
							       ELF_SHT_DYNSYM);
	struct words words = {.n = 0};
	struct elf_section stubs;
	struct err ignored;
	struct bytes_part symbols;
	uint32_t i;
	int rc = 0;

	if (!dynsym || !head->is64 || head->machine != MACHINE_X86_64)
		return 0;
	symbols = take(in, dynsym, &rc);
	for (i = 0; symbols.at && !rc && i < head->nsections; i++)
		if (sections[i].type == SHT_RELA && sections[i].link == dynsym - sections)
			rc = add_words(&words, in, &sections[i]);
	if (!rc && words.n)
		rc = sort_words(&words);
	for (i = 0; words.n && !rc && i < COUNT_OF(names); i++) {
		rc = elf_section_find(in, head, names[i], &stubs, &ignored);
		if (!rc)
			rc = name_stubs(in, &stubs, &words, symbols.at, dynsym->size / SYMBOL_BYTES,
					put, ctx);
		else if (rc != ERR_MEMORY)
			rc = 0;              /* there is none, or it cannot be read */
	}
	free(words.items);
	bytes_drop(&symbols);
	return rc == ERR_MEMORY ? err_memory(err, "for its stubs") : rc;
}
