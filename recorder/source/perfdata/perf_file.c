#include "source/perfdata/perf_file_private.h"

#include "base/array.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC "PERFILE2"
#define HEADER_BYTES 104u
#define PIPE_BYTES 16u
#define RECORD_HEAD 8u
#define TRACING_MAX_BYTES ((uint64_t)64 << 20)
#define KERNELS_SAMPLE 9u                    /* PERF_RECORD_SAMPLE */
#define LARGE_BYTES 4096u
#define SAMPLE_HEAD_BYTES 128u
#define ENTRY_MAX_BYTES (PERF_ATTR_MAX_BYTES + 16)

enum {                                       /* util/event.h: perf's own records */
	OWN_FIRST = 64,
	OWN_ATTR = 64,
	OWN_TRACING_DATA = 66,
	OWN_BUILD_ID = 67,
	OWN_FINISHED_ROUND = 68,
	OWN_AUXTRACE = 71,
	OWN_FEATURE = 80,
	OWN_COMPRESSED = 81,
	OWN_COMPRESSED2 = 83,
};

/* ---- events ---------------------------------------------------------------------------------- */

static bool same_id(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct perf_file *)ctx)->ids[value].id == *(const uint64_t *)key;
}

int perf_file_add_event(struct perf_file *f, const uint8_t *attr, size_t n, const uint8_t *ids,
			size_t ids_bytes, struct err *err)
{
	struct perf_file_event e = {0};
	int rc = perf_attr_read(attr, n, &e.attr, err);
	size_t i;

	if (!rc && f->nevents >= PERF_FILE_EVENTS_MAX)
		rc = err_set(err, ERR_LIMIT, "%s has over %u events", f->name,
			     PERF_FILE_EVENTS_MAX);
	if (!rc && ARRAY_ROOM(f->events, f->events_room, f->nevents + 1))
		rc = err_memory(err, "for the events of %s", f->name);
	for (i = 0; !rc && i + 8 <= ids_bytes && f->nids < PERF_FILE_IDS_MAX; i += 8) {
		uint64_t id = le64(ids + i);

		if (ARRAY_ROOM(f->ids, f->ids_room, f->nids + 1) ||
		    table_add(&f->by_id, hash_u64(id), f->nids))
			return err_memory(err, "for the events of %s", f->name);
		f->ids[f->nids++] = (struct perf_id){id, f->nevents};
	}
	if (!rc)
		f->events[f->nevents++] = e;
	return rc;
}

