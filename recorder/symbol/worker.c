/*
 * The workers of symbol.h: their threads, and what happens when one hangs.
 *
 * A thread that reads a file of a server that is gone cannot be stopped. It is left behind with all
 * that it uses, and another one goes on. When it is back, the older of the two stays, because it
 * has read more, and the younger one ends.
 */
#include "symbol/sandbox.h"
#include "symbol/symbol_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define REST_EVERY_NS NS_PER_SEC
#define LOOK_EVERY_NS NS_PER_SEC
#define END_WAIT_NS (5 * NS_PER_SEC)

/* So many looks without any progress: it hangs. */
enum {
	STILL_LOOKS = 2,
	STILL_LOOKS_DBGHELP = 8,       /* Windows: dbghelp may take 5 s; see os_thread_waits() */
};

/* ---- where a worker is ----------------------------------------------------------------------- */

static unsigned count_hanging(const struct symbols *s)
{
	unsigned i, n = 0;

	for (i = 0; i < WORKERS_MAX; i++)
		n += s->workers[i] && s->workers[i]->state == WORKER_HANGS;
	return n;
}

/* Would a worker at b wait for what the one at a waits for? */
static bool is_same_spot(const struct spot *a, const struct spot *b)
{
	if (!a->object || !b->object)
		return a->process && a->process == b->process;
	return a->object == b->object || (a->file_system && a->file_system == b->file_system) ||
	       (a->object->key.kind == OBJECT_JIT && b->object->key.kind == OBJECT_JIT &&
		a->object->key.pid == b->object->key.pid);
}

static void move_to(struct worker *w, struct spot to)
{
	if (to.object)
		object_ref(to.object);
	if (to.process)
		process_ref(to.process);
	if (w->at.object)
		object_drop(w->at.object, 0);
	if (w->at.process)
		process_unref(w->at.process);
	w->at = to;
}

/*
 * It moves again. The older one goes on, with all that it has read; the younger one ends. So a mere
 * delay, of a busy disk, costs nothing.
 */
static void come_back(struct worker *w)
{
	struct symbols *s = w->symbols;
	struct worker *other = s->worker;

	w->news = SYMBOLS_ANSWER;
	w->back_ns = os_now_ns();
	w->state = other && other->number < w->number ? WORKER_ENDS : WORKER_AT_WORK;
	if (w->state == WORKER_ENDS)
		return;
	if (other)
		other->state = WORKER_ENDS;
	os_cond_broadcast(s->work);
	w->still = 0;
	w->was_raised = true;                /* or not: its priority must be set anyway */
	s->worker = w;
}

bool worker_enter(struct worker *w, struct spot to)
{
	struct symbols *s = w->symbols;
	bool is_free = true;
	unsigned i;

	to.since_ns = os_now_ns();
	os_mutex_lock(s->lock);
	if (w->state == WORKER_HANGS)
		come_back(w);
	for (i = 0; is_free && i < WORKERS_MAX; i++)
		is_free = !s->workers[i] || s->workers[i]->state != WORKER_HANGS ||
			  !is_same_spot(&s->workers[i]->at, &to);
	move_to(w, to);
	os_mutex_unlock(s->lock);
	return is_free;
}

static bool enter_object(void *ctx, struct object *object, uint64_t file_system)
{
	return worker_enter(ctx, (struct spot){.object = object, .file_system = file_system});
}

/* ---- at work --------------------------------------------------------------------------------- */

/*
 * Stay out of the way of the recorded programs, except while an incident waits: on a machine busy
 * with ten programs, nice 10 gets so little that names come too late. A waiting caller hurries the
 * worker, which may be in the middle of a large program's index (27 s at a load of 100). This
 * happens under the lock, so that the worker does not lower itself afterwards.
 */
static void take_priority(struct worker *w)
{
	bool is_awaited = w->symbols->waiters != NULL;

	if (is_awaited != w->is_awaited || w->was_raised)
		os_thread_priority(is_awaited ? OS_PRIORITY_HIGH : OS_PRIORITY_LOW);
	w->is_awaited = is_awaited;
	w->was_raised = false;
}

/* Its numbers are everybody's, but for the failures, which add up. */
static void publish_use(struct worker *w)
{
	struct symbols_use *use = &w->symbols->use;
	uint64_t of_others = use->failed - w->failed;

	cache_use(w->cache, use);
	w->failed = use->failed;
	use->failed += of_others;
}

