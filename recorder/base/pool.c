#include "base/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ALONE_MIN_NS (50 * NS_PER_MS)        /* once late: perhaps the machine was just busy */
#define ALONE_NS (2 * NS_PER_SEC)            /* doubled up to this when it is late again */
#define ALONE_FORGET_NS (10 * NS_PER_SEC)
#define PATIENT_EACH 10u                     /* patience takes a tenth of the time at most */

struct worker {
	struct pool *pool;
	struct job *job;                     /* that it runs now */
	uint64_t since_ns;
	bool left_behind, has_begun;
	struct worker *next;
};

/* A subject that did not answer; the owner's. */
struct alone {
	uint64_t subject, until_ns, alone_ns;        /* remembered while the place is free */
	uint64_t timeout_ns;
	struct job *job;                     /* NULL = this place is free */
	bool stuck;                          /* and another thread works */
};

struct pool {
	char name[16];
	enum os_priority priority;
	unsigned nthreads;                   /* wanted */
	uint64_t stuck_ns;                   /* the owner's */
	uint64_t patience_ns, patient_ns;    /* from when on somebody may wait again */
	struct alone alone[POOL_ASKED_MAX];
	uint32_t nalone;

	struct os_mutex *lock;               /* guards what follows */
	struct os_cond *work, *changed;      /* a job to run; `awaited` is done, a thread ended */
	struct job *first, *last;
	struct worker *workers;
	const struct job *awaited;           /* by the owner; NULL = none */
	struct job *noticed;                 /* what pool_look() returned; one use of it */
	uint32_t queued, working, stuck;     /* working: threads that are not left behind */
	uint32_t users;                      /* the owner and each thread */
	bool closing;
	void (*begin)(void);
};

/* ---- jobs ------------------------------------------------------------------------------------ */

void job_init(struct job *job)
{
	atomic_store(&job->users, 1);
	atomic_store(&job->done, false);
	job->next = NULL;
}

void job_drop(struct job *job)
{
	if (job && atomic_fetch_sub(&job->users, 1) == 1)
		job->free(job);
}

void job_again(struct job *job)
{
	atomic_store(&job->done, false);
}

bool job_done(const struct job *job)
{
	return atomic_load_explicit(&job->done, memory_order_acquire);
}

static struct job *next_job(struct pool *p)
{
	struct job *job = p->first;

	if (!job)
		return NULL;
	p->first = job->next;
	p->queued--;
	return job;
}

/* ---- its threads ----------------------------------------------------------------------------- */

/* Under the lock, which this ends. */
static void drop_pool(struct pool *p)
{
	bool last = --p->users == 0;

	os_mutex_unlock(p->lock);
	if (!last)
		return;
	os_mutex_free(p->lock);
	os_cond_free(p->work);
	os_cond_free(p->changed);
	free(p);
}

/* Under the lock: whether this thread goes on. */
static bool goes_on(struct worker *w)
{
	struct pool *p = w->pool;

	if (w->left_behind && (p->closing || p->working >= p->nthreads))
		return false;
	if (w->left_behind) {
		w->left_behind = false;
		p->working++;
		p->stuck--;
	}
	while (!p->first && !p->closing)
		os_cond_wait(p->work, p->lock, UINT64_MAX);
	return !p->closing;
}

static void end_worker(struct worker *w)
{
	struct pool *p = w->pool;
	struct worker **at = &p->workers;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (w->left_behind)
		p->stuck--;
	else
		p->working--;
	free(w);
	os_cond_broadcast(p->changed);
	drop_pool(p);
}

static void worker_main(void *ctx)
{
	struct worker *w = ctx;
	struct pool *p = w->pool;
	void (*begin)(void);
	struct job *job;
	bool awaited;

	os_thread_priority(p->priority);
	os_mutex_lock(p->lock);
	while (goes_on(w)) {
		job = w->job = next_job(p);
		w->since_ns = os_now_ns();
		begin = w->has_begun ? NULL : p->begin;
		w->has_begun |= begin != NULL;
		os_mutex_unlock(p->lock);
		if (begin)
			begin();
		job->run(job);
		job->ran_ns = os_now_ns() - w->since_ns;
		os_mutex_lock(p->lock);
		w->job = NULL;
		atomic_store_explicit(&job->done, true, memory_order_release);
		awaited = p->awaited == job;
		os_mutex_unlock(p->lock);
		if (awaited)
			os_cond_broadcast(p->changed);
		job_drop(job);
		os_mutex_lock(p->lock);
	}
	end_worker(w);
}

