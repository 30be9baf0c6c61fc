#include "tests/support/lz77_pack.h"

#include "source/etl/lz77.h"

#include <string.h>

enum { HASH_BITS = 14, MATCH_MIN = 4, LENGTH_IN_TOKEN = 7 };

struct packer {
	struct buf *out;
	size_t flags_at, nibble_at;          /* in out; 0 = none is open */
	unsigned nflags;
	uint32_t flags;
};

static void put_le(struct buf *out, uint32_t v, unsigned n)
{
	while (n--) {
		buf_putc(out, (char)(v & 255));
		v >>= 8;
	}
}

static void close_flags(struct packer *p)
{
	if (p->nflags == 0)
		return;
	p->flags <<= 32 - p->nflags;
	for (unsigned i = 0; i < 4; i++)
		p->out->data[p->flags_at + i] = (char)(p->flags >> 8 * i & 255);
	p->nflags = 0;
	p->flags = 0;
}

static void put_flag(struct packer *p, unsigned flag)
{
	if (p->nflags == 0) {
		p->flags_at = p->out->len;
		put_le(p->out, 0, 4);
	}
	p->flags = p->flags << 1 | flag;
	if (++p->nflags == 32)
		close_flags(p);
}

static void put_match(struct packer *p, size_t distance, size_t length)
{
	uint32_t rest = (uint32_t)length - 3;
	uint32_t nibble;

	put_flag(p, 1);
	put_le(p->out,
	       (uint32_t)(distance - 1) << 3 | (rest < LENGTH_IN_TOKEN ? rest : LENGTH_IN_TOKEN),
	       2);
	if (rest < LENGTH_IN_TOKEN)
		return;
	nibble = rest - LENGTH_IN_TOKEN < 15 ? rest - LENGTH_IN_TOKEN : 15;
	if (p->nibble_at) {
		p->out->data[p->nibble_at] = (char)((unsigned char)p->out->data[p->nibble_at] |
						    nibble << 4);
		p->nibble_at = 0;
	} else {
		p->nibble_at = p->out->len;
		put_le(p->out, nibble, 1);
	}
	if (nibble < 15)
		return;
	if (rest - 22 < 255) {
		put_le(p->out, rest - 22, 1);
		return;
	}
	put_le(p->out, 255, 1);
	put_le(p->out, rest <= UINT16_MAX ? rest : 0, 2);
	if (rest > UINT16_MAX)
		put_le(p->out, rest, 4);
}

static uint32_t hash4(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, 4);
	return v * 2654435761u >> (32 - HASH_BITS);
}

void lz77_pack(const uint8_t *bytes, size_t n, struct buf *out)
{
	/* place + 1 of the latest 4 bytes that hash so */
	static uint32_t last[1u << HASH_BITS];
	struct packer p = {.out = out};
	size_t at = 0;

	memset(last, 0, sizeof(last));
	while (at < n && !out->failed) {
		size_t from = 0, length = 0;

		if (n - at >= MATCH_MIN) {
			uint32_t h = hash4(bytes + at);

			from = last[h];
			last[h] = (uint32_t)at + 1;
		}
		if (from && at + 1 - from <= LZ77_DISTANCE_MAX)
			while (at + length < n && bytes[from - 1 + length] == bytes[at + length])
				length++;
		if (length < MATCH_MIN) {
			put_flag(&p, 0);
			put_le(out, bytes[at++], 1);
		} else {
			put_match(&p, at + 1 - from, length);
			at += length;
		}
	}
	close_flags(&p);
}
