#include "source/host/proc_pid_linux.h"

#include "base/os.h"
#include "source/host/maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INIT_PID_NS 0xEFFFFFFCu              /* proc_ns.h: PROC_PID_INIT_INO */
#define LINE_BYTES 73u                       /* of maps, before a path */
#define ANSWER_NS (20 * NS_PER_MS)           /* on a busy machine a thread may begin that late */

bool proc_sees_machine(void)
{
	struct stat info;

	return stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == INIT_PID_NS;
}

bool proc_each(const char *dir, bool (*one)(void *ctx, uint32_t number), void *ctx)
{
	DIR *entries = opendir(dir);
	struct dirent *entry;

	if (!entries)
		return false;
	while ((entry = readdir(entries)) != NULL) {
		const char *name = entry->d_name;

		if (*name >= '1' && *name <= '9' && !one(ctx, (uint32_t)strtoul(name, NULL, 10)))
			break;
	}
	closedir(entries);
	return true;
}

size_t proc_pid_memory(uint32_t pid, uint64_t address, void *to, size_t n)
{
	const struct iovec here = {to, n}, there = {(void *)(uintptr_t)address, n};

	return proc_pid_pieces(pid, &here, &there, 1);
}

size_t proc_pid_pieces(uint32_t pid, const struct iovec *here, const struct iovec *there,
		       unsigned n)
{
	ssize_t got = process_vm_readv((pid_t)pid, here, n, there, n, 0);

	return got > 0 ? (size_t)got : 0;
}

bool proc_pid_load(uint32_t pid, const char *name, size_t max_bytes, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return os_load(path, max_bytes, out, NULL) == 0;
}

/* struct procmap_query (include/uapi/linux/fs.h), which headers before Linux 6.11 lack. */
struct code_query {
	uint64_t size, flags, address, start, end, rights, page_bytes, pgoff, ino;
	uint32_t major, minor, name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
#define CODE_QUERY _IOWR('f', 17, struct code_query)
#define CODE_AT_OR_AFTER (0x4u | 0x10u)      /* executable; it holds the address, or is next */

/* returns  0 or errno: ENOENT = there is none, ESRCH = the process has no memory any more */
static int query_code(int maps, uint64_t address, struct code_query *q, char name[PATH_MAX])
{
	*q = (struct code_query){.size = sizeof(*q), .flags = CODE_AT_OR_AFTER, .address = address,
				 .name = (uintptr_t)name, .name_bytes = PATH_MAX};
	name[0] = '\0';
	if (ioctl(maps, CODE_QUERY, q) == 0)
		return 0;
	if (errno != ENAMETOOLONG)
		return errno;
	strcpy(name, "//toolong");
	q->name = q->name_bytes = 0;
	return ioctl(maps, CODE_QUERY, q) ? errno : 0;
}

bool proc_pid_code(uint32_t pid, size_t max_bytes,
		   bool (*one)(void *ctx, const struct maps_line *l), void *ctx)
{
	char name[PATH_MAX];
	struct buf text = {0};
	struct code_query q;
	size_t left = max_bytes, bytes;
	uint64_t at = 0;
	bool ok = true;
	int maps, rc;

	snprintf(name, sizeof(name), "/proc/%u/maps", pid);
	maps = open(name, O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		return false;
	for (; (rc = query_code(maps, at, &q, name)) == 0 && ok; at = q.end) {
		bytes = LINE_BYTES + strlen(name);
		if (bytes > left)
			break;
		left -= bytes;
		ok = one(ctx, &(struct maps_line){
				 .start = q.start, .end = q.end, .pgoff = q.pgoff, .ino = q.ino,
				 .major = q.major, .minor = q.minor, .executable = true,
				 .path = name});
	}
	close(maps);
	if (at || !rc || rc == ENOENT || rc == ESRCH)
		return !ok || rc == ENOENT;
	ok = proc_pid_load(pid, "maps", max_bytes, &text) && text.len &&
	     maps_each_code(text.data, one, ctx);
	buf_free(&text);
	return ok;
}

size_t proc_pid_exe(uint32_t pid, char *out, size_t n)
{
	char path[40];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	got = readlink(path, out, n - 1);
	out[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

bool proc_pid_file(uint32_t pid, const char *path, size_t length, char *out, size_t n)
{
	char link[40], root[PATH_MAX];
	ssize_t in;
	int got;

	snprintf(link, sizeof(link), "/proc/%u/root", pid);
	in = readlink(link, root, sizeof(root));
	/* "/" is no part of a path that would have to go. */
	if (in > 1 && (size_t)in < sizeof(root) && (size_t)in < length && path[in] == '/' &&
	    memcmp(path, root, (size_t)in) == 0) {
		path += in;
		length -= (size_t)in;
	}
	got = snprintf(out, n, "%s%.*s", link, (int)length, path);
	return got >= 0 && (size_t)got < n;
}

bool proc_pid_user(uint32_t pid, uint32_t *uid)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st) != 0)
		return false;
	*uid = st.st_uid;
	return true;
}

/* Convert ticks since boot, which include suspend, to the recorder's clock, which does not. */
static uint64_t ticks_to_recorder_ns(uint64_t ticks)
{
	uint64_t start = ticks * (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK)), now = os_now_ns(),
		 boot_now;
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	boot_now = (uint64_t)boot.tv_sec * NS_PER_SEC + (uint64_t)boot.tv_nsec;
	if (boot_now < start || boot_now - start > now)
		return 0;
	return now - (boot_now - start);
}

