/*
 * The engine's state. Each thread has a struct of its own, which nothing else touches:
 *
 *	merge thread     e->merge, e->rules
 *	control thread   e->health, e->store_stands, e->failed
 *	writer thread    e->writer, e->dedup
 *	any thread       e->shared, under e->shared.lock; the atomics; what reload.c changes in
 *	                 e->live: the merge thread writes it, under that lock
 *
 * The rest is written before the threads run, or locks for itself.
 */
#pragma once

#include "base/ahead.h"
#include "base/os.h"
#include "engine/clock.h"
#include "engine/engine.h"
#include "engine/feed.h"
#include "engine/health.h"
#include "engine/homes.h"
#include "model/incident.h"
#include "model/memory_budget.h"
#include "model/ring.h"
#include "store/history.h"
#include "symbol/disk.h"
#include "symbol/symbol.h"

#define MANUAL_RULE UINT32_MAX
#define PAST_WINDOWS 8u                  /* that late firings speak of */
#define PAST_STEPS 4u                    /* of the sampling rate, that wait for the history */
#define TICK_NS (100 * NS_PER_MS)
#define ENGINE_TOGETHER 16u              /* segments of a file that are written at once */
#define ENGINE_SIGNATURE_FRAMES 48u      /* searched for 8 named user frames */

struct engine;

/* ---- what the threads share, under one lock -------------------------------------------------- */

enum engine_stop {                           /* why the run ends; only ever raised */
	STOP_NO,
	STOP_DONE,                           /* the number of incidents was reached */
	STOP_END,                            /* the file is at its end */
	STOP_TIME,                           /* max_collect_ns */
	STOP_ASKED,                          /* a signal or `recorder stop` */
	STOP_FAILED,                         /* no source delivers any more, or no memory */
	STOP_ABORT,
};

/* A message for the events; the control thread makes it, the merge thread takes it. */
#define MARKS_MAX 64u

struct mark {
	struct mark *next;
	uint64_t time_ns;
	char text[];
};

/* What status prints of the merge thread, copied once a second. */
struct status_view {
	uint64_t now_ns, start_ns;
	uint64_t samples, lost, late, flooded;
	uint64_t lost_samples;               /* of lost: what could have been samples */
	uint64_t lost_by_kind[LOSS_KINDS];
	uint64_t open_samples, open_bytes;   /* of the open segment */
	uint64_t oldest_ns;                  /* start of what is held */
	struct budget budget;
	uint32_t firings;
	char stalled[SYMBOLS_NEWS_BYTES];    /* what hangs, and what it waits for; "" */
	bool source_stalls;                  /* that is a source */
};

/* The same of one rule. */
struct rule_view {
	struct trigger_status status;
	uint64_t fired, held_back, nearest_ago_ns;
	char interval[100];                  /* average and maximum of the last 10 s; "" = none */
	char state[TRIGGER_STATE_MAX];       /* to be stored by the writer */
	uint32_t nstate;                     /* bytes of it; 0 = nothing new */
};

/* An incident between firing and store: the merge thread makes it, the writer removes it. */
struct pending {
	/* under the lock */
	struct pending *next;
	struct frozen window;                /* grows until it is complete */
	uint64_t last_number;                /* of its newest segment */
	bool complete;                       /* the post-window has ended */
	bool discard;                        /* aborted: do not store it */
	bool give_up_logged;
	bool dedup_decided;                  /* written by the writer: `repeats` is known */
	bool begun;                          /* written by the writer: the store has its head */
	uint32_t written;                    /* written by the writer: segments in the store */
	struct incident_head head;           /* the writer's alone once it is complete */

	/* the merge thread's */
	uint32_t rule;               /* index of the trigger, or MANUAL_RULE; under the lock */
	bool whole;                          /* a whole file: it ends where the file does */
	uint64_t post_end_ns;
	uint64_t lasted_ns;                  /* until when its cause lasted; 0 = a moment */
	bool waited;                         /* beyond its end, for stacks of threads */

