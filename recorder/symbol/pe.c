/*
 *  DOS header    60 u32 where the rest is
 *  "PE\0\0"
 *  COFF header    0 u16 machine  2 u16 nsections  4 u32 timestamp  8 u32 symbols at
 *                12 u32 nsymbols  16 u16 bytes of the optional header
 *  optional       0 u16 0x10b PE32, 0x20b PE32+  56 u32 SizeOfImage  64 u32 checksum
 *                   image base: PE32 u32 @28, PE32+ u64 @24
 *                   directories: their number u32 @92 / @108, then {u32 rva, u32 bytes} each
 *  sections      40 bytes each: 8 u32 memory bytes  12 u32 rva  16 u32 file bytes  20 u32 file at
 *                36 u32 flags
 */
#include "symbol/pe.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
	DOS_BYTES = 64, COFF_BYTES = 24, SECTION_BYTES = 40,       /* COFF with "PE\0\0" */
	MAGIC_PE32 = 0x10b, MAGIC_PE32_PLUS = 0x20b,
	OPTIONAL_LEAST = 96, OPTIONAL_MAX = 4096,
	DIRECTORY_EXPORT = 0, DIRECTORY_EXCEPTION = 3, DIRECTORY_DEBUG = 6,
	MACHINE_X64 = 0x8664,
	BOUND_BYTES = 12, BLOCK_BOUNDS = 4096,       /* RUNTIME_FUNCTION: u32 begin, end, unwind */
	UNWIND_CHAINED = 4 << 3,
	SECTION_EXECUTE = 0x20000000,

	DEBUG_ENTRY_BYTES = 28, DEBUG_ENTRIES_MAX = 64, DEBUG_CODEVIEW = 2,
	RSDS_NAME_AT = 24,

	SYMBOL_BYTES = 18, BLOCK_SYMBOLS = 4096,
	CLASS_EXTERNAL = 2, CLASS_STATIC = 3, TYPE_FUNCTION = 0x20,

	EXPORT_DIRECTORY_BYTES = 40, EXPORT_NAME_MAX = 4000, PIECE_BYTES = 8192,
	RANK_STATIC = 0, RANK_EXTERNAL = 1, RANK_TYPED = 2,
};

#define RSDS 0x53445352u

/* ---- head ------------------------------------------------------------------------------------ */

const struct pe_section *pe_section_at(const struct pe_head *head, uint32_t rva)
{
	for (uint32_t i = 0; i < head->nsections; i++)
		if (rva >= head->sections[i].rva &&
		    rva - head->sections[i].rva < head->sections[i].memory_bytes)
			return &head->sections[i];
	return NULL;
}

/* Read n bytes at an RVA, which must be in the file as well. */
static int read_rva(const struct bytes *in, const struct pe_head *head, uint32_t rva, void *to,
		    size_t n, const char *what, struct err *err)
{
	const struct pe_section *s = pe_section_at(head, rva);

	if (!s || rva - s->rva > s->file_bytes || n > s->file_bytes - (rva - s->rva))
		return err_set(err, ERR_FORMAT, "%s is not in any section", what);
	return bytes_read(in, (uint64_t)s->file_at + (rva - s->rva), to, n, what, err);
}

/*
 * A part of the file, for what stands side by side by the ten thousand (names, unwind information).
 */
struct piece {
	const struct bytes *in;
	const struct pe_head *head;
	uint32_t rva, nbytes;                /* of the held bytes */
	uint8_t held[PIECE_BYTES + 1];       /* followed by a NUL */
};

/* At least a byte at an RVA, valid until the next call; NULL = it is not in the file. */
static const uint8_t *piece_at(struct piece *p, uint32_t rva)
{
	const struct pe_section *s;
	uint32_t room;

	if (rva >= p->rva && rva - p->rva < p->nbytes)
		return p->held + (rva - p->rva);
	s = pe_section_at(p->head, rva);
	room = s && rva - s->rva < s->file_bytes ? s->file_bytes - (rva - s->rva) : 0;
	p->rva = rva;
	p->nbytes = room < PIECE_BYTES ? room : PIECE_BYTES;
	if (read_rva(p->in, p->head, rva, p->held, p->nbytes, "", NULL))
		p->nbytes = 0;
	p->held[p->nbytes] = '\0';
	return p->nbytes ? p->held : NULL;
}

