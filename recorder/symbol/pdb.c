/*
 * A PDB is an MSF: streams, each a list of blocks of the file.
 *
 *  block 0       0 magic, 32 bytes  32 u32 bytes of a block  40 u32 blocks
 *               44 u32 bytes of the directory  52 u32 block that lists the directory's blocks
 *  directory    u32 nstreams, u32 bytes of each stream (~0 = none), then the blocks of each, u32
 *
 *  stream 1      8 u32 age  12 GUID
 *  stream 3      DBI, 64 bytes and parts of given sizes: 8 u32 age  20 u16 stream of symbol records
 *               24 seven i32 sizes of parts, the sixth of which is 48 debug header
 *               58 u16 machine
 *               debug header: u16 each; the sixth is the stream of the image's section headers
 *  records       u16 bytes that follow, u16 kind; S_PUB32: 4 u32 flags  8 u32 offset
 *               12 u16 section, from 1  14 name
 *
 *  object files of DBI's first part, aligned to 4: 34 u16 stream  36 u32 bytes of its symbols
 *               64 name, NUL, name, NUL
 *  their stream u32 4, then records; S_GPROC32, S_LPROC32: 16 u32 bytes of code  32 u32 offset
 *               36 u16 section  39 name
 */
#include "symbol/pdb.h"

#include "base/bytes.h"
#include "symbol/pe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAGIC_BYTES = 32, SUPER_BYTES = 56, BLOCK_LEAST = 512, BLOCK_MOST = 65536,
	STREAM_INFO = 1, STREAM_DBI = 3, STREAM_NONE = 0xFFFF,
	INFO_BYTES = 28, DBI_BYTES = 64, DBI_STRIPPED = 2, MODULE_HEAD_BYTES = 64,
	DEBUG_SECTIONS = 5, SECTION_BYTES = 40, SECTIONS_MAX = 96, SECTION_EXECUTE = 0x20000000,

	S_PUB32 = 0x110e, S_LPROC32 = 0x110f, S_GPROC32 = 0x1110,
	S_LPROC32_ID = 0x1146, S_GPROC32_ID = 0x1147,
	PROC_NAME_AT = 39, PUBLIC_NAME_AT = 14, PUBLIC_CODE = 1, PUBLIC_FUNCTION = 2,
	WINDOW_BYTES = 1 << 20, RECORD_MAX_BYTES = 65537,
	RANK_PROCEDURE = 0, RANK_CODE = 1, RANK_FUNCTION = 2,
};

#define STREAM_ABSENT UINT32_MAX

static const uint8_t magic[MAGIC_BYTES] = "Microsoft C/C++ MSF 7.00\r\n\x1a" "DS\0\0";

/* ---- MSF: streams ---------------------------------------------------------------------------- */

struct msf {
	const struct bytes *in;
	uint32_t block_bytes;
	uint8_t *directory;
	uint32_t directory_bytes, nstreams;
	struct err *err;
};

struct stream {
	uint32_t nbytes;
	const uint8_t *blocks;               /* u32 each, in the directory */
};

static uint32_t blocks_of(const struct msf *m, uint32_t nbytes)
{
	return nbytes / m->block_bytes + (nbytes % m->block_bytes != 0);
}

/* Read n bytes at an offset of a stream whose blocks are listed. */
static int read_blocks(const struct msf *m, const uint8_t *blocks, uint32_t offset, void *to,
		       uint32_t n, const char *what)
{
	uint8_t *at = to;
	int rc = 0;

	while (n && !rc) {
		uint32_t inside = offset % m->block_bytes;
		uint32_t part = m->block_bytes - inside < n ? m->block_bytes - inside : n;
		uint64_t block = le32(blocks + (size_t)(offset / m->block_bytes) * 4);

		rc = bytes_read(m->in, block * m->block_bytes + inside, at, part, what, m->err);
		at += part;
		offset += part;
		n -= part;
	}
	return rc;
}

static int not_pdb(struct err *err)
{
	return err_set(err, ERR_FORMAT, "it is not a PDB (MSF 7)");
}