	/* the writer's */
	bool repeats;                        /* an incident that is stored; dropped when complete */
	struct frame *frames[ENGINE_SIGNATURE_FRAMES]; /* the stack, leaf first; referenced */
	uint32_t nframes;
	uint32_t signature;                  /* index of its kept signature; UINT32_MAX = none */
	char process[64];                    /* of the firing event; "" = none */
	uint64_t settle_ns;                  /* time left to wait for names */
	uint64_t retry_at_ns;                /* after a failure */
};

/* What becomes of events that go into a second open segment: past.c. */
enum { PAST_HISTORY, PAST_TOP, PASTS };

struct past {
	struct engine *engine;
	/* the merge thread's */
	struct segment_builder *builder;     /* NULL = nothing is kept now */
	/* the control thread's */
	struct os_thread *thread;            /* NULL = nothing is written */
	/* under the lock */
	struct os_cond *wake;                /* the thread */
	struct segment **items;              /* on their way, the oldest first */
	uint32_t n, cap;
	size_t bytes;
	uint64_t dropped, dropped_samples;   /* segments that found no room */
	/* The sampling rate changed behind this segment. */
	struct past_step {
		uint64_t after, period_ns;
		char why[160];
	} steps[PAST_STEPS];
	uint32_t nsteps;                     /* those beyond PAST_STEPS replace the last one */
	uint64_t last_number;                /* of the newest segment that was sealed */
	/* Incidents to be made out of the history: by the wall clock. */
	struct past_window {
		uint64_t from_ns, to_ns, trigger_ns;
		char *rule, *reason;
	} windows[PAST_WINDOWS];
	uint32_t nwindows;
	/* Flushes: requested; the last one that is sealed, and that is on the disk. */
	uint32_t asked, sealed, flushed;
	bool done;                           /* no further one comes */
	bool yield;                          /* the disk is too full for an incident */
	char note[300];                      /* why writing does not go on; "" = it does */
	struct history_use use;
	uint64_t sealed_ns, written_ns;      /* until when it reaches */
	/* of `recorder top`; the first two by the clock of events */
	uint64_t from_ns;                    /* since when events are kept; 0 = they are not */
	uint64_t seal_at_ns;                 /* as soon as events until then are there */
	uint64_t wanted_until_ns;
};

struct shared {
	struct os_mutex *lock;               /* guards what follows, and parts of struct pending */
	struct os_cond *wake_writer, *wake_merge, *wake_command, *wake_reload;

	struct pending *first_pending, *last_pending;        /* by firing */
	uint32_t npending;
	size_t held_bytes;                   /* evicted from the ring, and held for incidents */
	bool merge_done;                     /* no further incident comes */
	bool writer_has_work;                /* since the writer looked last */
	bool writer_hurried;                 /* from outside, since it lowered its priority last */

	char *snapshot_reason;               /* a snapshot was requested; NULL = none */
	uint64_t snapshot_ns;                /* when */
	struct mark *marks;                  /* `recorder mark`, the newest first */
	uint32_t nmarks;
	struct reload *reload;               /* waits for the merge thread; NULL = none does */
	char *stop_reason;                   /* who or what stopped the run; NULL = nobody said */

	struct command_job *command_jobs;    /* in the order of their incidents */
	bool command_done;                   /* no further job comes */

	struct status_view view;
	struct rule_view *rules;             /* by rule */
	uint32_t stored, failed;             /* incidents */
	uint32_t kept;                       /* out of the history, by whomever */
	uint64_t store_bytes;
	bool aborted;                        /* something was not stored because of an abort */
	char store_note[300];                /* why storing does not go on; "" = it does */
	bool store_full;                     /* it is the disk that is full */
	char renewed[600];                   /* why a new store was made; "" = it was not */

	struct past pasts[PASTS];
};

/* ---- the merge thread ------------------------------------------------------------------------ */

struct evicted_samples {                     /* a circle */
	uint64_t *items;                     /* 100 ns since start_ns << 16 | cpu */
	uint32_t first, count;
	uint64_t forgotten, forgotten_ns;    /* samples that no longer fit; the first one's time */
};

/* A file's full segments are compressed by a thread of their own while the next one fills. */
struct sealer {
	struct ahead_job job;
	struct ahead ahead;                  /* {0}: they are compressed at once */
	struct engine *engine;
	bool busy;                           /* what follows is the job's: engine_sealed() */
	int rc;
	struct segment *sealed;
	struct err err;
};

