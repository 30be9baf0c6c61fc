#include "source/ring/perf_ring_linux.h"

#include "base/os.h"
#include "source/ring/heap_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LARGE_RECORD_BYTES 8192u            /* of a mapping, with a path of 4,096 bytes */
#define FAST_HZ 1000u
#define FAST_WAKE_BYTES 65536u              /* some 40 short samples */
#define STACK_DEPTH_MAX 127u            /* kernel.perf_event_max_stack's default */

int perf_event_fd(struct perf_event_attr *attr, unsigned cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The same for what is asked for: all tasks, or a process and all that it starts. */
static int open_event(struct perf_event_attr *attr, unsigned cpu, const struct perf_ask *ask)
{
	if (!ask->pid)
		return perf_event_fd(attr, cpu);
	attr->inherit = 1;
	attr->exclude_kernel = ask->user_only;
	return (int)syscall(SYS_perf_event_open, attr, (int)ask->pid, (int)cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

void perf_attr_common(struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->disabled = 1;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
}

static int open_sideband(struct perf_ring *ring, struct perf_ask *ask)
{
	struct perf_event_attr attr;
	int fd;

	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_CPU;
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.comm = 1;
	attr.comm_exec = 1;
	attr.task = 1;
	attr.build_id = ask->build_ids;
	attr.ksymbol = ask->ksymbols;
	attr.wakeup_watermark = 1;
	fd = open_event(&attr, ring->cpu, ask);
	if (fd >= 0 || (errno != EINVAL && errno != E2BIG) || (!ask->build_ids && !ask->ksymbols))
		return fd;
	if (ask->build_ids)
		ask->build_ids = false;      /* before kernel 5.12 */
	else
		ask->ksymbols = false;       /* before kernel 5.1 */
	return open_sideband(ring, ask);
}

/* Its samples have a stack: stack_kb of it, or the kernel's walk along frame pointers. */
static void attr_stacks(struct perf_event_attr *attr, const struct perf_ring *ring,
			const struct perf_ask *ask, unsigned stack_kb)
{
	attr->exclude_callchain_kernel = !ask->kernel_stacks;
	attr->sample_max_stack = STACK_DEPTH_MAX;
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN;
	attr->wakeup_watermark = (uint32_t)(ring->data_bytes / 4);
	if (!stack_kb)
		return;
	attr->exclude_callchain_user = 1;
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = PERF_REGS_MASK;
	/* A record's size has 16 bits, and the stack's must be a multiple of 8. */
	attr->sample_stack_user = stack_kb * 1024 - 8;
}

static int open_sampler(struct perf_ring *ring, struct perf_ask *ask)
{
	struct perf_event_attr attr;
	int fd;

	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.freq = 1;
	attr.sample_freq = ask->freq_hz;
	attr.exclude_idle = 1;
	attr_stacks(&attr, ring, ask, ask->stack_kb);
	/* Else thousands would come at once, from code that may be gone by then. */
	if (ask->has_program && ask->freq_hz >= FAST_HZ)
		attr.wakeup_watermark = FAST_WAKE_BYTES;
	if (ask->peeked)
		attr.wakeup_watermark = 1;
	if (ask->cgroups)
		attr.sample_type |= PERF_SAMPLE_CGROUP;
	fd = open_event(&attr, ring->cpu, ask);
	if (fd >= 0 || (errno != EINVAL && errno != E2BIG) || !ask->cgroups)
		return fd;
	ask->cgroups = false;                /* before kernel 5.7, or without CONFIG_CGROUP_PERF */
	return open_sampler(ring, ask);
}

static void read_number(const char *path, char *out, size_t n)
{
	struct buf text = {0};

	if (os_load(path, 4096, &text, NULL) != 0)
		buf_puts(&text, "?");
	snprintf(out, n, "%.*s", (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
	buf_free(&text);
}

unsigned perf_max_rate(void)
{
	char rate[32];

	read_number("/proc/sys/kernel/perf_event_max_sample_rate", rate, sizeof(rate));
	return (unsigned)strtoul(rate, NULL, 10);
}

/* The error for a refused perf_event_open(): what it means and what to do. */
static int refused(int os_error, const struct perf_ring *ring, const struct perf_ask *ask,
		   struct err *err)
{
	char paranoid[32];

	if (os_error == ENODEV)
		return err_set(err, ERR_NOT_FOUND, "CPU %u is offline", ring->cpu);
	if (os_error == ESRCH)
		return err_set(err, ERR_NOT_FOUND, "process %u has ended", ask->pid);
	if (ask->pid && (os_error == EACCES || os_error == EPERM)) {
		read_number("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
		return err_set(err, ERR_ACCESS,
			       "this user may not sample even programs of their own "
			       "(kernel.perf_event_paranoid is %s): run as root, or set it to 2",
			       paranoid);
	}
	if (os_error == EACCES || os_error == EPERM) {
		read_number("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
		return err_set(err, ERR_ACCESS,
			       "this user may not sample the whole system "
			       "(kernel.perf_event_paranoid is %s): run as root, or give the "
			       "program capabilities as `recorder help privileges` shows%s, or set "
			       "kernel.perf_event_paranoid to -1", paranoid,
			       atoi(paranoid) > 2 ? " and set that to 2" : "");
	}
	if (os_error == ENOENT || os_error == ENOSYS)
		return err_set(err, ERR_UNSUPPORTED,
			       "this kernel has no perf events (CONFIG_PERF_EVENTS); stacks cannot "
			       "be sampled here");
	if (os_error == EINVAL && !ring->sideband && perf_max_rate() &&
	    ask->freq_hz > perf_max_rate())
		return err_set(err, ERR_LIMIT,
			       "the kernel allows %u samples a second at most, not %u: use --freq "
			       "%u or raise kernel.perf_event_max_sample_rate", perf_max_rate(),
			       ask->freq_hz, perf_max_rate());
	if (os_error == EMFILE)
		return err_set(err, ERR_LIMIT,
			       "too many open files for perf events on CPU %u: raise the limit "
			       "(ulimit -n)", ring->cpu);
	return err_os_code(err, os_error, "cannot open perf events on CPU %u", ring->cpu);
}

static int map_ring(struct perf_ring *ring, struct err *err)
{
	int os_error;

	ring->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	ring->map = mmap(NULL, ring->page_bytes + ring->data_bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED, ring->fd, 0);
	if (ring->map != MAP_FAILED)
		return 0;
	os_error = errno;
	ring->map = NULL;
	if (os_error == EPERM)
		return err_set(
			err, ERR_ACCESS,
			"this user may not lock the memory for perf rings: run as root, give "
			"the program CAP_IPC_LOCK, or raise kernel.perf_event_mlock_kb");
	return err_os_code(err, os_error, "cannot map the perf ring of CPU %u", ring->cpu);
}

static int map_and_scratch(struct perf_ring *ring, struct err *err)
{
	int rc = map_ring(ring, err);

	if (!rc && !(ring->scratch = malloc(PERF_RECORD_MAX_BYTES)))
		rc = err_memory(err, "for a perf ring");
	if (rc)
		perf_ring_close(ring);
	return rc;
}

int perf_ring_open_probes(struct perf_ring *ring, unsigned cpu, uint8_t at,
			  const struct perf_format *format, size_t data_bytes, bool switches,
			  struct err *err)
{
	const struct perf_ask none = {0};
	struct perf_event_attr attr;

	*ring = (struct perf_ring){.cpu = cpu, .probes = true, .probes_at = at, .format = *format,
				   .data_bytes = data_bytes};
	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_type =
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
	attr.wakeup_watermark = (uint32_t)(data_bytes / 4);
	attr.context_switch = switches;
	ring->fd = perf_event_fd(&attr, cpu);
	return ring->fd < 0 ? refused(errno, ring, &none, err) : map_and_scratch(ring, err);
}

int perf_ring_open_thread(struct perf_ring *ring, struct perf_ask *ask, struct err *err)
{
	struct perf_event_attr attr;

	*ring = (struct perf_ring){.data_bytes = PERF_SMALL_SIDEBAND_BYTES};
	ring->format = (struct perf_format){.callchain = true, .nregs = PERF_REGS_COUNT,
					    .stack = true};
	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_period = NS_PER_MS;
	attr_stacks(&attr, ring, ask, ask->stack_kb);
	attr.wakeup_watermark = 1;
	attr.exclude_kernel = ask->user_only;
	ring->fd = (int)syscall(SYS_perf_event_open, &attr, (int)ask->pid, -1, -1,
				PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0 && (errno == EACCES || errno == EPERM) && !ask->user_only) {
		ask->user_only = true;
		return perf_ring_open_thread(ring, ask, err);
	}
	return ring->fd < 0 ? refused(errno, ring, ask, err) : map_and_scratch(ring, err);
}

int perf_ring_open_faults(struct perf_ring *ring, unsigned cpu, uint64_t period,
			  const struct perf_ask *ask, struct err *err)
{
	unsigned stack_kb = ask->stack_kb < PERF_FAULT_STACK_KB ? ask->stack_kb
								: PERF_FAULT_STACK_KB;
	struct perf_event_attr attr;

	*ring = (struct perf_ring){.cpu = cpu, .faults = true};
	ring->format = (struct perf_format){.address = true, .callchain = true,
					    .nregs = stack_kb ? PERF_REGS_COUNT : 0,
					    .stack = stack_kb != 0};
	ring->data_bytes = perf_ring_bytes(ask, PERF_FAULTS);
	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.sample_period = period;
	attr_stacks(&attr, ring, ask, stack_kb);
	attr.sample_type |= PERF_SAMPLE_ADDR;
	ring->fd = open_event(&attr, cpu, ask);
	return ring->fd < 0 ? refused(errno, ring, ask, err) : map_and_scratch(ring, err);
}

int perf_ring_open_unmaps(struct perf_ring *ring, unsigned cpu, uint32_t id,
			  const struct perf_ask *ask, struct err *err)
{
	struct perf_event_attr attr;

	*ring = (struct perf_ring){.cpu = cpu, .unmaps = true, .format = {.raw = true}};
	ring->data_bytes = perf_ring_bytes(ask, PERF_UNMAPS);
	perf_attr_common(&attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = id;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			   PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	attr.wakeup_watermark = (uint32_t)(ring->data_bytes / 4);
	ring->fd = open_event(&attr, cpu, ask);
	if (ring->fd < 0)
		return refused(errno, ring, ask, err);
	if (ioctl(ring->fd, PERF_EVENT_IOC_SET_FILTER, "val == 0") != 0) {
		err_os(err, "cannot filter what is unmapped on CPU %u", cpu);
		perf_ring_close(ring);
		return ERR_UNSUPPORTED;
	}
	return map_and_scratch(ring, err);
}

int perf_ring_open_heap(struct perf_ring *ring, int fd, struct err *err)
{
	*ring = (struct perf_ring){.heap = true, .data_bytes = HEAP_RING_DATA_BYTES};
	ring->format = (struct perf_format){.raw = true, .callchain = true, .stack = true,
					    .nregs = PERF_REGS_COUNT};
	ring->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return ring->fd < 0 ? err_os(err, "cannot use the ring of heaps")
			    : map_and_scratch(ring, err);
}

int perf_ring_redirect(const struct perf_ring *ring, int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) == 0 ? 0 : errno;
}

int perf_ring_open_short(struct perf_ring *ring, const struct perf_ask *ask)
{
	struct perf_event_attr attr;
	uint64_t id;
	int fd, os_error = 0;

	perf_attr_common(&attr);
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	attr.sample_period = 1;
	attr_stacks(&attr, ring, ask, ask->stack_kb);
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_STACK_USER;
	attr.sample_type |= PERF_SAMPLE_RAW | (ask->cgroups ? PERF_SAMPLE_CGROUP : 0);
	attr.sample_stack_user = 0;
	fd = perf_event_fd(&attr, ring->cpu);
	if (fd < 0)
		return errno;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		os_error = errno;
		close(fd);
		return os_error;
	}
	ring->short_fd = fd;
	ring->format.short_id = id;
	return 0;
}

/* The most that rings of all CPUs have room for, but at least `least` each. */
static size_t share(size_t bytes, unsigned ncpus, size_t all, size_t least)
{
	while (bytes > least && bytes * ncpus > all)
		bytes /= 2;
	return bytes;
}

size_t perf_stack_ring_bytes(unsigned freq_hz, unsigned stack_kb, unsigned ncpus)
{
	size_t want = (size_t)freq_hz * stack_kb * 1024 / 2, bytes = PERF_STACK_RING_BYTES;

	while (bytes < want && bytes < PERF_STACK_RING_MAX_BYTES)
		bytes *= 2;
	return share(bytes, ncpus, PERF_STACK_RINGS_BYTES, PERF_STACK_RING_LEAST_BYTES);
}

size_t perf_short_ring_bytes(unsigned freq_hz, unsigned stack_kb, unsigned ncpus)
{
	size_t all = PERF_SHORT_RINGS_BYTES + ncpus * PERF_SHORT_RINGS_MORE_BYTES;
	size_t least = PERF_SHORT_RING_LEAST_BYTES;

	while (least < (size_t)freq_hz * PERF_SHORT_SAMPLE_BYTES)
		least *= 2;
	all = all < PERF_SHORT_RINGS_MAX_BYTES ? all : PERF_SHORT_RINGS_MAX_BYTES;
	return share(perf_stack_ring_bytes(freq_hz, stack_kb, ncpus), ncpus, all, least);
}

size_t perf_ring_bytes(const struct perf_ask *ask, enum perf_ring_kind kind)
{
	switch (kind) {
	case PERF_SIDEBAND:
		return ask->small ? PERF_SMALL_SIDEBAND_BYTES
				  : share(PERF_SIDEBAND_RING_BYTES, ask->ncpus,
					  PERF_SIDEBAND_RINGS_BYTES,
					  PERF_SIDEBAND_RING_LEAST_BYTES);
	case PERF_FAULTS:
		return ask->small ? PERF_SMALL_SIDEBAND_BYTES
				  : share(PERF_FAULT_RING_BYTES, ask->ncpus,
					  PERF_FAULT_RINGS_BYTES, PERF_FAULT_RING_LEAST_BYTES);
	case PERF_UNMAPS:
		return share(PERF_UNMAP_RING_BYTES, ask->ncpus, PERF_UNMAP_RINGS_BYTES,
			     PERF_UNMAP_RING_LEAST_BYTES);
	default:
		return ask->small	? PERF_SMALL_RING_BYTES
		       : ask->stack_kb ? ask->stack_ring_bytes
				       : PERF_SAMPLE_RING_BYTES;
	}
}

int perf_ring_open(struct perf_ring *ring, unsigned cpu, bool sideband, struct perf_ask *ask,
		   struct err *err)
{
	int rc;

	*ring = (struct perf_ring){.cpu = cpu, .sideband = sideband};
	ring->format = (struct perf_format){.callchain = true,
					    .nregs = ask->stack_kb ? PERF_REGS_COUNT : 0,
					    .stack = ask->stack_kb != 0};
	ring->data_bytes = perf_ring_bytes(ask, sideband ? PERF_SIDEBAND : PERF_SAMPLES);
	ring->fd = sideband ? open_sideband(ring, ask) : open_sampler(ring, ask);
	if (ring->fd < 0 && (errno == EACCES || errno == EPERM) && ask->pid && !ask->user_only) {
		ask->user_only = true;
		return perf_ring_open(ring, cpu, sideband, ask, err);
	}
	if (ring->fd < 0)
		return refused(errno, ring, ask, err);
	ring->format.cgroup = !sideband && ask->cgroups;
	rc = map_and_scratch(ring, err);
	if (rc != ERR_ACCESS || !ask->pid || ask->small)
		return rc;
	ask->small = true;
	return perf_ring_open(ring, cpu, sideband, ask, err);
}

void perf_ring_close(struct perf_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->page_bytes + ring->data_bytes);
	if (ring->fd >= 0)
		close(ring->fd);
	if (ring->format.short_id)
		close(ring->short_fd);
	free(ring->scratch);
	*ring = (struct perf_ring){.fd = -1};
}

int perf_ring_enable(struct perf_ring *ring, bool on)
{
	return ioctl(ring->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/*
 * The kernel converts the frequency of a cpu-clock event to a period in ns when it opens the event
 * (kernel/events/core.c, perf_swevent_init_hrtimer), so this sets a period.
 */
int perf_ring_set_period(struct perf_ring *ring, uint64_t period)
{
	return ioctl(ring->fd, PERF_EVENT_IOC_PERIOD, &period) == 0 ? 0 : errno;
}

bool perf_ring_refresh(struct perf_ring *ring)
{
	struct perf_event_mmap_page *page = ring->map;

	if (ring->fd < 0)
		return false;
	ring->head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	ring->refreshed_ns = os_now_ns();
	if (ring->heap && (ring->head % 8 || ring->head - ring->tail > ring->data_bytes)) {
		ring->tail = ring->head -= ring->head % 8;
		ring->have = false;
		ring->damaged++;
		ring->unreported++;
	}
	/* Records that wait in it push out none: then probes tell. */
	if (ring->heap)
		return false;
	ring->was_full |= ring->head - ring->tail + LARGE_RECORD_BYTES > ring->data_bytes;
	return ring->head - ring->tail > ring->data_bytes / 2;
}

/*
 * The record's bytes at tail, copied if they wrap. A header never wraps: sizes are multiples of 8.
 */
static const void *record_bytes(struct perf_ring *ring, size_t *n)
{
	const char *data = (const char *)ring->map + ring->page_bytes;
	size_t at = (size_t)(ring->tail & (ring->data_bytes - 1));
	struct perf_event_header header;
	size_t to_end = ring->data_bytes - at;

	memcpy(&header, data + at, sizeof(header));
	*n = header.size;
	if (header.size < sizeof(header) || header.size % 8 ||
	    header.size > ring->head - ring->tail)
		return NULL;
	if (header.size <= to_end && !ring->heap)
		return data + at;
	/* A program may change them meanwhile. */
	to_end = header.size < to_end ? header.size : to_end;
	memcpy(ring->scratch, data + at, to_end);
	memcpy((char *)ring->scratch + to_end, data, header.size - to_end);
	return ring->scratch;
}

/* It has the time of the next record, which is parsed again: this one consumes no bytes. */
static void tell_damage(struct perf_ring *ring)
{
	ring->record = (struct perf_record){.kind = PERF_KIND_LOST, .time_ns = ring->record.time_ns,
					    .u.lost = ring->unreported};
	ring->record_bytes = 0;
	ring->unreported = 0;
}

/* It would hold up all that is behind it. The kernel's fast clock may be ahead by microseconds. */
static bool is_to_come(const struct perf_ring *ring)
{
	return ring->record.time_ns > ring->refreshed_ns + NS_PER_SEC;
}

const struct perf_record *perf_ring_peek(struct perf_ring *ring)
{
	while (!ring->have && ring->fd >= 0 && ring->tail < ring->head) {
		const void *bytes = record_bytes(ring, &ring->record_bytes);

		if (!bytes) {
			/* The rest of the ring cannot be trusted: drop it. */
			ring->record_bytes = (size_t)(ring->head - ring->tail);
		} else if (perf_record_parse(bytes, ring->record_bytes, &ring->format,
					     &ring->record) && !is_to_come(ring) &&
			   (!ring->heap || ring->record.kind == PERF_KIND_SAMPLE)) {
			ring->have = true;
			if (ring->unreported)
				tell_damage(ring);
			break;
		}
		ring->damaged++;
		ring->unreported++;
		perf_ring_next(ring);
	}
	return ring->have ? &ring->record : NULL;
}

void perf_ring_next(struct perf_ring *ring)
{
	struct perf_event_mmap_page *page = ring->map;

	ring->tail += ring->record_bytes;
	ring->have = false;
	__atomic_store_n(&page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

uint64_t perf_ring_gap(struct perf_ring *ring)
{
	const struct perf_record *r = perf_ring_peek(ring);

	if (r)
		return r->kind == PERF_KIND_LOST ? r->time_ns : 0;
	if (!ring->was_full)
		return 0;
	ring->was_full = false;
	return os_now_ns();
}

/* Then rings of every size may be mapped: capabilities(7). */
static bool may_lock_memory(void)
{
	struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[2];

	return syscall(SYS_capget, &who, words) == 0 &&
	       (words[0].effective & CAP_TO_MASK(CAP_IPC_LOCK));
}

/* Small rings where their size cannot be refused: the kernel clears all pages, 0.5 ms of CPU. */
int perf_probe(const struct perf_ask *ask, struct err *err)
{
	struct perf_ask trial = *ask;
	struct perf_ring ring;
	unsigned cpu, i;
	int rc = ERR_NOT_FOUND;

	trial.small |= may_lock_memory();
	/* CPU 0 may be offline: use the first one that is online. */
	for (cpu = 0; cpu < 64 && rc == ERR_NOT_FOUND; cpu++)
		for (i = 0, rc = 0; i < 2 && !rc; i++) {
			rc = perf_ring_open(&ring, cpu, i == 0, &trial, err);
			perf_ring_close(&ring);
		}
	return rc;
}
