#include "source/ring/perf_record_private.h"

#include <string.h>

#define MISC_MMAP_DATA 0x2000u
#define MISC_COMM_EXEC 0x2000u
#define MISC_SWITCH_OUT 0x2000u
#define MISC_SWITCH_OUT_PREEMPT 0x4000u
#define KSYMBOL_UNREGISTER 1u
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER ((uint64_t)-512)
#define CONTEXT_FIRST ((uint64_t)-4095)      /* values from here on are markers, not addresses */
#define TRAILER_BYTES 32u

/* Add an address to a piece of the chain, unless it does not follow the piece's last address. */
static void extend(const uint64_t **first, uint32_t *n, const uint64_t *at)
{
	if (!*n)
		*first = at;
	if (at == *first + *n)
		++*n;
}

/*
 * The chain is one list with markers: kernel addresses follow CONTEXT_KERNEL, user addresses follow
 * CONTEXT_USER. Other contexts (hypervisor, guest) are skipped, and so is a repeated context.
 */
static void split_chain(const uint64_t *chain, uint64_t n, struct perf_record *out)
{
	uint64_t i, context = 0;

	for (i = 0; i < n; i++) {
		if (chain[i] >= CONTEXT_FIRST)
			context = chain[i];
		else if (context == CONTEXT_KERNEL)
			extend(&out->u.sample.kernel, &out->u.sample.nkernel, &chain[i]);
		else if (context == CONTEXT_USER)
			extend(&out->u.sample.user, &out->u.sample.nuser, &chain[i]);
	}
}

bool perf_read_chain(struct cursor *c, struct perf_record *out)
{
	const void *chain;
	uint64_t nr;

	if (!cursor_get(c, &nr, 8) || nr > PERF_RECORD_MAX_BYTES / 8 ||
	    !(chain = cursor_take(c, nr * 8)))
		return false;
	split_chain(chain, nr, out);
	return true;
}

bool perf_read_regs(struct cursor *c, unsigned nregs, struct perf_record *out)
{
	uint64_t abi;

	if (!cursor_get(c, &abi, 8) || abi > 2)
		return false;
	out->u.sample.regs_abi = (uint32_t)abi;
	if (abi)
		out->u.sample.regs = (const void *)cursor_take(c, (uint64_t)nregs * 8);
	return !abi || out->u.sample.regs;
}

bool perf_read_stack(struct cursor *c, struct perf_record *out)
{
	uint64_t size, valid;
	const uint8_t *bytes;

	if (!cursor_get(c, &size, 8))
		return false;
	if (!size)
		return true;
	bytes = cursor_take(c, size);
	if (!bytes || !cursor_get(c, &valid, 8) || valid > size)
		return false;
	out->u.sample.stack = bytes;
	out->u.sample.stack_bytes = (uint32_t)valid;
	return true;
}

/* The stack of a sample that a program made. */
static bool take_short_stack(struct perf_record *out)
{
	const uint8_t *raw = out->u.sample.raw;

	out->u.sample.stack = raw + PERF_SHORT_HEAD_BYTES;
	out->u.sample.stack_bytes = le32(raw);
	return out->u.sample.stack_bytes <= out->u.sample.raw_bytes - PERF_SHORT_HEAD_BYTES;
}

static void leave_out_program(struct perf_record *out)
{
	uint64_t back = le64(out->u.sample.raw + 2 * sizeof(back));
	uint32_t i = 0, n = out->u.sample.nkernel;

	while (i < n && out->u.sample.kernel[i] != back)
		i++;
	if (i < n) {
		out->u.sample.kernel += i + 1;
		out->u.sample.nkernel -= i + 1;
	}
}

static bool read_sample(struct cursor *c, const struct perf_format *format, struct perf_record *out)
{
	const uint8_t *b = cursor_take(c, 32), *cpu;
	bool is_short = b && format->short_id && le64(b) == format->short_id;
	uint32_t nraw;

	if (!b || (format->address && !cursor_get(c, &out->u.sample.address, 8)) ||
	    !(cpu = cursor_take(c, 8)))
		return false;
	out->kind = PERF_KIND_SAMPLE;
	out->u.sample.id = le64(b);
	out->u.sample.ip = le64(b + 8);
	out->pid = le32(b + 16);
	out->tid = le32(b + 20);
	out->time_ns = le64(b + 24);
	out->cpu = le32(cpu);
	if (format->callchain && !perf_read_chain(c, out))
		return false;
	if (format->raw || is_short) {
		/* The kernel pads the data; else the registers behind it would not be aligned. */
		if (!cursor_get(c, &nraw, 4) || nraw % 8 != 4 ||
		    !(out->u.sample.raw = cursor_take(c, nraw)))
			return false;
		out->u.sample.raw_bytes = nraw;
		if (format->program_bytes && nraw >= format->program_bytes && nraw >= 24)
			leave_out_program(out);
	}
	if (format->nregs && !perf_read_regs(c, format->nregs, out))
		return false;
	if (is_short ? !take_short_stack(out) : format->stack && !perf_read_stack(c, out))
		return false;
	return !format->cgroup || cursor_get(c, &out->u.sample.cgroup, 8);
}

