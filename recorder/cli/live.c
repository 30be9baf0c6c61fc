#include "cli/live.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/os.h"
#include "base/text.h"
#include "engine/control.h"
#include "source/list/asked.h"
#include "store/history.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (20 * NS_PER_MS)
#define BEGIN_NS (60 * NS_PER_SEC)           /* a large machine's maps are read first */
#define LATE_NS (10 * NS_PER_SEC)            /* a slow disk */
#define END_NS (30 * NS_PER_SEC)
#define OWN_BUFFER_MB 8u                     /* nobody reads its buffer */
#define SCREEN_HZ 49u                        /* a screen shows ten seconds: 490 samples a CPU */
#define SCREEN_BATCH_NS (18 * NS_PER_MS)     /* takes a third of the source's time away */
#define OWN_PREFIX "top-"
#define SNAPSHOT_NS (120 * NS_PER_SEC)       /* of our own: as an incident's usual window */

struct live {
	const struct options *o;
	struct buf store;                    /* the recorder's */
	struct buf top;                      /* the path beside which its windows lie */
	uint64_t from_ns;
	uint64_t kept_ns;                    /* what happened since then can be read; 0 = nothing */
	uint64_t bare;                       /* events of the last window without a stack */
	bool screen;
	/* of a recorder of our own */
	bool own;
	struct options part;
	struct buf log;
	struct os_thread *thread;
	_Atomic bool ended;
	int rc;                              /* once it has ended */
	struct err failure;
};

/* ---- asking ---------------------------------------------------------------------------------- */

/* What it answered, the moments as numbers. */
struct answer {
	uint64_t from_ns, written_ns;
	struct buf note;
};

static uint64_t moment(struct json_value all, const char *key)
{
	struct buf text = {0};
	uint64_t ns;

	json_put_text(json_member(all, key), &text);
	ns = strtoull(buf_text(&text), NULL, 10);
	buf_free(&text);
	return ns;
}

static int read_answer(struct live *l, const char *text, struct answer *out, struct err *err)
{
	struct json_value all, error;
	struct buf why = {0};

	if (!json_read(text, &all))
		return err_set(err, ERR_FORMAT, "the recorder's answer is not JSON: %.200s", text);
	error = json_member(all, "error");
	if (error.at) {
		json_put_text(error, &why);
		err_set(err, ERR_IO, "the recorder refused: %s", buf_text(&why));
		buf_free(&why);
		return ERR_IO;
	}
	buf_reset(&l->top);
	json_put_text(json_member(all, "store"), &l->top);
	out->from_ns = moment(all, "from");
	out->written_ns = moment(all, "written");
	if (out->from_ns > l->kept_ns)
		l->kept_ns = out->from_ns;
	buf_reset(&out->note);
	json_put_text(json_member(all, "note"), &out->note);
	return buf_check(&l->top, "the recorder's answer", err);
}

/* until_ns 0: only say that somebody looks. */
static int ask(struct live *l, uint64_t until_ns, struct answer *out, struct err *err)
{
	struct buf reply = {0};
	char question[64];
	int rc;

	snprintf(question, sizeof(question), "{\"cmd\":\"top\",\"until\":\"%" PRIu64 "\"}",
		 until_ns);
	rc = l->store.len ? cmd_ask_at(buf_text(&l->store), question, &reply, err)
			  : cmd_ask(l->o, question, &reply, &l->store, err);
	if (!rc)
		rc = read_answer(l, buf_text(&reply), out, err);
	buf_free(&reply);
	return rc;
}

void live_keep(struct live *l)
{
	struct answer answer = {0};

	ask(l, 0, &answer, NULL);
	buf_free(&answer.note);
}

/* ---- a recorder of our own ------------------------------------------------------------------- */

static void record(void *ctx)
{
	struct live *l = ctx;
	const struct cmd_recorded of = {.aside = true};

	l->rc = cmd_record(&l->part, &of, &l->failure);
	atomic_store(&l->ended, true);
}

struct leftovers {
	const char *dir;
	uint32_t pid;                        /* whose; 0 = of all that are gone */
};

/* "top-4711.db", "top-4711.db-wal", ... */
static int remove_leftover(void *ctx, const char *name)
{
	const struct leftovers *l = ctx;
	struct buf path = {0};
	char *end = NULL;
	unsigned long pid;

	if (strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) != 0)
		return 0;
	pid = strtoul(name + strlen(OWN_PREFIX), &end, 10);
	if (strncmp(end, ".db", 3) != 0 || pid != (uint32_t)pid || !pid)
		return 0;
	if (l->pid ? pid != l->pid : os_process_exists((uint32_t)pid))
		return 0;
	buf_printf(&path, "%s/%s", l->dir, name);
	if (!path.failed && text_ends_fold(name, HISTORY_SUFFIX)) {
		path.data[path.len - strlen(HISTORY_SUFFIX)] = '\0';
		history_discard(path.data);
	} else if (!path.failed) {
		os_remove(path.data, NULL);
	}
	buf_free(&path);
	return 0;
}

