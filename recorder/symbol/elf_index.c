/*
 * The sorted index of an ELF file's functions. Layouts: elf_format.h.
 *
 * Building streams the symbol tables in blocks, keeps a 16-byte candidate per function symbol,
 * sorts, and folds candidates into 12-byte entries, one per address.
 */
#include "symbol/elf.h"

#include "symbol/elf_format.h"
#include "symbol/sort.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_BYTES = 65536,
	NESTING_MAX = 16,              /* entries looked back for the function around an inner one */
	TABLES = 2,                    /* .symtab, .dynsym */
};

#define NAME_IN_DYNSYM 0x80000000u     /* top bit of a name: which string table */

struct entry {
	uint32_t start;                /* vaddr - base */
	uint32_t size;
	uint32_t name;
};

struct strings {
	uint64_t offset, size;         /* in the file */
	char *kept;                    /* size bytes, or NULL */
};

struct elf_index {
	uint64_t base;                 /* lowest executable address */
	struct entry *entries;
	uint32_t nentries;
	struct strings strings[TABLES];
};

/* How good a name is among others for its address; larger wins. */
enum { RANK_TYPED = 256, RANK_GLOBAL = 32, RANK_WEAK = 16, RANK_UNDERSCORES = 7 };

struct candidate {
	uint32_t start, size, name;
	uint16_t rank;
	bool guessed;                  /* no size in the table: reaches to its section's end */
};

struct section {
	uint32_t type, link;
	uint64_t flags, addr, offset, size, entsize;
};

struct builder {
	const struct bytes *in;
	const struct elf_head *head;
	const struct elf_layout *layout;
	struct elf_index *index;
	struct section *sections;
	struct candidate *candidates;
	uint32_t ncandidates, capacity;
	uint64_t end_ns;
	struct err *err;
};

/* ---- sections --------------------------------------------------------------------------------- */

static int read_sections(struct builder *b)
{
	const struct elf_layout *l = b->layout;
	size_t n = b->head->nsections;
	uint8_t *table;
	size_t i;
	int rc;

	b->sections = calloc(n ? n : 1, sizeof(*b->sections));
	table = malloc(n ? n * l->section.bytes : 1);
	if (!b->sections || !table) {
		free(table);
		return err_set(b->err, ERR_MEMORY, "out of memory for its section headers");
	}
	rc = bytes_read(b->in, b->head->sections_at, table, n * l->section.bytes,
			"its section header table", b->err);
	for (i = 0; !rc && i < n; i++) {
		const uint8_t *at = table + i * l->section.bytes;

		b->sections[i] = (struct section){
			.type = (uint32_t)bytes_le(at + 4, 4),
			.link = (uint32_t)bytes_le(at + l->section.link, 4),
			.flags = bytes_le(at + ELF_SECTION_FLAGS_AT, l->word),
			.addr = bytes_le(at + l->section.addr, l->word),
			.offset = bytes_le(at + l->section.offset, l->word),
			.size = bytes_le(at + l->section.size, l->word),
			.entsize = bytes_le(at + l->section.entsize, l->word),
		};
	}
	free(table);
	return rc;
}

static const struct section *find_section(const struct builder *b, uint32_t type)
{
	uint32_t i;

	for (i = 0; i < b->head->nsections; i++) {
		if (b->sections[i].type == type)
			return &b->sections[i];
	}
	return NULL;
}

/* ---- collecting candidates -------------------------------------------------------------------- */

static int push(struct builder *b, const struct candidate *c)
{
	if (b->ncandidates == ELF_FUNCTIONS_MAX)
		return err_set(b->err, ERR_LIMIT, "it has more than %u function symbols",
			       ELF_FUNCTIONS_MAX);
	if (b->ncandidates == b->capacity) {
		uint32_t capacity = b->capacity ? b->capacity * 2 : 1024;
		struct candidate *more = realloc(b->candidates, capacity * sizeof(*more));

		if (!more)
			return err_set(b->err, ERR_MEMORY, "out of memory for its symbols");
		b->candidates = more;
		b->capacity = capacity;
	}
	b->candidates[b->ncandidates++] = *c;
	return 0;
}

static const struct elf_segment *executable_at(const struct elf_head *head, uint64_t vaddr)
{
	uint32_t i;

	for (i = 0; i < head->nsegments; i++) {
		const struct elf_segment *s = &head->segments[i];

		if (s->executable && vaddr >= s->vaddr && vaddr - s->vaddr < s->memory_bytes)
			return s;
	}
	return NULL;
}

