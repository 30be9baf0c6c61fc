#include "source/perfdata/perf_world.h"

#include "base/array.h"
#include "base/os.h"
#include "base/owned_file.h"
#include "base/table.h"
#include "base/text.h"
#include "symbol/elf_file.h"
#include "symbol/kallsyms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_PATH "[kernel.kallsyms]"
#define ENDED_NS NS_PER_SEC                  /* samples of a thread may follow its end this long */
#define FOUR_GB ((uint64_t)1 << 32)

/* A file of this machine that was mapped, by device and inode. */
struct known_file {
	uint64_t dev, ino;
	uint8_t build_id_bytes;              /* 0 = none, or it is gone */
	uint8_t build_id[BUILD_ID_MAX];
};

struct perf_world {
	struct perf_world_config cfg;
	struct slots processes, threads;
	struct table by_pid, by_tid;
	uint64_t swept_ns;
	bool same_host;
	struct maps *kernel_maps;            /* the kernel proper, and modules */
	struct kernel_symbols *added;        /* BPF programs and the like */
	_Atomic(struct object *) kernel;     /* perf_world_name() reads these three */
	_Atomic uint64_t kernel_base;        /* the recorded address of _text; 0 = not known */
	_Atomic bool same_kernel;
	struct known_file *files;            /* those without a recorded build id */
	uint32_t nfiles, files_room;
	struct table by_file;
	struct os_mutex *lock;               /* guards the next two, perf_world_name()'s */
	struct kallsyms *kallsyms;
	bool kallsyms_read;
};

/* ---- tables ---------------------------------------------------------------------------------- */

static bool same_pid(const void *ctx, uint32_t value, const void *key)
{
	const struct perf_world *w = ctx;
	const struct world_process *p = slots_get(&w->processes, value);

	return p->pid == *(const uint32_t *)key;
}

static bool same_tid(const void *ctx, uint32_t value, const void *key)
{
	const struct world_thread *t = slots_get(&((const struct perf_world *)ctx)->threads, value);

	return t->tid == *(const uint32_t *)key;
}

static struct world_process *find_process(const struct perf_world *w, uint32_t pid)
{
	uint32_t n = table_find(&w->by_pid, hash_u64(pid), same_pid, w, &pid);

	return n == TABLE_NONE ? NULL : slots_get(&w->processes, n);
}

static struct world_thread *find_thread(const struct perf_world *w, uint32_t tid)
{
	uint32_t n = table_find(&w->by_tid, hash_u64(tid), same_tid, w, &tid);

	return n == TABLE_NONE ? NULL : slots_get(&w->threads, n);
}

static void remove_thread(struct perf_world *w, struct world_thread *t, uint64_t now_ns)
{
	if (t->thread)
		thread_drop(w->cfg.processes, t->thread, now_ns);
	free(t->memory);
	table_remove(&w->by_tid, hash_u64(t->tid), t->number);
	slots_free_one(&w->threads, t->number);
}

static void remove_process(struct perf_world *w, struct world_process *p, uint64_t now_ns)
{
	uint32_t at = 0, n;

	while ((n = table_next(&w->by_tid, &at)) != TABLE_NONE) {
		struct world_thread *t = slots_get(&w->threads, n);

		if (t->of == p) {
			remove_thread(w, t, now_ns);
			at--;
		}
	}
	if (p->process)
		process_drop(w->cfg.processes, p->process, now_ns);
	maps_free(p->maps, now_ns);
	table_remove(&w->by_pid, hash_u64(p->pid), p->number);
	slots_free_one(&w->processes, p->number);
}

/* Once a second forget what has ended. */
static void sweep(struct perf_world *w, uint64_t now_ns)
{
	uint32_t at = 0, n;

	if (now_ns < w->swept_ns + ENDED_NS)
		return;
	w->swept_ns = now_ns;
	while ((n = table_next(&w->by_tid, &at)) != TABLE_NONE) {
		struct world_thread *t = slots_get(&w->threads, n);

		if (t->ended_ns && t->ended_ns + ENDED_NS < now_ns) {
			remove_thread(w, t, now_ns);
			at--;
		}
	}
	for (at = 0; (n = table_next(&w->by_pid, &at)) != TABLE_NONE;) {
		struct world_process *p = slots_get(&w->processes, n);

		if (p->ended_ns && p->ended_ns + ENDED_NS < now_ns) {
			remove_process(w, p, now_ns);
			at--;
		}
	}
}

