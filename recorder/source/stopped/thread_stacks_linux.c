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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT_BYTES ((size_t)1 << 20)        /* nobody reads these events */
#define KNOWN_NS (2 * NS_PER_SEC)            /* for its mappings to be read */
#define TABLES_NS (2 * NS_PER_SEC)           /* for unwind tables, of all threads together */
#define ANSWER_NS (500 * NS_PER_MS)          /* for memory: no thread is stopped meanwhile */
#define PAUSE_NS NS_PER_MS
#define USUAL_BYTES (64u << 10)              /* of a stack; 512 KiB take 0.3 ms to copy */
#define REMOTE_BYTES 0u                      /* the copy is the whole stack */

/* Of a thread that is not to be stopped and runs: */
#define SAMPLE_KB 60u                        /* as much as a record holds */
#define SAMPLE_MS 5                          /* it may begin to wait in between */
#define SAMPLED_NS (100 * NS_PER_MS)
#define ALL_SAMPLED_NS (2 * NS_PER_SEC)

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
	uint32_t refused, stuck, unseen;
	uint64_t longest_ns, tables_until_ns;
	bool never_stop;
	uint64_t sampled_until_ns;
	struct err sampling;                 /* why threads that run cannot be sampled */
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
		proc_reader_set_answer(w->reader, ANSWER_NS);
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

	if (s) {
		s->copy.bytes = malloc(TARGET_STACK_MAX_BYTES);
		s->copy.room = TARGET_STACK_MAX_BYTES;
	}
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

