/* Stacks find their events: every rule of design page etl-format.md sections 7 to 9, by hand. */
#include "source/etl_records.h"
#include "source/etw_stacks.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etw_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define STACK_GUID "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"
#define DISK_GUID "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c"
#define THREAD_GUID "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c"
#define PRIVATE_GUID "763fd754-7086-4dfe-95eb-c01a46faf4ca"
#define IMAGE_ID_GUID "b3e675d7-2554-4f18-830b-2762732560de"
#define USER_PART_GUID "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2"
#define OTHER_GUID "11111111-2222-3333-4444-555555555555"

#define K(n) (0xFFFFF80000000000u + (n))     /* kernel addresses */
#define U(n) (0x7F0000000000u + (n))         /* user addresses */

enum { SCRIPT = 64, GIVEN = 8 };

/* Records to put; each has room of its own for its bytes. */
struct script {
	struct etw_record record[SCRIPT];
	struct etw_bytes bytes[SCRIPT];
	uint32_t n;
	uint32_t filler_after, nfiller;      /* so many records of no interest stand behind that one */
};

/* What left the line, by number of the record in the script. */
struct result {
	struct {
		uint64_t addresses[GIVEN];
		uint32_t n, tid;
		enum etw_stack_state state;
		bool from_runtime;
	} of[SCRIPT];
	uint32_t n;
	struct etw_stacks_count count;
};

static struct script script;
static struct result result;

static int begin(void **state)
{
	(void)state;
	memset(&script, 0, sizeof(script));
	memset(&result, 0, sizeof(result));
	script.filler_after = SCRIPT;
	return 0;
}

/* ---- records ----------------------------------------------------------------------------------- */

static struct etw_bytes *next_bytes(void)
{
	assert_true(script.n < SCRIPT);
	return &script.bytes[script.n];
}

/* Adds it, not before the last one; returns its number. */
static uint32_t add(struct etw_record record, int64_t ticks, uint16_t cpu)
{
	record.ticks = ticks;
	if (script.n && script.record[script.n - 1].ticks > ticks)
		record.ticks = script.record[script.n - 1].ticks;
	record.cpu = cpu;
	script.record[script.n] = record;
	return script.n++;
}

static uint32_t sample(int64_t ticks, uint32_t tid, uint16_t cpu)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, K(1), 8);
	etw_int(b, tid, 4);
	etw_int(b, 0x00400001, 4);
	return add(etw_classic(ETW_PERF_INFO_GUID, 46, 2, b), ticks, cpu);
}

static uint32_t event_of(const char *guid, int64_t ticks, uint32_t pid, uint32_t tid)
{
	struct etw_record r = etw_manifest(guid, 7777, 0, next_bytes());

	r.pid = pid;
	r.tid = tid;
	return add(r, ticks, 0);
}

static uint32_t event(int64_t ticks, uint32_t pid, uint32_t tid)
{
	return event_of(OTHER_GUID, ticks, pid, tid);
}

static void put_addresses(struct etw_bytes *b, const uint64_t *addresses, uint32_t pointer_bytes)
{
	for (; *addresses; addresses++)
		etw_int(b, *addresses, pointer_bytes);
}

/* StackWalk 32; addresses end with 0. */
static void stack(int64_t of_ticks, uint32_t pid, uint32_t tid, const uint64_t *addresses)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, (uint64_t)of_ticks, 8);
	etw_int(b, pid, 4);
	etw_int(b, tid, 4);
	put_addresses(b, addresses, 8);
	add(etw_classic(STACK_GUID, 32, 2, b), of_ticks + 1, 0);
}
#define STACK(ticks, pid, tid, ...) stack(ticks, pid, tid, (const uint64_t[]){__VA_ARGS__, 0})

