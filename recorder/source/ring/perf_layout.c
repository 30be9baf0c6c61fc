#include "source/ring/perf_layout.h"

#include "source/ring/perf_record_private.h"

#include <string.h>

enum {                                       /* sample_type */
	HAS_IP = 1u << 0,
	HAS_TID = 1u << 1,
	HAS_TIME = 1u << 2,
	HAS_ADDR = 1u << 3,
	HAS_READ = 1u << 4,
	HAS_CALLCHAIN = 1u << 5,
	HAS_ID = 1u << 6,
	HAS_CPU = 1u << 7,
	HAS_PERIOD = 1u << 8,
	HAS_STREAM_ID = 1u << 9,
	HAS_RAW = 1u << 10,
	HAS_BRANCHES = 1u << 11,
	HAS_REGS = 1u << 12,
	HAS_STACK = 1u << 13,
	HAS_IDENTIFIER = 1u << 16,
};

enum {                                       /* read_format */
	READ_ENABLED = 1u << 0,
	READ_RUNNING = 1u << 1,
	READ_ID = 1u << 2,
	READ_GROUP = 1u << 3,
	READ_LOST = 1u << 4,
};

enum {                                       /* misc, and flags of the attributes */
	MISC_MODE = 7,
	MODE_KERNEL = 1,
	MODE_GUEST_KERNEL = 4,
	ATTR_FREQ = 1u << 10,
	ATTR_SAMPLE_ID_ALL = 1u << 18,
};

#define ATTR_BUILD_ID (UINT64_C(1) << 34)

#define BRANCH_HW_INDEX (1u << 17)
#define BRANCH_COUNTERS (1u << 19)
#define BRANCH_BYTES 24u
#define VALUES_MAX 4096u                     /* of a group, and branches */

int perf_attr_read(const void *bytes, size_t n, struct perf_attr *out, struct err *err)
{
	const uint8_t *b = bytes;
	uint64_t flags;

	if (n < PERF_ATTR_MIN_BYTES || n > PERF_ATTR_MAX_BYTES)
		return err_set(err, ERR_FORMAT, "the attributes of an event have %zu bytes", n);
	flags = le64(b + 40);
	*out = (struct perf_attr){
		.type = le32(b), .config = le64(b + 8), .period = le64(b + 16),
		.is_rate = (flags & ATTR_FREQ) != 0,
		.layout = {.sample_type = le64(b + 24), .read_format = le64(b + 32),
			   .branch_type = n >= 80 ? le64(b + 72) : 0,
			   .regs_mask = n >= 88 ? le64(b + 80) : 0,
			   .build_ids = (flags & ATTR_BUILD_ID) != 0,
			   .sample_id_all = (flags & ATTR_SAMPLE_ID_ALL) != 0}};
	return 0;
}

/* ---- where time and id are ------------------------------------------------------------------- */

static unsigned words(uint64_t type)
{
	return (unsigned)__builtin_popcountll(type);
}

/* The place of a part of a sample: behind those of 8 bytes that stand before it. false: none */
static bool place_in_sample(uint64_t type, uint64_t part, size_t *at)
{
	uint64_t before = 0;

	if (part != HAS_IDENTIFIER)
		before = HAS_IDENTIFIER | HAS_IP | HAS_TID;
	if (part == HAS_ID)
		before |= HAS_TIME | HAS_ADDR;
	if (part == HAS_PERIOD)
		before |= HAS_TIME | HAS_ADDR | HAS_ID | HAS_STREAM_ID | HAS_CPU;
	*at = PERF_HEADER_BYTES + 8 * (size_t)words(type & before);
	return (type & part) != 0;
}

/* What every record but a sample ends with. */
static size_t trailer_bytes(const struct perf_layout *l)
{
	const uint64_t in_it = HAS_TID | HAS_TIME | HAS_ID | HAS_STREAM_ID | HAS_CPU |
			       HAS_IDENTIFIER;

	return l->sample_id_all ? 8 * (size_t)words(l->sample_type & in_it) : 0;
}

