/*
 * The source of .nettrace files (from dotnet-trace): the events of one .NET program. The file has
 * them in blocks by thread, so each event waits until one HOLD_NS younger was read.
 *
 * A file is read twice, like an ETW trace. The program's name and the losses may stand anywhere in
 * it, and the engine's thread must know both with the first event. So do names: those of code that
 * was there at the end stand there. Code that was compiled meanwhile is learned again on the way,
 * because its place may have been another method's.
 */
#include "base/os.h"
#include "base/text.h"
#include "source/dotnet/event_queue.h"
#include "source/dotnet/nettrace_decode.h"
#include "source/dotnet/stacks.h"
#include "source/source.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_NS NS_PER_SEC                  /* t0 on the recorder's clock; not 0 */
#define HOLD_NS (2 * NS_PER_SEC)
#define THREADS 64u
#define YEARS_NS (100ULL * 365 * 86400 * NS_PER_SEC)

struct nettrace_file {
	struct source base;
	struct source_config cfg;
	struct os_file *file;
	struct nettrace *stream;
	struct nettrace_decode *decode;
	struct dotnet_queue queue;
	struct process *process;
	struct thread *threads[THREADS];     /* by tid: those seen last */
	struct dotnet_stacks *stacks;        /* NULL: nobody wants frames */
	struct dotnet_program *program;
	struct gc_objects objects;
	uint64_t lost;                       /* events, so far */
	uint64_t size_bytes, newest_ns, marked_ns;
	struct dotnet_held held;
	struct os_mutex *lock;               /* guards what follows */
	uint64_t start_wall_ns;
	char note[200];
	_Atomic bool stopping;
	atomic_uint_fast64_t delivered;
};

extern const struct source_ops nettrace_source;

/* ---- time ------------------------------------------------------------------------------------ */

/* Days from 1970 to a date of the Gregorian calendar (H. Hinnant, "days_from_civil"). */
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year, era = y / 400, in_era = y - era * 400;
	int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static uint64_t wall_ns(const uint16_t utc[8])
{
	int64_t n;

	if (utc[0] < 1970 || utc[0] > 2200 || utc[1] < 1 || utc[1] > 12 || utc[3] < 1 ||
	    utc[3] > 31)
		return 0;
	n = days_since_1970(utc[0], utc[1], utc[3]) * 86400 + utc[4] * 3600 + utc[5] * 60 + utc[6];
	return (uint64_t)n * NS_PER_SEC + utc[7] * NS_PER_MS;
}

