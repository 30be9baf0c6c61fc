#include "source/perf/peekers_linux.h"

#include "base/os.h"
#include "base/table.h"
#include "managed/python/code.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/managed_linux.h"
#include "source/perf/program_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 1024u
#define PROBES_MAX 8u                        /* places in which a target may be */
#define RETIRED_MAX 256u
#define RETIRED_NS (2 * NS_PER_SEC)
#define RESULT_WORDS (32u << 10)             /* 256 KiB; a power of two */
#define RESULT_HEAD_WORDS 3u
#define SPOT_WORDS 4u
#define NAMED_WORDS (1 + PYTHON_NAMED_BYTES / 8)
#define HEADER_BYTES 48u                     /* of a sample: header, id, ip, pid, tid, time, cpu */

/* ---- which processes ------------------------------------------------------------------------- */

struct place {
	_Atomic uint32_t pid;                /* 0 = empty */
	_Atomic(struct python_target *) target;
};

struct targets {
	_Atomic uint32_t users;
	struct place places[PEEK_TARGETS];
};

struct retired {
	struct python_target *target;
	uint64_t at_ns;
};

/* ---- a peeker -------------------------------------------------------------------------------- */

/* Shared by its thread and the owner; a thread that hangs keeps it. */
struct peeker {
	_Atomic uint32_t users;
	struct targets *targets;
	unsigned cpu;
	int fd, stop_fd;                     /* of the ring; readable = end */
	struct perf_wake by_program;         /* what it waits for; closed = the ring */
	const void *map;
	size_t page_bytes, data_bytes;
	uint64_t at;                         /* the next record, the thread's */
	_Atomic uint64_t passed;             /* records before it have their results */
	_Atomic bool stopping, fifo;
	_Atomic uint64_t busy_ns;            /* since when it reads; 0 = it does not */
	_Atomic uint32_t busy_pid;
	_Atomic uint64_t peeks, ns, calls;
	struct os_wake *wake;                /* the source's */
	bool woken;
	uint32_t pid;                        /* of the process that it reads */
	struct python_threads threads;
	struct python_seen seen;
	struct python_peek peek;
	_Atomic uint64_t head, tail;         /* of the results, in words */
	uint64_t words[RESULT_WORDS];
};

struct one {                                 /* CPU */
	struct peeker *peeker;               /* NULL = none */
	struct os_thread *thread;
	const void *ring;                    /* the owner's mapping of the ring that it follows */
	struct os_wake *stop;
};

struct perf_peekers {
	struct os_wake *wake;
	struct log *log;
	struct targets *targets;
	const struct perf_program *program;  /* NULL = the kernel refuses */
	struct one cpus[CPUS_MAX];
	unsigned ncpus;
	struct retired retired[RETIRED_MAX];
	uint32_t nretired;
	_Atomic uint32_t running, abandoned;
	_Atomic bool fifo;
	_Atomic uint64_t peeks, ns, calls;   /* of all, as of the last look */
};

static void drop_targets(struct targets *t)
{
	uint32_t i;

	if (!t || atomic_fetch_sub(&t->users, 1) != 1)
		return;
	for (i = 0; i < PEEK_TARGETS; i++)
		free(atomic_load(&t->places[i].target));
	free(t);
}

static void drop_peeker(struct peeker *k)
{
	if (!k || atomic_fetch_sub(&k->users, 1) != 1)
		return;
	if (k->map)
		munmap((void *)(uintptr_t)k->map, k->page_bytes + k->data_bytes);
	if (k->fd >= 0)
		close(k->fd);
	if (k->stop_fd >= 0)
		close(k->stop_fd);
	perf_wake_close(&k->by_program);
	drop_targets(k->targets);
	free(k);
}

static bool find_target(const struct targets *t, uint32_t pid, struct python_target *out)
{
	uint32_t first = (uint32_t)hash_u64(pid), i;

	for (i = 0; pid && i < PROBES_MAX; i++) {
		const struct place *p = &t->places[(first + i) % PEEK_TARGETS];
		const struct python_target *target;

		if (atomic_load_explicit(&p->pid, memory_order_acquire) != pid)
			continue;
		target = atomic_load_explicit(&p->target, memory_order_acquire);
		if (!target || target->pid != pid)
			continue;
		*out = *target;
		return true;
	}
	return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	struct peeker *k = ctx;

	atomic_fetch_add_explicit(&k->calls, 1, memory_order_relaxed);
	return proc_pid_memory(k->pid, address, to, n);
}

