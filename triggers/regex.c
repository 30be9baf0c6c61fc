#include "triggers/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#define HEAP_LIMIT_KB 1024

struct regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	uint64_t gave_up;                    /* texts */
	uint32_t strikes;                    /* matches that took too long since the last rest */
	uint64_t now_ns, rest_ns, rested_ns; /* the last rest's length, and its end */
};

void regex_close(struct regex *re)
{
	if (!re)
		return;
	pcre2_match_context_free(re->limits);
	pcre2_match_data_free(re->data);
	pcre2_code_free(re->code);
	free(re);
}

/* Invalid UTF-8 in a text is not an error; it just never matches. */
static pcre2_code *compile(const char *pattern, size_t len, bool ignore_case, int *code, size_t *at)
{
	uint32_t options = PCRE2_NEVER_BACKSLASH_C | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF |
			   (ignore_case ? PCRE2_CASELESS : 0u);

	return pcre2_compile((PCRE2_SPTR)pattern, len, options, code, at, NULL);
}

int regex_open(const char *spec, const char *pattern, size_t len, bool ignore_case,
	       struct regex **out, struct err *err)
{
	struct regex *re = calloc(1, sizeof(*re));
	unsigned char why[120] = "";
	size_t at = 0;
	int code = 0;

	if (re && len <= REGEX_PATTERN_MAX)
		re->code = compile(pattern, len, ignore_case, &code, &at);
	if (re && re->code) {
		re->data = pcre2_match_data_create(2, NULL);
		re->limits = pcre2_match_context_create(NULL);
	}
	if (re && re->data && re->limits) {
		pcre2_set_match_limit(re->limits, REGEX_MATCH_LIMIT);
		pcre2_set_heap_limit(re->limits, HEAP_LIMIT_KB);
		*out = re;
		return 0;
	}
	if (re && len > REGEX_PATTERN_MAX)
		code = err_set(err, ERR_USAGE,
			       "'%.100s': a regular expression has at most %u bytes, this one has "
			       "%zu", spec, REGEX_PATTERN_MAX, len);
	else if (re && !re->code && code != PCRE2_ERROR_HEAP_FAILED) {
		pcre2_get_error_message(code, why, sizeof(why));
		code = err_set(err, ERR_USAGE,
			       "'%.200s': the regular expression '%.*s' is wrong at character %zu: "
			       "%s", spec, (int)len, pattern, at + 1, why);
	} else {
		code = err_memory(err, "for the rule '%.200s'", spec);
	}
	regex_close(re);
	return code;
}

static void rest(struct regex *re)
{
	bool first = !re->rest_ns || re->now_ns - re->rested_ns > REGEX_REST_MAX_NS;
	uint64_t longer_ns = first ? REGEX_REST_NS : 2 * re->rest_ns;

	re->rest_ns = longer_ns < REGEX_REST_MAX_NS ? longer_ns : REGEX_REST_MAX_NS;
	re->rested_ns = re->now_ns + re->rest_ns;
	re->strikes = 0;
}

bool regex_match(struct regex *re, const char *text, size_t len)
{
	int rc;

	if (regex_rest_ns(re)) {
		re->gave_up++;
		return false;
	}
	rc = pcre2_match(re->code, (PCRE2_SPTR)text, len, 0, 0, re->data, re->limits);
	if (rc < PCRE2_ERROR_NOMATCH) {
		re->gave_up++;
		if (++re->strikes >= REGEX_GIVE_UP)
			rest(re);
	}
	return rc >= 0;
}

bool regex_group(const struct regex *re, const char *text, const char **at, size_t *len)
{
	const PCRE2_SIZE *found = pcre2_get_ovector_pointer(re->data);

	if (found[2] == PCRE2_UNSET || found[3] < found[2])
		return false;
	*at = text + found[2];
	*len = found[3] - found[2];
	return true;
}

bool regex_has_group(const struct regex *re)
{
	uint32_t n = 0;

	return pcre2_pattern_info(re->code, PCRE2_INFO_CAPTURECOUNT, &n) == 0 && n > 0;
}

void regex_tick(struct regex *re, uint64_t now_ns)
{
	if (re)
		re->now_ns = now_ns;
}

uint64_t regex_gave_up(const struct regex *re)
{
	return re->gave_up;
}

uint64_t regex_rest_ns(const struct regex *re)
{
	return re->now_ns < re->rested_ns ? re->rest_ns : 0;
}
