/*
 * Trace files as a source: read twice, first for what is known of the system, then for its events.
 *
 * Names, stack keys and late parts of stacks stand behind their uses, so the first pass only learns;
 * the second delivers whole events in the order of time, and waits where the queue is full. Memory
 * grows with what was learned, not with the file; it is logged at the end. One thread runs it.
 */
#include "source/etl_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct etl *etl_of(struct source *s)
{
	return (struct etl *)s;
}

static int etl_check(const struct needs *needs, struct err *err)
{
	if (needs->ncounters)
		return err_set(err, ERR_NOT_FOUND, "%s: a trace file holds no counters",
			       needs->counters[0].name);
	if (needs->nlogs)
		return err_set(err, ERR_NOT_FOUND, "%s: a trace file holds no logs", needs->logs[0].name);
	return 0;
}

static void etl_close(struct source *source)
{
	struct etl *s = etl_of(source);

	if (!s)
		return;
	etw_stacks_free(s->stacks);
	etw_code_free(s->code, s->last_ns + 1);
	etw_state_free(s->state);
	etw_decode_free(s->decode);
	etl_file_close(s->file);
	os_mutex_free(s->lock);
	free(s);
}

static int etl_open(const struct source_config *cfg, const struct needs *needs, struct source **out,
		    struct err *err)
{
	struct etl *s = calloc(1, sizeof(*s));
	int rc = 0;

	(void)needs;
	if (s)
		s->lock = os_mutex_new();
	if (!s || !s->lock)
		rc = err_set(err, ERR_MEMORY, "out of memory for reading %s", cfg->file);
	if (!rc) {
		s->base.ops = &etl_source;
		s->cfg = *cfg;
		rc = etl_file_open(cfg->file, &s->file, err);
	}
	if (!rc)
		rc = etw_decode_new(&s->decode, err);
	if (!rc)
		rc = etw_state_new(&s->state, err);
	if (!rc)
		rc = etw_code_new(s->state, cfg->frames, &s->code, err);
	if (!rc) {
		s->facts = etl_file_facts(s->file);
		rc = etw_stacks_new(ETW_STACKS_SURVEY, (int64_t)s->facts->clock.frequency_hz, &s->stacks,
				    err);
	}
	if (rc) {
		etl_close(s ? &s->base : NULL);
		return rc;
	}
	s->period_ns = ETL_INTERVAL_100NS * 100;
	*out = &s->base;
	return 0;
}

/* ---- the two passes ---------------------------------------------------------------------------- */

static int learn(struct etl *s, const struct etw_record *record, const struct etw_class *class)
{
	etw_decode_learn(s->decode, record);
	etw_state_learn(s->state, record, class);
	etw_code_learn(s->code, record, class);
	if (!s->interval_100ns)
		etl_learn_interval(s, record, class);
	return 0;
}

static int take(struct etl *s)
{
	const struct etw_whole *w;
	int rc = 0;

	while (!rc && (w = etw_stacks_next(s->stacks)))
		rc = etl_deliver(s, w);
	return rc;
}

static const struct etw_class *class_of(struct etl *s, const struct etw_record *record)
{
	uint16_t key = record->header == ETW_CLASSIC ? record->opcode : record->id;
	struct etl_class *c;
	uint32_t first;

	memcpy(&first, record->guid.bytes, sizeof(first));
	c = &s->classes[((first ^ key * 0x10001u) * 0x9E3779B1u >> 16) & (ETL_CLASSES - 1)];
	if (c->known && c->key == key && c->header == record->header &&
	    memcmp(&c->guid, &record->guid, sizeof(c->guid)) == 0)
		return c->class;
	*c = (struct etl_class){record->guid, key, record->header, true, etw_class_find(record)};
	return c->class;
}

static int each_record(void *ctx, const struct etw_record *record)
{
	struct etl *s = ctx;
	const struct etw_class *class = class_of(s, record);

	if (atomic_load_explicit(&s->stopping, memory_order_relaxed))
		return ERR_STOPPED;
	/* Nearly half of a trace. The idle loop has no stack that could bind to them. */
	if (etl_is_idle_sample(record, class)) {
		s->idle += s->delivering;
		if (!s->cfg.every_event)
			return 0;
	}
	etw_stacks_put(s->stacks, record, class);
	return s->delivering ? take(s) : learn(s, record, class);
}

static int survey(struct etl *s, struct err *err)
{
	int rc = etl_file_run(s->file, each_record, s, &s->counts, err);

	if (rc)
		return rc;
	etw_code_settle(s->code);
	os_mutex_lock(s->lock);
	if (s->interval_100ns)
		s->period_ns = s->interval_100ns * 100ull;
	os_mutex_unlock(s->lock);
	return etw_stacks_deliver(s->stacks, err);
}

static int deliver(struct etl *s, struct err *err)
{
	int rc;

	s->delivering = true;
	rc = etl_file_run(s->file, each_record, s, &s->counts, err);
	if (!rc || rc == ERR_IO) {
		etw_stacks_end(s->stacks);   /* what was read before the error is good */
		rc = take(s) ? ERR_STOPPED : rc;
	}
	return rc;
}

/* ---- what was lost ----------------------------------------------------------------------------- */

static int put_loss(struct etl *s, enum loss_kind kind, uint64_t n)
{
	struct event e = {.kind = EVENT_LOST, .cpu = CPU_NONE, .stack = STACK_NONE, .value = (double)n,
			  .name = loss_kind_text(kind)};

	e.time_ns = s->last_ns ? s->last_ns : ETL_START_NS;
	return n ? etl_put(s, &e) : 0;
}

static void say(struct buf *b, const char *format, uint64_t n)
{
	if (!n)
		return;
	buf_puts(b, b->len ? "; " : "");
	buf_printf(b, format, n);
}

