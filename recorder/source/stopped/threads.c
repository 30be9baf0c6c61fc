/*
 * Rules with ;Stacks=: at a firing the stacks of all threads of a process are taken, once, and each
 * is an event "Recorder/Thread" with its stack. Nobody waits for that: the thread of this source
 * takes them, while it otherwise rests. An event has the moment at which its thread was stopped.
 */
#include "source/source.h"
#include "source/stopped/process_dump.h"
#include "source/stopped/thread_stacks.h"

#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANTED_MAX 8u                        /* that wait; more are refused, and counted */
#define PROCESSES_MAX_EACH 4u                /* of one name */
#define WHO_BYTES 128
#define DUMPS_MAX 8u                         /* that are kept; the oldest is removed */
#define DUMP_PATH_BYTES 4096u
#define SLEEP_NS (3600 * NS_PER_SEC)

extern const struct source_ops threads_source;

struct threads_source {
	struct source base;
	struct source_config cfg;
	bool wanted_at_all;                  /* by a rule */
	struct os_mutex *lock;               /* guards what follows */
	struct os_cond *wake;
	char wanted[WANTED_MAX][WHO_BYTES];
	uint32_t nwanted;
	uint64_t until_ns;                   /* see stacks_until */
	bool stopping;
	_Atomic uint64_t events, lost;
};

/* One process whose threads are taken now. */
struct taking {
	struct threads_source *s;
	struct thread_stacks *stacks;
	struct process *process;
	struct process_dump *dump;           /* NULL = none is written */
};

/* ---- its own thread -------------------------------------------------------------------------- */

/* Names that only the reader of a managed runtime has, which is closed soon. */
static void name_managed(struct taking *t, const struct thread_stack *stack)
{
	struct frames *frames = t->s->cfg.frames;
	struct symbol symbol;
	uint32_t i, number;
	bool fresh;

	for (i = 0; i < stack->nframes; i++) {
		number = frames_intern(frames, &stack->frames[i], &fresh);
		if (number != FRAME_NONE &&
		    thread_stacks_name(t->stacks, frame_get(frames, number), &symbol))
			frame_set_function(frames, frame_get(frames, number), symbol.offset,
					   symbol.name, symbol.raw_name, symbol.module);
	}
}

static void put_thread(void *ctx, const struct thread_stack *stack)
{
	struct taking *t = ctx;
	struct event_field fields[4] = {
		{.name = "Name", .type = FIELD_TEXT, .v.text = stack->name},
		{.name = "State", .type = FIELD_TEXT, .v.text = stack->wait ? stack->wait : ""},
		{.name = "StoppedNs", .type = FIELD_UINT, .v.u = stack->suspended_ns},
		{.name = "WaitsForThread", .type = FIELD_UINT, .v.u = stack->waits_for},
	};
	struct event e = {
		.time_ns = stack->time_ns, .kind = EVENT_GENERIC, .cpu = CPU_NONE,
		.stream = STREAM_EVENT, .stack = STACK_NONE, .provider = "Recorder",
		.name = "Thread", .fields = fields, .nfields = stack->waits_for ? 4 : 3,
		.process = t->process, .stack_frames = stack->frames,
		.nstack_frames = stack->nframes, .quality = (uint8_t)stack->quality,
	};

	if (t->dump)
		process_dump_thread(t->dump, stack);
	e.thread = thread_add(t->s->cfg.processes, t->process, stack->tid);
	name_managed(t, stack);
	if (queue_put(t->s->cfg.queue, &e))
		atomic_fetch_add(&t->s->events, 1);
}

static void note_missing(const struct taking *t, uint32_t pid)
{
	struct thread_stacks_use use;

	thread_stacks_use(t->stacks, &use);
	if (!use.refused && !use.stuck)
		return;
	atomic_fetch_add(&t->s->lost, use.refused + use.stuck);
	log_line(t->s->cfg.log, LOG_WARN, "the incident lacks the stacks of %u of %u threads of "
		 "process %u: they could not be stopped or read",
		 (unsigned)(use.refused + use.stuck), (unsigned)use.threads, (unsigned)pid);
}

/* ---- dumps ----------------------------------------------------------------------------------- */

struct dumps {
	const char *dir;
	char oldest[DUMP_PATH_BYTES];
	uint64_t oldest_ns;
	uint32_t n;
};