/*
 * A symbol without a type is a function when somebody wrote it by hand. The assembler's own labels
 * (.L1) and mapping symbols of ARM and RISC-V ($x, $d) are not.
 */
static bool is_label(const struct builder *b, uint32_t shndx, const char *name)
{
	return shndx < b->head->nsections &&
	       (b->sections[shndx].flags & ELF_SHF_EXECINSTR) != 0 && name && name[0] &&
	       name[0] != '.' && name[0] != '$';
}

static uint16_t rank_of(unsigned type, unsigned binding, const char *name)
{
	unsigned rank = type == ELF_STT_NOTYPE ? 0 : RANK_TYPED;
	unsigned underscores = 0;

	if (binding == ELF_STB_WEAK)
		rank += RANK_WEAK;
	else if (binding != ELF_STB_LOCAL)
		rank += RANK_GLOBAL;
	while (name && name[underscores] == '_' && underscores < RANK_UNDERSCORES)
		underscores++;
	return (uint16_t)(rank + RANK_UNDERSCORES - underscores);
}

/* Lower *room to the bytes from value to its section's end; false when it is not in that section. */
static bool section_room(const struct builder *b, uint32_t shndx, uint64_t value, uint64_t *room)
{
	const struct section *s = shndx < b->head->nsections ? &b->sections[shndx] : NULL;

	if (!s || value < s->addr || value - s->addr >= s->size)
		return false;
	if (*room > s->size - (value - s->addr))
		*room = s->size - (value - s->addr);
	return true;
}

/* One symbol table entry; names is the string table, NUL-terminated, or NULL when too large. */
static int add_symbol(struct builder *b, const uint8_t *at, unsigned table, const char *names)
{
	const struct elf_layout *l = b->layout;
	uint32_t name = (uint32_t)bytes_le(at, 4);
	unsigned type = at[l->symbol.info] & 15u, binding = at[l->symbol.info] >> 4;
	uint32_t shndx = (uint32_t)bytes_le(at + l->symbol.shndx, 2);
	uint64_t value = bytes_le(at + l->symbol.value, l->word);
	uint64_t size = bytes_le(at + l->symbol.size, l->word);
	const char *text = names && name < b->index->strings[table].size ? names + name : NULL;
	const struct elf_segment *segment;
	struct candidate c = {.name = name | (table ? NAME_IN_DYNSYM : 0)};
	uint64_t room;

	if (type != ELF_STT_FUNC && type != ELF_STT_GNU_IFUNC && type != ELF_STT_NOTYPE)
		return 0;
	if (shndx == ELF_SHN_UNDEF || shndx >= ELF_SHN_LORESERVE || !name ||
	    name >= b->index->strings[table].size)
		return 0;
	if (type == ELF_STT_NOTYPE && !is_label(b, shndx, text))
		return 0;
	if (b->head->machine == ELF_MACHINE_ARM)
		value &= ~(uint64_t)1;                 /* the Thumb bit is no part of the address */
	segment = executable_at(b->head, value);
	if (!segment)
		return 0;
	room = segment->memory_bytes - (value - segment->vaddr);
	if (!section_room(b, shndx, value, &room) && type == ELF_STT_NOTYPE)
		return 0;                              /* _etext and the like mark an end */
	c.guessed = !size;
	c.start = (uint32_t)(value - b->index->base);
	c.size = (uint32_t)(size && size < room ? size : room);
	c.rank = rank_of(type, binding, text);
	return push(b, &c);
}

static int read_strings(struct builder *b, unsigned table, const struct section *section, char **out)
{
	struct strings *strings = &b->index->strings[table];
	char *names;
	int rc;

	if (section->link >= b->head->nsections ||
	    b->sections[section->link].type != ELF_SHT_STRTAB)
		return err_set(b->err, ERR_FORMAT, "its symbol table has no string table");
	strings->offset = b->sections[section->link].offset;
	strings->size = b->sections[section->link].size;
	if (strings->size >= NAME_IN_DYNSYM)
		return err_set(b->err, ERR_LIMIT, "its string table has %" PRIu64 " bytes",
			       strings->size);
	if (strings->offset > b->in->size || strings->size > b->in->size - strings->offset)
		return err_set(b->err, ERR_FORMAT, "its string table lies outside the file");
	if (strings->size > ELF_STRINGS_MAX_BYTES)
		return 0;
	names = malloc((size_t)strings->size + 1);
	if (!names)
		return err_set(b->err, ERR_MEMORY, "out of memory for its string table");
	rc = bytes_read(b->in, strings->offset, names, (size_t)strings->size, "its string table",
			b->err);
	if (rc) {
		free(names);
		return rc;
	}
	names[strings->size] = '\0';
	*out = names;
	return 0;
}

