#include "symbol/symbol.h"

#include "base/os.h"
#include "symbol/cache.h"
#include "symbol/dbghelp.h"
#include "symbol/demangle.h"
#include "symbol/reader.h"
#include "symbol/symbol_open.h"

#include <stdlib.h>
#include <string.h>

#define REST_EVERY_NS NS_PER_SEC
#define END_WAIT_NS (5 * NS_PER_SEC)

/* How many already named frames one turn skips under the lock, nanoseconds each. */
enum { SKIP_MAX = 1024 };

/* ---- requests -------------------------------------------------------------------------------- */

enum request_kind {
	REQUEST_NONE,                  /* a turn that only skipped named frames: nothing to do */
	REQUEST_FRAME,                 /* name it */
	REQUEST_OBJECT,                /* open it; pid maps it */
	REQUEST_PROCESS,               /* read its command line */
};

/* The target is referenced while the request exists. 16 bytes: the queues hold many. */
struct request {
	union {
		struct frame *frame;
		struct object *object;
		struct process *process;
	} at;
	uint32_t kind, pid;
};

struct fifo {
	struct request *items;
	uint32_t first, count, max;
};

/* A waiting caller; it lives on the caller's stack, in the list only while it waits. */
struct waiter {
	struct frame *const *frames;
	uint32_t n, next;
	bool done;
	struct waiter *link;
};

struct symbols {
	struct frames *frames;
	struct symbol_env env;
	struct buf path;               /* env's */
	struct os_thread *thread;
	struct cache *cache;           /* used by the worker only */

	struct os_mutex *lock;         /* guards everything below */
	struct os_cond *work;          /* there is a request, or the end */
	struct os_cond *settled;       /* a waiter is done */
	struct fifo urgent;            /* objects and processes, which may end soon */
	struct fifo wanted;            /* frames */
	struct waiter *waiters;
	bool ending, waiting;
	size_t cache_max_bytes;
	bool is_awaited;               /* the worker's priority is up, because somebody waits */
	bool was_raised;        /* raised by another thread: the worker must still raise itself */
	struct symbols_use use;   /* `queued` is computed */
};

static bool fifo_take(struct fifo *f, struct request *out)
{
	if (!f->count)
		return false;
	*out = f->items[f->first];
	f->first = (f->first + 1) % f->max;
	f->count--;
	return true;
}

static void request_release(const struct request *r)
{
	switch (r->kind) {
	case REQUEST_FRAME:
		frame_unref(r->at.frame);
		break;
	case REQUEST_OBJECT:
		object_drop(r->at.object, 0);     /* its source dropped it long ago */
		break;
	case REQUEST_PROCESS:
		process_unref(r->at.process);
		break;
	}
}

/* Takes the request; a full queue drops it. */
static void enqueue(struct symbols *s, struct fifo *f, const struct request *r)
{
	bool full, wake;

	os_mutex_lock(s->lock);
	full = f->count == f->max;
	if (full)
		s->use.dropped++;
	else
		f->items[(f->first + f->count++) % f->max] = *r;
	wake = s->waiting;
	os_mutex_unlock(s->lock);
	if (full)
		request_release(r);
	else if (wake)
		os_cond_signal(s->work);
}

void symbols_want(struct symbols *s, struct frame *frame)
{
	struct request r = {.at.frame = frame, .kind = REQUEST_FRAME};

	if (frame->object->key.kind == OBJECT_UNKNOWN)
		return;
	frame_ref(frame);
	enqueue(s, &s->wanted, &r);
}

void symbols_prefetch(struct symbols *s, struct object *object, uint32_t pid)
{
	struct request r = {.at.object = object, .kind = REQUEST_OBJECT, .pid = pid};

	object_ref(object);
	enqueue(s, &s->urgent, &r);
}

void symbols_process(struct symbols *s, struct process *process)
{
	struct request r = {.at.process = process, .kind = REQUEST_PROCESS};

	if (s->env.foreign)
		return;
	process_ref(process);
	enqueue(s, &s->urgent, &r);
}

/* ---- the worker ------------------------------------------------------------------------------ */

static bool has_name(struct frame *frame)
{
	return atomic_load(&frame->function) != NULL;
}

static void name_frame(struct symbols *s, struct frame *frame)
{
	char readable[FUNCTION_NAME_MAX + 1];
	struct symbol symbol;
	bool first, named;

	if (has_name(frame))
		return;
	named = cache_find(s->cache, frame->object, frame->offset, &symbol);
	if (named && demangle(symbol.name, readable, sizeof(readable)))
		named = !frame_set_function(s->frames, frame, symbol.offset, readable, symbol.name,
					    symbol.module);
	else if (named)
		named = !frame_set_function(s->frames, frame, symbol.offset, symbol.name, NULL,
					    symbol.module);
	first = !atomic_exchange(&frame->asked, true);
	os_mutex_lock(s->lock);
	s->use.named += named;
	s->use.unnamed += !named && first;
	os_mutex_unlock(s->lock);
}

