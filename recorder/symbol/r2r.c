#include "symbol/r2r.h"

#include "base/array.h"
#include "base/bytes.h"
#include "symbol/r2r_private.h"

#include <stdlib.h>
#include <string.h>

#define CLR_DIRECTORY 14u
#define SIGNATURE_R2R 0x00525452u
#define COMPONENT 0x20u                      /* of a composite image, which is another file */
#define BLOCK 16u                            /* of elements in a native array */
#define TYPE_NESTING_MAX 32u
#define NO_NAME UINT32_MAX
#define SCAN_BYTES 65536u

enum { RUNTIME_FUNCTIONS = 102, METHODS = 103, INSTANCES = 109, COMPONENTS = 115, HOT_COLD = 120 };

struct entry {
	uint32_t function, method;           /* its first runtime function; 0 = has no name */
};

struct image {
	const uint8_t *b;
	uint32_t n;
	const uint8_t *sections;             /* of 40 bytes */
	uint32_t nsections;
	struct r2r_bytes functions, methods, instances, hot_cold;    /* to their section's end */
	uint32_t nfunctions;
	struct entry *entries;
	uint32_t nentries, room;
	struct clr_metadata metadata;
	uint32_t *names;                     /* by method, once it has one: where in the text */
};

struct building {
	const struct bytes *in;
	struct elf_index *index;
	uint32_t room;
	struct buf text;
	struct err *err;
};

/* ---- the image ------------------------------------------------------------------------------- */

/* What the file has at an RVA, up to the end of its section; and where in the file. */
static bool at_rva(const struct image *m, uint32_t rva, struct r2r_bytes *out, uint32_t *file_at)
{
	uint32_t i, at, bytes, from;

	for (i = 0; i < m->nsections; i++) {
		const uint8_t *s = m->sections + 40 * i;

		at = le32(s + 12);
		bytes = le32(s + 16);
		from = le32(s + 20);
		if (rva < at || rva - at >= bytes || from > m->n || bytes > m->n - from)
			continue;
		*out = (struct r2r_bytes){.b = m->b + from, .n = bytes, .at = rva - at};
		*file_at = from + (rva - at);
		return true;
	}
	return false;
}

static void take_section(struct image *m, uint32_t type, uint32_t rva, uint32_t bytes)
{
	struct r2r_bytes part;
	uint32_t at;

	if (!at_rva(m, rva, &part, &at))
		return;
	if (type == RUNTIME_FUNCTIONS) {
		m->functions = part;
		m->nfunctions = (bytes < part.n - part.at ? bytes : part.n - part.at) / 12;
	} else if (type == METHODS) {
		m->methods = part;
	} else if (type == INSTANCES) {
		m->instances = part;
	} else if (type == HOT_COLD) {
		m->hot_cold = part;
	}
}

/* u32 signature, u16 major, minor, u32 flags, sections, {u32 type, rva, bytes} */
static bool read_r2r(struct image *m, uint32_t rva)
{
	struct r2r_bytes r;
	uint32_t i, n, at, type, section;

	if (!at_rva(m, rva, &r, &at) || r2r_take(&r, 4) != SIGNATURE_R2R)
		return false;
	r2r_take(&r, 4);
	if (r2r_take(&r, 4) & COMPONENT)
		return false;
	n = r2r_take(&r, 4);
	for (i = 0; i < n && i < 64 && !r.bad; i++) {
		type = r2r_take(&r, 4);
		section = r2r_take(&r, 4);
		if (type == COMPONENTS)
			return false;
		take_section(m, type, section, r2r_take(&r, 4));
	}
	return m->nfunctions && (m->methods.n || m->instances.n);
}

