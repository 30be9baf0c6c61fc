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

#define ETW_LEARNED_MAX_BYTES ((size_t)32 << 20)     /* manifests and schemas, also partial ones */
#define ETW_MANIFESTS_MAX 4096u                      /* different texts */
#define ETW_DESCRIPTIONS_MAX (1u << 17)              /* schemas; pairs of provider and process */
#define ETW_PARTIAL_MANIFESTS_MAX 64u                /* with missing pieces */

/* A manifest with missing pieces. */
struct etw_partial_manifest {
	struct etw_guid guid;
	uint32_t pid;
	uint16_t total, next;
	struct buf xml;
};

struct etw_manifest_store {
	struct slots texts;                  /* of manifests */
	struct slots descriptions;           /* which manifest or schema describes what */
	struct table texts_by_xml, descriptions_by_key;
	struct etw_partial_manifest partials[ETW_PARTIAL_MANIFESTS_MAX];        /* total 0 = free */
	uint32_t oldest_partial;             /* to drop next */
	struct etw_texts names;              /* of all manifests */
	size_t nbytes;                       /* of manifests, texts and partials */
	struct etw_learned counts;           /* without nbytes */
};

int etw_manifest_store_init(struct etw_manifest_store *s);       /* 0 or ERR_MEMORY */
void etw_manifest_store_free(struct etw_manifest_store *s);
size_t etw_manifest_store_bytes(const struct etw_manifest_store *s);     /* all memory */
void etw_manifest_store_learn(struct etw_manifest_store *s, const struct etw_record *record);

/* The description of a record, and its provider's name; NULL = unknown. */
const struct etw_manifest_event *etw_manifest_store_find(const struct etw_manifest_store *s,
							 const struct etw_record *record,
							 const char **provider);

/* The provider's name, for events that its manifest does not list; NULL = unknown. */
const char *etw_manifest_store_provider(const struct etw_manifest_store *s,
					const struct etw_guid *guid, uint32_t pid);
