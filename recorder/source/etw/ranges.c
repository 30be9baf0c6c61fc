#include "source/etw/ranges.h"

#include "base/array.h"
#include "base/err.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#define SPACES_MAX (1u << 17)
#define TAIL_MAX 64u                         /* unsorted ranges */
#define LAYER_NONE UINT32_MAX
#define LOOK_MAX 4096u                       /* ranges compared with one address */

struct entry {
	uint64_t start;
	uint64_t end;                        /* the greatest of this and all entries before */
	uint32_t number;                     /* of the range */
};

/* The ranges of one process, sorted by start, then by number; the latest are unsorted. */
struct space {
	uint32_t pid;
	uint32_t nsorted, n, max;
	struct entry *entries;               /* n of them; the first nsorted are sorted */
};

int etw_ranges_init(struct etw_ranges *r)
{
	memset(r, 0, sizeof(*r));
	if (slots_init(&r->items, sizeof(struct etw_range), ETW_RANGES_MAX) ||
	    slots_init(&r->spaces, sizeof(struct space), SPACES_MAX)) {
		etw_ranges_free(r);
		return ERR_MEMORY;
	}
	return 0;
}

static struct space *space_at(const struct etw_ranges *r, uint32_t number)
{
	return slots_get(&r->spaces, number);
}

void etw_ranges_free(struct etw_ranges *r)
{
	uint32_t i;

	for (i = 0; i < r->spaces.used; i++)
		free(space_at(r, i)->entries);
	slots_free(&r->items);
	slots_free(&r->spaces);
	table_free(&r->by_start);
	table_free(&r->by_pid);
}

size_t etw_ranges_bytes(const struct etw_ranges *r)
{
	size_t n = slots_bytes(&r->items) + slots_bytes(&r->spaces) + table_bytes(&r->by_start) +
		   table_bytes(&r->by_pid);
	uint32_t i;

	for (i = 0; i < r->spaces.used; i++)
		n += space_at(r, i)->max * sizeof(struct entry);
	return n;
}

struct etw_range *etw_range(const struct etw_ranges *r, uint32_t number)
{
	return slots_get(&r->items, number);
}

/* ---- processes and starts -------------------------------------------------------------------- */

static bool same_pid(const void *ctx, uint32_t value, const void *key)
{
	return space_at(ctx, value)->pid == *(const uint32_t *)key;
}

static struct space *find_space(const struct etw_ranges *r, uint32_t pid)
{
	uint32_t number = table_find(&r->by_pid, hash_u64(pid), same_pid, r, &pid);

	return number == TABLE_NONE ? NULL : space_at(r, number);
}

static struct space *get_space(struct etw_ranges *r, uint32_t pid)
{
	struct space *space = find_space(r, pid);
	uint32_t number;

	if (space)
		return space;
	number = table_add_slot(&r->by_pid, hash_u64(pid), &r->spaces, SLOTS_NONE);
	if (number == SLOTS_NONE)
		return NULL;
	space = space_at(r, number);
	space->pid = pid;
	return space;
}

static bool same_start(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct etw_range *range = etw_range(ctx, value), *key = key_arg;

	return range->pid == key->pid && range->start == key->start;
}

uint32_t etw_ranges_at(const struct etw_ranges *r, uint32_t pid, uint64_t start)
{
	struct etw_range key = {.pid = pid, .start = start};

	return table_find(&r->by_start, hash_pair(start, pid), same_start, r, &key);
}

void etw_ranges_close(struct etw_ranges *r, uint32_t pid, int64_t ticks)
{
	struct space *space = find_space(r, pid);
	uint32_t i;

	for (i = 0; space && i < space->n; i++) {
		struct etw_range *range = etw_range(r, space->entries[i].number);

		if (range->until == ETW_EVER && range->from <= ticks)
			range->until = ticks;
	}
}

void etw_ranges_each(const struct etw_ranges *r, etw_range_fn *fn, void *ctx)
{
	uint32_t i, k;

	for (i = 0; i < r->spaces.used; i++)
		for (k = 0; k < space_at(r, i)->n; k++)
			fn(ctx, etw_range(r, space_at(r, i)->entries[k].number));
}

/* ---- adding and sorting ---------------------------------------------------------------------- */

static int by_start(const void *a_arg, const void *b_arg)
{
	const struct entry *a = a_arg, *b = b_arg;

	return a->start != b->start ? compare_u64(a->start, b->start)
				    : compare_u64(a->number, b->number);
}

/* How many of the sorted ranges start at or before the address. */
static uint32_t after_start(const struct space *space, uint64_t address)
{
	return sorted_upto(space->entries, space->nsorted, sizeof(*space->entries), 8, address);
}

/* The first layer without an overlapping range; ranges without a layer do not count yet. */
static uint32_t free_layer(const struct etw_ranges *r, const struct space *space,
			   const struct etw_range *range)
{
	uint32_t i, looked = 0, low = after_start(space, range->end - 1);
	const struct etw_range *other;
	uint64_t used = 0;

	for (; low-- > 0 && space->entries[low].end > range->start && looked < LOOK_MAX; looked++) {
		other = etw_range(r, space->entries[low].number);
		if (other->end > range->start && other->layer < ETW_LAYERS_MAX)
			used |= (uint64_t)1 << other->layer;
	}
	for (i = space->nsorted; i < space->n; i++) {
		other = etw_range(r, space->entries[i].number);
		if (other->start < range->end && other->end > range->start &&
		    other->layer < ETW_LAYERS_MAX)
			used |= (uint64_t)1 << other->layer;
	}
	for (i = 0; i < ETW_LAYERS_MAX && (used >> i & 1); i++)
		;
	return looked == LOOK_MAX ? ETW_LAYERS_MAX : i;
}

