/* One pass over a trace: a heap merges the CPUs' streams of records by ticks. */
#include "source/etl/etl_private.h"

#include <stdlib.h>
#include <string.h>

enum {
	WINDOW_BYTES = 8192,                 /* read at once of a payload in the temporary file */
	RECORD_MAX_BYTES = 65536,            /* sizes are 16-bit */
};

struct stream {                              /* of one CPU */
	size_t next, end;                    /* buffers not opened yet */
	uint32_t number;                     /* of the open buffer */
	uint16_t cpu;
	struct etl_payload held;             /* the open buffer's payload, or a window of it */
	size_t held_at;                      /* offset of the window in the payload */
	size_t nbytes;                       /* of the whole payload */
	size_t at;                           /* offset of the next record in the payload */
	struct etl_head head;                /* the next record's head */
};

struct merge {
	struct etl_file *file;
	struct etl_counts *counts;
	struct stream *streams;
	struct stream **heap;                /* the earliest record first */
	size_t nstreams, nheap;
	struct etl_lane *lanes;              /* of the streams, for the thread ahead */
	struct etl_ahead ahead;
	struct etl_payload fresh, stored;    /* of the buffer that is being opened */
	size_t open_bytes;                   /* of all payloads held whole */
	struct os_file *waiting;             /* temporary file of the others, each at place_of() */
};

/* ---- a stream -------------------------------------------------------------------------------- */

static uint64_t place_of(const struct merge *m, const struct stream *s)
{
	return (uint64_t)(s - m->streams) * m->file->payload_max_bytes;
}

static void drop_held(struct merge *m, struct stream *s)
{
	if (s->held.cap > WINDOW_BYTES)
		m->open_bytes -= s->held.cap;
	free(s->held.bytes);
	memset(&s->held, 0, sizeof(s->held));
}

/* Swap the payload for the fresh one; beyond the ceiling, the fresh one waits on disk. */
static int take_fresh(struct merge *m, struct stream *s, struct err *err)
{
	size_t held = s->held.cap > WINDOW_BYTES ? s->held.cap : 0;
	size_t fresh = m->fresh.cap > WINDOW_BYTES ? m->fresh.cap : 0;
	struct etl_payload before = s->held;
	int rc = 0;

	s->at = s->held_at = 0;
	s->nbytes = m->fresh.nbytes;
	if (m->open_bytes - held + fresh <= m->file->open_max_bytes) {
		m->open_bytes = m->open_bytes - held + fresh;
		s->held = m->fresh;
		m->fresh = before;
		return 0;
	}
	drop_held(m, s);
	s->held.cut = m->fresh.cut;
	if (!m->waiting)
		rc = os_temp(&m->waiting, err);
	return rc ? rc
		  : os_pwrite(m->waiting, m->fresh.bytes, m->fresh.nbytes, place_of(m, s), err);
}

/* Move the window to s->at and give it n bytes, or all that is left. */
static int move_window(struct merge *m, struct stream *s, size_t n, struct err *err)
{
	uint8_t *grown;
	size_t got;
	int rc;

	if (n > s->nbytes - s->at)
		n = s->nbytes - s->at;
	if (s->held.cap < n) {
		if (s->held.cap > WINDOW_BYTES)
			m->open_bytes -= s->held.cap;
		grown = realloc(s->held.bytes, n);
		if (!grown) {
			s->held.cap = 0;
			return err_memory(err, "while reading %s", m->file->name);
		}
		s->held.bytes = grown;
		s->held.cap = n;
		if (n > WINDOW_BYTES)
			m->open_bytes += n;
	}
	rc = os_pread(m->waiting, s->held.bytes, n, place_of(m, s) + s->at, &got, err);
	if (!rc && got < n)
		rc = err_set(err, ERR_IO, "a temporary file lost what was written to it");
	s->held_at = s->at;
	s->held.nbytes = rc ? 0 : n;
	return rc;
}

static int open_next(struct merge *m, struct stream *s, struct err *err)
{
	const struct etl_buffer *b = &m->file->buffers[s->next];
	const char *why = NULL;
	int rc = 0;

	if (atomic_load_explicit(&m->file->stopped, memory_order_relaxed))
		return err_set(err, ERR_STOPPED, "reading %s was stopped", m->file->name);
	s->number = b->number;
	if (!etl_ahead_take(&m->ahead, (size_t)(s - m->streams), s->next++, &m->fresh))
		rc = etl_buffer_load(m->file, b, &m->stored, &m->fresh, &why, err);
	if (!rc)
		rc = take_fresh(m, s, err);
	if (!rc && why)
		etl_count_damage(m->counts, s->number, why);
	return rc;
}

static inline const uint8_t *record_at(const struct stream *s)
{
	return s->held.bytes + (s->at - s->held_at);
}

static inline enum etl_step read_head(struct stream *s)
{
	size_t end = s->held_at + s->held.nbytes;

	return s->at < end ? etl_record_head(record_at(s), end - s->at, &s->head) : ETL_STEP_CUT;
}