/*
 * A process that has ended, or a kernel thread, gets none. /proc shows what the pid runs now, which
 * may already be the next exec: the short name must still be the one that this process had.
 */
void symbols_read_command_line(struct process *process)
{
	struct buf text = {.max_bytes = PROCESS_CMDLINE_MAX};
	const char *comm = atomic_load(&process->comm);
	char comm_now[16];

	if (comm && !atomic_load(&process->cmdline) &&
	    !os_process_arguments(process->pid, &text, NULL) && text.len &&
	    symbol_comm(process->pid, comm_now) && !strcmp(comm, comm_now))
		process_set_cmdline(process, buf_text(&text));
	buf_free(&text);
}

static void handle_request(struct symbols *s, const struct request *r)
{
	switch (r->kind) {
	case REQUEST_FRAME:
		name_frame(s, r->at.frame);
		break;
	case REQUEST_OBJECT:
		cache_open(s->cache, r->at.object, r->pid);
		break;
	case REQUEST_PROCESS:
		symbols_read_command_line(r->at.process);
		break;
	}
}

/*
 * The next frame without a name of the first waiter; a waiter without such frames is done. The
 * frame is referenced, because its waiter may time out while the worker is busy with it. Returns
 * true with REQUEST_NONE when there is a waiter, but no frame to name in this turn.
 */
static bool waiter_take(struct symbols *s, struct request *out)
{
	struct waiter *w = s->waiters;
	unsigned skipped;

	if (!w)
		return false;
	for (skipped = 0; w->next < w->n && skipped < SKIP_MAX; skipped++) {
		struct frame *frame = w->frames[w->next++];

		if (has_name(frame))
			continue;
		frame_ref(frame);
		out->at.frame = frame;
		out->kind = REQUEST_FRAME;
		return true;
	}
	if (w->next == w->n) {
		w->done = true;
		s->waiters = w->link;
		os_cond_broadcast(s->settled);
	}
	return true;
}

/* Take one request of each kind in turn, so that no fork storm and no waiter starves the others. */
static bool next_request(struct symbols *s, unsigned *turn, struct request *out)
{
	unsigned i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < 3; i++) {
		unsigned kind = (*turn)++ % 3;

		if (kind == 1 ? waiter_take(s, out)
			      : fifo_take(kind == 0 ? &s->urgent : &s->wanted, out))
			return true;
	}
	return false;
}

/*
 * Stay out of the way of the recorded programs, except while an incident waits: on a machine busy
 * with ten programs, nice 10 gets so little that names come too late. A waiting caller hurries the
 * worker, which may be in the middle of a large program's index (27 s at a load of 100). This
 * happens under the lock, so that the worker does not lower itself afterwards.
 */
static void take_priority(struct symbols *s)
{
	bool is_awaited = s->waiters != NULL;

	if (is_awaited != s->is_awaited || s->was_raised)
		os_thread_priority(is_awaited ? OS_PRIORITY_HIGH : OS_PRIORITY_LOW);
	s->is_awaited = is_awaited;
	s->was_raised = false;
}

static void worker_main(void *ctx)
{
	struct symbols *s = ctx;
	uint64_t rested_ns = os_now_ns();
	struct request r;
	unsigned turn = 0;

	os_rights_raise();
	os_mutex_lock(s->lock);
	os_thread_priority(s->env.lowest ? OS_PRIORITY_LOWEST : OS_PRIORITY_LOW);
	while (!s->ending) {
		size_t max_bytes = s->cache_max_bytes;
		bool some;

		if (!s->env.lowest)
			take_priority(s);
		some = next_request(s, &turn, &r);
		if (!some && !cache_has_idle_work(s->cache)) {
			s->waiting = true;
			os_cond_wait(s->work, s->lock, REST_EVERY_NS);
			s->waiting = false;
		}
		os_mutex_unlock(s->lock);
		cache_set_max(s->cache, max_bytes);
		if (some) {
			handle_request(s, &r);
			request_release(&r);
		} else {
			cache_idle(s->cache);
		}
		if (os_now_ns() - rested_ns >= REST_EVERY_NS) {
			rested_ns = os_now_ns();
			cache_rest(s->cache, rested_ns);
		}
		os_mutex_lock(s->lock);
		cache_use(s->cache, &s->use);
	}
	os_mutex_unlock(s->lock);
}

