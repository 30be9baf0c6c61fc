#include "source/ring/perf_record.h"

#include "base/bytes.h"

#include <string.h>

/* From include/uapi/linux/perf_event.h, repeated here so that this file builds on every host. */
enum {
	RECORD_LOST = 2,
	RECORD_COMM = 3,
	RECORD_EXIT = 4,
	RECORD_THROTTLE = 5,
	RECORD_FORK = 7,
	RECORD_SAMPLE = 9,
	RECORD_MMAP2 = 10,
	RECORD_LOST_SAMPLES = 13,
	RECORD_SWITCH_CPU_WIDE = 15,
	RECORD_KSYMBOL = 17,
};

#define MISC_COMM_EXEC 0x2000u
#define MISC_MMAP_BUILD_ID 0x4000u
#define MISC_SWITCH_OUT 0x2000u
#define MISC_SWITCH_OUT_PREEMPT 0x4000u
#define KSYMBOL_UNREGISTER 1u
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER ((uint64_t)-512)
#define CONTEXT_FIRST ((uint64_t)-4095)      /* values from here on are markers, not addresses */
#define HEADER_BYTES 8u
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

static bool read_regs(struct cursor *c, unsigned nregs, struct perf_record *out)
{
	uint64_t abi;

	if (!cursor_get(c, &abi, 8) || abi > 2)
		return false;
	out->u.sample.regs_abi = (uint32_t)abi;
	if (!abi)
		return true;
	out->u.sample.regs = (const uint64_t *)(const void *)c->at;
	return cursor_skip(c, (uint64_t)nregs * 8);
}

/* The ring holds the full copy. The size of its valid part follows it, unless the copy is empty. */
static bool read_stack(struct cursor *c, struct perf_record *out)
{
	uint64_t size, valid;
	const uint8_t *bytes;

	if (!cursor_get(c, &size, 8))
		return false;
	if (!size)
		return true;
	bytes = c->at;
	if (!cursor_skip(c, size) || !cursor_get(c, &valid, 8) || valid > size)
		return false;
	out->u.sample.stack = bytes;
	out->u.sample.stack_bytes = (uint32_t)valid;
	return true;
}

static bool read_sample(struct cursor *c, const struct perf_format *format, struct perf_record *out)
{
	uint64_t nr;
	uint32_t reserved;

	if (!cursor_get(c, &out->u.sample.id, 8) || !cursor_get(c, &out->u.sample.ip, 8) ||
	    !cursor_get(c, &out->pid, 4) || !cursor_get(c, &out->tid, 4) ||
	    !cursor_get(c, &out->time_ns, 8) || !cursor_get(c, &out->cpu, 4) ||
	    !cursor_get(c, &reserved, 4))
		return false;
	if (format->callchain) {
		const uint64_t *chain;

		if (!cursor_get(c, &nr, 8) || nr > PERF_RECORD_MAX_BYTES / 8)
			return false;
		chain = (const uint64_t *)(const void *)c->at;
		if (!cursor_skip(c, nr * 8))
			return false;
		split_chain(chain, nr, out);
	}
	if (format->raw) {
		if (!cursor_get(c, &out->u.sample.raw_bytes, 4))
			return false;
		out->u.sample.raw = c->at;
		if (!cursor_skip(c, out->u.sample.raw_bytes))
			return false;
	}
	if (format->nregs && !read_regs(c, format->nregs, out))
		return false;
	return !format->stack || read_stack(c, out);
}

static bool read_mmap2(struct cursor *c, unsigned misc, struct perf_record *out)
{
	uint8_t id[24];
	uint32_t prot, flags;

	if (!cursor_get(c, &out->pid, 4) || !cursor_get(c, &out->tid, 4) ||
	    !cursor_get(c, &out->u.mmap.start, 8) || !cursor_get(c, &out->u.mmap.bytes, 8) ||
	    !cursor_get(c, &out->u.mmap.pgoff, 8) || !cursor_get(c, id, 24))
		return false;
	if (misc & MISC_MMAP_BUILD_ID) {
		if (id[0] > PERF_BUILD_ID_BYTES)
			return false;
		out->u.mmap.build_id_bytes = id[0];
		memcpy(out->u.mmap.build_id, id + 4, id[0]);
	} else {
		memcpy(&out->u.mmap.major, id, 4);
		memcpy(&out->u.mmap.minor, id + 4, 4);
		memcpy(&out->u.mmap.ino, id + 8, 8);
		memcpy(&out->u.mmap.ino_generation, id + 16, 8);
	}
	return cursor_get(c, &prot, 4) && cursor_get(c, &flags, 4) &&
	       (out->u.mmap.path = cursor_text(c)) != NULL;
}

