/* Linux: threads are stopped by ptrace(2), and their stacks are walked as samples are. */
#include "source/stopped/thread_stacks.h"

#include "base/array.h"
#include "base/os.h"
#include "managed/python/peek.h"
#include "model/queue.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/managed_linux.h"
#include "source/perf/walk_linux.h"
#include "source/stopped/target_threads_linux.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT_BYTES ((size_t)1 << 20)        /* nobody reads these events */
#define KNOWN_NS (2 * NS_PER_SEC)            /* for its mappings to be read */
#define TABLES_NS (2 * NS_PER_SEC)           /* for unwind tables, of all threads together */
#define PAUSE_NS NS_PER_MS
#define REMOTE_BYTES 0u                      /* the copy is the whole stack */

struct thread_stacks {
	uint32_t pid;
	char path[1024];
	struct queue *queue;
	struct processes *processes;
	struct perf_walker walker;           /* all of it is ours */
	struct stack_copy copy;
	struct target_wait wait;
	char name[16];
	uint32_t *tids, n, room;
	uint32_t refused, stuck;
	uint64_t longest_ns, tables_until_ns;
	uint64_t addresses[STACK_MAX_FRAMES];

	bool has_python;                     /* its frames are read while a thread is stopped: */
	struct python_target python;
	struct python_threads threads;
	struct python_peek peek;
	uint32_t inner;                      /* number of that thread in its own namespace */
};

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_alive(uint32_t pid)
{
	struct proc_pid process;

	return proc_pid_read(pid, &process) && process.state != 'Z';
}

static int check_process(struct thread_stacks *s, struct err *err)
{
	if (s->pid == os_pid())
		return err_set(err, ERR_USAGE, "process %u is the recorder itself, which cannot "
			       "stop its own threads", s->pid);
	if (!is_alive(s->pid))
		return err_set(err, ERR_NOT_FOUND, "there is no process %u", s->pid);
	proc_pid_exe(s->pid, s->path, sizeof(s->path));
	return 0;
}

static int open_walker(struct thread_stacks *s, struct frames *frames, struct err *err)
{
	struct perf_walker *w = &s->walker;
	int rc = proc_reader_new(NULL, &w->reader, err);

	if (!rc)
		rc = unwinder_new(REMOTE_BYTES, &w->unwinder, err);
	if (!rc)
		rc = perf_managed_new(frames, w->reader, NULL, NULL, &w->managed, err);
	return rc;
}

static int open_state(struct thread_stacks *s, struct frames *frames, struct err *err)
{
	const struct perf_state_config state = {
		.frames = frames, .processes = s->processes, .queue = s->queue,
		.managed = s->walker.managed, .root_pid = s->pid, .root_only = true,
		.build_ids = true,
	};
	int rc = perf_state_new(&state, &s->walker.state, err);

	if (!rc)
		rc = perf_state_scan(s->walker.state, os_now_ns(), err);
	if (!rc)
		rc = loader_new(NULL, perf_state_hung(s->walker.state), &s->walker.loader, err);
	return rc;
}

/* Its mappings are read by a job, which a hung mount may hold. */
static int know_process(struct thread_stacks *s, struct err *err)
{
	uint64_t until_ns = os_now_ns() + KNOWN_NS;

	while (perf_state_reading(s->walker.state, s->pid, s->pid, os_now_ns())) {
		if (os_now_ns() > until_ns)
			return err_set(err, ERR_LIMIT, "the mappings of process %u could not be "
				       "read within %u s: it, or a file system, does not answer",
				       s->pid, (unsigned)(KNOWN_NS / NS_PER_SEC));
		perf_state_look(s->walker.state, os_now_ns());
		os_sleep_ns(PAUSE_NS);
	}
	return 0;
}

