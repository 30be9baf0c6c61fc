/*
 * A piece of a manifest (id 65534): u8 format 1, u8 major, u8 minor, u8 0x5b, u16 number of pieces,
 * u16 index of this piece, then bytes of UTF-8 XML. A process writes the pieces in order.
 */
#include "source/etw/manifest_store.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_HEAD 8u

/* A manifest's text, kept to recognize it when another process writes it. */
struct text {
	struct etw_guid guid;
	char *xml;
	size_t n;
	struct etw_manifest *manifest;
};

/*
 * The manifest that a process of a provider wrote: the key is its pid, or ETW_ID_UNKNOWN for the
 * provider's latest manifest. Or the schema of a kind of records, which the description owns: the
 * key is schema_key().
 */
struct description {
	struct etw_guid guid;
	uint64_t key;
	struct etw_manifest *manifest;
};

#define SCHEMA ((uint64_t)1 << 63)

static uint64_t schema_key(uint8_t header, uint16_t id, uint8_t version)
{
	return SCHEMA | (uint64_t)header << 32 | (uint64_t)version << 16 | id;
}

static struct text *text_at(const struct etw_manifest_store *s, uint32_t number)
{
	return slots_get(&s->texts, number);
}

static struct description *description_at(const struct etw_manifest_store *s, uint32_t number)
{
	return slots_get(&s->descriptions, number);
}