struct merge {
	/* what is recorded */
	struct segment_builder *builder;     /* the open segment */
	struct sealer sealer;
	uint32_t nsealed;                    /* of a file, for ENGINE_TOGETHER */
	uint64_t period_ns;                  /* of CPU samples now */
	struct queue *own;                   /* events about the recorder itself; see own.c */
	struct evicted_samples evicted;
	struct source_origin origin;         /* of a file */

	/* moments of the recorder clock, which is the time of events */
	bool started;                        /* start_ns is known */
	uint64_t start_ns;
	uint64_t begun_ns;                   /* every source delivers since then; 0 = not yet */
	uint64_t now_ns;                     /* the last tick */
	uint64_t last_ns;                    /* the newest event */
	uint64_t next_tick_ns, next_tables_ns, next_sweep_ns;
	uint64_t next_housekeeping_ns, looked_ns;    /* these of the real clock */
	struct source_pace pace;
	uint64_t looked_cpu_ns, looked_wait_ns;  /* of this thread, at looked_ns */
	struct os_file *schedstat;           /* this thread's; NULL = not opened */
	struct clock_reading clock;          /* of the last look */

	/* counts, and how much of them was put among the events already */
	uint64_t events, samples, lost, lost_samples, late;
	uint64_t lost_by_kind[LOSS_KINDS];
	uint64_t flooded, flooded_reported;  /* events over a quota */
	uint64_t refused_reported;           /* by the tables of processes and frames */
	bool share_logged;                   /* that a user has too many code objects */
	uint64_t queue_lost_reported[FEED_SOURCES_MAX];

	/* windows: incident.c */
	uint32_t open_windows;               /* incidents that wait for their end */
	uint64_t next_end_ns;                /* the first of these ends; UINT64_MAX = none */
	bool window_extended;                /* one goes on beyond its end: checked at each tick */
	uint64_t caught_up_ns;               /* the end for which sources were asked to catch up */
	uint64_t seal_moved_ns;              /* last, because a process moved; 0 = never */
	bool seal_past;                      /* an incident began: seal what came before it soon */

	/* the end of the run */
	bool closed;                         /* its time is over: further events are dropped */
	bool stopping_sources;
	uint64_t stopping_since_ns;          /* of the real clock */

	/* costs.c, tables.c */
	struct budget budget;
	char budget_reason[200];             /* of the step that a source is about to take */
	struct memory_budget memory;
	bool full_tables_logged;
};

/* What makes an incident. */
struct firing {
	uint32_t rule;                       /* index of the trigger, or MANUAL_RULE */
	const char *rule_text, *reason;
	double value, limit;                 /* NaN = none */
	const struct event *event;           /* NULL = none */
	uint64_t time_ns, pre_ns, post_ns;
	bool whole;                          /* a whole file; see struct pending */
};

/* Why windows end early. */
struct window_end {
	const char *cut;                     /* may be text; NULL = recording ended */
	char text[400];
	bool partial;                        /* somebody ended the run before they were whole */
};

/* A firing that made an incident. */
struct fired {
	uint64_t time_ns;                    /* 0 = it was a repeat */
	uint64_t process_start_ns;
	uint32_t pid;                        /* 0 = no process's */
};

struct rule_state {
	bool in_window;                      /* its own incident is in its post-window */
	struct fired *last_fired;            /* a circle of rules.per_hour */
	uint32_t fired;                      /* firings so far, less subtracted ones */
	uint64_t last_ns;                    /* the last one */
	uint64_t day_start_ns;
	uint32_t day_fired;
	uint64_t held_back;                  /* firings */
	bool limit_logged;
	uint64_t held_back_until_ns;
	bool silence_logged;                 /* that it has no data */
	bool rest_logged;                    /* that its expression rests */
	_Atomic uint32_t repeats;            /* firings without an incident; the writer adds */
	uint32_t repeats_subtracted;         /* from `fired`, so far */
};