/* The CLR header: +8 metadata {rva, bytes}, +64 the native header. */
static bool read_image(struct image *m)
{
	struct r2r_bytes r = {.b = m->b, .n = m->n, .at = 60}, clr, metadata;
	uint32_t pe, optional, at, rva, bytes;

	if (m->n < 64 || memcmp(m->b, "MZ", 2) != 0)
		return false;
	r.at = pe = r2r_take(&r, 4);
	if (r2r_take(&r, 4) != 0x4550)       /* "PE" */
		return false;
	r2r_take(&r, 2);
	m->nsections = r2r_take(&r, 2);
	r.at = pe + 20;
	optional = r2r_take(&r, 2);
	r2r_take(&r, 2);
	if (r2r_take(&r, 2) != 0x20b)        /* PE32+ */
		return false;
	r.at = pe + 24 + 112 + 8 * CLR_DIRECTORY;
	rva = r2r_take(&r, 4);
	at = pe + 24 + optional;
	if (r.bad || !rva || at > m->n || m->nsections > (m->n - at) / 40)
		return false;
	m->sections = m->b + at;
	if (!at_rva(m, rva, &clr, &at))
		return false;
	clr.at += 8;
	rva = r2r_take(&clr, 4);
	bytes = r2r_take(&clr, 4);
	if (!at_rva(m, rva, &metadata, &at) || bytes > metadata.n - metadata.at)
		return false;
	clr.at += 48;
	return read_r2r(m, r2r_take(&clr, 4)) && !clr.bad &&
	       clr_metadata_open(&m->metadata, metadata.b + metadata.at, bytes);
}

/* ---- native format: integers, arrays, hash tables -------------------------------------------- */

/* As many one bits as bytes follow, then a zero; 4 of them: an u32 follows. */
static uint32_t take_packed(struct r2r_bytes *r)
{
	uint32_t first = r2r_take(r, 1), k = 0, v, i;

	while (k < 5 && first >> k & 1)
		k++;
	if (k >= 4) {
		r->bad |= k > 4;
		return r2r_take(r, 4);
	}
	v = first >> (k + 1);
	for (i = 1; i <= k; i++)
		v |= r2r_take(r, 1) << (8 * i - k - 1);
	return v;
}

/* The first runtime function; behind it may be where its fixups are. */
static uint32_t take_function(struct r2r_bytes *r)
{
	uint32_t id = take_packed(r);

	return id & 1 ? id >> 2 : id >> 1;
}

/* A tree of 16 elements a block: bit 0 of a node, its left half follows; bit 1, its right half. */
static bool find_element(const struct r2r_bytes *array, unsigned size, uint32_t i,
			 struct r2r_bytes *out)
{
	struct r2r_bytes r = *array;
	uint32_t bit, v, at;

	r.at += (i / BLOCK) << size;
	at = r2r_take(&r, 1u << size);
	r.at = array->at + at;
	for (bit = BLOCK / 2; bit && !r.bad; bit /= 2) {
		at = r.at;
		v = take_packed(&r);
		if (i & bit && v & 2)
			r.at = at + (v >> 2);
		else if (!(i & bit) && v & 1)
			continue;
		else if (v & 3 || v >> 2 != (i & (BLOCK - 1)))
			return false;
		else
			break;
	}
	*out = r;
	return !r.bad;
}

static bool add_entry(struct image *m, uint32_t function, uint32_t method)
{
	if (function >= m->nfunctions)
		return true;
	if (m->nentries >= 2 * ELF_FUNCTIONS_MAX ||
	    ARRAY_ROOM(m->entries, m->room, m->nentries + 1))
		return false;
	m->entries[m->nentries++] = (struct entry){function, method};
	return true;
}

static bool add_methods(struct image *m)
{
	struct r2r_bytes array = m->methods, at;
	uint32_t v = array.n ? take_packed(&array) : 0, i;
	unsigned size = v & 3 ? (v & 3) == 1 ? 1 : 2 : 0;

	for (i = 0; i < v >> 2 && i < m->metadata.nmethods && !array.bad; i++)
		if (find_element(&array, size, i, &at) &&
		    !add_entry(m, take_function(&at), i + 1))
			return false;
	return true;
}

/* ---- signatures of instances ----------------------------------------------------------------- */

/* ECMA-335 II.23.2: one, two or four bytes, the highest bits say which. */
static uint32_t take_compressed(struct r2r_bytes *r)
{
	uint32_t v = r2r_take(r, 1), i, more = v < 0x80 ? 0 : v < 0xc0 ? 1 : 3;

	v &= more == 3 ? 0x1f : more ? 0x3f : 0x7f;
	for (i = 0; i < more; i++)
		v = v << 8 | r2r_take(r, 1);
	return v;
}

static void skip_type(struct r2r_bytes *r, unsigned depth);

