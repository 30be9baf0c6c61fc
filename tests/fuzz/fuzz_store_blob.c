/*
 * Blobs of a store that somebody else wrote: unpacked, and read as the lists of a segment, as its
 * columns, or as a page. The bytes are also decoded as they are, for the CRC refuses most blobs.
 * Last they are taken for what a segment lists, packed, and unpacked: it must be the same.
 */
#include "store/page_private.h"

#include "model/segment.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_lists(const void *raw, size_t n)
{
	struct lists lists;

	if (!lists_decode(raw, n, &lists, NULL))
		free(lists.ids);
}

/* A segment may list any id, whatever the page has; one of these comes from the bytes. */
static void find_frames(const struct page_frame *items, uint32_t n, int64_t wild)
{
	const int64_t ids[] = {items[n / 2].id, items[0].id - 1, items[n - 1].id, wild, -wild, 0,
			       INT64_MIN, INT64_MAX};
	unsigned i;

	for (i = 0; i < COUNT_OF(ids); i++) {
		uint32_t at = frame_page_find(items, n, ids[i]);

		if (at != UINT32_MAX && (at >= n || items[at].id != ids[i]))
			abort();
	}
}

/* The first byte says where the second blob of a page of frames begins. */
static void decode_pages(const char *raw, size_t n)
{
	size_t cut = n ? (size_t)(uint8_t)raw[0] * n / 256 : 0;
	struct buf frames = {0}, functions = {0};
	struct page_frame *items;
	struct text_page texts;
	uint32_t nitems;
	int64_t wild = 0;

	if (n >= sizeof(wild))
		memcpy(&wild, raw, sizeof(wild));
	wild = wild == INT64_MIN ? 0 : wild;
	buf_put(&frames, raw + (n > 0), cut ? cut - 1 : 0);
	buf_put(&functions, raw + cut, n - cut);
	if (!frame_page_decode(&frames, &functions, 1, &items, &nitems, NULL)) {
		find_frames(items, nitems, wild);
		free(items);
	}
	if (!frame_page_decode(&frames, NULL, wild, &items, &nitems, NULL)) {
		find_frames(items, nitems, wild);
		free(items);
	}
	buf_reset(&frames);
	buf_put(&frames, raw, n);
	if (!text_page_decode(&frames, PAGE_TEXTS_MAX, &texts, NULL))
		text_page_free(&texts);
	buf_free(&frames);
	buf_free(&functions);
}

/* Processes, then threads. */
static void decode_rows(const char *bytes, size_t n)
{
	struct buf raw = {0};
	uint64_t *rows;
	uint32_t nrows;

	buf_put(&raw, bytes, n);
	if (!row_page_decode(&raw, PROCESS_COLUMNS, &rows, &nrows, NULL))
		free(rows);
	if (!row_page_decode(&raw, THREAD_COLUMNS, &rows, &nrows, NULL))
		free(rows);
	buf_free(&raw);
}

static void decode(const void *raw, size_t n)
{
	struct segment_content content = {0};

	decode_lists(raw, n);
	decode_pages(raw, n);
	decode_rows(raw, n);
	if (!segment_decode(raw, n, &content, NULL))
		segment_content_free(&content);
}

/* ---- packed and unpacked again --------------------------------------------------------------- */

enum { ITEM_BYTES = 8, ITEMS_MAX = 4096 };

