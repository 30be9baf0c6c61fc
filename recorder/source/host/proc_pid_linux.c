#include "source/host/proc_pid_linux.h"

#include "base/os.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

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
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)address, n};
	ssize_t got = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

bool proc_pid_load(uint32_t pid, const char *name, size_t max_bytes, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return os_load(path, max_bytes, out, NULL) == 0;
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

bool proc_pid_stat(uint32_t pid, struct proc_stat *out, uint64_t *start_ns)
{
	struct buf text = {0};
	bool ok = proc_pid_load(pid, "stat", 8192, &text) &&
		  proc_stat_parse(text_of(buf_text(&text), text.len), out);

	buf_free(&text);
	if (ok)
		*start_ns = ticks_to_recorder_ns(out->start_ticks);
	return ok;
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

struct process *proc_pid_process(struct processes *processes, uint32_t pid, struct process **own)
{
	struct process *process = process_find(processes, pid, UINT64_MAX);
	struct proc_pid now;

	if (process)
		return process;
	if (!*own && proc_pid_read(pid, &now))
		*own = process_add(processes, pid, now.start_ns, 0, 0, now.name);
	if (*own)
		process_ref(*own);
	return *own;
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
