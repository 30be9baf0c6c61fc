/*
 * The sorted index of an ELF file's functions. Layouts: elf_format.h.
 *
 * Building streams the symbol tables in blocks, keeps a 16-byte candidate per function symbol,
 * sorts the candidates, and folds them into 12-byte entries, one per address.
 */
#include "symbol/elf.h"

#include "base/array.h"
#include "base/sort.h"
#include "symbol/elf_format.h"
#include "symbol/elf_plt.h"
#include "symbol/elf_section.h"
#include "symbol/gopclntab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_BYTES = 65536,
	NESTING_MAX = 16,              /* entries searched back for an enclosing function */
};

/* How good a name is among those of its address; larger wins. */
enum { RANK_TYPED = 4, RANK_GLOBAL = 2, RANK_WEAK = 1, RANK_MAX = 7 };

/*
 * A candidate is a sort_item: value = size, name; key = start << 4 | (RANK_MAX - rank) << 1 |
 * guessed, so that sorting brings the best one of each address to the front, in table order among
 * equals. Guessed: it has no size in the table and reaches to its section's end.
 */
enum { KEY_GUESSED = 1, KEY_RANK_SHIFT = 1, KEY_START_SHIFT = 4 };

static uint32_t start_of(const struct sort_item *c)
{
	return (uint32_t)(c->key >> KEY_START_SHIFT);
}

static unsigned rank_of(const struct sort_item *c)
{
	return RANK_MAX - (unsigned)(c->key >> KEY_RANK_SHIFT & RANK_MAX);
}

static bool is_guessed(const struct sort_item *c)
{
	return c->key & KEY_GUESSED;
}

/* A file whose symbol table is read: the object's own, or the one packed into it. */
struct view {
	const struct bytes *in;
	const struct elf_layout *layout;
	const struct elf_head *head;   /* locates its section headers */
	struct elf_section *sections;
};

struct builder {
	const struct elf_head *head;   /* of the object: tells what is executable */
	struct view own, mini;         /* mini.in NULL = no packed file */
	const struct view *views[ELF_TABLES];
	struct elf_index *index;
	char *names[ELF_TABLES];       /* the string tables, NUL-terminated, loaded when needed */
	struct sort_item *candidates;
	uint32_t ncandidates, capacity;
	uint64_t end_ns;
	int rc;                        /* the first failure to read names */
	struct err *err;
};

/* ---- collecting candidates ------------------------------------------------------------------- */

int elf_strings_load(const struct elf_strings *strings, const struct bytes *in, char **out,
		     struct err *err)
{
	char *text = malloc((size_t)strings->size + 1);
	int rc = 0;

	if (!text)
		return err_memory(err, "for its string table");
	if (strings->kept)
		memcpy(text, strings->kept, (size_t)strings->size);
	else
		rc = bytes_read(in, strings->offset, text, (size_t)strings->size,
				"its string table", err);
	text[strings->size] = '\0';
	if (rc)
		free(text);
	else
		*out = text;
	return rc;
}

static int load_names(struct builder *b, unsigned table)
{
	return elf_strings_load(&b->index->strings[table], b->views[table]->in, &b->names[table],
				b->err);
}

/* The unpacked file is freed after the build, so its names stay in memory. */
static bool is_kept(const struct builder *b, unsigned table)
{
	return b->views[table] == &b->mini ||
	       b->index->strings[table].size <= ELF_STRINGS_KEPT_BYTES;
}

/*
 * The text of a name, which ends at a NUL or after *left bytes; none when its string table is too
 * large. A table that is not in memory is loaded when first needed: the .dynsym table of an
 * unstripped program never is.
 */
static const char *text_of(struct builder *b, uint32_t name, size_t *left)
{
	const unsigned table = name >= ELF_NAME_IN_DYNSYM;
	const struct elf_strings *strings = &b->index->strings[table];
	const struct bytes *in = b->views[table]->in;
	const uint32_t at = name & ~ELF_NAME_BITS;

	*left = at < strings->size ? (size_t)strings->size - at : 0;
	if (strings->size > ELF_STRINGS_MAX_BYTES) {
		*left = 0;
		return NULL;
	}
	if (!b->names[table] && in->memory && strings->size <= in->size &&
	    strings->offset <= in->size - strings->size)
		return (const char *)in->memory + strings->offset + at;
	if (!b->names[table] && !b->rc)
		b->rc = load_names(b, table);
	*left = b->names[table] ? *left : 0;
	return b->names[table] ? b->names[table] + at : NULL;
}