static uint64_t to_ns(const struct nettrace_file *s, uint64_t ticks)
{
	const struct nettrace_facts *f = nettrace_facts(s->stream);
	uint64_t since = ticks > f->ticks ? ticks - f->ticks : 0, ns;

	if (f->ticks_per_sec == NS_PER_SEC && since < YEARS_NS)      /* Linux */
		return START_NS + since;
	ns = since / f->ticks_per_sec < YEARS_NS / NS_PER_SEC
		     ? since / f->ticks_per_sec * NS_PER_SEC
		     : YEARS_NS;
	return START_NS + ns +
	       (uint64_t)((double)(since % f->ticks_per_sec) * 1e9 / (double)f->ticks_per_sec);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_event(void *ctx, const struct event *e)
{
	struct nettrace_file *s = ctx;

	while (!queue_offer(s->cfg.queue, e)) {
		if (atomic_load(&s->stopping))
			return;
		os_sleep_ns(NS_PER_MS / 4);
	}
	/* Only this thread counts: no locked addition for each event. */
	atomic_store_explicit(&s->delivered,
			      atomic_load_explicit(&s->delivered, memory_order_relaxed) + 1 +
				      (e->sample_id != 0),
			      memory_order_relaxed);
	if (e->time_ns - s->marked_ns >= NS_PER_MS) {
		s->marked_ns = e->time_ns;
		queue_watermark(s->cfg.queue, s->marked_ns);
	}
}

/* The runtime writes its command line once: "/path/of/program arguments". */
static void name_process(struct nettrace_file *s, const struct etw_decoded *decoded)
{
	char path[1024];
	uint32_t i;

	for (i = 0; i < decoded->nfields; i++)
		if (strcmp(decoded->fields[i].name, "CommandLine") == 0 &&
		    decoded->fields[i].type == FIELD_TEXT) {
			snprintf(path, sizeof(path), "%s", decoded->fields[i].v.text);
			process_set_cmdline(s->process, path);
			path[strcspn(path, " ")] = '\0';
			process_set_exe(s->process, path);
		}
}

/* Of the first reading: the program and its methods. */
static int learn(void *ctx, const struct nettrace_event *event)
{
	struct nettrace_file *s = ctx;

	if (atomic_load_explicit(&s->stopping, memory_order_relaxed))
		return ERR_STOPPED;
	if (s->program && dotnet_tells_code(event)) {
		dotnet_program_learn(s->program, event, to_ns(s, event->ticks));
		return 0;
	}
	s->objects.on |= gc_objects_tells(event->meta->provider, event->meta->event_id);
	if (!s->process || strcmp(event->meta->name, "ProcessInfo") != 0 ||
	    strcmp(event->meta->provider, "Microsoft-DotNETCore-EventPipe") != 0)
		return NETTRACE_DULL;
	name_process(s, nettrace_decode_event(s->decode, event,
					      nettrace_facts(s->stream)->pointer_bytes));
	return 0;
}

/* NULL = the table is full, or the tid is none. */
static struct thread *thread_of(struct nettrace_file *s, uint64_t tid)
{
	struct thread **known = &s->threads[tid % THREADS];

	if (!s->process || tid > UINT32_MAX)
		return NULL;
	if (!*known || (*known)->tid != tid)
		*known = thread_add(s->cfg.processes, s->process, (uint32_t)tid);
	return *known;
}

static void deliver(void *ctx, const struct dotnet_queued *queued)
{
	struct nettrace_file *s = ctx;
	struct event e;

	uint32_t pointer_bytes = nettrace_facts(s->stream)->pointer_bytes;

	nettrace_decode_queued(s->decode, queued, pointer_bytes, s->process, NULL, &e);
	e.thread = thread_of(s, queued->event.tid);
	if (!s->cfg.every_event)
		gc_objects_collect(&s->objects, &e, queued->event.payload,
				   queued->event.payload_bytes, pointer_bytes, put_event, s);
	dotnet_program_deliver(s->program, s->cfg.every_event ? NULL : &s->objects, &queued->event,
			       pointer_bytes, &e, put_event, s);
}

static int queue_event(void *ctx, const struct nettrace_event *event)
{
	struct nettrace_file *s = ctx;
	uint64_t ns = to_ns(s, event->ticks);

	if (atomic_load_explicit(&s->stopping, memory_order_relaxed))
		return ERR_STOPPED;
	if (ns > s->newest_ns)
		s->newest_ns = ns;
	if (s->program && dotnet_tells_code(event))
		dotnet_program_learn(s->program, event, ns);
	if (nettrace_facts(s->stream)->lost > s->lost)
		gc_objects_lost(&s->objects, s->newest_ns);
	s->lost = nettrace_facts(s->stream)->lost;
	if (!dotnet_queue_put(&s->queue, ns, s, &s->held, event)) {
		/* Full: events may leave out of order, but none is lost. */
		dotnet_queue_release(&s->queue, UINT64_MAX, deliver, s);
		if (!dotnet_queue_put(&s->queue, ns, s, &s->held, event))
			return ERR_MEMORY;
	}
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_some(struct nettrace_file *s, uint64_t *at, nettrace_each *each, struct err *err)
{
	char *room = nettrace_room(s->stream);
	size_t got = 0;
	int rc = room ? os_pread(s->file, room, NETTRACE_PORTION_BYTES, *at, &got, err)
		      : err_memory(err, "for reading %s", s->cfg.capture.file);

	if (!rc && !got)
		return ERR_NOT_FOUND;
	if (!rc)
		rc = nettrace_read(s->stream, got, each, s, err);
	*at += got;
	if (s->newest_ns > HOLD_NS && !rc)
		dotnet_queue_release(&s->queue, s->newest_ns - HOLD_NS, deliver, s);
	return rc;
}

/* From its first byte. ERR_NOT_FOUND: it ends before its end mark. */
static int read_all(struct nettrace_file *s, nettrace_each *each, struct err *err)
{
	uint64_t at = 0;
	int rc;

	nettrace_free(s->stream);
	s->stream = NULL;
	rc = nettrace_new(&s->stream, err);
	if (!rc && each == learn)
		nettrace_skip_stacks(s->stream);
	while (!rc && !nettrace_facts(s->stream)->ended)
		rc = atomic_load(&s->stopping) ? ERR_STOPPED : read_some(s, &at, each, err);
	return rc;
}

static void note_losses(struct nettrace_file *s, int rc, const struct err *err)
{
	uint64_t lost = nettrace_facts(s->stream)->lost;
	struct buf b = {0};

	if (lost)
		buf_printf(&b, "%" PRIu64 " events were lost while it was recorded", lost);
	if (rc == ERR_NOT_FOUND)
		buf_printf(&b, "%sit ends before its end mark", b.len ? "; " : "");
	else if (rc)
		buf_printf(&b, "%s%.120s", b.len ? "; " : "", err->text);
	os_mutex_lock(s->lock);
	snprintf(s->note, sizeof(s->note), "%s", buf_text(&b));
	os_mutex_unlock(s->lock);
	if (b.len)
		log_line(s->cfg.log, LOG_WARN, "%s is incomplete: %s", s->cfg.capture.file,
			 s->note);
	buf_free(&b);
}

static int nettrace_run(struct source *source, struct err *err)
{
	struct nettrace_file *s = (struct nettrace_file *)source;
	int rc = read_all(s, learn, err);

	if (rc != ERR_STOPPED && rc != ERR_MEMORY) {
		note_losses(s, rc, err);
		rc = read_all(s, queue_event, err);
		dotnet_queue_release(&s->queue, UINT64_MAX, deliver, s);
	}
	queue_finish(s->cfg.queue);
	/* Events before the damage are good, and the note says that the file is cut. */
	return rc == ERR_STOPPED || rc == ERR_NOT_FOUND || rc == ERR_FORMAT ? 0 : rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int ignore_event(void *ctx, const struct nettrace_event *event)
{
	(void)ctx;
	(void)event;
	return 0;
}

/* The first object has pid and time. Read separately, so that run() starts at the beginning. */
static int read_facts(struct nettrace_file *s, struct nettrace_facts *out, struct err *err)
{
	struct nettrace *t = NULL;
	char head[512];
	size_t got = 0;
	int rc = nettrace_new(&t, err);

	if (!rc)
		rc = os_pread(s->file, head, sizeof(head), 0, &got, err);
	if (!rc)
		rc = nettrace_feed(t, head, got, ignore_event, NULL, err);
	if (!rc && !nettrace_facts(t)->known)
		rc = err_set(err, ERR_FORMAT, "%s is cut before its first event",
			     s->cfg.capture.file);
	if (!rc)
		*out = *nettrace_facts(t);
	nettrace_free(t);
	return rc;
}

static void nettrace_close(struct source *source)
{
	struct nettrace_file *s = (struct nettrace_file *)source;

	dotnet_queue_free(&s->queue);
	gc_objects_free(&s->objects);
	dotnet_program_free(s->program, 0);
	dotnet_stacks_free(s->stacks);
	nettrace_free(s->stream);
	nettrace_decode_free(s->decode);
	os_close(s->file);
	os_mutex_free(s->lock);
	free(s);
}

static int nettrace_open(const struct source_config *cfg, const struct needs *needs,
			 struct source **out, struct err *err)
{
	struct nettrace_file *s = calloc(1, sizeof(*s));
	struct nettrace_facts facts = {0};
	struct os_file_info info;
	int rc;

	(void)needs;
	if (s)
		s->lock = os_mutex_new();
	if (!s || !s->lock) {
		free(s);
		return err_memory(err, "for reading %s", cfg->capture.file);
	}
	s->base.ops = &nettrace_source;
	s->cfg = *cfg;
	s->objects.log = cfg->log;
	rc = os_open(cfg->capture.file, OS_READ, &s->file, err);
	if (!rc)
		rc = os_file_info(s->file, &info, err);
	if (!rc)
		rc = read_facts(s, &facts, err);
	if (!rc)
		rc = nettrace_decode_new(&s->decode, err);
	if (!rc && cfg->frames)
		rc = dotnet_stacks_new(cfg->frames, os_uid(), &s->stacks, err);
	if (rc) {
		nettrace_close(&s->base);
		return rc;
	}
	s->size_bytes = info.size_bytes;
	s->start_wall_ns = wall_ns(facts.utc);
	s->process = process_add(cfg->processes, facts.pid, START_NS, 0, 0, "dotnet");
	if (s->stacks && s->process)
		s->program = dotnet_program_new(s->stacks, facts.pid, 1, os_uid());
	*out = &s->base;
	return 0;
}

static bool nettrace_name_frame(struct source *source, const struct frame *frame,
				struct symbol *out)
{
	struct nettrace_file *s = (struct nettrace_file *)source;

	return s->stacks && dotnet_stacks_name(s->stacks, frame, out);
}

static int nettrace_check(const struct needs *needs, struct err *err)
{
	if (needs->ncounters || needs->nlogs)
		return err_set(err, ERR_NOT_FOUND,
			       "a .nettrace file holds no counters and no logs");
	return 0;
}

static void nettrace_stop(struct source *source)
{
	atomic_store(&((struct nettrace_file *)source)->stopping, true);
}

static void nettrace_status(struct source *source, struct source_status *out)
{
	struct nettrace_file *s = (struct nettrace_file *)source;

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->delivered, memory_order_relaxed);
	os_mutex_lock(s->lock);
	snprintf(out->note, sizeof(out->note), "%s", s->note);
	os_mutex_unlock(s->lock);
}

static void nettrace_origin(struct source *source, struct source_origin *out)
{
	struct nettrace_file *s = (struct nettrace_file *)source;

	memset(out, 0, sizeof(*out));
	out->start_ns = START_NS;
	out->start_wall_ns = s->start_wall_ns;
	out->bytes = s->size_bytes;
	snprintf(out->host_text, sizeof(out->host_text), "a .NET program");
	os_mutex_lock(s->lock);
	snprintf(out->note, sizeof(out->note), "%s", s->note);
	os_mutex_unlock(s->lock);
}

const struct source_ops nettrace_source = {
	.name = "nettrace",
	.summary = "events of .NET programs in files (.nettrace)",
	.events = true,
	.check = nettrace_check,
	.open = nettrace_open,
	.run = nettrace_run,
	.stop = nettrace_stop,
	.status = nettrace_status,
	.origin = nettrace_origin,
	.name_frame = nettrace_name_frame,
	.close = nettrace_close,
};
