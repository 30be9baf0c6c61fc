/*
 * bench_unwind [--json] COMMAND [ARGUMENT...]: the cost of unwinding real stacks with a warm rule
 * cache.
 *
 * COMMAND runs here, its output goes nowhere. It is stopped by ptrace(2) every 4 ms for its
 * registers and 16 KiB of stack, as a sample has them, 400 times or until it ends. Then all are
 * unwound again and again: best of 5 rounds of 50, of this program's CPU time. A step asks which
 * mapping holds the address and which tables describe it, as the recorder does; the tables are the
 * program's own and its libraries'. The copies are 6 MB together, so they come from memory as in a
 * ring; the tables and rules are warm, which in a recorder that wakes up among busy programs they
 * are not (tests/bench/stacks.sh measures that).
 *
 * The row: user frames per stack, microseconds per stack, and per 17 frames of it (the design's
 * measure). Text goes to stderr, with --json an object to stdout (tests/bench/run.sh).
 */
#include "base/os.h"
#include "source/host/maps.h"
#include "tests/support/unwind_file.h"
#include "unwind/unwind.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SAMPLES = 400,
	COPY_BYTES = 16376,
	ROUNDS = 5,
	PASSES = 50,
	FILES_MAX = 64,
	REGISTERS = 17,
};

#define REGISTERS_MASK 0xff01ffu         /* perf's, in the order of take_registers() */
#define WARM_UP_NS (300 * NS_PER_MS)     /* its libraries are mapped by then */
#define EVERY_NS (4 * NS_PER_MS)

struct stack_copy {
	uint64_t regs[REGISTERS];
	uint32_t nbytes;
	uint8_t bytes[COPY_BYTES];
};

struct bench {
	pid_t pid;
	struct frames *frames;
	struct maps *maps;
	struct unwind_file files[FILES_MAX];     /* by object number - first */
	uint32_t first, nfiles;
	struct stack_copy *copies;
	uint32_t ncopies;
	struct unwinder *unwinder;
	struct unwind_stack stack;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- the program ----------------------------------------------------------------------------- */

static pid_t run(char **command)
{
	pid_t pid = fork();
	int null;

	if (pid)
		return pid;
	null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	execvp(command[0], command);
	_exit(127);
}

static void take_registers(const struct user_regs_struct *r, uint64_t out[REGISTERS])
{
	const uint64_t regs[REGISTERS] = {r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi,
					  r->rbp, r->rsp, r->rip, r->r8,  r->r9,  r->r10,
					  r->r11, r->r12, r->r13, r->r14, r->r15};

	memcpy(out, regs, sizeof(regs));
}

/* false: it has ended. */
static bool take_copy(struct bench *b)
{
	struct stack_copy *copy = &b->copies[b->ncopies];
	struct user_regs_struct regs;
	struct iovec here = {copy->bytes, COPY_BYTES}, there = {.iov_len = COPY_BYTES};
	ssize_t got;
	int status;

	if (ptrace(PTRACE_INTERRUPT, b->pid, NULL, NULL) || waitpid(b->pid, &status, __WALL) < 0 ||
	    !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, b->pid, NULL, &regs))
		return false;
	take_registers(&regs, copy->regs);
	there.iov_base = (void *)(uintptr_t)regs.rsp;
	got = process_vm_readv(b->pid, &here, 1, &there, 1, 0);
	copy->nbytes = got > 0 ? (uint32_t)got : 0;
	b->ncopies += copy->nbytes != 0;
	return ptrace(PTRACE_CONT, b->pid, NULL, NULL) == 0;
}

/* ---- what is mapped -------------------------------------------------------------------------- */

static void add_mapping(struct bench *b, struct mapping *m, const char *path)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = path};
	struct object *object = objects_get(b->frames, &key, 0);

	if (!object)
		fail("objects_get");
	if (!b->nfiles)
		b->first = object->number;
	if (object->number == b->first + b->nfiles && b->nfiles < FILES_MAX)
		unwind_file_open(path, UNWIND_FILE_SECTIONS, &b->files[b->nfiles++]);
	m->object = object;
	if (maps_insert(&b->maps, m, 0))
		fail("maps_insert");
}