/* StackWalk 37 (kernel) and 38 (user). */
static void key(uint8_t opcode, int64_t of_ticks, uint32_t pid, uint32_t tid, uint64_t number)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, (uint64_t)of_ticks, 8);
	etw_int(b, pid, 4);
	etw_int(b, tid, 4);
	etw_int(b, number, 8);
	add(etw_classic(STACK_GUID, opcode, 2, b), of_ticks + 1, 0);
}

/* StackWalk 35 (delete) and 36 (rundown). */
static void define(uint8_t opcode, int64_t at_ticks, uint64_t number, const uint64_t *addresses)
{
	struct etw_bytes *b = next_bytes();

	etw_int(b, number, 8);
	put_addresses(b, addresses, 8);
	add(etw_classic(STACK_GUID, opcode, 2, b), at_ticks, 0);
}
#define DEFINE(opcode, ticks, number, ...) \
	define(opcode, ticks, number, (const uint64_t[]){__VA_ARGS__, 0})

/* A stack by the CLR. */
static void runtime_stack(const char *guid, int64_t ticks, uint32_t tid, uint64_t address)
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

/* Give the last record an extended item: a match id, then addresses or a key. */
static void item(uint16_t type, uint64_t match, const uint64_t *values)
{
	struct etw_bytes *b = &script.bytes[script.n - 1];
	struct etw_record *r = &script.record[script.n - 1];
	uint32_t from = b->n;

	etw_int(b, match, 8);
	put_addresses(b, values, type == 5 || type == 17 ? 4 : 8);
	r->items[r->nitems++] = (struct etw_item){type, (uint16_t)(b->n - from), b->at + from};
}
#define ITEM(type, match, ...) item(type, match, (const uint64_t[]){__VA_ARGS__, 0})

/* ---- running ----------------------------------------------------------------------------------- */

static void take(struct etw_stacks *s)
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

/* As a file is read: twice. */
static void run_file(void)
{
	struct etw_stacks *s = NULL;

	assert_int_equal(etw_stacks_new(ETW_STACKS_SURVEY, 10000000, &s, NULL), 0);
	put_all(s, false);
	assert_int_equal(etw_stacks_deliver(s, NULL), 0);
	put_all(s, true);
	etw_stacks_end(s);
	take(s);
	assert_int_equal(result.n, script.n);
	etw_stacks_counts(s, &result.count);
	etw_stacks_free(s);
}

static struct etw_stacks *run_live(void)
{
	struct etw_stacks *s = NULL;

	assert_int_equal(etw_stacks_new(ETW_STACKS_LIVE, 10000000, &s, NULL), 0);
	put_all(s, true);
	return s;
}

static void stack_is(uint32_t number, const uint64_t *addresses)
{
	uint32_t n = 0;

	for (; addresses[n]; n++)
		if (n < result.of[number].n)
			assert_int_equal(result.of[number].addresses[n], addresses[n]);
	assert_int_equal(result.of[number].n, n);
	assert_int_equal(result.of[number].state, n ? ETW_STACK_WHOLE : ETW_STACK_ABSENT);
}
#define STACK_IS(number, ...) stack_is(number, (const uint64_t[]){__VA_ARGS__, 0})

static void kernel_group_and_class_table_mean_the_same(void **state)
{
	static const struct { uint8_t group, opcode; uint16_t id; } same[] = {
		{0, 0, ETW_HEADER}, {1, 10, ETW_DISK_READ}, {2, 32, ETW_HARD_FAULT},
		{3, 1, ETW_PROCESS_START}, {3, 10, ETW_IMAGE_LOAD}, {4, 36, ETW_FILE_RUNDOWN},
		{5, 1, ETW_THREAD_START}, {15, 46, ETW_SAMPLE}, {20, 2, ETW_IMAGE_UNLOAD},
		{24, 32, ETW_STACK},
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct etw_record r = {.header = ETW_CLASSIC, .opcode = same[i].opcode};

		etl_kernel_class(same[i].group, r.opcode, &r.guid);
		assert_non_null(etw_class_find(&r));
		assert_int_equal(etw_class_find(&r)->id, same[i].id);
	}
}

