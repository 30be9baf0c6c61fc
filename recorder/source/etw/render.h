/*
 * Converts ETW values to event fields: numbers stay numbers, everything else becomes UTF-8 text.
 *
 * Texts and composed names live in a fixed arena that the next event overwrites. A text that does
 * not fit is cut, and `cut` is set. Control characters become blanks, because texts go to
 * terminals.
 */
#pragma once

#include "model/event.h"
#include "source/etw/class.h"

#define ETW_RENDER_BYTES ((size_t)EVENT_MAX_FIELDS * (EVENT_MAX_TEXT + 256))

struct etw_render {
	struct event_field *fields;          /* room for EVENT_MAX_FIELDS */
	uint32_t nfields;
	uint64_t hex;                        /* bit i: show field i in hex (address, flags) */
	bool cut;                            /* a field or the end of a text is missing */
	char *text;                          /* the arena, ETW_RENDER_BYTES */
	size_t used, begin, limit;           /* begin and limit of the text being composed */
};

/* Add a field unless its value is absent. The name must live as long as the fields. */
void etw_render_field(struct etw_render *r, const char *name, const struct etw_field *field,
		      const struct etw_value *value, uint32_t pointer_bytes);

/*
 * Compose a text of at most EVENT_MAX_TEXT - 1 bytes: begin, any number of parts, end. The end
 * returns it NUL-terminated, or "" when the arena is full.
 */
void etw_render_begin(struct etw_render *r);
void etw_render_puts(struct etw_render *r, const char *text);
void etw_render_utf8(struct etw_render *r, const uint8_t *text, size_t nbytes);   /* made safe */
void etw_render_utf16(struct etw_render *r, const uint8_t *text, size_t nbytes);
void etw_render_value(struct etw_render *r, const struct etw_field *field,
		      const struct etw_value *value, uint32_t pointer_bytes);
const char *etw_render_end(struct etw_render *r);

/* Add a field whose text was composed. */
void etw_render_composed(struct etw_render *r, const char *name, const char *text);

/* "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c" */
#define ETW_GUID_TEXT 37
void etw_guid_text(const uint8_t guid[16], char out[ETW_GUID_TEXT]);
