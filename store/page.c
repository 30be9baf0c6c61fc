/*
 * Pages: many small things in one blob. A row and an index entry for each of them would take 17
 * bytes apiece, a page takes 4.
 *
 * A column of n integers is written by planes (base/planes.h), each a deflate block with codes of
 * its own: high bytes repeat, low ones hardly do. n stands elsewhere; the length of each plane
 * follows from the high bits of the one before.
 *
 *	lists       v threads, v frames, then a column of ids for each: z difference to the id
 *	            before, or for frames to the number after it
 *
 *	frames      v n, then columns: z difference of the id to the number after the id before (of
 *	            the first: to the row's first_id); z difference to the module before; flags;
 *	            z difference to the offset of the frame before in the same module
 *	functions   column, in the order of frames: 0 = no name yet, else 1 + z difference to the
 *	            function given before
 *
 *	rows        v n, then each column: z difference to the row before (of the first: to 0)
 *
 *	texts       v n, then for each text v length + bytes
 *
 * A page of functions is a page of frames, whose flags say which texts a function has beside its
 * name (HAS_...), and a page of texts: name, raw name, module of each.
 *
 * v = varint, z = zigzag varint (base/varint.h).
 */
#include "store/page_private.h"

#include "store/idmap_private.h"

#include "base/planes.h"

#include <stdlib.h>
#include <string.h>

#define LISTS_MAX_BYTES ((size_t)16 << 20)
#define PAGE_MAX_BYTES ((size_t)16 << 20)
#define PAGE_FRAMES_MAX 65536u               /* when read */

static int no_memory(struct err *err)
{
	return err_memory(err, "for a page of a store");
}

/* ---- columns -------------------------------------------------------------------------------- */

static void columns_begin(struct columns *c, enum deflate_kind kind)
{
	c->kind = kind;
	buf_reset(&c->raw);
	c->ncuts = 0;
}

static void columns_put_varint(struct columns *c, uint64_t v)
{
	uint8_t *to = (uint8_t *)buf_reserve(&c->raw, VARINT_MAX_BYTES);

	if (to)
		buf_advance(&c->raw, varint_put(to, v));
}

static void columns_put(struct columns *c, const uint64_t *values, uint32_t n)
{
	unsigned k;

	for (k = 0; k < VARINT_MAX_BYTES; k++) {
		uint8_t *to = (uint8_t *)buf_reserve(&c->raw, n);
		size_t len = to ? planes_put(values, n, k, to) : 0;

		if (!len)
			return;
		buf_advance(&c->raw, len);
		if (c->ncuts < COLUMNS_CUTS)
			c->cuts[c->ncuts++] = c->raw.len;
	}
}

/* Differences are unsigned and may overflow, as in the columns of a segment. */
static uint64_t difference(uint64_t a, uint64_t b)
{
	return zigzag((int64_t)(a - b));
}

