/*
 * Trace files of Windows, written for tests: any header, any clock, several CPUs, damage by hand.
 *
 * Records go into the open buffer of their CPU; when one has no room it is flushed and gets the
 * next sequence number, as ETW does. Bytes are what documents say, not what the reader
 * expects.
 *
 *	struct etl_writer w;
 *
 *	etl_writer_begin(&w, &(struct etl_session){.pointer_bytes = 8, .perf_hz = 10000000});
 *	etl_write_kernel(&w, &(struct etw_record){.ticks = 5, .cpu = 1, .pid = 4, .tid = 8,
 *			 .opcode = 1, .payload = p, .payload_bytes = n}, 3);
 *	etl_writer_end(&w);
 *	... w.out holds the file ...
 *	etl_writer_free(&w);
 *
 * Lack of memory ends the test. One thread.
 */
#pragma once

#include "base/buf.h"
#include "source/etl/file.h"

#define ETL_WRITER_CPUS_MAX 64u

struct etl_session {                         /* all zero is a good one: QPC at 10 MHz, t0 = 0 */
	unsigned pointer_bytes;              /* 0 = 8 */
	unsigned ncpus;                      /* as the header says; 0 = 1 */
	uint32_t buffer_bytes;               /* 0 = 4096 */
	bool compressed;                     /* all buffers but the first */
	bool wide_cpu;                       /* CPU in 11 bits (flag 0x20), else in 8 */
	uint32_t clock_kind;                 /* 0 is written as 1; 100 as 0 */
	uint64_t perf_hz;                    /* 0 = 10,000,000 */
	uint32_t cpu_mhz;
	int64_t t0_ticks;
	uint64_t start_filetime, boot_filetime;      /* 0 = 2020-01-01, an hour before */
	uint32_t log_file_mode;              /* more bits of it */
	uint32_t events_lost, buffers_lost;
	const char *name;                    /* ASCII; NULL = "test" */
};

struct etl_writer {
	struct etl_session session;
	struct buf out;                      /* the file */
	struct buf open[ETL_WRITER_CPUS_MAX];        /* payloads that are being filled */
	unsigned flags[ETL_WRITER_CPUS_MAX];         /* of the CPU's next buffer: 2, 4 */
	struct buf starts;                   /* u64 each: where buffers start in out */
	int64_t sequence;
};

void etl_writer_begin(struct etl_writer *w, const struct etl_session *session);

/*
 * The record's header of that kind, its items, its payload. nbytes and header are not looked at.
 *
 * group    kinds SYSTEM, COMPACT, PERFINFO: in place of the GUID
 */
void etl_write(struct etl_writer *w, enum etl_kind kind, unsigned group,
	       const struct etw_record *record);

/* The same, the kind chosen by record->pointer_bytes, or the session's if that is 0. */
void etl_write_kernel(struct etl_writer *w, const struct etw_record *record, unsigned group);
void etl_write_perfinfo(struct etl_writer *w, const struct etw_record *record, unsigned group);
/* FULL: guid, opcode */
void etl_write_classic(struct etl_writer *w, const struct etw_record *record);
/* guid, id, items */
void etl_write_event(struct etl_writer *w, const struct etw_record *record);

/* Bytes as they are, a whole number of 8, e.g. a record that is none. */
void etl_write_raw(struct etl_writer *w, unsigned cpu, const void *bytes, size_t n);

/* The CPU's open buffer goes to the file, if anything is in it. */
void etl_writer_flush(struct etl_writer *w, unsigned cpu);

/* Flush the CPUs in their order, and write how many buffers there are. */
void etl_writer_end(struct etl_writer *w);

/*
 * After the end: the last n buffers come right behind the first one, as a circular file that
 * wrapped has them. etl_writer_start() is of no use then.
 */
void etl_writer_rotate(struct etl_writer *w, size_t n);

size_t etl_writer_nbuffers(const struct etl_writer *w);
uint64_t etl_writer_start(const struct etl_writer *w, size_t buffer);    /* offset in out */
void etl_writer_free(struct etl_writer *w);

/*
 * Repeat a trace until there are at least payload_bytes of payload, its buffers compressed as they
 * were, the times of records (and the times inside of stack records) moved on each time, and write
 * it to a file. For measurements.
 */
int etl_repeat(const char *from, const char *to, uint64_t payload_bytes, struct err *err);
