#include "model/queue.h"

#include "base/os.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * A record in the ring, 8-byte aligned and never wrapped (a skip record fills the end):
 *
 *	u64 size of the record; the top bit marks a skip, which has nothing else
 *	u64 the watermark when it was put: nothing in the ring behind it is older
 *	struct event; its frames; its fields; the texts that they point to
 *
 * head and tail count bytes for ever; their difference is the number of bytes in use.
 *
 * Once a quarter of the ring has been written, an empty ring is filled from its start again: a ring
 * that is mostly nearly empty touches a quarter of its memory. It cannot happen earlier, because
 * until the consumer has looked, only the part before that place can be filled. Once
 * another quarter has been written, what neither holds records nor lies in the first quarter goes
 * back to the system: so does what a burst has touched. Not more often than each second, or a file
 * that is read would have each page made anew.
 *
 * The frames of a stack with an id cross the ring once: the consumer keeps those that it popped, in
 * the place that the id's last bits name, until another stack comes there. The producer knows what
 * stands where, and then puts an event without frames.
 */
#define STEPS 64u                            /* of a ring: see struct queue; */
#define STEPS_LEAST_BYTES ((size_t)1 << 20)  /* a smaller one has none */
#define KEPT_STACKS 128u
#define KEPT_FRAMES 128u                     /* of one; deeper ones are not kept */
#define GIVE_BACK_NS NS_PER_SEC
#define SKIP ((uint64_t)1 << 63)
#define HEAD_BYTES (2 * sizeof(uint64_t))
#define ALIGN(n) (((n) + 7) & ~(size_t)7)

/*
 * What each side writes for every record is a cache line away from what the other writes, and
 * neither looks at the other's place for every record: a line that two CPUs write by turns costs
 * more than a record. The producer looks at the tail when it needs room, at a watermark, and before
 * it wakes the consumer; the consumer at the head when it has read all that it knew of. It says how
 * far it is after each step of the ring, and when it finds the ring empty.
 */
struct queue {
	char *bytes;
	size_t size;                         /* power of two */
	size_t step;                         /* 0: each looks, and says, for every record */
	struct os_cond *wake;                /* NULL = none */
	_Atomic uint64_t rewound;    /* by the producer: the ring was empty there and starts over */
	_Atomic uint64_t watermark_ns;
	_Atomic uint64_t rest;               /* the lag + 1; 0 = the producer does not rest */
	_Atomic uint64_t lost;
	/* The consumer's, which never looks before the producer has made it; NULL = not yet. */
	struct frame_ref (*kept)[KEPT_FRAMES];
	char apart[64];
	_Atomic uint64_t head;               /* the producer writes it, and all up to kept_ids */
	uint64_t seen_tail;                  /* when it looked: the tail is not behind that */
	uint64_t wake_at;                    /* the head at which it may wake the consumer again */
	size_t written;                      /* since pages could be given back */
	uint64_t given_ns;                   /* when they were */
	uint64_t kept_ids[KEPT_STACKS];      /* whose frames `kept` has, or will have */
	char apart_too[64];
	_Atomic uint64_t tail;               /* the consumer writes this, and what follows */
	uint64_t next;                       /* where it is: the tail, or behind it */
	uint64_t seen_head;
	uint64_t taken, taken_mark_ns;       /* of the peeked record: size, watermark */
	bool has_sample;                     /* of the record, whose event was popped */
	struct event sample;
};

struct queue *queue_new(size_t bytes)
{
	struct queue *q = calloc(1, sizeof(*q));
	size_t size = 4096;

	if (!q)
		return NULL;
	while (size < bytes)
		size *= 2;
	q->size = size;
	q->step = size < STEPS_LEAST_BYTES ? 0 : size / STEPS;
	q->bytes = malloc(size);
	if (!q->bytes) {
		free(q);
		return NULL;
	}
	return q;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	free(q->bytes);
	free(q->kept);
	free(q);
}

void queue_wakes(struct queue *q, struct os_cond *wake)
{
	q->wake = wake;
}

