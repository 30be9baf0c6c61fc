/* Builds a struct etw_manifest, for manifest.c and event_info.c. */
#pragma once

#include "source/etw/manifest.h"

#include "base/buf.h"

/*
 * While a manifest is built its buffers move, so there are no pointers yet: a text is its offset
 * + 1 in `texts` (0 = none), and an event has the index of its first field.
 */
struct etw_builder {
	struct buf events;                   /* of struct etw_built_event */
	struct buf fields;                   /* of struct etw_schema_field */
	struct buf field_names;              /* of size_t, one per field */
	struct buf texts;
	size_t provider;
};

struct etw_built_event {
	uint16_t id;
	uint8_t version;
	size_t name;
	uint32_t field, nfields;
};

/* Begin and end a text in `texts`; the end returns its number. */
size_t etw_builder_text_begin(struct etw_builder *b);
size_t etw_builder_text_end(struct etw_builder *b, size_t begun);

void etw_builder_field(struct etw_builder *b, const struct etw_schema_field *field, size_t name);
uint32_t etw_builder_nfields(const struct etw_builder *b);

/* Make the manifest; ERR_FORMAT without an event, or ERR_MEMORY. Always frees the builder. */
int etw_builder_finish(struct etw_builder *b, struct etw_manifest **out);

/*
 * Append "Task/Opcode" as PerfView writes it: without the opcode "win:Info", without the prefix
 * "win:", and without the trailing blanks of message tables. An empty task: "EventID(n)".
 */
void etw_builder_event_name(struct buf *out, const char *task, const char *opcode, uint16_t id);