static uint64_t add_difference(uint64_t a, uint64_t step)
{
	return a + (uint64_t)unzigzag(step);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* next: by how much an id is most likely to exceed the id before. */
static void put_ids(struct columns *c, uint64_t *ids, uint32_t n, unsigned next)
{
	uint64_t expected = 0, id;
	uint32_t i;

	for (i = 0; i < n; i++) {
		id = ids[i];
		ids[i] = difference(id, expected);
		expected = id + next;
	}
	columns_put(c, ids, n);
}

static bool get_ids(const uint8_t **at, const uint8_t *end, uint32_t n, unsigned next,
		    uint64_t *out)
{
	uint64_t expected = 0;
	uint32_t i;

	if (!planes_get(at, end, out, n))
		return false;
	for (i = 0; i < n; i++) {
		out[i] = add_difference(expected, out[i]);
		expected = out[i] + next;
	}
	return true;
}

int lists_pack(struct deflater *d, struct columns *c, uint64_t *ids, uint32_t nthreads,
	       uint32_t nframes, struct buf *out, struct err *err)
{
	columns_begin(c, DEFLATE_NOISE);
	columns_put_varint(c, nthreads);
	columns_put_varint(c, nframes);
	put_ids(c, ids, nthreads, 0);
	put_ids(c, ids + nthreads, nframes, 1);
	return blob_pack(d, BLOB_LISTS, c, out, err);
}

static int bad_lists(struct err *err)
{
	return err_set(err, ERR_FORMAT, "its lists of threads and frames are damaged");
}

/* Each id takes a byte at least, so the bytes bound what is allocated. */
int lists_decode(const void *raw, size_t n, struct lists *out, struct err *err)
{
	const uint8_t *at = raw, *end = at + n;
	uint64_t threads = 0, frames = 0, *ids;

	if (n < 2 || n > LISTS_MAX_BYTES)
		return bad_lists(err);
	ids = malloc(n * sizeof(*ids));
	if (!ids)
		return no_memory(err);
	if (!varint_get(&at, end, &threads) || !varint_get(&at, end, &frames) || threads > n ||
	    frames > n || threads + frames > (uint64_t)(end - at) ||
	    !get_ids(&at, end, (uint32_t)threads, 0, ids) ||
	    !get_ids(&at, end, (uint32_t)frames, 1, ids + threads) || at != end) {
		free(ids);
		return bad_lists(err);
	}
	out->ids = (int64_t *)ids;
	out->nthreads = (uint32_t)threads;
	out->nframes = (uint32_t)frames;
	return 0;
}

int lists_unpack(const struct blob *blob, struct lists *out, struct err *err)
{
	struct buf raw = {0};
	int rc = blob_unpack(blob, BLOB_LISTS, LISTS_MAX_BYTES, &raw, err);

	if (!rc)
		rc = lists_decode(raw.data, raw.len, out, err);
	buf_free(&raw);
	return rc;
}

/* ---- frames --------------------------------------------------------------------------------- */

enum { FRAME_ID, FRAME_MODULE, FRAME_FLAGS, FRAME_OFFSET, FRAME_COLUMNS };

static void column_pointers(uint64_t *values, uint32_t n, uint64_t *out[FRAME_COLUMNS])
{
	unsigned k;

	for (k = 0; k < FRAME_COLUMNS; k++)
		out[k] = values + (size_t)k * n;
}

/*
 * The offset of the frame before in this module; 0 if there is none. The map has no value
 * INT64_MIN, so that one address is not remembered, neither here nor when the page is read.
 */
static uint64_t last_offset(const struct idmap *last, uint64_t module)
{
	int64_t offset = 0;

	idmap_get(last, module, &offset);
	return (uint64_t)offset;
}

static int set_last_offset(struct idmap *last, uint64_t module, uint64_t offset)
{
	return (int64_t)offset == INT64_MIN ? 0 : idmap_set(last, module, (int64_t)offset);
}

/* Frames -> columns. */
static int split_frames(const struct page_frame *f, uint32_t n, uint64_t *to[FRAME_COLUMNS],
			struct idmap *last)
{
	uint64_t id = n ? (uint64_t)f[0].id : 0, module = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		to[FRAME_ID][i] = difference((uint64_t)f[i].id, id);
		id = (uint64_t)f[i].id + 1;
		to[FRAME_MODULE][i] = difference((uint64_t)f[i].module_id, module);
		module = (uint64_t)f[i].module_id;
		to[FRAME_FLAGS][i] = f[i].flags;
		to[FRAME_OFFSET][i] = difference(f[i].offset, last_offset(last, module));
		if (set_last_offset(last, module, f[i].offset))
			return ERR_MEMORY;
	}
	return 0;
}

/* Columns -> frames, whose ids must ascend from 1 or more: they are searched by halves. */
static int join_frames(struct page_frame *f, uint32_t n, uint64_t *const from[FRAME_COLUMNS],
		       int64_t first_id, struct idmap *last)
{
	uint64_t id = (uint64_t)first_id, module = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		id = add_difference(id, from[FRAME_ID][i]);
		f[i].id = (int64_t)id++;
		if (from[FRAME_FLAGS][i] > UINT32_MAX || f[i].id < 1 ||
		    (i && f[i].id <= f[i - 1].id))
			return ERR_FORMAT;
		module = add_difference(module, from[FRAME_MODULE][i]);
		f[i].module_id = (int64_t)module;
		f[i].flags = (uint32_t)from[FRAME_FLAGS][i];
		f[i].function_id = 0;
		f[i].offset = add_difference(last_offset(last, module), from[FRAME_OFFSET][i]);
		if (set_last_offset(last, module, f[i].offset))
			return ERR_MEMORY;
	}
	return 0;
}

int frame_page_pack(struct deflater *d, struct columns *c, const struct page_frame *frames,
		    uint32_t n, struct buf *out, struct err *err)
{
	uint64_t *values = malloc((size_t)n * FRAME_COLUMNS * sizeof(*values)), *to[FRAME_COLUMNS];
	struct idmap last = {0};
	unsigned k;
	int rc = values ? 0 : no_memory(err);

	if (!rc) {
		column_pointers(values, n, to);
		rc = split_frames(frames, n, to, &last) ? no_memory(err) : 0;
	}
	if (!rc) {
		columns_begin(c, DEFLATE_NOISE);
		columns_put_varint(c, n);
		for (k = 0; k < FRAME_COLUMNS; k++)
			columns_put(c, to[k], n);
		rc = blob_pack(d, BLOB_OTHER, c, out, err);
	}
	idmap_free(&last);
	free(values);
	return rc;
}