static int find_oldest(void *ctx, const char *name)
{
	struct dumps *all = ctx;
	struct os_file_info info;
	char path[DUMP_PATH_BYTES];

	if (!text_ends_fold(name, process_dump_suffix) ||
	    snprintf(path, sizeof(path), "%s/%s", all->dir, name) >= (int)sizeof(path) ||
	    os_path_info(path, &info, NULL) || !info.regular)
		return 0;
	if (!all->n++ || info.mtime_ns < all->oldest_ns) {
		memcpy(all->oldest, path, sizeof(path));
		all->oldest_ns = info.mtime_ns;
	}
	return 0;
}

static int make_room(const char *dir, struct err *err)
{
	struct dumps all;
	int rc = os_mkdirs(dir, err);

	do {
		all = (struct dumps){.dir = dir};
		if (!rc)
			rc = os_list(dir, find_oldest, &all, err);
		if (!rc && all.n >= DUMPS_MAX)
			rc = os_remove(all.oldest, err);
	} while (!rc && all.n > DUMPS_MAX);
	return rc;
}

static void put_dump(struct taking *t, const char *path, uint64_t nbytes)
{
	struct event_field fields[2] = {
		{.name = "Path", .type = FIELD_TEXT, .v.text = path},
		{.name = "Bytes", .type = FIELD_UINT, .v.u = nbytes},
	};
	struct event e = {
		.time_ns = os_now_ns(), .kind = EVENT_GENERIC, .cpu = CPU_NONE,
		.stream = STREAM_EVENT, .stack = STACK_NONE, .provider = "Recorder",
		.name = "Dump", .fields = fields, .nfields = 2, .process = t->process,
	};

	if (queue_put(t->s->cfg.queue, &e))
		atomic_fetch_add(&t->s->events, 1);
}

static void write_dump(struct taking *t, uint32_t pid)
{
	const char *dir = t->s->cfg.capture.dump_dir;
	char path[DUMP_PATH_BYTES];
	struct err err = {0};
	uint64_t nbytes = 0;
	int rc;

	/* A disk may hang, and dbghelp takes its time: nobody waits for this source meanwhile. */
	queue_rest(t->s->cfg.queue, 0);
	rc = make_room(dir, &err);
	snprintf(path, sizeof(path), "%s/%" PRIu32 "-%" PRIu64 "%s", dir, pid,
		 (uint64_t)(os_wall_ns() / NS_PER_MS), process_dump_suffix);
	if (!rc)
		rc = process_dump_write(t->dump, path, &nbytes, &err);
	queue_resume(t->s->cfg.queue, os_now_ns());
	if (rc) {
		log_line(t->s->cfg.log, LOG_WARN, "no dump at this firing: %s", err.text);
		return;
	}
	log_line(t->s->cfg.log, LOG_INFO, "a dump of process %u is in %s (%.1f MB)", (unsigned)pid,
		 path, (double)nbytes / 1048576);
	put_dump(t, path, nbytes);
}

/* ---- a firing -------------------------------------------------------------------------------- */

static void take_process(struct threads_source *s, uint32_t pid)
{
	struct taking t = {.s = s};
	struct err err = {0};
	bool own = false;
	int rc = thread_stacks_open(pid, s->cfg.frames, &t.stacks, &err);

	t.process = process_find(s->cfg.processes, pid, os_now_ns());
	if (!t.process && (t.process = process_add(s->cfg.processes, pid, os_now_ns(), 0, 0,
						   NULL)) != NULL) {
		process_ref(t.process);
		own = true;
	}
	queue_resume(s->cfg.queue, os_now_ns());
	if (!rc && !t.process)
		rc = err_memory(&err, "for process %u", (unsigned)pid);
	if (!rc && s->cfg.capture.dump_dir && process_dump_open(pid, &t.dump, &err))
		log_line(s->cfg.log, LOG_WARN, "no dump at this firing: %s", err.text);
	if (!rc)
		rc = thread_stacks_take(t.stacks, 0, put_thread, &t, &err);
	if (!rc)
		note_missing(&t, pid);
	if (!rc && t.dump)
		write_dump(&t, pid);
	if (rc) {
		atomic_fetch_add(&s->lost, 1);
		log_line(s->cfg.log, LOG_WARN, "the incident lacks the stacks of process %u: %s",
			 (unsigned)pid, err.text);
	}
	queue_rest(s->cfg.queue, 0);
	process_dump_close(t.dump);
	thread_stacks_close(t.stacks);
	if (own)
		process_drop(s->cfg.processes, t.process, os_now_ns());
	if (t.process)
		process_unref(t.process);
}