/* ---- parts ------------------------------------------------------------------------------------- */

static void kernel_part_and_user_part_make_one_stack(void **state)
{
	uint32_t e = sample(1000, 7, 0);

	(void)state;
	STACK(1000, 100, 7, K(1), K(2));
	STACK(1000, 100, 7, U(1), U(2));
	run_file();
	STACK_IS(e, K(1), K(2), U(1), U(2));
	assert_int_equal(result.of[e].tid, 7);       /* of the payload: the header has none */
	assert_int_equal(result.count.kernel_parts, 1);
	assert_int_equal(result.count.user_parts, 1);
	assert_int_equal(result.count.orphans, 0);
}

static void stack_from_kernel_to_user_is_whole(void **state)
{
	uint32_t e = sample(1000, 7, 0), later;

	(void)state;
	STACK(1000, 100, 7, K(1), U(1));
	later = sample(2000, 7, 0);
	STACK(2000, 100, 7, U(2));
	run_file();
	STACK_IS(e, K(1), U(1));                     /* nothing was pending */
	STACK_IS(later, U(2));
	assert_int_equal(result.count.whole_stacks, 1);
}

static void one_user_part_serves_all_events_since_the_thread_entered_the_kernel(void **state)
{
	uint32_t first = sample(1000, 7, 0), second = event(1500, 100, 7), other = sample(1600, 8, 0);

	(void)state;
	STACK(1000, 100, 7, K(1));
	STACK(1500, 100, 7, K(2));
	STACK(1600, 100, 8, K(3));
	STACK(1000, 100, 7, U(1));
	run_file();
	STACK_IS(first, K(1), U(1));
	STACK_IS(second, K(2), U(1));
	assert_int_equal(result.of[other].state, ETW_STACK_NO_USER);
	assert_int_equal(result.of[other].n, 1);
	assert_int_equal(result.count.no_user, 1);
	assert_int_equal(result.count.twice, 0);
}

static void a_served_thread_is_not_served_again(void **state)
{
	uint32_t first = sample(1000, 7, 0), second = sample(2000, 7, 0);

	(void)state;
	STACK(1000, 100, 7, K(1));
	STACK(1000, 100, 7, U(1));
	STACK(2000, 100, 7, U(2));
	run_file();
	STACK_IS(first, K(1), U(1));
	STACK_IS(second, U(2));
}

static void idle_and_system_process_have_no_user_part(void **state)
{
	uint32_t system = sample(1000, 40, 0), idle = sample(1100, 0, 0), user = sample(1200, 40, 0);

	(void)state;
	STACK(1000, 4, 40, K(1));
	STACK(1100, 0, 0, K(2));
	STACK(1200, 4, 40, U(1));
	run_file();
	STACK_IS(system, K(1));
	STACK_IS(idle, K(2));
	STACK_IS(user, U(1));
	assert_int_equal(result.count.no_user, 0);
}

static void a_kernel_that_calls_back_into_the_program_is_one_part(void **state)
{
	uint32_t e = sample(1000, 7, 0);

	(void)state;
	STACK(1000, 100, 7, K(1));
	STACK(1000, 100, 7, U(1), K(2), U(2));
	run_file();
	STACK_IS(e, K(1), U(1), K(2), U(2));
}

/* ---- which event ------------------------------------------------------------------------------- */

static void part_goes_to_its_own_thread_among_equal_times(void **state)
{
	uint32_t other = sample(1000, 8, 0), own = sample(1000, 7, 3);

	(void)state;
	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(own, K(1));
	STACK_IS(other, 0);
}

static void same_cpu_decides_between_two_events_of_a_thread(void **state)
{
	uint32_t there = event(1000, 4, 7), here = event(1000, 4, 7);

	(void)state;
	script.record[there].cpu = 5;
	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(here, K(1));
	STACK_IS(there, 0);
}

