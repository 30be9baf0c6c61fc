#include "analysis/name_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define MATCH_LIMIT 50000u
#define PATTERN_MAX 4000u
#define CAPTURES_MAX 10u

struct name_pattern {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	bool no_memory;
};

void name_pattern_close(struct name_pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_match_data_free(p->data);
	pcre2_code_free(p->code);
	free(p);
}

static void put_regex(const char *text, size_t n, struct buf *out)
{
	size_t i;

	if (n && text[0] == '@') {
		buf_put(out, text + 1, n - 1);
		return;
	}
	for (i = 0; i < n; i++) {
		switch (text[i]) {
		case '*':
			buf_puts(out, ".*");
			break;
		case '%':
			buf_puts(out, "[.\\w?]*");
			break;
		case '{':
			buf_putc(out, '(');
			break;
		case '}':
			buf_putc(out, ')');
			break;
		case '^':
		case '|':
			buf_putc(out, text[i]);
			break;
		default:
			if (strchr("\\.[]()+?$/#-&~ ", text[i]))
				buf_putc(out, '\\');
			buf_putc(out, text[i]);
		}
	}
}

int name_pattern_open(const char *text, size_t n, const char *option, size_t column,
		      struct name_pattern **out, struct err *err)
{
	struct buf regex = {.max_bytes = 3 * PATTERN_MAX};
	struct name_pattern *p;
	unsigned char why[120] = "";
	PCRE2_SIZE at = 0;
	int code = 0, rc = 0;

	if (n > PATTERN_MAX)
		return err_set(err, ERR_USAGE, "--%s: the pattern at column %zu has %zu bytes; "
			       "the limit is %u", option, column, n, PATTERN_MAX);
	put_regex(text, n, &regex);
	p = regex.failed ? NULL : calloc(1, sizeof(*p));
	if (p)
		p->code = pcre2_compile((PCRE2_SPTR)buf_text(&regex), regex.len,
					PCRE2_CASELESS | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF |
					PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	if (p && p->code) {
		p->data = pcre2_match_data_create(CAPTURES_MAX, NULL);
		p->limits = pcre2_match_context_create(NULL);
	}
	buf_free(&regex);
	if (p && !p->code) {
		pcre2_get_error_message(code, why, sizeof(why));
		rc = err_set(err, ERR_USAGE, "--%s: the pattern '%.*s' at column %zu is wrong: %s; "
			     "braces must come in pairs, and only * %% ^ | are special",
			     option, (int)n, text, column, why);
	} else if (!p || !p->data || !p->limits) {
		rc = err_memory(err, "for the pattern '%.*s'", (int)n, text);
	}
	if (rc) {
		name_pattern_close(p);
		return rc;
	}
	pcre2_set_match_limit(p->limits, MATCH_LIMIT);
	*out = p;
	return 0;
}

bool name_pattern_match(struct name_pattern *p, const char *name, size_t n)
{
	int rc = pcre2_match(p->code, (PCRE2_SPTR)name, n, 0, 0, p->data, p->limits);

	p->no_memory |= rc == PCRE2_ERROR_NOMEMORY;
	return rc >= 0;
}

bool name_pattern_no_memory(const struct name_pattern *p)
{
	return p->no_memory;
}

/* A capture that does not exist, or took no part in the match, is empty. */
static void put_capture(const struct name_pattern *p, const char *name, unsigned i, struct buf *out)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(p->data);

	if (i < pcre2_get_ovector_count(p->data) && at[2 * i] != PCRE2_UNSET &&
	    at[2 * i + 1] > at[2 * i])
		buf_put(out, name + at[2 * i], at[2 * i + 1] - at[2 * i]);
}

void name_pattern_expand(const struct name_pattern *p, const char *name, const char *template,
			 struct buf *out)
{
	for (; *template; template++) {
		if (template[0] == '$' && template[1] == '&') {
			put_capture(p, name, 0, out);
			template++;
		} else if (template[0] == '$' && template[1] >= '0' && template[1] <= '9') {
			put_capture(p, name, (unsigned)(template[1] - '0'), out);
			template++;
		} else {
			buf_putc(out, *template);
		}
	}
}
