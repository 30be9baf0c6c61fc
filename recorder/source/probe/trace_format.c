#include "source/probe/trace_format.h"

#include "base/bytes.h"
#include "base/text.h"
#include "source/conditions.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX 16u                     /* of an array whose elements become fields */
#define HEX_BYTES_MAX 32u
#define GLOB_MAX 200u                        /* the kernel's limit is 255 */


/* ---- the format ------------------------------------------------------------------------------ */

/* The number after the key, in a line whose parts are separated by ';'. */
static bool number_after(const char *line, const char *key, uint32_t *out)
{
	const char *at = strstr(line, key);
	char *end;
	unsigned long v;

	if (!at || !isdigit((unsigned char)at[strlen(key)]))
		return false;
	v = strtoul(at + strlen(key), &end, 10);
	if (*end != ';' || v > UINT16_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

/*
 * "unsigned long args[6]" -> name "args", elements 6. returns  where the name begins; NULL = none
 */
static const char *split_name(const char *declaration, size_t n, char name[TRACE_NAME_MAX],
			      uint32_t *elements)
{
	size_t end = n, start;

	*elements = 0;
	while (end && isspace((unsigned char)declaration[end - 1]))
		end--;
	if (end && declaration[end - 1] == ']') {
		while (end && declaration[end - 1] != '[')
			end--;
		if (!end)
			return NULL;
		*elements = (uint32_t)strtoul(declaration + end, NULL, 10);
		end--;
	}
	for (start = end; start && (isalnum((unsigned char)declaration[start - 1]) ||
				    declaration[start - 1] == '_');)
		start--;
	if (start == end || end - start >= TRACE_NAME_MAX)
		return NULL;
	memcpy(name, declaration + start, end - start);
	name[end - start] = '\0';
	return declaration + start;
}

static bool is_number_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static void add_elements(struct trace_format *f, const struct trace_field *array, uint32_t elements)
{
	uint32_t i, size = array->size / elements;

	for (i = 0; i < elements && f->nfields < TRACE_FIELDS_MAX; i++) {
		struct trace_field *one = &f->fields[f->nfields];
		int n;

		*one = *array;
		n = snprintf(one->name, sizeof(one->name), "%.56s%" PRIu32, array->name, i);
		if (n < 0 || (size_t)n >= sizeof(one->name))
			continue;
		one->kind = TRACE_NUMBER;
		one->offset = (uint16_t)(array->offset + i * size);
		one->size = (uint16_t)size;
		one->is_element = true;
		f->nfields++;
	}
}

static bool has_word(const char *text, size_t n, const char *word)
{
	size_t w = strlen(word), i;

	for (i = 0; i + w <= n; i++)
		if (memcmp(text + i, word, w) == 0 &&
		    (!i || !(isalnum((unsigned char)text[i - 1]) || text[i - 1] == '_')))
			return true;
	return false;
}

/* One "field:TYPE NAME;\toffset:N;\tsize:N;\tsigned:N;". */
static void add_field(struct trace_format *f, const char *line)
{
	const char *declaration = strstr(line, "field:"), *end, *name;
	struct trace_field field = {0};
	uint32_t offset, size, is_signed = 0, elements;
	size_t type;
	bool chars;

	if (!declaration || f->nfields == TRACE_FIELDS_MAX)
		return;
	declaration += 6;
	end = strchr(declaration, ';');
	if (!end || !number_after(end, "offset:", &offset) || !number_after(end, "size:", &size))
		return;
	number_after(end, "signed:", &is_signed);
	name = split_name(declaration, (size_t)(end - declaration), field.name, &elements);
	if (!name || strncmp(field.name, "common_", 7) == 0 || !size)
		return;
	type = (size_t)(name - declaration);
	chars = has_word(declaration, type, "char");
	field.offset = (uint16_t)offset;
	field.size = (uint16_t)size;
	field.is_signed = is_signed != 0;
	field.is_pointer = memchr(declaration, '*', type) != NULL;
	if (has_word(declaration, type, "__data_loc"))
		field.kind = chars ? TRACE_LOC_CHARS : TRACE_LOC_BYTES;
	else if (has_word(declaration, type, "__rel_loc"))
		field.kind = chars ? TRACE_REL_CHARS : TRACE_REL_BYTES;
	else if (*(name + strlen(field.name)) == '[' && chars && !field.is_pointer)
		field.kind = TRACE_CHARS;
	else if (elements > 1 && elements <= ELEMENTS_MAX && size % elements == 0 &&
		 is_number_size(size / elements)) {
		add_elements(f, &field, elements);
		return;
	} else
		field.kind = is_number_size(size) ? TRACE_NUMBER : TRACE_BYTES;
	f->fields[f->nfields++] = field;
}

int trace_format_parse(const char *text, size_t n, struct trace_format *out, struct err *err)
{
	struct trace_format *f = calloc(1, sizeof(*f));
	char line[1024];
	size_t at, len;
	bool has_id = false;

	if (!f)
		return err_memory(err, "for the format of a tracepoint");
	for (at = 0; at < n; at += len + 1) {
		const char *newline = memchr(text + at, '\n', n - at);

		len = newline ? (size_t)(newline - (text + at)) : n - at;
		if (len >= sizeof(line))
			continue;            /* the rest is the print fmt */
		memcpy(line, text + at, len);
		line[len] = '\0';
		if (strncmp(line, "ID: ", 4) == 0 && isdigit((unsigned char)line[4])) {
			f->id = (uint32_t)strtoul(line + 4, NULL, 10);
			has_id = true;
		} else if (strncmp(line, "print fmt", 9) != 0) {
			add_field(f, line);
		}
	}
	if (has_id)
		*out = *f;
	free(f);
	return has_id ? 0
		      : err_set(err, ERR_FORMAT,
				"this is not the format of a tracepoint: it has no ID");
}

/* ---- values ---------------------------------------------------------------------------------- */

static const char *keep_text(struct trace_values *out, const char *from, size_t n)
{
	char *to = out->text + out->used;
	size_t room = sizeof(out->text) - out->used;

	if (!room)
		return "";
	n = strnlen(from, n);
	n = n < room - 1 ? n : room - 1;
	memcpy(to, from, n);
	to[n] = '\0';
	out->used += n + 1;
	return to;
}

static const char *keep_hex(struct trace_values *out, const uint8_t *from, size_t n)
{
	char hex[HEX_BYTES_MAX * 2 + 4];
	size_t i, shown = n < HEX_BYTES_MAX ? n : HEX_BYTES_MAX;

	for (i = 0; i < shown; i++)
		snprintf(hex + 2 * i, 3, "%02x", from[i]);
	snprintf(hex + 2 * shown, 4, "%s", shown < n ? "..." : "");
	return keep_text(out, hex, sizeof(hex));
}

static void read_number(const uint8_t *at, const struct trace_field *f, struct event_field *out)
{
	uint64_t v = le_sized(at, f->size);
	unsigned bits = f->size * 8u;

	out->type = f->is_signed ? FIELD_INT : FIELD_UINT;
	if (f->is_signed && bits < 64 && v >> (bits - 1) & 1)
		v |= ~(uint64_t)0 << bits;
	if (f->is_signed)
		out->v.i = (int64_t)v;
	else
		out->v.u = v;
}

static bool is_chars(enum trace_kind kind)
{
	return kind == TRACE_CHARS || kind == TRACE_LOC_CHARS || kind == TRACE_REL_CHARS;
}

/* Find the place of the value; false when it lies outside of the record. */
static bool find_value(const struct trace_field *f, const uint8_t *raw, size_t n, size_t *at,
		       size_t *size)
{
	uint32_t loc;

	*at = f->offset;
	*size = f->size;
	if (*at > n || *size > n - *at)
		return false;
	if (f->kind < TRACE_LOC_CHARS)
		return true;
	if (*size < 4)
		return false;
	loc = le32(raw + *at);
	*at = (f->kind >= TRACE_REL_CHARS ? *at + 4u : 0u) + (loc & 0xffff);
	*size = loc >> 16;
	return *at <= n && *size <= n - *at;
}

void trace_format_read(const struct trace_format *format, const void *raw, size_t n,
		       struct trace_values *out)
{
	uint32_t i;

	out->nfields = 0;
	out->hex_fields = 0;
	out->used = 0;
	for (i = 0; i < format->nfields; i++) {
		const struct trace_field *f = &format->fields[i];
		struct event_field *to = &out->fields[out->nfields];
		const uint8_t *bytes = raw;
		size_t at, size;

		if (!find_value(f, bytes, n, &at, &size))
			continue;
		to->name = f->name;
		to->type = FIELD_TEXT;
		if (f->kind == TRACE_NUMBER)
			read_number(bytes + at, f, to);
		else if (is_chars(f->kind))
			to->v.text = keep_text(out, (const char *)bytes + at, size);
		else
			to->v.text = keep_hex(out, bytes + at, size);
		if (f->kind == TRACE_NUMBER && f->is_pointer)
			out->hex_fields |= (uint64_t)1 << out->nfields;
		out->nfields++;
	}
}

bool trace_format_find(const struct trace_format *format, const char *name, uint32_t *out)
{
	uint32_t i;

	for (i = 0; i < format->nfields && strcmp(format->fields[i].name, name) != 0; i++)
		;
	*out = i;
	return i < format->nfields;
}

bool trace_format_number(const struct trace_format *format, uint32_t field, const void *raw,
			 size_t n, int64_t *out)
{
	const struct trace_field *f = &format->fields[field];
	struct event_field value;
	size_t at, size;

	if (field >= format->nfields || f->kind != TRACE_NUMBER ||
	    !find_value(f, raw, n, &at, &size))
		return false;
	read_number((const uint8_t *)raw + at, f, &value);
	*out = f->is_signed ? value.v.i : (int64_t)value.v.u;
	return true;
}

/* ---- the kernel's filter --------------------------------------------------------------------- */

bool trace_condition_read(const char *text, size_t n, struct trace_condition *out)
{
	size_t name = 0, op = 0;

	while (name < n && (isalnum((unsigned char)text[name]) || text[name] == '_'))
		name++;
	while (name + op < n && op < 2 && strchr("<>=!~", text[name + op]))
		op++;
	if (!name || name >= sizeof(out->field) || !op || name + op == n)
		return false;
	memcpy(out->field, text, name);
	out->field[name] = '\0';
	memcpy(out->op, text + name, op);
	out->op[op] = '\0';
	out->value = text + name + op;
	out->value_len = n - name - op;
	return out->op[0] != '~';
}

/* Only a whole number that the field can hold: the kernel would compare another one. */
static bool put_number(const struct trace_field *f, const struct trace_condition *c,
		       struct buf *out)
{
	char text[24] = "", *end;
	bool negative, hex;
	unsigned bits = f->size * 8u;
	uint64_t v, top;

	if (c->value_len >= sizeof(text))
		return false;
	memcpy(text, c->value, c->value_len);
	negative = text[0] == '-';
	hex = text[0] == '0' && (text[1] | 32) == 'x';
	if (!isdigit((unsigned char)text[negative]) || c->value_len > 18)
		return false;
	v = strtoull(text + negative + (hex ? 2 : 0), &end, hex ? 16 : 10);
	if (*end || (hex && !text[2]))
		return false;
	top = f->is_signed ? ((uint64_t)1 << (bits - 1)) - 1 : ~(uint64_t)0 >> (64 - bits);
	if (v > top || (negative && !f->is_signed))
		return false;
	buf_printf(out, "%s %s %s%" PRIu64, f->name, strcmp(c->op, "=") == 0 ? "==" : c->op,
		   negative ? "-" : "", v);
	return true;
}

/*
 * For a comparison in any case, each letter becomes a set of two. Characters that have a meaning in
 * globs are not supported.
 */
static bool put_glob(const struct trace_field *f, const struct trace_condition *c, struct buf *out)
{
	char glob[GLOB_MAX + 4];
	size_t i, used = 0;

	for (i = 0; i < c->value_len; i++) {
		unsigned char ch = (unsigned char)c->value[i];

		if (used >= GLOB_MAX || ch < ' ' || ch > '~' || strchr("*?[]\\\"'", ch))
			return false;
		if (isalpha(ch))
			used += (size_t)snprintf(glob + used, 5, "[%c%c]", tolower(ch),
						 toupper(ch));
		else
			glob[used++] = (char)ch;
	}
	glob[used] = '\0';
	if (!used || strcmp(c->op, "=") != 0)
		return false;
	buf_printf(out, "%s ~ \"%s\"", f->name, glob);
	return true;
}

static bool put_condition(const struct trace_format *format, const struct trace_condition *c,
			  struct buf *out)
{
	uint32_t i;

	for (i = 0; i < format->nfields; i++) {
		const struct trace_field *f = &format->fields[i];

		if (!text_same_fold(f->name, c->field))
			continue;
		if (f->is_element)
			return false;
		if (f->kind == TRACE_NUMBER)
			return !f->is_pointer && put_number(f, c, out);
		/* A value that is a number is compared as a number. */
		if (strspn(c->value, "0123456789+-.xX") >= c->value_len)
			return false;
		return (f->kind == TRACE_CHARS || f->kind == TRACE_LOC_CHARS) &&
		       put_glob(f, c, out);
	}
	return false;
}

bool trace_filter(const struct trace_format *format, const char *conditions, struct buf *out)
{
	const char *at = conditions;
	struct buf one = {0};
	size_t n;
	bool any = false;

	for (; *at; at += n + (at[n] == ';')) {
		struct trace_condition c;

		n = strcspn(at, ";");
		buf_reset(&one);
		if (!trace_condition_read(at, n, &c) || !put_condition(format, &c, &one) ||
		    one.failed)
			continue;
		buf_printf(out, "%s%s", any ? " && " : "", buf_text(&one));
		any = true;
	}
	buf_free(&one);
	return any && !out->failed;
}

/* ---- conditions that can never hold ---------------------------------------------------------- */

int trace_format_check(const struct trace_format *format, const char *event, const char *conditions,
		       const char *id_field, struct err *err)
{
	struct known_field fields[TRACE_FIELDS_MAX];
	/* If the format has more fields than are kept, not all are known. */
	bool all = format->nfields < TRACE_FIELDS_MAX;
	uint32_t i;
	int rc;

	for (i = 0; i < format->nfields; i++)
		fields[i] = (struct known_field){format->fields[i].name,
						 format->fields[i].kind == TRACE_NUMBER};
	rc = conditions_check(fields, format->nfields, all, event, conditions, err);
	return rc ? rc : conditions_check_field(fields, format->nfields, all, event, id_field, err);
}