static void event_without_a_thread_takes_what_is_left_for_it(void **state)
{
	uint32_t there = event(1000, 4, ETW_ID_UNKNOWN), here = event(1000, 4, ETW_ID_UNKNOWN), named;

	(void)state;
	script.record[there].cpu = 5;
	STACK(1000, 4, 7, K(1));
	named = event(2000, 4, 7);
	event(2000, 4, ETW_ID_UNKNOWN);
	STACK(2000, 4, 7, K(2));
	run_file();
	STACK_IS(here, K(1));
	STACK_IS(there, 0);
	STACK_IS(named, K(2));
}

static void disk_request_takes_the_stack_of_another_thread(void **state)
{
	struct etw_bytes *b = next_bytes();
	uint32_t init;

	(void)state;
	etw_int(b, K(99), 8);
	etw_int(b, 44, 4);
	init = add(etw_classic(DISK_GUID, 13, 3, b), 1000, 0);
	STACK(1000, 4, 412, K(1));
	run_file();
	STACK_IS(init, K(1));
	assert_int_equal(result.of[init].tid, 44);   /* whose request it is */
}

static void context_switch_takes_the_stack_of_the_new_thread(void **state)
{
	uint32_t other = event(1000, 100, 8), switched;
	struct etw_bytes *b = next_bytes();

	(void)state;
	etw_int(b, 7, 4);                            /* new */
	etw_int(b, 8, 4);                            /* old */
	etw_int(b, 0, 8);
	etw_int(b, 0, 8);
	switched = add(etw_classic(THREAD_GUID, 36, 2, b), 1000, 0);
	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(switched, K(1));
	STACK_IS(other, 0);
	assert_int_equal(result.of[switched].tid, 7);
}

static void readied_thread_shows_the_stack_of_who_made_it_ready(void **state)
{
	struct etw_bytes *b = next_bytes();
	uint32_t ready;

	(void)state;
	etw_int(b, 9, 4);                            /* made ready; who did it runs on this CPU */
	etw_int(b, 0, 4);
	ready = add(etw_classic(THREAD_GUID, 50, 2, b), 1000, 3);
	STACK(1000, 4, 7, K(1));
	script.record[1].cpu = 3;
	run_file();
	STACK_IS(ready, K(1));
}

static void finished_requests_image_ids_and_stacks_take_no_stack(void **state)
{
	struct etw_bytes *b = next_bytes();
	uint32_t read, id;

	(void)state;
	etw_int(b, 0, 8);
	read = add(etw_classic(DISK_GUID, 10, 3, b), 1000, 0);
	b = next_bytes();
	etw_int(b, 0, 8);
	id = add(etw_classic(IMAGE_ID_GUID, 32, 2, b), 1000, 0);
	script.record[read].tid = script.record[id].tid = 7;
	STACK(1000, 4, 7, K(1));
	run_file();
	STACK_IS(read, 0);
	STACK_IS(id, 0);
	assert_int_equal(result.count.orphans, 1);
}

static void part_without_an_event_is_counted(void **state)
{
	uint32_t e = sample(1000, 7, 0);

	(void)state;
	STACK(999, 100, 7, K(1));
	STACK(1000, 100, 8, U(1));
	key(37, 1001, 100, 7, 5);
	key(38, 1000, 100, 9, 5);
	run_file();
	STACK_IS(e, 0);
	assert_int_equal(result.count.orphans, 4);
}

static void second_part_of_a_kind_does_not_replace_the_first(void **state)
{
	uint32_t e = sample(1000, 7, 0);

	(void)state;
	STACK(1000, 4, 7, K(1));
	STACK(1000, 4, 7, K(2));
	run_file();
	STACK_IS(e, K(1));
	assert_int_equal(result.count.twice, 1);
}

