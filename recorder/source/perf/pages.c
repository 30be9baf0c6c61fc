#include "source/perf/pages.h"

#define CHUNK_PAGES 512u

struct chunk {
	uint32_t owner;
	uint64_t number;
};

static bool chunk_same(const void *ctx, uint32_t value, const void *key)
{
	const struct page *page = pages_get(ctx, value);
	const struct chunk *c = key;

	return page->owner == c->owner && page->number / CHUNK_PAGES == c->number;
}

static uint64_t chunk_hash(const struct chunk *c)
{
	return hash_pair(c->owner, c->number);
}

static uint32_t first_in(const struct pages *p, const struct chunk *c)
{
	return table_find(&p->by_chunk, chunk_hash(c), chunk_same, p, c);
}

int pages_init(struct pages *p, uint32_t max)
{
	return slots_init(&p->all, sizeof(struct page), max);
}

void pages_free(struct pages *p)
{
	slots_free(&p->all);
	table_free(&p->by_chunk);
}

static void leave_chunk(struct pages *p, struct page *page, uint32_t at)
{
	struct chunk c = {page->owner, page->number / CHUNK_PAGES};
	uint32_t first = first_in(p, &c);
	struct page *other;

	if (first != at) {
		for (other = pages_get(p, first); other->next_in_chunk != at;)
			other = pages_get(p, other->next_in_chunk);
		other->next_in_chunk = page->next_in_chunk;
		return;
	}
	table_remove(&p->by_chunk, chunk_hash(&c), at);
	if (page->next_in_chunk != SLOTS_NONE)           /* in the room that was just left */
		table_add(&p->by_chunk, chunk_hash(&c), page->next_in_chunk);
}

void pages_remove(struct pages *p, struct page_list *l, uint32_t at)
{
	struct page *page = pages_get(p, at);

	leave_chunk(p, page, at);
	if (page->before == SLOTS_NONE)
		l->first = page->next;
	else
		pages_get(p, page->before)->next = page->next;
	if (page->next != SLOTS_NONE)
		pages_get(p, page->next)->before = page->before;
	l->n--;
	page->time_ns = 0;
	slots_free_one(&p->all, at);
}

bool pages_add(struct pages *p, struct page_list *l, const struct page *page)
{
	struct chunk c = {l->owner, page->number / CHUNK_PAGES};
	uint32_t first = first_in(p, &c), at = slots_add(&p->all);
	struct page *added;

	if (at == SLOTS_NONE)
		return false;
	added = pages_get(p, at);
	*added = *page;
	added->owner = l->owner;
	added->next = l->first;
	added->before = added->next_in_chunk = SLOTS_NONE;
	if (first != TABLE_NONE) {
		added->next_in_chunk = pages_get(p, first)->next_in_chunk;
		pages_get(p, first)->next_in_chunk = at;
	} else if (table_add(&p->by_chunk, chunk_hash(&c), at)) {
		slots_free_one(&p->all, at);
		return false;
	}
	if (l->first != SLOTS_NONE)
		pages_get(p, l->first)->before = at;
	l->first = at;
	l->n++;
	return true;
}

struct unmapping {
	uint64_t from, to, time_ns;
	void (*gone)(void *ctx, const struct page *page, uint64_t time_ns);
	void *ctx;
};

static void judge(struct pages *p, struct page_list *l, uint32_t at, const struct unmapping *u)
{
	const struct page *page = pages_get(p, at);

	if (page->number < u->from || page->number > u->to || page->time_ns > u->time_ns)
		return;
	u->gone(u->ctx, page, u->time_ns);
	pages_remove(p, l, at);
}

void pages_unmap(struct pages *p, struct page_list *l, uint64_t from, uint64_t to, uint64_t time_ns,
		 void (*gone)(void *ctx, const struct page *page, uint64_t time_ns), void *ctx)
{
	const struct unmapping u = {from, to, time_ns, gone, ctx};
	struct chunk c = {l->owner, from / CHUNK_PAGES};
	uint32_t at, next;

	if (to / CHUNK_PAGES - c.number >= l->n) {
		for (at = l->first; at != SLOTS_NONE; at = next) {
			next = pages_get(p, at)->next;
			judge(p, l, at, &u);
		}
		return;
	}
	for (; c.number <= to / CHUNK_PAGES; c.number++)
		for (at = first_in(p, &c); at != SLOTS_NONE; at = next) {
			next = pages_get(p, at)->next_in_chunk;
			judge(p, l, at, &u);
		}
}
