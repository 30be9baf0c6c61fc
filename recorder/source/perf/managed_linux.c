#include "source/perf/managed_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "base/shares.h"
#include "base/table.h"
#include "managed/hotspot/hotspot.h"
#include "managed/python/python.h"
#include "managed/node/v8.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/peekers_linux.h"
#include "source/perf/state_linux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How soon learning is tried again: a JVM is ready 50 ms after its start. A try takes 2 ms. */
#define LEARN_SOON_NS (20 * NS_PER_MS)
#define LEARN_AGAIN_NS (150 * NS_PER_MS)
#define LEARN_LATER_NS (2 * NS_PER_SEC)
#define BEGINNING_NS NS_PER_SEC
/*
 * Where many programs are met at once on a machine that is busy, a try takes 10 ms. Rings fill
 * meanwhile, so tries take half of the time at most, and this long in one go.
 */
#define LEARN_BURST_NS (int64_t)(100 * NS_PER_MS)
#define STARTING_NS (10 * NS_PER_SEC)
#define FILE_BYTES 32u
#define PIECES_TOGETHER 128u                 /* read by one system call */
#define NAMES_KEEP_NS (10 * NS_PER_SEC)      /* after its end: events are in queues */

static const struct frame_reader *const all_readers[] = {&hotspot_reader, &python_reader,
							 &v8_reader, NULL};

const struct frame_reader *const *perf_managed_readers(bool no_node)
{
	static const struct frame_reader *const without_node[] = {&hotspot_reader, &python_reader,
								  NULL};

	return no_node ? without_node : all_readers;
}

struct perf_runtime {
	const struct frame_reader *reader;
	struct object *code;                 /* what it maps, a reference */
	char file[FILE_BYTES];               /* its base name */
	uint64_t base;
	uint32_t pid;                        /* of: */
	bool peeked;                         /* its frames are read at its samples */
	struct managed *managed;             /* NULL: not learned (yet) */
	struct managed_names *names;
	struct object *object;
	uint64_t first_ns, try_ns;           /* when learning was tried first; is tried again */
	uint64_t used_ns;                    /* of its last sample */
	struct share share;                  /* of the bytes that are known of it */
	bool refused;                        /* never */
};

/* The names of one object; the merge thread reads them. */
struct named {
	struct object *object;               /* a reference */
	struct managed_names *names;
	uint64_t dropped_ns;                 /* 0 = its process lives */
	struct share share;                  /* of the entries */
};

struct task_job {
	struct job job;
	uint32_t pid;
	struct managed_task *task;
};

struct perf_managed {
	struct frames *frames;
	struct proc_reader *reader;
	struct log *log;
	struct task_job *job;                /* idle; NULL = none */
	uint32_t pid;                        /* of the process that a task is run for */
	struct managed_host host;
	const struct frame_reader *const *readers;
	struct perf_peekers *peekers;        /* NULL = nobody peeks */
	uint32_t serials, npeeked;           /* targets so far, and now */
	uint32_t nobjects;                   /* so far: numbers of names begin anew in each */
	struct perf_runtime **known;         /* those that are learned */
	uint32_t nknown, known_room;
	uint64_t learned_ns;                 /* when something was, or was to be */
	int64_t learn_left_ns;               /* how long that may take; negative: it took longer */
	struct shares bytes;
	_Atomic uint64_t forgotten;
	bool no_room_logged;

	struct os_mutex *lock;               /* guards what follows */
	struct named *named;
	uint32_t nnamed, named_room;
	struct shares entries;
	char text[MANAGED_TEXT_MAX + 1], detail[MANAGED_TEXT_MAX + 1]; /* the merge thread's */
};

/* ---- running tasks --------------------------------------------------------------------------- */

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	return proc_pid_memory(((struct task_job *)ctx)->pid, address, to, n);
}

