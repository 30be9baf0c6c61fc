/*
 * One function a line (source: Linux, tools/perf/Documentation/jit-interface.txt):
 *
 *   3ef414c0 398 RuntimeStub:_compute LF
 *   START, blank, SIZE, blank, NAME up to the end of the line; numbers in hex, 0x allowed
 *
 * Other lines are ignored, and so is a last line without LF: its writer has not finished it.
 */
#include "symbol/perfmap.h"

#include "base/array.h"
#include "base/sort.h"
#include "base/text.h"
#include "model/frame.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines ----------------------------------------------------------------------------------- */

/* Read a number and the blanks after it; moves past. The text ends in a NUL, which stops it. */
static bool read_hex(const char **at, uint64_t *out)
{
	const char *p = *at, *first;
	int digit;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	*out = 0;
	for (first = p; (digit = hex_digit(*p)) >= 0; p++) {
		if (*out >> 60)
			return false;
		*out = *out << 4 | (unsigned)digit;
	}
	if (p == first || *p != ' ')
		return false;
	while (*p == ' ')
		p++;
	*at = p;
	return true;
}

/* Read the line from at to the NUL at end; a name that is too long is cut. */
static bool parse_line(struct perfmap *map, char *at, char *end, struct perfmap_entry *out)
{
	const char *p = at;
	uint64_t bytes;
	char *name;

	if (!read_hex(&p, &out->start) || !read_hex(&p, &bytes))
		return false;
	if (!bytes || bytes > PERFMAP_FUNCTION_MAX_BYTES || out->start + bytes < out->start)
		return false;
	name = at + (p - at);
	if (end > name && end[-1] == '\r')
		*--end = '\0';
	if (end - name > FUNCTION_NAME_MAX)
		name[FUNCTION_NAME_MAX] = '\0';
	out->bytes = (uint32_t)bytes;
	out->name = (uint32_t)(name - map->text.data);
	return *name != '\0';
}

static int collect_entries(struct perfmap *map)
{
	char *at = map->text.data, *end = map->text.len ? at + map->text.len : at, *lf;
	struct perfmap_entry e;

	for (; at != end && (lf = memchr(at, '\n', (size_t)(end - at))) != NULL; at = lf + 1) {
		*lf = '\0';
		if (!parse_line(map, at, lf, &e))
			continue;
		map->full = map->nentries == PERFMAP_LINES_MAX;
		if (map->full)
			break;
		if (ARRAY_ROOM(map->entries, map->capacity, map->nentries + 1))
			return ERR_MEMORY;
		map->entries[map->nentries++] = e;
	}
	return 0;
}

/* ---- ranges: the last line wins -------------------------------------------------------------- */

/* A heap of the lines that cover the place, or ended before it; the last line is on top. */
struct sweep {
	struct perfmap *map;
	struct sort_item *items;      /* by start: key = start, value[0] = line number */
	uint32_t *heap;
	uint32_t nheap, next;
};

static uint64_t end_of(const struct sweep *s, uint32_t entry)
{
	return s->map->entries[entry].start + s->map->entries[entry].bytes;
}

static void heap_push(struct sweep *s, uint32_t entry)
{
	uint32_t at = s->nheap++;

	for (; at && s->heap[(at - 1) / 2] < entry; at = (at - 1) / 2)
		s->heap[at] = s->heap[(at - 1) / 2];
	s->heap[at] = entry;
}