static struct world_process *add_process(struct perf_world *w, uint32_t pid, uint32_t parent,
					 uint64_t start_ns, const char *comm)
{
	struct world_process *p = find_process(w, pid);
	uint32_t n;

	if (p)
		remove_process(w, p, start_ns);      /* its end was lost, or is just past */
	n = table_add_slot(&w->by_pid, hash_u64(pid), &w->processes, SLOTS_NONE);
	if (n == SLOTS_NONE)
		return NULL;
	p = slots_get(&w->processes, n);
	*p = (struct world_process){.number = n, .pid = pid, .start_ns = start_ns};
	/* Records of it may come after the one that says it ended. */
	p->process = process_add_next(w->cfg.processes, pid, start_ns, 0, parent, comm);
	p->maps = maps_new();
	if (p->process && p->maps) {
		p->exec = p->process->exec;
		return p;
	}
	remove_process(w, p, start_ns);
	return NULL;
}

static struct world_process *known_process(struct perf_world *w, uint32_t pid)
{
	struct world_process *p = find_process(w, pid);

	return p ? p : add_process(w, pid, 0, w->cfg.start_ns, pid ? "" : "swapper");
}

static struct world_thread *add_thread(struct perf_world *w, uint32_t tid)
{
	uint32_t n = table_add_slot(&w->by_tid, hash_u64(tid), &w->threads, SLOTS_NONE);
	struct world_thread *t;

	if (n == SLOTS_NONE)
		return NULL;
	t = slots_get(&w->threads, n);
	t->number = n;
	t->tid = tid;
	return t;
}

struct world_thread *perf_world_thread(struct perf_world *w, uint32_t pid, uint32_t tid,
				       uint64_t now_ns)
{
	struct world_process *p;
	struct world_thread *t;

	sweep(w, now_ns);
	p = known_process(w, pid);
	t = p ? find_thread(w, tid) : NULL;
	if (p && !t)
		t = add_thread(w, tid);
	if (!t || t->process == p->process)
		return t;
	if (t->thread)
		thread_drop(w->cfg.processes, t->thread, now_ns);
	if (t->memory)
		t->memory->npairs = 0;
	t->of = p;
	t->process = p->process;
	t->ended_ns = 0;
	t->thread = thread_add(w->cfg.processes, p->process, tid);
	return t;
}

/* ---- code ------------------------------------------------------------------------------------ */

static uint64_t device(uint32_t major, uint32_t minor)       /* as glibc's makedev() */
{
	return (uint64_t)(major & 0xfffff000) << 32 | (uint64_t)(major & 0xfff) << 8 |
	       (uint64_t)(minor & 0xffffff00) << 12 | (minor & 0xff);
}

/* Our own, if it is the same; else one without names. */
static struct object *vdso_of(struct perf_world *w, bool is_32_bit)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = is_32_bit ? "[vdso32]" : "[vdso]"};
	struct object_key then = {0};
	const struct object own = {.key = key};
	struct elf_file file = {0};
	bool same = w->same_kernel;

	if (!same && perf_file_build_id(w->cfg.file, "[vdso]", &then) &&
	    elf_file_open(&own, 0, false, &file, NULL) == 0) {
		same = then.build_id_bytes == file.head.build_id_bytes &&
		       memcmp(then.build_id, file.head.build_id, then.build_id_bytes) == 0;
		elf_file_close(&file);
	}
	if (!same)
		key.path = "[vdso of another kernel]";
	return objects_get(w->cfg.frames, &key, 0);
}

static bool same_file(const void *ctx, uint32_t value, const void *key)
{
	const struct known_file *f = &((const struct perf_world *)ctx)->files[value], *wanted = key;

	return f->dev == wanted->dev && f->ino == wanted->ino;
}

/*
 * The recording machine is this one: a file with the mapped one's device and inode has the build id
 * that leads to debug files and unwind tables.
 */
