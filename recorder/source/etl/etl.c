/*
 * The source of trace files (.etl). It reads a file twice.
 *
 * A trace defines names, stack keys and late parts of stacks after their uses. So the first pass
 * only learns, and the second delivers complete events in time order; it waits while the queue is
 * full. Memory grows with what was learned, not with the file; its size is logged at the end. One
 * thread, beside that of the file (etl/file.h).
 */
#include "source/etl/file.h"
#include "source/etw/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_NS NS_PER_SEC /* t0 on the recorder's clock; not 0 */

struct etl {
	struct source base;
	struct etw_events e;
	struct etl_file *file;
	const struct etl_facts *facts;
	bool delivering;                     /* the second pass */
	bool ended;                          /* the second pass has finished */
	struct etl_counts counts;
	struct os_mutex *lock;               /* guards what follows */
	uint64_t period_ns;
	char note[400];
};

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
		return err_set(err, ERR_NOT_FOUND, "%s: a trace file holds no logs",
			       needs->logs[0].name);
	return 0;
}

/*
 * Log what was read, for a trace that was read to its end. Called at close: only then is it known
 * whether the engine stopped the source early, because it had the incident that it wanted.
 */
static void log_summary(struct etl *s)
{
	const struct etw_stacks_count *n = etw_stacks_counts(s->e.stacks);
	size_t bytes;
	uint64_t nrefused = etw_events_refused(&s->e, &bytes);

	log_line(s->e.cfg.log, LOG_INFO,
		 "read %" PRIu64 " records (%" PRIu64
		 " samples of idle CPUs are not kept); the tables of processes, code and stacks "
		 "take %.1f MB",
		 s->counts.nrecords, s->e.idle, (double)bytes / 1e6);
	if (n->no_user + n->unresolved + n->orphans)
		log_line(s->e.cfg.log, LOG_INFO,
			 "%" PRIu64 " stacks lack their user part, %" PRIu64
			 " use a stack key that is never defined; "
			 "%" PRIu64 " stack parts belong to no event",
			 n->no_user, n->unresolved, n->orphans);
	if (nrefused)
		log_line(s->e.cfg.log, LOG_WARN,
			 "%" PRIu64
			 " processes, images, names or stacks were dropped: a table was full",
			 nrefused);
	if (s->e.time.threads && !s->e.time.switches)
		log_line(s->e.cfg.log, LOG_WARN, "--thread-time: this trace has no context "
			 "switches; record it with the kernel's ThreadTime events");
}

static void etl_close(struct source *source)
{
	struct etl *s = etl_of(source);

	if (!s)
		return;
	if (s->ended && !atomic_load(&s->e.stopping))
		log_summary(s);
	etw_events_close(&s->e);
	etl_file_close(s->file);
	os_mutex_free(s->lock);
	free(s);
}

static int etl_open(const struct source_config *cfg, const struct needs *needs, struct source **out,
		    struct err *err)
{
	struct etl *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (s)
		s->lock = os_mutex_new();
	if (!s || !s->lock)
		rc = err_memory(err, "for reading %s", cfg->capture.file);
	if (!rc) {
		s->base.ops = &etl_source;
		s->e.cfg = *cfg;
		rc = etl_file_open(cfg->capture.file, &s->file, err);
	}
	if (!rc) {
		s->facts = etl_file_facts(s->file);
		s->e.clock = s->facts->clock;
		s->e.start_ns = START_NS;
		s->e.waits = true;
		etw_events_needs(&s->e, needs);
		rc = etw_events_open(&s->e, ETW_STACKS_SURVEY, err);
	}
	if (rc) {
		etl_close(s ? &s->base : NULL);
		return rc;
	}
	s->period_ns = ETW_INTERVAL_100NS * 100;
	*out = &s->base;
	return 0;
}

/* ---- the two passes -------------------------------------------------------------------------- */

static int each_record(void *ctx, const struct etw_record *record)
{
	struct etl *s = ctx;
	const struct etw_class *class = etw_class_recall(&s->e.classes, record);

	if (atomic_load_explicit(&s->e.stopping, memory_order_relaxed))
		return ERR_STOPPED;
	/* Nearly half of a trace. No stack belongs to a sample of the idle loop. */
	if (etw_is_idle_sample(record, class)) {
		s->e.idle += s->delivering;
		if (!s->e.cfg.every_event)
			return 0;
	}
	etw_stacks_put(s->e.stacks, record, class);
	if (s->delivering)
		return etw_events_take(&s->e);
	etw_events_learn(&s->e, record, class);
	return 0;
}