static void read_maps(struct bench *b)
{
	char name[64], line[600], path[400], perms[5];
	struct mapping m = {0};
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)b->pid);
	in = fopen(name, "r");
	if (!in)
		fail(name);
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %399s", &m.start,
			   &m.end, perms, &m.pgoff, path) == 5 &&
		    perms[2] == 'x' && path[0] == '/')
			add_mapping(b, &m, path);
	}
	fclose(in);
}

static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	struct bench *b = ctx;
	const struct mapping *m = maps_find(b->maps, address);
	const struct unwind_file *file;

	(void)kernel;
	out->ref.object = m ? m->object : objects_unknown(b->frames);
	if (!m || m->object->number - b->first >= b->nfiles)
		return;
	file = &b->files[m->object->number - b->first];
	out->ref.offset = address - m->start + m->pgoff;
	out->tables = file->tables;
	out->vaddr = unwind_file_vaddr(file, out->ref.offset);
}

/* ---- unwinding ------------------------------------------------------------------------------- */

static void walk(struct bench *b, const struct stack_copy *copy)
{
	const struct unwind_caller caller = {.find = find, .ctx = b};
	const struct unwind_input in = {.user_expected = true, .regs_abi = 2, .regs = copy->regs,
					.regs_mask = REGISTERS_MASK, .stack = copy->bytes,
					.stack_bytes = copy->nbytes};

	unwinder_walk(b->unwinder, &in, &caller, NULL, &b->stack);
}

static uint64_t cpu_ns(void)
{
	uint64_t cpu, rss;

	os_self_usage(&cpu, &rss);
	return cpu;
}

/* Microseconds of one pass over all of them. */
static double pass_us(struct bench *b)
{
	uint64_t best = UINT64_MAX, start, spent;
	unsigned round, pass;
	uint32_t i;

	for (round = 0; round < ROUNDS; round++) {
		start = cpu_ns();
		for (pass = 0; pass < PASSES; pass++) {
			for (i = 0; i < b->ncopies; i++)
				walk(b, &b->copies[i]);
		}
		spent = cpu_ns() - start;
		best = spent < best ? spent : best;
	}
	return (double)best / 1e3 / PASSES;
}

static void report(struct bench *b, const char *command, bool json)
{
	const char *name = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
	uint64_t nframes = 0;
	uint32_t i, complete = 0;
	double us, frames, pct;

	for (i = 0; i < b->ncopies; i++) {
		walk(b, &b->copies[i]);
		nframes += b->stack.nframes;
		complete += b->stack.quality == QUALITY_COMPLETE;
	}
	us = pass_us(b) / b->ncopies;
	frames = (double)nframes / b->ncopies;
	pct = 100.0 * complete / b->ncopies;
	fprintf(stderr,
		"unwind %-15s  stacks %u  complete %.1f %%  frames %.1f  us %.2f  us of 17 frames "
		"%.2f"
		"  (goal 4)\n",
		name, b->ncopies, pct, frames, us, us * 17 / frames);
	if (json)
		printf("{\"row\":\"unwind %s\",\"stacks\":%u,\"complete_pct\":%.1f,\"frames\":%.2f,"
		       "\"us_per_stack\":%.3f,\"us_per_17_frames\":%.3f,\"goal_us\":4}\n",
		       name, b->ncopies, pct, frames, us, us * 17 / frames);
}

int main(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof(*b));
	bool json = argc > 1 && !strcmp(argv[1], "--json");

	if (argc < 2 + json) {
		fprintf(stderr, "usage: bench_unwind [--json] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	if (!b || frames_new(&b->frames, NULL) || !(b->maps = maps_new()) ||
	    !(b->copies = calloc(SAMPLES, sizeof(*b->copies))) ||
	    unwinder_new(0, &b->unwinder, NULL))
		fail("memory");
	b->pid = run(argv + 1 + json);
	os_sleep_ns(WARM_UP_NS);
	if (b->pid < 0 || ptrace(PTRACE_SEIZE, b->pid, NULL, (void *)(uintptr_t)PTRACE_O_EXITKILL))
		fail("bench_unwind: the command ended too soon, or may not be traced");
	read_maps(b);
	while (b->ncopies < SAMPLES && take_copy(b))
		os_sleep_ns(EVERY_NS);
	kill(b->pid, SIGKILL);
	if (!b->ncopies)
		fail("bench_unwind: no stack was read");
	report(b, argv[1 + json], json);
	return 0;
}
