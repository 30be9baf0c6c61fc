#include "source/perf/state_private.h"

#include "base/array.h"
#include "base/log.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/managed_linux.h"
#include "source/perf/names_linux.h"
#include "source/perf/program_linux.h"
#include "symbol/kallsyms.h"
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define PATH_MAX_BYTES 4200u           /* of a mapping's path: the kernel's PATH_MAX and a suffix */
#define TELL_MAX 4u                    /* mappings of an object that are there at the start */
#define FORGET_NS NS_PER_SEC           /* a thread is remembered this long after its exit record */

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

struct perf_thread *perf_state_known_thread(struct perf_state *s, uint32_t tid)
{
	uint32_t number = table_find(&s->by_tid, hash_u64(tid), tid_same, s, &tid);

	return number == TABLE_NONE ? NULL : slots_get(&s->threads, number);
}

/* ---- events ---------------------------------------------------------------------------------- */

void perf_state_put_event(struct perf_state *s, enum event_kind kind, struct perf_process *p,
			  uint32_t tid, uint64_t time_ns)
{
	struct event e = {.time_ns = time_ns, .kind = kind, .cpu = CPU_NONE, .stack = STACK_NONE,
			  .process = p->process, .name = process_name(p->process)};
	bool wanted = !p->outside && !(s->cfg.only_its_events && p->skipped);

	e.thread = wanted ? thread_add(s->cfg.processes, p->process, tid) : NULL;
	if (wanted)
		queue_put(s->cfg.queue, &e);
}

/*
 * The merge thread has the symbol worker open the object while its process lives. At the start a
 * library is mapped by many: a few are told, so that one that ends at once has others behind it.
 */