static void remove_leftovers(const char *store, uint32_t pid)
{
	struct buf dir = {0};
	struct leftovers l = {.pid = pid};

	os_dirname(store, &dir);
	l.dir = buf_text(&dir);
	if (!dir.failed)
		os_list(l.dir, remove_leftover, &l, NULL);
	buf_free(&dir);
}

/* Its store lies beside the usual one, in a directory that is ours. */
static int start_own(struct live *l, struct err *err)
{
	struct buf usual = {0};
	int rc = cmd_store_path(l->o, STORE_RECORD, &usual, err);

	if (rc)
		return rc;
	cmd_leave_out_rules(l->o, &l->part);
	l->part.process = NULL;
	l->part.capture.only_process = l->o->process;
	l->part.capture.all_events = true;
	l->part.symbol_cache_mb = 0;
	if (options_origin(l->o, "buffer-mb") == FROM_DEFAULT)
		l->part.buffer_mb = OWN_BUFFER_MB;
	if (l->screen)
		l->part.capture.batch_ns = SCREEN_BATCH_NS;
	if (l->screen && options_origin(l->o, "freq") == FROM_DEFAULT)
		l->part.capture.freq_hz = SCREEN_HZ;
	os_dirname(buf_text(&usual), &l->store);
	buf_printf(&l->store, "/" OWN_PREFIX "%u.db", (unsigned)os_pid());
	buf_free(&usual);
	buf_printf(&l->log, "%s.log", buf_text(&l->store));
	rc = buf_check(&l->store, "the store's name", err);
	if (!rc)
		rc = buf_check(&l->log, "the log's name", err);
	if (rc)
		return rc;
	if (l->screen)
		l->part.log_file = l->log.data;
	remove_leftovers(buf_text(&l->store), 0);
	l->part.store = l->store.data;
	l->part.origin[option_by_name("store", 5) - option_table] = FROM_ARGS;
	l->own = true;
	return os_thread_start("recorder", record, l, &l->thread, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool wants_running(const struct options *o)
{
	return o->source && strcmp(o->source, "running") == 0;
}

/* Until events are kept. A recorder of our own opens its socket a little after it was started. */
static int wait_for_begin(struct live *l, struct err *err)
{
	uint64_t until_ns = os_now_ns() + BEGIN_NS;
	struct answer answer = {0};
	int rc = 0;

	while (!answer.from_ns) {
		if (l->own && atomic_load(&l->ended)) {
			*err = l->failure;
			rc = l->rc ? l->rc : err_set(err, ERR_IO, "the recording has ended");
			break;
		}
		rc = ask(l, 0, &answer, err);
		if (rc && !(l->own && (rc == ERR_NOT_FOUND || rc == ERR_ACCESS)))
			break;
		if (os_now_ns() > until_ns) {
			rc = err_set(err, ERR_IO, "the recording has not begun after %u s",
				     (unsigned)(BEGIN_NS / NS_PER_SEC));
			break;
		}
		if (os_signal_wait(LOOK_NS) == OS_SIGNAL_STOP) {
			rc = ERR_STOPPED;
			break;
		}
	}
	l->from_ns = answer.from_ns > os_wall_ns() ? answer.from_ns : os_wall_ns();
	buf_free(&answer.note);
	return rc;
}

int live_open(const struct options *o, bool screen, struct live **out, struct err *err)
{
	struct live *l = calloc(1, sizeof(*l));
	struct answer answer = {0};
	int rc = ERR_NOT_FOUND;

	if (!l)
		return err_memory(err, "while starting");
	l->o = o;
	l->screen = screen;
	l->part = *o;
	if (wants_running(o) || (!o->source && !o->capture.events)) {
		rc = ask(l, 0, &answer, err);
		if (rc)
			buf_reset(&l->store);
		buf_free(&answer.note);
	}
	if ((rc == ERR_NOT_FOUND || rc == ERR_ACCESS) && !wants_running(o))
		rc = start_own(l, err);
	if (!rc)
		rc = wait_for_begin(l, err);
	if (rc) {
		live_close(l);
		return rc;
	}
	*out = l;
	return 0;
}

/* false: it hangs, and is left to the end of the program. Its socket may not be open yet. */
static bool end_own(struct live *l)
{
	uint64_t until_ns = os_now_ns() + END_NS;
	struct buf reply = {0};

	while (l->thread && !os_thread_join_within(l->thread, LOOK_NS)) {
		if (os_now_ns() > until_ns) {
			os_thread_leave(l->thread);
			return false;
		}
		buf_reset(&reply);
		cmd_ask_at(buf_text(&l->store), "{\"cmd\":\"abort\"}", &reply, NULL);
	}
	remove_leftovers(buf_text(&l->store), os_pid());
	buf_free(&reply);
	return true;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	if (l->own && !end_own(l))
		return;                      /* the thread still uses it */
	buf_free(&l->store);
	buf_free(&l->top);
	buf_free(&l->log);
	free(l);
}

uint64_t live_from_ns(const struct live *l)
{
	return l->from_ns;
}

uint64_t live_bare_events(const struct live *l)
{
	return l->bare;
}

/* ---- windows --------------------------------------------------------------------------------- */

static int wait_written(struct live *l, uint64_t to_ns, struct err *err)
{
	uint64_t until_ns = os_now_ns() + LATE_NS;
	struct answer answer = {0};
	int rc = 0;

	for (;;) {
		rc = ask(l, to_ns, &answer, err);
		if (rc && l->own && atomic_load(&l->ended) && l->rc) {
			*err = l->failure;
			rc = l->rc;
		}
		if (rc || answer.written_ns >= to_ns)
			break;
		if (!answer.from_ns && os_now_ns() > until_ns - LATE_NS / 2) {
			rc = err_set(err, ERR_IO, "the recorder has stalled");
			break;
		}
		if (os_now_ns() > until_ns) {
			rc = err_set(err, ERR_IO, "the recorder has not written the last window "
				     "after %u s%s%s", (unsigned)(LATE_NS / NS_PER_SEC),
				     answer.note.len ? ": " : "", buf_text(&answer.note));
			break;
		}
		os_sleep_ns(LOOK_NS);
	}
	buf_free(&answer.note);
	return rc;
}

/* The event of "clr:KEYWORD:EVENT", if that is all that was asked for; else NULL = any. */
static const char *one_event(const char *events)
{
	const char *at;

	if (!events || strchr(events, ',') || strncasecmp(events, "clr:", 4) != 0)
		return NULL;
	at = strchr(events + 4, ':');
	return at ? at + 1 : NULL;
}

static bool is_event_frame(const struct incident *in, uint32_t frame)
{
	return in->modules[in->frames[frame].module].kind == OBJECT_JIT &&
	       strcmp(incident_frame_module(in, frame), "event") == 0;
}

/* The frame that names the event is no code, and would stand before the kernel's. */
static void drop_event_frames(struct incident *in)
{
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		struct incident_sample *s = &in->samples[i];

		if (s->stream == STREAM_EVENT && s->stack != STACK_NONE &&
		    is_event_frame(in, in->stacks[s->stack].frame))
			s->stack = in->stacks[s->stack].parent;
	}
}

/* Keep the samples of one stream that have a stack. */
static void keep_stream(struct incident *in, enum stream stream)
{
	uint32_t i, n = 0;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == stream && s->stack != STACK_NONE)
			in->samples[n++] = *s;
	}
	in->nsamples = n;
	incident_count(in);
}