static void read_memory_pieces(void *ctx, struct managed_piece *pieces, size_t n)
{
	struct peeker *k = ctx;

	atomic_fetch_add_explicit(&k->calls, 1, memory_order_relaxed);
	perf_managed_pieces(k->pid, pieces, n);
}

static bool is_late(const struct peeker *k, uint64_t sample_ns)
{
	uint64_t lag_ns = atomic_load_explicit(&k->fifo, memory_order_relaxed)
				  ? PEEK_LAG_NS : PEEK_LAG_NICE_NS;

	return os_now_ns() > sample_ns + lag_ns;
}

static void put_result(struct peeker *k, uint64_t position)
{
	const struct python_peek *peek = &k->peek;
	uint64_t at = atomic_load_explicit(&k->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&k->tail, memory_order_acquire);
	uint64_t need = RESULT_HEAD_WORDS + (uint64_t)peek->n * SPOT_WORDS +
			(uint64_t)peek->nnamed * NAMED_WORDS;
	uint64_t text[PYTHON_NAMED_BYTES / 8];
	uint32_t i, w;

	if (at - tail + need > RESULT_WORDS)
		return;                      /* the sample is late, then */
#define PUT(v) (k->words[at++ % RESULT_WORDS] = (v))
	PUT(need);
	PUT(position);
	PUT((uint64_t)peek->has_gil << 63 | (uint64_t)peek->status << 48 |
	    (uint64_t)peek->nnamed << 32 | peek->n);
	for (i = 0; i < peek->n; i++) {
		const struct python_spot *s = &peek->spots[i];

		PUT(s->code);
		PUT(s->stamp);
		PUT(s->anchor);
		PUT((uint64_t)(uint32_t)s->position << 1 | s->last);
	}
	for (i = 0; i < peek->nnamed; i++) {
		memcpy(text, peek->named[i].text, sizeof(text));
		PUT((uint64_t)peek->named[i].spot << 32 | (uint32_t)peek->named[i].first_line);
		for (w = 0; w < PYTHON_NAMED_BYTES / 8; w++)
			PUT(text[w]);
	}
#undef PUT
	atomic_store_explicit(&k->head, at, memory_order_release);
}

/* Another number for each namespace: a file of /proc has it, which never waits. */
static uint32_t inner_tid(const struct python_target *t, uint32_t tid)
{
	char name[48];
	struct buf text = {0};
	uint32_t inner = 0;
	const char *line;

	if (!t->inner)
		return tid;
	snprintf(name, sizeof(name), "task/%u/status", tid);
	if (proc_pid_load(t->pid, name, 8192, &text) &&
	    (line = strstr(buf_text(&text), "\nNSpid:")) != NULL) {
		size_t n = strcspn(line + 1, "\n") + 1;

		while (n && line[n - 1] >= '0' && line[n - 1] <= '9')
			n--;
		inner = (uint32_t)strtoul(line + n, NULL, 10);
	}
	buf_free(&text);
	return inner;
}

static void peek_at(struct peeker *k, const struct python_target *t, uint32_t tid,
		    uint64_t sample_ns)
{
	const struct managed_memory memory = {
		.read = read_memory, .read_pieces = read_memory_pieces, .ctx = k};
	struct python_thread *thread;
	bool searched, again;

	k->peek.n = k->peek.nnamed = 0;
	k->peek.status = PEEKED_LATE;
	if (is_late(k, sample_ns))
		return;
	for (again = false;; again = true) {
		thread = python_find_thread(t, &memory, inner_tid(t, tid), &k->threads, again,
					    &searched);
		k->peek.n = k->peek.nnamed = 0;
		k->peek.status = PEEKED_LATE;
		if ((searched || t->inner) && is_late(k, sample_ns))
			return;
		python_peek(t, &memory, thread, &k->threads, &k->peek);
		if (k->peek.status != PEEKED_OTHER || again)
			break;
	}
	python_name_new(t, &memory, &k->seen, &k->peek);
}

static void take_sample(struct peeker *k, const uint8_t header[HEADER_BYTES])
{
	uint32_t pid, tid;
	uint64_t time_ns, begin_ns;
	struct python_target target;

	memcpy(&pid, header + 24, sizeof(pid));
	memcpy(&tid, header + 28, sizeof(tid));
	memcpy(&time_ns, header + 32, sizeof(time_ns));
	if (!find_target(k->targets, pid, &target))
		return;
	begin_ns = os_now_ns();
	k->pid = pid;
	atomic_store(&k->busy_pid, pid);
	atomic_store(&k->busy_ns, begin_ns);
	peek_at(k, &target, tid, time_ns);
	atomic_store(&k->busy_ns, 0);
	put_result(k, k->at);
	atomic_fetch_add_explicit(&k->peeks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&k->ns, os_now_ns() - begin_ns, memory_order_relaxed);
}

