#include "source/stackfile/unzip.h"

#include "base/bytes.h"

#include <string.h>
#include <zlib.h>

#define LOCAL_BYTES 30u
#define FLAG_ENCRYPTED 1u
#define FLAG_SIZES_FOLLOW 8u
#define METHOD_STORED 0u
#define METHOD_DEFLATED 8u
#define BLOCK_BYTES 16384u
#define GZIP_WINDOW 16                       /* inflateInit2(): gzip's header and checksum */

bool unzip_is_zip(const void *bytes, size_t n)
{
	return n >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
}

bool unzip_is_gzip(const void *bytes, size_t n)
{
	return n >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0;
}

/* The stream ends by itself, so sizes, which may follow it, are not needed. */
static int inflate_all(const uint8_t *bytes, size_t n, int window, uint32_t *crc,
		       struct buf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes};
	uint8_t block[BLOCK_BYTES];
	int step = Z_OK;

	if (inflateInit2(&z, window) != Z_OK)
		return ERR_MEMORY;
	while (step == Z_OK && !out->failed) {
		if (!z.avail_in && n) {
			z.avail_in = n < BLOCK_BYTES ? (uInt)n : BLOCK_BYTES;
			n -= z.avail_in;
		}
		z.next_out = block;
		z.avail_out = sizeof(block);
		step = inflate(&z, Z_NO_FLUSH);
		*crc = (uint32_t)crc32(*crc, block, (uInt)(sizeof(block) - z.avail_out));
		buf_put(out, block, sizeof(block) - z.avail_out);
	}
	inflateEnd(&z);
	return step == Z_STREAM_END ? 0 : step == Z_MEM_ERROR ? ERR_MEMORY : ERR_FORMAT;
}

/* The head of the next file, with c at its data; NULL = there is none. */
static const uint8_t *next_file(struct cursor *c, const uint8_t **called, size_t *ncalled)
{
	const uint8_t *head = unzip_is_zip(c->at, cursor_left(c)) ? cursor_take(c, LOCAL_BYTES)
								   : NULL;

	*ncalled = head ? le16(head + 26) : 0;
	*called = head ? cursor_take(c, *ncalled) : NULL;
	return *called && cursor_skip(c, le16(head + 28)) ? head : NULL;
}

int unzip_file(const void *bytes, size_t n, const char *ending, const char *name, struct buf *out,
	       struct err *err)
{
	size_t nending = strlen(ending), ncalled;
	struct cursor c = cursor_over(bytes, n);
	const uint8_t *called, *head = next_file(&c, &called, &ncalled);
	uint32_t crc = 0, told, packed;
	int rc = 0;

	if (!head)
		return err_set(err, ERR_FORMAT, "%s is a .zip that is cut in its beginning", name);
	while (head && (ncalled < nending ||
			memcmp(called + ncalled - nending, ending, nending) != 0))
		head = !(le16(head + 6) & FLAG_SIZES_FOLLOW) && cursor_skip(&c, le32(head + 18))
			       ? next_file(&c, &called, &ncalled) : NULL;
	if (!head)
		return err_set(err, ERR_FORMAT, "%s has no file that ends in %s: unpack it, and "
			       "read what is in it", name, ending);
	told = le32(head + 14);
	packed = le32(head + 18);
	if (le16(head + 6) & FLAG_ENCRYPTED ||
	    (le16(head + 8) != METHOD_DEFLATED && le16(head + 8) != METHOD_STORED))
		return err_set(err, ERR_UNSUPPORTED, "%s is a .zip that is encrypted, or packed in "
			       "another way than others: unpack it", name);
	if (le16(head + 8) == METHOD_DEFLATED) {
		rc = inflate_all(c.at, cursor_left(&c), -MAX_WBITS, &crc, out);
	} else if (cursor_left(&c) < packed) {
		rc = ERR_FORMAT;
	} else {
		buf_put(out, c.at, packed);
		crc = (uint32_t)crc32(0, c.at, packed);
	}
	if (out->failed)
		return buf_check(out, name, err);
	if (rc == ERR_MEMORY)
		return err_memory(err, "for unpacking %s", name);
	/* Where the checksum follows the data, it is 0 here. */
	if (rc || (told && told != crc))
		return err_set(err, ERR_FORMAT, "%s is a .zip that is damaged: copy it again",
			       name);
	return 0;
}

int unzip_gzip(const void *bytes, size_t n, const char *name, struct buf *out, struct err *err)
{
	uint32_t crc = 0;
	int rc = inflate_all(bytes, n, MAX_WBITS + GZIP_WINDOW, &crc, out);

	if (out->failed)
		return buf_check(out, name, err);
	if (rc == ERR_MEMORY)
		return err_memory(err, "for unpacking %s", name);
	if (rc)
		return err_set(err, ERR_FORMAT, "%s is a gzip file that is damaged: copy it "
			       "again", name);
	return 0;
}
