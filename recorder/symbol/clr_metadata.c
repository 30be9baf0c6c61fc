/*
 * Tables of types and methods in a .NET image (ECMA-335 II.22, II.24).
 */
#include "symbol/r2r_private.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 16u
#define ROWS_MAX (1u << 24)

enum { MODULE = 0, TYPE = 2, METHOD = 6, NESTED = 0x29 };

/* Columns: 2, 4 bytes; s g b an index into a heap; a letter of coded[]; else 0x80 | table. */
static const char *const schema[] = {
	"2sggg", "rss", "4ssa\x84\x86", "\x84", "2sb", "\x86", "422sb\x88", "\x88", "22s",
	"\x82" "a", "psb", "2hb", "cyb", "mb", "2db", "24\x82", "4\x84", "b", "\x82\x94", "\x94",
	"2sa", "\x82\x97", "\x97", "2sb", "2\x86" "e", "\x82tt", "s", "b", "2fs\x9a", "4\x84",
	"44", "4", "422224bss", "4", "444", "22224bssb", "4\xa3", "444\xa3", "4sb", "44ssi",
	"44si", "\x82\x82",
};

/* Indices into one of several tables: bits that say which, the tables; 0xff ends. */
static const struct { char letter; uint8_t bits, tables[23]; } coded[] = {
	{'a', 2, {2, 1, 0x1b, 0xff}}, {'h', 2, {4, 8, 0x17, 0xff}},
	{'c', 5, {6, 4, 1, 2, 8, 9, 10, 0, 14, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26,
		  0x27, 0x28, 0x2a, 0x2c, 0x2b, 0xff}},
	{'m', 1, {4, 8, 0xff}}, {'d', 2, {2, 6, 0x20, 0xff}},
	{'p', 3, {2, 1, 0x1a, 6, 0x1b, 0xff}}, {'e', 1, {0x14, 0x17, 0xff}},
	{'t', 1, {6, 10, 0xff}}, {'f', 1, {4, 6, 0xff}}, {'i', 2, {0x26, 0x23, 0x27, 0xff}},
	{'y', 3, {6, 10, 0xff}}, {'r', 2, {0, 0x1a, 0x23, 1, 0xff}},
};

uint32_t r2r_take(struct r2r_bytes *r, unsigned nbytes)
{
	uint32_t v;

	if (r->bad || r->at > r->n || r->n - r->at < nbytes) {
		r->bad = true;
		return 0;
	}
	v = nbytes == 1 ? r->b[r->at] : nbytes == 2 ? le16(r->b + r->at) : le32(r->b + r->at);
	r->at += nbytes;
	return v;
}

static uint8_t column_bytes(const struct clr_metadata *m, unsigned heaps, unsigned char c)
{
	uint32_t i, k, most = 0;

	if (c == '2' || c == '4')
		return (uint8_t)(c - '0');
	if (c == 's' || c == 'g' || c == 'b')
		return heaps & (c == 's' ? 1 : c == 'g' ? 2 : 4) ? 4 : 2;
	if (c & 0x80)
		return m->tables[c & 0x7f].nrows > 0xffff ? 4 : 2;
	for (i = 0; coded[i].letter != (char)c; i++)
		;
	for (k = 0; coded[i].tables[k] != 0xff; k++)
		if (m->tables[coded[i].tables[k]].nrows > most)
			most = m->tables[coded[i].tables[k]].nrows;
	return most >= 1u << (16 - coded[i].bits) ? 4 : 2;
}

/* u32 0, u8 major, minor, heaps, 1, u64 tables, u64 sorted, u32 rows of each, the rows */
static bool read_tables(struct clr_metadata *m, const uint8_t *b, uint32_t n)
{
	struct r2r_bytes r = {.b = b, .n = n, .at = 24};
	uint64_t present, bytes;
	unsigned t, k, heaps;

	if (n < 24)
		return false;
	heaps = b[6];
	present = le64(b + 8);
	if (present >> CLR_TABLES)
		return false;
	for (t = 0; t < CLR_TABLES; t++) {
		m->tables[t].nrows = present >> t & 1 ? r2r_take(&r, 4) : 0;
		if (m->tables[t].nrows > ROWS_MAX)
			return false;
	}
	r.at += heaps & 0x40 ? 4 : 0;
	for (t = 0; t <= NESTED && !r.bad && r.at <= n; t++) {
		struct clr_table *table = &m->tables[t];

		for (k = 0; schema[t][k]; k++) {
			table->at[k] = (uint8_t)table->row_bytes;
			table->width[k] = column_bytes(m, heaps, (unsigned char)schema[t][k]);
			table->row_bytes += table->width[k];
		}
		bytes = (uint64_t)table->nrows * table->row_bytes;
		if (bytes > n - r.at)
			return false;
		table->rows = b + r.at;
		r.at += (uint32_t)bytes;
	}
	return !r.bad && r.at <= n;
}

/* Row from 1; 0 = there is none. */
static uint32_t cell(const struct clr_metadata *m, unsigned table, uint32_t row, unsigned column)
{
	const struct clr_table *t = &m->tables[table];
	const uint8_t *at;

	if (!row || row > t->nrows)
		return 0;
	at = t->rows + (size_t)(row - 1) * t->row_bytes + t->at[column];
	return t->width[column] == 4 ? le32(at) : le16(at);
}

/* Its length is at most `most`; it never ends behind the heap, whose file may be changing. */
static const char *string_at(const struct clr_metadata *m, uint32_t at, size_t most, size_t *n)
{
	const size_t left = at < m->strings_bytes ? m->strings_bytes - at : 0;

	*n = left ? strnlen((const char *)m->strings + at, left < most ? left : most) : 0;
	return *n ? (const char *)m->strings + at : "";
}

