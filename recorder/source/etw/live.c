#include "source/etw/live.h"

#include "source/etw/guids.h"

#include <stdlib.h>
#include <string.h>

#define REQUESTED 1024u                      /* hashed kinds of events; power of two */
#define ITEM_TRACELOGGING 11
#define DUE_SECONDS 4u                       /* of busy times that wait for records */
#define IDLE_PASSES_MS 10u                   /* when only samples of idle CPUs come */

/* A change of rate or a busy time, to be reported in time order between the events. */
struct due {
	int64_t ticks;
	uint32_t interval_100ns;             /* from now on; 0 = this is a busy time */
	uint16_t cpu;
	uint64_t busy_ns;
};

struct etw_live {
	struct etw_events e;                 /* first: before_event() */
	struct os_mutex *lock;               /* guards all */
	int64_t wait_ticks, lag_ticks;
	uint64_t lost;
	uint64_t unreported;                 /* lost before the first event */
	uint32_t reported_100ns;             /* the last interval that the engine got */
	uint64_t requested[REQUESTED];       /* hashes of kinds whose layout was requested */
	int64_t last_ticks;                  /* the greatest of any record */
	int64_t idle_ticks;                  /* when an idle sample last let time pass */
	struct due *due;                     /* a ring, oldest first */
	uint32_t ndue, first_due, room_due;
	uint32_t requested_100ns;            /* by etw_live_level(), not reported yet; 0 = none */
	size_t trim_bytes;                   /* trim above this size */
	struct etw_code *old_code;           /* names frames that are still in the queue */
	struct etw_state *old_state;
	uint64_t old_until_ns;
};

/* ---- rates and busy times -------------------------------------------------------------------- */

/* Report a new sample interval, requested or not. */
static void put_interval(struct etw_live *l, uint64_t time_ns)
{
	struct event e = {
		.kind = EVENT_RATE, .cpu = CPU_NONE, .stack = STACK_NONE, .time_ns = time_ns};

	l->reported_100ns = l->e.interval_100ns;
	if (l->reported_100ns != l->requested_100ns)
		e.name = "the sampling rate of this machine, by Windows";
	l->requested_100ns = 0;
	e.value = (double)l->reported_100ns * 100;
	queue_put(l->e.cfg.queue, &e);
}

static void put_expected(struct etw_live *l, const struct due *d, uint64_t time_ns)
{
	struct event e = {
		.kind = EVENT_EXPECTED, .cpu = d->cpu, .stack = STACK_NONE, .time_ns = time_ns};

	/* Not e.interval_100ns: the record that triggers this may have changed it already. */
	e.value = (double)d->busy_ns / 100 /
		  (l->reported_100ns ? l->reported_100ns : ETW_INTERVAL_100NS);
	queue_put(l->e.cfg.queue, &e);
}

/* Report the oldest due item; at the time of the last event, if its own time has not come. */
static void put_oldest(struct etw_live *l, bool has_come)
{
	const struct due *d = &l->due[l->first_due];
	uint64_t time_ns =
		has_come || !l->e.last_ns ? etw_events_time(&l->e, d->ticks) : l->e.last_ns;

	if (d->interval_100ns) {
		l->e.interval_100ns = d->interval_100ns;
		if (d->interval_100ns != l->reported_100ns)
			put_interval(l, time_ns);
		l->requested_100ns = 0;
	} else {
		put_expected(l, d, time_ns);
	}
	l->first_due = (l->first_due + 1) % l->room_due;
	l->ndue--;
}

static void put_due(struct etw_live *l, int64_t ticks)
{
	while (l->ndue && l->due[l->first_due].ticks <= ticks)
		put_oldest(l, true);
}

static void add_due(struct etw_live *l, const struct due *d)
{
	if (l->ndue == l->room_due)
		put_oldest(l, false);
	l->due[(l->first_due + l->ndue++) % l->room_due] = *d;
}

/* etw_events.before: Windows' own record of a new rate may come shortly before our report. */
static void before_event(struct etw_events *s, int64_t ticks)
{
	struct etw_live *l = (struct etw_live *)s;

	put_due(l, ticks);
	if (s->interval_100ns && s->interval_100ns != l->reported_100ns)
		put_interval(l, etw_events_time(s, ticks));
}

void etw_live_level(struct etw_live *l, int64_t ticks, uint32_t interval_100ns)
{
	struct due d = {.ticks = ticks, .interval_100ns = interval_100ns};

	os_mutex_lock(l->lock);
	add_due(l, &d);
	l->requested_100ns = interval_100ns;
	os_mutex_unlock(l->lock);
}

void etw_live_busy(struct etw_live *l, int64_t ticks, unsigned cpu, uint64_t busy_ns)
{
	struct due d = {.ticks = ticks, .cpu = (uint16_t)cpu, .busy_ns = busy_ns};

	os_mutex_lock(l->lock);
	add_due(l, &d);
	os_mutex_unlock(l->lock);
}

/* ---- records --------------------------------------------------------------------------------- */