int frame_page_pack_functions(struct deflater *d, struct columns *c,
			      const struct page_frame *frames, uint32_t n, struct buf *out,
			      struct err *err)
{
	uint64_t *values = malloc((size_t)n * sizeof(*values)), before = 0;
	uint32_t i;
	int rc;

	if (!values)
		return no_memory(err);
	for (i = 0; i < n; i++) {
		values[i] = 0;
		if (!frames[i].function_id)
			continue;
		values[i] = 1 + difference((uint64_t)frames[i].function_id, before);
		before = (uint64_t)frames[i].function_id;
	}
	columns_begin(c, DEFLATE_NOISE);
	columns_put(c, values, n);
	rc = blob_pack(d, BLOB_OTHER, c, out, err);
	free(values);
	return rc;
}

static int bad_page(struct err *err)
{
	return err_set(err, ERR_FORMAT, "a page of frames is damaged");
}

static bool get_functions(const struct buf *raw, uint64_t *values, struct page_frame *frames,
			  uint32_t n)
{
	const uint8_t *at = (const uint8_t *)raw->data, *end = at + raw->len;
	uint64_t function = 0;
	uint32_t i;

	if (!planes_get(&at, end, values, n) || at != end)
		return false;
	for (i = 0; i < n; i++) {
		if (values[i])
			function = add_difference(function, values[i] - 1);
		frames[i].function_id = values[i] ? (int64_t)function : 0;
	}
	return true;
}

int frame_page_decode(const struct buf *frames, const struct buf *functions, int64_t first_id,
		      struct page_frame **out, uint32_t *nout, struct err *err)
{
	const uint8_t *at = (const uint8_t *)frames->data, *end = at + frames->len;
	uint64_t n, *values = NULL, *from[FRAME_COLUMNS];
	struct page_frame *items = NULL;
	struct idmap last = {0};
	bool good = true;
	unsigned k;
	int rc = 0;

	if (!frames->len || !varint_get(&at, end, &n) || !n || n > PAGE_FRAMES_MAX)
		return bad_page(err);
	values = malloc((size_t)n * FRAME_COLUMNS * sizeof(*values));
	items = malloc((size_t)n * sizeof(*items));
	if (!values || !items) {
		rc = no_memory(err);
		goto out;
	}
	column_pointers(values, (uint32_t)n, from);
	for (k = 0; good && k < FRAME_COLUMNS; k++)
		good = planes_get(&at, end, from[k], (uint32_t)n);
	rc = ERR_FORMAT;
	if (good && at == end)
		rc = join_frames(items, (uint32_t)n, from, first_id, &last);
	if (rc == ERR_MEMORY)
		rc = no_memory(err);
	else if (rc || (functions && !get_functions(functions, values, items, (uint32_t)n)))
		rc = bad_page(err);
out:
	idmap_free(&last);
	free(values);
	if (rc) {
		free(items);
		return rc;
	}
	*out = items;
	*nout = (uint32_t)n;
	return 0;
}

int frame_page_unpack(const struct blob *frames, const struct blob *functions, int64_t first_id,
		      struct page_frame **out, uint32_t *n, struct err *err)
{
	struct buf raw[2] = {0};
	int rc = blob_unpack(frames, BLOB_OTHER, PAGE_MAX_BYTES, &raw[0], err);

	if (!rc)
		rc = blob_unpack(functions, BLOB_OTHER, PAGE_MAX_BYTES, &raw[1], err);
	if (!rc)
		rc = frame_page_decode(&raw[0], &raw[1], first_id, out, n, err);
	buf_free(&raw[0]);
	buf_free(&raw[1]);
	return rc;
}

static int64_t id_at(const char *items, size_t item_bytes, uint64_t i)
{
	int64_t id;

	memcpy(&id, items + i * item_bytes, sizeof(id));
	return id;
}