struct rules {
	struct rule_state *all;              /* by rule */
	bool armed;                          /* there is no StartOnPerfCounter, or one has fired */
	uint32_t per_hour, per_day;          /* incidents of one rule */
	bool hour_unlimited, day_unlimited;  /* these limits do not hold */
	bool half_unlimited;                 /* nor does that of one process */
	uint32_t firings;                    /* that made an incident, repeats too */
	uint64_t next_save_ns, next_tell_ns;
};

/* ---- the writer ------------------------------------------------------------------------------ */

struct writer {
	struct store *store;
	uint32_t deferrals;                  /* of retention, in a row */
	int64_t clock_off_s;                 /* wall clock less store_time(), as logged last */
	uint64_t retain_end_ns;              /* of retention after the run; 0 = not begun */
	bool rule_failure_logged;
	bool store_missing;                  /* as logged last */
	char gone[600];                      /* what happened to the last store, to be said */
};

/* --dedup: what the writer knows of stored incidents. */
struct dedup {
	struct kept_signature *all;
	uint32_t n;
	_Atomic uint32_t nrepeats;           /* firings that are repeats; any thread reads it */
};

/* ---- live and from a file -------------------------------------------------------------------- */

/*
 * How live events and those of a trace file are treated. Live recording waits for nobody: what does
 * not fit into memory is given up and counted. Reading a file waits for the store and loses
 * nothing. What differs stands in this table; no other file of the engine asks where events come
 * from.
 */
struct policy {
	const char *activity;                /* "recording" */
	const char *starts;                  /* "recording had begun": why a window starts late */
	const char *full;                    /* "the store": what too many incidents wait for */
	uint32_t most_incidents;             /* that wait for it */
	bool by_clock;                       /* events come as they happen, by the real clock */
	bool foreign;                        /* events of another time, and maybe another machine */
	bool one_source;                     /* in order already: no event waits for a watermark */
	bool loses_nothing;                  /* the merge thread waits for the writer */
	bool in_background;                  /* threads yield to the machine's other work */
	bool rules_pause;                    /* no rule fires in the window of its own incident */
	bool rules_persist;                  /* their states are stored, for the next run */
	enum engine_stop sources_ended;      /* why the run ends when every source has */
	uint64_t idle_ns;                    /* pause of the merge thread; 0 = queues wake it */
	uint64_t settle_ns;                  /* how long one incident waits for names, in all */

	/* Control thread, before the others run; NULL = nothing to do. */
	void (*start)(struct engine *e);
	/* Merge thread, at the first event, unless time has started; NULL = nothing to do. */
	void (*begin)(struct engine *e, uint64_t first_ns);
	/* Any thread: the wall clock at a moment of the recorder clock; 0 = not known. */
	uint64_t (*wall_ns)(const struct engine *e, uint64_t time_ns);
	/* Merge thread: whether one more incident can be kept; may wait. */
	bool (*has_room)(struct engine *e);
	/* Merge thread: an incident was made of this firing. */
	void (*fired)(struct engine *e, const struct firing *f);
	/* Merge thread: bring what incidents hold beyond the ring below its ceiling. */
	void (*limit_held)(struct engine *e, uint64_t evicted_until_ns);
	/* Merge thread: the run ends; say how open windows end. */
	void (*end)(struct engine *e, enum engine_stop how, struct window_end *why);
	/* Merge thread: whether a last incident is made of what is held. */
	bool (*wants_last)(const struct engine *e, enum engine_stop how);
};

/* policy_live.c, policy_file.c */
extern const struct policy live_policy;
extern const struct policy replay_policy;    /* as live, in the time of events: for tests */
extern const struct policy file_policy;

/* ---- ends.c: whether something goes on ------------------------------------------------------- */

struct standstill {                          /* starts as {0} */
	uint64_t count, since_ns;
};

/* Whether a counter has stood still for this long. */
bool ends_stands_still(struct standstill *s, uint64_t count, uint64_t wait_ns);

/* ---- the engine ------------------------------------------------------------------------------ */

struct engine {
	struct engine_config live;           /* a copy that reload.c changes */
	const struct engine_config *cfg;     /* that copy */
	const struct capture *capture;       /* cfg's */
	const struct policy *policy;
	struct frames *frames;
	struct processes *processes;
	struct symbols *symbols;
	struct symbol_env symbol_env;
	struct symbol_witness symbol_witness;        /* the sources */
	struct ring *ring;
	struct log *log;
	struct feed feed;
	struct os_thread *writer_thread;     /* started before the merge thread */
	char host[256], host_text[256];      /* a file's: set at its first event */

