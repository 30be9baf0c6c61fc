/*
 * A trace file's records as a live session would have given them: etw_live_records TRACE OUT.
 *
 * A live session has no stack keys (their uses become stacks), no records that merging adds, and no
 * snapshots at its end; what the CLR's rundown says at the file's end, it says at a session's
 * start. Stacks are resolved here anew, from the definitions, not by the program's own store.
 */
#include "source/etl/file.h"
#include "source/etw/class.h"
#include "tests/support/etw_record_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct definition {
	uint64_t key, number;                /* number: of the record */
	bool kernel;
	uint8_t *frames;
	uint32_t nbytes;
};

static struct {
	FILE *out;
	bool writing;
	uint64_t number, written;
	struct definition *definitions;
	size_t n, max;
	uint8_t *rundown;                    /* records, as they are written */
	size_t rundown_bytes, rundown_max;
	uint64_t nrundown;
	uint64_t unresolved;
} all;

static void fail(const char *what)
{
	fprintf(stderr, "etw_live_records: %s\n", what);
	exit(1);
}

static void *grown(void *old, size_t n)
{
	void *p = realloc(old, n);

	if (!p)
		fail("out of memory");
	return p;
}

/* ---- definitions of keys --------------------------------------------------------------------- */

static void add_definition(const struct etw_record *r)
{
	struct definition d = {.number = all.number, .nbytes = r->payload_bytes - 8};
	uint64_t last;

	if (r->pointer_bytes != 8 || r->payload_bytes < 16)
		fail("a definition of another kind");
	memcpy(&d.key, r->payload, 8);
	memcpy(&last, r->payload + r->payload_bytes - 8, 8);
	d.kernel = last >= 0xFFFF000000000000u;
	d.frames = grown(NULL, d.nbytes);
	memcpy(d.frames, r->payload + 8, d.nbytes);
	if (all.n == all.max)
		all.definitions = grown(all.definitions, (all.max = 2 * all.max + 64) * sizeof(d));
	all.definitions[all.n++] = d;
}

