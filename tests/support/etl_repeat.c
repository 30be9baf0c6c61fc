/* etl_repeat() of etl_writer.h. */
#include "tests/support/etl_writer.h"

#include "base/bytes.h"
#include "source/etl/etl_private.h"
#include "tests/support/lz77_pack.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP_STACK = 24, STACK = 32, STACK_KERNEL_KEY = 37, STACK_USER_KEY = 38 };

struct repeat {
	struct etl_file *file;
	struct os_file *to;
	struct etl_payload payload, stored;
	struct buf packed;
	uint64_t payload_bytes;
	int64_t sequences, ticks;            /* of one round */
};

static void move(uint8_t *at, int64_t by)
{
	uint64_t v = le64(at) + (uint64_t)by;

	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

static void move_record(uint8_t *at, const struct etl_head *head, int64_t by)
{
	bool perfinfo = head->kind == ETL_PERFINFO32 || head->kind == ETL_PERFINFO64;
	bool system = head->kind == ETL_SYSTEM32 || head->kind == ETL_SYSTEM64;
	size_t payload = perfinfo ? 16 : 32;

	if (head->kind == ETL_MESSAGE)
		return;
	move(at + (perfinfo ? 8 : 16), by);
	if ((perfinfo || system) && at[7] == GROUP_STACK && head->nbytes >= payload + 8 &&
	    (at[6] == STACK || at[6] == STACK_KERNEL_KEY || at[6] == STACK_USER_KEY))
		move(at + payload, by);
}

static int repeat_buffer(struct repeat *r, const struct etl_buffer *b, int64_t round,
			 struct err *err)
{
	uint8_t header[BUFFER_HEAD_BYTES];
	struct etl_head head;
	const char *why;
	size_t at = 0, n;
	int rc;

	rc = etl_read(r->file, b->offset, header, sizeof(header), "a buffer", err);
	if (!rc)
		rc = etl_buffer_load(r->file, b, &r->stored, &r->payload, &why, err);
	if (rc || why)
		return rc;
	move(header + 24, round * r->sequences);
	while (at < r->payload.nbytes &&
	       etl_record_head(r->payload.bytes + at, r->payload.nbytes - at, &head) ==
		       ETL_STEP_RECORD) {
		move_record(r->payload.bytes + at, &head, round * r->ticks);
		at += etl_record_stride(&head);
	}
	buf_reset(&r->packed);
	if (header[52] & BUFFER_COMPRESSED)
		lz77_pack(r->payload.bytes, r->payload.nbytes, &r->packed);
	else
		buf_put(&r->packed, r->payload.bytes, r->payload.nbytes);
	while (!(header[52] & BUFFER_COMPRESSED) &&
	       r->packed.len + BUFFER_HEAD_BYTES < b->stored_bytes)
		buf_putc(&r->packed, '\xff');
	n = BUFFER_HEAD_BYTES + r->packed.len;
	for (unsigned i = 0; i < 4; i++)
		header[i] = (uint8_t)(n >> 8 * i);
	r->payload_bytes += r->payload.nbytes;
	rc = buf_check(&r->packed, "a buffer", err);
	if (!rc)
		rc = os_write(r->to, header, sizeof(header), err);
	return rc ? rc : os_write(r->to, r->packed.data, r->packed.len, err);
}

static int keep_ticks(void *ctx, const struct etw_record *record)
{
	*(int64_t *)ctx = record->ticks;
	return 0;
}

/* In the order of the file; the first buffer, with the session's header, is there once. */
static int repeat_round(struct repeat *r, int64_t round, struct err *err)
{
	int rc = 0;

	for (uint32_t number = round > 0; number < r->file->nbuffers && !rc; number++)
		for (size_t i = 0; i < r->file->nbuffers && !rc; i++)
			if (r->file->buffers[i].number == number)
				rc = repeat_buffer(r, &r->file->buffers[i], round, err);
	return rc;
}

int etl_repeat(const char *from, const char *to, uint64_t payload_bytes, struct err *err)
{
	struct repeat r = {0};
	int64_t last_ticks = 0;
	int rc;

	rc = etl_file_open(from, &r.file, err);
	if (!rc)
		rc = etl_file_run(r.file, keep_ticks, &last_ticks, NULL, err);
	if (!rc)
		rc = os_open(to, OS_REPLACE, &r.to, err);
	if (!rc) {
		r.ticks = last_ticks + 1 - r.file->facts.clock.t0_ticks;
		for (size_t i = 0; i < r.file->nbuffers; i++)
			if (r.file->buffers[i].sequence >= r.sequences)
				r.sequences = r.file->buffers[i].sequence + 1;
	}
	for (int64_t round = 0; !rc && r.payload_bytes < payload_bytes; round++)
		rc = repeat_round(&r, round, err);
	os_close(r.to);
	etl_file_close(r.file);
	free(r.payload.bytes);
	free(r.stored.bytes);
	buf_free(&r.packed);
	return rc;
}