static void copy_out(const struct peeker *k, uint64_t at, uint8_t *to, size_t n)
{
	const uint8_t *data = (const uint8_t *)k->map + k->page_bytes;
	size_t from = (size_t)(at & (k->data_bytes - 1)), part = k->data_bytes - from;

	part = part < n ? part : n;
	memcpy(to, data + from, part);
	memcpy(to + part, data, n - part);
}

/* Look at what has come since the last time. */
static void take_records(struct peeker *k)
{
	const struct perf_event_mmap_page *page = k->map;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	uint8_t bytes[HEADER_BYTES];
	struct perf_event_header header;

	/* The source did not wait any longer. */
	if (k->at < tail)
		k->at = tail;
	while (k->at < head && !atomic_load(&k->stopping)) {
		copy_out(k, k->at, bytes, sizeof(header));
		memcpy(&header, bytes, sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 || header.size > head - k->at) {
			k->at = head;
			break;
		}
		if (header.type == PERF_RECORD_SAMPLE && header.size >= HEADER_BYTES) {
			copy_out(k, k->at, bytes, sizeof(bytes));
			take_sample(k, bytes);
		}
		k->at += header.size;
		atomic_store_explicit(&k->passed, k->at, memory_order_release);
	}
	atomic_store_explicit(&k->passed, k->at, memory_order_release);
	if (head - tail <= k->data_bytes / 4 || k->by_program.fd >= 0) {
		k->woken = false;            /* or the source polls the ring itself */
	} else if (!k->woken) {
		k->woken = true;
		os_wake(k->wake);
	}
}

/* Nothing may come between the sample and this thread, not even host/proc_reader_linux.h. */
static void become_first(struct peeker *k)
{
	const struct sched_param first = {.sched_priority = 2};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(k->cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0)
		atomic_store(&k->fifo, true);
	else
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20);
}

static void run_peeker(void *ctx)
{
	struct peeker *k = ctx;
	struct pollfd polled[2] = {
		{.fd = k->by_program.fd >= 0 ? k->by_program.fd : k->fd, .events = POLLIN},
		{.fd = k->stop_fd, .events = POLLIN}};

	become_first(k);
	while (!atomic_load(&k->stopping)) {
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			break;
		if (polled[1].revents || (polled[0].revents & (POLLERR | POLLHUP | POLLNVAL)))
			break;               /* its CPU or process is gone */
		take_records(k);
	}
	/* Nobody waits for it any longer. */
	atomic_store(&k->passed, UINT64_MAX);
	drop_peeker(k);
}

/* ---- following rings ------------------------------------------------------------------------- */

/* Where one fails, no program wakes any more: then samplers do, from their next opening on. */
static void wake_by_program(struct perf_peekers *p, struct peeker *k, const struct perf_ring *ring)
{
	struct err err;

	if (!p->program || perf_wake_open(p->program, ring, &k->by_program, &err) == 0)
		return;
	log_line(p->log, LOG_INFO, "each sample wakes a reader of Python frames: %s", err.text);
	p->program = NULL;
}

static struct peeker *peeker_new(struct perf_peekers *p, unsigned cpu, const struct perf_ring *ring,
				 const struct os_wake *stop)
{
	struct peeker *k = calloc(1, sizeof(*k));
	void *map;

	if (!k)
		return NULL;
	k->by_program.fd = -1;
	k->users = 1;
	k->cpu = cpu;
	k->wake = p->wake;
	k->page_bytes = ring->page_bytes;
	k->data_bytes = ring->data_bytes;
	k->fd = fcntl(ring->fd, F_DUPFD_CLOEXEC, 0);
	k->stop_fd = fcntl(os_wake_fd(stop), F_DUPFD_CLOEXEC, 0);
	map = k->fd < 0 || k->stop_fd < 0
		      ? MAP_FAILED
		      : mmap(NULL, k->page_bytes + k->data_bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED, k->fd, 0);
	if (map != MAP_FAILED)
		k->map = map;
	k->at = ring->tail;
	k->passed = k->at;
	atomic_fetch_add(&p->targets->users, 1);
	k->targets = p->targets;
	if (!k->map) {
		drop_peeker(k);
		return NULL;
	}
	wake_by_program(p, k, ring);
	return k;
}