/* ---- settling -------------------------------------------------------------------------------- */

static void waiter_remove(struct symbols *s, const struct waiter *w)
{
	struct waiter **at = &s->waiters;

	while (*at && *at != w)
		at = &(*at)->link;
	if (*at)
		*at = w->link;
}

uint32_t symbols_settle(struct symbols *s, struct frame *const *frames, uint32_t n,
			uint64_t timeout_ns)
{
	struct waiter self = {.frames = frames, .n = n};
	uint64_t start_ns = os_now_ns(), spent_ns = 0;
	struct waiter **last = &s->waiters;
	uint32_t i, unnamed = 0;

	os_mutex_lock(s->lock);
	while (*last)
		last = &(*last)->link;
	*last = &self;
	if (!s->env.lowest) {
		os_thread_hurry(s->thread);
		s->was_raised = true;
	}
	os_cond_signal(s->work);
	while (!self.done && spent_ns < timeout_ns) {
		uint64_t left_ns = timeout_ns - spent_ns;

		os_cond_wait(s->settled, s->lock, left_ns < NS_PER_SEC ? left_ns : NS_PER_SEC);
		spent_ns = os_now_ns() - start_ns;
	}
	if (!self.done)
		waiter_remove(s, &self);
	os_mutex_unlock(s->lock);
	for (i = 0; i < n; i++)
		unnamed += !has_name(frames[i]);
	return unnamed;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The user's setting comes before the machine's. */
static int open_env(struct symbols *s, const struct symbol_env *env, struct err *err)
{
	const char *more = os_env("_NT_SYMBOL_PATH");

	s->env = *env;
	if (env->path)
		buf_puts(&s->path, env->path);
	if (more && *more)
		buf_printf(&s->path, "%s%s", s->path.len ? ";" : "", more);
	if (s->path.len)
		s->env.path = buf_text(&s->path);
	s->env.dbghelp = dbghelp_new(s->env.path);
	return buf_check(&s->path, "the symbol path", err);
}

int symbols_open(struct frames *frames, const struct symbol_env *env, struct log *log,
		 struct symbols **out, struct err *err)
{
	struct symbols *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return err_memory(err, "for the symbol worker");
	s->frames = frames;
	rc = open_env(s, env, err);
	s->cache_max_bytes = SYMBOL_CACHE_BYTES;
	s->lock = os_mutex_new();
	s->work = os_cond_new();
	s->settled = os_cond_new();
	s->cache = cache_new(&s->env, log);
	s->urgent.max = SYMBOL_URGENT_MAX;
	s->wanted.max = SYMBOL_QUEUE_MAX;
	s->urgent.items = calloc(SYMBOL_URGENT_MAX, sizeof(*s->urgent.items));
	s->wanted.items = calloc(SYMBOL_QUEUE_MAX, sizeof(*s->wanted.items));
	if (!rc && (!s->lock || !s->work || !s->settled || !s->cache || !s->urgent.items ||
		    !s->wanted.items))
		rc = err_memory(err, "for the symbol worker");
	if (!rc)
		rc = os_thread_start("symbols", worker_main, s, &s->thread, err);
	if (rc)
		symbols_close(s);
	else
		*out = s;
	return rc;
}

static void fifo_free(struct fifo *f)
{
	struct request r;

	while (fifo_take(f, &r))
		request_release(&r);
	free(f->items);
}

bool symbols_close(struct symbols *s)
{
	if (!s)
		return true;
	if (s->thread) {
		os_mutex_lock(s->lock);
		s->ending = true;
		os_cond_signal(s->work);
		os_mutex_unlock(s->lock);
		/* It may hang in a file system; then everything it uses is leaked on purpose. */
		if (!os_thread_join_within(s->thread, END_WAIT_NS))
			return false;
	}
	fifo_free(&s->urgent);
	fifo_free(&s->wanted);
	cache_free(s->cache);
	dbghelp_free(s->env.dbghelp);
	buf_free(&s->path);
	os_cond_free(s->settled);
	os_cond_free(s->work);
	os_mutex_free(s->lock);
	free(s);
	return true;
}

void symbols_set_max(struct symbols *s, size_t cache_bytes)
{
	os_mutex_lock(s->lock);
	s->cache_max_bytes = cache_bytes;
	os_cond_signal(s->work);
	os_mutex_unlock(s->lock);
}

void symbols_use(struct symbols *s, struct symbols_use *out)
{
	os_mutex_lock(s->lock);
	*out = s->use;
	out->cache_max_bytes = s->cache_max_bytes;
	out->queued = s->urgent.count + s->wanted.count;
	os_mutex_unlock(s->lock);
}
