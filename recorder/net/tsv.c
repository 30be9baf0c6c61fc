#include "net/tsv.h"

static void begin_field(struct tsv *t)
{
	if (t->begun)
		buf_putc(&t->text, '\t');
	t->begun = true;
}

void tsv_put_int(struct tsv *t, int64_t v)
{
	begin_field(t);
	buf_printf(&t->text, "%lld", (long long)v);
}

static void put_escaped(struct buf *out, const char *text, size_t n)
{
	static const char plain[] = "\t\n\r\\", letters[] = "tnr\\";
	const char *found;
	size_t i;

	for (i = 0; i < n; i++) {
		found = text[i] ? strchr(plain, text[i]) : NULL;
		if (found)
			buf_putc(out, '\\');
		if (text[i])
			buf_putc(out, found ? letters[found - plain] : text[i]);
	}
}

void tsv_put_text(struct tsv *t, const char *text, size_t n)
{
	begin_field(t);
	put_escaped(&t->text, text, n);
}

void tsv_put_texts(struct tsv *t, const char *const *texts, uint32_t n)
{
	const char quote = t->clickhouse ? '\'' : '"';
	struct buf item = {0};
	const char *at;
	uint32_t i;

	begin_field(t);
	buf_putc(&t->text, t->clickhouse ? '[' : '{');
	for (i = 0; i < n; i++) {
		if (i)
			buf_putc(&t->text, ',');
		buf_putc(&t->text, quote);
		if (t->clickhouse) {
			for (at = texts[i]; *at; at++) {
				if (*at == quote)
					buf_putc(&t->text, '\\');
				put_escaped(&t->text, at, 1);
			}
		} else {
			buf_reset(&item);
			for (at = texts[i]; *at; at++) {
				if (*at == quote || *at == '\\')
					buf_putc(&item, '\\');
				buf_putc(&item, *at);
			}
			put_escaped(&t->text, buf_text(&item), item.len);
			t->text.failed = t->text.failed ? t->text.failed : item.failed;
		}
		buf_putc(&t->text, quote);
	}
	buf_putc(&t->text, t->clickhouse ? ']' : '}');
	buf_free(&item);
}

void tsv_end_row(struct tsv *t)
{
	buf_putc(&t->text, '\n');
	t->begun = false;
}

/* What a backslash and this letter are. */
static char unescaped(char letter)
{
	static const char letters[] = "tnrbf0", plain[] = "\t\n\r\b\f";
	const char *found = letter ? strchr(letters, letter) : NULL;

	return found ? plain[found - letters] : letter;
}

unsigned tsv_next(char **at, const char **fields, unsigned max)
{
	char *from = *at, *to = from;
	unsigned n = 0;

	if (!*from)
		return 0;
	if (max)
		fields[n++] = to;
	for (; *from && *from != '\n'; from++) {
		if (*from == '\t') {
			*to++ = '\0';
			if (n < max)
				fields[n++] = to;
		} else if (*from == '\\' && from[1]) {
			*to++ = unescaped(*++from);
		} else {
			*to++ = *from;
		}
	}
	*at = from + (*from == '\n');
	*to = '\0';
	return n;
}