static void start_one(struct perf_peekers *p, unsigned cpu, const struct perf_ring *ring)
{
	struct one *one = &p->cpus[cpu];
	struct err err;
	char name[16];

	if (atomic_load(&p->abandoned) >= PEEKERS_STUCK_MAX)
		return;
	one->ring = ring->map;
	one->stop = os_wake_new();
	one->peeker = one->stop ? peeker_new(p, cpu, ring, one->stop) : NULL;
	if (one->peeker) {
		snprintf(name, sizeof(name), "peek %u", cpu);
		atomic_fetch_add(&one->peeker->users, 1);
		if (os_thread_start(name, run_peeker, one->peeker, &one->thread, &err) == 0) {
			atomic_fetch_add(&p->running, 1);
			return;
		}
		drop_peeker(one->peeker);
		drop_peeker(one->peeker);
		one->peeker = NULL;
	}
	os_wake_free(one->stop);
	one->stop = NULL;
}

static void take_counts(struct perf_peekers *p, struct peeker *k)
{
	atomic_fetch_add(&p->peeks, atomic_exchange(&k->peeks, 0));
	atomic_fetch_add(&p->ns, atomic_exchange(&k->ns, 0));
	atomic_fetch_add(&p->calls, atomic_exchange(&k->calls, 0));
}

/* stuck: it does not come back, perhaps never */
static void end_one(struct perf_peekers *p, struct one *one, bool stuck)
{
	if (!one->peeker)
		return;
	atomic_store(&one->peeker->stopping, true);
	os_wake(one->stop);
	if (stuck || !os_thread_join_within(one->thread, PEEKERS_STUCK_NS)) {
		os_thread_leave(one->thread);
		atomic_fetch_add(&p->abandoned, 1);
	}
	atomic_fetch_sub(&p->running, 1);
	take_counts(p, one->peeker);
	drop_peeker(one->peeker);
	os_wake_free(one->stop);
	*one = (struct one){0};
}

void perf_peekers_follow(struct perf_peekers *p, unsigned cpu, const struct perf_ring *ring)
{
	struct one *one;

	if (cpu >= CPUS_MAX)
		return;
	one = &p->cpus[cpu];
	p->ncpus = cpu + 1 > p->ncpus ? cpu + 1 : p->ncpus;
	if (one->peeker && (!ring || one->ring != ring->map))
		end_one(p, one, false);
	if (ring && ring->map && !one->peeker)
		start_one(p, cpu, ring);
}

/* ---- results --------------------------------------------------------------------------------- */

bool perf_peekers_passed(const struct perf_peekers *p, unsigned cpu, uint64_t position)
{
	const struct peeker *k = cpu < CPUS_MAX ? p->cpus[cpu].peeker : NULL;

	return !k || atomic_load_explicit(&k->passed, memory_order_acquire) > position;
}

static void take_result(const struct peeker *k, uint64_t at, struct python_peek *out)
{
#define TAKE() (k->words[at++ % RESULT_WORDS])
	uint64_t word, text[PYTHON_NAMED_BYTES / 8];
	uint32_t i, w;

	at += 2;
	word = TAKE();
	out->has_gil = word >> 63;
	out->status = (enum python_peeked)(word >> 48 & 0xff);
	out->nnamed = (uint32_t)(word >> 32) & 0xffff;
	out->n = (uint32_t)word;
	for (i = 0; i < out->n; i++) {
		struct python_spot *s = &out->spots[i];

		s->code = TAKE();
		s->stamp = TAKE();
		s->anchor = TAKE();
		word = TAKE();
		s->position = (int32_t)(uint32_t)(word >> 1);
		s->last = word & 1;
	}
	for (i = 0; i < out->nnamed; i++) {
		struct python_named *named = &out->named[i];

		word = TAKE();
		named->spot = (uint32_t)(word >> 32);
		named->first_line = (int32_t)(uint32_t)word;
		for (w = 0; w < PYTHON_NAMED_BYTES / 8; w++)
			text[w] = TAKE();
		memcpy(named->text, text, sizeof(text));
	}
#undef TAKE
}

bool perf_peekers_get(struct perf_peekers *p, unsigned cpu, uint64_t position,
		      struct python_peek *out)
{
	struct peeker *k = cpu < CPUS_MAX ? p->cpus[cpu].peeker : NULL;
	uint64_t head, tail, at;
	bool found = false;

	if (!k)
		return false;
	head = atomic_load_explicit(&k->head, memory_order_acquire);
	tail = atomic_load_explicit(&k->tail, memory_order_relaxed);
	while (tail < head && !found) {
		at = k->words[(tail + 1) % RESULT_WORDS];
		if (at > position)
			break;
		found = at == position;
		if (found)
			take_result(k, tail, out);
		else
			tail += k->words[tail % RESULT_WORDS];
	}
	atomic_store_explicit(&k->tail, tail, memory_order_release);
	return found;
}