static void worker_main(void *ctx)
{
	struct worker *w = ctx;
	struct symbols *s = w->symbols;
	uint64_t rested_ns = os_now_ns();
	struct request r;
	unsigned turn = 0;

	os_rights_raise();
	os_mutex_lock(s->lock);
	os_thread_priority(s->env.lowest ? OS_PRIORITY_LOWEST : OS_PRIORITY_LOW);
	while (!s->ending && w->state != WORKER_ENDS) {
		/* Those that hang keep their caches. */
		size_t max_bytes = s->cache_max_bytes / (1 + count_hanging(s));
		bool due = put_off_is_due(w), some;

		if (!s->env.lowest)
			take_priority(w);
		some = !due && request_next(s, &turn, w->nput_off != 0, &r);
		due |= !some && w->nput_off;
		if (!some && !due && !cache_has_idle_work(w->cache)) {
			s->waiting++;
			os_cond_wait(s->work, s->lock,
				     s->use.files_open ? REST_EVERY_NS : UINT64_MAX);
			s->waiting--;
		}
		os_mutex_unlock(s->lock);
		cache_set_max(w->cache, max_bytes);
		if (due) {
			name_put_off(w);
		} else if (some) {
			request_handle(w, &r);
			request_release(&r);
		} else {
			cache_idle(w->cache);
		}
		if (os_now_ns() - rested_ns >= REST_EVERY_NS) {
			rested_ns = os_now_ns();
			cache_rest(w->cache, rested_ns);
		}
		os_mutex_lock(s->lock);
		move_to(w, (struct spot){0});
		if (w->state == WORKER_HANGS && !s->ending)
			come_back(w);
		if (w->state == WORKER_AT_WORK)
			publish_use(w);
	}
	w->state = WORKER_ENDS;
	if (!s->ending) {
		give_put_off_back(w);
		os_cond_broadcast(s->work);
		os_mutex_unlock(s->lock);
		cache_free(w->cache);
		w->cache = NULL;
		os_mutex_lock(s->lock);
		move_to(w, (struct spot){0});
	}
	w->ended = true;
	os_mutex_unlock(s->lock);
}

/* Under the lock, which the new thread needs first. */
int worker_start(struct symbols *s, struct err *err)
{
	struct worker *w, **place = s->workers;
	int rc = 0;

	while (place < s->workers + WORKERS_MAX && *place)
		place++;
	if (place == s->workers + WORKERS_MAX)
		return ERR_LIMIT;
	w = calloc(1, sizeof(*w));
	if (w) {
		w->symbols = s;
		w->number = s->nworkers;
		w->env = s->env;
		if (w->number)
			w->env.dbghelp = NULL;
		w->env.sandbox = s->env.sandboxed ? sandbox_new() : NULL;
		w->env.take = take_known;
		w->env.take_ctx = w;
		w->gate = (struct cache_gate){enter_object, w};
		w->cache = cache_new(&w->env, &w->gate, s->log);
	}
	if (!w || !w->cache)
		rc = err_memory(err, "for the symbol worker");
	if (!rc)
		rc = os_thread_start("symbols", worker_main, w, &w->thread, err);
	if (rc) {
		cache_free(w ? w->cache : NULL);
		sandbox_free(w ? w->env.sandbox : NULL);
		free(w);
		return rc;
	}
	s->nworkers++;
	*place = s->worker = w;
	return 0;
}

/* ---- workers that hang ----------------------------------------------------------------------- */

/* No progress at all: neither one that works, however slowly, nor one that waits for a CPU. */
static bool has_not_moved(const struct symbols *s, struct worker *w)
{
	uint64_t progress = 0, of_sandbox = 0;
	bool waits = (w->at.object || w->at.process) && os_thread_waits(w->thread, &progress) &&
		     sandbox_waits(w->env.sandbox, &of_sandbox);

	progress += of_sandbox;
	w->still = waits && progress == w->progress ? w->still + 1 : 0;
	w->progress = progress;
	return w->still >= (s->env.dbghelp ? STILL_LOOKS_DBGHELP : STILL_LOOKS);
}

static void put_what(const struct spot *at, char *out, size_t n)
{
	const struct object_key *key = at->object ? &at->object->key : NULL;

	if (at->process)
		snprintf(out, n, "process %" PRIu32 " (%s)", at->process->pid,
			 process_name(at->process));
	else if (key->kind == OBJECT_JIT)
		snprintf(out, n, "the perf map of process %" PRIu32, key->pid);
	else
		snprintf(out, n, "the file system of %s", key->path);
}

/* Go on without it. It keeps what it uses. */
static void leave_behind(struct symbols *s, struct worker *w)
{
	w->state = WORKER_HANGS;
	w->news = SYMBOLS_HANG;
	w->hung_ns = w->at.since_ns;
	give_put_off_back(w);
	put_what(&w->at, w->hung_at, sizeof(w->hung_at));
	s->worker = NULL;
}

