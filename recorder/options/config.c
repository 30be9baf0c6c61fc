#include "options/config.h"

#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX_BYTES = 64 };

struct line {
	const char *at, *end;
};

static void trim(struct line *l)
{
	while (l->at < l->end && strchr(" \t\r", *l->at))
		l->at++;
	while (l->end > l->at && strchr(" \t\r", l->end[-1]))
		l->end--;
}

/* Copy part to `to`, NUL-terminated; false if it does not fit or contains a NUL. */
static bool copy_text(struct line part, char *to, size_t n)
{
	size_t len = (size_t)(part.end - part.at);

	if (len >= n || memchr(part.at, '\0', len))
		return false;
	memcpy(to, part.at, len);
	to[len] = '\0';
	return true;
}

static int parse_line(struct line l, uint32_t number, struct options *o, struct err *err)
{
	char key[KEY_MAX_BYTES], value[OPTION_VALUE_MAX + 1];
	struct line left = l, right = l;
	const char *equals;

	trim(&l);
	if (l.at == l.end || *l.at == '#')
		return 0;
	equals = memchr(l.at, '=', (size_t)(l.end - l.at));
	if (!equals)
		return err_set(err, ERR_USAGE, "no '=' in the line; expected 'name = value' or "
			       "'# comment'");
	left = (struct line){l.at, equals};
	right = (struct line){equals + 1, l.end};
	trim(&left);
	trim(&right);
	if (!copy_text(left, key, sizeof(key)) || left.at == left.end)
		return err_set(err, ERR_USAGE, "no name before the '='");
	if (!copy_text(right, value, sizeof(value)))
		return err_set(err, ERR_USAGE, "%s: the value is longer than %d bytes or "
			       "contains a NUL", key, OPTION_VALUE_MAX);
	return options_set_conf(o, key, value, number, err);
}

int config_parse(const char *path, const char *text, size_t n, struct options *o, struct err *err)
{
	static const char mark[] = "\xef\xbb\xbf";       /* byte order mark of UTF-8 */
	const char *end = text + n;
	uint32_t number = 0;
	int rc = 0;

	free(o->conf_path);
	o->conf_path = text_dup(path, SIZE_MAX);
	if (!o->conf_path)
		return err_memory(err, "while reading %s", path);
	if (n >= 3 && memcmp(text, mark, 3) == 0)
		text += 3;
	while (!rc && text < end) {
		const char *feed = memchr(text, '\n', (size_t)(end - text));
		struct line l = {text, feed ? feed : end};

		rc = parse_line(l, ++number, o, err);
		if (rc)
			err_prefix(err, "%s:%" PRIu32, path, number);
		text = feed ? feed + 1 : end;
	}
	return rc;
}

int config_load(const char *path, struct options *o, struct err *err)
{
	struct buf text = {0};
	struct err why;
	int rc = os_load(path, CONFIG_MAX_BYTES, &text, &why);

	if (rc == ERR_MEMORY)
		err_set(err, ERR_MEMORY, "%s", why.text);
	else if (rc)
		rc = err_set(err, ERR_USAGE, "the configuration: %s", why.text);
	if (!rc)
		rc = config_parse(path, buf_text(&text), text.len, o, err);
	buf_free(&text);
	return rc;
}

int config_load_named(struct options *o, struct err *err)
{
	const char *path = o->config ? o->config : os_env("RECORDER_CONFIG");

	return path && *path ? config_load(path, o, err) : 0;
}

int config_again(const struct options *o, struct options *out, struct err *err)
{
	int rc;

	options_init(out);
	rc = options_parse(out, o->argc, o->argv, err);
	return rc ? rc : config_load_named(out, err);
}