static void thread_number_given_again_gets_no_stack_of_the_old_thread(void **state)
{
	uint32_t old = sample(1000, 7, 0), new;
	struct etw_bytes *b;

	(void)state;
	STACK(1000, 100, 7, K(1));
	b = next_bytes();
	etw_int(b, 200, 4);
	etw_int(b, 7, 4);
	add(etw_classic(THREAD_GUID, 1, 3, b), 1500, 0);
	new = sample(2000, 7, 0);
	STACK(2000, 200, 7, U(1));
	run_file();
	assert_int_equal(result.of[old].n, 1);
	assert_int_equal(result.of[old].state, ETW_STACK_NO_USER);
	STACK_IS(new, U(1));
}

static void short_records_are_counted_and_nothing_else(void **state)
{
	uint32_t e = sample(1000, 7, 0);
	uint8_t opcodes[] = {32, 37, 38, 35, 36};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(opcodes); i++) {
		etw_int(next_bytes(), 1000, 7);
		add(etw_classic(STACK_GUID, opcodes[i], 2, next_bytes()), 1001, 0);
	}
	run_file();
	STACK_IS(e, 0);
	assert_int_equal(result.count.malformed, 5);
}

/* ---- keys -------------------------------------------------------------------------------------- */

static void key_means_the_stack_that_is_told_after_it(void **state)
{
	uint32_t e = sample(1000, 7, 0);

	(void)state;
	key(37, 1000, 100, 7, 5);
	key(38, 1000, 100, 7, 6);
	DEFINE(35, 5000, 6, U(1), U(2));
	DEFINE(36, 9000, 5, K(1));
	run_file();
	STACK_IS(e, K(1), U(1), U(2));
	assert_int_equal(result.count.kernel_keys, 1);
	assert_int_equal(result.count.user_keys, 1);
	assert_int_equal(result.count.deletes, 1);
	assert_int_equal(result.count.rundowns, 1);
}

static void key_that_is_free_again_means_another_stack(void **state)
{
	uint32_t first = sample(1000, 7, 0), second, third;

	(void)state;
	key(37, 1000, 4, 7, 5);
	DEFINE(35, 1500, 5, K(1));
	second = sample(2000, 7, 0);
	key(37, 2000, 4, 7, 5);
	third = sample(3000, 7, 0);
	key(37, 3000, 4, 7, 5);
	DEFINE(36, 9000, 5, K(2));
	run_file();
	STACK_IS(first, K(1));
	STACK_IS(second, K(2));
	STACK_IS(third, K(2));
}

static void kernel_and_user_keys_are_two_tables(void **state)
{
	uint32_t e = sample(1000, 7, 0), mixed = sample(1200, 7, 0);

	(void)state;
	key(37, 1000, 100, 7, 5);
	key(38, 1000, 100, 7, 5);
	key(38, 1200, 100, 7, 6);
	DEFINE(36, 9000, 5, U(1));
	DEFINE(36, 9001, 5, K(1));
	DEFINE(36, 9002, 6, K(3), U(3));             /* by its last address: the user's */
	run_file();
	STACK_IS(e, K(1), U(1));
	STACK_IS(mixed, K(3), U(3));
}

static void key_that_is_never_told_leaves_a_mark(void **state)
{
	uint32_t e = sample(1000, 7, 0);

	(void)state;
	key(37, 1000, 100, 7, 5);
	key(38, 1000, 100, 7, 6);
	DEFINE(36, 900, 5, U(9));
	DEFINE(36, 9000, 5, K(1));
	run_file();
	assert_int_equal(result.of[e].state, ETW_STACK_NO_KEY);
	assert_int_equal(result.of[e].n, 1);
	assert_int_equal(result.of[e].addresses[0], K(1));
	assert_int_equal(result.count.unresolved, 1);
}

/* ---- late -------------------------------------------------------------------------------------- */

