#include "source/etw/xml.h"

#include "base/text.h"
#include "base/utf8.h"

#include <string.h>

#define VALUE_BYTES 1024u                    /* of one value, resolved */

bool etw_slice_is(struct etw_slice s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(struct etw_xml *xml)
{
	while (xml->at < xml->end && is_blank(*xml->at))
		xml->at++;
}

static struct etw_slice read_word(struct etw_xml *xml)
{
	struct etw_slice s = {xml->at, 0};

	while (xml->at < xml->end && !is_blank(*xml->at) && !strchr("=/><\"'", *xml->at))
		xml->at++;
	s.n = (size_t)(xml->at - s.at);
	return s;
}

/* Move behind the next `what`, or to the end. */
static void skip_to(struct etw_xml *xml, const char *what)
{
	size_t n = strlen(what);

	while ((size_t)(xml->end - xml->at) >= n) {
		const char *hit = memchr(xml->at, what[0], (size_t)(xml->end - xml->at) - n + 1);

		if (!hit)
			break;
		xml->at = hit + 1;
		if (memcmp(hit, what, n) == 0) {
			xml->at = hit + n;
			return;
		}
	}
	xml->at = xml->end;
}

/* name="value" or name='value'; false = no attribute. */
static bool read_attribute(struct etw_xml *xml, struct etw_slice *name, struct etw_slice *value)
{
	const char *close;

	*name = read_word(xml);
	skip_blanks(xml);
	if (!name->n || xml->at == xml->end || *xml->at != '=')
		return false;
	xml->at++;
	skip_blanks(xml);
	if (xml->at == xml->end || (*xml->at != '"' && *xml->at != '\''))
		return false;
	close = memchr(xml->at + 1, *xml->at, (size_t)(xml->end - xml->at) - 1);
	if (!close)
		return false;
	*value = (struct etw_slice){xml->at + 1, (size_t)(close - xml->at) - 1};
	xml->at = close + 1;
	return true;
}

/* Read a tag from behind its '<'. */
static bool read_tag(struct etw_xml *xml, struct etw_xml_tag *tag)
{
	struct etw_slice name, value;

	*tag = (struct etw_xml_tag){.nattributes = 0};
	tag->closing = xml->at < xml->end && *xml->at == '/';
	xml->at += tag->closing;
	tag->name = read_word(xml);
	for (;;) {
		skip_blanks(xml);
		if (xml->at == xml->end)
			return false;
		if (*xml->at == '>') {
			xml->at++;
			return true;
		}
		if (*xml->at == '/') {
			tag->empty = true;
			xml->at++;
			continue;
		}
		if (!read_attribute(xml, &name, &value)) {
			skip_to(xml, ">");
			return true;
		}
		if (tag->nattributes < ETW_XML_ATTRIBUTES) {
			tag->names[tag->nattributes] = name;
			tag->values[tag->nattributes++] = value;
		}
	}
}

bool etw_xml_next(struct etw_xml *xml, struct etw_xml_tag *tag)
{
	while (xml->at < xml->end) {
		skip_to(xml, "<");
		if (xml->end - xml->at >= 3 && memcmp(xml->at, "!--", 3) == 0)
			skip_to(xml, "-->");
		else if (xml->at < xml->end && (*xml->at == '?' || *xml->at == '!'))
			skip_to(xml, ">");
		else if (xml->at < xml->end)
			return read_tag(xml, tag);
	}
	return false;
}

struct etw_slice etw_xml_attribute(const struct etw_xml_tag *tag, const char *name)
{
	for (uint32_t i = 0; i < tag->nattributes; i++)
		if (etw_slice_is(tag->names[i], name))
			return tag->values[i];
	return (struct etw_slice){"", 0};
}

/* &#N; and &#xN; below 128; others become '?': no name of a manifest needs them. */
static char numeric_entity(struct etw_slice s)
{
	unsigned base = s.n > 2 && (s.at[2] == 'x' || s.at[2] == 'X') ? 16 : 10, v = 0;

	for (size_t i = base == 16 ? 3 : 2; i + 1 < s.n; i++) {
		unsigned digit = (unsigned)hex_digit(s.at[i]);  /* -1: greater than any base */

		if (digit >= base || v > 127)
			return '?';
		v = v * base + digit;
	}
	return v > 0 && v < 128 ? (char)v : '?';
}

static char resolve_entity(struct etw_slice s)
{
	if (s.n > 2 && s.at[1] == '#')
		return numeric_entity(s);
	return etw_slice_is(s, "&lt;")	   ? '<'
	       : etw_slice_is(s, "&gt;")   ? '>'
	       : etw_slice_is(s, "&amp;")  ? '&'
	       : etw_slice_is(s, "&quot;") ? '"'
	       : etw_slice_is(s, "&apos;") ? '\''
					   : '?';
}

void etw_xml_put(struct buf *out, struct etw_slice value)
{
	char text[VALUE_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < value.n && n < sizeof(text); i++) {
		size_t rest = value.n - i;
		const char *end = value.at[i] == '&'
					  ? memchr(value.at + i, ';', rest < 12 ? rest : 12)
					  : NULL;

		text[n++] = end ? resolve_entity((struct etw_slice){value.at + i,
							    (size_t)(end - value.at) - i + 1})
				: value.at[i];
		if (end)
			i = (size_t)(end - value.at);
	}
	utf8_put_clean(out, text, n, VALUE_BYTES);
}
