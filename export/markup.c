#include "export/markup.h"

#include "base/array.h"
#include "base/utf8.h"

#include <stdio.h>
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

void markup_put_csv(struct buf *out, const char *text, bool excel)
{
	bool formula = excel && *text && strchr("=+-@", *text);

	if (!formula && !strpbrk(text, ",\"\r\n")) {
		buf_puts(out, text);
		return;
	}
	buf_puts(out, formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			buf_putc(out, '"');
		buf_putc(out, *text);
	}
	buf_putc(out, '"');
}

const char *markup_unit(const struct incident *in, enum stream stream, char text[UNIT_TEXT_MAX])
{
	bool time = stream == STREAM_CPU ? in->several_periods : stream_is_time(stream);

	if (!time)
		return stream_is_bytes(stream) ? "bytes" : "samples";
	snprintf(text, UNIT_TEXT_MAX, "%s %s", stream == STREAM_CPU ? "us" : "ns",
		 stream_metrics[stream].what);
	return text;
}

/* Light enough for black text; enum code_kind. */
static const struct palette {
	const char *shades[6];
	unsigned n;
} palettes[CODE_KINDS] = {
	[CODE_NONE] = {{"#cfcfcf"}, 1},
	[CODE_KERNEL] = {{"#b5cbd1", "#c2cbd6"}, 2},
	[CODE_NATIVE] = {{"#f4a582", "#fdc086", "#f0b0d8", "#f5a9b3", "#e6b58a", "#e8bfae"}, 6},
	[CODE_JAVA] = {{"#a6d99c", "#8fd7a8", "#bfdc95", "#a9cfa0"}, 4},
	[CODE_PYTHON] = {{"#9fc3f0", "#8ecfe0", "#a9cdf5", "#92b9e6"}, 4},
	[CODE_JAVASCRIPT] = {{"#ffe08a", "#f2e394", "#ead77a"}, 3},
	[CODE_DOTNET] = {{"#b7b5f2", "#c7b3ee", "#d3b0ea", "#aaa8e8"}, 4},
	[CODE_GENERATED] = {{"#d8c3a5", "#d0c4b0"}, 2},
};

/* How much of a text says the shade: its module; of managed code also the class, "[java]!a.B". */
static size_t shade_bytes(const char *text, size_t n, enum code_kind code)
{
	size_t i = 0, end = strnlen(text, n);
	const char *bang = memchr(text, '!', n);

	if (bang)
		end = (size_t)(bang - text);
	if (!bang || code < CODE_JAVA)
		return end;
	for (i = end; i < n && text[i] != '('; i++) {
		if (text[i] == '.')
			end = i;
	}
	return end;
}

/* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/ */
const char *markup_colour(const char *text, size_t n, enum code_kind code)
{
	const struct palette *p = &palettes[code < CODE_KINDS ? code : CODE_NONE];
	size_t i, end = shade_bytes(text, n, code);
	uint32_t hash = 2166136261u;

	for (i = 0; i < end; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return p->shades[(hash ^ hash >> 16) % p->n];
}