	struct merge merge;
	struct rules rules;
	struct writer writer;
	struct dedup dedup;
	struct homes homes;
	struct shared shared;
	struct health health;
	struct standstill store_stands;
	bool failed;                         /* --on-failure exit ended the run */

	_Atomic int stop;                    /* enum engine_stop */
	_Atomic bool begun;                  /* every source delivers */
	_Atomic bool merge_ended, writer_ended;
	_Atomic uint64_t writer_steps;       /* grows while the writer and its store go on */
	_Atomic uint64_t command_steps;      /* the same of exports and stop commands */
	_Atomic uint64_t command_wait_ns;    /* how long a step of theirs may take */
	const char *_Atomic command_what;    /* "the stop command"; constant */
	bool left_behind;                    /* control thread: threads still run at the end */
	struct os_wake *wake_control;        /* when one of these is set, and by lines of the log */
};

/* ---- engine.c -------------------------------------------------------------------------------- */

/* Any thread: ask for the end. The strongest request stays; of reasons (sentences) the first. */
void engine_stop(struct engine *e, enum engine_stop how, const char *reason);

/* ---- control.c ------------------------------------------------------------------------------- */

/*
 * The control thread, until merge and writer have ended, or are left behind. ERR_STOPPED: not
 * everything was stored, and the caller knows why; ERR_IO.
 */
int engine_control(struct engine *e, struct err *err);

/* ---- failures.c ------------------------------------------------------------------------------ */

/* Bring e->health up to date. */
void failures_look(struct engine *e);
/* Every second: the same, and do what --on-failure says about what fails. */
void failures_tell(struct engine *e);

/* ---- merge.c --------------------------------------------------------------------------------- */

void merge_main(void *engine);

/* ---- segments.c: the open segment ------------------------------------------------------------ */

/* Put an event into the open segment, sealed first when it is full. false: over a quota. */
bool engine_keep(struct engine *e, struct event *event);
/* Seal the open segment: it goes to the ring, and to the incidents that wait for it. */
void engine_seal(struct engine *e);
/* What is being compressed goes to the ring and the windows now. */
void engine_sealed(struct engine *e);
void engine_begin_sealer(struct engine *e);
void engine_end_sealer(struct engine *e);
/* The same, if it holds enough to be worth its memory. */
void engine_seal_past(struct engine *e);
/* The same where a process moves to another control group, once a second at most. */
void engine_seal_moved(struct engine *e);

/* ---- past.c: the history on disk, and what `recorder top` reads ------------------------------ */

#define TOP_SUFFIX ".top"                    /* "<store>.top.history" */

/* Control thread: whether there will be one, and its part of the merge thread. */
int past_open(struct engine *e, struct err *err);
void past_close(struct engine *e);
/* Merge thread: the same event as in the open segment. */
void past_keep(struct engine *e, const struct event *event, bool wanted);
/* Samples that come from now on stand for another period. */
void past_rate(struct engine *e, uint64_t period_ns, const char *why);
void past_set_quota(struct engine *e, const struct segment_quota *quota);
/*
 * Make an incident of a firing's window around another moment of the wall clock, which the ring
 * does not hold. false: there is no history, or too many are asked for.
 */
bool past_want(struct engine *e, const struct firing *f, uint64_t wall_ns, const char *reason);
/* Merge thread, at each tick: seal what is due; at the end: all, and no more comes. */
void past_tick(struct engine *e);
/* Control thread: seal at the next tick. The flush is on the disk once `flushed` reaches this. */
uint32_t past_flush(struct engine *e);
void past_end(struct engine *e);
/* The thread that writes one of shared.pasts. It may hang in a disk: nobody waits for it. */
void past_main(void *past);
/* Any thread: the disk is too full for an incident: the history gives way. */
void past_yield(struct engine *e);

