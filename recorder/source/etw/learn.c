/*
 * Manifests and schemas, learned from records.
 *
 * A piece of a manifest (id 65534): u8 format 1, u8 major, u8 minor, u8 0x5b, u16 pieces in all, u16 number
 * of this one, then bytes of UTF-8 XML. A process writes the pieces in order.
 */
#include "source/etw/learn.h"

#include "base/array.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_HEAD 8u

static uint64_t guid_hash(const struct etw_guid *guid, uint64_t more)
{
	return hash_pair(hash_bytes(guid->bytes, sizeof(guid->bytes)), more);
}

static bool has_room(struct etw_learn *l, size_t n)
{
	return l->nbytes + n <= ETW_LEARNED_MAX_BYTES;
}

/* ---- who wrote which manifest ------------------------------------------------------------------- */

static bool speaker_same(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_speaker *a = &((const struct etw_learn *)ctx)->speakers[value], *b = key;

	return a->pid == b->pid && guid_same(&a->guid, &b->guid);
}

static const struct etw_speaker *speaker_of(const struct etw_learn *l, const struct etw_guid *guid, uint32_t pid)
{
	struct etw_speaker key = {.guid = *guid, .pid = pid};
	uint32_t found = table_find(&l->speakers_by_pid, guid_hash(guid, pid), speaker_same, l, &key);

	return found == TABLE_NONE ? NULL : &l->speakers[found];
}

static void set_speaker(struct etw_learn *l, const struct etw_guid *guid, uint32_t pid, uint32_t text)
{
	struct etw_speaker key = {.guid = *guid, .pid = pid, .text = text};
	uint64_t hash = guid_hash(guid, pid);
	uint32_t found = table_find(&l->speakers_by_pid, hash, speaker_same, l, &key);

	if (found != TABLE_NONE) {
		l->speakers[found].text = text;
		return;
	}
	if (l->nspeakers == ETW_SPEAKERS_MAX ||
	    ARRAY_ROOM(l->speakers, l->speakers_room, l->nspeakers + 1) ||
	    table_add(&l->speakers_by_pid, hash, l->nspeakers)) {
		l->counts.refused++;
		return;
	}
	l->speakers[l->nspeakers++] = key;
}

/* ---- manifests ---------------------------------------------------------------------------------- */

static bool text_same(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_text *a = &((const struct etw_learn *)ctx)->texts[value], *b = key;

	return a->n == b->n && guid_same(&a->guid, &b->guid) && memcmp(a->xml, b->xml, a->n) == 0;
}

/* Parse and keep a new text; takes key->xml in any case. Returns its number or TABLE_NONE. */
static uint32_t add_text(struct etw_learn *l, struct etw_text *key, uint64_t hash)
{
	int rc = etw_manifest_parse(key->xml, key->n, &key->manifest);

	if (rc == ERR_FORMAT)
		l->counts.unreadable++;
	if (rc || l->ntexts == ETW_MANIFESTS_MAX || !has_room(l, key->n + key->manifest->nbytes) ||
	    ARRAY_ROOM(l->texts, l->texts_room, l->ntexts + 1) ||
	    table_add(&l->texts_by_xml, hash, l->ntexts)) {
		l->counts.refused += rc != ERR_FORMAT;
		if (!rc)
			etw_manifest_free(key->manifest);
		free(key->xml);
		return TABLE_NONE;
	}
	l->nbytes += key->n + key->manifest->nbytes;
	l->texts[l->ntexts] = *key;
	return l->ntexts++;
}

static void free_part(struct etw_learn *l, struct etw_part *part)
{
	l->nbytes -= part->xml.len;
	buf_free(&part->xml);
	*part = (struct etw_part){.total = 0};
}

/* All pieces are here. */
static void finish_part(struct etw_learn *l, struct etw_part *part)
{
	struct etw_text key = {.guid = part->guid, .xml = part->xml.data, .n = part->xml.len};
	uint64_t hash = hash_bytes(key.xml, key.n);
	uint32_t text = table_find(&l->texts_by_xml, hash, text_same, l, &key), pid = part->pid;

	if (text == TABLE_NONE) {
		l->nbytes -= key.n;
		part->xml = (struct buf){.data = NULL};
		text = add_text(l, &key, hash);
	}
	if (text != TABLE_NONE) {
		set_speaker(l, &key.guid, pid, text);
		set_speaker(l, &key.guid, ETW_ID_UNKNOWN, text);
	}
	free_part(l, part);
}

static struct etw_part *part_of(struct etw_learn *l, const struct etw_record *record)
{
	for (uint32_t i = 0; i < ETW_PARTS_MAX; i++)
		if (l->parts[i].total && l->parts[i].pid == record->pid && guid_same(&l->parts[i].guid, &record->guid))
			return &l->parts[i];
	return NULL;
}

/* A free place; when none is, the one that was taken longest ago is given up. */
static struct etw_part *new_part(struct etw_learn *l)
{
	struct etw_part *part;

	for (uint32_t i = 0; i < ETW_PARTS_MAX; i++)
		if (!l->parts[i].total)
			return &l->parts[i];
	part = &l->parts[l->oldest_part++ % ETW_PARTS_MAX];
	l->counts.torn++;
	free_part(l, part);
	return part;
}