static bool read_mmap2(struct cursor *c, unsigned misc, struct perf_record *out)
{
	const uint8_t *b = cursor_take(c, 64);       /* with prot and flags, 4 bytes each */

	if (!b)
		return false;
	out->pid = le32(b);
	out->tid = le32(b + 4);
	out->u.mmap.start = le64(b + 8);
	out->u.mmap.bytes = le64(b + 16);
	out->u.mmap.pgoff = le64(b + 24);
	if (!(misc & PERF_MISC_MMAP_BUILD_ID)) {
		out->u.mmap.major = le32(b + 32);
		out->u.mmap.minor = le32(b + 36);
		out->u.mmap.ino = le64(b + 40);
		out->u.mmap.ino_generation = le64(b + 48);
	} else if (b[32] <= PERF_BUILD_ID_BYTES) {
		out->u.mmap.build_id_bytes = b[32];
		memcpy(out->u.mmap.build_id, b + 36, b[32]);
	} else {
		return false;
	}
	return (out->u.mmap.path = cursor_text(c)) != NULL;
}

bool perf_read_body(struct cursor *c, unsigned type, unsigned misc, struct perf_record *out)
{
	static const uint8_t sizes[] = {
		[RECORD_LOST] = 16, [RECORD_COMM] = 8, [RECORD_EXIT] = 24, [RECORD_FORK] = 24,
		[RECORD_LOST_SAMPLES] = 8, [RECORD_SWITCH_CPU_WIDE] = 8, [RECORD_KSYMBOL] = 16,
		[RECORD_MMAP] = 32, [RECORD_WAKE] = 8,
	};
	const uint8_t *b = cursor_take(c, type < sizeof(sizes) ? sizes[type] : 0);

	if (!b)
		return false;
	switch (type) {
	case RECORD_MMAP:
		out->kind = misc & MISC_MMAP_DATA ? PERF_KIND_OTHER : PERF_KIND_MMAP;
		out->pid = le32(b);
		out->tid = le32(b + 4);
		out->u.mmap.start = le64(b + 8);
		out->u.mmap.bytes = le64(b + 16);
		out->u.mmap.pgoff = le64(b + 24);
		return (out->u.mmap.path = cursor_text(c)) != NULL;
	case RECORD_MMAP2:
		if (misc & MISC_MMAP_DATA)
			return true;
		out->kind = PERF_KIND_MMAP;
		return read_mmap2(c, misc, out);
	case RECORD_COMM:
		out->kind = PERF_KIND_COMM;
		out->pid = le32(b);
		out->tid = le32(b + 4);
		out->u.comm.exec = (misc & MISC_COMM_EXEC) != 0;
		return (out->u.comm.name = cursor_text(c)) != NULL;
	case RECORD_FORK:
	case RECORD_EXIT:
		out->kind = type == RECORD_FORK ? PERF_KIND_FORK : PERF_KIND_EXIT;
		out->pid = le32(b);
		out->u.task.parent_pid = le32(b + 4);
		out->tid = le32(b + 8);
		out->u.task.parent_tid = le32(b + 12);
		out->time_ns = le64(b + 16);
		return true;
	case RECORD_KSYMBOL:
		out->kind = PERF_KIND_KSYMBOL;
		out->u.ksymbol.start = le64(b);
		out->u.ksymbol.bytes = le32(b + 8);
		out->u.ksymbol.gone = (le16(b + 14) & KSYMBOL_UNREGISTER) != 0;
		return (out->u.ksymbol.name = cursor_text(c)) != NULL;
	case RECORD_SWITCH_CPU_WIDE:
		out->kind = PERF_KIND_SWITCH;
		out->u.change.out = (misc & MISC_SWITCH_OUT) != 0;
		out->u.change.preempted = (misc & MISC_SWITCH_OUT_PREEMPT) != 0;
		out->u.change.other_tid = le32(b + 4);
		out->u.change.repeats = misc & PERF_MISC_REPEATS ? le32(b) : 0;
		return true;
	case RECORD_WAKE:
		out->kind = PERF_KIND_WAKE;
		out->u.change.other_tid = le32(b + 4);
		return true;
	case RECORD_LOST:
	case RECORD_LOST_SAMPLES:
		out->kind = PERF_KIND_LOST;
		out->u.lost = le64(type == RECORD_LOST ? b + 8 : b);
		return true;
	case RECORD_THROTTLE:
		out->kind = PERF_KIND_THROTTLE;
		return true;
	default:
		return true;
	}
}

size_t perf_record_length(const void *bytes, size_t n, size_t trailer_bytes)
{
	const size_t name = PERF_HEADER_BYTES + 16;
	size_t length;

	if (n <= name || le32(bytes) != RECORD_KSYMBOL)
		return n;
	length = name + strnlen((const char *)bytes + name, n - name) + 1;
	length = (length + 7) / 8 * 8 + trailer_bytes;
	return length < n ? length : n;
}

bool perf_record_parse(const void *bytes, size_t n, const struct perf_format *format,
		       struct perf_record *out)
{
	struct cursor c = cursor_over(bytes, perf_record_length(bytes, n, TRAILER_BYTES));
	const uint8_t *head = cursor_take(&c, PERF_HEADER_BYTES);

	memset(out, 0, sizeof(*out));
	if (!head || le16(head + 6) != n)
		return false;
	if (le32(head) == RECORD_SAMPLE)
		return read_sample(&c, format, out);
	if (cursor_left(&c) < TRAILER_BYTES)
		return false;
	c.end -= TRAILER_BYTES;
	out->pid = le32(c.end);
	out->tid = le32(c.end + 4);
	out->time_ns = le64(c.end + 8);
	out->cpu = le32(c.end + 16);
	return perf_read_body(&c, le32(head), le16(head + 4), out);
}