static void learn_build_id(struct perf_world *w, struct object_key *key)
{
	struct known_file f = {.dev = key->dev, .ino = key->ino};
	const struct object object = {.key = *key, .name = text_base_name(key->path)};
	uint64_t hash = hash_pair(f.dev, f.ino);
	uint32_t at = table_find(&w->by_file, hash, same_file, w, &f);
	struct elf_file file = {0};

	if (at == TABLE_NONE && w->nfiles < OBJECTS_MAX &&
	    ARRAY_ROOM(w->files, w->files_room, w->nfiles + 1) == 0 &&
	    table_add(&w->by_file, hash, w->nfiles) == 0) {
		at = w->nfiles++;
		w->files[at] = f;
		if (elf_file_open(&object, 0, false, &file, NULL) == 0) {
			w->files[at].build_id_bytes = file.head.build_id_bytes;
			memcpy(w->files[at].build_id, file.head.build_id,
			       file.head.build_id_bytes);
			elf_file_close(&file);
		}
	}
	if (at == TABLE_NONE || !w->files[at].build_id_bytes)
		return;
	key->build_id_bytes = w->files[at].build_id_bytes;
	memcpy(key->build_id, w->files[at].build_id, key->build_id_bytes);
}

static struct object *object_of(struct perf_world *w, const struct world_process *p,
				const struct perf_record *r, uint32_t *flags)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = r->u.mmap.path};

	if (strncmp(key.path, "[vdso", 5) == 0)
		return vdso_of(w, r->u.mmap.start < FOUR_GB);
	if (maps_path_is_run_time(key.path)) {
		key.kind = OBJECT_JIT;
		key.pid = p->pid;
		key.epoch = (uint32_t)hash_pair(p->start_ns, p->exec);
		key.path = "[jit]";
		*flags = FRAME_JIT;
	} else if (r->u.mmap.build_id_bytes) {
		key.build_id_bytes = r->u.mmap.build_id_bytes;
		memcpy(key.build_id, r->u.mmap.build_id, key.build_id_bytes);
	} else if (!perf_file_build_id(w->cfg.file, key.path, &key) && w->same_host) {
		key.dev = device(r->u.mmap.major, r->u.mmap.minor);
		key.ino = r->u.mmap.ino;
		key.ino_generation = r->u.mmap.ino_generation;
		if (key.ino)
			learn_build_id(w, &key);
	}
	return objects_get(w->cfg.frames, &key, p->pid);
}

/* The kernel with this build id; without one, only its addresses are known. */
static int set_kernel(struct perf_world *w, const struct object_key *id)
{
	struct object_key key = {.kind = OBJECT_KERNEL, .path = "[kernel]",
				 .build_id_bytes = id->build_id_bytes}, now = {0};
	struct object *kernel;

	memcpy(key.build_id, id->build_id, id->build_id_bytes);
	kernel = objects_get(w->cfg.frames, &key, 0);
	if (!kernel)
		return ERR_MEMORY;
	if (w->kernel)
		object_drop(w->kernel, 0);
	w->kernel = kernel;
	kernel_build_id(&now);
	w->same_kernel = key.build_id_bytes && now.build_id_bytes == key.build_id_bytes &&
			 memcmp(now.build_id, key.build_id, key.build_id_bytes) == 0;
	return 0;
}

