/*
 * The processes, threads and mappings that already exist, from /proc (proc(5)): at the start, again
 * after side-band records were lost, and of a process that no record has told of.
 *
 * The source's thread reads none of them itself: it asks for snapshots (snapshot_linux.h), which
 * jobs of a pool make, and applies those that are done. A job that is stuck is applied as far as it
 * came, and the device whose file it was opening is left alone.
 */
#include "base/array.h"
#include "base/log.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/kernel_symbols.h"
#include "source/perf/managed_linux.h"
#include "source/perf/names_linux.h"
#include "source/perf/snapshot_linux.h"
#include "source/perf/state_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_THREAD_FLAG 0x00200000u           /* PF_KTHREAD */
#define REQUESTS_MAX 64u
#define OF_ALL_MAX 48u                           /* of them, for a scan of all processes */
#define ANSWER_NS (2 * NS_PER_MS)                /* to wait for one process: it takes 0.1 ms */
#define LOOK_NS (100 * NS_PER_MS)
#define LEARN_NS (NS_PER_SEC / 10)               /* for a runtime that starts */
#define LEARN_OLD_NS (25 * NS_PER_MS)            /* that runs: some ms, or it is tried once more */
#define READ_AGAIN_MAX 3u                        /* a process that changes while it is read */

struct request {
	struct snapshot *snapshot;           /* NULL = this place is free */
	uint32_t number;                     /* they are begun in this order */
	uint64_t changed_ns;                 /* of the newest record that may not be in it */
	unsigned again;
	bool stuck;                          /* applied already, as far as it came */
	bool device_hangs;
	uint64_t device;                     /* that one; left alone until the job is done */
};

struct perf_scan {
	struct perf_state *state;
	struct log *log;
	bool build_ids;
	struct pool *pool;
	struct hung_devices *hung;
	struct snapshot_files *files;
	struct request requests[REQUESTS_MAX];
	uint32_t nrequests, last_number;
	uint32_t *pids, npids, at, room;     /* of a scan of all; those before `at` are asked for */
	bool doubted;                        /* records were lost */
	bool slow;                           /* the last one waited for was not answered in time */
	bool process_logged;
	uint64_t look_ns;
};

/* ---- applying -------------------------------------------------------------------------------- */

static void apply_mapping(struct perf_scan *scan, struct perf_process *p, const struct snapshot *n,
			  const struct snapshot_mapping *m)
{
	const struct snapshot_file *file = m->file == SNAPSHOT_NO_FILE ? NULL : &n->files[m->file];
	struct object_key key = {0};

	perf_mapping_kind(snapshot_path(n, m->path), p, &key);
	if (key.kind == OBJECT_ELF && file) {
		key.dev = file->dev;
		key.ino = file->ino;
	}
	if (key.kind == OBJECT_ELF && file &&
	    atomic_load_explicit(&file->known, memory_order_acquire)) {
		key.build_id_bytes = file->build_id_bytes;
		memcpy(key.build_id, file->build_id, BUILD_ID_MAX);
	}
	perf_state_map(scan->state, p, &key, m->start, m->end, m->pgoff);
}

/* Replaces what was known of the process, because records may have been lost. */
static void apply_maps(struct perf_scan *scan, struct perf_process *p, const struct snapshot *n)
{
	uint32_t i;

	if (!n->maps_read || perf_state_clear_maps(scan->state, p))
		return;
	for (i = 0; i < n->nmappings; i++)
		apply_mapping(scan, p, n, &n->mappings[i]);
}

/* NULL: not known, or its short name is better */
static const char *exe_of(const struct snapshot *n)
{
	if (!n->exe || strncmp(n->exe, "/memfd:", 7) == 0)
		return NULL;
	n->exe[perf_path_length(n->exe)] = '\0';
	return n->exe;
}

/* The process has another name already: its exec record was lost. */
static void apply_exe(struct perf_scan *scan, struct perf_process *p, const struct snapshot *n)
{
	const char *target = exe_of(n);

	if (!target) {
		p->exe_known |= n->exe != NULL;
		return;
	}
	if (p->exe_known && !process_exe_is(p->process, target))
		perf_state_exec(scan->state, p, p->pid, n->stat.comm);
	if (!p->exe_known)
		perf_state_exe(scan->state, p, target);
}