static int read_sections(const struct bytes *in, uint64_t at, uint32_t n, struct pe_head *out,
			 struct err *err)
{
	uint8_t table[PE_SECTIONS_MAX * SECTION_BYTES];
	int rc;

	if (n > PE_SECTIONS_MAX)
		return err_set(err, ERR_FORMAT, "it has %u sections, the limit is %u", n,
			       PE_SECTIONS_MAX);
	rc = bytes_read(in, at, table, n * SECTION_BYTES, "its section table", err);
	for (uint32_t i = 0; i < n && !rc; i++) {
		const uint8_t *s = table + i * SECTION_BYTES;
		struct pe_section *section = &out->sections[i];

		*section = (struct pe_section){.memory_bytes = le32(s + 8),
					       .rva = le32(s + 12),
					       .file_bytes = le32(s + 16),
					       .file_at = le32(s + 20),
					       .executable = le32(s + 36) & SECTION_EXECUTE};
		if (section->memory_bytes == 0)
			section->memory_bytes = section->file_bytes;
		if (section->memory_bytes > UINT32_MAX - section->rva)
			rc = err_set(err, ERR_FORMAT, "section %u wraps around the address space",
				     i);
	}
	out->nsections = n;
	return rc;
}

/* RSDS: GUID, u32 age, name. Damage there costs the PDB, not the image. */
static void read_codeview(const struct bytes *in, uint32_t at, uint32_t n, struct pe_head *out)
{
	uint8_t record[RSDS_NAME_AT + PE_PDB_NAME_MAX];

	if (n < RSDS_NAME_AT + 1)
		return;
	if (n > sizeof(record))
		n = sizeof(record);
	if (bytes_read(in, at, record, n, "its debug record", NULL) || le32(record) != RSDS)
		return;
	out->has_pdb = true;
	memcpy(out->pdb_guid, record + 4, 16);
	out->pdb_age = le32(record + 20);
	memcpy(out->pdb_name, record + RSDS_NAME_AT, n - RSDS_NAME_AT);
	out->pdb_name[n - RSDS_NAME_AT < PE_PDB_NAME_MAX ? n - RSDS_NAME_AT : PE_PDB_NAME_MAX - 1] =
		'\0';
}

static void read_debug(const struct bytes *in, uint32_t rva, uint32_t nbytes, struct pe_head *out)
{
	uint8_t entry[DEBUG_ENTRY_BYTES];

	for (uint32_t i = 0; i < DEBUG_ENTRIES_MAX && !out->has_pdb; i++) {
		if ((i + 1) * DEBUG_ENTRY_BYTES > nbytes ||
		    read_rva(in, out, rva + i * DEBUG_ENTRY_BYTES, entry, sizeof(entry), "", NULL))
			return;
		if (le32(entry + 12) == DEBUG_CODEVIEW)
			read_codeview(in, le32(entry + 24), le32(entry + 16), out);
	}
}

static int not_pe(struct err *err)
{
	return err_set(err, ERR_FORMAT, "it is not a Windows program or library (PE)");
}

/* Data directory number `which`, address and size; both 0 when it is absent. */
static void read_directory(const uint8_t *optional, uint32_t noptional, unsigned which,
			   uint32_t *rva, uint32_t *nbytes)
{
	uint32_t at = le16(optional) == MAGIC_PE32_PLUS ? 112 : 96;
	uint32_t n = noptional >= at ? (noptional - at) / 8 : 0;

	if (which >= n || which >= le32(optional + at - 4))
		return;
	*rva = le32(optional + at + which * 8);
	*nbytes = le32(optional + at + which * 8 + 4);
}