/* Under the lock. */
static int start_worker(struct pool *p, struct err *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct os_thread *thread;
	int rc;

	if (!w)
		return err_memory(err, "while starting the %s thread", p->name);
	w->pool = p;
	rc = os_thread_start(p->name, worker_main, w, &thread, err);
	if (rc) {
		free(w);
		return rc;
	}
	os_thread_leave(thread);
	w->next = p->workers;
	p->workers = w;
	p->working++;
	p->users++;
	return 0;
}

/* ---- the owner ------------------------------------------------------------------------------- */

int pool_new(const char *name, unsigned nthreads, enum os_priority priority, struct pool **out,
	     struct err *err)
{
	struct pool *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (!p)
		return err_memory(err, "for the %s threads", name);
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->nthreads = nthreads;
	p->priority = priority;
	p->stuck_ns = POOL_STUCK_NS;
	p->users = 1;
	p->lock = os_mutex_new();
	p->work = os_cond_new();
	p->changed = os_cond_new();
	if (!p->lock || !p->work || !p->changed) {
		os_mutex_free(p->lock);
		os_cond_free(p->work);
		os_cond_free(p->changed);
		free(p);
		return err_memory(err, "for the %s threads", name);
	}
	os_mutex_lock(p->lock);
	while (!rc && p->working < nthreads)
		rc = start_worker(p, err);
	os_mutex_unlock(p->lock);
	if (rc)
		pool_free(p);
	else
		*out = p;
	return rc;
}

void pool_set_stuck(struct pool *p, uint64_t stuck_ns)
{
	p->stuck_ns = stuck_ns;
}

void pool_set_begin(struct pool *p, void (*begin)(void))
{
	os_mutex_lock(p->lock);
	p->begin = begin;
	os_mutex_unlock(p->lock);
}

void pool_set_patience(struct pool *p, uint64_t patience_ns)
{
	p->patience_ns = patience_ns;
}

void pool_free(struct pool *p)
{
	uint64_t until_ns = os_now_ns() + POOL_STUCK_NS, now_ns;
	struct job *job, *noticed;
	uint32_t i;

	if (!p)
		return;
	for (i = 0; i < POOL_ASKED_MAX; i++)
		job_drop(p->alone[i].job);
	os_mutex_lock(p->lock);
	p->closing = true;
	os_cond_broadcast(p->work);
	while (p->working && (now_ns = os_now_ns()) < until_ns)
		os_cond_wait(p->changed, p->lock, until_ns - now_ns);
	noticed = p->noticed;
	while ((job = next_job(p)) != NULL)
		job_drop(job);
	drop_pool(p);
	job_drop(noticed);
}

void pool_put(struct pool *p, struct job *job)
{
	atomic_fetch_add(&job->users, 1);
	job->next = NULL;
	os_mutex_lock(p->lock);
	if (p->first)
		p->last->next = job;
	else
		p->first = job;
	p->last = job;
	p->queued++;
	os_mutex_unlock(p->lock);
	/* After the lock: a thread that comes first would run at once, and wait for it. */
	os_cond_signal(p->work);
}

bool pool_wait(struct pool *p, const struct job *job, uint64_t timeout_ns)
{
	uint64_t start_ns = os_now_ns(), now_ns;

	os_mutex_lock(p->lock);
	p->awaited = job;
	while (!job_done(job) && (now_ns = os_now_ns()) - start_ns < timeout_ns)
		os_cond_wait(p->changed, p->lock, timeout_ns - (now_ns - start_ns));
	p->awaited = NULL;
	os_mutex_unlock(p->lock);
	return job_done(job);
}

/*
 * The job is done: whether its subject may be asked again. Not before its time: one that is just
 * slow would cost its time limit each time. A job that was quick, once it ran, does not blame it.
 */
static bool may_again(const struct pool *p, struct alone *a, uint64_t now_ns)
{
	bool quick = a->job->ran_ns < a->timeout_ns + p->patience_ns;

	if (quick)
		a->until_ns = 0;             /* nothing to remember */
	return quick || now_ns >= a->until_ns;
}

/* Whether the job of one that was late is done; the first to ask waits for it. */
static bool done_now(struct pool *p, const struct alone *a, uint64_t now_ns)
{
	if (job_done(a->job) || a->stuck || !p->patience_ns || now_ns < p->patient_ns)
		return job_done(a->job);
	p->patient_ns = now_ns + PATIENT_EACH * p->patience_ns;
	return pool_wait(p, a->job, p->patience_ns);
}