/* "[kernel.kallsyms]_text": pgoff is the address of that symbol. */
static void map_kernel(struct perf_world *w, const struct perf_record *r)
{
	const char *path = r->u.mmap.path, *symbol = path + strlen(KERNEL_PATH);
	struct mapping m = {.start = r->u.mmap.start, .pgoff = r->u.mmap.start};
	struct object_key key = {.kind = OBJECT_KERNEL};
	char name[200];

	if (r->u.mmap.bytes > UINT64_MAX - m.start)
		return;
	m.end = m.start + r->u.mmap.bytes;
	if (strncmp(path, KERNEL_PATH, strlen(KERNEL_PATH)) == 0) {
		key.build_id_bytes = r->u.mmap.build_id_bytes;
		memcpy(key.build_id, r->u.mmap.build_id, key.build_id_bytes);
		if (key.build_id_bytes && set_kernel(w, &key))
			return;
		if (strcmp(symbol, "_text") == 0)
			w->kernel_base = r->u.mmap.pgoff;
		m.object = w->kernel;
		m.pgoff = m.start - w->kernel_base;
		object_ref(m.object);
	} else {
		/* "[ext4]", or a path that ends in "ext4.ko": brackets say that it has no names. */
		const char *base = path[0] == '[' ? path + 1 : text_base_name(path);

		snprintf(name, sizeof(name), "[%.*s]", (int)strcspn(base, ".]"), base);
		key.path = name;
		m.pgoff = 0;
		m.object = objects_get(w->cfg.frames, &key, 0);
	}
	if (m.object && m.end > m.start)
		maps_insert(&w->kernel_maps, &m, r->time_ns);
	else if (m.object)
		object_drop(m.object, r->time_ns);
}

static void put_image(struct perf_world *w, const struct world_process *p,
		      struct object *object, uint64_t time_ns)
{
	struct frame_ref ref = {.object = object};
	const struct event e = {.time_ns = time_ns, .kind = EVENT_IMAGE, .cpu = CPU_NONE,
				.stack = STACK_NONE, .stack_frames = &ref, .nstack_frames = 1,
				.process = p->process, .name = object->name};

	w->cfg.put(w->cfg.ctx, &e);
}

static void name_after(struct world_process *p, const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), tail = sizeof(deleted) - 1;
	char *whole;

	if (n > tail && strcmp(path + n - tail, deleted) == 0)
		n -= tail;
	whole = text_dup(path, n);
	if (whole)
		process_set_exe(p->process, whole);
	free(whole);
	p->exe_known = true;
}

static void on_mmap(struct perf_world *w, const struct perf_record *r, uint64_t time_ns)
{
	struct mapping m = {.start = r->u.mmap.start, .pgoff = r->u.mmap.pgoff};
	struct world_process *p;

	if (r->pid == UINT32_MAX) {
		map_kernel(w, r);
		return;
	}
	p = known_process(w, r->pid);
	if (!p || !r->u.mmap.bytes || r->u.mmap.bytes > UINT64_MAX - m.start)
		return;
	m.end = m.start + r->u.mmap.bytes;
	m.object = object_of(w, p, r, &m.flags);
	if (!m.object)
		return;
	if (m.flags & FRAME_JIT)
		m.pgoff = m.start;
	if (!p->exe_known && r->u.mmap.path[0] == '/' && !(m.flags & FRAME_JIT))
		name_after(p, r->u.mmap.path);
	object_ref(m.object);
	if (maps_insert(&p->maps, &m, time_ns) == 0)
		put_image(w, p, m.object, time_ns);
	object_drop(m.object, time_ns);
}

void perf_world_locate(struct perf_world *w, const struct world_process *process,
		       uint64_t address, bool kernel, struct frame_ref *out)
{
	const struct mapping *m;

	if (kernel && kernel_symbols_find(w->added, address, out))
		return;
	m = kernel ? maps_find(w->kernel_maps, address)
		   : process ? maps_find(process->maps, address) : NULL;
	if (m) {
		out->object = m->object;
		/* Names of modules are not known, so their places need not be the file's. */
		out->offset = address - m->start + m->pgoff;
		out->flags |= m->flags;
	} else {
		out->object = kernel ? w->kernel : objects_unknown(w->cfg.frames);
		out->offset = kernel ? address - w->kernel_base : address;
	}
}

bool perf_world_kernel_is_ours(const struct perf_world *w)
{
	return w->same_kernel && w->kernel_base;
}

/* perf record keeps a copy of the list by the kernel's build id; to make it anew takes 35 ms. */
static int load_copy(const struct object_key *kernel, struct buf *text)
{
	const char *home = os_env("HOME");
	struct buf path = {0};
	unsigned i;
	int rc = ERR_NOT_FOUND;

	buf_printf(&path, "%s/.debug/" KERNEL_PATH "/", home ? home : "");
	for (i = 0; i < kernel->build_id_bytes; i++)
		buf_printf(&path, "%02x", kernel->build_id[i]);
	buf_puts(&path, "/kallsyms");
	if (home && *home && !path.failed)
		rc = owned_file_load(path.data, false, KALLSYMS_MAX_BYTES, text, NULL);
	buf_free(&path);
	/* It is sorted up to the end of the code: what is cut has no such end. */
	return rc || strstr(buf_text(text), " _etext\n") ? rc : ERR_FORMAT;
}

