#include "source/thread_time.h"

#include "base/array.h"
#include "base/slots.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define BORN_NS (10 * 1000000ULL)            /* within this a new thread is first woken */
#define RECENT 64u                           /* threads that are found without the table */

enum state { STATE_UNKNOWN, STATE_ON, STATE_OFF };

struct stack {                               /* holds references */
	struct frame_ref *frames;
	uint32_t n, room;
};

struct kept {                                /* by thread_time_keep() */
	struct stack stack;
	uint64_t sum, last_sum;
	uint32_t number;                     /* 0 = none */
	uint8_t quality;
	bool disk;
};

struct timed_thread {
	uint32_t tid;
	uint8_t state, quality;
	bool ready;                          /* STATE_OFF: could run */
	bool disk, device;                   /* STATE_OFF: waits for a device: stack, reason */
	bool fresh;                          /* its stack is newer than its last switch */
	uint64_t mark_ns;                    /* up to here its time is accounted for */
	uint64_t born_ns;                    /* 0 = not known, or it has run since */
	uint64_t since_ns;                   /* start of the sums; 0 = they are empty */
	uint64_t sums[TIME_KINDS];           /* with its own stack */
	uint64_t rest[TIME_KINDS];           /* earlier sums, too small to be reported */
	struct stack own, waker;             /* waker: of the summed waits */
	struct kept *kept;                   /* THREAD_TIME_KEPT of them; NULL = none */
	uint64_t lock;                       /* that its stack waits for; 0 = none */
	uint64_t lock_ns;                    /* who has it since then is not known yet */
	uint32_t holder;                     /* when it was asked for last; 0 = none */
	struct frame_ref who;                /* the holder's name */
	uint32_t waiting;                    /* index in waiters, + 1; 0 = is not there */
	struct stack ran;                    /* of its last CPU sample, at ran_ns */
	uint64_t ran_ns, blocked_ns;         /* blocked_ns: until when it was blocked last */
	bool waker_known;                    /* of the wait that is running */
	bool told;                           /* parts of the running wait were reported */
};

struct thread_time {
	thread_time_put *put;
	void *ctx;
	struct slots slots;
	struct table by_tid;
	uint32_t recent[RECENT];             /* slot + 1, by the last bits of its tid; 0 = none */
	bool wakers;
	uint32_t nkept;
	uint64_t refused;
	uint32_t *waiters;                   /* slots of threads that wait for locks */
	uint32_t nwaiters, waiters_room;
	thread_time_holder *holder;          /* NULL = nobody knows */
	struct frame_ref held[STACK_MAX_FRAMES];
};

struct thread_time *thread_time_new(bool wakers, thread_time_put *put, void *ctx)
{
	struct thread_time *t = calloc(1, sizeof(*t));

	if (t && slots_init(&t->slots, sizeof(struct timed_thread), THREAD_TIME_MAX)) {
		free(t);
		return NULL;
	}
	if (t) {
		t->wakers = wakers;
		t->put = put;
		t->ctx = ctx;
	}
	return t;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool same_tid(const void *ctx, uint32_t value, const void *key)
{
	const struct thread_time *t = ctx;

	return ((struct timed_thread *)slots_get(&t->slots, value))->tid == *(const uint32_t *)key;
}

/* A switch and its wake-up ask five times for one of two threads. */
static struct timed_thread *find_thread(struct thread_time *t, uint32_t tid)
{
	uint32_t *recent = &t->recent[tid % RECENT], at;
	struct timed_thread *thread = *recent ? slots_get(&t->slots, *recent - 1) : NULL;

	if (thread && thread->tid == tid)
		return thread;
	at = table_find(&t->by_tid, hash_u64(tid), same_tid, t, &tid);
	if (at == TABLE_NONE)
		return NULL;
	*recent = at + 1;
	return slots_get(&t->slots, at);
}

/* The thread in a slot of the table; NULL = none. */
static struct timed_thread *thread_at(const struct thread_time *t, uint32_t i)
{
	uint32_t number = t->by_tid.slots[i].value;

