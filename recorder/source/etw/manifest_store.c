/*
 * A piece of a manifest (id 65534): u8 format 1, u8 major, u8 minor, u8 0x5b, u16 number of pieces,
 * u16 index of this piece, then bytes of UTF-8 XML. A process writes the pieces in order.
 */
#include "source/etw/manifest_store.h"

#include "base/array.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_HEAD 8u

static uint64_t guid_hash(const struct etw_guid *guid, uint64_t more)
{
	return hash_pair(hash_bytes(guid->bytes, sizeof(guid->bytes)), more);
}

static bool has_room(struct etw_manifest_store *s, size_t n)
{
	return s->nbytes + s->names.nbytes + n <= ETW_LEARNED_MAX_BYTES;
}

/* ---- writers of manifests -------------------------------------------------------------------- */

static bool same_writer(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_manifest_writer *a = &((const struct etw_manifest_store *)ctx)
						       ->writers[value],
					 *b = key;

	return a->pid == b->pid && guid_same(&a->guid, &b->guid);
}

static const struct etw_manifest_writer *writer_of(const struct etw_manifest_store *s,
						   const struct etw_guid *guid, uint32_t pid)
{
	struct etw_manifest_writer key = {.guid = *guid, .pid = pid};
	uint32_t found = table_find(&s->writers_by_pid, guid_hash(guid, pid), same_writer, s, &key);

	return found == TABLE_NONE ? NULL : &s->writers[found];
}

static void set_writer(struct etw_manifest_store *s, const struct etw_guid *guid, uint32_t pid,
		       uint32_t text)
{
	struct etw_manifest_writer key = {.guid = *guid, .pid = pid, .text = text};
	uint64_t hash = guid_hash(guid, pid);
	uint32_t found = table_find(&s->writers_by_pid, hash, same_writer, s, &key);

	if (found != TABLE_NONE) {
		s->writers[found].text = text;
		return;
	}
	if (s->nwriters == ETW_MANIFEST_WRITERS_MAX ||
	    ARRAY_ROOM(s->writers, s->writers_room, s->nwriters + 1) ||
	    table_add(&s->writers_by_pid, hash, s->nwriters)) {
		s->counts.refused++;
		return;
	}
	s->writers[s->nwriters++] = key;
}

/* ---- manifests ------------------------------------------------------------------------------- */

static bool same_text(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_manifest_text *a = &((const struct etw_manifest_store *)ctx)->texts[value],
				       *b = key;

	return a->n == b->n && guid_same(&a->guid, &b->guid) && memcmp(a->xml, b->xml, a->n) == 0;
}

/* Parse and keep a new text; always takes key->xml. Returns its number or TABLE_NONE. */
static uint32_t add_text(struct etw_manifest_store *s, struct etw_manifest_text *key, uint64_t hash)
{
	int rc = etw_manifest_parse(key->xml, key->n, &s->names, &key->manifest);
	size_t nbytes = rc ? 0 : key->n + etw_manifest_bytes(key->manifest);

	if (rc == ERR_FORMAT)
		s->counts.unreadable++;
	if (rc || s->ntexts == ETW_MANIFESTS_MAX || !has_room(s, nbytes) ||
	    ARRAY_ROOM(s->texts, s->texts_room, s->ntexts + 1) ||
	    table_add(&s->texts_by_xml, hash, s->ntexts)) {
		s->counts.refused += rc != ERR_FORMAT;
		if (!rc)
			etw_manifest_free(key->manifest);
		free(key->xml);
		return TABLE_NONE;
	}
	s->counts.refused += key->manifest->cut;
	s->nbytes += nbytes;
	s->texts[s->ntexts] = *key;
	return s->ntexts++;
}

static void free_partial(struct etw_manifest_store *s, struct etw_partial_manifest *partial)
{
	s->nbytes -= partial->xml.len;
	buf_free(&partial->xml);
	*partial = (struct etw_partial_manifest){.total = 0};
}