void perf_managed_pieces(uint32_t pid, struct managed_piece *pieces, size_t n)
{
	struct iovec here[PIECES_TOGETHER], there[PIECES_TOGETHER];
	size_t got;
	uint32_t k, i;

	while (n) {
		k = n < PIECES_TOGETHER ? (uint32_t)n : PIECES_TOGETHER;
		for (i = 0; i < k; i++) {
			here[i] = (struct iovec){pieces[i].to, pieces[i].n};
			there[i] = (struct iovec){(void *)(uintptr_t)pieces[i].address,
						  pieces[i].n};
		}
		got = proc_pid_pieces(pid, here, there, k);
		/* The first piece that is not there ends the call. */
		for (i = 0; i < k; i++) {
			pieces[i].got = got < pieces[i].n ? got : pieces[i].n;
			got -= pieces[i].got;
			if (pieces[i].got < pieces[i].n) {
				i++;
				break;
			}
		}
		pieces += i;
		n -= i;
	}
}

static void read_pieces(void *ctx, struct managed_piece *pieces, size_t n)
{
	perf_managed_pieces(((struct task_job *)ctx)->pid, pieces, n);
}

static void run_job(struct job *job)
{
	struct task_job *j = (struct task_job *)job;
	const struct managed_memory memory = {
		.read = read_memory, .read_pieces = read_pieces, .ctx = j};

	j->task->run(j->task, &memory);
}

static void free_job(struct job *job)
{
	struct task_job *j = (struct task_job *)job;

	if (j->task)
		j->task->free(j->task);
	free(j);
}

static struct task_job *idle_job(struct perf_managed *m)
{
	struct task_job *j = m->job;