static void put_string(const struct clr_metadata *m, uint32_t at, struct buf *out)
{
	size_t n;
	const char *text = string_at(m, at, CLR_NAME_BYTES, &n);

	buf_put(out, text, n);
}

/* Types have their methods one after another: each row says its first. */
static bool link_types(struct clr_metadata *m)
{
	uint32_t type, i, end;

	m->nmethods = m->tables[METHOD].nrows;
	m->ntypes = m->tables[TYPE].nrows;
	m->type_of_method = calloc((size_t)m->nmethods + 1, sizeof(uint32_t));
	m->outer_of_type = calloc((size_t)m->ntypes + 1, sizeof(uint32_t));
	if (!m->type_of_method || !m->outer_of_type)
		return false;
	for (type = 1, i = 1; type <= m->ntypes; type++) {
		end = type < m->ntypes ? cell(m, TYPE, type + 1, 5) : m->nmethods + 1;
		for (; i < end && i <= m->nmethods; i++)
			m->type_of_method[i] = type;
	}
	for (i = 1; i <= m->tables[NESTED].nrows; i++) {
		type = cell(m, NESTED, i, 0);
		if (type && type <= m->ntypes)
			m->outer_of_type[type] = cell(m, NESTED, i, 1);
	}
	return true;
}

struct streams {
	uint32_t strings_at, strings_bytes, tables_at, tables_bytes;
	uint32_t end;                        /* of the last of them */
};

/* "BSJB", u16 1, u16 1, u32 0, u32 length, version; u16 flags, streams, {u32 at, bytes, name} */
static bool read_streams(const uint8_t *b, uint32_t n, struct streams *out)
{
	struct r2r_bytes r = {.b = b, .n = n, .at = 12};
	uint32_t i, nstreams, at, bytes;
	char name[33];
	unsigned k;

	*out = (struct streams){0};
	if (n < 16 || memcmp(b, "BSJB", 4) != 0)
		return false;
	i = r2r_take(&r, 4);
	if (i > 255)
		return false;
	r.at += i + 2;
	nstreams = r2r_take(&r, 2);
	for (i = 0; i < nstreams && !r.bad; i++) {
		at = r2r_take(&r, 4);
		bytes = r2r_take(&r, 4);
		for (k = 0; k < 32 && (name[k] = (char)r2r_take(&r, 1)) != '\0'; k++)
			;
		name[k] = '\0';
		r.at = (r.at + 3) & ~3u;
		if (r.bad || bytes > UINT32_MAX - at)
			return false;
		out->end = at + bytes > out->end ? at + bytes : out->end;
		if (strcmp(name, "#Strings") == 0 && bytes) {
			out->strings_at = at;
			out->strings_bytes = bytes;
		} else if (strcmp(name, "#~") == 0) {
			out->tables_at = at;
			out->tables_bytes = bytes;
		}
	}
	return out->strings_bytes && out->tables_bytes;
}

uint32_t clr_metadata_bytes(const uint8_t *root, uint32_t n, uint32_t *strings_at,
			    uint32_t *strings_bytes)
{
	struct streams s;

	if (!read_streams(root, n, &s))
		return 0;
	*strings_at = s.strings_at;
	*strings_bytes = s.strings_bytes;
	return s.end;
}

bool clr_metadata_open(struct clr_metadata *m, const uint8_t *b, uint32_t n)
{
	struct streams s;

	*m = (struct clr_metadata){0};
	if (!read_streams(b, n, &s) || s.end > n || b[s.strings_at + s.strings_bytes - 1])
		return false;
	m->strings = b + s.strings_at;
	m->strings_bytes = s.strings_bytes;
	return read_tables(m, b + s.tables_at, s.tables_bytes) && link_types(m);
}

void clr_metadata_free(struct clr_metadata *m)
{
	free(m->type_of_method);
	free(m->outer_of_type);
}

uint32_t clr_type_of_method(const struct clr_metadata *m, uint32_t method)
{
	return method && method <= m->nmethods ? m->type_of_method[method] : 0;
}

bool clr_put_method_name(const struct clr_metadata *m, uint32_t method, struct buf *out)
{
	uint32_t chain[NESTING_MAX], n = 0, type;
	const size_t before = out->len, most = before + CLR_NAME_BYTES;

	if (!method || method > m->nmethods)
		return false;
	for (type = m->type_of_method[method]; type && type <= m->ntypes && n < NESTING_MAX;
	     type = m->outer_of_type[type])
		chain[n++] = type;
	if (!n)
		return false;
	put_string(m, cell(m, TYPE, chain[n - 1], 2), out);
	if (out->len > before)
		buf_putc(out, '.');
	while (n--) {
		put_string(m, cell(m, TYPE, chain[n], 1), out);
		buf_putc(out, n ? '+' : '.');
	}
	put_string(m, cell(m, METHOD, method, 3), out);
	if (!out->failed && out->len > most) {
		out->len = most;
		out->data[most] = '\0';
	}
	return true;
}

void clr_put_module_name(const struct clr_metadata *m, struct buf *out)
{
	size_t n;
	const char *name = string_at(m, cell(m, MODULE, 1, 1), CLR_NAME_BYTES, &n);

	n -= n > 4 && memcmp(name + n - 4, ".dll", 4) == 0 ? 4 : 0;
	buf_put(out, name, n < CLR_MODULE_BYTES ? n : CLR_MODULE_BYTES);
}
