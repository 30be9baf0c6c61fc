#include "symbol/symbol_path.h"

#include <string.h>
#include <strings.h>

bool symbol_path_next(const char **at, struct symbol_element *out)
{
	while (*at && **at) {
		*out = (struct symbol_element){*at, strcspn(*at, ";")};
		*at += out->nbytes;
		*at += **at == ';';
		if (out->nbytes)
			return true;
	}
	return false;
}

static bool has(const struct symbol_element *e, const char *text)
{
	size_t n = strlen(text), i;

	for (i = 0; i + n <= e->nbytes; i++)
		if (memcmp(e->text + i, text, n) == 0)
			return true;
	return false;
}

static bool begins(const struct symbol_element *e, const char *word)
{
	size_t n = strlen(word);

	return e->nbytes >= n && strncasecmp(e->text, word, n) == 0;
}

bool symbol_path_is_server(const struct symbol_element *e)
{
	return has(e, "://") && (begins(e, "srv*") || begins(e, "symsrv*") || begins(e, "cache*"));
}

bool symbol_path_directory(const struct symbol_element *element, unsigned i,
			   struct symbol_element *out)
{
	const char *at = element->text, *end = at + element->nbytes;
	unsigned skip = begins(element, "symsrv*")			       ? 2
			: begins(element, "srv*") || begins(element, "cache*") ? 1
									       : 0;

	for (; at <= end; at += out->nbytes + 1) {
		const char *star = memchr(at, '*', (size_t)(end - at));

		*out = (struct symbol_element){at, (size_t)((star ? star : end) - at)};
		if (skip) {
			skip--;
			continue;
		}
		if (out->nbytes && !has(out, "://") && i-- == 0)
			return true;
	}
	return false;
}

void symbol_path_split(const char *path, struct buf *others, struct buf *servers)
{
	struct symbol_element e;

	while (symbol_path_next(&path, &e)) {
		bool server = begins(&e, "http://") || begins(&e, "https://");
		struct buf *to = server ? servers : others;

		if (to->len)
			buf_putc(to, server ? ' ' : ';');
		buf_put(to, e.text, e.nbytes);
	}
}
