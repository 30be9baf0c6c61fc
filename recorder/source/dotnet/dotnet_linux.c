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
#include "base/turns.h"
#include "source/dotnet/find_linux.h"
#include "source/dotnet/clr_memory_linux.h"
#include "source/dotnet/counters.h"
#include "source/dotnet/event_queue.h"
#include "source/dotnet/filter.h"
#include "source/dotnet/images_linux.h"
#include "source/dotnet/known.h"
#include "source/dotnet/list.h"
#include "source/dotnet/providers_linux.h"
#include "source/dotnet/session_linux.h"
#include "source/etw/known.h"
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

#define PROGRAMS_MAX 256u
#define SESSIONS_MAX (PROGRAMS_MAX * 3)      /* of each: its events, its code, a rundown */
/*
 * From the first event of a program until it is asked for its code. The rundown of 4,000 methods
 * takes 75 to 340 ms on a thread of the runtime, so programs are asked one after another.
 */
#define RUNDOWN_AFTER_NS (500 * NS_PER_MS)
#define ALIVE_NS (20 * NS_PER_MS)            /* between reads while events are queued */
#define TURN_NS (20 * NS_PER_MS)             /* of reading, until events leave again */
#define WAIT_NS (100 * NS_PER_MS)            /* of a program whose user has used up his time */
#define COALESCE_NS (10 * NS_PER_MS)         /* from the first bytes until all are read */
/*
 * A program has its socket before it is ready. Of 15 programs (.NET 8) asked for their map at once,
 * one crashed; none of those asked for events did.
 */
#define SETTLE_NS (30 * NS_PER_MS)
#define SETTLE_MAP_NS (500 * NS_PER_MS)
#define HOLD_NS (200 * NS_PER_MS)            /* the engine waits for 250 ms */
#define FINISH_NS (500 * NS_PER_MS)          /* for programs to end their sessions */
#define FINISH_OLD_NS (10 * NS_PER_SEC)      /* for those that must not be hung up on */
#define CLR_KEYWORD_GC 1u
#define CLR_KEYWORDS_CODE 0x38u              /* Loader, JIT, NGen */
#define CLR_VERBOSE 5                        /* as MethodLoadVerbose is */
#define CLR_LEVEL 4
#define TPL_KEYWORD_ACTIVITIES 0x80u           /* TasksFlowActivityIds */
#define CRITICAL 1

#define ASSUMED_MAX 8u
#define NOTE_NS (NS_PER_SEC / 2)

/* A provider that nobody had at the beginning: of --providers, or of rules, --assume-exists. */
struct assumed {
	const char *name;
	_Atomic bool seen;
};

struct dotnet_source {
	struct source base;
	struct source_config cfg;
	struct dotnet_request request;
	struct dotnet_find find;
	/* of the names that stacks need */
	struct dotnet_request code, rundown;
	struct dotnet_stacks *stacks;        /* NULL = no event has one */
	struct clr_memory *memory;           /* of programs that do not tell; NULL = not read */
	struct dotnet_session *all[SESSIONS_MAX];
	uint32_t n, nprograms;
	uint64_t looked_ns;
	struct pollfd polled[SESSIONS_MAX + TMP_POLLED];
	struct tmp_wait wait;
	struct dotnet_queue queue;
	struct nettrace_decode *decode;
	struct dotnet_filter *filter;
	struct gc_counters *counters;
	bool counts;                         /* a counter is wanted, which is told HOLD_NS late */
	struct gc_objects objects;
	struct dotnet_counters *told;        /* EventCounters; NULL = none is wanted */
	struct dotnet_streams *streams;
	struct shares queue_shares;
	struct shares sessions;              /* how many of PROGRAMS_MAX a user has */
	struct turns turns;
	uint32_t turn;                       /* the session that is read first */
	struct assumed assumed[ASSUMED_MAX];
	unsigned nassumed;
	bool full_logged, crowded_logged;
	bool names_code;                     /* of samples' frames */
	_Atomic bool stopping;
	atomic_uint_fast64_t events, lost;
	/* what exceeded shares, for the status */
	atomic_uint_fast64_t refused_kinds, refused_blocks;
	_Atomic bool crowded;
	_Atomic uint32_t nold;               /* programs of .NET Core 3, so far */
};

extern const struct source_ops dotnet_source;

/* ---- which providers ------------------------------------------------------------------------- */

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