static bool is_profile(const char *events)
{
	return events && text_same_fold(events, "kernel:profile");
}

static enum stream stream_of(const struct live *l)
{
	const char *events = l->o->capture.events;

	return events && !is_profile(events) ? STREAM_EVENT : STREAM_CPU;
}

static bool has_event_samples(const struct incident *in)
{
	uint32_t i;

	for (i = 0; i < in->nsamples; i++)
		if (in->samples[i].stream == STREAM_EVENT)
			return true;
	return false;
}

/* Events of an ETW session have their stacks themselves: make samples of those that are meant. */
static int add_event_samples(struct live *l, struct incident *in, const char *events,
			     struct err *err)
{
	uint32_t i;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];
		const struct incident_sample s = {
			.time_ns = e->time_ns, .weight = 1, .thread = e->thread, .stack = e->stack,
			.cpu = e->cpu, .stream = STREAM_EVENT, .quality = QUALITY_COMPLETE,
		};

		if (!asked_event(events, e->provider, e->name))
			continue;
		l->bare += e->stack == STACK_NONE;
		if (e->stack != STACK_NONE && incident_add_sample(in, &s))
			return err_memory(err, "for the events of a window");
	}
	return 0;
}

/* Samples of the events that --event asks for, and of no others. */
static int choose_events(struct live *l, struct incident *in, const char *events,
			 struct err *err)
{
	const struct incident_filter f = {.event = one_event(events)};
	int rc;

	l->bare = 0;
	if (!has_event_samples(in))
		return add_event_samples(l, in, events, err);
	rc = f.event ? incident_filter(in, &f, err) : 0;
	drop_event_frames(in);
	return rc;
}

