/* What a trace says about its own events: manifests by provider and process, schemas; for etw/decode.c. */
#ifndef SOURCE_ETW_LEARN_H
#define SOURCE_ETW_LEARN_H

#include "base/buf.h"
#include "base/table.h"
#include "source/etw/decode.h"
#include "source/etw/manifest.h"

#define ETW_ID_MANIFEST 65534u               /* the event whose payload is a piece of a manifest */

/* A manifest's text, kept to know it again from another process. */
struct etw_text {
	struct etw_guid guid;
	char *xml;
	size_t n;
	struct etw_manifest *manifest;
};

/* Process `pid` wrote manifest `text`; the pid ETW_ID_UNKNOWN stands for the latest of the provider. */
struct etw_speaker {
	struct etw_guid guid;
	uint32_t pid, text;
};

struct etw_info {
	struct etw_guid guid;
	uint8_t header;
	uint16_t key;
	uint8_t version;
	struct etw_manifest *manifest;       /* one event */
};

/* A manifest of which some pieces have come. */
struct etw_part {
	struct etw_guid guid;
	uint32_t pid;
	uint16_t total, next;
	struct buf xml;
};

struct etw_learn {
	struct etw_text *texts;
	struct etw_speaker *speakers;
	struct etw_info *infos;
	uint32_t ntexts, nspeakers, ninfos;
	uint32_t texts_room, speakers_room, infos_room;
	struct table texts_by_xml, speakers_by_pid, infos_by_key;
	struct etw_part parts[ETW_PARTS_MAX];        /* total 0: free */
	uint32_t oldest_part;                /* which to give up next */
	size_t nbytes;                       /* of manifests, texts and parts */
	struct etw_learned counts;
};

void etw_learn_free(struct etw_learn *learn);
void etw_learn_record(struct etw_learn *learn, const struct etw_record *record);

/* The event of this record, and its provider's name; NULL when nothing was learned about it. */
const struct etw_manifest_event *etw_learn_find(const struct etw_learn *learn, const struct etw_record *record,
						const char **provider);

/* The provider's name by its manifest, for events that the manifest does not list; NULL = unknown. */
const char *etw_learn_provider(const struct etw_learn *learn, const struct etw_guid *guid, uint32_t pid);

#endif
