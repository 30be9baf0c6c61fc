#include "symbol/symbol.h"

#include "base/os.h"
#include "model/home.h"
#include "symbol/demangle.h"
#include "symbol/dbghelp.h"
#include "symbol/otel.h"
#include "symbol/sandbox.h"
#include "symbol/symbol_open.h"
#include "symbol/symbol_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_SLACK_NS (100 * NS_PER_MS)      /* /proc has ticks of 10 ms */

enum { ENOUGH = 64 };                  /* requests that begin by themselves */
enum { SKIP_MAX = 1024 };              /* named frames one turn skips under the lock, ns each */
enum { SERVICE_AT = 3 };               /* the reading of a home that first asks for its service */

/* ---- requests -------------------------------------------------------------------------------- */

static bool fifo_take(struct fifo *f, struct request *out)
{
	if (!f->count)
		return false;
	*out = f->items[f->first];
	f->first = (f->first + 1) % f->max;
	f->count--;
	return true;
}

void request_release(const struct request *r)
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

/* Takes the request; a full queue drops it. Under the lock. */
static void fifo_put(struct symbols *s, struct fifo *f, const struct request *r)
{
	if (f->count < f->max) {
		f->items[(f->first + f->count++) % f->max] = *r;
		return;
	}
	s->use.dropped++;
	request_release(r);
}

static void enqueue(struct symbols *s, struct fifo *f, const struct request *r)
{
	bool many;

	os_mutex_lock(s->lock);
	fifo_put(s, f, r);
	many = s->waiting && f->count % ENOUGH == 0;
	os_mutex_unlock(s->lock);
	if (many)
		os_cond_signal(s->work);
}