	if (j) {
		job_again(&j->job);
		return j;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->job = (struct job){.run = run_job, .free = free_job,
			      .what = "the memory of a process"};
	job_init(&j->job);
	m->job = j;
	return j;
}

static bool run_task(void *ctx, struct managed_task *task)
{
	struct perf_managed *m = ctx;
	struct task_job *j = idle_job(m);

	if (!j) {
		task->free(task);
		return false;
	}
	j->pid = m->pid;
	j->task = task;
	if (!proc_reader_run(m->reader, m->pid, &j->job)) {
		m->job = NULL;
		return false;
	}
	j->task = NULL;
	return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool publish(struct perf_managed *m, struct perf_runtime *r)
{
	struct named named = {.object = r->object, .names = r->names,
			      .share = {.uid = r->share.uid}};
	bool done;

	os_mutex_lock(m->lock);
	done = !ARRAY_ROOM(m->named, m->named_room, m->nnamed + 1) &&
	       shares_take(&m->entries, &named.share, 1);
	if (done)
		m->named[m->nnamed++] = named;
	os_mutex_unlock(m->lock);
	return done;
}

static void retire(struct perf_managed *m, const struct perf_runtime *r, uint64_t now_ns)
{
	uint32_t i;

	os_mutex_lock(m->lock);
	for (i = 0; i < m->nnamed; i++)
		if (m->named[i].names == r->names)
			m->named[i].dropped_ns = now_ns ? now_ns : 1;
	os_mutex_unlock(m->lock);
}

static void free_named(struct perf_managed *m, struct named *n, uint64_t now_ns)
{
	shares_give_back(&m->entries, &n->share, n->share.used);
	managed_names_free(n->names);
	object_drop(n->object, now_ns);
}

/* Free the names of processes that were forgotten. */
static void look_at_names(struct perf_managed *m, uint64_t now_ns)
{
	uint32_t i;

	os_mutex_lock(m->lock);
	for (i = m->nnamed; i-- > 0;) {
		if (!m->named[i].dropped_ns || m->named[i].dropped_ns + NAMES_KEEP_NS > now_ns)
			continue;
		free_named(m, &m->named[i], now_ns);
		m->named[i] = m->named[--m->nnamed];
	}
	os_mutex_unlock(m->lock);
}

bool perf_managed_name(struct perf_managed *m, const struct frame *frame, struct symbol *out)
{
	uint32_t number = managed_number(frame->offset), i;
	bool found = false;

	if (frame->object->key.kind != OBJECT_JIT)
		return false;
	os_mutex_lock(m->lock);
	for (i = 0; i < m->nnamed && !found; i++)
		found = m->named[i].object == frame->object &&
			managed_names_get(m->named[i].names, number, m->text,
					  sizeof(m->text), m->detail);
	os_mutex_unlock(m->lock);
	if (found)
		*out = (struct symbol){.offset = (uint64_t)number << MANAGED_NUMBER_SHIFT,
				       .name = m->text,
				       .raw_name = m->detail[0] ? m->detail : NULL};
	return found;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void set_code(struct perf_runtime *r, struct object *code, uint64_t base)
{
	object_ref(code);
	if (r->code)
		object_drop(r->code, 0);
	r->code = code;
	r->base = base;
	snprintf(r->file, sizeof(r->file), "%s", code->name);
}

static struct perf_runtime *runtime_new(const struct frame_reader *reader, struct object *code,
					uint64_t base)
{
	struct perf_runtime *r = calloc(1, sizeof(*r));

	if (r) {
		r->reader = reader;
		set_code(r, code, base);
	}
	return r;
}

void perf_managed_map(struct perf_managed *m, struct perf_process *process, struct object *code,
		      uint64_t base)
{
	struct perf_runtime *r = process->runtime;
	const char *file = code->name;
	unsigned i;

	if (!m)
		return;
	/* A program that bears the runtime's name is mapped before its library. */
	if (r && !r->managed && strcmp(r->file, file) != 0 && r->reader->recognizes(file)) {
		set_code(r, code, base);
		r->refused = false;
		r->first_ns = r->try_ns = 0;
	}
	if (r)
		return;
	for (i = 0; m->readers[i] && !process->runtime; i++) {
		if (m->readers[i]->recognizes(file))
			process->runtime = runtime_new(m->readers[i], code, base);
	}
}

void perf_managed_inherit(struct perf_managed *m, struct perf_process *child,
			  const struct perf_process *parent)
{
	if (parent->runtime && !child->runtime)
		child->runtime = runtime_new(parent->runtime->reader, parent->runtime->code,
					      parent->runtime->base);
	(void)m;
}

/* Its names stay for a while, for samples that are queued. */
static void unlearn(struct perf_managed *m, struct perf_runtime *r, uint64_t now_ns)
{
	uint32_t i;

	retire(m, r, now_ns);
	if (r->peeked && m->peekers)         /* NULL: they have ended, with their targets */
		perf_peekers_remove(m->peekers, r->pid, now_ns);
	m->npeeked -= r->peeked;
	r->peeked = false;
	r->reader->forget(r->managed);
	r->managed = NULL;
	r->try_ns = now_ns + LEARN_LATER_NS;
	shares_give_back(&m->bytes, &r->share, r->share.used);
	for (i = 0; i < m->nknown; i++)
		if (m->known[i] == r)
			m->known[i--] = m->known[--m->nknown];
}

/* The one without a sample for longest, of a user; NULL = none but one that has some now. */
static struct perf_runtime *longest_idle(const struct perf_managed *m, uint32_t uid, bool any_user,
					 uint64_t now_ns)
{
	struct perf_runtime *found = NULL;
	uint32_t i;

	for (i = 0; i < m->nknown; i++)
		if ((any_user || m->known[i]->share.uid == uid) &&
		    m->known[i]->used_ns + NS_PER_SEC < now_ns &&
		    (!found || m->known[i]->used_ns < found->used_ns))
			found = m->known[i];
	return found;
}

static void forget_for_room(struct perf_managed *m, struct perf_runtime *r, uint64_t now_ns)
{
	unlearn(m, r, now_ns);
	atomic_fetch_add(&m->forgotten, 1);
	if (!m->no_room_logged)
		log_line(m->log, LOG_WARN,
			 "the code of all managed programs takes over %u MB, or that of one user "
			 "over %u MB: programs without samples for longest are forgotten, and "
			 "learned again when they run",
			 (unsigned)(MANAGED_TOTAL_BYTES >> 20),
			 (unsigned)(MANAGED_TOTAL_BYTES >> 21));
	m->no_room_logged = true;
}

/* Account for what a process holds; where that is too much, another one or itself has to go. */
static void hold(struct perf_managed *m, struct perf_runtime *r, uint64_t now_ns)
{
	uint64_t bytes = r->reader->bytes(r->managed) + managed_names_bytes(r->names);
	struct perf_runtime *idle;

	while (!shares_hold(&m->bytes, &r->share, bytes)) {
		idle = NULL;
		if (bytes <= MANAGED_PROGRAM_BYTES)
			idle = longest_idle(m, r->share.uid, false, now_ns);
		if (!idle && bytes <= MANAGED_PROGRAM_BYTES)
			idle = longest_idle(m, 0, true, now_ns);
		forget_for_room(m, idle ? idle : r, now_ns);
		if (!idle || idle == r)
			return;
	}
}

void perf_managed_look(struct perf_managed *m, uint64_t now_ns)
{
	struct perf_runtime *r;
	uint32_t i;

	look_at_names(m, now_ns);
	for (i = 0; i < m->nknown; i++) {
		r = m->known[i];
		if (r->used_ns + MANAGED_IDLE_NS < now_ns) {
			unlearn(m, r, now_ns);
		} else if (managed_names_nearly_full(r->names)) {
			unlearn(m, r, now_ns);
			r->try_ns = now_ns;
		} else {
			hold(m, r, now_ns);
		}
		/* Another one may have taken its place; it is looked at in a second. */
	}
}

uint64_t perf_managed_forgotten(const struct perf_managed *m)
{
	return atomic_load(&m->forgotten);
}

void perf_managed_forget(struct perf_managed *m, struct perf_process *process, uint64_t now_ns)
{
	struct perf_runtime *r = process->runtime;

	process->runtime = NULL;
	if (!r)
		return;
	if (r->managed)
		unlearn(m, r, now_ns);
	object_drop(r->code, now_ns);
	free(r);
}

/*
 * An object of its own for each table of names. Also of a process that was forgotten, where records
 * of it were lost, and is found again: by its pid and start it is the same one.
 */
static bool make_names(struct perf_managed *m, struct perf_process *process,
		       struct perf_runtime *r)
{
	const struct object_key key = {
		.kind = OBJECT_JIT, .pid = process->pid, .path = r->reader->object,
		.epoch = (uint32_t)hash_pair(process->start_ns,
					     (uint64_t)++m->nobjects << 32 | process->exec)};

	r->object = objects_get_for(m->frames, &key, process->pid, proc_pid_user);
	r->names = r->object ? managed_names_new() : NULL;
	if (r->names) {
		r->share.uid = r->object->shared ? r->object->uid : os_uid();
		return true;
	}
	if (r->object)
		object_drop(r->object, 0);
	return false;
}

static void say_refused(struct perf_managed *m, const struct perf_process *process,
			const struct perf_runtime *r, const struct err *err)
{
	log_line(m->log, LOG_WARN, "%s (%u): its %s frames have no names, because the reader of "
		 "these frames knows nothing of this program: %s", process_name(process->process),
		 process->pid, r->reader->name, err->text);
}

static uint64_t learn_again_ns(uint64_t since_ns)
{
	if (since_ns < BEGINNING_NS)
		return LEARN_SOON_NS;
	return since_ns < STARTING_NS ? LEARN_AGAIN_NS : LEARN_LATER_NS;
}

bool perf_managed_target(struct perf_managed *m, const struct perf_process *process,
			 struct python_target *out)
{
	const struct perf_runtime *r = process->runtime;

	if (!r || !r->managed || !r->reader->target)
		return false;
	*out = *r->reader->target(r->managed);
	out->pid = process->pid;
	out->serial = ++m->serials;
	out->inner = proc_pid_inner(process->pid) != process->pid;
	return true;
}

/* Have its frames read at each of its samples from now on, if that is how they are read. */
static void peek_at(struct perf_managed *m, const struct perf_process *process,
		    struct perf_runtime *r)
{
	struct python_target target;

	if (!m->peekers || !perf_managed_target(m, process, &target))
		return;
	r->pid = process->pid;
	r->peeked = perf_peekers_add(m->peekers, &target);
	m->npeeked += r->peeked;
}

/* Whether there is time to learn: what was not used for it of late. A long try is paid later. */
static bool may_learn(struct perf_managed *m, uint64_t now_ns)
{
	int64_t left_ns = m->learn_left_ns + (int64_t)(now_ns - m->learned_ns);

	m->learn_left_ns = left_ns < LEARN_BURST_NS ? left_ns : LEARN_BURST_NS;
	m->learned_ns = now_ns;
	return m->learn_left_ns > 0;
}

static const struct managed *twin_of(const struct perf_managed *m, const struct perf_runtime *r)
{
	uint32_t i;

	for (i = 0; i < m->nknown; i++)
		if (m->known[i]->reader == r->reader && m->known[i]->code == r->code)
			return m->known[i]->managed;
	return NULL;
}

static void learn(struct perf_managed *m, struct perf_process *process, uint64_t sample_ns)
{
	const struct managed_image image = {.base = process->runtime->base,
					    .file = process->runtime->file,
					    .twin = twin_of(m, process->runtime)};
	struct perf_runtime *r = process->runtime;
	uint64_t now_ns = os_now_ns();
	struct err err;
	int rc;

	/* A sample may be 100 ms old, and the program ready since. */
	if ((sample_ns < r->try_ns && now_ns < r->try_ns) || !may_learn(m, now_ns))
		return;
	r->first_ns = r->first_ns ? r->first_ns : now_ns;
	r->try_ns = now_ns + learn_again_ns(now_ns - r->first_ns);
	if (ARRAY_ROOM(m->known, m->known_room, m->nknown + 1) || !make_names(m, process, r))
		return;
	rc = r->reader->learn(&image, &m->host, r->names, &r->managed, &err);
	m->learned_ns = os_now_ns();
	m->learn_left_ns -= (int64_t)(m->learned_ns - now_ns);
	if (!rc && publish(m, r)) {
		r->used_ns = now_ns;
		m->known[m->nknown++] = r;
		peek_at(m, process, r);
		return;
	}
	if (!rc)
		r->reader->forget(r->managed);
	r->managed = NULL;
	managed_names_free(r->names);
	object_drop(r->object, now_ns);
	/* While a program starts, its tables are not relocated yet and look like nonsense. */
	r->refused = rc && rc != ERR_BUSY && now_ns - r->first_ns > STARTING_NS;
	if (r->refused)
		say_refused(m, process, r, &err);
}

bool perf_managed_begin(struct perf_managed *m, struct perf_process *process, uint64_t sample_ns)
{
	struct perf_runtime *r = process ? process->runtime : NULL;

	if (!r || r->refused)
		return false;
	m->pid = process->pid;
	if (!r->managed)
		learn(m, process, sample_ns);
	if (r->managed) {
		r->used_ns = sample_ns;
		r->reader->begin(r->managed, &m->host, sample_ns);
	}
	return r->managed != NULL;
}

bool perf_managed_find(struct perf_managed *m, const struct perf_process *process,
		       uint64_t address, struct frame_ref *ref, struct object **runtime)
{
	const struct perf_runtime *r = process->runtime;
	struct managed_place place = {.offset = MANAGED_NOWHERE};

	(void)m;
	if (!r || !r->managed)
		return false;
	if (!ref->object || ref->flags & FRAME_JIT || ref->object->key.kind == OBJECT_UNKNOWN)
		place.generated = true;
	else if (ref->object->key.kind == OBJECT_ELF && strcmp(ref->object->name, r->file) == 0)
		place.offset = ref->offset;
	if (!r->reader->owns(r->managed, address, &place))
		return false;
	*runtime = r->object;
	/* Offsets in its object are numbers of names, 0 = none: an address is no number. */
	if (place.offset == MANAGED_NOWHERE) {
		ref->object = r->object;
		ref->offset = 0;
	}
	return true;
}

enum unwind_result perf_managed_step(struct perf_managed *m, const struct perf_process *process,
				     struct unwind_frame *frame)
{
	const struct perf_runtime *r = process->runtime;

	return r->reader->step(r->managed, &m->host, frame);
}

bool perf_managed_is_peeked(const struct perf_process *process)
{
	return process->runtime && process->runtime->peeked;
}

bool perf_managed_place(struct perf_managed *m, struct perf_process *process,
			const struct python_peek *peek, struct unwind_stack *stack)
{
	struct perf_runtime *r = process->runtime;

	m->pid = process->pid;
	return r->reader->place(r->managed, &m->host, r->object, peek, stack);
}

void perf_managed_peek_by(struct perf_managed *m, struct perf_peekers *peekers)
{
	m->peekers = peekers;
}

uint32_t perf_managed_peeked(const struct perf_managed *m)
{
	return m->npeeked;
}

uint64_t perf_managed_gil(const struct perf_process *process)
{
	const struct perf_runtime *r = process->runtime;

	return r && r->managed && r->reader->target ? r->reader->target(r->managed)->gil : 0;
}

struct holder_task {
	struct managed_task base;
	struct python_target target;
	uint32_t tid;
};

static void run_holder(struct managed_task *task, const struct managed_memory *memory)
{
	struct holder_task *t = (struct holder_task *)task;

	t->tid = python_gil_holder(&t->target, memory);
}

static void free_holder(struct managed_task *task)
{
	free(task);
}

uint32_t perf_managed_gil_holder(struct perf_managed *m, const struct perf_process *process)
{
	struct holder_task *t;
	uint32_t tid = 0;

	if (!perf_managed_gil(process) || proc_pid_inner(process->pid) != process->pid ||
	    (t = calloc(1, sizeof(*t))) == NULL)
		return 0;
	t->base = (struct managed_task){.run = run_holder, .free = free_holder};
	t->target = *process->runtime->reader->target(process->runtime->managed);
	m->pid = process->pid;
	if (!run_task(m, &t->base))
		return 0;
	tid = t->tid;
	free(t);
	return tid;
}

/* Whether a constructor of the type is among these frames. */
static bool is_constructed(struct perf_runtime *r, const char *type,
			   const struct frame_ref *frames, uint32_t nframes)
{
	char wanted[MANAGED_TYPE_BYTES + 8], function[MANAGED_TYPE_BYTES + 8];
	uint32_t i;

	snprintf(wanted, sizeof(wanted), "%s.<init>", type);
	for (i = 0; i < nframes; i++)
		if (frames[i].object == r->object &&
		    managed_names_get(r->names, managed_number(frames[i].offset), function,
				      sizeof(function), NULL) && strcmp(function, wanted) == 0)
			return true;
	return false;
}

bool perf_managed_thrown(struct perf_managed *m, const struct perf_process *process,
			 uint64_t object, uint64_t time_ns, const struct frame_ref *frames,
			 uint32_t nframes, struct managed_thrown *out)
{
	struct perf_runtime *r = process->runtime;

	return r && r->managed && r->reader->thrown &&
	       r->reader->thrown(r->managed, &m->host, object, time_ns, out) &&
	       (!out->moved || is_constructed(r, out->type, frames, nframes));
}

/* ---- life ------------------------------------------------------------------------------------ */

int perf_managed_new(struct frames *frames, struct proc_reader *reader, struct log *log,
		     const struct frame_reader *const *readers, struct perf_managed **out,
		     struct err *err)
{
	struct perf_managed *m = calloc(1, sizeof(*m));

	if (m)
		m->lock = os_mutex_new();
	if (!m || !m->lock) {
		free(m);
		return err_memory(err, "for managed frames");
	}
	m->frames = frames;
	m->reader = reader;
	m->log = log;
	m->readers = readers ? readers : all_readers;
	shares_init(&m->bytes, MANAGED_TOTAL_BYTES, os_uid());
	m->bytes.program_max = MANAGED_PROGRAM_BYTES;
	shares_init(&m->entries, MANAGED_RUNTIMES_MAX, os_uid());
	m->host = (struct managed_host){.run = run_task, .ctx = m};
	*out = m;
	return 0;
}

void perf_managed_free(struct perf_managed *m)
{
	if (!m)
		return;
	while (m->nnamed)
		free_named(m, &m->named[--m->nnamed], 0);
	free(m->known);
	free(m->named);
	if (m->job)
		job_drop(&m->job->job);
	os_mutex_free(m->lock);
	free(m);
}