/* The first one behind the use. */
static const struct definition *resolve(uint64_t key, bool kernel)
{
	size_t i;

	for (i = 0; i < all.n; i++)
		if (all.definitions[i].number > all.number && all.definitions[i].key == key &&
		    all.definitions[i].kernel == kernel)
			return &all.definitions[i];
	all.unresolved++;
	return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void append(uint8_t **to, const void *bytes, size_t n)
{
	memcpy(*to, bytes, n);
	*to += n;
}

static size_t encode(const struct etw_record *r, uint8_t *at, bool ticks_inside)
{
	struct record_file_record head = {
		.ticks = r->ticks, .pid = r->pid, .tid = r->tid, .cpu = r->cpu, .header = r->header,
		.pointer_bytes = r->pointer_bytes, .id = r->id, .version = (uint8_t)r->version,
		.opcode = r->opcode, .ticks_inside = ticks_inside, .nitems = (uint8_t)r->nitems,
		.payload_bytes = (uint16_t)r->payload_bytes,
	};
	uint8_t *to = at;
	uint32_t i;

	memcpy(head.guid, r->guid.bytes, 16);
	append(&to, &head, sizeof(head));
	for (i = 0; i < r->nitems; i++) {
		struct record_file_item item = {r->items[i].type, r->items[i].nbytes};

		append(&to, &item, sizeof(item));
		append(&to, r->items[i].bytes, item.nbytes);
	}
	append(&to, r->payload, r->payload_bytes);
	return (size_t)(to - at);
}

static void write_record(const struct etw_record *r, bool ticks_inside)
{
	static uint8_t bytes[1 << 20];

	fwrite(bytes, 1, encode(r, bytes, ticks_inside), all.out);
	all.written++;
}

/* The use of a key becomes the stack that it stands for. */
static void write_key(const struct etw_record *from, bool kernel)
{
	static uint8_t payload[1 << 16];
	struct etw_record r = *from;
	const struct definition *d;
	uint64_t key;

	memcpy(&key, r.payload + 16, 8);
	d = resolve(key, kernel);
	if (!d)
		return;
	memcpy(payload, r.payload, 16);
	memcpy(payload + 16, d->frames, d->nbytes);
	r.opcode = 32;
	r.payload = payload;
	r.payload_bytes = 16 + d->nbytes;
	write_record(&r, true);
}

/* ---- records --------------------------------------------------------------------------------- */

static bool is_rundown(const struct etw_record *r)
{
	static const uint8_t guid[4] = {0x1c, 0x02, 0x69, 0xa6};

	return r->header == ETW_MANIFEST && memcmp(r->guid.bytes, guid, 4) == 0;
}

/* Of ends, starts: 142, 144, 154 -> 141, 143, 153. */
static void keep_rundown(const struct etw_record *from)
{
	struct etw_record r = *from;

	if (r.id == 142 || r.id == 144 || r.id == 154)
		r.id--;
	if (all.rundown_max - all.rundown_bytes < 1 << 17)
		all.rundown = grown(all.rundown, all.rundown_max += 1 << 20);
	all.rundown_bytes += encode(&r, all.rundown + all.rundown_bytes, false);
	all.nrundown++;
}

static void write_rundown(int64_t ticks)
{
	size_t at = 0;

	while (at < all.rundown_bytes) {
		struct record_file_record *r = (struct record_file_record *)(all.rundown + at);
		size_t n = sizeof(*r) + r->payload_bytes, i;

		for (i = 0; i < r->nitems; i++)
			n += sizeof(struct record_file_item) +
			     ((struct record_file_item *)(all.rundown + at + n - r->payload_bytes))
				     ->nbytes;
		r->ticks = ticks;
		at += n;
	}
	fwrite(all.rundown, 1, all.rundown_bytes, all.out);
	all.written += all.nrundown;
}

/* What only a file has: added by merging, or said at a session's end. */
static bool is_of_files(const struct etw_record *r, uint32_t id)
{
	static const uint8_t image_id[4] = {0xd7, 0x75, 0xe6, 0xb3},
			     volumes[4] = {0x91, 0xee, 0x79, 0x9b};
	static const uint8_t schemas[4] = {0xc6, 0xf1, 0xcb, 0xbb};

	return id == ETW_PROCESS_DCSTOP || id == ETW_THREAD_DCSTOP || id == ETW_IMAGE_DCSTOP ||
	       id == ETW_FILE_RUNDOWN || memcmp(r->guid.bytes, image_id, 4) == 0 ||
	       memcmp(r->guid.bytes, volumes, 4) == 0 || memcmp(r->guid.bytes, schemas, 4) == 0;
}

static int each(void *ctx, const struct etw_record *r)
{
	const struct etw_class *class = etw_class_find(r);
	uint32_t id = class ? class->id : ETW_OTHER;

	(void)ctx;
	all.number++;
	if (id == ETW_STACK_KEY_DELETE || id == ETW_STACK_KEY_RUNDOWN) {
		if (!all.writing)
			add_definition(r);
		return 0;
	}
	if (is_rundown(r)) {
		if (!all.writing)
			keep_rundown(r);
		return 0;
	}
	if (!all.writing || is_of_files(r, id))
		return 0;
	if (id == ETW_STACK_KEY_KERNEL || id == ETW_STACK_KEY_USER)
		write_key(r, id == ETW_STACK_KEY_KERNEL);
	else
		write_record(r, id == ETW_STACK || id == ETW_HARD_FAULT);
	if (all.number == 1)
		write_rundown(r->ticks);
	return 0;
}

int main(int argc, char **argv)
{
	struct record_file_head head = {.magic = RECORD_FILE_MAGIC};
	struct etl_file *file = NULL;
	struct err err = {0};

	if (argc != 3)
		fail("etw_live_records TRACE OUT");
	if (etl_file_open(argv[1], &file, &err))
		fail(err.text);
	head.t0_ticks = etl_file_facts(file)->clock.t0_ticks;
	head.frequency_hz = etl_file_facts(file)->clock.frequency_hz;
	all.out = fopen(argv[2], "wb");
	if (!all.out)
		fail("cannot write");
	fwrite(&head, sizeof(head), 1, all.out);
	if (etl_file_run(file, each, NULL, NULL, &err))
		fail(err.text);
	all.writing = true;
	all.number = 0;
	if (etl_file_run(file, each, NULL, NULL, &err))
		fail(err.text);
	head.nrecords = (uint32_t)all.written;
	if (fseek(all.out, 0, SEEK_SET) || fwrite(&head, sizeof(head), 1, all.out) != 1 ||
	    fclose(all.out))
		fail("cannot write");
	printf("%" PRIu64 " records, %" PRIu64 " of the rundown; %zu definitions, %" PRIu64
	       " keys without one\n",
	       all.written, all.nrundown, all.n, all.unresolved);
	etl_file_close(file);
	return 0;
}
