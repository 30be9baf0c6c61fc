#include "symbol/kallsyms.h"

#include "base/array.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

#define KALLSYMS_PATH "/proc/kallsyms"

enum { PORTION_BYTES = 65536, MODULES_MAX_BYTES = 1 << 20 };

/* name size refcount users state address: refcount, users and state change without meaning. */
static uint64_t add_module(uint64_t hash, const char *at, const char *end)
{
	unsigned field = 0;

	for (; at < end; at++) {
		field += *at == ' ';
		if (field < 2 || field == 5)
			hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;       /* FNV-1a */
	}
	return hash;
}

uint64_t kallsyms_modules(void)
{
	uint64_t hash = 0xcbf29ce484222325u;
	struct buf text = {0};
	const char *at, *lf;

	if (os_load("/proc/modules", MODULES_MAX_BYTES, &text, NULL) == 0) {
		for (at = buf_text(&text); (lf = strchr(at, '\n')) != NULL; at = lf + 1)
			hash = add_module(hash, at, lf);
	}
	buf_free(&text);
	return hash;
}

/* Of the lines in text, the last of which may lack its end. */
static size_t whole_lines(const char *text, size_t n)
{
	size_t whole = n;

	while (whole && text[whole - 1] != '\n')
		whole--;
	return whole || n < PORTION_BYTES ? whole : n;
}

static int read_lines(struct os_file *file, char *text, kallsyms_take *take, void *to,
		      struct err *err)
{
	size_t used = 0, total = 0, got, n;
	int rc;

	do {
		rc = os_read_next(file, text + used, PORTION_BYTES - used, &got, err);
		if (rc)
			return rc;
		used += got;
		total += got;
		if (total > KALLSYMS_MAX_BYTES)
			return err_set(err, ERR_LIMIT, KALLSYMS_PATH " is larger than %zu MB",
				       KALLSYMS_MAX_BYTES >> 20);
		n = got ? whole_lines(text, used) : used;
		rc = n ? take(to, text, n) : 0;
		used -= n;
		memmove(text, text + n, used);
	} while (!rc && got);
	return rc;
}

int kallsyms_read(kallsyms_take *take, void *to, uint64_t *modules, struct err *err)
{
	char *text = malloc(PORTION_BYTES);
	struct os_file *file = NULL;
	int rc;

	if (!text)
		return err_memory(err, "to read " KALLSYMS_PATH);
	if (modules)
		*modules = kallsyms_modules();
	rc = os_open(KALLSYMS_PATH, OS_READ, &file, err);
	if (!rc)
		rc = read_lines(file, text, take, to, err);
	os_close(file);
	free(text);
	return rc;
}

static bool is_symbol(const struct kallsyms_line *line, const char *name)
{
	return line->type == 'T' && line->name_bytes == strlen(name) &&
	       !memcmp(line->name, name, line->name_bytes);
}

/* Look for _text, and for _stext, in whole lines. */
static void find_text(const struct buf *list, uint64_t *text, uint64_t *stext, bool *hidden)
{
	const char *at = buf_text(list), *end = at + list->len;
	struct kallsyms_line line;

	while (end > at && end[-1] != '\n')
		end--;
	while (!*text && kallsyms_next(&at, end, &line)) {
		*hidden |= line.type == 'T' && !line.address;
		if (is_symbol(&line, "_text"))
			*text = line.address;
		if (is_symbol(&line, "_stext"))
			*stext = line.address;
	}
}

int kallsyms_text_base(uint64_t *base, struct err *err)
{
	/* _text is among the first lines; those of the CPUs' variables may be before it. */
	static const size_t most_bytes[] = {4096, 65536, KALLSYMS_MAX_BYTES};
	uint64_t text = 0, stext = 0;
	int rc = ERR_LIMIT;
	struct buf list = {0};
	bool hidden = false;
	size_t i;

	/* At the limit, what was read up to there is in list. */
	for (i = 0; i < COUNT_OF(most_bytes) && rc == ERR_LIMIT && !text; i++) {
		buf_reset(&list);
		rc = os_load(KALLSYMS_PATH, most_bytes[i], &list, err);
		find_text(&list, &text, &stext, &hidden);
	}
	buf_free(&list);
	*base = text ? text : stext;
	if (*base)
		return 0;
	if (rc)
		return rc;
	return hidden ? kallsyms_hidden(err)
		      : err_set(err, ERR_FORMAT, KALLSYMS_PATH " lacks _text and _stext");
}
