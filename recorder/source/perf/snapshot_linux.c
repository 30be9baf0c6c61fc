#include "source/perf/snapshot_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "base/table.h"
#include "base/text.h"
#include "model/home.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/state_linux.h"
#include "symbol/elf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define CODE_MAX_BYTES ((size_t)16 << 20)        /* 60,000 mappings are 6 MB */
#define CGROUPS_MAX_BYTES ((size_t)65536)
#define KERNEL_THREAD_FLAG 0x00200000u           /* PF_KTHREAD */

/* ---- files: one is the same object before and after the start -------------------------------- */

struct known_file {
	uint64_t dev, ino;
	uint8_t build_id_bytes;
	uint8_t build_id[BUILD_ID_MAX];
};

struct snapshot_files {
	_Atomic uint32_t users;
	struct hung_devices *hung;
	struct os_mutex *lock;               /* guards what follows */
	struct known_file *files;
	uint32_t nfiles, room;
	struct table index;
};

struct snapshot_files *snapshot_files_new(struct hung_devices *hung)
{
	struct snapshot_files *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->lock = os_mutex_new();
	if (!f->lock) {
		free(f);
		return NULL;
	}
	f->hung = hung_devices_use(hung);
	atomic_store(&f->users, 1);
	return f;
}

void snapshot_files_drop(struct snapshot_files *f)
{
	if (!f || atomic_fetch_sub(&f->users, 1) != 1)
		return;
	os_mutex_free(f->lock);
	hung_devices_drop(f->hung);
	free(f->files);
	table_free(&f->index);
	free(f);
}

void snapshot_files_forget(struct snapshot_files *f)
{
	os_mutex_lock(f->lock);
	free(f->files);
	table_free(&f->index);
	f->files = NULL;
	f->nfiles = f->room = 0;
	f->index = (struct table){0};
	os_mutex_unlock(f->lock);
}

static bool file_same(const void *ctx, uint32_t value, const void *key)
{
	const struct snapshot_files *f = ctx;
	const struct snapshot_file *k = key;

	return f->files[value].dev == k->dev && f->files[value].ino == k->ino;
}

/* returns  whether the file need not be opened, or must not be */
static bool ask(struct snapshot_files *f, struct snapshot_file *file)
{
	bool found;
	uint32_t at;

	os_mutex_lock(f->lock);
	at = table_find(&f->index, hash_pair(file->dev, file->ino), file_same, f, file);
	found = at != TABLE_NONE;
	if (found) {
		file->build_id_bytes = f->files[at].build_id_bytes;
		memcpy(file->build_id, f->files[at].build_id, BUILD_ID_MAX);
	}
	os_mutex_unlock(f->lock);
	return found || hung_devices_has(f->hung, file->dev);
}

static void tell(struct snapshot_files *f, const struct snapshot_file *file)
{
	uint64_t hash = hash_pair(file->dev, file->ino);
	struct known_file *known;

	os_mutex_lock(f->lock);
	if (table_find(&f->index, hash, file_same, f, file) == TABLE_NONE &&
	    !ARRAY_ROOM(f->files, f->room, f->nfiles + 1) &&
	    !table_add(&f->index, hash, f->nfiles)) {
		known = &f->files[f->nfiles++];
		*known = (struct known_file){.dev = file->dev, .ino = file->ino,
					     .build_id_bytes = file->build_id_bytes};
		memcpy(known->build_id, file->build_id, BUILD_ID_MAX);
	}
	os_mutex_unlock(f->lock);
}

static void read_build_id(const struct snapshot *s, struct snapshot_file *file)
{
	const char *path = snapshot_path(s, file->path);
	struct os_file_info info;
	struct os_file *f = NULL;
	struct elf_head *head = NULL;
	char name[PATH_MAX + 32];
	struct bytes bytes;

	if (proc_pid_file(s->pid, path, strlen(path), name, sizeof(name)) &&
	    os_open(name, OS_READ_PLAIN, &f, NULL) == 0 &&
	    os_file_info(f, &info, NULL) == 0 && info.ino == file->ino) {
		head = malloc(sizeof(*head));
		bytes = bytes_of_file(f, info.size_bytes);
		if (head && elf_head_read(&bytes, head, NULL) == 0) {
			file->build_id_bytes = head->build_id_bytes;
			memcpy(file->build_id, head->build_id, head->build_id_bytes);
		}
	}
	free(head);
	os_close(f);
}

