/*
 * Records of known classes go through everything that learns from them: processes, images, methods,
 * names of files, stacks; first twice as a file, then live, where what is known is renewed half
 * way. Each record is
 *
 *	u8 provider, u8 key of the class, u8 flags (1: 32-bit pointers; 2, 4: an item), u8 tid, u8
 *	ticks later, u8 bytes of payload, u8 bytes of the item, then these bytes
 */
#include "source/etw/code.h"
#include "source/etw/stacks.h"

#include "base/bytes.h"
#include "tests/support/etw_bytes.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 7, RENEWED_AT = 12, RENEWED_TICKS = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct row {
	const uint8_t *at, *end;
	struct etw_record record;
	const struct etw_class *class;
	struct etw_state *state;
	struct etw_code *code;
	struct etw_stacks *stacks;
	uint64_t put, taken;
	int64_t last_ticks;
};

/* One of a class that is not known is passed over. */
static bool next_record(struct row *row)
{
	static const uint16_t types[4] = {0, 6, 5, 18};
	struct etw_record *r = &row->record;
	const uint8_t *head = row->at;
	int64_t ticks = r->ticks;

	memset(r, 0, sizeof(*r));
	for (;; head += HEAD_BYTES + head[5] + head[6]) {
		if (row->end - head < HEAD_BYTES ||
		    row->end - head < HEAD_BYTES + head[5] + head[6])
			return false;
		if (etw_pick(head[0], head[1], r))
			break;
	}
	r->pointer_bytes = head[2] & 1 ? 4 : 8;
	r->version = 2 + (head[2] >> 6);
	r->tid = head[3];
	r->pid = head[3] / 4;
	r->cpu = head[2] >> 4 & 3;
	r->ticks = ticks + head[4];
	r->payload = head + HEAD_BYTES;
	r->payload_bytes = head[5];
	if (types[head[2] >> 1 & 3]) {
		r->nitems = 1;
		r->items[0] = (struct etw_item){types[head[2] >> 1 & 3], head[6],
						head + HEAD_BYTES + head[5]};
	}
	r->header = ETW_CLASSIC;
	row->class = etw_class_find(r);
	if (!row->class) {
		r->header = ETW_MANIFEST;
		row->class = etw_class_find(r);
	}
	row->at = head + HEAD_BYTES + head[5] + head[6];
	return true;
}

static void take(struct row *row)
{
	const struct etw_whole *w;
	struct frame_ref ref;
	struct symbol symbol;

	while ((w = etw_stacks_next(row->stacks))) {
		const struct etw_thread *t = etw_state_thread(row->state, w->tid, w->record->ticks);

		row->taken++;
		if (w->record->ticks < row->last_ticks ||
		    (w->state == ETW_STACK_ABSENT && w->naddresses))
			abort();
		row->last_ticks = w->record->ticks;
		for (uint32_t i = 0; i < w->naddresses; i++) {
			bool kernel = etw_is_kernel_address(w->addresses[i], w->os_pointer_bytes);

			etw_code_locate(row->code, t ? t->pid : 0, w->addresses[i],
					w->record->ticks, kernel, &ref);
			etw_code_name(row->code, ref.object, ref.offset, &symbol);
		}
	}
}

/* What names the record's first numbers, as those of a file or a registry key? */
static void look_up(struct row *row)
{
	uint32_t at;

	for (at = 0; at + 8 <= row->record.payload_bytes && at < 24; at += 8)
		etw_state_file(row->state, le64(row->record.payload + at), row->record.ticks);
	/* Of threads that no record is about. */
	etw_state_need_thread(row->state, 256 + row->record.tid % 4, row->record.pid,
			      row->record.ticks);
}

/* As a session of months does. */
static void renew(struct row *row)
{
	int64_t since = row->record.ticks - RENEWED_TICKS;
	struct etw_state *state = NULL;
	struct etw_code *code = NULL;
	size_t nbytes = 0;

	if (etw_state_renew(row->state, since, &state, NULL) ||
	    etw_code_renew(row->code, state, since, &code, NULL))
		abort();
	etw_state_refused(state, &nbytes);
	etw_code_refused(code, &nbytes);
	etw_code_free(row->code, 1);
	etw_state_free(row->state);
	row->code = code;
	row->state = state;
}

static void put_all(struct row *row, const uint8_t *data, size_t n, bool learning, bool taking)
{
	row->at = data;
	row->end = data + n;
	memset(&row->record, 0, sizeof(row->record));
	row->put = row->taken = 0;
	row->last_ticks = INT64_MIN;
	while (next_record(row)) {
		etw_stacks_put(row->stacks, &row->record, row->class);
		row->put++;
		if (learning) {
			etw_state_learn(row->state, &row->record, row->class);
			etw_code_learn(row->code, &row->record, row->class);
			if (row->class->id == ETW_GC_START)
				etw_state_gc_twin(row->state, &row->record, row->class);
			look_up(row);
		}
		if (learning && taking && row->put == RENEWED_AT)
			renew(row);
		if (taking)
			take(row);
	}
	if (!taking)
		return;
	etw_stacks_end(row->stacks);
	take(row);
	if (row->taken != row->put)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct frames *frames = NULL;
	struct row row = {0};

	for (int live = 0; live < 2; live++) {
		if (frames_new(&frames, NULL) || etw_state_new(&row.state, NULL) ||
		    etw_code_new(row.state, frames, &row.code, NULL) ||
		    etw_stacks_new(live ? ETW_STACKS_LIVE : ETW_STACKS_SURVEY, 1000, &row.stacks,
				   NULL))
			abort();
		etw_state_add_volume(row.state, "\\Device\\Disk1", "C:");
		if (etw_state_root(row.state, 1, NULL))
			abort();
		if (live) {
			put_all(&row, data, n, true, true);
		} else {
			put_all(&row, data, n, true, false);
			etw_code_settle(row.code);
			if (etw_stacks_deliver(row.stacks, NULL))
				abort();
			put_all(&row, data, n, false, true);
		}
		etw_stacks_free(row.stacks);
		etw_code_free(row.code, 1);
		etw_state_free(row.state);
		frames_free(frames);
	}
	return 0;
}
