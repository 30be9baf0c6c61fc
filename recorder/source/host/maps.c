#include "source/host/maps.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct maps {
	uint32_t refs, count, room;
	struct mapping *entries;
};

struct maps *maps_new(void)
{
	struct maps *maps = calloc(1, sizeof(*maps));

	if (maps)
		maps->refs = 1;
	return maps;
}

struct maps *maps_share(struct maps *maps)
{
	maps->refs++;
	return maps;
}

void maps_free(struct maps *maps, uint64_t now_ns)
{
	uint32_t i;

	if (!maps || --maps->refs)
		return;
	for (i = 0; i < maps->count; i++)
		object_drop(maps->entries[i].object, now_ns);
	free(maps->entries);
	free(maps);
}

/* The index of the first entry that ends after the address. */
static uint32_t first_after(const struct maps *maps, uint64_t address)
{
	uint32_t low = 0, high = maps->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (maps->entries[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	uint32_t i = first_after(maps, address);

	if (i < maps->count && maps->entries[i].start <= address)
		return &maps->entries[i];
	return NULL;
}

uint32_t maps_count(const struct maps *maps)
{
	return maps->count;
}

static bool make_room(struct maps *maps, uint32_t more)
{
	return !ARRAY_ROOM(maps->entries, maps->room, maps->count + more);
}

/* Make a copy if others share the list. */
static struct maps *own(struct maps *maps)
{
	struct maps *copy;
	uint32_t i;

	if (maps->refs == 1)
		return maps;
	copy = maps_new();
	if (!copy || !make_room(copy, maps->count + 2)) {
		free(copy);
		return NULL;
	}
	for (i = 0; i < maps->count; i++) {
		copy->entries[i] = maps->entries[i];
		object_ref(copy->entries[i].object);
	}
	copy->count = maps->count;
	maps->refs--;
	return copy;
}

static void insert_at(struct maps *maps, uint32_t i, const struct mapping *mapping)
{
	memmove(&maps->entries[i + 1], &maps->entries[i],
		(maps->count - i) * sizeof(maps->entries[0]));
	maps->entries[i] = *mapping;
	maps->count++;
}

/* Remove [start, end) from the list, which has room for one more entry. */
static void clear_range(struct maps *maps, uint64_t start, uint64_t end, uint64_t now_ns)
{
	uint32_t i = first_after(maps, start);

	while (i < maps->count && maps->entries[i].start < end) {
		struct mapping *m = &maps->entries[i];

		if (m->start < start && m->end > end) {
			struct mapping tail = *m;

			tail.pgoff += end - tail.start;
			tail.start = end;
			object_ref(tail.object);
			m->end = start;
			insert_at(maps, i + 1, &tail);
			return;
		}
		if (m->start < start) {
			m->end = start;
			i++;
		} else if (m->end > end) {
			m->pgoff += end - m->start;
			m->start = end;
			return;
		} else {
			object_drop(m->object, now_ns);
			maps->count--;
			memmove(m, m + 1, (maps->count - i) * sizeof(*m));
		}
	}
}

int maps_insert(struct maps **maps, const struct mapping *mapping, uint64_t now_ns)
{
	struct maps *mine = own(*maps);
	int rc = 0;

	if (mine)
		*maps = mine;
	if (!mine || !make_room(mine, 2))
		rc = ERR_MEMORY;
	else if (mine->count + 2 > MAPS_MAX)
		rc = ERR_LIMIT;
	else if (mapping->start >= mapping->end)
		rc = ERR_FORMAT;
	if (rc) {
		object_drop(mapping->object, now_ns);
		return rc;
	}
	clear_range(mine, mapping->start, mapping->end, now_ns);
	insert_at(mine, first_after(mine, mapping->start), mapping);
	return 0;
}

int maps_remove(struct maps **maps, uint64_t start, uint64_t end, uint64_t now_ns)
{
	struct maps *mine = own(*maps);

	if (mine)
		*maps = mine;
	if (!mine || !make_room(mine, 1))
		return ERR_MEMORY;
	if (start < end)
		clear_range(mine, start, end, now_ns);
	return 0;
}

void maps_unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		bool newline = strncmp(path, "\\012", 4) == 0;

		*to++ = newline ? '\n' : *path;
		path += newline ? 3 : 0;
	}
	*to = '\0';
}
