/*
 * Reads the processes, threads and mappings that already exist from /proc (proc(5)): at the start,
 * and again after side-band records were lost.
 */
#include "base/array.h"
#include "base/os.h"
#include "base/table.h"
#include "source/host/proc_pid_linux.h"
#include "source/perf/state_linux.h"
#include "symbol/elf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define PROC_FILE_MAX_BYTES ((size_t)16 << 20)   /* /proc/PID/maps of 60,000 mappings is 6 MB */
#define KERNEL_THREAD_FLAG 0x00200000u           /* PF_KTHREAD */

/* ---- build ids of mapped files: a file is the same object before and after the start --------- */

struct known_file {
	uint64_t dev, ino;
	uint8_t build_id_bytes;
	uint8_t build_id[BUILD_ID_MAX];
};

struct scan {
	struct perf_state *state;
	bool build_ids;
	struct known_file *files;
	uint32_t nfiles, room;
	struct table index;
};

static bool file_same(const void *ctx, uint32_t value, const void *key)
{
	const struct scan *scan = ctx;
	const struct known_file *k = key;

	return scan->files[value].dev == k->dev && scan->files[value].ino == k->ino;
}

static void read_build_id(uint32_t pid, const char *path, struct known_file *file)
{
	struct os_file_info info;
	struct os_file *f = NULL;
	struct elf_head *head = NULL;
	struct buf name = {0};
	struct bytes bytes;

	buf_printf(&name, "/proc/%u/root%s", pid, path);
	if (os_open(buf_text(&name), OS_READ_PLAIN, &f, NULL) == 0 &&
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
	buf_free(&name);
}

static void add_build_id(struct scan *scan, uint32_t pid, struct object_key *key)
{
	struct known_file file = {.dev = key->dev, .ino = key->ino};
	uint64_t hash = hash_pair(file.dev, file.ino);
	uint32_t at = table_find(&scan->index, hash, file_same, scan, &file);

	if (at != TABLE_NONE) {
		file = scan->files[at];
	} else {
		read_build_id(pid, key->path, &file);
		if (!ARRAY_ROOM(scan->files, scan->room, scan->nfiles + 1) &&
		    !table_add(&scan->index, hash, scan->nfiles))
			scan->files[scan->nfiles++] = file;
	}
	key->build_id_bytes = file.build_id_bytes;
	memcpy(key->build_id, file.build_id, BUILD_ID_MAX);
}

/* ---- one process ----------------------------------------------------------------------------- */

/* start-end perms pgoff major:minor inode path */
static void read_mapping(struct scan *scan, struct perf_process *p, char *line)
{
	struct object_key key = {0};
	uint64_t start, end, pgoff, ino;
	unsigned major, minor;
	char perms[8];
	char *path;
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &start,
		   &end, perms, &pgoff, &major, &minor, &ino, &at) != 7 ||
	    perms[2] != 'x')
		return;
	path = line + at;
	maps_unescape(path);
	path[perf_path_length(path)] = '\0';
	perf_mapping_kind(path[0] ? perf_mapping_path(path, start) : "//anon", p, &key);
	if (key.kind == OBJECT_ELF && key.path[0] == '/') {
		key.dev = makedev(major, minor);
		key.ino = ino;
		if (scan->build_ids)
			add_build_id(scan, p->pid, &key);
	}
	perf_state_map(scan->state, p, &key, start, end, pgoff);
}

/* Replaces what was known of the process, because records may have been lost. */
static void read_maps(struct scan *scan, struct perf_process *p)
{
	struct buf text = {0};
	char *line, *next;

	proc_pid_load(p->pid, "maps", PROC_FILE_MAX_BYTES, &text);
	if (text.len && perf_state_clear_maps(scan->state, p) == 0)
		for (line = text.data; (next = strchr(line, '\n')) != NULL; line = next + 1) {
			*next = '\0';
			read_mapping(scan, p, line);
		}
	buf_free(&text);
}

struct task_list {
	struct perf_state *state;
	struct perf_process *process;
	bool leader_ended;
};

/* Skip a leader that ended before its threads: its exit record is past. */
static bool read_thread(void *ctx, uint32_t tid)
{
	const struct task_list *l = ctx;
	struct perf_thread *t = NULL;
	struct buf comm = {0};
	char name[32];

	if (!l->leader_ended || tid != l->process->pid)
		t = perf_state_add_thread(l->state, l->process, tid);
	snprintf(name, sizeof(name), "task/%u/comm", tid);
	if (t && proc_pid_load(l->process->pid, name, 256, &comm) && comm.len) {
		comm.data[strcspn(comm.data, "\n")] = '\0';
		thread_set_name(t->thread, comm.data);
	}
	buf_free(&comm);
	return true;
}

/* The process has another name already: its exec record was lost. */
static void read_exe(struct scan *scan, struct perf_process *p, const char *comm)
{
	char target[4096];

	if (!proc_pid_exe(p->pid, target, sizeof(target)))
		return;
	target[perf_path_length(target)] = '\0';
	if (strncmp(target, "/memfd:", 7) == 0) {
		p->exe_known = true;         /* its short name is better */
		return;
	}
	if (p->exe_known && !process_exe_is(p->process, target))
		perf_state_exec(scan->state, p, p->pid, comm);
	if (!p->exe_known)
		perf_state_exe(scan->state, p, target);
}

static int scan_process(struct scan *scan, uint32_t pid)
{
	struct task_list tasks = {.state = scan->state};
	struct perf_process *p;
	struct proc_stat stat;
	uint64_t start_ns;
	char path[32];

	if (!proc_pid_stat(pid, &stat, &start_ns))
		return ERR_NOT_FOUND;
	tasks.leader_ended = stat.state == 'Z' || stat.state == 'X';
	p = perf_state_find(scan->state, pid);
	if (!p)
		p = perf_state_add_process(scan->state, pid, stat.parent_pid, start_ns, stat.comm);
	if (!p)
		return ERR_LIMIT;
	p->kernel = (stat.flags & KERNEL_THREAD_FLAG) != 0;
	if (!p->kernel && !tasks.leader_ended) {
		read_exe(scan, p, stat.comm);
		read_maps(scan, p);
	}
	tasks.process = p;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	proc_each(path, read_thread, &tasks);
	if (!p->nthreads && !tasks.leader_ended)
		perf_state_add_thread(scan->state, p, pid);
	if (p->nthreads)
		return 0;
	perf_state_tidy(scan->state, p);
	return ERR_NOT_FOUND;
}

static void scan_end(struct scan *scan)
{
	free(scan->files);
	table_free(&scan->index);
}

int perf_scan_process(struct perf_state *s, uint32_t pid, bool build_ids)
{
	struct scan scan = {.state = s, .build_ids = build_ids};
	int rc = scan_process(&scan, pid);

	scan_end(&scan);
	return rc;
}

static bool scan_one(void *ctx, uint32_t pid)
{
	scan_process(ctx, pid);
	return true;
}

int perf_scan_all(struct perf_state *s, bool build_ids, struct err *err)
{
	struct scan scan = {.state = s, .build_ids = build_ids};

	if (!proc_each("/proc", scan_one, &scan))
		return err_os(err, "cannot read /proc, so processes have no names");
	scan_end(&scan);
	return 0;
}