/* The same of a trailer, which ends after n bytes. */
static bool place_in_trailer(uint64_t type, uint64_t part, size_t n, size_t *at)
{
	uint64_t after = HAS_IDENTIFIER | HAS_CPU | HAS_STREAM_ID;
	size_t bytes;

	if (part == HAS_TIME)
		after |= HAS_ID;
	bytes = part == HAS_IDENTIFIER ? 8 : 8 + 8 * (size_t)words(type & after);
	if (!(type & part) || n < PERF_HEADER_BYTES + bytes)
		return false;
	*at = n - bytes;
	return true;
}

static bool read_part(const struct perf_layout *layout, uint64_t part, const void *bytes, size_t n,
		      uint64_t *out)
{
	bool sample = n >= PERF_HEADER_BYTES && le32(bytes) == RECORD_SAMPLE;
	size_t at = 0;
	bool there = sample ? place_in_sample(layout->sample_type, part, &at)
			    : layout->sample_id_all &&
				      place_in_trailer(layout->sample_type, part,
						       perf_record_length(bytes, n,
									  trailer_bytes(layout)),
						       &at);

	if (!there || n < 8 || at > n - 8)
		return false;
	*out = le64((const uint8_t *)bytes + at);
	return true;
}

bool perf_layout_time(const struct perf_layout *layout, const void *bytes, size_t n, uint64_t *out)
{
	return read_part(layout, HAS_TIME, bytes, n, out);
}

bool perf_layout_id(const struct perf_layout *layout, const void *bytes, size_t n, uint64_t *out)
{
	return read_part(layout, HAS_IDENTIFIER, bytes, n, out) ||
	       read_part(layout, HAS_ID, bytes, n, out);
}