/* Whether the subject is left alone, or no thread works now; forgets those that answered. */
static bool is_alone(struct pool *p, uint64_t subject)
{
	uint64_t now_ns = p->nalone ? os_now_ns() : 0;
	bool alone = p->nalone == POOL_ASKED_MAX, done;
	uint32_t i;

	for (i = 0; i < POOL_ASKED_MAX && p->nalone; i++) {
		struct alone *a = &p->alone[i];

		if (!a->job)
			continue;
		done = done_now(p, a, now_ns);
		if (done && may_again(p, a, now_ns)) {
			job_drop(a->job);
			a->job = NULL;
			p->nalone--;
			continue;
		}
		alone |= a->subject == subject || (!a->stuck && !done);
	}
	return alone || (p->nalone && pool_stuck(p) >= POOL_STUCK_MAX);
}

/* Takes the owner's use of the job. */
static void leave_alone(struct pool *p, uint64_t subject, struct job *job, uint64_t timeout_ns)
{
	uint64_t now_ns = os_now_ns(), alone_ns = ALONE_MIN_NS;
	uint32_t i, place = POOL_ASKED_MAX;

	for (i = 0; i < POOL_ASKED_MAX; i++) {
		struct alone *a = &p->alone[i];

		if (a->job)
			continue;
		if (a->subject == subject && now_ns < a->until_ns + ALONE_FORGET_NS)
			alone_ns = a->alone_ns < ALONE_NS / 2 ? 2 * a->alone_ns : ALONE_NS;
		/* is_alone() saw a free place; its own one is the best. */
		if (place == POOL_ASKED_MAX || a->subject == subject)
			place = i;
	}
	p->alone[place] = (struct alone){
		.subject = subject, .until_ns = now_ns + alone_ns, .alone_ns = alone_ns,
		.timeout_ns = timeout_ns, .job = job};
	p->nalone++;
}

bool pool_ask(struct pool *p, uint64_t subject, struct job *job, uint64_t timeout_ns)
{
	if (is_alone(p, subject)) {
		job_drop(job);
		return false;
	}
	pool_put(p, job);
	/* At once: where all CPUs are busy, the answering thread runs on the one this frees. */
	if (pool_wait(p, job, timeout_ns))
		return true;
	leave_alone(p, subject, job, timeout_ns);
	return false;
}

/* Its thread is left behind: others are asked again. */
static void note_stuck(struct pool *p, const struct job *job)
{
	uint32_t i;

	for (i = 0; i < POOL_ASKED_MAX; i++)
		if (p->alone[i].job == job)
			p->alone[i].stuck = true;
}

const struct job *pool_look(struct pool *p, uint64_t now_ns)
{
	struct job *before;
	struct worker *w;

	os_mutex_lock(p->lock);
	before = p->noticed;
	p->noticed = NULL;
	for (w = p->workers; w; w = w->next) {
		if (w->job && !w->left_behind && now_ns >= w->since_ns + p->stuck_ns) {
			w->left_behind = true;
			p->working--;
			p->stuck++;
			p->noticed = w->job;
			atomic_fetch_add(&w->job->users, 1);
			break;
		}
	}
	/* Those left behind may have come back meanwhile; a thread that cannot start may later. */
	while (p->working < p->nthreads && p->stuck < POOL_STUCK_MAX)
		if (start_worker(p, NULL))
			break;
	os_mutex_unlock(p->lock);
	job_drop(before);
	if (p->noticed)
		note_stuck(p, p->noticed);
	return p->noticed;
}

uint32_t pool_queued(struct pool *p)
{
	uint32_t n;

	os_mutex_lock(p->lock);
	n = p->queued;
	os_mutex_unlock(p->lock);
	return n;
}

uint32_t pool_stuck(struct pool *p)
{
	uint32_t n;

	os_mutex_lock(p->lock);
	n = p->stuck;
	os_mutex_unlock(p->lock);
	return n;
}

bool pool_note(struct pool *p, const char *reads, char *out, size_t n)
{
	uint32_t stuck = pool_stuck(p);

	if (stuck)
		snprintf(out, n,
			 "%" PRIu32 " of at most %u threads that read %s hang, and %" PRIu32
			 " jobs wait: a file system or a process does not answer",
			 stuck, POOL_STUCK_MAX, reads, pool_queued(p));
	return stuck != 0;
}