static bool read_ksymbol(struct cursor *c, struct perf_record *out)
{
	uint16_t type, flags;

	if (!cursor_get(c, &out->u.ksymbol.start, 8) || !cursor_get(c, &out->u.ksymbol.bytes, 4) ||
	    !cursor_get(c, &type, 2) || !cursor_get(c, &flags, 2))
		return false;
	out->u.ksymbol.gone = (flags & KSYMBOL_UNREGISTER) != 0;
	return (out->u.ksymbol.name = cursor_text(c)) != NULL;
}

static bool read_body(struct cursor *c, unsigned type, unsigned misc, struct perf_record *out)
{
	uint64_t identifier;

	switch (type) {
	case RECORD_MMAP2:
		out->kind = PERF_KIND_MMAP;
		return read_mmap2(c, misc, out);
	case RECORD_COMM:
		out->kind = PERF_KIND_COMM;
		out->u.comm.exec = (misc & MISC_COMM_EXEC) != 0;
		return cursor_get(c, &out->pid, 4) && cursor_get(c, &out->tid, 4) &&
		       (out->u.comm.name = cursor_text(c)) != NULL;
	case RECORD_FORK:
	case RECORD_EXIT:
		out->kind = type == RECORD_FORK ? PERF_KIND_FORK : PERF_KIND_EXIT;
		return cursor_get(c, &out->pid, 4) && cursor_get(c, &out->u.task.parent_pid, 4) &&
		       cursor_get(c, &out->tid, 4) && cursor_get(c, &out->u.task.parent_tid, 4) &&
		       cursor_get(c, &out->time_ns, 8);
	case RECORD_KSYMBOL:
		out->kind = PERF_KIND_KSYMBOL;
		return read_ksymbol(c, out);
	case RECORD_SWITCH_CPU_WIDE:
		out->kind = PERF_KIND_SWITCH;
		out->u.change.out = (misc & MISC_SWITCH_OUT) != 0;
		out->u.change.preempted = (misc & MISC_SWITCH_OUT_PREEMPT) != 0;
		return cursor_get(c, &out->u.change.other_pid, 4) &&
		       cursor_get(c, &out->u.change.other_tid, 4);
	case RECORD_LOST:
		out->kind = PERF_KIND_LOST;
		return cursor_get(c, &identifier, 8) && cursor_get(c, &out->u.lost, 8);
	case RECORD_LOST_SAMPLES:
		out->kind = PERF_KIND_LOST;
		return cursor_get(c, &out->u.lost, 8);
	case RECORD_THROTTLE:
		out->kind = PERF_KIND_THROTTLE;
		return true;
	default:
		return true;
	}
}

bool perf_record_parse(const void *bytes, size_t n, const struct perf_format *format,
		       struct perf_record *out)
{
	struct cursor c = cursor_over(bytes, n);
	struct cursor trailer;
	uint32_t type, pid, tid, reserved;
	uint16_t misc, size;

	memset(out, 0, sizeof(*out));
	if (!cursor_get(&c, &type, 4) || !cursor_get(&c, &misc, 2) || !cursor_get(&c, &size, 2) ||
	    size != n)
		return false;
	if (type == RECORD_SAMPLE) {
		out->kind = PERF_KIND_SAMPLE;
		return read_sample(&c, format, out);
	}
	if (n < HEADER_BYTES + TRAILER_BYTES)
		return false;
	trailer.at = c.end - TRAILER_BYTES;
	trailer.end = c.end;
	c.end = trailer.at;
	if (!cursor_get(&trailer, &pid, 4) || !cursor_get(&trailer, &tid, 4) ||
	    !cursor_get(&trailer, &out->time_ns, 8) || !cursor_get(&trailer, &out->cpu, 4) ||
	    !cursor_get(&trailer, &reserved, 4))
		return false;
	out->pid = pid;
	out->tid = tid;
	return read_body(&c, type, misc, out);
}
