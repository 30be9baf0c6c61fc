#include "symbol/kallsyms.h"

#include "base/os.h"

#include <string.h>

#define KALLSYMS_PATH "/proc/kallsyms"

enum { BLOCK_BYTES = 65536, MODULES_MAX_BYTES = 1 << 20 };

int kallsyms_read(struct buf *out, struct err *err)
{
	return os_load(KALLSYMS_PATH, KALLSYMS_MAX_BYTES, out, err);
}

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

/* Look for _text in whole lines; the rest of the last line stays at the block's start. */
static bool scan(char *block, size_t *filled, uint64_t *text, uint64_t *stext, bool *hidden)
{
	const char *at = block;
	const char *end = block + *filled;
	struct kallsyms_line line;

	while (end > at && end[-1] != '\n')
		end--;
	while (!*text && kallsyms_next(&at, end, &line)) {
		*hidden |= line.type == 'T' && !line.address;
		if (line.type == 'T' && line.name_bytes == 5 && !memcmp(line.name, "_text", 5))
			*text = line.address;
		if (line.type == 'T' && line.name_bytes == 6 && !memcmp(line.name, "_stext", 6))
			*stext = line.address;
	}
	*filled -= (size_t)(end - block);
	memmove(block, end, *filled);
	return *text != 0;
}

int kallsyms_text_base(uint64_t *base, struct err *err)
{
	char block[BLOCK_BYTES];
	uint64_t at = 0, text = 0, stext = 0;
	size_t filled = 0, got = 1;
	struct os_file *file = NULL;
	bool hidden = false;
	int rc;

	*base = 0;
	rc = os_open(KALLSYMS_PATH, OS_READ, &file, err);
	/* Sequential blocks; _text is among the first lines, so one or two blocks do. */
	while (!rc && got && filled < sizeof(block) && at < KALLSYMS_MAX_BYTES) {
		rc = os_pread(file, block + filled, sizeof(block) - filled, at, &got, err);
		at += got;
		filled += rc ? 0 : got;
		if (!rc && scan(block, &filled, &text, &stext, &hidden))
			break;
	}
	os_close(file);
	if (rc)
		return rc;
	*base = text ? text : stext;
	if (*base)
		return 0;
	return hidden ? kallsyms_hidden(err)
		      : err_set(err, ERR_FORMAT, KALLSYMS_PATH " lacks _text and _stext");
}