uint32_t ids_find(const void *items, uint32_t n, size_t item_bytes, int64_t id)
{
	int64_t first = n ? id_at(items, item_bytes, 0) : 0;
	uint64_t near = (uint64_t)id - (uint64_t)first;
	uint32_t lo = 0, hi = n, mid;

	/* Ids nearly always follow each other: nothing between them has been swept. */
	if (id >= first && near < n && id_at(items, item_bytes, near) == id)
		return (uint32_t)near;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (id_at(items, item_bytes, mid) < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && id_at(items, item_bytes, lo) == id ? lo : UINT32_MAX;
}

/* ---- processes and threads ------------------------------------------------------------------ */

int row_page_pack(struct deflater *d, struct columns *c, const uint64_t *rows, uint32_t n,
		  unsigned columns, struct buf *out, struct err *err)
{
	uint64_t *values = malloc((size_t)n * sizeof(*values)), before;
	unsigned k;
	uint32_t i;
	int rc;

	if (!values)
		return no_memory(err);
	columns_begin(c, DEFLATE_NOISE);
	columns_put_varint(c, n);
	for (k = 0; k < columns; k++) {
		for (i = 0, before = 0; i < n; i++) {
			values[i] = difference(rows[(size_t)i * columns + k], before);
			before = rows[(size_t)i * columns + k];
		}
		columns_put(c, values, n);
	}
	rc = blob_pack(d, BLOB_OTHER, c, out, err);
	free(values);
	return rc;
}

static int bad_rows(struct err *err)
{
	return err_set(err, ERR_FORMAT, "a page of processes or threads is damaged");
}

int row_page_decode(const struct buf *raw, unsigned columns, uint64_t **out, uint32_t *nout,
		    struct err *err)
{
	const uint8_t *at = (const uint8_t *)raw->data, *end = at + raw->len;
	uint64_t *values, *rows, n = 0, before;
	bool good = true;
	unsigned k;
	uint32_t i;

	if (!raw->len || !varint_get(&at, end, &n) || !n || n > PAGE_FRAMES_MAX)
		return bad_rows(err);
	values = malloc((size_t)n * sizeof(*values));
	rows = malloc((size_t)n * columns * sizeof(*rows));
	if (!values || !rows) {
		free(values);
		free(rows);
		return no_memory(err);
	}
	for (k = 0; good && k < columns; k++) {
		good = planes_get(&at, end, values, (uint32_t)n);
		for (i = 0, before = 0; good && i < n; i++) {
			before = add_difference(before, values[i]);
			rows[(size_t)i * columns + k] = before;
		}
	}
	free(values);
	if (!good || at != end) {
		free(rows);
		return bad_rows(err);
	}
	*out = rows;
	*nout = (uint32_t)n;
	return 0;
}

int row_page_unpack(const struct blob *blob, unsigned columns, uint64_t **out, uint32_t *n,
		    struct err *err)
{
	struct buf raw = {0};
	int rc = blob_unpack(blob, BLOB_OTHER, PAGE_MAX_BYTES, &raw, err);

	if (!rc)
		rc = row_page_decode(&raw, columns, out, n, err);
	buf_free(&raw);
	return rc;
}

/* ---- texts ---------------------------------------------------------------------------------- */

int text_page_pack(struct deflater *d, struct columns *c, const char *const *texts, uint32_t n,
		   struct buf *out, struct err *err)
{
	uint32_t i;

	columns_begin(c, DEFLATE_TEXT);
	columns_put_varint(c, n);
	for (i = 0; i < n; i++) {
		columns_put_varint(c, strlen(texts[i]));
		buf_puts(&c->raw, texts[i]);
	}
	return blob_pack(d, BLOB_OTHER, c, out, err);
}

/* The NUL of each text takes the place of the next one's length, so `raw` holds all of them. */
static bool cut_texts(struct buf *raw, const uint8_t *at, struct text_page *out)
{
	const uint8_t *begin = (const uint8_t *)raw->data, *end = begin + raw->len;
	size_t text_end;
	uint64_t len;
	uint32_t i;

	for (i = 0; i < out->n; i++) {
		text_end = (size_t)(at - begin);
		if (!varint_get(&at, end, &len) || len > (uint64_t)(end - at))
			return false;
		raw->data[text_end] = '\0';
		out->texts[i] = raw->data + (at - begin);
		at += len;
	}
	/* A buf ends in a NUL of its own. */
	return at == end;
}

int text_page_decode(struct buf *raw, uint32_t max_texts, struct text_page *out, struct err *err)
{
	const uint8_t *at = (const uint8_t *)raw->data;
	uint64_t n;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (!raw->len || !varint_get(&at, at + raw->len, &n) || n > raw->len || n > max_texts)
		return err_set(err, ERR_FORMAT, "a page of texts is damaged");
	out->n = (uint32_t)n;
	out->texts = malloc((size_t)(n + 1) * sizeof(*out->texts));
	if (!out->texts)
		rc = no_memory(err);
	else if (!cut_texts(raw, at, out))
		rc = err_set(err, ERR_FORMAT, "a page of texts is damaged");
	if (rc) {
		text_page_free(out);
		return rc;
	}
	out->memory = *raw;
	memset(raw, 0, sizeof(*raw));
	return 0;
}

int text_page_unpack(const struct blob *blob, uint32_t max_texts, struct text_page *out,
		     struct err *err)
{
	struct buf raw = {0};
	int rc = blob_unpack(blob, BLOB_OTHER, PAGE_MAX_BYTES, &raw, err);

	if (!rc)
		rc = text_page_decode(&raw, max_texts, out, err);
	buf_free(&raw);
	return rc;
}

void text_page_free(struct text_page *p)
{
	free(p->texts);
	buf_free(&p->memory);
	memset(p, 0, sizeof(*p));
}

/* ---- functions ------------------------------------------------------------------------------ */

enum { HAS_RAW_NAME = 1, HAS_MODULE = 2 };

static uint32_t count_texts(uint32_t flags)
{
	return 1 + (flags & HAS_RAW_NAME) + (flags & HAS_MODULE) / HAS_MODULE;
}

int function_page_pack(struct deflater *d, struct columns *c,
		       const struct page_function *functions, uint32_t n, struct buf *data,
		       struct buf *names, struct err *err)
{
	struct page_frame *items = malloc((size_t)n * sizeof(*items));
	const char **texts = malloc((size_t)n * 3 * sizeof(*texts));
	uint32_t i, ntexts = 0;
	int rc = items && texts ? 0 : no_memory(err);

	for (i = 0; !rc && i < n; i++) {
		const struct page_function *f = &functions[i];

		items[i] = (struct page_frame){.id = f->id, .module_id = f->module_id,
					       .offset = f->offset};
		texts[ntexts++] = f->name;
		if (f->raw_name) {
			items[i].flags |= HAS_RAW_NAME;
			texts[ntexts++] = f->raw_name;
		}
		if (f->module) {
			items[i].flags |= HAS_MODULE;
			texts[ntexts++] = f->module;
		}
	}
	if (!rc)
		rc = frame_page_pack(d, c, items, n, data, err);
	if (!rc)
		rc = text_page_pack(d, c, texts, ntexts, names, err);
	free(items);
	free(texts);
	return rc;
}

static int name_functions(const struct page_frame *items, struct function_page *p, struct err *err)
{
	uint32_t i, at = 0;

	for (i = 0; i < p->n; i++) {
		struct page_function *f = &p->functions[i];
		uint32_t flags = items[i].flags;

		if (flags & ~(uint32_t)(HAS_RAW_NAME | HAS_MODULE) ||
		    count_texts(flags) > p->texts.n - at)
			return err_set(err, ERR_FORMAT, "a page of functions is damaged");
		*f = (struct page_function){.id = items[i].id, .module_id = items[i].module_id,
					    .offset = items[i].offset};
		f->name = p->texts.texts[at++];
		if (flags & HAS_RAW_NAME)
			f->raw_name = p->texts.texts[at++];
		if (flags & HAS_MODULE)
			f->module = p->texts.texts[at++];
	}
	return 0;
}

int function_page_unpack(const struct blob *data, const struct blob *names, int64_t first_id,
			 struct function_page *out, struct err *err)
{
	struct page_frame *items = NULL;
	struct buf raw = {0};
	int rc;

	memset(out, 0, sizeof(*out));
	rc = blob_unpack(data, BLOB_OTHER, PAGE_MAX_BYTES, &raw, err);
	if (!rc)
		rc = frame_page_decode(&raw, NULL, first_id, &items, &out->n, err);
	if (!rc)
		rc = text_page_unpack(names, 3 * out->n, &out->texts, err);
	if (!rc) {
		out->functions = malloc((size_t)out->n * sizeof(*out->functions));
		rc = out->functions ? name_functions(items, out, err) : no_memory(err);
	}
	free(items);
	buf_free(&raw);
	if (rc)
		function_page_free(out);
	return rc;
}

void function_page_free(struct function_page *p)
{
	free(p->functions);
	text_page_free(&p->texts);
	memset(p, 0, sizeof(*p));
}

const struct page_function *function_page_find(const struct function_page *p, int64_t id)
{
	uint32_t at = ids_find(p->functions, p->n, sizeof(*p->functions), id);

	return at == UINT32_MAX ? NULL : &p->functions[at];
}
