#include "source/perf/managed_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "base/table.h"
#include "managed/hotspot/hotspot.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/state_linux.h"

#include <stdlib.h>
#include <string.h>

/* How soon learning is tried again: a JVM is ready 50 ms after its start. A try takes 2 ms. */
#define LEARN_SOON_NS (20 * NS_PER_MS)
#define LEARN_AGAIN_NS (150 * NS_PER_MS)
#define LEARN_LATER_NS (2 * NS_PER_SEC)
#define BEGINNING_NS NS_PER_SEC
#define STARTING_NS (10 * NS_PER_SEC)
#define NAMES_KEEP_NS (10 * NS_PER_SEC)      /* after its end: events are in queues */
#define RUNTIMES_MAX 1024u

static const struct frame_reader *const frame_readers[] = {&hotspot_reader, NULL};

struct perf_runtime {
	const struct frame_reader *reader;
	uint64_t base;
	struct managed *managed;             /* NULL: not learned (yet) */
	struct managed_names *names;
	struct object *object;
	uint64_t first_ns, try_ns;           /* when learning was tried first; is tried again */
	bool refused;                        /* never */
};

/* The names of one object; the merge thread reads them. */
struct named {
	struct object *object;               /* a reference */
	struct managed_names *names;
	uint64_t dropped_ns;                 /* 0 = its process lives */
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

	struct os_mutex *lock;               /* guards what follows */
	struct named *named;
	uint32_t nnamed, named_room;
	char text[MANAGED_TEXT_MAX + 1];     /* the merge thread's */
};

/* ---- running tasks --------------------------------------------------------------------------- */

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	return proc_pid_memory(((struct task_job *)ctx)->pid, address, to, n);
}

static void run_job(struct job *job)
{
	struct task_job *j = (struct task_job *)job;
	const struct managed_memory memory = {.read = read_memory, .ctx = j};

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
	bool done;

	os_mutex_lock(m->lock);
	done = m->nnamed < RUNTIMES_MAX && !ARRAY_ROOM(m->named, m->named_room, m->nnamed + 1);
	if (done)
		m->named[m->nnamed++] = (struct named){.object = r->object, .names = r->names};
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

static void free_named(struct named *n, uint64_t now_ns)
{
	managed_names_free(n->names);
	object_drop(n->object, now_ns);
}

void perf_managed_look(struct perf_managed *m, uint64_t now_ns)
{
	uint32_t i;

	os_mutex_lock(m->lock);
	for (i = m->nnamed; i-- > 0;) {
		if (!m->named[i].dropped_ns || m->named[i].dropped_ns + NAMES_KEEP_NS > now_ns)
			continue;
		free_named(&m->named[i], now_ns);
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
			managed_names_get(m->named[i].names, number, m->text, sizeof(m->text));
	os_mutex_unlock(m->lock);
	if (found)
		*out = (struct symbol){.offset = (uint64_t)number << MANAGED_NUMBER_SHIFT,
				       .name = m->text};
	return found;
}

/* ---- processes ------------------------------------------------------------------------------- */

static struct perf_runtime *runtime_new(const struct frame_reader *reader, uint64_t base)
{
	struct perf_runtime *r = calloc(1, sizeof(*r));

	if (r) {
		r->reader = reader;
		r->base = base;
	}
	return r;
}

void perf_managed_map(struct perf_managed *m, struct perf_process *process, const char *file,
		      uint64_t base)
{
	unsigned i;

	if (process->runtime)
		return;
	for (i = 0; frame_readers[i] && !process->runtime; i++) {
		if (frame_readers[i]->recognizes(file))
			process->runtime = runtime_new(frame_readers[i], base);
	}
	(void)m;
}

void perf_managed_inherit(struct perf_managed *m, struct perf_process *child,
			  const struct perf_process *parent)
{
	if (parent->runtime && !child->runtime)
		child->runtime = runtime_new(parent->runtime->reader, parent->runtime->base);
	(void)m;
}

void perf_managed_forget(struct perf_managed *m, struct perf_process *process, uint64_t now_ns)
{
	struct perf_runtime *r = process->runtime;

	process->runtime = NULL;
	if (!r)
		return;
	if (r->managed) {
		retire(m, r, now_ns);
		r->reader->forget(r->managed);
	}
	free(r);
}

static bool make_names(struct perf_managed *m, struct perf_process *process,
		       struct perf_runtime *r)
{
	const struct object_key key = {
		.kind = OBJECT_JIT, .pid = process->pid, .path = "[java]",
		.epoch = (uint32_t)hash_pair(process->start_ns, process->exec)};

	r->object = objects_get_for(m->frames, &key, process->pid, proc_pid_user);
	r->names = r->object ? managed_names_new() : NULL;
	if (r->names)
		return true;
	if (r->object)
		object_drop(r->object, 0);
	return false;
}

static void say_refused(struct perf_managed *m, const struct perf_process *process,
			const struct perf_runtime *r, const struct err *err)
{
	log_line(m->log, LOG_WARN, "%s (%u): its Java frames have no names, because %s knows "
		 "nothing of this JVM: %s", process_name(process->process), process->pid,
		 r->reader->name, err->text);
}

static uint64_t learn_again_ns(uint64_t since_ns)
{
	if (since_ns < BEGINNING_NS)
		return LEARN_SOON_NS;
	return since_ns < STARTING_NS ? LEARN_AGAIN_NS : LEARN_LATER_NS;
}

static void learn(struct perf_managed *m, struct perf_process *process, uint64_t now_ns)
{
	const struct managed_image image = {.base = process->runtime->base};
	struct perf_runtime *r = process->runtime;
	struct err err;
	int rc;

	r->first_ns = r->first_ns ? r->first_ns : now_ns;
	r->try_ns = now_ns + learn_again_ns(now_ns - r->first_ns);
	if (!make_names(m, process, r))
		return;
	rc = r->reader->learn(&image, &m->host, r->names, &r->managed, &err);
	if (!rc && publish(m, r))
		return;
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
	if (!r->managed && sample_ns >= r->try_ns)
		learn(m, process, os_now_ns());
	if (r->managed)
		r->reader->begin(r->managed, &m->host, sample_ns);
	return r->managed != NULL;
}

bool perf_managed_find(struct perf_managed *m, const struct perf_process *process,
		       uint64_t address, struct frame_ref *ref)
{
	const struct perf_runtime *r = process->runtime;

	(void)m;
	if (!r || !r->managed || !r->reader->owns(r->managed, address))
		return false;
	ref->object = r->object;
	return true;
}

enum unwind_result perf_managed_step(struct perf_managed *m, const struct perf_process *process,
				     struct unwind_frame *frame)
{
	const struct perf_runtime *r = process->runtime;

	return r->reader->step(r->managed, &m->host, frame);
}

/* ---- life ------------------------------------------------------------------------------------ */

int perf_managed_new(struct frames *frames, struct proc_reader *reader, struct log *log,
		     struct perf_managed **out, struct err *err)
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
	m->host = (struct managed_host){.run = run_task, .ctx = m};
	*out = m;
	return 0;
}

void perf_managed_free(struct perf_managed *m)
{
	if (!m)
		return;
	while (m->nnamed)
		free_named(&m->named[--m->nnamed], 0);
	free(m->named);
	if (m->job)
		job_drop(&m->job->job);
	os_mutex_free(m->lock);
	free(m);
}