int thread_stacks_open(uint32_t pid, struct frames *frames, struct thread_stacks **out,
		       struct err *err)
{
	struct thread_stacks *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (s)
		s->copy.bytes = malloc(TARGET_STACK_MAX_BYTES);
	if (!s || !s->copy.bytes || !(s->queue = queue_new(EVENT_BYTES)))
		rc = err_memory(err, "for the stacks of process %u", pid);
	if (!rc) {
		s->pid = pid;
		rc = check_process(s, err);
	}
	if (!rc)
		rc = processes_new(&s->processes, err);
	if (!rc)
		rc = open_walker(s, frames, err);
	if (!rc)
		rc = open_state(s, frames, err);
	if (!rc)
		rc = know_process(s, err);
	if (!rc)
		rc = thread_stacks_refresh(s, err);
	if (rc) {
		thread_stacks_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void thread_stacks_close(struct thread_stacks *s)
{
	if (!s)
		return;
	if (s->walker.state)
		perf_state_free(s->walker.state);
	loader_free(s->walker.loader);
	unwinder_free(s->walker.unwinder);
	perf_managed_free(s->walker.managed);
	proc_reader_free(s->walker.reader);
	if (s->processes)
		processes_free(s->processes);
	queue_free(s->queue);
	free(s->tids);
	free(s->copy.bytes);
	free(s);
}

const char *thread_stacks_path(const struct thread_stacks *s)
{
	return s->path;
}

bool thread_stacks_name(struct thread_stacks *s, const struct frame *frame, struct symbol *out)
{
	return perf_managed_name(s->walker.managed, frame, out);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool add_tid(void *ctx, uint32_t tid)
{
	struct thread_stacks *s = ctx;

	if (ARRAY_ROOM(s->tids, s->room, s->n + 1))
		return false;
	s->tids[s->n++] = tid;
	return true;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int thread_stacks_refresh(struct thread_stacks *s, struct err *err)
{
	char dir[40];

	snprintf(dir, sizeof(dir), "/proc/%u/task", s->pid);
	s->n = 0;
	if (!proc_each(dir, add_tid, s) || !s->n)
		return err_set(err, ERR_NOT_FOUND, "process %u has ended", s->pid);
	qsort(s->tids, s->n, sizeof(*s->tids), by_number);
	return 0;
}

/* ---- Python ---------------------------------------------------------------------------------- */

static void learn_python(struct thread_stacks *s)
{
	uint64_t now_ns = os_now_ns();
	struct perf_thread *thread = perf_state_thread(s->walker.state, s->pid, s->pid, now_ns);

	s->has_python = thread && thread->process &&
			perf_managed_begin(s->walker.managed, thread->process, now_ns) &&
			perf_managed_target(s->walker.managed, thread->process, &s->python);
}

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	return proc_pid_memory(((const struct thread_stacks *)ctx)->pid, address, to, n);
}

static void read_pieces(void *ctx, struct managed_piece *pieces, size_t n)
{
	perf_managed_pieces(((const struct thread_stacks *)ctx)->pid, pieces, n);
}

/* The thread stands still. */
static void peek(void *ctx)
{
	struct thread_stacks *s = ctx;
	const struct managed_memory memory = {
		.read = read_memory, .read_pieces = read_pieces, .ctx = s};
	struct python_thread *thread;
	bool again = false, searched;

	do {
		thread = python_find_thread(&s->python, &memory, s->inner, &s->threads, again,
					    &searched);
		s->peek.n = 0;
		python_peek(&s->python, &memory, thread, &s->peek);
		again = !again && s->peek.status == PEEKED_OTHER;
	} while (again);
}

static void place(struct thread_stacks *s, struct perf_thread *thread)
{
	if (!s->has_python || !thread || !thread->process ||
	    (s->peek.status != PEEKED_WHOLE && s->peek.status != PEEKED_CUT))
		return;
	perf_managed_place(s->walker.managed, thread->process, &s->peek, &s->walker.stack);
}

/* ---- walking --------------------------------------------------------------------------------- */

/* The copy as a sample. Tables that are being loaded are waited for: the thread runs again. */
static void walk(struct thread_stacks *s, uint32_t tid)
{
	struct perf_ring ring = {.format = {.nregs = TARGET_REGISTERS, .stack = true}};
	struct perf_record *r = &ring.record;
	struct perf_thread *thread;

	r->kind = PERF_KIND_SAMPLE;
	r->time_ns = s->copy.time_ns;
	r->pid = s->pid;
	r->tid = tid;
	r->u.sample.regs_abi = s->copy.abi;
	r->u.sample.regs = s->copy.regs;
	r->u.sample.stack = s->copy.bytes;
	r->u.sample.stack_bytes = s->copy.nbytes;
	thread = perf_state_thread(s->walker.state, s->pid, tid, r->time_ns);
	perf_walk(&s->walker, &ring, thread);
	while (s->walker.stack.pending && os_now_ns() < s->tables_until_ns) {
		os_sleep_ns(PAUSE_NS);
		perf_walk(&s->walker, &ring, thread);
	}
	place(s, thread);
	if (thread)
		thread_name(thread->thread, s->name);
}

static void take_one(struct thread_stacks *s, uint32_t tid, thread_stack_fn *tell, void *ctx)
{
	struct thread_stack stack = {.tid = tid, .name = s->name, .wait = s->wait.text,
				     .copy = &s->copy,
				     .frames = s->walker.stack.frames,
				     .addresses = s->addresses};
	uint32_t i;
	int rc;

	target_thread_wait(s->pid, tid, &s->wait);
	s->peek.status = PEEKED_NOTHING;
	s->copy.look = s->has_python ? peek : NULL;
	s->copy.ctx = s;
	if (s->has_python)
		s->inner = s->python.inner ? proc_pid_inner(tid) : tid;
	rc = target_thread_copy(s->pid, tid, &s->copy);
	if (rc) {
		s->refused += rc == ERR_ACCESS;
		s->stuck += rc == ERR_LIMIT;
		return;
	}
	s->name[0] = '\0';
	walk(s, tid);
	stack.waits_for = s->wait.owner;
	stack.nframes = s->walker.stack.nframes;
	stack.quality = s->walker.stack.quality;
	for (i = 0; i < stack.nframes; i++)
		s->addresses[i] = stack.frames[i].object->key.kind == OBJECT_UNKNOWN
					  ? stack.frames[i].offset : 0;
	stack.time_ns = s->copy.time_ns;
	stack.suspended_ns = s->copy.stopped_ns;
	if (stack.suspended_ns > s->longest_ns)
		s->longest_ns = stack.suspended_ns;
	tell(ctx, &stack);
}

/* Why none of its threads may be stopped. */
static int refusal(const struct thread_stacks *s, struct err *err)
{
	struct buf text = {0};
	const char *at;
	unsigned tracer = 0;

	if (proc_pid_load(s->pid, "status", 8192, &text) &&
	    (at = strstr(buf_text(&text), "\nTracerPid:")) != NULL)
		sscanf(at, " TracerPid: %u", &tracer);
	buf_free(&text);
	if (tracer)
		return err_set(err, ERR_ACCESS, "process %u is traced by process %u (a debugger, "
			       "strace): only one program at a time can stop its threads",
			       s->pid, tracer);
	return err_set(err, ERR_ACCESS, "the threads of process %u may not be stopped: it belongs "
		       "to another user or is protected, or kernel.yama.ptrace_scope forbids it; "
		       "run as root", s->pid);
}

int thread_stacks_take(struct thread_stacks *s, uint64_t idle_ns, thread_stack_fn *tell, void *ctx,
		       struct err *err)
{
	uint32_t i;

	(void)idle_ns;                       /* the sampler of Windows needs it */
	s->refused = s->stuck = 0;
	s->tables_until_ns = os_now_ns() + TABLES_NS;
	if (!s->has_python)
		learn_python(s);
	for (i = 0; i < s->n; i++)
		take_one(s, s->tids[i], tell, ctx);
	if (!is_alive(s->pid))
		return err_set(err, ERR_NOT_FOUND, "process %u has ended", s->pid);
	return s->n && s->refused == s->n ? refusal(s, err) : 0;
}

void thread_stacks_use(const struct thread_stacks *s, struct thread_stacks_use *out)
{
	*out = (struct thread_stacks_use){.threads = s->n, .refused = s->refused,
					  .stuck = s->stuck, .longest_ns = s->longest_ns};
}