static void let_time_pass(struct etw_live *l, int64_t ticks)
{
	etw_stacks_time(l->e.stacks, ticks);
	if (l->e.heap_stacks)
		etw_stacks_time(l->e.heap_stacks, ticks - l->lag_ticks);
	etw_events_take(&l->e);
	put_due(l, ticks - l->wait_ticks);
	if (ticks > l->wait_ticks)
		queue_watermark(l->e.cfg.queue, etw_events_time(&l->e, ticks - l->wait_ticks));
}

/* On an idle machine no other record may come for long: idle samples let waiting records pass. */
static void put_idle(struct etw_live *l, int64_t ticks)
{
	l->e.idle++;
	if (ticks - l->idle_ticks < (int64_t)(l->e.clock.frequency_hz / 1000 * IDLE_PASSES_MS))
		return;
	l->idle_ticks = ticks;
	let_time_pass(l, ticks);
}

static void put_record(struct etw_live *l, struct etw_stacks *stacks,
		       const struct etw_record *record)
{
	const struct etw_class *class = etw_class_recall(&l->e.classes, record);

	if (record->ticks > l->last_ticks)
		l->last_ticks = record->ticks;
	if (etw_is_idle_sample(record, class)) {
		put_idle(l, l->last_ticks);
		return;
	}
	etw_stacks_put(stacks, record, class);
	if (l->e.heap_stacks)
		etw_stacks_time(l->e.heap_stacks, l->last_ticks - l->lag_ticks);
	etw_events_learn(&l->e, record, class);
	etw_events_take(&l->e);
}

void etw_live_put(struct etw_live *l, const struct etw_record *record)
{
	os_mutex_lock(l->lock);
	put_record(l, l->e.stacks, record);
	os_mutex_unlock(l->lock);
}

void etw_live_put_heap(struct etw_live *l, const struct etw_record *record)
{
	os_mutex_lock(l->lock);
	if (l->e.heap_stacks)
		put_record(l, l->e.heap_stacks, record);
	os_mutex_unlock(l->lock);
}

int etw_live_heap(struct etw_live *l, struct err *err)
{
	return etw_stacks_new(ETW_STACKS_LIVE, (int64_t)l->e.clock.frequency_hz,
			      &l->e.heap_stacks, err);
}

void etw_live_time(struct etw_live *l, int64_t ticks)
{
	os_mutex_lock(l->lock);
	let_time_pass(l, ticks);
	os_mutex_unlock(l->lock);
}

void etw_live_end(struct etw_live *l)
{
	os_mutex_lock(l->lock);
	etw_events_end(&l->e);
	put_due(l, INT64_MAX);
	if (!l->e.last_ns)
		l->e.last_ns = os_now_ns();
	etw_events_loss(&l->e, LOSS_KERNEL, l->unreported);
	os_mutex_unlock(l->lock);
}

void etw_live_lost(struct etw_live *l, uint64_t n)
{
	os_mutex_lock(l->lock);
	l->lost += n;
	l->unreported += n;
	if (n) {                             /* the times of threads start over there */
		l->e.time.lost = true;
		l->e.time.lost_ticks = l->last_ticks;
	}
	if (l->e.last_ns) {
		etw_events_loss(&l->e, LOSS_KERNEL, l->unreported);
		l->unreported = 0;
	}
	os_mutex_unlock(l->lock);
}

/* ---- information besides records ------------------------------------------------------------- */

void etw_live_volume(struct etw_live *l, const char *nt, const char *dos)
{
	os_mutex_lock(l->lock);
	etw_state_add_volume(l->e.state, nt, dos);
	os_mutex_unlock(l->lock);
}

void etw_live_interval(struct etw_live *l, uint32_t interval_100ns)
{
	os_mutex_lock(l->lock);
	l->e.interval_100ns = interval_100ns ? interval_100ns : ETW_INTERVAL_100NS;
	os_mutex_unlock(l->lock);
}

void etw_live_counters(struct etw_live *l, const struct etw_pmcs *counters)
{
	os_mutex_lock(l->lock);
	l->e.counters = *counters;
	os_mutex_unlock(l->lock);
}

void etw_live_objects(struct etw_live *l)
{
	os_mutex_lock(l->lock);
	l->e.objects.on = true;
	os_mutex_unlock(l->lock);
}

bool etw_live_wants_schema(struct etw_live *l, const struct etw_record *r)
{
	uint64_t words[2], hash;
	uint32_t i;
	bool fresh;

	if (r->header != ETW_MANIFEST || etw_class_find(r))
		return false;
	for (i = 0; i < r->nitems; i++)
		if (r->items[i].type == ITEM_TRACELOGGING)
			return false;
	memcpy(words, r->guid.bytes, sizeof(words));
	hash = hash_pair(words[0] ^ hash_u64(words[1]),
			 (uint32_t)r->id << 8 | (r->version & 0xFF)) |
	       1;
	os_mutex_lock(l->lock);
	fresh = l->requested[hash & (REQUESTED - 1)] != hash;
	l->requested[hash & (REQUESTED - 1)] = hash;
	os_mutex_unlock(l->lock);
	return fresh;
}

