/*
 * A trace file of Windows (.etl, or the .etl inside a .zip): its facts, and its records in the order
 * of time.
 *
 * A trace is a row of buffers, each filled by one CPU and perhaps compressed. Opening reads the
 * session's header and the header of every buffer into an index; a run opens one buffer per CPU at
 * a time and merges the CPUs' streams by their ticks, equal ticks in the order of the file. A file
 * can be run several times, which a reader needs: names come after their uses.
 *
 * Memory: the index is 24 bytes per buffer, at most ETL_BUFFERS_MAX of them; of the buffers that are
 * open in a run at most ETL_OPEN_MAX_BYTES are held, whatever the number of CPUs and the size of
 * buffers: beyond it they wait in a temporary file. An entry of a .zip that is merely stored is
 * read in place; a deflated one is inflated at opening, because a merge jumps about in it: into
 * memory up to ETL_UNZIP_MEMORY_BYTES, else into a temporary file that has no name left (see
 * os_temp()), which takes its unpacked size on disk.
 *
 * Every byte is checked. A file cut anywhere gives the records before the cut; a buffer that cannot
 * be read is skipped, counted and named in struct etl_counts. One thread at a time per file, except
 * for etl_file_stop() and etl_file_progress().
 *
 * Source: design page etl-format.md sections 1 to 3. Circular files, clocks other than QPC and
 * sessions of 32-bit systems come from documents only.
 */
#ifndef SOURCE_ETL_FILE_H
#define SOURCE_ETL_FILE_H

#include "base/err.h"
#include "source/etl/records.h"
#include "source/etw/clock.h"

#define ETL_BUFFERS_MAX (1u << 20)           /* 64 GB of 64 KB buffers */
#define ETL_BUFFER_MAX_BYTES (16u << 20)     /* of one, expanded */
#define ETL_OPEN_MAX_BYTES (24u << 20)
#define ETL_UNZIP_MEMORY_BYTES (8u << 20)
#define ETL_DAMAGES_MAX 8u                   /* named; more are only counted */

struct etl_facts {
	struct etw_clock clock;              /* t0 is the session's header */
	uint64_t start_filetime;             /* wall clock at t0; 100 ns since 1601-01-01 UTC */
	uint64_t boot_filetime, end_filetime;
	uint64_t start_wall_ns;              /* the same as ns since 1970; 0 if it is before */
	int32_t bias_minutes;                /* UTC = local time + bias */
	uint32_t os_major, os_minor, os_build;
	uint32_t ncpus, cpu_mhz;
	uint8_t pointer_bytes;               /* of the traced system; records have their own */
	uint32_t log_file_mode;
	bool circular;                       /* the oldest buffers were overwritten */
	uint32_t session_buffer_bytes;
	uint32_t events_lost, buffers_lost;  /* as the session's header says */
	uint32_t nbuffers_loss;              /* buffers marked: events or a buffer were lost before */
	uint32_t nbuffers, ncompressed;
	uint32_t nbuffers_written;           /* as the session's header says; a cross-check */
	bool truncated;                      /* the file ends inside a buffer */
	bool limited;                        /* more than ETL_BUFFERS_MAX: the rest is not read */
	uint64_t trace_bytes;                /* of the .etl, unpacked if it came in a .zip */
	char session[256], log_file[512];    /* UTF-8; what the session was called, where it wrote */
	char entry[256];                     /* name inside the .zip; "" = none */
	uint32_t nentries;                   /* traces in the .zip: the first is read */
	bool entry_damaged;                  /* inflated, it is not what the .zip's CRC-32 is of */
};

struct etl_damage {
	uint32_t buffer;                     /* number in the file, the first is 0 */
	uint64_t offset;                     /* where it starts */
	const char *why;                     /* static text: "its compressed bytes end too early" */
};

/* Of one run, up to now. */
struct etl_counts {
	uint64_t records[ETL_KINDS], nrecords;
	uint64_t nbuffers;                   /* read, the damaged ones left out */
	uint64_t payload_bytes;              /* of these, expanded */
	uint64_t out_of_order;               /* records older than the one before them */
	uint64_t bad_items;                  /* records whose extended items made no sense */
	uint64_t ndamaged;                   /* buffers skipped, or left at a record that is none */
	struct etl_damage damages[ETL_DAMAGES_MAX];      /* the first of them */
	int64_t last_ticks;                  /* the greatest of any record */
};

struct etl_file;

/*
 * returns  0; ERR_NOT_FOUND, ERR_ACCESS, ERR_IO; ERR_FORMAT: it is no trace, or a .zip without one;
 *          ERR_UNSUPPORTED: the .zip's entry is encrypted or compressed in another way;
 *          ERR_FULL, ERR_MEMORY
 */
int etl_file_open(const char *path, struct etl_file **out, struct err *err);

/* A trace or a .zip in memory, which must outlive it. name: for sentences. */
int etl_file_open_memory(const char *name, const void *bytes, size_t n, struct etl_file **out,
			 struct err *err);
void etl_file_close(struct etl_file *file);          /* NULL allowed */

const struct etl_facts *etl_file_facts(const struct etl_file *file);

/* One record, borrowed for the call. Not 0 ends the run, which returns it. */
typedef int etl_record_fn(void *ctx, const struct etw_record *record);

/*
 * Every record from the first to the last, the session's header included.
 *
 * counts   of this run, up to date during each call of fn; NULL allowed
 * returns  0 at the end of the trace; what fn returned, err untouched; ERR_STOPPED; ERR_IO, ERR_MEMORY
 */
int etl_file_run(struct etl_file *file, etl_record_fn *fn, void *ctx, struct etl_counts *counts,
		 struct err *err);

/* Any thread: a run ends soon with ERR_STOPPED, and so does every later one. */
void etl_file_stop(struct etl_file *file);

/* Any thread: bytes of the trace that the latest run has read, of facts.trace_bytes. */
uint64_t etl_file_progress(const struct etl_file *file);

/* CRC-32 (as zlib's) over the payloads of all readable buffers in the order of the file. */
int etl_file_crc(struct etl_file *file, uint32_t *crc, struct err *err);

/* FILETIME of a tick of this trace. */
uint64_t etl_facts_filetime(const struct etl_facts *facts, int64_t ticks);

#endif
