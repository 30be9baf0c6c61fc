/*
 * Side-band records of the kernel in any order, beginning with a process whose /proc is not there:
 * forks, execs, names, mappings and ends of eight processes with sixteen threads, losses, code of
 * the kernel, too many mappings, and samples between them. The last process runs all the time, and
 * its /proc is made of what it is. What each process was last told to be is noted beside: it never
 * has another's name, and an address is never in another file than the one mapped there. Something
 * may always be unknown. The first byte chooses what is recorded; each step is
 *
 *	u8 call, u8 process (0..7) and details, u8 what it names
 */
#include "tests/support/io_walk_linux.h"
#include "tests/support/perf_state_lab_linux.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROCESSES 8
#define LIVE (PROCESSES - 1)                 /* the pid is our own, so that the kernel knows it */
#define CALLS 16
#define PAGES 18
#define KERNEL_AT 0xffffffffc0000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is mapped, and the name of its object and, unless NULL, of a program that begins with it. */
static const struct {
	const char *path, *object, *program;
} files[] = {
	{"/usr/bin/true", "true", "true"},
	{"/opt/app", "app", "app"},
	{"/opt/app (deleted)", "app", "app"},
	{"//anon", "[jit]", NULL},
	{"[vdso]", "[vdso32]", NULL},
	{"/memfd:code", "[jit]", NULL},
	{"/usr/lib/jvm/libjvm.so", "libjvm.so", "libjvm.so"},
	{"/SYSV00000000", "[jit]", NULL},
};
static const char *const comms[] = {"sh", "a-long-name-cut", "", "init"};

/* What a process is: it has no name, or one of these two, and these files at its pages. */
struct truth {
	const char *comm, *program, *exe;    /* exe: the path of the program */
	bool begun;                          /* something is mapped since exec: what names it */
	uint8_t pages[PAGES];                /* files[] + 1; 0 = nothing */
	uint8_t begins[PAGES];               /* the page at which that mapping began */
};

static struct truth truths[PROCESSES];
static struct os_mutex *lock;                /* of that of the live one, which jobs read */

static uint32_t pid_of(unsigned n)
{
	return n % PROCESSES == LIVE ? os_pid() : INIT + n % PROCESSES;
}

static struct truth *truth_of(uint32_t pid)
{
	return &truths[pid == os_pid() ? LIVE : (pid - INIT) % PROCESSES];
}

static bool is_known(uint32_t pid)
{
	return pid == os_pid() || perf_state_find(state_of, pid) != NULL;
}

/* ---- /proc ----------------------------------------------------------------------------------- */

/* What follows "/proc/PID/"; NULL = it is another path. live: the pid is that of the live one. */
static const char *proc_name(const char *path, bool *live)
{
	char *end = NULL;
	unsigned long pid = strncmp(path, "/proc/", 6) ? 0 : strtoul(path + 6, &end, 10);

	*live = pid && pid == os_pid();
	return pid && *end == '/' ? end + 1 : NULL;
}

static void put_maps(const struct truth *t, struct buf *out)
{
	unsigned page;

	for (page = 0; page < PAGES; page++) {
		const char *path = t->pages[page] ? files[t->pages[page] - 1].path : NULL;

		if (path)
			buf_printf(out, "%x000-%x000 r-xp %08x 00:00 %zu %s\n", page, page + 1,
				   ((page - t->begins[page]) << 12) + 0x400, strlen(path),
				   strcmp(path, "//anon") == 0 ? "" : path);
	}
}

static void put_file(const char *name, const struct truth *t, struct buf *out)
{
	if (strcmp(name, "stat") == 0)
		buf_printf(out, "%u (%s) S %u 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 50 0 0\n",
			   os_pid(), t->comm, INIT);
	else if (strcmp(name, "comm") == 0)
		buf_printf(out, "%s\n", t->comm);
	else if (strcmp(name, "cgroup") == 0)
		buf_puts(out, "0::/system.slice/live.service\n");
	else if (strcmp(name, "maps") == 0)
		put_maps(t, out);
}

static bool open_made(const char *path, int *fd)
{
	struct buf text = {0};
	const char *name;
	bool live;

	name = proc_name(path, &live);
	if (!name)
		return false;
	os_mutex_lock(lock);
	if (live)
		put_file(name, truth_of(os_pid()), &text);
	os_mutex_unlock(lock);
	*fd = text.len ? memfd_create(name, MFD_CLOEXEC) : -1;
	if (*fd >= 0 && (dprintf(*fd, "%s", text.data) < 0 || lseek(*fd, 0, SEEK_SET)))
		abort();
	errno = *fd < 0 ? ENOENT : errno;
	buf_free(&text);
	return true;
}

