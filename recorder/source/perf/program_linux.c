/* Helpers and instructions: linux/bpf.h, Documentation/bpf/standardization/instruction-set.rst. */
#include "source/perf/program_linux.h"

#include "base/array.h"
#include "source/host/proc_pid_linux.h"
#include "source/ring/bpf_call_linux.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define CPUS_MAX 1024u
#define KEY (-8)                             /* on the program's stack: a key of a table */
#define KEEP 100                             /* jumps: to the end, with and without the sample */
#define DROP 101
#define LEFT_OUT_AT 5                        /* instructions */
#define LEFT_OUT_PART 6
#define KERNEL_PART 4
#define REGS_CS 136                          /* struct pt_regs of x86-64 */
#define REGS_SP 152
#define COPY_BYTES (PERF_SHORT_HEAD_BYTES + PERF_SHORT_MAX_BYTES)

struct perf_program {
	int left_out, pids, wakes, ends, copies, shorts;     /* tables; left_out -1 = none */
	int program;
};

static int refused(struct err *err)
{
	if (errno == EPERM || errno == EACCES)
		return err_set(err, ERR_ACCESS, "this user may not load a program (BPF) that "
			       "runs at samples: run as root, or give the program CAP_BPF and "
			       "CAP_PERFMON");
	return err_os(err, "the kernel cannot run a program (BPF) at samples");
}

static void set_jumps(uint64_t *insns, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		unsigned to = (unsigned)(insns[i] >> 16 & 0xffff);

		if ((insns[i] & 7) != BPF_JMP || (to != KEEP && to != DROP))
			continue;
		to = n - (to == KEEP ? 4 : 2);
		insns[i] = (insns[i] & ~((uint64_t)0xffff << 16)) | (uint64_t)(to - i - 1) << 16;
	}
}

/*
 * 0. If `left_out` has the process: drop the sample.
 * 1. If `pids` has the process: write its pid to the wake event of this CPU.
 * 2. If `ends` has the thread: copy from its stack pointer to its stack's end, write that to the
 *    short event of this CPU, and drop the sample. Without all of it, or if the ring does not take
 *    it for another reason than being full, which it counts, keep the sample.
 *
 * in_kernel: do so for samples in the kernel too, whose user registers it finds since Linux 5.15
 */
