#include "source/etl/file.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/text.h"
#include "source/etl/etl_private.h"
#include "source/etl/lz77.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* From 1601-01-01, the start of FILETIME, to 1970-01-01, in units of 100 ns. */
#define FILETIME_TO_1970 116444736000000000ULL
#define FILETIME_HZ 10000000u

enum {
	KERNEL_HEADER_BYTES = 32, /* of the record that holds the session's header */
	BOOT_AT_64 = 248,
	BOOT_AT_32 = 240, /* u64 each: time of boot, frequency, start; u32: clock, buffers lost */
	BOOT_BYTES = 32,
	PAYLOAD_MAX_LEAST = 1u << 20, /* buffers are slightly larger than their session says */
	CLOCK_FILETIME = 2, CLOCK_CYCLES = 3, /* any other: QueryPerformanceCounter() */
};

/* ---- one buffer ------------------------------------------------------------------------------ */

int etl_read(const struct etl_file *file, uint64_t offset, void *to, size_t n, const char *what,
	     struct err *err)
{
	int rc = bytes_read(&file->in, file->base + offset, to, n, what, err);

	return rc ? err_prefix(err, "cannot read %s", file->name) : 0;
}

void etl_count_damage(struct etl_counts *counts, uint32_t number, const char *why)
{
	if (!counts->ndamaged++) {
		counts->damaged = number;
		counts->why = why;
	}
}

static int make_room(struct etl_payload *out, size_t n, struct err *err)
{
	uint8_t *grown;

	if (n <= out->cap && out->bytes)
		return 0;
	grown = realloc(out->bytes, n ? n : 1);
	if (!grown)
		return err_memory(err, "for a buffer of %zu bytes", n);
	out->bytes = grown;
	out->cap = n;
	return 0;
}

static const char *expand(const uint8_t *stored, size_t nstored, struct etl_payload *out)
{
	size_t got;

	switch (lz77_expand(stored, nstored, out->bytes, out->nbytes, &got)) {
	case LZ77_WHOLE:
		return NULL;
	case LZ77_SHORT:
		if (!out->cut)
			return "its compressed bytes end too early";
		out->nbytes = got;
		return NULL;
	case LZ77_LONG:
		return "its compressed bytes expand to more than it says";
	case LZ77_BAD:
		break;
	}
	return "its compressed bytes are not plain LZ77";
}

/* The buffer's stored bytes, in memory or read into *room. */
static int read_stored(const struct etl_file *file, const struct etl_buffer *b,
		       struct etl_payload *room, const uint8_t **at, struct err *err)
{
	uint64_t offset = b->offset + BUFFER_HEAD_BYTES;
	size_t n = b->stored_bytes - BUFFER_HEAD_BYTES;
	int rc;

	if (file->in.memory) {
		*at = file->in.memory + file->base + offset;
		return 0;
	}
	rc = make_room(room, n, err);
	if (!rc)
		rc = etl_read(file, offset, room->bytes, n, "a buffer", err);
	*at = room->bytes;
	return rc;
}

int etl_buffer_load(const struct etl_file *file, const struct etl_buffer *b,
		    struct etl_payload *stored, struct etl_payload *out, const char **why,
		    struct err *err)
{
	size_t nstored = b->stored_bytes - BUFFER_HEAD_BYTES;
	uint8_t head[BUFFER_HEAD_BYTES];
	const uint8_t *at = NULL;
	bool compressed;
	uint32_t end;
	int rc;

	*why = NULL;
	out->nbytes = 0;
	rc = etl_read(file, b->offset, head, sizeof(head), "a buffer's header", err);
	if (rc)
		return rc;
	out->cut = le32(head) > b->stored_bytes;
	end = le32(head + 4);
	compressed = head[52] & BUFFER_COMPRESSED;
	if (end <= BUFFER_HEAD_BYTES)
		*why = end && end < BUFFER_HEAD_BYTES ? "it ends inside its own header" : NULL;
	else if (end - BUFFER_HEAD_BYTES > file->payload_max_bytes)
		*why = "it claims to be larger than any buffer of its session";
	else if (!compressed && end > le32(head))
		*why = "it claims to hold more than fits into it";
	if (*why || end <= BUFFER_HEAD_BYTES)
		return 0;
	out->nbytes = end - BUFFER_HEAD_BYTES;
	if (!compressed && out->nbytes > nstored)
		out->nbytes = nstored;
	rc = make_room(out, out->nbytes, err);
	if (!rc && compressed)
		rc = read_stored(file, b, stored, &at, err);
	else if (!rc)
		rc = etl_read(file, b->offset + BUFFER_HEAD_BYTES, out->bytes, out->nbytes,
			      "a buffer", err);
	if (!rc && compressed)
		*why = expand(at, nstored, out);
	if (rc || *why)
		out->nbytes = 0;
	return rc;
}

/* ---- the session's header -------------------------------------------------------------------- */

static uint64_t clock_hz(uint32_t clock, uint64_t perf_hz, uint32_t cpu_mhz)
{
	uint64_t hz = clock == CLOCK_FILETIME ? FILETIME_HZ
		      : clock == CLOCK_CYCLES ? (uint64_t)cpu_mhz * 1000000u
					      : perf_hz;

	return hz ? hz : FILETIME_HZ;
}