/* Reads at least OPTIONAL_LEAST bytes. */
static void read_optional(const uint8_t *optional, uint32_t noptional, struct pe_head *head)
{
	head->is64 = le16(optional) == MAGIC_PE32_PLUS;
	head->image_base = head->is64 ? le64(optional + 24) : le32(optional + 28);
	head->image_bytes = le32(optional + 56);
	read_directory(optional, noptional, DIRECTORY_EXPORT, &head->export_rva,
		       &head->export_bytes);
	if (head->machine == MACHINE_X64)
		read_directory(optional, noptional, DIRECTORY_EXCEPTION, &head->pdata_rva,
			       &head->pdata_bytes);
}

int pe_head_read(const struct bytes *in, struct pe_head *out, struct err *err)
{
	uint8_t dos[DOS_BYTES], coff[COFF_BYTES], optional[OPTIONAL_MAX];
	uint32_t pe_at, noptional, debug_rva = 0, debug_bytes = 0;
	struct pe_head head = {0};
	int rc;

	if (in->size < DOS_BYTES + COFF_BYTES)
		return not_pe(err);
	rc = bytes_read(in, 0, dos, sizeof(dos), "its header", err);
	if (rc || dos[0] != 'M' || dos[1] != 'Z')
		return rc ? rc : not_pe(err);
	pe_at = le32(dos + 60);
	rc = bytes_read(in, pe_at, coff, sizeof(coff), "its PE header", err);
	if (rc || memcmp(coff, "PE\0\0", 4) != 0)
		return rc ? rc : not_pe(err);
	head.machine = (uint16_t)le16(coff + 4);
	head.timestamp = le32(coff + 8);
	head.symbols_at = le32(coff + 12);
	head.nsymbols = le32(coff + 16);
	noptional = le16(coff + 20);
	if (noptional < OPTIONAL_LEAST || noptional > OPTIONAL_MAX)
		return err_set(err, ERR_FORMAT, "its optional header has %u bytes", noptional);
	rc = bytes_read(in, (uint64_t)pe_at + COFF_BYTES, optional, noptional,
			"its optional header", err);
	if (rc)
		return rc;
	if (le16(optional) != MAGIC_PE32 && le16(optional) != MAGIC_PE32_PLUS)
		return not_pe(err);
	read_optional(optional, noptional, &head);
	rc = read_sections(in, (uint64_t)pe_at + COFF_BYTES + noptional, le16(coff + 6), &head,
			   err);
	if (rc)
		return rc;
	read_directory(optional, noptional, DIRECTORY_DEBUG, &debug_rva, &debug_bytes);
	read_debug(in, debug_rva, debug_bytes, &head);
	*out = head;
	return 0;
}

/* ---- the COFF symbol table ------------------------------------------------------------------- */

struct coff {
	const struct bytes *in;
	const struct pe_head *head;
	struct rva_index *index;
	char *strings;        /* its own length in the first 4 bytes; NUL at the end */
	uint32_t strings_bytes;
	struct err *err;
};

static int read_strings(struct coff *c)
{
	uint64_t at = (uint64_t)c->head->symbols_at + (uint64_t)c->head->nsymbols * SYMBOL_BYTES;
	uint8_t nbytes[4] = {0};
	int rc;

	if (at + 4 <= c->in->size) {
		rc = bytes_read(c->in, at, nbytes, 4, "its string table", c->err);
		if (rc)
			return rc;
	}
	c->strings_bytes = le32(nbytes) < 4 ? 0 : le32(nbytes);
	if (c->strings_bytes > PE_STRINGS_MAX_BYTES)
		return err_set(c->err, ERR_LIMIT, "its string table has %u bytes",
			       c->strings_bytes);
	if (c->strings_bytes && c->strings_bytes > c->in->size - at)
		return err_set(c->err, ERR_FORMAT, "its string table lies outside the file");
	c->strings = malloc((size_t)c->strings_bytes + 1);
	if (!c->strings)
		return err_memory(c->err, "for its string table");
	c->strings[c->strings_bytes] = '\0';
	return bytes_read(c->in, at, c->strings, c->strings_bytes, "its string table", c->err);
}