static bool is_gone(uint32_t pid, uint32_t tid)
{
	return syscall(SYS_tgkill, (int)pid, (int)tid, 0) < 0 && errno == ESRCH;
}

/* Its exit record may be past already; while all are read at the start, none is past. */
static bool has_gone(const struct perf_scan *scan, uint32_t pid, uint32_t tid)
{
	return (!scan->state->starting || scan->state->cfg.root_only) && is_gone(pid, tid);
}

/*
 * Skips a leader that ended before its threads: its exit record is past. One that has not was
 * looked for just now.
 */
static void apply_tasks(struct perf_scan *scan, struct perf_process *p, const struct snapshot *n,
			bool leader_ended)
{
	uint32_t i;

	for (i = 0; i < n->ntasks; i++) {
		const struct snapshot_task *task = &n->tasks[i];
		struct perf_thread *t = NULL;

		if (task->tid == p->pid ? !leader_ended : !has_gone(scan, p->pid, task->tid))
			t = perf_state_add_thread(scan->state, p, task->tid);
		if (t && task->comm[0])
			thread_set_name(t->thread, task->comm);
	}
}

/* with_maps: false = they may be older than what is known. returns  0 when it is known now */
static int apply(struct perf_scan *scan, const struct snapshot *n, bool with_maps)
{
	bool leader_ended = n->stat.state == 'Z' || n->stat.state == 'X';
	struct perf_process *p;

	if (!n->found || has_gone(scan, n->pid, n->pid))
		return ERR_NOT_FOUND;
	p = perf_state_find(scan->state, n->pid);
	/* It may have changed since, and records are missing: the next sample asks again. */
	if (!with_maps && (p ? perf_state_is_doubtful(scan->state, p) : scan->doubted))
		return ERR_BUSY;
	if (!p)
		p = perf_state_add_process(scan->state, n->pid, n->stat.parent_pid, n->start_ns,
					   n->stat.comm);
	if (!p)
		return ERR_LIMIT;
	perf_state_known(scan->state, p);
	p->kernel = (n->stat.flags & KERNEL_THREAD_FLAG) != 0;
	if (p->unnamed)
		perf_state_settle(scan->state, p, n->stat.comm, exe_of(n));
	if (!p->kernel && !leader_ended && with_maps) {
		apply_exe(scan, p, n);
		if (n->home.len && !n->home.failed && !*process_home(p->process))
			process_set_home(p->process, n->home.data, 0);
		if (!p->maps_flood)          /* it would have others again at once */
			apply_maps(scan, p, n);
	}
	apply_tasks(scan, p, n, leader_ended);
	if (!p->nthreads && !leader_ended)
		perf_state_add_thread(scan->state, p, n->pid);
	if (p->nthreads)
		return 0;
	perf_state_tidy(scan->state, p);
	return ERR_NOT_FOUND;
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct request *find(struct perf_scan *scan, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < REQUESTS_MAX && scan->nrequests; i++)
		if (scan->requests[i].snapshot && scan->requests[i].snapshot->pid == pid)
			return &scan->requests[i];
	return NULL;
}

/* NULL: no room, or no memory */
static struct request *put(struct perf_scan *scan, uint32_t pid)
{
	uint32_t i = 0;

	while (i < REQUESTS_MAX && scan->requests[i].snapshot)
		i++;
	if (i == REQUESTS_MAX)
		return NULL;
	if (!scan->nrequests)
		snapshot_files_forget(scan->files);
	scan->requests[i] = (struct request){
		.snapshot = snapshot_new(scan->files, pid, scan->build_ids),
		.number = ++scan->last_number};
	if (!scan->requests[i].snapshot)
		return NULL;
	scan->nrequests++;
	pool_put(scan->pool, &scan->requests[i].snapshot->job);
	return &scan->requests[i];
}

static void drop(struct perf_scan *scan, struct request *r)
{
	job_drop(&r->snapshot->job);
	r->snapshot = NULL;
	scan->nrequests--;
}

