/*
 * Reads the processes, threads and mappings that already exist from /proc (proc(5)): at the start,
 * and again after side-band records were lost.
 */
#include "base/array.h"
#include "base/log.h"
#include "base/os.h"
#include "base/table.h"
#include "source/perf/state_linux.h"
#include "symbol/elf.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define PROC_FILE_MAX_BYTES ((size_t)16 << 20)   /* /proc/PID/maps of 60,000 mappings is 6 MB */
#define KERNEL_THREAD_FLAG 0x00200000u           /* PF_KTHREAD, field 9 of /proc/PID/stat */

/* ---- /proc/PID/stat -------------------------------------------------------------------------- */

struct stat_line {
	char comm[64], state;
	uint32_t parent_pid, flags;
	uint64_t start_ns;
};

/* Convert time since boot, which includes suspend, to the recorder's clock, which does not. */
static uint64_t boot_to_recorder_ns(uint64_t boot_ns)
{
	struct timespec boot;
	uint64_t now = os_now_ns(), boot_now;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	boot_now = (uint64_t)boot.tv_sec * NS_PER_SEC + (uint64_t)boot.tv_nsec;
	if (boot_now < boot_ns || boot_now - boot_ns > now)
		return 0;
	return now - (boot_now - boot_ns);
}

/* The name is in parentheses and may contain any byte, even ')': the last ')' ends it. */
static bool read_stat(uint32_t pid, struct stat_line *out)
{
	struct buf text = {0};
	char path[64];
	unsigned long long ticks = 0;
	const char *open_at, *close_at;
	bool ok = false;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (os_load(path, 8192, &text, NULL) == 0) {
		open_at = strchr(buf_text(&text), '(');
		close_at = strrchr(buf_text(&text), ')');
		if (open_at && close_at && close_at > open_at) {
			snprintf(out->comm, sizeof(out->comm), "%.*s",
				 (int)(close_at - open_at - 1), open_at + 1);
			ok = sscanf(close_at + 1,
				    " %c %u %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
				    "%*d %*d %*d %llu", &out->state, &out->parent_pid, &out->flags,
				    &ticks) == 4;
		}
	}
	out->start_ns = boot_to_recorder_ns(ticks * (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK)));
	buf_free(&text);
	return ok;
}

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

	if (at == TABLE_NONE) {
		read_build_id(pid, key->path, &file);
		if (ARRAY_ROOM(scan->files, scan->room, scan->nfiles + 1))
			return;
		at = scan->nfiles;
		scan->files[scan->nfiles++] = file;
		if (table_add(&scan->index, hash, at))
			scan->nfiles--;
	}
	key->build_id_bytes = file.build_id_bytes;
	if (at < scan->nfiles) {
		key->build_id_bytes = scan->files[at].build_id_bytes;
		memcpy(key->build_id, scan->files[at].build_id, BUILD_ID_MAX);
	}
}

/* ---- /proc/PID/maps -------------------------------------------------------------------------- */

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
	char path[64], *line, *next;

	snprintf(path, sizeof(path), "/proc/%u/maps", p->pid);
	os_load(path, PROC_FILE_MAX_BYTES, &text, NULL);
	if (text.len && perf_state_clear_maps(scan->state, p) == 0) {
		for (line = text.data; line && *line; line = next) {
			next = strchr(line, '\n');
			if (!next)
				break;
			*next++ = '\0';
			read_mapping(scan, p, line);
		}
	}
	buf_free(&text);
}

/* ---- threads and names ----------------------------------------------------------------------- */

/* Skip a leader that ended before its threads: its exit record is past. */
static void read_threads(struct scan *scan, struct perf_process *p, bool leader_ended)
{
	struct dirent *entry;
	struct perf_thread *t;
	char path[300];
	uint32_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", p->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL) {
		struct buf comm = {0};

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		if (leader_ended && tid == p->pid)
			continue;
		t = perf_state_add_thread(scan->state, p, tid);
		snprintf(path, sizeof(path), "/proc/%u/task/%s/comm", p->pid, entry->d_name);
		if (t && os_load(path, 256, &comm, NULL) == 0 && comm.len) {
			comm.data[strcspn(comm.data, "\n")] = '\0';
			thread_set_name(t->thread, comm.data);
		}
		buf_free(&comm);
	}
	if (dir)
		closedir(dir);
}

/* The process has another name already: its exec record was lost. */
static void read_exe(struct scan *scan, struct perf_process *p, const char *comm)
{
	char path[64], target[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", p->pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
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
	struct stat_line stat;
	struct perf_process *p;
	bool ended;

	if (!read_stat(pid, &stat))
		return ERR_NOT_FOUND;
	ended = stat.state == 'Z' || stat.state == 'X';
	p = perf_state_find(scan->state, pid);
	if (!p)
		p = perf_state_add_process(scan->state, pid, stat.parent_pid, stat.start_ns,
					   stat.comm);
	if (!p)
		return ERR_LIMIT;
	p->kernel = (stat.flags & KERNEL_THREAD_FLAG) != 0;
	if (!p->kernel && !ended) {
		read_exe(scan, p, stat.comm);
		read_maps(scan, p);
	}
	read_threads(scan, p, ended);
	if (!p->nthreads && !ended)
		perf_state_add_thread(scan->state, p, pid);
	if (!p->nthreads) {
		perf_state_tidy(scan->state, p);
		return ERR_NOT_FOUND;
	}
	return 0;
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

int perf_scan_all(struct perf_state *s, bool build_ids, struct err *err)
{
	struct scan scan = {.state = s, .build_ids = build_ids};
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	if (!dir)
		return err_os(err, "cannot read /proc, so processes have no names");
	while ((entry = readdir(dir)) != NULL) {
		if (isdigit((unsigned char)entry->d_name[0]))
			scan_process(&scan, (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	closedir(dir);
	scan_end(&scan);
	return 0;
}
