#include "model/process.h"

#include "base/buf.h"
#include "base/os.h"
#include "base/slots.h"
#include "base/table.h"
#include "base/text.h"
#include "model/home.h"

#include <stdlib.h>
#include <string.h>

/* Earlier homes stay: somebody may be reading them. */
struct process_home {
	struct process_home *earlier;
	uint64_t since_ns;
	uint32_t number;
	char text[];
};

struct processes {
	struct os_mutex *lock;               /* guards everything below */
	struct slots process_slots;
	struct slots thread_slots;
	struct table by_process;             /* (pid, start, exec) -> number */
	struct table by_pid;                 /* pid -> number of the newest */
	struct table by_thread;              /* (process, tid, start) -> number */
	uint64_t refused;
};

int processes_new(struct processes **out, struct err *err)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (p)
		p->lock = os_mutex_new();
	if (!p || !p->lock ||
	    slots_init(&p->process_slots, sizeof(struct process), PROCESSES_MAX) ||
	    slots_init(&p->thread_slots, sizeof(struct thread), THREADS_MAX)) {
		processes_free(p);
		return err_memory(err, "for the process table");
	}
	*out = p;
	return 0;
}

static void process_clear(struct process *process)
{
	struct process_home *home = atomic_load(&process->home), *earlier;

	for (; home; home = earlier) {
		earlier = home->earlier;
		free(home);
	}
	free(atomic_load(&process->comm));
	free(atomic_load(&process->exe_name));
	free(atomic_load(&process->cmdline));
	free(atomic_load(&process->command_names));
}

void processes_free(struct processes *p)
{
	uint32_t number, at = 0;

	if (!p)
		return;
	while ((number = table_next(&p->by_process, &at)) != TABLE_NONE)
		process_clear(slots_get(&p->process_slots, number));
	slots_free(&p->process_slots);
	slots_free(&p->thread_slots);
	table_free(&p->by_process);
	table_free(&p->by_pid);
	table_free(&p->by_thread);
	os_mutex_free(p->lock);
	free(p);
}

/* ---- processes ------------------------------------------------------------------------------- */

struct process_key {
	uint32_t pid, exec;
	uint64_t start_ns;
};

static bool pid_same(const void *ctx, uint32_t value, const void *key)
{
	const struct processes *p = ctx;

	return ((const struct process *)slots_get(&p->process_slots, value))->pid ==
	       *(const uint32_t *)key;
}

static int make_newest(struct processes *p, uint32_t pid, uint32_t number)
{
	uint32_t old = table_find(&p->by_pid, hash_u64(pid), pid_same, p, &pid);

	if (old != TABLE_NONE)
		table_remove(&p->by_pid, hash_u64(pid), old);
	return table_add(&p->by_pid, hash_u64(pid), number);
}

static uint64_t process_hash(const struct process_key *k)
{
	return hash_pair(((uint64_t)k->exec << 32) | k->pid, k->start_ns);
}

static bool process_same(const void *ctx, uint32_t value, const void *key)
{
	const struct processes *p = ctx;
	const struct process *process = slots_get(&p->process_slots, value);
	const struct process_key *k = key;

	return process->pid == k->pid && process->exec == k->exec &&
	       process->start_ns == k->start_ns;
}

/* Set a text that is not set yet; the first one stays. */
static void set_once(_Atomic(char *) *slot, char *text)
{
	char *none = NULL;

	if (text && !atomic_compare_exchange_strong(slot, &none, text))
		free(text);
}

static struct process *process_new(struct processes *p, const struct process_key *key,
				   uint32_t parent_pid, const char *comm)
{
	uint64_t hash = process_hash(key);
	uint32_t number = table_add_slot(&p->by_process, hash, &p->process_slots, SLOTS_NONE);
	struct process *process;

	if (number == SLOTS_NONE)
		return NULL;
	process = slots_get(&p->process_slots, number);
	process->number = number;
	process->pid = key->pid;
	if (make_newest(p, key->pid, number)) {
		table_remove(&p->by_process, hash, number);
		slots_free_one(&p->process_slots, number);
		return NULL;
	}
	process->exec = key->exec;
	process->start_ns = key->start_ns;
	process->parent_pid = parent_pid;
	if (comm && comm[0])
		set_once(&process->comm, text_dup(comm, PROCESS_NAME_MAX));
	return process;
}

/* Under the lock. */
static struct process *find_process(struct processes *p, const struct process_key *key)
{
	uint32_t n = table_find(&p->by_process, process_hash(key), process_same, p, key);

