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
 * Numbers are little endian. Time and date are always 1980-01-01, so equal content gives equal
 * files.
 */
#include "export/perfview.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <string.h>

#define METHOD_DEFLATE 8u
#define FLAG_UTF8 0x800u
#define DATE_1980 0x21u
#define NAME_MAX_BYTES 255u
#define DEFAULT_NAME "incident.perfView.xml"
#define GZIP_HEAD_BYTES 10u
#define GZIP_TAIL_BYTES 8u

struct zip {
	const char *name;
	uint32_t name_bytes;
	struct buf gzip;                     /* owned; packed is in it */
	const char *packed;
	uint32_t packed_bytes, plain_bytes, crc;
};

static void put_entry(struct buf *out, const struct zip *z)
{
	buf_put_le(out, FLAG_UTF8, 2);
	buf_put_le(out, METHOD_DEFLATE, 2);
	buf_put_le(out, 0, 2);
	buf_put_le(out, DATE_1980, 2);
	buf_put_le(out, z->crc, 4);
	buf_put_le(out, z->packed_bytes, 4);
	buf_put_le(out, z->plain_bytes, 4);
	buf_put_le(out, z->name_bytes, 2);
	buf_put_le(out, 0, 2);
}

static void put_local(struct buf *out, const struct zip *z)
{
	buf_put_le(out, 0x04034b50, 4);
	buf_put_le(out, 20, 2);
	put_entry(out, z);
	buf_put(out, z->name, z->name_bytes);
}

static void put_central(struct buf *out, const struct zip *z)
{
	buf_put_le(out, 0x02014b50, 4);
	buf_put_le(out, 20, 2);
	buf_put_le(out, 20, 2);
	put_entry(out, z);
	buf_put_le(out, 0, 2);
	buf_put_le(out, 0, 2);
	buf_put_le(out, 0, 2);
	buf_put_le(out, 0, 4);
	buf_put_le(out, 0, 4);
	buf_put(out, z->name, z->name_bytes);
}

static void put_end(struct buf *out, size_t central_at, size_t central_bytes)
{
	buf_put_le(out, 0x06054b50, 4);
	buf_put_le(out, 0, 2);
	buf_put_le(out, 0, 2);
	buf_put_le(out, 1, 2);
	buf_put_le(out, 1, 2);
	buf_put_le(out, (uint32_t)central_bytes, 4);
	buf_put_le(out, (uint32_t)central_at, 4);
	buf_put_le(out, 0, 2);
}

static bool is_text(const char *text, size_t n)
{
	const char *end = text + n;
	size_t len = 1;

	for (; text < end && len; text += len)
		len = (unsigned char)*text < 0x20 ? 0 : utf8_char(text, end);
	return len != 0;
}

/* The archive's base name without ".zip"; an entry with a path could be unpacked anywhere. */
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

/*
 * The XML is packed as it is written and never held whole. A gzip file has the data that the
 * archive needs between 10 bytes of header (no name, no extra field) and 8 bytes of CRC and length
 * (RFC 1952).
 */
static int pack(struct zip *z, const struct incident *in, const struct export_options *opt,
		struct err *err)
{
	struct out *xml = NULL;
	uint64_t plain_bytes = 0;
	int rc = out_to_buf(&z->gzip, &xml, err);

	if (rc)
		return rc;
	rc = out_pack(xml, err);
	if (!rc)
		rc = perfview_xml_write(in, opt, xml, err);
	if (rc) {
		out_abandon(xml);
		return rc;
	}
	plain_bytes = out_bytes(xml);
	rc = out_close(xml, err);
	if (!rc && plain_bytes > UINT32_MAX)
		return err_set(err, ERR_LIMIT, "the XML exceeds the 4 GB that a zip file can hold; "
			       "select less with --process, --from and --to");
	if (rc)
		return rc;
	z->packed = z->gzip.data + GZIP_HEAD_BYTES;
	z->packed_bytes = (uint32_t)(z->gzip.len - GZIP_HEAD_BYTES - GZIP_TAIL_BYTES);
	z->crc = le32(z->packed + z->packed_bytes);
	z->plain_bytes = (uint32_t)plain_bytes;
	return 0;
}

static int write_archive(const struct zip *z, struct out *out, struct err *err)
{
	struct buf local = {0}, central = {0};
	int rc;

	put_local(&local, z);
	put_central(&central, z);
	put_end(&central, local.len + z->packed_bytes, central.len);
	rc = buf_check(&local, "the zip file", err);
	if (!rc)
		rc = buf_check(&central, "the zip file", err);
	if (!rc) {
		out_put(out, local.data, local.len);
		out_put(out, z->packed, z->packed_bytes);
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
	int rc;

	name_entry(&z, opt->file_name);
	rc = pack(&z, in, opt, err);
	if (!rc)
		rc = write_archive(&z, out, err);
	buf_free(&z.gzip);
	return rc;
}

const struct exporter perfview_xml_zip_exporter = {
	.name = "perfview-xml-zip",
	.suffix = ".perfView.xml.zip",
	.summary = "the same, packed: it opens it so",
	.binary = true,
	.usual = true,
	.sets = true,
	.write = zip_write,
};