/* Not before a name is wanted: the list takes 30 ms of CPU, or twice that. */
static const struct kallsyms *kallsyms_of(struct perf_world *w, const struct object *kernel)
{
	struct buf text = {0};

	os_mutex_lock(w->lock);
	if (!w->kallsyms_read && load_copy(&kernel->key, &text) == 0)
		kallsyms_parse(buf_text(&text), text.len, &w->kallsyms, NULL);
	buf_reset(&text);
	if (!w->kallsyms_read && !w->kallsyms &&
	    os_load("/proc/kallsyms", KALLSYMS_MAX_BYTES, &text, NULL) == 0)
		kallsyms_parse(buf_text(&text), text.len, &w->kallsyms, NULL);
	w->kallsyms_read = true;
	os_mutex_unlock(w->lock);
	buf_free(&text);
	return w->kallsyms;
}

bool perf_world_name(struct perf_world *w, const struct object *object, uint64_t offset,
		     struct symbol *out)
{
	const struct kallsyms *kallsyms;
	struct kernel_function function;
	uint64_t base;

	if (object != w->kernel || !w->same_kernel || !w->kernel_base)
		return false;
	kallsyms = kallsyms_of(w, object);
	base = kallsyms ? kallsyms_base(kallsyms) : 0;
	/* Modules may have been elsewhere then. */
	if (!base || !kallsyms_find(kallsyms, base + offset, &function) || function.module)
		return false;
	*out = (struct symbol){.offset = function.address - base, .name = function.name};
	return true;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void put_event(struct perf_world *w, enum event_kind kind, struct world_process *p,
		      uint32_t tid, uint64_t time_ns)
{
	const struct event e = {.time_ns = time_ns, .kind = kind, .cpu = CPU_NONE,
				.stack = STACK_NONE, .process = p->process,
				.thread = thread_add(w->cfg.processes, p->process, tid),
				.name = process_name(p->process)};

	w->cfg.put(w->cfg.ctx, &e);
}

/* perf makes one up for each process that runs when it begins: it has no time, and names follow. */
static void on_fork(struct perf_world *w, const struct perf_record *r, uint64_t time_ns)
{
	struct world_process *parent = r->time_ns ? find_process(w, r->u.task.parent_pid) : NULL;
	const char *comm = parent ? atomic_load(&parent->process->comm) : NULL;
	const char *exe = parent ? atomic_load(&parent->process->exe_name) : NULL;
	struct world_process *p;

	if (r->pid == r->u.task.parent_pid || (!r->time_ns && r->pid != r->tid)) {
		perf_world_thread(w, r->pid, r->tid, time_ns);
		return;
	}
	p = add_process(w, r->pid, r->u.task.parent_pid, time_ns, comm ? comm : "");
	if (!p || !r->time_ns)
		return;
	parent = find_process(w, r->u.task.parent_pid);
	if (parent) {
		maps_free(p->maps, time_ns);
		p->maps = maps_share(parent->maps);
		if (exe)
			process_set_exe(p->process, exe);
		p->exe_known = exe != NULL;
	}
	put_event(w, EVENT_PROCESS_START, p, r->tid, time_ns);
}

static void on_exec(struct perf_world *w, struct world_process *p, const struct perf_record *r,
		    uint64_t time_ns)
{
	struct maps *maps = maps_new();
	struct process *fresh = !maps ? NULL
		: process_add_next(w->cfg.processes, p->pid, p->start_ns, p->exec + 1,
				   p->process->parent_pid, r->u.comm.name);

	if (!fresh) {
		maps_free(maps, time_ns);
		return;                      /* it keeps its old name */
	}
	maps_free(p->maps, time_ns);
	p->maps = maps;
	process_drop(w->cfg.processes, p->process, time_ns);
	p->process = fresh;
	p->exec = fresh->exec;
	p->exe_known = false;
	put_event(w, EVENT_PROCESS_START, p, r->tid, time_ns);
}

static void on_comm(struct perf_world *w, const struct perf_record *r, uint64_t time_ns)
{
	struct world_process *p = known_process(w, r->pid);
	struct world_thread *t;

	if (!p)
		return;
	if (r->u.comm.exec)
		on_exec(w, p, r, time_ns);
	else if (r->pid == r->tid)
		process_set_comm(p->process, r->u.comm.name);
	t = perf_world_thread(w, r->pid, r->tid, time_ns);
	if (t && t->thread)
		thread_set_name(t->thread, r->u.comm.name);
}

static void on_end(struct perf_world *w, const struct perf_record *r, uint64_t time_ns)
{
	struct world_process *p = find_process(w, r->pid);
	struct world_thread *t = find_thread(w, r->tid);

	if (t && t->of == p)
		t->ended_ns = time_ns;
	if (!p || p->ended_ns || r->pid != r->tid)
		return;
	p->ended_ns = time_ns;
	put_event(w, EVENT_PROCESS_EXIT, p, r->tid, time_ns);
}

void perf_world_feed(struct perf_world *w, const struct perf_record *r)
{
	uint64_t time_ns = r->time_ns ? r->time_ns : w->cfg.start_ns;

	switch (r->kind) {
	case PERF_KIND_MMAP:
		on_mmap(w, r, time_ns);
		break;
	case PERF_KIND_COMM:
		on_comm(w, r, time_ns);
		break;
	case PERF_KIND_FORK:
		on_fork(w, r, time_ns);
		break;
	case PERF_KIND_EXIT:
		on_end(w, r, time_ns);
		break;
	case PERF_KIND_KSYMBOL:
		kernel_symbols_feed(w->added, r);
		break;
	default:
		break;
	}
	sweep(w, time_ns);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_kernel(struct perf_world *w)
{
	struct object_key id = {0};

	perf_file_build_id(w->cfg.file, KERNEL_PATH, &id);
	if (set_kernel(w, &id))
		return ERR_MEMORY;
	w->kernel_maps = maps_new();
	w->added = kernel_symbols_new(w->cfg.frames, NULL, NULL, w->cfg.log);
	return w->kernel_maps && w->added ? 0 : ERR_MEMORY;
}

int perf_world_new(const struct perf_world_config *cfg, struct perf_world **out, struct err *err)
{
	struct perf_world *w = calloc(1, sizeof(*w));
	char host[256] = "";

	if (!w)
		return err_memory(err, "for the processes of a perf file");
	w->cfg = *cfg;
	w->lock = os_mutex_new();
	os_host_name(host, sizeof(host));
	w->same_host = host[0] && strcmp(host, perf_file_facts(cfg->file)->host) == 0;
	if (!w->lock ||
	    slots_init(&w->processes, sizeof(struct world_process), PROCESSES_MAX) ||
	    slots_init(&w->threads, sizeof(struct world_thread), THREADS_MAX) || open_kernel(w)) {
		perf_world_free(w);
		return err_memory(err, "for the processes of a perf file");
	}
	*out = w;
	return 0;
}

void perf_world_free(struct perf_world *w)
{
	uint32_t at = 0, n;

	if (!w)
		return;
	while ((n = table_next(&w->by_tid, &at)) != TABLE_NONE)
		free(((struct world_thread *)slots_get(&w->threads, n))->memory);
	for (at = 0; (n = table_next(&w->by_pid, &at)) != TABLE_NONE;)
		maps_free(((struct world_process *)slots_get(&w->processes, n))->maps, 0);
	maps_free(w->kernel_maps, 0);
	kernel_symbols_free(w->added, 0);
	if (w->kernel)
		object_drop(w->kernel, 0);
	kallsyms_free(w->kallsyms);
	os_mutex_free(w->lock);
	free(w->files);
	table_free(&w->by_file);
	table_free(&w->by_pid);
	table_free(&w->by_tid);
	slots_free(&w->processes);
	slots_free(&w->threads);
	free(w);
}
