/*
 * The source of .NET events on Linux, by EventPipe; programs need no preparation. When a rule needs
 * .NET events, every program gets a session with just those providers and keywords. Events have the
 * same names and fields as in ETW.
 *
 * Each program has a connection of its own, which never blocks and is read in portions by turns. It
 * is closed when the answer is late or malformed, and opened again after a while. Events arrive up
 * to 100 ms late, so they wait HOLD_NS and leave in time order.
 */
#include "base/os.h"
#include "source/dotnet/find_linux.h"
#include "source/dotnet/event_queue.h"
#include "source/dotnet/list.h"
#include "source/dotnet/session_linux.h"
#include "source/runtime/gc_counters.h"
#include "source/dotnet/nettrace_decode.h"
#include "source/runtime/pause_list.h"
#include "source/source.h"
#include "source/probe/throw_linux.h"
#include "source/host/tmp_wait_linux.h"
#include "source/probe/tracepoint_linux.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define SESSIONS_MAX 256u
#define ALIVE_NS (20 * NS_PER_MS)            /* between reads while events are queued */
#define COALESCE_NS (10 * NS_PER_MS)         /* from the first bytes until all are read */
/*
 * A program has its socket before it is ready. Of 15 programs (.NET 8) asked for their map at once,
 * one crashed; none of those asked for events did.
 */
#define SETTLE_NS (30 * NS_PER_MS)
#define SETTLE_MAP_NS (500 * NS_PER_MS)
#define HOLD_NS (200 * NS_PER_MS)            /* the engine waits for 250 ms */
#define FINISH_NS (500 * NS_PER_MS)          /* for programs to end their sessions */
#define CLR "Microsoft-Windows-DotNETRuntime"
#define CLR_KEYWORD_GC 1u
#define CLR_LEVEL 4

struct dotnet_source {
	struct source base;
	struct source_config cfg;
	struct dotnet_request request;
	struct dotnet_find find;
	struct dotnet_session *all[SESSIONS_MAX];
	uint32_t n;
	struct pollfd polled[SESSIONS_MAX + TMP_POLLED];
	struct tmp_wait wait;
	struct dotnet_queue queue;
	struct nettrace_decode *decode;
	struct gc_counters *counters;
	struct nettrace_shares shares;
	struct shares queue_shares;
	struct shares sessions;              /* how many of SESSIONS_MAX a user has */
	bool full_logged, crowded_logged;
	_Atomic bool stopping;
	atomic_uint_fast64_t events, lost;
	/* what exceeded shares, for the status */
	atomic_uint_fast64_t refused_kinds, refused_blocks;
	_Atomic bool crowded;
};

extern const struct source_ops dotnet_source;

/* ---- which providers ------------------------------------------------------------------------- */

/* Whether this names an EventSource or the runtime; other names are Windows' or the kernel's. */
static bool is_dotnet(const char *name)
{
	return !tracepoint_provider(name) && !throw_provider(name) && !strchr(name, ':') &&
	       *name != '{' && (*name == '*' || strchr(name, '-') || strchr(name, '.'));
}

/* IIS exists on Windows only, but the rule on requests names it besides ASP.NET Core. */
static bool is_iis(const char *name)
{
	return strcasecmp(name, "{DE4649C9-15E8-4FEA-9D85-1CDDA520C334}") == 0;
}

/* Programs know providers by name only. */
static const char *name_of(const char *name)
{
	return strcasecmp(name, "{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}") == 0 ||
			       strcasecmp(name, CLR) == 0
		       ? CLR
		       : name;
}

/* Several requests for one provider become one, with all keywords and the finest level. */
static void add_provider(struct dotnet_request *request, const char *name, uint64_t keywords,
			 uint32_t level)
{
	struct dotnet_provider *p;
	uint32_t i;

	name += *name == '*';
	for (i = 0; i < request->n && strcasecmp(request->names[i], name) != 0; i++)
		;
	if (i == DOTNET_PROVIDERS_MAX)
		return;
	p = &request->providers[i];
	if (i == request->n) {
		snprintf(request->names[i], sizeof(request->names[0]), "%s", name);
		p->name = request->names[i];
		request->n++;
	}
	p->keywords |= keywords;
	p->level = level > p->level ? level : p->level;
}