size_t proc_pid_whole(uint32_t pid, const char *name, char *to, size_t room)
{
	struct os_file *file = NULL;
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	if (os_open(path, OS_READ, &file, NULL) || os_read_next(file, to, room, &n, NULL) ||
	    n == room)
		n = 0;
	os_close(file);
	to[n] = '\0';
	return n;
}

bool proc_pid_stat(uint32_t pid, struct proc_stat *out, uint64_t *start_ns)
{
	char text[4096];
	size_t n = proc_pid_whole(pid, "stat", text, sizeof(text));

	if (!proc_stat_parse(text_of(text, n), out))
		return false;
	*start_ns = ticks_to_recorder_ns(out->start_ticks);
	return true;
}

bool proc_pid_read(uint32_t pid, struct proc_pid *out)
{
	struct proc_stat stat;
	char exe[4096];

	if (!proc_pid_stat(pid, &stat, &out->start_ns))
		return false;
	out->nthreads = (uint32_t)stat.threads;
	out->state = stat.state;
	memcpy(out->comm, stat.comm, sizeof(out->comm));
	out->from_exe = proc_pid_exe(pid, exe, sizeof(exe)) != 0;
	proc_display_name(exe, out->comm, out->name, sizeof(out->name));
	return true;
}

void proc_names_point(struct proc_names *p)
{
	p->is = (struct process_names){
		.file = p->process.from_exe ? p->process.name : NULL,
		.comm = p->process.comm, .called = p->called, .script = p->script,
	};
}

bool proc_names_read(uint32_t pid, struct proc_names *out)
{
	struct buf cmdline = {0};

	if (!proc_pid_read(pid, &out->process))
		return false;
	proc_names_point(out);
	os_process_arguments(pid, &cmdline, NULL);
	process_names_of_command(out->is.file, buf_text(&cmdline), out->called, out->script);
	buf_free(&cmdline);
	return true;
}

/* ---- processes that no other source keeps ---------------------------------------------------- */

struct asked {
	struct job job;
	uint32_t pid;
	char comm[PROC_COMM_BYTES];
	struct buf arguments;
};

/* What /proc shows is of the same process if its short name still is the same. */
static void read_arguments(struct job *job)
{
	struct asked *a = (struct asked *)job;
	struct proc_stat stat;
	uint64_t start_ns;

	if (os_process_arguments(a->pid, &a->arguments, NULL) ||
	    !proc_pid_stat(a->pid, &stat, &start_ns) || strcmp(stat.comm, a->comm) != 0)
		buf_reset(&a->arguments);
}

static void free_asked(struct job *job)
{
	struct asked *a = (struct asked *)job;

	buf_free(&a->arguments);
	free(a);
}

static void ask_for_arguments(struct proc_own *own)
{
	struct asked *a = calloc(1, sizeof(*a));

	if (!a)
		return;
	a->job = (struct job){.run = read_arguments, .free = free_asked,
			      .what = "the arguments of a process"};
	a->pid = own->process->pid;
	a->arguments.max_bytes = PROCESS_CMDLINE_MAX;
	snprintf(a->comm, sizeof(a->comm), "%s", process_names_of(own->process).comm);
	job_init(&a->job);
	if (!pool_ask(own->pool, a->pid, &a->job, ANSWER_NS))
		return;
	if (a->arguments.len)
		process_set_cmdline(own->process, buf_text(&a->arguments));
	job_drop(&a->job);
}

struct process *proc_pid_process(struct processes *processes, uint32_t pid, struct proc_own *own)
{
	struct process *process = process_find(processes, pid, UINT64_MAX);
	uint64_t now_ns = os_now_ns();
	struct proc_pid now;

	/* One that was found may be the own one. */
	if (process && process != own->process)
		return process;
	if (!own->process && proc_pid_read(pid, &now)) {
		own->process = process_add(processes, pid, now.start_ns, 0, 0, now.comm);
		if (own->process && now.from_exe)
			process_set_exe(own->process, now.name);
	}
	if (!process && own->process)
		process_ref(own->process);
	if (own->process && own->pool && !atomic_load(&own->process->cmdline) &&
	    (!own->asked_ns || now_ns - own->asked_ns >= NS_PER_SEC)) {
		own->asked_ns = now_ns;
		ask_for_arguments(own);
	}
	return own->process;
}

void proc_pid_drop(struct processes *processes, struct proc_own *own)
{
	if (own->process)
		process_drop(processes, own->process, os_now_ns());
	own->process = NULL;
}

uint32_t proc_pid_inner(uint32_t pid)
{
	struct buf text = {0};
	unsigned long inner = 0, n;
	const char *line;
	char *end;

	line = proc_pid_load(pid, "status", 16384, &text) ? strstr(buf_text(&text), "\nNSpid:")
							  : NULL;
	/* Lists the pid in each namespace, outermost first; kernels before 4.1 have no NSpid. */
	for (line = line ? line + 7 : ""; *line == '\t'; line = end) {
		n = strtoul(line + 1, &end, 10);
		if (end == line + 1)
			break;
		inner = n;
	}
	if (!inner && text.len)
		inner = pid;
	buf_free(&text);
	return inner <= INT32_MAX ? (uint32_t)inner : 0;
}