static int open_msf(const struct bytes *in, struct msf *m, struct err *err)
{
	uint8_t super[SUPER_BYTES], *list;
	uint32_t nlist;
	int rc;

	*m = (struct msf){.in = in, .err = err};
	if (in->size < SUPER_BYTES)
		return not_pdb(err);
	rc = bytes_read(in, 0, super, sizeof(super), "its first block", err);
	if (rc)
		return rc;
	m->block_bytes = le32(super + 32);
	m->directory_bytes = le32(super + 44);
	if (memcmp(super, magic, MAGIC_BYTES) != 0 || m->block_bytes < BLOCK_LEAST ||
	    m->block_bytes > BLOCK_MOST || m->directory_bytes < 4)
		return not_pdb(err);
	if (m->directory_bytes > PDB_DIRECTORY_MAX_BYTES || m->directory_bytes > in->size)
		return err_set(err, ERR_LIMIT, "its list of streams has %u bytes",
			       m->directory_bytes);
	nlist = blocks_of(m, m->directory_bytes);
	list = malloc((size_t)nlist * 4);
	m->directory = malloc(m->directory_bytes);
	if (!list || !m->directory)
		rc = err_memory(err, "for its list of streams");
	if (!rc)
		rc = bytes_read(in, (uint64_t)le32(super + 52) * m->block_bytes, list,
				(size_t)nlist * 4, "the list of its list of streams", err);
	if (!rc)
		rc = read_blocks(m, list, 0, m->directory, m->directory_bytes,
				 "its list of streams");
	free(list);
	if (rc)
		return rc;
	m->nstreams = le32(m->directory);
	if (m->nstreams > (m->directory_bytes - 4) / 4)
		return err_set(err, ERR_FORMAT, "its list of streams is cut off");
	return 0;
}

/* A stream's blocks follow those of the streams before it. */
static int find_stream(const struct msf *m, uint32_t number, struct stream *out, const char *what)
{
	uint64_t at = 4 + (uint64_t)m->nstreams * 4;
	uint32_t nbytes;

	if (number >= m->nstreams)
		return err_set(m->err, ERR_FORMAT, "it has no stream of %s", what);
	for (uint32_t i = 0; i < number; i++) {
		nbytes = le32(m->directory + 4 + (size_t)i * 4);
		at += nbytes == STREAM_ABSENT ? 0 : (uint64_t)blocks_of(m, nbytes) * 4;
	}
	nbytes = le32(m->directory + 4 + (size_t)number * 4);
	if (nbytes == STREAM_ABSENT)
		nbytes = 0;
	if (at + (uint64_t)blocks_of(m, nbytes) * 4 > m->directory_bytes)
		return err_set(m->err, ERR_FORMAT, "its list of streams is cut off");
	*out = (struct stream){nbytes, m->directory + at};
	return 0;
}

static int read_stream(const struct msf *m, const struct stream *s, uint32_t offset, void *to,
		       uint32_t n, const char *what)
{
	if (offset > s->nbytes || n > s->nbytes - offset)
		return err_set(m->err, ERR_FORMAT, "%s is cut off", what);
	return read_blocks(m, s->blocks, offset, to, n, what);
}

/* ---- identity -------------------------------------------------------------------------------- */

static int read_dbi(const struct msf *m, struct stream *dbi, uint8_t head[DBI_BYTES])
{
	int rc = find_stream(m, STREAM_DBI, dbi, "debug information");

	return rc ? rc : read_stream(m, dbi, 0, head, DBI_BYTES, "its debug information");
}

int pdb_head_read(const struct bytes *in, struct pdb_head *out, struct err *err)
{
	uint8_t info[INFO_BYTES], dbi_head[DBI_BYTES];
	struct stream s, dbi;
	struct msf m;
	int rc;

	rc = open_msf(in, &m, err);
	if (!rc)
		rc = find_stream(&m, STREAM_INFO, &s, "identity");
	if (!rc)
		rc = read_stream(&m, &s, 0, info, sizeof(info), "its identity");
	if (!rc)
		rc = read_dbi(&m, &dbi, dbi_head);
	free(m.directory);
	if (rc)
		return rc;
	memcpy(out->guid, info + 12, 16);
	out->age = le32(dbi_head + 8);
	out->stripped = le16(dbi_head + 56) & DBI_STRIPPED;
	return 0;
}

