#include "source/host/maps.h"

#include "base/array.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/*
 * A treap: a binary tree by start address, and a heap by random priority, which keeps it flat
 * (Seidel and Aragon, Randomized search trees, Algorithmica 16, 1996). Its nodes lie in one array,
 * so a copy is one memcpy().
 */
struct node {
	struct mapping mapping;
	uint32_t left, right;         /* 0 = none; left is the next of the free nodes too */
	uint32_t priority;
};

struct maps {
	uint32_t refs, count;
	uint32_t root, free_nodes;
	uint32_t nnodes, room;        /* nodes[0] is not used */
	uint64_t random;              /* xorshift64 */
	struct node *nodes;
};

struct maps *maps_new(void)
{
	struct maps *maps = calloc(1, sizeof(*maps));

	if (maps) {
		maps->refs = 1;
		maps->nnodes = 1;
		maps->random = (uintptr_t)maps | 1;
	}
	return maps;
}

struct maps *maps_share(struct maps *maps)
{
	maps->refs++;
	return maps;
}

static void drop_objects(const struct maps *maps, uint32_t root, uint64_t now_ns)
{
	if (!root)
		return;
	drop_objects(maps, maps->nodes[root].left, now_ns);
	object_drop(maps->nodes[root].mapping.object, now_ns);
	drop_objects(maps, maps->nodes[root].right, now_ns);
}

void maps_free(struct maps *maps, uint64_t now_ns)
{
	if (!maps || --maps->refs)
		return;
	drop_objects(maps, maps->root, now_ns);
	free(maps->nodes);
	free(maps);
}

/* The mapping with the highest start that is not above the address; NULL = none. */
static struct mapping *last_not_above(const struct maps *maps, uint64_t address)
{
	struct mapping *found = NULL;
	uint32_t at = maps->root;

	while (at) {
		struct node *node = &maps->nodes[at];
		bool above = node->mapping.start > address;

		if (!above)
			found = &node->mapping;
		at = above ? node->left : node->right;
	}
	return found;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	const struct mapping *m = last_not_above(maps, address);

	return m && address < m->end ? m : NULL;
}