static void parse_session(struct etl_file *file, const uint8_t *at, bool is64)
{
	const uint8_t *boot = at + (is64 ? BOOT_AT_64 : BOOT_AT_32);
	uint64_t start = le64(boot + 16);
	uint64_t since_1970 = start > FILETIME_TO_1970 ? start - FILETIME_TO_1970 : 0;
	struct etl_facts *facts = &file->facts;
	uint32_t buffer_bytes = le32(at);

	facts->os_major = at[4];
	facts->os_minor = at[5];
	facts->os_build = le32(at + 8);
	facts->ncpus = le32(at + 12);
	facts->pointer_bytes = is64 ? 8 : 4;
	facts->events_lost = le32(at + 48);
	facts->start_wall_ns = since_1970 > UINT64_MAX / 100 ? UINT64_MAX : since_1970 * 100;
	facts->buffers_lost = le32(boot + 28);
	facts->clock.frequency_hz = clock_hz(le32(boot + 24), le64(boot + 8), le32(at + 52));
	if (!(le32(at + 32) & MODE_COMPRESSED) && buffer_bytes >= BUFFER_HEAD_BYTES)
		file->fixed_bytes = buffer_bytes;
	if (buffer_bytes < PAYLOAD_MAX_LEAST)
		buffer_bytes = PAYLOAD_MAX_LEAST;
	if (buffer_bytes < file->payload_max_bytes)
		file->payload_max_bytes = buffer_bytes;
}

static int not_a_trace(const struct etl_file *file, const char *why, struct err *err)
{
	if (text_ends_fold(file->name, ".nettrace"))
		return err_set(err, ERR_FORMAT, "%s is not a .NET trace: it does not begin with "
			       "'Nettrace'; record it again with dotnet-trace", file->name);
	return err_set(err, ERR_FORMAT, "%s is not a Windows trace (.etl): %s; 'recorder help "
		       "export' lists what else is read", file->name, why);
}

/* The session's header is the first record of the first buffer. */
static int read_session(struct etl_file *file, struct err *err)
{
	struct etl_buffer first = {0};
	struct etl_payload payload = {0}, stored = {0};
	uint8_t nbytes[4];
	struct etl_head head;
	const uint8_t *at;
	const char *why;
	uint64_t size = file->facts.trace_bytes;
	bool is64;
	int rc;

	if (size < BUFFER_HEAD_BYTES)
		return not_a_trace(file, "it is shorter than the header of a buffer", err);
	rc = etl_read(file, 0, nbytes, sizeof(nbytes), "its first bytes", err);
	if (rc)
		return rc;
	if (le32(nbytes) < BUFFER_HEAD_BYTES || le32(nbytes) > ETL_BUFFER_MAX_BYTES)
		return not_a_trace(file, "its first bytes are not the size of a buffer", err);
	first.stored_bytes = le32(nbytes) < size ? le32(nbytes) : (uint32_t)size;
	file->payload_max_bytes = ETL_BUFFER_MAX_BYTES;
	rc = etl_buffer_load(file, &first, &stored, &payload, &why, err);
	at = payload.bytes;
	if (!rc && why)
		rc = not_a_trace(file, why, err);
	else if (!rc &&
		 (etl_record_head(at, payload.nbytes, &head) != ETL_STEP_RECORD ||
		  (head.kind != ETL_SYSTEM32 && head.kind != ETL_SYSTEM64) || at[6] || at[7]))
		rc = not_a_trace(file, payload.cut ? "it ends inside its session's header" :
				 "it does not start with a session's header", err);
	if (!rc) {
		/* By the record's type: the PointerSize field comes after what it decides. */
		is64 = head.kind == ETL_SYSTEM64;
		if (head.nbytes < KERNEL_HEADER_BYTES + BOOT_BYTES +
				  (is64 ? BOOT_AT_64 : BOOT_AT_32))
			rc = not_a_trace(file, "its session's header is too short", err);
	}
	if (!rc) {
		parse_session(file, at + KERNEL_HEADER_BYTES, is64);
		file->facts.clock.t0_ticks = head.ticks;
	}
	free(payload.bytes);
	free(stored.bytes);
	return rc;
}

/* ---- the index of buffers -------------------------------------------------------------------- */

static int add_buffer(struct etl_file *file, const uint8_t *head, uint64_t offset, uint32_t number,
		      uint64_t left, struct err *err)
{
	unsigned flags = le16(head + 52);

	if (ARRAY_ROOM(file->buffers, file->buffers_cap, file->nbuffers + 1))
		return err_memory(err, "for the index of %s", file->name);
	file->buffers[file->nbuffers++] = (struct etl_buffer){
		.offset = offset, .sequence = (int64_t)le64(head + 24), .number = number,
		.cpu = le16(head + 40) & (flags & BUFFER_CPU_WIDE ? 0x7FF : 0xFF),
		.stored_bytes = le32(head) < left ? le32(head) : (uint32_t)left,
	};
	file->facts.nbuffers_loss += (flags & BUFFER_LOST) != 0;
	return 0;
}

