#include "tests/support/etl_writer.h"

#include "base/bytes.h"
#include "source/etl/etl_private.h"
#include "tests/support/lz77_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TYPE_HEADER = 4, TYPE_GENERIC = 0,
	CLOCK_UNSET_WRITTEN = 100,
	MESSAGE_ALL = 1 | 2 | 8 | 0x20,
};

#define FILETIME_2020 132223104000000000ULL
#define FILETIME_HOUR 36000000000ULL

static void check(const struct buf *b)
{
	if (b->failed) {
		fprintf(stderr, "etl_writer: out of memory\n");
		abort();
	}
}

static void put(struct buf *b, uint64_t v, unsigned n)
{
	char bytes[8];

	for (unsigned i = 0; i < n; i++)
		bytes[i] = (char)(v >> 8 * i & 255);
	buf_put(b, bytes, n);
	check(b);
}

static void put_bytes(struct buf *b, const void *bytes, size_t n)
{
	buf_put(b, bytes, n);
	check(b);
}

static void put_zeros(struct buf *b, size_t n)
{
	while (n--)
		put(b, 0, 1);
}

static void put_utf16(struct buf *b, const char *text)
{
	do {
		put(b, (unsigned char)*text, 2);
	} while (*text++);
}

static void patch(struct buf *b, size_t at, uint64_t v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		b->data[at + i] = (char)(v >> 8 * i & 255);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void put_buffer(struct etl_writer *w, unsigned cpu, unsigned type, bool compressed,
		       const struct buf *payload)
{
	size_t start = w->out.len, saved = BUFFER_HEAD_BYTES + payload->len;
	unsigned flags = w->flags[cpu] | 1;
	struct buf packed = {0};

	if (compressed) {
		flags |= BUFFER_COMPRESSED;
		lz77_pack((const uint8_t *)buf_text(payload), payload->len, &packed);
		check(&packed);
	}
	if (w->session.wide_cpu)
		flags |= BUFFER_CPU_WIDE;
	put(&w->starts, start, 8);
	put(&w->out, 0, 4);
	put(&w->out, saved, 4);
	put_zeros(&w->out, 16);
	put(&w->out, (uint64_t)w->sequence++, 8);
	put_zeros(&w->out, 8);
	put(&w->out, w->session.wide_cpu ? cpu : cpu | 0xAB00, 2);
	put_zeros(&w->out, 10);
	put(&w->out, flags, 2);
	put(&w->out, type, 2);
	put_zeros(&w->out, 16);
	if (compressed)
		put_bytes(&w->out, packed.data, packed.len);
	else
		put_bytes(&w->out, buf_text(payload), payload->len);
	/* An uncompressed buffer is written whole, and what is behind its records is all ones. */
	if (!compressed && type != TYPE_HEADER)
		while (w->out.len - start < w->session.buffer_bytes)
			put(&w->out, 0xFF, 1);
	patch(&w->out, start, w->out.len - start, 4);
	w->flags[cpu] = 0;
	buf_free(&packed);
}

void etl_writer_flush(struct etl_writer *w, unsigned cpu)
{
	if (!w->open[cpu].len)
		return;
	put_buffer(w, cpu, TYPE_GENERIC, w->session.compressed, &w->open[cpu]);
	buf_reset(&w->open[cpu]);
}

void etl_write_raw(struct etl_writer *w, unsigned cpu, const void *bytes, size_t n)
{
	if (w->open[cpu].len + n > w->session.buffer_bytes - BUFFER_HEAD_BYTES)
		etl_writer_flush(w, cpu);
	put_bytes(&w->open[cpu], bytes, n);
}

/* ---- the session's header -------------------------------------------------------------------- */

static void put_session(struct etl_writer *w, struct buf *b)
{
	const struct etl_session *s = &w->session;
	unsigned p = s->pointer_bytes;
	size_t start = b->len, end;

	put(b, 2, 2);
	put(b, p == 8 ? 2 : 1, 1);
	put(b, 0xC0, 1);
	put(b, 0, 4);                        /* size, packet */
	put(b, 4, 4);
	put(b, 4, 4);
	put(b, (uint64_t)s->t0_ticks, 8);
	put_zeros(b, 8);
	put(b, s->buffer_bytes, 4);
	put(b, 10, 4);
	put(b, 19045, 4);
	put(b, s->ncpus, 4);
	put(b, 0, 8);                        /* end time */
	put(b, 0, 8);                        /* timer resolution, greatest file size */
	put(b, s->log_file_mode | (s->compressed ? MODE_COMPRESSED : 0u), 4);
	put(b, 0, 4);                        /* buffers written: at the end */
	put(b, 0, 4);
	put(b, p, 4);
	put(b, s->events_lost, 4);
	put(b, s->cpu_mhz, 4);
	put(b, 0, p);
	put(b, 0, p);
	put(b, (uint32_t)-60, 4);
	put_zeros(b, 172 - 4);
	put_zeros(b, (8 - (b->len - start) % 8) % 8);
	put(b, s->boot_filetime, 8);
	put(b, s->perf_hz, 8);
	put(b, s->start_filetime, 8);
	put(b, s->clock_kind == CLOCK_UNSET_WRITTEN ? 0 : s->clock_kind, 4);
	put(b, s->buffers_lost, 4);
	put_utf16(b, s->name);
	put_utf16(b, "C:\\traces\\test.etl");
	end = b->len;
	patch(b, start + 4, end - start, 2);
	put_zeros(b, (8 - end % 8) % 8);
}

void etl_writer_begin(struct etl_writer *w, const struct etl_session *session)
{
	struct etl_session *s = &w->session;
	struct buf payload = {0};

	memset(w, 0, sizeof(*w));
	*s = *session;
	s->pointer_bytes = s->pointer_bytes ? s->pointer_bytes : 8;
	s->ncpus = s->ncpus ? s->ncpus : 1;
	s->buffer_bytes = s->buffer_bytes ? s->buffer_bytes : 4096;
	s->clock_kind = s->clock_kind ? s->clock_kind : 1; /* QPC */
	s->perf_hz = s->perf_hz ? s->perf_hz : 10000000;
	s->start_filetime = s->start_filetime ? s->start_filetime : FILETIME_2020;
	s->boot_filetime = s->boot_filetime ? s->boot_filetime : FILETIME_2020 - FILETIME_HOUR;
	s->name = s->name ? s->name : "test";
	put_session(w, &payload);
	put_buffer(w, 0, TYPE_HEADER, false, &payload);
	buf_free(&payload);
}

void etl_writer_end(struct etl_writer *w)
{
	for (unsigned cpu = 0; cpu < ETL_WRITER_CPUS_MAX; cpu++)
		etl_writer_flush(w, cpu);
	patch(&w->out, BUFFER_HEAD_BYTES + 32 + 36, etl_writer_nbuffers(w), 4);
}

size_t etl_writer_nbuffers(const struct etl_writer *w)
{
	return w->starts.len / 8;
}

uint64_t etl_writer_start(const struct etl_writer *w, size_t buffer)
{
	return le64((const uint8_t *)w->starts.data + buffer * 8);
}

void etl_writer_rotate(struct etl_writer *w, size_t n)
{
	size_t first = (size_t)etl_writer_start(w, 1);
	size_t cut = (size_t)etl_writer_start(w, etl_writer_nbuffers(w) - n);
	struct buf turned = {0};

	put_bytes(&turned, w->out.data, first);
	put_bytes(&turned, w->out.data + cut, w->out.len - cut);
	put_bytes(&turned, w->out.data + first, cut - first);
	buf_free(&w->out);
	w->out = turned;
}

void etl_writer_free(struct etl_writer *w)
{
	for (unsigned cpu = 0; cpu < ETL_WRITER_CPUS_MAX; cpu++)
		buf_free(&w->open[cpu]);
	buf_free(&w->out);
	buf_free(&w->starts);
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_ids(struct buf *b, const struct etw_record *r)
{
	put(b, r->tid, 4);
	put(b, r->pid, 4);
	put(b, (uint64_t)r->ticks, 8);
}

static void put_kernel(struct buf *b, unsigned type, unsigned group, const struct etw_record *r)
{
	put(b, r->version, 2);
	put(b, type, 1);
	put(b, 0xC0, 1);
	put(b, 0, 2);                        /* size */
	put(b, r->opcode, 1);
	put(b, group, 1);
}

static void put_full(struct buf *b, unsigned type, const struct etw_record *r)
{
	put(b, 0, 2);                        /* size */
	put(b, type, 1);
	put(b, 0xC0, 1);
	put(b, r->opcode, 1);
	put(b, 4, 1);                        /* level */
	put(b, r->version, 2);
	put_ids(b, r);
	put_bytes(b, &r->guid, 16);
	put_zeros(b, 8);
}

static void put_items(struct buf *b, const struct etw_record *r)
{
	for (uint32_t i = 0; i < r->nitems; i++) {
		const struct etw_item *item = &r->items[i];
		unsigned total = (8u + item->nbytes + 7u) & ~7u;

		put(b, total, 2);
		put(b, item->type, 2);
		put(b, i + 1 < r->nitems, 2);
		put(b, item->nbytes, 2);
		put_bytes(b, item->bytes, item->nbytes);
		put_zeros(b, total - 8u - item->nbytes);
	}
}

static void put_event(struct buf *b, unsigned type, const struct etw_record *r)
{
	put(b, 0, 2);                        /* size */
	put(b, type, 1);
	put(b, 0xC0, 1);
	put(b, r->nitems != 0, 2);
	put(b, 0, 2);
	put_ids(b, r);
	put_bytes(b, &r->guid, 16);
	put(b, r->id, 2);
	put(b, r->version, 1);
	put(b, 11, 1);                       /* channel */
	put(b, 4, 1);                        /* level */
	put(b, r->opcode, 1);
	put(b, 99, 2);                       /* task */
	put(b, 0x8000000000000040, 8);       /* keyword */
	put_zeros(b, 8);
	put_bytes(b, &r->guid, 16);          /* activity */
	put_items(b, r);
}

static void put_message(struct buf *b, const struct etw_record *r)
{
	put(b, 0, 2);                        /* size */
	put(b, 0, 1);
	put(b, 0x90, 1);
	put(b, r->id, 2);
	put(b, MESSAGE_ALL, 2);
	put(b, 77, 4);                       /* sequence */
	put_bytes(b, &r->guid, 16);
	put(b, (uint64_t)r->ticks, 8);
	put(b, r->tid, 4);
	put(b, r->pid, 4);
}

/* Returns where the record's size stands. */
static size_t put_header(struct buf *b, enum etl_kind kind, unsigned group,
			 const struct etw_record *r)
{
	switch (kind) {
	case ETL_SYSTEM32:
	case ETL_SYSTEM64:
	case ETL_COMPACT32:
	case ETL_COMPACT64:
		put_kernel(b, (unsigned)kind - ETL_SYSTEM32 + 1, group, r);
		put_ids(b, r);
		if (kind == ETL_SYSTEM32 || kind == ETL_SYSTEM64)
			put_zeros(b, 8);
		return 4;
	case ETL_PERFINFO32:
	case ETL_PERFINFO64:
		put_kernel(b, kind == ETL_PERFINFO64 ? 17 : 16, group, r);
		put(b, (uint64_t)r->ticks, 8);
		/* Counters, if the version's upper bits ask for some. */
		put_zeros(b, 8u * ((r->version >> 8 & 7u) + (r->version >> 15)));
		return 4;
	case ETL_FULL32:
	case ETL_FULL64:
		put_full(b, kind == ETL_FULL64 ? 20 : 10, r);
		return 0;
	case ETL_INSTANCE32:
	case ETL_INSTANCE64:
		put_full(b, kind == ETL_INSTANCE64 ? 21 : 11, r);
		put_zeros(b, 24);
		return 0;
	case ETL_EVENT32:
	case ETL_EVENT64:
		put_event(b, kind == ETL_EVENT64 ? 19 : 18, r);
		return 0;
	case ETL_MESSAGE:
		put_message(b, r);
		return 0;
	case ETL_KINDS:
		break;
	}
	abort();
}

void etl_write(struct etl_writer *w, enum etl_kind kind, unsigned group,
	       const struct etw_record *record)
{
	struct buf b = {0};
	size_t size_at = put_header(&b, kind, group, record);

	put_bytes(&b, record->payload_bytes ? (const void *)record->payload : "",
		  record->payload_bytes);
	patch(&b, size_at, b.len, 2);
	put_zeros(&b, (8 - b.len % 8) % 8);
	etl_write_raw(w, record->cpu, b.data, b.len);
	buf_free(&b);
}

static bool is64(const struct etl_writer *w, const struct etw_record *r)
{
	return (r->pointer_bytes ? r->pointer_bytes : w->session.pointer_bytes) == 8;
}

void etl_write_kernel(struct etl_writer *w, const struct etw_record *record, unsigned group)
{
	etl_write(w, is64(w, record) ? ETL_SYSTEM64 : ETL_SYSTEM32, group, record);
}

void etl_write_perfinfo(struct etl_writer *w, const struct etw_record *record, unsigned group)
{
	etl_write(w, is64(w, record) ? ETL_PERFINFO64 : ETL_PERFINFO32, group, record);
}

void etl_write_classic(struct etl_writer *w, const struct etw_record *record)
{
	etl_write(w, is64(w, record) ? ETL_FULL64 : ETL_FULL32, 0, record);
}

void etl_write_event(struct etl_writer *w, const struct etw_record *record)
{
	etl_write(w, is64(w, record) ? ETL_EVENT64 : ETL_EVENT32, 0, record);
}
