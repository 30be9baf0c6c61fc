#include "managed/hotspot/method.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/table.h"
#include "managed/hotspot/blob.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ceilings; in brackets the largest seen. */
#define CLASS_NAME_MAX 4000u                 /* (83) */
#define METHOD_NAME_MAX 4000u                /* (33) */
#define SIGNATURE_MAX 65535u
#define SOURCE_NAME_MAX 255u
#define LINES_BYTES_MAX 2048u                /* of the target's table (700) */
#define LINES_TEXT_MAX 2000u                 /* of ours; the rest of a table is left out */
#define HAS_LINES 1u                         /* in ConstMethod::_flags */

static bool is_address(uint64_t v)
{
	return v >= 4096 && v < UINT64_C(1) << 47 && v % 8 == 0;
}

/* A Symbol's bytes, as a text; NULL when it is none. */
static char *read_symbol(const struct hotspot_layout *l, const struct managed_memory *m,
			 uint64_t address, uint32_t max)
{
	uint64_t length;
	char *text;

	address &= ~UINT64_C(1);
	if (!is_address(address))
		return NULL;
	if (hotspot_has(l, F_SYMBOL_LENGTH)) {
		if (!hotspot_read(l, m, F_SYMBOL_LENGTH, address, &length))
			return NULL;
		length &= 0xffff;
	} else {
		if (!hotspot_read(l, m, F_SYMBOL_LENGTH_AND_REFS, address, &length))
			return NULL;
		length = (uint32_t)length >> 16;
	}
	if (!length || length > max)
		return NULL;
	text = malloc((size_t)length + 1);
	if (!text)
		return NULL;
	if (!managed_read(m, address + l->fields[F_SYMBOL_BODY].at, text, (size_t)length) ||
	    memchr(text, 0, (size_t)length)) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	return text;
}

static uint64_t pool_word(const struct hotspot_layout *l, uint64_t pool, uint64_t index)
{
	return pool + l->sizes[T_CONSTANT_POOL] + 8 * index;
}

char *hotspot_pool_symbol(const struct hotspot_layout *l, const struct managed_memory *m,
			  uint64_t pool, uint64_t index, uint64_t npool, uint32_t max)
{
	uint8_t word[8];

	if (!index || index >= npool ||
	    !managed_read(m, pool_word(l, pool, index), word, sizeof(word)))
		return NULL;
	return read_symbol(l, m, le64(word), max);
}

char *hotspot_class_read(const struct hotspot_layout *l, const struct managed_memory *m,
			 uint64_t klass)
{
	uint64_t name;

	return is_address(klass) && hotspot_read(l, m, F_KLASS_NAME, klass, &name)
		       ? read_symbol(l, m, name, CLASS_NAME_MAX) : NULL;
}

static bool is_hex(const char *text)
{
	return *text && strspn(text, "0123456789abcdefABCDEF") == strlen(text);
}

void hotspot_class_name(char *name)
{
	static const char lambda[] = "$$Lambda$";
	char *at = strrchr(name, '+'), *digits;

	if (at && at[1] == '0' && at[2] == 'x' && is_hex(at + 3))
		*at = '\0';
	digits = strstr(name, lambda);
	if (digits) {
		digits += sizeof(lambda) - 1;
		if (*digits && digits[strspn(digits, "0123456789")] == '\0')
			digits[-1] = '\0';
	}
	for (at = name; *at; at++)
		if (*at == '/')
			*at = '.';
}

static char *full_name(char *class_name, const char *method)
{
	struct buf text = {.max_bytes = CLASS_NAME_MAX + METHOD_NAME_MAX + 2};

	hotspot_class_name(class_name);
	buf_puts(&text, class_name);
	buf_putc(&text, '.');
	buf_puts(&text, method);
	if (text.failed)
		buf_free(&text);
	return text.data;
}

static bool read_names(const struct hotspot_layout *l, const struct managed_memory *m,
		       struct hotspot_method *out)
{
	uint64_t npool, holder;
	char *name = NULL, *class_name = NULL;

