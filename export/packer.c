#include "export/packer.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LINE_BYTES = 57, CHUNK_BYTES = 16384, WAITING_BYTES = 32768 };

struct packer {
	struct out *out;
	z_stream z;
	unsigned char waiting[WAITING_BYTES];        /* small pieces, for deflate() as one */
	size_t nwaiting;
	unsigned char line[LINE_BYTES];
	size_t nline;
};

static void put_line(struct packer *p)
{
	char text[LINE_BYTES / 3 * 4 + 1];
	size_t len = text_base64(p->line, p->nline, text);

	text[len++] = '\n';
	out_put(p->out, text, len);
	p->nline = 0;
}

static void put_packed(struct packer *p, const unsigned char *bytes, size_t n)
{
	size_t part;

	for (; n; n -= part, bytes += part) {
		part = LINE_BYTES - p->nline < n ? LINE_BYTES - p->nline : n;
		memcpy(p->line + p->nline, bytes, part);
		p->nline += part;
		if (p->nline == LINE_BYTES)
			put_line(p);
	}
}

static void run(struct packer *p, int flush)
{
	unsigned char chunk[CHUNK_BYTES];
	int rc;

	p->z.next_in = p->waiting;
	p->z.avail_in = (uInt)p->nwaiting;
	do {
		p->z.next_out = chunk;
		p->z.avail_out = sizeof(chunk);
		rc = deflate(&p->z, flush);
		put_packed(p, chunk, sizeof(chunk) - p->z.avail_out);
	} while (rc == Z_OK && !p->z.avail_out);
	p->nwaiting = 0;
}

int packer_open(struct out *out, const char *id, struct packer **to, struct err *err)
{
	struct packer *p = calloc(1, sizeof(*p));

	/* Level 4 takes a third of level 6's time; the page is 6 % larger. */
	if (!p || deflateInit(&p->z, 4) != Z_OK) {
		free(p);
		return err_memory(err, "while packing the page's data");
	}
	p->out = out;
	out_printf(out, "<script type=\"text/plain\" id=\"%s\">\n", id);
	*to = p;
	return 0;
}

void packer_put(struct packer *p, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	size_t part;

	for (; n; n -= part, at += part) {
		part = WAITING_BYTES - p->nwaiting < n ? WAITING_BYTES - p->nwaiting : n;
		memcpy(p->waiting + p->nwaiting, at, part);
		p->nwaiting += part;
		if (p->nwaiting == WAITING_BYTES)
			run(p, Z_NO_FLUSH);
	}
}

void packer_close(struct packer *p)
{
	if (!p)
		return;
	run(p, Z_FINISH);
	if (p->nline)
		put_line(p);
	out_puts(p->out, "</script>\n");
	deflateEnd(&p->z);
	free(p);
}