static void skip_types(struct r2r_bytes *r, unsigned depth)
{
	uint32_t n = take_compressed(r);

	while (n-- && !r->bad)
		skip_type(r, depth);
}

static void skip_numbers(struct r2r_bytes *r)
{
	uint32_t n = take_compressed(r);

	while (n-- && !r->bad)
		take_compressed(r);
}

static void skip_type(struct r2r_bytes *r, unsigned depth)
{
	uint32_t kind = r2r_take(r, 1);

	if (depth >= TYPE_NESTING_MAX || kind == 0x1b) {
		r->bad = true;               /* a function pointer: not read */
	} else if (kind == 0x0f || kind == 0x10 || kind == 0x1d || kind == 0x3d || kind == 0x45) {
		skip_type(r, depth + 1);     /* pointer, reference, array, native value, pinned */
	} else if (kind == 0x11 || kind == 0x12 || kind == 0x13 || kind == 0x1e || kind == 0x3b) {
		take_compressed(r);          /* value, class; a type parameter */
	} else if (kind == 0x14) {           /* array: type, rank, sizes, lower bounds */
		skip_type(r, depth + 1);
		take_compressed(r);
		skip_numbers(r);
		skip_numbers(r);
	} else if (kind == 0x15) {           /* generic instance: type, arguments */
		skip_type(r, depth + 1);
		skip_types(r, depth + 1);
	} else if (kind == 0x3f || kind == 0x1f || kind == 0x20) {
		take_compressed(r);          /* of another module; a modifier */
		skip_type(r, depth + 1);
	}
}

/* returns  its method, 0 = in another module or not said by number */
static uint32_t take_method(struct r2r_bytes *r)
{
	enum { INSTANTIATED = 4, BY_SLOT = 8, BY_REFERENCE = 0x10, CONSTRAINED = 0x20,
	       OF_TYPE = 0x40, OTHER_MODULE = 0x80 };
	uint32_t flags = take_compressed(r), method;

	if (flags & OTHER_MODULE)
		take_compressed(r);
	if (flags & OF_TYPE)
		skip_type(r, 0);
	method = take_compressed(r);
	if (flags & INSTANTIATED)
		skip_types(r, 0);
	if (flags & CONSTRAINED)
		skip_type(r, 0);
	return flags & (OTHER_MODULE | BY_REFERENCE | BY_SLOT) ? 0 : method;
}

/* u8 2 bits of index size, 6 of buckets; where each begins; {u8 hash, where its entry is} */
static bool add_instances(struct image *m)
{
	struct r2r_bytes r = m->instances, buckets, entry;
	uint32_t head = r.n ? r2r_take(&r, 1) : 0, size = head & 3, nbuckets, i, end, at, method;

	if (!m->instances.n)
		return true;
	if (size > 2 || head >> 2 > 24)
		return false;
	buckets = r;
	nbuckets = 1u << (head >> 2);
	for (i = 0; i < nbuckets && !buckets.bad; i++) {
		buckets.at = r.at + (i << size);
		entry = r;
		entry.at = r.at + r2r_take(&buckets, 1u << size);
		end = r.at + r2r_take(&buckets, 1u << size);
		while (entry.at < end && !entry.bad) {
			struct r2r_bytes one = entry;

			one.at++;
			at = one.at;
			at += take_packed(&one);
			entry.at = one.at;
			entry.bad |= one.bad;
			one.at = at;
			method = take_method(&one);
			if (one.bad || !add_entry(m, take_function(&one), method))
				return false;
		}
	}
	return !buckets.bad;
}

/* ---- the index ------------------------------------------------------------------------------- */

static int by_function(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->method < y->method ? -1 : x->method > y->method;
}

/* Where its name is in the text; NO_NAME = it has none. */
static uint32_t name_of(struct building *b, struct image *m, uint32_t method)
{
	const size_t at = b->text.len;

	if (!method || method > m->metadata.nmethods)
		return NO_NAME;
	if (m->names[method])
		return m->names[method];
	clr_put_module_name(&m->metadata, &b->text);
	buf_putc(&b->text, '!');
	if (!clr_put_method_name(&m->metadata, method, &b->text)) {
		b->text.len = at;
		return NO_NAME;
	}
	buf_putc(&b->text, '\0');
	m->names[method] = (uint32_t)at;
	return m->names[method];
}