uint32_t maps_count(const struct maps *maps)
{
	return maps->count;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Room for one new mapping and the tails of two that it cuts. */
static bool make_room(struct maps *maps)
{
	return !ARRAY_ROOM(maps->nodes, maps->room, maps->nnodes + 3);
}

static void ref_objects(const struct maps *maps, uint32_t root)
{
	if (!root)
		return;
	object_ref(maps->nodes[root].mapping.object);
	ref_objects(maps, maps->nodes[root].left);
	ref_objects(maps, maps->nodes[root].right);
}

/* Make a copy if others share the list, and room for a change. NULL = no memory. */
static struct maps *own(struct maps *maps)
{
	struct maps *copy;

	if (maps->refs == 1)
		return make_room(maps) ? maps : NULL;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = *maps;
	copy->refs = 1;
	copy->nodes = NULL;
	copy->room = 0;
	if (!make_room(copy)) {
		free(copy);
		return NULL;
	}
	if (maps->nodes)
		memcpy(copy->nodes, maps->nodes, maps->nnodes * sizeof(*maps->nodes));
	ref_objects(copy, copy->root);
	maps->refs--;
	return copy;
}

/* There is room: make_room(). */
static uint32_t new_node(struct maps *maps, const struct mapping *mapping)
{
	uint32_t at = maps->free_nodes;

	if (at)
		maps->free_nodes = maps->nodes[at].left;
	else
		at = maps->nnodes++;
	maps->random ^= maps->random << 13;
	maps->random ^= maps->random >> 7;
	maps->random ^= maps->random << 17;
	maps->nodes[at] = (struct node){.mapping = *mapping,
					.priority = (uint32_t)(maps->random >> 32)};
	maps->count++;
	return at;
}

static void free_nodes(struct maps *maps, uint32_t root, uint64_t now_ns)
{
	struct node *node = &maps->nodes[root];

	if (!root)
		return;
	free_nodes(maps, node->left, now_ns);
	free_nodes(maps, node->right, now_ns);
	object_drop(node->mapping.object, now_ns);
	node->left = maps->free_nodes;
	maps->free_nodes = root;
	maps->count--;
}

/* Into those that start below the address and the others. */
static void split(struct node *nodes, uint32_t root, uint64_t address, uint32_t *below,
		  uint32_t *others)
{
	if (!root) {
		*below = *others = 0;
	} else if (nodes[root].mapping.start < address) {
		split(nodes, nodes[root].right, address, &nodes[root].right, others);
		*below = root;
	} else {
		split(nodes, nodes[root].left, address, below, &nodes[root].left);
		*others = root;
	}
}

/* All of `below` start below all of `above`. */
static uint32_t join(struct node *nodes, uint32_t below, uint32_t above)
{
	if (!below || !above)
		return below | above;
	if (nodes[below].priority > nodes[above].priority) {
		nodes[below].right = join(nodes, nodes[below].right, above);
		return below;
	}
	nodes[above].left = join(nodes, below, nodes[above].left);
	return above;
}

/* Cut the mapping that holds the address into two, unless it starts there. */
static void cut_at(struct maps *maps, uint64_t address)
{
	struct mapping *m = last_not_above(maps, address), tail;
	uint32_t below, above;

	if (!m || m->start == address || m->end <= address)
		return;
	tail = *m;
	tail.pgoff += address - tail.start;
	tail.start = m->end = address;
	object_ref(tail.object);
	split(maps->nodes, maps->root, address, &below, &above);
	above = join(maps->nodes, new_node(maps, &tail), above);
	maps->root = join(maps->nodes, below, above);
}

/* Replace what [start, end) holds by a mapping of this range; NULL = by nothing. */
static void replace(struct maps *maps, uint64_t start, uint64_t end, const struct mapping *mapping,
		    uint64_t now_ns)
{
	uint32_t below, within, above;

	cut_at(maps, start);
	cut_at(maps, end);
	split(maps->nodes, maps->root, start, &below, &within);
	split(maps->nodes, within, end, &within, &above);
	free_nodes(maps, within, now_ns);
	if (mapping)
		below = join(maps->nodes, below, new_node(maps, mapping));
	maps->root = join(maps->nodes, below, above);
}

int maps_insert(struct maps **maps, const struct mapping *mapping, uint64_t now_ns)
{
	struct maps *mine = own(*maps);
	int rc = 0;

	if (mine)
		*maps = mine;
	if (!mine)
		rc = ERR_MEMORY;
	else if (mine->count + 2 > MAPS_MAX)
		rc = ERR_LIMIT;
	else if (mapping->start >= mapping->end)
		rc = ERR_FORMAT;
	if (rc) {
		object_drop(mapping->object, now_ns);
		return rc;
	}
	replace(mine, mapping->start, mapping->end, mapping, now_ns);
	return 0;
}

int maps_remove(struct maps **maps, uint64_t start, uint64_t end, uint64_t now_ns)
{
	const struct mapping *last = start < end ? last_not_above(*maps, end - 1) : NULL;
	struct maps *mine;

	if (!last || last->end <= start)
		return 0;                    /* nothing is there */
	mine = own(*maps);
	if (!mine)
		return ERR_MEMORY;
	*maps = mine;
	replace(mine, start, end, NULL, now_ns);
	return 0;
}

void maps_unescape(char *path)
{
	char *to = path += strcspn(path, "\\");

	for (; *path; path++) {
		bool newline = strncmp(path, "\\012", 4) == 0;

		*to++ = newline ? '\n' : *path;
		path += newline ? 3 : 0;
	}
	*to = '\0';
}

static bool take_number(char **at, unsigned base, uint64_t *out)
{
	const char *first = *at;
	int digit;

	for (*out = 0; (digit = hex_digit(**at)) >= 0 && digit < (int)base; (*at)++)
		*out = *out * base + (unsigned)digit;
	return *at > first && *at - first <= 20;
}

/* A hexadecimal number and the character behind it. */
static bool take_hex(char **at, char behind, uint64_t *out)
{
	return take_number(at, 16, out) && *(*at)++ == behind;
}

/* Not sscanf(), which takes ten times as long: a large machine has 100,000 of them. */
bool maps_line_read(char *line, struct maps_line *out)
{
	uint64_t major, minor;
	char *at = line;

	if (!take_hex(&at, '-', &out->start) || !take_hex(&at, ' ', &out->end) ||
	    strnlen(at, 5) < 5 || at[4] != ' ')
		return false;
	out->executable = at[2] == 'x';
	at += 5;
	if (!take_hex(&at, ' ', &out->pgoff) || !take_hex(&at, ':', &major) ||
	    !take_hex(&at, ' ', &minor) || !take_number(&at, 10, &out->ino) ||
	    (*at && *at != ' '))
		return false;
	out->major = (unsigned)major;
	out->minor = (unsigned)minor;
	out->path = at + strspn(at, " ");
	maps_unescape(out->path);
	return true;
}

/* What is not executable is left out before its numbers are read. */
static bool is_executable(const char *line)
{
	const char *rights = strchr(line, ' ');

	return rights && strnlen(rights, 4) == 4 && rights[3] == 'x';
}

bool maps_each_code(char *text, bool (*one)(void *ctx, const struct maps_line *l), void *ctx)
{
	struct maps_line l;
	char *next;

	for (; (next = strchr(text, '\n')) != NULL; text = next + 1) {
		*next = '\0';
		if (!is_executable(text))
			continue;
		if (!maps_line_read(text, &l))
			return false;
		if (!one(ctx, &l))
			break;
	}
	return true;
}

bool maps_path_is_run_time(const char *path)
{
	static const char *const run_time[] = {"//anon", "/memfd:", "/dev/zero", "/SYSV",
					       "/anon_hugepage"};
	size_t i;

	if (path[0] != '/')
		return true;
	for (i = 0; i < COUNT_OF(run_time); i++)
		if (path[1] == run_time[i][1] &&
		    strncmp(path, run_time[i], strlen(run_time[i])) == 0)
			return true;
	return false;
}
