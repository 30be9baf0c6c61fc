#include "export/profile.h"

#include "export/names.h"

#include "base/bytes.h"
#include "base/varint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const profile_units[METRIC_UNITS] = {"nanoseconds", "bytes", "count"};

/* ---- protobuf -------------------------------------------------------------------------------- */

void proto_put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	buf_put(b, bytes, varint_put(bytes, v));
}

void proto_put_int(struct buf *b, unsigned field, uint64_t v)
{
	if (!v || !field)
		return;
	proto_put_varint(b, field << 3);
	proto_put_varint(b, v);
}

void proto_put_fixed64(struct buf *b, unsigned field, uint64_t v)
{
	uint8_t bytes[8];
	unsigned i;

	for (i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	proto_put_varint(b, field << 3 | 1);
	buf_put(b, bytes, 8);
}

void proto_put_bytes(struct buf *b, unsigned field, const void *bytes, size_t n)
{
	proto_put_varint(b, field << 3 | 2);
	proto_put_varint(b, n);
	buf_put(b, bytes, n);
}

void proto_put_part(struct buf *b, unsigned field, const struct buf *part)
{
	if (part->failed)
		b->failed = part->failed;
	proto_put_bytes(b, field, buf_text(part), part->len);
}

/* ---- strings --------------------------------------------------------------------------------- */

uint32_t profile_string(struct profile *p, const char *text, size_t n)
{
	uint32_t number = text_table_add(&p->strings, text, n);

	if (number != TABLE_NONE)
		return number;
	p->failed = ERR_MEMORY;
	return 0;
}

uint32_t profile_text(struct profile *p, const char *text)
{
	return profile_string(p, text, strlen(text));
}

uint32_t profile_clean_text(struct profile *p, const char *text)
{
	buf_reset(&p->text);
	name_put(&p->text, text);
	if (p->text.failed)
		p->failed = p->text.failed;
	return profile_string(p, buf_text(&p->text), p->text.len);
}

/* ---- mappings, functions, locations ---------------------------------------------------------- */

uint32_t profile_id(struct profile *p, struct text_table *t, const void *key, size_t n,
		      bool *is_new)
{
	uint32_t known = t->n, number = text_table_add(t, key, n);

	*is_new = number == known;
	if (number == TABLE_NONE)
		p->failed = ERR_MEMORY;
	return number + 1;
}

uint32_t profile_build_id(struct profile *p, const struct incident_module *m)
{
	static const uint8_t guid[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	char text[BUILD_ID_MAX * 2 + 1];
	bool pdb = m->kind == OBJECT_PE && m->build_id_bytes == 20;
	size_t n = 0;
	unsigned i;

	if (!m->build_id_bytes)
		return 0;
	for (i = 0; i < (pdb ? 16u : m->build_id_bytes); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, pdb ? "%02X" : "%02x",
				      (unsigned)m->build_id[pdb ? guid[i] : i]);
	if (pdb)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%X",
				      (unsigned)le32(m->build_id + GUID_BYTES));
	return profile_string(p, text, n);
}

uint32_t profile_mapping(struct profile *p, uint32_t module)
{
	const struct incident_module *m = &p->in->modules[module];
	uint32_t file;

	if (p->mapping_of_module[module])
		return p->mapping_of_module[module];
	p->mapping_of_module[module] = ++p->nmappings;
	file = profile_clean_text(p, m->path && *m->path ? m->path :
				     m->name && *m->name ? m->name : "?");
	buf_reset(&p->part);
	proto_put_int(&p->part, p->fields->mapping_id, p->nmappings);
	proto_put_int(&p->part, p->fields->mapping_file, file);
	p->fields->more_of_mapping(p, m);
	proto_put_part(&p->tables, p->fields->mappings, &p->part);
	return p->nmappings;
}

struct function_key {
	uint32_t name, system, file;         /* strings */
};

static uint32_t put_function(struct profile *p, const char *name, size_t n, const char *system,
			     const char *file)
{
	struct function_key key = {
		.name = profile_string(p, name, n),
		.system = system && *system ? profile_clean_text(p, system) : 0,
		.file = file && *file ? profile_clean_text(p, file) : 0,
	};
	bool is_new;
	uint32_t id = profile_id(p, &p->functions, &key, sizeof(key), &is_new);

	if (!is_new)
		return id;
	buf_reset(&p->inner);
	proto_put_int(&p->inner, p->fields->function_id, id);
	proto_put_int(&p->inner, p->fields->function_name, key.name);
	proto_put_int(&p->inner, p->fields->function_system, key.system);
	proto_put_int(&p->inner, p->fields->function_file, key.file);
	proto_put_part(&p->tables, p->fields->functions, &p->inner);
	return id;
}

static uint32_t function_of(struct profile *p, uint32_t frame)
{
	const struct incident_frame *f = &p->in->frames[frame];
	uint32_t *id = &p->function_of_frame[p->twins[frame]];
	struct buf name = {0};

	if (*id)
		return *id;
	incident_frame_text(p->in, frame, false, &name);
	if (name.failed)
		p->failed = name.failed;
	*id = put_function(p, buf_text(&name), name.len, f->raw_name ? f->raw_name : f->function,
			   f->file);
	buf_free(&name);
	return *id;
}

static void put_line(struct profile *p, uint32_t function, uint32_t line)
{
	buf_reset(&p->inner);
	proto_put_int(&p->inner, 1, function);
	proto_put_int(&p->inner, 2, line);
	proto_put_part(&p->part, p->fields->location_line, &p->inner);
}

/* frames[n - 1] with the n - 1 functions that were inlined into it. */
static uint32_t location_of(struct profile *p, const uint32_t *frames, uint32_t n)
{
	uint32_t *known = n == 1 ? &p->location_of_frame[*frames] : NULL, id, mapping, i;
	bool is_new;

	if (known && *known)
		return *known;
	id = profile_id(p, &p->locations, frames, n * sizeof(*frames), &is_new);
	if (known)
		*known = id;
	if (!is_new)
		return id;
	mapping = profile_mapping(p, p->in->frames[frames[n - 1]].module);
	for (i = 0; i < n; i++)
		function_of(p, frames[i]);
	buf_reset(&p->part);
	proto_put_int(&p->part, p->fields->location_id, id);
	proto_put_int(&p->part, p->fields->location_mapping, mapping);
	proto_put_int(&p->part, p->fields->location_address, frame_address(p->in, frames[n - 1]));
	for (i = 0; i < n; i++)
		put_line(p, function_of(p, frames[i]), p->in->frames[frames[i]].line);
	p->fields->more_of_location(p, frames[n - 1]);
	proto_put_part(&p->tables, p->fields->locations, &p->part);
	return id;
}

/*
 * A location that is not code: a mark, or "[no stack]". Frames take 4 bytes each and no such name
 * has a multiple of 4, so neither is taken for the other.
 */
static uint32_t mark_location(struct profile *p, const char *name)
{
	bool is_new;
	uint32_t id = profile_id(p, &p->locations, name, strlen(name), &is_new), function;

	if (!is_new)
		return id;
	function = put_function(p, name, strlen(name), NULL, NULL);
	buf_reset(&p->part);
	proto_put_int(&p->part, p->fields->location_id, id);
	put_line(p, function, 0);
	p->fields->more_of_location(p, FRAME_NONE);
	proto_put_part(&p->tables, p->fields->locations, &p->part);
	return id;
}

void profile_put_locations(struct profile *p, const struct sum *s, const struct path *path,
			   struct buf *ids)
{
	uint8_t *at = (uint8_t *)buf_reserve(ids, (size_t)path->n * VARINT_MAX_BYTES);
	uint8_t *start = at;
	uint32_t i, first = 0;

	for (i = 0; at && i < path->n; i++) {
		if (i + 1 < path->n && (p->in->frames[path->frames[i]].flags & FRAME_INLINED))
			continue;
		at += varint_put(at, location_of(p, path->frames + first, i + 1 - first));
		first = i + 1;
	}
	if (at)
		buf_advance(ids, (size_t)(at - start));
	if (s->mark)
		proto_put_varint(ids, mark_location(p, s->mark));
	else if (!path->n)
		proto_put_varint(ids, mark_location(p, "[no stack]"));
}

/* ---- all of it ------------------------------------------------------------------------------- */

int profile_begin(struct profile *p, const struct incident *in, const struct profile_fields *fields,
		  struct err *err)
{
	*p = (struct profile){
		.in = in, .fields = fields,
		.twins = incident_frame_twins(in),
		.function_of_frame = calloc((size_t)in->nframes + 1, sizeof(uint32_t)),
		.location_of_frame = calloc((size_t)in->nframes + 1, sizeof(uint32_t)),
		.mapping_of_module = calloc((size_t)in->nmodules + 1, sizeof(uint32_t)),
	};
	if (!p->twins || !p->function_of_frame || !p->location_of_frame || !p->mapping_of_module)
		return err_memory(err, "while writing a profile");
	profile_text(p, "");
	return 0;
}

void profile_put_strings(struct profile *p)
{
	uint32_t i;

	for (i = 0; i < p->strings.n; i++)
		proto_put_bytes(&p->tables, p->fields->strings, text_table_get(&p->strings, i),
				p->strings.items[i].len);
}

void profile_free(struct profile *p)
{
	buf_free(&p->tables);
	buf_free(&p->part);
	buf_free(&p->inner);
	buf_free(&p->text);
	text_table_free(&p->strings);
	text_table_free(&p->functions);
	text_table_free(&p->locations);
	free(p->twins);
	free(p->function_of_frame);
	free(p->location_of_frame);
	free(p->mapping_of_module);
}