/* ---- public symbols -------------------------------------------------------------------------- */

struct section {
	uint32_t rva, end;
	bool executable;
};

struct publics {
	struct msf msf;
	struct rva_index *index;
	struct section sections[SECTIONS_MAX];
	uint8_t *window;
	uint32_t nsections, machine;
	uint64_t end_ns;
};

/* The sizes of the parts before the debug header are signed; none may be negative. */
static int find_sections(struct publics *p, const struct stream *dbi, const uint8_t *head,
			 uint32_t *stream)
{
	static const uint8_t before[] = {24, 28, 32, 36, 40, 52};
	uint64_t at = DBI_BYTES + DEBUG_SECTIONS * 2;
	uint8_t number[2];
	int rc;

	for (size_t i = 0; i < sizeof(before); i++)
		at += le32(head + before[i]);
	if (at > UINT32_MAX || le32(head + 48) < (DEBUG_SECTIONS + 1) * 2)
		return err_set(p->msf.err, ERR_FORMAT, "it has no list of sections");
	rc = read_stream(&p->msf, dbi, (uint32_t)at, number, 2, "its debug header");
	*stream = rc ? 0 : le16(number);
	return rc;
}

static int read_sections(struct publics *p, uint32_t stream)
{
	uint8_t header[SECTION_BYTES];
	struct stream s;
	int rc;

	rc = find_stream(&p->msf, stream, &s, "sections");
	for (uint32_t i = 0; !rc && i < SECTIONS_MAX && (i + 1) * SECTION_BYTES <= s.nbytes; i++) {
		rc = read_stream(&p->msf, &s, i * SECTION_BYTES, header, sizeof(header),
				 "a section");
		if (rc)
			break;
		p->sections[i].rva = le32(header + 12);
		p->sections[i].end = p->sections[i].rva + le32(header + 8);
		if (p->sections[i].end < p->sections[i].rva)
			p->sections[i].end = UINT32_MAX;
		p->sections[i].executable = le32(header + 36) & SECTION_EXECUTE;
		p->nsections = i + 1;
	}
	return rc;
}

/* The section of code that an offset lies in, section counted from 1; NULL = there is none. */
static const struct section *find_code(const struct publics *p, uint32_t section, uint32_t offset)
{
	const struct section *s;

	if (section == 0 || section > p->nsections)
		return NULL;
	s = &p->sections[section - 1];
	return s->executable && offset < s->end - s->rva ? s : NULL;
}

/* A procedure also says where it ends, which bounds the public name at the same place. */
static int add_procedure(struct publics *p, const uint8_t *at, uint32_t n)
{
	uint32_t kind = le16(at + 2), size, offset, rva;
	const struct section *s;
	int rc;

	if (n <= PROC_NAME_AT || (kind != S_LPROC32 && kind != S_GPROC32 && kind != S_LPROC32_ID &&
				  kind != S_GPROC32_ID))
		return 0;
	size = le32(at + 16);
	offset = le32(at + 32);
	s = find_code(p, le16(at + 36), offset);
	if (!s || size > s->end - s->rva - offset)
		return 0;
	rva = s->rva + offset;
	rc = rva_index_add(p->index, rva, rva + size, RANK_PROCEDURE,
			   (const char *)at + PROC_NAME_AT, n - PROC_NAME_AT, p->msf.err);
	return rc ? rc : rva_index_bound(p->index, rva, rva + size, p->msf.err);
}

static int add_public(struct publics *p, const uint8_t *at, uint32_t n)
{
	const char *name = (const char *)at + PUBLIC_NAME_AT;
	size_t nname = n - PUBLIC_NAME_AT;
	const struct section *s;
	uint32_t flags;

	if (n <= PUBLIC_NAME_AT || le16(at + 2) != S_PUB32)
		return 0;
	s = find_code(p, le16(at + 12), le32(at + 8));
	if (!s)
		return 0;
	flags = le32(at + 4);
	name = pe_undecorated(p->machine, name, &nname);
	return rva_index_add(p->index, s->rva + le32(at + 8), s->end,
			     flags & PUBLIC_FUNCTION ? RANK_FUNCTION
			     : flags & PUBLIC_CODE   ? RANK_CODE
						     : 0,
			     name, nname, p->msf.err);
}