/* A function has that type, or is in code and not the assembler's own label. */
static int add_symbol(struct coff *c, const uint8_t *s)
{
	uint32_t section = le16(s + 12), value = le32(s + 8), type = le16(s + 14), class = s[16];
	const char *name = (const char *)s;
	const struct pe_section *in;
	size_t n = 8;

	if (section == 0 || section > c->head->nsections ||
	    (class != CLASS_EXTERNAL && class != CLASS_STATIC))
		return 0;
	in = &c->head->sections[section - 1];
	if (!in->executable || value >= in->memory_bytes)
		return 0;
	if (le32(s) == 0) {
		if (le32(s + 4) >= c->strings_bytes)
			return 0;
		name = c->strings + le32(s + 4);
		n = strlen(name);
	}
	if (name[0] == '.' || (class == CLASS_STATIC && type != TYPE_FUNCTION && s[17] != 0))
		return 0;                    /* sections and files */
	name = pe_undecorated(c->head->machine, name, &n);
	return rva_index_add(c->index, in->rva + value, in->rva + in->memory_bytes,
			     (type == TYPE_FUNCTION ? RANK_TYPED : 0u) +
				     (class == CLASS_EXTERNAL ? RANK_EXTERNAL : RANK_STATIC),
			     name, n, c->err);
}

static int read_symbols(struct coff *c)
{
	uint32_t left = c->head->nsymbols, skip = 0;
	uint64_t at = c->head->symbols_at;
	uint8_t *block;
	int rc;

	if (left > PE_SYMBOLS_MAX)
		return err_set(c->err, ERR_LIMIT, "it has %u symbols, the limit is %u", left,
			       PE_SYMBOLS_MAX);
	rc = read_strings(c);
	block = rc ? NULL : malloc(BLOCK_SYMBOLS * SYMBOL_BYTES);
	if (!rc && !block)
		rc = err_memory(c->err, "for its symbols");
	while (left && !rc) {
		uint32_t n = left < BLOCK_SYMBOLS ? left : BLOCK_SYMBOLS;

		rc = bytes_read(c->in, at, block, n * SYMBOL_BYTES, "its symbol table", c->err);
		for (uint32_t i = 0; i < n && !rc; i++) {
			const uint8_t *s = block + i * SYMBOL_BYTES;

			if (skip) {
				skip--;
				continue;
			}
			skip = s[17];
			rc = add_symbol(c, s);
		}
		at += (uint64_t)n * SYMBOL_BYTES;
		left -= n;
	}
	free(block);
	free(c->strings);
	return rc;
}

/* ---- exports --------------------------------------------------------------------------------- */

/* The name at an RVA, cut at EXPORT_NAME_MAX; "" when absent. Valid until the next call. */
static const char *name_of(struct piece *p, uint32_t rva)
{
	const uint8_t *at = piece_at(p, rva);

	/* It may be cut by the end of the piece: a piece that begins with it has it whole. */
	if (at && !memchr(at, '\0', (size_t)(p->held + p->nbytes - at))) {
		p->nbytes = 0;
		at = piece_at(p, rva);
	}
	return at ? (const char *)at : "";
}

/* The three tables: the RVA and number of each name, and the function's RVA of each number. */
struct exports {
	uint32_t nfunctions, nnames;
	uint8_t *functions, *names, *ordinals;
};

/* Load n bytes at an RVA, from malloc. */
static int load_table(const struct bytes *in, const struct pe_head *head, uint32_t rva, size_t n,
		      uint8_t **out, struct err *err)
{
	*out = malloc(n + 1);
	if (!*out)
		return err_memory(err, "for its exports");
	return read_rva(in, head, rva, *out, n, "its export table", err);
}

static int read_export_tables(const struct bytes *in, const struct pe_head *head,
			      struct exports *out, struct err *err)
{
	uint8_t d[EXPORT_DIRECTORY_BYTES];
	int rc = read_rva(in, head, head->export_rva, d, sizeof(d), "its export table", err);

