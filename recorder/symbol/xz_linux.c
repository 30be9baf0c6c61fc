/*
 * Source of the function's declaration and its numbers: liblzma 5.2, lzma/container.h and
 * lzma/base.h. It takes plain integers and bytes only, so building needs no header of liblzma.
 */
#include "symbol/xz.h"

#include "base/os.h"

#include <dlfcn.h>
#include <string.h>

enum { LZMA_OK = 0, LZMA_MEM_ERROR = 5, LZMA_MEMLIMIT_ERROR = 6, LZMA_BUF_ERROR = 10 };

typedef int stream_buffer_decode(uint64_t *memlimit, uint32_t flags, const void *allocator,
				 const uint8_t *in, size_t *in_pos, size_t in_size, uint8_t *out,
				 size_t *out_pos, size_t out_size);

#define RATIO_GUESS 8                    /* symbols pack to a fourth, so one attempt is enough */
#define ROOM_MIN_BYTES 65536u

static int unpack_into(stream_buffer_decode *decode, const uint8_t *in, size_t n, size_t room,
		       struct buf *out)
{
	uint64_t memory = XZ_MEMORY_BYTES;
	size_t in_at = 0, out_at = 0;
	char *to = buf_reserve(out, room);
	int rc;

	if (!to)
		return LZMA_MEM_ERROR;
	rc = decode(&memory, 0, NULL, in, &in_at, n, (uint8_t *)to, &out_at, room);
	if (rc == LZMA_OK)
		buf_advance(out, out_at);
	return rc;
}

/*
 * liblzma does not tell the size of the output in advance: a buffer that is too small is doubled.
 * Each attempt takes a time bounded by n and the buffer.
 */
static int unpack_growing(stream_buffer_decode *decode, const void *in, size_t n, size_t max_bytes,
			  struct buf *out, struct err *err)
{
	uint64_t end_ns = os_now_ns() + XZ_MAX_NS;
	size_t room = n > max_bytes / RATIO_GUESS ? max_bytes : n * RATIO_GUESS;
	int rc;

	if (room < ROOM_MIN_BYTES)
		room = ROOM_MIN_BYTES < max_bytes ? ROOM_MIN_BYTES : max_bytes;
	for (;;) {
		rc = unpack_into(decode, in, n, room, out);
		if (rc != LZMA_BUF_ERROR || room == max_bytes)
			break;
		if (os_now_ns() > end_ns)
			return err_set(err, ERR_LIMIT, "unpacking its symbols took too long");
		room = room > max_bytes / 2 ? max_bytes : room * 2;
	}
	switch (rc) {
	case LZMA_OK:
		return 0;
	case LZMA_MEM_ERROR:
		return err_memory(err, "for its packed symbols");
	case LZMA_MEMLIMIT_ERROR:
		return err_set(err, ERR_LIMIT, "unpacking its symbols takes over %u MB",
			       (unsigned)(XZ_MEMORY_BYTES >> 20));
	case LZMA_BUF_ERROR:
		return err_set(err, ERR_LIMIT,
			       "its packed symbols are cut off, or larger than %zu MB",
			       max_bytes >> 20);
	default:
		return err_set(err, ERR_FORMAT, "its packed symbols are damaged (liblzma error %d)",
			       rc);
	}
}

static void *open_library(void)
{
	return dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);
}

void xz_load(void)
{
	open_library();
}

int xz_unpack(const void *in, size_t n, size_t max_bytes, struct buf *out, struct err *err)
{
	void *library = open_library();
	void *symbol = library ? dlsym(library, "lzma_stream_buffer_decode") : NULL;
	stream_buffer_decode *decode;
	int rc;

	if (symbol) {
		memcpy(&decode, &symbol, sizeof(decode));    /* ISO C has no cast for it */
		rc = unpack_growing(decode, in, n, max_bytes, out, err);
	} else {
		rc = err_set(err, ERR_UNSUPPORTED, "its symbols are packed, and liblzma.so.5, "
			     "which unpacks them, is missing: install liblzma5 or xz-libs");
	}
	if (library)
		dlclose(library);
	return rc;
}
