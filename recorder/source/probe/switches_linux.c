/* Rings are laid out as perf's: perf_event_open(2), "MMAP layout". */
#include "source/probe/switches_private.h"

#include "base/array.h"
#include "base/bytes.h"
#include "source/host/proc_pid_linux.h"
#include "source/ring/bpf_call_linux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- life ------------------------------------------------------------------------------------ */

static int refused(struct err *err)
{
	if (errno == EPERM || errno == EACCES)
		return err_set(err, ERR_ACCESS, "this user may not load a program (BPF) that "
			       "runs at switches: run as root, or give the program CAP_BPF and "
			       "CAP_PERFMON");
	return err_os(err, "the kernel cannot run a program (BPF) at switches");
}

/* Run a program at a tracepoint: on all CPUs, whether its event is enabled or not. */
static int attach(int program, uint32_t tracepoint, unsigned ncpus)
{
	struct perf_event_attr attr;
	int fd = -1, os_error;
	unsigned cpu;

	perf_attr_common(&attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = tracepoint;
	attr.sample_period = 1;
	for (cpu = 0; cpu < ncpus && fd < 0; cpu++)
		fd = perf_event_fd(&attr, cpu);
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program)) {
		os_error = errno;
		close(fd);
		fd = -1;
		errno = os_error;
	}
	return fd;
}

static bool find_fields(const struct trace_format *format, const char *const *names, unsigned n,
			const struct trace_field **out)
{
	uint32_t at;

	for (; n--; names++, out++) {
		if (!trace_format_find(format, *names, &at))
			return false;
		*out = &format->fields[at];
	}
	return true;
}

/* n: of the programs, 0 = at switches. */
static int load_program(struct switches *s, unsigned n, struct bpf_code *code)
{
	const uint32_t types[] = {s->types.on_switch, s->types.on_wakeup};
	const char *name = n ? "recorder_wakeup" : "recorder_switch";

	*code = (struct bpf_code){.n = 0};
	if (n)
		switch_code_wakeup(code, s);
	else
		switch_code_change(code, s);
	s->programs[n] = types[n] ? bpf_program_load_typed(code->insns, code->n, types[n], name)
				  : bpf_program_load(code->insns, code->n,
						     BPF_PROG_TYPE_TRACEPOINT, name);
	return s->programs[n];
}

static void forget_program(struct switches *s)
{
	if (s->programs[0] >= 0)
		close(s->programs[0]);
	s->programs[0] = -1;
}

/*
 * The best that this kernel takes: with its types, where the tracepoint tells the state (since
 * Linux 5.18), and with what reads its stack in place (6.2); else at the tracepoint's record,
 * without known stacks before 5.15.
 */
static int load_programs(struct switches *s, struct bpf_code *code)
{
	while (load_program(s, 0, code) < 0 || load_program(s, 1, code) < 0) {
		forget_program(s);
		if (s->types.cast) {
			s->types.cast = 0;
		} else if (s->types.on_switch) {
			s->types.on_switch = s->types.on_wakeup = 0;
		} else if (s->known >= 0) {
			close(s->known);
			s->known = -1;
		} else {
			return -1;
		}
	}
	return 0;
}

static int attach_all(struct switches *s, const struct trace_format *change,
		      const struct trace_format *wakeup, unsigned ncpus, struct bpf_code *code,
		      struct err *err)
{
	static const char *const of_change[] = {"next_pid", "prev_state"};
	static const char *const of_wakeup[] = {"pid"};
	const uint32_t ids[] = {change->id, wakeup->id};
	unsigned i;

	if (!find_fields(change, of_change, 2, &s->fields[NEXT]) ||
	    !find_fields(wakeup, of_wakeup, 1, &s->fields[WOKEN]))
		return err_set(err, ERR_UNSUPPORTED, "this kernel's sched/sched_switch has other "
			       "fields");
	if (load_programs(s, code))
		return refused(err);
	for (i = 0; i < COUNT_OF(ids); i++) {
		s->attached[i] = s->types.on_switch ? bpf_program_attach(s->programs[i], NULL)
						    : attach(s->programs[i], ids[i], ncpus);
		if (s->attached[i] < 0)
			return refused(err);
	}
	return 0;
}

