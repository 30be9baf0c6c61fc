#include "export/gzip.h"

#include <zlib.h>

#define CHUNK_BYTES 65536u
#define OS_UNKNOWN 255                       /* zlib would write which system it runs on */

int gzip_write(const struct buf *plain, struct out *out, struct err *err)
{
	unsigned char chunk[CHUNK_BYTES];
	gz_header header = {.os = OS_UNKNOWN};
	z_stream stream = {0};
	int rc;

	stream.next_in = (Bytef *)plain->data;
	stream.avail_in = (uInt)plain->len;  /* a buf ends at 1 GiB */
	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return err_memory(err, "while packing");
	deflateSetHeader(&stream, &header);
	do {
		stream.next_out = chunk;
		stream.avail_out = CHUNK_BYTES;
		rc = deflate(&stream, Z_FINISH);
		out_put(out, chunk, CHUNK_BYTES - stream.avail_out);
	} while (rc == Z_OK || rc == Z_BUF_ERROR);
	deflateEnd(&stream);
	return 0;
}
