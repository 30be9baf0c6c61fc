#include "symbol/rva_index.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 4000 };

struct entry {
	uint32_t rva, end, name;             /* name: offset in names */
};

#define NO_NAME UINT32_MAX

/*
 * Until it is finished: key = rva << 3 | (RVA_RANK_MAX - rank), value = end, name. Bounds come
 * after the names of their RVA.
 */
enum { KEY_RVA_SHIFT = 3, KEY_BOUND = 7 };

struct rva_index {
	struct sort_item *items;
	uint32_t nitems, capacity;
	struct entry *entries;
	uint32_t nentries, nnamed;
	struct buf names;                    /* NUL-terminated, one after the other */
};

struct rva_index *rva_index_new(void)
{
	struct rva_index *index = calloc(1, sizeof(*index));

	if (index)
		index->names.max_bytes = RVA_NAMES_MAX_BYTES;
	return index;
}

void rva_index_free(struct rva_index *index)
{
	if (!index)
		return;
	free(index->items);
	free(index->entries);
	buf_free(&index->names);
	free(index);
}

static int push_item(struct rva_index *index, uint32_t rva, unsigned low, uint32_t end,
		     uint32_t name, struct err *err)
{
	if (index->nitems == RVA_FUNCTIONS_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %u functions", RVA_FUNCTIONS_MAX);
	if (ARRAY_ROOM(index->items, index->capacity, index->nitems + 1))
		return err_memory(err, "for its symbols");
	index->items[index->nitems++] = (struct sort_item){
		.key = (uint64_t)rva << KEY_RVA_SHIFT | low, .value = {end, name}};
	return 0;
}

int rva_index_bound(struct rva_index *index, uint32_t rva, uint32_t end, struct err *err)
{
	return rva < end ? push_item(index, rva, KEY_BOUND, end, NO_NAME, err) : 0;
}

int rva_index_add(struct rva_index *index, uint32_t rva, uint32_t end, unsigned rank,
		  const char *name, size_t n, struct err *err)
{
	uint32_t at = (uint32_t)index->names.len;
	int rc;

	if (n > NAME_MAX_BYTES)
		n = NAME_MAX_BYTES;
	n = strnlen(name, n);
	if (!n || rva >= end)
		return 0;
	if (rank > RVA_RANK_MAX)
		rank = RVA_RANK_MAX;
	rc = push_item(index, rva, RVA_RANK_MAX - rank, end, at, err);
	if (rc)
		return rc;
	buf_put(&index->names, name, n);
	buf_putc(&index->names, '\0');
	return buf_check(&index->names, "its symbols' names", err);
}

/* The first item of an RVA makes its entry; the bound, which comes last, ends it. */
static void fold_item(struct rva_index *index, const struct sort_item *item)
{
	struct entry *last = index->nentries ? &index->entries[index->nentries - 1] : NULL;
	uint32_t rva = (uint32_t)(item->key >> KEY_RVA_SHIFT);

	if (last && last->rva == rva) {
		if (item->value[1] == NO_NAME && last->end > item->value[0])
			last->end = item->value[0];
		return;
	}
	if (last && last->end > rva)
		last->end = rva;
	index->nnamed += item->value[1] != NO_NAME;
	index->entries[index->nentries++] = (struct entry){rva, item->value[0], item->value[1]};
}

int rva_index_finish(struct rva_index *index, struct err *err)
{
	uint32_t n = index->nitems;
	struct sort_item *scratch = malloc((n ? n : 1) * sizeof(*scratch));

	index->entries = malloc((n ? n : 1) * sizeof(*index->entries));
	if (!scratch || !index->entries) {
		free(scratch);
		return err_memory(err, "for its symbols");
	}
	sort_items(index->items, scratch, n);
	free(scratch);
	for (uint32_t i = 0; i < n; i++)
		fold_item(index, &index->items[i]);
	free(index->items);
	index->items = NULL;
	return 0;
}

bool rva_index_range(const struct rva_index *index, uint32_t rva, struct rva_function *out)
{
	uint32_t n = sorted_upto(index->entries, index->nentries, sizeof(*index->entries), 4, rva);
	const struct entry *e = n ? &index->entries[n - 1] : NULL;

	if (!e || rva >= e->end)
		return false;
	*out = (struct rva_function){e->rva, e->end,
				     e->name == NO_NAME ? NULL : index->names.data + e->name};
	return true;
}

uint32_t rva_index_count(const struct rva_index *index)
{
	return index->nnamed;
}

size_t rva_index_bytes(const struct rva_index *index)
{
	return sizeof(*index) + index->nentries * sizeof(*index->entries) + index->names.cap;
}