typedef int add_record(struct publics *p, const uint8_t *at, uint32_t n);

/* Read the records in a window; those that begin near its end are left to the next one. */
static int add_window(struct publics *p, add_record *add, uint32_t n, bool last, uint32_t *used)
{
	uint32_t at = 0, nbytes;
	int rc = 0;

	while (!rc && n - at >= 4 && (last || n - at >= RECORD_MAX_BYTES)) {
		nbytes = le16(p->window + at) + 2;
		if (nbytes < 4 || nbytes > n - at)
			return err_set(p->msf.err, ERR_FORMAT, "its symbol records are damaged");
		rc = add(p, p->window + at, nbytes);
		at += nbytes;
	}
	*used = at;
	return rc;
}

/* Read the records of a stream, which may be absent, from `at` to `end` or its own end. */
static int read_records(struct publics *p, uint32_t number, uint32_t at, uint32_t end,
			add_record *add, const char *what)
{
	uint32_t n, used = 1;
	struct stream s;
	int rc;

	if (number == STREAM_NONE || at >= end)
		return 0;
	rc = find_stream(&p->msf, number, &s, what);
	if (rc)
		return rc;
	if (end == UINT32_MAX)
		end = s.nbytes;
	if (end > PDB_RECORDS_MAX_BYTES)
		return err_set(p->msf.err, ERR_LIMIT, "its symbols take %u bytes", end);
	while (!rc && used && at < end) {
		n = end - at < WINDOW_BYTES ? end - at : WINDOW_BYTES;
		rc = read_stream(&p->msf, &s, at, p->window, n, "its symbol records");
		if (!rc)
			rc = add_window(p, add, n, at + n == end, &used);
		at += used;
		if (!rc && os_now_ns() > p->end_ns)
			rc = err_set(p->msf.err, ERR_LIMIT, "reading its symbols took too long");
	}
	return rc;
}

static int read_modules(struct publics *p, const struct stream *dbi, uint32_t nbytes)
{
	uint8_t *modules;
	size_t at = 0, names;
	int rc;

	if (nbytes > PDB_DIRECTORY_MAX_BYTES)
		return err_set(p->msf.err, ERR_LIMIT, "its list of object files has %u bytes",
			       nbytes);
	modules = malloc((size_t)nbytes + 1);
	if (!modules)
		return err_memory(p->msf.err, "for its object files");
	rc = read_stream(&p->msf, dbi, DBI_BYTES, modules, nbytes, "its list of object files");
	while (!rc && nbytes - at > MODULE_HEAD_BYTES) {
		rc = read_records(p, le16(modules + at + 34), 4, le32(modules + at + 36),
				  add_procedure, "an object file's symbols");
		names = at + MODULE_HEAD_BYTES;
		for (unsigned i = 0; i < 2 && names < nbytes; i++)
			names += strnlen((char *)modules + names, nbytes - names) + 1;
		at = (names + 3) & ~(size_t)3;
		if (at > nbytes)
			at = nbytes;
	}
	free(modules);
	return rc;
}

int pdb_functions(const struct bytes *in, struct rva_index *index, struct err *err)
{
	struct publics p = {.index = index, .end_ns = os_now_ns() + PDB_MAX_NS};
	uint8_t head[DBI_BYTES];
	struct stream dbi;
	uint32_t sections = 0;
	int rc;

	rc = open_msf(in, &p.msf, err);
	p.window = rc ? NULL : malloc(WINDOW_BYTES);
	if (!rc && !p.window)
		rc = err_memory(err, "for its symbols");
	if (!rc)
		rc = read_dbi(&p.msf, &dbi, head);
	if (!rc) {
		p.machine = le16(head + 58);
		rc = find_sections(&p, &dbi, head, &sections);
	}
	if (!rc)
		rc = read_sections(&p, sections);
	if (!rc)
		rc = read_records(&p, le16(head + 20), 0, UINT32_MAX, add_public, "symbol records");
	if (!rc)
		rc = read_modules(&p, &dbi, le32(head + 24));
	free(p.msf.directory);
	free(p.window);
	return rc;
}
