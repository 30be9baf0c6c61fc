/*
 * Little-endian, without padding:
 *
 *    0  magic "RECSYM", version u16
 *    8  CRC-32 of all that follows it, u32 (zlib's)
 *   12  build id: its length u32, then 24 bytes, filled with zeros
 *   40  the object's file: size u64, mtime in ns u64
 *   56  flags u32: 1 = complete
 *   60  nsegments u32, nentries u32, 0 u32
 *   72  base u64
 *   80  names: bytes u64
 *   88  segments, 40 bytes each: offset, vaddr, file bytes, memory bytes,
 *       flags u64 (1 = executable)
 *    .  entries, 12 bytes each: address - base, size, place in names; u32, ascending by address
 *    .  names, each with its NUL
 */
#include "symbol/elf_saved.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	VERSION = 1,
	CHECKED_FROM = 12,
	HEADER_BYTES = 88,
	SEGMENT_BYTES = 40,
	ENTRY_BYTES = 12,
	BLOCK_BYTES = 65536,
	NAMES_BYTES_AT = 80,
};

static const char magic[6] = {'R', 'E', 'C', 'S', 'Y', 'M'};

/* ---- writing --------------------------------------------------------------------------------- */

static void put_head(const struct elf_saved *s, struct buf *out)
{
	uint32_t i;

	buf_put(out, magic, sizeof(magic));
	buf_put_le(out, VERSION, 2);
	buf_put_le(out, 0, 4);                        /* the checksum: filled in at the end */
	buf_put_le(out, s->build_id_bytes, 4);
	buf_put(out, s->build_id, BUILD_ID_MAX);
	buf_put_le(out, s->file_bytes, 8);
	buf_put_le(out, s->mtime_ns, 8);
	buf_put_le(out, s->complete, 4);
	buf_put_le(out, s->head.nsegments, 4);
	buf_put_le(out, s->index->nentries, 4);
	buf_put_le(out, 0, 4);
	buf_put_le(out, s->index->base, 8);
	buf_put_le(out, 0, 8);                        /* bytes of names: likewise */
	for (i = 0; i < s->head.nsegments; i++) {
		const struct elf_segment *at = &s->head.segments[i];

		buf_put_le(out, at->offset, 8);
		buf_put_le(out, at->vaddr, 8);
		buf_put_le(out, at->file_bytes, 8);
		buf_put_le(out, at->memory_bytes, 8);
		buf_put_le(out, at->executable, 8);
	}
}

/*
 * The names go straight to their place behind the entries. There is room for all of them at once
 * unless entries share some: growing and copying took half of the time.
 */
static int put_entries(const struct elf_index *index, char *const tables[ELF_TABLES],
		       struct buf *out, struct err *err)
{
	const uint64_t likely = index->strings[0].size + index->strings[1].size;
	const size_t bytes = (size_t)index->nentries * ENTRY_BYTES;
	size_t at = out->len, names = at + bytes;
	uint32_t i;

	if (buf_reserve(out, bytes + (likely < ELF_STRINGS_MAX_BYTES ? (size_t)likely : 0)))
		buf_advance(out, bytes);
	for (i = 0; !out->failed && i < index->nentries; i++, at += ENTRY_BYTES) {
		const struct elf_entry *e = &index->entries[i];
		const char *name = tables[e->name >= ELF_NAME_IN_DYNSYM] +
				   (e->name & ~ELF_NAME_BITS);

		put_le32(out->data + at, e->start);
		put_le32(out->data + at + 4, e->size);
		put_le32(out->data + at + 8, (uint32_t)(out->len - names));
		buf_put(out, name, strnlen(name, FUNCTION_NAME_MAX));
		buf_puts(out, e->name & ELF_NAME_OF_STUB ? "@plt" : "");
		buf_putc(out, '\0');
	}
	if (out->failed)
		return buf_check(out, "its index", err);
	if (out->len - names > ELF_STRINGS_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "its names are larger than is kept");
	put_le64(out->data + NAMES_BYTES_AT, out->len - names);
	return 0;
}

int elf_saved_write(const struct elf_saved *saved, const struct bytes *in, struct buf *out,
		    struct err *err)
{
	char *tables[ELF_TABLES] = {NULL, NULL};
	int rc = 0;
	unsigned i;

	for (i = 0; !rc && i < ELF_TABLES; i++) {
		if (saved->index->strings[i].size > ELF_STRINGS_MAX_BYTES)
			rc = err_set(err, ERR_LIMIT, "its names are too large to be kept");
		else
			rc = elf_strings_load(&saved->index->strings[i], in, &tables[i], err);
	}
	if (!rc) {
		put_head(saved, out);
		rc = put_entries(saved->index, tables, out, err);
	}
	if (!rc)
		put_le32(out->data + 8, (uint32_t)crc32(0, (const Bytef *)out->data + CHECKED_FROM,
				  (uInt)(out->len - CHECKED_FROM)));
	for (i = 0; i < ELF_TABLES; i++)
		free(tables[i]);
	return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
	const struct bytes *in;
	struct elf_saved *out;
	uint32_t nentries;
	uint64_t at, names_bytes;
	uLong crc;
	struct err *err;
};

static int report_damage(struct err *err)
{
	return err_set(err, ERR_FORMAT, "the saved index is damaged");
}

static int read_part(struct reader *r, void *to, size_t n)
{
	int rc = bytes_read(r->in, r->at, to, n, "the saved index", r->err);

	if (!rc)
		r->crc = crc32(r->crc, to, (uInt)n);
	r->at += n;
	return rc;
}