/* The process has changed since it was read. returns  whether it is read once more */
static bool read_again(struct perf_scan *scan, struct request *r)
{
	struct snapshot *fresh;

	if (r->changed_ns < r->snapshot->read_ns || r->again >= READ_AGAIN_MAX)
		return false;
	fresh = snapshot_new(scan->files, r->snapshot->pid, scan->build_ids);
	if (!fresh)
		return false;
	job_drop(&r->snapshot->job);
	r->snapshot = fresh;
	r->changed_ns = 0;
	r->again++;
	pool_put(scan->pool, &fresh->job);
	return true;
}

/*
 * Have all records passed that came while it was read? Only then it is known that none of them
 * tells of another program: samples may be seconds older than what is read for them.
 */
static bool is_due(const struct perf_scan *scan, const struct request *r)
{
	return scan->state->starting || r->snapshot->end_ns < perf_state_now(scan->state);
}

/* A request whose job is done. returns  as apply(); ERR_BUSY when it is read once more */
static int take(struct perf_scan *scan, struct request *r)
{
	int rc = 0;

	scan->slow = false;
	if (!r->device_hangs && !is_due(scan, r))
		return ERR_NOT_FOUND;
	if (r->device_hangs) {               /* it answers again; perhaps with an error */
		hung_devices_came_back(scan->hung, r->device);
	} else {
		r->stuck = false;
		if (read_again(scan, r))
			return ERR_BUSY;
		rc = apply(scan, r->snapshot, r->changed_ns < r->snapshot->read_ns);
	}
	drop(scan, r);
	return rc;
}

/* The device is left alone until the job comes back. */
static void take_stuck(struct perf_scan *scan, struct request *r)
{
	const struct snapshot_file *file = snapshot_opening(r->snapshot);

	r->stuck = true;
	r->device_hangs = file != NULL;
	r->device = file ? file->dev : 0;
	if (file && hung_devices_add(scan->hung, file->dev))
		log_line(scan->log, LOG_WARN,
			 "the file system of %s, a program or library of process %u, does not "
			 "answer: its files are left alone", snapshot_path(r->snapshot, file->path),
			 r->snapshot->pid);
	if (!file && !scan->process_logged)
		log_line(scan->log, LOG_WARN,
			 "process %u does not answer (the kernel holds it?): its name and mappings "
			 "are not known", r->snapshot->pid);
	scan->process_logged |= !file;
	if (snapshot_is_read(r->snapshot) && is_due(scan, r))
		apply(scan, r->snapshot, r->changed_ns < r->snapshot->read_ns);
}

/* ---- a scan of all --------------------------------------------------------------------------- */

static bool add_pid(void *ctx, uint32_t pid)
{
	struct perf_scan *scan = ctx;

	if (!ARRAY_ROOM(scan->pids, scan->room, scan->npids + 1))
		scan->pids[scan->npids++] = pid;
	return true;
}

/* Records of what was asked for so far may be lost. */
static void change_all(struct perf_scan *scan)
{
	uint32_t i;

	for (i = 0; i < REQUESTS_MAX; i++)
		scan->requests[i].changed_ns = os_now_ns();
}

void perf_scan_doubt(struct perf_scan *scan)
{
	scan->doubted = true;
	change_all(scan);
}

static int begin_all(struct perf_scan *scan, struct err *err)
{
	scan->npids = scan->at = 0;
	if (!proc_each("/proc", add_pid, scan))
		return err_os(err, "cannot read /proc, so processes have no names");
	change_all(scan);
	return 0;
}

static void ask_for_more(struct perf_scan *scan)
{
	for (; scan->at < scan->npids && scan->nrequests < OF_ALL_MAX; scan->at++)
		if (!find(scan, scan->pids[scan->at]))
			put(scan, scan->pids[scan->at]);
}

static struct request *request_of(struct perf_scan *scan, const struct job *job)
{
	uint32_t i;

	for (i = 0; i < REQUESTS_MAX; i++)
		if (scan->requests[i].snapshot && &scan->requests[i].snapshot->job == job)
			return &scan->requests[i];
	return NULL;
}

