#include "source/host/proc_parse.h"

#include "base/text.h"

#include <string.h>

#define NUMBER_MAX 1e30               /* no counter is larger; a hostile text could give infinity */
#define STAT_WORDS 24u                       /* words read after comm; state is the first */

struct text text_of(const char *bytes, size_t n)
{
	return (struct text){bytes, bytes ? bytes + n : bytes};
}

bool text_line(struct text *rest, struct text *line)
{
	const char *lf;

	if (rest->at >= rest->end)
		return false;
	lf = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
	line->at = rest->at;
	line->end = lf ? lf : rest->end;
	rest->at = lf ? lf + 1 : rest->end;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool text_word(struct text *rest, struct text *word)
{
	while (rest->at < rest->end && is_blank(*rest->at))
		rest->at++;
	word->at = rest->at;
	while (rest->at < rest->end && !is_blank(*rest->at))
		rest->at++;
	word->end = rest->at;
	return word->at < word->end;
}

bool text_number(struct text t, double *out)
{
	const char *at = t.at;
	double v = 0, unit = 1;

	if (at >= t.end || !is_digit(*at))
		return false;
	for (; at < t.end && is_digit(*at); at++)
		v = v * 10 + (*at - '0');
	if (at < t.end && *at == '.')
		for (at++; at < t.end && is_digit(*at); at++) {
			v = v * 10 + (*at - '0');
			unit *= 10;
		}
	if (at != t.end || v > NUMBER_MAX || unit > NUMBER_MAX)
		return false;
	*out = v / unit;
	return true;
}

bool text_is(struct text t, const char *s)
{
	size_t n = (size_t)(t.end - t.at);

	return strlen(s) == n && (n == 0 || memcmp(t.at, s, n) == 0);
}

void text_copy(struct text t, char *out, size_t n)
{
	size_t len = (size_t)(t.end - t.at);

	if (len >= n)
		len = n - 1;
	if (len)
		memcpy(out, t.at, len);
	out[len] = '\0';
}

static void read_numbers(struct text line, struct proc_row *row)
{
	struct text word;

	memset(row->v, 0, sizeof(row->v));
	row->n = 0;
	while (row->n < PROC_ROW_VALUES && text_word(&line, &word) &&
	       text_number(word, &row->v[row->n]))
		row->n++;
}

bool proc_row_next(struct text *rest, struct proc_row *row)
{
	struct text line, word;
	const char *colon;

	while (text_line(rest, &line)) {
		if (!text_word(&line, &word))
			continue;
		/* Old kernels print "eth0:123" without a space. */
		colon = memchr(word.at, ':', (size_t)(word.end - word.at));
		row->name = word;
		if (colon) {
			row->name.end = colon;
			line.at = colon + 1;
		}
		if (row->name.at == row->name.end)
			continue;
		read_numbers(line, row);
		return true;
	}
	return false;
}

bool proc_disk_next(struct text *rest, struct proc_row *row)
{
	struct text line, major, minor;
	double number;

	while (text_line(rest, &line)) {
		if (!text_word(&line, &major) || !text_number(major, &number) ||
		    !text_word(&line, &minor) || !text_number(minor, &number) ||
		    !text_word(&line, &row->name))
			continue;
		read_numbers(line, row);
		return true;
	}
	return false;
}

bool proc_value(struct text all, const char *name, double *out)
{
	struct text line, word;

	while (text_line(&all, &line)) {
		if (!text_word(&line, &word))
			continue;
		if (word.end[-1] == ':')
			word.end--;
		if (text_is(word, name) && text_word(&line, &word) && text_number(word, out))
			return true;
	}
	return false;
}

/* Whether the line starts with `name` and a colon; *line keeps the rest. */
static bool begins_with(struct text *line, const char *name)
{
	struct text word;

	if (!text_word(line, &word) || word.end[-1] != ':')
		return false;
	word.end--;
	return text_is(word, name);
}

bool proc_heading_value(struct text all, const char *row, const char *heading, double *out)
{
	struct text heads, values, head, value;

	while (text_line(&all, &heads)) {
		if (!begins_with(&heads, row))
			continue;
		if (!text_line(&all, &values) || !begins_with(&values, row))
			return false;
		while (text_word(&heads, &head) && text_word(&values, &value))
			if (text_is(head, heading))
				return text_number(value, out);
		return false;
	}
	return false;
}

bool proc_key_sum(struct text all, const char *first, const char *key, double *out)
{
	struct text line, word, name, value;
	double sum = 0, v;
	bool found = false;
	const char *equal;

	while (text_line(&all, &line)) {
		struct text words = line;

		if (!text_word(&words, &word) || (first && !text_is(word, first)))
			continue;
		while (text_word(&words, &word)) {
			equal = memchr(word.at, '=', (size_t)(word.end - word.at));
			if (!equal)
				continue;
			name.at = word.at;
			name.end = equal;
			value.at = equal + 1;
			value.end = word.end;
			if (!text_is(name, key) || !text_number(value, &v))
				continue;
			sum += v;
			found = true;
		}
	}
	if (found)
		*out = sum;
	return found;
}

bool proc_disk_is_part_of(struct text name, struct text disk)
{
	size_t n = (size_t)(disk.end - disk.at);
	const char *at;

	if (!n || (size_t)(name.end - name.at) <= n || memcmp(name.at, disk.at, n) != 0)
		return false;
	at = name.at + n;
	/* If the disk's name ends in a digit, a 'p' stands in between. */
	if (is_digit(disk.end[-1]) && *at++ != 'p')
		return false;
	if (at == name.end)
		return false;
	while (at < name.end)
		if (!is_digit(*at++))
			return false;
	return true;
}

bool proc_stat_parse(struct text all, struct proc_stat *out)
{
	double v[STAT_WORDS] = {0};
	struct text comm, word, pid;
	const char *at;
	uint32_t n;

	/* The name may contain anything, even ')' and line feeds; letters and numbers follow it. */
	comm.at = all.at < all.end ? memchr(all.at, '(', (size_t)(all.end - all.at)) : NULL;
	if (!comm.at)
		return false;
	for (at = all.end; at > comm.at && at[-1] != ')';)
		at--;
	if (at == comm.at)
		return false;
	pid.at = all.at;
	pid.end = comm.at++;
	comm.end = at - 1;
	all.at = at;
	if (all.end > all.at && all.end[-1] == '\n')
		all.end--;
	if (!text_word(&pid, &word) || !text_number(word, &v[0]) || v[0] > UINT32_MAX)
		return false;
	memset(out, 0, sizeof(*out));
	out->pid = (uint32_t)v[0];
	text_copy(comm, out->comm, sizeof(out->comm));
	for (n = 0; n < STAT_WORDS && text_word(&all, &word); n++) {
		if (n == 0)
			out->state = *word.at;
		if (!text_number(word, &v[n]))
			v[n] = 0;               /* the state letter or a negative priority */
	}
	if (n < 22 || v[1] > UINT32_MAX || v[6] > UINT32_MAX || v[19] >= 18e18)
		return false;
	/* Field k of proc(5) is word k - 3. */
	out->parent_pid = (uint32_t)v[1];
	out->flags = (uint32_t)v[6];
	out->minor_faults = v[7];
	out->major_faults = v[9];
	out->utime = v[11];
	out->stime = v[12];
	out->threads = v[17];
	out->start_ticks = (uint64_t)v[19];
	out->virtual_bytes = v[20];
	out->resident_pages = v[21];
	out->code = v[23] < 18e18 ? (uint64_t)v[23] : 0;
	return true;
}

/* Whether an octal escape such as \040 begins here; *out is then its character. */
static bool unescape(const char *at, const char *end, char *out)
{
	if (end - at < 4 || at[0] != '\\' || at[1] < '0' || at[1] > '3' || at[2] < '0' ||
	    at[2] > '7' || at[3] < '0' || at[3] > '7')
		return false;
	*out = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
	return true;
}

/* false: longer than out */
static bool copy_path(struct text path, char *out, size_t size)
{
	size_t n;

	for (n = 0; path.at < path.end && n + 1 < size; n++) {
		if (unescape(path.at, path.end, &out[n]))
			path.at += 4;
		else
			out[n] = *path.at++;
	}
	out[n] = '\0';
	return path.at == path.end;
}

bool proc_mount_next(struct text *rest, struct proc_mount *out)
{
	struct text line, dir;

	while (text_line(rest, &line))
		if (text_word(&line, &out->device) && text_word(&line, &dir) &&
		    text_word(&line, &out->type) && copy_path(dir, out->dir, sizeof(out->dir)))
			return true;
	return false;
}

/* The value of one of the options that commas separate. */
static bool find_option(struct text options, const char *key, struct text *value)
{
	size_t n = strlen(key);

	for (value->at = options.at; value->at < options.end; value->at = value->end + 1) {
		value->end = value->at;
		while (value->end < options.end && *value->end != ',')
			value->end++;
		if ((size_t)(value->end - value->at) > n && memcmp(value->at, key, n) == 0) {
			value->at += n;
			return true;
		}
	}
	return false;
}

/* major:minor */
static bool parse_device(struct text t, struct proc_mounted *out)
{
	const char *colon = t.at < t.end ? memchr(t.at, ':', (size_t)(t.end - t.at)) : NULL;
	double major, minor;

	if (!colon || !text_number((struct text){t.at, colon}, &major) ||
	    !text_number((struct text){colon + 1, t.end}, &minor) || major > UINT32_MAX ||
	    minor > UINT32_MAX)
		return false;
	out->major = (uint32_t)major;
	out->minor = (uint32_t)minor;
	return true;
}

static void find_layer(struct text options, struct proc_mounted *out)
{
	const char *colon;
	struct text dir;

	if (!find_option(options, "upperdir=", &dir) && !find_option(options, "lowerdir=", &dir))
		dir = text_of(NULL, 0);
	colon = dir.at < dir.end ? memchr(dir.at, ':', (size_t)(dir.end - dir.at)) : NULL;
	dir.end = colon ? colon : dir.end;
	if (!copy_path(dir, out->layer, sizeof(out->layer)))
		out->layer[0] = '\0';
}

/* ID parent major:minor root point options tag... - type source options */
static bool parse_mounted(struct text line, struct proc_mounted *out)
{
	enum { ID, PARENT, DEVICE, ROOT, POINT, OPTIONS, WORDS };
	struct text word[WORDS], options;
	double id;
	unsigned i;

	for (i = 0; i < WORDS; i++)
		if (!text_word(&line, &word[i]))
			return false;
	if (!text_number(word[ID], &id) || id > UINT32_MAX || !parse_device(word[DEVICE], out) ||
	    !copy_path(word[POINT], out->dir, sizeof(out->dir)))
		return false;
	out->id = (uint32_t)id;
	while (!text_is(word[OPTIONS], "-"))
		if (!text_word(&line, &word[OPTIONS]))
			return false;
	if (!text_word(&line, &out->type) || !text_word(&line, &options) ||
	    !text_word(&line, &options))
		return false;
	find_layer(text_is(out->type, "overlay") ? options : text_of(NULL, 0), out);
	return true;
}

bool proc_mounted_next(struct text *rest, struct proc_mounted *out)
{
	struct text line;

	while (text_line(rest, &line))
		if (parse_mounted(line, out))
			return true;
	return false;
}

/* Cut a suffix, in any case, off a text that has more than that. */
static void drop_suffix(char *text, const char *suffix)
{
	size_t n = strlen(text), nsuffix = strlen(suffix);

	if (n > nsuffix && text_ends_fold(text, suffix))
		text[n - nsuffix] = '\0';
}

void proc_display_name(const char *exe, const char *comm, char *out, size_t n)
{
	const char *slash = strrchr(exe, '/'), *name = slash ? slash + 1 : exe;

	name = *name ? name : comm;
	text_copy(text_of(name, strlen(name)), out, n);
	drop_suffix(out, " (deleted)");
	drop_suffix(out, ".exe");
}