/* What there is to read, by the recorder clock. */
struct top_answer {
	uint64_t from_ns;                    /* 0 = events are not kept yet */
	uint64_t written_ns;                 /* all until then can be read */
	char note[300];                      /* why it is not written; "" */
};
/*
 * Control thread: somebody reads what `recorder top` shows, and wants it until until_ns (0 = not
 * yet). It ends when nobody has asked for 15 s.
 */
int past_top(struct engine *e, uint64_t until_ns, struct top_answer *out, struct err *err);

/* ---- incident.c ------------------------------------------------------------------------------ */

/* false: it cannot be kept; the log says why. */
bool engine_fire(struct engine *e, const struct firing *f);
/* Complete the incidents whose post-window has ended; with end: all of them. */
void engine_windows(struct engine *e, uint64_t now_ns, const struct window_end *end);
/*
 * How long the merge thread may sleep, at most wait_ns, for the next end of a window. When an end
 * has come the sources are asked to deliver what belongs to it: somebody waits.
 */
uint64_t engine_windows_wait(struct engine *e, uint64_t wait_ns);

/* Append a sentence to why its window is not as requested. */
void pending_add_reason(struct pending *p, const char *reason);

/* Take it off the list and free it. Takes the lock. */
void pending_remove(struct engine *e, struct pending *p);

/* Bytes of segments that have left the ring and are held for incidents. Under the lock. */
size_t pending_held_bytes(const struct engine *e, uint64_t evicted_until_ns);
/*
 * Bring held bytes below their ceiling, as the disk is slow. First let go of segments that are in
 * the store already; frames named later get no name there. When that is not enough, the oldest
 * incidents give up their oldest segments, and say so. Under the lock.
 */
void pending_relieve(struct engine *e, uint64_t evicted_until_ns);

/* ---- own.c: the recorder about itself -------------------------------------------------------- */

/* Put an event into the queue of own events, from which merge.c takes it. */
void own_event_put(struct engine *e, uint64_t time_ns, uint16_t cpu, const char *name,
		   const struct event_field *fields, uint32_t nfields);
/* Write a sentence to the log, and put it as the text of an event of now. */
void own_event_say(struct engine *e, enum log_level level, const char *name, const char *text);
/* Put the messages of `recorder mark`. */
void own_event_put_marks(struct engine *e);
/* How much the ring holds. */
void own_event_put_ring(struct engine *e, uint64_t time_ns);
double ring_bytes_per_sample(const struct ring_use *use);

/* Which samples of requested windows the ring gave up. note: for ring_on_evict(). */
void evicted_note(void *engine, const struct segment *segment);
void evicted_put(struct engine *e, uint64_t from_ns, uint64_t trigger_ns);

/* ---- costs.c: the CPU time and memory that the recorder may take ----------------------------- */

void costs_open(struct engine *e);
/* The frequency or the limits have changed: begin with them anew. */
void costs_change(struct engine *e);
void costs_look(struct engine *e);           /* once a second */
/* EVENT_RATE has come: the samples behind it stand for another period. */
void costs_rate(struct engine *e, struct event *event);
/* Any thread: CPU time so far, memory now. */
struct own_usage {
	uint64_t cpu_ns, rss_bytes;                  /* cpu_ns: with the sandbox's, rss_bytes not */
	uint64_t sandbox_cpu_ns, sandbox_rss_bytes;  /* of processes without rights */
};
struct own_usage costs_own(struct engine *e);

/* ---- stalls.c: sources that do not deliver --------------------------------------------------- */

void stalls_look(struct engine *e);          /* once a second */
/* For status: what hangs; "" = nothing. returns whether that is a source */
bool stalls_text(const struct engine *e, char *out, size_t n);
/* The run ends: leave the sources behind that still hang after 5 s. */
void stalls_leave_behind(struct engine *e);

void clock_look(struct engine *e);           /* says what the wall clock did meanwhile */

/* ---- ends.c: what the end of a run waits for ------------------------------------------------- */

/* Now and then: 0, or ERR_IO when the run has ended but for a store that does not answer. */
int ends_without_store(struct engine *e, struct standstill *s, struct err *err);
/* Command thread: it begins this step, which ends itself after timeout_ns; 0 = when it is done. */
void ends_allow(struct engine *e, const char *what, uint64_t timeout_ns);
/* No further job comes: join the command thread (NULL = none), or leave it behind with ERR_IO. */
int ends_with_command(struct engine *e, struct os_thread *thread, struct err *err);