/* Found before the C library's. */
ssize_t readlink(const char *path, char *out, size_t n)
{
	const char *name, *exe;
	bool live;

	name = proc_name(path, &live);
	if (!name)
		return readlinkat(AT_FDCWD, path, out, n);
	os_mutex_lock(lock);
	exe = live && strcmp(name, "exe") == 0 ? truth_of(os_pid())->exe : NULL;
	os_mutex_unlock(lock);
	if (exe)
		memcpy(out, exe, strlen(exe) < n ? strlen(exe) : n);
	errno = exe ? errno : ENOENT;
	return exe ? (ssize_t)strlen(exe) : -1;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void fork_process(uint32_t pid, uint32_t parent, uint64_t now_ns)
{
	struct truth child = is_known(parent) ? *truth_of(parent) : (struct truth){0};

	if (pid == os_pid())
		return;
	feed_fork(pid, parent, now_ns);
	if (pid != parent)
		*truth_of(pid) = child;
}

static void exec(uint32_t pid, uint32_t tid, unsigned name, uint64_t now_ns)
{
	const char *comm = comms[name % COUNT_OF(comms)];

	os_mutex_lock(lock);
	*truth_of(pid) = (struct truth){.comm = comm};
	os_mutex_unlock(lock);
	feed_comm(pid, tid, comm, true, now_ns);
}

static void map(uint32_t pid, unsigned name, unsigned page, uint64_t now_ns)
{
	unsigned n = name % COUNT_OF(files);
	struct truth *t = truth_of(pid);

	os_mutex_lock(lock);
	if (is_known(pid)) {
		t->pages[page] = t->pages[page + 1] = (uint8_t)(n + 1);
		t->begins[page] = t->begins[page + 1] = (uint8_t)page;
		if (!t->begun && strcmp(files[n].path, "[vdso]") != 0) {
			t->program = files[n].program;
			t->exe = t->program ? files[n].path : NULL;
			t->begun = true;
		}
	}
	os_mutex_unlock(lock);
	feed_mmap(pid, files[n].path, (uint64_t)page << 12, now_ns);
}

static void kernel_symbol(unsigned name, uint64_t at, bool gone, uint64_t now_ns)
{
	struct perf_record r = {.kind = PERF_KIND_KSYMBOL, .time_ns = now_ns};

	r.u.ksymbol.start = at;
	r.u.ksymbol.bytes = 0x800;
	r.u.ksymbol.gone = gone;
	r.u.ksymbol.name = comms[name % COUNT_OF(comms)];
	perf_state_feed(state_of, &r);
}

/* What others of the source may ask. */
static void ask(void)
{
	struct pool *proc, *names;
	uint32_t pid = 0;

	perf_state_pools(state_of, &proc, &names);
	if (!proc || !perf_state_hung(state_of) || (perf_state_skipped(state_of, &pid) && !pid))
		abort();
}

/* As if it had mapped more than it may in a second. */
static void spend(uint32_t pid, uint64_t now_ns)
{
	struct perf_process *p = perf_state_find(state_of, pid);

	if (p)
		p->mapped_until_ns = now_ns + MAPPINGS_CALM_NS + SECOND;
}

/* A file begins at offset 0x400 of its mapping: feed_mmap(). */
static void check_place(const struct truth *t, uint64_t address, const struct frame_ref *at)
{
	unsigned page = (unsigned)(address >> 12), file = page < PAGES ? t->pages[page] : 0;
	uint64_t offset = file ? address - ((uint64_t)t->begins[page] << 12) + 0x400 : 0;

	if (!at->object)
		abort();
	if (strcmp(at->object->name, "?") == 0)
		return;
	if (!file || strcmp(at->object->name, files[file - 1].object) != 0 ||
	    at->offset != (at->flags & FRAME_JIT ? address : offset))
		abort();
}

/* pid: also 0 and UINT32_MAX, the idle task's and that of tasks that have exited. */
static void sample(uint32_t pid, uint32_t tid, uint64_t address, uint64_t now_ns)
{
	const uint64_t chain[] = {address | KERNEL_AT, KERNEL_AT};
	struct frame_ref at = {0}, in_kernel = {0};
	const struct perf_thread *t;

	perf_state_reading(state_of, pid, tid, now_ns);
	t = perf_state_thread(state_of, pid, tid, now_ns);
	if (!t)
		return;
	if (t->tid != tid || t->process->pid != pid || !t->process->process || !t->thread ||
	    t->thread->process != t->process->process || perf_state_find_thread(state_of, tid) != t)
		abort();
	perf_state_locate(state_of, t->process, NULL, address, &at);
	if (pid == os_pid() || pid - INIT < PROCESSES)
		check_place(truth_of(pid), address, &at);
	perf_state_locate_kernel(state_of, chain[0], &in_kernel);
	if (!in_kernel.object)
		abort();
	perf_state_in(state_of, KERNEL_EXEC, chain, 2);
}

static void take(unsigned call, uint32_t pid, unsigned detail, unsigned name, uint64_t now_ns)
{
	uint32_t tid = detail & 1 ? INIT + name % (2 * PROCESSES) : pid;
	uint64_t address = (uint64_t)(detail % 16) << 12;

	switch (call) {
	case 0: fork_process(pid, pid_of(name), now_ns); break;
	case 1: feed_thread(pid, INIT + name % (2 * PROCESSES), now_ns); break;
	case 2: exec(pid, tid, name / 16, now_ns); break;
	case 3: feed_comm(pid, tid, comms[name / 16 % COUNT_OF(comms)], false, now_ns); break;
	case 4: map(pid, name, detail % 16, now_ns); break;
	case 5: tid == os_pid() ? (void)0 : feed_exit(pid, tid, now_ns); break;
	case 6: sample(pid, tid, address + name, now_ns); break;
	case 7: perf_state_lose(state_of, now_ns); break;
	case 8: perf_state_look(state_of, now_ns); break;
	case 9: perf_state_expire(state_of, now_ns); break;
	case 10: sample(detail & 2 ? 0 : UINT32_MAX, tid, address, now_ns); break;
	case 11: kernel_symbol(name, KERNEL_AT + address, detail & 1, now_ns); break;
	case 12: spend(pid, now_ns); break;
	case 13: perf_state_rescan(state_of, now_ns); break;
	case 14: perf_state_scan(state_of, now_ns, NULL); break;
	default: feed_fork(0, 0, now_ns); break;
	}
}

static void check_names(void)
{
	unsigned i;

	for (i = 0; i < PROCESSES; i++) {
		const struct perf_process *p = perf_state_find(state_of, pid_of(i));
		struct truth *t = &truths[i];
		const char *name = p ? process_name(p->process) : "?";

		if (p && strcmp(name, "?") != 0 && (!t->comm || strcmp(name, t->comm) != 0) &&
		    (!t->program || strcmp(name, t->program) != 0))
			abort();
		if (!p && i != LIVE)
			*t = (struct truth){0};
	}
}

static void open_chosen(unsigned choice)
{
	const struct perf_state_config cfg = {
		.only_process = choice & 1 ? "true,app" : NULL,
		.only_its_events = choice & 2,
		.root_pid = choice & 4 ? pid_of(choice & 0x20 ? LIVE : 0) : 0,
		.command_lines = choice & 8,
		.root_only = (choice & 0x14) == 0x14,
		.build_ids = choice & 0x40,
	};

	lock = lock ? lock : os_mutex_new();
	memset(truths, 0, sizeof(truths));
	truths[LIVE].comm = "sh";
	io_walk_make(open_made);
	if (open_config(cfg))
		abort();
	*truth_of(INIT) = (struct truth){.comm = "init", .program = "init", .begun = true};
	map(INIT, 0, 1, SECOND / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* What is told is always later than what was read before. */
	uint64_t now_ns = os_now_ns() + 3600 * SECOND;
	size_t i;

	open_chosen(size ? data[0] : 0);
	for (i = 1; i + 3 <= size; i += 3) {
		/* A pid that begins twice at one time is one process. */
		now_ns += (uint64_t)(data[i + 1] >> 4) * 100 * NS_PER_MS + 1;
		take(data[i] % CALLS, pid_of(data[i + 1]), data[i + 1] / PROCESSES, data[i + 2],
		     now_ns);
		check_names();
		while (queue_peek(queue))
			queue_pop(queue);
	}
	ask();
	live_processes(now_ns - SECOND);
	close_state(NULL);
	return 0;
}