static void learn_piece(struct etw_learn *l, const struct etw_record *record)
{
	const uint8_t *p = record->payload;
	uint32_t n = record->payload_bytes - PIECE_HEAD;
	uint16_t total = (uint16_t)(p[4] | p[5] << 8), number = (uint16_t)(p[6] | p[7] << 8);
	struct etw_part *part = part_of(l, record);

	if (part && (part->total != total || part->next != number)) {
		l->counts.torn++;
		free_part(l, part);
		part = NULL;
	}
	if (!part) {
		if (number != 0 || !total) {
			l->counts.torn++;
			return;
		}
		part = new_part(l);
		*part = (struct etw_part){.guid = record->guid, .pid = record->pid, .total = total};
		part->xml.max_bytes = ETW_MANIFEST_MAX_BYTES;
	}
	if (has_room(l, n))
		buf_put(&part->xml, p + PIECE_HEAD, n);
	if (!has_room(l, n) || part->xml.failed) {
		l->counts.refused++;
		free_part(l, part);
		return;
	}
	l->nbytes += n;
	part->next++;
	if (part->next == part->total)
		finish_part(l, part);
}

static bool is_piece(const struct etw_record *record)
{
	return record->header == ETW_MANIFEST && record->id == ETW_ID_MANIFEST && record->payload &&
	       record->payload_bytes > PIECE_HEAD && record->payload[0] == 1 && record->payload[3] == 0x5b;
}

/* ---- schemas ------------------------------------------------------------------------------------ */

static uint64_t info_hash(const struct etw_info *info)
{
	return guid_hash(&info->guid, (uint64_t)info->header << 32 | (uint64_t)info->version << 16 | info->key);
}

static bool info_same(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_info *a = &((const struct etw_learn *)ctx)->infos[value], *b = key;

	return a->header == b->header && a->key == b->key && a->version == b->version &&
	       guid_same(&a->guid, &b->guid);
}

static void set_info(struct etw_learn *l, struct etw_info *info)
{
	uint64_t hash = info_hash(info);
	uint32_t found = table_find(&l->infos_by_key, hash, info_same, l, info);

	if (!has_room(l, info->manifest->nbytes)) {
		l->counts.refused++;
		etw_manifest_free(info->manifest);
		return;
	}
	if (found != TABLE_NONE) {
		l->nbytes -= l->infos[found].manifest->nbytes;
		etw_manifest_free(l->infos[found].manifest);
		l->infos[found] = *info;
	} else if (l->ninfos == ETW_SCHEMAS_MAX ||
		   ARRAY_ROOM(l->infos, l->infos_room, l->ninfos + 1) ||
		   table_add(&l->infos_by_key, hash, l->ninfos)) {
		l->counts.refused++;
		etw_manifest_free(info->manifest);
		return;
	} else {
		l->infos[l->ninfos++] = *info;
	}
	l->nbytes += info->manifest->nbytes;
}

static void learn_schema(struct etw_learn *l, const struct etw_record *record)
{
	struct etw_info info = {.key = 0};
	int rc = etw_manifest_of_info(record->payload, record->payload_bytes, &info.guid, &info.header,
				      &info.manifest);

	if (rc) {
		l->counts.unreadable += rc == ERR_FORMAT;
		l->counts.refused += rc != ERR_FORMAT;
		return;
	}
	info.key = info.manifest->events[0].id;
	info.version = info.manifest->events[0].version;
	set_info(l, &info);
}

/* ---- the outside -------------------------------------------------------------------------------- */

void etw_learn_record(struct etw_learn *l, const struct etw_record *record)
{
	const struct etw_class *class;

	if (is_piece(record)) {
		learn_piece(l, record);
		return;
	}
	if (record->header != ETW_CLASSIC || record->opcode != 32 || !record->payload)
		return;
	class = etw_class_find(record);
	if (class && class->id == ETW_SCHEMA)
		learn_schema(l, record);
}

static const struct etw_manifest *manifest_of(const struct etw_learn *l, const struct etw_guid *guid,
					      uint32_t pid)
{
	const struct etw_speaker *speaker = speaker_of(l, guid, pid);

	if (!speaker)
		speaker = speaker_of(l, guid, ETW_ID_UNKNOWN);
	return speaker ? l->texts[speaker->text].manifest : NULL;
}

const char *etw_learn_provider(const struct etw_learn *l, const struct etw_guid *guid, uint32_t pid)
{
	const struct etw_manifest *m = l->nspeakers ? manifest_of(l, guid, pid) : NULL;

	return m && *m->provider ? m->provider : NULL;
}

const struct etw_manifest_event *etw_learn_find(const struct etw_learn *l, const struct etw_record *record,
						const char **provider)
{
	const struct etw_manifest *m = NULL;
	const struct etw_manifest_event *event = NULL;
	struct etw_info key = {.guid = record->guid, .header = record->header, .version = (uint8_t)record->version};
	uint32_t found;

	if (record->header == ETW_MANIFEST && l->nspeakers) {
		m = manifest_of(l, &record->guid, record->pid);
		event = m ? etw_manifest_find(m, record->id, (uint8_t)record->version) : NULL;
	}
	if (!event && l->ninfos && record->header != ETW_MESSAGE) {
		key.key = record->header == ETW_CLASSIC ? record->opcode : record->id;
		found = table_find(&l->infos_by_key, info_hash(&key), info_same, l, &key);
		if (found != TABLE_NONE) {
			m = l->infos[found].manifest;
			event = &m->events[0];
		}
	}
	if (event && *m->provider)
		*provider = m->provider;
	return event;
}

void etw_learn_free(struct etw_learn *l)
{
	for (uint32_t i = 0; i < l->ntexts; i++) {
		etw_manifest_free(l->texts[i].manifest);
		free(l->texts[i].xml);
	}
	for (uint32_t i = 0; i < l->ninfos; i++)
		etw_manifest_free(l->infos[i].manifest);
	for (uint32_t i = 0; i < ETW_PARTS_MAX; i++)
		buf_free(&l->parts[i].xml);
	free(l->texts);
	free(l->speakers);
	free(l->infos);
	table_free(&l->texts_by_xml);
	table_free(&l->speakers_by_pid);
	table_free(&l->infos_by_key);
}