static void put_image_event(struct perf_state *s, struct perf_process *p, struct object *object,
			    uint64_t time_ns)
{
	struct frame_ref ref = {.object = object};
	struct event e = {.time_ns = time_ns, .kind = EVENT_IMAGE, .cpu = CPU_NONE,
			  .stack = STACK_NONE, .stack_frames = &ref, .nstack_frames = 1,
			  .process = p->process, .name = object->name};

	if (!s->starting || atomic_load(&object->refs) <= TELL_MAX)
		queue_put(s->cfg.queue, &e);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void clear_process(struct perf_state *s, struct perf_process *p, uint64_t now_ns)
{
	perf_names_forget(s->names, p);
	perf_managed_forget(s->cfg.managed, p, now_ns);
	maps_free(p->maps, now_ns);
	perf_state_forget_before(p);
	if (p->process)
		process_drop(s->cfg.processes, p->process, now_ns);
}

static void remove_process(struct perf_state *s, struct perf_process *p, uint64_t now_ns)
{
	clear_process(s, p, now_ns);
	if (p->left_out)
		perf_program_leave_out(s->cfg.program, p->pid, false);
	table_remove(&s->by_pid, hash_u64(p->pid), p->number);
	slots_free_one(&s->processes, p->number);
}

/*
 * A use of its own: a process that is doubted is dropped while its threads are still known here,
 * and what is at the place of a thread that was swept may be another one.
 */
static void take_thread(struct perf_thread *t, struct thread *thread)
{
	thread_ref(thread);
	t->thread = thread;
}

static void leave_thread(struct perf_state *s, struct perf_thread *t, uint64_t now_ns)
{
	thread_drop(s->cfg.processes, t->thread, now_ns);
	thread_unref(t->thread);
	t->thread = NULL;
}

static void remove_thread(struct perf_state *s, struct perf_thread *t, uint64_t now_ns)
{
	struct perf_process *p = t->process;

	leave_thread(s, t, now_ns);
	free(t->memory);
	if (!t->exited_ns)
		p->nalive--;
	table_remove(&s->by_tid, hash_u64(t->tid), t->number);
	slots_free_one(&s->threads, t->number);
	if (--p->nthreads == 0)
		remove_process(s, p, now_ns);
}

void perf_state_leave_out(struct perf_state *s, struct perf_process *process)
{
	if (process->left_out)
		return;
	process->left_out = true;
	perf_program_leave_out(s->cfg.program, process->pid, true);
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
	const struct perf_thread *kept = perf_state_known_thread(s, tid);
	uint32_t at = 0, n, others = p->nthreads - (kept && kept->process == p);

	while (others && (n = table_next(&s->by_tid, &at)) != TABLE_NONE) {
		struct perf_thread *t = slots_get(&s->threads, n);

		if (t->process != p || t == kept)
			continue;
		others--;
		at--;
		remove_thread(s, t, s->now_ns);      /* the last one frees the process too */
	}
}

/* ---- adding ---------------------------------------------------------------------------------- */

struct perf_process *perf_state_add_process(struct perf_state *s, uint32_t pid, uint32_t parent_pid,
					    uint64_t start_ns, const char *comm)
{
	struct perf_process *p = perf_state_find(s, pid), *parent;
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
	parent = perf_state_find(s, parent_pid);
	p->outside = s->cfg.root_pid && pid != s->cfg.root_pid && (!parent || parent->outside);
	p->sure_ns = s->now_ns;
	/* It may have left these tables while it lived. */
	p->process = process_add_next(s->cfg.processes, pid, start_ns, 0, parent_pid, comm);
	p->maps = p->process ? maps_new() : NULL;
	if (!p->maps) {
		remove_process(s, p, start_ns);
		return NULL;
	}
	p->exec = p->process->exec;
	perf_names_update(s->names, p);
	return p;
}

/* Its process was doubted, and is another one to those who see it. At a ceiling it stays. */
void perf_state_follow(struct perf_state *s, struct perf_thread *t)
{
	struct thread *thread;

	if (t->thread->process == t->process->process)
		return;
	thread = thread_add(s->cfg.processes, t->process->process, t->tid);
	if (!thread)
		return;
	leave_thread(s, t, s->now_ns);
	take_thread(t, thread);
	if (t->memory)
		t->memory->npairs = 0;
}

struct perf_thread *perf_state_add_thread(struct perf_state *s, struct perf_process *process,
					  uint32_t tid)
{
	struct perf_thread *t = perf_state_known_thread(s, tid);
	struct thread *thread;
	uint32_t number;

	if (t && t->process == process && !t->exited_ns) {
		perf_state_follow(s, t);
		return t;
	}
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
	*t = (struct perf_thread){.number = number, .tid = tid, .process = process};
	take_thread(t, thread);
	process->nthreads++;
	process->nalive++;
	return t;
}

void perf_state_exe(struct perf_state *s, struct perf_process *process, const char *path)
{
	process_set_exe(process->process, path);
	process->exe_known = true;
	perf_names_update(s->names, process);
	perf_names_read(s->names, process);
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* No sample of it is kept. The root begins with the mappings of our own process. */
static bool maps_are_of_no_use(const struct perf_process *p)
{
	return p->outside && p->pid != os_pid();
}

void perf_state_map(struct perf_state *s, struct perf_process *process,
		    const struct object_key *key, uint64_t start, uint64_t end, uint64_t pgoff)
{
	struct mapping m = {.start = start, .end = end, .pgoff = pgoff};
	struct object *object;
	int rc;

	if (maps_are_of_no_use(process))
		return;
	m.object = object = objects_get_for(s->cfg.frames, key, process->pid, proc_pid_user);
	if (!object)
		return;
	if (key->kind == OBJECT_JIT)         /* its offsets are addresses */
		m.flags = FRAME_JIT, m.pgoff = start;
	if (!process->jvm && strcmp(object->name, "libjvm.so") == 0) {
		process->jvm = true;
		if (s->cfg.java.tell)
			s->cfg.java.tell(s->cfg.java.ctx, process->process);
	}
	if (key->kind == OBJECT_ELF && start >= pgoff)
		perf_managed_map(s->cfg.managed, process, object, start - pgoff);
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
	process->jvm = false;
	perf_managed_forget(s->cfg.managed, process, s->now_ns);
	return 0;
}

void perf_state_locate_kernel(struct perf_state *s, uint64_t address, struct frame_ref *out)
{
	if (kernel_symbols_find(s->kernel_symbols, address, out))
		return;
	out->object = s->kernel;
	out->offset = address - s->kernel_base;
}

const struct mapping *perf_state_locate(struct perf_state *s, const struct perf_process *process,
					const struct mapping *near, uint64_t address,
					struct frame_ref *out)
{
	const struct mapping *m = near;

	if (!m || address < m->start || address >= m->end)
		m = process ? maps_find(process->maps, address) : NULL;
	if (m) {
		out->object = m->object;
		out->offset = address - m->start + m->pgoff;
		out->flags |= m->flags;
	} else {
		out->object = objects_unknown(s->cfg.frames);
		out->offset = address;
	}
	return m;
}

bool perf_state_in(const struct perf_state *s, enum kernel_place place, const uint64_t *chain,
		   uint32_t n)
{
	return kernel_symbols_in(s->kernel_symbols, place, chain, n);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct perf_process *known_process(struct perf_state *s, uint32_t pid)
{
	struct perf_process *p = perf_state_find(s, pid);

	/* After a loss, what runs by the time it is read may be another program. */
	if (p || s->lost_until_ns || perf_scan_process(s->scan, pid))
		return p;
	return perf_state_find(s, pid);
}

/* A child has what its parent has, until it calls exec. */
static void inherit(struct perf_state *s, struct perf_process *child, const struct perf_record *r)
{
	struct perf_process *parent = known_process(s, r->u.task.parent_pid);
	const char *comm, *cmdline;

	if (parent)
		perf_state_doubt(s, parent);
	child->unnamed = parent ? parent->unnamed
				: s->lost_until_ns || perf_scan_process(s->scan, child->pid);
	if (!parent || child->unnamed)
		return;
	comm = atomic_load(&parent->process->comm);
	cmdline = atomic_load(&parent->process->cmdline);
	maps_free(child->maps, r->time_ns);
	child->maps = maps_share(parent->maps);
	child->mapped_until_ns = parent->mapped_until_ns;
	child->maps_flood = parent->maps_flood;
	child->flood_logged = parent->flood_logged;
	child->kernel = parent->kernel;
	child->jvm = parent->jvm;
	perf_managed_inherit(s->cfg.managed, child, parent);
	if (child->kernel)
		return;                      /* a COMM record with its name follows */
	process_inherit_home(child->process, parent->process);
	if (comm)
		process_set_comm(child->process, comm);
	if (parent->exe_known)
		process_set_exe(child->process, process_name(parent->process));
	child->exe_known = parent->exe_known;
	if (cmdline)
		process_set_cmdline(child->process, cmdline);
	perf_names_read(s->names, child);
	perf_names_update(s->names, child);
}

static void on_fork(struct perf_state *s, const struct perf_record *r)
{
	bool new_process = r->pid != r->u.task.parent_pid;
	struct perf_thread *t = perf_state_known_thread(s, r->u.task.parent_tid);
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
	if (t && new_process) {
		inherit(s, p, r);
		t = perf_state_known_thread(s, r->tid);
	}
	/* Its parent's name may be another by now, where a record of that is missing. */
	if (t && name[0] && !(new_process ? p->unnamed : perf_state_is_doubtful(s, p)))
		thread_set_name(t->thread, name);
	if (t && new_process)
		perf_state_put_event(s, EVENT_PROCESS_START, p, r->tid, r->time_ns);
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
	fresh = process_add_next(s->cfg.processes, p->pid, p->start_ns, p->exec + 1, p->parent_pid,
				 comm);
	if (fresh)
		thread = thread_add(s->cfg.processes, fresh, tid);
	if (!thread) {
		if (fresh)
			process_drop(s->cfg.processes, fresh, s->now_ns);
		return ERR_LIMIT;            /* it keeps its old name */
	}
	perf_names_forget(s->names, p);
	process_inherit_home(fresh, p->process);
	perf_state_forget_before(p);
	p->sure_ns = s->now_ns;
	process_drop(s->cfg.processes, p->process, s->now_ns);
	p->process = fresh;
	p->exec = fresh->exec;
	p->exe_known = false;
	p->kernel = false;
	perf_names_update(s->names, p);
	perf_names_read(s->names, p);
	leave_thread(s, t, s->now_ns);
	take_thread(t, thread);
	if (t->memory)
		t->memory->npairs = 0;
	thread_set_name(thread, comm);
	perf_state_put_event(s, EVENT_PROCESS_START, p, tid, s->now_ns);
	return 0;
}

/* The record of its fork was lost, or /proc did not answer at the start. */
static void add_executed(struct perf_state *s, const struct perf_record *r)
{
	struct perf_process *p =
		perf_state_add_process(s, r->pid, 0, r->time_ns, r->u.comm.name);

	if (p)
		perf_state_add_thread(s, p, r->tid);
	if (p)
		perf_state_tidy(s, p);
}

static void on_comm(struct perf_state *s, const struct perf_record *r)
{
	struct perf_process *p = perf_state_find(s, r->pid);
	struct perf_thread *t;

	if (r->u.comm.exec) {
		p = p ? p : known_process(s, r->pid);
		if (p)
			p->executing = !perf_state_exec(s, p, r->tid, r->u.comm.name);
		else
			add_executed(s, r);
		return;
	}
	t = perf_state_known_thread(s, r->tid);
	if (t)
		thread_set_name(t->thread, r->u.comm.name);
	if (p && p->kernel && r->tid == p->pid)
		process_set_comm(p->process, r->u.comm.name);
}

static void on_mmap(struct perf_state *s, const struct perf_record *r)
{
	struct perf_process *p = known_process(s, r->pid);
	struct object_key key = {0};
	char path[PATH_MAX_BYTES];
	size_t nbytes;

	if (!p)
		return;
	p->executing = false;
	perf_state_end_flood(s, p);
	nbytes = perf_path_length(r->u.mmap.path);
	nbytes = nbytes < sizeof(path) ? nbytes : sizeof(path) - 1;
	memcpy(path, r->u.mmap.path, nbytes);
	path[nbytes] = '\0';
	perf_mapping_kind(perf_mapping_path(path, r->u.mmap.start), p, &key);
	if (key.kind == OBJECT_ELF) {
		key.build_id_bytes = r->u.mmap.build_id_bytes;
		memcpy(key.build_id, r->u.mmap.build_id, r->u.mmap.build_id_bytes);
		key.dev = makedev(r->u.mmap.major, r->u.mmap.minor);
		key.ino = r->u.mmap.ino;
		/* /proc/PID/maps does not have it, and the key must be the same */
		key.ino_generation = 0;
		if (!p->exe_known && path[0] == '/' && !perf_state_is_doubtful(s, p))
			perf_state_exe(s, p, path);
	} else if (!perf_state_is_doubtful(s, p)) {
		p->exe_known = true;         /* a program in a memfd: its short name is better */
	}
	/* Last: the first mapping after exec names the program, and a later one must not. */
	if (!maps_are_of_no_use(p) && !perf_state_spend_mapping(s, p)) {
		perf_state_skip_mapping(s, p, r);
		return;
	}
	perf_names_read(s->names, p);        /* again, in case exec had not written it yet */
	perf_state_map(s, p, &key, r->u.mmap.start, r->u.mmap.start + r->u.mmap.bytes,
		       r->u.mmap.pgoff);
}

/* Remember it for FORGET_NS; without memory, until its tid is reused. */
static void remember_exited(struct perf_state *s, uint32_t tid, uint64_t time_ns)
{
	if (!ARRAY_ROOM(s->exited, s->exited_capacity, s->exited_count + 1))
		s->exited[s->exited_count++] = (struct exited){tid, time_ns};
}

/*
 * Who gains rights by exec (sudo) is no longer watched by events of its user, which the kernel says
 * by an EXIT (begin_new_exec(), fs/exec.c) before it maps the program: it goes on.
 */
void perf_state_thread_exits(struct perf_state *s, struct perf_thread *t)
{
	if (!t || t->exited_ns)
		return;
	if (t->process->executing) {
		t->process->executing = false;
		return;
	}
	t->exited_ns = s->now_ns;
	if (--t->process->nalive == 0)
		perf_state_put_event(s, EVENT_PROCESS_EXIT, t->process, t->tid, s->now_ns);
	remember_exited(s, t->tid, s->now_ns);
}

void perf_state_feed(struct perf_state *s, const struct perf_record *r)
{
	s->now_ns = r->time_ns;
	/* Of programs outside our pid namespace: what one is, or maps, the others do not. */
	if (r->pid == 0 && r->kind != PERF_KIND_KSYMBOL)
		return;
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
		perf_state_thread_exits(s, perf_state_known_thread(s, r->tid));
		break;
	case PERF_KIND_KSYMBOL:
		kernel_symbols_feed(s->kernel_symbols, r);
		break;
	default:;
	}
}

void perf_state_expire(struct perf_state *s, uint64_t now_ns)
{
	while (s->exited_first < s->exited_count &&
	       s->exited[s->exited_first].time_ns + FORGET_NS < now_ns) {
		const struct exited *e = &s->exited[s->exited_first++];
		struct perf_thread *t = perf_state_known_thread(s, e->tid);

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

bool perf_state_reading(struct perf_state *s, uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	const struct perf_thread *t = perf_state_known_thread(s, tid);

	s->now_ns = now_ns;
	if (t && t->process->pid == pid)
		return perf_names_reading(s->names, t->process);
	return !s->lost_until_ns && !perf_state_find(s, pid) &&
	       perf_scan_process(s->scan, pid) == ERR_BUSY;
}

struct perf_thread *perf_state_thread(struct perf_state *s, uint32_t pid, uint32_t tid,
				      uint64_t now_ns)
{
	struct perf_thread *t = perf_state_known_thread(s, tid);
	struct perf_process *p;

	s->now_ns = now_ns;
	if (t && t->process->pid == pid && t->process->maps_flood) {
		perf_state_end_flood(s, t->process);
		t = perf_state_known_thread(s, tid);
	}
	if (t && t->process->pid == pid)
		return perf_state_for_sample(s, t);
	p = known_process(s, pid);
	if (!p) {
		p = perf_state_add_process(s, pid, 0, now_ns, perf_state_pid_comm(s, pid));
		if (p)
			p->unnamed = !perf_state_pid_comm(s, pid);
	}
	if (!p)
		return NULL;
	p->kernel |= perf_state_pid_comm(s, pid) != NULL;
	t = perf_state_add_thread(s, p, tid);
	perf_state_tidy(s, p);
	return t ? perf_state_for_sample(s, t) : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int perf_state_new(const struct perf_state_config *cfg, struct perf_state **out, struct err *err)
{
	struct object_key kernel = {.kind = OBJECT_KERNEL, .path = "[kernel]"};
	struct perf_state *s = calloc(1, sizeof(*s));
	struct err why;

	if (!s)
		return err_memory(err, "for process state");
	s->cfg = *cfg;
	s->now_ns = os_now_ns();
	kernel_build_id(&kernel);
	s->kernel = objects_get(cfg->frames, &kernel, 0);
	s->kernel_symbols = kernel_symbols_new(cfg->frames, kallsyms_read, cfg->kallsyms, cfg->log);
	if (perf_scan_new(s, cfg->log, cfg->build_ids, &s->scan, err) ||
	    perf_names_new(cfg->only_process, cfg->command_lines, &cfg->named, cfg->log, &s->names,
			   err)) {
		perf_state_free(s);
		return ERR_MEMORY;
	}
	if (!s->kernel || !s->kernel_symbols ||
	    slots_init(&s->processes, sizeof(struct perf_process), PROCESSES_MAX) ||
	    slots_init(&s->threads, sizeof(struct perf_thread), THREADS_MAX)) {
		perf_state_free(s);
		return err_memory(err, "for process state");
	}
	/* A user who may not sample the kernel needs no names of its functions. */
	if ((cfg->ksymbols || !cfg->root_only) && kallsyms_text_base(&s->kernel_base, &why) != 0) {
		s->kernel_base = 0;
		log_line(cfg->log, LOG_WARN, "kernel functions will have no names: %s", why.text);
	}
	s->nested = !proc_sees_machine();
	if (s->nested && !cfg->root_only)
		log_line(cfg->log, LOG_WARN, "in a pid namespace of its own the recorder sees all "
			 "programs outside as one process, 'outside' (podman: --pid host)");
	*out = s;
	return 0;
}

void perf_state_free(struct perf_state *s)
{
	uint32_t at = 0, n;

	if (!s)
		return;
	while ((n = table_next(&s->by_pid, &at)) != TABLE_NONE)
		clear_process(s, slots_get(&s->processes, n), s->now_ns);
	for (at = 0; (n = table_next(&s->by_tid, &at)) != TABLE_NONE;) {
		struct perf_thread *t = slots_get(&s->threads, n);

		leave_thread(s, t, s->now_ns);
		free(t->memory);
	}
	slots_free(&s->processes);
	slots_free(&s->threads);
	table_free(&s->by_pid);
	table_free(&s->by_tid);
	if (s->kernel)
		object_drop(s->kernel, s->now_ns);
	kernel_symbols_free(s->kernel_symbols, s->now_ns);
	perf_names_free(s->names);
	perf_scan_free(s->scan);
	free(s->exited);
	free(s);
}
