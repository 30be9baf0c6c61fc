/*
 * The .etl inside a .zip that PerfView or wpr wrote.
 *
 * Searches for the end record from the end of the file, then reads the central directory entry by
 * entry. Sizes and offsets of 0xFFFFFFFF stand in the entry's zip64 field. Source: APPNOTE.TXT
 * 6.3.3, sections 4.3 and 4.5.3.
 */
#include "source/etl/etl_private.h"

#include "base/bytes.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	END_BYTES = 22, END_SEARCH_BYTES = 65536 + END_BYTES,
	LOCATOR64_BYTES = 20, END64_BYTES = 56,
	CENTRAL_BYTES = 46, LOCAL_BYTES = 30,
	ENTRIES_MAX = 100000,
	EXTRA_ZIP64 = 1,
	FLAG_ENCRYPTED = 1,
	METHOD_STORED = 0, METHOD_DEFLATED = 8,
	BLOCK_BYTES = 65536,
	DEFLATE_RATIO_MAX = 1032,            /* 258 bytes from 2 bits; zlib's technical page */
};

#define SIGNATURE_LOCAL 0x04034b50u
#define SIGNATURE_CENTRAL 0x02014b50u
#define SIGNATURE_END 0x06054b50u
#define SIGNATURE_END64 0x06064b50u
#define SIGNATURE_LOCATOR64 0x07064b50u

struct entry {
	uint64_t packed_bytes, plain_bytes, local_at;
	uint32_t flags, method, crc;
};

static int bad_zip(const struct etl_file *file, const char *why, struct err *err)
{
	return err_set(err, ERR_FORMAT, "cannot read %s as a .zip: %s", file->name, why);
}

/* ---- finding the entry ----------------------------------------------------------------------- */

/* The offset of the central directory, and how many entries it has. */
static int find_central(struct etl_file *file, uint64_t *at, uint64_t *nentries, struct err *err)
{
	uint64_t size = file->in.size;
	size_t n = size < END_SEARCH_BYTES ? (size_t)size : END_SEARCH_BYTES, end;
	uint8_t *tail = malloc(n), locator[LOCATOR64_BYTES], end64[END64_BYTES];
	int rc;

	if (!tail)
		return err_memory(err, "while reading %s", file->name);
	rc = etl_read(file, size - n, tail, n, "its end", err);
	for (end = n < END_BYTES ? 0 : n - END_BYTES + 1; !rc && end > 0; end--)
		if (le32(tail + end - 1) == SIGNATURE_END)
			break;
	if (!rc && end == 0)
		rc = bad_zip(file, "it has no list of entries; it may be cut off", err);
	if (!rc) {
		end--;
		*nentries = le16(tail + end + 10);
		*at = le32(tail + end + 16);
		end += (size_t)(size - n);
	}
	free(tail);
	if (rc || (*at != UINT32_MAX && *nentries != 0xFFFF) || end < LOCATOR64_BYTES)
		return rc;
	rc = etl_read(file, end - LOCATOR64_BYTES, locator, sizeof(locator), "its locator", err);
	if (rc || le32(locator) != SIGNATURE_LOCATOR64)
		return rc;
	rc = etl_read(file, le64(locator + 8), end64, sizeof(end64), "its zip64 end", err);
	if (!rc && le32(end64) != SIGNATURE_END64)
		return bad_zip(file, "its zip64 end record is not where it says", err);
	if (!rc) {
		*nentries = le64(end64 + 32);
		*at = le64(end64 + 48);
	}
	return rc;
}

static bool is_etl(const char *name, size_t n)
{
	char suffix[5] = "";

	memcpy(suffix, n < 4 ? "" : name + n - 4, n < 4 ? 0 : 4);
	return text_same_fold(suffix, ".etl");
}

