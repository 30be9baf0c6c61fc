/*
 * Heap profiles of jemalloc (jeprof.*.heap, of MALLOC_CONF=prof:true), a text:
 *
 *	heap_v2/524288                       one sample for so many bytes
 *	  t*: 373: 336603 [0: 0]             objects: bytes in use, of all threads; then of each
 *	@ 0x7f29a2 0x55e1c4 ...              return addresses, the allocator's first
 *	  t*: 72: 4824969 [0: 0]             of this stack
 *	MAPPED_LIBRARIES:
 *	...                                  /proc/PID/maps
 *
 * What is in use is sampled by bytes; as jeprof does, it is divided by the chance of an object of
 * that size to be a sample. Names come from the files that were mapped, if they are still the same.
 * Source: jemalloc's manual page, src/prof_data.c and jeprof of version 5.3.
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_MAX 65536u
#define HEAD "heap_v2/"
#define MAPS "MAPPED_LIBRARIES:"
#define BYTES_MAX 4e18
#define LEAST_CHANCE 1e-9

struct map {
	uint64_t from;                       /* first: sorted_upto() */
	uint64_t to, offset, dev, ino;
	const char *path;
	size_t npath;
};

struct reading {
	struct stack_list *l;
	double rate;
	struct map *maps;                    /* by address */
	uint32_t nmaps, maps_room;
	uint32_t thread;
};

static uint64_t device(uint64_t major, uint64_t minor)       /* as glibc's makedev() */
{
	return (major & 0xfffff000u) << 32 | (major & 0xfffu) << 8 |
	       (minor & 0xffffff00u) << 12 | (minor & 0xffu);
}

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

/* A number, and what stands behind it. */
static bool take(const char **at, int base, char behind, uint64_t *out)
{
	char *end;

	*out = strtoull(*at, &end, base);
	if (end == *at || *end != behind)
		return false;
	*at = end + 1;
	return true;
}

/* "55e0-55e9 r-xp 00009000 fe:00 1488 /usr/lib/x.so"; false: it is none of a file. */
static bool read_map(const char *at, struct map *m)
{
	uint64_t major, minor;

	if (!take(&at, 16, '-', &m->from) || !take(&at, 16, ' ', &m->to) || strnlen(at, 5) < 5)
		return false;
	at += 5;
	if (!take(&at, 16, ' ', &m->offset) || !take(&at, 16, ':', &major) ||
	    !take(&at, 16, ' ', &minor) || !take(&at, 10, ' ', &m->ino))
		return false;
	at += strspn(at, " ");
	m->dev = device(major, minor);
	m->path = at;
	m->npath = strcspn(at, "\n");
	return *at == '/' && m->from < m->to;
}

static int read_maps(struct reading *r, const char *at)
{
	for (at = next_line(at); *at && r->nmaps < MAPS_MAX; at = next_line(at)) {
		struct map m;

		if (!read_map(at, &m) || (r->nmaps && m.from < r->maps[r->nmaps - 1].to))
			continue;
		if (ARRAY_ROOM(r->maps, r->maps_room, r->nmaps + 1))
			return ERR_MEMORY;
		r->maps[r->nmaps++] = m;
	}
	return 0;
}

static const struct map *map_of(const struct reading *r, uint64_t address)
{
	uint32_t n = sorted_upto(r->maps, r->nmaps, sizeof(*r->maps), sizeof(r->maps->from),
				 address);

	return n && address < r->maps[n - 1].to ? &r->maps[n - 1] : NULL;
}

static uint32_t frame_of(const struct reading *r, uint64_t address)
{
	const struct map *m = map_of(r, address);
	const struct stack_list_place place = {
		.offset = m ? address - m->from + m->offset : 0, .dev = m ? m->dev : 0,
		.ino = m ? m->ino : 0};

	return m ? stack_list_address(r->l, m->path, m->npath, &place, FRAME_RETURN_ADDRESS)
		 : stack_list_frame(r->l, "", 0, "?", 1, 0);
}

/* "@ 0x7f 0x55": the callers stand last. */
static uint32_t read_stack(const struct reading *r, const char *at)
{
	uint64_t addresses[STACK_LIST_DEPTH_MAX];
	uint32_t n = 0, node = STACK_LIST_NONE;
	char *end;

	for (at++; n < STACK_LIST_DEPTH_MAX; at = end) {
		addresses[n] = strtoull(at += strspn(at, " "), &end, 16);
		if (end == at || *at == '\n')
			break;
		n++;
	}
	while (n--)
		node = stack_list_node(r->l, node, frame_of(r, addresses[n] - 1));
	return node;
}

static void put_sample(struct reading *r, const char *at, uint32_t node)
{
	struct stack_list_sample s = {.thread = r->thread, .node = node, .cpu = CPU_NONE,
				      .stream = STREAM_HEAP_NET, .quality = QUALITY_COMPLETE};
	uint64_t objects, bytes;
	double chance = 1;

	if (!take(&at, 10, ':', &objects) || !take(&at, 10, ' ', &bytes)) {
		r->l->skipped++;
		return;
	}
	if (!objects || !bytes)
		return;
	if (r->rate > 1)
		chance = -expm1(-((double)bytes / (double)objects) / r->rate);
	s.weight = chance > LEAST_CHANCE ? (double)bytes / chance : BYTES_MAX;
	if (s.weight < BYTES_MAX)
		stack_list_sample(r->l, &s);
	else
		r->l->skipped++;
}

static void read_stacks(struct reading *r, const char *at)
{
	bool in_stack = false;
	uint32_t node = STACK_LIST_NONE;

	for (; *at && strncmp(at, MAPS, strlen(MAPS)) != 0; at = next_line(at)) {
		if (*at == '@') {
			node = read_stack(r, at);
			in_stack = true;
		} else if (in_stack && strncmp(at, "  t*: ", 6) == 0) {
			put_sample(r, at + 6, node);
		}
	}
}

int stack_list_jemalloc(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct reading r = {.l = l};
	const char *maps = strstr(text, "\n" MAPS), *name = "?";
	size_t nname = 1;
	int rc;

	(void)n;
	if (strncmp(text, HEAD, strlen(HEAD)) != 0)
		return err_set(err, ERR_FORMAT, "its first line is not 'heap_v2/BYTES'");
	r.rate = (double)strtoull(text + strlen(HEAD), NULL, 10);
	rc = maps ? read_maps(&r, maps + 1) : 0;
	if (!rc && r.nmaps) {                /* the program's own file comes first */
		name = r.maps[0].path;
		for (nname = r.maps[0].npath; memchr(name, '/', nname); nname--)
			name++;
	}
	if (!rc) {
		r.thread = stack_list_thread(l, name, nname, 0, name, nname, 0);
		read_stacks(&r, text);
	}
	free(r.maps);
	if (rc)
		return err_memory(err, "for a profile of jemalloc");
	return l->nsamples ? 0 : err_set(err, ERR_FORMAT, "it has no stack ('@ 0x...') with bytes "
					 "in use");
}