/* file_at: of the image. Functions that the image does not hold, or that overlap, are left out. */
static int add_function(struct building *b, const struct image *m, uint32_t i, uint64_t file_at,
			uint32_t name)
{
	struct r2r_bytes function = m->functions, code;
	uint32_t begin, end, at;
	struct elf_entry *e;

	function.at += 12 * i;
	begin = r2r_take(&function, 4);
	end = r2r_take(&function, 4);
	if (end <= begin || !at_rva(m, begin, &code, &at) || end - begin > code.n - code.at ||
	    file_at + at > UINT32_MAX)
		return 0;
	if (b->index->nentries == ELF_FUNCTIONS_MAX || b->text.len > R2R_NAMES_MAX_BYTES)
		return err_set(b->err, ERR_LIMIT, "more precompiled methods than are read");
	if (ARRAY_ROOM(b->index->entries, b->room, b->index->nentries + 1))
		return err_memory(b->err, "for names of precompiled methods");
	e = &b->index->entries[b->index->nentries++];
	e->start = (uint32_t)(file_at + at);
	e->size = end - begin;
	e->name = name;
	return 0;
}

/* An entry without a name ends those before it. Two of one function: it is not known whose. */
static int add_functions(struct building *b, struct image *m, uint64_t file_at)
{
	uint32_t i, k, end, name;
	int rc = 0;

	if (m->nentries)                     /* qsort(NULL) is not defined */
		qsort(m->entries, m->nentries, sizeof(*m->entries), by_function);
	for (i = 0; i < m->nentries && !rc; i = k) {
		for (k = i + 1; k < m->nentries && m->entries[k].function == m->entries[i].function;
		     k++)
			;
		name = m->entries[k - 1].method == m->entries[i].method
			       ? name_of(b, m, m->entries[i].method) : NO_NAME;
		end = k < m->nentries ? m->entries[k].function : m->nfunctions;
		for (; name != NO_NAME && m->entries[i].function < end && !rc;
		     m->entries[i].function++)
			rc = add_function(b, m, m->entries[i].function, file_at, name);
	}
	return rc;
}

/* An image without precompiled code, or a damaged one, adds nothing. */
static int add_image(struct building *b, uint64_t file_at, uint64_t bytes)
{
	struct image m = {.n = (uint32_t)bytes};
	struct bytes_part part;
	int rc;

	if (bytes < 64 || bytes > R2R_IMAGE_MAX_BYTES)
		return 0;
	rc = bytes_take(b->in, file_at, (size_t)bytes, "a .NET image", &part, b->err);
	m.b = part.at;
	if (!rc && read_image(&m)) {
		m.names = calloc((size_t)m.metadata.nmethods + 1, sizeof(*m.names));
		if (!m.names)
			rc = err_memory(b->err, "for names of precompiled methods");
		else if (add_methods(&m) && add_instances(&m) &&
			 (!m.hot_cold.n || add_entry(&m, r2r_take(&m.hot_cold, 4), 0)))
			rc = add_functions(b, &m, file_at);
	}
	clr_metadata_free(&m.metadata);
	free(m.entries);
	free(m.names);
	bytes_drop(&part);
	return rc;
}

/* ---- single-file programs -------------------------------------------------------------------- */

/* SHA-256 of ".net core bundle"; the 8 bytes before it say where the list of files is. */
static const uint8_t mark[32] = {
	0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0,
	0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3,
	0x6a, 0xae,
};

/* It is in the host's data. returns  0 = there is none */
static uint64_t find_list(const struct bytes *in, const struct elf_head *head)
{
	static const size_t keep = 8 + sizeof(mark) - 1;
	uint8_t *block = malloc(SCAN_BYTES);
	uint64_t found = 0, at, end;
	uint32_t i;
	size_t n, k;

	for (i = 0; block && i < head->nsegments && !found; i++) {
		const struct elf_segment *s = &head->segments[i];

		end = s->executable ? 0 : s->offset + s->file_bytes;
		for (at = s->offset; at + keep < end && !found; at += n - keep) {
			n = end - at < SCAN_BYTES ? (size_t)(end - at) : SCAN_BYTES;
			if (bytes_read(in, at, block, n, "the host", NULL))
				break;
			for (k = 8; k + sizeof(mark) <= n && !found; k++)
				if (block[k] == mark[0] &&
				    memcmp(block + k, mark, sizeof(mark)) == 0)
					found = le64(block + k - 8);
		}
	}
	free(block);
	return found;
}