/* The zip64 field holds, in this order, those of the three numbers that do not fit 32 bits. */
static void widen(const uint8_t *extra, size_t n, struct entry *e)
{
	uint64_t *wide[] = {&e->plain_bytes, &e->packed_bytes, &e->local_at};
	size_t at = 0, size, used = 0;

	while (n - at >= 4) {
		size = le16(extra + at + 2);
		if (size > n - at - 4)
			return;
		if (le16(extra + at) == EXTRA_ZIP64) {
			for (size_t i = 0; i < 3; i++)
				if (*wide[i] == UINT32_MAX && size - used >= 8) {
					*wide[i] = le64(extra + at + 4 + used);
					used += 8;
				}
			return;
		}
		at += 4 + size;
	}
}

static int find_entry(struct etl_file *file, struct entry *out, struct err *err)
{
	uint8_t head[CENTRAL_BYTES], *text = NULL;
	uint64_t at = 0, n = 0, i;
	size_t name, extra;
	int rc;

	rc = find_central(file, &at, &n, err);
	if (rc)
		return rc;
	text = malloc(2 * 65536);
	if (!text)
		return err_memory(err, "while reading %s", file->name);
	for (i = 0; i < n && i < ENTRIES_MAX && !rc; i++) {
		rc = etl_read(file, at, head, sizeof(head), "its list of entries", err);
		if (!rc && le32(head) != SIGNATURE_CENTRAL)
			rc = bad_zip(file, "its list of entries is damaged", err);
		if (rc)
			break;
		name = le16(head + 28);
		extra = le16(head + 30);
		rc = etl_read(file, at + CENTRAL_BYTES, text, name + extra, "its list of entries",
			      err);
		at += CENTRAL_BYTES + name + extra + le16(head + 32);
		if (rc || !is_etl((char *)text, name) || file->facts.nentries++)
			continue;
		out->flags = le16(head + 8);
		out->method = le16(head + 10);
		out->crc = le32(head + 16);
		out->packed_bytes = le32(head + 20);
		out->plain_bytes = le32(head + 24);
		out->local_at = le32(head + 42);
		widen(text + name, extra, out);
		if (name >= sizeof(file->facts.entry))
			name = sizeof(file->facts.entry) - 1;
		memcpy(file->facts.entry, text, name);
		file->facts.entry[name] = '\0';
	}
	free(text);
	if (file->facts.nentries)
		return 0;                    /* damage behind the entry does no harm */
	if (!rc)
		rc = err_set(err, ERR_FORMAT, "%s is a .zip without an .etl in it", file->name);
	return rc;
}

/* ---- its bytes ------------------------------------------------------------------------------- */

struct unpack {
	struct etl_file *file;
	uint64_t at, left;                   /* packed bytes */
	uint64_t plain_max;
	uint64_t nplain;
	uLong crc;
	uint8_t in[BLOCK_BYTES], out[BLOCK_BYTES];
};

static int keep_block(struct unpack *u, size_t n, struct err *err)
{
	if (n > u->plain_max - u->nplain)
		n = (size_t)(u->plain_max - u->nplain);
	if (u->file->unpacked_bytes)
		memcpy(u->file->unpacked_bytes + u->nplain, u->out, n);
	else if (os_pwrite(u->file->unpacked, u->out, n, u->nplain, err))
		return err_prefix(err, "cannot unpack %s", u->file->name);
	u->crc = crc32(u->crc, u->out, (uInt)n);
	u->nplain += n;
	return 0;
}