static void take(struct threads_source *s, const char *who)
{
	uint32_t pids[PROCESSES_MAX_EACH], n, i;

	n = thread_stacks_find(who, pids, PROCESSES_MAX_EACH);
	if (!n)
		log_line(s->cfg.log, LOG_WARN, "the incident lacks the stacks of %s: there is no "
			 "such process", who);
	for (i = 0; i < n; i++)
		take_process(s, pids[i]);
}

static int threads_run(struct source *source, struct err *err)
{
	struct threads_source *s = (struct threads_source *)source;
	char who[WHO_BYTES];

	(void)err;
	os_mutex_lock(s->lock);
	queue_rest(s->cfg.queue, 0);
	while (s->wanted_at_all && !s->stopping) {
		if (!s->nwanted) {
			os_cond_wait(s->wake, s->lock, SLEEP_NS);
			continue;
		}
		memcpy(who, s->wanted[0], sizeof(who));
		memmove(s->wanted, s->wanted + 1, --s->nwanted * sizeof(*s->wanted));
		os_mutex_unlock(s->lock);
		take(s, who);
		os_mutex_lock(s->lock);
		if (!s->nwanted)
			s->until_ns = os_now_ns();
	}
	s->until_ns = 0;
	os_mutex_unlock(s->lock);
	queue_finish(s->cfg.queue);
	return 0;
}

/* ---- other threads --------------------------------------------------------------------------- */

static void threads_take(struct source *source, const char *process)
{
	struct threads_source *s = (struct threads_source *)source;
	bool room;

	os_mutex_lock(s->lock);
	room = s->nwanted < WANTED_MAX;
	if (room) {
		snprintf(s->wanted[s->nwanted++], WHO_BYTES, "%s", process);
		s->until_ns = UINT64_MAX;
	}
	os_cond_signal(s->wake);
	os_mutex_unlock(s->lock);
	if (room)
		return;
	atomic_fetch_add(&s->lost, 1);
	log_line(s->cfg.log, LOG_WARN, "the incident lacks the stacks of %s: those of %u firings "
		 "wait already", process, WANTED_MAX);
}

static uint64_t threads_until(struct source *source)
{
	struct threads_source *s = (struct threads_source *)source;
	uint64_t until_ns;

	os_mutex_lock(s->lock);
	until_ns = s->until_ns;
	os_mutex_unlock(s->lock);
	return until_ns;
}

static void threads_stop(struct source *source)
{
	struct threads_source *s = (struct threads_source *)source;

	os_mutex_lock(s->lock);
	s->stopping = true;
	os_cond_signal(s->wake);
	os_mutex_unlock(s->lock);
}

static void threads_status(struct source *source, struct source_status *out)
{
	struct threads_source *s = (struct threads_source *)source;

	out->events = atomic_load(&s->events);
	out->lost = atomic_load(&s->lost);
}

static void threads_close(struct source *source)
{
	struct threads_source *s = (struct threads_source *)source;

	os_cond_free(s->wake);
	os_mutex_free(s->lock);
	free(s);
}

static int threads_check(const struct needs *needs, struct err *err)
{
	(void)needs;
	(void)err;
	return 0;
}

static int threads_open(const struct source_config *cfg, const struct needs *needs,
			struct source **out, struct err *err)
{
	struct threads_source *s = calloc(1, sizeof(*s));

	if (s) {
		s->base.ops = &threads_source;
		s->cfg = *cfg;
		s->wanted_at_all = needs->stacks;
		s->lock = os_mutex_new();
		s->wake = os_cond_new();
	}
	if (!s || !s->lock || !s->wake) {
		if (s)
			threads_close(&s->base);
		return err_memory(err, "for the stacks of threads");
	}
	*out = &s->base;
	return 0;
}

const struct source_ops threads_source = {
	.name = "threads",
	.summary = "all threads of a process, at the firing of a rule with ;Stacks=",
	.looks_at_others = true,
	.optional = true,
	.check = threads_check,
	.open = threads_open,
	.run = threads_run,
	.stop = threads_stop,
	.take_stacks = threads_take,
	.stacks_until = threads_until,
	.status = threads_status,
	.close = threads_close,
};
