/*
 * The tags of a small XML text, one after the other; nothing else of XML.
 *
 * Made for EventSource manifests (etw/manifest.h), which have their data in attributes. No nesting is
 * checked, no entity is declared, text between tags is passed over; comments, <?...?> and <!...> too.
 * Nothing is copied and nothing recurses; an unfinished tag ends the text.
 */
#ifndef SOURCE_ETW_XML_H
#define SOURCE_ETW_XML_H

#include "base/buf.h"

#define ETW_XML_ATTRIBUTES 16u               /* of one tag; more are not seen */

struct etw_slice {
	const char *at;
	size_t n;
};

struct etw_xml {
	const char *at, *end;
};

struct etw_xml_tag {
	struct etw_slice name;
	bool closing;                        /* </name> */
	bool empty;                          /* <name/> */
	uint32_t nattributes;
	struct etw_slice names[ETW_XML_ATTRIBUTES], values[ETW_XML_ATTRIBUTES];
};

/* The next tag; false at the end. */
bool etw_xml_next(struct etw_xml *xml, struct etw_xml_tag *tag);

/* The value of an attribute as it stands; n 0 when the tag has none of this name. */
struct etw_slice etw_xml_attribute(const struct etw_xml_tag *tag, const char *name);

bool etw_slice_is(struct etw_slice s, const char *text);

/* Append a value with &lt; &gt; &amp; &quot; &apos; &#N; &#xN; resolved and control characters made blanks. */
void etw_xml_put(struct buf *out, struct etw_slice value);

#endif
