#include "source/dotnet/nettrace_private.h"

#include "base/array.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG_OPCODE 1
#define TAG_FIELDS 2
#define TEXT_MAX 1024u                       /* UTF-16 units of a name */
#define TYPE_OBJECT 1
#define TYPE_ARRAY 19
#define OBJECTS_DEPTH_MAX 4u
#define EVENT_ID_BYTES 20u                   /* "EventID(4294967295)" */

void nettrace_metas_free(struct nettrace_metas *m)
{
	while (m->n)
		free(m->all[--m->n]);
	free(m->all);
	table_free(&m->by_number);
	if (m->shares)
		shares_hold(m->shares, &m->share, 0);
}

static bool same_number(const void *ctx, uint32_t value, const void *key)
{
	const struct nettrace_metas *m = ctx;

	return m->all[value]->number == *(const uint32_t *)key;
}

struct nettrace_meta *nettrace_metas_find(const struct nettrace_metas *m, uint32_t number)
{
	uint32_t at = number - 1;

	if (at < m->n && m->all[at]->number == number)       /* as the runtime counts them */
		return m->all[at];
	at = table_find(&m->by_number, hash_u64(number), same_number, m, &number);

	return at == TABLE_NONE ? NULL : m->all[at];
}

/* ---- texts: collected as UTF-8 with their NULs, by offset ------------------------------------ */

static size_t take_text(struct nettrace_draft *d, struct nettrace_in *in)
{
	size_t begin = d->texts.len, nunits = (size_t)(in->end - in->at) / 2, i = 0;
	uint32_t c = 1, n;
	char utf8[4];

	for (n = 0; i < nunits && (c = utf16_next(in->at, nunits, &i)) != 0; n++) {
		if (c < 0x20 || c == 0x7f)
			c = ' ';             /* names go to terminals */
		if (n < TEXT_MAX)
			buf_put(&d->texts, utf8, utf8_encode(c, utf8));
	}
	in_bytes(in, 2 * i + (c ? 2 : 0));    /* too far when no NUL came */
	buf_putc(&d->texts, '\0');
	return begin;
}

/* ---- fields ---------------------------------------------------------------------------------- */

bool nettrace_type_is_plain(uint32_t type)
{
	return type >= NETTRACE_BOOLEAN && type <= NETTRACE_STRING;
}

static bool add_field(struct nettrace_draft *d, uint32_t type, size_t name)
{
	if (!nettrace_type_is_plain(type) || d->meta.nfields == NETTRACE_FIELDS_MAX)
		return false;
	d->types[d->meta.nfields] = (uint8_t)type;
	d->names[d->meta.nfields++] = name;
	return true;
}

/*
 * Fields with the type before the name. Those of an object stand in its place, as their values do.
 * The fields after an array cannot be read.
 */
static bool take_fields(struct nettrace_draft *d, struct nettrace_in *in, unsigned depth)
{
	uint32_t n = (uint32_t)in_number(in, 4), type;

	for (; n && !in->bad; n--) {
		type = (uint32_t)in_number(in, 4);
		if (type == TYPE_OBJECT && depth < OBJECTS_DEPTH_MAX) {
			if (!take_fields(d, in, depth + 1))
				return false;
			take_text(d, in);
		} else if (type == TYPE_OBJECT || type == TYPE_ARRAY ||
			   !add_field(d, type, take_text(d, in))) {
			return false;
		}
	}
	return !in->bad;
}

/* Fields of the second version: each with its length, the name before the type. */
static void take_fields_2(struct nettrace_draft *d, struct nettrace_in *in)
{
	uint32_t n = (uint32_t)in_number(in, 4), length;

	d->meta.nfields = 0;
	for (; n && !in->bad; n--) {
		struct nettrace_in field = *in;
		size_t name;

		length = (uint32_t)in_number(&field, 4);
		if (length < 4 || !in_bytes(in, length))
			return;
		field.end = in->at;
		name = take_text(d, &field);
		if (!add_field(d, (uint32_t)in_number(&field, 4), name) || field.bad)
			return;
	}
}

static void take_tags(struct nettrace_draft *d, struct nettrace_in *in)
{
	while (in->end - in->at >= 5) {
		uint32_t n = (uint32_t)in_number(in, 4);
		uint8_t kind = (uint8_t)in_number(in, 1);
		struct nettrace_in tag = {.at = in->at, .end = in->at + n};

		if (!in_bytes(in, n))
			return;
		if (kind == TAG_OPCODE)
			d->meta.opcode = (uint8_t)in_number(&tag, 1);
		else if (kind == TAG_FIELDS)
			take_fields_2(d, &tag);
	}
}

/* ---- one kind of event ----------------------------------------------------------------------- */