/*
 * The distance to the next buffer; 0 = none. An impossible size breaks the chain of buffers, except
 * in sessions without compression: their buffers all have one size, so the next one can be found.
 */
static uint64_t step_over(struct etl_file *file, const uint8_t *head, uint64_t offset,
			  uint32_t number, bool *good)
{
	uint64_t left = file->facts.trace_bytes - offset, fixed = file->fixed_bytes;
	uint32_t nbytes = le32(head);

	*good = nbytes >= BUFFER_HEAD_BYTES && nbytes <= ETL_BUFFER_MAX_BYTES + BUFFER_HEAD_BYTES;
	if (*good && nbytes <= left)
		return nbytes;
	if (*good && (!fixed || fixed >= left)) {
		file->facts.truncated = true;
		return 0;
	}
	*good = false;
	if (nbytes == 0 && !fixed)
		return 0;                    /* space that was never written */
	etl_count_damage(&file->found, number, fixed ? "its size is impossible" :
			 "its size is impossible, so the buffers after it cannot be found");
	return fixed < left ? fixed : 0;
}

static int order_of_flush(const void *a, const void *b)
{
	const struct etl_buffer *x = a, *y = b;

	if (x->cpu != y->cpu)
		return compare_u64(x->cpu, y->cpu);
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return compare_u64(x->number, y->number);
}

static int read_index(struct etl_file *file, struct err *err)
{
	uint64_t offset = 0, size = file->facts.trace_bytes, step = 1;
	uint8_t head[BUFFER_HEAD_BYTES];
	uint32_t number = 0;
	bool good;
	int rc = 0;

	while (step && size - offset >= BUFFER_HEAD_BYTES) {
		if (file->nbuffers == ETL_BUFFERS_MAX) {
			file->facts.limited = true;
			break;
		}
		rc = etl_read(file, offset, head, sizeof(head), "a buffer's header", err);
		if (rc)
			return rc;
		step = step_over(file, head, offset, number, &good);
		if (good)
			rc = add_buffer(file, head, offset, number, size - offset, err);
		if (rc)
			return rc;
		offset += step;
		number++;
	}
	if (step && offset < size && !file->facts.limited)
		file->facts.truncated = true;
	if (file->nbuffers)
		qsort(file->buffers, file->nbuffers, sizeof(*file->buffers), order_of_flush);
	return 0;
}

/* ---- opening, closing ------------------------------------------------------------------------ */

static int new_file(const char *name, struct etl_file **out, struct err *err)
{
	struct etl_file *file = calloc(1, sizeof(*file));

	if (file)
		file->name = text_dup(name, 400);
	if (!file || !file->name) {
		free(file);
		return err_memory(err, "while opening %s", name);
	}
	file->open_max_bytes = ETL_OPEN_MAX_BYTES;
	*out = file;
	return 0;
}

static int read_all_heads(struct etl_file *file, struct etl_file **out, struct err *err)
{
	int rc;

	file->facts.trace_bytes = file->in.size;
	rc = etl_unzip(file, err);
	if (!rc)
		rc = read_session(file, err);
	if (!rc)
		rc = read_index(file, err);
	if (rc)
		etl_file_close(file);
	else
		*out = file;
	return rc;
}

int etl_file_open(const char *path, struct etl_file **out, struct err *err)
{
	struct etl_file *file;
	struct os_file_info info;
	int rc;

	rc = new_file(path, &file, err);
	if (rc)
		return rc;
	/* Checked before opening: a pipe would block for ever. */
	rc = os_path_info(path, &info, err);
	if (!rc && info.regular)
		rc = os_open(path, OS_READ, &file->os, err);
	if (!rc && info.regular)
		rc = os_file_info(file->os, &info, err);
	if (!rc && !info.regular)
		rc = err_set(err, ERR_FORMAT, "%s is not a regular file, and traces are read more "
			     "than once: save what comes from it, and name that file", path);
	if (!rc && !info.size_bytes)
		rc = err_set(err, ERR_FORMAT, "%s is empty", path);
	if (rc) {
		etl_file_close(file);
		return rc;
	}
	file->in = bytes_of_file(file->os, info.size_bytes);
	return read_all_heads(file, out, err);
}

int etl_file_open_memory(const char *name, const void *bytes, size_t n, struct etl_file **out,
			 struct err *err)
{
	struct etl_file *file;
	int rc;

	rc = new_file(name, &file, err);
	if (rc)
		return rc;
	file->in = bytes_of_memory(bytes, n);
	return read_all_heads(file, out, err);
}

void etl_file_close(struct etl_file *file)
{
	if (!file)
		return;
	os_close(file->os);
	os_close(file->unpacked);
	free(file->unpacked_bytes);
	free(file->buffers);
	free(file->name);
	free(file);
}

const struct etl_facts *etl_file_facts(const struct etl_file *file)
{
	return &file->facts;
}

void etl_file_stop(struct etl_file *file)
{
	atomic_store(&file->stopped, true);
}