	return number == TABLE_NONE ? NULL : slots_get(&t->slots, number);
}

static struct timed_thread *find_or_add(struct thread_time *t, uint32_t tid)
{
	struct timed_thread *thread = find_thread(t, tid);
	uint32_t number;

	if (thread)
		return thread;
	number = table_add_slot(&t->by_tid, hash_u64(tid), &t->slots, SLOTS_NONE);
	if (number == SLOTS_NONE) {
		t->refused++;
		return NULL;
	}
	thread = slots_get(&t->slots, number);
	thread->tid = tid;
	return thread;
}

static void drop_stack(struct stack *s, uint64_t now_ns)
{
	while (s->n)
		object_drop(s->frames[--s->n].object, now_ns);
}

static void keep_stack(struct stack *s, const struct frame_ref *frames, uint32_t n, uint64_t now_ns)
{
	uint32_t i;

	if (ARRAY_ROOM(s->frames, s->room, n))
		n = s->room;                 /* its root is cut off */
	/* Take the new references first: most objects are in both stacks. */
	for (i = 0; i < n; i++)
		object_ref(frames[i].object);
	drop_stack(s, now_ns);
	if (n)
		memcpy(s->frames, frames, n * sizeof(*frames));
	s->n = n;
}

static bool same_stack(const struct stack *s, const struct frame_ref *frames, uint32_t n)
{
	uint32_t i;

	if (s->n != n)
		return false;
	for (i = 0; i < n; i++)
		if (s->frames[i].object != frames[i].object ||
		    s->frames[i].offset != frames[i].offset ||
		    s->frames[i].flags != frames[i].flags)
			return false;
	return true;
}

static void free_stacks(struct timed_thread *thread, uint64_t now_ns)
{
	unsigned i;

	drop_stack(&thread->own, now_ns);
	drop_stack(&thread->waker, now_ns);
	drop_stack(&thread->ran, now_ns);
	for (i = 0; thread->kept && i < THREAD_TIME_KEPT; i++) {
		drop_stack(&thread->kept[i].stack, now_ns);
		free(thread->kept[i].stack.frames);
	}
	free(thread->own.frames);
	free(thread->waker.frames);
	free(thread->ran.frames);
	free(thread->kept);
}

/* The thread waits for a lock, or (0) no longer. */
static void set_lock(struct thread_time *t, struct timed_thread *thread, uint64_t lock)
{
	struct timed_thread *last;

	if (lock && !thread->waiting) {
		if (ARRAY_ROOM(t->waiters, t->waiters_room, t->nwaiters + 1))
			lock = 0;            /* its time is BLOCKED, then */
		else
			t->waiters[t->nwaiters++] = table_find(&t->by_tid, hash_u64(thread->tid),
							       same_tid, t, &thread->tid);
		thread->waiting = lock ? t->nwaiters : 0;
	} else if (!lock && thread->waiting) {
		last = slots_get(&t->slots, t->waiters[--t->nwaiters]);
		t->waiters[thread->waiting - 1] = t->waiters[t->nwaiters];
		last->waiting = thread->waiting;
		thread->waiting = 0;
	}
	thread->lock = lock;
}

static void forget_thread(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns)
{
	uint32_t tid = thread->tid;
	uint32_t number = table_find(&t->by_tid, hash_u64(tid), same_tid, t, &tid);

	set_lock(t, thread, 0);
	free_stacks(thread, now_ns);
	t->recent[tid % RECENT] = 0;
	table_remove(&t->by_tid, hash_u64(tid), number);
	slots_free_one(&t->slots, number);
}

void thread_time_free(struct thread_time *t)
{
	struct timed_thread *thread;
	uint32_t i;

	if (!t)
		return;
	for (i = 0; i < t->by_tid.nslots; i++) {
		thread = thread_at(t, i);
		if (thread)
			free_stacks(thread, UINT64_MAX - 1);
	}
	table_free(&t->by_tid);
	slots_free(&t->slots);
	free(t->waiters);
	free(t);
}

/* ---- reporting ------------------------------------------------------------------------------- */

static bool is_wait(unsigned kind)
{
	return kind == TIME_BLOCKED || kind == TIME_DISK;
}

/* What the holder of a lock did since somebody waits for it, in held. returns how many frames */
static uint32_t find_held(struct thread_time *t, const struct timed_thread *holder,
			  uint64_t since_ns, uint64_t now_ns, struct frame_ref who)
{
	const struct stack *s = NULL;
	uint64_t blocked_ns;
	uint32_t n = 0;

	if (holder) {
		/* Who is blocked while another thread waits does not get the lock: it has it. */
		blocked_ns = holder->state == STATE_OFF && !holder->ready ? now_ns
									    : holder->blocked_ns;
		if (holder->own.n && !holder->lock && blocked_ns > since_ns &&
		    blocked_ns > holder->ran_ns)
			s = &holder->own;
		else if (holder->ran_ns + THREAD_TIME_RAN_NS > since_ns)
			s = &holder->ran;
	}
	if (s && s->n) {
		n = s->n < STACK_MAX_FRAMES / 2 - 2 ? s->n : STACK_MAX_FRAMES / 2 - 2;
		memcpy(t->held, s->frames, n * sizeof(*s->frames));
	}
	if (who.object)
		t->held[n++] = who;
	return n;
}

/* Report what a thread has waited for a lock up to now, with the n frames in held. */
static void tell_locked(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns,
			uint32_t n)
{
	struct thread_time_piece piece = {
		.tid = thread->tid, .kind = TIME_LOCK, .end_ns = now_ns,
		.ns = thread->sums[TIME_LOCK] + thread->rest[TIME_LOCK],
		.frames = thread->own.frames, .nframes = thread->own.n,
		.quality = thread->quality, .waker = t->held, .nwaker = n};

	thread->sums[TIME_LOCK] = 0;
	thread->rest[TIME_LOCK] = piece.ns >= THREAD_TIME_LEAST_NS ? 0 : piece.ns;
	if (!thread->rest[TIME_LOCK])
		t->put(t->ctx, &piece);
}

/*
 * Report the sums; those below least_ns wait for more.
 *
 * goes_on  the sum of the waits is that of one that has not ended
 */
static void flush_sums_over(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns,
			    uint64_t least_ns, bool goes_on)
{
	struct thread_time_piece piece = {.tid = thread->tid,
					  .end_ns = now_ns,
					  .frames = thread->own.frames,
					  .nframes = thread->own.n,
					  .quality = thread->quality};
	unsigned i;

	if (thread->sums[TIME_LOCK] && thread->holder) {
		t->held[0] = thread->who;    /* what it did meanwhile is not known */
		tell_locked(t, thread, now_ns, thread->who.object != NULL);
	}
	for (i = 0; i < TIME_KINDS; i++) {
		piece.kind = (enum thread_time_kind)i;
		piece.waker = thread->waker.frames;
		piece.nwaker = is_wait(i) ? thread->waker.n : 0;
		piece.goes_on = is_wait(i) && goes_on;
		piece.ns = thread->sums[i] + thread->rest[i];
		/* Only a rest is left, and its stack is not known. */
		piece.nframes = thread->sums[i] && i != TIME_UNKNOWN ? thread->own.n : 0;
		thread->sums[i] = 0;
		thread->rest[i] = piece.ns >= least_ns ? 0 : piece.ns;
		if (piece.ns && piece.ns >= least_ns)
			t->put(t->ctx, &piece);
	}
	thread->told = goes_on;
	thread->since_ns = 0;
}

static void flush_sums(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns)
{
	flush_sums_over(t, thread, now_ns, THREAD_TIME_LEAST_NS, false);
}

static void add_time(struct timed_thread *thread, enum thread_time_kind kind, uint64_t now_ns)
{
	if (!thread->mark_ns)
		thread->mark_ns = now_ns;    /* known from now on */
	if (now_ns <= thread->mark_ns)
		return;
	if (!thread->since_ns)
		thread->since_ns = thread->mark_ns;
	if (kind == TIME_LOCK && !thread->sums[TIME_LOCK])
		thread->lock_ns = thread->mark_ns;
	thread->sums[kind] += now_ns - thread->mark_ns;
	thread->mark_ns = now_ns;
}

/* How a thread spends its time now, if no later call says otherwise. */
static enum thread_time_kind kind_now(const struct timed_thread *thread)
{
	if (thread->state != STATE_OFF)
		return TIME_UNKNOWN;
	if (thread->ready)
		return TIME_READIED;
	if (thread->lock)
		return TIME_LOCK;
	return thread->disk || thread->device ? TIME_DISK : TIME_BLOCKED;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void set_stack(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns,
		      bool disk, const struct frame_ref *frames, uint32_t nframes, uint8_t quality)
{
	/*
	 * Sums without frames wait for the stack with which the thread was switched out: this one.
	 */
	if (!same_stack(&thread->own, frames, nframes)) {
		if (thread->own.n || thread->state != STATE_OFF)
			flush_sums(t, thread, now_ns);
		keep_stack(&thread->own, frames, nframes, now_ns);
		thread->holder = 0;          /* if it waits for a lock, it is another wait */
	}
	thread->quality = quality;
	thread->fresh = true;
	thread->disk = disk;
	set_lock(t, thread, 0);
}

void thread_time_stack(struct thread_time *t, uint64_t now_ns, uint32_t tid, bool disk,
		       const struct frame_ref *frames, uint32_t nframes, uint8_t quality)
{
	struct timed_thread *thread = find_or_add(t, tid);

	if (thread)
		set_stack(t, thread, now_ns, disk, frames, nframes, quality);
}

uint32_t thread_time_keep(struct thread_time *t, uint64_t now_ns, uint32_t tid, unsigned place,
			  uint64_t sum)
{
	struct timed_thread *thread = find_thread(t, tid);
	struct kept *kept;
	bool again;

	if (thread && !thread->kept)
		thread->kept = calloc(THREAD_TIME_KEPT, sizeof(*thread->kept));
	if (!thread || !thread->kept)
		return 0;
	kept = &thread->kept[place];
	again = kept->last_sum == sum;
	kept->last_sum = sum;
	if (!again || (kept->sum == sum && kept->disk == thread->disk &&
		       same_stack(&kept->stack, thread->own.frames, thread->own.n)))
		return 0;
	keep_stack(&kept->stack, thread->own.frames, thread->own.n, now_ns);
	kept->sum = sum;
	kept->quality = thread->quality;
	kept->disk = thread->disk;
	t->nkept += THREAD_TIME_KEPT;
	return kept->number = (t->nkept | place) + 1;
}

void thread_time_repeat(struct thread_time *t, uint64_t now_ns, uint32_t tid, uint32_t number)
{
	struct timed_thread *thread = find_thread(t, tid);
	const struct kept *kept;

	if (!thread || !thread->kept || !number)
		return;
	kept = &thread->kept[(number - 1) % THREAD_TIME_KEPT];
	if (kept->number == number)
		set_stack(t, thread, now_ns, kept->disk, kept->stack.frames, kept->stack.n,
			  kept->quality);
}

void thread_time_lock(struct thread_time *t, uint32_t tid, uint64_t lock)
{
	struct timed_thread *thread = find_thread(t, tid);

	if (!thread)
		return;
	set_lock(t, thread, lock);
	if (!lock)
		thread->holder = 0;
}

void thread_time_born(struct thread_time *t, uint64_t now_ns, uint32_t tid)
{
	struct timed_thread *thread = find_thread(t, tid);

	/* An older thread had this tid, and its end was not seen. */
	if (thread)
		forget_thread(t, thread, now_ns);
	thread = find_or_add(t, tid);
	if (thread)
		thread->mark_ns = thread->born_ns = now_ns;
}

void thread_time_out(struct thread_time *t, uint64_t now_ns, uint32_t tid, enum thread_time_out how)
{
	struct timed_thread *thread = find_or_add(t, tid);

	if (!thread)
		return;
	/* A stack of an earlier time is not valid now. */
	if (!thread->fresh) {
		flush_sums(t, thread, now_ns);
		drop_stack(&thread->own, now_ns);
		thread->quality = 0;
		thread->disk = false;
		set_lock(t, thread, 0);
		thread->holder = 0;
	}
	add_time(thread, thread->state == STATE_ON ? TIME_CPU : TIME_UNKNOWN, now_ns);
	if (how == OUT_DEAD) {
		flush_sums_over(t, thread, now_ns, 0, false);
		forget_thread(t, thread, now_ns);
		return;
	}
	thread->state = how == OUT_UNKNOWN ? STATE_UNKNOWN : STATE_OFF;
	thread->ready = how == OUT_PREEMPTED;
	thread->device = how == OUT_DISK;
	thread->waker_known = thread->fresh = false;
	thread->mark_ns = now_ns;
	if (how != OUT_PREEMPTED)
		thread->blocked_ns = now_ns;
}

/* The waker of the wait that ends now; sums hold only waits with the same waker. */
static void end_wait(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns)
{
	if (thread->state == STATE_OFF && !thread->ready && !thread->waker_known &&
	    thread->waker.n) {
		flush_sums(t, thread, now_ns);
		drop_stack(&thread->waker, now_ns);
	}
	if (thread->state == STATE_OFF && !thread->ready)
		thread->blocked_ns = now_ns;
	add_time(thread, kind_now(thread), now_ns);
}

void thread_time_waker(struct thread_time *t, uint64_t now_ns, uint32_t tid,
		       const struct frame_ref *frames, uint32_t nframes)
{
	struct timed_thread *thread = find_thread(t, tid);

	if (!thread || thread->state != STATE_OFF || thread->ready || thread->lock)
		return;
	if (!same_stack(&thread->waker, frames, nframes)) {
		/* Other times may still wait for their stack. */
		if (thread->sums[TIME_BLOCKED] || thread->sums[TIME_DISK])
			flush_sums(t, thread, now_ns);
		keep_stack(&thread->waker, frames, nframes, now_ns);
	}
	thread->waker_known = true;
}

void thread_time_in(struct thread_time *t, uint64_t now_ns, uint32_t tid)
{
	struct timed_thread *thread = find_or_add(t, tid);

	if (!thread)
		return;
	end_wait(t, thread, now_ns);
	/* The last part says who ended the wait: alone, however short it is. */
	if (thread->told)
		flush_sums_over(t, thread, now_ns, 0, false);
	if (thread->since_ns && now_ns - thread->since_ns >= THREAD_TIME_SUM_NS &&
	    !thread->sums[TIME_LOCK])
		flush_sums(t, thread, now_ns);
	thread->state = STATE_ON;
	thread->fresh = false;
	thread->mark_ns = now_ns;
}

void thread_time_woken(struct thread_time *t, uint64_t now_ns, uint32_t tid)
{
	struct timed_thread *thread = find_or_add(t, tid);

	if (!thread || thread->state == STATE_ON || (thread->state == STATE_OFF && thread->ready))
		return;
	if (thread->born_ns && thread->mark_ns == thread->born_ns &&
	    now_ns - thread->born_ns < BORN_NS)
		thread->mark_ns = now_ns;    /* not missing: it was being created */
	end_wait(t, thread, now_ns);
	thread->state = STATE_OFF;
	thread->ready = true;
	thread->born_ns = 0;
	thread->mark_ns = now_ns;
}

static struct thread_time_piece cpu_piece(uint64_t now_ns, uint32_t tid,
					  const struct frame_ref *frames, uint32_t nframes,
					  uint8_t quality)
{
	return (struct thread_time_piece){.tid = tid, .kind = TIME_CPU, .end_ns = now_ns,
					  .frames = frames, .nframes = nframes,
					  .quality = quality};
}

void thread_time_sample(struct thread_time *t, uint64_t now_ns, uint32_t tid,
			const struct frame_ref *frames, uint32_t nframes, uint8_t quality)
{
	struct timed_thread *thread = find_or_add(t, tid);
	struct thread_time_piece piece = cpu_piece(now_ns, tid, frames, nframes, quality);

	if (!thread || thread->state == STATE_OFF)
		return;
	if (thread->state == STATE_UNKNOWN)
		add_time(thread, TIME_UNKNOWN, now_ns);
	if (thread->state == STATE_ON && now_ns > thread->mark_ns) {
		piece.ns = now_ns - thread->mark_ns + thread->rest[TIME_CPU];
		thread->rest[TIME_CPU] = piece.ns >= THREAD_TIME_LEAST_NS ? 0 : piece.ns;
		if (!thread->rest[TIME_CPU])
			t->put(t->ctx, &piece);
	}
	thread->state = STATE_ON;
	thread->mark_ns = now_ns;
}

void thread_time_mark(struct thread_time *t, uint64_t now_ns, uint32_t tid,
		      const struct frame_ref *frames, uint32_t nframes, uint8_t quality)
{
	struct timed_thread *thread = find_thread(t, tid);
	struct thread_time_piece piece = cpu_piece(now_ns, tid, frames, nframes, quality);

	if (!thread)
		return;
	/* Its last switch is missing: how it got here is not known, but this thread runs. */
	if (thread->state != STATE_ON)
		add_time(thread, TIME_UNKNOWN, now_ns);
	thread->state = STATE_ON;
	flush_sums_over(t, thread, now_ns, 0, false);
	if (now_ns > thread->mark_ns) {
		piece.ns = now_ns - thread->mark_ns;
		thread->mark_ns = now_ns;
		t->put(t->ctx, &piece);
	}
}

/* ---- locks ----------------------------------------------------------------------------------- */

uint64_t thread_time_sleeps_for(struct thread_time *t, uint32_t tid)
{
	const struct timed_thread *thread = find_thread(t, tid);

	return thread && thread->state == STATE_OFF && !thread->ready ? thread->lock : 0;
}

/* All that waits for the lock has waited for its holder up to now. next: who has it from now on */
static void tell_waiters(struct thread_time *t, uint64_t now_ns, uint64_t lock, uint32_t holder,
			 struct frame_ref who, uint32_t next)
{
	const struct timed_thread *had = find_thread(t, holder);
	struct timed_thread *thread;
	uint32_t i;