static void note_losses(struct etl *s)
{
	const struct etl_facts *f = s->facts;
	const struct etl_damage *d = &s->counts.damages[0];
	struct buf b = {0};

	say(&b, "%" PRIu64 " events were lost while it was recorded", f->events_lost);
	say(&b, "%" PRIu64 " buffers were lost while it was recorded", f->buffers_lost);
	if (!f->events_lost && !f->buffers_lost)
		say(&b, "%" PRIu64 " buffers are marked as following a loss", f->nbuffers_loss);
	say(&b, "%" PRIu64 " buffers cannot be read", s->counts.ndamaged);
	if (s->counts.ndamaged)
		buf_printf(&b, " (number %" PRIu32 ": %s)", d->buffer, d->why);
	if (f->truncated)
		buf_puts(&b, b.len ? "; it ends inside a buffer" : "it ends inside a buffer");
	if (f->limited)
		buf_puts(&b, b.len ? "; it has too many buffers, the last are not read"
				   : "it has too many buffers, the last are not read");
	os_mutex_lock(s->lock);
	snprintf(s->note, sizeof(s->note), "%s", buf_text(&b));
	os_mutex_unlock(s->lock);
	buf_free(&b);
}

static uint64_t refused(const struct etl *s, size_t *bytes)
{
	struct etw_state_use state;
	struct etw_code_use code;
	struct etw_stacks_count stacks;
	struct etw_learned learned;

	etw_state_use(s->state, &state);
	etw_code_use(s->code, &code);
	etw_stacks_counts(s->stacks, &stacks);
	etw_decode_learned(s->decode, &learned);
	*bytes = state.bytes + code.bytes + etw_stacks_bytes(s->stacks) + learned.nbytes;
	return state.refused + code.refused + stacks.refused + learned.refused;
}

static int tell_losses(struct etl *s)
{
	struct etw_stacks_count n;
	size_t bytes;
	uint64_t nrefused = refused(s, &bytes);
	int rc;

	note_losses(s);
	if (*s->note)
		log_line(s->cfg.log, LOG_WARN, "%s is not whole: %s", s->cfg.file, s->note);
	log_line(s->cfg.log, LOG_INFO,
		 "read %" PRIu64 " records, %" PRIu64 " of them samples of idle CPUs, which are not kept; "
		 "what was learned of processes, code and stacks takes %.1f MB",
		 s->counts.nrecords, s->idle, (double)bytes / 1e6);
	etw_stacks_counts(s->stacks, &n);
	if (n.no_user + n.unresolved + n.orphans)
		log_line(s->cfg.log, LOG_INFO,
			 "%" PRIu64 " stacks lack their user part, %" PRIu64 " a part whose key is never "
			 "told; %" PRIu64 " parts belong to no event", n.no_user, n.unresolved, n.orphans);
	if (nrefused)
		log_line(s->cfg.log, LOG_WARN,
			 "%" PRIu64 " processes, images, names or stacks are not known: a table was full",
			 nrefused);
	rc = put_loss(s, LOSS_KERNEL, s->facts->events_lost);
	if (!rc)
		rc = put_loss(s, LOSS_TABLE, nrefused);
	return rc;
}

static int etl_run(struct source *source, struct err *err)
{
	struct etl *s = etl_of(source);
	int rc = survey(s, err), told;

	if (!rc)
		rc = deliver(s, err);
	if (rc == ERR_STOPPED)
		note_losses(s);
	if (rc == ERR_STOPPED)
		return 0;
	told = tell_losses(s);
	return rc ? rc : told == ERR_STOPPED ? 0 : told;
}

static void etl_stop(struct source *source)
{
	struct etl *s = etl_of(source);

	atomic_store(&s->stopping, true);
	etl_file_stop(s->file);
}

/* ---- what is asked of it ----------------------------------------------------------------------- */

static void etl_status(struct source *source, struct source_status *out)
{
	struct etl *s = etl_of(source);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->delivered, memory_order_relaxed);
	out->lost = s->facts->events_lost;
	os_mutex_lock(s->lock);
	out->rate_hz = s->period_ns ? 1e9 / (double)s->period_ns : 0;
	snprintf(out->note, sizeof(out->note), "%.199s", s->note);
	os_mutex_unlock(s->lock);
}

static void etl_origin(struct source *source, struct source_origin *out)
{
	struct etl *s = etl_of(source);

	memset(out, 0, sizeof(*out));
	out->start_ns = ETL_START_NS;
	out->start_wall_ns = s->facts->start_wall_ns;
	out->bytes = s->facts->trace_bytes;
	snprintf(out->host_text, sizeof(out->host_text), "Windows %" PRIu32 ".%" PRIu32 ".%" PRIu32
		 " %s, %" PRIu32 " CPUs", s->facts->os_major, s->facts->os_minor, s->facts->os_build,
		 s->facts->pointer_bytes == 4 ? "x86" : "x64", s->facts->ncpus);
	os_mutex_lock(s->lock);
	out->period_ns = s->period_ns;
	snprintf(out->note, sizeof(out->note), "%s", s->note);
	os_mutex_unlock(s->lock);
}

/* Methods are learned in the first pass and only read while events are taken. */
static bool etl_name_frame(struct source *source, const struct frame *frame, struct symbol *out)
{
	return etw_code_name(etl_of(source)->code, frame->object, frame->offset, out);
}

const struct source_ops etl_source = {
	.name = "etl",
	.summary = "trace files of Windows (.etl, .etl.zip)",
	.events = true,
	.check = etl_check,
	.open = etl_open,
	.run = etl_run,
	.stop = etl_stop,
	.status = etl_status,
	.origin = etl_origin,
	.name_frame = etl_name_frame,
	.close = etl_close,
};
