/*
 * Records of a perf ring by hand, as the kernel writes them (see source/ring/perf_record.h).
 *
 *	struct perf_bytes b;
 *	perf_bytes_begin(&b, 7, 0);                       // PERF_RECORD_FORK
 *	perf_bytes_u32(&b, pid); ...
 *	perf_bytes_trailer(&b, pid, tid, time, cpu);      // all but samples have one
 *	perf_bytes_end(&b);                               // b.bytes, b.n
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct perf_bytes {
	uint64_t bytes[1024];                /* aligned as in the ring */
	size_t n;
};

static inline void perf_bytes_put(struct perf_bytes *b, const void *from, size_t n)
{
	if (b->n + n > sizeof(b->bytes))
		abort();
	memcpy((char *)b->bytes + b->n, from, n);
	b->n += n;
}

static inline void perf_bytes_u32(struct perf_bytes *b, uint32_t v)
{
	perf_bytes_put(b, &v, 4);
}

static inline void perf_bytes_u64(struct perf_bytes *b, uint64_t v)
{
	perf_bytes_put(b, &v, 8);
}

/* A text with its NUL, filled up to 8 bytes. */
static inline void perf_bytes_text(struct perf_bytes *b, const char *text)
{
	perf_bytes_put(b, text, strlen(text) + 1);
	while (b->n % 8)
		perf_bytes_put(b, "", 1);
}

static inline void perf_bytes_begin(struct perf_bytes *b, uint32_t type, uint16_t misc)
{
	const uint16_t size = 0;

	memset(b, 0, sizeof(*b));
	perf_bytes_u32(b, type);
	perf_bytes_put(b, &misc, 2);
	perf_bytes_put(b, &size, 2);
}

static inline void perf_bytes_trailer(struct perf_bytes *b, uint32_t pid, uint32_t tid,
				      uint64_t time_ns, uint32_t cpu)
{
	perf_bytes_u32(b, pid);
	perf_bytes_u32(b, tid);
	perf_bytes_u64(b, time_ns);
	perf_bytes_u32(b, cpu);
	perf_bytes_u32(b, 0);
	perf_bytes_u64(b, 1);                /* identifier */
}

static inline void perf_bytes_end(struct perf_bytes *b)
{
	uint16_t size = (uint16_t)b->n;

	memcpy((char *)b->bytes + 6, &size, 2);
}

/* The head of a sample, up to and with its CPU. */
static inline void perf_bytes_sample(struct perf_bytes *b, uint64_t ip, uint32_t pid, uint32_t tid,
				     uint64_t time_ns, uint32_t cpu)
{
	perf_bytes_begin(b, 9, 0);
	perf_bytes_u64(b, 1);                /* identifier */
	perf_bytes_u64(b, ip);
	perf_bytes_u32(b, pid);
	perf_bytes_u32(b, tid);
	perf_bytes_u64(b, time_ns);
	perf_bytes_u32(b, cpu);
	perf_bytes_u32(b, 0);
}

static inline void perf_bytes_u64s(struct perf_bytes *b, const uint64_t *v, size_t n)
{
	perf_bytes_u64(b, n);
	perf_bytes_put(b, v, n * sizeof(*v));
}