void etw_live_schema(struct etw_live *l, const void *info, size_t n)
{
	struct etw_record r = {
		.header = ETW_CLASSIC, .opcode = 32, .pointer_bytes = 8, .pid = ETW_ID_UNKNOWN,
		.tid = ETW_ID_UNKNOWN, .payload = info, .payload_bytes = (uint32_t)n,
		.guid = SCHEMAS_GUID,
	};

	os_mutex_lock(l->lock);
	etw_decode_learn(l->e.decode, &r);
	os_mutex_unlock(l->lock);
}

bool etw_live_name(struct etw_live *l, const struct frame *frame, struct symbol *out)
{
	bool named;

	/* The name's texts live as long as the tables. */
	os_mutex_lock(l->lock);
	named = etw_events_name(&l->e, frame, out) ||
		etw_code_name(l->e.code, frame->object, frame->offset, out) ||
		(l->old_code && etw_code_name(l->old_code, frame->object, frame->offset, out));
	os_mutex_unlock(l->lock);
	return named;
}

void etw_live_counts(struct etw_live *l, struct etw_live_counts *out)
{
	os_mutex_lock(l->lock);
	out->delivered = atomic_load_explicit(&l->e.delivered, memory_order_relaxed);
	out->lost = l->lost;
	out->no_user = etw_stacks_counts(l->e.stacks)->no_user;
	etw_events_refused(&l->e, &out->bytes);
	out->interval_100ns = l->e.interval_100ns;
	os_mutex_unlock(l->lock);
}

/* ---- forgetting ------------------------------------------------------------------------------ */

#define OLD_NS (10 * NS_PER_SEC)             /* by then the merge thread has all names */

static void drop_old(struct etw_live *l)
{
	etw_code_free(l->old_code, l->e.last_ns + 1);
	etw_state_free(l->old_state);
	l->old_code = NULL;
	l->old_state = NULL;
}

static void renew_tables(struct etw_live *l)
{
	int64_t since = l->last_ticks -
			(int64_t)(l->e.clock.frequency_hz * (ETW_LIVE_KEEP_NS / NS_PER_SEC));
	struct etw_state *state;
	struct etw_code *code;
	size_t bytes;

	if (etw_state_renew(l->e.state, since, &state, NULL))
		return;
	if (etw_code_renew(l->e.code, state, since, &code, NULL)) {
		etw_state_free(state);
		return;
	}
	drop_old(l);
	l->old_code = l->e.code;
	l->old_state = l->e.state;
	l->old_until_ns = os_now_ns() + OLD_NS;
	l->e.code = code;
	l->e.state = state;
	etw_events_refused(&l->e, &bytes);
	l->trim_bytes = 2 * bytes + ETW_LIVE_TRIM_BYTES;
}

void etw_live_trim(struct etw_live *l)
{
	size_t bytes;

	os_mutex_lock(l->lock);
	if (l->old_code && os_now_ns() >= l->old_until_ns)
		drop_old(l);
	etw_events_refused(&l->e, &bytes);
	if (!l->old_code && bytes > l->trim_bytes)
		renew_tables(l);
	os_mutex_unlock(l->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

int etw_live_open(const struct source_config *cfg, uint64_t frequency_hz, struct etw_live **out,
		  struct err *err)
{
	struct etw_live *l = calloc(1, sizeof(*l));
	int rc;

	if (l) {
		l->room_due = DUE_SECONDS * (os_cpu_count() + 1);
		l->lock = os_mutex_new();
		l->due = calloc(l->room_due, sizeof(*l->due));
	}
	if (!l || !l->lock || !l->due) {
		etw_live_close(l);
		return err_memory(err, "for a session's records");
	}
	l->e.cfg = *cfg;
	l->e.clock.frequency_hz = frequency_hz;
	l->reported_100ns = cfg->capture.freq_hz ? 10000000u / cfg->capture.freq_hz : 0;
	l->trim_bytes = 2 * ETW_LIVE_TRIM_BYTES;
	l->e.before = before_event;
	l->lag_ticks = (int64_t)(frequency_hz * ETW_LIVE_LAG_S);
	l->wait_ticks = (int64_t)(frequency_hz / 1000 * ETW_STACKS_WAIT_MS);
	rc = etw_events_open(&l->e, ETW_STACKS_LIVE, err);
	if (rc) {
		etw_live_close(l);
		return rc;
	}
	etw_code_settle(l->e.code);          /* later additions are sorted as they come */
	*out = l;
	return 0;
}

void etw_live_needs(struct etw_live *l, const struct needs *needs)
{
	etw_events_needs(&l->e, needs);
}

void etw_live_close(struct etw_live *l)
{
	if (!l)
		return;
	drop_old(l);
	etw_events_close(&l->e);
	os_mutex_free(l->lock);
	free(l->due);
	free(l);
}