/* ---- one process ----------------------------------------------------------------------------- */

/* returns  its number; SNAPSHOT_NO_FILE without memory */
static uint32_t add_file(struct snapshot *s, uint32_t path, uint64_t dev, uint64_t ino)
{
	struct snapshot_file *file = s->nfiles ? &s->files[s->nfiles - 1] : NULL;

	if (file && file->dev == dev && file->ino == ino)
		return s->nfiles - 1;
	if (ARRAY_ROOM(s->files, s->files_room, s->nfiles + 1))
		return SNAPSHOT_NO_FILE;
	file = &s->files[s->nfiles];
	*file = (struct snapshot_file){.path = path, .dev = dev, .ino = ino};
	return s->nfiles++;
}

/* That of the mapping before is often the same. returns  where it is; paths.failed says if not */
static uint32_t add_path(struct snapshot *s, const char *path)
{
	uint32_t before = s->nmappings ? s->mappings[s->nmappings - 1].path : 0;
	uint32_t at = (uint32_t)s->paths.len;
	size_t n = perf_path_length(path);

	if (at - before == n + 1 && memcmp(snapshot_path(s, before), path, n) == 0)
		return before;
	buf_put(&s->paths, path, n);
	buf_putc(&s->paths, '\0');
	return at;
}

/*
 * Not [vsyscall]: a page of the kernel, the same in each process, which no record tells of. As code
 * of the process it cost the symbol worker eight files of /proc to look for its names.
 */
static bool take_mapping(void *ctx, const struct maps_line *l)
{
	static const struct perf_process nobody;
	struct snapshot_mapping *m;
	const char *path = l->path[0] ? perf_mapping_path(l->path, l->start) : "//anon";
	struct snapshot *s = ctx;
	struct object_key key = {0};

	if (strcmp(l->path, "[vsyscall]") == 0)
		return true;
	if (s->nmappings == MAPS_MAX)
		return false;
	s->maps_read &= !ARRAY_ROOM(s->mappings, s->mappings_room, s->nmappings + 1);
	if (!s->maps_read)
		return false;
	m = &s->mappings[s->nmappings];
	*m = (struct snapshot_mapping){
		.start = l->start, .end = l->end, .pgoff = l->pgoff, .file = SNAPSHOT_NO_FILE,
		.path = add_path(s, path)};
	s->maps_read &= !s->paths.failed;
	if (!s->maps_read)
		return false;
	s->nmappings++;
	perf_mapping_kind(snapshot_path(s, m->path), &nobody, &key);
	if (key.kind == OBJECT_ELF && path[0] == '/') {
		m->file = add_file(s, m->path, makedev(l->major, l->minor), l->ino);
		s->maps_read &= m->file != SNAPSHOT_NO_FILE;
	}
	return s->maps_read;
}

static void read_maps(struct snapshot *s)
{
	s->maps_read = true;
	s->maps_read &= proc_pid_code(s->pid, CODE_MAX_BYTES, take_mapping, s);
}

/*
 * The target of /proc/PID/exe, which costs as much as two mappings: mostly it is the file that the
 * program's code is mapped from. A file of another name may be a copy of it in large pages
 * (libhugetlbfs), or what runs a script: then the link is read.
 */
