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

#include "base/bytes.h"

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

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * Files of perf by hand: events with the layout that perf_bytes.h gives its records, and their
 * records.
 *
 *	struct perf_built f = {0};
 *	built_begin(&f, false);                     // true: a pipe's stream
 *	built_event(&f, 1, 0, 99, &id, 1);          // before the records: type, config, rate, ids
 *	built_records(&f);                          // behind the events
 *	built_record(&f, &bytes);
 *	built_feature(&f, 3, "...", n);             // in a file; ascending, behind the records
 *	built_end(&f);                              // f.bytes
 */


#define BUILT_SAMPLE_TYPE 0x100a7u           /* identifier, ip, tid, time, cpu, call chain */
#define BUILT_ATTR_BYTES 136u
#define BUILT_HEADER_BYTES 104u

struct perf_built {
	struct buf bytes, attrs, features;
	bool pipe;
	size_t data_at, data_end;
	uint64_t bits;
	unsigned nfeatures;
	uint64_t sample_type;                /* 0 = BUILT_SAMPLE_TYPE */
};

static inline void built_begin(struct perf_built *f, bool pipe)
{
	f->pipe = pipe;
	buf_put(&f->bytes, "PERFILE2", 8);
	buf_put_le(&f->bytes, pipe ? 16 : BUILT_HEADER_BYTES, 8);
	while (!pipe && f->bytes.len < BUILT_HEADER_BYTES)
		buf_putc(&f->bytes, 0);
}

static inline void built_attr(const struct perf_built *f, struct buf *out, uint32_t type,
			      uint64_t config, uint64_t rate)
{
	size_t start = out->len;

	buf_put_le(out, type, 4);
	buf_put_le(out, BUILT_ATTR_BYTES, 4);
	buf_put_le(out, config, 8);
	buf_put_le(out, rate, 8);
	buf_put_le(out, f->sample_type ? f->sample_type : BUILT_SAMPLE_TYPE, 8);
	buf_put_le(out, 0, 8);
	buf_put_le(out, 1u << 10 | 1u << 18, 8);     /* a rate; all records have a trailer */
	while (out->len < start + BUILT_ATTR_BYTES)
		buf_putc(out, 0);
}

static inline void built_event(struct perf_built *f, uint32_t type, uint64_t config, uint64_t rate,
			       const uint64_t *ids, unsigned nids)
{
	size_t at = f->bytes.len;
	unsigned i;

	if (f->pipe) {
		buf_put_le(&f->bytes, 64, 4);
		buf_put_le(&f->bytes, 0, 2);
		buf_put_le(&f->bytes, 8 + BUILT_ATTR_BYTES + 8 * nids, 2);
		built_attr(f, &f->bytes, type, config, rate);
	}
	for (i = 0; i < nids; i++)
		buf_put_le(&f->bytes, ids[i], 8);
	if (f->pipe)
		return;
	built_attr(f, &f->attrs, type, config, rate);
	buf_put_le(&f->attrs, at, 8);
	buf_put_le(&f->attrs, 8 * nids, 8);
}

static inline void built_records(struct perf_built *f)
{
	size_t at = f->bytes.len;

	if (!f->pipe) {
		buf_put(&f->bytes, f->attrs.data, f->attrs.len);
		put_le64((uint8_t *)f->bytes.data + 16, BUILT_ATTR_BYTES + 16);
		put_le64((uint8_t *)f->bytes.data + 24, at);
		put_le64((uint8_t *)f->bytes.data + 32, f->attrs.len);
	}
	f->data_at = f->data_end = f->bytes.len;
}

static inline void built_record(struct perf_built *f, struct perf_bytes *b)
{
	perf_bytes_end(b);
	buf_put(&f->bytes, b->bytes, b->n);
	f->data_end = f->bytes.len;
}

/* One of perf's own, with this body. */
static inline void built_own(struct perf_built *f, uint32_t type, const void *body, size_t n)
{
	buf_put_le(&f->bytes, type, 4);
	buf_put_le(&f->bytes, 0, 2);
	buf_put_le(&f->bytes, 8 + n, 2);
	buf_put(&f->bytes, body, n);
	f->data_end = f->bytes.len;
}

static inline void built_feature(struct perf_built *f, unsigned bit, const void *body, size_t n)
{
	f->bits |= UINT64_C(1) << bit;
	buf_put_le(&f->features, n, 8);
	buf_put(&f->features, body, n);
	f->nfeatures++;
}

static inline void built_end(struct perf_built *f)
{
	size_t from = 0, at = f->bytes.len + 16u * f->nfeatures;
	struct buf bodies = {0};

	while (!f->pipe && from < f->features.len) {
		size_t n = (size_t)le64(f->features.data + from);

		buf_put_le(&f->bytes, at + bodies.len, 8);
		buf_put_le(&f->bytes, n, 8);
		buf_put(&bodies, f->features.data + from + 8, n);
		from += 8 + n;
	}
	buf_put(&f->bytes, bodies.data, bodies.len);
	buf_free(&bodies);
	if (f->pipe)
		return;
	put_le64((uint8_t *)f->bytes.data + 40, f->data_at);
	put_le64((uint8_t *)f->bytes.data + 48, f->data_end - f->data_at);
	put_le64((uint8_t *)f->bytes.data + 72, f->bits);
}

static inline void built_free(struct perf_built *f)
{
	buf_free(&f->bytes);
	buf_free(&f->attrs);
	buf_free(&f->features);
	*f = (struct perf_built){0};
}

/* Records whose ids say which event they are of. */
static inline void built_sample(struct perf_built *f, uint64_t id, uint32_t pid, uint64_t time_ns)
{
	static const uint64_t chain[] = {(uint64_t)-512, 0x401000, 0x401100};
	struct perf_bytes b;

	perf_bytes_sample(&b, 0x401000, pid, pid, time_ns, 0);
	b.bytes[1] = id;
	perf_bytes_u64s(&b, chain, 3);
	built_record(f, &b);
}

static inline void built_comm(struct perf_built *f, uint32_t pid, const char *name,
			      uint64_t time_ns)
{
	struct perf_bytes b;

	perf_bytes_begin(&b, 3, 0);
	perf_bytes_u32(&b, pid);
	perf_bytes_u32(&b, pid);
	perf_bytes_text(&b, name);
	perf_bytes_trailer(&b, pid, pid, time_ns, 0);
	built_record(f, &b);
}

static inline void built_mmap2(struct perf_built *f, uint16_t misc, uint32_t pid, uint64_t start,
			       uint32_t major, const char *path, uint64_t time_ns)
{
	struct perf_bytes b;

	perf_bytes_begin(&b, 10, misc);
	perf_bytes_u32(&b, pid);
	perf_bytes_u32(&b, pid);
	perf_bytes_u64(&b, start);
	perf_bytes_u64(&b, 0x1000);
	perf_bytes_u64(&b, 0x2000);          /* offset in the file */
	perf_bytes_u32(&b, major);
	perf_bytes_u32(&b, 0);
	perf_bytes_u64(&b, 77);              /* inode */
	perf_bytes_u64(&b, 0);
	perf_bytes_u64(&b, 5);               /* read, execute; private */
	perf_bytes_text(&b, path);
	perf_bytes_trailer(&b, pid, pid, time_ns, 0);
	built_record(f, &b);
}
