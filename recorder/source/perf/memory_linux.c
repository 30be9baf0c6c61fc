#include "source/perf/memory_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "base/pool.h"
#include "base/table.h"
#include "source/host/pagemap_linux.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/cpus_linux.h"
#include "source/perf/pages.h"
#include "source/probe/tracepoint_linux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096.0
#define LOOK_NS NS_PER_SEC                   /* after a new fault */
#define LOOK_MAX_NS (64 * NS_PER_SEC)        /* while nothing changes */
#define LOOK_COST 200u                       /* a look took 1/200 of the time between two at most */
#define SIZES_NS (5 * NS_PER_SEC)            /* between two looks at the sizes of all processes */
#define FINISH_NS NS_PER_SEC
#define JOB_PAGES PAGES_MAX
#define JOB_PROCESSES 512u
#define SIZES_MAX 65536u
#define TOLD_KB 1024u
#define LARGEST 10u
#define ROLLUP_BYTES 4096u

static const uint32_t periods[] = {1, 7, 17, 31, 61, 127, 251, 509, 1021, 2039, 4093, 8191, 16381};

/* The memory of a process, as one program. */
struct place {
	uint32_t slot, pid, exec;
	uint64_t start_ns;
	struct page_list pages;
	uint32_t sizes_turn;                 /* when it was seen last */
	bool looking;
	uint64_t look_ns, pause_ns;          /* when to look next; between looks */
	uint64_t told_kb;                    /* UINT64_MAX = nothing yet */
};

struct look {
	uint32_t place, pid;
	uint32_t first, n;
	struct seen_memory seen;
};

struct look_job {
	struct job job;
	uint32_t nlooks, npages;
	struct look looks[JOB_PROCESSES];
	struct seen_page pages[JOB_PAGES];
};

struct sizes {
	uint32_t pid;
	uint64_t anon_kb, rss_kb;
};

struct sizes_job {
	struct job job;
	bool detail;                         /* read the rollups too */
	uint32_t n, capacity;
	struct sizes *all;
	struct buf rollups[LARGEST];         /* of the first ones, the largest */
};

struct perf_memory {
	struct perf_state *state;
	struct queue *queue;
	struct perf_cpus *cpus;
	struct pool *pool;
	const struct perf_unmaps *unmaps;
	struct slots places;
	struct table by_pid;
	struct pages pages;
	uint32_t sizes_turn;
	struct look_job *looking;            /* NULL = none is under way */
	struct sizes_job *sizing;
	uint64_t sizes_ns;
	_Atomic bool fired;
	_Atomic uint64_t forgotten;
	uint64_t began_ns;
	unsigned ncpus;
	unsigned level, least;               /* index of the period; the shortest one */
	uint32_t old_period;
	uint64_t switched_ns;                /* faults before it weigh the old period */
	uint64_t second_ns;                  /* of the count: */
	uint32_t nfaults, nunmaps;
	uint64_t unmaps_ns;                  /* of that count; while paused, when it ends */
	bool unmaps_paused;
};

/* ---- places ---------------------------------------------------------------------------------- */

static bool pid_same(const void *ctx, uint32_t value, const void *key)
{
	const struct place *p = slots_get(&((const struct perf_memory *)ctx)->places, value);

	return p->pid == *(const uint32_t *)key;
}

static void put_mark(struct perf_memory *m, const struct page *page, enum memory_mark mark,
		     uint64_t now_ns)
{
	struct event e = {.time_ns = now_ns, .kind = EVENT_SAMPLE, .stream = STREAM_RSS_MARK,
			  .cpu = page->cpu, .stack = STACK_NONE};

	if (now_ns < page->time_ns)
		return;
	e.value = memory_mark_weight(page->time_ns, now_ns, mark);
	queue_put(m->queue, &e);
}

static void put_gone(void *ctx, const struct page *page, uint64_t time_ns)
{
	put_mark(ctx, page, MARK_GONE, time_ns);
}

/* Page numbers. */
static void unmap(struct perf_memory *m, struct place *p, uint64_t from, uint64_t to,
		  uint64_t time_ns)
{
	pages_unmap(&m->pages, &p->pages, from, to, time_ns, put_gone, m);
}

static void empty(struct perf_memory *m, struct place *p)
{
	while (p->pages.first != SLOTS_NONE)
		pages_remove(&m->pages, &p->pages, p->pages.first);
}

static void remove_place(struct perf_memory *m, struct place *p)
{
	empty(m, p);
	table_remove(&m->by_pid, hash_u64(p->pid), p->slot);
	slots_free_one(&m->places, p->slot);
}