void symbols_begin(struct symbols *s)
{
	bool wakes;

	os_mutex_lock(s->lock);
	wakes = s->waiting && (s->urgent.count || s->wanted.count);
	os_mutex_unlock(s->lock);
	if (wakes)
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

/* ---- handling them --------------------------------------------------------------------------- */

static bool has_name(struct frame *frame)
{
	return atomic_load(&frame->function) != NULL;
}

static void count_named(struct symbols *s, struct frame *frame, bool named)
{
	bool first = !atomic_exchange(&frame->asked, true);

	os_mutex_lock(s->lock);
	s->use.named += named;
	s->use.unnamed += !named && first;
	os_mutex_unlock(s->lock);
}

/* A function that has a name needs no reading and no demangling: most frames are of such. */
bool take_known(void *ctx, uint64_t start)
{
	const struct worker *w = ctx;

	return frame_take_function(w->symbols->frames, w->naming, start);
}

/* returns  false when there is no room or no memory */
static bool put_off(struct worker *w, struct frame *frame, const struct symbol *symbol)
{
	struct symbols *s = w->symbols;
	size_t n = strlen(symbol->name) + 1;
	bool fits;

	os_mutex_lock(s->lock);
	fits = w->nput_off < SANDBOX_NAMES && w->put_off_names.len + n <= SANDBOX_NAMES_BYTES &&
	       buf_reserve(&w->put_off_names, n);
	if (fits) {
		buf_put(&w->put_off_names, symbol->name, n);
		if (!w->nput_off)
			w->put_off_ns = os_now_ns();
		frame_ref(frame);
		w->put_off[w->nput_off++] = (struct put_off){frame, symbol->offset};
	} else if (!w->nput_off) {
		buf_free(&w->put_off_names);         /* it has failed */
	}
	os_mutex_unlock(s->lock);
	return fits;
}

bool put_off_is_due(const struct worker *w)
{
	return w->nput_off == SANDBOX_NAMES ||
	       w->put_off_names.len + DEMANGLE_MAX_BYTES + 1 > SANDBOX_NAMES_BYTES ||
	       (w->nput_off && os_now_ns() - w->put_off_ns >= PUT_OFF_NS);
}

void name_put_off(struct worker *w)
{
	struct symbols *s = w->symbols;
	struct put_off list[SANDBOX_NAMES];
	struct buf raw, names = {0};
	const char *from, *to;
	uint32_t i, n;

	os_mutex_lock(s->lock);
	n = w->nput_off;
	memcpy(list, w->put_off, n * sizeof(*list));
	raw = w->put_off_names;
	w->nput_off = 0;
	w->put_off_names = (struct buf){0};
	os_mutex_unlock(s->lock);
	sandbox_demangle(w->env.sandbox, &raw, n, &names);
	from = buf_text(&raw);
	to = buf_text(&names);
	for (i = 0; i < n; i++) {
		bool is_readable = to < buf_text(&names) + names.len && *to;

		count_named(s, list[i].frame,
			    !frame_set_function(s->frames, list[i].frame, list[i].offset,
						is_readable ? to : from, from, NULL));
		frame_unref(list[i].frame);
		from += strlen(from) + 1;
		to += to < buf_text(&names) + names.len ? strlen(to) + 1 : 0;
	}
	buf_free(&raw);
	buf_free(&names);
}

void give_put_off_back(struct worker *w)
{
	struct request r = {.kind = REQUEST_FRAME};
	uint32_t i;

	for (i = 0; i < w->nput_off; i++) {
		r.at.frame = w->put_off[i].frame;
		fifo_put(w->symbols, &w->symbols->wanted, &r);
	}
	w->nput_off = 0;
	buf_free(&w->put_off_names);
}

static bool make_readable(struct worker *w, const char *raw, char *out, size_t n)
{
	struct buf one = {0}, text = {0};

	if (!sandbox_takes(w->env.sandbox, raw))
		return demangle(raw, out, n);
	buf_put(&one, raw, strlen(raw) + 1);
	if (!one.failed)
		sandbox_demangle(w->env.sandbox, &one, 1, &text);
	snprintf(out, n, "%s", buf_text(&text));
	buf_free(&one);
	buf_free(&text);
	return *out != '\0';
}

static void name_frame(struct worker *w, struct frame *frame)
{
	struct symbols *s = w->symbols;
	char readable[FUNCTION_NAME_MAX + 1];
	struct symbol symbol = {.raw_name = NULL};
	bool named;

	if (has_name(frame))
		return;
	w->naming = frame;
	named = cache_find(w->cache, frame->object, frame->offset, &symbol);
	if (named && symbol.name && !symbol.module &&
	    sandbox_takes(w->env.sandbox, symbol.name) && put_off(w, frame, &symbol))
		return;
	if (named && symbol.name && make_readable(w, symbol.name, readable, sizeof(readable)))
		named = !frame_set_function(s->frames, frame, symbol.offset, readable, symbol.name,
					    symbol.module);
	else if (named && symbol.name)
		named = !frame_set_function(s->frames, frame, symbol.offset, symbol.name,
					    symbol.raw_name, symbol.module);
	count_named(s, frame, named);
}

/*
 * The first time its short name must be the one that it had, so that it is not the next process
 * with this pid; later it must be the same program with any name.
 */
static bool is_still(struct process *process, const struct symbol_process *now)
{
	const char *comm = atomic_load(&process->comm);
	uint64_t known = 0;

	if (!now->identity || !comm)
		return false;
	if (atomic_load(&process->identity))
		return atomic_load(&process->identity) == now->identity;
	return !strcmp(comm, now->comm) &&
	       atomic_compare_exchange_strong(&process->identity, &known, now->identity);
}

/*
 * For where a process lives, which does not depend on the program: one that gave itself another
 * name before it was looked at is known by its start.
 */
static bool is_still_there(struct process *process, const struct symbol_process *now)
{
	uint64_t start_ns = process->start_ns;

	return is_still(process, now) ||
	       (now->start_ns && now->start_ns + START_SLACK_NS > start_ns &&
		now->start_ns < start_ns + START_SLACK_NS);
}

/*
 * A home is read anew each time unless it is known, but for its service: at the 3rd, 6th, 12th,
 * 24th... time, and until it is found, as that takes the list of mappings, which may have many
 * thousands of lines.
 */
static bool asks_for_service(uint32_t nread, const char *now)
{
	uint32_t n = nread / SERVICE_AT;

	return n && nread % SERVICE_AT == 0 && (n & (n - 1)) == 0 && !now[home_cgroup_bytes(now)];
}

/* Append its home as it is now. returns  false when it is known already */
static bool read_home(struct process *process, struct buf *home)
{
	uint32_t nread = atomic_fetch_add(&process->nhomes_read, 1);
	const char *now = process_home(process);
	char service[HOME_PART_BYTES] = "";
	const bool asks = asks_for_service(nread, now);
	struct buf payload = {0};

	if (process_home_is_known(process) && !asks)
		return false;
	symbol_cgroup(process->pid, home);
	if (asks)
		symbol_otel_context(process->pid, OTEL_PAYLOAD_MAX, &payload);
	if (!otel_service((const uint8_t *)payload.data, payload.len, service, sizeof(service)) &&
	    now[home_cgroup_bytes(now)])
		snprintf(service, sizeof(service), "%s", now + home_cgroup_bytes(now) + 1);
	if (*service)
		buf_printf(home, "\n%s", service);
	buf_free(&payload);
	return !home->failed;
}

/*
 * A process that has ended, or a kernel thread, gets no command line. /proc shows what the pid runs
 * now, which may already be the next exec: the short name must still be the one that this process
 * had. So /proc/PID/stat is read last, and tells of both texts whose they are.
 */
static void read_facts(struct process *process)
{
	struct buf home = {.max_bytes = HOME_TEXT_MAX}, line = {.max_bytes = PROCESS_CMDLINE_MAX};
	const char *comm = atomic_load(&process->comm);
	const uint64_t read_ns = os_now_ns();
	struct symbol_process now;
	bool has_home;
	int rc = 0;

	if (comm && !atomic_load(&process->cmdline))
		rc = os_process_arguments(process->pid, &line, NULL);
	if (rc)
		buf_free(&line);
	if (rc == ERR_NOT_FOUND)             /* it has ended */
		return;
	has_home = read_home(process, &home);
	if ((line.len || has_home) && symbol_process_now(process->pid, &now)) {
		if (line.len && !strcmp(comm, now.comm))
			process_set_cmdline(process, buf_text(&line));
		if (has_home && is_still_there(process, &now))
			process_set_home(process, buf_text(&home), read_ns);
	}
	buf_free(&line);
	buf_free(&home);
}

void request_handle(struct worker *w, const struct request *r)
{
	switch (r->kind) {
	case REQUEST_FRAME:
		name_frame(w, r->at.frame);
		break;
	case REQUEST_OBJECT:
		cache_open(w->cache, r->at.object, r->pid);
		break;
	case REQUEST_PROCESS:
		if (worker_enter(w, (struct spot){.process = r->at.process}))
			read_facts(r->at.process);
		break;
	}
}

/*
 * The next frame without a name of the first waiter; a waiter without such frames is done. The
 * frame is referenced, because its waiter may time out while the worker is busy with it. Returns
 * true with REQUEST_NONE when there is a waiter, but no frame to name in this turn.
 */
static bool waiter_take(struct symbols *s, bool put_off, struct request *out)
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
	if (w->next == w->n && put_off)
		return false;
	if (w->next == w->n) {
		w->done = true;
		s->waiters = w->link;
		os_cond_broadcast(s->settled);
	}
	return true;
}

