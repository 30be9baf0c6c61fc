#include "tests/support/etw_stack_lab.h"

#include "source/etw/class.h"
#include "tests/support/test.h"

#include <string.h>

struct script script;
struct result result;


int begin(void **state)
{
	(void)state;
	memset(&script, 0, sizeof(script));
	memset(&result, 0, sizeof(result));
	script.filler_after = SCRIPT;
	return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

struct etw_bytes *next_bytes(void)
{
	assert_true(script.n < SCRIPT);
	return &script.bytes[script.n];
}

uint32_t add(struct etw_record record, int64_t ticks, uint16_t cpu)
{
	record.ticks = ticks;
	if (script.n && script.record[script.n - 1].ticks > ticks)
		record.ticks = script.record[script.n - 1].ticks;
	record.cpu = cpu;
	script.record[script.n] = record;
	return script.n++;
}

uint32_t sample(int64_t ticks, uint32_t tid, uint16_t cpu)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, K(1), 8);
	etw_int(b, tid, 4);
	etw_int(b, 0x00400001, 4);
	return add(etw_classic(ETW_PERF_INFO_GUID, 46, 2, b), ticks, cpu);
}

uint32_t event_of(const char *guid, int64_t ticks, uint32_t pid, uint32_t tid)
{
	struct etw_record r = etw_manifest(guid, 7777, 0, next_bytes());

	r.pid = pid;
	r.tid = tid;
	return add(r, ticks, 0);
}

uint32_t event(int64_t ticks, uint32_t pid, uint32_t tid)
{
	return event_of(OTHER_GUID, ticks, pid, tid);
}

static void put_addresses(struct etw_bytes *b, const uint64_t *addresses, uint32_t pointer_bytes)
{
	for (; *addresses; addresses++)
		etw_int(b, *addresses, pointer_bytes);
}

void stack(int64_t of_ticks, uint32_t pid, uint32_t tid, const uint64_t *addresses)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, (uint64_t)of_ticks, 8);
	etw_int(b, pid, 4);
	etw_int(b, tid, 4);
	put_addresses(b, addresses, 8);
	add(etw_classic(STACK_GUID, 32, 2, b), of_ticks + 1, 0);
}

void key(uint8_t opcode, int64_t of_ticks, uint32_t pid, uint32_t tid, uint64_t number)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, (uint64_t)of_ticks, 8);
	etw_int(b, pid, 4);
	etw_int(b, tid, 4);
	etw_int(b, number, 8);
	add(etw_classic(STACK_GUID, opcode, 2, b), of_ticks + 1, 0);
}

void define(uint8_t opcode, int64_t at_ticks, uint64_t number, const uint64_t *addresses)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, number, 8);
	put_addresses(b, addresses, 8);
	add(etw_classic(STACK_GUID, opcode, 2, b), at_ticks, 0);
}

void runtime_stack(const char *guid, int64_t ticks, uint32_t tid, uint64_t address)
{
	struct etw_bytes *b = next_bytes();
	struct etw_record r;

	etw_int(b, 9, 4);
	etw_int(b, 1, 4);
	etw_int(b, address, 8);
	r = etw_manifest(guid, 82, 0, b);
	r.pid = 100;
	r.tid = tid;
	add(r, ticks, 0);
}

void item(uint16_t type, uint64_t match, const uint64_t *values)
{
	struct etw_bytes *b = &script.bytes[script.n - 1];
	struct etw_record *r = &script.record[script.n - 1];
	uint32_t from = b->n;

	etw_int(b, match, 8);
	put_addresses(b, values, type == 5 || type == 17 ? 4 : 8);
	r->items[r->nitems++] = (struct etw_item){type, (uint16_t)(b->n - from), b->at + from};
}

/* ---- running --------------------------------------------------------------------------------- */

void take(struct etw_stacks *s)
{
	const struct etw_whole *w;

	while ((w = etw_stacks_next(s))) {
		uint32_t i, n = result.n;

		if (w->record->id == 9999)
			continue;            /* filler */
		assert_true(n < script.n);
		assert_int_equal(w->record->ticks, script.record[n].ticks);
		assert_int_equal(w->record->payload_bytes, script.record[n].payload_bytes);
		assert_int_equal(w->record->nitems, script.record[n].nitems);
		if (w->record->payload_bytes)
			assert_memory_equal(w->record->payload, script.record[n].payload,
					    w->record->payload_bytes);
		result.of[n].n = w->naddresses;
		result.of[n].tid = w->tid;
		result.of[n].state = w->state;
		result.of[n].from_runtime = w->from_runtime;
		for (i = 0; i < w->naddresses && i < GIVEN; i++)
			result.of[n].addresses[i] = w->addresses[i];
		result.n++;
	}
}

static void put_all(struct etw_stacks *s, bool taking)
{
	struct etw_bytes none = {.n = 0};
	struct etw_record filler = etw_manifest(OTHER_GUID, 9999, 0, &none);
	uint32_t i, k;

	filler.tid = 12345;
	for (i = 0; i < script.n; i++) {
		etw_stacks_put(s, &script.record[i], etw_class_find(&script.record[i]));
		if (taking)
			take(s);
		filler.ticks = script.record[i].ticks;
		for (k = 0; i == script.filler_after && k < script.nfiller; k++) {
			etw_stacks_put(s, &filler, NULL);
			if (taking)
				take(s);
		}
	}
}

void run_file(void)
{
	struct etw_stacks *s = NULL;

	assert_int_equal(etw_stacks_new(ETW_STACKS_SURVEY, 10000000, &s, NULL), 0);
	put_all(s, false);
	assert_int_equal(etw_stacks_deliver(s, NULL), 0);
	put_all(s, true);
	etw_stacks_end(s);
	take(s);
	assert_int_equal(result.n, script.n);
	result.count = *etw_stacks_counts(s);
	etw_stacks_free(s);
}

struct etw_stacks *run_live(void)
{
	struct etw_stacks *s = NULL;

	assert_int_equal(etw_stacks_new(ETW_STACKS_LIVE, 10000000, &s, NULL), 0);
	put_all(s, true);
	return s;
}

void stack_is(uint32_t number, const uint64_t *addresses)
{
	uint32_t n = 0;

	for (; addresses[n]; n++)
		if (n < result.of[number].n)
			assert_int_equal(result.of[number].addresses[n], addresses[n]);
	assert_int_equal(result.of[number].n, n);
	assert_int_equal(result.of[number].state, n ? ETW_STACK_WHOLE : ETW_STACK_ABSENT);
}