	return n == TABLE_NONE ? NULL : slots_get(&p->process_slots, n);
}

/* next: of one that was dropped, its next exec number */
static struct process *add_process(struct processes *p, struct process_key key, uint32_t parent_pid,
				   const char *comm, bool next)
{
	struct process *process;

	os_mutex_lock(p->lock);
	while ((process = find_process(p, &key)) != NULL && next && process->dropped_ns)
		key.exec++;
	if (!process)
		process = process_new(p, &key, parent_pid, comm);
	if (process)
		process->dropped_ns = 0;
	else
		p->refused++;
	os_mutex_unlock(p->lock);
	return process;
}

struct process *process_add(struct processes *p, uint32_t pid, uint64_t start_ns, uint32_t exec,
			    uint32_t parent_pid, const char *comm)
{
	const struct process_key key = {pid, exec, start_ns};

	return add_process(p, key, parent_pid, comm, false);
}

struct process *process_add_next(struct processes *p, uint32_t pid, uint64_t start_ns,
				 uint32_t exec, uint32_t parent_pid, const char *comm)
{
	const struct process_key key = {pid, exec, start_ns};

	return add_process(p, key, parent_pid, comm, true);
}

/* Removes ".exe", in any case, and no other suffix. */
static size_t display_length(const char *name)
{
	return strnlen(name, PROCESS_NAME_MAX) < PROCESS_NAME_MAX ? process_name_length(name)
								   : PROCESS_NAME_MAX;
}

void process_set_comm(struct process *process, const char *comm)
{
	if (comm[0] && !atomic_load(&process->comm))
		set_once(&process->comm, text_dup(comm, PROCESS_NAME_MAX));
}

void process_set_exe(struct process *process, const char *path)
{
	const char *name = text_base_name(path);

	if (name[0] && !atomic_load(&process->exe_name))
		set_once(&process->exe_name, text_dup(name, display_length(name)));
}

bool process_exe_is(const struct process *process, const char *path)
{
	const char *exe = atomic_load(&process->exe_name), *name = text_base_name(path);
	size_t n = display_length(name);

	return exe && strlen(exe) == n && memcmp(exe, name, n) == 0;
}

void process_set_cmdline(struct process *process, const char *cmdline)
{
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES], *names;
	size_t n;

	if (atomic_load(&process->cmdline))
		return;
	process_names_of_command(atomic_load(&process->exe_name), cmdline, called, script);
	n = strlen(called) + 1;
	names = malloc(n + strlen(script) + 1);
	if (!names)
		return;
	memcpy(names, called, n);
	memcpy(names + n, script, strlen(script) + 1);
	set_once(&process->command_names, names);
	set_once(&process->cmdline, text_dup(cmdline, PROCESS_CMDLINE_MAX));
}

const char *process_home(const struct process *process)
{
	const struct process_home *home = atomic_load(&process->home);

	return home ? home->text : "";
}

const char *process_home_at(const struct process *process, uint64_t at_ns)
{
	const struct process_home *home = atomic_load(&process->home);

	while (home && home->since_ns > at_ns && home->earlier)
		home = home->earlier;
	return home ? home->text : "";
}

void process_saw_cgroup(struct process *process, uint64_t cgroup, uint64_t time_ns)
{
	/* Threads of one process may be in two: bounded. */
	if (!cgroup || cgroup == process->cgroup || process->ncgroups > PROCESS_MOVES_MAX)
		return;
	process->cgroup = cgroup;
	process->ncgroups++;
	atomic_store(&process->moved_ns, time_ns);
}

/* Since when a text that differs from the last one holds. */
static uint64_t home_since(const struct process *process, const struct process_home *last,
			   const char *text, uint64_t read_ns)
{
	uint64_t moved_ns = atomic_load(&process->moved_ns);
	size_t n = home_cgroup_bytes(text);

	if (!last)
		return 0;
	if (n == home_cgroup_bytes(last->text) && memcmp(last->text, text, n) == 0)
		return last->since_ns;       /* its service is new */
	return moved_ns > last->since_ns ? moved_ns : read_ns;
}