/*
 * An EventSource gives its events the ids of their activities, which tell requests that overlap
 * apart, only while somebody asks TPL to let them flow (PerfView always does).
 */
static void add_activities(struct dotnet_request *request)
{
	uint32_t i;

	for (i = 0; i < request->n && strcmp(request->names[i], DOTNET_CLR) == 0; i++)
		;
	if (i < request->n)
		add_provider(request, "System.Threading.Tasks.TplEventSource",
			     TPL_KEYWORD_ACTIVITIES, CLR_LEVEL);
}

static void add_needs(struct dotnet_request *request, const struct needs *needs)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++) {
		const struct need_provider *p = &needs->providers[i];

		/* As in ETW, no keyword at all means every one. */
		if (dotnet_provider_is(dotnet_provider_exact(p->name)))
			add_provider(request, dotnet_provider_exact(p->name),
				     p->keywords ? p->keywords : UINT64_MAX, p->level);
	}
	add_activities(request);
	request->perf_map = needs->perf_maps;
	request->settle_ns = request->perf_map ? SETTLE_MAP_NS : SETTLE_NS;
	if (gc_counters_wanted(needs, GC_DOTNET))
		add_provider(request, DOTNET_CLR, CLR_KEYWORD_GC, CLR_LEVEL);
}

/* Only what is critical beside them: EventCounters come at every level. */
static void add_counters(struct dotnet_request *request, const struct dotnet_counters *told)
{
	const char *name;
	uint32_t i, k;

	for (i = 0; (name = dotnet_counters_source(told, i)) != NULL; i++) {
		add_provider(request, dotnet_provider_exact(name), UINT64_MAX, CRITICAL);
		for (k = 0; k < request->n; k++)
			if (strcasecmp(request->names[k], name) == 0)
				request->providers[k].arguments = DOTNET_COUNTER_ARGUMENTS;
	}
}

static bool is_asked(const struct needs *needs, const char *name)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++)
		if (needs->providers[i].asked &&
		    strcasecmp(needs->providers[i].name + (*needs->providers[i].name == '*'),
			       name) == 0)
			return true;
	return false;
}

/*
 * Remember which providers are to come; those that a rule may assume have been looked for. Opening
 * waits for the files of programs no longer than for one provider.
 */
static void note_assumed(struct dotnet_source *s, const struct needs *needs)
{
	uint64_t until_ns = os_now_ns() + NOTE_NS;
	uint32_t i;

	for (i = 0; i < s->request.n && s->nassumed < ASSUMED_MAX; i++) {
		const char *name = s->request.names[i];
		struct buf why = {0};

		if (is_asked(needs, name)
			    ? os_now_ns() < until_ns && dotnet_asked_unknown(name, &why)
			    : needs->assume_exists && !dotnet_known(name))
			s->assumed[s->nassumed++].name = name;
		if (why.len)
			log_line(s->cfg.log, LOG_WARN, "--providers: %s", buf_text(&why));
		buf_free(&why);
	}
}

static void see_assumed(struct dotnet_source *s, const char *provider)
{
	unsigned i;

	for (i = 0; i < s->nassumed; i++)
		if (provider && strcmp(s->assumed[i].name, provider) == 0)
			atomic_store_explicit(&s->assumed[i].seen, true, memory_order_relaxed);
}

static void put_assumed(const struct dotnet_source *s, char *note, size_t n)
{
	size_t used = strlen(note);
	unsigned i;

	for (i = 0; i < s->nassumed && atomic_load(&s->assumed[i].seen); i++)
		;
	if (i < s->nassumed)
		snprintf(note + used, n - used,
			 "%sno program has sent an event of %.100s yet, and none had it at the "
			 "beginning", used ? "; " : "", s->assumed[i].name);
}