bool perf_layout_period(const struct perf_layout *layout, const void *bytes, size_t n,
			uint64_t *out)
{
	*out = 0;
	return n >= PERF_HEADER_BYTES && le32(bytes) == RECORD_SAMPLE &&
	       (!(layout->sample_type & HAS_PERIOD) ||
		read_part(layout, HAS_PERIOD, bytes, n, out));
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The counter's value, or those of a whole group. */
static bool skip_read(struct cursor *c, uint64_t format)
{
	uint64_t times = words(format & (READ_ENABLED | READ_RUNNING));
	uint64_t each = 1 + words(format & (READ_ID | READ_LOST)), n = 1;

	if (format & READ_GROUP && (!cursor_number(c, 8, &n) || n > VALUES_MAX))
		return false;
	return cursor_skip(c, 8 * (times + n * each));
}

static bool skip_branches(struct cursor *c, uint64_t type)
{
	uint64_t n;

	if (!cursor_number(c, 8, &n) || n > VALUES_MAX)
		return false;
	return cursor_skip(c, (type & BRANCH_HW_INDEX ? 8 : 0) + n * BRANCH_BYTES +
				      (type & BRANCH_COUNTERS ? n * 8 : 0));
}

static bool read_raw(struct cursor *c, struct perf_record *out)
{
	uint32_t n;

	if (!cursor_get(c, &n, 4) || n % 8 != 4 || !(out->u.sample.raw = cursor_take(c, n)))
		return false;
	out->u.sample.raw_bytes = n;
	return true;
}

static bool pair(struct cursor *c, bool there, uint32_t *first, uint32_t *second)
{
	return !there || (cursor_get(c, first, 4) && cursor_get(c, second, 4));
}

static bool word(struct cursor *c, bool there, uint64_t *out)
{
	return !there || cursor_get(c, out, 8);
}

static bool read_sample(struct cursor *c, const struct perf_layout *l, unsigned misc,
			struct perf_record *out)
{
	uint64_t type = l->sample_type, skipped;
	uint32_t reserved;

	out->kind = PERF_KIND_SAMPLE;
	out->u.sample.kernel_mode = (misc & MISC_MODE) == MODE_KERNEL ||
				    (misc & MISC_MODE) == MODE_GUEST_KERNEL;
	return word(c, type & HAS_IDENTIFIER, &out->u.sample.id) &&
	       word(c, type & HAS_IP, &out->u.sample.ip) &&
	       pair(c, type & HAS_TID, &out->pid, &out->tid) &&
	       word(c, type & HAS_TIME, &out->time_ns) &&
	       word(c, type & HAS_ADDR, &out->u.sample.address) &&
	       word(c, type & HAS_ID, &out->u.sample.id) &&
	       word(c, type & HAS_STREAM_ID, &skipped) &&
	       pair(c, type & HAS_CPU, &out->cpu, &reserved) &&
	       word(c, type & HAS_PERIOD, &out->u.sample.period) &&
	       (!(type & HAS_READ) || skip_read(c, l->read_format)) &&
	       (!(type & HAS_CALLCHAIN) || perf_read_chain(c, out)) &&
	       (!(type & HAS_RAW) || read_raw(c, out)) &&
	       (!(type & HAS_BRANCHES) || skip_branches(c, l->branch_type)) &&
	       (!(type & HAS_REGS) || perf_read_regs(c, words(l->regs_mask), out)) &&
	       (!(type & HAS_STACK) || perf_read_stack(c, out));
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Cut the trailer off the cursor's end. */
static bool read_trailer(struct cursor *c, const struct perf_layout *l, struct perf_record *out)
{
	uint64_t type = l->sample_type;
	struct cursor t = {.end = c->end};
	uint32_t reserved;

	if (!l->sample_id_all)
		return true;
	if (cursor_left(c) < trailer_bytes(l))
		return false;
	c->end -= trailer_bytes(l);
	t.at = c->end;
	return pair(&t, type & HAS_TID, &out->pid, &out->tid) &&
	       word(&t, type & HAS_TIME, &out->time_ns) &&
	       cursor_skip(&t, 8 * (size_t)words(type & (HAS_ID | HAS_STREAM_ID))) &&
	       pair(&t, type & HAS_CPU, &out->cpu, &reserved);
}

/*
 * While somebody else records mappings with build ids, kernels set the bit that says so in records
 * of everybody, also in those that have a device there (kernel/events/core.c,
 * perf_event_mmap_output(); 6.18 still does). A file of `perf inject` has build ids unannounced.
 */
static unsigned misc_of(const uint8_t *record, size_t n, const struct perf_layout *layout)
{
	unsigned misc = le16(record + 4);

	if (le32(record) == RECORD_MMAP2 && !layout->build_ids && n > 40 &&
	    record[40] != PERF_BUILD_ID_BYTES)
		misc &= ~PERF_MISC_MMAP_BUILD_ID;
	return misc;
}

bool perf_layout_parse(const void *bytes, size_t n, const struct perf_layout *layout,
		       struct perf_record *out)
{
	struct cursor c = cursor_over(bytes, perf_record_length(bytes, n, trailer_bytes(layout)));
	const uint8_t *head = cursor_take(&c, PERF_HEADER_BYTES);
	uint64_t time_ns;

	memset(out, 0, sizeof(*out));
	out->cpu = UINT32_MAX;
	if (!head || le16(head + 6) != n)
		return false;
	if (le32(head) == RECORD_SAMPLE)
		return read_sample(&c, layout, le16(head + 4), out);
	if (!read_trailer(&c, layout, out))
		return false;
	time_ns = out->time_ns;
	if (!perf_read_body(&c, le32(head), misc_of(head, n, layout), out))
		return false;
	/* Fork and exit have a time of their own, which perf leaves 0 in those that it makes up. */
	if (time_ns)
		out->time_ns = time_ns;
	return true;
}
