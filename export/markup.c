#include "export/markup.h"

#include "base/array.h"
#include "base/utf8.h"

#include <string.h>

static const char *entity(char c, bool quotes)
{
	switch (c) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return quotes ? "&quot;" : NULL;
	case '\'': return quotes ? "&#39;" : NULL;
	default: return NULL;
	}
}

/* U+FFFE and U+FFFF are valid UTF-8, but no characters of XML 1.0 (section 2.2 there). */
static bool is_noncharacter(const char *text, const char *end)
{
	return end - text >= 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 ||
				   memcmp(text, "\xef\xbf\xbf", 3) == 0);
}

static void put_escaped(struct buf *out, const char *text, size_t n, bool quotes)
{
	const char *end = text + n, *plain = text;

	while (text < end) {
		bool no_character = is_noncharacter(text, end);
		const char *with = no_character ? "\xef\xbf\xbd" : entity(*text, quotes);
		size_t len = no_character ? 3 : (unsigned char)*text < 0x80 ? 1
									    : utf8_char(text, end);
		uint32_t unseen = utf8_unseen(text, len);

		len += !len;
		if (with || unseen)
			buf_put(out, plain, (size_t)(text - plain));
		if (with)
			buf_puts(out, with);
		else if (unseen)
			utf8_put_unseen(out, unseen);
		text += len;
		if (with || unseen)
			plain = text;
	}
	buf_put(out, plain, (size_t)(end - plain));
}

void markup_put(struct buf *out, const char *text, size_t n)
{
	put_escaped(out, text, n, true);
}

void markup_put_text(struct buf *out, const char *text, size_t n)
{
	put_escaped(out, text, n, false);
}

const char *markup_unit(const struct incident *in, enum stream stream)
{
	if (stream == STREAM_CPU && in->several_periods)
		return "us of CPU time";
	if (stream == STREAM_OFF_CPU)
		return "ns off CPU";
	return stream_is_bytes(stream) ? "bytes" : "samples";
}

/* Light enough for black text. */
static const char *const colours[] = {
	"#f4a582", "#fdc086", "#ffe08a", "#d9e68b", "#a6d99c", "#8fd7c0", "#8ecfe0", "#9fc3f0",
	"#b7b5f2", "#d3b0ea", "#f0b0d8", "#f5a9b3", "#d8c3a5", "#c9d3b0", "#b5cbd1", "#e6b58a",
};

/* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/ */
const char *markup_colour(const char *text, size_t n)
{
	const char *bang = memchr(text, '!', n);
	size_t i, module_bytes = bang ? (size_t)(bang - text) : 0;
	uint32_t hash = 2166136261u;

	if (!bang)
		return "#cfcfcf";
	for (i = 0; i < module_bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return colours[(hash ^ hash >> 16) % COUNT_OF(colours)];
}