static void part_that_comes_after_its_event_has_left_is_known_from_the_survey(void **state)
{
	uint32_t first = sample(1000, 7, 0), second = sample(1100, 7, 0), keyed = sample(1200, 8, 0);

	(void)state;
	STACK(1000, 100, 7, K(1));
	STACK(1100, 100, 7, K(2));
	key(37, 1200, 100, 8, 5);
	script.filler_after = script.n - 1;
	script.nfiller = 3 * ETW_STACKS_HELD_RECORDS;
	STACK(1100, 100, 7, U(1), U(2));
	key(38, 1200, 100, 8, 6);
	DEFINE(35, 9000, 6, U(3));
	DEFINE(35, 9001, 5, K(3));
	DEFINE(35, 9002, 6, U(4));
	run_file();
	STACK_IS(first, K(1), U(1), U(2));
	STACK_IS(second, K(2), U(1), U(2));
	STACK_IS(keyed, K(3), U(3));
	assert_int_equal(result.count.late, 3);
	assert_int_equal(result.count.no_user, 0);
	assert_int_equal(result.count.orphans, 0);
}

static void part_whose_event_is_longer_ago_than_a_survey_knows_is_an_orphan(void **state)
{
	uint32_t e = sample(1000, 7, 0);

	(void)state;
	script.filler_after = 0;
	script.nfiller = 70000;
	STACK(1000, 100, 7, U(1));
	run_file();
	STACK_IS(e, 0);
	assert_int_equal(result.count.orphans, 1);
}

/* ---- live -------------------------------------------------------------------------------------- */

static void live_event_waits_half_a_second_for_its_user_part(void **state)
{
	uint32_t patient = sample(1000, 7, 0), bound = sample(1100, 8, 0);
	struct etw_stacks *s;

	(void)state;
	STACK(1000, 100, 7, K(1));
	STACK(1100, 100, 8, K(2));
	STACK(1100, 100, 8, U(2));
	s = run_live();
	assert_int_equal(result.n, 0);
	etw_stacks_time(s, 1000 + 5000000 - 1);      /* 10 MHz: 500 ms are 5,000,000 ticks */
	take(s);
	assert_int_equal(result.n, 0);
	etw_stacks_time(s, 1101 + 5000000);
	take(s);
	assert_int_equal(result.n, 5);
	assert_int_equal(result.of[patient].state, ETW_STACK_NO_USER);
	assert_int_equal(result.of[patient].addresses[0], K(1));
	STACK_IS(bound, K(2), U(2));
	etw_stacks_counts(s, &result.count);
	assert_int_equal(result.count.no_user, 1);
	assert_int_equal(result.count.hurried, 0);
	etw_stacks_free(s);
}

static void live_part_that_comes_too_late_is_counted(void **state)
{
	struct etw_stacks *s;

	(void)state;
	sample(1000, 7, 0);
	STACK(1000, 100, 7, K(1));
	event(9000000, 1, 1);
	STACK(1000, 100, 7, U(1));
	s = run_live();
	etw_stacks_counts(s, &result.count);
	assert_int_equal(result.count.late, 1);
	assert_int_equal(result.count.no_user, 1);
	etw_stacks_free(s);
}

static void live_line_that_is_full_lets_the_oldest_go(void **state)
{
	struct etw_stacks *s;

	(void)state;
	sample(1000, 7, 0);
	script.filler_after = 0;
	script.nfiller = ETW_STACKS_HELD_RECORDS;
	s = run_live();
	assert_int_equal(result.n, 1);
	etw_stacks_counts(s, &result.count);
	assert_int_equal(result.count.hurried, 1);
	etw_stacks_free(s);
}

/* ---- extended items ---------------------------------------------------------------------------- */

static void stack_in_an_item_is_whole(void **state)
{
	uint32_t e = event(1000, 100, 7), narrow;

	(void)state;
	ITEM(6, 0, K(1), U(1));
	narrow = event(1100, 100, 7);
	ITEM(5, 0, 0x10001000, 0x90001000);          /* a 32-bit program may use over 2 GB */
	run_file();
	STACK_IS(e, K(1), U(1));
	STACK_IS(narrow, 0x10001000, 0x90001000);
	assert_int_equal(result.count.item_stacks, 2);
}

