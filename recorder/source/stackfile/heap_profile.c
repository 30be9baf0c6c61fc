/*
 * Heap profiles that allocators write, as texts. jemalloc's (jeprof.*.heap, of
 * MALLOC_CONF=prof:true):
 *
 *	heap_v2/524288                       one sample for so many bytes
 *	  t*: 373: 336603 [0: 0]             objects: bytes in use [allocated], of all threads
 *	@ 0x7f29a2 0x55e1c4 ...              return addresses, the allocator's first
 *	  t*: 72: 4824969 [0: 0]             of this stack; then of each thread
 *	MAPPED_LIBRARIES:
 *	...                                  /proc/PID/maps
 *
 * gperftools' tcmalloc (NAME.0001.heap, of HEAPPROFILE=NAME):
 *
 *	heap profile:  445: 428439 [3667: 419185] @ heapprofile
 *	 72: 4824969 [100: 6701345] @ 0x55e1c4 0x7f29a2 ...
 *
 *	MAPPED_LIBRARIES:
 *	...                                  the same, all of device 00:00
 *
 * "heapprofile" counts every allocation; "heap_v2/524288" are samples of what is in use, twice, and
 * "heap/1048576" has twice their rate. As jeprof and pprof do, what is sampled by bytes is divided
 * by the chance of an object of that size to be a sample. Names come from the files that were
 * mapped, if they are still the same. Source: jemalloc's manual page, src/prof_data.c and jeprof of
 * version 5.3; gperftools' heap-profile-table.cc and pprof of version 2.10.
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_MAX 65536u
#define JEMALLOC_HEAD "heap_v2/"
#define TCMALLOC_HEAD "heap profile:"
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
	bool tells_allocated;                /* else its second counts repeat the first */
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

struct counts {
	uint64_t objects, bytes;
};

static void put_sample(struct reading *r, const struct counts *c, uint8_t stream, uint32_t node)
{
	struct stack_list_sample s = {.thread = r->thread, .node = node, .cpu = CPU_NONE,
				      .stream = stream, .quality = QUALITY_COMPLETE};
	double chance = 1;

	if (!c->objects || !c->bytes)
		return;
	if (r->rate > 1)
		chance = -expm1(-((double)c->bytes / (double)c->objects) / r->rate);
	s.weight = chance > LEAST_CHANCE ? (double)c->bytes / chance : BYTES_MAX;
	if (s.weight < BYTES_MAX)
		stack_list_sample(r->l, &s);
	else
		r->l->skipped++;
}

/* "373: 336603 [500: 419185]", and what stands behind it. */
static bool take_counts(const char **at, struct counts *in_use, struct counts *allocated)
{
	if (!take(at, 10, ':', &in_use->objects) || !take(at, 10, ' ', &in_use->bytes) ||
	    **at != '[')
		return false;
	++*at;
	return take(at, 10, ':', &allocated->objects) && take(at, 10, ']', &allocated->bytes);
}

static void put_counts(struct reading *r, const struct counts *in_use,
		       const struct counts *allocated, uint32_t node)
{
	put_sample(r, in_use, STREAM_HEAP_NET, node);
	if (r->tells_allocated)
		put_sample(r, allocated, STREAM_ALLOC, node);
}

static void read_jemalloc(struct reading *r, const char *at)
{
	struct counts in_use, allocated;
	bool in_stack = false;
	uint32_t node = STACK_LIST_NONE;

	for (; *at && strncmp(at, MAPS, strlen(MAPS)) != 0; at = next_line(at)) {
		const char *numbers = at + 6;

		if (*at == '@') {
			node = read_stack(r, at);
			in_stack = true;
		} else if (in_stack && strncmp(at, "  t*: ", 6) == 0) {
			if (take_counts(&numbers, &in_use, &allocated))
				put_counts(r, &in_use, &allocated, node);
			else
				r->l->skipped++;
		}
	}
}

static void read_tcmalloc(struct reading *r, const char *at)
{
	struct counts in_use, allocated;

	for (at = next_line(at); *at && strncmp(at, MAPS, strlen(MAPS)) != 0; at = next_line(at)) {
		const char *numbers = at;

		if (*at == '\n')
			continue;
		if (take_counts(&numbers, &in_use, &allocated) && strncmp(numbers, " @", 2) == 0)
			put_counts(r, &in_use, &allocated, read_stack(r, numbers + 1));
		else
			r->l->skipped++;
	}
}

/* What the first line says of how often a sample was taken; 1 = each allocation. */
static int read_rate(struct reading *r, const char *text, struct err *err)
{
	static const struct {
		const char *kind;
		double times;
		bool tells_allocated;
	} kinds[] = {{"heapprofile", 0, true}, {"heap_v2/", 1, false}, {"heapz_v2/", 1, false},
		     {"heap/", 0.5, true}};
	struct counts in_use, allocated;
	const char *at = text + strlen(TCMALLOC_HEAD);
	size_t i;

	if (strncmp(text, JEMALLOC_HEAD, strlen(JEMALLOC_HEAD)) == 0) {
		r->rate = (double)strtoull(text + strlen(JEMALLOC_HEAD), NULL, 10);
		r->tells_allocated = true;
		return 0;
	}
	if (strncmp(text, TCMALLOC_HEAD, strlen(TCMALLOC_HEAD)) != 0 ||
	    !take_counts(&at, &in_use, &allocated) || strncmp(at, " @ ", 3) != 0)
		return err_set(err, ERR_FORMAT, "its first line is neither 'heap_v2/BYTES' nor "
			       "'heap profile: N: BYTES [N: BYTES] @ KIND'");
	for (i = 0, at += 3; i < COUNT_OF(kinds); i++) {
		size_t n = strlen(kinds[i].kind);

		if (strncmp(at, kinds[i].kind, n) != 0)
			continue;
		r->rate = kinds[i].times * (double)strtoull(at + n, NULL, 10);
		r->tells_allocated = kinds[i].tells_allocated;
		return 0;
	}
	return err_set(err, ERR_FORMAT, "it is of the kind '%.*s', which tells of no heap; those "
		       "of heapprofile, heap_v2 and heap do", (int)strcspn(at, "/\n"), at);
}

int stack_list_heap_profile(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct reading r = {.l = l};
	const char *maps = strstr(text, "\n" MAPS), *name = "?";
	size_t nname = 1;
	int rc = read_rate(&r, text, err);

	(void)n;
	if (rc)
		return rc;
	rc = maps ? read_maps(&r, maps + 1) : 0;
	if (!rc && r.nmaps) {                /* the program's own file comes first */
		name = r.maps[0].path;
		for (nname = r.maps[0].npath; memchr(name, '/', nname); nname--)
			name++;
	}
	if (!rc) {
		r.thread = stack_list_thread(l, name, nname, 0, name, nname, 0);
		if (strncmp(text, JEMALLOC_HEAD, strlen(JEMALLOC_HEAD)) == 0)
			read_jemalloc(&r, text);
		else
			read_tcmalloc(&r, text);
	}
	free(r.maps);
	if (rc)
		return err_memory(err, "for a heap profile");
	if (!l->nsamples)
		return err_set(err, ERR_FORMAT, "it has no stack ('@ 0x...') with bytes");
	return maps ? 0 : err_set(err, ERR_FORMAT, "it has no MAPPED_LIBRARIES, so no address has "
				  "a name: is it cut? (Go's profiles: without ?debug=1)");
}
