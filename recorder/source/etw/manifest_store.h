/*
 * The store of manifests and schemas that a trace contains, for etw/decode.c. Manifests are found
 * by provider and process; a text that many processes write is kept once.
 */
#pragma once

#include "base/buf.h"
#include "base/table.h"
#include "source/etw/decode.h"
#include "source/etw/manifest.h"

#define ETW_ID_MANIFEST 65534u               /* the event whose payload is a piece of a manifest */

/* A manifest's text, kept to recognize it when another process writes it. */
struct etw_manifest_text {
	struct etw_guid guid;
	char *xml;
	size_t n;
	struct etw_manifest *manifest;
};

/*
 * Process `pid` wrote manifest `text`. The pid ETW_ID_UNKNOWN has the provider's latest manifest.
 */
struct etw_manifest_writer {
	struct etw_guid guid;
	uint32_t pid, text;
};

struct etw_known_schema {
	struct etw_guid guid;
	uint8_t header;
	uint16_t key;
	uint8_t version;
	struct etw_manifest *manifest;       /* one event */
};

/* A manifest with missing pieces. */
struct etw_partial_manifest {
	struct etw_guid guid;
	uint32_t pid;
	uint16_t total, next;
	struct buf xml;
};

struct etw_manifest_store {
	struct etw_manifest_text *texts;
	struct etw_manifest_writer *writers;
	struct etw_known_schema *schemas;
	uint32_t ntexts, nwriters, nschemas;
	uint32_t texts_room, writers_room, schemas_room;
	struct table texts_by_xml, writers_by_pid, schemas_by_key;
	struct etw_partial_manifest partials[ETW_PARTIAL_MANIFESTS_MAX];        /* total 0 = free */
	uint32_t oldest_partial;             /* to drop next */
	struct etw_texts names;              /* of all manifests */
	size_t nbytes;                       /* of manifests, texts and partials */
	struct etw_learned counts;
};

int etw_manifest_store_init(struct etw_manifest_store *s);       /* 0 or ERR_MEMORY */
void etw_manifest_store_free(struct etw_manifest_store *s);
void etw_manifest_store_learn(struct etw_manifest_store *s, const struct etw_record *record);

/* The description of a record, and its provider's name; NULL = unknown. */
const struct etw_manifest_event *etw_manifest_store_find(const struct etw_manifest_store *s,
							 const struct etw_record *record,
							 const char **provider);

/* The provider's name, for events that its manifest does not list; NULL = unknown. */
const char *etw_manifest_store_provider(const struct etw_manifest_store *s,
					const struct etw_guid *guid, uint32_t pid);