/*
 * A symbol without a type is a function if somebody wrote it by hand. The assembler's own labels
 * (.L1) and the mapping symbols of ARM and RISC-V ($x, $d) are not functions.
 */
static bool is_label(struct builder *b, const struct view *v, uint32_t shndx, uint32_t name)
{
	const char *text;
	size_t left;

	if (shndx >= v->head->nsections || !(v->sections[shndx].flags & ELF_SHF_EXECINSTR))
		return false;
	text = text_of(b, name, &left);
	return left && text[0] && text[0] != '.' && text[0] != '$';
}

static unsigned rank_symbol(unsigned type, unsigned binding)
{
	unsigned typed = type == ELF_STT_NOTYPE ? 0 : RANK_TYPED;

	if (binding == ELF_STB_WEAK)
		return typed + RANK_WEAK;
	return binding == ELF_STB_LOCAL ? typed : typed + RANK_GLOBAL;
}

/* Lower *room to the bytes up to the section's end; false when value is not in that section. */
static bool section_room(const struct view *v, uint32_t shndx, uint64_t value, uint64_t *room)
{
	const struct elf_section *s = shndx < v->head->nsections ? &v->sections[shndx] : NULL;

	if (!s || value < s->addr || value - s->addr >= s->size)
		return false;
	if (*room > s->size - (value - s->addr))
		*room = s->size - (value - s->addr);
	return true;
}

/* room: up to which its size counts; size 0 = it is not known, and the function is as long. */
static int add_candidate(struct builder *b, uint64_t value, uint64_t size, uint64_t room,
			 unsigned rank, uint32_t name)
{
	struct sort_item c;

	if (b->ncandidates == ELF_FUNCTIONS_MAX)
		return err_set(b->err, ERR_LIMIT, "it has more than %u function symbols",
			       ELF_FUNCTIONS_MAX);
	if (ARRAY_ROOM(b->candidates, b->capacity, b->ncandidates + 1))
		return err_memory(b->err, "for its symbols");
	c.key = (value - b->index->base) << KEY_START_SHIFT |
		(RANK_MAX - rank) << KEY_RANK_SHIFT | (size ? 0 : KEY_GUESSED);
	c.value[0] = (uint32_t)(size && size < room ? size : room);
	c.value[1] = name;
	b->candidates[b->ncandidates++] = c;
	return 0;
}

/* Read one symbol table entry. */
static int add_symbol(struct builder *b, const uint8_t *at, unsigned table)
{
	const struct view *v = b->views[table];
	const struct elf_layout *l = v->layout;
	uint32_t name = le32(at);
	unsigned type = at[l->symbol.info] & 15u, binding = at[l->symbol.info] >> 4;
	uint32_t shndx = le16(at + l->symbol.shndx);
	uint64_t value = le_sized(at + l->symbol.value, l->word);
	uint64_t size = le_sized(at + l->symbol.size, l->word);
	const struct elf_segment *segment;
	uint64_t room;

	if (type != ELF_STT_FUNC && type != ELF_STT_GNU_IFUNC && type != ELF_STT_NOTYPE)
		return 0;
	if (shndx == ELF_SHN_UNDEF || shndx >= ELF_SHN_LORESERVE || !name ||
	    name >= b->index->strings[table].size)
		return 0;
	name |= table ? ELF_NAME_IN_DYNSYM : 0;
	if (type == ELF_STT_NOTYPE && !is_label(b, v, shndx, name))
		return b->rc;
	if (b->head->machine == ELF_MACHINE_ARM)
		value &= ~(uint64_t)1;        /* the Thumb bit is not part of the address */
	segment = elf_code_segment(b->head, value);
	if (!segment)
		return 0;
	room = segment->memory_bytes - (value - segment->vaddr);
	if (!section_room(v, shndx, value, &room) && type == ELF_STT_NOTYPE)
		return 0;                              /* _etext and the like mark an end */
	return add_candidate(b, value, size, room, rank_symbol(type, binding), name);
}