	if (!hotspot_read(l, m, F_POOL_LENGTH, out->pool, &npool) ||
	    !hotspot_read(l, m, F_POOL_HOLDER, out->pool, &holder))
		return false;
	npool = (uint32_t)npool;
	name = hotspot_pool_symbol(l, m, out->pool, out->name_index, npool, METHOD_NAME_MAX);
	out->signature = hotspot_pool_symbol(l, m, out->pool, out->signature_index, npool,
					     SIGNATURE_MAX);
	class_name = hotspot_class_read(l, m, holder);
	if (class_name)
		out->class_hash = hash_bytes(class_name, strlen(class_name));
	if (name && class_name && out->signature && out->signature[0] == '(')
		out->function = full_name(class_name, name);
	free(name);
	free(class_name);
	return out->function != NULL;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/*
 * Take an entry of a compressed line table, relative to the one before: one byte holds small steps.
 * returns  false: it ends here, or makes no sense
 */
static bool take_line(const struct hotspot_layout *l, const uint8_t *table, uint32_t n,
		      uint32_t *at, uint32_t *bci, uint32_t *line)
{
	uint32_t step[2];

	if (*at >= n || !table[*at])
		return false;
	if (table[*at] != 0xff) {
		*bci += table[*at] >> 3;
		*line += table[*at] & 7;
		(*at)++;
		return true;
	}
	(*at)++;
	if (!hotspot_unsigned5(table, n, l->unsigned5_min, at, &step[0]) ||
	    !hotspot_unsigned5(table, n, l->unsigned5_min, at, &step[1]))
		return false;
	*bci += step[0] >> 1 ^ (0 - (step[0] & 1));
	*line += step[1] >> 1 ^ (0 - (step[1] & 1));
	return true;
}

char *hotspot_lines_text(const struct hotspot_layout *l, const char *file, const uint8_t *table,
			 uint32_t n)
{
	struct buf text = {.max_bytes = SOURCE_NAME_MAX + LINES_TEXT_MAX + 32};
	uint32_t at = 0, bci = 0, line = 0;

	buf_printf(&text, " %s", file);
	while (text.len < LINES_TEXT_MAX && take_line(l, table, n, &at, &bci, &line) &&
	       bci <= UINT16_MAX && line <= UINT16_MAX)
		buf_printf(&text, " %" PRIu32 ":%" PRIu32, bci, line);
	if (text.failed)
		buf_free(&text);
	return text.data;
}

/* The class's source file; without it lines say nothing. */
static char *read_source(const struct hotspot_layout *l, const struct managed_memory *m,
			 uint64_t pool)
{
	uint64_t npool, holder, index;

	if (!hotspot_read(l, m, F_POOL_LENGTH, pool, &npool))
		return NULL;
	if (hotspot_has(l, F_SOURCE_OF_POOL)) {
		if (!hotspot_read(l, m, F_SOURCE_OF_POOL, pool, &index))
			return NULL;
	} else if (!hotspot_read(l, m, F_POOL_HOLDER, pool, &holder) || !is_address(holder) ||
		   !hotspot_read(l, m, F_SOURCE_OF_CLASS, holder, &index)) {
		return NULL;
	}
	return hotspot_pool_symbol(l, m, pool, index & 0xffff, (uint32_t)npool, SOURCE_NAME_MAX);
}

static void read_lines(const struct hotspot_layout *l, const struct managed_memory *m,
		       uint64_t flags, struct hotspot_method *out)
{
	uint8_t table[LINES_BYTES_MAX];
	size_t n;
	char *file;

	if (!(flags & HAS_LINES))
		return;
	n = m->read(m->ctx, out->bytecodes + out->nbytecodes, table, sizeof(table));
	file = n ? read_source(l, m, out->pool) : NULL;
	/* It stands between blanks. */
	if (file && !strchr(file, ' '))
		out->lines = hotspot_lines_text(l, file, table, (uint32_t)n);
	free(file);
}

/* 0 = they cannot be read. */
static uint64_t symbols_hash(const struct hotspot_layout *l, const struct managed_memory *m,
			     const struct hotspot_method *method)
{
	uint64_t name, signature;
	uint8_t words[2][8];

	if (!hotspot_read(l, m, F_NAME_INDEX, method->const_method, &name) ||
	    !hotspot_read(l, m, F_SIGNATURE_INDEX, method->const_method, &signature) ||
	    !managed_read(m, pool_word(l, method->pool, name & 0xffff), words[0], 8) ||
	    !managed_read(m, pool_word(l, method->pool, signature & 0xffff), words[1], 8))
		return 0;
	return hash_pair(le64(words[0]), le64(words[1]));
}

bool hotspot_method_read(const struct hotspot_layout *l, const struct managed_memory *memory,
			 uint64_t address, struct hotspot_method *out)
{
	size_t nhead = (size_t)l->sizes[T_CONST_METHOD];
	uint8_t head[4096];

	memset(out, 0, sizeof(*out));
	out->address = address;
	if (!is_address(address) ||
	    !hotspot_read(l, memory, F_CONST_METHOD, address, &out->const_method) ||
	    !is_address(out->const_method) ||
	    !managed_read(memory, out->const_method, head, nhead))
		return false;
	out->pool = hotspot_get(l, F_CONSTANTS, head, nhead);
	if (!is_address(out->pool))
		return false;
	out->bytecodes = out->const_method + nhead;
	out->nbytecodes = (uint32_t)hotspot_get(l, F_CODE_BYTES, head, nhead) & 0xffff;
	out->name_index = (uint16_t)hotspot_get(l, F_NAME_INDEX, head, nhead);
	out->signature_index = (uint16_t)hotspot_get(l, F_SIGNATURE_INDEX, head, nhead);
	/* Before the names: what comes in between is seen by the next comparison. */
	out->symbols_hash = symbols_hash(l, memory, out);
	if (read_names(l, memory, out)) {
		read_lines(l, memory, hotspot_get(l, F_CM_FLAGS, head, nhead), out);
		return true;
	}
	hotspot_method_clear(out);
	return false;
}

void hotspot_method_clear(struct hotspot_method *method)
{
	free(method->function);
	free(method->signature);
	free(method->lines);
	method->function = method->signature = method->lines = NULL;
}

/* 0 = it cannot be read. */
static uint64_t class_hash(const struct hotspot_layout *l, const struct managed_memory *m,
			   uint64_t pool)
{
	uint64_t holder, hash = 0;
	char *text;

	text = hotspot_read(l, m, F_POOL_HOLDER, pool, &holder)
		       ? hotspot_class_read(l, m, holder) : NULL;
	if (text)
		hash = hash_bytes(text, strlen(text));
	free(text);
	return hash;
}

bool hotspot_method_same(const struct hotspot_layout *l, const struct managed_memory *memory,
			 const struct hotspot_method *method, struct hotspot_classes *classes)
{
	unsigned at = (unsigned)(hash_u64(method->pool) % HOTSPOT_CLASSES);
	uint64_t const_method, pool;

	if (!hotspot_read(l, memory, F_CONST_METHOD, method->address, &const_method) ||
	    const_method != method->const_method ||
	    !hotspot_read(l, memory, F_CONSTANTS, const_method, &pool) || pool != method->pool)
		return false;
	if (!classes)
		return true;
	if (symbols_hash(l, memory, method) != method->symbols_hash)
		return false;
	if (classes->of[at].pool != pool) {
		classes->of[at].pool = pool;
		classes->of[at].hash = class_hash(l, memory, pool);
	}
	return classes->of[at].hash == method->class_hash;
}

static void ahead_field(const struct hotspot_layout *l, struct managed_ahead *ahead,
			enum hotspot_field_id id, uint64_t base)
{
	managed_ahead_add(ahead, base + l->fields[id].at, l->fields[id].bytes);
}

void hotspot_method_ahead(const struct hotspot_layout *l, struct managed_ahead *ahead,
			  const struct hotspot_method *method, bool names)
{
	ahead_field(l, ahead, F_CONST_METHOD, method->address);
	ahead_field(l, ahead, F_CONSTANTS, method->const_method);
	if (!names)
		return;
	ahead_field(l, ahead, F_NAME_INDEX, method->const_method);
	ahead_field(l, ahead, F_SIGNATURE_INDEX, method->const_method);
	managed_ahead_add(ahead, pool_word(l, method->pool, method->name_index), 8);
	managed_ahead_add(ahead, pool_word(l, method->pool, method->signature_index), 8);
}
