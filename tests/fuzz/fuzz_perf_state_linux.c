/*
 * Side-band records of the kernel in any order, beginning with a process whose /proc is not there:
 * forks, execs, names, mappings and ends of eight processes with two threads each, losses, and
 * samples between them. A thread belongs to the process whose number the sample has, and an address
 * is found in a mapping that holds it. Each step is
 *
 *	u8 call, u8 process (0..7), thread and details, u8 what it names
 */
#include "tests/support/perf_state_lab_linux.h"

#include <stdlib.h>

#define PROCESSES 8
#define CALLS 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = {
	"/usr/bin/true", "/opt/app", "/opt/app (deleted)", "//anon", "[vdso]", "/memfd:code",
	"/usr/lib/libc.so.6", "", "[heap]", "/dev/zero", "anon_inode:[perf]", "/SYSV00000000",
};

static void sample(uint32_t pid, uint32_t tid, uint64_t address, uint64_t now_ns)
{
	const struct perf_thread *t = perf_state_thread(state_of, pid, tid, now_ns);
	struct frame_ref at = {0};

	if (!t)
		return;
	if (t->tid != tid || t->process->pid != pid || !t->process->process || !t->thread)
		abort();
	perf_state_locate(state_of, t->process, address, false, &at);
	if (!at.object)
		abort();
}

static void take(unsigned call, uint32_t pid, unsigned detail, unsigned name, uint64_t now_ns)
{
	uint32_t tid = pid + (detail & 1 ? PROCESSES : 0), other = INIT + name % PROCESSES;
	const char *path = paths[name % (sizeof(paths) / sizeof(paths[0]))];
	uint64_t address = (uint64_t)(detail % 16) << 12;

	switch (call) {
	case 0: feed_fork(pid, other, now_ns); break;
	case 1: feed_thread(pid, pid + PROCESSES, now_ns); break;
	case 2: feed_comm(pid, tid, path, true, now_ns); break;
	case 3: feed_comm(pid, tid, path, false, now_ns); break;
	case 4: feed_mmap(pid, path, address, now_ns); break;
	case 5: feed_exit(pid, tid, now_ns); break;
	case 6: sample(pid, tid, address + name, now_ns); break;
	case 7: perf_state_lose(state_of, now_ns); break;
	case 8: perf_state_look(state_of, now_ns); break;
	default: perf_state_expire(state_of, now_ns); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now_ns = SECOND;
	size_t i;

	if (open_state(NULL))
		abort();
	for (i = 0; i + 3 <= size; i += 3) {
		now_ns += (uint64_t)(data[i + 1] >> 4) * 100 * NS_PER_MS;
		take(data[i] % CALLS, INIT + data[i + 1] % PROCESSES, data[i + 1] / PROCESSES,
		     data[i + 2], now_ns);
		while (queue_peek(queue))
			queue_pop(queue);
	}
	live_processes(now_ns - SECOND);
	close_state(NULL);
	return 0;
}