static void kernel_part_in_an_item_gets_its_user_part_from_an_event(void **state)
{
	uint32_t matched = event(1000, 100, 7), by_address = event(1001, 100, 7), part;

	(void)state;
	script.n = matched + 1;
	ITEM(6, 77, K(1));
	by_address = event(1001, 100, 7);
	ITEM(6, 0, K(2));
	part = event_of(USER_PART_GUID, 1500, 100, 7);
	script.record[part].id = 18;
	ITEM(6, 77, U(1));
	run_file();
	STACK_IS(matched, K(1), U(1));
	STACK_IS(by_address, K(2), U(1));
	STACK_IS(part, 0);
}

static void key_in_an_item_is_resolved(void **state)
{
	uint32_t e = event(1000, 100, 7), matched;

	(void)state;
	ITEM(18, 0, 6);
	matched = event(1100, 4, 8);
	ITEM(18, 77, 6);
	DEFINE(36, 9000, 6, U(1));
	DEFINE(36, 9001, 6, K(1));
	run_file();
	STACK_IS(e, U(1));
	STACK_IS(matched, K(1));
}

/* ---- the CLR's stacks -------------------------------------------------------------------------- */

static void runtime_stack_belongs_to_the_record_before_it(void **state)
{
	uint32_t first = event_of(ETW_RUNTIME_GUID, 1000, 100, 7);
	uint32_t second = event_of(ETW_RUNTIME_GUID, 1100, 100, 7);
	uint32_t private = event_of(PRIVATE_GUID, 1200, 100, 7);
	uint32_t other = event_of(ETW_RUNTIME_GUID, 1300, 100, 8);

	(void)state;
	runtime_stack(ETW_RUNTIME_GUID, 1400, 7, U(1));
	runtime_stack(ETW_RUNTIME_GUID, 1500, 7, U(2));     /* the one before has its stack already */
	runtime_stack(ETW_RUNTIME_GUID, 1600, 9, U(3));
	run_file();
	STACK_IS(first, 0);
	STACK_IS(second, U(1));
	STACK_IS(private, 0);
	STACK_IS(other, 0);
	assert_true(result.of[second].from_runtime);
	assert_int_equal(result.count.runtime_stacks, 3);
	assert_int_equal(result.count.runtime_orphans, 2);
}

static void runtime_stack_says_how_long_it_is(void **state)
{
	uint32_t e = event_of(ETW_RUNTIME_GUID, 1000, 100, 7);

	(void)state;
	runtime_stack(ETW_RUNTIME_GUID, 1100, 7, U(1));
	etw_int(&script.bytes[1], U(9), 8);          /* behind the one that the count tells of */
	script.record[1].payload_bytes = script.bytes[1].n;
	run_file();
	STACK_IS(e, U(1));
}

/* ---- 32-bit systems, ceilings, memory ---------------------------------------------------------- */

static void system_of_32_bits_has_its_kernel_above_2_gb(void **state)
{
	struct etw_bytes *b = next_bytes();
	uint32_t header, e, i;

	(void)state;
	for (i = 0; i < 11; i++)
		etw_int(b, 0, 4);
	etw_int(b, 4, 4);                            /* PointerSize at 44 */
	header = add(etw_classic("68fdd900-4a3e-11d1-84f4-0000f80464e3", 0, 2, b), 900, 0);
	e = event(1000, 100, 7);
	b = next_bytes();
	etw_int(b, 1000, 8);
	etw_int(b, 100, 4);
	etw_int(b, 7, 4);
	etw_int(b, 0x80001000, 4);
	add(etw_classic(STACK_GUID, 32, 2, b), 1001, 0);
	b = next_bytes();
	etw_int(b, 1000, 8);
	etw_int(b, 100, 4);
	etw_int(b, 7, 4);
	etw_int(b, 0x401000, 4);
	add(etw_classic(STACK_GUID, 32, 2, b), 1002, 0);
	for (i = 0; i < script.n; i++)
		script.record[i].pointer_bytes = 4;
	run_file();
	STACK_IS(header, 0);
	STACK_IS(e, 0x80001000, 0x401000);
	assert_int_equal(result.count.kernel_parts, 1);
}