static void look_for_stuck(struct perf_scan *scan)
{
	uint64_t now_ns = os_now_ns();
	const struct job *job;
	struct request *r;

	if (now_ns < scan->look_ns + LOOK_NS)
		return;
	scan->look_ns = now_ns;
	while ((job = pool_look(scan->pool, now_ns)) != NULL) {
		r = request_of(scan, job);
		if (r)
			take_stuck(scan, r);
	}
}

static void take_done(struct perf_scan *scan)
{
	uint32_t i;

	ask_for_more(scan);
	for (i = 0; i < REQUESTS_MAX && scan->nrequests; i++) {
		struct request *r = &scan->requests[i];

		if (r->snapshot && job_done(&r->snapshot->job))
			take(scan, r);
	}
	look_for_stuck(scan);
	ask_for_more(scan);
}

/*
 * One that is not stuck; NULL = there is none. When it is done, the threads should have as much to
 * do as is to be applied: to wake up for each process took a tenth of the time of all.
 */
static const struct snapshot *awaited(const struct perf_scan *scan)
{
	const uint32_t middle = scan->last_number - OF_ALL_MAX / 2;
	const struct snapshot *best = NULL;
	uint32_t i, from, least = UINT32_MAX;

	for (i = 0; i < REQUESTS_MAX; i++) {
		const struct request *r = &scan->requests[i];

		from = r->number > middle ? r->number - middle : middle - r->number;
		if (r->snapshot && !r->stuck && from < least) {
			best = r->snapshot;
			least = from;
		}
	}
	return best;
}

static void wait_for_all(struct perf_scan *scan, uint64_t timeout_ns)
{
	uint64_t until_ns = os_now_ns() + timeout_ns;
	const struct snapshot *n;

	for (;;) {
		take_done(scan);
		n = awaited(scan);
		if (!n || os_now_ns() >= until_ns)
			return;
		pool_wait(scan->pool, &n->job, LOOK_NS);
	}
}

/* ---- one process ----------------------------------------------------------------------------- */

int perf_scan_process(struct perf_scan *scan, uint32_t pid)
{
	struct request *r = find(scan, pid);

	if (pid == 0 || pid == UINT32_MAX || (r && r->stuck))
		return ERR_NOT_FOUND;
	if (!r) {
		r = put(scan, pid);
		if (!r)
			return ERR_LIMIT;
		if (!scan->slow && !pool_wait(scan->pool, &r->snapshot->job, ANSWER_NS))
			scan->slow = true;
	}
	return job_done(&r->snapshot->job) ? take(scan, r) : ERR_BUSY;
}

void perf_scan_want(struct perf_scan *scan, uint32_t pid)
{
	if (pid != UINT32_MAX && !find(scan, pid))
		put(scan, pid);
}

void perf_scan_note(struct perf_scan *scan, uint32_t pid, uint64_t time_ns)
{
	struct request *r = scan->nrequests ? find(scan, pid) : NULL;

	if (r)
		r->changed_ns = time_ns;
}

/* ---- what runs now --------------------------------------------------------------------------- */

/*
 * Forget processes whose exit record was lost. Asks by pid, because /proc may hide other users'
 * processes.
 */
static void forget_dead(struct perf_state *s)
{
	uint32_t at = 0, n;

	while ((n = table_next(&s->by_tid, &at)) != TABLE_NONE) {
		struct perf_thread *t = slots_get(&s->threads, n);

		if (!perf_state_pid_comm(s, t->process->pid) && is_gone(t->process->pid, t->tid))
			perf_state_thread_exits(s, t);
	}
}

/* Take what is known of the kernel's symbols; have them read again if that is due. */
static void look_at_kernel(struct perf_state *s, uint64_t wait_ns)
{
	kernel_symbols_look(s->kernel_symbols, s->scan->pool, s->now_ns, wait_ns);
}

static void read_kernel(struct perf_state *s)
{
	if (s->kernel_base && (s->cfg.switches || (s->cfg.ksymbols && !s->cfg.root_only)))
		kernel_symbols_rescan(s->kernel_symbols, !s->cfg.ksymbols);
	look_at_kernel(s, 0);
}

