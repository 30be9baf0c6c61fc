/*
 * Side-band records of the kernel in any order, beginning with a process whose /proc is not there:
 * forks, execs, names, mappings and ends of eight processes with sixteen threads, losses, code of
 * the kernel, and samples between them. What each process was last told to be is noted beside: it
 * never has another's name, and an address is never in another file than the one mapped there.
 * Something may always be unknown. The first byte chooses what is recorded; each step is
 *
 *	u8 call, u8 process (0..7) and details, u8 what it names
 */
#include "tests/support/perf_state_lab_linux.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define PROCESSES 8
#define CALLS 13
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
	const char *comm, *program;
	bool begun;                          /* something is mapped since exec: what names it */
	uint8_t pages[PAGES];                /* files[] + 1; 0 = nothing */
	uint8_t begins[PAGES];               /* the page at which that mapping began */
};

static struct truth truths[PROCESSES];

static struct truth *truth_of(uint32_t pid)
{
	return &truths[(pid - INIT) % PROCESSES];
}

static bool is_known(uint32_t pid)
{
	return perf_state_find(state_of, pid) != NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void fork_process(uint32_t pid, uint32_t parent, uint64_t now_ns)
{
	struct truth child = is_known(parent) ? *truth_of(parent) : (struct truth){0};

	feed_fork(pid, parent, now_ns);
	if (pid != parent)
		*truth_of(pid) = child;
}

static void exec(uint32_t pid, uint32_t tid, unsigned name, uint64_t now_ns)
{
	const char *comm = comms[name % COUNT_OF(comms)];

	feed_comm(pid, tid, comm, true, now_ns);
	*truth_of(pid) = (struct truth){.comm = comm};
}

static void map(uint32_t pid, unsigned name, unsigned page, uint64_t now_ns)
{
	unsigned n = name % COUNT_OF(files);
	struct truth *t = truth_of(pid);

	if (is_known(pid)) {
		t->pages[page] = t->pages[page + 1] = (uint8_t)(n + 1);
		t->begins[page] = t->begins[page + 1] = (uint8_t)page;
		if (!t->begun && strcmp(files[n].path, "[vdso]") != 0) {
			t->program = files[n].program;
			t->begun = true;
		}
	}
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
	perf_state_locate(state_of, t->process, address, false, &at);
	if (pid - INIT < PROCESSES)
		check_place(truth_of(pid), address, &at);
	perf_state_locate(state_of, t->process, chain[0], true, &in_kernel);
	if (!in_kernel.object)
		abort();
	perf_state_in(state_of, KERNEL_EXEC, chain, 2);
}

static void take(unsigned call, uint32_t pid, unsigned detail, unsigned name, uint64_t now_ns)
{
	uint32_t tid = INIT + (detail & 1 ? name % (2 * PROCESSES) : pid - INIT);
	uint64_t address = (uint64_t)(detail % 16) << 12;

	switch (call) {
	case 0: fork_process(pid, INIT + name % PROCESSES, now_ns); break;
	case 1: feed_thread(pid, INIT + name % (2 * PROCESSES), now_ns); break;
	case 2: exec(pid, tid, name / 16, now_ns); break;
	case 3: feed_comm(pid, tid, comms[name / 16 % COUNT_OF(comms)], false, now_ns); break;
	case 4: map(pid, name, detail % 16, now_ns); break;
	case 5: feed_exit(pid, tid, now_ns); break;
	case 6: sample(pid, tid, address + name, now_ns); break;
	case 7: perf_state_lose(state_of, now_ns); break;
	case 8: perf_state_look(state_of, now_ns); break;
	case 9: perf_state_expire(state_of, now_ns); break;
	case 10: sample(detail & 2 ? 0 : UINT32_MAX, tid, address, now_ns); break;
	case 11: kernel_symbol(name, KERNEL_AT + address, detail & 1, now_ns); break;
	default: feed_fork(0, 0, now_ns); break;
	}
}

static void check_names(void)
{
	uint32_t pid;

	for (pid = INIT; pid < INIT + PROCESSES; pid++) {
		const struct perf_process *p = perf_state_find(state_of, pid);
		struct truth *t = truth_of(pid);
		const char *name = p ? process_name(p->process) : "?";

		if (p && strcmp(name, "?") != 0 && (!t->comm || strcmp(name, t->comm) != 0) &&
		    (!t->program || strcmp(name, t->program) != 0))
			abort();
		if (!p)
			*t = (struct truth){0};
	}
}

static void open_chosen(unsigned choice)
{
	const struct perf_state_config cfg = {
		.only_process = choice & 1 ? "true,app" : NULL,
		.only_its_events = choice & 2,
		.root_pid = choice & 4 ? INIT : 0,
		.command_lines = choice & 8,
		.root_only = (choice & 0x14) == 0x14,
	};

	if (open_config(cfg))
		abort();
	memset(truths, 0, sizeof(truths));
	*truth_of(INIT) = (struct truth){.comm = "init", .program = "init", .begun = true};
	map(INIT, 0, 1, SECOND / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now_ns = SECOND;
	size_t i;

	open_chosen(size ? data[0] : 0);
	for (i = 1; i + 3 <= size; i += 3) {
		/* A pid that begins twice at one time is one process. */
		now_ns += (uint64_t)(data[i + 1] >> 4) * 100 * NS_PER_MS + 1;
		take(data[i] % CALLS, INIT + data[i + 1] % PROCESSES, data[i + 1] / PROCESSES,
		     data[i + 2], now_ns);
		check_names();
		while (queue_peek(queue))
			queue_pop(queue);
	}
	live_processes(now_ns - SECOND);
	close_state(NULL);
	return 0;
}