static int load(const struct perf_program *p, bool in_kernel)
{
#define I bpf_insn_of
#define CALL(f) I(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##f)
#define MOVE(to, from) I(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_##to, BPF_REG_##from, 0, 0)
#define SET(to, value) I(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_##to, 0, 0, value)
#define ADD(to, value) I(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_##to, 0, 0, value)
#define TABLE(to, fd) I(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_##to, BPF_PSEUDO_MAP_FD, 0, fd), 0
#define THIS_CPU(to) I(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_##to, 0, 0, -1)
#define LOAD(to, from, off) I(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_##to, BPF_REG_##from, off, 0)
#define STORE(size, to, off, from) \
	I(BPF_STX | BPF_MEM | (size), BPF_REG_##to, BPF_REG_##from, off, 0)
#define IF(how, reg, value, jump) I(BPF_JMP | (how) | BPF_K, BPF_REG_##reg, 0, jump, value)
#define LOOK_UP(fd) TABLE(1, fd), MOVE(2, 10), ADD(2, KEY), CALL(map_lookup_elem)
	uint64_t insns[] = {
		MOVE(6, 1), CALL(get_current_pid_tgid), MOVE(7, 0),
		I(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32), STORE(BPF_DW, 10, KEY, 0),
		LOOK_UP(p->left_out), IF(BPF_JNE, 0, 0, DROP),
		LOOK_UP(p->pids), IF(BPF_JEQ, 0, 0, 8),
		MOVE(1, 6), TABLE(2, p->wakes), THIS_CPU(3), MOVE(4, 10), ADD(4, KEY), SET(5, 8),
		CALL(perf_event_output),

		I(BPF_ALU | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_7, 0, 0),
		STORE(BPF_DW, 10, KEY, 7),
		LOOK_UP(p->ends), IF(BPF_JEQ, 0, 0, KEEP),
		LOAD(7, 0, 0), LOAD(8, 6, REGS_SP), LOAD(1, 6, REGS_CS),
		I(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0, 3),
		IF(BPF_JNE, 1, 0, KERNEL_PART),
		CALL(get_current_task_btf), MOVE(1, 0), CALL(task_pt_regs), LOAD(8, 0, REGS_SP),

		I(BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_7, BPF_REG_8, 0, 0),
		IF(BPF_JGT, 7, PERF_SHORT_MAX_BYTES, KEEP),
		CALL(get_smp_processor_id), STORE(BPF_W, 10, KEY, 0),
		LOOK_UP(p->copies), IF(BPF_JEQ, 0, 0, KEEP), MOVE(9, 0), STORE(BPF_W, 9, 0, 7),
		MOVE(1, 9), ADD(1, PERF_SHORT_HEAD_BYTES), MOVE(2, 7), MOVE(3, 8),
		CALL(probe_read_user), IF(BPF_JNE, 0, 0, KEEP),
		MOVE(1, 6), TABLE(2, p->shorts), THIS_CPU(3), MOVE(4, 9), MOVE(5, 7),
		ADD(5, PERF_SHORT_HEAD_BYTES), CALL(perf_event_output),
		IF(BPF_JEQ, 0, 0, DROP), IF(BPF_JEQ, 0, -ENOSPC, DROP),

		SET(0, 1), I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		SET(0, 0), I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	unsigned at = 0, i;

	for (i = 0; p->left_out < 0 && i < LEFT_OUT_PART; i++)
		insns[LEFT_OUT_AT + i] = I(BPF_JMP | BPF_JA, 0, 0, 0, 0);
	while (insns[at] != CALL(get_current_task_btf))
		at++;
	for (i = 0; !in_kernel && i < KERNEL_PART; i++)
		insns[at + i] = IF(BPF_JEQ, 1, 0, KEEP);
#undef I
	set_jumps(insns, COUNT_OF(insns));
	return bpf_program_load(insns, COUNT_OF(insns), BPF_PROG_TYPE_PERF_EVENT, "recorder_cpu");
}

int perf_program_new(bool leaves_out, struct perf_program **out, struct err *err)
{
	struct perf_program *p;
	int rc = 0;

	if (!proc_sees_machine())
		return err_set(err, ERR_UNSUPPORTED, "the recorder runs in a pid namespace of its "
			       "own, where a program of the kernel would see other pids");
	p = malloc(sizeof(*p));
	if (!p)
		return err_memory(err, "for a program at samples");
	*p = (struct perf_program){-1, -1, -1, -1, -1, -1, -1};
	if (leaves_out)
		p->left_out = bpf_table_new(BPF_MAP_TYPE_LRU_HASH, 8, 8, PERF_LEFT_OUT_MAX, 0);
	p->pids = bpf_table_new(BPF_MAP_TYPE_HASH, 8, 8, PERF_WAKES_PROCESSES_MAX, 0);
	p->ends = bpf_table_new(BPF_MAP_TYPE_LRU_HASH, 8, 8, PERF_ENDS_MAX, 0);
	p->copies = bpf_table_new(BPF_MAP_TYPE_ARRAY, 4, COPY_BYTES, (unsigned)get_nprocs_conf(),
				  0);
	p->wakes = bpf_table_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, CPUS_MAX, 0);
	p->shorts = bpf_table_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, CPUS_MAX, 0);
	if (p->pids >= 0 && p->ends >= 0 && p->copies >= 0 && p->wakes >= 0 && p->shorts >= 0)
		p->program = load(p, true);
	if (p->program < 0 && errno == EINVAL)
		p->program = load(p, false);
	if (p->program < 0)
		rc = refused(err);
	if (rc)
		perf_program_free(p);
	else
		*out = p;
	return rc;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void perf_program_free(struct perf_program *p)
{
	if (!p)
		return;
	close_fd(p->program);
	close_fd(p->left_out);
	close_fd(p->pids);
	close_fd(p->wakes);
	close_fd(p->ends);
	close_fd(p->copies);
	close_fd(p->shorts);
	free(p);
}

int perf_program_attach(const struct perf_program *p, struct perf_ring *sampler,
			const struct perf_ask *ask)
{
	if (sampler->cpu >= CPUS_MAX || ioctl(sampler->fd, PERF_EVENT_IOC_SET_BPF, p->program))
		return errno;
	sampler->has_program = true;
	return sampler->format.stack ? perf_ring_open_short(sampler, ask) : 0;
}

void perf_program_use(const struct perf_program *p, const struct perf_ring *sampler)
{
	uint32_t cpu = sampler->cpu;

	if (sampler->format.short_id)
		bpf_table_ask(BPF_MAP_UPDATE_ELEM, p->shorts, &cpu, (void *)&sampler->short_fd);
}

void perf_program_stack_end(const struct perf_program *p, uint32_t tid, uint64_t end)
{
	uint64_t key = tid;

	bpf_table_ask(end ? BPF_MAP_UPDATE_ELEM : BPF_MAP_DELETE_ELEM, p->ends, &key,
		      end ? &end : NULL);
}

void perf_program_leave_out(const struct perf_program *p, uint32_t pid, bool yes)
{
	uint64_t key = pid, value = 1;

	if (p && p->left_out >= 0)
		bpf_table_ask(yes ? BPF_MAP_UPDATE_ELEM : BPF_MAP_DELETE_ELEM, p->left_out, &key,
			      yes ? &value : NULL);
}

/* ---- wakes ----------------------------------------------------------------------------------- */

bool perf_program_wake(const struct perf_program *p, uint32_t pid)
{
	uint64_t key = pid, value = 1;

	return bpf_table_ask(BPF_MAP_UPDATE_ELEM, p->pids, &key, &value) == 0;
}

void perf_program_wake_no_more(const struct perf_program *p, uint32_t pid)
{
	uint64_t key = pid;

	bpf_table_ask(BPF_MAP_DELETE_ELEM, p->pids, &key, NULL);
}

/* The event that the program writes to. Its ring overwrites itself: nobody reads what is in it. */
static int open_event(unsigned cpu, struct perf_wake *out)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr;
	void *map;

	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	attr.sample_type = PERF_SAMPLE_RAW;
	attr.sample_period = 1;
	attr.wakeup_watermark = 1;
	attr.sample_id_all = 0;
	out->fd = perf_event_fd(&attr, cpu);
	if (out->fd < 0)
		return -1;
	map = mmap(NULL, 2 * page_bytes, PROT_READ, MAP_SHARED, out->fd, 0);
	if (map == MAP_FAILED)
		return -1;
	out->map = map;
	return ioctl(out->fd, PERF_EVENT_IOC_ENABLE, 0);
}

int perf_wake_open(const struct perf_program *p, const struct perf_ring *sampler,
		   struct perf_wake *out, struct err *err)
{
	struct perf_wake wake = {-1, NULL};
	uint32_t cpu = sampler->cpu;
	int rc = 0;

	if (!sampler->has_program)
		return err_set(err, ERR_UNSUPPORTED, "no program (BPF) runs at samples of CPU %u",
			       cpu);
	if (open_event(cpu, &wake) ||
	    bpf_table_ask(BPF_MAP_UPDATE_ELEM, p->wakes, &cpu, &wake.fd))
		rc = refused(err);
	if (rc)
		perf_wake_close(&wake);
	else
		*out = wake;
	return rc;
}

void perf_wake_close(struct perf_wake *wake)
{
	if (wake->map)
		munmap(wake->map, 2 * (size_t)sysconf(_SC_PAGESIZE));
	if (wake->fd >= 0)
		close(wake->fd);
	*wake = (struct perf_wake){-1, NULL};
}