static void put_old(const struct dotnet_source *s, char *note, size_t n)
{
	uint32_t nold = atomic_load(&s->nold);
	size_t used = strlen(note);

	if (nold)
		snprintf(note + used, n - used,
			 "%s%u programs of .NET Core 3 were not asked for the names of generated "
			 "code, as their runtime can hang", used ? "; " : "", nold);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_event(void *ctx, const struct event *e)
{
	struct dotnet_source *s = ctx;

	see_assumed(s, e->provider);
	if (queue_put(s->cfg.queue, e))
		atomic_fetch_add(&s->events, 1u + (e->sample_id != 0));
}

static void deliver_one(struct dotnet_source *s, const struct dotnet_queued *queued)
{
	struct dotnet_session *session = queued->owner;
	struct process *process = dotnet_session_process(session, s->cfg.processes);
	struct event e;

	nettrace_decode_queued(s->decode, queued, dotnet_session_pointer_bytes(session), process,
			       dotnet_session_socket(session)->nested ? NULL : s->cfg.processes,
			       &e);
	e.names_stay = false;                /* the stream may end before the event is kept */
	if (!gc_objects_collect(&s->objects, &e, queued->event.payload, queued->event.payload_bytes,
				dotnet_session_pointer_bytes(session), put_event, s) &&
	    dotnet_filter_pass(s->filter, &e))
		dotnet_program_deliver(dotnet_session_program(session), &s->objects,
				       &queued->event, dotnet_session_pointer_bytes(session), &e,
				       put_event, s);
	if (process)
		gc_counters_program(s->counters, process);
	gc_counters_event(s->counters, process ? process->pid : 0, &e);
	dotnet_counters_event(s->told, &e);
	if (process)
		process_unref(process);
}

static void deliver(void *ctx, const struct dotnet_queued *queued)
{
	struct dotnet_source *s = ctx;
	uint32_t uid = dotnet_session_socket(queued->owner)->uid;
	uint64_t begun_ns = turns_begin(&s->turns, uid);

	deliver_one(s, queued);
	turns_end(&s->turns, uid, begun_ns);
}

static void put_loss(struct dotnet_source *s, uint64_t n, uint64_t now_ns)
{
	struct event e = {
		.time_ns = now_ns, .kind = EVENT_LOST, .cpu = CPU_NONE, .stack = STACK_NONE,
		.name = loss_kind_text(LOSS_EVENTS), .value = (double)n,
	};

	if (!n)
		return;
	gc_objects_lost(&s->objects, now_ns);
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
	if (s->nprograms == PROGRAMS_MAX && !s->full_logged) {
		log_line(s->cfg.log, LOG_WARN,
			 "more than %u .NET programs run: events of the others are not recorded",
			 PROGRAMS_MAX);
		s->full_logged = true;
	}
	return s->nprograms < PROGRAMS_MAX;
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
			 socket->uid, PROGRAMS_MAX);
	s->crowded_logged = true;
	return false;
}

static void leave_place(struct dotnet_source *s, uint32_t uid)
{
	struct share share = {.uid = uid, .used = 1};

	shares_give_back(&s->sessions, &share, 1);
}

/* Takes the reference to the program. */
static bool add_one(struct dotnet_source *s, const struct dotnet_socket *socket,
		    const struct dotnet_request *request, struct dotnet_program *program)
{
	if (s->n == SESSIONS_MAX) {
		dotnet_program_free(program, os_now_ns());
		return false;
	}
	s->all[s->n] = dotnet_session_new(socket, request, program, s->cfg.log);
	if (!s->all[s->n])
		return false;
	s->n++;
	return true;
}

/* The session that learns names comes first. */
static void add_session(void *ctx, const struct dotnet_socket *socket)
{
	struct dotnet_source *s = ctx;
	struct dotnet_socket code = *socket;
	struct dotnet_program *program = NULL;

	if (!has_room_for(s, socket) || !take_place(s, socket)) {
		if (socket->fd >= 0)
			close(socket->fd);
		return;
	}
	if (s->stacks)
		program = dotnet_program_new(s->stacks, socket->pid, socket->key, socket->uid);
	code.fd = -1;
	if (program)
		add_one(s, &code, &s->code, dotnet_program_ref(program));
	if (add_one(s, socket, &s->request, program))
		s->nprograms++;
	else
		leave_place(s, socket->uid);
}

/* Ask one program for the code that it had loaded before; one at a time. */
static void ask_for_rundown(struct dotnet_source *s, uint64_t now_ns)
{
	struct dotnet_socket socket;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (dotnet_session_role(s->all[i]) == DOTNET_RUNDOWN)
			return;
	for (i = 0; i < s->n; i++) {
		struct dotnet_session *session = s->all[i];
		uint64_t since_ns = dotnet_session_streams_ns(session);

		if (dotnet_session_role(session) != DOTNET_CODE || !since_ns ||
		    now_ns < since_ns + RUNDOWN_AFTER_NS ||
		    !dotnet_program_needs_rundown(dotnet_session_program(session)))
			continue;
		socket = *dotnet_session_socket(session);
		socket.fd = -1;
		add_one(s, &socket, &s->rundown,
			dotnet_program_ref(dotnet_session_program(session)));
		return;
	}
}