/* The opcode that ends a name and stands for itself in an EventSource's manifest; or NULL. */
static const char *opcode_in(const char *name, unsigned opcode)
{
	static const char *const opcodes[] = {"Start", "Stop"};
	size_t n = strlen(name), m, i;

	for (i = 0; i < 2 && opcode <= 2 && !strchr(name, '/'); i++) {
		m = strlen(opcodes[i]);
		if (n > m && strcmp(name + n - m, opcodes[i]) == 0)
			return opcodes[i];
	}
	return NULL;
}

/* Of the event's name, where it is another one than the kind's. */
static size_t event_name_bytes(const char *name, unsigned opcode)
{
	return !*name ? EVENT_ID_BYTES : opcode_in(name, opcode) ? strlen(name) + 2 : 0;
}

/* The task, a slash and the opcode. */
static const char *put_event_name(char *out, const struct nettrace_meta *meta)
{
	const char *opcode = opcode_in(meta->name, meta->opcode);

	if (!*meta->name)
		snprintf(out, EVENT_ID_BYTES, "EventID(%u)", meta->event_id);
	else if (opcode)
		sprintf(out, "%.*s/%s", (int)(strlen(meta->name) - strlen(opcode)), meta->name,
			opcode);
	else
		return meta->name;
	return out;
}

/* One allocation: the meta, its fields, its texts. */
static struct nettrace_meta *build_meta(const struct nettrace_draft *d, size_t nbytes)
{
	size_t nfields = d->meta.nfields * sizeof(struct nettrace_field);
	struct nettrace_meta *meta;
	struct nettrace_field *fields;
	char *texts;
	uint32_t i;

	meta = malloc(nbytes);
	if (!meta)
		return NULL;
	*meta = d->meta;
	fields = (struct nettrace_field *)(meta + 1);
	texts = (char *)(meta + 1) + nfields;
	memcpy(texts, d->texts.data, d->texts.len);
	meta->provider = texts + d->provider;
	meta->name = texts + d->name;
	meta->event_name = put_event_name(texts + d->texts.len, meta);
	meta->fields = fields;
	for (i = 0; i < meta->nfields; i++)
		fields[i] =
			(struct nettrace_field){.name = texts + d->names[i], .type = d->types[i]};
	return meta;
}

static size_t meta_bytes(const struct nettrace_draft *d)
{
	return sizeof(struct nettrace_meta) + d->meta.nfields * sizeof(struct nettrace_field) +
	       d->texts.len + event_name_bytes(d->texts.data + d->name, d->meta.opcode);
}

static int refuse_meta(struct nettrace_metas *m, struct err *err)
{
	if (++m->nrefused < NETTRACE_REFUSED_MAX)
		return 0;
	return err_set(err, ERR_LIMIT,
		       "its kinds of events exceed its share of the memory for .NET programs");
}

static int add_meta(struct nettrace_metas *m, const struct nettrace_draft *d, struct err *err)
{
	struct nettrace_meta *meta;
	size_t nbytes = meta_bytes(d);

	if (m->shares && !shares_take(m->shares, &m->share, nbytes + NETTRACE_ENTRY_BYTES))
		return refuse_meta(m, err);
	meta = ARRAY_ROOM(m->all, m->room, m->n + 1) ? NULL : build_meta(d, nbytes);
	if (!meta || table_add(&m->by_number, hash_u64(meta->number), m->n)) {
		free(meta);
		if (m->shares)
			shares_give_back(m->shares, &m->share, nbytes + NETTRACE_ENTRY_BYTES);
		return err_memory(err, "for the kinds of events of a .NET program");
	}
	m->nbytes += nbytes;
	m->all[m->n++] = meta;
	return 0;
}

int nettrace_metas_put(struct nettrace_metas *m, const struct nettrace_draft *d, struct err *err)
{
	if (m->n >= NETTRACE_METAS_MAX || m->nbytes >= NETTRACE_METAS_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "a nettrace stream has over %u kinds of events",
			       NETTRACE_METAS_MAX);
	return d->meta.number && !nettrace_metas_find(m, d->meta.number) ? add_meta(m, d, err) : 0;
}

int nettrace_metas_add(struct nettrace_metas *m, const uint8_t *payload, size_t n, struct err *err)
{
	struct nettrace_in in = {.at = payload, .end = payload + n};
	struct nettrace_draft d = {0};
	int rc = 0;

	d.meta.number = (uint32_t)in_number(&in, 4);
	d.provider = take_text(&d, &in);
	d.meta.event_id = (uint32_t)in_number(&in, 4);
	d.name = take_text(&d, &in);
	d.meta.keywords = in_number(&in, 8);
	d.meta.version = (uint32_t)in_number(&in, 4);
	d.meta.level = (uint32_t)in_number(&in, 4);
	if (in.bad)
		rc = err_set(err, ERR_FORMAT,
			     "a nettrace stream has a truncated event description");
	else if (take_fields(&d, &in, 0))
		take_tags(&d, &in);
	if (!rc && d.texts.failed)
		rc = err_memory(err, "for the kinds of events of a .NET program");
	if (!rc)
		rc = nettrace_metas_put(m, &d, err);
	buf_free(&d.texts);
	return rc;
}