/* The event of a record; the first one unless the record tells another. */
static uint32_t event_of(const struct perf_file *f, const uint8_t *record, size_t n)
{
	uint32_t at = TABLE_NONE;
	uint64_t id;

	if (f->nevents > 1 && perf_layout_id(&f->events[0].attr.layout, record, n, &id))
		at = table_find(&f->by_id, hash_u64(id), same_id, f, &id);
	return at == TABLE_NONE ? 0 : f->ids[at].event;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The window that holds a record, or all that is left of the data; NULL: it cannot be read. */
static const struct perf_window *window_at(struct perf_file *f, uint64_t offset)
{
	uint64_t at = offset / WINDOW_BYTES * WINDOW_BYTES;
	struct perf_window *w = &f->windows[offset / WINDOW_BYTES % WINDOWS];
	size_t want = WINDOW_BYTES + PERF_RECORD_MAX_BYTES;

	if (w->n && w->at == at)
		return w;
	w->n = 0;
	if (!w->bytes)
		w->bytes = malloc(want);
	if (want > f->data_end - at)
		want = (size_t)(f->data_end - at);
	if (!w->bytes || bytes_read(&f->in, at, w->bytes, want, "a record", NULL))
		return NULL;
	w->at = at;
	w->n = want;
	return w;
}

/* A record, whose head says that it has *n bytes; 8-byte aligned, valid until the next call. */
static const uint8_t *record_at(struct perf_file *f, uint64_t offset, size_t *n)
{
	const struct perf_window *w = offset < f->data_end ? window_at(f, offset) : NULL;
	size_t left = w ? w->n - (size_t)(offset - w->at) : 0;
	const uint8_t *bytes = w ? w->bytes + (offset - w->at) : NULL;

	if (left < RECORD_HEAD)
		return NULL;
	*n = le16(bytes + 6);
	if (*n < RECORD_HEAD || *n > left)
		return NULL;
	if (offset % 8 == 0)
		return bytes;
	memcpy(f->aligned, bytes, *n);
	return (const uint8_t *)f->aligned;
}

struct record_at {
	const uint8_t *bytes;                /* valid until the next one is read */
	uint32_t type;
	size_t n;                            /* of the record itself */
	uint64_t next;                       /* offset of the following one */
};

/* false: nothing readable follows */
static bool read_head(struct perf_file *f, uint64_t offset, struct record_at *out)
{
	const uint8_t *head = record_at(f, offset, &out->n);
	uint64_t more = 0;

	if (!head)
		return false;
	out->bytes = head;
	out->type = le32(head);
	/* Behind these two stand bytes that are no records. */
	if (out->type == OWN_AUXTRACE && out->n >= 16)
		more = le64(head + 8);
	if (out->type == OWN_TRACING_DATA && out->n >= 12)
		more = ((uint64_t)le32(head + 8) + 7) & ~UINT64_C(7);
	if (more > f->data_end - offset - out->n)
		more = f->data_end - offset - out->n;
	out->next = offset + out->n + more;
	return true;
}

/* ---- survey ---------------------------------------------------------------------------------- */

/* header; attributes, whose second u32 is their size; ids */
static int take_attr(struct perf_file *f, const uint8_t *record, size_t n, struct err *err)
{
	size_t attr = n >= RECORD_HEAD + 8 ? le32(record + RECORD_HEAD + 4) : 0;

	if (attr > n - RECORD_HEAD)
		return err_set(err, ERR_FORMAT, "the attributes of an event in %s are damaged",
			       f->name);
	return perf_file_add_event(f, record + RECORD_HEAD, attr, record + RECORD_HEAD + attr,
				   n - RECORD_HEAD - attr, err);
}

static int learn_own(struct perf_file *f, uint32_t type, const uint8_t *record, size_t n,
		     struct err *err)
{
	if (type == OWN_COMPRESSED || type == OWN_COMPRESSED2)
		return perf_file_feature(f, 27, NULL, 0, err);
	if (!f->facts.pipe)
		return 0;
	if (type == OWN_ATTR)
		return take_attr(f, record, n, err);
	if (type == OWN_BUILD_ID)
		return perf_file_add_build_id(f, record, n, err);
	if (type == OWN_FEATURE && n >= 16)
		return perf_file_feature(f, (unsigned)le64(record + 8) & 255, record + 16, n - 16,
					 err);
	return 0;
}

/* What follows the record of TRACING_DATA in a pipe's stream. */
static int learn_tracepoints(struct perf_file *f, uint64_t at, const struct record_at *r,
			     struct err *err)
{
	uint64_t n = r->next - at - r->n;
	uint8_t *bytes;
	int rc;

	if (!f->facts.pipe || n > TRACING_MAX_BYTES)
		return 0;
	bytes = malloc((size_t)n + 1);
	if (!bytes)
		return err_memory(err, "for the tracepoints of %s", f->name);
	rc = bytes_read(&f->in, at + r->n, bytes, (size_t)n, "tracepoints", NULL);
	rc = rc ? 0 : perf_file_feature(f, PERF_FEATURE_TRACING_DATA, bytes, (size_t)n, err);
	free(bytes);
	return rc;
}

/* n bytes of the record are there: all, or of a sample those before its stack. */
static void learn_record(struct perf_file *f, const uint8_t *record, size_t n)
{
	struct perf_file_facts *facts = &f->facts;
	struct perf_file_event *e;
	uint64_t time_ns, period;

	if (!f->nevents)
		return;
	e = &f->events[event_of(f, record, n)];
	facts->nrecords++;
	if (perf_layout_time(&e->attr.layout, record, n, &time_ns) && time_ns &&
	    time_ns != UINT64_MAX) {
		if (!facts->first_ns || time_ns < facts->first_ns)
			facts->first_ns = time_ns;
		if (time_ns > facts->last_ns)
			facts->last_ns = time_ns;
	}
	if (perf_layout_period(&e->attr.layout, record, n, &period)) {
		facts->nsamples++;
		e->nsamples++;
		e->period_sum += period;
	}
}

/*
 * A large sample is mostly the copy of a stack, which only the second reading needs. Read what
 * stands before it, SAMPLE_HEAD_BYTES; false: it is no such sample.
 */
static bool sample_head(struct perf_file *f, uint64_t at, struct record_at *out)
{
	uint8_t *head = (uint8_t *)f->aligned;

	if (f->data_end - at < LARGE_BYTES ||
	    bytes_read(&f->in, at, head, SAMPLE_HEAD_BYTES, "a sample", NULL) ||
	    le32(head) != KERNELS_SAMPLE || le16(head + 6) < LARGE_BYTES ||
	    le16(head + 6) > f->data_end - at)
		return false;
	*out = (struct record_at){.bytes = head, .type = KERNELS_SAMPLE,
				  .n = SAMPLE_HEAD_BYTES, .next = at + le16(head + 6)};
	return true;
}

int perf_file_survey(struct perf_file *f, const _Atomic bool *stopping, struct err *err)
{
	uint64_t at = f->data_at;
	struct record_at r = {0};
	bool is_large = false;
	int rc = 0;

	while (!rc && at < f->data_end) {
		/* Where a sample was large, the next record probably is another. */
		if (!(is_large && sample_head(f, at, &r)) && !read_head(f, at, &r))
			break;
		is_large = r.type == KERNELS_SAMPLE && r.next - at >= LARGE_BYTES;
		if (atomic_load_explicit(stopping, memory_order_relaxed))
			rc = ERR_STOPPED;
		else if (r.type == OWN_TRACING_DATA)
			rc = learn_tracepoints(f, at, &r, err);
		else if (r.type >= OWN_FIRST)
			rc = learn_own(f, r.type, r.bytes, r.n, err);
		else
			learn_record(f, r.bytes, r.n);
		at = r.next;
	}
	if (at < f->data_end)
		f->facts.cut = true;
	perf_file_name_events(f);
	return rc;
}

/* ---- in time order --------------------------------------------------------------------------- */

struct order {
	struct perf_file *f;
	perf_file_each *each;
	void *ctx;
	struct sort_item *pending, *scratch;     /* time; offset in two halves */
	uint32_t n, room, scratch_room;
	uint64_t newest_ns, round_ns, given_ns;
};

static int give(struct order *o, uint64_t offset)
{
	struct perf_file *f = o->f;
	size_t n;
	const uint8_t *bytes = record_at(f, offset, &n);
	struct perf_record r;
	uint32_t event;

	if (!bytes)
		return 0;
	event = event_of(f, bytes, n);
	if (!perf_layout_parse(bytes, n, &f->events[event].attr.layout, &r)) {
		f->facts.damaged++;
		return 0;
	}
	if (r.time_ns && r.time_ns < o->given_ns)
		f->facts.late++;
	else if (r.time_ns)
		o->given_ns = r.time_ns;
	return o->each(o->ctx, &r, event);
}

/* Hand over what is not newer. */
static int release(struct order *o, uint64_t until_ns, struct err *err)
{
	uint32_t i;
	int rc = 0;

	if (ARRAY_ROOM(o->scratch, o->scratch_room, o->n))
		return err_memory(err, "for the records of %s", o->f->name);
	sort_items(o->pending, o->scratch, o->n);
	for (i = 0; !rc && i < o->n && o->pending[i].key <= until_ns; i++)
		rc = give(o, (uint64_t)o->pending[i].value[1] << 32 | o->pending[i].value[0]);
	memmove(o->pending, o->pending + i, (o->n - i) * sizeof(*o->pending));
	o->n -= i;
	return rc;
}

static int keep(struct order *o, uint64_t time_ns, uint64_t offset, struct err *err)
{
	int rc = o->n < PERF_FILE_PENDING_MAX ? 0 : release(o, UINT64_MAX, err);

	if (!rc && ARRAY_ROOM(o->pending, o->room, o->n + 1))
		rc = err_memory(err, "for the records of %s", o->f->name);
	if (rc)
		return rc;
	o->pending[o->n++] = (struct sort_item){
		.key = time_ns, .value = {(uint32_t)offset, (uint32_t)(offset >> 32)}};
	if (time_ns > o->newest_ns)
		o->newest_ns = time_ns;
	return 0;
}

static int take(struct order *o, uint64_t at, const struct record_at *r, struct err *err)
{
	struct perf_file *f = o->f;
	uint64_t time_ns = 0;
	int rc;

	if (r->type == OWN_FINISHED_ROUND) {
		rc = o->n ? release(o, o->round_ns, err) : 0;
		o->round_ns = o->newest_ns;
		return rc;
	}
	if (r->type >= OWN_FIRST || !f->nevents)
		return 0;
	perf_layout_time(&f->events[event_of(f, r->bytes, r->n)].attr.layout, r->bytes, r->n,
			 &time_ns);
	/* What perf made up of /proc before it began has no time. */
	if (!time_ns || time_ns == UINT64_MAX)
		return give(o, at);
	return keep(o, time_ns, at, err);
}

int perf_file_run(struct perf_file *f, perf_file_each *each, void *ctx, struct err *err)
{
	struct order o = {.f = f, .each = each, .ctx = ctx};
	uint64_t at = f->data_at;
	struct record_at r;
	int rc = 0;

	f->facts.late = f->facts.damaged = 0;
	while (!rc && at < f->data_end && read_head(f, at, &r)) {
		rc = take(&o, at, &r, err);
		at = r.next;
	}
	if (!rc && o.n)
		rc = release(&o, UINT64_MAX, err);
	free(o.pending);
	free(o.scratch);
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int read_events(struct perf_file *f, uint64_t entry_bytes, uint64_t at, uint64_t n,
		       struct err *err)
{
	uint8_t entry[ENTRY_MAX_BYTES];
	uint64_t end = at + n;
	int rc = 0;

	if (entry_bytes < PERF_ATTR_MIN_BYTES + 16 || entry_bytes > sizeof(entry) ||
	    n > f->in.size || at > f->in.size)
		return err_set(err, ERR_FORMAT, "%s is damaged: its list of events makes no sense",
			       f->name);
	for (; !rc && end - at >= entry_bytes; at += entry_bytes) {
		uint64_t ids_bytes;
		uint8_t *ids;

		rc = bytes_read(&f->in, at, entry, (size_t)entry_bytes, "an event", err);
		if (rc)
			return err_prefix(err, "%s", f->name), rc;
		ids_bytes = le64(entry + entry_bytes - 8);
		if (ids_bytes > f->in.size || ids_bytes > 8 * (uint64_t)PERF_FILE_IDS_MAX)
			ids_bytes = 0;
		ids = malloc((size_t)ids_bytes + 1);
		if (!ids)
			return err_memory(err, "for the events of %s", f->name);
		if (bytes_read(&f->in, le64(entry + entry_bytes - 16), ids, (size_t)ids_bytes,
			       "ids", NULL))
			ids_bytes = 0;
		rc = perf_file_add_event(f, entry, (size_t)entry_bytes - 16, ids,
					 (size_t)ids_bytes, err);
		free(ids);
	}
	return rc;
}

static int read_header(struct perf_file *f, struct err *err)
{
	uint8_t head[HEADER_BYTES];
	unsigned i;
	int rc = bytes_read(&f->in, 0, head, PIPE_BYTES, "the header", NULL);

	if (rc || memcmp(head, MAGIC, 8) != 0) {
		if (!rc && memcmp(head, "2ELIFREP", 8) == 0)
			return err_set(err, ERR_UNSUPPORTED, "%s was recorded on a machine of the "
				       "other byte order; write its text there with "
				       "'perf script', which is read", f->name);
		return err_set(err, ERR_FORMAT, "%s is no file of perf: it does not begin with "
			       MAGIC, f->name);
	}
	f->data_end = f->in.size;
	f->facts.pipe = le64(head + 8) == PIPE_BYTES;
	f->data_at = PIPE_BYTES;
	if (f->facts.pipe)
		return 0;
	if (le64(head + 8) != HEADER_BYTES ||
	    bytes_read(&f->in, 0, head, HEADER_BYTES, "the header", NULL))
		return err_set(err, ERR_FORMAT, "%s is cut in its header, or of a version of perf "
			       "that is not known here", f->name);
	for (i = 0; i < 4; i++)
		f->features[i] = le64(head + 72 + 8 * i);
	f->data_at = le64(head + 40);
	if (f->data_at > f->in.size)
		return err_set(err, ERR_FORMAT, "%s is cut before its first record", f->name);
	if (!le64(head + 48) || le64(head + 48) > f->in.size - f->data_at)
		f->facts.cut = true;
	else
		f->data_end = f->data_at + le64(head + 48);
	rc = read_events(f, le64(head + 16), le64(head + 24), le64(head + 32), err);
	return rc || f->facts.cut ? rc : perf_file_features(f, err);
}

int perf_file_open(const struct bytes *in, const char *name, struct perf_file **out,
		   struct err *err)
{
	struct perf_file *f = calloc(1, sizeof(*f));
	int rc = f ? 0 : err_memory(err, "for reading %s", name);

	if (!rc) {
		f->in = *in;
		f->name = name;
		rc = read_header(f, err);
	}
	if (rc)
		perf_file_close(f);
	else
		*out = f;
	return rc;
}

void perf_file_close(struct perf_file *f)
{
	uint32_t i;

	if (!f)
		return;
	for (i = 0; i < f->nbuild_ids; i++)
		free(f->build_ids[i].path);
	for (i = 0; i < WINDOWS; i++)
		free(f->windows[i].bytes);
	tracepoints_free(f->tracepoints);
	free(f->build_ids);
	free(f->events);
	free(f->ids);
	table_free(&f->by_id);
	table_free(&f->by_path);
	free(f);
}

const struct perf_file_facts *perf_file_facts(const struct perf_file *f)
{
	return &f->facts;
}

uint32_t perf_file_events(const struct perf_file *f)
{
	return f->nevents;
}

const struct perf_file_event *perf_file_event(const struct perf_file *f, uint32_t event)
{
	return &f->events[event];
}