static void add_needs(struct dotnet_request *request, const struct needs *needs)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++) {
		const struct need_provider *p = &needs->providers[i];

		if (is_dotnet(name_of(p->name)))
			add_provider(request, name_of(p->name), p->keywords, p->level);
	}
	request->perf_map = needs->perf_maps;
	request->settle_ns = request->perf_map ? SETTLE_MAP_NS : SETTLE_NS;
	if (gc_counters_wanted(needs, GC_DOTNET))
		add_provider(request, CLR, CLR_KEYWORD_GC, CLR_LEVEL);
}

static int dotnet_check(const struct needs *needs, struct err *err)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++) {
		const char *name = name_of(needs->providers[i].name);

		if (throw_provider(name))
			return err_set(err, ERR_USAGE,
				       "a rule on C++ exceptions needs their type and a process: "
				       "StopOnException:TYPE;Process=NAME");
		if (!is_dotnet(name) && !tracepoint_provider(name) && !is_iis(name) &&
		    pause_provider(name) == PAUSE_PROVIDERS)
			return err_set(
				err, ERR_UNSUPPORTED,
				"no source on this system delivers events of %s, so a rule on them "
				"could never fire (write *%s for a .NET EventSource)",
				name, name);
	}
	return pause_check(needs, err);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_event(void *ctx, const struct event *e)
{
	struct dotnet_source *s = ctx;

	if (queue_put(s->cfg.queue, e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
}

static void deliver(void *ctx, const struct dotnet_queued *queued)
{
	struct dotnet_source *s = ctx;
	struct dotnet_session *session = queued->owner;
	struct process *process = dotnet_session_process(session, s->cfg.processes);
	struct event e;

	nettrace_decode_queued(s->decode, queued, dotnet_session_pointer_bytes(session), process,
			       dotnet_session_socket(session)->nested ? NULL : s->cfg.processes,
			       &e);
	put_event(s, &e);
	if (process)
		gc_counters_program(s->counters, process);
	gc_counters_event(s->counters, process ? process->pid : 0, &e);
	if (process)
		process_unref(process);
}

static void put_loss(struct dotnet_source *s, uint64_t n, uint64_t now_ns)
{
	struct event e = {
		.time_ns = now_ns, .kind = EVENT_LOST, .cpu = CPU_NONE, .stack = STACK_NONE,
		.name = loss_kind_text(LOSS_EVENTS), .value = (double)n,
	};

	if (!n)
		return;
	queue_put(s->cfg.queue, &e);
	atomic_fetch_add_explicit(&s->lost, n, memory_order_relaxed);
}

/* ---- programs -------------------------------------------------------------------------------- */

static bool has_room_for(struct dotnet_source *s, const struct dotnet_socket *socket)
{
	const struct dotnet_socket *other;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		other = dotnet_session_socket(s->all[i]);
		if (other->pid == socket->pid && other->key == socket->key)
			return false;
	}
	if (s->n == SESSIONS_MAX && !s->full_logged) {
		log_line(s->cfg.log, LOG_WARN,
			 "more than %u .NET programs run: events of the others are not recorded",
			 SESSIONS_MAX);
		s->full_logged = true;
	}
	return s->n < SESSIONS_MAX;
}

/* Whether its user has not too many; one of root or ours always finds room beside others'. */
static bool take_place(struct dotnet_source *s, const struct dotnet_socket *socket)
{
	struct share share = {.uid = socket->uid};

	if (shares_take(&s->sessions, &share, 1))
		return true;
	atomic_store(&s->crowded, true);
	if (!s->crowded_logged)
		log_line(s->cfg.log, LOG_WARN,
			 "user %u has too many .NET programs, as one of %u: events of further ones "
			 "of users with so many are not recorded",
			 socket->uid, SESSIONS_MAX);
	s->crowded_logged = true;
	return false;
}

static void leave_place(struct dotnet_source *s, uint32_t uid)
{
	struct share share = {.uid = uid, .used = 1};

	shares_give_back(&s->sessions, &share, 1);
}

static void add_session(void *ctx, const struct dotnet_socket *socket)
{
	struct dotnet_source *s = ctx;

	if (!has_room_for(s, socket) || !take_place(s, socket)) {
		if (socket->fd >= 0)
			close(socket->fd);
		return;
	}
	s->all[s->n] = dotnet_session_new(socket, &s->request, s->cfg.log);
	if (s->all[s->n])
		s->n++;
	else
		leave_place(s, socket->uid);
}

/* Free the sessions that have ended and have no queued events. */
static void free_ended(struct dotnet_source *s)
{
	uint32_t i;

	for (i = s->n; i--;) {
		if (!dotnet_session_is_over(s->all[i]))
			continue;
		gc_counters_gone(s->counters, dotnet_session_socket(s->all[i])->pid);
		leave_place(s, dotnet_session_socket(s->all[i])->uid);
		dotnet_session_free(s->all[i], s->cfg.processes);
		s->all[i] = s->all[--s->n];
	}
}

/* Wait until a session is ready or due, or until due_ns. */
static void wait_for_sessions(struct dotnet_source *s, uint64_t due_ns)
{
	uint64_t session_ns;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		dotnet_session_polled(s->all[i], &s->polled[i]);
		session_ns = dotnet_session_due_ns(s->all[i]);
		due_ns = session_ns < due_ns ? session_ns : due_ns;
	}
	tmp_wait(&s->wait, due_ns, s->find.watch, s->polled, s->n);
	if (s->wait.replaced)
		s->find.next_tmp_ns = 0;
	s->wait.replaced = false;
}