static int read_symbols(struct builder *b, unsigned table, const struct section *section,
			const char *names)
{
	unsigned each = b->layout->symbol.bytes;
	uint64_t left = section->size / each * each, at = section->offset;
	uint8_t *block;
	int rc = 0;

	if (section->entsize != each)
		return err_set(b->err, ERR_FORMAT, "its symbols have a wrong size");
	if (section->size / each > ELF_SYMBOLS_MAX)
		return err_set(b->err, ERR_LIMIT, "it has %" PRIu64 " symbols, the limit is %u",
			       section->size / each, ELF_SYMBOLS_MAX);
	block = malloc(BLOCK_BYTES);
	if (!block)
		return err_set(b->err, ERR_MEMORY, "out of memory for its symbols");
	while (!rc && left) {
		size_t i, n = BLOCK_BYTES / each * each;

		if (n > left)
			n = (size_t)left;
		rc = bytes_read(b->in, at, block, n, "its symbol table", b->err);
		for (i = 0; !rc && i < n; i += each)
			rc = add_symbol(b, block + i, table, names);
		if (!rc && os_now_ns() > b->end_ns)
			rc = err_set(b->err, ERR_LIMIT, "reading its symbols took too long");
		at += n;
		left -= n;
	}
	free(block);
	return rc;
}

static int read_table(struct builder *b, unsigned table, uint32_t type)
{
	const struct section *section = find_section(b, type);
	char *names = NULL;
	int rc;

	if (!section)
		return 0;
	rc = read_strings(b, table, section, &names);
	if (!rc)
		rc = read_symbols(b, table, section, names);
	if (!rc && b->index->strings[table].size <= ELF_STRINGS_KEPT_BYTES)
		b->index->strings[table].kept = names;
	else
		free(names);
	return rc;
}

/* ---- sorting and folding ---------------------------------------------------------------------- */

/* The candidates for one address become one entry, with the best name and a size if one has it. */
static struct candidate fold(const struct builder *b, const struct sort_item *items, uint32_t n)
{
	struct candidate best = b->candidates[items[0].index];
	uint32_t i, measured = 0;

	for (i = 0; i < n; i++) {
		const struct candidate *c = &b->candidates[items[i].index];

		if (c->rank > best.rank)
			best = *c;
		if (!c->guessed && c->size > measured)
			measured = c->size;
	}
	if (best.guessed && measured) {
		best.size = measured;
		best.guessed = false;
	}
	return best;
}

/*
 * A label inside a function that has a size is a place in it, not a function. A function without a
 * size ends where the next entry starts.
 */
static void emit(struct elf_index *index, const struct candidate *c, uint64_t *covered_to,
		 bool *open)
{
	struct entry *last = index->nentries ? &index->entries[index->nentries - 1] : NULL;

	if (c->guessed && c->rank < RANK_TYPED && c->start < *covered_to)
		return;
	if (*open && last->size > c->start - last->start)
		last->size = c->start - last->start;
	*open = c->guessed;
	if (!c->guessed && (uint64_t)c->start + c->size > *covered_to)
		*covered_to = (uint64_t)c->start + c->size;
	index->entries[index->nentries++] = (struct entry){c->start, c->size, c->name};
}

static void fold_all(struct builder *b, const struct sort_item *items)
{
	uint64_t covered_to = 0;
	bool open = false;
	uint32_t i, n;

	for (i = 0; i < b->ncandidates; i += n) {
		struct candidate best;

		for (n = 1; i + n < b->ncandidates && items[i + n].key == items[i].key; n++)
			;
		best = fold(b, items + i, n);
		emit(b->index, &best, &covered_to, &open);
	}
}