/* We never index code in the upper half of the address space, where no program has any. */
static int read_head(struct reader *r)
{
	struct elf_saved *s = r->out;
	uint8_t h[HEADER_BYTES];
	int rc = bytes_read(r->in, 0, h, sizeof(h), "the saved index", r->err);
	uint64_t need;

	if (rc)
		return rc;
	if (memcmp(h, magic, sizeof(magic)) != 0 || le16(h + 6) != VERSION)
		return err_set(r->err, ERR_FORMAT, "it is not a saved index of this version");
	s->checksum = le32(h + 8);
	s->build_id_bytes = h[12];
	memcpy(s->build_id, h + 16, BUILD_ID_MAX);
	s->file_bytes = le64(h + 40);
	s->mtime_ns = le64(h + 48);
	s->complete = h[56] & 1;
	s->head.nsegments = le32(h + 60);
	r->nentries = le32(h + 64);
	s->index->base = le64(h + 72);
	r->names_bytes = le64(h + 80);
	if (le32(h + 12) > BUILD_ID_MAX || s->head.nsegments > ELF_SEGMENTS_MAX ||
	    r->nentries > ELF_FUNCTIONS_MAX || r->names_bytes > ELF_STRINGS_MAX_BYTES ||
	    s->index->base > UINT64_MAX / 2)
		return report_damage(r->err);
	need = HEADER_BYTES + (uint64_t)s->head.nsegments * SEGMENT_BYTES +
	       (uint64_t)r->nentries * ENTRY_BYTES + r->names_bytes;
	if (need != r->in->size)
		return report_damage(r->err);
	r->crc = crc32(0, h + CHECKED_FROM, HEADER_BYTES - CHECKED_FROM);
	r->at = HEADER_BYTES;
	return 0;
}

static int read_segments(struct reader *r)
{
	struct elf_head *head = &r->out->head;
	uint8_t table[ELF_SEGMENTS_MAX * SEGMENT_BYTES];
	int rc = read_part(r, table, head->nsegments * SEGMENT_BYTES);
	uint32_t i;

	for (i = 0; !rc && i < head->nsegments; i++) {
		const uint8_t *at = table + i * SEGMENT_BYTES;
		struct elf_segment *s = &head->segments[i];

		*s = (struct elf_segment){le64(at), le64(at + 8), le64(at + 16), le64(at + 24),
					  at[32] & 1};
		if (s->offset + s->file_bytes < s->offset ||
		    s->vaddr + s->memory_bytes < s->vaddr || s->vaddr + s->file_bytes < s->vaddr)
			rc = report_damage(r->err);
	}
	return rc;
}

static int read_entries(struct reader *r)
{
	struct elf_index *index = r->out->index;
	uint8_t block[BLOCK_BYTES / ENTRY_BYTES * ENTRY_BYTES];
	uint32_t i = 0, j;
	int rc = 0;

	index->entries = malloc((r->nentries ? r->nentries : 1) * sizeof(*index->entries));
	if (!index->entries)
		return err_memory(r->err, "for its symbols");
	while (!rc && i < r->nentries) {
		uint32_t n = r->nentries - i < sizeof(block) / ENTRY_BYTES
				     ? r->nentries - i : (uint32_t)(sizeof(block) / ENTRY_BYTES);

		rc = read_part(r, block, (size_t)n * ENTRY_BYTES);
		for (j = 0; !rc && j < n; j++, i++) {
			const uint8_t *at = block + (size_t)j * ENTRY_BYTES;
			struct elf_entry e = {le32(at), le32(at + 4), le32(at + 8)};

			if (e.name >= r->names_bytes ||
			    (i && e.start <= index->entries[i - 1].start))
				rc = report_damage(r->err);
			index->entries[i] = e;
		}
	}
	index->nentries = rc ? 0 : r->nentries;
	return rc;
}

/* Keep the names if they are few; else only compute their checksum and note their place. */
static int read_names(struct reader *r)
{
	struct elf_strings *strings = &r->out->index->strings[0];
	char block[BLOCK_BYTES];
	uint64_t done = 0;
	int rc = 0;

	strings->offset = r->at;
	strings->size = r->names_bytes;
	if (r->names_bytes <= ELF_STRINGS_KEPT_BYTES) {
		strings->kept = calloc(1, (size_t)r->names_bytes + 1);
		if (!strings->kept)
			return err_memory(r->err, "for its names");
	}
	while (!rc && done < r->names_bytes) {
		uint64_t left = r->names_bytes - done;
		size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);

		rc = read_part(r, strings->kept ? strings->kept + done : block, n);
		done += n;
	}
	return rc;
}

int elf_saved_read(const struct bytes *in, struct elf_saved *out, struct err *err)
{
	struct elf_saved *s = calloc(1, sizeof(*s));
	struct reader r = {.in = in, .out = s, .err = err};
	int rc = 0;

	if (s)
		s->index = calloc(1, sizeof(*s->index));
	if (!s || !s->index)
		rc = err_memory(err, "for its symbols");
	if (!rc)
		rc = read_head(&r);
	if (!rc)
		rc = read_segments(&r);
	if (!rc)
		rc = read_entries(&r);
	if (!rc)
		rc = read_names(&r);
	if (!rc && (uint32_t)r.crc != s->checksum)
		rc = report_damage(err);
	if (!rc)
		*out = *s;
	else if (s)
		elf_index_free(s->index);
	free(s);
	return rc;
}

bool elf_saved_same(const struct bytes *in, uint32_t checksum)
{
	uint8_t h[16];

	return !bytes_read(in, 0, h, sizeof(h), "the saved index", NULL) &&
	       !memcmp(h, magic, sizeof(magic)) && le16(h + 6) == VERSION &&
	       le32(h + 8) == checksum;
}