/*
 * How many programs the process had been. Of one that is in doubt after a loss of records that is
 * not known: it counts as the same, since looks at its pages tell what has gone.
 */
static uint32_t execs_of(const struct perf_memory *m, const struct process *process)
{
	const struct perf_process *p = perf_state_find(m->state, process->pid);

	if (!p || p->start_ns != process->start_ns)
		return process->exec;
	return process->exec > p->doubts ? process->exec - p->doubts : 0;
}

/* The place of what the process is now; what it was before exec has gone. NULL without memory. */
static struct place *place_of(struct perf_memory *m, const struct process *process, uint64_t now_ns)
{
	uint32_t exec = execs_of(m, process);
	uint32_t at = table_find(&m->by_pid, hash_u64(process->pid), pid_same, m, &process->pid);
	struct place *p;

	if (at == TABLE_NONE) {
		at = table_add_slot(&m->by_pid, hash_u64(process->pid), &m->places, SLOTS_NONE);
		if (at == SLOTS_NONE)
			return NULL;
		p = slots_get(&m->places, at);
		p->slot = at;
		p->pid = process->pid;
		p->pages = (struct page_list){.owner = at, .first = SLOTS_NONE};
	} else {
		p = slots_get(&m->places, at);
		if (p->start_ns == process->start_ns && p->exec == exec)
			return p;
		if (p->start_ns == process->start_ns)
			unmap(m, p, 0, UINT64_MAX, now_ns);
		empty(m, p);
	}
	p->start_ns = process->start_ns;
	p->exec = exec;
	p->told_kb = UINT64_MAX;
	p->pause_ns = LOOK_NS;
	p->look_ns = UINT64_MAX;
	p->sizes_turn = m->sizes_turn;
	return p;
}

/* No room: forget the oldest quarter of the pages of who has most. They count as still there. */
static void forget_oldest(struct perf_memory *m)
{
	struct place *most = NULL, *p;
	uint32_t at = 0, value, n;

	while ((value = table_next(&m->by_pid, &at)) != TABLE_NONE) {
		p = slots_get(&m->places, value);
		if (!most || p->pages.n > most->pages.n)
			most = p;
	}
	if (!most || !most->pages.n)
		return;
	at = most->pages.first;
	for (n = most->pages.n - most->pages.n / 4; n > 1; n--)
		at = pages_get(&m->pages, at)->next;
	for (n = 0; pages_get(&m->pages, at)->next != SLOTS_NONE; n++)
		pages_remove(&m->pages, &most->pages, pages_get(&m->pages, at)->next);
	atomic_fetch_add(&m->forgotten, n);
}

/* ---- the period ------------------------------------------------------------------------------ */

static void set_level(struct perf_memory *m, unsigned level)
{
	if (level == m->level || level >= COUNT_OF(periods) || level < m->least ||
	    perf_cpus_set_fault_period(m->cpus, periods[level]))
		return;
	m->old_period = periods[m->level];
	m->level = level;
	m->switched_ns = os_now_ns();
}

static void count_fault(struct perf_memory *m, uint64_t time_ns)
{
	if (time_ns >= m->second_ns + NS_PER_SEC) {
		m->second_ns = time_ns;
		m->nfaults = 0;
	}
	if (++m->nfaults <= FAULTS_PER_SEC * m->ncpus || time_ns < m->switched_ns)
		return;
	m->nfaults = 0;
	set_level(m, m->level + 1);
}

/* After a calm second. */
static void calm_down(struct perf_memory *m, uint64_t now_ns)
{
	if (now_ns < m->second_ns + NS_PER_SEC)
		return;
	if (m->nfaults < FAULTS_CALM * m->ncpus && m->level)
		set_level(m, m->level - 1);
	m->second_ns = now_ns;
	m->nfaults = 0;
}

static uint32_t period_at(const struct perf_memory *m, uint64_t time_ns)
{
	return time_ns < m->switched_ns ? m->old_period : periods[m->level];
}

double perf_memory_weight(const struct perf_memory *m, uint64_t time_ns)
{
	return period_at(m, time_ns) * PAGE_BYTES;
}