static int begin_scan(struct perf_state *s, uint64_t now_ns, struct err *err)
{
	s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
	forget_dead(s);
	return begin_all(s->scan, err);
}

/*
 * Runtimes are learned before the first sample, as the stacks until then would break. One that runs
 * for a second and is not ready is none: a program may link libpython and never start it.
 */
static void learn_runtimes(struct perf_state *s)
{
	const uint64_t begin_ns = os_now_ns(), until_ns = begin_ns + LEARN_NS;
	uint64_t now_ns = begin_ns;
	const struct perf_thread *t;
	bool learned;
	uint32_t at, n;

	do {
		learned = true;
		for (at = 0; (n = table_next(&s->by_tid, &at)) != TABLE_NONE;) {
			t = slots_get(&s->threads, n);
			if (t->tid == t->process->pid && t->process->runtime &&
			    !perf_managed_begin(s->cfg.managed, t->process, now_ns))
				learned &= t->process->start_ns + NS_PER_SEC < begin_ns &&
					   now_ns >= begin_ns + LEARN_OLD_NS;
		}
		if (!learned)
			os_sleep_ns(ANSWER_NS);
		now_ns = os_now_ns();
	} while (!learned && now_ns < until_ns);
}

int perf_state_scan(struct perf_state *s, uint64_t now_ns, struct err *err)
{
	int rc = s->cfg.root_only ? 0 : begin_scan(s, now_ns, err);

	if (rc)
		return rc;
	s->starting = true;
	if (s->cfg.root_only)
		perf_scan_process(s->scan, s->cfg.root_pid);
	else
		wait_for_all(s->scan, PERF_SCAN_NS);
	s->starting = false;
	if (s->cfg.root_only)
		return 0;
	perf_names_look(s->names, NS_PER_SEC / 10);
	learn_runtimes(s);
	return 0;
}

void perf_state_await_kernel(struct perf_state *s)
{
	read_kernel(s);
	look_at_kernel(s, s->cfg.switches ? PERF_SCAN_NS : NS_PER_SEC / 10);
}

void perf_state_rescan(struct perf_state *s, uint64_t now_ns)
{
	begin_scan(s, now_ns, NULL);
	read_kernel(s);
}

void perf_state_look(struct perf_state *s, uint64_t now_ns)
{
	s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
	take_done(s->scan);
	look_at_kernel(s, 0);
	perf_names_look(s->names, ANSWER_NS);
}

struct hung_devices *perf_state_hung(const struct perf_state *s)
{
	return s->scan->hung;
}

void perf_state_pools(const struct perf_state *s, struct pool **proc, struct pool **names)
{
	*proc = s->scan->pool;
	*names = perf_names_pool(s->names);
}

/* ---- life ------------------------------------------------------------------------------------ */

int perf_scan_new(struct perf_state *state, struct log *log, bool build_ids,
		  struct perf_scan **out, struct err *err)
{
	struct perf_scan *scan = calloc(1, sizeof(*scan));
	int rc;

	if (!scan)
		return err_memory(err, "for reading /proc");
	scan->state = state;
	scan->log = log;
	scan->build_ids = build_ids;
	scan->hung = hung_devices_new();
	scan->files = scan->hung ? snapshot_files_new(scan->hung) : NULL;
	rc = scan->files ? pool_new("proc", 2, OS_PRIORITY_HIGH, &scan->pool, err)
			 : err_memory(err, "for reading /proc");
	if (rc) {
		perf_scan_free(scan);
		return rc;
	}
	pool_set_stuck(scan->pool, HUNG_AFTER_NS);
	*out = scan;
	return 0;
}

void perf_scan_free(struct perf_scan *scan)
{
	uint32_t i;

	if (!scan)
		return;
	for (i = 0; i < REQUESTS_MAX; i++)
		if (scan->requests[i].snapshot)
			drop(scan, &scan->requests[i]);
	pool_free(scan->pool);
	snapshot_files_drop(scan->files);
	hung_devices_drop(scan->hung);
	free(scan->pids);
	free(scan);
}