static void read_exe(struct snapshot *s)
{
	const struct snapshot_mapping *m = s->mappings, *end = m + s->nmappings;
	const size_t ncomm = strlen(s->stat.comm);
	const char *path;
	char target[4096];

	while (m < end && (s->stat.code < m->start || s->stat.code >= m->end))
		m++;
	path = m < end && m->file != SNAPSHOT_NO_FILE ? snapshot_path(s, m->path) : "";
	if (ncomm && path[0] == '/' && path[1] != '/' &&
	    strncmp(text_base_name(path), s->stat.comm, ncomm) == 0)
		s->exe = strdup(path);
	else if (proc_pid_exe(s->pid, target, sizeof(target)))
		s->exe = strdup(target);
}

static bool read_task(void *ctx, uint32_t tid)
{
	struct snapshot *s = ctx;
	struct snapshot_task *t;
	char name[32], comm[256];

	if (ARRAY_ROOM(s->tasks, s->tasks_room, s->ntasks + 1))
		return false;
	t = &s->tasks[s->ntasks++];
	*t = (struct snapshot_task){.tid = tid};
	/* stat has it too, with line feeds and backslashes escaped. */
	if (tid == s->pid && !strchr(s->stat.comm, '\\')) {
		snprintf(t->comm, sizeof(t->comm), "%.*s", (int)sizeof(t->comm) - 1, s->stat.comm);
		return true;
	}
	snprintf(name, sizeof(name), "task/%u/comm", tid);
	proc_pid_whole(s->pid, name, comm, sizeof(comm));
	snprintf(t->comm, sizeof(t->comm), "%.*s", (int)strcspn(comm, "\n"), comm);
	return true;
}

/* Its children have it too, also those that end before anybody could ask for theirs. */
static void read_home(struct snapshot *s)
{
	char text[CGROUPS_MAX_BYTES];

	s->home.max_bytes = HOME_TEXT_MAX;
	if (proc_pid_whole(s->pid, "cgroup", text, sizeof(text)))
		home_put_cgroup(text, &s->home);
}

static void read_process(struct snapshot *s)
{
	char tasks[40];

	s->read_ns = os_now_ns();
	s->found = proc_pid_stat(s->pid, &s->stat, &s->start_ns);
	if (!s->found)
		return;
	if (!(s->stat.flags & KERNEL_THREAD_FLAG) && s->stat.state != 'Z' && s->stat.state != 'X') {
		read_home(s);
		read_maps(s);
		read_exe(s);
	}
	snprintf(tasks, sizeof(tasks), "/proc/%u/task", s->pid);
	if (s->stat.threads == 1)
		read_task(s, s->pid);
	else
		proc_each(tasks, read_task, s);
}

static void snapshot_run(struct job *job)
{
	struct snapshot *s = (struct snapshot *)job;
	uint32_t i;

	read_process(s);
	s->end_ns = os_now_ns();
	atomic_store_explicit(&s->read, true, memory_order_release);
	for (i = 0; s->build_ids && i < s->nfiles; i++) {
		struct snapshot_file *file = &s->files[i];

		if (!ask(s->shared, file)) {
			atomic_store(&s->nopened, i + 1);
			read_build_id(s, file);
			tell(s->shared, file);
		}
		atomic_store_explicit(&file->known, true, memory_order_release);
	}
}

static void snapshot_free(struct job *job)
{
	struct snapshot *s = (struct snapshot *)job;

	snapshot_files_drop(s->shared);
	free(s->exe);
	buf_free(&s->home);
	buf_free(&s->paths);
	free(s->mappings);
	free(s->files);
	free(s->tasks);
	free(s);
}

struct snapshot *snapshot_new(struct snapshot_files *shared, uint32_t pid, bool build_ids)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	snprintf(s->what, sizeof(s->what), "/proc of process %u", pid);
	s->job = (struct job){.run = snapshot_run, .free = snapshot_free, .what = s->what};
	job_init(&s->job);
	s->pid = pid;
	s->build_ids = build_ids;
	s->shared = shared;
	atomic_fetch_add(&shared->users, 1);
	return s;
}

const struct snapshot_file *snapshot_opening(const struct snapshot *s)
{
	uint32_t n = snapshot_is_read(s) ? atomic_load(&s->nopened) : 0;

	return n ? &s->files[n - 1] : NULL;
}