static void set_home(struct process *process, const char *text, size_t n, uint64_t read_ns)
{
	struct process_home *now = atomic_load(&process->home), *home;

	if (!n || n > HOME_TEXT_MAX || (now && now->number >= PROCESS_MOVES_MAX) ||
	    (now && strncmp(now->text, text, n) == 0 && !now->text[n]))
		return;
	home = malloc(sizeof(*home) + n + 1);
	if (!home)
		return;
	memcpy(home->text, text, n);
	home->text[n] = '\0';
	home->earlier = now;
	home->since_ns = home_since(process, now, home->text, read_ns);
	home->number = now ? now->number + 1 : 0;
	if (!atomic_compare_exchange_strong(&process->home, &now, home))
		free(home);                  /* somebody else has just read it, too */
}

void process_set_home(struct process *process, const char *text, uint64_t read_ns)
{
	set_home(process, text, strlen(text), read_ns);
	atomic_store(&process->home_read_ns, read_ns);
}

bool process_home_is_known(const struct process *process)
{
	uint64_t moved_ns = atomic_load(&process->moved_ns);

	return moved_ns && atomic_load(&process->home_read_ns) > moved_ns;
}

void process_inherit_home(struct process *process, const struct process *from)
{
	const char *text = process_home(from);

	if (atomic_load(&process->home))
		return;
	set_home(process, text, home_cgroup_bytes(text), 0);
	process->cgroup = from->cgroup;
	atomic_store(&process->moved_ns, atomic_load(&from->moved_ns));
	atomic_store(&process->home_read_ns, atomic_load(&from->home_read_ns));
}

void process_drop(struct processes *p, struct process *process, uint64_t now_ns)
{
	os_mutex_lock(p->lock);
	process->dropped_ns = now_ns ? now_ns : 1;
	os_mutex_unlock(p->lock);
}

struct process *process_find(struct processes *p, uint32_t pid, uint64_t at_ns)
{
	struct process *process;
	uint32_t number;

	os_mutex_lock(p->lock);
	number = table_find(&p->by_pid, hash_u64(pid), pid_same, p, &pid);
	process = number == TABLE_NONE ? NULL : slots_get(&p->process_slots, number);
	if (process && (process->dropped_ns || process->start_ns > at_ns))
		process = NULL;
	if (process)
		process_ref(process);
	os_mutex_unlock(p->lock);
	return process;
}

void process_ref(struct process *process)
{
	atomic_fetch_add_explicit(&process->refs, 1, memory_order_relaxed);
}

void process_unref(struct process *process)
{
	atomic_fetch_sub_explicit(&process->refs, 1, memory_order_acq_rel);
}

const char *process_name(const struct process *process)
{
	const char *name = atomic_load(&process->exe_name);

	if (!name)
		name = atomic_load(&process->comm);
	return name ? name : "?";
}

struct process_names process_names_of(const struct process *process)
{
	const char *called = atomic_load(&process->command_names);

	return (struct process_names){
		.file = atomic_load(&process->exe_name), .comm = atomic_load(&process->comm),
		.called = called, .script = called ? called + strlen(called) + 1 : NULL,
	};
}

bool process_is_called(const struct process *process, const char *wanted)
{
	struct process_names names = process_names_of(process);

	return process_names_match(&names, wanted);
}

bool process_is_meant(const struct process *process, const char *who)
{
	struct process_names names = process_names_of(process);

	return process_names_mean(&names, process->pid, who);
}