/* Take one request of each kind in turn, so that no fork storm and no waiter starves the others. */
bool request_next(struct symbols *s, unsigned *turn, bool put_off, struct request *out)
{
	unsigned i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < 3; i++) {
		unsigned kind = (*turn)++ % 3;

		if (kind == 1 ? waiter_take(s, put_off, out)
			      : fifo_take(kind == 0 ? &s->urgent : &s->wanted, out))
			return true;
	}
	return false;
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
	if (s->worker && !s->env.lowest) {
		os_thread_hurry(s->worker->thread);
		sandbox_hurry(s->worker->env.sandbox);
		s->worker->was_raised = true;
	}
	os_cond_signal(s->work);
	while (!self.done && s->worker && spent_ns < timeout_ns) {
		uint64_t left_ns = timeout_ns - spent_ns;

		os_cond_wait(s->settled, s->lock,
			     left_ns < NS_PER_SEC ? left_ns : NS_PER_SEC);
		workers_look(s, os_now_ns());
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
	s->log = log;
	rc = open_env(s, env, err);
	s->cache_max_bytes = SYMBOL_CACHE_BYTES;
	s->lock = os_mutex_new();
	s->work = os_cond_new();
	s->settled = os_cond_new();
	s->urgent.max = SYMBOL_URGENT_MAX;
	s->wanted.max = SYMBOL_QUEUE_MAX;
	s->urgent.items = calloc(SYMBOL_URGENT_MAX, sizeof(*s->urgent.items));
	s->wanted.items = calloc(SYMBOL_QUEUE_MAX, sizeof(*s->wanted.items));
	if (!rc && (!s->lock || !s->work || !s->settled || !s->urgent.items || !s->wanted.items))
		rc = err_memory(err, "for the symbol worker");
	if (!rc) {
		os_mutex_lock(s->lock);
		rc = worker_start(s, err);
		os_mutex_unlock(s->lock);
	}
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
	/* What a thread that hangs uses is leaked on purpose. */
	if (s->lock && s->work && !workers_end(s))
		return false;
	workers_free(s);
	fifo_free(&s->urgent);
	fifo_free(&s->wanted);
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
	unsigned i;

	os_mutex_lock(s->lock);
	*out = s->use;
	out->cache_max_bytes = s->cache_max_bytes;
	out->queued = s->urgent.count + s->wanted.count;
	for (i = 0; i < WORKERS_MAX; i++)
		out->queued += s->workers[i] ? s->workers[i]->nput_off : 0;
	os_mutex_unlock(s->lock);
}

void symbols_sandbox_usage(struct symbols *s, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	unsigned i;

	os_mutex_lock(s->lock);
	*cpu_ns = s->ended_cpu_ns;
	*rss_bytes = 0;
	for (i = 0; i < WORKERS_MAX; i++)
		if (s->workers[i])
			sandbox_add_usage(s->workers[i]->env.sandbox, cpu_ns, rss_bytes);
	os_mutex_unlock(s->lock);
}