static void read_images(struct dotnet_source *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (dotnet_session_role(s->all[i]) == DOTNET_CODE)
			dotnet_images_read(s->find.pool, dotnet_session_socket(s->all[i])->pid,
					   dotnet_session_program(s->all[i]));
}

/* Free the sessions that have ended and have no queued events. */
static void free_ended(struct dotnet_source *s)
{
	uint32_t i;

	for (i = s->n; i--;) {
		if (!dotnet_session_is_over(s->all[i]))
			continue;
		if (dotnet_session_role(s->all[i]) == DOTNET_EVENTS) {
			gc_counters_gone(s->counters, dotnet_session_socket(s->all[i])->pid);
			gc_objects_gone(&s->objects, dotnet_session_socket(s->all[i])->pid);
			leave_place(s, dotnet_session_socket(s->all[i])->uid);
			s->nprograms--;
		} else if (dotnet_session_is_old(s->all[i])) {
			atomic_fetch_add(&s->nold, 1);
		} else if (dotnet_session_role(s->all[i]) == DOTNET_RUNDOWN &&
			   !dotnet_session_has_streamed(s->all[i])) {
			dotnet_program_no_rundown(dotnet_session_program(s->all[i]));
		}
		dotnet_session_free(s->all[i], s->cfg.processes);
		s->all[i] = s->all[--s->n];
	}
}

/* Wait until a session is ready or due, or until due_ns. One that must wait is not asked. */
static void wait_for_sessions(struct dotnet_source *s, uint64_t due_ns)
{
	uint64_t session_ns, now_ns = os_now_ns();
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		dotnet_session_polled(s->all[i], &s->polled[i]);
		session_ns = dotnet_session_due_ns(s->all[i]);
		due_ns = session_ns < due_ns ? session_ns : due_ns;
		if (s->polled[i].fd < 0 ||
		    turns_may(&s->turns, dotnet_session_socket(s->all[i])->uid, now_ns))
			continue;
		s->polled[i].fd = -1;
		due_ns = now_ns + WAIT_NS < due_ns ? now_ns + WAIT_NS : due_ns;
	}
	tmp_wait(&s->wait, due_ns, s->find.watch, s->polled, s->n);
	if (s->wait.replaced)
		s->find.next_tmp_ns = 0;
	s->wait.replaced = false;
}

static void read_one(struct dotnet_source *s, uint32_t i, uint64_t now_ns)
{
	uint32_t uid = dotnet_session_socket(s->all[i])->uid;
	bool ready = s->polled[i].revents != 0;
	uint64_t begun_ns = ready ? turns_begin(&s->turns, uid) : 0;

	dotnet_session_step(s->all[i], ready, now_ns, &s->queue);
	put_loss(s, dotnet_session_lost(s->all[i]), now_ns);
	turns_spend(&s->turns, uid, dotnet_streams_spent_ns(s->streams));
	turns_end(&s->turns, uid, begun_ns);
}

/* For TURN_NS, the next time from the session on that follows. */
static void read_all(struct dotnet_source *s, uint64_t due_ns)
{
	uint64_t now_ns = os_now_ns(), refused_kinds, refused_blocks;
	uint32_t i;

	if (dotnet_queue_count(&s->queue)) {
		wait_for_sessions(s, due_ns < now_ns + ALIVE_NS ? due_ns : now_ns + ALIVE_NS);
	} else {
		/* Events leave HOLD_NS late. A session that is to begin tells of none before. */
		queue_rest(s->cfg.queue, s->n || s->counts ? HOLD_NS : 0);
		wait_for_sessions(s, due_ns);
		queue_resume(s->cfg.queue, os_now_ns());
	}
	now_ns = os_now_ns();
	for (i = 0; i < s->n && os_now_ns() < now_ns + TURN_NS; i++) {
		s->turn = s->turn < s->n ? s->turn : 0;
		read_one(s, s->turn++, now_ns);
	}
	dotnet_streams_refused(s->streams, &refused_kinds, &refused_blocks);
	atomic_store_explicit(&s->refused_kinds, refused_kinds, memory_order_relaxed);
	atomic_store_explicit(&s->refused_blocks, refused_blocks, memory_order_relaxed);
}