/* All pieces have come. */
static void finish_partial(struct etw_manifest_store *s, struct etw_partial_manifest *partial)
{
	struct etw_manifest_text key = {
		.guid = partial->guid, .xml = partial->xml.data, .n = partial->xml.len};
	uint64_t hash = hash_bytes(key.xml, key.n);
	uint32_t text = table_find(&s->texts_by_xml, hash, same_text, s, &key), pid = partial->pid;

	if (text == TABLE_NONE) {
		s->nbytes -= key.n;
		partial->xml = (struct buf){.data = NULL};
		text = add_text(s, &key, hash);
	}
	if (text != TABLE_NONE) {
		set_writer(s, &key.guid, pid, text);
		set_writer(s, &key.guid, ETW_ID_UNKNOWN, text);
	}
	free_partial(s, partial);
}

static struct etw_partial_manifest *partial_of(struct etw_manifest_store *s,
					       const struct etw_record *record)
{
	for (uint32_t i = 0; i < ETW_PARTIAL_MANIFESTS_MAX; i++)
		if (s->partials[i].total && s->partials[i].pid == record->pid &&
		    guid_same(&s->partials[i].guid, &record->guid))
			return &s->partials[i];
	return NULL;
}

/* A free place; if none is free, the oldest one is dropped. */
static struct etw_partial_manifest *new_partial(struct etw_manifest_store *s)
{
	struct etw_partial_manifest *partial;

	for (uint32_t i = 0; i < ETW_PARTIAL_MANIFESTS_MAX; i++)
		if (!s->partials[i].total)
			return &s->partials[i];
	partial = &s->partials[s->oldest_partial++ % ETW_PARTIAL_MANIFESTS_MAX];
	s->counts.torn++;
	free_partial(s, partial);
	return partial;
}

static void learn_piece(struct etw_manifest_store *s, const struct etw_record *record)
{
	const uint8_t *p = record->payload;
	uint32_t n = record->payload_bytes - PIECE_HEAD;
	uint16_t total = le16(p + 4), number = le16(p + 6);
	struct etw_partial_manifest *partial = partial_of(s, record);

	if (partial && (partial->total != total || partial->next != number)) {
		s->counts.torn++;
		free_partial(s, partial);
		partial = NULL;
	}
	if (!partial) {
		if (number != 0 || !total) {
			s->counts.torn++;
			return;
		}
		partial = new_partial(s);
		*partial = (struct etw_partial_manifest){
			.guid = record->guid, .pid = record->pid, .total = total};
		partial->xml.max_bytes = ETW_MANIFEST_MAX_BYTES;
	}
	if (has_room(s, n))
		buf_put(&partial->xml, p + PIECE_HEAD, n);
	if (!has_room(s, n) || partial->xml.failed) {
		s->counts.refused++;
		free_partial(s, partial);
		return;
	}
	s->nbytes += n;
	partial->next++;
	if (partial->next == partial->total)
		finish_partial(s, partial);
}

static bool is_piece(const struct etw_record *record)
{
	return record->header == ETW_MANIFEST && record->id == ETW_ID_MANIFEST && record->payload &&
	       record->payload_bytes > PIECE_HEAD && record->payload[0] == 1 &&
	       record->payload[3] == 0x5b;
}

/* ---- schemas --------------------------------------------------------------------------------- */

static uint64_t schema_hash(const struct etw_known_schema *schema)
{
	return guid_hash(&schema->guid, (uint64_t)schema->header << 32 |
						(uint64_t)schema->version << 16 | schema->key);
}

static bool same_schema(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_known_schema *a = &((const struct etw_manifest_store *)ctx)
						    ->schemas[value],
				      *b = key;

	return a->header == b->header && a->key == b->key && a->version == b->version &&
	       guid_same(&a->guid, &b->guid);
}

static void set_schema(struct etw_manifest_store *s, struct etw_known_schema *schema)
{
	uint64_t hash = schema_hash(schema);
	uint32_t found = table_find(&s->schemas_by_key, hash, same_schema, s, schema);

	if (!has_room(s, etw_manifest_bytes(schema->manifest))) {
		s->counts.refused++;
		etw_manifest_free(schema->manifest);
		return;
	}
	if (found != TABLE_NONE) {
		s->nbytes -= etw_manifest_bytes(s->schemas[found].manifest);
		etw_manifest_free(s->schemas[found].manifest);
		s->schemas[found] = *schema;
	} else if (s->nschemas == ETW_SCHEMAS_MAX ||
		   ARRAY_ROOM(s->schemas, s->schemas_room, s->nschemas + 1) ||
		   table_add(&s->schemas_by_key, hash, s->nschemas)) {
		s->counts.refused++;
		etw_manifest_free(schema->manifest);
		return;
	} else {
		s->schemas[s->nschemas++] = *schema;
	}
	s->nbytes += etw_manifest_bytes(schema->manifest);
}