static int survey(struct etl *s, struct err *err)
{
	int rc = etl_file_run(s->file, each_record, s, &s->counts, err);

	if (rc)
		return rc;
	etw_code_settle(s->e.code);
	os_mutex_lock(s->lock);
	if (s->e.interval_100ns)
		s->period_ns = s->e.interval_100ns * 100ull;
	os_mutex_unlock(s->lock);
	return etw_stacks_deliver(s->e.stacks, err);
}

static int deliver(struct etl *s, struct err *err)
{
	int rc;

	s->delivering = true;
	rc = etl_file_run(s->file, each_record, s, &s->counts, err);
	if (!rc || rc == ERR_IO) {
		/* Records before the error are good. */
		rc = etw_events_end(&s->e) ? ERR_STOPPED : rc;
	}
	return rc;
}

/* ---- what was lost --------------------------------------------------------------------------- */

static void put_note(struct buf *b, const char *text)
{
	buf_printf(b, "%s%s", b->len ? "; " : "", text);
}

static void put_count(struct buf *b, uint64_t n, const char *one, const char *many)
{
	if (n)
		buf_printf(b, "%s%" PRIu64 " %s", b->len ? "; " : "", n, n == 1 ? one : many);
}

static void note_losses(struct etl *s)
{
	const struct etl_facts *f = s->facts;
	struct buf b = {0};

	if (f->nentries > 1)
		buf_printf(&b,
			   "only %.100s, the first of its %" PRIu32
			   " traces, was read; unzip it for the others",
			   f->entry, f->nentries);
	if (f->entry_damaged)
		put_note(&b, "it is damaged inside the .zip");
	put_count(&b, f->events_lost, "event was lost while it was recorded",
	    "events were lost while it was recorded");
	put_count(&b, f->buffers_lost, "buffer was lost while it was recorded",
	    "buffers were lost while it was recorded");
	if (!f->events_lost && !f->buffers_lost)
		put_count(&b, f->nbuffers_loss, "buffer is marked as following a loss",
		    "buffers are marked as following a loss");
	put_count(&b, s->counts.ndamaged, "buffer cannot be read", "buffers cannot be read");
	if (s->counts.ndamaged)
		buf_printf(&b, " (number %" PRIu32 ": %s)", s->counts.damaged, s->counts.why);
	if (f->truncated)
		put_note(&b, "it ends inside a buffer");
	if (f->limited)
		put_note(&b, "it has too many buffers; the last ones are not read");
	os_mutex_lock(s->lock);
	snprintf(s->note, sizeof(s->note), "%s", buf_text(&b));
	os_mutex_unlock(s->lock);
	buf_free(&b);
}

static int etl_run(struct source *source, struct err *err)
{
	struct etl *s = etl_of(source);
	int rc = survey(s, err), put;
	size_t bytes;

	if (rc)
		return rc == ERR_STOPPED ? 0 : rc;
	/* Before the first event, so that every incident has the note. */
	note_losses(s);
	if (*s->note)
		log_line(s->e.cfg.log, LOG_WARN, "%s is incomplete: %s", s->e.cfg.capture.file,
			 s->note);
	rc = deliver(s, err);
	if (rc == ERR_STOPPED)
		return 0;
	s->ended = true;
	put = etw_events_loss(&s->e, LOSS_KERNEL, s->facts->events_lost);
	if (!put)
		put = etw_events_loss(&s->e, LOSS_TABLE, etw_events_refused(&s->e, &bytes));
	return rc ? rc : put == ERR_STOPPED ? 0 : put;
}

static void etl_stop(struct source *source)
{
	struct etl *s = etl_of(source);

	atomic_store(&s->e.stopping, true);
	etl_file_stop(s->file);
}

/* ---- status and names ------------------------------------------------------------------------ */

static void etl_status(struct source *source, struct source_status *out)
{
	struct etl *s = etl_of(source);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->e.delivered, memory_order_relaxed);
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
	out->start_ns = START_NS;
	out->start_wall_ns = s->facts->start_wall_ns;
	out->bytes = s->facts->trace_bytes;
	snprintf(out->host_text, sizeof(out->host_text),
		 "Windows %" PRIu32 ".%" PRIu32 ".%" PRIu32 " %s, %" PRIu32 " CPUs",
		 s->facts->os_major, s->facts->os_minor, s->facts->os_build,
		 s->facts->pointer_bytes == 4 ? "x86" : "x64", s->facts->ncpus);
	os_mutex_lock(s->lock);
	out->period_ns = s->period_ns;
	snprintf(out->note, sizeof(out->note), "%s", s->note);
	os_mutex_unlock(s->lock);
}

/* The first pass learns the methods; the second only reads them. */
static bool etl_name_frame(struct source *source, const struct frame *frame, struct symbol *out)
{
	struct etw_events *e = &etl_of(source)->e;

	return etw_events_name(e, frame, out) ||
	       etw_code_name(e->code, frame->object, frame->offset, out);
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
