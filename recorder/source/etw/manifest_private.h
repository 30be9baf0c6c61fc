/* Building a struct etw_manifest; for etw/manifest.c and etw/event_info.c. */
#ifndef SOURCE_ETW_MANIFEST_IMPL_H
#define SOURCE_ETW_MANIFEST_IMPL_H

#include "source/etw/manifest.h"

#include "base/buf.h"

/*
 * While building, texts are numbers: offset + 1 in `texts`, in place of their pointers, because the buffer
 * moves; 0 = none. Events name their first field instead of pointing at it.
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

/* Start and finish a text in `texts`; finish returns its number. */
size_t etw_builder_text_begin(struct etw_builder *b);
size_t etw_builder_text_end(struct etw_builder *b, size_t begun);

void etw_builder_field(struct etw_builder *b, const struct etw_schema_field *field, size_t name);
uint32_t etw_builder_nfields(const struct etw_builder *b);

/* The manifest, or ERR_MEMORY, or ERR_FORMAT without an event. Frees the builder in any case. */
int etw_builder_finish(struct etw_builder *b, struct etw_manifest **out);

/*
 * Append "Task/Opcode" as PerfView writes it: no opcode that is "win:Info", no "win:" before one, and
 * trailing blanks, which message tables leave, cut. Task empty: "EventID(n)".
 */
void etw_builder_event_name(struct buf *out, const char *task, const char *opcode, uint16_t id);

#endif