void perf_memory_fault(struct perf_memory *m, const struct perf_record *r,
		       const struct process *process)
{
	const struct page page = {.number = r->u.sample.address / 4096, .time_ns = r->time_ns,
				  .weight = period_at(m, r->time_ns), .fresh = true,
				  .cpu = (uint16_t)r->cpu};
	struct place *p = process && process->pid ? place_of(m, process, r->time_ns) : NULL;

	count_fault(m, r->time_ns);
	if (!p)
		return;
	if (m->pages.all.used >= PAGES_MAX)
		forget_oldest(m);
	unmap(m, p, page.number, page.number, r->time_ns);
	pages_add(&m->pages, &p->pages, &page);
	if (p->look_ns > r->time_ns + p->pause_ns)
		p->look_ns = r->time_ns + p->pause_ns;
}

/* ---- unmapping ------------------------------------------------------------------------------- */

uint32_t perf_memory_tracepoint(struct perf_unmaps *out)
{
	uint32_t val;
	struct err err;

	return tracepoint_load("maple_tree", "ma_write", &out->format, &err) == 0 &&
	       trace_format_find(&out->format, "index", &out->first) &&
	       trace_format_find(&out->format, "last", &out->last) &&
	       trace_format_find(&out->format, "val", &val) ? out->format.id : 0;
}

static void pause_unmaps(struct perf_memory *m, bool pause, uint64_t until_ns)
{
	perf_cpus_enable_unmaps(m->cpus, !pause);
	m->unmaps_paused = pause;
	m->unmaps_ns = until_ns;
	m->nunmaps = 0;
}