static int build_entries(struct builder *b)
{
	struct elf_index *index = b->index;
	size_t n = b->ncandidates;
	struct sort_item *items;
	struct entry *fit;
	uint32_t i;

	if (!n)
		return 0;
	items = malloc(2 * n * sizeof(*items));
	index->entries = malloc(n * sizeof(*index->entries));
	if (!items || !index->entries) {
		free(items);
		return err_set(b->err, ERR_MEMORY, "out of memory for its symbols");
	}
	for (i = 0; i < n; i++)
		items[i] = (struct sort_item){b->candidates[i].start, i};
	sort_items(items, items + n, b->ncandidates);
	fold_all(b, items);
	free(items);
	fit = realloc(index->entries, index->nentries * sizeof(*fit));
	if (!fit)
		return err_set(b->err, ERR_MEMORY, "out of memory for its symbols");
	index->entries = fit;
	return 0;
}

/* Addresses are kept as 32-bit distances from the first executable byte. */
static int find_base(struct builder *b)
{
	uint64_t low = UINT64_MAX, high = 0;
	uint32_t i;

	for (i = 0; i < b->head->nsegments; i++) {
		const struct elf_segment *s = &b->head->segments[i];

		if (!s->executable || !s->memory_bytes)
			continue;
		if (s->vaddr < low)
			low = s->vaddr;
		if (s->vaddr + s->memory_bytes > high)
			high = s->vaddr + s->memory_bytes;
	}
	b->index->base = low;
	if (low < high && high - low > UINT32_MAX)
		return err_set(b->err, ERR_LIMIT, "its code spans more than 4 GB");
	return 0;
}

int elf_index_new(const struct bytes *in, const struct elf_head *head, struct elf_index **out,
		  struct err *err)
{
	struct builder b = {
		.in = in,
		.head = head,
		.layout = head->is64 ? &elf_layout64 : &elf_layout32,
		.index = calloc(1, sizeof(*b.index)),
		.end_ns = os_now_ns() + ELF_INDEX_MAX_NS,
		.err = err,
	};
	int rc = 0;

	if (!b.index)
		rc = err_set(err, ERR_MEMORY, "out of memory for its symbols");
	if (!rc)
		rc = find_base(&b);
	if (!rc)
		rc = read_sections(&b);
	if (!rc)
		rc = read_table(&b, 0, ELF_SHT_SYMTAB);
	if (!rc)
		rc = read_table(&b, 1, ELF_SHT_DYNSYM);
	if (!rc)
		rc = build_entries(&b);
	free(b.sections);
	free(b.candidates);
	if (rc)
		elf_index_free(b.index);
	else
		*out = b.index;
	return rc;
}

void elf_index_free(struct elf_index *index)
{
	unsigned i;

	if (!index)
		return;
	for (i = 0; i < TABLES; i++)
		free(index->strings[i].kept);
	free(index->entries);
	free(index);
}

/* ---- asking ----------------------------------------------------------------------------------- */

uint32_t elf_index_count(const struct elf_index *index)
{
	return index->nentries;
}

size_t elf_index_bytes(const struct elf_index *index)
{
	size_t n = sizeof(*index) + index->nentries * sizeof(*index->entries);
	unsigned i;

	for (i = 0; i < TABLES; i++)
		n += index->strings[i].kept ? (size_t)index->strings[i].size + 1 : 0;
	return n;
}

bool elf_index_has_names(const struct elf_index *index)
{
	unsigned i;

	for (i = 0; i < TABLES; i++) {
		if (index->strings[i].size && !index->strings[i].kept)
			return false;
	}
	return true;
}

bool elf_find(const struct elf_index *index, uint64_t vaddr, struct elf_function *out)
{
	uint32_t low = 0, high = index->nentries, i;
	uint64_t at = vaddr - index->base;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (index->entries[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	/* low = entries that start at or before it; the last of them that reaches it is innermost. */
	for (i = 1; i <= low && i <= NESTING_MAX; i++) {
		const struct entry *e = &index->entries[low - i];

		if (at - e->start >= e->size)
			continue;
		*out = (struct elf_function){index->base + e->start, e->size, e->name};
		return true;
	}
	return false;
}

int elf_function_name(const struct elf_index *index, const struct bytes *in,
		      const struct elf_function *function, char *out, size_t n, struct err *err)
{
	const struct strings *strings = &index->strings[function->name >= NAME_IN_DYNSYM];
	uint64_t at = function->name & ~NAME_IN_DYNSYM, room = strings->size - at;
	int rc = 0;

	if (room > n - 1)
		room = n - 1;
	if (strings->kept)
		memcpy(out, strings->kept + at, (size_t)room);
	else
		rc = bytes_read(in, strings->offset + at, out, (size_t)room, "a function's name", err);
	out[rc ? 0 : room] = '\0';
	return rc;
}