/* Less what the options leave out; without anything an incident without samples. */
static int load(struct live *l, uint64_t from_ns, uint64_t to_ns, bool kernel,
		struct incident *in, struct err *err)
{
	const char *events = stream_of(l) == STREAM_EVENT ? l->o->capture.events : NULL;
	const struct incident_filter f = {
		.process = l->o->process, .tid = l->o->tid,
		.no_kernel = !kernel, .no_idle = l->screen,
	};
	int rc = history_load(buf_text(&l->top), from_ns, to_ns - 1, from_ns, in, err);

	if (rc == ERR_NOT_FOUND)
		return incident_init(in) ? err_memory(err, "for a window") : 0;
	if (!rc && events)
		rc = choose_events(l, in, events, err);
	if (!rc)
		rc = incident_filter(in, &f, err);
	if (rc == ERR_NOT_FOUND) {
		in->nsamples = 0;
		rc = 0;
	}
	return rc;
}

int live_take(struct live *l, enum stream *stream, struct incident *in, struct err *err)
{
	uint64_t from_ns = l->from_ns, to_ns = os_wall_ns();
	int rc;

	/* A clock that was set back: the windows go on from there. */
	if (to_ns <= from_ns)
		from_ns = to_ns > NS_PER_SEC ? to_ns - NS_PER_SEC : 0;
	*stream = stream_of(l);
	rc = wait_written(l, to_ns, err);
	if (rc)
		return rc;
	l->from_ns = to_ns;
	rc = load(l, from_ns, to_ns, l->o->kernel, in, err);
	if (!rc)
		keep_stream(in, *stream);
	return rc;
}

/* ---- for a screen ---------------------------------------------------------------------------- */

int live_reach(struct live *l, uint64_t to_ns, bool *can, struct err *err)
{
	struct answer answer = {0};
	int rc = ask(l, to_ns, &answer, err);

	if (rc && l->own && atomic_load(&l->ended) && l->rc) {
		*err = l->failure;
		rc = l->rc;
	}
	*can = !rc && answer.written_ns >= to_ns;
	buf_free(&answer.note);
	return rc;
}

void live_restart(struct live *l)
{
	l->kept_ns = os_wall_ns();
}

int live_load(struct live *l, uint64_t to_ns, bool kernel, uint64_t *span_ns, struct incident *in,
	      struct err *err)
{
	if (l->kept_ns < to_ns && to_ns - l->kept_ns < *span_ns)
		*span_ns = to_ns - l->kept_ns;
	return load(l, to_ns - *span_ns, to_ns, kernel, in, err);
}

static int snapshot_of_other(struct live *l, const char *reason, struct buf *said, struct err *err)
{
	struct buf line = {0}, reply = {0};
	struct json j = {.out = &line};
	struct json_value all, error;
	int rc;

	json_open(&j, '{');
	json_key_str(&j, "cmd", "snapshot");
	if (*reason)
		json_key_str(&j, "reason", reason);
	json_close(&j, '}');
	rc = buf_check(&line, "the question", err);
	if (!rc)
		rc = cmd_ask_at(buf_text(&l->store), buf_text(&line), &reply, err);
	if (!rc && !json_read(buf_text(&reply), &all))
		rc = err_set(err, ERR_FORMAT, "the recorder's answer is not JSON");
	if (!rc) {
		error = json_member(all, "error");
		json_put_text(error.at ? error : json_member(all, "text"), said);
		if (error.at)
			rc = err_set(err, ERR_IO, "%s", buf_text(said));
	}
	buf_free(&line);
	buf_free(&reply);
	return rc;
}

int live_snapshot(struct live *l, const char *reason, struct buf *said, struct err *err)
{
	struct history_keep keep = {
		.rule = "manual", .to_ns = os_wall_ns(),
		.reason = *reason ? reason : "kept from the screen of `recorder top`",
	};
	struct buf store = {0};
	int64_t id = 0;
	int rc;

	if (!l->own)
		return snapshot_of_other(l, reason, said, err);
	keep.from_ns = keep.to_ns - SNAPSHOT_NS > l->kept_ns ? keep.to_ns - SNAPSHOT_NS
							      : l->kept_ns;
	keep.trigger_ns = keep.to_ns;
	rc = cmd_store_path(l->o, STORE_RECORD, &store, err);
	keep.into = buf_text(&store);
	if (!rc)
		rc = history_keep(buf_text(&l->top), &keep, &id, err);
	if (!rc)
		buf_printf(said, "incident %" PRId64 " is stored: recorder show %" PRId64, id, id);
	buf_free(&store);
	return rc;
}

void live_put_source(const struct live *l, struct buf *out)
{
	if (l->own)
		buf_puts(out, "own recording");
	else
		buf_printf(out, "recorder of %s", buf_text(&l->store));
}