/* Its length: 7 bits a byte, at most two bytes. */
static void skip_text(struct r2r_bytes *r)
{
	uint32_t n = r2r_take(r, 1);

	if (n & 0x80)
		n = (n & 0x7f) | r2r_take(r, 1) << 7;
	r->at += n;
}

static uint64_t take64(struct r2r_bytes *r)
{
	uint64_t low = r2r_take(r, 4);

	return low | (uint64_t)r2r_take(r, 4) << 32;
}

/*
 * u32 major, minor, files, an id; from 2 on 5 u64; of each file u64 at, bytes, from 6 on u64
 * compressed (0 = it is not), u8 kind (1 an assembly), its path
 */
static int add_bundle(struct building *b, uint64_t list_at)
{
	uint32_t n = b->in->size - list_at < (4u << 20) ? (uint32_t)(b->in->size - list_at)
							 : 4u << 20;
	uint8_t *list = malloc(n ? n : 1);
	struct r2r_bytes r = {.b = list, .n = n};
	uint32_t major, nfiles, i;
	int rc = list ? bytes_read(b->in, list_at, list, n, "the list of its files", b->err)
		      : err_memory(b->err, "for the list of its files");

	major = rc ? 0 : r2r_take(&r, 4);
	r2r_take(&r, 4);
	nfiles = r2r_take(&r, 4);
	skip_text(&r);
	r.at += major >= 2 ? 40 : 0;
	for (i = 0; i < nfiles && i < R2R_IMAGES_MAX && !rc; i++) {
		uint64_t at = take64(&r), bytes = take64(&r);
		uint64_t packed = major >= 6 ? take64(&r) : 0;
		bool is_assembly = r2r_take(&r, 1) == 1;

		skip_text(&r);
		if (r.bad)
			break;
		if (is_assembly && !packed && at <= b->in->size && bytes <= b->in->size - at)
			rc = add_image(b, at, bytes);
	}
	free(list);
	return rc;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_entry *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorted, one entry a start. */
static void finish(struct building *b)
{
	struct elf_index *index = b->index;
	uint32_t i, n = 0;

	qsort(index->entries, index->nentries, sizeof(*index->entries), by_start);
	for (i = 0; i < index->nentries; i++)
		if (!n || index->entries[i].start > index->entries[n - 1].start)
			index->entries[n++] = index->entries[i];
	index->nentries = n;
	index->strings[0].size = b->text.len;
	index->strings[0].kept = b->text.data;
	b->text.data = NULL;
}

int r2r_index_new(const struct bytes *in, struct elf_index **out, struct err *err)
{
	struct building b = {.in = in, .err = err, .text.max_bytes = 2 * R2R_NAMES_MAX_BYTES};
	struct elf_head head;
	uint8_t magic[2] = {0};
	int rc;

	if (in->size > R2R_FILE_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "it is larger than %u GB",
			       (unsigned)(R2R_FILE_MAX_BYTES >> 30));
	rc = bytes_read(in, 0, magic, sizeof(magic), "its first bytes", err);
	b.index = rc ? NULL : calloc(1, sizeof(*b.index));
	if (!b.index)
		return rc ? rc : err_memory(err, "for names of precompiled methods");
	buf_put(&b.text, "", 1);             /* no method's name is at 0 */
	if (memcmp(magic, "MZ", 2) == 0) {
		rc = add_image(&b, 0, in->size);
	} else if (!elf_head_read(in, &head, NULL)) {
		uint64_t list_at = find_list(in, &head);

		rc = list_at && list_at < in->size ? add_bundle(&b, list_at) : 0;
	}
	if (!rc)
		rc = buf_check(&b.text, "the names of precompiled methods", err);
	if (!rc && !b.index->nentries)
		rc = err_set(err, ERR_NOT_FOUND, "it has no precompiled .NET code");
	if (!rc)
		finish(&b);
	buf_free(&b.text);
	if (rc)
		elf_index_free(b.index);
	else
		*out = b.index;
	return rc;
}
