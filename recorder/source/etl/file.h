/*
 * A Windows trace file (.etl, or the .etl inside a .zip): its facts, and its records in time order.
 *
 * A trace is a row of buffers, each filled by one CPU and possibly compressed. Opening reads the
 * session's header and the header of every buffer into an index. A run opens one buffer per CPU at
 * a time and merges the CPUs' streams by ticks; equal ticks keep the order of the file. A thread of
 * the run expands the next buffers meanwhile. A file can be run several times: a reader needs that,
 * because names come after their uses.
 *
 * Memory: the index takes 32 bytes per buffer, for at most ETL_BUFFERS_MAX buffers. The open
 * buffers of a run take at most ETL_OPEN_MAX_BYTES, and more wait in a temporary file; those that
 * are expanded ahead take at most ETL_AHEAD_MAX_BYTES. A stored .zip entry is read in place. A
 * deflated entry is inflated at opening, because the merge needs random access: into memory up to
 * ETL_UNZIP_MEMORY_BYTES, else into a temporary file without a name (os_temp()).
 *
 * Every byte is checked. A file cut anywhere gives the records before the cut. A buffer that cannot
 * be read is skipped and counted; struct etl_counts names the first. One thread at a time per file,
 * except for etl_file_stop().
 *
 * Sources: WMI_BUFFER_HEADER and TRACE_LOGFILE_HEADER (docs, ETW); checked on real traces, except
 * for circular files, clocks other than QPC, and sessions of 32-bit systems.
 */
#pragma once

#include "base/err.h"
#include "source/etl/records.h"

#define ETL_BUFFERS_MAX (1u << 20)           /* 64 GB of 64 KB buffers */
#define ETL_BUFFER_MAX_BYTES (16u << 20)     /* of one, expanded */
#define ETL_OPEN_MAX_BYTES (24u << 20)
#define ETL_AHEAD_MAX_BYTES (16u << 20)
#define ETL_UNZIP_MEMORY_BYTES (8u << 20)

struct etl_facts {
	struct etw_clock clock;              /* t0 is the session's header */
	uint64_t start_wall_ns;              /* wall clock at t0, ns since 1970; 0 if before */
	uint32_t os_major, os_minor, os_build;
	uint32_t ncpus;
	uint8_t pointer_bytes;               /* of the traced system; records have their own */
	uint32_t events_lost, buffers_lost;  /* by the session's header */
	uint32_t nbuffers_loss;              /* buffers marked as following a loss */
	bool truncated;                      /* the file ends inside a buffer */
	bool limited;                        /* buffers over ETL_BUFFERS_MAX are not read */
	uint64_t trace_bytes;                /* of the .etl; unpacked if it came in a .zip */
	char entry[256];                     /* name inside the .zip; "" = not a .zip */
	uint32_t nentries;                   /* traces in the .zip; only the first is read */
	bool entry_damaged;                  /* the .zip's CRC-32 does not match */
};

/* Counts of one run so far. */
struct etl_counts {
	uint64_t nrecords;
	uint64_t bad_items;                  /* records with malformed extended items */
	uint64_t ndamaged;                   /* buffers skipped, whole or from a bad record on */
	uint32_t damaged;                    /* the first of them: its number, counted from 0 */
	const char *why;                     /* static text: "its compressed bytes end too early" */
};

struct etl_file;

/*
 * returns  0; ERR_NOT_FOUND, ERR_ACCESS, ERR_IO; ERR_FORMAT: not a trace, or a .zip without one;
 *          ERR_UNSUPPORTED: the .zip's entry is encrypted or compressed in another way;
 *          ERR_FULL, ERR_MEMORY
 */
int etl_file_open(const char *path, struct etl_file **out, struct err *err);

/* The same for a trace or a .zip in memory, borrowed until close. name: for messages. */
int etl_file_open_memory(const char *name, const void *bytes, size_t n, struct etl_file **out,
			 struct err *err);
void etl_file_close(struct etl_file *file);          /* NULL allowed */

const struct etl_facts *etl_file_facts(const struct etl_file *file);

/* Takes one record, borrowed for the call. Any result but 0 ends the run and becomes its result. */
typedef int etl_record_fn(void *ctx, const struct etw_record *record);

/*
 * Call fn for every record from the first to the last, including the session's header.
 *
 * counts   of this run, up to date during each call of fn; NULL allowed
 * returns  0 at the end of the trace; fn's result, with err untouched; ERR_STOPPED; ERR_IO,
 *          ERR_MEMORY
 */
int etl_file_run(struct etl_file *file, etl_record_fn *fn, void *ctx, struct etl_counts *counts,
		 struct err *err);

/* Any thread: the current run and every later one end soon with ERR_STOPPED. */
void etl_file_stop(struct etl_file *file);