static void put_hang(const struct worker *w, uint64_t now_ns, char *out, size_t n)
{
	char waits[OS_THREAD_WAITS_BYTES];

	os_thread_state_text(w->thread, waits);
	snprintf(out, n, "%s has not answered for %.1f s: the thread that reads names there %s; "
		 "until it answers, %s", w->hung_at,
		 now_ns > w->hung_ns ? (double)(now_ns - w->hung_ns) / 1e9 : 0, waits,
		 w->symbols->worker ? "what is there has no names" : "nothing gets a name");
}

static enum symbols_news tell(struct worker *w, uint64_t now_ns, char *out, size_t n)
{
	enum symbols_news news = w->news;

	w->news = SYMBOLS_NO_NEWS;
	if (news == SYMBOLS_HANG)
		put_hang(w, now_ns, out, n);
	else if (news == SYMBOLS_ANSWER)
		snprintf(out, n, "%s answers again, after %.1f s", w->hung_at,
			 (double)(w->back_ns - w->hung_ns) / 1e9);
	return news;
}

static enum symbols_news tell_next(struct symbols *s, uint64_t now_ns, char *out, size_t n)
{
	enum symbols_news news = SYMBOLS_NO_NEWS;
	unsigned i;

	for (i = 0; i < WORKERS_MAX && !news; i++)
		news = s->workers[i] ? tell(s->workers[i], now_ns, out, n) : news;
	return news;
}

/* What has not been told, because nobody has looked since. */
static void log_news(struct symbols *s)
{
	enum symbols_news news;
	char text[SYMBOLS_NEWS_BYTES];

	while ((news = tell_next(s, os_now_ns(), text, sizeof(text))) != SYMBOLS_NO_NEWS)
		log_line(s->log, news == SYMBOLS_HANG ? LOG_WARN : LOG_INFO, "%s", text);
}

static void free_worker(struct symbols *s, unsigned i)
{
	struct worker *w = s->workers[i];
	uint64_t rss_bytes = 0;

	if (!w)
		return;
	cache_free(w->cache);
	sandbox_add_usage(w->env.sandbox, &s->ended_cpu_ns, &rss_bytes);
	sandbox_free(w->env.sandbox);
	move_to(w, (struct spot){0});
	give_put_off_back(w);
	free(w);
	s->workers[i] = NULL;
}

static void free_ended(struct symbols *s)
{
	unsigned i;

	for (i = 0; i < WORKERS_MAX; i++) {
		if (!s->workers[i] || !s->workers[i]->ended)
			continue;
		log_news(s);
		os_thread_join(s->workers[i]->thread);
		free_worker(s, i);
	}
}

void workers_look(struct symbols *s, uint64_t now_ns)
{
	if (now_ns < s->looked_ns + LOOK_EVERY_NS || s->ending)
		return;
	s->looked_ns = now_ns;
	free_ended(s);
	if (s->worker && has_not_moved(s, s->worker))
		leave_behind(s, s->worker);
	if (!s->worker)
		worker_start(s, NULL);
}

enum symbols_news symbols_look(struct symbols *s, uint64_t now_ns, char *out, size_t n)
{
	enum symbols_news news;

	os_mutex_lock(s->lock);
	news = tell_next(s, now_ns, out, n);
	if (!news) {
		workers_look(s, now_ns);
		news = tell_next(s, now_ns, out, n);
	}
	os_mutex_unlock(s->lock);
	return news;
}

bool symbols_hang(struct symbols *s, uint64_t now_ns, char *out, size_t n)
{
	const struct worker *hangs = NULL;
	unsigned i;

	os_mutex_lock(s->lock);
	for (i = 0; i < WORKERS_MAX; i++)
		if (s->workers[i] && s->workers[i]->state == WORKER_HANGS)
			hangs = s->workers[i];
	if (hangs)
		put_hang(hangs, now_ns, out, n);
	os_mutex_unlock(s->lock);
	return hangs != NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

bool workers_end(struct symbols *s)
{
	struct os_thread *ends[WORKERS_MAX];
	unsigned i, n = 0;
	bool all = true;

	os_mutex_lock(s->lock);
	log_news(s);
	s->ending = true;
	for (i = 0; i < WORKERS_MAX; i++) {
		if (s->workers[i] && s->workers[i]->state != WORKER_HANGS) {
			ends[n++] = s->workers[i]->thread;
		} else if (s->workers[i]) {
			os_thread_leave(s->workers[i]->thread);
			all = false;
		}
	}
	os_cond_broadcast(s->work);
	os_mutex_unlock(s->lock);
	for (i = 0; i < n; i++)
		all = os_thread_join_within(ends[i], END_WAIT_NS) && all;
	return all;
}

void workers_free(struct symbols *s)
{
	unsigned i;

	for (i = 0; i < WORKERS_MAX; i++)
		free_worker(s, i);
}