/* A ring, and a table of one for each CPU: of those that are offline it has none. */
static int new_ring(void)
{
	return bpf_table_new(BPF_MAP_TYPE_ARRAY, 4, PAGE + DATA, 1, BPF_F_MMAPABLE);
}

static int new_rings(unsigned ncpus)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .key_size = 4,
			       .value_size = 4, .max_entries = ncpus};
	int like = new_ring(), fd, os_error;

	if (like < 0)
		return -1;
	attr.inner_map_fd = (uint32_t)like;
	fd = bpf_call(BPF_MAP_CREATE, &attr);
	os_error = errno;
	close(like);
	errno = os_error;
	return fd;
}

int switches_new(const struct trace_format *change, const struct trace_format *wakeup,
		 unsigned ncpus, bool typed, struct switches **out, struct err *err)
{
	struct switches *s;
	struct bpf_code *code;
	int rc = 0;

	if (!proc_sees_machine())
		return err_set(err, ERR_UNSUPPORTED, "the recorder runs in a pid namespace of its "
			       "own, where a program of the kernel would see other pids");
	s = malloc(sizeof(*s));
	code = calloc(1, sizeof(*code));
	if (!s || !code) {
		free(s);
		free(code);
		return err_memory(err, "for a program at switches");
	}
	*s = (struct switches){.rings = -1, .stacks = -1, .wakes = -1, .known = -1, .every = -1,
			       .programs = {-1, -1}, .attached = {-1, -1}};
	if (typed && !kernel_types_load(&s->types))
		s->types.on_switch = 0;
	s->rings = new_rings(ncpus);
	s->stacks = bpf_table_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, ncpus, 0);
	s->wakes = bpf_table_new(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, ncpus, 0);
	s->every = bpf_table_new(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	if (s->every < 0 || s->rings < 0 || s->stacks < 0 || s->wakes < 0)
		rc = refused(err);
	s->known = bpf_table_new(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct switch_stack), KNOWN_MAX,
				 BPF_F_MMAPABLE);
	s->stacks_known = mmap(NULL, KNOWN_MAX * sizeof(struct switch_stack),
			       PROT_READ | PROT_WRITE, MAP_SHARED, s->known, 0);
	if (!rc && s->stacks_known == MAP_FAILED)
		rc = refused(err);
	if (!rc)
		rc = attach_all(s, change, wakeup, ncpus, code, err);
	free(code);
	if (rc)
		switches_free(s);
	else
		*out = s;
	return rc;
}