int thread_stacks_never_stop(struct thread_stacks *s, struct err *err)
{
	(void)err;
	s->never_stop = true;
	return 0;
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
		python_peek(&s->python, &memory, thread, &s->threads, &s->peek);
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

/* Tables that are being loaded are waited for: the thread runs again. */
static void walk(struct thread_stacks *s, const struct perf_ring *ring)
{
	const struct perf_record *r = &ring->record;
	struct perf_thread *thread = perf_state_thread(s->walker.state, s->pid, r->tid, r->time_ns);

	perf_walk(&s->walker, ring, thread);
	while (s->walker.stack.pending && os_now_ns() < s->tables_until_ns) {
		os_sleep_ns(PAUSE_NS);
		perf_walk(&s->walker, ring, thread);
	}
	place(s, thread);
	if (thread)
		thread_name(thread->thread, s->name);
}

/* The copy as a sample. */
static void walk_copy(struct thread_stacks *s, uint32_t tid)
{
	struct perf_ring ring = {.format = {.nregs = TARGET_REGISTERS, .stack = true}};
	struct perf_record *r = &ring.record;

	if (s->never_stop)
		ring.format.regs_mask = LOOKED_REGISTERS;
	r->kind = PERF_KIND_SAMPLE;
	r->time_ns = s->copy.time_ns;
	r->pid = s->pid;
	r->tid = tid;
	r->u.sample.regs_abi = s->copy.abi;
	r->u.sample.regs = s->copy.regs;
	r->u.sample.stack = s->copy.bytes;
	r->u.sample.stack_bytes = s->copy.nbytes;
	walk(s, &ring);
}

static bool wait_for_sample(struct perf_ring *ring)
{
	struct pollfd wake = {.fd = ring->fd, .events = POLLIN};
	const struct perf_record *r;

	poll(&wake, 1, SAMPLE_MS);
	perf_ring_refresh(ring);
	while ((r = perf_ring_peek(ring)) != NULL && r->kind != PERF_KIND_SAMPLE)
		perf_ring_next(ring);
	return r != NULL;
}

/* Of a thread that waits a copy; of one that runs a sample. Whichever it is first. */
static int look_at(struct thread_stacks *s, uint32_t tid)
{
	struct perf_ask ask = {.pid = tid, .stack_kb = SAMPLE_KB};
	uint64_t until_ns = os_now_ns() + SAMPLED_NS;
	struct perf_ring ring = {.fd = -1};
	int rc;

	if (until_ns > s->sampled_until_ns)
		until_ns = s->sampled_until_ns;
	while ((rc = target_thread_look(s->pid, tid, &s->copy, &s->wait)) == ERR_BUSY &&
	       os_now_ns() < until_ns) {
		s->peek.status = PEEKED_NOTHING;
		if (ring.fd < 0 && (perf_ring_open_thread(&ring, &ask, &s->sampling) != 0 ||
				    perf_ring_enable(&ring, true) != 0))
			break;
		if (!wait_for_sample(&ring))
			continue;
		s->copy.time_ns = ring.record.time_ns;
		target_wait_for(-1, NULL, false, NULL, &s->wait);
		walk(s, &ring);
		rc = 0;
		break;
	}
	if (!rc && !ring.have)
		walk_copy(s, tid);
	perf_ring_close(&ring);
	return rc;
}

static int stop_and_copy(struct thread_stacks *s, uint32_t tid)
{
	uint64_t first_ns;
	int rc;

	target_thread_wait(s->pid, tid, &s->wait);
	s->copy.room = USUAL_BYTES;
	rc = target_thread_copy(s->pid, tid, &s->copy);
	if (!rc)
		walk_copy(s, tid);
	if (rc || s->walker.stack.quality != QUALITY_TRUNCATED || s->copy.nbytes < USUAL_BYTES)
		return rc;
	/* A deeper one is stopped a second time, and copied whole. */
	s->copy.room = TARGET_STACK_MAX_BYTES;
	first_ns = s->copy.stopped_ns;
	rc = target_thread_copy(s->pid, tid, &s->copy);
	if (rc)
		return rc;
	walk_copy(s, tid);
	if (first_ns > s->copy.stopped_ns)
		s->copy.stopped_ns = first_ns;
	return 0;
}

static void take_one(struct thread_stacks *s, uint32_t tid, thread_stack_fn *tell, void *ctx)
{
	struct thread_stack stack = {.tid = tid, .name = s->name, .wait = s->wait.text,
				     .copy = s->never_stop ? NULL : &s->copy,
				     .frames = s->walker.stack.frames,
				     .addresses = s->addresses};
	uint32_t i;
	int rc;

	s->peek.status = PEEKED_NOTHING;
	s->copy.look = s->has_python ? peek : NULL;
	s->copy.ctx = s;
	if (s->has_python)
		s->inner = s->python.inner ? proc_pid_inner(tid) : tid;
	s->name[0] = '\0';
	rc = s->never_stop ? look_at(s, tid) : stop_and_copy(s, tid);
	if (rc) {
		s->refused += rc == ERR_ACCESS;
		s->stuck += rc == ERR_LIMIT;
		s->unseen += rc == ERR_BUSY;
		return;
	}
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

/* Why none of its threads may be stopped, or read. */
static int refusal(const struct thread_stacks *s, struct err *err)
{
	struct buf text = {0};
	const char *at;
	unsigned tracer = 0;

	if (s->never_stop)
		return err_set(err, ERR_ACCESS, "the threads of process %u may not be read: it "
			       "belongs to another user or is protected, or "
			       "kernel.yama.ptrace_scope forbids it; run as root", s->pid);
	if (proc_pid_load(s->pid, "status", 8192, &text) &&
	    (at = strstr(buf_text(&text), "\nTracerPid:")) != NULL)
		sscanf(at, " TracerPid: %u", &tracer);
	buf_free(&text);
	if (tracer)
		return err_set(err, ERR_ACCESS, "process %u is traced by process %u (a debugger, "
			       "strace): only one program at a time can stop its threads; "
			       "--no-stop reads them as they stand",
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
	s->refused = s->stuck = s->unseen = 0;
	s->sampling.code = 0;
	s->sampled_until_ns = os_now_ns() + ALL_SAMPLED_NS;
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
					  .stuck = s->stuck, .unseen = s->unseen,
					  .unseen_why = s->sampling.code ? s->sampling.text : "",
					  .longest_ns = s->longest_ns};
}