static void kernel_parts_that_wait_have_a_ceiling(void **state)
{
	struct etw_stacks *s = NULL;
	uint32_t i;

	(void)state;
	sample(1000, 7, 0);
	STACK(1000, 100, 7, K(1));
	assert_int_equal(etw_stacks_new(ETW_STACKS_SURVEY, 10000000, &s, NULL), 0);
	for (i = 0; i < ETW_STACKS_PENDING_MAX + 3; i++) {
		script.record[0].ticks = script.record[1].ticks = 1000 + i;
		memcpy(script.bytes[1].at, &script.record[0].ticks, 8);
		etw_stacks_put(s, &script.record[0], etw_class_find(&script.record[0]));
		etw_stacks_put(s, &script.record[1], etw_class_find(&script.record[1]));
	}
	etw_stacks_counts(s, &result.count);
	assert_int_equal(result.count.refused, 3);
	assert_int_equal(result.count.orphans, 0);
	etw_stacks_free(s);
}

static int open_and_close(void *ctx)
{
	struct etw_stacks *s = NULL;
	int rc = etw_stacks_new(ETW_STACKS_SURVEY, 10000000, &s, NULL);

	(void)ctx;
	if (!rc)
		rc = etw_stacks_deliver(s, NULL);
	etw_stacks_free(s);
	return rc;
}

static void lack_of_memory_is_an_error_at_the_start(void **state)
{
	(void)state;
	assert_in_range(alloc_walk(open_and_close, NULL), 5, 30);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_group_and_class_table_mean_the_same),
		TEST(kernel_part_and_user_part_make_one_stack),
		TEST(stack_from_kernel_to_user_is_whole),
		TEST(one_user_part_serves_all_events_since_the_thread_entered_the_kernel),
		TEST(a_served_thread_is_not_served_again),
		TEST(idle_and_system_process_have_no_user_part),
		TEST(a_kernel_that_calls_back_into_the_program_is_one_part),
		TEST(part_goes_to_its_own_thread_among_equal_times),
		TEST(same_cpu_decides_between_two_events_of_a_thread),
		TEST(event_without_a_thread_takes_what_is_left_for_it),
		TEST(disk_request_takes_the_stack_of_another_thread),
		TEST(context_switch_takes_the_stack_of_the_new_thread),
		TEST(readied_thread_shows_the_stack_of_who_made_it_ready),
		TEST(finished_requests_image_ids_and_stacks_take_no_stack),
		TEST(part_without_an_event_is_counted),
		TEST(second_part_of_a_kind_does_not_replace_the_first),
		TEST(thread_number_given_again_gets_no_stack_of_the_old_thread),
		TEST(short_records_are_counted_and_nothing_else),
		TEST(key_means_the_stack_that_is_told_after_it),
		TEST(key_that_is_free_again_means_another_stack),
		TEST(kernel_and_user_keys_are_two_tables),
		TEST(key_that_is_never_told_leaves_a_mark),
		TEST(part_that_comes_after_its_event_has_left_is_known_from_the_survey),
		TEST(part_whose_event_is_longer_ago_than_a_survey_knows_is_an_orphan),
		TEST(live_event_waits_half_a_second_for_its_user_part),
		TEST(live_part_that_comes_too_late_is_counted),
		TEST(live_line_that_is_full_lets_the_oldest_go),
		TEST(stack_in_an_item_is_whole),
		TEST(kernel_part_in_an_item_gets_its_user_part_from_an_event),
		TEST(key_in_an_item_is_resolved),
		TEST(runtime_stack_belongs_to_the_record_before_it),
		TEST(runtime_stack_says_how_long_it_is),
		TEST(system_of_32_bits_has_its_kernel_above_2_gb),
		TEST(kernel_parts_that_wait_have_a_ceiling),
		TEST(lack_of_memory_is_an_error_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
