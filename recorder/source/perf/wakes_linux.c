/* Helpers and instructions: linux/bpf.h, Documentation/bpf/standardization/instruction-set.rst. */
#include "source/perf/wakes_linux.h"

#include "base/array.h"
#include "source/host/proc_pid_linux.h"
#include "source/ring/bpf_call_linux.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CPUS_MAX 1024u
#define KEY (-8)                             /* on the program's stack: the pid */

struct perf_wakes {
	int pids, events, program;
};

static int refused(struct err *err)
{
	if (errno == EPERM || errno == EACCES)
		return err_set(err, ERR_ACCESS, "this user may not load a program (BPF) that "
			       "chooses samples: run as root, or give the program CAP_BPF and "
			       "CAP_PERFMON");
	return err_os(err, "the kernel cannot choose samples by a program (BPF)");
}

/* If the table has the current process: write its pid to the event of this CPU. Keep the sample. */
static int load(const struct perf_wakes *w)
{
#define I bpf_insn_of
	const uint64_t insns[] = {
		I(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0),
		I(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		I(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32),
		I(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_0, KEY, 0),
		I(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, w->pids), 0,
		I(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		I(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, KEY),
		I(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		I(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 8, 0),
		I(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0),
		I(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, w->events), 0,
		I(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, -1), /* BPF_F_CURRENT_CPU */
		I(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_4, BPF_REG_10, 0, 0),
		I(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, KEY),
		I(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_5, 0, 0, 8),
		I(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_output),
		I(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1),
		I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
#undef I

	return bpf_program_load(insns, COUNT_OF(insns), BPF_PROG_TYPE_PERF_EVENT, "recorder_wake");
}

int perf_wakes_new(struct perf_wakes **out, struct err *err)
{
	struct perf_wakes *w;
	int rc = 0;

	if (!proc_sees_machine())
		return err_set(err, ERR_UNSUPPORTED, "the recorder runs in a pid namespace of its "
			       "own, where a program of the kernel would see other pids");
	w = malloc(sizeof(*w));
	if (!w)
		return err_memory(err, "for choosing samples");
	*w = (struct perf_wakes){-1, -1, -1};
	w->pids = bpf_table_new(BPF_MAP_TYPE_HASH, 8, 8, PERF_WAKES_PROCESSES_MAX, 0);
	if (w->pids >= 0)
		w->events = bpf_table_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, CPUS_MAX, 0);
	if (w->events >= 0)
		w->program = load(w);
	if (w->program < 0)
		rc = refused(err);
	if (rc)
		perf_wakes_free(w);
	else
		*out = w;
	return rc;
}

void perf_wakes_free(struct perf_wakes *w)
{
	if (!w)
		return;
	if (w->pids >= 0)
		close(w->pids);
	if (w->events >= 0)
		close(w->events);
	if (w->program >= 0)
		close(w->program);
	free(w);
}

bool perf_wakes_add(struct perf_wakes *w, uint32_t pid)
{
	uint64_t key = pid, value = 1;

	return bpf_table_ask(BPF_MAP_UPDATE_ELEM, w->pids, &key, &value) == 0;
}

void perf_wakes_remove(struct perf_wakes *w, uint32_t pid)
{
	uint64_t key = pid;

	bpf_table_ask(BPF_MAP_DELETE_ELEM, w->pids, &key, NULL);
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

int perf_wake_open(struct perf_wakes *w, const struct perf_ring *sampler, struct perf_wake *out,
		   struct err *err)
{
	struct perf_wake wake = {-1, NULL};
	uint32_t cpu = sampler->cpu;
	int rc = 0;

	/* EEXIST: this ring has it from an earlier wake. */
	if (cpu >= CPUS_MAX || open_event(cpu, &wake) ||
	    bpf_table_ask(BPF_MAP_UPDATE_ELEM, w->events, &cpu, &wake.fd) ||
	    (ioctl(sampler->fd, PERF_EVENT_IOC_SET_BPF, w->program) && errno != EEXIST))
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
