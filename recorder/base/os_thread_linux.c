#include "base/os.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * ioprio_set(2) has no wrapper and no header: class idle = 3, shifted by 13; who = 1, this thread.
 */
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_IDLE (3 << 13)
#define IOPRIO_NONE 0                    /* derived from the nice value */

struct os_thread {
	pthread_t id;
	os_thread_main *run;
	void *ctx;
	char name[16];
	_Atomic int tid;                 /* 0 = not running yet */
	_Atomic bool ended;              /* run() has returned */
	_Atomic bool shared;        /* freed by its end or os_thread_leave(), whichever is second */
	_Atomic int priority;            /* enum os_priority: what it was given last */
	unsigned nlocks;                 /* that it holds */
	bool is_asked;                   /* its priority is to be set when it holds none */
};

static _Thread_local struct os_thread *self;     /* NULL = not started by os_thread_start() */

static void *thread_main(void *arg)
{
	struct os_thread *thread = arg;

	self = thread;
	atomic_store(&thread->tid, gettid());
	pthread_setname_np(pthread_self(), thread->name);
	thread->run(thread->ctx);
	atomic_store(&thread->ended, true);
	if (atomic_exchange(&thread->shared, true))
		free(thread);
	return NULL;
}

int os_thread_start(const char *name, os_thread_main *run, void *ctx, struct os_thread **out,
		    struct err *err)
{
	struct os_thread *thread = calloc(1, sizeof(*thread));
	int rc;

	if (!thread)
		return err_memory(err, "while starting the %s thread", name);
	thread->run = run;
	thread->ctx = ctx;
	thread->priority = OS_PRIORITY_NORMAL;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	rc = pthread_create(&thread->id, NULL, thread_main, thread);
	if (rc) {
		free(thread);
		return err_os_code(err, rc, "cannot start the %s thread", name);
	}
	*out = thread;
	return 0;
}

void os_thread_join(struct os_thread *thread)
{
	if (!thread)
		return;
	pthread_join(thread->id, NULL);
	free(thread);
}

/* Not pthread_clockjoin_np(3), which thread sanitizers do not know. */
bool os_thread_join_within(struct os_thread *thread, uint64_t timeout_ns)
{
	uint64_t end_ns = os_now_ns() + timeout_ns;

	while (!atomic_load(&thread->ended)) {
		if (os_now_ns() >= end_ns)
			return false;
		os_sleep_ns(NS_PER_MS);
	}
	os_thread_join(thread);
	return true;
}

void os_thread_leave(struct os_thread *thread)
{
	pthread_detach(thread->id);
	if (atomic_exchange(&thread->shared, true))
		free(thread);
}

static const int nice_of[] = {-10, 0, 0, 10, 19};

/* Since 2.4 a Linux nice value belongs to a thread; tid 0 is the calling one. */
static void set_priority(int tid, enum os_priority priority)
{
	if (priority != OS_PRIORITY_LOW ||
	    setpriority(PRIO_PROCESS, (id_t)tid, nice_of[OS_PRIORITY_HIGH]) == 0)
		setpriority(PRIO_PROCESS, (id_t)tid, nice_of[priority]);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid,
		priority >= OS_PRIORITY_WRITER ? IOPRIO_IDLE : IOPRIO_NONE);
}

void os_thread_priority(enum os_priority priority)
{
	if (self)
		atomic_store(&self->priority, (int)priority);
	if (self && self->nlocks)
		self->is_asked = true;       /* set when it holds no lock */
	else
		set_priority(0, priority);
}

void os_thread_hurry(struct os_thread *thread)
{
	int tid = atomic_load(&thread->tid);

	atomic_store(&thread->priority, OS_PRIORITY_HIGH);
	if (tid)
		set_priority(tid, OS_PRIORITY_HIGH);
}

static bool load_of_thread(int tid, const char *name, char *out, size_t n)
{
	struct buf text = {0};
	char path[64];
	bool ok;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	ok = os_load(path, n - 1, &text, NULL) == 0 && text.len;
	if (ok)
		snprintf(out, n, "%s", buf_text(&text));
	buf_free(&text);
	return ok;
}