/*
 * The bytes that an event's texts take, so that they are measured once; 0 = there is none, or it
 * stays where it is. What frames the record has, and which the consumer keeps.
 */
struct lengths {
	size_t provider, name;
	uint32_t nframes;
	struct frame_ref *kept;              /* NULL = it does not */
	struct { uint16_t name, text; } fields[EVENT_MAX_FIELDS];
};

static size_t text_bytes(const char *text)
{
	return text ? strnlen(text, EVENT_MAX_TEXT) + 1 : 0;
}

static uint32_t fields_kept(const struct event *e)
{
	return e->nfields < EVENT_MAX_FIELDS ? e->nfields : EVENT_MAX_FIELDS;
}

static size_t record_bytes(const struct event *e, struct lengths *of)
{
	uint32_t nfields = fields_kept(e), i;
	size_t n = HEAD_BYTES + sizeof(*e);

	n += of->nframes * sizeof(*e->stack_frames) + nfields * sizeof(*e->fields);
	of->provider = e->names_stay ? 0 : text_bytes(e->provider);
	of->name = e->names_stay ? 0 : text_bytes(e->name);
	n += of->provider + of->name;
	for (i = 0; i < nfields; i++) {
		const struct event_field *f = &e->fields[i];

		of->fields[i].name = e->names_stay ? 0 : (uint16_t)text_bytes(f->name);
		of->fields[i].text = f->type == FIELD_TEXT ? (uint16_t)text_bytes(f->v.text) : 0;
		n += (size_t)of->fields[i].name + of->fields[i].text;
	}
	return ALIGN(n);
}

/* nbytes: with the NUL; a longer text is cut there. */
static const char *put_text(char **at, const char *text, size_t nbytes)
{
	char *start = *at;

	if (!nbytes)
		return "";
	memcpy(start, text, nbytes - 1);
	start[nbytes - 1] = '\0';
	*at += nbytes;
	return start;
}

static void put_fields(struct event *e, const struct event *from, const struct lengths *of,
		       struct event_field *fields, char *texts)
{
	uint32_t i;

	if (!from->names_stay && from->provider)
		e->provider = put_text(&texts, from->provider, of->provider);
	if (!from->names_stay && from->name)
		e->name = put_text(&texts, from->name, of->name);
	if (e->nfields)
		memcpy(fields, from->fields, e->nfields * sizeof(*fields));
	for (i = 0; i < e->nfields; i++) {
		if (!from->names_stay)
			fields[i].name = put_text(&texts, from->fields[i].name, of->fields[i].name);
		if (fields[i].type == FIELD_TEXT)
			fields[i].v.text =
				put_text(&texts, from->fields[i].v.text, of->fields[i].text);
	}
}

static void put_record(char *at, const struct event *from, const struct lengths *of, size_t size,
		       uint64_t mark_ns)
{
	struct event *e = (struct event *)(at + HEAD_BYTES);
	struct frame_ref *frames = (struct frame_ref *)(e + 1);
	struct event_field *fields = (struct event_field *)(frames + of->nframes);
	const uint64_t head[2] = {size, mark_ns};
	const size_t leaf = from->sample_id != 0;

	memcpy(at, head, sizeof(head));
	*e = *from;
	e->nfields = fields_kept(from);
	if (of->nframes)
		memcpy(frames, from->stack_frames - leaf, of->nframes * sizeof(*frames));
	e->stack_frames = (of->kept && !of->nframes ? of->kept : frames) + leaf;
	if (!of->kept)
		e->stack_id = 0;
	e->fields = fields;
	put_fields(e, from, of, fields, (char *)(fields + e->nfields));
}

static struct frame_ref *kept_place(struct queue *q, uint64_t id, uint32_t nframes)
{
	if (!id || !nframes || nframes > KEPT_FRAMES)
		return NULL;
	if (!q->kept)
		q->kept = malloc(KEPT_STACKS * sizeof(*q->kept));
	return q->kept ? q->kept[id % KEPT_STACKS] : NULL;
}

/*
 * Bytes to skip at the end of the ring before a record of `need` bytes; false when it does not fit.
 */