static bool must_wait(const struct dotnet_source *s)
{
	uint32_t i;

	for (i = 0; i < s->n && !dotnet_session_waits(s->all[i]); i++)
		;
	return i < s->n;
}

/* Ask every program to end its session; else it would notice only at its next event. */
static void finish_sessions(struct dotnet_source *s)
{
	uint64_t begin_ns = os_now_ns();
	uint32_t i;

	for (i = 0; i < s->n; i++)
		dotnet_session_stop(s->all[i]);
	while (s->n && os_now_ns() < begin_ns + (must_wait(s) ? FINISH_OLD_NS : FINISH_NS)) {
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
	turns_note(&s->turns, ".NET", note, n);
	if (kinds || blocks || crowded)
		snprintf(note, n,
			 ".NET programs exceeded their shares: %llu kinds of events and %llu "
			 "blocks were dropped%s",
			 (unsigned long long)kinds, (unsigned long long)blocks,
			 crowded ? ", and programs of users with too many are not recorded" : "");
}

static bool is_wanted(const struct dotnet_source *s)
{
	return s->request.n || s->request.perf_map || s->names_code;
}

static int dotnet_run(struct source *source, struct err *err)
{
	struct dotnet_source *s = (struct dotnet_source *)source;
	uint64_t now_ns, due_ns, counters_ns = 0, told_ns;
	struct dotnet_socket socket;
	char note[200];

	(void)err;
	while (is_wanted(s) && !atomic_load(&s->stopping)) {
		now_ns = os_now_ns();
		if (s->stacks && now_ns - s->looked_ns >= NS_PER_SEC / 4) {
			s->looked_ns = now_ns;
			ask_for_rundown(s, now_ns);
			read_images(s);
			dotnet_stacks_look(s->stacks, now_ns);
		}
		due_ns = dotnet_find_new(&s->find, now_ns, add_session, s);
		/* Only while there is room: a socket that was taken is not found again. */
		while (s->nprograms < PROGRAMS_MAX &&
		       dotnet_find_in_container(&s->find, now_ns, &socket))
			add_session(s, &socket);
		read_all(s, counters_ns < due_ns ? counters_ns : due_ns);
		now_ns = os_now_ns();
		dotnet_queue_release(&s->queue, now_ns - HOLD_NS, deliver, s);
		counters_ns = gc_counters_poll(s->counters, now_ns - HOLD_NS, put_event, s);
		told_ns = dotnet_counters_poll(s->told, now_ns - HOLD_NS, put_event, s);
		counters_ns = told_ns < counters_ns ? told_ns : counters_ns;
		s->counts = counters_ns < UINT64_MAX;
		counters_ns += s->counts ? HOLD_NS : 0;
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
	dotnet_streams_free(s->streams);
	dotnet_find_close(&s->find);
	os_wake_free(s->wait.wake);
	tmp_wait_close(&s->wait);
	nettrace_decode_free(s->decode);
	dotnet_filter_free(s->filter);
	dotnet_stacks_free(s->stacks);
	clr_memory_free(s->memory);
	gc_counters_free(s->counters);
	gc_objects_free(&s->objects);
	dotnet_counters_free(s->told);
	free(s);
}

/*
 * Names of code are sessions of their own, because a session has one level for each provider:
 * level 5 would bring all verbose events of collections too.
 */
static void add_code_requests(struct dotnet_source *s)
{
	s->code = s->rundown = (struct dotnet_request){.role = DOTNET_CODE, .streams = s->streams,
						       .settle_ns = s->request.settle_ns};
	add_provider(&s->code, DOTNET_CLR, CLR_KEYWORDS_CODE, CLR_VERBOSE);
	s->rundown.role = DOTNET_RUNDOWN;
	s->rundown.settle_ns = 0;
	s->rundown.comes_at_once = true;
	add_provider(&s->rundown, DOTNET_CLR, CLR_KEYWORD_GC, 1);
}

/*
 * Collections alone are told without stacks: names of code cost the program a rundown, some 100 ms
 * of one of its threads.
 */
static bool wants_stacks(const struct dotnet_request *request)
{
	uint32_t i;

	for (i = 0; i < request->n; i++) {
		const struct dotnet_provider *p = &request->providers[i];

		if (p->arguments && p->level == CRITICAL)
			continue;
		if (strcmp(p->name, DOTNET_CLR) != 0 || p->keywords != CLR_KEYWORD_GC ||
		    p->level > CLR_LEVEL)
			return true;
	}
	return false;
}

/* Whether survivals are told: their keyword is of level 4. */
static bool follows_objects(const struct dotnet_request *request)
{
	uint32_t i;

	for (i = 0; i < request->n && strcmp(request->providers[i].name, DOTNET_CLR) != 0; i++)
		;
	return i < request->n && request->providers[i].level >= CLR_LEVEL &&
	       request->providers[i].keywords & GC_OBJECTS_KEYWORD;
}

static bool dotnet_name_frame(struct source *source, const struct frame *frame, struct symbol *out)
{
	struct dotnet_source *s = (struct dotnet_source *)source;

	return s->stacks && dotnet_stacks_name(s->stacks, frame, out);
}

static void dotnet_settle(struct source *source, struct event *e)
{
	struct dotnet_source *s = (struct dotnet_source *)source;

	if (s->stacks)
		dotnet_stacks_settle(s->stacks, e);
}

static bool dotnet_name_late(struct source *source, const struct object *object, uint64_t offset,
			     struct symbol *out)
{
	struct dotnet_source *s = (struct dotnet_source *)source;

	return s->stacks && (dotnet_stacks_late(s->stacks, object, offset, out) ||
			     (s->memory && !dotnet_stacks_knows(s->stacks, object->key.pid) &&
			      clr_memory_name(s->memory, object, offset, out)));
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
	shares_init(&s->sessions, PROGRAMS_MAX, os_uid());
	turns_init(&s->turns, cfg->max_cpu_pct, os_uid());
	dotnet_queue_share(&s->queue, &s->queue_shares, os_uid());
	add_needs(&s->request, needs);
	rc = dotnet_streams_new(os_uid(), &s->streams, err);
	s->request.streams = s->streams;
	if (!rc)
		rc = dotnet_counters_new(needs, &s->told, err);
	add_counters(&s->request, s->told);
	note_assumed(s, needs);
	add_code_requests(s);
	s->objects.log = cfg->log;
	s->objects.on = s->request.comes_at_once = follows_objects(&s->request);
	/* Programs send in small pieces: gather them for a while before reading. */
	s->wait = (struct tmp_wait){.wake = os_wake_new(), .gather_ns = COALESCE_NS};
	tmp_wait_open(&s->wait);
	if (!rc)
		rc = s->wait.wake ? gc_counters_new(needs, GC_DOTNET, &s->counters, err)
				  : err_memory(err, "for the source of .NET programs");
	if (!rc)
		rc = nettrace_decode_new(&s->decode, err);
	if (!rc)
		rc = dotnet_filter_new(needs, &s->filter, err);
	s->names_code = needs->dotnet_names;
	if (!rc && cfg->frames && (s->names_code || wants_stacks(&s->request)))
		rc = dotnet_stacks_new(cfg->frames, os_uid(), &s->stacks, err);
	if (!rc && s->names_code && s->stacks)
		rc = clr_memory_new(&s->memory, err);
	if (!rc && is_wanted(s))
		rc = dotnet_find_open(&s->find, s->wait.wake, s->cfg.log, err);
	s->request.pool = s->code.pool = s->rundown.pool = s->find.pool;
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
	out->degraded = s->find.pool && pool_note(s->find.pool, "sockets of .NET programs",
						  out->note, sizeof(out->note));
	put_assumed(s, out->note, sizeof(out->note));
	put_old(s, out->note, sizeof(out->note));
}

static void dotnet_add_usage(struct source *source, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	dotnet_streams_add_usage(((struct dotnet_source *)source)->streams, cpu_ns, rss_bytes);
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
	.check = dotnet_providers_check,
	.list = gc_counters_list,
	.list_events = dotnet_list_events,
	.part = dotnet_part,
	.looks_at_others = true,
	.open = dotnet_open,
	.run = dotnet_run,
	.stop = dotnet_stop,
	.status = dotnet_status,
	.add_usage = dotnet_add_usage,
	.name_frame = dotnet_name_frame,
	.settle = dotnet_settle,
	.name_late = dotnet_name_late,
	.close = dotnet_close,
};