/* R, S, D, ... by proc(5); 0 = it has ended. */
static char state_of_thread(int tid)
{
	char stat[512], *state;

	if (!load_of_thread(tid, "stat", stat, sizeof(stat)) || !(state = strrchr(stat, ')')) ||
	    !state[1])
		return 0;
	return state[2];
}

uint64_t os_thread_cpu_ns(void)
{
	struct timespec used = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

bool os_thread_waits(const struct os_thread *thread, uint64_t *progress)
{
	int tid = atomic_load(&thread->tid);
	struct timespec used = {0};
	clockid_t clock;
	char state;

	if (pthread_getcpuclockid(thread->id, &clock) == 0)
		clock_gettime(clock, &used);
	*progress = (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
	state = tid ? state_of_thread(tid) : 0;
	return state && state != 'R';
}

/* Files of our own threads in /proc; proc(5). wchan is "0" for one that runs. */
void os_thread_state_text(const struct os_thread *thread, char out[OS_THREAD_WAITS_BYTES])
{
	int tid = thread ? atomic_load(&thread->tid) : gettid();
	char where[64] = "", state = state_of_thread(tid);

	snprintf(out, OS_THREAD_WAITS_BYTES, "has ended");
	if (!state)
		return;
	load_of_thread(tid, "wchan", where, sizeof(where));
	if (state == 'R')
		snprintf(out, OS_THREAD_WAITS_BYTES, "runs or waits for a CPU");
	else
		snprintf(out, OS_THREAD_WAITS_BYTES, "waits in the kernel (state %c%s%s)", state,
			 *where && *where != '0' ? ", " : "", *where != '0' ? where : "");
}

struct os_mutex {
	pthread_mutex_t m;
};

struct os_cond {
	pthread_cond_t c;
};

struct os_mutex *os_mutex_new(void)
{
	struct os_mutex *m = calloc(1, sizeof(*m));

	if (m)
		pthread_mutex_init(&m->m, NULL);
	return m;
}

void os_mutex_free(struct os_mutex *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->m);
	free(m);
}

/*
 * A thread that lowered itself while it holds a mutex would be preempted at once on a busy machine,
 * and keep those that wait for it, the merge thread among them, for as long as it waits for a CPU.
 */
static void set_asked(void)
{
	int priority;

	self->is_asked = false;
	do {
		priority = atomic_load(&self->priority);
		set_priority(0, (enum os_priority)priority);
	} while (priority != atomic_load(&self->priority));  /* hurried meanwhile */
}

void os_mutex_lock(struct os_mutex *m)
{
	if (self)
		self->nlocks++;
	pthread_mutex_lock(&m->m);
}

void os_mutex_unlock(struct os_mutex *m)
{
	pthread_mutex_unlock(&m->m);
	if (self && !--self->nlocks && self->is_asked)
		set_asked();
}

struct os_cond *os_cond_new(void)
{
	struct os_cond *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (!c)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->c, &attr);
	pthread_condattr_destroy(&attr);
	return c;
}

void os_cond_free(struct os_cond *c)
{
	if (!c)
		return;
	pthread_cond_destroy(&c->c);
	free(c);
}

void os_cond_signal(struct os_cond *c)
{
	pthread_cond_signal(&c->c);
}

void os_cond_broadcast(struct os_cond *c)
{
	pthread_cond_broadcast(&c->c);
}

bool os_cond_wait(struct os_cond *c, struct os_mutex *m, uint64_t timeout_ns)
{
	struct timespec until;
	uint64_t end_ns;

	if (self && self->is_asked)
		set_asked();                 /* it may sleep for long */
	if (timeout_ns == UINT64_MAX)
		return pthread_cond_wait(&c->c, &m->m) == 0;
	end_ns = os_now_ns() + timeout_ns;
	until.tv_sec = (time_t)(end_ns / NS_PER_SEC);
	until.tv_nsec = (long)(end_ns % NS_PER_SEC);
	return pthread_cond_timedwait(&c->c, &m->m, &until) != ETIMEDOUT;
}