static void learn_schema(struct etw_manifest_store *s, const struct etw_record *record)
{
	struct etw_known_schema schema = {.key = 0};
	int rc = etw_manifest_of_info(record->payload, record->payload_bytes, &s->names,
				      &schema.guid, &schema.header, &schema.manifest);

	if (rc) {
		s->counts.unreadable += rc == ERR_FORMAT;
		s->counts.refused += rc != ERR_FORMAT;
		return;
	}
	schema.key = schema.manifest->events[0].id;
	schema.version = schema.manifest->events[0].version;
	set_schema(s, &schema);
}

/* ---- public ---------------------------------------------------------------------------------- */

void etw_manifest_store_learn(struct etw_manifest_store *s, const struct etw_record *record)
{
	const struct etw_class *class;

	if (is_piece(record)) {
		learn_piece(s, record);
		return;
	}
	if (record->header != ETW_CLASSIC || record->opcode != 32 || !record->payload)
		return;
	class = etw_class_find(record);
	if (class && class->id == ETW_SCHEMA)
		learn_schema(s, record);
}

static const struct etw_manifest *manifest_of(const struct etw_manifest_store *s,
					      const struct etw_guid *guid, uint32_t pid)
{
	const struct etw_manifest_writer *writer = writer_of(s, guid, pid);

	if (!writer)
		writer = writer_of(s, guid, ETW_ID_UNKNOWN);
	return writer ? s->texts[writer->text].manifest : NULL;
}

const char *etw_manifest_store_provider(const struct etw_manifest_store *s,
					const struct etw_guid *guid, uint32_t pid)
{
	const struct etw_manifest *m = s->nwriters ? manifest_of(s, guid, pid) : NULL;

	return m && *m->provider ? m->provider : NULL;
}

const struct etw_manifest_event *etw_manifest_store_find(const struct etw_manifest_store *s,
							 const struct etw_record *record,
							 const char **provider)
{
	const struct etw_manifest *m = NULL;
	const struct etw_manifest_event *event = NULL;
	struct etw_known_schema key = {.guid = record->guid, .header = record->header,
				       .version = (uint8_t)record->version};
	uint32_t found;

	if (record->header == ETW_MANIFEST && s->nwriters) {
		m = manifest_of(s, &record->guid, record->pid);
		event = m ? etw_manifest_find(m, record->id, (uint8_t)record->version) : NULL;
	}
	if (!event && s->nschemas && record->header != ETW_MESSAGE) {
		key.key = record->header == ETW_CLASSIC ? record->opcode : record->id;
		found = table_find(&s->schemas_by_key, schema_hash(&key), same_schema, s, &key);
		if (found != TABLE_NONE) {
			m = s->schemas[found].manifest;
			event = &m->events[0];
		}
	}
	if (event && *m->provider)
		*provider = m->provider;
	return event;
}

int etw_manifest_store_init(struct etw_manifest_store *s)
{
	return etw_texts_init(&s->names);
}

void etw_manifest_store_free(struct etw_manifest_store *s)
{
	for (uint32_t i = 0; i < s->ntexts; i++) {
		etw_manifest_free(s->texts[i].manifest);
		free(s->texts[i].xml);
	}
	for (uint32_t i = 0; i < s->nschemas; i++)
		etw_manifest_free(s->schemas[i].manifest);
	for (uint32_t i = 0; i < ETW_PARTIAL_MANIFESTS_MAX; i++)
		buf_free(&s->partials[i].xml);
	etw_texts_free(&s->names);
	free(s->texts);
	free(s->writers);
	free(s->schemas);
	table_free(&s->texts_by_xml);
	table_free(&s->writers_by_pid);
	table_free(&s->schemas_by_key);
}
