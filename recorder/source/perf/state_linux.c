#include "source/perf/state_linux.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/os.h"
#include "base/slots.h"
#include "base/table.h"
#include "source/perf/kernel_symbols.h"
#include "symbol/kallsyms.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PATH_MAX_BYTES 4200u           /* of a mapping's path: the kernel's PATH_MAX and a suffix */
#define KERNEL_GAP_NS (10 * NS_PER_SEC) /* between readings of the kernel's symbols */
#define FORGET_NS NS_PER_SEC           /* a thread is remembered this long after its exit record */

struct exited {
	uint32_t tid;
	uint64_t time_ns;
};

struct perf_state {
	struct perf_state_config cfg;
	struct slots processes, threads;
	struct table by_pid, by_tid;
	uint64_t now_ns;                  /* time of the newest record; queued ones are not newer */
	struct object *kernel;
	uint64_t kernel_base;                /* address of _text; 0 = hidden */
	struct kernel_symbols *kernel_symbols; /* code that was added at run time */
	bool kernel_stale;                   /* they are to be read again, from kernel_due_ns on */
	uint64_t kernel_due_ns;
	_Atomic uint64_t skipped_mappings;
	_Atomic uint32_t skipped_pid;
	struct exited *exited;               /* FIFO: [exited_first, exited_count) */
	uint32_t exited_first, exited_count, exited_capacity;
	struct perf_scan *scan;
};

/* ---- lookups --------------------------------------------------------------------------------- */

static bool pid_same(const void *ctx, uint32_t value, const void *key)
{
	const struct perf_state *s = ctx;
	const struct perf_process *p = slots_get(&s->processes, value);

	return p->pid == *(const uint32_t *)key;
}

static bool tid_same(const void *ctx, uint32_t value, const void *key)
{
	const struct perf_state *s = ctx;
	const struct perf_thread *t = slots_get(&s->threads, value);

	return t->tid == *(const uint32_t *)key;
}

struct perf_process *perf_state_find(struct perf_state *s, uint32_t pid)
{
	uint32_t number = table_find(&s->by_pid, hash_u64(pid), pid_same, s, &pid);

	return number == TABLE_NONE ? NULL : slots_get(&s->processes, number);
}

struct perf_thread *perf_state_find_thread(struct perf_state *s, uint32_t tid)
{
	uint32_t number = table_find(&s->by_tid, hash_u64(tid), tid_same, s, &tid);

	return number == TABLE_NONE ? NULL : slots_get(&s->threads, number);
}

/* The thread in a place of the table; NULL = the place is empty. */
static struct perf_thread *thread_at(const struct perf_state *s, uint32_t place)
{
	uint32_t number = s->by_tid.slots[place].value;