	for (i = 0; i < t->nwaiters; i++) {
		thread = slots_get(&t->slots, t->waiters[i]);
		if (thread->lock != lock || thread->tid == holder)
			continue;
		if (thread->state == STATE_OFF && !thread->ready)
			add_time(thread, TIME_LOCK, now_ns);
		if (thread->sums[TIME_LOCK])
			tell_locked(t, thread, now_ns,
				    find_held(t, had, thread->lock_ns, now_ns, who));
		thread->holder = next;
		thread->who = who;
	}
}

void thread_time_released(struct thread_time *t, uint64_t now_ns, uint64_t lock, uint32_t holder,
			  struct frame_ref who)
{
	tell_waiters(t, now_ns, lock, holder, who, 0);
}

void thread_time_holds(struct thread_time *t, uint64_t now_ns, uint64_t lock, uint32_t holder,
		       struct frame_ref who)
{
	tell_waiters(t, now_ns, lock, holder, who, holder);
}

void thread_time_ask(struct thread_time *t, thread_time_holder *holder)
{
	t->holder = holder;
}

void thread_time_ran(struct thread_time *t, uint64_t now_ns, uint32_t tid,
		     const struct frame_ref *frames, uint32_t nframes)
{
	struct timed_thread *thread = find_thread(t, tid);

	if (!thread)
		return;
	if (!same_stack(&thread->ran, frames, nframes))
		keep_stack(&thread->ran, frames, nframes, now_ns);
	thread->ran_ns = now_ns;
}

static void ask_holder(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns)
{
	struct frame_ref who = {.object = NULL};
	uint32_t holder = t->holder ? t->holder(t->ctx, thread->tid, &who) : 0;

	if (!holder || holder == thread->tid)
		return;
	tell_locked(t, thread, now_ns,
		    find_held(t, find_thread(t, holder), thread->lock_ns, now_ns, who));
	thread->holder = holder;
	thread->who = who;
}

void thread_time_look_at_locks(struct thread_time *t, uint64_t now_ns)
{
	struct timed_thread *thread;
	uint32_t i;

	for (i = 0; i < t->nwaiters; i++) {
		thread = slots_get(&t->slots, t->waiters[i]);
		if (thread->sums[TIME_LOCK] && thread->lock_ns + THREAD_TIME_LOOK_NS <= now_ns)
			ask_holder(t, thread, now_ns);
	}
}

/*
 * At a tick: nobody has released the lock yet.
 *
 * returns  the time that is told later
 */
static uint64_t tick_lock(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns)
{
	uint64_t left = thread->sums[TIME_LOCK] + thread->rest[TIME_LOCK];

	if (!thread->sums[TIME_LOCK])
		return 0;
	if (now_ns - thread->lock_ns < THREAD_TIME_SUM_NS) {
		thread->sums[TIME_LOCK] = thread->rest[TIME_LOCK] = 0;
		return left;
	}
	ask_holder(t, thread, now_ns);
	return 0;
}

static void tick_thread(struct thread_time *t, struct timed_thread *thread, uint64_t now_ns)
{
	bool waits = t->wakers && thread->state == STATE_OFF && !thread->ready && !thread->lock;
	uint64_t left, left_ns;

	/* The waker of a running wait is not known yet; those of earlier ones are. */
	if (waits && (thread->waker.n || thread->sums[TIME_BLOCKED] || thread->sums[TIME_DISK])) {
		flush_sums_over(t, thread, now_ns, 0, false);
		drop_stack(&thread->waker, now_ns);
	}
	if (thread->state != STATE_ON)
		add_time(thread, kind_now(thread), now_ns);
	left = tick_lock(t, thread, now_ns);
	left_ns = thread->lock_ns;
	flush_sums_over(t, thread, now_ns, 0, waits);
	thread->sums[TIME_LOCK] = left;
	thread->since_ns = left ? left_ns : 0;
}

void thread_time_tick(struct thread_time *t, uint64_t now_ns, bool (*gone)(void *ctx, uint32_t tid))
{
	uint32_t i = 0;

	while (i < t->by_tid.nslots) {
		struct timed_thread *thread = thread_at(t, i);

		if (thread)
			tick_thread(t, thread, now_ns);
		if (thread && gone(t->ctx, thread->tid))
			forget_thread(t, thread, now_ns);  /* another thread may take its place */
		else
			i++;
	}
}

void thread_time_unseen(struct thread_time *t, uint32_t tid)
{
	struct timed_thread *thread = find_thread(t, tid);

	if (thread && thread->state == STATE_ON)
		thread->state = STATE_UNKNOWN;
}

void thread_time_lost(struct thread_time *t, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < t->by_tid.nslots; i++) {
		struct timed_thread *thread = thread_at(t, i);

		if (!thread)
			continue;
		/* What comes later is not the end of the wait that was told. */
		if (thread->told)
			add_time(thread, TIME_UNKNOWN, now_ns);
		flush_sums_over(t, thread, now_ns, 0, false);
		drop_stack(&thread->own, now_ns);
		drop_stack(&thread->waker, now_ns);
		thread->state = STATE_UNKNOWN;
		thread->fresh = false;
		set_lock(t, thread, 0);
	}
}

uint32_t thread_time_threads(const struct thread_time *t)
{
	return t->slots.used;
}

uint64_t thread_time_refused(const struct thread_time *t)
{
	return t->refused;
}