/* Keep what inflates before damage: a cut trace is still a trace. */
static int inflate_entry(struct unpack *u, struct err *err)
{
	z_stream z = {0};
	int zrc = Z_OK, rc = 0;

	if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
		return err_memory(err, "while unpacking %s", u->file->name);
	while (zrc == Z_OK && !rc && u->nplain < u->plain_max) {
		if (z.avail_in == 0 && u->left) {
			size_t n = u->left < BLOCK_BYTES ? (size_t)u->left : BLOCK_BYTES;

			rc = etl_read(u->file, u->at, u->in, n, "its entry", err);
			u->at += n;
			u->left -= n;
			z.next_in = u->in;
			z.avail_in = (uInt)n;
		}
		if (rc)
			break;
		z.next_out = u->out;
		z.avail_out = BLOCK_BYTES;
		zrc = inflate(&z, Z_NO_FLUSH);
		if (BLOCK_BYTES - z.avail_out)
			rc = keep_block(u, BLOCK_BYTES - z.avail_out, err);
	}
	inflateEnd(&z);
	if (!rc && zrc == Z_MEM_ERROR)
		rc = err_memory(err, "while unpacking %s", u->file->name);
	return rc;
}

static int unpack_entry(struct etl_file *file, const struct entry *e, uint64_t at, struct err *err)
{
	struct unpack *u = malloc(sizeof(*u));
	int rc = 0;

	if (!u)
		return err_memory(err, "while unpacking %s", file->name);
	*u = (struct unpack){.file = file, .at = at, .left = e->packed_bytes,
			     .plain_max = e->plain_bytes, .crc = crc32(0, NULL, 0)};
	if (e->plain_bytes <= ETL_UNZIP_MEMORY_BYTES) {
		file->unpacked_bytes = malloc(e->plain_bytes ? (size_t)e->plain_bytes : 1);
		if (!file->unpacked_bytes)
			rc = err_memory(err, "while unpacking %s", file->name);
	} else {
		rc = os_temp(&file->unpacked, err);
	}
	if (!rc)
		rc = inflate_entry(u, err);
	if (!rc) {
		file->in = file->unpacked
				   ? bytes_of_file(file->unpacked, u->nplain)
				   : bytes_of_memory(file->unpacked_bytes, (size_t)u->nplain);
		file->facts.trace_bytes = u->nplain;
		file->facts.entry_damaged = u->crc != e->crc;
	}
	free(u);
	return rc;
}

int etl_unzip(struct etl_file *file, struct err *err)
{
	uint8_t head[LOCAL_BYTES];
	struct entry e;
	uint64_t at;
	int rc;

	if (file->in.size < sizeof(head))
		return 0;
	rc = etl_read(file, 0, head, 4, "its first bytes", err);
	if (rc || (le32(head) != SIGNATURE_LOCAL && le32(head) != SIGNATURE_END))
		return rc;
	rc = find_entry(file, &e, err);
	if (rc)
		return rc;
	if (e.flags & FLAG_ENCRYPTED || (e.method != METHOD_STORED && e.method != METHOD_DEFLATED))
		return err_set(err, ERR_UNSUPPORTED,
			       "cannot unpack %s in %s: it is %s; unzip it and pass the .etl",
			       file->facts.entry, file->name,
			       e.flags & FLAG_ENCRYPTED ? "encrypted"
							: "compressed in a way other than deflate");
	rc = etl_read(file, e.local_at, head, sizeof(head), "its entry", err);
	if (!rc && le32(head) != SIGNATURE_LOCAL)
		rc = bad_zip(file, "its .etl is not where it says", err);
	if (rc)
		return rc;
	at = e.local_at + LOCAL_BYTES + le16(head + 26) + le16(head + 28);
	if (at > file->in.size)
		return bad_zip(file, "its .etl lies outside the file", err);
	if (e.packed_bytes > file->in.size - at)
		e.packed_bytes = file->in.size - at;
	/* Do not allocate for a size that deflate cannot reach. */
	if (e.plain_bytes / DEFLATE_RATIO_MAX > e.packed_bytes)
		e.plain_bytes = (e.packed_bytes + 1) * DEFLATE_RATIO_MAX;
	if (e.method == METHOD_DEFLATED)
		return unpack_entry(file, &e, at, err);
	file->base = at;
	file->facts.trace_bytes = e.packed_bytes;
	return 0;
}