static void read_all(struct dotnet_source *s, uint64_t due_ns)
{
	uint64_t now_ns = os_now_ns();
	uint32_t i;

	if (s->queue.n) {
		wait_for_sessions(s, due_ns < now_ns + ALIVE_NS ? due_ns : now_ns + ALIVE_NS);
	} else {
		/* Events that arrive meanwhile leave HOLD_NS after they happened, or later. */
		queue_rest(s->cfg.queue, HOLD_NS);
		wait_for_sessions(s, due_ns);
		queue_resume(s->cfg.queue, os_now_ns());
	}
	now_ns = os_now_ns();
	for (i = 0; i < s->n; i++) {
		dotnet_session_step(s->all[i], s->polled[i].revents != 0, now_ns, &s->queue);
		put_loss(s, dotnet_session_lost(s->all[i]), now_ns);
	}
	atomic_store_explicit(&s->refused_kinds, s->shares.kinds.refused, memory_order_relaxed);
	atomic_store_explicit(&s->refused_blocks, s->shares.pending.refused,
			      memory_order_relaxed);
}

/* Ask every program to end its session; else it would notice only at its next event. */
static void finish_sessions(struct dotnet_source *s)
{
	uint64_t end_ns = os_now_ns() + FINISH_NS;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		dotnet_session_stop(s->all[i]);
	while (s->n && os_now_ns() < end_ns) {
		read_all(s, os_now_ns() + ALIVE_NS);
		dotnet_queue_release(&s->queue, UINT64_MAX, deliver, s);
		free_ended(s);
	}
	dotnet_queue_release(&s->queue, UINT64_MAX, deliver, s);
}

/* What exceeded its share; "" = nothing. Any thread. */
static void note_shares(struct dotnet_source *s, char *note, size_t n)
{
	uint64_t kinds = atomic_load_explicit(&s->refused_kinds, memory_order_relaxed);
	uint64_t blocks = atomic_load_explicit(&s->refused_blocks, memory_order_relaxed);
	bool crowded = atomic_load(&s->crowded);

	*note = '\0';
	if (kinds || blocks || crowded)
		snprintf(note, n,
			 ".NET programs exceeded their shares: %llu kinds of events and %llu "
			 "blocks were dropped%s",
			 (unsigned long long)kinds, (unsigned long long)blocks,
			 crowded ? ", and programs of users with too many are not recorded" : "");
}

static bool is_wanted(const struct dotnet_source *s)
{
	return s->request.n || s->request.perf_map;
}