void perf_memory_unmapped(struct perf_memory *m, const struct perf_record *r)
{
	uint32_t at = table_find(&m->by_pid, hash_u64(r->pid), pid_same, m, &r->pid);
	int64_t first, last;

	if (r->time_ns >= m->unmaps_ns + NS_PER_SEC) {
		m->unmaps_ns = r->time_ns;
		m->nunmaps = 0;
	}
	if (!m->unmaps_paused && ++m->nunmaps > UNMAPS_PER_SEC * m->ncpus)
		pause_unmaps(m, true, r->time_ns + UNMAPS_PAUSE_NS);
	if (at == TABLE_NONE ||
	    !trace_format_number(&m->unmaps->format, m->unmaps->first, r->u.sample.raw,
				 r->u.sample.raw_bytes, &first) ||
	    !trace_format_number(&m->unmaps->format, m->unmaps->last, r->u.sample.raw,
				 r->u.sample.raw_bytes, &last) ||
	    first < 0 || last < first)
		return;
	/* Trees of the kernel's own have small numbers, which are no addresses of a process. */
	unmap(m, slots_get(&m->places, at), (uint64_t)first / 4096, (uint64_t)last / 4096,
	      r->time_ns);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void put_event(struct perf_memory *m, uint32_t pid, const char *name,
		      const struct event_field *fields, uint32_t n, uint64_t now_ns)
{
	struct perf_thread *t = perf_state_find_thread(m->state, pid);
	struct event e = {.time_ns = now_ns, .kind = EVENT_GENERIC, .cpu = CPU_NONE,
			  .stream = STREAM_EVENT, .stack = STACK_NONE, .provider = "Memory",
			  .name = name, .fields = fields, .nfields = n};

	if (!t || t->process->skipped)
		return;
	e.process = t->process->process;
	e.thread = t->thread;
	queue_put(m->queue, &e);
}

/* What it had before the first look: a program begins with nothing, a fork with its parent's. */
static uint64_t first_kb(struct perf_memory *m, const struct place *p, uint64_t anon_kb)
{
	struct perf_process *process = perf_state_find(m->state, p->pid);
	const struct place *parent;
	uint32_t at = TABLE_NONE;

	if (p->start_ns < m->began_ns && !p->exec)
		return anon_kb;
	if (!p->exec && process)
		at = table_find(&m->by_pid, hash_u64(process->parent_pid), pid_same, m,
				&process->parent_pid);
	parent = at == TABLE_NONE ? NULL : slots_get(&m->places, at);
	return parent && parent->told_kb < anon_kb ? parent->told_kb : 0;
}

static void put_sizes(struct perf_memory *m, struct place *p, uint64_t anon_kb, uint64_t rss_kb,
		      bool killed, uint64_t now_ns)
{
	uint64_t before_kb = p->told_kb == UINT64_MAX ? first_kb(m, p, anon_kb) : p->told_kb;
	const struct event_field fields[] = {
		{.name = "BeforeKb", .type = FIELD_UINT, .v.u = before_kb},
		{.name = "AnonKb", .type = FIELD_UINT, .v.u = anon_kb},
		{.name = "RssKb", .type = FIELD_UINT, .v.u = rss_kb},
		{.name = "Killed", .type = FIELD_UINT, .v.u = killed},
	};

	p->told_kb = anon_kb;
	put_event(m, p->pid, "RSS", fields, COUNT_OF(fields), now_ns);
}

static void tell_sizes(struct perf_memory *m, struct place *p, uint64_t anon_kb, uint64_t rss_kb,
		       uint64_t now_ns)
{
	uint64_t apart_kb = anon_kb > p->told_kb ? anon_kb - p->told_kb : p->told_kb - anon_kb;

	if (rss_kb && apart_kb >= TOLD_KB)
		put_sizes(m, p, anon_kb, rss_kb, false, now_ns);
}

/* Its fields are in KB since Linux 6.9; before, only the pid is told. */
void perf_memory_event(struct perf_memory *m, const struct event *e)
{
	const struct event_field *pid, *anon, *file, *shmem;
	uint32_t number, at;

	if (!m || strcmp(e->provider, "oom") != 0 || strcmp(e->name, "mark_victim") != 0)
		return;
	pid = event_field(e, "pid");
	anon = event_field(e, "anon_rss");
	file = event_field(e, "file_rss");
	shmem = event_field(e, "shmem_rss");
	if (!pid || !anon || !file || !shmem)
		return;
	number = (uint32_t)pid->v.u;
	at = table_find(&m->by_pid, hash_u64(number), pid_same, m, &number);
	if (at != TABLE_NONE)
		put_sizes(m, slots_get(&m->places, at), anon->v.u,
			  anon->v.u + file->v.u + shmem->v.u, true, e->time_ns);
}

static bool read_sizes(void *ctx, uint32_t pid)
{
	struct sizes_job *j = ctx;
	struct sizes s = {.pid = pid};

	if (!pagemap_sizes(pid, &s.anon_kb, &s.rss_kb))
		return true;
	if (j->n >= SIZES_MAX || ARRAY_ROOM(j->all, j->capacity, j->n + 1))
		return false;
	j->all[j->n++] = s;
	return true;
}

static int by_size(const void *a, const void *b)
{
	return compare_u64(((const struct sizes *)b)->rss_kb, ((const struct sizes *)a)->rss_kb);
}

static void run_sizes(struct job *job)
{
	struct sizes_job *j = (struct sizes_job *)job;
	uint32_t i;

	proc_each("/proc", read_sizes, j);
	if (!j->detail || !j->n)
		return;
	qsort(j->all, j->n, sizeof(*j->all), by_size);
	for (i = 0; i < j->n && i < LARGEST; i++)
		proc_pid_load(j->all[i].pid, "smaps_rollup", ROLLUP_BYTES, &j->rollups[i]);
}

static void free_sizes(struct job *job)
{
	struct sizes_job *j = (struct sizes_job *)job;
	uint32_t i;

	for (i = 0; i < LARGEST; i++)
		buf_free(&j->rollups[i]);
	free(j->all);
	free(j);
}

/* One event of what smaps_rollup says: its rows in KB. */
static void put_rollup(struct perf_memory *m, uint32_t pid, const struct buf *text, uint64_t now_ns)
{
	struct text rest = text_of(buf_text(text), text->len);
	char names[EVENT_MAX_FIELDS][32];
	struct event_field fields[EVENT_MAX_FIELDS];
	struct proc_row row;
	uint32_t n = 0;

	while (n < EVENT_MAX_FIELDS && proc_row_next(&rest, &row)) {
		if (row.n != 1)
			continue;            /* the first line has addresses */
		text_copy(row.name, names[n], sizeof(names[n]) - 2);
		strcat(names[n], "Kb");
		fields[n] = (struct event_field){.name = names[n], .type = FIELD_UINT,
						 .v.u = (uint64_t)row.v[0]};
		n++;
	}
	if (n)
		put_event(m, pid, "Rollup", fields, n, now_ns);
}

static void take_sizes(struct perf_memory *m, uint64_t now_ns)
{
	struct sizes_job *j = m->sizing;
	uint32_t i, at = 0, value;

	m->sizes_turn++;
	for (i = 0; i < j->n; i++) {
		struct perf_process *known = perf_state_find(m->state, j->all[i].pid);
		struct place *p = known ? place_of(m, known->process, now_ns) : NULL;

		if (!p)
			continue;
		p->sizes_turn = m->sizes_turn;
		tell_sizes(m, p, j->all[i].anon_kb, j->all[i].rss_kb, now_ns);
	}
	for (i = 0; i < LARGEST && i < j->n; i++)
		put_rollup(m, j->all[i].pid, &j->rollups[i], now_ns);
	/* Those that have ended, seen neither now nor before; a new one may not be seen yet. */
	while ((value = table_next(&m->by_pid, &at)) != TABLE_NONE) {
		struct place *p = slots_get(&m->places, value);

		if (p->looking || p->sizes_turn + 1 >= m->sizes_turn)
			continue;
		remove_place(m, p);
		at--;
	}
}

static void size_up(struct perf_memory *m, uint64_t now_ns, bool detail)
{
	struct sizes_job *j = calloc(1, sizeof(*j));

	m->sizes_ns = now_ns + SIZES_NS;
	if (!j)
		return;
	j->job = (struct job){.run = run_sizes, .free = free_sizes,
			      .what = "the sizes of processes"};
	j->detail = detail;
	job_init(&j->job);
	pool_put(m->pool, &j->job);
	m->sizing = j;
}

/* ---- looking at pages ------------------------------------------------------------------------ */

static void run_looks(struct job *job)
{
	struct look_job *j = (struct look_job *)job;
	uint32_t i;

	for (i = 0; i < j->nlooks; i++)
		pagemap_look(j->looks[i].pid, j->pages + j->looks[i].first, j->looks[i].n,
			     &j->looks[i].seen);
}

static void free_looks(struct job *job)
{
	free(job);
}

static void add_look(struct perf_memory *m, struct look_job *j, struct place *p)
{
	struct look *look = &j->looks[j->nlooks++];
	uint32_t slot;

	*look = (struct look){.place = p->slot, .pid = p->pid, .first = j->npages};
	for (slot = p->pages.first; slot != SLOTS_NONE && j->npages < JOB_PAGES;
	     slot = pages_get(&m->pages, slot)->next) {
		const struct page *page = pages_get(&m->pages, slot);

		j->pages[j->npages++] = (struct seen_page){
			.number = page->number, .time_ns = page->time_ns, .weight = page->weight,
			.at = slot, .fresh = page->fresh, .huge = page->huge};
	}
	look->n = j->npages - look->first;
	p->looking = true;
	p->look_ns = UINT64_MAX;
}

/* Begin a look at who is due. all: at everybody */
static void begin_looks(struct perf_memory *m, uint64_t now_ns, bool all)
{
	struct look_job *j = NULL;
	uint32_t at = 0, value;

	while ((value = table_next(&m->by_pid, &at)) != TABLE_NONE) {
		struct place *p = slots_get(&m->places, value);

		if (!p->pages.n || (!all && p->look_ns > now_ns))
			continue;
		j = j ? j : malloc(sizeof(*j));
		if (!j)
			return;
		if (!m->looking) {
			j->job = (struct job){.run = run_looks, .free = free_looks,
					      .what = "the pages of processes"};
			j->nlooks = j->npages = 0;
			job_init(&j->job);
			m->looking = j;
		}
		if (j->nlooks && (j->nlooks == JOB_PROCESSES || j->npages + p->pages.n > JOB_PAGES))
			break;
		add_look(m, j, p);
	}
	if (m->looking)
		pool_put(m->pool, &m->looking->job);
}

/* returns  whether anything is new */
static bool take_look(struct perf_memory *m, struct place *p, const struct look *look,
		      const struct seen_page *seen, uint64_t now_ns)
{
	bool changed = false;
	uint32_t i;

	for (i = 0; i < look->n; i++) {
		struct page *page = pages_get(&m->pages, seen[i].at);

		/* It may have been removed meanwhile, and another one be in its slot. */
		if (page->owner != look->place || page->number != seen[i].number ||
		    page->time_ns != seen[i].time_ns)
			continue;
		changed |= seen[i].gone || page->fresh;
		if (seen[i].gone)
			put_mark(m, page, MARK_GONE, now_ns);
		else if (seen[i].huge && !page->huge)
			put_mark(m, page, MARK_HUGE, now_ns);
		page->huge = seen[i].huge;
		page->fresh = false;
		if (seen[i].gone)
			pages_remove(&m->pages, &p->pages, seen[i].at);
	}
	return changed;
}

static void take_looks(struct perf_memory *m, uint64_t now_ns)
{
	const struct look_job *j = m->looking;
	uint32_t i;

	for (i = 0; i < j->nlooks; i++) {
		const struct look *look = &j->looks[i];
		struct place *p = slots_get(&m->places, look->place);
		uint64_t least_ns = look->seen.took_ns * LOOK_COST;
		bool changed = false;

		p->looking = false;
		if (look->seen.read)
			changed = take_look(m, p, look, j->pages + look->first, now_ns);
		if (look->seen.read)
			tell_sizes(m, p, look->seen.anon_kb, look->seen.rss_kb, now_ns);
		p->pause_ns = changed ? LOOK_NS : 2 * p->pause_ns;
		p->pause_ns = p->pause_ns > LOOK_MAX_NS ? LOOK_MAX_NS : p->pause_ns;
		p->pause_ns = p->pause_ns < least_ns ? least_ns : p->pause_ns;
		p->look_ns = now_ns + p->pause_ns;
	}
}

/* Take what was read meanwhile. */
static void take(struct perf_memory *m, uint64_t now_ns)
{
	if (m->looking && job_done(&m->looking->job)) {
		take_looks(m, now_ns);
		job_drop(&m->looking->job);
		m->looking = NULL;
	}
	if (m->sizing && job_done(&m->sizing->job)) {
		take_sizes(m, now_ns);
		job_drop(&m->sizing->job);
		m->sizing = NULL;
	}
}

void perf_memory_look(struct perf_memory *m, uint64_t now_ns)
{
	bool fired = false;

	if (!m)
		return;
	pool_look(m->pool, os_now_ns());
	take(m, now_ns);
	calm_down(m, now_ns);
	if (m->unmaps_paused && now_ns >= m->unmaps_ns)
		pause_unmaps(m, false, now_ns);
	if (!m->sizing && !m->looking)
		fired = atomic_exchange(&m->fired, false);
	if (!m->sizing && (fired || now_ns >= m->sizes_ns))
		size_up(m, now_ns, fired);
	if (!m->looking)
		begin_looks(m, now_ns, fired);
}

void perf_memory_finish(struct perf_memory *m, uint64_t now_ns)
{
	unsigned i;

	/* What is under way began earlier. */
	for (i = 0; m && i < 2; i++) {
		if (i && !m->looking)
			begin_looks(m, now_ns, true);
		if (i && !m->sizing)
			size_up(m, now_ns, false);
		if (m->looking)
			pool_wait(m->pool, &m->looking->job, FINISH_NS / 4);
		if (m->sizing)
			pool_wait(m->pool, &m->sizing->job, FINISH_NS / 4);
		take(m, now_ns);
	}
}

void perf_memory_fired(struct perf_memory *m)
{
	if (m)
		atomic_store(&m->fired, true);
}

/* ---- life ------------------------------------------------------------------------------------ */

int perf_memory_new(struct perf_state *state, struct queue *queue, struct perf_cpus *cpus,
		    const struct perf_unmaps *unmaps, struct perf_memory **out, struct err *err)
{
	struct perf_memory *m = calloc(1, sizeof(*m));
	int rc = m ? slots_init(&m->places, sizeof(struct place), PROCESSES_MAX) : ERR_MEMORY;

	if (!rc)
		rc = pages_init(&m->pages, PAGES_MAX);
	if (rc) {
		perf_memory_free(m);
		return err_memory(err, "for page faults");
	}
	m->state = state;
	m->queue = queue;
	m->cpus = cpus;
	m->unmaps = unmaps;
	m->ncpus = os_cpu_count();
	m->began_ns = os_now_ns();
	while (m->least + 1 < COUNT_OF(periods) && periods[m->least] < cpus->fault_period)
		m->least++;
	m->level = m->least;
	rc = pool_new("pages", 1, OS_PRIORITY_NORMAL, &m->pool, err);
	if (!rc)
		*out = m;
	else
		perf_memory_free(m);
	return rc;
}

void perf_memory_free(struct perf_memory *m)
{
	if (!m)
		return;
	pool_free(m->pool);
	job_drop(m->looking ? &m->looking->job : NULL);
	job_drop(m->sizing ? &m->sizing->job : NULL);
	table_free(&m->by_pid);
	slots_free(&m->places);
	pages_free(&m->pages);
	free(m);
}

struct pool *perf_memory_pool(const struct perf_memory *m)
{
	return m ? m->pool : NULL;
}

void perf_memory_note(const struct perf_memory *m, char *out, size_t n)
{
	uint64_t forgotten = m ? atomic_load(&m->forgotten) : 0;

	if (forgotten)
		snprintf(out, n, "%llu of the oldest page faults are no longer followed: more than "
			 "%u pages", (unsigned long long)forgotten, PAGES_MAX);
}