struct packer {
	struct deflater *deflater;
	struct columns columns;
	struct buf first, second;
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static struct blob blob_of(const struct buf *b)
{
	return (struct blob){b->data, b->len};
}

static void repack_rows(struct packer *p, const uint64_t *items, uint32_t n, unsigned columns)
{
	uint32_t nrows = n / columns, nout;
	struct blob blob;
	uint64_t *out;

	if (!nrows || row_page_pack(p->deflater, &p->columns, items, nrows, columns, &p->first,
				    NULL))
		return;
	blob = blob_of(&p->first);
	must(!row_page_unpack(&blob, columns, &out, &nout, NULL));
	must(nout == nrows && !memcmp(out, items, (size_t)nrows * columns * sizeof(*items)));
	free(out);
}

/* Two thirds of them are threads. */
static void repack_lists(struct packer *p, const uint64_t *items, uint32_t n)
{
	uint64_t *ids = malloc(n * sizeof(*ids));
	uint32_t nthreads = n * 2 / 3;
	struct lists lists;
	struct blob blob;

	must(ids != NULL);
	memcpy(ids, items, n * sizeof(*ids));
	must(!lists_pack(p->deflater, &p->columns, ids, nthreads, n - nthreads, &p->first, NULL));
	blob = blob_of(&p->first);
	if (!lists_unpack(&blob, &lists, NULL)) {
		must(lists.nthreads == nthreads && lists.nframes == n - nthreads);
		must(!memcmp(lists.ids, items, n * sizeof(*ids)));
		free(lists.ids);
	} else {
		must(n < 2);                 /* a segment lists a thread and a frame */
	}
	free(ids);
}

/* Ids ascend; modules are few, and so are functions that come again. */
static void repack_frames(struct packer *p, const uint64_t *items, uint32_t n)
{
	struct page_frame *frames = calloc(n, sizeof(*frames)), *out;
	struct blob first, second;
	uint32_t i, nout;
	int64_t id = 1;

	must(frames != NULL);
	for (i = 0; i < n; i++) {
		id += 1 + (int64_t)(items[i] % 5 == 4 ? items[i] >> 40 : 0);
		frames[i] = (struct page_frame){
			.id = id, .module_id = (int64_t)(items[i] >> 8) % 4 - 1,
			.function_id = (int64_t)(items[i] >> 16) % 1000, .offset = items[i],
			.flags = (uint32_t)items[i] % 9,
		};
	}
	must(!frame_page_pack(p->deflater, &p->columns, frames, n, &p->first, NULL));
	must(!frame_page_pack_functions(p->deflater, &p->columns, frames, n, &p->second, NULL));
	first = blob_of(&p->first);
	second = blob_of(&p->second);
	must(!frame_page_unpack(&first, &second, frames[0].id, &out, &nout, NULL));
	must(nout == n);
	for (i = 0; i < n; i++)
		must(out[i].id == frames[i].id && out[i].module_id == frames[i].module_id &&
		     out[i].function_id == frames[i].function_id &&
		     out[i].offset == frames[i].offset && out[i].flags == frames[i].flags);
	find_frames(out, nout, (int64_t)(items[0] >> 1));
	free(out);
	free(frames);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* texts: n of them */
static void repack_functions(struct packer *p, const char *const *texts, const uint64_t *items,
			     uint32_t n)
{
	struct page_function *functions = calloc(n, sizeof(*functions));
	struct function_page page;
	struct blob first, second;
	uint32_t i;

	must(functions != NULL);
	for (i = 0; i < n; i++)
		functions[i] = (struct page_function){
			.id = 1 + 2 * (int64_t)i, .module_id = (int64_t)(items[i] >> 32),
			.offset = items[i], .name = texts[i],
			.raw_name = items[i] & 1 ? texts[n - 1 - i] : NULL,
			.module = items[i] & 2 ? texts[i / 2] : NULL,
		};
	must(!function_page_pack(p->deflater, &p->columns, functions, n, &p->first, &p->second,
				 NULL));
	first = blob_of(&p->first);
	second = blob_of(&p->second);
	must(!function_page_unpack(&first, &second, functions[0].id, &page, NULL));
	for (i = 0; i < n; i++) {
		const struct page_function *f = function_page_find(&page, functions[i].id);

		must(f && f->offset == functions[i].offset &&
		     f->module_id == functions[i].module_id);
		must(same_text(f->name, texts[i]) &&
		     same_text(f->raw_name, functions[i].raw_name) &&
		     same_text(f->module, functions[i].module));
		must(!function_page_find(&page, functions[i].id + 1));
	}
	function_page_free(&page);
	free(functions);
}

/* The bytes of each item are a text. */
static void repack_texts(struct packer *p, const uint64_t *items, uint32_t n)
{
	char (*words)[ITEM_BYTES + 1] = calloc(n, sizeof(*words));
	const char **texts = calloc(n, sizeof(*texts));
	struct text_page page;
	struct blob blob;
	uint32_t i;

	must(words && texts);
	for (i = 0; i < n; i++) {
		memcpy(words[i], &items[i], ITEM_BYTES);
		texts[i] = words[i];
	}
	must(!text_page_pack(p->deflater, &p->columns, texts, n, &p->first, NULL));
	blob = blob_of(&p->first);
	must(!text_page_unpack(&blob, PAGE_TEXTS_MAX, &page, NULL));
	must(page.n == n);
	for (i = 0; i < n; i++)
		must(same_text(page.texts[i], texts[i]));
	text_page_free(&page);
	repack_functions(p, texts, items, n);
	free(texts);
	free(words);
}

static void repack_plain(struct packer *p, const uint8_t *data, size_t size)
{
	struct blob blob;

	must(!blob_plain(data, size, &p->first, NULL));
	blob = blob_of(&p->first);
	must(!blob_unpack(&blob, BLOB_OTHER, size, &p->second, NULL));
	must(p->second.len == size && !memcmp(p->second.data, data, size));
	must(blob_unpack(&blob, BLOB_LISTS, size, &p->second, NULL) == ERR_FORMAT);
}

/* A stream of two pieces; gzip's is no blob. */
static void stream(struct deflater *d, bool gzip, const uint8_t *data, size_t size)
{
	uint8_t *plain = malloc(size);
	struct buf out = {0};

	must(plain != NULL);
	deflater_start(d);
	if (!gzip)
		deflater_kind(d, deflate_kind_of(data, size), &out);
	deflater_put(d, data, size / 2, &out);
	deflater_cut(d, &out);
	deflater_put(d, data + size / 2, size - size / 2, &out);
	deflater_end(d, &out);
	must(inflate_bytes(out.data, out.len, plain, size) == (gzip ? ERR_FORMAT : 0));
	must(gzip || !memcmp(plain, data, size));
	buf_free(&out);
	free(plain);
}

static void repack(const uint8_t *data, size_t size)
{
	static struct deflater *deflater, *gzip;     /* once: 268 KB to make */
	struct packer p = {.deflater = deflater ? deflater : deflater_new(false)};
	uint32_t n = (uint32_t)(size / ITEM_BYTES < ITEMS_MAX ? size / ITEM_BYTES : ITEMS_MAX);
	uint64_t *items = calloc(n, sizeof(*items));

	deflater = p.deflater;
	gzip = gzip ? gzip : deflater_new(true);
	must(items && deflater && gzip);
	memcpy(items, data, n * sizeof(*items));
	repack_plain(&p, data, size);
	stream(deflater, false, data, size);
	stream(gzip, true, data, size);
	repack_rows(&p, items, n, PROCESS_COLUMNS);
	repack_rows(&p, items, n, THREAD_COLUMNS);
	repack_lists(&p, items, n);
	repack_frames(&p, items, n);
	repack_texts(&p, items, n);
	columns_free(&p.columns);
	buf_free(&p.first);
	buf_free(&p.second);
	free(items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob blob = {data, size};
	struct buf raw = {0};

	if (size && !blob_unpack(&blob, data[0], 1 << 20, &raw, NULL))
		decode(raw.data, raw.len);
	if (size)
		decode(data, size);
	if (size >= ITEM_BYTES)
		repack(data, size);
	buf_free(&raw);
	return 0;
}