	if (rc)
		return rc;
	out->nfunctions = le32(d + 20);
	out->nnames = le32(d + 24);
	if (out->nnames > PE_EXPORTS_MAX)
		return err_set(err, ERR_LIMIT, "it exports %u names, the limit is %u", out->nnames,
			       PE_EXPORTS_MAX);
	if (out->nfunctions > PE_EXPORTS_MAX)
		out->nfunctions = PE_EXPORTS_MAX;       /* the numbers of names have 16 bits */
	if (!out->nnames)
		return 0;
	rc = load_table(in, head, le32(d + 28), out->nfunctions * 4, &out->functions, err);
	if (!rc)
		rc = load_table(in, head, le32(d + 32), out->nnames * 4, &out->names, err);
	if (!rc)
		rc = load_table(in, head, le32(d + 36), out->nnames * 2, &out->ordinals, err);
	return rc;
}

static int add_export(const struct pe_head *head, struct rva_index *index, uint32_t rva,
		      const char *name, struct err *err)
{
	const struct pe_section *s = pe_section_at(head, rva);

	/* An RVA inside the export table is the text "OTHER.Function", not code. */
	if (!s || !s->executable ||
	    (rva >= head->export_rva && rva - head->export_rva < head->export_bytes))
		return 0;
	return rva_index_add(index, rva, head->pdata_bytes ? s->rva + s->memory_bytes : rva + 1,
			     RANK_EXTERNAL, name, strnlen(name, EXPORT_NAME_MAX), err);
}

static int read_exports(const struct bytes *in, const struct pe_head *head,
			struct rva_index *index, struct err *err)
{
	struct piece names = {.in = in, .head = head};
	struct exports e = {0};
	uint32_t i, number;
	int rc;

	if (!head->export_bytes)
		return 0;
	rc = read_export_tables(in, head, &e, err);
	for (i = 0; i < e.nnames && !rc; i++) {
		number = le16(e.ordinals + (size_t)i * 2);
		if (number < e.nfunctions)
			rc = add_export(head, index, le32(e.functions + (size_t)number * 4),
					name_of(&names, le32(e.names + (size_t)i * 4)), err);
	}
	free(e.functions);
	free(e.names);
	free(e.ordinals);
	return rc;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* A continuation of the function before it: its unwind information says so, without a gap. */
static bool continues_function(struct piece *infos, uint32_t unwind, uint32_t begin,
			       uint32_t end_before)
{
	const uint8_t *flags =
		begin == end_before && !(unwind & 1) ? piece_at(infos, unwind) : NULL;

	return flags && *flags & UNWIND_CHAINED;
}

int pe_bounds(const struct bytes *in, const struct pe_head *head, struct rva_index *index,
	      struct err *err)
{
	uint32_t left = head->pdata_bytes / BOUND_BYTES, rva = head->pdata_rva, begin = 0, end = 0;
	struct piece infos = {.in = in, .head = head};
	uint8_t *block;
	int rc = 0;

	if (!left)
		return 0;
	if (left > PE_BOUNDS_MAX)
		return err_set(err, ERR_LIMIT, "its .pdata has %u functions, the limit is %u", left,
			       PE_BOUNDS_MAX);
	block = malloc(BLOCK_BOUNDS * BOUND_BYTES);
	if (!block)
		return err_memory(err, "for its .pdata");
	while (left && !rc) {
		uint32_t n = left < BLOCK_BOUNDS ? left : BLOCK_BOUNDS;

		rc = read_rva(in, head, rva, block, n * BOUND_BYTES, "its .pdata", err);
		for (uint32_t i = 0; i < n && !rc; i++) {
			const uint8_t *b = block + i * BOUND_BYTES;

			if (!continues_function(&infos, le32(b + 8), le32(b), end)) {
				rc = rva_index_bound(index, begin, end, err);
				begin = le32(b);
			}
			end = le32(b + 4);
		}
		rva += n * BOUND_BYTES;
		left -= n;
	}
	free(block);
	return rc ? rc : rva_index_bound(index, begin, end, err);
}

int pe_functions(const struct bytes *in, const struct pe_head *head, struct rva_index *index,
		 struct err *err)
{
	struct coff c = {.in = in, .head = head, .index = index, .err = err};
	int rc = 0;

	if (head->symbols_at && head->nsymbols)
		rc = read_symbols(&c);
	return rc ? rc : read_exports(in, head, index, err);
}