const char *process_label(const struct process *process, char out[PROCESS_LABEL_BYTES])
{
	struct process_names names = process_names_of(process);

	return process_names_label(&names, out);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct thread_key {
	const struct process *process;
	uint32_t tid;
	uint64_t start_ns;
};

static uint64_t thread_hash(const struct thread_key *k)
{
	return hash_pair(hash_pair(k->process->number, k->tid), k->start_ns);
}

static bool thread_same(const void *ctx, uint32_t value, const void *key)
{
	const struct processes *p = ctx;
	const struct thread *thread = slots_get(&p->thread_slots, value);
	const struct thread_key *k = key;

	return thread->process == k->process && thread->tid == k->tid &&
	       thread->start_ns == k->start_ns;
}

static struct thread *thread_new(struct processes *p, struct process *process,
				 const struct thread_key *key)
{
	uint32_t number = table_add_slot(&p->by_thread, thread_hash(key), &p->thread_slots,
					 SLOTS_NONE);
	struct thread *thread;

	if (number == SLOTS_NONE)
		return NULL;
	thread = slots_get(&p->thread_slots, number);
	thread->number = number;
	thread->tid = key->tid;
	thread->start_ns = key->start_ns;
	thread->process = process;
	process_ref(process);
	return thread;
}

struct thread *thread_add(struct processes *p, struct process *process, uint32_t tid)
{
	return thread_add_started(p, process, tid, 0);
}

struct thread *thread_add_started(struct processes *p, struct process *process, uint32_t tid,
				  uint64_t start_ns)
{
	struct thread_key key = {process, tid, start_ns};
	struct thread *thread;
	uint32_t number;

	os_mutex_lock(p->lock);
	number = table_find(&p->by_thread, thread_hash(&key), thread_same, p, &key);
	if (number != TABLE_NONE)
		thread = slots_get(&p->thread_slots, number);
	else
		thread = thread_new(p, process, &key);
	if (thread)
		thread->dropped_ns = 0;
	else
		p->refused++;
	os_mutex_unlock(p->lock);
	return thread;
}

void thread_set_name(struct thread *thread, const char *name)
{
	uint64_t words[2] = {0, 0};

	memcpy(words, name, strnlen(name, 15));
	atomic_store_explicit(&thread->name_bytes[0], words[0], memory_order_relaxed);
	atomic_store_explicit(&thread->name_bytes[1], words[1], memory_order_relaxed);
}

void thread_name(const struct thread *thread, char out[16])
{
	uint64_t words[2];

	words[0] = atomic_load_explicit(&thread->name_bytes[0], memory_order_relaxed);
	words[1] = atomic_load_explicit(&thread->name_bytes[1], memory_order_relaxed);
	memcpy(out, words, 16);
	out[15] = '\0';
}

void thread_drop(struct processes *p, struct thread *thread, uint64_t now_ns)
{
	os_mutex_lock(p->lock);
	thread->dropped_ns = now_ns ? now_ns : 1;
	os_mutex_unlock(p->lock);
}

struct thread *thread_get(const struct processes *p, uint32_t number)
{
	return slots_get(&p->thread_slots, number);
}

void thread_ref(struct thread *thread)
{
	atomic_fetch_add_explicit(&thread->refs, 1, memory_order_relaxed);
}

void thread_unref(struct thread *thread)
{
	atomic_fetch_sub_explicit(&thread->refs, 1, memory_order_acq_rel);
}

/* ---- sweeping -------------------------------------------------------------------------------- */

static bool dropped_before(uint64_t dropped_ns, uint64_t released_ns)
{
	return dropped_ns && dropped_ns < released_ns;
}

/*
 * A thread is freed when no segment lists it and the source has dropped it or its process. The
 * second pass below frees processes without threads.
 */
static void sweep_threads(struct processes *p, uint64_t released_ns)
{
	uint32_t number, at = 0;

	while ((number = table_next(&p->by_thread, &at)) != TABLE_NONE) {
		const struct thread *thread = slots_get(&p->thread_slots, number);
		const struct thread_key key = {thread->process, thread->tid, thread->start_ns};

		if (atomic_load(&thread->refs) ||
		    !(dropped_before(thread->dropped_ns, released_ns) ||
		      dropped_before(thread->process->dropped_ns, released_ns)))
			continue;
		process_unref(thread->process);
		table_remove(&p->by_thread, thread_hash(&key), number);
		at--;
		slots_free_one(&p->thread_slots, number);
	}
}

static void sweep_processes(struct processes *p, uint64_t released_ns)
{
	uint32_t number, at = 0;

	while ((number = table_next(&p->by_process, &at)) != TABLE_NONE) {
		struct process *process = slots_get(&p->process_slots, number);
		const struct process_key key = {process->pid, process->exec, process->start_ns};

		if (!dropped_before(process->dropped_ns, released_ns) ||
		    atomic_load(&process->refs))
			continue;
		process_clear(process);
		table_remove(&p->by_pid, hash_u64(process->pid), number);
		table_remove(&p->by_process, process_hash(&key), number);
		at--;
		slots_free_one(&p->process_slots, number);
	}
}

void processes_sweep(struct processes *p, uint64_t released_ns)
{
	os_mutex_lock(p->lock);
	sweep_threads(p, released_ns);
	sweep_processes(p, released_ns);
	os_mutex_unlock(p->lock);
}

void processes_use(struct processes *p, struct processes_use *out)
{
	os_mutex_lock(p->lock);
	out->processes = p->process_slots.used;
	out->threads = p->thread_slots.used;
	out->bytes = slots_bytes(&p->process_slots) + slots_bytes(&p->thread_slots) +
		     table_bytes(&p->by_process) + table_bytes(&p->by_pid) +
		     table_bytes(&p->by_thread);
	out->refused = p->refused;
	os_mutex_unlock(p->lock);
}