static bool find_place(const struct queue *q, size_t need, size_t *skip)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed), tail = q->seen_tail;
	size_t at = (size_t)(head & (q->size - 1)), to_end = q->size - at;
	bool rewinds = head == tail && at >= q->size / 4 && need <= at;

	*skip = to_end < need || rewinds ? to_end : 0;
	return need + *skip <= q->size - (size_t)(head - tail);
}

static void look_at_tail(struct queue *q)
{
	q->seen_tail = atomic_load_explicit(&q->tail, memory_order_acquire);
}

static void give_range_back(struct queue *q, size_t from, size_t to)
{
	from = from > q->size / 4 ? from : q->size / 4;
	if (from < to)
		os_give_pages_back(q->bytes + from, to - from);
}

/* In use are the bytes from the tail to `end`, the place after the newest record. */
static void give_back(struct queue *q, uint64_t tail, size_t end)
{
	size_t begin = (size_t)(tail & (q->size - 1));

	if (begin < end) {
		give_range_back(q, 0, begin);
		give_range_back(q, end, q->size);
	} else {
		give_range_back(q, end, begin);
	}
}

/* Now and then, the record that ends at `end` was put: what the burst before it took, goes. */
static void give_back_late(struct queue *q, uint64_t head, size_t end)
{
	uint64_t now_ns;

	look_at_tail(q);
	if (head - q->seen_tail >= q->size / 8)
		return;
	now_ns = os_now_ns();
	if (now_ns - q->given_ns > GIVE_BACK_NS) {
		give_back(q, q->seen_tail, end);
		q->given_ns = now_ns;
	}
	q->written = 0;
}

/* If the ring is over a quarter full; when it stays so, not for each record. */
static void wake_consumer(struct queue *q, uint64_t head)
{
	look_at_tail(q);
	if (head - q->seen_tail <= q->size / 4)
		return;
	q->wake_at = head + q->step;
	os_cond_signal(q->wake);
}

bool queue_offer(struct queue *q, const struct event *e)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	size_t at = (size_t)(head & (q->size - 1));
	struct lengths lengths;
	const uint64_t id = e->sample_id ? e->sample_id : e->stack_id;
	const uint32_t nframes = e->nstack_frames + (e->sample_id != 0);
	uint64_t *kept_id = &q->kept_ids[id % KEPT_STACKS], header;
	size_t need, skip;

	lengths.kept = kept_place(q, id, nframes);
	lengths.nframes = lengths.kept && *kept_id == id ? 0 : nframes;
	need = record_bytes(e, &lengths);
	assert(!atomic_load_explicit(&q->rest, memory_order_relaxed));
	if (!q->step)
		look_at_tail(q);
	if (!find_place(q, need, &skip)) {
		look_at_tail(q);
		if (!find_place(q, need, &skip))
			return false;
	}
	if (skip) {
		header = SKIP | skip;
		memcpy(q->bytes + at, &header, sizeof(header));
		at = 0;
		if (head == q->seen_tail)
			atomic_store_explicit(&q->rewound, head + skip, memory_order_relaxed);
	}
	put_record(q->bytes + at, e, &lengths, need,
		   atomic_load_explicit(&q->watermark_ns, memory_order_relaxed));
	if (lengths.kept)
		*kept_id = id;
	head += skip + need;
	q->written += need;
	if (q->written > q->size / 4)
		give_back_late(q, head, at + need);
	atomic_store_explicit(&q->head, head, memory_order_release);
	if (q->wake && head - q->seen_tail > q->size / 4 && head >= q->wake_at)
		wake_consumer(q, head);
	return true;
}

bool queue_put(struct queue *q, const struct event *e)
{
	bool fits = queue_offer(q, e);

	if (!fits)
		atomic_fetch_add_explicit(&q->lost, 1u + (e->sample_id != 0),
					  memory_order_relaxed);
	return fits;
}

void queue_watermark(struct queue *q, uint64_t time_ns)
{
	uint64_t before_ns = atomic_load_explicit(&q->watermark_ns, memory_order_relaxed);

	look_at_tail(q);
	if (time_ns <= before_ns)
		return;
	atomic_store_explicit(&q->watermark_ns, time_ns, memory_order_release);
	if (!before_ns && q->wake)
		os_cond_signal(q->wake);
}