static void heap_pop(struct sweep *s)
{
	uint32_t last = s->heap[--s->nheap], at = 0, child;

	while ((child = 2 * at + 1) < s->nheap) {
		if (child + 1 < s->nheap && s->heap[child + 1] > s->heap[child])
			child++;
		if (s->heap[child] < last)
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = last;
}

static void add_range(struct perfmap *map, uint64_t start, uint64_t end, uint32_t entry)
{
	struct perfmap_range *last = map->nranges ? &map->ranges[map->nranges - 1] : NULL;

	if (last && last->entry == entry && last->start + last->bytes == start)
		last->bytes += (uint32_t)(end - start);
	else
		map->ranges[map->nranges++] =
			(struct perfmap_range){start, (uint32_t)(end - start), entry};
}

/* Each step takes a line from the items or from the heap: O(n log n) for any overlaps. */
static void sweep_ranges(struct sweep *s)
{
	uint32_t n = s->map->nentries;
	uint64_t place = 0, end;

	for (;;) {
		while (s->nheap && end_of(s, s->heap[0]) <= place)
			heap_pop(s);
		if (!s->nheap && s->next == n)
			return;
		if (!s->nheap)
			place = s->items[s->next].key;
		while (s->next < n && s->items[s->next].key == place)
			heap_push(s, s->items[s->next++].value[0]);
		end = end_of(s, s->heap[0]);
		if (s->next < n && s->items[s->next].key < end)
			end = s->items[s->next].key;
		add_range(s->map, place, end, s->heap[0]);
		place = end;
	}
}

/* Return memory; if that fails, the block is only larger than needed. */
static void *shrink_block(void *block, size_t n)
{
	void *fitted = realloc(block, n);

	return fitted ? fitted : block;
}

/*
 * Keep only what can be found: a program that runs for days names the same memory many times. Names
 * move towards the front of the text. number has room for one number per entry.
 */
static void drop_unused_entries(struct perfmap *map, uint32_t *number)
{
	uint32_t i, kept = 0;
	size_t text = 0;

	memset(number, 0, map->nentries * sizeof(*number));
	for (i = 0; i < map->nranges; i++)
		number[map->ranges[i].entry] = 1;
	for (i = 0; i < map->nentries; i++) {
		struct perfmap_entry e = map->entries[i];
		size_t n = strlen(map->text.data + e.name) + 1;

		if (!number[i])
			continue;
		memmove(map->text.data + text, map->text.data + e.name, n);
		e.name = (uint32_t)text;
		text += n;
		number[i] = kept;
		map->entries[kept++] = e;
	}
	for (i = 0; i < map->nranges; i++)
		map->ranges[i].entry = number[map->ranges[i].entry];
	map->nentries = map->capacity = kept;
	map->text.len = map->text.cap = text;
	map->text.data = shrink_block(map->text.data, text);
	map->entries = shrink_block(map->entries, kept * sizeof(*map->entries));
	map->ranges = shrink_block(map->ranges, map->nranges * sizeof(*map->ranges));
}

static int build_ranges(struct perfmap *map)
{
	size_t i, n = map->nentries;
	struct sweep s = {.map = map};
	int rc = 0;

	if (!n)
		return 0;
	s.items = malloc(2 * n * sizeof(*s.items));
	s.heap = malloc(n * sizeof(*s.heap));
	map->ranges = malloc(2 * n * sizeof(*map->ranges));
	if (s.items && s.heap && map->ranges) {
		for (i = 0; i < n; i++)
			s.items[i] = (struct sort_item){map->entries[i].start, {(uint32_t)i, 0}};
		sort_items(s.items, s.items + n, map->nentries);
		sweep_ranges(&s);
		drop_unused_entries(map, s.heap);
	} else {
		rc = ERR_MEMORY;
	}
	free(s.items);
	free(s.heap);
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

int perfmap_parse(struct buf *text, struct perfmap **out, struct err *err)
{
	struct perfmap *map;

	if (text->len >= UINT32_MAX)
		return err_set(err, ERR_LIMIT, "the perf map is larger than 4 GB");
	map = calloc(1, sizeof(*map));
	if (!map)
		return err_memory(err, "for a perf map");
	map->text = *text;
	if (collect_entries(map) || build_ranges(map)) {
		memset(&map->text, 0, sizeof(map->text));
		perfmap_free(map);
		return err_memory(err, "for a perf map");
	}
	memset(text, 0, sizeof(*text));
	*out = map;
	return 0;
}

void perfmap_free(struct perfmap *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->ranges);
	buf_free(&map->text);
	free(map);
}

bool perfmap_is_sound(const struct perfmap *map)
{
	uint64_t end = 0;
	uint32_t i;

	if (map->nentries && (!map->text.len || map->text.data[map->text.len - 1]))
		return false;
	for (i = 0; i < map->nentries; i++) {
		const struct perfmap_entry *e = &map->entries[i];

		if (e->name >= map->text.len ||
		    strnlen(map->text.data + e->name, FUNCTION_NAME_MAX + 1) > FUNCTION_NAME_MAX)
			return false;
	}
	for (i = 0; i < map->nranges; i++) {
		const struct perfmap_range *r = &map->ranges[i];

		if (r->entry >= map->nentries || r->start < end || r->start + r->bytes < r->start)
			return false;
		end = r->start + r->bytes;
	}
	return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

uint32_t perfmap_count(const struct perfmap *map)
{
	return map->nentries;
}

bool perfmap_full(const struct perfmap *map)
{
	return map->full;
}

size_t perfmap_bytes(const struct perfmap *map)
{
	return sizeof(*map) + map->text.cap + map->capacity * sizeof(*map->entries) +
	       map->nranges * sizeof(*map->ranges);
}

bool perfmap_find(const struct perfmap *map, uint64_t address, struct perfmap_function *out)
{
	uint32_t n = sorted_upto(map->ranges, map->nranges, sizeof(*map->ranges), 8, address);
	const struct perfmap_range *r = n ? &map->ranges[n - 1] : NULL;
	const struct perfmap_entry *e;

	if (!r || address - r->start >= r->bytes)
		return false;
	e = &map->entries[r->entry];
	*out = (struct perfmap_function){e->start, e->bytes, map->text.data + e->name};
	return true;
}
