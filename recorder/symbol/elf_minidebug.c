#include "symbol/elf_minidebug.h"

#include "symbol/elf_section.h"
#include "symbol/xz.h"

#include <inttypes.h>
#include <stdlib.h>

#define SECTION_NAME ".gnu_debugdata"

int elf_minidebug_read(const struct bytes *in, const struct elf_head *head, struct buf *out,
		       struct err *err)
{
	struct elf_section section;
	uint8_t *packed;
	int rc = elf_section_find(in, head, SECTION_NAME, &section, err);

	if (rc)
		return rc;
	if (section.size > ELF_MINIDEBUG_PACKED_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "its section " SECTION_NAME " has %" PRIu64 " bytes",
			       section.size);
	/* Checked before allocating: the size is only what the header claims. */
	if (section.offset > in->size || section.size > in->size - section.offset)
		return err_set(err, ERR_FORMAT,
			       "its section " SECTION_NAME " lies outside the file");
	packed = malloc(section.size ? (size_t)section.size : 1);
	if (!packed)
		return err_memory(err, "for its packed symbols");
	rc = bytes_read(in, section.offset, packed, (size_t)section.size,
			"its section " SECTION_NAME, err);
	if (!rc)
		rc = xz_unpack(packed, (size_t)section.size, ELF_MINIDEBUG_MAX_BYTES, out, err);
	free(packed);
	return rc;
}
