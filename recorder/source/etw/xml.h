/*
 * Reads the tags of a small XML text one by one; nothing else of XML.
 *
 * Made for EventSource manifests (etw/manifest.h), which have their data in attributes. Nesting
 * is not checked, entities cannot be declared; text between tags, comments, <?...?> and <!...>
 * are skipped. Nothing is copied and nothing recurses. An unfinished tag ends the text.
 */
#pragma once

#include "base/buf.h"

#define ETW_XML_ATTRIBUTES 16u               /* of one tag; more are ignored */

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

/* The raw value of an attribute; n 0 if the tag has no such attribute. */
struct etw_slice etw_xml_attribute(const struct etw_xml_tag *tag, const char *name);

bool etw_slice_is(struct etw_slice s, const char *text);

/* Append a value with its entities resolved (five names, &#N;, &#xN;), safe to print. */
void etw_xml_put(struct buf *out, struct etw_slice value);
