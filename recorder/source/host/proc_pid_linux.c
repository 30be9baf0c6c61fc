#include "source/host/proc_pid_linux.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

bool proc_pid_read(uint32_t pid, struct proc_pid *out)
{
	char path[40], exe[4096];
	struct buf text = {0};
	struct proc_stat stat;
	ssize_t n;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	ok = os_load(path, 8192, &text, NULL) == 0 &&
	     proc_stat_parse(text_of(buf_text(&text), text.len), &stat);
	buf_free(&text);
	if (!ok)
		return false;
	out->start_ns = ticks_to_recorder_ns(stat.start_ticks);
	out->nthreads = (uint32_t)stat.threads;
	out->state = stat.state;
	memcpy(out->comm, stat.comm, sizeof(out->comm));
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	out->from_exe = n > 0;
	proc_display_name(exe, out->comm, out->name, sizeof(out->name));
	return true;
}

bool proc_names_read(uint32_t pid, struct proc_names *out)
{
	struct buf cmdline = {0};

	if (!proc_pid_read(pid, &out->process))
		return false;
	out->is = (struct process_names){
		.file = out->process.from_exe ? out->process.name : NULL,
		.comm = out->process.comm, .called = out->called, .script = out->script,
	};
	os_process_arguments(pid, &cmdline, NULL);
	process_names_of_command(out->is.file, buf_text(&cmdline), out->called, out->script);
	buf_free(&cmdline);
	return true;
}

uint32_t proc_pid_inner(uint32_t pid)
{
	struct buf text = {0};
	unsigned long inner = 0, n;
	const char *line;
	char path[40], *end;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	line = os_load(path, 16384, &text, NULL) == 0 ? strstr(buf_text(&text), "\nNSpid:") : NULL;
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
