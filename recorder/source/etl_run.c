/* One pass over a trace: the CPUs' streams of records, merged by a heap on their next ticks. */
#include "source/etl_impl.h"

#include <stdlib.h>
#include <string.h>

struct stream {                              /* of one CPU */
	size_t next, end;                    /* buffers that are not opened yet */
	uint32_t number;                     /* of the open buffer */
	uint16_t cpu;
	struct etl_payload payload;
	size_t at;                           /* of the record that is next */
	struct etl_head head;                /* its head */
};

struct merge {
	struct etl_file *file;
	struct etl_counts *counts;
	struct stream *streams;
	struct stream **heap;                /* the earliest record first */
	size_t nstreams, nheap;
};

/* ---- a stream ------------------------------------------------------------------------------------ */

static void leave_damaged(struct merge *m, const struct stream *s, const char *why)
{
	etl_count_damage(m->counts, s->number, etl_buffer_offset(&m->file->buffers[s->next - 1]),
			 why);
}

static int open_next(struct merge *m, struct stream *s, struct err *err)
{
	const struct etl_buffer *b = &m->file->buffers[s->next++];
	const char *why;
	int rc;

	if (atomic_load_explicit(&m->file->stopped, memory_order_relaxed))
		return err_set(err, ERR_STOPPED, "reading %s was stopped", m->file->name);
	s->number = b->number;
	s->at = 0;
	rc = etl_buffer_load(m->file, b, &s->payload, &why, err);
	if (rc)
		return rc;
	atomic_fetch_add_explicit(&m->file->progress_bytes, b->stored_bytes, memory_order_relaxed);
	if (why) {
		leave_damaged(m, s, why);
		return 0;
	}
	m->counts->nbuffers++;
	m->counts->payload_bytes += s->payload.nbytes;
	return 0;
}

/* Stand on the record at s->at, or on the first one of a later buffer; *more = false: no record is left. */
static int settle(struct merge *m, struct stream *s, bool *more, struct err *err)
{
	int64_t before = s->head.ticks;
	int rc;

	for (;;) {
		size_t left = s->at < s->payload.nbytes ? s->payload.nbytes - s->at : 0;

		switch (left ? etl_record_head(s->payload.bytes + s->at, left, &s->head)
			     : ETL_STEP_END) {
		case ETL_STEP_RECORD:
			if (!s->head.has_ticks)
				s->head.ticks = before;
			*more = true;
			return 0;
		case ETL_STEP_BAD:
			leave_damaged(m, s, "a record in it has no known header or an impossible size");
			break;
		case ETL_STEP_CUT:
			if (!s->payload.cut)
				leave_damaged(m, s, "its last record goes on past its end");
			break;
		case ETL_STEP_END:
			break;
		}
		if (s->next == s->end) {
			*more = false;
			return 0;
		}
		rc = open_next(m, s, err);
		if (rc)
			return rc;
	}
}

/* ---- the heap ------------------------------------------------------------------------------------ */

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
		n += i == 0 || etl_buffer_cpu(&file->buffers[i]) != etl_buffer_cpu(&file->buffers[i - 1]);
	m->streams = calloc(n ? n : 1, sizeof(*m->streams));
	m->heap = calloc(n ? n : 1, sizeof(struct stream *));
	if (!m->streams || !m->heap)
		return err_set(err, ERR_MEMORY, "out of memory for the CPUs of %s", file->name);
	for (size_t i = 0; i < file->nbuffers; i++) {
		uint16_t cpu = etl_buffer_cpu(&file->buffers[i]);

		if (m->nstreams == 0 || m->streams[m->nstreams - 1].cpu != cpu)
			m->streams[m->nstreams++] = (struct stream){
				.next = i, .cpu = cpu, .head.ticks = file->facts.clock.t0_ticks};
		m->streams[m->nstreams - 1].end = i + 1;
	}
	for (size_t i = 0; i < m->nstreams; i++) {
		rc = settle(m, &m->streams[i], &more, err);
		if (rc)
			return rc;
		if (more)
			m->heap[m->nheap++] = &m->streams[i];
	}
	for (size_t i = m->nheap; i-- > 0;)
		sift_down(m, i);
	return 0;
}

/* ---- the run ------------------------------------------------------------------------------------- */

static void count_record(struct etl_counts *counts, const struct etl_head *head)
{
	counts->records[head->kind]++;
	if (head->ticks < counts->last_ticks && counts->nrecords)
		counts->out_of_order++;
	else
		counts->last_ticks = head->ticks;
	counts->nrecords++;
}

static int deliver_all(struct merge *m, etl_record_fn *fn, void *ctx, struct err *err)
{
	struct etw_record record;
	int rc = 0;
	bool more;

	while (m->nheap && !rc) {
		struct stream *s = m->heap[0];

		count_record(m->counts, &s->head);
		if (!etl_record_parse(s->payload.bytes + s->at, &s->head, s->cpu, &record))
			m->counts->bad_items++;
		rc = fn(ctx, &record);
		if (rc)
			return rc;
		s->at += etl_record_stride(&s->head);
		rc = settle(m, s, &more, err);
		if (!more && !rc) {
			free(s->payload.bytes);
			memset(&s->payload, 0, sizeof(s->payload));
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
	atomic_store(&file->progress_bytes, 0);
	rc = open_streams(&m, err);
	if (!rc)
		rc = deliver_all(&m, fn, ctx, err);
	for (size_t i = 0; i < m.nstreams; i++)
		free(m.streams[i].payload.bytes);
	free(m.streams);
	free(m.heap);
	return rc;
}