/* ---- tables.c: forgets what nothing lists any more ------------------------------------------- */

struct tables_use {
	struct processes_use processes;
	struct frames_use frames;
};

struct tables_use tables_use(const struct engine *e);
void tables_sweep(struct engine *e, bool all);       /* all frames, or a slice of them */
/* Each second: what is left of the last sweep; every 8 s, and of a file always, another one. */
void tables_look(struct engine *e);
/* When a table is nearly full: forget everything unused, then give up the oldest history. */
void tables_keep_room(struct engine *e);
/* At the start of each segment: how much of it one process may take. */
void tables_set_quota(struct engine *e);

/* ---- rules.c --------------------------------------------------------------------------------- */

/* Control thread, before the others run and after they have ended. */
int rules_open(struct engine *e, struct err *err);
void rules_close(struct engine *e);

/* Whether it only arms the others: StartOnPerfCounter. */
bool rules_is_start(const struct trigger *t);
/* How many firings end the run; those that repeat an incident do not count. */
uint32_t rules_wanted_firings(const struct engine *e);
/* Show an event or a tick to the rules. returns whether one fired at it */
bool rules_feed(struct engine *e, const struct event *event);
/* Copy what status prints. Under the lock. */
/* Every 10 s: put what the rules have measured and seen into the incident's own events. */
void rules_tell(struct engine *e);
void rules_publish(struct engine *e);
/* Copy the rules' states for the writer: every minute, or now. */
void rules_save(struct engine *e, bool now);

/* ---- reload.c: a configuration that was read anew ------------------------------------------- */

/*
 * Control thread: read the configuration anew and let the merge thread take it between two ticks;
 * what is recorded stays. After an error everything is as before.
 *
 * what      sentences for who asked: what changed, what needs a restart
 */
int engine_reload(struct engine *e, struct buf *what, struct err *err);
/* Merge thread: take a configuration that waits. */
void reload_take(struct engine *e);

/* ---- writer.c -------------------------------------------------------------------------------- */

void writer_main(void *engine);
/* There is something to write. Under the lock. */
void engine_wake_writer(struct engine *e);
/* The same, and somebody waits: the writer runs at high priority meanwhile. Under the lock. */
void engine_hurry_writer(struct engine *e);
/* Whether the writer's priority never changes. */
bool engine_keeps_priority(const struct engine *e);

/* For store_set_call_off(). */
bool writer_retention_must_stop(void *engine);

/* ---- writer_store.c -------------------------------------------------------------------------- */

/* Control thread, at the start: open the store; a damaged one is replaced. */
int engine_open_store(struct engine *e, struct err *err);
/*
 * Make sure that the store is where it was. Where it is not, make it anew and begin all pending
 * incidents again. After a failure e->writer.store may be NULL.
 */
int writer_have_store(struct engine *e, struct err *err);

/* ---- dedup.c --------------------------------------------------------------------------------- */

/* Merge thread: note what the signature will be made of. */
void dedup_note(struct engine *e, struct pending *p, const struct event *event);
/*
 * Writer, before anything of the incident is stored.
 * returns  whether it is counted with an earlier incident, and is not stored
 */
bool dedup_repeats(struct engine *e, struct pending *p);
/* Writer: the incident is stored, and has its number. */
void dedup_stored(struct engine *e, const struct pending *p);
/* The incidents are gone with their store. */
void dedup_forget(struct dedup *d);
void dedup_free(struct dedup *d);

/* ---- command.c: the thread of commands, fed by the writer ------------------------------------ */

/* Writer: an incident is stored; export it and run StopCommand, as far as that was requested. */
void command_add(struct engine *e, int64_t incident, const char *rule, const char *reason);
/* Control thread: recording fails; run the command of --on-failure. */
void command_add_failure(struct engine *e, const char *kind, const char *reason);
void command_main(void *engine);
/* Control thread: no further job comes; command_main() returns when all are done. */
void command_end(struct engine *e);