static int find_strings(struct builder *b, unsigned table, const struct elf_section *section)
{
	struct elf_strings *strings = &b->index->strings[table];
	const struct view *v = b->views[table];

	if (section->link >= v->head->nsections ||
	    v->sections[section->link].type != ELF_SHT_STRTAB)
		return err_set(b->err, ERR_FORMAT, "its symbol table has no string table");
	strings->offset = v->sections[section->link].offset;
	strings->size = v->sections[section->link].size;
	if (strings->size >= ELF_NAME_OF_STUB)
		return err_set(b->err, ERR_LIMIT, "its string table has %" PRIu64 " bytes",
			       strings->size);
	if (strings->offset > v->in->size || strings->size > v->in->size - strings->offset)
		return err_set(b->err, ERR_FORMAT, "its string table lies outside the file");
	return is_kept(b, table) ? load_names(b, table) : 0;
}

static int read_symbols(struct builder *b, unsigned table, const struct elf_section *section)
{
	const struct view *v = b->views[table];
	unsigned each = v->layout->symbol.bytes;
	uint64_t left = section->size / each * each, at = section->offset;
	uint8_t *block;
	int rc = 0;

	if (section->entsize != each)
		return err_set(b->err, ERR_FORMAT, "its symbols have the wrong size");
	if (section->size / each > ELF_SYMBOLS_MAX)
		return err_set(b->err, ERR_LIMIT, "it has %" PRIu64 " symbols, the limit is %u",
			       section->size / each, ELF_SYMBOLS_MAX);
	block = malloc(BLOCK_BYTES);
	if (!block)
		return err_memory(b->err, "for its symbols");
	while (!rc && left) {
		size_t i, n = BLOCK_BYTES / each * each;

		if (n > left)
			n = (size_t)left;
		rc = bytes_read(v->in, at, block, n, "its symbol table", b->err);
		for (i = 0; !rc && i < n; i += each)
			rc = add_symbol(b, block + i, table);
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
	const struct view *v = b->views[table];
	const struct elf_section *section =
		elf_section_of_type(v->sections, v->head->nsections, type);
	int rc;

	if (!section)
		return 0;
	rc = find_strings(b, table, section);
	return rc ? rc : read_symbols(b, table, section);
}

static int add_stub(void *ctx, uint64_t vaddr, uint32_t bytes, uint32_t name)
{
	struct builder *b = ctx;
	const struct elf_segment *segment = elf_code_segment(b->head, vaddr);

	if (!segment || !name || name >= b->index->strings[1].size)
		return 0;
	return add_candidate(b, vaddr, bytes, segment->memory_bytes - (vaddr - segment->vaddr), 0,
			     name | ELF_NAME_BITS);
}

/*
 * A Go program without .symtab. Its table of functions names all that .symtab would, but C
 * functions, in a string table of its own.
 */
static int read_go(struct builder *b, const struct bytes *in)
{
	struct elf_strings *strings = &b->index->strings[0];
	struct gopclntab_function f;
	struct gopclntab table;
	int rc;

	if (strings->size)
		return 0;
	rc = gopclntab_open(in, b->head, &table, b->err);
	if (rc)
		return rc == ERR_NOT_FOUND ? 0 : rc;
	strings->offset = table.names_at;
	strings->size = table.names_bytes;
	if (strings->size >= ELF_NAME_OF_STUB)
		rc = err_set(b->err, ERR_LIMIT, "its Go functions' names have %" PRIu64 " bytes",
			     strings->size);
	else if (is_kept(b, 0))
		rc = load_names(b, 0);
	while (!rc && (rc = gopclntab_next(&table, &f, b->err)) == 0) {
		const struct elf_segment *segment = elf_code_segment(b->head, f.vaddr);

		if (segment && f.bytes && f.name < strings->size)
			rc = add_candidate(b, f.vaddr, f.bytes,
					   segment->memory_bytes - (f.vaddr - segment->vaddr),
					   RANK_TYPED, f.name);
		if (!rc && os_now_ns() > b->end_ns)
			rc = err_set(b->err, ERR_LIMIT, "reading its symbols took too long");
	}
	gopclntab_close(&table);
	return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* ---- sorting and folding --------------------------------------------------------------------- */

static size_t underscores(struct builder *b, const struct sort_item *c)
{
	size_t left, n = 0;
	const char *text = text_of(b, c->value[1], &left);

	while (n < left && text[n] == '_')
		n++;
	return n;
}

/*
 * The best of the candidates for one address. The sort has put it in front, except for one rule:
 * among equals, prefer fewer leading underscores (malloc, not __libc_malloc). Only within one
 * table, because most of .dynsym is in .symtab too, and looking at a name costs a cache miss.
 */
static const struct sort_item *best_of(struct builder *b, const struct sort_item *c, uint32_t n)
{
	const struct sort_item *best = c;
	uint32_t i;

	for (i = 1; i < n && rank_of(&c[i]) == rank_of(c); i++) {
		if ((c[i].value[1] ^ best->value[1]) & ELF_NAME_IN_DYNSYM)
			continue;
		if (underscores(b, &c[i]) < underscores(b, best))
			best = &c[i];
	}
	return best;
}

/* Fold the candidates for one address into one, with the best name, and a size if any has it. */
static struct sort_item fold_candidates(struct builder *b, const struct sort_item *c, uint32_t n)
{
	struct sort_item best = *best_of(b, c, n);
	uint32_t i, measured = 0;

	for (i = 0; i < n; i++) {
		if (!is_guessed(&c[i]) && c[i].value[0] > measured)
			measured = c[i].value[0];
	}
	if (is_guessed(&best) && measured) {
		best.key &= ~(uint64_t)KEY_GUESSED;
		best.value[0] = measured;
	}
	return best;
}

/*
 * A label inside a function with a size is a place in it, not a function. A function without a size
 * ends where the next entry starts.
 */
static void add_entry(struct elf_index *index, const struct sort_item *c, uint64_t *covered_to,
		      bool *open)
{
	struct elf_entry *last = index->nentries ? &index->entries[index->nentries - 1] : NULL;
	uint32_t start = start_of(c), size = c->value[0];

	if (is_guessed(c) && rank_of(c) < RANK_TYPED && start < *covered_to)
		return;
	if (*open && last->size > start - last->start)
		last->size = start - last->start;
	*open = is_guessed(c);
	if (!is_guessed(c) && (uint64_t)start + size > *covered_to)
		*covered_to = (uint64_t)start + size;
	index->entries[index->nentries++] = (struct elf_entry){start, size, c->value[1]};
}

static void fold_addresses(struct builder *b)
{
	const struct sort_item *c = b->candidates;
	uint64_t covered_to = 0;
	bool open = false;
	uint32_t i, n;

	for (i = 0; i < b->ncandidates; i += n) {
		struct sort_item best;

		for (n = 1; i + n < b->ncandidates && start_of(&c[i + n]) == start_of(&c[i]); n++)
			;
		best = fold_candidates(b, c + i, n);
		add_entry(b->index, &best, &covered_to, &open);
	}
}

static int build_entries(struct builder *b)
{
	struct elf_index *index = b->index;
	size_t n = b->ncandidates;
	struct sort_item *scratch;
	struct elf_entry *fit;

	if (!n)
		return 0;
	scratch = malloc(n * sizeof(*scratch));
	if (!scratch)
		return err_memory(b->err, "for its symbols");
	sort_items(b->candidates, scratch, b->ncandidates);
	free(scratch);
	index->entries = malloc(n * sizeof(*index->entries));
	if (!index->entries)
		return err_memory(b->err, "for its symbols");
	fold_addresses(b);
	fit = realloc(index->entries, index->nentries * sizeof(*fit));
	if (!fit)
		return err_memory(b->err, "for its symbols");
	index->entries = fit;
	return b->rc;
}

/* Addresses are stored as 32-bit distances from the first executable byte. */
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

static void keep_names(struct builder *b)
{
	unsigned i;

	for (i = 0; i < ELF_TABLES; i++) {
		if (b->names[i] && is_kept(b, i))
			b->index->strings[i].kept = b->names[i];
		else
			free(b->names[i]);
	}
}

static struct view view_of(const struct bytes *in, const struct elf_head *head)
{
	return (struct view){.in = in, .head = head, .layout = elf_layout_of(head)};
}

/* A file that has its own .symtab needs no other. */
static int use_mini(struct builder *b, const struct bytes *in, struct elf_head *head)
{
	int rc;

	if (!in || elf_section_of_type(b->own.sections, b->head->nsections, ELF_SHT_SYMTAB))
		return 0;
	rc = elf_head_read(in, head, b->err);
	if (rc)
		return rc;
	if (head->is64 != b->head->is64 || head->machine != b->head->machine)
		return err_set(b->err, ERR_FORMAT, "its packed symbols are for another machine");
	b->mini = view_of(in, head);
	b->views[0] = &b->mini;
	return elf_sections_read(b->mini.in, b->mini.head, &b->mini.sections, b->err);
}

int elf_index_new(const struct bytes *in, const struct elf_head *head, const struct bytes *mini,
		  struct elf_index **out, struct err *err)
{
	struct elf_head *mini_head = malloc(sizeof(*mini_head));
	struct builder b = {
		.head = head,
		.own = view_of(in, head),
		.index = calloc(1, sizeof(*b.index)),
		.end_ns = os_now_ns() + ELF_INDEX_MAX_NS,
		.err = err,
	};
	int rc = 0;

	b.views[0] = b.views[1] = &b.own;
	if (!b.index || !mini_head)
		rc = err_memory(err, "for its symbols");
	if (!rc)
		rc = find_base(&b);
	if (!rc)
		rc = elf_sections_read(in, head, &b.own.sections, err);
	if (!rc)
		rc = use_mini(&b, mini, mini_head);
	if (!rc)
		rc = read_table(&b, 0, ELF_SHT_SYMTAB);
	if (!rc)
		rc = read_go(&b, in);
	if (!rc)
		rc = read_table(&b, 1, ELF_SHT_DYNSYM);
	if (!rc)
		rc = elf_plt_read(in, head, b.own.sections, add_stub, &b, err);
	if (!rc)
		rc = build_entries(&b);
	keep_names(&b);
	free(b.own.sections);
	free(b.mini.sections);
	free(b.candidates);
	free(mini_head);
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
	for (i = 0; i < ELF_TABLES; i++)
		free(index->strings[i].kept);
	free(index->entries);
	free(index);
}

/* ---- asking ---------------------------------------------------------------------------------- */

size_t elf_index_bytes(const struct elf_index *index)
{
	size_t n = sizeof(*index) + index->nentries * sizeof(*index->entries);
	unsigned i;

	for (i = 0; i < ELF_TABLES; i++)
		n += index->strings[i].kept ? (size_t)index->strings[i].size + 1 : 0;
	return n;
}

bool elf_index_has_names(const struct elf_index *index)
{
	unsigned i;

	for (i = 0; i < ELF_TABLES; i++) {
		if (index->strings[i].size && !index->strings[i].kept)
			return false;
	}
	return true;
}

bool elf_find(const struct elf_index *index, uint64_t vaddr, struct elf_function *out)
{
	uint64_t at = vaddr - index->base;
	const struct elf_entry *all = index->entries;
	uint32_t i, n = sorted_upto(all, index->nentries, sizeof(*all), 4, at);

	/* The last one that reaches the address is the innermost. */
	for (i = 1; i <= n && i <= NESTING_MAX; i++) {
		const struct elf_entry *e = &all[n - i];

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
	const struct elf_strings *strings = &index->strings[function->name >= ELF_NAME_IN_DYNSYM];
	uint64_t at = function->name & ~ELF_NAME_BITS, room = strings->size - at;
	int rc = 0;

	if (room > n - 1)
		room = n - 1;
	if (strings->kept)
		memcpy(out, strings->kept + at, (size_t)room);
	else
		rc = bytes_read(in, strings->offset + at, out, (size_t)room, "a function's name",
				err);
	out[rc ? 0 : room] = '\0';
	if (!rc && function->name & ELF_NAME_OF_STUB)
		strncat(out, "@plt", n - 1 - strlen(out));
	return rc;
}