uint32_t etw_range_layer(struct etw_ranges *r, uint32_t number)
{
	struct etw_range *range = etw_range(r, number);

	if (range->layer == LAYER_NONE)
		range->layer = free_layer(r, find_space(r, range->pid), range);
	return range->layer;
}

/*
 * Sort the latest, and merge them in from the end. Returns the place of the first of them; what
 * stands before it is as it was.
 */
static uint32_t merge_latest(struct space *space)
{
	uint32_t old = space->nsorted, left = space->n - old, to = space->n;
	struct entry *entries = space->entries;
	struct sort_item *latest = malloc(2 * (size_t)left * sizeof(*latest));

	if (!latest) {
		qsort(entries, space->n, sizeof(*entries), by_start);
		return 0;
	}
	for (uint32_t i = 0; i < left; i++)
		latest[i] = (struct sort_item){entries[old + i].start, {entries[old + i].number}};
	sort_items(latest, latest + left, left);     /* stable: numbers ascend */
	while (left) {
		const struct sort_item *last = &latest[left - 1];
		bool is_old = old && entries[old - 1].start > last->key;

		to--;
		if (is_old)
			entries[to] = entries[--old];
		else
			entries[to] = (struct entry){.start = last->key, .number = last->value[0]};
		left -= !is_old;
	}
	free(latest);
	return to;
}

static void sort_space(struct etw_ranges *r, struct space *space)
{
	uint32_t first;
	uint64_t end;

	if (space->nsorted == space->n)
		return;
	first = merge_latest(space);
	end = first ? space->entries[first - 1].end : 0;
	for (uint32_t i = first; i < space->n; i++) {
		const struct etw_range *range = etw_range(r, space->entries[i].number);

		end = range->end > end ? range->end : end;
		space->entries[i].end = end;
	}
	space->nsorted = space->n;
	for (uint32_t i = first; i < space->n; i++)
		etw_range_layer(r, space->entries[i].number);
}

uint32_t etw_ranges_add(struct etw_ranges *r, const struct etw_range *range)
{
	struct space *space = range->end > range->start ? get_space(r, range->pid) : NULL;
	uint32_t older = etw_ranges_at(r, range->pid, range->start), number = SLOTS_NONE;
	struct etw_range *added;

	if (space && !ARRAY_ROOM(space->entries, space->max, space->n + 1))
		number = table_add_slot(&r->by_start, hash_pair(range->start, range->pid),
					&r->items, older);
	if (number == SLOTS_NONE) {
		r->refused += range->end > range->start;
		return ETW_RANGE_NONE;
	}
	added = etw_range(r, number);
	*added = *range;
	added->older = older;
	added->layer = LAYER_NONE;
	space->entries[space->n++] = (struct entry){.start = range->start, .number = number};
	if (r->settled && space->n - space->nsorted > TAIL_MAX + space->nsorted / 32)
		sort_space(r, space);
	return number;
}

void etw_ranges_settle(struct etw_ranges *r)
{
	uint32_t i;

	for (i = 0; i < r->spaces.used; i++)
		sort_space(r, space_at(r, i));
	r->settled = true;
}

/* ---- finding --------------------------------------------------------------------------------- */

struct search {
	const struct etw_ranges *r;
	uint64_t address;
	int64_t ticks;
	uint32_t found;
	int64_t from, until;
	uint32_t layer;                      /* LAYER_NONE: by time */
};

static void consider(struct search *s, uint32_t number)
{
	const struct etw_range *range = etw_range(s->r, number), *best;

	if (s->address < range->start || s->address >= range->end)
		return;
	if (s->layer != LAYER_NONE) {
		if (range->layer == s->layer)
			s->found = number;
		return;
	}
	if (range->from > s->ticks) {
		if (range->from - 1 < s->until)
			s->until = range->from - 1;
		return;
	}
	if (range->until < s->ticks) {
		if (range->until + 1 > s->from)
			s->from = range->until + 1;
		return;
	}
	/* The answer may change when any range at this address begins or ends. */
	if (range->from > s->from)
		s->from = range->from;
	if (range->until < s->until)
		s->until = range->until;
	best = s->found == ETW_RANGE_NONE ? NULL : etw_range(s->r, s->found);
	if (!best || range->from > best->from || (range->from == best->from && number > s->found))
		s->found = number;
}

static void search(struct search *s, uint32_t pid)
{
	const struct space *space = find_space(s->r, pid);
	uint32_t low, i, looked = 0;

	if (!space)
		return;
	low = after_start(space, s->address);
	while (low-- > 0 && space->entries[low].end > s->address && looked++ < LOOK_MAX)
		consider(s, space->entries[low].number);
	for (i = space->nsorted; i < space->n; i++)
		consider(s, space->entries[i].number);
}

uint32_t etw_ranges_find(const struct etw_ranges *r, uint32_t pid, uint64_t address, int64_t ticks,
			 int64_t *from, int64_t *until)
{
	struct search s = {.r = r, .address = address, .ticks = ticks, .found = ETW_RANGE_NONE,
			   .from = *from, .until = *until, .layer = LAYER_NONE};

	search(&s, pid);
	*from = s.from;
	*until = s.until;
	return s.found;
}

uint32_t etw_ranges_layer(const struct etw_ranges *r, uint32_t pid, uint64_t address,
			  uint32_t layer)
{
	struct search s = {.r = r, .address = address, .found = ETW_RANGE_NONE, .layer = layer};

	search(&s, pid);
	return s.found;
}