/* ---- processes ------------------------------------------------------------------------------- */

bool perf_peekers_choose(const struct perf_peekers *p)
{
	return p->program != NULL;
}

bool perf_peekers_add(struct perf_peekers *p, const struct python_target *target)
{
	struct python_target *copy = malloc(sizeof(*copy));
	uint32_t first = (uint32_t)hash_u64(target->pid), i;

	for (i = 0; copy && i < PROBES_MAX; i++) {
		struct place *place = &p->targets->places[(first + i) % PEEK_TARGETS];

		if (atomic_load(&place->pid))
			continue;
		*copy = *target;
		if (p->program && !perf_program_wake(p->program, target->pid))
			break;
		atomic_store_explicit(&place->target, copy, memory_order_release);
		atomic_store_explicit(&place->pid, target->pid, memory_order_release);
		return true;
	}
	free(copy);
	return false;
}

/* Peekers copy a target within nanoseconds, so it can be freed a while after its removal. */
static void retire(struct perf_peekers *p, struct python_target *target, uint64_t now_ns)
{
	if (p->nretired == RETIRED_MAX) {
		os_sleep_ns(RETIRED_NS / 100);
		free(p->retired[0].target);
		p->retired[0] = p->retired[--p->nretired];
	}
	p->retired[p->nretired++] = (struct retired){target, now_ns};
}

void perf_peekers_remove(struct perf_peekers *p, uint32_t pid, uint64_t now_ns)
{
	uint32_t first = (uint32_t)hash_u64(pid), i;

	for (i = 0; i < PROBES_MAX; i++) {
		struct place *place = &p->targets->places[(first + i) % PEEK_TARGETS];

		if (atomic_load(&place->pid) != pid)
			continue;
		atomic_store(&place->pid, 0);
		if (p->program)
			perf_program_wake_no_more(p->program, pid);
		retire(p, atomic_exchange(&place->target, NULL), now_ns);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static void look_at_peeker(struct perf_peekers *p, struct one *one, uint64_t now_ns)
{
	uint64_t busy_ns = atomic_load(&one->peeker->busy_ns);
	uint32_t pid = atomic_load(&one->peeker->busy_pid);

	atomic_store(&p->fifo, atomic_load(&one->peeker->fifo));
	take_counts(p, one->peeker);
	if (!busy_ns || now_ns < busy_ns + PEEKERS_STUCK_NS)
		return;
	log_line(p->log, LOG_WARN, "the memory of process %u does not answer (a file system that "
		 "hangs?): its Python frames are left out", pid);
	perf_peekers_remove(p, pid, now_ns);
	end_one(p, one, true);               /* another one is started by perf_peekers_follow() */
}

void perf_peekers_look(struct perf_peekers *p, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < p->ncpus; i++)
		if (p->cpus[i].peeker)
			look_at_peeker(p, &p->cpus[i], now_ns);
	for (i = p->nretired; i-- > 0;) {
		if (p->retired[i].at_ns + RETIRED_NS > now_ns)
			continue;
		free(p->retired[i].target);
		p->retired[i] = p->retired[--p->nretired];
	}
}

void perf_peekers_count(const struct perf_peekers *p, struct perf_peeker_counts *out)
{
	*out = (struct perf_peeker_counts){
		.peeks = atomic_load(&p->peeks), .ns = atomic_load(&p->ns),
		.calls = atomic_load(&p->calls), .running = atomic_load(&p->running),
		.abandoned = atomic_load(&p->abandoned), .fifo = atomic_load(&p->fifo)};
}

int perf_peekers_new(const struct perf_program *program, struct os_wake *wake, struct log *log,
		     struct perf_peekers **out, struct err *err)
{
	struct perf_peekers *p = calloc(1, sizeof(*p));

	if (p)
		p->targets = calloc(1, sizeof(*p->targets));
	if (!p || !p->targets) {
		free(p);
		return err_memory(err, "for reading Python frames");
	}
	p->targets->users = 1;
	p->program = program;
	p->wake = wake;
	p->log = log;
	*out = p;
	return 0;
}

void perf_peekers_free(struct perf_peekers *p)
{
	uint32_t i;

	if (!p)
		return;
	for (i = 0; i < p->ncpus; i++)
		end_one(p, &p->cpus[i], false);
	for (i = 0; i < p->nretired; i++)
		free(p->retired[i].target);
	drop_targets(p->targets);
	free(p);
}