void switches_free(struct switches *s)
{
	unsigned i;

	if (!s)
		return;
	if (s->stacks_known && s->stacks_known != MAP_FAILED)
		munmap(s->stacks_known, KNOWN_MAX * sizeof(struct switch_stack));
	const int fds[] = {s->attached[0], s->attached[1], s->programs[0], s->programs[1],
			   s->rings, s->stacks, s->wakes, s->every, s->known};

	for (i = 0; i < COUNT_OF(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(s);
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* An event that wakes who waits for that ring. The table keeps it. */
static int open_wake(const struct switches *s, unsigned cpu, const struct perf_ring *ring)
{
	struct perf_event_attr attr;
	int fd, rc;

	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			   PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	attr.sample_period = 1;
	attr.watermark = 0;
	attr.wakeup_events = 1;
	fd = perf_event_fd(&attr, cpu);
	if (fd < 0)
		return -1;
	rc = perf_ring_redirect(ring, fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) ||
	     bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->wakes, &cpu, &fd);
	close(fd);
	return rc ? -1 : 0;
}

int switches_open_cpu(struct switches *s, unsigned cpu, int stacks, const struct perf_ring *wakes,
		      struct perf_ring *out, struct err *err)
{
	*out = (struct perf_ring){.fd = -1, .cpu = cpu, .probes = true, .unpolled = true,
				  .page_bytes = PAGE, .data_bytes = DATA};
	if (open_wake(s, cpu, wakes) ||
	    bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->stacks, &cpu, &stacks))
		return err_os(err, "cannot open the events of a program at switches");
	out->fd = new_ring();
	out->map = mmap(NULL, PAGE + DATA, PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
	out->scratch = malloc(PERF_RECORD_MAX_BYTES);
	if (out->map != MAP_FAILED && out->scratch &&
	    !bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->rings, &cpu, &out->fd))
		return 0;
	err_os(err, "cannot map the ring of switches of CPU %u", cpu);
	out->map = out->map == MAP_FAILED ? NULL : out->map;
	perf_ring_close(out);
	return ERR_UNSUPPORTED;
}

void switches_enable(const struct perf_ring *ring, bool on)
{
	__atomic_store_n(&((struct control *)ring->map)->enabled, on, __ATOMIC_RELEASE);
}

uint64_t switches_missed(struct switches *s)
{
	uint64_t missed = 0, before = s->missed;
	unsigned i;

	for (i = 0; i < COUNT_OF(s->programs); i++) {
		struct bpf_prog_info info = {0};
		union bpf_attr attr = {.info = {(uint32_t)s->programs[i], sizeof(info),
						(uintptr_t)&info}};

		if (!bpf_call(BPF_OBJ_GET_INFO_BY_FD, &attr))
			missed += info.recursion_misses;
	}
	s->missed = missed > before ? missed : before;
	return s->missed - before;
}

void switches_every(const struct switches *s, uint64_t n)
{
	uint32_t key = 0;
	uint64_t between = n - 1;

	bpf_table_ask(BPF_MAP_UPDATE_ELEM, s->every, &key, &between);
}

uint32_t switches_stack_bytes(const struct switches *s)
{
	return s && s->types.on_switch ? TAKEN_BYTES : 0;
}

uint8_t switches_state(const struct perf_record *stack)
{
	return stack->u.sample.raw_bytes ? stack->u.sample.raw[0] & STATES : 0;
}

bool switches_kernel(const struct perf_record *r, struct switch_stack *out)
{
	const uint8_t *words = r->u.sample.raw + (TAKEN_KERNEL - TAKEN);
	uint32_t nwords = r->u.sample.raw_bytes < TAKEN_BYTES ? 0 : (TAKEN_BYTES - 8) / 8;
	uint32_t n = r->u.sample.nkernel ? r->u.sample.nkernel - 1 : 0, at = 0, i;

	/* The last one, of the system call's begin, is above the gap. */
	n = n < SWITCH_KERNEL_MAX ? n : SWITCH_KERNEL_MAX;
	for (i = 0; i < n; i++) {
		while (at < nwords && le64(words + 8 * at) != r->u.sample.kernel[i])
			at++;
		if (at == nwords)
			return false;
		out->kernel[i].distance = 8 * at;
		out->kernel[i].value = r->u.sample.kernel[i];
	}
	return n > 0;
}

unsigned switches_place(const struct switch_stack *stack)
{
	return (stack->sp >> 3 ^ stack->ip ^ stack->state) & (SWITCH_PLACES - 1);
}

bool switches_know(const struct switches *s)
{
	return s && s->known >= 0;
}

void switches_tell(const struct switches *s, uint32_t tid, const struct switch_stack *stack)
{
	unsigned at = (tid * SWITCH_PLACES | switches_place(stack)) & (KNOWN_MAX - 1);
	struct switch_stack *known = &s->stacks_known[at];

	/* What the program reads meanwhile has a number that is none of that thread's. */
	__atomic_store_n(&known->tid, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*known = *stack;
	known->tid = 0;
	__atomic_store_n(&known->tid, tid, __ATOMIC_RELEASE);
}