static int dotnet_run(struct source *source, struct err *err)
{
	struct dotnet_source *s = (struct dotnet_source *)source;
	uint64_t now_ns, due_ns, counters_ns = 0;
	struct dotnet_socket socket;
	char note[200];

	(void)err;
	while (is_wanted(s) && !atomic_load(&s->stopping)) {
		now_ns = os_now_ns();
		due_ns = dotnet_find_new(&s->find, now_ns, add_session, s);
		/* Only while there is room: a socket that was taken is not found again. */
		while (s->n < SESSIONS_MAX && dotnet_find_in_container(&s->find, now_ns, &socket))
			add_session(s, &socket);
		read_all(s, counters_ns < due_ns ? counters_ns : due_ns);
		now_ns = os_now_ns();
		dotnet_queue_release(&s->queue, now_ns - HOLD_NS, deliver, s);
		counters_ns = gc_counters_poll(s->counters, now_ns - HOLD_NS, put_event, s);
		counters_ns += counters_ns < UINT64_MAX ? HOLD_NS : 0;
		queue_watermark(s->cfg.queue, now_ns - HOLD_NS);
		free_ended(s);
	}
	finish_sessions(s);
	note_shares(s, note, sizeof(note));
	if (note[0])
		log_line(s->cfg.log, LOG_WARN, "%s", note);
	queue_finish(s->cfg.queue);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void dotnet_close(struct source *source)
{
	struct dotnet_source *s = (struct dotnet_source *)source;

	dotnet_queue_free(&s->queue);
	while (s->n)
		dotnet_session_free(s->all[--s->n], s->cfg.processes);
	dotnet_find_close(&s->find);
	os_wake_free(s->wait.wake);
	tmp_wait_close(&s->wait);
	nettrace_decode_free(s->decode);
	gc_counters_free(s->counters);
	free(s);
}

static int dotnet_open(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	struct dotnet_source *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_memory(err, "for the source of .NET programs");
	s->base.ops = &dotnet_source;
	s->cfg = *cfg;
	s->find.watch = -1;
	shares_init(&s->sessions, SESSIONS_MAX, os_uid());
	shares_init(&s->shares.kinds, NETTRACE_ALL_KINDS_MAX_BYTES, os_uid());
	shares_init(&s->shares.pending, NETTRACE_ALL_PENDING_MAX_BYTES, os_uid());
	s->request.shares = &s->shares;
	dotnet_queue_share(&s->queue, &s->queue_shares, os_uid());
	add_needs(&s->request, needs);
	/* Programs send in small pieces: gather them for a while before reading. */
	s->wait = (struct tmp_wait){.wake = os_wake_new(), .gather_ns = COALESCE_NS};
	tmp_wait_open(&s->wait);
	rc = s->wait.wake ? gc_counters_new(needs, GC_DOTNET, &s->counters, err)
		     : err_memory(err, "for the source of .NET programs");
	if (!rc)
		rc = nettrace_decode_new(&s->decode, err);
	if (!rc && is_wanted(s))
		rc = dotnet_find_open(&s->find, s->wait.wake, s->cfg.log, err);
	if (rc) {
		dotnet_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static void dotnet_stop(struct source *source)
{
	struct dotnet_source *s = (struct dotnet_source *)source;

	atomic_store(&s->stopping, true);
	os_wake(s->wait.wake);
}

static void dotnet_status(struct source *source, struct source_status *out)
{
	struct dotnet_source *s = (struct dotnet_source *)source;

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
	out->lost = queue_lost(s->cfg.queue) + atomic_load_explicit(&s->lost, memory_order_relaxed);
	note_shares(s, out->note, sizeof(out->note));
}

static int dotnet_part(unsigned i, struct source_part *out, struct err *err)
{
	if (i)
		return 0;
	out->name = "dotnet-of-others";
	out->summary = "events of .NET programs of other users and in containers";
	return ns_tmp_others(&dotnet_socket_kind, err);
}

const struct source_ops dotnet_source = {
	.name = "dotnet",
	.summary =
		"events of .NET programs (EventPipe, through their diagnostic sockets), for rules",
	.events = true,
	.optional = true,
	.check = dotnet_check,
	.list = gc_counters_list,
	.list_events = dotnet_list_events,
	.part = dotnet_part,
	.looks_at_others = true,
	.open = dotnet_open,
	.run = dotnet_run,
	.stop = dotnet_stop,
	.status = dotnet_status,
	.close = dotnet_close,
};
