/*
 * .gnu_debuglink (source: GDB manual, "Debugging Information in Separate Files"):
 *
 *   name, NUL, NULs up to a multiple of 4 bytes, CRC-32 as u32 in the file's byte order
 */
#include "symbol/debuglink.h"

#include "base/bytes.h"
#include "symbol/elf_section.h"
#include "symbol/symbol_open.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SECTION_NAME ".gnu_debuglink"

enum { BLOCK_BYTES = 65536 };

/* ---- the section ----------------------------------------------------------------------------- */

static int parse_link(const uint8_t *text, size_t n, struct debuglink *out, struct err *err)
{
	const uint8_t *end = memchr(text, '\0', n);
	size_t length = end ? (size_t)(end - text) : n, crc_at = (length + 4) & ~(size_t)3;

	if (!end || !length || n < 4 || crc_at > n - 4)
		return err_set(err, ERR_FORMAT, "its section " SECTION_NAME " is cut off");
	if (length > DEBUGLINK_NAME_MAX || memchr(text, '/', length) || text[0] == '.')
		return err_set(err, ERR_FORMAT, "its section " SECTION_NAME " names no file");
	memcpy(out->name, text, length + 1);
	out->crc = le32(text + crc_at);
	return 0;
}

int debuglink_read(const struct bytes *in, const struct elf_head *head, struct debuglink *out,
		   struct err *err)
{
	uint8_t text[DEBUGLINK_NAME_MAX + 1 + 8];
	struct elf_section section;
	int rc = elf_section_find(in, head, SECTION_NAME, &section, err);
	size_t n;

	if (rc)
		return rc;
	n = section.size < sizeof(text) ? (size_t)section.size : sizeof(text);
	rc = bytes_read(in, section.offset, text, n, "its section " SECTION_NAME, err);
	return rc ? rc : parse_link(text, n, out, err);
}

/* ---- the file -------------------------------------------------------------------------------- */

int debuglink_crc(const struct bytes *in, uint32_t *out, struct err *err)
{
	uint64_t at = 0, end_ns = os_now_ns() + DEBUGLINK_MAX_NS;
	uLong crc = crc32(0, NULL, 0);
	uint8_t *block = malloc(BLOCK_BYTES);
	int rc = 0;

	if (!block)
		return err_memory(err, "for a debug file");
	while (!rc && at < in->size) {
		size_t n = in->size - at < BLOCK_BYTES ? (size_t)(in->size - at) : BLOCK_BYTES;

		rc = bytes_read(in, at, block, n, "the debug file", err);
		if (!rc)
			crc = crc32(crc, block, (uInt)n);
		if (!rc && os_now_ns() > end_ns)
			rc = err_set(err, ERR_LIMIT, "reading the debug file took too long");
		at += n;
	}
	free(block);
	if (!rc)
		*out = (uint32_t)crc;
	return rc;
}

/* Cheap checks first. */
static int open_checked(const char *path, const struct elf_head *head, uint32_t crc,
			struct elf_file *out, struct err *err)
{
	struct elf_file f;
	uint32_t have = 0;
	int rc = elf_file_open_path(path, &f, err);

	if (rc)
		return rc;
	if (f.head.is64 != head->is64 || f.head.machine != head->machine)
		rc = err_set(err, ERR_FORMAT, "%s is for another machine", path);
	if (!rc)
		rc = debuglink_crc(&f.bytes, &have, err);
	if (!rc && have != crc)
		rc = err_set(err, ERR_FORMAT, "%s is a different debug file: its CRC is %08" PRIx32
			     ", the link has %08" PRIx32, path, have, crc);
	if (rc)
		elf_file_close(&f);
	else
		*out = f;
	return rc;
}

int debuglink_open(const struct object *object, uint32_t pid, const struct elf_head *head,
		   const struct debuglink *link, struct buf *path, struct elf_file *out,
		   struct err *err)
{
	struct err why = {0};
	unsigned which;

	for (which = 0; which < SYMBOL_LINKS; which++) {
		struct err one = {0};

		if (!symbol_link_path(object, pid, link->name, which, path))
			continue;
		one.code = open_checked(buf_text(path), head, link->crc, out, &one);
		if (!one.code)
			return 0;
		elf_file_keep_reason(&why, &one);
	}
	buf_reset(path);
	if (!why.code)
		return err_set(err, ERR_NOT_FOUND, "%s is no path to a file", object->key.path);
	if (err)
		*err = why;
	return why.code;
}

int debug_file_open(const struct object *object, uint32_t pid, const struct elf_file *own,
		    struct buf *linked, struct elf_file *out, struct err *err)
{
	struct debuglink link;

	buf_reset(linked);
	if (object->key.build_id_bytes && !elf_file_open(object, pid, true, out, NULL))
		return 0;
	if (debuglink_read(&own->bytes, &own->head, &link, NULL))
		return err_set(err, ERR_NOT_FOUND, "%s names no debug file", object->key.path);
	return debuglink_open(object, pid, &own->head, &link, linked, out, err);
}