static bool has_room(struct etw_manifest_store *s, size_t n)
{
	return s->nbytes + s->names.nbytes + n <= ETW_LEARNED_MAX_BYTES;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static bool same_description(const void *ctx, uint32_t value, const void *key)
{
	const struct description *a = description_at(ctx, value), *b = key;

	return a->key == b->key && guid_same(&a->guid, &b->guid);
}

static uint64_t description_hash(const struct etw_guid *guid, uint64_t key)
{
	return hash_pair(hash_bytes(guid->bytes, sizeof(guid->bytes)), key);
}

static const struct etw_manifest *find_description(const struct etw_manifest_store *s,
						   const struct etw_guid *guid, uint64_t key)
{
	struct description wanted = {.guid = *guid, .key = key};
	uint32_t number = table_find(&s->descriptions_by_key, description_hash(guid, key),
				     same_description, s, &wanted);

	return number == TABLE_NONE ? NULL : description_at(s, number)->manifest;
}

static void free_schema(struct etw_manifest_store *s, struct etw_manifest *schema)
{
	s->nbytes -= etw_manifest_bytes(schema);
	etw_manifest_free(schema);
}

/* Add or replace a description. A schema has been counted in nbytes, and is freed if refused. */
static void set_description(struct etw_manifest_store *s, const struct etw_guid *guid, uint64_t key,
			    struct etw_manifest *manifest)
{
	struct description added = {.guid = *guid, .key = key, .manifest = manifest};
	uint64_t hash = description_hash(guid, key);
	uint32_t number = table_find(&s->descriptions_by_key, hash, same_description, s, &added);

	if (number != TABLE_NONE && key & SCHEMA)
		free_schema(s, description_at(s, number)->manifest);
	else if (number == TABLE_NONE)
		number = table_add_slot(&s->descriptions_by_key, hash, &s->descriptions,
					SLOTS_NONE);
	if (number != SLOTS_NONE) {
		*description_at(s, number) = added;
		return;
	}
	s->counts.refused++;
	if (key & SCHEMA)
		free_schema(s, manifest);
}

/* ---- manifests ------------------------------------------------------------------------------- */

static bool same_text(const void *ctx, uint32_t value, const void *key)
{
	const struct text *a = text_at(ctx, value), *b = key;

	return a->n == b->n && guid_same(&a->guid, &b->guid) && memcmp(a->xml, b->xml, a->n) == 0;
}

/* Parse and keep a new text; always takes key->xml. Returns its manifest, or NULL. */
static struct etw_manifest *add_text(struct etw_manifest_store *s, struct text *key, uint64_t hash)
{
	int rc = etw_manifest_parse(key->xml, key->n, &s->names, &key->manifest);
	size_t nbytes = rc ? 0 : key->n + etw_manifest_bytes(key->manifest);
	uint32_t number = SLOTS_NONE;

	if (!rc && has_room(s, nbytes))
		number = table_add_slot(&s->texts_by_xml, hash, &s->texts, SLOTS_NONE);
	if (number == SLOTS_NONE) {
		s->counts.unreadable += rc == ERR_FORMAT;
		s->counts.refused += rc != ERR_FORMAT;
		etw_manifest_free(key->manifest);
		free(key->xml);
		return NULL;
	}
	s->counts.refused += key->manifest->cut;
	s->nbytes += nbytes;
	*text_at(s, number) = *key;
	return key->manifest;
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
	struct text key = {
		.guid = partial->guid, .xml = partial->xml.data, .n = partial->xml.len};
	uint64_t hash = hash_bytes(key.xml, key.n);
	uint32_t number = table_find(&s->texts_by_xml, hash, same_text, s, &key);
	struct etw_manifest *manifest;

	if (number != TABLE_NONE) {
		manifest = text_at(s, number)->manifest;
	} else {
		s->nbytes -= key.n;
		partial->xml = (struct buf){.data = NULL};
		manifest = add_text(s, &key, hash);
	}
	if (manifest) {
		set_description(s, &key.guid, partial->pid, manifest);
		set_description(s, &key.guid, ETW_ID_UNKNOWN, manifest);
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

static void learn_schema(struct etw_manifest_store *s, const struct etw_record *record)
{
	struct etw_manifest *schema = NULL;
	const struct etw_manifest_event *event;
	struct etw_guid guid;
	uint8_t header;
	int rc = etw_manifest_of_info(record->payload, record->payload_bytes, &s->names, &guid,
				      &header, &schema);

	if (rc || !has_room(s, etw_manifest_bytes(schema))) {
		s->counts.unreadable += rc == ERR_FORMAT;
		s->counts.refused += rc != ERR_FORMAT;
		etw_manifest_free(schema);
		return;
	}
	event = &schema->events[0];
	s->nbytes += etw_manifest_bytes(schema);
	set_description(s, &guid, schema_key(header, event->id, event->version), schema);
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
	const struct etw_manifest *own = find_description(s, guid, pid);

	return own ? own : find_description(s, guid, ETW_ID_UNKNOWN);
}

const char *etw_manifest_store_provider(const struct etw_manifest_store *s,
					const struct etw_guid *guid, uint32_t pid)
{
	const struct etw_manifest *m = manifest_of(s, guid, pid);

	return m && *m->provider ? m->provider : NULL;
}

const struct etw_manifest_event *etw_manifest_store_find(const struct etw_manifest_store *s,
							 const struct etw_record *record,
							 const char **provider)
{
	const struct etw_manifest *m = NULL;
	const struct etw_manifest_event *event = NULL;
	uint8_t version = (uint8_t)record->version;

	if (record->header == ETW_MANIFEST) {
		m = manifest_of(s, &record->guid, record->pid);
		event = m ? etw_manifest_find(m, record->id, version) : NULL;
	}
	if (!event && record->header != ETW_MESSAGE) {
		m = find_description(s, &record->guid,
				     schema_key(record->header, record->header == ETW_CLASSIC
									? record->opcode
									: record->id, version));
		event = m ? &m->events[0] : NULL;
	}
	if (event && *m->provider)
		*provider = m->provider;
	return event;
}

/* ---- life ------------------------------------------------------------------------------------ */

int etw_manifest_store_init(struct etw_manifest_store *s)
{
	if (etw_texts_init(&s->names) ||
	    slots_init(&s->texts, sizeof(struct text), ETW_MANIFESTS_MAX) ||
	    slots_init(&s->descriptions, sizeof(struct description), ETW_DESCRIPTIONS_MAX))
		return ERR_MEMORY;
	return 0;
}

void etw_manifest_store_free(struct etw_manifest_store *s)
{
	uint32_t i;

	for (i = 0; i < s->texts.used; i++) {
		etw_manifest_free(text_at(s, i)->manifest);
		free(text_at(s, i)->xml);
	}
	for (i = 0; i < s->descriptions.used; i++)
		if (description_at(s, i)->key & SCHEMA)
			etw_manifest_free(description_at(s, i)->manifest);
	for (i = 0; i < ETW_PARTIAL_MANIFESTS_MAX; i++)
		buf_free(&s->partials[i].xml);
	etw_texts_free(&s->names);
	slots_free(&s->texts);
	slots_free(&s->descriptions);
	table_free(&s->texts_by_xml);
	table_free(&s->descriptions_by_key);
}

size_t etw_manifest_store_bytes(const struct etw_manifest_store *s)
{
	return s->nbytes + etw_texts_bytes(&s->names) + slots_bytes(&s->texts) +
	       slots_bytes(&s->descriptions) + table_bytes(&s->texts_by_xml) +
	       table_bytes(&s->descriptions_by_key);
}