	return number == TABLE_NONE ? NULL : slots_get(&s->threads, number);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_process_event(struct perf_state *s, enum event_kind kind, struct perf_process *p,
			      uint32_t tid, uint64_t time_ns)
{
	struct event e = {.time_ns = time_ns, .kind = kind, .cpu = CPU_NONE, .stack = STACK_NONE};

	e.process = p->process;
	e.thread = thread_add(s->cfg.processes, p->process, tid);
	e.name = process_name(p->process);
	queue_put(s->cfg.queue, &e);
}

/* The merge thread has the symbol worker open the object while its process lives. */
static void put_image_event(struct perf_state *s, struct perf_process *p, struct object *object,
			    uint64_t time_ns)
{
	struct frame_ref ref = {.object = object};
	struct event e = {.time_ns = time_ns, .kind = EVENT_IMAGE, .cpu = CPU_NONE,
			  .stack = STACK_NONE, .stack_frames = &ref, .nstack_frames = 1};

	e.process = p->process;
	e.name = object->name;
	queue_put(s->cfg.queue, &e);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void remove_process(struct perf_state *s, struct perf_process *p, uint64_t now_ns)
{
	maps_free(p->maps, now_ns);
	if (p->process)
		process_drop(s->cfg.processes, p->process, now_ns);
	table_remove(&s->by_pid, hash_u64(p->pid), p->number);
	slots_free_one(&s->processes, p->number);
}

static void remove_thread(struct perf_state *s, struct perf_thread *t, uint64_t now_ns)
{
	struct perf_process *p = t->process;

	thread_drop(s->cfg.processes, t->thread, now_ns);
	free(t->memory);
	if (!t->exited_ns)
		p->nalive--;
	table_remove(&s->by_tid, hash_u64(t->tid), t->number);
	slots_free_one(&s->threads, t->number);
	if (--p->nthreads == 0)
		remove_process(s, p, now_ns);
}

void perf_state_tidy(struct perf_state *s, struct perf_process *process)
{
	if (!process->nthreads)
		remove_process(s, process, s->now_ns);
}

/*
 * Remove all threads of a process but one. It walks over them, because usually there is no other
 * when a program is executed.
 */
static void remove_threads_except(struct perf_state *s, struct perf_process *p, uint32_t tid)
{
	const struct perf_thread *kept = perf_state_find_thread(s, tid);
	uint32_t i = 0, others = p->nthreads - (kept && kept->process == p);

	while (others && i < s->by_tid.nslots) {
		struct perf_thread *t = thread_at(s, i);

		if (t && t->process == p && t != kept) {
			others--;
			remove_thread(s, t, s->now_ns);  /* the last one frees the process too */
		} else {
			i++;
		}
	}
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Its names have changed: does --record-process still name it? */
static void update_skipped(const struct perf_state *s, struct perf_process *p)
{
	p->skipped = s->cfg.only_process && !process_is_meant(p->process, s->cfg.only_process);
}

/* Only if names are needed: they may be those of argv[0] or of a script. */
static void read_command_line(struct perf_state *s, struct perf_process *p)
{
	if (s->cfg.command_lines && !p->kernel && !atomic_load(&p->process->cmdline)) {
		symbols_read_command_line(p->process);
		update_skipped(s, p);
	}
}

struct perf_process *perf_state_add_process(struct perf_state *s, uint32_t pid, uint32_t parent_pid,
					    uint64_t start_ns, const char *comm)
{
	struct perf_process *p = perf_state_find(s, pid);
	uint32_t number;

	if (p)
		remove_threads_except(s, p, UINT32_MAX);             /* its exit was lost */
	number = table_add_slot(&s->by_pid, hash_u64(pid), &s->processes, SLOTS_NONE);
	if (number == SLOTS_NONE)
		return NULL;
	p = slots_get(&s->processes, number);
	p->number = number;
	p->pid = pid;
	p->parent_pid = parent_pid;
	p->start_ns = start_ns;
	p->process = process_add(s->cfg.processes, pid, start_ns, 0, parent_pid, comm);
	p->maps = p->process ? maps_new() : NULL;
	if (!p->maps) {
		remove_process(s, p, start_ns);
		return NULL;
	}
	update_skipped(s, p);
	return p;
}

struct perf_thread *perf_state_add_thread(struct perf_state *s, struct perf_process *process,
					  uint32_t tid)
{
	struct perf_thread *t = perf_state_find_thread(s, tid);
	struct thread *thread;
	uint32_t number;

	if (t && t->process == process && !t->exited_ns)
		return t;
	if (t) {
		process->nthreads++;         /* keeps it alive when the old thread goes */
		remove_thread(s, t, s->now_ns);
		process->nthreads--;
	}
	thread = thread_add(s->cfg.processes, process->process, tid);
	number = thread ? table_add_slot(&s->by_tid, hash_u64(tid), &s->threads, SLOTS_NONE)
			: SLOTS_NONE;
	if (number == SLOTS_NONE)
		return NULL;
	t = slots_get(&s->threads, number);
	*t = (struct perf_thread){
		.number = number, .tid = tid, .process = process, .thread = thread};
	process->nthreads++;
	process->nalive++;
	return t;
}

void perf_state_exe(struct perf_state *s, struct perf_process *process, const char *path)
{
	process_set_exe(process->process, path);
	process->exe_known = true;
	update_skipped(s, process);
	read_command_line(s, process);
}

/* ---- mappings -------------------------------------------------------------------------------- */

size_t perf_path_length(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), suffix = sizeof(deleted) - 1;

	return n > suffix && strcmp(path + n - suffix, deleted) == 0 ? n - suffix : n;
}

const char *perf_mapping_path(const char *path, uint64_t start)
{
	return strcmp(path, "[vdso]") == 0 && start < (uint64_t)1 << 32 ? "[vdso32]" : path;
}

void perf_mapping_kind(const char *path, const struct perf_process *process, struct object_key *key)
{
	static const char *const run_time[] = {"//anon", "/memfd:", "/dev/zero", "/SYSV",
					       "/anon_hugepage"};
	size_t i;

	key->kind = OBJECT_ELF;
	key->path = path;
	if (strncmp(path, "[vdso", 5) == 0)
		return;
	for (i = 0; i < COUNT_OF(run_time); i++) {
		if (strncmp(path, run_time[i], strlen(run_time[i])) == 0)
			break;
	}
	if (path[0] == '/' && i == COUNT_OF(run_time))
		return;
	memset(key, 0, sizeof(*key));
	key->kind = OBJECT_JIT;
	key->pid = process->pid;
	/* A pid may be reused, and exec starts anew: earlier names of an address are void then. */
	key->epoch = (uint32_t)hash_pair(process->start_ns, process->exec);
	key->path = "[jit]";
}

void perf_state_map(struct perf_state *s, struct perf_process *process,
		    const struct object_key *key, uint64_t start, uint64_t end, uint64_t pgoff)
{
	struct mapping m = {.start = start, .end = end, .pgoff = pgoff};
	struct object *object = objects_get(s->cfg.frames, key, process->pid);
	int rc;

	if (!object)
		return;
	m.object = object;
	if (key->kind == OBJECT_JIT) {
		m.flags = FRAME_JIT;
		m.pgoff = start;             /* its offsets are addresses */
	}
	process->jvm |= strcmp(object->name, "libjvm.so") == 0;
	rc = maps_insert(&process->maps, &m, s->now_ns);
	if (rc == ERR_LIMIT && !process->maps_full) {
		process->maps_full = true;
		log_line(s->cfg.log, LOG_WARN,
			 "%s (%u) has more than %u executable mappings: frames in the others have "
			 "no name",
			 process_name(process->process), process->pid, MAPS_MAX);
	}
	if (!rc)
		put_image_event(s, process, object, s->now_ns);
}

int perf_state_clear_maps(struct perf_state *s, struct perf_process *process)
{
	struct maps *maps = maps_new();

	if (!maps)
		return ERR_MEMORY;
	maps_free(process->maps, s->now_ns);
	process->maps = maps;
	process->maps_full = false;
	process->jvm = process->jvm_asked = false;
	return 0;
}

void perf_state_locate(struct perf_state *s, const struct perf_process *process, uint64_t address,
		       bool kernel, struct frame_ref *out)
{
	const struct mapping *m;

	if (kernel && kernel_symbols_find(s->kernel_symbols, address, out))
		return;
	if (kernel) {
		out->object = s->kernel;
		out->offset = address - s->kernel_base;
		return;
	}
	m = process ? maps_find(process->maps, address) : NULL;
	if (m) {
		out->object = m->object;
		out->offset = address - m->start + m->pgoff;
		out->flags |= m->flags;
	} else {
		out->object = objects_unknown(s->cfg.frames);
		out->offset = address;
	}
}

bool perf_state_in_exec(const struct perf_state *s, const uint64_t *chain, uint32_t n)
{
	return kernel_symbols_in_exec(s->kernel_symbols, chain, n);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct perf_process *known_process(struct perf_state *s, uint32_t pid)
{
	struct perf_process *p = perf_state_find(s, pid);

	if (!p && perf_scan_process(s->scan, pid) == 0)
		p = perf_state_find(s, pid);
	return p;
}

/* A child has what its parent has, until it calls exec. */
static void inherit(struct perf_state *s, struct perf_process *child, const struct perf_record *r)
{
	struct perf_process *parent = known_process(s, r->u.task.parent_pid);
	const char *comm = parent ? atomic_load(&parent->process->comm) : NULL;
	const char *cmdline = parent ? atomic_load(&parent->process->cmdline) : NULL;

	if (!parent) {
		perf_scan_process(s->scan, child->pid);
		return;
	}
	maps_free(child->maps, r->time_ns);
	child->maps = maps_share(parent->maps);
	child->mapped_until_ns = parent->mapped_until_ns;
	child->maps_flood = parent->maps_flood;
	child->flood_logged = parent->flood_logged;
	child->kernel = parent->kernel;
	child->jvm = parent->jvm;
	if (child->kernel)
		return;                      /* a COMM record with its name follows */
	if (comm)
		process_set_comm(child->process, comm);
	if (parent->exe_known)
		perf_state_exe(s, child, process_name(parent->process));
	if (cmdline)
		process_set_cmdline(child->process, cmdline);
	update_skipped(s, child);
}

static void on_fork(struct perf_state *s, const struct perf_record *r)
{
	bool new_process = r->pid != r->u.task.parent_pid;
	struct perf_thread *t = perf_state_find_thread(s, r->u.task.parent_tid);
	struct perf_process *p;
	char name[16] = "";

	if (t)
		thread_name(t->thread, name);
	if (new_process)
		p = perf_state_add_process(s, r->pid, r->u.task.parent_pid, r->time_ns, NULL);
	else
		p = known_process(s, r->pid);
	if (!p)
		return;
	t = perf_state_add_thread(s, p, r->tid);
	if (t && name[0])
		thread_set_name(t->thread, name);
	if (t && new_process) {
		inherit(s, p, r);
		put_process_event(s, EVENT_PROCESS_START, p, r->tid, r->time_ns);
	}
	perf_state_tidy(s, p);
}

int perf_state_exec(struct perf_state *s, struct perf_process *p, uint32_t tid, const char *comm)
{
	/* First: the thread that calls exec becomes the leader, which may have exited before. */
	struct perf_thread *t = perf_state_add_thread(s, p, tid);
	struct process *fresh = NULL;
	struct thread *thread = NULL;

	if (!t || perf_state_clear_maps(s, p))
		return ERR_MEMORY;
	remove_threads_except(s, p, tid);
	fresh = process_add(s->cfg.processes, p->pid, p->start_ns, p->exec + 1, p->parent_pid,
			    comm);
	if (fresh)
		thread = thread_add(s->cfg.processes, fresh, tid);
	if (!thread) {
		if (fresh)
			process_drop(s->cfg.processes, fresh, s->now_ns);
		return ERR_LIMIT;            /* it keeps its old name */
	}
	process_drop(s->cfg.processes, p->process, s->now_ns);
	p->process = fresh;
	p->exec++;
	p->exe_known = false;
	p->kernel = false;
	update_skipped(s, p);
	read_command_line(s, p);
	t->thread = thread;
	if (t->memory)
		t->memory->npairs = 0;
	thread_set_name(thread, comm);
	put_process_event(s, EVENT_PROCESS_START, p, tid, s->now_ns);
	return 0;
}

static void on_comm(struct perf_state *s, const struct perf_record *r)
{
	struct perf_process *p = perf_state_find(s, r->pid);
	struct perf_thread *t;

	if (r->u.comm.exec) {
		if (p)
			perf_state_exec(s, p, r->tid, r->u.comm.name);
		else
			known_process(s, r->pid);
		return;
	}
	t = perf_state_find_thread(s, r->tid);
	if (t)
		thread_set_name(t->thread, r->u.comm.name);
	if (p && p->kernel && r->tid == p->pid)
		process_set_comm(p->process, r->u.comm.name);
}

/*
 * Charge a process for a mapping record. mapped_until_ns is when its budget is whole again.
 *
 * returns  false when it has none left
 */
static bool spend_mapping(struct perf_state *s, struct perf_process *p)
{
	const uint64_t cost_ns = NS_PER_SEC / MAPPINGS_PER_SEC_MAX;

	p->mapped_until_ns = p->mapped_until_ns > s->now_ns ? p->mapped_until_ns : s->now_ns;
	if (p->mapped_until_ns + cost_ns <= s->now_ns + MAPPINGS_CALM_NS)
		p->mapped_until_ns += cost_ns;
	else
		p->maps_flood = true;
	if (!p->maps_flood || p->flood_logged)
		return !p->maps_flood;
	p->flood_logged = true;
	log_line(s->cfg.log, LOG_WARN,
		 "%s (%u) changes its executable mappings more than %u times a second: further "
		 "changes are skipped until it has been calm for %u s, and its new code is unknown",
		 process_name(p->process), p->pid, MAPPINGS_PER_SEC_MAX,
		 (unsigned)(MAPPINGS_CALM_NS / NS_PER_SEC));
	return false;
}

/* What was mapped there is gone: its code must not have the old name. */
static void skip_mapping(struct perf_state *s, struct perf_process *p, const struct perf_record *r)
{
	maps_remove(&p->maps, r->u.mmap.start, r->u.mmap.start + r->u.mmap.bytes, s->now_ns);
	atomic_fetch_add_explicit(&s->skipped_mappings, 1, memory_order_relaxed);
	atomic_store_explicit(&s->skipped_pid, p->pid, memory_order_relaxed);
}

uint64_t perf_state_skipped(const struct perf_state *s, uint32_t *pid)
{
	*pid = atomic_load(&s->skipped_pid);
	return atomic_load(&s->skipped_mappings);
}

/* Read the mappings of a process anew when it is calm again; its threads may be others then. */
static void end_flood(struct perf_state *s, struct perf_process *p)
{
	if (!p->maps_flood || s->now_ns < p->mapped_until_ns)
		return;
	p->maps_flood = false;
	if (perf_scan_process(s->scan, p->pid) == ERR_LIMIT)
		p->maps_flood = true;        /* later */
}

static void on_mmap(struct perf_state *s, const struct perf_record *r)
{
	struct perf_process *p = known_process(s, r->pid);
	struct object_key key = {0};
	char path[PATH_MAX_BYTES];

	if (!p)
		return;
	end_flood(s, p);
	if (!spend_mapping(s, p)) {
		skip_mapping(s, p, r);
		return;
	}
	snprintf(path, sizeof(path), "%.*s", (int)perf_path_length(r->u.mmap.path), r->u.mmap.path);
	perf_mapping_kind(perf_mapping_path(path, r->u.mmap.start), p, &key);
	if (key.kind == OBJECT_ELF) {
		key.build_id_bytes = r->u.mmap.build_id_bytes;
		memcpy(key.build_id, r->u.mmap.build_id, r->u.mmap.build_id_bytes);
		key.dev = makedev(r->u.mmap.major, r->u.mmap.minor);
		key.ino = r->u.mmap.ino;
		/* /proc/PID/maps does not have it, and the key must be the same */
		key.ino_generation = 0;
		if (!p->exe_known && path[0] == '/')
			perf_state_exe(s, p, path);
	} else {
		p->exe_known = true;         /* a program in a memfd: its short name is better */
	}
	read_command_line(s, p);             /* again, in case exec had not written it yet */
	perf_state_map(s, p, &key, r->u.mmap.start, r->u.mmap.start + r->u.mmap.bytes,
		       r->u.mmap.pgoff);
}

/* Remember it for FORGET_NS; without memory, until its tid is reused. */
static void remember_exited(struct perf_state *s, uint32_t tid, uint64_t time_ns)
{
	if (!ARRAY_ROOM(s->exited, s->exited_capacity, s->exited_count + 1))
		s->exited[s->exited_count++] = (struct exited){tid, time_ns};
}

/* t: NULL = not known */
static void thread_exits(struct perf_state *s, struct perf_thread *t)
{
	if (!t || t->exited_ns)
		return;
	t->exited_ns = s->now_ns;
	if (--t->process->nalive == 0)
		put_process_event(s, EVENT_PROCESS_EXIT, t->process, t->tid, s->now_ns);
	remember_exited(s, t->tid, s->now_ns);
}

void perf_state_feed(struct perf_state *s, const struct perf_record *r)
{
	s->now_ns = r->time_ns;
	if (r->kind != PERF_KIND_FORK && (r->kind != PERF_KIND_EXIT || r->tid == r->pid))
		perf_scan_note(s->scan, r->pid, r->time_ns);
	switch (r->kind) {
	case PERF_KIND_FORK:
		on_fork(s, r);
		break;
	case PERF_KIND_COMM:
		on_comm(s, r);
		break;
	case PERF_KIND_MMAP:
		on_mmap(s, r);
		break;
	case PERF_KIND_EXIT:
		thread_exits(s, perf_state_find_thread(s, r->tid));
		break;
	case PERF_KIND_KSYMBOL:
		kernel_symbols_feed(s->kernel_symbols, r);
		break;
	default:
		break;
	}
}

void perf_state_expire(struct perf_state *s, uint64_t now_ns)
{
	while (s->exited_first < s->exited_count &&
	       s->exited[s->exited_first].time_ns + FORGET_NS < now_ns) {
		const struct exited *e = &s->exited[s->exited_first++];
		struct perf_thread *t = perf_state_find_thread(s, e->tid);

		if (t && t->exited_ns == e->time_ns)
			remove_thread(s, t, now_ns);
	}
	/* Move the rest to the front once it is the smaller half. */
	if (s->exited_first && s->exited_first >= s->exited_count - s->exited_first) {
		s->exited_count -= s->exited_first;
		memmove(s->exited, s->exited + s->exited_first,
			s->exited_count * sizeof(*s->exited));
		s->exited_first = 0;
	}
}

/* Two pids belong to no process: the idle task's, and that of tasks that have already exited. */
static const char *pid_comm(uint32_t pid)
{
	return pid == 0 ? "idle" : pid == UINT32_MAX ? "exited" : NULL;
}

bool perf_state_reading(struct perf_state *s, uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	const struct perf_thread *t = perf_state_find_thread(s, tid);

	s->now_ns = now_ns;
	return !(t && t->process->pid == pid) && !perf_state_find(s, pid) &&
	       perf_scan_process(s->scan, pid) == ERR_BUSY;
}

struct perf_thread *perf_state_thread(struct perf_state *s, uint32_t pid, uint32_t tid,
				      uint64_t now_ns)
{
	struct perf_thread *t = perf_state_find_thread(s, tid);
	struct perf_process *p;

	s->now_ns = now_ns;
	if (t && t->process->pid == pid && t->process->maps_flood) {
		end_flood(s, t->process);
		t = perf_state_find_thread(s, tid);
	}
	if (t && t->process->pid == pid)
		return t;
	p = known_process(s, pid);
	if (!p)
		p = perf_state_add_process(s, pid, 0, now_ns, pid_comm(pid));
	if (!p)
		return NULL;
	p->kernel |= pid_comm(pid) != NULL;
	t = perf_state_add_thread(s, p, tid);
	perf_state_tidy(s, p);
	return t;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The kernel's build id: /sys/kernel/notes holds ELF notes, one of them "GNU" type 3. */
static void read_kernel_build_id(struct object_key *key)
{
	struct buf notes = {0};
	struct cursor c;
	uint32_t head[3];                    /* bytes of name and body, type */

	os_load("/sys/kernel/notes", 65536, &notes, NULL);
	for (c = cursor_over(notes.data, notes.len); cursor_get(&c, head, sizeof(head));) {
		const uint8_t *name = cursor_take(&c, (head[0] + UINT64_C(3)) & ~UINT64_C(3));
		const uint8_t *body = cursor_take(&c, (head[1] + UINT64_C(3)) & ~UINT64_C(3));

		if (!name || !body)
			break;
		if (head[2] == 3 && head[0] == 4 && memcmp(name, "GNU", 4) == 0 &&
		    head[1] <= BUILD_ID_MAX) {
			key->build_id_bytes = (uint8_t)head[1];
			memcpy(key->build_id, body, head[1]);
		}
	}
	buf_free(&notes);
}

int perf_state_new(const struct perf_state_config *cfg, struct perf_state **out, struct err *err)
{
	struct object_key kernel = {.kind = OBJECT_KERNEL, .path = "[kernel]"};
	struct perf_state *s = calloc(1, sizeof(*s));
	struct err why;

	if (!s)
		return err_memory(err, "for process state");
	s->cfg = *cfg;
	s->now_ns = os_now_ns();
	read_kernel_build_id(&kernel);
	s->kernel = objects_get(cfg->frames, &kernel, 0);
	s->kernel_symbols = kernel_symbols_new(cfg->frames, cfg->log);
	if (perf_scan_new(s, cfg->log, cfg->build_ids, &s->scan, err)) {
		perf_state_free(s);
		return ERR_MEMORY;
	}
	if (!s->kernel || !s->kernel_symbols ||
	    slots_init(&s->processes, sizeof(struct perf_process), PROCESSES_MAX) ||
	    slots_init(&s->threads, sizeof(struct perf_thread), THREADS_MAX)) {
		perf_state_free(s);
		return err_memory(err, "for process state");
	}
	if (kallsyms_text_base(&s->kernel_base, &why) != 0) {
		s->kernel_base = 0;
		log_line(cfg->log, LOG_WARN, "kernel functions will have no names: %s", why.text);
	}
	*out = s;
	return 0;
}

void perf_state_free(struct perf_state *s)
{
	uint32_t i;

	if (!s)
		return;
	perf_scan_free(s->scan);
	for (i = 0; i < s->by_pid.nslots; i++) {
		uint32_t number = s->by_pid.slots[i].value;
		struct perf_process *p =
			number == TABLE_NONE ? NULL : slots_get(&s->processes, number);

		if (p) {
			maps_free(p->maps, s->now_ns);
			process_drop(s->cfg.processes, p->process, s->now_ns);
		}
	}
	for (i = 0; i < s->by_tid.nslots; i++)
		if (thread_at(s, i))
			free(thread_at(s, i)->memory);
	slots_free(&s->processes);
	slots_free(&s->threads);
	table_free(&s->by_pid);
	table_free(&s->by_tid);
	if (s->kernel)
		object_drop(s->kernel, s->now_ns);
	kernel_symbols_free(s->kernel_symbols, s->now_ns);
	free(s->exited);
	free(s);
}

/*
 * Forget processes whose exit record was lost. Asks by pid, because /proc may hide other users'
 * processes.
 */
static void forget_dead(struct perf_state *s)
{
	uint32_t i;

	for (i = 0; i < s->by_tid.nslots; i++) {
		struct perf_thread *t = thread_at(s, i);

		if (t && !pid_comm(t->process->pid) &&
		    syscall(SYS_tgkill, (int)t->process->pid, (int)t->tid, 0) < 0 && errno == ESRCH)
			thread_exits(s, t);
	}
}

/*
 * Read the symbols of kernel code again, which takes 30 ms. Without records names would become
 * wrong. In a flood records are lost each second.
 */
static void rescan_kernel_symbols(struct perf_state *s)
{
	struct buf text = {0};

	if (!s->kernel_stale || s->now_ns < s->kernel_due_ns)
		return;
	s->kernel_stale = false;
	s->kernel_due_ns = s->now_ns + KERNEL_GAP_NS;
	if (s->cfg.ksymbols && s->kernel_base && kallsyms_read(&text, NULL) == 0)
		kernel_symbols_scan(s->kernel_symbols, buf_text(&text), text.len, s->now_ns);
	buf_free(&text);
}

static int begin_scan(struct perf_state *s, uint64_t now_ns, struct err *err)
{
	s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
	forget_dead(s);
	s->kernel_stale = true;
	rescan_kernel_symbols(s);
	return perf_scan_all(s->scan, err);
}

int perf_state_scan(struct perf_state *s, uint64_t now_ns, struct err *err)
{
	int rc = begin_scan(s, now_ns, err);

	if (!rc)
		perf_scan_wait(s->scan, PERF_SCAN_NS);
	return rc;
}

void perf_state_rescan(struct perf_state *s, uint64_t now_ns)
{
	begin_scan(s, now_ns, NULL);
}

void perf_state_look(struct perf_state *s, uint64_t now_ns)
{
	s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
	rescan_kernel_symbols(s);
	perf_scan_look(s->scan);
}
