/*
 * The compact XML in a zip archive, as PerfView opens it: exactly one deflated entry, named like
 * the archive without ".zip". Source: PKWARE APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16.
 *
 *	local header     u32 "PK\3\4", u16 version 20, entry (below), name; then the deflate data
 *	central header   u32 "PK\1\2", u16 made by 20, u16 version 20, entry, u16 comment bytes = 0,
 *	                 u16 disk = 0, u16 internal = 0, u32 external = 0, u32 local at = 0, name
 *	end              u32 "PK\5\6", u16 disk = 0, u16 disk = 0, u16 entries = 1, u16 entries = 1,
 *	                 u32 central bytes, u32 central at, u16 comment bytes = 0
 *
 *	entry            u16 flags (bit 11: the name is UTF-8), u16 method 8, u16 time, u16 date,
 *	                 u32 crc, u32 packed bytes, u32 plain bytes, u16 name bytes, u16 extra = 0
 *
 * All little endian. Time and date are those of 1980-01-01, so that equal content is an equal file.
 */
#include "export/perfview.h"

#include "base/utf8.h"

#include <string.h>
#include <zlib.h>

#define METHOD_DEFLATE 8u
#define FLAG_UTF8 0x800u
#define DATE_1980 0x21u
#define NAME_MAX_BYTES 255u
#define DEFAULT_NAME "incident.perfView.xml"
#define CHUNK_BYTES 65536u

struct zip {
	const char *name;
	uint32_t name_bytes;
	uint32_t crc;
	struct buf plain, packed;
};

static void put_u16(struct buf *out, uint32_t v)
{
	buf_putc(out, (char)(v & 0xff));
	buf_putc(out, (char)(v >> 8 & 0xff));
}

static void put_u32(struct buf *out, uint32_t v)
{
	put_u16(out, v & 0xffff);
	put_u16(out, v >> 16);
}

static void put_entry(struct buf *out, const struct zip *z)
{
	put_u16(out, FLAG_UTF8);
	put_u16(out, METHOD_DEFLATE);
	put_u16(out, 0);
	put_u16(out, DATE_1980);
	put_u32(out, z->crc);
	put_u32(out, (uint32_t)z->packed.len);
	put_u32(out, (uint32_t)z->plain.len);
	put_u16(out, z->name_bytes);
	put_u16(out, 0);
}

static void put_local(struct buf *out, const struct zip *z)
{
	put_u32(out, 0x04034b50);
	put_u16(out, 20);
	put_entry(out, z);
	buf_put(out, z->name, z->name_bytes);
}

static void put_central(struct buf *out, const struct zip *z)
{
	put_u32(out, 0x02014b50);
	put_u16(out, 20);
	put_u16(out, 20);
	put_entry(out, z);
	put_u16(out, 0);
	put_u16(out, 0);
	put_u16(out, 0);
	put_u32(out, 0);
	put_u32(out, 0);
	buf_put(out, z->name, z->name_bytes);
}

static void put_end(struct buf *out, size_t central_at, size_t central_bytes)
{
	put_u32(out, 0x06054b50);
	put_u16(out, 0);
	put_u16(out, 0);
	put_u16(out, 1);
	put_u16(out, 1);
	put_u32(out, (uint32_t)central_bytes);
	put_u32(out, (uint32_t)central_at);
	put_u16(out, 0);
}

static bool is_text(const char *text, size_t n)
{
	const char *end = text + n;
	size_t len = 1;

	for (; text < end && len; text += len)
		len = (unsigned char)*text < 0x20 ? 0 : utf8_char(text, end);
	return len != 0;
}

/* The base name of the archive without ".zip"; a path in an archive would be a trap. */
static void name_entry(struct zip *z, const char *file_name)
{
	const char *at, *name = file_name ? file_name : "";
	size_t n;

	for (at = name; *at; at++) {
		if (*at == '/' || *at == '\\' || *at == ':')
			name = at + 1;
	}
	n = strlen(name);
	if (n > 4 && n <= NAME_MAX_BYTES && (strcmp(name + n - 4, ".zip") == 0 ||
					     strcmp(name + n - 4, ".ZIP") == 0) &&
	    is_text(name, n)) {
		z->name = name;
		z->name_bytes = (uint32_t)n - 4;
	} else {
		z->name = DEFAULT_NAME;
		z->name_bytes = sizeof(DEFAULT_NAME) - 1;
	}
}

static int deflate_all(z_stream *stream, struct buf *packed)
{
	char *to;
	int rc;

	do {
		to = buf_reserve(packed, CHUNK_BYTES);
		if (!to)
			return packed->failed;
		stream->next_out = (Bytef *)to;
		stream->avail_out = CHUNK_BYTES;
		rc = deflate(stream, Z_FINISH);
		if (rc == Z_STREAM_ERROR)
			return ERR_MEMORY;
		buf_advance(packed, CHUNK_BYTES - stream->avail_out);
	} while (rc != Z_STREAM_END);
	return 0;
}

/* Both fit 32 bits: a buf ends at 1 GiB. */
static int pack(struct zip *z, struct err *err)
{
	z_stream stream = {0};
	int rc = ERR_MEMORY;

	z->crc = (uint32_t)crc32(0, (const Bytef *)buf_text(&z->plain), (uInt)z->plain.len);
	stream.next_in = (Bytef *)z->plain.data;
	stream.avail_in = (uInt)z->plain.len;
	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8,
			 Z_DEFAULT_STRATEGY) == Z_OK) {
		rc = deflate_all(&stream, &z->packed);
		deflateEnd(&stream);
	}
	return rc ? err_set(err, (enum err_code)rc, "out of memory while packing the zip file") : 0;
}

static int write_archive(const struct zip *z, struct out *out, struct err *err)
{
	struct buf local = {0}, central = {0};
	int rc;

	put_local(&local, z);
	put_central(&central, z);
	put_end(&central, local.len + z->packed.len, central.len);
	rc = buf_check(&local, "the zip file", err);
	if (!rc)
		rc = buf_check(&central, "the zip file", err);
	if (!rc) {
		out_put(out, local.data, local.len);
		out_put(out, z->packed.data, z->packed.len);
		out_put(out, central.data, central.len);
	}
	buf_free(&local);
	buf_free(&central);
	return rc;
}

static int zip_write(const struct incident *in, const struct export_options *opt,
		     struct out *out, struct err *err)
{
	struct zip z = {0};
	struct out *xml = NULL;
	int rc;

	name_entry(&z, opt->file_name);
	rc = out_to_buf(&z.plain, &xml, err);
	if (!rc) {
		rc = perfview_xml_write(in, opt, xml, err);
		if (rc)
			out_abandon(xml);
		else
			rc = out_close(xml, err);
	}
	if (!rc)
		rc = pack(&z, err);
	if (!rc)
		rc = write_archive(&z, out, err);
	buf_free(&z.plain);
	buf_free(&z.packed);
	return rc;
}

const struct exporter perfview_xml_zip_exporter = {
	.name = "perfview-xml-zip",
	.suffix = ".perfView.xml.zip",
	.summary = "the same, packed: it opens it so",
	.binary = true,
	.usual = true,
	.write = zip_write,
};