void queue_rest(struct queue *q, uint64_t lag_ns)
{
	atomic_store(&q->rest, lag_ns + 1);
}

void queue_resume(struct queue *q, uint64_t now_ns)
{
	uint64_t rest = atomic_load_explicit(&q->rest, memory_order_relaxed);

	if (!rest)
		return;
	if (now_ns > rest)
		queue_watermark(q, now_ns - rest);
	atomic_store(&q->rest, 0);
}

void queue_finish(struct queue *q)
{
	queue_watermark(q, UINT64_MAX);
}

uint64_t queue_lost(const struct queue *q)
{
	return atomic_load_explicit(&q->lost, memory_order_relaxed);
}

/* All before `next` is read. */
static void move_tail(struct queue *q)
{
	atomic_store_explicit(&q->tail, q->next, memory_order_release);
}

/* False when nothing has been put that is not read. */
static bool look_at_head(struct queue *q)
{
	if (atomic_load_explicit(&q->tail, memory_order_relaxed) != q->next)
		move_tail(q);
	q->seen_head = atomic_load_explicit(&q->head, memory_order_acquire);
	return q->seen_head != q->next;
}

const struct event *queue_peek(struct queue *q)
{
	uint64_t header;
	char *at;

	if (q->has_sample)
		return &q->sample;
	for (;;) {
		if (q->seen_head == q->next && !look_at_head(q))
			return NULL;
		at = q->bytes + (q->next & (q->size - 1));
		memcpy(&header, at, sizeof(header));
		if (!(header & SKIP))
			break;
		q->next += header & ~SKIP;
		move_tail(q);
	}
	q->taken = header;
	memcpy(&q->taken_mark_ns, at + sizeof(header), sizeof(q->taken_mark_ns));
	return (const struct event *)(at + HEAD_BYTES);
}

void queue_pop(struct queue *q)
{
	const struct event *of =
		(const struct event *)(q->bytes + (q->next & (q->size - 1)) + HEAD_BYTES), *e = of;

	if (of->sample_id && !q->has_sample) {
		q->sample = *of;
		event_become_sample(&q->sample);
		q->has_sample = true;
		return;
	}
	e = q->has_sample ? &q->sample : of;
	q->has_sample = false;
	if (e->stack_id && e->stack_frames == (const struct frame_ref *)(of + 1))
		memcpy(q->kept[e->stack_id % KEPT_STACKS], e->stack_frames,
		       e->nstack_frames * sizeof(*e->stack_frames));
	q->next += q->taken;
	if (q->next - atomic_load_explicit(&q->tail, memory_order_relaxed) >= q->step)
		move_tail(q);
}

uint64_t queue_released(const struct queue *q, uint64_t now_ns)
{
	uint64_t rest = atomic_load(&q->rest);
	uint64_t marked = atomic_load_explicit(&q->watermark_ns, memory_order_acquire);

	/* At now_ns it rested, or it began later: a rest ends before anything newer is put. */
	if (rest && now_ns > rest && now_ns - rest > marked)
		return now_ns - rest;
	return marked;
}

uint64_t queue_consumed(struct queue *q, uint64_t now_ns)
{
	/* In this order: what comes in between is newer than the watermark. */
	uint64_t released_ns = queue_released(q, now_ns);
	const struct event *first = queue_peek(q);

	/* The first need not be the oldest: a source looks at its counts now and then, at once. */
	if (!first)
		return released_ns;
	if (q->taken_mark_ns < released_ns)
		released_ns = q->taken_mark_ns;
	return first->time_ns < released_ns ? first->time_ns : released_ns;
}

size_t queue_used_bytes(const struct queue *q)
{
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_acquire);
	uint64_t rewound = atomic_load_explicit(&q->rewound, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire);

	tail = tail > rewound ? tail : rewound;      /* the skipped part holds nothing */
	return head > tail ? (size_t)(head - tail) : 0;
}