/* What stands at s->at of the open buffer. */
static int read_step(struct merge *m, struct stream *s, enum etl_step *step, struct err *err)
{
	int rc = 0;

	*step = s->at < s->nbytes ? read_head(s) : ETL_STEP_END;
	if (*step != ETL_STEP_CUT || s->held_at + s->held.nbytes >= s->nbytes)
		return 0;
	/* Only the window ends here: move it, and then widen it to the largest record. */
	rc = move_window(m, s, WINDOW_BYTES, err);
	if (!rc)
		*step = read_head(s);
	if (!rc && *step == ETL_STEP_CUT && s->held.nbytes < s->nbytes - s->at) {
		rc = move_window(m, s, RECORD_MAX_BYTES, err);
		if (!rc)
			*step = read_head(s);
	}
	return rc;
}

/* Find the next record, at s->at or in a later buffer; *more = false: none is left. */
static int find_record(struct merge *m, struct stream *s, bool *more, struct err *err)
{
	int64_t before = s->head.ticks;
	enum etl_step step;
	int rc;

	for (;;) {
		rc = read_step(m, s, &step, err);
		if (rc)
			return rc;
		if (step == ETL_STEP_RECORD) {
			if (!s->head.has_ticks)
				s->head.ticks = before;
			*more = true;
			return 0;
		}
		if (step == ETL_STEP_BAD)
			etl_count_damage(m->counts, s->number, "a record in it has an unknown "
					 "header or an impossible size");
		else if (step == ETL_STEP_CUT && !s->held.cut)
			etl_count_damage(m->counts, s->number,
					 "its last record extends past its end");
		*more = s->next < s->end;
		if (!*more)
			return 0;
		rc = open_next(m, s, err);
		if (rc)
			return rc;
	}
}

/* ---- the heap -------------------------------------------------------------------------------- */

static inline bool earlier(const struct stream *a, const struct stream *b)
{
	if (a->head.ticks != b->head.ticks)
		return a->head.ticks < b->head.ticks;
	return a->number < b->number;
}

static void sift_down(struct merge *m, size_t i)
{
	struct stream *moving = m->heap[i];
	size_t child;

	while ((child = 2 * i + 1) < m->nheap) {
		if (child + 1 < m->nheap && earlier(m->heap[child + 1], m->heap[child]))
			child++;
		if (!earlier(m->heap[child], moving))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = moving;
}

static int open_streams(struct merge *m, struct err *err)
{
	const struct etl_file *file = m->file;
	size_t n = 0;
	bool more;
	int rc;

	for (size_t i = 0; i < file->nbuffers; i++)
		n += i == 0 || file->buffers[i].cpu != file->buffers[i - 1].cpu;
	m->streams = calloc(n ? n : 1, sizeof(*m->streams));
	m->heap = calloc(n ? n : 1, sizeof(struct stream *));
	m->lanes = calloc(n ? n : 1, sizeof(*m->lanes));
	if (!m->streams || !m->heap || !m->lanes)
		return err_memory(err, "for the CPUs of %s", file->name);
	for (size_t i = 0; i < file->nbuffers; i++) {
		uint16_t cpu = file->buffers[i].cpu;

		if (m->nstreams == 0 || m->streams[m->nstreams - 1].cpu != cpu)
			m->streams[m->nstreams++] = (struct stream){
				.next = i, .cpu = cpu,
				.head.ticks = file->facts.clock.t0_ticks};
		m->streams[m->nstreams - 1].end = i + 1;
	}
	for (size_t i = 0; i < m->nstreams; i++)
		m->lanes[i] = (struct etl_lane){m->streams[i].next, m->streams[i].end};
	etl_ahead_begin(&m->ahead, file, m->lanes, m->nstreams);
	for (size_t i = 0; i < m->nstreams; i++) {
		rc = find_record(m, &m->streams[i], &more, err);
		if (rc)
			return rc;
		if (more)
			m->heap[m->nheap++] = &m->streams[i];
	}
	for (size_t i = m->nheap; i-- > 0;)
		sift_down(m, i);
	return 0;
}

/* ---- the run --------------------------------------------------------------------------------- */

static int deliver_all(struct merge *m, etl_record_fn *fn, void *ctx, struct err *err)
{
	struct etw_record record;
	int rc = 0;
	bool more;

	while (m->nheap && !rc) {
		struct stream *s = m->heap[0];

		m->counts->nrecords++;
		if (!etl_record_parse(record_at(s), &s->head, s->cpu, &record))
			m->counts->bad_items++;
		rc = fn(ctx, &record);
		if (rc)
			return rc;
		s->at += etl_record_stride(&s->head);
		rc = find_record(m, s, &more, err);
		if (!more && !rc) {
			drop_held(m, s);
			m->heap[0] = m->heap[--m->nheap];
		}
		if (m->nheap && !rc)
			sift_down(m, 0);
	}
	return rc;
}

int etl_file_run(struct etl_file *file, etl_record_fn *fn, void *ctx, struct etl_counts *counts,
		 struct err *err)
{
	struct etl_counts own;
	struct merge m = {.file = file, .counts = counts ? counts : &own};
	int rc;

	*m.counts = file->found;
	rc = open_streams(&m, err);
	if (!rc)
		rc = deliver_all(&m, fn, ctx, err);
	etl_ahead_end(&m.ahead);
	for (size_t i = 0; i < m.nstreams; i++)
		free(m.streams[i].held.bytes);
	free(m.fresh.bytes);
	free(m.stored.bytes);
	free(m.lanes);
	free(m.streams);
	free(m.heap);
	os_close(m.waiting);
	return rc;
}
