#include "managed/python/code.h"

#include "base/bytes.h"
#include "base/table.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BYTES 256u
#define TEXT_HEAD_BYTES 64u

/* ---- texts ----------------------------------------------------------------------------------- */

/* false: no character. Surrogates stand for bytes that were none, and NUL would end the name. */
static bool is_character(uint32_t c)
{
	return c && c < 0x110000 && (c < 0xd800 || c > 0xdfff);
}

/* How its characters are kept. false: not at all behind its head */
static bool text_form(const struct python_layout *l, const uint8_t *head, unsigned *width,
		      uint64_t *data)
{
	uint32_t state;
	bool compact, ascii;

	*width = 1;
	*data = l->bytes_data;
	if (!l->text_length)
		return true;
	state = le32(head + l->text_state);
	if (l->version >= PYTHON_VERSION(3, 14) && l->free_threaded)
		state >>= 6;
	*width = state >> 2 & 7;
	compact = state >> 5 & 1;
	ascii = state >> 6 & 1;
	*data = ascii ? l->text_ascii : l->text_compact;
	return compact && (*width == 1 || *width == 2 || *width == 4);
}

bool python_text_read(const struct python_layout *l, const struct managed_memory *memory,
		      uint64_t text, char *out)
{
	uint8_t head[TEXT_HEAD_BYTES] = {0}, bytes[4 * PYTHON_TEXT_MAX];
	size_t length, at = 0, i;
	unsigned width;
	uint64_t data;

	if (!text || text & 7 || text >> 47 || !managed_read(memory, text, head, 40) ||
	    (l->text_length > 32 && !managed_read(memory, text, head, sizeof(head))) ||
	    !text_form(l, head, &width, &data))
		return false;
	length = (size_t)le64(head + (l->text_length ? l->text_length : l->bytes_size));
	length = length < PYTHON_TEXT_MAX ? length : PYTHON_TEXT_MAX;
	if (!managed_read(memory, text + data, bytes, length * width))
		return false;
	for (i = 0; i < length; i++) {
		uint32_t c = (uint32_t)le_sized(bytes + i * width, width);

		if (!l->text_length && c >= 0x80)    /* 2.7: bytes, of UTF-8 as a rule */
			out[at++] = (char)c;
		else
			at += utf8_encode(is_character(c) ? c : '?', out + at);
	}
	out[at] = '\0';
	return length != 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Where a path's part that names the module begins: behind what modules are found in. */
static const char *module_path(const char *file)
{
	static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
	const char *found = NULL, *at, *digits;
	size_t i;

	for (i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if ((at = strstr(file, roots[i])) != NULL)
			found = at + strlen(roots[i]);
	if (found)
		return found;
	for (at = file; (at = strstr(at, "/python")) != NULL; at++) {
		digits = at + 7 + strspn(at + 7, "0123456789.");
		if (digits > at + 7 && *digits == '/')
			found = digits + 1;
	}
	return found ? found : text_base_name(file);
}

/* "<frozen importlib._bootstrap>" is its module's name, "<string>" is none's. */
static int put_module(const char *file, char *out, size_t n)
{
	const char *path;
	size_t length, i;

	if (strncmp(file, "<frozen ", 8) == 0)
		return snprintf(out, n, "%.*s.", (int)strcspn(file + 8, ">"), file + 8);
	if (*file == '<' || !*file)
		return snprintf(out, n, "%s%s", file, *file ? "." : "");
	path = module_path(file);
	length = strlen(path);
	if (length > 4 && strcmp(path + length - 4, ".pyc") == 0)
		length -= 4;
	else if (length > 3 && strcmp(path + length - 3, ".py") == 0)
		length -= 3;
	if (length > 9 && strncmp(path + length - 9, "/__init__", 9) == 0)
		length -= 9;
	length = length < n - 2 ? length : n - 2;
	for (i = 0; i < length; i++)
		out[i] = path[i] == '/' ? '.' : path[i];
	out[length] = '.';
	out[length + 1] = '\0';
	return (int)length + 1;
}

void python_function_name(const char *file, const char *qualname, char *out)
{
	int at = put_module(file, out, MANAGED_TEXT_MAX / 2);

	if (at < 0 || at >= (int)MANAGED_TEXT_MAX / 2)
		at = 0;
	snprintf(out + at, MANAGED_TEXT_MAX + 1 - (size_t)at, "%s", qualname);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Up to 3.9: pairs of an advance in bytes and one in lines, of which the second has a sign in 3. */
static int32_t line_of_pairs(bool has_sign, const uint8_t *table, size_t n, int32_t line,
			     int32_t position)
{
	int64_t at = 0, found = line;
	size_t i;

	for (i = 0; i + 1 < n; i += 2) {
		at += table[i];
		if (at > position)
			break;
		found += has_sign ? (int8_t)table[i + 1] : table[i + 1];
	}
	return found > 0 && found <= INT32_MAX ? (int32_t)found : line;
}

/* 3.10: ranges with an advance in lines; -128 = this range has no line. */
static int32_t line_of_ranges(const uint8_t *table, size_t n, int32_t line, int32_t position)
{
	int64_t end = 0, found = line;
	size_t i;

	for (i = 0; i + 1 < n; i += 2) {
		int8_t advance = (int8_t)table[i + 1];

		if (advance != -128)
			found += advance;
		end += table[i];
		if (position < end)
			return advance != -128 && found > 0 && found <= INT32_MAX
				       ? (int32_t)found : line;
	}
	return line;
}

/* 6 bits a byte, the low ones first. false: the table ends */
static bool take_varint(const uint8_t *table, size_t n, size_t *at, uint32_t *out)
{
	unsigned shift = 0;
	uint8_t byte;

	*out = 0;
	do {
		if (*at >= n || shift > 30)
			return false;
		byte = table[(*at)++];
		*out |= (uint32_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return true;
}

static bool take_signed(const uint8_t *table, size_t n, size_t *at, int32_t *out)
{
	uint32_t v;

	if (!take_varint(table, n, at, &v))
		return false;
	*out = v & 1 ? -(int32_t)(v >> 1) : (int32_t)(v >> 1);
	return true;
}

/* What follows an entry's first byte. false: damaged. *lines: the advance */
static bool take_entry(const uint8_t *table, size_t n, size_t *at, unsigned code, int32_t *lines)
{
	uint32_t ignored, i;

	*lines = 0;
	if (code <= 9)
		*at += 1;
	else if (code <= 12)
		*lines = (int32_t)code - 10, *at += 2;
	else if (code == 15)
		return true;
	else if (!take_signed(table, n, at, lines))
		return false;
	for (i = 0; code == 14 && i < 3; i++)
		if (!take_varint(table, n, at, &ignored))
			return false;
	return *at <= n;
}

/* 3.11 and later: Objects/locations.md. */
static int32_t line_of_entries(const uint8_t *table, size_t n, int32_t line, int32_t position)
{
	int64_t end = 0, found = line;
	size_t at = 0;
	int32_t lines;

	while (at < n) {
		unsigned first = table[at++], code = first >> 3 & 15;

		if (!(first & 128) || !take_entry(table, n, &at, code, &lines))
			return line;
		found += lines;
		end += ((first & 7) + 1) * 2;
		if (position < end)
			return code != 15 && found > 0 && found <= INT32_MAX ? (int32_t)found
									     : line;
	}
	return line;
}

int32_t python_line(unsigned version, const uint8_t *table, size_t n, int32_t first_line,
		    int32_t position)
{
	if (position < 0 || !table)
		return first_line;
	if (version >= PYTHON_VERSION(3, 11))
		return line_of_entries(table, n, first_line, position);
	if (version >= PYTHON_VERSION(3, 10))
		return line_of_ranges(table, n, first_line, position);
	return line_of_pairs(version >= PYTHON_VERSION(3, 6), table, n, first_line, position);
}

/* ---- code objects ---------------------------------------------------------------------------- */

static void read_lines(const struct python_layout *l, const struct managed_memory *memory,
		       uint64_t table, struct python_code *out)
{
	uint8_t size[8];
	uint64_t n;

	if (!table || table & 7 || table >> 47 ||
	    !managed_read(memory, table + l->bytes_size, size, sizeof(size)))
		return;
	n = le64(size);
	if (!n || n > PYTHON_LINES_MAX)
		return;
	out->lines = malloc((size_t)n);
	if (out->lines && managed_read(memory, table + l->bytes_data, out->lines, (size_t)n)) {
		out->nlines = (uint32_t)n;
		return;
	}
	free(out->lines);
	out->lines = NULL;
}

/*
 * An object that was freed keeps its bytes for a while, but for the first, where the allocator puts
 * a pointer: bits 32 to 47 of a count of references are zero in every version. Without a global
 * lock the first word is another one; there the stamp has the texts.
 */
static bool is_alive(const struct python_layout *l, const struct managed_memory *memory,
		     uint64_t code)
{
	uint8_t bytes[8];
	uint64_t count;

	if (l->free_threaded)
		return true;
	if (!managed_read(memory, code, bytes, sizeof(bytes)))
		return false;
	count = le64(bytes);
	return (uint32_t)count && !(count >> 32 & 0xffff);
}

static bool read_code(const struct python_layout *l, const struct managed_memory *memory,
		      uint64_t type, uint64_t code, uint64_t stamp, bool lines,
		      struct python_code *out)
{
	char file[PYTHON_TEXT_BYTES], name[PYTHON_TEXT_BYTES];
	uint8_t bytes[CODE_BYTES];
	uint64_t now;

	memset(out, 0, sizeof(*out));
	if (!stamp || !managed_read(memory, code, bytes, 160) ||
	    (type && le64(bytes + l->object_type) != type) ||
	    !python_text_read(l, memory, le64(bytes + l->code_file), file) ||
	    !python_text_read(l, memory, le64(bytes + l->code_name), name))
		return false;
	out->first_line = (int32_t)le32(bytes + l->code_first_line);
	if (lines)
		read_lines(l, memory, le64(bytes + l->code_lines), out);
	/*
	 * Read last: the code object that was sampled is still there, so all that was read before
	 * is its own.
	 */
	python_stamps(l, memory, &code, 1, &now);
	if (now != stamp || !is_alive(l, memory, code)) {
		free(out->lines);
		out->lines = NULL;
		return false;
	}
	python_function_name(file, name, out->function);
	snprintf(out->file, sizeof(out->file), "%s", file);
	return true;
}

bool python_code_read(const struct python_layout *l, const struct managed_memory *memory,
		      uint64_t type, uint64_t code, uint64_t stamp, struct python_code *out)
{
	return read_code(l, memory, type, code, stamp, true, out);
}

static void name_spot(const struct python_target *t, const struct managed_memory *memory,
		      struct python_peek *peek, uint32_t spot)
{
	const struct python_spot *s = &peek->spots[spot];
	struct python_named *to = &peek->named[peek->nnamed];
	struct python_code code;
	size_t function, file;

	if (!read_code(&t->layout, memory, 0, s->code, s->stamp, false, &code))
		return;
	function = strlen(code.function) + 1;
	file = strlen(code.file) + 1;
	if (function + file > sizeof(to->text))
		return;
	*to = (struct python_named){.spot = spot, .first_line = code.first_line};
	memcpy(to->text, code.function, function);
	memcpy(to->text + function, code.file, file);
	peek->nnamed++;
}

void python_name_new(const struct python_target *t, const struct managed_memory *memory,
		     struct python_seen *seen, struct python_peek *peek)
{
	uint32_t i;

	for (i = 0; i < peek->n && peek->nnamed < PYTHON_NAMED_MAX; i++) {
		const struct python_spot *s = &peek->spots[i];
		uint64_t hash = hash_pair(hash_pair(t->serial, s->code), s->stamp);
		uint64_t *known = &seen->hashes[hash % PYTHON_SEEN];

		if (!s->stamp || *known == hash)
			continue;
		*known = hash;
		name_spot(t, memory, peek, i);
	}
}
